;;; efrit-output.el --- What a tool writes while it runs, and how it is stopped  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar passes on the end of what a command has written so far, a few
;; times a second; whoever observes the command's loop is told of it as
;; \(output ID TEXT).  One tool is stopped by itself here: its result is what
;; it gave until then, and the model goes on with that.

;;; Code:

(require 'cl-lib)
(require 'efrit-call)
(require 'efrit-do)
(require 'efrit-faces)
(require 'efrit-loop)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'efrit-transcript)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-output-lines 6
  "How many lines of what a running tool writes are shown below its line.
With 0 none are."
  :group 'efrit
  :type 'natnum)

(defconst efrit-output--width 200
  "How wide a shown line may be.")

;;; Public

(defun efrit-output-text (output)
  "Return the last lines of OUTPUT, a string or nil, as they are shown."
  (let ((lines (split-string (string-trim-right (or output "")) "\n")))
    (if (or (zerop efrit-output-lines) (equal lines '("")))
        ""
      (mapconcat #'efrit-output--line (last lines efrit-output-lines) ""))))

;;; Commands

;;;###autoload
(defun efrit-stop-tool ()
  "Stop the tool at point, or the only one that is running.
Its result is what it gave so far, and the model goes on with that."
  (interactive)
  (let ((loop (efrit-do-loop-here)))
    (efrit-output--stop loop (efrit-output--to-stop loop))))

;;; Private

(defun efrit-output--take (call params)
  "Tell the loop of CALL of the output in PARAMS, the sidecar's, if there is any."
  (when-let* ((output (plist-get (plist-get params :value) :output))
              (session (and call (plist-get (efrit-call-params call) :session_id)))
              (loop (seq-find (lambda (loop) (equal (efrit-loop-id loop) session))
                              (efrit-do-loops))))
    (efrit-loop-tell loop 'output (plist-get params :tool_use_id) output)))

(defun efrit-output--line (line)
  "Return LINE of an output as it is shown."
  (concat (propertize "    │ " 'face 'efrit-note)
          (propertize (truncate-string-to-width line efrit-output--width nil nil "…")
                      'face 'efrit-delivered)
          "\n"))

(defun efrit-output--to-stop (loop)
  "Return the use in LOOP that is to be stopped, or signal a `user-error'."
  (let* ((running (seq-filter (lambda (use) (eq (efrit-use-state use) 'running))
                              (efrit-loop-run loop)))
         (item (efrit-item-at (point)))
         (here (and item (efrit-item-data item))))
    (cond ((null running) (user-error "No tool runs"))
          ((memq here running) here)
          ((cdr running) (user-error "%d tools run: go to the line of one" (length running)))
          (t (car running)))))

(defun efrit-output--stop (loop use)
  "Stop USE of LOOP, and let the model have what it gave so far."
  (let ((call (efrit-use-call use)))
    (cond ((null call) (efrit-output--stop-in-sidecar loop use))
          ((efrit-tool-call-stop call) (efrit-tool-stop call))
          (t (user-error "%s cannot be stopped by itself; `efrit-stop' stops all"
                         (efrit-use-name use))))))

(defun efrit-output--stop-in-sidecar (loop use)
  "Have the sidecar stop USE of LOOP."
  (efrit-sidecar-request-async
   'tools/stop (list :session_id (efrit-loop-id loop) :tool_use_id (efrit-use-id use))
   :success (lambda (answer)
              (unless (eq (plist-get answer :stopped) t)
                (message "%s does not run any more" (efrit-use-name use))))
   :error (lambda (err)
            (message "%s is not stopped: %s" (efrit-use-name use) (efrit-error-text err)))))

(add-hook 'efrit-sidecar-progress-functions #'efrit-output--take)

(provide 'efrit-output)
;;; efrit-output.el ends here
