;;; efrit-setup.el --- Check the installation, add a key, show the demo  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for a first request.  `efrit-doctor' checks what it needs, and
;; installs the sidecar;
;; `efrit-add-key' opens the file of keys where the key of the endpoint belongs,
;; and `efrit-add-provider' tries a server and adds it to the providers;
;; `efrit-demo' shows a session with a scripted model, which needs no key.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-menu)
(require 'efrit-permissions)
(require 'efrit-providers)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-view)
(require 'url-parse)
(require 'url-util)

;;; Checking the installation

;; M-x efrit-doctor checks this Emacs and the connection to the sidecar, asks
;; the endpoint about key and model, and runs the sidecar's own doctor; in a
;; remote folder, it checks that machine, too.  Each line is "ok" or "problem",
;; a name and the finding; a problem says how to fix it.

(cl-defstruct (efrit-doctor-check (:constructor efrit-doctor--check (ok name found fix))
                                  (:copier nil))
  "The finding of a check.
NAME and FOUND are texts.  OK is nil for a problem; FIX says how to solve it."
  ok name found fix)

;;;###autoload
(defun efrit-doctor ()
  "Check Emacs, the sidecar, the endpoint and the programs, and show the report.
In a remote folder, check the sidecar on that machine as well.  Without a
sidecar here, offer to install it.  In batch, print the report and exit, with 1
if there is a problem."
  (interactive)
  (efrit-doctor--check-all)
  (unless (or noninteractive (efrit-doctor-check-ok (efrit-doctor--executable)))
    (efrit-setup--offer-sidecar)))

(defun efrit-doctor--check-all ()
  "Check everything, and show the report; in batch, print it and exit."
  (let* ((checks (efrit-doctor-checks))
         (endpoint (efrit-doctor-endpoint))
         (theirs (efrit-doctor--sidecars))
         (there (when-let* ((remote (file-remote-p default-directory)))
                  (efrit-doctor--remote remote)))
         (report (concat (efrit-doctor--summary checks endpoint theirs there) "\n\n"
                         "Emacs\n" (efrit-doctor--table checks)
                         "\nModel\n" (efrit-doctor--table endpoint)
                         (and theirs (concat "\nSidecar\n" (cdr theirs)))
                         (cdr there)))
         (healthy (and (cl-every #'efrit-doctor-check-ok (append checks endpoint))
                       (eql (car theirs) 0)
                       (or (null there) (car there)))))
    (if noninteractive
        (progn (princ report)
               (unless healthy (kill-emacs 1)))
      (efrit-doctor--show report "*efrit doctor*"))))

(defun efrit-doctor-checks ()
  "Check this Emacs and its connection to the sidecar; return the findings.
Skip the connection if the sidecar's program is missing."
  (let ((executable (efrit-doctor--executable)))
    (append (list (efrit-doctor--check (version<= "28.1" emacs-version) "Emacs" emacs-version
                                       "install Emacs 28.1 or later")
                  (let ((native (and (fboundp 'json-serialize) (fboundp 'json-parse-buffer))))
                    (efrit-doctor--check native "JSON" (if native "native" "not native")
                                         "install an Emacs that is built with libjansson"))
                  (efrit-doctor--curl)
                  (efrit-doctor--files)
                  executable)
            (efrit-doctor--servers)
            (when (efrit-doctor-check-ok executable)
              (efrit-doctor--connection)))))

(defun efrit-doctor--curl ()
  "Check that curl, which sends requests, is installed; return the finding."
  (let ((found (executable-find efrit-http-program)))
    (efrit-doctor--check (and found t) "curl" (or found "not found")
                         "install curl, or set `efrit-http-program'")))

(defun efrit-doctor--servers ()
  "Check that the programs of `efrit-mcp-servers' are there; return the findings."
  (let ((missing (cl-loop for (name . server) in efrit-mcp-servers
                          for program = (car (plist-get server :command))
                          unless (and (stringp program)
                                      (let ((exec-path (efrit-exec-path)))
                                        (executable-find program)))
                          collect (format "%s: %s not found" name program))))
    (when efrit-mcp-servers
      (list (efrit-doctor--check (null missing) "MCP servers"
                                 (if missing
                                     (string-join missing "; ")
                                   (mapconcat #'car efrit-mcp-servers ", "))
                                 "install it, or change `efrit-mcp-servers'")))))

(defun efrit-doctor--files ()
  "Check that no other efrit hides files of this package; return the finding."
  (let ((others (efrit-other-folders)))
    (efrit-doctor--check (null others) "Lisp files" (abbreviate-file-name efrit-directory)
                         (and others (efrit-other-advice others)))))

(defun efrit-doctor-endpoint ()
  "Check the address, the key and the model; return the findings.
Ask the endpoint for its models, which is free of charge."
  (let* ((address (efrit-doctor--address))
         (key (and (efrit-doctor-check-ok address) (efrit-doctor--key))))
    (delq nil (list address key
                    (and key (efrit-doctor-check-ok key)
                         (executable-find efrit-http-program)
                         (efrit-doctor--model))))))

(defun efrit-doctor--address ()
  "Check that `efrit-claude-url' is an address of the API; return the finding."
  (condition-case err
      (let ((path (and (efrit-endpoint-host)
                       (url-filename (url-generic-parse-url efrit-claude-url))))
            (other (if (eq efrit-endpoint-api 'chat) "/messages\\'" "/chat/completions\\'")))
        (efrit-doctor--check
         (not (or (member path '("" "/")) (string-match-p other path)))
         "address" (format "%s, for the API %s" efrit-claude-url efrit-endpoint-api)
         "M-x efrit-add-provider finds path and API"))
    (user-error (efrit-doctor--check nil "address" efrit-claude-url (cadr err)))))

(defun efrit-doctor--key ()
  "Check that there is a key for the endpoint, if needed; return the finding."
  (condition-case err
      (progn
        (efrit-endpoint-headers)
        (efrit-doctor--check t "key" (if (efrit-provider-key-p)
                                         (concat "there is one for " (efrit-endpoint-host))
                                       "no key, and none is required")
                             nil))
    (efrit-no-key
     (efrit-doctor--check nil "key" (concat "none for " (efrit-endpoint-host))
                          (concat "M-x efrit-add-key; or M-x efrit-use-local-server, which needs \
none.  " (cadr err))))
    (user-error (efrit-doctor--check nil "key" "unusable" (cadr err)))))

(defun efrit-doctor--model ()
  "Ask the endpoint for the model, to check key and model; return the finding."
  (pcase (efrit-doctor--get-models (concat "/" (url-hexify-string efrit-claude-model)))
    ((and (pred stringp) problem)
     (efrit-doctor--check nil "endpoint" problem
                          "check the network and `efrit-claude-url'; M-x efrit-use-local-server \
finds a server on this machine"))
    (`(200 . ,_) (efrit-doctor--check t "model" efrit-claude-model nil))
    ((and `(,(or 401 403) . ,_) answer)
     (efrit-doctor--check nil "endpoint"
                          (concat "refused the key with " (efrit-provider-problem answer))
                          "M-x efrit-add-key shows the key; or check the variable with it"))
    (`(,status . ,_) (efrit-doctor--listed-model status))))

(defun efrit-doctor--listed-model (status)
  "Check that the endpoint lists the model, if it lists any; return the finding.
STATUS is that of its answer to a question for this model alone."
  (let ((names (pcase (efrit-doctor--get-models "")
                 (`(200 ,_ ,body) (mapcar #'car (efrit-provider-listed body))))))
    (efrit-doctor--check
     (or (null names) (member efrit-claude-model names)) "model"
     (cond ((null names)
            (format "%s; the endpoint lists no models (status %d)" efrit-claude-model status))
           ((member efrit-claude-model names) efrit-claude-model)
           (t (format "%s is not among the models (%s)" efrit-claude-model
                      (truncate-string-to-width (string-join names ", ") 200 nil nil t))))
     "M-x efrit-model chooses one of these; or set `efrit-claude-model'")))

(defun efrit-doctor--get-models (path)
  "Get PATH behind the endpoint's list of models, as `efrit-provider-ask' does."
  (efrit-provider-ask
   (concat (replace-regexp-in-string "/\\(?:messages\\|chat/completions\\)/*\\'" "" efrit-claude-url)
           "/models" path)
   (efrit-endpoint-headers)))

(defun efrit-doctor--executable ()
  "Check that the sidecar's program is found; return the finding."
  (condition-case err
      (efrit-doctor--check
       t "sidecar's program"
       (string-join (efrit-executable-command) " ") nil)
    (user-error
     (efrit-doctor--check nil "sidecar's program" "not found" (cadr err)))))

(defun efrit-doctor--connection (&optional host)
  "Start the sidecar of HOST; return findings about its version and its answer."
  (condition-case err
      (let ((server (plist-get (efrit-sidecar-ensure host) :server))
            ;; Measure after the first answer: the sidecar loads tools for it.
            (start (progn (efrit-sidecar-request 'tools/list nil :host host) (float-time))))
        (efrit-sidecar-request 'ping nil :host host)
        (list
         (efrit-doctor--check
          t "versions" (format "efrit.el %s, %s %s" efrit-version
                               (plist-get server :name) (plist-get server :version))
          nil)
         (efrit-doctor--check
          t "round trip" (format "%.1f ms" (* 1000 (- (float-time) start))) nil)))
    (user-error
     (list (efrit-doctor--check nil "versions" "differ" (cadr err))))
    (efrit-error
     (list (efrit-doctor--check
            nil "round trip" (efrit-error-text err)
            "M-x efrit-sidecar-restart; M-x efrit-sidecar-show-stderr says more")))))

(defun efrit-doctor--sidecars ()
  "Run the sidecar's own doctor, if its program is found.
Return (EXIT-CODE . OUTPUT), or nil if the program is not found."
  (when-let* ((command (condition-case nil
                           (efrit-executable-command)
                         (user-error nil)))
              (arguments (append (cdr command) '("doctor")))
              (coding-system-for-read 'utf-8))
    (efrit-executable-locally
      (with-temp-buffer
        (let ((code (apply #'call-process (car command) nil t nil arguments)))
          (cons code (buffer-string)))))))

;;;; Another machine

(defun efrit-doctor--remote (remote)
  "Check the sidecar on the host REMOTE.
Return (OK . REPORT): OK is nil if there is a problem, REPORT is a text."
  (pcase-let* ((`(,checks . ,theirs) (efrit-doctor--remote-checks remote)))
    (cons (and (cl-every #'efrit-doctor-check-ok checks) (eql (car theirs) 0))
          (concat "\nOn " remote "\n" (efrit-doctor--table checks)
                  (and theirs (concat "\nSidecar on " remote "\n" (cdr theirs)))))))

(defun efrit-doctor--remote-checks (remote)
  "Check the sidecar on the host REMOTE.  Return (FINDINGS . REPORT).
REPORT is (EXIT-CODE . OUTPUT) of the sidecar's own doctor, or nil if not run."
  (condition-case err
      (let* ((found (efrit-remote-look remote))
             (problem (efrit-remote-problem remote found)))
        (if problem
            (list (list (efrit-doctor--remote-program found problem)))
          (cons (append (list (efrit-doctor--remote-program found problem)
                              (efrit-doctor--remote-tools found))
                        (efrit-doctor--connection remote))
                (efrit-remote-doctor remote found))))
    (user-error
     (list (list (efrit-doctor--check nil "connection" "failed" (cadr err)))))
    (efrit-remote-busy
     (list (list (efrit-doctor--check
                  nil "connection" "TRAMP is busy, or cannot run programs there"
                  "try again; if that fails, M-x tramp-cleanup-connection"))))))

(defun efrit-doctor--remote-program (found problem)
  "Return a finding on the sidecar's program in FOUND, an `efrit-remote-found'.
PROBLEM is the text of the problem with the program, or nil."
  (efrit-doctor--check (null problem) "sidecar's program"
                       (or (efrit-remote-found-program found) "not found") problem))

(defun efrit-doctor--remote-tools (found)
  "Return a finding on the programs of tools in FOUND, an `efrit-remote-found'."
  (let ((missing (efrit-remote-found-missing found)))
    (efrit-doctor--check (null missing) "programs of tools"
                         (if missing (concat "no " (string-join missing ", no ")) "complete")
                         "install them there, or add their folder to `tramp-remote-path'")))

;;;; The report

(defun efrit-doctor--summary (checks endpoint theirs there)
  "Return a line about whether everything is in order.
CHECKS and ENDPOINT are findings, THEIRS and THERE the reports of the sidecars,
as in `efrit-doctor'."
  (let ((problems (cl-count-if-not #'efrit-doctor-check-ok (append checks endpoint))))
    (cond ((> problems 0)
           (format "%s in the way of a first request; what to do stands behind the arrow."
                   (if (= problems 1) "One problem is" (format "%d problems are" problems))))
          ((and (eql (car theirs) 0) (or (null there) (car there)))
           "Everything is in order: M-x efrit-do.")
          (t "M-x efrit-do works; what the sidecar lacks stands below, with what to do."))))

(defun efrit-doctor--table (findings)
  "Return FINDINGS, a list of `efrit-doctor-check', as a table."
  (let ((width (apply #'max (mapcar (lambda (check)
                                      (length (efrit-doctor-check-name check)))
                                    findings))))
    (mapconcat (lambda (check) (efrit-doctor--line check width)) findings "")))

(defun efrit-doctor--line (check width)
  "Return CHECK as a line, with its name padded to WIDTH."
  (let ((ok (efrit-doctor-check-ok check)))
    (format "%-7s  %s  %s%s\n"
            (if ok "ok" "problem")
            (string-pad (efrit-doctor-check-name check) width)
            (efrit-doctor-check-found check)
            (if ok "" (concat " -> " (efrit-doctor-check-fix check))))))

(defun efrit-doctor--show (report name)
  "Show REPORT in a buffer called NAME."
  (with-current-buffer (get-buffer-create name)
    (efrit-set-buffer-text report)
    (special-mode)
    (setq word-wrap t)
    (when-let* ((window (display-buffer (current-buffer))))
      (shrink-window-if-larger-than-buffer window))))

;;; Installing the sidecar

;; On another machine, `efrit-remote-install' does this.

(defconst efrit-setup--pythons
  '("python3" "python3.15" "python3.14" "python3.13" "python3.12" "python3.11" "python")
  "Names of programs that may be a Python.")

(defun efrit-setup--offer-sidecar ()
  "Ask whether and how to install the sidecar on this machine, and do so."
  (let* ((ways (or (efrit-executable-locally (efrit-setup--ways))
                   (user-error "The sidecar needs Python %s, or uv, which brings one: install \
either, then M-x efrit-doctor" efrit-install-oldest)))
         (completion-extra-properties
          (list :annotation-function (lambda (way) (concat "  " (cdr (assoc way ways))))))
         (way (if (cdr ways)
                  (completing-read (format-prompt "The sidecar is not installed.  Install it by"
                                                  (caar ways))
                                   ways nil t nil nil (caar ways))
                (caar ways)))
         (command (cdr (assoc way ways))))
    (if (yes-or-no-p (format "Install the sidecar: run %s? " command))
        (efrit-setup--run command)
      (message "Nothing was installed"))))

(defun efrit-setup--ways ()
  "Return the ways to install the sidecar here: names and commands for the shell.
In a checkout, that is to set it up."
  (if-let* ((checkout (efrit-executable-checkout)))
      `(("make" . ,(format "make -C %s setup"
                           (efrit-executable-quote (directory-file-name checkout)))))
    (let ((package (efrit-executable-quote efrit-sidecar-requirement))
          (folder (efrit-executable-quote
                   (directory-file-name (expand-file-name efrit-sidecar-directory)))))
      (cl-loop for (way program . command)
               in `(("uv" ,(executable-find "uv") " tool install " ,package)
                    ("pipx" ,(executable-find "pipx") " install " ,package)
                    ("venv" ,(efrit-setup--find-python) " -m venv " ,folder
                     " && " ,folder "/bin/python -m pip install " ,package))
               when program
               collect (cons way (apply #'concat (efrit-executable-quote program) command))))))

(defun efrit-setup--find-python ()
  "Return a Python with venv that is new enough for the sidecar, or nil."
  (seq-find (lambda (program)
              (eql 0 (call-process program nil nil nil "-c" "import ensurepip, sys, venv
sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split('.'))))" efrit-install-oldest)))
            (delq nil (mapcar #'executable-find efrit-setup--pythons))))

(defun efrit-setup--run (command)
  "Install the sidecar by COMMAND, in a buffer; then check everything again."
  (with-current-buffer (efrit-executable-locally
                         (compilation-start command nil (lambda (_) "*efrit install*")))
    (add-hook 'compilation-finish-functions #'efrit-setup--installed nil t)))

(defun efrit-setup--installed (buffer how)
  "Check everything again if BUFFER, an installation, ended with HOW, and well."
  (if (string-prefix-p "finished" how)
      (efrit-doctor--check-all)
    (message "The sidecar is not installed; %s says why" (buffer-name buffer))))

;;; Keys

(defvar auth-sources)

(declare-function auth-source-forget-all-cached "auth-source" ())
(declare-function epg-list-keys "epg" (context &optional name mode))

(defvar-local efrit-setup--then nil
  "Function that is called when this file of keys is saved.")

;;;###autoload
(defun efrit-add-key ()
  "Open the file of keys at the line with the key of the endpoint.
Add the line if it is missing; the person types the key and saves the file.
Sessions that failed for want of a key then go on."
  (interactive)
  (efrit-setup--open-keys (efrit-endpoint-host) #'efrit-setup--key-saved))

(defun efrit-setup--open-keys (host then &optional why)
  "Open the file of keys at the line with the key for HOST, added if missing.
Call THEN when the file is saved.  WHY, a text, is shown before what to do."
  (let ((file (efrit-setup--key-file host))
        (text (substitute-command-keys
               (format "%sType the key for %s at point, then \\[save-buffer]"
                       (if why (concat why ".  ") "") host))))
    (efrit-setup--create file)
    (pop-to-buffer (find-file-noselect file))
    (efrit-setup--go-to-key host)
    (setq header-line-format (concat " " (string-replace "%" "%%" text))
          efrit-setup--then then)
    (add-hook 'after-save-hook #'efrit-setup--keys-saved nil t)
    (message "%s" text)))

(defun efrit-setup--keys-saved ()
  "Call the function that waits for this file of keys, now that it is saved."
  (auth-source-forget-all-cached)
  (funcall efrit-setup--then))

(defun efrit-setup--close-keys ()
  "Hide this file of keys, whose key was found."
  (setq header-line-format nil)
  (remove-hook 'after-save-hook #'efrit-setup--keys-saved t)
  (quit-windows-on (current-buffer)))

(defun efrit-setup--key-file (host)
  "Return the file of `auth-sources' for a new key for HOST.
Prefer one that exists, and an encrypted one if gpg has a secret key."
  (require 'auth-source)
  (let* ((files (seq-filter #'stringp
                            (mapcar (lambda (source)
                                      (if (listp source) (plist-get source :source) source))
                                    auth-sources)))
         (encrypted (seq-filter #'efrit-setup--encrypted-p files))
         (plain (seq-remove #'efrit-setup--encrypted-p files)))
    (or (seq-find #'file-exists-p (append encrypted plain))
        (car (if (efrit-setup--secret-key-p)
                 (append encrypted plain)
               (append plain encrypted)))
        (user-error "`auth-sources' has no file: add the key there for the host %s and the user \
apikey" host))))

(defun efrit-setup--encrypted-p (file)
  "Return non-nil if FILE is encrypted by gpg."
  (string-suffix-p ".gpg" file))

(defun efrit-setup--secret-key-p ()
  "Return non-nil if gpg has a secret key, with which it can encrypt a file."
  (require 'epg)
  (ignore-errors
    (epg-list-keys (epg-make-context 'OpenPGP) nil t)))

(defun efrit-setup--create (file)
  "Create FILE, readable by nobody else, unless it exists or is encrypted."
  (unless (or (file-exists-p file) (efrit-setup--encrypted-p file))
    (with-file-modes #o600
      (write-region "" nil file nil 'silent nil 'excl))))

(defun efrit-setup--go-to-key (host)
  "Go to the key of HOST in this buffer, a file of keys; add a line if it has none."
  (goto-char (point-min))
  (unless (re-search-forward (format "^[ \t]*machine[ \t]+%s[ \t].*password[ \t]+"
                                     (regexp-quote host))
                             nil t)
    (goto-char (point-max))
    (unless (bolp)
      (insert "\n"))
    (insert (format "machine %s login apikey password " host))
    (save-excursion
      (insert "\n"))))

(defun efrit-setup--key-saved ()
  "Have the sessions without a key go on with the key that was saved."
  (let ((waiting (efrit-setup--waiting-loops)))
    (condition-case err
        (progn
          (efrit-endpoint-headers)
          (efrit-setup--close-keys)
          (mapc #'efrit-setup--go-on waiting)
          (message "The key is found%s" (if waiting "; the message is sent" "")))
      (efrit-no-key (message "%s" (cadr err))))))

;;; Adding a provider

;; A server is asked for its models, one model for a few words by each API that
;; the server may have, and then for what that model can hold.

(defconst efrit-setup--most-models 40
  "Most models of a server that are stored; of more, the chosen one is.")

;;;###autoload
(defun efrit-add-provider (address)
  "Try the server at ADDRESS, add it to `efrit-providers', and offer to use it.
ADDRESS may be a host alone, or the name of a provider.  The server is asked for
its models, and one of them for a few words.  If the server wants a key, the
file of keys is opened for it first."
  (interactive (list (efrit-setup--read-address
                      "Address of the server, or name of a provider: "
                      (efrit-provider-all))))
  (efrit-for-a-person
    (let ((found (efrit-provider-look address)))
      (if (efrit-found-refusal found)
          (efrit-setup--ask-for-key found address)
        (efrit-setup--add found)))))

;;;###autoload
(defun efrit-use-local-server (address)
  "Try the server at ADDRESS on this machine, add it, and offer to use it.
This is `efrit-add-provider' with the addresses of local servers to choose from."
  (interactive (list (efrit-setup--read-address
                      "Address of the local server: "
                      (seq-remove (lambda (provider) (plist-get (cdr provider) :key))
                                  efrit-preset-providers))))
  (efrit-add-provider address))

(defun efrit-setup--read-address (prompt providers)
  "Read an address with PROMPT; complete the names of PROVIDERS."
  (let* ((completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (concat "  " (efrit-provider-base
                                (plist-get (cdr (assoc name providers)) :url))))))
         (address (string-trim (completing-read prompt providers))))
    (when (string-empty-p address)
      (user-error "There is no address: give one such as localhost:11434"))
    address))

(defun efrit-setup--ask-for-key (found address)
  "Open the file of keys for the server of FOUND; then add the one at ADDRESS."
  (let ((buffer (current-buffer)))
    (efrit-setup--open-keys
     (url-host (url-generic-parse-url (efrit-found-base found)))
     (lambda ()
       (efrit-setup--close-keys)
       (with-current-buffer (if (buffer-live-p buffer) buffer (current-buffer))
         (efrit-add-provider address)))
     (format "The server said %s" (efrit-found-refusal found)))))

(defun efrit-setup--add (found)
  "Have the person choose a model of FOUND; try it, and add its provider."
  (let ((model (efrit-setup--read-model found)))
    (efrit-provider-try found model)
    (efrit-provider-measure found model)
    (efrit-doctor--show (efrit-setup--report found model) "*efrit provider*")
    (let ((name (efrit-setup--read-name found)))
      (efrit-setup--save (cons name (efrit-setup--plist found model)))
      (efrit-setup--offer name model))))

(defun efrit-setup--read-model (found)
  "Ask for a model of FOUND, with completion if the server lists any."
  (let* ((names (mapcar #'car (efrit-found-models found)))
         (default (or (seq-find (lambda (name) (not (string-match-p "embed" name))) names)
                      (car names)))
         (model (string-trim
                 (completing-read (if names (format-prompt "Model" default) "Model: ")
                                  names nil nil nil nil default))))
    (when (string-empty-p model)
      (user-error "The model has no name"))
    model))

(defun efrit-setup--report (found model)
  "Return lines about FOUND, as `efrit-provider-try' left it with MODEL."
  (let ((sizes (cdr (assoc model (efrit-found-models found)))))
    (concat
     (format "%s\n\n" (string-join (delq nil (list (efrit-found-kind found)
                                                  (efrit-found-url found)))
                                   " at "))
     (efrit-doctor--table
      (list
       (efrit-doctor--check t "API" (if (eq (efrit-found-api found) 'chat) "Chat Completions"
                                      "Messages")
                            nil)
       (efrit-doctor--check t "model" (efrit-permissions-visible model t) nil)
       (efrit-doctor--check (efrit-found-streaming found) "streaming"
                            (if (efrit-found-streaming found) "yes" "no")
                            "replies come whole, at their end")
       (efrit-doctor--check (efrit-found-tools found) "tools"
                            (if (efrit-found-tools found) "taken"
                              (concat "refused: " (efrit-found-no-tools found)))
                            "choose another model: without tools it can only talk")
       (efrit-doctor--check (plist-get sizes :window) "window" (efrit-setup--window-text found sizes)
                            "see the server's documentation, and set `:window' in \
`efrit-providers'")
       (efrit-doctor--check (efrit-found-usage found) "usage"
                            (if (efrit-found-usage found) "counted" "not counted")
                            "tokens are estimated; the cost stays unknown"))))))

(defun efrit-setup--window-text (found sizes)
  "Return a text about SIZES, the plist of a model of FOUND."
  (let ((window (plist-get sizes :window))
        (most (plist-get sizes :max-output)))
    (cond ((null window) "the server does not say")
          (t (string-join (delq nil (list (efrit-show-number window) "tokens"
                                          (efrit-found-caution found)
                                          (and most (format "and replies up to %s"
                                                            (efrit-show-number most)))))
                          " ")))))

(defun efrit-setup--read-name (found)
  "Ask for a name of the provider of FOUND that no other address has."
  (let* ((default (efrit-setup--default-name found))
         (name (string-trim (read-string (format-prompt "Name of the provider" default)
                                         nil nil default)))
         (other (plist-get (cdr (assoc name efrit-providers)) :url)))
    (cond ((string-match-p "\\`\\'\\|/" name)
           (user-error "The name of a provider has no slash, and is not empty"))
          ((or (member other (list nil (efrit-found-url found)))
               (y-or-n-p (format "Replace %s, which is at %s? " name other)))
           name)
          (t (efrit-setup--read-name found)))))

(defun efrit-setup--default-name (found)
  "Return a name for the provider of FOUND: a preset's, or of program and host."
  (let ((host (url-host (url-generic-parse-url (efrit-found-base found)))))
    (or (efrit-found-preset found)
        (and (efrit-found-kind found)
             (format "%s-%s" (downcase (string-replace " " "" (efrit-found-kind found))) host))
        host)))

(defun efrit-setup--plist (found model)
  "Return the plist in `efrit-providers' for the provider of FOUND with MODEL.
The models of a provider whose key has a name are in the sidecar's price list,
and without features in its preset, it has those that `auto' stands for."
  (let* ((preset (efrit-provider-plist (efrit-found-preset found)))
         (key (plist-get preset :key))
         (models (efrit-found-models found))
         (own (list (or (assoc model models) (list model)))))
    (append (list :url (efrit-found-url found) :api (efrit-found-api found))
            (and (or (null key) (plist-member preset :features))
                 (list :features (efrit-found-features found)))
            (and (plist-get preset :headers) (list :headers (plist-get preset :headers)))
            (if key (list :key key)
              (list :models (if (<= (length models) efrit-setup--most-models)
                                (append own (assoc-delete-all model (copy-sequence models)))
                              own))))))

(defun efrit-setup--save (provider)
  "Put PROVIDER, a cons of its name and plist, first into `efrit-providers'.
Save that by Customize."
  (customize-save-variable
   'efrit-providers
   (cons provider (assoc-delete-all (car provider) (copy-sequence efrit-providers)))))

(defconst efrit-setup--uses
  '(("this session and new ones" here new) ("this session" here) ("new sessions" new)
    ("nothing yet"))
  "Answers to the question what is to use a provider, with their meanings.")

(defun efrit-setup--offer (name model)
  "Ask what is to use MODEL of the provider NAME, and have it do so.
Sessions that failed for want of a key go on with it if new sessions use it."
  (let* ((loop (ignore-errors (efrit-loop-current)))
         (uses (seq-filter (lambda (use) (or loop (not (memq 'here use)))) efrit-setup--uses))
         (label (efrit-provider-label name model))
         (use (cdr (assoc (completing-read (format-prompt "%s is added.  Use it for" (caar uses)
                                                          label)
                                           uses nil t nil nil (caar uses))
                          uses)))
         (waiting (efrit-setup--waiting-loops))
         (loops (delq nil (delete-dups (append (and (memq 'here use) (list loop))
                                               (and (memq 'new use) waiting))))))
    (when (memq 'new use)
      (efrit-provider-use nil name model)
      (efrit-setup--keep (efrit-provider-options name model)))
    (dolist (loop loops)
      (efrit-choose-model loop name model)
      (when (memq loop waiting)
        (efrit-setup--go-on loop)))
    (message "%s is added%s" label
             (cond ((null use) "; M-x efrit-model chooses it")
                   ((seq-intersection loops waiting) ", and the message is sent")
                   (t ", and used")))))

(defun efrit-setup--keep (options)
  "Ask whether to save OPTIONS, an alist, for later sessions of Emacs.
An Emacs without an init file, as with -Q, cannot save them."
  (when (and user-init-file
             (y-or-n-p "Use it in later sessions of Emacs, too? "))
    (dolist (option options)
      (customize-save-variable (car option) (default-value (car option))))))

;;; Sessions

(defun efrit-setup--waiting-loops ()
  "Return the loops that failed for want of a key, and that here if it failed."
  (seq-filter (lambda (loop)
                (and (eq (efrit-loop-state loop) 'failed)
                     (or (efrit-loop-no-key loop) (eq loop efrit-loop-here))))
              (efrit-loops)))

(defun efrit-setup--go-on (loop)
  "Show LOOP, and have it send what it could not send."
  (funcall efrit-do-show-function loop)
  (efrit-retry loop))

;;; The demo

;; M-x efrit-demo shows a session in this Emacs without a key: a scripted model
;; on this machine works in a small git repository in a temporary folder.  The
;; session has a sidecar with a state of its own there, so the person's sessions
;; and key have no part in it.  `efrit-demo-batch' prints a session in batch.

;;;; The scripted model

(defun efrit-demo--start-model (scenario)
  "Start a scripted model that plays SCENARIO, and return its process.
It ends when its standard input is closed, thus with Emacs."
  (efrit-executable-locally
    (make-process :name "efrit-demo-model"
                  :buffer (generate-new-buffer " *efrit-demo-model*")
                  :command (append (efrit-executable-command)
                                   (list "demo-model" "--no-key" "--quiet" "--until-eof"
                                         "--scenario" scenario))
                  :connection-type 'pipe
                  :noquery t
                  :sentinel #'ignore)))

(defun efrit-demo--url (model)
  "Wait until MODEL, a process, listens, and return its URL."
  (with-current-buffer (process-buffer model)
    (while (and (process-live-p model)
                (not (string-search "\n" (buffer-string))))
      (accept-process-output model 0.1))
    (goto-char (point-min))
    (if (re-search-forward "^http://\\S-+" nil t)
        (match-string 0)
      (user-error "The scripted model did not start: %s" (string-trim (buffer-string))))))

(defun efrit-demo--stop-model (model)
  "End MODEL, a process, and kill its buffer."
  (let ((buffer (process-buffer model)))
    (delete-process model)
    (when (buffer-live-p buffer)
      (kill-buffer buffer))))

(defmacro efrit-demo--with-options (url &rest body)
  "Run BODY with the options of a session with the scripted model at URL.
The header keeps `auth-source' from being searched for a key."
  (declare (indent 1) (debug t))
  `(let ((efrit-claude-url (concat ,url "/v1/messages"))
         (efrit-claude-headers '(("x-api-key" . "demo")))
         (efrit-claude-features '(cache thinking effort binding diagnostics))
         (efrit-claude-model (eval (car (get 'efrit-claude-model 'standard-value)) t))
         (efrit-claude-max-tokens nil)
         (efrit-claude-betas nil)
         (efrit-mcp-servers nil)
         (efrit-permission-rules nil))
     ,@body))

;;;; The project

(defconst efrit-demo--files
  '(("README.md" . "# Greenhouse

`watering.el` decides which plants are watered each morning. A plant is watered
**every third day**: after three dry days. The folder `log/` says what was done.
")
    ("watering.el" . ";;; watering.el --- Which plants to water  -*- lexical-binding: t; -*-

;;; Code:

(defconst watering-interval 3
  \"Days after which a dry plant is watered.\")

(defun watering-due-p (days)
  \"Return non-nil if a plant that has been dry for DAYS is to be watered.\"
  (> days watering-interval))

(defun watering-due (plants)
  \"Return the names of the PLANTS to water: an alist of names and dry days.\"
  (let (due)
    (dolist (plant plants (nreverse due))
      (when (watering-due-p (cdr plant))
        (push (car plant) due)))))

(provide 'watering)
;;; watering.el ends here
"))
  "The files of the demo's project, without the logs: an alist of names and texts.")

(defconst efrit-demo--plants '("fern" "basil" "orchid" "lemon" "ivy" "tomato" "mint" "palm"
                                "aloe" "cactus")
  "The plants in the logs of the demo's project.")

(defconst efrit-demo--task
  "The fern was dry for four days in March. Why was it watered late? Mend what is wrong."
  "The person's message in the demo.")

(defconst efrit-demo--limits '(:total 28000 :per_tool_default 4500)
  "Limits of the demo's session: so small that results shrink within two minutes.")

(defun efrit-demo--log (days)
  "Return the text of a log of so many DAYS."
  (mapconcat
   (lambda (day)
     (let ((index -1))
       (mapconcat
        (lambda (plant)
          (let ((dry (% (+ day (* 3 (cl-incf index))) 5)))
            (format "day %02d  %02d:%02d  %-7s dry %d  %s\n" day 7 (+ 4 index) plant dry
                    (if (= dry 4) "watered, 250 ml" "left alone"))))
        efrit-demo--plants "")))
   (number-sequence 1 days) ""))

(defun efrit-demo--make-project (folder)
  "Make the demo's project, a git repository with a history, in the new FOLDER."
  (unless (executable-find "git")
    (user-error "The demo makes a git repository: install git"))
  (make-directory (expand-file-name "log" folder) t)
  (efrit-demo--git folder "init" "--quiet")
  (pcase-dolist (`(,name . ,text) efrit-demo--files)
    (efrit-demo--write folder name text)
    (efrit-demo--commit folder (concat "Add " name)))
  (pcase-dolist (`(,month . ,days) '(("january" . 31) ("february" . 28) ("march" . 31)))
    (efrit-demo--write folder (format "log/%s.txt" month) (efrit-demo--log days)))
  (efrit-demo--commit folder "Add the logs of three months"))

(defun efrit-demo--write (folder name text)
  "Write TEXT into the file NAME in FOLDER."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil (expand-file-name name folder) nil 'silent)))

(defun efrit-demo--commit (folder subject)
  "Commit everything in the repository FOLDER with SUBJECT."
  (efrit-demo--git folder "add" "--all")
  (efrit-demo--git folder "commit" "--quiet" "--message" subject))

(defun efrit-demo--git (folder &rest arguments)
  "Run git with ARGUMENTS in FOLDER; signal a `user-error' if it fails.
The person's settings and hooks of git have no part in it."
  (efrit-executable-locally
    (let ((default-directory (file-name-as-directory folder))
          (process-environment (append '("GIT_CONFIG_GLOBAL=/dev/null" "GIT_CONFIG_NOSYSTEM=1"
                                         "GIT_AUTHOR_NAME=Demo" "GIT_AUTHOR_EMAIL=demo@localhost"
                                         "GIT_COMMITTER_NAME=Demo"
                                         "GIT_COMMITTER_EMAIL=demo@localhost")
                                       process-environment)))
      (with-temp-buffer
        (unless (eql 0 (apply #'call-process "git" nil t nil arguments))
          (user-error "The demo's repository cannot be made: %s"
                      (string-trim (buffer-string))))))))

;;;; The session

(defconst efrit-demo--host "the demo"
  "The name of the host of the demo's sidecar.")

(defvar efrit-demo--folder nil
  "The folder of the demo that runs, with its project and its state, or nil.")

(defvar efrit-demo--model nil
  "The process of the scripted model, or nil.")

;;;###autoload
(defun efrit-demo ()
  "Show a session of two minutes in this Emacs, with a scripted model and no key.
The model works in a small project in a temporary folder; `efrit-demo-end' ends
the demo.  If the demo runs already, show it.  Return its loop."
  (interactive)
  (if-let* ((loop (efrit-demo--loop)))
      (progn
        (funcall efrit-do-show-function loop)
        loop)
    (efrit-for-a-person
      (efrit-executable-command)
      (efrit-demo--end nil)
      (efrit-on-failure (efrit-demo--end t)
        (efrit-demo--begin)))))

;;;###autoload
(defun efrit-demo-end ()
  "End the demo; ask whether to delete its project."
  (interactive)
  (unless efrit-demo--folder
    (user-error "The demo does not run"))
  (let* ((project (efrit-demo--project))
         (delete (or noninteractive
                     (y-or-n-p (format "Delete the demo's project, %s? " project)))))
    (efrit-demo--end delete)
    (message (if delete "The demo has ended; its project is deleted"
               "The demo has ended; its project is still in %s")
             project)))

(defun efrit-demo--loop ()
  "Return the loop of the demo, or nil if the demo does not run."
  (and efrit-demo--folder
       (process-live-p efrit-demo--model)
       (efrit-loop-latest (efrit-demo--project))))

(defun efrit-demo--project ()
  "Return the folder of the demo's project."
  (expand-file-name "greenhouse/" efrit-demo--folder))

(defun efrit-demo--begin ()
  "Make the project, start the model and the sidecar, and begin the session."
  (message "Making a project and starting a scripted model...")
  (setq efrit-demo--folder (file-truename (make-temp-file "efrit-demo-" t))
        efrit-demo--model (efrit-demo--start-model "greenhouse"))
  (let ((project (efrit-demo--project)))
    (efrit-demo--make-project project)
    (efrit-host-add efrit-demo--host (expand-file-name "state" efrit-demo--folder) project)
    (let ((loop (efrit-demo--with-options (efrit-demo--url efrit-demo--model)
                  (efrit-do-make-loop project efrit-demo--limits))))
      (funcall efrit-do-show-function loop)
      (with-current-buffer (efrit-session-view-buffer loop)
        (add-hook 'kill-buffer-hook #'efrit-demo--end-soon nil t))
      (add-hook 'kill-emacs-query-functions #'efrit-demo--end-with-emacs)
      (efrit-loop-notify
       loop 'note
       (format "The model here is a scripted one on this machine: its words come from a file, \
the tools it uses are real, and no key is used.  The project is in %s."
               (abbreviate-file-name project)))
      (efrit-do-say loop efrit-demo--task)
      (message nil)
      loop)))

(defun efrit-demo--end-soon ()
  "End the demo, whose session's buffer is being killed."
  (efrit-run-at-time 0 nil (lambda ()
                             (when efrit-demo--folder
                               (efrit-demo-end)))))

(defun efrit-demo--end-with-emacs ()
  "End the demo before Emacs exits, and return t.
This is for `kill-emacs-query-functions'."
  (when efrit-demo--folder
    (efrit-demo-end))
  t)

(defun efrit-demo--end (delete)
  "Stop the demo and drop its state; with DELETE, delete its project, too."
  (when efrit-demo--folder
    (let ((folder efrit-demo--folder)
          (project (efrit-demo--project)))
      (setq efrit-demo--folder nil)
      (remove-hook 'kill-emacs-query-functions #'efrit-demo--end-with-emacs)
      (efrit-demo--forget-loops project)
      (efrit-host-remove efrit-demo--host)
      (when efrit-demo--model
        (efrit-demo--stop-model (cl-shiftf efrit-demo--model nil)))
      (efrit-permissions-forget project)
      (delete-directory (expand-file-name "state" folder) t)
      (when delete
        (efrit-demo--kill-buffers project)
        (delete-directory folder t)))))

(defun efrit-demo--forget-loops (project)
  "Stop the loops on PROJECT and kill their buffers."
  (dolist (loop (efrit-loops))
    (when (efrit-host-same-file-p (efrit-loop-root loop) project)
      (efrit-do-forget loop)
      (let ((kill-buffer-query-functions nil))
        (kill-buffer (efrit-session-view-buffer loop))))))

(defun efrit-demo--kill-buffers (project)
  "Kill the buffers of files in PROJECT, which is being deleted."
  (dolist (buffer (buffer-list))
    (when (string-prefix-p project (or (buffer-file-name buffer) ""))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)
        (kill-buffer)))))

;;;; In batch

;;     make demo
;;
;; runs a whole session on this checkout.  With ANTHROPIC_API_KEY and TASK set,
;; the model is the real one.

;;;###autoload
(defun efrit-demo-batch ()
  "Run a session in batch on this checkout, and exit.
Where this package is in no checkout, it is on the current folder.  The exit
code is 0 if the session ends well."
  (kill-emacs
   (condition-case err
       (if (eq (efrit-loop-state (efrit-demo--batch)) 'idle) 0 1)
     (error (message "demo: %s" (efrit-error-text err))
            1))))

(defun efrit-demo--batch ()
  "Run a session in batch, with the real model or a scripted one; return its loop."
  (if (seq-some (lambda (name) (string-empty-p (or (getenv name) "")))
                '("ANTHROPIC_API_KEY" "TASK"))
      (efrit-demo--batch-scripted)
    (princ (format "The model is the real one: %s at %s.\n\n"
                   efrit-claude-model efrit-claude-url))
    (efrit-demo--batch-do (getenv "TASK"))))

(defun efrit-demo--batch-scripted ()
  "Run a session in batch with a scripted model, and return its loop."
  (princ "The model is a scripted one on this machine: its replies come from a file, the tools it \
uses\nare real.  With ANTHROPIC_API_KEY and TASK=\"...\" set it is the real model.\n\n")
  (let* ((home (make-temp-file "efrit-demo-" t))
         (root (efrit-demo--batch-root))
         (model (efrit-demo--start-model "tour")))
    (unwind-protect
        (progn
          (efrit-host-add efrit-demo--host home root)
          (efrit-demo--with-options (efrit-demo--url model)
            (efrit-demo--batch-do "Show me round this project.")))
      (efrit-demo--stop-model model)
      (efrit-host-remove efrit-demo--host)
      (delete-directory home t))))

(defun efrit-demo--batch-root ()
  "Return the folder that a demo in batch is on."
  (or (efrit-executable-checkout) default-directory))

(defun efrit-demo--batch-do (task)
  "Do TASK in batch, and return the loop."
  (let ((default-directory (efrit-demo--batch-root))
        (efrit-context-buffer nil))
    (princ (format "> %s\n\n" task))
    (efrit-batch-run task)))

(provide 'efrit-setup)
;;; efrit-setup.el ends here
