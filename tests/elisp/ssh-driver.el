;;; ssh-driver.el --- Whole sessions over ssh, as a program asks for them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in a batch Emacs: it reads sessions from each line of standard input,
;; a JSON array of objects of the root of a project, the URL of its model and
;; its task, has the models work there at once with TRAMP as Emacs comes with it,
;; and writes what each tool gave as a line that begins with "USE ".  Every
;; second file is visited once a tool has made it.  A line that begins with "END "
;; says how a session ended, and which buffers are not as their files.  An object
;; with a member "install" names a machine on which to install the sidecar.
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
  "Work on the sessions that standard input asks for."
  (setq efrit-permission-rules '((t t allow))
        efrit-do-show-function #'ignore
        efrit-claude-headers '(("x-api-key" . "sk-test"))
        efrit-claude-features '(cache thinking effort binding diagnostics))
  ;; TRAMP would ask whether the buffers of root's files may be auto-saved.
  (setq auto-save-default nil)
  (let (line)
    ;; Nobody is there to answer one.
    (dolist (question '(yes-or-no-p y-or-n-p read-string read-passwd))
      (advice-add question :override
                  (lambda (prompt &rest _)
                    (or (string-prefix-p "Install efrit-budget" prompt)
                        (error "A question: %s" prompt)))))
    (while (setq line (ignore-errors (read-from-minibuffer "")))
      (condition-case err
          (let ((asked (json-parse-string line :object-type 'plist)))
            (if (vectorp asked)
                (ssh-driver--work (append asked nil))
              (ssh-driver--install (plist-get asked :install))))
        (error (ssh-driver--say "END" (list :problem (error-message-string err))))))))

(defun ssh-driver--work (asked)
  "Work on the sessions ASKED, plists, at once; write how each ended.
Where connections are shared by the person's will, TRAMP has no say."
  (when (eq t (plist-get (car asked) :shared))
    (let ((option (if (boundp 'tramp-use-connection-share)
                      'tramp-use-connection-share
                    'tramp-use-ssh-controlmaster-options)))
      (set option nil)))
  (add-to-list 'tramp-remote-path (plist-get (car asked) :programs))
  (let ((loops (mapcar #'ssh-driver--begin asked)))
    (unwind-protect
        (progn
          (mapc #'efrit-test-rest loops)
          (efrit-test-wait-until #'efrit-revert-idle-p)
          (dolist (loop loops)
            (let ((root (efrit-loop-root loop)))
              (ssh-driver--say "END" (list :root root
                                           :problem (efrit-loop-problem loop)
                                           :buffers (vconcat (ssh-driver--strange-buffers root)))))))
      (dolist (loop loops)
        (let ((efrit-test-project (efrit-loop-root loop)))
          (efrit-do-forget loop)
          (efrit-test-kill-buffers (buffer-list)))))))

(defun ssh-driver--install (remote)
  "Install the sidecar on REMOTE, and write the text of the buffer about it."
  (with-temp-buffer
    (setq default-directory (concat remote "/"))
    (call-interactively #'efrit-remote-install))
  (with-current-buffer (format "*efrit install %s*" remote)
    (efrit-test-wait-until (lambda ()
                             (goto-char (point-min))
                             (re-search-forward "^\\(?:Installed\\|Not installed\\) on" nil t)))
    (ssh-driver--say "END" (list :text (buffer-string)))))

(defun ssh-driver--begin (asked)
  "Begin the session ASKED, a plist, and return its loop."
  (let* ((efrit-test-project (plist-get asked :root))
         (efrit-claude-url (plist-get asked :url))
         (default-directory efrit-test-project)
         (loop (efrit-test-loop)))
    (efrit-loop-observe loop #'ssh-driver--observe)
    (efrit-do-say loop (plist-get asked :task))
    loop))

(defun ssh-driver--observe (loop event)
  "Write the result of a use of a tool, if EVENT of LOOP is about one."
  (pcase event
    ((and `(use ,use) (guard (eq 'done (efrit-use-state use))))
     (let ((result (efrit-use-result use))
           (root (efrit-loop-root loop)))
       (ssh-driver--say "USE" (list :root root
                                    :name (efrit-use-name use)
                                    :status (plist-get result :status)
                                    :text (plist-get result :text)
                                    :tree (ssh-driver--tree root)))
       (when (equal (efrit-use-name use) "create_file")
         (efrit-defer #'ssh-driver--visit root (efrit-use-arguments use)))))))

(defun ssh-driver--visit (root arguments)
  "Visit the file in ARGUMENTS, a JSON text, below ROOT, if it should be visited.
If the connection breaks meanwhile, the file is not visited."
  (let ((path (plist-get (efrit-json-plist arguments) :path)))
    (when (and (member path '("a.txt" "new/c.txt"))
               (file-exists-p (file-local-name (expand-file-name path root))))
      (ignore-error file-error
        (find-file-noselect (expand-file-name path root))))))

(defun ssh-driver--tree (root)
  "Return the names of all files of the project ROOT and digests of them."
  (let ((root (file-local-name root))
        (tree (make-hash-table :test #'equal)))
    (dolist (file (directory-files-recursively root "") tree)
      (puthash (file-relative-name file root)
               (with-temp-buffer
                 (set-buffer-multibyte nil)
                 (insert-file-contents-literally file)
                 (md5 (current-buffer)))
               tree))))

(defun ssh-driver--strange-buffers (root)
  "Return the files below ROOT whose unmodified buffers have another text."
  (delq nil (mapcar (apply-partially #'ssh-driver--strange-file root) (buffer-list))))

(defun ssh-driver--strange-file (root buffer)
  "Return the file of BUFFER if that is there, below ROOT, and has another text.
It is read on this machine, which is the other one as well."
  (when-let* ((name (buffer-file-name buffer))
              (file (file-local-name name)))
    (and (string-prefix-p root name)
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
