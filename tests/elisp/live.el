;;; live.el --- Using a tool that runs in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A test uses a tool as a session would, or has a scripted model use it in a
;; real session.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'efrit-rpc)
(require 'efrit-do)

(defvar live-test-root nil
  "The folder of the project of the test that runs, with a slash at its end.")

(defmacro live-test-in (files &rest body)
  "Run BODY in a new folder with FILES, an alist of names and texts.
It is `live-test-root' and `default-directory'.  Buffers that come to be in
it are killed."
  (declare (indent 1) (debug (form body)))
  `(live-test--in ,files (lambda () ,@body)))

(defmacro live-test-in-session (files &rest body)
  "Run BODY like `live-test-in' with FILES, in a session of a real sidecar."
  (declare (indent 1) (debug (form body)))
  `(live-test-in ,files
     (efrit-test-with-home home
       (let ((live-test--session (efrit-session-open live-test-root)))
         ,@body))))

(defvar live-test--session "live"
  "The id of the session whose tools are used.")

(defun live-test--in (files body)
  "Call BODY in a new folder with FILES."
  (let* ((live-test-root (file-name-as-directory
                          (file-truename (make-temp-file "efrit-live-" t))))
         (default-directory live-test-root)
         (efrit-test-project live-test-root)
         (before (buffer-list)))
    (pcase-dolist (`(,name . ,text) files)
      (efrit-test-write name text))
    (unwind-protect
        (funcall body)
      (efrit-test-kill-others before)
      (delete-directory live-test-root t))))

(defun live-test-begin (name arguments then)
  "Use the tool NAME with ARGUMENTS, a plist; THEN is given the result.
Return the `efrit-tool-call'."
  (let ((call (efrit-tool-call-create
               :owner (efrit-loop-make live-test--session live-test-root) :id "use" :name name
               :finish then)))
    (efrit-tools-run call (efrit-tool-resolve-arguments
                           name (efrit-tool-call-owner call)
                           (decode-coding-string
                            (efrit-json-write (or arguments efrit-json-empty-object))
                            'utf-8)))
    call))

(defun live-test-use (name &rest arguments)
  "Use the tool NAME with ARGUMENTS, a plist, and return its result."
  (let ((result nil))
    (live-test-begin name arguments (lambda (given) (setq result given)))
    (should (efrit-test-wait-until (lambda () result)))
    (when-let* ((summary (plist-get result :summary)))
      (should (<= (length summary) 500)))
    result))

(defun live-test--text (status name arguments)
  "Use the tool NAME with ARGUMENTS and return its text; it ends with STATUS."
  (let ((result (apply #'live-test-use name arguments)))
    (ert-info ((format "%S" result))
      (should (equal status (plist-get result :status))))
    (plist-get result :text)))

(defun live-test-text (name &rest arguments)
  "Use the tool NAME with ARGUMENTS; it succeeds.  Return its text."
  (live-test--text "success" name arguments))

(defun live-test-refused (name &rest arguments)
  "Use the tool NAME with ARGUMENTS; it fails.  Return its text."
  (live-test--text "error" name arguments))

(defun live-test-has (text &rest parts)
  "Check that PARTS are in TEXT, one behind the other."
  (let ((from 0))
    (dolist (part parts)
      (ert-info ((format "looking for %S in %s" part text))
        (let ((at (string-search part text from)))
          (should at)
          (setq from (+ at (length part))))))))

(defun live-test-lacks (text &rest parts)
  "Check that none of PARTS is in TEXT."
  (dolist (part parts)
    (ert-info ((format "in %s" text))
      (should-not (string-search part text)))))

(defun live-test-model-uses (tool input expected)
  "Let a model use TOOL with INPUT, a TOML table; check that it gets EXPECTED.
The project is that of `loop-test-with'; all questions are allowed."
  (loop-test-with (format "
[[reply]]
tool = [ { name = %S, input = %s } ]
[[reply]]
expect_contains = %S
text = \"Done.\"
" tool input expected) loop
    (let ((live-test-root efrit-test-project))
      (efrit-loop-observe loop (lambda (loop event)
                                 (when (eq (car event) 'ask)
                                   (efrit-defer #'efrit-run-answer loop (cadr event) 'allow))))
      (efrit-test-finish loop "Look.")
      (should (equal "Done." (loop-test--said)))
      (should-not (memql 400 (loop-test--statuses))))))

(provide 'live)
;;; live.el ends here
