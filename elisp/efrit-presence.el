;;; efrit-presence.el --- Sessions at work, seen from other buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; While a session works every mode line says so; when it asks or ends
;; unseen, the echo area or the desktop does.  Nobody's window changes.

;;; Code:

(require 'cl-lib)
(require 'efrit-call)
(require 'efrit-do)
(require 'efrit-faces)
(require 'efrit-loop)
(require 'efrit-run)
(require 'efrit-show)
(require 'seq)

(declare-function notifications-notify "notifications" (&rest params))

;;; Options

(defcustom efrit-presence-notify 'desktop
  "How it is said that a session which nobody looks at has ended."
  :group 'efrit
  :type '(choice (const :tag "By the desktop, else in the echo area" desktop)
                 (const :tag "In the echo area" message)
                 (const :tag "Not at all" nil)))

(defcustom efrit-presence-in-mode-line t
  "Whether every mode line says that a session is at work."
  :group 'efrit
  :type 'boolean)

(defvar efrit-presence-line ""
  "What every mode line says of the sessions at work.")
(put 'efrit-presence-line 'risky-local-variable t)

;;; Public

(defun efrit-presence-take (loop event buffer)
  "Say elsewhere what matters of EVENT of LOOP, whose buffer is BUFFER."
  (pcase event
    (`(state ,state ,_)
     (efrit-presence--refresh)
     (when (memq state efrit-loop-resting)
       (efrit-presence--ended loop state buffer)))
    (`(ask ,use)
     (efrit-presence--refresh)
     (efrit-presence--asks buffer (efrit-use-name use)))
    (`(question . ,_)
     (efrit-presence--refresh)
     (efrit-presence--asks buffer "the model"))
    (`(use ,_) (efrit-presence--refresh))))

(defun efrit-presence-working ()
  "Return the loops that are at work."
  (seq-remove #'efrit-loop-resting-p (efrit-do-loops)))

(defun efrit-presence-may-exit-p ()
  "Return non-nil if Emacs may exit, which the person decides while one works.
This is for `kill-emacs-query-functions'."
  (or (null (efrit-presence-working))
      (yes-or-no-p "Efrit is at work; the session stays.  Exit anyway? ")))

(add-hook 'kill-emacs-query-functions #'efrit-presence-may-exit-p)

;;; Private

(defun efrit-presence--refresh ()
  "Say in the mode lines which loops are at work."
  (let ((line (efrit-presence--text (efrit-presence-working))))
    (unless (equal line efrit-presence-line)
      (setq efrit-presence-line line)
      (efrit-presence--install)
      (force-mode-line-update t))))

(defun efrit-presence--install ()
  "Have the mode lines say what there is to say, and nothing if there is not."
  (let ((others (remq 'efrit-presence-line
                      (cond ((null global-mode-string) '(""))
                            ((listp global-mode-string) global-mode-string)
                            (t (list global-mode-string))))))
    (setq global-mode-string
          (if (string-empty-p efrit-presence-line)
              others
            (append others '(efrit-presence-line))))))

(defun efrit-presence--text (loops)
  "Return what mode lines say of LOOPS, those at work."
  (if (or (null loops) (not efrit-presence-in-mode-line))
      ""
    (let ((asking (seq-some #'efrit-presence--waits-p loops)))
      (propertize (format " efrit: %s%s "
                          (if asking "asks" (efrit-show-state (efrit-loop-state (car loops))))
                          (if (cdr loops) (format " (of %d)" (length loops)) ""))
                  'face (if asking 'efrit-question 'efrit-busy)))))

(defun efrit-presence--waits-p (loop)
  "Return non-nil if LOOP waits for an answer of the person's."
  (or (efrit-run-asking loop)
      (seq-some (lambda (use)
                  (and (equal (efrit-use-name use) "ask_user")
                       (eq (efrit-use-state use) 'running)))
                (efrit-loop-run loop))))

(defun efrit-presence--seen-p (buffer)
  "Return non-nil if BUFFER is in a window of a frame that can be seen."
  (and (buffer-live-p buffer) (get-buffer-window buffer 'visible)))

(defun efrit-presence--asks (buffer who)
  "Say that WHO asks in BUFFER, where the person does not see it."
  (unless (efrit-presence--seen-p buffer)
    (message "Efrit asks: %s waits for your answer in %s" who (buffer-name buffer))))

(defun efrit-presence--ended (loop state buffer)
  "Say that LOOP rests in STATE, where the person does not see BUFFER."
  (when (and efrit-presence-notify
             (not (and (efrit-presence--seen-p buffer) (efrit-presence--focused-p))))
    (efrit-later #'efrit-presence--notify
                 (format "%s: %s" (abbreviate-file-name (efrit-loop-root loop))
                         (if (eq state 'idle) "it has ended" (efrit-show-state state))))))

(defun efrit-presence--focused-p ()
  "Return non-nil unless all frames are known to be out of focus."
  (seq-some (lambda (frame) (memq (frame-focus-state frame) '(t unknown))) (frame-list)))

(defun efrit-presence--notify (text)
  "Say TEXT by the desktop, or in the echo area."
  (unless (and (eq efrit-presence-notify 'desktop)
               (display-graphic-p)
               (getenv "DBUS_SESSION_BUS_ADDRESS")
               (require 'notifications nil t)
               (ignore-errors
                 (notifications-notify :title "Efrit" :body text :app-name "Emacs")))
    (message "Efrit: %s" text)))

(provide 'efrit-presence)
;;; efrit-presence.el ends here
