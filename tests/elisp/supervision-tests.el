;;; supervision-tests.el --- The sidecar's death and return  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar, killed for real.  Where the process that Emacs
;; itself starts is what matters, that is the program.

;;; Code:

(require 'support)

(ert-deftest efrit-every-call-ends-when-the-sidecar-is-killed ()
  "Fifty calls all end though the sidecar is killed among them.
The next call works, and the session is the same."
  (efrit-test-with-program-session session
    (let ((inhibit-message t)
          (answers 0) (deaths 0) (others nil))
      (dotimes (n 50)
        (efrit-sidecar-request-async
         'tools/call (efrit-test-use session "wait" (list :seconds (* 0.005 n)))
         :success (lambda (_) (cl-incf answers))
         :error (lambda (err)
                  (if (eq (car err) 'efrit-sidecar-died)
                      (cl-incf deaths)
                    (push err others)))))
      (efrit-test-wait-until (lambda () (> answers 5)))
      (efrit-test-kill)
      (should (efrit-test-wait-until (lambda () (<= 50 (+ answers deaths)))))
      (should-not others)
      (should (= 50 (+ answers deaths)))
      (should (< 0 answers 50))
      (should (equal session (plist-get (efrit-test-session-status session) :session_id)))
      (should (equal "open" (plist-get (efrit-test-session-status session) :state))))))

(ert-deftest efrit-a-synchronous-call-ends-at-once-when-the-sidecar-is-killed ()
  "A call that waits signals the sidecar's death, not a time-out."
  (efrit-test-with-session session
    (let ((inhibit-message t))
      ;; It runs when Emacs waits for the answer.
      (run-at-time 0 nil #'efrit-test-kill)
      (should-error (efrit-test-tool session "wait" '(:seconds 600))
                    :type 'efrit-sidecar-died)
      (should (efrit-test-session-status session)))))

(ert-deftest efrit-a-call-right-after-a-kill-works-or-says-so ()
  "A call sent into a killed sidecar is answered by the next one, or ends."
  (efrit-test-with-program-session session
    (let ((inhibit-message t))
      (efrit-test-kill)
      (condition-case nil
          (efrit-test-session-status session)
        (efrit-sidecar-died nil))
      (should (equal session (plist-get (efrit-test-session-status session) :session_id))))))

(ert-deftest efrit-the-hook-of-a-death-may-call-again ()
  "Error handlers that call again at once are all answered by the next sidecar."
  (efrit-test-with-session session
    (let ((inhibit-message t)
          (answers 0))
      (dotimes (_ 10)
        (efrit-sidecar-request-async
         'tools/call (efrit-test-use session "wait" '(:seconds 600))
         :error (lambda (_)
                  (efrit-test-session-status session)
                  (cl-incf answers))))
      (efrit-test-kill)
      (should (efrit-test-wait-until (lambda () (= 10 answers)))))))

(ert-deftest efrit-the-hooks-tell-of-start-and-death ()
  "The hooks run when the sidecar has started, and when it has died."
  (efrit-test-with-home home
    (let* ((inhibit-message t)
           (events nil)
           (efrit-sidecar-started-functions
            (list (lambda (server)
                    (push (plist-get (plist-get server :server) :name) events))))
           (efrit-sidecar-died-functions (list (lambda (why) (push why events)))))
      (efrit-sidecar-ensure)
      (should (efrit-test-wait-until (lambda () events)))
      (efrit-test-kill)
      (should (efrit-test-wait-until (lambda () (cdr events))))
      (should (equal '("efrit-budget") (cdr events)))
      (should (string-prefix-p "killed" (car events)))
      (efrit-sidecar-stop)
      ;; What is told of the stop would be told before the next start.
      (efrit-sidecar-ensure)
      (should (efrit-test-wait-until (lambda () (equal "efrit-budget" (car events)))))
      (should (= 3 (length events))))))

(ert-deftest efrit-a-session-that-is-gone-keeps-nobody-from-starting ()
  "A session the sidecar refuses to resume is dropped, and the others are not."
  (efrit-test-with-session session
    (let ((inhibit-message t))
      (efrit-supervisor-remember "nosuch")
      (efrit-sidecar-restart)
      (should (equal (list session) (efrit-supervisor-sessions))))))

(ert-deftest efrit-a-sidecar-that-keeps-dying-is-given-up ()
  "After five deaths within a minute calls fail at once, until a person restarts."
  :tags '(:long)
  (efrit-test-with-session session
    (let ((inhibit-message t)
          (pauses nil))
      (cl-letf* ((pause (symbol-function 'efrit-supervisor--pause-after))
                 ((symbol-function 'efrit-supervisor--pause-after)
                  (lambda (count) (car (push (funcall pause count) pauses)))))
        (dotimes (_ 5)
          (efrit-sidecar-ensure)
          (efrit-test-kill)
          (should (efrit-test-wait-until (lambda () (not (efrit-sidecar-process)))))))
      (should (equal '(2.0 1.0 0.5 0) pauses))
      (let ((err (should-error (efrit-test-session-status session)
                               :type 'efrit-sidecar-died)))
        (should (string-match-p "efrit-sidecar-restart" (efrit-error-text err))))
      (should-not (efrit-sidecar-process))
      (efrit-sidecar-restart)
      (should (efrit-test-session-status session)))))

(ert-deftest efrit-stopping-leaves-no-process ()
  "A stopped sidecar's process is gone; what was under way ends; a call starts anew."
  (efrit-test-with-program-session session
    (let ((pid (efrit-test-pid))
          told)
      (efrit-sidecar-request-async
       'tools/call (efrit-test-use session "wait" '(:seconds 600))
       :error (lambda (err) (setq told err)))
      (efrit-sidecar-stop)
      (should (efrit-test-gone-p pid))
      (should-not (efrit-sidecar-process))
      (should (efrit-test-wait-until (lambda () told)))
      (should (memq (car told) '(efrit-sidecar-died efrit-cancelled)))
      (should (efrit-test-session-status session))
      (should-not (= pid (efrit-test-pid))))))

(ert-deftest efrit-an-idle-sidecar-ends-when-it-is-asked-to ()
  "It is not killed; here it has as much time as it takes."
  (efrit-test-with-program-home home
    (efrit-session-open efrit-test-root)
    (let ((process (efrit-sidecar-process)))
      (cl-letf* ((wait (symbol-function 'efrit-connection--wait-while))
                 ((symbol-function 'efrit-connection--wait-while)
                  (lambda (_ busy) (funcall wait 120 busy))))
        (efrit-sidecar-stop))
      (should (equal '(exit 0) (list (process-status process)
                                     (process-exit-status process)))))))

(defun efrit-test--other-emacs (form)
  "Start a batch Emacs with the package loaded, to evaluate FORM.
Return its process; its output goes to the current buffer."
  (make-process
   :name "efrit-test-emacs" :buffer (current-buffer) :noquery t
   :connection-type 'pipe
   :command (list (expand-file-name invocation-name invocation-directory)
                  "-Q" "--batch" "-L" (expand-file-name "elisp" efrit-test-root)
                  "-l" "efrit-sidecar" "--eval" (prin1-to-string form))))

(defun efrit-test--printed-pid ()
  "Return the number printed in the current buffer, when it is there."
  (goto-char (point-min))
  (and (re-search-forward "pid \\([0-9]+\\)\n" nil t)
       (string-to-number (match-string 1))))

(ert-deftest efrit-the-sidecar-ends-with-emacs ()
  "When Emacs exits, its sidecar does, and nothing is asked."
  (efrit-test-with-home home
    (with-temp-buffer
      (let ((emacs (efrit-test--other-emacs
                    '(progn (efrit-sidecar-ensure)
                            (message "pid %d" (process-id (efrit-sidecar-process)))))))
        (should (efrit-test-await-end emacs))
        (should (eql 0 (process-exit-status emacs)))
        (let ((pid (efrit-test--printed-pid)))
          (efrit-test-should-end pid))))))

(ert-deftest efrit-the-sidecar-ends-when-emacs-is-killed ()
  "Any signal ends Emacs at once, and its sidecar ends by itself."
  (dolist (signal '(9 15))
    (efrit-test-with-home home
      (with-temp-buffer
        (let ((emacs (efrit-test--other-emacs
                      '(progn (efrit-sidecar-ensure)
                              (message "pid %d" (process-id (efrit-sidecar-process)))
                              (sleep-for 600)))))
          (should (efrit-test-wait-until #'efrit-test--printed-pid))
          (signal-process emacs signal)
          (should (efrit-test-await-end emacs))
          (let ((pid (efrit-test--printed-pid)))
            (efrit-test-should-end pid)))))))

(provide 'supervision-tests)
;;; supervision-tests.el ends here
