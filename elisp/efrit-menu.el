;;; efrit-menu.el --- Choose settings of a session; the menu  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands that choose the model, its effort, the form of its thinking and the
;; limits of a session, and the menu of all commands.

;;; Code:

(require 'efrit)
(require 'efrit-ask)
(require 'efrit-backend)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-providers)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-transcript)
(require 'efrit-view)
(require 'transient)

;;; Choosing

;; A loop copies its options when it is made.  These commands change the copy
;; of one loop, from its next turn on, or the default for new sessions.

(defconst efrit-choose--efforts '("low" "medium" "high" "xhigh" "max")
  "The API's levels of effort.")

(defconst efrit-choose--limits
  '(("dollars" efrit-max-dollars "Dollars of a message before you are asked to go on")
    ("turns" efrit-max-turns "Turns after a message before you are asked to go on")
    ("minutes" efrit-max-minutes "Minutes after a message before you are asked to go on")
    ("tokens" efrit-max-tokens "Tokens of a message before you are asked, without a price")
    ("reply" efrit-claude-max-tokens "Tokens of the longest reply")
    ("total" efrit-budget-total-target "Tokens of the whole budget" :total)
    ("history" efrit-budget-history-max "Tokens of turns and shrunken results" :history)
    ("tool results" nil "Tokens of results in full" :tool_results)
    ("messages" nil "Tokens of your messages and their context" :user_message)
    ("reserve" nil "Tokens kept back for the reply" :response)
    ("tool call" efrit-budget-per-tool-default "Tokens that one tool call may deliver"
     :per_tool_default)
    ("warning" efrit-budget-warning-threshold "Remaining tokens below which the model is warned"
     :warning_threshold))
  "The limits of a session: lists of name, option, meaning, and key on the wire.
Those with a key are the sidecar's; one without an option has its default there.")

(defvar efrit-choose-model-history nil
  "Names of models that the person chose, latest first.")

(defun efrit-choose--loop (default)
  "Return the current loop, or nil if there is none, or if DEFAULT is non-nil.
Signal a `user-error' if several loops could be meant."
  (and (not default) (efrit-loops) (efrit-loop-current)))

(defun efrit-choose--set (loop option value text)
  "Have LOOP use VALUE for OPTION, and note TEXT, a sentence, in its transcript.
Without LOOP, make VALUE the default in this Emacs."
  (if loop (efrit-loop-choose loop option value)
    (customize-set-variable option value))
  (efrit-choose--tell loop text))

(defun efrit-choose--tell (loop text)
  "Note TEXT, a sentence about what was chosen, in the transcript of LOOP.
Without LOOP, say that it is for new sessions."
  (when loop
    (efrit-loop-notify loop 'note
                       (concat text (and (efrit-loop-chosen loop)
                                         (not (efrit-loop-resting-p loop))
                                         "  It holds from the next turn on."))))
  (message "%s%s" text (if loop ""
                         "  New sessions of this Emacs begin with it; \
M-x customize-save-customized keeps it for later ones")))

;;;; Models

(defun efrit-choose--offered (loop)
  "Return the models that LOOP can use, those of its provider first.
Each is a list of its label, its provider's name or nil, and a plist.  Without
LOOP, they are those that new sessions can use."
  (let* ((now (efrit-provider-of loop))
         (model (efrit-provider-value loop 'efrit-claude-model))
         (offered
          (mapcan (lambda (name)
                    (mapcar (lambda (listed)
                              (list (efrit-provider-label name (plist-get listed :name))
                                    name listed))
                            (efrit-provider-models loop name)))
                  (cons now (remove now (efrit-provider-usable))))))
    (if (assoc (efrit-provider-label now model) offered)
        offered
      (cons (list (efrit-provider-label now model) now (list :name model)) offered))))

(defconst efrit-choose--columns 79
  "Most columns of a model's line in a list of completions.")

(defconst efrit-choose--annotated 52
  "Columns of the longest annotation of a model.")

(defun efrit-choose--annotation (offered width now)
  "Return the annotation of OFFERED, as from `efrit-choose--offered'.
It begins behind WIDTH columns, if it can, and has as much as fits into a line.
NOW is the label of the model in use."
  (let* ((label (string-width (car offered)))
         (model (nth 2 offered))
         (prices (plist-get model :dollars))
         (text (make-string (max 0 (- width label)) ?\s)))
    (dolist (part (append (list (if (equal (car offered) now) "now" "   ")
                                (efrit-choose--window model))
                          (if prices
                              (cl-loop for (name kind) in '(("in" :input) ("out" :output)
                                                            ("cached" :cache_read))
                                       collect (format "%6s %s"
                                                       (format "$%.2f" (plist-get prices kind))
                                                       name))
                            '(" price not known"))))
      (when (<= (+ label (string-width text) 1 (string-width part)) efrit-choose--columns)
        (setq text (concat text " " part))))
    (propertize (efrit-trim-right text) 'face 'completions-annotations)))

(defun efrit-choose--window (model)
  "Return the window of MODEL, a plist, in twelve columns; ? if it is not known."
  (format "%5s window" (efrit-show-tokens (and (eq t (plist-get model :window_known))
                                               (plist-get model :window)))))

(defun efrit-choose--affixed (labels offered now)
  "Return LABELS with their annotations, for an `affixation-function'.
OFFERED and NOW are as in `efrit-choose--annotation', for all models."
  (let ((width (min (apply #'max 0 (mapcar #'string-width labels))
                    (- efrit-choose--columns efrit-choose--annotated))))
    (mapcar (lambda (label)
              (list label "" (efrit-choose--annotation (assoc label offered) width now)))
            labels)))

(defun efrit-choose--next-prompt-text (model)
  "Return a sentence about what the next prompt costs with MODEL, a plist, or nil.
It is nil if no prompt was sent yet, or if nothing has to be sent anew."
  (let* ((prompt (plist-get model :prompt))
         (dollars (plist-get prompt :dollars)))
    (when (eq (plist-get prompt :rewritten) t)
      (format "The prompt of ~%s tokens is sent anew%s."
              (efrit-show-tokens (plist-get prompt :tokens))
              (if dollars (format ", which costs $%.4f" dollars)
                "; its price is not known")))))

(defun efrit-choose--read-model (loop)
  "Read a model for LOOP, or for new sessions if LOOP is nil.
Return its label, or its name."
  (let* ((now (efrit-provider-label (efrit-provider-of loop)
                                    (efrit-provider-value loop 'efrit-claude-model)))
         (offered (efrit-choose--offered loop))
         (labels (delete-dups (mapcar #'car offered))))
    (completing-read
     (format "Model %s (now %s; prices for a million tokens): "
             (if loop "of this session" "of new sessions") now)
     (lambda (string predicate action)
       (if (eq action 'metadata)
           `(metadata (category . efrit-model)
                      (affixation-function
                       . ,(lambda (labels) (efrit-choose--affixed labels offered now)))
                      (display-sort-function . identity)
                      (cycle-sort-function . identity))
         (complete-with-action action labels string predicate)))
     nil 'confirm nil 'efrit-choose-model-history now)))

(defun efrit-choose--parse (loop text)
  "Return the provider's name and the model that TEXT, a label or a name, means.
The name is nil for an endpoint of LOOP that has none.  A model's name alone
keeps the provider, and so does one of its models that begins like a label.
Signal a `user-error' if a label names another provider, and that has no key."
  (let* ((now (efrit-provider-of loop))
         (name (and (string-match "\\`\\([^/]+\\)/." text)
                    (match-string 1 text)))
         (plist (and name (efrit-provider-plist name))))
    (cond ((or (null plist) (assoc text (plist-get (efrit-provider-plist now) :models)))
           (list now text))
          ((or (equal name now) (member name (efrit-provider-usable)))
           (list name (substring text (1+ (length name)))))
          ((null now) (list nil text))
          (t (user-error "The provider %s has no key: M-x efrit-add-provider adds it.  \
For a model of %s give %s/%s" name now now text)))))

;;;###autoload
(defun efrit-model (model &optional default)
  "Have the current session use MODEL from its next turn on.
MODEL is \"provider/model\", or the name of a model alone, of the provider in
use.  The prompt is then sent anew, since no other model has it cached; the
transcript says what that costs.  With a prefix argument, as DEFAULT, or
without a session, new sessions use MODEL."
  (interactive (list (efrit-for-a-person
                       (efrit-choose--read-model (efrit-choose--loop current-prefix-arg)))
                     current-prefix-arg))
  (when (string-blank-p model)
    (user-error "The model has no name"))
  (efrit-for-a-person
    (let ((loop (efrit-choose--loop default)))
      (apply #'efrit-choose-model loop (efrit-choose--parse loop model)))))

(defun efrit-choose-model (loop name model)
  "Have LOOP use MODEL of the provider NAME from its next turn on, and say so.
NAME is nil for an endpoint without a name.  Without LOOP, new sessions do."
  (let ((label (efrit-provider-label name model)))
    (if (and loop (efrit-provider-used-p loop name model))
        (message "The model is %s already" label)
      (let ((listed (efrit-provider-model loop name model)))
        (efrit-provider-use loop name model)
        (efrit-choose--tell
         loop (string-join
               (delq nil (list (format "The model is %s, %s." label
                                       (if (plist-get listed :dollars)
                                           (efrit-choose--short-price (plist-get listed :dollars))
                                         "whose price is not known"))
                               (and loop (efrit-choose--next-prompt-text listed))))
               "  "))))))

(defun efrit-choose--short-price (dollars)
  "Return DOLLARS, the plist of a model's prices, as short text."
  (format "at $%.2f in and $%.2f out for a million tokens"
          (plist-get dollars :input) (plist-get dollars :output)))

;;;; Effort and thinking

;;;###autoload
(defun efrit-effort (effort &optional default)
  "Have the current session ask for EFFORT from its next turn on.
EFFORT is a level of the API's, or nil for the API's default.  With a prefix
argument, as DEFAULT, or without a session, new sessions do."
  (interactive
   (let* ((loop (efrit-choose--loop current-prefix-arg))
          (chosen (efrit-choose--read-one "Effort" loop 'efrit-claude-effort
                                          (cons "the API's default" efrit-choose--efforts)
                                          "the API's default")))
     (list (and (member chosen efrit-choose--efforts) chosen) current-prefix-arg)))
  (let ((loop (efrit-choose--loop default)))
    (efrit-choose--set
     loop 'efrit-claude-effort effort
     (concat (format "The effort is %s." (or effort "the API's default"))
             (and loop (not (efrit-provider-feature-p loop 'effort))
                  "  This endpoint is not asked for it: see `efrit-claude-features'.")))))

;;;###autoload
(defun efrit-thinking (form &optional default)
  "Have the current session get the model's thinking in FORM from its next turn on.
FORM is as `efrit-claude-thinking-display'.  With a prefix argument, as
DEFAULT, or without a session, new sessions do."
  (interactive
   (list (efrit-choose--read-one "Thinking" (efrit-choose--loop current-prefix-arg)
                                 'efrit-claude-thinking-display
                                 '("summarized" "updates" "omitted" "off"))
         current-prefix-arg))
  (let ((loop (efrit-choose--loop default)))
    (efrit-choose--set
     loop 'efrit-claude-thinking-display form
     (concat (pcase form
               ("updates" "Thinking comes as updates.")
               ("off" "Thinking is off; some models still report between tool calls.")
               (_ (format "Thinking comes %s." form)))
             (and loop (not (efrit-provider-feature-p loop 'thinking))
                  "  This endpoint is not asked for it: see `efrit-claude-features'.")))))

(defun efrit-choose--read-one (what loop option choices &optional default)
  "Read WHAT, one of CHOICES, for OPTION of LOOP, or for new sessions without LOOP.
DEFAULT is the name of the value nil."
  (let ((now (or (efrit-provider-value loop option) default)))
    (completing-read (format "%s (now %s): " what now) choices nil t nil nil now)))

;;;; Limits

;;;###autoload
(defun efrit-limit (name value &optional default)
  "Have the current session use VALUE for its limit NAME; nil: no limit.
NAME is \"dollars\", \"turns\", \"minutes\" or \"tokens\", about which the
session asks whether to go on; \"reply\", the tokens of the longest reply; or a
limit of the budget, such as \"total\" or \"tool results\".
With a prefix argument, as DEFAULT, or without a session, new sessions do."
  (interactive
   (efrit-for-a-person
     (let* ((loop (efrit-choose--loop current-prefix-arg))
            (budget (efrit-choose--budget-limits loop))
            (name (efrit-choose--read-limit loop budget)))
       (list name (efrit-choose--read-number loop name budget) current-prefix-arg))))
  (pcase-let* ((`(,_ ,option ,meaning ,key) (or (assoc name efrit-choose--limits)
                                                (user-error "There is no limit %s" name)))
               (loop (efrit-choose--loop default))
               (text (format "%s: %s." meaning (efrit-choose--number-text value))))
    (cond ((and key (null value)) (user-error "This limit needs a number"))
          ((and key loop) (efrit-choose--set-budget loop key value text))
          (option (efrit-choose--set loop option value text))
          (t (user-error "New sessions have this limit from `budget.%s' in config.toml"
                         (substring (symbol-name key) 1))))))

(defun efrit-choose--budget-limits (loop)
  "Return a plist of the limits of the budget of LOOP, or nil without LOOP."
  (and loop
       (plist-get (efrit-sidecar-request 'session/status
                                         (list :session_id (efrit-loop-id loop)))
                  :limits)))

(defun efrit-choose--set-budget (loop key value text)
  "Have LOOP use VALUE for the limit KEY of its budget, and note TEXT.
Signal a `user-error' with the sidecar's reason if it does not fit."
  (efrit-for-a-person
    (let ((budget (plist-get (efrit-sidecar-request
                              'session/limits (list :session_id (efrit-loop-id loop)
                                                    :limits (list key value)))
                             :budget)))
      (efrit-loop-take-budget loop budget)
      (efrit-choose--tell loop (concat text (and (equal (plist-get budget :fill) "full")
                                                 "  The next turn compacts."))))))

(defun efrit-choose--limit-value (loop name budget)
  "Return the present value of the limit NAME of LOOP, or nil for no limit.
BUDGET is as from `efrit-choose--budget-limits'."
  (pcase-let ((`(,_ ,option ,_ ,key) (assoc name efrit-choose--limits)))
    (cond ((and key loop) (plist-get budget key))
          (option (efrit-provider-value loop option)))))

(defun efrit-choose--number-text (value)
  "Return VALUE, a number or nil, as text."
  (if value (format "%s" value) "no limit"))

(defun efrit-choose--read-limit (loop budget)
  "Read the name of a limit of LOOP, or of new sessions if LOOP is nil.
BUDGET is as from `efrit-choose--budget-limits'."
  (let ((completion-extra-properties
         (list :annotation-function
               (lambda (name)
                 (format "  %s: %s" (nth 2 (assoc name efrit-choose--limits))
                         (efrit-choose--number-text
                          (efrit-choose--limit-value loop name budget)))))))
    (completing-read "Limit: " (if loop efrit-choose--limits
                                 (seq-filter #'cadr efrit-choose--limits))
                     nil t nil nil "dollars")))

(defun efrit-choose--read-number (loop name budget)
  "Read a value for the limit NAME of LOOP, or nil for no limit.
BUDGET is as from `efrit-choose--budget-limits'."
  (pcase-let* ((`(,_ ,option ,meaning ,key) (assoc name efrit-choose--limits))
               (now (efrit-choose--limit-value loop name budget))
               (text (string-trim (read-string
                                   (format "%s (now %s%s): " meaning
                                           (efrit-choose--number-text now)
                                           (if key "" "; empty for no limit"))))))
    (cond ((string-empty-p text) nil)
          ((not (string-match-p "\\`[0-9]*\\.?[0-9]+\\'" text))
           (user-error "%s is not a number" text))
          ((memq option '(efrit-max-dollars efrit-max-minutes)) (string-to-number text))
          ((string-match-p "\\`[0-9]+\\'" text) (string-to-number text))
          (t (user-error "%s is not a whole number" text)))))

;;; The menu

;; The menu of `M-x efrit', and of ? in a session's buffer.  It fits a terminal
;; of 80 columns and 24 lines.  What cannot be done now is shown as inapt, and
;; answers only where there is a question.

(defvar efrit-menu--loop nil
  "The loop that was current when the menu was opened, or nil.")

(defun efrit-menu--heading ()
  "Return the heading of the menu: project, title, and the gauge of the session."
  (let ((loop efrit-menu--loop)
        (columns (min 78 (- (frame-width) 2))))
    (if (null loop)
        "No session is open here"
      (concat (truncate-string-to-width
               (concat (file-name-nondirectory (directory-file-name (efrit-loop-root loop)))
                       (and (efrit-loop-title loop)
                            (concat " · " (efrit-permissions-visible (efrit-loop-title loop) t))))
               columns nil nil "…")
              "\n" (efrit-show-gauge loop columns)))))

(defun efrit-menu--no-session-p ()
  "Return non-nil if no session is current."
  (null efrit-menu--loop))

(defun efrit-menu--not-in (&rest states)
  "Return non-nil unless the current session is in one of STATES."
  (not (and efrit-menu--loop (memq (efrit-loop-state efrit-menu--loop) states))))

(defun efrit-menu--cannot-continue-p ()
  "Return non-nil unless the current session rests."
  (not (and efrit-menu--loop (efrit-loop-resting-p efrit-menu--loop))))

(defun efrit-menu--cannot-stop-p ()
  "Return non-nil unless the current session works, or asks whether to go on."
  (or (null efrit-menu--loop)
      (and (efrit-loop-resting-p efrit-menu--loop)
           (efrit-menu--not-in 'limited))))

(defun efrit-menu--no-tool-p ()
  "Return non-nil unless a tool is running in the current session."
  (not (and efrit-menu--loop
            (seq-some (lambda (use) (eq (efrit-use-state use) 'running))
                      (efrit-loop-run efrit-menu--loop)))))

(defun efrit-menu--cannot-retry-p ()
  "Return non-nil unless a request of the current session failed or waits."
  (efrit-menu--not-in 'failed 'retrying))

(defun efrit-menu--use ()
  "Return the tool use about which the current session asks, or nil."
  (and efrit-menu--loop (efrit-run-pending-use efrit-menu--loop)))

(defun efrit-menu--no-question-p ()
  "Return non-nil unless the current session asks for permission or to go on."
  (and (efrit-menu--no-use-p) (efrit-menu--not-in 'limited)))

(defun efrit-menu--describe-yes ()
  "Return the label of the answer yes in the menu."
  (if (efrit-menu--no-use-p) "go on" "allow once"))

(defun efrit-menu--describe-no ()
  "Return the label of the answer no in the menu."
  (if (efrit-menu--no-use-p) "stop" "deny once"))

(defun efrit-menu--not-granted-p (grant)
  "Return non-nil unless the person is offered GRANT, `exactly' or `alike', now."
  (let ((use (efrit-menu--use)))
    (not (and use (assq grant (efrit-run-grants efrit-menu--loop use))))))

(defun efrit-menu--no-use-p ()
  "Return non-nil unless the current session asks for permission."
  (null (efrit-menu--use)))

(defun efrit-menu--not-exactly-p ()
  "Return non-nil unless exactly the pending call can be allowed for longer."
  (efrit-menu--not-granted-p 'exactly))

(defun efrit-menu--not-alike-p ()
  "Return non-nil unless the person can allow what is like the pending call."
  (efrit-menu--not-granted-p 'alike))

(defun efrit-menu--no-plan-p ()
  "Return non-nil unless the pending call is an edit whose text can be changed."
  (let* ((use (efrit-menu--use))
         (plan (and use (efrit-use-plan use))))
    (not (and plan (efrit-plan-revisable plan)))))

(defun efrit-menu--no-result-p ()
  "Return non-nil unless point is in a session, on or below a tool's line."
  (not (and efrit-loop-here efrit-transcript-end (efrit-view-use-here))))

(defun efrit-menu--nothing-to-copy-p ()
  "Return non-nil unless point is on an item, or the region is active."
  (not (and efrit-loop-here (or (use-region-p) (efrit-item-at (point))))))

(defun efrit-menu--no-region-p ()
  "Return non-nil unless the region is active."
  (not (use-region-p)))

(defun efrit-menu--describe (name option default)
  "Return NAME and the value of OPTION for the current session; nil is DEFAULT."
  (efrit-menu--labelled name (or (efrit-provider-value efrit-menu--loop option) default)))

(defconst efrit-menu--columns 23
  "Most columns of a value in the menu, so that the menu fits a terminal.")

(defun efrit-menu--labelled (name value)
  "Return NAME and VALUE, a string, as a label; shorten a long VALUE."
  (format "%s: %s" name
          (propertize (truncate-string-to-width value efrit-menu--columns nil nil "…")
                      'face 'transient-value)))

(defun efrit-menu--no-effort-p ()
  "Return non-nil if the endpoint of the current session is not asked for effort."
  (not (efrit-provider-feature-p efrit-menu--loop 'effort)))

(defun efrit-menu--no-thinking-p ()
  "Return non-nil if the endpoint of the current session has no form of thinking."
  (not (efrit-provider-feature-p efrit-menu--loop 'thinking)))

(defun efrit-menu--describe-model ()
  "Return the label of the model in the menu, with as much of its provider as fits."
  (let* ((name (efrit-provider-of efrit-menu--loop))
         (model (efrit-provider-value efrit-menu--loop 'efrit-claude-model))
         (room (- efrit-menu--columns 1 (string-width model))))
    (efrit-menu--labelled
     "model" (efrit-provider-label
              (and name (> room 1) (truncate-string-to-width name room nil nil "…"))
              model))))

(defun efrit-menu--describe-effort ()
  "Return the label of the effort in the menu."
  (efrit-menu--describe "effort" 'efrit-claude-effort "default"))

(defun efrit-menu--describe-thinking ()
  "Return the label of the form of thinking in the menu."
  (efrit-menu--describe "thinking" 'efrit-claude-thinking-display ""))

(defun efrit-menu--describe-limits ()
  "Return the label of the limits in the menu."
  (let ((dollars (efrit-provider-value efrit-menu--loop 'efrit-max-dollars))
        (turns (efrit-provider-value efrit-menu--loop 'efrit-max-turns)))
    (format "limits: %s"
            (propertize (string-join
                         (or (delq nil (list (and dollars (format "$%s" dollars))
                                             (and turns (efrit-count-text turns "turn"))))
                             '("none"))
                         ", ")
                        'face 'transient-value))))

(defun efrit-menu--settings-heading ()
  "Return the heading of the settings in the menu."
  (if efrit-menu--loop "This session" "New sessions"))

;;;; Commands

;;;###autoload (autoload 'efrit "efrit-menu" nil t)
(transient-define-prefix efrit ()
  "Have a model work in this project, within a token budget."
  [:description efrit-menu--heading
   ["Session"
    ("d" "do something" efrit-do)
    ("B" "do it with this buffer" efrit-do-with-buffer)
    ("+" "begin another session" efrit-new)
    ("v" "show it" efrit-view :inapt-if efrit-menu--no-session-p)
    ("c" "continue" efrit-continue :inapt-if efrit-menu--cannot-continue-p)
    ("k" "stop" efrit-stop :inapt-if efrit-menu--cannot-stop-p)
    ("x" "stop one tool" efrit-stop-tool :inapt-if efrit-menu--no-tool-p)
    ("r" "retry" efrit-retry :inapt-if efrit-menu--cannot-retry-p)]
   ["Answers" :if-not efrit-menu--no-question-p
    ("y" efrit-allow-once :description efrit-menu--describe-yes)
    ("s" "this, this session" efrit-allow-for-session :if-not efrit-menu--not-exactly-p)
    ("a" "alike, this session" efrit-allow-alike-for-session :if-not efrit-menu--not-alike-p)
    ("p" "this, in this project" efrit-allow-for-project :if-not efrit-menu--not-exactly-p)
    ("A" "alike, in this project" efrit-allow-alike-for-project
     :if-not efrit-menu--not-alike-p)
    ("n" efrit-deny-once :description efrit-menu--describe-no)
    ("N" "deny this session" efrit-deny-for-session :if-not efrit-menu--no-use-p)
    ("e" "edit the new text" efrit-revise :if-not efrit-menu--no-plan-p)]
   ["Look"
    ("b" "budget" efrit-budget :inapt-if efrit-menu--no-session-p)
    ("u" "undo the last edit" efrit-undo :inapt-if efrit-menu--no-session-p)
    ("M-u" "make it again" efrit-redo :inapt-if efrit-menu--no-session-p)
    ("U" "list the edits" efrit-undo-session :inapt-if efrit-menu--no-session-p)
    ("F" "list the permissions" efrit-permissions :inapt-if efrit-menu--no-session-p)
    ("o" "open result" efrit-open-result :inapt-if efrit-menu--no-result-p)
    ("w" "copy" efrit-copy :inapt-if efrit-menu--nothing-to-copy-p)
    ("X" "export" efrit-export :inapt-if efrit-menu--no-session-p)]]
  [[:description efrit-menu--settings-heading
    ("M" efrit-model :description efrit-menu--describe-model)
    ("E" efrit-effort :description efrit-menu--describe-effort
     :inapt-if efrit-menu--no-effort-p)
    ("T" efrit-thinking :description efrit-menu--describe-thinking
     :inapt-if efrit-menu--no-thinking-p)
    ("L" efrit-limit :description efrit-menu--describe-limits)
    ("O" "take new options" efrit-take-options :inapt-if efrit-menu--no-session-p)]
   ["Sessions"
    ("R" "resume" efrit-resume)
    ("l" "list" efrit-sessions)
    ("S" "MCP servers" efrit-servers :inapt-if efrit-menu--no-session-p)
    ("D" "check the set-up" efrit-doctor)
    ("h" "read the manual" efrit-manual)]
   ["Memory"
    ("/" "search" efrit-memory-search)
    ("t" "timeline" efrit-memory-timeline)
    ("m" "save the region" efrit-memory-save :inapt-if efrit-menu--no-region-p)
    ("P" "pack for elsewhere" efrit-context-pack)]]
  (interactive)
  (setq efrit-menu--loop (ignore-errors (efrit-loop-current)))
  ;; In a small terminal the windows above give way to the menu.
  (let ((window-min-height 2))
    (transient-setup 'efrit)))

;;; The manual

;;;###autoload
(defun efrit-manual ()
  "Open the manual of efrit in Info."
  (interactive)
  (let ((file (expand-file-name "efrit.info" efrit-directory)))
    (unless (file-exists-p file)
      (user-error "%s is missing: run `make docs' in a checkout of efrit-budget, or read docs/manual/ there"
                  (abbreviate-file-name file)))
    (info (format "(%s)Top" file))))

(provide 'efrit-menu)
;;; efrit-menu.el ends here
