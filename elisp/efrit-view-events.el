;;; efrit-view-events.el --- What happens in a loop, written down  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each event of a loop becomes an item of its session's buffer, or changes
;; one: text and thinking grow as they stream, a tool's line says how far it
;; is, a reply ends in a line of what it cost.

;;; Code:

(require 'cl-lib)
(require 'efrit-ask)
(require 'efrit-live)
(require 'efrit-loop)
(require 'efrit-output)
(require 'efrit-reply)
(require 'efrit-run)
(require 'efrit-show)
(require 'efrit-transcript)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-view-most-characters 100000
  "How many characters of what a tool gave are shown below its line.
The whole is shown in a buffer of its own, see `efrit-open-result'."
  :group 'efrit
  :type 'natnum)

(defvar-local efrit-view--streamed nil
  "The items of the reply that streams, an alist of blocks and items.")

(defvar-local efrit-view--uses nil
  "The items of tool uses, a hash table by the uses' ids.")

(defvar-local efrit-view--outputs nil
  "What the tools that run wrote last, a hash table by the uses' ids.")

(defvar-local efrit-view--thought 0
  "When the length of what is being thought was shown last.")

(defvar-local efrit-view--cost nil
  "The item of the latest reply's end.")

(defvar-local efrit-view--unpriced 0
  "How many replies have ended since the price was heard of.")

(defvar-local efrit-view--dollars nil
  "What the session had cost when the price was heard of, or nil.")

;;; Public

(defun efrit-view-events-set-up (loop)
  "Make this buffer ready for the events of LOOP."
  (setq efrit-view--uses (make-hash-table :test #'equal)
        efrit-view--outputs (make-hash-table :test #'equal)
        efrit-live-unsent (append (efrit-loop-queue loop)
                                  (and (efrit-loop-sent loop)
                                       (list (efrit-loop-sent loop))))
        efrit-view--dollars (or (plist-get (efrit-loop-usage loop) :dollars)
                                (and (zerop (efrit-loop-turn loop))
                                     (not (efrit-loop-stale loop))
                                     0))))

(defun efrit-view-take (loop event)
  "Show EVENT of LOOP in this buffer, that of its session."
  (pcase event
    (`(piece ,block ,string) (efrit-view--piece block string))
    (`(begin ,block) (efrit-view--begin block))
    (`(end ,block) (efrit-view--end block))
    (`(,(or 'use 'ask) ,use) (efrit-view--use use) (efrit-live-refresh))
    (`(note ,text) (efrit-view-note (concat "— " text)))
    (`(output ,id ,text) (efrit-view--output id text))
    (`(queued ,blocks) (push blocks efrit-live-unsent) (efrit-live-refresh))
    (`(begun ,rewritten ,notes) (efrit-view--begun loop rewritten notes))
    (`(ended ,reply) (efrit-view--ended loop reply))
    (`(price ,dollars) (efrit-view--price dollars))
    (`(again) (efrit-live-end-count) (efrit-view--drop-streamed) (efrit-live-refresh))
    (`(retry ,seconds ,problem)
     (efrit-live-count-down seconds (plist-get problem :message)))
    (`(question ,call ,question ,options)
     (setq efrit-ask-question (list call question options))
     (efrit-live-refresh))
    (`(complete ,summary) (efrit-view-note (concat "✓ " summary) 'efrit-done))
    (`(state ,state ,old) (efrit-view--state loop state old))
    (`(todos . ,_) (efrit-live-refresh))))

(defun efrit-view-said (blocks)
  "Add BLOCKS, a message of the person's, a list of plists."
  (let ((context (butlast blocks)))
    (efrit-item-add 'said
                    (concat "\n" (propertize "You\n" 'face 'efrit-person)
                            (propertize (efrit-view--line (efrit-live-said blocks))
                                        'face 'efrit-said))
                    :data (efrit-live-said blocks))
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
              (efrit-ask-shown (efrit-item-data item))))
    ((or 'said 'note 'context 'thinking) (string-trim (efrit-view--data-text item)))
    (_ (string-trim (buffer-substring-no-properties (efrit-item-start item)
                                                    (efrit-item-end item))))))

(defun efrit-view-note (text &optional face)
  "Add TEXT as a word of efrit itself, in FACE."
  (efrit-item-add 'note (propertize (concat "\n" (efrit-view--line text))
                                    'face (or face 'efrit-note))
                  :data text))

;;; Replies

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
  (push (cons block item) efrit-view--streamed))

(defun efrit-view--piece (block string)
  "Show STRING, the next of BLOCK."
  (let ((item (alist-get block efrit-view--streamed nil nil #'eq)))
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
    (efrit-item-append item (efrit-view--set-in string 'efrit-thinking) 1))
  (when (> (- (float-time) efrit-view--thought) 0.3)
    (setq efrit-view--thought (float-time))
    (efrit-item-refresh item)))

(defun efrit-view--end (block)
  "Show that BLOCK has come whole."
  (when-let* ((item (alist-get block efrit-view--streamed nil nil #'eq)))
    (pcase (efrit-block-type block)
      ("thinking" (efrit-item-refresh item))
      ("tool_use"
       (setf (efrit-use-arguments (efrit-item-data item))
             (or (efrit-block-input block) (efrit-block-text block)))
       (efrit-item-refresh item)))))

(defun efrit-view--drop-streamed ()
  "Remove what streamed of a reply that did not end."
  (pcase-dolist (`(,block . ,item) efrit-view--streamed)
    (efrit-item-remove item)
    (remhash (efrit-block-id block) efrit-view--uses))
  (setq efrit-view--streamed nil))

(defun efrit-view--begun (loop rewritten notes)
  "Show that LOOP has begun a turn, with REWRITTEN messages and NOTES."
  (efrit-view--drop-streamed)
  (mapc #'efrit-view-said (reverse efrit-live-unsent))
  (setq efrit-live-unsent nil)
  (when rewritten
    (efrit-view-note (format "— epoch %d: older results gave way to a line each —"
                             (efrit-loop-epoch loop))))
  (dolist (note notes)
    (efrit-view-note (concat "— " note)))
  (efrit-live-refresh))

(defun efrit-view--ended (loop reply)
  "Show what REPLY, which has ended in LOOP, has cost."
  (pcase-dolist (`(,block . ,item) efrit-view--streamed)
    (when (equal (efrit-block-type block) "tool_use")
      (if (efrit-block-done block)
          (efrit-view--end block)
        (setf (efrit-use-state (efrit-item-data item)) 'done)
        (efrit-item-refresh item))))
  (setq efrit-view--streamed nil
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

;;; Tools

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
     (efrit-view--block (efrit-ask-shown use) 'efrit-arguments)
     (if text
         (efrit-view--block (efrit-view--cut text) 'efrit-delivered)
       (efrit-view--block "No result yet." 'efrit-note)))))

(defun efrit-view--cut (text)
  "Return TEXT, or its beginning and how much is left out."
  (if (<= (length text) efrit-view-most-characters)
      text
    (concat (substring text 0 efrit-view-most-characters)
            (format "\n[%d characters more; o shows the whole]"
                    (- (length text) efrit-view-most-characters)))))

;;; States

(defun efrit-view--state (loop state old)
  "Show that LOOP is in STATE, and was in OLD."
  (unless (eq state 'retrying)
    (efrit-live-end-count))
  (when (memq state efrit-loop-resting)
    (setq efrit-ask-question nil)
    (when (memq old '(waiting retrying))
      (efrit-view--drop-streamed))
    (efrit-view--rests loop state old))
  (efrit-live-refresh))

(defun efrit-view--rests (loop state old)
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

;;; Texts

(defun efrit-view--line (text)
  "Return TEXT with a newline at its end."
  (if (string-suffix-p "\n" text) text (concat text "\n")))

(defun efrit-view--block (text face)
  "Return TEXT in FACE as the body of an item, set in a little."
  (efrit-view--set-in (efrit-view--line text) face))

(defun efrit-view--set-in (text face)
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

(provide 'efrit-view-events)
;;; efrit-view-events.el ends here
