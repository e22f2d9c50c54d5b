;;; efrit-anthropic.el --- The Messages API  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Sends requests of the Messages API, retries them, and builds each reply from
;; the events that the endpoint streams.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-rpc)

;;; Replies

;; The Messages API streams a reply as blocks: the beginning of a block, then
;; fragments of its text, then its end.  The fragments are stored as received.
;; The input of a tool goes to the sidecar unparsed.  Permissions, questions,
;; the work log and the tool use only the input that the sidecar returns.

(cl-defstruct (efrit-block (:constructor efrit-block--create) (:copier nil))
  "A block of a reply.
TYPE is a string.  PIECES are the fragments of its text, its thinking or the
JSON of its input, the latest first.  Only a tool use has ID and NAME, only
thinking has SIGNATURE.  OBJECT is the hash table that began the block.
DONE is non-nil once the block has ended.  INPUT is a tool use's input as the
sidecar parsed it, a JSON text.  PROBLEM says why the sidecar could not parse
the input, or is nil; MISFIT says how the input breaks its schema, or is nil."
  type pieces id name signature object done input problem misfit)

(cl-defstruct (efrit-reply (:constructor efrit-reply-create) (:copier nil))
  "A reply, as far as it has been received.
BLOCKS are its blocks, the latest first.  USAGE is a hash table of the usage
that the API reported.  STOP-REASON is a string, or nil before it was received.
PROBLEM is the error in an error event, a hash table if the server follows the
API, or nil.  OVER is non-nil once the last event was received.  EXTRAS is an
alist with the \"input_transformations\" and \"diagnostics\" that were received."
  id blocks (usage (make-hash-table :test #'equal)) stop-reason problem over extras)

(defun efrit-reply-take (reply event)
  "Add EVENT, a hash table from the stream, to REPLY; return an event to show.
It is (begin BLOCK), (piece BLOCK STRING), (end BLOCK), or nil for none."
  (pcase (gethash "type" event)
    ("message_start" (efrit-reply--start reply (gethash "message" event)) nil)
    ("content_block_start" (efrit-reply--begin reply (gethash "content_block" event)))
    ("content_block_delta" (efrit-reply--add-delta reply (gethash "delta" event)))
    ("content_block_stop" (efrit-reply--end reply))
    ("message_delta" (efrit-reply--delta reply event) nil)
    ("message_stop" (efrit-reply--finish reply) nil)
    ("error" (setf (efrit-reply-problem reply) (gethash "error" event "")) nil)))

(defun efrit-block-text (block)
  "Return the text, the thinking, or the input as JSON of BLOCK so far."
  (let ((text (apply #'concat (reverse (efrit-block-pieces block)))))
    (setf (efrit-block-pieces block) (list text))
    (if (and (equal (efrit-block-type block) "tool_use") (string-blank-p text))
        "{}"
      text)))

(defun efrit-reply-tool-uses (reply)
  "Return each block of REPLY that is a complete tool use, in order."
  (seq-filter (lambda (block)
                (and (equal (efrit-block-type block) "tool_use")
                     (efrit-block-done block)))
              (reverse (efrit-reply-blocks reply))))

(defun efrit-reply-take-inputs (reply inputs unreadable misfits)
  "Store in each tool use of REPLY its input of INPUTS, parsed by the sidecar.
INPUTS has a plist for each tool use, in order; a tool use that it lacks gets a
problem.  UNREADABLE and MISFITS are vectors of ids with problems, as plists."
  (cl-loop for block in (efrit-reply-tool-uses reply)
           for index from 0
           for input = (and (< index (length inputs)) (aref inputs index))
           do (setf (efrit-block-input block) (plist-get input :input_json)
                    (efrit-block-misfit block) (efrit-reply--problem block misfits)
                    (efrit-block-problem block)
                    (cond ((efrit-reply--problem block unreadable))
                          ((equal (efrit-block-id block) (plist-get input :tool_use_id)) nil)
                          (t "the sidecar did not say what its input is")))))

(defun efrit-reply-content (reply)
  "Return the blocks of REPLY as the JSON text of an array, for the sidecar.
A text block that has not ended is included.  A tool's input is a string in
it, `input_json', since the input may be invalid JSON."
  (format "[%s]" (string-join (delq nil (mapcar #'efrit-reply--block-json
                                                (reverse (efrit-reply-blocks reply))))
                              ",")))

(defun efrit-reply-counts (reply)
  "Return a hash table of the integers in the usage of REPLY."
  (let ((counts (make-hash-table :test #'equal)))
    (maphash (lambda (name value)
               (when (integerp value)
                 (puthash name value counts)))
             (efrit-reply-usage reply))
    counts))

(defun efrit-reply-count (reply name)
  "Return the count named NAME, a string, in the usage of REPLY, or 0."
  (let ((count (gethash name (efrit-reply-usage reply))))
    (if (integerp count) count 0)))

(defun efrit-reply-cache-miss (reply)
  "Return the API's reason for a cache miss in REPLY, or nil."
  (let* ((said (cdr (assoc "diagnostics" (efrit-reply-extras reply))))
         (reason (and (hash-table-p said) (gethash "cache_miss_reason" said))))
    (cond ((stringp reason) reason)
          ((hash-table-p reason)
           (let ((kind (gethash "type" reason)))
             (if (stringp kind) kind (efrit-json-text reason)))))))

(defun efrit-reply--problem (block found)
  "Return the problem that FOUND, a vector of plists, has for BLOCK, or nil."
  (plist-get (cl-find (efrit-block-id block) found :test #'equal
                      :key (lambda (one) (plist-get one :tool_use_id)))
             :problem))

(defun efrit-reply--start (reply message)
  "Store the id, the usage and the extras of MESSAGE, a hash table, in REPLY."
  (setf (efrit-reply-id reply) (gethash "id" message))
  (efrit-reply--count reply (gethash "usage" message))
  (efrit-reply--take-extras reply message))

(defun efrit-reply--count (reply usage)
  "Copy USAGE, a hash table or nil, into the usage of REPLY, over earlier counts."
  (when (hash-table-p usage)
    (maphash (lambda (name value)
               (unless (eq value :null)
                 (puthash name value (efrit-reply-usage reply))))
             usage)))

(defun efrit-reply--take-extras (reply object)
  "Copy input transformations and diagnostics from OBJECT to REPLY, if any."
  (dolist (name '("input_transformations" "diagnostics"))
    (let ((value (gethash name object)))
      (unless (member value '(nil :null []))
        (setf (alist-get name (efrit-reply-extras reply) nil nil #'equal) value)))))

(defun efrit-reply--begin (reply object)
  "Add a block made from OBJECT, a hash table, to REPLY; return (begin BLOCK)."
  (dolist (name (if (equal (gethash "type" object) "tool_use") '("type" "id" "name") '("type")))
    (unless (stringp (gethash name object))
      (error "A block has no %s" name)))
  (let* ((type (gethash "type" object))
         (first (pcase type
                  ("text" (gethash "text" object))
                  ("thinking" (gethash "thinking" object))))
         (block (efrit-block--create
                 :type type :object object
                 :id (gethash "id" object) :name (gethash "name" object)
                 :signature (gethash "signature" object)
                 :pieces (and first (not (string-empty-p first)) (list first)))))
    (push block (efrit-reply-blocks reply))
    (list 'begin block)))

(defun efrit-reply--add-delta (reply delta)
  "Add DELTA, a hash table from the stream, to the latest block of REPLY.
Return the event (piece BLOCK STRING), or nil if DELTA added nothing to show."
  (let* ((block (car (efrit-reply-blocks reply)))
         (piece (pcase (gethash "type" delta)
                  ("text_delta" (gethash "text" delta))
                  ("thinking_delta" (gethash "thinking" delta))
                  ("input_json_delta" (gethash "partial_json" delta))
                  ("signature_delta"
                   (setf (efrit-block-signature block)
                         (concat (efrit-block-signature block) (gethash "signature" delta)))
                   nil))))
    (when (and block piece (not (string-empty-p piece)))
      (push piece (efrit-block-pieces block))
      (list 'piece block piece))))

(defun efrit-reply--end (reply)
  "Mark the latest block of REPLY as done; return (end BLOCK), or nil for none."
  (when-let* ((block (car (efrit-reply-blocks reply))))
    (setf (efrit-block-done block) t)
    (list 'end block)))

(defun efrit-reply--finish (reply)
  "Mark REPLY and its blocks as complete.
Some servers do not end each block."
  (dolist (block (efrit-reply-blocks reply))
    (setf (efrit-block-done block) t))
  (setf (efrit-reply-over reply) t))

(defun efrit-reply--delta (reply event)
  "Store the stop reason, usage and extras of EVENT, a hash table, in REPLY."
  (let* ((delta (gethash "delta" event))
         (reason (and (hash-table-p delta) (gethash "stop_reason" delta))))
    (when (stringp reason)
      (setf (efrit-reply-stop-reason reply) reason))
    (efrit-reply--count reply (gethash "usage" event))
    (efrit-reply--take-extras reply event)))

(defun efrit-reply--block-json (block)
  "Return BLOCK as JSON text, or nil if the API would refuse it in a message."
  (let ((text (efrit-block-text block))
        (done (efrit-block-done block)))
    (pcase (efrit-block-type block)
      ("text" (and (not (string-blank-p text))
                   (efrit-reply--json :type "text" :text text)))
      ("thinking" (and done (not (member (efrit-block-signature block) '(nil "")))
                       (efrit-reply--json :type "thinking" :thinking text
                                          :signature (efrit-block-signature block))))
      ("tool_use" (and done (efrit-reply--json :type "tool_use" :id (efrit-block-id block)
                                               :name (efrit-block-name block)
                                               :input_json text)))
      (_ (and done (efrit-json-text (efrit-block-object block)))))))

(defun efrit-reply--json (&rest members)
  "Return the JSON text of an object with MEMBERS, a plist of strings."
  (efrit-json-text (mapcar (lambda (member)
                             (if (stringp member) (efrit-json-replace-invalid member) member))
                           members)))

;;; Requests

;; Sends a request, again after a failure that may pass, and returns its reply.
;; System text, tools and messages are JSON texts from the sidecar and are sent
;; unchanged: the API accepts a model's thinking only behind the same bytes.
;;
;; A local server that speaks the same API works too: set
;; `efrit-claude-url' and `efrit-claude-model'; no key is needed there.

(defconst efrit-claude--most-raw 1000000
  "Most bytes that are received of a reply without events.")

(defconst efrit-claude--most-error-characters 1000
  "Most characters of an endpoint's error message that are shown.")

(cl-defstruct (efrit-claude (:constructor efrit-claude--create) (:copier nil))
  "A request and its retries.
BODY is a list of strings.  ON-EVENT and ON-END are as in `efrit-claude-send'.
ATTEMPT counts the attempts.  HTTP, READER and REPLY belong to the present
attempt; RAW lists the bytes of a reply without events, the latest first, and
RECEIVED counts all bytes.  TIMER begins the next attempt, or is nil.  LOST
lists the usage, hash tables, of attempts that failed.  ENDED is non-nil once
ON-END was called or the request cancelled.  MODEL, RETRIES, DELAY, MOST and
AFTER-MOST are copies of `efrit-claude-model', `efrit-claude-retries' and the
options whose names are `efrit-claude-retry-' and DELAY, MOST or AFTER-MOST."
  url headers body on-event on-end (attempt 0) http reader reply raw (received 0)
  timer lost ended model retries delay most after-most)

(cl-defun efrit-claude-send
    (&key system tools messages max-tokens model left-window previous-id
          on-event on-end)
  "Send a request and return an `efrit-claude'.
SYSTEM and TOOLS are JSON texts, MESSAGES a list of JSON texts.  MAX-TOKENS
limits the reply.  MODEL is a plist of the model's capabilities, LEFT-WINDOW
the number of tokens that rewrites removed from the messages, PREVIOUS-ID the
id of the last reply or nil.  ON-EVENT is called with a list: (begin BLOCK),
\(piece BLOCK STRING), (end BLOCK), (retry SECONDS PROBLEM) or (again).
ON-END is called once: with the `efrit-reply' and nil, or with an empty
`efrit-reply' and a plist of the problem's `:message', `:type' and `:status'.
The usage of attempts that failed is in `efrit-claude-lost'."
  (let ((request (efrit-claude--create
                  :url efrit-claude-url
                  :headers (efrit-endpoint-headers (efrit-claude--betas model))
                  :body (efrit-claude--body
                         (list :system system :tools tools :messages messages :model model
                               :max-tokens max-tokens :left-window left-window
                               :previous-id previous-id))
                  :on-event on-event :on-end on-end
                  :model efrit-claude-model :retries efrit-claude-retries
                  :delay efrit-claude-retry-delay :most efrit-claude-retry-most
                  :after-most efrit-claude-retry-after-most)))
    (efrit-claude--attempt request)
    request))

(defun efrit-claude-cancel (request)
  "Stop REQUEST without calling ON-EVENT or ON-END; return the reply so far."
  (setf (efrit-claude-ended request) t)
  (efrit-stop-timer (efrit-claude-timer request))
  (when-let* ((http (efrit-claude-http request)))
    (efrit-http-cancel http))
  (efrit-claude-reply request))

(defun efrit-claude-keep-lost-usage (request)
  "Drop the reply to REQUEST, but keep its usage in `efrit-claude-lost'."
  (let ((counts (efrit-reply-counts (efrit-claude-reply request))))
    (setf (efrit-claude-reply request) (efrit-reply-create))
    (unless (zerop (hash-table-count counts))
      (push counts (efrit-claude-lost request)))))

(defun efrit-claude-retry-now (request)
  "Send REQUEST at once if it waits before a retry."
  (when (efrit-claude-timer request)
    (efrit-stop-timer (efrit-claude-timer request))
    (efrit-claude--retry request)))

;;;; The request

(defun efrit-claude--betas (model)
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

(defun efrit-claude--body (parts)
  "Return the JSON body of a request, a list of strings to concatenate.
PARTS is a plist of arguments of `efrit-claude-send'."
  (nconc (cl-loop for (name . value) in (efrit-claude--members parts)
                  for start = "{" then ","
                  nconc (cons (format "%s\"%s\":" start name)
                              (copy-sequence (ensure-list value))))
         (list "}")))

(defun efrit-claude--members (parts)
  "Return the members of a request: an alist from names to JSON texts.
A long text is a list of strings.  PARTS is as in `efrit-claude--body'."
  (let ((model (plist-get parts :model))
        (most (plist-get parts :max-tokens)))
    (delq nil
          (list (cons "model" (efrit-json-text efrit-claude-model))
                (cons "max_tokens" (format "%d" (min most (or efrit-claude-max-tokens most))))
                (cons "stream" "true")
                (and (efrit-endpoint-feature-p 'cache model)
                     '("cache_control" . "{\"type\":\"ephemeral\"}"))
                (efrit-claude--thinking model)
                (efrit-claude--output model (plist-get parts :left-window))
                (efrit-claude--diagnostics (plist-get parts :previous-id))
                (cons "tools" (plist-get parts :tools))
                (cons "system" (plist-get parts :system))
                (cons "messages"
                      `("[" ,@(cdr (cl-mapcan (lambda (message) (list "," message))
                                              (plist-get parts :messages)))
                        "]"))))))

(defun efrit-claude--thinking (model)
  "Return the member (NAME . JSON) that has MODEL think, or nil if it cannot."
  (when (efrit-endpoint-feature-p 'thinking model)
    (cons "thinking"
          (efrit-json-text
           `((type . "adaptive")
             (display . ,efrit-claude-thinking-display)
             ,@(and (efrit-endpoint-feature-p 'binding model)
                    '((block_binding . ((prefix_mismatch_behavior . "drop_block"))))))))))

(defun efrit-claude--output (model left)
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

(defun efrit-claude--diagnostics (previous)
  "Return the member that requests cache diagnostics, or nil if not supported.
PREVIOUS is the id of the reply before, or nil for the first request."
  (and (efrit-endpoint-feature-p 'diagnostics)
       (cons "diagnostics"
             (efrit-json-text `((previous_message_id . ,(or previous :null)))))))

;;;; Attempts

(defun efrit-claude--attempt (request)
  "Begin an attempt to send REQUEST; a quit waits until curl has started."
  (cl-incf (efrit-claude-attempt request))
  (let ((inhibit-quit t)
        (reader (efrit-sse-create)))
    (setf (efrit-sse-on-event reader)
          (lambda (data)
            (when (eq reader (efrit-claude-reader request))
              (efrit-claude--event request data)))
          (efrit-claude-reply request) (efrit-reply-create)
          (efrit-claude-raw request) nil
          (efrit-claude-received request) 0
          (efrit-claude-reader request) reader
          (efrit-claude-http request)
          (efrit-http-post (efrit-claude-url request) (efrit-claude-headers request)
                           (efrit-claude-body request)
                           (lambda (bytes)
                             (efrit-claude--guard request #'efrit-claude--data bytes))
                           (lambda (problem)
                             (efrit-claude--guard
                              request #'efrit-claude--attempt-ended problem))))))

(defun efrit-claude--guard (request function argument)
  "Call FUNCTION with REQUEST and ARGUMENT; an error in it fails REQUEST.
Else Emacs would swallow the error, and the loop would wait for ever."
  (condition-case err
      (funcall function request argument)
    (error (efrit-claude--drop request
                               (list :message (format "The reply cannot be read: %s"
                                                      (error-message-string err)))))))

(defun efrit-claude--drop (request problem)
  "Cancel the present attempt of REQUEST because of PROBLEM, a plist."
  (setf (efrit-claude-reader request) nil)
  (efrit-http-cancel (efrit-claude-http request))
  (efrit-claude--retry-or-fail request problem))

(defun efrit-claude--data (request bytes)
  "Parse BYTES of the reply to REQUEST, or collect them if it has no events."
  (let ((http (efrit-claude-http request))
        (received (cl-incf (efrit-claude-received request) (length bytes))))
    (cond
     ((not (and (eql (efrit-http-status http) 200)
                (string-match-p "event-stream"
                                (alist-get "content-type" (efrit-http-headers http) ""
                                           nil #'equal))))
      (push bytes (efrit-claude-raw request))
      (when (> received efrit-claude--most-raw)
        (efrit-http-cancel http)
        (efrit-claude--attempt-ended request nil)))
     ((> received efrit-claude-most-bytes)
      (efrit-claude--drop request
                          (list :message (format "The reply has more than %d bytes; see \
`efrit-claude-most-bytes'" efrit-claude-most-bytes))))
     (t (efrit-sse-feed (efrit-claude-reader request) bytes)))))

(defun efrit-claude--event (request data)
  "Add the event with the JSON text DATA to the reply to REQUEST.
Events after the end of the reply, or after an error, are ignored."
  (unless (or (efrit-claude-ended request)
              (efrit-reply-over (efrit-claude-reply request))
              (efrit-reply-problem (efrit-claude-reply request)))
    (pcase (condition-case nil
               (list (efrit-reply-take (efrit-claude-reply request) (efrit-json-parse data)))
             (error 'broken))
      ('broken
       (efrit-claude--drop request (list :message "The stream had an event that cannot be read"
                                         :passing t)))
      (`(,change)
       (when change
         (funcall (efrit-claude-on-event request) change))))))

(defun efrit-claude--attempt-ended (request problem)
  "Finish, retry or fail REQUEST; PROBLEM is why curl failed, a string, or nil."
  (let* ((reply (efrit-claude-reply request))
         (status (efrit-http-status (efrit-claude-http request))))
    (cond
     ((efrit-claude-ended request))
     ((efrit-reply-problem reply)
      (efrit-claude--retry-or-fail request (efrit-claude--api-problem
                                            request (efrit-reply-problem reply) nil)))
     ((efrit-reply-over reply) (efrit-claude--finish request nil))
     ((and status (/= status 200))
      (efrit-claude--retry-or-fail request (efrit-claude--refusal request status)))
     ((efrit-claude-raw request)
      (efrit-claude--retry-or-fail
       request (list :message (format "%s answered with no event stream" (efrit-claude-url request)))))
     (t (efrit-claude--retry-or-fail
         request (efrit-claude--broken-stream-problem problem status))))))

(defun efrit-claude--broken-stream-problem (problem status)
  "Return the problem, a plist, of a stream that ended before its reply did.
PROBLEM is why curl failed, or nil; STATUS is the HTTP status, or nil for none."
  (list :message (cond ((null problem) "The stream ended before the reply did")
                       (status (format "The stream broke off: %s" problem))
                       (t (format "The endpoint cannot be reached: %s" problem)))
        :passing t))

(defun efrit-claude--retry-or-fail (request problem)
  "Retry REQUEST after a delay if PROBLEM may pass and retries are left.
Else end it with PROBLEM, a plist.  Keep the usage of the failed attempt."
  (efrit-claude-keep-lost-usage request)
  (if (and (plist-get problem :passing)
           (<= (efrit-claude-attempt request) (efrit-claude-retries request)))
      (let ((delay (or (plist-get problem :retry-after)
                       (min (efrit-claude-most request)
                            (* (efrit-claude-delay request)
                               (expt 2 (1- (efrit-claude-attempt request))))))))
        (setf (efrit-claude-timer request)
              (run-at-time delay nil #'efrit-claude--retry request))
        (funcall (efrit-claude-on-event request) (list 'retry delay problem)))
    (efrit-claude--finish request problem)))

(defun efrit-claude--retry (request)
  "Begin the next attempt of REQUEST, unless it has ended meanwhile."
  (setf (efrit-claude-timer request) nil)
  (unless (efrit-claude-ended request)
    (funcall (efrit-claude-on-event request) '(again))
    (condition-case err
        (efrit-claude--attempt request)
      (error (efrit-claude--finish request (list :message (error-message-string err)))))))

(defun efrit-claude--finish (request problem)
  "End REQUEST, unless it has ended; call ON-END with PROBLEM, a plist or nil."
  (unless (efrit-claude-ended request)
    (setf (efrit-claude-ended request) t)
    (funcall (efrit-claude-on-end request) (efrit-claude-reply request) problem)))

;;;; Errors

(defun efrit-claude--refusal (request status)
  "Return the problem, a plist, of REQUEST, whose reply has an error STATUS."
  (let* ((said (decode-coding-string
                (apply #'concat (reverse (efrit-claude-raw request))) 'utf-8))
         (object (ignore-errors (efrit-json-parse said)))
         (after (efrit-claude--retry-after
                 (cdr (assoc "retry-after" (efrit-http-headers (efrit-claude-http request))))
                 (efrit-claude-after-most request))))
    (append (efrit-claude--api-problem
             request (and (hash-table-p object) (gethash "error" object)) status)
            (and after (list :retry-after after)))))

(defun efrit-claude--retry-after (said most)
  "Return the seconds to wait, at most MOST, or nil.
SAID is the value of a retry-after header, or nil: a number or a date.
Anything else, and a past date, is ignored."
  (let ((seconds (cond
                  ((null said) nil)
                  ((string-match-p "\\`[0-9]+\\(?:\\.[0-9]*\\)?\\'" said)
                   (string-to-number said))
                  ((when-let* ((date (ignore-errors (date-to-time said)))
                               (left (ceiling (- (float-time date) (float-time)))))
                     (and (> left 0) left))))))
    (and seconds (min seconds most))))

(defun efrit-claude--api-problem (request problem status)
  "Return PROBLEM, the endpoint's error about REQUEST, as a plist for ON-END.
PROBLEM may be any parsed JSON or nil; STATUS is the HTTP status, or nil."
  (let* ((kind (and (hash-table-p problem) (gethash "type" problem)))
         (message (if (hash-table-p problem) (gethash "message" problem) problem))
         (said (if (and (stringp message) (not (string-blank-p message)))
                   (truncate-string-to-width message efrit-claude--most-error-characters nil nil t)
                 "no reason was given"))
         (advice (efrit-claude--advice request status said)))
    (list :status status :type kind
          :message (concat (if status (format "%d: " status) "") said
                           (and advice (concat "  " advice)))
          :passing (or (memql status '(408 429))
                       (and status (>= status 500))
                       (and (null status)
                            (member kind '("overloaded_error" "api_error" "rate_limit_error"
                                           "timeout_error")))))))

(defun efrit-claude--advice (request status said)
  "Return advice to the person about an error of REQUEST with STATUS, or nil.
SAID is the message of the error."
  (pcase status
    (401 "The key was refused: M-x efrit-add-key shows it, or check ANTHROPIC_API_KEY.")
    ((or 402 403) "The account may not do this: check its credit and permissions.")
    (404 (efrit-claude--not-found-advice request))
    (413 "Lower `efrit-budget-total-target'.")
    (400 (cond
          ((string-match-p "prompt is too long" said) "Lower `efrit-budget-total-target'.")
          ((string-match-p "credit" said) "Check the account's credit.")
          ((string-match-p "Invalid signature in thinking" said)
           "The conversation's past was changed: this is a defect of efrit's.")))))

(defun efrit-claude--not-found-advice (request)
  "Return advice to the person about REQUEST, to which the endpoint said 404.
An address that does not end like the API's is more likely the reason than
the model is."
  (let ((url (efrit-claude-url request)))
    (if (string-match-p "/v1/messages/?\\(?:[?#]\\|\\'\\)" url)
        (format "Is there a model %s?  M-x efrit-model chooses another."
                (efrit-claude-model request))
      (format "The address %s does not end in /v1/messages: set `efrit-claude-url' to %s, \
then M-x efrit-take-options."
              url (concat (replace-regexp-in-string "/\\(?:v1/?\\)?\\'" "" url)
                          "/v1/messages")))))

(provide 'efrit-anthropic)
;;; efrit-anthropic.el ends here
