;;; efrit-anthropic.el --- The Messages API  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One request of the Messages API, and the reply put together from its
;; events.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-rpc)

;;; Replies

;; The Messages API streams a reply as blocks, each with a beginning, pieces
;; and an end.  What the model wrote is kept as the text it came as.  The
;; input of a tool goes to the sidecar unread; what it says the input is,
;; and no other text, is decided about, shown, recorded and run.

(cl-defstruct (efrit-block (:constructor efrit-block--create) (:copier nil))
  "A block of a reply.
TYPE is a string.  PIECES are its text, its thinking, or the JSON of its
input as they came, the latest first.  ID and NAME are a tool use's,
SIGNATURE a thinking's.  OBJECT is the block as its beginning had it.
DONE says whether its end has come.  INPUT is a tool use's input as the
sidecar read it, a JSON text, PROBLEM says what is wrong with it, if the
sidecar could not, and MISFIT what does not fit the tool's schema."
  type pieces id name signature object done input problem misfit)

(cl-defstruct (efrit-reply (:constructor efrit-reply-create) (:copier nil))
  "A reply as far as it has come.
BLOCKS are in order, the latest first.  USAGE is a hash table,
STOP-REASON a string once it is there.  PROBLEM is what an error event
said, a hash table where the server keeps to the API.  OVER says whether the last event has come, EXTRAS is
an alist of other things the API reported."
  id blocks (usage (make-hash-table :test #'equal)) stop-reason problem over extras)

(defun efrit-reply-take (reply event)
  "Add EVENT, a hash table, to REPLY, and return what it changed.
That is (begin BLOCK), (piece BLOCK STRING), (end BLOCK), or nil."
  (pcase (gethash "type" event)
    ("message_start" (efrit-reply--start reply (gethash "message" event)) nil)
    ("content_block_start" (efrit-reply--begin reply (gethash "content_block" event)))
    ("content_block_delta" (efrit-reply--add-delta reply (gethash "delta" event)))
    ("content_block_stop" (efrit-reply--end reply))
    ("message_delta" (efrit-reply--delta reply event) nil)
    ("message_stop" (efrit-reply--finish reply) nil)
    ("error" (setf (efrit-reply-problem reply) (gethash "error" event "")) nil)))

(defun efrit-block-text (block)
  "Return the text, thinking, or input as JSON, that BLOCK has so far."
  (let ((text (apply #'concat (reverse (efrit-block-pieces block)))))
    (setf (efrit-block-pieces block) (list text))
    (if (and (equal (efrit-block-type block) "tool_use") (string-blank-p text))
        "{}"
      text)))

(defun efrit-reply-tool-uses (reply)
  "Return each complete tool use of REPLY, in order."
  (seq-filter (lambda (block)
                (and (equal (efrit-block-type block) "tool_use")
                     (efrit-block-done block)))
              (reverse (efrit-reply-blocks reply))))

(defun efrit-reply-take-inputs (reply inputs unreadable misfits)
  "Store in REPLY the INPUTS of its tools, in order, as the sidecar parsed them.
UNREADABLE and MISFITS name the invalid ones and their problems: vectors of
plists.  A call without an input has a problem, too."
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
  "Return the blocks of REPLY as the JSON text of a list, for the sidecar.
An incomplete text is included.  A tool's input is a text, `input_json', since
it may be no JSON."
  (format "[%s]" (string-join (delq nil (mapcar #'efrit-reply--block-json
                                                (reverse (efrit-reply-blocks reply))))
                              ",")))

(defun efrit-reply-counts (reply)
  "Return the integers in the usage of REPLY, a hash table."
  (let ((counts (make-hash-table :test #'equal)))
    (maphash (lambda (name value)
               (when (integerp value)
                 (puthash name value counts)))
             (efrit-reply-usage reply))
    counts))

(defun efrit-reply-count (reply name)
  "Return the integer NAME, a string, in the usage of REPLY, or 0."
  (let ((count (gethash name (efrit-reply-usage reply))))
    (if (integerp count) count 0)))

(defun efrit-reply--problem (block found)
  "Return the problem of BLOCK in FOUND, a vector of plists, or nil."
  (plist-get (cl-find (efrit-block-id block) found :test #'equal
                      :key (lambda (one) (plist-get one :tool_use_id)))
             :problem))

(defun efrit-reply--start (reply message)
  "Store id and usage from MESSAGE, the beginning of REPLY."
  (setf (efrit-reply-id reply) (gethash "id" message))
  (efrit-reply--count reply (gethash "usage" message))
  (efrit-reply--take-extras reply message))

(defun efrit-reply--count (reply usage)
  "Add USAGE, a hash table or nil, to REPLY; later counts replace earlier ones."
  (when (hash-table-p usage)
    (maphash (lambda (name value)
               (unless (eq value :null)
                 (puthash name value (efrit-reply-usage reply))))
             usage)))

(defun efrit-reply--take-extras (reply object)
  "Store in REPLY what OBJECT, a hash table, reports besides the reply."
  (dolist (name '("input_transformations" "diagnostics"))
    (let ((value (gethash name object)))
      (unless (member value '(nil :null []))
        (setf (alist-get name (efrit-reply-extras reply) nil nil #'equal) value)))))

(defun efrit-reply--begin (reply object)
  "Begin a block of REPLY with OBJECT, a hash table."
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
  "Add DELTA, a hash table, to the latest block of REPLY."
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
  "End the latest block of REPLY."
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
  "Store stop reason and usage from EVENT in REPLY."
  (let* ((delta (gethash "delta" event))
         (reason (and (hash-table-p delta) (gethash "stop_reason" delta))))
    (when (stringp reason)
      (setf (efrit-reply-stop-reason reply) reason))
    (efrit-reply--count reply (gethash "usage" event))
    (efrit-reply--take-extras reply event)))

(defun efrit-reply--block-json (block)
  "Return BLOCK as JSON text, or nil if it cannot be sent back."
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
  "Return MEMBERS, keywords and strings, as the JSON text of an object."
  (efrit-json-text (mapcar (lambda (member)
                             (if (stringp member) (efrit-json-replace-invalid member) member))
                           members)))

;;; Requests

;; Sends one request and gives its reply, retrying what may be retried.
;; System text, tools and messages come from the sidecar as JSON texts and
;; go out as they are: the models bind their thinking to those bytes.
;;
;; A local server that speaks the same API works too: set
;; `efrit-claude-url' and `efrit-claude-model'; no key is needed there.

(defconst efrit-claude--most-raw 1000000
  "Most bytes that are kept of a reply without events.")

(defconst efrit-claude--most-error-characters 1000
  "Most characters that are shown of an endpoint's error.")

(cl-defstruct (efrit-claude (:constructor efrit-claude--create) (:copier nil))
  "A request and its retries.
BODY is a list of strings.  ON-EVENT is called with what comes, see
`efrit-claude-send', ON-END once.  HTTP, READER and REPLY are those of the
attempt under way, and RAW what came in place of events; TIMER waits for
the next one.  RECEIVED counts the bytes of the attempt.  LOST are the
counts that attempts which broke off reported.  ENDED says whether ON-END
was called.  MODEL, RETRIES, DELAY, MOST and AFTER-MOST are the options when
it was sent: the model, how often and how long apart it is tried again, and
how long a server may have it wait."
  url headers body on-event on-end (attempt 0) http reader reply raw (received 0)
  timer lost ended model retries delay most after-most)

(cl-defun efrit-claude-send
    (&key system tools messages max-tokens model left-window previous-id
          on-event on-end)
  "Send a request and return an `efrit-claude'.
SYSTEM and TOOLS are JSON texts, MESSAGES a list of them; MAX-TOKENS is
the most the reply may have, MODEL a plist of what the model can do, from
the sidecar, LEFT-WINDOW the tokens that rewrites took out of the messages,
PREVIOUS-ID the reply before.  ON-EVENT is called with lists: (begin
BLOCK), (piece BLOCK STRING), (end BLOCK), (retry SECONDS PROBLEM), (again).
ON-END is called once with the `efrit-reply' and nil, or with an empty one
and the problem, a plist of `:message', `:type' and `:status'; what
attempts that broke off had reported is in `efrit-claude-lost'."
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
  "Stop REQUEST without calling its functions; return the reply so far."
  (setf (efrit-claude-ended request) t)
  (efrit-stop-timer (efrit-claude-timer request))
  (when-let* ((http (efrit-claude-http request)))
    (efrit-http-cancel http))
  (efrit-claude-reply request))

(defun efrit-claude-keep-lost-usage (request)
  "Drop the reply to REQUEST, but keep the usage that it reported."
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
  "Return the betas that a request to MODEL asks for."
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
  "Return the body of a request with PARTS, a plist, as a list of strings."
  (nconc (cl-loop for (name . value) in (efrit-claude--members parts)
                  for start = "{" then ","
                  nconc (cons (format "%s\"%s\":" start name)
                              (copy-sequence (ensure-list value))))
         (list "}")))

(defun efrit-claude--members (parts)
  "Return the members of a request with PARTS: an alist of JSON texts.
A long one is a list of strings, to be joined."
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
  "Return the member that asks MODEL to think, or nil."
  (when (efrit-endpoint-feature-p 'thinking model)
    (cons "thinking"
          (efrit-json-text
           `((type . "adaptive")
             (display . ,efrit-claude-thinking-display)
             ,@(and (efrit-endpoint-feature-p 'binding model)
                    '((block_binding . ((prefix_mismatch_behavior . "drop_block"))))))))))

(defun efrit-claude--output (model left)
  "Return the member with effort and task budget for MODEL, or nil.
The API counts what is in the messages against the task budget; LEFT is what
has left them, in tokens."
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
  "Return the member that asks about the cache.
PREVIOUS is the id of the reply before, or nil for the first request."
  (and (efrit-endpoint-feature-p 'diagnostics)
       (cons "diagnostics"
             (efrit-json-text `((previous_message_id . ,(or previous :null)))))))

;;;; Attempts

(defun efrit-claude--attempt (request)
  "Send REQUEST, once more.  A quit waits until it is started."
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
In a process filter or sentinel it would be lost, and the loop wait for ever."
  (condition-case err
      (funcall function request argument)
    (error (efrit-claude--drop request
                               (list :message (format "The reply cannot be read: %s"
                                                      (error-message-string err)))))))

(defun efrit-claude--drop (request problem)
  "End the present attempt of REQUEST with PROBLEM."
  (setf (efrit-claude-reader request) nil)
  (efrit-http-cancel (efrit-claude-http request))
  (efrit-claude--retry-or-fail request problem))

(defun efrit-claude--data (request bytes)
  "Handle BYTES of the reply to REQUEST: events, or an error instead."
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
Events behind the last one are ignored."
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
  "Handle the end of the present attempt of REQUEST, with PROBLEM or nil."
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
  "Return the problem of a stream that ended early with PROBLEM, after STATUS."
  (list :message (cond ((null problem) "The stream ended before the reply did")
                       (status (format "The stream broke off: %s" problem))
                       (t (format "The endpoint cannot be reached: %s" problem)))
        :passing t))

(defun efrit-claude--retry-or-fail (request problem)
  "Retry REQUEST after an attempt with PROBLEM, or end it.
The usage of the attempt is kept."
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
  "Send REQUEST again, after a delay."
  (setf (efrit-claude-timer request) nil)
  (unless (efrit-claude-ended request)
    (funcall (efrit-claude-on-event request) '(again))
    (condition-case err
        (efrit-claude--attempt request)
      (error (efrit-claude--finish request (list :message (error-message-string err)))))))

(defun efrit-claude--finish (request problem)
  "End REQUEST, with PROBLEM or nil."
  (unless (efrit-claude-ended request)
    (setf (efrit-claude-ended request) t)
    (funcall (efrit-claude-on-end request) (efrit-claude-reply request) problem)))

;;;; Errors

(defun efrit-claude--refusal (request status)
  "Return the problem of REQUEST, whose reply has STATUS."
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
  "Return the seconds to wait by SAID, a retry-after header or nil, or nil.
It is a number or a date; others, and past ones, are ignored.  The result is
at most MOST."
  (let ((seconds (cond
                  ((null said) nil)
                  ((string-match-p "\\`[0-9]+\\(?:\\.[0-9]*\\)?\\'" said)
                   (string-to-number said))
                  ((when-let* ((date (ignore-errors (date-to-time said)))
                               (left (ceiling (- (float-time date) (float-time)))))
                     (and (> left 0) left))))))
    (and seconds (min seconds most))))

(defun efrit-claude--api-problem (request problem status)
  "Return PROBLEM, an error of the endpoint's in any form, as a plist.
STATUS, which may be nil, came with it, for REQUEST."
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
  "Return advice about an error of REQUEST with STATUS, or nil.
SAID is its message."
  (pcase status
    (401 "The key was refused: check ~/.authinfo.gpg or ANTHROPIC_API_KEY.")
    ((or 402 403) "The account may not do this: check its credit and permissions.")
    (404 (format "Is there a model %s?  Set `efrit-claude-model', then M-x efrit-take-options."
                 (efrit-claude-model request)))
    (413 "Lower `efrit-budget-total-target'.")
    (400 (cond
          ((string-match-p "prompt is too long" said) "Lower `efrit-budget-total-target'.")
          ((string-match-p "credit" said) "Check the account's credit.")
          ((string-match-p "Invalid signature in thinking" said)
           "The conversation's past was changed: this is a defect of efrit's.")))))

(provide 'efrit-anthropic)
;;; efrit-anthropic.el ends here
