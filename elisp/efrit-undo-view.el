;;; efrit-undo-view.el --- What the model changed, to take it back  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands by which a person takes back edits: the last one, or those
;; of a whole session, in a list that shows the diff of each.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-diff)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-sidecar)
(require 'efrit-undo)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

(defvar-local efrit-undo-view--changes nil
  "The changes that are listed here, plists of the sidecar's.")

(defconst efrit-undo-view--now
  '(("as_left" . "as the model left it") ("changed" . "changed since")
    ("undone" . "taken back") ("unknown" . "not known"))
  "What is said of how files stand now.")

(defvar efrit-undo-view-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key ,command) '(("\r" efrit-undo-view-diff)
                                      ("d" efrit-undo-view-diff)
                                      ("u" efrit-undo-view-one)
                                      ("U" efrit-undo-view-all)))
      (define-key map key command))
    map)
  "Keys of `efrit-undo-view-mode'.")

(define-derived-mode efrit-undo-view-mode tabulated-list-mode "Efrit-Changes"
  "What the model changed in a session, the latest first.

\\{efrit-undo-view-mode-map}"
  (setq tabulated-list-format [("Nr" 5 nil) ("Done" 8 nil) ("File" 40 t) ("Lines" 12 nil)
                               ("Now" 24 t) ("Tool" 14 t)]
        tabulated-list-padding 1)
  (setq-local revert-buffer-function #'efrit-undo-view--revert)
  (tabulated-list-init-header))

;;; Commands

;;;###autoload
(defun efrit-undo (&optional force)
  "Take back the last edit that the model made in the session here.
Where the file was changed since, the difference is shown, and nothing is
done; with a prefix argument, as FORCE, it is taken back all the same."
  (interactive "P")
  (let ((loop (efrit-do-loop-here)))
    (efrit-undo-list
     loop
     (lambda (changes)
       (let ((last (car (last (seq-filter #'efrit-undo-open-p changes)))))
         (if (null last)
             (message "The model changed nothing here that was not taken back")
           (efrit-undo-view--take-back loop (list (plist-get last :number))
                                       (and force t)))))
     #'efrit-undo-view--failed)))

;;;###autoload
(defun efrit-undo-session (&optional loop)
  "List what the model changed in LOOP, by default the session here.
There it can be looked at and taken back, one by one or all."
  (interactive)
  (let* ((loop (or loop (efrit-do-loop-here)))
         (buffer (get-buffer-create (format "*efrit changes: %s*" (efrit-loop-id loop)))))
    (with-current-buffer buffer
      (efrit-undo-view-mode)
      (setq efrit-do-here loop)
      (efrit-undo-view--revert))
    (pop-to-buffer buffer)))

(defun efrit-undo-view-diff ()
  "Show what the change at point changed, and what was changed since."
  (interactive nil efrit-undo-view-mode)
  (let ((number (efrit-undo-view--number)))
    (efrit-sidecar-request-async
     'changes/show (list :session_id (efrit-loop-id efrit-do-here) :number number)
     :success (lambda (shown) (efrit-diff-show (efrit-undo-view--both shown)))
     :error #'efrit-undo-view--failed)))

(defun efrit-undo-view-one (&optional force)
  "Take back the change at point.
With a prefix argument, as FORCE, do so whatever the file holds now."
  (interactive "P" efrit-undo-view-mode)
  (efrit-undo-view--take-back efrit-do-here (list (efrit-undo-view--number)) (and force t)))

(defun efrit-undo-view-all (&optional force)
  "Take back all edits of the session, the latest first.
Files that were changed since stay as they are, and the difference is shown;
with a prefix argument, as FORCE, they are put back as well."
  (interactive "P" efrit-undo-view-mode)
  (efrit-check-mode 'efrit-undo-view-mode)
  (let ((numbers (mapcar (lambda (change) (plist-get change :number))
                         (seq-filter #'efrit-undo-open-p
                                     (reverse efrit-undo-view--changes)))))
    (unless numbers
      (user-error "There is nothing to take back"))
    (when (yes-or-no-p (format "Take back %d change%s? " (length numbers)
                               (if (cdr numbers) "s" "")))
      (efrit-undo-view--take-back efrit-do-here numbers (and force t)))))

;;; Private

(defun efrit-undo-view--number ()
  "Return the number of the change at point."
  (efrit-check-mode 'efrit-undo-view-mode)
  (or (tabulated-list-get-id)
      (user-error "No change is here")))

(defun efrit-undo-view--failed (err)
  "Tell the person of ERR."
  (message "efrit: %s" (efrit-error-text err)))

(defun efrit-undo-view--take-back (loop numbers force)
  "Take back NUMBERS of LOOP and tell what came of it; with FORCE, in any case."
  (efrit-undo-changes
   loop numbers force
   (lambda (outcomes)
     (let ((refused (seq-filter #'caddr outcomes)))
       (mapc (apply-partially #'efrit-undo-view--inform loop)
             (seq-remove #'caddr outcomes))
       (efrit-undo-view--refresh loop)
       (when refused
         (efrit-diff-show (mapconcat #'efrit-undo-said refused "\n")))
       (message "%s" (efrit-undo-view--told outcomes refused))))))

(defun efrit-undo-view--inform (loop outcome)
  "Have the model of LOOP learn OUTCOME, an edit of its that was taken back."
  (pcase-let ((`(,number ,path . ,_) outcome))
    (efrit-loop-inform
     loop
     (format "[The person took back your edit c%d: %s is as it was before it.]" number path)
     (format "You took back c%d of %s; the model learns it with its next turn" number path))))

(defun efrit-undo-view--told (outcomes refused)
  "Return what is said of OUTCOMES, of which some were REFUSED."
  (let ((done (- (length outcomes) (length refused))))
    (concat (if (and (= done 1) (null refused))
                (efrit-undo-said (car outcomes))
              (format "Took back %d of %d" done (length outcomes)))
            (if refused
                "; files changed since were left alone: a prefix argument puts them back, too"
              ""))))

(defun efrit-undo-view--refresh (loop)
  "Bring the list of the edits of LOOP up to date, where there is one."
  (when-let* ((buffer (get-buffer (format "*efrit changes: %s*" (efrit-loop-id loop)))))
    (with-current-buffer buffer
      (efrit-undo-view--revert))))

(defun efrit-undo-view--revert (&rest _)
  "Ask for the edits of the session of this buffer, and list them."
  (let ((buffer (current-buffer)))
    (efrit-undo-list efrit-do-here
                     (lambda (changes)
                       (when (buffer-live-p buffer)
                         (with-current-buffer buffer
                           (efrit-undo-view--fill changes))))
                     #'efrit-undo-view--failed)))

(defun efrit-undo-view--fill (changes)
  "Fill this buffer with the edits of the session, the latest first.
CHANGES are the sidecar's plists."
  (setq efrit-undo-view--changes changes
        tabulated-list-entries (mapcar #'efrit-undo-view--row (reverse changes)))
  (tabulated-list-print t))

(defun efrit-undo-view--row (change)
  "Return the row of CHANGE."
  (let ((to (plist-get change :to)))
    (list (plist-get change :number)
          (vector (plist-get change :label)
                  (plist-get change :kind)
                  (concat (plist-get change :path) (if to (concat " → " to) ""))
                  (format "+%s −%s" (or (plist-get change :added) "?")
                          (or (plist-get change :removed) "?"))
                  (pcase (plist-get change :state)
                    ("undone" "taken back")
                    ("abandoned" "was not made")
                    (_ (or (cdr (assoc (plist-get change :now) efrit-undo-view--now)) "")))
                  (plist-get change :tool)))))

(defun efrit-undo-view--both (shown)
  "Return the diff of the change SHOWN, and what was changed since."
  (let ((since (plist-get shown :since)))
    (concat (plist-get shown :diff)
            (if since (concat "\nChanged since:\n" since) ""))))

(provide 'efrit-undo-view)
;;; efrit-undo-view.el ends here
