;;; efrit-turn.el --- What happens in a turn of a loop  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The actions of `efrit-loop-table': a turn begins with what the sidecar
;; says the request is to be, goes on with the model's reply, which the
;; sidecar is told before anything else, and then runs the tools.  What
;; comes of something that was given up meanwhile is passed over: each
;; action begins a new step, and what belongs to an older one is late.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-claude)
(require 'efrit-endpoint)
(require 'efrit-http)
(require 'efrit-loop)
(require 'efrit-price)
(require 'efrit-reply)
(require 'efrit-sidecar)

;;; Options

(defcustom efrit-stop-patience 5
  "Seconds after which the person is told that a stop waits for the sidecar."
  :group 'efrit
  :type 'number)

(defconst efrit-turn--calls-again 3
  "How often a call that books a reply or a result is made again.")

(defvar efrit-turn-run-function #'ignore
  "Called with a loop to run the tools of its reply; see efrit-run.el.")

(defvar efrit-turn-stop-tools-function #'ignore
  "Called with a loop to stop the tools that run.")

(defvar efrit-turn-registered-tools #'ignore
  "Called for the tools of this Emacs, as the sidecar takes them.")

(defvar efrit-turn-system-function #'ignore
  "Called with a loop for its system prompt, a string.")

;;; Beginning

(defun efrit-turn--step (loop)
  "Begin something in LOOP, and return its number."
  (cl-incf (efrit-loop-step loop)))

(defmacro efrit-turn--if-current (loop step &rest body)
  "Run BODY if nothing was begun in LOOP after STEP."
  (declare (indent 2) (debug t))
  `(when (= (efrit-loop-step ,loop) ,step)
     ,@body))

(defun efrit-turn-call (loop method params success &optional failure)
  "Call METHOD of the sidecar with PARAMS for LOOP, and then SUCCESS.
It is called with the result, unless something else was begun meanwhile;
FAILURE, if any, with the error, which otherwise stops the loop."
  (let ((step (efrit-loop-step loop)))
    (condition-case err
        (efrit-sidecar-request-async
         method (append (list :session_id (efrit-loop-id loop)) params)
         :timeout nil
         :success (lambda (result)
                    (efrit-turn--if-current loop step
                      (efrit-loop-act loop success result)))
         :error (lambda (err)
                  (efrit-turn--if-current loop step
                    (if failure (efrit-loop-act loop failure err)
                      (efrit-turn--sidecar-failed loop err)))))
      ((error quit) (efrit-turn--sidecar-failed loop err) nil))))

(defun efrit-turn--sidecar-failed (loop err)
  "Stop LOOP for ERR, an error of a call of the sidecar's.
Where the person has stopped it, that was the end it waited for."
  (efrit-loop-restore loop)
  (unless (and (efrit-loop-stopping loop)
               (efrit-loop-happen loop 'halted))
    (efrit-loop-happen loop 'failed (efrit-error-text err))))

(defun efrit-turn--begin (loop &rest _)
  "Begin a turn of LOOP: what is stale first, then what the client can run."
  (efrit-turn--step loop)
  (if (efrit-loop-stale loop)
      (efrit-turn--fetch loop)
    (efrit-turn--register loop)))

(defun efrit-turn--fetch (loop)
  "Ask the sidecar for the conversation of LOOP, and how far it has come."
  (efrit-turn-call
   loop 'session/messages '(:as_text t)
   (lambda (held)
     (setf (efrit-loop-messages loop) (nreverse (append (plist-get held :messages) nil))
           (efrit-loop-epoch loop) (plist-get held :epoch))
     (efrit-turn-call
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
    (setf (efrit-loop-turn loop) (plist-get budget :turn)
          (efrit-loop-sent loop) nil)))

(defun efrit-turn--register (loop)
  "Tell the sidecar which tools this Emacs can run for LOOP, then begin."
  (let ((tools (or (funcall efrit-turn-registered-tools) [])))
    (if (equal tools (efrit-loop-offered loop))
        (efrit-turn--begin-turn loop)
      (efrit-turn-call loop 'tools/register (list :tools tools)
                       (lambda (_)
                         (setf (efrit-loop-offered loop) tools)
                         (efrit-turn--begin-turn loop))))))

(defun efrit-turn--begin-turn (loop)
  "Ask the sidecar what the next request of LOOP is to be."
  (let ((said (efrit-loop-unsent loop)))
    (setf (efrit-loop-queue loop) nil
          (efrit-loop-notices loop) nil
          (efrit-loop-sent loop) said
          (efrit-loop-complete loop) nil)
    (efrit-turn-call
     loop 'turn/begin
     `(:model ,(efrit-loop-option loop 'efrit-claude-model) :as_text t
              :caching ,(if (efrit-loop-with-options loop (efrit-endpoint-feature-p 'cache))
                            t
                          :json-false)
              :system ,(or (funcall efrit-turn-system-function loop) "")
              ,@(and said (list :user_message (vconcat said))))
     (lambda (begun) (efrit-turn--begun loop begun)))))

(defun efrit-turn--begun (loop begun)
  "Take BEGUN, the answer to `turn/begin', into LOOP."
  (let ((rewrite (plist-get begun :rewrite))
        (append (plist-get begun :append)))
    (when rewrite
      (setf (efrit-loop-messages loop) nil))
    ;; Within an epoch the figure stands: it is a part of what is cached.
    (when (or rewrite (null (efrit-loop-left loop)))
      (setf (efrit-loop-left loop) (plist-get begun :left_window)))
    (efrit-turn--append loop (or rewrite append))
    (setf (efrit-loop-sent loop) nil
          (efrit-loop-system loop) (plist-get begun :system)
          (efrit-loop-tools loop) (plist-get begun :tools)
          (efrit-loop-model loop) (plist-get begun :model)
          (efrit-loop-turn loop) (plist-get begun :turn_id)
          (efrit-loop-epoch loop) (plist-get begun :epoch)
          (efrit-loop-max-tokens loop) (plist-get begun :max_tokens)
          (efrit-loop-budget loop) (plist-get begun :budget))
    (efrit-loop-tell loop 'begun (and rewrite t) (append (plist-get begun :notes) nil))
    (efrit-loop-note-once loop (efrit-loop-with-options loop (efrit-endpoint-note)))
    (efrit-loop-happen loop (if (efrit-loop-stopping loop) 'halted 'begun))))

(defun efrit-turn--append (loop holder)
  "Append the messages of HOLDER, a plist or nil, to those of LOOP."
  (mapc (lambda (message) (push message (efrit-loop-messages loop)))
        (plist-get holder :messages)))

(defun efrit-turn--stop-soon (loop &rest _)
  "Have LOOP stop when what is under way has its answer."
  (setf (efrit-loop-stopping loop) t)
  (run-at-time efrit-stop-patience nil #'efrit-turn--say-it-hangs
               loop (efrit-loop-step loop)))

(defun efrit-turn--say-it-hangs (loop step)
  "Say what to do if LOOP, stopped in STEP, still waits for the sidecar there.
A call that books something has no limit of time: it may take long."
  (efrit-turn--if-current loop step
    (when (memq (efrit-loop-state loop) '(beginning ending))
      (efrit-loop-tell loop 'note
                       (concat "The sidecar does not answer; it stops when it does.  "
                               "M-x efrit-sidecar-restart ends the waiting.")))))

;;; Requests

(defun efrit-turn--request (loop &rest _)
  "Send the request of LOOP."
  (let ((step (efrit-turn--step loop)))
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
                             (efrit-turn--if-current loop step
                               (efrit-loop-act loop #'efrit-turn--event loop event)))
                 :on-end (lambda (reply problem)
                           (efrit-turn--if-current loop step
                             (efrit-loop-act loop #'efrit-turn--replied
                                             loop reply problem))))))
      ((error quit) (efrit-loop-happen loop 'failed (error-message-string err))))))

(defun efrit-turn--event (loop event)
  "Take EVENT of the reply that streams into LOOP."
  (pcase (car event)
    ('retry (efrit-loop-happen loop 'retry))
    ('again (efrit-loop-happen loop 'again))
    (_ (efrit-loop-happen loop 'event)))
  (apply #'efrit-loop-tell loop event))

(defun efrit-turn--replied (loop reply problem)
  "The request of LOOP has ended with REPLY, or with PROBLEM."
  (efrit-price-take-lost loop)
  (if (null problem)
      (efrit-loop-happen loop 'replied reply)
    (efrit-price-book-lost loop)
    (efrit-loop-happen loop 'failed (plist-get problem :message))))

(defun efrit-turn--drop-request (loop &rest _)
  "Drop the request of LOOP, of which nothing has come."
  (efrit-turn--step loop)
  (when-let* ((request (efrit-loop-request loop)))
    (efrit-claude-cancel request)
    (efrit-claude-lose request)
    (efrit-price-take-lost loop)
    (efrit-price-book-lost loop)))

(defun efrit-turn--hurry (loop &rest _)
  "Have the request of LOOP be sent at once."
  (efrit-claude-retry-now (efrit-loop-request loop)))

;;; Ending

(defun efrit-turn--end-aborted (loop &rest _)
  "Stop the reply that streams into LOOP, and keep what has come of it."
  (let ((reply (efrit-claude-cancel (efrit-loop-request loop))))
    (efrit-price-take-lost loop)
    (setf (efrit-loop-stopping loop) t)
    (efrit-turn--end loop reply 'aborted)))

(defun efrit-turn--end (loop reply &optional aborted)
  "Tell the sidecar of REPLY, which has come in LOOP; ABORTED if not whole."
  (setf (efrit-loop-reply loop) reply)
  (efrit-turn--step loop)
  (efrit-turn-call-again
   loop 'turn/end
   `(:turn_id ,(efrit-loop-turn loop) :model ,(efrit-loop-option loop 'efrit-claude-model)
              :as_text t
              :content_json ,(efrit-reply-content reply)
              :usage ,(efrit-reply-counts reply)
              :lost ,(vconcat (efrit-loop-lost loop))
              ,@(and (efrit-reply-stop-reason reply)
                     (list :stop_reason (efrit-reply-stop-reason reply)))
              :aborted ,(if aborted t :json-false))
   (lambda (ended) (efrit-turn--ended loop ended))))

(defun efrit-turn-call-again (loop method params success &optional failure tries)
  "Call METHOD with PARAMS for LOOP, then SUCCESS; again when the sidecar dies.
METHOD may be called twice.  FAILURE is called with another error, which
otherwise stops the loop.  TRIES counts the calls made."
  (let ((tries (or tries 1)))
    (efrit-turn-call
     loop method params success
     (lambda (err)
       (if (and (eq (car err) 'efrit-sidecar-died) (< tries efrit-turn--calls-again))
           (efrit-turn-call-again loop method params success failure (1+ tries))
         (if failure (funcall failure err)
           (efrit-turn--sidecar-failed loop err)))))))

(defun efrit-turn--ended (loop ended)
  "Take ENDED, the answer to `turn/end', into LOOP, and go on."
  (let ((reply (efrit-loop-reply loop)))
    (efrit-turn--append loop (plist-get ended :append))
    (efrit-reply-take-inputs reply (plist-get ended :inputs) (plist-get ended :unreadable)
                             (plist-get ended :misfits))
    (efrit-turn--count loop reply)
    (setf (efrit-loop-lost loop) nil
          (efrit-loop-budget loop) (plist-get ended :budget)
          (efrit-loop-previous loop) (efrit-reply-id reply))
    (efrit-loop-tell loop 'ended reply)
    (efrit-loop-happen loop (efrit-turn--after loop reply))))

(defun efrit-turn--after (loop reply)
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

(defun efrit-turn--count (loop reply)
  "Add what REPLY cost to the counts of LOOP."
  (let ((counts (efrit-loop-counts loop)))
    (plist-put counts :turns (1+ (plist-get counts :turns)))
    (mapc (apply-partially #'efrit-price-add loop)
          (cons (efrit-reply-counts reply) (efrit-loop-lost loop)))))

;;; Tools

(defun efrit-turn--run (loop &rest _)
  "Run the tools that the reply of LOOP asks for."
  (efrit-turn--step loop)
  (funcall efrit-turn-run-function loop)
  (unless (efrit-loop-resting-p loop)
    (efrit-http-warm)))

(defun efrit-turn-tools-done (loop)
  "Go on in LOOP, whose tools have all given a result.
With a limit of dollars it waits to be told what it has cost."
  (if (null (efrit-loop-option loop 'efrit-max-dollars))
      (efrit-turn--tools-over loop)
    (efrit-turn-call loop 'session/status '(:price t)
                     (lambda (status)
                       (efrit-price-take loop status)
                       (efrit-turn--tools-over loop))
                     (lambda (_) (efrit-turn--tools-over loop)))))

(defun efrit-turn--tools-over (loop)
  "Go on in LOOP, whose tools have all given a result, as it stands."
  (efrit-loop-happen loop (cond ((and (efrit-loop-complete loop)
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
  (efrit-turn--step loop)
  (funcall efrit-turn-stop-tools-function loop))

(add-hook 'efrit-loop-rest-functions (lambda (_) (efrit-http-cool)))

(provide 'efrit-turn)
;;; efrit-turn.el ends here
