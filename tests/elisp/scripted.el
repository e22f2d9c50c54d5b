;;; scripted.el --- Loops with a scripted model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A test writes what the model says as TOML, and works with a real loop: the
;; model is `efrit-budget demo-model', a process that takes requests over
;; HTTP and refuses what the real API would.

;;; Code:

(require 'cl-lib)
(require 'support)
(require 'efrit-do)
(require 'efrit-rpc)
(require 'efrit-permissions)

(defvar efrit-test-project nil
  "The folder of the project of the test that runs, with a slash at its end.")

(defvar efrit-test-requests nil
  "The file to which the scripted model adds each request, as a line of JSON.")

(defvar efrit-test-api 'messages
  "The API in which the scripted model is asked, as in `efrit-endpoint-api'.")

(defvar efrit-test-model-options nil
  "Further options of the scripted model, strings.")

(defconst efrit-test--apis
  '((messages "/v1/messages" (cache thinking effort binding diagnostics))
    (chat "/v1/chat/completions" (usage images reasoning-back)))
  "Alist from APIs to the scripted model's paths and features.")

(defmacro efrit-test-with-project (files &rest body)
  "Run BODY in a new project with FILES, an alist of names and texts.
Its sidecar has a home of its own; `efrit-test-project' is its root, and
the `default-directory', too.  Then forget its loops."
  (declare (indent 1) (debug (form body)))
  `(efrit-test--in-project ,files (lambda () ,@body)))

(defmacro efrit-test-with-model (script &rest body)
  "Run BODY while a model plays SCRIPT, the TOML of a scenario."
  (declare (indent 1) (debug (form body)))
  `(efrit-test--playing ,script (lambda () ,@body)))

(defmacro efrit-test-with-rules (loop rules &rest body)
  "Run BODY while LOOP works by RULES as those of `efrit-permission-rules'."
  (declare (indent 2) (debug t))
  `(efrit-test-with-options ,loop ((efrit-permission-rules ,rules)) ,@body))

(defmacro efrit-test-with-options (loop options &rest body)
  "Run BODY while LOOP works by OPTIONS: lists of an option and a value."
  (declare (indent 2) (debug (form (&rest (symbolp form)) body)))
  (let ((before (make-symbol "before")))
    `(let ((,before (copy-alist (efrit-loop-options ,loop))))
       ,@(mapcar (lambda (option)
                   `(setf (alist-get ',(car option) (efrit-loop-options ,loop))
                          ,(cadr option)))
                 options)
       (unwind-protect
           (progn ,@body)
         (setf (efrit-loop-options ,loop) ,before)))))

(defun efrit-test--in-project (files body)
  "Call BODY in a new project with FILES."
  (efrit-test-with-home home
    (let* ((efrit-test-project (file-name-as-directory
                                (file-truename (make-temp-file "efrit-project-" t))))
           (default-directory efrit-test-project)
           (efrit-permissions-file (expand-file-name "permissions.eld" home))
           (efrit-do-show-function #'ignore)
           (efrit-claude-retry-delay 0.05)
           (efrit-test-requests (expand-file-name "requests.jsonl" home))
           (buffers (buffer-list)))
      (call-process "git" nil nil nil "init" "--quiet")
      (pcase-dolist (`(,name . ,text) files)
        (efrit-test-write name text))
      (unwind-protect
          (funcall body)
        (mapc #'efrit-do-forget (efrit-loops))
        (efrit-test-kill-others buffers)
        (delete-directory efrit-test-project t)))))

(defun efrit-test-kill-others (buffers)
  "Kill all buffers but BUFFERS, modified or not; cancel all timers."
  (let ((kill-buffer-query-functions nil))
    (dolist (buffer (seq-difference (buffer-list) buffers))
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (set-buffer-modified-p nil))
        (kill-buffer buffer))))
  (mapc #'cancel-function-timers '(delete-overlay efrit-turn--warn-slow-stop)))

(defun efrit-test-kill-buffers (buffers)
  "Kill those of BUFFERS that visit files of the project, modified or not."
  (dolist (buffer buffers)
    (when (and (buffer-live-p buffer) (buffer-file-name buffer)
               (string-prefix-p efrit-test-project (buffer-file-name buffer)))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(defun efrit-test-write (name text)
  "Write TEXT into the file NAME of the project."
  (let ((file (expand-file-name name efrit-test-project))
        (coding-system-for-write 'utf-8-unix))
    (make-directory (file-name-directory file) t)
    (with-temp-file file
      (insert text))))

(defun efrit-test--playing (script body)
  "Call BODY while a model plays SCRIPT."
  (let* ((file (make-temp-file "efrit-scenario-" nil ".toml" script))
         (model (efrit-test--start-model file)))
    (unwind-protect
        (pcase-let* ((`(,path ,efrit-claude-features) (alist-get efrit-test-api efrit-test--apis))
                     (efrit-claude-url (concat (efrit-test--url model) path))
                     (efrit-endpoint-api efrit-test-api))
          (mapc #'efrit-loop-take-options (efrit-loops))
          (funcall body))
      (kill-buffer (process-buffer model))
      (delete-process model)
      (delete-file file))))

(defun efrit-test--start-model (file)
  "Start a model that plays the scenario FILE, and return its process."
  (make-process :name "efrit-test-model"
                :buffer (generate-new-buffer " *efrit-test-model*")
                :command (append (efrit-executable-command)
                                 (list "demo-model" "--no-key" "--quiet" "--until-eof"
                                       "--scenario" file)
                                 efrit-test-model-options
                                 (and efrit-test-requests
                                      (list "--record" efrit-test-requests)))
                :connection-type 'pipe
                :noquery t
                :sentinel #'ignore))

(defun efrit-test--url (model)
  "Wait for MODEL, a process, to say where it listens, and return that."
  (or (efrit-test-wait-until
       (lambda ()
         (with-current-buffer (process-buffer model)
           (goto-char (point-min))
           (and (re-search-forward "http://[0-9.:]+" nil t)
                (match-string 0)))))
      (error "The scripted model did not start: %s"
             (with-current-buffer (process-buffer model) (buffer-string)))))

(defun efrit-test-offered ()
  "Return the sidecar's own tools, as it lists them."
  (let ((own (mapcan (lambda (folder)
                       (mapcar #'file-name-base (directory-files folder nil "\\.py\\'")))
                     (copy-sequence efrit-test--tools))))
    (cl-remove-if (lambda (tool) (member (plist-get tool :name) own))
                  (plist-get (efrit-sidecar-request 'tools/list nil) :tools))))

;;; Loops

(defun efrit-test-loop ()
  "Return a new loop on the project of the test."
  (efrit-do-make-loop efrit-test-project))

(defun efrit-test-rest (loop)
  "Wait until LOOP rests, and return its state."
  (efrit-test-wait-until (lambda () (efrit-loop-resting-p loop)))
  (efrit-loop-state loop))

(defun efrit-test-finish (loop task)
  "Let LOOP do TASK; it must end well."
  (efrit-do-say loop task)
  (let ((state (efrit-test-rest loop)))
    (ert-info ((format "problem: %s" (efrit-loop-problem loop)))
      (should (eq 'idle state)))))

(defun efrit-test-sent ()
  "Return the requests that the model took, in order: hash tables.
A line that is being written does not count yet."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents efrit-test-requests))
    (mapcar #'efrit-json-parse (butlast (split-string (buffer-string) "\n")))))

(defun efrit-test-sent-text ()
  "Return all that was ever sent to the model, as one string."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents efrit-test-requests))
    (buffer-string)))

(provide 'scripted)
;;; scripted.el ends here
