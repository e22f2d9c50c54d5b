;;; efrit-sync.el --- Tell the sidecar of buffers not saved yet  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A file that is modified here and not saved is read by the model as it
;; stands in its buffer.  Changes are told before every call of a tool, those
;; of short buffers also a moment after they are made; they are withdrawn on
;; save, revert or kill.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-call)
(require 'efrit-handover)
(require 'efrit-host)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'seq)

;;; Options

(defcustom efrit-sync-delay 0.5
  "Seconds after a change before the sidecar is told of it.
See `efrit-sync-short'."
  :group 'efrit
  :type 'number)

(defcustom efrit-sync-short 250000
  "Characters of the longest buffer whose changes are told as they are made.
Those of a longer one are told before a tool is called, so that nobody
waits for it at each pause in typing."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-sync-most-characters 10000000
  "The longest buffer that is told; a longer one is read as it is on disk."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-sync-most-characters-remote 500000
  "The same for files on other machines, to which Emacs sends each text."
  :group 'efrit
  :type 'natnum)

(defconst efrit-sync--most-in-message 16000
  "Characters of a text that a pipe takes at once, whatever is in it.")

(defvar efrit-sync-loops-function #'ignore
  "Called for the loops whose projects are synced.")

(defvar efrit-sync--timer nil
  "The timer that tells of changes, or nil.")

(defvar efrit-sync--told nil
  "What the sidecar holds: an alist of (SESSION . FILE) and states.
A state is a tick, and whether the file on disk has changed: a cons.")

(defvar efrit-sync--dying nil
  "A buffer that is being killed.")

(defvar-local efrit-sync--said-too-long nil
  "Whether the person knows that this buffer is too long to be told.")

;;; Public

(defun efrit-sync-update ()
  "Watch buffers while there are loops, and tell how they stand."
  (let ((watch (if (funcall efrit-sync-loops-function) #'add-hook #'remove-hook)))
    (pcase-dolist (`(,hook . ,function)
                   '((efrit-sidecar-started-functions . efrit-sync--started)
                     (after-change-functions . efrit-sync--changed)
                     (after-save-hook . efrit-sync--flush-short)
                     (after-revert-hook . efrit-sync--flush-short)
                     (kill-buffer-hook . efrit-sync--killed)))
      (funcall watch hook function))
    (efrit-sync--leave)
    (efrit-sync--flush-short)))

(defun efrit-sync-flush ()
  "Tell the sidecar of every change that it does not know of.
All that is asked of it from here on is answered from what it was told."
  (efrit-sync--flush #'always))

(defun efrit-sync-forget ()
  "Take it that the sidecar knows of nothing, like a new one."
  (setq efrit-sync--told nil)
  (efrit-sync-flush))

;;; Private

(defun efrit-sync--started (&rest _)
  "Take it that the sidecar of `efrit-host-default' knows of nothing."
  (setq efrit-sync--told
        (seq-remove (lambda (entry)
                      (equal (efrit-host-of-session (caar entry)) efrit-host-default))
                    efrit-sync--told))
  (efrit-sync--flush-short))

(defun efrit-sync--changed (&rest _)
  "Tell of a change soon."
  (when (and buffer-file-name (null efrit-sync--timer))
    (setq efrit-sync--timer
          ;; While TRAMP saves the buffer, it still counts as not saved.
          (run-at-time efrit-sync-delay nil #'efrit-later #'efrit-sync--flush-short))))

(defun efrit-sync--killed ()
  "Withdraw what was told of the buffer that is killed."
  (when (and buffer-file-name (buffer-modified-p))
    (let ((efrit-sync--dying (current-buffer)))
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
    (dolist (loop (funcall efrit-sync-loops-function))
      (efrit-sync--tell-loop loop buffers due))))

(defun efrit-sync--modified ()
  "Return the buffers of files that are not saved."
  (seq-filter (lambda (buffer)
                (and (not (eq buffer efrit-sync--dying))
                     (buffer-file-name buffer)
                     (buffer-modified-p buffer)))
              (buffer-list)))

(defun efrit-sync--tell-loop (loop buffers due)
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
      (efrit-sync--tell id buffer))
    (dolist (entry efrit-sync--told)
      (when (and (equal (caar entry) id) (not (member (cdar entry) files)))
        (setq efrit-sync--told (delq entry efrit-sync--told))
        (efrit-sync--send id (cdar entry) '(:text nil))))))

(defun efrit-sync--fits-p (buffer)
  "Return non-nil if BUFFER is not too long to be told; once, say that it is."
  (with-current-buffer buffer
    (or (<= (buffer-size) (if (file-remote-p buffer-file-name)
                              efrit-sync-most-characters-remote
                            efrit-sync-most-characters))
        (unless efrit-sync--said-too-long
          (setq efrit-sync--said-too-long t)
          (message "efrit: %s is too long to be read unsaved; the model reads the file"
                   (buffer-name))
          nil))))

(defun efrit-sync--leave ()
  "Withdraw what was told to sessions that this Emacs has let go of."
  (let ((ids (mapcar #'efrit-loop-id (funcall efrit-sync-loops-function))))
    (dolist (entry efrit-sync--told)
      (unless (member (caar entry) ids)
        (setq efrit-sync--told (delq entry efrit-sync--told))
        (when (efrit-sidecar-process (efrit-host-of-session (caar entry)))
          (efrit-sync--send (caar entry) (cdar entry) '(:text nil)))))))

(defun efrit-sync--tell (id buffer)
  "Tell the session ID how BUFFER stands, unless it knows."
  (let* ((inhibit-quit t)
         (key (cons id (efrit-host-true-file buffer)))
         (stale (efrit-sync--stale-p buffer))
         (state (cons (buffer-chars-modified-tick buffer) stale))
         (known (assoc key efrit-sync--told)))
    (unless (equal (cdr known) state)
      (setf (alist-get key efrit-sync--told nil nil #'equal) state)
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
                    (efrit-json-sound
                     (buffer-substring-no-properties (point-min) (point-max))))))))

(defun efrit-sync--send (id file members)
  "Tell the session ID of FILE what MEMBERS say; a null text: it is saved."
  (let ((params `( :session_id ,id
                   :path ,(efrit-json-sound (file-local-name file))
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

(provide 'efrit-sync)
;;; efrit-sync.el ends here
