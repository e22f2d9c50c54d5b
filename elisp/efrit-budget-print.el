;;; efrit-budget-print.el --- Print the list of a budget  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The lines of a budget view, with the bars above them.  All lines change
;; whenever something is used, since each says how long ago that was; so a line
;; is put together as one string, which is several times as quick as what
;; tabulated-list.el does for any list.

;;; Code:

(require 'cl-lib)
(require 'efrit-budget-bars)
(require 'efrit-budget-rows)
(require 'tabulated-list)

(defvar-local efrit-budget-print--budget nil
  "The snapshot whose tiers stand above the list.")

(defvar-local efrit-budget-print--bars nil
  "The overlay that shows the tiers above the list.")

;;; Public

(defun efrit-budget-print (budget)
  "Print the list below the bars of BUDGET, a snapshot.
In every window point stays on its item, or goes to the first one, and an
item is in sight."
  (setq efrit-budget-print--budget budget)
  (let ((windows (get-buffer-window-list nil nil t))
        (buffer-place (efrit-budget-print--place (point) nil)))
    (let ((places (mapcar (lambda (window)
                            (cons window (efrit-budget-print--place
                                          (window-point window) (window-start window))))
                          windows)))
      (tabulated-list-print)
      (efrit-budget-print--bars)
      (efrit-budget-print--go buffer-place)
      (pcase-dolist (`(,window . ,place) places)
        (efrit-budget-print--put-back window place)))))

(defun efrit-budget-print-line (id columns)
  "Insert the line of the item ID with COLUMNS, a vector of strings.
This is for `tabulated-list-printer'."
  (let ((start (point))
        (at (+ (point) tabulated-list-padding)))
    (insert (apply #'format (efrit-budget-print--format) (append columns nil)))
    (add-text-properties start (point)
                         (list 'tabulated-list-id id 'tabulated-list-entry columns
                               'face (efrit-budget-rows-face columns)))
    ;; By these the list is sorted by the column at point.
    (cl-loop for (name width . _) across tabulated-list-format
             for end = (if (zerop width) (1- (point)) (+ at width))
             do (put-text-property at end 'tabulated-list-column-name name)
             (setq at (1+ end)))))

(defun efrit-budget-print-fit (window)
  "Fit what stands above the list to WINDOW, whose size has changed."
  (with-current-buffer (window-buffer window)
    (when efrit-budget-print--budget
      (efrit-budget-print--bars)
      (efrit-budget-print--in-sight window))))

;;; Private: lines

(defun efrit-budget-print--format ()
  "Return the format of a line, by the widths of its columns.
The last column is as wide as what is in it."
  (concat (make-string tabulated-list-padding ?\s)
          (mapconcat (pcase-lambda (`(,_ ,width ,_ . ,options))
                       (cond ((zerop width) "%s")
                             ((plist-get options :right-align)
                              (format "%%%d.%ds" width width))
                             (t (format "%%-%d.%ds" width width))))
                     tabulated-list-format " ")
          "\n"))

(defun efrit-budget-print--bars ()
  "Show the tiers above the list, as wide as the narrowest of its windows."
  (unless efrit-budget-print--bars
    (setq efrit-budget-print--bars (make-overlay (point-min) (point-min))))
  (move-overlay efrit-budget-print--bars (point-min) (point-min))
  (let ((widths (mapcar #'window-body-width (get-buffer-window-list nil nil t))))
    (overlay-put efrit-budget-print--bars 'before-string
                 (concat (efrit-budget-bars efrit-budget-print--budget
                                            (and widths (1- (apply #'min widths))))
                         "\n\n"))))

;;; Private: places

(defun efrit-budget-print--place (position start)
  "Return what is at POSITION: an item, a column, and lines.
START is where a window begins that has its point there."
  (save-excursion
    (goto-char position)
    (list (tabulated-list-get-id) (current-column) (line-number-at-pos)
          (if start (line-number-at-pos start) 1))))

(defun efrit-budget-print--go (place)
  "Move to PLACE: to its item, or to its line, or to the first item."
  (pcase-let ((`(,id ,column ,line ,_) place))
    (goto-char (point-min))
    (unless (and id (efrit-budget-print--find (lambda (found) (equal id found))))
      (goto-char (point-min))
      (forward-line (1- line))
      (when (and (eobp) (not (bobp)))
        (forward-line -1))
      (unless (tabulated-list-get-id)
        (efrit-budget-print--find #'identity)))
    (move-to-column column)))

(defun efrit-budget-print--find (wanted)
  "Move to the line of the next item that is WANTED; return nil if there is none."
  (while (not (or (eobp) (funcall wanted (tabulated-list-get-id))))
    (forward-line))
  (not (eobp)))

(defun efrit-budget-print--put-back (window place)
  "Put WINDOW, which had its point at PLACE, back to there."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- (nth 3 place)))
    (set-window-start window (point) t)
    (efrit-budget-print--go place)
    (set-window-point window (point)))
  (efrit-budget-print--in-sight window))

(defun efrit-budget-print--in-sight (window)
  "Have WINDOW begin at its item where the bars above it take all the room."
  (save-excursion
    (goto-char (window-point window))
    (let ((above (overlay-get efrit-budget-print--bars 'before-string)))
      (when (and (= (window-start window) (point-min))
                 (< (window-body-height window)
                    (+ (cl-count ?\n above) (line-number-at-pos))))
        (set-window-start window (line-beginning-position) t)))))

(provide 'efrit-budget-print)
;;; efrit-budget-print.el ends here
