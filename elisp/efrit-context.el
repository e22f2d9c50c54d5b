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
(require 'efrit-visit)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-instruction-files '("AGENTS.md" "CLAUDE.md")
  "Files of a project with instructions for a model.
The first that is there goes with the first message of a session.  One that
is a link to outside of the project, or to a file of secrets, does not."
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

(defcustom efrit-instruction-most-bytes 200000
  "The most bytes of a file of instructions that go with a session.
Of a longer one the beginning goes, and the model is told where the rest is."
  :group 'efrit
  :type 'natnum)

;;; Public

(defun efrit-context-here ()
  "Return where the person is, and the region, for `efrit-context-blocks'.
That is a list of functions of a loop, each of which gives a string or nil."
  (delq nil (list (efrit-context--place)
                  (or (efrit-context--region)
                      (and (eq efrit-context-buffer 'text)
                           (efrit-context--tells-p)
                           (efrit-context--whole))))))

(defun efrit-context-blocks (loop task &optional context)
  "Return the blocks of a message with TASK in LOOP, and CONTEXT.
CONTEXT is what `efrit-context-here' gave."
  (mapcar #'efrit-context-text
          (append (efrit-context--instructions loop)
                  (delq nil (mapcar (lambda (part) (funcall part loop)) context))
                  (list task))))

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
    (when-let* ((file (efrit-context--instruction-file loop)))
      (list (format "[Instructions of the project, from %s:]\n%s"
                    (file-name-nondirectory file) (efrit-context--beginning file))))))

(defun efrit-context--instruction-file (loop)
  "Return the first file of instructions that LOOP may send, or nil.
The person is told of one that may not be sent."
  (let ((root (file-truename (efrit-loop-root loop))))
    (seq-find (lambda (file)
                (when (file-regular-p (file-truename file))
                  (let ((problem (efrit-context--link-problem root file)))
                    (efrit-loop-note-once loop problem)
                    (and (null problem) (file-readable-p file)))))
              (mapcar (lambda (name) (expand-file-name name root)) efrit-instruction-files))))

(defun efrit-context--link-problem (root file)
  "Return why FILE, as a link, may not be sent from ROOT, a string, or nil.
A repository could lead to any file of the person's with it."
  (let ((true (file-truename file))
        (name (file-name-nondirectory file)))
    (when (and (string-prefix-p root file) (not (equal true file)))
      (cond ((not (string-prefix-p root true))
             (format "%s was not sent: it is a link to a file outside of the project" name))
            ((or (efrit-visit-secret-p true)
                 (string-prefix-p (expand-file-name ".git/" root) true))
             (format "%s was not sent: it is a link to %s, which may hold secrets"
                     name (file-relative-name true root)))))))

(defun efrit-context--beginning (file)
  "Return the text of FILE, or its beginning where it is too long."
  (let* ((true (file-truename file))
         (size (file-attribute-size (file-attributes true)))
         (most efrit-instruction-most-bytes))
    (with-temp-buffer
      (insert-file-contents true nil 0 most)
      (concat (buffer-string)
              (and (> size most)
                   (format "\n[cut: the first %d of %d bytes; read %s for the rest]"
                           most size (file-name-nondirectory file)))))))

(provide 'efrit-context)
;;; efrit-context.el ends here
