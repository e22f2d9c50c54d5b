;;; efrit-supervisor.el --- Keep the sidecar running  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; There is one sidecar per Emacs.  It starts with the first call, and with
;; the first one after it died; calls made meanwhile wait their turn.  A
;; new process is greeted, its version compared, and the sessions of this
;; Emacs are resumed in it, before anybody's call goes out.  All of that
;; runs from timers, so it goes on whoever waits for what.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-connection)
(require 'efrit-executable)
(require 'jsonrpc)
(require 'subr-x)

;;; Options

(defcustom efrit-sidecar-start-timeout 15
  "How many seconds the sidecar may take to start and resume its sessions."
  :group 'efrit
  :type 'number)

(defcustom efrit-sidecar-started-functions nil
  "Hook run when the sidecar has started and its sessions are resumed.
Each function is called with the sidecar's reply to the greeting, a plist."
  :group 'efrit
  :type 'hook)

(defcustom efrit-sidecar-died-functions nil
  "Hook run when the sidecar has ended without having been asked to.
Each function is called with a text that says how it ended."
  :group 'efrit
  :type 'hook)

(defcustom efrit-sidecar-progress-functions nil
  "Hook run when the sidecar says how far the work on a call is.
Each function is called with the call, as `efrit-sidecar-request-async'
returned it, or nil where it is not known, and a plist: `:tool_use_id',
and under `:value' a plist of `:message', `:done', `:total', `:seconds'."
  :group 'efrit
  :type 'hook)

;;; Structs

(defconst efrit-supervisor-protocol-version 1
  "The version of the wire's protocol that this client speaks.")

(defconst efrit-supervisor--crash-limit 5
  "After so many deaths within a minute the sidecar is not started again.")

(defvar efrit-supervisor--state 'off
  "What the sidecar does.
`off', `pausing' after a death, `starting', `ready', `stopping', or
`given-up' until a person restarts it.")

(defvar efrit-supervisor--connection nil
  "The connection to the process, while there is one.")

(defvar efrit-supervisor--server nil
  "The process's reply to the greeting, a plist, while it is ready.")

(defvar efrit-supervisor--queue nil
  "The calls that wait for the sidecar to be ready, latest first.")

(defvar efrit-supervisor--deaths nil
  "When the sidecar died, latest first, as far as the last minute goes.")

(defvar efrit-supervisor--sessions nil
  "The ids of the sessions to resume in a new process, latest first.")

;;; Public

(defun efrit-supervisor-submit (call)
  "Send CALL, now or when the sidecar is ready; start that if need be."
  (pcase efrit-supervisor--state
    ('ready
     (unless (and (efrit-connection-live-p efrit-supervisor--connection)
                  (efrit-connection-send efrit-supervisor--connection call))
       ;; It is gone, and Emacs has not been told yet.
       (efrit-connection-kill efrit-supervisor--connection)
       (efrit-supervisor-submit call)))
    ('given-up
     (efrit-call-finish call 'failed (efrit-supervisor--given-up)))
    (state
     (push call efrit-supervisor--queue)
     (when (eq state 'off)
       (efrit-supervisor--start-when-due)))))

(defun efrit-supervisor-cancel (call)
  "Drop CALL, and have the sidecar stop working on it.
Return non-nil if it had not ended."
  (if (eq (efrit-call-state call) 'sent)
      (efrit-connection-cancel (efrit-call-connection call) call)
    (setq efrit-supervisor--queue (delq call efrit-supervisor--queue))
    (efrit-call-drop call)))

(defun efrit-supervisor-limit (call seconds)
  "End CALL with `efrit-timeout' unless it has ended after SECONDS.
With nil for SECONDS there is no limit."
  (efrit-call-limit call seconds #'efrit-supervisor--time-over))

(defun efrit-supervisor-stop ()
  "Stop the sidecar, and forget how often it died."
  (let ((connection efrit-supervisor--connection))
    (setq efrit-supervisor--state 'stopping)
    (unwind-protect
        (when connection
          (efrit-connection-close connection))
      (efrit-supervisor--off)
      (setq efrit-supervisor--deaths nil)
      (efrit-supervisor--fail-queue (list 'efrit-sidecar-died "it was stopped")))))

(defun efrit-supervisor-connection ()
  "Return the connection to the sidecar, or nil while there is none."
  efrit-supervisor--connection)

(defun efrit-supervisor-server ()
  "Return the sidecar's reply to the greeting, or nil while it is not ready."
  efrit-supervisor--server)

(defun efrit-supervisor-remember (session-id)
  "Resume SESSION-ID in every new process from here on."
  (cl-pushnew session-id efrit-supervisor--sessions :test #'equal))

(defun efrit-supervisor-forget (session-id)
  "Do not resume SESSION-ID in new processes any more."
  (setq efrit-supervisor--sessions (delete session-id efrit-supervisor--sessions)))

(defun efrit-supervisor-sessions ()
  "Return the ids of the sessions that are resumed in new processes."
  (reverse efrit-supervisor--sessions))

;;; Private: starting

(defun efrit-supervisor--start-when-due ()
  "Start the sidecar, after a pause where it died just now."
  (let ((pause (efrit-supervisor--pause)))
    (if (<= pause 0)
        (efrit-supervisor--start)
      (setq efrit-supervisor--state 'pausing)
      (run-at-time pause nil #'efrit-supervisor--start-after-pause))))

(defun efrit-supervisor--pause ()
  "Return how many seconds to wait before the next start.
None after the first death of a minute, then 0.5 and twice as many each
time, counted from the latest death."
  (let ((count (length (efrit-supervisor--recent-deaths))))
    (if (< count 2)
        0
      (- (+ (car efrit-supervisor--deaths) (min 5 (* 0.5 (expt 2 (- count 2)))))
         (float-time)))))

(defun efrit-supervisor--recent-deaths ()
  "Return the deaths of the last minute, and forget those before."
  (let ((since (- (float-time) 60)))
    (setq efrit-supervisor--deaths
          (cl-remove-if (lambda (time) (< time since)) efrit-supervisor--deaths))))

(defun efrit-supervisor--start-after-pause ()
  "Start the sidecar, unless it was stopped or started meanwhile."
  (when (eq efrit-supervisor--state 'pausing)
    (efrit-supervisor--start)))

(defun efrit-supervisor--start ()
  "Start the sidecar's process and greet it."
  (setq efrit-supervisor--state 'starting)
  (add-hook 'kill-emacs-hook #'efrit-supervisor--stop-with-emacs)
  (condition-case err
      (efrit-supervisor--greet
       (setq efrit-supervisor--connection
             (efrit-connection-open (append (efrit-executable-command) '("serve"))
                                    #'efrit-supervisor--progress
                                    #'efrit-supervisor--ended)))
    (error (efrit-supervisor--start-failed efrit-supervisor--connection err))))

(defun efrit-supervisor--ask (connection method params then &optional otherwise)
  "Call METHOD with PARAMS over CONNECTION, as a part of its start.
THEN is called with the result.  OTHERWISE is called with an error the
sidecar answers with; without it, and for other errors, the start failed."
  (let ((call (efrit-call-create
               :method method :params params
               :success (lambda (result)
                          (when (eq connection efrit-supervisor--connection)
                            (funcall then result)))
               :failure (lambda (err)
                          (if (and otherwise (eq (car err) 'efrit-rpc-error))
                              (funcall otherwise err)
                            (efrit-supervisor--start-failed connection err))))))
    (efrit-supervisor-limit call efrit-sidecar-start-timeout)
    (efrit-connection-send connection call)))

(defun efrit-supervisor--greet (connection)
  "Exchange names and versions with CONNECTION's process."
  (efrit-supervisor--ask
   connection 'initialize
   `( :client (:name "efrit.el" :version ,efrit-version)
      :protocol_version ,efrit-supervisor-protocol-version)
   (lambda (server)
     (if-let* ((problem (efrit-supervisor--version-problem server)))
         (efrit-supervisor--start-failed connection (list 'user-error problem))
       (setq efrit-supervisor--server server)
       (jsonrpc-notify connection 'initialized nil)
       (efrit-supervisor--resume connection)))))

(defun efrit-supervisor--version-problem (server)
  "Return what to upgrade, as a text, for SERVER to be understood, or nil."
  (let ((theirs (plist-get server :protocol_version))
        (name (plist-get (plist-get server :server) :version)))
    (cond
     ((eql theirs efrit-supervisor-protocol-version) nil)
     ((and (integerp theirs) (> theirs efrit-supervisor-protocol-version))
      (format "The sidecar (%s) speaks protocol %s, efrit.el (%s) only %s: \
upgrade efrit.el"
              name theirs efrit-version efrit-supervisor-protocol-version))
     (t
      (format "The sidecar (%s) speaks protocol %s, efrit.el (%s) needs %s: \
upgrade the sidecar"
              name theirs efrit-version efrit-supervisor-protocol-version)))))

(defun efrit-supervisor--resume (connection)
  "Resume this Emacs's sessions in CONNECTION's process; then it is ready."
  (let* ((sessions (reverse efrit-supervisor--sessions))
         (left (length sessions))
         (next (lambda (_result)
                 (when (zerop (cl-decf left))
                   (efrit-supervisor--ready)))))
    (if (null sessions)
        (efrit-supervisor--ready)
      (dolist (id sessions)
        (efrit-supervisor--ask connection 'session/resume (list :session_id id)
                               next
                               (lambda (err)
                                 (efrit-supervisor--not-resumed id err)
                                 (funcall next nil)))))))

(defun efrit-supervisor--not-resumed (id err)
  "Forget the session ID, which the sidecar refused to resume with ERR."
  (efrit-supervisor-forget id)
  (message "efrit: session %s is not resumed: %s" id (cadr err)))

(defun efrit-supervisor--ready ()
  "Say that the sidecar has started, and send what waited for it."
  (setq efrit-supervisor--state 'ready)
  (efrit-later #'run-hook-with-args 'efrit-sidecar-started-functions
               efrit-supervisor--server)
  (let ((calls (reverse efrit-supervisor--queue)))
    (setq efrit-supervisor--queue nil)
    (dolist (call calls)
      (when (efrit-call-open-p call)
        (efrit-supervisor-submit call)))))

(defun efrit-supervisor--start-failed (connection err)
  "End CONNECTION, or nil, and what waits for it, with the error ERR."
  (when (eq connection efrit-supervisor--connection)
    (efrit-supervisor--off)
    (when connection
      (efrit-connection-kill connection))
    (efrit-supervisor--fail-queue err)))

;;; Private: ending

(defun efrit-supervisor--off ()
  "Note that there is no process."
  (setq efrit-supervisor--state 'off
        efrit-supervisor--connection nil
        efrit-supervisor--server nil))

(defun efrit-supervisor--fail-queue (err)
  "End what waits in the queue with the error ERR."
  (let ((calls (reverse efrit-supervisor--queue)))
    (setq efrit-supervisor--queue nil)
    (dolist (call calls)
      (efrit-call-finish call 'failed err))))

(defun efrit-supervisor--time-over (call)
  "End CALL, whose time is over, and have the sidecar stop working on it."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (setq efrit-supervisor--queue (delq call efrit-supervisor--queue))
    (efrit-call-finish call 'failed
                       (list 'efrit-timeout (format "%s" (efrit-call-method call))))
    (when sent
      (efrit-connection-withdraw (efrit-call-connection call) call))))

(defun efrit-supervisor--progress (call params)
  "Pass on the progress PARAMS about CALL."
  (run-hook-with-args 'efrit-sidecar-progress-functions call params))

(defun efrit-supervisor--ended (connection why)
  "Note that the process of CONNECTION has ended; WHY is a text."
  (when (and (eq connection efrit-supervisor--connection)
             (not (eq efrit-supervisor--state 'stopping)))
    (efrit-supervisor--off)
    (push (float-time) efrit-supervisor--deaths)
    (efrit-supervisor--fail-queue (list 'efrit-sidecar-died why))
    (efrit-later #'efrit-supervisor--mourn why (efrit-supervisor--give-up-p))))

(defun efrit-supervisor--give-up-p ()
  "Give up if the sidecar died too often; return non-nil then."
  (when (>= (length (efrit-supervisor--recent-deaths)) efrit-supervisor--crash-limit)
    (setq efrit-supervisor--state 'given-up)))

(defun efrit-supervisor--mourn (why given-up)
  "Tell the person that the sidecar died, and WHY, and what follows.
GIVEN-UP is non-nil where it is not started again by itself."
  (if given-up
      (message "%s" (efrit-error-text (efrit-supervisor--given-up)))
    (message "efrit: the sidecar ended (%s); the next call starts it again" why))
  (run-hook-with-args 'efrit-sidecar-died-functions why))

(defun efrit-supervisor--given-up ()
  "Return the error of a call to a sidecar that is not started again."
  (list 'efrit-sidecar-died
        (substitute-command-keys
         (format "%d times within a minute.  \
\\[efrit-sidecar-restart] tries again, \\[efrit-sidecar-show-stderr] shows why"
                 efrit-supervisor--crash-limit))))

(defun efrit-supervisor--stop-with-emacs ()
  "Have the sidecar end because Emacs does: it ends when its input does.
Nothing is waited for.  Where a signal ends Emacs, waiting for a process
in `kill-emacs-hook' takes for ever."
  (when efrit-supervisor--connection
    (ignore-errors
      (process-send-eof
       (efrit-connection-process efrit-supervisor--connection)))))

(provide 'efrit-supervisor)
;;; efrit-supervisor.el ends here
