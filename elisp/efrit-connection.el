;;; efrit-connection.el --- A sidecar process and its wire  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One process that speaks JSON-RPC, over Emacs's own jsonrpc.el, from
;; version 1.0.14 (Emacs 28) on.  A connection lives and dies with its
;; process; efrit-sidecar.el starts another.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-json)
(require 'efrit-process)
(require 'efrit-remote)
(require 'subr-x)

;;; Options

(defcustom efrit-sidecar-log-events 0
  "How many characters of messages to keep in the buffer *efrit sidecar events*.
With 0 none are kept.  In force from the next start of the sidecar on."
  :group 'efrit
  :type 'natnum)

;;; Structs

(defclass efrit-connection (jsonrpc-process-connection)
  ((sidecar-process :initform nil :accessor efrit-connection-process
                    :documentation "The process.")
   (calls :initform (make-hash-table) :accessor efrit-connection--calls
          :documentation "The requests sent and not ended, by their id.")
   (on-end :initform nil :accessor efrit-connection--on-end
           :documentation "Called with the connection and why it ended; nil then."))
  :documentation "A running sidecar.")

;;; Public

(defun efrit-connection-open (name spawn on-progress on-end)
  "Return a connection named NAME to the process that SPAWN, a function, gives.
ON-PROGRESS is called with a call, or nil, and the parameters of a
progress notification about it; ON-END with the connection and a text
that says why it ended, from the process's sentinel."
  (let* ((process nil)
         (connection
          (apply #'make-instance 'efrit-connection
                 :name name
                 :process (lambda () (setq process (funcall spawn)))
                 :request-dispatcher #'efrit-connection--refuse
                 :notification-dispatcher
                 (lambda (connection method params)
                   (when (eq method '$/progress)
                     (efrit-later on-progress
                                  (efrit-connection--call connection params) params)))
                 :on-shutdown #'efrit-connection--ended
                 (efrit-connection--log-arguments))))
    (setf (efrit-connection-process connection) process
          (efrit-connection--on-end connection) on-end)
    (efrit-connection--fit process connection)
    (efrit-connection--catch-up process)
    (efrit-process-watch process (lambda () (efrit-connection--ended connection)))
    connection))

(defun efrit-connection-live-p (connection)
  "Return non-nil while the process of CONNECTION is alive."
  (process-live-p (efrit-connection-process connection)))

(defun efrit-connection-send (connection call)
  "Send CALL over CONNECTION, and return non-nil.
Return nil where the process is gone and the call was not sent.  A call
that cannot be written as JSON ends."
  (condition-case err
      (prog1 t (efrit-connection--transmit connection call))
    (quit
     (efrit-connection-cancel connection call)
     (signal 'quit nil))
    (error
     (remhash (efrit-call-id call) (efrit-connection--calls connection))
     (if (not (efrit-connection-live-p connection))
         (efrit-call-take-back call)
       (efrit-call-finish call 'failed (efrit-connection--unencodable call err))
       t))))

(defun efrit-connection-cancel (connection call)
  "Drop CALL and tell CONNECTION's process to stop working on it.
Return non-nil if it had not ended."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (prog1 (efrit-call-drop call)
      (when (and sent (efrit-call-id call))
        (efrit-connection-withdraw connection call)))))

(defun efrit-connection-withdraw (connection call)
  "Tell CONNECTION's process to stop working on CALL."
  (when (efrit-connection-live-p connection)
    ;; Where the process ends just now there is nothing left to stop.
    (ignore-errors
      (jsonrpc-notify connection '$/cancelRequest (list :id (efrit-call-id call))))))

(defun efrit-connection-wait (connection)
  "Read what CONNECTION's process sends, for 50 ms at most.
CONNECTION may be nil.  Timers run meanwhile."
  (let ((process (and connection (efrit-connection-process connection))))
    (when (if (process-live-p process)
              (accept-process-output process 0.05)
            (accept-process-output nil 0.05))
      ;; From 1.0.18 on jsonrpc.el takes messages from a timer, which does
      ;; not end the wait above.
      (accept-process-output nil 0))))

(defun efrit-connection-close (connection)
  "End the process of CONNECTION, within two seconds.
It is asked to shut down first."
  (process-put (efrit-connection-process connection) 'efrit-stopped t)
  (unwind-protect
      (when (efrit-connection-live-p connection)
        (efrit-connection--ask-to-exit connection))
    (efrit-connection-kill connection)))

(defun efrit-connection-kill (connection)
  "End the process of CONNECTION at once, and what was sent to it."
  (delete-process (efrit-connection-process connection))
  (efrit-connection--ended connection))

;;; Private: starting

(defun efrit-connection--fit (process connection)
  "Fit what jsonrpc.el made of PROCESS and its buffers to CONNECTION's needs."
  (add-function :around (process-filter process) #'efrit-connection--filter)
  (add-function :around (process-sentinel process) #'efrit-connection--sentinel)
  (with-current-buffer (jsonrpc-stderr-buffer connection)
    (if-let* ((pipe (get-buffer-process (current-buffer))))
        (set-process-sentinel pipe #'ignore)
      (add-function :around (process-filter process) #'efrit-connection--split))
    (when (zerop efrit-sidecar-log-events)
      ;; What copies each line to the events buffer.
      (kill-local-variable 'after-change-functions)))
  (when (zerop efrit-sidecar-log-events)
    ;; jsonrpc.el makes the buffer all the same; hidden it is in nobody's way.
    (with-current-buffer (jsonrpc-events-buffer connection)
      (rename-buffer (concat " " (buffer-name)) t))))

(defun efrit-connection--catch-up (process)
  "Take what PROCESS did before this Emacs listened: it may even have ended."
  (when-let* ((written (process-get process 'efrit-written)))
    (funcall (process-filter process) process written)
    (unless (process-live-p process)
      (efrit-later (process-sentinel process) process
                   (format "exited with code %d" (process-exit-status process))))))

(defun efrit-connection--log-arguments ()
  "Return the arguments for jsonrpc.el's events buffer, old or new."
  (if (memq '-events-buffer-config
            (mapcar #'eieio-slot-descriptor-name
                    (eieio-class-slots 'jsonrpc-connection)))
      (list :events-buffer-config (list :size efrit-sidecar-log-events :format 'full))
    (list :events-buffer-scrollback-size efrit-sidecar-log-events)))

;;; Private: sending

(defvar efrit-connection--sending nil
  "The call which is being sent.")

(cl-defmethod jsonrpc-connection-send :around
  ((connection efrit-connection) &key id method &allow-other-keys)
  "Send a message over CONNECTION, and note the ID of a request of ours.
METHOD is nil in replies.  In Emacs 28 nothing else tells the id."
  (when (and id method efrit-connection--sending)
    (setf (efrit-call-id efrit-connection--sending) id)
    (puthash id efrit-connection--sending (efrit-connection--calls connection)))
  (efrit-json-in-jsonrpc
    (cl-call-next-method)))

(defun efrit-connection--transmit (connection call)
  "Write CALL to CONNECTION's process."
  (setf (efrit-call-connection call) connection)
  (pcase (efrit-call-kind call)
    ('barrier (efrit-call-finish call 'done))
    ('notification
     (jsonrpc-notify connection (efrit-call-method call) (efrit-call-params call))
     (efrit-call-finish call 'done))
    (_
     (setf (efrit-call-state call) 'sent)
     (let ((efrit-connection--sending call))
       (jsonrpc-async-request
        connection (efrit-call-method call) (efrit-call-params call)
        :timeout nil
        :success-fn (lambda (result)
                      (efrit-connection--answered connection call 'done result))
        :error-fn (lambda (err)
                    (efrit-connection--answered
                     connection call 'failed (efrit-connection--error call err))))))))

(defun efrit-connection--unencodable (call err)
  "Return the error for CALL, which was not sent because of ERR."
  (list 'efrit-unencodable
        (format "%s: %s%s" (efrit-call-method call) (error-message-string err)
                (if (eq (car err) 'wrong-type-argument)
                    " (a string with raw bytes, or a value JSON does not know)"
                  ""))))

;;; Private: receiving

(defun efrit-connection--answered (connection call state value)
  "End CALL, a request over CONNECTION, in STATE with VALUE."
  ;; Where the process died, jsonrpc.el gives every request an error of its
  ;; own making; `efrit-connection--ended' knows more.
  (when (or (eq state 'done) (efrit-connection-live-p connection))
    (remhash (efrit-call-id call) (efrit-connection--calls connection))
    (efrit-call-finish call state value)))

(defun efrit-connection--error (call err)
  "Return ERR, a JSON-RPC error object about CALL, as a condition."
  (let ((code (plist-get err :code)))
    (list (if (eql code -32800) 'efrit-cancelled 'efrit-rpc-error)
          (or (plist-get err :message) "no message")
          :code code
          :data (plist-get err :data)
          :method (efrit-call-method call))))

(defun efrit-connection--call (connection params)
  "Return the call of CONNECTION that the progress PARAMS are about, or nil."
  (gethash (plist-get params :token) (efrit-connection--calls connection)))

(defun efrit-connection--refuse (_connection method _params)
  "Answer that the client has no METHOD."
  (jsonrpc-error :code -32601 :message (format "This client has no method %s" method)))

(defun efrit-connection--filter (inner process output &optional left)
  "Give PROCESS's OUTPUT to INNER, the filter of jsonrpc.el.
In Emacs 28 and 29 that signals an error for an answer to nobody (such
as an error without an id), which would stop Emacs for two seconds and
leave the messages behind it lying.  LEFT is how much was lying when
this was last tried."
  (condition-case nil
      (efrit-json-in-jsonrpc
        (funcall inner process output))
    (error
     (let ((lying (if (buffer-live-p (process-buffer process))
                      (buffer-size (process-buffer process))
                    0)))
       (when (< 0 lying (or left (1+ lying)))
         (efrit-connection--filter inner process "" lying))))))

(defun efrit-connection--split (inner process output)
  "Give INNER what is a message in OUTPUT of PROCESS on another machine.
The rest is what it wrote to its standard error."
  (pcase-let ((`(,messages . ,words) (efrit-remote-split process output)))
    (unless (string-empty-p messages)
      (funcall inner process messages))
    (unless (string-empty-p words)
      (with-current-buffer (process-get process 'jsonrpc-stderr)
        (goto-char (point-max))
        (let ((inhibit-read-only t))
          (insert words))))))

;;; Private: ending

(defun efrit-connection--sentinel (inner process change)
  "Tell INNER, the sentinel of jsonrpc.el, of PROCESS's CHANGE, quietly."
  (process-put process 'efrit-end (string-trim change))
  (let ((inhibit-message t)
        (message-log-max nil))
    (funcall inner process change))
  ;; jsonrpc.el writes into the events buffer at the end, and makes it anew where it is gone.
  (unless (process-live-p process)
    (efrit-connection--kill-events (process-get process 'jsonrpc-connection))))

(defun efrit-connection--kill-events (connection)
  "Kill the events buffer of CONNECTION unless events are logged."
  (when (zerop efrit-sidecar-log-events)
    (kill-buffer (jsonrpc-events-buffer connection))))

(defun efrit-connection--ended (connection)
  "End what CONNECTION had under way, because its process ended; once."
  (when-let* ((on-end (efrit-connection--on-end connection)))
    (setf (efrit-connection--on-end connection) nil)
    (efrit-process-unwatch (efrit-connection-process connection))
    (let ((why (efrit-connection--why connection)))
      (efrit-connection--fail-calls connection (list 'efrit-sidecar-died why))
      (efrit-connection--kill-events connection)
      (funcall on-end connection why))))

(defun efrit-connection--fail-calls (connection err)
  "End what was sent over CONNECTION with the error ERR, in that order."
  (let ((calls (hash-table-values (efrit-connection--calls connection))))
    (clrhash (efrit-connection--calls connection))
    (dolist (call (cl-sort calls #'< :key #'efrit-call-id))
      (efrit-call-finish call 'failed err))))

(defun efrit-connection--why (connection)
  "Return in words why CONNECTION's process ended."
  (let ((process (efrit-connection-process connection)))
    (if (process-get process 'efrit-stopped)
        "it was stopped"
      (string-join
       (delq nil (list (or (process-get process 'efrit-end) "gone")
                       (efrit-process-last-words
                        (jsonrpc-stderr-buffer connection))))
       ": "))))

(defun efrit-connection--ask-to-exit (connection)
  "Ask CONNECTION's process to shut down and exit, and give it time to."
  (let ((call (efrit-call-create :method 'shutdown)))
    (efrit-connection-send connection call)
    (efrit-connection--wait-while 1.0 (lambda () (efrit-call-open-p call)))
    (ignore-errors (jsonrpc-notify connection 'exit nil))
    (efrit-connection--wait-while
     1.0 (lambda () (efrit-connection-live-p connection)))))

(defun efrit-connection--wait-while (seconds busy)
  "Wait while BUSY gives non-nil, for SECONDS at most."
  (let ((end (+ (float-time) seconds)))
    (while (and (funcall busy) (< (float-time) end))
      (accept-process-output nil 0.02))))

(provide 'efrit-connection)
;;; efrit-connection.el ends here
