;;; efrit-sync.el --- Tell the sidecar of buffers not saved yet  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A file that is modified here and not saved is read by the model as it
;; stands in its buffer.  Changes are told a moment after they are made, and
;; before every call of a tool; they are withdrawn on save, revert or kill.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-host)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'seq)

;;; Options

(defcustom efrit-sync-delay 0.5
  "Seconds after a change before the sidecar is told of it."
  :group 'efrit
  :type 'number)

(defcustom efrit-sync-most-characters 10000000
  "The longest buffer that is told; a longer one is read as it is on disk."
  :group 'efrit
  :type 'natnum)

(defvar efrit-sync-loops-function #'ignore
  "Called for the loops whose projects are synced.")

(defvar efrit-sync--timer nil
  "The timer that tells of changes, or nil.")

(defvar efrit-sync--told nil
  "What the sidecar holds: an alist of (SESSION . FILE) and states.
A state is a tick, and whether the file on disk has changed: a cons.")

(defvar efrit-sync--dying nil
  "A buffer that is being killed.")

;;; Public

(defun efrit-sync-update ()
  "Watch buffers while there are loops, and tell how they stand."
  (let ((watch (if (funcall efrit-sync-loops-function) #'add-hook #'remove-hook)))
    (pcase-dolist (`(,hook . ,function)
                   '((efrit-sidecar-started-functions . efrit-sync--started)
                     (after-change-functions . efrit-sync--changed)
                     (after-save-hook . efrit-sync-flush)
                     (after-revert-hook . efrit-sync-flush)
                     (kill-buffer-hook . efrit-sync--killed)))
      (funcall watch hook function))
    (efrit-sync--leave)
    (efrit-sync-flush)))

(defun efrit-sync-flush (&rest _)
  "Tell the sidecar of every change that it does not know of."
  (when efrit-sync--timer
    (cancel-timer efrit-sync--timer)
    (setq efrit-sync--timer nil))
  (let ((buffers (efrit-sync--modified)))
    (dolist (loop (funcall efrit-sync-loops-function))
      (efrit-sync--tell-loop loop buffers))))

(defun efrit-sync-forget (&rest _)
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
  (efrit-sync-flush))

(defun efrit-sync--changed (&rest _)
  "Tell of a change soon."
  (when (and buffer-file-name (null efrit-sync--timer))
    (setq efrit-sync--timer
          (run-at-time efrit-sync-delay nil #'efrit-sync-flush))))

(defun efrit-sync--killed ()
  "Withdraw what was told of the buffer that is killed."
  (when (and buffer-file-name (buffer-modified-p))
    (let ((efrit-sync--dying (current-buffer)))
      (efrit-sync-flush))))

(defun efrit-sync--modified ()
  "Return the buffers of files that are not saved."
  (seq-filter (lambda (buffer)
                (and (not (eq buffer efrit-sync--dying))
                     (buffer-file-name buffer)
                     (buffer-modified-p buffer)
                     (<= (buffer-size buffer) efrit-sync-most-characters)))
              (buffer-list)))

(defun efrit-sync--tell-loop (loop buffers)
  "Tell the session of LOOP how BUFFERS stand, and withdraw what is no more."
  (let* ((id (efrit-loop-id loop))
         (root (file-name-as-directory (efrit-host-true-name (efrit-loop-root loop))))
         (inside (seq-filter (lambda (buffer)
                               (string-prefix-p root (efrit-host-true-file buffer)))
                             buffers))
         (files (mapcar #'efrit-host-true-file inside)))
    (dolist (buffer inside)
      (efrit-sync--tell id buffer))
    (dolist (entry efrit-sync--told)
      (when (and (equal (caar entry) id) (not (member (cdar entry) files)))
        (setq efrit-sync--told (delq entry efrit-sync--told))
        (efrit-sync--send id (cdar entry) nil)))))

(defun efrit-sync--leave ()
  "Withdraw what was told to sessions that this Emacs has let go of."
  (let ((ids (mapcar #'efrit-loop-id (funcall efrit-sync-loops-function))))
    (dolist (entry efrit-sync--told)
      (unless (member (caar entry) ids)
        (setq efrit-sync--told (delq entry efrit-sync--told))
        (when (efrit-sidecar-process (efrit-host-of-session (caar entry)))
          (efrit-sync--send (caar entry) (cdar entry) nil))))))

(defun efrit-sync--tell (id buffer)
  "Tell the session ID how BUFFER stands, unless it knows."
  (let* ((key (cons id (efrit-host-true-file buffer)))
         (stale (efrit-sync--stale-p buffer))
         (state (cons (buffer-chars-modified-tick buffer) stale))
         (known (assoc key efrit-sync--told)))
    (unless (equal (cdr known) state)
      (setf (alist-get key efrit-sync--told nil nil #'equal) state)
      (efrit-sync--send id (cdr key)
                        (with-current-buffer buffer
                          (save-restriction
                            (widen)
                            (buffer-substring-no-properties (point-min) (point-max))))
                        stale))))

(defun efrit-sync--stale-p (buffer)
  "Return non-nil if the file of BUFFER has changed on disk since it was read.
Of a remote file that is not known without waiting for it."
  (not (or (file-remote-p (buffer-file-name buffer))
           (verify-visited-file-modtime buffer))))

(defun efrit-sync--send (id file text &optional stale)
  "Tell the session ID of TEXT, the buffer of FILE; nil: it is saved.
STALE says that the file on disk has changed since Emacs read it."
  (condition-case err
      (efrit-sidecar-notify 'buffers/sync
                            (list :session_id id
                                  :path (efrit-json-sound (file-local-name file))
                                  :text (and text (efrit-json-sound text))
                                  :stale (if stale t :json-false)))
    (efrit-error (message "efrit: %s is not synced: %s" file (efrit-error-text err)))))

(provide 'efrit-sync)
;;; efrit-sync.el ends here
