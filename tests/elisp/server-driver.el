;;; server-driver.el --- Sessions with any server, as a program asks for them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in a batch Emacs: it reads a command from each line of standard input,
;; a JSON object whose member `do' is `begin', `say', `go' or `stored', works
;; on the session, and writes what happens: a line that begins with "BEGUN "
;; for each turn, with "USE " for each tool call that ended, with "REST " when
;; the session waits for the person, and with "STORED " for its results.  A
;; JSON value follows.  Each request is added to a file, a line each.  With
;; `look' it finds out what a server can do, and writes a line that begins with
;; "FOUND ".  See tests/servers/driving.py.

;;; Code:

(add-to-list 'load-path (file-name-directory load-file-name))
(add-to-list 'load-path (expand-file-name "../../elisp" (file-name-directory load-file-name)))

(require 'scripted)
(require 'efrit-files)
(require 'efrit-providers)
(require 'efrit-run)

(defconst server-driver--seconds 600
  "Most seconds until a session must wait for the person.")

(defvar server-driver--loop nil
  "The loop of the session.")

(defvar server-driver--since nil
  "Plist with the start of the present exchange, and what happened in it.")

(defun server-driver-run ()
  "Do what each line of standard input asks for."
  (setq efrit-permission-rules '((t t allow))
        efrit-do-show-function #'ignore)
  (let (line)
    ;; Nobody is there to answer one.
    (dolist (question '(yes-or-no-p y-or-n-p read-string read-passwd))
      (advice-add question :override
                  (lambda (prompt &rest _) (error "A question: %s" prompt))))
    (while (setq line (ignore-errors (read-from-minibuffer "")))
      (condition-case err
          (server-driver--do (json-parse-string line :object-type 'plist))
        (error (server-driver--say "ERROR" (error-message-string err)))))))

(defun server-driver--do (command)
  "Do what COMMAND, a plist, asks for."
  (pcase (plist-get command :do)
    ("begin" (server-driver--begin command))
    ("say" (server-driver--await (lambda () (efrit-do-say server-driver--loop
                                                          (plist-get command :text)))))
    ("go" (server-driver--await (lambda () (efrit-continue server-driver--loop))))
    ("stored" (server-driver--say "STORED" (server-driver--stored)))
    ("look" (server-driver--say "FOUND" (server-driver--look command)))))

(defun server-driver--choose (command)
  "Set the `:options' of COMMAND: options of Emacs with the text of their values."
  (cl-loop for (name text) on (plist-get command :options) by #'cddr
           do (set (intern (substring (symbol-name name) 1)) (car (read-from-string text)))))

(defun server-driver--begin (command)
  "Begin the session of COMMAND, a plist; `:requests' is the file of the requests."
  (server-driver--choose command)
  (advice-add 'efrit-http-post :before
              (lambda (_url _headers body &rest _)
                (let ((coding-system-for-write 'utf-8-unix))
                  (write-region (concat (apply #'concat body) "\n") nil
                                (plist-get command :requests) t 'silent))))
  (setq efrit-test-project (file-name-as-directory (plist-get command :root))
        default-directory efrit-test-project
        server-driver--loop (efrit-test-loop))
  (efrit-loop-observe server-driver--loop #'server-driver--observe))

(defun server-driver--await (function)
  "Call FUNCTION, wait until the loop waits for the person, and write how it does."
  (setq server-driver--since (list :said "" :retries nil :notes nil :start (float-time)))
  (funcall function)
  (efrit-test-wait-until (lambda () (efrit-loop-resting-p server-driver--loop))
                         server-driver--seconds)
  (server-driver--say
   "REST" `( :state ,(symbol-name (efrit-loop-state server-driver--loop))
             :problem ,(efrit-loop-problem server-driver--loop)
             :epoch ,(efrit-loop-epoch server-driver--loop)
             :usage ,(efrit-loop-usage server-driver--loop)
             :after ,(- (float-time) (plist-get server-driver--since :start))
             :said ,(plist-get server-driver--since :said)
             :retries ,(vconcat (reverse (plist-get server-driver--since :retries)))
             :notes ,(vconcat (reverse (plist-get server-driver--since :notes))))))

(defun server-driver--observe (loop event)
  "Write EVENT of LOOP as a line, or keep it until the loop waits."
  (pcase event
    (`(begun ,rewritten . ,_)
     (let ((budget (efrit-loop-budget loop)))
       (server-driver--say
        "BEGUN" (list :rewritten (or rewritten :json-false)
                      :after (- (float-time) (plist-get server-driver--since :start))
                      :used (plist-get budget :used)
                      :limit (- (plist-get budget :total)
                                (plist-get (plist-get (plist-get budget :tiers) :response)
                                           :limit))))))
    ((and `(use ,use) (guard (eq 'done (efrit-use-state use))))
     (server-driver--say
      "USE" (list :turn (efrit-loop-turn loop)
                  :place (cl-position use (efrit-loop-run loop))
                  :name (efrit-use-name use)
                  :input (efrit-use-arguments use)
                  :unreadable (efrit-use-problem use)
                  :misfit (efrit-use-misfit use)
                  :status (plist-get (efrit-use-result use) :status)
                  :text (plist-get (efrit-use-result use) :text))))
    (`(piece ,block ,piece)
     (when (equal "text" (efrit-block-type block))
       (cl-callf concat (plist-get server-driver--since :said) piece)))
    ('(again) (setf (plist-get server-driver--since :said) ""))
    (`(retry ,_ ,problem) (push (plist-get problem :message)
                                (plist-get server-driver--since :retries)))
    (`(note ,text) (push text (plist-get server-driver--since :notes)))))

(defun server-driver--stored ()
  "Return the handle, a digest and the length of each stored result, a vector."
  (let ((id (efrit-loop-id server-driver--loop)))
    (cl-map 'vector
            (lambda (entry)
              (let* ((handle (plist-get entry :handle))
                     (text (plist-get (efrit-sidecar-request
                                       'worklog/show (list :session_id id :handle handle))
                                      :text)))
                (list :handle handle :digest (md5 text nil nil 'utf-8)
                      :bytes (string-bytes text))))
            (plist-get (efrit-sidecar-request 'worklog/list (list :session_id id)) :entries))))

(defun server-driver--look (command)
  "Return what the server at the `:address' of COMMAND can do with its `:model'."
  (server-driver--choose command)
  (let ((found (efrit-provider-look (plist-get command :address)))
        (model (plist-get command :model)))
    (efrit-provider-try found model)
    (efrit-provider-measure found model)
    (list :url (efrit-found-url found) :api (efrit-found-api found)
          :features (vconcat (efrit-found-features found))
          :streaming (efrit-found-streaming found) :tools (efrit-found-tools found)
          :usage (and (efrit-found-usage found) t)
          :models (vconcat (mapcar #'car (efrit-found-models found)))
          :window (plist-get (cdr (assoc model (efrit-found-models found))) :window))))

(defun server-driver--say (word value)
  "Write WORD and VALUE as a line."
  ;; princ would leave it in a buffer.
  (send-string-to-terminal (format "%s %s\n" word (json-encode value))))

(server-driver-run)

(provide 'server-driver)
;;; server-driver.el ends here
