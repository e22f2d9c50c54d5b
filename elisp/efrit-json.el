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
