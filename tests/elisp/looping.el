;;; looping.el --- What the tests of the loop stand on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A loop with a scripted model, whose events are kept.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'scripted)
(require 'seq)

(defvar loop-test--events nil
  "The events of the loop under test, the latest first.")

(defmacro loop-test-with (script loop &rest body)
  "Run BODY in a project while a model plays SCRIPT, with LOOP bound to a loop.
Every tool is allowed, retries wait for nothing, and events are kept."
  (declare (indent 2) (debug (form symbolp body)))
  `(loop-test-in-project
     (loop-test-play ,script ,loop ,@body)))

(defmacro loop-test-in-project (&rest body)
  "Run BODY in a project with two files."
  (declare (indent 0) (debug (body)))
  `(efrit-test-with-project '(("README.md" . "# A project\n") ("a.txt" . "one\ntwo\n"))
     ,@body))

(defmacro loop-test-play (script loop &rest body)
  "Run BODY while a model plays SCRIPT, with LOOP bound to a loop of the project.
It is as in `loop-test-with', and LOOP is forgotten afterwards."
  (declare (indent 2) (debug (form symbolp body)))
  `(efrit-test-with-model ,script
     (let* ((efrit-permission-rules '((t t allow)))
            (efrit-claude-retry-delay 0.05)
            (loop-test--events nil)
            (,loop (efrit-test-loop)))
       (efrit-loop-observe ,loop (lambda (_ event) (push event loop-test--events)))
       (prog1 (progn ,@body)
         (efrit-do-forget ,loop)))))

(defmacro loop-test-with-each-api (api &rest body)
  "Run BODY once for each API, with API bound to its name; models speak it."
  (declare (indent 1) (debug (symbolp body)))
  `(dolist (,api '(messages chat))
     (ert-info ((symbol-name ,api))
       (let ((efrit-test-api ,api))
         ,@body))))

(defun loop-test--states ()
  "Return the states that the loop went through, in order."
  (cl-loop for event in (reverse loop-test--events)
           when (eq (car event) 'state) collect (cadr event)))

(defun loop-test--said ()
  "Return the text of the model since its reply last began anew."
  (let ((text ""))
    (dolist (event (reverse loop-test--events))
      (pcase event
        ('(again) (setq text ""))
        (`(piece ,block ,piece)
         (when (equal (efrit-block-type block) "text")
           (setq text (concat text piece))))))
    text))

(defun loop-test--statuses ()
  "Return the statuses of the model's answers, in order."
  (mapcar (lambda (request) (gethash "status" request)) (efrit-test-sent)))

(defun loop-test--wait-for (loop state)
  "Wait until LOOP is in STATE."
  (should (efrit-test-wait-until (lambda () (eq (efrit-loop-state loop) state)))))

(defun loop-test--goes-on (loop)
  "Check that LOOP can be used: it takes a message, and the model answers."
  (should (memq (efrit-loop-state loop) efrit-loop-resting))
  (let ((before (length (seq-filter (lambda (status) (eql status 200))
                                    (loop-test--statuses)))))
    (efrit-test-finish loop "And now?")
    (should (> (length (seq-filter (lambda (status) (eql status 200)) (loop-test--statuses)))
               before))
    (should-not (memql 400 (loop-test--statuses)))))

(provide 'looping)
;;; looping.el ends here
