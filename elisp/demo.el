;;; demo.el --- The demo of `make demo'  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A script for batch Emacs: open a session on this checkout through the
;; sidecar, let it run a tool, print what the model would be given and the
;; budget after it.  It keeps its database in a temporary folder.

;;; Code:

(add-to-list 'load-path (file-name-directory (or load-file-name buffer-file-name)))

(require 'efrit)
(require 'efrit-executable)
(require 'efrit-session)
(require 'efrit-sidecar)

(defun efrit-demo--tool (session name arguments)
  "Run the tool NAME with ARGUMENTS in SESSION and return what the model gets."
  (let ((envelope (efrit-sidecar-request
                   'tools/call
                   (list :session_id session :name name :arguments arguments
                         :tool_use_id "demo-1" :include_data :json-false))))
    (unless (equal (plist-get envelope :status) "success")
      (signal 'efrit-error (list (format "%s: %s" name (plist-get envelope :text)))))
    (plist-get envelope :text)))

(defun efrit-demo--number (number)
  "Return NUMBER with its thousands set apart."
  (let ((text (number-to-string number)))
    (while (string-match "\\`\\(-?[0-9]+\\)\\([0-9]\\{3\\}\\)" text)
      (setq text (replace-match "\\1,\\2" t nil text)))
    text))

(defun efrit-demo--tier (name tier)
  "Return a row of the budget table: NAME, and the use and limit of TIER."
  (format "%-14s %9s of %7s\n"
          (string-replace "_" " " (substring (symbol-name name) 1))
          (efrit-demo--number (plist-get tier :used))
          (efrit-demo--number (plist-get tier :limit))))

(defun efrit-demo--budget (budget)
  "Return BUDGET, a snapshot, as a table of tokens."
  (let ((tiers (plist-get budget :tiers))
        (rows (list "Budget, in tokens\n")))
    (while tiers
      (push (efrit-demo--tier (pop tiers) (pop tiers)) rows))
    (push (format "%-14s %9s of %7s\n" "remaining"
                  (efrit-demo--number (plist-get budget :remaining))
                  (efrit-demo--number (plist-get budget :total)))
          rows)
    (apply #'concat (nreverse rows))))

(defun efrit-demo--run ()
  "Run the demo and print it."
  (let* ((root (file-name-directory (directory-file-name efrit-directory)))
         (session (efrit-session-open root)))
    (princ (format "Session %s on %s\n\n" session (directory-file-name root)))
    (princ "file_info README.md\n")
    (princ (efrit-demo--tool session "file_info" '(:paths ["README.md"])))
    (princ "\n\n")
    (princ (efrit-demo--budget (plist-get (efrit-session-status session) :budget)))
    (efrit-session-close session)))

(defun efrit-demo ()
  "Run the demo in a temporary home; return non-nil if it went well."
  (let ((home (make-temp-file "efrit-demo-" t)))
    (setenv "EFRIT_BUDGET_HOME" home)
    (unwind-protect
        (condition-case err
            (progn (efrit-demo--run) t)
          (error (ignore (message "demo: %s" (efrit-error-text err)))))
      (efrit-sidecar-stop)
      (delete-directory home t))))

(when noninteractive
  (kill-emacs (if (efrit-demo) 0 1)))

(provide 'demo)
;;; demo.el ends here
