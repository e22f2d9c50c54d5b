;;; efrit-status.el --- A loop in words, bars and mode lines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Text about a loop, for the views and the batch job: its state, tool calls
;; and budget, with bars.  Mode lines and notifications about loops that are not visible.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
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

(defun efrit-show-activity (loop)
  "Return what LOOP is doing in a few words, or that it asks the person."
  (if (efrit-show-asks-p loop)
      "asks you"
    (efrit-show-state (efrit-loop-state loop))))

(defun efrit-show-asks-p (loop)
  "Return non-nil if LOOP waits for an answer from the person."
  (or (efrit-run-pending-use loop)
      (and (eq (efrit-loop-state loop) 'limited)
           (efrit-loop-guard loop))
      (seq-some (lambda (use)
                  (and (equal (efrit-use-name use) "ask_user")
                       (eq (efrit-use-state use) 'running)))
                (efrit-loop-run loop))))

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

(defconst efrit-line--most-columns 72
  "Most columns of what a tool call acts on, in its line.")

(defun efrit-show-failing (use count)
  "Return a sentence about USE, which failed COUNT times in a row."
  (format "The same call failed %d times in a row: %s" count
          (truncate-string-to-width
           (string-trim (concat (efrit-line--verb use) " " (efrit-line--object use)))
           efrit-line--most-columns nil nil "…")))

(defun efrit-show-keys (keys columns)
  "Return KEYS, lists of key and what it does, as lines of at most COLUMNS."
  (let ((lines (list "")))
    (pcase-dolist (`(,key ,does) keys)
      (let ((part (concat (propertize key 'face 'efrit-key) (propertize (concat " " does)
                                                                        'face 'efrit-note))))
        (if (> (+ (string-width (car lines)) 3 (string-width part)) columns)
            (push (concat "  " part) lines)
          (setcar lines (concat (car lines) (if (string-empty-p (car lines)) "  " "   ") part)))))
    (concat (string-join (nreverse lines) "\n") "\n")))

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

(defconst efrit-show--questions
  '(("run_command" "Run this command?" :command)
    ("compile" "Compile with this command?" :command)
    ("eval_sexp" "Evaluate this code in your Emacs?" :code)
    ("fetch_url" "Fetch this address?" :url)
    ("web_search" "Search the web for this?" :query)
    ("read_buffer" "Read this buffer?" :buffer)
    ("buffer_outline" "Show the outline of this buffer?" :path)
    ("read_file" "Read this file?" :path)
    ("search_content" "Search the project for this?" :pattern)
    ("mem_delete" "Delete this observation from memory?" :id))
  "Questions to the person about tools: lists (TOOL QUESTION ARGUMENT).
ARGUMENT is the one that the question calls \"this\".")

(defun efrit-show-question (use)
  "Return the question to the person about USE, an `efrit-use', on one line.
Unless USE has a plan, whose files are named, the line has what USE acts on."
  (let ((title (efrit-show-question-title use))
        (subject (efrit-permissions-subject (efrit-use-name use) (efrit-use-arguments use))))
    (if (or (efrit-use-plan use) (string-search subject title))
        title
      (concat title "  " subject))))

(defun efrit-show-question-title (use)
  "Return the question to the person about USE, without what USE acts on."
  (or (efrit-use-question use)
      (if (efrit-show-main-argument use)
          (cadr (assoc (efrit-use-name use) efrit-show--questions))
        (format "Use the tool %s for this?"
                (pcase (efrit-show--server-and-tool (efrit-use-name use))
                  (`(,server ,tool) (format "%s of the MCP server %s" tool server))
                  (_ (efrit-use-name use)))))))

(defun efrit-show--server-and-tool (name)
  "Return the MCP server and the tool that NAME names, or nil for another tool."
  (when (string-match "\\`\\([^_].*?\\)__\\(.+\\)\\'" name)
    (list (match-string 1 name) (match-string 2 name))))

(defun efrit-show-main-argument (use)
  "Return the keyword of the argument that the question about USE is for, or nil."
  (let ((argument (nth 2 (assoc (efrit-use-name use) efrit-show--questions)))
        (given (ignore-errors (efrit-json-plist (efrit-use-arguments use)))))
    (and argument
         (plist-get given argument)
         argument)))

(defun efrit-show-cache-share (loop)
  "Return the percentage of LOOP's prompt tokens read from the cache, or nil."
  (let* ((usage (efrit-loop-usage loop))
         (read (or (plist-get usage :cache_read_input_tokens) 0))
         (all (+ read (or (plist-get usage :input_tokens) 0)
                 (or (plist-get usage :cache_creation_input_tokens) 0))))
    (and (> all 0) (/ (* 100.0 read) all))))

(defconst efrit-show--reasons
  '(("model" . "the model changed")
    ("system" . "the system prompt changed")
    ("tools" . "the tools changed")
    ("edits" . "what you pinned, dropped or restored was applied")
    ("size" . "older results were compressed to a line each")
    ("cost" . "older results were compressed, as reading them again cost more than that")
    ("cold" . "older results were compressed, as the cache had expired anyway")
    ("warning" . "a warning was added to the system prompt")
    ("rewrite" . "the conversation was rewritten"))
  "Alist from the sidecar's reasons for a rewrite to their names for the person.")

(defun efrit-show-rewrite (reasons)
  "Return REASONS for a rewrite, a list of strings, as a sentence; nil for none."
  (let ((known (delq nil (mapcar (lambda (reason) (cdr (assoc reason efrit-show--reasons)))
                                 reasons))))
    (if known (string-join known ", and ")
      "the conversation is sent anew")))

(defun efrit-show-paid-anew (loss)
  "Return a sentence about LOSS, a plist as in `efrit-loop-take-loss'."
  (let ((reasons (plist-get loss :reasons))
        (dollars (plist-get loss :dollars))
        (diagnosis (plist-get loss :diagnosis)))
    (format "%s cached tokens were paid anew%s: %s"
            (efrit-show-tokens (plist-get loss :tokens))
            (if dollars (format ", for $%.4f more" dollars) "")
            (cond ((equal reasons '("expired"))
                   (format "the cache had expired, after %s"
                           (efrit-count-text (round (plist-get loss :idle) 60) "minute")))
                  (reasons (efrit-show-rewrite reasons))
                  (diagnosis (concat "the API says " (efrit-permissions-visible diagnosis t)))
                  (t "the endpoint had them no more")))))

(defun efrit-show-cache (loop)
  "Return how much of what LOOP sent was cached, as text, or nil if unknown.
If something was paid anew, say in which turn last, and why."
  (let ((share (efrit-show-cache-share loop))
        (loss (efrit-loop-paid-anew loop)))
    (and share
         (concat (format "%.0f%% of prompts from cache" share)
                 (and loss (format "; in turn %d %s" (plist-get loss :turn)
                                   (efrit-show-paid-anew loss)))))))

(defun efrit-show-cost (loop)
  "Return the cost of LOOP's session with the tokens paid, as text.
Return nil before its first reply."
  (let ((usage (efrit-loop-usage loop))
        (loss (efrit-loop-paid-anew loop)))
    (cl-flet ((tokens (&rest names)
                (efrit-show-tokens (apply #'+ (mapcar (lambda (name) (or (plist-get usage name) 0))
                                                      names)))))
      (if (efrit-show-cache-share loop)
          (concat (format "%s for %s in, %s from cache, %s out"
                           (if (plist-get usage :dollars) (efrit-gauge--cost loop) "unknown")
                           (tokens :input_tokens :cache_creation_input_tokens)
                           (tokens :cache_read_input_tokens)
                           (tokens :output_tokens))
                   (and loss (format "; %s paid anew in turn %d"
                                     (efrit-show-tokens (plist-get loss :tokens))
                                     (plist-get loss :turn)))
                   (and (efrit-show--unreported loop)
                        (concat "; " (efrit-show--unreported loop))))
        (and (efrit-show--unreported loop)
             (concat "unknown: " (efrit-show--unreported loop)))))))

(defun efrit-show--unreported (loop)
  "Return a text about the replies of LOOP that came without usage, or nil."
  (let ((count (plist-get (efrit-loop-usage loop) :unreported)))
    (and count
         (format "%s came without usage" (if (= count 1) "1 reply" (format "%d replies" count))))))

(defun efrit-show-summary (loop)
  "Return lines about LOOP: budget, price, session, epoch, output and cache."
  (let ((cache (efrit-show-cache loop)))
    (string-join
     (delq nil
           (list (efrit-show-gauge loop)
                 (plist-get (efrit-loop-budget loop) :summary)
                 (format "session %s, epoch %d, %s%s"
                         (efrit-loop-id loop) (efrit-loop-epoch loop)
                         (efrit-show--written loop)
                         (if cache (concat ", " cache) ""))))
     "\n")))

(defun efrit-show--written (loop)
  "Return how many tokens the model of LOOP wrote, as text."
  (let ((count (or (plist-get (efrit-loop-usage loop) :output_tokens) 0))
        (unreported (efrit-show--unreported loop)))
    (if (and unreported (= count 0))
        (concat "tokens unknown: " unreported)
      (concat (efrit-show-tokens count) " tokens written by the model"
              (if unreported (format " (%s)" unreported) "")))))

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

;;; The gauge

;; What fills a session's prompt against what it may be, what is left until it
;; compacts, the cost and the model.  Header lines, the budget view, the menu,
;; the preview and the batch job show it; figures and colour are the sidecar's.

(defconst efrit-gauge--bar-width 12
  "Columns of the bar in the gauge.")

(defconst efrit-gauge--model-width 24
  "Most columns of a model's name in the gauge.")

(defun efrit-show-gauge (loop &optional columns)
  "Return the budget of LOOP as a line of at most COLUMNS, if possible.
It says what fills the prompt against what it may be, what is left until it
compacts, the cost, and the model.  Where space is short, parts are left out."
  (let* ((budget (efrit-loop-budget loop))
         (bar (efrit-gauge--prompt budget efrit-gauge--bar-width))
         (figures (efrit-gauge--prompt budget 0))
         (left (efrit-show-remaining budget))
         (short (efrit-show-remaining budget t))
         (cost (efrit-gauge--cost loop))
         (model (truncate-string-to-width (or (efrit-loop-option loop 'efrit-claude-model) "")
                                          efrit-gauge--model-width nil nil "…"))
         (turn (if (> (efrit-loop-turn loop) 0) (format "turn %d" (efrit-loop-turn loop)) ""))
         (lines (mapcar (lambda (parts) (string-join (delete "" parts) " · "))
                        (list (list bar left cost model turn)
                              (list bar left cost model)
                              (list bar short cost model)
                              (list figures short cost model)
                              (list bar short cost)
                              (list figures short cost)
                              (list figures cost)))))
    (propertize (or (seq-find (lambda (line) (or (null columns) (<= (string-width line) columns)))
                              lines)
                    figures)
                'help-echo (plist-get budget :summary))))

(defun efrit-show-remaining (budget &optional short)
  "Return a text about the tokens left before a rewrite in BUDGET, a snapshot.
With SHORT, use fewer words."
  (let ((left (or (plist-get budget :remaining) 0)))
    (cond ((null budget) (if short "" "budget not known yet"))
          ((> left 0) (format (if short "%s left" "%s until it compacts")
                              (efrit-show-tokens left)))
          (t "compacts next"))))

(defun efrit-show-header ()
  "Return the header line of a buffer about a loop: the gauge of the loop, or \"\"."
  (if efrit-loop-here
      (concat " " (string-replace "%" "%%" (efrit-show-gauge efrit-loop-here (- (window-width) 2))))
    ""))

(defun efrit-show-fill-face (budget)
  "Return the face of the gauge of BUDGET, a snapshot."
  (pcase (plist-get budget :fill)
    ("full" 'efrit-gauge-full)
    ("low" 'efrit-gauge-low)
    (_ 'efrit-gauge-ample)))

(defun efrit-gauge--prompt (budget width)
  "Return the tokens in BUDGET's prompt of those it may have, as text.
Put a bar of WIDTH columns before them, unless WIDTH is 0."
  (let ((used (plist-get budget :used))
        (limit (plist-get budget :prompt_limit))
        (face (efrit-show-fill-face budget)))
    (concat (if (> width 0)
                (concat (efrit-show-bar (or used 0) (or limit 0) width face) " ")
              "")
            ;; The colour of the bar is hard to read as that of text in some header lines.
            (propertize (format "%s/%s" (efrit-show-tokens used) (efrit-show-tokens limit))
                        'face (if (> width 0) 'bold face)))))

(defun efrit-gauge--cost (loop)
  "Return the cost of LOOP's session as text; \"\" before its first reply."
  (let ((usage (efrit-loop-usage loop)))
    (cond ((plist-get usage :dollars) (format "$%.2f" (plist-get usage :dollars)))
          (usage "cost unknown")
          (t ""))))

;;; Tool calls in words

;; A line about a tool call says what is done, such as `Read a.el 1-80' or
;; `Run make test · exit 2 · 4.1 s'.  What a model, a file or the person wrote
;; stands behind words of ours, on one line, with hidden characters visible.

(defconst efrit-line--least-columns 20
  "Columns that what a tool call acts on may always take in its line.")

(defconst efrit-line--most-gist 60
  "Most columns of what came of a tool call, in its line.")

(defconst efrit-line--most-read 400
  "Most characters of a text that are made fit for a line.")

(defconst efrit-line--slow 0.5
  "Seconds from which on a line tells how long the tool ran.")

(defconst efrit-line--reading
  '("read_file" "read_image" "file_info" "read_buffer" "recall_result" "list_symbols"
    "buffer_outline" "vcs_blame" "vcs_diff" "vcs_log" "vcs_show" "vcs_status" "project_files"
    "list_buffers" "get_diagnostics" "elisp_docs" "mem_get_observation" "mem_context"
    "mem_timeline" "mem_stats" "context_pack" "sdd_get_context" "sdd_context_check"
    "search_content" "find_definition" "find_references" "mem_search")
  "Names of the tools that only read; successful calls of them fold into a group.")

(defconst efrit-line--counted
  '(("read_file" "read" "file") ("read_image" "saw" "image") ("read_buffer" "read" "buffer")
    ("search_content" "searched" nil) ("mem_search" "searched memory" nil)
    ("find_definition" "looked for" "definition") ("find_references" "looked for" "symbol")
    ("project_files" "listed files" nil) ("project_map" "outlined" "folder") ("list_symbols" "outlined" "file")
    ("buffer_outline" "outlined" "file") ("recall_result" "recalled" "result")
    ("vcs_status" "asked git" nil) ("vcs_diff" "asked git" nil) ("vcs_log" "asked git" nil)
    ("vcs_show" "asked git" nil) ("vcs_blame" "asked git" nil))
  "Verbs and nouns of groups: lists of tool, verb, and noun or nil for times.")

(defconst efrit-line--words
  '(("read_file" "Read" path lines)
    ("read_image" "See" path)
    ("read_buffer" "Read" ("buffer %s" buffer) lines)
    ("file_info" "Look at" paths)
    ("list_symbols" "Outline" path)
    ("buffer_outline" "Outline" path)
    ("project_map" "Outline" path ("like %s" pattern))
    ("project_files" "List files" ("in %s" path) ("like %s" pattern))
    ("search_content" "Search" (quoted pattern) ("in %s" path) ("in %s" glob))
    ("find_definition" "Find" ("the definition of %s" symbol))
    ("find_references" "Find" ("references to %s" symbol))
    ("recall_result" "Recall" (or handle "the work log") ("lines like %s" (quoted pattern)))
    ("run_command" "Run" command ("in %s" cwd))
    ("compile" "Compile" command)
    ("eval_sexp" "Evaluate" code)
    ("edit_file" "Edit" path)
    ("multi_edit" "Edit" edited)
    ("create_file" "Create" path)
    ("rename_file" "Rename" path ("→ %s" to))
    ("delete_file" "Delete" path)
    ("format_buffer" "Format" path)
    ("rename_symbol" "Rename" symbol ("→ %s" new_name))
    ("undo_edit" "Undo" ("its edit of %s" path))
    ("checkpoint" "Mark" ("a checkpoint %s" (quoted label)))
    ("restore_checkpoint" "Go back" ("to checkpoint %s" checkpoint))
    ("get_diagnostics" "Check" path ("for %s" severity))
    ("elisp_docs" "Look up" name)
    ("list_buffers" "List buffers" ("like %s" pattern))
    ("show_in_emacs" "Show" path lines handle title)
    ("fetch_url" "Fetch" url)
    ("web_search" "Search the web" ("for %s" (quoted query)))
    ("ask_user" "Asked:" question)
    ("todo_write" "Update the tasks")
    ("session_complete" "Finish")
    ("vcs_status" "Git status")
    ("vcs_diff" "Git diff" revision path)
    ("vcs_log" "Git log" path)
    ("vcs_show" "Git show" revision path)
    ("vcs_blame" "Git blame" path lines)
    ("mem_save" "Remember" (quoted title))
    ("mem_delete" "Forget" ("memory #%s" id))
    ("mem_get_observation" "Read" ("memory #%s" id))
    ("mem_search" "Search memory" ("for %s" (quoted query)))
    ("mem_context" "Read" ("the latest memories %s" project))
    ("mem_timeline" "Read" ("memories around #%s" id))
    ("mem_stats" "Count memories")
    ("context_pack" "Pack memories" ("about %s" (quoted query)))
    ("sdd_context_check" "Check" ("the documents for %s" (quoted change_description)))
    ("sdd_get_context" "Read the specification" stage)
    ("tool_help" "Look up" (or name "the MCP servers")))
  "Words of the lines of tools: lists of tool, verb, and parts.
A part is the name of an argument; (quoted NAME); (or PART TEXT); (FORMAT
PART), left out where PART is missing; or `lines', `paths' or `edited', see
`efrit-line--part'.")

(defun efrit-line-text (use)
  "Return a line about USE, an `efrit-use': what is done, and what came of it."
  (concat (efrit-line-words use) (efrit-line-figures use)))

(defun efrit-line-words (use &optional columns)
  "Return the line about USE without its tokens and its handle.
With COLUMNS, shorten what USE acts on so that the line fits them, if it can."
  (let* ((gist (efrit-line--gist use))
         (begin (concat (efrit-line--sign use)
                        (pcase (efrit-line-fate use)
                          ('denied (propertize "Denied: " 'face 'efrit-failed))
                          ('stopped (propertize "Stopped: " 'face 'efrit-failed)))))
         (verb (efrit-line--verb use))
         (end (concat (if (string-empty-p gist) "" (efrit-line--gist-text use gist))
                      (efrit-line--time use)))
         (room (if columns
                   (- columns (string-width begin) (string-width verb) (string-width end) 1)
                 efrit-line--most-columns))
         (object (truncate-string-to-width
                  (efrit-line--object use)
                  (max efrit-line--least-columns (min room efrit-line--most-columns))
                  nil nil "…")))
    (concat begin verb
            (if (or (string-empty-p verb) (string-empty-p object)) "" " ")
            (propertize object 'face 'efrit-arguments)
            end)))

(defun efrit-line-figures (use)
  "Return the tokens and the handle of the result of USE, or \"\" without a result."
  (let* ((result (efrit-use-result use))
         (tokens (plist-get result :tokens))
         (handle (plist-get result :handle)))
    (propertize (concat (if tokens (format "  %s tokens" (efrit-show-tokens tokens)) "")
                        (if handle (concat "  " handle) ""))
                'face 'efrit-figures)))

(defun efrit-line-fate (use)
  "Return how USE ended, a symbol, or nil if it has not ended.
The symbol is `done', `failed', `denied' or `stopped'."
  (let ((result (efrit-use-result use)))
    (cond ((equal (plist-get result :ending) "denied") 'denied)
          ((equal (plist-get result :ending) "stopped") 'stopped)
          ((not (eq (efrit-use-state use) 'done)) nil)
          ((null result) 'stopped)
          ((equal (plist-get result :status) "error") 'failed)
          (t 'done))))

(defun efrit-line-reading-p (use)
  "Return non-nil if USE succeeded, and its tool can only read."
  (and (eq (efrit-line-fate use) 'done)
       (member (efrit-use-name use) efrit-line--reading)))

(defun efrit-line-group (group)
  "Return a line about GROUP, a list of `efrit-use', without their tokens.
An example is \"Read 5 files, searched 2 times\"."
  (let ((counts nil))
    (dolist (use group)
      (let ((count (or (cdr (assoc (efrit-use-name use) efrit-line--counted))
                       '("looked something up" nil))))
        (setf (alist-get count counts nil nil #'equal)
              (cl-adjoin (efrit-line--counted-thing use)
                         (alist-get count counts nil nil #'equal) :test #'equal))))
    (let ((text (mapconcat (pcase-lambda (`((,verb ,noun) . ,things))
                             (efrit-line--count verb noun (length things)))
                           (nreverse counts) ", ")))
      (concat (upcase (substring text 0 1)) (substring text 1)))))

(defun efrit-line-group-tokens (group)
  "Return the number of tokens of all results of GROUP, a list of `efrit-use'."
  (cl-loop for use in group sum (or (plist-get (efrit-use-result use) :tokens) 0)))

(defun efrit-line-quote (text)
  "Return TEXT on one line as it may stand in a line of ours.
Hidden characters are visible; no dot between blanks can be taken for ours."
  (let ((text (efrit-trim text)))
    (string-replace
     " · " " <U+00B7> "
     (efrit-permissions-visible
      (replace-regexp-in-string "[ \t]*\n[ \t\n]*" "⏎"
                                (substring text 0 (min (length text) efrit-line--most-read))
                                t t)
      t))))

(defun efrit-line--count (verb noun number)
  "Return VERB with NUMBER of NOUN; with \"times\" if NOUN is nil."
  (cond (noun (format "%s %s" verb (efrit-count-text number noun)))
        ((= number 1) verb)
        (t (format "%s %d times" verb number))))

(defun efrit-line--counted-thing (use)
  "Return what `efrit-line-group' counts once in USE: the path of a file, or USE."
  (or (and (member (efrit-use-name use) '("read_file" "read_image" "list_symbols" "buffer_outline"))
           (plist-get (ignore-errors (efrit-json-plist (efrit-use-arguments use))) :path))
      use))

(defun efrit-line--sign (use)
  "Return the sign that begins the line of USE, by the state of USE."
  (pcase (or (efrit-line-fate use) (efrit-use-state use))
    ('done (propertize "• " 'face 'efrit-done))
    ((or 'failed 'denied 'stopped) (propertize "✗ " 'face 'efrit-failed))
    ('asking (propertize "? " 'face 'efrit-question))
    (_ (propertize "… " 'face 'efrit-busy))))

(defun efrit-line--verb (use)
  "Return the verb of USE, or the name of its tool; \"\" for a denied command."
  (let ((name (efrit-use-name use)))
    ;; Behind "Denied:" a command speaks for itself.
    (if (and (equal name "run_command") (eq (efrit-line-fate use) 'denied))
        ""
      (propertize (or (cadr (assoc name efrit-line--words)) (efrit-line--tool-words name))
                  'face 'efrit-tool))))

(defun efrit-line--tool-words (name)
  "Return words for the tool NAME; that of an MCP server stands behind its server."
  (efrit-line-quote
   (pcase (efrit-show--server-and-tool name)
     (`(,server ,tool) (concat server ": " (string-replace "_" " " tool)))
     (_ name))))

(defun efrit-line--object (use)
  "Return what USE acts on, on one line."
  (let ((given (ignore-errors (efrit-json-plist (efrit-use-arguments use))))
        (words (assoc (efrit-use-name use) efrit-line--words)))
    (if words
        (string-join (delq nil (mapcar (lambda (part) (efrit-line--part part given)) (cddr words)))
                     " ")
      (or (efrit-line--main-argument given) ""))))

(defun efrit-line--part (part given)
  "Return PART of a line as text from the arguments GIVEN; nil: it is missing.
PART is as in `efrit-line--words'."
  (pcase part
    ('lines (efrit-line--range given))
    ('paths (efrit-line--list (plist-get given :paths)))
    ('edited (efrit-line--list (seq-uniq (mapcar (lambda (edit) (plist-get edit :path))
                                                 (plist-get given :edits)))))
    (`(or ,inner ,text) (or (efrit-line--part inner given) text))
    (`(quoted ,name) (when-let* ((text (efrit-line--part name given)))
                       (format "\"%s\"" text)))
    (`(,format ,inner) (when-let* ((text (efrit-line--part inner given)))
                         (format format text)))
    (_ (efrit-line--value (plist-get given (intern (format ":%s" part)))))))

(defun efrit-line--value (value)
  "Return VALUE, an argument, as text on one line, or nil if it has no text."
  (cond ((stringp value) (and (not (string-blank-p value)) (efrit-line-quote value)))
        ((numberp value) (number-to-string value))))

(defun efrit-line--list (values)
  "Return VALUES, a sequence of strings, on one line; nil for none."
  (let ((texts (delq nil (mapcar #'efrit-line--value values))))
    (and texts (string-join texts ", "))))

(defun efrit-line--range (given)
  "Return the lines that the arguments GIVEN ask for, such as \"1-80\", or nil."
  (let ((start (plist-get given :start_line))
        (end (plist-get given :end_line))
        (around (plist-get given :around_line))
        (tail (plist-get given :tail)))
    (cond ((and start end) (format "%s-%s" start end))
          (start (format "from line %s" start))
          (end (format "1-%s" end))
          (around (format "around line %s" around))
          (tail (format "the last %s lines" tail)))))

(defun efrit-line--main-argument (given)
  "Return the main one of the arguments GIVEN, of an unknown tool, or nil."
  (or (cl-loop for name in '(:path :file :command :query :pattern :url :name :title)
               thereis (efrit-line--value (plist-get given name)))
      (cl-loop for (_ value) on given by #'cddr
               thereis (efrit-line--value value))))

(defun efrit-line--gist (use)
  "Return what came of USE in a few words, or \"\"."
  (let ((gist (or (plist-get (efrit-use-result use) :gist) "")))
    (truncate-string-to-width
     (efrit-line-quote
      (cond ((efrit-line--repeats-range-p use gist) "")
            ((not (string-empty-p gist)) gist)
            ((eq (efrit-line-fate use) 'failed) (efrit-line--problem use))
            ((and (null (efrit-use-result use)) (efrit-use-plan use))
             (efrit-plan-gist (efrit-use-plan use)))
            (t "")))
     efrit-line--most-gist nil nil "…")))

(defun efrit-line--repeats-range-p (use gist)
  "Return non-nil if GIST only counts the lines that USE asked for by numbers."
  (and (string-match-p "\\`[0-9,]+ lines?\\'" gist)
       (efrit-line--range (ignore-errors (efrit-json-plist (efrit-use-arguments use))))))

(defun efrit-line--problem (use)
  "Return the first line of the result of USE, which failed, in short.
Leave out our mark, the name of what USE acts on, and the advice to the model."
  (let ((text (efrit-trim (or (plist-get (efrit-use-result use) :text) ""))))
    (thread-last (efrit-trim (car (split-string text "\n")))
      (string-remove-prefix "§ ")
      (string-remove-prefix (concat (efrit-line--object use) ": "))
      (replace-regexp-in-string "; .*" ""))))

(defun efrit-line--gist-text (use gist)
  "Return GIST, what came of USE, as the end of its line.
If USE did not run to its end, GIST says who is the reason, and why."
  (cond ((memq (efrit-line-fate use) '(denied stopped)) (propertize (format " (%s)" gist) 'face 'efrit-figures))
        ((equal (efrit-use-name use) "ask_user") (concat (propertize " → " 'face 'efrit-figures)
                                                         (propertize gist 'face 'efrit-said)))
        ((efrit-line--counts-p gist) (concat " " (propertize gist 'face 'efrit-figures)))
        (t (concat (propertize " · " 'face 'efrit-figures)
                   (propertize gist 'face (if (efrit-line--bad-p gist) 'efrit-failed
                                            'efrit-figures))))))

(defun efrit-line--counts-p (gist)
  "Return non-nil if GIST counts lines of a diff, such as \"+2 −0\"."
  (string-match-p "\\`\\+[0-9]+ −[0-9]+" gist))

(defun efrit-line--bad-p (gist)
  "Return non-nil if GIST is that of a command that failed."
  (string-match-p "\\`\\(?:exit [1-9]\\|ended \\)" gist))

(defun efrit-line--time (use)
  "Return how long USE ran, or \"\" if that was short or is not known."
  (let ((seconds (efrit-use-seconds use)))
    (if (and seconds (>= seconds efrit-line--slow)
             (not (equal (efrit-use-name use) "ask_user"))
             (memq (efrit-line-fate use) '(done failed)))
        (propertize (format " · %.1f s" seconds) 'face 'efrit-figures)
      "")))

;;; Bars

;; A bar is text, of block characters in eighths of a column.  In a graphical
;; frame an image of the same width stands in its place.  The image takes its
;; colour from the text's face, so that it follows the theme.

(declare-function svg-create "svg" (width height &rest args))
(declare-function svg-rectangle "svg" (svg x y width height &rest args))
(declare-function svg-image "svg" (svg &rest props))

(defvar efrit-bar--images (make-hash-table :test #'equal)
  "The images of bars: a hash table from lists (WIDTH HEIGHT FILLED) in pixels.")

(defconst efrit-bar--most-images 500
  "Most images that are kept.")

(defun efrit-show-bar (used limit width face)
  "Return a bar of WIDTH columns in FACE, filled in the ratio of USED to LIMIT.
Anything used fills a little; less than LIMIT does not fill the whole bar."
  (let* ((ratio (if (> limit 0) (min 1.0 (/ (float used) limit)) 0.0))
         (text (propertize (efrit-bar--blocks ratio width) 'face face)))
    (if (and (display-graphic-p) (image-type-available-p 'svg))
        (propertize text 'display (efrit-bar--image ratio width))
      text)))

(defun efrit-bar--blocks (ratio width)
  "Return a bar of WIDTH columns, its ends included, filled to RATIO, as text."
  (let* ((inside (max 1 (- width 2)))
         (eighths (efrit-bar--filled ratio (* 8 inside)))
         (part (% eighths 8))
         (blocks (concat (make-string (/ eighths 8) ?█)
                         (if (zerop part) "" (substring "▏▎▍▌▋▊▉" (1- part) part)))))
    (concat "▕" blocks (make-string (- inside (length blocks)) ?\s) "▏")))

(defun efrit-bar--filled (ratio most)
  "Return the number of MOST parts of a bar to fill for RATIO, from 0 to 1."
  (cond ((<= ratio 0) 0)
        ((>= ratio 1) most)
        (t (max 1 (min (1- most) (round (* ratio most)))))))

(defun efrit-bar--image (ratio columns)
  "Return an image of a bar as wide as COLUMNS, filled to RATIO; keep it."
  (let* ((width (* columns (frame-char-width)))
         (height (max 4 (round (* 0.55 (frame-char-height)))))
         (key (list width height (efrit-bar--filled ratio width))))
    (when (> (hash-table-count efrit-bar--images) efrit-bar--most-images)
      (clrhash efrit-bar--images))
    (or (gethash key efrit-bar--images)
        (puthash key (apply #'efrit-bar--draw key) efrit-bar--images))))

(defun efrit-bar--draw (width height filled)
  "Return an image of WIDTH by HEIGHT pixels with a bar of FILLED pixels."
  (require 'svg)
  (let ((svg (svg-create width height))
        (radius (/ height 4.0)))
    ;; Emacs replaces currentColor by the foreground of the face.
    (svg-rectangle svg 0 0 width height :rx radius :fill "currentColor" :fill-opacity 0.22)
    (when (> filled 0)
      (svg-rectangle svg 0 0 filled height :rx radius :fill "currentColor"))
    (svg-image svg :ascent 'center :scale 1)))

;;; Tiers

;; A snapshot of the budget as lines, for the budget view and the preview.

(defconst efrit-budget-bars--margin 36
  "Most columns of a line besides its bar.")

(defun efrit-budget-bars (budget &optional columns)
  "Return text about BUDGET, in lines of at most COLUMNS: tiers, total, estimate."
  (string-join
   (append (efrit-budget-bars-tiers budget columns)
           (list (efrit-budget-bars--wrap (efrit-budget-bars--remaining-text budget) columns)
                 (efrit-budget-bars--wrap (efrit-budget-bars-error budget) columns)))
   "\n"))

(defun efrit-budget-bars-tiers (budget &optional columns)
  "Return lines with a bar for each tier of BUDGET's prompt, and for the total.
Only the total has the colour of the gauge: a tier may use what others leave.
Shorten the bars so that the lines fit COLUMNS, if that is non-nil."
  (let ((width (if columns
                   (max 3 (min efrit-budget-bars-width (- columns efrit-budget-bars--margin)))
                 efrit-budget-bars-width)))
    (append
     (cl-loop for (name tier) on (plist-get budget :tiers) by #'cddr
              for used = (or (plist-get tier :used) 0)
              for limit = (or (plist-get tier :limit) 0)
              unless (eq name :response)
              collect (efrit-budget-bars--line (efrit-budget-bars--tier-name name) used limit
                                               width 'efrit-gauge-part
                                               (if (> used limit)
                                                   (concat "+" (efrit-show-tokens (- used limit)))
                                                 "")))
     (list (efrit-budget-bars--line "whole prompt" (or (plist-get budget :used) 0)
                                    (or (plist-get budget :prompt_limit) 0)
                                    width (efrit-show-fill-face budget) "")))))

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

(defun efrit-budget-bars--tier-name (name)
  "Return the name for the person of the tier NAME, a keyword."
  (if (eq name :user_message)
      "requests"
    (string-replace "_" " " (substring (symbol-name name) 1))))

(defun efrit-budget-bars--line (name used limit width face more)
  "Return a line for NAME with a bar of WIDTH columns in FACE: USED of LIMIT, MORE."
  (string-trim-right
   (format "  %-12s %s %5s / %-5s %s"
           name (efrit-show-bar used limit width face)
           (efrit-show-tokens used) (efrit-show-tokens limit) more)))

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

;; While a session works, a lighter among those of the minor modes says so, in
;; the buffers of its project.  When a session in no visible window asks or ends,
;; the echo area or the desktop says so; no window changes.

(declare-function notifications-get-capabilities "notifications" (&optional bus))
(declare-function notifications-notify "notifications" (&rest params))

(defvar efrit-presence-loops nil
  "The loops that are working; mode lines have a lighter while there are any.")

(defvar efrit-presence--shown nil
  "The states of the working loops that the mode lines show.")

;; The lighter appears as that of a minor mode, so that packages which shorten
;; or hide those of minor modes find it.
(add-to-list 'minor-mode-alist '(efrit-presence-loops (:eval (efrit-presence-lighter))))

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
  "Update the mode lines if the states of the working loops have changed."
  (setq efrit-presence-loops (efrit-presence-working))
  (let ((states (mapcar (lambda (loop)
                          (list loop (efrit-loop-state loop) (efrit-show-asks-p loop)))
                        efrit-presence-loops)))
    (unless (equal states efrit-presence--shown)
      (setq efrit-presence--shown states)
      (force-mode-line-update t))))

(defun efrit-presence-lighter ()
  "Return the lighter of this buffer: the state of a working session, or \"\".
A question comes first.  A click shows the session."
  (let* ((loops (seq-filter #'efrit-presence--concerns-p efrit-presence-loops))
         (asking (seq-find #'efrit-show-asks-p loops))
         (loop (or asking (car loops))))
    (if (null loop)
        ""
      (concat " "
              (propertize (concat "efrit:"
                                  (efrit-show-activity loop)
                                  (if (cdr loops) (format "(of %d)" (length loops)) ""))
                          'face (if asking 'efrit-question 'efrit-busy)
                          'mouse-face 'mode-line-highlight
                          'help-echo (format "%s\nmouse-1: show the session"
                                             (efrit-permissions-visible
                                              (or (efrit-loop-title loop)
                                                  (efrit-loop-project loop))
                                              t))
                          'local-map (make-mode-line-mouse-map
                                      'mouse-1 (lambda ()
                                                 (interactive)
                                                 (funcall efrit-do-show-function loop))))))))

(defun efrit-presence--concerns-p (loop)
  "Return non-nil if the mode line of this buffer is to tell about LOOP.
A session's own buffer says elsewhere in its mode line what it does."
  (and (not (and (eq loop efrit-loop-here) (derived-mode-p 'efrit-session-view-mode)))
       (pcase efrit-presence-in-mode-line
         ('project (string-prefix-p (efrit-loop-root loop)
                                    (if (file-remote-p default-directory)
                                        default-directory
                                      (expand-file-name default-directory))))
         (everywhere everywhere))))

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
                 (notifications-notify :title "Efrit" :app-name "Emacs"
                                       :body (efrit-presence--notification-body text))))
    (message "Efrit: %s" text)))

(defun efrit-presence--notification-body (text)
  "Return TEXT as the body of a notification, without characters of markup."
  (if (memq :body-markup (notifications-get-capabilities))
      (replace-regexp-in-string
       "[&<>]" (lambda (char) (cdr (assoc char '(("&" . "&amp;") ("<" . "&lt;") (">" . "&gt;")))))
       text t t)
    text))

(provide 'efrit-status)
;;; efrit-status.el ends here
