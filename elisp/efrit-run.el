;;; efrit-run.el --- The tools of a turn  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Runs what a reply asks for, each use as permissions have it.  What has
;; effects runs in the order in which the model wrote it: behind everything
;; before it, and before everything behind it.  In between, what only reads
;; runs side by side in the sidecar, and one after the other in this Emacs.
;; Every use ends with a result in the work log: what the tool gave, an
;; error, or that the person said no.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-host)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-turn)
(require 'efrit-permissions)
(require 'efrit-plan)
(require 'efrit-reply)
(require 'efrit-seen)
(require 'efrit-sidecar)
(require 'efrit-sync)
(require 'efrit-tools)
(require 'seq)

;;; Structs

(cl-defstruct (efrit-use (:constructor efrit-use-create) (:copier nil))
  "A use of a tool in a turn.
ID and NAME are the model's; ARGUMENTS, a JSON text, are what the sidecar
read, with what its tool makes of it: the one text that is decided about,
shown, recorded and run.  PROBLEM is what is wrong with arguments that are
none, MISFIT with those that do not fit the tool's schema, see `efrit-block'.
STATE is `waiting', `planning', `asking', `denied', `running', or `done'.
READY says whether it may run, or make its plan, when its turn comes.  PLAN is
what a tool of this Emacs would change, see efrit-plan.el.  RESULT is the envelope, a
plist, without data.  QUESTION is what the person is asked, CONFIRM the id
of the sidecar's question.  GUARD says why the person is asked whatever was
allowed before, ALLOWED whether the person has allowed this very use.  TOKEN is the sidecar's call under way, CALL the
`efrit-tool-call' of a tool of this Emacs.  BEGUN and SECONDS say when
it began to run and how long it ran."
  id name arguments problem misfit (state 'waiting) ready plan result question confirm
  guard allowed token call begun seconds)

(defvar efrit-run--listed nil
  "The sidecars' tools: an alist of hosts and alists.
A host is its name, nil for this machine; behind it stand names of tools,
each with what `tools/list' says of it, a plist.")

;;; Public

(defun efrit-run-tools (loop)
  "Run the tools that the reply of LOOP asks for."
  (setf (efrit-loop-run loop)
        (mapcar (apply-partially #'efrit-run--use loop)
                (efrit-reply-tool-uses (efrit-loop-reply loop))))
  (dolist (use (efrit-loop-run loop))
    (efrit-loop-tell loop 'use use))
  (efrit-run--know-tools loop (lambda () (efrit-run--decide-all loop))))

(defun efrit-run-stop (loop)
  "Stop the tools of LOOP."
  (dolist (use (efrit-loop-run loop))
    (unless (eq (efrit-use-state use) 'done)
      (when (efrit-use-token use)
        (efrit-sidecar-cancel (efrit-use-token use)))
      (when (efrit-use-call use)
        (setf (efrit-tool-call-finish (efrit-use-call use)) nil)
        (efrit-tool-stop (efrit-use-call use)))
      (unless (eq (efrit-use-state use) 'running)
        (efrit-run--drop-plan use))
      (setf (efrit-use-state use) 'done)
      (efrit-loop-tell loop 'use use)))
  (setf (efrit-loop-run loop) nil))

(defun efrit-run-answer (loop use decision &optional scope reason grant)
  "Answer the question of USE in LOOP with DECISION, `allow' or `deny'.
SCOPE says for how long: `session' and `project' are remembered.  REASON,
why it is denied, goes to the model.  GRANT says what is allowed for that
long, see `efrit-run-grants': `exactly' this, by default, or what is `alike'."
  (let ((inhibit-quit t))
    (efrit-run--answer loop use decision scope reason grant)))

(defun efrit-run--answer (loop use decision scope reason grant)
  "Answer the question of USE in LOOP with DECISION, SCOPE, REASON and GRANT."
  (when (eq (efrit-use-state use) 'asking)
    (pcase (and scope (efrit-run--remembered loop use decision grant))
      (`(,rule ,words) (efrit-run--remember loop rule words scope)))
    (if (eq decision 'deny)
        (efrit-run--deny loop use reason)
      (setf (efrit-use-allowed use) t)
      (efrit-run--allow loop use))
    (when scope
      (efrit-run--decide-again loop))))

(defun efrit-run-grants (loop use)
  "Return what the person who is asked about USE in LOOP may allow for longer.
It is as `efrit-permissions-grants' gives it; nil where it is always asked."
  (unless (or (efrit-use-guard use) (efrit-use-confirm use))
    (efrit-permissions-grants (efrit-use-name use) (efrit-run--subjects loop use))))

(defun efrit-run-refusal (loop use)
  "Return (RULE WORDS), by which what USE in LOOP is about is denied for longer."
  (efrit-permissions-refusal (efrit-use-name use) (efrit-run--subjects loop use)))

(defun efrit-run--remembered (loop use decision grant)
  "Return (RULE WORDS) to be remembered of DECISION on USE in LOOP, or nil.
GRANT is as in `efrit-run-answer'."
  (if (eq decision 'deny)
      (efrit-run-refusal loop use)
    (cdr (assq (or grant 'exactly) (efrit-run-grants loop use)))))

(defun efrit-run--remember (loop rule words scope)
  "Remember RULE, in WORDS, in LOOP for SCOPE, and say so there."
  (pcase scope
    ('session (push rule (efrit-loop-rules loop)))
    ('project (efrit-permissions-remember (efrit-loop-root loop) rule)))
  (efrit-loop-tell loop 'note
                   (format "%s %s: %s; M-x efrit-permissions revokes it"
                           (if (eq (nth 2 rule) 'deny) "Denied" "Allowed")
                           (if (eq scope 'session) "this session" "from now on in this project")
                           words)))

(defun efrit-run-asking (loop)
  "Return the first use in LOOP that waits for the person's answer, or nil."
  (seq-find (lambda (use) (eq (efrit-use-state use) 'asking)) (efrit-loop-run loop)))

;;; Deciding

(defun efrit-run--use (loop block)
  "Return the use of a tool that BLOCK of a reply in LOOP asks for."
  (let ((problem (efrit-block-problem block))
        (misfit (efrit-block-misfit block))
        (name (efrit-block-name block)))
    (efrit-use-create :id (efrit-block-id block) :name name
                      :arguments (cond (problem "{}")
                                       (misfit (efrit-block-input block))
                                       (t (efrit-tool-resolved name loop
                                                               (efrit-block-input block))))
                      :problem problem :misfit misfit)))

(defun efrit-run--know-tools (loop then)
  "Learn what the tools of this turn of LOOP are like, then call THEN.
The sidecar is asked where one is not known: it may have got tools since."
  (let ((host (efrit-host-of-session (efrit-loop-id loop))))
    (if (and (assoc host efrit-run--listed)
             (seq-every-p (lambda (use)
                            (or (efrit-tool-named (efrit-use-name use))
                                (efrit-run--listing loop use)))
                          (efrit-loop-run loop)))
        (funcall then)
      (efrit-sidecar-request-async
       'tools/list nil
       :host host
       :success (lambda (listed)
                  (setf (alist-get host efrit-run--listed nil nil #'equal)
                        (mapcar (lambda (tool) (cons (plist-get tool :name) tool))
                                (plist-get listed :tools)))
                  (funcall then))
       :error (lambda (err) (efrit-loop-happen loop 'failed (efrit-error-text err)))))))

(defun efrit-run--listing (loop use)
  "Return the entry of the tool of USE in the list of LOOP's sidecar, or nil."
  (let ((host (efrit-host-of-session (efrit-loop-id loop))))
    (cdr (assoc (efrit-use-name use) (cdr (assoc host efrit-run--listed))))))

(defun efrit-run-policy (loop use)
  "Return the policy of the tool of USE in LOOP."
  (if-let* ((tool (efrit-tool-named (efrit-use-name use))))
      (efrit-tool-policy tool)
    (intern (or (plist-get (efrit-run--listing loop use) :policy) "allow"))))

(defun efrit-run-effects-p (loop use)
  "Return non-nil if the tool of USE in LOOP does more than to read."
  (if-let* ((tool (efrit-tool-named (efrit-use-name use))))
      (efrit-tool-effects tool)
    (eq t (plist-get (efrit-run--listing loop use) :has_effects))))

(defun efrit-run--decide (loop use)
  "Return what permissions say of USE in LOOP.
Where rules cannot be read, and where something of its own wants it, the
person is asked."
  (setf (efrit-use-guard use) (efrit-run--guard loop use))
  (let ((decision (condition-case err
                      (efrit-permissions-decide
                       (efrit-use-name use) (efrit-run--subjects loop use)
                       (efrit-run-policy loop use) (efrit-run-rules loop))
                    (error (message "efrit: permissions cannot be read: %s"
                                    (error-message-string err))
                           'ask))))
    (if (and (eq decision 'allow) (efrit-use-guard use)) 'ask decision)))

(defun efrit-run-rules (loop)
  "Return the rules that LOOP works by, in the order in which they count."
  (append (efrit-loop-rules loop)
          (efrit-permissions-of (efrit-loop-root loop))
          (efrit-loop-option loop 'efrit-permission-rules)))

(defun efrit-run--subjects (loop use)
  "Return what USE in LOOP is about: the files are those that are there."
  (efrit-permissions-subjects (efrit-use-name use) (efrit-use-arguments use)
                              (efrit-run--files loop use)))

(defun efrit-run--files (loop use)
  "Return the files in the plan of USE in LOOP, by their names in the project."
  (when-let* ((plan (efrit-use-plan use)))
    (let ((root (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop)))))
      (mapcar (lambda (file) (string-remove-prefix root file))
              (efrit-plan-files plan)))))

(defun efrit-run--guard (loop use)
  "Return why the person is asked about USE in LOOP whatever was allowed, or nil."
  (let* ((plan (efrit-use-plan use))
         (files (append (efrit-run--files loop use)
                        (and (efrit-run--plans-p use)
                             (cl-loop for subject in (efrit-run--subjects loop use)
                                      when (plist-get subject :file)
                                      collect (plist-get subject :text)))))
         (running (seq-find #'efrit-permissions-always-asks-p files)))
    (cond ((and plan (efrit-plan-secret plan)) "Files of this name usually hold secrets.")
          (running (format "%s is run or obeyed by being there." running))
          (t (efrit-tool-guarded (efrit-use-name use) loop (efrit-use-arguments use))))))

(defun efrit-run--decide-all (loop)
  "Start, ask about, or deny each use of LOOP.
One that has a plan is asked about when its turn comes, since what went
before it may change the same file."
  (dolist (use (efrit-loop-run loop))
    (pcase (cond ((efrit-use-problem use) 'unreadable)
                 ((efrit-use-misfit use) 'misfit)
                 (t (efrit-run--decide loop use)))
      ('unreadable (efrit-run--refuse-unreadable loop use))
      ('misfit (efrit-run--refuse-misfit loop use))
      ('deny (efrit-run--deny loop use))
      ((and 'ask (guard (not (efrit-run--plans-p use))))
       (efrit-run--ask loop use))
      (_ (setf (efrit-use-ready use) t))))
  (efrit-run--next loop))

(defun efrit-run--decide-again (loop)
  "Look anew at what the person is asked in LOOP: the answer may be known now."
  (dolist (use (efrit-loop-run loop))
    (when (and (eq (efrit-use-state use) 'asking) (null (efrit-use-confirm use)))
      (pcase (efrit-run--decide loop use)
        ('allow (efrit-run--allow loop use))
        ('deny (efrit-run--deny loop use))))))

(defun efrit-run--allow (loop use)
  "Have USE of LOOP run when its turn comes."
  (setf (efrit-use-ready use) t)
  (efrit-run--set loop use 'waiting)
  (efrit-run--next loop))

(defun efrit-run--ask (loop use &optional question)
  "Ask the person about USE in LOOP, by QUESTION, or what its tool has asked."
  (setf (efrit-use-state use) 'asking
        (efrit-use-question use)
        (or question
            (and (efrit-use-plan use) (efrit-plan-asks (efrit-use-plan use)))
            (efrit-tool-asked (efrit-use-name use) loop (efrit-use-arguments use))))
  (efrit-loop-tell loop 'ask use))

(defun efrit-run--deny (loop use &optional reason)
  "Book that the person does not allow USE in LOOP, and REASON, if any."
  (efrit-run--refuse
   loop use
   (if reason
       (format "This use of %s was not allowed: %s" (efrit-use-name use) reason)
     (format "The person did not allow this use of %s." (efrit-use-name use)))
   "Ask for it in another way, or do without."
   (and reason t)))

(defun efrit-run--refuse-unreadable (loop use)
  "Book that USE in LOOP did not run, since its input could not be read."
  (efrit-run--refuse
   loop use (format "%s was not run: %s" (efrit-use-name use) (efrit-use-problem use))
   "Call it again with one whole object, each key once; in smaller parts if it was cut off."))

(defun efrit-run--refuse-misfit (loop use)
  "Book that USE in LOOP did not run, since its input does not fit the tool."
  (efrit-run--refuse
   loop use (format "%s was not run: %s" (efrit-use-name use) (efrit-use-misfit use))
   "Call it again with arguments that fit its schema."))

(defun efrit-run--refuse (loop use text message &optional said)
  "Book that USE in LOOP did not run; TEXT is why, MESSAGE what to do about it.
SAID is non-nil if the person said some of it."
  (efrit-run--set loop use 'denied)
  (efrit-run--drop-plan use)
  (efrit-run--record
   loop use (efrit-tool-result text :status 'error :message message :said said)))

;;; Plans

(defun efrit-run--plans-p (use)
  "Return non-nil if the tool of USE has a plan before it does anything."
  (when-let* ((tool (efrit-tool-named (efrit-use-name use))))
    (efrit-tool-plan tool)))

(defun efrit-run--plan (loop use)
  "Have the tool of USE in LOOP say what it would change, then decide."
  (efrit-run--set loop use 'planning)
  (efrit-plan-make
   loop (efrit-tool-named (efrit-use-name use)) (efrit-use-arguments use)
   (lambda (plan)
     (setf (efrit-use-plan use) plan)
     (efrit-run--allow loop use))
   (lambda (problem)
     (efrit-run--record loop use (efrit-tool-result problem :status 'error)))))

(defun efrit-run--drop-plan (use)
  "Let go of the plan of USE, which is not made."
  (when (efrit-use-plan use)
    (efrit-plan-drop (efrit-use-plan use))))

;;; Running

(defun efrit-run--next (loop)
  "Start each use of LOOP whose turn it is."
  (let ((before nil))
    (dolist (use (efrit-loop-run loop))
      (when (and (efrit-use-ready use)
                 (eq (efrit-use-state use) 'waiting)
                 (eq (efrit-loop-state loop) 'running)
                 (not (seq-some (lambda (earlier) (efrit-run--after-p loop use earlier))
                                before)))
        (efrit-run--start loop use))
      (unless (memq (efrit-use-state use) '(denied done))
        (push use before)))))

(defun efrit-run--after-p (loop use earlier)
  "Return non-nil if USE of LOOP has to wait until EARLIER has ended."
  (or (efrit-run-effects-p loop use)
      (efrit-run-effects-p loop earlier)
      (and (efrit-tool-named (efrit-use-name use))
           (efrit-tool-named (efrit-use-name earlier)))))

(defun efrit-run--start (loop use)
  "Run USE in LOOP, or make its plan; its turn has come."
  (if (and (efrit-run--plans-p use) (null (efrit-use-plan use)))
      (efrit-run--plan loop use)
    (efrit-run--run-or-ask loop use)))

(defun efrit-run--set (loop use state)
  "Put USE of LOOP into STATE, and tell."
  (setf (efrit-use-state use) state)
  (when (eq state 'running)
    (setf (efrit-use-begun use) (float-time)))
  (when (and (eq state 'done) (efrit-use-begun use))
    (setf (efrit-use-seconds use) (- (float-time) (efrit-use-begun use))))
  (efrit-loop-tell loop 'use use))

(defun efrit-run--call (loop use)
  "Call the sidecar's tool of USE in LOOP; it is told of buffers not saved first."
  (efrit-sync-flush)
  (efrit-run--set loop use 'running)
  (setf (efrit-use-token use)
        (efrit-turn-call
         loop 'tools/call
         `(:name ,(efrit-use-name use) :arguments_json ,(efrit-use-arguments use)
                 :tool_use_id ,(efrit-use-id use) :include_data :json-false
                 ,@(and (efrit-use-confirm use)
                        (list :confirm_id (efrit-use-confirm use))))
         (lambda (envelope) (efrit-run--called loop use envelope))
         (lambda (err) (efrit-run--call-failed loop use err)))))

(defun efrit-run--called (loop use envelope)
  "Take ENVELOPE, what the sidecar's tool of USE in LOOP gave."
  (setf (efrit-use-token use) nil)
  (if (not (equal (plist-get envelope :status) "needs_confirmation"))
      (efrit-run--done loop use envelope)
    (let ((confirm (plist-get envelope :confirm))
          (was-asked (and (null (efrit-use-question use)) (eq (efrit-run-policy loop use) 'ask))))
      (setf (efrit-use-confirm use) (plist-get confirm :id))
      (if was-asked
          (efrit-run--call loop use)
        (efrit-run--ask loop use (plist-get confirm :question))))))

(defun efrit-run--call-failed (loop use err)
  "Book that the call of USE in LOOP failed with ERR.
When the sidecar died, it is asked again: what ran does not run twice."
  (setf (efrit-use-token use) nil)
  (if (eq (car err) 'efrit-sidecar-died)
      (efrit-run--call-again loop use)
    (efrit-run--record loop use (efrit-tool-result (efrit-error-text err) :status 'error))))

(defun efrit-run--call-again (loop use)
  "Call the tool of USE in LOOP once more, unless that was tried before."
  (if (efrit-use-seconds use)
      (efrit-loop-happen loop 'failed "The sidecar died again and again while a tool ran")
    (setf (efrit-use-seconds use) 0)
    ;; The new sidecar is to know of the buffers before it runs the tool.
    (efrit-sync-forget)
    (efrit-run--call loop use)))

(defun efrit-run--run-or-ask (loop use)
  "Run USE of LOOP, or ask about it, or deny it.
Its turn has come, and things may stand otherwise than when the reply came."
  (pcase (if (efrit-use-allowed use) 'allow (efrit-run--decide loop use))
    ('deny (efrit-run--deny loop use))
    ('ask (efrit-run--ask loop use))
    ((guard (not (efrit-tool-named (efrit-use-name use))))
     (efrit-run--call loop use))
    (_ (efrit-run--set loop use 'running)
       (efrit-later #'efrit-run--here loop use (efrit-loop-step loop)))))

(defun efrit-run--here (loop use step)
  "Run USE of LOOP in this Emacs, if nothing was begun there after STEP."
  (when (and (= step (efrit-loop-step loop)) (eq (efrit-use-state use) 'running))
    (let ((call (efrit-tool-call-create
                 :owner loop :id (efrit-use-id use) :name (efrit-use-name use)
                 :plan (efrit-use-plan use) :directory (efrit-loop-root loop)
                 :finish (lambda (result) (efrit-run--record loop use result)))))
      (setf (efrit-use-call use) call)
      (efrit-tools-run call (efrit-use-arguments use)))))

;;; Results

(defun efrit-run--record (loop use result)
  "Book RESULT, a plist, as what USE of LOOP gave."
  (efrit-turn-call-again
   loop 'tools/record
   `(:name ,(efrit-use-name use) :arguments_json ,(efrit-use-arguments use)
           :tool_use_id ,(efrit-use-id use) :include_data :json-false
           :text ,(substring-no-properties (plist-get result :text))
           :own_lines ,(efrit-tool-own-lines result) :status ,(plist-get result :status)
           ,@(cl-loop for name in '(:message :lisp :todos :summary :said)
                      when (plist-get result name)
                      append (list name (plist-get result name))))
   (lambda (envelope) (efrit-run--done loop use envelope))))

(defun efrit-run--done (loop use envelope)
  "USE of LOOP has ended with ENVELOPE; go on when all have."
  (setf (efrit-use-result use) envelope)
  (when (equal (plist-get envelope :status) "success")
    (efrit-seen-take loop (efrit-use-name use) (efrit-use-arguments use)))
  (efrit-run--set loop use 'done)
  (if (seq-every-p (lambda (use) (eq (efrit-use-state use) 'done)) (efrit-loop-run loop))
      (efrit-turn-tools-done loop)
    (efrit-run--next loop)))

(setq efrit-turn-run-function #'efrit-run-tools
      efrit-turn-stop-tools-function #'efrit-run-stop
      efrit-turn-registered-tools #'efrit-tools-schemas)

(provide 'efrit-run)
;;; efrit-run.el ends here
