;;; efrit-tools-build.el --- Tools for compiling, diagnostics and formatting  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that compile a project, collect the findings of checkers, and format
;; files.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-edit)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'efrit-tools-buffers)
(require 'seq)
(require 'subr-x)

;; Those of libraries that are loaded where they are used.
(defvar compilation-arguments)
(defvar compilation-error-regexp-alist)
(defvar compilation-error-regexp-alist-alist)
(defvar compilation-error-case-fold-search)
(defvar compilation-directory-matcher)
(defvar compilation-transform-file-match-alist)
(defvar compilation-parse-errors-filename-function)
(defvar compilation-auto-jump-to-first-error)
(defvar compilation-scroll-output)
(defvar flymake-mode)
(defvar flymake-start-on-flymake-mode)
(defvar flymake-diagnostic-functions)
(defvar flymake-list-only-diagnostics)
(defvar url-path-allowed-chars)
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

;; Findings of checkers and compilers, in one form; those of a compilation
;; are read out of its buffer.

(defconst efrit-findings--most-parsed 5000000
  "The longest buffer of a compilation that is looked through, in characters.")

(cl-defstruct (efrit-finding (:constructor efrit-finding-create) (:copier nil))
  "What is said of a place: FILE, LINE, COLUMN from 1 on or nil, TEXT.
SEVERITY is `error', `warning' or `note', SOURCE who says it, a string."
  file line column severity source text)

(defun efrit-findings-of-compilation (buffer)
  "Return the findings of the compilation in BUFFER, in its order."
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
  "Return the text of this buffer, a compilation, without the command above it."
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
  "Return lines on FINDINGS for CALL, grouped by file."
  (cl-loop with last = nil
           for finding in (efrit-findings--sorted call findings)
           for name = (efrit-visit-name call (efrit-finding-file finding))
           unless (equal name last) collect name
           do (setq last name)
           collect (efrit-findings--line finding)))

(defun efrit-findings-count (findings)
  "Return how many FINDINGS of each severity there are, in words."
  (mapconcat (lambda (severity)
               (let ((count (cl-count severity findings
                                      :key #'efrit-finding-severity)))
                 (format "%d %s%s" count severity (if (= count 1) "" "s"))))
             '(error warning note) ", "))

(defun efrit-findings--mark-folders ()
  "Mark in this buffer the folders of a compilation, line by line."
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
  "Return PROPERTY of the text before the match that has one."
  (when-let* ((change (previous-single-property-change (match-beginning 0) property)))
    (or (get-text-property (1- change) property)
        (get-text-property change property))))

(defun efrit-findings--mark (rule indented source)
  "Mark in this buffer the findings of SOURCE that RULE matches.
RULE is as in `compilation-error-regexp-alist'.  With INDENTED, it matches
indented lines, too, as in a compilation buffer."
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
  "Return what PART of a rule matched: a function, a group, or a cons of one."
  (let ((part (if (and (consp part) (not (functionp part))) (car part) part)))
    (cond ((functionp part) (funcall part))
          ((integerp part) (match-string part)))))

(defun efrit-findings--number (part)
  "Return the number that PART of a rule matched, or nil."
  (let ((matched (efrit-findings--matched part)))
    (if (stringp matched) (string-to-number matched) matched)))

(defun efrit-findings--severity (type)
  "Return the severity of a match of a rule with TYPE."
  (pcase type
    (`(,warning . ,note) (cond ((and warning (match-beginning warning)) 'warning)
                               ((and note (match-beginning note)) 'note)
                               (t 'error)))
    (1 'warning)
    (0 'note)
    (_ 'error)))

(defun efrit-findings--file (part)
  "Return the whole name of the file that PART of a rule matched, or nil.
Where it matched none, that is the file of the finding before."
  (pcase (efrit-findings--matched part)
    ((and (pred stringp) name)
     (efrit-findings--whole-name name (car (efrit-findings--before 'efrit-folders))))
    (`(,(and (pred stringp) name) . ,folder)
     (efrit-findings--whole-name name (if (consp folder) (car folder) folder)))
    ('nil (when-let* ((before (efrit-findings--before 'efrit-finding)))
            (efrit-finding-file before)))))

(defun efrit-findings--whole-name (name folder)
  "Return the whole name of the file NAME in FOLDER, or nil if it is left out."
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
  "Return what is said on the line of END, where a match ends."
  (save-excursion
    (save-match-data
      (goto-char (match-beginning 0))
      (let* ((line-end (line-end-position))
             (case-fold-search t)
             (said (replace-regexp-in-string
                    "\\`[: \t]*\\(?:\\(?:error\\|warning\\|note\\|info\\):[ \t]*\\)?" ""
                    (buffer-substring (min end line-end) line-end))))
        (if (string-blank-p said)
            (buffer-substring (line-beginning-position) line-end)
          said)))))

(defun efrit-findings--sorted (call findings)
  "Return FINDINGS, each once, by file, as CALL has it, line and column."
  (mapcar #'cdr
          (sort (mapcar (lambda (finding)
                          (cons (efrit-visit-name call (efrit-finding-file finding))
                                finding))
                        (delete-dups (copy-sequence findings)))
                (lambda (a b)
                  (if (string= (car a) (car b))
                      (efrit-findings--less-p (cdr a) (cdr b))
                    (string< (car a) (car b)))))))

(defun efrit-findings--less-p (one other)
  "Return non-nil if ONE stands before OTHER in their file."
  (let ((line (or (efrit-finding-line one) 0))
        (other-line (or (efrit-finding-line other) 0)))
    (or (< line other-line)
        (and (= line other-line)
             (< (or (efrit-finding-column one) 0)
                (or (efrit-finding-column other) 0))))))

(defun efrit-findings--line (finding)
  "Return the line about FINDING below the name of its file."
  (format "  %s%s %s: %s [%s]"
          (or (efrit-finding-line finding) "?")
          (if (efrit-finding-column finding)
              (format ":%d" (efrit-finding-column finding)) "")
          (efrit-finding-severity finding)
          (truncate-string-to-width
           (replace-regexp-in-string "[ \t]*\n[ \t]*" " "
                                     (string-trim (efrit-finding-text finding)))
           500 nil nil "…")
          (efrit-finding-source finding)))

;;; Compiling

;; The project's compile command runs as the person's own compilation would,
;; in a buffer where `next-error' works, but in no window and without a
;; question.  The model is told its exit, what it found, and its output.

(defconst efrit-compile--progress-interval 0.25
  "Seconds between two tellings of what a compilation has printed.")

(defconst efrit-compile--kill-delay 2
  "Seconds between the interrupt of a compilation and its kill.")

(defconst efrit-compile--key-values
  (concat "sk-[[:alnum:]_-]\\{16,\\}\\|gh[opsur]_[[:alnum:]]\\{20,\\}\\|github_pat_\\|glpat-[[:alnum:]_-]\\{16,\\}"
          "\\|AKIA[0-9A-Z]\\{16\\}\\|xox[abprs]-[[:alnum:]-]\\{10,\\}\\|AIza[[:alnum:]_-]\\{30,\\}"
          "\\|[[:alnum:]+.-]+://[^/[:space:]:@]*:[^/[:space:]@]+@"
          "\\|eyJ[[:alnum:]_-]\\{10,\\}\\.[[:alnum:]_-]\\{10,\\}\\.[[:alnum:]_-]\\|npm_[[:alnum:]]\\{30,\\}"
          "\\|hf_[[:alnum:]]\\{30,\\}\\|[Bb]earer [[:alnum:]_.~+/-]\\{16,\\}\\|-----BEGIN [A-Z ]*PRIVATE KEY-----"
          "\\|\\(?:[Pp]assword\\|[Pp]wd\\|[Aa]ccount[Kk]ey\\|[Ss]hared[Aa]ccess[Kk]ey\\)=[^[:space:];]\\{4,\\}")
  "Values that are keys by their look; the sidecar has the same list.")

(defvar-local efrit-compile--output-start 1
  "Position where the output of the compilation begins.
That is behind Emacs's own lines at the top.")

;;;; Tools

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

;;;; Running

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
          (seq-remove #'efrit-compile--holds-key-p process-environment)))

(defun efrit-compile--holds-key-p (variable)
  "Return non-nil if VARIABLE, a name with a value, is probably a key.
A proxy's password stays: without it no command gets anywhere."
  (let ((name (upcase (car (split-string variable "="))))
        (case-fold-search nil))
    (or (seq-some (lambda (regexp) (string-match-p regexp name)) efrit-compile-hidden-variables)
        (and (not (string-suffix-p "_PROXY" name))
             (string-match-p efrit-compile--key-values variable)))))

(defun efrit-compile--watcher (call)
  "Return a function for the output of the compilation of CALL as it comes.
It ends one that prints too much, and tells the loop of the latest lines."
  (let ((told 0))
    (lambda ()
      (when (> (buffer-size) efrit-compile-most-characters)
        (efrit-compile--end (get-buffer-process (current-buffer)) 'long))
      (when (> (- (float-time) told) efrit-compile--progress-interval)
        (setq told (float-time))
        (efrit-loop-notify (efrit-tool-call-owner call) 'output (efrit-tool-call-id call)
                           (buffer-substring-no-properties
                            (max efrit-compile--output-start (- (point-max) 2000))
                            (point-max)))))))

(defun efrit-compile--end (process why)
  "End PROCESS, a compilation, for the reason WHY: by an interrupt, then a kill."
  (when (and (process-live-p process) (not (process-get process 'efrit-why)))
    (process-put process 'efrit-why why)
    (interrupt-process process)
    (run-at-time efrit-compile--kill-delay nil #'efrit-compile--kill process)))

(defun efrit-compile--kill (process)
  "Kill PROCESS, a compilation not over yet, and what it has started."
  (when (process-live-p process)
    (when (and (process-id process) (not (file-remote-p default-directory)))
      ;; Below its process id is its whole group.
      (signal-process (- (process-id process)) 'SIGKILL))
    (delete-process process)))

;;;; Reporting

(defun efrit-compile--exit-text (process message began)
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
HOW it ended is from `efrit-compile--exit-text'; UNSAVED are buffers that it
did not see."
  (let* ((findings (efrit-findings-of-compilation buffer))
         (said (format "%s: %s; %s" (efrit-visit-one-line command) (cadr how)
                       (efrit-findings-count findings)))
         (lines (efrit-findings-lines call findings)))
    (efrit-tool-result
     (string-join
      `(,(efrit-tool-mark-own said)
        ,@(and unsaved
               (list (concat (efrit-tool-mark-own "Not saved, so compiled as on disk: ")
                             (mapconcat (lambda (buffer)
                                          (efrit-visit-name call (buffer-file-name buffer)))
                                        (seq-filter #'buffer-live-p unsaved) ", "))))
        ,@lines
        ,(efrit-tool-mark-own (format "Output, in %s:" (buffer-name buffer)))
        ,(efrit-compile--output buffer))
      "\n")
     :status (car how)
     :summary (truncate-string-to-width
               (string-join (cons said (seq-take lines 3)) "\n") 490 nil nil "…"))))

(defun efrit-compile--output (buffer)
  "Return what the compilation in BUFFER printed."
  (require 'ansi-color)
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

;;; Diagnostics

;; Flymake, Flycheck and compilations tell where code is wrong.  In a file
;; where the person has no checker at work, Flymake is started for the moment,
;; with backends that only read: others run code of the project.

(cl-defstruct (efrit-diagnostics--inquiry (:constructor efrit-diagnostics--inquiry-create)
                                        (:copier nil))
  "A buffer that is checked: VISIT as `efrit-visit-open' gives it.
STARTED says whether Flymake was started for it, FUNCTIONS what was the
local value of `flymake-diagnostic-functions', a list, or nil; LEFT-OUT
are backends that were not started."
  visit started functions left-out)

;;;; Flycheck

(declare-function flycheck-buffer "flycheck")
(declare-function flycheck-running-p "flycheck")
(declare-function flycheck-error-filename "flycheck")
(declare-function flycheck-error-line "flycheck")
(declare-function flycheck-error-column "flycheck")
(declare-function flycheck-error-level "flycheck")
(declare-function flycheck-error-checker "flycheck")
(declare-function flycheck-error-message "flycheck")

(defvar flycheck-current-errors)

;;;; Tools

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
         (inquiries (efrit-diagnostics--begin call file))
         (until (+ (float-time) efrit-diagnostics-seconds)))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (mapc #'efrit-diagnostics--release inquiries)
            (efrit-tool-finish call (efrit-tool-result "The person stopped it."
                                                       :status 'error))))
    (efrit-diagnostics--wait call inquiries until
                             (intern (or severity "note")) file)))

;;;; Checking

(defun efrit-diagnostics--begin (call file)
  "Have FILE, or where nil the open files of the project of CALL, checked.
Return the checks."
  (require 'flymake)
  (if file
      (list (efrit-diagnostics--check (efrit-visit-open file)))
    (cl-loop for buffer in (efrit-visit-buffers call)
             when (or (buffer-local-value 'flymake-mode buffer)
                      (efrit-diagnostics--flycheck-p buffer))
             collect (efrit-diagnostics--check (cons buffer nil)))))

(defun efrit-diagnostics--flycheck-p (buffer)
  "Return non-nil if Flycheck is at work in BUFFER."
  (and (boundp 'flycheck-mode) (buffer-local-value 'flycheck-mode buffer)))

(defun efrit-diagnostics--check (visit)
  "Have the buffer of VISIT, from `efrit-visit-open', checked as it stands now."
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
  "Return the backends of Flymake for this buffer."
  (let ((local (remq t flymake-diagnostic-functions)))
    ;; The old one of Emacs runs make; it is everywhere, and seldom of use.
    (remq 'flymake-proc-legacy-flymake
          (seq-uniq (append local
                            (and (or (not (local-variable-p 'flymake-diagnostic-functions))
                                     (memq t flymake-diagnostic-functions))
                                 (remq t (default-value 'flymake-diagnostic-functions))))))))

(defun efrit-diagnostics--release (inquiry)
  "Leave the buffer of INQUIRY as it was found."
  (pcase-let* ((visit (efrit-diagnostics--inquiry-visit inquiry))
               (`(,buffer . ,opened) visit))
    (when (buffer-live-p buffer)
      (if opened
          (efrit-visit-release visit)
        (when (efrit-diagnostics--inquiry-started inquiry)
          (with-current-buffer buffer
            (flymake-mode -1)
            (if (efrit-diagnostics--inquiry-functions inquiry)
                (setq-local flymake-diagnostic-functions
                            (car (efrit-diagnostics--inquiry-functions inquiry)))
              (kill-local-variable 'flymake-diagnostic-functions))))))))

(defun efrit-diagnostics--unreported (inquiry)
  "Return who has not reported for INQUIRY, a list of strings."
  (let ((buffer (car (efrit-diagnostics--inquiry-visit inquiry))))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (append
         (and flymake-mode
              (mapcar #'symbol-name (seq-difference (flymake-running-backends)
                                                    (flymake-reporting-backends))))
         (and (efrit-diagnostics--flycheck-p buffer)
              (fboundp 'flycheck-running-p)
              (flycheck-running-p)
              (list "flycheck")))))))

(defun efrit-diagnostics--wait (call inquiries until severity file)
  "Finish CALL once each of INQUIRIES has reported, at the time UNTIL at last.
What is told is of SEVERITY at least, and of FILE, where it is not nil."
  (when (efrit-tool-call-finish call)
    (efrit-tool-catch-errors call
      (if (and (< (float-time) until) (seq-some #'efrit-diagnostics--unreported inquiries))
          (run-at-time 0.1 nil #'efrit-diagnostics--wait call inquiries until severity file)
        (let ((result (unwind-protect
                          (efrit-diagnostics--result call inquiries severity file)
                        (mapc #'efrit-diagnostics--release inquiries))))
          (efrit-tool-finish call result))))))

;;;; Collecting

(defun efrit-diagnostics--result (call inquiries severity file)
  "Return the result for CALL of INQUIRIES, of SEVERITY at least, of FILE or all."
  (let* ((compilations (efrit-diagnostics--compilations call))
         (found (seq-filter
                 (lambda (diagnostic)
                   (and (efrit-diagnostics--severe-enough-p diagnostic severity)
                        (efrit-diagnostics--relevant-p call diagnostic file)))
                 (append (mapcan #'efrit-diagnostics--of-check inquiries)
                         (efrit-diagnostics--project-findings)
                         (mapcan #'efrit-findings-of-compilation compilations))))
         (said (concat (efrit-findings-count (delete-dups (copy-sequence found))) " from "
                       (efrit-diagnostics--sources inquiries compilations))))
    (efrit-tool-result
     (string-join (append (list (efrit-tool-mark-own said))
                          (mapcar #'efrit-tool-mark-own
                                  (mapcan #'efrit-diagnostics--notes inquiries))
                          (efrit-findings-lines call found))
                  "\n")
     :summary (truncate-string-to-width said 490 nil nil "…"))))

(defun efrit-diagnostics--severe-enough-p (diagnostic severity)
  "Return non-nil if DIAGNOSTIC is of SEVERITY or worse."
  (memq severity (memq (efrit-finding-severity diagnostic) '(error warning note))))

(defun efrit-diagnostics--relevant-p (call diagnostic file)
  "Return non-nil if DIAGNOSTIC is about FILE, or, where nil, the project of CALL."
  (let ((its (efrit-finding-file diagnostic)))
    (if file
        (and (equal (file-remote-p its) (file-remote-p file))
             (string= (file-truename its) file))
      (efrit-visit-inside-p call its))))

(defun efrit-diagnostics--of-check (inquiry)
  "Return what INQUIRY has found."
  (let ((buffer (car (efrit-diagnostics--inquiry-visit inquiry))))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (save-restriction
          (widen)
          (append (and flymake-mode (mapcar #'efrit-diagnostics--of-flymake
                                            (flymake-diagnostics)))
                  (and (efrit-diagnostics--flycheck-p buffer)
                       (efrit-diagnostics--of-flycheck))))))))

(defun efrit-diagnostics--of-flymake (diagnostic)
  "Return the finding of DIAGNOSTIC, of Flymake, in this buffer."
  (let ((begin (flymake-diagnostic-beg diagnostic)))
    (efrit-finding-create
     :file (buffer-file-name)
     :line (line-number-at-pos begin t)
     :column (save-excursion (goto-char begin) (1+ (- begin (line-beginning-position))))
     :severity (efrit-diagnostics--flymake-severity (flymake-diagnostic-type diagnostic))
     :source (symbol-name (or (flymake-diagnostic-backend diagnostic) 'flymake))
     :text (flymake-diagnostic-text diagnostic))))

(defun efrit-diagnostics--flymake-severity (type)
  "Return the severity of TYPE, of Flymake."
  (let ((level (or (get type 'severity)
                   (get (get type 'flymake-category) 'severity)
                   (warning-numeric-level :error))))
    (cond ((>= level (warning-numeric-level :error)) 'error)
          ((>= level (warning-numeric-level :warning)) 'warning)
          (t 'note))))

(defun efrit-diagnostics--project-findings ()
  "Return what Flymake knows of files that are not open."
  (cl-loop for (file . diagnostics) in flymake-list-only-diagnostics
           append (cl-loop for diagnostic in diagnostics
                           for begin = (flymake-diagnostic-beg diagnostic)
                           collect (efrit-finding-create
                                    :file file
                                    :line (if (consp begin) (car begin) begin)
                                    :column (and (consp begin) (cdr begin))
                                    :severity (efrit-diagnostics--flymake-severity
                                               (flymake-diagnostic-type diagnostic))
                                    :source (format "%s" (flymake-diagnostic-backend
                                                          diagnostic))
                                    :text (flymake-diagnostic-text diagnostic)))))

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
  "Return the buffers of compilations in the project of CALL."
  (seq-filter (lambda (buffer)
                (with-current-buffer buffer
                  (and (or (derived-mode-p 'compilation-mode)
                           (bound-and-true-p compilation-minor-mode)
                           (bound-and-true-p compilation-shell-minor-mode))
                       (not (derived-mode-p 'grep-mode))
                       (efrit-visit-inside-p call default-directory))))
              (sort (buffer-list)
                    (lambda (a b) (string< (buffer-name a) (buffer-name b))))))

;;;; Reporting

(defun efrit-diagnostics--sources (inquiries compilations)
  "Return the sources in words: INQUIRIES and COMPILATIONS."
  (let ((compilers (mapconcat (lambda (buffer)
                                (with-current-buffer buffer
                                  (concat (buffer-name)
                                          (if (process-live-p (get-buffer-process buffer))
                                              " (running)" ""))))
                              compilations ", ")))
    (cond ((and inquiries compilations)
           (format "%d checked file%s, %s" (length inquiries) (if (cdr inquiries) "s" "") compilers))
          (inquiries (format "%d checked file%s" (length inquiries) (if (cdr inquiries) "s" "")))
          (compilations compilers)
          (t "nowhere: no file of the project is checked in Emacs, and nothing was compiled"))))

(defun efrit-diagnostics--notes (inquiry)
  "Return lines on what is missing in INQUIRY."
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
                (and (not left-out) (not (efrit-diagnostics--inquiry-started inquiry))
                     (not (buffer-local-value 'flymake-mode buffer))
                     (not (efrit-diagnostics--flycheck-p buffer))
                     (format "%s: Emacs has no checker for %s" name
                             (buffer-local-value 'major-mode buffer)))))))

;;; Formatting

;; The formatted text is a plan like that of an edit: the person sees the
;; diff first, and it can be undone.  A language server is asked without
;; waiting for it; a mode formats a copy of the buffer.

;;;; Tools

(efrit-define-tool format_buffer
    ((path "string" ""))
  "Format a file by its language server, or as its mode does."
  :plan #'efrit-format--plan
  (efrit-plan-carry-out call))

;;;; Planning

(defun efrit-format--plan (loop given then refused)
  "Plan in LOOP to format the file that GIVEN, arguments, names.
Call THEN with the plan, or REFUSED with what is wrong."
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
  "Return the plan of formatting the file of ARGUMENTS, which FILES knows.
EDITS, if non-nil, are of its language server: (TEXT . FUNCTION), where the
function makes the formatted text of TEXT."
  (let* ((path (plist-get arguments :path))
         (change (progn
                   (unless (eq t (plist-get (efrit-plan-file path files) :exists))
                     (efrit-plan-refuse "there is no file %s" path))
                   (efrit-plan-change 'edit path files)))
         (done nil))
    (unwind-protect
        (pcase-let* ((before (efrit-change-before change))
                     (`(,how . ,after) (if edits
                                           (efrit-format--by-server before path edits)
                                         (efrit-format--by-mode change))))
          (when (string= before after)
            (efrit-plan-refuse "%s is formatted already, as %s does it" path how))
          (setf (efrit-change-after change) after)
          (setq done t)
          (efrit-plan-create :changes (list change)
                             :report (format "Formatted %s by %s." path how)))
      (unless done
        (efrit-change-release change)))))

(defun efrit-format--by-server (before path edits)
  "Return (HOW . TEXT) for BEFORE, the text of PATH, and EDITS of its server."
  (unless (string= before (car edits))
    (efrit-plan-refuse "%s was changed while its language server formatted it" path))
  (cons "its language server" (funcall (cdr edits) before)))

;;;; Language servers

(declare-function jsonrpc-async-request "jsonrpc")

(declare-function eglot-managed-p "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-server-capable "eglot")
(declare-function eglot-path-to-uri "eglot")

(defun efrit-format--server-buffer (loop path)
  "Return the buffer of PATH, of LOOP, if a language server formats it, or nil."
  (let* ((call (efrit-tool-call-create :owner loop))
         (file (and (stringp path) (ignore-errors (efrit-visit-file call path))))
         (buffer (and file (find-buffer-visiting file))))
    (and buffer
         (with-current-buffer buffer
           (and (efrit-format--server)
                (efrit-format--server-formats-p)))
         buffer)))

(defun efrit-format--server ()
  "Return the language server that manages this buffer, or nil."
  (and (fboundp 'eglot-managed-p)
       (fboundp 'eglot-current-server)
       (eglot-managed-p)
       (eglot-current-server)))

(eval-when-compile
  (require 'eieio)
  (eieio-declare-slots capabilities))
(declare-function slot-value "eieio" (object slot))

(defun efrit-format--server-formats-p ()
  "Return non-nil if the language server of this buffer can format it."
  (if (fboundp 'eglot-server-capable)
      (eglot-server-capable :documentFormattingProvider)
    ;; An Eglot that was installed in Emacs 28 may have no public function for it.
    (let ((found (plist-member (slot-value (efrit-format--server) 'capabilities)
                               :documentFormattingProvider)))
      (and found (not (eq (cadr found) :json-false))))))

(defun efrit-format--uri ()
  "Return the address that Eglot gives to servers for the file of this buffer."
  (if (fboundp 'eglot-path-to-uri)
      (eglot-path-to-uri buffer-file-name)
    ;; Before Emacs 30 Eglot has no public function for it.
    (require 'url-util)
    (let ((allowed (copy-sequence url-path-allowed-chars)))
      (aset allowed ?: nil)
      (concat (if (eq system-type 'windows-nt) "file:///" "file://")
              (url-hexify-string (file-local-name (file-truename buffer-file-name))
                                 allowed)))))

(defun efrit-format--ask-server (buffer then refused)
  "Ask the language server of BUFFER to format it.
Call THEN with (TEXT . FUNCTION), where the function makes the formatted
text of TEXT; or REFUSED with what is wrong."
  ;; The Eglot of Emacs 30 hears of a change in a timer, too, which comes before this one.
  (run-at-time 0 nil (lambda ()
                       (condition-case err
                           (with-current-buffer buffer
                             (efrit-format--request then refused))
                         (error
                          (funcall refused (format "the language server was not asked: %s"
                                                   (error-message-string err))))))))

(defun efrit-format--request (then refused)
  "Send the request to format this buffer; call THEN or REFUSED, see above.
What was changed lately is told to the server first: Eglot has a deferred
request wait for it."
  (let ((text (efrit-file-text (current-buffer)))
        (move (efrit-format--column-function)))
    (jsonrpc-async-request
     (efrit-format--server) :textDocument/formatting
     (list :textDocument (list :uri (efrit-format--uri))
           :options (list :tabSize tab-width
                          :insertSpaces (if indent-tabs-mode :json-false t)))
     :deferred 'efrit-format
     :success-fn (lambda (edits)
                   (funcall then (cons text (lambda (text)
                                              (efrit-format--apply-edits text edits move)))))
     :error-fn (lambda (err)
                 (funcall refused (format "the language server did not format it: %s"
                                          (plist-get err :message))))
     :timeout efrit-format-seconds
     :timeout-fn (lambda ()
                   (funcall refused (format "the language server did not answer within %s \
seconds" efrit-format-seconds))))))

(defun efrit-format--column-function ()
  "Return the function to go to a column as this buffer's server counts."
  (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                '(eglot-move-to-linepos-function eglot-move-to-column-function))
      #'move-to-column))

(defun efrit-format--apply-edits (text edits move)
  "Return TEXT with EDITS, a language server's; MOVE is for its columns."
  (with-temp-buffer
    (insert text)
    (let ((places (cl-loop for edit across (or edits [])
                           for number from 0
                           collect (list (efrit-format--position edit :start move)
                                         number
                                         (efrit-format--position edit :end move)
                                         (plist-get edit :newText)))))
      ;; From the end on, so that what is in front stays where it is.
      (pcase-dolist (`(,begin ,_ ,end ,new)
                     (sort places (lambda (a b)
                                    (or (> (car a) (car b))
                                        (and (= (car a) (car b)) (> (cadr a) (cadr b)))))))
        (delete-region begin end)
        (goto-char begin)
        (insert (if (string-search "\r" text) new (string-replace "\r\n" "\n" new)))))
    (buffer-string)))

(defun efrit-format--position (edit which move)
  "Return where EDIT, a server's, has its WHICH; MOVE is for its columns."
  (let ((place (plist-get (plist-get edit :range) which)))
    (goto-char (point-min))
    (forward-line (plist-get place :line))
    (unless (eobp)
      (funcall move (plist-get place :character)))
    (point)))

;;;; Modes

(defun efrit-format--by-mode (change)
  "Return (HOW . TEXT) for the file of CHANGE, formatted as its mode does it."
  (let* ((buffer (efrit-change-buffer change))
         (formatter (with-current-buffer buffer (efrit-format--formatter)))
         (text (efrit-change-before change)))
    (unless formatter
      (efrit-plan-refuse "Emacs has no formatter for %s in %s; see `efrit-format-functions'"
                         (efrit-change-path change)
                         (buffer-local-value 'major-mode buffer)))
    (when (> (length text) efrit-format-most-characters)
      (efrit-plan-refuse "%s is too long for Emacs to format it; use a command"
                         (efrit-change-path change)))
    (cons (format "%s" formatter) (efrit-format--format-copy buffer text formatter))))

(defun efrit-format--formatter ()
  "Return the function that formats this buffer, or nil."
  (or (seq-some (lambda (entry)
                  (and (derived-mode-p (car entry)) (fboundp (cdr entry)) (cdr entry)))
                efrit-format-functions)
      (and (derived-mode-p 'prog-mode)
           (not (apply #'derived-mode-p efrit-format-meaningful-indentation))
           (not (memq indent-line-function '(indent-relative indent-relative-first-indent-point)))
           'indent-region)))

(defun efrit-format--format-copy (buffer text formatter)
  "Return TEXT, that of BUFFER, formatted by FORMATTER in a copy of it."
  (let ((variables (efrit-format--variables buffer))
        (mode (buffer-local-value 'major-mode buffer))
        (file (buffer-file-name buffer))
        (folder (buffer-local-value 'default-directory buffer))
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
  "Return what BUFFER has of its own about indentation: an alist."
  (seq-filter (lambda (entry)
                (and (consp entry)
                     (string-match-p "tab-width\\|tabs\\|offset\\|indent"
                                     (symbol-name (car entry)))
                     (or (numberp (cdr entry)) (memq (cdr entry) '(t nil)))))
              (buffer-local-variables buffer)))

(provide 'efrit-tools-build)
;;; efrit-tools-build.el ends here
