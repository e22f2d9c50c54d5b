;;; efrit-tags.el --- The tags of a project  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Has etags.el use the TAGS of a project for a while, without a question and
;; without trust: a project may name any file in it.

;;; Code:

(require 'cl-lib)
(require 'efrit-visit)

;; Those of etags.el, which is loaded where there are tags.
(defvar tags-file-name)
(defvar tags-table-list)
(defvar tags-table-computed-list)
(defvar tags-table-computed-list-for)
(defvar tags-table-list-pointer)
(defvar tags-table-list-started-at)
(defvar tags-table-set-list)
(defvar default-tags-table-function)

;;; Public

(defun efrit-tags-with (call body)
  "Call BODY with whether there are tags: those of the project, else the person's.
CALL says which project.  What the person has selected stays selected."
  (require 'etags)
  (let* ((own (expand-file-name "TAGS" (efrit-visit-root call)))
         (tags-file-name (if (file-regular-p own) own tags-file-name))
         (tags-table-list (if (file-regular-p own) (list own) tags-table-list))
         (tags-table-computed-list nil)
         (tags-table-computed-list-for nil)
         (tags-table-list-pointer nil)
         (tags-table-list-started-at nil)
         (tags-table-set-list nil)
         (default-tags-table-function nil))
    (cl-letf (((symbol-function 'etags--ensure-file)
               (efrit-tags--file-finder (efrit-visit-root call))))
      (funcall body (or tags-file-name tags-table-list)))))

;;; Private

(defun efrit-tags--file-finder (root)
  "Return a function to find the files that tags name, for a project at ROOT.
That of Emacs 30 connects to any machine that is named there, and signals
an error for a file that is gone."
  (let ((finder (symbol-function 'etags--ensure-file)))
    (lambda (file)
      (or (and (equal (file-remote-p file) (file-remote-p root))
               (ignore-errors (funcall finder file)))
          file))))

(provide 'efrit-tags)
;;; efrit-tags.el ends here
