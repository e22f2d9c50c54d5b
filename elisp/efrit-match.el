;;; efrit-match.el --- Find a text that is to be replaced  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where a text stands in another one, letter by letter; and, where it does
;; not stand, which lines come closest, counted by lines that are the same
;; but for blanks, then by the letters to change.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(defconst efrit-match--most-work 20000000
  "The most pairs of letters that are compared to find close lines.")

(defconst efrit-match--most-lines 12
  "The most lines that are shown of a place that comes close.")

(defconst efrit-match--most-width 200
  "The most characters that are shown, and compared, of a line.")

;;; Public

(defun efrit-match-all (old text)
  "Return where OLD stands in TEXT: offsets, ascending, without overlaps."
  (let ((found nil)
        (start 0))
    (while (and (not (string-empty-p old))
                (setq start (string-search old text start)))
      (push start found)
      (setq start (+ start (length old))))
    (nreverse found)))

(defun efrit-match-replace (old new text places)
  "Return TEXT with NEW for OLD at each of PLACES, offsets, ascending."
  (let ((parts nil)
        (start 0))
    (dolist (place places)
      (push (substring text start place) parts)
      (push new parts)
      (setq start (+ place (length old))))
    (push (substring text start) parts)
    (apply #'concat (nreverse parts))))

(defun efrit-match-closest (old text)
  "Return the lines of TEXT that come closest to OLD, numbered, or nil."
  (let* ((lines (split-string text "\n"))
         (wanted (split-string (string-trim-right old "\n+") "\n"))
         (start (or (efrit-match--by-lines wanted lines)
                    (efrit-match--by-letters wanted lines))))
    (when start
      (efrit-match--numbered lines start
                             (min (length wanted) efrit-match--most-lines)))))

;;; Private

(defun efrit-match--bare (line)
  "Return LINE as it is compared: blanks do not count."
  (replace-regexp-in-string "[ \t\r\f]+" "" line t t))

(defun efrit-match--by-lines (wanted lines)
  "Return the index in LINES where most of WANTED stands but for blanks, or nil."
  (let ((places (make-hash-table :test #'equal))
        (votes (make-hash-table))
        (best nil))
    (seq-do-indexed (lambda (line index)
                      (let ((bare (efrit-match--bare line)))
                        (unless (string-empty-p bare)
                          (push index (gethash bare places)))))
                    wanted)
    (seq-do-indexed (lambda (line index)
                      (dolist (place (gethash (efrit-match--bare line) places))
                        (cl-incf (gethash (- index place) votes 0))))
                    lines)
    (maphash (lambda (start count)
               (when (or (null best) (> count (cdr best))
                         (and (= count (cdr best)) (< start (car best))))
                 (setq best (cons start count))))
             votes)
    (and best (max 0 (car best)))))

(defun efrit-match--by-letters (wanted lines)
  "Return the index in LINES of the line closest to WANTED's longest, or nil.
It stands where that one would begin the whole."
  (let* ((longest (seq-reduce (lambda (a b) (if (> (length b) (length a)) b a)) wanted ""))
         (index (seq-position wanted longest))
         (line (efrit-match--closest-line (efrit-match--part longest) lines)))
    (and line (max 0 (- line index)))))

(defun efrit-match--closest-line (wanted lines)
  "Return the index of the one of LINES that has most of WANTED, or nil.
It takes at most so many changes as half of the letters of WANTED."
  (let ((least (1+ (/ (length wanted) 2)))
        (work 0)
        (found nil))
    (seq-do-indexed
     (lambda (line index)
       (let ((line (efrit-match--part line)))
         (when (and (< (abs (- (length line) (length wanted))) least)
                    (< work efrit-match--most-work))
           (setq work (+ work (* (length line) (length wanted))))
           (let ((distance (string-distance wanted line)))
             (when (< distance least)
               (setq least distance
                     found index))))))
     lines)
    found))

(defun efrit-match--part (line)
  "Return what is compared of LINE by letters."
  (let ((line (string-trim line)))
    (substring line 0 (min (length line) efrit-match--most-width))))

(defun efrit-match--numbered (lines start count)
  "Return COUNT of LINES from the index START on, each with its number."
  (string-join
   (cl-loop for line in (seq-take (nthcdr start lines) count)
            for number from (1+ start)
            collect (format "%d: %s" number
                            (truncate-string-to-width line efrit-match--most-width nil nil "…")))
   "\n"))

(provide 'efrit-match)
;;; efrit-match.el ends here
