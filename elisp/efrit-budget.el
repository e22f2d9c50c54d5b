;;; efrit-budget.el --- The budget view  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-budget lists what is in a session's window and what left it.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-view)
(require 'seq)
(require 'tabulated-list)

;;; Rows

;; What the sidecar tells of a session's window, as rows of a table: the
;; system text, each request and reply, and each result.  A row is a plist:
;; `:id', a string; `:kind', one of `system', `said' and `result'; `:tokens',
;; in full, and `:now', as it stands in the window; `:item', `:tool', `:age',
;; `:state' and `:about', the further columns; `:order', a number by which
;; items stand as they came; and what the sidecar told.

(defun efrit-budget-rows (status turns entries)
  "Return rows, plists with an `:id', for what the sidecar told.
STATUS, TURNS and ENTRIES are those of `session/status', `session/turns'
and `worklog/list'."
  (let ((budget (plist-get status :budget)))
    (append (list (efrit-budget-rows--system-row budget))
            (seq-map #'efrit-budget-rows--turn-row turns)
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

(defun efrit-budget-rows--system-row (budget)
  "Return the row of the system text and the tools; BUDGET is a snapshot."
  (let ((used (plist-get (plist-get (plist-get budget :tiers) :system) :used)))
    (list :id "system" :kind 'system :order -1 :state "full" :item "sys" :tool "system"
          :tokens used :now used
          :about "system text, tools, and the lines of turns that left")))

(defun efrit-budget-rows--turn-row (turn)
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

;;; Printing

;; The lines of a budget view, with the bars above them.  All lines change
;; whenever something is used, since each says how long ago that was; so a line
;; is put together as one string, which is several times as quick as what
;; tabulated-list.el does for any list.

(defvar-local efrit-budget-print--budget nil
  "The snapshot whose tiers stand above the list.")

(defvar-local efrit-budget-print--bars nil
  "The overlay that shows the tiers above the list.")

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
        (efrit-budget-print--restore-point window place)))))

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
      (efrit-budget-print--keep-visible window))))

;;;; Lines

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

;;;; Places

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

(defun efrit-budget-print--restore-point (window place)
  "Put WINDOW, which had its point at PLACE, back to there."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- (nth 3 place)))
    (set-window-start window (point) t)
    (efrit-budget-print--go place)
    (set-window-point window (point)))
  (efrit-budget-print--keep-visible window))

(defun efrit-budget-print--keep-visible (window)
  "Have WINDOW begin at its item where the bars above it take all the room."
  (save-excursion
    (goto-char (window-point window))
    (let ((above (overlay-get efrit-budget-print--bars 'before-string)))
      (when (and (= (window-start window) (point-min))
                 (< (window-body-height window)
                    (+ (cl-count ?\n above) (line-number-at-pos))))
        (set-window-start window (line-beginning-position) t)))))

;;; The view

;; M-x efrit-budget lists what is in the window and what left it: the system
;; text, what was said, and every result, each with its tokens.  Results can
;; be pinned, dropped and restored there; the next turn sees to it.

(defconst efrit-budget-view--most-entries 10000
  "Most results that are listed, newest first.")

(defvar-local efrit-budget-view--rows nil
  "The rows by their ids: a hash table of plists.")

(defvar-local efrit-budget-view--changes nil
  "User edits made here that can be undone, latest first.
Each is (TEXT . STEPS): STEPS, each a method and a handle, undo it.")

(defvar-local efrit-budget-view--timer nil
  "The timer that shows what happened, or nil.")

(defvar-local efrit-budget-view--request-count 0
  "Number of requests sent; answers to older requests are ignored.")

(defvar-local efrit-budget-view--refresh-time 0
  "When the sidecar was asked last, a time in seconds.")

;;;; The mode

(defvar efrit-budget-view-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'efrit-budget-view-show)
    (define-key map "p" #'efrit-budget-view-pin)
    (define-key map "d" #'efrit-budget-view-drop)
    (define-key map "r" #'efrit-budget-view-restore)
    (define-key map "u" #'efrit-budget-view-undo)
    (define-key map "g" #'efrit-budget-view-refresh)
    map)
  "Keys of `efrit-budget-view-mode'.")

(define-derived-mode efrit-budget-view-mode tabulated-list-mode "Efrit-Budget"
  "Every item in a session's window and out of it.
The age is how many uses of tools, requests and replies ago an item was
last used: what is used longest ago gives way first.  Where an item does
not stand in the window in full, its tokens are those it has in full, and
behind the arrow those it has in the window.

\\{efrit-budget-view-mode-map}"
  (setq tabulated-list-format
        `[("Tokens" 13 ,(efrit-budget-view--sorter :now) :right-align t)
          ("Item" 6 ,(efrit-budget-view--sorter :order))
          ("Tool" 16 t)
          ("Age" 5 ,(efrit-budget-view--sorter :age) :right-align t)
          ("State" 11 t)
          ("About" 0 t)]
        tabulated-list-padding 1
        tabulated-list-sort-key '("Item" . t)
        tabulated-list-use-header-line nil
        tabulated-list-printer #'efrit-budget-print-line
        revert-buffer-function #'efrit-budget-view-refresh)
  (tabulated-list-init-header)
  (add-hook 'window-buffer-change-functions #'efrit-budget-view--refresh-on-display nil t)
  (add-hook 'window-size-change-functions #'efrit-budget-print-fit nil t)
  (add-hook 'kill-buffer-hook #'efrit-budget-view--stop-timer nil t))

;;;; Commands

;;;###autoload
(defun efrit-budget (&optional loop)
  "Show what is in the window of LOOP, by default of the project here."
  (interactive)
  (let* ((loop (or loop (efrit-loop-current)))
         (buffer (get-buffer-create (efrit-budget-view--buffer-name loop))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'efrit-budget-view-mode)
        (efrit-budget-view-mode))
      (unless (eq efrit-loop-here loop)
        (setq efrit-loop-here loop
              efrit-budget-view--changes nil
              default-directory (efrit-loop-root loop)))
      (efrit-loop-observe loop #'efrit-budget-view--event)
      (efrit-budget-view-refresh))
    (pop-to-buffer buffer)
    buffer))

(defun efrit-budget-view-refresh (&rest _)
  "Ask the sidecar how the budget stands, and show it."
  (interactive nil efrit-budget-view-mode)
  (efrit-check-mode 'efrit-budget-view-mode)
  (efrit-budget-view--stop-timer)
  (setq efrit-budget-view--refresh-time (float-time))
  (let ((buffer (current-buffer))
        (asked (cl-incf efrit-budget-view--request-count))
        status turns)
    (efrit-budget-view--ask
     'session/status nil
     (lambda (told)
       (setq status told)
       (efrit-budget-view--ask
        'session/turns nil
        (lambda (told)
          (setq turns (plist-get told :turns))
          (efrit-budget-view--ask
           'worklog/list (list :limit efrit-budget-view--most-entries)
           (lambda (told)
             (when (and (buffer-live-p buffer)
                        (= asked (buffer-local-value 'efrit-budget-view--request-count buffer)))
               (with-current-buffer buffer
                 (efrit-budget-view--show status turns (plist-get told :entries))))))))))))

(defun efrit-budget-view-show ()
  "Show the whole stored text of the item at point."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row)))
    (pcase (plist-get row :kind)
      ('result (efrit-result-show (efrit-loop-id efrit-loop-here)
                                  (efrit-budget-view--handle row)))
      ('said (efrit-turn-text-show efrit-loop-here (plist-get row :turn) (plist-get row :said)))
      (_ (efrit-turn-text-show-system efrit-loop-here)))))

(defun efrit-budget-view-pin ()
  "Keep the result at point in full through compactions, or let it go again."
  (interactive nil efrit-budget-view-mode)
  (let* ((row (efrit-budget-view--row-of-result))
         (handle (efrit-budget-view--handle row)))
    (if (plist-get row :pinned)
        (efrit-budget-view--change (format "unpinned %s" handle) 'worklog/unpin handle
                                   `((worklog/pin . ,handle)))
      (efrit-budget-view--change (format "pinned %s" handle) 'worklog/pin handle
                                 `((worklog/unpin . ,handle))))))

(defun efrit-budget-view-drop ()
  "Shrink the result at point to its line; it stays stored."
  (interactive nil efrit-budget-view-mode)
  (let* ((row (efrit-budget-view--row-of-result))
         (handle (efrit-budget-view--handle row)))
    (unless (equal (plist-get row :state) "full")
      (user-error "%s does not stand in the window in full" handle))
    (efrit-budget-view--change (format "dropped %s" handle) 'worklog/drop handle
                               `((worklog/restore . ,handle)
                                 ,@(and (plist-get row :pinned)
                                        `((worklog/pin . ,handle)))))))

(defun efrit-budget-view-restore ()
  "Bring the result at point back in full, with the turn it belongs to."
  (interactive nil efrit-budget-view-mode)
  (let* ((row (efrit-budget-view--row-of-result))
         (handle (efrit-budget-view--handle row)))
    (when (equal (plist-get row :state) "full")
      (user-error "%s stands in the window in full" handle))
    (efrit-budget-view--change (format "restored %s" handle) 'worklog/restore handle
                               `((worklog/drop . ,handle)))))

(defun efrit-budget-view-undo ()
  "Undo the last pin, drop or restore that was done here."
  (interactive nil efrit-budget-view-mode)
  (efrit-check-mode 'efrit-budget-view-mode)
  (pcase (pop efrit-budget-view--changes)
    ('nil (user-error "There is nothing to undo"))
    (`(,text . ,steps)
     (efrit-budget-view--apply-edits
      steps (lambda () (message "Undone: %s" text))))))

;;;; Changes

(defun efrit-budget-view--change (text method handle undo)
  "Call METHOD for HANDLE, in words TEXT; UNDO is the way back."
  (let ((buffer (current-buffer)))
    (efrit-budget-view--apply-edits
     (list (cons method handle))
     (lambda ()
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (push (cons text undo) efrit-budget-view--changes)))
       (message "Efrit %s; the next turn sees to it" text)))))

(defun efrit-budget-view--apply-edits (wishes then)
  "Make each of WISHES, a (METHOD . HANDLE); then call THEN, and refresh."
  (let ((buffer (current-buffer)))
    (if (null wishes)
        (progn (funcall then)
               (efrit-budget-view-refresh))
      (efrit-budget-view--ask
       (caar wishes) (list :handle (cdar wishes))
       (lambda (_)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (efrit-budget-view--apply-edits (cdr wishes) then))))))))

(defun efrit-budget-view--ask (method params success)
  "Call METHOD with PARAMS for the session shown here, then SUCCESS."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id efrit-loop-here)) params)
   :success (efrit-budget-view--in-this-buffer success)
   :error (lambda (err) (message "%s" (efrit-error-text err)))))

(defun efrit-budget-view--in-this-buffer (function)
  "Return FUNCTION bound to this buffer, while that is alive."
  (let ((buffer (current-buffer)))
    (lambda (value)
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (funcall function value))))))

;;;; Rows

(defun efrit-budget-view--row ()
  "Return the row at point, a plist."
  (efrit-check-mode 'efrit-budget-view-mode)
  (or (gethash (tabulated-list-get-id) (or efrit-budget-view--rows (make-hash-table)))
      (user-error "There is no item here")))

(defun efrit-budget-view--row-of-result ()
  "Return the row at point, which must be a result's."
  (let ((row (efrit-budget-view--row)))
    (unless (eq (plist-get row :kind) 'result)
      (user-error "Only results can be pinned, dropped and restored"))
    row))

(defun efrit-budget-view--handle (row)
  "Return the handle of ROW, a result's."
  (or (plist-get row :handle)
      (user-error "This call has no result yet")))

(defun efrit-budget-view--sorter (name)
  "Return a predicate to sort entries by the number NAME of their rows."
  (lambda (one other)
    (let ((rows efrit-budget-view--rows))
      (< (or (plist-get (gethash (car one) rows) name) 0)
         (or (plist-get (gethash (car other) rows) name) 0)))))

;;;; Showing

(defun efrit-budget-view--buffer-name (loop)
  "Return the name of the buffer for the budget of LOOP."
  (format "*efrit budget: %s*"
          (file-name-nondirectory (directory-file-name (efrit-loop-root loop)))))

(defun efrit-budget-view--show (status said entries)
  "Show STATUS, SAID and ENTRIES, as the sidecar told them, in this buffer."
  (let ((rows (efrit-budget-rows status said entries)))
    (setq efrit-budget-view--rows (make-hash-table :size (length rows) :test #'equal)
          tabulated-list-entries
          (mapcar (lambda (row)
                    (puthash (plist-get row :id) row efrit-budget-view--rows)
                    (list (plist-get row :id) (efrit-budget-rows-columns row)))
                  rows))
    (efrit-budget-print (plist-get status :budget))))

;;;; Events

(defun efrit-budget-view--event (loop event)
  "Have the view of LOOP show what EVENT changed, soon."
  (when (or (memq (car event) '(begun ended price state))
            (and (eq (car event) 'use) (eq (efrit-use-state (cadr event)) 'done)))
    (let ((buffer (get-buffer (efrit-budget-view--buffer-name loop))))
      (when (and buffer (get-buffer-window buffer 'visible))
        (with-current-buffer buffer
          (when (eq efrit-loop-here loop)
            (efrit-budget-view--schedule-refresh)))))))

(defun efrit-budget-view--schedule-refresh ()
  "Refresh this buffer in a moment, and not too often."
  (unless efrit-budget-view--timer
    (setq efrit-budget-view--timer
          (run-at-time (max efrit-budget-view-delay
                            (- (+ efrit-budget-view--refresh-time efrit-budget-view-interval)
                               (float-time)))
                       nil #'efrit-budget-view--refresh-if-visible (current-buffer)))))

(defun efrit-budget-view--refresh-if-visible (buffer)
  "Refresh BUFFER, if it is in sight; it is refreshed when it comes in sight."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (efrit-budget-view--stop-timer)
      (when (get-buffer-window buffer 'visible)
        (efrit-budget-view-refresh)))))

(defun efrit-budget-view--stop-timer ()
  "Stop what would refresh this buffer."
  (when efrit-budget-view--timer
    (cancel-timer efrit-budget-view--timer)
    (setq efrit-budget-view--timer nil)))

(defun efrit-budget-view--refresh-on-display (_window)
  "Refresh this buffer, which is shown again: nothing was shown meanwhile."
  (when efrit-loop-here
    (efrit-budget-view--schedule-refresh)))

(provide 'efrit-budget)
;;; efrit-budget.el ends here
