;;; efrit-http.el --- Post over curl, and read the reply as it comes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; curl reads its options and the headers, the key among them, from its
;; standard input; the body comes from a file that only its owner can read.
;; So nothing of either stands in a process list.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-process)
(require 'server)
(require 'subr-x)

;;; Options

(defcustom efrit-http-program "curl"
  "The curl that talks to the model's endpoint."
  :group 'efrit
  :type 'string)

(defcustom efrit-http-connect-timeout 30
  "How many seconds connecting may take."
  :group 'efrit
  :type 'number)

(defcustom efrit-http-silence-timeout 300
  "How many seconds an endpoint may say nothing at all before it is given up."
  :group 'efrit
  :type 'number)

(defcustom efrit-http-directory
  (let ((runtime (getenv "XDG_RUNTIME_DIR")))
    (if (and runtime (file-directory-p runtime))
        (expand-file-name "efrit" runtime)
      (locate-user-emacs-file "efrit-requests")))
  "The folder for what is being sent, which nobody else can look into.
Each request is a file there until it has ended.  It is not to be in a folder
where others can take its name first, as in that for temporary files."
  :group 'efrit
  :type 'directory)

(defconst efrit-http--most-head 1000000
  "The most bytes that may come of a reply before its body.")

;;; Structs

(cl-defstruct (efrit-http (:constructor efrit-http--create) (:copier nil))
  "A request under way.
ON-DATA is called with each stretch of the reply's body, a unibyte
string, and ON-END once, with nil or what went wrong, a string.  STATUS is
the reply's status and HEADERS an alist with lower-case names, once they
are there.  HEAD collects the headers, and HEAD-BYTES counts all that came
before the body; STDERR is the buffer with curl's
own messages, BODY-FILE holds the request's body."
  process on-data on-end status headers (head "") (head-bytes 0) stderr body-file ended)

;;; Public

(defvar efrit-http--warm nil
  "A curl that waits for its options, or nil.")

(defun efrit-http-warm ()
  "Start the curl of the next request, so that it need not be waited for."
  (unless (or (process-live-p efrit-http--warm)
              (not (executable-find (default-value 'efrit-http-program))))
    (setq efrit-http--warm (efrit-http--spawn))))

(defun efrit-http-cool ()
  "End the curl that was started for a request that does not come."
  (when (process-live-p efrit-http--warm)
    (efrit-http--kill efrit-http--warm))
  (setq efrit-http--warm nil))

(defun efrit-http-post (url headers body on-data on-end)
  "Post BODY, a list of strings, to URL with HEADERS; return an `efrit-http'.
HEADERS is an alist of strings.  ON-DATA and ON-END are those of the
struct.  Signal a `user-error' where there is no curl."
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
  "Stop REQUEST; nobody is told of its end any more."
  (setf (efrit-http-ended request) t)
  (when (process-live-p (efrit-http-process request))
    (delete-process (efrit-http-process request)))
  (efrit-http--clean request))

(defun efrit-http-header (request name)
  "Return the header NAME, in lower case, of the reply to REQUEST, or nil."
  (cdr (assoc name (efrit-http-headers request))))

;;; Private

(defun efrit-http--write-body (body)
  "Write the strings of BODY to a new file, and return its name.
Only its owner can read it, and its name says whose it is: an Emacs that is
killed cannot delete it.  A buffer joins them: strings of that size would
be garbage."
  (server-ensure-safe-dir (default-value 'efrit-http-directory))
  (efrit-http--sweep)
  (let ((file (make-temp-file (expand-file-name (format "body-%d-" (emacs-pid))
                                                (default-value 'efrit-http-directory))))
        (coding-system-for-write 'utf-8-unix))
    (with-temp-buffer
      (mapc #'insert body)
      (write-region nil nil file nil 'silent))
    file))

(defun efrit-http--sweep ()
  "Delete what an Emacs that is gone was sending."
  (dolist (file (directory-files (default-value 'efrit-http-directory) t "\\`body-[0-9]+-" t))
    (string-match "body-\\([0-9]+\\)-[^/]*\\'" file)
    (unless (efrit-http--writer-lives-p (string-to-number (match-string 1 file)) file)
      (ignore-errors (delete-file file)))))

(defun efrit-http--writer-lives-p (pid file)
  "Return non-nil if the process PID, which wrote FILE, is still there.
One that began after FILE was written has got the number anew."
  (let ((attributes (process-attributes pid))
        (written (file-attribute-modification-time (file-attributes file))))
    (or (eql pid (emacs-pid))
        (and attributes
             (let ((start (alist-get 'start attributes)))
               (or (null start) (null written)
                   (time-less-p start (time-add written 2))))))))

(defun efrit-http--start (request url headers)
  "Start curl for REQUEST to URL with HEADERS.
One that waits is taken, unless it has ended meanwhile."
  (let ((config (efrit-http--config request url headers))
        (warm efrit-http--warm))
    (setq efrit-http--warm nil)
    (unless (and (process-live-p warm)
                 (ignore-errors (efrit-http--give request warm config) t))
      (efrit-http--give request (efrit-http--spawn) config))))

(defun efrit-http--give (request process config)
  "Give PROCESS, a curl that waits, the CONFIG of REQUEST."
  (process-send-string process config)
  (process-send-eof process)
  (setf (efrit-http-process request) process
        (efrit-http-stderr request) (process-get process 'stderr))
  (set-process-filter process (lambda (_ data) (efrit-http--take request data)))
  (set-process-sentinel process (lambda (_ _event) (efrit-http--over request)))
  (efrit-process-watch process (lambda () (efrit-http--over request))))

(defun efrit-http--spawn ()
  "Start a curl that waits for its options, and return its process."
  (let* ((default-directory temporary-file-directory)
         ;; A project's own may have another curl.
         (exec-path (default-value 'exec-path))
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
  "End PROCESS, a curl, and what belongs to it."
  (set-process-sentinel process #'ignore)
  (delete-process process)
  (efrit-http--drop-buffer (process-get process 'stderr)))

(defun efrit-http--config (request url headers)
  "Return curl's options for REQUEST to URL with HEADERS, a unibyte string."
  (encode-coding-string
   (concat
    ;; What a proxy answers to CONNECT would stand before the reply's own head.
    "silent\nshow-error\nno-buffer\ninclude\nsuppress-connect-headers\n"
    (efrit-http-option "request" "POST")
    (efrit-http-option "url" url)
    (efrit-http-option "data-binary" (concat "@" (efrit-http-body-file request)))
    (efrit-http-option "connect-timeout" (format "%s" efrit-http-connect-timeout))
    (efrit-http-option "speed-limit" "1")
    (efrit-http-option "speed-time" (format "%d" efrit-http-silence-timeout))
    (mapconcat (lambda (header)
                 (efrit-http-option "header" (format "%s: %s" (car header) (cdr header))))
               (cons '("expect" . "") headers) ""))
   'utf-8-unix))

(defun efrit-http-option (name value)
  "Return the line of curl's configuration for NAME with VALUE."
  (when (string-match-p "[\n\r\0]" value)
    (user-error "The %s of the request has a line break in it" name))
  (format "%s = \"%s\"\n" name (replace-regexp-in-string "[\\\"]" "\\\\\\&" value)))

(defun efrit-http--take (request data)
  "Take DATA of the reply to REQUEST: headers first, then the body."
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
  "Read the headers of the reply to REQUEST, if they are there.
What the server says before the reply itself is passed over."
  (let ((head (efrit-http-head request))
        (start 0)
        end)
    (while (and (null (efrit-http-status request))
                (setq end (string-search "\r\n\r\n" head start)))
      (let ((lines (split-string (substring head start end) "\r\n")))
        (setq start (+ end 4))
        (unless (string-match-p "\\`HTTP/[0-9.]+ 1" (car lines))
          (efrit-http--set-head request lines))))
    (setf (efrit-http-head request) (substring head start))
    (when (and (efrit-http-status request)
               (not (string-empty-p (efrit-http-head request))))
      (funcall (efrit-http-on-data request) (efrit-http-head request)))))

(defun efrit-http--set-head (request lines)
  "Keep what LINES, the reply's head, say of REQUEST."
  (setf (efrit-http-status request)
        (and (string-match "\\`HTTP/[0-9.]+ \\([0-9]+\\)" (car lines))
             (string-to-number (match-string 1 (car lines))))
        (efrit-http-headers request)
        (cl-loop for line in (cdr lines)
                 when (string-match "\\`\\([^:]+\\):[ \t]*\\(.*\\)\\'" line)
                 collect (cons (downcase (match-string 1 line)) (match-string 2 line)))))

(defun efrit-http--over (request)
  "Tell that REQUEST has ended, once its process has."
  (let ((process (efrit-http-process request)))
    (unless (or (efrit-http-ended request) (process-live-p process))
      (setf (efrit-http-ended request) t)
      (accept-process-output (get-buffer-process (efrit-http-stderr request)) 0)
      (let ((problem (efrit-http--problem request process)))
        (efrit-http--clean request)
        (funcall (efrit-http-on-end request) problem)))))

(defun efrit-http--problem (request process)
  "Return what went wrong with REQUEST, whose PROCESS has ended, or nil."
  (unless (and (eq (process-status process) 'exit)
               (zerop (process-exit-status process)))
    (let ((said (string-trim (if (buffer-live-p (efrit-http-stderr request))
                                 (with-current-buffer (efrit-http-stderr request)
                                   (buffer-string))
                               ""))))
      (if (string-empty-p said)
          (format "%s ended with %s" (default-value 'efrit-http-program)
                  (process-exit-status process))
        said))))

(defun efrit-http--clean (request)
  "Remove what REQUEST left behind."
  (when (efrit-http-process request)
    (efrit-process-unwatch (efrit-http-process request)))
  (ignore-errors (delete-file (efrit-http-body-file request)))
  (efrit-http--drop-buffer (efrit-http-stderr request)))

(defun efrit-http--drop-buffer (buffer)
  "Kill BUFFER, of a curl's messages, if it is there."
  (when-let* ((errors (and (buffer-live-p buffer) (get-buffer-process buffer))))
    (delete-process errors))
  (when (buffer-live-p buffer)
    (kill-buffer buffer)))

(provide 'efrit-http)
;;; efrit-http.el ends here
