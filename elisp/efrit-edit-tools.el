;;; efrit-edit-tools.el --- The tools that change files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each tool here makes a plan of its arguments, which efrit-plan.el shows
;; the person and carries out.

;;; Code:

(require 'cl-lib)
(require 'efrit-change)
(require 'efrit-match)
(require 'efrit-plan)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

(defconst efrit-edit--most-places 20
  "How many places are named where a text stands more than once.")

;;; Tools

(efrit-define-tool edit_file
    ((path "string" "")
     (old_text "string" "Exactly, without line numbers; must stand there once")
     (new_text "string" "")
     (replace_all "boolean" "" :optional t))
  "Replace text in a file, through its buffer in Emacs."
  :policy ask
  :async t
  :plan (efrit-plan-of-files #'efrit-edit--plan-one)
  (efrit-plan-carry-out call))

(efrit-define-tool multi_edit
    ((edits (:type "array"
                   :items (:type "object"
                                 :properties (:path (:type "string")
                                              :old_text (:type "string")
                                              :new_text (:type "string")
                                              :replace_all (:type "boolean"))
                                 :required ["path" "old_text" "new_text"]))
            "A later one sees what an earlier one did"))
  "Several edits, in one file or more: all are made, or none."
  :policy ask
  :async t
  :plan (efrit-plan-of-files #'efrit-edit--plan-many)
  (efrit-plan-carry-out call))

(efrit-define-tool create_file
    ((path "string" "Folders are made")
     (content "string" "")
     (overwrite "boolean" "" :optional t))
  "Make a new file."
  :policy ask
  :async t
  :plan (efrit-plan-of-files #'efrit-edit--plan-create)
  (efrit-plan-carry-out call))

(efrit-define-tool rename_file
    ((path "string" "")
     (to "string" ""))
  "Rename or move a file. Git's index is not touched."
  :policy ask
  :async t
  :plan (efrit-plan-of-files #'efrit-edit--plan-rename)
  (efrit-plan-carry-out call))

(efrit-define-tool delete_file
    ((path "string" ""))
  "Delete a file; undo_edit brings it back."
  :policy ask
  :async t
  :plan (efrit-plan-of-files #'efrit-edit--plan-delete)
  (efrit-plan-carry-out call))

;;; Plans

(defun efrit-edit--plan-one (arguments files)
  "Return the plan of `edit_file' with ARGUMENTS; FILES are known."
  (efrit-edit--plan-edits (list arguments) files))

(defun efrit-edit--plan-many (arguments files)
  "Return the plan of `multi_edit' with ARGUMENTS; FILES are known."
  (let ((edits (append (plist-get arguments :edits) nil)))
    (unless edits
      (efrit-plan-refuse "edits is empty"))
    (efrit-edit--plan-edits edits files)))

(defun efrit-edit--plan-edits (edits files)
  "Return the plan of EDITS, plists; FILES are known."
  (let ((changes nil)
        (said nil)
        (done nil))
    (unwind-protect
        (progn
          (cl-loop for edit in edits
                   for number from 1
                   for where = (if (cdr edits) (format "edit %d: " number) "")
                   do (push (efrit-edit--add edit files where
                                             (lambda () changes)
                                             (lambda (change) (push change changes)))
                            said))
          (setq done t))
      (unless done
        (mapc #'efrit-change-let-go changes)))
    (efrit-plan-create :changes (nreverse changes)
                       :said (string-join (nreverse said) "\n"))))

(defun efrit-edit--add (edit files where changes add)
  "Have the change of the file of EDIT lead to what EDIT asks for; say what.
FILES are known; CHANGES gives the changes so far, ADD takes a new one.  WHERE
begins the text of what is wrong."
  (efrit-edit--check-strings edit '(:path :old_text :new_text) where)
  (let* ((path (plist-get edit :path))
         (file (efrit-plan-file path files))
         (change (seq-find (lambda (change)
                             (equal (efrit-change-file change) (plist-get file :file)))
                           (funcall changes))))
    (unless (eq (plist-get file :exists) t)
      (efrit-plan-refuse "%sthere is no file %s; create_file makes one" where path))
    (unless change
      (setq change (efrit-plan-change 'edit path files))
      (funcall add change)
      (setf (efrit-change-after change) (efrit-change-before change)))
    (efrit-edit--apply change edit where)))

(defun efrit-edit--apply (change edit where)
  "Have CHANGE lead to its text with EDIT done; return what was done.
WHERE begins the text of what is wrong."
  (let* ((text (efrit-change-after change))
         (path (efrit-change-path change))
         (old (efrit-edit--old edit text))
         (new (plist-get edit :new_text))
         (places (efrit-match-all old text)))
    (cond
     ((string-empty-p old)
      (efrit-plan-refuse "%sold_text is empty; give a text that stands in %s" where path))
     ((string= old new)
      (efrit-plan-refuse "%sold_text and new_text are the same" where))
     ((null places) (efrit-edit--refuse-unfound old text path where))
     ((and (cdr places) (not (eq (plist-get edit :replace_all) t)))
      (efrit-plan-refuse
       "%sold_text stands in %s %d times, at lines %s; give more of what is around it, \
or set replace_all" where path (length places) (efrit-edit--lines text places))))
    (setf (efrit-change-after change) (efrit-match-replace old new text places))
    (format "Edited %s: %s" path
            (if (cdr places)
                (format "%d places, at lines %s" (length places)
                        (efrit-edit--lines text places))
              (format "line %s" (efrit-edit--lines text places))))))

(defun efrit-edit--old (edit text)
  "Return the old text of EDIT as it may stand in TEXT.
Where TEXT has no carriage returns in its lines' ends, those do not count."
  (let ((old (plist-get edit :old_text)))
    (if (and (string-search "\r\n" old) (not (string-search "\r\n" text)))
        (string-replace "\r\n" "\n" old)
      old)))

(defun efrit-edit--refuse-unfound (old text path where)
  "Refuse to replace OLD, which does not stand in TEXT, that of PATH.
WHERE begins what is said."
  (let ((closest (efrit-match-closest old text)))
    (efrit-plan-refuse
     "%sold_text does not stand in %s.%s%s" where path
     (if closest (concat " Closest are these lines:\n" closest) "")
     (if (and (string-search "\r\n" text) (string-search "\n" old))
         "\nLines of that file end in \\r\\n, and not all of them, so \\r counts." ""))))

(defun efrit-edit--lines (text places)
  "Return the numbers of the lines of TEXT at PLACES, offsets, as text."
  (let ((line 1)
        (from 0)
        (numbers nil))
    (dolist (place (seq-take places efrit-edit--most-places))
      (setq line (+ line (cl-count ?\n text :start from :end place))
            from place)
      (push (number-to-string line) numbers))
    (concat (string-join (nreverse numbers) ", ")
            (if (nthcdr efrit-edit--most-places places) " ..." ""))))

(defun efrit-edit--plan-create (arguments files)
  "Return the plan of `create_file' with ARGUMENTS; FILES are known."
  (let* ((path (plist-get arguments :path))
         (content (plist-get arguments :content))
         (file (efrit-plan-file path files)))
    (if (eq (plist-get file :exists) t)
        (efrit-edit--plan-overwrite arguments files)
      (efrit-edit--check-no-unsaved path file)
      (efrit-plan-create
       :changes (list (efrit-plan-change 'create path files :after content))
       :said (format "Created %s: %d lines." path (efrit-edit--count-lines content))))))

(defun efrit-edit--plan-overwrite (arguments files)
  "Return the plan of `create_file' where the file of ARGUMENTS is there.
FILES are known."
  (let ((path (plist-get arguments :path)))
    (unless (eq (plist-get arguments :overwrite) t)
      (efrit-plan-refuse "%s is there already; edit_file changes it, overwrite replaces it"
                         path))
    (let ((change (efrit-plan-change 'edit path files)))
      (setf (efrit-change-after change) (plist-get arguments :content))
      (efrit-plan-create :changes (list change)
                         :said (format "Replaced the text of %s: %d lines." path
                                       (efrit-edit--count-lines
                                        (plist-get arguments :content)))))))

(defun efrit-edit--plan-rename (arguments files)
  "Return the plan of `rename_file' with ARGUMENTS; FILES are known."
  (let* ((path (plist-get arguments :path))
         (to (plist-get arguments :to))
         (target (efrit-plan-file to files)))
    (efrit-edit--check-there path files)
    (when (eq (plist-get target :exists) t)
      (efrit-plan-refuse "%s is there already; delete it first, or choose another name" to))
    (efrit-edit--check-no-unsaved to target)
    (efrit-plan-create
     :changes (list (efrit-change-create
                     :kind 'rename :path (plist-get (efrit-plan-file path files) :path)
                     :file (plist-get (efrit-plan-file path files) :file)
                     :stamp (efrit-file-stamp (plist-get (efrit-plan-file path files) :file))
                     :to (plist-get target :path) :to-file (plist-get target :file)))
     :said (format "Renamed %s to %s." path to))))

(defun efrit-edit--plan-delete (arguments files)
  "Return the plan of `delete_file' with ARGUMENTS; FILES are known."
  (let ((path (plist-get arguments :path)))
    (efrit-edit--check-there path files)
    (let ((change (efrit-edit--to-delete path files)))
      (efrit-plan-create :changes (list change)
                         :said (format "Deleted %s%s." path
                                       (if delete-by-moving-to-trash
                                           " (it is in the trash)" ""))))))

(defun efrit-edit--to-delete (path files)
  "Return the change that deletes PATH, which FILES knows.
What is no text, or too large to be shown, is deleted unseen."
  (let* ((file (plist-get (efrit-plan-file path files) :file))
         (buffer (efrit-file-buffer file)))
    (when (and buffer (buffer-modified-p buffer))
      (efrit-plan-refuse "%s has unsaved changes of the person's in its buffer" path))
    (condition-case nil
        (efrit-plan-change 'delete path files)
      (efrit-plan-refused
       (efrit-change-create :kind 'delete :path path :file file
                            :stamp (efrit-file-stamp file))))))

;;; Checks

(defun efrit-edit--check-strings (edit names where)
  "Refuse EDIT, a plist, where one of NAMES is no string in it.
WHERE begins what is said."
  (dolist (name names)
    (unless (stringp (plist-get edit name))
      (efrit-plan-refuse "%s%s must be a text" where (substring (symbol-name name) 1)))))

(defun efrit-edit--check-no-unsaved (path file)
  "Refuse to make PATH where text in a buffer for it is not saved.
FILE is what is known of it."
  (when-let* ((buffer (efrit-file-buffer (plist-get file :file)))
              ((buffer-modified-p buffer)))
    (efrit-plan-refuse "%s has a buffer with text that the person has not saved" path)))

(defun efrit-edit--check-there (path files)
  "Refuse PATH where FILES knows that there is no such file."
  (unless (eq (plist-get (efrit-plan-file path files) :exists) t)
    (efrit-plan-refuse "there is no file %s" path)))

(defun efrit-edit--count-lines (text)
  "Return how many lines TEXT has."
  (+ (cl-count ?\n text)
     (if (or (string-empty-p text) (string-suffix-p "\n" text)) 0 1)))

(provide 'efrit-edit-tools)
;;; efrit-edit-tools.el ends here
