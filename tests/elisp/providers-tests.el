;;; providers-tests.el --- Providers, and servers of many kinds  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A little HTTP server plays each kind of server: it lists its models, says
;; what they can hold, and answers a small request, in the way of that kind.

;;; Code:

(require 'auth-source)
(require 'cl-lib)
(require 'viewing)
(require 'efrit-budget)
(require 'efrit-menu)
(require 'efrit-providers)
(require 'efrit-sessions)
(require 'efrit-setup)

;;; The servers

(defvar provider-test--requests nil
  "The requests that the server took, latest first: lists (LINE HEAD BODY).
LINE is the method and the path; BODY is a plist, or nil.")

(defun provider-test--listed (&rest models)
  "Return a list of MODELS, plists, as servers give it."
  (efrit-json-text (list :object "list" :data (vconcat models))))

(defun provider-test--stream (&rest events)
  "Return EVENTS, plists, as a stream."
  (concat (mapconcat (lambda (event) (format "data: %s\n\n" (efrit-json-text event))) events "")
          "data: [DONE]\n\n"))

(defun provider-test--refuse (words)
  "Return (400 . BODY), an error with WORDS."
  (cons 400 (efrit-json-text (list :error (list :message words)))))

(defconst provider-test--choice '(:choices [(:index 0 :delta (:content "pong"))])
  "An event of a chat.")

(defun provider-test--chat (request)
  "Return a reply of the Chat Completions API to REQUEST, a plist."
  (apply #'provider-test--stream provider-test--choice
         (and (plist-get request :stream_options)
              '((:choices [] :usage (:prompt_tokens 60 :completion_tokens 2))))))

(defun provider-test--message (_request)
  "Return a reply of the Messages API."
  (concat "event: message_start\n"
          (provider-test--stream
           '(:type "message_start" :message (:usage (:input_tokens 60)))
           '(:type "message_stop"))))

(defconst provider-test--kinds
  `((ollama
     ("GET /v1/models" ,(provider-test--listed '(:id "qwen3:8b") '(:id "tiny:1b")))
     ("GET /api/ps" "{\"models\":[{\"name\":\"qwen3:8b\",\"context_length\":8192}]}")
     ("POST /api/show" "{\"model_info\":{\"general.name\":\"x\",\"llama.context_length\":40960}}")
     ("POST /v1/chat/completions"
      ,(lambda (request)
         (if (and (equal "tiny:1b" (plist-get request :model)) (plist-get request :tools))
             (provider-test--refuse "registry/tiny:1b does not support tools")
           (provider-test--chat request)))))
    (llama
     ("GET /v1/models" ,(provider-test--listed '(:id "m.gguf" :meta (:n_ctx_train 131072))))
     ("GET /props" "{\"default_generation_settings\":{\"n_ctx\":16384}}")
     ("POST /v1/chat/completions" provider-test--chat))
    (studio
     ("GET /v1/models" ,(provider-test--listed '(:id "a/b")))
     ("GET /api/v0/models" ,(provider-test--listed
                             '(:id "a/b" :max_context_length 131072 :loaded_context_length 4096)))
     ("POST /v1/chat/completions" provider-test--chat)
     (t "{\"error\":\"Unexpected endpoint or method.\"}"))
    (vllm
     ("GET /v1/models" ,(provider-test--listed '(:id "Qwen/Qwen3" :max_model_len 32768)))
     ("POST /v1/chat/completions" provider-test--chat))
    (router
     ("GET /api/v1/models"
      ,(provider-test--listed '(:id "x/y" :context_length 200000
                                    :top_provider (:max_completion_tokens 64000))))
     ("POST /api/v1/chat/completions" provider-test--chat))
    (lite
     ("GET /v1/models" ,(provider-test--listed '(:id "house")))
     ("GET /model/info"
      "{\"data\":[{\"model_name\":\"house\",\"model_info\":{\"max_input_tokens\":128000,\
\"max_output_tokens\":4096}}]}")
     ("POST /v1/chat/completions"
      ,(lambda (request)
         (if (plist-get request :stream_options)
             (provider-test--refuse "Unknown field: stream_options")
           (provider-test--chat request)))))
    (strict
     ("GET /v1/models" ,(provider-test--listed '(:id "gpt-9" :context_window 400000)))
     ("POST /v1/chat/completions"
      ,(lambda (request)
         (if (plist-get request :max_tokens)
             (provider-test--refuse "Use 'max_completion_tokens' instead of 'max_tokens'.")
           (provider-test--chat request)))))
    (messages
     ("GET /v1/models" ,(provider-test--listed
                         '(:id "claude-x" :max_input_tokens 200000 :max_tokens 64000)))
     ("POST /v1/messages" provider-test--message))
    (plain
     ("POST /v1/chat/completions"
      ,(lambda (_) "{\"choices\":[{\"message\":{\"content\":\"pong\"}}]}")))
    (moved (t ,(lambda (_) '(302 . ""))))
    (silent
     ("GET /v1/models" ,(provider-test--listed '(:id "m")))
     (t ,(lambda (_) '(500 . "<html><h1>It broke</h1> in the\nkitchen</html>")))))
  "The servers: alists from the lines of requests to their answers.
An answer is a body, or a function from a request, a plist, to a body, or to a
status and a body; that of t is for all other requests.")

(defun provider-test--answer (routes key line head body)
  "Return (STATUS . TEXT), the answer by ROUTES to the request LINE with BODY.
If KEY is non-nil, HEAD must have it."
  (let ((answer (cadr (or (assoc line routes) (assq t routes)))))
    (cond ((and key (not (string-search (concat " " key "\r\n") head)))
           (cons 401 (format "{\"error\":\"Invalid API key%s\"}"
                             (if (string-match "^authorization: Bearer\\( .*\\)\r$" head)
                                 (match-string 1 head)
                               ""))))
          ((null answer) (cons 404 "{\"detail\":\"Not Found\"}"))
          ((stringp answer) (cons 200 answer))
          (t (let ((given (funcall answer body)))
               (if (consp given) given (cons 200 given)))))))

(defun provider-test--take (client data routes key)
  "Answer CLIENT by ROUTES once DATA ends its request; KEY is as above."
  (let ((got (concat (process-get client 'got) data)))
    (process-put client 'got got)
    (when-let* ((end (string-search "\r\n\r\n" got))
                (head (substring got 0 (+ end 2)))
                (body (substring got (+ end 4)))
                ((>= (length body)
                     (if (string-match "content-length: *\\([0-9]+\\)" (downcase head))
                         (string-to-number (match-string 1 (downcase head)))
                       0))))
      (let* ((line (and (string-match "\\`\\(.*\\) HTTP" head) (match-string 1 head)))
             (given (and (not (string-empty-p body))
                         (efrit-json-plist (decode-coding-string body 'utf-8)))))
        (push (list line head given) provider-test--requests)
        (pcase-let ((`(,status . ,text) (provider-test--answer routes key line head given)))
          (ignore-errors
            (process-send-string
             client (format "HTTP/1.1 %d X\r\nConnection: close\r\n%s\r\n%s" status
                            (if (eql status 302) "Location: https://other.example/v1\r\n" "")
                            (encode-coding-string text 'utf-8)))))
        (delete-process client)))))

(defun provider-test--with-server (kind key body)
  "Call BODY with the host and the port of a server of KIND, which wants KEY."
  (let* ((provider-test--requests nil)
         (efrit-providers nil)
         (routes (alist-get kind provider-test--kinds))
         (server (make-network-process
                  :name "provider-test" :server t :host "127.0.0.1" :service t
                  :coding 'binary :noquery t :sentinel #'ignore
                  :filter (lambda (client data)
                            (provider-test--take client data routes key)))))
    (unwind-protect
        (funcall body (format "127.0.0.1:%s" (process-contact server :service)))
      (delete-process server))))

(defmacro provider-test-with-server (kind address &rest body)
  "Run BODY with ADDRESS bound to the host and the port of a server of KIND.
KIND is a symbol, or a list of a symbol and a key."
  (declare (indent 2) (debug (sexp symbolp body)))
  `(provider-test--with-server ',(if (consp kind) (car kind) kind)
                               ,(if (consp kind) (cadr kind))
                               (lambda (,address) ,@body)))

(defun provider-test--find (address model)
  "Look at, try and measure MODEL of the server at ADDRESS; return the finding."
  (let ((found (efrit-provider-look address)))
    (efrit-provider-try found model)
    (efrit-provider-measure found model)
    found))

(defun provider-test--sizes (found model)
  "Return the window and the longest reply of MODEL in FOUND."
  (let ((sizes (cdr (assoc model (efrit-found-models found)))))
    (list (plist-get sizes :window) (plist-get sizes :max-output))))

;;; What servers can do

(ert-deftest efrit-provider-finds-api-window-and-features-of-each-kind-of-server ()
  (pcase-dolist (`(,kind ,path ,model ,api ,features ,sizes ,program)
                 '((ollama "" "qwen3:8b" chat (usage) (8192 nil) "Ollama")
                   (ollama "" "tiny:1b" chat (usage) (40960 nil) "Ollama")
                   (llama "" "m.gguf" chat (usage) (16384 nil) "llama.cpp")
                   (studio "" "a/b" chat (usage) (4096 nil) "LM Studio")
                   (vllm "" "Qwen/Qwen3" chat (usage) (32768 nil) nil)
                   (router "/api/v1" "x/y" chat (usage) (200000 64000) nil)
                   (lite "" "house" chat nil (128000 4096) "LiteLLM")
                   (strict "" "gpt-9" chat (max-completion-tokens usage) (400000 nil) nil)
                   (messages "" "claude-x" messages nil (200000 64000) nil)
                   (plain "/v1" "any" chat (usage) (nil nil) nil)))
    (ert-info ((format "%s %s" kind model))
      (provider-test--with-server
       kind nil
       (lambda (address)
         (let ((found (provider-test--find (concat address path) model)))
           (should (eq api (efrit-found-api found)))
           (should (equal (concat "http://" address (if (equal path "") "/v1" path)
                                  (if (eq api 'chat) "/chat/completions" "/messages"))
                          (efrit-found-url found)))
           (should (equal features (efrit-found-features found)))
           (should (equal sizes (provider-test--sizes found model)))
           (should (equal program (efrit-found-kind found)))
           (should (eq (not (eq kind 'plain)) (efrit-found-streaming found)))
           (should (eq (not (equal model "tiny:1b")) (efrit-found-tools found)))
           (should (eq (not (memq kind '(plain lite)))
                       (and (efrit-found-usage found) t)))))))))

(ert-deftest efrit-provider-says-why-a-server-takes-no-tools ()
  (provider-test-with-server ollama address
    (should (string-match-p "400: .*tiny:1b does not support tools"
                            (efrit-found-no-tools (provider-test--find address "tiny:1b"))))))

(ert-deftest efrit-provider-takes-an-address-in-any-form ()
  (provider-test-with-server vllm address
    (dolist (form '("%s" "http://%s" "http://%s/" "http://%s/v1" "http://%s/v1/models"
                    "http://%s/v1/chat/completions" "http://%s/v1/messages" " %s/v1/ "))
      (ert-info (form)
        (let ((found (efrit-provider-look (format form address))))
          (should (equal (format "http://%s/v1" address) (efrit-found-base found)))
          (should (assoc "Qwen/Qwen3" (efrit-found-models found))))))))

(ert-deftest efrit-provider-asks-a-host-of-its-own-by-https-alone ()
  (should (equal '(("https://api.example.com/v1" "https://api.example.com"))
                 (efrit-provider--bases "api.example.com")))
  (should (equal '(("http://box:8000/v1" "http://box:8000")
                   ("https://box:8000/v1" "https://box:8000"))
                 (efrit-provider--bases "box:8000")))
  (should (equal "https://api.deepseek.com" (caar (efrit-provider--bases "api.deepseek.com"))))
  (should (equal "https://openrouter.ai/api/v1"
                 (caar (efrit-provider--bases "https://openrouter.ai")))))

(ert-deftest efrit-provider-says-what-a-server-said-and-what-to-do ()
  (provider-test-with-server silent address
    (let ((err (should-error (provider-test--find address "m") :type 'user-error)))
      (should (string-match-p "It said 500: It broke in the kitchen\\.  See the server's log"
                              (cadr err)))))
  (provider-test-with-server vllm address
    (let ((err (should-error (provider-test--find (concat address "/nothing") "m")
                             :type 'user-error)))
      (should (string-match-p "404: Not Found\\.  Check the address, or choose another model"
                              (cadr err)))))
  (let ((err (should-error (efrit-provider-look "127.0.0.1:1") :type 'user-error)))
    (should (string-match-p "No server answers at 127.0.0.1:1 (.*): start it" (cadr err)))))

(ert-deftest efrit-provider-follows-no-address-that-a-server-names ()
  (provider-test-with-server moved address
    (let ((err (should-error (efrit-provider-look address) :type 'user-error)))
      (should (string-match-p "leads to https://other.example/v1: give that address" (cadr err))))
    (should (= 1 (length provider-test--requests)))))

(ert-deftest efrit-provider-reads-hostile-lists-of-models ()
  (dolist (body '("" "[]" "1" "null" "\"x\"" "{" "{\"data\":1}" "{\"data\":[1,null,\"x\",[],{}]}"
                  "{\"data\":[{\"id\":{}}]}"))
    (ert-info (body)
      (should-not (efrit-provider-listed body))))
  (should (equal '(("a") ("b" :window 4096))
                 (efrit-provider-listed "[{\"id\":\"models/a\",\"context_length\":\"x\"},\
{\"id\":\"hidden\\u202e\"},{\"id\":\"\"},{\"name\":\"b\",\"max_model_len\":4096,\"context_length\":99}]"))))

;;; Keys

(defmacro provider-test-with-keys (file &rest body)
  "Run BODY with FILE bound to an empty file of keys, the only one."
  (declare (indent 1) (debug (symbolp body)))
  `(let* ((,file (make-temp-file "efrit-keys-"))
          (auth-sources (list ,file))
          (auth-source-do-cache t))
     (auth-source-forget-all-cached)
     (unwind-protect (progn ,@body)
       (when-let* ((buffer (get-file-buffer ,file)))
         (with-current-buffer buffer (set-buffer-modified-p nil))
         (kill-buffer buffer))
       (auth-source-forget-all-cached)
       (delete-file ,file))))

(defmacro provider-test-answering (answers &rest body)
  "Run BODY; the questions that it asks get ANSWERS, in order."
  (declare (indent 1) (debug t))
  `(let ((provider-test--answers ,answers)
         (user-init-file nil)
         (custom-file nil))
     (cl-letf (((symbol-function 'completing-read) #'provider-test--next-answer)
               ((symbol-function 'read-string) #'provider-test--next-answer)
               ((symbol-function 'y-or-n-p) #'provider-test--next-answer))
       ,@body
       (should-not provider-test--answers))))

(defvar provider-test--answers nil
  "The answers to the next questions, in order.")

(defun provider-test--next-answer (prompt &rest _)
  "Return the next answer, to PROMPT."
  (ert-info (prompt)
    (should provider-test--answers)
    (pop provider-test--answers)))

(defmacro provider-test-with-defaults (&rest body)
  "Run BODY, and restore the defaults of the options of a loop."
  (declare (indent 0) (debug (body)))
  `(let ((options (mapcar (lambda (option) (cons option (default-value option)))
                          efrit-loop-own-options)))
     (unwind-protect (save-window-excursion ,@body)
       (pcase-dolist (`(,option . ,value) options)
         (set-default option value))
       (when-let* ((buffer (get-buffer "*efrit provider*")))
         (kill-buffer buffer)))))

(ert-deftest efrit-add-provider-asks-for-a-key-in-its-file-and-goes-on-once-it-is-saved ()
  (provider-test-with-defaults
    (provider-test-with-keys keys
      (provider-test-with-server (vllm "sk-secret") address
        (provider-test-answering '("Qwen/Qwen3" "house" "nothing yet")
          (efrit-add-provider address)
          (with-current-buffer (get-file-buffer keys)
            (let ((inhibit-message t))
              (should (string-match-p "The server said 401: Invalid API key.  Type the key for 127"
                                      header-line-format))
              (insert "sk-secrets")
              (save-buffer)
              ;; It says which key was wrong, but it is not shown.
              (should (string-match-p "said 401: Invalid API key (the key).  Type" header-line-format))
              (search-forward "sk-secrets")
              (delete-char -1)
              (save-buffer))))
        (pcase-let ((`((,name . ,plist)) efrit-providers))
          (should (equal "house" name))
          (should (equal (format "http://%s/v1/chat/completions" address)
                         (plist-get plist :url)))
          (should (equal '(("Qwen/Qwen3" :window 32768)) (plist-get plist :models))))
        (should-not (string-search "sk-secret" (format "%S" efrit-providers)))
        (should-not (string-search "sk-secret" (with-current-buffer "*efrit provider*"
                                                 (buffer-string))))
        (should-not (string-search "sk-secret" (with-current-buffer "*Messages*"
                                                 (buffer-string))))))))

(ert-deftest efrit-provider-is-offered-with-its-key-or-if-it-was-added-and-needs-none ()
  (provider-test-with-keys keys
    (let ((process-environment (cons "OPENAI_API_KEY" process-environment))
          (efrit-providers '(("box" :url "http://box:1/v1/chat/completions" :api chat)
                             ("other" :url "https://other.example/v1/messages" :key "OTHER_KEY"))))
      (should (member "box" (efrit-provider-usable)))
      (should-not (seq-intersection '("openai" "ollama" "other") (efrit-provider-usable)))
      (write-region "machine api.openai.com login apikey password sk-x\n" nil keys nil 'quiet)
      (auth-source-forget-all-cached)
      (should (member "openai" (efrit-provider-usable))))))

(ert-deftest efrit-provider-never-gets-the-headers-of-another-host ()
  (provider-test-with-defaults
    (let ((efrit-providers '(("gate" :url "https://gate.example/v1/messages"
                              :headers (("x-tenant" . "7")))
                             ("same" :url "https://mine.example/other/v1/messages"))))
      (efrit-test-with-project nil
        (let* ((efrit-claude-url "https://mine.example/v1/messages")
               (efrit-claude-headers '(("Authorization" . "Bearer sk-mine")))
               (loop (efrit-test-loop)))
          (efrit-provider-use loop "same" "m")
          (should (equal "https://mine.example/other/v1/messages"
                         (efrit-loop-option loop 'efrit-claude-url)))
          (should (equal efrit-claude-headers (efrit-loop-option loop 'efrit-claude-headers)))
          (efrit-provider-use loop "gate" "m")
          (should (equal '(("x-tenant" . "7")) (efrit-loop-option loop 'efrit-claude-headers)))
          (efrit-provider-use loop "openai" "m")
          (should-not (efrit-loop-option loop 'efrit-claude-headers)))
        (should-not (assoc "Authorization"
                           (let ((efrit-claude-url "https://mine.example/v1/messages")
                                 (efrit-claude-headers '(("Authorization" . "Bearer sk-mine"))))
                             (efrit-provider--headers "http://127.0.0.1:1/v1" 'chat))))))))

(ert-deftest efrit-provider-with-headers-of-its-own-is-asked-with-them-each-time ()
  (provider-test-with-server vllm address
    (let* ((headers (list (cons "x-tenant" "7")))
           (efrit-providers `(("gate" :url ,(format "http://%s/v1/chat/completions" address)
                               :api chat :headers ,headers))))
      (dotimes (_ 2)
        (provider-test--find address "Qwen/Qwen3"))
      (should (equal '(("x-tenant" . "7")) headers))
      (should (= 4 (length provider-test--requests)))
      (dolist (request provider-test--requests)
        (should (string-search "x-tenant: 7\r\n" (nth 1 request)))))))

;;; Adding a provider

(ert-deftest efrit-add-provider-says-what-it-found-and-has-the-session-use-it ()
  (provider-test-with-defaults
    (efrit-test-with-project nil
      (provider-test-with-server ollama address
        (let ((loop (efrit-test-loop)))
          (provider-test-answering '("tiny:1b" "cellar" "this session")
            (efrit-add-provider address))
          (with-current-buffer "*efrit provider*"
            (should (string-match-p "\\`Ollama at http://127.*/v1/chat/completions$"
                                    (buffer-string)))
            (dolist (line '("^ok +API +Chat Completions$" "^ok +streaming +yes$"
                            "^problem +tools +refused: 400: .* -> choose another model"
                            "^ok +window +40,960 tokens at most; Ollama may use fewer: see \
OLLAMA_CONTEXT_LENGTH$"
                            "^ok +usage +counted$"))
              (should (string-match-p line (buffer-string)))))
          (should (equal "cellar/tiny:1b"
                         (efrit-provider-label
                          (efrit-provider-of loop)
                          (efrit-loop-option loop 'efrit-claude-model))))
          (should (eq 'chat (efrit-loop-option loop 'efrit-endpoint-api)))
          (should (eql 40960 (efrit-loop-option loop 'efrit-endpoint-window)))
          (should (equal '("tiny:1b" "qwen3:8b")
                         (mapcar #'car (plist-get (efrit-provider-plist "cellar") :models))))
          (should-not (default-value 'efrit-endpoint-provider))
          (efrit-do-forget loop))))))

(ert-deftest efrit-add-provider-is-saved-by-customize ()
  (provider-test-with-defaults
    (provider-test-with-server vllm address
      (let ((saved (make-temp-file "efrit-custom-" nil ".el"))
            (efrit-providers '(("house" :url "http://old:1/v1/chat/completions")
                               ("other" :url "http://other:1/v1/messages"))))
        (unwind-protect
            (progn
              (provider-test-answering '("Qwen/Qwen3" "house" t "new sessions" t)
                (setq user-init-file saved)
                (efrit-add-provider address))
              (should (equal '("house" "other") (mapcar #'car efrit-providers)))
              (with-temp-buffer
                (insert-file-contents saved)
                (dolist (part (list "efrit-providers" "(\"house\" :url \"http://127"
                                    "(\"other\" :url" "'(efrit-endpoint-provider \"house\""
                                    "'(efrit-claude-model \"Qwen/Qwen3\""))
                  (goto-char (point-min))
                  (should (search-forward part nil t)))))
          (dolist (option (cons 'efrit-providers efrit-loop-own-options))
            (put option 'saved-value nil))
          (when-let* ((buffer (get-file-buffer saved)))
            (kill-buffer buffer))
          (delete-file saved))))))

(ert-deftest efrit-add-provider-stores-of-many-models-only-the-one-that-was-chosen ()
  (let ((found (efrit-found--create
                :base "https://x.example/v1" :url "https://x.example/v1/chat/completions"
                :api 'chat :models (cl-loop for number below 50
                                            collect (list (format "m%d" number) :window 9000)))))
    (should (equal '(("m7" :window 9000))
                   (plist-get (efrit-setup--plist found "m7") :models)))))

(ert-deftest efrit-add-provider-of-a-preset-keeps-its-key-and-takes-models-from-the-price-list ()
  (let* ((efrit-providers nil)
         (found (efrit-found--create
                 :base "https://api.openai.com/v1" :preset "openai" :api 'chat
                 :url "https://api.openai.com/v1/chat/completions" :models '(("gpt-5")))))
    (should (equal "openai" (efrit-setup--default-name found)))
    (let ((plist (efrit-setup--plist found "gpt-5")))
      (should (equal "OPENAI_API_KEY" (plist-get plist :key)))
      (should-not (plist-member plist :models)))
    (let ((plist (efrit-setup--plist
                  (efrit-found--create
                   :base "https://api.anthropic.com/v1" :preset "anthropic" :api 'messages
                   :url "https://api.anthropic.com/v1/messages")
                  "claude-opus-5-5")))
      (should (equal "ANTHROPIC_API_KEY" (plist-get plist :key)))
      (should-not (plist-member plist :features)))))

(ert-deftest efrit-add-provider-can-be-quit-while-a-server-does-not-answer ()
  (let* ((provider-test--requests nil)
         (server (make-network-process
                  :name "provider-test-mute" :server t :host "127.0.0.1" :service t
                  :coding 'binary :noquery t :sentinel #'ignore
                  :filter (lambda (_ data) (push data provider-test--requests))))
         (address (format "127.0.0.1:%s" (process-contact server :service))))
    (unwind-protect
        (progn
          (efrit-test-quit-when (lambda () provider-test--requests))
          (should (eq 'quit (condition-case nil
                                (let ((inhibit-quit nil))
                                  (efrit-provider-look address))
                              (quit 'quit))))
          (should-not (seq-find (lambda (process)
                                  (string-prefix-p "efrit-ask" (process-name process)))
                                (process-list))))
      (delete-process server))))

;;; Choosing one of a provider's models

(defmacro provider-test-with-chat (script options &rest body)
  "Run BODY in the view of a session while a model plays SCRIPT.
OPTIONS are further ones of the scripted model, which is offered as the model
\"qwen3:8b\" of the provider \"box\" in the Chat Completions API."
  (declare (indent 2) (debug (form form body)))
  `(let ((efrit-test-model-options (append '("--model" "qwen3:8b") ,options))
         (efrit-providers nil))
     (efrit-viewing-with-view ,script
       (setq efrit-providers
             `(("box" :url ,(replace-regexp-in-string "/v1/.*" "/v1/chat/completions"
                                                      efrit-claude-url)
                :api chat :features (usage) :models (("qwen3:8b" :window 32768)))))
       ,@body)))

(defun provider-test--type (text)
  "Send TEXT in the session's buffer, and wait until it was answered."
  (efrit-viewing-type text)
  (should (eq 'idle (efrit-test-rest efrit-loop-here))))

(defun provider-test--press (keys)
  "Press KEYS, as `kbd' takes them, in this buffer."
  (save-window-excursion
    (set-window-buffer nil (current-buffer))
    (execute-kbd-macro (kbd keys))))

(defun provider-test--messages-sent ()
  "Return the models of the requests so far, with t for those of a chat."
  (mapcar (lambda (request)
            (let ((body (gethash "body" request)))
              (cons (gethash "model" body) (null (gethash "system" body)))))
          (efrit-test-sent)))

(ert-deftest efrit-model-of-another-provider-comes-with-address-api-and-window ()
  (provider-test-with-chat "[[reply]]\nrepeat = 3\ntext = \"Yes.\"\n" nil
    (provider-test--type "Go.")
    (provider-test--press "M-x efrit-model RET box/qwen3:8b RET")
    (efrit-viewing-in-order "— The model is box/qwen3:8b, whose price is not known.  The prompt of ~"
                            "k tokens is sent anew; its price is not known.")
    (provider-test--type "Again.")
    (should (equal '(("claude-sonnet-5-5") ("qwen3:8b" . t)) (provider-test--messages-sent)))
    (efrit-viewing-in-order
     "— qwen3:8b has a window of 32,768 tokens, less than the budget of 100,000.")
    (should (= 32768 (plist-get (efrit-loop-budget view-loop) :total)))
    (should-not (string-search "The window of qwen3:8b is not known" (efrit-viewing-view-text)))
    (let ((efrit-menu--loop view-loop))
      (should (equal "model: box/qwen3:8b"
                     (substring-no-properties (efrit-menu--describe-model))))
      (efrit-test-with-options view-loop ((efrit-endpoint-provider "anthropic")
                                          (efrit-claude-model "claude-sonnet-5-5"))
        (should (equal "model: anth…/claude-sonnet-5-5"
                       (substring-no-properties (efrit-menu--describe-model))))))
    (provider-test--type "And again.")
    (should (= 1 (efrit-viewing-count "has a window of 32,768 tokens")))
    (should-not (default-value 'efrit-endpoint-provider))))

(ert-deftest efrit-model-by-its-name-alone-keeps-the-provider ()
  (provider-test-with-chat "[[reply]]\nrepeat = 3\ntext = \"Yes.\"\n" '("--model" "org/other")
    (efrit-model "box/qwen3:8b")
    (efrit-model "org/other")
    (efrit-viewing-shows "— The model is box/org/other, whose price is not known.")
    (should (equal "box" (efrit-loop-option view-loop 'efrit-endpoint-provider)))
    (should-not (efrit-loop-option view-loop 'efrit-endpoint-window))
    (provider-test--type "Go.")
    (should (equal '(("org/other" . t)) (provider-test--messages-sent)))
    (should (= 1 (efrit-viewing-count "Yes.")))
    (efrit-viewing-in-order "— The window of org/other is not known: 200,000 tokens are assumed; \
M-x efrit-add-provider asks the server")
    (provider-test--type "Again.")
    (should (= 1 (efrit-viewing-count "The window of org/other is not known")))))

(ert-deftest efrit-model-whose-server-was-asked-in-vain-needs-a-window-from-the-person ()
  (provider-test-with-chat "[[reply]]\ntext = \"Yes.\"\n" '("--model" "org/other")
    (setf (plist-get (cdar efrit-providers) :models) '(("org/other")))
    (efrit-model "box/org/other")
    (provider-test--type "Go.")
    (efrit-viewing-in-order "— The window of org/other is not known: 200,000 tokens are assumed; \
set its `:window' in `efrit-providers'")))

(ert-deftest efrit-model-of-a-provider-that-was-added-again-comes-with-its-new-address ()
  (provider-test-with-chat "[[reply]]\ntext = \"Yes.\"\n" nil
    (efrit-model "box/qwen3:8b")
    (efrit-model "box/qwen3:8b")
    (should (= 1 (efrit-viewing-count "The model is box/qwen3:8b")))
    (setf (plist-get (cdar efrit-providers) :url) "http://127.0.0.1:1/v1/messages"
          (plist-get (cdar efrit-providers) :api) 'messages)
    (efrit-model "box/qwen3:8b")
    (should (= 2 (efrit-viewing-count "The model is box/qwen3:8b")))
    (should (eq 'messages (efrit-loop-option view-loop 'efrit-endpoint-api)))
    (should (equal "http://127.0.0.1:1/v1/messages"
                   (efrit-loop-option view-loop 'efrit-claude-url)))))

(ert-deftest efrit-model-of-a-provider-without-a-key-is-an-error-that-says-what-to-do ()
  (provider-test-with-keys keys
    (provider-test-with-chat "[[reply]]\ntext = \"Yes.\"\n" nil
      (let ((process-environment (cons "OPENAI_API_KEY" process-environment)))
        ;; The endpoint has no name: it may have a model of this name.
        (should (equal '(nil "openai/gpt-5") (efrit-choose--parse view-loop "openai/gpt-5")))
        (efrit-model "box/qwen3:8b")
        (let ((err (should-error (efrit-model "openai/gpt-5") :type 'user-error)))
          (should (string-match-p "openai has no key: M-x efrit-add-provider .* box/openai/gpt-5"
                                  (cadr err))))
        (should (equal '("box" "openai/gpt-5")
                       (efrit-choose--parse view-loop "box/openai/gpt-5")))
        (write-region "machine api.openai.com login apikey password sk-x\n" nil keys nil 'quiet)
        (should (equal '("openai" "gpt-5") (efrit-choose--parse view-loop "openai/gpt-5")))))))

(ert-deftest efrit-model-offers-those-of-its-provider-first-and-no-line-wraps ()
  (provider-test-with-keys keys
    (write-region "machine openrouter.ai login apikey password sk-x\n" nil keys nil 'quiet)
    (provider-test-with-chat "[[reply]]\ntext = \"Yes.\"\n" nil
      (efrit-model "box/qwen3:8b")
      (let* ((offered (efrit-choose--offered view-loop))
             (labels (mapcar #'car offered))
             (lines (mapcar (pcase-lambda (`(,label ,_ ,suffix)) (concat label suffix))
                            (efrit-choose--affixed labels offered "box/qwen3:8b"))))
        (should (equal "box/qwen3:8b" (car labels)))
        (should (string-match-p "\\`box/qwen3:8b +now +33k window +price not known\\'" (car lines)))
        (should (seq-find (lambda (label) (string-prefix-p "openrouter/anthropic/" label)) labels))
        (should (seq-every-p (lambda (label) (string-match-p "\\`\\(?:box\\|openrouter\\)/" label))
                             labels))
        (should (> (length lines) 100))
        (dolist (line lines)
          (should (<= (string-width line) 79)))))))

(ert-deftest efrit-menu-shows-effort-and-thinking-as-inapt-where-the-endpoint-lacks-them ()
  (provider-test-with-chat "[[reply]]\ntext = \"Yes.\"\n" nil
    (let ((efrit-menu--loop view-loop))
      (should-not (efrit-menu--no-effort-p))
      (should-not (efrit-menu--no-thinking-p))
      (efrit-model "box/qwen3:8b")
      (should (efrit-menu--no-effort-p))
      (should (efrit-menu--no-thinking-p)))))

(ert-deftest efrit-model-notes-of-a-turn-reach-a-session-in-batch ()
  (let ((printed "")
        (efrit-test-api 'chat)
        (efrit-claude-model "qwen3:8b")
        (efrit-endpoint-window 32768)
        (efrit-test-model-options '("--model" "qwen3:8b")))
    (efrit-test-with-project nil
      (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\nusage = \"none\"\n"
        (cl-letf (((symbol-function 'send-string-to-terminal)
                   (lambda (text &rest _)
                     (setq printed (concat printed (decode-coding-string text 'utf-8))))))
          (efrit-batch-run "Go."))))
    (should (string-search "— qwen3:8b has a window of 32,768 tokens, less than" printed))
    (should (string-search "— The server does not report the usage of qwen3:8b" printed))
    (should (string-search " · cost unknown · " printed))
    (should (string-search "tokens unknown: 1 reply came without usage" printed))
    (should-not (string-match-p "\\$0\\.00\\| 0 tokens" printed))))

;;; Usage that is not known

(ert-deftest efrit-guard-counts-estimates-where-the-usage-is-not-reported ()
  (provider-test-with-chat "
[[reply]]
repeat = 2
usage = \"none\"
tool = [{ name = \"vcs_status\", input = {} }]
[[reply]]
usage = \"zero\"
text = \"Done.\"
" nil
    (efrit-model "box/qwen3:8b")
    (efrit-test-with-options view-loop ((efrit-max-tokens 100))
      (efrit-viewing-type "Go.")
      (should (eq 'limited (efrit-test-rest view-loop)))
      (efrit-viewing-in-order "The server does not report the usage of qwen3:8b: `efrit-max-tokens', \
by estimates, and")
      (should (< 1000 (plist-get (efrit-loop-counts view-loop) :tokens)
                 (* 2 (plist-get (efrit-loop-budget view-loop) :used)))))))

(ert-deftest efrit-guard-says-of-no-model-with-usage-that-it-reports-none ()
  (provider-test-with-chat "
[[reply]]
usage = \"none\"
text = \"Yes.\"
[[reply]]
text = \"Yes again.\"
" nil
    (efrit-model "box/qwen3:8b")
    (provider-test--type "Go.")
    (efrit-model "claude-opus-5-5")
    (provider-test--type "Go on.")
    (efrit-viewing-in-order "The server does not report the usage of qwen3:8b" "Yes again.")
    (should-not (string-search "of claude-opus-5-5: `efrit-max" (buffer-string)))
    (should-not (string-search "price of claude-opus-5-5" (buffer-string)))))

(ert-deftest efrit-show-says-that-cost-and-tokens-are-unknown ()
  (provider-test-with-chat "[[reply]]\nrepeat = 2\nusage = \"none\"\ntext = \"Yes.\"\n" nil
    (efrit-model "box/qwen3:8b")
    (let ((efrit-view-usage t))
      (provider-test--type "Go."))
    (efrit-viewing-in-order "Yes." "turn 1: usage unknown")
    (should (string-search " · cost unknown · qwen3:8b" (efrit-show-gauge view-loop)))
    (should (equal "unknown: 1 reply came without usage" (efrit-show-cost view-loop)))
    (should (string-search "tokens unknown: 1 reply came without usage"
                           (efrit-show-summary view-loop)))
    (save-window-excursion
      (with-current-buffer (efrit-budget view-loop)
        (unwind-protect
            (progn
              (efrit-viewing-shows "system text")
              (should (string-match-p "^  Cost: unknown: 1 reply came without usage$"
                                      (efrit-budget-view--head 79 12))))
          (kill-buffer))))
    (let ((listed (aref (plist-get (efrit-sidecar-request 'session/list '(:price t)) :sessions) 0)))
      (should (equal "unknown" (efrit-sessions--cost listed)))
      (should (string-match-p " \\? tokens cost unknown" (efrit-sessions--annotation listed nil))))
    (provider-test--type "Again.")
    (should (equal "unknown: 2 replies came without usage" (efrit-show-cost view-loop)))))

;;; Resuming

(defun provider-test--resumed (id)
  "Resume the session ID, and return its loop and the text of its buffer."
  (let* ((efrit-do-show-function #'efrit-session-view-buffer)
         (loop (efrit-resume id)))
    (with-current-buffer (efrit-session-view-buffer loop)
      (efrit-viewing-shows "Yes.")
      (prog1 (list loop (efrit-viewing-view-text))
        (let ((kill-buffer-query-functions nil))
          (kill-buffer))))))

(ert-deftest efrit-resume-goes-on-with-the-provider-of-the-last-turn-by-its-name-alone ()
  (provider-test-with-chat "[[reply]]\nrepeat = 2\ntext = \"Yes.\"\n" nil
    (efrit-model "box/qwen3:8b")
    (provider-test--type "Go.")
    (let ((id (efrit-loop-id view-loop))
          (url (efrit-loop-option view-loop 'efrit-claude-url)))
      (efrit-do-forget view-loop)
      ;; The address is that of the person's present options.
      (setf (plist-get (cdar efrit-providers) :url) (concat url "?now"))
      (pcase-let ((`(,loop ,text) (provider-test--resumed id)))
        (should (string-search "— The model is box/qwen3:8b, as in the last turn." text))
        (should (equal (concat url "?now") (efrit-loop-option loop 'efrit-claude-url)))
        (should (eq 'chat (efrit-loop-option loop 'efrit-endpoint-api)))
        (efrit-do-forget loop))
      (setq efrit-providers nil)
      (pcase-let ((`(,loop ,text) (provider-test--resumed id)))
        (should (string-search "— The model is claude-sonnet-5-5; that of the last turn was \
box/qwen3:8b.  `efrit-providers' has no box: M-x efrit-add-provider adds it again." text))
        (should (equal (default-value 'efrit-claude-url)
                       (efrit-loop-option loop 'efrit-claude-url)))
        (efrit-do-forget loop)))))

(ert-deftest efrit-resume-without-another-model-says-nothing-of-it ()
  (efrit-viewing-with-view "[[reply]]\ntext = \"Yes.\"\n"
    (provider-test--type "Go.")
    (efrit-do-forget view-loop)
    (should-not (string-search "— The model" (cadr (provider-test--resumed
                                                    (efrit-loop-id view-loop)))))))

(provide 'providers-tests)
;;; providers-tests.el ends here
