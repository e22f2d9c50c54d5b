;;; efrit-change.el --- Changes of files, made through buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A change says how one file stands and how it is to stand.  It is made in
;; the file's buffer, so that undo, hooks and unsaved work behave as with a
;; person's own edit, and written whole or not at all: into a new file that
;; then takes the place of the old one.
;;
;; Nothing here asks, and nothing here knows of the model or the sidecar.

;;; Code:

(require 'cl-lib)
(require 'efrit-file)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-change-most-bytes 20000000
  "The largest file that is edited; a larger one needs a command."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-change-keep-buffers t
  "Whether the buffers of files stay that were opened for an edit.
Undo in such a buffer takes back what the model did, step by step."
  :group 'efrit
  :type 'boolean)

;;; Structs

(define-error 'efrit-change-refused "The change cannot be made")

(cl-defstruct (efrit-change (:constructor efrit-change-create) (:copier nil))
  "A change of one file.
KIND is `edit', `create', `delete' or `rename'.  PATH is the file's name as
the model has it, FILE the whole name; TO and TO-FILE are those of a rename.
BEFORE and AFTER are texts, nil where there is no such file.  BUFFER visits
the file; OPENED says whether it was opened for this.  UNSAVED says whether it
had changes of the person's.  STAMP tells whether somebody changed the file
since.  SAVE says whether it is saved.  NUMBER is the sidecar's."
  kind path file to to-file before after buffer opened unsaved stamp (save t) number)

;;; Public: how a file stands

(defun efrit-change-visit (change)
  "Have the file of CHANGE, which is there, visited, and its text be BEFORE."
  (let* ((file (efrit-change-file change))
         (buffer (efrit-file-buffer file)))
    (efrit-change--check-size change)
    (if buffer
        (efrit-change--check-buffer change buffer)
      (efrit-change--check-plain change)
      (setq buffer (efrit-file-open file))
      (setf (efrit-change-opened change) t))
    (setf (efrit-change-buffer change) buffer
          (efrit-change-unsaved change) (buffer-modified-p buffer)
          (efrit-change-before change) (efrit-file-text buffer)
          (efrit-change-stamp change) (efrit-file-stamp file))
    (with-current-buffer buffer
      (efrit-change--check-content change))))

(defun efrit-change-let-go (change)
  "Kill the buffer that was opened for CHANGE, which is not made."
  (let ((buffer (efrit-change-buffer change)))
    (when (and (efrit-change-opened change) (buffer-live-p buffer)
               (not (buffer-modified-p buffer))
               (null (get-buffer-window buffer t)))
      (let ((kill-buffer-query-functions nil))
        (kill-buffer buffer)))))

(defun efrit-change-stands-p (change)
  "Return non-nil if the file of CHANGE still is as it was found."
  (equal (efrit-change-stamp change)
         (efrit-file-stamp (efrit-change-file change))))

;;; Public: making a change

(defun efrit-change-make (change)
  "Make CHANGE; signal `efrit-change-refused' or an error where it cannot be.
Then the file, and its buffer, are as before."
  (unless (efrit-change-stands-p change)
    (efrit-change--refuse "%s was changed a moment ago by somebody else; read it again"
                          (efrit-change-path change)))
  (pcase (efrit-change-kind change)
    ('edit (efrit-change--edit change))
    ('create (efrit-change--create change))
    ('delete (efrit-change--delete change))
    ('rename (efrit-change--rename change))))

(defun efrit-change-unmake (change)
  "Put back CHANGE, an edit: in its buffer, and on disk if it was saved."
  (efrit-change-take-back change)
  (when (efrit-change-save change)
    (with-current-buffer (efrit-change-buffer change)
      (efrit-file-write)
      (efrit-file-set-modified (efrit-change-unsaved change)))))

(defun efrit-change-take-back (change)
  "Have the buffer of CHANGE hold the text from before."
  (let ((buffer (efrit-change-buffer change)))
    (when (buffer-live-p buffer)
      (efrit-file-set-text buffer (efrit-change-before change))
      (unless (efrit-change-unsaved change)
        (with-current-buffer buffer
          (set-buffer-modified-p nil))))))

;;; Private: checks

(defun efrit-change--refuse (format &rest arguments)
  "Signal that a change cannot be made; FORMAT and ARGUMENTS say why."
  (signal 'efrit-change-refused (list (apply #'format format arguments))))

(defun efrit-change--check-size (change)
  "Refuse CHANGE where its file is too large to be edited."
  (let ((size (file-attribute-size (file-attributes (efrit-change-file change)))))
    (when (> (or size 0) efrit-change-most-bytes)
      (efrit-change--refuse "%s has %d bytes; files of more than %d are not edited here: \
use a command" (efrit-change-path change) size efrit-change-most-bytes))))

(defun efrit-change--check-plain (change)
  "Refuse CHANGE where Emacs would uncompress or decrypt its file."
  (let ((handler (find-file-name-handler (efrit-change-file change) 'insert-file-contents)))
    (when (and handler (not (file-remote-p (efrit-change-file change))))
      (efrit-change--refuse "%s is compressed or encrypted; it is not edited here"
                            (efrit-change-path change)))))

(defun efrit-change--check-buffer (change buffer)
  "Refuse CHANGE where BUFFER, which visits its file, is not to be edited.
Where the person has not changed it and the file has, it is read again."
  (with-current-buffer buffer
    (unless (efrit-file-current-p buffer)
      (when (buffer-modified-p)
        (efrit-change--refuse "%s has unsaved changes in Emacs, and its file has changed \
on disk: the person has to settle that first" (efrit-change-path change)))
      (efrit-file-reload buffer buffer-file-coding-system))
    (when (buffer-base-buffer)
      (efrit-change--refuse "%s is visited by an indirect buffer"
                            (efrit-change-path change)))))

(defun efrit-change--check-content (change)
  "Refuse CHANGE where this buffer, that of its file, cannot be edited."
  (let ((path (efrit-change-path change)))
    (cond
     ((not (file-writable-p (efrit-change-file change)))
      (efrit-change--refuse "%s is read-only; ask the person to make it writable" path))
     (buffer-read-only
      (efrit-change--refuse "%s is read-only in its buffer, by the person's will" path))
     ((stringp (file-locked-p (efrit-change-file change)))
      (efrit-change--refuse "%s is being edited by %s in another Emacs" path
                            (file-locked-p (efrit-change-file change))))
     ((string-search "\0" (efrit-change-before change))
      (efrit-change--refuse "%s is binary; it is not edited as text" path)))))

(defun efrit-change--check-letters (change)
  "Refuse CHANGE where the file's coding system has not all letters of its text.
Bytes that are no letters go back as they came."
  (let* ((coding (efrit-file-coding))
         (text (replace-regexp-in-string "[\x3fff80-\x3fffff]" ""
                                         (efrit-change-after change) t t))
         (place (car (unencodable-char-position 0 (length text) coding 1 text))))
    (when place
      (efrit-change--refuse "%s is in %s, which has no %s (U+%04X)"
                            (efrit-change-path change) coding
                            (string (aref text place)) (aref text place)))))

;;; Private: buffers

;;; Private: kinds of changes

(defun efrit-change--edit (change)
  "Edit the file of CHANGE in its buffer, and save that if it is to be."
  (let ((buffer (efrit-change-buffer change))
        (done nil))
    (with-current-buffer buffer
      (efrit-change--check-letters change)
      (unwind-protect
          (progn
            (efrit-file-set-text buffer (efrit-change-after change))
            (unless (string= (efrit-file-text buffer) (efrit-change-after change))
              (efrit-change--refuse "%s cannot hold this text" (efrit-change-path change)))
            (when (efrit-change-save change)
              (efrit-file-save buffer))
            (setq done t))
        (unless done
          (efrit-change-take-back change))))))

(defun efrit-change--create (change)
  "Make the file of CHANGE, and the folders that it lacks."
  (let ((file (efrit-change-file change))
        (done nil))
    (when (file-exists-p file)
      (efrit-change--refuse "%s is there by now" (efrit-change-path change)))
    (make-directory (file-name-directory file) t)
    (setf (efrit-change-buffer change) (efrit-file-open file)
          (efrit-change-opened change) t)
    (with-current-buffer (efrit-change-buffer change)
      (unwind-protect
          (let ((inhibit-read-only t))
            (efrit-file-set-text (current-buffer) (efrit-change-after change))
            (efrit-change--fit-coding)
            (set-buffer-modified-p t)
            (efrit-file-save (current-buffer))
            (setq done t))
        (unless done
          (set-buffer-modified-p nil)
          (kill-buffer))))))

(defun efrit-change--fit-coding ()
  "Have this new buffer be saved as UTF-8 where its own coding has not all."
  (when (unencodable-char-position (point-min) (point-max) (efrit-file-coding))
    (set-buffer-file-coding-system 'utf-8-unix t t)))

(defun efrit-change--delete (change)
  "Delete the file of CHANGE, or move it to the trash, as the person's Emacs does."
  (let ((buffer (efrit-change-buffer change)))
    (delete-file (efrit-change-file change) t)
    (when (and (efrit-change-opened change) (buffer-live-p buffer))
      (kill-buffer buffer))))

(defun efrit-change--rename (change)
  "Give the file of CHANGE its new name, and its buffer, too.
A buffer of a file that had this name before shows the new text."
  (let* ((file (efrit-change-file change))
         (to (efrit-change-to-file change))
         (former (efrit-file-buffer to)))
    (make-directory (file-name-directory to) t)
    (rename-file file to)
    (when-let* ((buffer (efrit-file-buffer file)))
      (with-current-buffer buffer
        (let ((modified (buffer-modified-p)))
          (efrit-file-visit-as to)
          (set-visited-file-modtime)
          (efrit-file-set-modified modified))))
    (when (and former (not (buffer-modified-p former)))
      ;; The rename is done; where this fails, it is done before the next edit.
      (ignore-errors (efrit-file-reload former)))))

(provide 'efrit-change)
;;; efrit-change.el ends here
