;;; run.el --- Run the tests in a batch Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run it in a batch Emacs: -Q --batch -l tests/elisp/run.el
;;
;; EFRIT_TEST_SELECTOR in the environment, a regular expression, names the
;; tests to run.  The last line says how many passed and failed.

;;; Code:

(require 'ert)

(defconst efrit-run--folder (file-name-directory (or load-file-name buffer-file-name))
  "The folder of the tests.")

(defun efrit-run ()
  "Run everything in a temporary home, print a summary, and exit."
  (let ((home (make-temp-file "efrit-home-" t))
        stats)
    (setenv "HOME" home)
    (setenv "XDG_CONFIG_HOME" nil)
    (add-to-list 'load-path efrit-run--folder)
    (add-to-list 'load-path (expand-file-name "../../elisp" efrit-run--folder))
    (mapc #'load (directory-files efrit-run--folder t "-tests\\.el\\'"))
    (setq stats (ert-run-tests-batch (or (getenv "EFRIT_TEST_SELECTOR") t)))
    (delete-directory home t)
    (let ((failed (ert-stats-completed-unexpected stats)))
      (princ (format "%d passed, %d failed\n"
                     (ert-stats-completed-expected stats) failed))
      (kill-emacs (if (zerop failed) 0 1)))))

(when noninteractive
  (efrit-run))

(provide 'run)
;;; run.el ends here
