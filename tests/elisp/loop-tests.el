;;; loop-tests.el --- Tests of the loop  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'efrit-run)
(require 'efrit-tools)

;;; What is said and done

(ert-deftest efrit-loop-streams-a-reply-and-ends-with-it ()
  (loop-test-with "closing = \"That is all.\"\n[[reply]]\ntext = \"Hello, größe “x” 😀.\"\n" loop
    (efrit-test-finish loop "Say hello.")
    (should (equal "Hello, größe “x” 😀." (loop-test--said)))
    (should (equal '(beginning waiting streaming ending idle) (loop-test--states)))))

(ert-deftest efrit-loop-runs-tools-of-both-sides-and-sends-their-results ()
  (loop-test-with "
[[reply]]
thinking = \"Let me look.\"
text = \"Looking.\"
tool = [
  { name = \"read_file\", input = { path = \"a.txt\" } },
  { name = \"eval_sexp\", input = { code = \"(+ 40 2)\" } },
  { name = \"file_info\", input = { paths = [\"README.md\"] } },
]
[[reply]]
expect_contains = \"§ => 42\"
text = \"Done.\"
" loop
    (efrit-test-finish loop "Look.")
    (should (equal '(200 200) (loop-test--statuses)))
    (should (string-match-p "two" (efrit-test-sent-text)))
    (should (equal '("read_file" "eval_sexp" "file_info")
                   (mapcar #'efrit-use-name (efrit-loop-run loop))))))

(ert-deftest efrit-loop-passes-a-tools-input-on-as-it-was-written ()
  (let ((input (concat "{\"a\":{},\"b\":[],\"c\":null,\"d\":false,\"e\":9223372036854775807,"
                       "\"f\":1.5,\"g\":\"é\\u0000 “x” 😀 \\\\\",\"h\":{\"i\":[{}]}}")))
    (loop-test-with (format "
[[reply]]
tool = [ { name = \"eval_sexp\", input_json = '''%s''' } ]
[[reply]]
text = \"Done.\"
" input) loop
      (efrit-test-finish loop "Go.")
      (let* ((body (gethash "body" (cadr (efrit-test-sent))))
             (use (aref (gethash "content" (aref (gethash "messages" body) 1)) 0)))
        (should (equal (efrit-json-text (efrit-json-parse input))
                       (efrit-json-text (gethash "input" use)))))
      (should (equal '(200 200) (loop-test--statuses))))))

(ert-deftest efrit-loop-sends-a-queued-message-with-the-next-turn ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
delay_ms = 50
[[reply]]
expect_contains = \"Also the README\"
text = \"Both.\"
" loop
    (efrit-do-say loop "Read a.txt.")
    (loop-test--wait-for loop 'streaming)
    (efrit-do-say loop "Also the README.")
    (should (eq 'idle (efrit-test-rest loop)))
    (should (equal "Both." (loop-test--said)))
    (should (= 2 (length (efrit-test-sent))))))

(ert-deftest efrit-loop-ends-when-the-model-says-that-it-is-done ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"session_complete\", input = { summary = \"All done.\" } } ]
" loop
    (efrit-test-finish loop "Do it.")
    (should (member '(complete "All done.") loop-test--events))
    (should (= 1 (length (efrit-test-sent))))
    (loop-test--goes-on loop)))

(ert-deftest efrit-loop-goes-on-with-a-message-sent-while-the-model-ended-the-task ()
  "Being done is over once the person has said more."
  (loop-test-with "
[[reply]]
tool = [ { name = \"session_complete\", input = { summary = \"All done.\" } } ]
delay_ms = 50
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
expect_contains = \"two\"
text = \"That, too.\"
" loop
    (efrit-do-say loop "Do it.")
    (loop-test--wait-for loop 'streaming)
    (efrit-do-say loop "And read a.txt.")
    (should (eq 'idle (efrit-test-rest loop)))
    (should (equal "That, too." (loop-test--said)))
    (should (= 3 (length (efrit-test-sent))))))

(ert-deftest efrit-loop-runs-tools-of-this-emacs-in-the-root-and-in-an-empty-buffer ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(list default-directory (buffer-string) (file-exists-p \\\"a.txt\\\"))\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (with-temp-buffer
      (insert "precious")
      (setq default-directory "/")
      (efrit-test-finish loop "Where are you?"))
    (should (string-match-p
             (regexp-quote (format "=> (\\\"%s\\\" \\\"\\\" t)" efrit-test-project))
             (efrit-test-sent-text)))))

(ert-deftest efrit-loop-never-takes-a-results-text-for-a-signal ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(error \\\"session_complete stop_reason error\\\")\" } } ]
[[reply]]
repeat = 12
tool = [ { name = \"eval_sexp\", input = { code = \"(car {n})\" } } ]
[[reply]]
text = \"Twelve errors later.\"
" loop
    (efrit-test-finish loop "Go on whatever happens.")
    (should (equal "Twelve errors later." (loop-test--said)))))

(ert-deftest efrit-loop-gives-each-reason-to-stop-its-state ()
  (dolist (row '(("refusal" . refused) ("max_tokens" . cut-short)
                 ("model_context_window_exceeded" . window-full)))
    (loop-test-with (format "[[reply]]\ntext = \"Well\"\nstop_reason = %S\n[[reply]]\ntext = \"Again.\"\n"
                            (car row))
        loop
      (efrit-do-say loop "Go.")
      (should (eq (cdr row) (efrit-test-rest loop)))
      (loop-test--goes-on loop))))

(ert-deftest efrit-loop-sends-a-paused-reply-back-to-go-on ()
  (loop-test-with "
[[reply]]
text = \"First half, \"
stop_reason = \"pause_turn\"
[[reply]]
text = \"second half.\"
" loop
    (efrit-test-finish loop "Go.")
    (should (equal "First half, second half." (loop-test--said)))))

(ert-deftest efrit-loop-asks-at-a-limit-and-continues-on-command ()
  (let ((efrit-max-turns 2))
    (loop-test-with "
[[reply]]
repeat = 3
tool = [ { name = \"eval_sexp\", input = { code = \"{n}\" } } ]
[[reply]]
text = \"Done.\"
" loop
      (efrit-do-say loop "Go.")
      (efrit-test-rest loop)
      (should (equal '(limited nil) (list (efrit-loop-state loop) (efrit-loop-problem loop))))
      (should (= 2 (length (efrit-test-sent))))
      (efrit-continue loop)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (equal "Done." (loop-test--said))))))

(ert-deftest efrit-loop-gives-the-person-their-own-threshold-for-garbage-back ()
  (loop-test-with "[[reply]]\ntext = \"One two three.\"\ndelay_ms = 50\n" loop
    (let ((gc-cons-threshold 1000000))
      (efrit-do-say loop "Go.")
      (should (= gc-cons-threshold efrit-garbage-threshold))
      (efrit-test-rest loop)
      (should (= gc-cons-threshold 1000000)))))

;;; Permissions

(ert-deftest efrit-loop-reports-a-denial-to-the-model ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(setq loop-test--evil t)\" } } ]
[[reply]]
expect_contains = \"did not allow\"
text = \"Then not.\"
" loop
    (efrit-test-with-rules loop '(("eval_sexp" t ask))
      (efrit-do-say loop "Go.")
      (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
      (efrit-run-answer loop (efrit-run-pending-use loop) 'deny)
      (should (eq 'idle (efrit-test-rest loop)))
      (should-not (boundp 'loop-test--evil))
      (should (equal "Then not." (loop-test--said))))))

(ert-deftest efrit-loop-asks-once-for-a-command-and-runs-it ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"echo made > made.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-with-rules loop nil
      (efrit-do-say loop "Go.")
      (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
      (should-not (file-exists-p (expand-file-name "made.txt" efrit-test-project)))
      (efrit-run-answer loop (efrit-run-pending-use loop) 'allow)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (file-exists-p (expand-file-name "made.txt" efrit-test-project)))
      (should (= 1 (cl-count 'ask loop-test--events :key #'car))))))

(ert-deftest efrit-loop-asks-the-sidecars-question-for-a-secret ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \".env\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-with-rules loop nil
      (efrit-test-write ".env" "KEY=xyzzy\n")
      (efrit-do-say loop "Go.")
      (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
      (should (string-match-p "\\.env" (efrit-use-question (efrit-run-pending-use loop))))
      (should-not (string-match-p "xyzzy" (efrit-test-sent-text)))
      (efrit-run-answer loop (efrit-run-pending-use loop) 'allow)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (string-match-p "xyzzy" (efrit-test-sent-text))))))

;;; The key

(ert-deftest efrit-loop-shows-the-key-to-nobody ()
  (loop-test-with "[[reply]]\ntext = \"One two three four.\"\ndelay_ms = 200\n" loop
    (let ((process-environment (cons "ANTHROPIC_API_KEY=sk-xyzzy-secret" process-environment))
          seen)
      (setf (alist-get 'efrit-claude-key-hosts (efrit-loop-options loop)) '("127.0.0.1"))
      (efrit-do-say loop "Go.")
      (loop-test--wait-for loop 'streaming)
      (dolist (pid (list-system-processes))
        (let ((arguments (alist-get 'args (process-attributes pid))))
          (when (and arguments (string-match-p "xyzzy" arguments))
            (push arguments seen))))
      (should (eq 'idle (efrit-test-rest loop)))
      (should-not seen)
      (should-not (string-match-p "xyzzy" (efrit-test-sent-text))))))

(ert-deftest efrit-loop-sends-the-vendors-key-to-no-other-host ()
  (let ((process-environment (cons "ANTHROPIC_API_KEY=sk-xyzzy-secret" process-environment))
        (efrit-claude-url "http://127.0.0.1:1/v1/messages"))
    (should-not (assoc "x-api-key" (efrit-endpoint-headers nil)))
    (let ((efrit-claude-url "https://api.anthropic.com/v1/messages"))
      (should (equal "sk-xyzzy-secret"
                     (cdr (assoc "x-api-key" (efrit-endpoint-headers nil))))))))

(provide 'loop-tests)
;;; loop-tests.el ends here
