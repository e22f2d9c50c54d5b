;;; efrit-backend.el --- Send requests to a model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Finds the address and the key of the endpoint, posts requests by curl, and
;; splits the server-sent events of replies.

;;; Code:

(require 'efrit)
(require 'efrit-rpc)

;; `url-generic-parse-url' loads url-parse.el, which defines these functions.
(declare-function url-host "url-parse" (url))
(declare-function url-type "url-parse" (url))

;;; The endpoint

;; The endpoint's address, the features it supports besides plain messages, and
;; its key.  A key is sent only to its host, and only over https unless the host
;; is this machine or `efrit-claude-key-in-clear' allows plain http.

(defconst efrit-endpoint--vendor "api.anthropic.com"
  "The host of the vendor's own endpoint.")

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

(defun efrit-endpoint-headers (betas)
  "Return the headers of a request that asks for BETAS, a list of names.
Look for a key unless `efrit-claude-headers' has one.  Signal
`efrit-no-key' if the vendor's endpoint would get no key, and a `user-error'
if a key would be sent unencrypted."
  (let* ((host (efrit-endpoint-host))
         (own (efrit-endpoint--header-p '("x-api-key" "authorization")))
         (key (unless own
                (efrit-endpoint--key host))))
    (when (and (null key) (null own) (equal host efrit-endpoint--vendor))
      (signal 'efrit-no-key
              (list (format "There is no key for %s: put `machine %s login apikey password KEY' \
into ~/.authinfo.gpg, as M-x efrit-add-key does, or set ANTHROPIC_API_KEY" host host))))
    (when (or key (efrit-endpoint-own-secret-p))
      (efrit-endpoint--check-secret host))
    (append '(("content-type" . "application/json")
              ("anthropic-version" . "2023-06-01"))
            (and key (list (cons "x-api-key" key)))
            (and betas (list (cons "anthropic-beta" (string-join betas ","))))
            efrit-claude-headers)))

(defun efrit-endpoint-feature-p (feature &optional model)
  "Return non-nil if the endpoint has FEATURE, and MODEL supports it.
FEATURE is a symbol; MODEL is a plist of capabilities, from the sidecar."
  (and (memq feature (if (eq efrit-claude-features 'auto)
                         (and (equal (efrit-endpoint-host) efrit-endpoint--vendor)
                              '(cache thinking effort task-budget binding diagnostics))
                       efrit-claude-features))
       (pcase feature
         ('thinking (eq (plist-get model :adaptive_thinking) t))
         ('task-budget (eq (plist-get model :task_budgets) t))
         ('binding (eq (plist-get model :binding) t))
         (_ t))))

(defun efrit-endpoint-note ()
  "Return a note that the endpoint gets plain messages alone, or nil if not."
  (and (eq efrit-claude-features 'auto)
       (not (equal (efrit-endpoint-host) efrit-endpoint--vendor))
       (format "%s gets plain messages: no prompt cache, no thinking, no effort; \
`efrit-claude-features' says what it knows"
               (efrit-endpoint-host))))

(defun efrit-endpoint--key (host)
  "Return the key for HOST from `auth-source' or the environment, or nil."
  (let* ((found (efrit-endpoint--auth-source-key host))
         (secret (plist-get found :secret))
         (key (if (functionp secret) (funcall secret) secret)))
    (or key
        (and (member host efrit-claude-key-hosts)
             (getenv "ANTHROPIC_API_KEY")))))

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

(defun efrit-endpoint-own-secret-p ()
  "Return non-nil if `efrit-claude-headers' has a header with a secret."
  (efrit-endpoint--header-p '("x-api-key" "authorization" "proxy-authorization")))

(defun efrit-endpoint--header-p (names)
  "Return non-nil if `efrit-claude-headers' has one of NAMES, in lower case."
  (seq-some (lambda (header)
              (member (downcase (car header)) names))
            efrit-claude-headers))

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

(provide 'efrit-backend)
;;; efrit-backend.el ends here
