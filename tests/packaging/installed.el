;;; installed.el --- Use an installation of efrit as a person does  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Load it into a batch Emacs that has the autoloads of the package and nothing
;; else of it; then call one of the functions.  Each prints what it did, and exits
;; with a code other than 0 if something is wrong.

;;; Code:

(require 'cl-lib)

(defvar efrit-claude-url)
(defvar efrit-sidecar-requirement)
(declare-function efrit-demo--start-model "efrit-setup" (scenario))
(declare-function efrit-demo--url "efrit-setup" (model))
(declare-function efrit-demo-end "efrit-setup" ())
(declare-function efrit-loop-resting-p "efrit-loop" (loop))
(declare-function efrit-loop-root "efrit-loop" (loop) t)
(declare-function efrit-loop-state "efrit-loop" (loop) t)
(declare-function efrit-session-view-buffer "efrit-view" (loop))

(defconst installed-seconds 600
  "Seconds that anything may take.")

(defun installed-await (what condition)
  "Wait for the function CONDITION to be non-nil, and return its value.
Fail if WHAT, a text, does not come true."
  (let ((end (+ (float-time) installed-seconds))
        found)
    (while (not (setq found (funcall condition)))
      (when (> (float-time) end)
        (error "This did not come: %s" what))
      (accept-process-output nil 0.1))
    found))

(defun installed-doctor ()
  "Run the doctor, with a scripted model for the endpoint; after a problem, exit."
  (require 'efrit-setup)
  (let ((model (efrit-demo--start-model "tour")))
    (setq efrit-claude-url (concat (efrit-demo--url model) "/v1/messages"))
    (call-interactively 'efrit-doctor)
    (delete-process model)))

(defun installed-demo ()
  "Play the demo to its end, allowing the edit that it asks for."
  (let* ((loop (call-interactively 'efrit-demo))
         (buffer (efrit-session-view-buffer loop))
         (file (expand-file-name "watering.el" (efrit-loop-root loop))))
    (with-current-buffer buffer
      (installed-await "the question" (lambda ()
                                        (goto-char (point-min))
                                        (re-search-forward "Edit watering.el \\+1 .1\\?" nil t)))
      (goto-char (point-max))
      (call-interactively (key-binding (kbd "C-c C-y")))
      (installed-await "the end" (lambda () (efrit-loop-resting-p loop)))
      (princ (buffer-string)))
    (unless (and (eq 'idle (efrit-loop-state loop))
                 (with-temp-buffer
                   (insert-file-contents file)
                   (search-forward "(>= days" nil t)))
      (error "The demo ended as %s" (efrit-loop-state loop)))
    (efrit-demo-end)))

(defun installed-install (way requirement)
  "Have the doctor install the sidecar by WAY out of REQUIREMENT."
  (require 'efrit-setup)
  (setq efrit-sidecar-requirement requirement)
  (let ((noninteractive nil))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) way))
              ((symbol-function 'yes-or-no-p) (lambda (prompt) (princ (concat prompt "\n")) t)))
      (call-interactively 'efrit-doctor)
      (with-current-buffer "*efrit install*"
        (installed-await "an end of the installation"
                         (lambda () (null (get-buffer-process (current-buffer)))))
        (princ (buffer-string))))))

(provide 'installed)
;;; installed.el ends here
