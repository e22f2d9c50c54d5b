;;; efrit-change.el --- Change files through their buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; How files stand in their buffers, changes of them, and the differences
;; between texts.

;;; Code:

(require 'cl-lib)
(require 'diff)
(require 'efrit)
(require 'seq)
(require 'subr-x)

;;; Files and their buffers

;; Opening a file without a question, setting its buffer's text without
;; moving anybody's point, and saving it whole or not at all.

(defvar-local efrit-file--last-stamp nil
  "When the file of this buffer was written, and the stamp that it had then.
That is when the buffer was last read from it or saved here, a cons.")

(defun efrit-file-buffer (file)
  "Return the buffer that visits FILE, or nil.
Where one has that very name, links are not followed: on another machine
that takes long."
  (or (get-file-buffer file) (find-buffer-visiting file)))

(defmacro efrit-file-quietly (&rest body)
  "Run BODY; a file opened in it asks nothing and has nothing of its own run."
  (declare (indent 0) (debug t))
  `(efrit-file--quietly (lambda () ,@body)))

(defun efrit-file--quietly (body)
  "Call BODY; see `efrit-file-quietly'."
  (let ((enable-local-variables :safe)
        (enable-local-eval nil)
        (large-file-warning-threshold nil)
        (find-file-suppress-same-file-warnings t)
        (vc-follow-symlinks t)
        ;; It would run git as the repository has it configured.
        (vc-handled-backends nil)
        (inhibit-message t))
    (funcall body)))

(defun efrit-file-open (file)
  "Return a new buffer that visits FILE, opened quietly."
  (let ((auto-save-default (efrit-file--auto-save-p file)))
    (with-current-buffer (efrit-file-quietly (find-file-noselect file t))
      (efrit-file--record-stamp)
      (current-buffer))))

(defun efrit-file-current-p (buffer)
  "Return non-nil if the file of BUFFER is as it was when BUFFER was read or saved.
Emacs alone would not see it where a file of another machine changed
within two seconds: TRAMP is that lenient."
  (with-current-buffer buffer
    (and (verify-visited-file-modtime buffer)
         (or (not (file-remote-p buffer-file-name))
             (efrit-file--same-p (file-attributes buffer-file-name))))))

(defun efrit-file-visit-as (file)
  "Have this buffer visit FILE from now on; nothing is asked."
  (let ((auto-save-default (efrit-file--auto-save-p file))
        (inhibit-message t))
    (set-visited-file-name file t t)))

(defun efrit-file-text (buffer)
  "Return the whole text of BUFFER, narrowed or not."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun efrit-file-name-there (root name)
  "Return the file that NAME means, as the sidecar of the project ROOT writes it.
It comes with the host of ROOT.  The sidecar quotes a name that cannot be
shown as it stands, in the manner of C."
  (concat (file-remote-p root)
          (if (string-prefix-p "\"" name)
              (decode-coding-string (encode-coding-string (read name) 'utf-8-unix) 'utf-8-unix)
            name)))

(defun efrit-file-stamp (file)
  "Return the stamp of FILE, or of its buffer where that is modified.
As long as it stays the same, so does the text."
  (let ((buffer (efrit-file-buffer file)))
    (if (and buffer (buffer-modified-p buffer))
        (list 'buffer (buffer-chars-modified-tick buffer))
      (efrit-file--stamp (file-attributes file)))))

(defun efrit-file-set-text (buffer text)
  "Make TEXT the whole text of BUFFER in one step of undo.
Points, marks and windows stay where they are."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (undo-boundary)
      (let ((group (prepare-change-group))
            ;; Emacs would ask where the file has changed on disk.
            (buffer-file-truename nil))
        (activate-change-group group)
        (efrit-file--splice text)
        (undo-amalgamate-change-group group)
        (accept-change-group group)
        (undo-boundary)))))

(defun efrit-file-reload (buffer &optional coding)
  "Have BUFFER, which is not modified, follow its file.
Point, windows and the history of undo stay.  CODING says how the file is
encoded; by default that is found out."
  (with-current-buffer buffer
    (pcase-let ((`(,text ,modtime ,coding) (efrit-file--read buffer-file-name coding))
                (inhibit-read-only t))
      ;; Without a name, nobody is asked about a file that changed on disk.
      ;; Undoing it has to make the buffer modified, so that the time of
      ;; the file is set after the text, and not before.
      (let ((buffer-file-name nil))
        (efrit-file-set-text buffer text))
      (set-visited-file-modtime modtime)
      (set-buffer-modified-p nil)
      (setq buffer-file-coding-system coding)
      (efrit-file--record-stamp))))

(defun efrit-file-save (buffer)
  "Save BUFFER with its hooks: the file is replaced whole or not at all.
The end of its last line stays as it is, and no backup is made."
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
            ;; A hook that fails after the file was written does not unwrite it.
            (error (when (buffer-modified-p)
                     (signal (car err) (cdr err)))
                   (message "efrit: after %s was saved: %s" (buffer-name)
                            (error-message-string err))))
        (remove-hook 'write-file-functions #'efrit-file-write t)))))

(defun efrit-file-write ()
  "Write this buffer into a new file, to replace its own; return t.
It is the last of `write-file-functions'."
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
  "Note that this buffer is modified where FLAG is non-nil, and else not.
Emacs would ask where its file has changed on disk."
  (let ((buffer-file-truename nil))
    (set-buffer-modified-p flag)))

(defun efrit-file-leftovers (file)
  "Return what an Emacs that was killed while it wrote FILE left beside it."
  (directory-files (file-name-directory file) t
                   (format "\\`%s.\\{6\\}\\'"
                           (regexp-quote (efrit-file--new-name file)))
                   t))

(defun efrit-file-coding ()
  "Return the coding system that this buffer is written in."
  (let ((coding (or buffer-file-coding-system 'utf-8-unix)))
    (if (memq (coding-system-base coding) '(undecided prefer-utf-8 us-ascii))
        (coding-system-change-text-conversion coding 'utf-8)
      coding)))

(defun efrit-file--stamp (attributes)
  "Return the stamp of the file with ATTRIBUTES, or nil for none."
  (and attributes
       (list (file-attribute-size attributes)
             (file-attribute-modification-time attributes)
             (file-attribute-inode-number attributes))))

(defun efrit-file--record-stamp ()
  "Note the stamp of the file of this buffer, which is as the buffer."
  (setq efrit-file--last-stamp
        (and (file-remote-p buffer-file-name)
             (cons (visited-file-modtime)
                   (efrit-file--stamp (file-attributes buffer-file-name))))))

(defun efrit-file--same-p (attributes)
  "Return non-nil if the file of this buffer has not changed since it was read.
ATTRIBUTES are those that it has now.
Of a buffer that the person saved, the time alone is known."
  (let ((modtime (visited-file-modtime)))
    (cond ((equal modtime (car efrit-file--last-stamp))
           (equal (cdr efrit-file--last-stamp) (efrit-file--stamp attributes)))
          ((and attributes (consp modtime))
           (time-equal-p modtime (file-attribute-modification-time attributes)))
          (t t))))

(defun efrit-file--auto-save-p (file)
  "Return non-nil if a buffer of FILE is to be saved automatically.
Where TRAMP would ask first, it is not: it asks before it keeps what
belongs to root on another machine in the temporary folder of this one."
  (and auto-save-default
       (or (not (file-remote-p file))
           (bound-and-true-p tramp-allow-unsafe-temporary-files)
           (not (eql 0 (file-attribute-user-id (file-attributes file)))))))

(defun efrit-file--new-name (file)
  "Return how the name begins of the new file that is to replace FILE."
  (format ".%s.efrit-" (file-name-nondirectory file)))

(defun efrit-file--read (file coding)
  "Return the text of FILE, when it was written, and how it is encoded.
That is CODING, if any, or else found out."
  (let ((coding-system-for-read coding))
    (with-temp-buffer
      (insert-file-contents file t)
      (prog1 (list (buffer-string) (visited-file-modtime)
                   (or coding buffer-file-coding-system))
        (set-buffer-modified-p nil)
        (setq buffer-file-name nil)))))

(defun efrit-file--splice (text)
  "Make TEXT the whole text of this buffer; what is the same is not touched."
  (let* ((old (buffer-substring-no-properties (point-min) (point-max)))
         (most (min (length old) (length text)))
         (head (efrit-file--common-start old text most))
         (tail (efrit-file--common-end old text (- most head)))
         (start (+ (point-min) head))
         (end (- (point-max) tail)))
    (unless (and (= start end) (= (length text) (+ head tail)))
      (let ((new (substring text head (- (length text) tail))))
        (save-excursion
          (replace-region-contents start end (lambda () new) 0.3))))))

(defun efrit-file--common-start (one other most)
  "Return with how many letters ONE and OTHER begin alike, of MOST."
  (let ((difference (compare-strings one 0 most other 0 most)))
    (if (eq difference t) most (1- (abs difference)))))

(defun efrit-file--common-end (one other most)
  "Return with how many letters ONE and OTHER end alike, of MOST."
  (let ((low 0)
        (high most)
        (ends (lambda (count)
                (eq t (compare-strings one (- (length one) count) nil
                                       other (- (length other) count) nil)))))
    (while (< low high)
      (let ((middle (/ (+ low high 1) 2)))
        (if (funcall ends middle) (setq low middle) (setq high (1- middle)))))
    low))

;;; Changes

;; A change says how one file stands and how it is to stand.  It is made in
;; the file's buffer, so that undo, hooks and unsaved work behave as with a
;; person's own edit, and written whole or not at all: into a new file that
;; then takes the place of the old one.
;;
;; Nothing here asks, and nothing here knows of the model or the sidecar.

(cl-defstruct (efrit-change (:constructor efrit-change-create) (:copier nil))
  "A change of one file.
KIND is `edit', `create', `delete' or `rename'.  PATH is the file's name as
the model has it, FILE the whole name; TO and TO-FILE are those of a rename.
BEFORE and AFTER are texts, nil where there is no such file.  BUFFER visits
the file; OPENED says whether it was opened for this.  UNSAVED says whether it
had changes of the person's.  STAMP tells whether somebody changed the file
since.  SAVE says whether it is saved.  NUMBER is the sidecar's."
  kind path file to to-file before after buffer opened unsaved stamp (save t) number)

;;;; How a file stands

(defun efrit-change-visit (change)
  "Have the file of CHANGE, which is there, visited, and its text be BEFORE."
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

(defun efrit-change-release (change)
  "Kill the buffer that was opened for CHANGE, which is not made."
  (let ((buffer (efrit-change-buffer change)))
    (when (and (efrit-change-opened change) (buffer-live-p buffer)
               (not (buffer-modified-p buffer))
               (null (get-buffer-window buffer t)))
      (let ((kill-buffer-query-functions nil))
        (kill-buffer buffer)))))

(defun efrit-change-file-unchanged-p (change)
  "Return non-nil if the file of CHANGE still is as it was found."
  (equal (efrit-change-stamp change)
         (efrit-file-stamp (efrit-change-file change))))

;;;; Making a change

(defun efrit-change-apply (change)
  "Make CHANGE; signal `efrit-change-refused' or an error where it cannot be.
Then the file, and its buffer, are as before."
  (unless (efrit-change-file-unchanged-p change)
    (efrit-change--refuse "%s was changed a moment ago by somebody else; read it again"
                          (efrit-change-path change)))
  (pcase (efrit-change-kind change)
    ('edit (efrit-change--edit change))
    ('create (efrit-change--create change))
    ('delete (efrit-change--delete change))
    ('rename (efrit-change--rename change))))

(defun efrit-change-revert (change)
  "Put back CHANGE, an edit: in its buffer, and on disk if it was saved."
  (efrit-change-restore-buffer change)
  (when (efrit-change-save change)
    (with-current-buffer (efrit-change-buffer change)
      (efrit-file-write)
      (efrit-file-set-modified (efrit-change-unsaved change)))))

(defun efrit-change-restore-buffer (change)
  "Have the buffer of CHANGE hold the text from before."
  (let ((buffer (efrit-change-buffer change)))
    (when (buffer-live-p buffer)
      (efrit-file-set-text buffer (efrit-change-before change))
      (unless (efrit-change-unsaved change)
        (with-current-buffer buffer
          (set-buffer-modified-p nil))))))

;;;; Checks

(defun efrit-change--refuse (format &rest arguments)
  "Signal that a change cannot be made; FORMAT and ARGUMENTS say why."
  (signal 'efrit-change-refused (list (apply #'format format arguments))))

(defun efrit-change--check-size (change)
  "Refuse CHANGE where its file is too large to be edited."
  (let ((size (file-attribute-size (file-attributes (efrit-change-file change)))))
    (when (> (or size 0) efrit-change-most-bytes)
      (efrit-change--refuse "%s has %d bytes; files of more than %d are not edited here: \
use a command" (efrit-change-path change) size efrit-change-most-bytes))))

(defun efrit-change--check-plain (change)
  "Refuse CHANGE where Emacs would uncompress or decrypt its file."
  (let ((handler (find-file-name-handler (efrit-change-file change) 'insert-file-contents)))
    (when (and handler (not (file-remote-p (efrit-change-file change))))
      (efrit-change--refuse "%s is compressed or encrypted; it is not edited here"
                            (efrit-change-path change)))))

(defun efrit-change--check-buffer (change buffer)
  "Refuse CHANGE where BUFFER, which visits its file, is not to be edited.
Where the person has not changed it and the file has, it is read again."
  (with-current-buffer buffer
    (unless (efrit-file-current-p buffer)
      (when (buffer-modified-p)
        (efrit-change--refuse "%s has unsaved changes in Emacs, and its file has changed \
on disk: the person has to settle that first" (efrit-change-path change)))
      (efrit-file-reload buffer buffer-file-coding-system))
    (when (buffer-base-buffer)
      (efrit-change--refuse "%s is visited by an indirect buffer"
                            (efrit-change-path change)))))

(defun efrit-change--check-content (change)
  "Refuse CHANGE where this buffer, that of its file, cannot be edited."
  (let ((path (efrit-change-path change)))
    (cond
     ((not (file-writable-p (efrit-change-file change)))
      (efrit-change--refuse "%s is read-only; ask the person to make it writable" path))
     (buffer-read-only
      (efrit-change--refuse "%s is read-only in its buffer, by the person's will" path))
     ((stringp (file-locked-p (efrit-change-file change)))
      (efrit-change--refuse "%s is being edited by %s in another Emacs" path
                            (file-locked-p (efrit-change-file change))))
     ((string-search "\0" (efrit-change-before change))
      (efrit-change--refuse "%s is binary; it is not edited as text" path)))))

(defun efrit-change--check-letters (change)
  "Refuse CHANGE where the file's coding system has not all letters of its text.
Bytes that are no letters go back as they came."
  (let* ((coding (efrit-file-coding))
         (text (replace-regexp-in-string "[\x3fff80-\x3fffff]" ""
                                         (efrit-change-after change) t t))
         (place (car (unencodable-char-position 0 (length text) coding 1 text))))
    (when place
      (efrit-change--refuse "%s is in %s, which has no %s (U+%04X)"
                            (efrit-change-path change) coding
                            (string (aref text place)) (aref text place)))))

;;;; Kinds of changes

(defun efrit-change--edit (change)
  "Edit the file of CHANGE in its buffer, and save that if it is to be."
  (let ((buffer (efrit-change-buffer change))
        (done nil))
    (with-current-buffer buffer
      (efrit-change--check-letters change)
      (unwind-protect
          (progn
            (efrit-file-set-text buffer (efrit-change-after change))
            (unless (string= (efrit-file-text buffer) (efrit-change-after change))
              (efrit-change--refuse "%s cannot hold this text" (efrit-change-path change)))
            (when (efrit-change-save change)
              (efrit-file-save buffer))
            (setq done t))
        (unless done
          (efrit-change-restore-buffer change))))))

(defun efrit-change--create (change)
  "Make the file of CHANGE, and the folders that it lacks."
  (let ((file (efrit-change-file change))
        (done nil))
    (when (file-exists-p file)
      (efrit-change--refuse "%s is there by now" (efrit-change-path change)))
    (make-directory (file-name-directory file) t)
    (setf (efrit-change-buffer change) (efrit-file-open file)
          (efrit-change-opened change) t)
    (with-current-buffer (efrit-change-buffer change)
      (unwind-protect
          (let ((inhibit-read-only t))
            (efrit-file-set-text (current-buffer) (efrit-change-after change))
            (efrit-change--fit-coding)
            (set-buffer-modified-p t)
            (efrit-file-save (current-buffer))
            (setq done t))
        (unless done
          (set-buffer-modified-p nil)
          (kill-buffer))))))

(defun efrit-change--fit-coding ()
  "Have this new buffer be saved as UTF-8 where its own coding has not all."
  (when (unencodable-char-position (point-min) (point-max) (efrit-file-coding))
    (set-buffer-file-coding-system 'utf-8-unix t t)))

(defun efrit-change--delete (change)
  "Delete the file of CHANGE, or move it to the trash, as the person's Emacs does."
  (let ((buffer (efrit-change-buffer change)))
    (delete-file (efrit-change-file change) t)
    (when (and (efrit-change-opened change) (buffer-live-p buffer))
      (kill-buffer buffer))))

(defun efrit-change--rename (change)
  "Give the file of CHANGE its new name, and its buffer, too.
A buffer of a file that had this name before shows the new text."
  (let* ((file (efrit-change-file change))
         (to (efrit-change-to-file change))
         (former (efrit-file-buffer to)))
    (make-directory (file-name-directory to) t)
    (rename-file file to)
    (when-let* ((buffer (efrit-file-buffer file)))
      (with-current-buffer buffer
        (let ((modified (buffer-modified-p)))
          (efrit-file-visit-as to)
          (set-visited-file-modtime)
          (efrit-file-set-modified modified))))
    (when (and former (not (buffer-modified-p former)))
      ;; The rename is done; where this fails, it is done before the next edit.
      (ignore-errors (efrit-file-reload former)))))

;;; Differences

;; Unified diffs of texts that are nowhere on disk, by the program that
;; `diff-command' names.  Where there is none, one hunk holds all lines from
;; the first that differs to the last.

(defconst efrit-diff--context 3
  "Unchanged lines shown around each difference.")

(defun efrit-diff (old new path &optional to)
  "Return the unified diff from OLD to NEW, the texts of PATH, or \"\".
OLD or NEW is nil where there is no such file.  TO is its new name, if any."
  (if (equal old new)
      ""
    (concat (format "--- %s\n+++ %s\n"
                    (if old (concat "a/" path) "/dev/null")
                    (if new (concat "b/" (or to path)) "/dev/null"))
            (or (efrit-diff--by-program (or old "") (or new ""))
                (efrit-diff--one-hunk (or old "") (or new ""))))))

(defun efrit-diff-counts (diff)
  "Return how many lines come and go by DIFF: (ADDED . REMOVED)."
  (let ((added 0)
        (removed 0)
        (start 0))
    (while (string-match "^\\(?:\\(\\+\\)\\|-\\)" diff start)
      (setq start (match-end 0))
      (if (match-beginning 1) (setq added (1+ added)) (setq removed (1+ removed))))
    (let ((headers (efrit-diff--count "^--- .*\n\\+\\+\\+ " diff)))
      (cons (- added headers) (- removed headers)))))

(defvar diff-font-lock-syntax)
(defvar diff-font-lock-prettify)
(defvar diff-refine)

(defun efrit-diff-fontify (diff)
  "Return DIFF with the faces that `diff-mode' gives it."
  (require 'diff-mode)
  (with-temp-buffer
    (insert diff)
    (let ((diff-font-lock-syntax nil)
          (diff-refine nil)
          (diff-font-lock-prettify nil))
      (delay-mode-hooks (diff-mode))
      (font-lock-ensure))
    (efrit-diff--by-faces (buffer-string))))

(defun efrit-diff-show (text)
  "Show TEXT, with a diff in it, in a window of its own."
  (with-current-buffer (get-buffer-create "*efrit diff*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text))
    (diff-mode)
    (setq bidi-display-reordering nil)
    (read-only-mode)
    (goto-char (point-min))
    (display-buffer (current-buffer))))

(defun efrit-diff--by-faces (text)
  "Return TEXT with nothing but the faces that font-lock gave it."
  (let ((bare (substring-no-properties text))
        (position 0))
    (while (< position (length text))
      (let ((next (next-single-property-change position 'face text (length text)))
            (face (get-text-property position 'face text)))
        (when face
          (put-text-property position next 'face face bare))
        (setq position next)))
    bare))

(defun efrit-diff--count (regexp text)
  "Return how often REGEXP matches in TEXT."
  (let ((count 0)
        (start 0))
    (while (string-match regexp text start)
      (setq start (match-end 0)
            count (1+ count)))
    count))

(defun efrit-diff--by-program (old new)
  "Return the hunks from OLD to NEW as the program gives them, or nil."
  (let ((files nil)
        (default-directory temporary-file-directory)
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
  "Return one hunk that leads from OLD to NEW."
  (let* ((olds (efrit-diff--lines old))
         (news (efrit-diff--lines new))
         (head (efrit-diff--common-prefix-length olds news))
         (tail (min (efrit-diff--common-prefix-length (reverse olds) (reverse news))
                    (- (min (length olds) (length news)) head)))
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

(defun efrit-diff--lines (text)
  "Return the lines of TEXT, each with its end."
  (let ((lines nil)
        (start 0))
    (while (< start (length text))
      (let ((end (string-search "\n" text start)))
        (push (substring text start (and end (1+ end))) lines)
        (setq start (if end (1+ end) (length text)))))
    (nreverse lines)))

(defun efrit-diff--common-prefix-length (one other)
  "Return how many elements the lists ONE and OTHER begin with alike."
  (let ((count 0))
    (while (and one other (string= (car one) (car other)))
      (setq count (1+ count)
            one (cdr one)
            other (cdr other)))
    count))

(defun efrit-diff--range (first count)
  "Return the range of COUNT lines behind FIRST others, as a hunk has it."
  (format "%d,%d" (if (zerop count) first (1+ first)) count))

(defun efrit-diff--mark-lines (mark lines)
  "Return LINES with MARK in front of each."
  (mapconcat (lambda (line)
               (concat mark line
                       (if (string-suffix-p "\n" line) "" "\n\\ No newline at end of file\n")))
             lines ""))

(provide 'efrit-change)
;;; efrit-change.el ends here
