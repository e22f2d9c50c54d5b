;;; names.el --- Which names in the documents Emacs does not know  -*- lexical-binding: t; -*-

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

(defun names-load-package (folder)
  "Load every file of the package in FOLDER, except the demo."
  (add-to-list 'load-path folder)
  (dolist (file (directory-files folder nil "\\.el\\'"))
    (unless (equal file "demo.el")
      (require (intern (file-name-sans-extension file))))))

(defun names-in (text)
  "Return the names of the package that are symbols in TEXT, or t if it is no Lisp."
  (condition-case nil
      (with-temp-buffer
        (insert "(" text "\n)")
        (goto-char (point-min))
        (let ((forms (read (current-buffer))))
          (skip-chars-forward " \n")
          (or (not (eobp)) (names-of forms))))
    (error t)))

(defun names-of (form)
  "Return the symbols of the package in FORM."
  (cond ((consp form) (append (names-of (car form)) (names-of (cdr form))))
        ((and (symbolp form) (string-prefix-p "efrit" (symbol-name form)))
         (list (symbol-name form)))))

(defun names-known-p (name)
  "Return non-nil if NAME is something in the package."
  (let ((symbol (intern-soft name)))
    (and symbol
         (or (fboundp symbol) (boundp symbol) (featurep symbol) (facep symbol)
             (get symbol 'custom-group) (get symbol 'error-conditions)))))

(let* ((folder (expand-file-name "../../elisp" (file-name-directory load-file-name)))
       (given (with-temp-buffer
                (insert-file-contents (car command-line-args-left))
                (json-parse-buffer :object-type 'alist :array-type 'list)))
       (blocks (alist-get 'blocks given)))
  (names-load-package folder)
  (let ((names (append (alist-get 'names given)
                       (apply #'append (seq-filter #'listp (mapcar #'names-in blocks))))))
    (princ (json-serialize
            `((unread . ,(vconcat (seq-filter (lambda (text) (eq t (names-in text))) blocks)))
              (unknown . ,(vconcat (seq-remove #'names-known-p names))))))))
(setq command-line-args-left nil)

;;; names.el ends here
