;;; efrit-transcript.el --- The buffer of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Items of a session's buffer, which can be folded, and the reply box.

;;; Code:

(require 'efrit)
(require 'efrit-do)

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
non-nil if the body is shown.  HEAD-SIZE and BODY-SIZE count characters."
  kind data head body start open (head-size 0) (body-size 0))

(defvar-local efrit-transcript-begin nil
  "Position where the transcript begins.")

(defvar-local efrit-transcript-end nil
  "Marker where the transcript ends and the live part begins.")

(defvar-local efrit-transcript-live-end nil
  "Marker where the live part ends.")

(defvar-local efrit-transcript-box nil
  "Marker where the reply box begins.")

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
    (insert (propertize (efrit-transcript--read-only-text prompt nil) 'field 'efrit-prompt))
    (put-text-property (1- (point)) (point) 'rear-nonsticky t)
    (setq efrit-transcript-box (copy-marker (point)))
    (overlay-put (make-overlay (point-min) (point)) 'local-map keymap)))

(defun efrit-transcript-set-live (text)
  "Replace the live part with TEXT."
  (efrit-transcript--splice (marker-position efrit-transcript-end)
                            (marker-position efrit-transcript-live-end)
                            (efrit-transcript--read-only-text text nil)
                            'live))

(cl-defun efrit-item-add (kind head &key body data)
  "Add an item of KIND with HEAD, BODY and DATA, folded, and return the item."
  (let* ((item (efrit-item--create :kind kind :head head :body body :data data))
         (place (or efrit-transcript-place (marker-position efrit-transcript-end)))
         (text (efrit-item--head-text item)))
    (setf (efrit-item-head-size item) (length text))
    (efrit-transcript--splice place place text)
    (setf (efrit-item-start item) (copy-marker place t))
    (when efrit-transcript-place
      (cl-incf efrit-transcript-place (length text)))
    item))

(defun efrit-item-refresh (item)
  "Replace the head of ITEM in the buffer by its current text."
  (let ((start (marker-position (efrit-item-start item)))
        (text (efrit-item--head-text item)))
    (efrit-transcript--splice start (+ start (efrit-item-head-size item)) text)
    (set-marker (efrit-item-start item) start)
    (setf (efrit-item-head-size item) (length text))))

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
    (prog1 (save-excursion
             (with-silent-modifications
               (apply function arguments)))
      (cl-incf (efrit-item-body-size item) (- (buffer-size) size)))))

(defun efrit-item-clear (item)
  "Remove the body of ITEM."
  (efrit-transcript--splice (efrit-item-body-start item) (efrit-item-end item) "")
  (setf (efrit-item-body-size item) 0))

(defun efrit-item-toggle (item)
  "Open or fold ITEM, and return t; return nil if ITEM has no body."
  (when (efrit-item-body item)
    (setf (efrit-item-open item) (not (efrit-item-open item)))
    (efrit-item-refresh item)
    (if (efrit-item-open item)
        (let ((body (efrit-item-body item)))
          (efrit-item-append item (if (functionp body) (funcall body item) body)))
      (efrit-item-clear item))
    t))

(defun efrit-item-remove (item)
  "Remove ITEM from the transcript."
  (efrit-transcript--splice (marker-position (efrit-item-start item))
                            (efrit-item-end item) "")
  (set-marker (efrit-item-start item) nil))

(defun efrit-item-body-start (item)
  "Return the position where the body of ITEM begins."
  (+ (efrit-item-start item) (efrit-item-head-size item)))

(defun efrit-item-end (item)
  "Return the position where ITEM ends."
  (+ (efrit-item-body-start item) (efrit-item-body-size item)))

(defun efrit-item-at (position)
  "Return the item at POSITION, or nil."
  (get-text-property position 'efrit-item))

(defun efrit-transcript-in-box-p (&optional position)
  "Return non-nil if POSITION, by default point, is in the reply box."
  (>= (or position (point)) efrit-transcript-box))

;;;; Commands

(defun efrit-item-next (&optional count)
  "Move to the next item, or COUNT items on."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (let ((place (efrit-item--adjacent-position step)))
        (unless place
          (user-error (if (> step 0) "This is the last item" "This is the first item")))
        (goto-char place)))))

(defun efrit-item-previous (&optional count)
  "Move to the previous item, or COUNT items back."
  (interactive "p")
  (efrit-item-next (- (or count 1))))

(defun efrit-item--head-text (item)
  "Return the head of ITEM as text to insert."
  (let ((head (efrit-item-head item)))
    (efrit-item--clickable
     (efrit-transcript--read-only-text (if (functionp head) (funcall head item) head) item)
     item)))

(defun efrit-item--clickable (text item)
  "Return TEXT, the head of ITEM; if ITEM has a body, make TEXT clickable."
  (when (efrit-item-body item)
    (add-text-properties 0 (max 0 (1- (length text)))
                         '(mouse-face highlight follow-link t
                                      help-echo "RET, mouse-1: open or fold")
                         text))
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
    (add-text-properties 0 (length text) `(read-only t efrit-item ,item) text)
    text))

(defun efrit-transcript--splice (start end text &optional live)
  "Replace the text between START and END with TEXT.
LIVE is non-nil if that text is the live part.  In every window, point keeps
its place in the text, or stays near it."
  (let* ((delta (- (length text) (- end start)))
         (moved (lambda (position)
                  (cond ((< position start) position)
                        ((>= position end) (+ position delta))
                        (t (min position (+ start (length text)))))))
         (here (point))
         (points (mapcar (lambda (window) (cons window (window-point window)))
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
    (pcase-dolist (`(,window . ,point) points)
      (unless (= (window-point window) (funcall moved point))
        (set-window-point window (funcall moved point))))))

;;; The reply box

(declare-function project-files "project" (project &optional dirs))

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

(defvar-local efrit-reply-box--files nil
  "Cons of the time when the project's files were listed, and their names; or nil.")

(defvar-local efrit-reply-box-send-function #'ignore
  "Function called with the text of the box to send it.")

(defun efrit-reply-box-set-up (send)
  "Make the end of this buffer a reply box whose text is sent by calling SEND."
  (setq efrit-reply-box-send-function send
        buffer-undo-list nil
        efrit-reply-box--undo-start (marker-position efrit-transcript-box))
  (add-hook 'pre-command-hook #'efrit-reply-box--move-undo nil t)
  (add-hook 'completion-at-point-functions #'efrit-reply-box-complete nil t))

(defun efrit-reply-box-text ()
  "Return the text in the box."
  (buffer-substring-no-properties efrit-transcript-box (point-max)))

(defun efrit-reply-box-set (text)
  "Replace the text in the box with TEXT, and move to its end."
  (delete-region efrit-transcript-box (point-max))
  (goto-char (point-max))
  (insert text))

(defun efrit-reply-box-complete ()
  "Complete the name of a file of the project after an @ in the reply box.
This is for `completion-at-point-functions'."
  (when (efrit-transcript-in-box-p)
    (let ((end (point)))
      (save-excursion
        (skip-chars-backward "^ \t\n@" efrit-transcript-box)
        (when (and (eq (char-before) ?@)
                   (> (point) efrit-transcript-box)
                   (memq (char-before (1- (point))) '(nil ?\s ?\t ?\n ?\()))
          (list (point) end
                (completion-table-dynamic (lambda (_) (efrit-reply-box-files)))
                :exclusive 'no))))))

(defun efrit-reply-box-files ()
  "Return the names of the project's files, cached for `efrit-reply-box-files-for'."
  (unless (and efrit-reply-box--files
               (< (- (float-time) (car efrit-reply-box--files)) efrit-reply-box-files-for))
    (setq efrit-reply-box--files (cons (float-time) (efrit-reply-box--list))))
  (cdr efrit-reply-box--files))

;;;; Commands

(defun efrit-reply-box-send ()
  "Send the text in the reply box.
While the model works, the text waits for the next turn."
  (interactive)
  (let ((text (string-trim (efrit-reply-box-text))))
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

(defun efrit-reply-box--list ()
  "Return the names of the files of the project here, relative to its root."
  (require 'project)
  (let ((root (expand-file-name default-directory)))
    (mapcar (lambda (file)
              ;; Expanding a remote name is much slower than comparing it.
              (string-remove-prefix root (if (string-prefix-p root file) file
                                           (expand-file-name file))))
            (project-files (or (project-current nil root) (cons 'transient root))))))

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

(provide 'efrit-transcript)
;;; efrit-transcript.el ends here
