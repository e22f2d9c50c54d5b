;;; efrit-run.el --- Run the turns of a loop  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A turn begins with what the sidecar says the request is to be, goes on with
;; the model's reply, and ends with its tool calls.

;;; Code:

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

;;; Turns

;; The actions of `efrit-loop-table': a turn begins with what the sidecar
;; says the request is to be, goes on with the model's reply, which the
;; sidecar is told before anything else, and then runs the tools.  What
;; comes of something that was given up meanwhile is passed over: each
;; action begins a new step, and what belongs to an older one is late.

;;;; Beginning

(defun efrit-turn--begin (loop &rest _)
  "Begin a turn of LOOP; first load the conversation if it is stale."
  (efrit-loop-begin-step loop)
  (if (efrit-loop-stale loop)
      (efrit-turn--fetch loop)
    (efrit-turn--register loop)))

(defun efrit-turn--fetch (loop)
  "Load the conversation and the status of LOOP from the sidecar."
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
  "Store BUDGET, a snapshot, in LOOP, which is not stale any more.
If the sidecar has begun a turn meanwhile, what was being sent has arrived."
  (setf (efrit-loop-stale loop) nil
        (efrit-loop-budget loop) budget)
  (when (> (or (plist-get budget :turn) 0) (efrit-loop-turn loop))
    (setf (efrit-loop-turn loop) (plist-get budget :turn))
    (efrit-loop-arrived loop)))

(defun efrit-turn--register (loop)
  "Register the tools of this Emacs for LOOP if they changed; begin a turn."
  (let ((tools (efrit-tools-schemas)))
    (if (equal tools (efrit-loop-offered loop))
        (efrit-turn--begin-turn loop)
      (efrit-loop-call loop 'tools/register (list :tools tools)
                       (lambda (_)
                         (setf (efrit-loop-offered loop) tools)
                         (efrit-turn--begin-turn loop))))))

(defun efrit-turn--begin-turn (loop)
  "Call `turn/begin' for LOOP with all that is queued."
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
    :environment ,(format "GNU Emacs %s%s" emacs-version
                          (if (file-remote-p (efrit-loop-root loop)) ", on another machine" ""))
    ,@(and blocks (list :user_message (vconcat blocks)))))

(defun efrit-turn--take-begin-reply (loop begun)
  "Store BEGUN, the reply to `turn/begin', in LOOP, and send the request."
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
  "Stop LOOP once the sidecar has answered the call under way."
  (setf (efrit-loop-stopping loop) t)
  (run-at-time efrit-stop-patience nil #'efrit-turn--warn-slow-stop
               loop (efrit-loop-step loop)))

(defun efrit-turn--warn-slow-stop (loop step)
  "Note that the sidecar does not answer, if LOOP is still in STEP.
Calls that store something have no time limit."
  (efrit-loop-if-current loop step
    (when (memq (efrit-loop-state loop) '(beginning ending))
      (efrit-loop-notify loop 'note
                         (concat "The sidecar does not answer; the session stops when it does.  "
                                 "M-x efrit-sidecar-restart stops it now.")))))

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
  "Notify the observers of EVENT of the reply that LOOP receives."
  (efrit-loop-handle loop (if (memq (car event) '(retry again)) (car event) 'event))
  (apply #'efrit-loop-notify loop event))

(defun efrit-turn--request-ended (loop reply problem)
  "End the request of LOOP with REPLY, or with PROBLEM, a plist."
  (efrit-loop-drop-request loop)
  (if (null problem)
      (efrit-loop-handle loop 'replied reply)
    (efrit-loop-report-lost loop)
    (efrit-loop-handle loop 'failed (plist-get problem :message))))

(defun efrit-turn--drop-request (loop &rest _)
  "Cancel the request of LOOP, before any of its reply has come."
  (efrit-loop-begin-step loop)
  (when-let* ((request (efrit-loop-request loop)))
    (efrit-claude-cancel request)
    (efrit-claude-keep-lost-usage request)
    (efrit-loop-drop-request loop)
    (efrit-loop-report-lost loop)))

(defun efrit-turn--retry-now (loop &rest _)
  "Send the request of LOOP again at once."
  (efrit-claude-retry-now (efrit-loop-request loop)))

;;;; Ending

(defun efrit-turn--end-aborted (loop &rest _)
  "Cancel the request of LOOP, and store the part of the reply that has come."
  (let ((reply (efrit-claude-cancel (efrit-loop-request loop))))
    (efrit-loop-drop-request loop)
    (setf (efrit-loop-stopping loop) t)
    (efrit-turn--end loop reply 'aborted)))

(defun efrit-turn--end (loop reply &optional aborted)
  "Call `turn/end' for LOOP with REPLY, which is not whole if ABORTED."
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
  "Store ENDED, the reply to `turn/end', in LOOP, and run the tools."
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
  "Return the event of LOOP that follows from the stop reason of REPLY."
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
  "Run the tools called in the reply of LOOP."
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
  "Return non-nil if LOOP reached the token limit, and no tool has run.
Where a tool has run, the model has a result to go on with."
  (let ((reply (efrit-loop-reply loop)))
    (and (equal (efrit-reply-stop-reason reply) "max_tokens")
         (cl-every #'efrit-block-problem (efrit-reply-tool-uses reply))
         (null (efrit-loop-queue loop)))))

(defun efrit-turn-limit (loop)
  "Return the limit that LOOP has reached, a string, or nil."
  (let ((counts (efrit-loop-counts loop)))
    (cl-loop for (option used text)
             in `((efrit-max-turns ,(plist-get counts :turns) "%d turns")
                  (efrit-max-minutes ,(/ (- (float-time) (plist-get counts :start)) 60)
                                     "%s minutes")
                  (efrit-max-dollars ,(plist-get counts :dollars) "$%s"))
             for limit = (efrit-loop-option loop option)
             thereis (and limit (>= used limit) (format text limit)))))

(defun efrit-turn--stop-tools (loop &rest _)
  "Stop the running tools of LOOP."
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
  "The tools of each sidecar: an alist of host names and alists.
These have the name of each tool, and its entry in the reply to `tools/list'.")

(defun efrit-run-tools (loop)
  "Run the tools called in the reply of LOOP, as permissions allow."
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
  "Answer the question about USE in LOOP with DECISION, `allow' or `deny'.
With SCOPE, `session' or `project', remember the answer that long.  REASON is
shown to the model.  GRANT is `exactly' (the default) or `alike': what is
allowed from now on, see `efrit-run-grants'."
  (let ((inhibit-quit t))
    (when (eq (efrit-use-state use) 'asking)
      (pcase (cond ((null scope) nil)
                   ((eq decision 'deny) (efrit-run-refusal loop use))
                   (t (cdr (assq (or grant 'exactly) (efrit-run-grants loop use)))))
        (`(,rule ,words) (efrit-run--remember loop rule words scope)))
      (if (eq decision 'deny)
          (efrit-run--deny loop use reason)
        (setf (efrit-use-allowed use) t)
        (efrit-run--allow loop use))
      (when scope
        (efrit-run--decide-again loop)))))

(defun efrit-run-grants (loop use)
  "Return the permissions that the person can give to USE in LOOP.
They are as from `efrit-permissions-offers'; nil if it is always asked about."
  (unless (or (efrit-use-guard use) (efrit-use-confirm use))
    (efrit-permissions-offers (efrit-use-name use) (efrit-run--subjects loop use))))

(defun efrit-run-refusal (loop use)
  "Return (RULE WORDS) to deny what is like USE in LOOP."
  (efrit-permissions-refusal (efrit-use-name use) (efrit-run--subjects loop use)))

(defun efrit-run--remember (loop rule words scope)
  "Store RULE, described by WORDS, for SCOPE, and note that in LOOP."
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
  "Return an `efrit-use' for BLOCK, a tool use in the reply of LOOP."
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
  "Load the sidecar's list of tools if a tool of LOOP is not in it; call THEN."
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
  "Return the entry of the tool of USE in the sidecar's list for LOOP, or nil."
  (let ((host (efrit-host-of-session (efrit-loop-id loop))))
    (cdr (assoc (efrit-use-name use) (cdr (assoc host efrit-run--tool-lists))))))

(defun efrit-run-policy (loop use)
  "Return the policy of the tool of USE in LOOP."
  (if-let* ((tool (efrit-tool-get (efrit-use-name use))))
      (efrit-tool-policy tool)
    (intern (or (plist-get (efrit-run--listing loop use) :policy) "allow"))))

(defun efrit-run--effects-p (loop use)
  "Return non-nil if the tool of USE in LOOP can change something."
  (if-let* ((tool (efrit-tool-get (efrit-use-name use))))
      (efrit-tool-effects tool)
    (eq t (plist-get (efrit-run--listing loop use) :has_effects))))

(defun efrit-run--decide (loop use)
  "Return `allow', `ask' or `deny' for USE in LOOP.
The answer is `ask' if rules cannot be read, or the use has a guard."
  (setf (efrit-use-guard use) (efrit-run--guard loop use))
  (let ((decision (condition-case err
                      (efrit-permissions-decide
                       (efrit-use-name use) (efrit-run--subjects loop use)
                       (efrit-run-policy loop use) (efrit-run-rules loop))
                    (error (message "efrit: the permissions cannot be read, so the person is asked: %s"
                                    (error-message-string err))
                           'ask))))
    (if (and (eq decision 'allow) (efrit-use-guard use)) 'ask decision)))

(defun efrit-run-rules (loop)
  "Return the permission rules of LOOP, the deciding ones first."
  (append (efrit-loop-rules loop)
          (efrit-permissions-of (efrit-loop-root loop))
          (efrit-loop-option loop 'efrit-permission-rules)))

(defun efrit-run--subjects (loop use)
  "Return the subjects of USE in LOOP; see `efrit-permissions-subjects'."
  (efrit-permissions-subjects (efrit-use-name use) (efrit-use-arguments use)
                              (efrit-run--files loop use)))

(defun efrit-run--files (loop use)
  "Return the names, in the project of LOOP, of the files in the plan of USE."
  (when-let* ((plan (efrit-use-plan use)))
    (let ((root (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop)))))
      (mapcar (lambda (file) (string-remove-prefix root file))
              (efrit-plan-files plan)))))

(defun efrit-run--guard (loop use)
  "Return why USE in LOOP is asked about even if allowed, a sentence, or nil."
  (let* ((plan (efrit-use-plan use))
         (files (append (efrit-run--files loop use)
                        (and (efrit-run--plans-p use)
                             (cl-loop for subject in (efrit-run--subjects loop use)
                                      when (plist-get subject :file)
                                      collect (plist-get subject :text)))))
         (running (seq-find #'efrit-permissions-always-asks-p files)))
    (cond ((and plan (efrit-plan-secret plan)) "Files of this name usually hold secrets.")
          (running (format "Other programs run or obey %s." running))
          (t (efrit-tool-guard-reason (efrit-use-name use) loop (efrit-use-arguments use))))))

(defun efrit-run--decide-all (loop)
  "Decide about each use of LOOP: run it, ask, or refuse it.
A use with a plan is asked about when it comes up, since earlier ones may
change the same file."
  (dolist (use (efrit-loop-run loop))
    (setf (efrit-use-effects use) (efrit-run--effects-p loop use))
    (cond
     ((efrit-use-problem use)
      (efrit-run--refuse-input loop use (efrit-use-problem use)
                               "Call it again with one whole object, each key once; \
in smaller parts if it was cut off."))
     ((efrit-use-misfit use)
      (efrit-run--refuse-input loop use (efrit-use-misfit use)
                               "Call it again with arguments that fit its schema."))
     (t (pcase (efrit-run--decide loop use)
          ('deny (efrit-run--deny loop use))
          ((and 'ask (guard (not (efrit-run--plans-p use)))) (efrit-run--ask loop use))
          (_ (setf (efrit-use-ready use) t))))))
  (efrit-run--next loop))

(defun efrit-run--decide-again (loop)
  "Decide anew about what is asked about in LOOP."
  (dolist (use (efrit-loop-run loop))
    (when (and (eq (efrit-use-state use) 'asking) (null (efrit-use-confirm use)))
      (pcase (efrit-run--decide loop use)
        ('allow (efrit-run--allow loop use))
        ('deny (efrit-run--deny loop use))))))

(defun efrit-run--allow (loop use)
  "Let USE of LOOP run when it comes up."
  (setf (efrit-use-ready use) t)
  (efrit-run--set loop use 'waiting)
  (efrit-run--next loop))

(defun efrit-run--ask (loop use &optional question)
  "Ask the person about USE in LOOP, with QUESTION or that of its plan or tool."
  (setf (efrit-use-state use) 'asking
        (efrit-use-question use)
        (or question
            (and (efrit-use-plan use) (efrit-plan-prompt (efrit-use-plan use)))
            (efrit-tool-ask-text (efrit-use-name use) loop (efrit-use-arguments use))))
  (efrit-loop-notify loop 'ask use))

(defun efrit-run--deny (loop use &optional reason)
  "Record that the person denied USE in LOOP, for REASON, a text or nil."
  (efrit-run--refuse
   loop use
   (if reason
       (format "This use of %s was not allowed: %s" (efrit-use-name use) reason)
     (format "The person did not allow this use of %s." (efrit-use-name use)))
   "Do not seek the same effect in another way; choose another approach, or ask the person."
   (and reason t)))

(defun efrit-run--refuse-input (loop use problem message)
  "Record that USE in LOOP did not run, because of PROBLEM with its input.
MESSAGE is what to do about it."
  (efrit-run--refuse loop use (format "%s was not run: %s" (efrit-use-name use) problem) message))

(defun efrit-run--refuse (loop use text message &optional said)
  "Record that USE in LOOP did not run, with the reason TEXT.
MESSAGE is what to do about it.  SAID is non-nil if some of it is the
person's words."
  (efrit-run--set loop use 'denied)
  (efrit-run--drop-plan use)
  (efrit-run--record
   loop use (efrit-tool-result text :status 'error :message message :said said)))

;;;; Plans

(defun efrit-run--plans-p (use)
  "Return non-nil if the tool of USE has to make a plan first."
  (when-let* ((tool (efrit-tool-get (efrit-use-name use))))
    (efrit-tool-plan tool)))

(defun efrit-run--plan (loop use)
  "Have the tool of USE in LOOP make its plan, then decide about it."
  (efrit-run--set loop use 'planning)
  (efrit-plan-make
   loop (efrit-tool-get (efrit-use-name use)) (efrit-use-arguments use)
   (lambda (plan)
     (setf (efrit-use-plan use) plan)
     (efrit-run--allow loop use))
   (lambda (problem)
     (efrit-run--record loop use (efrit-tool-error problem)))))

(defun efrit-run--drop-plan (use)
  "Drop the plan of USE, if it has one."
  (when (efrit-use-plan use)
    (efrit-plan-drop (efrit-use-plan use))))

;;;; Running

(defun efrit-run--next (loop)
  "Start each use of LOOP that may run now."
  (let ((before nil))
    (dolist (use (efrit-loop-run loop))
      (when (and (efrit-use-ready use)
                 (eq (efrit-use-state use) 'waiting)
                 (eq (efrit-loop-state loop) 'running)
                 (not (seq-some (lambda (earlier) (efrit-run--must-wait-p use earlier))
                                before)))
        (if (and (efrit-run--plans-p use) (null (efrit-use-plan use)))
            (efrit-run--plan loop use)
          (efrit-run--run-or-ask loop use)))
      (unless (memq (efrit-use-state use) '(denied done))
        (push use before)))))

(defun efrit-run--must-wait-p (use earlier)
  "Return non-nil if USE has to wait until EARLIER has ended."
  (or (efrit-use-effects use)
      (efrit-use-effects earlier)
      (and (efrit-tool-get (efrit-use-name use))
           (efrit-tool-get (efrit-use-name earlier)))))

(defun efrit-run--set (loop use state)
  "Set the state of USE in LOOP to STATE, and notify the observers."
  (setf (efrit-use-state use) state)
  (when (eq state 'running)
    (setf (efrit-use-begun use) (float-time)))
  (when (and (eq state 'done) (efrit-use-begun use))
    (setf (efrit-use-seconds use) (- (float-time) (efrit-use-begun use))))
  (efrit-loop-notify loop 'use use))

(defun efrit-run--call (loop use)
  "Call the sidecar's tool of USE in LOOP, after sending unsaved buffers."
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
  "Handle ENVELOPE, the reply of the sidecar's tool of USE in LOOP."
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
  "Handle ERR, the error of a call for USE in LOOP.
If the sidecar died, call again, once: it does not run twice what has run."
  (setf (efrit-use-token use) nil)
  (cond ((not (eq (car err) 'efrit-sidecar-died))
         (efrit-run--record loop use (efrit-tool-error (efrit-error-text err))))
        ((efrit-use-seconds use)
         (efrit-loop-handle loop 'failed "The sidecar died twice while a tool ran; \
M-x efrit-sidecar-show-stderr shows why"))
        (t
         (setf (efrit-use-seconds use) 0)
         ;; The new sidecar is to know of the buffers before it runs the tool.
         (efrit-sync-forget)
         (efrit-run--call loop use))))

(defun efrit-run--run-or-ask (loop use)
  "Decide about USE of LOOP, whose turn has come; run it, ask, or deny it."
  (pcase (if (efrit-use-allowed use) 'allow (efrit-run--decide loop use))
    ('deny (efrit-run--deny loop use))
    ('ask (efrit-run--ask loop use))
    ((guard (not (efrit-tool-get (efrit-use-name use))))
     (efrit-run--call loop use))
    (_ (efrit-run--set loop use 'running)
       (efrit-defer #'efrit-run--run-in-emacs loop use (efrit-loop-step loop)))))

(defun efrit-run--run-in-emacs (loop use step)
  "Run USE of LOOP in this Emacs, if STEP is still the latest."
  (when (and (= step (efrit-loop-step loop)) (eq (efrit-use-state use) 'running))
    (let ((call (efrit-tool-call-create
                 :owner loop :id (efrit-use-id use) :name (efrit-use-name use)
                 :plan (efrit-use-plan use) :directory (efrit-loop-root loop)
                 :finish (lambda (result) (efrit-run--record loop use result)))))
      (setf (efrit-use-call use) call)
      (efrit-tools-run call (efrit-use-arguments use)))))

;;;; Results

(defun efrit-run--record (loop use result)
  "Call `tools/record' with RESULT, a plist, for USE of LOOP."
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
  "Store ENVELOPE as the result of USE in LOOP; after the last, go on."
  (setf (efrit-use-result use) envelope)
  (when (equal (plist-get envelope :status) "success")
    (efrit-read-files-record loop (efrit-use-name use) (efrit-use-arguments use)))
  (efrit-run--set loop use 'done)
  (if (seq-every-p (lambda (use) (eq (efrit-use-state use) 'done)) (efrit-loop-run loop))
      (efrit-turn-tools-done loop)
    (efrit-run--next loop)))

(provide 'efrit-run)
;;; efrit-run.el ends here
