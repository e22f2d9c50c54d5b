;;; efrit-sse.el --- Server-sent events as they come  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Takes the bytes of a stream in whatever pieces they come, and gives the
;; data of each event as a decoded string.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defconst efrit-sse--most-bytes 16000000
  "The most bytes of an event; one that is longer is an error.")

;;; Structs

(cl-defstruct (efrit-sse (:constructor efrit-sse-create) (:copier nil))
  "A reader of events.
ON-EVENT is called with the data of each, a string.  PIECES are the bytes
of a line that has not ended yet, the latest first; DATA the lines of
data of an event that has not ended yet, likewise.  SIZE counts the bytes
of both."
  on-event pieces data (size 0))

;;; Public

(defun efrit-sse-feed (reader bytes)
  "Have READER read BYTES, a unibyte string.
Signal an error where an event is too long."
  (let ((start 0)
        end)
    (while (setq end (string-search "\n" bytes start))
      (let ((line (apply #'concat (reverse (cons (substring bytes start end)
                                                 (efrit-sse-pieces reader))))))
        (setf (efrit-sse-pieces reader) nil)
        (efrit-sse--count reader (- end start))
        (efrit-sse--line reader (string-remove-suffix "\r" line)))
      (setq start (1+ end)))
    (when (< start (length bytes))
      (efrit-sse--count reader (- (length bytes) start))
      (push (substring bytes start) (efrit-sse-pieces reader)))))

;;; Private

(defun efrit-sse--count (reader bytes)
  "Count BYTES more of the event at which READER is."
  (when (> (cl-incf (efrit-sse-size reader) bytes) efrit-sse--most-bytes)
    (error "An event has more than %d bytes" efrit-sse--most-bytes)))

(defun efrit-sse--line (reader line)
  "Have READER take LINE; an empty one ends an event."
  (cond
   ((string-empty-p line)
    (setf (efrit-sse-size reader) 0)
    (when-let* ((data (efrit-sse-data reader)))
      (setf (efrit-sse-data reader) nil)
      (funcall (efrit-sse-on-event reader)
               (decode-coding-string (mapconcat #'identity (reverse data) "\n") 'utf-8))))
   ((not (string-prefix-p "data:" line))
    (setf (efrit-sse-size reader) (max 0 (- (efrit-sse-size reader) (length line)))))
   (t
    (push (string-remove-prefix " " (substring line 5)) (efrit-sse-data reader)))))

(provide 'efrit-sse)
;;; efrit-sse.el ends here
