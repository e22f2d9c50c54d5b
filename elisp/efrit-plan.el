;;; efrit-plan.el --- What a tool would change, before it does  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A tool that changes files first says how they would stand: a plan, which
;; the person is shown as a diff.  It is then made as a whole or not at all.
;; Before anything is changed, the sidecar keeps how the files were, and
;; afterwards how they are, so that it can be undone in another Emacs, too.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-diff)
(require 'efrit-file)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-seen)
(require 'efrit-tools)
(require 'efrit-turn)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-edit-unsaved-buffers 'leave
  "What becomes of an edit in a buffer with unsaved changes of the person's.
It is made in the buffer in any case.  `leave': the buffer is not saved, as
the model is told; `save': it is saved; `ask': the person is asked."
  :group 'efrit
  :type '(choice (const leave) (const save) (const ask)))

;;; Structs

(cl-defstruct (efrit-plan (:constructor efrit-plan-create) (:copier nil))
  "What a use of a tool would change.
CHANGES are `efrit-change's, in order.  SAID is what the tool says of them
once they are made.  SECRET says whether a file of secrets is among them.
REVISED says how the person changed the new text.  DIFF is the diff, or nil
while it is not known.  TAKES-BACK are the numbers of changes that are undone.
QUESTION is what the person is asked, where CHANGES do not say it.  FILES are
the files that it changes: their real names, whole, or in the project."
  changes said secret revised diff takes-back question files)

(define-error 'efrit-plan-refused "It cannot be done")

;;; Public: planning

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
       (efrit-plan--of planner loop given files then refused))
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
  (mapc #'efrit-change-let-go (efrit-plan-changes plan)))

(defun efrit-plan-text (plan)
  "Return what PLAN would change: a diff."
  (or (efrit-plan-diff plan)
      (setf (efrit-plan-diff plan)
            (mapconcat (lambda (change)
                         (efrit-plan--change-diff change (efrit-change-after change)))
                       (efrit-plan-changes plan) ""))))

(defun efrit-plan-asks (plan)
  "Return what the person is asked about PLAN, in a line."
  (or (efrit-plan-question plan)
      (mapconcat #'efrit-plan--counted (efrit-plan-changes plan) ", ")))

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

;;; Public: carrying out

(defun efrit-plan-carry-out (call)
  "Make what the plan of CALL has, and finish CALL with what came of it."
  (efrit-plan--ask-about-saving
   call (lambda () (efrit-plan--begin call))))

;;; Private: planning

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
  (efrit-turn-call
   loop 'changes/check (list :paths (vconcat paths))
   (lambda (checked)
     (funcall then
              (cl-loop for path in paths
                       for file across (plist-get checked :files)
                       for name = (efrit-file-name-there (efrit-loop-root loop)
                                                         (or (plist-get file :file) ""))
                       collect (cons path (plist-put file :file name)))))
   (lambda (err) (funcall refused (efrit-error-text err)))))

(defun efrit-plan--of (planner loop given files then refused)
  "Have PLANNER plan with GIVEN and FILES in LOOP.
Call THEN with the plan, or REFUSED with what is wrong."
  (let* ((plan (condition-case err
                   (funcall planner given files)
                 (efrit-plan-refused (cadr err))
                 (error (error-message-string err))))
         (problem (if (stringp plan)
                      plan
                    (efrit-plan--unread loop plan))))
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

(defun efrit-plan--unread (loop plan)
  "Return which file of PLAN the model in LOOP does not know as it is, or nil."
  (condition-case err
      (seq-some (lambda (change) (efrit-seen-problem loop change))
                (efrit-plan-changes plan))
    (error (error-message-string err))))

(defun efrit-plan--counted (change)
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

;;; Private: carrying out

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
    (efrit-loop-tell
     loop 'question
     (efrit-tool-call-create
      :owner loop :id (efrit-tool-call-id call) :name (efrit-tool-call-name call)
      :finish (lambda (result) (funcall then (plist-get result :text))))
     question options)))

(defun efrit-plan--begin (call)
  "Have the sidecar keep how the files of CALL are, then go on."
  (let* ((loop (efrit-tool-call-owner call))
         (changes (efrit-plan-changes (efrit-tool-call-plan call))))
    (efrit-turn-call-again
     loop 'changes/begin
     (list :tool_use_id (efrit-tool-call-id call) :tool (efrit-tool-call-name call)
           :files (vconcat (mapcar #'efrit-plan--told-before changes)))
     (lambda (begun)
       (cl-loop for change in changes
                for kept across (plist-get begun :changes)
                do (setf (efrit-change-number change) (plist-get kept :number)))
       (efrit-plan--make call))
     (lambda (err)
       (efrit-plan--end-with call (efrit-tool-result (efrit-error-text err) :status 'error))))))

(defun efrit-plan--told-before (change)
  "Return what the sidecar is told of CHANGE before it is made."
  (append (list :path (efrit-change-path change)
                :kind (symbol-name (efrit-change-kind change)))
          (and (efrit-change-to change) (list :to (efrit-change-to change)))
          (and (efrit-change-unsaved change)
               (list :buffer_text (efrit-json-sound (efrit-change-before change))))))

(defun efrit-plan--make (call)
  "Do what the plan of CALL has, all of it or nothing, and tell the sidecar."
  (let* ((changes (efrit-plan-changes (efrit-tool-call-plan call)))
         (made nil)
         (problem (condition-case err
                      (dolist (change changes)
                        (efrit-change-make change)
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
                      (ignore (efrit-change-unmake change))
                    ((error quit) (format "%s (%s)" (efrit-change-path change)
                                          (error-message-string err)))))
                made)))

(defun efrit-plan--tell-end (call outcome result)
  "Tell the sidecar of OUTCOME of CALL's plan, then finish with RESULT."
  (let ((changes (efrit-plan-changes (efrit-tool-call-plan call))))
    (efrit-turn-call-again
     (efrit-tool-call-owner call) 'changes/end
     (list :tool_use_id (efrit-tool-call-id call) :outcome outcome
           :files (vconcat (mapcar #'efrit-plan--told-after changes)))
     (lambda (_) (efrit-plan--end-with call result))
     (lambda (err)
       (efrit-plan--end-with
        call (efrit-tool-result (concat (plist-get result :text) "\n"
                                        (efrit-tool-own "It cannot be undone: ")
                                        (efrit-error-text err))
                                :status (intern (plist-get result :status))))))))

(defun efrit-plan--told-after (change)
  "Return what the sidecar is told of CHANGE once it is made, or was given up."
  (let ((buffer (efrit-change-buffer change)))
    (append (list :number (efrit-change-number change))
            (and (buffer-live-p buffer) (buffer-modified-p buffer)
                 (list :buffer_text (efrit-json-sound (efrit-file-text buffer)))))))

(defun efrit-plan--end-with (call result)
  "Finish CALL with RESULT."
  (let ((plan (efrit-tool-call-plan call)))
    (dolist (change (efrit-plan-changes plan))
      (dolist (file (delq nil (list (efrit-change-file change) (efrit-change-to-file change))))
        (efrit-seen-note (efrit-tool-call-owner call) file)))
    (unless efrit-change-keep-buffers
      (efrit-plan-drop plan))
    (efrit-tool-finish call result)))

(defun efrit-plan--result (call)
  "Return what the model is told of the plan of CALL, which was made."
  (let ((plan (efrit-tool-call-plan call)))
    (efrit-tool-result
     (string-join
      (append (list (efrit-tool-own (efrit-plan-said plan)))
              (delq nil (mapcar #'efrit-plan--unsaved-note (efrit-plan-changes plan)))
              (delq nil (mapcar #'efrit-plan--hooks-note (efrit-plan-changes plan)))
              (and (efrit-plan-revised plan)
                   (list (concat (efrit-tool-own
                                  "The person changed the new text before it was written:\n")
                                 (efrit-plan-revised plan)))))
      "\n")
     :summary (truncate-string-to-width (efrit-plan-said plan) 450 nil nil t))))

(defun efrit-plan--unsaved-note (change)
  "Return a line about CHANGE where it is in a buffer that is not saved, or nil."
  (and (eq (efrit-change-kind change) 'edit)
       (not (efrit-change-save change))
       (efrit-tool-own
        (format "%s has unsaved changes of the person's in its buffer: the edit is there, \
and not on disk; commands do not see it." (efrit-change-path change)))))

(defun efrit-plan--hooks-note (change)
  "Return what else was changed when CHANGE was saved, or nil."
  (let ((buffer (efrit-change-buffer change)))
    (when (and (memq (efrit-change-kind change) '(edit create)) (buffer-live-p buffer))
      (let ((diff (efrit-diff (efrit-change-after change) (efrit-file-text buffer)
                              (efrit-change-path change))))
        (unless (string-empty-p diff)
          (concat (efrit-tool-own "The hooks that run when it is saved changed more:\n")
                  diff))))))

(provide 'efrit-plan)
;;; efrit-plan.el ends here
