;;; efrit-run.el --- Run the turns of a loop  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A turn begins with what the sidecar says the request is to be, goes on with
;; the model's reply, and ends with its tool calls.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-anthropic)
(require 'efrit-backend)
(require 'efrit-edit)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-sync)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

;;; The system prompt

;; A text file, the same for the whole of a session: another one would end an
;; epoch.  What changes, such as the date, the sidecar adds when a rewrite is
;; due anyway.

(defun efrit-system-prompt (loop)
  "Return the system prompt for LOOP."
  (with-temp-buffer
    (insert-file-contents efrit-system-file)
    (string-trim (string-replace "{root}"
                                 (directory-file-name
                                  (efrit-host-local-name (efrit-loop-root loop)))
                                 (buffer-string)))))

(defun efrit-environment (loop)
  "Return the name of this Emacs, to stand beside date and system for LOOP."
  (format "GNU Emacs %s%s" emacs-version
          (if (file-remote-p (efrit-loop-root loop)) ", on another machine" "")))

;;; Turns

;; The actions of `efrit-loop-table': a turn begins with what the sidecar
;; says the request is to be, goes on with the model's reply, which the
;; sidecar is told before anything else, and then runs the tools.  What
;; comes of something that was given up meanwhile is passed over: each
;; action begins a new step, and what belongs to an older one is late.

;;;; Beginning

(defun efrit-turn--begin (loop &rest _)
  "Begin a turn of LOOP: what is stale first, then what the client can run."
  (efrit-loop-begin-step loop)
  (if (efrit-loop-stale loop)
      (efrit-turn--fetch loop)
    (efrit-turn--register loop)))

(defun efrit-turn--fetch (loop)
  "Ask the sidecar for the conversation of LOOP, and how far it has come."
  (efrit-loop-call
   loop 'session/messages '(:as_text t)
   (lambda (held)
     (setf (efrit-loop-messages loop) (nreverse (append (plist-get held :messages) nil))
           (efrit-loop-epoch loop) (plist-get held :epoch))
     (efrit-loop-call
      loop 'session/status nil
      (lambda (status)
        (efrit-turn--is-fresh loop (plist-get status :budget))
        (efrit-turn--register loop))))))

(defun efrit-turn--is-fresh (loop budget)
  "Note that LOOP stands as the sidecar has it; BUDGET is its snapshot.
What was being sent has arrived if a turn began that we did not hear of."
  (setf (efrit-loop-stale loop) nil
        (efrit-loop-budget loop) budget)
  (when (> (or (plist-get budget :turn) 0) (efrit-loop-turn loop))
    (setf (efrit-loop-turn loop) (plist-get budget :turn))
    (efrit-loop-arrived loop)))

(defun efrit-turn--register (loop)
  "Tell the sidecar which tools this Emacs can run for LOOP, then begin."
  (let ((tools (efrit-tools-schemas)))
    (if (equal tools (efrit-loop-offered loop))
        (efrit-turn--begin-turn loop)
      (efrit-loop-call loop 'tools/register (list :tools tools)
                       (lambda (_)
                         (setf (efrit-loop-offered loop) tools)
                         (efrit-turn--begin-turn loop))))))

(defun efrit-turn--begin-turn (loop)
  "Ask the sidecar what the next request of LOOP is to be."
  (setf (efrit-loop-complete loop) nil)
  (efrit-loop-call loop 'turn/begin
                   (append '(:as_text t) (efrit-turn-params loop (efrit-loop-send loop)))
                   (lambda (begun) (efrit-turn--take-begin-reply loop begun))))

(defun efrit-turn-params (loop blocks)
  "Return the params of `turn/begin' and `turn/preview' for LOOP and BLOCKS.
BLOCKS is the person's message, a list, or nil."
  `(:model ,(efrit-loop-option loop 'efrit-claude-model)
    :caching ,(if (efrit-loop-with-options loop (efrit-endpoint-feature-p 'cache))
                  t
                :json-false)
    :system ,(efrit-system-prompt loop)
    :environment ,(efrit-environment loop)
    ,@(and blocks (list :user_message (vconcat blocks)))))

(defun efrit-turn--take-begin-reply (loop begun)
  "Take BEGUN, the answer to `turn/begin', into LOOP."
  (let ((rewrite (plist-get begun :rewrite))
        (append (plist-get begun :append)))
    (when rewrite
      (setf (efrit-loop-messages loop) nil))
    ;; Within an epoch the figure stands: it is a part of what is cached.
    (when (or rewrite (null (efrit-loop-left loop)))
      (setf (efrit-loop-left loop) (plist-get begun :left_window)))
    (efrit-turn--append loop (or rewrite append))
    (setf (efrit-loop-system loop) (plist-get begun :system)
          (efrit-loop-tools loop) (plist-get begun :tools)
          (efrit-loop-model loop) (plist-get begun :model)
          (efrit-loop-turn loop) (plist-get begun :turn_id)
          (efrit-loop-epoch loop) (plist-get begun :epoch)
          (efrit-loop-max-tokens loop) (plist-get begun :max_tokens)
          (efrit-loop-budget loop) (plist-get begun :budget))
    (efrit-loop-arrived loop)
    (efrit-loop-notify loop 'begun (and rewrite t) (append (plist-get begun :notes) nil))
    (efrit-loop-note-once loop (efrit-loop-with-options loop (efrit-endpoint-note)))
    (efrit-loop-handle loop (if (efrit-loop-stopping loop) 'halted 'begun))))

(defun efrit-turn--append (loop holder)
  "Append the messages of HOLDER, a plist or nil, to those of LOOP."
  (mapc (lambda (message) (push message (efrit-loop-messages loop)))
        (plist-get holder :messages)))

(defun efrit-turn--stop-soon (loop &rest _)
  "Have LOOP stop when what is under way has its answer."
  (setf (efrit-loop-stopping loop) t)
  (run-at-time efrit-stop-patience nil #'efrit-turn--warn-slow-stop
               loop (efrit-loop-step loop)))

(defun efrit-turn--warn-slow-stop (loop step)
  "Say what to do if LOOP, stopped in STEP, still waits for the sidecar there.
A call that books something has no limit of time: it may take long."
  (efrit-loop-if-current loop step
    (when (memq (efrit-loop-state loop) '(beginning ending))
      (efrit-loop-notify loop 'note
                         (concat "The sidecar does not answer; it stops when it does.  "
                                 "M-x efrit-sidecar-restart ends the waiting.")))))

;;;; Requests

(defun efrit-turn--request (loop &rest _)
  "Send the request of LOOP."
  (let ((step (efrit-loop-begin-step loop)))
    (condition-case err
        (setf (efrit-loop-request loop)
              (efrit-loop-with-options loop
                (efrit-claude-send
                 :system (efrit-loop-system loop) :tools (efrit-loop-tools loop)
                 :messages (reverse (efrit-loop-messages loop))
                 :max-tokens (efrit-loop-max-tokens loop) :model (efrit-loop-model loop)
                 :left-window (efrit-loop-left loop)
                 :previous-id (efrit-loop-previous loop)
                 :on-event (lambda (event)
                             (efrit-loop-if-current loop step
                               (efrit-loop-call-safely loop #'efrit-turn--event loop event)))
                 :on-end (lambda (reply problem)
                           (efrit-loop-if-current loop step
                             (efrit-loop-call-safely loop #'efrit-turn--request-ended
                                                     loop reply problem))))))
      ((error quit) (efrit-loop-handle loop 'failed (error-message-string err))))))

(defun efrit-turn--event (loop event)
  "Take EVENT of the reply that streams into LOOP."
  (pcase (car event)
    ('retry (efrit-loop-handle loop 'retry))
    ('again (efrit-loop-handle loop 'again))
    (_ (efrit-loop-handle loop 'event)))
  (apply #'efrit-loop-notify loop event))

(defun efrit-turn--request-ended (loop reply problem)
  "The request of LOOP has ended with REPLY, or with PROBLEM."
  (efrit-loop-drop-request loop)
  (if (null problem)
      (efrit-loop-handle loop 'replied reply)
    (efrit-loop-report-lost loop)
    (efrit-loop-handle loop 'failed (plist-get problem :message))))

(defun efrit-turn--drop-request (loop &rest _)
  "Drop the request of LOOP, of which nothing has come."
  (efrit-loop-begin-step loop)
  (when-let* ((request (efrit-loop-request loop)))
    (efrit-claude-cancel request)
    (efrit-claude-keep-lost-usage request)
    (efrit-loop-drop-request loop)
    (efrit-loop-report-lost loop)))

(defun efrit-turn--retry-now (loop &rest _)
  "Have the request of LOOP be sent at once."
  (efrit-claude-retry-now (efrit-loop-request loop)))

;;;; Ending

(defun efrit-turn--end-aborted (loop &rest _)
  "Stop the reply that streams into LOOP, and keep what has come of it."
  (let ((reply (efrit-claude-cancel (efrit-loop-request loop))))
    (efrit-loop-drop-request loop)
    (setf (efrit-loop-stopping loop) t)
    (efrit-turn--end loop reply 'aborted)))

(defun efrit-turn--end (loop reply &optional aborted)
  "Tell the sidecar of REPLY, which has come in LOOP; ABORTED if not whole."
  (setf (efrit-loop-reply loop) reply)
  (efrit-loop-begin-step loop)
  (efrit-loop-call-again
   loop 'turn/end
   `(:turn_id ,(efrit-loop-turn loop) :model ,(efrit-loop-option loop 'efrit-claude-model)
              :as_text t
              :content_json ,(efrit-reply-content reply)
              :usage ,(efrit-reply-counts reply)
              :lost ,(vconcat (efrit-loop-lost loop))
              ,@(and (efrit-reply-stop-reason reply)
                     (list :stop_reason (efrit-reply-stop-reason reply)))
              :aborted ,(if aborted t :json-false))
   (lambda (ended) (efrit-turn--take-end-reply loop ended))))

(defun efrit-turn--take-end-reply (loop ended)
  "Take ENDED, the answer to `turn/end', into LOOP, and go on."
  (let ((reply (efrit-loop-reply loop)))
    (efrit-turn--append loop (plist-get ended :append))
    (efrit-reply-take-inputs reply (plist-get ended :inputs) (plist-get ended :unreadable)
                             (plist-get ended :misfits))
    (cl-incf (plist-get (efrit-loop-counts loop) :turns))
    (setf (efrit-loop-lost loop) nil
          (efrit-loop-budget loop) (plist-get ended :budget)
          (efrit-loop-previous loop) (efrit-reply-id reply))
    (efrit-loop-notify loop 'ended reply)
    (efrit-loop-take-usage loop ended)
    (efrit-loop-handle loop (efrit-turn--next-event loop reply))))

(defun efrit-turn--next-event (loop reply)
  "Return what happens in LOOP after REPLY, as its reason to stop has it."
  (cond
   ((efrit-loop-stopping loop) 'done)
   ((efrit-reply-tool-uses reply) 'tools)
   (t (pcase (efrit-reply-stop-reason reply)
        ("pause_turn" 'paused)
        ("refusal" 'refused)
        ("max_tokens" 'cut)
        ("model_context_window_exceeded" 'full)
        (_ (if (efrit-loop-queue loop) 'more 'done))))))

;;;; Tools

(defun efrit-turn--run (loop &rest _)
  "Run the tools that the reply of LOOP asks for."
  (efrit-loop-begin-step loop)
  (efrit-run-tools loop)
  (unless (efrit-loop-resting-p loop)
    (efrit-http-warm)))

(defun efrit-turn-tools-done (loop)
  "Begin the next turn of LOOP, whose tools have all given a result, or stop."
  (efrit-loop-handle loop (cond ((and (efrit-loop-complete loop)
                                      (null (efrit-loop-queue loop)))
                                 'done)
                                ((efrit-turn--cut-short-p loop) 'cut)
                                ((efrit-turn-limit loop) 'limit)
                                (t 'more))))

(defun efrit-turn--cut-short-p (loop)
  "Return non-nil if nothing but the limit of tokens came of the tools of LOOP.
Where one tool has run, the model has something to go on with, and goes on."
  (let ((reply (efrit-loop-reply loop)))
    (and (equal (efrit-reply-stop-reason reply) "max_tokens")
         (cl-every #'efrit-block-problem (efrit-reply-tool-uses reply))
         (null (efrit-loop-queue loop)))))

(defun efrit-turn-limit (loop)
  "Return the limit that LOOP has reached, a string, or nil."
  (let* ((counts (efrit-loop-counts loop))
         (turns (efrit-loop-option loop 'efrit-max-turns))
         (minutes (efrit-loop-option loop 'efrit-max-minutes))
         (dollars (efrit-loop-option loop 'efrit-max-dollars))
         (seconds (- (float-time) (plist-get counts :start))))
    (cond
     ((and turns (>= (plist-get counts :turns) turns)) (format "%d turns" turns))
     ((and minutes (>= (/ seconds 60) minutes)) (format "%s minutes" minutes))
     ((and dollars (>= (plist-get counts :dollars) dollars)) (format "$%s" dollars)))))

(defun efrit-turn--stop-tools (loop &rest _)
  "Stop the tools of LOOP that run; the sidecar answers for them."
  (efrit-loop-begin-step loop)
  (efrit-run-stop loop))

(add-hook 'efrit-loop-rest-functions (lambda (_) (efrit-http-cool)))

;;; Tool calls

;; Runs what a reply asks for, each use as permissions have it.  What has
;; effects runs in the order in which the model wrote it: behind everything
;; before it, and before everything behind it.  In between, what only reads
;; runs side by side in the sidecar, and one after the other in this Emacs.
;; Every use ends with a result in the work log: what the tool gave, an
;; error, or that the person said no.

(defvar efrit-run--tool-lists nil
  "The sidecars' tools: an alist of hosts and alists.
A host is its name, nil for this machine; behind it stand names of tools,
each with what `tools/list' says of it, a plist.")

(defun efrit-run-tools (loop)
  "Run the tools that the reply of LOOP asks for."
  (setf (efrit-loop-run loop)
        (mapcar (apply-partially #'efrit-run--use loop)
                (efrit-reply-tool-uses (efrit-loop-reply loop))))
  (dolist (use (efrit-loop-run loop))
    (efrit-loop-notify loop 'use use))
  (efrit-run--load-tools loop (lambda () (efrit-run--decide-all loop))))

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
      (efrit-loop-notify loop 'use use)))
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
    (pcase (and scope (efrit-run--rule-to-remember loop use decision grant))
      (`(,rule ,words) (efrit-run--remember loop rule words scope)))
    (if (eq decision 'deny)
        (efrit-run--deny loop use reason)
      (setf (efrit-use-allowed use) t)
      (efrit-run--allow loop use))
    (when scope
      (efrit-run--decide-again loop))))

(defun efrit-run-grants (loop use)
  "Return what the person who is asked about USE in LOOP may allow for longer.
It is as `efrit-permissions-offers' gives it; nil where it is always asked."
  (unless (or (efrit-use-guard use) (efrit-use-confirm use))
    (efrit-permissions-offers (efrit-use-name use) (efrit-run--subjects loop use))))

(defun efrit-run-refusal (loop use)
  "Return (RULE WORDS) that deny what USE in LOOP is about from now on."
  (efrit-permissions-refusal (efrit-use-name use) (efrit-run--subjects loop use)))

(defun efrit-run--rule-to-remember (loop use decision grant)
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
  (efrit-loop-notify loop 'note
                     (format "%s %s: %s; M-x efrit-permissions revokes it"
                             (if (eq (nth 2 rule) 'deny) "Denied" "Allowed")
                             (if (eq scope 'session) "this session" "from now on in this project")
                             words)))

(defun efrit-run-pending-use (loop)
  "Return the first use in LOOP that waits for the person's answer, or nil."
  (seq-find (lambda (use) (eq (efrit-use-state use) 'asking)) (efrit-loop-run loop)))

;;;; Deciding

(defun efrit-run--use (loop block)
  "Return the use of a tool that BLOCK of a reply in LOOP asks for."
  (let ((problem (efrit-block-problem block))
        (misfit (efrit-block-misfit block))
        (name (efrit-block-name block)))
    (efrit-use-create :id (efrit-block-id block) :name name
                      :arguments (cond (problem "{}")
                                       (misfit (efrit-block-input block))
                                       (t (efrit-tool-resolve-arguments name loop
                                                                        (efrit-block-input block))))
                      :problem problem :misfit misfit)))

(defun efrit-run--load-tools (loop then)
  "Learn what the tools of this turn of LOOP are like, then call THEN.
The sidecar is asked where one is not known: it may have got tools since."
  (let ((host (efrit-host-of-session (efrit-loop-id loop))))
    (if (and (assoc host efrit-run--tool-lists)
             (seq-every-p (lambda (use)
                            (or (efrit-tool-get (efrit-use-name use))
                                (efrit-run--listing loop use)))
                          (efrit-loop-run loop)))
        (funcall then)
      (efrit-sidecar-request-async
       'tools/list nil
       :host host
       :success (lambda (listed)
                  (setf (alist-get host efrit-run--tool-lists nil nil #'equal)
                        (mapcar (lambda (tool) (cons (plist-get tool :name) tool))
                                (plist-get listed :tools)))
                  (funcall then))
       :error (lambda (err) (efrit-loop-handle loop 'failed (efrit-error-text err)))))))

(defun efrit-run--listing (loop use)
  "Return the entry of the tool of USE in the list of LOOP's sidecar, or nil."
  (let ((host (efrit-host-of-session (efrit-loop-id loop))))
    (cdr (assoc (efrit-use-name use) (cdr (assoc host efrit-run--tool-lists))))))

(defun efrit-run-policy (loop use)
  "Return the policy of the tool of USE in LOOP."
  (if-let* ((tool (efrit-tool-get (efrit-use-name use))))
      (efrit-tool-policy tool)
    (intern (or (plist-get (efrit-run--listing loop use) :policy) "allow"))))

(defun efrit-run--effects-p (loop use)
  "Return non-nil if the tool of USE in LOOP does more than to read."
  (if-let* ((tool (efrit-tool-get (efrit-use-name use))))
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
          (t (efrit-tool-guard-reason (efrit-use-name use) loop (efrit-use-arguments use))))))

(defun efrit-run--decide-all (loop)
  "Start, ask about, or deny each use of LOOP.
One that has a plan is asked about when its turn comes, since what went
before it may change the same file."
  (dolist (use (efrit-loop-run loop))
    (setf (efrit-use-effects use) (efrit-run--effects-p loop use))
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
            (and (efrit-use-plan use) (efrit-plan-prompt (efrit-use-plan use)))
            (efrit-tool-ask-text (efrit-use-name use) loop (efrit-use-arguments use))))
  (efrit-loop-notify loop 'ask use))

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

;;;; Plans

(defun efrit-run--plans-p (use)
  "Return non-nil if the tool of USE has a plan before it does anything."
  (when-let* ((tool (efrit-tool-get (efrit-use-name use))))
    (efrit-tool-plan tool)))

(defun efrit-run--plan (loop use)
  "Have the tool of USE in LOOP say what it would change, then decide."
  (efrit-run--set loop use 'planning)
  (efrit-plan-make
   loop (efrit-tool-get (efrit-use-name use)) (efrit-use-arguments use)
   (lambda (plan)
     (setf (efrit-use-plan use) plan)
     (efrit-run--allow loop use))
   (lambda (problem)
     (efrit-run--record loop use (efrit-tool-result problem :status 'error)))))

(defun efrit-run--drop-plan (use)
  "Let go of the plan of USE, which is not made."
  (when (efrit-use-plan use)
    (efrit-plan-drop (efrit-use-plan use))))

;;;; Running

(defun efrit-run--next (loop)
  "Start each use of LOOP whose turn it is."
  (let ((before nil))
    (dolist (use (efrit-loop-run loop))
      (when (and (efrit-use-ready use)
                 (eq (efrit-use-state use) 'waiting)
                 (eq (efrit-loop-state loop) 'running)
                 (not (seq-some (lambda (earlier) (efrit-run--must-wait-p use earlier))
                                before)))
        (efrit-run--start loop use))
      (unless (memq (efrit-use-state use) '(denied done))
        (push use before)))))

(defun efrit-run--must-wait-p (use earlier)
  "Return non-nil if USE has to wait until EARLIER has ended."
  (or (efrit-use-effects use)
      (efrit-use-effects earlier)
      (and (efrit-tool-get (efrit-use-name use))
           (efrit-tool-get (efrit-use-name earlier)))))

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
  (efrit-loop-notify loop 'use use))

(defun efrit-run--call (loop use)
  "Call the sidecar's tool of USE in LOOP; it is told of buffers not saved first."
  (efrit-sync-flush)
  (efrit-run--set loop use 'running)
  (setf (efrit-use-token use)
        (efrit-loop-call
         loop 'tools/call
         `(:name ,(efrit-use-name use) :arguments_json ,(efrit-use-arguments use)
                 :tool_use_id ,(efrit-use-id use) :include_data :json-false
                 ,@(and (efrit-use-confirm use)
                        (list :confirm_id (efrit-use-confirm use))))
         (lambda (envelope) (efrit-run--take-envelope loop use envelope))
         (lambda (err) (efrit-run--call-failed loop use err)))))

(defun efrit-run--take-envelope (loop use envelope)
  "Take ENVELOPE, what the sidecar's tool of USE in LOOP gave."
  (setf (efrit-use-token use) nil)
  (if (not (equal (plist-get envelope :status) "needs_confirmation"))
      (efrit-run--finish-use loop use envelope)
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
      (efrit-loop-handle loop 'failed "The sidecar died again and again while a tool ran")
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
    ((guard (not (efrit-tool-get (efrit-use-name use))))
     (efrit-run--call loop use))
    (_ (efrit-run--set loop use 'running)
       (efrit-defer #'efrit-run--run-in-emacs loop use (efrit-loop-step loop)))))

(defun efrit-run--run-in-emacs (loop use step)
  "Run USE of LOOP in this Emacs, if nothing was begun there after STEP."
  (when (and (= step (efrit-loop-step loop)) (eq (efrit-use-state use) 'running))
    (let ((call (efrit-tool-call-create
                 :owner loop :id (efrit-use-id use) :name (efrit-use-name use)
                 :plan (efrit-use-plan use) :directory (efrit-loop-root loop)
                 :finish (lambda (result) (efrit-run--record loop use result)))))
      (setf (efrit-use-call use) call)
      (efrit-tools-run call (efrit-use-arguments use)))))

;;;; Results

(defun efrit-run--record (loop use result)
  "Book RESULT, a plist, as what USE of LOOP gave."
  (efrit-loop-call-again
   loop 'tools/record
   `(:name ,(efrit-use-name use) :arguments_json ,(efrit-use-arguments use)
           :tool_use_id ,(efrit-use-id use) :include_data :json-false
           :text ,(substring-no-properties (plist-get result :text))
           :own_lines ,(efrit-tool-own-lines result) :status ,(plist-get result :status)
           ,@(cl-loop for name in '(:message :lisp :todos :summary :said)
                      when (plist-get result name)
                      append (list name (plist-get result name))))
   (lambda (envelope) (efrit-run--finish-use loop use envelope))))

(defun efrit-run--finish-use (loop use envelope)
  "USE of LOOP has ended with ENVELOPE; go on when all have."
  (setf (efrit-use-result use) envelope)
  (when (equal (plist-get envelope :status) "success")
    (efrit-read-files-record loop (efrit-use-name use) (efrit-use-arguments use)))
  (efrit-run--set loop use 'done)
  (if (seq-every-p (lambda (use) (eq (efrit-use-state use) 'done)) (efrit-loop-run loop))
      (efrit-turn-tools-done loop)
    (efrit-run--next loop)))

(provide 'efrit-run)
;;; efrit-run.el ends here
