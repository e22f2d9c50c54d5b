;;; run.el --- Run the tests in a batch Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run it in a batch Emacs: -Q --batch -l tests/elisp/run.el
;;
;; The environment says what is run:
;;
;; EFRIT_TEST_SELECTOR, a regular expression, names the tests.
;; EFRIT_SOAK=1 has those run that take long, which have the tag :soak and
;;   are left out otherwise.
;; EFRIT_QUEUE names a folder over which several Emacsen share the tests.
;; EFRIT_PASSED names a file for the names of those that passed; one that was
;;   skipped is none of them.
;;
;; A test that leaves a buffer, a process, a timer or a temporary file behind
;; fails.  The tests with the tag :long come first, so that none of the Emacsen
;; that share them is left with one at the end.  At the end stand those that
;; took longest, how many passed, and how many failed.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'seq)
(require 'subr-x)

(defconst efrit-run--folder (file-name-directory (or load-file-name buffer-file-name))
  "The folder of the tests.")

(add-to-list 'load-path efrit-run--folder)
(add-to-list 'load-path (expand-file-name "../../elisp" efrit-run--folder))
(require 'left)
(require 'share)
(defvar inhibit-automatic-native-compilation)
(defvar efrit-http-directory)
(declare-function efrit-test-start-fork-server "support" ())
(declare-function efrit-test-await-fork-server "support" ())

(defconst efrit-run--slowest 10
  "Number of slowest tests that are listed.")

(defvar efrit-run--problems nil
  "The tests that failed.")

(defvar efrit-run--times nil
  "Seconds that each test took: conses of its name and a number.")

;;; Choosing

(defun efrit-run--load (selector)
  "Load the files that define a test whose name SELECTOR matches."
  (dolist (file (directory-files efrit-run--folder t "-tests\\.el\\'"))
    (when (efrit-run--defines-p file selector)
      (load file nil t))))

(defun efrit-run--defines-p (file selector)
  "Return non-nil if SELECTOR, a regular expression, matches a test's name in FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (cl-loop while (re-search-forward "^(ert-deftest \\([^ ]+\\)" nil t)
             thereis (string-match-p selector (match-string 1)))))

(defun efrit-run--choose (selector)
  "Return each test to run that SELECTOR matches, the long ones first."
  (let ((soak (equal (getenv "EFRIT_SOAK") "1"))
        (tests (ert-select-tests selector t)))
    (seq-sort-by (lambda (test) (if (efrit-run--tagged-p test :long) 0 1))
                 #'<
                 (seq-filter (lambda (test) (eq soak (efrit-run--tagged-p test :soak)))
                             tests))))

(defun efrit-run--tagged-p (test tag)
  "Return t if TEST has TAG."
  (and (memq tag (ert-test-tags test)) t))

;;; Running

(defun efrit-run--all (chosen)
  "Run each test of CHOSEN that no other Emacs has taken; return these."
  (cl-loop for test in chosen
           when (efrit-share-take (symbol-name (ert-test-name test)))
           do (efrit-run--one test)
           and collect test))

(defun efrit-run--one (test)
  "Run TEST, and print how it ended."
  (let* ((before (left-look))
         (begun (float-time))
         (result (ert-run-test test))
         (seconds (- (float-time) begun))
         (left (left-behind before))
         (expected (and (not left) (ert-test-result-expected-p test result))))
    (push (cons (ert-test-name test) seconds) efrit-run--times)
    (unless expected
      (push test efrit-run--problems)
      (efrit-run--explain result)
      (dolist (thing left)
        (message "    it left behind: %s" thing)))
    (message "%9s  %s (%.2f s)"
             (if left "LEFT" (ert-string-for-test-result result expected))
             (ert-test-name test) seconds)))

(defun efrit-run--explain (result)
  "Print why a test failed, if RESULT is a failure."
  (when (and (ert-test-result-with-condition-p result)
             (not (ert-test-skipped-p result)))
    (efrit-run--print-backtrace (ert-test-result-with-condition-backtrace result))
    (pcase-dolist (`(,prefix . ,text) (ert-test-result-with-condition-infos result))
      (message "    %s%s" prefix text))
    (let ((print-escape-newlines t)
          (print-level 8)
          (print-length 50))
      (message "    %S" (ert-test-result-with-condition-condition result)))))

(defun efrit-run--print-backtrace (backtrace)
  "Print the frames of BACKTRACE that belong to the test, a line each."
  (cl-loop for line in (split-string (backtrace-to-string backtrace) "\n" t)
           until (string-prefix-p "  ert--run-test-internal" line)
           do (message "%s" (truncate-string-to-width line 160))))

;;; Reporting

(defun efrit-run--passed (ended)
  "Return each test of ENDED that passed; none that was skipped did."
  (seq-filter (lambda (test)
                (and (ert-test-passed-p (ert-test-most-recent-result test))
                     (not (memq test efrit-run--problems))))
              ended))

(defun efrit-run--note-passed (file ended)
  "Write to FILE the name of each test of ENDED that passed, a line each."
  (with-temp-file file
    (dolist (test (efrit-run--passed ended))
      (insert (symbol-name (ert-test-name test)) "\n"))))

(defun efrit-run--report (ended)
  "Print a summary of ENDED; its line that begins with \"Ran\" is as ERT has it."
  (let ((skipped (seq-filter (lambda (test)
                               (ert-test-skipped-p (ert-test-most-recent-result test)))
                             ended))
        (failed (length efrit-run--problems)))
    (message "\nThe slowest:")
    (pcase-dolist (`(,name . ,seconds)
                   (seq-take (sort (copy-sequence efrit-run--times)
                                   (lambda (one two) (> (cdr one) (cdr two))))
                             efrit-run--slowest))
      (message "%7.2f s  %s" seconds name))
    (message "\nRan %d tests, %d results as expected, %d unexpected%s"
             (length ended) (- (length ended) failed (length skipped)) failed
             (if skipped (format ", %d skipped" (length skipped)) ""))
    (dolist (test (append skipped efrit-run--problems))
      (message "%9s  %s" (if (memq test skipped) "skipped" "FAILED") (ert-test-name test)))))

(defun efrit-run--make-folder ()
  "Make a folder for all temporary files of this run, and return its name."
  (let ((folder (file-name-as-directory (make-temp-file "efrit-tests-" t))))
    (setenv "TMPDIR" (directory-file-name folder))
    (setq temporary-file-directory folder
          small-temporary-file-directory nil
          left-folder folder)))

(defun efrit-run ()
  "Run everything in a temporary home, print a summary, and exit."
  (let ((folder (efrit-run--make-folder))
        (home (make-temp-file "efrit-home-" t))
        (selector (or (getenv "EFRIT_TEST_SELECTOR") "")))
    (setq default-directory (expand-file-name default-directory))
    (setenv "HOME" home)
    (setenv "XDG_CONFIG_HOME" nil)
    ;; Each Emacs with a home of its own would compile the same files anew.
    (setenv "EMACS_INHIBIT_AUTOMATIC_NATIVE_COMPILATION" "1")
    (setq inhibit-automatic-native-compilation t
          ;; Else a quarter of the time goes into collecting garbage.
          gc-cons-threshold (* 64 1024 1024))
    ;; Each Emacs would compile a way to the replacement of each primitive.
    (let ((trampolines (if (boundp 'native-comp-enable-subr-trampolines)
                           'native-comp-enable-subr-trampolines
                         'comp-enable-subr-trampolines)))
      (set trampolines nil))
    (require 'support)
    (setq efrit-http-directory (expand-file-name "requests" home))
    (efrit-test-start-fork-server)
    (efrit-run--load selector)
    (efrit-test-await-fork-server)
    (let ((tests (efrit-run--all (efrit-run--choose selector))))
      (when-let* ((file (getenv "EFRIT_PASSED")))
        (efrit-run--note-passed file tests))
      (delete-directory folder t)
      (efrit-run--report tests)
      (kill-emacs (if efrit-run--problems 1 0)))))

(when noninteractive
  (efrit-run))

(provide 'run)
;;; run.el ends here
