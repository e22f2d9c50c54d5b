;;; efrit-handover.el --- Long texts for the sidecar, in files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Emacs waits while a pipe is full, and writes little at a time: a megabyte
;; costs it 200 ms.  A file takes 5 ms.  So a long text is left in a folder
;; that nobody else can read and that the sidecar was told of when it was
;; greeted; the sidecar takes the file away when it reads it.

;;; Code:

(require 'cl-lib)
(require 'efrit)

(defvar efrit-handover--folder nil
  "The folder of this Emacs, or nil before the first greeting.")

(defvar efrit-handover--refused nil
  "Whether the sidecar cannot take files, as where it runs in a container.")

(defvar efrit-handover--count 0
  "How many texts were left.")

;;; Public

(defun efrit-handover-folder ()
  "Return the folder to tell a new sidecar of this machine; nil: there is none."
  (setq efrit-handover--refused nil)
  (ignore-errors
    (unless efrit-handover--folder
      (setq efrit-handover--folder (make-temp-file "efrit-handover-" t))
      (add-hook 'kill-emacs-hook #'efrit-handover--remove))
    efrit-handover--folder))

(defun efrit-handover-leave (buffer)
  "Leave the whole text of BUFFER in a new file, and return its bare name.
What no UTF-8 can hold is written as Emacs has it, for the sidecar to
replace.  Return nil where no file can be left."
  (when (and efrit-handover--folder (not efrit-handover--refused))
    (let ((name (number-to-string (cl-incf efrit-handover--count))))
      (condition-case nil
          (progn (efrit-handover--write buffer (efrit-handover--file name))
                 name)
        (file-error (efrit-handover-drop name))))))

(defun efrit-handover-drop (name)
  "Delete what was left as NAME, if it was not taken; return nil."
  (ignore-errors
    (delete-file (efrit-handover--file name)))
  nil)

(defun efrit-handover-refuse ()
  "Leave nothing more, until another sidecar is greeted."
  (setq efrit-handover--refused t))

;;; Private

(defun efrit-handover--file (name)
  "Return the file for what is left as NAME."
  (expand-file-name name efrit-handover--folder))

(defun efrit-handover--write (buffer file)
  "Write the whole text of BUFFER, and nothing else, to the new FILE."
  (let ((folder efrit-handover--folder))
    ;; What tidies up the temporary files of long-lived programs may have been there.
    (unless (file-directory-p folder)
      (with-file-modes #o700
        (make-directory folder))))
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (if (= (position-bytes (point-max)) (point-max))
          (efrit-handover--write-bytes file)
        (efrit-handover--write-encoded file)))))

(defun efrit-handover--write-encoded (file)
  "Write this buffer, which is not ASCII alone, to the new FILE.
Encoded by `write-region' it would be a string first, and so much garbage."
  (let ((text (current-buffer)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (let ((bytes (current-buffer)))
        (with-current-buffer text
          (encode-coding-region (point-min) (point-max) 'utf-8-unix bytes)))
      (efrit-handover--write-bytes file))))

(defun efrit-handover--write-bytes (file)
  "Write the bytes of this buffer to the new FILE."
  (let ((coding-system-for-write 'no-conversion)
        (write-region-annotate-functions nil)
        (write-region-post-annotation-function nil)
        (write-region-inhibit-fsync t)
        (buffer-file-format nil)
        (file-name-handler-alist nil))
    (with-file-modes #o600
      (write-region (point-min) (point-max) file nil 'silent nil 'excl))))

(defun efrit-handover--remove ()
  "Delete the folder of this Emacs."
  (when efrit-handover--folder
    (ignore-errors
      (delete-directory efrit-handover--folder t))))

(provide 'efrit-handover)
;;; efrit-handover.el ends here
