;;; efrit-tools.el --- Tools that run in this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `efrit-define-tool' makes a tool of one form.  The sidecar is told of all
;; of them by `efrit-tools-register'; it counts what their schemas cost and
;; keeps what they give.
;;
;; A tool's body returns its result: a string, or what `efrit-tool-result'
;; makes.  The body of a tool that is `:async' returns at once, and calls
;; `efrit-tool-finish' later.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-json)
(require 'seq)

;;; Structs

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
PLAN is what the tool would change, see efrit-plan.el.  DIRECTORY is where
relative file names begin, the root of the session."
  owner id name finish stop plan directory)

(defconst efrit-tools--most-summary 500
  "The longest summary that the sidecar takes, in characters.")

(defvar efrit-tools--all nil
  "The tools by name: an alist of strings and `efrit-tool's.")

;;; Public

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
`efrit-tool-own'.
STATUS is `success' or `error', MESSAGE what to do about an error.  LISP,
a string, and TODOS, a vector, are kept beside it in the work log; SUMMARY
is the line that stays when it has left the window.  SAID says that words
of the person stand in it, of which what is private is kept nowhere."
  (list :text text :status (symbol-name status) :message message
        :lisp lisp :todos todos :summary summary :said said))

(defun efrit-tool-own (text)
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

(defun efrit-tool-named (name)
  "Return the `efrit-tool' NAME of this Emacs, or nil."
  (cdr (assoc name efrit-tools--all)))

(defun efrit-tool-resolved (name loop arguments)
  "Return ARGUMENTS, a JSON text, as the tool NAME resolves them in LOOP.
Where that cannot be done, they stay as they are, and the tool says so."
  (let* ((tool (efrit-tool-named name))
         (resolve (and tool (efrit-tool-resolve tool))))
    (or (and resolve
             (ignore-errors
               (decode-coding-string
                (efrit-json-write
                 (efrit-tools--in-no-buffer loop resolve (efrit-json-plist arguments)))
                'utf-8)))
        arguments)))

(defun efrit-tool-asked (name loop arguments)
  "Return what the tool NAME has the person asked in LOOP about ARGUMENTS, or nil."
  (when-let* ((tool (efrit-tool-named name))
              (question (efrit-tool-question tool)))
    (ignore-errors
      (efrit-tools--in-no-buffer loop question (efrit-json-plist arguments)))))

(defun efrit-tool-guarded (name loop arguments)
  "Return why the tool NAME asks the person in LOOP about ARGUMENTS, or nil.
It does so whatever was allowed before.  Where that cannot be told, it asks."
  (when-let* ((tool (efrit-tool-named name))
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
           (sort (copy-sequence efrit-tools--all)
                 (lambda (a b) (string< (car a) (car b)))))))

(defun efrit-tools-run (call arguments)
  "Run CALL with ARGUMENTS, a JSON text; its `finish' is told the result.
The sidecar has looked whether they fit the tool's schema.  An error or a
quit in the tool is a result as well."
  (let ((tool (efrit-tool-named (efrit-tool-call-name call))))
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
                     unless (eq key :optional) append (list key value)))))

(defun efrit-tools--add (tool)
  "Offer TOOL, in the place of one of the same name."
  (setf (alist-get (efrit-tool-name tool) efrit-tools--all nil nil #'equal) tool))

(defun efrit-tools--result (result)
  "Return RESULT, which came from a tool's body, as a plist that can be booked."
  (let* ((plist (copy-sequence
                 (if (and (consp result) (plist-member result :text))
                     result
                   (efrit-tool-result (if (stringp result) result (format "%S" result))))))
         (summary (plist-get plist :summary)))
    (when summary
      (setq plist (plist-put plist :summary
                             (efrit-json-sound
                              (substring summary 0 (min (length summary)
                                                        efrit-tools--most-summary))))))
    (plist-put plist :text (efrit-json-sound (plist-get plist :text)))))

(provide 'efrit-tools)
;;; efrit-tools.el ends here
