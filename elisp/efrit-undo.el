;;; efrit-undo.el --- Undo edits of the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Edits are undone by the person's commands and by tools of the model.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-edit)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

;;; Undoing

;; The sidecar knows how each file was before a change and after it, and
;; puts it back on disk; here its buffer follows.  What the person changed
;; since is never overwritten, unless the person says so.
;;
;; The model can take back its edits by tools, and come back to a checkpoint.

;;;; Tools

(efrit-define-tool undo_edit
    ((path "string" "" :optional t))
  "Take back your last edit that was not taken back. Refused where the person changed the \
file since."
  :policy ask
  :async t
  :plan #'efrit-undo--plan-last
  (efrit-undo--carry-out call))

(efrit-define-tool checkpoint
    ((label "string" "" :optional t))
  "Note how things stand, to come back to with restore_checkpoint."
  :policy allow
  :async t
  (efrit-undo--checkpoint call label))

(efrit-define-tool restore_checkpoint
    ((checkpoint "string" ""))
  "Take back all your edits since a checkpoint. What commands changed stays."
  :policy ask
  :async t
  :plan #'efrit-undo--plan-checkpoint
  (efrit-undo--carry-out call))

(defun efrit-undo-list (loop then failure)
  "Call THEN with the edits of LOOP, plists, the latest last; or FAILURE."
  (efrit-undo--call loop 'changes/list nil
                    (lambda (listed) (funcall then (append (plist-get listed :changes) nil)))
                    failure))

(defun efrit-undo-open-p (change)
  "Return non-nil if CHANGE, a plist of the sidecar's, can be taken back."
  (and (member (plist-get change :state) '("done" "begun"))
       (not (equal (plist-get change :now) "undone"))))

(defun efrit-undo-changes (loop numbers force then)
  "Take back the edits NUMBERS of LOOP, in that order.
With FORCE, also where the person changed the file since.  Call THEN with a
list of what came of each: (NUMBER PATH PROBLEM DIFF NOTE), where PROBLEM is
nil if it was taken back, else DIFF shows what the person changed, or is nil.
NOTE says why a buffer does not show what was taken back, or is nil."
  (efrit-undo--next loop numbers force nil then))

(defun efrit-undo-delete-leftovers (loop)
  "Remove what an Emacs left beside files that was killed while it wrote them.
Those are the files of edits in LOOP that were begun and did not end."
  (efrit-undo--call
   loop 'changes/list '(:open_only t)
   (lambda (listed)
     (seq-do (lambda (change)
               (let ((file (expand-file-name (plist-get change :path)
                                             (efrit-loop-root loop))))
                 (when (file-directory-p (file-name-directory file))
                   (mapc #'delete-file (efrit-file-leftovers file)))))
             (plist-get listed :changes)))
   #'ignore))

;;;; Taking back

(defun efrit-undo--call (loop method params then failure)
  "Call METHOD with PARAMS for the session of LOOP; then THEN or FAILURE."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id loop)) params)
   :timeout nil :success then :error failure))

(defun efrit-undo--next (loop numbers force outcomes then)
  "Take back NUMBERS of LOOP; FORCE, THEN as above; OUTCOMES are those before."
  (if (null numbers)
      (funcall then (nreverse outcomes))
    (efrit-undo--one
     loop (car numbers) force
     (lambda (outcome)
       (efrit-undo--next loop (cdr numbers) force (cons outcome outcomes) then)))))

(defun efrit-undo--one (loop number force then)
  "Take back the change NUMBER of LOOP; call THEN with the outcome.
FORCE as above."
  (efrit-undo--call
   loop 'changes/show (list :number number)
   (lambda (shown)
     (if-let* ((refusal (and (not force) (efrit-undo--refusal loop shown))))
         (funcall then `(,number ,(plist-get shown :path) ,@refusal))
       (efrit-undo--on-disk loop number shown force then)))
   (lambda (err) (funcall then (list number nil (efrit-error-text err) nil)))))

(defun efrit-undo--on-disk (loop number shown force then)
  "Have the sidecar take back the change NUMBER of LOOP, SHOWN; then the buffer.
FORCE and THEN as above."
  (let ((path (plist-get shown :path)))
    (efrit-undo--call
     loop 'changes/undo (list :number number :force (if force t :json-false))
     (lambda (undone)
       (funcall then (list number path nil nil (efrit-undo--follow loop shown undone))))
     (lambda (err)
       (funcall then (list number path (efrit-error-text err)
                           (plist-get (efrit-rpc-error-data err) :since)))))))

(defun efrit-undo--file (loop name)
  "Return NAME, a file as the sidecar of LOOP has it, as Emacs has it."
  (efrit-file-name-there (efrit-loop-root loop) name))

(defun efrit-undo--buffer (loop shown)
  "Return the buffer of the file that the change SHOWN of LOOP left, or nil."
  (let ((to (plist-get shown :to)))
    (efrit-file-buffer (if to
                           (expand-file-name to (efrit-loop-root loop))
                         (efrit-undo--file loop (plist-get shown :file))))))

(defun efrit-undo--refusal (loop shown)
  "Return why the buffer of the change SHOWN of LOOP forbids to take it back.
That is (PROBLEM DIFF), as `efrit-undo-changes' has them, or nil."
  (condition-case err
      (when-let* ((diff (efrit-undo--unsaved-diff loop shown)))
        (list "its buffer has changes that are not saved" diff))
    (error (list (concat "its buffer cannot be looked at: " (error-message-string err)) nil))))

(defun efrit-undo--unsaved-diff (loop shown)
  "Return what is not saved in the buffer of the change SHOWN of LOOP, or nil.
That is the person's own: what came of the change does not count."
  (let ((buffer (efrit-undo--buffer loop shown)))
    (when (and buffer (buffer-modified-p buffer))
      (let* ((left (or (plist-get shown :buffer_text_after)
                       (efrit-undo--disk-text buffer)))
             (diff (efrit-diff left (efrit-file-text buffer) (plist-get shown :path))))
        (and (not (string-empty-p diff)) diff)))))

(defun efrit-undo--disk-text (buffer)
  "Return the text of the file of BUFFER on disk, as BUFFER would show it."
  (let ((file (buffer-file-name buffer))
        (coding (buffer-local-value 'buffer-file-coding-system buffer)))
    (with-temp-buffer
      (let ((coding-system-for-read coding))
        (when (file-exists-p file)
          (insert-file-contents file)))
      (buffer-string))))

(defun efrit-undo--follow (loop shown undone)
  "Have the buffer of the change SHOWN of LOOP follow UNDONE, the sidecar's answer.
Return why it does not, a string, or nil."
  (condition-case err
      (ignore (efrit-undo--show loop shown undone))
    (error (error-message-string err))))

(defun efrit-undo--show (loop shown undone)
  "Have the buffer of the change SHOWN of LOOP show UNDONE, the sidecar's answer."
  (let ((buffer (efrit-undo--buffer loop shown))
        (file (efrit-undo--file loop (plist-get undone :file)))
        (text (plist-get shown :buffer_text_before)))
    (efrit-read-files-note loop file)
    (when buffer
      (cond
       ((not (eq (plist-get undone :exists) t)) (efrit-undo--close buffer))
       (t (with-current-buffer buffer
            (unless (equal (file-truename buffer-file-name) (file-truename file))
              (efrit-file-visit-as file))
            (unless (eq (plist-get undone :disk) :json-false)
              (set-buffer-modified-p nil)
              (efrit-file-reload buffer buffer-file-coding-system))
            (when text
              (efrit-file-set-text buffer text)
              (efrit-file-set-modified (not (equal text (efrit-undo--disk-text buffer)))))))))))

(defun efrit-undo--close (buffer)
  "Kill BUFFER, whose file is gone, unless it is in a window."
  (with-current-buffer buffer
    (set-buffer-modified-p nil)
    (unless (get-buffer-window buffer t)
      (kill-buffer buffer))))

;;;; Plans of the tools

(defun efrit-undo--plan-last (loop given then refused)
  "Plan to take back the last edit in LOOP; GIVEN are the tool's arguments.
Call THEN with the plan, or REFUSED with what is wrong."
  (let ((path (plist-get given :path)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (let ((last (car (last (seq-filter
                               (lambda (change)
                                 (and (efrit-undo-open-p change)
                                      (or (null path)
                                          (member path (list (plist-get change :path)
                                                             (plist-get change :to))))))
                               changes)))))
         (if last
             (efrit-undo--plan loop (efrit-undo--same-call-numbers last changes) then refused)
           (funcall refused (if path
                                (format "There is no edit of %s to take back" path)
                              "There is no edit to take back")))))
     (lambda (err) (funcall refused (efrit-error-text err))))))

(defun efrit-undo--same-call-numbers (last changes)
  "Return the numbers of all edits of the use that made LAST, latest first.
CHANGES are those of the session."
  (nreverse
   (mapcar (lambda (change) (plist-get change :number))
           (seq-filter (lambda (change)
                         (and (efrit-undo-open-p change)
                              (equal (plist-get change :tool_use_id)
                                     (plist-get last :tool_use_id))))
                       changes))))

(defun efrit-undo--plan-checkpoint (loop given then refused)
  "Plan to come back to a checkpoint in LOOP; GIVEN are the tool's arguments.
Call THEN with the plan, or REFUSED with what is wrong."
  (efrit-undo--call
   loop 'changes/since (list :checkpoint (plist-get given :checkpoint))
   (lambda (since)
     (let ((numbers (append (plist-get since :numbers) nil)))
       (if numbers
           (efrit-undo--plan loop numbers then refused)
         (funcall refused "Nothing was changed since that checkpoint"))))
   (lambda (err) (funcall refused (efrit-error-text err)))))

(defun efrit-undo--plan (loop numbers then refused &optional shown)
  "Plan to take back NUMBERS of LOOP; THEN and REFUSED as above.
SHOWN are the changes that were looked at, the latest first."
  (let ((number (nth (length shown) numbers)))
    (if (null number)
        (funcall then (efrit-undo--make-plan numbers (reverse shown)))
      (efrit-undo--call loop 'changes/show (list :number number)
                        (lambda (change)
                          (efrit-undo--plan loop numbers then refused (cons change shown)))
                        (lambda (err) (funcall refused (efrit-error-text err)))))))

(defun efrit-undo--make-plan (numbers shown)
  "Return the plan to take back NUMBERS; SHOWN are the edits, in that order."
  (efrit-plan-create
   :takes-back numbers
   :files (seq-mapcat (lambda (change)
                        (delq nil (list (plist-get change :path) (plist-get change :to)
                                        (plist-get change :file))))
                      shown)
   :question (format "Take back %s"
                     (mapconcat (lambda (change)
                                  (format "%s of %s" (plist-get change :kind)
                                          (plist-get change :path)))
                                shown ", "))
   :diff (mapconcat (lambda (change) (efrit-undo--reverse-diff (or (plist-get change :diff) "")))
                    shown "")))

(declare-function diff-reverse-direction "diff-mode" (start end))

(defun efrit-undo--reverse-diff (diff)
  "Return DIFF, a unified one, the other way round."
  (with-temp-buffer
    (insert diff)
    (delay-mode-hooks (diff-mode))
    (let ((inhibit-read-only t))
      (ignore-errors
        (diff-reverse-direction (point-min) (point-max))))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun efrit-undo--carry-out (call)
  "Take back what the plan of CALL has, and finish CALL."
  (efrit-undo-changes
   (efrit-tool-call-owner call) (efrit-plan-takes-back (efrit-tool-call-plan call)) nil
   (lambda (outcomes)
     (efrit-tool-finish
      call
      (efrit-tool-result (mapconcat #'efrit-undo-outcome-text outcomes "\n")
                         :status (if (seq-every-p #'caddr outcomes) 'error 'success))))))

(defun efrit-undo-outcome-text (outcome)
  "Return OUTCOME, one of those of `efrit-undo-changes', as text."
  (pcase-let ((`(,number ,path ,problem ,diff . ,more) outcome))
    (cond
     (problem
      (concat (efrit-tool-mark-own (format "c%d of %s was not taken back: " number (or path "?")))
              problem
              (if diff (concat "\n" diff) "")))
     ((car more)
      (concat (efrit-tool-mark-own
               (format "Took back c%d of %s on disk; its buffer in Emacs does not show that: "
                       number path))
              (car more)))
     (t (efrit-tool-mark-own (format "Took back c%d of %s." number path))))))

(defun efrit-undo--checkpoint (call label)
  "Note a checkpoint with LABEL, and finish CALL with its name."
  (efrit-undo--call
   (efrit-tool-call-owner call) 'changes/checkpoint (and label (list :label label))
   (lambda (made)
     (efrit-tool-finish
      call (efrit-tool-mark-own (format "Checkpoint %s%s." (plist-get made :checkpoint)
                                        (if label (format " (%s)" label) "")))))
   (lambda (err)
     (efrit-tool-finish call (efrit-tool-result (efrit-error-text err) :status 'error)))))

;;; Commands

;; The commands that undo edits for a person: the last one, or those
;; of a whole session, in a list that shows the diff of each.

(defvar-local efrit-undo-view--changes nil
  "The changes that are listed here, plists of the sidecar's.")

(defconst efrit-undo-view--state-texts
  '(("as_left" . "as the model left it") ("changed" . "changed since")
    ("undone" . "taken back") ("unknown" . "not known"))
  "Texts for the current states of files.")

(defvar efrit-undo-view-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key ,command) '(("\r" efrit-undo-view-diff)
                                      ("d" efrit-undo-view-diff)
                                      ("u" efrit-undo-view-one)
                                      ("U" efrit-undo-view-all)))
      (define-key map key command))
    map)
  "Keys of `efrit-undo-view-mode'.")

(define-derived-mode efrit-undo-view-mode tabulated-list-mode "Efrit-Changes"
  "Major mode that lists the edits of a session, latest first.

\\{efrit-undo-view-mode-map}"
  (setq tabulated-list-format [("Nr" 5 nil) ("Done" 8 nil) ("File" 40 t) ("Lines" 12 nil)
                               ("Now" 24 t) ("Tool" 14 t)]
        tabulated-list-padding 1)
  (setq-local revert-buffer-function #'efrit-undo-view--revert)
  (tabulated-list-init-header))

;;;###autoload
(defun efrit-undo (&optional force)
  "Take back the last edit that the model made in the session here.
Where the file was changed since, the difference is shown, and nothing is
done; with a prefix argument, as FORCE, it is taken back all the same."
  (interactive "P")
  (let ((loop (efrit-loop-current)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (let ((last (car (last (seq-filter #'efrit-undo-open-p changes)))))
         (if (null last)
             (message "No edits left to undo")
           (efrit-undo-view--take-back loop (list (plist-get last :number))
                                       (and force t)))))
     #'efrit-undo-view--failed)))

;;;###autoload
(defun efrit-undo-session (&optional loop)
  "List what the model changed in LOOP, by default the session here.
There it can be looked at and taken back, one by one or all."
  (interactive)
  (let* ((loop (or loop (efrit-loop-current)))
         (buffer (get-buffer-create (format "*efrit changes: %s*" (efrit-loop-id loop)))))
    (with-current-buffer buffer
      (efrit-undo-view-mode)
      (setq efrit-loop-here loop)
      (efrit-undo-view--revert))
    (pop-to-buffer buffer)))

(defun efrit-undo-view-diff ()
  "Show what the change at point changed, and what was changed since."
  (interactive nil efrit-undo-view-mode)
  (let ((number (efrit-undo-view--number)))
    (efrit-sidecar-request-async
     'changes/show (list :session_id (efrit-loop-id efrit-loop-here) :number number)
     :success (lambda (shown) (efrit-diff-show (efrit-undo-view--diffs shown)))
     :error #'efrit-undo-view--failed)))

(defun efrit-undo-view-one (&optional force)
  "Take back the change at point.
With a prefix argument, as FORCE, do so whatever the file holds now."
  (interactive "P" efrit-undo-view-mode)
  (efrit-undo-view--take-back efrit-loop-here (list (efrit-undo-view--number)) (and force t)))

(defun efrit-undo-view-all (&optional force)
  "Take back all edits of the session, the latest first.
Files that were changed since stay as they are, and the difference is shown;
with a prefix argument, as FORCE, they are put back as well."
  (interactive "P" efrit-undo-view-mode)
  (efrit-check-mode 'efrit-undo-view-mode)
  (let ((numbers (mapcar (lambda (change) (plist-get change :number))
                         (seq-filter #'efrit-undo-open-p
                                     (reverse efrit-undo-view--changes)))))
    (unless numbers
      (user-error "There is nothing to take back"))
    (when (yes-or-no-p (format "Take back %d change%s? " (length numbers)
                               (if (cdr numbers) "s" "")))
      (efrit-undo-view--take-back efrit-loop-here numbers (and force t)))))

(defun efrit-undo-view--number ()
  "Return the number of the change at point."
  (efrit-check-mode 'efrit-undo-view-mode)
  (or (tabulated-list-get-id)
      (user-error "No change is here")))

(defun efrit-undo-view--failed (err)
  "Tell the person of ERR."
  (message "efrit: %s" (efrit-error-text err)))

(defun efrit-undo-view--take-back (loop numbers force)
  "Take back NUMBERS of LOOP and tell what came of it; with FORCE, in any case."
  (efrit-undo-changes
   loop numbers force
   (lambda (outcomes)
     (let ((refused (seq-filter #'caddr outcomes)))
       (mapc (apply-partially #'efrit-undo-view--inform loop)
             (seq-remove #'caddr outcomes))
       (efrit-undo-view--refresh loop)
       (when refused
         (efrit-diff-show (mapconcat #'efrit-undo-outcome-text refused "\n")))
       (message "%s" (efrit-undo-view--outcome-text outcomes refused))))))

(defun efrit-undo-view--inform (loop outcome)
  "Have the model of LOOP learn OUTCOME, an edit of its that was taken back."
  (pcase-let ((`(,number ,path . ,_) outcome))
    (efrit-loop-queue-note
     loop
     (format "[The person took back your edit c%d: %s is as it was before it.]" number path)
     (format "You took back c%d of %s; the model learns it with its next turn" number path))))

(defun efrit-undo-view--outcome-text (outcomes refused)
  "Return what is said of OUTCOMES, of which some were REFUSED."
  (let ((done (- (length outcomes) (length refused))))
    (concat (if (and (= done 1) (null refused))
                (efrit-undo-outcome-text (car outcomes))
              (format "Took back %d of %d" done (length outcomes)))
            (if refused
                "; files changed since were left alone: a prefix argument puts them back, too"
              ""))))

(defun efrit-undo-view--refresh (loop)
  "Bring the list of the edits of LOOP up to date, where there is one."
  (when-let* ((buffer (get-buffer (format "*efrit changes: %s*" (efrit-loop-id loop)))))
    (with-current-buffer buffer
      (efrit-undo-view--revert))))

(defun efrit-undo-view--revert (&rest _)
  "Ask for the edits of the session of this buffer, and list them."
  (let ((buffer (current-buffer)))
    (efrit-undo-list efrit-loop-here
                     (lambda (changes)
                       (when (buffer-live-p buffer)
                         (with-current-buffer buffer
                           (efrit-undo-view--fill changes))))
                     #'efrit-undo-view--failed)))

(defun efrit-undo-view--fill (changes)
  "Fill this buffer with the edits of the session, the latest first.
CHANGES are the sidecar's plists."
  (setq efrit-undo-view--changes changes
        tabulated-list-entries (mapcar #'efrit-undo-view--row (reverse changes)))
  (tabulated-list-print t))

(defun efrit-undo-view--row (change)
  "Return the row of CHANGE."
  (let ((to (plist-get change :to)))
    (list (plist-get change :number)
          (vector (plist-get change :label)
                  (plist-get change :kind)
                  (concat (plist-get change :path) (if to (concat " → " to) ""))
                  (format "+%s −%s" (or (plist-get change :added) "?")
                          (or (plist-get change :removed) "?"))
                  (pcase (plist-get change :state)
                    ("undone" "taken back")
                    ("abandoned" "was not made")
                    (_ (or (cdr (assoc (plist-get change :now) efrit-undo-view--state-texts)) "")))
                  (plist-get change :tool)))))

(defun efrit-undo-view--diffs (shown)
  "Return the diff of the change SHOWN, and what was changed since."
  (let ((since (plist-get shown :since)))
    (concat (plist-get shown :diff)
            (if since (concat "\nChanged since:\n" since) ""))))

(provide 'efrit-undo)
;;; efrit-undo.el ends here
