;;; efrit-tools-web.el --- Tools for the web  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that fetch pages and search the web.  The person is asked, and sees
;; the address.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-backend)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)

;; Those of libraries that are loaded where they are used.
(declare-function url-expand-file-name "url-expand" (url &optional default))
(declare-function url-host "url-parse" (url))
(declare-function url-portspec "url-parse" (url))
(declare-function url-type "url-parse" (url))

;;; Fetching an address

;; By curl, like the requests to the model: it never asks for a password,
;; knows no cookies, checks certificates, and does not make Emacs wait.  Only
;; the site that the person agreed to is asked: a redirect to another one is
;; told, not followed.

(cl-defstruct (efrit-fetched (:constructor efrit-fetched-create) (:copier nil))
  "What a site answered.
URL is the address in the end, STATUS a number, HEADERS an alist with
lower-case names, BODY a unibyte string; CUT says why it is not whole:
`late', `long', `broken', or nil.  LEADS-TO is the address of another site that it
redirects to, or nil."
  url status headers body cut leads-to)

(defun efrit-fetch-url (url)
  "Return URL, the model's, as it is asked for; signal an error if it is none."
  (let ((case-fold-search t))
    (cond ((not (string-match-p "\\`https?://[^/?#]" url))
           (user-error "%s is no http or https address" url))
          ((string-match-p "[[:cntrl:][:space:]\"]" url)
           (user-error "The address has blanks or control characters; encode them by %%20"))
          ((string-match-p "\\`https?://[^/?#]*@" url)
           (user-error "The address has a user's name in it; give one without"))
          ((> (length url) 8000)
           (user-error "The address is too long"))
          (t (url-encode-url (replace-regexp-in-string "#.*\\'" "" url))))))

(defun efrit-fetch (call url then)
  "Get URL, from `efrit-fetch-url', for CALL, then THEN with the `efrit-fetched'.
Where there is no answer, CALL is finished with the reason."
  (efrit-fetch--step call url then efrit-fetch-most-redirects))

(defun efrit-fetch-header (fetched name)
  "Return the header NAME, in lower case, of FETCHED, or nil."
  (cdr (assoc name (efrit-fetched-headers fetched))))

(defconst efrit-fetch--problems
  '((1 . "its protocol is none of http and https") (3 . "it is no address")
    (5 . "the proxy's name is not known") (6 . "its host is not known")
    (7 . "its host does not take connections") (28 . "it did not answer in time")
    (35 . "no secure connection could be made") (47 . "it redirects without end")
    (52 . "its host answered nothing") (56 . "the connection broke")
    (60 . "its certificate is not trusted") (61 . "its encoding is not known"))
  "Meanings of curl's exit codes.")

(defun efrit-fetch--step (call url then redirects)
  "Get URL for CALL, then THEN; follow so many REDIRECTS."
  (unless (executable-find (default-value 'efrit-http-program))
    (user-error "There is no %s: install curl, or set `efrit-http-program'"
                (default-value 'efrit-http-program)))
  (efrit-child-run
   call (list (default-value 'efrit-http-program) "-q" "--config" "-")
   (lambda (output end)
     (let ((fetched (efrit-fetch--read url output end)))
       (if fetched
           (efrit-fetch--follow-redirect call fetched then redirects)
         (efrit-tool-finish
          call (efrit-tool-result (efrit-fetch--problem url end) :status 'error)))))
   :input (efrit-fetch--config url)
   :seconds efrit-fetch-seconds
   :most efrit-fetch-most-bytes))

(defun efrit-fetch--config (url)
  "Return curl's options for URL, a unibyte string.
They come by its standard input, so that no process list shows the address."
  (efrit-http-options
   url nil
   "compressed\ngloboff\n"
   (efrit-http-option "proto" "=http,https")
   (efrit-http-option "user-agent" (replace-regexp-in-string "[\\\"\n\r]" ""
                                                             efrit-fetch-user-agent))
   (efrit-http-option "connect-timeout" (format "%s" efrit-http-connect-timeout))))

(defun efrit-fetch--problem (url end)
  "Return what is said where URL gave nothing; END is how curl ended."
  (format "%s was not fetched: %s" url
          (cond ((eq end 'late) (format "it did not answer within %s seconds"
                                        efrit-fetch-seconds))
                ((cdr (assoc end efrit-fetch--problems)))
                (t (format "curl ended with %s" end)))))

(defun efrit-fetch--read (url output end)
  "Return the answer of URL in OUTPUT, or nil if there is none.
END is how curl ended."
  (pcase (efrit-http-parse output)
    (`(,status ,headers ,body)
     (efrit-fetched-create
      :url url :status status :headers headers :body body
      :cut (cond ((symbolp end) end)
                 ((not (eql end 0)) 'broken))))))

(defun efrit-fetch--follow-redirect (call fetched then redirects)
  "Follow where FETCHED leads, for CALL, with REDIRECTS left; else call THEN."
  (let ((next (efrit-fetch--next fetched)))
    (cond ((null next) (funcall then fetched))
          ((not (efrit-fetch--same-site-p (efrit-fetched-url fetched) next))
           (setf (efrit-fetched-leads-to fetched) next)
           (funcall then fetched))
          ((< redirects 1)
           (user-error "%s redirects more than %d times" (efrit-fetched-url fetched)
                       efrit-fetch-most-redirects))
          (t (efrit-fetch--step call next then (1- redirects))))))

(defun efrit-fetch--next (fetched)
  "Return the address that FETCHED redirects to, or nil."
  (when-let* ((location (and (memq (efrit-fetched-status fetched) '(301 302 303 307 308))
                             (efrit-fetch-header fetched "location"))))
    (require 'url-expand)
    (efrit-fetch-url (url-expand-file-name (decode-coding-string location 'utf-8)
                                           (efrit-fetched-url fetched)))))

(defun efrit-fetch--same-site-p (url next)
  "Return non-nil if NEXT is of the site of URL, and no less secure."
  (let ((from (url-generic-parse-url url))
        (to (url-generic-parse-url next)))
    (and (string= (efrit-fetch--site from) (efrit-fetch--site to))
         (or (equal (url-type from) "http") (equal (url-type to) "https"))
         (equal (url-portspec from) (url-portspec to)))))

(defun efrit-fetch--site (url)
  "Return the host of URL, as parsed, without a www."
  (string-remove-prefix "www." (downcase (or (url-host url) ""))))

;;; Tools

;; Pages as text, and what a search engine finds.  The person is asked, and
;; sees the address.

(efrit-define-tool fetch_url
    ((url "string" "")
     (links "boolean" "" :optional t))
  "Get a web page as text. Redirects to another site are told, not followed."
  :effects nil
  :async t
  (efrit-fetch call (efrit-fetch-url url)
               (lambda (fetched) (efrit-web--finish-call call fetched links))))

(efrit-define-tool web_search
    ((query "string" ""))
  "Search the web: what is found, with addresses."
  :effects nil
  :async t
  :question #'efrit-web--question
  (when (string-blank-p query)
    (user-error "Give words to search for"))
  (efrit-fetch call (efrit-fetch-url (efrit-web-search-address query))
               (lambda (fetched) (efrit-web--finish-call call fetched t))))

(defun efrit-web-search-address (query)
  "Return the address at which QUERY is searched for."
  (unless (string-search "%s" efrit-web-search-url)
    (user-error "`efrit-web-search-url' has no %%s in it"))
  (string-replace "%s" (url-hexify-string query) efrit-web-search-url))

(defun efrit-web--question (_loop arguments)
  "Return what the person is asked before a search with ARGUMENTS."
  (let ((query (plist-get arguments :query)))
    (format "May web_search ask %s?  %s"
            (if (string-match "\\`[^:]+://\\([^/?#]+\\)" efrit-web-search-url)
                (match-string 1 efrit-web-search-url)
              efrit-web-search-url)
            query)))

(defun efrit-web--finish-call (call fetched links)
  "Finish CALL with FETCHED as text, with LINKS, if non-nil."
  (let ((kind (efrit-web--kind fetched)))
    (cond ((efrit-fetched-leads-to fetched)
           (efrit-tool-finish
            call (efrit-tool-mark-own
                  (format "%s redirects to another site: %s\nfetch_url gets it."
                          (efrit-fetched-url fetched) (efrit-fetched-leads-to fetched)))))
          ((null kind)
           (efrit-web--finish call fetched (efrit-tool-mark-own "It is no text, and not shown.")))
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
     :clean-up (lambda () (delete-file file)))))

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
      (string-join (delq nil (list (efrit-tool-mark-own said)
                                   (and note (efrit-tool-mark-own note))
                                   ""
                                   (string-trim-right text)
                                   (and cut (efrit-tool-mark-own cut))))
                   "\n")
      :status (if (< status 400) 'success 'error)
      :summary (truncate-string-to-width
                (concat said " " (replace-regexp-in-string "[ \t\n]+" " " text))
                490 nil nil "…")))))

(provide 'efrit-tools-web)
;;; efrit-tools-web.el ends here
