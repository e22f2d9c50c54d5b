;;; efrit-sync.el --- Keep the sidecar and buffers in step with each other  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar is told of buffers that are not saved; buffers follow the files
;; that commands change.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'seq)

;;; Sending unsaved buffers

;; A file that is modified here and not saved is read by the model as it
;; stands in its buffer.  Changes are told before every call of a tool, those
;; of short buffers also a moment after they are made; they are withdrawn on
;; save, revert or kill.

(defconst efrit-sync--most-in-message 16000
  "Characters of a text that a pipe takes at once, whatever is in it.")

(defvar efrit-sync--timer nil
  "The timer that tells of changes, or nil.")

(defvar efrit-sync--sent nil
  "States sent to the sidecar: alist from (SESSION . FILE) to state.
A state is a tick, and whether the file on disk has changed: a cons.")

(defvar efrit-sync--killed-buffer nil
  "A buffer that is being killed.")

(defvar-local efrit-sync--warned-too-long nil
  "Non-nil if the person was told that this buffer is too long.")

(defun efrit-sync-update ()
  "Watch buffers while there are loops, and tell how they stand."
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
  "Tell the sidecar of every change that it does not know of.
All that is asked of it from here on is answered from what it was told."
  (efrit-sync--flush #'always))

(defun efrit-sync-forget ()
  "Take it that the sidecar knows of nothing, like a new one."
  (setq efrit-sync--sent nil)
  (efrit-sync-flush))

(defun efrit-sync--started (&rest _)
  "Take it that the sidecar of `efrit-host-default' knows of nothing."
  (setq efrit-sync--sent
        (seq-remove (lambda (entry)
                      (equal (efrit-host-of-session (caar entry)) efrit-host-default))
                    efrit-sync--sent))
  (efrit-sync--flush-short))

(defun efrit-sync--changed (&rest _)
  "Tell of a change soon."
  (when (and buffer-file-name (null efrit-sync--timer))
    (setq efrit-sync--timer
          ;; While TRAMP saves the buffer, it still counts as not saved.
          (run-at-time efrit-sync-delay nil #'efrit-defer #'efrit-sync--flush-short))))

(defun efrit-sync--killed ()
  "Withdraw what was told of the buffer that is killed."
  (when (and buffer-file-name (buffer-modified-p))
    (let ((efrit-sync--killed-buffer (current-buffer)))
      (efrit-sync--flush-short))))

(defun efrit-sync--flush-short (&rest _)
  "Tell how short buffers stand, and withdraw what is no more."
  (efrit-sync--flush (lambda (buffer) (<= (buffer-size buffer) efrit-sync-short))))

(defun efrit-sync--flush (due)
  "Tell of the buffers for which DUE gives non-nil, and withdraw what is no more."
  (when efrit-sync--timer
    (cancel-timer efrit-sync--timer)
    (setq efrit-sync--timer nil))
  (let ((buffers (efrit-sync--modified)))
    (dolist (loop (efrit-loops))
      (efrit-sync--update-loop loop buffers due))))

(defun efrit-sync--modified ()
  "Return the buffers of files that are not saved."
  (seq-filter (lambda (buffer)
                (and (not (eq buffer efrit-sync--killed-buffer))
                     (buffer-file-name buffer)
                     (buffer-modified-p buffer)))
              (buffer-list)))

(defun efrit-sync--update-loop (loop buffers due)
  "Tell the session of LOOP how BUFFERS stand, and withdraw what is no more.
What DUE, a function, gives nil for is told another time."
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
  "Return non-nil if BUFFER is not too long to be told; once, say that it is."
  (with-current-buffer buffer
    (or (<= (buffer-size) (if (file-remote-p buffer-file-name)
                              efrit-sync-most-characters-remote
                            efrit-sync-most-characters))
        (unless efrit-sync--warned-too-long
          (setq efrit-sync--warned-too-long t)
          (message "efrit: %s is too long to be read unsaved; the model reads the file"
                   (buffer-name))
          nil))))

(defun efrit-sync--withdraw-released ()
  "Withdraw what was told to sessions that this Emacs has let go of."
  (let ((ids (mapcar #'efrit-loop-id (efrit-loops))))
    (dolist (entry efrit-sync--sent)
      (unless (member (caar entry) ids)
        (setq efrit-sync--sent (delq entry efrit-sync--sent))
        (when (efrit-sidecar-process (efrit-host-of-session (caar entry)))
          (efrit-sync--send (caar entry) (cdar entry) '(:text nil)))))))

(defun efrit-sync--update-buffer (id buffer)
  "Tell the session ID how BUFFER stands, unless it knows."
  (let* ((inhibit-quit t)
         (key (cons id (efrit-host-true-file buffer)))
         (stale (efrit-sync--stale-p buffer))
         (state (cons (buffer-chars-modified-tick buffer) stale))
         (known (assoc key efrit-sync--sent)))
    (unless (equal (cdr known) state)
      (setf (alist-get key efrit-sync--sent nil nil #'equal) state)
      (efrit-sync--send id (cdr key)
                        (append (efrit-sync--text id buffer)
                                (list :stale (if stale t :json-false)))))))

(defun efrit-sync--stale-p (buffer)
  "Return non-nil if the file of BUFFER has changed on disk since it was read.
Of a remote file that is not known without waiting for it."
  (not (or (file-remote-p (buffer-file-name buffer))
           (verify-visited-file-modtime buffer))))

(defun efrit-sync--text (id buffer)
  "Return the members that tell the session ID of the text of BUFFER.
A long one is left in a file where the sidecar can read that."
  (if-let* (((> (buffer-size buffer) efrit-sync--most-in-message))
            ((null (efrit-host-of-session id)))
            (name (efrit-handover-leave buffer)))
      (list :text_file name)
    (list :text (with-current-buffer buffer
                  (save-restriction
                    (widen)
                    (efrit-json-replace-invalid
                     (buffer-substring-no-properties (point-min) (point-max))))))))

(defun efrit-sync--send (id file members)
  "Tell the session ID of FILE what MEMBERS say; a null text: it is saved."
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
           :error (lambda (err) (efrit-sync--not-taken file name err))))
      (efrit-error (message "efrit: %s is not synced: %s" file (efrit-error-text err))))))

(defun efrit-sync--not-taken (file name err)
  "Tell of FILE by a message: what was left as NAME was not taken, due to ERR.
Where the sidecar died, the next one is told."
  (efrit-handover-drop name)
  (cond
   ((not (eq (car err) 'efrit-rpc-error)))
   ((string-match-p "text_file" (efrit-error-text err))
    (efrit-handover-refuse)
    (efrit-sync-forget))
   (t (message "efrit: %s is not synced: %s" file (efrit-error-text err)))))

;;; Following files

;; When a tool of the sidecar that may have changed files has ended, the
;; buffers that visit files of the project are looked at, a few at a time.
;; One that is not modified takes the text of its file; point, windows,
;; narrowing, the mode and the history of undo stay.  One that is modified
;; stays as it is, as does one whose file is gone: the person is told, and
;; the model is where it reads the buffer, see efrit-sync.el.

(defconst efrit-revert--slice 0.03
  "Seconds of checking buffers before a pause.")

(defconst efrit-revert--pause 0.1
  "Seconds between checks of two remote files.")

(defconst efrit-revert--after-stop 1.5
  "Seconds after which a command that was stopped changes nothing any more.")

(defvar efrit-revert--queue nil
  "Buffers to check: conses of a loop and a buffer.")

(defvar-local efrit-revert--last-notice nil
  "State of the file at the last notice, or nil.")

(defun efrit-revert-look (loop)
  "Have the buffers of files of the project of LOOP follow their files, soon."
  (when efrit-revert-buffers
    (let ((idle (null efrit-revert--queue)))
      (setq efrit-revert--queue
            (append (seq-remove (lambda (entry) (eq (car entry) loop)) efrit-revert--queue)
                    (mapcar (lambda (buffer) (cons loop buffer))
                            (efrit-revert--buffers loop))))
      (when (and idle efrit-revert--queue)
        (efrit-defer #'efrit-revert--work)))))

;;;; Buffers to check

(defun efrit-revert--watch (loop)
  "Look at buffers whenever a command of LOOP has ended."
  (efrit-loop-observe loop #'efrit-revert--observe))

(defun efrit-revert--observe (loop event)
  "Look at buffers where EVENT of LOOP is the end of what may have changed files."
  (pcase event
    ((and `(use ,use) (guard (efrit-revert--may-have-changed-p use)))
     (efrit-revert-look loop)
     (unless (efrit-use-result use)
       (run-at-time efrit-revert--after-stop nil #'efrit-revert-look loop)))))

(defun efrit-revert--may-have-changed-p (use)
  "Return non-nil if USE has ended, and may have changed files."
  (and (eq (efrit-use-state use) 'done)
       (efrit-use-begun use)
       (not (efrit-tool-get (efrit-use-name use)))
       (efrit-use-effects use)))

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

;;;; Checking

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
        (efrit-defer #'efrit-sync-flush)))))

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
                (setq efrit-revert--last-notice nil)
              (efrit-revert--follow loop)))
        (error (efrit-revert--note-once loop (error-message-string err)
                                        (format "changed on disk, and was not read again: %s"
                                                (error-message-string err))))))))

(defun efrit-revert--follow (loop)
  "Have this buffer follow its file, which has changed, or tell in LOOP why not."
  (let ((attributes (file-attributes buffer-file-name)))
    (cond
     ((null attributes)
      (efrit-revert--note-once loop 'gone "is no more on disk; its buffer was left"))
     ((buffer-modified-p)
      (efrit-revert--note-once loop (file-attribute-modification-time attributes)
                               "changed on disk, and its buffer, which is not saved, was left"))
     ((eq (find-file-name-handler buffer-file-name 'insert-file-contents)
          'epa-file-handler)
      (efrit-revert--note-once loop (file-attribute-modification-time attributes)
                               "changed on disk, and was not read again: it is encrypted"))
     (t (efrit-revert--revert)))))

(defun efrit-revert--note-once (loop state what)
  "Tell in LOOP of WHAT there is about this buffer, once for each STATE."
  (unless (equal state efrit-revert--last-notice)
    (setq efrit-revert--last-notice state)
    (efrit-loop-notify loop 'note
                       (format "%s %s" (file-relative-name buffer-file-name
                                                           (efrit-loop-root loop))
                               what))))

;;;; Reverting

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

(provide 'efrit-sync)
;;; efrit-sync.el ends here
