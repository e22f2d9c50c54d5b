;;; ssh-driver.el --- Whole sessions over ssh, as a program asks for them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in a batch Emacs: it reads a session from each line of standard input,
;; a JSON object of the root of a project, the URL of its model and its task,
;; has the model work there with TRAMP as Emacs comes with it, and writes what
;; each tool gave as a line that begins with "USE ".  A line that begins with
;; "END " says how the session ended, and which buffers are not as their files.
;; See tests/emacs/test_over_ssh.py.

;;; Code:

(add-to-list 'load-path (file-name-directory load-file-name))
(add-to-list 'load-path (expand-file-name "../../elisp" (file-name-directory load-file-name)))

(require 'scripted)
(require 'tramp-sh)
(require 'efrit-files)
(require 'efrit-run)
(require 'seq)

(defun ssh-driver-run ()
  "Work on each session that standard input asks for."
  (setq efrit-permission-rules '((t t allow))
        efrit-do-show-function #'ignore
        efrit-claude-headers '(("x-api-key" . "sk-test"))
        efrit-claude-features '(cache thinking effort binding diagnostics))
  (let (line)
    ;; Nobody is there to answer one.
    (dolist (question '(yes-or-no-p y-or-n-p read-string read-passwd))
      (advice-add question :override
                  (lambda (prompt &rest _) (error "A question: %s" prompt))))
    (while (setq line (ignore-errors (read-from-minibuffer "")))
      (ssh-driver--say
       "END" (condition-case err
                 (ssh-driver--session (json-parse-string line :object-type 'plist))
               (error (list :problem (error-message-string err))))))))

(defun ssh-driver--session (asked)
  "Work on the session ASKED, a plist; return how it ended, a plist.
Where connections are shared by the person's will, TRAMP has no say."
  (when (eq t (plist-get asked :shared))
    (let ((option (if (boundp 'tramp-use-connection-share)
                      'tramp-use-connection-share
                    'tramp-use-ssh-controlmaster-options)))
      (set option nil)))
  (let* ((efrit-test-project (plist-get asked :root))
         (efrit-claude-url (plist-get asked :url))
         (default-directory efrit-test-project)
         (loop (efrit-test-loop)))
    (unwind-protect
        (progn
          (efrit-loop-observe loop #'ssh-driver--observe)
          (efrit-do-say loop (plist-get asked :task))
          (efrit-test-rest loop)
          (efrit-test-wait-until #'efrit-revert-idle-p)
          (list :problem (efrit-loop-problem loop)
                :buffers (vconcat (ssh-driver--strange-buffers))))
      (efrit-do-forget loop)
      (efrit-test-kill-buffers (buffer-list)))))

(defun ssh-driver--observe (_loop event)
  "Write the result of a use of a tool, if EVENT is about one."
  (pcase event
    ((and `(use ,use) (guard (eq 'done (efrit-use-state use))))
     (let ((result (efrit-use-result use)))
       (ssh-driver--say "USE" (list :name (efrit-use-name use)
                                    :status (plist-get result :status)
                                    :text (plist-get result :text)
                                    :tree (ssh-driver--tree)))))))

(defun ssh-driver--tree ()
  "Return the names of all files of the project and digests of them."
  (let ((root (file-local-name efrit-test-project))
        (tree (make-hash-table :test #'equal)))
    (dolist (file (directory-files-recursively root "") tree)
      (puthash (file-relative-name file root)
               (with-temp-buffer
                 (set-buffer-multibyte nil)
                 (insert-file-contents-literally file)
                 (md5 (current-buffer)))
               tree))))

(defun ssh-driver--strange-buffers ()
  "Return the files whose buffers are not modified and have another text."
  (delq nil (mapcar #'ssh-driver--strange-file (buffer-list))))

(defun ssh-driver--strange-file (buffer)
  "Return the file of BUFFER if that is there and has another text.
It is read on this machine, which is the other one as well."
  (when-let* ((name (buffer-file-name buffer))
              (file (file-local-name name)))
    (and (string-prefix-p efrit-test-project name)
         (not (buffer-modified-p buffer))
         (file-exists-p file)
         (not (equal (efrit-file-text buffer) (with-temp-buffer
                                                (insert-file-contents file)
                                                (buffer-string))))
         file)))

(defun ssh-driver--say (word value)
  "Write WORD and VALUE, a plist, as a line."
  ;; princ would leave it in a buffer.
  (send-string-to-terminal (format "%s %s\n" word (json-encode value))))

(ssh-driver-run)

(provide 'ssh-driver)
;;; ssh-driver.el ends here
