;;; efrit-sync.el --- Keep the sidecar and buffers in step with each other  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Sends unsaved buffers to the sidecar, and reverts buffers whose files a
;; command changed.

;;; Code:

(require 'efrit)
(require 'efrit-change)
(require 'efrit-loop)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-tools)

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

(provide 'efrit-sync)
;;; efrit-sync.el ends here
