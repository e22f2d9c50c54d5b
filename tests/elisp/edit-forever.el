;;; edit-forever.el --- Edit a file until somebody kills this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; See tests/emacs/test_killed_edits.py.  The command line names a project,
;; and, to take everything back instead, the session.

;;; Code:

(add-to-list 'load-path (file-name-directory load-file-name))
(add-to-list 'load-path (expand-file-name "../../elisp" (file-name-directory load-file-name)))

(require 'editing)
(require 'efrit-do)

(defun edit-forever (root)
  "Turn each A of a.txt in ROOT into B, and back, again and again."
  (let ((editing-loop (efrit-do-make-loop root)))
    (send-string-to-terminal (format "%s\n" (efrit-loop-id editing-loop)))
    (while t
      (dolist (pair '(("A" "B") ("B" "A")))
        (editing-use "edit_file" :path "a.txt" :old_text (car pair) :new_text (cadr pair)
                     :replace_all t)))))

(defun edit-forever-take-back (root session)
  "Undo each change of SESSION on ROOT, the last one without checking it.
Nobody knows if that one was made.  Print each change that cannot be undone."
  (let ((editing-loop (efrit-do-resume-loop session root)))
    (prin1 (delq nil (mapcar #'caddr (editing-undo-all t))))))

(pcase (prog1 command-line-args-left (setq command-line-args-left nil))
  (`(,root) (edit-forever root))
  (`(,root ,session) (edit-forever-take-back root session)))

(provide 'edit-forever)
;;; edit-forever.el ends here
