;;; efrit-show-tool.el --- What the model shows the person  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A place in a file, a stored result, or a text in a mode comes up in a
;; window that is not the selected one: the person goes on typing where they
;; are.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-tools)
(require 'efrit-visit)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-show-seconds 60
  "How many seconds shown lines are highlighted; nil: until others are."
  :group 'efrit
  :type '(choice (const :tag "Until others are" nil) number))

(defcustom efrit-show-most-characters 2000000
  "How many characters of a stored result the model can show."
  :group 'efrit
  :type 'natnum)

(defface efrit-shown '((t :inherit highlight))
  "Lines that the model shows."
  :group 'efrit)

(defvar efrit-show-tool--highlights nil
  "The overlays that highlight what was shown last.")

;;; Tools

(efrit-define-tool show_in_emacs
    ((path "string" "" :optional t)
     (start_line "integer" "Highlighted" :optional t :minimum 1)
     (end_line "integer" "" :optional t :minimum 1)
     (text "string" "" :optional t)
     (handle "string" "Or a result: r7" :optional t)
     (mode "string" "Of text: diff-mode, grep-mode" :optional t)
     (title "string" "" :optional t))
  "Show the person a file's lines, a text, or a stored result in another window."
  :policy allow
  :async t
  (let ((mode (efrit-show-tool--mode mode)))
    (pcase (seq-count #'identity (list path text handle))
      (1 (cond (path (efrit-tool-finish
                      call (efrit-show-tool--file call path start_line end_line)))
               (text (efrit-tool-finish
                      call (efrit-show-tool--text call text mode title)))
               (t (efrit-show-tool--result call handle mode title))))
      (_ (user-error "Give one of: path, text, handle")))))

;;; Private: files

(defun efrit-show-tool--file (call path start end)
  "Show the file PATH of CALL, the lines START to END highlighted; say so."
  (let* ((file (efrit-visit-existing-file call path))
         (visit (efrit-visit-open file)))
    (with-current-buffer (car visit)
      (let ((region (and start (efrit-show-tool--region path start (or end start)))))
        (efrit-show-tool--clear)
        (when region
          (efrit-show-tool--highlight (car region) (cdr region)))
        (efrit-show-tool--display (car visit) (car region))
        (efrit-tool-own
         (format "%s is shown%s." path
                 (cond ((null start) "")
                       ((= start (or end start)) (format " at line %d" start))
                       (t (format ", lines %d to %d" start end)))))))))

(defun efrit-show-tool--region (path start end)
  "Return (BEGIN . END) of the lines START to END of this buffer.
PATH is what the model calls it.  A narrowed buffer is widened only where
they would not be visible."
  (when (or (< start 1) (< end start))
    (user-error "Lines %d to %d are none; the first is 1" start end))
  (let ((region (save-restriction
                  (widen)
                  (save-excursion
                    (goto-char (point-min))
                    (when (or (> (forward-line (1- start)) 0)
                              (and (eobp) (bolp) (> start 1)))
                      (user-error "%s has %d lines, and no line %d" path
                                  (count-lines (point-min) (point-max)) start))
                    (cons (point)
                          (progn (forward-line (- (1+ end) start)) (point)))))))
    (unless (<= (point-min) (car region) (cdr region) (point-max))
      (widen))
    region))

(defun efrit-show-tool--highlight (begin end)
  "Highlight what is between BEGIN and END in this buffer for some time."
  (let ((overlay (make-overlay begin end)))
    (overlay-put overlay 'face 'efrit-shown)
    (overlay-put overlay 'priority 100)
    (overlay-put overlay 'evaporate t)
    (push overlay efrit-show-tool--highlights)
    (when efrit-show-seconds
      (run-at-time efrit-show-seconds nil #'delete-overlay overlay))))

(defun efrit-show-tool--clear ()
  "Highlight nothing any more."
  (mapc #'delete-overlay efrit-show-tool--highlights)
  (setq efrit-show-tool--highlights nil))

(defun efrit-show-tool--display (buffer &optional position)
  "Display BUFFER, at POSITION if any, in a window that is not selected."
  (let ((window (display-buffer
                 buffer '((display-buffer-reuse-window display-buffer-pop-up-window
                                                       display-buffer-use-some-window
                                                       display-buffer-no-window)
                          (inhibit-same-window . t)
                          (allow-no-window . t)
                          (inhibit-switch-frame . t)))))
    (when (and window (not (eq window (selected-window))) position)
      (set-window-point window position)
      (with-selected-window window
        (recenter)))))

;;; Private: texts

(defun efrit-show-tool--mode (name)
  "Return the major mode NAME, nil for plain text, as a symbol.
Only modes that Emacs uses for files are taken, and some for lists: any
function could be called like that."
  (let ((mode (and name (intern-soft name))))
    (cond ((null name) nil)
          ((null mode) (user-error "There is no mode %s in this Emacs" name))
          ((or (memq mode '(text-mode diff-mode grep-mode compilation-mode outline-mode
                                      special-mode org-mode markdown-mode))
               (seq-some (lambda (entry) (eq (if (consp (cdr entry)) (cadr entry) (cdr entry))
                                             mode))
                         auto-mode-alist))
           (if (fboundp mode) mode 'text-mode))
          (t (user-error "%s is no major mode for text in this Emacs" name)))))

(defun efrit-show-tool--text (call text mode title)
  "Show TEXT in MODE, or as it is, for CALL, under TITLE; say so."
  (let* ((mode (or mode (efrit-show-tool--guess text)))
         (name (efrit-visit-one-line
                (format "*efrit: %s*" (truncate-string-to-width (or title "shown") 60
                                                                nil nil "…"))))
         (buffer (get-buffer-create name)))
    (when (buffer-file-name buffer)
      (user-error "There is a file's buffer of the name %s; give another title" name))
    (with-current-buffer buffer
      (efrit-show-tool--fill text mode (efrit-visit-root call))
      (goto-char (point-min)))
    (efrit-show-tool--display buffer)
    (efrit-tool-own (format "The text is shown in %s (%s)." name mode))))

(defun efrit-show-tool--guess (text)
  "Return the mode for TEXT of which the model said none."
  (if (string-match-p "^--- .*\n\\+\\+\\+ .*\n@@ " text) 'diff-mode 'text-mode))

(defun efrit-show-tool--fill (text mode root)
  "Make TEXT all that is in this buffer, in MODE, with names relative to ROOT.
The hooks of the mode do not run: what they start may run what is in TEXT."
  (let ((inhibit-read-only t)
        (enable-local-variables nil))
    (erase-buffer)
    (delay-mode-hooks (funcall mode))
    (when (derived-mode-p 'compilation-mode)
      ;; `next-error' passes over a message in the first line.
      (insert (buffer-name) "\n\n"))
    (insert text)
    (setq default-directory root
          buffer-undo-list t
          buffer-read-only t)
    (set-buffer-modified-p nil)
    (font-lock-mode 1)))

;;; Private: stored results

(defun efrit-show-tool--result (call handle mode title)
  "Show the stored result HANDLE of the session of CALL in MODE under TITLE.
It costs no token, and is no use of it."
  (efrit-sidecar-request-async
   'worklog/show
   (list :session_id (efrit-loop-id (efrit-tool-call-owner call)) :handle handle
         :most efrit-show-most-characters)
   :timeout nil
   :success (lambda (shown)
              (efrit-child-finishing call
                (efrit-tool-finish
                 call (efrit-show-tool--text call (or (plist-get shown :text) "") mode
                                             (or title handle)))))
   :error (lambda (err)
            (efrit-tool-finish call (efrit-tool-result (efrit-error-text err)
                                                       :status 'error)))))

(provide 'efrit-show-tool)
;;; efrit-show-tool.el ends here
