;;; gptel-tests.el --- Tests of the tools in gptel  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A stub stands for gptel: it makes tools and calls them as gptel does.  The real one is
;; run by tests/emacs/test_gptel.py.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'scripted)
(require 'efrit-gptel)

(cl-defstruct (gptel-tool (:constructor gptel-test--tool)) name description args category
              function confirm async)

(defvar gptel-tools nil "The stub's tools.")
(defvar gptel-confirm-tool-calls 'auto "Whether the stub asks.")
(defvar gptel-directives nil "The stub's directives.")

(defun gptel-make-tool (&rest slots)
  "Return a tool of the stub with SLOTS."
  (apply #'gptel-test--tool slots))

(provide 'gptel)

(defvar gptel-test--asked nil
  "Names of the tools about whose calls the stub asked, the latest first.")

(defun gptel-test--call (name &rest given)
  "Call the tool NAME with GIVEN, a plist, as gptel does; return its text.
The person says yes to each question."
  (let* ((tool (seq-find (lambda (tool) (equal name (gptel-tool-name tool))) gptel-tools))
         (values (mapcar (lambda (argument)
                           (plist-get given (intern (concat ":" (plist-get argument :name)))))
                         (gptel-tool-args tool)))
         (text nil))
    (when (and gptel-confirm-tool-calls
               (or (eq gptel-confirm-tool-calls t)
                   (apply (gptel-tool-confirm tool) values)))
      (push name gptel-test--asked))
    (should (gptel-tool-async tool))
    (apply (gptel-tool-function tool) (lambda (result) (setq text result)) values)
    (should (efrit-test-wait-until (lambda () text)))
    text))

(defmacro gptel-test-with (files &rest body)
  "Run BODY in a buffer of gptel's in a project with FILES."
  (declare (indent 1) (debug (form body)))
  `(efrit-test-with-project ,files
     (let ((gptel-tools nil)
           (gptel-directives nil)
           (gptel-test--asked nil)
           (inhibit-message t))
       (efrit-gptel-setup)
       (with-temp-buffer
         (setq default-directory efrit-test-project
               header-line-format (list "Backend" " Ready" "Model"))
         ,@body))))

(ert-deftest efrit-gptel-tools-are-offered-in-gptels-form ()
  (gptel-test-with nil
    (let ((arguments (gptel-tool-args
                      (seq-find (lambda (tool) (equal "read_file" (gptel-tool-name tool)))
                                gptel-tools))))
      (should (member '(:name "path" :type string :description "") arguments))
      (should (member '(:name "max_tokens" :type integer :description "" :optional t)
                      arguments)))
    (should (equal '("recall_result")
                   (cl-loop for tool in gptel-tools
                            when (seq-find (lambda (argument)
                                             (equal "continuation_token"
                                                    (plist-get argument :name)))
                                           (gptel-tool-args tool))
                            collect (gptel-tool-name tool))))
    (should (alist-get 'efrit gptel-directives))
    (let ((count (length gptel-tools)))
      (efrit-gptel-setup)
      (should (= count (length gptel-tools))))
    (should-not (seq-intersection '("edit_file" "ask_user" "read_image")
                                  (mapcar #'gptel-tool-name gptel-tools)))))

(ert-deftest efrit-gptel-a-long-result-is-paged-and-recalled ()
  (gptel-test-with `(("long.txt" . ,(mapconcat (lambda (n) (format "line %d of many\n" n))
                                               (number-sequence 1 9000) "")))
    (let ((page (gptel-test--call "read_file" :path "long.txt")))
      (should (string-search "line 1 of many" page))
      (should (string-match "continuation_token[ =]\\([^ ,;]+\\)" page))
      (let ((next (gptel-test--call "recall_result"
                                    :continuation_token (match-string 1 page))))
        (should (string-search "of many" next))
        (should-not (string-search "line 1 of many" next)))
      (should (string-search "line 1 of many"
                             (gptel-test--call "recall_result" :handle "r1" :max_tokens 500))))
    (should-not gptel-test--asked)))

(ert-deftest efrit-gptel-each-buffer-has-a-session-and-its-gauge ()
  (gptel-test-with '(("a.txt" . "one\n"))
    (gptel-test--call "read_file" :path "a.txt")
    (let ((id (efrit-loop-id efrit-gptel--loop))
          (root default-directory))
      (gptel-test--call "read_file" :path "a.txt")
      (should (equal id (efrit-loop-id efrit-gptel--loop)))
      (should (equal '("Backend" " Ready" (:eval (efrit-gptel--gauge)) "Model")
                     header-line-format))
      (should (efrit-test-wait-until (lambda () (efrit-loop-budget efrit-gptel--loop))))
      (should (string-search "until it compacts" (efrit-gptel--gauge)))
      (let ((other (generate-new-buffer "other")))
        (with-current-buffer other
          (setq default-directory root)
          (gptel-test--call "read_file" :path "a.txt")
          (should-not (equal id (efrit-loop-id efrit-gptel--loop))))
        (kill-buffer other))
      (should (equal (list id) (efrit-supervisor-sessions)))
      (should-not (efrit-loops)))))

(ert-deftest efrit-gptel-asks-by-the-permissions ()
  (gptel-test-with nil
    (should (string-search "hello" (gptel-test--call "run_command" :command "echo hello")))
    (should (equal '("run_command") gptel-test--asked))
    (efrit-permissions-remember efrit-test-project '(command (exactly ("echo hello") "") allow))
    (gptel-test--call "run_command" :command "echo hello")
    (should (equal '("run_command") gptel-test--asked))
    (let ((efrit-permission-rules '(("run_command" t deny))))
      (with-temp-buffer
        (setq default-directory efrit-test-project)
        (should (string-search "a rule of the person denies"
                               (gptel-test--call "run_command" :command "touch made")))))
    (should (equal '("run_command") gptel-test--asked))
    (should-not (file-exists-p "made"))))

(ert-deftest efrit-gptel-what-needs-consent-does-not-run-where-gptel-never-asks ()
  (gptel-test-with nil
    (let ((gptel-confirm-tool-calls nil))
      (should (string-search "the person did not allow"
                             (gptel-test--call "run_command" :command "touch made")))
      (should-not (file-exists-p "made")))
    (let ((gptel-confirm-tool-calls t))
      (gptel-test--call "run_command" :command "touch made")
      (should (file-exists-p "made")))))

(ert-deftest efrit-gptel-the-sidecars-own-questions-are-asked ()
  (gptel-test-with '((".env" . "KEY=secret\n"))
    (let ((text (gptel-test--call "read_file" :path ".env")))
      (should (string-search "did not allow" text))
      (should-not (string-search "KEY=secret" text)))
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t))
              (noninteractive nil))
      (should (string-search "KEY=secret" (gptel-test--call "read_file" :path ".env"))))))

(ert-deftest efrit-gptel-tools-of-emacs-run-here-and-are-stored ()
  (gptel-test-with nil
    (should (string-search "=> 42" (gptel-test--call "eval_sexp" :code "(+ 40 2)")))
    (should (string-search "=> 42" (gptel-test--call "recall_result" :handle "r1")))
    (should (equal '("eval_sexp") gptel-test--asked))))

(ert-deftest efrit-gptel-unsaved-texts-are-read ()
  (gptel-test-with '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect (expand-file-name "a.txt" efrit-test-project))
      (insert "not saved\n"))
    (should (string-search "not saved" (gptel-test--call "read_file" :path "a.txt")))))

(ert-deftest efrit-gptel-results-are-evicted-when-the-budget-is-used-up ()
  (let ((efrit-budget-total-target 12000))
    (gptel-test-with `(("long.txt" . ,(mapconcat (lambda (n) (format "line %d of many\n" n))
                                                 (number-sequence 1 9000) "")))
      (should (cl-loop for n from 1 to 20
                       for text = (gptel-test--call "read_file" :path "long.txt"
                                                    :start_line (* n 50))
                       thereis (string-prefix-p efrit-gptel--evicted text)))
      (should (string-search "line 50 of many"
                             (gptel-test--call "recall_result" :handle "r1"))))))

(ert-deftest efrit-gptel-errors-reach-the-model-as-text ()
  (gptel-test-with nil
    (should (string-search "nosuch" (gptel-test--call "read_file" :path "nosuch.txt")))
    (with-temp-buffer
      (setq default-directory (file-name-as-directory (getenv "HOME")))
      (should (string-search "whole home folder" (gptel-test--call "project_files"))))))

;;; gptel-tests.el ends here
