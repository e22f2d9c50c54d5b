;;; efrit-sse.el --- Server-sent events as they come  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Takes the bytes of a stream in whatever pieces they come, and gives the
;; data of each event as a decoded string.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

;;; Structs

(cl-defstruct (efrit-sse (:constructor efrit-sse-create) (:copier nil))
  "A reader of events.
ON-EVENT is called with the data of each, a string.  PIECES are the bytes
of a line that has not ended yet, the latest first; DATA the lines of
data of an event that has not ended yet, likewise."
  on-event pieces data)

;;; Public

(defun efrit-sse-feed (reader bytes)
  "Have READER read BYTES, a unibyte string."
  (let ((start 0)
        end)
    (while (setq end (string-search "\n" bytes start))
      (let ((line (apply #'concat (reverse (cons (substring bytes start end)
                                                 (efrit-sse-pieces reader))))))
        (setf (efrit-sse-pieces reader) nil)
        (efrit-sse--line reader (string-remove-suffix "\r" line)))
      (setq start (1+ end)))
    (when (< start (length bytes))
      (push (substring bytes start) (efrit-sse-pieces reader)))))

;;; Private

(defun efrit-sse--line (reader line)
  "Have READER take LINE; an empty one ends an event."
  (cond
   ((string-empty-p line)
    (when-let* ((data (efrit-sse-data reader)))
      (setf (efrit-sse-data reader) nil)
      (funcall (efrit-sse-on-event reader)
               (decode-coding-string (mapconcat #'identity (reverse data) "\n") 'utf-8))))
   ((string-prefix-p "data:" line)
    (push (string-remove-prefix " " (substring line 5)) (efrit-sse-data reader)))))

(provide 'efrit-sse)
;;; efrit-sse.el ends here
