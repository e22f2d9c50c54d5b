;;; bench-loop.el --- What a session costs the Emacs it runs in  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by bench_loop.py into an Emacs in a terminal.  A session is shown
;; and played, and the file EFRIT_BENCH_OUTPUT gets what was measured.
;; EFRIT_BENCH_BESIDE says what goes on beside the session: "buffer", a long
;; buffer of the project is being modified; "budget", the budget is in sight.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'efrit)
(require 'efrit-budget)
(require 'efrit-do)
(require 'efrit-rpc)
(require 'efrit-view)
(require 'efrit-tools)

(defvar efrit-bench-loop--due nil
  "Time in seconds when the watched timer should have run.")

(defvar efrit-bench-loop--late 0
  "The latest that it ran, in milliseconds.")

(defvar efrit-bench-loop--words nil
  "Times when the first word of each reply was in the view, latest first.")

(defvar efrit-bench-loop--awaits nil
  "Non-nil while no word of the current reply has come.")

(defvar efrit-bench-loop--tools nil
  "Milliseconds that each tool took, latest first.")

(defun efrit-bench-loop--tick ()
  "Note how late this timer is, and set the next."
  (let ((now (float-time)))
    (setq efrit-bench-loop--late
          (max efrit-bench-loop--late (* 1000 (- now efrit-bench-loop--due)))
          efrit-bench-loop--due (+ now 0.1))
    (run-at-time 0.1 nil #'efrit-bench-loop--tick)))

(defun efrit-bench-loop--beside (loop)
  "Keep the extra work of the benchmark going while LOOP works."
  (pcase (getenv "EFRIT_BENCH_BESIDE")
    ("buffer"
     (with-current-buffer (find-file-noselect "written-just-now.txt")
       (buffer-disable-undo)
       (auto-save-mode -1)
       (dotimes (n 100000)
         (insert (format "%06d: a line of “fifty bytes”, not saved yet\n" n)))
       (efrit-bench-loop--type (current-buffer))))
    ("budget"
     (split-window)
     (other-window 1)
     (let ((display-buffer-overriding-action '(display-buffer-same-window)))
       (efrit-budget loop))
     (other-window 1))))

(defun efrit-bench-loop--type (buffer)
  "Type something into BUFFER again and again."
  (with-current-buffer buffer
    (insert "x"))
  (run-at-time 0.13 nil #'efrit-bench-loop--type buffer))

(defun efrit-bench-loop--observe (_loop event)
  "Note when the first word of a reply is in the view; EVENT is of a loop."
  (pcase (car event)
    ('begun (setq efrit-bench-loop--awaits t))
    ('use (when (efrit-use-seconds (cadr event))
            (push (* 1000 (efrit-use-seconds (cadr event))) efrit-bench-loop--tools)))
    ('piece (when efrit-bench-loop--awaits
              (setq efrit-bench-loop--awaits nil)
              (redisplay)
              (push (float-time) efrit-bench-loop--words)))))

(defun efrit-bench-loop--encoding ()
  "Return how many milliseconds 1.2 MB of mixed text takes to encode, if exact."
  (let* ((unit "é“x”😀 naïve “quotes” and … dashes — 日本語 emoji 🎉\n")
         (text (apply #'concat (make-list (/ 1200000 (string-bytes unit)) unit)))
         (start (float-time))
         (body (encode-coding-string (efrit-json-text text) 'utf-8-unix))
         (took (* 1000 (- (float-time) start))))
    (unless (equal text (json-parse-string body))
      (error "The text did not come back as it was"))
    took))

(defun efrit-bench-loop-run ()
  "Play a session in the project here, and write the measurements."
  (condition-case err
      (efrit-bench-loop--play)
    (error
     (write-region (json-serialize (list :state "broken"
                                         :problem (error-message-string err)))
                   nil (getenv "EFRIT_BENCH_OUTPUT") nil 'silent)
     (kill-emacs 1))))

(defun efrit-bench-loop--play ()
  "Play a session in the project here, with this Emacs watched."
  (setq efrit-permission-rules '((t t allow)))
  (let* ((root (expand-file-name default-directory))
         (loop (efrit-do-make-loop root)))
    (funcall efrit-do-show-function loop)
    (efrit-loop-observe loop #'efrit-bench-loop--observe)
    (setf (efrit-loop-observers loop)
          (append (delq #'efrit-bench-loop--observe (efrit-loop-observers loop))
                  (list #'efrit-bench-loop--observe)))
    (efrit-bench-loop--beside loop)
    (setq efrit-bench-loop--due (+ (float-time) 0.1))
    (run-at-time 0.1 nil #'efrit-bench-loop--tick)
    (efrit-do-say loop "Go through everything.")
    (efrit-bench-loop--wait loop)))

(defun efrit-bench-loop--wait (loop)
  "Write the measurements once LOOP rests."
  (if (efrit-loop-resting-p loop)
      (efrit-bench-loop--write loop)
    (run-at-time 0.5 nil #'efrit-bench-loop--wait loop)))

(defun efrit-bench-loop--write (loop)
  "Write the measurements of LOOP, and end this Emacs."
  (let ((coding-system-for-write 'utf-8-unix)
        (late efrit-bench-loop--late))
    (write-region
     (json-serialize (list :state (symbol-name (efrit-loop-state loop))
                           :problem (or (efrit-loop-problem loop) "")
                           :late late
                           :words (vconcat (nreverse efrit-bench-loop--words))
                           :took (vconcat (nreverse efrit-bench-loop--tools))
                           :encoding (efrit-bench-loop--encoding)
                           :system (efrit-loop-system loop)
                           :tools (efrit-loop-tools loop)))
     nil (getenv "EFRIT_BENCH_OUTPUT") nil 'silent)
    (efrit-sidecar-stop)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)))
    (setq kill-emacs-query-functions nil)
    (kill-emacs)))

(provide 'bench-loop)
;;; bench-loop.el ends here
