;;; efrit-budget.el --- The budget view  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-budget lists the pieces of a session, in its window and evicted.

;;; Code:

(require 'efrit)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-view)
(require 'tabulated-list)

;;; Rows

;; The pieces of a session's window as rows of a table: the system text, each
;; user message and reply, and each result.  A row is a plist: `:id', a string;
;; `:kind', one of `system', `turn' and `result'; `:tokens', the tokens in full,
;; and `:now', the tokens in the window; the columns `:item', `:tool', `:age',
;; `:state' and `:about'; `:order', a number to sort by time.  A result's row
;; has the members of its entry in the work log, too.

(defun efrit-budget-rows (status turns entries)
  "Return the rows of a budget view, a list of plists.
STATUS is the reply to `session/status'; TURNS and ENTRIES are the lists in the
replies to `session/turns' and `worklog/list'."
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
  "Return the face of a line with COLUMNS, a vector, by the state among them."
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
  "Return the row of TURN, the sidecar's entry for a user message or a reply."
  (let ((number (plist-get turn :turn))
        (kind (plist-get turn :kind)))
    (list :id (format "t%d-%s" number kind)
          :kind 'turn :turn number :item (format "t%d" number) :tool kind
          :order (+ (* 1000 number) (if (equal kind "reply") 2 0))
          :state (plist-get turn :state)
          :tokens (plist-get turn :tokens) :now (plist-get turn :tokens_now)
          :age (plist-get turn :age) :about (plist-get turn :begins))))

(defun efrit-budget-rows--result-row (entry)
  "Return the row of ENTRY, an entry in the reply to `worklog/list'."
  (let ((handle (plist-get entry :handle)))
    (append
     (list :id (concat "u-" (plist-get entry :tool_use_id))
           :kind 'result :item (or handle "…")
           :order (+ (* 1000 (or (plist-get entry :turn) 0)) 3
                     (if handle (/ (string-to-number (substring handle 1)) 1000.0) 990))
           :now (plist-get entry :tokens_now)
           :pinned (eq (plist-get entry :pinned) t)
           :about (and (plist-get entry :arguments)
                       (efrit-show-arguments (efrit-export-json (plist-get entry :arguments))
                                             200)))
     entry)))

(defun efrit-budget-rows--tokens (full now)
  "Return the number FULL, or nil, as text, with an arrow to NOW if NOW is less."
  (cond ((null full) "")
        ((or (null now) (>= now full)) (efrit-show-number full))
        (t (concat (efrit-show-number full) "→" (efrit-show-number now)))))

(defun efrit-budget-rows--state (row)
  "Return the state of ROW in words, such as \"pinned\" or \"evicted\"."
  (pcase (plist-get row :state)
    ("gone" "evicted")
    ("announced" "running")
    ((and "full" (guard (plist-get row :pinned))) "pinned")
    (state state)))

;;; Printing

;; Prints the list below the bars of the tiers.  With every tool call, message
;; and reply the ages in all lines change, so a line is inserted as one string:
;; several times as fast as the general code of tabulated-list.el.

(defvar-local efrit-budget-print--budget nil
  "The snapshot of the budget whose tiers are shown above the list.")

(defvar-local efrit-budget-print--bars nil
  "The overlay with the bars above the list.")

(defun efrit-budget-print (budget)
  "Print the list below the bars of BUDGET, a snapshot.
In every window, keep point on its item, else on its line."
  (setq efrit-budget-print--budget budget)
  (let ((buffer-place (efrit-budget-print--place (point) nil))
        (places (mapcar (lambda (window)
                          (cons window (efrit-budget-print--place
                                        (window-point window) (window-start window))))
                        (get-buffer-window-list nil nil t))))
    (tabulated-list-print)
    (efrit-budget-print--bars)
    (efrit-budget-print--go buffer-place)
    (pcase-dolist (`(,window . ,place) places)
      (efrit-budget-print--restore-point window place))))

(defun efrit-budget-print-line (id columns)
  "Insert the line of the item ID with COLUMNS, a vector of strings.
This is the value of `tabulated-list-printer' here."
  (let ((start (point))
        (at (+ (point) tabulated-list-padding)))
    (insert (apply #'format (efrit-budget-print--format) (append columns nil)))
    (add-text-properties start (point)
                         (list 'tabulated-list-id id 'tabulated-list-entry columns
                               'face (efrit-budget-rows-face columns)))
    ;; The property lets `tabulated-list-sort' sort by the column at point.
    (cl-loop for (name width . _) across tabulated-list-format
             for end = (if (zerop width) (1- (point)) (+ at width))
             do (put-text-property at end 'tabulated-list-column-name name)
             (setq at (1+ end)))))

(defun efrit-budget-print-fit (window)
  "Redraw the bars above the list, since the size of WINDOW has changed."
  (with-current-buffer (window-buffer window)
    (when efrit-budget-print--budget
      (efrit-budget-print--bars)
      (efrit-budget-print--keep-visible window))))

;;;; Lines

(defun efrit-budget-print--format ()
  "Return the format string of a line, made from the widths of its columns.
The last column has no fixed width."
  (concat (make-string tabulated-list-padding ?\s)
          (mapconcat (pcase-lambda (`(,_ ,width ,_ . ,options))
                       (cond ((zerop width) "%s")
                             ((plist-get options :right-align)
                              (format "%%%d.%ds" width width))
                             (t (format "%%-%d.%ds" width width))))
                     tabulated-list-format " ")
          "\n"))

(defun efrit-budget-print--bars ()
  "Show the bars above the list, as wide as the narrowest of its windows."
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
  "Return the place of POSITION: (ID COLUMN LINE START-LINE).
ID is the item's id, or nil.  START-LINE is the line of START, the start of a
window, or 1 if START is nil."
  (save-excursion
    (goto-char position)
    (list (tabulated-list-get-id) (current-column) (line-number-at-pos)
          (if start (line-number-at-pos start) 1))))

(defun efrit-budget-print--go (place)
  "Move point to PLACE: to its item, else to its line, else to the next item."
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
  "Move to the first line from here whose id satisfies WANTED, or return nil."
  (while (not (or (eobp) (funcall wanted (tabulated-list-get-id))))
    (forward-line))
  (not (eobp)))

(defun efrit-budget-print--restore-point (window place)
  "Restore point and start of WINDOW from PLACE."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- (nth 3 place)))
    (set-window-start window (point) t)
    (efrit-budget-print--go place)
    (set-window-point window (point)))
  (efrit-budget-print--keep-visible window))

(defun efrit-budget-print--keep-visible (window)
  "Scroll WINDOW to the line of its point if the bars leave that line no room."
  (save-excursion
    (goto-char (window-point window))
    (let ((above (overlay-get efrit-budget-print--bars 'before-string)))
      (when (and (= (window-start window) (point-min))
                 (< (window-body-height window)
                    (+ (cl-count ?\n above) (line-number-at-pos))))
        (set-window-start window (line-beginning-position) t)))))

;;; The view

;; The person can pin, drop and restore results; each such user edit takes
;; effect with the next turn.

(defconst efrit-budget-view--most-entries 10000
  "Most results that are listed, newest first.")

(defvar-local efrit-budget-view--rows nil
  "A hash table from the ids of the rows to the rows, which are plists.")

(defvar-local efrit-budget-view--changes nil
  "User edits made in this buffer that can be undone, latest first.
Each is (TEXT . STEPS): TEXT describes the edit, and STEPS, a list of
\(METHOD . HANDLE), undo it.")

(defvar-local efrit-budget-view--timer nil
  "The timer that refreshes this buffer, or nil.")

(defvar-local efrit-budget-view--request-count 0
  "Number of refreshes begun; replies to earlier refreshes are ignored.")

(defvar-local efrit-budget-view--refresh-time 0
  "Time in seconds at which the last refresh began.")

;;;; The mode

(defvar efrit-budget-view-mode-map
  (efrit-make-keymap '(("RET" efrit-budget-view-show)
                       ("p" efrit-budget-view-pin)
                       ("d" efrit-budget-view-drop)
                       ("r" efrit-budget-view-restore)
                       ("u" efrit-budget-view-undo)
                       ("g" efrit-budget-view-refresh)))
  "Keys of `efrit-budget-view-mode'.")

(define-derived-mode efrit-budget-view-mode tabulated-list-mode "Efrit-Budget"
  "Major mode that lists the items of a session, in its window and evicted.
An item's age counts the tool calls, messages and replies since it was last
used: the oldest item is compressed first.  For a compressed item, the tokens
of its full text are shown, and behind the arrow its tokens in the window.

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
  "Show the budget of LOOP, by default of the session here, item by item."
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
    (pop-to-buffer buffer)))

(defun efrit-budget-view-refresh (&rest _)
  "Fetch the budget from the sidecar, and show it."
  (interactive nil efrit-budget-view-mode)
  (efrit-check-mode 'efrit-budget-view-mode)
  (efrit-budget-view--stop-timer)
  (setq efrit-budget-view--refresh-time (float-time))
  (let ((count (cl-incf efrit-budget-view--request-count)))
    (efrit-budget-view--ask
     'session/status nil
     (lambda (status)
       (efrit-budget-view--ask
        'session/turns nil
        (lambda (turns)
          (efrit-budget-view--ask
           'worklog/list (list :limit efrit-budget-view--most-entries)
           (lambda (listed)
             (when (= count efrit-budget-view--request-count)
               (efrit-budget-view--show status (plist-get turns :turns)
                                        (plist-get listed :entries)))))))))))

(defun efrit-budget-view-show ()
  "Show the whole stored text of the item at point."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row)))
    (pcase (plist-get row :kind)
      ('result (efrit-result-show (efrit-loop-id efrit-loop-here)
                                  (efrit-budget-view--handle row)))
      ('turn (efrit-result-show-turn efrit-loop-here (plist-get row :turn)
                                     (plist-get row :tool)))
      (_ (efrit-result-show-prefix efrit-loop-here)))))

(defun efrit-budget-view-pin ()
  "Pin the result at point, to keep it in full through rewrites, or unpin it."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row-of-result)))
    (if (plist-get row :pinned)
        (efrit-budget-view--change row "unpinned" 'worklog/unpin 'worklog/pin)
      (efrit-budget-view--change row "pinned" 'worklog/pin 'worklog/unpin))))

(defun efrit-budget-view-drop ()
  "Compress the result at point to one line of the window; it stays stored."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row-of-result)))
    (unless (equal (plist-get row :state) "full")
      (user-error "%s is already compressed or evicted" (efrit-budget-view--handle row)))
    (apply #'efrit-budget-view--change row "dropped" 'worklog/drop
           'worklog/restore (and (plist-get row :pinned) '(worklog/pin)))))

(defun efrit-budget-view-restore ()
  "Bring the result at point back into the window in full, with its turn."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row-of-result)))
    (when (equal (plist-get row :state) "full")
      (user-error "%s is already in the window in full" (efrit-budget-view--handle row)))
    (efrit-budget-view--change row "restored" 'worklog/restore 'worklog/drop)))

(defun efrit-budget-view-undo ()
  "Undo the last pin, drop or restore that was made in this buffer."
  (interactive nil efrit-budget-view-mode)
  (efrit-check-mode 'efrit-budget-view-mode)
  (pcase (pop efrit-budget-view--changes)
    ('nil (user-error "No pin, drop or restore left to undo"))
    (`(,text . ,steps)
     (efrit-budget-view--apply-edits
      steps (lambda () (message "Undone: %s" text))))))

;;;; Changes

(defun efrit-budget-view--change (row verb method &rest back)
  "Call METHOD for the result of ROW; VERB, in the past tense, describes it.
The methods BACK undo it if called in this order."
  (let* ((handle (efrit-budget-view--handle row))
         (text (format "%s %s" verb handle)))
    (efrit-budget-view--apply-edits
     (list (cons method handle))
     (lambda ()
       (push (cons text (mapcar (lambda (undo) (cons undo handle)) back))
             efrit-budget-view--changes)
       (message "Efrit %s; this takes effect with the next turn" text)))))

(defun efrit-budget-view--apply-edits (edits then)
  "Call each METHOD of EDITS, a list of (METHOD . HANDLE); call THEN; refresh."
  (if (null edits)
      (progn (funcall then)
             (efrit-budget-view-refresh))
    (efrit-budget-view--ask
     (caar edits) (list :handle (cdar edits))
     (lambda (_) (efrit-budget-view--apply-edits (cdr edits) then)))))

(defun efrit-budget-view--ask (method params success)
  "Call METHOD with PARAMS for the session shown here.
Then call SUCCESS with the reply in this buffer, unless the buffer is killed."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     method (append (list :session_id (efrit-loop-id efrit-loop-here)) params)
     :success (lambda (reply) (efrit-with-live-buffer buffer (funcall success reply)))
     :error #'efrit-show-error)))

;;;; Rows

(defun efrit-budget-view--row ()
  "Return the row at point, a plist; signal a `user-error' if there is none."
  (efrit-check-mode 'efrit-budget-view-mode)
  (or (gethash (tabulated-list-get-id) (or efrit-budget-view--rows (make-hash-table)))
      (user-error "No item on this line")))

(defun efrit-budget-view--row-of-result ()
  "Return the row at point; signal a `user-error' unless it is a result's row."
  (let ((row (efrit-budget-view--row)))
    (unless (eq (plist-get row :kind) 'result)
      (user-error "Only results can be pinned, dropped and restored"))
    row))

(defun efrit-budget-view--handle (row)
  "Return the handle in ROW, or signal a `user-error' if its call has no result."
  (or (plist-get row :handle)
      (user-error "This tool call has no result yet")))

(defun efrit-budget-view--sorter (name)
  "Return a predicate to sort entries by NAME, a numeric member of their rows."
  (lambda (one other)
    (let ((rows efrit-budget-view--rows))
      (< (or (plist-get (gethash (car one) rows) name) 0)
         (or (plist-get (gethash (car other) rows) name) 0)))))

;;;; Showing

(defun efrit-budget-view--buffer-name (loop)
  "Return the name of the buffer for the budget of LOOP."
  (format "*efrit budget: %s*"
          (file-name-nondirectory (directory-file-name (efrit-loop-root loop)))))

(defun efrit-budget-view--show (status turns entries)
  "Show the present rows in this buffer.
They are made from STATUS, TURNS and ENTRIES by `efrit-budget-rows'."
  (let ((rows (efrit-budget-rows status turns entries)))
    (setq efrit-budget-view--rows (make-hash-table :size (length rows) :test #'equal)
          tabulated-list-entries
          (mapcar (lambda (row)
                    (puthash (plist-get row :id) row efrit-budget-view--rows)
                    (list (plist-get row :id) (efrit-budget-rows-columns row)))
                  rows))
    (efrit-budget-print (plist-get status :budget))))

;;;; Events

(defun efrit-budget-view--event (loop event)
  "Schedule a refresh of the visible view of LOOP if EVENT changed the budget."
  (when (or (memq (car event) '(begun ended price state))
            (and (eq (car event) 'use) (eq (efrit-use-state (cadr event)) 'done)))
    (let ((buffer (get-buffer (efrit-budget-view--buffer-name loop))))
      (when (and buffer (get-buffer-window buffer 'visible))
        (with-current-buffer buffer
          (when (eq efrit-loop-here loop)
            (efrit-budget-view--schedule-refresh)))))))

(defun efrit-budget-view--schedule-refresh ()
  "Schedule a refresh of this buffer, unless one is scheduled already."
  (unless efrit-budget-view--timer
    (setq efrit-budget-view--timer
          (run-at-time (max efrit-budget-view-delay
                            (- (+ efrit-budget-view--refresh-time efrit-budget-view-interval)
                               (float-time)))
                       nil #'efrit-budget-view--refresh-if-visible (current-buffer)))))

(defun efrit-budget-view--refresh-if-visible (buffer)
  "Refresh BUFFER if it is in a window; displaying it later refreshes it, too."
  (efrit-with-live-buffer buffer
    (efrit-budget-view--stop-timer)
    (when (get-buffer-window buffer 'visible)
      (efrit-budget-view-refresh))))

(defun efrit-budget-view--stop-timer ()
  "Cancel the timer that would refresh this buffer."
  (efrit-stop-timer efrit-budget-view--timer))

(defun efrit-budget-view--refresh-on-display (_window)
  "Schedule a refresh of this buffer, which a window displays again."
  (when efrit-loop-here
    (efrit-budget-view--schedule-refresh)))

(provide 'efrit-budget)
;;; efrit-budget.el ends here
