;;; efrit-budget.el --- The budget view and stored results  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-budget lists the pieces of a session, in its window and evicted:
;; one by one, or summed up by file or by tool.  Results, messages, replies and
;; the system text are shown in buffers of their own.

;;; Code:

(require 'compile)
(require 'diff-mode)
(require 'efrit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-sessions)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-transcript)
(require 'efrit-view)
(require 'so-long)
(require 'tabulated-list)

;;; Stored results

;; Shows results, messages, replies and the system text as the sidecar has
;; stored them.  Looking at a result does not count as a use, and costs no
;; tokens.

(defun efrit-result-show (session handle)
  "Show the result HANDLE of the session whose id is SESSION in its own buffer."
  (efrit-result--fetch
   (format "*efrit result: %s %s*" session handle) session
   'worklog/show (list :handle handle :most efrit-result-most-characters)
   (lambda (result)
     (let ((text (or (plist-get result :text) "")))
       (efrit-result--write
        text (- (or (plist-get result :characters) 0) (length text)))
       (efrit-result--dress session result)))))

(defun efrit-result-show-turn (loop turn kind)
  "Show the text of TURN of LOOP; its KIND is \"request\" or \"reply\"."
  (efrit-result--fetch
   (format "*efrit %s: %s t%d*" kind (efrit-loop-id loop) turn) (efrit-loop-id loop)
   'session/transcript nil
   (lambda (transcript)
     (efrit-result--write
      (mapconcat (lambda (entry) (efrit-export-entry entry 'markdown))
                 (seq-filter (lambda (entry)
                               (and (eql (plist-get entry :turn) turn)
                                    (equal (plist-get entry :kind) kind)))
                             (plist-get transcript :turns))
                 "")))))

(defun efrit-result-show-prefix (loop)
  "Show the system text and the tools of LOOP, as they were sent last."
  (efrit-result--fetch
   (format "*efrit system: %s*" (efrit-loop-id loop)) (efrit-loop-id loop)
   'session/messages nil
   (lambda (window)
     (efrit-result--write
      (concat (mapconcat (lambda (block) (plist-get block :text))
                         (plist-get window :system) "\n\n")
              "\n"
              (mapconcat (lambda (tool)
                           (format "\n%s\n  %s\n" (plist-get tool :name)
                                   (plist-get tool :description)))
                         (plist-get window :tools) ""))))))

(define-derived-mode efrit-result-mode special-mode "Efrit-Result"
  "Major mode that shows text stored by the sidecar."
  (efrit-keep-keys)
  (setq-local bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t)
  (setq truncate-lines t
        buffer-undo-list t))

;;;; Commands

;;;###autoload
(defun efrit-open-result ()
  "Show the stored result of the tool at point, or of the nearest one above."
  (interactive)
  (let* ((loop (efrit-loop-current))
         (use (or (efrit-view-use-here)
                  (user-error "No single tool call at point or above; TAB opens a group")))
         (handle (plist-get (efrit-use-result use) :handle)))
    (unless handle
      (user-error "%s has no stored result" (efrit-use-name use)))
    (efrit-result-show (efrit-loop-id loop) handle)))

(defun efrit-result--fetch (name session method params show)
  "Call METHOD with PARAMS for the session whose id is SESSION.
Display the buffer NAME, and return it; call SHOW in it with the reply."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     method (append (list :session_id session) params)
     :timeout nil
     :success (lambda (reply) (efrit-with-live-buffer buffer (funcall show reply)))
     :error (lambda (err)
              (efrit-with-live-buffer buffer (efrit-result--write (efrit-error-text err)))))
    buffer))

(defun efrit-result--write (text &optional more)
  "Replace the text of this buffer with TEXT.
If MORE is positive, add a line that MORE characters are stored."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (save-excursion
      (insert text)
      (when (> (or more 0) 0)
        (insert (propertize (format "\n[%d characters more are stored; see \
`efrit-result-most-characters']\n" more)
                            'face 'efrit-note))))
    (set-buffer-modified-p nil)))

(defun efrit-result--header (result)
  "Return the header line for RESULT, a plist, or nil if it has no handle."
  (and (plist-get result :handle)
       (replace-regexp-in-string
        "%" "%%"
        (format " %s  %s  %s tokens, %s" (plist-get result :handle)
                (efrit-line-words (efrit-export-use result))
                (efrit-show-tokens (plist-get result :tokens)) (plist-get result :state)))))

;;;; Modes of results

;; A file's lines are shown in its major mode, a diff in diff-mode, and the
;; output of commands so that the errors in it can be visited.  The mode is one
;; that opens such files in this Emacs; neither its hooks nor variables of the
;; file or its folder take effect.

(defconst efrit-result--numbered "^\\(-?[0-9]+\\(?:, column [0-9]+\\)?\\)\t"
  "Regexp of the number before each line of a file in a result.")

(defconst efrit-result--editing
  '("edit_file" "multi_edit" "create_file" "rename_file" "delete_file" "format_buffer"
    "rename_symbol")
  "Names of the tools whose changes are shown as a diff.")

(defvar efrit-result-errors-map
  (efrit-make-keymap '(("g" undefined) ("C-c C-k" undefined)) compilation-minor-mode-map)
  "Keys on the output of a command, whose errors can be visited.
Unlike those of Compilation mode, none of them runs a command again.")

(defun efrit-result--dress (session result)
  "Give this buffer, with the text of RESULT in SESSION, the mode that fits."
  (let ((header (efrit-result--header result))
        (tool (plist-get result :tool))
        (loop (efrit-loop-of-session session)))
    (when loop
      (setq default-directory (efrit-loop-root loop)))
    (cond ((funcall so-long-predicate) (so-long))
          ((equal (plist-get result :status) "error"))
          ((member tool '("read_file" "read_buffer"))
           (let ((file (or (plist-get (plist-get result :arguments) :path)
                           (plist-get (plist-get result :arguments) :buffer))))
             (setq header (concat header (efrit-result--take-title file)))
             (efrit-result--dress-lines file)))
          ((member tool '("vcs_diff" "vcs_show")) (efrit-result--dress-diff))
          ((member tool '("run_command" "compile")) (efrit-result--dress-errors))
          ((member tool efrit-result--editing)
           (efrit-result--fetch-diffs session (plist-get result :tool_use_id))))
    (setq header-line-format header)))

(defun efrit-result--take-title (file)
  "Remove the line about FILE above its lines; return it for the header line.
Leave out the name of FILE, which is in the header line already."
  (goto-char (point-min))
  (if (looking-at efrit-result--numbered)
      ""
    (let ((title (buffer-substring-no-properties (point) (line-end-position))))
      (with-silent-modifications
        (delete-region (point) (min (point-max) (1+ (line-end-position)))))
      (string-replace "%" "%%" (concat "  " (string-remove-prefix
                                             (concat file " ")
                                             (efrit-permissions-visible title t)))))))

(defun efrit-result--dress-lines (file)
  "Show the numbered lines of FILE in this buffer in the mode for FILE."
  (efrit-result--in-mode
   (efrit-result--mode-for file)
   (lambda ()
     (goto-char (point-min))
     (while (re-search-forward efrit-result--numbered nil t)
       (let ((number (propertize (format "%5s " (match-string 1)) 'face 'line-number)))
         (replace-match "")
         (put-text-property (point) (min (point-max) (1+ (line-end-position)))
                            'line-prefix number)))
     (goto-char (point-min)))))

(defun efrit-result--dress-diff ()
  "Show this buffer in Diff mode."
  (efrit-result--in-mode #'diff-mode #'efrit-diff-set-up))

(defconst efrit-result--directory
  '("\\(?:Entering\\|Leavin\\(g\\)\\) directory [`']\\(/[^:\n]*\\)'$" (2 . 1))
  "As `compilation-directory-matcher', but without folders of other machines.
Compilation mode would open a connection to the machine when it sees the name.")

(defun efrit-result--local-name (name)
  "Return NAME, a file of the machine that printed it, so that it is of no other."
  (if (or (file-remote-p name) (file-remote-p (expand-file-name name "/")))
      (file-name-quote name t)
    name))

(defun efrit-result--dress-errors ()
  "Make the errors in this buffer, the output of a command, ones to visit."
  (setq-local compilation-directory-matcher efrit-result--directory
              compilation-parse-errors-filename-function #'efrit-result--local-name)
  (compilation-minor-mode)
  (setq-local minor-mode-overriding-map-alist
              (list (cons 'compilation-minor-mode efrit-result-errors-map))))

(defun efrit-result--in-mode (mode edit)
  "Turn on MODE, a symbol, in this buffer, without its hooks; then call EDIT.
The buffer is read-only then, and has the keys of Special mode."
  (let ((header header-line-format)
        (inhibit-read-only t))
    (delay-mode-hooks (funcall mode))
    (setq header-line-format header
          buffer-undo-list t)
    (with-silent-modifications
      (funcall edit))
    (font-lock-mode)
    (setq-local bidi-paragraph-direction 'left-to-right)
    (setq buffer-read-only t)
    (use-local-map (make-composed-keymap special-mode-map (current-local-map)))))

(defun efrit-result--mode-for (file)
  "Return the mode for text that files named as FILE are opened in, or another."
  (let* ((case-fold-search nil)
         (mode (and (stringp file) (assoc-default file auto-mode-alist #'string-match-p))))
    (if (and (symbolp mode) (efrit-file-text-mode-p mode))
        mode
      #'text-mode)))

(defun efrit-result--fetch-diffs (session tool-use-id)
  "Fetch the diffs of all that TOOL-USE-ID changed in SESSION; show them here."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'changes/list (list :session_id session)
     :success
     (lambda (listed)
       (efrit-result--fetch-each
        buffer session
        (cl-loop for change across (plist-get listed :changes)
                 when (equal (plist-get change :tool_use_id) tool-use-id)
                 collect (plist-get change :number))
        ""))
     :error #'ignore)))

(defun efrit-result--fetch-each (buffer session numbers text)
  "Add the diff of each of NUMBERS in SESSION to TEXT; then show it in BUFFER.
Without a diff, BUFFER stays as it is."
  (if (null numbers)
      (efrit-with-live-buffer buffer
        (unless (string-empty-p text)
          (efrit-result--write (efrit-permissions-visible text))
          (efrit-result--dress-diff)))
    (efrit-sidecar-request-async
     'changes/show (list :session_id session :number (car numbers)
                         :most efrit-result-most-characters)
     :success (lambda (change)
                (efrit-result--fetch-each buffer session (cdr numbers)
                                          (concat text (plist-get change :diff))))
     :error #'ignore)))

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

(defun efrit-budget-rows-columns (row narrow)
  "Return the columns of ROW, a vector of strings; leave some out if NARROW."
  (let ((tokens (efrit-budget-rows--tokens (plist-get row :tokens) (plist-get row :now) narrow))
        (state (efrit-budget-rows--state row))
        (about (efrit-permissions-visible
                (replace-regexp-in-string "[ \t\n]+" " " (or (plist-get row :about) "")) t)))
    (if narrow
        (vector tokens (plist-get row :item) (plist-get row :tool) state about)
      (vector tokens (plist-get row :item) (plist-get row :tool)
              (if (plist-get row :age) (number-to-string (plist-get row :age)) "")
              state about))))

(defun efrit-budget-rows-face (state)
  "Return the face of the whole line of an item in STATE, a word, or nil for none."
  (and (member state '("compressed" "evicted")) 'efrit-figures))

;;;; Groups

(defun efrit-budget-rows-groups (rows by)
  "Return ROWS summed up by BY, `file' or `tool': plists, the largest first.
They have `:name', `:now', the tokens in the window, `:count', and `:share', the
part of the tokens of all ROWS.  Rows without tokens in the window do not count."
  (let ((groups (make-hash-table :test #'equal))
        (all 0))
    (dolist (row rows)
      (let ((now (or (plist-get row :now) 0))
            (name (efrit-budget-rows-group row by)))
        (when (> now 0)
          (cl-incf all now)
          (pcase-let ((`(,sum . ,count) (gethash name groups '(0 . 0))))
            (puthash name (cons (+ sum now) (1+ count)) groups)))))
    (sort (cl-loop for name being the hash-keys of groups using (hash-values total)
                   collect (list :id (format "%s %s" by name) :kind 'group :by by :name name
                                 :now (car total) :count (cdr total)
                                 :share (/ (float (car total)) all)))
          (lambda (one other) (> (plist-get one :now) (plist-get other :now))))))

(defconst efrit-budget-rows--bar-width 12
  "Columns of the bar of a group's share.")

(defun efrit-budget-rows-group-columns (group)
  "Return the columns of GROUP, a vector of strings.
GROUP is as in `efrit-budget-rows-groups'."
  (let ((share (plist-get group :share)))
    (vector (efrit-show-number (plist-get group :now))
            (efrit-budget-rows-percent share)
            (efrit-show-bar share 1 efrit-budget-rows--bar-width 'efrit-gauge-part)
            (number-to-string (plist-get group :count))
            (efrit-permissions-visible (plist-get group :name) t))))

(defun efrit-budget-rows-percent (share)
  "Return SHARE, a number from 0 to 1, in percent as text."
  (if (< 0 share 0.005) "<1%" (format "%d%%" (round (* 100 share)))))

(defun efrit-budget-rows-group (row by)
  "Return the name of the group of ROW by BY, `file' or `tool'."
  (if (eq by 'tool)
      (plist-get row :tool)
    (pcase (plist-get row :kind)
      ('system "system text and tools")
      ('turn (if (equal (plist-get row :tool) "request") "your messages" "the model's replies"))
      (_ (let ((paths (efrit-budget-rows--paths (plist-get row :arguments))))
           (if paths (string-join paths ", ") "results about no file"))))))

(defun efrit-budget-rows--paths (arguments)
  "Return the paths in ARGUMENTS, a plist of a tool's arguments, each once."
  (let ((several (plist-get arguments :paths)))
    (seq-uniq (mapcar (lambda (path) (string-remove-prefix "./" path))
                      (append (efrit-permissions-paths arguments)
                              (seq-filter #'stringp (and (vectorp several) several)))))))

;;;; Cells

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

(defun efrit-budget-rows--tokens (full now narrow)
  "Return the number FULL, or nil, as text, with an arrow to NOW if NOW is less.
If NARROW, return NOW alone."
  (cond ((null full) "")
        ((or (null now) (>= now full)) (efrit-show-number full))
        (narrow (efrit-show-number now))
        (t (concat (efrit-show-number full) "→" (efrit-show-number now)))))

(defun efrit-budget-rows--state (row)
  "Return the state of ROW in words, such as \"pinned\" or \"evicted\"."
  (pcase (plist-get row :state)
    ("gone" "evicted")
    ("announced" "running")
    ((and "full" (guard (plist-get row :pinned))) "pinned")
    (state state)))

;;; Printing

;; Prints the list below the bars of the tiers, what fills the window, and the
;; keys.  With every tool call, message and reply the ages in all lines change,
;; so a line is inserted as one string: several times as fast as the general
;; code of tabulated-list.el.

(defvar-local efrit-budget-print--head #'ignore
  "Function called with columns and lines; it returns the text above the list.")

(defvar-local efrit-budget-print--overlay nil
  "The overlay with the text above the list.")

(defvar-local efrit-budget-print--columns 80
  "The columns for which the list is printed.")

(defvar-local efrit-budget-print--faces nil
  "The faces of the columns, a list.")

(defun efrit-budget-print-size ()
  "Return the columns and lines of the smallest window of this buffer, as a cons."
  (efrit-smallest-window 80 40))

(defun efrit-budget-print-set-columns (columns)
  "Set the columns of the list to COLUMNS, for a window as it is now.
They are lists (FACE NAME WIDTH SORT . OPTIONS), without FACE as in
`tabulated-list-format'."
  (setq tabulated-list-format (vconcat (mapcar #'cdr columns))
        efrit-budget-print--faces (mapcar #'car columns)
        efrit-budget-print--columns (car (efrit-budget-print-size))))

(defun efrit-budget-print (head)
  "Print the list below the text of HEAD, a function of columns and lines.
In every window, keep point on its item, else on its line."
  (setq efrit-budget-print--head head)
  (let ((buffer-place (efrit-budget-print--place (point) nil))
        (places (mapcar (lambda (window)
                          (cons window (efrit-budget-print--place
                                        (window-point window) (window-start window))))
                        (get-buffer-window-list nil nil t))))
    (tabulated-list-init-header)
    (tabulated-list-print)
    (efrit-budget-print--show-head)
    (efrit-budget-print--go buffer-place)
    (pcase-dolist (`(,window . ,place) places)
      (efrit-budget-print--restore-point window place))))

(defun efrit-budget-print-line (id columns)
  "Insert the line of the item ID with COLUMNS, a vector of strings.
This is the value of `tabulated-list-printer' here.  The last column is cut to
what is left of the line."
  (let* ((start (point))
         (at (+ start tabulated-list-padding))
         (last (1- (length columns)))
         (room (- efrit-budget-print--columns (efrit-budget-print--taken)))
         (cells (append columns nil)))
    (setf (nth last cells)
          (truncate-string-to-width (nth last cells) (max 1 room) nil nil "…"))
    (insert (apply #'format (efrit-budget-print--format) cells))
    (add-text-properties start (point)
                         (list 'tabulated-list-id id 'tabulated-list-entry columns))
    ;; The property lets `tabulated-list-sort' sort by the column at point.
    (cl-loop with whole = (efrit-budget-rows-face (efrit-budget-print--state cells))
             for (name width . _) across tabulated-list-format
             for face in efrit-budget-print--faces
             for end = (if (zerop width) (1- (point)) (+ at width))
             do (put-text-property at end 'tabulated-list-column-name name)
             when (or whole face)
             do (put-text-property at end 'face (or whole face))
             do (setq at (1+ end)))))

(defun efrit-budget-print-fit (window)
  "Lay the list and the text above it out anew, since the size of WINDOW changed."
  (with-current-buffer (window-buffer window)
    (when efrit-budget-print--overlay
      (if (eql efrit-budget-print--columns (car (efrit-budget-print-size)))
          (efrit-budget-print--show-head)
        (efrit-budget-view--print))
      (efrit-budget-print--keep-visible window))))

;;;; Lines

(defun efrit-budget-print--state (cells)
  "Return the one of CELLS, a list, that is in the column \"State\", or nil."
  (cl-loop for column across tabulated-list-format
           for cell in cells
           when (equal "State" (car column)) return cell))

(defun efrit-budget-print--taken ()
  "Return the columns of a line before its last column."
  (cl-loop for (_ width . _) across tabulated-list-format
           unless (zerop width)
           sum (1+ width) into sum
           finally return (+ tabulated-list-padding sum)))

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

(defun efrit-budget-print--show-head ()
  "Show the text above the list, laid out for the smallest of its windows."
  (unless efrit-budget-print--overlay
    (setq efrit-budget-print--overlay (make-overlay (point-min) (point-min))))
  (move-overlay efrit-budget-print--overlay (point-min) (point-min))
  (pcase-let ((`(,columns . ,lines) (efrit-budget-print-size)))
    (overlay-put efrit-budget-print--overlay 'before-string
                 (funcall efrit-budget-print--head columns lines))))

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
    (let ((above (overlay-get efrit-budget-print--overlay 'before-string)))
      (when (and (= (window-start window) (point-min))
                 (< (window-body-height window)
                    (+ (cl-count ?\n above) (line-number-at-pos))))
        (set-window-start window (line-beginning-position) t)))))

;;; The view

;; The person can pin, drop and restore results; each such user edit takes
;; effect with the next turn.

(defconst efrit-budget-view--most-entries 10000
  "Most results that are listed, newest first.")

(defconst efrit-budget-view--narrow 76
  "Columns below which the list leaves out some of its own.")

(defconst efrit-budget-view--tall 22
  "Lines of a window from which on the tiers are shown above the list.")

(defvar-local efrit-budget-view--rows nil
  "A hash table from the ids of the lines to their rows, which are plists.")

(defvar-local efrit-budget-view--all nil
  "The rows of all items, as `efrit-budget-rows' returns them.")

(defvar-local efrit-budget-view--budget nil
  "The snapshot of the budget that is shown.")

(defvar-local efrit-budget-view--by 'item
  "The symbol `item', `file' or `tool' that the list sums up by.")

(defvar-local efrit-budget-view--only nil
  "The group whose items alone are shown, or nil.
It is a cons of `file' or `tool' and the group's name.")

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
                       ("P" efrit-budget-view-pin)
                       ("d" efrit-budget-view-drop)
                       ("r" efrit-budget-view-restore)
                       ("u" efrit-budget-view-undo)
                       ("f" efrit-budget-view-by-file)
                       ("t" efrit-budget-view-by-tool)
                       ("i" efrit-budget-view-by-item)
                       ("g" efrit-budget-view-refresh)))
  "Keys of `efrit-budget-view-mode'.")

(defconst efrit-budget-view--keys
  '(("RET" "show") ("f" "by file") ("t" "by tool") ("i" "each item") ("P" "pin") ("d" "drop")
    ("r" "restore") ("u" "undo") ("S" "sort") ("g" "refresh") ("?" "help"))
  "Keys of the view that stand above the list, each with what it does.")

(define-derived-mode efrit-budget-view-mode tabulated-list-mode "Efrit-Budget"
  "Major mode that lists the items of a session, in its window and evicted.
It sums them up by file or by tool, too: see what fills the window.
An item's age counts the tool calls, messages and replies since it was last
used: the oldest item is compressed first.  For a compressed item, the tokens
of its full text are shown, and behind the arrow its tokens in the window.

\\{efrit-budget-view-mode-map}"
  (efrit-keep-keys)
  (efrit-list-add-menu efrit-budget-view--keys)
  (setq tabulated-list-padding 1
        tabulated-list-use-header-line nil
        tabulated-list-printer #'efrit-budget-print-line
        header-line-format '(:eval (efrit-show-header))
        revert-buffer-function #'efrit-budget-view-refresh)
  (efrit-budget-view--set-columns)
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
  "Show the whole stored text of the item at point, or the items of the group."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row)))
    (pcase (plist-get row :kind)
      ('group (efrit-budget-view--list 'item (cons (plist-get row :by) (plist-get row :name))))
      ('result (efrit-result-show (efrit-loop-id efrit-loop-here)
                                  (efrit-budget-view--handle row)))
      ('turn (efrit-result-show-turn efrit-loop-here (plist-get row :turn)
                                     (plist-get row :tool)))
      (_ (efrit-result-show-prefix efrit-loop-here)))))

(defun efrit-budget-view-by-item ()
  "List each item of the session."
  (interactive nil efrit-budget-view-mode)
  (efrit-budget-view--list 'item))

(defun efrit-budget-view-by-file ()
  "List the files whose text fills the window, with their shares of it."
  (interactive nil efrit-budget-view-mode)
  (efrit-budget-view--list 'file))

(defun efrit-budget-view-by-tool ()
  "List the tools whose results fill the window, with their shares of it."
  (interactive nil efrit-budget-view-mode)
  (efrit-budget-view--list 'tool))

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
  (setq efrit-budget-view--all (efrit-budget-rows status turns entries)
        efrit-budget-view--budget (plist-get status :budget))
  ;; The gauge in the headers tells the same.
  (efrit-loop-take-budget efrit-loop-here efrit-budget-view--budget)
  (efrit-budget-view--print))

(defun efrit-budget-view--list (by &optional only)
  "List what is in the window by BY: `item', `file' or `tool'.
With ONLY, as in `efrit-budget-view--only', list the items of one group alone."
  (efrit-check-mode 'efrit-budget-view-mode)
  (setq efrit-budget-view--by by
        efrit-budget-view--only only)
  (efrit-budget-view--print)
  (goto-char (point-min))
  (efrit-budget-print--find #'identity)
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window (point))
    (set-window-start window (point-min) t)))

(defun efrit-budget-view--print ()
  "Print the rows that are to be listed, in columns that fit the window."
  (let* ((items (eq efrit-budget-view--by 'item))
         (narrow (efrit-budget-view--set-columns))
         (rows (if items (efrit-budget-view--items)
                 (efrit-budget-rows-groups efrit-budget-view--all efrit-budget-view--by))))
    (setq efrit-budget-view--rows (make-hash-table :size (length rows) :test #'equal)
          tabulated-list-entries
          (mapcar (lambda (row)
                    (puthash (plist-get row :id) row efrit-budget-view--rows)
                    (list (plist-get row :id)
                          (if items (efrit-budget-rows-columns row narrow)
                            (efrit-budget-rows-group-columns row))))
                  rows))
    (efrit-budget-print #'efrit-budget-view--head)))

(defun efrit-budget-view--items ()
  "Return the rows of the items to list: of one group, or all."
  (pcase efrit-budget-view--only
    (`(,by . ,name) (seq-filter (lambda (row) (equal name (efrit-budget-rows-group row by)))
                                efrit-budget-view--all))
    (_ efrit-budget-view--all)))

(defun efrit-budget-view--set-columns ()
  "Set the columns of the list; return non-nil if the window is narrow.
The list then leaves out some columns."
  (let ((narrow (< (car (efrit-budget-print-size)) efrit-budget-view--narrow))
        (tokens (efrit-budget-view--sorter :now))
        (order (efrit-budget-view--sorter :order))
        (items (eq efrit-budget-view--by 'item)))
    (efrit-budget-print-set-columns
     (cond
      ((not items)
       `((nil "Tokens" 10 ,tokens :right-align t)
         (nil "Share" 5 ,tokens :right-align t)
         (nil "" ,efrit-budget-rows--bar-width nil)
         (efrit-figures "Items" 5 ,(efrit-budget-view--sorter :count) :right-align t)
         (efrit-arguments ,(capitalize (symbol-name efrit-budget-view--by)) 0 t)))
      (narrow
       `((nil "Tokens" 8 ,tokens :right-align t)
         (efrit-figures "Item" 8 ,order)
         (efrit-tool "Tool" 14 t)
         (efrit-note "State" 10 t)
         (efrit-arguments "About" 0 t)))
      (t
       `((nil "Tokens" 13 ,tokens :right-align t)
         (efrit-figures "Item" 8 ,order)
         (efrit-tool "Tool" 16 t)
         (efrit-figures "Age" 5 ,(efrit-budget-view--sorter :age) :right-align t)
         (efrit-note "State" 11 t)
         (efrit-arguments "About" 0 t)))))
    (unless (seq-some (lambda (column) (equal (car column) (car tabulated-list-sort-key)))
                      tabulated-list-format)
      (setq tabulated-list-sort-key (if items '("Item" . t) '("Tokens" . t))))
    narrow))

(defun efrit-budget-view--cache (columns)
  "Return lines of at most COLUMNS about the cache, or nil if nothing is known."
  (when-let* ((cache (and efrit-loop-here (efrit-show-cache efrit-loop-here))))
    (concat (string-trim-right (string-fill (concat cache ".") columns)) "\n")))

(defun efrit-budget-view--cost (columns)
  "Return a line of at most COLUMNS about the session's cost; nil if unknown."
  (when-let* ((cost (and efrit-loop-here (efrit-show-cost efrit-loop-here))))
    (concat (propertize "  Cost: " 'face 'efrit-note)
            (truncate-string-to-width cost (- columns 8) nil nil "…")
            "\n")))

(defun efrit-budget-view--head (columns lines)
  "Return the text above the list for a window of COLUMNS and LINES.
It has the cost, what fills the window, the keys, and with room the tiers."
  (concat
   (and (>= lines efrit-budget-view--tall)
        (concat (efrit-budget-bars efrit-budget-view--budget columns) "\n"
                (efrit-budget-view--cache columns) "\n"))
   (efrit-budget-view--cost columns)
   (efrit-budget-view--largest 'file columns)
   (efrit-budget-view--largest 'tool columns)
   (efrit-show-keys efrit-budget-view--keys columns)
   (pcase efrit-budget-view--only
     (`(,_ . ,name) (propertize
                     (truncate-string-to-width
                      (format "  Only %s; i lists everything\n"
                              (efrit-permissions-visible name t))
                      columns nil nil "…\n")
                     'face 'efrit-note)))
   "\n"))

(defun efrit-budget-view--largest (by columns)
  "Return a line of at most COLUMNS with the largest groups by BY."
  (let* ((groups (efrit-budget-rows-groups efrit-budget-view--all by))
         (line (format "  By %s: " by))
         (parts (mapcar (lambda (group)
                          (format "%s %s %s" (efrit-permissions-visible (plist-get group :name) t)
                                  (efrit-show-tokens (plist-get group :now))
                                  (efrit-budget-rows-percent (plist-get group :share))))
                        groups))
         (shown nil))
    (while (and parts
                (<= (+ (string-width line) (string-width (string-join (cons (car parts) shown) " · "))
                       (length " · 99 more"))
                    columns))
      (push (pop parts) shown))
    (concat (propertize line 'face 'efrit-note)
            (string-join (nreverse shown) (propertize " · " 'face 'efrit-note))
            (if parts
                (propertize (format "%s%d more" (if shown " · " "") (length parts))
                            'face 'efrit-note)
              "")
            "\n")))

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
          (efrit-run-at-time (max efrit-budget-view-delay
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
