;;; efrit-demo.el --- Two minutes with a scripted model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; M-x efrit-demo shows a session in this Emacs without a key: a scripted model
;; on this machine works in a small git repository in a temporary folder.  The
;; session has a sidecar with a state of its own there, so the person's sessions
;; and key have no part in it.  `efrit-demo-batch' prints a session in batch.

;;; Code:

(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-view)

;;; The scripted model

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

;;; The project

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

;;; The session

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

;;; In batch

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

(provide 'efrit-demo)
;;; efrit-demo.el ends here
