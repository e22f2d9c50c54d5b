;;; efrit-loop.el --- The loop between the model and its tools  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A loop is a session at work: its states, its tool calls, its calls of the
;; sidecar, and its price.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-sidecar)

;;; Loops

;; A loop is a session at work.  `efrit-loop-table' says what may happen in
;; each of its states and where that leads; everything runs from timers and
;; process output, so Emacs never waits.
;;
;; The sidecar alone decides what a request holds: the loop sends the messages
;; that `turn/begin' and `turn/end' return, and passes the reply to `turn/end'
;; before the tools run.  Whatever shows a loop observes it: each observer, a
;; function, is called with the loop and an event, a list.

(cl-defstruct (efrit-loop (:constructor efrit-loop--create) (:copier nil))
  "A session at work.
ID, ROOT: id and project folder of the session.  STATE: see `efrit-loop-table'.
STEP: counts the steps, so that late replies are recognized.  MESSAGES: JSON
texts, the latest first; STALE: non-nil if the sidecar must send MESSAGES anew.
SYSTEM, TOOLS: JSON texts of the prefix.  OFFERED: the schemas of Emacs's tools
that the sidecar has.  MODEL: a plist of what the model can do.  TURN, EPOCH,
BUDGET: two numbers and a snapshot from the sidecar.  LEFT: the tokens that had
left the window when the epoch began.  MAX-TOKENS: limit of the next reply.
QUEUE: the person's messages that the sidecar does not have yet, lists of
blocks, the latest first; NOTICES: blocks sent before QUEUE, the latest first;
SENDING: the elements of QUEUE and NOTICES that are being sent.
REQUEST: the `efrit-request' under way; REPLY: the `efrit-reply' that ended it.
RUN: the list of `efrit-use' of the turn.  RULES: permission rules of the
session.  TODOS: a vector.  OBSERVERS: functions.  PROBLEM: why it failed;
NO-KEY: non-nil if that was for want of a key.
COUNTS: what the person's latest message has used so far, a plist, see
`efrit-loop-guard'.  FAILING: the calls at the end of the session that failed
alike, as (NAME ARGUMENTS COUNT), or nil.
USAGE: tokens and dollars of the session, a plist; LOST: the usage of failed
attempts that was not reported yet, hash tables.  PREVIOUS: the id of the last
reply.  COMPLETE: non-nil if the model said that the task is done.  STOPPING:
non-nil if the loop stops once the sidecar answers.  READ-STAMPS: a hash table
from files to their stamps when the model read them.  LAST-WORKED: the time
when the session last worked before this Emacs resumed it; LAST-MODEL: its
provider's name and its model then, a list of two strings, or nil.
NOTED: notes that were shown, and are shown only once.  OPTIONS: an alist from
`efrit-loop-own-options' to the values that the loop uses; CHOSEN: an alist of
values that it uses from the next turn on.  REWRITE-REASONS: why the turn began
an epoch, a list of strings from the sidecar.  PAID-ANEW: what a turn paid for
again although it had been cached, a plist, see `efrit-loop-take-loss'; of the
latest such turn.  TITLE: the title of the session, a
string, or nil if it has none yet.  SERVERS: what is known about its MCP
servers, a plist, see `efrit-mcp-start'."
  id root (state 'idle) (step 0) messages stale system tools offered model
  (turn 0) (epoch 0) budget left (max-tokens 1) queue notices sending request reply run rules todos
  observers problem no-key counts failing usage lost previous complete stopping
  (read-stamps (make-hash-table :test #'equal)) last-worked last-model noted options chosen
  rewrite-reasons paid-anew title servers)

(defconst efrit-loop-own-options
  '(efrit-claude-url efrit-endpoint-api efrit-endpoint-provider efrit-endpoint-window
    efrit-endpoint-max-output efrit-claude-headers efrit-claude-features efrit-claude-key-hosts
    efrit-claude-key-in-clear efrit-claude-model efrit-claude-max-tokens efrit-claude-effort
    efrit-claude-thinking-display efrit-claude-task-budget efrit-claude-betas
    efrit-claude-retries efrit-claude-retry-delay efrit-claude-retry-most
    efrit-claude-retry-after-most efrit-max-turns efrit-max-minutes efrit-max-dollars
    efrit-max-tokens efrit-mcp-servers efrit-mcp-project efrit-mcp-hidden-tools efrit-mcp-short
    efrit-mcp-seconds efrit-permission-rules)
  "The options that a loop copies when it is made, and uses from then on.")

(defconst efrit-loop-resting
  '(idle failed refused cut-short window-full limited)
  "The states in which a loop waits for the person.")

(defconst efrit-loop-table
  `(,@(mapcar (lambda (state) `(,state go beginning efrit-turn--begin))
              efrit-loop-resting)
    (beginning begun      waiting     efrit-turn--request)
    (beginning halted     idle        nil)
    (beginning failed     failed      nil)
    (beginning again      beginning   efrit-turn--begin)
    (beginning stop       beginning   efrit-turn--stop-soon)
    (waiting   event      streaming   nil)
    (waiting   retry      retrying    nil)
    (waiting   replied    ending      efrit-turn--end)
    (waiting   failed     failed      nil)
    (waiting   stop       idle        efrit-turn--drop-request)
    (streaming retry      retrying    nil)
    (streaming replied    ending      efrit-turn--end)
    (streaming failed     failed      nil)
    (streaming stop       ending      efrit-turn--end-aborted)
    (retrying  again      waiting     nil)
    (retrying  hurry      retrying    efrit-turn--retry-now)
    (retrying  failed     failed      nil)
    (retrying  stop       idle        efrit-turn--drop-request)
    (ending    tools      running     efrit-turn--run)
    (ending    paused     beginning   efrit-turn--begin)
    (ending    more       beginning   efrit-turn--begin)
    (ending    done       idle        nil)
    (ending    refused    refused     nil)
    (ending    cut        cut-short   nil)
    (ending    full       window-full nil)
    (ending    limit      limited     nil)
    (ending    failed     failed      nil)
    (ending    stop       ending      efrit-turn--stop-soon)
    (running   more       beginning   efrit-turn--begin)
    (running   done       idle        nil)
    (running   cut        cut-short   nil)
    (running   limit      limited     nil)
    (running   failed     failed      nil)
    (running   stop       idle        efrit-turn--stop-tools)
    (limited   stop       idle        nil))
  "Transitions of a loop: (STATE EVENT NEXT ACTION).
ACTION, unless nil, is called with the loop, now in the state NEXT, and the
event's arguments.  An event without a row for the state is late and ignored.")

(defvar efrit-loop-work-functions nil
  "Functions called with a loop that begins to work.")

(defvar efrit-loop-rest-functions nil
  "Functions called with a loop that begins to wait for the person.")

(defun efrit-loop-make (id root)
  "Return a new loop for the session ID on the project ROOT."
  (let ((loop (efrit-loop--create :id id :root root :counts (efrit-loop--new-counts))))
    (efrit-loop-take-options loop)
    loop))

(defun efrit-loop-take-options (loop)
  "Have LOOP use the default values of `efrit-loop-own-options'."
  (dolist (option efrit-loop-own-options)
    (when (default-boundp option)
      (efrit-loop-choose loop option (default-value option)))))

(defun efrit-loop-option (loop option)
  "Return the value of OPTION, one of `efrit-loop-own-options', for LOOP."
  (alist-get option (efrit-loop-options loop)))

(defun efrit-loop-choose (loop option value)
  "Have LOOP use VALUE for OPTION, one of `efrit-loop-own-options'.
What is part of a request is used from the next turn on, since the sidecar
knows with which model a turn began."
  (if (or (efrit-loop-resting-p loop)
          (not (string-match-p "\\`efrit-\\(?:claude\\|endpoint\\)-" (symbol-name option))))
      (setf (alist-get option (efrit-loop-options loop)) value)
    (setf (alist-get option (efrit-loop-chosen loop)) value))
  (setf (plist-get (efrit-loop-counts loop) :raised)
        (assq-delete-all option (plist-get (efrit-loop-counts loop) :raised)))
  (efrit-loop-notify loop 'chosen option))

(defun efrit-loop-next-option (loop option)
  "Return the value of OPTION in the next turn of LOOP."
  (alist-get option (efrit-loop-chosen loop) (efrit-loop-option loop option)))

(defun efrit-loop-apply-chosen (loop)
  "Have LOOP use what was chosen while it worked; a turn begins."
  (pcase-dolist (`(,option . ,value) (efrit-loop-chosen loop))
    (setf (alist-get option (efrit-loop-options loop)) value))
  (setf (efrit-loop-chosen loop) nil))

(defun efrit-loop-project (loop)
  "Return the name of the project of LOOP, that of its folder."
  (file-name-nondirectory (directory-file-name (efrit-loop-root loop))))

(defun efrit-loop-rename (loop title)
  "Record TITLE as the title of the session of LOOP; notify its observers."
  (setf (efrit-loop-title loop) (and title (not (string-blank-p title)) title))
  (efrit-loop-notify loop 'title title))

(defmacro efrit-loop-with-options (loop &rest body)
  "Run BODY in a temporary buffer, with the options bound to those of LOOP."
  (declare (indent 1) (debug t))
  `(with-temp-buffer
     (cl-progv
         (mapcar #'car (efrit-loop-options ,loop))
         (mapcar #'cdr (efrit-loop-options ,loop))
       ,@body)))

(defun efrit-loop-resting-p (loop)
  "Return non-nil while LOOP waits for the person."
  (memq (efrit-loop-state loop) efrit-loop-resting))

(defun efrit-loop-say (loop blocks)
  "Queue BLOCKS, a message of the person's as a list of plists, in LOOP.
If the loop rests, begin a turn; else the message goes with the next turn."
  (let ((inhibit-quit t))
    (push blocks (efrit-loop-queue loop))
    (efrit-loop-notify loop 'queued blocks)
    (when (efrit-loop-resting-p loop)
      (efrit-loop-go loop))))

(defun efrit-loop-queue-note (loop text told)
  "Send the model TEXT with the next turn of LOOP, without beginning a turn.
Notify the observers with the note TOLD."
  (push (list :type "text" :text text) (efrit-loop-notices loop))
  (efrit-loop-notify loop 'note told))

(defun efrit-loop-unsent (loop)
  "Return the blocks in LOOP that the sidecar does not have yet, in order."
  (append (reverse (efrit-loop-notices loop))
          (apply #'append (reverse (efrit-loop-queue loop)))))

(defun efrit-loop-queued-p (loop message)
  "Return non-nil if MESSAGE is queued in LOOP and not being sent."
  (and (memq message (efrit-loop-queue loop))
       (not (memq message (efrit-loop-sending loop)))))

(defun efrit-loop-send (loop)
  "Mark everything queued in LOOP as being sent, and return its blocks."
  (setf (efrit-loop-sending loop)
        (append (efrit-loop-notices loop) (efrit-loop-queue loop)))
  (efrit-loop-unsent loop))

(defun efrit-loop-arrived (loop)
  "Remove from LOOP the messages that were being sent: the sidecar has them.
Notify the observers of the messages."
  (let* ((sending (efrit-loop-sending loop))
         (arrived (lambda (part) (memq part sending)))
         (messages (seq-filter arrived (efrit-loop-queue loop))))
    (setf (efrit-loop-queue loop) (seq-remove arrived (efrit-loop-queue loop))
          (efrit-loop-notices loop) (seq-remove arrived (efrit-loop-notices loop))
          (efrit-loop-sending loop) nil)
    (when messages
      (setf (efrit-loop-counts loop) (efrit-loop--new-counts))
      (efrit-loop-notify loop 'arrived (nreverse messages)))))

(defun efrit-loop-go (loop &optional unasked)
  "Begin a turn of LOOP, if it rests.
If a guard stopped it, the guard asks again at double its limit; or, if UNASKED
is non-nil, not before the person's next message."
  (when (efrit-loop-resting-p loop)
    (setf (efrit-loop-problem loop) nil
          (efrit-loop-no-key loop) nil
          (efrit-loop-complete loop) nil
          (efrit-loop-stopping loop) nil)
    (if (eq (efrit-loop-state loop) 'limited)
        (efrit-loop--raise-guard loop unasked)
      (setf (efrit-loop-counts loop) (efrit-loop--new-counts)))
    (efrit-loop-handle loop 'go)))

(defun efrit-loop-stop (loop)
  "Stop LOOP at once, or as soon as the sidecar has stored what it was sent.
Return nil if LOOP rests, unless a guard asks."
  (efrit-loop-handle loop 'stop))

(defun efrit-loop-retry-now (loop)
  "Send the request of LOOP again at once, if it waits before a retry.
Return nil if LOOP does not wait."
  (efrit-loop-handle loop 'hurry))

(defun efrit-loop-observe (loop observer)
  "Call OBSERVER with LOOP and each event from now on."
  (cl-pushnew observer (efrit-loop-observers loop)))

(defun efrit-loop-notify (loop &rest event)
  "Call the observers of LOOP with EVENT.
An error or quit in an observer is shown, and the other observers still run."
  (let ((inhibit-quit t))
    (dolist (observer (efrit-loop-observers loop))
      (condition-case err
          (funcall observer loop event)
        ((error quit)
         (message "efrit: %s cannot show %S: %s"
                  (if (symbolp observer) observer "an observer")
                  (car event) (error-message-string err)))))))

(defun efrit-loop-note-once (loop text)
  "Notify the observers of LOOP of the note TEXT, but only once in a session.
Do nothing if TEXT is nil."
  (unless (or (null text) (member text (efrit-loop-noted loop)))
    (push text (efrit-loop-noted loop))
    (efrit-loop-notify loop 'note text)))

(defun efrit-loop-handle (loop event &rest arguments)
  "Change the state of LOOP by EVENT, following `efrit-loop-table'.
Call the action with LOOP and ARGUMENTS, and return non-nil; return nil if the
table has no row for state and EVENT.  A quit waits until the action returns."
  (let ((inhibit-quit t))
    (pcase (seq-find (lambda (row)
                       (and (eq (car row) (efrit-loop-state loop)) (eq (cadr row) event)))
                     efrit-loop-table)
      (`(,old ,_ ,next ,action)
       (when (and (eq event 'failed) (stringp (car arguments)))
         (setf (efrit-loop-problem loop) (car arguments)))
       (setf (efrit-loop-state loop) next)
       (unless (eq old next)
         (efrit-loop-notify loop 'state next old))
       (cond ((memq next efrit-loop-resting)
              (efrit-loop--run 'efrit-loop-rest-functions loop))
             ((memq old efrit-loop-resting)
              (efrit-loop--run 'efrit-loop-work-functions loop)))
       ;; An observer may have stopped the loop just now.
       (when (and action (eq (efrit-loop-state loop) next))
         (apply #'efrit-loop-call-safely loop action loop arguments))
       t))))

(defun efrit-loop-call-safely (loop function &rest arguments)
  "Call FUNCTION with ARGUMENTS; if it signals or is quit, stop LOOP as failed.
A person can quit where, for example, a passphrase is read."
  (condition-case err
      (apply function arguments)
    ((error quit)
     (cl-incf (efrit-loop-step loop))
     (setf (efrit-loop-stale loop) t)
     (unless (efrit-loop-handle loop 'failed (error-message-string err))
       (message "efrit: %s" (error-message-string err))))))

(defun efrit-loop--run (hook loop)
  "Call the functions of HOOK with LOOP; show their errors."
  (run-hook-wrapped hook (lambda (function)
                           (condition-case err
                               (funcall function loop)
                             ((error quit)
                              (message "efrit: %S: %s" function
                                       (error-message-string err))))
                           nil)))

;;; Tool calls

(cl-defstruct (efrit-use (:constructor efrit-use-create) (:copier nil))
  "A use of a tool in a turn.
ID and NAME are from the model.  ARGUMENTS is a JSON text: the input as the
sidecar parsed it and the tool resolved it.  Permissions, questions, the work
log and the tool use only this text.  PROBLEM says why the sidecar could not
parse the input, MISFIT how the input breaks the schema, see `efrit-block'.
STATE is `waiting', `planning', `asking', `denied', `running', or `done'.
READY is non-nil if the use may run, or make its plan, once earlier uses have.
PLAN is the `efrit-plan' of a tool that changes files, or nil.  RESULT is the
envelope, a plist without data.  QUESTION is the question to the person, CONFIRM
the id of the sidecar's question.  GUARD says why the person is asked even if a
rule allows the use; ALLOWED is non-nil if the person allowed this very use.
EFFECTS is non-nil if the tool can change something.  TOKEN is the sidecar's
call under way, CALL the `efrit-tool-call' of a tool of this Emacs.  BEGUN is
the time when the use began to run, SECONDS how long it ran."
  id name arguments problem misfit (state 'waiting) ready plan result question confirm
  guard allowed effects token call begun seconds)

;;; Guards

;; A guard asks the person whether to go on, once a message has used as many
;; dollars, turns, minutes or tokens as its option says.  The loop rests then,
;; in the state `limited', and whatever was done is stored.

(defun efrit-loop--new-counts ()
  "Return new counts of a message, a plist: all zero, and the present time.
`:raised' is an alist from options of guards to the limits in their place."
  (list :turns 0 :start (float-time) :dollars 0 :tokens 0 :paused nil :raised nil))

(defun efrit-loop-guard (loop)
  "Return the guard that LOOP has reached, (OPTION USED LIMIT), or nil."
  (let* ((counts (efrit-loop-counts loop))
         (now (or (plist-get counts :paused) (float-time)))
         (priced (plist-get (efrit-loop-usage loop) :dollars)))
    (cl-loop for (option used)
             in `((efrit-max-dollars ,(and priced (plist-get counts :dollars)))
                  (efrit-max-tokens ,(and (null priced) (plist-get counts :tokens)))
                  (efrit-max-turns ,(plist-get counts :turns))
                  (efrit-max-minutes ,(/ (- now (plist-get counts :start)) 60)))
             for limit = (efrit-loop--guard-limit loop option)
             when (and used limit (>= used limit))
             return (list option used limit))))

(defun efrit-loop-next-limit (guard)
  "Return the limit at which GUARD asks again: its double, or that of what is used."
  (pcase-let ((`(,_ ,used ,limit) guard))
    (* 2 (if (> (* 2 limit) used) limit used))))

(defun efrit-loop-pause-if-guarded (loop)
  "Return the guard that LOOP has reached, or nil.
If there is one, the time until the person answers does not count."
  (let ((guard (efrit-loop-guard loop)))
    (when guard
      (plist-put (efrit-loop-counts loop) :paused (float-time)))
    guard))

(defun efrit-loop--guard-limit (loop option)
  "Return the limit of the guard OPTION in LOOP, or nil for none."
  (let ((raised (assq option (plist-get (efrit-loop-counts loop) :raised))))
    (if raised (cdr raised) (efrit-loop-option loop option))))

(defun efrit-loop--raise-guard (loop unasked)
  "Raise the limit of the guard that stopped LOOP to double, or to none if UNASKED."
  (let ((guard (efrit-loop-guard loop))
        (counts (efrit-loop-counts loop)))
    (when guard
      (push (cons (car guard) (and (not unasked) (efrit-loop-next-limit guard)))
            (plist-get counts :raised)))
    (when (plist-get counts :paused)
      (cl-incf (plist-get counts :start) (- (float-time) (plist-get counts :paused)))
      (plist-put counts :paused nil))))

;;; Calls that fail alike

(defconst efrit-loop--most-alike 3
  "Number of equal calls that fail in a row after which the person is told.")

(defun efrit-loop-note-failures (loop)
  "Notify the observers of LOOP if a tool call of its turn fails again and again.
It counts if it has the tool and the input of the call before it, and both
failed.  The event is (failing USE COUNT)."
  (dolist (use (efrit-loop-run loop))
    (pcase-let ((call (list (efrit-use-name use) (efrit-use-arguments use)))
                (`(,name ,arguments ,count) (efrit-loop-failing loop)))
      (setf (efrit-loop-failing loop)
            (and (equal (plist-get (efrit-use-result use) :status) "error")
                 (append call (list (if (equal call (list name arguments)) (1+ count) 1)))))
      (when-let* ((count (nth 2 (efrit-loop-failing loop)))
                  ((zerop (mod count efrit-loop--most-alike))))
        (efrit-loop-notify loop 'failing use count)))))

;;; Calls of the sidecar

(defconst efrit-loop--most-calls 3
  "Most calls of a method that is called again when the sidecar dies.")

(defun efrit-loop-begin-step (loop)
  "Begin a new step of LOOP and return its number.
Late replies to earlier steps are ignored."
  (cl-incf (efrit-loop-step loop)))

(defmacro efrit-loop-if-current (loop step &rest body)
  "Run BODY if STEP is still the latest step of LOOP."
  (declare (indent 2) (debug t))
  `(when (= (efrit-loop-step ,loop) ,step)
     ,@body))

(defun efrit-loop-ask-sidecar (loop method params success failure)
  "Call METHOD with PARAMS for the session of LOOP, then SUCCESS or FAILURE.
There is no limit of time, and the state of LOOP does not matter."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id loop)) params)
   :timeout nil :success success :error failure))

(defun efrit-loop-call (loop method params success &optional failure)
  "Call METHOD of the sidecar with PARAMS for the session of LOOP.
Call SUCCESS with the result or FAILURE with the error, unless another step
has begun meanwhile.  Without FAILURE an error stops the loop."
  (let ((step (efrit-loop-step loop)))
    (condition-case err
        (efrit-sidecar-request-async
         method (append (list :session_id (efrit-loop-id loop)) params)
         :timeout nil
         :success (lambda (result)
                    (efrit-loop-if-current loop step
                      (efrit-loop-call-safely loop success result)))
         :error (lambda (err)
                  (efrit-loop-if-current loop step
                    (if failure (efrit-loop-call-safely loop failure err)
                      (efrit-loop-sidecar-failed loop err)))))
      ((error quit) (efrit-loop-sidecar-failed loop err) nil))))

(defun efrit-loop-sidecar-failed (loop err)
  "Stop LOOP because a call of the sidecar failed with ERR.
If the sidecar died while a turn began, begin that again with a new one."
  (setf (efrit-loop-stale loop) t)
  (unless (or (and (efrit-loop-stopping loop)
                   (efrit-loop-handle loop 'halted))
              (and (eq (car err) 'efrit-sidecar-died)
                   (not (efrit-sidecar-given-up-p (efrit-loop-id loop)))
                   (efrit-loop-handle loop 'again)))
    (efrit-loop-handle loop 'failed (efrit-error-text err))))

(defun efrit-loop-call-again (loop method params success &optional failure tries)
  "Call METHOD as `efrit-loop-call' does, and again if the sidecar dies meanwhile.
A second call of METHOD must change nothing.  LOOP, PARAMS, SUCCESS and FAILURE
are as in `efrit-loop-call'.  TRIES is the number of this call, by default 1."
  (let ((tries (or tries 1)))
    (efrit-loop-call
     loop method params success
     (lambda (err)
       (if (and (eq (car err) 'efrit-sidecar-died) (< tries efrit-loop--most-calls))
           (efrit-loop-call-again loop method params success failure (1+ tries))
         (if failure (funcall failure err)
           (efrit-loop-sidecar-failed loop err)))))))

;;; The loops of this Emacs

(declare-function project-root "project" (project))

(defvar efrit-loop--all nil
  "The loops of this Emacs, the latest first.")

(defvar-local efrit-loop-here nil
  "The loop that this buffer shows, or nil.")

(put 'efrit-loop-here 'permanent-local t)

(defun efrit-loop-add (loop)
  "Make LOOP the latest loop of this Emacs, and return it."
  (setq efrit-loop--all (cons loop (delq loop efrit-loop--all)))
  loop)

(defun efrit-loop-remove (loop)
  "Remove LOOP from the loops of this Emacs."
  (setq efrit-loop--all (delq loop efrit-loop--all)))

(defun efrit-loops ()
  "Return the loops of this Emacs, the latest first."
  (copy-sequence efrit-loop--all))

(defun efrit-loop-of-session (id)
  "Return the loop of the session ID in this Emacs, or nil."
  (seq-find (lambda (loop) (equal (efrit-loop-id loop) id)) efrit-loop--all))

(defun efrit-loop-latest (&optional root)
  "Return the latest loop of this Emacs on ROOT, or on any root, or nil."
  (if root
      (seq-find (lambda (loop) (efrit-host-same-file-p (efrit-loop-root loop) root))
                efrit-loop--all)
    (car efrit-loop--all)))

(defun efrit-loop-current ()
  "Return the loop of this buffer or project, else a visible or the only loop.
Signal a `user-error' if there is no loop, or if several could be meant."
  (or efrit-loop-here
      (if (file-remote-p default-directory)
          (efrit-loop--of-parent default-directory)
        (when-let* ((project (project-current)))
          (efrit-loop-latest (project-root project))))
      (seq-find #'efrit-loop-visible-p efrit-loop--all)
      (cond ((null efrit-loop--all)
             (user-error "No session is open in this Emacs: M-x efrit-do begins one"))
            ((cdr efrit-loop--all)
             (user-error "Several sessions are open; run this from the buffer of one"))
            (t (car efrit-loop--all)))))

(defun efrit-loop-visible-p (loop)
  "Return non-nil if LOOP belongs to this buffer or to one in a visible window."
  (or (eq loop efrit-loop-here)
      (seq-some (lambda (window)
                  (eq loop (buffer-local-value 'efrit-loop-here (window-buffer window))))
                (efrit-loop-visible-windows))))

(defun efrit-loop-visible-windows ()
  "Return the windows on visible frames; in a terminal, on the top frame alone."
  (cl-loop for frame in (frame-list)
           when (and (eq t (frame-visible-p frame))
                     (or noninteractive
                         (display-graphic-p frame)
                         (eq frame (tty-top-frame frame))))
           append (window-list frame 'no-minibuffer)))

(defun efrit-loop--of-parent (folder)
  "Return the latest loop whose root is FOLDER or a parent of it, or nil.
This asks nothing of a remote machine."
  (seq-find (lambda (loop)
              (string-prefix-p (efrit-loop-root loop) (expand-file-name folder)))
            efrit-loop--all))

;;; Usage

;; The sidecar sums up usage and price, and sends both with each reply to
;; `turn/end'.  An attempt that failed is paid for, too: its usage is reported
;; with the reply of a later attempt, or by itself if no attempt has a reply.

(defun efrit-loop-take-usage (loop ended)
  "Store in LOOP the usage and price of its session that ENDED reports.
ENDED is a reply to `turn/end' or `session/status'.  `:unreported' is the number
of replies whose usage is not known, or nil.  For such a reply the estimate of
the prompt, which has the reply in it, counts.  If the price is unknown, note
once what is counted in place of dollars; of a model whose usage is reported, in
a session where another's was not, there is no such note."
  (let* ((dollars (plist-get ended :dollars))
         (counts (efrit-loop-counts loop))
         (before (efrit-loop-usage loop))
         (spent (- (or dollars 0) (or (plist-get before :dollars) 0)))
         (unreported (- (or (plist-get ended :unreported) 0)
                        (or (plist-get before :unreported) 0))))
    (setf (efrit-loop-usage loop) (append (list :dollars dollars
                                                :unreported (plist-get ended :unreported))
                                          (plist-get ended :usage)))
    (cl-incf (plist-get counts :tokens)
             (+ (- (efrit-loop--all-tokens (efrit-loop-usage loop)) (efrit-loop--all-tokens before))
                (* unreported (or (plist-get (plist-get ended :budget) :used) 0))))
    (cond (dollars
           (plist-put counts :dollars (+ (plist-get counts :dollars) spent))
           (efrit-loop-notify loop 'price dollars))
          ((and (efrit-loop-option loop 'efrit-max-dollars)
                (or (> unreported 0) (null (plist-get ended :unreported))))
           (efrit-loop-note-once
            loop (format (if (> unreported 0)
                             "The server does not report the usage of %s: `efrit-max-tokens', by \
estimates, and `efrit-max-turns' count in place of `efrit-max-dollars'"
                           "The price of %s is not known: `efrit-max-tokens' and \
`efrit-max-turns' count in place of `efrit-max-dollars'")
                         (efrit-loop-option loop 'efrit-claude-model)))))))

(defun efrit-loop-take-loss (loop ended reply)
  "Store in LOOP what the turn of REPLY paid for again, if anything.
ENDED is a reply to `turn/end'.  Notify the observers of the plist, which has
`:turn', `:tokens', `:dollars', `:idle', and `:reasons', a list of strings."
  (when-let* ((loss (plist-get ended :paid_anew)))
    (let ((reason (plist-get loss :reason)))
      (setf (efrit-loop-paid-anew loop)
            (list :turn (efrit-loop-turn loop) :tokens (plist-get loss :tokens)
                  :dollars (plist-get loss :dollars) :idle (plist-get loss :idle)
                  :reasons (cond ((equal reason "rewrite")
                                  (or (efrit-loop-rewrite-reasons loop) '("rewrite")))
                                 (reason (list reason)))
                  :diagnosis (efrit-reply-cache-miss reply)))
      (efrit-loop-notify loop 'paid-anew (efrit-loop-paid-anew loop)))))

(defun efrit-loop--all-tokens (usage)
  "Return the sum of all tokens in USAGE, a plist."
  (cl-loop for name in '(:input_tokens :cache_creation_input_tokens
                         :cache_read_input_tokens :output_tokens)
           sum (or (plist-get usage name) 0)))

(defun efrit-loop-count-from-here (loop)
  "Have the guards of LOOP count from now on, as for a new message."
  (setf (efrit-loop-counts loop) (efrit-loop--new-counts)))

(defun efrit-loop-fetch-budget (loop)
  "Fetch the present budget of LOOP, unless LOOP has gone on when it comes.
Between the replies of the model the results of tools fill the prompt."
  (let ((step (efrit-loop-step loop)))
    (efrit-sidecar-request-async
     'session/status (list :session_id (efrit-loop-id loop))
     :success (lambda (status)
                (efrit-loop-if-current loop step
                  (efrit-loop-take-budget loop (plist-get status :budget))))
     :error #'ignore)))

(defun efrit-loop-take-budget (loop budget)
  "Store BUDGET, a snapshot, in LOOP, unless it is of another turn than LOOP's."
  (when (eql (plist-get budget :turn) (efrit-loop-turn loop))
    (setf (efrit-loop-budget loop) budget)
    (efrit-loop-notify loop 'budget)))

(defun efrit-loop-drop-request (loop)
  "Forget the request of LOOP, but keep the usage of its lost attempts."
  (let ((request (efrit-loop-request loop)))
    (setf (efrit-loop-lost loop) (append (efrit-request-lost request) (efrit-loop-lost loop))
          (efrit-loop-request loop) nil)))

(defun efrit-loop-report-lost (loop)
  "Report the usage of LOOP's failed attempts, if any, when there is no reply.
LOOP does not wait.  If the report fails, the next turn reports the usage."
  (when-let* ((lost (efrit-loop-lost loop)))
    (setf (efrit-loop-lost loop) nil)
    (efrit-sidecar-request-async
     'turn/end `(:session_id ,(efrit-loop-id loop) :turn_id ,(efrit-loop-turn loop)
                             :aborted t :lost ,(vconcat lost))
     :success (apply-partially #'efrit-loop-take-usage loop)
     :error (lambda (_)
              (setf (efrit-loop-lost loop) (append lost (efrit-loop-lost loop)))))))

;;; Garbage

;; With Emacs's default a session collects garbage once in every turn, which
;; stops Emacs for some 20 ms each time.  While a loop works the threshold is
;; higher; when no loop works any more, the person's threshold is restored.

(defvar efrit-garbage--saved-threshold nil
  "The `gc-cons-threshold' to restore when no loop works, or nil.")

(defvar efrit-garbage--working-loops nil
  "The loops that are not resting.")

(defun efrit-garbage--work (loop)
  "Raise `gc-cons-threshold' because LOOP begins to work."
  (cl-pushnew loop efrit-garbage--working-loops)
  (when (and efrit-garbage-threshold
             (null efrit-garbage--saved-threshold)
             (< gc-cons-threshold efrit-garbage-threshold))
    (setq efrit-garbage--saved-threshold gc-cons-threshold
          gc-cons-threshold efrit-garbage-threshold)))

(defun efrit-garbage--rest (loop)
  "Restore `gc-cons-threshold' if LOOP was the last loop that worked.
A threshold that something else set meanwhile stays."
  (setq efrit-garbage--working-loops (delq loop efrit-garbage--working-loops))
  (when (and efrit-garbage--saved-threshold (null efrit-garbage--working-loops))
    (when (eql gc-cons-threshold efrit-garbage-threshold)
      (setq gc-cons-threshold efrit-garbage--saved-threshold))
    (setq efrit-garbage--saved-threshold nil)))

(add-hook 'efrit-loop-work-functions #'efrit-garbage--work)

(add-hook 'efrit-loop-rest-functions #'efrit-garbage--rest)

(provide 'efrit-loop)
;;; efrit-loop.el ends here
