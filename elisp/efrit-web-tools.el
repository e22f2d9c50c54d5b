;;; efrit-web-tools.el --- The web, for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Pages as text, and what a search engine finds.  The person is asked, and
;; sees the address.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-fetch)
(require 'efrit-tools)
(require 'subr-x)

;;; Options

(defcustom efrit-web-search-url "https://html.duckduckgo.com/html/?q=%s"
  "The address of a search; %s stands for what is searched for."
  :group 'efrit
  :type 'string)

(defcustom efrit-web-render-seconds 20
  "How many seconds the layout of a page may take."
  :group 'efrit
  :type 'number)

;;; Tools

(efrit-define-tool fetch_url
    ((url "string" "")
     (links "boolean" "" :optional t))
  "Get a web page as text. Redirects to another site are told, not followed."
  :policy ask
  :effects nil
  :async t
  (efrit-fetch call (efrit-fetch-url url)
               (lambda (fetched) (efrit-web--take call fetched links))))

(efrit-define-tool web_search
    ((query "string" ""))
  "Search the web: what is found, with addresses."
  :policy ask
  :effects nil
  :async t
  :question #'efrit-web--question
  (when (string-blank-p query)
    (user-error "Give words to search for"))
  (efrit-fetch call (efrit-fetch-url (efrit-web-search-address query))
               (lambda (fetched) (efrit-web--take call fetched t))))

;;; Public

(defun efrit-web-search-address (query)
  "Return the address at which QUERY is searched for."
  (unless (string-search "%s" efrit-web-search-url)
    (user-error "`efrit-web-search-url' has no %%s in it"))
  (string-replace "%s" (url-hexify-string query) efrit-web-search-url))

;;; Private

(defun efrit-web--question (_loop arguments)
  "Return what the person is asked before a search with ARGUMENTS."
  (let ((query (plist-get arguments :query)))
    (format "May web_search ask %s?  %s"
            (if (string-match "\\`[^:]+://\\([^/?#]+\\)" efrit-web-search-url)
                (match-string 1 efrit-web-search-url)
              efrit-web-search-url)
            query)))

(defun efrit-web--take (call fetched links)
  "Finish CALL with FETCHED as text, with LINKS, if non-nil."
  (let ((kind (efrit-web--kind fetched)))
    (cond ((efrit-fetched-leads-to fetched)
           (efrit-tool-finish
            call (efrit-tool-own
                  (format "%s redirects to another site: %s\nfetch_url gets it."
                          (efrit-fetched-url fetched) (efrit-fetched-leads-to fetched)))))
          ((null kind)
           (efrit-web--finish call fetched (efrit-tool-own "It is no text, and not shown.")))
          ((not (eq kind 'page))
           (efrit-web--finish call fetched (efrit-web--text fetched nil)))
          ((not (libxml-available-p))
           (efrit-web--finish call fetched (efrit-web--text fetched t)
                              "This Emacs cannot lay out pages; here is the HTML."))
          (t (efrit-web--render call fetched (efrit-web--text fetched t) links)))))

(defun efrit-web--kind (fetched)
  "Return `page' or `text', as the body of FETCHED is, nil if it is neither."
  (let* ((body (efrit-fetched-body fetched))
         (said (efrit-web--type fetched))
         (begin (substring body 0 (min 1000 (length body)))))
    (cond ((member said '("text/html" "application/xhtml+xml")) 'page)
          ((string-match-p "\\`text/\\|[/+]\\(?:json\\|xml\\|yaml\\|toml\\|javascript\\|x-sh\\)\\'"
                           said)
           'text)
          ((not (string-empty-p said)) nil)
          ((string-search "\0" begin) nil)
          ((string-match-p "<html\\|<!doctype html" (downcase begin)) 'page)
          (t 'text))))

(defun efrit-web--type (fetched)
  "Return the type of FETCHED, in lower case, \"\" if it has none."
  (downcase (string-trim (car (split-string
                               (or (efrit-fetch-header fetched "content-type") "") ";")))))

(defun efrit-web--text (fetched is-page)
  "Return the body of FETCHED, HTML if IS-PAGE, decoded."
  (let* ((body (efrit-fetched-body fetched))
         (said (or (efrit-web--charset (efrit-fetch-header fetched "content-type"))
                   (and is-page
                        (efrit-web--charset
                         (substring body 0 (min 2000 (length body)))))))
         (text (decode-coding-string body (or said 'utf-8))))
    (replace-regexp-in-string
     "\r\n?" "\n"
     (if (and (null said) (memq 'eight-bit (find-charset-string text)))
         (decode-coding-string body 'windows-1252)
       text))))

(defun efrit-web--charset (text)
  "Return the coding system named in TEXT, a header or a page, or nil."
  (let ((case-fold-search t))
    (when (and text (string-match "charset=[\"' ]*\\([-a-z0-9_]+\\)" text))
      (let* ((name (downcase (match-string 1 text)))
             (coding (intern-soft (if (equal name "utf8") "utf-8" name))))
        (and coding (coding-system-p coding) coding)))))

(defun efrit-web--layout-command (file url links)
  "Return the command that prints the page in FILE, UTF-8, from URL as text.
With LINKS, the address of each link stands behind it."
  (list (expand-file-name invocation-name invocation-directory)
        "-Q" "--batch" "-l" (locate-library "efrit-web-page")
        "-f" "efrit-web-page-print" file url (if links "links" "text")))

(defun efrit-web--render (call fetched html links)
  "Finish CALL with HTML, from FETCHED, laid out as text, with LINKS if non-nil."
  (let ((file (make-temp-file "efrit-page-" nil ".html"))
        (coding-system-for-write 'utf-8-unix))
    (write-region html nil file nil 'silent)
    (efrit-child-run
     call (efrit-web--layout-command file (efrit-fetched-url fetched) links)
     (lambda (output end)
       (let ((text (decode-coding-string output 'utf-8-unix)))
         (if (eql end 0)
             (efrit-web--finish call fetched text)
           (efrit-web--finish call fetched html
                              (format "It could not be laid out (%s); here is the HTML." end)))))
     :seconds efrit-web-render-seconds
     :over (lambda () (delete-file file)))))

(defun efrit-web--finish (call fetched text &optional note)
  "Finish CALL with TEXT, of FETCHED, and NOTE on it."
  (let* ((status (efrit-fetched-status fetched))
         (said (format "%s (%d%s, %d bytes)" (efrit-fetched-url fetched) status
                       (let ((type (efrit-web--type fetched)))
                         (if (string-empty-p type) "" (concat ", " type)))
                       (length (efrit-fetched-body fetched))))
         (cut (pcase (efrit-fetched-cut fetched)
                ('long (format "[It was cut after %d bytes.]" efrit-fetch-most-bytes))
                ('late (format "[It was cut after %s seconds.]" efrit-fetch-seconds))
                ('broken "[The connection broke; it is not whole.]"))))
    (efrit-tool-finish
     call
     (efrit-tool-result
      (string-join (delq nil (list (efrit-tool-own said) (and note (efrit-tool-own note)) ""
                                   (string-trim-right text) (and cut (efrit-tool-own cut))))
                   "\n")
      :status (if (< status 400) 'success 'error)
      :summary (truncate-string-to-width
                (concat said " " (replace-regexp-in-string "[ \t\n]+" " " text))
                490 nil nil "…")))))

(provide 'efrit-web-tools)
;;; efrit-web-tools.el ends here
