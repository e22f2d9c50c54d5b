;;; efrit-call.el --- One call to the sidecar  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A call is what somebody asked of the sidecar: it is waiting to be sent,
;; sent, or ended, and it ends once.  Whoever asked is told from a timer,
;; never from a process filter or sentinel: in Emacs 28 and 29 jsonrpc.el
;; loses messages when what runs there sends, waits or errors.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-remote)
(require 'subr-x)

;;; Structs

(cl-defstruct (efrit-call (:constructor efrit-call-create) (:copier nil))
  "A call to the sidecar.
METHOD is a symbol, PARAMS a plist or nil.  KIND is `request',
`notification', or `barrier' for a call that is never sent and ends when
it could be.  STATE is `waiting', `sent', `done', `failed' or `dropped';
VALUE is the result once done, and once failed the error as
`condition-case' binds it.  SUCCESS and FAILURE, functions of one
argument or nil, are told VALUE.  HOST is the `efrit-host' whose sidecar
it is for.  CONNECTION and ID say where a sent request went; TIMER ends it
when its time is over."
  host method params (kind 'request) (state 'waiting) value
  success failure connection id timer)

(defvar efrit-call--due nil
  "What `efrit-later' has put off: conses (FUNCTION . ARGUMENTS), oldest first.")

;;; Public

(defun efrit-call-open-p (call)
  "Return non-nil while CALL has not ended."
  (memq (efrit-call-state call) '(waiting sent)))

(defun efrit-call-finish (call state &optional value)
  "End CALL in STATE with VALUE, unless it has ended already.
Return non-nil if this ended it."
  (when (efrit-call-open-p call)
    (setf (efrit-call-state call) state
          (efrit-call-value call) value)
    (efrit-call--stop-timer call)
    (when (or (efrit-call-success call) (efrit-call-failure call))
      (efrit-later #'efrit-call--tell call))
    t))

(defun efrit-call-drop (call)
  "Forget CALL: nobody is told of its end any more.
Return non-nil if it had not ended."
  (prog1 (and (efrit-call-open-p call) t)
    (setf (efrit-call-state call) 'dropped)
    (efrit-call--stop-timer call)))

(defun efrit-call-take-back (call)
  "Make CALL, which could not be sent, wait to be sent again."
  (when (eq (efrit-call-state call) 'sent)
    (setf (efrit-call-state call) 'waiting
          (efrit-call-connection call) nil
          (efrit-call-id call) nil)))

(defun efrit-call-limit (call seconds over)
  "Call OVER with CALL when SECONDS have passed and it has not ended.
With nil for SECONDS there is no limit."
  (when seconds
    (setf (efrit-call-timer call) (run-at-time seconds nil over call))))

(defun efrit-call-result (call)
  "Return the value of CALL, which has ended, or signal its error."
  (pcase (efrit-call-state call)
    ('done (efrit-call-value call))
    ('failed (signal (car (efrit-call-value call)) (cdr (efrit-call-value call))))
    (_ (signal 'efrit-cancelled (list "it was cancelled here")))))

(defun efrit-later (function &rest arguments)
  "Call FUNCTION with ARGUMENTS soon, from a timer.
What is put off so runs in the order in which it was put off, and an
error in one does not touch the next.  It may ask things of another
machine: it never runs inside of what TRAMP does, and finds files there
as they are by then."
  (setq efrit-call--due (nconc efrit-call--due (list (cons function arguments))))
  (run-at-time 0 nil #'efrit-call--run-next))

;;; Private

(defun efrit-call--run-next ()
  "Run the oldest of `efrit-call--due', now or when TRAMP has done what it does."
  (if (efrit-remote-busy-p)
      (run-at-time 0.1 nil #'efrit-call--run-next)
    (when-let* ((next (pop efrit-call--due)))
      (efrit-remote-afresh
        (apply (car next) (cdr next))))))

(defun efrit-call--tell (call)
  "Tell whoever made CALL how it ended."
  (let ((told (pcase (efrit-call-state call)
                ('done (efrit-call-success call))
                ('failed (efrit-call-failure call)))))
    (when told
      (funcall told (efrit-call-value call)))))

(defun efrit-call--stop-timer (call)
  "Stop the timer of CALL."
  (when (efrit-call-timer call)
    (cancel-timer (efrit-call-timer call))
    (setf (efrit-call-timer call) nil)))

(provide 'efrit-call)
;;; efrit-call.el ends here
