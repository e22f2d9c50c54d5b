;;; endpoint-tests.el --- Tests of the way to the model's endpoint  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'auth-source)

;;; Proxies

(defmacro endpoint-test-with-proxy (proxy said &rest body)
  "Run BODY with PROXY bound to the URL of a proxy that answers SAID to CONNECT."
  (declare (indent 2) (debug (symbolp form body)))
  `(endpoint-test--with-proxy ,said (lambda (,proxy) ,@body)))

(defun endpoint-test--with-proxy (said body)
  "Call BODY with the URL of a proxy that answers SAID to CONNECT."
  (let ((server (make-network-process
                 :name "endpoint-test-proxy" :server t :host "127.0.0.1" :service t
                 :coding 'binary :noquery t
                 :filter (lambda (client data) (endpoint-test--proxied client data said))
                 :sentinel #'ignore)))
    (unwind-protect
        (funcall body (format "http://127.0.0.1:%s" (process-contact server :service)))
      (delete-process server))))

(defun endpoint-test--proxied (client data said)
  "Pass DATA of CLIENT on; to a CONNECT answer SAID, once there is a connection."
  (if-let* ((there (process-get client 'there)))
      (process-send-string there data)
    (when (string-match "\\`CONNECT \\([^: ]+\\):\\([0-9]+\\) " data)
      (process-put client 'there
                   (make-network-process
                    :name "endpoint-test-there" :host (match-string 1 data)
                    :service (string-to-number (match-string 2 data))
                    :coding 'binary :noquery t
                    :filter (lambda (_ answer) (process-send-string client answer))
                    :sentinel #'ignore))
      (process-send-string client said))))

(ert-deftest efrit-endpoint-is-reached-through-any-answer-of-a-proxy ()
  (dolist (said '("HTTP/1.1 200 OK\r\n\r\n"
                  "HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n"))
    (endpoint-test-with-proxy proxy said
      (loop-test-with "[[reply]]\ntext = \"Through it.\"\n" loop
        (let ((through (lambda (config)
                         (concat config (format "proxytunnel\nproxy = \"%s\"\nnoproxy = \"\"\n"
                                                proxy)))))
          (unwind-protect
              (progn
                (advice-add 'efrit-http--config :filter-return through)
                (efrit-test-finish loop "Go."))
            (advice-remove 'efrit-http--config through)))
        (should (equal "Through it." (loop-test--said)))))))

;;; The key

(defmacro endpoint-test-with-secrets (&rest body)
  "Run BODY where there is a key for the vendor's host, and one for each other."
  (declare (debug t))
  `(let* ((file (make-temp-file "efrit-authinfo-" nil ""
                                (concat "machine api.anthropic.com login apikey password sk-one\n"
                                        "machine gate.example login apikey password sk-gate\n"
                                        "machine localhost login apikey password sk-here\n")))
          (auth-sources (list file))
          (auth-source-do-cache nil)
          (process-environment (cons "ANTHROPIC_API_KEY" process-environment)))
     (unwind-protect (progn ,@body)
       (auth-source-forget-all-cached)
       (delete-file file))))

(defun endpoint-test--key (url)
  "Return the key that would be sent to URL, or nil."
  (let ((efrit-claude-url url))
    (cdr (assoc "x-api-key" (efrit-endpoint-headers nil)))))

(ert-deftest efrit-endpoint-finds-a-key-that-was-put-there-after-the-first-failure ()
  "`auth-source' caches that there was none; another host's key, too, is no answer."
  (let* ((file (make-temp-file "efrit-authinfo-" nil "" "machine other.example login me password x\n"))
         (auth-sources (list file))
         (auth-source-do-cache t)
         (process-environment (cons "ANTHROPIC_API_KEY" process-environment))
         (url "https://late.example/v1/messages"))
    (unwind-protect
        (progn
          (should-not (endpoint-test--key url))
          (should-not (endpoint-test--key url))
          (write-region "machine late.example login apikey password sk-late\n" nil file t 'quiet)
          (should (equal "sk-late" (endpoint-test--key url))))
      (auth-source-forget-all-cached)
      (delete-file file))))

(ert-deftest efrit-endpoint-refuses-an-address-that-names-no-host ()
  (endpoint-test-with-secrets
   (dolist (url '("localhost:7716/v1/messages" "api.anthropic.com/v1/messages" "https:///v1"
                  "ftp://gate.example/v1/messages" "" "//gate.example/v1"))
     (ert-info (url)
       (let ((err (should-error (endpoint-test--key url) :type 'user-error)))
         (should (string-match-p "efrit-claude-url.*https?://" (cadr err))))))))

(ert-deftest efrit-endpoint-sends-a-key-in-clear-to-this-machine-alone ()
  (endpoint-test-with-secrets
   (should (equal "sk-one" (endpoint-test--key "https://api.anthropic.com/v1/messages")))
   (should (equal "sk-gate" (endpoint-test--key "https://gate.example/v1/messages")))
   (should (equal "sk-here" (endpoint-test--key "http://localhost:7716/v1/messages")))
   (dolist (url '("http://127.0.0.1:7716/v1" "http://[::1]:7716/v1" "http://other.example/v1"))
     (should-not (endpoint-test--key url)))
   (dolist (url '("http://gate.example/v1/messages" "http://api.anthropic.com/v1/messages"))
     (let ((err (should-error (endpoint-test--key url) :type 'user-error)))
       (should-not (string-match-p "sk-" (cadr err))))
     (let ((efrit-claude-key-in-clear t))
       (should (endpoint-test--key url))))
   (let ((efrit-claude-headers '(("Authorization" . "Bearer sk-mine"))))
     (should-error (endpoint-test--key "http://other.example/v1") :type 'user-error)
     (should-error (endpoint-test--key "http://127.0.0.1.example/v1") :type 'user-error)
     (should-not (endpoint-test--key "http://127.0.0.1/v1"))
     (should-not (endpoint-test--key "http://[::1]/v1")))))

(ert-deftest efrit-endpoint-that-is-invalid-stops-the-loop-and-says-what-to-do ()
  (loop-test-with "[[reply]]\ntext = \"Now.\"\n" loop
    (efrit-test-with-options loop
        ((efrit-claude-url (string-remove-prefix "http://" efrit-claude-url)))
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p "efrit-claude-url" (efrit-loop-problem loop))))
    (efrit-continue loop)
    (should (eq 'idle (efrit-test-rest loop)))))

;;; What it knows

(defun endpoint-test--notes ()
  "Return the notes of the loop under test, in order."
  (cl-loop for event in (reverse loop-test--events)
           when (eq (car event) 'note) collect (cadr event)))

(ert-deftest efrit-endpoint-of-another-vendor-is-noted-once-to-get-plain-messages ()
  (loop-test-with "[[reply]]\nrepeat = 2\ntext = \"Yes.\"\n" loop
    (efrit-test-with-options loop ((efrit-claude-features 'auto))
      (efrit-test-finish loop "Go.")
      (efrit-test-finish loop "Go on."))
    (should (equal 1 (length (endpoint-test--notes))))
    (should-not (string-search "cache_control" (efrit-test-sent-text)))
    (should (string-match-p "127.0.0.1.*no prompt cache.*efrit-claude-features"
                            (car (endpoint-test--notes))))
    (should-not (gethash "thinking" (gethash "body" (car (efrit-test-sent)))))))

(ert-deftest efrit-endpoint-is-asked-for-updates-of-thinking-with-their-beta ()
  (let ((efrit-claude-thinking-display "updates"))
    (loop-test-with "[[reply]]\nthinking = \"So.\"\ntext = \"Yes.\"\n" loop
      (efrit-test-finish loop "Go.")
      (should (equal '(200) (loop-test--statuses)))
      (should (seq-contains-p (gethash "betas" (car (efrit-test-sent)))
                              "thinking-display-updates-2026-08-18")))))

(ert-deftest efrit-endpoint-is-asked-for-the-least-thinking-of-the-model-if-it-is-off ()
  (pcase-dolist (`(,model ,type) '(("claude-sonnet-5-5" "between_tools")
                                   ("claude-sonnet-5" "disabled")))
    (let ((efrit-claude-model model))
      (loop-test-with "[[reply]]\nrepeat = 2\nthinking = \"So.\"\ntext = \"Yes.\"\n" loop
        (efrit-test-finish loop "Go.")
        (efrit-loop-choose loop 'efrit-claude-thinking-display "off")
        (efrit-test-finish loop "Go on.")
        (should (equal '(200 200) (loop-test--statuses)))
        (should (equal (list "adaptive" type)
                       (mapcar (lambda (sent)
                                 (gethash "type" (gethash "thinking" (gethash "body" sent))))
                               (efrit-test-sent))))))))

(ert-deftest efrit-endpoint-is-asked-why-the-cache-missed-from-the-first-request-on ()
  (loop-test-with "[[reply]]\nrepeat = 2\ntext = \"Yes.\"\n" loop
    (efrit-test-finish loop "Go.")
    (efrit-test-finish loop "Go on.")
    (let ((asked (mapcar (lambda (sent)
                           (gethash "previous_message_id"
                                    (gethash "diagnostics" (gethash "body" sent))))
                         (efrit-test-sent))))
      (should (eq :null (car asked)))
      (should (string-prefix-p "msg_" (cadr asked))))))

;;; What is being sent

(defun endpoint-test--bodies ()
  "Return the files in the folder of requests."
  (and (file-directory-p efrit-http-directory)
       (directory-files efrit-http-directory nil "\\`body-")))

(ert-deftest efrit-endpoint-folder-has-no-name-that-others-can-take-first ()
  "It is in a folder of the person's own, whatever others made in that for temporary files."
  (let ((shown (lambda (environment)
                 (with-temp-buffer
                   (let ((process-environment (append environment process-environment)))
                     (call-process (expand-file-name invocation-name invocation-directory)
                                   nil '(t nil) nil "-Q" "--batch"
                                   "-L" (expand-file-name "elisp" efrit-test-root)
                                   "-l" "efrit-backend" "--eval"
                                   "(princ (expand-file-name efrit-http-directory))"))
                   (buffer-string))))
        (mine (make-temp-file "efrit-mine-" t)))
    (unwind-protect
        (let ((home (expand-file-name "home" mine))
              (run (expand-file-name "run" mine)))
          (make-directory home)
          (make-directory run)
          (should (string-prefix-p home (funcall shown (list (concat "HOME=" home)
                                                             "XDG_RUNTIME_DIR"))))
          (should (equal (expand-file-name "efrit" run)
                         (funcall shown (list (concat "HOME=" home)
                                              (concat "XDG_RUNTIME_DIR=" run))))))
      (delete-directory mine t))))

(ert-deftest efrit-endpoint-is-sent-files-that-only-their-owner-can-read ()
  (let ((efrit-http-directory (expand-file-name "deep/sent" (make-temp-file "efrit-sent-" t))))
    (make-directory (file-name-directory efrit-http-directory) t)
    (loop-test-with "[[reply]]\ntext = \"One two.\"\nwait_ms = 400\n" loop
      (efrit-do-say loop "Go.")
      (loop-test--wait-for loop 'waiting)
      (let ((bodies (endpoint-test--bodies)))
        (should (= 1 (length bodies)))
        (should (= #o700 (file-modes efrit-http-directory)))
        (should (= #o600 (file-modes (expand-file-name (car bodies) efrit-http-directory)))))
      (should (eq 'idle (efrit-test-rest loop)))
      (should-not (endpoint-test--bodies)))
    (delete-directory (file-name-directory (directory-file-name
                                            (file-name-directory efrit-http-directory)))
                      t)))

(ert-deftest efrit-endpoint-deletes-requests-of-a-killed-emacs ()
  (let* ((efrit-http-directory (make-temp-file "efrit-sent-" t))
         (sends (format "%S" `(progn (setq efrit-http-directory ,efrit-http-directory)
                                     (efrit-http--write-body '("secret"))
                                     (while t (sleep-for 1)))))
         (other (start-process "endpoint-test-emacs" nil
                               (expand-file-name invocation-name invocation-directory)
                               "-Q" "--batch" "-L" (expand-file-name "elisp" efrit-test-root)
                               "-l" "efrit-backend" "--eval" sends)))
    (set-process-query-on-exit-flag other nil)
    (set-process-sentinel other #'ignore)
    (should (efrit-test-wait-until #'endpoint-test--bodies))
    (efrit-http--delete-stale-files)
    (should (endpoint-test--bodies))
    (signal-process other 9)
    (should (efrit-test-await-end other))
    (should (endpoint-test--bodies))
    (loop-test-with "[[reply]]\ntext = \"Yes.\"\n" loop
      (efrit-test-finish loop "Go.")
      (should-not (endpoint-test--bodies)))
    (delete-directory efrit-http-directory t)))

(ert-deftest efrit-endpoint-is-sent-nothing-from-a-folder-that-others-can-change ()
  (let ((efrit-http-directory (make-temp-file "efrit-sent-" t)))
    (set-file-modes efrit-http-directory #o777)
    (loop-test-with "[[reply]]\ntext = \"Yes.\"\n" loop
      (efrit-do-say loop "Go.")
      (should (eq 'failed (efrit-test-rest loop)))
      (should (string-match-p "safe" (efrit-loop-problem loop)))
      (set-file-modes efrit-http-directory #o700)
      (efrit-continue loop)
      (should (eq 'idle (efrit-test-rest loop))))
    (delete-directory efrit-http-directory t)
    (make-symbolic-link temporary-file-directory efrit-http-directory)
    (should-error (efrit-http--write-body '("secret")))
    (delete-file efrit-http-directory)))

;;; The task budget

(ert-deftest efrit-endpoint-counts-the-task-budget-and-is-told-what-left-the-window ()
  (let ((efrit-budget-total-target 27000)
        (efrit-claude-task-budget 500000))
    (loop-test-with "
[[reply]]
repeat = 14
text = \"Turn {n}.\"
tool = [ { name = \"eval_sexp\", input = { code = \"(dotimes (i 300) (princ (format \\\"%d {n} \\\" i)))\" } } ]
[[reply]]
text = \"Done.\"
" loop
      (efrit-test-with-options loop
          ((efrit-claude-features '(cache thinking task-budget)))
        (efrit-test-finish loop "Go.")
        (should-not (memql 400 (loop-test--statuses)))
        (let* ((budgets (endpoint-test--task-budgets))
               (remaining (mapcar (lambda (budget) (gethash "remaining" budget)) budgets))
               (told (delq nil (copy-sequence remaining))))
          (should (seq-every-p (lambda (budget) (= 500000 (gethash "total" budget))) budgets))
          (should-not (car remaining))
          (should told)
          (should (equal told (sort (copy-sequence told) #'>)))
          (should (= (length (seq-uniq remaining)) (efrit-loop-epoch loop)))
          (should (= (car (last told)) (- 500000 (efrit-loop-left loop))))
          (let ((again (progn (efrit-do-forget loop)
                              (efrit-do-resume-loop (efrit-loop-id loop) efrit-test-project))))
            (setf (efrit-loop-options again) (efrit-loop-options loop))
            (efrit-test-finish again "And now?")
            (should (< (abs (- (gethash "remaining" (car (last (endpoint-test--task-budgets))))
                               (car (last told))))
                       1000))))))))

(defun endpoint-test--task-budgets ()
  "Return the task budgets of all requests, in order."
  (mapcar (lambda (sent)
            (gethash "task_budget" (gethash "output_config" (gethash "body" sent))))
          (efrit-test-sent)))

;;; When to come again

(ert-deftest efrit-endpoint-is-asked-again-at-the-date-that-it-gives ()
  (loop-test-with "
[[reply]]
status = 429
retry_at = 2
[[reply]]
text = \"Now.\"
" loop
    (efrit-test-finish loop "Go.")
    (let ((seconds (cl-loop for event in loop-test--events
                            when (eq (car event) 'retry) return (cadr event))))
      (should (<= 1 seconds 2)))))

(ert-deftest efrit-endpoint-is-waited-for-no-longer-than-the-option-says ()
  (cl-flet ((in (seconds) (format-time-string "%a, %d %b %Y %T GMT" (+ (float-time) seconds) t)))
    (let ((system-time-locale "C"))
      (should (equal 100 (efrit-request--retry-after (in 100000) 100)))
      (should (<= 9 (efrit-request--retry-after (in 10) 100) 11))
      (should-not (efrit-request--retry-after (in -10) 100))))
  (should (equal 100 (efrit-request--retry-after "86400" 100)))
  (should (equal 0 (efrit-request--retry-after "0" 100)))
  (should (equal 1.5 (efrit-request--retry-after "1.5" 100)))
  (dolist (nothing '(nil "" "soon" "1.2.3" "-5"))
    (should-not (efrit-request--retry-after nothing 100))))

(ert-deftest efrit-loop-retry-now-says-whether-it-does ()
  (loop-test-with "
[[reply]]
status = 429
retry_after = 60
[[reply]]
text = \"One two three four.\"
delay_ms = 100
" loop
    (should-not (efrit-loop-retry-now loop))
    (efrit-do-say loop "Go.")
    (loop-test--wait-for loop 'retrying)
    (should (efrit-loop-retry-now loop))
    (loop-test--wait-for loop 'streaming)
    (should-not (efrit-loop-retry-now loop))
    (should (eq 'idle (efrit-test-rest loop)))))

(provide 'endpoint-tests)
;;; endpoint-tests.el ends here
