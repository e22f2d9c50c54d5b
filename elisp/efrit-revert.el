;;; efrit-revert.el --- Buffers follow the files that commands change  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; When a tool of the sidecar that may have changed files has ended, the
;; buffers that visit files of the project are looked at, a few at a time.
;; One that is not modified takes the text of its file; point, windows,
;; narrowing, the mode and the history of undo stay.  One that is modified
;; stays as it is, as does one whose file is gone: the person is told, and
;; the model is where it reads the buffer, see efrit-sync.el.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-file)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-run)
(require 'efrit-sync)
(require 'efrit-tools)
(require 'seq)

;;; Options

(defcustom efrit-revert-buffers t
  "Whether buffers follow the files that commands of the model change.
A buffer that is modified never does."
  :group 'efrit
  :type 'boolean)

(defconst efrit-revert--slice 0.03
  "How many seconds buffers are looked at without a pause.")

(defconst efrit-revert--pause 0.1
  "How many seconds pass between two remote files.")

(defconst efrit-revert--after-stop 1.5
  "Seconds after which a command that was stopped changes nothing any more.")

(defvar efrit-revert--queue nil
  "What is to be looked at: conses of a loop and a buffer.")

(defvar-local efrit-revert--told nil
  "How the file of this buffer was when the person was told of it, or nil.")

;;; Public

(defun efrit-revert-look (loop)
  "Have the buffers of files of the project of LOOP follow their files, soon."
  (when efrit-revert-buffers
    (let ((idle (null efrit-revert--queue)))
      (setq efrit-revert--queue
            (append (seq-remove (lambda (entry) (eq (car entry) loop)) efrit-revert--queue)
                    (mapcar (lambda (buffer) (cons loop buffer))
                            (efrit-revert--buffers loop))))
      (when (and idle efrit-revert--queue)
        (efrit-later #'efrit-revert--work)))))

;;; Private: what is looked at

(defun efrit-revert--watch (loop)
  "Look at buffers whenever a command of LOOP has ended."
  (efrit-loop-observe loop #'efrit-revert--observe))

(defun efrit-revert--observe (loop event)
  "Look at buffers where EVENT of LOOP is the end of what may have changed files."
  (pcase event
    ((and `(use ,use) (guard (efrit-revert--may-have-changed-p loop use)))
     (efrit-revert-look loop)
     (unless (efrit-use-result use)
       (run-at-time efrit-revert--after-stop nil #'efrit-revert-look loop)))))

(defun efrit-revert--may-have-changed-p (loop use)
  "Return non-nil if USE of LOOP has ended, and may have changed files."
  (and (eq (efrit-use-state use) 'done)
       (efrit-use-begun use)
       (not (efrit-tool-named (efrit-use-name use)))
       (efrit-run-effects-p loop use)))

(defun efrit-revert--buffers (loop)
  "Return the buffers of files of the project of LOOP, remote ones last."
  (let* ((root (file-name-as-directory (expand-file-name (efrit-loop-root loop))))
         (roots (if (file-remote-p root)
                    (list root)
                  (list root (file-name-as-directory (file-truename root)))))
         (inside (seq-filter (lambda (buffer) (efrit-revert--inside-p buffer roots))
                             (buffer-list))))
    (seq-sort-by (lambda (buffer) (if (efrit-revert--remote-p buffer) 1 0)) #'< inside)))

(defun efrit-revert--inside-p (buffer roots)
  "Return non-nil if BUFFER visits a file in one of ROOTS."
  (and (buffer-file-name buffer)
       (seq-some (lambda (root)
                   (or (string-prefix-p root (buffer-file-name buffer))
                       (string-prefix-p root (expand-file-name
                                              (buffer-local-value 'buffer-file-truename
                                                                  buffer)))))
                 roots)))

(defun efrit-revert--remote-p (buffer)
  "Return non-nil if the file of BUFFER is on another machine."
  (file-remote-p (buffer-file-name buffer)))

;;; Private: looking

(defun efrit-revert--work ()
  "Look at the buffers that wait, for a moment, and at the rest later.
Each remote file is waited for, so they are looked at one by one, and not
while the person types."
  (let ((end (+ (float-time) efrit-revert--slice))
        (pause nil))
    (unwind-protect
        (while (and efrit-revert--queue (not pause) (< (float-time) end))
          (setq pause (efrit-revert--work-on (car efrit-revert--queue))))
      (if efrit-revert--queue
          (run-at-time (or pause 0.01) nil #'efrit-revert--work)
        (efrit-later #'efrit-sync-flush)))))

(defun efrit-revert--work-on (entry)
  "Look at ENTRY, the first of the queue, a cons of a loop and a buffer.
Return how many seconds to leave to the person then, or nil."
  (pcase-let* ((`(,loop . ,buffer) entry)
               (visits (and (buffer-live-p buffer) (buffer-file-name buffer)))
               (remote (and visits (efrit-revert--remote-p buffer))))
    (unless (and remote (or (input-pending-p) (efrit-remote-busy-p)))
      (pop efrit-revert--queue)
      (when visits
        (efrit-revert--look-at loop buffer)))
    (and remote efrit-revert--pause)))

(defun efrit-revert--look-at (loop buffer)
  "Have BUFFER follow its file, or tell in LOOP why it does not."
  (with-current-buffer buffer
    (let ((non-essential t)
          (remote-file-name-inhibit-cache t))
      (condition-case err
          (unless (and (efrit-revert--remote-p buffer)
                       (not (file-remote-p buffer-file-name nil t)))
            (if (efrit-file-current-p buffer)
                (setq efrit-revert--told nil)
              (efrit-revert--follow loop)))
        (error (efrit-revert--tell loop (error-message-string err)
                                   (format "changed on disk, and was not read again: %s"
                                           (error-message-string err))))))))

(defun efrit-revert--follow (loop)
  "Have this buffer follow its file, which has changed, or tell in LOOP why not."
  (let ((attributes (file-attributes buffer-file-name)))
    (cond
     ((null attributes)
      (efrit-revert--tell loop 'gone "is no more on disk; its buffer was left"))
     ((buffer-modified-p)
      (efrit-revert--tell loop (file-attribute-modification-time attributes)
                          "changed on disk, and its buffer, which is not saved, was left"))
     ((eq (find-file-name-handler buffer-file-name 'insert-file-contents)
          'epa-file-handler)
      (efrit-revert--tell loop (file-attribute-modification-time attributes)
                          "changed on disk, and was not read again: it is encrypted"))
     (t (efrit-revert--revert)))))

(defun efrit-revert--tell (loop state what)
  "Tell in LOOP of WHAT there is about this buffer, once for each STATE."
  (unless (equal state efrit-revert--told)
    (setq efrit-revert--told state)
    (efrit-loop-tell loop 'note
                     (format "%s %s" (file-relative-name buffer-file-name
                                                         (efrit-loop-root loop))
                             what))))

;;; Private: reverting

(defun efrit-revert--revert ()
  "Give this buffer the text of its file, as its mode does that."
  (let ((buffer-read-only buffer-read-only)
        (inhibit-message t)
        (revert-buffer-insert-file-contents-function
         (if (efrit-revert--plain-p)
             #'efrit-revert--insert
           revert-buffer-insert-file-contents-function)))
    (revert-buffer t t t)))

(defun efrit-revert--plain-p ()
  "Return non-nil if the text of this buffer is its file's, decoded."
  (and enable-multibyte-characters
       (null buffer-file-format)
       (memq revert-buffer-insert-file-contents-function
             '(nil revert-buffer-insert-file-contents--default-function))))

(defun efrit-revert--insert (_file _auto-save)
  "Have this buffer take the text of its file, in one step of undo.
An encoding that the person chose for it stands."
  (efrit-file-reload (current-buffer) (car buffer-file-coding-system-explicit)))

(add-hook 'efrit-loop-work-functions #'efrit-revert--watch)

(provide 'efrit-revert)
;;; efrit-revert.el ends here
