;;; efrit-limits.el --- The budget's options  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a session opened by this Emacs may put into the model's window.  The
;; sidecar's own settings (see docs/settings.md) hold where an option here
;; has its default.

;;; Code:

(require 'efrit)

;;; Options

(defgroup efrit-session nil
  "The budget of a session, in tokens."
  :group 'efrit)

(defcustom efrit-budget-total-target 100000
  "The whole budget of a session: the prompt, and the reserve for the reply.
Tiers not set one by one scale with it."
  :type 'natnum)

(defcustom efrit-budget-per-tool-default 8000
  "The most that one tool call may deliver."
  :type 'natnum)

(defcustom efrit-budget-history-max 12000
  "The most that the compressed work log and the model's earlier turns take."
  :type 'natnum)

(defcustom efrit-budget-warning-threshold 20000
  "Remaining tokens below which the model is warned."
  :type 'natnum)

(defcustom efrit-memory-tools t
  "Whether the model of a new session is offered the tools of memory."
  :type 'boolean)

(defconst efrit-limits--memory
  ["mem_save" "mem_search" "mem_context" "mem_timeline" "mem_get_observation" "mem_delete"
   "mem_stats" "context_pack"]
  "The tools of memory.")

(defconst efrit-limits--names
  '((efrit-budget-total-target . :total)
    (efrit-budget-per-tool-default . :per_tool_default)
    (efrit-budget-history-max . :history)
    (efrit-budget-warning-threshold . :warning_threshold))
  "What the options are called on the wire.")

;;; Public

(defun efrit-limits ()
  "Return the limits of a new session, a plist, or nil for the defaults."
  (let (limits)
    (pcase-dolist (`(,option . ,name) efrit-limits--names)
      (let ((value (default-value option)))
        (unless (equal value (eval (car (get option 'standard-value)) t))
          (setq limits (plist-put limits name value)))))
    limits))

(defun efrit-limits-denied ()
  "Return the names of the tools denied to a new session, a vector, or nil."
  (and (not (default-value 'efrit-memory-tools))
       efrit-limits--memory))

(provide 'efrit-limits)
;;; efrit-limits.el ends here
