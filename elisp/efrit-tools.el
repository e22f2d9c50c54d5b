;;; efrit-tools.el --- Tools that run in this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Defines `efrit-define-tool', the tools of the loop, the tool that
;; evaluates Lisp, and functions to run child processes for tools.

;;; Code:

(require 'efrit)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)

;;; Defining tools

;; `efrit-define-tool' defines a tool in one form.  The loop registers all of
;; them with the sidecar, which counts the tokens of their schemas and stores
;; their results.
;;
;; A tool's body returns its result: a string, or a plist made by
;; `efrit-tool-result'.  The body of an `:async' tool returns at once, and
;; calls `efrit-tool-finish' later.

(cl-defstruct (efrit-tool (:constructor efrit-tool-create) (:copier nil))
  "A tool that runs in Emacs.
NAME and DESCRIPTION are shown to the model; PARAMETERS is the schema of
the arguments, a plist.  POLICY is `allow' or `ask'.  EFFECTS is non-nil
if a call does more than read: calls with effects run one after the other,
in the order of the reply.  FUNCTION runs the tool; it takes the arguments,
a plist, and the call, an `efrit-tool-call'.  ASYNC is non-nil if the
result comes later.  PLAN, for a tool that changes files, makes the
`efrit-plan' that the person sees before FUNCTION is called; it takes the
loop, the arguments, a function to call with the plan, and a function to
call with the reason why there is no plan.

RESOLVE, QUESTION and GUARD are nil, or functions of the loop and the
arguments.  RESOLVE returns the arguments with defaults filled in, before
anything is decided about them.  QUESTION returns the text of the question
to the person, or nil.  GUARD returns the reason to ask the person
whatever rules there are, or nil."
  name description parameters policy effects function async plan resolve question guard)

(cl-defstruct (efrit-tool-call (:constructor efrit-tool-call-create) (:copier nil))
  "One call of a tool that runs in Emacs.
OWNER is its loop.  FINISH is called once, with the result.  STOP, which
an `:async' tool may set, is called without arguments when the person
stops the call; the tool then finishes soon, with a partial result.
STOPPED is non-nil once that happened.  PLAN is an `efrit-plan' or nil.
DIRECTORY is the root of the session; relative file names begin there."
  owner id name finish stop stopped plan directory)

(defconst efrit-tools--most-summary 490
  "Most columns of a summary; the sidecar takes at most 500 characters.")

(defvar efrit-tools--by-name nil
  "The tools of this Emacs: an alist from their names to `efrit-tool's.")

(eval-and-compile
  (defun efrit-tools--keyword (symbol)
    "Return the keyword with the name of SYMBOL, such as `:path' for `path'."
    (intern (format ":%s" symbol)))

  (defun efrit-tools--schema (arguments)
    "Return the JSON schema, a plist, of ARGUMENTS as in `efrit-define-tool'."
    (let ((required (cl-loop for (name _ _ . more) in arguments
                             unless (plist-get more :optional) collect (symbol-name name))))
      `(:type "object"
              :properties ,(or (cl-mapcan (lambda (argument)
                                            (list (efrit-tools--keyword (car argument))
                                                  (efrit-tools--property argument)))
                                          arguments)
                               efrit-json-empty-object)
              ,@(and required (list :required (vconcat required))))))

  (defun efrit-tools--property (argument)
    "Return the JSON schema, a plist, of one ARGUMENT as in `efrit-define-tool'."
    (pcase-let ((`(,_ ,type ,description . ,more) argument))
      (append (if (stringp type) (list :type type) type)
              (list :description description)
              (cl-loop for (key value) on more by #'cddr
                       unless (eq key :optional) append (list key value))))))

(defmacro efrit-define-tool (name arguments description &rest body)
  "Define the tool NAME, a symbol, with ARGUMENTS and DESCRIPTION.
Each of ARGUMENTS is (SYMBOL TYPE DESCRIPTION . PLIST): TYPE is a JSON
type as a string, or a schema as a plist; with `:optional' non-nil it may
be omitted, and other keys are added to its schema.

BODY may begin with keys: `:policy' (default `ask'), `:effects' (default:
non-nil for a tool that asks), `:async' (default: non-nil for a tool with a
plan), and `:plan', `:resolve', `:question' and `:guard', functions; see
`efrit-tool'.  In the forms that follow, the arguments are bound to their
symbols, an omitted one to nil, and `call' to the `efrit-tool-call'."
  (declare (indent 2) (doc-string 3))
  (let ((keys nil))
    (while (keywordp (car body))
      (setq keys (plist-put keys (pop body) (pop body))))
    `(setf
      (alist-get ,(symbol-name name) efrit-tools--by-name nil nil #'equal)
      (efrit-tool-create
       :name ,(symbol-name name)
       :description ,description
       :parameters ',(efrit-tools--schema arguments)
       :policy ',(or (plist-get keys :policy) 'ask)
       :effects ,(if (plist-member keys :effects)
                     (plist-get keys :effects)
                   (not (eq (plist-get keys :policy) 'allow)))
       :async ,(and (or (plist-get keys :async) (plist-get keys :plan)) t)
       :plan ,(plist-get keys :plan)
       :resolve ,(plist-get keys :resolve)
       :question ,(plist-get keys :question)
       :guard ,(plist-get keys :guard)
       :function (lambda (arguments call)
                   (ignore arguments call)
                   (let ,(mapcar (lambda (argument)
                                   `(,(car argument)
                                     (plist-get arguments
                                                ,(efrit-tools--keyword (car argument)))))
                                 arguments)
                     (ignore ,@(mapcar #'car arguments))
                     ,@body))))))

(cl-defun efrit-tool-result (text &key (status 'success) message lisp todos summary gist
                                  ending said)
  "Return the result TEXT of a tool, for the model.
Lines that efrit itself writes are marked by `efrit-tool-mark-own'; all others
count as found by the tool.  STATUS is `success' or `error'; MESSAGE tells the
model what to do about an error.  LISP, a string, and TODOS, a vector, are
stored with the result.  SUMMARY is the line that replaces the result when it
is compressed.  GIST tells the person in a few words what came of the call, such
as \"12 buffers\"; ENDING is \"denied\" or \"stopped\" if the call did not run to
its end.  SAID is non-nil if TEXT or GIST has words of the person; private
parts of them are then not stored."
  (list :text text :status (symbol-name status) :message message
        :lisp lisp :todos todos
        :summary summary :gist (and gist (efrit-tools--fit-gist gist)) :ending ending :said said))

(defun efrit-tools--fit-gist (gist)
  "Return GIST as the sidecar takes it: not too long, without invalid characters."
  (efrit-json-replace-invalid
   (substring gist 0 (min (length gist) efrit-tools--most-summary))))

(defun efrit-tool-error (text)
  "Return an error with TEXT as the result of a tool."
  (efrit-tool-result text :status 'error))

(defun efrit-tool-mark-own (text)
  "Return TEXT with its first line marked as one that efrit itself wrote.
So the model can tell it from lines that a tool has found.  Later lines are
not marked, since they may come from a name with line breaks."
  (let ((end (or (string-search "\n" text) (length text))))
    (concat (propertize (substring text 0 end) 'efrit-own t)
            (substring text end))))

(defun efrit-tool-own-lines (result)
  "Return a vector of the indexes, from 0, of efrit's own lines in RESULT.
The first line of an error is one of these lines."
  (let ((text (plist-get result :text)))
    (vconcat
     (cl-loop for line in (split-string text "\n")
              for number from 0
              when (or (and (< 0 (length line)) (get-text-property 0 'efrit-own line))
                       (and (= number 0) (equal (plist-get result :status) "error")))
              collect number))))

(defun efrit-tool-finish (call result)
  "End CALL, an `efrit-tool-call', with RESULT, unless CALL has ended."
  (when-let* ((finish (efrit-tool-call-finish call))
              (inhibit-quit t))
    (setf (efrit-tool-call-finish call) nil)
    (let ((result (efrit-tools--normalize-result result)))
      (when (and (efrit-tool-call-stopped call) (equal (plist-get result :status) "error"))
        (setq result (plist-put (plist-put result :ending "stopped") :gist "you")))
      (funcall finish result))))

(defun efrit-tool-stop (call)
  "Stop CALL, an `efrit-tool-call', if its tool has set a function for that."
  (when-let* ((stop (efrit-tool-call-stop call)))
    (setf (efrit-tool-call-stop call) nil
          (efrit-tool-call-stopped call) t)
    (funcall stop)))

(defun efrit-tool-get (name)
  "Return the `efrit-tool' NAME of this Emacs, or nil."
  (cdr (assoc name efrit-tools--by-name)))

(defun efrit-tool-fail (call text)
  "End CALL, an `efrit-tool-call', with an error whose text is TEXT."
  (efrit-tool-finish call (efrit-tool-error text)))

(defun efrit-tool-resolve-arguments (name loop arguments)
  "Return ARGUMENTS, a JSON text, as the tool NAME resolves them in LOOP.
Return them unchanged if that fails; the tool then reports the problem."
  (or (ignore-errors
        (when-let* ((resolved (efrit-tools--call-slot #'efrit-tool-resolve name loop arguments)))
          (decode-coding-string (efrit-json-write resolved) 'utf-8)))
      arguments))

(defun efrit-tool-ask-text (name loop arguments)
  "Return the question of the tool NAME in LOOP about ARGUMENTS, or nil."
  (ignore-errors (efrit-tools--call-slot #'efrit-tool-question name loop arguments)))

(defun efrit-tool-guard-reason (name loop arguments)
  "Return the reason of the tool NAME to ask in LOOP about ARGUMENTS, or nil.
The person is then asked whatever rules there are.  An error in the guard
is a reason, too."
  (condition-case err
      (efrit-tools--call-slot #'efrit-tool-guard name loop arguments)
    (error (error-message-string err))))

(defun efrit-tools-schemas ()
  "Return all tools of this Emacs for `tools/register', a vector of plists."
  (vconcat
   (mapcar (lambda (tool)
             (list :name (efrit-tool-name tool)
                   :description (efrit-tool-description tool)
                   :input_schema (efrit-tool-parameters tool)
                   :policy (symbol-name (efrit-tool-policy tool))))
           (seq-sort-by #'efrit-tool-name #'string< (mapcar #'cdr efrit-tools--by-name)))))

(defun efrit-tools-run (call arguments)
  "Run CALL with ARGUMENTS, a JSON text, and finish it with the result.
The sidecar has checked ARGUMENTS against the tool's schema.  An error or a
quit in the tool becomes an error result."
  (let ((tool (efrit-tool-get (efrit-tool-call-name call))))
    (condition-case err
        (let ((result (efrit-tools--apply tool (efrit-json-plist arguments) call)))
          (unless (efrit-tool-async tool)
            (efrit-tool-finish call result)))
      (quit (efrit-tool-fail call "The person stopped it (quit)."))
      (error (efrit-tool-fail call (efrit-tools-error-text err))))))

(defun efrit-tools-error-text (err)
  "Return the text for the model about ERR, an error in a tool."
  (if (eq (car err) 'inhibited-interaction)
      "Error: this code reads from the minibuffer, which no tool may do. \
Ask with ask_user first, and pass the answer on."
    (concat "Error: " (error-message-string err))))

(defun efrit-tools--apply (tool given call)
  "Call the function of TOOL with GIVEN, the arguments, and CALL.
Call it in an empty buffer, in the directory of CALL, so that it does not
act on the person's current buffer.  Tools run from timers, where \\`C-g'
has no effect by default; allow it here, except for an `:async' tool,
which returns at once and must not be interrupted halfway.  Prompts are
errors, except TRAMP's for passwords."
  (let ((directory (or (efrit-tool-call-directory call) default-directory)))
    (with-temp-buffer
      (setq default-directory directory)
      (let ((inhibit-quit (and (efrit-tool-async tool) inhibit-quit))
            (inhibit-interaction (or inhibit-interaction (not (file-remote-p directory)))))
        (funcall (efrit-tool-function tool) given call)))))

(defun efrit-tools--call-slot (slot name loop arguments)
  "Call the function in SLOT of the tool NAME with LOOP and ARGUMENTS, a JSON text.
Return nil if there is no such tool or function.  Call it in an empty buffer:
no buffer-local options apply there, as when the tool itself runs."
  (when-let* ((tool (efrit-tool-get name))
              (function (funcall slot tool)))
    (with-temp-buffer
      (funcall function loop (efrit-json-plist arguments)))))

(defun efrit-tools--normalize-result (result)
  "Return RESULT, the value of a tool's body, as a plist for the sidecar.
Cut its summary, and replace characters that JSON cannot hold."
  (let* ((plist (copy-sequence
                 (if (and (consp result) (plist-member result :text))
                     result
                   (efrit-tool-result (if (stringp result) result (format "%S" result))))))
         (summary (plist-get plist :summary)))
    (when summary
      (plist-put plist :summary
                 (efrit-json-replace-invalid
                  (truncate-string-to-width summary efrit-tools--most-summary nil nil "…"))))
    (plist-put plist :text (efrit-json-replace-invalid (plist-get plist :text)))))

;;; Programs that tools run

;; Slow work runs in a child process, so that Emacs never waits.  The child
;; is killed at its limit of time or output, and when the person stops the
;; call; the tool gets the output so far.

(defmacro efrit-tool-catch-errors (call &rest body)
  "Run BODY; if it signals an error, finish CALL with that error."
  (declare (indent 1) (debug t))
  `(condition-case err
       (progn ,@body)
     (error (efrit-tool-fail ,call (concat "Error: " (error-message-string err))))))

(cl-defun efrit-child-run (call command then &key directory input seconds most clean-up)
  "Run COMMAND, a list of strings, for CALL, then THEN, and return the process.
THEN is called with the output, a unibyte string, and the exit code, or the
reason why the process was killed: `late', after SECONDS, or `long', after
MOST bytes.  DIRECTORY is its working directory, INPUT its standard input.
CLEAN-UP is called without arguments when the process ends for any reason."
  (let* ((default-directory (or directory temporary-file-directory))
         (exec-path (efrit-exec-path))
         (output (generate-new-buffer " *efrit-child*" t))
         (process (efrit-remote-unshared
                   #'make-process :name "efrit-child" :buffer output :command command
                   :connection-type 'pipe :coding 'no-conversion
                   :noquery t :file-handler t
                   :filter (efrit-child--filter most))))
    (with-current-buffer output
      (set-buffer-multibyte nil))
    (when seconds
      (process-put process 'timer
                   (efrit-run-at-time seconds nil #'efrit-child--end process 'late)))
    (set-process-sentinel process (lambda (process _)
                                    (unless (or (process-live-p process)
                                                (process-get process 'over))
                                      (process-put process 'over t)
                                      (when clean-up
                                        (funcall clean-up))
                                      (efrit-child--finish process call then))))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (efrit-child--end process 'stopped)
            (efrit-tool-fail call "The person stopped it.")))
    ;; The process may have ended already.
    (ignore-errors
      (when input
        (process-send-string process input))
      (process-send-eof process))
    process))

(defun efrit-child--filter (most)
  "Return a process filter to keep MOST bytes, and then kill; nil: keep all."
  (lambda (process data)
    (efrit-with-live-buffer (process-buffer process)
      (goto-char (point-max))
      (insert data)
      (when (and most (> (buffer-size) most))
        (delete-region (+ (point-min) most) (point-max))
        (efrit-child--end process 'long)))))

(defun efrit-child--end (process why)
  "Kill PROCESS and its children, and store the first reason WHY in PROCESS."
  (unless (process-get process 'why)
    (process-put process 'why why)
    (when (process-live-p process)
      (kill-process process t))))

(defun efrit-child--finish (process call then)
  "Call THEN, as in `efrit-child-run', after PROCESS ended, if CALL is open."
  (when (timerp (process-get process 'timer))
    (cancel-timer (process-get process 'timer)))
  (let* ((buffer (process-buffer process))
         (output (or (efrit-with-live-buffer buffer (buffer-string)) ""))
         (end (or (process-get process 'why) (process-exit-status process))))
    (when (buffer-live-p buffer)
      (kill-buffer buffer))
    (when (efrit-tool-call-finish call)
      (efrit-tool-catch-errors call (funcall then output end)))))

;;; Tools of the loop

;; Tools for the model to end its task, keep a list of tasks, and ask the
;; person.

(efrit-define-tool session_complete
    ((summary "string" ""))
  "Say that the task is done. The person may go on."
  :policy allow
  (setf (efrit-loop-complete (efrit-tool-call-owner call)) t)
  (efrit-loop-notify (efrit-tool-call-owner call) 'complete summary)
  (efrit-tool-mark-own "The person was notified."))

(efrit-define-tool todo_write
    ((todos (:type "array"
                   :items (:type "object"
                                 :properties (:content (:type "string")
                                              :status (:enum ["pending" "doing" "done"]))
                                 :required ["content" "status"]))
            "The whole list"))
  "Keep a list of tasks, which the person sees."
  :policy allow
  (let ((loop (efrit-tool-call-owner call)))
    (setf (efrit-loop-todos loop) todos)
    (efrit-loop-notify loop 'todos todos)
    (efrit-tool-result
     (efrit-tool-mark-own
      (format "%d items, %d done." (length todos)
              (cl-count "done" todos :key (lambda (todo) (plist-get todo :status))
                        :test #'equal)))
     :todos todos
     :gist (format "%d of %d done"
                   (cl-count "done" todos :key (lambda (todo) (plist-get todo :status))
                             :test #'equal)
                   (length todos)))))

(efrit-define-tool ask_user
    ((question "string" "")
     (options (:type "array" :items (:type "string")) "" :optional t))
  "Ask the person, and wait for the answer."
  :policy allow
  :async t
  (when (string-blank-p question)
    (user-error "The question is empty; give its text"))
  (efrit-loop-notify (efrit-tool-call-owner call) 'question call question
                     (append options nil)))

;;; Evaluating Lisp

;; Evaluates code in this Emacs with a limit of time that even an endless
;; loop obeys: a child process sends this Emacs a signal that enters the
;; debugger, and `debugger' is bound to a function that aborts.  Code that
;; reads from the minibuffer gets an error instead.

(defconst efrit-eval--watcher "sleep \"$1\"; while kill -USR2 \"$2\"; do sleep 1; done"
  "Shell script that signals SIGUSR2 to Emacs at the limit of time.
It repeats the signal, since code may catch the first quit.")

(defconst efrit-eval--prompts
  '(read-key-sequence read-key-sequence-vector recursive-edit
    x-popup-dialog x-popup-menu x-file-dialog)
  "Functions that prompt the person in spite of `inhibit-interaction'.")

(defconst efrit-eval--frames 12
  "Most frames of a backtrace that are shown.")

(efrit-define-tool eval_sexp
    ((code "string" ""))
  "Evaluate Emacs Lisp in an empty buffer of the person's Emacs: its output, and the last value."
  (efrit-eval-string code))

(defun efrit-eval-string (code)
  "Evaluate the forms in CODE, and return a tool's result."
  (let* ((printed (generate-new-buffer " *efrit-eval*" t))
         (outcome (unwind-protect
                      (efrit-eval--within-limits code printed)
                    (setq printed (prog1 (with-current-buffer printed (buffer-string))
                                    (kill-buffer printed))))))
    (efrit-tool-result
     (concat (unless (string-empty-p printed)
               (concat (efrit-eval--truncate printed) (if (string-suffix-p "\n" printed) "" "\n")))
             (cdr outcome))
     :status (car outcome)
     :gist (and (eq (car outcome) 'success) (substring-no-properties (cdr outcome)))
     :lisp code)))

(defun efrit-eval--within-limits (code printed)
  "Evaluate CODE, printing into the buffer PRINTED; return (STATUS . TEXT).
Inhibit quitting except in the code itself, so that the child process and
the timers are always cleaned up."
  (let* ((inhibited inhibit-quit)
         (inhibit-quit t)
         (debug-on-event 'sigusr2)
         (watcher (efrit-eval--watch))
         (prompts (efrit-run-at-time 0.1 0.1 #'efrit-eval--abort-prompt)))
    (add-variable-watcher 'debug-on-event #'efrit-eval--refuse-change)
    (unwind-protect
        (catch 'efrit-eval--abort
          (let ((debugger #'efrit-eval--abort)
                (standard-output printed)
                (debug-on-quit nil)
                (inhibit-interaction t)
                (use-dialog-box nil)
                (inhibit-quit inhibited))
            (efrit-eval--forms code (float-time))))
      (remove-variable-watcher 'debug-on-event #'efrit-eval--refuse-change)
      (cancel-timer prompts)
      (when (process-live-p watcher)
        (delete-process watcher))
      (efrit-eval--forget-signal))))

(defun efrit-eval--forms (code start)
  "Evaluate the forms in CODE, begun at the time START; return (STATUS . TEXT)."
  (let* ((frames nil)
         (signal-hook-function
          (lambda (symbol _)
            (when (and (eq symbol 'quit) (efrit-eval--timed-out-p start))
              (efrit-eval--abort))
            (setq frames (efrit-eval--backtrace)))))
    (condition-case err
        (cons 'success (efrit-eval--print-value (efrit-eval--read-and-eval code)))
      (quit (cons 'error (if (efrit-eval--timed-out-p start)
                             (efrit-eval--timeout-text)
                           "The person stopped it (quit).")))
      (error (cons 'error (concat (efrit-tools-error-text err)
                                  (and frames (concat "\n" (string-join frames "\n")))))))))

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
  "Return the position of the next form in CODE from POSITION on, or CODE's end."
  (if (string-match "\\(?:[ \t\n\r\f]\\|;.*\\)*" code position)
      (match-end 0)
    position))

(defun efrit-eval--print-value (value)
  "Return VALUE, printed as Lisp behind an arrow, cut if it is long."
  (let ((print-circle t)
        (print-escape-newlines nil))
    (efrit-eval--truncate (concat (efrit-tool-mark-own "=> ") (prin1-to-string value)))))

(defun efrit-eval--truncate (text)
  "Return TEXT, cut to `efrit-eval-most-characters', with a note if it was cut."
  (let ((most efrit-eval-most-characters))
    (if (<= (length text) most)
        text
      (concat (substring text 0 most) "\n"
              (efrit-tool-mark-own (format "[cut: %s more characters]\n"
                                           (- (length text) most)))))))

;;;; Backtraces

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
  "Return non-nil if the code under evaluation is calling one of FUNCTIONS."
  (let ((inside t)
        (found nil))
    (mapbacktrace
     (lambda (_evaluated function _arguments _flags)
       (cond ((eq function 'efrit-eval--read-and-eval) (setq inside nil))
             ((and inside (memq function functions)) (setq found t)))))
    found))

(defun efrit-eval--own-frame-p (function)
  "Return non-nil if FUNCTION belongs to error handling, and not to the code."
  (or (not (symbolp function))
      (memq function '(signal error apply mapbacktrace efrit-eval--backtrace eval progn))))

(defun efrit-eval--frame (evaluated function arguments)
  "Return one frame of a backtrace as a line.
FUNCTION is called with ARGUMENTS, which are values if EVALUATED is non-nil."
  (let ((print-length 4)
        (print-level 2))
    (truncate-string-to-width
     (if evaluated
         (format "  %S%s" function (if arguments (format "%S" arguments) "()"))
       (format "  (%S ...)" function))
     100 nil nil t)))

;;;; Limits

(defun efrit-eval--abort-prompt ()
  "Abort the evaluation if it is waiting for a key or a menu choice."
  (when (efrit-eval--inside-p efrit-eval--prompts)
    (throw 'efrit-eval--abort
           (cons 'error (efrit-tools-error-text '(inhibited-interaction))))))

(defun efrit-eval--watch ()
  "Start the process that enforces the limit of time; return it, or nil."
  (when efrit-eval-seconds
    (make-process :name "efrit-eval-limit"
                  :command (list "/bin/sh" "-c" efrit-eval--watcher "sh"
                                 (format "%s" efrit-eval-seconds)
                                 (number-to-string (emacs-pid)))
                  :connection-type 'pipe
                  :noquery t
                  :sentinel #'ignore)))

(defun efrit-eval--abort (&rest reason)
  "Abort the evaluation; this is its `debugger'.
REASON is why the debugger is entered; ignore errors other than quits."
  (unless (and (eq (car reason) 'error)
               (not (eq (car-safe (cadr reason)) 'quit)))
    (setq quit-flag nil)
    (throw 'efrit-eval--abort (cons 'error (efrit-eval--timeout-text)))))

(defun efrit-eval--refuse-change (variable &rest _)
  "Signal an error, since code under evaluation would change VARIABLE."
  (error "Do not set %s: the limit of time depends on it" variable))

(defun efrit-eval--timeout-text ()
  "Return the text for the model about an evaluation that took too long."
  (format "Stopped after %s seconds, the limit `efrit-eval-seconds'." efrit-eval-seconds))

(defun efrit-eval--timed-out-p (start)
  "Return non-nil if an evaluation begun at START has used up its time.
Emacs enters the debugger only once between two key presses, so a second
evaluation that takes too long ends by a plain quit."
  (and efrit-eval-seconds
       (>= (- (float-time) start) efrit-eval-seconds)))

(defun efrit-eval--forget-signal ()
  "Consume a signal that the watching process sent after the evaluation.
The signal makes the next function call enter the debugger; make that call
here, with a debugger that does nothing."
  (let ((debugger #'ignore)
        (inhibit-quit t))
    (funcall #'ignore)
    (setq quit-flag nil))
  (setq debug-on-quit (default-toplevel-value 'debug-on-quit)))

(provide 'efrit-tools)
;;; efrit-tools.el ends here
