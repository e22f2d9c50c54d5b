;;; efrit-menu.el --- What can be done, and by which keys  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The menu of `M-x efrit', and of ? in a session's buffer.  It
;; fits a terminal of 80 columns and 24 lines.

;;; Code:

(require 'efrit)
(require 'efrit-ask)
(require 'efrit-do)
(require 'efrit-output)
(require 'efrit-result)
(require 'efrit-show)
(require 'transient)

;;; Private

(defun efrit-menu--heading ()
  "Return what stands above the menu: the project here, and its budget."
  (let ((loop (ignore-errors (efrit-do-loop-here))))
    (if loop
        (format "%s  %s" (abbreviate-file-name (efrit-loop-root loop)) (efrit-show-gauge loop 60))
      "No session is open here")))

;;; Commands

;;;###autoload (autoload 'efrit "efrit-menu" nil t)
(transient-define-prefix efrit ()
  "Have a model work in this project, within a token budget."
  [:description efrit-menu--heading
   ["Session"
    ("d" "do something" efrit-do)
    ("B" "do it with this buffer" efrit-do-with-buffer)
    ("+" "begin another session" efrit-new)
    ("v" "show it" efrit-view)
    ("c" "continue" efrit-continue)
    ("k" "stop" efrit-stop)
    ("x" "stop one tool" efrit-stop-tool)
    ("r" "retry" efrit-retry)]
   ["Answers"
    ("y" "allow once" efrit-allow-once)
    ("s" "this, this session" efrit-allow-for-session)
    ("a" "alike, this session" efrit-allow-alike-for-session)
    ("p" "this, in this project" efrit-allow-for-project)
    ("A" "alike, in this project" efrit-allow-alike-for-project)
    ("n" "deny once" efrit-deny-once)
    ("N" "deny this session" efrit-deny-for-session)
    ("e" "edit the new text" efrit-revise)
    ("F" "list and revoke" efrit-permissions)]
   ["Look"
    ("b" "budget" efrit-budget)
    ("u" "undo the last edit" efrit-undo)
    ("U" "list the edits" efrit-undo-session)
    ("o" "open result" efrit-open-result :if (lambda () efrit-do-here))
    ("w" "copy" efrit-copy :if (lambda () efrit-do-here))]]
  [["Sessions"
    ("R" "resume" efrit-resume)
    ("l" "list" efrit-sessions)
    ("O" "take new options" efrit-take-options)
    ("D" "check the set-up" efrit-doctor)]
   ["Memory"
    ("/" "search" efrit-memory-search)
    ("t" "timeline" efrit-memory-timeline)]
   [""
    ("m" "save the region" efrit-memory-save)
    ("P" "pack for elsewhere" efrit-context-pack)]])

(provide 'efrit-menu)
;;; efrit-menu.el ends here
