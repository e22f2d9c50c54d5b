;;; real-api.el --- A short session against the real API  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run by `make test-api', with ANTHROPIC_API_KEY set.  It costs a few
;; cents.  For each turn it prints what was estimated beside what the API
;; counted, then the share of the cache, and fails when the API had to drop
;; anything of ours.

;;; Code:

(add-to-list 'load-path (expand-file-name "../../elisp"
                                          (file-name-directory (or load-file-name
                                                                   buffer-file-name))))

(require 'cl-lib)
(require 'efrit-do)
(require 'efrit-status)

(defconst efrit-real-api--task
  "Call file_info for README.md and LICENSE at once, then read the first 20 lines of README.md, \
then tell me its title in one short sentence."
  "The task for the model, which takes three turns.")

(defvar efrit-real-api--estimates nil
  "The size of each prompt by our count, the latest first.")

(defvar efrit-real-api--problems nil
  "Problems found, strings.")

(defun efrit-real-api--observe (loop event)
  "Print the size of a prompt of LOOP when EVENT is the end of a reply."
  (pcase event
    (`(begun . ,_)
     (push (plist-get (efrit-loop-budget loop) :used) efrit-real-api--estimates))
    (`(ended ,reply)
     (let ((counted (+ (efrit-reply-count reply "input_tokens")
                       (efrit-reply-count reply "cache_read_input_tokens")
                       (efrit-reply-count reply "cache_creation_input_tokens")))
           (estimate (car efrit-real-api--estimates)))
       (princ (format "  prompt: %d estimated, %d counted (%+.1f%%), %d of them from the cache\n"
                      estimate counted (* 100.0 (/ (- estimate counted) (float counted)))
                      (efrit-reply-count reply "cache_read_input_tokens")))
       (when-let* ((dropped (cdr (assoc "input_transformations" (efrit-reply-extras reply)))))
         (push (format "The API changed our input: %S" dropped) efrit-real-api--problems))))))

(defun efrit-real-api ()
  "Run the session; return non-nil if all went well."
  (when (string-empty-p (or (getenv "ANTHROPIC_API_KEY") ""))
    (princ "Set ANTHROPIC_API_KEY: this test talks to the real API.\n")
    (kill-emacs 2))
  (let* ((default-directory (expand-file-name "../" efrit-directory))
         (efrit-context-buffer nil)
         (loop (efrit-do-make-loop (efrit-do-root))))
    (efrit-loop-observe loop #'efrit-real-api--observe)
    (efrit-batch-play loop efrit-real-api--task)
    (unless (eq (efrit-loop-state loop) 'idle)
      (push (format "It ended as %s: %s" (efrit-loop-state loop) (efrit-loop-problem loop))
            efrit-real-api--problems))
    (dolist (problem efrit-real-api--problems)
      (princ (concat "FAILED: " problem "\n")))
    (null efrit-real-api--problems)))

(when noninteractive
  (kill-emacs (if (efrit-real-api) 0 1)))

(provide 'real-api)
;;; real-api.el ends here
