;;; efrit-process.el --- The sidecar's process  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; How the process is started on this machine, how the end of one is never
;; missed, and where its standard error goes: to the
;; buffer " *efrit sidecar stderr*".  jsonrpc.el (all versions) wants that
;; buffer under a name made from the connection's, then hides it.

;;; Code:

(require 'seq)
(require 'efrit)
(require 'efrit-executable)
(require 'subr-x)

;;; Options

(defcustom efrit-sidecar-read-output-max 65536
  "How many bytes of the sidecar's output Emacs reads at once, at least.
That is from Emacs 30 on, where a process has a limit of its own.  Emacs 28
and 29 know one for all processes, `read-process-output-max', which is the
person's; with nil it is that everywhere."
  :group 'efrit
  :type '(choice (const :tag "As it is" nil) natnum))

(defconst efrit-process--seconds 1
  "Seconds between two looks whether a process has ended.")

;;; Public

(defun efrit-process-name (&optional remote)
  "Return the name of the connection to the sidecar on the host REMOTE, or here.
jsonrpc.el names its buffers by it."
  (concat "efrit sidecar" (and remote (concat " " remote))))

(defun efrit-process-spawn (command)
  "Start COMMAND, a list of strings, and return its process.
It speaks on pipes, in UTF-8, and Emacs may end without asking about it.
The key of the model is not in its environment, where commands could look."
  (efrit-process-keep-stderr)
  (efrit-executable-locally
    (let ((process-environment (cons "ANTHROPIC_API_KEY" process-environment))
          (read-process-output-max
           (max read-process-output-max (or efrit-sidecar-read-output-max 0)))
          ;; It delays reading while output comes in small pieces.
          (process-adaptive-read-buffering nil))
      (make-process
       :name (efrit-process-name)
       :command command
       :connection-type 'pipe
       :coding 'utf-8-emacs-unix
       :noquery t
       ;; jsonrpc.el finds the buffer by this very name, then hides it.
       :stderr (get-buffer-create (format "*%s stderr*" (efrit-process-name)))))))

(defun efrit-process-watch (process over)
  "Call OVER once PROCESS has ended and what it wrote was read.
Look from a timer: where a person quits while Emacs reads the last output
of a process with a standard error of its own, Emacs never calls the
sentinel.  `efrit-process-unwatch' ends it where the end is known."
  (process-put process 'efrit-watch
               (run-at-time 0 efrit-process--seconds #'efrit-process--look process over)))

(defun efrit-process-unwatch (process)
  "Look no more whether PROCESS has ended."
  (when-let* ((timer (process-get process 'efrit-watch)))
    (cancel-timer timer)))

(defun efrit-process-stderr (&optional remote)
  "Return the buffer with what the sidecar wrote to its standard error.
That is the latest process's, here or on the host REMOTE, or the one's
before if that wrote nothing.  On another machine it comes when the
process has ended.  Return nil where there is none."
  (seq-find (lambda (buffer) (and buffer (> (buffer-size buffer) 0)))
            (list (get-buffer (efrit-process--stderr-name remote))
                  (get-buffer (efrit-process--stderr-name remote "before")))))

(defun efrit-process-keep-stderr (&optional remote)
  "Set the stderr of the process before on REMOTE aside; jsonrpc.el would kill it."
  (when-let* ((latest (get-buffer (efrit-process--stderr-name remote)))
              ((> (buffer-size latest) 0)))
    (when-let* ((old (get-buffer (efrit-process--stderr-name remote "before"))))
      (kill-buffer old))
    (with-current-buffer latest
      (rename-buffer (efrit-process--stderr-name remote "before")))))

(defun efrit-process-last-words (buffer)
  "Return the last line the process wrote to its stderr BUFFER, or nil."
  (when (buffer-live-p buffer)
    (when-let* ((pipe (get-buffer-process buffer)))
      (accept-process-output pipe 0.1 nil t))
    (with-current-buffer buffer
      (car (last (split-string (buffer-substring (max 1 (- (point-max) 2000))
                                                 (point-max))
                               "\n" t "[ \t]+"))))))

;;; Private

(defun efrit-process--look (process over)
  "Call OVER if PROCESS has ended, behind the last of what it wrote."
  (unless (process-live-p process)
    (efrit-process-unwatch process)
    (while (accept-process-output process 0 nil t))
    (funcall over)))

(defun efrit-process--stderr-name (remote &optional which)
  "Return the name of the stderr buffer of the process WHICH on the host REMOTE."
  (format " *%s stderr%s*" (efrit-process-name remote) (if which (concat " " which) "")))

(provide 'efrit-process)
;;; efrit-process.el ends here
