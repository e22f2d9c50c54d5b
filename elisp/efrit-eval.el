;;; efrit-eval.el --- Evaluating the model's Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Evaluates code in this Emacs with a limit of time that holds even for a
;; loop that never looks up: a watching process sends this Emacs a signal
;; that makes it quit, and the debugger that would open then is ours.  Code
;; that asks the person for something in the minibuffer gets an error instead.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-tools)
(require 'subr-x)

;;; Options

(defcustom efrit-eval-seconds 30
  "How many seconds an evaluation may take; nil: as long as it likes.
Until then Emacs waits for it.  Code can defeat the limit where it sets out to.
An Emacs in batch that waits in `call-process' hears of it only when that
process has ended."
  :group 'efrit
  :type '(choice (const :tag "No limit" nil) number))

(defcustom efrit-eval-most-characters 200000
  "The most that is kept of what an evaluation prints, and of its value."
  :group 'efrit
  :type 'natnum)

(defconst efrit-eval--watcher "sleep \"$1\"; while kill -USR2 \"$2\"; do sleep 1; done"
  "The shell's script that ends an evaluation in time.
It insists, since code may take the first quit for its own.")

(defconst efrit-eval--prompts
  '(read-key-sequence read-key-sequence-vector recursive-edit
    x-popup-dialog x-popup-menu x-file-dialog)
  "Functions that wait for the person in spite of `inhibit-interaction'.")

(defconst efrit-eval--frames 12
  "How many frames of a backtrace are shown.")

;;; Tools

(efrit-define-tool eval_sexp
    ((code "string" ""))
  "Evaluate Emacs Lisp in an empty buffer of the person's Emacs: what it printed, and the last value."
  :policy ask
  (efrit-eval-string code))

;;; Public

(defun efrit-eval-string (code)
  "Evaluate the forms in CODE, and return the result as a tool does."
  (let* ((printed (generate-new-buffer " *efrit-eval*" t))
         (outcome (unwind-protect
                      (efrit-eval--within-limits code printed)
                    (setq printed (prog1 (with-current-buffer printed (buffer-string))
                                    (kill-buffer printed))))))
    (efrit-tool-result
     (concat (unless (string-empty-p printed)
               (concat (efrit-eval--cut printed) (if (string-suffix-p "\n" printed) "" "\n")))
             (cdr outcome))
     :status (car outcome)
     :lisp code)))

;;; Private

(defun efrit-eval--within-limits (code printed)
  "Evaluate CODE, printing into the buffer PRINTED; return (STATUS . TEXT).
Only the code itself can be quit: a watching process left behind would go on."
  (let* ((quits-not inhibit-quit)
         (inhibit-quit t)
         (debug-on-event 'sigusr2)
         (watcher (efrit-eval--watch))
         (prompts (run-at-time 0.1 0.1 #'efrit-eval--end-prompt)))
    (add-variable-watcher 'debug-on-event #'efrit-eval--refuse-change)
    (unwind-protect
        (catch 'efrit-eval--over
          (let ((debugger #'efrit-eval--over)
                (standard-output printed)
                (debug-on-quit nil)
                (inhibit-interaction t)
                (use-dialog-box nil)
                (inhibit-quit quits-not))
            (efrit-eval--forms code (float-time))))
      (remove-variable-watcher 'debug-on-event #'efrit-eval--refuse-change)
      (cancel-timer prompts)
      (when (process-live-p watcher)
        (delete-process watcher))
      (efrit-eval--forget-signal))))

(defun efrit-eval--forms (code start)
  "Evaluate the forms in CODE from the time START on; return (STATUS . TEXT)."
  (let* ((frames nil)
         (signal-hook-function
          (lambda (symbol _)
            (when (and (eq symbol 'quit) (efrit-eval--late-p start))
              (efrit-eval--over))
            (setq frames (efrit-eval--backtrace)))))
    (condition-case err
        (cons 'success (efrit-eval--printed (efrit-eval--read-and-eval code)))
      (quit (cons 'error (if (efrit-eval--late-p start)
                             (efrit-eval--over-text)
                           "The person stopped it (quit).")))
      (error (cons 'error (efrit-eval--error-text err frames))))))

(defun efrit-eval--read-and-eval (code)
  "Read and evaluate each form in CODE; return the last value."
  (let ((position 0)
        (value nil)
        (end (length code)))
    (while (< (setq position (efrit-eval--skip code position)) end)
      (pcase-let ((`(,form . ,next) (read-from-string code position)))
        (setq position next
              value (eval form t))))
    value))

(defun efrit-eval--skip (code position)
  "Return where the next form of CODE begins, from POSITION on, or its end."
  (if (string-match "\\(?:[ \t\n\r\f]\\|;.*\\)*" code position)
      (match-end 0)
    position))

(defun efrit-eval--printed (value)
  "Return VALUE, of any kind, as text."
  (let ((print-circle t)
        (print-escape-newlines nil))
    (efrit-eval--cut (concat (efrit-tool-own "=> ") (prin1-to-string value)))))

(defun efrit-eval--cut (text)
  "Return TEXT, cut to `efrit-eval-most-characters' with a note on that."
  (let ((most efrit-eval-most-characters))
    (if (<= (length text) most)
        text
      (concat (substring text 0 most)
              (efrit-tool-own (format "\n[cut: %s more characters]\n"
                                      (- (length text) most)))))))

(defun efrit-eval--error-text (err frames)
  "Return what is said of ERR, signalled where FRAMES were on the stack."
  (concat (efrit-tools-error-text err)
          (and frames (concat "\n" (string-join frames "\n")))))

;;; Backtraces

(defun efrit-eval--backtrace ()
  "Return the frames of the code under evaluation, innermost first, as strings."
  (let ((signal-hook-function nil)
        (inhibit-quit t)
        (frames nil)
        (depth 0)
        (inside t))
    (mapbacktrace
     (lambda (evaluated function arguments _flags)
       (cond ((eq function 'efrit-eval--read-and-eval) (setq inside nil))
             ((and inside (< depth efrit-eval--frames)
                   (not (efrit-eval--own-frame-p function)))
              (setq depth (1+ depth))
              (push (efrit-eval--frame evaluated function arguments) frames)))))
    (nreverse frames)))

(defun efrit-eval--inside-p (functions)
  "Return non-nil if the code under evaluation is in a call of one of FUNCTIONS."
  (let ((inside t)
        (found nil))
    (mapbacktrace
     (lambda (_evaluated function _arguments _flags)
       (cond ((eq function 'efrit-eval--read-and-eval) (setq inside nil))
             ((and inside (memq function functions)) (setq found t)))))
    found))

(defun efrit-eval--own-frame-p (function)
  "Return non-nil if FUNCTION is of the machinery around an error."
  (or (not (symbolp function))
      (memq function '(signal error apply mapbacktrace efrit-eval--backtrace eval progn))))

(defun efrit-eval--frame (evaluated function arguments)
  "Return a frame as a line; with EVALUATED, FUNCTION had its ARGUMENTS."
  (let ((print-length 4)
        (print-level 2))
    (truncate-string-to-width
     (if evaluated
         (format "  %S%s" function (if arguments (format "%S" arguments) "()"))
       (format "  (%S ...)" function))
     100 nil nil t)))

;;; Prompts

(defun efrit-eval--end-prompt ()
  "End the evaluation under way if it waits for a key, or for a menu's choice."
  (when (efrit-eval--inside-p efrit-eval--prompts)
    (throw 'efrit-eval--over
           (cons 'error (efrit-tools-error-text '(inhibited-interaction))))))

;;; The limit of time

(defun efrit-eval--watch ()
  "Start the process that ends an evaluation in time; return it, or nil."
  (when efrit-eval-seconds
    (make-process :name "efrit-eval-limit"
                  :command (list "/bin/sh" "-c" efrit-eval--watcher "sh"
                                 (format "%s" efrit-eval-seconds)
                                 (number-to-string (emacs-pid)))
                  :connection-type 'pipe
                  :noquery t
                  :sentinel #'ignore)))

(defun efrit-eval--over (&rest reason)
  "End the evaluation under way, in the place of the debugger.
REASON is why a debugger would be entered: a quit, for us."
  (if (and (eq (car reason) 'error)
           (not (eq (car-safe (cadr reason)) 'quit)))
      nil
    (setq quit-flag nil)
    (throw 'efrit-eval--over (cons 'error (efrit-eval--over-text)))))

(defun efrit-eval--refuse-change (variable &rest _)
  "Signal an error: code under evaluation would change VARIABLE."
  (error "%s may not be changed here: the limit of time stands on it" variable))

(defun efrit-eval--over-text ()
  "Return what is said of an evaluation that took too long."
  (format "It was stopped after %s seconds; see `efrit-eval-seconds'." efrit-eval-seconds))

(defun efrit-eval--late-p (start)
  "Return non-nil if an evaluation that began at START had all its time.
Emacs enters no debugger twice between two keys, so the second one that
takes too long ends by a plain quit."
  (and efrit-eval-seconds
       (>= (- (float-time) start) efrit-eval-seconds)))

(defun efrit-eval--forget-signal ()
  "Have what the watching process left behind of its signal take no effect.
The signal asks for the debugger at the next call, which is the one here."
  (let ((debugger #'ignore)
        (inhibit-quit t))
    (funcall #'ignore)
    (setq quit-flag nil))
  (setq debug-on-quit (default-toplevel-value 'debug-on-quit)))

(provide 'efrit-eval)
;;; efrit-eval.el ends here
