;;; efrit-loop.el --- The loop between the model and its tools  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A loop is a session at work.  `efrit-loop-table' says what may happen in
;; each of its states and where that leads; everything runs from timers and
;; process output, so Emacs never waits.
;;
;; The sidecar alone decides what a request holds: the loop sends what
;; `turn/begin' gives, appends what it is told to append, and tells
;; `turn/end' what came back, before the tools run.  Whoever shows a loop
;; observes it: each observer is called with the loop and an event, a list.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-claude)
(require 'efrit-json)
(require 'efrit-session)
(require 'efrit-sidecar)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-max-turns nil
  "Turns after a person's message at which the person is asked; nil: never."
  :group 'efrit
  :type '(choice (const :tag "Never ask" nil) natnum))

(defcustom efrit-max-minutes nil
  "Minutes after a person's message at which the person is asked; nil: never."
  :group 'efrit
  :type '(choice (const :tag "Never ask" nil) number))

(defcustom efrit-max-dollars nil
  "Dollars after a person's message at which the person is asked; nil: never."
  :group 'efrit
  :type '(choice (const :tag "Never ask" nil) number))

(defconst efrit-loop--calls-again 3
  "How often a call that books a reply or a result is made again.")

;;; Structs

(cl-defstruct (efrit-loop (:constructor efrit-loop--create) (:copier nil))
  "A session at work.
ID, ROOT: the session's.  STATE: see `efrit-loop-table'.  STEP: counts what
was begun, so that what comes too late is known.  MESSAGES: JSON texts,
the latest first; STALE: whether the sidecar is to be asked for them.
SYSTEM, TOOLS: JSON texts.  MODEL: what it can do.  TURN, EPOCH, BUDGET:
the sidecar's.  MAX-TOKENS: of the next reply.  QUEUE: what the person
said and was not sent, the latest first; SENT: what is being sent.
REQUEST: the `efrit-claude' under way, REPLY its end.  RUN: the tools of
the turn, see efrit-run.el.  RULES: permissions of the session.  TODOS: a
vector.  OBSERVERS: functions.  PROBLEM: what stopped it, a string.
COUNTS: turns, start and dollars since the person spoke, a plist.
USAGE: the sums of all replies, a plist.  PREVIOUS: the id of the last
reply.  COMPLETE: whether the model said that it is done.  STOPPING: whether
it stops as soon as it can."
  id root (state 'idle) (step 0) messages stale system tools model
  (turn 0) (epoch 0) budget (max-tokens 1) queue sent request reply run rules todos
  observers problem counts usage previous complete stopping)

(defconst efrit-loop-resting
  '(idle failed refused cut-short window-full limited)
  "The states in which a loop waits for the person.")

(defconst efrit-loop-table
  `(,@(mapcar (lambda (state) `(,state go beginning efrit-loop--begin))
              efrit-loop-resting)
    (beginning begun      waiting     efrit-loop--request)
    (beginning halted     idle        nil)
    (beginning failed     failed      nil)
    (beginning stop       beginning   efrit-loop--stop-soon)
    (waiting   event      streaming   nil)
    (waiting   retry      retrying    nil)
    (waiting   replied    ending      efrit-loop--end)
    (waiting   failed     failed      nil)
    (waiting   stop       idle        efrit-loop--drop-request)
    (streaming retry      retrying    nil)
    (streaming replied    ending      efrit-loop--end)
    (streaming failed     failed      nil)
    (streaming stop       ending      efrit-loop--end-aborted)
    (retrying  again      waiting     nil)
    (retrying  hurry      retrying    efrit-loop--hurry)
    (retrying  failed     failed      nil)
    (retrying  stop       idle        efrit-loop--drop-request)
    (ending    tools      running     efrit-loop--run)
    (ending    paused     beginning   efrit-loop--begin)
    (ending    more       beginning   efrit-loop--begin)
    (ending    done       idle        nil)
    (ending    refused    refused     nil)
    (ending    cut        cut-short   nil)
    (ending    full       window-full nil)
    (ending    failed     failed      nil)
    (ending    stop       ending      efrit-loop--stop-soon)
    (running   more       beginning   efrit-loop--begin)
    (running   done       idle        nil)
    (running   limit      limited     nil)
    (running   failed     failed      nil)
    (running   stop       idle        efrit-loop--stop-tools))
  "What may happen to a loop: (STATE EVENT NEXT ACTION).
ACTION is called with the loop once it is in the state NEXT, and with what
came with the event.  What does not stand here has come too late, and is
passed over.")

(defvar efrit-loop-run-function #'ignore
  "Called with a loop to run the tools of its reply; see efrit-run.el.")

(defvar efrit-loop-stop-tools-function #'ignore
  "Called with a loop to stop the tools that run.")

(defvar efrit-loop-registered-tools #'ignore
  "Called for the tools of this Emacs, as the sidecar takes them.")

(defvar efrit-loop-system-function #'ignore
  "Called with a loop for its system prompt, a string.")

;;; Public

(defun efrit-loop-make (id root)
  "Return a loop for the session ID on ROOT, with nothing in it yet."
  (efrit-loop--create :id id :root root :counts (efrit-loop--new-counts)))

(defun efrit-loop-resting-p (loop)
  "Return non-nil while LOOP waits for the person."
  (memq (efrit-loop-state loop) efrit-loop-resting))

(defun efrit-loop-say (loop blocks)
  "Have the person say BLOCKS, a list of plists, in LOOP.
While the model works, it is sent with the next turn."
  (push blocks (efrit-loop-queue loop))
  (efrit-loop-tell loop 'queued blocks)
  (when (efrit-loop-resting-p loop)
    (efrit-loop-go loop)))

(defun efrit-loop-go (loop)
  "Have LOOP go on from where it rests."
  (when (efrit-loop-resting-p loop)
    (setf (efrit-loop-problem loop) nil
          (efrit-loop-complete loop) nil
          (efrit-loop-stopping loop) nil
          (efrit-loop-counts loop) (efrit-loop--new-counts))
    (efrit-loop-happen loop 'go)))

(defun efrit-loop-stop (loop)
  "Stop LOOP as soon as nothing is lost by it."
  (efrit-loop-happen loop 'stop))

(defun efrit-loop-retry-now (loop)
  "Have LOOP, which waits before a retry, try at once."
  (efrit-loop-happen loop 'hurry))

(defun efrit-loop-observe (loop observer)
  "Have OBSERVER called with LOOP and each of its events from now on."
  (cl-pushnew observer (efrit-loop-observers loop)))

(defun efrit-loop-tell (loop &rest event)
  "Tell the observers of LOOP of EVENT.  An error in one is that one's own."
  (dolist (observer (efrit-loop-observers loop))
    (condition-case err
        (funcall observer loop event)
      (error (message "efrit: %S cannot show %S: %s"
                      observer (car event) (error-message-string err))))))

(defun efrit-loop-happen (loop event &rest arguments)
  "Let EVENT happen to LOOP; ARGUMENTS come with it.
Return non-nil if the table has it."
  (pcase (seq-find (lambda (row)
                     (and (eq (car row) (efrit-loop-state loop)) (eq (cadr row) event)))
                   efrit-loop-table)
    (`(,old ,_ ,next ,action)
     (when (and (eq event 'failed) (stringp (car arguments)))
       (setf (efrit-loop-problem loop) (car arguments)))
     (setf (efrit-loop-state loop) next)
     (unless (eq old next)
       (efrit-loop-tell loop 'state next old))
     (when action
       (apply action loop arguments))
     t)))

(defun efrit-loop-restore (loop)
  "Have LOOP ask the sidecar for its conversation before it goes on."
  (setf (efrit-loop-stale loop) t))

;;; Beginning

(defun efrit-loop--new-counts ()
  "Return what is counted from a person's message on."
  (list :turns 0 :start (float-time) :dollars 0))

(defun efrit-loop--step (loop)
  "Begin something in LOOP, and return its number."
  (cl-incf (efrit-loop-step loop)))

(defmacro efrit-loop--if-current (loop step &rest body)
  "Run BODY if nothing was begun in LOOP after STEP."
  (declare (indent 2) (debug t))
  `(when (= (efrit-loop-step ,loop) ,step)
     ,@body))

(defun efrit-loop--call (loop method params success &optional failure)
  "Call METHOD of the sidecar with PARAMS for LOOP, and then SUCCESS.
It is called with the result, unless something else was begun meanwhile;
FAILURE, if any, with the error, which otherwise stops the loop."
  (let ((step (efrit-loop-step loop)))
    (condition-case err
        (efrit-sidecar-request-async
         method (append (list :session_id (efrit-loop-id loop)) params)
         :timeout nil
         :success (lambda (result)
                    (efrit-loop--if-current loop step (funcall success result)))
         :error (lambda (err)
                  (efrit-loop--if-current loop step
                    (if failure (funcall failure err)
                      (efrit-loop--sidecar-failed loop err)))))
      (error (efrit-loop--sidecar-failed loop err) nil))))

(defun efrit-loop--sidecar-failed (loop err)
  "Stop LOOP for ERR, an error of a call of the sidecar's."
  (efrit-loop-restore loop)
  (efrit-loop-happen loop 'failed (efrit-error-text err)))

(defun efrit-loop--begin (loop &rest _)
  "Begin a turn of LOOP: what is stale first, then what the client can run."
  (efrit-loop--step loop)
  (if (efrit-loop-stale loop)
      (efrit-loop--fetch loop)
    (efrit-loop--register loop)))

(defun efrit-loop--fetch (loop)
  "Ask the sidecar for the conversation of LOOP, and how far it has come."
  (efrit-loop--call
   loop 'session/messages '(:as_text t)
   (lambda (held)
     (setf (efrit-loop-messages loop) (nreverse (append (plist-get held :messages) nil))
           (efrit-loop-epoch loop) (plist-get held :epoch))
     (efrit-loop--call
      loop 'session/status nil
      (lambda (status)
        (efrit-loop--is-fresh loop (plist-get status :budget))
        (efrit-loop--register loop))))))

(defun efrit-loop--is-fresh (loop budget)
  "Note that LOOP stands as the sidecar has it; BUDGET is its snapshot.
What was being sent has arrived if a turn began that we did not hear of."
  (setf (efrit-loop-stale loop) nil
        (efrit-loop-budget loop) budget)
  (when (> (or (plist-get budget :turn) 0) (efrit-loop-turn loop))
    (setf (efrit-loop-turn loop) (plist-get budget :turn)
          (efrit-loop-sent loop) nil)))

(defun efrit-loop--register (loop)
  "Tell the sidecar which tools this Emacs can run for LOOP, then begin."
  (efrit-loop--call loop 'tools/register
                    (list :tools (or (funcall efrit-loop-registered-tools) []))
                    (lambda (_) (efrit-loop--begin-turn loop))))

(defun efrit-loop--begin-turn (loop)
  "Ask the sidecar what the next request of LOOP is to be."
  (let ((said (append (efrit-loop-sent loop)
                      (apply #'append (nreverse (efrit-loop-queue loop))))))
    (setf (efrit-loop-queue loop) nil
          (efrit-loop-sent loop) said)
    (efrit-loop--call
     loop 'turn/begin
     `(:model ,efrit-claude-model :as_text t
              :system ,(or (funcall efrit-loop-system-function loop) "")
              ,@(and said (list :user_message (vconcat said))))
     (lambda (begun) (efrit-loop--begun loop begun)))))

(defun efrit-loop--begun (loop begun)
  "Take BEGUN, the answer to `turn/begin', into LOOP."
  (let ((rewrite (plist-get begun :rewrite))
        (append (plist-get begun :append)))
    (when rewrite
      (setf (efrit-loop-messages loop) nil))
    (efrit-loop--append loop (or rewrite append))
    (setf (efrit-loop-sent loop) nil
          (efrit-loop-system loop) (plist-get begun :system)
          (efrit-loop-tools loop) (plist-get begun :tools)
          (efrit-loop-model loop) (plist-get begun :model)
          (efrit-loop-turn loop) (plist-get begun :turn_id)
          (efrit-loop-epoch loop) (plist-get begun :epoch)
          (efrit-loop-max-tokens loop) (plist-get begun :max_tokens)
          (efrit-loop-budget loop) (plist-get begun :budget))
    (efrit-loop-tell loop 'begun (and rewrite t) (append (plist-get begun :notes) nil))
    (efrit-loop-happen loop (if (efrit-loop-stopping loop) 'halted 'begun))))

(defun efrit-loop--append (loop holder)
  "Append the messages of HOLDER, a plist or nil, to those of LOOP."
  (mapc (lambda (message) (push message (efrit-loop-messages loop)))
        (plist-get holder :messages)))

(defun efrit-loop--stop-soon (loop &rest _)
  "Have LOOP stop when what is under way has its answer."
  (setf (efrit-loop-stopping loop) t))

;;; Requests

(defun efrit-loop--request (loop &rest _)
  "Send the request of LOOP."
  (let ((step (efrit-loop--step loop)))
    (condition-case err
        (setf (efrit-loop-request loop)
              (efrit-claude-send
               :system (efrit-loop-system loop) :tools (efrit-loop-tools loop)
               :messages (reverse (efrit-loop-messages loop))
               :max-tokens (efrit-loop-max-tokens loop) :model (efrit-loop-model loop)
               :budget-left (efrit-loop--task-budget-left loop)
               :previous-id (efrit-loop-previous loop)
               :on-event (lambda (event)
                           (efrit-loop--if-current loop step
                             (efrit-loop--event loop event)))
               :on-end (lambda (reply problem)
                         (efrit-loop--if-current loop step
                           (efrit-loop--replied loop reply problem)))))
      (error (efrit-loop-happen loop 'failed (error-message-string err))))))

(defun efrit-loop--task-budget-left (loop)
  "Return what is left of the task budget in LOOP, or nil."
  (and efrit-claude-task-budget
       (- efrit-claude-task-budget (or (plist-get (efrit-loop-usage loop) :output) 0))))

(defun efrit-loop--event (loop event)
  "Take EVENT of the reply that streams into LOOP."
  (pcase (car event)
    ('retry (efrit-loop-happen loop 'retry))
    ('again (efrit-loop-happen loop 'again))
    (_ (efrit-loop-happen loop 'event)))
  (apply #'efrit-loop-tell loop event))

(defun efrit-loop--replied (loop reply problem)
  "The request of LOOP has ended with REPLY, or with PROBLEM."
  (setf (efrit-loop-request loop) nil)
  (if problem
      (efrit-loop-happen loop 'failed (plist-get problem :message))
    (efrit-loop-happen loop 'replied reply)))

(defun efrit-loop--drop-request (loop &rest _)
  "Drop the request of LOOP, of which nothing has come."
  (efrit-loop--step loop)
  (when (efrit-loop-request loop)
    (efrit-claude-cancel (efrit-loop-request loop))
    (setf (efrit-loop-request loop) nil)))

(defun efrit-loop--hurry (loop &rest _)
  "Have the request of LOOP be sent at once."
  (efrit-claude-retry-now (efrit-loop-request loop)))

;;; Ending

(defun efrit-loop--end-aborted (loop &rest _)
  "Stop the reply that streams into LOOP, and keep what has come of it."
  (let ((reply (efrit-claude-cancel (efrit-loop-request loop))))
    (setf (efrit-loop-request loop) nil
          (efrit-loop-stopping loop) t)
    (efrit-loop--end loop reply 'aborted)))

(defun efrit-loop--end (loop reply &optional aborted)
  "Tell the sidecar of REPLY, which has come in LOOP; ABORTED if not whole."
  (setf (efrit-loop-reply loop) reply)
  (efrit-loop--step loop)
  (efrit-loop--call-again
   loop 'turn/end
   `(:turn_id ,(efrit-loop-turn loop) :model ,efrit-claude-model :as_text t
              :content_json ,(efrit-reply-content reply)
              :usage ,(efrit-reply-counts reply)
              ,@(and (efrit-reply-stop-reason reply)
                     (list :stop_reason (efrit-reply-stop-reason reply)))
              :aborted ,(if aborted t :json-false))
   (lambda (ended) (efrit-loop--ended loop ended))))

(defun efrit-loop--call-again (loop method params success &optional tries)
  "Call METHOD with PARAMS for LOOP, then SUCCESS; again when the sidecar dies.
METHOD may be called twice.  TRIES counts the calls made."
  (let ((tries (or tries 1)))
    (efrit-loop--call
     loop method params success
     (lambda (err)
       (if (and (eq (car err) 'efrit-sidecar-died) (< tries efrit-loop--calls-again))
           (efrit-loop--call-again loop method params success (1+ tries))
         (efrit-loop--sidecar-failed loop err))))))

(defun efrit-loop--ended (loop ended)
  "Take ENDED, the answer to `turn/end', into LOOP, and go on."
  (let ((reply (efrit-loop-reply loop)))
    (efrit-loop--append loop (plist-get ended :append))
    (efrit-loop--count loop reply)
    (setf (efrit-loop-budget loop) (plist-get ended :budget)
          (efrit-loop-previous loop) (efrit-reply-id reply))
    (efrit-loop-tell loop 'ended reply)
    (efrit-loop-happen loop (efrit-loop--after loop reply))))

(defun efrit-loop--after (loop reply)
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

(defun efrit-loop--count (loop reply)
  "Add what REPLY cost to the counts of LOOP."
  (let ((counts (efrit-loop-counts loop))
        (usage (efrit-loop-usage loop)))
    (plist-put counts :turns (1+ (plist-get counts :turns)))
    (pcase-dolist (`(,name . ,member) '((:input . "input_tokens")
                                        (:written . "cache_creation_input_tokens")
                                        (:read . "cache_read_input_tokens")
                                        (:output . "output_tokens")))
      (setq usage (plist-put usage name (+ (or (plist-get usage name) 0)
                                           (efrit-reply-count reply member)))))
    (setf (efrit-loop-usage loop) usage)))

;;; Tools

(defun efrit-loop--run (loop &rest _)
  "Run the tools that the reply of LOOP asks for."
  (efrit-loop--step loop)
  (funcall efrit-loop-run-function loop))

(defun efrit-loop-tools-done (loop)
  "Go on in LOOP, whose tools have all given a result."
  (efrit-loop-happen loop (cond ((and (efrit-loop-complete loop)
                                      (null (efrit-loop-queue loop)))
                                 'done)
                                ((efrit-loop-limit loop) 'limit)
                                (t 'more))))

(defun efrit-loop-limit (loop)
  "Return the limit that LOOP has reached, a string, or nil."
  (let* ((counts (efrit-loop-counts loop))
         (minutes (/ (- (float-time) (plist-get counts :start)) 60)))
    (cond
     ((and efrit-max-turns (>= (plist-get counts :turns) efrit-max-turns))
      (format "%d turns" efrit-max-turns))
     ((and efrit-max-minutes (>= minutes efrit-max-minutes))
      (format "%s minutes" efrit-max-minutes))
     ((and efrit-max-dollars (>= (plist-get counts :dollars) efrit-max-dollars))
      (format "$%s" efrit-max-dollars)))))

(defun efrit-loop--stop-tools (loop &rest _)
  "Stop the tools of LOOP that run; the sidecar answers for them."
  (efrit-loop--step loop)
  (funcall efrit-loop-stop-tools-function loop))

(provide 'efrit-loop)
;;; efrit-loop.el ends here
