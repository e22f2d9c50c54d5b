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
(require 'seq)

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

;;; Structs

(cl-defstruct (efrit-loop (:constructor efrit-loop--create) (:copier nil))
  "A session at work.
ID, ROOT: the session's.  STATE: see `efrit-loop-table'.  STEP: counts what
was begun, so that what comes too late is known.  MESSAGES: JSON texts,
the latest first; STALE: whether the sidecar is to be asked for them.
SYSTEM, TOOLS: JSON texts.  OFFERED: the tools of this Emacs that
the sidecar knows of.  MODEL: what it can do.  TURN, EPOCH, BUDGET:
the sidecar's.  LEFT: the tokens that had left the window when the epoch
began.  MAX-TOKENS: of the next reply.  QUEUE: what the person
said and was not sent, the latest first; NOTICES: what the model is told
before that, blocks, the latest first; SENT: what is being sent.
REQUEST: the `efrit-claude' under way, REPLY its end.  RUN: the tools of
the turn, see efrit-run.el.  RULES: permissions of the session.  TODOS: a
vector.  OBSERVERS: functions.  PROBLEM: what stopped it, a string.
COUNTS: turns, start and dollars since the person spoke, a plist.
USAGE: the sums of all replies, a plist; LOST: the counts of attempts that
broke off and were not booked yet, hash tables.  PREVIOUS: the id of the last
reply.  COMPLETE: whether the model said that it is done.  STOPPING: whether
it stops as soon as it can.  SEEN: how files were when the model read them;
SINCE: when the session was last at work before this Emacs took it up.
NOTED: what is said once in a session, and was.  OPTIONS: the values of
`efrit-loop-owned-options' that it works by, an alist."
  id root (state 'idle) (step 0) messages stale system tools offered model
  (turn 0) (epoch 0) budget left (max-tokens 1) queue notices sent request reply run rules todos
  observers problem counts usage lost previous complete stopping
  (seen (make-hash-table :test #'equal)) since noted options)

(defconst efrit-loop-owned-options
  '(efrit-claude-url efrit-claude-headers efrit-claude-features efrit-claude-key-hosts
    efrit-claude-key-in-clear efrit-claude-model efrit-claude-max-tokens efrit-claude-effort
    efrit-claude-thinking-display efrit-claude-task-budget efrit-claude-betas
    efrit-claude-retries efrit-claude-retry-delay efrit-claude-retry-most
    efrit-claude-retry-after-most efrit-max-turns efrit-max-minutes efrit-max-dollars
    efrit-permission-rules)
  "The options that a loop takes when it is made, and works by from then on.")

(defconst efrit-loop-resting
  '(idle failed refused cut-short window-full limited)
  "The states in which a loop waits for the person.")

(defconst efrit-loop-table
  `(,@(mapcar (lambda (state) `(,state go beginning efrit-turn--begin))
              efrit-loop-resting)
    (beginning begun      waiting     efrit-turn--request)
    (beginning halted     idle        nil)
    (beginning failed     failed      nil)
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
    (retrying  hurry      retrying    efrit-turn--hurry)
    (retrying  failed     failed      nil)
    (retrying  stop       idle        efrit-turn--drop-request)
    (ending    tools      running     efrit-turn--run)
    (ending    paused     beginning   efrit-turn--begin)
    (ending    more       beginning   efrit-turn--begin)
    (ending    done       idle        nil)
    (ending    refused    refused     nil)
    (ending    cut        cut-short   nil)
    (ending    full       window-full nil)
    (ending    failed     failed      nil)
    (ending    stop       ending      efrit-turn--stop-soon)
    (running   more       beginning   efrit-turn--begin)
    (running   done       idle        nil)
    (running   cut        cut-short   nil)
    (running   limit      limited     nil)
    (running   failed     failed      nil)
    (running   stop       idle        efrit-turn--stop-tools))
  "What may happen to a loop: (STATE EVENT NEXT ACTION).
ACTION is called with the loop once it is in the state NEXT, and with what
came with the event.  What does not stand here has come too late, and is
passed over.")

(defvar efrit-loop-work-functions nil
  "Functions called with a loop that begins to work.")

(defvar efrit-loop-rest-functions nil
  "Functions called with a loop that begins to wait for the person.")

;;; Public

(defun efrit-loop-make (id root)
  "Return a loop for the session ID on ROOT, with nothing in it yet."
  (let ((loop (efrit-loop--create :id id :root root :counts (efrit-loop--new-counts))))
    (efrit-loop-take-options loop)
    loop))

(defun efrit-loop-take-options (loop)
  "Have LOOP work by the options as they are set now.
No buffer has a say in that: what counts is what is set for all of them."
  (setf (efrit-loop-options loop)
        (cl-loop for option in efrit-loop-owned-options
                 when (default-boundp option)
                 collect (cons option (default-value option)))))

(defun efrit-loop-option (loop option)
  "Return the value of OPTION, one of `efrit-loop-owned-options', for LOOP."
  (alist-get option (efrit-loop-options loop)))

(defmacro efrit-loop-with-options (loop &rest body)
  "Run BODY where the options are those of LOOP, in a buffer that has no own."
  (declare (indent 1) (debug t))
  `(efrit-loop--with-options ,loop (lambda () ,@body)))

(defun efrit-loop-resting-p (loop)
  "Return non-nil while LOOP waits for the person."
  (memq (efrit-loop-state loop) efrit-loop-resting))

(defun efrit-loop-say (loop blocks)
  "Have the person say BLOCKS, a list of plists, in LOOP.
While the model works, it is sent with the next turn."
  (let ((inhibit-quit t))
    (push blocks (efrit-loop-queue loop))
    (efrit-loop-tell loop 'queued blocks)
    (when (efrit-loop-resting-p loop)
      (efrit-loop-go loop))))

(defun efrit-loop-inform (loop text told)
  "Have the model of LOOP learn TEXT at the beginning of its next turn.
The observers are told of it as a note, TOLD.  Nothing is begun for it."
  (push (list :type "text" :text text) (efrit-loop-notices loop))
  (efrit-loop-tell loop 'note told))

(defun efrit-loop-unsent (loop)
  "Return the blocks that the next turn of LOOP sends, in order."
  (append (efrit-loop-sent loop)
          (reverse (efrit-loop-notices loop))
          (apply #'append (reverse (efrit-loop-queue loop)))))

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
  "Have LOOP, which waits before a retry, try at once.
Return non-nil if it does; nil where it waits for no retry."
  (efrit-loop-happen loop 'hurry))

(defun efrit-loop-observe (loop observer)
  "Have OBSERVER called with LOOP and each of its events from now on."
  (cl-pushnew observer (efrit-loop-observers loop)))

(defun efrit-loop-tell (loop &rest event)
  "Tell the observers of LOOP of EVENT.
An error in one, or a quit, is that one's own.  \\[keyboard-quit] waits until
all were told."
  (let ((inhibit-quit t))
    (dolist (observer (efrit-loop-observers loop))
      (condition-case err
          (funcall observer loop event)
        ((error quit)
         (message "efrit: %s cannot show %S: %s"
                  (if (symbolp observer) observer "an observer")
                  (car event) (error-message-string err)))))))

(defun efrit-loop-note-once (loop text)
  "Tell the observers of LOOP a note, TEXT, unless it is nil or was told before."
  (unless (or (null text) (member text (efrit-loop-noted loop)))
    (push text (efrit-loop-noted loop))
    (efrit-loop-tell loop 'note text)))

(defun efrit-loop-happen (loop event &rest arguments)
  "Let EVENT happen to LOOP; ARGUMENTS come with it.
Return non-nil if the table has it.  \\[keyboard-quit] waits until the state
and what goes with it fit together."
  (let ((inhibit-quit t))
    (efrit-loop--happen loop event arguments)))

(defun efrit-loop-act (loop function &rest arguments)
  "Call FUNCTION with ARGUMENTS; where it does not end, stop LOOP.
A quit gets here from where the person is asked for something, such as the
passphrase of a key."
  (condition-case err
      (apply function arguments)
    ((error quit)
     (cl-incf (efrit-loop-step loop))
     (efrit-loop-restore loop)
     (unless (efrit-loop-happen loop 'failed (error-message-string err))
       (message "efrit: %s" (error-message-string err))))))

(defun efrit-loop-restore (loop)
  "Have LOOP ask the sidecar for its conversation before anything else."
  (setf (efrit-loop-stale loop) t))

;;; Private

(defun efrit-loop--with-options (loop body)
  "Call BODY where the options are those of LOOP; see `efrit-loop-with-options'."
  (with-temp-buffer
    (cl-progv
        (mapcar #'car (efrit-loop-options loop))
        (mapcar #'cdr (efrit-loop-options loop))
      (funcall body))))

(defun efrit-loop--happen (loop event arguments)
  "Let EVENT happen to LOOP with ARGUMENTS, see `efrit-loop-happen'."
  (pcase (seq-find (lambda (row)
                     (and (eq (car row) (efrit-loop-state loop)) (eq (cadr row) event)))
                   efrit-loop-table)
    (`(,old ,_ ,next ,action)
     (when (and (eq event 'failed) (stringp (car arguments)))
       (setf (efrit-loop-problem loop) (car arguments)))
     (setf (efrit-loop-state loop) next)
     (unless (eq old next)
       (efrit-loop-tell loop 'state next old))
     (cond ((memq next efrit-loop-resting)
            (efrit-loop--run 'efrit-loop-rest-functions loop))
           ((memq old efrit-loop-resting)
            (efrit-loop--run 'efrit-loop-work-functions loop)))
     ;; An observer may have stopped it just now.
     (when (and action (eq (efrit-loop-state loop) next))
       (apply #'efrit-loop-act loop action loop arguments))
     t)))

(defun efrit-loop--run (hook loop)
  "Call the functions of HOOK with LOOP.  An error in one is that one's own."
  (run-hook-wrapped hook (lambda (function)
                           (condition-case err
                               (funcall function loop)
                             ((error quit)
                              (message "efrit: %S: %s" function
                                       (error-message-string err))))
                           nil)))

(defun efrit-loop--new-counts ()
  "Return what is counted from a person's message on."
  (list :turns 0 :start (float-time) :dollars 0))

(provide 'efrit-loop)
;;; efrit-loop.el ends here
