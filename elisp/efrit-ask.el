;;; efrit-ask.el --- Questions to the person  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Questions stand in the session's buffer until they are answered there.  An
;; edit can be changed before it is allowed.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-do)
(require 'efrit-edit)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

;;; Questions

;; What the model wants to do, and what it asks, stands in the live part of
;; its session's buffer until it is answered there: by a key on it, a button,
;; a command, or, where the model asks, by the next text in the reply box.
;; No prompt opens, no window changes, and point stays where it is: whoever
;; types goes on typing.

(defvar-local efrit-ask--question nil
  "The model's question: (`efrit-tool-call' QUESTION OPTIONS), or nil.")

(defvar-local efrit-ask--last-answer-time nil
  "When a permission was answered or shown last, a time in seconds, or nil.")

(defvar-local efrit-ask--reviewed-use nil
  "The use whose question was shown from its first line on, or nil.")

(defconst efrit-ask--least-interval 0.7
  "Seconds that a key has to come after an answer to answer another question.")

(defconst efrit-ask--short-lines 6
  "Most lines of a question that is sure to be seen whole.")

(defvar efrit-ask--last-diff nil
  "The diff that was given faces last, and what it then was.")

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
  "Keys on a question of the model's that has options.")

(defun efrit-ask-open-p ()
  "Return non-nil if the model waits for an answer in words in this buffer."
  (and efrit-ask--question
       (efrit-tool-call-finish (car efrit-ask--question))
       t))

(defun efrit-ask-pending-p (loop)
  "Return non-nil if LOOP, shown in this buffer, waits for the person's answer."
  (or (efrit-run-pending-use loop) (efrit-ask-open-p)))

(defun efrit-ask-text (loop)
  "Return the questions of LOOP to the person as text, or nil."
  (cond ((efrit-run-pending-use loop) (efrit-ask--permission loop))
        ((efrit-ask-open-p) (apply #'efrit-ask--question-text (cdr efrit-ask--question)))))

(defun efrit-ask-answer (text)
  "Answer what the model asks in this buffer with TEXT."
  (let ((call (car efrit-ask--question)))
    (setq efrit-ask--question nil)
    (efrit-tool-finish call (efrit-tool-result text :said t))))

(defun efrit-ask-open (call question options)
  "Ask QUESTION with OPTIONS, of CALL, in this buffer."
  (setq efrit-ask--question (list call question options)))

(defun efrit-ask-close ()
  "Drop what the model asks in this buffer."
  (setq efrit-ask--question nil))

(defun efrit-ask-position ()
  "Return where in this buffer a question begins, or nil."
  (text-property-any efrit-transcript-end efrit-transcript-live-end 'efrit-question t))

(defun efrit-ask-at-p (position)
  "Return non-nil if a question stands at POSITION."
  (get-text-property position 'efrit-question))

(defun efrit-ask-arguments-text (use)
  "Return exactly what USE will do where it is allowed: its arguments whole."
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
  "Allow what the model asks for, this time."
  (interactive)
  (efrit-ask--decide 'allow nil))

;;;###autoload
(defun efrit-allow-for-session ()
  "Allow exactly what the model asks for, now and for the rest of the session.
What that is stands on its button; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session))

;;;###autoload
(defun efrit-allow-for-project ()
  "Allow exactly what the model asks for, in this project from now on.
What that is stands on its button; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project))

;;;###autoload
(defun efrit-allow-alike-for-session ()
  "Allow what is like what the model asks for, for the rest of the session.
What that is stands on its button; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session nil 'alike))

;;;###autoload
(defun efrit-allow-alike-for-project ()
  "Allow what is like what the model asks for, in this project from now on.
What that is stands on its button; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project nil 'alike))

;;;###autoload
(defun efrit-deny-once ()
  "Deny what the model asks for, this time."
  (interactive)
  (efrit-ask--decide 'deny nil))

;;;###autoload
(defun efrit-deny-for-session ()
  "Deny exactly what the model asks for, now and for the rest of the session."
  (interactive)
  (efrit-ask--decide 'deny 'session))

;;;###autoload
(defun efrit-deny-with-reason (reason)
  "Deny what the model asks for, this time, and tell it the REASON."
  (interactive (list (progn (efrit-ask--check-sight)
                            (read-string "Not allowed, because: "))))
  (efrit-ask--decide 'deny nil (and (not (string-blank-p reason)) reason)))

(defun efrit-show-diff ()
  "Show what the model asks to change as a diff in a window of its own."
  (interactive)
  (efrit-diff-show
   (efrit-permissions-visible
    (efrit-plan-text (efrit-ask--plan (efrit-ask-pending-use (efrit-loop-current)))))))

(defun efrit-choose-option (&optional number)
  "Answer the model's question by the option NUMBER, by default that of the key."
  (interactive)
  (unless (efrit-ask-open-p)
    (user-error "The model asks nothing"))
  (let* ((number (or number (- last-command-event ?0)))
         (option (nth (1- number) (nth 2 efrit-ask--question))))
    (unless option
      (user-error "There is no option %d" number))
    (efrit-ask-answer option)
    (goto-char (point-max))))

(defun efrit-ask-go ()
  "Go to the first line of what the person is asked in this buffer.
There single keys answer it.  Of a long question as much is shown as fits."
  (interactive)
  (goto-char (or (efrit-ask-position)
                 (user-error "Nothing is asked")))
  (setq efrit-ask--reviewed-use (efrit-run-pending-use efrit-loop-here))
  (when (and (eq (window-buffer) (current-buffer))
             (not noninteractive)
             (not (pos-visible-in-window-p (point-max))))
    (recenter 0)))

;;;; Permissions that were given

(defvar efrit-permissions-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "d" #'efrit-permissions-revoke-here)
    map)
  "Keys of `efrit-permissions-mode'.")

(define-derived-mode efrit-permissions-mode tabulated-list-mode "Efrit-Permissions"
  "Major mode that lists the permission rules of a session.
The first that fits decides.

\\{efrit-permissions-mode-map}"
  (setq tabulated-list-format [("For" 10 nil) ("Decision" 9 nil) ("What" 0 nil)]
        tabulated-list-padding 1)
  (add-hook 'tabulated-list-revert-hook #'efrit-ask--list-rules nil t)
  (tabulated-list-init-header))

;;;###autoload
(defun efrit-permissions (&optional loop)
  "List the permissions of LOOP, by default the session here, to revoke them.
They are those of the session, those of its project, and
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
  "Revoke the permission at point; what it was about is asked about again."
  (interactive nil efrit-permissions-mode)
  (efrit-check-mode 'efrit-permissions-mode)
  (pcase (tabulated-list-get-id)
    (`(session . ,rule)
     (setf (efrit-loop-rules efrit-loop-here) (remove rule (efrit-loop-rules efrit-loop-here))))
    (`(project . ,rule) (efrit-permissions-revoke (efrit-loop-root efrit-loop-here) rule))
    (`(option . ,_) (user-error "It is of `efrit-permission-rules'; change that, \
then M-x efrit-take-options"))
    (_ (user-error "No permission is here")))
  (revert-buffer))

(defun efrit-ask--list-rules ()
  "Have this buffer list the rules of its loop, in the order in which they count."
  (setq tabulated-list-entries
        (append (efrit-ask--rule-lines 'session (efrit-loop-rules efrit-loop-here))
                (efrit-ask--rule-lines 'project
                                       (efrit-permissions-of (efrit-loop-root efrit-loop-here)))
                (efrit-ask--rule-lines
                 'option (efrit-loop-option efrit-loop-here 'efrit-permission-rules)))))

(defun efrit-ask--rule-lines (scope rules)
  "Return RULES, which hold for SCOPE, as entries of a list."
  (mapcar (lambda (rule)
            (list (cons scope rule)
                  (vector (symbol-name scope) (symbol-name (nth 2 rule))
                          (efrit-permissions-visible (efrit-permissions-rule-text rule) t))))
          rules))

(defun efrit-ask-pending-use (loop)
  "Return the use in LOOP that waits for a permission, or signal a `user-error'."
  (or (efrit-run-pending-use loop)
      (user-error "Nothing waits for a permission")))

(defun efrit-ask--plan (use)
  "Return the plan of USE, or signal a `user-error'."
  (or (efrit-use-plan use)
      (user-error "%s does not say what it changes" (efrit-use-name use))))

(defun efrit-ask--decide (decision scope &optional reason grant)
  "Answer the first open permission here with DECISION, remembered for SCOPE.
REASON, a string or nil, goes to the model; GRANT is as in `efrit-run-answer'.
Who answered on the question goes to the next one, or to the reply box."
  (let* ((loop (efrit-ask--check-sight))
         (use (efrit-ask-pending-use loop))
         (there (and efrit-transcript-box (not (efrit-transcript-in-box-p)))))
    (efrit-ask--check-read)
    (when (and scope (eq decision 'allow))
      (efrit-ask--check-grant loop use (or grant 'exactly)))
    (efrit-run-answer loop use decision scope reason grant)
    (setq efrit-ask--last-answer-time (float-time))
    (when there
      (goto-char (or (efrit-ask-position) (point-max))))))

(defun efrit-ask--check-grant (loop use grant)
  "Signal a `user-error' unless USE in LOOP can be allowed by GRANT for longer."
  (unless (assq grant (efrit-run-grants loop use))
    (user-error (if (efrit-run-grants loop use)
                    "There is no such permission for this; see the buttons below it"
                  "This is asked about each time; allow it once, or not"))))

(defun efrit-ask--check-sight ()
  "Return the loop here, where the person sees what it asks.
Show the question otherwise, from its first line on, and signal a `user-error'."
  (let* ((loop (efrit-loop-current))
         (use (efrit-ask-pending-use loop)))
    (unless (efrit-ask--in-sight-p loop use)
      (efrit-ask--show loop use)
      (user-error "Review the question, then repeat the command"))
    loop))

(defun efrit-ask--in-sight-p (loop use)
  "Return non-nil if the person sees what LOOP asks about USE.
Some of the question is in a window, and its first line is, or was shown."
  (if noninteractive
      (efrit-loop-visible-p loop)
    (seq-some
     (lambda (window)
       (with-current-buffer (window-buffer window)
         (and (efrit-ask--of-session-p loop)
              (when-let* ((first (efrit-ask-position)))
                (if (eq use efrit-ask--reviewed-use)
                    (efrit-ask--any-displayed-p first window)
                  (pos-visible-in-window-p first window))))))
     (efrit-loop-visible-windows))))

(defun efrit-ask--any-displayed-p (first window)
  "Return non-nil if a line of the question that begins at FIRST is in WINDOW."
  (let ((last (1- (next-single-property-change first 'efrit-question nil (point-max)))))
    (and (<= first (window-end window t))
         (>= last (window-start window)))))

(defun efrit-ask--show (loop use)
  "Show what LOOP asks about USE, from its first line on."
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
  "Return non-nil if this buffer is the session's of LOOP, where it asks.
Lists of what belongs to LOOP have it in `efrit-loop-here', too."
  (and (eq loop efrit-loop-here) efrit-transcript-end))

(defun efrit-ask--check-read ()
  "Signal a `user-error' where a key comes before a new question can be read.
It may have been meant for the one before."
  (when (and efrit-ask--last-answer-time
             this-command
             (where-is-internal this-command (list efrit-ask-permission-map) t)
             (< (- (float-time) efrit-ask--last-answer-time) efrit-ask--least-interval))
    (user-error "This question is new: review it, then repeat the command")))

(defun efrit-ask--permission (loop)
  "Return the text that asks for the first open permission of LOOP."
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
  "Return those of `efrit-ask--plan-answers' that there are for USE."
  (when-let* ((plan (efrit-use-plan use)))
    (seq-filter (lambda (answer)
                  (or (not (eq (nth 2 answer) 'efrit-revise))
                      (efrit-plan-revisable plan)))
                efrit-ask--plan-answers)))

(defun efrit-ask--lasting-buttons (loop use)
  "Return the buttons that answer for longer what LOOP asks about USE."
  (let ((grants (efrit-run-grants loop use)))
    (append
     (cl-loop for (key grant scope command) in efrit-ask--lasting-answers
              for words = (nth 2 (assq grant grants))
              when words
              collect (efrit-ask--button
                       key (format "%s, %s" words (efrit-ask--scope-text scope words))
                       command))
     (list (efrit-ask--button
            "N" (format "never %s, this session" (cadr (efrit-run-refusal loop use)))
            #'efrit-deny-for-session)))))

(defun efrit-ask--scope-text (scope words)
  "Return what SCOPE is called behind WORDS."
  (cond ((eq scope 'session) "this session")
        ((string-search "this project" words) "from now on")
        (t "from now on in this project")))

(defun efrit-ask--help-text (lines)
  "Return how a question about LINES lines is answered from the reply box."
  (propertize
   (concat "  C-c C-y once · C-c C-d no · C-c C-a "
           (if (> lines efrit-ask--short-lines)
               (format "goes to the first of its %d lines\n" lines)
             "goes there, for these keys\n"))
   'face 'efrit-note))

(defun efrit-ask--fontified-diff (diff)
  "Return DIFF with faces; what it was given last is remembered."
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
  "Return the text of QUESTION, the model's, with OPTIONS to choose from."
  (propertize
   (concat (propertize (concat "The model asks:\n" (efrit-permissions-visible question))
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
  (efrit-ask--button (number-to-string number) (efrit-permissions-visible option t)
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
  (let ((name (efrit-permissions-visible (substring (symbol-name name) 1) t))
        (text (efrit-permissions-visible (if (stringp value) value (efrit-ask--json value)))))
    (if (string-search "\n" text)
        (concat name ":\n" text)
      (concat name ": " text))))

(defun efrit-ask--json (value)
  "Return VALUE, as `efrit-json-plist' gives it, as JSON text."
  (cond ((eq value t) "yes")
        ((null value) "no")
        (t (decode-coding-string (efrit-json-write value) 'utf-8))))

(defun efrit-ask--block (text &optional face)
  "Return TEXT in FACE, or as it is, each line behind a bar."
  (mapconcat (lambda (line)
               (concat (propertize "  │ " 'face 'efrit-note)
                       (if face (propertize line 'face face) line)))
             (split-string text "\n") "\n"))

;;; Changing an edit before it is allowed

;; Where the model asks to change a file, the person may edit the new text
;; in a buffer first, and so allow it.  The model is told the difference.

(defvar-local efrit-revise--use nil
  "The use whose new text this buffer holds.")

(defvar-local efrit-revise--change nil
  "The change whose new text this buffer holds.")

;; The person may choose another major mode for the text.
(dolist (variable '(efrit-revise--use efrit-revise--change efrit-revise-mode))
  (put variable 'permanent-local t))

(defvar efrit-revise-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'efrit-revise-accept)
    (define-key map (kbd "C-c C-k") #'efrit-revise-drop)
    map)
  "Keys of `efrit-revise-mode'.")

(define-minor-mode efrit-revise-mode
  "Edit what the model would write.
\\{efrit-revise-mode-map}"
  :lighter " Revise")

;;;; Commands

;;;###autoload
(defun efrit-revise ()
  "Edit the new text of what the model asks to change, and so allow it."
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
             "What the file will hold: \\[efrit-revise-accept] allows it, \
\\[efrit-revise-drop] goes back to the question")))
    (pop-to-buffer buffer)))

(defun efrit-revise-accept ()
  "Allow the change, with the text of this buffer as the new one."
  (interactive)
  (let ((use efrit-revise--use)
        (loop efrit-loop-here))
    (unless (eq (efrit-use-state use) 'asking)
      (user-error "This edit is no longer pending"))
    (efrit-plan-revise (efrit-use-plan use) efrit-revise--change (buffer-string))
    (quit-window t)
    (efrit-run-answer loop use 'allow)))

(defun efrit-revise-drop ()
  "Go back to the question; nothing is changed."
  (interactive)
  (quit-window t))

(defun efrit-revise--choose (use)
  "Return the change of USE whose new text is edited; ask if there are several."
  (let* ((plan (or (efrit-use-plan use)
                   (user-error "%s has no new text" (efrit-use-name use))))
         (changes (efrit-plan-revisable plan))
         (paths (mapcar #'efrit-change-path changes)))
    (cond ((null changes) (user-error "%s has no new text" (efrit-use-name use)))
          ((null (cdr changes)) (car changes))
          (t (nth (seq-position paths (completing-read "Edit the new text of: " paths nil t))
                  changes)))))

(defun efrit-revise--set-mode (file)
  "Use the major mode of FILE, without what else is done for a file's buffer."
  (let ((buffer-file-name file)
        (enable-local-variables nil))
    (delay-mode-hooks
      (ignore-errors (set-auto-mode)))
    (font-lock-mode)))

(provide 'efrit-ask)
;;; efrit-ask.el ends here
