;;; efrit-past.el --- What a session said before  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session that is taken up again is shown from the sidecar's record of
;; it, turns that have left the window included, above whatever happens from
;; now on.

;;; Code:

(require 'cl-lib)
(require 'efrit-json)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-transcript)
(require 'efrit-view-events)
(require 'seq)
(require 'subr-x)

;;; Public

(defun efrit-past-show (loop)
  "Show in this buffer what was said in LOOP before, once it is there."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'session/transcript (list :session_id (efrit-loop-id loop))
     :timeout nil
     :success (lambda (record)
                (efrit-transcript-in buffer
                  (efrit-past-insert (plist-get record :turns))))
     :error (lambda (err)
              (efrit-transcript-in buffer
                (efrit-view-note (concat "✗ What was said before cannot be shown: "
                                         (efrit-error-text err))
                                 'efrit-failed))))))

(defun efrit-past-insert (entries)
  "Insert ENTRIES of the record, at the beginning of the transcript."
  (let ((efrit-transcript-place efrit-transcript-begin))
    (seq-doseq (entry entries)
      (efrit-past--entry entry))))

;;; Private

(defun efrit-past--entry (entry)
  "Insert ENTRY of the record."
  (pcase (plist-get entry :kind)
    ("request" (efrit-view-said (efrit-past--texts entry)))
    ("notice" (dolist (block (efrit-past--texts entry))
                (efrit-view-note (concat "— " (plist-get block :text)))))
    ("reply" (seq-doseq (block (plist-get entry :content))
               (efrit-past--block block)))
    ("result" (efrit-past--result entry))))

(defun efrit-past--texts (entry)
  "Return the blocks of text in ENTRY, a list of plists."
  (seq-filter (lambda (block) (equal (plist-get block :type) "text"))
              (plist-get entry :content)))

(defun efrit-past--block (block)
  "Insert BLOCK of a reply; tools have their line where their result stands."
  (pcase (plist-get block :type)
    ("text" (efrit-view-text (string-trim-right (plist-get block :text))))
    ("thinking" (efrit-view-thinking (or (plist-get block :thinking) "")))))

(defun efrit-past--result (entry)
  "Insert the use of a tool whose result is ENTRY."
  (efrit-view-use
   (efrit-use-create
    :id (plist-get entry :tool_use_id) :name (plist-get entry :tool)
    :arguments (efrit-past--json (plist-get entry :arguments))
    :state 'done
    :result (and (plist-get entry :handle)
                 (list :status (plist-get entry :status) :handle (plist-get entry :handle)
                       :tokens (plist-get entry :tokens) :text (plist-get entry :text))))))

(defun efrit-past--json (arguments)
  "Return ARGUMENTS, a plist, as the JSON text of an object."
  (if arguments
      (decode-coding-string (efrit-json-write arguments) 'utf-8)
    "{}"))

(provide 'efrit-past)
;;; efrit-past.el ends here
