;;; efrit-files.el --- Files and their buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Opens and reloads files; makes changes of files in their buffers; makes diffs
;; of texts.  Sends unsaved buffers to the sidecar, and reverts buffers whose
;; files a command changed.

;;; Code:

(require 'diff)
(require 'efrit)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-tools)

;;; Files and their buffers

;; A file is opened without a question, and its text is set without moving point
;; in any window.  Of a file on another machine these functions use what the
;; sidecar there reports, since each question to TRAMP takes a round trip or more.

(defun efrit-file-buffer (file)
  "Return the buffer that visits FILE, or nil.
For a remote FILE, compare names only."
  (if (file-remote-p file)
      (seq-find (lambda (buffer)
                  (and (buffer-file-name buffer)
                       (member file (list (buffer-file-name buffer)
                                          (efrit-host-true-file buffer)))))
                (buffer-list))
    (or (get-file-buffer file) (find-buffer-visiting file))))

(defmacro efrit-file-quietly (&rest body)
  "Run BODY; visiting a file in it asks nothing and cannot run the file's code."
  (declare (indent 0) (debug t))
  `(let ((enable-local-variables nil)
         (large-file-warning-threshold nil)
         (find-file-suppress-same-file-warnings t)
         (vc-follow-symlinks t)
         ;; Version control would run git with the repository's configuration.
         (vc-handled-backends nil)
         (inhibit-message t))
     ,@body))

(defun efrit-file-visit (file)
  "Return the buffer that visits FILE; if there is none, open FILE quietly.
For a file just opened, use the major mode that FILE names if it is for text,
and set those of its local variables that are safe.  A remote file is not
auto-saved: TRAMP would ask whether it may, if the file is root's."
  (or (efrit-file-buffer file)
      (let ((auto-save-default (and auto-save-default (not (file-remote-p file)))))
        (with-current-buffer (efrit-file-quietly (find-file-noselect file t))
          (efrit-file-quietly
            (let ((mode (let ((enable-local-variables :safe))
                          (ignore-errors (hack-local-variables t)))))
              (when (efrit-file-text-mode-p mode)
                (funcall mode)))
            (efrit-file-take-variables (lambda () (hack-local-variables 'no-mode))))
          (current-buffer)))))

(defun efrit-file-take-variables (hack)
  "Call HACK, a setter of file-local variables; let it set only safe variables.
Drop the variable `mode', since it could name any function ending in \"-mode\"."
  (let ((enable-local-variables :safe)
        (enable-local-eval nil)
        (before-hack-local-variables-hook
         (list (lambda ()
                 (setq file-local-variables-alist
                       (assq-delete-all 'mode file-local-variables-alist))))))
    (ignore-errors
      (funcall hack))))

(defun efrit-file-text-mode-p (mode)
  "Return non-nil if MODE is for text; other modes run programs, or show images."
  (and mode
       (fboundp mode)
       (progn (ignore-errors (autoload-do-load (symbol-function mode) mode)) t)
       (seq-some (lambda (parent) (provided-mode-derived-p mode parent))
                 '(text-mode prog-mode conf-mode))))

(defun efrit-file-visit-as (file)
  "Make this buffer visit FILE, without a question.
It takes the place of an unmodified buffer that already visits FILE."
  (let ((former (efrit-file-buffer file))
        (inhibit-message t))
    (unless (or (null former) (eq former (current-buffer)) (buffer-modified-p former))
      (dolist (window (get-buffer-window-list former nil t))
        (set-window-buffer window (current-buffer)))
      (efrit-file-kill-unused former))
    (if (file-remote-p file)
        (efrit-file--set-name file)
      (set-visited-file-name file t t))))

(defun efrit-file-kill-unused (buffer)
  "Kill BUFFER, which visits a file, unless it is modified or in a window."
  (unless (or (buffer-modified-p buffer) (get-buffer-window buffer t))
    (let ((kill-buffer-query-functions nil))
      (kill-buffer buffer))))

(defun efrit-file-text (buffer)
  "Return the whole text of BUFFER, narrowed or not."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun efrit-file-local-to-emacs (root name)
  "Return the file name in Emacs of NAME, a file name from the sidecar of ROOT.
Prepend the remote prefix of ROOT, if any.  Unquote NAME: the sidecar quotes a
name with hidden characters like a string in C."
  (concat (file-remote-p root)
          (if (string-prefix-p "\"" name)
              (decode-coding-string (encode-coding-string (read name) 'utf-8-unix) 'utf-8-unix)
            name)))

(defun efrit-file-decode (bytes file &optional coding)
  "Return (TEXT . CODING): BYTES decoded as Emacs would decode the content of FILE.
CODING is the file's coding system; nil means detect it."
  (let ((coding-system-for-read coding))
    (with-temp-buffer
      (insert bytes)
      (decode-coding-inserted-region (point-min) (point-max) (file-local-name file))
      (unless coding
        (after-insert-file-set-coding (buffer-size) t))
      (cons (buffer-string) (efrit-file-coding (or coding buffer-file-coding-system))))))

(defun efrit-file-bytes (buffer)
  "Return the whole text of BUFFER as the bytes of its file, a unibyte string."
  (encode-coding-string (efrit-file-text buffer)
                        (efrit-file-coding
                         (buffer-local-value 'buffer-file-coding-system buffer))))

(defun efrit-file-set-text (buffer text)
  "Replace the text of BUFFER with TEXT in one step of undo.
Points, marks and windows keep their places."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (undo-boundary)
      (let ((group (prepare-change-group))
            ;; Emacs would ask a question if the file has changed on disk.
            (buffer-file-truename nil))
        (activate-change-group group)
        (efrit-file--splice text)
        (undo-amalgamate-change-group group)
        (accept-change-group group)
        (undo-boundary)))))

(defun efrit-file-reload (buffer text modtime coding)
  "Replace the text of BUFFER with TEXT, which its file has since MODTIME.
CODING is the file's coding system.  Point, windows and the undo history are
kept."
  (with-current-buffer buffer
    (let ((inhibit-read-only t))
      ;; Without a file name, Emacs asks nothing about a file that changed on
      ;; disk.  Set the file's time after the text, so that undo marks the
      ;; buffer as modified.
      (let ((buffer-file-name nil))
        (efrit-file-set-text buffer text))
      (efrit-file-set-time modtime)
      (set-buffer-modified-p nil)
      (setq buffer-file-coding-system coding))))

(defun efrit-file-set-time (modtime)
  "Record that this buffer's file was modified at MODTIME.
TRAMP forgets what it knew of the file."
  (set-visited-file-modtime modtime)
  (if (file-remote-p buffer-file-name)
      (efrit-remote-forget-file buffer-file-name)
    (setq buffer-file-number (nthcdr 10 (file-attributes buffer-file-name)))))

(defun efrit-file-run-save-hooks ()
  "Run the hooks that run before this buffer is saved.
Return non-nil if one of them has saved it."
  (let ((require-final-newline nil)
        (mode-require-final-newline nil)
        (inhibit-message t))
    (run-hooks 'before-save-hook)
    (or (run-hook-with-args-until-success 'write-contents-functions)
        (run-hook-with-args-until-success 'write-file-functions))))

(defun efrit-file-run-saved-hooks ()
  "Run the hooks that run after this buffer was saved; show their errors."
  (condition-case err
      (let ((inhibit-message t))
        (delete-auto-save-file-if-necessary)
        (run-hooks 'after-save-hook)
        (unless (file-remote-p buffer-file-name)
          (vc-after-save)))
    (error (message "efrit: after %s was saved: %s" (buffer-name) (error-message-string err)))))

(defun efrit-file-set-modified (flag)
  "Mark this buffer as modified if FLAG is non-nil, else as unmodified.
Prevent the question of Emacs about a file that has changed on disk."
  (let ((buffer-file-truename nil))
    (set-buffer-modified-p flag)))

(defun efrit-file-coding (coding)
  "Return the coding system for writing a text whose coding system is CODING."
  (let ((coding (or coding 'utf-8-unix)))
    (if (memq (coding-system-base coding) '(undecided prefer-utf-8 us-ascii))
        (coding-system-change-text-conversion coding 'utf-8)
      coding)))

(defun efrit-file--set-name (file)
  "Make this buffer visit FILE, a remote file whose name is its true name."
  (let ((name (file-name-nondirectory file)))
    (setq buffer-file-name file
          buffer-file-truename file
          default-directory (file-name-directory file)
          buffer-auto-save-file-name nil)
    (unless (string= name (buffer-name))
      (rename-buffer name t))))

(defun efrit-file-read (file coding)
  "Return a list of FILE's text, modification time and coding system.
Decode FILE by CODING; if CODING is nil, detect the coding system."
  (let ((coding-system-for-read coding))
    (with-temp-buffer
      (insert-file-contents file t)
      (prog1 (list (buffer-string) (visited-file-modtime)
                   (or coding buffer-file-coding-system))
        (set-buffer-modified-p nil)
        (setq buffer-file-name nil)))))

(defun efrit-file--splice (text)
  "Replace this buffer's text with TEXT, but not an equal beginning or end."
  (let* ((old (buffer-substring-no-properties (point-min) (point-max)))
         (most (min (length old) (length text)))
         (head (efrit-file--common-start old text most))
         (tail (efrit-file--common-start (reverse old) (reverse text) (- most head)))
         (start (+ (point-min) head))
         (end (- (point-max) tail)))
    (unless (and (= start end) (= (length text) (+ head tail)))
      (let ((new (substring text head (- (length text) tail))))
        (save-excursion
          (replace-region-contents start end (lambda () new) 0.3))))))

(defun efrit-file--common-start (one other most)
  "Return the number of equal characters that ONE and OTHER begin with.
Compare at most MOST characters."
  (let ((difference (compare-strings one 0 most other 0 most)))
    (if (eq difference t) most (1- (abs difference)))))

;;; Reports

;; The sidecar reports on files: what is there, when it was changed, and what
;; it holds.

(defun efrit-file-ask-reports (ask loop paths then failed &optional names-only)
  "Have the sidecar report on PATHS of LOOP; call THEN with an alist, or FAILED.
The alist maps each of PATHS to a plist, in which `:file' is the name in Emacs
and `:bytes' is the content of a text, a unibyte string.  FAILED is called with
the error.  ASK is the function that asks, such as `efrit-loop-ask-sidecar'.
With NAMES-ONLY, contents are wanted only if a buffer visits one of PATHS."
  (let* ((root (efrit-loop-root loop))
         (buffers (mapcar (lambda (path) (efrit-file-buffer (expand-file-name path root))) paths))
         (known (mapcar #'efrit-file--known-bytes (delq nil buffers))))
    (funcall
     ask loop 'changes/check
     (append (list :paths (vconcat paths))
             (unless (and names-only (null known))
               (list :contents (list :most_bytes efrit-change-most-bytes
                                     :known (vconcat (mapcar #'car known))))))
     (lambda (checked)
       (funcall then (cl-loop for path in paths
                              for report across (plist-get checked :files)
                              collect (cons path (efrit-file--take-report root report known)))))
     failed)))

(defun efrit-file-reported-time (report)
  "Return the time when the file of REPORT, a plist of the sidecar, was modified.
Return nil if there is no file."
  (pcase (plist-get report :modified)
    (`[,seconds ,nanoseconds] (time-add seconds (cons nanoseconds 1000000000)))))

(defun efrit-file-same-time-p (report)
  "Return non-nil if the file of REPORT is as old as when this buffer read it.
TRAMP knows whole seconds only."
  (let ((known (visited-file-modtime))
        (modtime (efrit-file-reported-time report)))
    (or (not (consp known))
        (and modtime
             (or (time-equal-p known modtime)
                 (and (file-remote-p buffer-file-name)
                      (time-equal-p known (time-convert known 'integer))
                      (time-equal-p known (time-convert modtime 'integer))))))))

(defun efrit-file--known-bytes (buffer)
  "Return (HASH . BYTES) of the file of BUFFER, as far as Emacs knows."
  (let ((bytes (efrit-file-bytes buffer)))
    (cons (secure-hash 'sha256 bytes) bytes)))

(defun efrit-file--take-report (root report known)
  "Return REPORT, a plist of the sidecar, with a `:file' of Emacs and `:bytes'.
ROOT is that of the project; KNOWN is an alist from hashes to bytes, which the
sidecar has not sent."
  (let ((content (plist-get report :content))
        (file (plist-get report :file)))
    (append (list :file (and file (efrit-file-local-to-emacs root file))
                  :bytes (if content
                             (base64-decode-string content)
                           (cdr (assoc (plist-get report :sha256) known))))
            report)))

;;; Changes

;; A change has the texts of one file before and after.  If a buffer visits the
;; file, the change is made in that buffer, so that undo, hooks and unsaved work
;; behave as with a person's own edit.  The sidecar writes the file, and the
;; buffer then takes the file's time from it.  This code asks no questions.

(cl-defstruct (efrit-change (:constructor efrit-change-create) (:copier nil))
  "A change of one file.
KIND is `edit', `create', `delete' or `rename'.  PATH is the file's path
in the project, FILE its whole name; TO and TO-FILE are path and name after a
rename.  REPORT is the sidecar's report on the file, a plist; if its `:bytes' are
known, they are the content before.  BEFORE and AFTER are the texts, nil for no
file.  BUFFER visits the file, or is nil; UNSAVED is non-nil if BUFFER had unsaved
changes of the person.  CODING is the file's coding system.  SAVE is non-nil if
the file is to be saved.  WRITTEN is the text of BUFFER once it was changed and
hooks have run, and TICK counts the changes of BUFFER up to then.  SELF-SAVED is
non-nil if a function of BUFFER saved it."
  kind path file to to-file report before after buffer unsaved coding (save t)
  written tick self-saved)

(defconst efrit-change--binary "%s is binary and cannot be edited as text"
  "Format of the refusal to edit a file that is no text.")

;;;; The file before

(defun efrit-change-load (change)
  "Store in CHANGE the text of its existing file: of its buffer, or as reported."
  (let* ((file (efrit-change-file change))
         (buffer (efrit-file-buffer file)))
    (efrit-change--check-report change)
    (setf (efrit-change-buffer change) buffer)
    (if buffer
        (efrit-change--take-buffer change buffer)
      (efrit-change--take-report change))
    (when (string-search "\0" (efrit-change-before change))
      (efrit-change--refuse change efrit-change--binary))))

(defun efrit-change--take-buffer (change buffer)
  "Store in CHANGE the text of BUFFER, which visits its file.
If BUFFER is not modified, first make its text that of the file."
  (with-current-buffer buffer
    (cond
     ((buffer-base-buffer)
      (efrit-change--refuse change "%s is in an indirect buffer and cannot be edited"))
     (buffer-file-format
      (efrit-change--refuse change "%s is shown in a format of its own and cannot be edited"))
     (buffer-read-only
      (efrit-change--refuse change "%s is in a buffer that the person made read-only"))
     ((not (buffer-modified-p)) (efrit-change--update-buffer change))
     ((not (efrit-file-same-time-p (efrit-change-report change)))
      (efrit-change--refuse change "%s has unsaved changes in Emacs, and its file has changed \
on disk; ask the person to resolve that first")))
    (setf (efrit-change-unsaved change) (buffer-modified-p)
          (efrit-change-before change) (efrit-file-text buffer)
          (efrit-change-coding change) (efrit-file-coding buffer-file-coding-system))))

(defun efrit-change--update-buffer (change)
  "Give this buffer, which is not modified, the text that the file of CHANGE has."
  (let* ((report (efrit-change-report change))
         (bytes (or (plist-get report :bytes)
                    (efrit-change--refuse change efrit-change--binary)))
         (modtime (efrit-file-reported-time report)))
    (if (equal bytes (efrit-file-bytes (current-buffer)))
        (efrit-file-set-time modtime)
      (pcase-let ((`(,text . ,coding)
                   (efrit-file-decode bytes buffer-file-name buffer-file-coding-system)))
        (efrit-file-reload (current-buffer) text modtime coding)))))

(defun efrit-change--take-report (change)
  "Store in CHANGE the text of its file, as the sidecar reports it."
  (pcase-let* ((bytes (or (plist-get (efrit-change-report change) :bytes)
                          (efrit-change--refuse change efrit-change--binary)))
               (`(,text . ,coding) (efrit-file-decode bytes (efrit-change-file change))))
    (setf (efrit-change-before change) text
          (efrit-change-coding change) coding)))

(defun efrit-change-start (change)
  "Return where the first changed line begins in the text after CHANGE.
This is a number of characters."
  (let* ((before (or (efrit-change-before change) ""))
         (after (or (efrit-change-after change) ""))
         (same (efrit-file--common-start before after (min (length before) (length after))))
         (line (and (> same 0) (string-match "[^\n]*\\'" (substring after 0 same)))))
    (or line same)))

;;;; Making a change

(defun efrit-change-begin (change)
  "Make CHANGE in its buffer, if any; return its entry in the request to write it.
Return nil if a function of the buffer has saved it.  Signal
`efrit-change-refused' or another error if CHANGE cannot be made; the buffer is
then as before."
  (efrit-change--check-current change)
  (when (memq (efrit-change-kind change) '(edit create))
    (efrit-change--check-encodable change)
    (when-let* ((buffer (efrit-change-buffer change)))
      (efrit-on-failure (efrit-change-cancel change)
        (efrit-change--set-in-buffer change buffer))))
  (unless (efrit-change-self-saved change)
    (append
     (list :path (efrit-change-path change)
           :kind (symbol-name (efrit-change-kind change))
           :stamp (plist-get (efrit-change-report change) :stamp))
     (and (efrit-change-to change) (list :to (efrit-change-to change)))
     (and (efrit-change-after change) (efrit-change--contents change)))))

(defun efrit-change-finish (change made)
  "Have the buffer of CHANGE, which was made, take over the state of its file.
MADE is the sidecar's reply on CHANGE, a plist."
  (dolist (file (delq nil (list (efrit-change-file change) (efrit-change-to-file change))))
    (efrit-remote-forget-file file))
  (let ((modtime (efrit-file-reported-time made)))
    (pcase (efrit-change-kind change)
      ('rename (efrit-change--follow change modtime))
      ((and (or 'edit 'create) (guard (efrit-change-save change)))
       (efrit-with-live-buffer (efrit-change-buffer change)
         (setq buffer-file-coding-system (efrit-change-coding change))
         (efrit-file-set-time modtime)
         (efrit-file-run-saved-hooks))))))

(defun efrit-change-cancel (change)
  "Restore the text before CHANGE in its buffer, unless the person has typed since."
  (when (memq (efrit-change-kind change) '(edit create))
    (efrit-with-live-buffer (efrit-change-buffer change)
      (if (and (efrit-change-tick change)
               (/= (efrit-change-tick change) (buffer-chars-modified-tick)))
          (message "efrit: %s was typed into while it was saved, and is left as it is"
                   (buffer-name))
        (efrit-file-set-text (current-buffer) (or (efrit-change-before change) ""))
        (efrit-file-set-modified (efrit-change-unsaved change))
        (when-let* ((modtime (efrit-file-reported-time (efrit-change-report change))))
          (efrit-file-set-time modtime))))))

(defun efrit-change--set-in-buffer (change buffer)
  "Make CHANGE in BUFFER.
If it is to be saved, run the hooks for that, and mark BUFFER as saved."
  (with-current-buffer buffer
    (let ((inhibit-read-only t))
      (efrit-file-set-text buffer (efrit-change-after change)))
    (unless (string= (efrit-file-text buffer) (efrit-change-after change))
      (efrit-change--refuse change "%s cannot hold this text"))
    (when (efrit-change-save change)
      (unless (setf (efrit-change-self-saved change) (efrit-file-run-save-hooks))
        ;; Until the sidecar has written the file, Emacs must not compare their times.
        (clear-visited-file-modtime)
        (efrit-file-set-modified nil)))
    (setf (efrit-change-written change) (efrit-file-text buffer)
          (efrit-change-tick change) (buffer-chars-modified-tick))))

(defun efrit-change--contents (change)
  "Return what CHANGE, an edit or a creation, does to its file or buffer.
This is a part of its entry in the request to write it."
  (append
   (and (efrit-change-unsaved change)
        (list :buffer_text (efrit-json-replace-invalid (efrit-change-before change))))
   (if (efrit-change-save change)
       (list :replace (efrit-change--replacement
                       (plist-get (efrit-change-report change) :bytes)
                       (encode-coding-string (or (efrit-change-written change)
                                                 (efrit-change-after change))
                                             (efrit-change-coding change))))
     (list :buffer_text_after (efrit-json-replace-invalid (efrit-change-after change))))))

(defun efrit-change--replacement (old new)
  "Return the bytes that turn OLD into NEW, as a plist of the wire.
Both are unibyte strings; OLD is nil for no file."
  (let* ((old (or old ""))
         (most (min (length old) (length new)))
         (head (efrit-file--common-start old new most))
         (tail (efrit-file--common-start (reverse old) (reverse new) (- most head))))
    (list :start head :end (- (length old) tail)
          :data (base64-encode-string (substring new head (- (length new) tail)) t))))

(defun efrit-change--follow (change modtime)
  "Have the buffer of CHANGE, a rename, visit the new name.
Without such a buffer, reload an unmodified one that visits that name already.
MODTIME is the time of the file."
  (let* ((to (efrit-change-to-file change))
         (buffer (efrit-file-buffer (efrit-change-file change)))
         (former (efrit-file-buffer to))
         (bytes (plist-get (efrit-change-report change) :bytes)))
    (cond
     (buffer
      (with-current-buffer buffer
        (let ((modified (buffer-modified-p)))
          (efrit-file-visit-as to)
          (efrit-file-set-time modtime)
          (efrit-file-set-modified modified))))
     ((and former bytes (not (buffer-modified-p former)))
      (pcase-let ((`(,text . ,coding) (efrit-file-decode bytes to)))
        (efrit-file-reload former text modtime coding))))))

;;;; Checks

(defun efrit-change--refuse (change format &rest arguments)
  "Signal `efrit-change-refused' for CHANGE.
The reason is FORMAT, filled with the path of CHANGE and with ARGUMENTS."
  (signal 'efrit-change-refused
          (list (apply #'format format (efrit-change-path change) arguments))))

(defun efrit-change--check-report (change)
  "Refuse CHANGE if its file cannot be edited, by what the sidecar reports of it."
  (let* ((file (efrit-change-file change))
         (report (efrit-change-report change))
         (size (plist-get report :size))
         (person (efrit-change--locker file (plist-get report :lock))))
    (cond
     ((> size efrit-change-most-bytes)
      (efrit-change--refuse change "%s has %d bytes, more than the %d that can be edited; \
use a command" size efrit-change-most-bytes))
     ((find-file-name-handler (file-local-name file) 'insert-file-contents)
      (efrit-change--refuse change "%s is compressed or encrypted and cannot be edited"))
     ((not (eq (plist-get report :writable) t))
      (efrit-change--refuse change "%s is read-only; ask the person to make it writable"))
     (person
      (efrit-change--refuse change "%s is being edited by %s in another Emacs" person)))))

(defun efrit-change--locker (file lock)
  "Return the person who edits FILE in another Emacs, or nil.
LOCK is the text of FILE's lock on another machine, or nil for none."
  (if (not (file-remote-p file))
      (let ((locked (file-locked-p file)))
        (and (stringp locked) locked))
    (and lock
         (string-match "\\`\\(.+\\)@\\(.+\\)\\.\\([0-9]+\\)\\(?::.*\\)?\\'" lock)
         (not (and (equal (match-string 2 lock) (system-name))
                   (equal (match-string 3 lock) (number-to-string (emacs-pid)))))
         (match-string 1 lock))))

(defun efrit-change--check-current (change)
  "Refuse CHANGE if the buffer of its file is not as it was when it was planned.
A buffer that visits the file by now is used."
  (let* ((buffer (efrit-file-buffer (efrit-change-file change)))
         (modified (and buffer (buffer-modified-p buffer))))
    (unless (and (or (eq (and modified t) (and (efrit-change-unsaved change) t))
                     (eq (efrit-change-kind change) 'rename))
                 (or (null buffer)
                     (null (efrit-change-before change))
                     (equal (efrit-file-text buffer) (efrit-change-before change))))
      (efrit-change--refuse change "%s was just changed by somebody else; read it again"))
    (setf (efrit-change-buffer change) buffer)))

(defun efrit-change--check-encodable (change)
  "Refuse CHANGE if the file's coding system lacks a character of its new text.
Raw bytes are always allowed.  A new file has a coding system that fits."
  (unless (efrit-change-coding change)
    (setf (efrit-change-coding change)
          (efrit-file-coding (default-value 'buffer-file-coding-system))))
  (let* ((coding (efrit-change-coding change))
         (text (replace-regexp-in-string "[\x3fff80-\x3fffff]" ""
                                         (efrit-change-after change) t t))
         (place (car (unencodable-char-position 0 (length text) coding 1 text))))
    (cond
     ((null place))
     ((eq (efrit-change-kind change) 'create) (setf (efrit-change-coding change) 'utf-8-unix))
     (t (efrit-change--refuse change "%s is encoded in %s, which has no %s (U+%04X)"
                              coding (string (aref text place)) (aref text place))))))

;;; Fontifying

;; A text is fontified by a mode in a buffer of that mode, which is kept: no hook
;; runs, no variables of a file or folder are read, and there is no file to look at.

(defvar c-initialization-hook)
(defvar diff-font-lock-prettify)
(defvar diff-font-lock-syntax)
(defvar diff-refine)
(defvar sh-set-shell-hook)

(defconst efrit-fontify--longest-line 400
  "Most characters of a line that is fontified.")

(defconst efrit-fontify--step 300
  "Least characters that are fontified at once.
Some modes take seconds for a few thousand quotes, and cannot be interrupted.")

(defvar-local efrit-fontify--mode nil
  "The mode in which this buffer fontifies, or nil before it is set up.")

(defun efrit-fontify (text mode seconds)
  "Return TEXT fontified by MODE, as far as that takes no more than SECONDS."
  (with-current-buffer (get-buffer-create (format " *efrit fontify %s*" mode))
    (let ((inhibit-read-only t)
          (inhibit-message t)
          (message-log-max nil)
          (enable-local-variables nil)
          (enable-dir-local-variables nil)
          (hack-local-variables-hook nil)
          (change-major-mode-hook nil)
          (sh-set-shell-hook nil)
          (c-initialization-hook nil)
          ;; Else it would read the files that a diff names.
          (diff-font-lock-syntax nil)
          (diff-font-lock-prettify nil)
          (diff-refine nil))
      (ignore-errors
        (with-local-quit
          (efrit-fontify--begin mode)
          (efrit-fontify--insert text (+ (float-time) seconds)))))
    (efrit-fontify--faces (if (string-prefix-p (buffer-string) text)
                              (concat (buffer-string) (substring text (buffer-size)))
                            text))))

(defun efrit-fontify--begin (mode)
  "Empty this buffer, and set it up to fontify by MODE, unless it was before."
  (erase-buffer)
  (unless efrit-fontify--mode
    (setq default-directory "/")
    (delay-mode-hooks (funcall mode))
    (setq efrit-fontify--mode mode)))

(defun efrit-fontify--faces (text)
  "Return TEXT with its faces that have names, and no other text properties.
The signs of a diff have the faces of their lines: theirs are hard to see."
  (let ((bare (substring-no-properties text)))
    (pcase-dolist (`(,start ,end ,properties) (object-intervals text))
      (when-let* ((faces (mapcar (lambda (face)
                                   (pcase face
                                     ('diff-indicator-added 'diff-added)
                                     ('diff-indicator-removed 'diff-removed)
                                     (_ face)))
                                 (seq-filter #'facep
                                             (ensure-list (plist-get properties 'face))))))
        (put-text-property start end 'face (if (cdr faces) faces (car faces)) bare)))
    bare))

(defun efrit-fontify--insert (text deadline)
  "Insert TEXT fontified, up to a very long line, or until DEADLINE."
  (let ((start 0)
        end)
    (while (and (< start (length text))
                (< (float-time) deadline)
                (setq end (efrit-fontify--part-end text start)))
      (let ((from (point)))
        (insert (substring text start end))
        (font-lock-ensure from (point)))
      (setq start end))))

(defun efrit-fontify--part-end (text start)
  "Return the end of the next lines of TEXT from START on to fontify at once.
Return nil if there is none before a line that is too long."
  (let ((end start)
        next)
    (while (and (< end (length text))
                (< (- end start) efrit-fontify--step)
                (setq next (1+ (or (string-search "\n" text end) (1- (length text)))))
                (<= (- next end) efrit-fontify--longest-line))
      (setq end next))
    (and (> end start) end)))

;;; Differences

;; Unified diffs of texts, by the program `diff-command'.  Without that program,
;; a diff is one hunk from the first changed line to the last.

(defconst efrit-diff--context 3
  "Number of unchanged lines shown before and after each difference.")

(defun efrit-diff (old new path &optional to)
  "Return the unified diff from OLD to NEW, texts of PATH, or \"\" if equal.
OLD or NEW is nil for no file.  TO is the new name of PATH, if any."
  (if (equal old new)
      ""
    (concat (format "--- %s\n+++ %s\n"
                    (if old (concat "a/" path) "/dev/null")
                    (if new (concat "b/" (or to path)) "/dev/null"))
            (or (efrit-diff--by-program (or old "") (or new ""))
                (efrit-diff--one-hunk (or old "") (or new ""))))))

(defun efrit-diff-counts (diff)
  "Return the numbers of lines added and removed by DIFF: (ADDED . REMOVED)."
  (with-temp-buffer
    (insert diff)
    (let ((headers (how-many "^--- .*\n\\+\\+\\+ " (point-min) (point-max))))
      (cons (- (how-many "^\\+" (point-min) (point-max)) headers)
            (- (how-many "^-" (point-min) (point-max)) headers)))))

(defun efrit-diff-fontify (diff)
  "Return DIFF with the faces of `diff-mode'."
  (efrit-fontify diff 'diff-mode 1))

(defun efrit-diff-set-up ()
  "Prepare this buffer, in Diff mode, for a diff of the model's.
The signs of its lines have the faces of the lines: theirs are hard to see."
  ;; Both would read the files that the diff names, of any machine.
  (setq-local diff-font-lock-syntax nil
              diff-refine nil
              face-remapping-alist '((diff-indicator-added diff-added)
                                     (diff-indicator-removed diff-removed))))

(defun efrit-diff-show (text)
  "Show TEXT, with a diff in it, in another window."
  (with-current-buffer (get-buffer-create "*efrit diff*")
    (efrit-set-buffer-text text)
    (diff-mode)
    (efrit-diff-set-up)
    (setq bidi-display-reordering nil)
    (read-only-mode)
    (display-buffer (current-buffer))))

(defun efrit-diff--by-program (old new)
  "Return the hunks from OLD to NEW by the diff program, or nil if it fails."
  (let ((files nil)
        (default-directory temporary-file-directory)
        (exec-path (efrit-exec-path))
        (coding-system-for-read 'utf-8-emacs-unix)
        (coding-system-for-write 'utf-8-emacs-unix))
    (unwind-protect
        (with-temp-buffer
          (dolist (text (list new old))
            (push (make-temp-file "efrit-diff-") files)
            (write-region text nil (car files) nil 'silent))
          (when (eql 1 (ignore-errors
                         (apply #'call-process diff-command nil '(t nil) nil "-a" "-u" files)))
            (goto-char (point-min))
            (forward-line 2)
            (buffer-substring-no-properties (point) (point-max))))
      (mapc #'delete-file files))))

(defun efrit-diff--one-hunk (old new)
  "Return the difference from OLD to NEW, texts, as one hunk of a unified diff."
  (let* ((olds (efrit-diff-lines old))
         (news (efrit-diff-lines new))
         (least (min (length olds) (length news)))
         (head (or (cl-mismatch olds news :test #'string=) least))
         (tail (min (or (cl-mismatch (reverse olds) (reverse news) :test #'string=) least)
                    (- least head)))
         (first (max 0 (- head efrit-diff--context)))
         (after (min tail efrit-diff--context))
         (old-end (- (length olds) tail))
         (new-end (- (length news) tail)))
    (concat
     (format "@@ -%s +%s @@\n"
             (efrit-diff--range first (- (+ old-end after) first))
             (efrit-diff--range first (- (+ new-end after) first)))
     (efrit-diff--mark-lines " " (seq-subseq olds first head))
     (efrit-diff--mark-lines "-" (seq-subseq olds head old-end))
     (efrit-diff--mark-lines "+" (seq-subseq news head new-end))
     (efrit-diff--mark-lines " " (seq-subseq olds old-end (+ old-end after))))))

(defun efrit-diff-lines (text)
  "Return the lines of TEXT, with their newlines."
  (let ((lines nil)
        (start 0))
    (while (< start (length text))
      (let ((end (string-search "\n" text start)))
        (push (substring text start (and end (1+ end))) lines)
        (setq start (if end (1+ end) (length text)))))
    (nreverse lines)))

(defun efrit-diff--range (first count)
  "Return the range of COUNT lines after the FIRST lines, in a hunk's notation."
  (format "%d,%d" (if (zerop count) first (1+ first)) count))

(defun efrit-diff--mark-lines (mark lines)
  "Return LINES with MARK in front of each."
  (mapconcat (lambda (line)
               (concat mark line
                       (if (string-suffix-p "\n" line) "" "\n\\ No newline at end of file\n")))
             lines ""))

;;; Sending unsaved buffers

;; The sidecar's tools read a file with an unsaved buffer as it is in the
;; buffer.  Unsaved texts are sent before every tool call, those of short buffers
;; also soon after each change; they are withdrawn on save, revert or kill.

(defconst efrit-sync--most-in-message 16000
  "Most characters of a text that fits a pipe at once, whatever they are.")

(defvar efrit-sync--timer nil
  "The timer that will send short unsaved buffers, or nil.")

(defvar efrit-sync--sent nil
  "States sent to the sidecar: an alist from (SESSION . FILE) to (TICK . STALE).
TICK counts the buffer's changes; STALE is non-nil if FILE changed on disk.")

(defvar efrit-sync--killed-buffer nil
  "The buffer that is being killed, or nil.")

(defvar-local efrit-sync--warned-too-long nil
  "Non-nil if a message said that this buffer is too long to be sent.")

(defun efrit-sync-update ()
  "Watch buffers while there are loops, and send the short unsaved buffers."
  (let ((watch (if (efrit-loops) #'add-hook #'remove-hook)))
    (pcase-dolist (`(,hook . ,function)
                   '((efrit-sidecar-started-functions . efrit-sync--started)
                     (after-change-functions . efrit-sync--changed)
                     (after-save-hook . efrit-sync--flush-short)
                     (after-revert-hook . efrit-sync--flush-short)
                     (kill-buffer-hook . efrit-sync--killed)))
      (funcall watch hook function))
    (efrit-sync--withdraw-released)
    (efrit-sync--flush-short)))

(defun efrit-sync-flush (&optional loops)
  "Send every unsaved text of LOOPS that the sidecar does not have yet.
LOOPS are by default those of this Emacs.  Requests sent after this are answered
from the new texts."
  (efrit-sync--flush #'always loops))

(defun efrit-sync-forget ()
  "Forget which texts were sent, and send all unsaved texts again."
  (setq efrit-sync--sent nil)
  (efrit-sync-flush))

(defun efrit-sync--started (&rest _)
  "Forget the texts sent to the host `efrit-host-default', whose sidecar is new."
  (setq efrit-sync--sent
        (seq-remove (lambda (entry)
                      (equal (efrit-host-of-session (caar entry)) efrit-host-default))
                    efrit-sync--sent))
  (efrit-sync--flush-short))

(defun efrit-sync--changed (&rest _)
  "If this buffer visits a file, send the short unsaved buffers soon."
  (when (and buffer-file-name (null efrit-sync--timer))
    (setq efrit-sync--timer
          ;; Deferred, since a buffer that TRAMP is just saving is still modified.
          (efrit-run-at-time efrit-sync-delay nil #'efrit-defer #'efrit-sync--flush-short))))

(defun efrit-sync--killed ()
  "Withdraw the text of this buffer, which is being killed, if it is unsaved."
  (when (and buffer-file-name (buffer-modified-p))
    (let ((efrit-sync--killed-buffer (current-buffer)))
      (efrit-sync--flush-short))))

(defun efrit-sync--flush-short (&rest _)
  "Send short unsaved buffers; withdraw texts whose buffers are saved or killed."
  (efrit-sync--flush (lambda (buffer) (<= (buffer-size buffer) efrit-sync-short))))

(defun efrit-sync--flush (due &optional loops)
  "Send the unsaved buffers that satisfy the function DUE; withdraw obsolete texts.
LOOPS are by default those of this Emacs."
  (efrit-stop-timer efrit-sync--timer)
  (let ((buffers (seq-filter (lambda (buffer)
                               (and (not (eq buffer efrit-sync--killed-buffer))
                                    (buffer-file-name buffer)
                                    (buffer-modified-p buffer)))
                             (buffer-list))))
    (dolist (loop (or loops (efrit-loops)))
      (efrit-sync--update-loop loop buffers due))))

(defun efrit-sync--update-loop (loop buffers due)
  "Send those of BUFFERS that belong to LOOP's project; withdraw obsolete texts.
Skip buffers for which DUE, a function, returns nil."
  (let* ((id (efrit-loop-id loop))
         (root (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop))))
         (inside (seq-filter (lambda (buffer)
                               (and (string-prefix-p root (efrit-host-true-file buffer))
                                    (efrit-sync--fits-p buffer)))
                             buffers))
         (files (mapcar #'efrit-host-true-file inside)))
    (dolist (buffer (seq-filter due inside))
      (efrit-sync--update-buffer id buffer))
    (dolist (entry efrit-sync--sent)
      (when (and (equal (caar entry) id) (not (member (cdar entry) files)))
        (setq efrit-sync--sent (delq entry efrit-sync--sent))
        (efrit-sync--send id (cdar entry) '(:text nil))))))

(defun efrit-sync--fits-p (buffer)
  "Return non-nil if BUFFER is short enough to be sent; else tell the person once."
  (with-current-buffer buffer
    (or (<= (buffer-size) (if (file-remote-p buffer-file-name)
                              efrit-sync-most-characters-remote
                            efrit-sync-most-characters))
        (unless efrit-sync--warned-too-long
          (setq efrit-sync--warned-too-long t)
          (message "efrit: %s is too long to be sent; the model reads its file on disk"
                   (buffer-name))
          nil))))

(defun efrit-sync--withdraw-released ()
  "Withdraw texts from sessions that have no loop in this Emacs any more."
  (let ((ids (mapcar #'efrit-loop-id (efrit-loops))))
    (dolist (entry efrit-sync--sent)
      (unless (member (caar entry) ids)
        (setq efrit-sync--sent (delq entry efrit-sync--sent))
        (when (efrit-sidecar-process (efrit-host-of-session (caar entry)))
          (efrit-sync--send (caar entry) (cdar entry) '(:text nil)))))))

(defun efrit-sync--update-buffer (id buffer)
  "Send the text of BUFFER to the session ID, if BUFFER or its file has changed."
  (let* ((inhibit-quit t)
         (key (cons id (efrit-host-true-file buffer)))
         ;; Emacs would have to wait for the time of a remote file.
         (stale (not (or (file-remote-p (buffer-file-name buffer))
                         (verify-visited-file-modtime buffer))))
         (state (cons (buffer-chars-modified-tick buffer) stale))
         (known (assoc key efrit-sync--sent)))
    (unless (equal (cdr known) state)
      (setf (alist-get key efrit-sync--sent nil nil #'equal) state)
      (efrit-sync--send id (cdr key)
                        (append (efrit-sync--text id buffer)
                                (list :stale (if stale t :json-false)))))))

(defun efrit-sync--text (id buffer)
  "Return the params that pass the text of BUFFER to the session ID.
Write a long text to a file, if possible, and pass the file's name."
  (if-let* (((> (buffer-size buffer) efrit-sync--most-in-message))
            ((null (efrit-host-prefix (efrit-host-of-session id))))
            (name (efrit-handover-leave buffer)))
      (list :text_file name)
    (list :text (efrit-json-replace-invalid (efrit-file-text buffer)))))

(defun efrit-sync--send (id file members)
  "Send `buffers/sync' about FILE to the session ID, with MEMBERS.
MEMBERS is a plist of more params; a null `:text' withdraws the earlier text."
  (let ((params `( :session_id ,id
                   :path ,(efrit-json-replace-invalid (file-local-name file))
                   ,@members))
        (name (plist-get members :text_file)))
    (condition-case err
        (if (null name)
            (efrit-sidecar-notify 'buffers/sync params)
          (efrit-sidecar-request-async
           'buffers/sync params
           :success #'ignore
           :error (lambda (err) (efrit-sync--handle-error file name err))))
      (efrit-error (message "efrit: %s was not sent: %s" file (efrit-error-text err))))))

(defun efrit-sync--handle-error (file name err)
  "Handle ERR of sending FILE, whose text was written to a file called NAME.
If the sidecar cannot read such files, send texts in messages from now on.
If the sidecar died, do nothing: a new one is sent all unsaved texts."
  (efrit-handover-drop name)
  (cond
   ((not (eq (car err) 'efrit-rpc-error)))
   ((string-match-p "text_file" (efrit-error-text err))
    (efrit-handover-refuse)
    (efrit-sync-forget))
   (t (message "efrit: %s was not sent: %s" file (efrit-error-text err)))))

;;; Reverting buffers

;; When a tool call of the sidecar that may have changed files has ended, the
;; buffers that visit files of the project are checked, a few at a time.  An
;; unmodified buffer whose file changed is reverted; point, windows, narrowing,
;; the mode and the undo history are kept.  A modified buffer, or one whose
;; file is gone, is not reverted; a note tells the person.  The sidecar reports on
;; files of another machine, on all of them at once.

(defconst efrit-revert--slice 0.03
  "Most seconds for which buffers are checked without a pause.")

(defconst efrit-revert--after-stop 1.5
  "Seconds after a stop at which the stopped command has certainly ended.")

(defvar efrit-revert--queue nil
  "Buffers to check: a list of lists (LOOP BUFFER REPORT).
REPORT is that of the sidecar on the file, or nil for a file of this machine.")

(defvar efrit-revert--awaited 0
  "Number of reports that were asked for and have not come yet.")

(defvar-local efrit-revert--noted-state nil
  "State of this buffer's file for which a note was shown, or nil for none.")

(defun efrit-revert-changed (loop)
  "Soon revert the buffers whose files in the project of LOOP have changed."
  (when efrit-revert-buffers
    (let ((buffers (efrit-revert--buffers loop)))
      (if (file-remote-p (efrit-loop-root loop))
          (efrit-revert--ask loop buffers)
        (efrit-revert--enqueue loop (mapcar #'list buffers))))))

(defun efrit-revert-idle-p ()
  "Return non-nil if no buffer has to be checked."
  (and (null efrit-revert--queue) (zerop efrit-revert--awaited)))

(defun efrit-revert--ask (loop buffers)
  "Have the sidecar report on the remote files of BUFFERS in LOOP, and check them."
  (when buffers
    (cl-incf efrit-revert--awaited)
    (efrit-file-ask-reports
     #'efrit-loop-ask-sidecar loop
     (mapcar (lambda (buffer) (file-local-name (efrit-host-true-file buffer))) buffers)
     (lambda (reports)
       (cl-decf efrit-revert--awaited)
       (efrit-revert--enqueue loop (cl-mapcar #'list buffers (mapcar #'cdr reports))))
     (lambda (_) (cl-decf efrit-revert--awaited)))))

(defun efrit-revert--enqueue (loop entries)
  "Have ENTRIES of LOOP, lists (BUFFER REPORT), checked soon.
They take the place of earlier ones."
  (let ((idle (null efrit-revert--queue)))
    (setq efrit-revert--queue
          (append (seq-remove (lambda (entry) (eq (car entry) loop)) efrit-revert--queue)
                  (mapcar (apply-partially #'cons loop) entries)))
    (when (and idle efrit-revert--queue)
      (efrit-defer #'efrit-revert--work))))

;;;; Buffers to check

(defun efrit-revert--observe (loop event)
  "Check buffers if EVENT of LOOP ends a sidecar's call that may change files."
  (pcase event
    ((and `(use ,use)
          (guard (and (eq (efrit-use-state use) 'done)
                      (efrit-use-begun use)
                      (efrit-use-effects use)
                      (not (efrit-tool-get (efrit-use-name use))))))
     (efrit-revert-changed loop)
     (unless (efrit-use-result use)
       (efrit-run-at-time efrit-revert--after-stop nil #'efrit-revert-changed loop)))))

(defun efrit-revert--buffers (loop)
  "Return the buffers that visit files of the project of LOOP."
  (let* ((root (file-name-as-directory (expand-file-name (efrit-loop-root loop))))
         (roots (list root (file-name-as-directory (efrit-host-true-name root)))))
    (seq-filter (lambda (buffer) (efrit-revert--inside-p buffer roots))
                (buffer-list))))

(defun efrit-revert--inside-p (buffer roots)
  "Return non-nil if BUFFER visits a file in one of ROOTS."
  (and (buffer-file-name buffer)
       (seq-some (lambda (root)
                   (or (string-prefix-p root (buffer-file-name buffer))
                       (string-prefix-p root (expand-file-name
                                              (buffer-local-value 'buffer-file-truename
                                                                  buffer)))))
                 roots)))

;;;; Checking

(defun efrit-revert--work ()
  "Check queued buffers for `efrit-revert--slice', and schedule the rest."
  (let ((end (+ (float-time) efrit-revert--slice)))
    (unwind-protect
        (while (and efrit-revert--queue (< (float-time) end))
          (pcase-let ((`(,loop ,buffer ,report) (pop efrit-revert--queue)))
            (when (buffer-file-name buffer)
              (efrit-revert--check loop buffer report))))
      (if efrit-revert--queue
          (efrit-run-at-time 0.01 nil #'efrit-defer #'efrit-revert--work)
        (efrit-defer #'efrit-sync-flush)))))

(defun efrit-revert--check (loop buffer report)
  "Revert BUFFER if its file has changed, or show a note in LOOP why that fails.
REPORT is that of the sidecar, or nil for a file of this machine."
  (with-current-buffer buffer
    (let ((non-essential t))
      (condition-case err
          (if (efrit-revert--current-p report)
              (setq efrit-revert--noted-state nil)
            (efrit-revert--revert-or-note loop report))
        (error (efrit-revert--note-once loop (error-message-string err)
                                        (format "changed on disk, but was not reverted: %s"
                                                (error-message-string err))))))))

(defun efrit-revert--current-p (report)
  "Return non-nil if this buffer's file has not changed since Emacs read it.
REPORT is that of the sidecar, or nil for a file of this machine."
  (cond ((null report) (verify-visited-file-modtime))
        ((or (buffer-modified-p) (null (plist-get report :bytes)))
         (efrit-file-same-time-p report))
        (t (equal (plist-get report :bytes) (efrit-file-bytes (current-buffer))))))

(defun efrit-revert--revert-or-note (loop report)
  "Revert this buffer, whose file has changed, or show a note in LOOP why not.
REPORT is that of the sidecar, or nil for a file of this machine."
  (let ((modtime (if report
                     (efrit-file-reported-time report)
                   (file-attribute-modification-time (file-attributes buffer-file-name)))))
    (cond
     ((null modtime)
      (efrit-revert--note-once loop 'gone "was deleted on disk; its buffer was kept"))
     ((buffer-modified-p)
      (efrit-revert--note-once loop modtime "changed on disk, but its buffer has unsaved changes; \
it was not reverted"))
     ((eq (find-file-name-handler (file-local-name buffer-file-name) 'insert-file-contents)
          'epa-file-handler)
      (efrit-revert--note-once loop modtime
                               "changed on disk, but was not reverted: it is encrypted"))
     (t (efrit-revert--revert report)))))

(defun efrit-revert--note-once (loop state text)
  "Show TEXT about the file of this buffer as a note in LOOP, once for each STATE."
  (unless (equal state efrit-revert--noted-state)
    (setq efrit-revert--noted-state state)
    (efrit-loop-notify loop 'note
                       (format "%s %s" (file-relative-name buffer-file-name
                                                           (efrit-loop-root loop))
                               text))))

;;;; Reverting

(defun efrit-revert--revert (report)
  "Revert this buffer as its mode does, but keep undo if it has plain text.
REPORT is that of the sidecar, or nil for a file of this machine."
  (let ((buffer-read-only buffer-read-only)
        (inhibit-message t)
        (revert-buffer-insert-file-contents-function
         (if (efrit-revert--plain-p)
             #'efrit-revert--insert
           revert-buffer-insert-file-contents-function)))
    (if (and report (plist-get report :bytes) (efrit-revert--plain-p)
             (memq revert-buffer-function '(nil revert-buffer--default)))
        (efrit-revert--take-report report)
      (revert-buffer t t t))))

(defun efrit-revert--take-report (report)
  "Revert this buffer, which has plain text, to the content in REPORT."
  (run-hooks 'before-revert-hook)
  (pcase-let ((`(,text . ,coding)
               (efrit-file-decode (plist-get report :bytes) buffer-file-name
                                  (car buffer-file-coding-system-explicit))))
    (efrit-file-reload (current-buffer) text (efrit-file-reported-time report) coding))
  (run-hooks 'after-revert-hook))

(defun efrit-revert--plain-p ()
  "Return non-nil if this buffer has only the decoded text of its file."
  (and enable-multibyte-characters
       (null buffer-file-format)
       (memq revert-buffer-insert-file-contents-function
             '(nil revert-buffer-insert-file-contents--default-function))))

(defun efrit-revert--insert (_file _auto-save)
  "Replace the text of this buffer with its file's, in one step of undo.
Keep a coding system that the person chose."
  (apply #'efrit-file-reload (current-buffer)
         (efrit-file-read buffer-file-name (car buffer-file-coding-system-explicit))))

(add-hook 'efrit-loop-work-functions
          (lambda (loop) (efrit-loop-observe loop #'efrit-revert--observe)))

(provide 'efrit-files)
;;; efrit-files.el ends here
