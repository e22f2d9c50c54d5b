;;; bench-start.el --- What the first efrit-do costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by bench_start.py into a fresh Emacs in a terminal, in which only
;; efrit.el is loaded.  `efrit-do' is called, a task is typed, and the file
;; EFRIT_BENCH_OUTPUT gets the times.

;;; Code:

(require 'efrit)

(declare-function efrit-loop-observe "efrit-loop" (loop observer))

(defvar efrit-bench-start--times nil
  "Milliseconds: a plist of `:prompt' and `:word'.")

(defvar efrit-bench-start--since nil
  "Time when the command was called, or the task was sent.")

(defconst efrit-bench-start--task "Show me round this project."
  "The task that is typed, a letter each 80 ms.")

(defun efrit-bench-start--note (what)
  "Note how long WHAT took, once what there is to see is on the screen."
  (redisplay)
  (setq efrit-bench-start--times
        (plist-put efrit-bench-start--times what
                   (* 1000 (float-time (time-since efrit-bench-start--since))))))

(defun efrit-bench-start--type ()
  "Type the task into the prompt that has opened, and send it."
  (efrit-bench-start--note :prompt)
  (let ((letters (append efrit-bench-start--task nil)))
    (dotimes (index (length letters))
      (run-at-time (* 0.08 (1+ index)) nil
                   (lambda (letter)
                     (push letter unread-command-events))
                   (nth index letters)))
    (run-at-time (* 0.08 (+ 2 (length letters))) nil
                 (lambda ()
                   (setq efrit-bench-start--since (current-time))
                   (push ?\r unread-command-events)))))

(defun efrit-bench-start--observe (_loop event)
  "Write the times at the first word; EVENT is of a loop."
  (when (and (eq (car event) 'piece) (not (plist-get efrit-bench-start--times :word)))
    (efrit-bench-start--note :word)
    (run-at-time 0 nil #'efrit-bench-start--end)))

(defun efrit-bench-start--end ()
  "Write the times, and end this Emacs."
  (write-region (json-serialize efrit-bench-start--times)
                nil (getenv "EFRIT_BENCH_OUTPUT") nil 'silent)
  (setq kill-emacs-query-functions nil)
  (kill-emacs))

(defun efrit-bench-start--do ()
  "Call `efrit-do' as a person does, and observe its loop."
  (setq efrit-bench-start--since (current-time))
  (let ((loop (minibuffer-with-setup-hook #'efrit-bench-start--type
                (call-interactively #'efrit-do))))
    (efrit-loop-observe loop #'efrit-bench-start--observe)))

(defun efrit-bench-start-run ()
  "Measure the first `efrit-do' once this Emacs has begun to wait for keys."
  (run-at-time 1 nil #'efrit-bench-start--do))

(provide 'bench-start)
;;; bench-start.el ends here
