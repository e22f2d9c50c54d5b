;;; document-names.el --- Which names in the documents Emacs does not know  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A script for batch Emacs.  It loads the whole package, reads a JSON object
;; from the file that is its argument, and prints another one: `unread', the
;; texts of `blocks' that are no Lisp, and `unknown', the symbols of `names'
;; and of the blocks that are nothing in the package.

;;; Code:

(require 'json)
(require 'seq)

(defun document-names-load-package (folder)
  "Load every file of the package in FOLDER."
  (add-to-list 'load-path folder)
  (dolist (file (directory-files folder nil "\\.el\\'"))
    (require (intern (file-name-sans-extension file)))))

(defun document-names-in (text)
  "Return the names of the package that are symbols in TEXT, or t if it is no Lisp."
  (condition-case nil
      (with-temp-buffer
        (insert "(" text "\n)")
        (goto-char (point-min))
        (let ((forms (read (current-buffer))))
          (skip-chars-forward " \n")
          (or (not (eobp)) (document-names-of forms))))
    (error t)))

(defun document-names-of (form)
  "Return the symbols of the package in FORM."
  (cond ((consp form) (append (document-names-of (car form)) (document-names-of (cdr form))))
        ((and (symbolp form) (string-prefix-p "efrit" (symbol-name form)))
         (list (symbol-name form)))))

(defun document-names-known-p (name)
  "Return non-nil if NAME is something in the package."
  (let ((symbol (intern-soft name)))
    (and symbol
         (or (fboundp symbol) (boundp symbol) (featurep symbol) (facep symbol)
             (get symbol 'custom-group) (get symbol 'error-conditions)))))

(defun document-names-answer (given)
  "Return what is unread and unknown of GIVEN, an alist of `blocks' and `names'."
  (let* ((blocks (alist-get 'blocks given))
         (read (mapcar #'document-names-in blocks))
         (names (apply #'append (alist-get 'names given) (seq-filter #'listp read))))
    `((unread . ,(vconcat (seq-filter (lambda (text) (eq t (document-names-in text))) blocks)))
      (unknown . ,(vconcat (seq-remove #'document-names-known-p names))))))

(document-names-load-package
 (expand-file-name "../../elisp" (file-name-directory (or load-file-name buffer-file-name))))
(with-temp-buffer
  (insert-file-contents (pop command-line-args-left))
  (princ (json-serialize
          (document-names-answer (json-parse-buffer :object-type 'alist :array-type 'list)))))

(provide 'document-names)
;;; document-names.el ends here
