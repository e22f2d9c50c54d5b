;;; efrit-rpc.el --- JSON-RPC with a sidecar: JSON, calls, connections  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Reads and writes the JSON of the wire, defines calls to a sidecar, finds
;; the sidecar's program, and opens a connection to its process.

;;; Code:

(require 'efrit)
(require 'efrit-remote)

;;; JSON

;; Objects are plists with keyword keys, arrays vectors, false
;; `:json-false', true t, null nil.  The empty object is read as nil, too;
;; `efrit-json-empty-object' writes one.
;;
;; Emacs's native functions are fast, but refuse some JSON: Emacs 28 and 29
;; the character NUL, when reading, and integers beyond 64 bits; every Emacs
;; halves of surrogate pairs, as which Python writes file names that are not
;; UTF-8.  A refused reply would be lost, and its call would wait for its
;; time-out; so json.el reads and writes what the native functions refuse.

(defconst efrit-json-empty-object (make-hash-table :size 1)
  "The empty JSON object, {}, for parameters; never modify it.")

(defun efrit-json-read ()
  "Return the value of the JSON text at point, and move behind the text."
  (let ((start (point)))
    (condition-case nil
        (json-parse-buffer :object-type 'plist
                           :null-object nil :false-object :json-false)
      (json-error
       (goto-char (point-max))
       (let ((text (buffer-substring-no-properties start (point))))
         (efrit-json--decode (if enable-multibyte-characters
                                 text
                               (decode-coding-string text 'utf-8-unix t))
                             'plist 'keyword nil :json-false))))))

(defun efrit-json-write (object)
  "Return OBJECT as JSON, a unibyte string.
Signal an error if OBJECT has values that JSON lacks, such as raw bytes."
  (condition-case nil
      (json-serialize object :null-object nil :false-object :json-false)
    (args-out-of-range
     (encode-coding-string (efrit-json--encode object nil :json-false) 'utf-8-unix))))

(defun efrit-json-parse (text)
  "Return the value of the JSON TEXT, as `efrit-json-text' can write it again.
Objects are hash tables, arrays vectors, null `:null', false `:false'."
  (condition-case nil
      (json-parse-string text :null-object :null :false-object :false)
    (json-error (efrit-json--decode text 'hash-table 'string :null :false))))

(defun efrit-json-plist (text)
  "Return the object of the JSON TEXT as a plist with keyword keys.
Arrays are vectors, true is t, null and false are nil."
  (condition-case nil
      (json-parse-string text :object-type 'plist :null-object nil :false-object nil)
    (json-error (efrit-json--decode text 'plist 'keyword nil nil))))

(defun efrit-json-text (value)
  "Return VALUE, as from `efrit-json-parse', as JSON text, a string.
If VALUE is a string, replace its characters that UTF-8 cannot hold."
  (let ((written (condition-case nil
                     (json-serialize value :null-object :null :false-object :false)
                   ((args-out-of-range wrong-type-argument)
                    (efrit-json--encode
                     (if (stringp value) (efrit-json-replace-invalid value) value)
                     :null :false)))))
    (if (multibyte-string-p written)
        written
      (decode-coding-string written 'utf-8-unix t))))

(defun efrit-json-replace-invalid (string)
  "Return STRING with characters that UTF-8 cannot hold replaced by U+FFFD."
  (if (string-match-p "[^\0-\ud7ff\ue000-\U0010ffff]" string)
      (replace-regexp-in-string "[^\0-\ud7ff\ue000-\U0010ffff]" "\ufffd" string t t)
    string))

;; json.el is loaded at its first use.
(eval-when-compile
  (require 'json))
(declare-function json-encode "json" (object))
(declare-function json-read-from-string "json" (string))

(defun efrit-json--decode (text object key null false)
  "Return the value of the JSON TEXT, read by json.el.
OBJECT is the Lisp type of objects, KEY that of their keys; NULL and FALSE
are the Lisp values of null and false."
  (require 'json)
  (let ((json-object-type object)
        (json-array-type 'vector)
        (json-key-type key)
        (json-null null)
        (json-false false))
    (json-read-from-string text)))

(defun efrit-json--encode (value null false)
  "Return VALUE as JSON by json.el; write the Lisp values NULL and FALSE as such."
  (require 'json)
  (let ((json-null null)
        (json-false false))
    (json-encode value)))

;;; Calls

;; A call is a request or a notification for the sidecar: it is waiting to be
;; sent, sent, or ended, and it ends once.  Its success or failure function
;; runs from a timer, never from a process filter, which must not wait or fail.

(cl-defstruct (efrit-call (:constructor efrit-call-create) (:copier nil))
  "A call to the sidecar.
METHOD is a symbol, PARAMS a plist or nil.  KIND is `request',
`notification', or `barrier' for a call that is never sent, but is done once
the sidecar is ready.  STATE is `waiting', `sent', `done', `failed' or
`dropped'; VALUE is the result once done, and once failed the error as
`condition-case' binds it.  SUCCESS and FAILURE, functions or nil, are called
with VALUE.  HOST is the `efrit-host' whose sidecar the call is for.
CONNECTION is that over which a request was sent, ID its number there; TIMER
ends the call at its time limit."
  host method params (kind 'request) (state 'waiting) value
  success failure connection id timer)

(defvar efrit-call--queue nil
  "Function calls deferred by `efrit-defer': (FUNCTION . ARGUMENTS), oldest first.")

(defun efrit-call-open-p (call)
  "Return non-nil while CALL has not ended."
  (memq (efrit-call-state call) '(waiting sent)))

(defun efrit-call-finish (call state &optional value)
  "End CALL: set its STATE and VALUE, and defer its success or failure function.
Return t; return nil and do nothing if CALL has ended already."
  (when (efrit-call-open-p call)
    (setf (efrit-call-state call) state
          (efrit-call-value call) value)
    (efrit-stop-timer (efrit-call-timer call))
    (when (or (efrit-call-success call) (efrit-call-failure call))
      (efrit-defer #'efrit-call--notify call))
    t))

(defun efrit-call-drop (call)
  "Drop CALL, so that neither its success nor its failure function is called.
Return nil if CALL had ended, else t."
  (prog1 (and (efrit-call-open-p call) t)
    (setf (efrit-call-state call) 'dropped)
    (efrit-stop-timer (efrit-call-timer call))))

(defun efrit-call-take-back (call)
  "Set the state of CALL, which could not be sent, back to `waiting'."
  (when (eq (efrit-call-state call) 'sent)
    (setf (efrit-call-state call) 'waiting
          (efrit-call-connection call) nil
          (efrit-call-id call) nil)))

(defun efrit-call-result (call)
  "Return the value of CALL, which has ended, or signal its error.
For a dropped CALL, signal `efrit-cancelled'."
  (pcase (efrit-call-state call)
    ('done (efrit-call-value call))
    ('failed (signal (car (efrit-call-value call)) (cdr (efrit-call-value call))))
    (_ (signal 'efrit-cancelled (list "this Emacs dropped it")))))

(defun efrit-defer (function &rest arguments)
  "Call FUNCTION with ARGUMENTS soon, from a timer, in the order of deferring.
FUNCTION may access remote files: it never runs within an operation of TRAMP,
and it runs with TRAMP's cache disabled."
  (setq efrit-call--queue (nconc efrit-call--queue (list (cons function arguments))))
  (efrit-run-at-time 0 nil #'efrit-call--run-next))

(defun efrit-call--run-next ()
  "Run the oldest function call in `efrit-call--queue', once TRAMP is idle."
  (if (efrit-remote-busy-p)
      (efrit-run-at-time 0.1 nil #'efrit-call--run-next)
    (when-let* ((next (pop efrit-call--queue)))
      (efrit-remote-without-cache
        (apply (car next) (cdr next))))))

(defun efrit-call--notify (call)
  "Call the success or failure function of CALL, if it has one and is not dropped."
  (when-let* ((told (pcase (efrit-call-state call)
                      ('done (efrit-call-success call))
                      ('failed (efrit-call-failure call)))))
    (funcall told (efrit-call-value call))))

;;; The program

;; The sidecar's program is the option `efrit-sidecar-command', else the
;; program efrit-budget in the virtualenv of this package's checkout, or in that
;; where this package was installed with it, else the one on the PATH, else one
;; that uv, pipx or `efrit-doctor' installed.  It runs in a local folder and with
;; the environment of Emacs itself, whatever the current buffer visits.

(defconst efrit-directory
  (file-name-directory
   (file-truename
    (concat (file-name-sans-extension
             (or load-file-name buffer-file-name "efrit-executable"))
            ".el")))
  "The folder of this package's Lisp files, symbolic links resolved.")

(defmacro efrit-executable-locally (&rest body)
  "Run BODY in a local folder and in the environment of Emacs itself.
Buffer-local values of the folder, the environment and the variable
`exec-path' do not count."
  (declare (indent 0) (debug t))
  `(let ((default-directory (efrit-executable--local-directory))
         (process-environment (default-value 'process-environment))
         (exec-path (efrit-exec-path)))
     ,@body))

(defun efrit-executable-command ()
  "Return the sidecar's command, a list of strings, the program's file first.
Signal a `user-error' with advice if there is no such program."
  (efrit-executable-locally
   (if (default-value 'efrit-sidecar-command)
       (efrit-executable--absolute-command (ensure-list (default-value 'efrit-sidecar-command)))
     (list (or (efrit-executable--nearby)
               (executable-find "efrit-budget")
               (efrit-executable--elsewhere)
               (user-error "%s" (efrit-executable--advice)))))))

(defun efrit-executable--local-directory ()
  "Return a local folder that exists, the home folder if possible."
  (let ((home (expand-file-name "~/")))
    (if (and (not (file-remote-p home)) (file-directory-p home))
        home
      (file-name-as-directory temporary-file-directory))))

(defun efrit-executable--absolute-command (command)
  "Return COMMAND with the absolute file name of its program.
Signal a `user-error' if there is no such program."
  (cons (or (executable-find (substitute-in-file-name (car command)))
            (user-error "`efrit-sidecar-command' names %s, which is no program here; \
set it to one, or to nil" (car command)))
        (cdr command)))

(defun efrit-executable-checkout ()
  "Return the folder of the checkout that has this file, or nil if there is none."
  (let ((folder (expand-file-name ".." efrit-directory)))
    (and (file-exists-p (expand-file-name "pyproject.toml" folder))
         (file-name-as-directory folder))))

(defun efrit-executable--nearby ()
  "Return the program in the virtualenv of this package or of its checkout, or nil."
  (if-let* ((checkout (efrit-executable-checkout)))
      (efrit-executable--in-environment (expand-file-name ".venv" checkout))
    (when-let* ((environment (locate-dominating-file efrit-directory "pyvenv.cfg")))
      (efrit-executable--in-environment environment))))

(defun efrit-executable--elsewhere ()
  "Return the program that uv, pipx or `efrit-doctor' installed, or nil."
  (let ((program (expand-file-name "~/.local/bin/efrit-budget")))
    (if (file-executable-p program)
        program
      (efrit-executable--in-environment efrit-sidecar-directory))))

(defun efrit-executable--in-environment (folder)
  "Return the file of the sidecar's program in the virtualenv FOLDER, or nil."
  (seq-find #'file-executable-p
            (list (expand-file-name "bin/efrit-budget" folder)
                  (expand-file-name "Scripts/efrit-budget.exe" folder))))

(defun efrit-executable--advice ()
  "Return a sentence for the person about how to install the sidecar."
  (if-let* ((checkout (efrit-executable-checkout)))
      (format "The sidecar is not installed.  Run in a shell: make -C %s setup"
              (efrit-executable-quote (directory-file-name checkout)))
    (format "The program efrit-budget is not installed.  M-x efrit-doctor offers to install \
it; or run in a shell: uv tool install %s" (efrit-executable-quote efrit-sidecar-requirement))))

(defun efrit-executable-quote (word)
  "Return WORD as a shell takes it; one of plain characters stays as it is."
  (if (string-match-p "\\`[[:alnum:]@%+=:,./_~-]+\\'" word)
      word
    (shell-quote-argument word)))

;;; The process on this machine

;; Starts the sidecar's process on this machine, notices the end of a process
;; on any machine, and keeps its standard error in the buffer
;; " *efrit sidecar stderr*".

(defun efrit-process-name (&optional remote)
  "Return the process name of the sidecar on the host REMOTE, or on this machine."
  (concat "efrit sidecar" (and remote (concat " " remote))))

(defun efrit-process-spawn (command &optional name home)
  "Start COMMAND, a list of strings, and return its process.
It is the sidecar of the host NAME, with its state in the folder HOME; nil:
that of this machine, with its state in the usual place.  Emacs exchanges bytes
with it over pipes.  Its environment lacks the variable ANTHROPIC_API_KEY, since
commands that the model runs could read that."
  (efrit-executable-locally
    (let ((stderr (efrit-process-new-stderr name))
          (process-environment (append (list "ANTHROPIC_API_KEY")
                                       (and home (list (concat "EFRIT_BUDGET_HOME=" home)))
                                       process-environment))
          (read-process-output-max
           (max read-process-output-max (or efrit-sidecar-read-output-max 0)))
          ;; Adaptive buffering would delay reading of output in small amounts.
          (process-adaptive-read-buffering nil))
      (let ((process (make-process
                      :name (efrit-process-name name)
                      :command command
                      :connection-type 'pipe
                      :coding 'binary
                      :noquery t
                      :stderr stderr)))
        (process-put process 'efrit-stderr stderr)
        (set-process-sentinel (get-buffer-process stderr) #'ignore)
        process))))

(defun efrit-process-watch (process over)
  "Call the function OVER once PROCESS has ended and its output was read.
A timer checks each second: Emacs never calls the sentinel of a process with
separate standard error if a person quits while Emacs reads its last output."
  (add-function :before (process-filter process)
                (lambda (&rest _) (process-put process 'efrit-ended nil)))
  (efrit-process--check-later process over))

(defun efrit-process--check-later (process over)
  "Check in a second whether PROCESS, watched for OVER, has ended."
  (process-put process 'efrit-watch
               (efrit-run-at-time 1 nil #'efrit-process--check process over)))

(defun efrit-process-unwatch (process)
  "Stop checking whether PROCESS has ended."
  (when-let* ((timer (process-get process 'efrit-watch)))
    (cancel-timer timer)))

(defun efrit-process-stderr (&optional remote)
  "Return the buffer with the latest standard error of a sidecar, or nil.
The sidecar is that of this machine, or of the host REMOTE, whose standard
error arrives once its process has ended."
  (seq-find (lambda (buffer) (and buffer (> (buffer-size buffer) 0)))
            (list (get-buffer (efrit-process--stderr-name remote))
                  (get-buffer (efrit-process--stderr-name remote "before")))))

(defun efrit-process-new-stderr (&optional remote)
  "Return an empty buffer for the stderr of a new process on REMOTE, or here.
Keep the buffer of the previous process under another name, if it has text."
  (let ((name (efrit-process--stderr-name remote))
        (before (efrit-process--stderr-name remote "before"))
        (kill-buffer-query-functions nil))
    (when-let* ((latest (get-buffer name)))
      (if (zerop (buffer-size latest))
          (kill-buffer latest)
        (when (get-buffer before)
          (kill-buffer before))
        (with-current-buffer latest
          (rename-buffer before))))
    (get-buffer-create name)))

(defun efrit-process-last-words (process)
  "Return the last line that PROCESS wrote to its stderr, or nil if there is none."
  (when-let* ((buffer (process-get process 'efrit-stderr))
              ((buffer-live-p buffer)))
    (when-let* ((pipe (get-buffer-process buffer)))
      (accept-process-output pipe 0.1 nil t))
    (with-current-buffer buffer
      (car (last (split-string (buffer-substring (max 1 (- (point-max) 2000))
                                                 (point-max))
                               "\n" t "[ \t]+"))))))

(defun efrit-process--check (process over)
  "Call OVER if PROCESS had ended by the last check, and wrote nothing since.
Emacs reads its last output in between, as it waits, and one part at a time; to
read it here, in a timer, can crash Emacs 30.1.  A timer that repeats would
check twice at once after Emacs was busy."
  (if (process-get process 'efrit-ended)
      (funcall over)
    (process-put process 'efrit-ended (not (process-live-p process)))
    (efrit-process--check-later process over)))

(defun efrit-process--stderr-name (remote &optional which)
  "Return the name of the stderr buffer of the sidecar on REMOTE, or here.
WHICH is \"before\" for the buffer of the previous process, else nil."
  (format " *%s stderr%s*" (efrit-process-name remote) (if which (concat " " which) "")))

;;; Connections

;; A connection exchanges JSON-RPC messages with one process, and ends with
;; it; efrit-sidecar.el then opens another connection to a new process.

(cl-defstruct (efrit-connection (:constructor efrit-connection--create) (:copier nil))
  "A connection to a running sidecar.
PROCESS is the sidecar's process.  PIECES are bytes of its output that are
not parsed yet, unibyte strings, the latest first; SIZE is their length, and
NEED the least length at which to parse them.  CALLS maps ids to the requests
that were sent and have not ended; ID is the latest id.  ON-PROGRESS and
ON-END are as in `efrit-connection-open'; ON-END is nil once it was called.
LOG is the number of characters of messages to log."
  process pieces (size 0) (need 1) (calls (make-hash-table)) (id 0)
  on-progress on-end log)

(defun efrit-connection-open (process on-progress on-end)
  "Return a connection to the sidecar whose process is PROCESS.
ON-PROGRESS is called with the params of each progress notification, after
its call, or nil if that has ended; ON-END with the connection and the
reason, a text, once the process has ended."
  (let ((connection (efrit-connection--create
                     :process process :on-progress on-progress :on-end on-end
                     :log efrit-sidecar-log-events)))
    (efrit-connection--fit process connection)
    (efrit-process-watch process (lambda () (efrit-connection--process-ended connection)))
    connection))

(defun efrit-connection-live-p (connection)
  "Return non-nil while the process of CONNECTION is alive."
  (process-live-p (efrit-connection-process connection)))

(defun efrit-connection-send (connection call)
  "Send CALL over CONNECTION; return nil if the process has ended, else t.
If CALL cannot be written as JSON, end CALL with an error."
  (condition-case err
      (prog1 t (efrit-connection--transmit connection call))
    (quit
     (efrit-connection-cancel connection call)
     (signal 'quit nil))
    (error
     (remhash (efrit-call-id call) (efrit-connection-calls connection))
     (if (not (efrit-connection-live-p connection))
         (efrit-call-take-back call)
       (efrit-call-finish call 'failed (efrit-connection--unencodable call err))
       t))))

(defun efrit-connection-notify (connection method params)
  "Send the notification METHOD with PARAMS over CONNECTION."
  (efrit-connection--write connection (list :method (format "%s" method) :params params)))

(defun efrit-connection-cancel (connection call)
  "Drop CALL, and have CONNECTION's process stop working on it.
Return nil if CALL had ended, else t."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (prog1 (efrit-call-drop call)
      (when (and sent (efrit-call-id call))
        (efrit-connection-withdraw connection call)))))

(defun efrit-connection-withdraw (connection call)
  "Tell CONNECTION's process, if it is alive, to stop working on CALL."
  (when (efrit-connection-live-p connection)
    ;; If the process ends at this moment, there is no work left to stop.
    (ignore-errors
      (efrit-connection-notify connection '$/cancelRequest
                               (list :id (efrit-call-id call))))))

(defun efrit-connection-close (connection)
  "Ask the process of CONNECTION to exit; kill it after two seconds at most."
  (process-put (efrit-connection-process connection) 'efrit-stopped t)
  (unwind-protect
      (when (efrit-connection-live-p connection)
        (let ((call (efrit-call-create :method 'shutdown)))
          (efrit-connection-send connection call)
          (efrit-connection--wait-while 1.0 (lambda () (efrit-call-open-p call))))
        (ignore-errors (efrit-connection-notify connection 'exit nil))
        (efrit-connection--wait-while 1.0 (lambda () (efrit-connection-live-p connection))))
    (efrit-connection-kill connection)))

(defun efrit-connection-kill (connection)
  "Kill the process of CONNECTION, and end each open call sent to it."
  (delete-process (efrit-connection-process connection))
  (efrit-connection--process-ended connection))

;;;; Starting

(defun efrit-connection--fit (process connection)
  "Have CONNECTION handle the output and the end of PROCESS, also earlier ones."
  (set-process-coding-system process 'binary 'binary)
  (set-process-filter process (lambda (_ output) (efrit-connection--take connection output)))
  (set-process-sentinel process
                        (lambda (_ change) (efrit-connection--change connection change)))
  (when-let* ((written (process-get process 'efrit-written)))
    (efrit-connection--take connection written)
    (unless (efrit-connection-live-p connection)
      (efrit-defer #'efrit-connection--change connection
                   (format "exited with code %d" (process-exit-status process))))))

;;;; Sending

(defun efrit-connection--transmit (connection call)
  "Write CALL to CONNECTION's process, unless CALL is a barrier.
End a notification or a barrier as done."
  (setf (efrit-call-connection call) connection)
  (pcase (efrit-call-kind call)
    ('barrier (efrit-call-finish call 'done))
    ('notification
     (efrit-connection-notify connection (efrit-call-method call) (efrit-call-params call))
     (efrit-call-finish call 'done))
    (_
     (let ((id (cl-incf (efrit-connection-id connection))))
       (setf (efrit-call-state call) 'sent
             (efrit-call-id call) id)
       (puthash id call (efrit-connection-calls connection))
       (efrit-connection--write connection
                                (list :id id :method (format "%s" (efrit-call-method call))
                                      :params (efrit-call-params call)))))))

(defun efrit-connection--write (connection message)
  "Write MESSAGE, a plist, to CONNECTION's process."
  (let ((json (efrit-json-write `(:jsonrpc "2.0" ,@message))))
    (process-send-string (efrit-connection-process connection)
                         (concat (format "Content-Length: %d\r\n\r\n" (string-bytes json)) json))
    (efrit-connection--log connection "->" json)))

(defun efrit-connection--log (connection sign json)
  "Log SIGN, an arrow, and JSON, a message over CONNECTION, if messages are logged."
  (let ((most (efrit-connection-log connection)))
    (when (> most 0)
      (with-current-buffer (get-buffer-create
                            (format "*%s events*"
                                    (process-name (efrit-connection-process connection))))
        (buffer-disable-undo)
        (goto-char (point-max))
        (insert sign " " (decode-coding-string json 'utf-8-unix) "\n")
        (delete-region (point-min) (max (point-min) (- (point-max) most)))))))

(defun efrit-connection--unencodable (call err)
  "Return the error condition of CALL, which was not written because of ERR."
  (list 'efrit-unencodable
        (format "%s: %s%s" (efrit-call-method call) (error-message-string err)
                (if (eq (car err) 'wrong-type-argument)
                    " (a string with raw bytes, or a value JSON does not know)"
                  ""))))

;;;; Receiving

(defun efrit-connection--take (connection output)
  "Handle the messages that OUTPUT, bytes of CONNECTION's process, completes.
A remote process writes its standard error at the end of its output."
  (pcase-let* ((process (efrit-connection-process connection))
               (`(,bytes . ,words) (efrit-remote-split process output)))
    (unless (string-empty-p words)
      (efrit-with-live-buffer (process-get process 'efrit-stderr)
        (goto-char (point-max))
        (insert (decode-coding-string words 'utf-8-unix))))
    (push bytes (efrit-connection-pieces connection))
    (when (<= (efrit-connection-need connection)
              (cl-incf (efrit-connection-size connection) (length bytes)))
      (mapc (apply-partially #'efrit-connection--receive connection)
            (efrit-connection--messages connection)))))

(defun efrit-connection--messages (connection)
  "Remove the complete messages from the pieces of CONNECTION; return a list."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (mapc #'insert (reverse (efrit-connection-pieces connection)))
    (goto-char (point-min))
    (let (need messages)
      (while (<= (setq need (efrit-connection--need)) (buffer-size))
        (when-let* ((message (efrit-connection--read connection (1+ need))))
          (push message messages))
        (delete-region (point-min) (1+ need)))
      (setf (efrit-connection-pieces connection) (list (buffer-string))
            (efrit-connection-size connection) (buffer-size)
            (efrit-connection-need connection) need)
      (nreverse messages))))

(defun efrit-connection--need ()
  "Move to the body of the first message in this buffer; return its end's offset.
If the header is incomplete, return one more than the size of the buffer."
  (goto-char (point-min))
  (let ((case-fold-search t))
    (if (re-search-forward "Content-Length: *\\([0-9]+\\)\r\n\\(?:.+\r\n\\)*\r\n" nil t)
        (+ (1- (point)) (string-to-number (match-string 1)))
      (1+ (buffer-size)))))

(defun efrit-connection--read (connection end)
  "Return the message of CONNECTION between point and END, or nil if it is broken."
  (when (> (efrit-connection-log connection) 0)
    (efrit-connection--log connection "<-" (buffer-substring (point) end)))
  (save-restriction
    (narrow-to-region (point) end)
    (condition-case err
        (efrit-json-read)
      (error (message "efrit: a message of the sidecar cannot be read: %s"
                      (error-message-string err))
             nil))))

(defun efrit-connection--receive (connection message)
  "Handle MESSAGE, a plist, which came over CONNECTION."
  (let ((id (plist-get message :id))
        (method (plist-get message :method)))
    (cond
     ((and id method)
      (ignore-errors
        (efrit-connection--write
         connection `(:id ,id :error (:code -32601 :message
                                            ,(format "This client has no method %s" method))))))
     ((equal method "$/progress")
      (let ((params (plist-get message :params)))
        (efrit-defer (efrit-connection-on-progress connection)
                     (gethash (plist-get params :token) (efrit-connection-calls connection))
                     params)))
     (t (efrit-connection--answer connection (gethash id (efrit-connection-calls connection))
                                  message)))))

(defun efrit-connection--answer (connection call message)
  "End CALL, a request over CONNECTION, with the reply MESSAGE, unless CALL is nil."
  (when call
    (remhash (efrit-call-id call) (efrit-connection-calls connection))
    (if-let* ((err (plist-get message :error)))
        (efrit-call-finish
         call 'failed
         (list (if (eql (plist-get err :code) -32800) 'efrit-cancelled 'efrit-rpc-error)
               (or (plist-get err :message) "no message")
               :code (plist-get err :code) :data (plist-get err :data)
               :method (efrit-call-method call)))
      (efrit-call-finish call 'done (plist-get message :result)))))

;;;; Ending

(defun efrit-connection--change (connection change)
  "Store the text CHANGE of a sentinel; if its process is dead, end CONNECTION."
  (process-put (efrit-connection-process connection) 'efrit-end (string-trim change))
  (unless (efrit-connection-live-p connection)
    (efrit-connection--process-ended connection)))

(defun efrit-connection--process-ended (connection)
  "End each call of CONNECTION, whose process has ended, and call its ON-END once."
  (when-let* ((on-end (efrit-connection-on-end connection)))
    (setf (efrit-connection-on-end connection) nil)
    (efrit-process-unwatch (efrit-connection-process connection))
    (let ((why (efrit-connection--exit-reason connection))
          (calls (hash-table-values (efrit-connection-calls connection))))
      (clrhash (efrit-connection-calls connection))
      (dolist (call (seq-sort-by #'efrit-call-id #'< calls))
        (efrit-call-finish call 'failed (list 'efrit-sidecar-died why)))
      (funcall on-end connection why))))

(defun efrit-connection--exit-reason (connection)
  "Return a text about why CONNECTION's process ended."
  (let ((process (efrit-connection-process connection)))
    (if (process-get process 'efrit-stopped)
        "it was stopped"
      (string-join
       (delq nil (list (or (process-get process 'efrit-end) "gone")
                       (efrit-process-last-words process)))
       ": "))))

(defun efrit-connection--wait-while (seconds busy)
  "Wait as long as a call of BUSY yields non-nil, for at most SECONDS."
  (let ((end (+ (float-time) seconds)))
    (while (and (funcall busy) (< (float-time) end))
      (accept-process-output nil 0.02))))

(provide 'efrit-rpc)
;;; efrit-rpc.el ends here
