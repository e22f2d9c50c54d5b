;;; efrit-budget-rows.el --- The items of a budget as rows  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the sidecar tells of a session's window, as rows of a table: the
;; system text, each request and reply, and each result.  A row is a plist:
;; `:id', a string; `:kind', one of `system', `said' and `result'; `:tokens',
;; in full, and `:now', as it stands in the window; `:item', `:tool', `:age',
;; `:state' and `:about', the further columns; `:order', a number by which
;; items stand as they came; and what the sidecar told.

;;; Code:

(require 'efrit)
(require 'efrit-faces)
(require 'efrit-json)
(require 'efrit-show)
(require 'seq)

;;; Options

(defface efrit-budget-pinned '((t :inherit font-lock-keyword-face))
  "What is pinned."
  :group 'efrit-faces)

;;; Public

(defun efrit-budget-rows (status turns entries)
  "Return rows, plists with an `:id', for what the sidecar told.
STATUS, TURNS and ENTRIES are those of `session/status', `session/turns'
and `worklog/list'."
  (let ((budget (plist-get status :budget)))
    (append (list (efrit-budget-rows--system-row budget))
            (seq-map #'efrit-budget-rows--said-row turns)
            (seq-map #'efrit-budget-rows--result-row entries))))

(defun efrit-budget-rows-columns (row)
  "Return the columns of ROW, a vector of strings."
  (vector (efrit-budget-rows--tokens (plist-get row :tokens) (plist-get row :now))
          (plist-get row :item)
          (plist-get row :tool)
          (if (plist-get row :age) (number-to-string (plist-get row :age)) "")
          (efrit-budget-rows--state row)
          (string-replace "\n" "⏎" (or (plist-get row :about) ""))))

(defun efrit-budget-rows-face (columns)
  "Return the face of the line of COLUMNS, by how its item stands."
  (pcase (aref columns 4)
    ("pinned" 'efrit-budget-pinned)
    ((or "compressed" "evicted") 'efrit-figures)
    (_ 'default)))

;;; Private

(defun efrit-budget-rows--system-row (budget)
  "Return the row of the system text and the tools; BUDGET is a snapshot."
  (let ((used (plist-get (plist-get (plist-get budget :tiers) :system) :used)))
    (list :id "system" :kind 'system :order -1 :state "full" :item "sys" :tool "system"
          :tokens used :now used
          :about "system text, tools, and the lines of turns that left")))

(defun efrit-budget-rows--said-row (turn)
  "Return the row of TURN, as the sidecar told it."
  (let ((number (plist-get turn :turn))
        (kind (plist-get turn :kind)))
    (list :id (format "t%d-%s" number kind)
          :kind 'said :said kind :turn number :item (format "t%d" number) :tool kind
          :order (+ (* 1000 number) (if (equal kind "reply") 2 0))
          :state (plist-get turn :state)
          :tokens (plist-get turn :tokens) :now (plist-get turn :tokens_now)
          :age (plist-get turn :age) :about (plist-get turn :begins))))

(defun efrit-budget-rows--result-row (entry)
  "Return the row of ENTRY, an item of `worklog/list'."
  (let ((handle (plist-get entry :handle)))
    (append
     (list :id (concat "u-" (plist-get entry :tool_use_id))
           :kind 'result :item (or handle "…")
           :order (+ (* 1000 (or (plist-get entry :turn) 0)) 3
                     (if handle (/ (string-to-number (substring handle 1)) 1000.0) 990))
           :now (plist-get entry :tokens_now)
           :pinned (eq (plist-get entry :pinned) t)
           :about (efrit-budget-rows--arguments (plist-get entry :arguments)))
     entry)))

(defun efrit-budget-rows--tokens (full now)
  "Return FULL tokens as text, and behind an arrow NOW where that is less."
  (cond ((null full) "")
        ((or (null now) (>= now full)) (efrit-show-number full))
        (t (concat (efrit-show-number full) "→" (efrit-show-number now)))))

(defun efrit-budget-rows--arguments (arguments)
  "Return ARGUMENTS, a plist, as short text."
  (if arguments
      (efrit-show-arguments (decode-coding-string (efrit-json-write arguments) 'utf-8) 200)
    ""))

(defun efrit-budget-rows--state (row)
  "Return what the state of ROW is called."
  (pcase (plist-get row :state)
    ("gone" "evicted")
    ("announced" "running")
    ((and "full" (guard (plist-get row :pinned))) "pinned")
    (state state)))

(provide 'efrit-budget-rows)
;;; efrit-budget-rows.el ends here
