;;; bench-view.el --- What the view of a session costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by bench_view.py into an Emacs in a terminal; the file
;; EFRIT_BENCH_OUTPUT gets what was measured, times in milliseconds.  The modes
;; of the languages are loaded: else that is done once, while Emacs is idle.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'json)
(require 'python)
(require 'sh-script)
(require 'efrit)
(require 'efrit-do)
(require 'efrit-view)

(defconst efrit-bench-view--tick 0.005
  "Seconds from one tick to the next.")

(defvar efrit-bench-view--last nil
  "Time of the last tick in seconds, or nil before the first.")

(defvar efrit-bench-view--stall 0
  "The longest time that no tick came in, in milliseconds.")

(defun efrit-bench-view--watch ()
  "Note how long Emacs could run no timer, again and again."
  (let ((now (float-time)))
    (when efrit-bench-view--last
      (setq efrit-bench-view--stall
            (max efrit-bench-view--stall
                 (* 1000 (- now efrit-bench-view--last efrit-bench-view--tick)))))
    (setq efrit-bench-view--last now)
    (run-at-time efrit-bench-view--tick nil #'efrit-bench-view--watch)))

(defun efrit-bench-view--guarded (function)
  "Call FUNCTION; on an error write that down, and end this Emacs."
  (condition-case err
      (funcall function)
    (error (efrit-bench-view--write (list :problem (error-message-string err))))))

(defun efrit-bench-view--write (measured)
  "Write MEASURED, a plist, and end this Emacs."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region (json-serialize measured) nil (getenv "EFRIT_BENCH_OUTPUT") nil 'silent))
  (efrit-sidecar-stop)
  (setq kill-emacs-query-functions nil)
  (kill-emacs))

(defun efrit-bench-view--show ()
  "Show a new session on the project here, and return its loop."
  (setq efrit-budget-total-target 400000
        efrit-claude-max-tokens 100000)
  (let ((loop (efrit-do-make-loop (expand-file-name default-directory))))
    (funcall efrit-do-show-function loop)
    (delete-other-windows)
    loop))

;;; Streaming

(defun efrit-bench-view-stream ()
  "Have a long reply streamed; write the longest stall."
  (efrit-bench-view--guarded
   (lambda ()
     (let ((loop (efrit-bench-view--show)))
       (efrit-do-say loop "Write it.")
       (efrit-bench-view--watch)
       (efrit-bench-view--await loop)))))

(defun efrit-bench-view--await (loop)
  "Write the longest stall once LOOP rests and its reply is dressed."
  (with-current-buffer (efrit-session-view-buffer loop)
    (if (not (and (efrit-loop-resting-p loop) (null efrit-markdown--items)))
        (run-at-time 0.1 nil #'efrit-bench-view--await loop)
      (efrit-bench-view--write
       (list :stall efrit-bench-view--stall
             :state (symbol-name (efrit-loop-state loop))
             :characters (buffer-size)
             :plain (if (text-property-any (point-min) (point-max) 'efrit-undressed t) t
                      :false))))))

;;; Keys

(defconst efrit-bench-view--exchanges 1000
  "Number of exchanges of the session whose keys are measured.")

(defun efrit-bench-view-keys ()
  "Measure keys in a long session; write the slowest press of each."
  (efrit-bench-view--guarded
   (lambda ()
     (let ((loop (efrit-bench-view--show)))
       (efrit-bench-view--watch)
       (efrit-history--insert (current-buffer) (efrit-bench-view--entries)
                              (copy-marker efrit-transcript-begin))
       (efrit-bench-view--await-entries loop)))))

(defun efrit-bench-view--await-entries (loop)
  "Press the keys once all entries of the session of LOOP are inserted."
  (with-current-buffer (efrit-session-view-buffer loop)
    (run-at-time 1 nil #'efrit-bench-view--guarded
                 (if (save-excursion
                       (goto-char efrit-transcript-begin)
                       (search-forward (format "Question %d?" (1- efrit-bench-view--exchanges))
                                       nil t))
                     (lambda () (efrit-bench-view--press-all loop))
                   (lambda () (efrit-bench-view--await-entries loop))))))

(defun efrit-bench-view--entries ()
  "Return the entries of the transcript of a long session."
  (let ((text (with-temp-buffer
                (insert-file-contents (getenv "EFRIT_BENCH_TEXT"))
                (buffer-string))))
    (cl-loop for number below efrit-bench-view--exchanges
             nconc (list (list :kind "request" :content
                               (list (list :type "text" :text (format "Question %d?" number))))
                         (list :kind "result" :tool "read_file" :tool_use_id (format "u%d" number)
                               :arguments '(:path "README.md") :handle (format "r%d" number)
                               :status "success" :tokens 500 :text (make-string 2000 ?x))
                         (list :kind "reply" :content (list (list :type "text" :text text)))))))

(defun efrit-bench-view--press-all (loop)
  "Measure each key in the session of LOOP."
  (with-current-buffer (efrit-session-view-buffer loop)
    (let ((fill-stall efrit-bench-view--stall)
          (times nil))
      (dolist (key '("SPC" "DEL" "M->" "M-<" "n" "p" "TAB" "C-n"))
        (push (intern (concat ":" key)) times)
        (push (efrit-bench-view--press-often key) times))
      (efrit-bench-view--write (list :stall fill-stall :characters (buffer-size)
                                     :keys (nreverse times))))))

(defun efrit-bench-view--press-often (key)
  "Return the longest time that KEY takes at many places of this buffer."
  (cl-loop for part from 1 to 40
           do (goto-char (+ efrit-transcript-begin
                            (/ (* part (- efrit-transcript-end efrit-transcript-begin)) 42)))
           do (goto-char (efrit-item-start (efrit-item-at (point))))
           do (while (and (equal key "TAB")
                          (not (efrit-item-body (efrit-item-at (point)))))
                (goto-char (efrit-item-end (efrit-item-at (point)))))
           do (redisplay t)
           maximize (efrit-bench-view--press key)))

(defun efrit-bench-view--press (key)
  "Press KEY as the command loop would; return the time until it is shown."
  (let ((start (float-time))
        (command (key-binding (kbd key))))
    (setq this-command command
          last-command-event (aref (kbd key) (1- (length (kbd key)))))
    (run-hooks 'pre-command-hook)
    (call-interactively command)
    (run-hooks 'post-command-hook)
    (redisplay t)
    (* 1000 (- (float-time) start))))

(provide 'bench-view)
;;; bench-view.el ends here
