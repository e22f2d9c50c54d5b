;;; efrit-reply.el --- A model's reply, put together from its events  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The Messages API streams a reply as blocks, each with a beginning, pieces
;; and an end.  What the model wrote is kept as the text it came as.  The
;; input of a tool goes to the sidecar unread; what it says the input is,
;; and no other text, is decided about, shown, recorded and run.

;;; Code:

(require 'cl-lib)
(require 'efrit-json)
(require 'subr-x)

;;; Structs

(cl-defstruct (efrit-block (:constructor efrit-block--create) (:copier nil))
  "A block of a reply.
TYPE is a string.  PIECES are its text, its thinking, or the JSON of its
input as they came, the latest first.  ID and NAME are a tool use's,
SIGNATURE a thinking's.  OBJECT is the block as its beginning had it.
DONE says whether its end has come.  INPUT is a tool use's input as the
sidecar read it, a JSON text, PROBLEM says what is wrong with it, if the
sidecar could not, and MISFIT what does not fit the tool's schema."
  type pieces id name signature object done input problem misfit)

(cl-defstruct (efrit-reply (:constructor efrit-reply-create) (:copier nil))
  "A reply as far as it has come.
BLOCKS are in order, the latest first.  USAGE is a hash table,
STOP-REASON a string once it is there.  PROBLEM is what an error event
said, a hash table where the server keeps to the API.  OVER says whether the last event has come, EXTRAS is
an alist of other things the API reported."
  id blocks (usage (make-hash-table :test #'equal)) stop-reason problem over extras)

;;; Public

(defun efrit-reply-take (reply event)
  "Take EVENT, a hash table, into REPLY, and return what it changed.
That is (begin BLOCK), (piece BLOCK STRING), (end BLOCK), or nil."
  (pcase (gethash "type" event)
    ("message_start" (efrit-reply--start reply (gethash "message" event)))
    ("content_block_start" (efrit-reply--begin reply (gethash "content_block" event)))
    ("content_block_delta" (efrit-reply--piece reply (gethash "delta" event)))
    ("content_block_stop" (efrit-reply--end reply))
    ("message_delta" (efrit-reply--delta reply event))
    ("message_stop" (efrit-reply--over reply) nil)
    ("error" (setf (efrit-reply-problem reply) (gethash "error" event "")) nil)))

(defun efrit-block-text (block)
  "Return what has come of BLOCK: its text, thinking, or input as JSON."
  (let ((text (apply #'concat (reverse (efrit-block-pieces block)))))
    (setf (efrit-block-pieces block) (list text))
    (if (and (equal (efrit-block-type block) "tool_use") (string-blank-p text))
        "{}"
      text)))

(defun efrit-reply-tool-uses (reply)
  "Return the blocks of REPLY in which a tool is called, in order."
  (cl-remove-if-not (lambda (block)
                      (and (equal (efrit-block-type block) "tool_use")
                           (efrit-block-done block)))
                    (reverse (efrit-reply-blocks reply))))

(defun efrit-reply-take-inputs (reply inputs unreadable misfits)
  "Take the inputs of the tools in REPLY as the sidecar read them.
INPUTS has each of them, in order; UNREADABLE says what is wrong with some,
and MISFITS which do not fit their tool's schema: vectors of plists.  A use
of which INPUTS says nothing cannot be run."
  (cl-loop for block in (efrit-reply-tool-uses reply)
           for index from 0
           for input = (and (< index (length inputs)) (aref inputs index))
           do (setf (efrit-block-input block) (plist-get input :input_json)
                    (efrit-block-misfit block) (efrit-reply--problem block misfits)
                    (efrit-block-problem block)
                    (cond ((efrit-reply--problem block unreadable))
                          ((equal (efrit-block-id block) (plist-get input :tool_use_id)) nil)
                          (t "the sidecar did not say what its input is")))))

(defun efrit-reply-content (reply)
  "Return the blocks of REPLY as the JSON text of a list, for the sidecar.
What was broken off counts where it can stand by itself, as a text can.
The input of a tool is in it as a text, `input_json': it may be no JSON."
  (concat "["
          (mapconcat #'identity
                     (delq nil (mapcar #'efrit-reply--block-json
                                       (reverse (efrit-reply-blocks reply))))
                     ",")
          "]"))

(defun efrit-reply-counts (reply)
  "Return the usage of REPLY as a hash table of numbers alone."
  (let ((counts (make-hash-table :test #'equal)))
    (maphash (lambda (name value)
               (when (integerp value)
                 (puthash name value counts)))
             (efrit-reply-usage reply))
    counts))

(defun efrit-reply-count (reply name)
  "Return the number NAME, a string, of the usage of REPLY, or 0."
  (let ((count (gethash name (efrit-reply-usage reply))))
    (if (integerp count) count 0)))

;;; Private

(defun efrit-reply--problem (block found)
  "Return what is wrong with BLOCK by FOUND, a vector of plists, or nil."
  (plist-get (cl-find (efrit-block-id block) found :test #'equal
                      :key (lambda (one) (plist-get one :tool_use_id)))
             :problem))

(defun efrit-reply--start (reply message)
  "Take MESSAGE, the beginning of REPLY."
  (setf (efrit-reply-id reply) (gethash "id" message))
  (efrit-reply--count reply (gethash "usage" message))
  (efrit-reply--extras reply message)
  nil)

(defun efrit-reply--count (reply usage)
  "Take USAGE, a hash table or nothing, into REPLY; later counts stand."
  (when (hash-table-p usage)
    (maphash (lambda (name value)
               (unless (eq value :null)
                 (puthash name value (efrit-reply-usage reply))))
             usage)))

(defun efrit-reply--extras (reply object)
  "Keep what OBJECT reports beside the reply of REPLY itself."
  (dolist (name '("input_transformations" "diagnostics"))
    (let ((value (gethash name object)))
      (when (and value (not (memq value '(:null))) (not (equal value [])))
        (setf (alist-get name (efrit-reply-extras reply) nil nil #'equal) value)))))

(defun efrit-reply--begin (reply object)
  "Begin a block of REPLY: OBJECT, a hash table, is its beginning."
  (efrit-reply--check-strings object (if (equal (gethash "type" object) "tool_use")
                                         '("type" "id" "name")
                                       '("type")))
  (let* ((type (gethash "type" object))
         (first (pcase type
                  ("text" (gethash "text" object))
                  ("thinking" (gethash "thinking" object))))
         (block (efrit-block--create
                 :type type :object object
                 :id (gethash "id" object) :name (gethash "name" object)
                 :signature (gethash "signature" object)
                 :pieces (and first (not (string-empty-p first)) (list first)))))
    (push block (efrit-reply-blocks reply))
    (list 'begin block)))

(defun efrit-reply--check-strings (object names)
  "Signal an error unless each member of OBJECT that is in NAMES is a string."
  (dolist (name names)
    (unless (stringp (gethash name object))
      (error "A block has no %s" name))))

(defun efrit-reply--piece (reply delta)
  "Take DELTA, a hash table, into the latest block of REPLY."
  (let* ((block (car (efrit-reply-blocks reply)))
         (piece (pcase (gethash "type" delta)
                  ("text_delta" (gethash "text" delta))
                  ("thinking_delta" (gethash "thinking" delta))
                  ("input_json_delta" (gethash "partial_json" delta))
                  ("signature_delta"
                   (setf (efrit-block-signature block)
                         (concat (efrit-block-signature block) (gethash "signature" delta)))
                   nil))))
    (when (and block piece (not (string-empty-p piece)))
      (push piece (efrit-block-pieces block))
      (list 'piece block piece))))

(defun efrit-reply--end (reply)
  "End the latest block of REPLY."
  (when-let* ((block (car (efrit-reply-blocks reply))))
    (setf (efrit-block-done block) t)
    (list 'end block)))

(defun efrit-reply--over (reply)
  "Note that REPLY is whole, and so is each of its blocks.
Some servers do not say it of a block."
  (dolist (block (efrit-reply-blocks reply))
    (setf (efrit-block-done block) t))
  (setf (efrit-reply-over reply) t))

(defun efrit-reply--delta (reply event)
  "Take EVENT, the reply's own news, into REPLY."
  (let* ((delta (gethash "delta" event))
         (reason (and (hash-table-p delta) (gethash "stop_reason" delta))))
    (when (stringp reason)
      (setf (efrit-reply-stop-reason reply) reason))
    (efrit-reply--count reply (gethash "usage" event))
    (efrit-reply--extras reply event)
    nil))

(defun efrit-reply--block-json (block)
  "Return BLOCK as JSON text, or nil where it cannot be sent back."
  (let ((text (efrit-block-text block))
        (done (efrit-block-done block)))
    (pcase (efrit-block-type block)
      ("text" (and (not (string-blank-p text))
                   (efrit-reply--object "type" "text" "text" text)))
      ("thinking" (and done (not (member (efrit-block-signature block) '(nil "")))
                       (efrit-reply--object "type" "thinking" "thinking" text
                                            "signature" (efrit-block-signature block))))
      ("tool_use" (and done (efrit-reply--object "type" "tool_use" "id" (efrit-block-id block)
                                                 "name" (efrit-block-name block)
                                                 "input_json" text)))
      (_ (and done (efrit-json-text (efrit-block-object block)))))))

(defun efrit-reply--object (&rest members)
  "Return the object with the string MEMBERS, names and values, as JSON text."
  (concat "{"
          (mapconcat (lambda (pair)
                       (concat (efrit-json-text (car pair)) ":" (efrit-json-text (cadr pair))))
                     (seq-partition members 2)
                     ",")
          "}"))

(provide 'efrit-reply)
;;; efrit-reply.el ends here
