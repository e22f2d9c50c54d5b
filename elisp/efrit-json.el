;;; efrit-json.el --- JSON as the wire needs it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Objects are plists with keyword keys, arrays vectors, false
;; `:json-false', true t, null nil.  The empty object is read as nil, too;
;; `efrit-json-empty-object' writes one.
;;
;; Emacs's native functions are quick, but some JSON they refuse: Emacs 28
;; and 29 the character NUL, when reading, and integers beyond 64 bits; all
;; of them halves of surrogate pairs, which is how Python writes file names
;; that are not UTF-8.  A refused reply would be lost, and the call wait for
;; its time-out; so json.el does these few.

;;; Code:

(require 'json)
(require 'jsonrpc)
(require 'cl-lib)

;;; Structs

(defconst efrit-json-empty-object (make-hash-table :size 1)
  "The empty JSON object, {}, for parameters.  It is not to be changed.")

;;; Public

(defun efrit-json-read ()
  "Read JSON from point on and move to its end."
  (let ((start (point)))
    (condition-case nil
        (json-parse-buffer :object-type 'plist
                           :null-object nil :false-object :json-false)
      (json-error
       (goto-char start)
       (efrit-json--read-slowly)))))

(defun efrit-json-write (object)
  "Return OBJECT as JSON, a unibyte string.
Signal an error where it has what JSON does not know, such as raw bytes."
  (condition-case nil
      (json-serialize object :null-object nil :false-object :json-false)
    (args-out-of-range
     (let ((json-null nil)
           (json-false :json-false))
       (encode-coding-string (json-encode object) 'utf-8-unix)))))

(defun efrit-json-parse (text)
  "Return the value of the JSON TEXT, such that it can be written again.
Objects are hash tables, arrays vectors, null `:null', false `:false'."
  (condition-case nil
      (json-parse-string text :null-object :null :false-object :false)
    (json-error
     (let ((json-object-type 'hash-table)
           (json-array-type 'vector)
           (json-key-type 'string)
           (json-null :null)
           (json-false :false))
       (json-read-from-string text)))))

(defun efrit-json-plist (text)
  "Return the object of the JSON TEXT as a plist with keyword keys.
Arrays are vectors, true t, null and false nil: what a function reads."
  (condition-case nil
      (json-parse-string text :object-type 'plist :null-object nil :false-object nil)
    (json-error
     (let ((json-object-type 'plist)
           (json-array-type 'vector)
           (json-key-type 'keyword)
           (json-null nil)
           (json-false nil))
       (json-read-from-string text)))))

(defun efrit-json-text (value)
  "Return VALUE, as `efrit-json-parse' gives it, as JSON text, a string.
What no JSON can hold, such as raw bytes, is replaced first."
  (let ((written (condition-case nil
                     (json-serialize value :null-object :null :false-object :false)
                   ((args-out-of-range wrong-type-argument)
                    (let ((json-null :null)
                          (json-false :false))
                      (json-encode (if (stringp value) (efrit-json-sound value) value)))))))
    (if (multibyte-string-p written)
        written
      (decode-coding-string written 'utf-8-unix t))))

(defun efrit-json-sound (string)
  "Return STRING with what UTF-8 cannot hold replaced by U+FFFD."
  (if (string-match-p "[^\0-\ud7ff\ue000-\U0010ffff]" string)
      (replace-regexp-in-string "[^\0-\ud7ff\ue000-\U0010ffff]" "\ufffd" string t t)
    string))

(defmacro efrit-json-in-jsonrpc (&rest body)
  "Run BODY with these functions in the place of jsonrpc.el's own."
  (declare (indent 0) (debug t))
  `(cl-letf (((symbol-function 'jsonrpc--json-read) #'efrit-json-read)
             ((symbol-function 'jsonrpc--json-encode) #'efrit-json-write))
     ,@body))

;;; Private

(defun efrit-json--read-slowly ()
  "Read JSON from point to the end of the buffer by json.el."
  (let ((text (buffer-substring-no-properties (point) (point-max)))
        (json-object-type 'plist)
        (json-array-type 'vector)
        (json-key-type 'keyword)
        (json-null nil)
        (json-false :json-false))
    (goto-char (point-max))
    (json-read-from-string
     (if enable-multibyte-characters
         text
       (decode-coding-string text 'utf-8-unix t)))))

(provide 'efrit-json)
;;; efrit-json.el ends here
