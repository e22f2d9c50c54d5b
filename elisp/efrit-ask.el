;;; efrit-ask.el --- Questions to the person, in the session's buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the model wants to do, and what it asks, stands in the live part of
;; its session's buffer until it is answered there: by a key on it, a button,
;; a command, or, where the model asks, by the next text in the reply box.
;; No prompt opens, no window changes, and point stays where it is: whoever
;; types goes on typing.

;;; Code:

(require 'cl-lib)
(require 'efrit-diff)
(require 'efrit-do)
(require 'efrit-json)
(require 'efrit-plan)
(require 'efrit-run)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'seq)
(require 'subr-x)

(defvar-local efrit-ask-question nil
  "What the model asks, a list: the `efrit-tool-call', the question, options.")

(defvar-local efrit-ask--answered nil
  "When a permission was answered last, a time in seconds, or nil.")

(defconst efrit-ask--apart 0.7
  "Seconds that a key has to come after an answer to answer another question.")

(defconst efrit-ask--short 6
  "How many lines a question has at most that is sure to be seen whole.")

(defvar efrit-ask--last-diff nil
  "The diff that was given faces last, and what it then was.")

(defconst efrit-ask--answers
  '(("y" "once" efrit-allow-once)
    ("s" "this session" efrit-allow-for-session)
    ("p" "this project" efrit-allow-for-project)
    ("n" "no" efrit-deny-once)
    ("r" "no, because..." efrit-deny-with-reason)
    ("N" "not in this session" efrit-deny-for-session))
  "How a permission is answered: key, label, command.")

(defconst efrit-ask--plan-answers
  '(("e" "edit it first" efrit-revise)
    ("d" "diff in a window" efrit-show-diff))
  "What else can be done about a change of files: key, label, command.")

(defvar efrit-ask-permission-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key ,_ ,command) (append efrit-ask--answers efrit-ask--plan-answers))
      (define-key map key command))
    map)
  "Keys on the question for a permission.")

(defvar efrit-ask-options-map
  (let ((map (make-sparse-keymap)))
    (dotimes (index 9)
      (define-key map (number-to-string (1+ index)) #'efrit-choose-option))
    map)
  "Keys on a question of the model's that has options.")

;;; Public

(defun efrit-ask-open-p ()
  "Return non-nil if the model waits for an answer in words in this buffer."
  (and efrit-ask-question
       (efrit-tool-call-finish (car efrit-ask-question))
       t))

(defun efrit-ask-pending-p (loop)
  "Return non-nil if LOOP, shown in this buffer, waits for the person's answer."
  (or (efrit-run-asking loop) (efrit-ask-open-p)))

(defun efrit-ask-text (loop)
  "Return the questions of LOOP to the person as text, or nil."
  (cond ((efrit-run-asking loop) (efrit-ask--permission loop))
        ((efrit-ask-open-p) (apply #'efrit-ask--in-words (cdr efrit-ask-question)))))

(defun efrit-ask-answer (text)
  "Answer what the model asks in this buffer with TEXT."
  (let ((call (car efrit-ask-question)))
    (setq efrit-ask-question nil)
    (efrit-tool-finish call (efrit-tool-result text :said t))))

(defun efrit-ask-place ()
  "Return where in this buffer a question begins, or nil."
  (text-property-any efrit-transcript-end efrit-transcript-live-end 'efrit-question t))

(defun efrit-ask-at-p (position)
  "Return non-nil if a question stands at POSITION."
  (get-text-property position 'efrit-question))

(defun efrit-ask-shown (use)
  "Return exactly what USE will do where it is allowed: its arguments whole."
  (let ((arguments (ignore-errors (efrit-json-plist (efrit-use-arguments use)))))
    (cond
     ((efrit-use-plan use) (efrit-plan-text (efrit-use-plan use)))
     ((null arguments) (efrit-use-arguments use))
     (t
      (mapconcat (lambda (pair) (efrit-ask--argument (car pair) (cadr pair)))
                 (seq-partition arguments 2) "\n")))))

;;; Commands

;;;###autoload
(defun efrit-allow-once ()
  "Allow what the model asks for, this time."
  (interactive)
  (efrit-ask--decide 'allow nil))

;;;###autoload
(defun efrit-allow-for-session ()
  "Allow what the model asks for, now and for the rest of the session."
  (interactive)
  (efrit-ask--decide 'allow 'session))

;;;###autoload
(defun efrit-allow-for-project ()
  "Allow what the model asks for, in this project, until it is forgotten.
See `efrit-permissions-forget'."
  (interactive)
  (efrit-ask--decide 'allow 'project))

;;;###autoload
(defun efrit-deny-once ()
  "Deny what the model asks for, this time."
  (interactive)
  (efrit-ask--decide 'deny nil))

;;;###autoload
(defun efrit-deny-for-session ()
  "Deny what the model asks for, now and for the rest of the session."
  (interactive)
  (efrit-ask--decide 'deny 'session))

;;;###autoload
(defun efrit-deny-with-reason (reason)
  "Deny what the model asks for, this time, and tell it the REASON."
  (interactive (list (progn (efrit-ask-asking (efrit-do-loop-in-sight))
                            (read-string "Not allowed, because: "))))
  (efrit-ask--decide 'deny nil (and (not (string-blank-p reason)) reason)))

(defun efrit-show-diff ()
  "Show what the model asks to change as a diff in a window of its own."
  (interactive)
  (efrit-diff-show
   (efrit-plan-text (efrit-ask--plan (efrit-ask-asking (efrit-do-loop-here))))))

(defun efrit-choose-option (&optional number)
  "Answer the model's question by the option NUMBER, by default that of the key."
  (interactive)
  (unless (efrit-ask-open-p)
    (user-error "The model asks nothing"))
  (let* ((number (or number (- last-command-event ?0)))
         (option (nth (1- number) (nth 2 efrit-ask-question))))
    (unless option
      (user-error "There is no option %d" number))
    (efrit-ask-answer option)
    (goto-char (point-max))))

(defun efrit-ask-go ()
  "Go to the first line of what the person is asked in this buffer.
There single keys answer it.  Of a long question as much is shown as fits."
  (interactive)
  (goto-char (or (efrit-ask-place)
                 (user-error "Nothing is asked")))
  (when (and (eq (window-buffer) (current-buffer))
             (not noninteractive)
             (not (pos-visible-in-window-p (point-max))))
    (recenter 0)))

;;; Private

(defun efrit-ask-asking (loop)
  "Return the use in LOOP that waits for a permission, or signal a `user-error'."
  (or (efrit-run-asking loop)
      (user-error "Nothing waits for a permission")))

(defun efrit-ask--plan (use)
  "Return the plan of USE, or signal a `user-error'."
  (or (efrit-use-plan use)
      (user-error "%s does not say what it changes" (efrit-use-name use))))

(defun efrit-ask--decide (decision scope &optional reason)
  "Answer the first open permission here with DECISION, remembered for SCOPE.
REASON, a string or nil, goes to the model.  Who answered on the question
goes to the next one, or to the reply box."
  (let* ((loop (efrit-do-loop-in-sight))
         (use (efrit-ask-asking loop))
         (there (and efrit-transcript-box (not (efrit-transcript-in-box-p)))))
    (efrit-ask--check-read)
    (efrit-run-answer loop use decision scope reason)
    (setq efrit-ask--answered (float-time))
    (when there
      (goto-char (or (efrit-ask-place) (point-max))))))

(defun efrit-ask--check-read ()
  "Signal a `user-error' where a key comes before a new question can be read.
It may have been meant for the one before."
  (when (and efrit-ask--answered
             (memq this-command (mapcar (lambda (answer) (nth 2 answer)) efrit-ask--answers))
             (< (- (float-time) efrit-ask--answered) efrit-ask--apart))
    (user-error "This is the next question: read it, and answer again")))

(defun efrit-ask--permission (loop)
  "Return the text that asks for the first open permission of LOOP."
  (let* ((asking (seq-filter (lambda (use) (eq (efrit-use-state use) 'asking))
                             (efrit-loop-run loop)))
         (use (car asking))
         (shown (if (efrit-use-plan use)
                    (efrit-ask--block (efrit-ask--dressed (efrit-ask-shown use)))
                  (efrit-ask--block (efrit-ask-shown use) 'efrit-question-body))))
    (propertize
     (concat (propertize (efrit-ask--title use (length asking)) 'face 'efrit-question)
             "\n" shown "\n"
             (efrit-ask--line (mapcar (pcase-lambda (`(,key ,label ,command))
                                        (efrit-ask--button key label command))
                                      (append efrit-ask--answers
                                              (efrit-ask--about-plan use))))
             (efrit-ask--how (length (split-string shown "\n"))))
     'keymap efrit-ask-permission-map
     'efrit-question t)))

(defun efrit-ask--about-plan (use)
  "Return those of `efrit-ask--plan-answers' that there are for USE."
  (when-let* ((plan (efrit-use-plan use)))
    (seq-filter (lambda (answer)
                  (or (not (eq (nth 2 answer) 'efrit-revise))
                      (efrit-plan-revisable plan)))
                efrit-ask--plan-answers)))

(defun efrit-ask--how (lines)
  "Return how a question about LINES lines is answered from the reply box."
  (propertize
   (concat "  C-c C-y once · C-c C-d no · C-c C-a "
           (if (> lines efrit-ask--short)
               (format "goes to the first of its %d lines\n" lines)
             "goes there, for these keys\n"))
   'face 'efrit-note))

(defun efrit-ask--dressed (diff)
  "Return DIFF with faces; what it was given last is remembered."
  (let ((shown (efrit-ask--visible diff)))
    (unless (equal shown (car efrit-ask--last-diff))
      (setq efrit-ask--last-diff (cons shown (efrit-diff-dressed shown))))
    (cdr efrit-ask--last-diff)))

(defun efrit-ask--title (use count)
  "Return the first line of the question about USE, the first of COUNT."
  (concat (efrit-ask--visible (or (efrit-use-question use)
                                  (format "May %s run?" (efrit-use-name use))))
          (if (> count 1) (format "  (the first of %d)" count) "")))

(defun efrit-ask--in-words (question options)
  "Return the text of QUESTION, the model's, with OPTIONS to choose from."
  (propertize
   (concat (propertize (concat "The model asks:\n" (efrit-ask--visible question))
                       'face 'efrit-question)
           "\n"
           (efrit-ask--line
            (append (cl-loop for option in options
                             for number from 1
                             collect (efrit-ask--option number option))
                    (list (propertize "or answer in the reply box"
                                      'face 'efrit-note)))
            (and options "\n")))
   'keymap efrit-ask-options-map
   'efrit-question t))

(defun efrit-ask--option (number option)
  "Return the button of OPTION, which has NUMBER."
  (efrit-ask--button (number-to-string number) (efrit-ask--visible option)
                     (lambda () (interactive) (efrit-choose-option number))))

(defun efrit-ask--line (parts &optional between)
  "Return PARTS, ways to answer a question, with BETWEEN as a line."
  (concat "  " (string-join parts (concat (or between " ") "  ")) "\n"))

(defun efrit-ask--button (key label command)
  "Return a button for COMMAND, with KEY and LABEL."
  (efrit-ask-button (format "[%s] %s" key label) command))

(defun efrit-ask-button (label command)
  "Return a button with LABEL for COMMAND."
  (make-text-button (copy-sequence label) nil
                    'face 'efrit-key
                    'action (lambda (_) (call-interactively command))))

(defun efrit-ask--argument (name value)
  "Return the argument NAME with VALUE whole; what is long begins a line."
  (let ((name (substring (symbol-name name) 1))
        (text (efrit-ask--visible (if (stringp value) value (efrit-ask--json value)))))
    (if (string-search "\n" text)
        (concat name ":\n" text)
      (concat name ": " text))))

(defun efrit-ask--json (value)
  "Return VALUE, as `efrit-json-plist' gives it, as JSON text."
  (cond ((eq value t) "yes")
        ((null value) "no")
        (t (decode-coding-string (efrit-json-write value) 'utf-8))))

(defun efrit-ask--visible (text)
  "Return TEXT with what would show it in another order made visible."
  (replace-regexp-in-string "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
                            (lambda (hidden) (format "<U+%04X>" (aref hidden 0)))
                            text t t))

(defun efrit-ask--block (text &optional face)
  "Return TEXT in FACE, or as it is, each line behind a bar."
  (mapconcat (lambda (line)
               (concat (propertize "  │ " 'face 'efrit-note)
                       (if face (propertize line 'face face) line)))
             (split-string text "\n") "\n"))

(provide 'efrit-ask)
;;; efrit-ask.el ends here
