;;; efrit-seen.el --- What the model has read, and whether it still stands  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A file that was read and has changed since, on disk or in its buffer, is
;; not edited before it was read again.  What the model itself changed it
;; knows.  In a session that was taken up again, what changed after it was
;; last at work has to be read again.

;;; Code:

(require 'efrit-change)
(require 'efrit-json)
(require 'efrit-loop)

;;; Public

(defun efrit-seen-take (loop tool arguments)
  "Note in LOOP that a use of TOOL with ARGUMENTS, a JSON text, gave a result."
  (when (equal tool "read_file")
    (let ((path (plist-get (ignore-errors (efrit-json-plist arguments)) :path)))
      (when (stringp path)
        (efrit-seen-note loop (efrit-seen--file loop path))))))

(defun efrit-seen-note (loop file)
  "Note in LOOP that the model knows how FILE, a whole name, is now.
Where that cannot be found out, it has to be read again."
  (puthash file (condition-case nil (efrit-file-stamp file) (error 'unknown))
           (efrit-loop-seen loop)))

(defun efrit-seen-problem (loop change)
  "Return why the model in LOOP does not know the file of CHANGE as it is, or nil."
  (let* ((file (efrit-change-file change))
         (stamp (efrit-change-stamp change))
         (seen (gethash file (efrit-loop-seen loop))))
    (cond
     ((memq (efrit-change-kind change) '(create rename)) nil)
     (seen
      (unless (equal seen stamp)
        (format "%s has changed since you read it; read it again" (efrit-change-path change))))
     ((efrit-seen--changed-meanwhile-p loop file)
      (format "%s has changed since this session was last at work; read it again"
              (efrit-change-path change))))))

;;; Private

(defun efrit-seen--file (loop path)
  "Return the whole name of PATH, as the model in LOOP has it.
On another machine, links are not looked at, since that takes long."
  (let ((file (expand-file-name path (efrit-loop-root loop))))
    (if (file-remote-p file) file (file-truename file))))

(defun efrit-seen--changed-meanwhile-p (loop file)
  "Return non-nil if FILE changed while nobody worked in LOOP."
  (let ((since (efrit-loop-since loop))
        (attributes (file-attributes file)))
    (and since attributes
         (time-less-p (seconds-to-time since)
                      (file-attribute-modification-time attributes)))))

(provide 'efrit-seen)
;;; efrit-seen.el ends here
