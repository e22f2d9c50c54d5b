;;; efrit-context.el --- What goes with a request  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The region, the buffer one is in, and the project's own instructions are
;; blocks of the person's message: the sidecar counts them in its tier and
;; stores what is too long for it.

;;; Code:

(require 'efrit)
(require 'efrit-host)
(require 'efrit-json)
(require 'efrit-loop)
(require 'efrit-system)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-instruction-files '("AGENTS.md" "CLAUDE.md")
  "Files of a project with instructions for a model.
The first that is there goes with the first message of a session."
  :group 'efrit
  :type '(repeat string))

(defcustom efrit-context-buffer t
  "Whether a message says which file the person is in, and at which line."
  :group 'efrit
  :type 'boolean)

(defvar efrit-context--noted nil
  "What `efrit-context-note' found: functions of a loop that give a string or nil.")

;;; Public

(defun efrit-context-note ()
  "Note where the person is, and the region, for the next message."
  (setq efrit-context--noted
        (delq nil (list (efrit-context--place) (efrit-context--region)))))

(defun efrit-context-blocks (loop task)
  "Return the blocks of a message with TASK in LOOP, and what was noted."
  (prog1 (mapcar #'efrit-context-text
                 (append (efrit-context--instructions loop)
                         (delq nil (mapcar (lambda (noted) (funcall noted loop))
                                           efrit-context--noted))
                         (list task)))
    (setq efrit-context--noted nil)))

(defun efrit-context-text (text)
  "Return the block with TEXT."
  (list :type "text" :text (efrit-json-sound text)))

;;; Private

(defun efrit-context--place ()
  "Return a function of a loop that gives where the person is, or nil.
What is on another machine than the loop's project is not said."
  (when (and efrit-context-buffer buffer-file-name)
    (let ((file buffer-file-name)
          (line (line-number-at-pos nil t))
          (unsaved (if (buffer-modified-p) ", not saved yet" "")))
      (lambda (loop)
        (when (equal (file-remote-p file) (file-remote-p (efrit-loop-root loop)))
          (format "[The person is in %s, line %d%s.]"
                  (file-local-name (abbreviate-file-name file)) line unsaved))))))

(defun efrit-context--region ()
  "Return a function that gives the active region, a string, or nil."
  (when (use-region-p)
    (let ((selected
           (format "[Selected in %s, lines %d to %d:]\n%s"
                   (buffer-name)
                   (line-number-at-pos (region-beginning) t)
                   (line-number-at-pos (region-end) t)
                   (buffer-substring-no-properties (region-beginning) (region-end)))))
      (lambda (_loop) selected))))

(defun efrit-context--instructions (loop)
  "Return the project's instructions for LOOP, a list of at most one string.
They go with the first message."
  (unless (or (efrit-loop-messages loop) (efrit-loop-queue loop) (efrit-loop-sent loop)
              (> (efrit-loop-turn loop) 0))
    (when-let* ((file (seq-find (lambda (file) (and (file-regular-p file) (file-readable-p file)))
                                (mapcar (lambda (name)
                                          (expand-file-name name (efrit-loop-root loop)))
                                        efrit-instruction-files))))
      (list (format "[Instructions of the project, from %s:]\n%s"
                    (file-name-nondirectory file)
                    (with-temp-buffer
                      (insert-file-contents file)
                      (buffer-string)))))))

(provide 'efrit-context)
;;; efrit-context.el ends here
