;;; efrit-docs-tool.el --- What Emacs documents, for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The documentation of functions, variables, faces and keys, what matches a
;; word, and nodes of manuals.  Looking something up loads nothing, and shows
;; no values that could be secret.

;;; Code:

(require 'cl-lib)
(require 'efrit-tools)
(require 'help-fns)
(require 'info)
(require 'seq)
(require 'subr-x)

;;; Tools

(efrit-define-tool elisp_docs
    ((name "string" "Symbol; key: C-x C-f; words; node: (elisp)Buffers")
     (kind (:type "string" :enum ["symbol" "key" "apropos" "manual"]) ""
           :optional t))
  "Documentation of a symbol or a key; names that match words (apropos); a node of \
a manual."
  :policy allow
  (pcase kind
    ((or 'nil "symbol") (efrit-docs--symbol name))
    ("key" (efrit-docs--key name))
    ("apropos" (efrit-docs--apropos name))
    ("manual" (efrit-docs--node name))
    (_ (user-error "Kind is symbol, key, apropos or manual, not %s" kind))))

;;; Private: symbols

(defun efrit-docs--symbol (name)
  "Return the documentation of what is called NAME."
  (let* ((symbol (intern-soft (string-trim name)))
         (parts (delq nil (list (and symbol (fboundp symbol) (efrit-docs--function symbol))
                                (and symbol (efrit-docs--variable-p symbol)
                                     (efrit-docs--variable symbol))
                                (and symbol (facep symbol) (efrit-docs--face symbol))))))
    (unless parts
      (user-error "Nothing in this Emacs is called %s; apropos finds names by words" name))
    (efrit-tool-result (string-join parts "\n\n")
                       :summary (truncate-string-to-width
                                 (replace-regexp-in-string "[ \t\n]+" " " (car parts))
                                 300 nil nil "…"))))

;; The first is of Emacs 28 and later, the second of all.
(defvar help-enable-symbol-autoload)
(defvar help-enable-autoload)

(defun efrit-docs--function (symbol)
  "Return the documentation of the function SYMBOL."
  (let ((help-enable-symbol-autoload nil)
        (help-enable-autoload nil))
    (format "%s is %s" symbol
            (string-trim
             (with-temp-buffer
               (let ((standard-output (current-buffer)))
                 (describe-function-1 symbol))
               (buffer-substring-no-properties (point-min) (point-max)))))))

(defun efrit-docs--variable-p (symbol)
  "Return non-nil if SYMBOL is a variable."
  (or (boundp symbol) (get symbol 'variable-documentation)))

(defun efrit-docs--variable (symbol)
  "Return the documentation of the variable SYMBOL."
  (string-join
   (delq nil
         (list (format "%s is %s%s." symbol
                       (if (custom-variable-p symbol) "an option" "a variable")
                       (if-let* ((file (symbol-file symbol 'defvar)))
                           (format " of %s" (file-name-nondirectory file)) ""))
               (efrit-docs--value symbol)
               (efrit-docs--property symbol 'standard-value "Default: %s")
               (efrit-docs--property symbol 'custom-type "Type: %s")
               (and (local-variable-if-set-p symbol) "It is local to a buffer where it is set.")
               (when-let* ((obsolete (get symbol 'byte-obsolete-variable)))
                 (format "It is obsolete since %s; use %s." (nth 2 obsolete) (car obsolete)))
               (when-let* ((text (documentation-property symbol 'variable-documentation)))
                 (concat "\n" (substring-no-properties (substitute-command-keys text))))))
   "\n"))

(defun efrit-docs--value (symbol)
  "Return a line on the value of SYMBOL, or nil.
Only what can hold no secret is shown: numbers and symbols."
  (when (default-boundp symbol)
    (let ((value (default-value symbol)))
      (if (or (symbolp value) (numberp value))
          (format "Value: %S" value)
        (format "Value: not shown, a %s; eval_sexp asks the person and shows it."
                (type-of value))))))

(defun efrit-docs--property (symbol property format)
  "Return PROPERTY of the option SYMBOL by FORMAT, cut, or nil if it has none."
  (when-let* ((value (get symbol property)))
    (format format
            (truncate-string-to-width
             (let ((print-escape-newlines t))
               (prin1-to-string (if (eq property 'standard-value) (car value) value)))
             500 nil nil "…"))))

(defun efrit-docs--face (symbol)
  "Return the documentation of the face SYMBOL."
  (format "%s is a face.\n%s" symbol
          (or (documentation-property symbol 'face-documentation) "Not documented.")))

;;; Private: keys

(defun efrit-docs--key (name)
  "Return the command of the key NAME where the person is."
  (let ((key (kbd name))
        (buffer (window-buffer (selected-window))))
    (when (equal key "")
      (user-error "Give a key, such as C-x C-f"))
    (with-current-buffer buffer
      (let ((command (key-binding key)))
        (cond ((or (null command) (numberp command))
               (efrit-tool-own (format "%s runs nothing in %s (%s)." name (buffer-name)
                                       major-mode)))
              ((keymapp command) (efrit-docs--prefix name command))
              ((symbolp command)
               (format "%s runs %s in %s (%s).\n\n%s" name command (buffer-name) major-mode
                       (efrit-docs--function command)))
              (t (format "%s runs a function without a name in %s (%s)." name (buffer-name)
                         major-mode)))))))

(defun efrit-docs--prefix (name map)
  "Return what the keys behind the prefix NAME run, by MAP."
  (let ((lines nil))
    (map-keymap (lambda (event command)
                  (push (format "%s %s  %s" name (single-key-description event)
                                (cond ((keymapp command) "a prefix")
                                      ((symbolp command) command)
                                      (t "a function without a name")))
                        lines))
                map)
    (string-join (cons (format "%s is a prefix." name) (sort lines #'string<)) "\n")))

;;; Private: names

(defun efrit-docs--apropos (words)
  "Return the names in which all of WORDS, a string, stand, with what they are."
  (let* ((words (split-string words))
         (symbols (and words
                       (apropos-internal
                        (regexp-quote (car words))
                        (lambda (symbol)
                          (and (or (fboundp symbol) (facep symbol)
                                   (efrit-docs--variable-p symbol))
                               (seq-every-p (lambda (word)
                                              (string-search word (symbol-name symbol)))
                                            words)))))))
    (unless words
      (user-error "Give words of a name"))
    (let ((said (format "%d names with %s" (length symbols) (string-join words ", "))))
      (efrit-tool-result
       (string-join (cons (efrit-tool-own said) (mapcar #'efrit-docs--name (sort symbols #'string<))) "\n")
       :summary said))))

(defun efrit-docs--name (symbol)
  "Return the line about SYMBOL: what it is, and how its documentation begins."
  (let* ((kinds (delq nil (list (and (fboundp symbol)
                                     (cond ((commandp symbol) "command")
                                           ((macrop symbol) "macro")
                                           (t "function")))
                                (and (efrit-docs--variable-p symbol)
                                     (if (custom-variable-p symbol) "option" "variable"))
                                (and (facep symbol) "face"))))
         (text (ignore-errors
                 (or (and (fboundp symbol) (documentation symbol t))
                     (documentation-property symbol 'variable-documentation t)
                     (documentation-property symbol 'face-documentation t)))))
    (format "%s (%s)%s" symbol (string-join kinds ", ")
            (if (stringp text) (concat ": " (car (split-string text "\n"))) ""))))

;;; Private: manuals

(defun efrit-docs--node (name)
  "Return the node NAME of a manual: (manual)node, manual, or a node of Lisp's."
  (unless (string-match "\\`\\(?:(\\([[:alnum:]_.+-]+\\))\\)?\\(.*\\)\\'" name)
    (user-error "Give a node as (elisp)Buffers"))
  (let ((manual (or (match-string 1 name) "elisp"))
        (node (string-trim (match-string 2 name))))
    (when (string-match-p "[(/*]" node)
      (user-error "Give a node as (elisp)Buffers"))
    (with-temp-buffer
      (let ((Info-history nil)
            (Info-history-list nil)
            (Info-selection-hook nil)
            (inhibit-interaction t)
            (inhibit-message t))
        (Info-mode)
        (condition-case err
            (Info-find-node manual (if (string-empty-p node) "Top" node) t)
          (error (user-error "(%s)%s is not here: %s; Debian keeps Emacs's manuals apart"
                             manual node (error-message-string err)))))
      (string-trim (buffer-substring-no-properties (point-min) (point-max))))))

(provide 'efrit-docs-tool)
;;; efrit-docs-tool.el ends here
