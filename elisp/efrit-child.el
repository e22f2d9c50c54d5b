;;; efrit-child.el --- A program whose output a tool waits for  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What takes long runs in a process of its own, so that Emacs never waits.
;; It ends in time, with what it has said by then, and when the person stops
;; the use of the tool.

;;; Code:

(require 'cl-lib)
(require 'efrit-remote)
(require 'efrit-tools)

;;; Public

(defmacro efrit-child-finishing (call &rest body)
  "Run BODY, which is to finish CALL; an error in it finishes CALL, too."
  (declare (indent 1) (debug t))
  `(efrit-child--finishing ,call (lambda () ,@body)))

(cl-defun efrit-child-run (call command then &key directory input seconds most over)
  "Run COMMAND, a list of strings, for CALL, then THEN.
THEN is called with the output, a unibyte string, and the exit code or why
it has none: `late', after SECONDS, or `long', after MOST bytes.
DIRECTORY is where it runs, INPUT what it reads.  OVER is called without
arguments when it has ended, however that was.  Return the process."
  (let* ((default-directory (or directory temporary-file-directory))
         (output (generate-new-buffer " *efrit-child*" t))
         (process (efrit-remote-unshared
                    (make-process :name "efrit-child" :buffer output :command command
                                  :connection-type 'pipe :coding 'no-conversion
                                  :noquery t :file-handler t
                                  :filter (efrit-child--filter most)))))
    (with-current-buffer output
      (set-buffer-multibyte nil))
    (when seconds
      (process-put process 'timer
                   (run-at-time seconds nil #'efrit-child--end process 'late)))
    (set-process-sentinel process (lambda (process _)
                                    (unless (or (process-live-p process)
                                                (process-get process 'over))
                                      (process-put process 'over t)
                                      (when over
                                        (funcall over))
                                      (efrit-child--over process call then))))
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (efrit-child--end process 'stopped)
            (efrit-tool-finish call (efrit-tool-result "The person stopped it."
                                                       :status 'error))))
    ;; It may have ended already.
    (ignore-errors
      (when input
        (process-send-string process input))
      (process-send-eof process))
    process))

;;; Private

(defun efrit-child--finishing (call body)
  "Call BODY, which is to finish CALL; an error in it finishes CALL, too."
  (condition-case err
      (funcall body)
    (error (efrit-tool-finish
            call (efrit-tool-result (format "Error: %s" (error-message-string err))
                                    :status 'error)))))

(defun efrit-child--filter (most)
  "Return a filter to keep MOST bytes of a process, nil for all."
  (lambda (process data)
    (when (buffer-live-p (process-buffer process))
      (with-current-buffer (process-buffer process)
        (goto-char (point-max))
        (insert data)
        (when (and most (> (buffer-size) most))
          (delete-region (+ (point-min) most) (point-max))
          (efrit-child--end process 'long))))))

(defun efrit-child--end (process why)
  "End PROCESS, for the reason WHY, and what it has started."
  (unless (process-get process 'why)
    (process-put process 'why why)
    (when (process-live-p process)
      (kill-process process t))))

(defun efrit-child--over (process call then)
  "Give the output of PROCESS, which ran for CALL, to THEN."
  (when (timerp (process-get process 'timer))
    (cancel-timer (process-get process 'timer)))
  (let* ((buffer (process-buffer process))
         (output (if (buffer-live-p buffer)
                     (with-current-buffer buffer (buffer-string))
                   ""))
         (end (or (process-get process 'why) (process-exit-status process))))
    (when (buffer-live-p buffer)
      (kill-buffer buffer))
    (when (efrit-tool-call-finish call)
      (efrit-child-finishing call (funcall then output end)))))

(provide 'efrit-child)
;;; efrit-child.el ends here
