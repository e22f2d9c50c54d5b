;;; efrit-buffer-tools.el --- The buffers of this Emacs, for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Buffers are shown as they are: unsaved, narrowed, or with no file at all.
;; What usually holds secrets is not.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-json)
(require 'efrit-tools)
(require 'efrit-turn)
(require 'efrit-visit)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-buffer-most-characters 2000000
  "How many characters of a buffer are read at once."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-buffer-project-modes '(compilation-mode comint-mode eshell-mode dired-mode)
  "Major modes whose buffers are of the project in whose folder they are.
So are those of modes derived from them.  Of the other buffers, those that
visit a file of the project are."
  :group 'efrit
  :risky t
  :type '(repeat symbol))

(defcustom efrit-buffer-secret-modes '(authinfo-mode pass-mode pass-view-mode)
  "Major modes whose buffers are not read, nor those of modes derived from them."
  :group 'efrit
  :type '(repeat symbol))

;;; Tools

(efrit-define-tool list_buffers
    ((pattern "string" "Part of name, mode or file" :optional t))
  "Open buffers: mode, lines, file. Those of the project come first."
  :policy allow
  (let* ((shown (seq-filter (lambda (buffer) (efrit-buffer-tools--fits-p buffer pattern))
                            (efrit-buffer-tools--all)))
         (inside (seq-filter (lambda (buffer) (efrit-buffer-tools--inside-p call buffer))
                             shown))
         (others (seq-difference shown inside))
         (said (efrit-buffer-tools--count shown inside)))
    (efrit-tool-result
     (concat (efrit-tool-own said)
             (efrit-buffer-tools--group call "In the project:" inside)
             (efrit-buffer-tools--group call "Others:" others))
     :summary said)))

(efrit-define-tool read_buffer
    ((buffer "string" "Name, or path of its file")
     (start_line "integer" "From 1" :optional t :minimum 1)
     (end_line "integer" "" :optional t :minimum 1)
     (tail "integer" "Last lines" :optional t :minimum 1))
  "Lines of any buffer, numbered: *compilation*, *Messages*, shells, files as \
they stand in Emacs. The person is asked about buffers outside the project."
  :policy allow
  :guard #'efrit-buffer-tools--guard
  :async t
  (let ((found (efrit-buffer-tools--named call buffer)))
    (with-current-buffer found
      (efrit-buffer-tools-check))
    (efrit-buffer-tools--if-open
     call found
     (lambda ()
       (with-current-buffer found
         (efrit-buffer-tools--text call start_line end_line tail))))))

;;; Public

(defun efrit-buffer-tools-check ()
  "Signal an error if this buffer may hold secrets."
  (let ((file (buffer-file-name (or (buffer-base-buffer) (current-buffer)))))
    (cond ((string-prefix-p " " (buffer-name))
           (user-error "%S is an internal buffer and may hold secrets; eval_sexp asks the person"
                       (buffer-name)))
          ((minibufferp)
           (user-error "A minibuffer may hold a password; eval_sexp asks the person"))
          ((or (apply #'derived-mode-p (default-value 'efrit-buffer-secret-modes))
               (efrit-visit-secret-p (or file (concat "/" (buffer-name)))))
           (user-error "%s usually holds secrets; read_file asks the person about a file of the \
project, eval_sexp about any buffer" (buffer-name))))))

;;; Private: lists

(defun efrit-buffer-tools--all ()
  "Return the buffers that a person sees in lists, by their names."
  (sort (seq-remove (lambda (buffer) (string-prefix-p " " (buffer-name buffer)))
                    (buffer-list))
        (lambda (a b) (string< (buffer-name a) (buffer-name b)))))

(defun efrit-buffer-tools--fits-p (buffer pattern)
  "Return non-nil if PATTERN, nil or a string, is in what BUFFER is called."
  (or (null pattern)
      (let ((case-fold-search t))
        (string-match-p (regexp-quote pattern)
                        (format "%s\n%s\n%s" (buffer-name buffer)
                                (buffer-local-value 'major-mode buffer)
                                (or (buffer-file-name buffer) ""))))))

(defun efrit-buffer-tools--inside-p (call buffer)
  "Return non-nil if BUFFER is of the project of CALL.
A folder alone says little: mail that is written in it is the person's."
  (let ((place (or (buffer-file-name (or (buffer-base-buffer buffer) buffer))
                   (with-current-buffer buffer
                     (and (apply #'derived-mode-p (default-value 'efrit-buffer-project-modes))
                          default-directory)))))
    (and place (efrit-visit-inside-p call place))))

(defun efrit-buffer-tools--guard (loop arguments)
  "Return why the person is asked in LOOP before a buffer is read, or nil.
ARGUMENTS name it.  What is not there, or is never read, is not asked about."
  (let* ((call (efrit-tool-call-create :owner loop))
         (buffer (ignore-errors
                   (efrit-buffer-tools--named call (plist-get arguments :buffer)))))
    (and buffer
         (not (efrit-buffer-tools--inside-p call buffer))
         (ignore-errors
           (with-current-buffer buffer
             (efrit-buffer-tools-check))
           t)
         (format "The buffer %s is outside the project." (buffer-name buffer)))))

(defun efrit-buffer-tools--count (shown inside)
  "Return how many buffers are SHOWN, and INSIDE the project, as a line."
  (format "%d buffer%s, %d of the project; * is modified, %% read-only.\n"
          (length shown) (if (= (length shown) 1) "" "s") (length inside)))

(defun efrit-buffer-tools--group (call title buffers)
  "Return lines for BUFFERS below TITLE, for CALL."
  (if buffers
      (concat (efrit-tool-own title) "\n"
              (mapconcat (lambda (buffer) (efrit-buffer-tools--line call buffer)) buffers ""))
    ""))

(defun efrit-buffer-tools--line (call buffer)
  "Return the line about BUFFER, for CALL."
  (with-current-buffer buffer
    (let ((file (buffer-file-name (or (buffer-base-buffer) buffer)))
          (process (get-buffer-process buffer)))
      (concat (efrit-visit-one-line (buffer-name))
              (if (and file (buffer-modified-p)) " *" "")
              (if buffer-read-only " %" "")
              (format "  %s  %s" major-mode (efrit-buffer-tools--size))
              (if file (concat "  " (efrit-visit-name call file)) "")
              (if (buffer-base-buffer)
                  (concat "  indirect, of " (buffer-name (buffer-base-buffer))) "")
              (if (process-live-p process) "  running" "")
              (if (get-buffer-window buffer 'visible) "  visible" "")
              "\n"))))

(defun efrit-buffer-tools--size ()
  "Return the size of this buffer in words; a big one is not counted in lines."
  (if (> (buffer-size) efrit-buffer-most-characters)
      (format "%d characters" (buffer-size))
    (save-restriction
      (widen)
      (efrit-buffer-tools--counted (count-lines (point-min) (point-max)) "line"))))

(defun efrit-buffer-tools--counted (count thing)
  "Return COUNT of THING in words."
  (format "%d %s%s" count thing (if (= count 1) "" "s")))

;;; Private: reading

(defun efrit-buffer-tools--if-open (call buffer read)
  "Finish CALL with what READ gives, unless the file of BUFFER is secret.
Which files of the project are is the sidecar's to say, by its settings."
  (let ((file (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (if (not (and file (efrit-visit-inside-p call file)))
        (efrit-tool-finish call (funcall read))
      (efrit-turn-call
       (efrit-tool-call-owner call) 'changes/check
       (list :paths (vector (efrit-json-sound (efrit-visit-relative call file))))
       (lambda (checked)
         (efrit-child-finishing call
           (when (eq t (plist-get (aref (plist-get checked :files) 0) :secret))
             (user-error "%s usually holds secrets; read_file asks the person about it"
                         (buffer-name buffer)))
           (efrit-tool-finish call (funcall read))))
       (lambda (err)
         (efrit-tool-finish call (efrit-tool-result (efrit-error-text err)
                                                    :status 'error)))))))

(defun efrit-buffer-tools--text (call start end tail)
  "Return the result for CALL of reading this buffer, lines START to END, or TAIL."
  (let ((about (efrit-buffer-tools--about call)))
    (pcase-let ((`(,first . ,last) (efrit-buffer-tools--lines start end tail)))
      (cond ((= (point-min) (point-max)) (efrit-tool-own (concat about "\nIt is empty.")))
            ((efrit-buffer-tools--binary-p) (efrit-tool-own
                                              (concat about "\nIt holds bytes, no text.")))
            (t (efrit-buffer-tools--read about first last))))))

(defun efrit-buffer-tools--named (call name)
  "Return the buffer NAME, or the one with the file NAME of the project of CALL."
  (or (get-buffer name)
      (let ((file (ignore-errors (efrit-visit-file call name))))
        (and file (find-buffer-visiting file)))
      (if (ignore-errors (file-exists-p (efrit-visit-file call name)))
          (user-error "%s is not open in Emacs; read_file reads it" name)
        (user-error "There is no buffer %s; list_buffers names them" name))))

(defun efrit-buffer-tools--binary-p ()
  "Return non-nil if there are bytes in this buffer, no text."
  (save-excursion
    (goto-char (point-min))
    (let ((end (min (point-max) (+ (point-min) 100000))))
      (or (eq major-mode 'image-mode)
          (search-forward "\0" end t)
          (and (not enable-multibyte-characters)
               (re-search-forward "[^[:ascii:]]" end t))))))

(defun efrit-buffer-tools--lines (start end tail)
  "Return (FIRST . LAST), the numbers of lines to read here.
START, END and TAIL are as in the tool; LAST may be nil, up to the end."
  (pcase-let ((`(,lowest . ,highest) (efrit-buffer-tools--visible)))
    (dolist (number (list start end tail))
      (when (and number (< number 1))
        (user-error "%d is no number of lines; the first line is 1" number)))
    (cond ((and tail (or start end))
           (user-error "Give one of: start_line and end_line; tail"))
          ((and start end (< end start))
           (user-error "Give an end_line of %d or more, not %d" start end))
          (tail (cons (max lowest (- highest tail -1)) highest))
          ((> (or start lowest) highest)
           (user-error "%s has lines %d to %d%s, and no line %d" (buffer-name) lowest highest
                       (if (buffer-narrowed-p) " (narrowed)" "") start))
          ((< (or end highest) lowest)
           (user-error "%s is narrowed to lines %d to %d" (buffer-name) lowest highest))
          (t (cons (max lowest (or start lowest)) (min highest (or end highest)))))))

(defun efrit-buffer-tools--visible ()
  "Return (FIRST . LAST), the numbers of the accessible lines of this buffer."
  (let ((first (line-number-at-pos (point-min) t)))
    (cons first (max first (+ first -1 (count-lines (point-min) (point-max)))))))

(defun efrit-buffer-tools--about (call)
  "Return the line about this buffer, for CALL."
  (let ((file (buffer-file-name (or (buffer-base-buffer) (current-buffer))))
        (visible (efrit-buffer-tools--visible)))
    (format "%s (%s)"
            (efrit-visit-one-line (buffer-name))
            (string-join
             (delq nil
                   (list (efrit-buffer-tools--size)
                         (symbol-name major-mode)
                         (and file (efrit-visit-name call file))
                         (and file (if (buffer-modified-p) "not saved" "saved"))
                         (and (buffer-base-buffer)
                              (concat "indirect, of " (buffer-name (buffer-base-buffer))))
                         (and (buffer-narrowed-p)
                              (format "narrowed to lines %d to %d"
                                      (car visible) (cdr visible)))))
             ", "))))

(defun efrit-buffer-tools--read (about first last)
  "Return the lines FIRST to LAST of this buffer, below ABOUT, as a result."
  (save-excursion
    (goto-char (point-min))
    (forward-line (- first (line-number-at-pos (point-min) t)))
    (let* ((begin (point))
           (end (min (progn (forward-line (1+ (- last first))) (point))
                     (+ begin efrit-buffer-most-characters)))
           (lines (efrit-buffer-tools--numbered first begin end))
           (said (format "%s, lines %d to %d" about first
                         (+ first (max 0 (1- (length lines)))))))
      (efrit-tool-result
       (string-join `(,about ,@lines ,@(efrit-buffer-tools--rest end)) "\n")
       :summary (truncate-string-to-width said 490 nil nil "…")))))

(defun efrit-buffer-tools--numbered (first begin end)
  "Return the lines between BEGIN and END, behind their numbers, from FIRST on."
  (let ((number (1- first)))
    (mapcar (lambda (line) (format "%d\t%s" (setq number (1+ number)) line))
            (split-string (string-remove-suffix
                           "\n" (buffer-substring-no-properties begin end))
                          "\n"))))

(defun efrit-buffer-tools--rest (end)
  "Return a note, a list, where reading stopped at END before point."
  (when (and (< end (point)) (< end (point-max)))
    (list (efrit-tool-own
           (format "[It was cut after %d characters, in line %d of %d; give start_line for more.]"
                   efrit-buffer-most-characters
                   (line-number-at-pos end t) (cdr (efrit-buffer-tools--visible)))))))

(provide 'efrit-buffer-tools)
;;; efrit-buffer-tools.el ends here
