;;; efrit-revise.el --- Change what the model would write, before it is written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where the model asks to change a file, the person may edit the new text
;; in a buffer first, and so allow it.  The model is told the difference.

;;; Code:

(require 'efrit-ask)
(require 'efrit-change)
(require 'efrit-do)
(require 'efrit-plan)
(require 'efrit-run)
(require 'seq)
(require 'subr-x)

(defvar-local efrit-revise--use nil
  "The use whose new text this buffer holds.")

(defvar-local efrit-revise--change nil
  "The change whose new text this buffer holds.")

;; The person may choose another major mode for the text.
(dolist (variable '(efrit-revise--use efrit-revise--change efrit-revise-mode))
  (put variable 'permanent-local t))

(defvar efrit-revise-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'efrit-revise-accept)
    (define-key map (kbd "C-c C-k") #'efrit-revise-drop)
    map)
  "Keys of `efrit-revise-mode'.")

(define-minor-mode efrit-revise-mode
  "Edit what the model would write.
\\{efrit-revise-mode-map}"
  :lighter " Revise")

;;; Commands

;;;###autoload
(defun efrit-revise ()
  "Edit the new text of what the model asks to change, and so allow it."
  (interactive)
  (let* ((loop (efrit-do-loop-here))
         (use (efrit-ask-asking loop))
         (change (efrit-revise--choose use))
         (buffer (generate-new-buffer (format "*efrit new text: %s*"
                                              (efrit-change-path change)))))
    (with-current-buffer buffer
      (insert (efrit-change-after change))
      (goto-char (point-min))
      (efrit-revise--set-mode (efrit-change-file change))
      (setq efrit-do-here loop
            efrit-revise--use use
            efrit-revise--change change)
      (efrit-revise-mode)
      (setq header-line-format
            (substitute-command-keys
             "What the file will hold: \\[efrit-revise-accept] allows it, \
\\[efrit-revise-drop] goes back to the question")))
    (pop-to-buffer buffer)))

(defun efrit-revise-accept ()
  "Allow the change, with the text of this buffer as the new one."
  (interactive)
  (let ((use efrit-revise--use)
        (loop efrit-do-here))
    (unless (eq (efrit-use-state use) 'asking)
      (user-error "It waits for no answer any more"))
    (efrit-plan-revise (efrit-use-plan use) efrit-revise--change (buffer-string))
    (quit-window t)
    (efrit-run-answer loop use 'allow)))

(defun efrit-revise-drop ()
  "Go back to the question; nothing is changed."
  (interactive)
  (quit-window t))

;;; Private

(defun efrit-revise--choose (use)
  "Return the change of USE whose new text is edited; ask if there are several."
  (let* ((plan (or (efrit-use-plan use)
                   (user-error "%s has no new text" (efrit-use-name use))))
         (changes (efrit-plan-revisable plan))
         (paths (mapcar #'efrit-change-path changes)))
    (cond ((null changes) (user-error "%s has no new text" (efrit-use-name use)))
          ((null (cdr changes)) (car changes))
          (t (nth (seq-position paths (completing-read "Edit the new text of: " paths nil t))
                  changes)))))

(defun efrit-revise--set-mode (file)
  "Use the major mode of FILE, without what else is done for a file's buffer."
  (let ((buffer-file-name file)
        (enable-local-variables nil))
    (delay-mode-hooks
      (ignore-errors (set-auto-mode)))
    (font-lock-mode)))

(provide 'efrit-revise)
;;; efrit-revise.el ends here
