;;; efrit-tools-build.el --- Tools to compile, check, rename and format  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that compile a project, collect errors and warnings, rename symbols, and
;; format files.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'efrit-tools-emacs)

;; These libraries are loaded when they are used.
(eval-when-compile
  (require 'compile)
  (require 'flymake)
  (require 'eieio)
  (require 'project)
  (require 'url-util)
  (eieio-declare-slots capabilities))
(declare-function ansi-color-filter-apply "ansi-color" (string))
(declare-function compilation-start "compile" (command &optional mode name highlight continue))
(declare-function flymake-diagnostic-backend "flymake" (diagnostic))
(declare-function flymake-diagnostic-beg "flymake" (diagnostic))
(declare-function flymake-diagnostic-text "flymake" (diagnostic))
(declare-function flymake-diagnostic-type "flymake" (diagnostic))
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-disabled-backends "flymake" ())
(declare-function flymake-reporting-backends "flymake" ())
(declare-function flymake-running-backends "flymake" ())
(declare-function flymake-start "flymake" (&optional deferred force))
(declare-function warning-numeric-level "warnings" (level))

;;; Findings

;; A finding is an error or warning of a checker or a compiler.  Findings of a
;; compilation are parsed from its buffer.

(defconst efrit-findings--most-parsed 5000000
  "Characters of the longest compilation buffer that is parsed.")

(cl-defstruct (efrit-finding (:constructor efrit-finding-create) (:copier nil))
  "An error, warning or note about a place: FILE, LINE, COLUMN, TEXT.
COLUMN counts from 1, or is nil.  SEVERITY is `error', `warning' or `note'.
SOURCE is the name of the checker or compilation buffer."
  file line column severity source text)

(defun efrit-findings-of-compilation (buffer)
  "Return the findings in BUFFER, of a compilation; nil if BUFFER is too long."
  (require 'compile)
  (with-current-buffer buffer
    (when (<= (buffer-size) efrit-findings--most-parsed)
      (let ((rules compilation-error-regexp-alist)
            (fold compilation-error-case-fold-search)
            (text (efrit-findings--output)))
        (with-temp-buffer
          (insert text)
          (setq case-fold-search fold)
          (efrit-findings--mark-folders)
          (dolist (rule rules)
            (efrit-findings--mark (if (symbolp rule)
                                      (cdr (assq rule compilation-error-regexp-alist-alist))
                                    rule)
                                  (memq 'omake rules) (buffer-name buffer)))
          (cl-loop for position = (point-min)
                   then (next-single-property-change position 'efrit-finding)
                   while position
                   for finding = (get-text-property position 'efrit-finding)
                   when (and finding (efrit-finding-line finding)) collect finding))))))

(defun efrit-findings--output ()
  "Return the text of this compilation buffer, without the lines up to its command."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (when (and (looking-at "-\\*- mode: .*\n.*\n\n")
                 (stringp (car compilation-arguments)))
        (goto-char (match-end 0))
        (when (looking-at (regexp-quote (car compilation-arguments)))
          (goto-char (match-end 0))))
      (buffer-substring-no-properties (point) (point-max)))))

(defun efrit-findings-lines (call findings)
  "Return lines about FINDINGS for CALL, grouped by file."
  (cl-loop with last = nil
           for finding in (efrit-visit-sort call findings #'efrit-finding-file
                                            #'efrit-finding-line #'efrit-finding-column)
           for name = (efrit-visit-name call (efrit-finding-file finding))
           unless (equal name last) collect name
           do (setq last name)
           collect (efrit-findings--line finding)))

(defun efrit-findings-count (findings &optional severities)
  "Return the number of FINDINGS of each severity, or of SEVERITIES, as text."
  (mapconcat (lambda (severity)
               (efrit-count-text (cl-count severity findings :key #'efrit-finding-severity)
                                 severity))
             (or severities '(error warning note)) ", "))

(defun efrit-findings--mark-folders ()
  "Put `efrit-folders', the stack of folders, on lines that enter or leave one."
  (pcase-let ((`(,regexp . ,groups) compilation-directory-matcher))
    (goto-char (point-min))
    (while (and regexp (re-search-forward regexp nil t))
      (pcase-dolist (`(,folder . ,leave) groups)
        (when (match-beginning folder)
          (let ((stack (efrit-findings--before 'efrit-folders)))
            (put-text-property (match-beginning 0) (match-end 0) 'efrit-folders
                               (if (and leave (match-beginning leave))
                                   (or (cdr stack) (list nil))
                                 (cons (match-string folder) stack)))))))))

(defun efrit-findings--before (property)
  "Return the last non-nil value of PROPERTY before the match."
  (when-let* ((change (previous-single-property-change (match-beginning 0) property)))
    (or (get-text-property (1- change) property)
        (get-text-property change property))))

(defun efrit-findings--mark (rule indented source)
  "Put a finding of SOURCE on each match of RULE in this buffer.
RULE is as in `compilation-error-regexp-alist'.  With INDENTED, also match
indented lines, as a compilation buffer does."
  (pcase-let ((`(,regexp ,file ,line ,column ,type ,link) rule))
    (when (and indented
               (string-match-p "\\`\\^" regexp)
               (not (string-match-p "\\`\\^\\(?: \\*\\|\\[\\)" regexp)))
      (setq regexp (concat "^\\(?:      \\)?" (substring regexp 1))))
    (goto-char (point-min))
    (while (and regexp (re-search-forward regexp nil t))
      (unless (text-property-not-all (match-beginning 0) (match-end 0) 'efrit-finding nil)
        (when-let* ((span (or link 0))
                    (name (save-match-data (efrit-findings--file file)))
                    (finding (efrit-finding-create
                              :file name :line (efrit-findings--number line)
                              :column (efrit-findings--number column)
                              :severity (efrit-findings--severity type) :source source
                              :text (efrit-findings--message (match-end span)))))
          (put-text-property (match-beginning span) (match-end span)
                             'efrit-finding finding))))))

(defun efrit-findings--matched (part)
  "Return the match of PART of a rule: a function, a group, or a cons with one."
  (let ((part (if (and (consp part) (not (functionp part))) (car part) part)))
    (cond ((functionp part) (funcall part))
          ((integerp part) (match-string part)))))

(defun efrit-findings--number (part)
  "Return the number matched by PART of a rule, or nil."
  (let ((matched (efrit-findings--matched part)))
    (if (stringp matched) (string-to-number matched) matched)))

(defun efrit-findings--severity (type)
  "Return the severity of a match of a rule; TYPE is the rule's element for it."
  (pcase type
    (`(,warning . ,note) (cond ((and warning (match-beginning warning)) 'warning)
                               ((and note (match-beginning note)) 'note)
                               (t 'error)))
    (1 'warning)
    (0 'note)
    (_ 'error)))

(defun efrit-findings--file (part)
  "Return the whole name of the file matched by PART of a rule, or nil.
If PART matched nothing, return the file of the finding before."
  (pcase (efrit-findings--matched part)
    ((and (pred stringp) name)
     (efrit-findings--whole-name name (car (efrit-findings--before 'efrit-folders))))
    (`(,(and (pred stringp) name) . ,folder)
     (efrit-findings--whole-name name (if (consp folder) (car folder) folder)))
    ('nil (when-let* ((before (efrit-findings--before 'efrit-finding)))
            (efrit-finding-file before)))))

(defun efrit-findings--whole-name (name folder)
  "Return the whole name of the file NAME in FOLDER; nil if an option excludes it."
  (let ((file (expand-file-name (if compilation-parse-errors-filename-function
                                    (funcall compilation-parse-errors-filename-function name)
                                  name)
                                (and folder (expand-file-name folder)))))
    (pcase (seq-find (lambda (entry) (string-match (car entry) file))
                     compilation-transform-file-match-alist)
      ('nil file)
      (`(,_ nil) nil)
      (`(,_ ,replacement) (expand-file-name (replace-match replacement nil nil file))))))

(defun efrit-findings--message (end)
  "Return the rest of a match's line from END on, or if that is blank, the line."
  (save-excursion
    (save-match-data
      (goto-char (match-beginning 0))
      (let* ((line-end (line-end-position))
             (case-fold-search t)
             (text (replace-regexp-in-string
                    "\\`[: \t]*\\(?:\\(?:error\\|warning\\|note\\|info\\):[ \t]*\\)?" ""
                    (buffer-substring (min end line-end) line-end))))
        (if (string-blank-p text)
            (buffer-substring (line-beginning-position) line-end)
          text)))))

(defun efrit-findings--line (finding)
  "Return a line about FINDING, without its file."
  (format "  %s%s %s: %s [%s]"
          (or (efrit-finding-line finding) "?")
          (if (efrit-finding-column finding)
              (format ":%d" (efrit-finding-column finding)) "")
          (efrit-finding-severity finding)
          (truncate-string-to-width
           (replace-regexp-in-string "[ \t]*\n[ \t]*" " "
                                     (efrit-trim (efrit-finding-text finding)))
           500 nil nil "…")
          (efrit-finding-source finding)))

;;; Compiling

;; Runs a compile command as the person would, in a buffer where `next-error'
;; works, but in no window and without a question.  The result has its exit
;; code, its findings and its output.

(defconst efrit-compile--progress-interval 0.25
  "Least seconds between two `output' events of a compilation.")

(defconst efrit-compile--kill-delay 2
  "Seconds between the interrupt of a compilation and its kill.")

(defconst efrit-compile--key-values
  (concat "sk-[[:alnum:]_-]\\{16,\\}\\|[sr]k_\\(?:live\\|test\\)_[[:alnum:]]\\{16,\\}"
          "\\|gh[opsur]_[[:alnum:]]\\{20,\\}\\|github_pat_\\|glpat-[[:alnum:]_-]\\{16,\\}"
          "\\|A[KS]IA[0-9A-Z]\\{16\\}\\|xox[abprs]-[[:alnum:]-]\\{10,\\}\\|AIza[[:alnum:]_-]\\{30,\\}"
          "\\|[[:alnum:]+.-]+://[^/[:space:]:@]*:[^/[:space:]@]+@"
          "\\|eyJ[[:alnum:]_-]\\{10,\\}\\.[[:alnum:]_-]\\{10,\\}\\.[[:alnum:]_-]\\|npm_[[:alnum:]]\\{30,\\}"
          "\\|hf_[[:alnum:]]\\{30,\\}\\|[Bb]earer [[:alnum:]_.~+/-]\\{16,\\}\\|-----BEGIN [A-Z ]*PRIVATE KEY-----"
          "\\|\\(?:[Pp]assword\\|[Pp]wd\\|[Aa]ccount[Kk]ey\\|[Ss]hared[Aa]ccess[Kk]ey\\)=[^[:space:];]\\{4,\\}")
  "Regexp for values of variables that look like keys; the sidecar has the same.")

(defvar-local efrit-compile--output-start 1
  "Position where the output begins, below the header lines of Emacs.")

(efrit-define-tool compile
    ((command "string" "Default: the project's" :optional t)
     (timeout "integer" "Seconds" :optional t :minimum 1 :maximum 86400))
  "Compile the project in a compilation buffer: exit, errors by file, output."
  :async t
  :resolve #'efrit-compile--resolve
  (when (and timeout (not (<= 1 timeout 86400)))
    (user-error "Timeout is 1 to 86400 seconds, not %s" timeout))
  (when (string-blank-p (or command ""))
    (user-error "The project has no compile command; give one"))
  (efrit-compile--start call command (or timeout efrit-compile-seconds)))

(defun efrit-compile-command (root)
  "Return the default command of \\[compile] in the project at ROOT."
  (let ((command
         (efrit-visit-quietly
          (lambda ()
            (with-temp-buffer
              (setq default-directory root)
              (efrit-file-take-variables #'hack-dir-local-variables-non-file-buffer)
              ;; The person may have set `compile-command' to an expression.
              (if (stringp compile-command) compile-command (eval compile-command t)))))))
    (when (string-blank-p command)
      (user-error "The project has no compile command; give one"))
    (string-trim command)))

;;;; Running

(defun efrit-compile--resolve (loop arguments)
  "Return ARGUMENTS with the compile command of LOOP's project if they have none.
So the command that permissions decide about is the one that runs, even if
the project's command changes meanwhile."
  (if (string-blank-p (or (plist-get arguments :command) ""))
      (plist-put arguments :command
                 (efrit-compile-command
                  (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop)))))
    arguments))

(defun efrit-compile--start (call command seconds)
  "Start COMMAND for CALL, to run for at most SECONDS."
  (let* ((root (efrit-visit-root call))
         (began (float-time))
         (unsaved (seq-filter #'buffer-modified-p (efrit-visit-buffers call)))
         (buffer (efrit-compile--begin root command))
         (process (get-buffer-process buffer))
         (timer (efrit-run-at-time seconds nil #'efrit-compile--end process 'late)))
    (setf (efrit-tool-call-stop call)
          (lambda () (efrit-compile--end process 'stopped)))
    (with-current-buffer buffer
      (add-hook 'compilation-filter-hook (efrit-compile--watcher call) nil t)
      (add-hook 'compilation-finish-functions
                (lambda (buffer message)
                  (cancel-timer timer)
                  (efrit-tool-catch-errors call
                    (efrit-tool-finish
                     call (efrit-compile--result
                           call buffer command
                           (efrit-compile--exit-text process message began) unsaved))))
                nil t))))

(defun efrit-compile--begin (root command)
  "Start COMMAND as a compilation in ROOT, in no window; return its buffer."
  (require 'compile)
  (let* ((default-directory root)
         (process-environment
          (append '("TERM=dumb" "PAGER=cat" "GIT_PAGER=cat" "GIT_TERMINAL_PROMPT=0")
                  (seq-remove #'efrit-compile--holds-key-p process-environment)))
         (compilation-auto-jump-to-first-error nil)
         (compilation-scroll-output nil)
         (display-buffer-overriding-action
          '(display-buffer-no-window . ((allow-no-window . t))))
         (name (efrit-compile--buffer-name root))
         (buffer (efrit-remote-unshared #'compilation-start command nil (lambda (_) name))))
    (with-current-buffer buffer
      (setq efrit-compile--output-start (point-max)))
    buffer))

(defun efrit-compile--buffer-name (root)
  "Return the name of a buffer for a compilation in ROOT.
Do not reuse a buffer with a running process, or of another project."
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

(defun efrit-compile--holds-key-p (variable)
  "Return non-nil if VARIABLE, such as \"NAME=value\", probably has a key in it.
The password of a proxy does not count: commands need it for the network."
  (let ((name (upcase (car (split-string variable "="))))
        (case-fold-search nil))
    (or (seq-some (lambda (regexp) (string-match-p regexp name)) efrit-compile-hidden-variables)
        (and (not (string-suffix-p "_PROXY" name))
             (string-match-p efrit-compile--key-values variable)))))

(defun efrit-compile--watcher (call)
  "Return a function for `compilation-filter-hook' of the compilation of CALL.
That function ends a compilation that prints too much, and notifies the
observers of the loop of the latest output."
  (let ((notified 0))
    (lambda ()
      (when (> (buffer-size) efrit-compile-most-characters)
        (efrit-compile--end (get-buffer-process (current-buffer)) 'long))
      (when (> (- (float-time) notified) efrit-compile--progress-interval)
        (setq notified (float-time))
        (efrit-loop-notify (efrit-tool-call-owner call) 'output (efrit-tool-call-id call)
                           (buffer-substring-no-properties
                            (max efrit-compile--output-start (- (point-max) 2000))
                            (point-max)))))))

(defun efrit-compile--end (process why)
  "Interrupt PROCESS, a compilation, for the reason WHY, and later kill it."
  (when (and (process-live-p process) (not (process-get process 'efrit-why)))
    (process-put process 'efrit-why why)
    (interrupt-process process)
    (efrit-run-at-time efrit-compile--kill-delay nil #'efrit-compile--kill process)))

(defun efrit-compile--kill (process)
  "Kill PROCESS, a compilation, and its children, if it is still running."
  (when (process-live-p process)
    (when (and (process-id process) (not (file-remote-p default-directory)))
      ;; A negative process id means the process group.
      (signal-process (- (process-id process)) 'SIGKILL))
    (delete-process process)))

;;;; Reporting

(defun efrit-compile--exit-text (process message began)
  "Return (STATUS TEXT) about the end of PROCESS, a compilation.
PROCESS began at the time BEGAN; `compilation-finish-functions' got MESSAGE."
  (let ((seconds (format "%.1f s" (- (float-time) began))))
    (pcase (process-get process 'efrit-why)
      ('late (list 'error (format "ended after %s, its limit; give a longer timeout" seconds)))
      ('long (list 'error (format "ended after %d characters of output"
                                  efrit-compile-most-characters)))
      ('stopped (list 'error (format "stopped by the person after %s" seconds)))
      (_ (list 'success
               (if (eq (process-status process) 'exit)
                   (format "exit %d after %s" (process-exit-status process) seconds)
                 (format "%s after %s" (efrit-trim message) seconds)))))))

(defun efrit-compile--result (call buffer command exit unsaved)
  "Return the result for CALL of the compilation by COMMAND in BUFFER.
EXIT is the value of `efrit-compile--exit-text'; UNSAVED lists the buffers
that were unsaved when it began."
  (let* ((findings (efrit-findings-of-compilation buffer))
         (heading (format "%s: %s; %s" (efrit-visit-one-line command) (cadr exit)
                          (efrit-findings-count findings)))
         (lines (efrit-findings-lines call findings)))
    (efrit-tool-result
     (string-join
      `(,(efrit-tool-mark-own heading)
        ,@(and unsaved
               (list (concat (efrit-tool-mark-own "Not saved, so compiled as on disk: ")
                             (mapconcat (lambda (buffer)
                                          (efrit-visit-name call (buffer-file-name buffer)))
                                        (seq-filter #'buffer-live-p unsaved) ", "))))
        ,@lines
        ,(efrit-tool-mark-own (format "Output, in %s:" (buffer-name buffer)))
        ,(efrit-compile--output buffer))
      "\n")
     :status (car exit)
     :summary (string-join (cons heading (seq-take lines 3)) "\n")
     :gist (replace-regexp-in-string " after .*" "" (cadr exit)))))

(defun efrit-compile--output (buffer)
  "Return the output of the compilation in BUFFER."
  (require 'ansi-color)
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        ;; Leave out the last lines, which Emacs adds.
        (let ((begin (min (point-max) efrit-compile--output-start))
              (end (progn (goto-char (point-max))
                          (if (re-search-backward "\n\nCompilation [^\n]+ at [^\n]+\n*\\'"
                                                  nil t)
                              (point)
                            (point-max)))))
          (ansi-color-filter-apply
           (efrit-trim (buffer-substring-no-properties (min begin end) end) "\n")))))))

;;; Diagnostics

;; Collects findings of Flymake, Flycheck and compilations.  In a file without
;; a running checker, Flymake is started temporarily, with backends that only
;; read the file: other backends may run code of the project.

(cl-defstruct (efrit-diagnostics--inquiry (:constructor efrit-diagnostics--inquiry-create)
                                          (:copier nil))
  "A buffer that is being checked: VISIT, from `efrit-visit-open'.
STARTED is non-nil if Flymake was started for the inquiry.  FUNCTIONS is a list
of one item, the local value of `flymake-diagnostic-functions' before, or nil
if there was none.  LEFT-OUT lists backends that were not started."
  visit started functions left-out)

(declare-function flycheck-buffer "flycheck")
(declare-function flycheck-running-p "flycheck")
(declare-function flycheck-error-filename "flycheck")
(declare-function flycheck-error-line "flycheck")
(declare-function flycheck-error-column "flycheck")
(declare-function flycheck-error-level "flycheck")
(declare-function flycheck-error-checker "flycheck")
(declare-function flycheck-error-message "flycheck")
(defvar flycheck-current-errors)

(efrit-define-tool get_diagnostics
    ((path "string" "Default: all open files, compilations" :optional t)
     (severity (:type "string" :enum ["error" "warning" "note"]) "The least; default note"
               :optional t))
  "Errors and warnings from Flymake, Flycheck and compilation buffers, by file."
  :policy allow
  :async t
  (unless (member severity '(nil "error" "warning" "note"))
    (user-error "Severity is error, warning or note, not %s" severity))
  (let* ((file (and path (efrit-visit-existing-file call path)))
         (inquiries (efrit-diagnostics--begin call file)))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (mapc #'efrit-diagnostics--release inquiries)
            (efrit-tool-fail call "The person stopped it.")))
    (efrit-diagnostics--wait
     call inquiries
     (lambda ()
       (efrit-diagnostics--result call inquiries (intern (or severity "note")) file)))))

;;;; Checking

(defun efrit-diagnostics--begin (call file)
  "Start checking FILE, or if it is nil the open files of the project of CALL.
Return a list of inquiries."
  (require 'flymake)
  (if file
      (list (efrit-diagnostics--check (efrit-visit-open file)))
    (cl-loop for buffer in (efrit-visit-buffers call)
             when (or (buffer-local-value 'flymake-mode buffer)
                      (efrit-diagnostics--flycheck-p buffer))
             collect (efrit-diagnostics--check (cons buffer nil)))))

(defun efrit-diagnostics--flycheck-p (buffer)
  "Return non-nil if Flycheck is on in BUFFER."
  (and (boundp 'flycheck-mode) (buffer-local-value 'flycheck-mode buffer)))

(defun efrit-diagnostics--check (visit)
  "Start checking the buffer of VISIT, from `efrit-visit-open'; return an inquiry."
  (with-current-buffer (car visit)
    (let ((inquiry (efrit-diagnostics--inquiry-create :visit visit)))
      (cond ((cdr visit) (efrit-diagnostics--start inquiry))
            ((efrit-diagnostics--flycheck-p (current-buffer)) (flycheck-buffer))
            (flymake-mode (flymake-start))
            (t (efrit-diagnostics--start inquiry)))
      inquiry)))

(defun efrit-diagnostics--start (inquiry)
  "Start Flymake for INQUIRY in this buffer, with backends that only read."
  (let* ((all (efrit-diagnostics--backends))
         (safe (seq-intersection all efrit-diagnostics-backends)))
    (setf (efrit-diagnostics--inquiry-left-out inquiry) (seq-difference all safe))
    (when safe
      (setf (efrit-diagnostics--inquiry-started inquiry) t
            (efrit-diagnostics--inquiry-functions inquiry)
            (and (local-variable-p 'flymake-diagnostic-functions)
                 (list flymake-diagnostic-functions)))
      (setq-local flymake-diagnostic-functions safe)
      (let ((flymake-start-on-flymake-mode nil))
        (flymake-mode 1))
      (flymake-start))))

(defun efrit-diagnostics--backends ()
  "Return the backends of Flymake for this buffer, but for the legacy one."
  ;; The legacy backend runs make.  It is in every buffer, and seldom works.
  (seq-difference
   (seq-uniq (append flymake-diagnostic-functions
                     (and (memq t flymake-diagnostic-functions)
                          (default-value 'flymake-diagnostic-functions))))
   '(t flymake-proc-legacy-flymake)))

(defun efrit-diagnostics--release (inquiry)
  "Restore the buffer of INQUIRY, or kill it if INQUIRY opened it."
  (pcase-let* ((visit (efrit-diagnostics--inquiry-visit inquiry))
               (`(,buffer . ,opened) visit))
    (efrit-with-live-buffer buffer
      (cond (opened (efrit-visit-release visit))
            ((efrit-diagnostics--inquiry-started inquiry)
             (flymake-mode -1)
             (if (efrit-diagnostics--inquiry-functions inquiry)
                 (setq-local flymake-diagnostic-functions
                             (car (efrit-diagnostics--inquiry-functions inquiry)))
               (kill-local-variable 'flymake-diagnostic-functions)))))))

(defun efrit-diagnostics--unreported (inquiry)
  "Return the names of the checkers that have not reported for INQUIRY."
  (efrit-with-live-buffer (car (efrit-diagnostics--inquiry-visit inquiry))
    (append
     (and flymake-mode
          (mapcar #'symbol-name (seq-difference (flymake-running-backends)
                                                (flymake-reporting-backends))))
     (and (efrit-diagnostics--flycheck-p (current-buffer))
          (fboundp 'flycheck-running-p)
          (flycheck-running-p)
          (list "flycheck")))))

(defun efrit-diagnostics--wait (call inquiries result &optional until)
  "Finish CALL when all INQUIRIES have reported, with the value of RESULT.
RESULT is a function.  UNTIL is the latest time, by default
`efrit-diagnostics-seconds' from now."
  (when (efrit-tool-call-finish call)
    (efrit-tool-catch-errors call
      (let ((until (or until (+ (float-time) efrit-diagnostics-seconds))))
        (if (and (< (float-time) until) (seq-some #'efrit-diagnostics--unreported inquiries))
            (efrit-run-at-time 0.1 nil #'efrit-diagnostics--wait call inquiries result until)
          (let ((result (unwind-protect
                            (funcall result)
                          (mapc #'efrit-diagnostics--release inquiries))))
            (efrit-tool-finish call result)))))))

;;;; After an edit

(defconst efrit-diagnostics--most-edited 10
  "Most files that are checked after an edit.")

(defun efrit-diagnostics--after-edit (call result)
  "Finish CALL, an edit, with RESULT and the diagnostics of the files changed.
Return nil if these are not wanted, or no file has a checker."
  (when-let* ((efrit-edit-diagnostics)
              (files (efrit-diagnostics--edited call))
              (inquiries (efrit-diagnostics--begin-edited files)))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (mapc #'efrit-diagnostics--release inquiries)
            (efrit-tool-finish call result)))
    (efrit-diagnostics--wait
     call inquiries
     (lambda ()
       (let* ((severities '(error warning))
              (found (seq-filter (lambda (finding)
                                   (memq (efrit-finding-severity finding) severities))
                                 (mapcan #'efrit-diagnostics--of-inquiry inquiries))))
         (plist-put (copy-sequence result) :text
                    (string-join
                     (append (list (plist-get result :text)
                                   (efrit-tool-mark-own
                                    (format "After it: %s from %s"
                                            (efrit-findings-count found severities)
                                            (efrit-diagnostics--sources inquiries nil))))
                             (mapcar #'efrit-tool-mark-own
                                     (mapcan #'efrit-diagnostics--notes inquiries))
                             (efrit-findings-lines call found))
                     "\n")))))
    t))

(add-hook 'efrit-plan-finish-functions #'efrit-diagnostics--after-edit)

(defun efrit-diagnostics--edited (call)
  "Return the files that CALL wrote, as names in Emacs; at most a few."
  (seq-take (cl-loop for change in (efrit-plan-changes (efrit-tool-call-plan call))
                     when (memq (efrit-change-kind change) '(edit create))
                     collect (efrit-change-file change))
            efrit-diagnostics--most-edited))

(defun efrit-diagnostics--begin-edited (files)
  "Start checking FILES; return inquiries about those that have a checker."
  (require 'flymake)
  (cl-loop for file in files
           for inquiry = (ignore-errors (efrit-diagnostics--check (efrit-visit-open file)))
           if (and inquiry (efrit-diagnostics--checked-p inquiry))
           collect inquiry
           else if inquiry
           do (efrit-diagnostics--release inquiry)))

(defun efrit-diagnostics--checked-p (inquiry)
  "Return non-nil if the buffer of INQUIRY has a checker."
  (let ((buffer (car (efrit-diagnostics--inquiry-visit inquiry))))
    (or (efrit-diagnostics--inquiry-started inquiry)
        (buffer-local-value 'flymake-mode buffer)
        (efrit-diagnostics--flycheck-p buffer))))

;;;; Collecting

(defun efrit-diagnostics--result (call inquiries severity file)
  "Return the result for CALL of INQUIRIES, with findings of SEVERITY or worse.
If FILE is non-nil, leave out findings about other files."
  (let* ((compilations (efrit-diagnostics--compilations call))
         (found (seq-filter
                 (lambda (finding)
                   (and (memq severity (memq (efrit-finding-severity finding)
                                             '(error warning note)))
                        (efrit-diagnostics--relevant-p call finding file)))
                 (append (mapcan #'efrit-diagnostics--of-inquiry inquiries)
                         (efrit-diagnostics--project-findings)
                         (mapcan #'efrit-findings-of-compilation compilations))))
         (heading (concat (efrit-findings-count (delete-dups (copy-sequence found))) " from "
                          (efrit-diagnostics--sources inquiries compilations))))
    (efrit-tool-result
     (string-join (append (list (efrit-tool-mark-own heading))
                          (mapcar #'efrit-tool-mark-own
                                  (mapcan #'efrit-diagnostics--notes inquiries))
                          (efrit-findings-lines call found))
                  "\n")
     :summary heading
     :gist (efrit-findings-count found))))

(defun efrit-diagnostics--relevant-p (call finding file)
  "Return non-nil if FINDING is about FILE, or if FILE is nil, CALL's project."
  (let ((its (efrit-finding-file finding)))
    (if file
        (and (equal (file-remote-p its) (file-remote-p file))
             (string= (file-truename its) file))
      (efrit-visit-inside-p call its))))

(defun efrit-diagnostics--of-inquiry (inquiry)
  "Return the findings of INQUIRY."
  (efrit-with-live-buffer (car (efrit-diagnostics--inquiry-visit inquiry))
    (save-restriction
      (widen)
      (append (and flymake-mode (mapcar #'efrit-diagnostics--of-flymake
                                        (flymake-diagnostics)))
              (and (efrit-diagnostics--flycheck-p (current-buffer))
                   (efrit-diagnostics--of-flycheck))))))

(defun efrit-diagnostics--of-flymake (diagnostic)
  "Return the finding for DIAGNOSTIC, of Flymake, in this buffer."
  (save-excursion
    (goto-char (flymake-diagnostic-beg diagnostic))
    (efrit-diagnostics--finding diagnostic (buffer-file-name) (line-number-at-pos nil t)
                                (1+ (- (point) (line-beginning-position))))))

(defun efrit-diagnostics--finding (diagnostic file line column)
  "Return the finding for DIAGNOSTIC, of Flymake, at LINE and COLUMN of FILE."
  (efrit-finding-create
   :file file :line line :column column
   :severity (efrit-diagnostics--flymake-severity (flymake-diagnostic-type diagnostic))
   :source (format "%s" (or (flymake-diagnostic-backend diagnostic) 'flymake))
   :text (flymake-diagnostic-text diagnostic)))

(defun efrit-diagnostics--flymake-severity (type)
  "Return the severity, a symbol, of TYPE, a diagnostic type of Flymake."
  (let ((level (or (get type 'severity)
                   (get (get type 'flymake-category) 'severity)
                   (warning-numeric-level :error))))
    (cond ((>= level (warning-numeric-level :error)) 'error)
          ((>= level (warning-numeric-level :warning)) 'warning)
          (t 'note))))

(defun efrit-diagnostics--project-findings ()
  "Return the findings of Flymake about files that are not open."
  (cl-loop for (file . diagnostics) in flymake-list-only-diagnostics
           append (cl-loop for diagnostic in diagnostics
                           for begin = (flymake-diagnostic-beg diagnostic)
                           for (line . column) = (if (consp begin) begin (list begin))
                           collect (efrit-diagnostics--finding diagnostic file line column))))

(defun efrit-diagnostics--of-flycheck ()
  "Return the findings of Flycheck in this buffer."
  (mapcar (lambda (err)
            (efrit-finding-create
             :file (expand-file-name (or (flycheck-error-filename err) (buffer-file-name)))
             :line (flycheck-error-line err)
             :column (flycheck-error-column err)
             :severity (pcase (flycheck-error-level err)
                         ('error 'error) ('warning 'warning) (_ 'note))
             :source (symbol-name (flycheck-error-checker err))
             :text (or (flycheck-error-message err) "")))
          flycheck-current-errors))

(defun efrit-diagnostics--compilations (call)
  "Return the compilation buffers of the project of CALL, sorted by name."
  (seq-filter (lambda (buffer)
                (with-current-buffer buffer
                  (and (or (derived-mode-p 'compilation-mode)
                           (bound-and-true-p compilation-minor-mode)
                           (bound-and-true-p compilation-shell-minor-mode))
                       (not (derived-mode-p 'grep-mode))
                       (efrit-visit-inside-p call default-directory))))
              (seq-sort-by #'buffer-name #'string< (buffer-list))))

;;;; Reporting

(defun efrit-diagnostics--sources (inquiries compilations)
  "Return the number of INQUIRIES and the names of COMPILATIONS, as text."
  (or (and (or inquiries compilations)
           (string-join
            (append (and inquiries
                         (list (efrit-count-text (length inquiries) "checked file")))
                    (mapcar (lambda (buffer)
                              (concat (buffer-name buffer)
                                      (if (process-live-p (get-buffer-process buffer))
                                          " (running)" "")))
                            compilations))
            ", "))
      "no source: no open file of the project has a checker, and nothing was compiled"))

(defun efrit-diagnostics--notes (inquiry)
  "Return a list of lines about checkers that did not contribute to INQUIRY."
  (let* ((buffer (car (efrit-diagnostics--inquiry-visit inquiry)))
         (name (buffer-name buffer))
         (late (efrit-diagnostics--unreported inquiry))
         (left-out (efrit-diagnostics--inquiry-left-out inquiry))
         (disabled (with-current-buffer buffer
                     (and flymake-mode (remq 'flymake-proc-legacy-flymake
                                             (flymake-disabled-backends))))))
    (delq nil
          (list (and late (format "%s: no report within %s seconds from %s" name
                                  efrit-diagnostics-seconds (string-join late ", ")))
                (and disabled (format "%s: failed: %s" name
                                      (mapconcat #'symbol-name disabled ", ")))
                (and left-out (format "%s: not started, as they may run the project's code: %s"
                                      name (mapconcat (lambda (backend) (format "%s" backend))
                                                      left-out ", ")))
                (and (not left-out) (not (efrit-diagnostics--checked-p inquiry))
                     (format "%s: Emacs has no checker for %s" name
                             (buffer-local-value 'major-mode buffer)))))))

;;; Language servers

;; Asks the language servers that Eglot runs, by its public functions, and
;; applies their edits to texts.

(declare-function jsonrpc-async-request "jsonrpc")
(declare-function slot-value "eieio" (object slot))
(declare-function eglot-managed-p "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-server-capable "eglot")
(declare-function eglot-path-to-uri "eglot")

(defun efrit-language-server-can-p (capability)
  "Return non-nil if a language server with CAPABILITY manages this buffer."
  (when-let* ((server (efrit-language-server--current)))
    (if (fboundp 'eglot-server-capable)
        (eglot-server-capable capability)
      ;; An Eglot installed in Emacs 28 may have no public function for this.
      (let ((found (plist-member (slot-value server 'capabilities) capability)))
        (and found (not (eq (cadr found) :json-false)))))))

(defun efrit-language-server-ask (buffer method params then refused)
  "Send the request METHOD to the language server of BUFFER.
PARAMS is a function that returns, in BUFFER, what goes with its document.  Call
THEN with BUFFER's text at that time, the reply, and a function that goes to a
column as the server counts columns; or call REFUSED with the reason."
  ;; The Eglot of Emacs 30 notices changes in a timer that runs before this one.
  (efrit-run-at-time
   0 nil (lambda ()
           (condition-case err
               (with-current-buffer buffer
                 (efrit-language-server--request method (funcall params) then refused))
             (error
              (funcall refused (format "the language server could not be asked: %s"
                                       (error-message-string err))))))))

(defun efrit-language-server--current ()
  "Return the language server that manages this buffer, or nil."
  (and (fboundp 'eglot-managed-p)
       (fboundp 'eglot-current-server)
       (eglot-managed-p)
       (eglot-current-server)))

(defun efrit-language-server--request (method params then refused)
  "Send METHOD with PARAMS about this buffer; then call THEN or REFUSED.
Eglot delays a deferred request until it has sent the latest changes."
  (let ((text (efrit-file-text (current-buffer)))
        (move (efrit-language-server--column-function)))
    (jsonrpc-async-request
     (efrit-language-server--current) method
     (append (list :textDocument (list :uri (efrit-language-server--uri))) params)
     :deferred 'efrit-language-server
     :success-fn (lambda (reply) (funcall then text reply move))
     :error-fn (lambda (err)
                 (funcall refused (format "the language server refused: %s"
                                          (plist-get err :message))))
     :timeout efrit-format-seconds
     :timeout-fn (lambda ()
                   (funcall refused (format "the language server did not answer within %s \
seconds" efrit-format-seconds))))))

(defun efrit-language-server--uri ()
  "Return the URI of the file of this buffer, as Eglot sends it."
  (if (fboundp 'eglot-path-to-uri)
      (eglot-path-to-uri buffer-file-name)
    ;; Before Emacs 30 Eglot has no public function for this.
    (require 'url-util)
    (let ((allowed (copy-sequence url-path-allowed-chars)))
      (aset allowed ?: nil)
      (concat (if (eq system-type 'windows-nt) "file:///" "file://")
              (url-hexify-string (file-local-name (file-truename buffer-file-name))
                                 allowed)))))

(defun efrit-language-server--file (uri)
  "Return the name of the file of URI on the server's machine; signal for no file."
  (require 'url-util)
  (if (string-match "\\`file://[^/]*\\(/.*\\)\\'" uri)
      (let ((name (decode-coding-string (url-unhex-string (match-string 1 uri)) 'utf-8)))
        (if (string-match-p "\\`/[A-Za-z]:" name) (substring name 1) name))
    (efrit-plan-refuse "the language server would change %s, which is no file" uri)))

;;;; Columns and edits

(defun efrit-language-server--column-function ()
  "Return a function to go to a column as this buffer's server counts columns."
  (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                '(eglot-move-to-linepos-function eglot-move-to-column-function))
      #'move-to-column))

(defun efrit-language-server--position ()
  "Return the position of point as this buffer's server counts columns."
  (let ((column (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                              '(eglot-current-linepos-function eglot-current-column-function))
                    #'current-column)))
    (list :line (1- (line-number-at-pos nil t)) :character (funcall column))))

(defun efrit-language-server-apply (text edits move)
  "Return TEXT with EDITS of a language server applied.
MOVE is a function that goes to a column, see `efrit-language-server-ask'."
  (with-temp-buffer
    (insert text)
    (let ((places (cl-loop for edit across (or edits [])
                           for number from 0
                           collect (list (efrit-language-server--go edit :start move)
                                         number
                                         (efrit-language-server--go edit :end move)
                                         (plist-get edit :newText)))))
      ;; Edit from the end backwards, so that the remaining positions stay valid.
      (pcase-dolist (`(,begin ,_ ,end ,new)
                     (sort places (lambda (a b)
                                    (or (> (car a) (car b))
                                        (and (= (car a) (car b)) (> (cadr a) (cadr b)))))))
        (delete-region begin end)
        (goto-char begin)
        (insert (if (string-search "\r" text) new (string-replace "\r\n" "\n" new)))))
    (buffer-string)))

(defun efrit-language-server--go (edit which move)
  "Go to the position WHICH, `:start' or `:end', of EDIT, and return it.
MOVE is as in `efrit-language-server-apply'."
  (let ((place (plist-get (plist-get edit :range) which)))
    (goto-char (point-min))
    (forward-line (plist-get place :line))
    (unless (eobp)
      (funcall move (plist-get place :character)))
    (point)))

;;; Renaming

;; The server says what it would edit; that makes one plan of all files, which
;; the person sees as one diff, and which is undone as one.

(efrit-define-tool rename_symbol
    ((path "string" "")
     (symbol "string" "")
     (new_name "string" "")
     (line "integer" "" :optional t :minimum 1))
  "Rename a symbol in all files, by its language server."
  :plan #'efrit-rename--plan
  (efrit-plan-carry-out call))

(defun efrit-rename--plan (loop given then refused)
  "Plan in LOOP to rename the symbol in GIVEN, the arguments.
Call THEN with the plan, or REFUSED with the reason."
  (condition-case err
      (let* ((visit (efrit-rename--visit loop given))
             (refused (lambda (reason)
                        (efrit-visit-release visit)
                        (funcall refused reason))))
        (efrit-language-server-ask
         (car visit) :textDocument/rename
         (lambda ()
           (list :position (efrit-rename--position given)
                 :newName (plist-get given :new_name)))
         (lambda (_text reply move)
           (efrit-visit-release visit)
           (efrit-rename--plan-reply loop given reply move then refused))
         refused))
    (efrit-plan-refused (funcall refused (cadr err)))
    (error (funcall refused (error-message-string err)))))

(defun efrit-rename--visit (loop given)
  "Return (BUFFER . OPENED) for the file in GIVEN, see `efrit-visit-open'.
Refuse a file in LOOP whose language server cannot rename."
  (let* ((path (plist-get given :path))
         (call (efrit-tool-call-create :owner loop))
         (visit (efrit-rename--open call (efrit-visit-existing-file call path))))
    (unless (with-current-buffer (car visit)
              (efrit-language-server-can-p :renameProvider))
      (efrit-visit-release visit)
      (efrit-plan-refuse "no language server that renames runs for %s; the person can start one \
with M-x eglot.  Without it, find_references and multi_edit rename" path))
    visit))

(defun efrit-rename--open (call file)
  "Return (BUFFER . OPENED) for FILE in CALL's project, see `efrit-visit-open'.
Eglot manages a buffer just opened if it manages others of the project."
  (require 'project)
  ;; A file is opened without version control, by which Emacs finds the project.
  (let* ((others (efrit-visit-buffers call))
         (managed (seq-find (lambda (buffer)
                              (with-current-buffer buffer (efrit-language-server--current)))
                            others))
         (project (and managed (with-current-buffer managed (project-current))))
         (project-find-functions (if project (list (lambda (_) project))
                                   project-find-functions)))
    (efrit-visit-open file)))

(defun efrit-rename--position (given)
  "Return the position in this buffer of the symbol in GIVEN, for the server."
  (let ((symbol (plist-get given :symbol))
        (line (plist-get given :line)))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        (when line
          (forward-line (1- line)))
        (let ((case-fold-search nil))
          (unless (re-search-forward (format "\\_<%s\\_>" (regexp-quote symbol))
                                     (and line (line-end-position)) t)
            (error "%s is not in %s of %s" symbol
                   (if line (format "line %d" line) "the text") (plist-get given :path))))
        (goto-char (match-beginning 0))
        (efrit-language-server--position)))))

(defun efrit-rename--plan-reply (loop given reply move then refused)
  "Make the plan of GIVEN in LOOP from REPLY, a server's edits of many files.
MOVE is as in `efrit-language-server-apply'.  Call THEN with the plan, or
REFUSED with the reason."
  (condition-case err
      (let ((edits (efrit-rename--edits loop reply)))
        (unless edits
          (efrit-plan-refuse "the language server finds nothing to rename there"))
        (efrit-plan-for-files
         loop (mapcar #'car edits)
         (lambda (files) (efrit-rename--plan-of given edits files move))
         then refused))
    (efrit-plan-refused (funcall refused (cadr err)))
    (error (funcall refused (error-message-string err)))))

(defun efrit-rename--plan-of (given edits files move)
  "Return the plan of GIVEN; EDITS is an alist from paths to vectors of edits.
FILES are the reports on the paths; MOVE is as in `efrit-language-server-apply'."
  (let ((changes (cl-loop for (path . those) in edits
                          for change = (progn (efrit-edit-existing path files)
                                              (efrit-plan-change 'edit path files))
                          do (setf (efrit-change-after change)
                                   (efrit-language-server-apply (efrit-change-before change)
                                                                those move))
                          collect change)))
    (efrit-plan-create
     :changes changes
     :report (format "Renamed %s to %s, by the language server, in %s: %s."
                     (plist-get given :symbol) (plist-get given :new_name)
                     (efrit-count-text (length edits) "file")
                     (mapconcat (lambda (those)
                                  (format "%s (%s)" (car those)
                                          (efrit-count-text (length (cdr those)) "place")))
                                edits ", ")))))

(defun efrit-rename--edits (loop reply)
  "Return an alist from paths in LOOP to vectors of edits, from REPLY of a server.
Refuse a reply that would also create, rename or delete files."
  (let* ((edits nil)
         (note (lambda (uri those)
                 (push (cons (efrit-rename--path loop uri) those) edits))))
    (cl-loop for (key those) on (plist-get reply :changes) by #'cddr
             do (funcall note (substring (symbol-name key) 1) those))
    (seq-doseq (change (or (plist-get reply :documentChanges) []))
      (when (plist-get change :kind)
        (efrit-plan-refuse "the language server would also %s a file; rename without it"
                           (plist-get change :kind)))
      (funcall note (plist-get (plist-get change :textDocument) :uri) (plist-get change :edits)))
    (cl-loop for (path . lists) in (seq-group-by #'car edits)
             for those = (apply #'vconcat (mapcar #'cdr lists))
             unless (seq-empty-p those)
             collect (cons path those) into found
             finally return (sort found (lambda (a b) (string< (car a) (car b)))))))

(defun efrit-rename--path (loop uri)
  "Return the path of the file of URI, relative if it is in the project of LOOP."
  (let* ((root (efrit-loop-root loop))
         (file (concat (file-remote-p root) (efrit-language-server--file uri)))
         (call (efrit-tool-call-create :owner loop)))
    (if (efrit-visit-inside-p call file)
        (file-relative-name (file-truename file) (efrit-visit-root call))
      (file-local-name file))))

;;; Formatting

;; Formatting makes a plan as an edit does: the person sees the diff first, and
;; can undo the change.  A language server is asked asynchronously; a mode
;; formats a copy of the buffer.

(efrit-define-tool format_buffer
    ((path "string" ""))
  "Format a file by its language server, or as its mode does."
  :plan #'efrit-format--plan
  (efrit-plan-carry-out call))

;;;; Planning

(defun efrit-format--plan (loop given then refused)
  "Plan in LOOP to format the file in GIVEN, the arguments.
Call THEN with the plan, or REFUSED with the reason."
  (let ((buffer (efrit-format--server-buffer loop (plist-get given :path)))
        (plan (lambda (edits)
                (funcall (efrit-plan-of-files
                          (lambda (arguments files)
                            (efrit-format--plan-of arguments files edits)))
                         loop given then refused))))
    (if buffer
        (efrit-format--ask-server buffer plan refused)
      (funcall plan nil))))

(defun efrit-format--plan-of (arguments files edits)
  "Return the plan to format the file in ARGUMENTS; FILES is the sidecar's report.
EDITS is nil, or a language server's: (TEXT . FUNCTION), where FUNCTION
returns TEXT formatted."
  (let* ((path (plist-get arguments :path))
         (change (progn
                   (efrit-edit-existing path files)
                   (efrit-plan-change 'edit path files))))
    (pcase-let* ((before (efrit-change-before change))
                 (`(,formatter . ,after)
                  (cond ((null edits) (efrit-format--by-mode change))
                        ((string= before (car edits))
                         (cons "its language server" (funcall (cdr edits) before)))
                        (t (efrit-plan-refuse "%s was changed while its language server \
formatted it; try again" path)))))
      (when (string= before after)
        (efrit-plan-refuse "%s is already formatted as %s does it" path formatter))
      (setf (efrit-change-after change) after)
      (efrit-plan-create :changes (list change)
                         :report (format "Formatted %s by %s." path formatter)))))

;;;; Language servers

(defun efrit-format--server-buffer (loop path)
  "Return the buffer of PATH in LOOP's project if a language server can format it."
  (let* ((call (efrit-tool-call-create :owner loop))
         (file (and (stringp path) (ignore-errors (efrit-visit-file-inside call path))))
         (buffer (and file (find-buffer-visiting file))))
    (and buffer
         (with-current-buffer buffer
           (efrit-language-server-can-p :documentFormattingProvider))
         buffer)))

(defun efrit-format--ask-server (buffer then refused)
  "Ask the language server of BUFFER to format BUFFER.
Call THEN with (TEXT . FUNCTION), where FUNCTION returns TEXT formatted, or
REFUSED with the reason."
  (efrit-language-server-ask
   buffer :textDocument/formatting
   (lambda ()
     (list :options (list :tabSize tab-width
                          :insertSpaces (if indent-tabs-mode :json-false t))))
   (lambda (text edits move)
     (funcall then (cons text (lambda (text) (efrit-language-server-apply text edits move)))))
   refused))

;;;; Modes

(defun efrit-format--by-mode (change)
  "Return (FORMATTER . TEXT): the formatter's name, and CHANGE's file formatted.
If no buffer visits the file, take its mode in a temporary buffer."
  (if-let* ((buffer (efrit-change-buffer change)))
      (with-current-buffer buffer
        (efrit-format--as-here change))
    (with-temp-buffer
      (insert (efrit-change-before change))
      (setq default-directory (file-name-directory (efrit-change-file change)))
      (let ((buffer-file-name (efrit-change-file change)))
        (efrit-file-quietly
          (delay-mode-hooks (set-auto-mode)))
        (efrit-file-take-variables (lambda () (hack-local-variables 'no-mode))))
      (efrit-format--as-here change))))

(defun efrit-format--as-here (change)
  "Return (FORMATTER . TEXT): CHANGE's file formatted as this buffer's mode does."
  (let ((formatter (efrit-format--formatter))
        (text (efrit-change-before change)))
    (unless formatter
      (efrit-plan-refuse "Emacs has no formatter for %s in %s; see `efrit-format-functions'"
                         (efrit-change-path change) major-mode))
    (when (> (length text) efrit-format-most-characters)
      (efrit-plan-refuse "%s is too long for Emacs to format it; use a command"
                         (efrit-change-path change)))
    (cons (format "%s" formatter)
          (efrit-format--format-copy (efrit-change-file change) text formatter))))

(defun efrit-format--formatter ()
  "Return the function that formats this buffer, or nil."
  (or (seq-some (lambda (entry)
                  (and (derived-mode-p (car entry)) (fboundp (cdr entry)) (cdr entry)))
                efrit-format-functions)
      (and (derived-mode-p 'prog-mode)
           (not (apply #'derived-mode-p efrit-format-meaningful-indentation))
           (not (memq indent-line-function '(indent-relative indent-relative-first-indent-point)))
           'indent-region)))

(defun efrit-format--format-copy (file text formatter)
  "Return TEXT, of FILE, formatted by FORMATTER in a temporary buffer.
Mode, folder and indentation are those of this buffer."
  (let ((variables (efrit-format--variables (current-buffer)))
        (mode major-mode)
        (folder default-directory)
        (create-lockfiles nil)
        (inhibit-interaction t)
        (inhibit-message t))
    (with-temp-buffer
      (delay-mode-hooks (funcall mode))
      (setq default-directory folder)
      (pcase-dolist (`(,variable . ,value) variables)
        (set (make-local-variable variable) value))
      (insert text)
      (unwind-protect
          (progn
            (setq buffer-file-name file)
            (if (eq formatter 'indent-region)
                (indent-region (point-min) (point-max))
              (funcall formatter)))
        (setq buffer-file-name nil))
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun efrit-format--variables (buffer)
  "Return the local variables of BUFFER about indentation, an alist."
  (seq-filter (lambda (entry)
                (and (consp entry)
                     (string-match-p "tab-width\\|tabs\\|offset\\|indent"
                                     (symbol-name (car entry)))
                     (or (numberp (cdr entry)) (memq (cdr entry) '(t nil)))))
              (buffer-local-variables buffer)))

(provide 'efrit-tools-build)
;;; efrit-tools-build.el ends here
