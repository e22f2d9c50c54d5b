;;; efrit-files.el --- Files and their buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Opens, reloads and saves files through their buffers; makes and reverts
;; changes of files; makes diffs of texts.  Sends unsaved buffers to the sidecar,
;; and reverts buffers whose files a command changed.

;;; Code:

(require 'diff)
(require 'efrit)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-tools)

;;; Files and their buffers

;; A file is opened without a question, its text is set without moving point
;; in any window, and it is saved whole or not at all.

(defvar-local efrit-file--last-stamp nil
  "For a remote file, (MODIFICATION-TIME . STAMP) of this buffer's file, or nil.
Recorded when efrit last read this buffer from its file, or saved it.")

(defun efrit-file-buffer (file)
  "Return the buffer that visits FILE, or nil.
Look for the name as it is first: following links on another machine is slow."
  (or (get-file-buffer file) (find-buffer-visiting file)))

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
and set those of its local variables that are safe."
  (or (efrit-file-buffer file)
      (with-current-buffer (efrit-file-quietly (find-file-noselect file t))
        (efrit-file-quietly
          (let ((mode (let ((enable-local-variables :safe))
                        (ignore-errors (hack-local-variables t)))))
            (when (efrit-file-text-mode-p mode)
              (funcall mode)))
          (efrit-file-take-variables (lambda () (hack-local-variables 'no-mode))))
        (current-buffer))))

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

(defun efrit-file-open (file)
  "Visit FILE quietly, record its stamp, and return its buffer."
  (let ((auto-save-default (efrit-file--auto-save-p file)))
    (with-current-buffer (efrit-file-visit file)
      (efrit-file--record-stamp)
      (current-buffer))))

(defun efrit-file-current-p (buffer)
  "Return non-nil if BUFFER's file has not changed since BUFFER read or saved it.
For a remote file, compare stamps as well: TRAMP overlooks changes within
two seconds."
  (with-current-buffer buffer
    (and (verify-visited-file-modtime buffer)
         (or (not (file-remote-p buffer-file-name))
             (efrit-file--same-p (file-attributes buffer-file-name))))))

(defun efrit-file-visit-as (file)
  "Make this buffer visit FILE, without a question.
It takes the place of an unmodified buffer that already visits FILE."
  (let ((auto-save-default (efrit-file--auto-save-p file))
        (former (efrit-file-buffer file))
        (inhibit-message t))
    (unless (or (null former) (eq former (current-buffer)) (buffer-modified-p former))
      (dolist (window (get-buffer-window-list former nil t))
        (set-window-buffer window (current-buffer)))
      (efrit-file-kill-unused former))
    (set-visited-file-name file t t)))

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

(defun efrit-file-stamp (file)
  "Return the stamp of FILE, or of its buffer if modified; nil for no file.
While the stamp stays equal, the text has not changed."
  (let ((buffer (efrit-file-buffer file)))
    (if (and buffer (buffer-modified-p buffer))
        (list 'buffer (buffer-chars-modified-tick buffer))
      (efrit-file--stamp (file-attributes file)))))

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

(defun efrit-file-reload (buffer &optional coding)
  "Replace the text of BUFFER, which is not modified, with its file's text.
Point, windows and the undo history are kept.  CODING is the file's coding
system; nil means detect it."
  (with-current-buffer buffer
    (pcase-let ((`(,text ,modtime ,coding) (efrit-file-read buffer-file-name coding))
                (inhibit-read-only t))
      ;; Without a file name, Emacs asks nothing about a file that changed on
      ;; disk.  Set the file's time after the text, so that undo marks the
      ;; buffer as modified.
      (let ((buffer-file-name nil))
        (efrit-file-set-text buffer text))
      (set-visited-file-modtime modtime)
      (set-buffer-modified-p nil)
      (setq buffer-file-coding-system coding)
      (efrit-file--record-stamp))))

(defun efrit-file-save (buffer)
  "Save BUFFER, running its hooks; replace its file whole or not at all.
Add no newline at the end, and make no backup."
  (with-current-buffer buffer
    (let ((require-final-newline nil)
          (mode-require-final-newline nil)
          (backup-inhibited t)
          (create-lockfiles nil)
          (save-silently t)
          (inhibit-message t))
      (add-hook 'write-file-functions #'efrit-file-write 100 t)
      (unwind-protect
          (condition-case err
              (basic-save-buffer)
            ;; If a hook fails after the file was written, it is saved all the same.
            (error (when (buffer-modified-p)
                     (signal (car err) (cdr err)))
                   (message "efrit: after %s was saved: %s" (buffer-name)
                            (error-message-string err))))
        (remove-hook 'write-file-functions #'efrit-file-write t)))))

(defun efrit-file-write ()
  "Write this buffer to a temporary file, rename that to the real file, return t.
`efrit-file-save' makes this the last of `write-file-functions'."
  (let* ((file (file-chase-links buffer-file-name))
         (modes (file-modes file))
         (more (and modes (file-extended-attributes file)))
         (new (make-temp-file (expand-file-name (efrit-file--new-name file)
                                                (file-name-directory file))))
         (modtime (visited-file-modtime))
         (coding-system-for-write (efrit-file-coding)))
    (condition-case err
        (progn
          (clear-visited-file-modtime)
          (write-region nil nil new nil buffer-file-name buffer-file-truename)
          (set-file-modes new (or modes (logand #o666 (default-file-modes))))
          (when more
            (set-file-extended-attributes new more))
          (rename-file new file t)
          (set-visited-file-modtime)
          (efrit-file--record-stamp)
          t)
      ((error quit)
       (ignore-errors (delete-file new))
       (set-visited-file-modtime modtime)
       (efrit-file-set-modified t)
       (signal (car err) (cdr err))))))

(defun efrit-file-set-modified (flag)
  "Mark this buffer as modified if FLAG is non-nil, else as unmodified.
Prevent the question of Emacs about a file that has changed on disk."
  (let ((buffer-file-truename nil))
    (set-buffer-modified-p flag)))

(defun efrit-file-leftovers (file)
  "Return the temporary files of FILE that a killed Emacs wrote and left behind."
  (directory-files (file-name-directory file) t
                   (format "\\`%s.\\{6\\}\\'"
                           (regexp-quote (efrit-file--new-name file)))
                   t))

(defun efrit-file-coding ()
  "Return the coding system for writing this buffer."
  (let ((coding (or buffer-file-coding-system 'utf-8-unix)))
    (if (memq (coding-system-base coding) '(undecided prefer-utf-8 us-ascii))
        (coding-system-change-text-conversion coding 'utf-8)
      coding)))

(defun efrit-file--stamp (attributes)
  "Return (SIZE TIME INODE) from a file's ATTRIBUTES, or nil if ATTRIBUTES is nil."
  (and attributes
       (list (file-attribute-size attributes)
             (file-attribute-modification-time attributes)
             (file-attribute-inode-number attributes))))

(defun efrit-file--record-stamp ()
  "Record the stamp of this buffer's file, if remote; both have the same text now."
  (setq efrit-file--last-stamp
        (and (file-remote-p buffer-file-name)
             (cons (visited-file-modtime)
                   (efrit-file--stamp (file-attributes buffer-file-name))))))

(defun efrit-file--same-p (attributes)
  "Return non-nil if this buffer's file, which has ATTRIBUTES now, is unchanged.
If the person saved the buffer since, only the modification time is compared."
  (let ((modtime (visited-file-modtime)))
    (cond ((equal modtime (car efrit-file--last-stamp))
           (equal (cdr efrit-file--last-stamp) (efrit-file--stamp attributes)))
          ((and attributes (consp modtime))
           (time-equal-p modtime (file-attribute-modification-time attributes)))
          (t t))))

(defun efrit-file--auto-save-p (file)
  "Return non-nil if Emacs should auto-save the buffer of FILE.
It should not for a file of root on another machine: TRAMP would ask first."
  (and auto-save-default
       (or (not (file-remote-p file))
           (bound-and-true-p tramp-allow-unsafe-temporary-files)
           (not (eql 0 (file-attribute-user-id (file-attributes file)))))))

(defun efrit-file--new-name (file)
  "Return the beginning of the name of a temporary file for writing FILE."
  (format ".%s.efrit-" (file-name-nondirectory file)))

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

;;; Changes

;; A change has the texts of one file before and after.  It is made in the
;; file's buffer, so that undo, hooks and unsaved work behave as with a
;; person's own edit, and written whole or not at all: into a new file that
;; then replaces the old one.  This code asks no questions, and does not
;; depend on the model or the sidecar.

(cl-defstruct (efrit-change (:constructor efrit-change-create) (:copier nil))
  "A change of one file.
KIND is `edit', `create', `delete' or `rename'.  PATH is the file's path
in the project, FILE its whole name; TO and TO-FILE are path and name after a
rename.  BEFORE and AFTER are the file's texts, nil for no file.  BUFFER
visits the file; OPENED is non-nil if BUFFER was opened for the change, UNSAVED
if BUFFER had unsaved changes of the person.  STAMP is the file's stamp before
the change.  SAVE is non-nil if the file is to be saved.  NUMBER is the number
of the change in the sidecar."
  kind path file to to-file before after buffer opened unsaved stamp (save t) number)

;;;; Visiting a file

(defun efrit-change-visit (change)
  "Visit the existing file of CHANGE, and store its text and stamp in CHANGE."
  (let* ((file (efrit-change-file change))
         (buffer (efrit-file-buffer file)))
    (efrit-change--check-size change)
    (if buffer
        (efrit-change--check-buffer change buffer)
      (efrit-change--check-plain change)
      (setq buffer (efrit-file-open file))
      (setf (efrit-change-opened change) t))
    (setf (efrit-change-buffer change) buffer
          (efrit-change-unsaved change) (buffer-modified-p buffer)
          (efrit-change-before change) (efrit-file-text buffer)
          (efrit-change-stamp change) (efrit-file-stamp file))
    (with-current-buffer buffer
      (efrit-change--check-content change))))

(defun efrit-change-start (change)
  "Return where the first changed line begins in the text after CHANGE.
This is a number of characters."
  (let* ((before (or (efrit-change-before change) ""))
         (after (or (efrit-change-after change) ""))
         (same (efrit-file--common-start before after (min (length before) (length after))))
         (line (and (> same 0) (string-match "[^\n]*\\'" (substring after 0 same)))))
    (or line same)))

(defun efrit-change-release (change)
  "Kill the buffer that was opened for CHANGE, if it is neither shown nor modified."
  (let ((buffer (efrit-change-buffer change)))
    (when (and (efrit-change-opened change) (buffer-live-p buffer))
      (efrit-file-kill-unused buffer))))

;;;; Making a change

(defun efrit-change-apply (change)
  "Make CHANGE.
Signal `efrit-change-refused' or another error if that fails; the file and
its buffer are then unchanged."
  (unless (equal (efrit-change-stamp change) (efrit-file-stamp (efrit-change-file change)))
    (efrit-change--refuse change "%s was just changed by somebody else; read it again"))
  (pcase (efrit-change-kind change)
    ('edit (efrit-change--edit change))
    ('create (efrit-change--create change))
    ('delete (efrit-change--delete change))
    ('rename (efrit-change--rename change))))

(defun efrit-change-revert (change)
  "Undo CHANGE, an edit: in its buffer, and on disk if it was saved."
  (efrit-change-restore-buffer change)
  (when (efrit-change-save change)
    (with-current-buffer (efrit-change-buffer change)
      (efrit-file-write)
      (efrit-file-set-modified (efrit-change-unsaved change)))))

(defun efrit-change-restore-buffer (change)
  "Restore the text before CHANGE in its buffer, if the buffer is live."
  (efrit-with-live-buffer (efrit-change-buffer change)
    (efrit-file-set-text (current-buffer) (efrit-change-before change))
    (unless (efrit-change-unsaved change)
      (set-buffer-modified-p nil))))

;;;; Checks

(defun efrit-change--refuse (change format &rest arguments)
  "Signal `efrit-change-refused' for CHANGE.
The reason is FORMAT, filled with the path of CHANGE and with ARGUMENTS."
  (signal 'efrit-change-refused
          (list (apply #'format format (efrit-change-path change) arguments))))

(defun efrit-change--check-size (change)
  "Refuse CHANGE if its file is too large to be edited."
  (let ((size (file-attribute-size (file-attributes (efrit-change-file change)))))
    (when (> (or size 0) efrit-change-most-bytes)
      (efrit-change--refuse change "%s has %d bytes, more than the %d that can be edited; \
use a command" size efrit-change-most-bytes))))

(defun efrit-change--check-plain (change)
  "Refuse CHANGE if Emacs would uncompress or decrypt its file."
  (let ((handler (find-file-name-handler (efrit-change-file change) 'insert-file-contents)))
    (when (and handler (not (file-remote-p (efrit-change-file change))))
      (efrit-change--refuse change "%s is compressed or encrypted and cannot be edited"))))

(defun efrit-change--check-buffer (change buffer)
  "Refuse CHANGE if BUFFER, which visits its file, must not be edited.
Reload an unmodified BUFFER whose file has changed on disk."
  (with-current-buffer buffer
    (unless (efrit-file-current-p buffer)
      (when (buffer-modified-p)
        (efrit-change--refuse change "%s has unsaved changes in Emacs, and its file has changed \
on disk; ask the person to resolve that first"))
      (efrit-file-reload buffer buffer-file-coding-system))
    (when (buffer-base-buffer)
      (efrit-change--refuse change "%s is in an indirect buffer and cannot be edited"))))

(defun efrit-change--check-content (change)
  "Refuse CHANGE if this buffer, which visits its file, cannot be edited."
  (let ((file (efrit-change-file change)))
    (cond
     ((not (file-writable-p file))
      (efrit-change--refuse change "%s is read-only; ask the person to make it writable"))
     (buffer-read-only
      (efrit-change--refuse change "%s is in a buffer that the person made read-only"))
     ((stringp (file-locked-p file))
      (efrit-change--refuse change "%s is being edited by %s in another Emacs"
                            (file-locked-p file)))
     ((string-search "\0" (efrit-change-before change))
      (efrit-change--refuse change "%s is binary and cannot be edited as text")))))

(defun efrit-change--check-encodable (change)
  "Refuse CHANGE if the file's coding system lacks a character of its new text.
Raw bytes are always allowed."
  (let* ((coding (efrit-file-coding))
         (text (replace-regexp-in-string "[\x3fff80-\x3fffff]" ""
                                         (efrit-change-after change) t t))
         (place (car (unencodable-char-position 0 (length text) coding 1 text))))
    (when place
      (efrit-change--refuse change "%s is encoded in %s, which has no %s (U+%04X)"
                            coding (string (aref text place)) (aref text place)))))

;;;; Kinds of changes

(defun efrit-change--edit (change)
  "Edit the file of CHANGE in its buffer; save it unless SAVE of CHANGE is nil."
  (let ((buffer (efrit-change-buffer change)))
    (with-current-buffer buffer
      (efrit-change--check-encodable change)
      (efrit-on-failure (efrit-change-restore-buffer change)
        (efrit-file-set-text buffer (efrit-change-after change))
        (unless (string= (efrit-file-text buffer) (efrit-change-after change))
          (efrit-change--refuse change "%s cannot hold this text"))
        (when (efrit-change-save change)
          (efrit-file-save buffer))))))

(defun efrit-change--create (change)
  "Create the file of CHANGE, and its missing parent folders."
  (let ((file (efrit-change-file change)))
    (when (file-exists-p file)
      (efrit-change--refuse change "%s was created by somebody else; read it"))
    (make-directory (file-name-directory file) t)
    (setf (efrit-change-buffer change) (efrit-file-open file)
          (efrit-change-opened change) t)
    (with-current-buffer (efrit-change-buffer change)
      (efrit-on-failure (progn (set-buffer-modified-p nil)
                               (kill-buffer))
        (let ((inhibit-read-only t))
          (efrit-file-set-text (current-buffer) (efrit-change-after change))
          (when (unencodable-char-position (point-min) (point-max) (efrit-file-coding))
            (set-buffer-file-coding-system 'utf-8-unix t t))
          (set-buffer-modified-p t)
          (efrit-file-save (current-buffer)))))))

(defun efrit-change--delete (change)
  "Delete the file of CHANGE; move it to the trash if the person's Emacs does so."
  (let ((buffer (efrit-change-buffer change)))
    (delete-file (efrit-change-file change) t)
    (when (and (efrit-change-opened change) (buffer-live-p buffer))
      (kill-buffer buffer))))

(defun efrit-change--rename (change)
  "Rename the file of CHANGE, and make its buffer visit the new name.
Without such a buffer, reload one that already visits the new name."
  (let ((file (efrit-change-file change))
        (to (efrit-change-to-file change)))
    (make-directory (file-name-directory to) t)
    (rename-file file to)
    (if-let* ((buffer (efrit-file-buffer file)))
        (with-current-buffer buffer
          (let ((modified (buffer-modified-p)))
            (efrit-file-visit-as to)
            (set-visited-file-modtime)
            (efrit-file-set-modified modified)))
      (when-let* ((former (efrit-file-buffer to))
                  ((not (buffer-modified-p former))))
        ;; If this fails, the next edit of that file reloads it.
        (ignore-errors (efrit-file-reload former))))))

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

(defun efrit-sync-flush ()
  "Send every unsaved text that the sidecar does not have yet.
Requests sent after this are answered from the new texts."
  (efrit-sync--flush #'always))

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
          (run-at-time efrit-sync-delay nil #'efrit-defer #'efrit-sync--flush-short))))

(defun efrit-sync--killed ()
  "Withdraw the text of this buffer, which is being killed, if it is unsaved."
  (when (and buffer-file-name (buffer-modified-p))
    (let ((efrit-sync--killed-buffer (current-buffer)))
      (efrit-sync--flush-short))))

(defun efrit-sync--flush-short (&rest _)
  "Send short unsaved buffers; withdraw texts whose buffers are saved or killed."
  (efrit-sync--flush (lambda (buffer) (<= (buffer-size buffer) efrit-sync-short))))

(defun efrit-sync--flush (due)
  "Send the unsaved buffers that satisfy the function DUE; withdraw obsolete texts."
  (efrit-stop-timer efrit-sync--timer)
  (let ((buffers (seq-filter (lambda (buffer)
                               (and (not (eq buffer efrit-sync--killed-buffer))
                                    (buffer-file-name buffer)
                                    (buffer-modified-p buffer)))
                             (buffer-list))))
    (dolist (loop (efrit-loops))
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
;; file is gone, is not reverted; a note tells the person.

(defconst efrit-revert--slice 0.03
  "Most seconds for which buffers are checked without a pause.")

(defconst efrit-revert--pause 0.1
  "Seconds between checks of two remote files.")

(defconst efrit-revert--after-stop 1.5
  "Seconds after a stop at which the stopped command has certainly ended.")

(defvar efrit-revert--queue nil
  "Buffers to check: a list of conses (LOOP . BUFFER).")

(defvar-local efrit-revert--noted-state nil
  "State of this buffer's file for which a note was shown, or nil for none.")

(defun efrit-revert-changed (loop)
  "Soon revert the buffers whose files in the project of LOOP have changed."
  (when efrit-revert-buffers
    (let ((idle (null efrit-revert--queue)))
      (setq efrit-revert--queue
            (append (seq-remove (lambda (entry) (eq (car entry) loop)) efrit-revert--queue)
                    (mapcar (lambda (buffer) (cons loop buffer))
                            (efrit-revert--buffers loop))))
      (when (and idle efrit-revert--queue)
        (efrit-defer #'efrit-revert--work)))))

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
       (run-at-time efrit-revert--after-stop nil #'efrit-revert-changed loop)))))

(defun efrit-revert--buffers (loop)
  "Return the buffers that visit files of the project of LOOP, remote ones last."
  (let* ((root (file-name-as-directory (expand-file-name (efrit-loop-root loop))))
         (roots (if (file-remote-p root)
                    (list root)
                  (list root (file-name-as-directory (file-truename root)))))
         (inside (seq-filter (lambda (buffer) (efrit-revert--inside-p buffer roots))
                             (buffer-list))))
    (seq-sort-by (lambda (buffer) (if (file-remote-p (buffer-file-name buffer)) 1 0))
                 #'< inside)))

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
  "Check queued buffers for `efrit-revert--slice', and schedule the rest.
Emacs must wait for a remote file, so check remote files one by one, and
not while the person types."
  (let ((end (+ (float-time) efrit-revert--slice))
        (pause nil))
    (unwind-protect
        (while (and efrit-revert--queue (not pause) (< (float-time) end))
          (setq pause (efrit-revert--work-on (car efrit-revert--queue))))
      (if efrit-revert--queue
          (run-at-time (or pause 0.01) nil #'efrit-revert--work)
        (efrit-defer #'efrit-sync-flush)))))

(defun efrit-revert--work-on (entry)
  "Check ENTRY, the first of the queue, unless it is remote and TRAMP is busy.
Return the seconds to pause afterwards, or nil."
  (pcase-let* ((`(,loop . ,buffer) entry)
               (visits (and (buffer-live-p buffer) (buffer-file-name buffer)))
               (remote (and visits (file-remote-p visits))))
    (unless (and remote (or (input-pending-p) (efrit-remote-busy-p)))
      (pop efrit-revert--queue)
      (when visits
        (efrit-revert--check loop buffer)))
    (and remote efrit-revert--pause)))

(defun efrit-revert--check (loop buffer)
  "Revert BUFFER if its file has changed, or show a note in LOOP why that fails."
  (with-current-buffer buffer
    (let ((non-essential t)
          (remote-file-name-inhibit-cache t))
      (condition-case err
          (unless (and (file-remote-p buffer-file-name)
                       (not (file-remote-p buffer-file-name nil t)))
            (if (efrit-file-current-p buffer)
                (setq efrit-revert--noted-state nil)
              (efrit-revert--revert-or-note loop)))
        (error (efrit-revert--note-once loop (error-message-string err)
                                        (format "changed on disk, but was not reverted: %s"
                                                (error-message-string err))))))))

(defun efrit-revert--revert-or-note (loop)
  "Revert this buffer, whose file has changed, or show a note in LOOP why not."
  (let ((attributes (file-attributes buffer-file-name)))
    (cond
     ((null attributes)
      (efrit-revert--note-once loop 'gone "was deleted on disk; its buffer was kept"))
     ((buffer-modified-p)
      (efrit-revert--note-once loop (file-attribute-modification-time attributes)
                               "changed on disk, but its buffer has unsaved changes; \
it was not reverted"))
     ((eq (find-file-name-handler buffer-file-name 'insert-file-contents)
          'epa-file-handler)
      (efrit-revert--note-once loop (file-attribute-modification-time attributes)
                               "changed on disk, but was not reverted: it is encrypted"))
     (t (efrit-revert--revert)))))

(defun efrit-revert--note-once (loop state text)
  "Show TEXT about the file of this buffer as a note in LOOP, once for each STATE."
  (unless (equal state efrit-revert--noted-state)
    (setq efrit-revert--noted-state state)
    (efrit-loop-notify loop 'note
                       (format "%s %s" (file-relative-name buffer-file-name
                                                           (efrit-loop-root loop))
                               text))))

;;;; Reverting

(defun efrit-revert--revert ()
  "Revert this buffer as its mode does, but keep undo if it has plain text."
  (let ((buffer-read-only buffer-read-only)
        (inhibit-message t)
        (revert-buffer-insert-file-contents-function
         (if (efrit-revert--plain-p)
             #'efrit-revert--insert
           revert-buffer-insert-file-contents-function)))
    (revert-buffer t t t)))

(defun efrit-revert--plain-p ()
  "Return non-nil if this buffer has only the decoded text of its file."
  (and enable-multibyte-characters
       (null buffer-file-format)
       (memq revert-buffer-insert-file-contents-function
             '(nil revert-buffer-insert-file-contents--default-function))))

(defun efrit-revert--insert (_file _auto-save)
  "Replace the text of this buffer with its file's, in one step of undo.
Keep a coding system that the person chose."
  (efrit-file-reload (current-buffer) (car buffer-file-coding-system-explicit)))

(add-hook 'efrit-loop-work-functions
          (lambda (loop) (efrit-loop-observe loop #'efrit-revert--observe)))

(provide 'efrit-files)
;;; efrit-files.el ends here
