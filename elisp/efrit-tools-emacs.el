;;; efrit-tools-emacs.el --- Tools for buffers, documentation, code and showing text  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that read buffers and documentation, that show text to the person, and
;; that ask xref, imenu and the tags of a project about code; functions to visit
;; files for tools.

;;; Code:

(require 'efrit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-sidecar)
(require 'efrit-tools)

;; These libraries are loaded when they are used.
(eval-when-compile
  (require 'etags)
  (require 'info)
  (require 'project)
  (require 'recentf))
(declare-function etags-snarf-tag "etags" (&optional use-explicit))
(declare-function file-of-tag "etags" (&optional relative))
(declare-function tag-exact-match-p "etags" (tag))
(declare-function tag-implicit-name-match-p "etags" (tag))
(declare-function visit-tags-table-buffer "etags" (&optional cont cbuf))
(declare-function xref-make-etags-location "etags" (tag-info file))
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-backend-references "xref" (backend identifier))
(declare-function xref-item-location "xref" (item))
(declare-function xref-item-summary "xref" (item))
(declare-function xref-location-group "xref" (location))
(declare-function xref-location-line "xref" (location))
(declare-function xref-location-marker "xref" (location))
(declare-function xref-make "xref" (summary location))
(declare-function xref-match-item-p "xref" (object))

;;; Visiting files

;; A tool that needs a buffer for a file uses the one that visits it, or opens
;; one temporarily.  The file may be a stranger's: opening it asks nothing, and
;; runs no code in it or beside it.

;;;; Names

(defun efrit-visit-root (call)
  "Return the real name of the root of CALL's session, with a slash at its end."
  (file-name-as-directory (file-truename (efrit-loop-root (efrit-tool-call-owner call)))))

(defun efrit-visit-file-inside (call path)
  "Return the real name of the file PATH, which must be inside CALL's project.
Signal an error if the file is outside the project; it need not exist."
  (let* ((root (efrit-visit-root call))
         (file (and (not (string-match-p "\\`[ \t]*\\'\\|\0" path))
                    (expand-file-name path root))))
    (unless file
      (user-error "%S is not a path; give one relative to the project" path))
    (unless (and (equal (file-remote-p file) (file-remote-p root))
                 (string-prefix-p root (file-name-as-directory
                                        (setq file (file-truename file)))))
      (user-error "%s is outside the project" path))
    file))

(defun efrit-visit-existing-file (call path)
  "Return the real name of the existing file PATH in the project of CALL.
Signal an error if there is no such file, or it usually holds secrets."
  (let ((file (efrit-visit-file-inside call path)))
    (cond ((find-buffer-visiting file))
          ((file-directory-p file) (user-error "%s is a folder; give a file" path))
          ((not (file-regular-p file))
           (user-error "%s: no such file; project_files finds names" path)))
    (when (or (efrit-visit-secret-p file)
              (efrit-visit-secret-p (expand-file-name path (efrit-visit-root call))))
      (user-error "%s usually holds secrets; read_file asks the person about it" path))
    file))

(defun efrit-visit-inside-p (call file)
  "Return non-nil if FILE, a whole name, is in the project of CALL."
  (let ((root (efrit-visit-root call)))
    (and (equal (file-remote-p file) (file-remote-p root))
         (string-prefix-p root (file-name-as-directory (file-truename file))))))

(defun efrit-visit-name (call file)
  "Return the name by which results of CALL call FILE, a whole name.
It is relative for a file in the project, and abbreviated for other files."
  (efrit-visit-one-line
   (if (efrit-visit-inside-p call file)
       (file-relative-name (file-truename file) (efrit-visit-root call))
     (abbreviate-file-name file))))

(defun efrit-visit-one-line (text)
  "Return TEXT with line breaks, control and hidden characters made visible."
  (replace-regexp-in-string (concat "[\n\t]\\|" efrit-permissions-hidden-characters)
                            (lambda (control) (format "\\x%02x" (aref control 0)))
                            text t t))

(defun efrit-visit-secret-p (file)
  "Return non-nil if a file with the whole name FILE is likely to be secret."
  (let ((case-fold-search t)
        (fits (lambda (regexp) (string-match-p regexp file))))
    (and (or (efrit-host-secret-p file)
             (seq-some fits (default-value 'efrit-visit-secret-files)))
         (not (seq-some fits (default-value 'efrit-visit-open-files))))))

;;;; Buffers

(defun efrit-visit-open (file)
  "Return (BUFFER . OPENED) for FILE, a whole name.
OPENED is non-nil if this function opened the buffer; `efrit-visit-release'
then kills the buffer."
  (let ((known (find-buffer-visiting file)))
    (if known
        (cons known nil)
      (let ((size (file-attribute-size (file-attributes file))))
        (when (and size (> size efrit-visit-most-bytes))
          (user-error "%s has %d bytes, too many to open it in Emacs; use read_file, \
search_content or list_symbols" (file-name-nondirectory file) size)))
      (cons (efrit-visit-quietly #'efrit-file-visit file) t))))

(defun efrit-visit-release (visit)
  "Kill the buffer of VISIT, from `efrit-visit-open', if that function opened it."
  (pcase-let ((`(,buffer . ,opened) visit))
    (when (and opened (buffer-live-p buffer))
      (efrit-file-kill-unused buffer))))

(defun efrit-visit-buffers (call)
  "Return the buffers that visit files of the project of CALL, sorted by file."
  (seq-sort-by #'buffer-file-name #'string<
               (seq-filter (lambda (buffer)
                             (when-let* ((file (buffer-file-name buffer)))
                               (efrit-visit-inside-p call file)))
                           (buffer-list))))

(defun efrit-visit-sort (call places file &rest numbers)
  "Return PLACES without duplicates, sorted by file name for CALL, then NUMBERS.
FILE and each of NUMBERS are functions of a place; a number may be nil."
  (let ((sorted (delete-dups (copy-sequence places))))
    (dolist (number (reverse numbers))
      (setq sorted (seq-sort-by (lambda (place) (or (funcall number place) 0)) #'< sorted)))
    (mapcar #'cdr
            (seq-sort-by #'car #'string<
                         (mapcar (lambda (place)
                                   (cons (efrit-visit-name call (funcall file place)) place))
                                 sorted)))))


(defun efrit-visit-quietly (function &rest arguments)
  "Call FUNCTION with ARGUMENTS, and return its value.
While it runs, opening a file asks nothing and cannot run code of the file."
  (let ((enable-remote-dir-locals nil)
        ;; TRAMP would ask whether root's files may be saved here.
        (auto-save-default nil)
        (tags-revert-without-query t)
        (tags-add-tables nil)
        (recentf-exclude '(""))
        (inhibit-interaction t)
        (message-log-max nil))
    (efrit-file-quietly (apply function arguments))))

(defun efrit-visit-with (file function &rest arguments)
  "Call FUNCTION with ARGUMENTS in a buffer that visits FILE; return its value.
Kill the file buffers that this opened; restore FILE's point and narrowing."
  (let ((visit (efrit-visit-open file)))
    (unwind-protect
        (efrit-visit-and-release
         (lambda ()
           (with-current-buffer (car visit)
             (save-excursion
               (save-restriction
                 (apply function arguments))))))
      (efrit-visit-release visit))))

(defun efrit-visit-and-release (function &rest arguments)
  "Return FUNCTION called with ARGUMENTS; kill the buffers of files that it opened."
  (let ((before (buffer-list)))
    (unwind-protect
        (apply #'efrit-visit-quietly function arguments)
      (dolist (buffer (buffer-list))
        (when (and (buffer-file-name buffer) (not (memq buffer before)))
          (efrit-file-kill-unused buffer))))))

;;; Buffers

;; Buffers are read as they are: unsaved, narrowed, or without a file.  Buffers
;; that usually hold secrets are refused.

(efrit-define-tool list_buffers
    ((pattern "string" "Part of name, mode or file" :optional t))
  "Open buffers: mode, lines, file. Those of the project come first."
  :policy allow
  (let* ((listed (seq-sort-by #'buffer-name #'string<
                              (seq-filter (lambda (buffer)
                                            (efrit-buffer-tools--matches-p buffer pattern))
                                          (buffer-list))))
         (inside (seq-filter (lambda (buffer) (efrit-buffer-tools--inside-p call buffer))
                             listed))
         (others (seq-difference listed inside))
         (heading (format "%s, %d of the project; * is modified, %% read-only.\n"
                          (efrit-count-text (length listed) "buffer") (length inside))))
    (efrit-tool-result
     (concat (efrit-tool-mark-own heading)
             (efrit-buffer-tools--group call "In the project:" inside)
             (efrit-buffer-tools--group call "Others:" others))
     :summary heading
     :gist (efrit-count-text (length listed) "buffer"))))

(efrit-define-tool read_buffer
    ((buffer "string" "Name, or path of its file")
     (start_line "integer" "From 1" :optional t :minimum 1)
     (end_line "integer" "" :optional t :minimum 1)
     (tail "integer" "Last lines" :optional t :minimum 1))
  "Lines of any buffer, numbered: *compilation*, *Messages*, shells, files as \
they are in Emacs. The person is asked about buffers outside the project."
  :policy allow
  :guard (lambda (loop arguments)
           (efrit-buffer-tools-guard loop (plist-get arguments :buffer)))
  (let ((found (efrit-buffer-tools--find-buffer call buffer)))
    (with-current-buffer found
      (efrit-buffer-tools-check)
      (efrit-buffer-tools--text call start_line end_line tail))))

(defun efrit-buffer-tools-check ()
  "Signal an error if this buffer may hold secrets."
  (let ((base (or (buffer-base-buffer) (current-buffer))))
    (cond ((string-prefix-p " " (buffer-name))
           (user-error "%S is an internal buffer and may hold secrets; eval_sexp can read it, \
if the person allows it" (buffer-name)))
          ((minibufferp)
           (user-error "A minibuffer may hold a password; ask the person with ask_user"))
          ((or (apply #'derived-mode-p (default-value 'efrit-buffer-secret-modes))
               (if (buffer-file-name base)
                   (or (efrit-visit-secret-p (buffer-file-name base))
                       (efrit-visit-secret-p (efrit-host-true-file base)))
                 (efrit-visit-secret-p (concat "/" (buffer-name)))))
           (user-error "%s usually holds secrets; if the person allows it, read_file can read \
a file of the project, and eval_sexp any buffer" (buffer-name))))))

;;;; Lists

(defun efrit-buffer-tools--matches-p (buffer pattern)
  "Return non-nil if PATTERN is nil, or part of name, mode or file of BUFFER.
Return nil for a buffer whose name begins with a blank."
  (and (not (string-prefix-p " " (buffer-name buffer)))
       (or (null pattern)
           (let ((case-fold-search t))
             (string-match-p (regexp-quote pattern)
                             (format "%s\n%s\n%s" (buffer-name buffer)
                                     (buffer-local-value 'major-mode buffer)
                                     (or (buffer-file-name buffer) "")))))))

(defun efrit-buffer-tools--inside-p (call buffer)
  "Return non-nil if BUFFER belongs to the project of CALL.
The folder of a buffer without a file counts only in a mode of
`efrit-buffer-project-modes': a mail written in the project is private."
  (let ((place (or (buffer-file-name (or (buffer-base-buffer buffer) buffer))
                   (with-current-buffer buffer
                     (and (apply #'derived-mode-p (default-value 'efrit-buffer-project-modes))
                          default-directory)))))
    (and place (efrit-visit-inside-p call place))))

(defun efrit-buffer-tools-guard (loop name)
  "Return why to ask in LOOP before reading the buffer NAME, or nil.
Do not ask about a buffer that does not exist, or is never read."
  (let* ((call (efrit-tool-call-create :owner loop))
         (buffer (ignore-errors (efrit-buffer-tools--find-buffer call name))))
    (and buffer
         (not (efrit-buffer-tools--inside-p call buffer))
         (ignore-errors
           (with-current-buffer buffer
             (efrit-buffer-tools-check))
           t)
         (format "The buffer %s is outside the project." (buffer-name buffer)))))

(defun efrit-buffer-tools--group (call title buffers)
  "Return lines about BUFFERS below TITLE, for CALL; \"\" if there are none."
  (if buffers
      (concat (efrit-tool-mark-own title) "\n"
              (mapconcat (lambda (buffer) (efrit-buffer-tools--line call buffer)) buffers ""))
    ""))

(defun efrit-buffer-tools--line (call buffer)
  "Return the line about BUFFER in the list of buffers, for CALL."
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
  "Return the size of this buffer in lines, or in characters if it is large."
  (if (> (buffer-size) efrit-buffer-most-characters)
      (format "%d characters" (buffer-size))
    (save-restriction
      (widen)
      (efrit-count-text (count-lines (point-min) (point-max)) "line"))))

;;;; Reading

(defun efrit-buffer-tools--text (call start end tail)
  "Return the result of CALL: lines START to END, or TAIL, of this buffer."
  (let ((about (efrit-buffer-tools--heading call)))
    (pcase-let ((`(,first . ,last) (efrit-buffer-tools--lines start end tail)))
      (cond ((= (point-min) (point-max)) (efrit-buffer-tools--nothing about "It is empty."))
            ((efrit-buffer-tools--binary-p)
             (efrit-buffer-tools--nothing about "It is binary, and not shown."))
            (t (efrit-buffer-tools--read about first last))))))

(defun efrit-buffer-tools--nothing (about reason)
  "Return a result with the heading ABOUT and the REASON why no text follows."
  (concat (efrit-tool-mark-own about) "\n" (efrit-tool-mark-own reason)))

(defun efrit-buffer-tools--find-buffer (call name)
  "Return the buffer NAME, or the buffer of the file NAME in the project of CALL."
  (or (get-buffer name)
      (let ((file (ignore-errors (efrit-visit-file-inside call name))))
        (and file (find-buffer-visiting file)))
      (if (ignore-errors (file-exists-p (efrit-visit-file-inside call name)))
          (user-error "%s is not open in Emacs; read_file reads it" name)
        (user-error "There is no buffer %s; list_buffers names them" name))))

(defun efrit-buffer-tools--binary-p ()
  "Return non-nil if this buffer has an image, or binary data near its beginning."
  (save-excursion
    (goto-char (point-min))
    (let ((end (min (point-max) (+ (point-min) 100000))))
      (or (eq major-mode 'image-mode)
          (search-forward "\0" end t)
          (and (not enable-multibyte-characters)
               (re-search-forward "[^[:ascii:]]" end t))))))

(defun efrit-buffer-tools--lines (start end tail)
  "Return (FIRST . LAST), the numbers of the lines to read in this buffer.
START, END and TAIL are the tool's arguments; a nil LAST means the end."
  (pcase-let ((`(,lowest . ,highest) (efrit-buffer-tools--visible-lines)))
    (dolist (number (list start end tail))
      (when (and number (< number 1))
        (user-error "%d is not a valid line number; the first line is 1" number)))
    (cond ((and tail (or start end))
           (user-error "Give either tail, or start_line and end_line"))
          ((and start end (< end start))
           (user-error "Give an end_line of %d or more, not %d" start end))
          (tail (cons (max lowest (- highest tail -1)) highest))
          ((> (or start lowest) highest)
           (user-error "%s has lines %d to %d%s, but no line %d" (buffer-name) lowest highest
                       (if (buffer-narrowed-p) " (narrowed)" "") start))
          ((< (or end highest) lowest)
           (user-error "%s is narrowed to lines %d to %d" (buffer-name) lowest highest))
          (t (cons (max lowest (or start lowest)) (min highest (or end highest)))))))

(defun efrit-buffer-tools--visible-lines ()
  "Return (FIRST . LAST), the numbers of the accessible lines of this buffer."
  (let ((first (line-number-at-pos (point-min) t)))
    (cons first (max first (+ first -1 (count-lines (point-min) (point-max)))))))

(defun efrit-buffer-tools--heading (call)
  "Return the line above the text of this buffer in a result, for CALL."
  (let ((file (buffer-file-name (or (buffer-base-buffer) (current-buffer))))
        (visible (efrit-buffer-tools--visible-lines)))
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
  "Return the lines FIRST to LAST of this buffer below ABOUT, as a result."
  (save-excursion
    (goto-char (point-min))
    (forward-line (- first (line-number-at-pos (point-min) t)))
    (let* ((begin (point))
           (end (min (progn (forward-line (1+ (- last first))) (point))
                     (+ begin efrit-buffer-most-characters)))
           (lines (efrit-buffer-tools--numbered-lines first begin end))
           (last-read (+ first (max 0 (1- (length lines))))))
      (efrit-tool-result
       (string-join `(,about ,@lines ,@(efrit-buffer-tools--truncation-note end)) "\n")
       :summary (format "%s, lines %d to %d" about first last-read)))))

(defun efrit-buffer-tools--numbered-lines (first begin end)
  "Return the lines between BEGIN and END with their numbers, FIRST and so on."
  (cl-loop for line in (split-string (string-remove-suffix
                                      "\n" (buffer-substring-no-properties begin end))
                                     "\n")
           for number from first
           collect (format "%d\t%s" number line)))

(defun efrit-buffer-tools--truncation-note (end)
  "Return a list with a note if reading stopped at END, before point; else nil."
  (when (and (< end (point)) (< end (point-max)))
    (list (efrit-tool-mark-own
           (format "[Cut after %d characters, in line %d of %d; give start_line for more.]"
                   efrit-buffer-most-characters
                   (line-number-at-pos end t) (cdr (efrit-buffer-tools--visible-lines)))))))

;;; Documentation

;; Looks up symbols, keys, names by words, and nodes of manuals.  This loads no
;; library, and shows no values that could be secret.

(efrit-define-tool elisp_docs
    ((name "string" "Symbols; key: C-x C-f; words; node: (elisp)Buffers")
     (kind (:type "string" :enum ["symbol" "key" "apropos" "manual"]) ""
           :optional t))
  "Documentation of a symbol or a key; names that match words (apropos); a node of \
a manual."
  :policy allow
  (pcase kind
    ((or 'nil "symbol") (efrit-docs--symbols (split-string name "[ \t\n,]+" t)))
    ("key" (efrit-docs--key name))
    ("apropos" (efrit-docs--apropos name))
    ("manual" (efrit-docs--node name))
    (_ (user-error "Kind is symbol, key, apropos or manual, not %s" kind))))

;;;; Symbols

(defun efrit-docs--symbols (names)
  "Return the documentation of the symbols called NAMES, as a result."
  (let* ((texts (mapcar #'efrit-docs--symbol names))
         (known (delq nil (copy-sequence texts)))
         (unknown (cl-loop for name in names for text in texts unless text collect name))
         (problem (and unknown
                       (format "No symbol %s in this Emacs; kind apropos finds names by words"
                               (string-join unknown ", ")))))
    (unless known
      (user-error "%s" (or problem "Give the name of a symbol")))
    (efrit-tool-result
     (string-join (append known (and problem (list (efrit-tool-mark-own problem)))) "\n\n")
     :summary (replace-regexp-in-string "[ \t\n]+" " " (car known)))))

(defun efrit-docs--symbol (name)
  "Return the documentation of the function, variable and face called NAME, or nil."
  (let* ((symbol (intern-soft name))
         (parts (delq nil (list (and symbol (fboundp symbol) (efrit-docs--function symbol))
                                (and symbol (efrit-docs--variable-p symbol)
                                     (efrit-docs--variable symbol))
                                (and symbol (facep symbol)
                                     (format "%s is a face.\n%s" symbol
                                             (or (documentation-property
                                                  symbol 'face-documentation)
                                                 "Not documented.")))))))
    (and parts (string-join parts "\n\n"))))

;; Emacs 27 has only the second of these variables.
(defvar help-enable-symbol-autoload)
(defvar help-enable-autoload)

(defun efrit-docs--function (symbol)
  "Return the documentation of the function SYMBOL."
  (let ((help-enable-symbol-autoload nil)
        (help-enable-autoload nil))
    (format "%s is %s" symbol
            (string-trim
             (with-temp-buffer
               (let ((standard-output (current-buffer)))
                 (describe-function-1 symbol))
               (buffer-substring-no-properties (point-min) (point-max)))))))

(defun efrit-docs--variable-p (symbol)
  "Return non-nil if SYMBOL is a variable."
  (or (boundp symbol) (get symbol 'variable-documentation)))

(defun efrit-docs--variable (symbol)
  "Return the documentation of the variable SYMBOL."
  (string-join
   (delq nil
         (list (format "%s is %s%s." symbol
                       (if (custom-variable-p symbol) "an option" "a variable")
                       (if-let* ((file (symbol-file symbol 'defvar)))
                           (format " of %s" (file-name-nondirectory file)) ""))
               (efrit-docs--value-line symbol)
               (efrit-docs--property symbol 'standard-value "Default: %s")
               (efrit-docs--property symbol 'custom-type "Type: %s")
               (and (local-variable-if-set-p symbol) "It is local to a buffer where it is set.")
               (when-let* ((obsolete (get symbol 'byte-obsolete-variable)))
                 (format "It is obsolete since %s; use %s." (nth 2 obsolete) (car obsolete)))
               (when-let* ((text (documentation-property symbol 'variable-documentation)))
                 (concat "\n" (substring-no-properties (substitute-command-keys text))))))
   "\n"))

(defun efrit-docs--value-line (symbol)
  "Return a line on the value of SYMBOL, or nil if it is unbound.
Show numbers and symbols only, which cannot be secret."
  (when (default-boundp symbol)
    (let ((value (default-value symbol)))
      (if (or (symbolp value) (numberp value))
          (format "Value: %S" value)
        (format "Value: a %s, not shown; eval_sexp can show it." (type-of value))))))

(defun efrit-docs--property (symbol property format)
  "Return PROPERTY of SYMBOL, at most 500 columns of it, put into FORMAT, or nil."
  (when-let* ((value (get symbol property)))
    (format format
            (truncate-string-to-width
             (let ((print-escape-newlines t))
               (prin1-to-string (if (eq property 'standard-value) (car value) value)))
             500 nil nil "…"))))

;;;; Keys

(defun efrit-docs--key (name)
  "Return the documentation of the command of the key NAME in the selected window."
  (let ((key (kbd name))
        (buffer (window-buffer (selected-window))))
    (when (equal key "")
      (user-error "Give a key, such as C-x C-f"))
    (with-current-buffer buffer
      (let ((command (key-binding key)))
        (cond ((or (null command) (numberp command))
               (efrit-tool-mark-own (format "%s runs nothing in %s (%s)." name (buffer-name)
                                            major-mode)))
              ((keymapp command) (efrit-docs--prefix-keys name command))
              ((symbolp command)
               (format "%s runs %s in %s (%s).\n\n%s" name command (buffer-name) major-mode
                       (efrit-docs--function command)))
              (t (format "%s runs a function without a name in %s (%s)." name (buffer-name)
                         major-mode)))))))

(defun efrit-docs--prefix-keys (name map)
  "Return the keys behind the prefix NAME and their commands, from MAP."
  (let ((lines nil))
    (map-keymap (lambda (event command)
                  (push (format "%s %s  %s" name (single-key-description event)
                                (cond ((keymapp command) "a prefix")
                                      ((symbolp command) command)
                                      (t "a function without a name")))
                        lines))
                map)
    (string-join (cons (format "%s is a prefix." name) (sort lines #'string<)) "\n")))

;;;; Names

(defun efrit-docs--apropos (words)
  "Return the names that have all of WORDS, a string, in them."
  (let* ((words (split-string words))
         (symbols (and words
                       (apropos-internal
                        (regexp-quote (car words))
                        (lambda (symbol)
                          (and (or (fboundp symbol) (facep symbol)
                                   (efrit-docs--variable-p symbol))
                               (seq-every-p (lambda (word)
                                              (string-search word (symbol-name symbol)))
                                            words)))))))
    (unless words
      (user-error "Give words of a name"))
    (let ((heading (format "%d names with %s" (length symbols) (string-join words ", "))))
      (efrit-tool-result
       (string-join (cons (efrit-tool-mark-own heading)
                          (mapcar #'efrit-docs--symbol-line (sort symbols #'string<)))
                    "\n")
       :summary heading
       :gist (efrit-count-text (length symbols) "name")))))

(defun efrit-docs--symbol-line (symbol)
  "Return a line with SYMBOL, its kinds, and the first line of its documentation."
  (let* ((kinds (delq nil (list (and (fboundp symbol)
                                     (cond ((commandp symbol) "command")
                                           ((macrop symbol) "macro")
                                           (t "function")))
                                (and (efrit-docs--variable-p symbol)
                                     (if (custom-variable-p symbol) "option" "variable"))
                                (and (facep symbol) "face"))))
         (text (ignore-errors
                 (or (and (fboundp symbol) (documentation symbol t))
                     (documentation-property symbol 'variable-documentation t)
                     (documentation-property symbol 'face-documentation t)))))
    (format "%s (%s)%s" symbol (string-join kinds ", ")
            (if (stringp text) (concat ": " (car (split-string text "\n"))) ""))))

;;;; Manuals

(declare-function Info-find-node "info" (filename nodename &optional no-going-back strict-case))

(defun efrit-docs--node (name)
  "Return the text of the node NAME: (manual)node, (manual), or a node of (elisp)."
  (unless (string-match "\\`\\(?:(\\([[:alnum:]_.+-]+\\))\\)?\\([^(/*\n]*\\)\\'" name)
    (user-error "Give a node as (elisp)Buffers"))
  (let ((manual (or (match-string 1 name) "elisp"))
        (node (string-trim (match-string 2 name))))
    (require 'info)
    (with-temp-buffer
      (let ((Info-history nil)
            (Info-history-list nil)
            (Info-selection-hook nil)
            (inhibit-interaction t)
            (inhibit-message t))
        (Info-mode)
        (condition-case err
            (Info-find-node manual (if (string-empty-p node) "Top" node) t)
          (error (user-error "(%s)%s is not installed: %s; Debian has Emacs's manuals in \
a package of their own" manual node (error-message-string err)))))
      (string-trim (buffer-substring-no-properties (point-min) (point-max))))))

;;; Showing text to the person

;; Shows lines of a file, a stored result, or a text in another window.  The
;; selected window stays, so that the person is not interrupted.

(defvar efrit-show-tool--highlights nil
  "The overlays that highlight the lines shown last.")

(efrit-define-tool show_in_emacs
    ((path "string" "" :optional t)
     (start_line "integer" "Highlighted" :optional t :minimum 1)
     (end_line "integer" "" :optional t :minimum 1)
     (text "string" "" :optional t)
     (handle "string" "Or a result: r7" :optional t)
     (mode "string" "Of text: diff-mode, grep-mode" :optional t)
     (title "string" "" :optional t))
  "Show the person a file's lines, a text, or a stored result in another window."
  :policy allow
  :async t
  (let ((mode (efrit-show-tool--mode mode)))
    (pcase (seq-count #'identity (list path text handle))
      (1 (cond (path (efrit-tool-finish
                      call (efrit-show-tool--file call path start_line end_line)))
               (text (efrit-tool-finish
                      call (efrit-show-tool--text call text mode title)))
               (t (efrit-show-tool--result call handle mode title))))
      (_ (user-error "Give one of: path, text, handle")))))

;;;; Files

(defun efrit-show-tool--file (call path start end)
  "Show the file PATH of CALL, with lines START to END highlighted; return a note."
  (let* ((file (efrit-visit-existing-file call path))
         (visit (efrit-visit-open file)))
    (with-current-buffer (car visit)
      (let ((region (and start (efrit-show-tool--region path start (or end start)))))
        (mapc #'delete-overlay efrit-show-tool--highlights)
        (setq efrit-show-tool--highlights nil)
        (when region
          (efrit-show-tool--highlight (car region) (cdr region)))
        (efrit-show-tool--display (car visit) (car region))
        (efrit-tool-mark-own
         (format "%s is shown%s." path
                 (cond ((null start) "")
                       ((= start (or end start)) (format " at line %d" start))
                       (t (format ", lines %d to %d" start end)))))))))

(defun efrit-show-tool--region (path start end)
  "Return (BEGIN . END) of the lines START to END of this buffer.
Widen the buffer if they are outside its narrowing.  PATH is the file's
name for the model."
  (when (or (< start 1) (< end start))
    (user-error "Invalid line range %d-%d; the first line is 1" start end))
  (let ((region (save-restriction
                  (widen)
                  (save-excursion
                    (goto-char (point-min))
                    (when (or (> (forward-line (1- start)) 0)
                              (and (eobp) (bolp) (> start 1)))
                      (user-error "%s has %d lines, but no line %d" path
                                  (count-lines (point-min) (point-max)) start))
                    (cons (point)
                          (progn (forward-line (- (1+ end) start)) (point)))))))
    (unless (<= (point-min) (car region) (cdr region) (point-max))
      (widen))
    region))

(defun efrit-show-tool--highlight (begin end)
  "Highlight the text from BEGIN to END in this buffer for `efrit-show-seconds'."
  (let ((overlay (make-overlay begin end)))
    (overlay-put overlay 'face 'efrit-shown)
    (overlay-put overlay 'priority 100)
    (overlay-put overlay 'evaporate t)
    (push overlay efrit-show-tool--highlights)
    (when efrit-show-seconds
      (efrit-run-at-time efrit-show-seconds nil #'delete-overlay overlay))))

(defun efrit-show-tool--display (buffer &optional position)
  "Display BUFFER, at POSITION if any, in a window that is not selected."
  (let ((window (display-buffer
                 buffer '((display-buffer-reuse-window display-buffer-pop-up-window
                                                       display-buffer-use-some-window
                                                       display-buffer-no-window)
                          (inhibit-same-window . t)
                          (allow-no-window . t)
                          (inhibit-switch-frame . t)))))
    (when (and window (not (eq window (selected-window))) position)
      (set-window-point window position)
      (with-selected-window window
        (recenter)))))

;;;; Texts

(defun efrit-show-tool--mode (name)
  "Return the major mode called NAME, a symbol, or nil if NAME is nil.
Accept only modes that Emacs uses for files of text, and some for lists, since
NAME could be any function."
  (let ((mode (and name (intern-soft name))))
    (cond ((null name) nil)
          ((null mode) (user-error "Unknown mode %s; omit mode, or give one such as text-mode" name))
          ((or (memq mode '(text-mode diff-mode grep-mode compilation-mode outline-mode
                                      special-mode org-mode markdown-mode))
               (and (seq-some (lambda (entry)
                                (eq (if (consp (cdr entry)) (cadr entry) (cdr entry)) mode))
                              auto-mode-alist)
                    (efrit-file-text-mode-p mode)))
           (if (fboundp mode) mode 'text-mode))
          (t (user-error "%s is not a major mode for text" name)))))

(defun efrit-show-tool--text (call text mode title)
  "Show TEXT in MODE, nil for a guess, for CALL, under TITLE; return a note."
  (let* ((mode (or mode (if (string-match-p "^--- .*\n\\+\\+\\+ .*\n@@ " text)
                           'diff-mode
                         'text-mode)))
         (name (efrit-visit-one-line
                (format "*efrit: %s*" (truncate-string-to-width (or title "shown") 60
                                                                nil nil "…"))))
         (buffer (efrit-show-tool--buffer name)))
    (with-current-buffer buffer
      (efrit-show-tool--fill text mode (efrit-visit-root call))
      (goto-char (point-min)))
    (efrit-show-tool--display buffer)
    (efrit-tool-mark-own (format "The text is shown in %s (%s)." name mode))))

(defvar-local efrit-show-tool--own nil
  "Non-nil in a buffer that was made to show a text.")

(put 'efrit-show-tool--own 'permanent-local t)

(defun efrit-show-tool--buffer (name)
  "Return the buffer NAME for a text, a new one or that of an earlier text.
Signal an error if NAME is a buffer for something else, such as a session."
  (let ((known (get-buffer name)))
    (when (and known (or (buffer-file-name known)
                         (not (buffer-local-value 'efrit-show-tool--own known))))
      (user-error "There is another buffer called %s; give another title" name))
    (with-current-buffer (get-buffer-create name)
      (setq efrit-show-tool--own t)
      (current-buffer))))

(defun efrit-show-tool--fill (text mode root)
  "Replace the text of this buffer with TEXT, in MODE, with ROOT as directory.
Do not run the mode's hooks: they may start programs that run code in TEXT."
  (let ((inhibit-read-only t)
        (enable-local-variables nil))
    (erase-buffer)
    (delay-mode-hooks (funcall mode))
    (when (derived-mode-p 'compilation-mode)
      ;; `next-error' skips a message in the first line.
      (insert (buffer-name) "\n\n"))
    (insert text)
    (setq default-directory root
          buffer-undo-list t
          buffer-read-only t)
    (set-buffer-modified-p nil)
    (font-lock-mode 1)))

;;;; Stored results

(defun efrit-show-tool--result (call handle mode title)
  "Show the stored result HANDLE of the session of CALL in MODE under TITLE.
This costs no tokens, and does not count as a use of the result."
  (efrit-loop-ask-sidecar
   (efrit-tool-call-owner call) 'worklog/show
   (list :handle handle :most efrit-show-most-characters)
   (lambda (result)
     (efrit-tool-catch-errors call
       (efrit-tool-finish
        call (efrit-show-tool--text call (or (plist-get result :text) "") mode
                                    (or title handle)))))
   (lambda (err) (efrit-tool-fail call (efrit-error-text err)))))

;;; Tags of a project

;; Uses the TAGS file of a project temporarily, without a question, and without
;; trusting it: it may name any file.

(defun efrit-tags-call (call body)
  "Call the function BODY with the tags of CALL's project, else the person's.
Its argument is non-nil if there is a tags table.  Afterwards, restore the
person's selection of tags tables."
  (require 'etags)
  (let* ((own (expand-file-name "TAGS" (efrit-visit-root call)))
         (tags-file-name (if (file-regular-p own) own tags-file-name))
         (tags-table-list (if (file-regular-p own) (list own) tags-table-list))
         (tags-table-computed-list nil)
         (tags-table-computed-list-for nil)
         (tags-table-list-pointer nil)
         (tags-table-list-started-at nil)
         (tags-table-set-list nil)
         (default-tags-table-function nil))
    (funcall body (or tags-file-name tags-table-list))))

(defun efrit-tags-definitions (name)
  "Return the definitions of NAME in the tags, as xref items.
The etags backend of Emacs 30 is not used: it connects to any machine named
in the tags, and signals an error if a file is gone."
  (let ((buffer (current-buffer))
        (next nil)
        (found nil))
    (save-excursion
      (while (visit-tags-table-buffer next buffer)
        (setq next t)
        (goto-char (point-min))
        (while (search-forward name nil t)
          (when (or (tag-exact-match-p name) (tag-implicit-name-match-p name))
            (forward-line 0)
            (let ((tag (etags-snarf-tag)))
              (push (xref-make (if (eq (car tag) t) "(filename match)" (car tag))
                               (xref-make-etags-location tag (expand-file-name (file-of-tag))))
                    found))))))
    (nreverse found)))

;;; Definitions, references and outlines

;; Asks the person's backends of xref and imenu, without prompts.  If a backend
;; would search files in folders, a child process does the search instead.

(defconst efrit-code--most-columns 300
  "Most columns of a line in a result.")

(defconst efrit-code--limit "ulimit -d 786432 2>/dev/null; exec \"$@\""
  "Script that runs the command in its arguments with 768 MiB of memory.
A pattern in a .gitignore of the project may need memory without end.")

(cl-defstruct (efrit-code-place (:constructor efrit-code-place-create) (:copier nil))
  "A place in a file: FILE, LINE or nil, and TEXT, the text of the line."
  file line text)

(efrit-define-tool find_definition
    ((symbol "string" "")
     (path "string" "" :optional t)
     (line "integer" "" :optional t :minimum 1))
  "Definitions of a symbol, by xref (language server, tags, Lisp)."
  :policy allow
  (efrit-code--found-result call symbol
                            (efrit-code--ask call symbol path line #'xref-backend-definitions)
                            "definition"))

(efrit-define-tool find_references
    ((symbol "string" "")
     (path "string" "" :optional t)
     (line "integer" "" :optional t :minimum 1))
  "References to a symbol, by xref, or by text search without an index."
  :policy allow
  :async t
  (let ((answer (efrit-code--ask call symbol path line #'efrit-code--references)))
    (if (eq (cdr answer) 'search)
        (efrit-code--search call symbol path (car answer))
      (efrit-tool-finish
       call (efrit-code--found-result call symbol answer "reference")))))

(efrit-define-tool buffer_outline
    ((path "string" "File or buffer"))
  "Definitions or headings in a file, nested, with their lines, by imenu."
  :policy allow
  :guard (lambda (loop arguments)
           (efrit-buffer-tools-guard loop (plist-get arguments :path)))
  (let ((buffer (get-buffer path)))
    (if buffer
        (with-current-buffer buffer
          (efrit-buffer-tools-check)
          (efrit-visit-quietly #'efrit-code--outline path))
      (efrit-visit-with (efrit-visit-existing-file call path) #'efrit-code--outline path))))

;;;; Asking xref

(defun efrit-code--ask (call symbol path line query)
  "Ask xref about SYMBOL for CALL by QUERY, a function of backend and name.
Ask in the file PATH at LINE; without PATH, ask in open files of the project
until one has places.  Return (BACKEND . PLACES); BACKEND is nil if there is
none, PLACES is `search' if the backend would search folders."
  (when (string-blank-p symbol)
    (user-error "Give a symbol"))
  (require 'xref)
  (if path
      (efrit-visit-with (efrit-visit-existing-file call path)
                        (lambda ()
                          (efrit-code--go-to symbol path line)
                          (efrit-code--ask-here call symbol query)))
    (when line
      (user-error "Give a path with line %d" line))
    (efrit-code--ask-each call symbol query)))

(defun efrit-code--go-to (symbol path line)
  "Move to SYMBOL in LINE of this buffer; without LINE, to its first occurrence.
PATH is the name of the file for an error."
  (widen)
  (goto-char (point-min))
  (when line
    (forward-line (1- line)))
  (let ((case-fold-search nil))
    (if (search-forward symbol (and line (line-end-position)) t)
        (goto-char (match-beginning 0))
      (when line
        (user-error "%s is not in line %d of %s" symbol line path)))))

(defun efrit-code--ask-each (call symbol query)
  "Ask by QUERY about SYMBOL in one open file of each mode in CALL's project.
Return as `efrit-code--ask' does."
  (let ((asked nil)
        (answer nil))
    (dolist (buffer (efrit-visit-buffers call))
      (with-current-buffer buffer
        (unless (or (consp (cdr answer)) (member major-mode asked))
          (push major-mode asked)
          (let ((found (save-excursion
                         (save-restriction
                           (efrit-visit-and-release
                            #'efrit-code--ask-here call symbol query)))))
            (when (or (null answer) (cdr found))
              (setq answer found))))))
    (or answer
        (let ((default-directory (efrit-visit-root call)))
          (with-temp-buffer
            (efrit-visit-and-release #'efrit-code--ask-here call symbol query))))))

(defun efrit-code--ask-here (call symbol query)
  "Ask the backend of this buffer by QUERY about SYMBOL for CALL.
Return as `efrit-code--ask' does."
  (efrit-tags-call call
    (lambda (has-tags)
      (let* ((root (efrit-visit-root call))
             ;; A backend that needs the project must not prompt for it.
             (project-find-functions (list (lambda (_) (cons 'transient root))))
             (backend (xref-find-backend)))
        (if (and (eq backend 'etags) (not has-tags))
            (cons nil (and (eq query #'efrit-code--references) 'search))
          (let* ((here (ignore-errors (xref-backend-identifier-at-point backend)))
                 ;; The text at point may have properties that the backend needs.
                 (identifier (if (and here (string= here symbol)) here symbol))
                 (found (efrit-code--query backend query identifier)))
            (cons backend (if (eq found 'search) 'search
                            (efrit-code--sorted
                             call (mapcar (lambda (item) (efrit-code--place call item))
                                          (seq-take found efrit-code-most-places)))))))))))

(defun efrit-code--query (backend query identifier)
  "Call QUERY with BACKEND and IDENTIFIER within `efrit-code-seconds'.
Prevent project.el from remembering the project."
  (cl-letf (((symbol-function 'project-remember-project) #'ignore))
    (with-timeout (efrit-code-seconds
                   (user-error "%s did not answer within %s seconds"
                               backend efrit-code-seconds))
      (if (and (eq backend 'etags) (eq query #'xref-backend-definitions))
          (efrit-tags-definitions identifier)
        (funcall query backend identifier)))))

(defun efrit-code--references (backend identifier)
  "Return the references to IDENTIFIER known to BACKEND.
Return `search' if BACKEND would search folders."
  (catch 'efrit-code--search
    (cl-letf (((symbol-function 'xref-references-in-directory)
               (lambda (&rest _) (throw 'efrit-code--search 'search))))
      (xref-backend-references backend identifier))))

;;;; Places

(defun efrit-code--sorted (call places)
  "Return PLACES without duplicates, sorted by file, as named for CALL, and line."
  (efrit-visit-sort call places #'efrit-code-place-file #'efrit-code-place-line))

(defun efrit-code--place (call item)
  "Return the `efrit-code-place' of ITEM, an xref item, for CALL."
  (let* ((location (xref-item-location item))
         (group (expand-file-name (xref-location-group location) (efrit-visit-root call)))
         (line (xref-location-line location)))
    (or (and (not (and line (xref-match-item-p item)))
             (equal (file-remote-p group) (file-remote-p (efrit-visit-root call)))
             ;; If the file were a named pipe, Emacs would wait for ever.
             (or (get-file-buffer group) (file-regular-p group))
             (efrit-code--place-of-marker
              call item (ignore-errors (xref-location-marker location))))
        (efrit-code-place-create :file group :line line :text (xref-item-summary item)))))

(defun efrit-code--place-of-marker (call item marker)
  "Return the place at MARKER, or nil; ITEM is the xref item of MARKER.
Do not read the line if its file is outside the project of CALL."
  (when-let* ((buffer (and marker (marker-buffer marker)))
              (file (buffer-file-name buffer)))
    (with-current-buffer buffer
      (save-excursion
        (goto-char marker)
        (efrit-code-place-create
         :file file :line (line-number-at-pos nil t)
         :text (if (efrit-visit-inside-p call file)
                   (buffer-substring-no-properties (line-beginning-position)
                                                   (line-end-position))
                 (xref-item-summary item)))))))

(defun efrit-code--place-line (call place)
  "Return a line with the file, line number and text of PLACE, for CALL."
  (concat (efrit-visit-name call (efrit-code-place-file place))
          (if (efrit-code-place-line place) (format ":%d" (efrit-code-place-line place)) "")
          ": "
          (truncate-string-to-width
           (if (efrit-visit-secret-p (efrit-code-place-file place))
               "(a file of secrets)"
             (efrit-visit-one-line (efrit-trim (or (efrit-code-place-text place) ""))))
           efrit-code--most-columns nil nil "…")))

(defun efrit-code--found-result (call symbol answer thing)
  "Return the result for CALL about SYMBOL, from ANSWER of `efrit-code--ask'.
THING is the noun for a place: \"definition\" or \"reference\"."
  (pcase-let ((`(,backend . ,places) answer))
    (if (null places)
        (efrit-tool-result (efrit-tool-mark-own (efrit-code--not-found-text backend symbol thing))
                           :summary (format "No %s of %s was found." thing symbol)
                           :gist (format "no %s" thing))
      (let ((heading (format "%s of %s (%s)%s" (efrit-count-text (length places) thing)
                             symbol backend
                             (if (< (length places) efrit-code-most-places) ":"
                               ", the first; there may be more:")))
            (lines (mapcar (lambda (place) (efrit-code--place-line call place)) places)))
        (efrit-tool-result (string-join (cons (efrit-tool-mark-own heading) lines) "\n")
                           :summary (concat heading " " (car lines))
                           :gist (efrit-count-text (length places) thing))))))

(defun efrit-code--not-found-text (backend symbol thing)
  "Return the text for the model if BACKEND found no THING of SYMBOL."
  (concat (if backend
              (format "%s found no %s of %s" backend thing symbol)
            (format "No language server and no TAGS here to look up %s" symbol))
          "; list_symbols and search_content search the text."))

;;;; Searching text

(defun efrit-code--search (call symbol path backend)
  "Search the project of CALL for SYMBOL as text, and finish CALL.
The syntax table of the file PATH, or the standard one, delimits symbols;
BACKEND is the xref backend without an index, or nil."
  (let ((syntax (if path
                    (efrit-visit-with (efrit-visit-existing-file call path) #'syntax-table)
                  (standard-syntax-table))))
    (efrit-child-run
     call (let ((default-directory (efrit-visit-root call)))
            (efrit-code--search-command symbol))
     (lambda (output end)
       (efrit-tool-finish
        call (efrit-code--search-result call symbol backend syntax output end)))
     :directory (efrit-visit-root call)
     :seconds 60 :most 10000000)))

(defun efrit-code--search-command (symbol)
  "Return the command, a list of strings, to search this directory for SYMBOL."
  (append
   (list "sh" "-c" efrit-code--limit "sh")
   (if-let* ((rg (let ((exec-path (efrit-exec-path))) (executable-find "rg" t))))
       (list rg "--no-config" "--line-number" "--no-heading" "--with-filename" "--null"
             "--color=never" "--word-regexp" "--fixed-strings" "--sort=path" "-e" symbol "./")
     (list "grep" "-rnIHwFZ" "--exclude-dir=.git" "-e" symbol "."))))

(defun efrit-code--search-result (call symbol backend syntax output end)
  "Return the result for CALL of a search for SYMBOL with the output OUTPUT.
BACKEND and SYNTAX are as in `efrit-code--search', END as in
`efrit-child-run'."
  (when (and (numberp end) (> end 1) (string-empty-p output))
    (error "The search for %s failed (%s)" symbol end))
  (let* ((method (format "by text%s" (if backend (format "; %s has no index" backend) "")))
         (places (efrit-code--matches call symbol syntax
                                      (decode-coding-string output 'utf-8-unix)))
         (result (efrit-code--found-result call symbol (cons method places) "reference")))
    (if (null places)
        (efrit-tool-result
         (efrit-tool-mark-own (format "%s is nowhere in the project (searched %s)." symbol method)))
      (when (symbolp end)
        (plist-put result :text (concat (plist-get result :text)
                                        "\n"
                                        (efrit-tool-mark-own
                                         "[The search was cut; search_content shows all.]"))))
      result)))

(defun efrit-code--matches (call symbol syntax output)
  "Return the places in OUTPUT, of a search for CALL, that have SYMBOL as a whole.
SYNTAX is the syntax table that delimits symbols."
  (with-syntax-table syntax
    (let ((regexp (if (string-match-p "\\`\\(?:\\sw\\|\\s_\\)+\\'" symbol)
                      (format "\\_<%s\\_>" (regexp-quote symbol))
                    (regexp-quote symbol)))
          (case-fold-search nil))
      (efrit-code--sorted
       call
       (seq-take
        (cl-loop for line in (split-string output "\n" t)
                 for place = (efrit-code--match call line)
                 when (and place
                           (string-match-p regexp (efrit-code-place-text place))
                           (not (efrit-visit-secret-p (efrit-code-place-file place))))
                 collect place)
        efrit-code-most-places)))))

(defun efrit-code--match (call line)
  "Return the place that LINE of a search's output names, for CALL, or nil."
  (when (string-match "\\`\\(?:\\./\\)?\\([^\0]+\\)\0\\([0-9]+\\):\\(.*\\)\\'" line)
    (efrit-code-place-create
     :file (expand-file-name (match-string 1 line) (efrit-visit-root call))
     :line (string-to-number (match-string 2 line))
     :text (match-string 3 line))))

;;;; Outlines

(defun efrit-code--outline (path)
  "Return the outline of this buffer as a tool's result; PATH is its name there."
  (save-excursion
    (save-restriction
      (widen)
      (require 'imenu)
      (let* ((index (condition-case err
                        (funcall imenu-create-index-function)
                      (error (user-error "%s has no outline in %s: %s; use read_file or \
list_symbols" path major-mode (error-message-string err)))))
             (lines (efrit-code--outline-lines index 0))
             (heading (format "%s (%s): %d entries" path major-mode (length lines))))
        (efrit-tool-result (string-join (cons (efrit-tool-mark-own heading) lines) "\n")
                           :summary (concat heading ": "
                                            (mapconcat #'efrit-trim lines ", "))
                           :gist (if (= (length lines) 1) "1 entry"
                                   (format "%d entries" (length lines))))))))

(defun efrit-code--outline-lines (index depth)
  "Return a list of lines for INDEX, of imenu, at nesting level DEPTH, from 0."
  (cl-loop for item in index
           when item append
           (if (and (consp (cdr item)) (listp (cadr item)) (not (functionp (cadr item))))
               (cons (efrit-code--outline-line (car item) nil depth)
                     (efrit-code--outline-lines (cdr item) (1+ depth)))
             (list (efrit-code--outline-line
                    (car item)
                    (if (consp (cdr item)) (cadr item) (cdr item))
                    depth)))))

(defun efrit-code--outline-line (name position depth)
  "Return a line about NAME at POSITION, nil for a group, at nesting level DEPTH."
  (let ((position (if (overlayp position) (overlay-start position) position)))
    (concat (make-string (* 2 depth) ?\s)
            (if (integer-or-marker-p position)
                (format "%d " (line-number-at-pos position t))
              "")
            (truncate-string-to-width (efrit-visit-one-line (substring-no-properties name))
                                      efrit-code--most-columns nil nil "…"))))

(provide 'efrit-tools-emacs)
;;; efrit-tools-emacs.el ends here
