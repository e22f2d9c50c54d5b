;;; efrit-file.el --- Files as their buffers hold them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Opening a file without a question, setting its buffer's text without
;; moving anybody's point, and saving it whole or not at all.

;;; Code:

(require 'subr-x)

(defvar-local efrit-file--known nil
  "When the file of this buffer was written, and the stamp that it had then.
That is when the buffer was last read from it or saved here, a cons.")

;;; Public

(defun efrit-file-buffer (file)
  "Return the buffer that visits FILE, or nil.
Where one has that very name, links are not followed: on another machine
that takes long."
  (or (get-file-buffer file) (find-buffer-visiting file)))

(defun efrit-file-open (file)
  "Return a new buffer that visits FILE.
Nothing is asked, and nothing is run that its repository says: version
control is not looked at."
  (let ((enable-local-variables :safe)
        (enable-local-eval nil)
        (large-file-warning-threshold nil)
        (find-file-suppress-same-file-warnings t)
        (vc-follow-symlinks t)
        (vc-handled-backends nil)
        (auto-save-default (efrit-file--auto-save-p file))
        (inhibit-message t))
    (let ((buffer (find-file-noselect file t)))
      (with-current-buffer buffer
        (efrit-file--note))
      buffer)))

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
      (efrit-file--note))))

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
          (efrit-file--note)
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

;;; Private

(defun efrit-file--stamp (attributes)
  "Return the stamp of the file with ATTRIBUTES, or nil for none."
  (and attributes
       (list (file-attribute-size attributes)
             (file-attribute-modification-time attributes)
             (file-attribute-inode-number attributes))))

(defun efrit-file--note ()
  "Note the stamp of the file of this buffer, which is as the buffer."
  (setq efrit-file--known
        (and (file-remote-p buffer-file-name)
             (cons (visited-file-modtime)
                   (efrit-file--stamp (file-attributes buffer-file-name))))))

(defun efrit-file--same-p (attributes)
  "Return non-nil if the file of this buffer has not changed since it was read.
ATTRIBUTES are those that it has now.
Of a buffer that the person saved, the time alone is known."
  (let ((modtime (visited-file-modtime)))
    (cond ((equal modtime (car efrit-file--known))
           (equal (cdr efrit-file--known) (efrit-file--stamp attributes)))
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
         (head (efrit-file--alike old text most))
         (tail (efrit-file--alike-at-end old text (- most head)))
         (start (+ (point-min) head))
         (end (- (point-max) tail)))
    (unless (and (= start end) (= (length text) (+ head tail)))
      (let ((new (substring text head (- (length text) tail))))
        (save-excursion
          (replace-region-contents start end (lambda () new) 0.3))))))

(defun efrit-file--alike (one other most)
  "Return with how many letters ONE and OTHER begin alike, of MOST."
  (let ((difference (compare-strings one 0 most other 0 most)))
    (if (eq difference t) most (1- (abs difference)))))

(defun efrit-file--alike-at-end (one other most)
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

(provide 'efrit-file)
;;; efrit-file.el ends here
