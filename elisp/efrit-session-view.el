;;; efrit-session-view.el --- A session, as it is at work  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One buffer for each session: what was said and done, how things stand,
;; and a box to reply in.  Single letters are commands above the box, and
;; text in it; what begins with C-c is a command everywhere in the buffer.
;;
;; What makes up the buffer requires one way:
;;
;;   efrit-session-view -> efrit-past -> efrit-view-events -> efrit-live
;;     -> efrit-ask -> efrit-transcript -> efrit-faces
;;   efrit-view-events -> efrit-output -> efrit-transcript
;;   efrit-session-view -> efrit-reply-box, efrit-result -> efrit-transcript
;;   efrit-session-view -> efrit-presence

;;; Code:

(require 'cl-lib)
(require 'efrit-ask)
(require 'efrit-call)
(require 'efrit-do)
(require 'efrit-live)
(require 'efrit-loop)
(require 'efrit-past)
(require 'efrit-presence)
(require 'efrit-reply-box)
(require 'efrit-result)
(require 'efrit-show)
(require 'efrit-sidecar)
(require 'efrit-transcript)
(require 'efrit-view-events)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-session-view-height 0.67
  "How much of a frame the window of a session takes where a new one is made.
A fraction, or a number of lines."
  :group 'efrit
  :type 'number)

(defvar efrit-session-view--buffers (make-hash-table :test #'eq :weakness 'key)
  "The buffers of loops.")

(defvar efrit-session-view-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key ,command)
                   '(("\r" efrit-session-view-return)
                     ("\n" newline)
                     ("\t" efrit-session-view-tab)
                     ("\M-p" efrit-session-view-previous)
                     ("\M-n" efrit-session-view-next)
                     ("\C-c\C-c" efrit-reply-box-send)
                     ("\C-c\C-k" efrit-stop)
                     ("\C-c\C-x" efrit-stop-tool)
                     ("\C-c\C-t" efrit-continue)
                     ("\C-c\C-r" efrit-retry)
                     ("\C-c\C-o" efrit-open-result)
                     ("\C-c\C-w" efrit-copy)
                     ("\C-c\C-b" efrit-budget)
                     ("\C-c\C-l" efrit-resume)
                     ("\C-c\C-a" efrit-ask-go)
                     ("\C-c\C-y" efrit-allow-once)
                     ("\C-c\C-d" efrit-deny-once)
                     ("\C-c\C-p" efrit-item-previous)
                     ("\C-c\C-n" efrit-item-next)
                     ("\C-c?" efrit)))
      (define-key map key command))
    map)
  "Keys everywhere in a session's buffer.")

(defvar efrit-session-view-transcript-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map efrit-session-view-mode-map)
    (define-key map [remap self-insert-command] #'efrit-session-view-no-key)
    (pcase-dolist (`(,key ,command)
                   '(("?" efrit)
                     ("k" efrit-stop)
                     ("x" efrit-stop-tool)
                     ("c" efrit-continue)
                     ("r" efrit-retry)
                     ("o" efrit-open-result)
                     ("w" efrit-copy)
                     ("b" efrit-budget)
                     ("R" efrit-resume)
                     ("i" efrit-reply-box-go)
                     ("]" efrit-item-next)
                     ("[" efrit-item-previous)
                     (" " scroll-up-command)
                     ([?\S-\ ] scroll-down-command)
                     ("\d" scroll-down-command)
                     ("q" quit-window)
                     ([mouse-2] efrit-session-view-click)))
      (define-key map key command))
    map)
  "Keys above the reply box.")

;;; Public

(define-derived-mode efrit-session-view-mode nil "Efrit"
  "A session of efrit.
Above the reply box:
\\{efrit-session-view-transcript-map}
Everywhere:
\\{efrit-session-view-mode-map}"
  (setq-local scroll-conservatively 10000
              bidi-paragraph-direction 'left-to-right
              header-line-format '(:eval (efrit-session-view--header))
              mode-line-process '(:eval (efrit-session-view--doing)))
  (setq truncate-lines nil
        word-wrap t)
  (add-hook 'change-major-mode-hook #'efrit-session-view--refuse-mode nil t)
  (add-hook 'kill-buffer-query-functions #'efrit-session-view--may-kill-p nil t)
  (add-hook 'kill-buffer-hook #'efrit-session-view--killed nil t))

(defun efrit-session-view-buffer (loop)
  "Return the buffer of LOOP, a new one where there is none."
  (let ((buffer (gethash loop efrit-session-view--buffers)))
    (if (buffer-live-p buffer)
        buffer
      (efrit-session-view--make loop))))

;;;###autoload
(defun efrit-session-view-show (loop)
  "Show the buffer of LOOP, with point in its reply box."
  (pop-to-buffer (efrit-session-view-buffer loop)
                 `(nil (window-height . ,efrit-session-view-height)))
  (goto-char (point-max)))

;;; Commands

;;;###autoload
(defun efrit-view ()
  "Show the session of the project here."
  (interactive)
  (efrit-session-view-show (efrit-do-loop-here)))

(defun efrit-session-view-return ()
  "Send what is in the reply box; above it, push the button or open what is here."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-send)
    (efrit-session-view--act)))

(defun efrit-session-view-tab ()
  "Complete in the reply box; above it, open or fold what is here."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (completion-at-point)
    (efrit-session-view--act)))

(defun efrit-session-view-click (event)
  "Push the button, or open or fold what is at EVENT, a click."
  (interactive "e")
  (mouse-set-point event)
  (efrit-session-view--act))

(defun efrit-session-view-previous ()
  "Show in the reply box what was said before; above it, go to the item before."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-previous)
    (efrit-item-previous)))

(defun efrit-session-view-next ()
  "Show in the reply box what was said later; above it, go to the next item."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-next)
    (efrit-item-next)))

(defun efrit-session-view-no-key ()
  "Say that the key is none here."
  (interactive)
  (user-error "%s is no key here: ? shows the keys, i goes to the reply box"
              (key-description (this-command-keys))))

;;;###autoload
(defun efrit-copy ()
  "Copy what stands at point: the region, or what was said, thought, or given."
  (interactive)
  (let ((item (efrit-item-at (point))))
    (cond ((use-region-p) (copy-region-as-kill (region-beginning) (region-end)))
          (item (kill-new (efrit-view-item-text item))
                (message "Copied %d characters" (length (car kill-ring))))
          (t (user-error "Nothing to copy is here")))))

;;; Making

(defun efrit-session-view--make (loop)
  "Make the buffer of LOOP, and return it."
  (let* ((root (efrit-loop-root loop))
         (name (file-name-nondirectory (directory-file-name root)))
         (buffer (generate-new-buffer (format "*efrit: %s*" name))))
    (puthash loop buffer efrit-session-view--buffers)
    (with-current-buffer buffer
      (efrit-session-view-mode)
      (setq default-directory (file-name-as-directory root)
            efrit-do-here loop)
      (efrit-transcript-set-up (efrit-session-view--title loop)
                               (efrit-session-view--prompt)
                               efrit-session-view-transcript-map)
      (efrit-view-events-set-up loop)
      (efrit-reply-box-set-up #'efrit-session-view--send)
      (efrit-live-refresh)
      (goto-char (point-max))
      (efrit-session-view--take-up loop))
    (efrit-loop-observe loop #'efrit-session-view--observe)
    buffer))

(defun efrit-session-view--take-up (loop)
  "Ask the sidecar for what this buffer is to show of LOOP at the beginning."
  (when (or (efrit-loop-stale loop) (> (efrit-loop-turn loop) 0))
    (efrit-past-show loop))
  (unless (efrit-loop-budget loop)
    (efrit-sidecar-request-async
     'session/status (list :session_id (efrit-loop-id loop))
     :success (lambda (status)
                (unless (efrit-loop-budget loop)
                  (setf (efrit-loop-budget loop) (plist-get status :budget))
                  (force-mode-line-update t)))
     :error #'ignore)))

(defun efrit-session-view--title (loop)
  "Return the first line of the buffer of LOOP."
  (propertize (format "efrit  %s  session %s"
                      (abbreviate-file-name (efrit-loop-root loop)) (efrit-loop-id loop))
              'face 'efrit-title))

(defun efrit-session-view--prompt ()
  "Return what stands between the live part and the reply box."
  (concat (propertize "RET sends · C-j begins a line · @ completes a file · C-c ? shows the keys\n"
                      'face 'efrit-note)
          (propertize "› " 'face 'efrit-prompt)))

;;; Showing

(defun efrit-session-view--observe (loop event)
  "Show EVENT of LOOP in its buffer, if that is there."
  (let ((buffer (gethash loop efrit-session-view--buffers)))
    (efrit-transcript-in buffer
      (efrit-view-take loop event)
      (when (memq (car event) '(begun ended price state))
        (force-mode-line-update))
      (efrit-session-view--keep-end))
    (when (buffer-live-p buffer)
      (efrit-presence-take loop event buffer))))

(defun efrit-session-view--keep-end ()
  "See to it that windows whose point is in the live part show the end, too.
Who reads a question there is left alone."
  (dolist (window (efrit-transcript-windows))
    (when (and (not noninteractive)
               (<= efrit-transcript-end (window-point window) (1- efrit-transcript-box))
               (not (efrit-ask-at-p (window-point window)))
               (not (pos-visible-in-window-p (point-max) window)))
      (with-selected-window window
        (save-excursion
          (goto-char (point-max))
          (recenter -1))))))

(defun efrit-session-view--act ()
  "Push the button at point, or open or fold the item there."
  (let ((item (efrit-item-at (point))))
    (cond ((button-at (point)) (push-button (point)))
          ((and item (efrit-item-toggle item)))
          (t (user-error "Nothing to open is here")))))

(defun efrit-session-view--send (text)
  "Send TEXT, from the reply box: as an answer, or as what is to be done."
  (if (efrit-ask-open-p)
      (efrit-ask-answer text)
    (efrit-do-submit (efrit-do-loop-here) text)))

(defun efrit-session-view--header ()
  "Return the header line: the budget."
  (if efrit-do-here
      (concat " " (replace-regexp-in-string
                   "%" "%%" (efrit-show-gauge efrit-do-here (- (window-width) 2))))
    ""))

(defun efrit-session-view--doing ()
  "Return what the loop of this buffer does, for its mode line."
  (if efrit-do-here
      (concat ": " (efrit-show-state (efrit-loop-state efrit-do-here)))
    ""))

;;; Killing, and other modes

(defun efrit-session-view--refuse-mode ()
  "Signal a `user-error': in another mode this buffer would show nothing any more."
  (user-error "This buffer shows a session, and stays in its mode"))

(defun efrit-session-view--may-kill-p ()
  "Return non-nil if this buffer may be killed, which stops what is at work."
  (or (null efrit-do-here)
      (efrit-loop-resting-p efrit-do-here)
      (yes-or-no-p "Efrit is at work here; the session stays.  Stop it? ")))

(defun efrit-session-view--killed ()
  "Stop what is at work in this buffer, which is being killed."
  (efrit-live-end-count)
  (when (and efrit-do-here (not (efrit-loop-resting-p efrit-do-here)))
    (efrit-loop-stop efrit-do-here)))

(provide 'efrit-session-view)
;;; efrit-session-view.el ends here
