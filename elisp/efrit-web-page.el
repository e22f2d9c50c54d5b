;;; efrit-web-page.el --- A page of the web as text  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Laying out a page can take long, so a separate batch Emacs does it.  It
;; loads this file alone, fetches nothing, and runs no script.

;;; Code:

(require 'dom)
(require 'shr)
(require 'subr-x)
(require 'url-util)

(defun efrit-web-page-print ()
  "Print the HTML page in the file on the command line as text; for a batch Emacs.
The arguments are the file, its URL, and \"links\" to print links as well."
  (pcase-let ((`(,file ,url ,how) command-line-args-left))
    (setq command-line-args-left nil
          locale-coding-system 'utf-8-unix)
    (princ (with-temp-buffer
             (let ((coding-system-for-read 'utf-8-unix))
               (insert-file-contents file))
             (efrit-web-page-text url (equal how "links"))))))

(defun efrit-web-page-text (url links)
  "Return the HTML page in this buffer, from URL, as text.
With LINKS, insert behind each link the link's address."
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
  "Insert behind each link in this buffer the link's address."
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
  "Return the address that the link URL leads to.
For a link of the search engine to a result, return the result's address."
  (if (string-match "\\`\\(?:https?:\\)?//duckduckgo\\.com/l/\\?\\(?:.*&\\)?uddg=\\([^&]+\\)" url)
      (decode-coding-string (url-unhex-string (match-string 1 url)) 'utf-8)
    url))

(defun efrit-web-page--tidy ()
  "Delete blanks at line ends, repeated empty lines, and empty lines at the start."
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
