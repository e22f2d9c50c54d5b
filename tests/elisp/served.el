;;; served.el --- Files that a language server manages  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Runs a small language server, language_server.py, under Eglot.

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)

(defvar eglot-server-programs)
(declare-function eglot-ensure "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-shutdown "eglot")

(defmacro served-with (arguments files &rest body)
  "Run BODY in the buffer of the first of FILES, in a project with FILES.
A language server with ARGUMENTS manages it."
  (declare (indent 2))
  `(served--with ,arguments ,files (lambda () ,@body)))

(defmacro served-by (modes command files &rest body)
  "Run BODY in the buffer of the first of FILES, in a project with FILES.
COMMAND, a list, starts the language server for MODES, which manages it."
  (declare (indent 3))
  `(served--by ,modes ,command ,files (lambda () ,@body)))

(defun served--with (arguments files body)
  "Call BODY as `served-with' does, with ARGUMENTS and FILES."
  (served--by 'text-mode
              (append (list "python3" (expand-file-name "tests/elisp/language_server.py"
                                                        efrit-test-root))
                      arguments)
              files body))

(defun served--by (modes command files body)
  "Call BODY as `served-by' does, with MODES, COMMAND and FILES.
Meanwhile Emacs does its work for an idle person."
  (served--load-eglot)
  (editing-with files
    (with-current-buffer (find-file-noselect (caar files))
      (let ((resting (run-at-time 0 0.1 #'served--rest))
            (eglot-server-programs (list (cons modes command)))
            (inhibit-message t))
        (unwind-protect
            (progn
              (eglot-ensure)
              (run-hooks 'post-command-hook)
              (should (efrit-test-wait-until #'eglot-current-server))
              (funcall body))
          (cancel-timer resting)
          (when (eglot-current-server)
            (eglot-shutdown (eglot-current-server)))
          (served--cancel-timers))))))

(defun served--load-eglot ()
  "Load Eglot, also where Debian has it as a package."
  (dolist (folder (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/*"))
    (add-to-list 'load-path folder t))
  (should (require 'eglot nil t)))

(defun served--rest ()
  "Run the idle timers, which a batch Emacs does not."
  (mapc #'timer-event-handler (copy-sequence timer-idle-list)))

(defun served--cancel-timers ()
  "Cancel the timers that eglot has left."
  (dolist (timer (append timer-list timer-idle-list))
    (when (string-match-p "eglot" (format "%S" timer))
      (cancel-timer timer))))

(provide 'served)
;;; served.el ends here
