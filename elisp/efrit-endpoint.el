;;; efrit-endpoint.el --- Where the model is, and what it may be sent  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The address that requests go to, what is known there besides plain
;; messages, and the key: one for exactly that host, which never goes over
;; the network for everybody to read.

;;; Code:

(require 'auth-source)
(require 'cl-lib)
(require 'efrit)
(require 'subr-x)
(require 'url-parse)

;;; Options

(defgroup efrit-claude nil
  "The model, and how it is talked to."
  :group 'efrit)

(defcustom efrit-claude-url "https://api.anthropic.com/v1/messages"
  "Where requests go: any server that speaks the Messages API.
The whole address, with http:// or https:// in front."
  :type 'string)

(defcustom efrit-claude-headers nil
  "Headers that every request has besides: an alist of strings."
  :type '(alist :key-type string :value-type string))

(defcustom efrit-claude-features 'auto
  "What the endpoint knows besides plain messages.
With `auto' everything at the vendor's own endpoint, and nothing
elsewhere, since local servers may refuse what they do not know.  For a
gateway to the vendor's models, choose what it passes on."
  :type '(choice (const auto)
                 (set (const cache) (const thinking) (const effort) (const task-budget)
                      (const binding) (const diagnostics))))

(defcustom efrit-claude-key-hosts '("api.anthropic.com")
  "Hosts that are sent the key in the variable ANTHROPIC_API_KEY.
Others get a key from `auth-source' alone, where it has one for them."
  :type '(repeat string))

(defcustom efrit-claude-key-in-clear nil
  "Whether a key may go over plain http to another machine.
Whoever is on the way can read it then."
  :type 'boolean)

(defconst efrit-endpoint--vendor "api.anthropic.com"
  "The host of the vendor's own endpoint.")

(defconst efrit-endpoint--all-features
  '(cache thinking effort task-budget binding diagnostics)
  "What `efrit-claude-features' may have.")

(defconst efrit-endpoint--secret-headers '("x-api-key" "authorization" "proxy-authorization")
  "Headers with a key in them.")

;;; Public

(defun efrit-endpoint-host ()
  "Return the host of the endpoint.
Signal a `user-error' where `efrit-claude-url' does not name one."
  (let* ((url (url-generic-parse-url efrit-claude-url))
         (host (url-host url)))
    (unless (and (member (url-type url) '("http" "https"))
                 host (not (string-empty-p host)))
      (user-error "`efrit-claude-url' is %s: it must begin with http:// or https:// and a host, \
such as http://localhost:11434/v1/messages" efrit-claude-url))
    host))

(defun efrit-endpoint-headers (betas)
  "Return the headers of a request that asks for BETAS, a list of names.
Signal a `user-error' where the vendor's endpoint would get no key, or
another machine a key that everybody can read."
  (let* ((host (efrit-endpoint-host))
         (key (efrit-endpoint--key host)))
    (when (and (null key) (equal host efrit-endpoint--vendor))
      (user-error "There is no key: put `machine %s login apikey password KEY' \
into ~/.authinfo.gpg, or set ANTHROPIC_API_KEY" host))
    (when (or key (efrit-endpoint-own-secret-p))
      (efrit-endpoint--check-secret host))
    (append '(("content-type" . "application/json")
              ("anthropic-version" . "2023-06-01"))
            (and key (list (cons "x-api-key" key)))
            (and betas (list (cons "anthropic-beta" (string-join betas ","))))
            efrit-claude-headers)))

(defun efrit-endpoint-feature-p (feature &optional model)
  "Return non-nil if the endpoint has FEATURE, and MODEL can do it.
MODEL is a plist of what the model can do, from the sidecar."
  (and (memq feature (if (eq efrit-claude-features 'auto)
                         (and (efrit-endpoint--vendors-p) efrit-endpoint--all-features)
                       efrit-claude-features))
       (pcase feature
         ('thinking (eq (plist-get model :adaptive_thinking) t))
         ('task-budget (eq (plist-get model :task_budgets) t))
         ('binding (eq (plist-get model :binding) t))
         (_ t))))

(defun efrit-endpoint-note ()
  "Return what a person is told of the endpoint once in a session, or nil."
  (and (eq efrit-claude-features 'auto)
       (not (efrit-endpoint--vendors-p))
       (format "%s gets plain messages: no prompt cache, no thinking, no effort; \
`efrit-claude-features' says what it knows"
               (efrit-endpoint-host))))

;;; Private

(defun efrit-endpoint--vendors-p ()
  "Return non-nil if the endpoint is the vendor's own."
  (equal (efrit-endpoint-host) efrit-endpoint--vendor))

(defun efrit-endpoint--key (host)
  "Return the key for HOST, or nil."
  (let* ((found (efrit-endpoint--found-key host))
         (secret (plist-get found :secret))
         (key (if (functionp secret) (funcall secret) secret)))
    (or key
        (and (member host efrit-claude-key-hosts)
             (getenv "ANTHROPIC_API_KEY")))))

(defun efrit-endpoint--found-key (host)
  "Return what `auth-source' has for HOST, or nil.
It keeps in mind what it did not find, so that is looked for again: the
person may have put the key there since."
  (let ((wanted (list :host host :user "apikey" :max 1)))
    (or (car (apply #'auth-source-search wanted))
        (progn
          (auth-source-forget wanted)
          (car (apply #'auth-source-search wanted))))))

(defun efrit-endpoint-own-secret-p ()
  "Return non-nil if the person's own headers have a key among them."
  (cl-some (lambda (header)
             (member (downcase (car header)) efrit-endpoint--secret-headers))
           efrit-claude-headers))

(defun efrit-endpoint--check-secret (host)
  "Signal a `user-error' where others could read what only HOST is to know."
  (unless (or efrit-claude-key-in-clear
              (equal (url-type (url-generic-parse-url efrit-claude-url)) "https")
              (efrit-endpoint--loopback-p host))
    (user-error "The key for %s would go there over plain http, for everybody on the way to \
read: use https, or set `efrit-claude-key-in-clear'" host)))

(defun efrit-endpoint--loopback-p (host)
  "Return non-nil if HOST is this machine."
  (or (member (downcase host) '("localhost" "::1" "[::1]"))
      (string-match-p "\\`127\\.[0-9]+\\.[0-9]+\\.[0-9]+\\'" host)))

(provide 'efrit-endpoint)
;;; efrit-endpoint.el ends here
