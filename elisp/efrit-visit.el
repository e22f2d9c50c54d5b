;;; efrit-visit.el --- Files that the model names, visited for a look  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A tool that needs a buffer for a file takes the one that visits it, or
;; opens one for the moment.  The file may be a stranger's: opening it asks
;; nothing, and runs nothing that is written in it or beside it.

;;; Code:

(require 'cl-lib)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-visit-most-bytes 5000000
  "The largest file that is opened in Emacs for a look."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-visit-secret-files
  '("/\\.env\\'" "/\\.env\\.[^/]*\\'" "/[._]netrc\\'" "/\\.authinfo[^/]*\\'" "/\\.pgpass\\'"
    "/\\.git-credentials\\'" "/\\.npmrc\\'" "/\\.pypirc\\'" "/\\.my\\.cnf\\'" "/\\.htpasswd\\'"
    "\\.\\(?:gpg\\|asc\\|pem\\|key\\|p12\\|pfx\\|jks\\|keystore\\|kdbx\\|ppk\\|tfvars\\|tfstate\\)\\'"
    "/id_[^/.]*\\'" "/\\.ssh/[^/]*\\'" "/\\.gnupg/" "/\\.?password-store/" "/\\.aws/credentials\\'"
    "/\\.azure/" "/\\.kube/config\\'" "/\\.docker/config\\.json\\'" "/gcloud/"
    "/client_secret[^/]*\\.json\\'" "/service-account[^/]*\\.json\\'"
    "/application_default_credentials\\.json\\'" "/\\.vault-token\\'" "/\\.s3cfg\\'" "/\\.boto\\'")
  "Files whose content no tool of Emacs shows: regular expressions.
They are matched with the whole name, case aside.  The sidecar's `read_file'
asks the person about such a file."
  :group 'efrit
  :type '(repeat regexp))

(defcustom efrit-visit-open-files
  '("/\\.env\\.\\(?:example\\|sample\\|template\\|dist\\)\\'" "/\\.ssh/\\(?:[^/]*\\.pub\\|config\\)\\'"
    "/\\.ssh/known_hosts[^/]*\\'")
  "Exceptions from `efrit-visit-secret-files': regular expressions."
  :group 'efrit
  :type '(repeat regexp))

;;; Public: names

(defun efrit-visit-root (call)
  "Return the real name of the root of the session of CALL, with a slash."
  (file-name-as-directory (file-truename (efrit-loop-root (efrit-tool-call-owner call)))))

(defun efrit-visit-file (call path)
  "Return the real name of the file PATH, the model's, in the project of CALL.
Signal an error where it is outside of it; it need not be there."
  (let* ((root (efrit-visit-root call))
         (file (and (not (string-match-p "\\`[ \t]*\\'\\|\0" path))
                    (expand-file-name path root))))
    (unless file
      (user-error "%S is no path; give one relative to the project" path))
    (unless (and (equal (file-remote-p file) (file-remote-p root))
                 (string-prefix-p root (file-name-as-directory
                                        (setq file (file-truename file)))))
      (user-error "%s is outside of the project" path))
    file))

(defun efrit-visit-existing-file (call path)
  "Return the real name of the file PATH, the model's, in the project of CALL.
Signal an error where there is no such file, or it may not be looked at."
  (let ((file (efrit-visit-file call path)))
    (cond ((find-buffer-visiting file))
          ((file-directory-p file) (user-error "%s is a folder; give a file" path))
          ((not (file-regular-p file))
           (user-error "%s: no such file; project_files finds names" path)))
    (when (efrit-visit-secret-p file)
      (user-error "%s usually holds secrets; read_file asks the person about it" path))
    file))

(defun efrit-visit-inside-p (call file)
  "Return non-nil if FILE, a whole name, is in the project of CALL."
  (let ((root (efrit-visit-root call)))
    (and (equal (file-remote-p file) (file-remote-p root))
         (string-prefix-p root (file-name-as-directory (file-truename file))))))

(defun efrit-visit-name (call file)
  "Return what FILE, a whole name, is called in results for CALL.
It is relative to the project where it is in it."
  (efrit-visit-one-line
   (if (efrit-visit-inside-p call file)
       (efrit-visit-relative call file)
     (abbreviate-file-name file))))

(defun efrit-visit-relative (call file)
  "Return the name of FILE relative to the root of the project of CALL."
  (file-relative-name (file-truename file) (efrit-visit-root call)))

(defun efrit-visit-one-line (text)
  "Return TEXT with control characters and hidden ones made visible.
Line breaks are among them."
  (replace-regexp-in-string (concat "[\n\t]\\|" efrit-permissions-hidden-characters)
                            (lambda (control) (format "\\x%02x" (aref control 0)))
                            text t t))

(defun efrit-visit-secret-p (file)
  "Return non-nil if secrets are usually in a file of the whole name FILE."
  (let ((case-fold-search t)
        (fits (lambda (regexp) (string-match-p regexp file))))
    (and (seq-some fits (default-value 'efrit-visit-secret-files))
         (not (seq-some fits (default-value 'efrit-visit-open-files))))))

;;; Public: buffers

(defmacro efrit-visit-quietly (&rest body)
  "Run BODY; a file that it opens asks nothing and has nothing of its own run."
  (declare (indent 0) (debug t))
  `(efrit-visit--quietly (lambda () ,@body)))

(defun efrit-visit-open (file)
  "Return (BUFFER . OPENED) for FILE, a whole name.
OPENED says whether the buffer was opened for this; then let it go by
`efrit-visit-let-go'."
  (let ((known (find-buffer-visiting file)))
    (if known
        (cons known nil)
      (let ((size (file-attribute-size (file-attributes file))))
        (when (and size (> size efrit-visit-most-bytes))
          (user-error "%s has %d bytes, too many to open it in Emacs; read_file, search_content and list_symbols take it"
                      (file-name-nondirectory file) size)))
      (cons (efrit-visit-quietly (find-file-noselect file t)) t))))

(defun efrit-visit-let-go (visit)
  "Kill the buffer of VISIT, from `efrit-visit-open', if nobody else is at it."
  (pcase-let ((`(,buffer . ,opened) visit))
    (when (and opened (buffer-live-p buffer))
      (efrit-visit--kill buffer))))

(defmacro efrit-visit-with (file &rest body)
  "Run BODY in a buffer that visits FILE; it is let go of afterwards.
So are the buffers of other files that BODY opens."
  (declare (indent 1) (debug t))
  `(efrit-visit--with ,file (lambda () ,@body)))

(defmacro efrit-visit-and-let-go (&rest body)
  "Run BODY, and kill the buffers of files that it opened."
  (declare (indent 0) (debug t))
  `(efrit-visit--and-let-go (lambda () ,@body)))

(defun efrit-visit-buffers (call)
  "Return the buffers that visit files of the project of CALL, by their names."
  (sort (seq-filter (lambda (buffer)
                      (let ((file (buffer-file-name buffer)))
                        (and file
                             (equal (file-remote-p file)
                                    (file-remote-p (efrit-visit-root call)))
                             (efrit-visit-inside-p call file))))
                    (buffer-list))
        (lambda (a b) (string< (buffer-file-name a) (buffer-file-name b)))))

;;; Private

;; Those of libraries that may not be loaded.
(defvar tags-revert-without-query)
(defvar tags-add-tables)
(defvar recentf-exclude)

(defun efrit-visit--quietly (body)
  "Call BODY; a file that it opens asks nothing and has nothing of its own run."
  (let ((enable-local-variables :safe)
        (enable-local-eval nil)
        (enable-remote-dir-locals nil)
        (large-file-warning-threshold nil)
        (vc-follow-symlinks t)
        ;; It would run git as the repository has it configured.
        (vc-handled-backends nil)
        ;; TRAMP would ask whether root's files may be saved here.
        (auto-save-default nil)
        (tags-revert-without-query t)
        (tags-add-tables nil)
        (recentf-exclude '(""))
        (inhibit-interaction t)
        (inhibit-message t)
        (message-log-max nil))
    (funcall body)))

(defun efrit-visit--with (file body)
  "Call BODY in a buffer that visits FILE, and let go of what was opened.
Point and narrowing of a person's buffer stay."
  (let ((visit (efrit-visit-open file)))
    (unwind-protect
        (efrit-visit-and-let-go
          (with-current-buffer (car visit)
            (save-excursion
              (save-restriction
                (funcall body)))))
      (efrit-visit-let-go visit))))

(defun efrit-visit--and-let-go (body)
  "Call BODY, and kill the buffers of files that it opened."
  (let ((before (buffer-list)))
    (unwind-protect
        (efrit-visit-quietly (funcall body))
      (dolist (buffer (buffer-list))
        (when (and (buffer-file-name buffer) (not (memq buffer before)))
          (efrit-visit--kill buffer))))))

(defun efrit-visit--kill (buffer)
  "Kill BUFFER, which visits a file, unless it is shown or was changed."
  (unless (or (buffer-modified-p buffer) (get-buffer-window buffer t))
    (let ((kill-buffer-query-functions nil))
      (kill-buffer buffer))))

(provide 'efrit-visit)
;;; efrit-visit.el ends here
