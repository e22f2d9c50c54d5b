;;; efrit-budget-bars.el --- The tiers of a budget as bars  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a snapshot of the budget says, as lines with bars of block
;; characters; the budget view and the dry run show them.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-faces)
(require 'efrit-limits)
(require 'efrit-show)
(require 'subr-x)

;;; Options

(defcustom efrit-budget-bars-width 30
  "How many characters wide the bars of the tiers are, where there is room."
  :group 'efrit-session
  :type 'natnum)

(defconst efrit-budget-bars--beside 31
  "How many characters stand beside the bar in its line, at most.")

(defconst efrit-budget-bars--tiers
  '((:system . "system") (:history . "history") (:tool_results . "tool results")
    (:user_message . "requests"))
  "The tiers that are in a prompt, and what they are called.")

;;; Public

(defun efrit-budget-bars (budget &optional columns)
  "Return BUDGET, a snapshot, as lines: the tiers, the whole, the estimate.
None is longer than COLUMNS."
  (string-join
   (append (efrit-budget-bars-tiers budget columns)
           (list (efrit-budget-bars--filled (efrit-budget-bars--left budget) columns)
                 (efrit-budget-bars--filled (efrit-budget-bars-error budget) columns)))
   "\n"))

(defun efrit-budget-bars-tiers (budget &optional columns)
  "Return a line with a bar for each tier of BUDGET, and one for the whole.
None is longer than COLUMNS."
  (let* ((tiers (plist-get budget :tiers))
         (width (if columns
                    (max 1 (min efrit-budget-bars-width
                                (- columns efrit-budget-bars--beside)))
                  efrit-budget-bars-width)))
    (append
     (cl-loop for (name . called) in efrit-budget-bars--tiers
              for tier = (plist-get tiers name)
              collect (efrit-budget-bars--line called (plist-get tier :used)
                                               (plist-get tier :limit) width))
     (list (efrit-budget-bars--line "whole prompt" (efrit-show-used budget)
                                    (efrit-show-prompt-limit budget) width)))))

(defun efrit-budget-bars-error (budget)
  "Return how far off the estimate of BUDGET was lately, a line."
  (let ((calibration (plist-get budget :calibration)))
    (if (or (null (plist-get calibration :model))
            (eql 0 (plist-get calibration :samples)))
        "The estimate was not compared with real usage yet."
      (format "The estimate was %.1f%% off real usage lately (%s, factor %.2f from %d replies)."
              (* 100 (plist-get calibration :recent_error))
              (plist-get calibration :model)
              (plist-get calibration :factor)
              (plist-get calibration :samples)))))

;;; Private

(defun efrit-budget-bars--line (name used limit width)
  "Return a line for NAME, of whose LIMIT tokens USED are taken.
Its bar has WIDTH characters."
  (let* ((used (or used 0))
         (limit (or limit 0)))
    (format "  %-12s %s %6s / %s"
            name
            (propertize (efrit-show-bar used limit width)
                        'face (efrit-show-fill-face used limit))
            (efrit-show-tokens used) (efrit-show-tokens limit))))

(defun efrit-budget-bars--filled (text columns)
  "Return TEXT in lines of at most COLUMNS; nil: in one."
  (if (null columns)
      text
    (with-temp-buffer
      (insert text)
      (let ((fill-column columns))
        (fill-region (point-min) (point-max)))
      (string-trim-right (buffer-string)))))

(defun efrit-budget-bars--left (budget)
  "Return what BUDGET has left, a line."
  (format "%s, %s for tools after that; epoch %s, turn %s."
          (let ((left (efrit-show-left budget)))
            (concat (upcase (substring left 0 1)) (substring left 1)))
          (efrit-show-tokens (plist-get budget :available_for_tools))
          (plist-get budget :epoch) (plist-get budget :turn)))

(provide 'efrit-budget-bars)
;;; efrit-budget-bars.el ends here
