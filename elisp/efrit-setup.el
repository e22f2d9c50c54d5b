;;; efrit-setup.el --- Add a key, or use a local server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for a first request: one opens the file of keys where the key of the
;; endpoint belongs, the other sets the options for a local server.  Sessions that
;; failed for want of a key then send their message.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-do)
(require 'efrit-doctor)
(require 'efrit-loop)

;;; Keys

(defvar auth-sources)

(declare-function auth-source-forget-all-cached "auth-source" ())
(declare-function epg-list-keys "epg" (context &optional name mode))

;;;###autoload
(defun efrit-add-key ()
  "Open the file of keys at the line with the key of the endpoint.
Add the line if it is missing; the person types the key and saves the file.
Sessions that failed for want of a key then go on."
  (interactive)
  (let ((host (efrit-endpoint-host))
        (file (efrit-setup--key-file)))
    (efrit-setup--create file)
    (pop-to-buffer (find-file-noselect file))
    (efrit-setup--go-to-key host)
    (setq header-line-format
          (substitute-command-keys
           (format " Type the key for %s at point, then \\[save-buffer]" host)))
    (add-hook 'after-save-hook #'efrit-setup--key-saved nil t)
    (message "%s" (substitute-command-keys
                   (format "Type the key for %s at point, then \\[save-buffer]" host)))))

(defun efrit-setup--key-file ()
  "Return the file of `auth-sources' for a new key.
Prefer one that exists, and an encrypted one if gpg has a secret key."
  (require 'auth-source)
  (let* ((files (seq-filter #'stringp
                            (mapcar (lambda (source)
                                      (if (listp source) (plist-get source :source) source))
                                    auth-sources)))
         (encrypted (seq-filter #'efrit-setup--encrypted-p files))
         (plain (seq-remove #'efrit-setup--encrypted-p files)))
    (or (seq-find #'file-exists-p (append encrypted plain))
        (car (if (efrit-setup--secret-key-p)
                 (append encrypted plain)
               (append plain encrypted)))
        (user-error "`auth-sources' has no file: add the key there for the host %s and the user \
apikey" (efrit-endpoint-host)))))

(defun efrit-setup--encrypted-p (file)
  "Return non-nil if FILE is encrypted by gpg."
  (string-suffix-p ".gpg" file))

(defun efrit-setup--secret-key-p ()
  "Return non-nil if gpg has a secret key, with which it can encrypt a file."
  (require 'epg)
  (ignore-errors
    (epg-list-keys (epg-make-context 'OpenPGP) nil t)))

(defun efrit-setup--create (file)
  "Create FILE, readable by nobody else, unless it exists or is encrypted."
  (unless (or (file-exists-p file) (efrit-setup--encrypted-p file))
    (with-file-modes #o600
      (write-region "" nil file nil 'silent nil 'excl))))

(defun efrit-setup--go-to-key (host)
  "Go to the key of HOST in this buffer, a file of keys; add a line if it has none."
  (goto-char (point-min))
  (unless (re-search-forward (format "^[ \t]*machine[ \t]+%s[ \t].*password[ \t]+"
                                     (regexp-quote host))
                             nil t)
    (goto-char (point-max))
    (unless (bolp)
      (insert "\n"))
    (insert (format "machine %s login apikey password " host))
    (save-excursion
      (insert "\n"))))

(defun efrit-setup--key-saved ()
  "Have the sessions without a key go on with the key that was saved."
  (auth-source-forget-all-cached)
  (let ((waiting (efrit-setup--waiting-loops)))
    (condition-case err
        (progn
          (efrit-endpoint-headers nil)
          (setq header-line-format nil)
          (remove-hook 'after-save-hook #'efrit-setup--key-saved t)
          (quit-windows-on (current-buffer))
          (mapc #'efrit-setup--go-on waiting)
          (message "The key is found%s" (if waiting "; the message is sent" "")))
      (efrit-no-key (message "%s" (cadr err))))))

;;; Local servers

(defconst efrit-setup--servers
  '(("http://127.0.0.1:11434" . "Ollama") ("http://127.0.0.1:8080" . "llama.cpp")
    ("http://127.0.0.1:1234" . "LM Studio") ("http://127.0.0.1:8000" . "vLLM"))
  "Addresses of local servers that speak the Messages API, with their names.")

;;;###autoload
(defun efrit-use-local-server (url model)
  "Use the server at URL, which speaks the Messages API, with its MODEL.
Set `efrit-claude-url' and `efrit-claude-model' by Customize, and ask whether
to save them.  Sessions that failed for want of a key then go on."
  (interactive (let ((url (efrit-setup--read-url)))
                 (list url (efrit-setup--read-model url))))
  (efrit-setup--customize (list (cons 'efrit-claude-url url)
                                (cons 'efrit-claude-model model)))
  (let ((waiting (efrit-setup--waiting-loops)))
    (dolist (loop waiting)
      (efrit-loop-take-options loop)
      (efrit-setup--go-on loop))
    (message "New sessions use %s at %s%s" model url
             (if waiting "; the message is sent" ""))))

(defun efrit-setup--read-url ()
  "Ask for the address of a local server, and return its URL."
  (let* ((completion-extra-properties
          (list :annotation-function
                (lambda (url) (concat "  " (cdr (assoc url efrit-setup--servers))))))
         (url (string-trim (completing-read
                            (format-prompt "Address of the server"
                                           (caar efrit-setup--servers))
                            efrit-setup--servers nil nil nil nil (caar efrit-setup--servers)))))
    (unless (string-match-p "\\`https?://" url)
      (setq url (concat "http://" url)))
    (if (string-match-p "\\`https?://[^/]+/?\\'" url)
        (concat (string-remove-suffix "/" url) "/v1/messages")
      url)))

(defun efrit-setup--read-model (url)
  "Ask for a model of the server at URL, with completion if it lists its models.
Signal a `user-error' if no server answers there."
  (let* ((efrit-claude-url url)
         (models (efrit-doctor-models))
         (default (or (car models) efrit-claude-model)))
    (completing-read (format-prompt "Model" default) models nil nil nil nil default)))

(defun efrit-setup--customize (values)
  "Set each option of VALUES, an alist, by Customize; ask whether to save them.
An Emacs without an init file, as with -Q, cannot save them."
  (let ((save (and (or user-init-file custom-file)
                   (y-or-n-p "Save this for later sessions of Emacs, too? "))))
    (pcase-dolist (`(,option . ,value) values)
      (if save
          (customize-save-variable option value)
        (customize-set-variable option value)))))

;;; Sessions

(defun efrit-setup--waiting-loops ()
  "Return the loops that failed for want of a key, and that here if it failed."
  (seq-filter (lambda (loop)
                (and (eq (efrit-loop-state loop) 'failed)
                     (or (efrit-loop-no-key loop) (eq loop efrit-loop-here))))
              (efrit-loops)))

(defun efrit-setup--go-on (loop)
  "Show LOOP, and have it send what it could not send."
  (funcall efrit-do-show-function loop)
  (efrit-retry loop))

(provide 'efrit-setup)
;;; efrit-setup.el ends here
