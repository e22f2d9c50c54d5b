;;; efrit-setup.el --- Check the installation, add a key, show the demo  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for a first request.  `efrit-doctor' checks what it needs;
;; `efrit-add-key' opens the file of keys where the key of the endpoint belongs,
;; and `efrit-use-local-server' sets the options for a local server; `efrit-demo'
;; shows a session with a scripted model, which needs no key.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
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

(defconst efrit-doctor--seconds 10
  "Seconds that the endpoint may take to answer.")

;;;###autoload
(defun efrit-doctor ()
  "Check Emacs, the sidecar, the endpoint and the programs, and show the report.
In a remote folder, check the sidecar on that machine as well.  In batch,
print the report and exit, with 1 if there is a problem."
  (interactive)
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
      (efrit-doctor--show report))))

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
                  executable)
            (when (efrit-doctor-check-ok executable)
              (efrit-doctor--connection)))))

(defun efrit-doctor--curl ()
  "Check that curl, which sends requests, is installed; return the finding."
  (let ((found (executable-find efrit-http-program)))
    (efrit-doctor--check (and found t) "curl" (or found "not found")
                         "install curl, or set `efrit-http-program'")))

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
  "Check that `efrit-claude-url' is a valid address; return the finding."
  (condition-case err
      (let ((host (efrit-endpoint-host)))
        (efrit-doctor--check
         (not (member (url-filename (url-generic-parse-url efrit-claude-url)) '("" "/")))
         "address" efrit-claude-url
         (format "add the path to `efrit-claude-url', most often http.../%s/v1/messages" host)))
    (user-error (efrit-doctor--check nil "address" efrit-claude-url (cadr err)))))

(defun efrit-doctor--key ()
  "Check that there is a key for the endpoint, if needed; return the finding."
  (condition-case err
      (let ((headers (efrit-endpoint-headers nil)))
        (efrit-doctor--check t "key" (if (or (assoc "x-api-key" headers)
                                             (efrit-endpoint-own-secret-p))
                                         (concat "there is one for " (efrit-endpoint-host))
                                       "no key, and none is required")
                             nil))
    (efrit-no-key
     (efrit-doctor--check nil "key" "none for the vendor's endpoint"
                          (concat "M-x efrit-add-key; or M-x efrit-use-local-server, which needs \
none.  " (cadr err))))
    (user-error (efrit-doctor--check nil "key" "unusable" (cadr err)))))

(defun efrit-doctor--model ()
  "Ask the endpoint for the model, to check key and model; return the finding."
  (pcase (efrit-doctor--ask-models efrit-claude-model)
    ((and (pred stringp) problem)
     (efrit-doctor--check nil "endpoint" problem
                          "check the network and `efrit-claude-url'; M-x efrit-use-local-server \
sets the address of a server on this machine"))
    (`(200 . ,_) (efrit-doctor--check t "model" efrit-claude-model nil))
    (`(,(and status (or 401 403)) . ,_)
     (efrit-doctor--check nil "endpoint" (format "refused the key with %d" status)
                          "M-x efrit-add-key shows the key; or check ANTHROPIC_API_KEY"))
    (`(,status . ,_)
     (let ((names (efrit-doctor-models)))
       (efrit-doctor--check
        (null names) "model"
        (if names
            (format "%s is not among the models (%s)" efrit-claude-model
                    (truncate-string-to-width (string-join names ", ") 200 nil nil t))
          (format "%s; the endpoint lists no models (status %d)" efrit-claude-model status))
        "M-x efrit-model chooses one of these; or set `efrit-claude-model'")))))

(defun efrit-doctor-models ()
  "Return the names of the models that the endpoint lists, or nil for none.
Signal a `user-error' if it does not answer."
  (pcase (efrit-doctor--ask-models nil)
    ((and (pred stringp) problem)
     (user-error "No server answers at %s (%s): start it, or give another address"
                 efrit-claude-url problem))
    (`(200 . ,body)
     (let* ((object (ignore-errors (efrit-json-plist body)))
            (models (and (listp object) (plist-get object :data))))
       (and (vectorp models)
            (delq nil (mapcar (lambda (model)
                                (let ((id (ignore-errors (plist-get model :id))))
                                  (and (stringp id) id)))
                              models)))))))

(defun efrit-doctor--ask-models (model)
  "Request the endpoint's entry of MODEL, or its list of models if MODEL is nil.
Return (STATUS . BODY), or an error text."
  (let ((url (replace-regexp-in-string "/messages/?\\'" "/models" efrit-claude-url)))
    (efrit-doctor--get (if model (concat url "/" (url-hexify-string model)) url))))

(defun efrit-doctor--get (url)
  "Get URL; return (STATUS . BODY), or an error text.
Pass the headers to curl by standard input, since the key is among them."
  (with-temp-buffer
    (let* ((default-directory temporary-file-directory)
           (process (make-process :name "efrit-doctor" :buffer (current-buffer) :noquery t
                                  :command (list efrit-http-program "-q" "--config" "-")
                                  :connection-type 'pipe :coding 'utf-8-unix
                                  :sentinel #'ignore)))
      (unwind-protect
          (progn
            (process-send-string
             process
             (efrit-http-options
              url (efrit-endpoint-headers nil)
              "show-error\n"
              (efrit-http-option "max-time" (number-to-string efrit-doctor--seconds))
              (efrit-http-option "max-filesize" "5000000")))
            (process-send-eof process)
            (while (accept-process-output process)))
        (delete-process process))
      (pcase (efrit-http-parse (buffer-string))
        ((and `(,status ,_ ,body) (guard (eql 0 (process-exit-status process))))
         (cons status body))
        (_ (goto-char (point-max))
           (skip-chars-backward "\n")
           (buffer-substring (line-beginning-position) (point)))))))

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

(defun efrit-doctor--show (report)
  "Show REPORT in a buffer of its own."
  (with-current-buffer (get-buffer-create "*efrit doctor*")
    (efrit-set-buffer-text report)
    (special-mode)
    (setq word-wrap t)
    (display-buffer (current-buffer))))

;;; Keys

(defvar auth-sources)

(declare-function auth-source-forget-all-cached "auth-source" ())
(declare-function epg-list-keys "epg" (context &optional name mode))

;;;###autoload
(defun efrit-add-key ()
  "Open the file of keys at the line with the key of the endpoint.
Add the line if it is missing; the person types the key and saves the file.
Sessions that failed for want of a key then go on."
  (interactive)
  (let ((host (efrit-endpoint-host))
        (file (efrit-setup--key-file)))
    (efrit-setup--create file)
    (pop-to-buffer (find-file-noselect file))
    (efrit-setup--go-to-key host)
    (setq header-line-format
          (substitute-command-keys
           (format " Type the key for %s at point, then \\[save-buffer]" host)))
    (add-hook 'after-save-hook #'efrit-setup--key-saved nil t)
    (message "%s" (substitute-command-keys
                   (format "Type the key for %s at point, then \\[save-buffer]" host)))))

(defun efrit-setup--key-file ()
  "Return the file of `auth-sources' for a new key.
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
apikey" (efrit-endpoint-host)))))

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
  (auth-source-forget-all-cached)
  (let ((waiting (efrit-setup--waiting-loops)))
    (condition-case err
        (progn
          (efrit-endpoint-headers nil)
          (setq header-line-format nil)
          (remove-hook 'after-save-hook #'efrit-setup--key-saved t)
          (quit-windows-on (current-buffer))
          (mapc #'efrit-setup--go-on waiting)
          (message "The key is found%s" (if waiting "; the message is sent" "")))
      (efrit-no-key (message "%s" (cadr err))))))

;;; Local servers

(defconst efrit-setup--servers
  '(("http://127.0.0.1:11434" . "Ollama") ("http://127.0.0.1:8080" . "llama.cpp")
    ("http://127.0.0.1:1234" . "LM Studio") ("http://127.0.0.1:8000" . "vLLM"))
  "Addresses of local servers that speak the Messages API, with their names.")

;;;###autoload
(defun efrit-use-local-server (url model)
  "Use the server at URL, which speaks the Messages API, with its MODEL.
Set `efrit-claude-url' and `efrit-claude-model' by Customize, and ask whether
to save them.  Sessions that failed for want of a key then go on."
  (interactive (let ((url (efrit-setup--read-url)))
                 (list url (efrit-setup--read-model url))))
  (efrit-setup--customize (list (cons 'efrit-claude-url url)
                                (cons 'efrit-claude-model model)))
  (let ((waiting (efrit-setup--waiting-loops)))
    (dolist (loop waiting)
      (efrit-loop-take-options loop)
      (efrit-setup--go-on loop))
    (message "New sessions use %s at %s%s" model url
             (if waiting "; the message is sent" ""))))

(defun efrit-setup--read-url ()
  "Ask for the address of a local server, and return its URL."
  (let* ((completion-extra-properties
          (list :annotation-function
                (lambda (url) (concat "  " (cdr (assoc url efrit-setup--servers))))))
         (url (string-trim (completing-read
                            (format-prompt "Address of the server"
                                           (caar efrit-setup--servers))
                            efrit-setup--servers nil nil nil nil (caar efrit-setup--servers)))))
    (unless (string-match-p "\\`https?://" url)
      (setq url (concat "http://" url)))
    (if (string-match-p "\\`https?://[^/]+/?\\'" url)
        (concat (string-remove-suffix "/" url) "/v1/messages")
      url)))

(defun efrit-setup--read-model (url)
  "Ask for a model of the server at URL, with completion if it lists its models.
Signal a `user-error' if no server answers there."
  (let* ((efrit-claude-url url)
         (models (efrit-doctor-models))
         (default (or (car models) efrit-claude-model)))
    (completing-read (format-prompt "Model" default) models nil nil nil nil default)))

(defun efrit-setup--customize (values)
  "Set each option of VALUES, an alist, by Customize; ask whether to save them.
An Emacs without an init file, as with -Q, cannot save them."
  (let ((save (and (or user-init-file custom-file)
                   (y-or-n-p "Save this for later sessions of Emacs, too? "))))
    (pcase-dolist (`(,option . ,value) values)
      (if save
          (customize-save-variable option value)
        (customize-set-variable option value)))))

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
  (run-at-time 0 nil (lambda ()
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
  "Run a session in batch on the folder above that of this package, and exit.
The exit code is 0 if the session ends well."
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
         (root (file-name-directory (directory-file-name efrit-directory)))
         (model (efrit-demo--start-model "tour")))
    (unwind-protect
        (progn
          (efrit-host-add efrit-demo--host home root)
          (efrit-demo--with-options (efrit-demo--url model)
            (efrit-demo--batch-do "Show me round this project.")))
      (efrit-demo--stop-model model)
      (efrit-host-remove efrit-demo--host)
      (delete-directory home t))))

(defun efrit-demo--batch-do (task)
  "Do TASK in batch on the folder above that of this package; return the loop."
  (let ((default-directory (file-name-directory (directory-file-name efrit-directory)))
        (efrit-context-buffer nil))
    (princ (format "> %s\n\n" task))
    (efrit-batch-run task)))

(provide 'efrit-setup)
;;; efrit-setup.el ends here
