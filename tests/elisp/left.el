;;; left.el --- What a test leaves behind  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A test leaves no buffers, processes, timers or temporary files, for they
;; would be in the next one's way.

;;; Code:

(require 'cl-lib)
(require 'seq)

(defconst left-kinds
  '(("buffer" left--buffers kill-buffer)
    ("process" left--processes delete-process)
    ("timer" left--timers cancel-timer)
    ("file" left--files left--delete-file))
  "Kinds of leftovers: a noun, a function to list them, one to remove them.")

(defvar left-folder nil
  "The folder for temporary files, whose every file is the tests' own.
What they leave there is deleted, so that others must not use it.")

(defvar left-patience 60
  "Seconds that an ended process may take to disappear.")

(defconst left--timers-of-emacs '(undo-auto--boundary-timer password-cache-remove)
  "The functions of timers that Emacs itself starts and leaves.")

(defconst left--buffers-to-keep
  "\\` \\*code-conver\\(sion\\|ting\\)-work\\*\\|\\`\\*Native-compile-Log\\*\\|\\` \\*efrit fontify "
  "Regexp for names of buffers that Emacs itself, or `efrit-fontify', keeps.")

(defun left--buffers ()
  "Return the buffers."
  (seq-remove (lambda (buffer) (string-match-p left--buffers-to-keep (buffer-name buffer)))
              (buffer-list)))

(defun left--processes ()
  "Return the processes that have not ended.
Emacs lists one for ever whose end comes as a person quits."
  (seq-filter #'process-live-p (process-list)))

(defun left--timers ()
  "Return the timers that wait, whether for a time or for idleness."
  (seq-remove (lambda (timer) (memq (timer--function timer) left--timers-of-emacs))
              (append timer-list timer-idle-list)))

(defun left--files ()
  "Return the temporary files and folders.
Those of Org stay until Emacs ends, and are not among them."
  (seq-remove (lambda (file) (string-prefix-p "org-persist-" (file-name-nondirectory file)))
              (directory-files left-folder t directory-files-no-dot-files-regexp)))

(defun left--delete-file (file)
  "Delete FILE, or the folder FILE."
  (if (file-directory-p file)
      (delete-directory file t)
    (delete-file file)))

(defun left-look ()
  "Return the present state, for `left-behind'."
  (mapcar (lambda (kind) (funcall (nth 1 kind))) left-kinds))

(defun left-behind (before)
  "Wait until nothing is left besides BEFORE, of `left-look'.
Remove each thing that stays, and return a description of it."
  (let ((end (+ (float-time) left-patience)))
    (while (and (left--new before) (< (float-time) end))
      (accept-process-output nil 0.02)))
  (mapcar (pcase-lambda (`(,kind . ,thing))
            (prog1 (left--describe kind thing)
              (left--take-away kind thing)))
          (left--new before)))

(defun left--new (before)
  "Return the things that there were not BEFORE, each with its kind in front."
  (cl-loop for kind in left-kinds
           for old in before
           append (mapcar (lambda (thing) (cons kind thing))
                          (seq-difference (funcall (nth 1 kind)) old))))

(defun left--describe (kind thing)
  "Return a line on THING of KIND."
  (let ((print-level 4)
        (print-length 12))
    (format "%s %s" (car kind)
            (if (timerp thing) (cons (timer--function thing) (timer--args thing)) thing))))

(defun left--take-away (kind thing)
  "Remove THING of KIND, without any question."
  (let ((kill-buffer-query-functions nil))
    (when (buffer-live-p thing)
      (with-current-buffer thing
        (set-buffer-modified-p nil)))
    (ignore-errors (funcall (nth 2 kind) thing))))

(provide 'left)
;;; left.el ends here
