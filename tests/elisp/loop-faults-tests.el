;;; loop-faults-tests.el --- Tests of the loop when something goes wrong  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'efrit-run)
(require 'seq)

;;; Faults

(defun loop-test--fault (fault)
  "Check that a session survives FAULT, the TOML of one or more replies."
  (loop-test-with-each-api api
    (loop-test-with (concat fault "
[[reply]]
text = \"One two three four five six seven.\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \" Done.\"
") loop
      (efrit-test-finish loop "Go.")
      (should (equal "One two three four five six seven. Done." (loop-test--said)))
      (loop-test--goes-on loop))))

(ert-deftest efrit-loop-survives-too-many-requests ()
  (loop-test--fault "[[reply]]\nstatus = 429\nretry_after = 0\n"))

(ert-deftest efrit-loop-survives-an-overloaded-model-three-times ()
  (loop-test--fault "[[reply]]\nrepeat = 3\nstatus = 529\n"))

(ert-deftest efrit-loop-survives-a-stream-cut-in-a-word ()
  (loop-test--fault "[[reply]]\ntext = \"One two three\"\ncut = \"text\"\n"))

(ert-deftest efrit-loop-survives-a-stream-cut-in-a-tools-input ()
  (loop-test--fault "[[reply]]\ntext = \"One\"\ncut = \"tool_input\"
tool = [ { name = \"read_file\", input = { path = \"README.md\" } } ]\n"))

(defun loop-test--results ()
  "Return the texts of the tool results in the latest request, in order."
  (let ((messages (gethash "messages" (gethash "body" (car (last (efrit-test-sent)))))))
    (cl-loop for message across messages
             append (cl-loop for block across (gethash "content" message)
                             when (equal (gethash "type" block) "tool_result")
                             collect (gethash "text" (aref (gethash "content" block) 0))))))

(ert-deftest efrit-loop-reports-an-input-that-is-no-object-and-goes-on ()
  (dolist (written '("{\"path\": \"a.txt\", \"content\": \"abc" "[\"a.txt\"]" "\"a.txt\"" "nonsense"))
    (loop-test-with (format "
[[reply]]
text = \"I will.\"
tool = [ { name = \"create_file\", input_json = '''%s''' },
         { name = \"eval_sexp\", input_json = '''%s''' },
         { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \" Done.\"
" written written) loop
      (ert-info (written)
        (efrit-test-finish loop "Go.")
        (should (equal "I will. Done." (loop-test--said)))
        (pcase-let ((`(,first ,second ,third) (loop-test--results)))
          (dolist (text (list first second))
            (should (string-match-p "was not run: its input was cut off or cannot be read" text))
            (should (string-match-p (regexp-quote written) text)))
          (should (string-match-p "two" third)))
        (should (= 2 (cl-count "error" (efrit-loop-run loop) :test #'equal
                               :key (lambda (use) (plist-get (efrit-use-result use) :status)))))
        (loop-test--goes-on loop)))))

(ert-deftest efrit-loop-runs-the-complete-inputs-of-a-reply-that-was-cut ()
  (loop-test-with "
[[reply]]
text = \"I will.\"
stop_reason = \"max_tokens\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"create_file\", input_json = '{\"path\": \"b.txt\", \"content\": \"abc' } ]
[[reply]]
expect_contains = \"was cut off\"
text = \" Done.\"
" loop
    (efrit-test-finish loop "Go.")
    (should (equal "I will. Done." (loop-test--said)))
    (should-not (file-exists-p (expand-file-name "b.txt" efrit-test-project)))
    (loop-test--goes-on loop)))

(ert-deftest efrit-loop-asks-the-person-when-nothing-but-half-an-input-came ()
  (let ((efrit-claude-max-tokens 60))
    (loop-test-with (format "
[[reply]]
text = \"I will.\"
tool = [ { name = \"create_file\", input = { path = \"b.txt\", content = \"%s\" } } ]
[[reply]]
expect_contains = \"was cut off\"
text = \" Done.\"
" (apply #'concat (make-list 200 "many words "))) loop
      (efrit-do-say loop "Go.")
      (should (eq 'cut-short (efrit-test-rest loop)))
      (should (equal "I will." (loop-test--said)))
      (should (= 60 (plist-get (efrit-loop-usage loop) :output_tokens)))
      (efrit-continue loop)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (equal "I will. Done." (loop-test--said)))
      (should-not (memql 400 (loop-test--statuses)))
      (loop-test--goes-on loop))))

(ert-deftest efrit-loop-survives-a-malformed-event ()
  (loop-test--fault "[[reply]]\ntext = \"One two\"\nmalformed = true\n"))

(ert-deftest efrit-loop-survives-an-error-in-the-stream ()
  (loop-test--fault "[[reply]]\ntext = \"One two\"\nerror_event = \"overloaded_error\"\n"))

(ert-deftest efrit-loop-gives-up-on-what-does-not-pass-and-says-what-to-do ()
  (dolist (row '((401 . "key") (402 . "credit") (404 . "efrit-model")
                 (413 . "efrit-budget-total-target")))
    (loop-test-with (format "[[reply]]\nstatus = %d\n[[reply]]\ntext = \"Now.\"\n" (car row)) loop
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p (cdr row) (efrit-loop-problem loop)))
      (efrit-continue loop)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (equal "Now." (loop-test--said))))))

(ert-deftest efrit-loop-at-404-suspects-an-address-that-does-not-end-like-the-apis ()
  (loop-test-with "[[reply]]\ntext = \"Now.\"\n" loop
    (let ((url (efrit-loop-option loop 'efrit-claude-url)))
      (efrit-test-with-options loop ((efrit-claude-url (string-remove-suffix "/messages" url)))
        (efrit-do-say loop "Go.")
        (should (eq 'failed (efrit-test-rest loop)))
        (should (string-search "404" (efrit-loop-problem loop)))
        (should (string-search (format "set `efrit-claude-url' to %s, then M-x efrit-take-options" url)
                               (efrit-loop-problem loop)))
        (should-not (string-search "Is there a model" (efrit-loop-problem loop)))))
    (dolist (given '("http://localhost:1" "http://localhost:1/" "http://localhost:1/v1/"))
      (should (string-search "to http://localhost:1/v1/messages,"
                             (efrit-request--not-found-advice (efrit-request--create
                                                               :url given :api (alist-get (quote messages) efrit-apis))))))
    (efrit-continue loop)
    (should (eq 'idle (efrit-test-rest loop)))))

(ert-deftest efrit-loop-says-that-curl-is-missing ()
  (loop-test-with "[[reply]]\ntext = \"Now.\"\n" loop
    (let ((efrit-http-program "no-such-curl"))
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p "no-such-curl" (efrit-loop-problem loop))))
    (efrit-continue loop)
    (should (eq 'idle (efrit-test-rest loop)))))

(ert-deftest efrit-loop-survives-the-death-of-the-sidecar-during-a-tool ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"touch begun; sleep 1; echo x >> runs.txt\" } },
         { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-do-say loop "Go.")
    (should (efrit-test-wait-until
             (lambda () (seq-some (lambda (use) (and (equal (efrit-use-name use) "run_command")
                                                     (eq (efrit-use-state use) 'running)
                                                     (efrit-use-confirm use)))
                                  (efrit-loop-run loop)))))
    (should (efrit-test-wait-until (lambda () (file-exists-p "begun"))))
    (efrit-test-kill)
    (should (eq 'idle (efrit-test-rest loop)))
    (should (equal "Done." (loop-test--said)))
    (should (string-match-p "nobody saw it end" (efrit-test-sent-text)))
    (loop-test--goes-on loop)))

(ert-deftest efrit-loop-survives-the-death-of-the-sidecar-while-the-model-writes ()
  (loop-test-with "
[[reply]]
text = \"One two three four five six.\"
delay_ms = 40
" loop
    (efrit-do-say loop "Go.")
    (loop-test--wait-for loop 'streaming)
    (efrit-test-kill)
    (should (eq 'idle (efrit-test-rest loop)))
    (loop-test--goes-on loop)))

(ert-deftest efrit-loop-can-be-stopped-in-every-state-and-used-again ()
  :tags '(:long)
  (loop-test-in-project
    (dolist (state '(beginning waiting streaming retrying ending running))
      (loop-test-play (concat (if (eq state 'retrying) "[[reply]]\nstatus = 429\nretry_after = 60\n" "")
                              "
[[reply]]
thinking = \"I think.\"
text = \"One two three four five.\"
wait_ms = 300
delay_ms = 30
tool = [ { name = \"run_command\", input = { command = \"sleep "
                              (if (eq state 'running) "30" "0") "\" } } ]
")
          loop
        (ert-info ((format "stopped while %s" state))
          (let (stopped)
            (efrit-loop-observe loop (lambda (loop event)
                                       (when (and (not stopped) (equal (list 'state state)
                                                                       (seq-take event 2)))
                                         (setq stopped t)
                                         (efrit-stop loop))))
            (efrit-do-say loop "Go.")
            (should (efrit-test-wait-until (lambda () stopped))))
          (should (eq 'idle (efrit-test-rest loop)))
          (loop-test--goes-on loop))))))

(ert-deftest efrit-loop-that-waits-for-a-hung-sidecar-can-be-stopped-and-used-again ()
  (dolist (state '(beginning ending))
    (loop-test-with "[[reply]]\nrepeat = 2\ntext = \"One two.\"\n" loop
      (ert-info ((format "hung while %s" state))
        (let ((efrit-stop-patience 0.3)
              (hung nil))
          (efrit-loop-observe loop (lambda (_ event)
                                     (when (and (not hung) (equal (list 'state state)
                                                                  (seq-take event 2)))
                                       ;; A process that was stopped takes no
                                       ;; calls; one that hangs does.
                                       (setq hung (efrit-test-pid))
                                       (set-process-filter (efrit-sidecar-process)
                                                           #'ignore))))
          (efrit-do-say loop "Go.")
          (should (efrit-test-wait-until (lambda () hung)))
          (should (eq (efrit-loop-state loop) state))
          (efrit-stop loop)
          (should (efrit-test-wait-until
                   (lambda ()
                     (seq-some (lambda (event)
                                 (and (eq (car event) 'note)
                                      (string-match-p "efrit-sidecar-restart" (cadr event))))
                               loop-test--events))))
          (should (eq (efrit-loop-state loop) state))
          (efrit-sidecar-restart)
          (should (eq 'idle (efrit-test-rest loop)))
          (should (efrit-test-gone-p hung)))
        (efrit-continue loop)
        (should (eq 'idle (efrit-test-rest loop)))
        (should (equal "One two." (substring (loop-test--said) 0 8)))
        (loop-test--goes-on loop)))))

(defun loop-test--takes-results-of (bytes)
  "Give a loop two results of so many BYTES, and check that its turn ends."
  (loop-test-with (format "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"(make-string %d ?x)\" } },
         { name = \"run_command\", input = { command = \"head -c %d /dev/zero | tr '\\\\0' 'y'\" } } ]
[[reply]]
text = \"Large.\"
" bytes bytes)
      loop
    (let ((efrit-eval-most-characters 60000000))
      (efrit-do-say loop "Go.")
      (efrit-test-wait-until (lambda () (efrit-loop-resting-p loop)))
      (should (eq 'idle (efrit-loop-state loop)))
      (should (equal "Large." (loop-test--said)))
      (should (< (length (efrit-test-sent-text)) 1000000)))))

(ert-deftest efrit-loop-takes-a-result-of-five-megabytes ()
  (loop-test--takes-results-of 5000000))

(ert-deftest efrit-loop-takes-a-result-of-fifty-megabytes ()
  :tags '(:soak)
  (loop-test--takes-results-of 50000000))

(ert-deftest efrit-loop-keeps-two-sessions-in-two-projects-apart ()
  (loop-test-with "
[[reply]]
repeat = 5
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
delay_ms = 5
[[reply]]
text = \"Done.\"
" loop
    (let* ((other-root (file-name-as-directory (make-temp-file "efrit-other-" t)))
           (other (progn (with-temp-file (expand-file-name "a.txt" other-root)
                           (insert "the other one\n"))
                         (efrit-do-make-loop other-root))))
      (efrit-do-say loop "Go here.")
      (efrit-do-say other "Go there.")
      (should (eq 'idle (efrit-test-rest loop)))
      (should (eq 'idle (efrit-test-rest other)))
      (let ((ours (apply #'concat (efrit-loop-messages loop)))
            (theirs (apply #'concat (efrit-loop-messages other))))
        (should-not (string-match-p "the other one" ours))
        (should (string-match-p "the other one" theirs))
        (should-not (string-match-p "Go here" theirs)))
      (delete-directory other-root t))))

;;; Money

(defun loop-test--prompt-tokens (usage)
  "Return the tokens that went to the model by USAGE, a plist."
  (cl-loop for name in '(:input_tokens :cache_creation_input_tokens :cache_read_input_tokens)
           sum (or (plist-get usage name) 0)))

(defun loop-test--booked (loop)
  "Return the tokens that went to the model for LOOP, as the sidecar has it."
  (loop-test--prompt-tokens
   (plist-get (efrit-sidecar-request 'session/status (list :session_id (efrit-loop-id loop)))
              :usage)))

(defun loop-test--paid ()
  "Return the tokens of all requests to which the model began a reply."
  (cl-loop for request in (efrit-test-sent)
           for usage = (gethash "usage" request)
           when (hash-table-p usage)
           sum (cl-loop for name in '("input_tokens" "cache_creation_input_tokens"
                                      "cache_read_input_tokens")
                        sum (gethash name usage 0))))

(ert-deftest efrit-loop-records-the-cost-of-attempts-that-broke-off ()
  (loop-test-with "
[[reply]]
repeat = 2
text = \"One two three\"
cut = \"text\"
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-finish loop "Go.")
    (should (= 3 (length (efrit-test-sent))))
    (should (= (loop-test--paid) (loop-test--booked loop)))
    (should (= (loop-test--paid) (loop-test--prompt-tokens (efrit-loop-usage loop))))
    (loop-test--goes-on loop)
    (should (= (loop-test--paid) (loop-test--booked loop)))))

(ert-deftest efrit-loop-records-the-cost-of-a-request-that-was-given-up ()
  (dolist (how '(failed stopped))
    (loop-test-with "
[[reply]]
text = \"One two three\"
cut = \"text\"
[[reply]]
text = \"Done.\"
" loop
      (ert-info ((symbol-name how))
        (efrit-test-with-options loop ((efrit-claude-retries (if (eq how 'failed) 0 8))
                                       (efrit-claude-retry-delay 60))
          (efrit-do-say loop "Go.")
          (when (eq how 'stopped)
            (loop-test--wait-for loop 'retrying)
            (efrit-stop loop))
          (should (eq (if (eq how 'failed) 'failed 'idle) (efrit-test-rest loop))))
        (should (efrit-test-wait-until
                 (lambda () (= (loop-test--paid) (loop-test--booked loop)))))
        (should (< 0 (loop-test--paid)))
        (efrit-continue loop)
        (should (eq 'idle (efrit-test-rest loop)))
        (should (= (loop-test--paid) (loop-test--booked loop)))))))

(ert-deftest efrit-loop-asks-at-a-limit-of-dollars-before-the-next-request ()
  (let ((efrit-max-dollars 0.000001))
    (loop-test-with "
[[reply]]
tool = [ { name = \"eval_sexp\", input = { code = \"1\" } } ]
[[reply]]
text = \"Done.\"
" loop
      (efrit-do-say loop "Go.")
      (should (eq 'limited (efrit-test-rest loop)))
      (should (= 1 (length (efrit-test-sent))))
      (setq efrit-max-dollars 1000)
      (efrit-continue loop)
      (should (eq 'idle (efrit-test-rest loop))))))

(ert-deftest efrit-loop-says-once-that-without-a-price-tokens-count ()
  (let ((efrit-max-dollars 1)
        (efrit-claude-model "claude-haiku-5-5-latest"))
    (loop-test-with "
[[reply]]
repeat = 2
tool = [ { name = \"eval_sexp\", input = { code = \"1\" } } ]
[[reply]]
text = \"Done.\"
" loop
      (efrit-test-finish loop "Go.")
      (let ((notes (seq-filter (lambda (event) (eq (car event) 'note)) loop-test--events)))
        (should (= 1 (length notes)))
        (should (string-match-p "haiku-5-5-latest is not known.*efrit-max-dollars"
                                (cadr (car notes))))))))

(provide 'loop-faults-tests)
;;; loop-faults-tests.el ends here
