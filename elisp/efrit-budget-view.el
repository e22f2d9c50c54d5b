;;; efrit-budget-view.el --- Every token of a session in sight  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-budget lists what is in the window and what left it: the system
;; text, what was said, and every result, each with its tokens.  Results can
;; be pinned, dropped and restored there; the next turn sees to it.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-budget-print)
(require 'efrit-budget-rows)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-result)
(require 'efrit-run)
(require 'efrit-said)
(require 'efrit-sidecar)
(require 'tabulated-list)

;;; Options

(defcustom efrit-budget-view-delay 0.3
  "Seconds after something happened in a session before its view shows it."
  :group 'efrit-session
  :type 'number)

(defcustom efrit-budget-view-interval 2.0
  "Seconds between two times that a view shows by itself what happened."
  :group 'efrit-session
  :type 'number)

(defconst efrit-budget-view--most-entries 10000
  "How many results are listed, the newest first.")

(defvar-local efrit-budget-view--rows nil
  "The rows by their ids: a hash table of plists.")

(defvar-local efrit-budget-view--changes nil
  "What was done here and can be undone, the latest first.
Each is (TEXT . STEPS): STEPS, each a method and a handle, undo it.")

(defvar-local efrit-budget-view--timer nil
  "The timer that shows what happened, or nil.")

(defvar-local efrit-budget-view--asked 0
  "How often the sidecar was asked; an answer to an older question is late.")

(defvar-local efrit-budget-view--refreshed 0
  "When the sidecar was asked last, a time in seconds.")

;;; The mode

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
        `[("Tokens" 13 ,(efrit-budget-view--by :now) :right-align t)
          ("Item" 6 ,(efrit-budget-view--by :order))
          ("Tool" 16 t)
          ("Age" 5 ,(efrit-budget-view--by :age) :right-align t)
          ("State" 11 t)
          ("About" 0 t)]
        tabulated-list-padding 1
        tabulated-list-sort-key '("Item" . t)
        tabulated-list-use-header-line nil
        tabulated-list-printer #'efrit-budget-print-line
        revert-buffer-function #'efrit-budget-view-refresh)
  (tabulated-list-init-header)
  (add-hook 'window-buffer-change-functions #'efrit-budget-view--shown nil t)
  (add-hook 'window-size-change-functions #'efrit-budget-print-fit nil t)
  (add-hook 'kill-buffer-hook #'efrit-budget-view--stop-timer nil t))

;;; Commands

;;;###autoload
(defun efrit-budget (&optional loop)
  "Show what is in the window of LOOP, by default of the project here."
  (interactive)
  (let* ((loop (or loop (efrit-do-loop-here)))
         (buffer (get-buffer-create (efrit-budget-view--buffer-name loop))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'efrit-budget-view-mode)
        (efrit-budget-view-mode))
      (unless (eq efrit-do-here loop)
        (setq efrit-do-here loop
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
  (setq efrit-budget-view--refreshed (float-time))
  (let ((buffer (current-buffer))
        (asked (cl-incf efrit-budget-view--asked))
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
                        (= asked (buffer-local-value 'efrit-budget-view--asked buffer)))
               (with-current-buffer buffer
                 (efrit-budget-view--take status turns (plist-get told :entries))))))))))))

(defun efrit-budget-view-show ()
  "Show the whole stored text of the item at point."
  (interactive nil efrit-budget-view-mode)
  (let ((row (efrit-budget-view--row)))
    (pcase (plist-get row :kind)
      ('result (efrit-result-show (efrit-loop-id efrit-do-here)
                                  (efrit-budget-view--handle row)))
      ('said (efrit-said-show efrit-do-here (plist-get row :turn) (plist-get row :said)))
      (_ (efrit-said-show-system efrit-do-here)))))

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
     (efrit-budget-view--do
      steps (lambda () (message "Undone: %s" text))))))

;;; Changes

(defun efrit-budget-view--change (text method handle undo)
  "Call METHOD for HANDLE, in words TEXT; UNDO is the way back."
  (let ((buffer (current-buffer)))
    (efrit-budget-view--do
     (list (cons method handle))
     (lambda ()
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (push (cons text undo) efrit-budget-view--changes)))
       (message "Efrit %s; the next turn sees to it" text)))))

(defun efrit-budget-view--do (wishes then)
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
             (efrit-budget-view--do (cdr wishes) then))))))))

(defun efrit-budget-view--ask (method params success)
  "Call METHOD with PARAMS for the session shown here, then SUCCESS."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id efrit-do-here)) params)
   :success (efrit-budget-view--here success)
   :error (lambda (err) (message "%s" (efrit-error-text err)))))

(defun efrit-budget-view--here (function)
  "Return FUNCTION bound to this buffer, while that is alive."
  (let ((buffer (current-buffer)))
    (lambda (value)
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (funcall function value))))))

;;; Rows

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

(defun efrit-budget-view--by (name)
  "Return a predicate to sort entries by the number NAME of their rows."
  (lambda (one other)
    (let ((rows efrit-budget-view--rows))
      (< (or (plist-get (gethash (car one) rows) name) 0)
         (or (plist-get (gethash (car other) rows) name) 0)))))

;;; Showing

(defun efrit-budget-view--buffer-name (loop)
  "Return the name of the buffer for the budget of LOOP."
  (format "*efrit budget: %s*"
          (file-name-nondirectory (directory-file-name (efrit-loop-root loop)))))

(defun efrit-budget-view--take (status said entries)
  "Show STATUS, SAID and ENTRIES, as the sidecar told them, in this buffer."
  (let ((rows (efrit-budget-rows status said entries)))
    (setq efrit-budget-view--rows (make-hash-table :size (length rows) :test #'equal)
          tabulated-list-entries
          (mapcar (lambda (row)
                    (puthash (plist-get row :id) row efrit-budget-view--rows)
                    (list (plist-get row :id) (efrit-budget-rows-columns row)))
                  rows))
    (efrit-budget-print (plist-get status :budget))))

;;; Events

(defun efrit-budget-view--event (loop event)
  "Have the view of LOOP show what EVENT changed, soon."
  (when (or (memq (car event) '(begun ended price state))
            (and (eq (car event) 'use) (eq (efrit-use-state (cadr event)) 'done)))
    (let ((buffer (get-buffer (efrit-budget-view--buffer-name loop))))
      (when (and buffer (get-buffer-window buffer 'visible))
        (with-current-buffer buffer
          (when (eq efrit-do-here loop)
            (efrit-budget-view--soon)))))))

(defun efrit-budget-view--soon ()
  "Refresh this buffer in a moment, and not too often."
  (unless efrit-budget-view--timer
    (setq efrit-budget-view--timer
          (run-at-time (max efrit-budget-view-delay
                            (- (+ efrit-budget-view--refreshed efrit-budget-view-interval)
                               (float-time)))
                       nil #'efrit-budget-view--due (current-buffer)))))

(defun efrit-budget-view--due (buffer)
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

(defun efrit-budget-view--shown (_window)
  "Refresh this buffer, which is shown again: nothing was shown meanwhile."
  (when efrit-do-here
    (efrit-budget-view--soon)))

(provide 'efrit-budget-view)
;;; efrit-budget-view.el ends here
