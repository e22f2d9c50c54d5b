;;; hostile-endpoint-tests.el --- What an endpoint may send, and what comes of it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A server that answers with whatever bytes a test has: the loop always ends,
;; says what was wrong, and can be used again.

;;; Code:

(require 'cl-lib)
(require 'looping)

(defvar hostile-endpoint--connections 0
  "Number of requests that the server of this test has taken.")

(defvar hostile-endpoint--pieces nil
  "Answer of the server: strings, and conses of a string and a count.")

(defconst hostile-endpoint--head
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
  "The head of a stream of events.")

(defun hostile-endpoint--events (&rest events)
  "Return EVENTS, JSON texts, as a stream."
  (mapconcat (lambda (event) (format "data: %s\n\n" event)) events ""))

(defconst hostile-endpoint--start
  (hostile-endpoint--events
   "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}"
   "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}"
   "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"before\"}}")
  "Beginning of a reply.")

(defconst hostile-endpoint--chat
  (hostile-endpoint--events
   "{\"choices\":[{\"delta\":{\"content\":\"before\"}}]}"
   "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}")
  "A reply of Chat Completions, without a mark at its end.")

(defun hostile-endpoint--send (client)
  "Send CLIENT the answer.  It may hang up before the end."
  (ignore-errors
    (dolist (piece hostile-endpoint--pieces)
      (pcase piece
        (`(,text . ,times) (dotimes (_ times) (process-send-string client text)))
        (text (process-send-string client text)))))
  (delete-process client))

(defun hostile-endpoint--take (client data)
  "Answer CLIENT once DATA ends its request."
  (process-put client 'got (concat (process-get client 'got) data))
  (let ((got (process-get client 'got)))
    (when (and (not (process-get client 'answered))
               (string-match "content-length: \\([0-9]+\\)" (downcase got))
               (let ((length (string-to-number (match-string 1 (downcase got)))))
                 (string-match "\r\n\r\n" got)
                 (>= (- (length got) (match-end 0)) length)))
      (process-put client 'answered t)
      (cl-incf hostile-endpoint--connections)
      (run-at-time 0 nil #'hostile-endpoint--send client))))

(defun hostile-endpoint--call (body)
  "Call BODY with a loop whose endpoint gives `hostile-endpoint--pieces'.
After it the loop must be of use, with a reply as it should be."
  (efrit-test-with-project nil
    (let* ((hostile-endpoint--connections 0)
           (server (make-network-process
                    :name "hostile-endpoint" :server t :host "127.0.0.1" :service t
                    :coding 'binary :noquery t :sentinel #'ignore
                    :filter #'hostile-endpoint--take))
           (efrit-claude-retries 1)
           (efrit-claude-url (format "http://127.0.0.1:%s/v1/messages"
                                     (process-contact server :service)))
           (efrit-endpoint-api efrit-test-api)
           (loop (efrit-test-loop)))
      (efrit-loop-observe loop (lambda (_ event) (push event loop-test--events)))
      (unwind-protect
          (progn
            (funcall body loop)
            (setq loop-test--events nil)
            (hostile-endpoint--answer
             hostile-endpoint--head
             (if (eq efrit-test-api 'chat)
                 hostile-endpoint--chat
               (concat hostile-endpoint--start
                       (hostile-endpoint--events "{\"type\":\"message_stop\"}"))))
            (efrit-test-finish loop "And now?")
            (should (equal "before" (loop-test--said))))
        (setq loop-test--events nil)
        (delete-process server)))))

(defun hostile-endpoint--answer (&rest pieces)
  "Make the server answer PIECES from now on."
  (setq hostile-endpoint--pieces pieces
        hostile-endpoint--connections 0))

(defun hostile-endpoint--problem (loop &rest pieces)
  "Run LOOP while the server answers PIECES; return why it stopped."
  (apply #'hostile-endpoint--answer pieces)
  (efrit-do-say loop "Go.")
  (should (eq 'failed (efrit-test-rest loop)))
  (efrit-loop-problem loop))

(defmacro hostile-endpoint-test (loop &rest body)
  "Run BODY with LOOP, whose endpoint gives `hostile-endpoint--pieces'."
  (declare (indent 1) (debug (symbolp body)))
  `(hostile-endpoint--call (lambda (,loop) ,@body)))

(ert-deftest efrit-hostile-endpoint-an-error-of-any-form-fails-the-request ()
  (hostile-endpoint-test loop
    (pcase-dolist (`(,event . ,problem)
                   '(("{\"type\":\"error\",\"error\":\"it broke\"}" . "it broke")
                     ("{\"type\":\"error\",\"error\":[1,{}]}" . "no reason was given")
                     ("{\"type\":\"error\"}" . "no reason was given")
                     ("{\"type\":\"error\",\"error\":{\"type\":1,\"message\":{}}}"
                      . "no reason was given")
                     ("{\"type\":\"error\",\"error\":null}" . "no reason was given")))
      (ert-info (event)
        (should (equal problem
                       (hostile-endpoint--problem
                        loop hostile-endpoint--head hostile-endpoint--start
                        (hostile-endpoint--events event))))))))

(ert-deftest efrit-hostile-endpoint-events-of-another-form-fail-the-request ()
  (hostile-endpoint-test loop
    (dolist (event '("[]" "1" "\"text\"" "null" "{" "{\"type\":\"message_start\",\"message\":1}"
                     "{\"type\":\"content_block_start\",\"content_block\":[]}"
                     "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":1}}"
                     "{\"type\":\"message_delta\",\"usage\":1,\"delta\":7,\"diagnostics\":{\"a\":1}"))
      (ert-info (event)
        (should (equal "The stream had an event that cannot be read"
                       (hostile-endpoint--problem
                        loop hostile-endpoint--head hostile-endpoint--start
                        (hostile-endpoint--events event))))))))

(ert-deftest efrit-hostile-endpoint-chunks-of-another-form-fail-the-request ()
  (let ((efrit-test-api 'chat))
    (hostile-endpoint-test loop
      (dolist (event '("[]" "1" "null" "{" "{\"choices\":[1]}"
                       "{\"choices\":[{\"delta\":{\"tool_calls\":[1]}}]}"
                       "{\"choices\":[{\"delta\":{\"content\":[1]}}]}"
                       "{\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":1}]}}]}"))
        (ert-info (event)
          (should (equal "The stream had an event that cannot be read"
                         (hostile-endpoint--problem
                          loop hostile-endpoint--head (hostile-endpoint--events event)))))))))

(ert-deftest efrit-hostile-endpoint-chunks-without-a-message-are-no-reply ()
  (let ((efrit-test-api 'chat))
    (hostile-endpoint-test loop
      (dolist (event '("{}" "{\"choices\":1}" "{\"choices\":[]}" "{\"choices\":[{\"delta\":7}]}"
                       "{\"choices\":[{\"delta\":{\"content\":1,\"tool_calls\":2}}]}"
                       "{\"choices\":[{\"finish_reason\":7}],\"usage\":[],\"id\":[]}"))
        (ert-info (event)
          (should (equal "The stream ended before the reply did"
                         (hostile-endpoint--problem
                          loop hostile-endpoint--head (hostile-endpoint--events event)))))))))

(ert-deftest efrit-hostile-endpoint-nothing-is-shown-behind-a-broken-event ()
  (hostile-endpoint-test loop
    (let ((behind "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\
\"text\":\"behind\"}}"))
      (dolist (broken '("{" "{\"type\":\"error\",\"error\":{\"message\":\"x\"}}"))
        (hostile-endpoint--problem loop hostile-endpoint--head hostile-endpoint--start
                                   (hostile-endpoint--events broken behind behind))
        (should (string-suffix-p "before" (loop-test--said)))))))

(ert-deftest efrit-hostile-endpoint-what-follows-the-end-of-a-reply-is-passed-over ()
  "Some servers end their streams with a mark of another protocol's."
  (hostile-endpoint-test loop
    (hostile-endpoint--answer hostile-endpoint--head hostile-endpoint--start
                              (hostile-endpoint--events "{\"type\":\"message_stop\"}" "[DONE]"))
    (efrit-test-finish loop "Go.")
    (should (equal 1 hostile-endpoint--connections))
    (should (equal "before" (loop-test--said)))))

(ert-deftest efrit-hostile-endpoint-a-reply-that-said-why-it-stopped-is-complete ()
  "Some servers send no event behind it; others the mark alone."
  (hostile-endpoint-test loop
    (dolist (last '("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}" "[DONE]"))
      (setq loop-test--events nil)
      (hostile-endpoint--answer hostile-endpoint--head hostile-endpoint--start
                                (hostile-endpoint--events last))
      (efrit-test-finish loop "Go.")
      (should (equal 1 hostile-endpoint--connections))
      (should (equal "before" (loop-test--said))))))

(ert-deftest efrit-hostile-endpoint-an-object-in-place-of-events-is-a-reply ()
  (pcase-dolist (`(,api . ,object)
                 '((messages . "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"all\"}]}")
                   (chat . "{\"choices\":[{\"message\":{\"content\":\"all\"}}]}")))
    (let ((efrit-test-api api))
      (hostile-endpoint-test loop
        (dolist (type '("application/json" "text/event-stream"))
          (setq loop-test--events nil)
          (hostile-endpoint--answer
           (format "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n" type)
           object)
          (efrit-test-finish loop "Go.")
          (should (equal "all" (loop-test--said))))))))

(ert-deftest efrit-hostile-endpoint-a-reply-without-end-is-given-up ()
  "A line, an event of many lines, all events together: once, and not again."
  (hostile-endpoint-test loop
    (let ((efrit-sse--max-event-bytes 100000)
          (efrit-claude-most-bytes 1000000)
          (long (make-string 5000 ?x)))
      (pcase-dolist (`(,problem . ,pieces)
                     `(("An event has more than 100000 bytes" "data: " (,long . 1000))
                       ("An event has more than 100000 bytes" (,(concat "data: " long "\n") . 1000))
                       ("The reply has more than 1000000 bytes"
                        (,(concat ": " long "\n\n") . 2000))))
        (should (string-match-p
                 problem
                 (apply #'hostile-endpoint--problem loop hostile-endpoint--head
                        hostile-endpoint--start pieces)))
        (should (equal 1 hostile-endpoint--connections))))))

(ert-deftest efrit-hostile-endpoint-an-error-without-end-is-cut ()
  (hostile-endpoint-test loop
    (let ((efrit-request--most-raw 100000)
          (message (make-string 5000 ?x)))
      (let ((said (hostile-endpoint--problem
                   loop "HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\""
                   (cons message 1000))))
        (should (string-prefix-p "400: {\"error\":{\"message\":\"xxx" said))
        (should (< (length said) 1100)))
      (let ((said (hostile-endpoint--problem
                   loop "HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n"
                   (format "{\"error\":{\"message\":\"%s\"}}" message))))
        (should (string-prefix-p "400: xxx" said))
        (should (< (length said) 1100))))))

(ert-deftest efrit-hostile-endpoint-a-head-without-end-is-given-up ()
  (hostile-endpoint-test loop
    (should (string-match-p
             "came before the reply\\|cannot be reached\\|broke off"
             (hostile-endpoint--problem
              loop (cons "HTTP/1.1 100 Continue\r\n\r\n" 60000))))))

(provide 'hostile-endpoint-tests)
;;; hostile-endpoint-tests.el ends here
