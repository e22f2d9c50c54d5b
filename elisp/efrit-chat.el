;;; efrit-chat.el --- The Chat Completions API  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Writes requests of the Chat Completions API, and reads its events.  Many
;; servers speak it, each in its own way.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-rpc)

;;; Requests

(defun efrit-chat--headers (key _model)
  "Return the headers of a request with KEY, or nil for none."
  (and key (list (cons "Authorization" (concat "Bearer " key)))))

(defun efrit-chat--body (parts)
  "Return the members of a request with PARTS, see BODY of `efrit-api'.
The sidecar's system text is the array of the first messages here."
  (let ((first (substring (plist-get parts :system) 1 -1))
        (tools (plist-get parts :tools)))
    (delq nil
          (list (cons "model" (efrit-json-text efrit-claude-model))
                (cons (if (efrit-endpoint-feature-p 'max-completion-tokens)
                          "max_completion_tokens"
                        "max_tokens")
                      (format "%d" (plist-get parts :max-tokens)))
                '("stream" . "true")
                (and (efrit-endpoint-feature-p 'usage)
                     '("stream_options" . "{\"include_usage\":true}"))
                (and efrit-claude-effort (efrit-endpoint-feature-p 'effort)
                     (cons "reasoning_effort" (efrit-json-text efrit-claude-effort)))
                (and (not (equal tools "[]")) (cons "tools" tools))
                (cons "messages" (efrit-request-array
                                  (append (and (not (string-empty-p first)) (list first))
                                          (plist-get parts :messages))))))))

;;; Events

;; An event, a chunk, has a part of the message.  Neither the beginning nor the
;; end of text, thinking and tool calls is marked: a text ends where thinking or
;; a tool call begins, and a tool call at the end of the reply.

(defconst efrit-chat--stop-reasons
  '(("stop" . "end_turn") ("tool_calls" . "tool_use") ("function_call" . "tool_use")
    ("length" . "max_tokens") ("content_filter" . "refusal"))
  "Alist from the finish reasons of this API to stop reasons of the Messages API.")

(defconst efrit-chat--thinking-fields '("reasoning_content" "reasoning")
  "The fields of a message in which servers put thinking.")

(defun efrit-chat--event (reply event)
  "Add EVENT to REPLY, see EVENT of `efrit-api'."
  (let* ((choices (gethash "choices" event))
         (choice (and (vectorp choices) (> (length choices) 0) (aref choices 0)))
         (message (and choice (efrit-chat--object choice "message")))
         (part (or message (and choice (efrit-chat--object choice "delta")))))
    (when (stringp (gethash "id" event))
      (setf (efrit-reply-id reply) (gethash "id" event)))
    (dolist (holder (list event (efrit-chat--object event "x_groq") choice))
      (efrit-chat--count reply (and holder (efrit-chat--object holder "usage"))))
    (nconc (and part (efrit-chat--add-part reply part))
           (and choice (ignore (efrit-chat--stop reply (gethash "finish_reason" choice))))
           (and message (efrit-reply-finish reply)))))

(defun efrit-chat--object (object name)
  "Return the member NAME of OBJECT if it is an object, else nil."
  (let ((value (gethash name object)))
    (and (hash-table-p value) value)))

(defun efrit-chat--word (object name)
  "Return the member NAME of OBJECT, a hash table or nil, if it is text, or nil."
  (let ((value (and object (gethash name object))))
    (and (stringp value) (not (string-blank-p value)) value)))

(defun efrit-chat--stop (reply reason)
  "Store REASON, why REPLY ended, as the Messages API has it."
  (when (stringp reason)
    (efrit-reply-stop reply (alist-get reason efrit-chat--stop-reasons reason nil #'equal))))

(defun efrit-chat--count (reply usage)
  "Store USAGE, a hash table or nil, in REPLY by the names of the Messages API.
Some servers count what the model thought in the total alone."
  (when usage
    (let* ((details (efrit-chat--object usage "prompt_tokens_details"))
           (prompt (efrit-chat--number usage "prompt_tokens"))
           (output (efrit-chat--number usage "completion_tokens"))
           (cached (min prompt (max (efrit-chat--number details "cached_tokens")
                                    (efrit-chat--number usage "prompt_cache_hit_tokens")))))
      (when (> prompt 0)
        (cl-loop for (name count)
                 in `(("input_tokens" ,(- prompt cached))
                      ("cache_read_input_tokens" ,cached)
                      ("output_tokens" ,(max output (- (efrit-chat--number usage "total_tokens")
                                                       prompt))))
                 do (puthash name count (efrit-reply-usage reply)))))))

(defun efrit-chat--number (object name)
  "Return the count NAME in OBJECT, a hash table or nil, or 0 for none."
  (let ((value (and object (gethash name object))))
    (if (natnump value) value 0)))

(defun efrit-chat--add-part (reply part)
  "Add PART of a message, a hash table, to REPLY; return what to show of it."
  (let ((field (seq-find (lambda (name) (efrit-chat--nonempty-p (gethash name part)))
                         efrit-chat--thinking-fields))
        (calls (gethash "tool_calls" part))
        (legacy (efrit-chat--object part "function_call")))
    (nconc (and field (efrit-chat--say reply "thinking" (gethash field part)
                                       `((field . ,field))))
           (efrit-chat--add-content reply (gethash "content" part))
           (efrit-chat--add-content reply (gethash "refusal" part))
           (and (vectorp calls)
                (mapcan (lambda (call)
                          (efrit-chat--add-call reply call (efrit-chat--object call "function")))
                        calls))
           (and legacy (efrit-chat--add-call reply part legacy)))))

(defun efrit-chat--nonempty-p (value)
  "Return non-nil if VALUE is a string that is not empty."
  (and (stringp value) (not (string-empty-p value))))

;;;; Text and thinking

(defun efrit-chat--add-content (reply content)
  "Add CONTENT, a text or a vector of parts, to REPLY; return what to show."
  (cond ((efrit-chat--nonempty-p content) (efrit-chat--say reply "text" content))
        ((vectorp content)
         (mapcan (lambda (part)
                   (pcase (gethash "type" part)
                     ("text" (efrit-chat--say reply "text" (gethash "text" part)))
                     ("thinking" (efrit-chat--say reply "thinking"
                                                  (efrit-chat--parts-text
                                                   (gethash "thinking" part))))))
                 content))))

(defun efrit-chat--parts-text (parts)
  "Return the text of PARTS, a text or a vector of objects with texts."
  (if (vectorp parts)
      (mapconcat (lambda (part) (gethash "text" part)) parts "")
    parts))

(defun efrit-chat--say (reply type text &optional extra)
  "Add TEXT to REPLY, to the open block if that is of TYPE, else to a new one.
EXTRA is that of a new block.  Return what to show."
  (let ((open (efrit-chat--open-block reply)))
    (if (and open (equal type (efrit-block-type open)))
        (efrit-reply-add-piece open text)
      (let ((block (efrit-block-create :type type :extra extra)))
        (nconc (and open (efrit-reply-end-block open))
               (efrit-reply-add-block reply block)
               (efrit-reply-add-piece block text))))))

(defun efrit-chat--open-block (reply)
  "Return the block of REPLY with text or thinking that has not ended, or nil."
  (seq-find (lambda (block)
              (not (or (efrit-block-done block) (equal (efrit-block-type block) "tool_use"))))
            (efrit-reply-blocks reply)))

;;;; Tool calls

(defun efrit-chat--add-call (reply call function)
  "Add CALL, a part of a tool call, to REPLY; return what to show of it.
FUNCTION is the hash table in it with name and arguments, or nil.  Arguments
may come in pieces, each with or without the name, or whole."
  (let* ((name (efrit-chat--word function "name"))
         (value (and function (gethash "arguments" function)))
         (arguments (cond ((stringp value) value)
                          ((memq value '(nil :null)) "")
                          (t (efrit-json-text value))))
         (block (efrit-chat--continued-block reply call name arguments))
         (events (and (null block)
                      (or name (not (string-blank-p arguments)))
                      (efrit-chat--begin-call reply call name)))
         (block (or block (and events (car (efrit-reply-blocks reply))))))
    (when block
      (when-let* ((signed (efrit-chat--object call "extra_content")))
        (setf (alist-get 'extra_content (efrit-block-extra block)) signed))
      (nconc events (efrit-reply-add-piece block arguments)))))

(defun efrit-chat--begin-call (reply call name)
  "Add a tool use of the tool NAME to REPLY, made from CALL; return its events."
  (let ((open (efrit-chat--open-block reply))
        (index (gethash "index" call)))
    (nconc (and open (efrit-reply-end-block open))
           (efrit-reply-add-tool-use reply :id (gethash "id" call) :name name
                                     :index (and (integerp index) index) :object call))))

(defun efrit-chat--continued-block (reply call name arguments)
  "Return the tool use of REPLY that CALL continues, or nil if CALL is a new one.
NAME and ARGUMENTS are those in CALL.  Some servers give the same index, or
none, to several calls: another id then tells that a call is new, or a name
behind complete arguments."
  (let* ((index (gethash "index" call))
         (id (efrit-chat--word call "id"))
         (uses (seq-filter (lambda (block) (equal (efrit-block-type block) "tool_use"))
                           (efrit-reply-blocks reply)))
         (block (cond ((integerp index) (cl-find index uses :key #'efrit-block-index))
                      (id (cl-find id uses :key #'efrit-chat--first-id :test #'equal))
                      (t (car uses)))))
    (and block
         (not (and name
                   (or (and id (not (member (efrit-chat--first-id block) (list nil id))))
                       (and (or (string-prefix-p "{" (string-trim arguments))
                                (not (equal (efrit-reply-usable-name name)
                                            (efrit-block-name block))))
                            (efrit-chat--complete-p block)))))
         block)))

(defun efrit-chat--first-id (block)
  "Return the id that BLOCK, a tool use, had in its first part, or nil."
  (efrit-chat--word (efrit-block-object block) "id"))

(defun efrit-chat--complete-p (block)
  "Return non-nil if the arguments of BLOCK are a whole JSON object."
  (and (efrit-block-pieces block)
       (hash-table-p (ignore-errors (efrit-json-parse (efrit-block-text block))))))

;;; Errors

(defun efrit-chat--error (kind)
  "Return whether an error of KIND may pass, see ERROR of `efrit-api'."
  (let ((case-fold-search t))
    (cond ((member kind '("insufficient_quota" "billing_hard_limit_reached")) 'lasting)
          ((string-match-p "overloaded\\|rate_limit\\|server_error\\|internal\\|unavailable\\|timeout"
                           kind)
           'passing))))

(setf (alist-get 'chat efrit-apis)
      (efrit-api-create :path "/chat/completions"
                        :headers #'efrit-chat--headers
                        :body #'efrit-chat--body
                        :event #'efrit-chat--event
                        :error #'efrit-chat--error))

(provide 'efrit-chat)
;;; efrit-chat.el ends here
