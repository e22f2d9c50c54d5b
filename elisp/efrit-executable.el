;;; efrit-executable.el --- Find the sidecar's program  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar is a program of this package's own checkout.  It is looked
;; for in this order: what the person set, the checkout's virtualenv, the
;; PATH.  It always runs on this machine, in a local folder and with the
;; environment of Emacs itself, whatever the current buffer visits.

;;; Code:

(require 'efrit)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-sidecar-command nil
  "The command that runs the sidecar, without its subcommand.
A string is the program's file, or its name on the PATH; a list is the
program and its first arguments, for example
\(\"python3\" \"-m\" \"efrit_budget\").  With nil the program
efrit-budget is looked for in the virtualenv .venv of the checkout that
this file is part of, then on the PATH."
  :group 'efrit
  :type '(choice (const :tag "Find it" nil)
                 (file :tag "Program")
                 (repeat :tag "Program and arguments" string)))

;;; Public

(defconst efrit-directory
  (file-name-directory
   (file-truename
    (concat (file-name-sans-extension
             (or load-file-name buffer-file-name "efrit-executable"))
            ".el")))
  "The folder of this package's Lisp files, symbolic links resolved.")

(defmacro efrit-executable-locally (&rest body)
  "Run BODY in a local folder, with the environment of Emacs itself.
A remote `default-directory' or a buffer's own `process-environment' has
no part in what BODY starts."
  (declare (indent 0) (debug t))
  `(let ((default-directory (efrit-executable--local-directory))
         (process-environment (default-value 'process-environment))
         (exec-path (default-value 'exec-path)))
     ,@body))

(defun efrit-executable-command ()
  "Return the sidecar's command, a list of strings.
The first is an absolute file name.  Signal a `user-error' that says what
to run or set where there is none."
  (efrit-executable-locally
   (if (default-value 'efrit-sidecar-command)
       (efrit-executable--chosen (ensure-list (default-value 'efrit-sidecar-command)))
     (list (or (efrit-executable--in-checkout)
               (executable-find "efrit-budget")
               (user-error "%s" (efrit-executable--advice)))))))

;;; Private

(defun efrit-executable--local-directory ()
  "Return a local folder that exists."
  (let ((home (expand-file-name "~/")))
    (if (and (not (file-remote-p home)) (file-directory-p home))
        home
      (file-name-as-directory temporary-file-directory))))

(defun efrit-executable--chosen (command)
  "Return COMMAND with its program as an absolute file name.
Signal a `user-error' where that program cannot be run."
  (let ((program (executable-find (substitute-in-file-name (car command)))))
    (unless program
      (user-error
       "`efrit-sidecar-command' names %s, which is no program here; set it to one, or to nil"
       (car command)))
    (cons program (cdr command))))

(defun efrit-executable--checkout ()
  "Return the folder of the checkout this file is part of, or nil."
  (let ((folder (expand-file-name ".." efrit-directory)))
    (and (file-exists-p (expand-file-name "pyproject.toml" folder))
         (file-name-as-directory folder))))

(defun efrit-executable--in-checkout ()
  "Return the sidecar's program in the checkout's own virtualenv, or nil."
  (when-let* ((checkout (efrit-executable--checkout)))
    (seq-find #'file-executable-p
              (list (expand-file-name ".venv/bin/efrit-budget" checkout)
                    (expand-file-name ".venv/Scripts/efrit-budget.exe" checkout)))))

(defun efrit-executable--advice ()
  "Return what a person without the sidecar's program should do."
  (if-let* ((checkout (efrit-executable--checkout)))
      (format "The sidecar is not installed.  Run in a shell: make -C %s setup"
              (shell-quote-argument (directory-file-name checkout)))
    "The program efrit-budget is not on your PATH.  Run in a shell, in a \
checkout of efrit-budget: pip install .  Or set `efrit-sidecar-command'"))

(provide 'efrit-executable)
;;; efrit-executable.el ends here
