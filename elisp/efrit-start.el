;;; efrit-start.el --- The prompt of a task  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands that read a task.  This file requires almost nothing, so that
;; the first prompt is there at once; the other files are loaded, and the sidecar
;; is started, while the person types.

;;; Code:

(require 'efrit)

(defconst efrit-start--steps
  '((require efrit-sidecar)
    (efrit-start--sidecar)
    (require efrit-run)
    (efrit-start--find-project)
    (require transient)
    (require efrit-do)
    (efrit-start--complete-files)
    (require efrit-view)
    (require auth-source))
  "Functions to call behind the prompt, with their arguments, in this order.
The sidecar comes first, since it takes longest to start.")

(defconst efrit-start--pause 0.02
  "Seconds from one step behind the prompt to the next.")

(defvar efrit-do-history nil
  "Messages that the person sent, latest first.")

;;;###autoload
(defun efrit-do (task &optional dry)
  "Have the model do TASK in the project here.
With an active region, the region is context.  With a prefix argument, as
DRY, show first what would be sent, and what it would cost."
  (interactive (list (efrit-start--read-task (efrit-start--prompt efrit-context-buffer))
                     current-prefix-arg))
  (efrit-do-task task dry))

;;;###autoload
(defun efrit-do-with-buffer (task)
  "Have the model do TASK in the project here, with the text of this buffer."
  (interactive (list (efrit-start--read-task (efrit-start--prompt 'text))))
  (let ((efrit-context-buffer 'text))
    (efrit-do-task task)))

(defun efrit-do-remember (task)
  "Add TASK to the history, unless it has a <private> tag.
`savehist-mode' would write the private text to a file."
  (unless (let ((case-fold-search t))
            (string-match-p "<[ \t\n]*/?[ \t\n]*private" task))
    (add-to-history 'efrit-do-history task)))

(declare-function project-root "project" (project))
(declare-function efrit-loop-root "efrit-loop" (loop) t)
(declare-function efrit-loop-title "efrit-loop" (loop) t)
(declare-function efrit-loop-latest "efrit-loop" (&optional root))
(defvar efrit-loop-here)

(defun efrit-start--prompt (context)
  "Return the prompt for a task, which names project, session and context.
CONTEXT is as in `efrit-context-buffer'."
  (let* ((here (bound-and-true-p efrit-loop-here))
         (root (if here (efrit-loop-root here) (efrit-start--root)))
         (loop (or here (and root (featurep 'efrit-loop) (efrit-loop-latest root))))
         (along (cond ((use-region-p)
                       (format "with the region of %s"
                               (efrit-count-text (count-lines (region-beginning) (region-end))
                                                 "line")))
                      ((and (eq context 'text) (not here))
                       (concat "with the buffer " (efrit-start--short (buffer-name))))))
         (session (cond ((null loop) (and root "new session"))
                        ((efrit-loop-title loop)
                         (format "session \"%s\"" (efrit-start--short (efrit-loop-title loop)))))))
    (concat "Do"
            (if root
                (concat " in " (file-name-nondirectory (directory-file-name root)))
              "")
            (if (or session along)
                (concat " (" (mapconcat #'identity (delq nil (list session along)) ", ") ")")
              "")
            ": ")))

(defun efrit-start--root ()
  "Return the root of the project here, or nil if it would take time to find one."
  (unless (file-remote-p default-directory)
    (let ((root (if (featurep 'project)
                    (let ((project (project-current)))
                      (and project (project-root project)))
                  (locate-dominating-file default-directory ".git"))))
      (and root (file-name-as-directory (expand-file-name root))))))

(defun efrit-start--short (text)
  "Return TEXT on one line, of at most 40 columns."
  (truncate-string-to-width (mapconcat #'identity (split-string text) " ") 40 nil nil t))

(defun efrit-start--read-task (prompt)
  "Read a task with PROMPT, and add it to the history.
Meanwhile load the other files and start the sidecar."
  (let ((task (minibuffer-with-setup-hook #'efrit-start--prepare
                (let ((history-add-new-input nil))
                  (read-string prompt nil 'efrit-do-history)))))
    (unless (equal task "")
      (efrit-do-remember task))
    task))

;;; Behind the prompt

(defvar-local efrit-start--reading-task nil
  "Non-nil in the minibuffer of a task.")

(defun efrit-start--prepare ()
  "Begin to work through `efrit-start--steps', one at a time, by timers."
  (setq efrit-start--reading-task t)
  (efrit-start--continue-later efrit-start--steps))

(defun efrit-start--continue-later (todo)
  "Work through TODO, a tail of `efrit-start--steps', after a pause."
  (run-at-time efrit-start--pause nil #'efrit-start--continue todo default-directory))

(defun efrit-start--continue (todo folder)
  "Call the first function of TODO in FOLDER, and the others later.
Wait while a key is to be read, and stop once the prompt is closed."
  (let ((default-directory folder))
    (cond ((null (active-minibuffer-window)))
          ((input-pending-p) (efrit-start--continue-later todo))
          (t (efrit-start--call (car todo))
             (when (cdr todo)
               (efrit-start--continue-later (cdr todo)))))))

(defun efrit-start--call (step)
  "Call the function of STEP; ignore errors, which come again when it is needed.
A quit ends STEP and is passed on to the prompt as a key: as a mere flag, Emacs
could lose it while it reads the output of a process."
  (let ((inhibit-message t)
        (inhibit-quit nil))
    (condition-case nil
        (apply (car step) (cdr step))
      (quit (push ?\C-g unread-command-events))
      (error nil))))

(defun efrit-start--sidecar ()
  "Start the sidecar of this machine, unless the folder here is remote."
  (unless (file-remote-p default-directory)
    (efrit-sidecar-start (efrit-host-of-folder default-directory))))

(declare-function efrit-host-of-folder "efrit-sidecar" (folder))
(declare-function efrit-attach-watch-minibuffer "efrit-attach")

(defun efrit-start--complete-files ()
  "Have the minibuffer of a task complete the project's files behind an @."
  (with-current-buffer (window-buffer (active-minibuffer-window))
    (when efrit-start--reading-task
      (efrit-attach-watch-minibuffer))))

(defun efrit-start--find-project ()
  "Look for the project here, to load the packages that find projects."
  (unless (file-remote-p default-directory)
    (project-current)))

(provide 'efrit-start)
;;; efrit-start.el ends here
