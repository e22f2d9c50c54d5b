;;; order-tests.el --- In what order the tools of a reply run  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the model wrote first takes effect first, in a real loop.

;;; Code:

(require 'cl-lib)
(require 'looping)
(require 'efrit-run)

(defun order-test--results (loop)
  "Return the texts that the tools of the last reply of LOOP gave, in order."
  (mapcar (lambda (use) (plist-get (efrit-use-result use) :text)) (efrit-loop-run loop)))

(defun order-test--use (loop name)
  "Return the first use of the tool NAME in LOOP, or nil."
  (seq-find (lambda (use) (equal name (efrit-use-name use))) (efrit-loop-run loop)))

(ert-deftest efrit-order-a-command-sees-the-file-that-was-created-before-it ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"create_file\", input = { path = \"new.txt\", content = \"created\\n\" } },
         { name = \"run_command\", input = { command = \"cat new.txt; echo more >> new.txt\" } },
         { name = \"read_file\", input = { path = \"new.txt\" } },
         { name = \"edit_file\", input = { path = \"new.txt\", old_text = \"more\", new_text = \"less\" } },
         { name = \"run_command\", input = { command = \"cat new.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-finish loop "Go.")
    (pcase-let ((`(,_ ,first ,read ,_ ,last) (order-test--results loop)))
      (should (string-match-p "created" first))
      (should (string-match-p "more" read))
      (should (string-match-p "less" last)))))

(ert-deftest efrit-order-commands-run-one-after-the-other ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"sleep 0.3; echo one >> log\" } },
         { name = \"eval_sexp\", input = { code = '(write-region \"two\\n\" nil \"log\" t)' } },
         { name = \"run_command\", input = { command = \"echo three >> log\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-finish loop "Go.")
    (with-temp-buffer
      (insert-file-contents "log")
      (should (equal "one\ntwo\nthree\n" (buffer-string))))))

(ert-deftest efrit-order-a-pending-question-delays-later-calls ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"run_command\", input = { command = \"echo from the command > a.txt\" } },
         { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (setf (efrit-loop-rules loop) '(("run_command" t ask)))
    (efrit-do-say loop "Go.")
    (let ((asked (efrit-test-wait-until (lambda () (efrit-run-pending-use loop)))))
      (should (efrit-test-wait-until
               (lambda () (eq 'done (efrit-use-state (order-test--use loop "read_file"))))))
      (should (eq 'waiting (efrit-use-state (car (last (efrit-loop-run loop))))))
      (efrit-run-answer loop asked 'allow))
    (should (eq 'idle (efrit-test-rest loop)))
    (should (string-match-p "from the command" (car (last (order-test--results loop)))))))

(ert-deftest efrit-order-a-denied-call-delays-nothing ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"echo no > a.txt\" } },
         { name = \"run_command\", input = { command = \"cat a.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (setf (efrit-loop-rules loop) '(("run_command" "echo" deny)))
    (efrit-test-finish loop "Go.")
    (should (string-match-p "not allow" (car (order-test--results loop))))
    (should (string-match-p "one" (cadr (order-test--results loop))))))

(ert-deftest efrit-order-reads-run-side-by-side ()
  "A question to the person does not keep the sidecar from reading."
  (loop-test-with "
[[reply]]
tool = [ { name = \"ask_user\", input = { question = \"Which?\" } },
         { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"read_file\", input = { path = \"README.md\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-do-say loop "Go.")
    (should (efrit-test-wait-until
             (lambda () (equal '(running done done)
                               (mapcar #'efrit-use-state (efrit-loop-run loop))))))
    (pcase (seq-find (lambda (event) (eq (car event) 'question)) loop-test--events)
      (`(question ,call . ,_) (efrit-tool-finish call (efrit-tool-result "This."))))
    (should (eq 'idle (efrit-test-rest loop)))))

(ert-deftest efrit-order-the-list-of-tools-is-fetched-again-for-an-unknown-one ()
  "The list of the sidecar's tools is fetched again for an unknown one."
  (loop-test-with "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"echo run > a.txt\" } },
         { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (let ((efrit-run--tool-lists '((nil ("read_file" :policy "allow")))))
      (efrit-test-finish loop "Go.")
      (let ((use (order-test--use loop "run_command")))
        (should (eq 'ask (efrit-run-policy loop use)))
        (should (efrit-run--effects-p loop use))))
    (should (string-match-p "run" (cadr (order-test--results loop))))))

(provide 'order-tests)
;;; order-tests.el ends here
