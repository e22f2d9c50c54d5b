;;; efrit-providers.el --- Providers and their servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Finds the providers that the person can use, and their models; has a loop, or
;; new sessions, use one; asks a server for its models, its API and its windows.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'url-parse)

;;; Providers

(defmacro efrit-provider--with-options (options &rest body)
  "Run BODY in a temporary buffer with OPTIONS, an alist, bound to their values."
  (declare (indent 1) (debug t))
  (let ((values (make-symbol "options")))
    `(let ((,values ,options))
       (with-temp-buffer
         (cl-progv (mapcar #'car ,values) (mapcar #'cdr ,values)
           ,@body)))))

(defun efrit-provider-all ()
  "Return the person's providers, then the presets that these do not replace."
  (append efrit-providers
          (seq-remove (lambda (preset) (assoc (car preset) efrit-providers))
                      efrit-preset-providers)))

(defun efrit-provider-plist (name)
  "Return the plist of the provider NAME, or nil if there is no such provider."
  (cdr (assoc name (efrit-provider-all))))

(defun efrit-provider-usable ()
  "Return the names of the providers with a key, and of added ones that need none."
  (cl-loop for (name . plist) in (efrit-provider-all)
           when (or (and (assoc name efrit-providers) (null (plist-get plist :key)))
                    (efrit-provider--with-options (efrit-provider-options name "")
                      (efrit-provider-key-p)))
           collect name))

(defun efrit-provider-key-p ()
  "Return non-nil if requests to the endpoint would have a key."
  (efrit-provider--secret-p (ignore-errors (efrit-endpoint-headers))))

(defun efrit-provider--secret-p (headers)
  "Return non-nil if one of HEADERS, an alist, is a secret."
  (let ((efrit-claude-headers headers))
    (efrit-endpoint-own-secret-p)))

(defun efrit-provider-options (name model)
  "Return the options for MODEL of the provider NAME, an alist with their values."
  (let* ((plist (efrit-provider-plist name))
         (known (cdr (assoc model (plist-get plist :models)))))
    `((efrit-claude-url . ,(plist-get plist :url))
      (efrit-endpoint-api . ,(or (plist-get plist :api) 'messages))
      (efrit-endpoint-provider . ,name)
      (efrit-endpoint-window . ,(plist-get known :window))
      (efrit-endpoint-max-output . ,(plist-get known :max-output))
      (efrit-claude-features . ,(if (plist-member plist :features) (plist-get plist :features)
                                  'auto))
      (efrit-claude-headers . ,(plist-get plist :headers))
      (efrit-claude-model . ,model))))

;;; The provider of a loop

(defun efrit-provider-value (loop option)
  "Return the value of OPTION that LOOP will use; without LOOP, the default."
  (if loop (efrit-loop-next-option loop option) (default-value option)))

(defun efrit-provider-of (loop)
  "Return the name of the provider that LOOP will use, or nil if it has no name.
Without LOOP, return that of new sessions."
  (or (efrit-provider-value loop 'efrit-endpoint-provider)
      (let ((url (efrit-provider-value loop 'efrit-claude-url)))
        (car (seq-find (lambda (provider) (equal url (plist-get (cdr provider) :url)))
                       (efrit-provider-all))))))

(defun efrit-provider-feature-p (loop feature)
  "Return non-nil if the endpoint that LOOP will use is asked for FEATURE.
Without LOOP, that of new sessions counts.  What the model itself can do is
known once a turn with it has begun."
  (let ((model (and loop (efrit-loop-model loop))))
    (ignore-errors
      (efrit-provider--with-options (efrit-provider--options loop nil)
        (efrit-endpoint-feature-p
         feature (if (equal efrit-claude-model (plist-get model :name)) model
                   '(:adaptive_thinking t :task_budgets t :binding t)))))))

(defun efrit-provider--options (loop changed)
  "Return CHANGED, an alist of options, and the others that LOOP will use.
Without LOOP, those of new sessions."
  (append changed
          (cl-loop for option in efrit-loop-own-options
                   unless (assq option changed)
                   collect (cons option (efrit-provider-value loop option)))))

(defun efrit-provider-label (name model)
  "Return how MODEL of the provider NAME is called; NAME may be nil."
  (if name (concat name "/" model) model))

(defun efrit-provider-use (loop name model)
  "Have LOOP use MODEL of the provider NAME from its next turn on.
If LOOP uses this provider already, or NAME is nil, change the model alone.
Without LOOP, change the defaults of new sessions."
  (pcase-dolist (`(,option . ,value) (efrit-provider--changes loop name model))
    (if loop (efrit-loop-choose loop option value)
      (customize-set-variable option value))))

(defun efrit-provider--changes (loop name model)
  "Return the options for `efrit-provider-use' to set, an alist.
LOOP, NAME and MODEL are as there.  Additional headers stay with their host,
since a key may be among them."
  (let ((options (efrit-provider-options name model))
        (url (efrit-provider-value loop 'efrit-claude-url)))
    (cond ((null name) (list (cons 'efrit-claude-model model)))
          ((not (efrit-provider--at-p loop name options))
           (if (efrit-provider--same-host-p url (alist-get 'efrit-claude-url options))
               (assq-delete-all 'efrit-claude-headers options)
             options))
          ((plist-get (efrit-provider-plist name) :models)
           (seq-filter (lambda (option)
                         (memq (car option) '(efrit-endpoint-window efrit-endpoint-max-output
                                                                    efrit-claude-model)))
                       options))
          (t (list (cons 'efrit-claude-model model))))))

(defun efrit-provider--at-p (loop name options)
  "Return non-nil if the provider of LOOP is NAME, as it is now, already.
OPTIONS are those of NAME; it may have changed since LOOP began to use it."
  (and (equal name (efrit-provider-of loop))
       (seq-every-p (lambda (option)
                      (equal (alist-get option options) (efrit-provider-value loop option)))
                    (append '(efrit-claude-url efrit-endpoint-api)
                            (and (plist-member (efrit-provider-plist name) :features)
                                 '(efrit-claude-features))))))

(defun efrit-provider-used-p (loop name model)
  "Return non-nil if LOOP has MODEL of the provider NAME, as it is now, already."
  (seq-every-p (pcase-lambda (`(,option . ,value))
                 (equal value (efrit-provider-value loop option)))
               (efrit-provider--changes loop name model)))

(defun efrit-provider--same-host-p (one other)
  "Return non-nil if the URLs ONE and OTHER have the same scheme, host and port."
  (equal (efrit-provider--origin one) (efrit-provider--origin other)))

(defun efrit-provider--origin (url)
  "Return the scheme, host and port of URL; the names of this machine are one."
  (let* ((parsed (url-generic-parse-url url))
         (host (url-host parsed)))
    (list (url-type parsed)
          (if (member host '("127.0.0.1" "::1" "[::1]")) "localhost" host)
          (url-port parsed))))

;;; Models

(defconst efrit-provider--most-names 100
  "Most names of models in one request to the sidecar.")

(defun efrit-provider-models (loop name)
  "Return the models of the provider NAME, plists as in the reply to `models/list'.
NAME is nil for an endpoint without a name, that of LOOP; or of new sessions if
LOOP is nil, too."
  (let ((names (mapcar #'car (plist-get (efrit-provider-plist name) :models)))
        (options (cons '(efrit-endpoint-window) (efrit-provider--changes loop name ""))))
    (if names
        (mapcan (lambda (some) (efrit-provider--list loop name options (vconcat some)))
                (seq-partition names efrit-provider--most-names))
      (efrit-provider--list loop name options))))

(defun efrit-provider-endpoint (loop)
  "Return the param `endpoint' for requests about what LOOP will send next.
It is in a plist, which is empty if there is nothing to say."
  (efrit-provider--with-options (efrit-provider--options loop nil)
    (efrit-provider--endpoint)))

(defun efrit-provider--endpoint ()
  "Return the param `endpoint' of the options as they are bound, in a plist."
  (when-let* ((endpoint (efrit-endpoint-params)))
    (list :endpoint endpoint)))

(defun efrit-provider-model (loop name model)
  "Return a plist about MODEL of the provider NAME, as from `models/list'.
With LOOP, it has the price of the next prompt of LOOP's session."
  (car (efrit-provider--list loop name (efrit-provider--changes loop name model) (vector model)
                             (and loop (list :session_id (efrit-loop-id loop))))))

(defun efrit-provider--list (loop name options &optional names session)
  "Return the models with NAMES of the provider NAME, or all that are known.
They are plists.  OPTIONS, an alist, are those that LOOP would change; SESSION
has further params of `models/list'."
  (mapcar
   (lambda (model)
     (efrit-provider--with-window model (plist-get (efrit-provider-plist name) :models)))
   (plist-get
    (efrit-sidecar-request
     'models/list
     (efrit-provider--with-options (efrit-provider--options loop options)
       (append (list :caching (if (efrit-endpoint-feature-p 'cache) t :json-false))
               (efrit-provider--endpoint)
               (and names (list :names names))
               session))
     :host (and loop (efrit-host-of-session (efrit-loop-id loop))))
    :models)))

(defun efrit-provider--with-window (model known)
  "Return MODEL, a plist, with the window and the longest reply that KNOWN has.
KNOWN is the value of `:models' of a provider."
  (let* ((plist (cdr (assoc (plist-get model :name) known)))
         (window (plist-get plist :window)))
    (append (and window (list :window window :window_known t))
            (and (plist-get plist :max-output) (list :max_output (plist-get plist :max-output)))
            model)))

;;; Requests to a server

(defconst efrit-provider--most-bytes 5000000
  "Most bytes of a server's answer that are read.")

(defconst efrit-provider--seconds 10
  "Seconds that a server may take to answer a question about itself.")

(cl-defun efrit-provider-ask (url headers &key json (seconds efrit-provider--seconds))
  "Get URL with HEADERS, an alist, or post JSON, a text, to it.
Wait for the answer, and return (STATUS HEADERS BODY), or a text that says why
there is none within SECONDS.  The headers, with the key among them, go to
curl's standard input."
  (with-temp-buffer
    (let* ((default-directory temporary-file-directory)
           (exec-path (efrit-exec-path))
           (process-environment (default-value 'process-environment))
           (process (make-process :name "efrit-ask" :buffer (current-buffer) :noquery t
                                  :command (list (default-value 'efrit-http-program)
                                                 "-q" "--config" "-")
                                  :connection-type 'pipe :coding 'utf-8-unix
                                  :sentinel #'ignore)))
      (unwind-protect
          (progn
            (process-send-string process
                                 (efrit-http-options
                                  url headers "show-error\n"
                                  (if json (efrit-http-option "data" json) "")
                                  (efrit-http-option "max-time" (number-to-string seconds))))
            (process-send-eof process)
            (while (and (or (accept-process-output process 0.1) (process-live-p process))
                        (< (buffer-size) efrit-provider--most-bytes))))
        (delete-process process))
      (or (and (eq 'exit (process-status process))
               (eql 0 (process-exit-status process))
               (efrit-http-parse (efrit-endpoint-hide-secrets (buffer-string) headers)))
          (if (>= (buffer-size) efrit-provider--most-bytes)
              (format "it sent more than %d bytes" efrit-provider--most-bytes)
            (goto-char (point-max))
            (skip-chars-backward "\n")
            (buffer-substring (line-beginning-position) (point)))))))

(defun efrit-provider-problem (answer)
  "Return the words of ANSWER, as from `efrit-provider-ask', that refuse a request."
  (pcase answer
    (`(,status ,_ ,body) (efrit-provider--words status (efrit-words-of-body body)))
    (problem problem)))

(defun efrit-provider--words (status words)
  "Return WORDS of a server, or nil, with STATUS on a line of at most 300 columns."
  (truncate-string-to-width
   (format "%d: %s" status
           (efrit-permissions-visible
            (string-join (split-string (or words "no reason was given")) " ") t))
   300 nil nil "…"))

;;; Finding a server's models

(cl-defstruct (efrit-found (:constructor efrit-found--create) (:copier nil))
  "Findings about a server.
BASE is the address below which its API is, PRESET the name of its provider or
nil, APIS the APIs to try, the likeliest first.  MODELS is an alist from their
names to plists with `:window' and `:max-output'.  REFUSAL has its words if it
wants a key, or another one.  KIND is the name of its program, or nil if that is
not known; CAUTION says what to heed of the window that it names, or is nil.
The others are known after `efrit-provider-try': URL and API are those that
answered; FEATURES are as in `efrit-providers'; STREAMING, TOOLS and USAGE are
non-nil if it streams, takes tools, and counts tokens.  NO-TOOLS has its words
about tools if it refused them."
  base preset apis models refusal kind caution url api features streaming tools usage no-tools)

(defun efrit-provider-look (address)
  "Ask the server at ADDRESS for its models, and return an `efrit-found'.
ADDRESS is that of the server or of its API, or the name of a provider.  Signal
a `user-error' if no server answers there."
  (let* ((address (or (plist-get (efrit-provider-plist address) :url) address))
         (answers (cl-loop for bases in (efrit-provider--bases address)
                           for answer = (efrit-provider--look-below bases address)
                           collect answer
                           until (efrit-found-p answer))))
    (or (seq-find #'efrit-found-p answers)
        (user-error "No server answers at %s (%s): start it, or check the address"
                    address (car answers)))))

(defun efrit-provider--look-below (bases address)
  "Ask a server for its models below each of BASES, and return an `efrit-found'.
Return a text if it does not answer.  ADDRESS is what the person gave."
  (let ((answers (cl-loop for base in bases
                          for answer = (progn (message "Asking %s for its models..." base)
                                              (efrit-provider--get base "/models"))
                          collect (if (stringp answer) answer
                                    (efrit-provider--found base address answer))
                          into answers
                          until (efrit-provider--known-p (car (last answers)))
                          finally return answers)))
    (if (efrit-provider--known-p (car (last answers)))
        (car (last answers))
      (car answers))))

(defun efrit-provider--known-p (answer)
  "Return non-nil if ANSWER ends the search for the models of a server."
  (or (stringp answer) (efrit-found-models answer) (efrit-found-refusal answer)))

(defun efrit-provider--bases (address)
  "Return the addresses below which the API of the server at ADDRESS may be.
ADDRESS may lack the scheme and the path.  There is a list of them for each
scheme, the likeliest first."
  (let ((whole (efrit-provider-base address)))
    (mapcar (lambda (url)
              (let ((known (mapcar (lambda (provider)
                                     (efrit-provider-base (plist-get (cdr provider) :url)))
                                   (efrit-provider--at url)))
                    (versioned (concat url "/v1")))
                (delete-dups (append known
                                     (if (string-match-p "\\`https?://[^/]+\\'" url)
                                         (list versioned url)
                                       (list url versioned))))))
            (cond ((string-match-p "\\`https?://" whole) (list whole))
                  ((efrit-provider--near-p whole)
                   (list (concat "http://" whole) (concat "https://" whole)))
                  (t (list (concat "https://" whole)))))))

(defun efrit-provider-base (address)
  "Return ADDRESS without what stands behind the base of an API, such as /models."
  (thread-last (string-trim address)
    (replace-regexp-in-string "[?#].*\\'" "")
    (replace-regexp-in-string "/+\\'" "")
    (replace-regexp-in-string "/\\(?:chat/completions\\|messages\\|models\\)\\'" "")))

(defun efrit-provider--near-p (address)
  "Return non-nil if ADDRESS, without a scheme, is probably on this network.
Such a server seldom speaks https: it has a port, or a number for a name, or a
name without a dot."
  (let ((host (car (split-string address "/"))))
    (or (string-match-p ":[0-9]+\\'" host)
        (not (string-search "." host))
        (string-match-p "\\`[0-9.]+\\'\\|\\.\\(?:local\\|lan\\|home\\|internal\\)\\'" host))))

(defun efrit-provider--at (url)
  "Return the providers on the host and the port of URL."
  (seq-filter (lambda (provider)
                (equal (efrit-provider--origin url)
                       (efrit-provider--origin (plist-get (cdr provider) :url))))
              (efrit-provider-all)))

(defun efrit-provider--found (base address answer)
  "Return an `efrit-found' for the server at BASE; ANSWER is its list of models.
ADDRESS is what the person gave."
  (pcase-let* ((`(,status ,headers ,body) answer)
               (`(,preset . ,plist) (car (efrit-provider--at base))))
    (when (and (<= 300 status 399) (assoc "location" headers))
      (user-error "%s leads to %s: give that address" base
                  (efrit-permissions-visible (cdr (assoc "location" headers)) t)))
    (efrit-found--create
     :base base :preset preset
     :apis (efrit-provider--apis base address)
     :features (plist-get plist :features)
     :refusal (and (memq status '(401 403)) (efrit-provider-problem answer))
     :models (and (eql status 200) (efrit-provider-listed body)))))

(defun efrit-provider--apis (base address)
  "Return the APIs that the server at BASE may have, the likeliest first.
ADDRESS is what the person gave.  A provider whose key has a name has one API."
  (let* ((plist (cdar (efrit-provider--at base)))
         (api (cond (plist (or (plist-get plist :api) 'messages))
                    ((string-match-p "/messages/*\\'" address) 'messages)
                    (t 'chat))))
    (if (plist-get plist :key)
        (list api)
      (seq-uniq (list api 'chat 'messages)))))

(defconst efrit-provider--longest-name 200
  "Most characters of a model's name; the sidecar takes no longer one.")

(defun efrit-provider-listed (body)
  "Return the models in BODY, the JSON text of a list of models.
It is an alist from names to plists with `:window' and `:max-output'.  Names
with hidden characters are left out."
  (let* ((object (ignore-errors (efrit-json-plist body)))
         (models (seq-find #'vectorp (list object (plist-get object :data)
                                           (plist-get object :models)))))
    (cl-loop for model across (or models [])
             for name = (seq-find #'stringp (list (plist-get model :id) (plist-get model :name)))
             when (and name (<= 1 (length name) efrit-provider--longest-name)
                       (equal name (efrit-permissions-visible name t)))
             ;; Google's own API has this prefix, and takes names without it.
             collect (cons (string-remove-prefix "models/" name)
                           (efrit-provider--sizes model)))))

(defun efrit-provider--sizes (model)
  "Return a plist with the `:window' and the `:max-output' in MODEL, a plist."
  (let* ((top (plist-get model :top_provider))
         (window (efrit-provider--number
                  model :loaded_context_length :max_model_len :context_length :context_window
                  :max_context_length :max_input_tokens))
         (most (or (efrit-provider--number model :max_completion_tokens :max_output_tokens)
                   (efrit-provider--number top :max_completion_tokens)
                   (and (plist-get model :max_input_tokens)
                        (efrit-provider--number model :max_tokens)))))
    (append (and window (list :window window))
            (and most (list :max-output most)))))

(defun efrit-provider--number (plist &rest names)
  "Return the first of the members NAMES of PLIST that can be a window, or nil."
  (seq-find (lambda (value) (and (natnump value) (<= 1000 value 1000000000)))
            (mapcar (lambda (name) (plist-get plist name)) names)))

(defun efrit-provider--get (base path &optional json)
  "Get PATH below BASE, the address of an API, or post JSON there.
The key is sent in the forms of all APIs that the server may have."
  (efrit-provider-ask (concat base path)
                      (seq-uniq (seq-mapcat (lambda (api) (efrit-provider--headers base api))
                                        (efrit-provider--apis base ""))
                                (lambda (one other) (equal (car one) (car other))))
                      :json json))

(defun efrit-provider--headers (base api)
  "Return the headers of a request for API to the server at BASE.
A missing key is no error: the server may need none."
  (condition-case nil
      (efrit-provider--with-options (efrit-provider--options-of base api)
        (efrit-endpoint-headers))
    (efrit-no-key (list (cons "content-type" "application/json")
                        (cons "anthropic-version" "2023-06-01")))))

(defun efrit-provider--options-of (base api)
  "Return options for API of the server at BASE, an alist.
The default headers, maybe with a key, are for the default address's host alone."
  (pcase-let ((`(,name . ,plist) (car (efrit-provider--at base))))
    `((efrit-claude-url . ,(concat base (efrit-provider--path api)))
      (efrit-endpoint-api . ,api)
      (efrit-endpoint-provider . ,name)
      (efrit-claude-headers . ,(if (efrit-provider--same-host-p
                                    base (default-value 'efrit-claude-url))
                                   (default-value 'efrit-claude-headers)
                                 (plist-get plist :headers))))))

(defun efrit-provider--path (api)
  "Return the path of API, a symbol, behind the base of an address."
  (if (eq api 'chat) "/chat/completions" "/messages"))

;;; Trying a server

(defconst efrit-provider--try-seconds 120
  "Seconds that a server may take for a few words; it may have to load its model.")

(defconst efrit-provider--most-tries 4
  "Most requests to find out what one API of a server takes.")

(defun efrit-provider-try (found model)
  "Have MODEL of FOUND, an `efrit-found', say a few words; store how that went.
Signal a `user-error' if it does not."
  (let ((problem (cl-loop for api in (efrit-found-apis found)
                          for words = (efrit-provider--try-api found model api)
                          collect words into problems
                          while (and words (string-match-p "\\`\\(?:40[45]\\|501\\|200\\)" words))
                          finally return (and words (car problems)))))
    (when problem
      (user-error "%s did not answer as %s.  It said %s.  %s" (efrit-found-base found) model
                  problem (efrit-provider--advice problem)))))

(defun efrit-provider--advice (problem)
  "Return what to do about PROBLEM, the words of a server's refusal."
  (pcase (and (string-match "\\`[0-9]+" problem) (string-to-number (match-string 0 problem)))
    ((or 401 403) "Check the key in your `auth-sources', then try again.")
    ((or 402 429) "Check the account's credit, or try again later.")
    (404 "Check the address, or choose another model.")
    ((pred null) "See whether the server runs, then try again.")
    (_ "See the server's log, or choose another model.")))

(defun efrit-provider--try-api (found model api)
  "Ask MODEL of FOUND for a few words by API; store how that went in FOUND.
What the server refuses is left out, and it is asked again.  Return nil, or the
words of the last refusal."
  (let ((features (cons 'tools (or (efrit-found-features found)
                                   (and (eq api 'chat) '(usage)))))
        (left efrit-provider--most-tries)
        problem)
    (while (> left 0)
      (message "Asking %s for a few words; C-g gives up..." model)
      (let* ((answer (efrit-provider--request-words found model api features))
             (events (efrit-provider--events answer api))
             (refused (and (stringp events) (efrit-provider--refused features events))))
        (setq problem (and (stringp events) events)
              left (if refused (1- left) 0))
        (cond ((null problem) (efrit-provider--take found api features events (nth 2 answer)))
              ((memq refused features) (setq features (remq refused features)))
              (refused (push refused features)))
        (when (eq refused 'tools)
          (setf (efrit-found-no-tools found) problem))))
    problem))

(defun efrit-provider--take (found api features events body)
  "Store in FOUND that API answered with EVENTS, in BODY, when asked with FEATURES."
  (setf (efrit-found-api found) api
        (efrit-found-url found) (concat (efrit-found-base found) (efrit-provider--path api))
        (efrit-found-features found) (remq 'tools features)
        (efrit-found-tools found) (and (memq 'tools features) t)
        (efrit-found-streaming found) (and (string-match-p "^data:" body) t)
        (efrit-found-usage found) (seq-some #'efrit-provider--usage-p events)))

(defun efrit-provider--request-words (found model api features)
  "Ask MODEL of FOUND for a few words by API; return its answer.
FEATURES are those of the request; `tools' among them offers a tool."
  (efrit-provider-ask
   (concat (efrit-found-base found) (efrit-provider--path api))
   (efrit-provider--headers (efrit-found-base found) api)
   :seconds efrit-provider--try-seconds
   :json (efrit-json-text (efrit-provider--small-request model api features))))

(defun efrit-provider--small-request (model api features)
  "Return a request for a few words of MODEL by API with FEATURES, a plist."
  (let ((tool '(:name "ping" :description "Answers pong."))
        (schema (list :type "object" :properties (make-hash-table))))
    (append
     (list :model model :stream t
           :messages [(:role "user" :content "Use the tool ping, or say pong.")])
     (list (if (memq 'max-completion-tokens features) :max_completion_tokens :max_tokens) 16)
     (and (memq 'usage features) '(:stream_options (:include_usage t)))
     (and (memq 'tools features)
          (list :tools
                (vector (if (eq api 'chat)
                            (list :type "function"
                                  :function (append tool (list :parameters schema)))
                          (append tool (list :input_schema schema)))))))))

(defun efrit-provider--refused (features problem)
  "Return the one of FEATURES that PROBLEM, the words of a refusal, is about.
It is to be left out, or added if it is not among FEATURES.  Return nil if
another request would be refused as well."
  (unless (string-match-p "\\`\\(?:[^0-9]\\|40[1-5]\\|429\\)" problem)
    (cond ((and (string-match-p "max_completion_tokens" problem)
                (not (memq 'max-completion-tokens features)))
           'max-completion-tokens)
          ((and (memq 'usage features) (not (string-match-p "tool" problem))) 'usage)
          ((memq 'tools features) 'tools))))

(defun efrit-provider--events (answer api)
  "Return the events of ANSWER, plists, if it is a reply by API, or its refusal.
A reply that is not streamed is one event."
  (pcase answer
    (`(200 ,_ ,body)
     (let* ((events (efrit-provider--parse-events body))
            (problem (seq-some (lambda (event) (plist-get event :error)) events)))
       (cond (problem (efrit-provider--words 200 (efrit-words-of-body (efrit-json-text problem))))
             ((seq-some (lambda (event) (efrit-provider--of-api-p event api)) events) events)
             (t (efrit-provider-problem answer)))))
    (_ (efrit-provider-problem answer))))

(defun efrit-provider--parse-events (body)
  "Return the objects in BODY, a stream of events or one JSON text, as plists."
  (if (string-match-p "^data:" body)
      (cl-loop for line in (split-string body "[\r\n]+")
               for event = (and (string-prefix-p "data:" line)
                                (ignore-errors (efrit-json-plist (substring line 5))))
               when (consp event) collect event)
    (seq-filter #'consp (list (ignore-errors (efrit-json-plist body))))))

(defun efrit-provider--of-api-p (event api)
  "Return non-nil if EVENT, a plist, is part of a reply by API."
  (if (eq api 'chat)
      (vectorp (plist-get event :choices))
    (member (plist-get event :type) '("message_start" "message"))))

(defun efrit-provider--usage-p (event)
  "Return non-nil if EVENT, a plist, reports the tokens of the prompt."
  (let ((usage (or (plist-get event :usage) (plist-get (plist-get event :message) :usage))))
    (seq-some (lambda (count) (and (natnump count) (> count 0)))
              (list (plist-get usage :prompt_tokens) (plist-get usage :input_tokens)))))

;;; Windows

(defconst efrit-provider--sources
  '(("Ollama" "/api/ps" efrit-provider--ollama-loaded)
    ("Ollama" "/api/show" efrit-provider--ollama-shown post
     "at most; Ollama may use fewer: see OLLAMA_CONTEXT_LENGTH")
    ("llama.cpp" "/props" efrit-provider--llama-properties)
    ("LM Studio" "/api/v0/models" efrit-provider--studio-models)
    ("LiteLLM" "/model/info" efrit-provider--lite-models))
  "Programs, and the paths where they say what a model can hold.
Each has a function that takes a plist and a model, and returns a plist with
`:window' and `:max-output'.  With `post' the name of the model is posted; what
stands behind it is to be heeded.")

(defun efrit-provider-measure (found model)
  "Ask the server of FOUND what MODEL can hold, unless it is known, and store it.
The model was loaded by `efrit-provider-try', so a local server knows it."
  (let ((preset (efrit-provider-plist (efrit-found-preset found)))
        (root (replace-regexp-in-string "/v1\\'" "" (efrit-found-base found))))
    (unless (or (plist-get (cdr (assoc model (efrit-found-models found))) :window)
                (plist-get preset :key))
      (message "Asking %s what %s can hold..." root model)
      (cl-loop for (kind path function post caution) in efrit-provider--sources
               for answer = (efrit-provider--get
                             root path (and post (efrit-json-text (list :model model))))
               for sizes = (and (eql 200 (car-safe answer))
                                (funcall function
                                         (ignore-errors (efrit-json-plist (nth 2 answer)))
                                         model))
               when sizes
               do (setf (efrit-found-kind found) kind
                        (efrit-found-caution found) caution
                        (alist-get model (efrit-found-models found) nil nil #'equal) sizes)
               until sizes))))

(defun efrit-provider--named (models model &rest names)
  "Return the plist in MODELS, a vector, with MODEL as one of its members NAMES."
  (seq-find (lambda (entry)
              (seq-some (lambda (name) (equal model (plist-get entry name))) names))
            (if (vectorp models) models [])))

(defun efrit-provider--ollama-loaded (object model)
  "Return the sizes of MODEL in OBJECT, Ollama's list of the models it has loaded."
  (efrit-provider--sizes
   (efrit-provider--named (plist-get object :models) model :name :model)))

(defun efrit-provider--ollama-shown (object _model)
  "Return the sizes in OBJECT, Ollama's description of a model."
  (let ((chosen (plist-get object :parameters)))
    (if (and (stringp chosen) (string-match "^num_ctx[ \t]+\\([0-9]+\\)" chosen))
        (list :window (string-to-number (match-string 1 chosen)))
      (efrit-provider--sizes
       (cl-loop for (name value) on (plist-get object :model_info) by #'cddr
                when (string-suffix-p ".context_length" (symbol-name name))
                return (list :context_length value))))))

(defun efrit-provider--llama-properties (object _model)
  "Return the sizes in OBJECT, the properties of llama.cpp's server."
  (let ((window (plist-get (plist-get object :default_generation_settings) :n_ctx)))
    (efrit-provider--sizes (list :context_length window))))

(defun efrit-provider--studio-models (object model)
  "Return the sizes of MODEL in OBJECT, LM Studio's own list of models."
  (efrit-provider--sizes (efrit-provider--named (plist-get object :data) model :id)))

(defun efrit-provider--lite-models (object model)
  "Return the sizes of MODEL in OBJECT, LiteLLM's list of models."
  (efrit-provider--sizes
   (plist-get (efrit-provider--named (plist-get object :data) model :model_name) :model_info)))

(provide 'efrit-providers)
;;; efrit-providers.el ends here
