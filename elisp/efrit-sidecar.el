;;; efrit-sidecar.el --- Call the sidecar  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the rest of the package calls the sidecar by.  It starts by itself,
;; and every call ends: with a result, an error of the sidecar's, a
;; time-out, or `efrit-sidecar-died'.  All errors are `efrit-error's, but
;; for the `user-error's that a person can put right.
;;
;; A call goes to the sidecar of the host where its session lies.  One
;; without a session goes to that of this machine, or to that of `:host', the
;; name of a remote one as `file-remote-p' gives it, or of
;; `efrit-host-default'.
;;
;; JSON objects are plists with keyword keys, arrays vectors, false
;; `:json-false', true t, null nil, and so is the empty object when it is
;; read; `efrit-json-empty-object' writes one.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-connection)
(require 'efrit-host)
(require 'efrit-process)
(require 'efrit-supervisor)

;;; Options

(defcustom efrit-sidecar-timeout 30
  "How many seconds a call to the sidecar may take, where it does not say.
With nil there is no limit."
  :group 'efrit
  :type '(choice (const :tag "No limit" nil) number))

;;; Public

(cl-defun efrit-sidecar-request
    (method params &key (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS, wait for the result and return it.
METHOD is a symbol or string, PARAMS a plist or nil, HOST the name of the
host where a session lies that is not known here.  Signal
`efrit-rpc-error' for the sidecar's errors, `efrit-timeout' after TIMEOUT
seconds (nil: no limit), `efrit-sidecar-died' where its process ends
first, `efrit-unencodable' for what JSON cannot hold.  Timers run, and
other calls are answered, meanwhile.  When it is left early, as by
\\[keyboard-quit], the sidecar is told to stop the work."
  (efrit-sidecar--await (efrit-sidecar--call method params host) timeout))

(cl-defun efrit-sidecar-request-async
    (method params &key success error (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS and return a token of the call at once.
SUCCESS is called with the result, or ERROR with the error as
`condition-case' binds it: one of the two, once, later, from a timer.
Both may be nil.  TIMEOUT, HOST and the errors are those of
`efrit-sidecar-request'."
  (let ((call (efrit-sidecar--call method params host success error)))
    (efrit-supervisor-limit call timeout)
    (efrit-supervisor-submit call)
    call))

(defun efrit-sidecar-cancel (token)
  "Cancel the call of TOKEN, and have the sidecar stop working on it.
Nobody is told of its end from here on.  Return non-nil if it had not
ended."
  (efrit-supervisor-cancel token))

(defun efrit-sidecar-notify (method params)
  "Send the sidecar the notification METHOD with PARAMS.
It is started if need be; nothing tells whether it took notice."
  (efrit-supervisor-submit
   (efrit-call-create :host (efrit-host-of-call params nil)
                      :method (efrit-sidecar--symbol method) :params params
                      :kind 'notification))
  nil)

(defun efrit-sidecar-ensure (&optional host)
  "Start the sidecar here, or of HOST, if need be, and wait until it is ready.
Return its reply to the greeting: a plist of `:server' (`:name',
`:version'), `:protocol_version' and `:capabilities'."
  (efrit-sidecar--await (efrit-call-create :host (efrit-host-at host) :kind 'barrier))
  (efrit-supervisor-server host))

(defun efrit-sidecar-process (&optional host)
  "Return the process of the sidecar here, or of HOST, or nil while there is none."
  (when-let* ((connection (efrit-supervisor-connection host)))
    (efrit-connection-process connection)))

;;; Commands

;;;###autoload
(defun efrit-sidecar-stop (&optional host)
  "Stop the sidecar; what is under way ends with `efrit-sidecar-died'.
The next call starts it again, with the sessions it had.  In a remote
folder, it is that HOST's."
  (interactive (list (file-remote-p default-directory)))
  (efrit-supervisor-stop host)
  (when (called-interactively-p 'interactive)
    (message "The sidecar is stopped")))

;;;###autoload
(defun efrit-sidecar-restart (&optional host)
  "Stop the sidecar, if need be, and start it.
However often it died before is forgotten.  In a remote folder, it is that
HOST's."
  (interactive (list (file-remote-p default-directory)))
  (efrit-supervisor-stop host)
  (let ((server (plist-get (efrit-sidecar-ensure host) :server)))
    (when (called-interactively-p 'interactive)
      (message "%s %s is started; sessions: %d"
               (plist-get server :name) (plist-get server :version)
               (length (efrit-supervisor-sessions host))))))

;;;###autoload
(defun efrit-sidecar-show-stderr (&optional host)
  "Show what the sidecar wrote to its standard error.
In a remote folder, it is that HOST's, and comes when it has ended."
  (interactive (list (file-remote-p default-directory)))
  (pop-to-buffer (or (efrit-process-stderr host)
                     (user-error "The sidecar wrote nothing to its standard error"))))

;;; Private

(defun efrit-sidecar--symbol (method)
  "Return METHOD, a symbol or string, as the symbol jsonrpc.el wants."
  (if (stringp method) (intern method) method))

(defun efrit-sidecar--call (method params host &optional success failure)
  "Return a new call of METHOD with PARAMS.
HOST is where its session lies if that is not known here; SUCCESS and
FAILURE are told its end."
  (efrit-call-create :host (efrit-host-of-call params host)
                     :method (efrit-sidecar--symbol method) :params params
                     :success success :failure failure))

(defun efrit-sidecar--await (call &optional timeout)
  "Submit CALL, wait until it has ended, and return its result or signal its error.
It may take TIMEOUT seconds.  Cancel it when left early; one can quit also
where a timer waits."
  (unwind-protect
      (progn
        (efrit-supervisor-limit call timeout)
        (efrit-supervisor-submit call)
        (let ((inhibit-quit nil))
          (while (efrit-call-open-p call)
            (efrit-connection-wait (or (efrit-call-connection call)
                                       (efrit-host-connection (efrit-call-host call)))))))
    (when (efrit-call-open-p call)
      (efrit-supervisor-cancel call)))
  (efrit-call-result call))

(provide 'efrit-sidecar)
;;; efrit-sidecar.el ends here
