;;; start-tests.el --- Finding and starting the sidecar  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar; where one that misbehaves is needed, against a
;; few lines of Python.

;;; Code:

(require 'scripted)
(require 'efrit-rpc)
(require 'efrit-setup)
(require 'lisp-mnt)

(defun efrit-test--script (home text)
  "Write the Python program TEXT into HOME and return its command."
  (let ((file (expand-file-name "sidecar.py" home)))
    (write-region text nil file nil 'silent)
    (list (expand-file-name ".venv/bin/python" efrit-test-root) file)))

(defun efrit-test--speaks (version)
  "Return a Python program that answers the greeting with protocol VERSION."
  (format "
import json, sys
length = int(sys.stdin.readline().split(':')[1])
sys.stdin.readline()
request = json.loads(sys.stdin.read(length))
result = {'server': {'name': 'other', 'version': '9.8.7'}, 'protocol_version': %d}
body = json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result})
sys.stdout.write(f'Content-Length: {len(body)}\\r\\n\\r\\n{body}')
sys.stdout.flush()
sys.stdin.read()
" version))

(ert-deftest efrit-a-sidecar-of-a-later-protocol-asks-to-upgrade-the-client ()
  "A later protocol stops the process and says to upgrade efrit.el."
  (efrit-test-with-home home
    (let* ((efrit-sidecar-command (efrit-test--script home (efrit-test--speaks 2)))
           (err (should-error (efrit-sidecar-request 'tools/list nil) :type 'user-error)))
      (should (string-match-p "9\\.8\\.7.*upgrade efrit\\.el\\'" (cadr err)))
      (should-not (efrit-sidecar-process)))))

(ert-deftest efrit-a-sidecar-of-an-earlier-protocol-asks-to-upgrade-it ()
  "An earlier protocol stops the process and says to upgrade the sidecar."
  (efrit-test-with-home home
    (let* ((efrit-sidecar-command (efrit-test--script home (efrit-test--speaks 0)))
           (err (should-error (efrit-sidecar-request 'tools/list nil) :type 'user-error)))
      (should (string-match-p "upgrade the sidecar\\'" (cadr err)))
      (should-not (efrit-sidecar-process)))))

(ert-deftest efrit-a-program-set-that-is-missing-is-named ()
  "A program that is set and missing gives an error that names option and program."
  (let* ((efrit-sidecar-command "/no/such/program")
         (err (should-error (efrit-sidecar-request 'tools/list nil) :type 'user-error)))
    (should (string-match-p "efrit-sidecar-command.*/no/such/program" (cadr err)))))

(ert-deftest efrit-without-a-program-the-error-says-what-to-run ()
  "If no program is found, the error names a command to run."
  (let* ((exec-path nil)
         (folder (make-temp-file "efrit-test-" t))
         (efrit-directory (file-name-as-directory (expand-file-name "elisp" folder))))
    (unwind-protect
        (progn
          (should (string-match-p "M-x efrit-doctor.*uv tool install efrit-budget==[0-9.]+\\'"
                                  (cadr (should-error (efrit-executable-command)
                                                      :type 'user-error))))
          (write-region "" nil (expand-file-name "pyproject.toml" folder) nil 'silent)
          (should (string-match-p (regexp-quote (format "make -C %s setup" folder))
                                  (cadr (should-error (efrit-executable-command)
                                                      :type 'user-error)))))
      (delete-directory folder t))))

(ert-deftest efrit-a-sidecar-that-cannot-start-says-why ()
  "The error of a sidecar that ends at once holds the last line it wrote."
  (efrit-test-with-home home
    (let* ((inhibit-message t)
           (efrit-sidecar-command
            (efrit-test--script home "import sys; sys.exit('the disk is full')"))
           (err (should-error (efrit-sidecar-request 'tools/list nil)
                              :type 'efrit-sidecar-died)))
      (should (string-match-p "the disk is full" (efrit-error-text err)))
      (with-current-buffer (efrit-process-stderr)
        (should (string-match-p "the disk is full" (buffer-string)))))))

(ert-deftest efrit-a-sidecar-that-does-not-greet-back-is-given-up-in-time ()
  "A process that says nothing ends the call when the time to start is over."
  (efrit-test-with-home home
    (let ((efrit-sidecar-start-timeout 0.5)
          (efrit-sidecar-command
           (efrit-test--script home "import sys; sys.stdin.read()")))
      (should-error (efrit-sidecar-request 'tools/list nil) :type 'efrit-timeout)
      (should-not (efrit-sidecar-process)))))

(ert-deftest efrit-a-python-module-serves-as-well ()
  "The option may be a list: a program and its first arguments."
  (efrit-test-with-program-home home
    (let ((efrit-sidecar-command
           (list (expand-file-name ".venv/bin/python" efrit-test-root)
                 "-m" "efrit_budget")))
      (should (efrit-sidecar-ensure)))))

(ert-deftest efrit-the-sidecar-runs-here-from-a-remote-buffer ()
  "A remote folder or a buffer's own environment has no part in the start."
  (efrit-test-with-program-home home
    (with-temp-buffer
      (setq default-directory "/ssh:nowhere.invalid:/")
      (setq-local process-environment '("PATH=/nowhere" "EFRIT_BUDGET_HOME=/nowhere"))
      (setq-local exec-path nil)
      (should (efrit-session-open efrit-test-root)))
    (should (directory-files-recursively home "sqlite"))))

;; Its commands could read it there.
(ert-deftest efrit-the-sidecar-is-started-without-the-key ()
  (let ((before (default-value 'process-environment)))
    (unwind-protect
        (progn
          (setq-default process-environment (cons "ANTHROPIC_API_KEY=hidden" before))
          (with-temp-buffer
            (let ((process (efrit-process-spawn (list "env"))))
              (set-process-buffer process (current-buffer))
              (while (accept-process-output process))
              (should (string-match-p "^PATH=" (buffer-string)))
              (should-not (string-match-p "hidden" (buffer-string))))))
      (setq-default process-environment before)
      (let (kill-buffer-query-functions)
        (kill-buffer " *efrit sidecar stderr*")))))

(ert-deftest efrit-the-version-is-the-same-everywhere ()
  "The package's header, its constant and the sidecar tell one version."
  (efrit-test-with-program-home home
    (let ((server (plist-get (efrit-sidecar-ensure) :server)))
      (should (equal efrit-version (plist-get server :version)))
      (should (equal efrit-version
                     (lm-version (expand-file-name "efrit.el" efrit-directory)))))))

(ert-deftest efrit-a-remote-root-is-refused ()
  "A session on a remote folder is the person's mistake, and nothing starts."
  (should-error (efrit-session-open "/ssh:nowhere.invalid:/") :type 'user-error)
  (should-not (efrit-sidecar-process)))

(ert-deftest efrit-large-answers-are-read-in-large-pieces ()
  "From Emacs 30 on the sidecar's output is read in pieces of more than 4096 bytes."
  (skip-unless (>= emacs-major-version 30))
  (efrit-test-with-session session
    (let ((largest 0))
      (add-function :before (process-filter (efrit-sidecar-process))
                    (lambda (_ output) (setq largest (max largest (string-bytes output)))))
      (efrit-test-tool session "echo" (list :value (make-string 1000000 ?x)))
      (should (< 4096 largest)))))

(ert-deftest efrit-a-sidecar-changes-nothing-for-all-of-emacs ()
  "The limit of reading is the person's, lower or higher than the sidecar's own."
  (let ((before (default-toplevel-value 'read-process-output-max)))
    (unwind-protect
        (efrit-test-with-home home
          (dolist (limit '(4096 2000000))
            (set-default-toplevel-value 'read-process-output-max limit)
            (efrit-sidecar-restart)
            (efrit-sidecar-ensure)
            (should (= limit (default-toplevel-value 'read-process-output-max)))))
      (set-default-toplevel-value 'read-process-output-max before))))

(ert-deftest efrit-messages-are-logged-only-on-demand ()
  "The events' buffer is hidden and empty by default, and filled when asked for."
  (efrit-test-with-home home
    (efrit-sidecar-ensure)
    (should-not (get-buffer "*efrit sidecar events*"))
    (let ((efrit-sidecar-log-events 100000))
      (efrit-sidecar-restart)
      (efrit-sidecar-request 'tools/list nil)
      (with-current-buffer "*efrit sidecar events*"
        (should (string-match-p "tools/list" (buffer-string))))
      (efrit-sidecar-stop)
      (kill-buffer "*efrit sidecar events*"))))

(ert-deftest efrit-the-end-of-a-sidecar-leaves-no-buffer-of-its-messages ()
  "As where the end is known before jsonrpc.el hears of it."
  (efrit-test-with-session session
    (let* ((process (efrit-sidecar-process))
           (sentinel (process-sentinel process)))
      (set-process-sentinel process #'ignore)
      (let ((token (efrit-sidecar-request-async
                    'tools/call (efrit-test-use session "wait" (list :seconds 600)))))
        (efrit-test-kill)
        (should (efrit-test-wait-until (lambda () (not (efrit-call-open-p token))))))
      (funcall sentinel process "killed\n")
      (should-not (seq-some (lambda (buffer) (string-match-p "\\`\\*.*events" (buffer-name buffer)))
                            (buffer-list))))))

(ert-deftest efrit-emacs-never-asks-about-the-sidecar ()
  "No process of the sidecar's makes Emacs ask before it exits."
  (efrit-test-with-home home
    (efrit-sidecar-ensure)
    (should-not (seq-filter #'process-query-on-exit-flag (process-list)))))

(ert-deftest efrit-the-doctor-finds-nothing-wrong-here ()
  "Every check of the client is passed, and the sidecar's own are shown."
  (efrit-test-with-program-home home
    (dolist (check (efrit-doctor-checks))
      (should (efrit-doctor-check-ok check)))
    (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\n"
      (let ((printed (with-output-to-string (efrit-doctor))))
        (should (string-match-p "round trip" printed))
        (should (string-match-p "^Model\n.*ok .*address" printed))
        (should (string-match-p "database" printed))))))

(defun efrit-start-tests--endpoint (answers &optional key)
  "Return the doctor's report on an endpoint that gives ANSWERS, a string.
ANSWERS is an alist of the ends of paths, and statuses with bodies; KEY is
what the endpoint has to be sent in a header, or nil."
  (let* ((server (make-network-process
                  :name "doctor-endpoint" :server t :host "127.0.0.1" :service t
                  :coding 'binary :noquery t :sentinel #'ignore
                  :filter (lambda (client request)
                            (let ((answer (cdr (seq-find
                                                (lambda (one)
                                                  (string-match-p (concat "\\`GET [^ ]*" (car one) " ")
                                                                  request))
                                                answers))))
                              (process-send-string
                               client (if (and key (not (string-search key request)))
                                          "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
                                        (format "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s"
                                                (or (car answer) 404)
                                                (length (cadr answer)) (or (cadr answer) ""))))
                              (process-send-eof client)))))
         (address (format "http://127.0.0.1:%s/v1" (process-contact server :service)))
         (auth-sources nil))
    (unwind-protect
        (let ((found (let ((efrit-claude-url (concat address "/messages")))
                       (efrit-doctor--table (efrit-doctor-endpoint)))))
          ;; It is the same in the other API.
          (let ((efrit-claude-url (concat address "/chat/completions"))
                (efrit-endpoint-api 'chat))
            (should (equal (efrit-start-tests--without-address found)
                           (efrit-start-tests--without-address
                            (efrit-doctor--table (efrit-doctor-endpoint))))))
          found)
      (delete-process server))))

(defun efrit-start-tests--without-address (report)
  "Return REPORT, a table of the doctor's, without its line about the address."
  (replace-regexp-in-string "^.* address .*\n" "" report))

(ert-deftest efrit-start-doctor-asks-the-endpoint-for-the-model-and-shows-it-the-key ()
  (let ((efrit-claude-model "one"))
    (should (string-match-p "ok +model +one$"
                            (efrit-start-tests--endpoint '(("/v1/models/one" 200 "{}")))))
    (should (string-match-p
             "problem +model +one is not among the models (two, three) -> M-x efrit-model"
             (efrit-start-tests--endpoint
              '(("/v1/models" 200 "{\"data\":[{\"id\":\"two\"},{\"id\":\"three\"},7]}")))))
    (should (string-match-p "ok +model +one$"
                            (efrit-start-tests--endpoint
                             '(("/v1/models" 200 "{\"data\":[{\"id\":\"two\"},{\"id\":\"one\"}]}")))))
    (should (string-match-p "ok +model +one; .*404" (efrit-start-tests--endpoint nil)))
    (should (string-match-p "problem +endpoint +refused the key with 401"
                            (efrit-start-tests--endpoint nil "sk-mine")))
    (let ((efrit-claude-headers '(("Authorization" . "Bearer sk-mine"))))
      (should (string-match-p "ok +key +there is one for 127.0.0.1\nok +model"
                              (efrit-start-tests--endpoint '(("/one" 200 "{}")) "sk-mine"))))))

(ert-deftest efrit-start-doctor-finds-problems-of-the-endpoint ()
  "No key, an address that is none or leads nowhere, a key in clear."
  (let ((auth-sources nil)
        (process-environment (cons "ANTHROPIC_API_KEY" process-environment)))
    (pcase-dolist (`(,url . ,problem)
                   '(("https://api.anthropic.com/v1/messages"
                      . "problem +key .*There is no key for api.anthropic.com: put .machine api.anthropic.com")
                     ("localhost:1/v1/messages" . "problem +address .*must begin with http")
                     ("http://127.0.0.1:1/" . "problem +address .*efrit-add-provider finds path and API")
                     ("http://127.0.0.1:1/v1/chat/completions"
                      . "problem +address .*for the API messages -> M-x efrit-add-provider")
                     ("http://127.0.0.1:1/v1/messages" . "problem +endpoint .*[Cc]onnect")))
      (let* ((efrit-claude-url url)
             (found (efrit-doctor-endpoint)))
        (ert-info (url)
          (should (string-match-p problem (efrit-doctor--table found)))
          (should-not (efrit-doctor-check-ok (car (last found)))))))
    (let ((efrit-claude-url "http://gate.example/v1/messages")
          (efrit-claude-headers '(("Authorization" . "Bearer sk-mine"))))
      (should (string-match-p "problem +key .*over plain http"
                              (efrit-doctor--table (efrit-doctor-endpoint)))))))

(ert-deftest efrit-the-doctor-says-how-to-fix-a-missing-program ()
  "A missing program is a problem, with the fix, and what needs it is left out."
  (let* ((efrit-sidecar-command "/no/such/program")
         (checks (efrit-doctor-checks))
         (last (car (last checks))))
    (should-not (efrit-doctor-check-ok last))
    (should (string-match-p "efrit-sidecar-command" (efrit-doctor-check-fix last)))))

(ert-deftest efrit-start-doctor-reports-a-missing-curl ()
  (let* ((efrit-http-program "no-such-curl")
         (efrit-sidecar-command '("no-such-program"))
         (curl (seq-find (lambda (check) (equal (efrit-doctor-check-name check) "curl"))
                         (efrit-doctor-checks))))
    (should-not (efrit-doctor-check-ok curl))
    (should (string-match-p "install curl" (efrit-doctor-check-fix curl)))))

(provide 'start-tests)
;;; start-tests.el ends here
