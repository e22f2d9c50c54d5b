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
(require 'efrit-providers)
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
           (cons 401 "{\"error\":\"Invalid API key\"}"))
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
             client (format "HTTP/1.1 %d X\r\nConnection: close\r\n\r\n%s" status
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

(defun provider-test--lines ()
  "Return the lines of the requests that the server took, in order."
  (mapcar #'car (reverse provider-test--requests)))

(defun provider-test--find (address model)
  "Look at, try and measure MODEL of the server at ADDRESS; return the `efrit-found'."
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

(ert-deftest efrit-provider-reads-hostile-lists-of-models ()
  (dolist (body '("" "[]" "1" "null" "\"x\"" "{" "{\"data\":1}" "{\"data\":[1,null,\"x\",[],{}]}"
                  "{\"data\":[{\"id\":{}}]}"))
    (ert-info (body)
      (should-not (efrit-provider-listed body))))
  (should (equal '(("a") ("b" :window 4096))
                 (efrit-provider-listed "[{\"id\":\"a\",\"context_length\":\"x\"},\
{\"name\":\"b\",\"max_model_len\":4096,\"context_length\":99}]"))))

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
            (should (string-match-p "The server said 401: Invalid API key.  Type the key for 127"
                                    header-line-format))
            (insert "sk-secret")
            (let ((inhibit-message t))
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

;;; Adding a provider

(ert-deftest efrit-add-provider-says-what-it-found-and-has-the-session-use-it ()
  (provider-test-with-defaults
    (provider-test-with-keys _keys
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
            (efrit-do-forget loop)))))))

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
      (should-not (plist-member plist :models)))))

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

(provide 'providers-tests)
;;; providers-tests.el ends here
