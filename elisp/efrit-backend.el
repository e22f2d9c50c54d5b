;;; efrit-backend.el --- Send requests to a model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What all APIs have in common: finds the address and the key of the endpoint,
;; posts requests by curl, retries them, splits the server-sent events of
;; replies, and stores their blocks.  An API adds four functions: for headers,
;; bodies, events and errors.

;;; Code:

(require 'efrit)
(require 'efrit-permissions)
(require 'efrit-rpc)

;; `url-generic-parse-url' loads url-parse.el, which defines these functions.
(declare-function url-host "url-parse" (url))
(declare-function url-port "url-parse" (url))
(declare-function url-type "url-parse" (url))

;;; APIs

(cl-defstruct (efrit-api (:constructor efrit-api-create) (:copier nil))
  "An API of endpoints.  A long JSON text is a list of strings in it.
PATH is the end of the endpoints' addresses.
HEADERS is called with a key, or nil, and the capabilities of a model, a plist;
it returns an alist of headers.
BODY is called with a plist of arguments of `efrit-request-send'; it returns
the members of the request, an alist from names to JSON texts.
EVENT is called with an `efrit-reply' and a hash table, which is an event of
the stream or a whole reply; it adds that to the reply, and returns a list of
events for ON-EVENT of `efrit-request-send'.
ERROR is called with the type or code of an error, a string; it returns
`passing' if the request may be sent again, `lasting' if not, and nil if the
HTTP status decides."
  path headers body event error)

(defvar efrit-apis nil
  "Alist from the values of `efrit-endpoint-api' to each `efrit-api'.")

;;; The endpoint

;; The endpoint's address, the features it supports besides plain messages, and
;; its key.  A key is sent only to its host, and only over https unless the host
;; is this machine or `efrit-claude-key-in-clear' allows plain http.

(defconst efrit-endpoint--vendor "api.anthropic.com"
  "The host of the vendor's own endpoint.")

(defconst efrit-endpoint--vendor-features
  '(cache thinking effort task-budget binding diagnostics)
  "The features of the vendor's own endpoint.")

(defconst efrit-endpoint--written-features
  '(system-messages developer alternation short-ids images reasoning-back thought-signatures)
  "The features that the sidecar heeds when it writes the messages of a chat.")

(defconst efrit-endpoint--missing
  '((messages (cache . "prompt cache") (thinking . "thinking") (effort . "effort"))
    (chat (images . "images") (effort . "effort") (usage . "report of its usage")))
  "Alist from APIs to features whose absence the person is told, with their names.")

(defun efrit-endpoint-host ()
  "Return the host name in `efrit-claude-url'.
Signal a `user-error' if the URL has no host, or is not http or https."
  (let* ((url (url-generic-parse-url efrit-claude-url))
         (host (url-host url)))
    (unless (and (member (url-type url) '("http" "https"))
                 host (not (string-empty-p host)))
      (user-error "`efrit-claude-url' is %s: it must begin with http:// or https:// and a host, \
such as http://localhost:11434/v1/messages" efrit-claude-url))
    host))

(defun efrit-endpoint--api ()
  "Return the `efrit-api' that `efrit-endpoint-api' names."
  (or (alist-get efrit-endpoint-api efrit-apis)
      (user-error "`efrit-endpoint-api' is %s: it must be one of %s" efrit-endpoint-api
                  (mapconcat (lambda (api) (symbol-name (car api))) efrit-apis ", "))))

(defun efrit-endpoint-headers (&optional model)
  "Return the headers of a request to MODEL, a plist of capabilities or nil.
Look for a key unless `efrit-claude-headers' has one.  Signal `efrit-no-key' if
the endpoint needs a key and would get none, and a `user-error' if a key would
be sent unencrypted."
  (let* ((host (efrit-endpoint-host))
         (own (efrit-endpoint--own-key-p))
         (key (unless own
                (efrit-endpoint--key host)))
         (variable (efrit-endpoint-key-variable)))
    (when (and variable (null key) (null own))
      (signal 'efrit-no-key
              (list (format "There is no key for %s: put `machine %s login apikey password KEY' \
into ~/.authinfo.gpg, as M-x efrit-add-key does, or set %s" host host variable))))
    (when (or key (efrit-endpoint-own-secret-p))
      (efrit-endpoint--check-secret host))
    (append '(("content-type" . "application/json"))
            (funcall (efrit-api-headers (efrit-endpoint--api)) key model)
            efrit-claude-headers)))

(defun efrit-endpoint--providers ()
  "Return the plists of the providers whose address has the endpoint's host."
  (let ((host (efrit-endpoint-host)))
    (cl-loop for (_ . provider) in (append efrit-providers efrit-preset-providers)
             when (equal host (url-host (efrit-endpoint--provider-url provider)))
             collect provider)))

(defun efrit-endpoint--provider-url (provider)
  "Return the parsed address of PROVIDER, a plist."
  (url-generic-parse-url (or (plist-get provider :url) "")))

(defun efrit-endpoint-features ()
  "Return the features of the endpoint, a list of symbols.
With `auto', see `efrit-claude-features', those of the first provider with this
host, port and API count."
  (if (not (eq efrit-claude-features 'auto))
      efrit-claude-features
    (let* ((port (url-port (url-generic-parse-url efrit-claude-url)))
           (provider (seq-find
                      (lambda (provider)
                        (and (eql port (url-port (efrit-endpoint--provider-url provider)))
                             (eq efrit-endpoint-api (or (plist-get provider :api) 'messages))))
                      (efrit-endpoint--providers)))
           (features (plist-get provider :features)))
      (cond ((and (plist-member provider :features) (listp features)) features)
            ((eq efrit-endpoint-api 'chat) '(usage))
            ((equal (efrit-endpoint-host) efrit-endpoint--vendor)
             efrit-endpoint--vendor-features)))))

(defun efrit-endpoint-feature-p (feature &optional model)
  "Return non-nil if the endpoint has FEATURE, and MODEL supports it.
FEATURE is a symbol; MODEL is a plist of capabilities, from the sidecar."
  (and (memq feature (efrit-endpoint-features))
       (pcase feature
         ('thinking (eq (plist-get model :adaptive_thinking) t))
         ('task-budget (eq (plist-get model :task_budgets) t))
         ('binding (eq (plist-get model :binding) t))
         (_ t))))

(defun efrit-endpoint-params ()
  "Return what the sidecar needs to know of the endpoint, a plist, or nil.
It is the param `endpoint' of the sidecar's methods, which is left out if nil."
  (let ((is-chat (eq efrit-endpoint-api 'chat)))
    (cl-loop for (name value)
             in `((:provider ,efrit-endpoint-provider)
                  (:api ,(and is-chat "chat"))
                  (:window ,efrit-endpoint-window)
                  (:max_output ,efrit-endpoint-max-output)
                  (:features ,(and is-chat (efrit-endpoint--sidecar-features))))
             when value append (list name value))))

(defun efrit-endpoint--sidecar-features ()
  "Return the names of the features that the sidecar heeds, a vector, or nil."
  (when-let* ((features (seq-intersection (efrit-endpoint-features)
                                          efrit-endpoint--written-features)))
    (vconcat (mapcar #'symbol-name features))))

(defun efrit-endpoint-note ()
  "Return a sentence about what the endpoint is not asked for, or nil if nothing.
Of features that the person chose for the Messages API there is no such note."
  (when (or (eq efrit-claude-features 'auto) (eq efrit-endpoint-api 'chat))
    (when-let* ((missing (seq-remove (lambda (feature)
                                       (memq (car feature) (efrit-endpoint-features)))
                                     (alist-get efrit-endpoint-api efrit-endpoint--missing))))
      (format "%s gets plain messages: %s; `efrit-claude-features' says what it knows"
              (efrit-endpoint-host)
              (mapconcat (lambda (feature) (concat "no " (cdr feature))) missing ", ")))))

(defun efrit-endpoint-key-variable ()
  "Return the name of the environment variable for the endpoint's key, or nil.
The endpoint needs a key if there is such a name."
  (if (equal (efrit-endpoint-host) efrit-endpoint--vendor)
      "ANTHROPIC_API_KEY"
    (seq-some (lambda (provider) (plist-get provider :key)) (efrit-endpoint--providers))))

(defun efrit-endpoint--key (host)
  "Return the key for HOST from `auth-source' or the environment, or nil."
  (let* ((found (efrit-endpoint--auth-source-key host))
         (secret (plist-get found :secret)))
    (or (if (functionp secret) (funcall secret) secret)
        (efrit-endpoint--environment-key host))))

(defun efrit-endpoint--environment-key (host)
  "Return the key for HOST from the environment, or nil.
ANTHROPIC_API_KEY counts only for the hosts in `efrit-claude-key-hosts'."
  (let* ((variable (if (member host efrit-claude-key-hosts)
                       "ANTHROPIC_API_KEY"
                     (efrit-endpoint-key-variable)))
         (key (and variable
                   (or (not (equal variable "ANTHROPIC_API_KEY"))
                       (member host efrit-claude-key-hosts))
                   (getenv variable))))
    (and key (not (string-empty-p key)) key)))

(declare-function auth-source-search "auth-source" (&rest spec))
(declare-function auth-source-forget "auth-source" (spec))

(defun efrit-endpoint--auth-source-key (host)
  "Return the entry of `auth-source' for HOST, or nil.
`auth-source' caches a failed search: drop that, since the key may be new."
  (require 'auth-source)
  (let ((wanted (list :host host :user "apikey" :max 1)))
    (or (car (apply #'auth-source-search wanted))
        (progn
          (auth-source-forget wanted)
          (car (apply #'auth-source-search wanted))))))

(defconst efrit-endpoint--key-headers '("x-api-key" "authorization" "api-key" "x-goog-api-key")
  "The names of headers with a key for an endpoint, in lower case.")

(defun efrit-endpoint--own-key-p ()
  "Return non-nil if `efrit-claude-headers' has a header with a key."
  (seq-some #'efrit-endpoint--key-header-p efrit-claude-headers))

(defun efrit-endpoint--key-header-p (header)
  "Return non-nil if HEADER, a cons of name and value, has a key."
  (member (downcase (car header)) efrit-endpoint--key-headers))

(defun efrit-endpoint-own-secret-p ()
  "Return non-nil if `efrit-claude-headers' has a header with a secret."
  (seq-some #'efrit-endpoint--secret-header-p efrit-claude-headers))

(defun efrit-endpoint--secret-header-p (header)
  "Return non-nil if HEADER, a cons of name and value, has a secret by its name."
  (string-match-p "\\(?:key\\|token\\|secret\\|auth\\|authorization\\|cookie\\)\\'"
                  (downcase (car header))))

(defconst efrit-endpoint--shortest-secret 8
  "Fewest characters of a key; what local servers get in its place is shorter.")

(defun efrit-endpoint-hide-secrets (text headers)
  "Return TEXT, which a server sent, without the secrets in HEADERS.
The scheme before a secret, such as Bearer, is no part of it."
  (dolist (header headers text)
    (let ((secret (replace-regexp-in-string "\\`[A-Za-z]+ +" "" (cdr header))))
      (when (and (efrit-endpoint--secret-header-p header)
                 (>= (length secret) efrit-endpoint--shortest-secret))
        (setq text (string-replace secret "(the key)" text))))))

(defun efrit-endpoint--check-secret (host)
  "Signal a `user-error' if a key for HOST would go over the network unencrypted."
  (unless (or efrit-claude-key-in-clear
              (equal (url-type (url-generic-parse-url efrit-claude-url)) "https")
              (efrit-endpoint--loopback-p host))
    (user-error "The key for %s would go there over plain http, for everybody on the way to \
read: use https, or set `efrit-claude-key-in-clear'" host)))

(defun efrit-endpoint--loopback-p (host)
  "Return non-nil if HOST is a loopback name or address of this machine."
  (or (member (downcase host) '("localhost" "::1" "[::1]"))
      (string-match-p "\\`127\\.[0-9]+\\.[0-9]+\\.[0-9]+\\'" host)))

;;; curl

;; curl reads its options and the headers, the key among them, from its
;; standard input; the body comes from a file that only its owner can read.
;; So the list of processes shows neither the key nor the body.

(defconst efrit-http--most-head 1000000
  "Most bytes that may come before the body of a reply.")

(cl-defstruct (efrit-http (:constructor efrit-http--create) (:copier nil))
  "An HTTP request of a curl process.
ON-DATA is called with each part of the reply's body, a unibyte string, and
ON-END once, with nil or an error text.  STATUS is the reply's status and
HEADERS an alist with lower-case names; both are nil before they are received.
HEAD collects the bytes of the headers, and HEAD-BYTES counts the bytes before
the body.  STDERR is the buffer of curl's standard error, BODY-FILE the file
with the request's body.  ENDED is non-nil once it ended or was cancelled."
  process on-data on-end status headers (head "") (head-bytes 0) stderr body-file ended)

(defvar efrit-http--warm nil
  "The process of a curl that waits for its options, or nil.")

(defun efrit-http-warm ()
  "Start the curl of the next request in advance, unless one waits already.
A quit waits until the process is stored."
  (let ((inhibit-quit t))
    (unless (or (process-live-p efrit-http--warm)
                (not (executable-find (default-value 'efrit-http-program))))
      (efrit-http-cool)
      (setq efrit-http--warm (efrit-http--spawn)))))

(defun efrit-http-cool ()
  "End the curl that was started in advance."
  (let ((inhibit-quit t))
    (when efrit-http--warm
      (efrit-http--kill efrit-http--warm))
    (setq efrit-http--warm nil)))

(defun efrit-http-post (url headers body on-data on-end)
  "Post BODY, a list of strings, to URL with HEADERS; return an `efrit-http'.
HEADERS is an alist of strings.  ON-DATA and ON-END are as in `efrit-http'.
Signal a `user-error' if curl is not installed."
  (unless (executable-find (default-value 'efrit-http-program))
    (user-error "There is no %s: install curl, or set `efrit-http-program'"
                (default-value 'efrit-http-program)))
  (let ((request (efrit-http--create
                  :on-data on-data :on-end on-end
                  :body-file (efrit-http--write-body body))))
    (condition-case err
        (efrit-http--start request url headers)
      (error (efrit-http--clean request)
             (signal (car err) (cdr err))))
    request))

(defun efrit-http-cancel (request)
  "Stop REQUEST, an `efrit-http', without calling ON-DATA or ON-END any more."
  (setf (efrit-http-ended request) t)
  (when (process-live-p (efrit-http-process request))
    (delete-process (efrit-http-process request)))
  (efrit-http--clean request))

(declare-function server-ensure-safe-dir "server" (dir))

(defun efrit-http--write-body (body)
  "Write the strings of BODY to a new file, readable by its owner alone.
Return the file's name.  It has the process id of this Emacs, so that another
Emacs can delete the file if this one was killed."
  (require 'server)
  (server-ensure-safe-dir (default-value 'efrit-http-directory))
  (efrit-http--delete-stale-files)
  (let ((file (make-temp-file (expand-file-name (format "body-%d-" (emacs-pid))
                                                (default-value 'efrit-http-directory))))
        (coding-system-for-write 'utf-8-unix))
    (with-temp-buffer
      (mapc #'insert body)
      (write-region nil nil file nil 'silent))
    file))

(defun efrit-http--delete-stale-files ()
  "Delete the files of request bodies whose Emacs does not run any more."
  (dolist (file (directory-files (default-value 'efrit-http-directory) t "\\`body-[0-9]+-" t))
    (string-match "body-\\([0-9]+\\)-[^/]*\\'" file)
    (unless (efrit-http--writer-lives-p (string-to-number (match-string 1 file)) file)
      (ignore-errors (delete-file file)))))

(defun efrit-http--writer-lives-p (pid file)
  "Return non-nil if the process PID that wrote FILE is still running.
A process that began after FILE was written has only reused the number PID."
  (let ((attributes (process-attributes pid))
        (written (file-attribute-modification-time (file-attributes file))))
    (or (eql pid (emacs-pid))
        (and attributes
             (let ((start (alist-get 'start attributes)))
               (or (null start) (null written)
                   (time-less-p start (time-add written 2))))))))

(defun efrit-http--start (request url headers)
  "Send REQUEST to URL with HEADERS by the curl that waits, or by a new one."
  (let ((config (efrit-http--config request url headers))
        (warm efrit-http--warm))
    (setq efrit-http--warm nil)
    (unless (and (process-live-p warm)
                 (ignore-errors (efrit-http--send-config request warm config) t))
      (when warm
        (efrit-http--kill warm))
      (efrit-http--send-config request (efrit-http--spawn) config))))

(defun efrit-http--send-config (request process config)
  "Send CONFIG, the options of REQUEST, to PROCESS, a curl that waits."
  (process-send-string process config)
  (process-send-eof process)
  (setf (efrit-http-process request) process
        (efrit-http-stderr request) (process-get process 'stderr))
  (set-process-filter process (lambda (_ data) (efrit-http--receive request data)))
  (set-process-sentinel process (lambda (_ _event) (efrit-http--finish request)))
  (efrit-process-watch process (lambda () (efrit-http--finish request))))

(defun efrit-http--spawn ()
  "Start a curl that waits for its options, and return its process."
  (let* ((default-directory temporary-file-directory)
         ;; A buffer-local `exec-path' may find another curl, a project's.
         (exec-path (efrit-exec-path))
         (process-environment (default-value 'process-environment))
         (stderr (generate-new-buffer " *efrit-curl-stderr*" t))
         (process (make-process
                   :name "efrit-curl"
                   :command (list (default-value 'efrit-http-program) "-q" "--config" "-")
                   :connection-type 'pipe
                   :coding 'no-conversion
                   :noquery t
                   :stderr stderr
                   :filter #'ignore
                   :sentinel #'ignore)))
    (process-put process 'stderr stderr)
    (when-let* ((errors (get-buffer-process stderr)))
      (set-process-query-on-exit-flag errors nil)
      (set-process-sentinel errors #'ignore))
    process))

(defun efrit-http--kill (process)
  "Kill PROCESS, a curl, and the buffer of its standard error."
  (set-process-sentinel process #'ignore)
  (delete-process process)
  (efrit-http--drop-buffer (process-get process 'stderr)))

(defun efrit-http--config (request url headers)
  "Return curl's configuration for REQUEST to URL with HEADERS."
  (efrit-http-options
   url (cons '("expect" . "") headers)
   "show-error\n"
   (efrit-http-option "request" "POST")
   (efrit-http-option "data-binary" (concat "@" (efrit-http-body-file request)))
   (efrit-http-option "connect-timeout" (format "%s" efrit-http-connect-timeout))
   (efrit-http-option "speed-limit" "1")
   (efrit-http-option "speed-time" (format "%d" efrit-http-silence-timeout))))

(defun efrit-http-options (url headers &rest more)
  "Return curl's configuration for URL with HEADERS, a unibyte string.
MORE are further lines of it.  `efrit-http-parse' parses what curl prints."
  (encode-coding-string
   (concat
    ;; Else a proxy's reply to CONNECT would stand before the headers.
    "silent\nno-buffer\ninclude\nsuppress-connect-headers\n"
    (efrit-http-option "url" url)
    (apply #'concat more)
    (mapconcat (lambda (header)
                 (efrit-http-option "header" (format "%s: %s" (car header) (cdr header))))
               headers ""))
   'utf-8-unix))

(defun efrit-http-option (name value)
  "Return the line of curl's configuration for the option NAME with VALUE."
  (when (string-match-p "[\n\r\0]" value)
    (user-error "The %s of the request has a line break in it" name))
  (format "%s = \"%s\"\n" name (replace-regexp-in-string "[\\\"]" "\\\\\\&" value)))

(defun efrit-http--receive (request data)
  "Add DATA, bytes of the reply, to the headers or pass it to ON-DATA of REQUEST."
  (cond
   ((efrit-http-ended request))
   ((efrit-http-status request) (funcall (efrit-http-on-data request) data))
   ((> (cl-incf (efrit-http-head-bytes request) (length data)) efrit-http--most-head)
    (efrit-http-cancel request)
    (funcall (efrit-http-on-end request)
             (format "more than %d bytes came before the reply" efrit-http--most-head)))
   (t
    (setf (efrit-http-head request) (concat (efrit-http-head request) data))
    (efrit-http--read-head request))))

(defun efrit-http--read-head (request)
  "Parse the headers of the reply to REQUEST, if they are complete."
  (pcase (efrit-http-parse (efrit-http-head request))
    (`(,status ,headers ,body)
     (setf (efrit-http-status request) status
           (efrit-http-headers request) headers
           (efrit-http-head request) body)
     (unless (string-empty-p body)
       (funcall (efrit-http-on-data request) body)))))

(defun efrit-http-parse (output)
  "Return the reply in curl's OUTPUT as (STATUS HEADERS BODY).
Return nil if the headers are not complete.  HEADERS is an alist with names in
lower case.  Informational replies, with a status of 1xx, are skipped."
  (let ((start 0)
        end reply)
    (while (and (null reply) (setq end (string-search "\r\n\r\n" output start)))
      (let ((lines (split-string (substring output start end) "\r\n")))
        (setq start (+ end 4))
        (when (string-match "\\`HTTP/[0-9.]+ \\([02-9][0-9]*\\)" (car lines))
          (setq reply (list (string-to-number (match-string 1 (car lines)))
                            (efrit-http--parse-headers (cdr lines))
                            (substring output start))))))
    reply))

(defun efrit-http--parse-headers (lines)
  "Return the headers in LINES, strings, as an alist with lower-case names."
  (cl-loop for line in lines
           when (string-match "\\`\\([^:]+\\):[ \t]*\\(.*\\)\\'" line)
           collect (cons (downcase (match-string 1 line)) (match-string 2 line))))

(defun efrit-http--finish (request)
  "End REQUEST and call ON-END, if its process has ended and REQUEST has not."
  (let ((process (efrit-http-process request)))
    (unless (or (efrit-http-ended request) (process-live-p process))
      (setf (efrit-http-ended request) t)
      (accept-process-output (get-buffer-process (efrit-http-stderr request)) 0)
      (let ((problem (efrit-http--problem request process)))
        (efrit-http--clean request)
        (funcall (efrit-http-on-end request) problem)))))

(defun efrit-http--problem (request process)
  "Return why PROCESS, the curl of REQUEST, failed, or nil if it succeeded."
  (unless (and (eq (process-status process) 'exit)
               (zerop (process-exit-status process)))
    (let ((said (string-trim (or (efrit-with-live-buffer (efrit-http-stderr request)
                                   (buffer-string))
                                 ""))))
      (if (string-empty-p said)
          (format "%s ended with %s" (default-value 'efrit-http-program)
                  (process-exit-status process))
        said))))

(defun efrit-http--clean (request)
  "Delete the body's file of REQUEST and kill the buffer of its standard error."
  (when (efrit-http-process request)
    (efrit-process-unwatch (efrit-http-process request)))
  (ignore-errors (delete-file (efrit-http-body-file request)))
  (efrit-http--drop-buffer (efrit-http-stderr request)))

(defun efrit-http--drop-buffer (buffer)
  "Kill BUFFER, the standard error of a curl, and its process, if it is live."
  (efrit-with-live-buffer buffer
    (when-let* ((errors (get-buffer-process buffer)))
      (delete-process errors))
    (kill-buffer)))

;;; Server-sent events

;; Parses the bytes of a stream, however they are split when they come, and
;; calls a function with the data of each event, a decoded string.

(defconst efrit-sse--max-event-bytes 16000000
  "Most bytes of an event; a longer one is an error.")

(cl-defstruct (efrit-sse (:constructor efrit-sse-create) (:copier nil))
  "A reader of server-sent events.
ON-EVENT is called with the data of each event, a string.  PIECES lists the
bytes of the line that has not ended yet, and DATA the data lines of the event
that has not ended yet, both the latest first.  SIZE counts their bytes."
  on-event pieces data (size 0))

(defun efrit-sse-feed (reader bytes)
  "Parse BYTES, a unibyte string, by READER, and call its ON-EVENT.
Signal an error if an event is too long."
  (let ((start 0)
        end)
    (while (setq end (string-search "\n" bytes start))
      (let ((line (apply #'concat (reverse (cons (substring bytes start end)
                                                 (efrit-sse-pieces reader))))))
        (setf (efrit-sse-pieces reader) nil)
        (efrit-sse--count reader (- end start))
        (efrit-sse--line reader (string-remove-suffix "\r" line)))
      (setq start (1+ end)))
    (when (< start (length bytes))
      (efrit-sse--count reader (- (length bytes) start))
      (push (substring bytes start) (efrit-sse-pieces reader)))))

(defun efrit-sse--count (reader bytes)
  "Add BYTES to the size of READER's event; signal an error if it is too long."
  (when (> (cl-incf (efrit-sse-size reader) bytes) efrit-sse--max-event-bytes)
    (error "An event has more than %d bytes" efrit-sse--max-event-bytes)))

(defun efrit-sse--line (reader line)
  "Parse LINE, a string without its end, by READER; an empty LINE ends an event."
  (cond
   ((string-empty-p line)
    (setf (efrit-sse-size reader) 0)
    (when-let* ((data (efrit-sse-data reader)))
      (setf (efrit-sse-data reader) nil)
      (funcall (efrit-sse-on-event reader)
               (decode-coding-string (mapconcat #'identity (reverse data) "\n") 'utf-8))))
   ((not (string-prefix-p "data:" line))
    (setf (efrit-sse-size reader) (max 0 (- (efrit-sse-size reader) (length line)))))
   (t
    (push (string-remove-prefix " " (substring line 5)) (efrit-sse-data reader)))))

;;; Replies

;; A reply is a list of blocks, as the Messages API has them; another API's
;; events are made into these.  The fragments of a block are stored as
;; received.  The input of a tool goes to the sidecar unparsed.  Permissions,
;; questions, the work log and the tool use only the input that the sidecar
;; returns.

(cl-defstruct (efrit-block (:constructor efrit-block-create) (:copier nil))
  "A block of a reply.
TYPE is a string.  PIECES are the fragments of its text, its thinking or the
JSON of its input, the latest first.  Only a tool use has ID and NAME, only
thinking has SIGNATURE.  INDEX is the number of the block in the stream, or nil.
EXTRA is an alist of other members that the sidecar stores with the block.
OBJECT is the hash table that began the block.
DONE is non-nil once the block has ended.  INPUT is a tool use's input as the
sidecar parsed it, a JSON text.  PROBLEM says why the sidecar could not parse
the input, or is nil; MISFIT says how the input breaks its schema, or is nil."
  type index pieces id name signature extra object done input problem misfit)

(cl-defstruct (efrit-reply (:constructor efrit-reply-create) (:copier nil))
  "A reply, as far as it has been received.
BLOCKS are its blocks, the latest first.  USAGE is a hash table of the usage
that the server reported, with the names of the Messages API.  STOP-REASON is a
string of that API, or nil before it was received.  PROBLEM is the event with
an error, a hash table, or nil.  OVER is non-nil once the last event was
received.  MARKED is non-nil once the mark was received that ends streams in
some APIs.  EXTRAS is an alist with the \"input_transformations\" and
\"diagnostics\" that were received."
  id blocks (usage (make-hash-table :test #'equal)) stop-reason problem over marked extras)

(defconst efrit-reply--longest-reason 100
  "Most characters of a stop reason; the sidecar takes no longer one.")

(defun efrit-reply-add-block (reply block)
  "Add BLOCK to REPLY; return a list of the event (begin BLOCK)."
  (push block (efrit-reply-blocks reply))
  (list (list 'begin block)))

(defun efrit-reply-add-tool-use (reply &rest members)
  "Add a tool use with MEMBERS of `efrit-block' to REPLY; return a list of events.
Replace an id that is missing, short or not new, and a name without letters:
servers number the calls of each reply anew, and models invent names, but no
API takes either back."
  (let ((block (apply #'efrit-block-create :type "tool_use" members)))
    (setf (efrit-block-id block) (efrit-reply--usable-id reply (efrit-block-id block))
          (efrit-block-name block) (efrit-reply-usable-name (efrit-block-name block)))
    (efrit-reply-add-block reply block)))

(defun efrit-reply--usable-id (reply id)
  "Return ID if it can be that of a new tool use in REPLY, else a random one."
  (if (and (stringp id)
           (string-match-p "\\`[A-Za-z0-9_-]\\{9,200\\}\\'" id)
           (not (cl-find id (efrit-reply-blocks reply) :key #'efrit-block-id :test #'equal)))
      id
    (let ((characters "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
      (apply #'string (cl-loop repeat 9
                               collect (aref characters (random (length characters))))))))

(defun efrit-reply-usable-name (name)
  "Return NAME, that of a tool, with the characters replaced that no API takes."
  (let ((usable (replace-regexp-in-string "[^A-Za-z0-9_-]+" "_"
                                          (string-trim (if (stringp name) name "")))))
    (cond ((string-empty-p usable) "unnamed")
          ((> (length usable) 128) (substring usable 0 128))
          (t usable))))

(defun efrit-reply-add-piece (block piece)
  "Add PIECE, a string or nil, to BLOCK.
Return a list of the event (piece BLOCK PIECE), or nil if PIECE is empty."
  (unless (memq piece '(nil :null))
    (unless (string-empty-p piece)
      (push piece (efrit-block-pieces block))
      (list (list 'piece block piece)))))

(defun efrit-reply-end-block (block)
  "Mark BLOCK as done; return a list of the event (end BLOCK), or nil if it was."
  (unless (efrit-block-done block)
    (setf (efrit-block-done block) t)
    (list (list 'end block))))

(defun efrit-reply-stop (reply reason)
  "Store REASON, why the model stopped, in REPLY, unless it is no stop reason."
  (when (and (stringp reason) (<= (length reason) efrit-reply--longest-reason))
    (setf (efrit-reply-stop-reason reply) reason)))

(defun efrit-reply-finish (reply)
  "Mark REPLY and its blocks as complete; return a list of the blocks' events.
Some servers neither end each block nor say why the model stopped."
  (setf (efrit-reply-over reply) t)
  (prog1 (mapcan #'efrit-reply-end-block (reverse (efrit-reply-blocks reply)))
    (unless (efrit-reply-stop-reason reply)
      (efrit-reply-stop reply (if (efrit-reply-tool-uses reply) "tool_use" "end_turn")))))

(defun efrit-reply-empty-p (reply)
  "Return non-nil if REPLY has neither text nor a tool use; thinking is nothing."
  (cl-every (lambda (block)
              (pcase (efrit-block-type block)
                ("thinking" t)
                ("text" (string-blank-p (efrit-block-text block)))))
            (efrit-reply-blocks reply)))

(defun efrit-block-text (block)
  "Return the text, the thinking, or the input as JSON of BLOCK so far.
The input is in the object that began BLOCK if none came in pieces."
  (let ((text (apply #'concat (reverse (efrit-block-pieces block)))))
    (setf (efrit-block-pieces block) (list text))
    (if (and (equal (efrit-block-type block) "tool_use") (string-blank-p text))
        (efrit-reply-input-text (and (efrit-block-object block)
                                     (gethash "input" (efrit-block-object block))))
      text)))

(defun efrit-reply-input-text (value)
  "Return VALUE, the parsed input of a tool or its JSON text, as JSON text.
It is that of an empty object if VALUE is nothing or empty."
  (cond ((member value '(nil :null "" [])) "{}")
        ((stringp value) value)
        (t (efrit-json-text value))))

(defun efrit-reply-tool-uses (reply)
  "Return each block of REPLY that is a complete tool use, in order."
  (seq-filter (lambda (block)
                (and (equal (efrit-block-type block) "tool_use")
                     (efrit-block-done block)))
              (reverse (efrit-reply-blocks reply))))

(defun efrit-reply-take-inputs (reply inputs unreadable misfits &optional names)
  "Store in each tool use of REPLY its input of INPUTS, parsed by the sidecar.
INPUTS has a plist for each tool use, in order; a tool use that it lacks gets a
problem.  UNREADABLE and MISFITS are vectors of ids with problems, as plists.
NAMES, a vector or nil, has the names of the tools, in the same order: the
model may have been given shorter ones."
  (cl-loop for block in (efrit-reply-tool-uses reply)
           for index from 0
           for input = (and (< index (length inputs)) (aref inputs index))
           for name = (and (< index (length names)) (aref names index))
           do (setf (efrit-block-name block) (or name (efrit-block-name block))
                    (efrit-block-input block) (plist-get input :input_json)
                    (efrit-block-misfit block) (efrit-reply--problem block misfits)
                    (efrit-block-problem block)
                    (cond ((efrit-reply--problem block unreadable))
                          ((equal (efrit-block-id block) (plist-get input :tool_use_id)) nil)
                          (t "the sidecar did not say what its input is")))))

(defun efrit-reply-content (reply)
  "Return the blocks of REPLY as the JSON text of an array, for the sidecar.
A text block that has not ended is included.  A tool's input is a string in
it, `input_json', since the input may be invalid JSON."
  (format "[%s]" (string-join (delq nil (mapcar #'efrit-reply--block-json
                                                (reverse (efrit-reply-blocks reply))))
                              ",")))

(defun efrit-reply-counts (reply)
  "Return a hash table of the integers in the usage of REPLY.
It is empty if all are zero: then the server does not know them."
  (let ((counts (make-hash-table :test #'equal))
        (known nil))
    (maphash (lambda (name value)
               (when (integerp value)
                 (puthash name value counts)
                 (setq known (or known (> value 0)))))
             (efrit-reply-usage reply))
    (unless known
      (clrhash counts))
    counts))

(defun efrit-reply-count (reply name)
  "Return the count named NAME, a string, in the usage of REPLY, or 0."
  (let ((count (gethash name (efrit-reply-usage reply))))
    (if (integerp count) count 0)))

(defun efrit-reply-cache-miss (reply)
  "Return the API's reason for a cache miss in REPLY, or nil."
  (let* ((said (cdr (assoc "diagnostics" (efrit-reply-extras reply))))
         (reason (and (hash-table-p said) (gethash "cache_miss_reason" said))))
    (cond ((stringp reason) reason)
          ((hash-table-p reason)
           (let ((kind (gethash "type" reason)))
             (if (stringp kind) kind (efrit-json-text reason)))))))

(defun efrit-reply--problem (block found)
  "Return the problem that FOUND, a vector of plists, has for BLOCK, or nil."
  (plist-get (cl-find (efrit-block-id block) found :test #'equal
                      :key (lambda (one) (plist-get one :tool_use_id)))
             :problem))

(defun efrit-reply--block-json (block)
  "Return BLOCK as JSON text, or nil if an API would refuse it in a message."
  (let ((text (efrit-block-text block))
        (done (efrit-block-done block))
        (signature (efrit-block-signature block))
        (extra (efrit-block-extra block)))
    (pcase (efrit-block-type block)
      ("text" (and (not (string-blank-p text))
                   (efrit-reply--json `((type . "text") (text . ,text)))))
      ("thinking" (and done (or extra (not (member signature '(nil ""))))
                       (efrit-reply--json `((type . "thinking") (thinking . ,text)
                                            ,@(and signature `((signature . ,signature)))
                                            ,@extra))))
      ("tool_use" (and done (efrit-reply--json `((type . "tool_use") (id . ,(efrit-block-id block))
                                                 (name . ,(efrit-block-name block))
                                                 (input_json . ,text) ,@extra))))
      (_ (and done (efrit-json-text (efrit-block-object block)))))))

(defun efrit-reply--json (members)
  "Return the JSON text of an object with MEMBERS, an alist."
  (efrit-json-text (mapcar (pcase-lambda (`(,name . ,value))
                             (cons name (if (stringp value) (efrit-json-replace-invalid value)
                                          value)))
                           members)))

;;; Requests

;; Sends a request, again after a failure that may pass, and returns its reply.
;; System text, tools and messages are JSON texts from the sidecar and are sent
;; unchanged: an API may accept a model's thinking only behind the same bytes.

(defconst efrit-request--most-raw 1000000
  "Most bytes that are received of a reply without events.")

(cl-defstruct (efrit-request (:constructor efrit-request--create) (:copier nil))
  "A request and its retries.
API is an `efrit-api', BODY a list of strings.  ON-EVENT and ON-END are as in
`efrit-request-send'.  ATTEMPT counts the attempts.  HTTP, READER and REPLY
belong to the present attempt; RECEIVED counts its bytes, and RAW lists those
before its first event, the latest first; BEGUN is non-nil from that event on.
TIMER begins the next attempt, or is nil.  LOST
lists the usage, hash tables, of attempts that failed.  ENDED is non-nil once
ON-END was called or the request cancelled.  VARIABLE is the environment
variable for the key, or nil, FEATURES those of the endpoint.  MODEL, RETRIES, DELAY, MOST and
AFTER-MOST are copies of `efrit-claude-model', `efrit-claude-retries' and the
options whose names are `efrit-claude-retry-' and DELAY, MOST or AFTER-MOST."
  api url headers body on-event on-end (attempt 0) http reader reply raw (received 0) begun
  timer lost ended variable features model retries delay most after-most)

(cl-defun efrit-request-send
    (&key system tools messages max-tokens model left-window previous-id
          on-event on-end)
  "Send a request and return an `efrit-request'.
SYSTEM and TOOLS are JSON texts, MESSAGES a list of JSON texts.  MAX-TOKENS
limits the reply.  MODEL is a plist of the model's capabilities, LEFT-WINDOW
the number of tokens that rewrites removed from the messages, PREVIOUS-ID the
id of the last reply or nil.  ON-EVENT is called with a list: (begin BLOCK),
\(piece BLOCK STRING), (end BLOCK), (retry SECONDS PROBLEM) or (again).
ON-END is called once: with the `efrit-reply' and nil, or with an empty
`efrit-reply' and a plist of the problem's `:message' and `:status'.
The usage of attempts that failed is in `efrit-request-lost'."
  (let* ((api (efrit-endpoint--api))
         (request (efrit-request--create
                   :api api :url efrit-claude-url
                   :headers (efrit-endpoint-headers model)
                   :body (efrit-request--body
                          (funcall (efrit-api-body api)
                                   (list :system system :tools tools :messages messages
                                         :max-tokens (min max-tokens (or efrit-claude-max-tokens
                                                                         max-tokens))
                                         :model model :left-window left-window
                                         :previous-id previous-id)))
                   :on-event on-event :on-end on-end
                   :variable (efrit-endpoint-key-variable)
                   :features (efrit-endpoint-features)
                   :model efrit-claude-model :retries efrit-claude-retries
                   :delay efrit-claude-retry-delay :most efrit-claude-retry-most
                   :after-most efrit-claude-retry-after-most)))
    (efrit-request--attempt request)
    request))

(defun efrit-request-cancel (request)
  "Stop REQUEST without calling ON-EVENT or ON-END; return the reply so far."
  (setf (efrit-request-ended request) t)
  (efrit-stop-timer (efrit-request-timer request))
  (when-let* ((http (efrit-request-http request)))
    (efrit-http-cancel http))
  (efrit-request-reply request))

(defun efrit-request-keep-lost-usage (request)
  "Drop the reply to REQUEST, but keep its usage in `efrit-request-lost'."
  (let ((counts (efrit-reply-counts (efrit-request-reply request))))
    (setf (efrit-request-reply request) (efrit-reply-create))
    (unless (zerop (hash-table-count counts))
      (push counts (efrit-request-lost request)))))

(defun efrit-request-retry-now (request)
  "Send REQUEST at once if it waits before a retry."
  (when (efrit-request-timer request)
    (efrit-stop-timer (efrit-request-timer request))
    (efrit-request--retry request)))

(defun efrit-request-array (texts)
  "Return TEXTS, JSON texts, as the JSON text of an array, a list of strings."
  `("[" ,@(cdr (cl-mapcan (lambda (text) (list "," text)) texts)) "]"))

(defun efrit-request--body (members)
  "Return the JSON body of a request, a list of strings to concatenate.
MEMBERS is as from the function BODY of an `efrit-api'."
  (nconc (cl-loop for (name . value) in members
                  for start = "{" then ","
                  nconc (cons (format "%s\"%s\":" start name)
                              (copy-sequence (ensure-list value))))
         (list "}")))

;;;; Attempts

(defun efrit-request--attempt (request)
  "Begin an attempt to send REQUEST; a quit waits until curl has started."
  (cl-incf (efrit-request-attempt request))
  (let ((inhibit-quit t)
        (reader (efrit-sse-create)))
    (setf (efrit-sse-on-event reader)
          (lambda (data)
            (when (eq reader (efrit-request-reader request))
              (efrit-request--event request data)))
          (efrit-request-reply request) (efrit-reply-create)
          (efrit-request-raw request) nil
          (efrit-request-received request) 0
          (efrit-request-begun request) nil
          (efrit-request-reader request) reader
          (efrit-request-http request)
          (efrit-http-post (efrit-request-url request) (efrit-request-headers request)
                           (efrit-request-body request)
                           (lambda (bytes)
                             (efrit-request--guard request #'efrit-request--data bytes))
                           (lambda (problem)
                             (efrit-request--guard
                              request #'efrit-request--attempt-ended problem))))))

(defun efrit-request--guard (request function argument)
  "Call FUNCTION with REQUEST and ARGUMENT; an error in it fails REQUEST.
Else Emacs would swallow the error, and the loop would wait for ever."
  (condition-case err
      (funcall function request argument)
    (error (efrit-request--drop request
                                (list :message (format "The reply cannot be read: %s"
                                                       (error-message-string err)))))))

(defun efrit-request--drop (request problem)
  "Cancel the present attempt of REQUEST because of PROBLEM, a plist."
  (setf (efrit-request-reader request) nil)
  (efrit-http-cancel (efrit-request-http request))
  (efrit-request--retry-or-fail request problem))

(defun efrit-request--data (request bytes)
  "Parse BYTES of the reply to REQUEST, and store them until an event has come."
  (let* ((http (efrit-request-http request))
         (received (cl-incf (efrit-request-received request) (length bytes)))
         (is-ok (eql (efrit-http-status http) 200))
         (is-stream (string-match-p "event-stream"
                                    (or (efrit-request--header request "content-type") ""))))
    (unless (or (efrit-request-begun request) (> received efrit-request--most-raw))
      (push bytes (efrit-request-raw request)))
    (cond
     ((and (> received efrit-request--most-raw)
           (not (and is-ok (or is-stream (efrit-request-begun request)))))
      (efrit-http-cancel http)
      (efrit-request--attempt-ended request nil))
     ((> received efrit-claude-most-bytes)
      (efrit-request--drop request
                           (list :message (format "The reply has more than %d bytes; see \
`efrit-claude-most-bytes'" efrit-claude-most-bytes))))
     (is-ok (efrit-sse-feed (efrit-request-reader request) bytes)))))

(defun efrit-request--header (request name)
  "Return the value of the header NAME, in lower case, of the reply to REQUEST."
  (cdr (assoc name (efrit-http-headers (efrit-request-http request)))))

(defun efrit-request--event (request data)
  "Add the event with the text DATA to the reply to REQUEST.
Events after the end of the reply, or after an error, are ignored."
  (setf (efrit-request-begun request) t
        (efrit-request-raw request) nil)
  (let ((reply (efrit-request-reply request)))
    (cond
     ((or (efrit-request-ended request)
          (efrit-reply-over reply)
          (efrit-reply-problem reply)))
     ((equal (string-trim data) "[DONE]")
      (setf (efrit-reply-marked reply) t))
     (t (pcase (efrit-request--take request data)
          ('broken
           (efrit-request--drop request
                                (list :message "The stream had an event that cannot be read"
                                      :passing t)))
          (events (mapc (efrit-request-on-event request) events)))))))

(defun efrit-request--take (request text)
  "Add the JSON object in TEXT to the reply to REQUEST.
Return what to show of it, a list of events, or `broken' if it cannot be read."
  (condition-case nil
      (let ((object (efrit-json-parse text))
            (reply (efrit-request-reply request)))
        (if (efrit-words-error-p object)
            (ignore (setf (efrit-reply-problem reply) object))
          (funcall (efrit-api-event (efrit-request-api request)) reply object)))
    (error 'broken)))

(defun efrit-request--attempt-ended (request problem)
  "Finish, retry or fail REQUEST; PROBLEM is why curl failed, a string, or nil."
  (let* ((reply (efrit-request-reply request))
         (status (efrit-http-status (efrit-request-http request))))
    (cond
     ((efrit-request-ended request))
     ((efrit-reply-problem reply)
      (efrit-request--retry-or-fail
       request (efrit-request--problem request nil (efrit-reply-problem reply) nil)))
     ((efrit-reply-over reply) (efrit-request--finish request nil))
     ((or (efrit-reply-stop-reason reply) (efrit-reply-marked reply))
      (mapc (efrit-request-on-event request) (efrit-reply-finish reply))
      (efrit-request--finish request nil))
     ((and status (/= status 200))
      (efrit-request--retry-or-fail request (efrit-request--refusal request status)))
     ((efrit-request-raw request) (efrit-request--take-whole request))
     (t (efrit-request--retry-or-fail
         request (efrit-request--broken-stream-problem problem status))))))

(defun efrit-request--take-whole (request)
  "Take a reply to REQUEST that is no stream: a JSON object, or an explanation."
  (let* ((text (efrit-request--raw-text request))
         (reply (efrit-request-reply request))
         (events (efrit-request--take request text)))
    (cond
     ((efrit-reply-problem reply)
      (efrit-request--retry-or-fail
       request (efrit-request--problem request nil (efrit-reply-problem reply) nil)))
     ((efrit-reply-over reply)
      (mapc (efrit-request-on-event request) events)
      (efrit-request--finish request nil))
     (t
      (efrit-request--retry-or-fail
       request (list :message (format "%s answered with no event stream: %s"
                                      (efrit-request-url request)
                                      (efrit-request--safe
                                       request (or (efrit-words-of-body text) "nothing")))))))))

(defun efrit-request--raw-text (request)
  "Return the text of the reply to REQUEST, which has no events."
  (decode-coding-string (apply #'concat (reverse (efrit-request-raw request))) 'utf-8))

(defun efrit-request--broken-stream-problem (problem status)
  "Return the problem, a plist, of a stream that ended before its reply did.
PROBLEM is why curl failed, or nil; STATUS is the HTTP status, or nil for none."
  (list :message (cond ((null problem) "The stream ended before the reply did")
                       (status (format "The stream broke off: %s" problem))
                       (t (format "The endpoint cannot be reached: %s" problem)))
        :passing t))

(defun efrit-request--retry-or-fail (request problem)
  "Retry REQUEST after a delay if PROBLEM may pass and retries are left.
Else end it with PROBLEM, a plist.  Keep the usage of the failed attempt."
  (efrit-request-keep-lost-usage request)
  (if (and (plist-get problem :passing)
           (<= (efrit-request-attempt request) (efrit-request-retries request)))
      (let ((delay (or (plist-get problem :retry-after)
                       (min (efrit-request-most request)
                            (* (efrit-request-delay request)
                               (expt 2 (1- (efrit-request-attempt request))))))))
        (setf (efrit-request-timer request)
              (efrit-run-at-time delay nil #'efrit-request--retry request))
        (funcall (efrit-request-on-event request) (list 'retry delay problem)))
    (efrit-request--finish request problem)))

(defun efrit-request--retry (request)
  "Begin the next attempt of REQUEST, unless it has ended meanwhile."
  (setf (efrit-request-timer request) nil)
  (unless (efrit-request-ended request)
    (funcall (efrit-request-on-event request) '(again))
    (condition-case err
        (efrit-request--attempt request)
      (error (efrit-request--finish request (list :message (error-message-string err)))))))

(defun efrit-request--finish (request problem)
  "End REQUEST, unless it has ended; call ON-END with PROBLEM, a plist or nil."
  (unless (efrit-request-ended request)
    (setf (efrit-request-ended request) t)
    (funcall (efrit-request-on-end request) (efrit-request-reply request) problem)))

;;;; Errors

;; The person is told what the server said, in its own words, and what can be
;; done about it.

(defconst efrit-request--most-error-characters 1000
  "Most characters of an endpoint's error message that are shown.")

(defconst efrit-request--too-long
  (concat "prompt is too long\\|context_length_exceeded\\|exceed_context_size"
          "\\|context ?window\\|\\(?:maximum\\|available\\|model's\\|the\\) context \\(?:length\\|size\\)"
          "\\|context length of\\|maximum \\(?:prompt\\|input\\) length"
          "\\|input token count\\|too many \\(?:input \\)?tokens\\|reduce the length of the \\(?:messages\\|prompt\\)")
  "Regular expression for what servers say of a prompt that is too long.")

(defconst efrit-request--window-size
  (concat "\\(?:\\(?:context \\(?:length\\|size\\|window\\)\\|\\(?:prompt\\|input\\) length\\|tokens allowed\\)"
          "\\(?: is\\| of\\)?\\(?: only\\)?[ :(]*\\|> \\)\\([0-9][0-9,]*\\)"
          "\\|\\([0-9][0-9,]*\\)\\(?: tokens?\\)? maximum")
  "Regular expression for the size of the window in an error; it is a group.")

(defun efrit-request--refusal (request status)
  "Return the problem, a plist, of REQUEST, whose reply has an error STATUS."
  (let* ((text (efrit-request--raw-text request))
         (place (and (<= 300 status 399) (efrit-request--header request "location")))
         (after (efrit-request--retry-after (efrit-request--header request "retry-after")
                                            (efrit-request-after-most request))))
    (append (efrit-request--problem
             request status (ignore-errors (efrit-json-parse text))
             (if place
                 (format "redirects to %s; set `efrit-claude-url'" place)
               (efrit-words-of-body text)))
            (and after (list :retry-after after)))))

(defun efrit-request--retry-after (said most)
  "Return the seconds to wait, at most MOST, or nil.
SAID is the value of a retry-after header, or nil: a number or a date.
Anything else, and a past date, is ignored."
  (let ((seconds (cond
                  ((null said) nil)
                  ((string-match-p "\\`[0-9]+\\(?:\\.[0-9]*\\)?\\'" said)
                   (string-to-number said))
                  ((when-let* ((date (ignore-errors (date-to-time said)))
                               (left (ceiling (- (float-time date) (float-time)))))
                     (and (> left 0) left))))))
    (and seconds (min seconds most))))

(defun efrit-request--problem (request status error words)
  "Return the endpoint's ERROR about REQUEST as a plist for ON-END.
ERROR may be any parsed JSON or nil; STATUS is the HTTP status, or nil if it
was none of an error.  WORDS are what the server said, or nil if ERROR says it."
  (let* ((kinds (efrit-words-kinds error))
         (status (or status (efrit-words-status error)))
         (said (efrit-request--safe request (or words (efrit-words-of-error error) (car kinds)
                                                "no reason was given")))
         (is-too-long (let ((case-fold-search t))
                        (seq-some (apply-partially #'string-match-p efrit-request--too-long)
                                  (cons said kinds))))
         (advice (if is-too-long
                     (efrit-request--window-advice said)
                   (efrit-request--advice request status said))))
    (list :status status
          :message (concat (if status (format "%d: " status) "") said
                           (and advice (concat "  " advice)))
          :passing (and (not is-too-long)
                        (efrit-request--passing-p request status kinds)))))

(defun efrit-request--passing-p (request status kinds)
  "Return non-nil if an error of REQUEST with STATUS and KINDS may pass."
  (let ((verdicts (mapcar (efrit-api-error (efrit-request-api request)) kinds)))
    (and (not (memq 'lasting verdicts))
         (or (memq 'passing verdicts)
             (memql status '(408 429))
             (and status (>= status 500))))))

(defun efrit-request--safe (request words)
  "Return WORDS, which a server said about REQUEST, as a short line for the person.
Keys that the server repeats are left out, and hidden characters visible."
  (let ((line (efrit-endpoint-hide-secrets
               (replace-regexp-in-string "[ \t\n\r]+" " " (string-trim words))
               (efrit-request-headers request))))
    (truncate-string-to-width
     (efrit-permissions-visible
      (substring line 0 (min (length line) efrit-request--most-error-characters)))
     efrit-request--most-error-characters nil nil t)))

(defun efrit-request--advice (request status said)
  "Return advice to the person about an error of REQUEST with STATUS, or nil.
SAID is the message of the error."
  (pcase status
    (401 (format "The key was refused: M-x efrit-add-key shows it%s."
                 (if (efrit-request-variable request)
                     (concat ", or check " (efrit-request-variable request))
                   "")))
    ((or 402 403) "The account may not do this: check its credit and permissions.")
    ((or 404 405) (efrit-request--not-found-advice request))
    (413 "Lower `efrit-budget-total-target'.")
    ((or 400 422)
     (cond
      ((efrit-request--feature-advice request said))
      ((string-match-p "credit" said) "Check the account's credit.")
      ((string-match-p "Invalid signature in thinking" said)
       "The conversation's past was changed: this is a defect of efrit's.")))))

(defconst efrit-request--features
  '(("thought_signature" wanted thought-signatures)
    ("reasoning_content" wanted reasoning-back)
    ("tool call id was .* length of 9" wanted short-ids)
    ("after role 'tool'\\|roles must alternate" wanted alternation)
    ("max_completion_tokens" wanted max-completion-tokens)
    ("stream_options" refused usage)
    ("reasoning_effort" refused effort)
    ("'developer'\\|role developer" refused developer)
    ("image" refused images))
  "Regular expressions for what servers say of features that they want or refuse.")

(defun efrit-request--feature-advice (request said)
  "Return advice about a feature that the server of REQUEST wants or refuses.
SAID is its message.  Return nil if the request was written so already."
  (let ((case-fold-search t))
    (cl-loop for (words verdict feature) in efrit-request--features
             for is-used = (memq feature (efrit-request-features request))
             when (and (if (eq verdict 'wanted) (not is-used) is-used)
                       (string-match-p words said))
             return (format "The server %s the feature `%s': %s the `:features' of its provider in \
`efrit-providers', then choose it again by M-x efrit-model."
                            (if is-used "refuses" "wants") feature
                            (if is-used "take it out of" "add it to")))))

(defun efrit-request--window-advice (said)
  "Return advice to the person about a prompt that is too long.
SAID is the server's message, which may name the size of the window."
  (let ((case-fold-search t))
    (format "%s (M-x efrit-add-provider, or `efrit-endpoint-window'), or lower \
`efrit-budget-total-target'."
            (if (string-match efrit-request--window-size said)
                (format "Set the model's window to %s"
                        (string-replace "," "" (or (match-string 1 said) (match-string 2 said))))
              "Set the model's window"))))

(defun efrit-request--not-found-advice (request)
  "Return advice to the person about REQUEST, whose address was not found.
An address that does not end like the API's is more likely the reason than
the model is."
  (let ((url (efrit-request-url request))
        (path (efrit-api-path (efrit-request-api request))))
    (if (string-match-p (concat (regexp-quote path) "/?\\(?:[?#]\\|\\'\\)") url)
        (format "Is there a model %s?  M-x efrit-model chooses another."
                (efrit-request-model request))
      (let ((base (string-remove-suffix "/" url)))
        (format "The address %s does not end in %s: set `efrit-claude-url' to %s, \
then M-x efrit-take-options."
                url path
                (concat base (if (string-match-p "/v[0-9]" base) "" "/v1") path))))))

;;;; The words of a server

(defconst efrit-words--members '("message" "msg" "detail" "error" "errors" "description")
  "Names of the members of an error that may have its text, the best first.")

(defconst efrit-words--most-characters 100000
  "Most characters of a page whose text is looked at.")

(defun efrit-words-error-p (object)
  "Return non-nil if OBJECT, a parsed event or reply, is an error.
Signal an error if it is no object."
  (or (not (memq (gethash "error" object) '(nil :null :false)))
      (equal (gethash "type" object) "error")
      (equal (gethash "object" object) "error")))

(defun efrit-words-of-body (text)
  "Return the message in TEXT, the body of an error, or nil if it is blank.
It may be JSON of any form, HTML, or plain text."
  (cond ((string-blank-p text) nil)
        ((string-match-p "\\`[ \t\n\r\ufeff]*<" text)
         (or (efrit-words--of-page text) text))
        ((efrit-words-of-error (ignore-errors (efrit-json-parse text))))
        (t text)))

(defun efrit-words-of-error (error &optional depth)
  "Return the text in ERROR, parsed JSON of any form, or nil if it has none.
DEPTH is the number of values around ERROR."
  (let ((depth (1+ (or depth 0))))
    (cond
     ((stringp error) (and (not (string-blank-p error)) error))
     ((> depth 5) nil)
     ((vectorp error)
      (let ((found (delq nil (mapcar (lambda (one) (efrit-words-of-error one depth))
                                     (seq-take error 20)))))
        (and found (string-join found "; "))))
     ((hash-table-p error)
      (when-let* ((text (seq-some (lambda (name)
                                    (efrit-words-of-error (gethash name error) depth))
                                  efrit-words--members)))
        (concat (efrit-words--place (gethash "loc" error)) text))))))

(defun efrit-words--place (place)
  "Return PLACE, a vector of names and numbers, before what is wrong there.
Return an empty string if PLACE is anything else."
  (if (and (vectorp place) (cl-every #'atom place))
      (concat (mapconcat (lambda (name) (format "%s" name)) place ".") ": ")
    ""))

(defun efrit-words-kinds (error)
  "Return the codes and types of ERROR, parsed JSON of any form, a list of strings."
  (pcase error
    ((pred vectorp) (and (> (length error) 0) (efrit-words-kinds (aref error 0))))
    ((pred hash-table-p)
     (let ((inner (gethash "error" error)))
       (if (or (hash-table-p inner) (vectorp inner))
           (efrit-words-kinds inner)
         (seq-filter (lambda (kind) (and (stringp kind) (not (equal kind "error"))))
                     (mapcar (lambda (name) (gethash name error)) '("code" "type" "status"))))))))

(defun efrit-words-status (error)
  "Return the HTTP status in ERROR, parsed JSON of any form, or nil for none."
  (pcase error
    ((pred vectorp) (and (> (length error) 0) (efrit-words-status (aref error 0))))
    ((pred hash-table-p)
     (seq-some (lambda (name)
                 (let ((value (gethash name error)))
                   (cond ((and (integerp value) (<= 400 value 599)) value)
                         ((equal name "error") (efrit-words-status value)))))
               '("code" "status" "error")))))

(defun efrit-words--of-page (html)
  "Return the title and the text of HTML, or nil if it has no text."
  (with-temp-buffer
    (insert (substring html 0 (min (length html) efrit-words--most-characters)))
    (let ((case-fold-search t)
          (title (efrit-words--delete-elements "title")))
      (mapc #'efrit-words--delete-elements '("head" "script" "style"))
      (goto-char (point-min))
      (while (re-search-forward "<[^>]*>?" nil t)
        (replace-match " " t t))
      (let ((text (efrit-words--plain (buffer-string)))
            (title (efrit-words--plain title)))
        (cond ((string-prefix-p title text) (and (not (string-empty-p text)) text))
              ((string-empty-p text) title)
              (t (concat title ": " text)))))))

(defun efrit-words--delete-elements (name)
  "Delete each element NAME of the HTML here; return the text of the first one."
  (let ((first nil))
    (goto-char (point-min))
    (while (re-search-forward (format "<%s\\(?:[ \t\n][^>]*\\)?>" name) nil t)
      (let ((start (match-beginning 0))
            (begin (point))
            (end (if (search-forward (format "</%s" name) nil 'move) (match-beginning 0) (point))))
        (setq first (or first (buffer-substring begin end)))
        (delete-region start (if (search-forward ">" nil t) (point) (point-max)))
        (goto-char start)))
    (or first "")))

(defun efrit-words--plain (text)
  "Return TEXT of an HTML page with its commonest entities and its spaces replaced."
  (pcase-dolist (`(,entity . ,character) '(("&nbsp;" . " ") ("&lt;" . "<") ("&gt;" . ">")
                                           ("&quot;" . "\"") ("&#39;" . "'") ("&amp;" . "&")))
    (setq text (string-replace entity character text)))
  (string-trim (replace-regexp-in-string "[ \t\n\r]+" " " text)))

(provide 'efrit-backend)
;;; efrit-backend.el ends here
