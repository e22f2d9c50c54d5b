;;; chat-tests.el --- Tests of requests and events of both APIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'auth-source)
(require 'efrit-run)

(defun chat-test--reply (api &rest events)
  "Return the reply that EVENTS, JSON texts of API, make."
  (let ((reply (efrit-reply-create)))
    (dolist (event events)
      (funcall (efrit-api-event (alist-get api efrit-apis)) reply (efrit-json-parse event)))
    reply))

(defun chat-test--chunks (&rest deltas)
  "Return the reply that DELTAS, JSON texts of the parts of a chat's message, make."
  (let ((reply (apply #'chat-test--reply 'chat
                      (mapcar (lambda (delta)
                                (format "{\"choices\":[{\"index\":0,\"delta\":%s}]}" delta))
                              deltas))))
    (efrit-reply-finish reply)
    reply))

(defun chat-test--blocks (reply)
  "Return the blocks of REPLY as the sidecar gets them, a vector of hash tables."
  (efrit-json-parse (efrit-reply-content reply)))

(defun chat-test--uses (reply)
  "Return a list of the name and the JSON input of each tool use of REPLY."
  (mapcar (lambda (block) (list (efrit-block-name block) (efrit-block-text block)))
          (efrit-reply-tool-uses reply)))

;;; Events of chats

(ert-deftest efrit-chat-calls-that-come-in-turns-are-told-apart-by-their-index ()
  (let ((reply (chat-test--chunks
                "{\"role\":\"assistant\",\"content\":null}"
                "{\"tool_calls\":[{\"index\":0,\"id\":\"call_aaaaaaa\",\"type\":\"function\",\
\"function\":{\"name\":\"one\",\"arguments\":\"\"}},{\"index\":1,\"id\":\"call_bbbbbbb\",\
\"function\":{\"name\":\"two\",\"arguments\":\"{\\\"b\\\"\"}}]}"
                "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]}"
                "{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\":2}\"}}]}")))
    (should (equal '(("one" "{\"a\":1}") ("two" "{\"b\":2}")) (chat-test--uses reply)))
    (should (equal '("call_aaaaaaa" "call_bbbbbbb")
                   (mapcar #'efrit-block-id (efrit-reply-tool-uses reply))))))

(ert-deftest efrit-chat-a-name-that-every-piece-repeats-is-one-call ()
  (dolist (index '("" "\"index\":0,"))
    (let ((piece (lambda (arguments)
                   (format "{\"tool_calls\":[{%s\"function\":{\"name\":\"one\",\"arguments\":\"%s\"}}]}"
                           index arguments))))
      (should (equal '(("one" "{\"a\":{}}"))
                     (chat-test--uses (chat-test--chunks (funcall piece "{\\\"a\\\":")
                                                         (funcall piece "{}}")
                                                         (funcall piece "")))))
      (should (equal '(("one" "{\"a\":1}") ("one" "{}"))
                     (chat-test--uses (chat-test--chunks (funcall piece "{\\\"a\\\":1}")
                                                         (funcall piece "{}"))))))))

(ert-deftest efrit-chat-arguments-may-be-an-object-or-nothing ()
  (should (equal '(("one" "{\"a\":{\"b\":[]}}") ("two" "{}") ("unnamed" "{\"c\":1}"))
                 (chat-test--uses
                  (chat-test--chunks
                   "{\"tool_calls\":[{\"function\":{\"name\":\"one\",\"arguments\":{\"a\":{\"b\":[]}}}},\
{\"function\":{\"name\":\"two\",\"arguments\":null}}]}"
                   "{\"tool_calls\":[{\"index\":7,\"function\":{\"name\":\"\",\"arguments\":\"{\\\"c\\\":1}\"}}]}"
                   "{\"tool_calls\":[{\"index\":8,\"function\":{\"name\":\"\",\"arguments\":\"\"}}]}")))))

(ert-deftest efrit-chat-the-older-form-of-a-call-is-read ()
  (should (equal '(("one" "{\"a\":1}"))
                 (chat-test--uses
                  (chat-test--chunks
                   "{\"function_call\":{\"name\":\"one\",\"arguments\":\"\"}}"
                   "{\"function_call\":{\"arguments\":\"{\\\"a\\\":1}\"}}")))))

(ert-deftest efrit-chat-ids-and-names-become-such-as-every-api-takes-back ()
  (let* ((reply (chat-test--chunks
                 "{\"tool_calls\":[{\"index\":0,\"id\":\"call_0\",\"function\":{\"name\":\"functions.run:\"}},\
{\"index\":1,\"id\":\"functions.run:12\",\"function\":{\"name\":\" run\\n\"}},\
{\"index\":2,\"id\":\"call_long_enough\",\"function\":{\"name\":\"run\"}}]}"))
         (ids (mapcar #'efrit-block-id (efrit-reply-tool-uses reply))))
    (should (equal '("functions_run_" "run" "run") (mapcar #'car (chat-test--uses reply))))
    (should (seq-every-p (lambda (id) (string-match-p "\\`[A-Za-z0-9]\\{9\\}\\'" id)) (seq-take ids 2)))
    (should (equal "call_long_enough" (nth 2 ids)))))

(ert-deftest efrit-chat-what-has-to-come-back-goes-to-the-sidecar ()
  (dolist (field '("reasoning_content" "reasoning"))
    (let ((blocks (chat-test--blocks
                   (chat-test--chunks
                    (format "{\"%s\":\"I \",\"content\":\"\"}" field)
                    (format "{\"%s\":\"think.\"}" field)
                    "{\"content\":\"So: \"}" "{\"content\":\"yes.\"}"
                    "{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"one\",\"arguments\":\"{}\"},\
\"extra_content\":{\"google\":{\"thought_signature\":\"c2ln\"}}}]}"))))
      (should (equal '("thinking" "text" "tool_use")
                     (mapcar (lambda (block) (gethash "type" block)) blocks)))
      (should (equal (list "I think." field)
                     (mapcar (lambda (name) (gethash name (aref blocks 0))) '("thinking" "field"))))
      (should (equal "So: yes." (gethash "text" (aref blocks 1))))
      (should (equal "{\"google\":{\"thought_signature\":\"c2ln\"}}"
                     (efrit-json-text (gethash "extra_content" (aref blocks 2)))))
      (should (equal "{}" (gethash "input_json" (aref blocks 2)))))))

(ert-deftest efrit-chat-contents-may-come-in-parts ()
  (let ((reply (chat-test--chunks
                "{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"Hm.\"}]}]}"
                "{\"content\":[{\"type\":\"text\",\"text\":\"Yes.\"}]}"
                "{\"refusal\":null,\"content\":\" Really.\"}")))
    (should (equal '("Hm." "Yes. Really.")
                   (mapcar #'efrit-block-text (reverse (efrit-reply-blocks reply)))))))

(ert-deftest efrit-chat-each-finish-reason-has-its-stop-reason ()
  (pcase-dolist (`(,finish . ,stop) '(("stop" . "end_turn") ("tool_calls" . "tool_use")
                                      ("function_call" . "tool_use") ("length" . "max_tokens")
                                      ("content_filter" . "refusal") ("odd" . "odd")))
    (should (equal stop (efrit-reply-stop-reason
                         (chat-test--reply
                          'chat (format "{\"choices\":[{\"delta\":{},\"finish_reason\":\"%s\"}]}"
                                        finish)))))))

(ert-deftest efrit-chat-usage-is-counted-as-the-messages-api-does ()
  (pcase-dolist (`(,usage . ,counts)
                 '(("\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"total_tokens\":107,\
\"prompt_tokens_details\":{\"cached_tokens\":60}}" . (40 60 7))
                   ("\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"prompt_cache_hit_tokens\":64}"
                    . (36 64 7))
                   ("\"usage\":null,\"x_groq\":{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}"
                    . (10 0 2))
                   ("\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"total_tokens\":150}"
                    . (100 0 50))
                   ("\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}" . (nil nil nil))
                   ("\"usage\":{\"prompt_tokens\":\"many\"}" . (nil nil nil))))
    (let ((known (efrit-reply-counts
                  (chat-test--reply 'chat (format "{\"choices\":[],%s}" usage)))))
      (should (equal counts (mapcar (lambda (name) (gethash name known))
                                    '("input_tokens" "cache_read_input_tokens" "output_tokens")))))))

;;; Whole replies

(ert-deftest efrit-chat-a-whole-reply-is-read-in-both-apis ()
  (pcase-dolist (`(,api . ,object)
                 '((chat . "{\"id\":\"c\",\"object\":\"chat.completion\",\"error\":null,\
\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Yes.\",\
\"tool_calls\":[{\"id\":\"call_aaaaaaa\",\"function\":{\"name\":\"one\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\
\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}")
                   (messages . "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\
\"content\":[{\"type\":\"text\",\"text\":\"Yes.\"},{\"type\":\"tool_use\",\"id\":\"toolu_aaaaaa\",\
\"name\":\"one\",\"input\":{\"a\":1}}],\"stop_reason\":\"tool_use\",\
\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}")))
    (let ((reply (chat-test--reply api object)))
      (ert-info ((symbol-name api))
        (should (efrit-reply-over reply))
        (should (equal "tool_use" (efrit-reply-stop-reason reply)))
        (should (equal "Yes." (efrit-block-text (car (last (efrit-reply-blocks reply))))))
        (should (equal '(("one" "{\"a\":1}")) (chat-test--uses reply)))
        (should (equal 3 (efrit-reply-count reply "input_tokens")))))))

;;; Events of the Messages API

(ert-deftest efrit-chat-blocks-of-messages-are-told-apart-by-their-index ()
  (let ((reply (chat-test--reply
                'messages
                "{\"type\":\"ping\"}"
                "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9}}}"
                "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\
\"id\":\"toolu_aaaaaa\",\"name\":\"one\",\"input\":{}}}"
                "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\
\"name\":\"two\",\"input\":{\"whole\":true}}}"
                "{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\
\"id\":\"toolu_aaaaaa\",\"name\":\"three\",\"input\":{\"early\":1}}}"
                "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\
\"partial_json\":\"{\\\"c\\\":\"}}"
                "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\
\"partial_json\":\"{\\\"a\\\":1}\"}}"
                "{\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"input_json_delta\",\
\"partial_json\":\"lost\"}}"
                "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\
\"partial_json\":\"3}\"}}"
                "{\"type\":\"content_block_stop\",\"index\":0}"
                "{\"type\":\"something_new\"}"
                "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\
\"usage\":{\"input_tokens\":0,\"output_tokens\":4}}"
                "{\"type\":\"message_stop\"}")))
    (should (equal '(("one" "{\"a\":1}") ("two" "{\"whole\":true}") ("three" "{\"c\":3}"))
                   (chat-test--uses reply)))
    (should (= 3 (length (seq-uniq (mapcar #'efrit-block-id (efrit-reply-blocks reply))))))
    (should (equal '(9 4) (mapcar (lambda (name) (efrit-reply-count reply name))
                                  '("input_tokens" "output_tokens"))))))

;;; Requests

(defun chat-test--body (&rest parts)
  "Return the body of a chat request with PARTS, a hash table."
  (efrit-json-parse
   (apply #'concat
          (efrit-request--body
           (funcall (efrit-api-body (alist-get 'chat efrit-apis))
                    (append parts (list :system "[{\"role\":\"system\",\"content\":\"S\"}]"
                                        :tools "[]" :max-tokens 50
                                        :messages '("{\"role\":\"user\",\"content\":\"U\"}"))))))))

(ert-deftest efrit-chat-requests-have-what-the-features-say ()
  (let ((efrit-endpoint-api 'chat)
        (efrit-claude-effort "low")
        (efrit-claude-features nil))
    (let ((body (chat-test--body)))
      (should (equal '("max_tokens" "messages" "model" "stream")
                     (sort (hash-table-keys body) #'string<)))
      (should (equal '("S" "U") (mapcar (lambda (message) (gethash "content" message))
                                        (gethash "messages" body)))))
    (let* ((efrit-claude-features '(usage effort max-completion-tokens))
           (body (chat-test--body :system "[]" :tools "[{\"type\":\"function\"}]")))
      (should (equal "{\"include_usage\":true}" (efrit-json-text (gethash "stream_options" body))))
      (should (equal "low" (gethash "reasoning_effort" body)))
      (should (equal 50 (gethash "max_completion_tokens" body)))
      (should-not (gethash "max_tokens" body))
      (should (= 1 (length (gethash "tools" body))))
      (should (= 1 (length (gethash "messages" body)))))))

;;; What the sidecar is told

(defmacro chat-test-at (url api &rest body)
  "Run BODY with the endpoint URL, which speaks API; features are found by host."
  (declare (indent 2) (debug t))
  `(let ((efrit-claude-url ,url)
         (efrit-endpoint-api ,api)
         (efrit-claude-features 'auto))
     ,@body))

(ert-deftest efrit-chat-features-are-those-of-the-provider-with-this-address ()
  (let ((efrit-providers '(("mine" :url "https://api.groq.com/openai/v1/chat/completions" :api chat
                            :features (usage images))
                           ("here" :url "http://localhost:1234/v1/messages" :features (cache)))))
    (pcase-dolist (`(,url ,api . ,features)
                   '(("https://api.groq.com/v1/chat/completions" chat usage images)
                     ("https://api.mistral.ai/v1/chat/completions" chat
                      alternation short-ids images)
                     ("http://localhost:1234/v1/messages" messages cache)
                     ("http://localhost:1234/v1/chat/completions" chat usage)
                     ("http://localhost:11434/v1/chat/completions" chat usage images)
                     ("http://localhost:11434/v1/messages" messages)
                     ("https://unknown.example/v1/chat/completions" chat usage)
                     ("https://api.anthropic.com/v1/messages" messages
                      cache thinking effort task-budget binding diagnostics)))
      (chat-test-at url api
        (should (equal features (efrit-endpoint-features)))))))

(ert-deftest efrit-chat-the-sidecar-is-told-of-other-endpoints-alone ()
  (chat-test-at "https://api.anthropic.com/v1/messages" 'messages
    (should-not (efrit-endpoint-params)))
  (chat-test-at "http://localhost:8080/v1/messages" 'messages
    (let ((efrit-endpoint-provider "mine")
          (efrit-endpoint-window 8192)
          (efrit-endpoint-max-output 1024))
      (should (equal '(:provider "mine" :window 8192 :max_output 1024) (efrit-endpoint-params)))))
  (chat-test-at "https://api.openai.com/v1/chat/completions" 'chat
    (should (equal '(:api "chat" :features ["developer" "system-messages" "images"])
                   (efrit-endpoint-params)))))

(ert-deftest efrit-chat-what-an-endpoint-lacks-is-said-in-a-sentence ()
  (pcase-dolist (`(,url ,api ,note)
                 '(("https://api.openai.com/v1/chat/completions" chat nil)
                   ("https://api.mistral.ai/v1/chat/completions" chat
                    "api.mistral.ai gets plain messages: no effort, no report of its usage; \
`efrit-claude-features' says what it knows")
                   ("https://api.anthropic.com/v1/messages" messages nil)))
    (chat-test-at url api
      (should (equal note (efrit-endpoint-note))))))

;;; Keys

(defun chat-test--authorization (url variables)
  "Return the header with the key of a chat at URL where VARIABLES are set."
  (let ((process-environment (append variables process-environment))
        (auth-sources nil))
    (chat-test-at url 'chat
      (cdr (assoc "Authorization" (efrit-endpoint-headers))))))

(ert-deftest efrit-chat-a-key-of-the-environment-goes-to-its-providers-host-alone ()
  (let ((keys '("OPENAI_API_KEY=sk-openai" "GROQ_API_KEY=sk-groq" "ANTHROPIC_API_KEY=sk-claude"
                "MINE_KEY=sk-mine"))
        (efrit-providers '(("mine" :url "http://mine.example/v1/chat/completions" :api chat
                            :key "MINE_KEY")
                           ("sly" :url "https://sly.example/v1/chat/completions" :api chat
                            :key "ANTHROPIC_API_KEY"))))
    (should (equal "Bearer sk-openai"
                   (chat-test--authorization "https://api.openai.com/v1/chat/completions" keys)))
    (should (equal "Bearer sk-groq"
                   (chat-test--authorization "https://api.groq.com/openai/v1/chat/completions" keys)))
    (should (equal "Bearer sk-claude"
                   (chat-test--authorization "https://api.anthropic.com/v1/chat/completions" keys)))
    (should-not (chat-test--authorization "http://localhost:11434/v1/chat/completions" keys))
    (should-not (chat-test--authorization "https://api.openai.com.example/v1" keys))
    (should-error (chat-test--authorization "http://mine.example/v1/chat/completions" keys)
                  :type 'user-error)
    (should (string-match-p
             "sly.example.*or set ANTHROPIC_API_KEY"
             (cadr (should-error (chat-test--authorization "https://sly.example/v1" keys)
                                 :type 'efrit-no-key))))
    (should (string-match-p
             "There is no key for api.openai.com.*or set OPENAI_API_KEY"
             (cadr (should-error (chat-test--authorization
                                  "https://api.openai.com/v1/chat/completions"
                                  '("OPENAI_API_KEY=" "GROQ_API_KEY=sk-groq"))
                                 :type 'efrit-no-key))))))

;;; Sessions

(ert-deftest efrit-chat-a-session-has-the-real-names-of-its-tools ()
  (let ((reply (chat-test--chunks
                "{\"tool_calls\":[{\"id\":\"call_aaaaaaa\",\"function\":{\"name\":\"short_1\"}}]}")))
    (efrit-reply-take-inputs reply [(:tool_use_id "call_aaaaaaa" :input_json "{}")] [] []
                             ["a_long_name"])
    (should (equal '("a_long_name") (mapcar #'car (chat-test--uses reply))))))

(ert-deftest efrit-chat-thinking-comes-back-where-it-must ()
  (let ((efrit-test-api 'chat)
        (efrit-test-model-options '("--strict" "reasoning-back")))
    (loop-test-with "
[[reply]]
thinking = \"I should look.\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
thinking = \"That was all.\"
text = \"Done.\"
" loop
      (efrit-test-finish loop "Go.")
      (should (equal '(200 200) (loop-test--statuses)))
      (should (string-search "\"reasoning_content\":\"I should look.\""
                             (apply #'concat (efrit-loop-messages loop))))
      (loop-test--goes-on loop))))

(ert-deftest efrit-chat-a-strict-server-gets-what-its-features-say ()
  (pcase-dolist (`(,features . ,options)
                 '(((alternation short-ids) "alternation" "short-ids" "few-fields" "no-stream-options")
                   ((usage developer max-completion-tokens system-messages)
                    "developer" "max-completion-tokens")
                   ((usage thought-signatures) "thought-signatures")))
    (let ((efrit-test-api 'chat)
          (efrit-test-model-options (mapcan (lambda (option) (list "--strict" option)) options)))
      (loop-test-with "
[[reply]]
text = \"I look.\"
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } },
         { name = \"eval_sexp\", input = { code = \"1\" } } ]
[[reply]]
text = \"Done.\"
" loop
        (ert-info ((format "%s" options))
          (efrit-test-with-options loop ((efrit-claude-features features))
            (efrit-test-finish loop "Go.")
            (efrit-test-finish loop "And now?"))
          (should (seq-every-p (apply-partially #'eql 200) (loop-test--statuses))))))))

(ert-deftest efrit-chat-a-small-window-gets-few-tools-and-a-short-prompt ()
  (loop-test-with-each-api api
    (let ((efrit-test-model-options '("--window" "8192"))
          (efrit-endpoint-window 8192)
          (efrit-claude-model "claude-haiku-4-5"))
      (loop-test-with "[[reply]]\ntext = \"Yes.\"\n" loop
        (efrit-test-finish loop "Go.")
        (let* ((body (gethash "body" (car (efrit-test-sent))))
               (names (mapcar (lambda (tool)
                                (gethash "name" (gethash "function" tool tool)))
                              (gethash "tools" body))))
          (should (equal (sort (copy-sequence efrit-small-window-tools) #'string<)
                         (sort names #'string<)))
          (should (string-search "Your window is small" (efrit-test-sent-text)))
          (should (<= (plist-get (plist-get (plist-get (efrit-loop-budget loop) :tiers) :system)
                                 :used)
                      1800))
          (should (seq-some (lambda (event)
                              (and (eq (car event) 'begun)
                                   (string-search "8,192" (format "%s" event))))
                            loop-test--events)))))))

(provide 'chat-tests)
;;; chat-tests.el ends here
