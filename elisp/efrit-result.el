;;; efrit-result.el --- A stored result in a buffer of its own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a tool gave is stored whole by the sidecar.  A person looks at it
;; here; that is no use of it, and costs no token.

;;; Code:

(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-run)
(require 'efrit-show)
(require 'efrit-sidecar)
(require 'efrit-transcript)
(require 'so-long)

;;; Options

(defcustom efrit-result-most-characters 2000000
  "How many characters of a stored result are shown."
  :group 'efrit
  :type 'natnum)

;;; Public

(defun efrit-result-show (session handle)
  "Show the result HANDLE of SESSION, an id, in a buffer of its own."
  (let ((buffer (get-buffer-create (format "*efrit result: %s %s*" session handle))))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching it from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     'worklog/show (list :session_id session :handle handle
                         :most efrit-result-most-characters)
     :timeout nil
     :success (lambda (shown) (efrit-result--fill buffer shown))
     :error (lambda (err) (efrit-result--fill buffer (list :text (efrit-error-text err)))))
    buffer))

(define-derived-mode efrit-result-mode special-mode "Efrit-Result"
  "A stored result of a tool, as it is."
  (setq-local bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t)
  (setq truncate-lines t
        buffer-undo-list t))

;;; Commands

;;;###autoload
(defun efrit-open-result ()
  "Show the stored result of the tool at point, or of the latest one above."
  (interactive)
  (let* ((loop (efrit-do-loop-here))
         (use (or (efrit-result--use-here)
                  (user-error "No tool was used here")))
         (handle (plist-get (efrit-use-result use) :handle)))
    (unless handle
      (user-error "%s has no result that is stored" (efrit-use-name use)))
    (efrit-result-show (efrit-loop-id loop) handle)))

;;; Private

(defun efrit-result--use-here ()
  "Return the tool use at point or the nearest one above, or nil."
  (let ((place (point))
        item)
    (while (and (setq item (efrit-result--item-before place))
                (not (eq (efrit-item-kind item) 'use)))
      (setq place (1- (efrit-item-start item))))
    (and item (efrit-item-data item))))

(defun efrit-result--item-before (place)
  "Return the item at PLACE, or the nearest one before, or nil."
  (and (>= place (point-min))
       (or (efrit-item-at place)
           (let ((before (previous-single-property-change (min place (point-max))
                                                          'efrit-item)))
             (and before (> before (point-min)) (efrit-item-at (1- before)))))))

(defun efrit-result--fill (buffer shown)
  "Fill BUFFER with SHOWN, a result as the sidecar has it."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let* ((text (or (plist-get shown :text) ""))
             (more (- (or (plist-get shown :characters) 0) (length text))))
        (efrit-result--write text)
        (when (> more 0)
          (efrit-result--append (format "\n[%d characters more are stored; see \
`efrit-result-most-characters']\n" more)))
        (setq header-line-format (efrit-result--header shown))
        (when (funcall so-long-predicate)
          (so-long))))))

(defun efrit-result--write (text)
  "Make TEXT all that there is in this buffer."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (save-excursion (insert text))))

(defun efrit-result--append (text)
  "Add TEXT to this buffer, as said by efrit."
  (let ((inhibit-read-only t))
    (save-excursion
      (goto-char (point-max))
      (insert (propertize text 'face 'efrit-note)))))

(defun efrit-result--header (shown)
  "Return the header line for SHOWN, a result as the sidecar has it."
  (and (plist-get shown :handle)
       (replace-regexp-in-string
        "%" "%%"
        (format " %s  %s  %s tokens, %s" (plist-get shown :handle) (plist-get shown :tool)
                (efrit-show-tokens (plist-get shown :tokens)) (plist-get shown :state)))))

(provide 'efrit-result)
;;; efrit-result.el ends here
