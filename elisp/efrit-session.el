;;; efrit-session.el --- Sessions in the sidecar  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session lives in the sidecar's database; it outlives the sidecar's
;; process and Emacs.  What this Emacs opened or resumed is resumed by
;; itself in every new process of the sidecar.

;;; Code:

(require 'efrit-sidecar)
(require 'efrit-supervisor)

;;; Public

(defun efrit-session-open (root &optional limits)
  "Open a session on the folder ROOT and return its id, a string.
LIMITS is a plist of the budget's limits, or nil for the defaults."
  (when (file-remote-p root)
    (user-error "The sidecar works on local folders only, not on %s" root))
  (let* ((opened (efrit-sidecar-request
                  'session/open
                  `(:root ,(directory-file-name (expand-file-name root))
                          ,@(and limits (list :limits limits)))))
         (id (plist-get opened :session_id)))
    (efrit-supervisor-remember id)
    id))

(defun efrit-session-resume (id)
  "Resume the session ID, which any Emacs opened, and return its state, a plist."
  (prog1 (efrit-sidecar-request 'session/resume (list :session_id id))
    (efrit-supervisor-remember id)))

(defun efrit-session-status (id)
  "Return the state of the session ID, a plist; `:budget' is its snapshot."
  (efrit-sidecar-request 'session/status (list :session_id id)))

(defun efrit-session-close (id)
  "Close the session ID."
  (prog1 (efrit-sidecar-request 'session/close (list :session_id id))
    (efrit-supervisor-forget id)))

(provide 'efrit-session)
;;; efrit-session.el ends here
