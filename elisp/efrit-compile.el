;;; efrit-compile.el --- Compiling for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The project's compile command runs as the person's own compilation would,
;; in a buffer where `next-error' works, but in no window and without a
;; question.  The model is told its exit, what it found, and its output.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'compile)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-findings)
(require 'efrit-host)
(require 'efrit-loop)
(require 'efrit-tools)
(require 'efrit-visit)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-compile-seconds 600
  "How many seconds a compilation may take, unless the model says otherwise."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-compile-most-characters 5000000
  "How many characters a compilation may print before it is ended."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-compile-hidden-variables
  '("\\`\\(?:ANTHROPIC\\|OPENAI\\|CLAUDE\\|GEMINI\\|AWS\\|AZURE\\|ARM\\|PGPASS\\)"
    "API_?KEY\\|PRIVATE_KEY\\|ACCESS_KEY\\|_KEYS?\\'\\|_KEY_ID\\'"
    "\\`TOKEN\\'\\|_TOKENS?\\(?:_\\|\\'\\)\\|_PAT\\'\\|_JWT\\'\\|_DSN\\'\\|_AUTH\\'"
    "SECRET\\|PASSWORD\\|PASSWD\\|PASSPHRASE\\|_PASS\\'\\|CREDENTIAL\\|ASKPASS"
    "WEBHOOK_URL\\|\\`KUBECONFIG\\'\\|\\`NETRC\\'")
  "Variables of the environment that a compilation does not get.
Regular expressions for their names, in upper case."
  :group 'efrit
  :type '(repeat regexp))

(defconst efrit-compile--told-every 0.25
  "Seconds between two tellings of what a compilation has printed.")

(defconst efrit-compile--patience 2
  "Seconds between the interrupt of a compilation and its kill.")

(defvar-local efrit-compile--output-start 1
  "Where the output of the compilation in this buffer begins.
That is behind Emacs's own lines at the top.")

;;; Tools

(efrit-define-tool compile
    ((command "string" "Default: the project's" :optional t)
     (timeout "integer" "Seconds" :optional t :minimum 1 :maximum 86400))
  "Compile the project in a compilation buffer: exit, errors by file, output."
  :policy ask
  :async t
  :resolve #'efrit-compile--resolve
  (when (and timeout (not (<= 1 timeout 86400)))
    (user-error "Timeout is 1 to 86400 seconds, not %s" timeout))
  (when (string-blank-p (or command ""))
    (user-error "The project has no compile command; give one"))
  (efrit-compile--start call command (or timeout efrit-compile-seconds)))

;;; Public

(defun efrit-compile-command (root)
  "Return the compile command of the project at ROOT, as the person would get it."
  (let ((command (efrit-visit-quietly
                   (with-temp-buffer
                     (setq default-directory root)
                     (hack-dir-local-variables-non-file-buffer)
                     ;; A person's own may be an expression.
                     (if (stringp compile-command) compile-command (eval compile-command t))))))
    (when (string-blank-p command)
      (user-error "The project has no compile command; give one"))
    (string-trim command)))

;;; Private: running

(defun efrit-compile--resolve (loop arguments)
  "Return ARGUMENTS with the command that a compilation in LOOP will run.
What it is now is decided about, and run: it may be another one later."
  (if (string-blank-p (or (plist-get arguments :command) ""))
      (plist-put arguments :command
                 (efrit-compile-command
                  (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop)))))
    arguments))

(defun efrit-compile--start (call command seconds)
  "Compile by COMMAND for CALL, for SECONDS at most."
  (let* ((root (efrit-visit-root call))
         (began (float-time))
         (unsaved (seq-filter #'buffer-modified-p (efrit-visit-buffers call)))
         (buffer (efrit-compile--begin root command))
         (process (get-buffer-process buffer))
         (timer (run-at-time seconds nil #'efrit-compile--end process 'late)))
    (setf (efrit-tool-call-stop call)
          (lambda () (efrit-compile--end process 'stopped)))
    (with-current-buffer buffer
      (add-hook 'compilation-filter-hook (efrit-compile--watcher call) nil t)
      (add-hook 'compilation-finish-functions
                (lambda (buffer message)
                  (cancel-timer timer)
                  (efrit-child-finishing call
                    (efrit-tool-finish
                     call (efrit-compile--result
                           call buffer command
                           (efrit-compile--how process message began) unsaved))))
                nil t))))

(defun efrit-compile--begin (root command)
  "Start COMMAND as a compilation in ROOT, in no window; return its buffer."
  (let* ((default-directory root)
         (process-environment (efrit-compile--environment))
         (compilation-auto-jump-to-first-error nil)
         (compilation-scroll-output nil)
         (display-buffer-overriding-action
          '(display-buffer-no-window . ((allow-no-window . t))))
         (name (efrit-compile--buffer-name root))
         (buffer (efrit-remote-unshared
                   (compilation-start command nil (lambda (_) name)))))
    (with-current-buffer buffer
      (setq efrit-compile--output-start (point-max)))
    buffer))

(defun efrit-compile--buffer-name (root)
  "Return a name for the buffer of a compilation in ROOT.
A buffer at work, or of another project, is left alone."
  (let ((base (format "*%s-compilation*"
                      (file-name-nondirectory (directory-file-name root)))))
    (cl-loop for number from 1
             for name = (if (= number 1) base (format "%s<%d>" base number))
             for buffer = (get-buffer name)
             unless (and buffer
                         (or (process-live-p (get-buffer-process buffer))
                             (not (equal root (buffer-local-value 'compilation-directory
                                                                  buffer)))))
             return name)))

(defun efrit-compile--environment ()
  "Return the environment of a compilation: without keys, with nobody to ask."
  (append '("TERM=dumb" "PAGER=cat" "GIT_PAGER=cat" "GIT_TERMINAL_PROMPT=0")
          (seq-remove (lambda (variable)
                        (let ((name (upcase (car (split-string variable "="))))
                              (case-fold-search nil))
                          (seq-some (lambda (regexp) (string-match-p regexp name))
                                    efrit-compile-hidden-variables)))
                      process-environment)))

(defun efrit-compile--watcher (call)
  "Return a function for the output of the compilation of CALL as it comes.
It ends one that prints too much, and tells the loop of the latest lines."
  (let ((told 0))
    (lambda ()
      (when (> (buffer-size) efrit-compile-most-characters)
        (efrit-compile--end (get-buffer-process (current-buffer)) 'long))
      (when (> (- (float-time) told) efrit-compile--told-every)
        (setq told (float-time))
        (efrit-loop-tell (efrit-tool-call-owner call) 'output (efrit-tool-call-id call)
                         (buffer-substring-no-properties
                          (max efrit-compile--output-start (- (point-max) 2000))
                          (point-max)))))))

(defun efrit-compile--end (process why)
  "End PROCESS, a compilation, for the reason WHY: by an interrupt, then a kill."
  (when (and (process-live-p process) (not (process-get process 'efrit-why)))
    (process-put process 'efrit-why why)
    (interrupt-process process)
    (run-at-time efrit-compile--patience nil #'efrit-compile--kill process)))

(defun efrit-compile--kill (process)
  "Kill PROCESS, a compilation not over yet, and what it has started."
  (when (process-live-p process)
    (when (and (process-id process) (not (file-remote-p default-directory)))
      ;; Below its process id is its whole group.
      (signal-process (- (process-id process)) 'SIGKILL))
    (delete-process process)))

;;; Private: telling

(defun efrit-compile--how (process message began)
  "Return how PROCESS, a compilation from the time BEGAN on, ended.
It is a list of the status of the result and words; MESSAGE is Emacs's."
  (let ((seconds (format "%.1f s" (- (float-time) began))))
    (pcase (process-get process 'efrit-why)
      ('late (list 'error (format "ended after %s, its time; give a longer timeout" seconds)))
      ('long (list 'error (format "ended after %d characters of output"
                                  efrit-compile-most-characters)))
      ('stopped (list 'error (format "stopped by the person after %s" seconds)))
      (_ (list 'success
               (if (eq (process-status process) 'exit)
                   (format "exit %d after %s" (process-exit-status process) seconds)
                 (format "%s after %s" (string-trim message) seconds)))))))

(defun efrit-compile--result (call buffer command how unsaved)
  "Return the result for CALL of COMMAND, compiled in BUFFER.
HOW it ended is from `efrit-compile--how'; UNSAVED are buffers it did not see."
  (let* ((findings (efrit-findings-of-compilation buffer))
         (said (format "%s: %s; %s" (efrit-visit-one-line command) (cadr how)
                       (efrit-findings-count findings)))
         (lines (efrit-findings-lines call findings)))
    (efrit-tool-result
     (string-join
      `(,(efrit-tool-own said)
        ,@(and unsaved
               (list (concat (efrit-tool-own "Not saved, so compiled as on disk: ")
                             (mapconcat (lambda (buffer)
                                          (efrit-visit-name call (buffer-file-name buffer)))
                                        (seq-filter #'buffer-live-p unsaved) ", "))))
        ,@lines
        ,(efrit-tool-own (format "Output, in %s:" (buffer-name buffer)))
        ,(efrit-compile--output buffer))
      "\n")
     :status (car how)
     :summary (truncate-string-to-width
               (string-join (cons said (seq-take lines 3)) "\n") 490 nil nil "…"))))

(defun efrit-compile--output (buffer)
  "Return what the compilation in BUFFER printed."
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        ;; Emacs's own lines at the end are left out, too.
        (let ((begin (min (point-max) efrit-compile--output-start))
              (end (progn (goto-char (point-max))
                          (if (re-search-backward "\n\nCompilation [^\n]+ at [^\n]+\n*\\'"
                                                  nil t)
                              (point)
                            (point-max)))))
          (ansi-color-filter-apply
           (string-trim (buffer-substring-no-properties (min begin end) end)
                        "\n+" "\n+")))))))

(provide 'efrit-compile)
;;; efrit-compile.el ends here
