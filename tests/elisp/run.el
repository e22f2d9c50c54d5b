;;; run.el --- Run the tests in a batch Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run it in a batch Emacs: -Q --batch -l tests/elisp/run.el
;;
;; EFRIT_TEST_SELECTOR in the environment, a regular expression, names the
;; tests to run; EFRIT_SHARE, such as 1/2, has every second of them run.  The
;; last line says how many passed and failed.  EFRIT_PASSED names a file for
;; the names of those that passed; one that was skipped is none of them.

;;; Code:

(require 'ert)
(require 'seq)
(require 'subr-x)

(defconst efrit-run--folder (file-name-directory (or load-file-name buffer-file-name))
  "The folder of the tests.")

(load (expand-file-name "share" efrit-run--folder))
(declare-function efrit-share "share" (things))

(defvar efrit-run--mine nil
  "The tests that are to be run.")

(defun efrit-run--mine-p (test)
  "Return non-nil if TEST is to be run."
  (memq test efrit-run--mine))

(defun efrit-run--note-passed (file)
  "Write to FILE the name of each test that passed, a line each."
  (let ((passed (seq-filter (lambda (test)
                              (ert-test-passed-p (ert-test-most-recent-result test)))
                            efrit-run--mine)))
    (with-temp-file file
      (dolist (test passed)
        (insert (symbol-name (ert-test-name test)) "\n")))))

(defun efrit-run ()
  "Run everything in a temporary home, print a summary, and exit."
  (let ((home (make-temp-file "efrit-home-" t))
        stats)
    (setenv "HOME" home)
    (setenv "XDG_CONFIG_HOME" nil)
    (add-to-list 'load-path efrit-run--folder)
    (add-to-list 'load-path (expand-file-name "../../elisp" efrit-run--folder))
    (mapc #'load (directory-files efrit-run--folder t "-tests\\.el\\'"))
    (setq efrit-run--mine (efrit-share
                           (ert-select-tests (or (getenv "EFRIT_TEST_SELECTOR") t) t))
          stats (ert-run-tests-batch '(satisfies efrit-run--mine-p)))
    (when-let* ((file (getenv "EFRIT_PASSED")))
      (efrit-run--note-passed file))
    (delete-directory home t)
    (let ((failed (ert-stats-completed-unexpected stats)))
      (princ (format "%d passed, %d failed\n"
                     (ert-stats-completed-expected stats) failed))
      (kill-emacs (if (zerop failed) 0 1)))))

(when noninteractive
  (efrit-run))

(provide 'run)
;;; run.el ends here
