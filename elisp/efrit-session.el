;;; efrit-session.el --- Sessions in the sidecar  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session lives in the sidecar's database, on the machine where its root
;; is; it outlives the sidecar's process and Emacs.  What this Emacs opened or resumed is resumed by
;; itself in every new process of the sidecar.

;;; Code:

(require 'efrit-host)
(require 'efrit-sidecar)
(require 'efrit-supervisor)

(defconst efrit-session--in-use -32009
  "The code of the error that another process works in a session.")

(defconst efrit-session--patience 3
  "How many seconds the sidecar of an Emacs that died may take to end.")

;;; Public

(defun efrit-session-open (root &optional limits denied)
  "Open a session on the folder ROOT and return its id, a string.
Where ROOT is remote, the session is on that machine.  LIMITS is a plist of
the budget's limits, or nil for the defaults; DENIED is a vector of the
tools that the model is not offered."
  (let* ((remote (file-remote-p root))
         (opened (efrit-sidecar-request
                  'session/open
                  `(:root ,(directory-file-name (efrit-host-local-name root))
                          ,@(and limits (list :limits limits))
                          ,@(and denied (list :deny denied)))
                  :host remote))
         (id (plist-get opened :session_id)))
    (efrit-supervisor-remember id remote)
    (efrit-supervisor-show-warnings opened)
    id))

(defun efrit-session-resume (id &optional remote)
  "Resume the session ID, which any Emacs opened, and return its state, a plist.
It lies on the host REMOTE, or on this machine.  Where another Emacs has
it, ask whether to take it over, or signal a `user-error'."
  (prog1 (or (efrit-session--resume-unless-in-use
              id remote (+ (float-time) efrit-session--patience))
             (progn
               (efrit-session--ask-to-take-over id)
               (efrit-session--resume id remote t)))
    (efrit-supervisor-remember id remote)))

(defun efrit-session-status (id)
  "Return the state of the session ID, a plist; `:budget' is its snapshot."
  (efrit-sidecar-request 'session/status (list :session_id id)))

(defun efrit-session-close (id)
  "Close the session ID."
  (prog1 (efrit-sidecar-request 'session/close (list :session_id id))
    (efrit-supervisor-forget id)))

;;; Private

(defun efrit-session--resume (id remote take-over)
  "Resume the session ID on the host REMOTE, with TAKE-OVER from another Emacs."
  (let ((resumed (efrit-sidecar-request 'session/resume
                                        (append (list :session_id id)
                                                (and take-over (list :take_over t)))
                                        :host remote)))
    (efrit-supervisor-show-warnings resumed)
    resumed))

(defun efrit-session--resume-unless-in-use (id remote until)
  "Resume the session ID on the host REMOTE; return nil where it is in use.
Before that is believed it is tried until the time UNTIL."
  (condition-case err
      (efrit-session--resume id remote nil)
    (efrit-rpc-error
     (unless (eql (efrit-rpc-error-code err) efrit-session--in-use)
       (signal (car err) (cdr err)))
     (when (< (float-time) until)
       (accept-process-output nil 0.2)
       (efrit-session--resume-unless-in-use id remote until)))))

(defun efrit-session--ask-to-take-over (id)
  "Ask whether to take the session ID over; signal a `user-error' if not."
  (unless (and (not noninteractive)
               (yes-or-no-p (format "Session %s is in use by another Emacs.  \
Take it over, and work in it here alone? " id)))
    (user-error "Session %s is in use by another Emacs; end it there first" id)))

(provide 'efrit-session)
;;; efrit-session.el ends here
