;;; editing.el --- What the tests of edits stand on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Uses of the tools that change files, without a model: planned, made and
;; booked with a real sidecar, as in a session.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'scripted)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-rpc)
(require 'efrit-tools)
(require 'efrit-undo)
(require 'seq)

(defvar editing-loop nil
  "The loop of the test that runs.")

(defvar editing--uses 0
  "Number of tool uses so far.")

(defmacro editing-with (files &rest body)
  "Run BODY in a project with FILES, and `editing-loop' a loop on it."
  (declare (indent 1) (debug (form body)))
  `(efrit-test-with-project ,files
     (let ((editing-loop (efrit-test-loop)))
       ,@body)))

(defun editing-use (tool &rest arguments)
  "Use TOOL with ARGUMENTS, a plist, as if it was allowed; return the result."
  (let ((planned (editing-plan tool arguments)))
    (if (stringp planned)
        (list :text planned :status "error")
      (editing-carry-out tool arguments planned))))

(defun editing-plan (tool arguments)
  "Return the plan of a use of TOOL with ARGUMENTS, or the reason for none."
  (let ((tool (efrit-tool-get tool))
        planned)
    (if (null (efrit-tool-plan tool))
        t
      (efrit-plan-make editing-loop tool (editing--json arguments)
                       (lambda (plan) (setq planned plan))
                       (lambda (problem) (setq planned problem)))
      (should (efrit-test-wait-until (lambda () planned)))
      planned)))

(defun editing-carry-out (tool arguments plan)
  "Use TOOL with ARGUMENTS, for which PLAN was made; return the result."
  (let* (result
         (call (efrit-tool-call-create
                :owner editing-loop :id (format "edit-%d" (cl-incf editing--uses)) :name tool
                :plan plan :finish (lambda (given) (setq result given)))))
    (efrit-tools-run call (editing--json arguments))
    (should (efrit-test-wait-until (lambda () result)))
    result))

(defun editing-read (path)
  "Have the model read the file PATH."
  (let ((arguments (list :path path)))
    (efrit-read-files-record editing-loop "read_file" (editing--json arguments)
                             (efrit-test-tool (efrit-loop-id editing-loop) "read_file" arguments))))

(defun editing--json (arguments)
  "Return ARGUMENTS, a plist, as a JSON text."
  (efrit-json-text (or arguments efrit-json-empty-object)))

(defun editing-file (name)
  "Return the whole name of NAME, a file of the project."
  (expand-file-name name efrit-test-project))

(defun editing-bytes (name)
  "Return the bytes of the file NAME of the project, or nil."
  (let ((file (editing-file name)))
    (and (file-exists-p file)
         (with-temp-buffer
           (set-buffer-multibyte nil)
           (insert-file-contents-literally file)
           (buffer-string)))))

(defun editing-write-bytes (name bytes)
  "Write BYTES, a unibyte string, into the file NAME of the project."
  (let* ((coding-system-for-write 'no-conversion)
         (new (make-temp-file "efrit-bytes-" nil nil bytes)))
    ;; Written in place, Emacs would ask where the file is visited.
    (copy-file new (editing-file name) t)
    (delete-file new)))

(defun editing-changes ()
  "Return each change of the session."
  (append (plist-get (efrit-sidecar-request
                      'changes/list (list :session_id (efrit-loop-id editing-loop)))
                     :changes)
          nil))

(defun editing-undo-all (&optional force)
  "Take back all that was changed in the session; return the outcomes.
With FORCE, also where somebody changed a file since."
  (let (outcomes done)
    (efrit-undo-list
     editing-loop
     (lambda (changes)
       (efrit-undo-changes
        editing-loop
        (mapcar (lambda (change) (plist-get change :number))
                (seq-filter #'efrit-undo-open-p (reverse changes)))
        force
        (lambda (given) (setq outcomes given done t))))
     (lambda (err) (error "%s" (efrit-error-text err))))
    (should (efrit-test-wait-until (lambda () done)))
    outcomes))

(defun editing-tree ()
  "Return all files of the project but git's: an alist of names and bytes."
  (mapcar (lambda (file)
            (let ((name (file-relative-name file efrit-test-project)))
              (cons name (editing-bytes name))))
          (directory-files-recursively efrit-test-project "" nil
                                       (lambda (folder)
                                         (not (string-suffix-p "/.git" folder))))))

(provide 'editing)
;;; editing.el ends here
