;;; efrit-view.el --- The view of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Shows each session in a buffer, event by event.

;;; Code:

(require 'efrit)
(require 'efrit-ask)
(require 'efrit-backend)
(require 'efrit-do)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-markdown)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-tools)
(require 'efrit-transcript)

;;; Output of running tools

;; The sidecar sends the end of a running command's output a few times a
;; second; the observers of the loop get it as the event (output ID TEXT).  A
;; single tool can be stopped: the model continues with its partial result.

(defconst efrit-output--width 200
  "Most columns of an output line that are shown.")

(defun efrit-output-text (output)
  "Return the last `efrit-output-lines' of OUTPUT, a string or nil, for display."
  (let ((lines (split-string (efrit-trim-right (or output "")) "\n")))
    (if (or (zerop efrit-output-lines) (equal lines '("")))
        ""
      (mapconcat (lambda (line)
                   (concat (propertize "    │ " 'face 'efrit-note)
                           (propertize (truncate-string-to-width line efrit-output--width
                                                                 nil nil "…")
                                       'face 'efrit-delivered)
                           "\n"))
                 (last lines efrit-output-lines) ""))))

;;;; Commands

;;;###autoload
(defun efrit-stop-tool ()
  "Stop the tool at point, or the only one that is running.
The model continues with the tool's partial result."
  (interactive)
  (let* ((loop (efrit-loop-current))
         (use (efrit-output--stoppable-use loop))
         (name (efrit-use-name use))
         (call (efrit-use-call use)))
    (cond
     ((null call)
      (efrit-sidecar-request-async
       'tools/stop (list :session_id (efrit-loop-id loop) :tool_use_id (efrit-use-id use))
       :success (lambda (answer)
                  (unless (eq (plist-get answer :stopped) t)
                    (message "%s has already ended" name)))
       :error (lambda (err) (message "%s was not stopped: %s" name (efrit-error-text err)))))
     ((efrit-tool-call-stop call) (efrit-tool-stop call))
     (t (user-error "%s cannot be stopped alone; `efrit-stop' stops the session" name)))))

(defun efrit-output--notify (call params)
  "Notify the observers of CALL's loop of the output in PARAMS, if there is any."
  (when-let* ((output (plist-get (plist-get params :value) :output))
              (session (and call (plist-get (efrit-call-params call) :session_id)))
              (loop (efrit-loop-of-session session)))
    (efrit-loop-notify loop 'output (plist-get params :tool_use_id) output)))

(defun efrit-output--running-uses (loop)
  "Return a list of what is running in LOOP, each an `efrit-use'."
  (seq-filter (lambda (use) (eq (efrit-use-state use) 'running)) (efrit-loop-run loop)))

(defun efrit-output--stoppable-use (loop)
  "Return the running use at point, or the only one in LOOP; else signal an error."
  (let* ((running (efrit-output--running-uses loop))
         (item (efrit-item-at (point)))
         (here (and item (efrit-item-data item))))
    (cond ((null running) (user-error "No tool is running"))
          ((memq here running) here)
          ((cdr running) (user-error "%d tools are running; move point to the one to stop" (length running)))
          (t (car running)))))

(add-hook 'efrit-sidecar-progress-functions #'efrit-output--notify)

;;; The live part

;; The live part of a session's buffer: tasks, queued messages, questions, and
;; the state of the loop.  It is replaced whenever one of these changes.

(defvar-local efrit-live--next-retry nil
  "Cons of the time of the next retry, in seconds, and its reason; or nil.")

(defvar-local efrit-live--timer nil
  "The timer that counts down to a retry, or nil.")

(defconst efrit-live--todos
  '(("done" "☑ " efrit-done) ("doing" "▶ " efrit-busy) ("pending" "☐ " default))
  "Appearance of todo items: lists of status, sign and face.")

(defun efrit-live-refresh ()
  "Show the current state of this buffer's loop in the live part."
  (when-let* ((loop efrit-loop-here))
    ;; Right-to-left letters would rearrange the text of a command.
    (setq bidi-display-reordering (not (efrit-run-pending-use loop)))
    (let ((question (efrit-ask-text loop)))
      (efrit-transcript-set-live
       (concat "\n"
               (efrit-live--todo-text (efrit-loop-todos loop))
               (efrit-live--queue-text loop)
               ;; An empty line between tasks and question.
               (and (efrit-loop-todos loop) question "\n")
               question
               (efrit-live--state-text loop question)
               (and (efrit-loop-no-key loop) (efrit-live--ways-text))
               "\n")))))

(defun efrit-live-fit (window)
  "Lay out the open question for the size of WINDOW, which has changed."
  (efrit-with-live-buffer (window-buffer window)
    (when (and efrit-loop-here
               (efrit-ask-position)
               (not (efrit-ask-fits-p)))
      (efrit-live-refresh))))

(defun efrit-live-count-down (seconds problem)
  "Show that a retry follows in SECONDS, because of PROBLEM, a string."
  (efrit-live-end-count)
  (setq efrit-live--next-retry (cons (+ (float-time) seconds) problem)
        efrit-live--timer
        (efrit-run-at-time 1 1 (let ((buffer (current-buffer)))
                                 (lambda ()
                                   (efrit-transcript-in buffer (efrit-live-refresh))))))
  (efrit-live-refresh))

(defun efrit-live-end-count ()
  "Stop the count-down to a retry."
  (setq efrit-live--next-retry nil)
  (efrit-stop-timer efrit-live--timer))

(defun efrit-live-unqueue (loop blocks)
  "Remove BLOCKS, a queued message, from LOOP, and put its text into the reply box.
Text that is in the box moves behind the text of the message."
  (unless (efrit-loop-queued-p loop blocks)
    (user-error "This message was already sent"))
  (setf (efrit-loop-queue loop) (delq blocks (efrit-loop-queue loop)))
  (save-excursion
    (goto-char efrit-transcript-box)
    (insert (efrit-live-message-text blocks)
            (if (= efrit-transcript-box (point-max)) "" "\n")))
  (efrit-live-refresh)
  (goto-char (point-max)))

(defun efrit-live-message-text (blocks)
  "Return the text of BLOCKS, a message of the person, without its context."
  (or (plist-get (car (last blocks)) :text) ""))

(defun efrit-live--todo-text (todos)
  "Return TODOS, a vector of plists, as lines of text."
  (mapconcat (lambda (todo)
               (pcase-let ((`(,_ ,sign ,face)
                            (or (assoc (plist-get todo :status) efrit-live--todos)
                                '(nil "☐ " default))))
                 (propertize (format "%s%s\n" sign (plist-get todo :content)) 'face face)))
             todos ""))

(defun efrit-live--queue-text (loop)
  "Return the messages of LOOP that the sidecar does not have yet, as lines."
  (let ((sign (if (efrit-loop-resting-p loop) "not sent: " "queued: ")))
    (mapconcat (lambda (blocks)
                 (concat (propertize (concat "⧗ " sign) 'face 'efrit-note)
                         (propertize (efrit-live-message-text blocks) 'face 'efrit-said)
                         (and (efrit-loop-queued-p loop blocks)
                              (concat "  " (efrit-ask-button
                                            "[take back]"
                                            (lambda ()
                                              (interactive)
                                              (efrit-live-unqueue loop blocks)))))
                         "\n"))
               (reverse (efrit-loop-queue loop))
               "")))

(defun efrit-live--state-text (loop question)
  "Return the line with the state of LOOP, and with the buttons for that state.
QUESTION is the text of the open question, or nil."
  (pcase-let* ((state (efrit-loop-state loop))
               (`(,face . ,buttons) (efrit-live--buttons state)))
    ;; The question whether to go on has buttons of its own.
    (when (and (eq state 'limited) question)
      (setq buttons nil))
    (when (and (eq state 'running) (= 1 (length (efrit-output--running-uses loop))))
      (setq buttons (append buttons '(("stop only the tool" efrit-stop-tool)))))
    (concat (propertize (concat "● " (efrit-live--activity-text loop state)) 'face face)
            (mapconcat (pcase-lambda (`(,label ,command))
                         (concat "  " (efrit-ask-button (concat "[" label "]") command)))
                       buttons "")
            "\n")))

(defun efrit-live--activity-text (loop state)
  "Return a text about what LOOP, in STATE, is doing or waiting for."
  (cond
   ((and (eq state 'retrying) efrit-live--next-retry)
    (format "%s; again in %d s" (cdr efrit-live--next-retry)
            (max 0 (ceiling (- (car efrit-live--next-retry) (float-time))))))
   ((and (eq state 'running) (or (efrit-run-pending-use loop) (efrit-ask-open-p)))
    "waiting for your answer")
   (t (efrit-show-state state))))

(defconst efrit-live--ways
  '(("add a key" efrit-add-key "opens the file of keys at the line to fill in")
    ("use a local server" efrit-use-local-server "asks for its address and model; needs no key")
    ("run the demo" efrit-demo "shows two minutes with a scripted model; needs no key"))
  "Ways on without a key: lists of a label, a command and what that does.")

(defun efrit-live--ways-text ()
  "Return lines with buttons for `efrit-live--ways'."
  (concat (propertize (substitute-command-keys
                       "  Your message is kept.  There are three ways on; \\[efrit-ask-go] goes there:\n")
                      'face 'efrit-note)
          (mapconcat (pcase-lambda (`(,label ,command ,use))
                       (concat "  " (propertize (efrit-ask-button (concat "[" label "]") command)
                                                'efrit-way t)
                               (propertize (format "  %s\n" use) 'face 'efrit-note)))
                     efrit-live--ways "")))

(defun efrit-live--buttons (state)
  "Return (FACE . BUTTONS) for STATE; BUTTONS are lists (LABEL COMMAND)."
  (pcase state
    ('idle '(efrit-done))
    ('retrying '(efrit-busy ("retry now" efrit-retry) ("stop" efrit-stop)))
    ('failed '(efrit-failed ("try again" efrit-retry)))
    ('cut-short '(efrit-busy ("continue" efrit-continue)))
    ('limited '(efrit-busy ("continue" efrit-continue)))
    ((or 'refused 'window-full) '(efrit-failed))
    (_ '(efrit-busy ("stop" efrit-stop)))))

;;; Events

;; Each event of a loop adds an item to its session's buffer, or updates one:
;; text and thinking grow while they stream, a tool's line shows its state, a
;; reply ends in a line with its cost.

(defvar-local efrit-view--streaming-items nil
  "Items of the reply that is streaming: an alist from blocks to items.")

(defvar-local efrit-view--uses nil
  "Items of tool uses: a hash table from the uses' ids to items.")

(defvar-local efrit-view--outputs nil
  "Latest output of running tools: a hash table from the uses' ids to texts.")

(defvar-local efrit-view--thinking-time 0
  "Time, a float, when the length of streaming thinking was last updated.")

(defvar-local efrit-view--cost nil
  "The item with the cost of the latest reply, or nil.")

(defvar-local efrit-view--dollars nil
  "Cost of the session in dollars when it was last known, or nil.")

(defun efrit-view-events-set-up (loop)
  "Prepare this buffer for the events of LOOP."
  (setq efrit-view--uses (make-hash-table :test #'equal)
        efrit-view--outputs (make-hash-table :test #'equal)
        efrit-view--dollars (or (plist-get (efrit-loop-usage loop) :dollars)
                                (and (zerop (efrit-loop-turn loop))
                                     (not (efrit-loop-stale loop))
                                     0))))

(defun efrit-view-observe (loop event)
  "Show EVENT of LOOP in this buffer."
  (pcase event
    (`(piece ,block ,string) (efrit-view--append-piece block string))
    (`(begin ,block) (efrit-view--begin-block block))
    (`(end ,block) (efrit-view--end-block block))
    (`(,(or 'use 'ask) ,use) (efrit-view--update-use use) (efrit-live-refresh))
    (`(note ,text) (efrit-view-note (concat "— " text)))
    (`(output ,id ,text) (efrit-view--show-output id text))
    (`(arrived ,messages) (efrit-view--drop-streamed) (mapc #'efrit-view-message messages))
    (`(begun ,rewritten ,notes) (efrit-view--show-turn-begin loop rewritten notes))
    (`(ended ,reply) (efrit-view--show-reply-end loop reply))
    (`(price ,dollars) (efrit-view--show-price dollars))
    (`(paid-anew ,loss) (efrit-view-note (concat "— " (efrit-show-paid-anew loss))))
    (`(again) (efrit-live-end-count) (efrit-view--drop-streamed) (efrit-live-refresh))
    (`(retry ,seconds ,problem)
     (efrit-live-count-down seconds (plist-get problem :message)))
    (`(question ,call ,question ,options)
     (efrit-ask-open call question options)
     (efrit-live-refresh))
    (`(failing ,use ,count)
     (efrit-view-note (concat "! " (efrit-show-failing use count)
                              (substitute-command-keys "; \\<efrit-session-view-mode-map>\
\\[efrit-stop] stops it"))
                      'efrit-busy))
    (`(complete ,summary) (efrit-view-note (concat "✓ " summary) 'efrit-done))
    (`(state ,state ,old) (efrit-view--show-state loop state old))
    (`(,(or 'todos 'queued 'chosen 'answers) . ,_) (efrit-live-refresh))))

(defun efrit-view-message (blocks)
  "Add an item for BLOCKS, a message of the person, a list of plists."
  (let ((context (seq-remove #'efrit-attach-heading (butlast blocks))))
    (efrit-item-add 'message #'efrit-view--message-head :data (efrit-live-message-text blocks))
    (dolist (block (seq-filter #'efrit-attach-heading (butlast blocks)))
      (efrit-view--add-attached (efrit-attach-heading block) (plist-get block :text)))
    (setq context (delq nil (mapcar (lambda (block) (plist-get block :text)) context)))
    (when context
      (efrit-view--add-folded 'context "Context" (string-join context "\n\n") 'efrit-note))))

(defun efrit-view--message-head (item)
  "Return the text of ITEM, a message."
  (concat "\n" (efrit-exchange-mark (propertize "You\n" 'face 'efrit-person))
          (propertize (efrit-end-line (efrit-item-data item)) 'face 'efrit-said)))

(defun efrit-view--add-attached (heading text)
  "Add a folded item for TEXT, an attached file, which HEADING describes."
  (efrit-item-add 'attached
                  (lambda (item)
                    (propertize (format "%s Attached %s\n" (if (efrit-item-open item) "▾" "▸")
                                        (efrit-permissions-visible heading t))
                                'face 'efrit-note))
                  :data text
                  :body (lambda (_) (efrit-view--body-text text 'efrit-note))))

(defun efrit-view-text (text &optional source)
  "Add an item for TEXT, Markdown written by the model, and return it.
SOURCE is a function of the item that returns the text so far, if it streams."
  (let ((item (efrit-item-add 'text "\n" :data (or source text))))
    (efrit-markdown-insert item (efrit-end-line text))
    item))

(defun efrit-view-thinking (text)
  "Add a folded item for TEXT, the model's thinking, or a function returning it."
  (efrit-view--add-folded 'thinking "Thinking" text 'efrit-thinking))

(defun efrit-view-use (use)
  "Add an item for USE, an `efrit-use', and return it."
  (puthash (efrit-use-id use)
           (efrit-item-add 'use #'efrit-view--use-head :body #'efrit-view--use-body :data use
                           :sought #'efrit-view--use-sought)
           efrit-view--uses))

(defun efrit-view-item-text (item)
  "Return the text of ITEM for `efrit-copy'."
  (pcase (efrit-item-kind item)
    ('use (or (plist-get (efrit-use-result (efrit-item-data item)) :text)
              (efrit-ask-arguments-text (efrit-item-data item))))
    ((or 'message 'note 'context 'attached 'text 'thinking) (efrit-trim (efrit-item-text item)))
    (_ (efrit-trim (buffer-substring-no-properties (efrit-item-start item)
                                                   (efrit-item-end item))))))

(defun efrit-view-note (text &optional face)
  "Add an item for TEXT, a note of efrit itself, in FACE."
  (efrit-item-add 'note (propertize (concat "\n" (efrit-end-line text))
                                    'face (or face 'efrit-note))
                  :data text))

;;;; Replies

(defun efrit-view--begin-block (block)
  "Add an item for BLOCK, a tool use that begins to stream.
The item of another block is added with its first piece."
  (when (equal (efrit-block-type block) "tool_use")
    (efrit-view--note-streaming block (efrit-view-use
                                       (efrit-use-create :id (efrit-block-id block)
                                                         :name (efrit-block-name block)
                                                         :arguments "{}" :state 'written)))))

(defun efrit-view--begin-text (block string)
  "Add an item for BLOCK, text that begins to stream with STRING."
  (let ((item (efrit-view-text "" (lambda (_) (efrit-block-text block)))))
    (efrit-view--note-streaming block item)
    (efrit-markdown-stream item)
    (efrit-markdown-insert item string 1)))

(defun efrit-view--note-streaming (block item)
  "Record ITEM as the item of BLOCK, which is streaming."
  (push (cons block item) efrit-view--streaming-items))

(defun efrit-view--append-piece (block string)
  "Append STRING, the next part of BLOCK's text, to the item of BLOCK."
  (let ((item (alist-get block efrit-view--streaming-items)))
    (pcase (efrit-block-type block)
      ("text" (if item
                  (efrit-markdown-insert item string 1)
                (efrit-view--begin-text block string)))
      ("thinking" (cond (item (efrit-view--append-thinking item string))
                        ((not (string-blank-p string))
                         (efrit-view--note-streaming
                          block (efrit-view-thinking (lambda (_) (efrit-block-text block))))))))))

(defun efrit-view--append-thinking (item string)
  "Append STRING, streaming thinking, to ITEM.
Counting its characters takes time, so do that at most every 0.3 seconds."
  (when (efrit-item-open item)
    (efrit-item-append item (efrit-view--indent string 'efrit-thinking) 1))
  (when (> (- (float-time) efrit-view--thinking-time) 0.3)
    (setq efrit-view--thinking-time (float-time))
    (efrit-item-refresh item)))

(defun efrit-view--end-block (block)
  "Update the item of BLOCK, which is complete."
  (when-let* ((item (alist-get block efrit-view--streaming-items)))
    (pcase (efrit-block-type block)
      ("text" (efrit-markdown-stream nil))
      ("thinking" (efrit-item-refresh item))
      ("tool_use"
       (setf (efrit-use-arguments (efrit-item-data item))
             (or (efrit-block-input block) (efrit-block-text block)))
       (efrit-item-refresh item)))))

(defun efrit-view--drop-streamed ()
  "Remove the items of the reply that is streaming, which did not end."
  (pcase-dolist (`(,block . ,item) efrit-view--streaming-items)
    (efrit-item-remove item)
    (remhash (efrit-block-id block) efrit-view--uses))
  (efrit-markdown-stream nil)
  (setq efrit-view--streaming-items nil))

(defun efrit-view--show-turn-begin (loop rewritten notes)
  "Show that LOOP has begun a turn, with NOTES, a list of strings.
REWRITTEN is non-nil if the turn begins a new epoch."
  (efrit-view--drop-streamed)
  (efrit-view--fold-groups)
  (when rewritten
    (efrit-view-note (format "— epoch %d: %s —" (efrit-loop-epoch loop)
                             (efrit-show-rewrite (efrit-loop-rewrite-reasons loop)))))
  (dolist (note notes)
    (efrit-view-note (concat "— " note)))
  (efrit-live-refresh))

(defun efrit-view--show-reply-end (loop reply)
  "Show that REPLY has ended in LOOP; with `efrit-view-usage', add its cost."
  (pcase-dolist (`(,block . ,item) efrit-view--streaming-items)
    (when (equal (efrit-block-type block) "tool_use")
      (if (efrit-block-done block)
          (efrit-view--end-block block)
        (setf (efrit-use-state (efrit-item-data item)) 'done
              (efrit-use-result (efrit-item-data item)) (list :ending "stopped" :gist "cut off"))
        (efrit-item-refresh item))))
  (efrit-markdown-stream nil)
  (setq efrit-view--streaming-items nil
        efrit-view--cost (and efrit-view-usage
                              (efrit-item-add 'cost #'efrit-view--cost-head
                                              :data (list reply (efrit-loop-turn loop) nil))))
  (efrit-view--warn-of-transformations reply))

(defun efrit-view--show-price (dollars)
  "Show in the latest reply's line how far the cost has grown, to DOLLARS."
  (when (and efrit-view--cost efrit-view--dollars)
    (let ((data (efrit-item-data efrit-view--cost)))
      (setf (nth 2 data) (+ (or (nth 2 data) 0) (- dollars efrit-view--dollars))))
    (efrit-item-refresh efrit-view--cost))
  (setq efrit-view--dollars dollars))

(defun efrit-view--cost-head (item)
  "Return the line of ITEM: turn, tokens, share from cache and price of a reply."
  (pcase-let* ((`(,reply ,turn ,dollars) (efrit-item-data item))
               (read (efrit-reply-count reply "cache_read_input_tokens"))
               (prompt (+ read (efrit-reply-count reply "input_tokens")
                          (efrit-reply-count reply "cache_creation_input_tokens")))
               (miss (efrit-reply-cache-miss reply)))
    (propertize
     (concat (if (> prompt 0)
                 (format "  turn %d: %s in, %d%% from cache, %s out" turn
                         (efrit-show-tokens prompt) (round (* 100.0 read) prompt)
                         (efrit-show-tokens (efrit-reply-count reply "output_tokens")))
               (format "  turn %d: usage unknown" turn))
             (if dollars (format ", $%.4f" dollars) "")
             (if miss (concat ", cache missed: " miss) "")
             "\n")
     'face 'efrit-figures)))

(defun efrit-view--warn-of-transformations (reply)
  "Show a warning if the API changed the request of REPLY."
  (when-let* ((changed (cdr (assoc "input_transformations" (efrit-reply-extras reply)))))
    (display-warning
     'efrit (format "The API changed the request, which is a defect of efrit; report it: %s"
                    (efrit-json-text changed)))))

;;;; Tools

(defun efrit-view--update-use (use)
  "Add or update the item of USE."
  (let ((item (gethash (efrit-use-id use) efrit-view--uses)))
    (unless (eq (efrit-use-state use) 'running)
      (remhash (efrit-use-id use) efrit-view--outputs))
    (if (null item)
        (efrit-view-use use)
      (setf (efrit-item-data item) use)
      (efrit-item-refresh item))))

(defun efrit-view--show-output (id text)
  "Show TEXT, the end of the output of the running tool use ID."
  (let ((item (gethash id efrit-view--uses)))
    (when (and item
               (> efrit-output-lines 0)
               (eq (efrit-use-state (efrit-item-data item)) 'running))
      (puthash id text efrit-view--outputs)
      (efrit-item-refresh item))))

(defun efrit-view--use-head (item)
  "Return the line of ITEM, a tool use, with the latest output of its tool."
  (let* ((use (efrit-item-data item))
         (figures (efrit-line-figures use))
         (state (pcase (efrit-use-state use)
                  ('written (propertize " · being written" 'face 'efrit-figures))
                  ('running (propertize " · running" 'face 'efrit-busy))
                  ('asking (propertize " · asks you" 'face 'efrit-question))
                  (_ ""))))
    (concat (efrit-line-words use (- (car (efrit-smallest-window 80 24))
                                     (length figures) (length state) 2))
            state
            (efrit-view--at-right figures)
            "\n"
            (efrit-output-text (gethash (efrit-use-id use) efrit-view--outputs)))))

(defun efrit-view--use-body (item)
  "Return the diff or the arguments, and the result, of ITEM, a tool use."
  (let* ((use (efrit-item-data item))
         (diff (efrit-view--use-diff use))
         (text (plist-get (efrit-use-result use) :text)))
    (concat
     (if diff
         (propertize (efrit-end-line (efrit-diff-fontify (efrit-permissions-visible diff)))
                     'line-prefix "    " 'wrap-prefix "    ")
       (efrit-view--body-text (efrit-ask-arguments-text use) 'efrit-arguments))
     (if text
         (efrit-view--body-text (efrit-view--truncate text) 'efrit-delivered)
       (efrit-view--body-text (if (efrit-line-fate use) "There is no result." "No result yet.")
                              'efrit-note)))))

(defun efrit-view--use-diff (use)
  "Return the diff of the edit that USE is about, or nil if USE is no edit.
Without a plan, as in a resumed session, make it from the arguments."
  (if (efrit-use-plan use)
      (efrit-plan-text (efrit-use-plan use))
    (let* ((given (ignore-errors (efrit-json-plist (efrit-use-arguments use))))
           (edits (pcase (efrit-use-name use)
                    ("edit_file" (list given))
                    ("multi_edit" (append (plist-get given :edits) nil)))))
      (and edits
           (seq-every-p (lambda (edit)
                          (seq-every-p (lambda (name) (stringp (plist-get edit name)))
                                       '(:path :old_text :new_text)))
                        edits)
           (mapconcat (lambda (edit)
                        (efrit-diff (plist-get edit :old_text) (plist-get edit :new_text)
                                    (plist-get edit :path)))
                      edits "")))))

(defun efrit-view--at-right (figures)
  "Return FIGURES, the end of a line, at the right edge of the window."
  (if (string-empty-p figures)
      ""
    (let ((figures (string-trim-left figures)))
      (concat " " (propertize " " 'display `(space :align-to (- right ,(1+ (string-width figures)))))
              figures))))

(defun efrit-view-use-here ()
  "Return the tool use at point or the nearest one above, or nil.
Return nil as well on the line of a group of tool uses, or below it."
  (let ((place (point))
        item)
    (while (and (setq item (efrit-item-before place))
                (not (memq (efrit-item-kind item) '(use group))))
      (setq place (1- (efrit-item-start item))))
    (and item
         (eq (efrit-item-kind item) 'use)
         (efrit-item-data item))))

;;;; Groups

;; Successful reads and searches in a row fold into one line once their turn has
;; ended.  A call that failed, was denied or changed something is never folded.

(defvar-local efrit-view--folded nil
  "Marker of the last item that is part of no group to come, or nil.")

(defun efrit-view--fold-groups ()
  "Fold each row of items that became a group since the last time."
  (let ((start (if efrit-view--folded (marker-position efrit-view--folded)
                 efrit-transcript-begin)))
    (when-let* ((last (efrit-view--fold-between start efrit-transcript-end)))
      (setq efrit-view--folded (copy-marker (efrit-item-start last))))))

(defun efrit-view--fold-between (start end)
  "Fold each row of foldable items between START and END, where items begin.
Return the last item there that is in no unfinished row, or nil."
  (when efrit-view-least-group
    (let (group row last)
      (dolist (item (efrit-transcript-items start end))
        (cond ((and group (memq item (efrit-item-members group))) nil)
              ((efrit-view--foldable-p item) (push item row))
              (t (efrit-view--fold-row group (nreverse row))
                 (setq row nil
                       last item
                       group (and (eq (efrit-item-kind item) 'group) item)))))
      (or (efrit-view--fold-row group (nreverse row)) last))))

(defun efrit-view--fold-row (group row)
  "Fold ROW, a list of items, into GROUP before it, or into a new group.
A new group needs a long ROW.  Return the group, or nil if nothing was folded."
  (cond ((or (null row) (seq-some #'efrit-view--in-use-p row)) nil)
        (group (efrit-item-join group row) group)
        ((>= (length row) efrit-view-least-group)
         (efrit-item-group row 'group #'efrit-view--group-head #'efrit-view--group-sought))))

(defun efrit-view--group-sought (item)
  "Return the texts of ITEM, a folded group, for a search."
  (seq-mapcat (lambda (member)
                (cons (efrit-line-words (efrit-item-data member))
                      (efrit-view--use-sought member)))
              (efrit-item-members item)))

(defun efrit-view--foldable-p (item)
  "Return non-nil if ITEM, a tool use, may be folded into a group."
  (and (eq (efrit-item-kind item) 'use)
       (efrit-line-reading-p (efrit-item-data item))))

(defun efrit-view--in-use-p (item)
  "Return non-nil if the person opened ITEM, or if point is in it in some window."
  (or (efrit-item-open item)
      (seq-some (lambda (point)
                  (and (<= (efrit-item-start item) point) (< point (efrit-item-end item))))
                (cons (point) (mapcar #'window-point
                                      (get-buffer-window-list nil nil t))))))

(defun efrit-view--group-head (item)
  "Return the line of ITEM, a group."
  (let ((uses (mapcar #'efrit-item-data (efrit-item-members item))))
    (concat (propertize (if (efrit-item-open item) "▾ " "▸ ") 'face 'efrit-done)
            (propertize (efrit-line-group uses) 'face 'efrit-tool)
            (efrit-view--at-right
             (propertize (format "  %s tokens" (efrit-show-tokens (efrit-line-group-tokens uses)))
                         'face 'efrit-figures))
            "\n")))

(defun efrit-view--use-sought (item)
  "Return the texts of ITEM, a folded tool use, for a search."
  (let ((use (efrit-item-data item)))
    (list (efrit-use-arguments use) "\n" (or (plist-get (efrit-use-result use) :text) ""))))

(defun efrit-view--truncate (text)
  "Return TEXT, cut to `efrit-view-most-characters' with a note if it was cut."
  (if (<= (length text) efrit-view-most-characters)
      text
    (concat (substring text 0 efrit-view-most-characters)
            (format "\n[%d characters more; o shows them all]"
                    (- (length text) efrit-view-most-characters)))))

;;;; States

(defun efrit-view--show-state (loop state old)
  "Show that the state of LOOP changed to STATE from OLD."
  (unless (eq state 'retrying)
    (efrit-live-end-count))
  (when (memq state efrit-loop-resting)
    (efrit-ask-close)
    (when (memq old '(waiting retrying))
      (efrit-view--drop-streamed))
    (efrit-view--fold-groups)
    (efrit-view--show-rest-reason loop state old))
  (efrit-live-refresh))

(defun efrit-view--show-rest-reason (loop state old)
  "Show why LOOP, whose state was OLD, rests in STATE."
  (cond
   ((eq state 'failed)
    (efrit-view-note (concat "✗ " (or (efrit-loop-problem loop) "The turn failed."))
                     'efrit-failed))
   ((eq state 'limited))
   ((not (eq state 'idle)) (efrit-view-note (concat "✗ " (efrit-show-state state))
                                            'efrit-failed))
   ((or (efrit-loop-stopping loop)
        (memq old '(beginning waiting retrying limited))
        (and (eq old 'running) (not (efrit-loop-complete loop))))
    (efrit-view-note "— stopped —"))))

;;;; Texts

(defun efrit-view--body-text (text face)
  "Return TEXT in FACE as the body of an item, indented."
  (efrit-view--indent (efrit-end-line text) face))

(defun efrit-view--indent (text face)
  "Return TEXT in FACE, indented."
  (propertize text 'face face 'line-prefix "    " 'wrap-prefix "    "))

(defun efrit-view--add-folded (kind title text face)
  "Add a folded item of KIND: TITLE and the length of TEXT, in FACE.
TEXT may be a function of the item that returns it."
  (efrit-item-add
   kind
   (lambda (item)
     (propertize (format "%s %s  %d characters\n" (if (efrit-item-open item) "▾" "▸") title
                         (length (efrit-item-text item)))
                 'face face))
   :data text
   :body (lambda (item) (efrit-view--body-text (efrit-item-text item) face))))

;;; The history of a session

;; The earlier turns of a resumed session, evicted ones included, are fetched
;; from the sidecar and inserted above later items.

(defconst efrit-history--step-seconds 0.02
  "Seconds after which inserting earlier turns makes a pause.")

(defun efrit-history-show (loop)
  "Fetch the transcript of LOOP, and insert it into this buffer."
  (let ((buffer (current-buffer)))
    (efrit-loop-ask-sidecar
     loop 'session/transcript nil
     (lambda (transcript)
       (efrit-transcript-in buffer
         (efrit-history--insert buffer (append (plist-get transcript :turns) nil)
                                (copy-marker efrit-transcript-begin))))
     (lambda (err)
       (efrit-transcript-in buffer
         (efrit-view-note (concat "✗ The transcript could not be fetched: "
                                  (efrit-error-text err))
                          'efrit-failed))))))

(defun efrit-history--insert (buffer entries place)
  "Insert items for ENTRIES of a transcript at PLACE, a marker, in BUFFER.
Do so in steps: a long session has thousands of them."
  (efrit-transcript-in buffer
    (let ((efrit-transcript-place (marker-position place))
          (deadline (+ (float-time) efrit-history--step-seconds)))
      (while (and entries (< (float-time) deadline))
        (efrit-history--insert-entry (pop entries)))
      (set-marker place efrit-transcript-place)
      (if entries
          (efrit-run-at-time 0.005 nil #'efrit-history--insert buffer entries place)
        (efrit-view--fold-between efrit-transcript-begin efrit-transcript-place)
        (set-marker place nil)))))

(defun efrit-history--insert-entry (entry)
  "Insert items for ENTRY of a transcript, a plist."
  (pcase (plist-get entry :kind)
    ("request" (efrit-view-message (efrit-history--text-blocks entry)))
    ("notice" (dolist (block (efrit-history--text-blocks entry))
                (efrit-view-note (concat "— " (plist-get block :text)))))
    ("reply" (mapc #'efrit-history--insert-block (plist-get entry :content)))
    ("result" (efrit-history--insert-result entry))))

(defun efrit-history--text-blocks (entry)
  "Return a list of the text blocks, plists, of ENTRY of a transcript."
  (seq-filter (lambda (block) (equal (plist-get block :type) "text"))
              (plist-get entry :content)))

(defun efrit-history--insert-block (block)
  "Insert an item for BLOCK of a reply; a tool use is inserted with its result."
  (pcase (plist-get block :type)
    ("text" (efrit-view-text (efrit-trim-right (plist-get block :text))))
    ("thinking" (let ((text (or (plist-get block :thinking) "")))
                  (unless (string-blank-p text)
                    (efrit-view-thinking text))))))

(defun efrit-history--insert-result (entry)
  "Insert an item for the tool use whose result is ENTRY of a transcript."
  (efrit-view-use (efrit-export-use entry)))

;;; The buffer

;; One buffer for each session.  Single letters are commands above the reply
;; box, and text in it; keys with C-c are commands in the whole buffer.

(defvar-local efrit-session-view--budget-timer nil
  "The timer that fetches the budget while tools are at work, or nil.")

(defvar efrit-session-view--buffers (make-hash-table :test #'eq :weakness 'key)
  "Hash table from loops to their buffers.")

(defvar efrit-session-view-mode-map
  (efrit-make-keymap '(("RET" efrit-session-view-return)
                       ("C-j" newline)
                       ("TAB" efrit-session-view-tab)
                       ("M-p" efrit-session-view-previous)
                       ("M-n" efrit-session-view-next)
                       ("C-c C-c" efrit-reply-box-send)
                       ("C-c C-k" efrit-stop)
                       ("C-c C-x" efrit-stop-tool)
                       ("C-c C-t" efrit-continue)
                       ("C-c C-r" efrit-retry)
                       ("C-c C-o" efrit-open-result)
                       ("C-c C-w" efrit-copy)
                       ("C-c C-b" efrit-budget)
                       ("C-c C-l" efrit-resume)
                       ("C-c C-a" efrit-ask-go)
                       ("C-c C-y" efrit-allow-once)
                       ("C-c C-d" efrit-deny-once)
                       ("C-c C-p" efrit-item-previous)
                       ("C-c C-n" efrit-item-next)
                       ("C-c ?" efrit))
                     ;; Letters insert themselves in the reply box, not so in `special-mode'.
                     (make-sparse-keymap))
  "Keys everywhere in a session's buffer.")

(defvar efrit-session-view-transcript-map
  (efrit-make-keymap '(("<remap> <self-insert-command>" efrit-session-view-undefined)
                       ("?" efrit)
                       ("h" efrit-manual)
                       ("n" efrit-exchange-next)
                       ("p" efrit-exchange-previous)
                       ("<backtab>" efrit-exchange-toggle-all)
                       ("k" efrit-stop)
                       ("x" efrit-stop-tool)
                       ("c" efrit-continue)
                       ("r" efrit-retry)
                       ("o" efrit-open-result)
                       ("w" efrit-copy)
                       ("v" efrit-session-view-source)
                       ("b" efrit-budget)
                       ("R" efrit-resume)
                       ("i" efrit-reply-box-go)
                       ("]" efrit-item-next)
                       ("[" efrit-item-previous)
                       ("SPC" scroll-up-command)
                       ("S-SPC" scroll-down-command)
                       ("DEL" scroll-down-command)
                       ("<" beginning-of-buffer)
                       (">" efrit-reply-box-go)
                       ("q" quit-window)
                       ("<mouse-2>" efrit-session-view-click))
                     efrit-session-view-mode-map)
  "Keys above the reply box.")

(defvar desktop-save-buffer)

;; The map above the reply box inherits the menu.
(easy-menu-define efrit-session-view-menu efrit-session-view-mode-map
  "Menu of a session's buffer."
  '("Efrit"
    ["Go to the Reply Box" efrit-reply-box-go]
    ["Continue" efrit-continue :active (efrit-loop-resting-p (efrit-loop-current))]
    ["Retry" efrit-retry :active (memq (efrit-loop-state (efrit-loop-current)) '(failed retrying))]
    ["Stop" efrit-stop :active (not (efrit-loop-resting-p (efrit-loop-current)))]
    ["Stop One Tool" efrit-stop-tool
     :active (efrit-output--running-uses (efrit-loop-current))]
    "---"
    ["Go to the Question" efrit-ask-go :active (efrit-ask-position)]
    ["Allow Once" efrit-allow-once :active (efrit-run-pending-use (efrit-loop-current))]
    ["Deny Once" efrit-deny-once :active (efrit-run-pending-use (efrit-loop-current))]
    ["Permissions" efrit-permissions]
    "---"
    ["Next Exchange" efrit-exchange-next]
    ["Previous Exchange" efrit-exchange-previous]
    ["Fold or Open All Exchanges" efrit-exchange-toggle-all]
    ["Index of Exchanges" imenu]
    "---"
    ["Result in a Buffer" efrit-open-result]
    ["Copy" efrit-copy]
    ["Budget" efrit-budget]
    ["Edits" efrit-undo-session]
    ["Export" efrit-export]
    ["Undo the Last Edit" efrit-undo]
    "---"
    ["Resume Another Session" efrit-resume]
    ["List of Sessions" efrit-sessions]
    ["Manual" efrit-manual]
    ["All Commands" efrit]))

(define-derived-mode efrit-session-view-mode special-mode "Efrit"
  "Major mode that shows a session.
Above the reply box:
\\{efrit-session-view-transcript-map}
Everywhere:
\\{efrit-session-view-mode-map}"
  (setq-local scroll-conservatively 10000
              bidi-paragraph-direction 'left-to-right
              ;; Else each line of prose that goes on has two arrows beside it.
              fringe-indicator-alist (cons '(continuation nil nil) fringe-indicator-alist)
              header-line-format '(:eval (efrit-show-header))
              mode-line-buffer-identification '(:eval (efrit-session-view--identification))
              mode-line-process '(:eval (efrit-session-view--activity)))
  (setq truncate-lines nil
        word-wrap t
        buffer-read-only nil) ; the text above the reply box has a property for that
  (efrit-exchange-set-up)
  (efrit-search-set-up)
  (efrit-window-set-up)
  (setq-local filter-buffer-substring-function #'efrit-session-view--copied-text)
  (efrit-keep-keys)
  (setq-local bookmark-make-record-function #'efrit-restore-bookmark
              desktop-save-buffer #'efrit-restore-desktop-save)
  (add-hook 'context-menu-functions #'efrit-session-view--context-menu 10 t)
  (efrit-markdown-set-up)
  (add-hook 'change-major-mode-hook #'efrit-session-view--refuse-mode nil t)
  (add-hook 'window-size-change-functions #'efrit-live-fit nil t)
  (add-hook 'window-buffer-change-functions #'efrit-live-fit nil t)
  (add-hook 'kill-buffer-query-functions #'efrit-session-view--may-kill-p nil t)
  (add-hook 'kill-buffer-hook #'efrit-session-view--on-kill nil t))

(defun efrit-session-view-buffer (loop)
  "Return the buffer of LOOP; make it if there is none."
  (let ((buffer (gethash loop efrit-session-view--buffers)))
    (if (buffer-live-p buffer)
        buffer
      (efrit-session-view--make loop))))

;;;###autoload
(defun efrit-session-view-show (loop)
  "Show the buffer of LOOP, with point in its reply box."
  (pop-to-buffer (efrit-session-view-buffer loop)
                 `(nil (window-height . ,efrit-session-view-height)))
  (goto-char (point-max)))

;;;; Commands

;;;###autoload
(defun efrit-view ()
  "Show the current session: that of this buffer or project."
  (interactive)
  (efrit-session-view-show (efrit-loop-current)))

(defun efrit-session-view-return ()
  "Send the text in the reply box; above it, do what the line is for.
Push a button, visit the file of a tool's line or a link, or open or fold."
  (interactive)
  (let ((item (efrit-item-at (point))))
    (cond ((efrit-transcript-in-box-p) (efrit-reply-box-send))
          ((button-at (point)) (push-button (point)))
          ((and item
                (eq (efrit-item-kind item) 'use)
                (efrit-session-view--on-title-p item)
                (efrit-session-view--visit (efrit-item-data item))))
          (t (efrit-session-view--act t)))))

(defun efrit-session-view-tab ()
  "Complete in the reply box; above it, push the button or open or fold the item.
On the head of an exchange, open or fold all of the exchange."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (completion-at-point)
    (efrit-session-view--act)))

(defun efrit-session-view-click (event)
  "Push the button, or open or fold the item, at EVENT, a click."
  (interactive "e")
  (mouse-set-point event)
  (efrit-session-view--act t))

(defun efrit-session-view-previous ()
  "Insert the previous message into the reply box; above it, go back an item."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-previous)
    (efrit-item-previous)))

(defun efrit-session-view-next ()
  "Insert the next message into the reply box; above it, go to the next item."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-next)
    (efrit-item-next)))

(defun efrit-session-view-source ()
  "Show the reply at point as the Markdown it was written in, or dressed again."
  (interactive)
  (let ((item (efrit-item-at (point))))
    (unless (and item (eq (efrit-item-kind item) 'text))
      (user-error "No reply at point"))
    (when (efrit-markdown-streaming-p item)
      (user-error "This reply is still being written"))
    (efrit-markdown-show-source item)))

(defun efrit-session-view-undefined ()
  "Signal a `user-error': the key is undefined here."
  (interactive)
  (user-error "%s is undefined; ? shows the keys, i goes to the reply box"
              (key-description (this-command-keys))))

;;;###autoload
(defun efrit-copy ()
  "Copy the region, the code block at point, or the text of the item at point.
The text of a reply is copied as Markdown."
  (interactive)
  (let ((item (efrit-item-at (point)))
        (code (efrit-markdown-code-at (point))))
    (cond ((use-region-p) (copy-region-as-kill (region-beginning) (region-end)))
          ((or code item)
           (kill-new (or code (efrit-view-item-text item)))
           (message "Copied %s, %d characters" (if code "the code" "the text")
                    (length (car kill-ring))))
          (t (user-error "Nothing to copy at point")))))

;;;; Making

(defun efrit-session-view--make (loop)
  "Make and return the buffer of LOOP."
  (let ((root (efrit-loop-root loop))
        (buffer (generate-new-buffer "*efrit*")))
    (puthash loop buffer efrit-session-view--buffers)
    (efrit-session-view-name-all)
    (with-current-buffer buffer
      (efrit-session-view-mode)
      (setq default-directory (file-name-as-directory root)
            efrit-loop-here loop)
      (efrit-transcript-set-up (propertize (format "efrit  %s  session %s"
                                                   (abbreviate-file-name root)
                                                   (efrit-loop-id loop))
                                           'face 'efrit-title)
                               (concat (propertize "RET sends · C-j begins a line · @ for a file · C-c ? keys\n"
                                                   'face 'efrit-note)
                                       (propertize "› " 'face 'efrit-prompt))
                               efrit-session-view-transcript-map)
      (efrit-view-events-set-up loop)
      (efrit-reply-box-set-up (lambda (text)
                                (if (efrit-ask-open-p)
                                    (efrit-ask-answer text)
                                  (efrit-do-submit (efrit-loop-current) text))))
      (efrit-live-refresh)
      (goto-char (point-max))
      (efrit-session-view--load loop))
    (efrit-loop-observe loop #'efrit-session-view--observe)
    buffer))

(defun efrit-session-view-name-all ()
  "Name the buffer of each session by its title, so that all can be told apart.
Before a session has a title, that of its project stands for it.  Where several
have the same title, the project follows, or else the session's id."
  (let ((titles (make-hash-table :test #'equal)))
    (maphash (lambda (loop buffer)
               (when (buffer-live-p buffer)
                 (push loop (gethash (efrit-session-view--title loop) titles))))
             efrit-session-view--buffers)
    (maphash (lambda (title loops)
               (dolist (loop loops)
                 (efrit-session-view--name loop title loops)))
             titles)))

(defun efrit-session-view--name (loop title loops)
  "Name the buffer of LOOP by TITLE, which all of LOOPS have."
  (let* ((projects (mapcar #'efrit-loop-project loops))
         (name (cond ((null (cdr loops)) (format "*efrit: %s*" title))
                     ((and (= (length projects) (length (seq-uniq projects)))
                           (not (member title projects)))
                      (format "*efrit: %s <%s>*" title (efrit-loop-project loop)))
                     (t (format "*efrit: %s <%s>*" title (efrit-loop-id loop))))))
    (with-current-buffer (gethash loop efrit-session-view--buffers)
      (unless (equal name (buffer-name))
        (rename-buffer name t)))))

(defun efrit-session-view--title (loop)
  "Return the title of LOOP for the name of its buffer, of at most 50 columns."
  (truncate-string-to-width
   (efrit-permissions-visible
    (string-join (split-string (or (efrit-loop-title loop) (efrit-loop-project loop))) " ") t)
   50 nil nil "…"))

(defun efrit-session-view--load (loop)
  "Fetch the transcript and the budget of LOOP for this buffer, if needed."
  (when (or (efrit-loop-stale loop) (> (efrit-loop-turn loop) 0))
    (efrit-history-show loop))
  (unless (efrit-loop-budget loop)
    (efrit-loop-fetch-budget loop)))

;;;; Showing

(defun efrit-session-view--observe (loop event)
  "Show EVENT of LOOP in the buffer of LOOP, unless that buffer is killed."
  (let ((buffer (gethash loop efrit-session-view--buffers)))
    (efrit-transcript-in buffer
      (efrit-view-observe loop event)
      (when (eq (car event) 'title)
        (efrit-session-view-name-all))
      (when (memq (car event) '(begun ended price state chosen budget ask question))
        (force-mode-line-update))
      (when (and (eq (car event) 'use) (eq (efrit-use-state (cadr event)) 'done))
        (efrit-session-view--fetch-budget-soon loop)))
    (when (buffer-live-p buffer)
      (efrit-presence-observe loop event buffer))))

(defun efrit-session-view--act (&optional follow)
  "Push the button at point, or open or fold the item.
With FOLLOW, visit the link at point instead, if there is one."
  (let* ((item (efrit-item-at (point)))
         (target (unless (or (not follow) (efrit-session-view--on-title-p item))
                   (efrit-markdown-link-at (point) default-directory))))
    (cond ((button-at (point)) (push-button (point)))
          (target (efrit-markdown-visit target))
          ((and item (eq (efrit-item-kind item) 'message)) (efrit-exchange-toggle item))
          ((and item (efrit-item-toggle item)) (efrit-session-view--leave-body item))
          (t (user-error "Nothing to open at point")))))

(defun efrit-session-view--leave-body (item)
  "Move from the folded body of ITEM to its head, where TAB opens it again."
  (when (and (not (efrit-item-open item)) (>= (point) (efrit-item-body-start item)))
    (goto-char (efrit-item-start item))))

(defun efrit-session-view--on-title-p (item)
  "Return non-nil if point is on the head of ITEM, which can be opened."
  (and item
       (efrit-item-body item)
       (< (point) (efrit-item-body-start item))))

(defun efrit-session-view--copied-text (begin end &optional delete)
  "Return the text between BEGIN and END without properties; DELETE it if non-nil."
  (prog1 (buffer-substring-no-properties begin end)
    (when delete
      (delete-region begin end))))

(defun efrit-session-view--context-menu (menu click)
  "Add to MENU what can be done with the item at CLICK, and return MENU."
  (let* ((place (posn-point (event-end click)))
         (item (and place (not (efrit-transcript-in-box-p place)) (efrit-item-at place))))
    (define-key-after menu [efrit-separator] menu-bar-separator)
    (when item
      (pcase-dolist (`(,label ,command)
                     `(,@(and (or (efrit-item-body item)
                                  (memq (efrit-item-kind item) '(message group)))
                              '(("Open or Fold" efrit-session-view-tab)))
                       ,@(and (eq (efrit-item-kind item) 'use)
                              '(("Visit the File" efrit-session-view-return)
                                ("Result in a Buffer" efrit-open-result)))
                       ("Copy This" efrit-copy)))
        (define-key-after menu (vector (intern label))
          `(menu-item ,label ,(lambda ()
                                (interactive)
                                (goto-char place)
                                (call-interactively command))))))
    (define-key-after menu [efrit-menu]
      `(menu-item "Efrit" ,efrit-session-view-menu))
    menu))

(defun efrit-session-view--visit (use)
  "Visit the file that USE is about, at its line; return nil if there is none."
  (pcase-let* ((arguments (ignore-errors (efrit-json-plist (efrit-use-arguments use))))
               (edit (or (car (append (plist-get arguments :edits) nil)) arguments))
               (name (or (plist-get arguments :to) (plist-get edit :path)
                         (plist-get arguments :buffer)))
               (line (or (plist-get arguments :start_line) (plist-get arguments :around_line)
                         (plist-get arguments :line)))
               (new (plist-get edit :new_text))
               (file (and (stringp name)
                          (efrit-session-view--file name (efrit-loop-root efrit-loop-here)))))
    (when (and file (file-regular-p file))
      (efrit-session-view--check-place file (efrit-loop-root efrit-loop-here))
      (find-file-other-window file)
      (save-restriction
        (widen)
        (cond ((natnump line)
               (goto-char (point-min))
               (forward-line (1- line)))
              ((and (stringp new) (not (string-blank-p new)))
               (goto-char (point-min))
               (when (search-forward new nil t)
                 (goto-char (match-beginning 0))))))
      t)))

(defun efrit-session-view--check-place (file root)
  "Ask whether to visit FILE if it is outside of ROOT; signal an error at no.
A tool's line may show another one of its arguments."
  (unless (or (file-in-directory-p (file-truename file) root)
              (y-or-n-p (format "Visit %s, outside of the project? "
                                (efrit-permissions-visible file t))))
    (user-error "The file is outside of the project")))

(defun efrit-session-view--file (name root)
  "Return the file NAME, as a tool was given it, of the project ROOT.
NAME is of the machine of ROOT: the syntax of a remote file means nothing in it."
  (let ((file (if (file-name-absolute-p name) name
                (expand-file-name name (file-local-name root)))))
    (concat (file-remote-p root)
            (if (file-remote-p file) (file-name-quote file t) file))))

(defun efrit-session-view--fetch-budget-soon (loop)
  "Fetch the budget of LOOP soon, if its tools are still at work then.
If they are not, the next turn brings it."
  (unless efrit-session-view--budget-timer
    (let ((buffer (current-buffer)))
      (setq efrit-session-view--budget-timer
            (efrit-run-at-time efrit-budget-view-delay nil
                               (lambda ()
                                 (efrit-with-live-buffer buffer
                                   (efrit-stop-timer efrit-session-view--budget-timer)
                                   (when (eq (efrit-loop-state loop) 'running)
                                     (efrit-loop-fetch-budget loop)))))))))

(defconst efrit-session-view--mode-line-rest 48
  "Columns of the mode line that are left to all but the buffer's name.")

(defun efrit-session-view--identification ()
  "Return the name of this buffer, short enough for a mode line with its state."
  (let ((columns (max 14 (- (window-width) efrit-session-view--mode-line-rest))))
    (propertize (string-replace "%" "%%"
                                (truncate-string-to-width (buffer-name) columns nil nil "…*"))
                'face 'mode-line-buffer-id
                'help-echo (buffer-name))))

(defun efrit-session-view--activity ()
  "Return what the loop of this buffer is doing, for the mode line."
  (if efrit-loop-here
      (concat ": " (efrit-show-activity efrit-loop-here))
    ""))

;;;; Killing, and other modes

(defun efrit-session-view--refuse-mode ()
  "Signal a `user-error', since another mode would break this buffer."
  (user-error "The mode of a session's buffer cannot be changed"))

(defun efrit-session-view--may-kill-p ()
  "Return non-nil if this buffer may be killed; ask if its loop is working."
  (or (null efrit-loop-here)
      (efrit-loop-resting-p efrit-loop-here)
      (yes-or-no-p "The session is working; it stays stored.  Stop it? ")))

(defun efrit-session-view--on-kill ()
  "Stop the loop of this buffer, which is being killed."
  (efrit-live-end-count)
  (efrit-stop-timer efrit-session-view--budget-timer)
  (when efrit-loop-here
    (remhash efrit-loop-here efrit-session-view--buffers)
    (efrit-session-view-name-all)
    (unless (efrit-loop-resting-p efrit-loop-here)
      (efrit-loop-stop efrit-loop-here))))

(provide 'efrit-view)
;;; efrit-view.el ends here
