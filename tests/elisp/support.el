;;; support.el --- What the tests stand on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each test talks to a real sidecar of its own, whose database is in a
;; temporary folder, and which has the tools of tests/tools_for_tests and
;; tests/elisp/tools.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'json)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-session)
(require 'efrit-sidecar)
(require 'efrit-supervisor)

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

(defun efrit-test--in-home (body)
  "Call BODY with a temporary folder that is the sidecar's home."
  (let* ((home (make-temp-file "efrit-test-" t))
         (process-environment
          (append (list (concat "EFRIT_BUDGET_HOME=" home)
                        (concat "EFRIT_BUDGET_TOOLS__PATH="
                                (json-encode (vconcat efrit-test--tools))))
                  process-environment)))
    (unwind-protect
        (funcall body home)
      (efrit-sidecar-stop)
      (mapc #'efrit-supervisor-forget (efrit-supervisor-sessions))
      (delete-directory home t))))

(defvar efrit-test--uses 0
  "How many tool uses there were.")

(defun efrit-test-use (session tool arguments)
  "Return the parameters of a new call of TOOL with ARGUMENTS in SESSION."
  (list :session_id session :name tool :arguments arguments
        :tool_use_id (format "use-%d" (cl-incf efrit-test--uses))))

(defun efrit-test-tool (session tool arguments)
  "Call TOOL with ARGUMENTS in SESSION and return the envelope."
  (efrit-sidecar-request 'tools/call (efrit-test-use session tool arguments)))

(defun efrit-test-wait-until (condition &optional seconds)
  "Wait until CONDITION, a function, gives non-nil, for SECONDS (30) at most.
Return what it gave."
  (let ((end (+ (float-time) (or seconds 30)))
        value)
    (while (not (or (setq value (funcall condition))
                    (> (float-time) end)))
      (accept-process-output nil 0.02))
    value))

(defun efrit-test-pid ()
  "Return the process id of the sidecar."
  (process-id (efrit-sidecar-process)))

(defun efrit-test-gone-p (pid)
  "Return non-nil when there is no process PID, or only its remains."
  (member (alist-get 'state (process-attributes pid)) '(nil "Z")))

(defun efrit-test-kill ()
  "Kill the sidecar as the system would, and return its process id."
  (let ((pid (efrit-test-pid)))
    (signal-process pid 9)
    pid))

(defmacro efrit-test-seconds (&rest body)
  "Run BODY and return how many seconds that took."
  (declare (indent 0) (debug t))
  `(let ((start (float-time)))
     ,@body
     (- (float-time) start)))

(provide 'support)
;;; support.el ends here
