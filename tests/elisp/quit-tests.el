;;; quit-tests.el --- Tests of quitting while a loop is at work  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A person may quit at any moment: while a command runs, while a timer or a
;; filter of the loop does, or while the loop itself asks for something.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'seq)

(defun quit-test--script (state)
  "Return a scenario with STATE in it, which then answers any message."
  (concat
   (pcase state
     ('retrying "[[reply]]\nstatus = 429\nretry_after = 0\n")
     ('failed "[[reply]]\nstatus = 401\n")
     ('refused "[[reply]]\ntext = \"No\"\nstop_reason = \"refusal\"\n")
     ('cut-short "[[reply]]\ntext = \"Well\"\nstop_reason = \"max_tokens\"\n")
     ('window-full
      "[[reply]]\ntext = \"Well\"\nstop_reason = \"model_context_window_exceeded\"\n")
     (_ ""))
   "
[[reply]]
thinking = \"I think.\"
text = \"One two three.\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"eval_sexp\", input = { code = \"(+ 1 2)\" } } ]
[[reply]]
text = \"Done.\"
[[reply]]
text = \"Yes.\"
"))

(defconst quit-test--states
  (seq-uniq (mapcar #'car efrit-loop-table))
  "All states there are.")

(defmacro quit-test--swallowing (&rest body)
  "Run BODY as a command loop would, which a quit ends.
Return its value, or `quit'."
  (declare (indent 0) (debug t))
  `(condition-case nil
       (prog1 (progn ,@body)
         (when quit-flag
           (setq quit-flag nil)))
     (quit 'quit)))

(defun quit-test--rest (loop)
  "Wait until LOOP rests, however often the waiting is quit."
  (let ((end (+ (float-time) 300)))
    (while (and (not (efrit-loop-resting-p loop)) (< (float-time) end))
      (quit-test--swallowing (accept-process-output nil 0.02)))
    (should (efrit-loop-resting-p loop))))

(defun quit-test--in-each-state (quit)
  "Check that the loop can be used when QUIT is called as it enters a state."
  (loop-test-in-project
    (dolist (state quit-test--states)
      (let ((efrit-max-turns (and (eq state 'limited) 1))
            (entered nil))
        (loop-test-play (quit-test--script state) loop
          (ert-info ((format "quit as it is %s" state))
            (efrit-loop-observe loop (lambda (_ event)
                                       (when (and (not entered) (equal (list 'state state)
                                                                       (seq-take event 2)))
                                         (setq entered t)
                                         (funcall quit))))
            (quit-test--swallowing (efrit-do-say loop "Go."))
            (quit-test--rest loop)
            (should entered)
            (setq efrit-max-turns nil)
            (quit-test--swallowing (efrit-continue loop))
            (quit-test--rest loop)
            (loop-test--goes-on loop)))))))

(ert-deftest efrit-quit-by-what-shows-a-loop-leaves-it-usable-in-every-state ()
  (quit-test--in-each-state (lambda () (signal 'quit nil))))

(ert-deftest efrit-quit-by-the-person-leaves-a-loop-usable-in-every-state ()
  (quit-test--in-each-state (lambda () (setq quit-flag t))))

;;; Processes that a quit could lose

(ert-deftest efrit-quit-while-a-curl-starts-leaves-it-known ()
  (let ((quit (lambda (process) (setq quit-flag t) process)))
    (unwind-protect
        (progn
          (advice-add 'make-process :filter-return quit)
          (quit-test--swallowing (efrit-http-warm)))
      (advice-remove 'make-process quit))
    (should (seq-find (lambda (process) (equal (process-name process) "efrit-curl"))
                      (process-list)))
    (efrit-http-cool)
    (should-not (seq-find (lambda (process) (equal (process-name process) "efrit-curl"))
                          (process-list)))))

;;; Where Emacs forgets the end of a process

(defun quit-test--wait-for-end (process)
  "Wait until PROCESS has ended, without reading its output."
  (let ((inhibit-quit t))
    (while (process-live-p process)
      (call-process "sleep" nil nil nil "0.05"))))

(ert-deftest efrit-quit-while-the-last-of-a-reply-is-read-does-not-keep-the-loop-waiting ()
  (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
    (let ((wait (lambda (_ process _) (quit-test--wait-for-end process))))
      (efrit-loop-observe loop (lambda (_ event)
                                 (when (equal '(state streaming) (seq-take event 2))
                                   (setq quit-flag t))))
      (unwind-protect
          (progn
            (advice-add 'efrit-http--send-config :after wait)
            (quit-test--swallowing (efrit-do-say loop "Go."))
            (quit-test--rest loop))
        (advice-remove 'efrit-http--send-config wait))
      (should (eq (efrit-loop-state loop) 'idle))
      (should (equal "Done." (loop-test--said))))))

(ert-deftest efrit-quit-while-the-last-of-a-process-is-read-leaves-its-end-known ()
  (let* ((default-directory temporary-file-directory)
         (read "")
         (read-at-end nil)
         (errors (generate-new-buffer " *quit-test*" t))
         (process (make-process
                   :name "quit-test" :command '("sh" "-c" "echo one; echo two")
                   :connection-type 'pipe :noquery t :stderr errors
                   :filter (lambda (_ output)
                             (setq read (concat read output)
                                   quit-flag t))
                   :sentinel #'ignore)))
    (efrit-process-watch process (lambda () (setq read-at-end read)))
    (quit-test--wait-for-end process)
    (should (efrit-test-wait-until
             (lambda () (quit-test--swallowing (accept-process-output nil 0.02)) read-at-end)))
    (should (equal "one\ntwo\n" read-at-end))
    (kill-buffer errors)))

(ert-deftest efrit-process-watch-loses-no-output-while-emacs-is-busy ()
  (let* ((output "")
         (read-at-end nil)
         (process (make-process :name "efrit-test" :command '("printf" "words")
                                :connection-type 'pipe :noquery t :sentinel #'ignore
                                :filter (lambda (_ text) (setq output (concat output text)))))
         (busy-until (+ (float-time) 2.5)))
    (efrit-process-watch process (lambda () (setq read-at-end (list output))))
    (while (< (float-time) busy-until))
    (should (efrit-test-wait-until (lambda () read-at-end)))
    (should (equal '("words") read-at-end))))

(ert-deftest efrit-quit-that-takes-the-end-of-the-sidecar-ends-its-calls-all-the-same ()
  "As where Emacs calls no sentinel because of a quit."
  (efrit-test-with-session session
    (let ((token (efrit-sidecar-request-async
                  'tools/call (efrit-test-use session "wait" (list :seconds 600)))))
      (set-process-sentinel (efrit-sidecar-process) #'ignore)
      (efrit-test-kill)
      (should (efrit-test-wait-until (lambda () (not (efrit-call-open-p token)))))
      (should-error (efrit-call-result token) :type 'efrit-sidecar-died))))

;;; In commands and tools

(ert-deftest efrit-quit-in-a-command-waits-until-the-loop-is-whole ()
  (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
    (let ((quit nil))
      (efrit-loop-observe loop (lambda (_ event)
                                 (when (eq (car event) 'queued) (setq quit-flag t))))
      (setq quit (quit-test--swallowing (efrit-do-say loop "Go.") nil))
      (should (memq quit '(quit nil)))
      (quit-test--rest loop)
      (should (eq (efrit-loop-state loop) 'idle))
      (should (equal "Done." (loop-test--said))))))

(ert-deftest efrit-quit-where-the-loop-asks-for-something-stops-it-and-it-goes-on-later ()
  "As where the passphrase of the file with the key is asked for."
  (dolist (place '(efrit-system-prompt efrit-tools-schemas))
    (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
      (ert-info ((symbol-name place))
        (cl-letf (((symbol-function place) (lambda (&rest _) (signal 'quit nil))))
          (quit-test--swallowing (efrit-do-say loop "Go."))
          (quit-test--rest loop)
          (should (eq (efrit-loop-state loop) 'failed))
          (should (equal (efrit-loop-problem loop) "Quit")))
        (efrit-continue loop)
        (should (eq (efrit-test-rest loop) 'idle))
        (should (equal "Done." (loop-test--said)))
        (loop-test--goes-on loop)))))

(ert-deftest efrit-quit-where-the-key-is-asked-for-stops-the-loop-and-it-goes-on-later ()
  (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
    (let ((quits (lambda (&rest _) (signal 'quit nil))))
      (unwind-protect
          (progn
            (advice-add 'auth-source-search :override quits)
            (quit-test--swallowing (efrit-do-say loop "Go."))
            (quit-test--rest loop))
        (advice-remove 'auth-source-search quits)))
    (should (eq (efrit-loop-state loop) 'failed))
    (efrit-continue loop)
    (should (eq (efrit-test-rest loop) 'idle))
    (should (equal "Done." (loop-test--said)))))

(ert-deftest efrit-quit-while-a-permission-is-answered-loses-no-answer ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(+ 1 2)\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-with-rules loop nil
      (efrit-do-say loop "Go.")
      (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
      (efrit-loop-observe loop (lambda (_ event)
                                 (when (eq (car event) 'use) (setq quit-flag t))))
      (quit-test--swallowing (efrit-run-answer loop (efrit-run-pending-use loop) 'allow))
      (quit-test--rest loop)
      (should (eq (efrit-loop-state loop) 'idle))
      (should (equal "Done." (loop-test--said))))))

(ert-deftest efrit-quit-in-an-evaluation-is-its-result-and-the-loop-goes-on ()
  "Tools run from timers, where Emacs binds `inhibit-quit'."
  (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(setq quit-flag t) (dotimes (_ 100) (+ 1 1))\" } },
         { name = \"eval_sexp\", input = { code = \"(+ 40 2)\" } } ]
[[reply]]
expect_contains = \"The person stopped it (quit).\"
text = \"Done.\"
" loop
    (quit-test--swallowing (efrit-do-say loop "Go."))
    (quit-test--rest loop)
    (should (eq (efrit-loop-state loop) 'idle))
    (should (equal "Done." (loop-test--said)))
    (should (string-match-p "=> 42" (efrit-test-sent-text)))
    (should-not inhibit-quit)
    (loop-test--goes-on loop)))

(ert-deftest efrit-quit-in-any-tool-of-this-emacs-leaves-the-loop-usable ()
  (dolist (row '(("session_complete" . "summary = \"x\"") ("todo_write" . "todos = []")
                 ("eval_sexp" . "code = \"1\"")))
    (let* ((name (car row))
           (tool (efrit-tool-get name))
           (function (efrit-tool-function tool)))
      (loop-test-with (format "
[[reply]]
tool = [ { name = \"%s\", input = { %s } } ]
[[reply]]
expect_contains = \"The person stopped it (quit).\"
text = \"Done.\"
" name (cdr row)) loop
        (ert-info (name)
          (cl-letf (((efrit-tool-function tool)
                     (lambda (arguments call)
                       (setq quit-flag t)
                       (eval '(progn nil) t)
                       (funcall function arguments call))))
            (quit-test--swallowing (efrit-do-say loop "Go."))
            (quit-test--rest loop))
          (should (eq (efrit-loop-state loop) 'idle))
          (loop-test--goes-on loop))))))

(provide 'quit-tests)
;;; quit-tests.el ends here
