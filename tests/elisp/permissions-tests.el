;;; permissions-tests.el --- What the model may do without asking  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The rules by themselves, across two Emacsen, and in a loop.

;;; Code:

(require 'scripted)
(require 'efrit-eval)
(require 'efrit-permissions)

(defmacro efrit-permissions-tests--with-file (&rest body)
  "Run BODY with an `efrit-permissions-file' of its own, not there yet."
  `(let* ((folder (make-temp-file "efrit-permissions-" t))
          (efrit-permissions-file (expand-file-name "permissions.eld" folder))
          (efrit-permission-rules nil))
     (unwind-protect
         (progn ,@body)
       (delete-directory folder t))))

(defun efrit-permissions-tests--decide (tool arguments &optional rules policy)
  "Decide about TOOL with ARGUMENTS in /src/one, by the session's RULES.
POLICY is the tool's own, by default `ask'."
  (efrit-permissions-decide tool arguments (or policy 'ask) "/src/one/" rules))

(ert-deftest efrit-permissions-without-rules-the-tools-policy-stands ()
  "Reads are allowed, evaluation is asked about."
  (efrit-permissions-tests--with-file
   (should (eq 'allow (efrit-permissions-tests--decide "read_file" "{}" nil 'allow)))
   (should (eq 'ask (efrit-permissions-tests--decide "eval_sexp" "{\"code\":\"1\"}")))
   (should (eq 'ask (efrit-tool-policy (efrit-tool-named "eval_sexp"))))))

(ert-deftest efrit-permissions-the-session-comes-before-the-project-before-the-option ()
  "The first rule that fits decides, in this order."
  (efrit-permissions-tests--with-file
   (let ((efrit-permission-rules '(("run" t deny))))
     (should (eq 'deny (efrit-permissions-tests--decide "run" "{}")))
     (efrit-permissions-remember "/src/one" '("run" t allow))
     (should (eq 'allow (efrit-permissions-tests--decide "run" "{}")))
     (should (eq 'ask (efrit-permissions-tests--decide "run" "{}" '(("run" t ask)))))
     (should (eq 'allow (efrit-permissions-tests--decide "run" "{}" '(("other" t ask))))))))

(ert-deftest efrit-permissions-a-pattern-is-matched-with-what-the-call-is-about ()
  "A command, code, a path or paths; case counts."
  (efrit-permissions-tests--with-file
   (let ((efrit-permission-rules '(("run" "\\`git " allow)
                                   (t "secret" deny)
                                   ("look" "a b\\'" allow))))
     (should (eq 'allow (efrit-permissions-tests--decide "run" "{\"command\":\"git log\"}")))
     (should (eq 'ask (efrit-permissions-tests--decide "run" "{\"command\":\"GIT log\"}")))
     (should (eq 'ask (efrit-permissions-tests--decide "run" "{\"command\":\"rm -r git \"}")))
     (should (eq 'deny (efrit-permissions-tests--decide "read" "{\"path\":\"secret.txt\"}")))
     (should (eq 'allow (efrit-permissions-tests--decide
                         "look" "{\"paths\":[\"a\",\"b\"]}")))
     (should (eq 'deny (efrit-permissions-tests--decide
                        "odd" "{\"other\":\"a secret\"}"))))))

(ert-deftest efrit-permissions-a-command-is-remembered-for-its-very-text ()
  "Agreement to one command is none to another; a reading tool is agreed to whole."
  (let ((rule (efrit-permissions-rule "run" "{\"command\":\"make (all)\"}" 'allow)))
    (efrit-permissions-tests--with-file
     (should (eq 'allow (efrit-permissions-tests--decide
                         "run" "{\"command\":\"make (all)\"}" (list rule))))
     (should (eq 'ask (efrit-permissions-tests--decide
                       "run" "{\"command\":\"make (all); rm -r .\"}" (list rule))))
     (should (eq 'ask (efrit-permissions-tests--decide
                       "run" "{\"command\":\"echo\\nmake (all)\"}" (list rule))))))
  (should (equal '("read_file" t allow)
                 (efrit-permissions-rule "read_file" "{\"path\":\"a\"}" 'allow))))

(ert-deftest efrit-permissions-of-a-project-outlive-emacs ()
  "Another Emacs decides by what this one remembered, for this project alone."
  (efrit-permissions-tests--with-file
   (efrit-permissions-remember "/src/one" '("run" "größe" deny))
   (with-temp-buffer
     (call-process
      (expand-file-name invocation-name invocation-directory) nil t nil "-Q" "--batch"
      "-L" (expand-file-name "elisp" efrit-test-root) "-l" "efrit-permissions" "--eval"
      (format "%S" `(let ((efrit-permissions-file ,efrit-permissions-file))
                      (princ (mapcar (lambda (root)
                                       (efrit-permissions-decide
                                        "run" "{\"command\":\"größe\"}" 'ask root nil))
                                     '("/src/one" "/src/one/" "/src/two"))))))
     (should (equal "(deny deny ask)" (buffer-string))))))

(ert-deftest efrit-permissions-of-a-project-can-be-forgotten ()
  "What is remembered again replaces what was; what is forgotten is gone."
  (efrit-permissions-tests--with-file
   (efrit-permissions-remember "/src/one" '("run" t allow))
   (efrit-permissions-remember "/src/one" '("run" t deny))
   (efrit-permissions-remember "/src/two" '("run" t allow))
   (should (eq 'deny (efrit-permissions-tests--decide "run" "{}")))
   (efrit-permissions-forget "/src/one")
   (should (eq 'ask (efrit-permissions-tests--decide "run" "{}")))
   (should (equal '(("run" t allow)) (efrit-permissions-of "/src/two")))))

(ert-deftest efrit-permissions-that-cannot-be-read-ask-and-are-kept ()
  "A damaged file or pattern never allows anything, and is not written over."
  (efrit-permissions-tests--with-file
   (let ((inhibit-message t))
     (with-temp-file efrit-permissions-file
       (insert "((\"/src/one\" (\"run\" t"))
     (should (eq 'ask (efrit-permissions-tests--decide "run" "{}" nil 'allow)))
     (should-error (efrit-permissions-remember "/src/one" '("run" t allow))
                   :type 'user-error)
     (delete-file efrit-permissions-file)
     (let ((efrit-permission-rules '(("run" "\\(" deny))))
       (should (eq 'ask (efrit-permissions-tests--decide "run" "{}" nil 'allow)))))))

;;; In a loop

(defconst efrit-permissions-tests--script "
[[reply]]
tool = [
  { name = \"eval_sexp\", input = { code = \"(list 'one (+ 40 2))\" } },
  { name = \"eval_sexp\", input = { code = \"(list 'two (+ 40 2))\" } },
]

[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(list 'one (+ 40 2))\" } }]

[[reply]]
text = \"Done.\"
"
  "A model that evaluates the same twice, and something else.")

(defun efrit-permissions-tests--answering (loop answers)
  "Answer the questions of LOOP by ANSWERS, in order: a decision and a scope each.
Return a function that gives how many questions there were."
  (let ((asked 0))
    (efrit-loop-observe
     loop
     (lambda (loop event)
       (when (eq (car event) 'ask)
         (cl-incf asked)
         (apply #'efrit-later #'efrit-run-answer loop (cadr event)
                (or (pop answers) '(deny))))))
    (lambda () asked)))

(ert-deftest efrit-permissions-once-is-once-and-a-no-is-told ()
  "Allowed once runs once; denied, the model is told that the person said no."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((allow) (deny) (allow)))))
        (efrit-test-finish loop "Count.")
        (should (= 3 (funcall asked)))
        (let ((sent (efrit-test-sent-text)))
          (should (string-match-p "=> (one 42)" sent))
          (should-not (string-match-p "=> (two 42)" sent))
          (should (string-match-p "The person did not allow this use of eval_sexp" sent)))))))

(ert-deftest efrit-permissions-for-the-project-hold-in-the-next-session ()
  "What was agreed to for the project is asked about neither now nor later."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((allow project) (deny)))))
        (efrit-test-finish loop "Count.")
        (should (= 2 (funcall asked)))))
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((deny session)))))
        (efrit-test-finish loop "Count.")
        (should (= 1 (funcall asked)))))))

(provide 'permissions-tests)
;;; permissions-tests.el ends here
