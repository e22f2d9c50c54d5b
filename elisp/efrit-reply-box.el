;;; efrit-reply-box.el --- Where the person types  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The last part of a session's buffer.  What is sent while the model works
;; goes with its next turn.  The transcript above grows without being
;; recorded for undo; before each command what is recorded is moved along
;; with the box, so that undo works in it as anywhere.

;;; Code:

(require 'cl-lib)
(require 'efrit-do)
(require 'efrit-transcript)
(require 'project)
(require 'subr-x)

;;; Options

(defcustom efrit-reply-box-files-for 15
  "Seconds for which the names of a project's files are taken as known."
  :group 'efrit
  :type 'number)

(defvar-local efrit-reply-box--place nil
  "Where the box began when what is recorded for undo was right.")

(defvar-local efrit-reply-box--index nil
  "Which entry of the history the box shows, or nil for the person's own text.")

(defvar-local efrit-reply-box--own nil
  "What the person had typed before looking at the history.")

(defvar-local efrit-reply-box--files nil
  "The names of the project's files, behind the time they were listed at.")

(defvar-local efrit-reply-box-send-function #'ignore
  "Called with the text of the box to send it.")

;;; Public

(defun efrit-reply-box-set-up (send)
  "Make the end of this buffer a reply box, and SEND what takes its text."
  (setq efrit-reply-box-send-function send
        buffer-undo-list nil
        efrit-reply-box--place (marker-position efrit-transcript-box))
  (add-hook 'pre-command-hook #'efrit-reply-box--move-undo nil t)
  (add-hook 'completion-at-point-functions #'efrit-reply-box-complete nil t))

(defun efrit-reply-box-text ()
  "Return what stands in the box."
  (buffer-substring-no-properties efrit-transcript-box (point-max)))

(defun efrit-reply-box-set (text)
  "Make TEXT what stands in the box, and move behind it."
  (delete-region efrit-transcript-box (point-max))
  (goto-char (point-max))
  (insert text))

(defun efrit-reply-box-complete ()
  "Complete the name of a file of the project behind an @, in the box.
This is for `completion-at-point-functions'."
  (when (efrit-transcript-in-box-p)
    (let ((end (point)))
      (save-excursion
        (skip-chars-backward "^ \t\n@" efrit-transcript-box)
        (when (and (eq (char-before) ?@)
                   (> (point) efrit-transcript-box)
                   (memq (char-before (1- (point))) '(nil ?\s ?\t ?\n ?\()))
          (list (point) end
                (completion-table-dynamic (lambda (_) (efrit-reply-box-files)))
                :exclusive 'no))))))

(defun efrit-reply-box-files ()
  "Return the names of the project's files, below its root."
  (unless (and efrit-reply-box--files
               (< (- (float-time) (car efrit-reply-box--files)) efrit-reply-box-files-for))
    (setq efrit-reply-box--files (cons (float-time) (efrit-reply-box--list))))
  (cdr efrit-reply-box--files))

;;; Commands

(defun efrit-reply-box-send ()
  "Send what stands in the reply box.
While the model works, it goes with the next turn."
  (interactive)
  (let ((text (string-trim (efrit-reply-box-text))))
    (when (string-empty-p text)
      (user-error "The reply box is empty"))
    (funcall efrit-reply-box-send-function text)
    (setq efrit-reply-box--index nil)
    (efrit-do-remember text)
    (efrit-reply-box-set "")
    (setq buffer-undo-list nil)))

(defun efrit-reply-box-go ()
  "Go to the reply box."
  (interactive)
  (goto-char (point-max)))

(defun efrit-reply-box-previous (&optional count)
  "Show in the box what was said before, or COUNT entries back."
  (interactive "p")
  (let* ((index (+ (or efrit-reply-box--index -1) (or count 1)))
         (said (and (>= index 0) (nth index efrit-do-history))))
    (unless (or said (= index -1))
      (user-error (if (< index -1) "This is what you type now" "Nothing was said before")))
    (unless efrit-reply-box--index
      (setq efrit-reply-box--own (efrit-reply-box-text)))
    (setq efrit-reply-box--index (and said index))
    (efrit-reply-box-set (or said efrit-reply-box--own ""))))

(defun efrit-reply-box-next (&optional count)
  "Show in the box what was said later, or COUNT entries on."
  (interactive "p")
  (efrit-reply-box-previous (- (or count 1))))

;;; Private

(defun efrit-reply-box--list ()
  "List the files of the project here."
  (let ((root (expand-file-name default-directory)))
    (mapcar (lambda (file)
              ;; To expand a remote name takes much longer than to compare it.
              (string-remove-prefix root (if (string-prefix-p root file) file
                                           (expand-file-name file))))
            (project-files (or (project-current nil root) (cons 'transient root))))))

(defun efrit-reply-box--move-undo ()
  "Move what is recorded for undo along with the box."
  (let ((delta (- efrit-transcript-box efrit-reply-box--place)))
    (unless (or (zerop delta) (eq buffer-undo-list t))
      (setq buffer-undo-list
            (mapcar (lambda (entry) (efrit-reply-box--moved entry delta)) buffer-undo-list)))
    (setq efrit-reply-box--place (marker-position efrit-transcript-box))))

(defun efrit-reply-box--moved (entry delta)
  "Return ENTRY of `buffer-undo-list' for text that has moved by DELTA."
  (pcase entry
    ((pred integerp) (+ entry delta))
    (`(,(and (pred integerp) start) . ,(and (pred integerp) end))
     (cons (+ start delta) (+ end delta)))
    (`(,(and (pred stringp) text) . ,(and (pred integerp) place))
     (cons text (if (< place 0) (- place delta) (+ place delta))))
    (`(nil ,property ,value ,start . ,end)
     `(nil ,property ,value ,(+ start delta) . ,(+ end delta)))
    (_ entry)))

(provide 'efrit-reply-box)
;;; efrit-reply-box.el ends here
