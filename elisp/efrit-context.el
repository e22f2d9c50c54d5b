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
  "Whether a message says which file or buffer the person is in, and at which line.
With `text' the text of the buffer goes with it, where no region is
active: as far as the person's tier of the budget goes, and the rest under
a handle."
  :group 'efrit
  :type '(choice (const :tag "Its name" t)
                 (const :tag "Its name and text" text)
                 (const :tag "Nothing" nil)))

(defvar efrit-context--noted nil
  "What `efrit-context-note' found: functions of a loop that give a string or nil.")

;;; Public

(defun efrit-context-note ()
  "Note where the person is, and the region, for the next message."
  (setq efrit-context--noted
        (delq nil (list (efrit-context--place)
                        (or (efrit-context--region)
                            (and (eq efrit-context-buffer 'text)
                                 (efrit-context--tells-p)
                                 (efrit-context--whole)))))))

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
  (when (and efrit-context-buffer (efrit-context--tells-p))
    (let ((where (efrit-context--where))
          (line (line-number-at-pos nil t))
          (unsaved (if (and buffer-file-name (buffer-modified-p)) ", not saved yet" "")))
      (lambda (loop)
        (when-let* ((where (funcall where loop)))
          (format "[The person is in %s, line %d%s.]" where line unsaved))))))

(defun efrit-context--region ()
  "Return a function of a loop that gives the active region, a string, or nil.
A region of a file on another machine goes with the name of its buffer."
  (when (use-region-p)
    (let ((where (efrit-context--where))
          (name (format "the buffer %s" (buffer-name)))
          (lines (format "lines %d to %d"
                         (line-number-at-pos (region-beginning) t)
                         (line-number-at-pos (region-end) t)))
          (text (buffer-substring-no-properties (region-beginning) (region-end))))
      (lambda (loop)
        (format "[Selected in %s, %s:]\n%s" (or (funcall where loop) name) lines text)))))

(defun efrit-context--whole ()
  "Return a function of a loop that gives the text of this buffer."
  (let ((where (efrit-context--where))
        (name (format "the buffer %s" (buffer-name)))
        (text (buffer-substring-no-properties (point-min) (point-max))))
    (lambda (loop)
      (format "[All of %s:]\n%s" (or (funcall where loop) name) text))))

(defun efrit-context--tells-p ()
  "Return non-nil if this buffer is one for a person to read or write.
That is none of efrit's own, which show what the model knows."
  (not (or (minibufferp)
           (string-prefix-p " " (buffer-name))
           (string-prefix-p "efrit-" (symbol-name major-mode)))))

(defun efrit-context--where ()
  "Return a function of a loop that gives what this buffer is called, or nil.
A file's name is one by which the tools can open it: from the root on, or
whole where it is outside."
  (let ((file (and buffer-file-name (expand-file-name buffer-file-name)))
        (buffer (format "the buffer %s (%s)" (buffer-name) major-mode)))
    (lambda (loop)
      (let ((root (efrit-loop-root loop)))
        (cond ((null file) buffer)
              ((not (equal (file-remote-p file) (file-remote-p root))) nil)
              ((string-prefix-p root file) (file-relative-name file root))
              (t (file-local-name file)))))))

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
