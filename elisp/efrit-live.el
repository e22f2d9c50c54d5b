;;; efrit-live.el --- How a session stands, above its reply box  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The live part of a session's buffer: what is to be done, what waits to be
;; sent, what the person is asked, and what the loop is doing.  It is made
;; anew from the loop whenever something of it changes.

;;; Code:

(require 'cl-lib)
(require 'efrit-ask)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-run)
(require 'efrit-show)
(require 'efrit-transcript)
(require 'efrit-turn)
(require 'seq)
(require 'subr-x)

(defvar-local efrit-live-unsent nil
  "What the person said that no turn has begun with, the latest first.
Each is a list of blocks, as plists.")

(defvar-local efrit-live--retry nil
  "When the next attempt is made, a time in seconds, and why: a cons.")

(defvar-local efrit-live--timer nil
  "The timer that counts the seconds before a retry.")

(defconst efrit-live--todos
  '(("done" "☑ " efrit-done) ("doing" "▶ " efrit-busy) ("pending" "☐ " default))
  "How items of what is to be done are shown: status, sign, face.")

;;; Public

(defun efrit-live-refresh ()
  "Show how the loop of this buffer stands now."
  (when-let* ((loop efrit-do-here))
    ;; Letters that are written from right to left would move what a command says.
    (setq bidi-display-reordering (not (efrit-run-asking loop)))
    (efrit-transcript-set-live
     (concat "\n"
             (efrit-live--todo-text (efrit-loop-todos loop))
             (efrit-live--queue-text loop)
             (efrit-live--question-text loop)
             (efrit-live--state-text loop)
             "\n"))))

(defun efrit-live-count-down (seconds problem)
  "Show for SECONDS that the next attempt waits, because of PROBLEM, a string."
  (efrit-live-end-count)
  (setq efrit-live--retry (cons (+ (float-time) seconds) problem)
        efrit-live--timer (run-at-time 1 1 #'efrit-live--tick (current-buffer)))
  (efrit-live-refresh))

(defun efrit-live-end-count ()
  "Stop counting the seconds before a retry."
  (setq efrit-live--retry nil)
  (when efrit-live--timer
    (cancel-timer efrit-live--timer)
    (setq efrit-live--timer nil)))

(defun efrit-live-take-back (loop blocks)
  "Have BLOCKS, which wait in LOOP, not be sent; their text is in the reply box.
What stands there already comes behind it."
  (unless (memq blocks (efrit-loop-queue loop))
    (user-error "It was sent already"))
  (setf (efrit-loop-queue loop) (delq blocks (efrit-loop-queue loop)))
  (setq efrit-live-unsent (delq blocks efrit-live-unsent))
  (save-excursion
    (goto-char efrit-transcript-box)
    (insert (efrit-live-said blocks)
            (if (= efrit-transcript-box (point-max)) "" "\n")))
  (efrit-live-refresh)
  (goto-char (point-max)))

(defun efrit-live-said (blocks)
  "Return what the person said in BLOCKS, a message, without its context."
  (or (plist-get (car (last blocks)) :text) ""))

;;; Private

(defun efrit-live--tick (buffer)
  "Count a second in BUFFER, if it is there."
  (efrit-transcript-in buffer
    (if efrit-live--retry (efrit-live-refresh) (efrit-live-end-count))))

(defun efrit-live--todo-text (todos)
  "Return TODOS, a vector of plists, as lines."
  (mapconcat (lambda (todo)
               (pcase-let ((`(,_ ,sign ,face)
                            (or (assoc (plist-get todo :status) efrit-live--todos)
                                '(nil "☐ " default))))
                 (propertize (format "%s%s\n" sign (plist-get todo :content)) 'face face)))
             todos ""))

(defun efrit-live--question-text (loop)
  "Return what the person is asked in LOOP, set apart from what is to be done."
  (let ((text (efrit-ask-text loop)))
    (concat (and text (efrit-loop-todos loop) "\n") text)))

(defun efrit-live--queue-text (loop)
  "Return what was said in LOOP and not sent yet, as lines."
  (let ((sign (if (efrit-loop-resting-p loop) "not sent: " "queued: ")))
    (mapconcat (lambda (blocks)
                 (concat (propertize (concat "⧗ " sign) 'face 'efrit-note)
                         (propertize (efrit-live-said blocks) 'face 'efrit-said)
                         (and (memq blocks (efrit-loop-queue loop))
                              (concat "  " (efrit-live--take-back-button loop blocks)))
                         "\n"))
               (reverse efrit-live-unsent)
               "")))

(defun efrit-live--take-back-button (loop blocks)
  "Return the button that takes BLOCKS back, which wait in LOOP."
  (efrit-ask-button "[take back]"
                    (lambda () (interactive) (efrit-live-take-back loop blocks))))

(defun efrit-live--state-text (loop)
  "Return the line about what LOOP does, with what can be done about it."
  (pcase-let* ((state (efrit-loop-state loop))
               (`(,face . ,buttons) (efrit-live--buttons state)))
    (concat (propertize (concat "● " (efrit-live--doing loop state)) 'face face)
            (mapconcat (pcase-lambda (`(,label ,command))
                         (concat "  " (efrit-ask-button (concat "[" label "]") command)))
                       buttons "")
            "\n")))

(defun efrit-live--doing (loop state)
  "Return what LOOP, in STATE, does, in words."
  (cond
   ((and (eq state 'retrying) efrit-live--retry)
    (format "%s; again in %d s" (cdr efrit-live--retry)
            (max 0 (ceiling (- (car efrit-live--retry) (float-time))))))
   ((and (eq state 'running) (efrit-ask-pending-p loop)) "waiting for your answer")
   ((and (eq state 'limited) (efrit-turn-limit loop))
    (format "the limit of %s was reached; go on?" (efrit-turn-limit loop)))
   (t (efrit-show-state state))))

(defun efrit-live--buttons (state)
  "Return the face of STATE and the buttons that go with it: (FACE . BUTTONS)."
  (pcase state
    ('idle '(efrit-done))
    ('retrying '(efrit-busy ("retry now" efrit-retry) ("stop" efrit-stop)))
    ('failed '(efrit-failed ("try again" efrit-retry)))
    ((or 'limited 'cut-short) '(efrit-busy ("continue" efrit-continue)))
    ((or 'refused 'window-full) '(efrit-failed))
    (_ '(efrit-busy ("stop" efrit-stop)))))

(provide 'efrit-live)
;;; efrit-live.el ends here
