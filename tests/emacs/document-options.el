;;; document-options.el --- The options of the package, for the manual  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A script for batch Emacs.  It loads the whole package, and prints a JSON array
;; with an object for each option, in the order of the files: its `section', which
;; is the heading above it in the file, its `name', its `documentation', and its
;; `default' as it stands in the file, with the number of its elements as `length'
;; if it is a list.

;;; Code:

(require 'json)

(defconst document-options-folder
  (expand-file-name "../../elisp" (file-name-directory (or load-file-name buffer-file-name)))
  "The folder of the package.")

(defun document-options-read ()
  "Return an object for the option whose definition begins at point."
  (let* ((section (save-excursion
                    (re-search-backward "^;;; \\([^-\n]+\\)$")
                    (match-string 1)))
         (form (read (current-buffer)))
         (default (nth 2 form))
         (text-quoting-style 'grave)
         (print-quoted t))
    `((section . ,section)
      (name . ,(symbol-name (nth 1 form)))
      (documentation . ,(substring-no-properties
                         (substitute-command-keys
                          (documentation-property (nth 1 form) 'variable-documentation t))))
      (default . ,(prin1-to-string default))
      (length . ,(if (eq 'quote (car-safe default)) (safe-length (cadr default)) 0)))))

(defun document-options-in (file)
  "Return a list of objects for the options of FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (emacs-lisp-mode)
    (let ((found nil))
      (while (re-search-forward "^(defcustom " nil t)
        (goto-char (match-beginning 0))
        (push (document-options-read) found))
      (nreverse found))))

(add-to-list 'load-path document-options-folder)
(let ((files (directory-files document-options-folder t "\\.el\\'")))
  (dolist (file files)
    (require (intern (file-name-base file))))
  (setq locale-coding-system 'utf-8-unix)
  (princ (json-serialize (vconcat (mapcan #'document-options-in files)))))

(provide 'document-options)
;;; document-options.el ends here
