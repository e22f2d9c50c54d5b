;;; efrit-sessions.el --- Sessions: list them and take them up again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session stays in the sidecar's database when Emacs or the sidecar ends.
;; M-x efrit-resume takes one of this project up again, a closed one too,
;; with its conversation as it stood; M-x efrit-sessions lists them.  In a
;; remote folder the sessions are those of that machine.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-do)
(require 'efrit-export)
(require 'efrit-host)
(require 'efrit-loop)
(require 'efrit-show)
(require 'efrit-sidecar)
(require 'efrit-supervisor)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

(defvar-local efrit-sessions--root nil
  "The project whose sessions this buffer lists; nil: all projects.")

(defvar-local efrit-sessions--host nil
  "The name of the host whose sessions this buffer lists; nil: this machine.")

(defvar-local efrit-sessions--all nil
  "The sessions listed here by their ids: an alist of strings and plists.")

;;; The mode

(defvar efrit-sessions-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'efrit-sessions-resume)
    (define-key map "R" #'efrit-sessions-rename)
    (define-key map "D" #'efrit-sessions-delete)
    (define-key map "P" #'efrit-sessions-purge)
    (define-key map "e" #'efrit-sessions-export)
    (define-key map "+" #'efrit-sessions-new)
    (define-key map "g" #'efrit-sessions-refresh)
    map)
  "Keys of `efrit-sessions-mode'.")

(define-derived-mode efrit-sessions-mode tabulated-list-mode "Efrit-Sessions"
  "The sessions of a project, or of all.

\\{efrit-sessions-mode-map}"
  (setq tabulated-list-format
        `[("Last used" 14 ,(efrit-sessions--by :touched))
          ("State" 8 t)
          ("Calls" 6 ,(efrit-sessions--by :calls) :right-align t)
          ("Id" 8 t)
          ("Title" 40 t)
          ("Project" 0 t)]
        tabulated-list-padding 1
        tabulated-list-sort-key '("Last used" . t)
        revert-buffer-function #'efrit-sessions-refresh)
  (tabulated-list-init-header))

;;; Commands

;;;###autoload
(defun efrit-sessions (&optional all)
  "List the sessions of the project here; with a prefix argument, ALL there are."
  (interactive "P")
  (let* ((root (unless all (efrit-do-root)))
         (host (file-remote-p (or root default-directory)))
         (buffer (get-buffer-create "*efrit sessions*")))
    (with-current-buffer buffer
      (efrit-sessions-mode)
      (setq efrit-sessions--root root
            efrit-sessions--host host)
      (efrit-sessions-refresh))
    (pop-to-buffer buffer)
    buffer))

;;;###autoload
(defun efrit-resume (id)
  "Take the session ID of the project here up again, and show it.
A session that was closed is open again afterwards.  Nothing is sent:
`efrit-continue' has the model go on, `efrit-do' says something new."
  (interactive (list (efrit-sessions--read-id)))
  (efrit-for-a-person
    (let* ((host (efrit-host-of-session id (file-remote-p default-directory)))
           (session (efrit-sidecar-request 'session/status (list :session_id id) :host host))
           (loop (efrit-do-resume-loop id (file-name-as-directory
                                           (concat host (plist-get session :root))))))
      (funcall efrit-do-show-function loop)
      (message "%s" (efrit-sessions--resumed session))
      loop)))

(defun efrit-sessions-refresh (&rest _)
  "Ask the sidecar for the sessions, and list them."
  (interactive nil efrit-sessions-mode)
  (efrit-check-mode 'efrit-sessions-mode)
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'session/list
     (append (list :include_closed t)
             (and efrit-sessions--root
                  (list :root (efrit-host-local-name efrit-sessions--root))))
     :host efrit-sessions--host
     :success (lambda (told)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer
                    (efrit-sessions--take
                     (efrit-sessions--settled (plist-get told :sessions)
                                              efrit-sessions--host)))))
     :error (lambda (err) (message "%s" (efrit-error-text err))))))

(defun efrit-sessions-resume ()
  "Take the session at point up again."
  (interactive)
  (efrit-resume (plist-get (efrit-sessions--here) :session_id)))

(defun efrit-sessions-new ()
  "Begin another session in the project whose sessions are listed here."
  (interactive)
  (let ((default-directory (or efrit-sessions--root default-directory)))
    (efrit-new)))

(defun efrit-sessions-rename (title)
  "Give the session at point the name TITLE."
  (interactive (list (read-string "Title: " (plist-get (efrit-sessions--here) :title))))
  (efrit-sessions--change 'session/rename (list :title (truncate-string-to-width title 200))))

(defun efrit-sessions-delete ()
  "Delete the session at point with everything in it, once the person agrees."
  (interactive)
  (let ((session (efrit-sessions--here)))
    (efrit-sessions--check-rest session)
    (when (yes-or-no-p (format "Delete %s with all it holds? " (efrit-sessions--name session)))
      (efrit-sessions--let-go session)
      (efrit-sessions--change 'session/delete nil))))

(defun efrit-sessions-purge ()
  "Forget what is in the session at point, once the person agrees.
Its line stays in the list."
  (interactive)
  (let ((session (efrit-sessions--here)))
    (efrit-sessions--check-rest session)
    (when (yes-or-no-p (format "Forget all that %s was given and gave? "
                               (efrit-sessions--name session)))
      (efrit-sessions--let-go session)
      (efrit-sessions--change 'session/purge nil))))

(defun efrit-sessions-export (format)
  "Write the session at point, what left its window too, as FORMAT into a buffer."
  (interactive (list (intern (completing-read "Format: " '("markdown" "org") nil t nil nil
                                              (symbol-name efrit-export-format)))))
  (efrit-export-session (efrit-sessions--here) format #'pop-to-buffer))

;;; Private

(defun efrit-sessions--here ()
  "Return the session at point, a plist."
  (efrit-check-mode 'efrit-sessions-mode)
  (or (cdr (assoc (tabulated-list-get-id) efrit-sessions--all))
      (user-error "There is no session here")))

(defun efrit-sessions--name (session)
  "Return the name of SESSION for a person."
  (let ((title (plist-get session :title)))
    (format "session %s%s" (plist-get session :session_id)
            (if (string-empty-p title) "" (format " (%s)" title)))))

(defun efrit-sessions--change (method params)
  "Call METHOD with PARAMS for the session at point, then list anew."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     method (append (list :session_id (plist-get (efrit-sessions--here) :session_id)) params)
     :timeout nil
     :success (lambda (_)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer
                    (efrit-sessions-refresh))))
     :error (lambda (err) (message "%s" (efrit-error-text err))))))

(defun efrit-sessions--loop (session)
  "Return the loop of SESSION in this Emacs, or nil."
  (seq-find (lambda (loop) (equal (efrit-loop-id loop) (plist-get session :session_id)))
            (efrit-do-loops)))

(defun efrit-sessions--check-rest (session)
  "Signal a `user-error' while SESSION is at work in this Emacs."
  (let ((loop (efrit-sessions--loop session)))
    (when (and loop (not (efrit-loop-resting-p loop)))
      (user-error "It is at work; stop it first"))))

(defun efrit-sessions--let-go (session)
  "Have this Emacs let go of SESSION."
  (when-let* ((loop (efrit-sessions--loop session)))
    (efrit-do-forget loop))
  (efrit-supervisor-forget (plist-get session :session_id)))

;;; The list

(defun efrit-sessions--settled (sessions host)
  "Note that SESSIONS, a vector, lie on HOST; return them as a list."
  (mapcar (lambda (session)
            (efrit-host-settle (plist-get session :session_id) host 'keep)
            session)
          sessions))

(defun efrit-sessions--by (name)
  "Return a predicate to sort entries by the number NAME of their sessions."
  (lambda (one other)
    (< (plist-get (cdr (assoc (car one) efrit-sessions--all)) name)
       (plist-get (cdr (assoc (car other) efrit-sessions--all)) name))))

(defun efrit-sessions--take (sessions)
  "List SESSIONS, as the sidecar told them, in this buffer."
  (setq efrit-sessions--all (mapcar (lambda (session)
                                      (cons (plist-get session :session_id) session))
                                    sessions)
        tabulated-list-entries (mapcar (lambda (entry)
                                         (list (car entry)
                                               (efrit-sessions--columns (cdr entry))))
                                       efrit-sessions--all))
  (tabulated-list-print t))

(defun efrit-sessions--columns (session)
  "Return the columns of SESSION, a vector of strings."
  (vector (efrit-sessions--age (plist-get session :touched))
          (efrit-sessions--state session)
          (format "%d" (plist-get session :calls))
          (plist-get session :session_id)
          (if (string-empty-p (plist-get session :title)) "-" (plist-get session :title))
          (abbreviate-file-name (concat efrit-sessions--host (plist-get session :root)))))

(defun efrit-sessions--state (session)
  "Return what the state of SESSION is called."
  (let ((loop (efrit-sessions--loop session)))
    (cond ((eq (plist-get session :purged) t) "purged")
          ((and loop (not (efrit-loop-resting-p loop))) "at work")
          (loop "here")
          (t (plist-get session :state)))))

(defun efrit-sessions--age (seconds)
  "Return how long ago the time SECONDS was, for a person."
  (let ((past (max 0 (- (float-time) seconds))))
    (cond ((< past 60) "just now")
          ((< past 3600) (format "%d min ago" (/ past 60)))
          ((< past 86400) (format "%d h ago" (/ past 3600)))
          ((< past 172800) "yesterday")
          (t (format "%d days ago" (/ past 86400))))))

;;; Resuming

(defun efrit-sessions--read-id ()
  "Ask for a session of the project here, and return its id."
  (let* ((root (efrit-do-root))
         (host (file-remote-p root))
         (listed (efrit-sidecar-request 'session/list
                                        (list :root (efrit-host-local-name root)
                                              :include_closed t)
                                        :host host))
         (sessions (efrit-sessions--settled (plist-get listed :sessions) host))
         (offered (mapcar (lambda (session)
                            (cons (efrit-sessions--offer session)
                                  (plist-get session :session_id)))
                          sessions)))
    (unless offered
      (user-error "No session was ever opened on %s" (abbreviate-file-name root)))
    (cdr (assoc (completing-read (format-prompt "Resume" "the latest")
                                 (efrit-sessions--table offered) nil t nil nil
                                 (caar offered))
                offered))))

(defun efrit-sessions--offer (session)
  "Return SESSION as a line to choose."
  (format "%s  %s  (%s, %s, %d calls)"
          (plist-get session :session_id)
          (if (string-empty-p (plist-get session :title)) "-" (plist-get session :title))
          (efrit-sessions--age (plist-get session :touched))
          (efrit-sessions--state session)
          (plist-get session :calls)))

(defun efrit-sessions--table (offered)
  "Return a completion table of OFFERED in its order: the latest first."
  (lambda (string predicate action)
    (if (eq action 'metadata)
        '(metadata (display-sort-function . identity) (cycle-sort-function . identity))
      (complete-with-action action offered string predicate))))

(defun efrit-sessions--resumed (session)
  "Return what is said of SESSION, which was taken up again."
  (cond ((eq (plist-get session :purged) t)
         (format "Session %s is open again, but empty: %s"
                 (plist-get session :session_id) (plist-get session :note)))
        ((equal (plist-get session :state) "closed")
         (format "Session %s was closed, and is open again" (plist-get session :session_id)))
        (t (format "Session %s is taken up again" (plist-get session :session_id)))))

(provide 'efrit-sessions)
;;; efrit-sessions.el ends here
