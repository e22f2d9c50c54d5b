;;; efrit-garbage.el --- Collect garbage less often while a session works  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; With Emacs's default a session collects garbage once in every turn, which
;; stops Emacs for some 20 ms each time.  While a loop works the threshold is
;; higher; it is the person's own again as soon as none does.

;;; Code:

(require 'cl-lib)
(require 'efrit-loop)

;;; Options

(defcustom efrit-garbage-threshold 16000000
  "`gc-cons-threshold' while a session works, if that is higher; nil: leave it."
  :group 'efrit
  :type '(choice (const :tag "Leave it" nil) natnum))

(defvar efrit-garbage--own nil
  "The person's own threshold while a higher one is in force, or nil.")

(defvar efrit-garbage--working nil
  "The loops that work.")

;;; Private

(defun efrit-garbage--work (loop)
  "Raise the threshold: LOOP begins to work."
  (cl-pushnew loop efrit-garbage--working)
  (when (and efrit-garbage-threshold
             (null efrit-garbage--own)
             (< gc-cons-threshold efrit-garbage-threshold))
    (setq efrit-garbage--own gc-cons-threshold
          gc-cons-threshold efrit-garbage-threshold)))

(defun efrit-garbage--rest (loop)
  "Restore the threshold if LOOP, which now rests, was the last to work.
What the person set meanwhile stays."
  (setq efrit-garbage--working (delq loop efrit-garbage--working))
  (when (and efrit-garbage--own (null efrit-garbage--working))
    (when (eql gc-cons-threshold efrit-garbage-threshold)
      (setq gc-cons-threshold efrit-garbage--own))
    (setq efrit-garbage--own nil)))

(add-hook 'efrit-loop-work-functions #'efrit-garbage--work)
(add-hook 'efrit-loop-rest-functions #'efrit-garbage--rest)

(provide 'efrit-garbage)
;;; efrit-garbage.el ends here
