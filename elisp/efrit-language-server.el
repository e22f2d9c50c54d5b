;;; efrit-language-server.el --- Ask language servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Asks the language servers that Eglot runs, by its public functions, and
;; applies their edits to texts.  A tool that renames a symbol.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-tools)
(require 'efrit-tools-emacs)
(eval-when-compile
  (require 'eieio)
  (require 'project)
  (require 'url-util)
  (eieio-declare-slots capabilities))

(declare-function jsonrpc-async-request "jsonrpc")
(declare-function slot-value "eieio" (object slot))
(declare-function eglot-managed-p "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-server-capable "eglot")
(declare-function eglot-path-to-uri "eglot")

;;; Asking

(defun efrit-language-server-can-p (capability)
  "Return non-nil if a language server with CAPABILITY manages this buffer."
  (when-let* ((server (efrit-language-server--current)))
    (if (fboundp 'eglot-server-capable)
        (eglot-server-capable capability)
      ;; An Eglot installed in Emacs 28 may have no public function for this.
      (let ((found (plist-member (slot-value server 'capabilities) capability)))
        (and found (not (eq (cadr found) :json-false)))))))

(defun efrit-language-server-ask (buffer method params then refused)
  "Send the request METHOD to the language server of BUFFER.
PARAMS is a function that returns, in BUFFER, what goes with its document.  Call
THEN with BUFFER's text at that time, the reply, and a function that goes to a
column as the server counts columns; or call REFUSED with the reason."
  ;; The Eglot of Emacs 30 notices changes in a timer that runs before this one.
  (efrit-run-at-time
   0 nil (lambda ()
           (condition-case err
               (with-current-buffer buffer
                 (efrit-language-server--request method (funcall params) then refused))
             (error
              (funcall refused (format "the language server could not be asked: %s"
                                       (error-message-string err))))))))

(defun efrit-language-server--current ()
  "Return the language server that manages this buffer, or nil."
  (and (fboundp 'eglot-managed-p)
       (fboundp 'eglot-current-server)
       (eglot-managed-p)
       (eglot-current-server)))

(defun efrit-language-server--request (method params then refused)
  "Send METHOD with PARAMS about this buffer; then call THEN or REFUSED.
Eglot delays a deferred request until it has sent the latest changes."
  (let ((text (efrit-file-text (current-buffer)))
        (move (efrit-language-server--column-function)))
    (jsonrpc-async-request
     (efrit-language-server--current) method
     (append (list :textDocument (list :uri (efrit-language-server--uri))) params)
     :deferred 'efrit-language-server
     :success-fn (lambda (reply) (funcall then text reply move))
     :error-fn (lambda (err)
                 (funcall refused (format "the language server refused: %s"
                                          (plist-get err :message))))
     :timeout efrit-format-seconds
     :timeout-fn (lambda ()
                   (funcall refused (format "the language server did not answer within %s \
seconds" efrit-format-seconds))))))

(defun efrit-language-server--uri ()
  "Return the URI of the file of this buffer, as Eglot sends it."
  (if (fboundp 'eglot-path-to-uri)
      (eglot-path-to-uri buffer-file-name)
    ;; Before Emacs 30 Eglot has no public function for this.
    (require 'url-util)
    (let ((allowed (copy-sequence url-path-allowed-chars)))
      (aset allowed ?: nil)
      (concat (if (eq system-type 'windows-nt) "file:///" "file://")
              (url-hexify-string (file-local-name (file-truename buffer-file-name))
                                 allowed)))))

(defun efrit-language-server--file (uri)
  "Return the name of the file of URI on the server's machine; signal for no file."
  (require 'url-util)
  (if (string-match "\\`file://[^/]*\\(/.*\\)\\'" uri)
      (let ((name (decode-coding-string (url-unhex-string (match-string 1 uri)) 'utf-8)))
        (if (string-match-p "\\`/[A-Za-z]:" name) (substring name 1) name))
    (efrit-plan-refuse "the language server would change %s, which is no file" uri)))

;;; Columns and edits

(defun efrit-language-server--column-function ()
  "Return a function to go to a column as this buffer's server counts columns."
  (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                '(eglot-move-to-linepos-function eglot-move-to-column-function))
      #'move-to-column))

(defun efrit-language-server--position ()
  "Return the position of point as this buffer's server counts columns."
  (let ((column (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                              '(eglot-current-linepos-function eglot-current-column-function))
                    #'current-column)))
    (list :line (1- (line-number-at-pos nil t)) :character (funcall column))))

(defun efrit-language-server-apply (text edits move)
  "Return TEXT with EDITS of a language server applied.
MOVE is a function that goes to a column, see `efrit-language-server-ask'."
  (with-temp-buffer
    (insert text)
    (let ((places (cl-loop for edit across (or edits [])
                           for number from 0
                           collect (list (efrit-language-server--go edit :start move)
                                         number
                                         (efrit-language-server--go edit :end move)
                                         (plist-get edit :newText)))))
      ;; Edit from the end backwards, so that the remaining positions stay valid.
      (pcase-dolist (`(,begin ,_ ,end ,new)
                     (sort places (lambda (a b)
                                    (or (> (car a) (car b))
                                        (and (= (car a) (car b)) (> (cadr a) (cadr b)))))))
        (delete-region begin end)
        (goto-char begin)
        (insert (if (string-search "\r" text) new (string-replace "\r\n" "\n" new)))))
    (buffer-string)))

(defun efrit-language-server--go (edit which move)
  "Go to the position WHICH, `:start' or `:end', of EDIT, and return it.
MOVE is as in `efrit-language-server-apply'."
  (let ((place (plist-get (plist-get edit :range) which)))
    (goto-char (point-min))
    (forward-line (plist-get place :line))
    (unless (eobp)
      (funcall move (plist-get place :character)))
    (point)))

;;; Renaming

;; The server says what it would edit; that makes one plan of all files, which
;; the person sees as one diff, and which is undone as one.

(efrit-define-tool rename_symbol
    ((path "string" "")
     (symbol "string" "")
     (new_name "string" "")
     (line "integer" "" :optional t :minimum 1))
  "Rename a symbol in all files, by the language server of the file."
  :plan #'efrit-rename--plan
  (efrit-plan-carry-out call))

(defun efrit-rename--plan (loop given then refused)
  "Plan in LOOP to rename the symbol in GIVEN, the arguments.
Call THEN with the plan, or REFUSED with the reason."
  (condition-case err
      (let* ((visit (efrit-rename--visit loop given))
             (refused (lambda (reason)
                        (efrit-visit-release visit)
                        (funcall refused reason))))
        (efrit-language-server-ask
         (car visit) :textDocument/rename
         (lambda ()
           (list :position (efrit-rename--position given)
                 :newName (plist-get given :new_name)))
         (lambda (_text reply move)
           (efrit-visit-release visit)
           (efrit-rename--plan-reply loop given reply move then refused))
         refused))
    (efrit-plan-refused (funcall refused (cadr err)))
    (error (funcall refused (error-message-string err)))))

(defun efrit-rename--visit (loop given)
  "Return (BUFFER . OPENED) for the file in GIVEN, see `efrit-visit-open'.
Refuse a file in LOOP whose language server cannot rename."
  (let* ((path (plist-get given :path))
         (call (efrit-tool-call-create :owner loop))
         (visit (efrit-rename--open call (efrit-visit-existing-file call path))))
    (unless (with-current-buffer (car visit)
              (efrit-language-server-can-p :renameProvider))
      (efrit-visit-release visit)
      (efrit-plan-refuse "no language server that renames runs for %s; the person can start one \
with M-x eglot.  Without it, find_references and multi_edit rename" path))
    visit))

(defun efrit-rename--open (call file)
  "Return (BUFFER . OPENED) for FILE in CALL's project, see `efrit-visit-open'.
Eglot manages a buffer just opened if it manages others of the project."
  (require 'project)
  ;; A file is opened without version control, by which Emacs finds the project.
  (let* ((others (efrit-visit-buffers call))
         (managed (seq-find (lambda (buffer)
                              (with-current-buffer buffer (efrit-language-server--current)))
                            others))
         (project (and managed (with-current-buffer managed (project-current))))
         (project-find-functions (if project (list (lambda (_) project))
                                   project-find-functions)))
    (efrit-visit-open file)))

(defun efrit-rename--position (given)
  "Return the position in this buffer of the symbol in GIVEN, for the server."
  (pcase-let (((map :symbol :line) given))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        (when line
          (forward-line (1- line)))
        (let ((case-fold-search nil))
          (unless (re-search-forward (format "\\_<%s\\_>" (regexp-quote symbol))
                                     (and line (line-end-position)) t)
            (error "%s is not in %s of %s" symbol
                   (if line (format "line %d" line) "the text") (plist-get given :path))))
        (goto-char (match-beginning 0))
        (efrit-language-server--position)))))

(defun efrit-rename--plan-reply (loop given reply move then refused)
  "Make the plan of GIVEN in LOOP from REPLY, a server's edits of many files.
MOVE is as in `efrit-language-server-apply'.  Call THEN with the plan, or
REFUSED with the reason."
  (condition-case err
      (let ((edits (efrit-rename--edits loop reply)))
        (unless edits
          (efrit-plan-refuse "the language server finds nothing to rename there"))
        (efrit-plan-for-files
         loop (mapcar #'car edits)
         (lambda (files) (efrit-rename--plan-of given edits files move))
         then refused))
    (efrit-plan-refused (funcall refused (cadr err)))
    (error (funcall refused (error-message-string err)))))

(defun efrit-rename--plan-of (given edits files move)
  "Return the plan of GIVEN; EDITS is an alist from paths to vectors of edits.
FILES are the reports on the paths; MOVE is as in `efrit-language-server-apply'."
  (let ((changes (cl-loop for (path . those) in edits
                          for change = (progn (efrit-edit-existing path files)
                                              (efrit-plan-change 'edit path files))
                          do (setf (efrit-change-after change)
                                   (efrit-language-server-apply (efrit-change-before change)
                                                                those move))
                          collect change)))
    (efrit-plan-create
     :changes changes
     :report (format "Renamed %s to %s, by the language server, in %s: %s."
                     (plist-get given :symbol) (plist-get given :new_name)
                     (efrit-count-text (length edits) "file")
                     (mapconcat (lambda (those)
                                  (format "%s (%s)" (car those)
                                          (efrit-count-text (length (cdr those)) "place")))
                                edits ", ")))))

(defun efrit-rename--edits (loop reply)
  "Return an alist from paths in LOOP to vectors of edits, from REPLY of a server.
Refuse a reply that would also create, rename or delete files."
  (let* ((edits nil)
         (note (lambda (uri those)
                 (push (cons (efrit-rename--path loop uri) those) edits))))
    (cl-loop for (key those) on (plist-get reply :changes) by #'cddr
             do (funcall note (substring (symbol-name key) 1) those))
    (seq-doseq (change (or (plist-get reply :documentChanges) []))
      (when (plist-get change :kind)
        (efrit-plan-refuse "the language server would also %s a file; rename without it"
                           (plist-get change :kind)))
      (funcall note (plist-get (plist-get change :textDocument) :uri) (plist-get change :edits)))
    (cl-loop for (path . lists) in (seq-group-by #'car edits)
             for those = (apply #'vconcat (mapcar #'cdr lists))
             unless (seq-empty-p those)
             collect (cons path those) into found
             finally return (sort found (lambda (a b) (string< (car a) (car b)))))))

(defun efrit-rename--path (loop uri)
  "Return the path of the file of URI, relative if it is in the project of LOOP."
  (let* ((root (efrit-loop-root loop))
         (file (concat (file-remote-p root) (efrit-language-server--file uri)))
         (call (efrit-tool-call-create :owner loop)))
    (if (efrit-visit-inside-p call file)
        (file-relative-name (file-truename file) (efrit-visit-root call))
      (file-local-name file))))

(provide 'efrit-language-server)
;;; efrit-language-server.el ends here
