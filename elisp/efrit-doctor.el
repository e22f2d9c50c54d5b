;;; efrit-doctor.el --- Check that everything is there  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-doctor checks this Emacs and the connection to the sidecar, asks
;; the endpoint about key and model, and runs the sidecar's own doctor; in a
;; remote folder, it checks that machine, too.  Each line is "ok" or "problem",
;; a name and the finding; a problem says how to fix it.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'url-parse)
(require 'url-util)

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

;;; Another machine

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

;;; The report

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

(provide 'efrit-doctor)
;;; efrit-doctor.el ends here
