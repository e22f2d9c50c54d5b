;;; efrit-supervisor.el --- Keep the sidecar running  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; There is one sidecar per host, this machine or one behind TRAMP.  It
;; starts with the first call for that host, and with the first one after it
;; died; calls made meanwhile wait their turn.  A new process is greeted, its
;; version compared, and the sessions of this Emacs on that host are resumed
;; in it, before anybody's call goes out.  All of that runs from timers, so it
;; goes on whoever waits for what.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-connection)
(require 'efrit-executable)
(require 'efrit-handover)
(require 'efrit-host)
(require 'efrit-process)
(require 'efrit-remote)
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

;;; Public

(defun efrit-supervisor-submit (call)
  "Send CALL to its host's sidecar, now or when that is ready; start it if need be.
What is typed meanwhile ends none of that, in `while-no-input' either."
  (let ((host (efrit-call-host call))
        (throw-on-input nil))
    (pcase (efrit-host-state host)
      ('ready
       (unless (and (efrit-connection-live-p (efrit-host-connection host))
                    (efrit-connection-send (efrit-host-connection host) call))
         ;; It is gone, and Emacs has not been told yet.
         (efrit-connection-kill (efrit-host-connection host))
         (efrit-supervisor-submit call)))
      ('given-up
       (efrit-call-finish call 'failed (efrit-supervisor--given-up)))
      (state
       (push call (efrit-host-queue host))
       (when (eq state 'off)
         (efrit-supervisor--start-when-due host))))))

(defun efrit-supervisor-cancel (call)
  "Drop CALL, and have the sidecar stop working on it.
Return non-nil if it had not ended."
  (let ((throw-on-input nil))
    (if (eq (efrit-call-state call) 'sent)
        (efrit-connection-cancel (efrit-call-connection call) call)
      (efrit-supervisor--unqueue call)
      (efrit-call-drop call))))

(defun efrit-supervisor-limit (call seconds)
  "End CALL with `efrit-timeout' unless it has ended after SECONDS.
With nil for SECONDS there is no limit."
  (efrit-call-limit call seconds #'efrit-supervisor--time-over))

(defun efrit-supervisor-stop (&optional remote)
  "Stop the sidecar here, or on the host REMOTE, and forget how often it died."
  (let* ((host (efrit-host-at remote))
         (connection (efrit-host-connection host)))
    (setf (efrit-host-state host) 'stopping)
    (unwind-protect
        (when connection
          (efrit-connection-close connection))
      (efrit-supervisor--off host)
      (setf (efrit-host-deaths host) nil)
      (efrit-supervisor--fail-queue host (list 'efrit-sidecar-died "it was stopped")))))

(defun efrit-supervisor-connection (&optional remote)
  "Return the connection to the sidecar here, or on the host REMOTE, or nil."
  (efrit-host-connection (efrit-host-at remote)))

(defun efrit-supervisor-server (&optional remote)
  "Return the greeting of the sidecar here, or on the host REMOTE; nil: not ready."
  (efrit-host-server (efrit-host-at remote)))

(defun efrit-supervisor-remember (session-id &optional remote)
  "Resume SESSION-ID in every new process, here or on the host REMOTE."
  (efrit-host-settle session-id remote)
  (cl-pushnew session-id (efrit-host-sessions (efrit-host-at remote)) :test #'equal))

(defun efrit-supervisor-forget (session-id)
  "Do not resume SESSION-ID in new processes any more."
  (dolist (host (efrit-hosts))
    (setf (efrit-host-sessions host) (delete session-id (efrit-host-sessions host)))))

(defun efrit-supervisor-sessions (&optional remote)
  "Return the ids of the sessions that are resumed here, or on the host REMOTE."
  (reverse (efrit-host-sessions (efrit-host-at remote))))

;;; Private: starting

(defun efrit-supervisor--start-when-due (host)
  "Start the sidecar of HOST, after a pause where it died just now.
On another machine that is never done inside of what TRAMP or a process
filter does."
  (let ((pause (efrit-supervisor--pause host)))
    (if (and (<= pause 0) (null (efrit-host-remote host)))
        (efrit-supervisor--start host)
      (setf (efrit-host-state host) 'pausing)
      (run-at-time (max 0 pause) nil #'efrit-supervisor--start-after-pause host))))

(defun efrit-supervisor--pause (host)
  "Return how many seconds to wait before the next start on HOST.
None after the first death of a minute, then 0.5 and twice as many each
time, counted from the latest death."
  (let ((deaths (efrit-supervisor--recent-deaths host)))
    (if deaths
        (- (+ (car deaths) (efrit-supervisor--pause-after (length deaths))) (float-time))
      0)))

(defun efrit-supervisor--pause-after (count)
  "Return how many seconds to wait after the latest of COUNT deaths."
  (if (< count 2)
      0
    (min 5 (* 0.5 (expt 2 (- count 2))))))

(defun efrit-supervisor--recent-deaths (host)
  "Return the deaths of the last minute on HOST, and forget those before."
  (let ((since (- (float-time) 60)))
    (setf (efrit-host-deaths host)
          (cl-remove-if (lambda (time) (< time since)) (efrit-host-deaths host)))))

(defun efrit-supervisor--start-after-pause (host &optional since)
  "Start the sidecar of HOST, unless it was stopped or started meanwhile.
That was tried SINCE a time."
  (when (eq (efrit-host-state host) 'pausing)
    (efrit-supervisor--start host since)))

(defun efrit-supervisor--start (host &optional since)
  "Start the process of HOST and greet it; that was tried SINCE a time.
A quit waits until it is known what the state is."
  (setf (efrit-host-state host) 'starting)
  (add-hook 'kill-emacs-hook #'efrit-supervisor--stop-with-emacs)
  (condition-case err
      (let* ((inhibit-quit t)
             (connection (efrit-supervisor--open host)))
        ;; It may have been stopped while TRAMP was waiting.
        (if (or (efrit-host-connection host) (not (eq (efrit-host-state host) 'starting)))
            (efrit-connection-kill connection)
          (setf (efrit-host-connection host) connection)
          (efrit-supervisor--greet host connection)))
    (efrit-remote-busy (efrit-supervisor--start-later host (or since (float-time))))
    (error (efrit-supervisor--start-failed host (efrit-host-connection host) err))))

(defun efrit-supervisor--open (host)
  "Start the process of HOST, and return the connection to it."
  (let* ((remote (efrit-host-remote host))
         (name (efrit-process-name remote)))
    (efrit-connection-open
     name
     (if remote
         (let ((process (efrit-supervisor--spawn-remote host name)))
           (lambda () process))
       ;; Where there is no program, nothing is begun.
       (let ((command (append (efrit-executable-command) '("serve"))))
         (lambda () (efrit-process-spawn command))))
     #'efrit-supervisor--progress
     (lambda (connection why) (efrit-supervisor--ended host connection why)))))

(defun efrit-supervisor--spawn-remote (host name)
  "Start the sidecar on HOST, a remote one, as the process NAME, and return that.
A person can quit.  What is missing there is said."
  (condition-case nil
      (let* ((inhibit-quit nil)
             (remote (efrit-host-remote host))
             (found (efrit-remote-look remote)))
        (when-let* ((problem (efrit-remote-problem remote found)))
          (user-error "%s" problem))
        (when (setf (efrit-host-missing host) (efrit-remote-missing remote found))
          (message "efrit: %s" (efrit-host-missing host)))
        (efrit-process-keep-stderr remote)
        (efrit-remote-spawn remote name
                            (append (efrit-remote-found-command found) '("serve"))
                            efrit-sidecar-start-timeout))
    (quit (signal 'efrit-cancelled (list "the start was quit")))))

(defun efrit-supervisor--start-later (host since)
  "Start the sidecar of HOST when TRAMP has done there what it is doing.
That was tried SINCE a time; it may not take longer than a start."
  (cond
   ((not (eq (efrit-host-state host) 'starting)))
   ((< efrit-sidecar-start-timeout (- (float-time) since))
    (efrit-supervisor--start-failed
     host nil (list 'user-error (format "TRAMP runs no program on %s just now, or never"
                                        (efrit-host-remote host)))))
   (t
    (setf (efrit-host-state host) 'pausing)
    (run-at-time 0.2 nil #'efrit-supervisor--start-after-pause host since))))

(defun efrit-supervisor--ask (host connection method params then &optional otherwise)
  "Call METHOD with PARAMS over CONNECTION, as a part of the start on HOST.
THEN is called with the result.  OTHERWISE is called with an error the
sidecar answers with; without it, and for other errors, the start failed."
  (let ((call (efrit-call-create
               :host host :method method :params params
               :success (lambda (result)
                          (when (eq connection (efrit-host-connection host))
                            (funcall then result)))
               :failure (lambda (err)
                          (if (and otherwise (eq (car err) 'efrit-rpc-error))
                              (funcall otherwise err)
                            (efrit-supervisor--start-failed host connection err))))))
    (efrit-supervisor-limit call efrit-sidecar-start-timeout)
    (efrit-connection-send connection call)))

(defun efrit-supervisor--greet (host connection)
  "Exchange names and versions with the process of HOST, over CONNECTION."
  (efrit-supervisor--ask
   host connection 'initialize
   `( :client (:name "efrit.el" :version ,efrit-version)
      :protocol_version ,efrit-supervisor-protocol-version
      ,@(when-let* (((null (efrit-host-remote host)))
                    (folder (efrit-handover-folder)))
          (list :handover_folder folder)))
   (lambda (server)
     (if-let* ((problem (efrit-supervisor--version-problem host server)))
         (efrit-supervisor--start-failed host connection (list 'user-error problem))
       (setf (efrit-host-server host) server)
       (jsonrpc-notify connection 'initialized nil)
       (efrit-supervisor--resume host connection)))))

(defun efrit-supervisor--version-problem (host server)
  "Return what to upgrade for SERVER, of HOST, to be understood, a text, or nil."
  (let ((theirs (plist-get server :protocol_version))
        (sidecar (efrit-supervisor--named host))
        (name (plist-get (plist-get server :server) :version)))
    (cond
     ((eql theirs efrit-supervisor-protocol-version) nil)
     ((and (integerp theirs) (> theirs efrit-supervisor-protocol-version))
      (format "The %s (%s) speaks protocol %s, efrit.el (%s) only %s: upgrade efrit.el"
              sidecar name theirs efrit-version efrit-supervisor-protocol-version))
     (t
      (format "The %s (%s) speaks protocol %s, efrit.el (%s) needs %s: upgrade the %s"
              sidecar name theirs efrit-version efrit-supervisor-protocol-version sidecar)))))

(defun efrit-supervisor--named (host)
  "Return what the sidecar of HOST is called in a sentence."
  (if (efrit-host-remote host)
      (concat "sidecar on " (efrit-host-remote host))
    "sidecar"))

(defun efrit-supervisor--resume (host connection)
  "Resume the sessions of HOST in the process of CONNECTION; then it is ready."
  (let* ((sessions (reverse (efrit-host-sessions host)))
         (left (length sessions))
         (next (lambda (answer)
                 (efrit-later #'efrit-supervisor-show-warnings answer)
                 (when (zerop (cl-decf left))
                   (efrit-supervisor--ready host)))))
    (if (null sessions)
        (efrit-supervisor--ready host)
      (dolist (id sessions)
        (efrit-supervisor--ask host connection 'session/resume (list :session_id id)
                               next
                               (lambda (err)
                                 (efrit-supervisor--not-resumed id err)
                                 (funcall next nil)))))))

(defun efrit-supervisor-show-warnings (answer)
  "Show what the sidecar warns of in ANSWER, with which a session begins.
Such as sessions that nobody has used for long, and that will go."
  (mapc (lambda (warning) (display-warning 'efrit warning))
        (plist-get answer :warnings)))

(defun efrit-supervisor--not-resumed (id err)
  "Forget the session ID, which the sidecar refused to resume with ERR."
  (efrit-supervisor-forget id)
  (message "efrit: session %s is not resumed: %s" id (cadr err)))

(defun efrit-supervisor--ready (host)
  "Say that the sidecar of HOST has started, and send what waited for it."
  (setf (efrit-host-state host) 'ready)
  (efrit-later #'efrit-supervisor--run-hook host 'efrit-sidecar-started-functions
               (efrit-host-server host))
  (let ((calls (reverse (efrit-host-queue host))))
    (setf (efrit-host-queue host) nil)
    (dolist (call calls)
      (when (efrit-call-open-p call)
        (efrit-supervisor-submit call)))))

(defun efrit-supervisor--run-hook (host hook &rest arguments)
  "Run HOOK with ARGUMENTS; it is about the sidecar of HOST."
  (let ((efrit-host-default (efrit-host-remote host)))
    (apply #'run-hook-with-args hook arguments)))

(defun efrit-supervisor--start-failed (host connection err)
  "End CONNECTION, or nil, and what waits for HOST, with the error ERR."
  (when (eq connection (efrit-host-connection host))
    (efrit-supervisor--off host)
    (when connection
      (efrit-connection-kill connection))
    (efrit-supervisor--fail-queue host err)))

;;; Private: ending

(defun efrit-supervisor--off (host)
  "Note that there is no process of HOST."
  (setf (efrit-host-state host) 'off
        (efrit-host-connection host) nil
        (efrit-host-server host) nil))

(defun efrit-supervisor--unqueue (call)
  "Take CALL out of the queue it waits in, if any."
  (let ((host (efrit-call-host call)))
    (setf (efrit-host-queue host) (delq call (efrit-host-queue host)))))

(defun efrit-supervisor--fail-queue (host err)
  "End what waits in the queue of HOST with the error ERR."
  (let ((calls (reverse (efrit-host-queue host))))
    (setf (efrit-host-queue host) nil)
    (dolist (call calls)
      (efrit-call-finish call 'failed err))))

(defun efrit-supervisor--time-over (call)
  "End CALL, whose time is over, and have the sidecar stop working on it."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (efrit-supervisor--unqueue call)
    (efrit-call-finish call 'failed
                       (list 'efrit-timeout (format "%s" (efrit-call-method call))))
    (when sent
      (efrit-connection-withdraw (efrit-call-connection call) call))))

(defun efrit-supervisor--progress (call params)
  "Pass on the progress PARAMS about CALL."
  (run-hook-with-args 'efrit-sidecar-progress-functions call params))

(defun efrit-supervisor--ended (host connection why)
  "Note that the process of HOST, behind CONNECTION, has ended; WHY is a text."
  (when (and (eq connection (efrit-host-connection host))
             (not (eq (efrit-host-state host) 'stopping)))
    (efrit-supervisor--off host)
    (push (float-time) (efrit-host-deaths host))
    (efrit-supervisor--fail-queue host (list 'efrit-sidecar-died why))
    (efrit-later #'efrit-supervisor--mourn host why (efrit-supervisor--give-up-p host))))

(defun efrit-supervisor--give-up-p (host)
  "Give up if the sidecar of HOST died too often; return non-nil then."
  (when (>= (length (efrit-supervisor--recent-deaths host)) efrit-supervisor--crash-limit)
    (setf (efrit-host-state host) 'given-up)))

(defun efrit-supervisor--mourn (host why given-up)
  "Tell the person that the sidecar of HOST died, and WHY, and what follows.
GIVEN-UP is non-nil where it is not started again by itself."
  (if given-up
      (message "%s" (efrit-error-text (efrit-supervisor--given-up)))
    (message "efrit: the %s ended (%s); the next call starts it again"
             (efrit-supervisor--named host) why))
  (efrit-supervisor--run-hook host 'efrit-sidecar-died-functions why))

(defun efrit-supervisor--given-up ()
  "Return the error of a call to a sidecar that is not started again."
  (list 'efrit-sidecar-died
        (substitute-command-keys
         (format "%d times within a minute.  \
\\[efrit-sidecar-restart] tries again, \\[efrit-sidecar-show-stderr] shows why"
                 efrit-supervisor--crash-limit))))

(defun efrit-supervisor--stop-with-emacs ()
  "Have the sidecars end because Emacs does: each ends when its input does.
Nothing is waited for.  Where a signal ends Emacs, waiting for a process
in `kill-emacs-hook' takes for ever.  The input of one on another machine
is a terminal, which ends with Emacs."
  (when-let* ((connection (efrit-supervisor-connection)))
    (ignore-errors
      (process-send-eof (efrit-connection-process connection)))))

(provide 'efrit-supervisor)
;;; efrit-supervisor.el ends here
