;;; efrit-price.el --- What a session costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The sidecar knows what each reply cost; it is asked after each.  What
;; came of an attempt that broke off is paid for, too, and booked with the
;; reply that comes in the end, or where none does, by itself.

;;; Code:

(require 'efrit)
(require 'efrit-claude)
(require 'efrit-loop)
(require 'efrit-sidecar)

;;; Public

(defun efrit-price-note (loop event)
  "Ask what LOOP has cost, when EVENT is the end of a reply."
  (when (eq (car event) 'ended)
    (efrit-price-ask loop)))

(defun efrit-price-ask (loop)
  "Ask what LOOP has cost, and note it when the answer is there."
  (efrit-sidecar-request-async
   'session/status (list :session_id (efrit-loop-id loop) :price t)
   :success (lambda (status) (efrit-price-take loop status))
   :error #'ignore))

(defun efrit-price-take (loop status)
  "Note what LOOP has cost by now, as STATUS, the sidecar's, has it.
Where the price is not known, a limit of dollars is never reached, which the
person is told once."
  (let ((dollars (plist-get status :dollars)))
    (cond ((numberp dollars) (efrit-price--add loop dollars))
          ((efrit-loop-option loop 'efrit-max-dollars)
           (efrit-loop-note-once
            loop (format "The price of %s is not known: `efrit-max-dollars' stops nothing here"
                         (efrit-price--model status)))))))

;;; Counts

(defun efrit-price-add (loop counts)
  "Add COUNTS, the usage of a reply as a hash table, to the sums of LOOP."
  (let ((usage (efrit-loop-usage loop)))
    (pcase-dolist (`(,name . ,member) '((:input . "input_tokens")
                                        (:written . "cache_creation_input_tokens")
                                        (:read . "cache_read_input_tokens")
                                        (:output . "output_tokens")))
      (setq usage (plist-put usage name (+ (or (plist-get usage name) 0)
                                           (gethash member counts 0)))))
    (setf (efrit-loop-usage loop) usage)))

(defun efrit-price-take-lost (loop)
  "Let go of the request of LOOP, and keep what its lost attempts reported."
  (let ((request (efrit-loop-request loop)))
    (setf (efrit-loop-lost loop) (append (efrit-claude-lost request) (efrit-loop-lost loop))
          (efrit-loop-request loop) nil)))

(defun efrit-price-book-lost (loop)
  "End the turn of LOOP for the sidecar, where something was paid for no reply.
LOOP does not wait for it.  Where it fails, the next turn books it."
  (when-let* ((lost (efrit-loop-lost loop)))
    (setf (efrit-loop-lost loop) nil)
    (efrit-sidecar-request-async
     'turn/end `(:session_id ,(efrit-loop-id loop) :turn_id ,(efrit-loop-turn loop)
                             :aborted t :lost ,(vconcat lost))
     :success (lambda (_)
                (mapc (apply-partially #'efrit-price-add loop) lost)
                (efrit-price-ask loop))
     :error (lambda (_)
              (setf (efrit-loop-lost loop) (append lost (efrit-loop-lost loop)))))))

;;; Private

(defun efrit-price--add (loop dollars)
  "Note that LOOP has cost DOLLARS so far."
  (let ((before (or (plist-get (efrit-loop-usage loop) :dollars) 0))
        (counts (efrit-loop-counts loop)))
    (setf (efrit-loop-usage loop) (plist-put (efrit-loop-usage loop) :dollars dollars))
    (plist-put counts :dollars (+ (plist-get counts :dollars) (- dollars before)))
    (efrit-loop-tell loop 'price dollars)))

(defun efrit-price--model (status)
  "Return the name of the model that STATUS, of a session, is about."
  (or (plist-get (plist-get (plist-get status :budget) :calibration) :model)
      "this model"))

(provide 'efrit-price)
;;; efrit-price.el ends here
