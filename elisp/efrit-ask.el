;;; efrit-ask.el --- Questions to the person  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Shows questions in the session's buffer, and takes their answers; lists the
;; permissions; lets the person edit a new text before it is allowed.

;;; Code:

(require 'efrit)
(require 'efrit-change)
(require 'efrit-edit)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'tabulated-list)

;;; Questions

;; A question is part of the live part of its session's buffer until it is
;; answered: by a key on it, a button, a command, or, for a question of the
;; model, by the next text in the reply box.  No prompt opens, no window
;; changes, and point does not move, so that typing is not interrupted.

(defvar-local efrit-ask--question nil
  "The model's question: (`efrit-tool-call' QUESTION OPTIONS), or nil.")

(defvar-local efrit-ask--last-answer-time nil
  "Time in seconds of the last answer about a permission, or nil.
A question that was just shown for review counts as well.")

(defvar-local efrit-ask--reviewed-use nil
  "The use whose question was shown from its first line on, or nil.")

(defconst efrit-ask--least-interval 0.7
  "Least seconds between an answer and a key that answers the next question.")

(defconst efrit-ask--short-lines 6
  "Most lines of a question that fits any window.")

(defvar efrit-ask--last-diff nil
  "Cons of the diff that was fontified last, and the result.")

(defconst efrit-ask--answers
  '(("y" "once" efrit-allow-once)
    ("n" "no" efrit-deny-once)
    ("r" "no, because..." efrit-deny-with-reason))
  "Answers that decide once: key, label, command.")

(defconst efrit-ask--plan-answers
  '(("e" "edit it first" efrit-revise)
    ("d" "diff in a window" efrit-show-diff))
  "Other actions on a plan: key, label, command.")

(defconst efrit-ask--lasting-answers
  '(("s" exactly session efrit-allow-for-session)
    ("a" alike session efrit-allow-alike-for-session)
    ("p" exactly project efrit-allow-for-project)
    ("A" alike project efrit-allow-alike-for-project))
  "Answers that add a rule: key, grant, scope, command.
The grants are those of `efrit-run-grants'.")

(defvar efrit-ask-permission-map
  (let ((map (make-sparse-keymap)))
    (define-key map "N" #'efrit-deny-for-session)
    (pcase-dolist (`(,key ,_ ,_ ,command) efrit-ask--lasting-answers)
      (define-key map key command))
    (pcase-dolist (`(,key ,_ ,command) (append efrit-ask--answers efrit-ask--plan-answers))
      (define-key map key command))
    map)
  "Keys on the question for a permission.")

(defvar efrit-ask-options-map
  (let ((map (make-sparse-keymap)))
    (dotimes (index 9)
      (define-key map (number-to-string (1+ index)) #'efrit-choose-option))
    map)
  "Keys on a question of the model that has options.")

(defun efrit-ask-open-p ()
  "Return non-nil if a question of the model is open in this buffer."
  (and efrit-ask--question
       (efrit-tool-call-finish (car efrit-ask--question))
       t))

(defun efrit-ask-text (loop)
  "Return the questions of LOOP to the person as text, or nil."
  (cond ((efrit-run-pending-use loop) (efrit-ask--permission loop))
        ((efrit-ask-open-p) (apply #'efrit-ask--question-text (cdr efrit-ask--question)))))

(defun efrit-ask-answer (text)
  "Answer the question of the model in this buffer with TEXT."
  (let ((call (car efrit-ask--question)))
    (setq efrit-ask--question nil)
    (efrit-tool-finish call (efrit-tool-result text :said t))))

(defun efrit-ask-open (call question options)
  "Open QUESTION, with OPTIONS, of CALL in this buffer."
  (setq efrit-ask--question (list call question options)))

(defun efrit-ask-close ()
  "Close the question of the model in this buffer."
  (setq efrit-ask--question nil))

(defun efrit-ask-position ()
  "Return the start of a question in this buffer, or nil."
  (text-property-any efrit-transcript-end efrit-transcript-live-end 'efrit-question t))

(defun efrit-ask-arguments-text (use)
  "Return the complete arguments of USE, or the diff of its plan."
  (let ((arguments (ignore-errors (efrit-json-plist (efrit-use-arguments use)))))
    (cond
     ((efrit-use-plan use) (efrit-plan-text (efrit-use-plan use)))
     ((null arguments) (efrit-permissions-visible (efrit-use-arguments use)))
     (t
      (mapconcat (lambda (pair) (efrit-ask--argument (car pair) (cadr pair)))
                 (seq-partition arguments 2) "\n")))))

;;;; Commands

;;;###autoload
(defun efrit-allow-once ()
  "Allow the pending tool call this time."
  (interactive)
  (efrit-ask--decide 'allow nil))

;;;###autoload
(defun efrit-allow-for-session ()
  "Allow exactly the pending tool call for the rest of the session.
Its button says what that covers; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session))

;;;###autoload
(defun efrit-allow-for-project ()
  "Allow exactly the pending tool call in this project from now on.
Its button says what that covers; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project))

;;;###autoload
(defun efrit-allow-alike-for-session ()
  "Allow whatever is like the pending tool call for the rest of the session.
Its button says what that covers; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session nil 'alike))

;;;###autoload
(defun efrit-allow-alike-for-project ()
  "Allow whatever is like the pending tool call in this project from now on.
Its button says what that covers; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project nil 'alike))

;;;###autoload
(defun efrit-deny-once ()
  "Deny the pending tool call this time."
  (interactive)
  (efrit-ask--decide 'deny nil))

;;;###autoload
(defun efrit-deny-for-session ()
  "Deny exactly the pending tool call for the rest of the session."
  (interactive)
  (efrit-ask--decide 'deny 'session))

;;;###autoload
(defun efrit-deny-with-reason (reason)
  "Deny the pending tool call this time, and tell the model the REASON."
  (interactive (list (progn (efrit-ask--check-sight)
                            (read-string "Not allowed, because: "))))
  (efrit-ask--decide 'deny nil (and (not (string-blank-p reason)) reason)))

(defun efrit-show-diff ()
  "Show the diff of the pending tool call in another window."
  (interactive)
  (efrit-diff-show
   (efrit-permissions-visible
    (let ((use (efrit-ask-pending-use (efrit-loop-current))))
      (efrit-plan-text (or (efrit-use-plan use)
                           (user-error "%s has no diff to show" (efrit-use-name use))))))))

(defun efrit-choose-option (&optional number)
  "Answer the model's question by option NUMBER, by default that of the key."
  (interactive)
  (unless (efrit-ask-open-p)
    (user-error "The model has asked no question"))
  (let* ((number (or number (- last-command-event ?0)))
         (option (nth (1- number) (nth 2 efrit-ask--question))))
    (unless option
      (user-error "There is no option %d" number))
    (efrit-ask-answer option)
    (goto-char (point-max))))

(defun efrit-ask-go ()
  "Go to the first line of the question in this buffer.
Single keys answer it there.  Show as much of a long question as fits."
  (interactive)
  (goto-char (or (efrit-ask-position)
                 (user-error "No question is open in this session")))
  (setq efrit-ask--reviewed-use (efrit-run-pending-use efrit-loop-here))
  (when (and (eq (window-buffer) (current-buffer))
             (not noninteractive)
             (not (pos-visible-in-window-p (point-max))))
    (recenter 0)))

;;;; Permissions that were given

(defvar efrit-permissions-mode-map
  (efrit-make-keymap '(("d" efrit-permissions-revoke-here)))
  "Keys of `efrit-permissions-mode'.")

(define-derived-mode efrit-permissions-mode tabulated-list-mode "Efrit-Permissions"
  "Major mode that lists the permission rules of a session.
The first rule that matches decides.

\\{efrit-permissions-mode-map}"
  (setq tabulated-list-format [("For" 10 nil) ("Decision" 9 nil) ("What" 0 nil)]
        tabulated-list-padding 1)
  (add-hook 'tabulated-list-revert-hook #'efrit-ask--list-rules nil t)
  (tabulated-list-init-header))

;;;###autoload
(defun efrit-permissions (&optional loop)
  "List the permission rules of LOOP, by default of the session here.
They are those of the session, of its project, and of the option
`efrit-permission-rules'."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (pop-to-buffer (format "*efrit permissions: %s*" (efrit-loop-id loop)))
    (efrit-permissions-mode)
    (setq efrit-loop-here loop)
    (efrit-ask--list-rules)
    (tabulated-list-print)
    (message "%s" (substitute-command-keys
                   "\\<efrit-permissions-mode-map>\\[efrit-permissions-revoke-here] \
revokes the permission at point"))))

(defun efrit-permissions-revoke-here ()
  "Revoke the permission at point."
  (interactive nil efrit-permissions-mode)
  (efrit-check-mode 'efrit-permissions-mode)
  (pcase (tabulated-list-get-id)
    (`(session . ,rule)
     (setf (efrit-loop-rules efrit-loop-here) (remove rule (efrit-loop-rules efrit-loop-here))))
    (`(project . ,rule) (efrit-permissions-revoke (efrit-loop-root efrit-loop-here) rule))
    (`(option . ,_) (user-error "This rule is in `efrit-permission-rules'; change the option, \
then M-x efrit-take-options"))
    (_ (user-error "No permission on this line")))
  (revert-buffer))

(defun efrit-ask--list-rules ()
  "List the rules of the loop of this buffer, in the order in which they apply."
  (setq tabulated-list-entries
        (append (efrit-ask--rule-lines 'session (efrit-loop-rules efrit-loop-here))
                (efrit-ask--rule-lines 'project
                                       (efrit-permissions-of (efrit-loop-root efrit-loop-here)))
                (efrit-ask--rule-lines
                 'option (efrit-loop-option efrit-loop-here 'efrit-permission-rules)))))

(defun efrit-ask--rule-lines (scope rules)
  "Return entries of a list for RULES, which apply to SCOPE."
  (mapcar (lambda (rule)
            (list (cons scope rule)
                  (vector (symbol-name scope) (symbol-name (nth 2 rule))
                          (efrit-permissions-visible (efrit-permissions-rule-text rule) t))))
          rules))

(defun efrit-ask-pending-use (loop)
  "Return the use in LOOP that asks for permission; signal an error if none does."
  (or (efrit-run-pending-use loop)
      (user-error "No tool call is waiting for permission")))

(defun efrit-ask--decide (decision scope &optional reason grant)
  "Answer the first question about a permission with DECISION, kept for SCOPE.
REASON, a string or nil, is for the model; GRANT is as in `efrit-run-answer'.
If point was on the question, move it to the next one, or to the reply box."
  (let* ((loop (efrit-ask--check-sight))
         (use (efrit-ask-pending-use loop))
         (on-question (and efrit-transcript-box (not (efrit-transcript-in-box-p)))))
    (efrit-ask--check-read)
    (when (and scope (eq decision 'allow))
      (efrit-ask--check-grant loop use (or grant 'exactly)))
    (efrit-run-answer loop use decision scope reason grant)
    (setq efrit-ask--last-answer-time (float-time))
    (when on-question
      (goto-char (or (efrit-ask-position) (point-max))))))

(defun efrit-ask--check-grant (loop use grant)
  "Signal a `user-error' unless GRANT can be given to USE in LOOP."
  (unless (assq grant (efrit-run-grants loop use))
    (user-error (if (efrit-run-grants loop use)
                    "This permission is not offered here; see the buttons of the question"
                  "This is asked each time; allow or deny it once"))))

(defun efrit-ask--check-sight ()
  "Return the loop here if the person can see its question.
Otherwise show the question from its first line on, and signal a
`user-error'."
  (let* ((loop (efrit-loop-current))
         (use (efrit-ask-pending-use loop)))
    (unless (efrit-ask--in-sight-p loop use)
      (efrit-ask--show loop use)
      (user-error "Review the question, then repeat the command"))
    loop))

(defun efrit-ask--in-sight-p (loop use)
  "Return non-nil if the person can see the question of LOOP about USE.
A window must show its first line, or a part if the first line was reviewed."
  (if noninteractive
      (efrit-loop-visible-p loop)
    (seq-some
     (lambda (window)
       (with-current-buffer (window-buffer window)
         (and (efrit-ask--of-session-p loop)
              (when-let* ((first (efrit-ask-position)))
                (if (eq use efrit-ask--reviewed-use)
                    (and (<= first (window-end window t))
                         (< (window-start window)
                            (next-single-property-change first 'efrit-question nil (point-max))))
                  (pos-visible-in-window-p first window))))))
     (efrit-loop-visible-windows))))

(defun efrit-ask--show (loop use)
  "Show the question of LOOP about USE, from its first line on."
  (funcall efrit-do-show-function loop)
  (when-let* ((window (seq-find (lambda (window)
                                  (with-current-buffer (window-buffer window)
                                    (efrit-ask--of-session-p loop)))
                                (efrit-loop-visible-windows))))
    (with-selected-window window
      (efrit-ask-go)
      (setq efrit-ask--reviewed-use use
            efrit-ask--last-answer-time (float-time)))))

(defun efrit-ask--of-session-p (loop)
  "Return non-nil if this buffer is the session's buffer of LOOP.
Other buffers, such as lists, have LOOP in `efrit-loop-here', too."
  (and (eq loop efrit-loop-here) efrit-transcript-end))

(defun efrit-ask--check-read ()
  "Signal a `user-error' if a key comes too soon after the last answer.
The key may have been meant for the question before."
  (when (and efrit-ask--last-answer-time
             this-command
             (where-is-internal this-command (list efrit-ask-permission-map) t)
             (< (- (float-time) efrit-ask--last-answer-time) efrit-ask--least-interval))
    (user-error "This question is new: review it, then repeat the command")))

(defun efrit-ask--permission (loop)
  "Return the text of the first question of LOOP about a permission."
  (let* ((asking (seq-filter (lambda (use) (eq (efrit-use-state use) 'asking))
                             (efrit-loop-run loop)))
         (use (car asking))
         (shown (if (efrit-use-plan use)
                    (efrit-ask--block (efrit-ask--fontified-diff (efrit-ask-arguments-text use)))
                  (efrit-ask--block (efrit-ask-arguments-text use) 'efrit-question-body))))
    (propertize
     (concat (propertize (efrit-ask--title use (length asking)) 'face 'efrit-question)
             "\n" shown "\n"
             (and (efrit-use-guard use)
                  (propertize (format "  %s  This is asked about each time.\n"
                                      (efrit-permissions-visible (efrit-use-guard use) t))
                              'face 'efrit-note))
             (efrit-ask--line (mapcar (pcase-lambda (`(,key ,label ,command))
                                        (efrit-ask--button key label command))
                                      (append efrit-ask--answers
                                              (efrit-ask--plan-actions use))))
             (mapconcat (lambda (button) (efrit-ask--line (list button)))
                        (efrit-ask--lasting-buttons loop use) "")
             (efrit-ask--help-text (length (split-string shown "\n"))))
     'keymap efrit-ask-permission-map
     'efrit-question t)))

(defun efrit-ask--plan-actions (use)
  "Return the entries of `efrit-ask--plan-answers' that apply to USE."
  (when-let* ((plan (efrit-use-plan use)))
    (seq-filter (lambda (answer)
                  (or (not (eq (nth 2 answer) 'efrit-revise))
                      (efrit-plan-revisable plan)))
                efrit-ask--plan-answers)))

(defun efrit-ask--lasting-buttons (loop use)
  "Return the buttons that answer the question of LOOP about USE for longer."
  (let ((grants (efrit-run-grants loop use)))
    (append
     (cl-loop for (key grant scope command) in efrit-ask--lasting-answers
              for words = (nth 2 (assq grant grants))
              for until = (cond ((eq scope 'session) "this session")
                                ((string-search "this project" (or words "")) "from now on")
                                (t "from now on in this project"))
              when words
              collect (efrit-ask--button key (format "%s, %s" words until) command))
     (list (efrit-ask--button
            "N" (format "never %s, this session" (cadr (efrit-run-refusal loop use)))
            #'efrit-deny-for-session)))))

(defun efrit-ask--help-text (lines)
  "Return a hint on answering a question of LINES lines from the reply box."
  (propertize
   (concat "  C-c C-y once · C-c C-d no · C-c C-a "
           (if (> lines efrit-ask--short-lines)
               (format "goes to the first of its %d lines\n" lines)
             "goes to the question, for these keys\n"))
   'face 'efrit-note))

(defun efrit-ask--fontified-diff (diff)
  "Return DIFF with faces; cache the last one."
  (let ((shown (efrit-permissions-visible diff)))
    (unless (equal shown (car efrit-ask--last-diff))
      (setq efrit-ask--last-diff (cons shown (efrit-diff-fontify shown))))
    (cdr efrit-ask--last-diff)))

(defun efrit-ask--title (use count)
  "Return the first line of the question about USE, the first of COUNT."
  (concat (efrit-permissions-visible (or (efrit-use-question use)
                                         (format "May %s run?" (efrit-use-name use)))
                                     t)
          (if (> count 1) (format "  (the first of %d)" count) "")))

(defun efrit-ask--question-text (question options)
  "Return the text of QUESTION, asked by the model, with OPTIONS."
  (propertize
   (concat (propertize (concat "The model asks:\n" (efrit-permissions-visible question))
                       'face 'efrit-question)
           "\n"
           (efrit-ask--line
            (append (cl-loop for option in options
                             for number from 1
                             collect (efrit-ask--button
                                      (number-to-string number)
                                      (efrit-permissions-visible option t)
                                      (let ((number number))
                                        (lambda () (interactive) (efrit-choose-option number)))))
                    (list (propertize "or answer in the reply box"
                                      'face 'efrit-note)))
            (and options "\n")))
   'keymap efrit-ask-options-map
   'efrit-question t))

(defun efrit-ask--line (parts &optional between)
  "Return PARTS as a line, with BETWEEN or a blank before the indentation."
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
  "Return the argument NAME with its whole VALUE; several lines begin below."
  (let ((text (efrit-permissions-visible
               (cond ((stringp value) value)
                     ((eq value t) "yes")
                     ((null value) "no")
                     (t (decode-coding-string (efrit-json-write value) 'utf-8))))))
    (concat (efrit-permissions-visible (substring (symbol-name name) 1) t)
            (if (string-search "\n" text) ":\n" ": ")
            text)))

(defun efrit-ask--block (text &optional face)
  "Return TEXT in FACE, if non-nil, with a bar before each line."
  (mapconcat (lambda (line)
               (concat (propertize "  │ " 'face 'efrit-note)
                       (if face (propertize line 'face face) line)))
             (split-string text "\n") "\n"))

;;; Changing an edit before it is allowed

;; Before allowing a change of a file, the person may edit its new text in a
;; buffer.  The model gets the difference.

(defvar-local efrit-revise--use nil
  "The use whose new text is in this buffer.")

(defvar-local efrit-revise--change nil
  "The change whose new text is in this buffer.")

;; The person may choose another major mode for the text.
(dolist (variable '(efrit-revise--use efrit-revise--change efrit-revise-mode))
  (put variable 'permanent-local t))

(defvar efrit-revise-mode-map
  (efrit-make-keymap '(("C-c C-c" efrit-revise-accept)
                       ("C-c C-k" efrit-revise-drop)))
  "Keys of `efrit-revise-mode'.")

(define-minor-mode efrit-revise-mode
  "Edit the new text of a file before the change is allowed.
\\{efrit-revise-mode-map}"
  :lighter " Revise")

;;;; Commands

;;;###autoload
(defun efrit-revise ()
  "Edit the new text of the pending change, to allow it with that."
  (interactive)
  (let* ((loop (efrit-ask--check-sight))
         (use (efrit-ask-pending-use loop))
         (change (efrit-revise--choose use))
         (buffer (generate-new-buffer (format "*efrit new text: %s*"
                                              (efrit-change-path change)))))
    (with-current-buffer buffer
      (insert (efrit-change-after change))
      (goto-char (point-min))
      (efrit-revise--set-mode (efrit-change-file change))
      (setq efrit-loop-here loop
            efrit-revise--use use
            efrit-revise--change change)
      (efrit-revise-mode)
      (setq header-line-format
            (substitute-command-keys
             "New text of the file: \\[efrit-revise-accept] allows it, \
\\[efrit-revise-drop] goes back to the question")))
    (pop-to-buffer buffer)))

(defun efrit-revise-accept ()
  "Allow the change, with the text of this buffer as the new text."
  (interactive)
  (let ((use efrit-revise--use)
        (loop efrit-loop-here))
    (unless (eq (efrit-use-state use) 'asking)
      (user-error "This edit is no longer pending"))
    (efrit-plan-revise (efrit-use-plan use) efrit-revise--change (buffer-string))
    (quit-window t)
    (efrit-run-answer loop use 'allow)))

(defun efrit-revise-drop ()
  "Kill this buffer, and go back to the question."
  (interactive)
  (quit-window t))

(defun efrit-revise--choose (use)
  "Return the change of USE to revise; ask if there are several."
  (let* ((plan (efrit-use-plan use))
         (changes (and plan (efrit-plan-revisable plan)))
         (paths (mapcar #'efrit-change-path changes)))
    (cond ((null changes) (user-error "%s has no new text to edit" (efrit-use-name use)))
          ((null (cdr changes)) (car changes))
          (t (nth (seq-position paths (completing-read "Edit the new text of: " paths nil t))
                  changes)))))

(defun efrit-revise--set-mode (file)
  "Set the major mode for FILE, without its hooks and local variables."
  (let ((buffer-file-name file)
        (enable-local-variables nil))
    (delay-mode-hooks
      (ignore-errors (set-auto-mode)))
    (font-lock-mode)))

(provide 'efrit-ask)
;;; efrit-ask.el ends here
