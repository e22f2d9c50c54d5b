;;; bench.el --- What a call costs in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in batch by bench_spine.py.  Each function prints one line of JSON,
;; times in milliseconds.  Ours goes through efrit-sidecar.el; the reference
;; is a bare server over plain jsonrpc.el, with the same reading settings,
;; whose command is the rest of the command line.  Both take turns, so that
;; what else the machine does hits both.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'jsonrpc)
(require 'efrit-rpc)
(require 'efrit-sidecar)

(defconst efrit-bench--root
  (expand-file-name "../../../" (file-name-directory (or load-file-name buffer-file-name)))
  "The folder of the checkout.")

;;; The two sides

(defun efrit-bench--reference ()
  "Start the reference server and return a connection of plain jsonrpc.el to it."
  (let ((command command-line-args-left)
        (process-adaptive-read-buffering nil))
    (setq command-line-args-left nil)
    (apply #'make-instance 'jsonrpc-process-connection
           :name "reference"
           :process (lambda ()
                      (make-process :name "reference" :command command
                                    :connection-type 'pipe :noquery t
                                    :coding 'utf-8-emacs-unix
                                    :stderr (get-buffer-create "*reference stderr*")))
           (if (memq '-events-buffer-config
                     (mapcar #'eieio-slot-descriptor-name
                             (eieio-class-slots 'jsonrpc-connection)))
               '(:events-buffer-config (:size 0 :format full))
             '(:events-buffer-scrollback-size 0)))))

(defun efrit-bench--session ()
  "Open a session with our sidecar and return its id."
  (efrit-session-open efrit-bench--root))

(defvar efrit-bench--uses 0
  "Number of tool uses so far.")

(defun efrit-bench--use (session tool arguments)
  "Return the parameters of a new call of TOOL with ARGUMENTS in SESSION."
  (list :session_id session :name tool :arguments arguments
        :tool_use_id (format "bench-%d" (cl-incf efrit-bench--uses))))

;;; Measuring

(defun efrit-bench--time (function)
  "Call FUNCTION and return how many milliseconds it took."
  (let ((start (current-time)))
    (funcall function)
    (* 1000 (float-time (time-since start)))))

(defun efrit-bench--median (times)
  "Return the median of TIMES."
  (nth (/ (length times) 2) (sort (copy-sequence times) #'<)))

(defun efrit-bench--compare (count ours reference)
  "Call OURS and REFERENCE in turn, COUNT times each; print both medians."
  (let (our-times reference-times)
    (dotimes (_ 3)
      (funcall ours)
      (funcall reference))
    (garbage-collect)
    (dotimes (_ count)
      (push (efrit-bench--time ours) our-times)
      (push (efrit-bench--time reference) reference-times))
    (efrit-bench--print (list :ours (efrit-bench--median our-times)
                              :reference (efrit-bench--median reference-times)))))

(defun efrit-bench--print (values)
  "Print VALUES, a plist, as a line of JSON."
  (princ (concat (json-encode values) "\n")))

;;; What is measured

(defun efrit-bench-round-trips ()
  "Measure a trivial call, 300 times."
  (let ((session (efrit-bench--session))
        (reference (efrit-bench--reference)))
    (efrit-bench--compare
     300
     (lambda () (efrit-sidecar-request 'session/status (list :session_id session)))
     (lambda () (jsonrpc-request reference 'echo (list :session_id session))))))

(defun efrit-bench-large-replies ()
  "Measure a reply of 1 MB, 21 times."
  (let ((session (efrit-bench--session))
        (reference (efrit-bench--reference))
        (size 1000000))
    (efrit-bench--compare
     21
     (lambda ()
       (let ((envelope (efrit-sidecar-request
                        'tools/call
                        (efrit-bench--use session "blob" (list :size size)))))
         (cl-assert (= size (length (plist-get (plist-get envelope :data) :blob))))))
     (lambda ()
       (cl-assert (= size (length (plist-get (jsonrpc-request reference 'big
                                                              (list :size size))
                                             :data))))))))

(defun efrit-bench-status-beside-a-slow-tool ()
  "Measure `session/status' beside a tool of 5 s."
  (let ((session (efrit-bench--session))
        (running t)
        times)
    (efrit-sidecar-request-async 'tools/call
                                 (efrit-bench--use session "wait" '(:seconds 5))
                                 :success (lambda (_) (setq running nil))
                                 :error (lambda (err) (signal (car err) (cdr err))))
    (while running
      (push (efrit-bench--time
             (lambda () (efrit-sidecar-request 'session/status (list :session_id session))))
            times)
      (accept-process-output nil 0.01))
    (efrit-bench--print (list :median (efrit-bench--median times)
                              :worst (apply #'max times)
                              :count (length times)))))

(defun efrit-bench-reading ()
  "Measure a reply of 1 MB from the reference, by the largest piece read.
From Emacs 30 on the limit is the process's from its start, and makes no
difference here."
  (let ((reference (efrit-bench--reference))
        (values (mapcar #'list '(4096 65536 1048576))))
    (dotimes (_ 15)
      (dolist (value values)
        (set-default-toplevel-value 'read-process-output-max (car value))
        (push (efrit-bench--time
               (lambda () (jsonrpc-request reference 'big '(:size 1000000))))
              (cdr value))))
    (efrit-bench--print
     (mapcar (lambda (value)
               (cons (number-to-string (car value)) (efrit-bench--median (cdr value))))
             values))))

(provide 'bench)
;;; bench.el ends here
