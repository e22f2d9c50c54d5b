;;; efrit-undo.el --- Undo edits of the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for the person, and tools for the model, that undo edits; commands
;; for the person that make undone edits again.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-tools)
(require 'tabulated-list)

;;; Undoing

;; The sidecar has stored each file before and after a change, and restores the
;; file on disk; Emacs updates the file's buffer.  Later changes of the person
;; are never overwritten, unless the person asks for that.

(efrit-define-tool undo_edit
    ((path "string" "" :optional t))
  "Undo your last edit that is not undone. Refused if the person changed the file since."
  :plan #'efrit-undo--plan-last
  (efrit-undo--carry-out call))

(efrit-define-tool checkpoint
    ((label "string" "" :optional t))
  "Mark the state of your edits, to return to with restore_checkpoint."
  :policy allow
  :async t
  (efrit-loop-ask-sidecar
   (efrit-tool-call-owner call) 'changes/checkpoint (and label (list :label label))
   (lambda (made)
     (efrit-tool-finish
      call (efrit-tool-result
            (efrit-tool-mark-own (format "Checkpoint %s%s." (plist-get made :checkpoint)
                                         (if label (format " (%s)" label) "")))
            :gist (plist-get made :checkpoint))))
   (lambda (err) (efrit-tool-fail call (efrit-error-text err)))))

(efrit-define-tool restore_checkpoint
    ((checkpoint "string" "Without it, they are listed" :optional t))
  "Undo all your edits since a checkpoint. Changes made by commands stay."
  :plan #'efrit-undo--plan-checkpoint
  (efrit-undo--carry-out call))

(defun efrit-undo-list (loop then failure)
  "Call THEN with a list of every change of LOOP, latest last; on error, FAILURE."
  (efrit-loop-ask-sidecar loop 'changes/list nil
                          (lambda (listed) (funcall then (append (plist-get listed :changes) nil)))
                          failure))

(defun efrit-undo-open-p (change)
  "Return non-nil if CHANGE, a plist of the sidecar, was made and is not undone."
  (and (member (plist-get change :state) '("done" "begun"))
       (not (equal (plist-get change :now) "undone"))))

(defun efrit-undo--paths (change)
  "Return the paths of CHANGE, a plist of the sidecar: one, or two of a rename."
  (delq nil (list (plist-get change :path) (plist-get change :to))))

(defun efrit-undo-changes (loop numbers force then &optional redo by-person)
  "Undo each change of LOOP whose number is in NUMBERS, in that order.
With REDO, make these undone changes again.  With FORCE, do so even if the
person changed the file since.  BY-PERSON is non-nil if the model does not know
of it.  Call THEN with a list of outcomes, (NUMBER PATH PROBLEM DIFF NOTE):
PROBLEM is nil if the change was undone; else DIFF shows the person's changes,
or is nil.  NOTE says why the buffer could not be updated, or is nil."
  (efrit-undo--each loop numbers
                    (list :force (if force t :json-false)
                          :by_person (if by-person t :json-false))
                    redo then nil))

(defun efrit-undo--each (loop numbers params redo then outcomes)
  "Undo each change of LOOP in NUMBERS, or with REDO make it again, with PARAMS.
Call THEN as `efrit-undo-changes' does; OUTCOMES are those so far, latest first."
  (if (null numbers)
      (funcall then (nreverse outcomes))
    (efrit-undo--one
     loop (car numbers) params redo
     (lambda (outcome)
       (efrit-undo--each loop (cdr numbers) params redo then (cons outcome outcomes))))))

(defun efrit-undo-later-numbers (number listed)
  "Return the numbers of open edits of NUMBER's files after it, latest first.
LISTED are all edits of the session, latest last.  A file that is renamed later
counts as one of these files, by both of its names."
  (let ((files nil)
        (later nil))
    (dolist (change listed)
      (let ((paths (efrit-undo--paths change)))
        (cond ((= (plist-get change :number) number) (setq files paths))
              ((and files (efrit-undo-open-p change) (seq-intersection paths files))
               (setq files (seq-union paths files))
               (push (plist-get change :number) later)))))
    later))

(defun efrit-undo-undone-after (number order listed)
  "Return the numbers of edits of NUMBER's files undone after it, last first.
ORDER are the numbers of undone edits, the last undone first; those that are not
in it are taken to be undone before, the latest edit first.  LISTED are all
edits of the session."
  (let* ((numbers (mapcar (lambda (change) (plist-get change :number)) listed))
         (after (append (seq-take-while (lambda (other) (/= other number)) order)
                        (unless (memq number order)
                          (seq-remove (lambda (other) (or (>= other number) (memq other order)))
                                      numbers))))
         (find (lambda (one) (seq-find (lambda (change) (= one (plist-get change :number))) listed)))
         (files (efrit-undo--paths (funcall find number))))
    (seq-filter (lambda (other)
                  (let ((change (funcall find other)))
                    (and (equal (plist-get change :state) "undone")
                         (seq-intersection (efrit-undo--paths change) files))))
                after)))

(defun efrit-undo-resume (loop)
  "Tell the model of LOOP with the next message what was not reported to it yet."
  (efrit-undo-list
   loop
   (lambda (changes)
     (dolist (change changes)
       (when (eq (plist-get change :to_report) t)
         (efrit-undo--note-for-model loop (plist-get change :number) (plist-get change :path)
                                     (equal (plist-get change :state) "done")))))
   #'ignore))

;;;; Telling the model

(defvar efrit-undo--notes (make-hash-table :test #'eq :weakness 'key)
  "Hash table from loops to alists from notes for the model to numbers of changes.
The notes are blocks that may not have been sent yet.")

(defun efrit-undo--note-for-model (loop number path redo)
  "Queue a note for the model of LOOP that its edit NUMBER of PATH was undone.
With REDO, the note says that the person made the edit again."
  (efrit-loop-queue-note
   loop
   (format (if redo "[The person made your edit c%d again: %s is as it was after it.]"
             "[The person undid your edit c%d: %s is as it was before.]")
           number path)
   (format (if redo "You made c%d of %s again; the next turn tells the model"
             "You undid c%d of %s; the next turn tells the model")
           number path))
  (push (cons (car (efrit-loop-notices loop)) number) (gethash loop efrit-undo--notes))
  (efrit-loop-observe loop #'efrit-undo--report-sent))

(defun efrit-undo--report-sent (loop event)
  "If EVENT is the beginning of a turn of LOOP, store what the model has been told."
  (when (eq (car event) 'begun)
    (let* ((notes (gethash loop efrit-undo--notes))
           (unsent (seq-filter (lambda (note) (memq (car note) (efrit-loop-notices loop))) notes))
           (sent (seq-difference notes unsent #'eq)))
      (puthash loop unsent efrit-undo--notes)
      (when sent
        (efrit-loop-ask-sidecar loop 'changes/reported
                                (list :numbers (vconcat (mapcar #'cdr sent)))
                                #'ignore #'ignore)))))

;;;; Undoing a change

(defun efrit-undo--one (loop number params redo then)
  "Undo the change NUMBER of LOOP; call THEN with the outcome.
PARAMS and REDO are as in `efrit-undo--each', the outcome is as in
`efrit-undo-changes'."
  (efrit-loop-ask-sidecar
   loop 'changes/show (list :number number)
   (lambda (change)
     (efrit-undo--check
      loop change (eq t (plist-get params :force)) redo
      (lambda (refusal)
        (if refusal
            (funcall then `(,number ,(plist-get change :path) ,@refusal))
          (efrit-undo--on-disk loop number change params redo then)))))
   (lambda (err) (funcall then (list number nil (efrit-error-text err) nil)))))

(defun efrit-undo--on-disk (loop number change params redo then)
  "Have the sidecar undo the change NUMBER of LOOP, then update the file's buffer.
CHANGE is the sidecar's plist; PARAMS, REDO and THEN are as in
`efrit-undo--one'."
  (let ((path (plist-get change :path)))
    (efrit-loop-ask-sidecar
     loop (if redo 'changes/redo 'changes/undo)
     (append (list :number number) params)
     (lambda (undone)
       (efrit-undo--follow loop (efrit-undo--buffer loop change redo) undone
                           (lambda (problem) (funcall then (list number path nil nil problem)))))
     (lambda (err)
       (funcall then (list number path (efrit-error-text err)
                           (plist-get (efrit-rpc-error-data err) :since)))))))

(defun efrit-undo--buffer (loop change redo)
  "Return the buffer of the file that CHANGE of LOOP changed or renamed, or nil.
With REDO, CHANGE is undone, and a renamed file has its old name."
  (efrit-file-buffer (if-let* ((to (and (not redo) (plist-get change :to))))
                         (expand-file-name to (efrit-loop-root loop))
                       (efrit-file-local-to-emacs (efrit-loop-root loop)
                                                  (plist-get change :file)))))

(defun efrit-undo--check (loop change force redo then)
  "Call THEN with (PROBLEM DIFF) if the buffer of CHANGE prevents undoing.
Call THEN with nil if it does not; with FORCE, nothing does.  LOOP, PROBLEM,
DIFF and REDO are as in `efrit-undo-changes'."
  (let ((buffer (efrit-undo--buffer loop change redo))
        (left (plist-get change (if redo :buffer_text_before :buffer_text_after))))
    (cond
     ((or force (null buffer) (not (buffer-modified-p buffer))) (funcall then nil))
     (left (funcall then (efrit-undo--refusal buffer left change)))
     (t (efrit-undo--report
         loop (efrit-host-true-file buffer)
         (lambda (report)
           (funcall then (efrit-undo--refusal buffer (efrit-undo--disk-text report) change)))
         (lambda (problem)
           (funcall then (list (concat "its buffer cannot be compared: " problem) nil))))))))

(defun efrit-undo--refusal (buffer left change)
  "Return (PROBLEM DIFF) if BUFFER has another text than LEFT, or nil.
CHANGE left that text in the file or in the buffer."
  (let ((diff (efrit-diff left (efrit-file-text buffer) (plist-get change :path))))
    (unless (string-empty-p diff)
      (list "its buffer has unsaved changes" diff))))

(defun efrit-undo--report (loop file then failed)
  "Have the sidecar report on FILE, a whole name, in LOOP.
Call THEN with the report, or FAILED with the reason, a text."
  (efrit-file-ask-reports
   #'efrit-loop-ask-sidecar loop (list (file-local-name file))
   (lambda (reports)
     (if-let* ((problem (plist-get (cdar reports) :problem)))
         (funcall failed problem)
       (funcall then (cdar reports))))
   (lambda (err) (funcall failed (efrit-error-text err)))))

(defun efrit-undo--disk-text (report)
  "Return the text of the file in REPORT, decoded; \"\" if there is no file."
  (car (efrit-file-decode (or (plist-get report :bytes) "") (plist-get report :file))))

(defun efrit-undo--follow (loop buffer undone then)
  "Update BUFFER, of a file in the project of LOOP, after the reply UNDONE.
UNDONE is that of the sidecar to `changes/undo' or `changes/redo'.  BUFFER may
be nil.  Call THEN with nil, or with the reason why BUFFER is not updated."
  (let ((path (plist-get undone :path))
        (to (plist-get undone :to))
        (file (efrit-file-local-to-emacs (efrit-loop-root loop) (plist-get undone :file))))
    (dolist (each (delq nil (list path to)))
      (efrit-read-files-note loop each nil)
      (efrit-remote-forget-file (expand-file-name each (efrit-loop-root loop))))
    (cond
     ((null buffer)
      (efrit-undo--note-stamp loop undone)
      (funcall then nil))
     ((eq (plist-get undone :exists) t)
      (efrit-undo--report
       loop file
       (lambda (report)
         (funcall then (condition-case err
                           (ignore (efrit-undo--update-buffer buffer file undone report)
                                   (efrit-undo--note-stamp loop undone))
                         (error (error-message-string err)))))
       then))
     (t (with-current-buffer buffer
          (set-buffer-modified-p nil)
          (efrit-file-kill-unused buffer))
        (funcall then nil)))))

(defun efrit-undo--note-stamp (loop undone)
  "Record in LOOP that the model knows the file of the reply UNDONE as it is now."
  (efrit-read-files-note
   loop (if (and (equal (plist-get undone :state) "done") (plist-get undone :to))
            (plist-get undone :to)
          (plist-get undone :path))
   (plist-get undone :stamp)))

(defun efrit-undo--update-buffer (buffer file undone report)
  "Have BUFFER visit FILE, with the text that FILE has by REPORT.
UNDONE is the reply to undoing; it has the text of a buffer that was not saved."
  (efrit-with-live-buffer buffer
    (unless (member file (list buffer-file-name (efrit-host-true-file buffer)))
      (efrit-file-visit-as file))
    (unless (eq (plist-get undone :disk) :json-false)
      (pcase-let ((`(,text . ,coding) (efrit-file-decode (plist-get report :bytes) file
                                                         buffer-file-coding-system)))
        (set-buffer-modified-p nil)
        (efrit-file-reload buffer text (efrit-file-reported-time report) coding)))
    (when-let* ((text (plist-get undone :buffer_text)))
      (efrit-file-set-text buffer text)
      (efrit-file-set-modified (not (equal text (efrit-undo--disk-text report)))))))

;;;; Plans of the tools

(defun efrit-undo--plan-last (loop given then refused)
  "Plan to undo the last edit of LOOP; GIVEN are the tool's arguments.
Call THEN with the plan, or REFUSED with the reason."
  (let ((path (plist-get given :path)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (let ((last (car (last (seq-filter
                               (lambda (change)
                                 (and (efrit-undo-open-p change)
                                      (or (null path)
                                          (member path (efrit-undo--paths change)))))
                               changes)))))
         (if last
             (efrit-undo--plan loop (efrit-undo--same-call-numbers last changes) then refused)
           (funcall refused (if path (format "No edit of %s left to undo" path)
                              "No edits left to undo")))))
     (lambda (err) (funcall refused (efrit-error-text err))))))

(defun efrit-undo--same-call-numbers (last changes)
  "Return the number of each change by the call that made LAST, latest first.
CHANGES are all changes of the session; leave out those that are undone."
  (cl-loop with call = (plist-get last :tool_use_id)
           for change in (reverse changes)
           when (and (efrit-undo-open-p change) (equal call (plist-get change :tool_use_id)))
           collect (plist-get change :number)))

(defun efrit-undo--plan-checkpoint (loop given then refused)
  "Plan to return to a checkpoint in LOOP; GIVEN are the tool's arguments.
Call THEN with the plan, or REFUSED with the reason."
  (if-let* ((name (plist-get given :checkpoint)))
      (efrit-loop-ask-sidecar
       loop 'changes/since (list :checkpoint name)
       (lambda (since)
         (let ((numbers (append (plist-get since :numbers) nil)))
           (if numbers
               (efrit-undo--plan loop numbers then refused)
             (funcall refused "No edits since that checkpoint"))))
       (lambda (err) (funcall refused (efrit-error-text err))))
    (efrit-loop-ask-sidecar
     loop 'changes/list nil
     (lambda (listed) (funcall refused (efrit-undo--checkpoints-text listed)))
     (lambda (err) (funcall refused (efrit-error-text err))))))

(defun efrit-undo--checkpoints-text (listed)
  "Return the checkpoints in LISTED, what the sidecar listed, as text."
  (let ((checkpoints (plist-get listed :checkpoints)))
    (if (seq-empty-p checkpoints)
        "There are no checkpoints; checkpoint makes one"
      (concat "Give one of the checkpoints: "
              (mapconcat (lambda (one)
                           (let ((label (plist-get one :label)))
                             (concat (plist-get one :checkpoint)
                                     (if (or (null label) (equal label "")) ""
                                       (format " (%s)" label)))))
                         checkpoints ", ")))))

(defun efrit-undo--plan (loop numbers then refused &optional changes)
  "Plan to undo NUMBERS of LOOP; call THEN with the plan, or REFUSED with a reason.
CHANGES are the sidecar's plists fetched so far, latest first."
  (let ((number (nth (length changes) numbers)))
    (if (null number)
        (funcall then (efrit-undo--make-plan numbers (reverse changes)))
      (efrit-loop-ask-sidecar loop 'changes/show (list :number number)
                              (lambda (change)
                                (efrit-undo--plan loop numbers then refused (cons change changes)))
                              (lambda (err) (funcall refused (efrit-error-text err)))))))

(defun efrit-undo--make-plan (numbers changes)
  "Return the plan to undo each change whose number is in NUMBERS.
CHANGES are the sidecar's plists of these changes, in the same order."
  (efrit-plan-create
   :undoes numbers
   :files (seq-mapcat (lambda (change)
                        (delq nil (list (plist-get change :path) (plist-get change :to)
                                        (plist-get change :file))))
                      changes)
   :question (format "Undo %s"
                     (mapconcat (lambda (change)
                                  (format "%s of %s" (plist-get change :kind)
                                          (plist-get change :path)))
                                changes ", "))
   :diff (mapconcat (lambda (change) (efrit-undo--reverse-diff (or (plist-get change :diff) "")))
                    changes "")))

(declare-function diff-reverse-direction "diff-mode" (start end))

(defun efrit-undo--reverse-diff (diff)
  "Return DIFF, a unified diff, reversed."
  (with-temp-buffer
    (insert diff)
    (delay-mode-hooks (diff-mode))
    (let ((inhibit-read-only t))
      (ignore-errors
        (diff-reverse-direction (point-min) (point-max))))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun efrit-undo--carry-out (call)
  "Undo every change of the plan of CALL, and finish CALL."
  (efrit-undo-changes
   (efrit-tool-call-owner call) (efrit-plan-undoes (efrit-tool-call-plan call)) nil
   (lambda (outcomes)
     (efrit-tool-finish
      call
      (efrit-tool-result (mapconcat #'efrit-undo-outcome-text outcomes "\n")
                         :status (if (seq-every-p #'caddr outcomes) 'error 'success)
                         :gist (efrit-undo--gist outcomes))))))

(defun efrit-undo--gist (outcomes)
  "Return the numbers and files of each change undone in OUTCOMES, as text."
  (mapconcat (lambda (outcome) (format "c%d of %s" (car outcome) (cadr outcome)))
             (seq-remove #'caddr outcomes) ", "))

(defun efrit-undo-outcome-text (outcome &optional redo)
  "Return a text about OUTCOME, which is as in `efrit-undo-changes', like REDO."
  (pcase-let* ((`(,number ,path ,problem ,diff . ,more) outcome)
               (change (format "c%d of %s" number (or path "?")))
               (done (format (if redo "Made %s again" "Undid %s") change)))
    (cond
     (problem
      (concat (efrit-tool-mark-own (format (if redo "%s was not made again: "
                                             "%s was not undone: ")
                                           change))
              problem
              (if diff (concat "\n" diff) "")))
     ((car more)
      (concat (efrit-tool-mark-own (format "%s on disk, but its buffer was not updated: " done))
              (car more)))
     (t (efrit-tool-mark-own (concat done "."))))))

;;; Commands

(defvar-local efrit-undo-view--changes nil
  "The changes listed in this buffer, plists of the sidecar, latest last.")

(defvar efrit-undo-view--undone (make-hash-table :test #'eq :weakness 'key)
  "Hash table from loops to the numbers of undone changes, undone last first.")

(defconst efrit-undo-view--state-texts
  '(("as_left" . "unchanged") ("changed" . "changed since")
    ("undone" . "undone") ("unknown" . "unknown"))
  "Alist from the current state of a changed file to a text for the person.")

(defvar efrit-undo-view-mode-map
  (efrit-make-keymap '(("RET" efrit-undo-view-diff)
                       ("d" efrit-undo-view-diff)
                       ("u" efrit-undo-view-one)
                       ("r" efrit-undo-view-redo)
                       ("U" efrit-undo-view-all)))
  "Keys of `efrit-undo-view-mode'.")

(define-derived-mode efrit-undo-view-mode tabulated-list-mode "Efrit-Changes"
  "Major mode that lists the edits of a session, latest first.

\\{efrit-undo-view-mode-map}"
  (efrit-keep-keys)
  (setq tabulated-list-padding 1)
  (efrit-list-set-up '(("RET" "diff") ("u" "undo") ("r" "redo") ("U" "undo all") ("g" "refresh")
                       ("?" "help")))
  (setq-local revert-buffer-function #'efrit-undo-view--revert)
  (efrit-undo-view--set-columns))

(defun efrit-undo-view--set-columns ()
  "Set the columns of the list so that its lines fit the window, if they can.
A narrow window leaves out the tools."
  (let* ((columns (car (efrit-smallest-window 80 24)))
         (tool (and (>= columns 90) '(("Tool" 14 t))))
         (file (- columns (if tool 58 43))))
    (setq tabulated-list-format
          (vconcat `(("Nr" 5 nil) ("Done" 8 nil) ("File" ,(max 12 (min 60 file)) t)
                     ("Lines" 11 nil) ("Now" 13 t))
                   tool))
    (tabulated-list-init-header)))

;;;###autoload
(defun efrit-undo (&optional force)
  "Undo the last edit of the model in the current session.
An edit is all that one tool call changed, in one file or more.  The model hears
of it with the next message; `efrit-redo' makes the edit again.
If the file was changed since, show the difference and do nothing; with a
prefix argument, as FORCE, undo the edit all the same."
  (interactive "P")
  (let ((loop (efrit-loop-current)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (let ((last (car (last (seq-filter #'efrit-undo-open-p changes)))))
         (if (null last)
             (message "No edits left to undo")
           (efrit-undo-view--undo loop (efrit-undo--same-call-numbers last changes)
                                  (and force t)))))
     #'efrit-show-error)))

;;;###autoload
(defun efrit-redo (&optional force)
  "Make the edit of the model again that was undone last in the current session.
If the file was changed since, show the difference and do nothing; with a
prefix argument, as FORCE, make the edit all the same."
  (interactive "P")
  (let ((loop (efrit-loop-current)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (if-let* ((number (efrit-undo-view--last-undone loop changes)))
           (efrit-undo-view--undo loop (efrit-undo-view--undone-with number changes)
                                  (and force t) t)
         (message "No undone edit to make again")))
     #'efrit-show-error)))

;;;###autoload
(defun efrit-undo-session (&optional loop)
  "List the edits of the model in LOOP, by default in the current session.
In the list, edits can be shown and undone, one by one or all."
  (interactive)
  (let* ((loop (or loop (efrit-loop-current)))
         (buffer (get-buffer-create (format "*efrit changes: %s*" (efrit-loop-id loop)))))
    (with-current-buffer buffer
      (efrit-undo-view-mode)
      (setq efrit-loop-here loop)
      (efrit-undo-view--revert))
    (pop-to-buffer buffer)))

(defun efrit-undo-view-diff ()
  "Show the diff of the change at point, and how its file changed since."
  (interactive nil efrit-undo-view-mode)
  (efrit-loop-ask-sidecar
   efrit-loop-here 'changes/show (list :number (efrit-undo-view--number))
   (lambda (change)
     (let ((since (plist-get change :since)))
       (efrit-diff-show (concat (plist-get change :diff)
                                (and since (concat "\nChanged since:\n" since))))))
   #'efrit-show-error))

(defun efrit-undo-view-one (&optional force)
  "Undo the change at point; offer to undo later edits of its file along.
With a prefix argument, as FORCE, undo it even if the file was changed since."
  (interactive "P" efrit-undo-view-mode)
  (let* ((number (efrit-undo-view--number))
         (later (and (not force)
                     (efrit-undo-later-numbers number efrit-undo-view--changes))))
    (when later
      (efrit-undo-view--ask-about-later number later))
    (efrit-undo-view--undo efrit-loop-here (append later (list number)) (and force t))))

(defun efrit-undo-view-redo (&optional force)
  "Make the undone change at point again.
Offer to make edits of its file that were undone after it again, first.
With a prefix argument, as FORCE, do so even if the file was changed since."
  (interactive "P" efrit-undo-view-mode)
  (let* ((number (efrit-undo-view--number))
         (after (and (not force)
                     (efrit-undo-undone-after number
                                              (gethash efrit-loop-here efrit-undo-view--undone)
                                              efrit-undo-view--changes))))
    (when after
      (efrit-undo-view--ask-about-undone number after))
    (efrit-undo-view--undo efrit-loop-here (append after (list number)) (and force t) t)))

(defun efrit-undo-view--labels (numbers)
  "Return the labels of NUMBERS, of which the last comes first, as text."
  (mapconcat (apply-partially #'format "c%d") (reverse numbers) ", "))

(defun efrit-undo-view--together (others)
  "Return \"both\" or \"all N\" for a change together with OTHERS, a list."
  (if (cdr others) (format "all %d" (1+ (length others))) "both"))

(defun efrit-undo-view--ask-about-later (number later)
  "Ask whether to undo LATER, a list of numbers, together with NUMBER.
Signal a `user-error' if the answer is no."
  (unless (y-or-n-p (format "The model edited this file again after c%d: %s.  Take back %s? "
                            number (efrit-undo-view--labels later)
                            (efrit-undo-view--together later)))
    (user-error "Nothing was undone; u on the latest edit undoes that alone")))

(defun efrit-undo-view--ask-about-undone (number after)
  "Ask whether to make AFTER, a list of numbers, again before NUMBER.
Signal a `user-error' if the answer is no."
  (unless (y-or-n-p (format "In this file %s %s undone after c%d.  Make %s again? "
                            (efrit-undo-view--labels after) (if (cdr after) "were" "was") number
                            (efrit-undo-view--together after)))
    (user-error "Nothing was made again; r on c%d makes that alone" (car after))))

(defun efrit-undo-view--last-undone (loop listed)
  "Return the number of the change that was undone last in LOOP, or nil.
LISTED are the session's changes.  Of those that another Emacs undid, take the
first one after all others."
  (let* ((undone (seq-filter (lambda (change) (equal (plist-get change :state) "undone")) listed))
         (numbers (mapcar (lambda (change) (plist-get change :number)) undone))
         (done (seq-filter (lambda (change) (equal (plist-get change :state) "done")) listed))
         (latest (plist-get (car (last done)) :number)))
    (or (seq-find (lambda (number) (memq number numbers)) (gethash loop efrit-undo-view--undone))
        (seq-find (lambda (number) (> number (or latest 0))) numbers)
        (car (last numbers)))))

(defun efrit-undo-view--undone-with (number listed)
  "Return NUMBER and what else of its tool call is undone, as numbers, in order.
LISTED is every change of the session."
  (let* ((numbered (lambda (change) (= number (plist-get change :number))))
         (call (plist-get (seq-find numbered listed) :tool_use_id)))
    (cl-loop for change in listed
             when (and (equal call (plist-get change :tool_use_id))
                       (equal (plist-get change :state) "undone"))
             collect (plist-get change :number))))

(defun efrit-undo-view-all (&optional force)
  "Undo all edits of the session, the latest first.
Leave files alone that were changed since, and show the difference; with a
prefix argument, as FORCE, undo those as well."
  (interactive "P" efrit-undo-view-mode)
  (efrit-check-mode 'efrit-undo-view-mode)
  (let ((numbers (mapcar (lambda (change) (plist-get change :number))
                         (seq-filter #'efrit-undo-open-p
                                     (reverse efrit-undo-view--changes)))))
    (unless numbers
      (user-error "No edits left to undo"))
    (when (yes-or-no-p (format "Undo %s? " (efrit-count-text (length numbers) "change")))
      (efrit-undo-view--undo efrit-loop-here numbers (and force t)))))

(defun efrit-undo-view--number ()
  "Return the number of the change at point."
  (efrit-check-mode 'efrit-undo-view-mode)
  (or (tabulated-list-get-id)
      (user-error "No change on this line")))

(defun efrit-undo-view--undo (loop numbers force &optional redo)
  "Undo each change of LOOP in NUMBERS, with FORCE or without; show the outcomes.
With REDO, make these undone changes again."
  (efrit-undo-changes
   loop numbers force
   (lambda (outcomes)
     (let ((refused (seq-filter #'caddr outcomes)))
       (dolist (outcome (seq-remove #'caddr outcomes))
         (efrit-undo-view--remember loop (car outcome) redo)
         (efrit-undo--note-for-model loop (car outcome) (cadr outcome) redo))
       (efrit-with-live-buffer (get-buffer (format "*efrit changes: %s*" (efrit-loop-id loop)))
         (efrit-undo-view--revert))
       (when refused
         (efrit-diff-show (mapconcat (lambda (outcome) (efrit-undo-outcome-text outcome redo))
                                     refused "\n")))
       (message "%s" (efrit-undo-view--outcome-text outcomes refused redo))))
   redo t))

(defun efrit-undo-view--remember (loop number redo)
  "Remember that the change NUMBER of LOOP was undone, or with REDO made again."
  (let ((others (remq number (gethash loop efrit-undo-view--undone))))
    (puthash loop (if redo others (cons number others)) efrit-undo-view--undone)))

(defun efrit-undo-view--outcome-text (outcomes refused redo)
  "Return a message about OUTCOMES, of which REFUSED were not undone.
With REDO, they were not made again."
  (let ((done (- (length outcomes) (length refused))))
    (concat (if (and (= done 1) (null refused))
                (efrit-undo-outcome-text (car outcomes) redo)
              (format (if redo "Made %d of %d again" "Undid %d of %d") done (length outcomes)))
            (and refused
                 "; files changed since were left alone; repeat with C-u to change those, too"))))

(defun efrit-undo-view--revert (&rest _)
  "Fetch every change of the session of this buffer, and list them."
  (let ((buffer (current-buffer)))
    (efrit-undo-list
     efrit-loop-here
     (lambda (changes)
       (efrit-with-live-buffer buffer
         (efrit-undo-view--set-columns)
         (setq efrit-undo-view--changes changes
               tabulated-list-entries (mapcar #'efrit-undo-view--row (reverse changes)))
         (efrit-list-print)))
     #'efrit-show-error)))

(defun efrit-undo-view--file (name)
  "Return NAME, the name of a file, or its end if its column is too narrow."
  (let ((over (- (string-width name) (nth 1 (aref tabulated-list-format 2)))))
    (if (> over 0)
        (concat "…" (truncate-string-to-width name (string-width name) (1+ over)))
      name)))

(defun efrit-undo-view--row (change)
  "Return the entry of CHANGE, a plist of the sidecar, for the tabulated list."
  (let ((to (plist-get change :to)))
    (list (plist-get change :number)
          (seq-take
           (vector (propertize (plist-get change :label) 'face 'efrit-figures)
                   (propertize (plist-get change :kind) 'face 'efrit-tool)
                   (efrit-undo-view--file (concat (plist-get change :path)
                                                  (if to (concat " → " to) "")))
                   (format "+%s −%s" (or (plist-get change :added) "?")
                           (or (plist-get change :removed) "?"))
                   (pcase (plist-get change :state)
                     ("undone" "undone")
                     ("abandoned" "not made")
                     (_ (or (cdr (assoc (plist-get change :now) efrit-undo-view--state-texts)) "")))
                   (propertize (plist-get change :tool) 'face 'efrit-figures))
           (length tabulated-list-format)))))

(provide 'efrit-undo)
;;; efrit-undo.el ends here
