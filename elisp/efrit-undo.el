;;; efrit-undo.el --- Take back what the model changed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar knows how each file was before a change and after it, and
;; puts it back on disk; here its buffer follows.  What the person changed
;; since is never overwritten, unless the person says so.
;;
;; The model can take back its edits by tools, and come back to a checkpoint.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'efrit)
(require 'efrit-diff)
(require 'efrit-file)
(require 'efrit-loop)
(require 'efrit-plan)
(require 'efrit-seen)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

;;; Tools

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

;;; Public

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

(defun efrit-undo-sweep (loop)
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

;;; Taking back

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
    (efrit-seen-note loop file)
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

;;; Plans of the tools

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
             (efrit-undo--plan loop (efrit-undo--of-same-use last changes) then refused)
           (funcall refused (if path
                                (format "There is no edit of %s to take back" path)
                              "There is no edit to take back")))))
     (lambda (err) (funcall refused (efrit-error-text err))))))

(defun efrit-undo--of-same-use (last changes)
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
        (funcall then (efrit-undo--made-plan numbers (reverse shown)))
      (efrit-undo--call loop 'changes/show (list :number number)
                        (lambda (change)
                          (efrit-undo--plan loop numbers then refused (cons change shown)))
                        (lambda (err) (funcall refused (efrit-error-text err)))))))

(defun efrit-undo--made-plan (numbers shown)
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
   :diff (mapconcat (lambda (change) (efrit-undo--reversed (or (plist-get change :diff) "")))
                    shown "")))

(defun efrit-undo--reversed (diff)
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
      (efrit-tool-result (mapconcat #'efrit-undo-said outcomes "\n")
                         :status (if (seq-every-p #'caddr outcomes) 'error 'success))))))

(defun efrit-undo-said (outcome)
  "Return OUTCOME, one of those of `efrit-undo-changes', as text."
  (pcase-let ((`(,number ,path ,problem ,diff . ,more) outcome))
    (cond
     (problem
      (concat (efrit-tool-own (format "c%d of %s was not taken back: " number (or path "?")))
              problem
              (if diff (concat "\n" diff) "")))
     ((car more)
      (concat (efrit-tool-own
               (format "Took back c%d of %s on disk; its buffer in Emacs does not show that: "
                       number path))
              (car more)))
     (t (efrit-tool-own (format "Took back c%d of %s." number path))))))

(defun efrit-undo--checkpoint (call label)
  "Note a checkpoint with LABEL, and finish CALL with its name."
  (efrit-undo--call
   (efrit-tool-call-owner call) 'changes/checkpoint (and label (list :label label))
   (lambda (made)
     (efrit-tool-finish
      call (efrit-tool-own (format "Checkpoint %s%s." (plist-get made :checkpoint)
                                   (if label (format " (%s)" label) "")))))
   (lambda (err)
     (efrit-tool-finish call (efrit-tool-result (efrit-error-text err) :status 'error)))))

(provide 'efrit-undo)
;;; efrit-undo.el ends here
