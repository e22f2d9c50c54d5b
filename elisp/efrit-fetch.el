;;; efrit-fetch.el --- Getting an address of the web  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; By curl, like the requests to the model: it never asks for a password,
;; knows no cookies, checks certificates, and does not make Emacs wait.  Only
;; the site that the person agreed to is asked: a redirect to another one is
;; told, not followed.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-child)
(require 'efrit-http)
(require 'efrit-tools)
(require 'seq)
(require 'subr-x)
(require 'url-expand)
(require 'url-parse)
(require 'url-util)

;;; Options

(defcustom efrit-fetch-seconds 30
  "How many seconds the answer of a site may take."
  :group 'efrit
  :type 'number)

(defcustom efrit-fetch-most-bytes 5000000
  "How many bytes of an answer are taken; the rest is cut off."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-fetch-most-redirects 5
  "How many redirects within a site are followed."
  :group 'efrit
  :type 'natnum)

(defcustom efrit-fetch-user-agent "Mozilla/5.0 (compatible; efrit)"
  "What sites are told of who asks them."
  :group 'efrit
  :type 'string)

;;; Structs

(cl-defstruct (efrit-fetched (:constructor efrit-fetched-create) (:copier nil))
  "What a site answered.
URL is the address in the end, STATUS a number, HEADERS an alist with
lower-case names, BODY a unibyte string; CUT says why it is not whole:
`late', `long', `broken', or nil.  LEADS-TO is the address of another site that it
redirects to, or nil."
  url status headers body cut leads-to)

;;; Public

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

;;; Private

(defconst efrit-fetch--problems
  '((1 . "its protocol is none of http and https") (3 . "it is no address")
    (5 . "the proxy's name is not known") (6 . "its host is not known")
    (7 . "its host does not take connections") (28 . "it did not answer in time")
    (35 . "no secure connection could be made") (47 . "it redirects without end")
    (52 . "its host answered nothing") (56 . "the connection broke")
    (60 . "its certificate is not trusted") (61 . "its encoding is not known"))
  "What curl's exit codes mean.")

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
           (efrit-fetch--go-on call fetched then redirects)
         (efrit-tool-finish
          call (efrit-tool-result (efrit-fetch--problem url end) :status 'error)))))
   :input (efrit-fetch--config url)
   :seconds efrit-fetch-seconds
   :most efrit-fetch-most-bytes))

(defun efrit-fetch--config (url)
  "Return curl's options for URL, a unibyte string.
They come by its standard input, so that no process list shows the address."
  (encode-coding-string
   (concat "silent\nno-buffer\ninclude\ncompressed\ngloboff\nsuppress-connect-headers\n"
           "proto = \"=http,https\"\n"
           (format "url = \"%s\"\n" (replace-regexp-in-string "[\\\"]" "\\\\\\&" url))
           (format "user-agent = \"%s\"\n"
                   (replace-regexp-in-string "[\\\"\n\r]" "" efrit-fetch-user-agent))
           (format "connect-timeout = %d\n" efrit-http-connect-timeout))
   'utf-8-unix))

(defun efrit-fetch--problem (url end)
  "Return what is said where URL gave nothing; END is how curl ended."
  (format "%s was not fetched: %s" url
          (cond ((eq end 'late) (format "it did not answer within %s seconds"
                                        efrit-fetch-seconds))
                ((cdr (assoc end efrit-fetch--problems)))
                (t (format "curl ended with %s" end)))))

(defun efrit-fetch--read (url output end)
  "Return the answer of URL in OUTPUT, or nil if there is none.
END is how curl ended.  What comes before the answer itself is passed over."
  (when-let* ((position (string-search "\r\n\r\n" output)))
    (let ((lines (split-string (substring output 0 position) "\r\n"))
          (rest (substring output (+ position 4))))
      (cond ((string-match-p "\\`HTTP/[0-9.]+ 1" (car lines))
             (efrit-fetch--read url rest end))
            ((string-match "\\`HTTP/[0-9.]+ \\([0-9]+\\)" (car lines))
             (efrit-fetched-create
              :url url
              :status (string-to-number (match-string 1 (car lines)))
              :headers (efrit-fetch--headers (cdr lines))
              :body rest
              :cut (cond ((symbolp end) end)
                         ((not (eql end 0)) 'broken))))))))

(defun efrit-fetch--headers (lines)
  "Return the headers in LINES: an alist with lower-case names."
  (cl-loop for line in lines
           when (string-match "\\`\\([^:]+\\):[ \t]*\\(.*\\)\\'" line)
           collect (cons (downcase (match-string 1 line)) (match-string 2 line))))

(defun efrit-fetch--go-on (call fetched then redirects)
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

(provide 'efrit-fetch)
;;; efrit-fetch.el ends here
