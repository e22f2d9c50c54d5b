;;; efrit-show.el --- A loop in words  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the views and the batch job say of a loop, as plain strings.

;;; Code:

(require 'cl-lib)
(require 'efrit-faces)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-run)
(require 'seq)
(require 'subr-x)

;;; Public

(defconst efrit-show--states
  '((idle . "ready") (beginning . "preparing") (waiting . "waiting for the model")
    (streaming . "writing") (retrying . "waiting to retry") (ending . "booking")
    (running . "running tools") (failed . "failed") (refused . "the model refused")
    (cut-short . "the reply reached its limit of tokens")
    (window-full . "the model's window is full") (limited . "a limit was reached"))
  "What the states of a loop are called.")

(defun efrit-show-state (state)
  "Return what STATE, of a loop, is called."
  (alist-get state efrit-show--states))

(defun efrit-show-tokens (tokens)
  "Return TOKENS as short text: 950, 12k, 1.2M."
  (cond ((not (numberp tokens)) "?")
        ((< tokens 1000) (format "%d" tokens))
        ((< tokens 999500) (format "%dk" (round tokens 1000)))
        (t (format "%.1fM" (/ tokens 1000000.0)))))

(defun efrit-show-number (number)
  "Return NUMBER, a whole one, with commas: 1,234."
  (let ((text (number-to-string number)))
    (while (string-match "\\`\\(-?[0-9]+\\)\\([0-9]\\{3\\}\\(?:,\\|\\'\\)\\)" text)
      (setq text (replace-match "\\1,\\2" t nil text)))
    text))

(defun efrit-show-arguments (arguments width)
  "Return ARGUMENTS, the JSON text of an object, as short text of WIDTH."
  (let* ((plist (ignore-errors (efrit-json-plist arguments)))
         (shown (cl-loop for (name value) on plist by #'cddr
                         collect (efrit-show--argument name value))))
    (truncate-string-to-width (string-join shown " ") width nil nil "…")))

(defun efrit-show-use (use)
  "Return USE as a line: tool, arguments, tokens, time, state."
  (let ((arguments (efrit-show-arguments (efrit-use-arguments use) 60)))
    (concat (efrit-show--use-sign use)
            (propertize (efrit-use-name use) 'face 'efrit-tool)
            (if (string-empty-p arguments) "" " ")
            (propertize arguments 'face 'efrit-arguments)
            (propertize (efrit-show--use-end use (efrit-use-result use))
                        'face 'efrit-figures))))

(defun efrit-show-question (use)
  "Return what the person is asked about USE."
  (or (efrit-use-question use)
      (format "Let %s run?  %s" (efrit-use-name use)
              (efrit-permissions-subject (efrit-use-name use) (efrit-use-arguments use)))))

(defun efrit-show-gauge (loop &optional columns)
  "Return the budget of LOOP as a line, of at most COLUMNS where that can be.
Where there is no room for all, the tiers go first, then the bar."
  (let* ((budget (efrit-loop-budget loop))
         (tiers (plist-get budget :tiers))
         (dollars (plist-get (efrit-loop-usage loop) :dollars))
         (end (concat (if dollars (format "  $%.2f" dollars) "")
                      (format "  turn %d" (efrit-loop-turn loop))))
         (tools (efrit-show--tier "  tools " (plist-get tiers :tool_results)))
         (history (efrit-show--tier "  history " (plist-get tiers :history)))
         (left (concat " · " (efrit-show-left budget)))
         (lines (list (concat (efrit-show--prompt budget 8) left tools history end)
                      (concat (efrit-show--prompt budget 8) left tools end)
                      (concat (efrit-show--prompt budget 8) left end)
                      (concat (efrit-show--prompt budget 8) end))))
    (or (seq-find (lambda (line) (or (null columns) (<= (string-width line) columns))) lines)
        (concat (efrit-show--prompt budget 0) end))))

(defun efrit-show-left (budget)
  "Return how far BUDGET, a snapshot, is from the next compaction, in words."
  (let ((left (or (plist-get budget :remaining) 0)))
    (if (> left 0)
        (format "%s until it compacts" (efrit-show-tokens left))
      "compacts next")))

(defun efrit-show-fill-face (used limit)
  "Return the face of USED tokens where LIMIT is the most there can be."
  (cond ((> used limit) 'efrit-band-critical)
        ((> used (* 0.8 limit)) 'efrit-band-low)
        (t 'efrit-band-ample)))

(defun efrit-show-used (budget)
  "Return how many tokens of BUDGET, a snapshot, are used."
  (cl-loop for (_ tier) on (plist-get budget :tiers) by #'cddr
           sum (or (plist-get tier :used) 0)))

(defun efrit-show-prompt-limit (budget)
  "Return how many tokens a prompt of BUDGET, a snapshot, can have."
  (or (plist-get budget :prompt_limit) 0))

(defun efrit-show-bar (used limit width)
  "Return a bar of WIDTH characters for USED of LIMIT."
  (let ((full (if (> limit 0) (min width (round (* width used) limit)) 0)))
    (concat (make-string full ?▓) (make-string (- width full) ?░))))

(defun efrit-show-cache-share (loop)
  "Return the share of the cache in all that LOOP sent, or nil."
  (let* ((usage (efrit-loop-usage loop))
         (read (or (plist-get usage :read) 0))
         (all (+ read (or (plist-get usage :input) 0) (or (plist-get usage :written) 0))))
    (and (> all 0) (/ (* 100.0 read) all))))

(defun efrit-show-summary (loop)
  "Return how LOOP stands: budget, epochs, cache and price, in lines."
  (let ((usage (efrit-loop-usage loop))
        (share (efrit-show-cache-share loop)))
    (string-join
     (delq nil
           (list (efrit-show-gauge loop)
                 (plist-get (efrit-loop-budget loop) :summary)
                 (format "session %s, epoch %d, %s tokens written by the model%s"
                         (efrit-loop-id loop) (efrit-loop-epoch loop)
                         (efrit-show-tokens (or (plist-get usage :output) 0))
                         (if share (format ", %.0f%% of prompts from cache" share) ""))))
     "\n")))

;;; Private

(defun efrit-show--argument (name value)
  "Return the argument NAME with VALUE as short text."
  (let ((name (substring (symbol-name name) 1)))
    (cond ((stringp value) (if (member name '("path" "pattern" "command" "code" "handle"))
                               (efrit-show--one-line value)
                             (format "%s=%s" name (efrit-show--one-line value))))
          ((null value) (format "%s=no" name))
          ((eq value t) (format "%s=yes" name))
          ((vectorp value) (format "%s=%s" name (mapconcat #'efrit-show--item value ",")))
          (t (format "%s=%s" name value)))))

(defun efrit-show--item (value)
  "Return VALUE, an item of a list, as short text: of an object, its values."
  (if (and (consp value) (keywordp (car value)))
      (string-join (cl-loop for (_ member) on value by #'cddr
                            collect (efrit-show--one-line (format "%s" member)))
                   " ")
    (efrit-show--one-line (format "%s" value))))

(defun efrit-show--one-line (text)
  "Return TEXT on one line, without what lines are set in by."
  (efrit-permissions-visible (replace-regexp-in-string "\n[ \t]*" "⏎" text t t)))

(defun efrit-show--use-sign (use)
  "Return the sign in front of the line of USE: how it went."
  (pcase (efrit-use-state use)
    ('done (if (member (plist-get (efrit-use-result use) :status) '(nil "error"))
               (propertize "✗ " 'face 'efrit-failed)
             (propertize "• " 'face 'efrit-done)))
    ('asking (propertize "? " 'face 'efrit-question))
    (_ (propertize "… " 'face 'efrit-busy))))

(defun efrit-show--use-end (use result)
  "Return the end of the line of USE, which gave RESULT, if it has."
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
  "Return how much of the prompt of BUDGET is used, behind a bar of WIDTH.
Its face is that of the same bar in the budget view."
  (let ((limit (efrit-show-prompt-limit budget))
        (used (efrit-show-used budget)))
    (propertize (concat (efrit-show-bar used limit width) (if (> width 0) " " "")
                        (efrit-show-tokens used) "/" (efrit-show-tokens limit))
                'face (efrit-show-fill-face used limit))))

(defun efrit-show--tier (name tier)
  "Return TIER, a plist, as text behind NAME."
  (format "%s%s/%s" name (efrit-show-tokens (plist-get tier :used))
          (efrit-show-tokens (plist-get tier :limit))))

(provide 'efrit-show)
;;; efrit-show.el ends here
