;;; efrit-format-tool.el --- Formatting a file for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The formatted text is a plan like that of an edit: the person sees the
;; diff first, and it can be undone.  A language server is asked without
;; waiting for it; a mode formats a copy of the buffer.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-file)
(require 'efrit-plan)
(require 'efrit-tools)
(require 'efrit-visit)
(require 'jsonrpc)
(require 'seq)
(require 'subr-x)
(require 'url-util)

;;; Options

(defcustom efrit-format-functions
  (append (mapcar (lambda (mode) (cons mode 'json-pretty-print-buffer))
                  '(json-mode js-json-mode json-ts-mode))
          '((go-mode . gofmt) (rust-mode . rust-format-buffer)))
  "Functions that format the current buffer, by its major mode.
Where there is none, code is indented as its mode does it."
  :group 'efrit
  :type '(alist :key-type symbol :value-type function))

(defcustom efrit-format-meaningful-indentation
  '(python-mode python-base-mode haskell-mode elm-mode fsharp-mode nim-mode coffee-mode
                yaml-mode yaml-ts-mode makefile-mode haml-mode sass-mode pug-mode slim-mode)
  "Major modes of languages in which indentation has a meaning.
Their files are not indented, as Emacs could only guess."
  :group 'efrit
  :type '(repeat symbol))

(defcustom efrit-format-seconds 20
  "How many seconds a language server may take to format a file."
  :group 'efrit
  :type 'number)

(defcustom efrit-format-most-characters 300000
  "The longest text that Emacs formats itself, which it does without a pause."
  :group 'efrit
  :type 'natnum)

;;; Tools

(efrit-define-tool format_buffer
    ((path "string" ""))
  "Format a file by its language server, or as its mode does."
  :policy ask
  :async t
  :plan #'efrit-format--plan
  (efrit-plan-carry-out call))

;;; Private: planning

(defun efrit-format--plan (loop given then refused)
  "Plan in LOOP to format the file that GIVEN, arguments, names.
Call THEN with the plan, or REFUSED with what is wrong."
  (let ((buffer (efrit-format--managed loop (plist-get given :path)))
        (plan (lambda (edits)
                (funcall (efrit-plan-of-files
                          (lambda (arguments files)
                            (efrit-format--plan-of arguments files edits)))
                         loop given then refused))))
    (if buffer
        (efrit-format--ask-server buffer plan refused)
      (funcall plan nil))))

(defun efrit-format--plan-of (arguments files edits)
  "Return the plan of formatting the file of ARGUMENTS, which FILES knows.
EDITS, if non-nil, are of its language server: (TEXT . FUNCTION), where the
function makes the formatted text of TEXT."
  (let* ((path (plist-get arguments :path))
         (change (progn
                   (unless (eq t (plist-get (efrit-plan-file path files) :exists))
                     (efrit-plan-refuse "there is no file %s" path))
                   (efrit-plan-change 'edit path files)))
         (done nil))
    (unwind-protect
        (pcase-let* ((before (efrit-change-before change))
                     (`(,how . ,after) (if edits
                                           (efrit-format--by-server before path edits)
                                         (efrit-format--by-mode change))))
          (when (string= before after)
            (efrit-plan-refuse "%s is formatted already, as %s does it" path how))
          (setf (efrit-change-after change) after)
          (setq done t)
          (efrit-plan-create :changes (list change)
                             :said (format "Formatted %s by %s." path how)))
      (unless done
        (efrit-change-let-go change)))))

(defun efrit-format--by-server (before path edits)
  "Return (HOW . TEXT) for BEFORE, the text of PATH, and EDITS of its server."
  (unless (string= before (car edits))
    (efrit-plan-refuse "%s was changed while its language server formatted it" path))
  (cons "its language server" (funcall (cdr edits) before)))

;;; Private: language servers

(declare-function eglot-managed-p "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-server-capable "eglot")
(declare-function eglot-path-to-uri "eglot")

(defun efrit-format--managed (loop path)
  "Return the buffer of PATH, of LOOP, if a language server formats it, or nil."
  (let* ((call (efrit-tool-call-create :owner loop))
         (file (and (stringp path) (ignore-errors (efrit-visit-file call path))))
         (buffer (and file (find-buffer-visiting file))))
    (and buffer
         (with-current-buffer buffer
           (and (efrit-format--server)
                (efrit-format--served-p)))
         buffer)))

(defun efrit-format--server ()
  "Return the language server that manages this buffer, or nil."
  (and (fboundp 'eglot-managed-p)
       (fboundp 'eglot-current-server)
       (eglot-managed-p)
       (eglot-current-server)))

(eval-when-compile
  (eieio-declare-slots capabilities))

(defun efrit-format--served-p ()
  "Return non-nil if the language server of this buffer can format it."
  (if (fboundp 'eglot-server-capable)
      (eglot-server-capable :documentFormattingProvider)
    ;; An Eglot that was installed in Emacs 28 may have no public function for it.
    (let ((found (plist-member (slot-value (efrit-format--server) 'capabilities)
                               :documentFormattingProvider)))
      (and found (not (eq (cadr found) :json-false))))))

(defun efrit-format--uri ()
  "Return the address that Eglot gives to servers for the file of this buffer."
  (if (fboundp 'eglot-path-to-uri)
      (eglot-path-to-uri buffer-file-name)
    ;; Before Emacs 30 Eglot has no public function for it.
    (let ((allowed (copy-sequence url-path-allowed-chars)))
      (aset allowed ?: nil)
      (concat (if (eq system-type 'windows-nt) "file:///" "file://")
              (url-hexify-string (file-local-name (file-truename buffer-file-name))
                                 allowed)))))

(defun efrit-format--ask-server (buffer then refused)
  "Ask the language server of BUFFER to format it.
Call THEN with (TEXT . FUNCTION), where the function makes the formatted
text of TEXT; or REFUSED with what is wrong."
  ;; The Eglot of Emacs 30 hears of a change in a timer, too, which comes before this one.
  (run-at-time 0 nil (lambda ()
                       (condition-case err
                           (with-current-buffer buffer
                             (efrit-format--request then refused))
                         (error
                          (funcall refused (format "the language server was not asked: %s"
                                                   (error-message-string err))))))))

(defun efrit-format--request (then refused)
  "Send the request to format this buffer; call THEN or REFUSED, see above.
What was changed lately is told to the server first: Eglot has a deferred
request wait for it."
  (let ((text (efrit-file-text (current-buffer)))
        (move (efrit-format--mover)))
    (jsonrpc-async-request
     (efrit-format--server) :textDocument/formatting
     (list :textDocument (list :uri (efrit-format--uri))
           :options (list :tabSize tab-width
                          :insertSpaces (if indent-tabs-mode :json-false t)))
     :deferred 'efrit-format
     :success-fn (lambda (edits)
                   (funcall then (cons text (lambda (text)
                                              (efrit-format--edited text edits move)))))
     :error-fn (lambda (err)
                 (funcall refused (format "the language server did not format it: %s"
                                          (plist-get err :message))))
     :timeout efrit-format-seconds
     :timeout-fn (lambda ()
                   (funcall refused (format "the language server did not answer within %s \
seconds" efrit-format-seconds))))))

(defun efrit-format--mover ()
  "Return the function to go to a column as this buffer's server counts."
  (or (seq-some (lambda (variable) (and (boundp variable) (symbol-value variable)))
                '(eglot-move-to-linepos-function eglot-move-to-column-function))
      #'move-to-column))

(defun efrit-format--edited (text edits move)
  "Return TEXT with EDITS, a language server's; MOVE is for its columns."
  (with-temp-buffer
    (insert text)
    (let ((places (cl-loop for edit across (or edits [])
                           for number from 0
                           collect (list (efrit-format--position edit :start move)
                                         number
                                         (efrit-format--position edit :end move)
                                         (plist-get edit :newText)))))
      ;; From the end on, so that what is in front stays where it is.
      (pcase-dolist (`(,begin ,_ ,end ,new)
                     (sort places (lambda (a b)
                                    (or (> (car a) (car b))
                                        (and (= (car a) (car b)) (> (cadr a) (cadr b)))))))
        (delete-region begin end)
        (goto-char begin)
        (insert (if (string-search "\r" text) new (string-replace "\r\n" "\n" new)))))
    (buffer-string)))

(defun efrit-format--position (edit which move)
  "Return where EDIT, a server's, has its WHICH; MOVE is for its columns."
  (let ((place (plist-get (plist-get edit :range) which)))
    (goto-char (point-min))
    (forward-line (plist-get place :line))
    (unless (eobp)
      (funcall move (plist-get place :character)))
    (point)))

;;; Private: modes

(defun efrit-format--by-mode (change)
  "Return (HOW . TEXT) for the file of CHANGE, formatted as its mode does it."
  (let* ((buffer (efrit-change-buffer change))
         (formatter (with-current-buffer buffer (efrit-format--formatter)))
         (text (efrit-change-before change)))
    (unless formatter
      (efrit-plan-refuse "Emacs has no formatter for %s in %s; see `efrit-format-functions'"
                         (efrit-change-path change)
                         (buffer-local-value 'major-mode buffer)))
    (when (> (length text) efrit-format-most-characters)
      (efrit-plan-refuse "%s is too long for Emacs to format it; use a command"
                         (efrit-change-path change)))
    (cons (format "%s" formatter) (efrit-format--in-copy buffer text formatter))))

(defun efrit-format--formatter ()
  "Return the function that formats this buffer, or nil."
  (or (seq-some (lambda (entry)
                  (and (derived-mode-p (car entry)) (fboundp (cdr entry)) (cdr entry)))
                efrit-format-functions)
      (and (derived-mode-p 'prog-mode)
           (not (apply #'derived-mode-p efrit-format-meaningful-indentation))
           (not (memq indent-line-function '(indent-relative indent-relative-first-indent-point)))
           'indent-region)))

(defun efrit-format--in-copy (buffer text formatter)
  "Return TEXT, that of BUFFER, formatted by FORMATTER in a copy of it."
  (let ((variables (efrit-format--variables buffer))
        (mode (buffer-local-value 'major-mode buffer))
        (file (buffer-file-name buffer))
        (folder (buffer-local-value 'default-directory buffer))
        (create-lockfiles nil)
        (inhibit-interaction t)
        (inhibit-message t))
    (with-temp-buffer
      (delay-mode-hooks (funcall mode))
      (setq default-directory folder)
      (pcase-dolist (`(,variable . ,value) variables)
        (set (make-local-variable variable) value))
      (insert text)
      (unwind-protect
          (progn
            (setq buffer-file-name file)
            (if (eq formatter 'indent-region)
                (indent-region (point-min) (point-max))
              (funcall formatter)))
        (setq buffer-file-name nil))
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun efrit-format--variables (buffer)
  "Return what BUFFER has of its own about indentation: an alist."
  (seq-filter (lambda (entry)
                (and (consp entry)
                     (string-match-p "tab-width\\|tabs\\|offset\\|indent"
                                     (symbol-name (car entry)))
                     (or (numberp (cdr entry)) (memq (cdr entry) '(t nil)))))
              (buffer-local-variables buffer)))

(provide 'efrit-format-tool)
;;; efrit-format-tool.el ends here
