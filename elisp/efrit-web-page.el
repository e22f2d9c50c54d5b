;;; efrit-web-page.el --- A page of the web as text  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Pages can take long to lay out, so that is done by an Emacs of its own,
;; which loads this file alone, fetches nothing, and runs no script.

;;; Code:

(require 'dom)
(require 'shr)
(require 'subr-x)
(require 'url-util)

(defun efrit-web-page-print ()
  "Print the page named by the rest of the command line, for a batch Emacs."
  (pcase-let ((`(,file ,url ,how) command-line-args-left))
    (setq command-line-args-left nil
          locale-coding-system 'utf-8-unix)
    (princ (with-temp-buffer
             (let ((coding-system-for-read 'utf-8-unix))
               (insert-file-contents file))
             (efrit-web-page-text url (equal how "links"))))))

(defun efrit-web-page-text (url links)
  "Return the page in this buffer, from URL, as text.
With LINKS, the address of each link stands behind it."
  (let* ((dom (libxml-parse-html-region (point-min) (point-max)))
         (title (string-trim (replace-regexp-in-string
                              "[ \t\r\n]+" " "
                              (dom-texts (or (car (dom-by-tag dom 'title)) '(title nil)) "")))))
    (with-temp-buffer
      (let ((shr-inhibit-images t)
            (shr-use-fonts nil)
            (shr-use-colors nil)
            (shr-bullet "- ")
            (shr-width 100)
            (shr-external-rendering-functions '((svg . ignore) (object . ignore)
                                                (video . ignore) (audio . ignore))))
        (shr-insert-document `(base ((href . ,url)) ,dom)))
      (when links
        (efrit-web-page--write-links))
      (efrit-web-page--tidy)
      (concat (if (string-empty-p title) "" (concat "Title: " title "\n\n"))
              (buffer-substring-no-properties (point-min) (point-max))))))

(defun efrit-web-page--write-links ()
  "Write the address of each link in this buffer behind it."
  (let ((position (point-max)))
    (while (> position (point-min))
      (let ((url (get-text-property (1- position) 'shr-url))
            (begin (previous-single-property-change position 'shr-url nil (point-min))))
        (when (and url (not (string-prefix-p "#" url)))
          (goto-char position)
          (skip-chars-backward " \t\n" begin)
          (insert (propertize (format " <%s>" (efrit-web-page--target url)) 'shr-url nil)))
        (setq position begin)))))

(defun efrit-web-page--target (url)
  "Return where URL, of a link, leads to.
A search engine's own link has the address of what was found in it."
  (if (string-match "\\`\\(?:https?:\\)?//duckduckgo\\.com/l/\\?\\(?:.*&\\)?uddg=\\([^&]+\\)" url)
      (decode-coding-string (url-unhex-string (match-string 1 url)) 'utf-8)
    url))

(defun efrit-web-page--tidy ()
  "Remove blanks at the ends of lines, and empty lines that follow another."
  (goto-char (point-min))
  (while (re-search-forward "[ \t\u00a0]+$" nil t)
    (replace-match ""))
  (goto-char (point-min))
  (while (re-search-forward "\n\n\n+" nil t)
    (replace-match "\n\n"))
  (goto-char (point-min))
  (delete-region (point) (progn (skip-chars-forward "\n") (point))))

(provide 'efrit-web-page)
;;; efrit-web-page.el ends here
