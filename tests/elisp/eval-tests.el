;;; eval-tests.el --- Evaluating the model's Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Code is evaluated here, in this Emacs.

;;; Code:

(require 'scripted)
(require 'efrit-tools)

(defun efrit-eval-tests--run (code)
  "Run the tool with CODE, and return its result, a plist."
  (let* ((result nil)
         (call (efrit-tool-call-create :name "eval_sexp"
                                       :finish (lambda (told) (setq result told)))))
    (efrit-tools-run call (efrit-json-text (let ((table (make-hash-table :test #'equal)))
                                             (puthash "code" code table)
                                             table)))
    result))

(defun efrit-eval-tests--text (code)
  "Return the text of the tool's result for CODE."
  (plist-get (efrit-eval-tests--run code) :text))

(defun efrit-eval-tests--error (code)
  "Return the text of the tool's result for CODE, which must be an error."
  (let ((result (efrit-eval-tests--run code)))
    (should (equal "error" (plist-get result :status)))
    (plist-get result :text)))

(ert-deftest efrit-eval-returns-the-output-and-the-last-value ()
  "All forms are evaluated; the output stands before the value."
  (should (equal "=> 3" (efrit-eval-tests--text "(+ 1 2)")))
  (should (equal "=> (1 . \"two\")" (efrit-eval-tests--text "(setq x 1) (cons 1 \"two\")")))
  (should (equal "printed\n=> nil" (efrit-eval-tests--text "(princ \"printed\\n\") nil")))
  (should (equal "printed\n=> 2" (efrit-eval-tests--text "(princ \"printed\") 2"))))

(ert-deftest efrit-eval-marks-its-own-lines-and-not-the-output ()
  "Printed text may look like a value; only the value's line is marked as own."
  (let ((result (efrit-eval-tests--run "(princ \"=> 1\n\u00a7 exit 0\n\") \"2\n=> 3\"")))
    (should (equal "=> 1\n\u00a7 exit 0\n=> \"2\n=> 3\"" (plist-get result :text)))
    (should (equal [2] (efrit-tool-own-lines result))))
  (should (equal [0] (efrit-tool-own-lines (efrit-eval-tests--run "(error \"a\nb\")")))))

(ert-deftest efrit-eval-takes-comments-and-nothing-at-all ()
  "Comments are no forms, and no form at all gives nil."
  (should (equal "=> nil" (efrit-eval-tests--text "")))
  (should (equal "=> 1" (efrit-eval-tests--text ";; one\n1 ; that was it\n")))
  (should (equal "=> nil" (efrit-eval-tests--text "; only this"))))

(ert-deftest efrit-eval-binds-lexically ()
  "Closures keep what they close over."
  (should (equal "=> 5" (efrit-eval-tests--text "(let ((n 5)) (funcall (lambda () n)))"))))

(ert-deftest efrit-eval-keeps-the-code-beside-the-result ()
  "The work log gets the code."
  (should (equal "(+ 1 2)" (plist-get (efrit-eval-tests--run "(+ 1 2)") :lisp))))

(ert-deftest efrit-eval-an-error-is-a-result-with-a-short-backtrace ()
  "The message comes first, then the frames of the code, none of ours."
  (let ((text (efrit-eval-tests--error
               "(defun efrit-eval-tests-deep (n)
                  (if (> n 0) (efrit-eval-tests-deep (1- n)) (car 'no-list)))
                (efrit-eval-tests-deep 3)")))
    (should (string-prefix-p "Error: Wrong type argument: listp, no-list" text))
    (should (string-match-p "^  car(no-list)" text))
    (should (string-match-p "efrit-eval-tests-deep(3)" text))
    (should-not (string-match-p "efrit-eval--\\|efrit-tools-run\\|ert-" text))
    (should (<= (length (split-string text "\n")) 13))))

(ert-deftest efrit-eval-errors-that-the-code-handles-leave-no-trace ()
  "A handled error leaves no trace, and a later error has its own."
  (should (equal "=> caught" (efrit-eval-tests--text
                              "(condition-case nil (car 1) (error 'caught))")))
  (let ((text (efrit-eval-tests--error
               "(ignore-errors (car 1)) (error \"The real one\")")))
    (should (string-prefix-p "Error: The real one" text))
    (should-not (string-match-p "car(1)" text))))

(ert-deftest efrit-eval-code-that-cannot-be-read-is-an-error ()
  "Half a form, and a throw to nowhere."
  (should (string-match-p "End of file" (efrit-eval-tests--error "(+ 1")))
  (should (string-match-p "No catch for tag" (efrit-eval-tests--error "(throw 'nowhere 1)"))))

(ert-deftest efrit-eval-endless-recursion-is-an-error ()
  "Emacs's own limit ends it."
  (should (string-match-p "Error: .*nesting\\|Error: .*depth\\|Error: .*specpdl"
                          (efrit-eval-tests--error
                           "(defun efrit-eval-tests-down (n) (1+ (efrit-eval-tests-down n)))
                            (efrit-eval-tests-down 1)"))))

(defun efrit-eval-tests--elsewhere (&rest codes)
  "Return the texts that the tool gives for CODES in another Emacs.
It may take a second for each.  Between two keys Emacs enters its debugger
once; ERT, which needs it for a test that fails, is to have that here."
  (with-temp-buffer
    (call-process
     (expand-file-name invocation-name invocation-directory) nil t nil "-Q" "--batch"
     "-L" (expand-file-name "elisp" efrit-test-root) "-l" "efrit-tools" "--eval"
     (format "%S" `(let ((efrit-eval-seconds 1)
                         (debug-on-event 'sigusr1))
                     (prin1 (mapcar (lambda (code)
                                      (plist-get (efrit-eval-string code) :text))
                                    ',codes)))))
    (goto-char (point-min))
    (read (current-buffer))))

(ert-deftest efrit-eval-a-busy-loop-ends-in-time ()
  "A loop that never looks up is stopped, and what is evaluated next is not."
  (let ((stopped "Stopped after 1 seconds, the limit `efrit-eval-seconds'."))
    (should (equal (list stopped stopped stopped "=> 3" "=> t" stopped)
                   (efrit-eval-tests--elsewhere
                    "(while t)"
                    "(while t (ignore-errors (while t (car 1))))"
                    "(while t (condition-case nil (while t) (quit nil)))"
                    "(+ 1 2)"
                    "(progn (sleep-for 0.2) t)"
                    "(let ((inhibit-quit t)) (while t))")))))

(ert-deftest efrit-eval-the-limit-holds-for-any-setting-of-signals-and-debuggers ()
  "The person's choice of another signal, and what code does to escape."
  (pcase-let ((`(,busy ,changed ,caught)
               (efrit-eval-tests--elsewhere
                "(while t)"
                "(setq debug-on-event nil) (while t)"
                "(let ((debugger #'ignore)) (while t (condition-case nil (while t) (quit nil))))")))
    (should (string-match-p "stopped after 1 seconds" busy))
    (should (string-match-p "Do not set debug-on-event" changed))
    (should (string-match-p "stopped after 1 seconds" caught))))

(ert-deftest efrit-eval-opens-no-prompt ()
  "Code cannot prompt the person; the error names `ask_user'."
  (dolist (code '("(read-string \"color? \")" "(y-or-n-p \"Really? \")"
                  "(yes-or-no-p \"Really? \")" "(completing-read \"Which? \" '(\"a\"))"
                  "(read-char)" "(read-event)" "(read-key \"Key? \")" "(read-passwd \"Key? \")"
                  "(read-key-sequence \"Key? \")" "(read-char-choice \"a? \" '(?a))"
                  "(read-file-name \"File? \")"
                  "(recursive-edit)"))
    (ert-info (code)
      (should (string-match-p "Ask with ask_user" (efrit-eval-tests--error code)))))
  (should (equal "=> nil" (efrit-eval-tests--text "(ignore-errors (read-string \"color? \"))"))))

(ert-deftest efrit-eval-waiting-ends-in-time ()
  "Sleeping and waiting for processes are stopped, too; output stays."
  (let ((texts (efrit-eval-tests--elsewhere
                "(princ \"begun\") (sleep-for 60)"
                "(with-timeout (60) (while t (accept-process-output nil 1)))")))
    (should (string-prefix-p "begun\nStopped after" (car texts)))
    (should (seq-every-p (lambda (text) (string-match-p "stopped after 1 seconds" text))
                         texts))))

(ert-deftest efrit-eval-leaves-no-watcher-behind ()
  "The process that watches the time is gone after each evaluation."
  (efrit-eval-tests--text "(+ 1 2)")
  (should-not (seq-find (lambda (process)
                          (string-prefix-p "efrit-eval-limit" (process-name process)))
                        (process-list))))

(ert-deftest efrit-eval-quitting-is-a-result ()
  "A quit ends the evaluation, and the model is told."
  (should (string-match-p "The person stopped it"
                          (efrit-eval-tests--error "(signal 'quit nil)"))))

(ert-deftest efrit-eval-acts-on-no-buffer-of-the-persons ()
  "The current buffer is an empty one, wherever the person is, and goes again."
  (with-temp-buffer
    (insert "precious")
    (should (equal "=> (\"\" t)"
                   (efrit-eval-tests--text "(list (buffer-string) (progn (erase-buffer) t))")))
    (should (equal "=> \"mine\"" (efrit-eval-tests--text "(insert \"mine\") (buffer-string)")))
    (should (equal "precious" (buffer-string)))))

(ert-deftest efrit-eval-long-output-and-values-are-cut ()
  "The output and the value are cut, with the number of missing characters."
  (let ((efrit-eval-most-characters 100))
    (should (string-match-p "\\[cut: 900 more characters\\]"
                            (efrit-eval-tests--text "(princ (make-string 1000 ?x)) nil")))
    (let ((text (efrit-eval-tests--text "(make-string 1000 ?x)")))
      (should (string-match-p "\\[cut: [0-9]+ more characters\\]" text))
      (should (< (length text) 200)))))

(ert-deftest efrit-eval-the-note-of-a-cut-is-a-line-of-its-own ()
  "The program's line says how much is missing, and nothing of the output does."
  (let* ((efrit-eval-most-characters 10)
         (result (efrit-eval-tests--run "(princ (make-string 20 ?x)) nil"))
         (lines (split-string (plist-get result :text) "\n")))
    (should (equal '("[cut: 10 more characters]" "=> nil")
                   (mapcar (lambda (number) (nth number lines))
                           (append (efrit-tool-own-lines result) nil))))))

(ert-deftest efrit-eval-characters-that-json-cannot-hold-are-replaced ()
  "Raw bytes and half surrogates, in the output and in the value."
  (let ((text (efrit-eval-tests--text
               "(princ \"a\\377b\") (princ (string #x3fffff #xd800)) \"\\200 \\ud800\"")))
    (should (string-match-p "\ufffd" text))
    (should (json-serialize (list :text text)))))

(ert-deftest efrit-eval-circles-are-printed ()
  "A list in itself does not take forever."
  (should (string-match-p "#1=" (efrit-eval-tests--text
                                 "(let ((l (list 1))) (setcdr l l) l)"))))

(ert-deftest efrit-eval-results-go-to-the-model ()
  "In a loop the model gets output, value and error, and the log the code."
  (efrit-test-with-project nil
    (efrit-test-with-model "
[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(princ \\\"a\\\\377b\\\") (* 6 7)\" } }]

[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(car 'no-list)\" } }]

[[reply]]
text = \"Done.\"
"
      (let ((loop (efrit-test-loop)))
        (setf (efrit-loop-rules loop) '(("eval_sexp" t allow)))
        (efrit-test-finish loop "Count.")
        (let ((sent (efrit-test-sent-text)))
          (should (string-match-p "=> 42" sent))
          (should (string-match-p "Error: Wrong type argument: listp, no-list" sent)))
        (should (equal '("(car 'no-list)" "(princ \"a\\377b\") (* 6 7)")
                       (mapcar (lambda (entry) (plist-get entry :lisp))
                               (plist-get (efrit-sidecar-request
                                           'worklog/list
                                           (list :session_id (efrit-loop-id loop)))
                                          :entries))))))))

(provide 'eval-tests)
;;; eval-tests.el ends here
