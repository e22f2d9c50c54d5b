;;; efrit-ask.el --- Questions to the person  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Writes the text of questions for the session's buffer and takes the answers;
;; lists permission rules; lets the person change an edit before allowing it.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-status)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'tabulated-list)

;;; Questions

;; A question stands in the live part of its session's buffer until the person
;; answers it: by a key on the question, a button, a command, or, if the model
;; asks, by a text in the reply box.  A new question opens no prompt, and moves
;; neither windows nor point, so that it does not interrupt typing.

(defvar-local efrit-ask--question nil
  "The model's open question: (`efrit-tool-call' QUESTION OPTIONS), or nil.")

(defvar-local efrit-ask--last-answer-time nil
  "Time in seconds of the last answer to a question for permission, or nil.
Bringing a question or its further answers in sight counts as an answer.")

(defvar-local efrit-ask--reviewed-use nil
  "The `efrit-use' whose question was in sight from its first line, or nil.")

(defconst efrit-ask--least-interval 0.7
  "Seconds after an answer in which a key cannot answer the next question.")

(defconst efrit-ask--short-lines 6
  "Most lines of the arguments of a question that fits any window.")

(defconst efrit-ask--most-diff-lines 15
  "Most lines of a diff that a question shows; `efrit-show-diff' shows the rest.")

(defconst efrit-ask--lines-besides-diff 9
  "Lines of a window that a question takes besides those of its diff.")

(defconst efrit-ask--default-columns 80
  "Columns for which questions are laid out in a buffer that is in no window.")

(defvar-local efrit-ask--layout nil
  "The layout of the question in this buffer, see `efrit-ask--layout'.")

(defvar efrit-ask--with-more (make-hash-table :test #'eq :weakness 'key)
  "The loops whose questions show all answers: a hash table from loops to t.")

(defvar efrit-ask--last-diff nil
  "The diff that was fontified last, consed to the same diff with faces, or nil.")

(defconst efrit-ask--answers
  '(("y" "once" efrit-allow-once)
    ("n" "no" efrit-deny-once)
    ("r" "no, because..." efrit-deny-with-reason))
  "Answers that decide about one tool call: lists of key, label and command.")

(defconst efrit-ask--plan-answers
  '(("e" "edit it first" efrit-revise)
    ("d" "diff in a window" efrit-show-diff))
  "Actions on a plan besides answers: lists of key, label and command.")

(defconst efrit-ask--lasting-answers
  '(("s" exactly session efrit-allow-for-session)
    ("a" alike session efrit-allow-alike-for-session)
    ("p" exactly project efrit-allow-for-project)
    ("A" alike project efrit-allow-alike-for-project))
  "Answers that add a permission rule: lists of key, grant, scope and command.
A grant is `exactly' or `alike', as in `efrit-run-grants'.")

(defvar efrit-ask-permission-map
  (let ((map (make-sparse-keymap)))
    (define-key map "N" #'efrit-deny-for-session)
    (define-key map "m" #'efrit-more-answers)
    (pcase-dolist (`(,key ,_ ,_ ,command) efrit-ask--lasting-answers)
      (define-key map key command))
    (pcase-dolist (`(,key ,_ ,command) (append efrit-ask--answers efrit-ask--plan-answers))
      (define-key map key command))
    map)
  "Keys on the question for a permission.")

(defvar efrit-ask-guard-map
  (efrit-make-keymap '(("y" efrit-allow-once)
                       ("d" efrit-ask-again-later)
                       ("n" efrit-deny-once)))
  "Keys on the question whether to go on.")

(defvar efrit-ask-options-map
  (let ((map (make-sparse-keymap)))
    (dotimes (index 9)
      (define-key map (number-to-string (1+ index)) #'efrit-choose-option))
    map)
  "Keys on a question of the model that has options.")

(defun efrit-ask-open-p ()
  "Return non-nil if the model's question in this buffer waits for an answer."
  (and efrit-ask--question
       (efrit-tool-call-finish (car efrit-ask--question))
       t))

(defun efrit-ask-text (loop)
  "Return the text of LOOP's question, or nil.
It asks for permission, whether to go on, or what the model wants to know."
  (setq efrit-ask--layout (efrit-ask--layout))
  (cond ((efrit-run-pending-use loop) (efrit-ask--permission loop))
        ((efrit-ask--guard loop) (efrit-ask--guard-text (efrit-ask--guard loop)))
        ((efrit-ask-open-p) (apply #'efrit-ask--question-text (cdr efrit-ask--question)))))

(defun efrit-ask-answer (text)
  "Answer the model's question in this buffer with TEXT, and close the question.
The number of an option stands for that option."
  (pcase-let* ((`(,call ,_ ,options) efrit-ask--question)
               (numbered (and (string-match-p "\\`[1-9]\\'" text)
                              (not (member text options))
                              (nth (1- (string-to-number text)) options)))
               (answer (or numbered text)))
    (setq efrit-ask--question nil)
    (efrit-tool-finish call (efrit-tool-result answer :gist answer :said t))))

(defun efrit-ask-open (call question options)
  "Remember QUESTION, with OPTIONS, of CALL as the open one of this buffer.
`efrit-live-refresh' displays it."
  (setq efrit-ask--question (list call question options)))

(defun efrit-ask-close ()
  "Forget the model's question in this buffer, without an answer."
  (setq efrit-ask--question nil))

(defun efrit-ask-position ()
  "Return the position where the question in this buffer begins, or nil."
  (text-property-any efrit-transcript-end efrit-transcript-live-end 'efrit-question t))

(defun efrit-ask-arguments-text (use)
  "Return the diff of the plan of USE, or without a plan all its arguments."
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
  "Allow the pending tool call this once, without storing a rule.
If the session asks whether to go on, have it go on."
  (interactive)
  (let ((loop (efrit-loop-current)))
    (if (efrit-ask--guard loop)
        (progn (efrit-ask--check-guard loop)
               (efrit-continue-unasked loop))
      (efrit-ask--decide 'allow nil))))

(defun efrit-ask-again-later ()
  "Have the session go on, and ask again at double of what it asks about."
  (interactive)
  (let ((loop (efrit-loop-current)))
    (efrit-ask--check-guard loop)
    (efrit-continue loop)))

;;;###autoload
(defun efrit-allow-for-session ()
  "Allow exactly the pending tool call for the rest of the session.
The command's button describes the rule; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session))

;;;###autoload
(defun efrit-allow-for-project ()
  "Allow exactly the pending tool call in this project from now on.
The command's button describes the rule; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project))

;;;###autoload
(defun efrit-allow-alike-for-session ()
  "Allow each call like the pending tool call for the rest of the session.
The command's button describes the rule; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'session nil 'alike))

;;;###autoload
(defun efrit-allow-alike-for-project ()
  "Allow each call like the pending tool call in this project from now on.
The command's button describes the rule; `efrit-permissions' revokes it."
  (interactive)
  (efrit-ask--decide 'allow 'project nil 'alike))

;;;###autoload
(defun efrit-deny-once ()
  "Deny the pending tool call this once, without storing a rule.
If the session asks whether to go on, stop it."
  (interactive)
  (let ((loop (efrit-loop-current)))
    (if (efrit-ask--guard loop)
        (progn (efrit-ask--check-guard loop)
               (efrit-stop loop))
      (efrit-ask--decide 'deny nil))))

;;;###autoload
(defun efrit-deny-for-session ()
  "Deny exactly the pending tool call for the rest of the session."
  (interactive)
  (efrit-ask--decide 'deny 'session))

;;;###autoload
(defun efrit-deny-with-reason (reason)
  "Deny the pending tool call once, and send the model the REASON, a string."
  (interactive (list (progn (efrit-ask--check-sight)
                            (read-string "Not allowed, because: "))))
  (efrit-ask--decide 'deny nil (and (not (string-blank-p reason)) reason)))

(defun efrit-more-answers ()
  "Show the further answers to the questions of this session, or hide them."
  (interactive)
  (let ((loop (efrit-loop-current))
        (on-question (get-text-property (point) 'efrit-question)))
    (efrit-ask-pending-use loop)
    (efrit-ask--show-more loop (not (gethash loop efrit-ask--with-more)))
    ;; The lines that came below may be out of sight.
    (when on-question
      (efrit-ask-go))))

(defun efrit-show-diff ()
  "Show the diff of the pending tool call in another window."
  (interactive)
  (efrit-diff-show
   (efrit-permissions-visible
    (let ((use (efrit-ask-pending-use (efrit-loop-current))))
      (efrit-plan-text (or (efrit-use-plan use)
                           (user-error "%s has no diff to show" (efrit-use-name use))))))))

(defun efrit-choose-option (&optional number)
  "Answer the model's question by option NUMBER, by default the digit typed."
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
Single keys answer the question there.  Scroll to show more of a long one.
Where a key is missing, go to the ways on without one."
  (interactive)
  (goto-char (or (efrit-ask-position)
                 (text-property-any efrit-transcript-end efrit-transcript-live-end
                                    'efrit-way t)
                 (user-error "No question is open in this session")))
  (setq efrit-ask--reviewed-use (efrit-run-pending-use efrit-loop-here))
  (when (and (eq (window-buffer) (current-buffer))
             (not noninteractive)
             (not (pos-visible-in-window-p (point-max))))
    (recenter 0)))

;;;; The list of permission rules

(defvar efrit-permissions-mode-map
  (efrit-make-keymap '(("d" efrit-permissions-revoke-here)))
  "Keys of `efrit-permissions-mode'.")

(define-derived-mode efrit-permissions-mode tabulated-list-mode "Efrit-Permissions"
  "Major mode that lists the permission rules of a session.
The first rule that matches decides.

\\{efrit-permissions-mode-map}"
  (efrit-keep-keys)
  (setq tabulated-list-format [("For" 10 nil) ("Decision" 9 nil) ("What" 0 nil)]
        tabulated-list-padding 1)
  (efrit-list-set-up '(("d" "revoke the rule here") ("g" "refresh") ("q" "close") ("?" "help")))
  (add-hook 'tabulated-list-revert-hook #'efrit-ask--list-rules nil t)
  (tabulated-list-init-header))

;;;###autoload
(defun efrit-permissions (&optional loop)
  "List the permission rules of LOOP, by default of the session here.
Rules come from the session, from its project, and from the option
`efrit-permission-rules'."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (pop-to-buffer (format "*efrit permissions: %s*" (efrit-loop-id loop)))
    (efrit-permissions-mode)
    (setq efrit-loop-here loop)
    (efrit-ask--list-rules)
    (efrit-list-print)))

(defun efrit-permissions-revoke-here ()
  "Revoke the rule at point."
  (interactive nil efrit-permissions-mode)
  (efrit-check-mode 'efrit-permissions-mode)
  (pcase (tabulated-list-get-id)
    (`(session . ,rule)
     (setf (efrit-loop-rules efrit-loop-here) (remove rule (efrit-loop-rules efrit-loop-here))))
    (`(project . ,rule) (efrit-permissions-revoke (efrit-loop-root efrit-loop-here) rule))
    (`(option . ,_) (user-error "This rule is in `efrit-permission-rules'; change the option, \
then M-x efrit-take-options"))
    (_ (user-error "No rule on this line")))
  (revert-buffer))

(defun efrit-ask--list-rules ()
  "Fill this buffer's list with the loop's rules, in the order they are tried."
  (setq tabulated-list-entries
        (append (efrit-ask--rule-lines 'session (efrit-loop-rules efrit-loop-here))
                (efrit-ask--rule-lines 'project
                                       (efrit-permissions-of (efrit-loop-root efrit-loop-here)))
                (efrit-ask--rule-lines
                 'option (efrit-loop-option efrit-loop-here 'efrit-permission-rules)))))

(defun efrit-ask--rule-lines (scope rules)
  "Return list entries for RULES of SCOPE: `session', `project' or `option'."
  (mapcar (lambda (rule)
            (list (cons scope rule)
                  (vector (propertize (symbol-name scope) 'face 'efrit-figures)
                          (propertize (symbol-name (nth 2 rule))
                                      'face (if (eq (nth 2 rule) 'deny) 'efrit-failed 'efrit-done))
                          (efrit-permissions-visible (efrit-permissions-rule-text rule) t))))
          rules))

(defun efrit-ask-pending-use (loop)
  "Return the use in LOOP that waits for permission, or signal a `user-error'."
  (or (efrit-run-pending-use loop)
      (user-error "No tool call is waiting for permission")))

(defun efrit-ask--decide (decision scope &optional reason grant)
  "Answer the pending question for permission with DECISION, `allow' or `deny'.
SCOPE, REASON and GRANT are as in `efrit-run-answer'.  If point was on the
question, move it to the next question, or to the reply box."
  (let* ((loop (efrit-ask--check-sight))
         (use (efrit-ask-pending-use loop))
         (on-question (and efrit-transcript-box (not (efrit-transcript-in-box-p)))))
    (efrit-ask--check-read)
    (when (and scope (eq decision 'allow))
      (efrit-ask--check-grant loop use (or grant 'exactly)))
    (when (and scope (not (gethash loop efrit-ask--with-more)))
      (efrit-ask--show-more loop t)
      (setq efrit-ask--last-answer-time (float-time))
      (user-error "Review what this answer is for, then repeat the command"))
    (efrit-run-answer loop use decision scope reason grant)
    (setq efrit-ask--last-answer-time (float-time))
    (when on-question
      (goto-char (or (efrit-ask-position) (point-max))))))

(defun efrit-ask--check-grant (loop use grant)
  "Signal a `user-error' unless GRANT is a choice in LOOP's question about USE."
  (unless (assq grant (efrit-run-grants loop use))
    (user-error (if (efrit-run-grants loop use)
                    "This permission is not offered here; see the buttons of the question"
                  "This is asked each time; allow or deny it once"))))

(defun efrit-ask--show-more (loop more)
  "Show all answers to the questions of LOOP; if MORE is nil, only the first."
  (if more
      (puthash loop t efrit-ask--with-more)
    (remhash loop efrit-ask--with-more))
  (efrit-loop-notify loop 'answers))

(defun efrit-ask--check-sight ()
  "Return the current loop if the person can see its question for permission.
Else bring the question in sight, and signal a `user-error'."
  (let* ((loop (efrit-loop-current))
         (use (efrit-ask-pending-use loop)))
    (efrit-ask--require-sight loop use)
    loop))

(defun efrit-ask--check-guard (loop)
  "Signal a `user-error' unless the person has read whether LOOP is to go on."
  (efrit-ask--require-sight loop 'guard)
  (efrit-ask--check-read))

(defun efrit-ask--require-sight (loop use)
  "Signal a `user-error' unless the person can see the question of LOOP about USE.
USE is as in `efrit-ask--in-sight-p'.  Bring the question in sight then."
  (unless (efrit-ask--in-sight-p loop use)
    (efrit-ask--bring-in-sight loop use)
    (user-error "Review the question, then repeat the command")))

(defun efrit-ask--in-sight-p (loop use)
  "Return non-nil if the person can see the question of LOOP about USE.
If LOOP asks whether to go on, USE is `guard'.
A window must show the first line, or any line once the first was reviewed."
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

(defun efrit-ask--bring-in-sight (loop use)
  "Bring the session's window of LOOP to the first line of the question about USE."
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
Checking `efrit-loop-here' is not enough: lists about LOOP have it, too."
  (and (eq loop efrit-loop-here) efrit-transcript-end))

(defun efrit-ask--check-read ()
  "Signal a `user-error' if an answering key comes too soon after an answer.
The person may have meant that key for the question before."
  (when (and efrit-ask--last-answer-time
             this-command
             (or (where-is-internal this-command (list efrit-ask-permission-map) t)
                 (where-is-internal this-command (list efrit-ask-guard-map) t))
             (< (- (float-time) efrit-ask--last-answer-time) efrit-ask--least-interval))
    (user-error "This question is new: review it, then repeat the command")))

(defun efrit-ask--permission (loop)
  "Return the text of the first question for permission of LOOP, with its keys.
What is asked about comes first; the title stands beside the answers, so that
both are in sight together."
  (let* ((asking (seq-filter (lambda (use) (eq (efrit-use-state use) 'asking))
                             (efrit-loop-run loop)))
         (use (car asking))
         (body (efrit-ask--body use)))
    (propertize
     (concat body
             (propertize (efrit-ask--title use (length asking)) 'face 'efrit-question)
             "\n"
             (and (efrit-use-guard use)
                  (propertize (format "  %s  This is asked about each time.\n"
                                      (efrit-permissions-visible (efrit-use-guard use) t))
                              'face 'efrit-note 'wrap-prefix "  "))
             (efrit-ask--answer-lines loop use)
             (if (efrit-ask--low-p) "" (efrit-ask--help-text (length (split-string body "\n" t)))))
     'keymap efrit-ask-permission-map
     'efrit-question t)))

(defun efrit-ask--body (use)
  "Return what USE would do, as lines: a part of its diff, or all its arguments."
  (if (efrit-use-plan use)
      (efrit-ask--diff-part (efrit-plan-text (efrit-use-plan use))
                            ;; What is asked about each time is shown whole.
                            (if (efrit-use-guard use) most-positive-fixnum
                              (efrit-ask--diff-lines)))
    (let* ((arguments (ignore-errors (efrit-json-plist (efrit-use-arguments use))))
           (main (efrit-show-main-argument use)))
      (if (null main)
          (efrit-ask--block (efrit-ask-arguments-text use) 'efrit-question-body)
        (concat (efrit-ask--block (efrit-permissions-visible
                                   (efrit-ask--value-text (plist-get arguments main)))
                                  'efrit-question-body)
                (cl-loop for (name value) on arguments by #'cddr
                         unless (eq name main)
                         concat (propertize
                                 (format "  %s: %s\n" (substring (symbol-name name) 1)
                                         (efrit-permissions-visible
                                          (efrit-ask--value-text value) t))
                                 'face 'efrit-figures 'wrap-prefix "    ")))))))

(defun efrit-ask--diff-part (diff most)
  "Return at most MOST lines of DIFF for a question, and where to see the rest.
The names of a single file are left out, since the title has them, and of a
longer diff first lines that do not change."
  (let* ((bare (if (and (string-match "\\`--- .*\n\\+\\+\\+ .*\n" diff)
                        (not (string-match-p "^--- .*\n\\+\\+\\+ " diff (match-end 0))))
                   (substring diff (match-end 0))
                 diff))
         (lines (split-string (string-remove-suffix "\n" bare) "\n"))
         (shown (seq-take (if (> (length lines) most) (efrit-ask--near-changes lines) lines)
                          most))
         (width (if (= most most-positive-fixnum) most (* 2 (car (efrit-ask--size)))))
         (cut (seq-count (lambda (line) (> (string-width line) width)) shown))
         (rest (- (length lines) (length shown))))
    (concat
     (efrit-ask--block
      (efrit-ask--fontified-diff
       (mapconcat (lambda (line) (truncate-string-to-width line width nil nil "…"))
                  shown "\n")))
     (when (or (> rest 0) (> cut 0))
       (concat (propertize
                (concat "  … "
                        (string-join
                         (delq nil (list (and (> rest 0)
                                              (concat (efrit-count-text rest "more line")))
                                         (and (> cut 0)
                                              (concat (efrit-count-text cut "line") " cut"))))
                         ", ")
                        "  ")
                'face 'efrit-note)
               (efrit-ask--button "d" "show the whole diff" #'efrit-show-diff)
               "\n")))))

(defun efrit-ask--near-changes (lines)
  "Return those of LINES, of a diff, that change or stand beside a change."
  (cl-loop for (before line after) on (cons "" lines)
           while line
           unless (and (string-prefix-p " " line)
                       (not (string-match-p "\\`[-+]" before))
                       (not (string-match-p "\\`[-+]" (or after ""))))
           collect line))

(defun efrit-ask--answer-lines (loop use)
  "Return lines with the answers to the question of LOOP about USE.
Besides the first ones only \"more\" is shown, unless the person asked for more."
  (let ((more (gethash loop efrit-ask--with-more)))
    (concat
     (efrit-ask--flow
      (append (efrit-ask--buttons efrit-ask--answers)
              (list (efrit-ask--button "m" (if more "fewer" "more") #'efrit-more-answers))))
     (when more
       (concat
        (when-let* ((actions (efrit-ask--plan-actions use)))
          (efrit-ask--flow (efrit-ask--buttons actions)))
        (mapconcat (lambda (button) (efrit-ask--flow (list button)))
                   (efrit-ask--lasting-buttons loop use) ""))))))

(defun efrit-ask--buttons (answers)
  "Return buttons for ANSWERS, lists of key, label and command."
  (mapcar (lambda (answer) (apply #'efrit-ask--button answer)) answers))

(defun efrit-ask--guard (loop)
  "Return the guard for which LOOP asks whether to go on, or nil."
  (and (eq (efrit-loop-state loop) 'limited)
       (efrit-loop-guard loop)))

(defun efrit-ask--guard-text (guard)
  "Return the question whether to go on, since GUARD was reached, with its keys."
  (propertize
   (concat (propertize (concat (efrit-show-guard guard) "  Go on?") 'face 'efrit-question)
           "\n"
           (efrit-ask--flow
            (list (efrit-ask--button "y" "go on" #'efrit-allow-once)
                  (efrit-ask--button
                   "d" (format "go on, ask again at %s"
                               (efrit-show-amount (car guard) (efrit-loop-next-limit guard)))
                   #'efrit-ask-again-later)
                  (efrit-ask--button "n" "stop" #'efrit-deny-once)))
           (propertize (efrit-ask--flow '("C-c C-y goes on" "C-c C-d stops" "nothing is lost") " · ")
                       'face 'efrit-note))
   'keymap efrit-ask-guard-map
   'efrit-question t))

(defun efrit-ask--plan-actions (use)
  "Return the entries of `efrit-ask--plan-answers' that apply to USE."
  (when-let* ((plan (efrit-use-plan use)))
    (seq-filter (lambda (answer)
                  (or (not (eq (nth 2 answer) 'efrit-revise))
                      (efrit-plan-revisable plan)))
                efrit-ask--plan-answers)))

(defun efrit-ask--lasting-buttons (loop use)
  "Return the buttons that answer the question of LOOP about USE by a new rule."
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
  "Return the reply box's keys for a question about LINES lines."
  (propertize
   (efrit-ask--flow
    (list "C-c C-y once" "C-c C-d no"
          (if (> lines efrit-ask--short-lines)
              (format "C-c C-a goes to the first of its %d lines" lines)
            "C-c C-a goes to the question"))
    " · ")
   'face 'efrit-note))

(defun efrit-ask--fontified-diff (diff)
  "Return DIFF, without its last newline, with faces and visible characters.
Cache the last result."
  (let ((shown (efrit-permissions-visible diff)))
    (unless (equal shown (car efrit-ask--last-diff))
      ;; Without a newline a last line gets no face.
      (let ((faced (efrit-diff-fontify (concat shown "\n"))))
        (setq efrit-ask--last-diff (cons shown (substring faced 0 -1)))))
    (cdr efrit-ask--last-diff)))

(defun efrit-ask--title (use count)
  "Return the title of the question about USE, the first of COUNT open ones.
Several changes have a line each."
  (let ((changes (and (efrit-use-plan use) (efrit-plan-change-lines (efrit-use-plan use))))
        (of (if (> count 1) (format "  (the first of %d)" count) "")))
    (if (cdr changes)
        (concat (format "Make these %d changes?%s" (length changes) of)
                (mapconcat (lambda (line) (concat "\n  " (efrit-permissions-visible line t)))
                           changes ""))
      (concat (efrit-permissions-visible (efrit-show-question-title use) t) of))))

(defun efrit-ask--question-text (question options)
  "Return the text of the model's QUESTION, with a button for each of OPTIONS."
  (propertize
   (concat (propertize (concat "The model asks:\n" (efrit-permissions-visible question))
                       'face 'efrit-question)
           "\n"
           (when options
             (efrit-ask--flow
              (cl-loop for option in options
                       for number from 1
                       collect (efrit-ask--button
                                (number-to-string number)
                                (efrit-permissions-visible option t)
                                (let ((number number))
                                  (lambda () (interactive) (efrit-choose-option number)))))))
           (propertize (if options "  or answer in the reply box, by a number or in words\n"
                         "  Answer in the reply box.\n")
                       'face 'efrit-note))
   'keymap efrit-ask-options-map
   'efrit-question t))

;;;; Layout

(defun efrit-ask-fits-p ()
  "Return non-nil if the question in this buffer is laid out for its windows."
  (equal efrit-ask--layout (efrit-ask--layout)))

(defun efrit-ask--layout ()
  "Return what questions here have room for: columns, lines of a diff, and help."
  (list (car (efrit-ask--size)) (efrit-ask--diff-lines) (not (efrit-ask--low-p))))

(defun efrit-ask--low-p ()
  "Return non-nil if this buffer's window is too low for the keys of the reply box.
The title and the answers have its last lines then."
  (< (cdr (efrit-ask--size)) efrit-ask--lines-besides-diff))

(defun efrit-ask--size ()
  "Return the columns and lines of the smallest window of this buffer, as a cons."
  (efrit-smallest-window efrit-ask--default-columns most-positive-fixnum))

(defun efrit-ask--diff-lines ()
  "Return the most lines of a diff to show in a question in this buffer."
  (min efrit-ask--most-diff-lines
       (max 3 (- (cdr (efrit-ask--size)) efrit-ask--lines-besides-diff))))

(defun efrit-ask--flow (parts &optional between)
  "Return PARTS as one indented line, joined by BETWEEN, by default three blanks.
If this buffer's windows are too narrow for it, return a line for each part."
  (let ((line (concat "  " (string-join parts (or between "   ")))))
    (if (<= (string-width line) (car (efrit-ask--size)))
        (concat line "\n")
      (mapconcat (lambda (part) (concat "  " (propertize part 'wrap-prefix "      ") "\n"))
                 parts ""))))

(defun efrit-ask--button (key label command)
  "Return a button with the text \"[KEY] LABEL\" for COMMAND."
  (efrit-ask-button (concat (propertize (format "[%s]" key) 'face 'efrit-key)
                            (propertize (concat " " label) 'face 'default))
                    command))

(defun efrit-ask-button (label command)
  "Return a button with the text LABEL for COMMAND.
It has the face `efrit-key' unless LABEL has faces of its own."
  (let ((label (copy-sequence label)))
    (unless (get-text-property 0 'face label)
      (put-text-property 0 (length label) 'face 'efrit-key label))
    (make-text-button label nil
                      'action (lambda (_) (call-interactively command)))))

(defun efrit-ask--argument (name value)
  "Return argument NAME with its whole VALUE, below NAME if it has several lines."
  (let ((text (efrit-permissions-visible (efrit-ask--value-text value))))
    (concat (efrit-permissions-visible (substring (symbol-name name) 1) t)
            (if (string-search "\n" text) ":\n" ": ")
            text)))

(defun efrit-ask--value-text (value)
  "Return VALUE, an argument of a tool, as text."
  (cond ((stringp value) value)
        ((eq value t) "yes")
        ((null value) "no")
        (t (decode-coding-string (efrit-json-write value) 'utf-8))))

(defun efrit-ask--block (text &optional face)
  "Return TEXT in FACE, if non-nil, as lines with a bar before each.
The background of a line's last character goes on to the window's edge."
  (let ((bar (propertize "  │ " 'face 'efrit-note)))
    (mapconcat
     (lambda (line)
       (let* ((line (if face (propertize line 'face face) line))
              (last (and (> (length line) 0)
                         (get-text-property (1- (length line)) 'face line))))
         (propertize (concat bar line (if last (propertize "\n" 'face last) "\n"))
                     'wrap-prefix bar)))
     (split-string text "\n") "")))

;;; Changing an edit before it is allowed

;; Before allowing a change of a file, the person may edit the file's new text
;; in a buffer.  The model then gets a diff of what the person changed.

(defvar-local efrit-revise--use nil
  "The `efrit-use' for whose plan the person edits this buffer.")

(defvar-local efrit-revise--change nil
  "The `efrit-change' whose new text is in this buffer.")

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
  "Edit the new text of the pending change in a buffer, then allow the change."
  (interactive)
  (let* ((loop (efrit-ask--check-sight))
         (use (efrit-ask-pending-use loop))
         (change (efrit-revise--choose use))
         (buffer (generate-new-buffer (format "*efrit new text: %s*"
                                              (efrit-change-path change)))))
    (with-current-buffer buffer
      (insert (efrit-change-after change))
      (goto-char (+ (point-min) (efrit-change-start change)))
      (efrit-revise--set-mode (efrit-change-file change))
      (setq efrit-loop-here loop
            efrit-revise--use use
            efrit-revise--change change)
      (efrit-revise-mode)
      (setq header-line-format
            (substitute-command-keys
             "New text of the file: \\[efrit-revise-accept] allows it, \
\\[efrit-revise-drop] goes back to the question")))
    (pop-to-buffer buffer)
    (unless noninteractive
      (recenter))))

(defun efrit-revise-accept ()
  "Allow the pending tool call, with this buffer's text as the file's new text."
  (interactive)
  (let ((use efrit-revise--use)
        (loop efrit-loop-here))
    (unless (eq (efrit-use-state use) 'asking)
      (user-error "This edit is no longer pending"))
    (efrit-plan-revise (efrit-use-plan use) efrit-revise--change (buffer-string))
    (quit-window t)
    (efrit-run-answer loop use 'allow)))

(defun efrit-revise-drop ()
  "Kill this buffer without deciding; the question stays open."
  (interactive)
  (quit-window t))

(defun efrit-revise--choose (use)
  "Return the change in the plan of USE to revise; ask if there are several."
  (let* ((plan (efrit-use-plan use))
         (changes (and plan (efrit-plan-revisable plan)))
         (paths (mapcar #'efrit-change-path changes)))
    (cond ((null changes) (user-error "%s has no new text to edit" (efrit-use-name use)))
          ((null (cdr changes)) (car changes))
          (t (nth (seq-position paths (completing-read "Edit the new text of: " paths nil t))
                  changes)))))

(defun efrit-revise--set-mode (file)
  "Set this buffer's major mode as for FILE, without hooks and local variables.
A mode that is not for text might run a program on what the model wrote."
  (let ((buffer-file-name file)
        (enable-local-variables nil)
        (magic-mode-alist nil)
        (magic-fallback-mode-alist nil)
        (mode (assoc-default file auto-mode-alist #'string-match-p)))
    (delay-mode-hooks
      (if (or (null mode) (and (symbolp mode) (efrit-file-text-mode-p mode)))
          (ignore-errors (set-auto-mode))
        (text-mode)))
    (font-lock-mode)))

(provide 'efrit-ask)
;;; efrit-ask.el ends here
