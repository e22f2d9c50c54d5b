;;; efrit-tools.el --- Tools that run in this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; How tools are defined, the tools of the loop itself, evaluation, and
;; programs whose output a tool waits for.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'seq)
(require 'subr-x)

;;; Defining tools

;; `efrit-define-tool' makes a tool of one form.  The sidecar is told of all
;; of them by `efrit-tools-register'; it counts what their schemas cost and
;; keeps what they give.
;;
;; A tool's body returns its result: a string, or what `efrit-tool-result'
;; makes.  The body of a tool that is `:async' returns at once, and calls
;; `efrit-tool-finish' later.

(cl-defstruct (efrit-tool (:constructor efrit-tool-create) (:copier nil))
  "A tool that runs in Emacs.
NAME and DESCRIPTION are the model's, PARAMETERS its schema, a plist.
POLICY is `allow' or `ask', EFFECTS whether it does more than to read: such
a use waits for those before it, and those behind it wait.  FUNCTION takes the arguments, a plist, and
the call, an `efrit-tool-call'; ASYNC says whether the result comes later.
PLAN, where the tool changes files, makes an `efrit-plan', which the
person is shown before FUNCTION is called: it takes the loop, the arguments,
and two functions, one that is called with the plan, and one that is called
with what is wrong.

These are functions of the loop and the arguments, or nil.  RESOLVE gives the
arguments with all that they leave open, before anything is decided; what it
leaves open is not run.  QUESTION gives what the person is asked where the
arguments do not say it all, a string, or nil.  GUARD gives why the person
is to be asked whatever was allowed before, a string, or nil."
  name description parameters policy effects function async plan resolve question guard)

(cl-defstruct (efrit-tool-call (:constructor efrit-tool-call-create) (:copier nil))
  "One use of a tool that runs in Emacs.
OWNER is whose session it is, FINISH takes the result, once.  STOP, which
an `:async' tool may set, is called without arguments when the person stops
the use; it has the tool finish soon, with what there is of a result.
PLAN is what the tool would change, see efrit-edit.el.  DIRECTORY is where
relative file names begin, the root of the session."
  owner id name finish stop plan directory)

(defconst efrit-tools--most-summary 500
  "The longest summary that the sidecar takes, in characters.")

(defvar efrit-tools--by-name nil
  "The tools by name: an alist of strings and `efrit-tool's.")

(eval-and-compile
  (defun efrit-tools--keyword (symbol)
    "Return the keyword of SYMBOL."
    (intern (format ":%s" symbol)))

  (defun efrit-tools--schema (arguments)
    "Return the schema of ARGUMENTS, as `efrit-define-tool' takes them."
    (let ((required (cl-remove-if (lambda (argument) (plist-get (cdddr argument) :optional))
                                  arguments)))
      `(:type "object"
              :properties ,(or (cl-mapcan (lambda (argument)
                                            (list (efrit-tools--keyword (car argument))
                                                  (efrit-tools--property argument)))
                                          arguments)
                               efrit-json-empty-object)
              ,@(and required
                     (list :required (vconcat (mapcar (lambda (argument)
                                                        (symbol-name (car argument)))
                                                      required)))))))

  (defun efrit-tools--property (argument)
    "Return the schema of ARGUMENT, as `efrit-define-tool' takes it."
    (pcase-let ((`(,_ ,type ,description . ,more) argument))
      (append (if (stringp type) (list :type type) type)
              (list :description description)
              (cl-loop for (key value) on more by #'cddr
                       unless (eq key :optional) append (list key value))))))

(defmacro efrit-define-tool (name arguments description &rest body)
  "Define the tool NAME, a symbol, with ARGUMENTS and DESCRIPTION.
Each of ARGUMENTS is (SYMBOL TYPE DESCRIPTION . PLIST): TYPE is a JSON
type as a string, or a schema as a plist; with `:optional' non-nil it may
be left out, and other keys are added to its schema.

BODY may begin with keys: `:policy' (`ask' unless said), `:effects' (those
that ask have them, unless said), `:async', and `:plan', `:resolve',
`:question' and `:guard', functions.  Then come forms that see the arguments
by their symbols, nil where left out, and the use itself as `call'."
  (declare (indent 2) (doc-string 3))
  (let ((keys nil))
    (while (keywordp (car body))
      (setq keys (plist-put keys (pop body) (pop body))))
    `(efrit-tools--add
      (efrit-tool-create
       :name ,(symbol-name name)
       :description ,description
       :parameters ',(efrit-tools--schema arguments)
       :policy ',(or (plist-get keys :policy) 'ask)
       :effects ,(if (plist-member keys :effects)
                     (plist-get keys :effects)
                   (not (eq (plist-get keys :policy) 'allow)))
       :async ,(plist-get keys :async)
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

(cl-defun efrit-tool-result (text &key (status 'success) message lisp todos summary said)
  "Return the result TEXT of a tool, for the model.
What the tool has found stands in it as it is, what it says itself by
`efrit-tool-mark-own'.
STATUS is `success' or `error', MESSAGE what to do about an error.  LISP,
a string, and TODOS, a vector, are kept beside it in the work log; SUMMARY
is the line that stays when it has left the window.  SAID says that it
holds words of the person; private parts of these are never stored."
  (list :text text :status (symbol-name status) :message message
        :lisp lisp :todos todos :summary summary :said said))

(defun efrit-tool-mark-own (text)
  "Return TEXT as the program's own lines in a tool's result.
The model can tell them from the other lines, which a tool has found."
  (propertize text 'efrit-own t))

(defun efrit-tool-own-lines (result)
  "Return which lines of the text of RESULT are the program's own, a vector.
They are numbered from 0.  What is wrong is said in the first line."
  (let ((text (plist-get result :text)))
    (vconcat
     (cl-loop for line in (split-string text "\n")
              for number from 0
              when (or (and (< 0 (length line)) (get-text-property 0 'efrit-own line))
                       (and (= number 0) (equal (plist-get result :status) "error")))
              collect number))))

(defun efrit-tool-finish (call result)
  "End CALL, an `efrit-tool-call', with RESULT, unless it has ended."
  (when-let* ((finish (efrit-tool-call-finish call))
              (inhibit-quit t))
    (setf (efrit-tool-call-finish call) nil)
    (funcall finish (efrit-tools--result result))))

(defun efrit-tool-stop (call)
  "Stop what CALL, an `efrit-tool-call', has under way."
  (when-let* ((stop (efrit-tool-call-stop call)))
    (setf (efrit-tool-call-stop call) nil)
    (funcall stop)))

(defun efrit-tool-get (name)
  "Return the `efrit-tool' NAME of this Emacs, or nil."
  (cdr (assoc name efrit-tools--by-name)))

(defun efrit-tool-resolve-arguments (name loop arguments)
  "Return ARGUMENTS, a JSON text, as the tool NAME resolves them in LOOP.
Where that cannot be done, they stay as they are, and the tool says so."
  (let* ((tool (efrit-tool-get name))
         (resolve (and tool (efrit-tool-resolve tool))))
    (or (and resolve
             (ignore-errors
               (decode-coding-string
                (efrit-json-write
                 (efrit-tools--in-no-buffer loop resolve (efrit-json-plist arguments)))
                'utf-8)))
        arguments)))

(defun efrit-tool-ask-text (name loop arguments)
  "Return what the tool NAME has the person asked in LOOP about ARGUMENTS, or nil."
  (when-let* ((tool (efrit-tool-get name))
              (question (efrit-tool-question tool)))
    (ignore-errors
      (efrit-tools--in-no-buffer loop question (efrit-json-plist arguments)))))

(defun efrit-tool-guard-reason (name loop arguments)
  "Return why the tool NAME asks the person in LOOP about ARGUMENTS, or nil.
It does so whatever was allowed before.  Where that cannot be told, it asks."
  (when-let* ((tool (efrit-tool-get name))
              (guard (efrit-tool-guard tool)))
    (condition-case err
        (efrit-tools--in-no-buffer loop guard (efrit-json-plist arguments))
      (error (error-message-string err)))))

(defun efrit-tools-schemas ()
  "Return all tools of this Emacs as the sidecar takes them: a vector of plists."
  (vconcat
   (mapcar (lambda (entry)
             (let ((tool (cdr entry)))
               (list :name (efrit-tool-name tool)
                     :description (efrit-tool-description tool)
                     :input_schema (efrit-tool-parameters tool)
                     :policy (symbol-name (efrit-tool-policy tool)))))
           (sort (copy-sequence efrit-tools--by-name)
                 (lambda (a b) (string< (car a) (car b)))))))

(defun efrit-tools-run (call arguments)
  "Run CALL with ARGUMENTS, a JSON text; its `finish' is told the result.
The sidecar has looked whether they fit the tool's schema.  An error or a
quit in the tool is a result as well."
  (let ((tool (efrit-tool-get (efrit-tool-call-name call))))
    (condition-case err
        (let ((result (efrit-tools--apply tool (efrit-json-plist arguments) call)))
          (unless (efrit-tool-async tool)
            (efrit-tool-finish call result)))
      (quit (efrit-tool-finish
             call (efrit-tool-result "The person stopped it (quit)." :status 'error)))
      (error (efrit-tool-finish
              call (efrit-tool-result (efrit-tools-error-text err) :status 'error))))))

(defun efrit-tools-error-text (err)
  "Return what the model is told of ERR, an error in a tool, a string."
  (if (eq (car err) 'inhibited-interaction)
      "Error: this asks the person for something in the minibuffer, which no tool may. \
Ask with ask_user first, and pass the answer on."
    (concat "Error: " (error-message-string err))))

(defun efrit-tools--apply (tool given call)
  "Return what the function of TOOL gives for GIVEN, the arguments, and CALL.
It runs in an empty buffer, and in the directory of CALL: in whatever
buffer the person is just now, it would act on that.  Tools run from
timers, where Emacs would not quit; that the person can, unless the result
comes later, for then its beginning is over at once, and is not left half done.
Nothing prompts meanwhile, but for passwords of another machine."
  (let ((directory (or (efrit-tool-call-directory call) default-directory)))
    (with-temp-buffer
      (setq default-directory directory)
      (let ((inhibit-quit (and (efrit-tool-async tool) inhibit-quit))
            (inhibit-interaction (or inhibit-interaction (not (file-remote-p directory)))))
        (funcall (efrit-tool-function tool) given call)))))

(defun efrit-tools--in-no-buffer (loop function given)
  "Call FUNCTION with LOOP and GIVEN where no buffer has options of its own.
The tool runs there, too, so both come to the same."
  (with-temp-buffer
    (funcall function loop given)))

(defun efrit-tools--add (tool)
  "Offer TOOL, in the place of one of the same name."
  (setf (alist-get (efrit-tool-name tool) efrit-tools--by-name nil nil #'equal) tool))

(defun efrit-tools--result (result)
  "Return RESULT, which came from a tool's body, as a plist that can be booked."
  (let* ((plist (copy-sequence
                 (if (and (consp result) (plist-member result :text))
                     result
                   (efrit-tool-result (if (stringp result) result (format "%S" result))))))
         (summary (plist-get plist :summary)))
    (when summary
      (setq plist (plist-put plist :summary
                             (efrit-json-replace-invalid
                              (substring summary 0 (min (length summary)
                                                        efrit-tools--most-summary))))))
    (plist-put plist :text (efrit-json-replace-invalid (plist-get plist :text)))))

;;; Programs that tools run

;; What takes long runs in a process of its own, so that Emacs never waits.
;; It ends in time, with what it has said by then, and when the person stops
;; the use of the tool.

(defmacro efrit-child-finishing (call &rest body)
  "Run BODY, which is to finish CALL; an error in it finishes CALL, too."
  (declare (indent 1) (debug t))
  `(efrit-child--finishing ,call (lambda () ,@body)))

(cl-defun efrit-child-run (call command then &key directory input seconds most over)
  "Run COMMAND, a list of strings, for CALL, then THEN.
THEN is called with the output, a unibyte string, and the exit code or why
it has none: `late', after SECONDS, or `long', after MOST bytes.
DIRECTORY is where it runs, INPUT what it reads.  OVER is called without
arguments when it has ended, however that was.  Return the process."
  (let* ((default-directory (or directory temporary-file-directory))
         (output (generate-new-buffer " *efrit-child*" t))
         (process (efrit-remote-unshared
                    (make-process :name "efrit-child" :buffer output :command command
                                  :connection-type 'pipe :coding 'no-conversion
                                  :noquery t :file-handler t
                                  :filter (efrit-child--filter most)))))
    (with-current-buffer output
      (set-buffer-multibyte nil))
    (when seconds
      (process-put process 'timer
                   (run-at-time seconds nil #'efrit-child--end process 'late)))
    (set-process-sentinel process (lambda (process _)
                                    (unless (or (process-live-p process)
                                                (process-get process 'over))
                                      (process-put process 'over t)
                                      (when over
                                        (funcall over))
                                      (efrit-child--finish process call then))))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (efrit-child--end process 'stopped)
            (efrit-tool-finish call (efrit-tool-result "The person stopped it."
                                                       :status 'error))))
    ;; It may have ended already.
    (ignore-errors
      (when input
        (process-send-string process input))
      (process-send-eof process))
    process))

(defun efrit-child--finishing (call body)
  "Call BODY, which is to finish CALL; an error in it finishes CALL, too."
  (condition-case err
      (funcall body)
    (error (efrit-tool-finish
            call (efrit-tool-result (format "Error: %s" (error-message-string err))
                                    :status 'error)))))

(defun efrit-child--filter (most)
  "Return a filter to keep MOST bytes of a process, nil for all."
  (lambda (process data)
    (when (buffer-live-p (process-buffer process))
      (with-current-buffer (process-buffer process)
        (goto-char (point-max))
        (insert data)
        (when (and most (> (buffer-size) most))
          (delete-region (+ (point-min) most) (point-max))
          (efrit-child--end process 'long))))))

(defun efrit-child--end (process why)
  "End PROCESS, for the reason WHY, and what it has started."
  (unless (process-get process 'why)
    (process-put process 'why why)
    (when (process-live-p process)
      (kill-process process t))))

(defun efrit-child--finish (process call then)
  "Give the output of PROCESS, which ran for CALL, to THEN."
  (when (timerp (process-get process 'timer))
    (cancel-timer (process-get process 'timer)))
  (let* ((buffer (process-buffer process))
         (output (if (buffer-live-p buffer)
                     (with-current-buffer buffer (buffer-string))
                   ""))
         (end (or (process-get process 'why) (process-exit-status process))))
    (when (buffer-live-p buffer)
      (kill-buffer buffer))
    (when (efrit-tool-call-finish call)
      (efrit-child-finishing call (funcall then output end)))))

;;; Tools of the loop

;; How the model says that it is done, keeps a list of what is to be done,
;; and asks the person.

;;;; Tools

(efrit-define-tool session_complete
    ((summary "string" ""))
  "Say that the task is done. The person may go on."
  :policy allow
  (setf (efrit-loop-complete (efrit-tool-call-owner call)) t)
  (efrit-loop-notify (efrit-tool-call-owner call) 'complete summary)
  (efrit-tool-mark-own "The person was told."))

(efrit-define-tool todo_write
    ((todos (:type "array"
                   :items (:type "object"
                                 :properties (:content (:type "string")
                                              :status (:enum ["pending" "doing" "done"]))
                                 :required ["content" "status"]))
            "The whole list"))
  "Keep a list of what is to be done, which the person sees."
  :policy allow
  (let ((loop (efrit-tool-call-owner call)))
    (setf (efrit-loop-todos loop) todos)
    (efrit-loop-notify loop 'todos todos)
    (efrit-tool-result
     (efrit-tool-mark-own
      (format "%d items, %d done." (length todos)
              (cl-count "done" todos :key (lambda (todo) (plist-get todo :status))
                        :test #'equal)))
     :todos todos)))

(efrit-define-tool ask_user
    ((question "string" "")
     (options (:type "array" :items (:type "string")) "" :optional t))
  "Ask the person, and wait for the answer."
  :policy allow
  :async t
  (efrit-loop-notify (efrit-tool-call-owner call) 'question call question
                   (append options nil)))

;;; Evaluating Lisp

;; Evaluates code in this Emacs with a limit of time that holds even for a
;; loop that never looks up: a watching process sends this Emacs a signal
;; that makes it quit, and the debugger that would open then is ours.  Code
;; that asks the person for something in the minibuffer gets an error instead.

(defconst efrit-eval--watcher "sleep \"$1\"; while kill -USR2 \"$2\"; do sleep 1; done"
  "The shell's script that ends an evaluation in time.
It insists, since code may take the first quit for its own.")

(defconst efrit-eval--prompts
  '(read-key-sequence read-key-sequence-vector recursive-edit
    x-popup-dialog x-popup-menu x-file-dialog)
  "Functions that wait for the person in spite of `inhibit-interaction'.")

(defconst efrit-eval--frames 12
  "Most frames of a backtrace that are shown.")

;;;; Tools

(efrit-define-tool eval_sexp
    ((code "string" ""))
  "Evaluate Emacs Lisp in an empty buffer of the person's Emacs: what it printed, and the last value."
  :policy ask
  (efrit-eval-string code))

(defun efrit-eval-string (code)
  "Evaluate the forms in CODE, and return the result as a tool does."
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
     :lisp code)))

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
        (catch 'efrit-eval--abort
          (let ((debugger #'efrit-eval--abort)
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
            (when (and (eq symbol 'quit) (efrit-eval--timed-out-p start))
              (efrit-eval--abort))
            (setq frames (efrit-eval--backtrace)))))
    (condition-case err
        (cons 'success (efrit-eval--print-value (efrit-eval--read-and-eval code)))
      (quit (cons 'error (if (efrit-eval--timed-out-p start)
                             (efrit-eval--timeout-text)
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

(defun efrit-eval--print-value (value)
  "Return VALUE, of any kind, as text."
  (let ((print-circle t)
        (print-escape-newlines nil))
    (efrit-eval--truncate (concat (efrit-tool-mark-own "=> ") (prin1-to-string value)))))

(defun efrit-eval--truncate (text)
  "Return TEXT, cut to `efrit-eval-most-characters' with a note on that."
  (let ((most efrit-eval-most-characters))
    (if (<= (length text) most)
        text
      (concat (substring text 0 most)
              (efrit-tool-mark-own (format "\n[cut: %s more characters]\n"
                                           (- (length text) most)))))))

(defun efrit-eval--error-text (err frames)
  "Return what is said of ERR, signalled where FRAMES were on the stack."
  (concat (efrit-tools-error-text err)
          (and frames (concat "\n" (string-join frames "\n")))))

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

;;;; Prompts

(defun efrit-eval--end-prompt ()
  "End the evaluation under way if it waits for a key, or for a menu's choice."
  (when (efrit-eval--inside-p efrit-eval--prompts)
    (throw 'efrit-eval--abort
           (cons 'error (efrit-tools-error-text '(inhibited-interaction))))))

;;;; The limit of time

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

(defun efrit-eval--abort (&rest reason)
  "End the evaluation under way, in the place of the debugger.
REASON is why a debugger would be entered: a quit, for us."
  (if (and (eq (car reason) 'error)
           (not (eq (car-safe (cadr reason)) 'quit)))
      nil
    (setq quit-flag nil)
    (throw 'efrit-eval--abort (cons 'error (efrit-eval--timeout-text)))))

(defun efrit-eval--refuse-change (variable &rest _)
  "Signal an error: code under evaluation would change VARIABLE."
  (error "%s may not be changed here: the limit of time stands on it" variable))

(defun efrit-eval--timeout-text ()
  "Return what is said of an evaluation that took too long."
  (format "It was stopped after %s seconds; see `efrit-eval-seconds'." efrit-eval-seconds))

(defun efrit-eval--timed-out-p (start)
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

(provide 'efrit-tools)
;;; efrit-tools.el ends here
