;;; efrit-view.el --- The view of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One buffer for each session, where its events are shown as they happen; the
;; stored results; and the menu.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-anthropic)
(require 'efrit-ask)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sessions)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'seq)
(require 'so-long)
(require 'subr-x)
(require 'transient)

;;; Output of running tools

;; The sidecar passes on the end of what a command has written so far, a few
;; times a second; whoever observes the command's loop is told of it as
;; \(output ID TEXT).  One tool is stopped by itself here: its result is what
;; it gave until then, and the model goes on with that.

(defconst efrit-output--width 200
  "Most columns of an output line that are shown.")

(defun efrit-output-text (output)
  "Return the last lines of OUTPUT, a string or nil, as they are shown."
  (let ((lines (split-string (string-trim-right (or output "")) "\n")))
    (if (or (zerop efrit-output-lines) (equal lines '("")))
        ""
      (mapconcat #'efrit-output--line (last lines efrit-output-lines) ""))))

;;;; Commands

;;;###autoload
(defun efrit-stop-tool ()
  "Stop the tool at point, or the only one that is running.
Its result is what it gave so far, and the model goes on with that."
  (interactive)
  (let ((loop (efrit-loop-current)))
    (efrit-output--stop loop (efrit-output--stoppable-use loop))))

(defun efrit-output--take (call params)
  "Tell the loop of CALL of the output in PARAMS, the sidecar's, if there is any."
  (when-let* ((output (plist-get (plist-get params :value) :output))
              (session (and call (plist-get (efrit-call-params call) :session_id)))
              (loop (seq-find (lambda (loop) (equal (efrit-loop-id loop) session))
                              (efrit-loops))))
    (efrit-loop-notify loop 'output (plist-get params :tool_use_id) output)))

(defun efrit-output--line (line)
  "Return LINE of an output as it is shown."
  (concat (propertize "    │ " 'face 'efrit-note)
          (propertize (truncate-string-to-width line efrit-output--width nil nil "…")
                      'face 'efrit-delivered)
          "\n"))

(defun efrit-output--stoppable-use (loop)
  "Return the use in LOOP that is to be stopped, or signal a `user-error'."
  (let* ((running (seq-filter (lambda (use) (eq (efrit-use-state use) 'running))
                              (efrit-loop-run loop)))
         (item (efrit-item-at (point)))
         (here (and item (efrit-item-data item))))
    (cond ((null running) (user-error "No tool runs"))
          ((memq here running) here)
          ((cdr running) (user-error "%d tools are running; move point to the one to stop" (length running)))
          (t (car running)))))

(defun efrit-output--stop (loop use)
  "Stop USE of LOOP, and let the model have what it gave so far."
  (let ((call (efrit-use-call use)))
    (cond ((null call) (efrit-output--stop-in-sidecar loop use))
          ((efrit-tool-call-stop call) (efrit-tool-stop call))
          (t (user-error "%s cannot be stopped by itself; `efrit-stop' stops all"
                         (efrit-use-name use))))))

(defun efrit-output--stop-in-sidecar (loop use)
  "Have the sidecar stop USE of LOOP."
  (efrit-sidecar-request-async
   'tools/stop (list :session_id (efrit-loop-id loop) :tool_use_id (efrit-use-id use))
   :success (lambda (answer)
              (unless (eq (plist-get answer :stopped) t)
                (message "%s does not run any more" (efrit-use-name use))))
   :error (lambda (err)
            (message "%s is not stopped: %s" (efrit-use-name use) (efrit-error-text err)))))

(add-hook 'efrit-sidecar-progress-functions #'efrit-output--take)

;;; The live part

;; The live part of a session's buffer: what is to be done, what waits to be
;; sent, what the person is asked, and what the loop is doing.  It is made
;; anew from the loop whenever something of it changes.

(defvar-local efrit-live--next-retry nil
  "When the next attempt is made, a time in seconds, and why: a cons.")

(defvar-local efrit-live--timer nil
  "The timer that counts the seconds before a retry.")

(defconst efrit-live--todos
  '(("done" "☑ " efrit-done) ("doing" "▶ " efrit-busy) ("pending" "☐ " default))
  "Appearance of todo items: status, sign, face.")

(defun efrit-live-refresh ()
  "Show how the loop of this buffer stands now."
  (when-let* ((loop efrit-loop-here))
    ;; Letters that are written from right to left would move what a command says.
    (setq bidi-display-reordering (not (efrit-run-pending-use loop)))
    (efrit-transcript-set-live
     (concat "\n"
             (efrit-live--todo-text (efrit-loop-todos loop))
             (efrit-live--queue-text loop)
             (efrit-live--question-text loop)
             (efrit-live--state-text loop)
             "\n"))))

(defun efrit-live-count-down (seconds problem)
  "Show for SECONDS that the next attempt waits, because of PROBLEM, a string."
  (efrit-live-end-count)
  (setq efrit-live--next-retry (cons (+ (float-time) seconds) problem)
        efrit-live--timer (run-at-time 1 1 #'efrit-live--tick (current-buffer)))
  (efrit-live-refresh))

(defun efrit-live-end-count ()
  "Stop counting the seconds before a retry."
  (setq efrit-live--next-retry nil)
  (when efrit-live--timer
    (cancel-timer efrit-live--timer)
    (setq efrit-live--timer nil)))

(defun efrit-live-take-back (loop blocks)
  "Have BLOCKS, which wait in LOOP, not be sent; their text is in the reply box.
What stands there already comes behind it."
  (unless (efrit-loop-queued-p loop blocks)
    (user-error "It was sent already"))
  (setf (efrit-loop-queue loop) (delq blocks (efrit-loop-queue loop)))
  (save-excursion
    (goto-char efrit-transcript-box)
    (insert (efrit-live-message-text blocks)
            (if (= efrit-transcript-box (point-max)) "" "\n")))
  (efrit-live-refresh)
  (goto-char (point-max)))

(defun efrit-live-message-text (blocks)
  "Return what the person said in BLOCKS, a message, without its context."
  (or (plist-get (car (last blocks)) :text) ""))

(defun efrit-live--tick (buffer)
  "Count a second in BUFFER, if it is there."
  (efrit-transcript-in buffer
    (if efrit-live--next-retry (efrit-live-refresh) (efrit-live-end-count))))

(defun efrit-live--todo-text (todos)
  "Return TODOS, a vector of plists, as lines."
  (mapconcat (lambda (todo)
               (pcase-let ((`(,_ ,sign ,face)
                            (or (assoc (plist-get todo :status) efrit-live--todos)
                                '(nil "☐ " default))))
                 (propertize (format "%s%s\n" sign (plist-get todo :content)) 'face face)))
             todos ""))

(defun efrit-live--question-text (loop)
  "Return what the person is asked in LOOP, set apart from what is to be done."
  (let ((text (efrit-ask-text loop)))
    (concat (and text (efrit-loop-todos loop) "\n") text)))

(defun efrit-live--queue-text (loop)
  "Return what was said in LOOP and not sent yet, as lines."
  (let ((sign (if (efrit-loop-resting-p loop) "not sent: " "queued: ")))
    (mapconcat (lambda (blocks)
                 (concat (propertize (concat "⧗ " sign) 'face 'efrit-note)
                         (propertize (efrit-live-message-text blocks) 'face 'efrit-said)
                         (and (efrit-loop-queued-p loop blocks)
                              (concat "  " (efrit-live--take-back-button loop blocks)))
                         "\n"))
               (reverse (efrit-loop-queue loop))
               "")))

(defun efrit-live--take-back-button (loop blocks)
  "Return the button that takes BLOCKS back, which wait in LOOP."
  (efrit-ask-button "[take back]"
                    (lambda () (interactive) (efrit-live-take-back loop blocks))))

(defun efrit-live--state-text (loop)
  "Return the line about what LOOP does, with what can be done about it."
  (pcase-let* ((state (efrit-loop-state loop))
               (`(,face . ,buttons) (efrit-live--buttons state)))
    (concat (propertize (concat "● " (efrit-live--activity-text loop state)) 'face face)
            (mapconcat (pcase-lambda (`(,label ,command))
                         (concat "  " (efrit-ask-button (concat "[" label "]") command)))
                       buttons "")
            "\n")))

(defun efrit-live--activity-text (loop state)
  "Return what LOOP, in STATE, does, in words."
  (cond
   ((and (eq state 'retrying) efrit-live--next-retry)
    (format "%s; again in %d s" (cdr efrit-live--next-retry)
            (max 0 (ceiling (- (car efrit-live--next-retry) (float-time))))))
   ((and (eq state 'running) (efrit-ask-pending-p loop)) "waiting for your answer")
   ((and (eq state 'limited) (efrit-turn-limit loop))
    (format "the limit of %s was reached; go on?" (efrit-turn-limit loop)))
   (t (efrit-show-state state))))

(defun efrit-live--buttons (state)
  "Return the face of STATE and the buttons that go with it: (FACE . BUTTONS)."
  (pcase state
    ('idle '(efrit-done))
    ('retrying '(efrit-busy ("retry now" efrit-retry) ("stop" efrit-stop)))
    ('failed '(efrit-failed ("try again" efrit-retry)))
    ((or 'limited 'cut-short) '(efrit-busy ("continue" efrit-continue)))
    ((or 'refused 'window-full) '(efrit-failed))
    (_ '(efrit-busy ("stop" efrit-stop)))))

;;; Events

;; Each event of a loop becomes an item of its session's buffer, or changes
;; one: text and thinking grow as they stream, a tool's line says how far it
;; is, a reply ends in a line of what it cost.

(defvar-local efrit-view--streaming-items nil
  "The items of the reply that streams, an alist of blocks and items.")

(defvar-local efrit-view--uses nil
  "The items of tool uses, a hash table by the uses' ids.")

(defvar-local efrit-view--outputs nil
  "Latest output of running tools, a hash table by tool use id.")

(defvar-local efrit-view--thought 0
  "When the length of what is being thought was shown last.")

(defvar-local efrit-view--cost nil
  "The item of the latest reply's end.")

(defvar-local efrit-view--unpriced 0
  "Number of replies since the last known price.")

(defvar-local efrit-view--dollars nil
  "Cost of the session at the last known price, or nil.")

(defun efrit-view-events-set-up (loop)
  "Make this buffer ready for the events of LOOP."
  (setq efrit-view--uses (make-hash-table :test #'equal)
        efrit-view--outputs (make-hash-table :test #'equal)
        efrit-view--dollars (or (plist-get (efrit-loop-usage loop) :dollars)
                                (and (zerop (efrit-loop-turn loop))
                                     (not (efrit-loop-stale loop))
                                     0))))

(defun efrit-view-observe (loop event)
  "Show EVENT of LOOP in this buffer, that of its session."
  (pcase event
    (`(piece ,block ,string) (efrit-view--piece block string))
    (`(begin ,block) (efrit-view--begin block))
    (`(end ,block) (efrit-view--end block))
    (`(,(or 'use 'ask) ,use) (efrit-view--use use) (efrit-live-refresh))
    (`(note ,text) (efrit-view-note (concat "— " text)))
    (`(output ,id ,text) (efrit-view--output id text))
    (`(arrived ,messages) (efrit-view--arrived messages))
    (`(begun ,rewritten ,notes) (efrit-view--show-turn-begin loop rewritten notes))
    (`(ended ,reply) (efrit-view--show-reply-end loop reply))
    (`(price ,dollars) (efrit-view--price dollars))
    (`(again) (efrit-live-end-count) (efrit-view--drop-streamed) (efrit-live-refresh))
    (`(retry ,seconds ,problem)
     (efrit-live-count-down seconds (plist-get problem :message)))
    (`(question ,call ,question ,options)
     (efrit-ask-open call question options)
     (efrit-live-refresh))
    (`(complete ,summary) (efrit-view-note (concat "✓ " summary) 'efrit-done))
    (`(state ,state ,old) (efrit-view--state loop state old))
    (`(,(or 'todos 'queued) . ,_) (efrit-live-refresh))))

(defun efrit-view-message (blocks)
  "Add BLOCKS, a message of the person's, a list of plists."
  (let ((context (butlast blocks)))
    (efrit-item-add 'said
                    (concat "\n" (propertize "You\n" 'face 'efrit-person)
                            (propertize (efrit-view--line (efrit-live-message-text blocks))
                                        'face 'efrit-said))
                    :data (efrit-live-message-text blocks))
    (when context
      (efrit-view--fold 'context "Sent along"
                        (mapconcat (lambda (block) (or (plist-get block :text) "")) context
                                   "\n\n")
                        'efrit-note))))

(defun efrit-view-text (text)
  "Add TEXT, which the model wrote, and return its item."
  (efrit-item-add 'text (concat "\n" (propertize (concat text "\n") 'face 'efrit-text))))

(defun efrit-view-thinking (text)
  "Add TEXT, which the model thought, or a function that gives it."
  (efrit-view--fold 'thinking "Thinking" text 'efrit-thinking))

(defun efrit-view-use (use)
  "Add USE, an `efrit-use', and return its item."
  (puthash (efrit-use-id use)
           (efrit-item-add 'use #'efrit-view--use-head :body #'efrit-view--use-body :data use)
           efrit-view--uses))

(defun efrit-view-item-text (item)
  "Return the text of ITEM that is worth copying."
  (pcase (efrit-item-kind item)
    ('use (or (plist-get (efrit-use-result (efrit-item-data item)) :text)
              (efrit-ask-arguments-text (efrit-item-data item))))
    ((or 'said 'note 'context 'thinking) (string-trim (efrit-view--data-text item)))
    (_ (string-trim (buffer-substring-no-properties (efrit-item-start item)
                                                    (efrit-item-end item))))))

(defun efrit-view-note (text &optional face)
  "Add TEXT as a word of efrit itself, in FACE."
  (efrit-item-add 'note (propertize (concat "\n" (efrit-view--line text))
                                    'face (or face 'efrit-note))
                  :data text))

;;;; Replies

(defun efrit-view--begin (block)
  "Show that BLOCK has begun to come."
  (pcase (efrit-block-type block)
    ("thinking"
     (efrit-view--stream block (efrit-view-thinking
                                (lambda (_) (efrit-block-text block)))))
    ("tool_use"
     (efrit-view--stream block (efrit-view-use
                                (efrit-use-create :id (efrit-block-id block)
                                                  :name (efrit-block-name block)
                                                  :arguments "{}" :state 'written))))
    ("text"
     (when (efrit-block-pieces block)
       (efrit-view--stream block (efrit-view-text (efrit-block-text block)))))))

(defun efrit-view--stream (block item)
  "Note that ITEM is for BLOCK, which streams."
  (push (cons block item) efrit-view--streaming-items))

(defun efrit-view--piece (block string)
  "Show STRING, the next of BLOCK."
  (let ((item (alist-get block efrit-view--streaming-items nil nil #'eq)))
    (pcase (efrit-block-type block)
      ("text" (if item
                  (efrit-item-append item (propertize string 'face 'efrit-text) 1)
                (efrit-view--stream block (efrit-view-text string))))
      ("thinking" (when item (efrit-view--thought item string))))))

(defun efrit-view--thought (item string)
  "Show that STRING was thought, too, in ITEM.
To say its length takes longer the longer it is, so that is done now and
then, and at the end."
  (when (efrit-item-open item)
    (efrit-item-append item (efrit-view--indent string 'efrit-thinking) 1))
  (when (> (- (float-time) efrit-view--thought) 0.3)
    (setq efrit-view--thought (float-time))
    (efrit-item-refresh item)))

(defun efrit-view--end (block)
  "Show that BLOCK has come whole."
  (when-let* ((item (alist-get block efrit-view--streaming-items nil nil #'eq)))
    (pcase (efrit-block-type block)
      ("thinking" (efrit-item-refresh item))
      ("tool_use"
       (setf (efrit-use-arguments (efrit-item-data item))
             (or (efrit-block-input block) (efrit-block-text block)))
       (efrit-item-refresh item)))))

(defun efrit-view--drop-streamed ()
  "Remove what streamed of a reply that did not end."
  (pcase-dolist (`(,block . ,item) efrit-view--streaming-items)
    (efrit-item-remove item)
    (remhash (efrit-block-id block) efrit-view--uses))
  (setq efrit-view--streaming-items nil))

(defun efrit-view--arrived (messages)
  "Show MESSAGES, which the sidecar now has, as said by the person."
  (efrit-view--drop-streamed)
  (mapc #'efrit-view-message messages))

(defun efrit-view--show-turn-begin (loop rewritten notes)
  "Show that LOOP has begun a turn, with REWRITTEN messages and NOTES."
  (efrit-view--drop-streamed)
  (when rewritten
    (efrit-view-note (format "— epoch %d: older results gave way to a line each —"
                             (efrit-loop-epoch loop))))
  (dolist (note notes)
    (efrit-view-note (concat "— " note)))
  (efrit-live-refresh))

(defun efrit-view--show-reply-end (loop reply)
  "Show what REPLY, which has ended in LOOP, has cost."
  (pcase-dolist (`(,block . ,item) efrit-view--streaming-items)
    (when (equal (efrit-block-type block) "tool_use")
      (if (efrit-block-done block)
          (efrit-view--end block)
        (setf (efrit-use-state (efrit-item-data item)) 'done)
        (efrit-item-refresh item))))
  (setq efrit-view--streaming-items nil
        efrit-view--cost (efrit-item-add 'cost #'efrit-view--cost-head
                                         :data (list reply (efrit-loop-turn loop) nil 0)))
  (cl-incf efrit-view--unpriced)
  (efrit-view--warn reply))

(defun efrit-view--price (dollars)
  "Show that the session has cost DOLLARS by now.
The price comes a moment after a reply, so it may be that of several."
  (when (and efrit-view--cost efrit-view--dollars)
    (let ((data (efrit-item-data efrit-view--cost)))
      (setf (nth 2 data) (+ (or (nth 2 data) 0) (- dollars efrit-view--dollars))
            (nth 3 data) (+ (nth 3 data) efrit-view--unpriced)))
    (efrit-item-refresh efrit-view--cost))
  (setq efrit-view--unpriced 0
        efrit-view--dollars dollars))

(defun efrit-view--cost-head (item)
  "Return the line of ITEM: tokens, share from cache, and price of a reply."
  (pcase-let* ((`(,reply ,turn ,dollars ,replies) (efrit-item-data item))
               (read (efrit-reply-count reply "cache_read_input_tokens"))
               (prompt (+ read (efrit-reply-count reply "input_tokens")
                          (efrit-reply-count reply "cache_creation_input_tokens")))
               (miss (efrit-view--miss reply)))
    (propertize
     (concat (format "  turn %d: %s in, %d%% from cache, %s out" turn
                     (efrit-show-tokens prompt)
                     (if (> prompt 0) (round (* 100.0 read) prompt) 0)
                     (efrit-show-tokens (efrit-reply-count reply "output_tokens")))
             (if dollars (format ", $%.4f" dollars) "")
             (if (> replies 1) (format " for %d replies" replies) "")
             (if miss (concat ", cache missed: " miss) "")
             "\n")
     'face 'efrit-figures)))

(defun efrit-view--miss (reply)
  "Return why the cache missed for REPLY, in the API's words, or nil."
  (let* ((said (cdr (assoc "diagnostics" (efrit-reply-extras reply))))
         (reason (and (hash-table-p said) (gethash "cache_miss_reason" said))))
    (cond ((stringp reason) reason)
          ((hash-table-p reason)
           (let ((kind (gethash "type" reason)))
             (if (stringp kind) kind (efrit-json-text reason)))))))

(defun efrit-view--warn (reply)
  "Warn of what the API changed in the conversation before REPLY."
  (when-let* ((changed (cdr (assoc "input_transformations" (efrit-reply-extras reply)))))
    (display-warning
     'efrit (format "The API changed what was sent, which is a defect of efrit's: %s"
                    (efrit-json-text changed)))))

;;;; Tools

(defun efrit-view--use (use)
  "Show USE as it is now."
  (let ((item (gethash (efrit-use-id use) efrit-view--uses)))
    (unless (eq (efrit-use-state use) 'running)
      (remhash (efrit-use-id use) efrit-view--outputs))
    (if (null item)
        (efrit-view-use use)
      (setf (efrit-item-data item) use)
      (efrit-item-refresh item))))

(defun efrit-view--output (id text)
  "Show TEXT, the end of what the tool of the use ID has written so far."
  (let ((item (gethash id efrit-view--uses)))
    (when (and item
               (> efrit-output-lines 0)
               (eq (efrit-use-state (efrit-item-data item)) 'running))
      (puthash id text efrit-view--outputs)
      (efrit-item-refresh item))))

(defun efrit-view--use-head (item)
  "Return the line of ITEM, a tool use, with what its tool has written so far."
  (let ((use (efrit-item-data item)))
    (concat (efrit-show-use use)
            (pcase (efrit-use-state use)
              ('written (propertize "  being written" 'face 'efrit-figures))
              ('running (propertize "  running" 'face 'efrit-busy))
              ('asking (propertize "  asks you" 'face 'efrit-question))
              (_ ""))
            "\n"
            (efrit-output-text (gethash (efrit-use-id use) efrit-view--outputs)))))

(defun efrit-view--use-body (item)
  "Return what ITEM, a tool use, was given and gave."
  (let* ((use (efrit-item-data item))
         (text (plist-get (efrit-use-result use) :text)))
    (concat
     (efrit-view--block (efrit-ask-arguments-text use) 'efrit-arguments)
     (if text
         (efrit-view--block (efrit-view--truncate text) 'efrit-delivered)
       (efrit-view--block "No result yet." 'efrit-note)))))

(defun efrit-view--truncate (text)
  "Return TEXT, or its beginning and how much is left out."
  (if (<= (length text) efrit-view-most-characters)
      text
    (concat (substring text 0 efrit-view-most-characters)
            (format "\n[%d characters more; o shows the whole]"
                    (- (length text) efrit-view-most-characters)))))

;;;; States

(defun efrit-view--state (loop state old)
  "Show that LOOP is in STATE, and was in OLD."
  (unless (eq state 'retrying)
    (efrit-live-end-count))
  (when (memq state efrit-loop-resting)
    (efrit-ask-close)
    (when (memq old '(waiting retrying))
      (efrit-view--drop-streamed))
    (efrit-view--show-rest-reason loop state old))
  (efrit-live-refresh))

(defun efrit-view--show-rest-reason (loop state old)
  "Say why LOOP, which was in OLD, rests in STATE."
  (cond
   ((eq state 'failed)
    (efrit-view-note (concat "✗ " (or (efrit-loop-problem loop) "It failed.")) 'efrit-failed))
   ((not (eq state 'idle)) (efrit-view-note (concat "✗ " (efrit-show-state state))
                                            'efrit-failed))
   ((or (efrit-loop-stopping loop)
        (memq old '(beginning waiting retrying))
        (and (eq old 'running) (not (efrit-loop-complete loop))))
    (efrit-view-note "— stopped —"))))

;;;; Texts

(defun efrit-view--line (text)
  "Return TEXT with a newline at its end."
  (if (string-suffix-p "\n" text) text (concat text "\n")))

(defun efrit-view--block (text face)
  "Return TEXT in FACE as the body of an item, set in a little."
  (efrit-view--indent (efrit-view--line text) face))

(defun efrit-view--indent (text face)
  "Return TEXT in FACE, set in a little."
  (propertize text 'face face 'line-prefix "    " 'wrap-prefix "    "))

(defun efrit-view--fold (kind title text face)
  "Add an item of KIND that is folded: TITLE and the length of TEXT, in FACE.
TEXT may be a function that is called with the item for it."
  (efrit-item-add
   kind
   (lambda (item)
     (propertize (format "%s%s  %d characters\n" (efrit-item-fold-sign item) title
                         (length (efrit-view--data-text item)))
                 'face face))
   :data text
   :body (lambda (item) (efrit-view--block (efrit-view--data-text item) face))))

(defun efrit-view--data-text (item)
  "Return the text of ITEM, which may be a function's."
  (let ((data (efrit-item-data item)))
    (if (functionp data) (funcall data item) data)))

;;; The history of a session

;; A session that is taken up again is shown from the sidecar's record of
;; it, turns that have left the window included, above whatever happens from
;; now on.

(defun efrit-history-show (loop)
  "Show in this buffer what was said in LOOP before, once it is there."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'session/transcript (list :session_id (efrit-loop-id loop))
     :timeout nil
     :success (lambda (record)
                (efrit-transcript-in buffer
                  (efrit-history-insert (plist-get record :turns))))
     :error (lambda (err)
              (efrit-transcript-in buffer
                (efrit-view-note (concat "✗ What was said before cannot be shown: "
                                         (efrit-error-text err))
                                 'efrit-failed))))))

(defun efrit-history-insert (entries)
  "Insert ENTRIES of the record, at the beginning of the transcript."
  (let ((efrit-transcript-place efrit-transcript-begin))
    (seq-doseq (entry entries)
      (efrit-history--insert-entry entry))))

(defun efrit-history--insert-entry (entry)
  "Insert ENTRY of the record."
  (pcase (plist-get entry :kind)
    ("request" (efrit-view-message (efrit-history--text-blocks entry)))
    ("notice" (dolist (block (efrit-history--text-blocks entry))
                (efrit-view-note (concat "— " (plist-get block :text)))))
    ("reply" (seq-doseq (block (plist-get entry :content))
               (efrit-history--insert-block block)))
    ("result" (efrit-history--insert-result entry))))

(defun efrit-history--text-blocks (entry)
  "Return the blocks of text in ENTRY, a list of plists."
  (seq-filter (lambda (block) (equal (plist-get block :type) "text"))
              (plist-get entry :content)))

(defun efrit-history--insert-block (block)
  "Insert BLOCK of a reply; tools have their line where their result stands."
  (pcase (plist-get block :type)
    ("text" (efrit-view-text (string-trim-right (plist-get block :text))))
    ("thinking" (efrit-view-thinking (or (plist-get block :thinking) "")))))

(defun efrit-history--insert-result (entry)
  "Insert the use of a tool whose result is ENTRY."
  (efrit-view-use
   (efrit-use-create
    :id (plist-get entry :tool_use_id) :name (plist-get entry :tool)
    :arguments (efrit-history--json (plist-get entry :arguments))
    :state 'done
    :result (and (plist-get entry :handle)
                 (list :status (plist-get entry :status) :handle (plist-get entry :handle)
                       :tokens (plist-get entry :tokens) :text (plist-get entry :text))))))

(defun efrit-history--json (arguments)
  "Return ARGUMENTS, a plist, as the JSON text of an object."
  (if arguments
      (decode-coding-string (efrit-json-write arguments) 'utf-8)
    "{}"))

;;; Stored results

;; What a tool gave is stored whole by the sidecar.  A person looks at it
;; here; that is no use of it, and costs no token.

(defun efrit-result-show (session handle)
  "Show the result HANDLE of SESSION, an id, in a buffer of its own."
  (let ((buffer (get-buffer-create (format "*efrit result: %s %s*" session handle))))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching it from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     'worklog/show (list :session_id session :handle handle
                         :most efrit-result-most-characters)
     :timeout nil
     :success (lambda (shown) (efrit-result--fill buffer shown))
     :error (lambda (err) (efrit-result--fill buffer (list :text (efrit-error-text err)))))
    buffer))

(define-derived-mode efrit-result-mode special-mode "Efrit-Result"
  "A stored result of a tool, as it is."
  (setq-local bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t)
  (setq truncate-lines t
        buffer-undo-list t))

;;;; Commands

;;;###autoload
(defun efrit-open-result ()
  "Show the stored result of the tool at point, or of the latest one above."
  (interactive)
  (let* ((loop (efrit-loop-current))
         (use (or (efrit-result--use-here)
                  (user-error "No tool was used here")))
         (handle (plist-get (efrit-use-result use) :handle)))
    (unless handle
      (user-error "%s has no result that is stored" (efrit-use-name use)))
    (efrit-result-show (efrit-loop-id loop) handle)))

(defun efrit-result--use-here ()
  "Return the tool use at point or the nearest one above, or nil."
  (let ((place (point))
        item)
    (while (and (setq item (efrit-result--item-before place))
                (not (eq (efrit-item-kind item) 'use)))
      (setq place (1- (efrit-item-start item))))
    (and item (efrit-item-data item))))

(defun efrit-result--item-before (place)
  "Return the item at PLACE, or the nearest one before, or nil."
  (and (>= place (point-min))
       (or (efrit-item-at place)
           (let ((before (previous-single-property-change (min place (point-max))
                                                          'efrit-item)))
             (and before (> before (point-min)) (efrit-item-at (1- before)))))))

(defun efrit-result--fill (buffer shown)
  "Fill BUFFER with SHOWN, a result as the sidecar has it."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let* ((text (or (plist-get shown :text) ""))
             (more (- (or (plist-get shown :characters) 0) (length text))))
        (efrit-result--write text)
        (when (> more 0)
          (efrit-result--append (format "\n[%d characters more are stored; see \
`efrit-result-most-characters']\n" more)))
        (setq header-line-format (efrit-result--header shown))
        (when (funcall so-long-predicate)
          (so-long))))))

(defun efrit-result--write (text)
  "Make TEXT all that there is in this buffer."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (save-excursion (insert text))))

(defun efrit-result--append (text)
  "Add TEXT to this buffer, as said by efrit."
  (let ((inhibit-read-only t))
    (save-excursion
      (goto-char (point-max))
      (insert (propertize text 'face 'efrit-note)))))

(defun efrit-result--header (shown)
  "Return the header line for SHOWN, a result as the sidecar has it."
  (and (plist-get shown :handle)
       (replace-regexp-in-string
        "%" "%%"
        (format " %s  %s  %s tokens, %s" (plist-get shown :handle) (plist-get shown :tool)
                (efrit-show-tokens (plist-get shown :tokens)) (plist-get shown :state)))))

;;; Stored requests and replies

;; A request or a reply as the sidecar stored it, or the system text and the
;; tools, as they go before every request.

(defun efrit-turn-text-show (loop turn kind)
  "Show what was said in TURN of LOOP: its KIND is \"request\" or \"reply\"."
  (efrit-turn-text--fetch
   loop 'session/transcript (format "*efrit said: %s t%d*" (efrit-loop-id loop) turn)
   (lambda (told)
     (mapconcat (lambda (entry) (efrit-export-entry entry 'markdown))
                (seq-filter (lambda (entry)
                              (and (eql (plist-get entry :turn) turn)
                                   (equal (plist-get entry :kind) kind)))
                            (plist-get told :turns))
                ""))))

(defun efrit-turn-text-show-system (loop)
  "Show the system text and the tools of LOOP, as they were sent last."
  (efrit-turn-text--fetch
   loop 'session/messages (format "*efrit system: %s*" (efrit-loop-id loop))
   (lambda (told)
     (concat (mapconcat (lambda (block) (plist-get block :text))
                        (plist-get told :system) "\n\n")
             "\n"
             (mapconcat #'efrit-turn-text--tool (plist-get told :tools) "")))))

(defun efrit-turn-text--tool (tool)
  "Return TOOL, a plist, as text."
  (format "\n%s\n  %s\n" (plist-get tool :name) (plist-get tool :description)))

(defun efrit-turn-text--fetch (loop method name text)
  "Call METHOD for LOOP; show its result through TEXT in the buffer NAME."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching it from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     method (list :session_id (efrit-loop-id loop))
     :timeout nil
     :success (lambda (told) (efrit-turn-text--fill buffer (funcall text told)))
     :error (lambda (err) (efrit-turn-text--fill buffer (efrit-error-text err))))
    buffer))

(defun efrit-turn-text--fill (buffer text)
  "Fill BUFFER with TEXT, if it is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (efrit-result--write text))))

;;; The buffer

;; One buffer for each session: what was said and done, how things stand,
;; and a box to reply in.  Single letters are commands above the box, and
;; text in it; what begins with C-c is a command everywhere in the buffer.

(defvar efrit-session-view--buffers (make-hash-table :test #'eq :weakness 'key)
  "The buffers of loops.")

(defvar efrit-session-view-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key ,command)
                   '(("\r" efrit-session-view-return)
                     ("\n" newline)
                     ("\t" efrit-session-view-tab)
                     ("\M-p" efrit-session-view-previous)
                     ("\M-n" efrit-session-view-next)
                     ("\C-c\C-c" efrit-reply-box-send)
                     ("\C-c\C-k" efrit-stop)
                     ("\C-c\C-x" efrit-stop-tool)
                     ("\C-c\C-t" efrit-continue)
                     ("\C-c\C-r" efrit-retry)
                     ("\C-c\C-o" efrit-open-result)
                     ("\C-c\C-w" efrit-copy)
                     ("\C-c\C-b" efrit-budget)
                     ("\C-c\C-l" efrit-resume)
                     ("\C-c\C-a" efrit-ask-go)
                     ("\C-c\C-y" efrit-allow-once)
                     ("\C-c\C-d" efrit-deny-once)
                     ("\C-c\C-p" efrit-item-previous)
                     ("\C-c\C-n" efrit-item-next)
                     ("\C-c?" efrit)))
      (define-key map key command))
    map)
  "Keys everywhere in a session's buffer.")

(defvar efrit-session-view-transcript-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map efrit-session-view-mode-map)
    (define-key map [remap self-insert-command] #'efrit-session-view-no-key)
    (pcase-dolist (`(,key ,command)
                   '(("?" efrit)
                     ("k" efrit-stop)
                     ("x" efrit-stop-tool)
                     ("c" efrit-continue)
                     ("r" efrit-retry)
                     ("o" efrit-open-result)
                     ("w" efrit-copy)
                     ("b" efrit-budget)
                     ("R" efrit-resume)
                     ("i" efrit-reply-box-go)
                     ("]" efrit-item-next)
                     ("[" efrit-item-previous)
                     (" " scroll-up-command)
                     ([?\S-\ ] scroll-down-command)
                     ("\d" scroll-down-command)
                     ("q" quit-window)
                     ([mouse-2] efrit-session-view-click)))
      (define-key map key command))
    map)
  "Keys above the reply box.")

(define-derived-mode efrit-session-view-mode nil "Efrit"
  "A session of efrit.
Above the reply box:
\\{efrit-session-view-transcript-map}
Everywhere:
\\{efrit-session-view-mode-map}"
  (setq-local scroll-conservatively 10000
              bidi-paragraph-direction 'left-to-right
              header-line-format '(:eval (efrit-session-view--header))
              mode-line-process '(:eval (efrit-session-view--activity)))
  (setq truncate-lines nil
        word-wrap t)
  (add-hook 'change-major-mode-hook #'efrit-session-view--refuse-mode nil t)
  (add-hook 'kill-buffer-query-functions #'efrit-session-view--may-kill-p nil t)
  (add-hook 'kill-buffer-hook #'efrit-session-view--on-kill nil t))

(defun efrit-session-view-buffer (loop)
  "Return the buffer of LOOP; make it if necessary."
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
  "Show the session of the project here."
  (interactive)
  (efrit-session-view-show (efrit-loop-current)))

(defun efrit-session-view-return ()
  "Send what is in the reply box; above it, push the button or open what is here."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-send)
    (efrit-session-view--act)))

(defun efrit-session-view-tab ()
  "Complete in the reply box; above it, open or fold what is here."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (completion-at-point)
    (efrit-session-view--act)))

(defun efrit-session-view-click (event)
  "Push the button, or open or fold what is at EVENT, a click."
  (interactive "e")
  (mouse-set-point event)
  (efrit-session-view--act))

(defun efrit-session-view-previous ()
  "Show in the reply box what was said before; above it, go to the item before."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-previous)
    (efrit-item-previous)))

(defun efrit-session-view-next ()
  "Show in the reply box what was said later; above it, go to the next item."
  (interactive)
  (if (efrit-transcript-in-box-p)
      (efrit-reply-box-next)
    (efrit-item-next)))

(defun efrit-session-view-no-key ()
  "Signal a `user-error': the key is undefined here."
  (interactive)
  (user-error "%s is undefined; ? shows the keys, i goes to the reply box"
              (key-description (this-command-keys))))

;;;###autoload
(defun efrit-copy ()
  "Copy what stands at point: the region, or what was said, thought, or given."
  (interactive)
  (let ((item (efrit-item-at (point))))
    (cond ((use-region-p) (copy-region-as-kill (region-beginning) (region-end)))
          (item (kill-new (efrit-view-item-text item))
                (message "Copied %d characters" (length (car kill-ring))))
          (t (user-error "Nothing to copy is here")))))

;;;; Making

(defun efrit-session-view--make (loop)
  "Make the buffer of LOOP, and return it."
  (let* ((root (efrit-loop-root loop))
         (name (file-name-nondirectory (directory-file-name root)))
         (buffer (generate-new-buffer (format "*efrit: %s*" name))))
    (puthash loop buffer efrit-session-view--buffers)
    (with-current-buffer buffer
      (efrit-session-view-mode)
      (setq default-directory (file-name-as-directory root)
            efrit-loop-here loop)
      (efrit-transcript-set-up (efrit-session-view--title loop)
                               (efrit-session-view--prompt)
                               efrit-session-view-transcript-map)
      (efrit-view-events-set-up loop)
      (efrit-reply-box-set-up #'efrit-session-view--send)
      (efrit-live-refresh)
      (goto-char (point-max))
      (efrit-session-view--load loop))
    (efrit-loop-observe loop #'efrit-session-view--observe)
    buffer))

(defun efrit-session-view--load (loop)
  "Ask the sidecar for what this buffer is to show of LOOP at the beginning."
  (when (or (efrit-loop-stale loop) (> (efrit-loop-turn loop) 0))
    (efrit-history-show loop))
  (unless (efrit-loop-budget loop)
    (efrit-sidecar-request-async
     'session/status (list :session_id (efrit-loop-id loop))
     :success (lambda (status)
                (unless (efrit-loop-budget loop)
                  (setf (efrit-loop-budget loop) (plist-get status :budget))
                  (force-mode-line-update t)))
     :error #'ignore)))

(defun efrit-session-view--title (loop)
  "Return the first line of the buffer of LOOP."
  (propertize (format "efrit  %s  session %s"
                      (abbreviate-file-name (efrit-loop-root loop)) (efrit-loop-id loop))
              'face 'efrit-title))

(defun efrit-session-view--prompt ()
  "Return what stands between the live part and the reply box."
  (concat (propertize "RET sends · C-j begins a line · @ completes a file · C-c ? shows the keys\n"
                      'face 'efrit-note)
          (propertize "› " 'face 'efrit-prompt)))

;;;; Showing

(defun efrit-session-view--observe (loop event)
  "Show EVENT of LOOP in its buffer, if that is there."
  (let ((buffer (gethash loop efrit-session-view--buffers)))
    (efrit-transcript-in buffer
      (efrit-view-observe loop event)
      (when (memq (car event) '(begun ended price state))
        (force-mode-line-update))
      (efrit-session-view--keep-end))
    (when (buffer-live-p buffer)
      (efrit-presence-observe loop event buffer))))

(defun efrit-session-view--keep-end ()
  "See to it that windows whose point is in the live part show the end, too.
Who reads a question there is left alone."
  (dolist (window (efrit-transcript-windows))
    (when (and (not noninteractive)
               (<= efrit-transcript-end (window-point window) (1- efrit-transcript-box))
               (not (efrit-ask-at-p (window-point window)))
               (not (pos-visible-in-window-p (point-max) window)))
      (with-selected-window window
        (save-excursion
          (goto-char (point-max))
          (recenter -1))))))

(defun efrit-session-view--act ()
  "Push the button at point, or open or fold the item there."
  (let ((item (efrit-item-at (point))))
    (cond ((button-at (point)) (push-button (point)))
          ((and item (efrit-item-toggle item)))
          (t (user-error "Nothing to open is here")))))

(defun efrit-session-view--send (text)
  "Send TEXT, from the reply box: as an answer, or as what is to be done."
  (if (efrit-ask-open-p)
      (efrit-ask-answer text)
    (efrit-do-submit (efrit-loop-current) text)))

(defun efrit-session-view--header ()
  "Return the header line: the budget."
  (if efrit-loop-here
      (concat " " (replace-regexp-in-string
                   "%" "%%" (efrit-show-gauge efrit-loop-here (- (window-width) 2))))
    ""))

(defun efrit-session-view--activity ()
  "Return what the loop of this buffer does, for its mode line."
  (if efrit-loop-here
      (concat ": " (efrit-show-state (efrit-loop-state efrit-loop-here)))
    ""))

;;;; Killing, and other modes

(defun efrit-session-view--refuse-mode ()
  "Signal a `user-error': in another mode this buffer would show nothing any more."
  (user-error "This buffer shows a session, and stays in its mode"))

(defun efrit-session-view--may-kill-p ()
  "Return non-nil if this buffer may be killed, which stops what is at work."
  (or (null efrit-loop-here)
      (efrit-loop-resting-p efrit-loop-here)
      (yes-or-no-p "Efrit is at work here; the session stays.  Stop it? ")))

(defun efrit-session-view--on-kill ()
  "Stop what is at work in this buffer, which is being killed."
  (efrit-live-end-count)
  (when (and efrit-loop-here (not (efrit-loop-resting-p efrit-loop-here)))
    (efrit-loop-stop efrit-loop-here)))

;;; The menu

;; The menu of `M-x efrit', and of ? in a session's buffer.  It
;; fits a terminal of 80 columns and 24 lines.

(defun efrit-menu--heading ()
  "Return what stands above the menu: the project here, and its budget."
  (let ((loop (ignore-errors (efrit-loop-current))))
    (if loop
        (format "%s  %s" (abbreviate-file-name (efrit-loop-root loop)) (efrit-show-gauge loop 60))
      "No session is open here")))

;;;; Commands

;;;###autoload (autoload 'efrit "efrit-view" nil t)
(transient-define-prefix efrit ()
  "Have a model work in this project, within a token budget."
  [:description efrit-menu--heading
   ["Session"
    ("d" "do something" efrit-do)
    ("B" "do it with this buffer" efrit-do-with-buffer)
    ("+" "begin another session" efrit-new)
    ("v" "show it" efrit-view)
    ("c" "continue" efrit-continue)
    ("k" "stop" efrit-stop)
    ("x" "stop one tool" efrit-stop-tool)
    ("r" "retry" efrit-retry)]
   ["Answers"
    ("y" "allow once" efrit-allow-once)
    ("s" "this, this session" efrit-allow-for-session)
    ("a" "alike, this session" efrit-allow-alike-for-session)
    ("p" "this, in this project" efrit-allow-for-project)
    ("A" "alike, in this project" efrit-allow-alike-for-project)
    ("n" "deny once" efrit-deny-once)
    ("N" "deny this session" efrit-deny-for-session)
    ("e" "edit the new text" efrit-revise)
    ("F" "list and revoke" efrit-permissions)]
   ["Look"
    ("b" "budget" efrit-budget)
    ("u" "undo the last edit" efrit-undo)
    ("U" "list the edits" efrit-undo-session)
    ("o" "open result" efrit-open-result :if (lambda () efrit-loop-here))
    ("w" "copy" efrit-copy :if (lambda () efrit-loop-here))]]
  [["Sessions"
    ("R" "resume" efrit-resume)
    ("l" "list" efrit-sessions)
    ("O" "take new options" efrit-take-options)
    ("D" "check the set-up" efrit-doctor)]
   ["Memory"
    ("/" "search" efrit-memory-search)
    ("t" "timeline" efrit-memory-timeline)]
   [""
    ("m" "save the region" efrit-memory-save)
    ("P" "pack for elsewhere" efrit-context-pack)]])

(provide 'efrit-view)
;;; efrit-view.el ends here
