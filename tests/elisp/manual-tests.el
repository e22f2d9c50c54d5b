;;; manual-tests.el --- The manual: how it opens, and its keys  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; tests/docs/test_manual.py is about the manual's other contents, and
;; tests/packaging about the manual in a package.

;;; Code:

(require 'info)
(require 'seq)
(require 'support)
(require 'viewing)
(require 'efrit-budget)
(require 'efrit-menu)
(require 'efrit-sessions)
(require 'efrit-undo)

;;; Opening it

(defmacro manual-tests--with-folder (folder &rest body)
  "Run BODY with FOLDER bound to an empty folder, which is that of the package."
  (declare (indent 1) (debug (symbolp body)))
  `(let* ((,folder (file-name-as-directory (make-temp-file "efrit-test-" t)))
          (efrit-directory ,folder)
          (inhibit-message t))
     (unwind-protect
         (save-window-excursion ,@body)
       (delete-directory ,folder t))))

(ert-deftest efrit-manual-says-what-to-do-where-it-was-not-made ()
  (manual-tests--with-folder folder
    (let ((err (should-error (efrit-manual) :type 'user-error)))
      (should (string-search (expand-file-name "efrit.info" folder) (cadr err)))
      (should (string-search "make docs" (cadr err))))))

(ert-deftest efrit-manual-opens-by-h-above-the-reply-box-alone ()
  (manual-tests--with-folder folder
    (write-region "\^_\nFile: efrit.info,  Node: Top,  Up: (dir)\n\nA manual.\n" nil
                  (expand-file-name "efrit.info" folder) nil 'silent)
    (efrit-viewing-with-view efrit-viewing-short
      (goto-char (point-max))
      (should (eq 'self-insert-command (key-binding "h")))
      (goto-char (point-min))
      (should (eq 'efrit-manual (key-binding "h")))
      (unwind-protect
          (progn
            (call-interactively (key-binding "h"))
            (should (derived-mode-p 'Info-mode))
            (should (string-search "A manual." (buffer-string))))
        (when (get-buffer "*info*")
          (kill-buffer "*info*"))))))

;;; Its keys

(defconst manual-tests--tables
  '(("@node Keys Everywhere" efrit-session-view-mode-map)
    ("@node Keys above the Box" efrit-session-view-transcript-map)
    ("@node Keys of Questions" efrit-ask-permission-map)
    ("@subheading The budget," efrit-budget-view-mode-map)
    ("@subheading Sessions," efrit-sessions-mode-map)
    ("@subheading Edits," efrit-undo-view-mode-map)
    ("@subheading Permissions," efrit-permissions-mode-map)
    ("@subheading An observation" efrit-memory-mode-map)
    ("@subheading What a message" efrit-preview-mode-map)
    ("@subheading A buffer that" efrit-restore-mode-map)
    ("@subheading The new text" efrit-revise-mode-map))
  "The tables of keys in the manual, by the line above them, with their keymaps.")

(defun manual-tests--in-keymap (keymap &optional prefix)
  "Return the keys of KEYMAP itself behind PREFIX, consed to their commands.
Menus and remapped commands are left out."
  (let (found)
    (map-keymap-internal
     (lambda (event definition)
       (let ((keys (vconcat prefix (vector event))))
         (cond ((memq event '(menu-bar remap)))
               ((keymapp definition)
                (setq found (append (manual-tests--in-keymap definition keys) found)))
               ((and definition (symbolp definition))
                (push (cons (key-description keys) definition) found)))))
     keymap)
    found))

(defun manual-tests--in-table (heading)
  "Return the keys in the first table below HEADING, consed to their commands."
  (goto-char (point-min))
  (re-search-forward (concat "^" (regexp-quote heading)))
  (let ((end (save-excursion (re-search-forward "^@end table"))) (keys nil) (found nil))
    (while (re-search-forward "^@itemx? \\(.+\\)\\|(@code{\\([^}]+\\)})$" end t)
      (if (match-string 1)
          (push (if (equal "S-TAB" (match-string 1)) "<backtab>" (match-string 1)) keys)
        (dolist (key keys)
          (push (cons key (intern (match-string 2))) found))
        (setq keys nil)))
    found))

(ert-deftest efrit-manual-has-each-key-of-the-views-with-its-command ()
  (with-temp-buffer
    (insert-file-contents (expand-file-name "docs/manual/commands.texi" efrit-test-root))
    (pcase-dolist (`(,heading ,keymap) manual-tests--tables)
      (ert-info (heading)
        (let ((written (manual-tests--in-table heading))
              (bound (manual-tests--in-keymap (symbol-value keymap))))
          (should bound)
          (should-not (seq-difference bound written))
          (should-not (seq-difference written bound)))))))

(ert-deftest efrit-manual-has-each-key-in-its-index ()
  (with-temp-buffer
    (insert-file-contents (expand-file-name "docs/manual/commands.texi" efrit-test-root))
    (let ((items 0))
      (while (re-search-forward "^@table @kbd\n" nil t)
        (let ((end (save-excursion (re-search-forward "^@end table"))))
          (while (re-search-forward "^@itemx? \\(.+\\)" end t)
            (cl-incf items)
            (save-excursion
              (should (re-search-forward
                       (format "^@kindex %s$" (regexp-quote (match-string 1))) end t))))))
      (should (< 60 items)))))

(provide 'manual-tests)
;;; manual-tests.el ends here
