;;; support.el --- What the tests stand on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each test talks to a real sidecar of its own, whose database is in a
;; temporary folder, and which has the tools of tests/tools_for_tests and
;; tests/elisp/tools.  It is a child of a process that has loaded the program
;; once for all tests (fork_server.py); where the start of a process or its
;; end is what is tested, it is the program itself.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'json)
(require 'efrit)
(require 'efrit-rpc)
(require 'efrit-sidecar)

(defconst efrit-test-root
  (expand-file-name "../../" (file-name-directory (or load-file-name buffer-file-name)))
  "The folder of the checkout.")

(defconst efrit-test--tools
  (mapcar (lambda (folder) (expand-file-name folder efrit-test-root))
          '("tests/tools_for_tests" "tests/elisp/tools"))
  "The folders of the tools that only tests use.")

(defmacro efrit-test-with-home (home &rest body)
  "Run BODY with the sidecar's home in a temporary folder, bound to HOME.
Then stop the sidecar and forget its sessions."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-test--in-home (lambda (,home) (ignore ,home) ,@body)))

(defmacro efrit-test-with-session (session &rest body)
  "Run BODY with the id of a new session on the checkout bound to SESSION."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-test-with-home home
     (let ((,session (efrit-session-open efrit-test-root)))
       ,@body)))

(defvar efrit-test--forks t
  "Non-nil if sidecars and models are children of the fork server.")

(defmacro efrit-test-with-program (&rest body)
  "Run BODY; sidecars and models in it are processes of the program itself."
  (declare (indent 0) (debug t))
  `(let ((efrit-test--forks nil))
     ,@body))

(defmacro efrit-test-with-program-home (home &rest body)
  "Run BODY like `efrit-test-with-home' with HOME.
The sidecar is a process of the program itself."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-test-with-program (efrit-test-with-home ,home ,@body)))

(defmacro efrit-test-with-program-session (session &rest body)
  "Run BODY like `efrit-test-with-session' with SESSION.
The sidecar is a process of the program itself."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-test-with-program (efrit-test-with-session ,session ,@body)))

(defun efrit-test--in-home (body)
  "Call BODY with a temporary folder that is the sidecar's home."
  (let* ((home (make-temp-file "efrit-test-" t))
         (efrit-sidecar-command (and efrit-test--forks (efrit-test--forked-command)))
         (efrit-sidecar-start-timeout 120)
         (process-environment
          (append (list (concat "EFRIT_BUDGET_HOME=" home)
                        ;; For what an Emacs that is killed leaves.
                        (concat "TMPDIR=" home)
                        (concat "EFRIT_BUDGET_TOOLS__PATH="
                                (json-encode (vconcat efrit-test--tools))))
                  process-environment)))
    (unwind-protect
        (funcall body home)
      (efrit-sidecar-stop)
      (mapc #'efrit-supervisor-forget (efrit-supervisor-sessions))
      (efrit-test--clear-away)
      (delete-directory home t))))

(defun efrit-test--clear-away ()
  "Delete the buffers and the folder that Emacs has of sidecars that have ended."
  (dolist (buffer (buffer-list))
    (when (string-prefix-p (concat " *" (efrit-process-name)) (buffer-name buffer))
      (kill-buffer buffer)))
  (efrit-handover--remove)
  (setq efrit-handover--folder nil))

;;; Children of the fork server

(defvar efrit-test--fork-server nil
  "The process of the fork server; it ends with Emacs.")

(defun efrit-test--forked-command ()
  "Return the command of a child of the fork server."
  (efrit-test-start-fork-server)
  (list (efrit-test--python) "-I" "-S" (expand-file-name "tests/elisp/forked.py" efrit-test-root)
        (efrit-test-await-fork-server)))

(defun efrit-test--python ()
  "Return the checkout's Python."
  (expand-file-name ".venv/bin/python" efrit-test-root))

(defun efrit-test-start-fork-server ()
  "Start the fork server unless there is one; do not wait until it is ready."
  (unless (process-live-p efrit-test--fork-server)
    (setq efrit-test--fork-server
          (make-process :name "efrit-test-fork-server" :connection-type 'pipe :noquery t
                        :buffer (generate-new-buffer " *efrit-test-fork-server*")
                        :command (list (efrit-test--python)
                                       (expand-file-name "tests/elisp/fork_server.py"
                                                         efrit-test-root))))))

(defun efrit-test-await-fork-server ()
  "Wait until the fork server is ready, and return the name of its socket."
  (with-current-buffer (process-buffer efrit-test--fork-server)
    (or (efrit-test-wait-until
         (lambda ()
           (goto-char (point-min))
           (and (looking-at "\\(/.+\\)\n")
                (match-string 1))))
        (error "The fork server did not start: %s" (buffer-string)))))

(defun efrit-test--child-pid (process)
  "Return the id of the fork server's child for PROCESS, or nil for a program."
  (when (member "-S" (process-command process))
    (let ((file (expand-file-name (number-to-string (process-id process))
                                  (file-name-directory (efrit-test-await-fork-server)))))
      (should (efrit-test-wait-until (lambda () (file-exists-p file))))
      (with-temp-buffer
        (insert-file-contents file)
        (string-to-number (buffer-string))))))

;;; Using it

(defvar efrit-test--uses 0
  "Number of tool uses so far.")

(defun efrit-test-use (session tool arguments)
  "Return the parameters of a new call of TOOL with ARGUMENTS in SESSION."
  (list :session_id session :name tool :arguments arguments
        :tool_use_id (format "use-%d" (cl-incf efrit-test--uses))))

(defun efrit-test-tool (session tool arguments)
  "Call TOOL with ARGUMENTS in SESSION and return the envelope."
  (efrit-sidecar-request 'tools/call (efrit-test-use session tool arguments)))

(defun efrit-test-wait-until (condition &optional seconds)
  "Wait until CONDITION, a function, is satisfied, for SECONDS (120) at most.
Return its value."
  (let ((end (+ (float-time) (or seconds 120)))
        value)
    (while (not (or (setq value (funcall condition))
                    (> (float-time) end)))
      (accept-process-output nil 0.02))
    value))

(defun efrit-test-await-end (process)
  "Wait until PROCESS has ended and all that it wrote is read; return non-nil then."
  (when (efrit-test-wait-until (lambda () (not (process-live-p process))))
    (while (accept-process-output process 0.05))
    t))

(defun efrit-test-quit-when (condition)
  "Quit as a person would, once CONDITION, a function, gives non-nil."
  (let (timer)
    (setq timer (run-at-time 0 0.05 (lambda ()
                                      (when (funcall condition)
                                        (cancel-timer timer)
                                        (setq quit-flag t)))))))

(defun efrit-test-pid ()
  "Return the process id of the sidecar."
  (let ((process (efrit-sidecar-process)))
    (or (efrit-test--child-pid process) (process-id process))))

(defun efrit-test-gone-p (pid)
  "Return non-nil when there is no process PID, or only its remains."
  (member (alist-get 'state (process-attributes pid)) '(nil "Z")))

(defun efrit-test-should-end (pid)
  "Check that the process PID ends soon."
  (should (efrit-test-wait-until (lambda () (efrit-test-gone-p pid)))))

(defun efrit-test-take-pid (file)
  "Return the process id that FILE names, and delete FILE."
  (let ((pid (with-temp-buffer
               (insert-file-contents file)
               (delete-file file)
               (string-to-number (buffer-string)))))
    (should (< 1 pid))
    pid))

(defun efrit-test-kill ()
  "Kill the sidecar as the system would, and return its process id."
  (let ((pid (efrit-test-pid)))
    (signal-process pid 9)
    pid))

(defun efrit-test-session-status (id)
  "Return the state of the session ID, a plist; `:budget' is its snapshot."
  (efrit-sidecar-request 'session/status (list :session_id id)))

(defun efrit-test-session-close (id)
  "Close the session ID, and do not resume it any more."
  (prog1 (efrit-sidecar-request 'session/close (list :session_id id))
    (efrit-supervisor-forget id)))

(provide 'support)
;;; support.el ends here
