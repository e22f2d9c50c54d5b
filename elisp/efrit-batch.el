;;; efrit-batch.el --- A session without windows  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;;     "$EMACS" --batch -l efrit -f efrit-batch-do -- "task"
;;
;; Prints the reply as it streams, a line for each call of a tool, and the
;; budget at the end.  Nobody can be asked: what permissions do not allow is
;; denied, and said so.

;;; Code:

(require 'cl-lib)
(require 'efrit-do)
(require 'efrit-show)
(require 'subr-x)

;;; Options

(defcustom efrit-batch-allow nil
  "Names of tools that may run in batch without being asked about.
The variable EFRIT_ALLOW of the environment adds to it, separated by
commas; \"all\" there stands for every tool."
  :group 'efrit
  :type '(repeat string))

(defconst efrit-batch--nobody
  "it has to be asked about, and this is a batch job with nobody to ask"
  "Why what has to be asked about is denied.")

;;; Public

;;;###autoload
(defun efrit-batch-do ()
  "Have the model do what stands on the command line, and exit.
The exit code is 0 when the model ended its turn or said that it is done,
1 when something failed, 2 when nothing was asked for."
  (let ((task (efrit-batch--task command-line-args-left)))
    (setq command-line-args-left nil)
    (when (string-blank-p task)
      (efrit-batch--print "usage: emacs --batch -l efrit -f efrit-batch-do -- TASK\n")
      (kill-emacs 2))
    (kill-emacs
     (condition-case err
         (if (eq (efrit-loop-state (efrit-batch-run task)) 'idle) 0 1)
       (error (efrit-batch--print "\nefrit: %s\n" (efrit-error-text err)) 1)))))

(defun efrit-batch-run (task)
  "Have the model do TASK in the project here, print it, and return the loop."
  (efrit-batch-play (efrit-do-make-loop (efrit-do-root)) task))

(defun efrit-batch-play (loop task)
  "Have the model do TASK in LOOP, print it, and return LOOP once it rests."
  (setf (efrit-loop-rules loop) (efrit-batch--rules))
  (efrit-loop-observe loop #'efrit-batch--show)
  (efrit-do-say loop task)
  (while (not (efrit-loop-resting-p loop))
    (accept-process-output nil 0.1))
  (efrit-batch--end loop)
  loop)

;;; Private

(defun efrit-batch--task (arguments)
  "Return the task in ARGUMENTS, those of the command line, a string.
The first may be a \"--\" that sets it apart; any other belongs to the task."
  (string-join (if (equal (car arguments) "--") (cdr arguments) arguments) " "))

(defun efrit-batch--rules ()
  "Return the permissions of a session in batch: what is allowed there.
What these and other permissions leave to be asked about is denied when it
comes to that, see `efrit-batch--show'."
  (let ((named (split-string (or (getenv "EFRIT_ALLOW") "") "," t "[ \t]+")))
    (append (mapcar (lambda (name) (list (if (equal name "all") t name) t 'allow))
                    (append efrit-batch-allow named)))))

(defun efrit-batch--visible (text)
  "Return TEXT with control characters as text that a terminal does not obey.
Lines and tabs stay; what turns the direction of text around is shown, too."
  (replace-regexp-in-string
   "[\0-\x08\x0b-\x1f\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
   (lambda (character)
     (let ((code (aref character 0)))
       (cond ((< code ?\s) (format "^%c" (+ code ?@)))
             ((= code ?\d) "^?")
             (t (format "\\u%04x" code)))))
   text t t))

(defun efrit-batch--print (format &rest arguments)
  "Print FORMAT with ARGUMENTS to standard output, at once."
  ;; What `princ' prints waits in a buffer where it goes into a pipe.
  (send-string-to-terminal
   (encode-coding-string (efrit-batch--visible (apply #'format format arguments))
                         (or locale-coding-system 'utf-8-unix))))

(defun efrit-batch--show (loop event)
  "Print EVENT of LOOP."
  (pcase event
    (`(piece ,block ,text)
     (when (equal (efrit-block-type block) "text")
       (efrit-batch--print "%s" text)))
    (`(end ,block)
     (when (equal (efrit-block-type block) "text")
       (efrit-batch--print "\n")))
    (`(note ,text) (efrit-batch--print "— %s\n" text))
    (`(use ,use)
     (when (eq (efrit-use-state use) 'done)
       (efrit-batch--print "%s\n" (efrit-show-use use))))
    (`(ask ,use)
     (efrit-batch--print "! %s\n" (efrit-show-question use))
     (efrit-later #'efrit-run-answer loop use 'deny nil efrit-batch--nobody))
    (`(question ,call ,question ,_)
     (efrit-batch--print "? %s\n" question)
     (efrit-tool-finish call (efrit-tool-result "Nobody is there to answer." :status 'error)))
    (`(retry ,seconds ,problem)
     (efrit-batch--print "… %s; again in %s s\n" (plist-get problem :message) seconds))
    (`(begun ,rewritten ,notes)
     (when rewritten
       (efrit-batch--print "— older results gave way —\n"))
     (dolist (note notes)
       (efrit-batch--print "— %s\n" note)))
    (`(complete ,summary) (efrit-batch--print "✓ %s\n" summary))))

(defun efrit-batch--end (loop)
  "Print how LOOP ended, and what it cost."
  (pcase (efrit-loop-state loop)
    ('failed (efrit-batch--print "\nefrit: %s\n" (efrit-loop-problem loop)))
    ('idle nil)
    (state (efrit-batch--print "\nefrit: %s\n" (efrit-show-state state))))
  (efrit-batch--print "\n%s\n" (efrit-show-summary loop)))

(provide 'efrit-batch)
;;; efrit-batch.el ends here
