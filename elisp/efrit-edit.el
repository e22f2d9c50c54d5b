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

(defun efrit-match-ignoring-indentation (old text)
  "Return the lines of TEXT that are OLD but for their indentation, or nil.
Return nil also if they occur more than once, or are many."
  (let* ((wanted (split-string (efrit-trim-right old "\n") "\n"))
         (count (length wanted))
         (bare (lambda (line) (string-trim line "[ \t]+" "[ \t\r]+")))
         (wanted-bare (mapcar bare wanted))
         (lines (vconcat (split-string text "\n")))
         (lines-bare (vconcat (mapcar bare lines)))
         (places (and (<= count efrit-match--most-lines)
                      (cl-loop for start from 0 to (- (length lines) count)
                               when (cl-loop for line in wanted-bare
                                             for index from start
                                             always (string= line (aref lines-bare index)))
                               collect start))))
    (when (and places (null (cdr places)) (not (string-blank-p old)))
      (string-join (seq-subseq lines (car places) (+ (car places) count)) "\n"))))

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
;; worked must be read again.  The stamps come from the sidecar, with what it
;; reads and writes.

(defun efrit-read-files-record (loop tool arguments envelope)
  "If TOOL is `read_file', record in LOOP that the file in ARGUMENTS was read.
ENVELOPE is the sidecar's reply; it names a file that was read on disk."
  (when (equal tool "read_file")
    (let ((source (plist-get envelope :source))
          (path (plist-get (ignore-errors (efrit-json-plist arguments)) :path)))
      (cond (source (efrit-read-files-note loop (plist-get source :path)
                                           (plist-get source :stamp)))
            ((stringp path) (efrit-read-files-note loop path nil))))))

(defun efrit-read-files-note (loop path stamp)
  "Record in LOOP that the model knows the current text of PATH.
STAMP is that of its file.  If its buffer is modified, that counts instead; if
there is neither, nothing is known of PATH."
  (if-let* ((state (or (efrit-read-files--unsaved loop path) stamp)))
      (puthash path state (efrit-loop-read-stamps loop))
    (remhash path (efrit-loop-read-stamps loop))))

(defun efrit-read-files-problem (loop change)
  "Return why the model in LOOP must read the file of CHANGE again, or nil."
  (let* ((path (efrit-change-path change))
         (report (efrit-change-report change))
         (known (gethash path (efrit-loop-read-stamps loop)))
         (since (efrit-loop-last-worked loop)))
    (cond
     ((memq (efrit-change-kind change) '(create rename)) nil)
     (known
      (unless (equal known (or (efrit-read-files--unsaved loop path)
                               (plist-get report :stamp)))
        (format "%s has changed since you read it; read it again" path)))
     ((and since (time-less-p (seconds-to-time since) (efrit-file-reported-time report)))
      (format "%s has changed since this session last worked; read it again" path)))))

(defun efrit-read-files--unsaved (loop path)
  "Return the state of the buffer that visits PATH of LOOP, if it is modified."
  (when-let* ((buffer (efrit-file-buffer (expand-file-name path (efrit-loop-root loop))))
              ((buffer-modified-p buffer)))
    (list 'buffer (buffer-chars-modified-tick buffer))))

;;; Plans

;; A tool that changes files first makes a plan, which the person sees as a
;; diff.  Then all of its changes are made, or none: in the buffers that visit
;; the files, and by the sidecar on disk.  It stores the files before and after,
;; so that another Emacs can undo the changes, too.

(defconst efrit-plan--most-calls 3
  "Most calls of a method that is called again when the sidecar dies.")

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

(defun efrit-plan-of-files (planner &optional names-only)
  "Return a function for a tool's `:plan', to make the plan by PLANNER.
First it has the sidecar report on the files in the tool's arguments.  PLANNER
is called with the arguments and FILES, an alist from each path to the report,
as from `efrit-file-ask-reports'; it returns a plan, or calls
`efrit-plan-refuse'.  NAMES-ONLY is as in `efrit-file-ask-reports'."
  (lambda (loop given then refused)
    (efrit-plan-for-files loop (seq-uniq (efrit-permissions-paths given))
                          (lambda (files) (funcall planner given files))
                          then refused names-only)))

(defun efrit-plan-for-files (loop paths planner then refused &optional names-only)
  "Have PLANNER plan edits of PATHS for a tool call in LOOP.
PLANNER is called with the reports on PATHS; it returns a plan, or calls
`efrit-plan-refuse'.  Call THEN with the plan, or REFUSED with the reason.
NAMES-ONLY is as in `efrit-file-ask-reports'."
  (efrit-file-ask-reports
   #'efrit-loop-call-again loop paths
   (lambda (files) (efrit-plan--run-planner planner loop files then refused))
   (lambda (err) (funcall refused (efrit-error-text err)))
   names-only))

(defun efrit-plan-file (path files)
  "Return the report on PATH in the alist FILES; refuse a PATH with a problem."
  (let ((file (or (cdr (assoc path files))
                  (efrit-plan-refuse "path is missing"))))
    (when-let* ((problem (plist-get file :problem)))
      (efrit-plan-refuse "%s: %s" path problem))
    file))

(defun efrit-plan-change (kind path files &rest more)
  "Return a change of KIND for PATH, a key of FILES, with the slots MORE.
Load the text of the file if it exists."
  (let* ((report (efrit-plan-file path files))
         (change (apply #'efrit-change-create :kind kind :path (plist-get report :path)
                        :file (plist-get report :file) :report report more)))
    (when (eq (plist-get report :exists) t)
      (condition-case err
          (efrit-change-load change)
        (efrit-change-refused (efrit-plan-refuse "%s" (cadr err)))
        (error (efrit-plan-refuse "%s: %s" path (error-message-string err)))))
    change))

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

(defvar efrit-plan-finish-functions nil
  "Abnormal hook run when the plan of a tool call is carried out.
Its functions are called with the call and its result.  One that returns non-nil
finishes the call itself, later, with a longer result.")

(defun efrit-plan-carry-out (call)
  "Make every change of the plan of CALL, and finish CALL.
First decide, or ask, whether to save buffers that had unsaved changes."
  (let* ((unsaved (seq-filter #'efrit-change-unsaved
                              (efrit-plan-changes (efrit-tool-call-plan call))))
         (begin (lambda (save)
                  (dolist (change unsaved)
                    (setf (efrit-change-save change) save))
                  (efrit-plan--write call))))
    (if (and unsaved (eq efrit-edit-unsaved-buffers 'ask))
        (efrit-plan--ask
         call (format "%s had unsaved changes of yours.  Save with the edit?"
                      (mapconcat #'efrit-change-path unsaved ", "))
         '("Save" "Leave it unsaved")
         (lambda (answer) (funcall begin (equal answer "Save"))))
      (funcall begin (eq efrit-edit-unsaved-buffers 'save)))))

(defun efrit-plan--run-planner (planner loop files then refused)
  "Call PLANNER with FILES, the reports for a tool call in LOOP.
Call THEN with the plan, or REFUSED with the reason."
  (let* ((plan nil)
         (problem (condition-case err
                      (seq-some (lambda (change) (efrit-read-files-problem loop change))
                                (efrit-plan-changes
                                 (setq plan (funcall planner files))))
                    (efrit-plan-refused (cadr err))
                    (error (error-message-string err)))))
    (cond
     ((null problem)
      (setf (efrit-plan-secret plan)
            (seq-some (lambda (file) (eq (plist-get (cdr file) :secret) t)) files)
            (efrit-plan-files plan)
            (mapcar (lambda (file) (plist-get (cdr file) :file)) files))
      (funcall then plan))
     (t (funcall refused problem)))))

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

(defun efrit-plan--write (call)
  "Carry out the plan of CALL: in buffers, and by the sidecar in files."
  (let* ((changes (efrit-plan-changes (efrit-tool-call-plan call)))
         (begun (efrit-plan--begin changes)))
    (cond
     ((stringp begun) (efrit-plan--fail call begun))
     ((null begun) (efrit-plan--finish call nil))
     (t (efrit-plan--ask-again
         (efrit-tool-call-owner call) 'changes/write
         (list :tool_use_id (efrit-tool-call-id call) :tool (efrit-tool-call-name call)
               :files (vconcat begun))
         (lambda (written) (efrit-plan--finish call (append (plist-get written :changes) nil)))
         (lambda (err)
           (mapc #'efrit-change-cancel changes)
           (efrit-plan--fail call (efrit-error-text err)
                             (eq (car err) 'efrit-sidecar-died))))))))

(defun efrit-plan--begin (planned)
  "Edit the buffers of each change in PLANNED; return the entries of a request.
The request has the sidecar write the files.  If one fails, restore the buffers
and return the reason, a string."
  (let ((begun nil)
        (entries nil))
    (condition-case err
        (dolist (change planned (nreverse entries))
          (when-let* ((entry (efrit-change-begin change)))
            (push entry entries))
          (push change begun))
      ((error quit)
       (mapc #'efrit-change-cancel begun)
       (pcase (car err)
         ('quit "the person stopped it (quit)")
         ('efrit-change-refused (cadr err))
         (_ (error-message-string err)))))))

(defun efrit-plan--ask-again (loop method params then failed &optional tries)
  "Call METHOD with PARAMS for LOOP, and again if the sidecar dies meanwhile.
Call THEN with the result or FAILED with the error, even if LOOP was stopped:
what is changed by then has to be put in order.  TRIES counts earlier calls."
  (let ((tries (1+ (or tries 0))))
    (efrit-loop-ask-sidecar
     loop method params
     (lambda (result) (efrit-loop-call-safely loop then result))
     (lambda (err)
       (if (and (eq (car err) 'efrit-sidecar-died) (< tries efrit-plan--most-calls))
           (efrit-plan--ask-again loop method params then failed tries)
         (efrit-loop-call-safely loop failed err))))))

(defun efrit-plan--fail (call problem &optional unknown)
  "Finish CALL, whose plan was not carried out because of PROBLEM, a text.
If UNKNOWN is non-nil, it may have been carried out."
  (efrit-tool-finish
   call (efrit-tool-error
         (format (if unknown
                     "Nobody knows whether the change was made; read the file again: %s"
                   "Nothing was changed: %s")
                 problem))))

(defun efrit-plan--finish (call made)
  "Record what the sidecar wrote for the plan of CALL, and finish CALL.
MADE are the sidecar's replies on the changes, plists in their order."
  (let ((loop (efrit-tool-call-owner call)))
    (dolist (change (efrit-plan-changes (efrit-tool-call-plan call)))
      (unless (efrit-change-self-saved change)
        (let ((reply (pop made)))
          (efrit-change-finish change reply)
          (efrit-read-files-note loop (efrit-change-path change) nil)
          (efrit-read-files-note loop (plist-get reply :path) (plist-get reply :stamp)))
        (when efrit-change-keep-buffers
          (efrit-plan--visit change))))
    (let ((result (efrit-plan--result call)))
      (unless (run-hook-with-args-until-success 'efrit-plan-finish-functions call result)
        (efrit-tool-finish call result)))))

(defun efrit-plan--visit (change)
  "Visit the file of CHANGE quietly, if it is there and on this machine."
  (let ((file (or (efrit-change-to-file change) (efrit-change-file change))))
    (when (and (not (file-remote-p file)) (file-exists-p file))
      (efrit-file-visit file))))

(defun efrit-plan--result (call)
  "Return the result of CALL, whose plan was carried out."
  (let ((plan (efrit-tool-call-plan call)))
    (efrit-tool-result
     (string-join
      (append (list (efrit-tool-mark-own (efrit-plan-report plan)))
              (delq nil (mapcar #'efrit-plan--unsaved-note (efrit-plan-changes plan)))
              (delq nil (mapcar #'efrit-plan--hooks-note (efrit-plan-changes plan)))
              (delq nil (mapcar #'efrit-plan--self-saved-note (efrit-plan-changes plan)))
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
  (when-let* ((text (efrit-change-written change))
              (diff (efrit-diff (efrit-change-after change) text (efrit-change-path change)))
              ((not (string-empty-p diff))))
    (concat (efrit-tool-mark-own "Hooks that ran on saving also changed:\n") diff)))

(defun efrit-plan--self-saved-note (change)
  "Return a note if a function of the buffer saved CHANGE, or nil."
  (and (efrit-change-self-saved change)
       (efrit-tool-mark-own
        (format "It cannot be undone in %s, which is saved by a function of its buffer."
                (efrit-change-path change)))))

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
  :plan (efrit-plan-of-files #'efrit-edit--plan-rename t)
  (efrit-plan-carry-out call))

(efrit-define-tool delete_file
    ((path "string" ""))
  "Delete a file; undo_edit brings it back."
  :plan (efrit-plan-of-files #'efrit-edit--plan-delete)
  (if (efrit-edit--trash-p (efrit-tool-call-owner call))
      (efrit-edit--trash call)
    (efrit-plan-carry-out call)))

;;;; Plans

(defun efrit-edit--plan-edits (edits files)
  "Return the plan of EDITS, plists; see `efrit-plan-of-files' for FILES."
  (let ((changes nil)
        (reports nil))
    (unless edits
      (efrit-plan-refuse "edits is empty"))
    (cl-loop for edit in edits
             for number from 1
             for prefix = (if (cdr edits) (format "edit %d: " number) "")
             for change = (efrit-edit--change edit files prefix changes)
             do (cl-pushnew change changes)
             (push (efrit-edit--apply change edit prefix) reports))
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
  (let ((closest (efrit-match-closest old text))
        (as-it-stands (efrit-match-ignoring-indentation old text)))
    (efrit-plan-refuse
     "%sold_text is not in %s.%s%s" prefix path
     (cond ((and (not (string-blank-p old))
                 (string-suffix-p (efrit-trim-right old "\n") text))
            " The file has no newline at its end, where it would be; give old_text without it.")
           (as-it-stands
            (concat " It differs in its indentation only; as it stands there, it is:\n"
                    as-it-stands))
           (closest (concat " The most similar lines are:\n" closest))
           (t ""))
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
                     :report file :to (plist-get target :path) :to-file (plist-get target :file)))
     :report (format "Renamed %s to %s." path to))))

(defun efrit-edit--plan-delete (arguments files)
  "Return the plan of `delete_file' with ARGUMENTS; FILES has reports on paths."
  (let* ((path (plist-get arguments :path))
         (file (efrit-edit-existing path files)))
    (efrit-plan-create :changes (list (efrit-edit--deletion path file files))
                       :report (format "Deleted %s." path))))

(defun efrit-edit--deletion (path report files)
  "Return the change that deletes PATH, a key of FILES with REPORT.
A file that is not text, or too large to be shown, is deleted without a diff."
  (when-let* ((buffer (efrit-file-buffer (plist-get report :file)))
              ((buffer-modified-p buffer)))
    (efrit-plan-refuse "%s has unsaved changes of the person; ask before deleting it" path))
  (condition-case nil
      (efrit-plan-change 'delete path files)
    (efrit-plan-refused
     (efrit-change-create :kind 'delete :path (plist-get report :path)
                          :file (plist-get report :file) :report report))))

;;;; The trash

(defun efrit-edit--trash-p (loop)
  "Return non-nil if files of LOOP should be moved to the trash."
  (and delete-by-moving-to-trash (not (file-remote-p (efrit-loop-root loop)))))

(defun efrit-edit--trash (call)
  "Move the file that CALL deletes to the trash, after the sidecar stored it."
  (let* ((loop (efrit-tool-call-owner call))
         (use (list :tool_use_id (efrit-tool-call-id call)))
         (change (car (efrit-plan-changes (efrit-tool-call-plan call))))
         (failed (lambda (err) (efrit-plan--fail call (efrit-error-text err)))))
    (efrit-plan--ask-again
     loop 'changes/begin
     (append use (list :tool (efrit-tool-call-name call)
                       :files (vector (list :path (efrit-change-path change) :kind "delete"))))
     (lambda (_)
       (let ((problem (condition-case err
                          (progn (efrit-change--check-current change)
                                 (delete-file (efrit-change-file change) t))
                        ((error quit) (error-message-string err)))))
         (efrit-plan--ask-again
          loop 'changes/end
          (append use (list :outcome (if problem "abandoned" "done")))
          (lambda (_)
            (if problem
                (efrit-plan--fail call problem)
              (efrit-tool-finish
               call (efrit-tool-result
                     (efrit-tool-mark-own (format "Deleted %s (it is in the trash)."
                                                  (efrit-change-path change)))
                     :gist (efrit-plan-gist (efrit-tool-call-plan call))))))
          failed)))
     failed)))

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
