;;; efrit-mcp.el --- Tools of other people's MCP servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar runs the MCP servers of a session, those of `efrit-mcp-servers' and
;; those of the project's .mcp.json.  It offers their tools to the model and runs
;; their calls.  This file tells it which ones to start, and asks the person before
;; anything in a .mcp.json runs, and again when the file has changed.
;;
;; The person's answer is a permission rule about the file's content: WHAT is
;; `servers', and the subject is a digest that the sidecar makes, and compares
;; before it starts anything.

;;; Code:

(require 'efrit)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)

(defconst efrit-mcp--file ".mcp.json"
  "Name of the file with the servers of a project, in its root.")

(defconst efrit-mcp--question-buffer "*efrit .mcp.json*"
  "Name of the buffer that shows what a .mcp.json would start.")

(defconst efrit-mcp--answers
  '((?y "yes" "Start them, now and in this project while the file stays as it is.")
    (?s "session only" "Start them in this session; the next one asks again.")
    (?n "no" "Do not start them; the next session asks again.")
    (?N "never as it is" "Do not start them, and do not ask while the file stays as it is."))
  "Answers to the question about the servers of a project.")

;;; Starting

(defun efrit-mcp-start (loop then)
  "Have the sidecar run the MCP servers of LOOP, and call THEN.
Call THEN at once if they run already, or if there are none."
  (let ((wanted (efrit-mcp--params loop))
        (process (efrit-mcp--sidecar loop)))
    (if (or (and (process-live-p process)
                 (eq process (efrit-mcp--get loop :process))
                 (equal wanted (efrit-mcp--get loop :wanted)))
            ;; The session of another Emacs may have had servers.
            (not (or (efrit-mcp--any-p wanted)
                     (efrit-mcp--get loop :wanted)
                     (efrit-loop-stale loop))))
        (funcall then)
      (efrit-loop-call loop 'servers/start wanted
                       (lambda (reply)
                         (efrit-mcp--take loop wanted reply)
                         (funcall then))
                       (lambda (err)
                         (if (not (eq (car err) 'efrit-rpc-error))
                             (efrit-loop-sidecar-failed loop err)
                           (efrit-mcp--take loop wanted nil)
                           (efrit-loop-notify loop 'note
                                              (concat "The MCP servers were not started: "
                                                      (efrit-mcp--line (efrit-error-text err))))
                           (funcall then)))))))

(defun efrit-mcp-tool (loop name)
  "Return the entry of the tool NAME of an MCP server in LOOP, a plist, or nil.
It has `:policy' and `:has_effects', as in the sidecar's list of tools."
  (seq-find (lambda (tool) (equal name (plist-get tool :name)))
            (efrit-mcp--get loop :tools)))

(defun efrit-mcp--get (loop key)
  "Return what is known about the servers of LOOP under KEY."
  (plist-get (efrit-loop-servers loop) key))

(defun efrit-mcp--put (loop key value)
  "Note VALUE about the servers of LOOP under KEY."
  (setf (efrit-loop-servers loop) (plist-put (efrit-loop-servers loop) key value)))

(defun efrit-mcp--sidecar (loop)
  "Return the process of the sidecar of LOOP, or nil if it is not running."
  (efrit-sidecar-process (efrit-host-of-session (efrit-loop-id loop))))

(defun efrit-mcp--params (loop)
  "Return the params of `servers/start' for LOOP."
  `( :servers ,(or (efrit-mcp--own-servers loop) efrit-json-empty-object)
     ,@(when-let* ((digest (efrit-mcp--get loop :project)))
         (list :project digest
               :variables (or (efrit-mcp--get loop :variables) efrit-json-empty-object)))
     :deny ,(vconcat (efrit-loop-option loop 'efrit-mcp-hidden-tools))
     :short ,(if (efrit-loop-option loop 'efrit-mcp-short) t :json-false)
     :seconds ,(efrit-loop-option loop 'efrit-mcp-seconds)))

(defun efrit-mcp--own-servers (loop)
  "Return the servers of `efrit-mcp-servers' for LOOP as params, a plist.
They run on this machine only."
  (unless (file-remote-p (efrit-loop-root loop))
    (cl-loop for (name . server) in (efrit-loop-option loop 'efrit-mcp-servers)
             append (list (intern (concat ":" name))
                          `( :command ,(vconcat (plist-get server :command))
                             :env ,(or (efrit-mcp--object (plist-get server :env))
                                       efrit-json-empty-object)
                             ,@(when-let* ((folder (plist-get server :cwd)))
                                 (list :cwd (expand-file-name folder (efrit-loop-root loop)))))))))

(defun efrit-mcp--object (alist)
  "Return ALIST, from names to texts, as a plist that is written as a JSON object."
  (cl-loop for (name . value) in alist
           append (list (intern (concat ":" name)) value)))

(defun efrit-mcp--any-p (wanted)
  "Return non-nil if WANTED, params of `servers/start', name any server."
  (or (plist-get wanted :project)
      (not (eq efrit-json-empty-object (plist-get wanted :servers)))))

(defun efrit-mcp--take (loop wanted reply)
  "Note in LOOP that its servers are as WANTED, with their tools in REPLY.
REPLY is a plist, or nil if they were not started."
  (efrit-mcp--put loop :wanted wanted)
  (efrit-mcp--put loop :process (efrit-mcp--sidecar loop))
  (efrit-mcp--put loop :tools (append (plist-get reply :tools) nil))
  (when-let* ((servers (append (plist-get reply :servers) nil)))
    (efrit-loop-notify loop 'note
                       (concat "MCP servers: " (mapconcat #'efrit-mcp--state servers "; "))))
  (mapc (lambda (note) (efrit-loop-note-once loop (efrit-mcp--line note)))
        (plist-get reply :notes)))

(defun efrit-mcp--state (server)
  "Return a text about SERVER, a plist of a reply."
  (format "%s %s, %s" (plist-get server :name) (efrit-mcp--line (plist-get server :state))
          (efrit-count-text (plist-get server :tools) "tool")))

(defun efrit-mcp--line (text)
  "Return TEXT, which a server may have written, on one line that is not long."
  (truncate-string-to-width (efrit-permissions-visible text t) 300 nil nil t))

;;; The servers of a project

(defun efrit-mcp-decide (loop)
  "Decide whether the servers of the .mcp.json in LOOP's project may run.
Ask the person, unless that was done about the same content; in batch, where
nobody can be asked, they do not run."
  (let ((read (and (efrit-loop-option loop 'efrit-mcp-project)
                   (efrit-mcp--may-have-file-p loop)
                   (efrit-sidecar-request 'servers/read (list :session_id (efrit-loop-id loop))))))
    (when-let* ((problem (plist-get read :problem)))
      (efrit-loop-note-once loop (efrit-mcp--line problem)))
    (efrit-mcp--put loop :project (and (efrit-mcp--allowed-p loop read) (plist-get read :digest)))
    (efrit-mcp--put loop :variables (and (efrit-mcp--get loop :project)
                                         (efrit-mcp--variables loop read)))))

(defun efrit-mcp--may-have-file-p (loop)
  "Return nil if the project of LOOP has no .mcp.json.
On another machine the sidecar has to look."
  (let ((root (efrit-loop-root loop)))
    (or (file-remote-p root)
        (file-exists-p (expand-file-name efrit-mcp--file root)))))

(defun efrit-mcp--allowed-p (loop read)
  "Return non-nil if the servers in READ may run in LOOP; ask if need be.
READ is the reply to `servers/read', or nil."
  (when-let* ((digest (plist-get read :digest))
              ((< 0 (length (plist-get read :servers)))))
    (pcase (efrit-permissions-decide efrit-mcp--file (list (list :deed 'servers :text digest)) 'ask
                                     (append (efrit-loop-rules loop)
                                             (efrit-permissions-of (efrit-loop-root loop))))
      ('allow t)
      ('deny nil)
      (_ (if noninteractive
             (progn
               (efrit-loop-note-once loop "The servers of .mcp.json are not started in batch \
unless they were allowed in this project before.")
               nil)
           (efrit-mcp--ask loop read digest))))))

(defun efrit-mcp--ask (loop read digest)
  "Ask the person of LOOP about the servers in READ, and store a rule for DIGEST.
Return non-nil if they may run."
  (let* ((answer (efrit-mcp--answer (efrit-mcp--question loop read)
                                    (length (plist-get read :servers))))
         (decision (if (memq answer '(?y ?s)) 'allow 'deny))
         (rule (list 'servers (list 'exactly (list digest) nil) decision)))
    (if (memq answer '(?y ?N))
        (efrit-permissions-remember (efrit-loop-root loop) rule)
      (push rule (efrit-loop-rules loop)))
    (eq decision 'allow)))

(defun efrit-mcp--answer (question count)
  "Show QUESTION, about COUNT servers, and return the person's answer, a character.
Nothing can be allowed before the end of QUESTION was in sight."
  (unwind-protect
      (save-window-excursion
        (with-current-buffer-window
            efrit-mcp--question-buffer
            '((display-buffer-pop-up-window) (window-height . fit-window-to-buffer))
            nil
          (insert question)
          (special-mode)
          (setq-local truncate-partial-width-windows nil
                      truncate-lines nil))
        (let ((prompt (format "Start the %s of .mcp.json?" (efrit-count-text count "program")))
              (window (get-buffer-window efrit-mcp--question-buffer))
              (answer ?v))
          (while (eq answer ?v)
            (setq answer (car (read-multiple-choice
                               prompt
                               (if (efrit-mcp--shows-end-p window)
                                   efrit-mcp--answers
                                 (cons '(?v "view the rest" "Show what follows.")
                                       (seq-filter (lambda (choice) (memq (car choice) '(?n ?N)))
                                                   efrit-mcp--answers))))))
            (when (eq answer ?v)
              (efrit-mcp--scroll window)))
          answer))
    (when-let* ((buffer (get-buffer efrit-mcp--question-buffer)))
      (kill-buffer buffer))))

(defun efrit-mcp--shows-end-p (window)
  "Return non-nil if the end of its buffer is in sight in WINDOW."
  (with-selected-window window
    (<= (count-screen-lines (window-start) (point-max)) (window-body-height))))

(defun efrit-mcp--scroll (window)
  "Show what follows in WINDOW, below its present last line."
  (with-selected-window window
    (goto-char (window-start))
    (vertical-motion (max 1 (1- (window-body-height))))
    (set-window-start window (point))))

(defun efrit-mcp--question (loop read)
  "Return what the person of LOOP is shown about the servers in READ, a plist."
  (concat
   (format "The file .mcp.json here starts these programs, with your rights.  Project: %s\n\n"
           (efrit-permissions-visible (efrit-loop-root loop) t))
   (mapconcat (lambda (server)
                (format "%s\n    %s\n" (propertize (plist-get server :name) 'face 'efrit-tool)
                        (propertize (efrit-permissions-visible (plist-get server :command) t)
                                    'face 'efrit-question-body)))
              (plist-get read :servers) "\n")
   (when-let* ((variables (efrit-mcp--variables loop read)))
     (format "\nThey get from your environment: %s\n"
             (mapconcat (lambda (name) (substring (symbol-name name) 1))
                        (cl-loop for (name _) on variables by #'cddr collect name)
                        ", ")))
   "\nThe model is offered their tools.  You are asked about each call.\n"))

(defun efrit-mcp--variables (loop read)
  "Return the variables that READ names, with their values in this Emacs, a plist.
The variables with keys of models are left out.  On another machine, LOOP's
servers get only what they find there."
  (unless (file-remote-p (efrit-loop-root loop))
    (cl-loop for name across (plist-get read :variables)
             for value = (getenv name)
             when (and value (not (member name (efrit-mcp--key-variables))))
             append (list (intern (concat ":" name)) value))))

(defun efrit-mcp--key-variables ()
  "Return the names of the variables that hold keys of models."
  (cons "ANTHROPIC_API_KEY"
        (delq nil (mapcar (lambda (provider) (plist-get (cdr provider) :key))
                          (append (default-value 'efrit-providers) efrit-preset-providers)))))

;;; Showing

(defvar-local efrit-servers--loop nil
  "The loop whose servers this buffer lists.")

(define-derived-mode efrit-servers-mode special-mode "Efrit-Servers"
  "Mode of the list of a session's MCP servers."
  (setq-local revert-buffer-function (lambda (&rest _) (efrit-servers--print)))
  (efrit-keep-keys))

;;;###autoload
(defun efrit-servers ()
  "List the MCP servers of the session here, whether they run, and their tools."
  (interactive)
  (let ((loop (efrit-loop-current)))
    (with-current-buffer (get-buffer-create "*efrit servers*")
      (efrit-servers-mode)
      (setq efrit-servers--loop loop)
      (efrit-servers--print)
      (pop-to-buffer (current-buffer)))))

(defun efrit-servers--print ()
  "Print the servers of this buffer's loop."
  (let ((reply (efrit-for-a-person
                 (efrit-sidecar-request
                  'servers/list (list :session_id (efrit-loop-id efrit-servers--loop))))))
    (efrit-set-buffer-text
     (concat
      (if (zerop (length (plist-get reply :servers)))
          "This session has no MCP servers.\n"
        (mapconcat (lambda (server) (concat (efrit-mcp--state server) "\n"))
                   (plist-get reply :servers) ""))
      (mapconcat (lambda (tool) (format "\n    %s" (plist-get tool :name)))
                 (plist-get reply :tools) "")
      "\n\nThe option `efrit-mcp-servers' and the project's .mcp.json name servers; "
      "M-x efrit-take-options\nhas this session use the option as it is now.\n"))))

(provide 'efrit-mcp)
;;; efrit-mcp.el ends here
