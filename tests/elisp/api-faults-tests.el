;;; api-faults-tests.el --- Other servers' faults, in both APIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The scripted model answers as other servers do.  Whatever it answers, the
;; session can be used afterwards, and the person reads the server's own words.

;;; Code:

(require 'cl-lib)
(require 'looping)
(require 'efrit-run)

(defun api-faults-test--read (sent)
  "Return the paths that tools were to read by SENT, the record of a request."
  (mapcar (lambda (call) (gethash "path" call))
          (cl-loop for message across (gethash "messages" (gethash "body" sent))
                   append (append
                           (cl-loop for call across (gethash "tool_calls" message [])
                                    collect (efrit-json-parse
                                             (gethash "arguments" (gethash "function" call))))
                           (cl-loop for block across (api-faults-test--blocks message)
                                    when (equal "tool_use" (gethash "type" block))
                                    collect (gethash "input" block))))))

(defun api-faults-test--blocks (message)
  "Return the content of MESSAGE if that is a vector, or an empty vector."
  (let ((content (gethash "content" message)))
    (if (vectorp content) content [])))

(defconst api-faults-test--forms
  '("done = true" "done = false" "interleaved = true" "complete_input = true"
    "ids = [\"call_0\"]" "ids = [\"\"]" "no_ids = true" "comments = true"
    "index = \"none\"" "index = \"zero\"" "delay_ms = 10"
    "index = \"zero\"\ncomplete_input = true"
    "index = \"none\"\ncomplete_input = true\nids = [\"\"]\nstop_reason = \"end_turn\""
    "index = \"zero\"\ncomplete_input = true\nno_ids = true")
  "Forms of streams, members of a scripted reply.")

(ert-deftest efrit-api-takes-each-form-of-a-stream ()
  (loop-test-with-each-api api
    (loop-test-with
        (concat (mapconcat (lambda (form)
                             (format "
[[reply]]
text = \"I look.\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"read_file\", input = { path = \"README.md\" } } ]
%s
" form))
                           api-faults-test--forms "")
                "[[reply]]\ntext = \"Done.\"\n")
        loop
      (efrit-test-finish loop "Go.")
      (let ((sent (efrit-test-sent)))
        (should (string-suffix-p "I look.I look.Done." (loop-test--said)))
        (should (= (length sent) (1+ (length api-faults-test--forms))))
        (should (seq-every-p (apply-partially #'eql 200) (loop-test--statuses)))
        (should (equal (apply #'append (mapcar (lambda (_) '("a.txt" "README.md"))
                                               api-faults-test--forms))
                       (api-faults-test--read (car (last sent))))))
      (loop-test--goes-on loop))))

(ert-deftest efrit-api-ids-that-a-server-repeats-name-each-call-once ()
  (loop-test-with-each-api api
    (loop-test-with "
[[reply]]
repeat = 2
ids = [\"call_0\"]
tool = [ { name = \"read_file\", input = { path = \"{n}.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
      (efrit-test-write "1.txt" "first text\n")
      (efrit-test-write "2.txt" "second text\n")
      (efrit-test-finish loop "Go.")
      (let ((sent (efrit-test-sent-text)))
        (should (string-search "first text" sent))
        (should (string-search "second text" sent))))))

(ert-deftest efrit-api-that-reports-no-usage-leaves-it-unknown ()
  (loop-test-with-each-api api
    (dolist (usage '("none" "zero"))
      (loop-test-with (format "[[reply]]\nrepeat = 2\ntext = \"Yes.\"\nusage = \"%s\"\n" usage) loop
        (ert-info (usage)
          (efrit-test-finish loop "Go.")
          (should (equal 1 (plist-get (efrit-loop-usage loop) :unreported)))
          (should-not (plist-get (efrit-loop-usage loop) :dollars))
          (efrit-test-finish loop "Go on.")
          (should (equal 2 (plist-get (efrit-loop-usage loop) :unreported)))
          (should (= 1 (cl-count-if (lambda (event)
                                      (and (eq (car event) 'note)
                                           (string-search "does not report the usage" (cadr event))))
                                    loop-test--events))))))))

(ert-deftest efrit-api-with-an-event-of-ten-megabytes-is-read ()
  :tags '(:long)
  (loop-test-with-each-api api
    (loop-test-with "[[reply]]\ntext = \"Many words. \"\nbig_event = 10000000\n" loop
      (efrit-test-finish loop "Go.")
      (should (= 10000000 (length (loop-test--said))))
      (loop-test--goes-on loop))))

;;; Errors

(defun api-faults-test--problems (faults)
  "Return, for each API, the problems of a loop whose model has FAULTS, in order.
FAULTS are TOML.  The loop must be of use afterwards."
  (let ((efrit-claude-retries 0)
        (problems nil))
    (loop-test-with-each-api api
      (loop-test-with (concat (mapconcat (lambda (fault) (format "[[reply]]\n%s\n" fault)) faults "")
                              "[[reply]]\ntext = \"Now.\"\n")
          loop
        (efrit-do-say loop "Go.")
        (push (mapcar (lambda (fault)
                        (ert-info (fault)
                          (should (eq 'failed (efrit-test-rest loop))))
                        (prog1 (efrit-loop-problem loop)
                          (efrit-continue loop)))
                      faults)
              problems)
        (should (eq 'idle (efrit-test-rest loop)))
        (should (string-suffix-p "Now." (loop-test--said)))))
    (nreverse problems)))

(defun api-faults-test--problem (fault)
  "Return, for each API, the problem of a loop whose model has FAULT, TOML."
  (mapcar #'car (api-faults-test--problems (list fault))))

(defconst api-faults-test--errors
  '(("503: The model is loading"
     . "status = 503\nerror_body = '{\"error\": \"The model is loading\"}'")
    ("422: body.messages.0: field required; body.model: too short"
     . "status = 422\nerror_body = '{\"detail\": [{\"loc\": [\"body\", \"messages\", 0], \
\"msg\": \"field required\"}, {\"loc\": [\"body\", \"model\"], \"msg\": \"too short\"}]}'")
    ("500: It broke" . "status = 500\nerror_body = '{\"detail\": \"It broke\"}'")
    ("500: It broke" . "status = 500\nerror_body = '{\"message\": \"It broke\"}'")
    ("503: The model is overloaded."
     . "status = 503\nerror_body = '[{\"error\": {\"code\": 503, \
\"message\": \"The model is overloaded.\", \"status\": \"UNAVAILABLE\"}}]'")
    ("502: 502 Bad Gateway nginx & co"
     . "status = 502\ncontent_type = \"text/html\"\nerror_body = \"<html><head><title>\
502 Bad Gateway</title><style>p {}</style></head><body><h1>502 Bad Gateway</h1><hr>nginx &amp; co\
</body></html>\"")
    ("502: Gone: ask later"
     . "status = 502\ncontent_type = \"text/html\"\nerror_body = \"<!doctype html>\
<title>Gone</title><p>ask<script>x < 1</script> later\"")
    ("500: plain words" . "status = 500\nerror_body = \"plain\\n words\"")
    ("500: no reason was given" . "status = 500\nerror_body = \"\"")
    ("429: Provider returned error"
     . "status = 200\nerror_body = '{\"error\": {\"message\": \
\"Provider returned error\", \"code\": 429}}'")
    ("out of memory"
     . "text = \"So far\"\nerror_event = \"api_error\"\n\
error_body = '{\"error\": \"out of memory\"}'")
    ("out of memory"
     . "text = \"So far\"\nerror_event = \"api_error\"\n\
error_body = '{\"type\": \"error\", \"error\": {\"error\": {\"msg\": \"out of memory\"}}}'"))
  "Alist from problems as the person reads them to faults of the scripted model.")

(ert-deftest efrit-api-errors-of-any-form-are-shown-in-the-servers-words ()
  (dolist (problems (api-faults-test--problems (mapcar #'cdr api-faults-test--errors)))
    (should (equal (mapcar #'car api-faults-test--errors) problems))))

(ert-deftest efrit-api-an-error-shows-neither-keys-nor-hidden-characters ()
  (let ((efrit-claude-headers '(("Authorization" . "Bearer sk-very-secret"))))
    (dolist (problem (api-faults-test--problem
                      "status = 400\nerror_body = '{\"error\": \"The key sk-very-secret\\u202e is bad\"}'"))
      (should (equal "400: The key (the key)<U+202E> is bad" problem)))))

(ert-deftest efrit-api-an-error-shows-no-secret-of-any-header ()
  (pcase-dolist (`(,name . ,value) '(("authorization" . "bearer sk-very-secret")
                                     ("Proxy-Authorization" . "Basic sk-very-secret")
                                     ("cf-aig-authorization" . "Bearer sk-very-secret")
                                     ("Ocp-Apim-Subscription-Key" . "sk-very-secret")))
    (let ((efrit-claude-headers (list (cons "x-api-key" "another-key") (cons name value))))
      (dolist (problem (api-faults-test--problem
                        "status = 400\nerror_body = '{\"error\": \"sk-very-secret is bad\"}'"))
        (should (equal "400: (the key) is bad" problem))))))

(ert-deftest efrit-api-an-error-about-a-feature-is-answered-with-its-name ()
  (pcase-dolist (`(,said ,features ,advice)
                 '(("Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9." nil
                    "wants the feature `short-ids'")
                   ("Unexpected role 'user' after role 'tool'" nil "wants the feature `alternation'")
                   ("Missing `reasoning_content` field in the assistant message" nil
                    "wants the feature `reasoning-back'")
                   ("Missing `reasoning_content` field" (reasoning-back) nil)
                   ("Function call is missing a thought_signature" nil
                    "wants the feature `thought-signatures'")
                   ("body.stream_options: Extra inputs are not permitted" (usage)
                    "refuses the feature `usage'")
                   ("Unrecognized argument: image_url" nil nil)))
    (let ((message (plist-get (efrit-request--problem
                               (efrit-request--create :api (alist-get 'chat efrit-apis)
                                                      :features features)
                               400 nil said)
                              :message)))
      (if advice
          (should (string-search advice message))
        (should (equal (concat "400: " said) message))))))

(ert-deftest efrit-api-a-page-in-place-of-events-is-no-reply ()
  (dolist (problem (api-faults-test--problem
                    "status = 200\ncontent_type = \"text/html\"\nerror_body = \"<p>Log in, please</p>\""))
    (should (string-match-p "answered with no event stream: Log in, please" problem))))

(ert-deftest efrit-api-a-prompt-that-is-too-long-is-answered-with-advice-on-the-window ()
  (pcase-dolist (`(,status ,said ,window)
                 '((400 "prompt is too long: 210000 tokens > 200000 maximum" "200000")
                   (400 "This model's maximum context length is 8192 tokens. However, you requested 9000"
                        "8192")
                   (500 "request (9001 tokens) exceeds the available context size (4096 tokens), try"
                        "4096")
                   (400 "The input token count (1,200,000) exceeds the maximum number of tokens \
allowed (1,048,576)." "1048576")
                   (422 "Prompt contains 40000 tokens, too large for model with 32768 maximum \
context length" "32768")
                   (400 "the model is loaded with context length of only 2048 tokens" "2048")
                   (400 "This model's maximum prompt length is 131072 but the request has more" "131072")
                   (413 "Please reduce the length of the messages or completion." nil)))
    (let* ((request (efrit-request--create :api (alist-get 'chat efrit-apis)))
           (problem (efrit-request--problem request status nil said)))
      (should (equal (format "%d: %s  Set the model's window%s (M-x efrit-add-provider, or \
`efrit-endpoint-window'), or lower `efrit-budget-total-target'."
                             status said (if window (concat " to " window) ""))
                     (plist-get problem :message)))
      (should-not (plist-get problem :passing)))))

(ert-deftest efrit-api-a-window-that-is-smaller-than-thought-is-found-out ()
  (let ((efrit-test-model-options '("--window" "3000"))
        (efrit-claude-model "claude-haiku-4-5"))
    (loop-test-with-each-api api
      (loop-test-with "[[reply]]\ntext = \"Now.\"\n" loop
        (efrit-do-say loop "Go.")
        (should (eq 'failed (efrit-test-rest loop)))
        (should (string-match-p "Set the model's window to 3000" (efrit-loop-problem loop)))
        (should (equal '(400) (loop-test--statuses)))))))

(ert-deftest efrit-api-a-quota-that-is-used-up-is-not-asked-again ()
  (let ((efrit-test-api 'chat))
    (loop-test-with "
[[reply]]
status = 429
error_body = '{\"error\": {\"message\": \"You exceeded your quota\", \"code\": \"insufficient_quota\"}}'
[[reply]]
text = \"Now.\"
" loop
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (equal "429: You exceeded your quota" (efrit-loop-problem loop)))
      (should (equal '(429) (loop-test--statuses))))))

(ert-deftest efrit-api-at-404-suspects-an-address-that-does-not-end-like-the-apis ()
  (let ((chat (alist-get 'chat efrit-apis)))
    (pcase-dolist (`(,given . ,suggested)
                   '(("http://localhost:1" . "http://localhost:1/v1/chat/completions")
                     ("http://localhost:1/v1/" . "http://localhost:1/v1/chat/completions")
                     ("https://a.example/v1beta/openai"
                      . "https://a.example/v1beta/openai/chat/completions")))
      (should (string-search (format "does not end in /chat/completions: set `efrit-claude-url' to %s,"
                                     suggested)
                             (efrit-request--not-found-advice
                              (efrit-request--create :url given :api chat)))))
    (should (string-search "Is there a model m?"
                           (efrit-request--not-found-advice
                            (efrit-request--create :url "http://h/v1/chat/completions" :api chat
                                                   :model "m"))))))

;;; Redirects

(ert-deftest efrit-api-a-redirect-is-shown-and-not-followed ()
  (let* ((connected nil)
         (other (make-network-process :name "api-faults-test-other" :server t :host "127.0.0.1"
                                      :service t :noquery t :sentinel #'ignore
                                      :log (lambda (&rest _) (setq connected t))))
         (place (format "http://127.0.0.1:%s/v1/messages" (process-contact other :service)))
         (efrit-claude-headers '(("Authorization" . "Bearer sk-very-secret"))))
    (unwind-protect
        (progn
          (dolist (problem (api-faults-test--problem (format "redirect = \"%s\"" place)))
            (should (equal (format "307: redirects to %s; set `efrit-claude-url'" place) problem)))
          (accept-process-output nil 0.1)
          (should-not connected))
      (delete-process other))))

;;; Empty replies

(ert-deftest efrit-api-an-empty-reply-is-asked-about ()
  (loop-test-with-each-api api
    (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
empty = true
[[reply]]
text = \"Now.\"
" loop
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p "answered with nothing: try again" (efrit-loop-problem loop)))
      (efrit-retry loop)
      (should (eq 'idle (efrit-test-rest loop)))
      (should (equal "Now." (loop-test--said)))
      (loop-test--goes-on loop))))

(ert-deftest efrit-api-an-empty-reply-in-batch-ends-with-the-code-of-a-failure ()
  (let ((code nil)
        (printed ""))
    (loop-test-in-project
      (efrit-test-with-model "[[reply]]\nempty = true\n"
        (cl-letf (((symbol-function 'send-string-to-terminal)
                   (lambda (text &rest _) (setq printed (concat printed text))))
                  ((symbol-function 'kill-emacs) (lambda (given) (setq code given))))
          (let ((command-line-args-left '("--" "Look.")))
            (efrit-batch-do)))))
    (should (eql 1 code))
    (should (string-search "efrit: The model answered with nothing" printed))))

(ert-deftest efrit-api-a-reply-that-only-thinks-is-empty ()
  (loop-test-with-each-api api
    (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
thinking = \"Hm.\"
[[reply]]
text = \"Now.\"
" loop
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p "answered with nothing" (efrit-loop-problem loop)))
      (loop-test--goes-on loop))))

(provide 'api-faults-tests)
;;; api-faults-tests.el ends here
