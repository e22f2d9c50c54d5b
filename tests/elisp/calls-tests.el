;;; calls-tests.el --- Calls, their errors and their ends  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar.

;;; Code:

(require 'support)
(require 'efrit-rpc)

(ert-deftest efrit-a-session-is-opened-asked-about-and-closed ()
  "A session opens, tells its budget, and closes."
  (efrit-test-with-home home
    (let ((session (efrit-session-open efrit-test-root)))
      (should (stringp session))
      (should (integerp (plist-get (plist-get (efrit-test-session-status session) :budget)
                                   :remaining)))
      (efrit-test-session-close session)
      (should-not (efrit-supervisor-sessions)))))

(ert-deftest efrit-limits-reach-the-budget ()
  "The limits given on opening are the session's."
  (efrit-test-with-home home
    (let* ((session (efrit-session-open efrit-test-root '(:total 50000)))
           (budget (plist-get (efrit-test-session-status session) :budget)))
      (should (= 50000 (plist-get budget :total))))))

(ert-deftest efrit-a-tool-answers-with-its-text ()
  "A tool's envelope has a status and the text for the model."
  (efrit-test-with-session session
    (let ((envelope (efrit-test-tool session "file_info" '(:paths ["pyproject.toml"]))))
      (should (equal "success" (plist-get envelope :status)))
      (should (string-match-p "pyproject\\.toml" (plist-get envelope :text))))))

(ert-deftest efrit-a-wrong-parameter-is-named-in-the-error ()
  "The error of a refused parameter names its field."
  (efrit-test-with-home home
    (let* ((err (should-error (efrit-sidecar-request 'session/open '(:root 1 :rot 2))
                              :type 'efrit-rpc-error))
           (fields (plist-get (efrit-rpc-error-data err) :fields)))
      (should (eql -32602 (efrit-rpc-error-code err)))
      (should (equal '("root" "rot")
                     (sort (mapcar (lambda (field) (plist-get field :field)) fields)
                           #'string<))))))

(ert-deftest efrit-an-unknown-method-is-an-error ()
  "An unknown method signals an error with the code of JSON-RPC."
  (efrit-test-with-home home
    (let ((err (should-error (efrit-sidecar-request "no/such" nil)
                             :type 'efrit-rpc-error)))
      (should (eql -32601 (efrit-rpc-error-code err)))
      (should (string-prefix-p "The sidecar answered with an error: "
                               (efrit-error-text err))))))

(ert-deftest efrit-json-values-keep-their-kinds ()
  "False, null, numbers, arrays and the empty object arrive as what they are."
  (efrit-test-with-session session
    (let* ((value (list :false :json-false :null nil :true t :float 1.0
                        :large 1234567890123456789012 :empty [] :list [1 [2]]
                        :object efrit-json-empty-object))
           (envelope (efrit-test-tool session "echo" (list :value value)))
           (echoed (plist-get (plist-get envelope :data) :value)))
      (should (equal (plist-put (copy-sequence value) :object nil) echoed)))))

(ert-deftest efrit-much-text-of-every-script-makes-the-round-trip ()
  "A megabyte of accents, CJK and emoji comes back as it went."
  (efrit-test-with-session session
    (let* ((text (apply #'concat (make-list 30000 "Größe “naïve” 漢字 🧮👩🏽‍🚀 \0\n\t\"\\ ")))
           (envelope (efrit-test-tool session "echo" (list :value text))))
      (should (equal text (plist-get (plist-get envelope :data) :value))))))

(ert-deftest efrit-json-that-emacs-refuses-is-read-by-the-fallback ()
  "Half a surrogate pair, as in the JSON of odd file names, costs no answer."
  (dolist (multibyte '(t nil))
    (with-temp-buffer
      (set-buffer-multibyte multibyte)
      (insert "{\"name\": \"a\\udc80b\", \"none\": null, \"no\": false, \"list\": []}")
      (goto-char (point-min))
      (should (equal (list :name (string ?a #xdc80 ?b) :none nil :no :json-false :list [])
                     (efrit-json-read)))
      (should (eobp)))))

(ert-deftest efrit-raw-bytes-are-refused-with-a-clear-error ()
  "A string with raw bytes signals an error that says so, and nothing is sent."
  (efrit-test-with-session session
    (let ((err (should-error (efrit-test-tool session "echo" '(:value "\377\376"))
                             :type 'efrit-unencodable)))
      (should (string-match-p "raw bytes" (efrit-error-text err))))
    (should (efrit-test-session-status session))))

(ert-deftest efrit-an-asynchronous-call-passes-on-its-result ()
  "SUCCESS is called once, with the result, after the call has returned."
  (efrit-test-with-session session
    (let (results)
      (efrit-sidecar-request-async 'session/status (list :session_id session)
                                   :success (lambda (result) (push result results)))
      (should-not results)
      (should (efrit-test-wait-until (lambda () results)))
      (should (equal session (plist-get (car results) :session_id)))
      (efrit-test-session-status session)
      (should (= 1 (length results))))))

(ert-deftest efrit-an-asynchronous-call-passes-on-its-error ()
  "ERROR is called with the condition that a synchronous call would signal."
  (efrit-test-with-home home
    (let (told)
      (efrit-sidecar-request-async 'no/such nil :error (lambda (err) (setq told err)))
      (should (efrit-test-wait-until (lambda () told)))
      (should (eq 'efrit-rpc-error (car told)))
      (should (eql -32601 (efrit-rpc-error-code told))))))

(ert-deftest efrit-a-callback-may-call-again-and-may-fail ()
  "A callback may make synchronous calls, and its error costs no other an answer."
  (efrit-test-with-session session
    (let ((debug-on-error nil)
          (inhibit-message t)
          (answered 0))
      (dotimes (n 40)
        (efrit-sidecar-request-async
         'session/status (list :session_id session)
         :success (lambda (_)
                    (cl-incf answered)
                    (if (cl-oddp n)
                        (error "This callback fails")
                      (efrit-test-session-status session)))))
      (should (efrit-test-wait-until (lambda () (= 40 answered)))))))

(ert-deftest efrit-answers-behind-a-synchronous-one-are-not-left-lying ()
  "Answers that arrive together with a synchronous call's are told at once."
  (efrit-test-with-session session
    (dotimes (_ 20)
      (let ((answered 0))
        (dotimes (_ 5)
          (efrit-sidecar-request-async 'session/status (list :session_id session)
                                       :success (lambda (_) (cl-incf answered))))
        (efrit-test-session-status session)
        (should (efrit-test-wait-until (lambda () (= 5 answered))))))))

(ert-deftest efrit-a-timer-may-call-while-another-call-waits ()
  "A synchronous call from a timer is answered within another one's wait."
  (efrit-test-with-session session
    (let (inner)
      ;; It is due at once, and runs when Emacs begins to wait.
      (run-at-time 0 nil (lambda () (setq inner (efrit-test-session-status session))))
      (efrit-test-tool session "wait" '(:seconds 0.6))
      (should (equal session (plist-get inner :session_id))))))

(ert-deftest efrit-a-call-ends-when-its-time-is-over ()
  "A slow call signals a time-out when TIMEOUT has passed; the next one is answered."
  (efrit-test-with-session session
    (should-error (efrit-sidecar-request
                   'tools/call (efrit-test-use session "wait" '(:seconds 600)) :timeout 0.5)
                  :type 'efrit-timeout)
    (should (efrit-test-session-status session))))

(defun efrit-test--child (session run)
  "Call RUN with the parameters of a tool with a child process.
It runs in SESSION.  Return the child's process id when it has started."
  (let ((file (make-temp-file "efrit-test-pid-")))
    (delete-file file)
    (funcall run (efrit-test-use session "spawn" (list :seconds 600 :pid_file file)))
    (should (efrit-test-wait-until (lambda () (file-exists-p file))))
    (efrit-test-take-pid file)))

(ert-deftest efrit-a-call-whose-time-is-over-is-not-worked-on ()
  "After a time-out the sidecar stops the work, child processes included."
  (efrit-test-with-session session
    (let* (told
           (child (efrit-test--child
                   session
                   (lambda (use)
                     (efrit-sidecar-request-async
                      'tools/call use :timeout 1 :error (lambda (err) (setq told err)))))))
      (should (efrit-test-wait-until (lambda () told)))
      (should (eq 'efrit-timeout (car told)))
      (efrit-test-should-end child))))

(ert-deftest efrit-a-cancelled-call-stops-without-a-callback ()
  "To cancel a call stops the work, and nobody is told of its end."
  (efrit-test-with-session session
    (let* (told token
           (tell (lambda (end) (push end told)))
           (child (efrit-test--child
                   session
                   (lambda (use)
                     (setq token (efrit-sidecar-request-async
                                  'tools/call use :success tell :error tell))))))
      (should (efrit-sidecar-cancel token))
      (should-not (efrit-sidecar-cancel token))
      (efrit-test-should-end child)
      (should (efrit-test-wait-until (lambda () (efrit-test--all-ended-p session))))
      (efrit-test-session-status session)
      (should-not told))))

(defun efrit-test--all-ended-p (session)
  "Return non-nil if the sidecar works on no call of SESSION."
  (seq-empty-p (plist-get (efrit-sidecar-request
                           'worklog/list (list :session_id session :states ["announced"]))
                          :entries)))

;; What is typed acts in C as here: it sets `quit-flag' to `throw-on-input'.
(ert-deftest efrit-a-start-that-a-key-comes-into-is-a-start ()
  "Neither a quit nor what is typed in `while-no-input' leaves it half done."
  (efrit-test-with-session session
    (dolist (key (list (lambda (&rest _) (setq quit-flag t))
                       (lambda (&rest _)
                         (when throw-on-input (setq quit-flag throw-on-input)))))
      (efrit-sidecar-stop)
      (dolist (place '(efrit-process-spawn efrit-connection--fit efrit-connection-send))
        (advice-add place :before key)
        (unwind-protect
            (condition-case nil
                (let ((throw-on-input 'typed))
                  (catch 'typed (efrit-test-session-status session)))
              (quit nil))
          (advice-remove place key)))
      (should (efrit-test-session-status session)))))

(ert-deftest efrit-quitting-cancels-the-call ()
  "Quitting a slow call stops the work, and the next call is answered."
  (efrit-test-with-session session
    (let* ((debug-on-quit nil)
           (file (make-temp-file "efrit-test-pid-" nil nil))
           (use (efrit-test-use session "spawn" (list :seconds 600 :pid_file file)))
           (quitted nil))
      (efrit-test-quit-when (lambda () (< 0 (file-attribute-size (file-attributes file)))))
      (condition-case nil
          (efrit-sidecar-request 'tools/call use)
        (quit (setq quitted t)))
      (should quitted)
      (should (efrit-test-session-status session))
      (efrit-test-should-end (efrit-test-take-pid file)))))

(ert-deftest efrit-progress-of-a-slow-call-runs-the-hook ()
  "Progress of a call that takes long is told with the call's token."
  (efrit-test-with-session session
    (let* (seen
           (efrit-sidecar-progress-functions
            (list (lambda (call params) (push (cons call params) seen))))
           (token (efrit-sidecar-request-async
                   'tools/call (efrit-test-use session "wait" '(:seconds 600)))))
      (should (efrit-test-wait-until (lambda () seen)))
      (should (eq token (caar seen)))
      (should (equal "waiting" (plist-get (plist-get (cdar seen) :value) :message)))
      (efrit-sidecar-cancel token))))

(ert-deftest efrit-a-notification-reaches-the-sidecar ()
  "A notification is taken: here one that cancels a call by its tool use."
  (efrit-test-with-session session
    (let* (told begun
           (efrit-sidecar-progress-functions (list (lambda (&rest _) (setq begun t))))
           (use (efrit-test-use session "wait" '(:seconds 600))))
      (efrit-sidecar-request-async 'tools/call use
                                   :error (lambda (err) (setq told err)))
      (should (efrit-test-wait-until (lambda () begun)))
      (efrit-sidecar-notify '$/cancelRequest
                            (list :tool_use_id (plist-get use :tool_use_id)))
      (should (efrit-test-wait-until (lambda () told)))
      (should (eq 'efrit-cancelled (car told))))))

(ert-deftest efrit-a-call-says-nothing ()
  "Calls put nothing into the messages' buffer."
  (efrit-test-with-session session
    (let ((before (with-current-buffer (messages-buffer) (buffer-string))))
      (dotimes (_ 3) (efrit-test-session-status session))
      (ignore-errors (efrit-sidecar-request 'no/such nil))
      (should (equal before (with-current-buffer (messages-buffer) (buffer-string)))))))

(ert-deftest efrit-an-answer-to-nobody-disturbs-nobody ()
  "An error without an id neither stops Emacs nor keeps later answers back."
  (efrit-test-with-session session
    (dolist (message '("nonsense" "[]" "{\"jsonrpc\": 1}"))
      (process-send-string (efrit-sidecar-process)
                           (format "Content-Length: %d\r\n\r\n%s"
                                   (length message) message)))
    (should (efrit-test-session-status session))))

(provide 'calls-tests)
;;; calls-tests.el ends here
