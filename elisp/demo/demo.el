;;; demo.el --- The demo of `make demo'  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A script for batch Emacs that runs a whole session on this checkout.  The
;; model is a scripted one on this machine, with a temporary database, unless
;; ANTHROPIC_API_KEY and TASK are set; the first line says which.

;;; Code:

(add-to-list 'load-path
             (expand-file-name "../" (file-name-directory (or load-file-name
                                                              buffer-file-name))))

(require 'efrit)
(require 'efrit-anthropic)
(require 'efrit-do)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'subr-x)

(defconst efrit-demo--task "Show me round this project."
  "The task for the scripted model.")

(defun efrit-demo--real-p ()
  "Return non-nil if the environment asks for the real model."
  (not (or (string-empty-p (or (getenv "ANTHROPIC_API_KEY") ""))
           (string-empty-p (or (getenv "TASK") "")))))

(defun efrit-demo--root ()
  "Return the folder of this checkout."
  (file-name-directory (directory-file-name efrit-directory)))

(defun efrit-demo--run (task)
  "Give TASK on this checkout to the model; return non-nil if it ended well."
  (let* ((default-directory (efrit-demo--root))
         (efrit-context-buffer nil)
         (loop (progn (princ (format "> %s\n\n" task))
                      (efrit-batch-run task))))
    (eq (efrit-loop-state loop) 'idle)))

(defun efrit-demo--real ()
  "Give the task in the environment to the real model."
  (princ (format "The model is the real one: %s at %s.\n\n"
                 efrit-claude-model efrit-claude-url))
  (efrit-demo--run (getenv "TASK")))

(defun efrit-demo--scripted ()
  "Run a session with the scripted model."
  (princ (concat "The model is a scripted one on this machine: its replies come from a file, "
                 "the tools it uses\nare real.  With ANTHROPIC_API_KEY and TASK=\"...\" set it "
                 "is the real model.\n\n"))
  (let* ((home (make-temp-file "efrit-demo-" t))
         (process-environment (cons (concat "EFRIT_BUDGET_HOME=" home) process-environment))
         (model (efrit-demo--start-model)))
    (unwind-protect
        (let ((efrit-claude-url (concat (efrit-demo--url model) "/v1/messages"))
              (efrit-claude-features '(cache thinking effort binding diagnostics)))
          (efrit-demo--run efrit-demo--task))
      (delete-process model)
      (efrit-sidecar-stop)
      (delete-directory home t))))

(defun efrit-demo--start-model ()
  "Start the scripted model and return its process."
  (make-process :name "efrit-demo-model"
                :buffer (generate-new-buffer " *efrit-demo-model*")
                :command (append (efrit-executable-command)
                                 '("demo-model" "--no-key" "--quiet" "--until-eof"
                                   "--scenario" "tour"))
                :connection-type 'pipe
                :noquery t
                :sentinel #'ignore))

(defun efrit-demo--url (model)
  "Return the URL of MODEL, a process, once it prints that."
  (with-current-buffer (process-buffer model)
    (while (and (process-live-p model)
                (not (string-match-p "\n" (buffer-string))))
      (accept-process-output model 0.1))
    (goto-char (point-min))
    (if (re-search-forward "^http://\\S-+" nil t)
        (match-string 0)
      (error "The scripted model did not start: %s" (string-trim (buffer-string))))))

(defun efrit-demo ()
  "Run the demo; return non-nil if it went well."
  (condition-case err
      (if (efrit-demo--real-p) (efrit-demo--real) (efrit-demo--scripted))
    (error (ignore (message "demo: %s" (efrit-error-text err))))))

(when noninteractive
  (kill-emacs (if (efrit-demo) 0 1)))

(provide 'demo)
;;; demo.el ends here
