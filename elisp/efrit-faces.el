;;; efrit-faces.el --- What a session looks like  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Every face inherits from one that themes set, so a session is readable
;; wherever the person's other buffers are.

;;; Code:

(require 'efrit)

;;; Options

(defgroup efrit-faces nil
  "What a session looks like."
  :group 'efrit
  :group 'faces)

(defface efrit-title '((t :inherit (bold font-lock-doc-face)))
  "The first line of a session.")

(defface efrit-person '((t :inherit (bold font-lock-keyword-face)))
  "The line above what the person said.")

(defface efrit-said '((t :inherit default))
  "What the person said.")

(defface efrit-text '((t :inherit default))
  "What the model wrote.")

(defface efrit-thinking '((t :inherit (italic shadow)))
  "What the model thought, and the line above it.")

(defface efrit-tool '((t :inherit (bold font-lock-function-name-face)))
  "The name of a tool in its line.")

(defface efrit-arguments '((t :inherit font-lock-string-face))
  "The arguments of a tool in its line.")

(defface efrit-figures '((t :inherit shadow))
  "Tokens, times and prices.")

(defface efrit-delivered '((t :inherit shadow))
  "What a tool gave the model.")

(defface efrit-done '((t :inherit success))
  "The sign of what succeeded.")

(defface efrit-failed '((t :inherit error))
  "The sign of what failed, and why.")

(defface efrit-busy '((t :inherit warning))
  "The sign of what is under way.")

(defface efrit-note '((t :inherit shadow))
  "What efrit itself says in a session.")

(defface efrit-question '((t :inherit (bold warning)))
  "What the person is asked.")

(defface efrit-question-body '((t :inherit font-lock-constant-face))
  "What will happen where the person allows it.")

(defface efrit-key '((t :inherit (bold link)))
  "Keys and buttons.")

(defface efrit-prompt '((t :inherit minibuffer-prompt))
  "The prompt of the reply box.")

(defface efrit-band-ample '((t :inherit success))
  "The gauge while there is room.")

(defface efrit-band-low '((t :inherit warning))
  "The gauge when little will be left even after compacting.")

(defface efrit-band-critical '((t :inherit error))
  "The gauge when hardly anything will be left.")

(provide 'efrit-faces)
;;; efrit-faces.el ends here
