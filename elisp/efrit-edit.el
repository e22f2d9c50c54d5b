;;; efrit-edit.el --- Edit files with a plan  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The tools that change files.  Each makes a plan, which the person sees as a
;; diff; once allowed, the plan is carried out.

;;; Code:

(require 'efrit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-tools)

;;; Finding a text

;; Finds an old text in a file's text.  If it does not occur, finds the most
;; similar lines: by lines equal except for blanks, else by edit distance.

(defconst efrit-match--most-work 20000000
  "Most pairs of characters compared in the search for similar lines.")

(defconst efrit-match--most-lines 12
  "Most similar lines that are shown.")

(defconst efrit-match--most-width 200
  "Most characters of a line that are shown and compared.")

(defun efrit-match-all (old text)
  "Return the offsets of OLD in TEXT, ascending, without overlaps."
  (unless (string-empty-p old)
    (cl-loop for start = (string-search old text)
             then (string-search old text (+ start (length old)))
             while start collect start)))

(defun efrit-match-closest (old text)
  "Return the lines of TEXT most like OLD, with line numbers, or nil for none."
  (when-let* ((lines (split-string text "\n"))
              (wanted (split-string (efrit-trim-right old "\n") "\n"))
              (start (or (efrit-match--by-lines wanted lines)
                         (efrit-match--by-letters wanted lines))))
    (efrit-match--number-lines lines start
                               (min (length wanted) efrit-match--most-lines))))

(defun efrit-match--ignore-blanks (line)
  "Return LINE without blanks."
  (replace-regexp-in-string "[ \t\r\f]+" "" line t t))

(defun efrit-match--by-lines (wanted lines)
  "Return the index in LINES where most WANTED lines match, or nil; ignore blanks."
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
  "Return the index in LINES where WANTED would begin, or nil.
Align the longest line of WANTED with the line most like it."
  (let* ((longest (seq-reduce (lambda (a b) (if (> (length b) (length a)) b a)) wanted ""))
         (index (seq-position wanted longest))
         (line (efrit-match--closest-line (efrit-match--part longest) lines)))
    (and line (max 0 (- line index)))))

(defun efrit-match--closest-line (wanted lines)
  "Return the index of the line in LINES with the least distance to WANTED.
Return nil if each distance is more than half the length of WANTED."
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
  "Return LINE trimmed and cut to `efrit-match--most-width', to be compared."
  (let ((line (efrit-trim line)))
    (substring line 0 (min (length line) efrit-match--most-width))))

(defun efrit-match--number-lines (lines start count)
  "Return COUNT of LINES from the index START on, with their numbers."
  (string-join
   (cl-loop for line in (seq-take (nthcdr start lines) count)
            for number from (1+ start)
            collect (format "%d: %s" number
                            (truncate-string-to-width line efrit-match--most-width nil nil "…")))
   "\n"))

;;; Files that the model has read

;; A file that changed after the model read it, on disk or in its buffer, must
;; be read again before it is edited.  The model's own edits do not count as
;; changes.  In a resumed session, files that changed after the session last
;; worked must be read again.

(defun efrit-read-files-record (loop tool arguments)
  "If TOOL is `read_file', record in LOOP that the file in ARGUMENTS was read."
  (when (equal tool "read_file")
    (let ((path (plist-get (ignore-errors (efrit-json-plist arguments)) :path)))
      (when (stringp path)
        (efrit-read-files-note loop (efrit-read-files--file loop path))))))

(defun efrit-read-files-note (loop file)
  "Record in LOOP that the model knows the current text of FILE, a whole name.
If the stamp of FILE cannot be read, the model must read FILE again."
  (puthash file (condition-case nil (efrit-file-stamp file) (error 'unknown))
           (efrit-loop-read-stamps loop)))

(defun efrit-read-files-problem (loop change)
  "Return why the model in LOOP must read the file of CHANGE again, or nil."
  (let* ((file (efrit-change-file change))
         (stamp (efrit-change-stamp change))
         (known (gethash file (efrit-loop-read-stamps loop))))
    (cond
     ((memq (efrit-change-kind change) '(create rename)) nil)
     (known
      (unless (equal known stamp)
        (format "%s has changed since you read it; read it again" (efrit-change-path change))))
     ((efrit-read-files--changed-p loop file)
      (format "%s has changed since this session last worked; read it again"
              (efrit-change-path change))))))

(defun efrit-read-files--file (loop path)
  "Return the whole file name of PATH in the project of LOOP.
Do not follow links on another machine, since that is slow."
  (let ((file (expand-file-name path (efrit-loop-root loop))))
    (if (file-remote-p file) file (file-truename file))))

(defun efrit-read-files--changed-p (loop file)
  "Return non-nil if FILE changed after `efrit-loop-last-worked' of LOOP."
  (let ((since (efrit-loop-last-worked loop))
        (attributes (file-attributes file)))
    (and since attributes
         (time-less-p (seconds-to-time since)
                      (file-attribute-modification-time attributes)))))

;;; Plans

;; A tool that changes files first makes a plan, which the person sees as a
;; diff.  Then all of its changes are made, or none.  The sidecar stores the
;; files before and after, so that another Emacs can undo the changes, too.

(cl-defstruct (efrit-plan (:constructor efrit-plan-create) (:copier nil))
  "The changes that a tool call would make.
CHANGES is a list of `efrit-change', in order.  REPORT is the text for the
model once the changes are made.  SECRET is non-nil if one of the files usually
holds secrets.  REVISED is the diff of the person's edits of the new texts, or
nil.  DIFF caches the diff of all changes, or is nil.  UNDOES lists the numbers
of earlier changes that the plan undoes.  QUESTION is the question to the
person, or nil to make it from CHANGES.  FILES lists the files to change: whole
real names, or paths in the project."
  changes report secret revised diff undoes question files)

;;;; Planning

(defun efrit-plan-refuse (format &rest arguments)
  "Signal `efrit-plan-refused'; FORMAT and ARGUMENTS give the model the reason."
  (signal 'efrit-plan-refused (list (apply #'format format arguments))))

(defun efrit-plan-make (loop tool arguments then refused)
  "Make the plan of a call of TOOL in LOOP with ARGUMENTS, a JSON text.
Call THEN with the plan, or REFUSED with the reason, a string."
  (funcall (efrit-tool-plan tool) loop (efrit-json-plist arguments) then refused))

(defun efrit-plan-of-files (planner)
  "Return a function for a tool's `:plan', to make the plan by PLANNER.
First it has the sidecar check the paths in the tool's arguments.  PLANNER is
called with the arguments and FILES, an alist from each path to the sidecar's
report on it, a plist; it returns a plan, or calls `efrit-plan-refuse'."
  (lambda (loop given then refused)
    (efrit-plan--with-files
     loop (seq-uniq (efrit-permissions-paths given))
     (lambda (files)
       (efrit-plan--run-planner planner loop given files then refused))
     refused)))

(defun efrit-plan-file (path files)
  "Return the report on PATH in the alist FILES; refuse a PATH with a problem."
  (let ((file (or (cdr (assoc path files))
                  (efrit-plan-refuse "path is missing"))))
    (when-let* ((problem (plist-get file :problem)))
      (efrit-plan-refuse "%s: %s" path problem))
    file))

(defun efrit-plan-change (kind path files &rest more)
  "Return a change of KIND for PATH, a key of FILES, with the slots MORE.
Visit the file if it exists."
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
  "Kill the buffers that were opened for PLAN, unless shown or modified."
  (mapc #'efrit-change-release (efrit-plan-changes plan)))

(defun efrit-plan-text (plan)
  "Return the diff of the whole PLAN, and cache it."
  (or (efrit-plan-diff plan)
      (setf (efrit-plan-diff plan)
            (mapconcat #'efrit-plan--change-diff (efrit-plan-changes plan) ""))))

(defun efrit-plan-prompt (plan)
  "Return the question to the person about PLAN, one line."
  (concat (or (efrit-plan-question plan)
              (string-join (efrit-plan-change-lines plan) ", "))
          "?"))

(defun efrit-plan-change-lines (plan)
  "Return a line about each change of PLAN, such as \"Edit a.el +2 −0\"."
  (mapcar #'efrit-plan--change-line (efrit-plan-changes plan)))

(defun efrit-plan-gist (plan)
  "Return the numbers of lines added and removed by PLAN, such as \"+2 −0\".
Say so if the person changed the new text; return \"\" for a rename."
  (pcase-let ((`(,added . ,removed) (efrit-diff-counts (efrit-plan-text plan)))
              (names-only (seq-every-p (lambda (change) (eq (efrit-change-kind change) 'rename))
                                       (efrit-plan-changes plan))))
    (concat (if (and names-only (efrit-plan-changes plan)) ""
              (format "+%d −%d" added removed))
            (if (efrit-plan-revised plan) ", as you changed it" ""))))

(defun efrit-plan-revisable (plan)
  "Return each change of PLAN whose new text the person may edit."
  (seq-filter (lambda (change) (memq (efrit-change-kind change) '(edit create)))
              (efrit-plan-changes plan)))

(defun efrit-plan-revise (plan change text)
  "Replace the new text of CHANGE of PLAN with TEXT, written by the person."
  (unless (equal text (efrit-change-after change))
    (setf (efrit-plan-revised plan)
          (concat (efrit-plan-revised plan)
                  (efrit-diff (efrit-change-after change) text (efrit-change-path change)))
          (efrit-change-after change) text
          (efrit-plan-diff plan) nil)))

;;;; Carrying out

(defun efrit-plan-carry-out (call)
  "Make every change of the plan of CALL, and finish CALL.
First decide, or ask, whether to save buffers that had unsaved changes."
  (let* ((unsaved (seq-filter #'efrit-change-unsaved
                              (efrit-plan-changes (efrit-tool-call-plan call))))
         (begin (lambda (save)
                  (dolist (change unsaved)
                    (setf (efrit-change-save change) save))
                  (efrit-plan--begin call))))
    (if (and unsaved (eq efrit-edit-unsaved-buffers 'ask))
        (efrit-plan--ask
         call (format "%s had unsaved changes of yours.  Save with the edit?"
                      (mapconcat #'efrit-change-path unsaved ", "))
         '("Save" "Leave it unsaved")
         (lambda (answer) (funcall begin (equal answer "Save"))))
      (funcall begin (eq efrit-edit-unsaved-buffers 'save)))))

(defun efrit-plan--with-files (loop paths then refused)
  "Have the sidecar check PATHS in LOOP; call THEN with its reports, or REFUSED.
The reports are an alist from paths to plists with the `:file' name in Emacs."
  (efrit-loop-call
   loop 'changes/check (list :paths (vconcat paths))
   (lambda (checked)
     (funcall then
              (cl-loop for path in paths
                       for file across (plist-get checked :files)
                       for name = (efrit-file-local-to-emacs (efrit-loop-root loop)
                                                             (or (plist-get file :file) ""))
                       collect (cons path (plist-put file :file name)))))
   (lambda (err) (funcall refused (efrit-error-text err)))))

(defun efrit-plan--run-planner (planner loop given files then refused)
  "Call PLANNER with GIVEN, a tool's arguments in LOOP, and FILES, the reports.
Call THEN with the plan, or REFUSED with the reason."
  (let* ((plan nil)
         (problem (condition-case err
                      (seq-some (lambda (change) (efrit-read-files-problem loop change))
                                (efrit-plan-changes
                                 (setq plan (funcall planner given files))))
                    (efrit-plan-refused (cadr err))
                    (error (error-message-string err)))))
    (cond
     ((null problem)
      (setf (efrit-plan-secret plan)
            (seq-some (lambda (file) (eq (plist-get (cdr file) :secret) t)) files)
            (efrit-plan-files plan)
            (mapcar (lambda (file) (plist-get (cdr file) :file)) files))
      (funcall then plan))
     (t (when plan
          (efrit-plan-drop plan))
        (funcall refused problem)))))

(defun efrit-plan--change-line (change)
  "Return CHANGE as a line, with the numbers of lines added and removed."
  (let ((counts (efrit-diff-counts (efrit-plan--change-diff change))))
    (format "%s %s%s +%d −%d" (capitalize (symbol-name (efrit-change-kind change)))
            (efrit-change-path change)
            (if (efrit-change-to change) (concat " to " (efrit-change-to change)) "")
            (car counts) (cdr counts))))

(defun efrit-plan--change-diff (change)
  "Return the diff of CHANGE."
  (if (eq (efrit-change-kind change) 'rename)
      (format "rename from %s\nrename to %s\n" (efrit-change-path change)
              (efrit-change-to change))
    (efrit-diff (efrit-change-before change) (efrit-change-after change)
                (efrit-change-path change))))

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
  "Have the sidecar store the files of CALL, then apply the plan."
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
       (efrit-plan--finish call (efrit-tool-error (efrit-error-text err)))))))

(defun efrit-plan--begin-params (change)
  "Return the entry for CHANGE, a plist, in the request that begins the plan."
  (append (list :path (efrit-change-path change)
                :kind (symbol-name (efrit-change-kind change)))
          (and (efrit-change-to change) (list :to (efrit-change-to change)))
          (and (efrit-change-unsaved change)
               (list :buffer_text (efrit-json-replace-invalid (efrit-change-before change))))))

(defun efrit-plan--apply (call)
  "Make every change of the plan of CALL, or none, and report to the sidecar."
  (let* ((changes (efrit-plan-changes (efrit-tool-call-plan call)))
         (made nil)
         (problem (condition-case err
                      (dolist (change changes)
                        (efrit-change-apply change)
                        (push change made))
                    (quit "The person stopped it (quit).")
                    (efrit-change-refused (cadr err))
                    (error (error-message-string err))))
         (left (and problem (efrit-plan--revert made))))
    (efrit-plan--report-end
     call (if (and problem (null left)) "abandoned" "done")
     (if problem
         (efrit-tool-error
          (concat (format "Nothing was changed: %s" problem)
                  (and left (format ".  But these could not be put back: %s"
                                    (string-join left ", ")))))
       (efrit-plan--result call)))))

(defun efrit-plan--revert (made)
  "Revert each change of MADE, latest first; return those that failed, as text."
  (delq nil
        (mapcar (lambda (change)
                  (condition-case err
                      (ignore (efrit-change-revert change))
                    ((error quit) (format "%s (%s)" (efrit-change-path change)
                                          (error-message-string err)))))
                made)))

(defun efrit-plan--report-end (call outcome result)
  "Report OUTCOME, \"done\" or \"abandoned\", to the sidecar; finish CALL with RESULT."
  (let ((changes (efrit-plan-changes (efrit-tool-call-plan call))))
    (efrit-loop-call-again
     (efrit-tool-call-owner call) 'changes/end
     (list :tool_use_id (efrit-tool-call-id call) :outcome outcome
           :files (vconcat (mapcar #'efrit-plan--end-params changes)))
     (lambda (_) (efrit-plan--finish call result))
     (lambda (err)
       (efrit-plan--finish
        call (efrit-tool-result (concat (plist-get result :text) "\n"
                                        (efrit-tool-mark-own "It cannot be undone: ")
                                        (efrit-error-text err))
                                :status (intern (plist-get result :status))))))))

(defun efrit-plan--end-params (change)
  "Return the entry for CHANGE, a plist, in the request that ends the plan."
  (let ((buffer (efrit-change-buffer change)))
    (append (list :number (efrit-change-number change))
            (and (buffer-live-p buffer) (buffer-modified-p buffer)
                 (list :buffer_text (efrit-json-replace-invalid (efrit-file-text buffer)))))))

(defun efrit-plan--finish (call result)
  "Record that the model has read the files of CALL; finish CALL with RESULT."
  (let ((plan (efrit-tool-call-plan call)))
    (dolist (change (efrit-plan-changes plan))
      (dolist (file (delq nil (list (efrit-change-file change) (efrit-change-to-file change))))
        (efrit-read-files-note (efrit-tool-call-owner call) file)))
    (unless efrit-change-keep-buffers
      (efrit-plan-drop plan))
    (efrit-tool-finish call result)))

(defun efrit-plan--result (call)
  "Return the result of CALL, whose plan was carried out."
  (let ((plan (efrit-tool-call-plan call)))
    (efrit-tool-result
     (string-join
      (append (list (efrit-tool-mark-own (efrit-plan-report plan)))
              (delq nil (mapcar #'efrit-plan--unsaved-note (efrit-plan-changes plan)))
              (delq nil (mapcar #'efrit-plan--hooks-note (efrit-plan-changes plan)))
              (and (efrit-plan-revised plan)
                   (list (concat (efrit-tool-mark-own
                                  "The person changed the new text before it was written:\n")
                                 (efrit-plan-revised plan)))))
      "\n")
     :summary (efrit-plan-report plan)
     :gist (efrit-plan-gist plan))))

(defun efrit-plan--unsaved-note (change)
  "Return a note if CHANGE is an edit that was left unsaved, or nil."
  (and (eq (efrit-change-kind change) 'edit)
       (not (efrit-change-save change))
       (efrit-tool-mark-own
        (format "%s has unsaved changes of the person: the edit is in its buffer only, \
not on disk, where commands would see it." (efrit-change-path change)))))

(defun efrit-plan--hooks-note (change)
  "Return a note with what hooks changed when CHANGE was saved, or nil."
  (when-let* (((memq (efrit-change-kind change) '(edit create)))
              (text (efrit-with-live-buffer (efrit-change-buffer change)
                      (efrit-file-text (current-buffer))))
              (diff (efrit-diff (efrit-change-after change) text (efrit-change-path change)))
              ((not (string-empty-p diff))))
    (concat (efrit-tool-mark-own "Hooks that ran on saving also changed:\n") diff)))

;;; Tools

(defconst efrit-edit--most-places 20
  "Most line numbers listed for a text that occurs more than once.")

(efrit-define-tool edit_file
    ((path "string" "")
     (old_text "string" "Exact, without line numbers; must occur once")
     (new_text "string" "")
     (replace_all "boolean" "" :optional t))
  "Replace text in a file, through its buffer in Emacs."
  :plan (efrit-plan-of-files (lambda (arguments files)
                               (efrit-edit--plan-edits (list arguments) files)))
  (efrit-plan-carry-out call))

(efrit-define-tool multi_edit
    ((edits (:type "array"
                   :items (:type "object"
                                 :properties (:path (:type "string")
                                              :old_text (:type "string")
                                              :new_text (:type "string")
                                              :replace_all (:type "boolean"))
                                 :required ["path" "old_text" "new_text"]))
            "Later edits see the earlier ones"))
  "Several edits, in one file or more: all are made, or none."
  :plan (efrit-plan-of-files (lambda (arguments files)
                               (efrit-edit--plan-edits
                                (append (plist-get arguments :edits) nil) files)))
  (efrit-plan-carry-out call))

(efrit-define-tool create_file
    ((path "string" "Missing folders are created")
     (content "string" "")
     (overwrite "boolean" "" :optional t))
  "Create a file."
  :plan (efrit-plan-of-files #'efrit-edit--plan-create)
  (efrit-plan-carry-out call))

(efrit-define-tool rename_file
    ((path "string" "")
     (to "string" ""))
  "Rename or move a file. Git's index is not touched."
  :plan (efrit-plan-of-files #'efrit-edit--plan-rename)
  (efrit-plan-carry-out call))

(efrit-define-tool delete_file
    ((path "string" ""))
  "Delete a file; undo_edit brings it back."
  :plan (efrit-plan-of-files #'efrit-edit--plan-delete)
  (efrit-plan-carry-out call))

;;;; Plans

(defun efrit-edit--plan-edits (edits files)
  "Return the plan of EDITS, plists; see `efrit-plan-of-files' for FILES."
  (let ((changes nil)
        (reports nil))
    (unless edits
      (efrit-plan-refuse "edits is empty"))
    (efrit-on-failure (mapc #'efrit-change-release changes)
      (cl-loop for edit in edits
               for number from 1
               for prefix = (if (cdr edits) (format "edit %d: " number) "")
               for change = (efrit-edit--change edit files prefix changes)
               do (cl-pushnew change changes)
               (push (efrit-edit--apply change edit prefix) reports)))
    (efrit-plan-create :changes (nreverse changes)
                       :report (string-join (nreverse reports) "\n"))))

(defun efrit-edit--change (edit files prefix others)
  "Return the change of the file of EDIT: one of OTHERS, or a new change.
FILES is as in `efrit-plan-of-files'; PREFIX begins the text of a refusal."
  (efrit-edit--check-strings edit '(:path :old_text :new_text) prefix)
  (let* ((path (plist-get edit :path))
         (file (efrit-plan-file path files)))
    (unless (eq (plist-get file :exists) t)
      (efrit-plan-refuse "%sthere is no file %s; create_file makes one" prefix path))
    (or (seq-find (lambda (change)
                    (equal (efrit-change-file change) (plist-get file :file)))
                  others)
        (let ((change (efrit-plan-change 'edit path files)))
          (setf (efrit-change-after change) (efrit-change-before change))
          change))))

(defun efrit-edit--apply (change edit prefix)
  "Apply EDIT to the new text of CHANGE, and return a report for the model.
PREFIX begins the text of a refusal."
  (let* ((text (efrit-change-after change))
         (path (efrit-change-path change))
         (old (efrit-edit--old-text edit text))
         (new (plist-get edit :new_text))
         (places (efrit-match-all old text)))
    (cond
     ((string-empty-p old)
      (efrit-plan-refuse "%sold_text is empty; give a text from %s" prefix path))
     ((string= old new)
      (efrit-plan-refuse "%sold_text and new_text are the same" prefix))
     ((null places) (efrit-edit--refuse-unfound old text path prefix))
     ((and (cdr places) (not (eq (plist-get edit :replace_all) t)))
      (efrit-plan-refuse
       "%sold_text occurs in %s %d times, at lines %s; add lines around it, \
or set replace_all" prefix path (length places) (efrit-edit--lines text places))))
    (setf (efrit-change-after change) (string-replace old new text))
    (format "Edited %s: %s" path
            (if (cdr places)
                (format "%d places, at lines %s" (length places)
                        (efrit-edit--lines text places))
              (format "line %s" (efrit-edit--lines text places))))))

(defun efrit-edit--old-text (edit text)
  "Return the old text of EDIT as it may occur in TEXT.
Ignore carriage returns at line ends if TEXT has none."
  (let ((old (plist-get edit :old_text)))
    (if (and (string-search "\r\n" old) (not (string-search "\r\n" text)))
        (string-replace "\r\n" "\n" old)
      old)))

(defun efrit-edit--refuse-unfound (old text path prefix)
  "Refuse to replace OLD, which does not occur in TEXT, the text of PATH.
PREFIX begins the text of the refusal."
  (let ((closest (efrit-match-closest old text)))
    (efrit-plan-refuse
     "%sold_text is not in %s.%s%s" prefix path
     (if closest (concat " The most similar lines are:\n" closest) "")
     (if (and (string-search "\r\n" text) (string-search "\n" old))
         "\nSome lines of that file end in \\r\\n, so \\r counts." ""))))

(defun efrit-edit--lines (text places)
  "Return the line numbers of PLACES, offsets in TEXT, as text."
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
  "Return the plan of `create_file' with ARGUMENTS; FILES has reports on paths."
  (let* ((path (plist-get arguments :path))
         (content (plist-get arguments :content))
         (file (efrit-plan-file path files))
         (exists (eq (plist-get file :exists) t)))
    (cond ((not exists) (efrit-edit--check-no-unsaved path file))
          ((not (eq (plist-get arguments :overwrite) t))
           (efrit-plan-refuse "%s already exists; use edit_file, or set overwrite" path)))
    (efrit-plan-create
     :changes (list (efrit-plan-change (if exists 'edit 'create) path files :after content))
     :report (format (if exists "Replaced the text of %s: %s." "Created %s: %s.") path
                     (efrit-count-text (length (efrit-diff-lines content)) "line")))))

(defun efrit-edit--plan-rename (arguments files)
  "Return the plan of `rename_file' with ARGUMENTS; FILES has reports on paths."
  (let* ((path (plist-get arguments :path))
         (to (plist-get arguments :to))
         (target (efrit-plan-file to files))
         (file (efrit-edit-existing path files)))
    (when (eq (plist-get target :exists) t)
      (efrit-plan-refuse "%s already exists; delete it first, or choose another name" to))
    (efrit-edit--check-no-unsaved to target)
    (efrit-plan-create
     :changes (list (efrit-change-create
                     :kind 'rename :path (plist-get file :path) :file (plist-get file :file)
                     :stamp (efrit-file-stamp (plist-get file :file))
                     :to (plist-get target :path) :to-file (plist-get target :file)))
     :report (format "Renamed %s to %s." path to))))

(defun efrit-edit--plan-delete (arguments files)
  "Return the plan of `delete_file' with ARGUMENTS; FILES has reports on paths."
  (let* ((path (plist-get arguments :path))
         (file (efrit-edit-existing path files)))
    (efrit-plan-create :changes (list (efrit-edit--deletion path (plist-get file :file) files))
                       :report (format "Deleted %s%s." path
                                       (if delete-by-moving-to-trash
                                           " (it is in the trash)" "")))))

(defun efrit-edit--deletion (path file files)
  "Return the change that deletes PATH, a key of FILES, whose file name is FILE.
A file that is not text, or too large to be shown, is deleted without a diff."
  (when-let* ((buffer (efrit-file-buffer file))
              ((buffer-modified-p buffer)))
    (efrit-plan-refuse "%s has unsaved changes of the person; ask before deleting it" path))
  (condition-case nil
      (efrit-plan-change 'delete path files)
    (efrit-plan-refused
     (efrit-change-create :kind 'delete :path path :file file
                          :stamp (efrit-file-stamp file)))))

;;;; Checks

(defun efrit-edit--check-strings (edit names prefix)
  "Refuse EDIT, a plist, unless the values of NAMES in it are strings.
PREFIX begins the text of the refusal."
  (dolist (name names)
    (unless (stringp (plist-get edit name))
      (efrit-plan-refuse "%s%s must be a string" prefix (substring (symbol-name name) 1)))))

(defun efrit-edit--check-no-unsaved (path file)
  "Refuse to create PATH if a buffer for it has unsaved text.
FILE is the report on PATH, see `efrit-plan-of-files'."
  (when-let* ((buffer (efrit-file-buffer (plist-get file :file)))
              ((buffer-modified-p buffer)))
    (efrit-plan-refuse "%s has a buffer with unsaved text of the person; ask first" path)))

(defun efrit-edit-existing (path files)
  "Return the report on PATH in FILES; refuse a PATH that does not exist."
  (let ((file (efrit-plan-file path files)))
    (unless (eq (plist-get file :exists) t)
      (efrit-plan-refuse "there is no file %s" path))
    file))

(provide 'efrit-edit)
;;; efrit-edit.el ends here
