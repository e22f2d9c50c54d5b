;;; efrit-tools-web.el --- Tools for the web  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that fetch pages and search the web, once the person has seen the
;; address and agreed.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-tools)

;; These libraries are loaded when they are used.
(declare-function dom-by-tag "dom" (dom tag))
(declare-function dom-texts "dom" (node &optional separator))
(declare-function puny-encode-domain "puny" (domain))
(declare-function shr-insert-document "shr" (dom))
(declare-function url-expand-file-name "url-expand" (url &optional default))
(declare-function url-host "url-parse" (url))
(declare-function url-portspec "url-parse" (url))
(declare-function url-type "url-parse" (url))
(declare-function url-unhex-string "url-util" (str &optional allow-newlines))
(defvar shr-bullet)
(defvar shr-external-rendering-functions)
(defvar shr-inhibit-images)
(defvar shr-use-colors)
(defvar shr-use-fonts)
(defvar shr-width)

;;; Fetching an address

;; Addresses are fetched by curl, as requests to the model are sent: curl asks
;; for no password, has no cookies, checks certificates, and Emacs does not wait
;; for it.  A redirect to another site is reported, not followed.

(cl-defstruct (efrit-fetched (:constructor efrit-fetched-create) (:copier nil))
  "The answer of a site.
URL is the final address, STATUS a number, HEADERS an alist with lower-case
names, BODY a unibyte string.  CUT is nil, or why the body is incomplete:
`late', `long' or `broken'.  LEADS-TO is the address on another site that
URL redirects to, or nil."
  url status headers body cut leads-to)

(defun efrit-fetch-url (url)
  "Return URL encoded for a request; signal an error if it is not allowed."
  (let ((case-fold-search t))
    (cond ((not (string-match-p "\\`https?://[^/?#]" url))
           (user-error "%s is not an http or https address" url))
          ((string-match-p "[[:cntrl:][:space:]\"]" url)
           (user-error "The address has blanks, control characters or quotes; \
percent-encode them (a blank is %%20)"))
          ((string-match-p "\\`https?://[^/?#]*@" url)
           (user-error "The address has a user name in it; remove that"))
          ((> (length url) 8000)
           (user-error "The address is too long"))
          (t (efrit-fetch--ascii-host
              (url-encode-url (replace-regexp-in-string "#.*\\'" "" url)))))))

(defun efrit-fetch--ascii-host (url)
  "Return URL with its host in ASCII, so that no letter can pass for another."
  (require 'puny)
  (let* ((begin (string-match "[^/]+\\(?:[/?]\\|\\'\\)" url (length "http:/")))
         (end (or (string-match "[/?]" url begin) (length url))))
    (concat (substring url 0 begin)
            (puny-encode-domain (substring url begin end))
            (substring url end))))

(defconst efrit-fetch--problems
  '((1 . "the protocol is not http or https") (3 . "the address is malformed")
    (5 . "the name of the proxy is unknown") (6 . "the host is unknown")
    (7 . "the host refused the connection") (28 . "it did not answer in time")
    (35 . "no secure connection could be made") (47 . "there are too many redirects")
    (52 . "the host sent an empty answer") (56 . "the connection broke")
    (60 . "the certificate is not trusted") (61 . "the content encoding is unknown"))
  "Alist from curl's exit codes to their meanings.")

(defun efrit-fetch (call url then &optional redirects)
  "Get URL, from `efrit-fetch-url', for CALL; call THEN with an `efrit-fetched'.
If there is no answer, finish CALL with an error.  Follow REDIRECTS redirects
at most, by default `efrit-fetch-most-redirects'."
  (unless (executable-find (default-value 'efrit-http-program))
    (user-error "%s was not found; install curl, or set `efrit-http-program'"
                (default-value 'efrit-http-program)))
  (efrit-child-run
   call (list (default-value 'efrit-http-program) "-q" "--config" "-")
   (lambda (output end)
     (let ((fetched (efrit-fetch--read url output end)))
       (if fetched
           (efrit-fetch--follow-redirect call fetched then
                                         (or redirects efrit-fetch-most-redirects))
         (efrit-tool-fail call (efrit-fetch--problem url end)))))
   :input (efrit-fetch--config url)
   :seconds efrit-fetch-seconds
   :most efrit-fetch-most-bytes))

(defun efrit-fetch--config (url)
  "Return the options of curl for URL, a unibyte string.
Curl reads them from standard input, so that no process list has the address."
  (efrit-http-options
   url nil
   "compressed\ngloboff\n"
   (efrit-http-option "proto" "=http,https")
   (efrit-http-option "user-agent" (replace-regexp-in-string "[\\\"\n\r]" ""
                                                             efrit-fetch-user-agent))
   (efrit-http-option "connect-timeout" (format "%s" efrit-http-connect-timeout))))

(defun efrit-fetch--problem (url end)
  "Return the error text for URL, not fetched; END is as in `efrit-child-run'."
  (format "%s was not fetched: %s" url
          (cond ((eq end 'late) (format "it did not answer within %s seconds"
                                        efrit-fetch-seconds))
                ((cdr (assoc end efrit-fetch--problems)))
                (t (format "curl ended with %s" end)))))

(defun efrit-fetch--read (url output end)
  "Return the `efrit-fetched' of URL in OUTPUT, or nil if there is none.
END is as in `efrit-child-run'."
  (pcase (efrit-http-parse output)
    (`(,status ,headers ,body)
     (efrit-fetched-create
      :url url :status status :headers headers :body body
      :cut (cond ((symbolp end) end)
                 ((not (eql end 0)) 'broken))))))

(defun efrit-fetch--follow-redirect (call fetched then redirects)
  "Follow the redirect of FETCHED for CALL, REDIRECTS times at most.
If there is no redirect, or one to another site, call THEN with FETCHED."
  (let ((next (efrit-fetch--next fetched)))
    (cond ((null next) (funcall then fetched))
          ((not (efrit-fetch--same-site-p (efrit-fetched-url fetched) next))
           (setf (efrit-fetched-leads-to fetched) next)
           (funcall then fetched))
          ((< redirects 1)
           (user-error "There were more than %d redirects, the last to %s"
                       efrit-fetch-most-redirects (efrit-fetched-url fetched)))
          (t (efrit-fetch call next then (1- redirects))))))

(defun efrit-fetch--next (fetched)
  "Return the address that FETCHED redirects to, or nil if it does not redirect."
  (when-let* ((location (and (memq (efrit-fetched-status fetched) '(301 302 303 307 308))
                             (cdr (assoc "location" (efrit-fetched-headers fetched))))))
    (require 'url-expand)
    (efrit-fetch-url (url-expand-file-name (decode-coding-string location 'utf-8)
                                           (efrit-fetched-url fetched)))))

(defun efrit-fetch--same-site-p (url next)
  "Return non-nil if NEXT has URL's host, but for www., its port and security."
  (let ((from (url-generic-parse-url url))
        (to (url-generic-parse-url next)))
    (and (string= (efrit-fetch--site from) (efrit-fetch--site to))
         (or (equal (url-type from) "http") (equal (url-type to) "https"))
         (equal (url-portspec from) (url-portspec to)))))

(defun efrit-fetch--site (url)
  "Return the host of URL, a parsed one, without a leading www."
  (string-remove-prefix "www." (downcase (or (url-host url) ""))))

;;; Laying out a page

;; This can take long, so a separate batch Emacs does it: it loads this file,
;; fetches nothing, and runs no script.

(defun efrit-web-print-page ()
  "Print the HTML page in the file on the command line as text; for a batch Emacs.
The arguments are the file, its URL, and \"links\" to print links as well."
  (require 'shr)
  (require 'url-util)
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

;;; Tools

(efrit-define-tool fetch_url
    ((url "string" "")
     (links "boolean" "" :optional t))
  "Get a web page as text. Redirects to another site are reported, not followed."
  :resolve (lambda (_loop arguments)
             (plist-put arguments :url (efrit-fetch-url (plist-get arguments :url))))
  :effects nil
  :async t
  (efrit-fetch call (efrit-fetch-url url)
               (lambda (fetched) (efrit-web--finish-call call fetched links))))

(efrit-define-tool web_search
    ((query "string" ""))
  "Search the web: results with their addresses."
  :effects nil
  :async t
  :question #'efrit-web--question
  (when (string-blank-p query)
    (user-error "Give words to search for"))
  (efrit-fetch call (efrit-fetch-url (efrit-web-search-address query))
               (lambda (fetched) (efrit-web--finish-call call fetched t))))

(defun efrit-web-search-address (query)
  "Return the address of a search for QUERY."
  (unless (string-search "%s" efrit-web-search-url)
    (user-error "`efrit-web-search-url' has no %%s for the query"))
  (string-replace "%s" (url-hexify-string query) efrit-web-search-url))

(defun efrit-web--question (_loop _arguments)
  "Return the question to the person about a search, which names the engine."
  (format "Search the web by %s?"
          (if (string-match "\\`[^:]+://\\([^/?#]+\\)" efrit-web-search-url)
              (match-string 1 efrit-web-search-url)
            efrit-web-search-url)))

(defun efrit-web--finish-call (call fetched links)
  "Finish CALL with FETCHED as text; with LINKS, show the addresses of links."
  (let ((kind (efrit-web--kind fetched)))
    (cond ((efrit-fetched-leads-to fetched)
           (efrit-tool-finish
            call (efrit-tool-mark-own
                  (format "%s redirects to another site: %s\nfetch_url gets it."
                          (efrit-fetched-url fetched) (efrit-fetched-leads-to fetched)))))
          ((null kind)
           (efrit-web--finish call fetched (efrit-tool-mark-own "It is not text, and not shown.")))
          ((not (eq kind 'page))
           (efrit-web--finish call fetched (efrit-web--text fetched nil)))
          ((not (libxml-available-p))
           (efrit-web--finish call fetched (efrit-web--text fetched t)
                              "This Emacs cannot lay out pages; here is the HTML."))
          (t (efrit-web--render call fetched (efrit-web--text fetched t) links)))))

(defun efrit-web--kind (fetched)
  "Return the kind of the body of FETCHED: `page', `text', or nil for neither."
  (let* ((body (efrit-fetched-body fetched))
         (type (efrit-web--type fetched))
         (begin (substring body 0 (min 1000 (length body)))))
    (cond ((member type '("text/html" "application/xhtml+xml")) 'page)
          ((string-match-p "\\`text/\\|[/+]\\(?:json\\|xml\\|yaml\\|toml\\|javascript\\|x-sh\\)\\'"
                           type)
           'text)
          ((not (string-empty-p type)) nil)
          ((string-search "\0" begin) nil)
          ((string-match-p "<html\\|<!doctype html" (downcase begin)) 'page)
          (t 'text))))

(defun efrit-web--type (fetched)
  "Return the content type of FETCHED, in lower case, or \"\"."
  (downcase (string-trim (car (split-string
                               (or (cdr (assoc "content-type" (efrit-fetched-headers fetched))) "") ";")))))

(defun efrit-web--text (fetched is-page)
  "Return the body of FETCHED as decoded text; it is HTML if IS-PAGE is non-nil."
  (let* ((body (efrit-fetched-body fetched))
         (charset (or (efrit-web--charset (cdr (assoc "content-type" (efrit-fetched-headers fetched))))
                      (and is-page
                           (efrit-web--charset
                            (substring body 0 (min 2000 (length body)))))))
         (text (decode-coding-string body (or charset 'utf-8))))
    (replace-regexp-in-string
     "\r\n?" "\n"
     (if (and (null charset) (memq 'eight-bit (find-charset-string text)))
         (decode-coding-string body 'windows-1252)
       text))))

(defun efrit-web--charset (text)
  "Return the coding system named in TEXT, a header or a page, or nil."
  (let ((case-fold-search t))
    (when (and text (string-match "charset=[\"' ]*\\([-a-z0-9_]+\\)" text))
      (let* ((name (downcase (match-string 1 text)))
             (coding (intern-soft (if (equal name "utf8") "utf-8" name))))
        (and coding (coding-system-p coding) coding)))))

(defun efrit-web--render (call fetched html links)
  "Finish CALL with HTML, from FETCHED, as text, with link addresses if LINKS."
  (let ((file (make-temp-file "efrit-page-" nil ".html"))
        (coding-system-for-write 'utf-8-unix))
    (write-region html nil file nil 'silent)
    (efrit-child-run
     call (list (expand-file-name invocation-name invocation-directory)
                "-Q" "--batch" "-L" (file-name-directory (locate-library "efrit-tools-web"))
                "-l" "efrit-tools-web" "-f" "efrit-web-print-page"
                file (efrit-fetched-url fetched) (if links "links" "text"))
     (lambda (output end)
       (let ((text (decode-coding-string output 'utf-8-unix)))
         (if (eql end 0)
             (efrit-web--finish call fetched text)
           (efrit-web--finish call fetched html
                              (format "The page could not be laid out (%s); here is the HTML."
                                      end)))))
     :seconds efrit-web-render-seconds
     :clean-up (lambda () (delete-file file)))))

(defun efrit-web--finish (call fetched text &optional note)
  "Finish CALL with TEXT, from FETCHED, below NOTE, a line about it or nil."
  (let* ((status (efrit-fetched-status fetched))
         (heading (format "%s (%d%s, %d bytes)" (efrit-fetched-url fetched) status
                          (let ((type (efrit-web--type fetched)))
                            (if (string-empty-p type) "" (concat ", " type)))
                          (length (efrit-fetched-body fetched))))
         (cut (pcase (efrit-fetched-cut fetched)
                ('long (format "[Cut after %d bytes.]" efrit-fetch-most-bytes))
                ('late (format "[Cut after %s seconds.]" efrit-fetch-seconds))
                ('broken "[The connection broke; the rest is missing.]"))))
    (efrit-tool-finish
     call
     (efrit-tool-result
      (string-join (delq nil (list (efrit-tool-mark-own heading)
                                   (and note (efrit-tool-mark-own note))
                                   ""
                                   (efrit-trim-right text)
                                   (and cut (efrit-tool-mark-own cut))))
                   "\n")
      :status (if (< status 400) 'success 'error)
      :summary (concat heading " " (replace-regexp-in-string "[ \t\n]+" " " text))))))

(provide 'efrit-tools-web)
;;; efrit-tools-web.el ends here
