;;; efrit-status.el --- A loop in words, bars and mode lines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Text about a loop, for the views and the batch job: its state, tool calls
;; and budget.  Mode lines and notifications about loops that are not visible.

;;; Code:

(require 'efrit)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-run)

;;; Words

;; Functions that return text about a loop, for the views and the batch job.

(defconst efrit-show--states
  '((idle . "ready") (beginning . "preparing") (waiting . "waiting for the model")
    (streaming . "writing") (retrying . "waiting to retry") (ending . "booking")
    (running . "running tools") (failed . "failed") (refused . "the model refused")
    (cut-short . "the reply reached its limit of tokens")
    (window-full . "the model's window is full") (limited . "asks whether to go on"))
  "Alist from the states of a loop to their names for the person.")

(defun efrit-show-state (state)
  "Return the name for the person of STATE, a state of a loop."
  (alist-get state efrit-show--states))

(defun efrit-show-tokens (tokens)
  "Return TOKENS as short text, such as 950, 12k, 1.2M, or ? if not a number."
  (cond ((not (numberp tokens)) "?")
        ((< tokens 1000) (format "%d" tokens))
        ((< tokens 999500) (format "%dk" (round tokens 1000)))
        (t (format "%.1fM" (/ tokens 1000000.0)))))

(defun efrit-show-amount (option amount)
  "Return AMOUNT of what the guard OPTION counts as text, such as \"$2.00\"."
  (pcase option
    ('efrit-max-dollars (format "$%.2f" amount))
    ('efrit-max-tokens (format "%s tokens" (efrit-show-tokens amount)))
    ('efrit-max-turns (efrit-count-text amount "turn"))
    ('efrit-max-minutes (efrit-count-text (round amount) "minute"))))

(defun efrit-show-guard (guard)
  "Return a sentence about GUARD, as from `efrit-loop-guard'."
  (pcase-let ((`(,option ,used ,limit) guard))
    (format "Your message has %s %s so far; `%s' is %s."
            (if (eq option 'efrit-max-dollars) "cost" "taken")
            (efrit-show-amount option used) option (efrit-show-amount option limit))))

(defun efrit-show-failing (use count)
  "Return a sentence about USE, which failed COUNT times in a row."
  (format "%s failed %d times in a row with the same input: %s"
          (efrit-use-name use) count (efrit-show-arguments (efrit-use-arguments use) 60)))

(defun efrit-show-number (number)
  "Return NUMBER, an integer, as text with commas, such as 1,234."
  (let ((text (number-to-string number)))
    (while (string-match "\\`\\(-?[0-9]+\\)\\([0-9]\\{3\\}\\(?:,\\|\\'\\)\\)" text)
      (setq text (replace-match "\\1,\\2" t nil text)))
    text))

(defun efrit-show-arguments (arguments width)
  "Return ARGUMENTS, the JSON text of an object, as text of at most WIDTH columns."
  (let* ((plist (ignore-errors (efrit-json-plist arguments)))
         (shown (cl-loop for (name value) on plist by #'cddr
                         collect (efrit-show--argument name value))))
    (truncate-string-to-width (string-join shown " ") width nil nil "…")))

(defun efrit-show-use (use)
  "Return a line about USE, an `efrit-use': sign, tool, arguments, tokens and time."
  (let ((arguments (efrit-show-arguments (efrit-use-arguments use) 60)))
    (concat (efrit-show--use-sign use)
            (propertize (efrit-use-name use) 'face 'efrit-tool)
            (if (string-empty-p arguments) "" " ")
            (propertize arguments 'face 'efrit-arguments)
            (propertize (efrit-show--use-end use (efrit-use-result use))
                        'face 'efrit-figures))))

(defun efrit-show-question (use)
  "Return the question to the person about USE, an `efrit-use'."
  (or (efrit-use-question use)
      (format "Let %s run?  %s" (efrit-use-name use)
              (efrit-permissions-subject (efrit-use-name use) (efrit-use-arguments use)))))

(defun efrit-show-gauge (loop &optional columns)
  "Return the budget of LOOP as a line of at most COLUMNS, if possible.
Where space is short, leave out the tiers, then the tokens left, then the bar."
  (let* ((budget (efrit-loop-budget loop))
         (tiers (plist-get budget :tiers))
         (dollars (plist-get (efrit-loop-usage loop) :dollars))
         (end (concat (if dollars (format "  $%.2f" dollars) "")
                      (format "  turn %d" (efrit-loop-turn loop))))
         (tools (efrit-show--tier "  tools " (plist-get tiers :tool_results)))
         (history (efrit-show--tier "  history " (plist-get tiers :history)))
         (left (concat " · " (efrit-show-remaining budget)))
         (lines (list (concat (efrit-show--prompt budget 8) left tools history end)
                      (concat (efrit-show--prompt budget 8) left tools end)
                      (concat (efrit-show--prompt budget 8) left end)
                      (concat (efrit-show--prompt budget 8) end))))
    (or (seq-find (lambda (line) (or (null columns) (<= (string-width line) columns))) lines)
        (concat (efrit-show--prompt budget 0) end))))

(defun efrit-show-remaining (budget)
  "Return a text about the tokens left before a rewrite in BUDGET, a snapshot."
  (let ((left (or (plist-get budget :remaining) 0)))
    (if (> left 0)
        (format "%s until it compacts" (efrit-show-tokens left))
      "compacts next")))

(defun efrit-show-fill-face (used limit)
  "Return the face of a bar for USED tokens of LIMIT."
  (cond ((> used limit) 'efrit-band-critical)
        ((> used (* 0.8 limit)) 'efrit-band-low)
        (t 'efrit-band-ample)))

(defun efrit-show-used-tokens (budget)
  "Return the number of tokens used in all tiers of BUDGET, a snapshot."
  (cl-loop for (_ tier) on (plist-get budget :tiers) by #'cddr
           sum (or (plist-get tier :used) 0)))

(defun efrit-show-bar (used limit width)
  "Return a bar of WIDTH characters, filled in the ratio of USED to LIMIT."
  (let ((full (if (> limit 0) (min width (round (* width used) limit)) 0)))
    (concat (make-string full ?▓) (make-string (- width full) ?░))))

(defun efrit-show-cache-share (loop)
  "Return the percentage of LOOP's prompt tokens read from the cache, or nil."
  (let* ((usage (efrit-loop-usage loop))
         (read (or (plist-get usage :cache_read_input_tokens) 0))
         (all (+ read (or (plist-get usage :input_tokens) 0)
                 (or (plist-get usage :cache_creation_input_tokens) 0))))
    (and (> all 0) (/ (* 100.0 read) all))))

(defun efrit-show-summary (loop)
  "Return lines about LOOP: budget, price, session, epoch, output and cache."
  (let ((usage (efrit-loop-usage loop))
        (share (efrit-show-cache-share loop)))
    (string-join
     (delq nil
           (list (efrit-show-gauge loop)
                 (plist-get (efrit-loop-budget loop) :summary)
                 (format "session %s, epoch %d, %s tokens written by the model%s"
                         (efrit-loop-id loop) (efrit-loop-epoch loop)
                         (efrit-show-tokens (or (plist-get usage :output_tokens) 0))
                         (if share (format ", %.0f%% of prompts from cache" share) ""))))
     "\n")))

(defun efrit-show--argument (name value)
  "Return the argument NAME, a keyword, with VALUE as short text on one line."
  (let ((name (substring (symbol-name name) 1)))
    (cond ((stringp value) (if (member name '("path" "pattern" "command" "code" "handle"))
                               (efrit-show--one-line value)
                             (format "%s=%s" name (efrit-show--one-line value))))
          ((null value) (format "%s=no" name))
          ((eq value t) (format "%s=yes" name))
          ((vectorp value) (format "%s=%s" name (mapconcat #'efrit-show--item value ",")))
          (t (format "%s=%s" name value)))))

(defun efrit-show--item (value)
  "Return VALUE, an item of a list, as short text; for an object, its values."
  (if (and (consp value) (keywordp (car value)))
      (string-join (cl-loop for (_ member) on value by #'cddr
                            collect (efrit-show--one-line (format "%s" member)))
                   " ")
    (efrit-show--one-line (format "%s" value))))

(defun efrit-show--one-line (text)
  "Return TEXT on one line, without indentation, hidden characters visible."
  (efrit-permissions-visible (replace-regexp-in-string "\n[ \t]*" "⏎" text t t)))

(defun efrit-show--use-sign (use)
  "Return the sign that begins the line of USE, by the state of USE."
  (pcase (efrit-use-state use)
    ('done (if (member (plist-get (efrit-use-result use) :status) '(nil "error"))
               (propertize "✗ " 'face 'efrit-failed)
             (propertize "• " 'face 'efrit-done)))
    ('asking (propertize "? " 'face 'efrit-question))
    (_ (propertize "… " 'face 'efrit-busy))))

(defun efrit-show--use-end (use result)
  "Return the end of the line of USE: tokens, time and handle of RESULT, or nil."
  (let ((tokens (plist-get result :tokens))
        (seconds (efrit-use-seconds use))
        (handle (plist-get result :handle)))
    (cond
     (result (concat (if tokens (format "  %s tokens" (efrit-show-tokens tokens)) "")
                     (if seconds (format "  %d ms" (round (* 1000 seconds))) "")
                     (if handle (concat "  " handle) "")))
     ((eq (efrit-use-state use) 'done) "  stopped")
     (t ""))))

(defun efrit-show--prompt (budget width)
  "Return the tokens used by BUDGET's prompt, after a bar of WIDTH characters."
  (let ((limit (or (plist-get budget :prompt_limit) 0))
        (used (efrit-show-used-tokens budget)))
    (propertize (concat (efrit-show-bar used limit width) (if (> width 0) " " "")
                        (efrit-show-tokens used) "/" (efrit-show-tokens limit))
                'face (efrit-show-fill-face used limit))))

(defun efrit-show--tier (name tier)
  "Return NAME and the used tokens and limit of TIER, a plist, as text."
  (format "%s%s/%s" name (efrit-show-tokens (plist-get tier :used))
          (efrit-show-tokens (plist-get tier :limit))))

;;; Bars

;; Lays out a snapshot of the budget as lines with bars of block characters,
;; for the budget view and the preview.

(defconst efrit-budget-bars--margin 31
  "Most characters of a line besides its bar.")

(defun efrit-budget-bars (budget &optional columns)
  "Return text about BUDGET, in lines of at most COLUMNS: tiers, total, estimate."
  (string-join
   (append (efrit-budget-bars-tiers budget columns)
           (list (efrit-budget-bars--wrap (efrit-budget-bars--remaining-text budget) columns)
                 (efrit-budget-bars--wrap (efrit-budget-bars-error budget) columns)))
   "\n"))

(defun efrit-budget-bars-tiers (budget &optional columns)
  "Return lines with a bar for each tier of BUDGET's prompt, and for the total.
Shorten the bars so that the lines fit COLUMNS, if that is non-nil."
  (let* ((tiers (plist-get budget :tiers))
         (width (if columns
                    (max 1 (min efrit-budget-bars-width
                                (- columns efrit-budget-bars--margin)))
                  efrit-budget-bars-width)))
    (append
     (cl-loop for (name tier) on tiers by #'cddr
              for title = (if (eq name :user_message)
                              "requests"
                            (string-replace "_" " " (substring (symbol-name name) 1)))
              unless (eq name :response)
              collect (efrit-budget-bars--line title (plist-get tier :used)
                                               (plist-get tier :limit) width))
     (list (efrit-budget-bars--line "whole prompt" (efrit-show-used-tokens budget)
                                    (or (plist-get budget :prompt_limit) 0) width)))))

(defun efrit-budget-bars-error (budget)
  "Return a sentence about the recent error of the estimate in BUDGET, a snapshot."
  (let ((calibration (plist-get budget :calibration)))
    (if (or (null (plist-get calibration :model))
            (eql 0 (plist-get calibration :samples)))
        "The estimate has not been compared with real usage yet."
      (format "The estimate was %.1f%% off real usage lately (%s, factor %.2f from %d replies)."
              (* 100 (plist-get calibration :recent_error))
              (plist-get calibration :model)
              (plist-get calibration :factor)
              (plist-get calibration :samples)))))

(defun efrit-budget-bars--line (name used limit width)
  "Return a line for NAME with a bar of WIDTH characters: USED tokens of LIMIT."
  (let* ((used (or used 0))
         (limit (or limit 0)))
    (format "  %-12s %s %6s / %s"
            name
            (propertize (efrit-show-bar used limit width)
                        'face (efrit-show-fill-face used limit))
            (efrit-show-tokens used) (efrit-show-tokens limit))))

(defun efrit-budget-bars--wrap (text columns)
  "Return TEXT filled to COLUMNS, or as it is if COLUMNS is nil."
  (if columns (string-trim-right (string-fill text columns)) text))

(defun efrit-budget-bars--remaining-text (budget)
  "Return a line about the tokens left in BUDGET, a snapshot, its epoch and turn."
  (format "%s, %s for tools after that; epoch %s, turn %s."
          (let ((left (efrit-show-remaining budget)))
            (concat (upcase (substring left 0 1)) (substring left 1)))
          (efrit-show-tokens (plist-get budget :available_for_tools))
          (plist-get budget :epoch) (plist-get budget :turn)))

;;; Mode lines and notifications

;; While a session works, every mode line says so.  When a session in no visible
;; window asks or ends, the echo area or the desktop says so; no window changes.

(declare-function notifications-notify "notifications" (&rest params))

(defvar efrit-presence-line ""
  "Mode line text for the working sessions.")

(put 'efrit-presence-line 'risky-local-variable t)

(defun efrit-presence-observe (loop event buffer)
  "Update the mode lines for EVENT of LOOP; announce it if BUFFER is not visible."
  (when (memq (car event) '(state ask question use))
    (efrit-presence--refresh))
  (pcase event
    ((and `(state ,state ,_) (guard (memq state efrit-loop-resting)))
     (efrit-presence--announce-end loop state buffer))
    (`(ask ,use) (efrit-presence--announce-question buffer (efrit-use-name use)))
    (`(failing ,use ,count)
     (efrit-presence--announce loop (efrit-show-failing use count) buffer))
    (`(question . ,_) (efrit-presence--announce-question buffer "the model"))))

(defun efrit-presence-working ()
  "Return the loops that are not resting."
  (seq-remove #'efrit-loop-resting-p (efrit-loops)))

(defun efrit-presence-may-exit-p ()
  "Return non-nil if Emacs may exit; if a loop is working, ask the person.
This is for `kill-emacs-query-functions'."
  (or (null (efrit-presence-working))
      (yes-or-no-p "A session is at work; it can be resumed later.  Exit Emacs? ")))

(add-hook 'kill-emacs-query-functions #'efrit-presence-may-exit-p)

(defun efrit-presence--refresh ()
  "Update the mode lines to name the working loops."
  (let ((line (efrit-presence--text (efrit-presence-working))))
    (unless (equal line efrit-presence-line)
      (setq efrit-presence-line line)
      (efrit-presence--install)
      (force-mode-line-update t))))

(defun efrit-presence--install ()
  "Add the text for the mode lines to `global-mode-string', or remove it."
  (let ((others (remq 'efrit-presence-line
                      (cond ((null global-mode-string) '(""))
                            ((listp global-mode-string) global-mode-string)
                            (t (list global-mode-string))))))
    (setq global-mode-string
          (if (string-empty-p efrit-presence-line)
              others
            (append others '(efrit-presence-line))))))

(defun efrit-presence--text (loops)
  "Return the mode line text for LOOPS, which are working; \"\" if there are none."
  (if (or (null loops) (not efrit-presence-in-mode-line))
      ""
    (let ((asking (seq-some #'efrit-presence--waits-p loops)))
      (propertize (format " efrit: %s%s "
                          (if asking "asks" (efrit-show-state (efrit-loop-state (car loops))))
                          (if (cdr loops) (format " (of %d)" (length loops)) ""))
                  'face (if asking 'efrit-question 'efrit-busy)))))

(defun efrit-presence--waits-p (loop)
  "Return non-nil if LOOP waits for an answer from the person."
  (or (efrit-run-pending-use loop)
      (seq-some (lambda (use)
                  (and (equal (efrit-use-name use) "ask_user")
                       (eq (efrit-use-state use) 'running)))
                (efrit-loop-run loop))))

(defun efrit-presence--visible-p (buffer)
  "Return non-nil if BUFFER is in a window of a visible frame."
  (and (buffer-live-p buffer) (get-buffer-window buffer 'visible)))

(defun efrit-presence--announce-question (buffer who)
  "Show a message that WHO asks a question in BUFFER, unless BUFFER is visible."
  (unless (efrit-presence--visible-p buffer)
    (message "Efrit asks: %s waits for your answer in %s" who (buffer-name buffer))))

(defun efrit-presence--announce-end (loop state buffer)
  "Announce that LOOP rests in STATE, unless BUFFER is visible and Emacs has focus."
  (efrit-presence--announce loop (if (eq state 'idle) "it has ended" (efrit-show-state state))
                            buffer))

(defun efrit-presence--announce (loop text buffer)
  "Announce TEXT about LOOP, unless BUFFER is visible and Emacs has focus."
  (when (and efrit-presence-notify
             (not (and (efrit-presence--visible-p buffer)
                       ;; The focus of a terminal may be unknown.
                       (seq-some (lambda (frame) (memq (frame-focus-state frame) '(t unknown)))
                                 (frame-list)))))
    (efrit-defer #'efrit-presence--notify
                 (format "%s: %s" (abbreviate-file-name (efrit-loop-root loop)) text))))

(defun efrit-presence--notify (text)
  "Show TEXT as a desktop notification if wanted and possible, or as a message."
  (unless (and (eq efrit-presence-notify 'desktop)
               (display-graphic-p)
               (getenv "DBUS_SESSION_BUS_ADDRESS")
               (require 'notifications nil t)
               (ignore-errors
                 (notifications-notify :title "Efrit" :body text :app-name "Emacs")))
    (message "Efrit: %s" text)))

(provide 'efrit-status)
;;; efrit-status.el ends here
