;;; efrit-restore.el --- Bookmarks and desktops of sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A bookmark of a session's buffer, which resumes the session, and the buffer
;; that `desktop-save-mode' restores: it names the session, which one key resumes,
;; so that no sidecar is started and no question asked when Emacs starts.

;;; Code:

(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-transcript)
(require 'efrit-view)

(defvar-local efrit-restore--session nil
  "The session that this buffer stands for: a plist of `:id', `:root', `:title'.")

(put 'efrit-restore--session 'permanent-local t)

(defconst efrit-restore--patience 10
  "Most seconds to wait for the transcript of a session that a bookmark names.")

;;; Bookmarks

(declare-function bookmark-prop-get "bookmark" (bookmark-name-or-record prop))

;;;###autoload
(defun efrit-restore-bookmark ()
  "Return a bookmark of the session here, and of the exchange at point."
  (let ((session (efrit-restore--describe efrit-loop-here)))
    `(,(efrit-permissions-visible
        (or (plist-get session :title) (efrit-loop-project efrit-loop-here)) t)
      (handler . efrit-restore-jump)
      (location . ,(format "efrit session %s of %s" (plist-get session :id)
                           (abbreviate-file-name (plist-get session :root))))
      (session . ,(plist-get session :id))
      (root . ,(plist-get session :root))
      (exchange . ,(efrit-exchange-number)))))

;;;###autoload
(defun efrit-restore-jump (bookmark)
  "Resume the session of BOOKMARK, and go to its exchange."
  (efrit-for-a-person
    (set-buffer (efrit-restore--resume (bookmark-prop-get bookmark 'session)
                                       (bookmark-prop-get bookmark 'root)))
    (when-let* ((number (bookmark-prop-get bookmark 'exchange)))
      (let ((end (+ (float-time) efrit-restore--patience)))
        (while (and (not (efrit-exchange-go-to number))
                    (< (float-time) end))
          (accept-process-output nil 0.05))))))

;;; Desktops

(defvar desktop-save-buffer)

(defvar efrit-restore-mode-map
  (efrit-make-keymap '(("RET" efrit-restore-resume)
                       ("g" efrit-restore-resume)
                       ("<mouse-2>" efrit-restore-resume)))
  "Keys of `efrit-restore-mode'.")

(define-derived-mode efrit-restore-mode special-mode "Efrit-Stored"
  "Major mode of a buffer that stands for a stored session.

\\{efrit-restore-mode-map}"
  (efrit-keep-keys)
  (setq-local desktop-save-buffer #'efrit-restore-desktop-save))

;;;###autoload
(defun efrit-restore-desktop-save (_folder)
  "Return a plist of the session here for a desktop file."
  (or efrit-restore--session
      (efrit-restore--describe efrit-loop-here)))

;;;###autoload
(defun efrit-restore-desktop (_file name session)
  "Return a buffer NAME that stands for SESSION, a plist from a desktop file."
  (with-current-buffer (generate-new-buffer name)
    (efrit-restore-mode)
    (setq efrit-restore--session session)
    (efrit-set-buffer-text
     (concat (propertize (efrit-permissions-visible
                          (or (plist-get session :title) "A session") t)
                         'face 'efrit-title)
             "\n" (efrit-permissions-visible (abbreviate-file-name (plist-get session :root)) t)
             "\n\nThis session is stored.  "
             (propertize "RET" 'face 'efrit-key 'mouse-face 'highlight 'follow-link t)
             " resumes it.\n"))
    (current-buffer)))

(defun efrit-restore-resume ()
  "Resume the session that this buffer stands for, in its windows."
  (interactive nil efrit-restore-mode)
  (efrit-check-mode 'efrit-restore-mode)
  (efrit-for-a-person
    (let* ((stand-in (current-buffer))
           (windows (get-buffer-window-list stand-in nil t))
           (buffer (efrit-restore--resume (plist-get efrit-restore--session :id)
                                          (plist-get efrit-restore--session :root))))
      (dolist (window windows)
        (set-window-buffer window buffer))
      (kill-buffer stand-in)
      (efrit-session-view-name-all)
      (set-buffer buffer)
      (goto-char (point-max)))))

;;; Both

(defun efrit-restore--describe (loop)
  "Return the plist that identifies the session of LOOP."
  (list :id (efrit-loop-id loop) :root (efrit-loop-root loop) :title (efrit-loop-title loop)))

(defun efrit-restore--resume (id root)
  "Resume the session ID of the project ROOT, and return its buffer."
  (efrit-session-view-buffer (efrit-do-resume-loop id root)))

(provide 'efrit-restore)
;;; efrit-restore.el ends here
