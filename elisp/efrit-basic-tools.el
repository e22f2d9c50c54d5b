;;; efrit-basic-tools.el --- The tools of the loop itself  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; How the model says that it is done, keeps a list of what is to be done,
;; and asks the person.

;;; Code:

(require 'cl-lib)
(require 'efrit-loop)
(require 'efrit-tools)

;;; Tools

(efrit-define-tool session_complete
    ((summary "string" ""))
  "Say that the task is done. The person may go on."
  :policy allow
  (setf (efrit-loop-complete (efrit-tool-call-owner call)) t)
  (efrit-loop-tell (efrit-tool-call-owner call) 'complete summary)
  (efrit-tool-own "The person was told."))

(efrit-define-tool todo_write
    ((todos (:type "array"
                   :items (:type "object"
                                 :properties (:content (:type "string")
                                              :status (:enum ["pending" "doing" "done"]))
                                 :required ["content" "status"]))
            "The whole list"))
  "Keep a list of what is to be done, which the person sees."
  :policy allow
  (let ((loop (efrit-tool-call-owner call)))
    (setf (efrit-loop-todos loop) todos)
    (efrit-loop-tell loop 'todos todos)
    (efrit-tool-result
     (efrit-tool-own
      (format "%d items, %d done." (length todos)
              (cl-count "done" todos :key (lambda (todo) (plist-get todo :status))
                        :test #'equal)))
     :todos todos)))

(efrit-define-tool ask_user
    ((question "string" "")
     (options (:type "array" :items (:type "string")) "" :optional t))
  "Ask the person, and wait for the answer."
  :policy allow
  :async t
  (efrit-loop-tell (efrit-tool-call-owner call) 'question call question
                   (append options nil)))

(provide 'efrit-basic-tools)
;;; efrit-basic-tools.el ends here
