;;; efrit-edit.el --- Edit files with a plan  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that change files make a plan, which is shown to the person and then
;; carried out.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-loop)
(require 'efrit-rpc)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

;;; Finding a text

;; Where a text stands in another one, letter by letter; and, where it does
;; not stand, which lines come closest, counted by lines that are the same
;; but for blanks, then by the letters to change.

(defconst efrit-match--most-work 20000000
  "The most pairs of letters that are compared to find close lines.")

(defconst efrit-match--most-lines 12
  "The most lines that are shown of a place that comes close.")

(defconst efrit-match--most-width 200
  "The most characters that are shown, and compared, of a line.")

(defun efrit-match-all (old text)
  "Return where OLD stands in TEXT: offsets, ascending, without overlaps."
  (let ((found nil)
        (start 0))
    (while (and (not (string-empty-p old))
                (setq start (string-search old text start)))
      (push start found)
      (setq start (+ start (length old))))
    (nreverse found)))

(defun efrit-match-replace (old new text places)
  "Return TEXT with NEW for OLD at each of PLACES, offsets, ascending."
  (let ((parts nil)
        (start 0))
    (dolist (place places)
      (push (substring text start place) parts)
      (push new parts)
      (setq start (+ place (length old))))
    (push (substring text start) parts)
    (apply #'concat (nreverse parts))))

(defun efrit-match-closest (old text)
  "Return the lines of TEXT that come closest to OLD, numbered, or nil."
  (let* ((lines (split-string text "\n"))
         (wanted (split-string (string-trim-right old "\n+") "\n"))
         (start (or (efrit-match--by-lines wanted lines)
                    (efrit-match--by-letters wanted lines))))
    (when start
      (efrit-match--number-lines lines start
                                 (min (length wanted) efrit-match--most-lines)))))

(defun efrit-match--ignore-blanks (line)
  "Return LINE as it is compared: blanks do not count."
  (replace-regexp-in-string "[ \t\r\f]+" "" line t t))

(defun efrit-match--by-lines (wanted lines)
  "Return the index in LINES where most of WANTED stands but for blanks, or nil."
  (let ((places (make-hash-table :test #'equal))
        (votes (make-hash-table))
        (best nil))
    (seq-do-indexed (lambda (line index)
                      (let ((bare (efrit-match--ignore-blanks line)))
                        (unless (string-empty-p bare)
                          (push index (gethash bare places)))))
                    wanted)
    (seq-do-indexed (lambda (line index)
                      (dolist (place (gethash (efrit-match--ignore-blanks line) places))
                        (cl-incf (gethash (- index place) votes 0))))
                    lines)
    (maphash (lambda (start count)
               (when (or (null best) (> count (cdr best))
                         (and (= count (cdr best)) (< start (car best))))
                 (setq best (cons start count))))
             votes)
    (and best (max 0 (car best)))))

(defun efrit-match--by-letters (wanted lines)
  "Return the index in LINES of the line closest to WANTED's longest, or nil.
It stands where that one would begin the whole."
  (let* ((longest (seq-reduce (lambda (a b) (if (> (length b) (length a)) b a)) wanted ""))
         (index (seq-position wanted longest))
         (line (efrit-match--closest-line (efrit-match--part longest) lines)))
    (and line (max 0 (- line index)))))

(defun efrit-match--closest-line (wanted lines)
  "Return the index of the one of LINES that has most of WANTED, or nil.
It takes at most so many changes as half of the letters of WANTED."
  (let ((least (1+ (/ (length wanted) 2)))
        (work 0)
        (found nil))
    (seq-do-indexed
     (lambda (line index)
       (let ((line (efrit-match--part line)))
         (when (and (< (abs (- (length line) (length wanted))) least)
                    (< work efrit-match--most-work))
           (setq work (+ work (* (length line) (length wanted))))
           (let ((distance (string-distance wanted line)))
             (when (< distance least)
               (setq least distance
                     found index))))))
     lines)
    found))

(defun efrit-match--part (line)
  "Return what is compared of LINE by letters."
  (let ((line (string-trim line)))
    (substring line 0 (min (length line) efrit-match--most-width))))

(defun efrit-match--number-lines (lines start count)
  "Return COUNT of LINES from the index START on, each with its number."
  (string-join
   (cl-loop for line in (seq-take (nthcdr start lines) count)
            for number from (1+ start)
            collect (format "%d: %s" number
                            (truncate-string-to-width line efrit-match--most-width nil nil "…")))
   "\n"))

;;; Files that the model has read

;; A file that was read and has changed since, on disk or in its buffer, is
;; not edited before it was read again.  What the model itself changed it
;; knows.  In a session that was taken up again, what changed after it was
;; last at work has to be read again.

(defun efrit-read-files-record (loop tool arguments)
  "Note in LOOP that a use of TOOL with ARGUMENTS, a JSON text, gave a result."
  (when (equal tool "read_file")
    (let ((path (plist-get (ignore-errors (efrit-json-plist arguments)) :path)))
      (when (stringp path)
        (efrit-read-files-note loop (efrit-read-files--file loop path))))))

(defun efrit-read-files-note (loop file)
  "Note in LOOP that the model knows how FILE, a whole name, is now.
Where that cannot be found out, it has to be read again."
  (puthash file (condition-case nil (efrit-file-stamp file) (error 'unknown))
           (efrit-loop-seen loop)))

(defun efrit-read-files-problem (loop change)
  "Return why the model in LOOP does not know the file of CHANGE as it is, or nil."
  (let* ((file (efrit-change-file change))
         (stamp (efrit-change-stamp change))
         (seen (gethash file (efrit-loop-seen loop))))
    (cond
     ((memq (efrit-change-kind change) '(create rename)) nil)
     (seen
      (unless (equal seen stamp)
        (format "%s has changed since you read it; read it again" (efrit-change-path change))))
     ((efrit-read-files--changed-p loop file)
      (format "%s has changed since this session was last at work; read it again"
              (efrit-change-path change))))))

(defun efrit-read-files--file (loop path)
  "Return the whole name of PATH, as the model in LOOP has it.
On another machine, links are not looked at, since that takes long."
  (let ((file (expand-file-name path (efrit-loop-root loop))))
    (if (file-remote-p file) file (file-truename file))))

(defun efrit-read-files--changed-p (loop file)
  "Return non-nil if FILE changed while nobody worked in LOOP."
  (let ((since (efrit-loop-since loop))
        (attributes (file-attributes file)))
    (and since attributes
         (time-less-p (seconds-to-time since)
                      (file-attribute-modification-time attributes)))))

;;; Plans

;; A tool that changes files first says how they would stand: a plan, which
;; the person is shown as a diff.  It is then made as a whole or not at all.
;; Before anything is changed, the sidecar keeps how the files were, and
;; afterwards how they are, so that it can be undone in another Emacs, too.

(cl-defstruct (efrit-plan (:constructor efrit-plan-create) (:copier nil))
  "What a use of a tool would change.
CHANGES are `efrit-change's, in order.  SAID is what the tool says of them
once they are made.  SECRET says whether a file of secrets is among them.
REVISED says how the person changed the new text.  DIFF is the diff, or nil
while it is not known.  TAKES-BACK are the numbers of changes that are undone.
QUESTION is what the person is asked, where CHANGES do not say it.  FILES are
the files that it changes: their real names, whole, or in the project."
  changes said secret revised diff takes-back question files)

;;;; Planning

(defun efrit-plan-refuse (format &rest arguments)
  "Signal that there is no plan; FORMAT and ARGUMENTS tell the model why."
  (signal 'efrit-plan-refused (list (apply #'format format arguments))))

(defun efrit-plan-make (loop tool arguments then refused)
  "Make the plan of a use of TOOL in LOOP with ARGUMENTS, a JSON text.
Call THEN with it, or REFUSED with what is wrong, a string."
  (funcall (efrit-tool-plan tool) loop (efrit-json-plist arguments) then refused))

(defun efrit-plan-of-files (planner)
  "Return a tool's `:plan'; the files of its arguments are looked at first.
PLANNER is called with the arguments and an alist of paths and what is known
of each, and returns the plan or refuses it; see `efrit-plan-refuse'."
  (lambda (loop given then refused)
    (efrit-plan--with-files
     loop (efrit-plan--paths given)
     (lambda (files)
       (efrit-plan--run-planner planner loop given files then refused))
     refused)))

(defun efrit-plan-file (path files)
  "Return what is known of PATH in FILES; refuse where it is no good one."
  (let ((file (or (cdr (assoc path files))
                  (efrit-plan-refuse "path is missing"))))
    (when-let* ((problem (plist-get file :problem)))
      (efrit-plan-refuse "%s: %s" path problem))
    file))

(defun efrit-plan-change (kind path files &rest more)
  "Return a change of KIND for PATH, which FILES knows; MORE are slots of it.
Where the file is there, it is visited."
  (let* ((file (efrit-plan-file path files))
         (change (apply #'efrit-change-create :kind kind :path (plist-get file :path)
                        :file (plist-get file :file) more)))
    (if (not (eq (plist-get file :exists) t))
        (setf (efrit-change-stamp change) (efrit-file-stamp (plist-get file :file)))
      (condition-case err
          (efrit-change-visit change)
        (efrit-change-refused (efrit-plan-refuse "%s" (cadr err)))
        (error (efrit-plan-refuse "%s: %s" path (error-message-string err)))))
    change))

(defun efrit-plan-drop (plan)
  "Let go of PLAN, which is not made."
  (mapc #'efrit-change-release (efrit-plan-changes plan)))

(defun efrit-plan-text (plan)
  "Return what PLAN would change: a diff."
  (or (efrit-plan-diff plan)
      (setf (efrit-plan-diff plan)
            (mapconcat (lambda (change)
                         (efrit-plan--change-diff change (efrit-change-after change)))
                       (efrit-plan-changes plan) ""))))

(defun efrit-plan-prompt (plan)
  "Return what the person is asked about PLAN, in a line."
  (or (efrit-plan-question plan)
      (mapconcat #'efrit-plan--change-line (efrit-plan-changes plan) ", ")))

(defun efrit-plan-revisable (plan)
  "Return each part of PLAN whose new text the person may edit first.
A file that is deleted or renamed gets no new text."
  (seq-filter (lambda (change) (memq (efrit-change-kind change) '(edit create)))
              (efrit-plan-changes plan)))

(defun efrit-plan-revise (plan change text)
  "Have CHANGE of PLAN lead to TEXT, as the person has it."
  (unless (equal text (efrit-change-after change))
    (setf (efrit-plan-revised plan)
          (concat (efrit-plan-revised plan)
                  (efrit-diff (efrit-change-after change) text (efrit-change-path change)))
          (efrit-change-after change) text
          (efrit-plan-diff plan) nil)))

;;;; Carrying out

(defun efrit-plan-carry-out (call)
  "Make what the plan of CALL has, and finish CALL with what came of it."
  (efrit-plan--ask-about-saving
   call (lambda () (efrit-plan--begin call))))

(defun efrit-plan--paths (given)
  "Return the paths in GIVEN, a tool's arguments, each once."
  (seq-uniq
   (seq-filter #'stringp
               (append (list (plist-get given :path) (plist-get given :to))
                       (mapcar (lambda (edit) (and (listp edit) (plist-get edit :path)))
                               (plist-get given :edits))))))

(defun efrit-plan--with-files (loop paths then refused)
  "Ask about PATHS in LOOP; call THEN with an alist of them, or REFUSED.
The names come with the host of the project, where that is another one."
  (efrit-loop-call
   loop 'changes/check (list :paths (vconcat paths))
   (lambda (checked)
     (funcall then
              (cl-loop for path in paths
                       for file across (plist-get checked :files)
                       for name = (efrit-file-name-there (efrit-loop-root loop)
                                                         (or (plist-get file :file) ""))
                       collect (cons path (plist-put file :file name)))))
   (lambda (err) (funcall refused (efrit-error-text err)))))

(defun efrit-plan--run-planner (planner loop given files then refused)
  "Have PLANNER plan with GIVEN and FILES in LOOP.
Call THEN with the plan, or REFUSED with what is wrong."
  (let* ((plan (condition-case err
                   (funcall planner given files)
                 (efrit-plan-refused (cadr err))
                 (error (error-message-string err))))
         (problem (if (stringp plan)
                      plan
                    (efrit-plan--unread-file loop plan))))
    (cond
     ((null problem)
      (setf (efrit-plan-secret plan)
            (seq-some (lambda (file) (eq (plist-get (cdr file) :secret) t)) files)
            (efrit-plan-files plan)
            (mapcar (lambda (file) (plist-get (cdr file) :file)) files))
      (funcall then plan))
     (t (unless (stringp plan)
          (efrit-plan-drop plan))
        (funcall refused problem)))))

(defun efrit-plan--unread-file (loop plan)
  "Return which file of PLAN the model in LOOP does not know as it is, or nil."
  (condition-case err
      (seq-some (lambda (change) (efrit-read-files-problem loop change))
                (efrit-plan-changes plan))
    (error (error-message-string err))))

(defun efrit-plan--change-line (change)
  "Return CHANGE in a line, with how many lines come and go."
  (let ((counts (efrit-diff-counts
                 (efrit-plan--change-diff change (efrit-change-after change)))))
    (format "%s %s%s (+%d −%d)" (capitalize (symbol-name (efrit-change-kind change)))
            (efrit-change-path change)
            (if (efrit-change-to change) (concat " to " (efrit-change-to change)) "")
            (car counts) (cdr counts))))

(defun efrit-plan--change-diff (change after)
  "Return the diff of CHANGE where it leads to AFTER."
  (if (eq (efrit-change-kind change) 'rename)
      (format "rename from %s\nrename to %s\n" (efrit-change-path change)
              (efrit-change-to change))
    (efrit-diff (efrit-change-before change) after (efrit-change-path change))))

(defun efrit-plan--ask-about-saving (call then)
  "Settle what of the plan of CALL is saved, then call THEN."
  (let ((unsaved (seq-filter #'efrit-change-unsaved
                             (efrit-plan-changes (efrit-tool-call-plan call))))
        (settle (lambda (save changes)
                  (dolist (change changes)
                    (setf (efrit-change-save change) save))
                  (funcall then))))
    (if (and unsaved (eq efrit-edit-unsaved-buffers 'ask))
        (efrit-plan--ask
         call (format "%s had unsaved changes of yours.  Save with the edit?"
                      (mapconcat #'efrit-change-path unsaved ", "))
         '("Save" "Leave it unsaved")
         (lambda (answer) (funcall settle (equal answer "Save") unsaved)))
      (funcall settle (eq efrit-edit-unsaved-buffers 'save) unsaved))))

(defun efrit-plan--ask (call question options then)
  "Ask the person QUESTION with OPTIONS for CALL, and call THEN with the answer."
  (let ((loop (efrit-tool-call-owner call)))
    (efrit-loop-notify
     loop 'question
     (efrit-tool-call-create
      :owner loop :id (efrit-tool-call-id call) :name (efrit-tool-call-name call)
      :finish (lambda (result) (funcall then (plist-get result :text))))
     question options)))

(defun efrit-plan--begin (call)
  "Have the sidecar keep how the files of CALL are, then go on."
  (let* ((loop (efrit-tool-call-owner call))
         (changes (efrit-plan-changes (efrit-tool-call-plan call))))
    (efrit-loop-call-again
     loop 'changes/begin
     (list :tool_use_id (efrit-tool-call-id call) :tool (efrit-tool-call-name call)
           :files (vconcat (mapcar #'efrit-plan--begin-params changes)))
     (lambda (begun)
       (cl-loop for change in changes
                for kept across (plist-get begun :changes)
                do (setf (efrit-change-number change) (plist-get kept :number)))
       (efrit-plan--apply call))
     (lambda (err)
       (efrit-plan--end-with call (efrit-tool-result (efrit-error-text err) :status 'error))))))

(defun efrit-plan--begin-params (change)
  "Return what the sidecar is told of CHANGE before it is made."
  (append (list :path (efrit-change-path change)
                :kind (symbol-name (efrit-change-kind change)))
          (and (efrit-change-to change) (list :to (efrit-change-to change)))
          (and (efrit-change-unsaved change)
               (list :buffer_text (efrit-json-replace-invalid (efrit-change-before change))))))

(defun efrit-plan--apply (call)
  "Do what the plan of CALL has, all of it or nothing, and tell the sidecar."
  (let* ((changes (efrit-plan-changes (efrit-tool-call-plan call)))
         (made nil)
         (problem (condition-case err
                      (dolist (change changes)
                        (efrit-change-apply change)
                        (push change made))
                    (quit "The person stopped it (quit).")
                    (efrit-change-refused (cadr err))
                    (error (error-message-string err))))
         (left (and problem (efrit-plan--put-back made))))
    (efrit-plan--tell-end
     call (if (and problem (null left)) "abandoned" "done")
     (if problem
         (efrit-tool-result
          (concat (format "Nothing was changed: %s" problem)
                  (and left (format ".  But these could not be put back: %s"
                                    (string-join left ", "))))
          :status 'error)
       (efrit-plan--result call)))))

(defun efrit-plan--put-back (made)
  "Put back what was MADE, the latest first; return what could not be."
  (delq nil
        (mapcar (lambda (change)
                  (condition-case err
                      (ignore (efrit-change-revert change))
                    ((error quit) (format "%s (%s)" (efrit-change-path change)
                                          (error-message-string err)))))
                made)))

(defun efrit-plan--tell-end (call outcome result)
  "Tell the sidecar of OUTCOME of CALL's plan, then finish with RESULT."
  (let ((changes (efrit-plan-changes (efrit-tool-call-plan call))))
    (efrit-loop-call-again
     (efrit-tool-call-owner call) 'changes/end
     (list :tool_use_id (efrit-tool-call-id call) :outcome outcome
           :files (vconcat (mapcar #'efrit-plan--end-params changes)))
     (lambda (_) (efrit-plan--end-with call result))
     (lambda (err)
       (efrit-plan--end-with
        call (efrit-tool-result (concat (plist-get result :text) "\n"
                                        (efrit-tool-mark-own "It cannot be undone: ")
                                        (efrit-error-text err))
                                :status (intern (plist-get result :status))))))))

(defun efrit-plan--end-params (change)
  "Return what the sidecar is told of CHANGE once it is made, or was given up."
  (let ((buffer (efrit-change-buffer change)))
    (append (list :number (efrit-change-number change))
            (and (buffer-live-p buffer) (buffer-modified-p buffer)
                 (list :buffer_text (efrit-json-replace-invalid (efrit-file-text buffer)))))))

(defun efrit-plan--end-with (call result)
  "Finish CALL with RESULT."
  (let ((plan (efrit-tool-call-plan call)))
    (dolist (change (efrit-plan-changes plan))
      (dolist (file (delq nil (list (efrit-change-file change) (efrit-change-to-file change))))
        (efrit-read-files-note (efrit-tool-call-owner call) file)))
    (unless efrit-change-keep-buffers
      (efrit-plan-drop plan))
    (efrit-tool-finish call result)))

(defun efrit-plan--result (call)
  "Return what the model is told of the plan of CALL, which was made."
  (let ((plan (efrit-tool-call-plan call)))
    (efrit-tool-result
     (string-join
      (append (list (efrit-tool-mark-own (efrit-plan-said plan)))
              (delq nil (mapcar #'efrit-plan--unsaved-note (efrit-plan-changes plan)))
              (delq nil (mapcar #'efrit-plan--hooks-note (efrit-plan-changes plan)))
              (and (efrit-plan-revised plan)
                   (list (concat (efrit-tool-mark-own
                                  "The person changed the new text before it was written:\n")
                                 (efrit-plan-revised plan)))))
      "\n")
     :summary (truncate-string-to-width (efrit-plan-said plan) 450 nil nil t))))

(defun efrit-plan--unsaved-note (change)
  "Return a line about CHANGE where it is in a buffer that is not saved, or nil."
  (and (eq (efrit-change-kind change) 'edit)
       (not (efrit-change-save change))
       (efrit-tool-mark-own
        (format "%s has unsaved changes of the person's in its buffer: the edit is there, \
and not on disk; commands do not see it." (efrit-change-path change)))))

(defun efrit-plan--hooks-note (change)
  "Return what else was changed when CHANGE was saved, or nil."
  (let ((buffer (efrit-change-buffer change)))
    (when (and (memq (efrit-change-kind change) '(edit create)) (buffer-live-p buffer))
      (let ((diff (efrit-diff (efrit-change-after change) (efrit-file-text buffer)
                              (efrit-change-path change))))
        (unless (string-empty-p diff)
          (concat (efrit-tool-mark-own "The hooks that run when it is saved changed more:\n")
                  diff))))))

;;; Tools

;; Each tool here makes a plan of its arguments, which efrit-plan.el shows
;; the person and carries out.

(defconst efrit-edit--most-places 20
  "Most places that are named if a text occurs more than once.")

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

;;;; Plans

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
        (mapc #'efrit-change-release changes)))
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
         (old (efrit-edit--old-text edit text))
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

(defun efrit-edit--old-text (edit text)
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
    (efrit-edit--check-exists path files)
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
    (efrit-edit--check-exists path files)
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

;;;; Checks

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

(defun efrit-edit--check-exists (path files)
  "Refuse PATH where FILES knows that there is no such file."
  (unless (eq (plist-get (efrit-plan-file path files) :exists) t)
    (efrit-plan-refuse "there is no file %s" path)))

(defun efrit-edit--count-lines (text)
  "Return how many lines TEXT has."
  (+ (cl-count ?\n text)
     (if (or (string-empty-p text) (string-suffix-p "\n" text)) 0 1)))

(provide 'efrit-edit)
;;; efrit-edit.el ends here
