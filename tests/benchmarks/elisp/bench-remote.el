;;; bench-remote.el --- What a session on another machine costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by bench_remote.py into an Emacs in a terminal.  A session is played
;; in the project EFRIT_BENCH_ROOT, and the file EFRIT_BENCH_OUTPUT gets what
;; was measured of each turn: its seconds, the commands that TRAMP sent, the
;; requests to the sidecar, and the longest time for which Emacs did nothing
;; else.  EFRIT_BENCH_VISITED names files that are visited before the session.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'tramp)
(require 'tramp-sh)
(require 'efrit)
(require 'efrit-do)
(require 'efrit-files)
(require 'efrit-run)

(defvar efrit-bench-remote--commands 0
  "Number of commands that TRAMP has sent, but for those by which it connects.")

(defvar efrit-bench-remote--requests 0
  "Number of requests sent to sidecars.")

(defvar efrit-bench-remote--connecting 0
  "Seconds for which TRAMP has connected.")

(defvar efrit-bench-remote--in-connect nil
  "Non-nil while TRAMP connects.")

(defvar efrit-bench-remote--worst 0
  "The most seconds for which Emacs did nothing else since the last mark.")

(defvar efrit-bench-remote--seen nil
  "Names of the functions that sent commands, with counts.")

(defvar efrit-bench-remote--mark nil
  "Time and counts at the last mark, a list.")

(defvar efrit-bench-remote--rows nil
  "Plists of measurements, the latest first.")

(defun efrit-bench-remote--watch ()
  "Count what TRAMP and the sidecars are asked from now on."
  (advice-add 'tramp-send-command :before
              (lambda (&rest _)
                (unless efrit-bench-remote--in-connect
                  (cl-incf efrit-bench-remote--commands)
                  (when (getenv "EFRIT_BENCH_TRACE")
                    (cl-incf (alist-get (efrit-bench-remote--callers)
                                        efrit-bench-remote--seen 0 nil #'equal))))))
  (advice-add 'efrit-connection--write :before
              (lambda (&rest _) (cl-incf efrit-bench-remote--requests)))
  (advice-add 'tramp-sh-handle-make-process :around #'efrit-bench-remote--connect)
  (advice-add 'tramp-maybe-open-connection :around
              (lambda (open vec)
                (if (process-live-p (tramp-get-connection-process vec))
                    (funcall open vec)
                  (efrit-bench-remote--connect open vec)))))

(defun efrit-bench-remote--connect (open &rest arguments)
  "Call OPEN, a function by which TRAMP connects, with ARGUMENTS; note its time."
  (if efrit-bench-remote--in-connect
      (apply open arguments)
    (let ((efrit-bench-remote--in-connect t)
          (start (float-time)))
      (prog1 (apply open arguments)
        (cl-incf efrit-bench-remote--connecting (- (float-time) start))))))

(defun efrit-bench-remote--callers ()
  "Return the names of the package's functions that are running, innermost first."
  (let (names operation)
    (mapbacktrace (lambda (_ function arguments _)
                    (when (and (eq function 'tramp-file-name-handler) (null names))
                      (setq operation (format "%s" (car arguments))))
                    (when (and (symbolp function)
                               (string-prefix-p "efrit-" (symbol-name function))
                               (not (string-prefix-p "efrit-bench" (symbol-name function)))
                               (< (length names) 3))
                      (push (symbol-name function) names))))
    (string-join (cons (or operation "?") (reverse names)) " < ")))

(defun efrit-bench-remote--wait (done)
  "Wait until DONE, a function, is satisfied; note how long Emacs is blocked."
  (while (not (funcall done))
    (let ((start (float-time))
          (connecting efrit-bench-remote--connecting))
      (sit-for 0.005)
      (efrit-bench-remote--note-worst start connecting))))

(defun efrit-bench-remote--note-worst (start connecting)
  "Note the time since START as blocked, less that of TRAMP's connecting.
CONNECTING is for how long it had connected then."
  (setq efrit-bench-remote--worst
        (max efrit-bench-remote--worst
             (- (float-time) start (- efrit-bench-remote--connecting connecting)))))

(defun efrit-bench-remote--do (what function)
  "Call FUNCTION, and note what it cost as WHAT; return its value."
  (efrit-bench-remote--set-mark)
  (let ((start (float-time))
        (connecting efrit-bench-remote--connecting))
    (prog1 (funcall function)
      (efrit-bench-remote--note-worst start connecting)
      (efrit-bench-remote--note what))))

(defun efrit-bench-remote--set-mark ()
  "Measure from here on."
  (setq efrit-bench-remote--worst 0
        efrit-bench-remote--seen nil
        efrit-bench-remote--mark (list (float-time) efrit-bench-remote--commands
                                       efrit-bench-remote--requests
                                       efrit-bench-remote--connecting)))

(defun efrit-bench-remote--note (what &optional status)
  "Note as WHAT, of STATUS, what was measured since the last mark."
  (pcase-let ((`(,time ,commands ,requests ,connecting) efrit-bench-remote--mark))
    (push (list :what what :status (or status "")
                :seconds (- (float-time) time)
                :commands (- efrit-bench-remote--commands commands)
                :requests (- efrit-bench-remote--requests requests)
                :connecting (- efrit-bench-remote--connecting connecting)
                :blocked efrit-bench-remote--worst
                :callers (vconcat (mapcar (lambda (seen) (format "%d %s" (cdr seen) (car seen)))
                                          efrit-bench-remote--seen)))
          efrit-bench-remote--rows)))

(defun efrit-bench-remote--observe (loop event)
  "Measure the tools of each reply of LOOP; EVENT is of it."
  (pcase event
    ('(state running ending) (efrit-bench-remote--set-mark))
    (`(state ,_ running)
     (let ((use (car (efrit-loop-run loop))))
       (efrit-bench-remote--note (efrit-use-name use)
                                 (plist-get (efrit-use-result use) :status))))))

(defun efrit-bench-remote-run ()
  "Play a session, write what was measured, and end this Emacs."
  (let ((problem (condition-case err
                     (efrit-bench-remote--play (getenv "EFRIT_BENCH_ROOT"))
                   (error (error-message-string err)))))
    (write-region (json-encode (list :problem (or problem "")
                                     :rows (vconcat (reverse efrit-bench-remote--rows))))
                  nil (getenv "EFRIT_BENCH_OUTPUT") nil 'silent)
    (setq kill-emacs-query-functions nil)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)))
    (kill-emacs)))

(defun efrit-bench-remote--play (root)
  "Play a session in the project ROOT; return what was wrong, or nil."
  (setq efrit-permission-rules '((t t allow))
        ;; Else it would ask about files of root.
        tramp-allow-unsafe-temporary-files t
        default-directory root)
  (efrit-bench-remote--watch)
  (efrit-bench-remote--do "TRAMP's connection" (lambda () (file-directory-p root)))
  (let ((default-directory (expand-file-name "c/" root)))
    (efrit-bench-remote--do "project" (lambda () (cl-assert (equal root (efrit-do-root))))))
  (dolist (name (split-string (or (getenv "EFRIT_BENCH_VISITED") "")))
    (find-file-noselect (expand-file-name name root)))
  (efrit-bench-remote--set-mark)
  (efrit-sidecar-start (file-remote-p root))
  (efrit-bench-remote--wait
   (lambda () (eq 'ready (efrit-host-state (efrit-host-at (file-remote-p root))))))
  (efrit-bench-remote--note "sidecar")
  ;; Meanwhile the person types the task.
  (let ((typed (+ (float-time) 2)))
    (efrit-bench-remote--wait (lambda () (> (float-time) typed))))
  (let ((loop (efrit-bench-remote--do "session/open" (lambda () (efrit-do-make-loop root))))
        (start (float-time)))
    (funcall efrit-do-show-function loop)
    (efrit-loop-observe loop #'efrit-bench-remote--observe)
    (efrit-bench-remote--do "message" (lambda () (efrit-do-say loop "Go through everything.")))
    (efrit-bench-remote--wait (lambda () (efrit-loop-resting-p loop)))
    (push (list :what "session" :seconds (- (float-time) start)) efrit-bench-remote--rows)
    (efrit-bench-remote--wait #'efrit-revert-idle-p)
    (unless (eq 'idle (efrit-loop-state loop))
      (format "%s: %s" (efrit-loop-state loop) (efrit-loop-problem loop)))))

(provide 'bench-remote)
;;; bench-remote.el ends here
