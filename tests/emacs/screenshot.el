;;; screenshot.el --- Picture a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Loaded by a graphical Emacs that tests/emacs/screenshot.py starts: has a
;; task done until the model asks for a permission, opens a result, writes
;; the frame to the file EFRIT_SCREENSHOT, and exits.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-do)
(require 'efrit-sidecar)
(require 'efrit-run)
(require 'efrit-view)

(defun efrit-screenshot--set-up ()
  "Make the frame plain, and of a size that fits a page."
  (setq efrit-claude-url (concat (getenv "EFRIT_SCREENSHOT_URL") "/v1/messages")
        efrit-claude-headers '(("x-api-key" . "sk-test"))
        efrit-claude-features '(cache thinking effort binding diagnostics)
        efrit-instruction-files nil
        efrit-budget-total-target 24000
        mouse-highlight nil
        use-dialog-box nil)
  (menu-bar-mode -1)
  (tool-bar-mode -1)
  (scroll-bar-mode -1)
  (blink-cursor-mode -1)
  (set-frame-font "DejaVu Sans Mono 11" nil t)
  (set-frame-size nil 104 50))

(defun efrit-screenshot--take (loop)
  "Open a result of LOOP, and write the frame to the file."
  (pop-to-buffer (efrit-session-view-buffer loop))
  (delete-other-windows)
  (goto-char (point-min))
  (search-forward "Read efrit_budget/errors.py")
  (efrit-session-view-tab)
  (goto-char (efrit-ask-position))
  (message nil)
  (redisplay t)
  (let ((coding-system-for-write 'binary))
    (with-temp-file (getenv "EFRIT_SCREENSHOT")
      (set-buffer-multibyte nil)
      (insert (x-export-frames nil 'png)))))

(defun efrit-screenshot--wait (loop seconds)
  "Wait until LOOP asks for a permission, for SECONDS at most, then exit."
  (cond ((efrit-run-pending-use loop)
         (run-with-timer 1 nil (lambda ()
                                 (unwind-protect (efrit-screenshot--take loop)
                                   (efrit-screenshot--exit)))))
        ((<= seconds 0) (efrit-screenshot--exit))
        (t (run-with-timer 0.5 nil #'efrit-screenshot--wait loop (- seconds 0.5)))))

(defun efrit-screenshot--exit ()
  "Exit without a question."
  (let ((kill-emacs-query-functions nil))
    (kill-emacs)))

(efrit-screenshot--set-up)
(run-with-timer 1 nil (lambda ()
                        (efrit-screenshot--wait (efrit-do (getenv "EFRIT_SCREENSHOT_TASK")) 60)))

(provide 'screenshot)
;;; screenshot.el ends here
