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

;;; Public

(defun efrit-session-open (root &optional limits)
  "Open a session on the folder ROOT and return its id, a string.
Where ROOT is remote, the session is on that machine.  LIMITS is a plist of
the budget's limits, or nil for the defaults."
  (let* ((remote (file-remote-p root))
         (opened (efrit-sidecar-request
                  'session/open
                  `(:root ,(directory-file-name (efrit-host-local-name root))
                          ,@(and limits (list :limits limits)))
                  :host remote))
         (id (plist-get opened :session_id)))
    (efrit-supervisor-remember id remote)
    id))

(defun efrit-session-resume (id &optional remote)
  "Resume the session ID, which any Emacs opened, and return its state, a plist.
It lies on the host REMOTE, or on this machine."
  (prog1 (efrit-sidecar-request 'session/resume (list :session_id id) :host remote)
    (efrit-supervisor-remember id remote)))

(defun efrit-session-status (id)
  "Return the state of the session ID, a plist; `:budget' is its snapshot."
  (efrit-sidecar-request 'session/status (list :session_id id)))

(defun efrit-session-close (id)
  "Close the session ID."
  (prog1 (efrit-sidecar-request 'session/close (list :session_id id))
    (efrit-supervisor-forget id)))

(provide 'efrit-session)
;;; efrit-session.el ends here
