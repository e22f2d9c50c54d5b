;;; efrit-markdown.el --- Show Markdown dressed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Dresses Markdown in a buffer: removes its marks, adds faces, lays out tables
;; and fontifies code; does so item by item in a session's buffer; finds and
;; visits links.

;;; Code:

(require 'efrit)
(require 'efrit-files)
(require 'efrit-permissions)
(require 'efrit-remote)
(require 'efrit-transcript)

;; `url-generic-parse-url' loads url-parse.el, which defines this function.
(declare-function url-host "url-parse" (url))

;; The text is the model's, so it is never trusted: nothing in it becomes a
;; display property or a keymap, the language of a code block selects a mode
;; that is known already, and each step is bounded in time and size.  Marks are
;; deleted in place, so that Emacs itself keeps point and windows where they are.

;;; Blocks

;; A block is what can be dressed alone: a heading, an item of a list, a
;; paragraph (with a table), a code block.

(defconst efrit-markdown--fence
  "[ \t]*\\(?1:`\\{3,99\\}\\|~\\{3,99\\}\\)\\(?2:[^`\n]*\\)$"
  "Regular expression for the first line of a code block.")

(defconst efrit-markdown--block-begins
  "^[ \t]*\\(?:```\\|~~~\\|[-*+][ \t]\\|[0-9]\\{1,9\\}[.)][ \t]\\|#\\{1,6\\}[ \t]\\)"
  "Regular expression for the beginning of a line that ends a paragraph.")

(defconst efrit-markdown--most-prose 20000
  "Most characters of a paragraph or table that is dressed.")

(defun efrit-markdown-block-end (begin end complete &optional scanned)
  "Return the end of the block at BEGIN, a line's beginning, or nil.
The text ends at END; unless COMPLETE is non-nil, more may follow, and nil
means that the block has not ended yet.  It does not end before SCANNED."
  (save-excursion
    (goto-char begin)
    (skip-chars-forward " \t\n" end)
    (forward-line 0)
    (let ((start (max begin (point))))
      (goto-char start)
      (or (cond ((>= start end) nil)
                ((looking-at efrit-markdown--fence)
                 (efrit-markdown--fence-end end complete scanned))
                ((looking-at "[ \t]*#\\{1,6\\}[ \t]")
                 (efrit-markdown--line-end end))
                (t (efrit-markdown--paragraph-end end scanned)))
          (and complete end)))))

(defun efrit-markdown--line-end (end)
  "Return the end of the line at point with its newline, or nil if that is at END."
  (and (search-forward "\n" end t) (point)))

(defun efrit-markdown--fence-end (end complete scanned)
  "Return the end of the code block at point before END, or nil.
COMPLETE and SCANNED are as in `efrit-markdown-block-end'."
  (let ((close (concat "^[ \t]*" (regexp-quote (match-string 1))
                       (substring (match-string 1) 0 1) "*[ \t]*$")))
    (forward-line 1)
    (goto-char (max (point) (or scanned 0)))
    (and (<= (point) end)
         (re-search-forward close end t)
         (or (efrit-markdown--line-end end)
             (and complete end)))))

(defun efrit-markdown--paragraph-end (end scanned)
  "Return the end of the paragraph at point before END, or nil.
It does not end before SCANNED."
  (forward-line 1)
  (goto-char (max (point) (or scanned 0)))
  (when (and (< (point) end)
             (re-search-forward (concat "^[ \t]*\n\\|" efrit-markdown--block-begins) end t))
    (if (eq (char-before) ?\n)
        (point)
      (match-beginning 0))))

(defun efrit-markdown-dress (begin end root)
  "Dress the Markdown block between BEGIN and END in place; return its new end.
END is after a newline.  Paths are those of files below ROOT."
  (save-excursion
    (let ((limit (copy-marker end)))
      (goto-char begin)
      (skip-chars-forward " \t\n" limit)
      (forward-line 0)
      (goto-char (max begin (point)))
      (cond ((looking-at efrit-markdown--fence)
             (efrit-markdown--dress-code (point) limit))
            ((<= (- limit (point)) efrit-markdown--most-prose)
             (efrit-markdown--dress-prose (point) limit root)))
      (prog1 (marker-position limit)
        (set-marker limit nil)))))

;;; Prose

(defun efrit-markdown--dress-prose (begin limit root)
  "Dress the lines from BEGIN to LIMIT, a marker, which are no code block.
ROOT is as in `efrit-markdown-dress'."
  (goto-char begin)
  (let ((rule (efrit-markdown--find-table limit)))
    (if (null rule)
        (efrit-markdown--dress-lines begin limit root)
      (goto-char rule)
      (let ((head (copy-marker (line-beginning-position 0))))
        (while (and (< (point) limit)
                    (string-search "|" (buffer-substring (point) (line-end-position))))
          (forward-line 1))
        (let ((after (copy-marker (point))))
          (efrit-markdown--dress-table head after (buffer-substring-no-properties head after)
                                       root)
          (efrit-markdown--dress-lines begin head root)
          (efrit-markdown--dress-lines (marker-position after) limit root)
          (set-marker head nil)
          (set-marker after nil))))))

(defun efrit-markdown--dress-lines (begin limit root)
  "Dress the lines from BEGIN to LIMIT, a marker: their beginnings, then the rest.
ROOT is as in `efrit-markdown-dress'."
  (goto-char begin)
  (while (< (point) limit)
    (efrit-markdown--dress-line)
    (forward-line 1))
  (efrit-markdown--inline begin limit root))

(defun efrit-markdown--dress-line ()
  "Dress the beginning of the line at point: quote, heading, rule, bullet."
  (let ((begin (point))
        (quoted (efrit-markdown--unquote)))
    (cond
     ((looking-at "[ \t]*\\(#\\{1,6\\}\\)[ \t]+")
      (efrit-markdown--dress-heading (length (match-string 1))))
     ((looking-at "[ \t]*\\(?:\\(?:-[ \t]*\\)\\{3,\\}\\|\\(?:\\*[ \t]*\\)\\{3,\\}\\|\\(?:_[ \t]*\\)\\{3,\\}\\)$")
      (delete-region (point) (line-end-position))
      (efrit-markdown--prefix begin (1+ begin) (propertize (make-string 24 ?─) 'face 'efrit-note)))
     ((looking-at "[ \t]*\\([-*+]\\)[ \t]+\\(?:\\[\\([ xX]\\)\\][ \t]\\)?")
      (efrit-markdown--dress-bullet))
     ((looking-at "[ \t]*\\(?:[0-9]\\{1,9\\}[.)][ \t]+\\)?")
      (efrit-markdown--hang (string-width (match-string 0)))))
    (when (> quoted 0)
      (efrit-markdown--dress-quote begin quoted))
    (goto-char begin)))

(defun efrit-markdown--unquote ()
  "Delete each mark of a quote at point, and return how many there are."
  (let ((depth 0))
    (while (looking-at " \\{0,3\\}>[ ]?")
      (setq depth (1+ depth))
      (delete-region (point) (match-end 0)))
    depth))

(defun efrit-markdown--dress-heading (level)
  "Dress the heading of LEVEL that was just matched."
  (let ((face (nth (min 2 (1- level)) '(efrit-heading-1 efrit-heading-2 efrit-heading-3))))
    (delete-region (point) (match-end 0))
    (efrit-markdown--delete-closing-marks)
    (add-face-text-property (point) (line-end-position) face)))

(defun efrit-markdown--delete-closing-marks ()
  "Delete what closes the heading at point: its last signs, and blanks."
  (let ((begin (point)))
    (save-excursion
      (end-of-line)
      (skip-chars-backward " \t" begin)
      (delete-region (point) (line-end-position))
      (skip-chars-backward "#" begin)
      (when (or (= (point) begin) (memq (char-before) '(?\s ?\t)))
        (skip-chars-backward " \t" begin)
        (delete-region (point) (line-end-position))))))

(defun efrit-markdown--dress-bullet ()
  "Dress the bullet that was just matched, and the box behind it, if any."
  (let ((bullet (match-beginning 1))
        (box (match-beginning 2))
        (done (match-string 2))
        (rest (match-end 0)))
    (when box
      (goto-char (1- box))
      (delete-region (point) (+ (point) 3))
      (insert-and-inherit (if (equal done " ") "☐" "☑"))
      (setq rest (1+ box)))
    (goto-char bullet)
    (insert-and-inherit "•")
    (delete-region (point) (1+ (point)))
    (efrit-markdown--hang (string-width (buffer-substring (line-beginning-position) rest)))))

(defun efrit-markdown--hang (columns)
  "Indent what wraps of the line at point by COLUMNS."
  (when (< 0 columns 40)
    (put-text-property (line-beginning-position) (line-end-position)
                       'wrap-prefix (make-string columns ?\s))))

(defun efrit-markdown--dress-quote (begin depth)
  "Dress the line at BEGIN, quoted DEPTH times."
  (goto-char begin)
  (let ((end (min (point-max) (1+ (line-end-position)))))
    (add-face-text-property begin end 'efrit-quote)
    (efrit-markdown--prefix begin end
                            (propertize (apply #'concat (make-list (min depth 8) "│ "))
                                        'face 'efrit-note))))

(defun efrit-markdown--prefix (begin end prefix)
  "Put PREFIX before each line from BEGIN to END, and before what wraps."
  (add-text-properties begin end (list 'line-prefix prefix 'wrap-prefix prefix)))

;;;; Within lines

(defvar efrit-markdown--deletions nil
  "Regions to delete, conses of their ends, while `efrit-markdown--inline' runs.")

(defconst efrit-markdown--url
  (concat "https?://[^][ \t\n<>\"`\\{}|^*" (substring efrit-permissions-hidden-characters 1) "+")
  "Regular expression for an address of the web, without hidden characters.")

(defun efrit-markdown--inline (begin end root)
  "Dress emphasis, code, links and paths between BEGIN and END, in place.
ROOT is as in `efrit-markdown-dress'."
  (let ((efrit-markdown--deletions nil)
        (limit (copy-marker end))
        (openers nil)
        (skip nil))
    (goto-char begin)
    (while (re-search-forward "[\\`*_~[<!]\\|https?://" limit t)
      (let ((start (match-beginning 0)))
        (goto-char start)
        (cond
         ((and skip (<= (car skip) start) (< start (cdr skip))) (goto-char (cdr skip)))
         ((memq (char-after) '(?* ?_ ?~))
          (setq openers (efrit-markdown--emphasize openers begin limit)))
         ((eq (char-after) ?\\) (efrit-markdown--unescape limit))
         ((eq (char-after) ?`) (efrit-markdown--code-span limit))
         ((looking-at-p "!?\\[") (setq skip (or (efrit-markdown--link limit root) skip)))
         ((looking-at (concat "<?\\(" efrit-markdown--url "\\)")) (efrit-markdown--address limit))
         (t (forward-char 1)))))
    (pcase-dolist (`(,from . ,to) (sort efrit-markdown--deletions
                                           (lambda (one two) (> (car one) (car two)))))
      (delete-region from to))
    (efrit-markdown--mark-paths begin limit root)
    (set-marker limit nil)))

(defun efrit-markdown--delete-later (from to)
  "Have the text between FROM and TO deleted when each mark is found."
  (push (cons from to) efrit-markdown--deletions))

(defun efrit-markdown--unescape (limit)
  "Have the backslash at point deleted if it escapes a mark before LIMIT."
  (when (and (< (1+ (point)) limit)
             (string-match-p "[!-/:-@[-`{-~]" (string (char-after (1+ (point))))))
    (efrit-markdown--delete-later (point) (1+ (point)))
    (forward-char 1))
  (forward-char 1))

(defun efrit-markdown--code-span (limit)
  "Dress the code span at point, which ends before LIMIT, or skip its mark."
  (let* ((start (point))
         (inner (progn (skip-chars-forward "`" limit) (point)))
         (size (- inner start))
         (most (min limit (+ inner 3000)))
         close)
    (while (and (null close) (< (point) most) (search-forward "`" most t))
      (let ((from (1- (point))))
        (skip-chars-forward "`" limit)
        (when (= size (- (point) from))
          (setq close from))))
    (if (null close)
        (goto-char inner)
      (efrit-markdown--delete-later start inner)
      (efrit-markdown--delete-later close (point))
      (add-face-text-property inner close 'efrit-code)
      (put-text-property inner close 'efrit-span t))))

(defun efrit-markdown--emphasize (openers begin limit)
  "Dress what the mark at point closes, and return what is open then.
OPENERS are those open before it: conses of (CHARACTER . LENGTH) and a
position, the latest first.  The text is that between BEGIN and LIMIT."
  (let* ((start (point))
         (char (char-after))
         (end (progn (skip-chars-forward (string char) limit) (point)))
         (key (cons char (- end start)))
         (before (if (> start begin) (char-before start) ?\n))
         (after (if (< end limit) (char-after end) ?\n))
         (loose (and (eq char ?*) (> (cdr key) 1)))
         (opener (assoc key openers))
         (faces (efrit-markdown--emphasis key)))
    (cond
     ((null faces) openers)
     ((and opener
           (< (cdr opener) start)
           (not (memq before '(?\s ?\t ?\n)))
           (or loose (not (efrit-markdown--word-p after))))
      (dolist (face faces)
        (add-face-text-property (+ (cdr opener) (cdr key)) start face))
      (efrit-markdown--delete-later (cdr opener) (+ (cdr opener) (cdr key)))
      (efrit-markdown--delete-later start end)
      (cdr (memq opener openers)))
     ((and (not (memq after '(?\s ?\t ?\n)))
           (or loose (not (efrit-markdown--word-p before))))
      (cons (cons key start) (delq opener openers)))
     (t openers))))

(defun efrit-markdown--emphasis (key)
  "Return the faces of a mark KEY, (CHARACTER . LENGTH), or nil if it is none."
  (pcase key
    (`(?~ . ,size) (and (= size 2) '(efrit-struck)))
    (`(,_ . 1) '(italic))
    (`(,_ . 2) '(bold))
    (`(,_ . 3) '(bold italic))))

(defun efrit-markdown--word-p (char)
  "Return non-nil if CHAR is an ASCII letter or digit."
  (or (<= ?a char ?z) (<= ?A char ?Z) (<= ?0 char ?9)))

(defun efrit-markdown--link (limit root)
  "Dress the link at point, which ends before LIMIT, or skip its mark.
Return the ends of its hidden part, a cons, or nil.  ROOT is as in
`efrit-markdown-dress'."
  (let* ((start (point))
         (target (and (looking-at "!?\\[\\([^][]\\{1,500\\}\\)\\](\\([^][() \t\n]*\\(?:([^() \t\n]*)[^() \t\n]*\\)?\\)\\(?:[ \t]+\"[^\"\n]*\"\\)?)")
                      (<= (match-end 0) limit)
                      (save-match-data
                        (efrit-markdown--target (match-string-no-properties 2) root)))))
    (cond ((or (null target)
               (efrit-markdown--misleading-p (match-string-no-properties 1) target))
           (goto-char (1+ start))
           nil)
          (t
           (efrit-markdown--delete-later start (match-beginning 1))
           (efrit-markdown--delete-later (match-end 1) (match-end 0))
           (efrit-markdown--make-link (match-beginning 1) (match-end 1) target)
           (goto-char (match-beginning 1))
           (cons (match-end 1) (match-end 0))))))

(defun efrit-markdown--target (text root)
  "Return what the link TEXT leads to: an address, (FILE LINE COLUMN), or nil.
ROOT is as in `efrit-markdown-dress'."
  (cond ((string-match-p (concat "\\`" efrit-markdown--url "\\'") text)
         (and (< (length text) 2000) text))
        ((string-match-p "\\`[a-z]*:\\|\\`[#?]" text) nil)
        (t (efrit-markdown-place (replace-regexp-in-string "#L\\([0-9]+\\).*\\'" ":\\1" text)
                                 root))))

(defun efrit-markdown--misleading-p (label target)
  "Return non-nil if LABEL could be taken for an address that is not TARGET's.
Then the address must not be hidden behind it."
  (let ((label (efrit-trim label " *_`~\\")))
    (or (string-match-p efrit-permissions-hidden-characters label)
        (and (string-match-p "://\\|\\`[-a-zA-Z0-9]+\\(?:\\.[-a-zA-Z0-9]+\\)*\\.[a-zA-Z]+\\(?:[:/?#]\\|\\'\\)"
                             label)
             (stringp target)
             ;; The host of the label must end where that of TARGET does.
             (not (string-match-p
                   (concat "\\`\\(?:https?://\\)?"
                           (regexp-quote (replace-regexp-in-string "\\`https?://" "" label))
                           (if (string-match-p "[^/:][/?#]" label) "" "\\(?:[/?#]\\|\\'\\)"))
                   target))))))

(defun efrit-markdown--address (limit)
  "Dress the address that was just matched, up to LIMIT, as a link to itself."
  (let* ((start (match-beginning 1))
         (bracket (and (eq (char-after) ?<) (eq (char-after (match-end 1)) ?>)))
         (end (min limit (match-end 1))))
    (if bracket
        (progn (efrit-markdown--delete-later (1- start) start)
               (efrit-markdown--delete-later end (1+ end)))
      (goto-char end)
      (skip-chars-backward (if (string-search "(" (buffer-substring start end))
                               ".,;:!?'"
                             ".,;:!?')")
                           start)
      (setq end (point)))
    (efrit-markdown--make-link start end (buffer-substring-no-properties start end))
    (goto-char (max end (1+ start)))))

(defun efrit-markdown--make-link (begin end target)
  "Make the text between BEGIN and END a link to TARGET.
TARGET is as in `efrit-markdown-visit'."
  (add-face-text-property begin end 'efrit-link)
  (add-text-properties begin end
                       (list 'efrit-link target 'mouse-face 'highlight 'follow-link t
                             'help-echo (concat "RET, mouse-1: open "
                                                (if (stringp target) target "the file")))))

;;;; Paths

(defconst efrit-markdown--path-chars "A-Za-z0-9_.@+~/-"
  "Characters of a path, as `skip-chars-forward' takes them.")

(defconst efrit-markdown--most-paths 200
  "Most paths in one block that are looked up on the disk.")

(defun efrit-markdown-place (text root)
  "Return (FILE LINE COLUMN) for TEXT, a path with or without line and column.
LINE and COLUMN are numbers or nil.  Return nil if there is no such file
below ROOT."
  (when (and (string-match "\\`\\([^:]\\{1,300\\}\\)\\(?::\\([0-9]+\\)\\)?\\(?:[:-]\\([0-9]+\\)\\)?:?\\'"
                           text)
             (not (string-match-p "[[:cntrl:]]" text)))
    (let* ((name (match-string 1 text))
           (line (match-string 2 text))
           (column (match-string 3 text))
           (file (efrit-markdown--file name root)))
      (and file (list file (and line (string-to-number line))
                      (and column (string-search (concat ":" line ":") text)
                           (string-to-number column)))))))

(defun efrit-markdown--file (name root)
  "Return the full name of the file NAME of the project at ROOT, or nil."
  (let* ((root (file-name-as-directory (expand-file-name root)))
         (file (expand-file-name
                (if (file-name-absolute-p name) (concat (file-remote-p root) name) name)
                root)))
    (and (string-prefix-p root file)
         (file-regular-p file)
         (or (file-remote-p root) (string-prefix-p (file-truename root) (file-truename file)))
         file)))

(defun efrit-markdown--mark-paths (begin end root)
  "Make links of the names of files between BEGIN and END that exist below ROOT.
On another machine no file is looked for; RET finds them there, too."
  (unless (or (null root) (file-remote-p root))
    (let ((tried 0))
      (goto-char begin)
      (while (and (< tried efrit-markdown--most-paths)
                  (re-search-forward "[A-Za-z0-9_.@+~/-]+\\(?::[0-9]+\\(?::[0-9]+\\)?\\)?" end t))
        (let ((from (match-beginning 0))
              (to (match-end 0)))
          (when (and (< 2 (- to from) 300)
                     (not (get-text-property from 'efrit-link))
                     (or (get-text-property from 'efrit-span)
                         ;; A point or a slash stands inside.
                         (progn (goto-char (1+ from))
                                (skip-chars-forward "^./" to)
                                (< (point) (1- to)))))
            (when (eq (char-before to) ?.)
              (setq to (1- to)))
            (setq tried (1+ tried))
            (when-let* ((place (efrit-markdown-place
                                (buffer-substring-no-properties from to) root)))
              (efrit-markdown--make-link from to place)))
          (goto-char (max to (1+ from))))))))

;;; Tables

(defconst efrit-markdown--least-column 6
  "Fewest columns of the screen that a column of a table is narrowed to.")

(defconst efrit-markdown--most-cells 800
  "Most cells of a table that is laid out.")

(defconst efrit-markdown--longest-row 2000
  "Most characters in a line of a table that is laid out.")

(defun efrit-markdown--find-table (limit)
  "Return the beginning of the first line from point to LIMIT that rules a table."
  (let (found)
    (while (and (null found)
                (search-forward "|" limit t))
      (forward-line 1)
      (when (and (< (point) limit)
                 (efrit-markdown--short-row-p)
                 (save-excursion (forward-line -1) (efrit-markdown--short-row-p))
                 (looking-at-p "[ \t]*[|:-]"))
        (let ((cells (efrit-markdown--cells (buffer-substring (point) (line-end-position)))))
          (when (and (seq-every-p (lambda (cell) (string-match-p "\\`:?-+:?\\'" cell)) cells)
                     (string-search "|" (buffer-substring (point) (line-end-position)))
                     (= (length cells)
                        (length (efrit-markdown--cells
                                 (buffer-substring (line-beginning-position 0)
                                                   (line-end-position 0))))))
            (setq found (point))))))
    found))

(defun efrit-markdown--short-row-p ()
  "Return non-nil if the line at point is not too long for a table."
  (<= (- (line-end-position) (point)) efrit-markdown--longest-row))

(defun efrit-markdown--cells (line)
  "Return the cells of LINE, a row of a table, without blanks around them."
  (let* ((line (string-remove-prefix "|" (efrit-trim line)))
         (line (if (string-suffix-p "\\|" line) line (string-remove-suffix "|" line)))
         (last-tick (or (cl-position ?` line :from-end t) -1))
         (cells nil)
         (start 0)
         (in-code nil))
    (dotimes (at (length line))
      (pcase (aref line at)
        (?` (setq in-code (not in-code)))
        ((and ?| (guard (not (or (and (> at 0) (eq (aref line (1- at)) ?\\))
                                 (and in-code (< at last-tick))))))
         (push (efrit-trim (substring line start at)) cells)
         (setq start (1+ at)
               in-code nil))))
    (nreverse (cons (efrit-trim (substring line start)) cells))))

(defun efrit-markdown--dress-table (begin end source root)
  "Lay out SOURCE, a table, in the place of the text between BEGIN and END.
Leave it as it is if it is too wide or too large.  ROOT is as in
`efrit-markdown-dress'."
  (let* ((lines (split-string (string-remove-suffix "\n" source) "\n"))
         (rules (efrit-markdown--cells (nth 1 lines)))
         (rows (and (efrit-markdown--small-p lines (length rules))
                    (efrit-markdown--dress-cells
                     (mapcar (lambda (line) (efrit-markdown--row line (length rules)))
                             (cons (car lines) (nthcdr 2 lines)))
                     root)))
         (columns (efrit-markdown--columns))
         (widths (and rows (efrit-markdown--widths rows columns)))
         (text (if widths
                   (efrit-markdown--table-text rows widths rules)
                 (string-remove-suffix "\n" source)))
         (begin (copy-marker begin)))
    (efrit-markdown--replace begin end text)
    (put-text-property begin (+ begin (length text) 1) 'efrit-table (cons source columns))
    (set-marker begin nil)))

(defun efrit-markdown--small-p (lines columns)
  "Return non-nil if a table of LINES with COLUMNS is small enough to lay out."
  (and (<= (* columns (length lines)) efrit-markdown--most-cells)
       (seq-every-p (lambda (line) (<= (length line) efrit-markdown--longest-row)) lines)))

(defun efrit-markdown--table-text (rows widths rules)
  "Return ROWS of a table, the head first, as text in columns of WIDTHS.
RULES are the cells of the line below the head."
  (string-join
   (append (efrit-markdown--lay-out (mapcar #'efrit-markdown--embolden (car rows)) widths rules)
           (list (efrit-markdown--rule widths))
           (mapcan (lambda (row) (efrit-markdown--lay-out row widths rules)) (cdr rows)))
   "\n"))

(defun efrit-markdown--refit-table (begin end root)
  "Lay out the table between BEGIN and END, a marker, as the window is now.
ROOT is as in `efrit-markdown-dress'."
  (efrit-markdown--dress-table begin end (car (get-text-property begin 'efrit-table)) root))

(defun efrit-markdown--row (line count)
  "Return COUNT cells of LINE: what is missing is empty, the last has what is left."
  (let ((cells (efrit-markdown--cells line)))
    (if (<= (length cells) count)
        (append cells (make-list (- count (length cells)) ""))
      (append (seq-take cells (1- count))
              (list (string-join (nthcdr (1- count) cells) " | "))))))

(defun efrit-markdown--dress-cells (rows root)
  "Return ROWS, lists of strings, with their Markdown dressed.
ROOT is as in `efrit-markdown-dress'."
  (with-temp-buffer
    (mapcar (lambda (row)
              (mapcar (lambda (cell)
                        (erase-buffer)
                        (insert (replace-regexp-in-string "[ \t]\\{0,9\\}<br */?>[ \t]\\{0,9\\}" " " cell))
                        (efrit-markdown--inline (point-min) (point-max) root)
                        (buffer-string))
                      row))
            rows)))

(defun efrit-markdown--embolden (cell)
  "Return CELL in bold."
  (add-face-text-property 0 (length cell) 'bold nil cell)
  cell)

(defun efrit-markdown--columns ()
  "Return the columns of the narrowest window on this buffer, or 79."
  (car (efrit-smallest-window 79 24)))

(defun efrit-markdown--widths (rows columns)
  "Return the widths of the columns of ROWS so that a row fits into COLUMNS.
Return nil if it cannot."
  (let* ((widths (apply #'cl-mapcar (lambda (&rest cells)
                                      (apply #'max 1 (mapcar #'string-width cells)))
                        rows))
         (room (- columns (* 3 (1- (length widths)))))
         (most (apply #'max widths)))
    (while (and (> (apply #'+ widths) room)
                (> most efrit-markdown--least-column))
      (setq most (1- most)
            widths (mapcar (lambda (width) (min width most)) widths)))
    (and (<= (apply #'+ widths) room) widths)))

(defun efrit-markdown--lay-out (row widths rules)
  "Return a list of the lines of text for ROW, in columns of WIDTHS.
RULES are the cells of the line below the head, which align the columns."
  (let* ((cells (cl-mapcar #'efrit-markdown--wrap row widths))
         (lines (apply #'max (mapcar #'length cells))))
    (mapcar
     (lambda (index)
       (let ((column 0)
             (last (efrit-markdown--total widths)))
         (string-join
          (cl-mapcar (lambda (cell width rule)
                       (prog1 (efrit-markdown--pad (or (nth index cell) "") width rule column
                                                   (= (+ column width) last))
                         (setq column (+ column width 3))))
                     cells widths rules)
          (propertize " │ " 'face 'efrit-note))))
     (number-sequence 0 (1- lines)))))

(defun efrit-markdown--total (widths)
  "Return the width of a table with columns of WIDTHS."
  (+ (apply #'+ widths) (* 3 (1- (length widths)))))

(defun efrit-markdown--pad (text width rule column last)
  "Return TEXT padded to WIDTH as RULE, a cell like \":-:\", aligns it.
It begins at COLUMN of its line; nothing follows it if LAST is non-nil."
  (let* ((blank (max 0 (- width (string-width text))))
         (right (string-suffix-p ":" rule))
         (left (cond ((not right) 0)
                     ((string-prefix-p ":" rule) (/ blank 2))
                     (t blank))))
    (concat (make-string left ?\s)
            text
            (and (not last)
                 (> blank left)
                 ;; Letters of other scripts are not exactly a column or two wide.
                 (propertize (make-string (- blank left) ?\s)
                             'display `(space :align-to ,(+ column width)))))))

(defun efrit-markdown--rule (widths)
  "Return the line below the head of a table with columns of WIDTHS."
  (propertize (mapconcat (lambda (width) (make-string width ?─)) widths "─┼─")
              'face 'efrit-note))

(defun efrit-markdown--wrap (text width)
  "Return the parts of TEXT, broken at blanks, none wider than WIDTH."
  (let ((lines nil))
    (while (> (string-width text) width)
      (let* ((most (max 1 (length (truncate-string-to-width (substring-no-properties text)
                                                            width))))
             (blank (string-match-p "[ \t][^ \t]*\\'" (substring text 0 (min (1+ most)
                                                                            (length text)))))
             (cut (if (and blank (> blank 0)) blank most)))
        (push (substring text 0 cut) lines)
        (setq text (string-trim-left (substring text cut) "[ \t]+"))))
    (nreverse (cons text lines))))

(defvar efrit-markdown--points nil
  "Positions that must stay at their characters while a block is dressed.")

(defun efrit-markdown--replace (begin end text)
  "Replace the text between BEGIN and END but for its last newline with TEXT.
What `efrit-markdown--points' has in it stays at the characters where it is."
  (add-face-text-property 0 (length text) 'efrit-text t text)
  (if (not (seq-some (lambda (point) (< begin point end)) efrit-markdown--points))
      (progn (goto-char begin)
             (delete-region begin (1- end))
             (insert text))
    (replace-region-contents begin (1- end) (lambda () text) 0.05)
    (pcase-dolist (`(,from ,to ,properties) (object-intervals text))
      (set-text-properties (+ begin from) (+ begin to) properties))))

;;; Code blocks

(defconst efrit-markdown--modes
  '(("asm" asm-mode) ("awk" awk-mode) ("bash" sh-mode) ("c" c-mode) ("c++" c++-mode)
    ("cc" c++-mode) ("clj" clojure-mode) ("clojure" clojure-mode) ("conf" conf-unix-mode)
    ("cpp" c++-mode) ("cs" csharp-mode) ("csharp" csharp-mode) ("css" css-mode)
    ("dart" dart-mode) ("diff" diff-mode) ("dockerfile" dockerfile-mode) ("el" emacs-lisp-mode)
    ("elisp" emacs-lisp-mode) ("elixir" elixir-mode) ("emacs-lisp" emacs-lisp-mode)
    ("erlang" erlang-mode) ("fish" fish-mode) ("fortran" f90-mode) ("go" go-mode)
    ("golang" go-mode) ("h" c-mode) ("haskell" haskell-mode) ("hs" haskell-mode)
    ("html" html-mode) ("ini" conf-unix-mode) ("java" java-mode) ("javascript" js-mode)
    ("js" js-mode) ("json" json-mode js-json-mode js-mode) ("jsonc" js-mode) ("jsx" js-mode)
    ("kotlin" kotlin-mode) ("lisp" lisp-mode) ("common-lisp" lisp-mode) ("lua" lua-mode)
    ("make" makefile-gmake-mode) ("makefile" makefile-gmake-mode) ("nix" nix-mode)
    ("ocaml" tuareg-mode caml-mode) ("pascal" pascal-mode) ("patch" diff-mode) ("perl" perl-mode)
    ("php" php-mode)
    ("prolog" prolog-mode) ("properties" conf-javaprop-mode) ("py" python-mode)
    ("python" python-mode) ("python3" python-mode) ("rb" ruby-mode) ("rs" rust-mode)
    ("ruby" ruby-mode) ("rust" rust-mode) ("scala" scala-mode) ("scheme" scheme-mode)
    ("scss" scss-mode) ("sh" sh-mode) ("shell" sh-mode) ("sql" sql-mode) ("svg" html-mode)
    ("swift" swift-mode) ("tcl" tcl-mode) ("toml" conf-toml-mode)
    ("ts" typescript-mode js-mode) ("tsx" typescript-mode js-mode)
    ("typescript" typescript-mode js-mode) ("verilog" verilog-mode) ("vhdl" vhdl-mode)
    ("xml" html-mode) ("yaml" yaml-mode) ("yml" yaml-mode) ("zig" zig-mode) ("zsh" sh-mode))
  "The modes that fontify a language: lists of its name and modes, the best first.")

(defconst efrit-markdown--most-code 30000
  "Most characters of a code block that is fontified.")

(defconst efrit-markdown--code-seconds 0.04
  "Seconds that fontifying one code block may take; the rest of it stays plain.")

(defun efrit-markdown--dress-code (begin limit)
  "Dress the code block from BEGIN to LIMIT, a marker, and mark it for fontifying.
Its fences become empty lines, so that no line moves."
  (goto-char begin)
  (looking-at efrit-markdown--fence)
  (let* ((fence (match-string 1))
         (label (efrit-trim (match-string-no-properties 2)))
         (indent (current-indentation))
         (margin (make-string (+ 2 (min indent 40)) ?\s))
         (prefix (propertize margin 'face 'efrit-code-block)))
    (delete-region begin (line-end-position))
    (forward-line 1)
    (let ((code (point))
          (closed (efrit-markdown--delete-close limit fence)))
      (efrit-markdown--dedent code limit indent)
      (remove-text-properties begin limit '(face nil))
      (add-text-properties begin limit
                           (list 'face 'efrit-code-block 'line-prefix prefix 'wrap-prefix prefix
                                 'efrit-code (list (efrit-markdown--language label) closed)))
      (put-text-property begin (1+ begin) 'line-prefix
                         (propertize (concat margin (truncate-string-to-width label 60 nil nil "…"))
                                     'face '(efrit-note efrit-code-block)))
      (when (< code limit)
        (put-text-property code limit 'efrit-undressed 'code)))))

(defun efrit-markdown--language (text)
  "Return the name of the language in TEXT, what follows a fence, or \"\"."
  (if (string-match "\\`[{. \t]*\\([a-zA-Z0-9_+#-]\\{1,20\\}\\)" text)
      (downcase (match-string 1 text))
    ""))

(defun efrit-markdown--delete-close (limit fence)
  "Delete the text of the line before LIMIT if it closes FENCE; return t then."
  (save-excursion
    (goto-char limit)
    (forward-line -1)
    (when (looking-at (concat "[ \t]*" (regexp-quote fence) "[`~]*[ \t]*$"))
      (delete-region (point) (line-end-position))
      t)))

(defun efrit-markdown--dedent (begin limit columns)
  "Delete up to COLUMNS blanks at the beginning of each line from BEGIN to LIMIT."
  (when (> columns 0)
    (goto-char begin)
    (while (< (point) limit)
      (delete-region (point) (+ (point) (min columns (current-indentation)
                                             (skip-chars-forward " "))))
      (forward-line 1))))

(defun efrit-markdown-code-at (position)
  "Return the text of the code block at POSITION, or nil if there is none."
  (when-let* ((code (get-text-property position 'efrit-code)))
    (let ((begin (if (eq code (and (> position (point-min))
                                   (get-text-property (1- position) 'efrit-code)))
                     (previous-single-property-change position 'efrit-code)
                   position))
          (end (next-single-property-change position 'efrit-code nil (point-max))))
      (save-excursion
        (goto-char begin)
        (forward-line 1)
        (buffer-substring-no-properties
         (min (point) end)
         (max (min (point) end) (if (nth 1 code) (1- end) end)))))))

;;;; Fontifying

(defun efrit-markdown--fontify (begin end mode)
  "Fontify the code between BEGIN and END, the inside of a code block, by MODE."
  (let ((code (buffer-substring-no-properties begin end)))
    (when (<= (length code) efrit-markdown--most-code)
      (pcase-dolist (`(,from ,to ,properties)
                     (object-intervals (efrit-fontify code mode efrit-markdown--code-seconds)))
        (when-let* ((faces (plist-get properties 'face)))
          (put-text-property (+ begin from) (+ begin to) 'face
                             (append (ensure-list faces) '(efrit-code-block))))))))

(defun efrit-markdown--mode (language code)
  "Return the mode that fontifies CODE in LANGUAGE, or nil if none is known.
That is one of `efrit-markdown--modes', or a loaded mode of that name for
programs that files are opened in."
  (or (seq-find #'fboundp (cdr (assoc language efrit-markdown--modes)))
      (and (equal language "")
           (string-match-p "\\`\\(?:diff --git .*\n\\|--- .*\n\\+\\+\\+ .*\n\\|@@ -[0-9]\\)" code)
           'diff-mode)
      (let ((mode (intern-soft (concat language "-mode"))))
        (and mode
             (fboundp mode)
             (not (autoloadp (symbol-function mode)))
             (provided-mode-derived-p mode 'prog-mode)
             (rassq mode auto-mode-alist)
             mode))))

;;; Links

(defun efrit-markdown-link-at (position root)
  "Return what the link or path at POSITION leads to, or nil if there is none.
That is an address of the web, or (FILE LINE COLUMN) of a file below ROOT."
  (or (get-text-property position 'efrit-link)
      (save-excursion
        (goto-char position)
        (let* ((chars (concat efrit-markdown--path-chars ":"))
               (begin (progn (skip-chars-backward chars (max (line-beginning-position)
                                                             (- position 300)))
                             (point)))
               (end (progn (skip-chars-forward chars (min (line-end-position)
                                                          (+ position 300)))
                           (point)))
               (text (buffer-substring-no-properties begin end)))
          (or (and (string-match-p "[./]" text)
                   (or (efrit-markdown-place text root)
                       (and (string-match "\\`[^:]+:[0-9]+\\(?::[0-9]+\\)?" text)
                            (efrit-markdown-place (match-string 0 text) root))
                       (efrit-markdown-place (string-trim-right text "[.:]+") root)))
              (efrit-markdown--match-place root))))))

(defun efrit-markdown--match-place (root)
  "Return (FILE LINE nil) if the line at point is a match of a search, or nil.
Such a line begins with its number, and stands below the name of its file.
ROOT is as in `efrit-markdown-dress'."
  (forward-line 0)
  (when (looking-at "\\([0-9]+\\)[:-]")
    (let ((line (string-to-number (match-string 1))))
      (while (and (looking-at-p "[0-9]+[:-]\\|--$")
                  (zerop (forward-line -1))))
      (when (looking-at (concat "[" efrit-markdown--path-chars "]+"))
        (when-let* ((place (efrit-markdown-place (match-string-no-properties 0) root)))
          (list (car place) line nil))))))

(defun efrit-markdown-visit (target)
  "Visit TARGET: an address of the web, in a browser, or (FILE LINE COLUMN).
Ask before an address that is not the text of the link at point."
  (if (stringp target)
      (when (or (equal target (efrit-markdown--link-text))
                (y-or-n-p (efrit-markdown--address-question target)))
        (browse-url target))
    (pcase-let ((`(,file ,line ,column) target))
      ;; It may have become a pipe, which would have Emacs wait.
      (unless (file-regular-p file)
        (user-error "%s is no file any more" file))
      (find-file-other-window file)
      (when line
        (save-restriction
          (widen)
          (goto-char (point-min))
          (forward-line (1- line))
          (forward-char (min (max 0 (1- (or column 1)))
                             (- (line-end-position) (point)))))))))

(defun efrit-markdown--link-text ()
  "Return the text of the link at point."
  (buffer-substring-no-properties
   (previous-single-property-change (min (point-max) (1+ (point))) 'efrit-link nil (point-min))
   (next-single-property-change (point) 'efrit-link nil (point-max))))

(defun efrit-markdown--address-question (address)
  "Return the question whether to open ADDRESS, with its host first."
  (format "Open %s: %s? "
          (efrit-permissions-visible (or (url-host (url-generic-parse-url address)) "") t)
          (truncate-string-to-width (efrit-permissions-visible address t) 300 nil nil "…")))

;;; Items of a session

;; The text of an item is inserted as it is, with the property efrit-undressed,
;; and dressed block by block, in steps by a timer: what streams in when a block
;; ends, what was there before when it comes in sight.  What was dressed long ago
;; and is out of sight is shown as it was written again, since the properties of
;; dressed text make each garbage collection longer.  So neither a long reply
;; nor a long history makes Emacs wait.

(defvar-local efrit-markdown--items nil
  "Items with text that is to be dressed, the latest first.
A list of conses of an item and a marker, where that text begins.")

(defvar-local efrit-markdown--dressed nil
  "Items whose text is dressed, the latest first.")

(defvar-local efrit-markdown--streaming nil
  "(ITEM FROM SCANNED) of the text that is streaming, or nil.
FROM is a marker where the text begins that is not dressed, SCANNED one
before which no block of it ends.")

(defvar-local efrit-markdown--timer nil
  "The timer that dresses the next items, or nil.")

(defconst efrit-markdown--most-dressed 50000
  "Characters of text that stay dressed when they are out of sight.")

(defconst efrit-markdown--step-seconds 0.012
  "Seconds after which dressing makes a pause.")

(defconst efrit-markdown--pause-seconds 0.03
  "Seconds from one step of dressing to the next.")

(defun efrit-markdown-insert (item text &optional back)
  "Insert TEXT, Markdown that is to be dressed, at the end of ITEM.
BACK is as in `efrit-item-append'."
  (let ((begin (- (efrit-item-end item) (or back 0))))
    (efrit-item-append item
                       (propertize text 'face 'efrit-text 'efrit-undressed efrit-view-markdown)
                       back)
    (if (efrit-markdown-streaming-p item)
        (efrit-markdown--enqueue item begin)
      (efrit-markdown--continue))))

(defun efrit-markdown-stream (item)
  "Treat ITEM, or with nil no item, as one whose text is streaming."
  (pcase efrit-markdown--streaming
    ((and `(,before ,from ,_) (guard (marker-position (efrit-item-start before))))
     ;; The last block of what has streamed has ended now.
     (efrit-markdown--enqueue before from)))
  (setq efrit-markdown--streaming
        (and item (let ((begin (efrit-item-body-start item)))
                    (list item (copy-marker begin) (copy-marker begin))))))

(defun efrit-markdown--enqueue (item begin)
  "Have the text of ITEM from BEGIN on dressed soon."
  (unless (assq item efrit-markdown--items)
    (push (cons item (if (efrit-markdown-streaming-p item)
                         (nth 1 efrit-markdown--streaming)
                       (copy-marker begin)))
          efrit-markdown--items))
  (efrit-markdown--continue))

(defun efrit-markdown--continue ()
  "Have the next step of dressing done soon."
  (unless efrit-markdown--timer
    (setq efrit-markdown--timer
          (efrit-run-at-time efrit-markdown--pause-seconds nil
                             #'efrit-markdown--step (current-buffer)))))

(defun efrit-markdown-streaming-p (item)
  "Return non-nil if the text of ITEM is streaming."
  (and item (eq item (car efrit-markdown--streaming))))

(defun efrit-markdown-show-source (item)
  "Show the source of ITEM instead of dressed text, or dress it again."
  (if (get-text-property (efrit-item-body-start item) 'efrit-source)
      (progn (efrit-markdown--undress item)
             (efrit-markdown--enqueue item (efrit-item-body-start item)))
    (setq efrit-markdown--items (assq-delete-all item efrit-markdown--items)
          efrit-markdown--dressed (delq item efrit-markdown--dressed))
    (efrit-item-clear item)
    (efrit-item-append item (propertize (efrit-end-line (efrit-item-text item))
                                        'face 'efrit-text 'efrit-source t))))

(defun efrit-markdown--undress (item)
  "Replace the text of ITEM by its source, to be dressed when it is in sight."
  (efrit-item-clear item)
  (efrit-markdown-insert item (efrit-end-line (efrit-item-text item))))

(defun efrit-markdown--undress-far ()
  "Undress what was dressed longest ago and is out of sight, if that is much."
  (let ((room efrit-markdown--most-dressed)
        (sights (efrit-markdown--sights t))
        dressed)
    (dolist (item efrit-markdown--dressed)
      (when (marker-position (efrit-item-start item))
        (if (or (> room 0) (efrit-markdown--in-sight-p item sights))
            (push item dressed)
          (efrit-markdown--undress item))
        (cl-decf room (efrit-item-body-size item))))
    (setq efrit-markdown--dressed (nreverse dressed))))

(defun efrit-markdown--in-sight-p (item sights)
  "Return non-nil if ITEM is in one of SIGHTS, or has point or the mark in it."
  (seq-some (pcase-lambda (`(,begin . ,end))
              (and (<= (efrit-item-start item) end) (<= begin (efrit-item-end item))))
            (append (mapcar (lambda (point) (cons point point)) (efrit-markdown--points))
                    sights)))

(defun efrit-markdown--points ()
  "Return point, the mark, and the points of this buffer's windows."
  `(,(point)
    ,(or (mark t) (point))
    ,@(mapcar #'window-point (get-buffer-window-list nil nil t))))

(defun efrit-markdown-set-up ()
  "Have the text that comes in sight in this buffer dressed."
  (add-hook 'post-command-hook #'efrit-markdown--dress-in-sight nil t)
  (add-hook 'window-scroll-functions #'efrit-markdown--on-scroll nil t)
  (add-hook 'window-size-change-functions #'efrit-markdown--on-resize nil t))

(defun efrit-markdown--on-scroll (window _start)
  "Have the text in WINDOW dressed soon."
  (with-current-buffer (window-buffer window)
    (efrit-markdown--continue)))

(defun efrit-markdown--on-resize (window)
  "Have the tables in the buffer of WINDOW laid out as wide as its windows are now."
  (with-current-buffer (window-buffer window)
    (save-restriction
      (widen)
      (let ((columns (efrit-markdown--columns))
            (begin (point-min)))
        (while (setq begin (text-property-not-all begin (point-max) 'efrit-table nil))
          (let ((end (next-single-property-change begin 'efrit-table nil (point-max))))
            (unless (eql columns (cdr (get-text-property begin 'efrit-table)))
              (with-silent-modifications
                (put-text-property begin end 'efrit-undressed 'table)))
            (setq begin end)))))
    (efrit-markdown--continue)))

(defun efrit-markdown--dress-in-sight (&optional ahead)
  "Dress what is in a window or near point; with AHEAD also what comes next."
  (save-restriction
    (widen)
    (let ((deadline (+ (float-time) efrit-markdown--step-seconds)))
      (pcase-dolist (`(,begin . ,end) (efrit-markdown--sights ahead))
        (efrit-markdown--dress-region begin end deadline)))))

(defun efrit-markdown--sights (&optional ahead)
  "Return the regions that windows show, conses of their ends.
Include the lines around a point that its window does not show yet; with AHEAD
include them in any case."
  (mapcan (lambda (window)
            (let* ((height (window-height window))
                   (here (window-point window))
                   (start (window-start window))
                   (end (efrit-markdown--line-from start height)))
              (cons (cons start end)
                    (when (or ahead (not (<= start here end)))
                      (list (cons (efrit-markdown--line-from here (- height))
                                  (efrit-markdown--line-from here height)))))))
          (get-buffer-window-list nil nil t)))

(defun efrit-markdown--line-from (position lines)
  "Return the beginning of the line that is LINES lines on from POSITION."
  (save-excursion
    (goto-char position)
    (line-beginning-position (1+ lines))))

(defun efrit-markdown--dress-region (begin end deadline)
  "Dress what is between BEGIN and END, until DEADLINE."
  (let ((position begin))
    ;; The buffer shrinks.
    (while (and (< position (setq end (min end (point-max))))
                (< (float-time) deadline)
                (setq position (text-property-not-all position end 'efrit-undressed nil)))
      (let ((item (efrit-item-at position)))
        (unless (efrit-markdown-streaming-p item)
          (efrit-markdown--enqueue item (efrit-item-body-start item)))
        (when-let* ((entry (assq item efrit-markdown--items)))
          (efrit-markdown--dress-item entry deadline))
        (setq position (efrit-item-end item))))))

(defun efrit-markdown--step (buffer)
  "Dress what is in sight in BUFFER, then other items; stop when time is up.
Undress what is far out of sight."
  (efrit-transcript-in buffer
    (setq efrit-markdown--timer nil)
    (let ((deadline (+ (float-time) efrit-markdown--step-seconds)))
      (efrit-markdown--dress-in-sight t)
      (while (and efrit-markdown--items
                  (not (input-pending-p))
                  (efrit-markdown--dress-item (car efrit-markdown--items) deadline))
        (setq efrit-markdown--items (cdr efrit-markdown--items)))
      ;; Isearch stores positions as numbers.
      (unless isearch-mode
        (efrit-markdown--undress-far))
      (pcase (car efrit-markdown--items)
        (`(,item . ,from) (efrit-markdown--enqueue item from))))))

(defun efrit-markdown--dress-item (entry deadline)
  "Dress the item of ENTRY, (ITEM . FROM), as far as its text has come.
Return nil if DEADLINE comes before that."
  (pcase-let* ((`(,item . ,from) entry)
               (position (and (marker-position (efrit-item-start item)) from))
               (in-time t))
    (while (and position
                in-time
                (setq position (text-property-not-all position (efrit-item-end item)
                                                      'efrit-undressed nil)))
      (set-marker from position)
      (setq position (efrit-item-edit item #'efrit-markdown--dress-next item position)
            in-time (< (float-time) deadline))
      (when position
        (set-marker from position)))
    (when (and in-time (not (efrit-markdown-streaming-p item)))
      (setq efrit-markdown--dressed (cons item (delq item efrit-markdown--dressed))))
    in-time))

(defun efrit-markdown--dress-next (item begin)
  "Dress the block of ITEM at BEGIN; return its end, or nil if it has not ended."
  (let ((end (next-single-property-change begin 'efrit-undressed nil (efrit-item-end item))))
    (pcase (get-text-property begin 'efrit-undressed)
      ('code (efrit-markdown--fontify-when-loaded begin end))
      ('table (efrit-markdown--dress-by #'efrit-markdown--refit-table item begin end))
      (_ (when-let* ((after (efrit-markdown--block-end item begin end)))
           (efrit-markdown--dress-by #'efrit-markdown-dress item begin after)
           ;; Next comes the code of this block, if it has any.
           begin)))))

(defun efrit-markdown--dress-by (function item begin end)
  "Dress the block of ITEM between BEGIN and END by FUNCTION; return its end."
  (let ((end (copy-marker end))
        (efrit-markdown--points (efrit-markdown--points)))
    (remove-text-properties begin end '(efrit-undressed nil))
    (with-demoted-errors "Efrit could not dress a reply: %S"
      (funcall function begin end default-directory))
    (efrit-item-mark item begin end)
    (prog1 (marker-position end)
      (set-marker end nil))))

(defun efrit-markdown--block-end (item begin end)
  "Return the end of the block of ITEM at BEGIN, or nil if it has not ended.
The text of ITEM ends at END."
  (if (not (efrit-markdown-streaming-p item))
      (efrit-markdown-block-end begin end t)
    (let ((scanned (nth 2 efrit-markdown--streaming)))
      ;; The newline at the end is not the model's.
      (or (efrit-markdown-block-end begin (1- end) nil (max begin scanned))
          (progn (set-marker scanned (save-excursion (goto-char (1- end))
                                                     (line-beginning-position)))
                 nil)))))

;;;; Modes that are not loaded

(defvar-local efrit-markdown--waiting nil
  "Modes that are to be loaded for code in this buffer.")

(defvar efrit-markdown--broken nil
  "Modes that could not be loaded.")

(defun efrit-markdown--fontify-when-loaded (begin end)
  "Fontify the code between BEGIN and END; return END.
Loading a mode takes long: that waits until Emacs is idle and no text streams."
  (let ((mode (efrit-markdown--mode (car (get-text-property begin 'efrit-code))
                                    (buffer-substring-no-properties begin end))))
    (remove-text-properties begin end '(efrit-undressed nil))
    (cond ((or (null mode) (memq mode efrit-markdown--broken)))
          ((or noninteractive (not (autoloadp (symbol-function mode))))
           (efrit-markdown--fontify begin end mode))
          (t (put-text-property begin end 'efrit-waiting mode)
             (unless (memq mode efrit-markdown--waiting)
               (push mode efrit-markdown--waiting)
               (run-with-idle-timer 0.5 nil #'efrit-markdown--load-mode mode
                                    (current-buffer)))))
    end))

(defun efrit-markdown--load-mode (mode buffer)
  "Load MODE, and have the code in BUFFER that waits for it fontified."
  (efrit-transcript-in buffer
    (if efrit-markdown--streaming
        (efrit-run-at-time 2 nil #'run-with-idle-timer 0.5 nil #'efrit-markdown--load-mode mode buffer)
      (unless (ignore-errors (autoload-do-load (symbol-function mode) mode))
        (push mode efrit-markdown--broken))
      (setq efrit-markdown--waiting (delq mode efrit-markdown--waiting))
      (with-silent-modifications
        (let ((begin (point-min)))
          (while (setq begin (text-property-any begin (point-max) 'efrit-waiting mode))
            (let ((end (next-single-property-change begin 'efrit-waiting nil (point-max))))
              (remove-text-properties begin end '(efrit-waiting nil))
              (put-text-property begin end 'efrit-undressed 'code)
              (efrit-markdown--enqueue (efrit-item-at begin) begin)
              (setq begin end))))))))

(provide 'efrit-markdown)
;;; efrit-markdown.el ends here
