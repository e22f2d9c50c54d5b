;;; over-there.el --- Projects on another machine  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The other machine is TRAMP's own mock method, with which Emacs tests
;; itself: a shell behind a terminal, on this machine.  The sidecar there has
;; a database of its own, and its tools' processes know that TRAMP started
;; them.

;;; Code:

(require 'scripted)
;; Loaded while `tramp-methods' is bound, it would add its own to that for the moment alone.
(require 'tramp-sh)
(require 'efrit-remote)

(defvar efrit-over-there-local nil
  "The project of the test as this machine calls it.")

(defvar efrit-over-there-host nil
  "The name of the other machine.")

(defun efrit-over-there-command (home)
  "Return the sidecar's command, with its home in the folder HOME."
  (append (list "env" (concat "EFRIT_BUDGET_HOME=" (expand-file-name "there" home))
                (concat "EFRIT_BUDGET_TOOLS__PATH="
                        (json-encode (vconcat efrit-test--tools))))
          (efrit-executable-command)))

(defmacro efrit-over-there-with-project (files &rest body)
  "Run BODY in a new project with FILES on another machine.
`efrit-test-project' and `default-directory' are its remote name."
  (declare (indent 1) (debug (form body)))
  `(efrit-test-with-project ,files
     (efrit-over-there-run (lambda () ,@body))))

(defmacro efrit-over-there-with-program-project (files &rest body)
  "Run BODY like `efrit-over-there-with-project' with FILES.
The sidecars are processes of the program itself."
  (declare (indent 1) (debug (form body)))
  `(efrit-test-with-program (efrit-over-there-with-project ,files ,@body)))

(defun efrit-over-there-run (body)
  "Call BODY in the project of the test as another machine's."
  (let* ((tramp-methods (cons '("mock"
                                (tramp-login-program "sh")
                                (tramp-login-args (("-i")))
                                (tramp-remote-shell "/bin/sh")
                                (tramp-remote-shell-args ("-c"))
                                (tramp-connection-timeout 10))
                              tramp-methods))
         (tramp-default-host-alist (cons (list "\\`mock\\'" nil (system-name))
                                         tramp-default-host-alist))
         (tramp-verbose 0)
         (tramp-persistency-file-name nil)
         (create-lockfiles nil)
         (make-backup-files nil)
         (home (file-name-directory efrit-permissions-file))
         (efrit-over-there-local efrit-test-project)
         (efrit-test-project (expand-file-name (concat "/mock::" efrit-test-project)))
         (efrit-over-there-host (file-remote-p efrit-test-project))
         (default-directory efrit-test-project)
         (efrit-remote-commands (list (cons "\\`/mock:" (efrit-over-there-command home)))))
    (unwind-protect
        (funcall body)
      (mapc #'efrit-do-forget (efrit-loops))
      (efrit-sidecar-stop efrit-over-there-host)
      (mapc #'efrit-supervisor-forget (efrit-supervisor-sessions efrit-over-there-host))
      (tramp-cleanup-all-connections))))

(defun efrit-over-there-shell (id command)
  "Run the shell's COMMAND in the session ID, and return the text it gives."
  (let* ((use (efrit-test-use id "run_command" (list :command command)))
         (asked (plist-get (efrit-sidecar-request 'tools/call use) :confirm)))
    (plist-get (efrit-sidecar-request
                'tools/call (append use (list :confirm_id (plist-get asked :id))))
               :text)))

(defun efrit-over-there-pid (id)
  "Return the process id of the sidecar where the session ID lies."
  (let ((text (efrit-over-there-shell id "echo parent $PPID")))
    (should (string-match "parent \\([0-9]+\\)" text))
    (string-to-number (match-string 1 text))))

(defun efrit-over-there-spawn (remote command)
  "Start COMMAND on REMOTE, wait until it has begun, and return its process."
  (let (begun)
    (efrit-remote-spawn remote "efrit-test-there" command 60
                        (lambda (process _) (setq begun process))
                        (lambda (_ err) (signal (car err) (cdr err))))
    (should (efrit-test-wait-until (lambda () begun)))
    begun))

(defun efrit-over-there-gone-p ()
  "Return non-nil when Emacs knows that there is no sidecar over there."
  (not (efrit-sidecar-process efrit-over-there-host)))

(defun efrit-over-there-kill (pid)
  "Kill the process PID, and wait until Emacs knows."
  (signal-process pid 9)
  (should (efrit-test-wait-until #'efrit-over-there-gone-p)))

(provide 'over-there)
;;; over-there.el ends here
