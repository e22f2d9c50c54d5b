;;; efrit-anthropic.el --- The Messages API  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Writes requests of the Messages API, and reads its events.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-rpc)

;;; Requests

;; A local server that speaks the same API works too: set
;; `efrit-claude-url' and `efrit-claude-model'; no key is needed there.

(defun efrit-anthropic--headers (key model)
  "Return the headers of a request with KEY, or nil, to MODEL, a plist."
  (let ((betas (efrit-anthropic--betas model)))
    `(("anthropic-version" . "2023-06-01")
      ,@(and key (list (cons "x-api-key" key)))
      ,@(and betas (list (cons "anthropic-beta" (string-join betas ",")))))))

(defun efrit-anthropic--betas (model)
  "Return the names of the API betas for a request to MODEL, a plist."
  (append (and efrit-claude-task-budget
               (efrit-endpoint-feature-p 'task-budget model)
               '("task-budgets-2026-03-13"))
          (and (efrit-endpoint-feature-p 'binding model)
               '("thinking-binding-controls-2026-08-01"))
          (and (equal efrit-claude-thinking-display "updates")
               (efrit-endpoint-feature-p 'thinking model)
               '("thinking-display-updates-2026-08-18"))
          efrit-claude-betas))

(defun efrit-anthropic--body (parts)
  "Return the members of a request with PARTS, see BODY of `efrit-api'."
  (let ((model (plist-get parts :model)))
    (delq nil
          (list (cons "model" (efrit-json-text efrit-claude-model))
                (cons "max_tokens" (format "%d" (plist-get parts :max-tokens)))
                (cons "stream" "true")
                (and (efrit-endpoint-feature-p 'cache model)
                     '("cache_control" . "{\"type\":\"ephemeral\"}"))
                (efrit-anthropic--thinking model)
                (efrit-anthropic--output model (plist-get parts :left-window))
                (efrit-anthropic--diagnostics (plist-get parts :previous-id))
                (cons "tools" (plist-get parts :tools))
                (cons "system" (plist-get parts :system))
                (cons "messages" (efrit-request-array (plist-get parts :messages)))))))

(defun efrit-anthropic--thinking (model)
  "Return the member (NAME . JSON) that has MODEL think, or nil if it cannot.
If thinking is off, that is the least thinking that MODEL allows."
  (when (efrit-endpoint-feature-p 'thinking model)
    (cons "thinking"
          (efrit-json-text
           (cond ((not (equal efrit-claude-thinking-display "off"))
                  `((type . "adaptive")
                    (display . ,efrit-claude-thinking-display)
                    ,@(and (efrit-endpoint-feature-p 'binding model)
                           '((block_binding . ((prefix_mismatch_behavior . "drop_block")))))))
                 ;; Models that bind their thinking refuse to have it disabled.
                 ((eq (plist-get model :binding) t) '((type . "between_tools")))
                 (t '((type . "disabled"))))))))

(defun efrit-anthropic--output (model left)
  "Return the member with effort and task budget for MODEL, or nil for neither.
The API counts the messages against the task budget; LEFT, the tokens that
rewrites removed from the messages, or nil, is subtracted from it here."
  (let ((effort (and efrit-claude-effort
                     (efrit-endpoint-feature-p 'effort model)
                     `((effort . ,efrit-claude-effort))))
        (budget (and efrit-claude-task-budget
                     (efrit-endpoint-feature-p 'task-budget model)
                     `((task_budget
                        . ((type . "tokens")
                           (total . ,efrit-claude-task-budget)
                           ,@(and left (> left 0)
                                  `((remaining
                                     . ,(max 0 (- efrit-claude-task-budget left)))))))))))
    (and (or effort budget)
         (cons "output_config" (efrit-json-text (append effort budget))))))

(defun efrit-anthropic--diagnostics (previous)
  "Return the member that requests cache diagnostics, or nil if not supported.
PREVIOUS is the id of the reply before, or nil for the first request."
  (and (efrit-endpoint-feature-p 'diagnostics)
       (cons "diagnostics"
             (efrit-json-text `((previous_message_id . ,(or previous :null)))))))

;;; Events

;; A reply is streamed as blocks: the beginning of a block, then fragments of
;; its text, then its end, each with the block's index.  Servers that speak the
;; API after a fashion leave out the index, or ends, or give a whole input with
;; the beginning, or the whole reply as one object.

(defun efrit-anthropic--event (reply event)
  "Add EVENT to REPLY, see EVENT of `efrit-api'."
  (pcase (gethash "type" event)
    ("message_start" (efrit-anthropic--start reply (gethash "message" event)))
    ("content_block_start"
     (efrit-anthropic--begin reply (gethash "content_block" event) (gethash "index" event)))
    ("content_block_delta"
     (efrit-anthropic--add-delta (efrit-anthropic--block reply event) (gethash "delta" event)))
    ("content_block_stop"
     (when-let* ((block (efrit-anthropic--block reply event)))
       (efrit-reply-end-block block)))
    ("message_delta" (efrit-anthropic--delta reply event))
    ("message_stop" (efrit-reply-finish reply))
    ("message" (efrit-anthropic--whole reply event))))

(defun efrit-anthropic--start (reply message)
  "Store the id, the usage and the extras of MESSAGE, a hash table, in REPLY."
  (setf (efrit-reply-id reply) (gethash "id" message))
  (efrit-anthropic--count reply (gethash "usage" message))
  (efrit-anthropic--take-extras reply message))

(defun efrit-anthropic--count (reply usage)
  "Copy USAGE, a hash table or nil, into the usage of REPLY, over earlier counts.
A zero replaces no count: some servers know the prompt only at the beginning."
  (when (hash-table-p usage)
    (maphash (lambda (name value)
               (unless (or (eq value :null)
                           (and (eql value 0) (gethash name (efrit-reply-usage reply))))
                 (puthash name value (efrit-reply-usage reply))))
             usage)))

(defun efrit-anthropic--take-extras (reply object)
  "Copy input transformations and diagnostics from OBJECT to REPLY, if any."
  (dolist (name '("input_transformations" "diagnostics"))
    (let ((value (gethash name object)))
      (unless (member value '(nil :null []))
        (setf (alist-get name (efrit-reply-extras reply) nil nil #'equal) value)))))

(defun efrit-anthropic--block (reply event)
  "Return the block of REPLY that EVENT is about, or nil."
  (let ((index (gethash "index" event))
        (latest (car (efrit-reply-blocks reply))))
    (if (and (integerp index) latest (efrit-block-index latest))
        (cl-find index (efrit-reply-blocks reply) :key #'efrit-block-index)
      latest)))

(defun efrit-anthropic--begin (reply object index)
  "Add a block made from OBJECT, a hash table, to REPLY; return its events.
INDEX is its number in the stream, or nil."
  (let ((type (gethash "type" object))
        (index (and (integerp index) index)))
    (unless (stringp type)
      (error "A block has no type"))
    (if (equal type "tool_use")
        (efrit-reply-add-tool-use reply :id (gethash "id" object) :name (gethash "name" object)
                                  :index index :object object)
      (let ((block (efrit-block-create :type type :object object :index index)))
        (efrit-anthropic--sign block (gethash "signature" object))
        (append (efrit-reply-add-block reply block)
                (when (member type '("text" "thinking"))
                  (efrit-reply-add-piece block (gethash type object))))))))

(defun efrit-anthropic--sign (block signature)
  "Add SIGNATURE, a string, to that of BLOCK; ignore anything else."
  (when (stringp signature)
    (setf (efrit-block-signature block) (concat (efrit-block-signature block) signature))))

(defun efrit-anthropic--add-delta (block delta)
  "Add DELTA, a hash table, to BLOCK, which may be nil; return what to show."
  (when block
    (pcase (gethash "type" delta)
      ("text_delta" (efrit-reply-add-piece block (gethash "text" delta)))
      ("thinking_delta" (efrit-reply-add-piece block (gethash "thinking" delta)))
      ("input_json_delta" (efrit-reply-add-piece block (gethash "partial_json" delta)))
      ("signature_delta" (ignore (efrit-anthropic--sign block (gethash "signature" delta)))))))

(defun efrit-anthropic--delta (reply event)
  "Store the stop reason, usage and extras of EVENT, a hash table, in REPLY."
  (let ((delta (gethash "delta" event)))
    (when (hash-table-p delta)
      (efrit-reply-stop reply (gethash "stop_reason" delta)))
    (efrit-anthropic--count reply (gethash "usage" event))
    (efrit-anthropic--take-extras reply event)))

(defun efrit-anthropic--whole (reply message)
  "Make REPLY that of MESSAGE, a hash table with a whole reply; return its events."
  (efrit-anthropic--start reply message)
  (efrit-reply-stop reply (gethash "stop_reason" message))
  (append (mapcan (lambda (object) (efrit-anthropic--begin reply object nil))
                  (gethash "content" message))
          (efrit-reply-finish reply)))

;;; Errors

(defun efrit-anthropic--error (kind)
  "Return `passing' if an error of KIND may pass, see ERROR of `efrit-api'."
  (and (member kind '("overloaded_error" "api_error" "rate_limit_error" "timeout_error"))
       'passing))

(setf (alist-get 'messages efrit-apis)
      (efrit-api-create :path "/messages"
                        :headers #'efrit-anthropic--headers
                        :body #'efrit-anthropic--body
                        :event #'efrit-anthropic--event
                        :error #'efrit-anthropic--error))

(provide 'efrit-anthropic)
;;; efrit-anthropic.el ends here
