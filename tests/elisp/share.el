;;; share.el --- A share of what there is to do  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Checks that take long are shared by several Emacsen: EFRIT_SHARE in the
;; environment, such as 2/3, says which share of how many is this one's.

;;; Code:

(require 'seq)

(defun efrit-share (things)
  "Return this Emacs's share of THINGS, a list: every second one, or all."
  (let* ((share (split-string (or (getenv "EFRIT_SHARE") "1/1") "/"))
         (first (1- (string-to-number (car share))))
         (of (string-to-number (cadr share))))
    (seq-map #'car (seq-partition (seq-drop things first) of))))

(provide 'share)
;;; share.el ends here
