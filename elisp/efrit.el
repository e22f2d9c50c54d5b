;;; efrit.el --- AI work within a token budget  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors

;; Author: the efrit-budget authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A model works in this Emacs; a sidecar process counts every token that
;; enters its context window, stores every result, and runs the tools that
;; need only files and git.
;;
;; This file is the base: the version, the customization group, the errors,
;; and the autoloads of the commands.  Requires go one way, towards it;
;; docs/architecture.md has all files from the ground up.

;;; Code:

(defconst efrit-version "0.1.0"
  "Version of this client.")

(defgroup efrit nil
  "AI work in Emacs within a token budget."
  :group 'tools
  :prefix "efrit-")

;;; Options

;; The options stand in the files that they are for; Customize loads these when it
;; shows the group.
(put 'efrit 'custom-loads
     '(efrit-batch efrit-budget-bars efrit-budget-rows efrit-budget-view efrit-buffer-tools
       efrit-change efrit-claude efrit-code-tools efrit-compile efrit-connection
       efrit-context efrit-diagnostics efrit-do efrit-endpoint efrit-eval efrit-executable
       efrit-export efrit-faces efrit-fetch efrit-format-tool efrit-garbage efrit-http
       efrit-limits efrit-loop efrit-memory efrit-output efrit-permissions efrit-plan
       efrit-presence efrit-process efrit-remote efrit-reply-box efrit-result efrit-revert
       efrit-session-view efrit-show-tool efrit-sidecar efrit-supervisor efrit-sync
       efrit-system efrit-turn efrit-view-events efrit-visit efrit-web-tools))

;; What decides what runs, what goes where, what is asked, and how much there may be.
(dolist (option
         '(efrit-batch-allow efrit-buffer-project-modes efrit-buffer-secret-modes
           efrit-change-most-bytes
           efrit-claude-model efrit-claude-max-tokens efrit-claude-task-budget
           efrit-claude-betas efrit-claude-retries efrit-claude-retry-delay
           efrit-claude-retry-most efrit-claude-most-bytes efrit-claude-retry-after-most
           efrit-code-seconds efrit-compile-seconds efrit-compile-hidden-variables
           efrit-instruction-files efrit-context-buffer efrit-instruction-most-bytes
           efrit-diagnostics-backends efrit-diagnostics-seconds efrit-do-show-function
           efrit-do-ask-above efrit-claude-url efrit-claude-headers efrit-claude-features
           efrit-claude-key-hosts efrit-claude-key-in-clear efrit-eval-seconds
           efrit-sidecar-command efrit-fetch-seconds efrit-fetch-most-bytes
           efrit-fetch-most-redirects efrit-fetch-user-agent efrit-format-functions
           efrit-format-seconds efrit-garbage-threshold efrit-http-program
           efrit-http-connect-timeout efrit-http-silence-timeout efrit-http-directory
           efrit-budget-total-target efrit-budget-per-tool-default efrit-budget-history-max
           efrit-budget-warning-threshold efrit-memory-tools efrit-max-turns
           efrit-max-minutes efrit-max-dollars efrit-permission-always-ask-files
           efrit-permission-never-begin efrit-permission-rules efrit-permissions-file
           efrit-edit-unsaved-buffers efrit-sidecar-read-output-max efrit-remote-commands
           efrit-revert-buffers efrit-sidecar-started-functions efrit-sidecar-died-functions
           efrit-sidecar-progress-functions efrit-sync-short efrit-sync-most-characters
           efrit-sync-most-characters-remote efrit-system-file efrit-visit-most-bytes
           efrit-visit-secret-files efrit-visit-open-files efrit-web-search-url
           efrit-web-render-seconds))
  (put option 'risky-local-variable t))

;;; Errors

(define-error 'efrit-error "Efrit error")

(define-error 'efrit-rpc-error "The sidecar answered with an error" 'efrit-error)

(define-error 'efrit-cancelled "The call was cancelled" 'efrit-rpc-error)

(define-error 'efrit-timeout "The sidecar did not answer in time" 'efrit-error)

(define-error 'efrit-sidecar-died "The sidecar ended" 'efrit-error)

(define-error 'efrit-unencodable "The call cannot be written as JSON" 'efrit-error)

;;; Public

(defun efrit-error-text (err)
  "Return the message of the condition ERR, for a person.
ERR is (SYMBOL . DATA), as `condition-case' binds it."
  (if (and (stringp (cadr err))
           (memq 'efrit-error (get (car err) 'error-conditions)))
      (let ((detail (plist-get (efrit-rpc-error-data err) :detail)))
        (format "%s: %s%s" (get (car err) 'error-message) (cadr err)
                (if (stringp detail) (concat ": " detail) "")))
    (error-message-string err)))

(defun efrit-rpc-error-code (err)
  "Return the JSON-RPC code of ERR, an `efrit-rpc-error', or nil."
  (plist-get (cddr err) :code))

(defun efrit-rpc-error-data (err)
  "Return the JSON-RPC error data of ERR, an `efrit-rpc-error', or nil.
Where a parameter was refused, `:fields' in it names which and why."
  (plist-get (cddr err) :data))

(defmacro efrit-for-a-person (&rest body)
  "Run BODY for a command: an error of efrit's is told in words alone."
  (declare (indent 0) (debug t))
  `(condition-case err
       (progn ,@body)
     (efrit-error (user-error "%s" (efrit-error-text err)))))

(defun efrit-check-mode (mode)
  "Signal a `user-error' unless this buffer is in MODE, or one derived from it.
A command of MODE's buffers may be called by its name anywhere."
  (unless (derived-mode-p mode)
    (user-error "This belongs to buffers in %s" mode)))

;;; Commands

(autoload 'efrit "efrit-menu" nil t)
(autoload 'efrit-do "efrit-do" nil t)
(autoload 'efrit-new "efrit-do" nil t)
(autoload 'efrit-do-with-buffer "efrit-do" nil t)
(autoload 'efrit-continue "efrit-do" nil t)
(autoload 'efrit-stop "efrit-do" nil t)
(autoload 'efrit-retry "efrit-do" nil t)
(autoload 'efrit-stop-tool "efrit-output" nil t)
(autoload 'efrit-view "efrit-session-view" nil t)
(autoload 'efrit-budget "efrit-budget-view" nil t)
(autoload 'efrit-resume "efrit-sessions" nil t)
(autoload 'efrit-sessions "efrit-sessions" nil t)
(autoload 'efrit-memory-search "efrit-memory" nil t)
(autoload 'efrit-memory-timeline "efrit-memory" nil t)
(autoload 'efrit-memory-save "efrit-memory" nil t)
(autoload 'efrit-context-pack "efrit-memory" nil t)
(autoload 'efrit-session-view-show "efrit-session-view")
(autoload 'efrit-copy "efrit-session-view" nil t)
(autoload 'efrit-open-result "efrit-result" nil t)
(autoload 'efrit-allow-once "efrit-ask" nil t)
(autoload 'efrit-allow-for-session "efrit-ask" nil t)
(autoload 'efrit-allow-for-project "efrit-ask" nil t)
(autoload 'efrit-deny-once "efrit-ask" nil t)
(autoload 'efrit-deny-for-session "efrit-ask" nil t)
(autoload 'efrit-deny-with-reason "efrit-ask" nil t)
(autoload 'efrit-revise "efrit-revise" nil t)
(autoload 'efrit-undo "efrit-undo-view" nil t)
(autoload 'efrit-undo-session "efrit-undo-view" nil t)
(autoload 'efrit-allow-alike-for-session "efrit-ask" nil t)
(autoload 'efrit-allow-alike-for-project "efrit-ask" nil t)
(autoload 'efrit-permissions "efrit-ask" nil t)
(autoload 'efrit-take-options "efrit-do" nil t)
(autoload 'efrit-permissions-forget "efrit-permissions" nil t)
(autoload 'efrit-batch-do "efrit-batch")
(autoload 'efrit-doctor "efrit-doctor" nil t)
(autoload 'efrit-sidecar-restart "efrit-sidecar" nil t)
(autoload 'efrit-sidecar-stop "efrit-sidecar" nil t)
(autoload 'efrit-sidecar-show-stderr "efrit-sidecar" nil t)

(provide 'efrit)
;;; efrit.el ends here
