;;; efrit-diff.el --- The difference of two texts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Unified diffs of texts that are nowhere on disk, by the program that
;; `diff-command' names.  Where there is none, one hunk holds all lines from
;; the first that differs to the last.

;;; Code:

(require 'diff)
(require 'diff-mode)
(require 'seq)

(defconst efrit-diff--context 3
  "How many lines that are the same stand around those that are not.")

;;; Public

(defun efrit-diff (old new path &optional to)
  "Return the unified diff from OLD to NEW, the texts of PATH, or \"\".
OLD or NEW is nil where there is no such file.  TO is its new name, if any."
  (if (equal old new)
      ""
    (concat (format "--- %s\n+++ %s\n"
                    (if old (concat "a/" path) "/dev/null")
                    (if new (concat "b/" (or to path)) "/dev/null"))
            (or (efrit-diff--by-program (or old "") (or new ""))
                (efrit-diff--one-hunk (or old "") (or new ""))))))

(defun efrit-diff-counts (diff)
  "Return how many lines come and go by DIFF: (ADDED . REMOVED)."
  (let ((added 0)
        (removed 0)
        (start 0))
    (while (string-match "^\\(?:\\(\\+\\)\\|-\\)" diff start)
      (setq start (match-end 0))
      (if (match-beginning 1) (setq added (1+ added)) (setq removed (1+ removed))))
    (let ((headers (efrit-diff--count "^--- .*\n\\+\\+\\+ " diff)))
      (cons (- added headers) (- removed headers)))))

(defun efrit-diff-dressed (diff)
  "Return DIFF with the faces that `diff-mode' gives it."
  (with-temp-buffer
    (insert diff)
    (let ((diff-font-lock-syntax nil)
          (diff-refine nil)
          (diff-font-lock-prettify nil))
      (delay-mode-hooks (diff-mode))
      (font-lock-ensure))
    (efrit-diff--by-faces (buffer-string))))

(defun efrit-diff-show (text)
  "Show TEXT, with a diff in it, in a window of its own."
  (with-current-buffer (get-buffer-create "*efrit diff*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text))
    (diff-mode)
    (setq bidi-display-reordering nil)
    (read-only-mode)
    (goto-char (point-min))
    (display-buffer (current-buffer))))

;;; Private

(defun efrit-diff--by-faces (text)
  "Return TEXT with nothing but the faces that font-lock gave it."
  (let ((bare (substring-no-properties text))
        (position 0))
    (while (< position (length text))
      (let ((next (next-single-property-change position 'face text (length text)))
            (face (get-text-property position 'face text)))
        (when face
          (put-text-property position next 'face face bare))
        (setq position next)))
    bare))

(defun efrit-diff--count (regexp text)
  "Return how often REGEXP matches in TEXT."
  (let ((count 0)
        (start 0))
    (while (string-match regexp text start)
      (setq start (match-end 0)
            count (1+ count)))
    count))

(defun efrit-diff--by-program (old new)
  "Return the hunks from OLD to NEW as the program gives them, or nil."
  (let ((files nil)
        (default-directory temporary-file-directory)
        (coding-system-for-read 'utf-8-emacs-unix)
        (coding-system-for-write 'utf-8-emacs-unix))
    (unwind-protect
        (with-temp-buffer
          (dolist (text (list new old))
            (push (make-temp-file "efrit-diff-") files)
            (write-region text nil (car files) nil 'silent))
          (when (eql 1 (ignore-errors
                         (apply #'call-process diff-command nil '(t nil) nil "-a" "-u" files)))
            (goto-char (point-min))
            (forward-line 2)
            (buffer-substring-no-properties (point) (point-max))))
      (mapc #'delete-file files))))

(defun efrit-diff--one-hunk (old new)
  "Return one hunk that leads from OLD to NEW."
  (let* ((olds (efrit-diff--lines old))
         (news (efrit-diff--lines new))
         (head (efrit-diff--same olds news))
         (tail (min (efrit-diff--same (reverse olds) (reverse news))
                    (- (min (length olds) (length news)) head)))
         (first (max 0 (- head efrit-diff--context)))
         (after (min tail efrit-diff--context))
         (old-end (- (length olds) tail))
         (new-end (- (length news) tail)))
    (concat
     (format "@@ -%s +%s @@\n"
             (efrit-diff--range first (- (+ old-end after) first))
             (efrit-diff--range first (- (+ new-end after) first)))
     (efrit-diff--marked " " (seq-subseq olds first head))
     (efrit-diff--marked "-" (seq-subseq olds head old-end))
     (efrit-diff--marked "+" (seq-subseq news head new-end))
     (efrit-diff--marked " " (seq-subseq olds old-end (+ old-end after))))))

(defun efrit-diff--lines (text)
  "Return the lines of TEXT, each with its end."
  (let ((lines nil)
        (start 0))
    (while (< start (length text))
      (let ((end (string-search "\n" text start)))
        (push (substring text start (and end (1+ end))) lines)
        (setq start (if end (1+ end) (length text)))))
    (nreverse lines)))

(defun efrit-diff--same (one other)
  "Return how many elements the lists ONE and OTHER begin with alike."
  (let ((count 0))
    (while (and one other (string= (car one) (car other)))
      (setq count (1+ count)
            one (cdr one)
            other (cdr other)))
    count))

(defun efrit-diff--range (first count)
  "Return the range of COUNT lines behind FIRST others, as a hunk has it."
  (format "%d,%d" (if (zerop count) first (1+ first)) count))

(defun efrit-diff--marked (mark lines)
  "Return LINES with MARK in front of each."
  (mapconcat (lambda (line)
               (concat mark line
                       (if (string-suffix-p "\n" line) "" "\n\\ No newline at end of file\n")))
             lines ""))

(provide 'efrit-diff)
;;; efrit-diff.el ends here
