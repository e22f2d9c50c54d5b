;;; screenshot.el --- Picture a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by a graphical Emacs that tests/emacs/screenshot.py starts: runs the
;; demo, and writes pictures of the frame into the folder EFRIT_SCREENSHOTS.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-ask)
(require 'efrit-budget)
(require 'efrit-loop)
(require 'efrit-run)
(require 'efrit-setup)
(require 'efrit-view)

(defconst efrit-screenshot--steps
  '((efrit-screenshot--question-p efrit-screenshot--take-question)
    (efrit-loop-resting-p efrit-screenshot--take-session)
    (efrit-screenshot--budget-p efrit-screenshot--take-budget))
  "Conditions to wait for, functions of the loop, with the functions to call then.")

(defun efrit-screenshot--set-up ()
  "Make the frame plain, and of a size that fits a page."
  (setq mouse-highlight nil
        use-dialog-box nil
        efrit-claude-key-hosts nil)
  (menu-bar-mode -1)
  (tool-bar-mode -1)
  (scroll-bar-mode -1)
  (blink-cursor-mode -1)
  (tooltip-mode -1)
  (set-frame-font "DejaVu Sans Mono 11" nil t)
  (set-frame-size nil 100 36))

(defun efrit-screenshot--take (name)
  "Write the frame as it is to the picture NAME."
  (message nil)
  (redisplay t)
  (let ((coding-system-for-write 'binary))
    (with-temp-file (expand-file-name (concat name ".png") (getenv "EFRIT_SCREENSHOTS"))
      (set-buffer-multibyte nil)
      (insert (x-export-frames nil 'png)))))

(defun efrit-screenshot--question-p (loop)
  "Return non-nil if LOOP asks for a permission, and its reply is shown whole."
  (and (efrit-run-pending-use loop)
       (with-current-buffer (efrit-session-view-buffer loop)
         (not (text-property-not-all (point-min) (point-max) 'efrit-undressed nil)))))

(defun efrit-screenshot--take-question (loop)
  "Picture the question of LOOP, and answer it."
  (pop-to-buffer (efrit-session-view-buffer loop))
  (delete-other-windows)
  (goto-char (point-max))
  (recenter -1)
  (efrit-screenshot--take "question")
  (efrit-ask-go)
  (call-interactively #'efrit-allow-once))

(defun efrit-screenshot--take-session (loop)
  "Picture the session of LOOP in a light and in a dark theme; show its budget."
  (with-current-buffer (efrit-session-view-buffer loop)
    (goto-char (point-max))
    (recenter -1))
  (efrit-screenshot--take "session-light")
  (load-theme 'modus-vivendi t)
  (efrit-screenshot--take "session-dark")
  (disable-theme 'modus-vivendi)
  (let ((display-buffer-overriding-action '(display-buffer-same-window)))
    (efrit-budget loop)))

(defun efrit-screenshot--budget-p (_loop)
  "Return non-nil if this buffer is a budget view that has been filled."
  (> (count-lines (point-min) (point-max)) 10))

(defun efrit-screenshot--take-budget (_loop)
  "Picture the budget view."
  (goto-char (point-min))
  (efrit-screenshot--take "budget"))

(defun efrit-screenshot--wait (loop todo)
  "Wait for LOOP to be ready for the first of TODO, and so on; then exit."
  (pcase todo
    (`((,ready ,action) . ,rest)
     (if (with-current-buffer (window-buffer) (funcall ready loop))
         (run-with-timer 1 nil (lambda ()
                                 (funcall action loop)
                                 (efrit-screenshot--wait loop rest)))
       (run-with-timer 0.5 nil #'efrit-screenshot--wait loop todo)))
    (_ (efrit-screenshot--exit))))

(defun efrit-screenshot--exit ()
  "End the demo and exit, without a question."
  (cl-letf (((symbol-function 'y-or-n-p) #'always))
    (efrit-demo-end))
  (let ((kill-emacs-query-functions nil))
    (kill-emacs)))

(efrit-screenshot--set-up)
(run-with-timer 1 nil (lambda ()
                        (efrit-screenshot--wait (efrit-demo) efrit-screenshot--steps)))

(provide 'screenshot)
;;; screenshot.el ends here
