;;; efrit-permissions.el --- What the model may do without asking  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A rule is (TOOL PATTERN DECISION): TOOL a tool's name or t for all,
;; PATTERN a regular expression for what the call is about (its command,
;; its code, its address, its path, else its arguments), or t, DECISION
;; `allow', `ask' or `deny'.  The first rule that fits decides: those of the
;; session, then those remembered for the project, then the person's option;
;; where none does, the tool's own policy.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-json)
(require 'efrit-tools)
(require 'seq)

;;; Options

(defcustom efrit-permission-rules nil
  "Rules for all projects: a list of (TOOL PATTERN DECISION).
TOOL is a name or t, PATTERN a regular expression or t."
  :group 'efrit
  :type '(repeat (list (choice (const :tag "Every tool" t) (string :tag "Tool"))
                       (choice (const :tag "Everything" t) (regexp :tag "About"))
                       (choice (const allow) (const ask) (const deny)))))

(defcustom efrit-permissions-file (locate-user-emacs-file "efrit-permissions.eld")
  "Where the rules remembered for projects are kept."
  :group 'efrit
  :type 'file)

;;; Public

(defconst efrit-permissions--subjects '(:command :code :url :path :paths :pattern)
  "What of a call's arguments says what it is about, the first that is there.")

(defun efrit-permissions-subject (arguments)
  "Return what a call with ARGUMENTS, a JSON text, is about, a string."
  (let* ((plist (ignore-errors (efrit-json-plist arguments)))
         (value (seq-some (lambda (name) (plist-get plist name))
                          efrit-permissions--subjects)))
    (cond ((stringp value) value)
          ((and (vectorp value) (seq-every-p #'stringp value)) (string-join value " "))
          (t arguments))))

(defun efrit-permissions-decide (tool arguments policy root rules)
  "Decide about a call of TOOL, a name, with ARGUMENTS, a JSON text.
POLICY, `allow' or `ask', stands where no rule fits; ROOT is the project,
RULES are those of the session.  Return `allow', `ask' or `deny': the
strictest where the call is about several files.  Where rules cannot be
read, the person is asked."
  (condition-case err
      (let* ((rules (append rules (efrit-permissions-of root) efrit-permission-rules))
             (decisions (mapcar (lambda (subject)
                                  (efrit-permissions--decision tool subject policy rules))
                                (efrit-permissions--subjects-of arguments))))
        (seq-find (lambda (decision) (memq decision decisions)) '(deny ask allow)))
    (error (message "efrit: permissions cannot be read: %s" (error-message-string err))
           'ask)))

(defun efrit-permissions-rule (tool arguments decision)
  "Return the rule by which DECISION is remembered for TOOL with ARGUMENTS.
What only looks is remembered for all calls of TOOL; a command or code
for that very text, as is what a tool asks in words of its own; an address
for its site."
  (let ((plist (ignore-errors (efrit-json-plist arguments)))
        (own (efrit-tool-named tool)))
    (list tool
          (cond ((plist-get plist :url)
                 (efrit-permissions--site (plist-get plist :url)))
                ((or (plist-get plist :command) (plist-get plist :code)
                     (and own (efrit-tool-question own)))
                 (efrit-permissions--exactly (efrit-permissions-subject arguments)))
                (t t))
          decision)))

(defun efrit-permissions-of (root)
  "Return the rules remembered for the project ROOT."
  (cdr (assoc (efrit-permissions--key root) (efrit-permissions--read))))

(defun efrit-permissions-remember (root rule)
  "Remember RULE for the project ROOT."
  (let* ((all (efrit-permissions--read))
         (key (efrit-permissions--key root))
         (rules (cons rule (delete rule (cdr (assoc key all))))))
    (efrit-permissions--write
     (cons (cons key rules) (assoc-delete-all key all)))))

;;; Commands

;;;###autoload
(defun efrit-permissions-forget (root)
  "Forget what was remembered for the project ROOT."
  (interactive
   (list (completing-read "Forget the permissions of: "
                          (or (mapcar #'car (efrit-permissions--read))
                              (user-error "No project has permissions"))
                          nil t)))
  (efrit-permissions--write
   (assoc-delete-all (efrit-permissions--key root) (efrit-permissions--read))))

;;; Private

(defun efrit-permissions--exactly (text)
  "Return the pattern that only TEXT matches."
  (concat "\\`" (regexp-quote text) "\\'"))

(defun efrit-permissions--site (url)
  "Return the pattern for addresses of the same site as URL."
  (if (string-match "\\`https?://[^/?#\\@[:space:]]+" url)
      (concat "\\`" (regexp-quote (match-string 0 url)) "\\(?:[/?#]\\|\\'\\)")
    (efrit-permissions--exactly url)))

(defun efrit-permissions--subjects-of (arguments)
  "Return each thing that a call with ARGUMENTS, a JSON text, is about.
An edit of several files, or a new name, is about each of them."
  (let* ((plist (ignore-errors (efrit-json-plist arguments)))
         (edits (plist-get plist :edits))
         (to (plist-get plist :to)))
    (or (seq-uniq
         (seq-filter #'stringp
                     (append (and to (list (plist-get plist :path) to))
                             (and (vectorp edits)
                                  (mapcar (lambda (edit)
                                            (and (listp edit) (plist-get edit :path)))
                                          edits)))))
        (list (efrit-permissions-subject arguments)))))

(defun efrit-permissions--decision (tool subject policy rules)
  "Return what RULES say of a call of TOOL about SUBJECT, or POLICY."
  (let ((rule (seq-find (lambda (rule) (efrit-permissions--fits-p rule tool subject))
                        rules)))
    (if rule (nth 2 rule) policy)))

(defun efrit-permissions--fits-p (rule tool subject)
  "Return non-nil if RULE is about a call of TOOL about SUBJECT."
  (pcase-let ((`(,name ,pattern ,_) rule))
    (and (or (eq name t) (equal name tool))
         (or (eq pattern t)
             (let ((case-fold-search nil))
               (string-match-p pattern subject))))))

(defun efrit-permissions--key (root)
  "Return the name under which the rules of ROOT are kept."
  (directory-file-name (expand-file-name root)))

(defun efrit-permissions--read ()
  "Return the content of `efrit-permissions-file': an alist of roots and rules."
  (when (file-readable-p efrit-permissions-file)
    (with-temp-buffer
      (insert-file-contents efrit-permissions-file)
      (condition-case nil
          (read (current-buffer))
        (error (user-error "%s is damaged: repair or remove it" efrit-permissions-file))))))

(defun efrit-permissions--write (all)
  "Write ALL to `efrit-permissions-file', whole or not at all."
  (let ((new (make-temp-file (concat (expand-file-name efrit-permissions-file) "-")))
        (print-length nil)
        (print-level nil))
    (with-temp-file new
      (insert ";; What the model may do, by project.  -*- mode: lisp-data -*-\n")
      (pp all (current-buffer)))
    (rename-file new efrit-permissions-file t)))

(provide 'efrit-permissions)
;;; efrit-permissions.el ends here
