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
