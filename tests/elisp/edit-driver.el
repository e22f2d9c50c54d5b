;;; edit-driver.el --- Sequences of edits, as a program asks for them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in a batch Emacs: it reads a sequence from each line of standard
;; input, a JSON object of a project's root and steps, does the steps with
;; the tools, a real sidecar, and hand edits in between, takes everything
;; back, and writes what came of it as a line that begins with "RESULT ".
;; See tests/emacs/test_edit_sequences.py.

;;; Code:

(add-to-list 'load-path (file-name-directory load-file-name))
(add-to-list 'load-path (expand-file-name "../../elisp" (file-name-directory load-file-name)))

(require 'cl-lib)
(require 'editing)
(require 'json)
(require 'seq)

(defvar-local edit-driver--first nil
  "Text of the buffer when it was opened.")
(put 'edit-driver--first 'permanent-local t)

(defun edit-driver-run ()
  "Do each sequence that standard input asks for."
  (let ((create-lockfiles nil)
        line)
    (dolist (question '(yes-or-no-p y-or-n-p read-string))
      (advice-add question :override
                  (lambda (prompt &rest _) (error "A question: %s" prompt))))
    (add-hook 'find-file-hook (lambda () (setq edit-driver--first (buffer-string))))
    (while (setq line (ignore-errors (read-from-minibuffer "")))
      (princ (format "RESULT %s\n"
                     (condition-case err
                         (json-encode (edit-driver--sequence
                                       (json-parse-string line :object-type 'plist)))
                       (error (json-encode (list :error (error-message-string err)))))))))
  (efrit-sidecar-stop))

(defun edit-driver--sequence (asked)
  "Carry out the sequence ASKED, a plist, and undo it."
  (let* ((efrit-test-project (file-name-as-directory (plist-get asked :root)))
         (default-directory efrit-test-project)
         (editing-loop (efrit-do-make-loop efrit-test-project))
         (buffers (buffer-list)))
    (unwind-protect
        (let ((steps (mapcar #'edit-driver--step (append (plist-get asked :steps) nil))))
          (list :steps (vconcat steps)
                :end (edit-driver--tree)
                :changes (edit-driver--changes)
                :undone (vconcat (edit-driver--undo nil))
                :forced (vconcat (edit-driver--undo t))
                :history (vconcat (edit-driver--histories))))
      (efrit-test-kill-buffers (seq-difference (buffer-list) buffers))
      (efrit-do-forget editing-loop))))

;;; Steps

(defun edit-driver--step (step)
  "Carry out STEP, a vector; return the tree from before, and the result."
  (let ((tree (edit-driver--tree))
        (known (length (editing-changes)))
        (given (apply #'edit-driver--do (append step nil))))
    (list :tree tree :before known :given given)))

(defun edit-driver--do (kind &rest arguments)
  "Carry out a step of KIND with ARGUMENTS; return the tool's text, or nil."
  (pcase (cons kind arguments)
    (`("edit" ,file ,from ,size ,new ,all)
     (when-let* ((name (edit-driver--name file)))
       (edit-driver--use "edit_file" :path name :old_text (edit-driver--piece name from size)
                         :new_text new :replace_all (if (eq all t) t :json-false))))
    (`("multi" ,edits)
     (edit-driver--use
      "multi_edit"
      :edits (vconcat
              (seq-map (lambda (edit)
                         (pcase-let* ((`(,file ,from ,size ,new) (append edit nil))
                                      (name (or (edit-driver--name file) "none")))
                           (list :path name :new_text new
                                 :old_text (edit-driver--piece name from size))))
                       edits))))
    (`("create" ,name ,text)
     (edit-driver--use "create_file" :path name :content text :overwrite t))
    (`("rename" ,file ,to)
     (when-let* ((name (edit-driver--name file)))
       (edit-driver--use "rename_file" :path name :to to)))
    (`("delete" ,file)
     (when-let* ((name (edit-driver--name file)))
       (edit-driver--use "delete_file" :path name)))
    ('("undo") (edit-driver--use "undo_edit"))
    (`("hand" ,file ,from ,text ,save)
     (when-let* ((name (edit-driver--name file)))
       (edit-driver--by-hand name from text (eq save t))))
    (`("disk" ,file ,text)
     (when-let* ((name (edit-driver--name file)))
       (editing-write-bytes name (encode-coding-string text 'utf-8-unix))
       nil))))

(defun edit-driver--use (tool &rest arguments)
  "Use TOOL with ARGUMENTS; return its text."
  (plist-get (apply #'editing-use tool arguments) :text))

(defun edit-driver--name (index)
  "Return the name of the file that INDEX stands for, or nil."
  (let ((names (mapcar #'car (editing-tree))))
    (and names (nth (mod index (length names)) names))))

(defun edit-driver--text (name)
  "Return the text of the file NAME as the model would see it."
  (let* ((file (editing-file name))
         (buffer (efrit-file-buffer file)))
    (cond ((and buffer (buffer-modified-p buffer)) (efrit-file-text buffer))
          ((file-exists-p file) (with-temp-buffer
                                  (insert-file-contents file)
                                  (buffer-string)))
          (t ""))))

(defun edit-driver--piece (name from size)
  "Return about SIZE letters of the text of NAME, behind FROM others."
  (let* ((text (edit-driver--text name))
         (start (if (string-empty-p text) 0 (mod from (length text)))))
    (substring text start (min (length text) (+ start size)))))

(defun edit-driver--by-hand (name from text save)
  "Insert TEXT into the buffer of NAME as a person would, behind FROM letters.
Save it, if SAVE is non-nil.  Return nil."
  (with-current-buffer (or (efrit-file-buffer (editing-file name))
                           (find-file-noselect (editing-file name)))
    (unless (or (verify-visited-file-modtime) (buffer-modified-p))
      (apply #'efrit-file-reload (current-buffer) (efrit-file-read buffer-file-name nil)))
    (when (verify-visited-file-modtime)
      (undo-boundary)
      (goto-char (1+ (mod from (1+ (buffer-size)))))
      (insert text)
      (undo-boundary)
      (when save
        (let ((require-final-newline nil)
              (make-backup-files nil)
              (save-silently t)
              (coding-system-for-write (efrit-file-coding buffer-file-coding-system)))
          (save-buffer)))))
  nil)

;;; Looking

(defun edit-driver--tree ()
  "Return the tree as a hash table of names and digests."
  (let ((tree (make-hash-table :test #'equal)))
    (pcase-dolist (`(,name . ,bytes) (editing-tree))
      (puthash name (md5 bytes) tree))
    tree))

(defun edit-driver--changes ()
  "Return each change of the session with its details."
  (vconcat
   (mapcar (lambda (change)
             (let ((shown (efrit-sidecar-request
                           'changes/show
                           (list :session_id (efrit-loop-id editing-loop)
                                 :number (plist-get change :number)))))
               (cl-loop for name in '(:number :kind :path :to :state :before :after :buffer_text_before)
                        append (list name (plist-get shown name)))))
           (editing-changes))))

(defun edit-driver--undo (force)
  "Take back all that was changed, one by one; with FORCE, in any case."
  (mapcar (lambda (change)
            (let ((before (edit-driver--tree))
                  (outcome (edit-driver--undo-one (plist-get change :number) force)))
              (list :number (car outcome) :problem (nth 2 outcome)
                    :tree before :after (edit-driver--tree))))
          (seq-filter #'efrit-undo-open-p (reverse (editing-changes)))))

(defun edit-driver--undo-one (number force)
  "Take back the change NUMBER; with FORCE, in any case.  Return the outcome."
  (let (outcomes)
    (efrit-undo-changes editing-loop (list number) force
                        (lambda (given) (setq outcomes given)))
    (efrit-test-wait-until (lambda () outcomes))
    (car outcomes)))

(defun edit-driver--histories ()
  "Say of which files the buffers' undo does not lead to the beginning."
  (delq nil
        (mapcar (lambda (buffer)
                  (when (and (buffer-file-name buffer)
                             (string-prefix-p efrit-test-project (buffer-file-name buffer)))
                    (with-current-buffer buffer
                      (let ((name (file-relative-name buffer-file-name efrit-test-project))
                            (buffer-file-name nil)
                            (buffer-file-truename nil))
                        (edit-driver--undo-to-begin)
                        (unless (equal (buffer-string) edit-driver--first)
                          (format "%s: %S instead of %S" name (buffer-string)
                                  edit-driver--first))))))
                (buffer-list))))

(defun edit-driver--undo-to-begin ()
  "Undo everything in this buffer."
  (undo-start)
  (ignore-errors
    (while t
      (undo-more 1))))

(edit-driver-run)

(provide 'edit-driver)
;;; edit-driver.el ends here
