;;; efrit-diagnostics.el --- What checkers and compilers say, for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Flymake, Flycheck and compilations tell where code is wrong.  In a file
;; where the person has no checker at work, Flymake is started for the moment,
;; with backends that only read: others run code of the project.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-findings)
(require 'efrit-tools)
(require 'efrit-visit)
(require 'flymake)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-diagnostics-backends
  '(elisp-flymake-checkdoc python-flymake sh-shellcheck-flymake lua-ts-flymake-luacheck
                           tex-chktex eglot-flymake-backend)
  "Backends of Flymake that are started for files the person does not check.
These only read the file.  Others, such as `elisp-flymake-byte-compile',
may run code of the project."
  :group 'efrit
  :type '(repeat function))

(defcustom efrit-diagnostics-seconds 10
  "How many seconds checkers may take to report."
  :group 'efrit
  :type 'number)

;;; Structs

(cl-defstruct (efrit-diagnostics--inquiry (:constructor efrit-diagnostics--inquiry-create)
                                        (:copier nil))
  "A buffer that is checked: VISIT as `efrit-visit-open' gives it.
STARTED says whether Flymake was started for it, FUNCTIONS what was the
local value of `flymake-diagnostic-functions', a list, or nil; LEFT-OUT
are backends that were not started."
  visit started functions left-out)

;;; What others define

(declare-function flycheck-buffer "flycheck")
(declare-function flycheck-running-p "flycheck")
(declare-function flycheck-error-filename "flycheck")
(declare-function flycheck-error-line "flycheck")
(declare-function flycheck-error-column "flycheck")
(declare-function flycheck-error-level "flycheck")
(declare-function flycheck-error-checker "flycheck")
(declare-function flycheck-error-message "flycheck")
(defvar flycheck-current-errors)

;;; Tools

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
            (mapc #'efrit-diagnostics--let-go inquiries)
            (efrit-tool-finish call (efrit-tool-result "The person stopped it."
                                                       :status 'error))))
    (efrit-diagnostics--wait call inquiries until
                             (intern (or severity "note")) file)))

;;; Private: checking

(defun efrit-diagnostics--begin (call file)
  "Have FILE, or where nil the open files of the project of CALL, checked.
Return the checks."
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

(defun efrit-diagnostics--let-go (inquiry)
  "Leave the buffer of INQUIRY as it was found."
  (pcase-let* ((visit (efrit-diagnostics--inquiry-visit inquiry))
               (`(,buffer . ,opened) visit))
    (when (buffer-live-p buffer)
      (if opened
          (efrit-visit-let-go visit)
        (when (efrit-diagnostics--inquiry-started inquiry)
          (with-current-buffer buffer
            (flymake-mode -1)
            (if (efrit-diagnostics--inquiry-functions inquiry)
                (setq-local flymake-diagnostic-functions
                            (car (efrit-diagnostics--inquiry-functions inquiry)))
              (kill-local-variable 'flymake-diagnostic-functions))))))))

(defun efrit-diagnostics--late (inquiry)
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
    (efrit-child-finishing call
      (if (and (< (float-time) until) (seq-some #'efrit-diagnostics--late inquiries))
          (run-at-time 0.1 nil #'efrit-diagnostics--wait call inquiries until severity file)
        (let ((result (unwind-protect
                          (efrit-diagnostics--result call inquiries severity file)
                        (mapc #'efrit-diagnostics--let-go inquiries))))
          (efrit-tool-finish call result))))))

;;; Private: collecting

(defun efrit-diagnostics--result (call inquiries severity file)
  "Return the result for CALL of INQUIRIES, of SEVERITY at least, of FILE or all."
  (let* ((compilations (efrit-diagnostics--compilations call))
         (found (seq-filter
                 (lambda (diagnostic)
                   (and (efrit-diagnostics--as-bad-p diagnostic severity)
                        (efrit-diagnostics--of-p call diagnostic file)))
                 (append (mapcan #'efrit-diagnostics--of-check inquiries)
                         (efrit-diagnostics--listed)
                         (mapcan #'efrit-findings-of-compilation compilations))))
         (said (concat (efrit-findings-count (delete-dups (copy-sequence found))) " from "
                       (efrit-diagnostics--sources inquiries compilations))))
    (efrit-tool-result
     (string-join (append (list (efrit-tool-own said))
                          (mapcar #'efrit-tool-own (mapcan #'efrit-diagnostics--notes inquiries))
                          (efrit-findings-lines call found))
                  "\n")
     :summary (truncate-string-to-width said 490 nil nil "…"))))

(defun efrit-diagnostics--as-bad-p (diagnostic severity)
  "Return non-nil if DIAGNOSTIC is of SEVERITY or worse."
  (memq severity (memq (efrit-finding-severity diagnostic) '(error warning note))))

(defun efrit-diagnostics--of-p (call diagnostic file)
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

(defun efrit-diagnostics--listed ()
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

;;; Private: telling

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
         (late (efrit-diagnostics--late inquiry))
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

(provide 'efrit-diagnostics)
;;; efrit-diagnostics.el ends here
