;;; efrit-transcript.el --- The transcript of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Items of a session's buffer, which can be folded and searched, its exchanges,
;; its windows, and the reply box; transcripts as documents.

;;; Code:

(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'outline)

;;; Items

;; The buffer of a session has three parts: the transcript, which only grows;
;; the live part, which shows the current state and is replaced whenever that
;; changes; and the reply box, where the person types.
;;
;; The transcript is a sequence of items.  Each has a head, and a body if it is
;; open; a folded body is not in the buffer, so that a long session stays fast.
;; A window keeps showing the same text when items change; a window whose point
;; is in the live part or the reply box follows the end.

(cl-defstruct (efrit-item (:constructor efrit-item--create) (:copier nil))
  "A part of the transcript.
KIND is a symbol, DATA the value that the item shows.  HEAD is a string, or a
function of the item that returns a string; BODY is such a value, too, or nil
if there is nothing to open.  START is a marker where the item begins; OPEN is
non-nil if the body is shown.  HEAD-SIZE and BODY-SIZE count characters.
SOUGHT is a function of the item that returns a list of strings, in which a
search looks for words of the folded body; nil: the body itself.  MEMBERS are
items that are in the buffer, below this one, only while this one is open."
  kind data head body sought start open (head-size 0) (body-size 0) members)

(defvar-local efrit-transcript-begin nil
  "Position where the transcript begins.")

(defvar-local efrit-transcript-end nil
  "Marker where the transcript ends and the live part begins.")

(defvar-local efrit-transcript-live-end nil
  "Marker where the live part ends.")

(defvar-local efrit-transcript-box nil
  "Marker where the reply box begins.")

(defvar-local efrit-exchange--all nil
  "The message items, in their order, or nil if they have to be looked for.")

(defvar-local efrit-exchange--last-fold nil
  "The overlay that hides the last exchange, or nil.")

(defvar efrit-transcript-place nil
  "Position where to insert the next item; nil: the end of the transcript.")

(defmacro efrit-transcript-in (buffer &rest body)
  "Run BODY in BUFFER, widened, unless BUFFER is nil or killed."
  (declare (indent 1) (debug t))
  `(efrit-with-live-buffer ,buffer
     (save-restriction
       (widen)
       ,@body)))

(defun efrit-transcript-set-up (title prompt keymap)
  "Set up transcript, live part and reply box in this empty buffer.
TITLE is the first line, PROMPT the text before the reply box.  KEYMAP
applies to all text before the reply box."
  (with-silent-modifications
    (insert (efrit-transcript--read-only-text (concat title "\n") nil))
    (put-text-property (point-min) (1+ (point-min)) 'front-sticky '(read-only))
    (setq efrit-transcript-begin (point)
          efrit-transcript-end (copy-marker (point))
          efrit-transcript-live-end (copy-marker (point)))
    (insert (propertize (efrit-transcript--read-only-text (efrit-exchange-mark prompt) nil)
                        'field 'efrit-prompt))
    (put-text-property (1- (point)) (point) 'rear-nonsticky t)
    (setq efrit-transcript-box (copy-marker (point)))
    (overlay-put (make-overlay (point-min) (point)) 'local-map keymap)))

(defun efrit-transcript-set-live (text)
  "Replace the live part with TEXT."
  (efrit-transcript--splice (marker-position efrit-transcript-end)
                            (marker-position efrit-transcript-live-end)
                            (efrit-transcript--read-only-text (efrit-exchange-mark text) nil)
                            'live))

(cl-defun efrit-item-add (kind head &key body data sought members)
  "Add an item of KIND with HEAD, BODY, DATA and SOUGHT, folded; return the item.
MEMBERS are items that are not in the buffer until the item is opened."
  (let ((item (efrit-item--create :kind kind :head head :body body :data data
                                  :sought sought :members members)))
    (efrit-item--insert item (or efrit-transcript-place
                                 (marker-position efrit-transcript-end)))
    (when (eq kind 'message)
      (setq efrit-exchange--all nil))
    (if efrit-transcript-place
        (cl-incf efrit-transcript-place (efrit-item-head-size item))
      (efrit-exchange--extend-fold kind))
    item))

(defun efrit-item-refresh (item)
  "Replace the head of ITEM by its current text, if ITEM is in the buffer."
  (when-let* ((start (marker-position (efrit-item-start item)))
              (text (efrit-item--head-text item)))
    (efrit-transcript--splice start (+ start (efrit-item-head-size item)) text)
    (set-marker (efrit-item-start item) start)
    (setf (efrit-item-head-size item) (length text))))

(defun efrit-item-group (items kind head sought)
  "Replace ITEMS, which follow each other, by one folded item of KIND with HEAD.
Return the new item, whose members are ITEMS; SOUGHT is as in `efrit-item'."
  ;; In a folded exchange the new item must come where the fold still is.
  (let* ((efrit-transcript-place (marker-position (efrit-item-start (car items))))
         (group (efrit-item-add kind head :sought sought :members items)))
    (mapc #'efrit-item--hide items)
    group))

(defun efrit-item-join (group items)
  "Add ITEMS, which follow GROUP and its members in the buffer, to the members."
  (unless (efrit-item-open group)
    (mapc #'efrit-item--hide items))
  (setf (efrit-item-members group) (append (efrit-item-members group) items))
  (efrit-item-refresh group))

(defun efrit-item-append (item string &optional back)
  "Insert STRING at the end of the body of ITEM, or BACK characters before its end."
  (let ((end (- (efrit-item-end item) (or back 0)))
        (text (efrit-transcript--read-only-text string item)))
    (efrit-transcript--splice end end text)
    (cl-incf (efrit-item-body-size item) (length text))
    (when (eql end efrit-transcript-place)
      (cl-incf efrit-transcript-place (length text)))))

(defun efrit-item-edit (item function &rest arguments)
  "Edit the body of ITEM in place by FUNCTION with ARGUMENTS; return its value.
It must leave the last character of ITEM.  Point and windows stay where they
are in the text."
  (let ((size (buffer-size)))
    (unwind-protect
        (save-excursion
          (with-silent-modifications
            (apply function arguments)))
      (cl-incf (efrit-item-body-size item) (- (buffer-size) size)))))

(defun efrit-item-clear (item)
  "Remove the body of ITEM."
  (efrit-transcript--splice (efrit-item-body-start item) (efrit-item-end item) "")
  (setf (efrit-item-body-size item) 0))

(defun efrit-item-toggle (item)
  "Open or fold ITEM, and return t; return nil if ITEM has nothing to open."
  (when (or (efrit-item-body item) (efrit-item-members item))
    (setf (efrit-item-open item) (not (efrit-item-open item)))
    (efrit-item-refresh item)
    (cond ((efrit-item-members item) (efrit-item--toggle-members item))
          ((efrit-item-open item) (efrit-item-append item (efrit-item--body-text item)))
          (t (efrit-item-clear item)))
    t))

(defun efrit-item-remove (item)
  "Remove ITEM from the transcript."
  (efrit-transcript--splice (marker-position (efrit-item-start item))
                            (efrit-item-end item) "")
  (set-marker (efrit-item-start item) nil)
  (setq efrit-exchange--all nil))

(defun efrit-item-body-start (item)
  "Return the position where the body of ITEM begins."
  (+ (efrit-item-start item) (efrit-item-head-size item)))

(defun efrit-item-end (item)
  "Return the position where ITEM ends."
  (+ (efrit-item-body-start item) (efrit-item-body-size item)))

;; Each piece of text with its own faces has a list of properties; what all text
;; of items has in common stands in the lists of two symbols instead.
(setplist 'efrit-item-part '(read-only t))
(setplist 'efrit-item-opener '(read-only t mouse-face highlight follow-link t
                                         help-echo "TAB, mouse-1: open or fold"))

(defun efrit-item-mark (item begin end &optional object)
  "Make the text between BEGIN and END a read-only part of ITEM.
It is that of OBJECT, a string, or of this buffer."
  (add-text-properties begin end (list 'category 'efrit-item-part 'efrit-item item) object))

(defun efrit-item-text (item)
  "Return the data of ITEM, a text; if that is a function, the text it produces."
  (let ((data (efrit-item-data item)))
    (if (functionp data) (funcall data item) data)))

(defun efrit-end-line (text)
  "Return TEXT with a newline at its end."
  (if (string-suffix-p "\n" text) text (concat text "\n")))

(defun efrit-item-at (position)
  "Return the item at POSITION, or nil."
  (get-text-property position 'efrit-item))

(defun efrit-transcript-items (&optional begin end)
  "Return the items between BEGIN and END, by default all, in their order."
  (let ((place (max (or begin efrit-transcript-begin) efrit-transcript-begin))
        (end (min (or end efrit-transcript-end) efrit-transcript-end))
        items)
    (while (< place end)
      (when-let* ((item (efrit-item-at place)))
        (push item items))
      (setq place (next-single-property-change place 'efrit-item nil end)))
    (nreverse items)))

(defun efrit-item-before (position)
  "Return the item at POSITION, or else the nearest one before it, or nil."
  (let ((position (min position (point-max))))
    (or (efrit-item-at position)
        (let ((before (previous-single-property-change position 'efrit-item)))
          (and before (> before (point-min)) (efrit-item-at (1- before)))))))

(defun efrit-transcript-in-box-p (&optional position)
  "Return non-nil if POSITION, by default point, is in the reply box."
  (>= (or position (point)) efrit-transcript-box))

;;;; Commands

(defun efrit-item-next (&optional count)
  "Move to the next item, or COUNT items on; pass over folded exchanges."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (goto-char (save-excursion
                   (while (let ((place (efrit-item--adjacent-position step)))
                            (unless place
                              (user-error (if (> step 0) "This is the last item"
                                            "This is the first item")))
                            (goto-char place)
                            (invisible-p place)))
                   (point))))))

(defun efrit-item-previous (&optional count)
  "Move to the previous item, or COUNT items back."
  (interactive "p")
  (efrit-item-next (- (or count 1))))

(defun efrit-item--body-text (item)
  "Return the body of ITEM as text."
  (let ((body (efrit-item-body item)))
    (if (functionp body) (funcall body item) body)))

(defun efrit-item--insert (item place)
  "Insert the head of ITEM at PLACE."
  (let ((text (efrit-item--head-text item)))
    (setf (efrit-item-head-size item) (length text))
    (efrit-transcript--splice place place text)
    (setf (efrit-item-start item) (copy-marker place t))))

(defun efrit-item--hide (item)
  "Fold ITEM, and remove it from the buffer until `efrit-item--insert'."
  (when (efrit-item-open item)
    (efrit-item-toggle item))
  (efrit-item-remove item))

(defun efrit-item--toggle-members (item)
  "Insert the members of ITEM below it if it is open, else remove them."
  (if (not (efrit-item-open item))
      (mapc #'efrit-item--hide (efrit-item-members item))
    (let ((place (efrit-item-end item)))
      (dolist (member (efrit-item-members item))
        (efrit-item--insert member place)
        (setq place (efrit-item-end member))))))

(defun efrit-item--head-text (item)
  "Return the head of ITEM as text to insert."
  (let ((head (efrit-item-head item)))
    (efrit-item--clickable
     (efrit-transcript--read-only-text (if (functionp head) (funcall head item) head) item)
     item)))

(defun efrit-item--clickable (text item)
  "Return TEXT, the head of ITEM; if ITEM can be opened, make TEXT clickable."
  (when (or (efrit-item-body item) (efrit-item-members item))
    (put-text-property 0 (max 0 (1- (length text))) 'category 'efrit-item-opener text))
  text)

(defun efrit-item--adjacent-position (step)
  "Return the start of the item after point, or before it with STEP -1, or nil."
  (let* ((here (efrit-item-at (point)))
         (place (cond ((> step 0) (if here (efrit-item-end here) efrit-transcript-begin))
                      (here (1- (efrit-item-start here)))
                      (t (1- efrit-transcript-end))))
         (item (and (or here (< step 0) (< (point) efrit-transcript-begin))
                    (<= efrit-transcript-begin place (1- efrit-transcript-end))
                    (efrit-item-at place))))
    (and item (marker-position (efrit-item-start item)))))

(defun efrit-transcript--read-only-text (text item)
  "Return a read-only copy of TEXT that belongs to ITEM; nil: to no item."
  (let ((text (copy-sequence text)))
    (if item
        (efrit-item-mark item 0 (length text) text)
      (put-text-property 0 (length text) 'read-only t text))
    text))

(defun efrit-transcript--splice (start end text &optional live)
  "Replace the text between START and END with TEXT.
LIVE is non-nil if that text is the live part.  In every window, point and
the first line keep their places in the text, or stay near them."
  (let* ((delta (- (length text) (- end start)))
         (moved (lambda (position)
                  (cond ((< position start) position)
                        ((>= position end) (+ position delta))
                        (t (min position (+ start (length text)))))))
         (here (point))
         (places (mapcar (lambda (window)
                           (list window (window-point window) (window-start window)))
                         (get-buffer-window-list nil nil t)))
         (live-end (+ efrit-transcript-live-end delta))
         (transcript-end (+ efrit-transcript-end (if live 0 delta))))
    (save-restriction
      (widen)
      (with-silent-modifications
        (goto-char start)
        (delete-region start end)
        (insert text)))
    (set-marker efrit-transcript-end transcript-end)
    (set-marker efrit-transcript-live-end live-end)
    (goto-char (funcall moved here))
    (pcase-dolist (`(,window ,point ,top) places)
      (unless (= (window-point window) (funcall moved point))
        (set-window-point window (funcall moved point)))
      (efrit-window--move-start window top (funcall moved top)))))

;;; Exchanges

;; An exchange is a message of the person with all that follows it, up to the
;; next message.  Its head is the heading of the message and the first line; the
;; rest can be hidden, as outline.el does it.  The beginning of a head, of the
;; live part and of the prompt has a syntax that no other text here has, so that
;; nothing a model writes passes for a heading.

(defconst efrit-exchange--syntax (string-to-syntax "/")
  "Syntax of the first character of a heading for outline.el.")

(defun efrit-exchange-mark (text)
  "Return TEXT, whose first line is a heading for outline.el."
  (concat (propertize (substring text 0 1) 'syntax-table efrit-exchange--syntax)
          (substring text 1)))

(defun efrit-exchange-set-up ()
  "Prepare this buffer for folding, imenu and outline.el."
  (setq-local parse-sexp-lookup-properties t
              outline-regexp "\\s/"
              outline-heading-end-regexp "\n.*\n"
              outline-level (lambda () 1)
              outline-isearch-open-invisible-function #'delete-overlay
              imenu-create-index-function #'efrit-exchange-index
              imenu-sort-function nil)
  (add-hook 'imenu-after-jump-hook #'efrit-exchange-reveal nil t)
  (add-to-invisibility-spec '(outline . t)))

(defun efrit-exchange-at (position)
  "Return the message item that begins the exchange at POSITION, or nil."
  (let ((item (efrit-item-before position)))
    (while (and item (not (eq (efrit-item-kind item) 'message)))
      (setq item (and (> (efrit-item-start item) efrit-transcript-begin)
                      (efrit-item-at (1- (efrit-item-start item))))))
    item))

(defun efrit-exchange-number ()
  "Return the number of the exchange at point, from 0; nil in the live part or box."
  (and (< (point) efrit-transcript-end)
       (seq-position (efrit-exchange--list) (efrit-exchange-at (point)))))

(defun efrit-exchange-go-to (number)
  "Move to the exchange NUMBER, from 0, and return non-nil; else return nil."
  (when-let* ((exchange (nth number (efrit-exchange--list))))
    (goto-char (efrit-exchange--head exchange))))

(defun efrit-exchange-toggle (exchange)
  "Hide all of EXCHANGE, a message item, but its head; or show it again."
  (if (efrit-exchange-folded-p exchange)
      (efrit-exchange--unfold exchange)
    (efrit-exchange--fold exchange))
  (goto-char (efrit-exchange--head exchange)))

(defun efrit-exchange-folded-p (exchange)
  "Return non-nil if all of EXCHANGE but its head is hidden."
  (outline-invisible-p (efrit-exchange--head-end exchange)))

(defun efrit-exchange-reveal ()
  "Show the exchange at point if it is folded."
  (when (invisible-p (point))
    (when-let* ((exchange (efrit-exchange-at (point))))
      (efrit-exchange--unfold exchange))))

(defun efrit-exchange-index ()
  "Return an index for imenu: the exchanges, and the tool lines in each."
  (let (index)
    (save-excursion
      (dolist (item (efrit-transcript-items))
        (pcase (efrit-item-kind item)
          ('message
           (goto-char (efrit-exchange--head item))
           (let ((place (point)))
             (forward-line 1)
             (push (list (efrit-exchange--line) (cons "The message" place)) index)))
          ((or 'use 'group)
           (when index
             (goto-char (efrit-item-start item))
             (push (cons (efrit-exchange--line) (point)) (cdar index)))))))
    (efrit-exchange--unique
     (mapcar (pcase-lambda (`(,title . ,places))
               (if (cdr places)
                   (cons title (efrit-exchange--unique (reverse places)))
                 (cons title (cdar places))))
             (nreverse index)))))

;;;; Commands

(defun efrit-exchange-next (&optional count)
  "Move to the next exchange, or COUNT exchanges on."
  (interactive "p")
  (dotimes (_ (or count 1))
    (let ((next (efrit-exchange--after (if-let* ((here (efrit-item-at (point))))
                                           (efrit-item-end here)
                                         (point)))))
      (unless next
        (user-error "This is the last exchange; i goes to the reply box"))
      (efrit-exchange--go next))))

(defun efrit-exchange-previous (&optional count)
  "Move to the beginning of the exchange, or COUNT exchanges back."
  (interactive "p")
  (dotimes (_ (or count 1))
    (let* ((here (efrit-exchange-at (point)))
           (previous (if (and here (<= (point) (efrit-exchange--head here)))
                         (efrit-exchange-at (1- (efrit-item-start here)))
                       here)))
      (unless previous
        (user-error "This is the first exchange"))
      (efrit-exchange--go previous))))

(defun efrit-exchange-toggle-all ()
  "Hide all of every exchange but its head; if all are hidden, show them again."
  (interactive)
  (let* ((folds (efrit-exchange--folds))
         (starts (mapcar #'overlay-start folds))
         (exchanges (efrit-exchange--list)))
    ;; Deleted in this order, an overlay is found at once.
    (overlay-recenter (point-max))
    (mapc #'delete-overlay folds)
    (unless (null (cl-set-difference (mapcar #'efrit-exchange--head-end exchanges) starts))
      (mapc #'efrit-exchange--fold exchanges)
      (when (invisible-p (point))
        (goto-char (efrit-exchange--head (efrit-exchange-at (point))))))
    (efrit-window-unsettle)))

(defun efrit-exchange--folds ()
  "Return the overlays that hide exchanges, the last in the buffer first."
  (sort (seq-filter (lambda (overlay) (eq (overlay-get overlay 'invisible) 'outline))
                    (overlays-in efrit-transcript-begin efrit-transcript-end))
        (lambda (one other) (> (overlay-start one) (overlay-start other)))))

(defun efrit-exchange--list ()
  "Return the message items in their order."
  (or efrit-exchange--all
      (setq efrit-exchange--all
            (seq-filter (lambda (item) (eq (efrit-item-kind item) 'message))
                        (efrit-transcript-items)))))

(defun efrit-exchange--after (position)
  "Return the message item that begins the first exchange after POSITION, or nil."
  (let ((place (max position efrit-transcript-begin))
        item)
    (while (and (< place efrit-transcript-end)
                (not (and (setq item (efrit-item-at place))
                          (eq (efrit-item-kind item) 'message))))
      (setq place (next-single-property-change place 'efrit-item nil efrit-transcript-end)
            item nil))
    item))

(defun efrit-exchange--go (exchange)
  "Move to the head of EXCHANGE, and show as much of it as fits the window."
  (goto-char (efrit-exchange--head exchange))
  (when (and (eq (window-buffer) (current-buffer)) (not noninteractive))
    (set-window-start nil (min (point) (efrit-window--bottom-start (selected-window))))))

(defun efrit-exchange--head (exchange)
  "Return the position where the head of EXCHANGE begins, after its empty line."
  (save-excursion
    (goto-char (efrit-item-start exchange))
    (skip-chars-forward "\n")
    (point)))

(defun efrit-exchange--head-end (exchange)
  "Return the position where the head of EXCHANGE ends."
  (save-excursion
    (goto-char (efrit-exchange--head exchange))
    (line-end-position 2)))

(defun efrit-exchange--end (exchange)
  "Return the position where EXCHANGE ends."
  (if-let* ((next (cadr (memq exchange (efrit-exchange--list)))))
      (marker-position (efrit-item-start next))
    (marker-position efrit-transcript-end)))

(defun efrit-exchange--fold (exchange)
  "Hide EXCHANGE but for its head, as outline.el would."
  (let* ((end (efrit-exchange--end exchange))
         (overlay (make-overlay (efrit-exchange--head-end exchange) end nil t)))
    (overlay-put overlay 'invisible 'outline)
    (overlay-put overlay 'isearch-open-invisible #'delete-overlay)
    (overlay-put overlay 'evaporate t)
    (when (= end efrit-transcript-end)
      (setq efrit-exchange--last-fold overlay))
    (efrit-window-unsettle)))

(defun efrit-exchange--unfold (exchange)
  "Show EXCHANGE whole."
  (outline-flag-region (efrit-exchange--head-end exchange) (efrit-exchange--end exchange) nil)
  (efrit-window-unsettle))

(defun efrit-exchange--extend-fold (kind)
  "Hide an item of KIND, just added, if the exchange that it belongs to is folded."
  (when efrit-exchange--last-fold
    (if (or (eq kind 'message) (null (overlay-buffer efrit-exchange--last-fold)))
        (setq efrit-exchange--last-fold nil)
      (move-overlay efrit-exchange--last-fold
                    (overlay-start efrit-exchange--last-fold) efrit-transcript-end))))

(defun efrit-exchange--line ()
  "Return the first 60 characters of the line at point, without blanks around."
  (skip-chars-forward "\n")
  (string-trim (buffer-substring-no-properties
                (point) (min (+ 60 (point)) (line-end-position)))))

(defun efrit-exchange--unique (index)
  "Return INDEX, an alist, with a number behind each key that occurred before."
  (let ((counts (make-hash-table :test #'equal)))
    (mapcar (pcase-lambda (`(,key . ,value))
              (let ((count (cl-incf (gethash key counts 0))))
                (cons (if (= count 1) key (format "%s <%d>" key count)) value)))
            index)))

;;; Searching

;; The text of a folded item is not in the buffer, which stays fast with
;; results of many megabytes.  An incremental search looks into the folded items
;; that it passes, and opens the one where it finds something.  When the search
;; ends, the items that it opened are folded again, but for the one with point.

(defvar-local efrit-search--opened nil
  "Items that the present search opened, latest first.")

(defun efrit-search-set-up ()
  "Have isearch look into the folded items of this buffer."
  (setq-local isearch-search-fun-function #'efrit-search--function
              isearch-push-state-function #'efrit-search--push-state)
  (add-hook 'isearch-mode-end-hook #'efrit-search--end nil t))

(defun efrit-search--function ()
  "Return the function for the incremental search of this buffer."
  (let ((search (isearch-search-fun-default)))
    (lambda (string &optional bound noerror count)
      (unless bound ; with a bound, isearch looks for matches to highlight
        (efrit-search--open search string))
      (funcall search string bound noerror count))))

(defun efrit-search--open (search string)
  "Open the folded item with the next match of STRING, if it has one.
SEARCH is a function such as `isearch-search-fun-default' returns."
  (let* ((found (save-excursion (funcall search string nil t)))
         (edge (and found (if isearch-forward (match-beginning 0) (match-end 0))))
         (items (if isearch-forward
                    (efrit-transcript-items (if-let* ((here (efrit-item-at (point))))
                                                (efrit-item-start here)
                                              (point))
                                            edge)
                  (nreverse (efrit-transcript-items edge (1+ (point))))))
         (scratch (generate-new-buffer " *efrit search*" t)))
    (unwind-protect
        (seq-find (lambda (item)
                    (and (or (efrit-item-body item) (efrit-item-members item))
                         (not (efrit-item-open item))
                         (if isearch-forward
                             (<= (point) (efrit-item-end item))
                           (<= (efrit-item-end item) (point)))
                         (efrit-search--in-p search string item scratch)
                         (if (efrit-item-members item)
                             (efrit-search--open-group search string item)
                           (efrit-search--open-item search string item))))
                  items)
      (kill-buffer scratch))))

(defun efrit-search--in-p (search string item scratch)
  "Return non-nil if STRING is in the text of ITEM, a folded item.
SEARCH is the function to call for that, SCRATCH a buffer for the text."
  (let ((texts (if (efrit-item-sought item)
                   (funcall (efrit-item-sought item) item)
                 (list (efrit-item--body-text item)))))
    (with-current-buffer scratch
      (erase-buffer)
      (apply #'insert texts)
      (goto-char (if isearch-forward (point-min) (point-max)))
      (funcall search string nil t))))

(defun efrit-search--open-item (search string item)
  "Open ITEM and return t if STRING is in its body by SEARCH; else fold it again."
  (efrit-item-toggle item)
  (let ((found (save-excursion (funcall search string nil t))))
    (if (and found
             (<= (efrit-item-body-start item) (match-beginning 0))
             (<= (match-end 0) (efrit-item-end item)))
        (efrit-search--note-opened item (efrit-item-body-size item))
      (efrit-item-toggle item)
      nil)))

(defun efrit-search--open-group (search string group)
  "Open GROUP, one of whose members has STRING by SEARCH, and that member."
  (let ((size (buffer-size)))
    (efrit-item-toggle group)
    (efrit-search--note-opened group (- (buffer-size) size))
    (efrit-search--open search string)
    t))

(defun efrit-search--note-opened (item size)
  "Record that the search opened ITEM, by which SIZE characters came; return t."
  (push item efrit-search--opened)
  ;; Isearch stores these positions as numbers.
  (when (< (efrit-item-start item) isearch-opoint)
    (cl-incf isearch-opoint size))
  (when (and isearch-barrier (< (efrit-item-start item) isearch-barrier))
    (cl-incf isearch-barrier size))
  t)

(defun efrit-search--push-state ()
  "Return a function that folds what the search opens from now on.
All positions that isearch has stored are right again then."
  (let ((opened efrit-search--opened)
        (origin isearch-opoint))
    (lambda (_)
      (while (and efrit-search--opened (not (eq efrit-search--opened opened)))
        (efrit-search--fold (pop efrit-search--opened)))
      (setq isearch-opoint origin))))

(defun efrit-search--end ()
  "Fold the items that the search opened, but for the one with point."
  (while efrit-search--opened
    (let ((item (pop efrit-search--opened))
          (here (efrit-item-at (point))))
      (unless (or (eq item here) (memq here (efrit-item-members item)))
        (efrit-search--fold item)))))

(defun efrit-search--fold (item)
  "Fold ITEM, if it is still open."
  (when (and (efrit-item-open item) (marker-position (efrit-item-start item)))
    (efrit-item-toggle item)))

;;; Windows

;; A window follows the end of the buffer while the last line is in sight, or
;; while its point is in the reply box: the box stays at the bottom.  Where the
;; transcript is short, blank lines stand above the live part.  Any other window
;; keeps its lines, and so does one with point on a question.  This is done before
;; the display changes, so it is done once for all events that came meanwhile.

(defvar-local efrit-window--paddings nil
  "Alist from the windows of this buffer to the overlays with their blank lines.")

(defun efrit-window-set-up ()
  "Keep the reply box at the bottom of the windows of this buffer."
  (add-hook 'pre-redisplay-functions #'efrit-window--settle nil t))

(defun efrit-window-unsettle ()
  "Have the windows of this buffer settle again, since other text is visible."
  (dolist (window (get-buffer-window-list nil nil t))
    (when-let* ((state (window-parameter window 'efrit-settled)))
      (set-window-parameter window 'efrit-settled (list (car state))))))

(defun efrit-window--settle (window)
  "Bring the end of this buffer to the bottom of WINDOW, if WINDOW follows it."
  (let ((state (list (current-buffer) (buffer-chars-modified-tick)
                     (window-body-width window t) (window-body-height window t)))
        (scrolled (not (eql (window-start window) (window-parameter window 'efrit-start)))))
    (when (or scrolled (not (equal state (window-parameter window 'efrit-settled))))
      (save-restriction
        (widen)
        (let ((follows (efrit-window--follows-p window scrolled)))
          (unless (efrit-window--pad window)
            (when follows
              (efrit-window--to-bottom window)))))
      (set-window-parameter window 'efrit-settled state)
      (set-window-parameter window 'efrit-start (window-start window)))))

(defun efrit-window--follows-p (window scrolled)
  "Return non-nil if WINDOW follows the end of this buffer.
SCROLLED is non-nil if its start has changed since it was displayed."
  (let ((point (window-point window)))
    (cond ((get-text-property point 'efrit-question) nil)
          ((not (eq (current-buffer) (car (window-parameter window 'efrit-settled))))
           (>= point efrit-transcript-box))
          (scrolled (>= (window-end window t) (point-max)))
          ((>= point efrit-transcript-box))
          ;; This counts from the end, so text that came since makes no difference.
          (t (>= (window-end window) (point-max))))))

(defun efrit-window--pad (window)
  "If all text fits WINDOW, show it, with blank lines above the live part.
Return nil if the text is too long."
  (let* ((overlay (efrit-window--padding window))
         (height (window-body-height window t))
         (room (progn (overlay-put overlay 'before-string nil)
                      (if (efrit-window--long-p) -1
                        (- height (efrit-window--text-height window (point-min) height))))))
    (move-overlay overlay efrit-transcript-end efrit-transcript-end)
    (when (>= room 0)
      (overlay-put overlay 'before-string
                   (make-string (/ room (frame-char-height (window-frame window))) ?\n))
      (set-window-start window (point-min) t)
      t)))

(defun efrit-window--padding (window)
  "Return the overlay for the blank lines in WINDOW; delete those of no window."
  (dolist (padding efrit-window--paddings)
    (unless (and (window-live-p (car padding))
                 (eq (window-buffer (car padding)) (current-buffer)))
      (delete-overlay (cdr padding))
      (setq efrit-window--paddings (delq padding efrit-window--paddings))))
  (or (alist-get window efrit-window--paddings)
      (let ((overlay (make-overlay efrit-transcript-end efrit-transcript-end)))
        (overlay-put overlay 'window window)
        (setf (alist-get window efrit-window--paddings) overlay))))

(defun efrit-window--long-p ()
  "Return non-nil if this buffer certainly has more visible lines than any window."
  (save-excursion
    (goto-char (point-min))
    (and (zerop (forward-line 500))
         (= (point) (next-single-char-property-change (point-min) 'invisible nil (point))))))

(defun efrit-window--to-bottom (window)
  "Bring the end of this buffer to the bottom of WINDOW, unless that hides point."
  (let ((start (efrit-window--bottom-start window)))
    (when (and (<= start (window-point window))
               (/= start (window-start window)))
      (set-window-start window start t))))

(defun efrit-window--bottom-start (window)
  "Return the start of WINDOW at which the end of this buffer is at its bottom."
  (let ((height (window-body-height window t)))
    (save-excursion
      (goto-char (point-max))
      (vertical-motion (- 1 (/ height (frame-char-height (window-frame window)))) window)
      (while (and (> (efrit-window--text-height window (point) height) height)
                  (= 1 (vertical-motion 1 window))))
      (point))))

(defun efrit-window--text-height (window start most)
  "Return the height in pixels of this buffer from START on, laid out for WINDOW.
Of a text higher than MOST pixels, measure little more than that."
  (cdr (window-text-pixel-size window start (point-max) nil (1+ most))))

(defun efrit-window--move-start (window from to)
  "Have WINDOW, which began at FROM, begin at TO, where that text is now."
  (unless (= (window-start window) to)
    (set-window-start window to t))
  (when (eql from (window-parameter window 'efrit-start))
    (set-window-parameter window 'efrit-start to)))

;;; The reply box

;; The last part of a session's buffer.  Text that is sent while the model
;; works goes with the next turn.  Changes of the transcript above the box are
;; not recorded for undo; before each command, the positions in the undo list
;; are moved as far as the box has moved.

(defvar-local efrit-reply-box--undo-start nil
  "Start of the reply box when the undo list was last adjusted.")

(defvar-local efrit-reply-box--index nil
  "Index of the history entry in the box, or nil for new text.")

(defvar-local efrit-reply-box--draft nil
  "Text typed before browsing the history.")

(defvar-local efrit-reply-box-send-function #'ignore
  "Function called with the text of the box to send it.")

(defun efrit-reply-box-set-up (send)
  "Make the end of this buffer a reply box whose text is sent by calling SEND."
  (setq efrit-reply-box-send-function send
        buffer-undo-list nil
        efrit-reply-box--undo-start (marker-position efrit-transcript-box))
  (add-hook 'pre-command-hook #'efrit-reply-box--move-undo nil t)
  (efrit-attach-watch (lambda ()
                        (list (marker-position efrit-transcript-box) default-directory
                              efrit-loop-here))))

(defun efrit-reply-box-text ()
  "Return the text in the box, also where this buffer is narrowed."
  (save-restriction
    (widen)
    (buffer-substring-no-properties efrit-transcript-box (point-max))))

(defun efrit-reply-box-set (text)
  "Replace the text in the box with TEXT, and move to its end.
If this buffer is narrowed, widen it."
  (widen)
  (delete-region efrit-transcript-box (point-max))
  (goto-char (point-max))
  (insert text))

;;;; Commands

(defun efrit-reply-box-send ()
  "Send the text in the reply box.
While the model works, the text waits for the next turn."
  (interactive)
  (let ((text (efrit-trim (efrit-reply-box-text))))
    (when (string-empty-p text)
      (user-error "The reply box is empty"))
    (funcall efrit-reply-box-send-function text)
    (setq efrit-reply-box--index nil)
    (efrit-do-remember text)
    (efrit-reply-box-set "")
    (setq buffer-undo-list nil)))

(defun efrit-reply-box-go ()
  "Go to the reply box."
  (interactive)
  (goto-char (point-max)))

(defun efrit-reply-box-previous (&optional count)
  "Insert the previous message into the box, or COUNT messages back."
  (interactive "p")
  (let* ((index (+ (or efrit-reply-box--index -1) (or count 1)))
         (message (and (>= index 0) (nth index efrit-do-history))))
    (unless (or message (= index -1))
      (user-error (if (< index -1) "End of history" "Beginning of history")))
    (unless efrit-reply-box--index
      (setq efrit-reply-box--draft (efrit-reply-box-text)))
    (setq efrit-reply-box--index (and message index))
    (efrit-reply-box-set (or message efrit-reply-box--draft ""))))

(defun efrit-reply-box-next (&optional count)
  "Insert the next message into the box, or COUNT messages on."
  (interactive "p")
  (efrit-reply-box-previous (- (or count 1))))

(defun efrit-reply-box--move-undo ()
  "Move the positions in the undo list as far as the reply box has moved."
  (let ((delta (- efrit-transcript-box efrit-reply-box--undo-start)))
    (unless (or (zerop delta) (eq buffer-undo-list t))
      (setq buffer-undo-list
            (mapcar (lambda (entry) (efrit-reply-box--shift-entry entry delta)) buffer-undo-list)))
    (setq efrit-reply-box--undo-start (marker-position efrit-transcript-box))))

(defun efrit-reply-box--shift-entry (entry delta)
  "Return ENTRY of `buffer-undo-list' with its positions moved by DELTA."
  (pcase entry
    ((pred integerp) (+ entry delta))
    (`(,(and (pred integerp) start) . ,(and (pred integerp) end))
     (cons (+ start delta) (+ end delta)))
    (`(,(and (pred stringp) text) . ,(and (pred integerp) place))
     (cons text (if (< place 0) (- place delta) (+ place delta))))
    (`(nil ,property ,value ,start . ,end)
     `(nil ,property ,value ,(+ start delta) . ,(+ end delta)))
    (_ entry)))

;;; Exporting a session

;; Writes the transcript of a session, evicted turns included, as Markdown or
;; Org.  Texts are unchanged: in Markdown the texts of person and model are
;; plain, and the rest is in fences; in Org all texts are in blocks.

(defconst efrit-export--speakers
  '(("request" . "Person") ("notice" . "Notice") ("reply" . "Model") ("result" . "Result"))
  "Alist from the kinds of entries in a transcript to their titles.")

(defun efrit-export-session (session format then)
  "Export SESSION, an entry of `session/list', as FORMAT, then call THEN.
FORMAT is `markdown' or `org'.  The argument of THEN is a new buffer with
the document, which visits no file, and has the folder of this buffer."
  (let ((folder default-directory))
    (efrit-sidecar-request-async
     'session/transcript (list :session_id (plist-get session :session_id))
     :timeout nil
     :success (lambda (transcript)
                (with-current-buffer (generate-new-buffer
                                      (format "efrit-%s.%s" (plist-get session :session_id)
                                              (if (eq format 'org) "org" "md")))
                  (setq default-directory folder)
                  (insert (efrit-export-text session (plist-get transcript :turns) format))
                  (goto-char (point-min))
                  (cond ((eq format 'org) (org-mode))
                        ((fboundp 'markdown-mode) (funcall 'markdown-mode))
                        (t (text-mode)))
                  ;; Emacs would else end without a question about it.
                  (setq buffer-offer-save t)
                  (funcall then (current-buffer))))
     :error #'efrit-show-error)))

(defun efrit-export-text (session entries format)
  "Return ENTRIES, the transcript of SESSION, as FORMAT, `markdown' or `org'."
  (let ((turn nil))
    (concat
     (efrit-export--head session format)
     (mapconcat (lambda (entry)
                  (concat
                   (unless (equal turn (plist-get entry :turn))
                     (setq turn (plist-get entry :turn))
                     (efrit-export--heading
                      2 (if turn (format "Turn %d" turn) "Outside any turn") format))
                   (efrit-export-entry entry format)))
                entries ""))))

(defun efrit-export-entry (entry format)
  "Return ENTRY of a transcript, a plist, as FORMAT, `markdown' or `org'.
Return \"\" for a reply that has nothing but empty thinking."
  (let ((text (if (equal (plist-get entry :kind) "result")
                  (efrit-export--result entry format)
                (mapconcat (lambda (block) (efrit-export--block block format))
                           (plist-get entry :content) ""))))
    (if (string-empty-p text)
        ""
      (concat (efrit-export--heading 3 (efrit-export--title entry) format) text))))

;;;; Parts

(defun efrit-export--head (session format)
  "Return the title and dates of SESSION as the beginning of a document of FORMAT."
  (let ((title (plist-get session :title)))
    (concat
     (efrit-export--heading 1 (if (string-blank-p title)
                                  (concat "Session " (plist-get session :session_id))
                                title)
                            format)
     (format "Session %s on %s, %s to %s.\n\n"
             (plist-get session :session_id) (plist-get session :root)
             (format-time-string "%F %R" (plist-get session :created))
             (format-time-string "%F %R" (plist-get session :touched))))))

(defun efrit-export--title (entry)
  "Return the title of ENTRY: who wrote it, or its tool; its state in the window."
  (concat
   (alist-get (plist-get entry :kind) efrit-export--speakers "Other" nil #'equal)
   (if (equal (plist-get entry :kind) "result")
       (format " %s: %s" (or (plist-get entry :handle) "(missing)")
               (substring-no-properties (efrit-line-words (efrit-export-use entry))))
     "")
   (cond ((not (eq (plist-get entry :in_window) t)) ", evicted")
         ((equal (plist-get entry :state) "compressed") ", compressed")
         (t ""))))

(defun efrit-export-use (entry)
  "Return ENTRY of a transcript, a tool call with its result, as an `efrit-use'."
  (efrit-use-create
   :id (plist-get entry :tool_use_id) :name (plist-get entry :tool)
   :arguments (efrit-export-json (plist-get entry :arguments))
   :state 'done
   :result (list :status (plist-get entry :status) :handle (plist-get entry :handle)
                 :tokens (plist-get entry :tokens) :text (plist-get entry :text)
                 :gist (plist-get entry :gist) :ending (plist-get entry :ending))))

(defun efrit-export--result (entry format)
  "Return the arguments and the text of ENTRY, a result, as FORMAT, a symbol."
  (concat (efrit-export--verbatim (efrit-export-json (plist-get entry :arguments))
                                  "json" format)
          (if (plist-get entry :text)
              (efrit-export--verbatim (plist-get entry :text) "text" format)
            "There is no result.\n\n")))

(defun efrit-export--block (block format)
  "Return BLOCK, a content block of a message, as FORMAT, `markdown' or `org'."
  (pcase (plist-get block :type)
    ;; Persons and models write Markdown.
    ("text" (if (or (eq format 'org) (efrit-attach-heading block))
                (efrit-export--verbatim (plist-get block :text)
                                        (if (efrit-attach-heading block) "text" "markdown")
                                        format)
              (concat (efrit-trim-right (plist-get block :text)) "\n\n")))
    ("thinking" (if (string-blank-p (or (plist-get block :thinking) ""))
                    ""
                  (concat "Thinking:\n\n"
                          (efrit-export--verbatim (plist-get block :thinking) "text" format))))
    ("image" "The image itself is not exported.\n\n")
    ("redacted_thinking" "Thinking that only the model can read.\n\n")
    ("tool_use" (concat (format "Uses %s:\n\n" (plist-get block :name))
                        (efrit-export--verbatim (efrit-export-json (plist-get block :input))
                                                "json" format)))
    (_ (efrit-export--verbatim (efrit-export-json block) "json" format))))

(defun efrit-export--heading (level text format)
  "Return a heading of LEVEL, from 1, with TEXT, as FORMAT, `markdown' or `org'."
  (concat (make-string level (if (eq format 'org) ?* ?#)) " "
          (string-replace "\n" " " text) "\n\n"))

(defun efrit-export--verbatim (text language format)
  "Return TEXT, in LANGUAGE, as a verbatim block of FORMAT, `markdown' or `org'."
  (let ((text (or text ""))
        (end (if (string-suffix-p "\n" text) "" "\n")))
    (if (eq format 'org)
        ;; A comma keeps Org from reading a line of the text as its own syntax.
        (concat "#+begin_src " language "\n"
                (replace-regexp-in-string "^,*\\(?:\\*\\|#\\+\\)" ",\\&" text)
                end "#+end_src\n\n")
      ;; The fence must be longer than any run of backquotes in the text.
      (let ((fence (make-string (1+ (seq-reduce #'max (mapcar #'length
                                                              (split-string text "[^`]+" t))
                                                2))
                                ?`)))
        (concat fence language "\n" text end fence "\n\n")))))

(defun efrit-export-json (value)
  "Return VALUE, from a reply of the sidecar, as JSON text on one line.
A nil VALUE is an empty object."
  (if value
      (decode-coding-string (efrit-json-write value) 'utf-8)
    "{}"))

(provide 'efrit-transcript)
;;; efrit-transcript.el ends here
