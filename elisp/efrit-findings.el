;;; efrit-findings.el --- What is wrong where, in lines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Findings of checkers and compilers, in one form; those of a compilation
;; are read out of its buffer.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'efrit-visit)
(require 'seq)
(require 'subr-x)

(defconst efrit-findings--most-parsed 5000000
  "The longest buffer of a compilation that is looked through, in characters.")

;;; Structs

(cl-defstruct (efrit-finding (:constructor efrit-finding-create) (:copier nil))
  "What is said of a place: FILE, LINE, COLUMN from 1 on or nil, TEXT.
SEVERITY is `error', `warning' or `note', SOURCE who says it, a string."
  file line column severity source text)

;;; Public

(defun efrit-findings-of-compilation (buffer)
  "Return the findings of the compilation in BUFFER, in its order."
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (when (<= (buffer-size) efrit-findings--most-parsed)
          (compilation--ensure-parse (point-max))
          (cl-loop for position = (point-min)
                   then (next-single-property-change position 'compilation-message)
                   while (and position (< position (point-max)))
                   for message = (get-text-property position 'compilation-message)
                   for finding = (and message
                                      (efrit-findings--of-message message position))
                   when finding collect finding))))))

(defun efrit-findings-lines (call findings)
  "Return lines on FINDINGS for CALL, grouped by file."
  (cl-loop with last = nil
           for finding in (efrit-findings--sorted call findings)
           for name = (efrit-visit-name call (efrit-finding-file finding))
           unless (equal name last) collect name
           do (setq last name)
           collect (efrit-findings--line finding)))

(defun efrit-findings-count (findings)
  "Return how many FINDINGS of each severity there are, in words."
  (mapconcat (lambda (severity)
               (let ((count (cl-count severity findings
                                      :key #'efrit-finding-severity)))
                 (format "%d %s%s" count severity (if (= count 1) "" "s"))))
             '(error warning note) ", "))

;;; Private

(defun efrit-findings--of-message (message position)
  "Return the finding of MESSAGE, of a compilation, at POSITION, or nil."
  (let* ((loc (compilation--message->loc message))
         (spec (caar (compilation--loc->file-struct loc)))
         (folder (cadar (compilation--loc->file-struct loc))))
    (when (and (stringp spec) (compilation--loc->line loc))
      (efrit-finding-create
       :file (expand-file-name spec (and folder (expand-file-name folder)))
       :line (compilation--loc->line loc)
       :column (compilation--loc->col loc)
       :severity (pcase (compilation--message->type message)
                   (2 'error) (1 'warning) (_ 'note))
       :source (buffer-name)
       :text (efrit-findings--message-text position)))))

(defun efrit-findings--message-text (position)
  "Return what is said behind the place of the message at POSITION, on its line."
  (save-excursion
    (goto-char position)
    (let* ((end (line-end-position))
           (behind (next-single-property-change position 'compilation-message nil end))
           (said (replace-regexp-in-string
                  "\\`[: \t]*\\(?:\\(?:error\\|warning\\|note\\|info\\):[ \t]*\\)?" ""
                  (buffer-substring-no-properties behind end))))
      (if (string-blank-p said)
          (buffer-substring-no-properties (line-beginning-position) end)
        said))))

(defun efrit-findings--sorted (call findings)
  "Return FINDINGS, each once, by file, as CALL has it, line and column."
  (mapcar #'cdr
          (sort (mapcar (lambda (finding)
                          (cons (efrit-visit-name call (efrit-finding-file finding))
                                finding))
                        (delete-dups (copy-sequence findings)))
                (lambda (a b)
                  (if (string= (car a) (car b))
                      (efrit-findings--before-p (cdr a) (cdr b))
                    (string< (car a) (car b)))))))

(defun efrit-findings--before-p (one other)
  "Return non-nil if ONE stands before OTHER in their file."
  (let ((line (or (efrit-finding-line one) 0))
        (other-line (or (efrit-finding-line other) 0)))
    (or (< line other-line)
        (and (= line other-line)
             (< (or (efrit-finding-column one) 0)
                (or (efrit-finding-column other) 0))))))

(defun efrit-findings--line (finding)
  "Return the line about FINDING below the name of its file."
  (format "  %s%s %s: %s [%s]"
          (or (efrit-finding-line finding) "?")
          (if (efrit-finding-column finding)
              (format ":%d" (efrit-finding-column finding)) "")
          (efrit-finding-severity finding)
          (truncate-string-to-width
           (replace-regexp-in-string "[ \t]*\n[ \t]*" " "
                                     (string-trim (efrit-finding-text finding)))
           500 nil nil "…")
          (efrit-finding-source finding)))

(provide 'efrit-findings)
;;; efrit-findings.el ends here
