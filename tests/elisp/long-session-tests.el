;;; long-session-tests.el --- A session of sixty turns  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the scripted model was sent is read from its record, so each claim
;; is about the requests themselves.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'efrit-run)
(require 'efrit-status)

(defconst long-session-test--files 600
  "Number of files in the project.")

(defconst long-session-test--lines 60
  "Number of lines in each file.")

(defun long-session-test--write ()
  "Write a project of which a listing is far more than a window can hold."
  (dotimes (number long-session-test--files)
    (efrit-test-write
     (format "part_%d/chapter_%d.txt" (% number 30) number)
     (mapconcat (lambda (line)
                  (let ((word (substring "incomprehensible" 0 (+ 2 (% line 14)))))
                    (format "%d %s %d\n" number
                            (mapconcat #'identity (make-list 6 word) " ") line)))
                (number-sequence 1 long-session-test--lines) ""))))

(defun long-session-test--scenario ()
  "Return the text of the long scenario that is built in."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "efrit_budget/demo/scenarios/long.toml"
                                            efrit-test-root))
    (buffer-string)))

(defun long-session-test--bare (value)
  "Return VALUE, of a request, as text without its cache control."
  (cond
   ((hash-table-p value)
    (let (members)
      (maphash (lambda (name member)
                 (unless (equal name "cache_control")
                   (push (concat name ":" (long-session-test--bare member)) members)))
               value)
      (concat "{" (mapconcat #'identity (nreverse members) ",") "}")))
   ((vectorp value)
    (concat "[" (mapconcat #'long-session-test--bare value ",") "]"))
   (t (format "%S" value))))

(defun long-session-test--check-prefixes (requests begun)
  "Check each of REQUESTS against the one before, which it must extend.
For each, BEGUN tells whether it begins an epoch."
  (cl-loop for (one two) on requests
           for (_ rewritten) on begun
           while two
           for before = (gethash "messages" (gethash "body" one))
           for after = (gethash "messages" (gethash "body" two))
           unless rewritten do
           (dolist (part '("system" "tools"))
             (should (equal (long-session-test--bare (gethash part (gethash "body" one)))
                            (long-session-test--bare (gethash part (gethash "body" two))))))
           (should (<= (length before) (length after)))
           (should (equal (long-session-test--bare before)
                          (long-session-test--bare (substring after 0 (length before)))))))

(defun long-session-test--used (loop)
  "Return the size of the prompt of LOOP by the sidecar's count."
  (plist-get (efrit-loop-budget loop) :used))

(defun long-session-test--check-notices (requests)
  "Check that notices stand at most once per epoch in REQUESTS, as system messages.
In a chat the first of these is the system text."
  (dolist (request requests)
    (let ((alerts (cl-loop for message across (seq-drop
                                               (gethash "messages" (gethash "body" request))
                                               (if (eq efrit-test-api 'chat) 1 0))
                           when (equal (gethash "role" message) "system")
                           collect (long-session-test--bare message))))
      (dolist (alert alerts)
        (should (string-match-p "\\[Budget Alert: ~" alert)))
      (should (<= (cl-count-if (lambda (alert) (string-match-p "older results shrink" alert))
                               alerts)
                  1)))))

(defun long-session-test--tokens (id)
  "Return about how many tokens the stored results of the session ID have."
  (cl-loop for entry across (plist-get (efrit-sidecar-request
                                        'worklog/list (list :session_id id))
                                       :entries)
           for shown = (efrit-sidecar-request
                        'worklog/show
                        (list :session_id id :handle (plist-get entry :handle)))
           sum (/ (string-bytes (plist-get shown :text)) 4)))

(ert-deftest efrit-long-session-stays-within-its-window-and-loses-nothing ()
  :tags '(:soak)
  (loop-test-with-each-api api
    (efrit-test-with-project '(("README.md" . "# A book\n"))
      (long-session-test--write)
      (efrit-test-with-model (long-session-test--scenario)
        (let* ((efrit-permission-rules '((t t allow)))
               (loop (efrit-test-loop))
               (limit 0)
               begun sizes)
          (efrit-loop-observe
           loop
           (lambda (loop event)
             (when (eq (car event) 'begun)
               (push (cadr event) begun)
               (push (long-session-test--used loop) sizes)
               (let ((budget (efrit-loop-budget loop)))
                 (setq limit (- (plist-get budget :total)
                                (plist-get (plist-get (plist-get budget :tiers) :response)
                                           :limit)))))))
          (efrit-do-say loop "Go through everything.")
          (efrit-test-wait-until (lambda () (efrit-loop-resting-p loop)) 600)
          (should (equal '(idle nil) (list (efrit-loop-state loop) (efrit-loop-problem loop))))
          (let ((requests (efrit-test-sent)))
            (should (= 61 (length requests)))
            (should (cl-every (lambda (request) (eql 200 (gethash "status" request))) requests))
            (should (string-match-p "every result came back by its handle"
                                    (car (efrit-loop-messages loop))))
            (should (cl-every (lambda (size) (<= size limit)) sizes))
            (should (> (efrit-loop-epoch loop) 1))
            (long-session-test--check-prefixes requests (nreverse begun))
            (long-session-test--check-notices requests)
            (should (> (long-session-test--tokens (efrit-loop-id loop)) 1000000))))))))

(provide 'long-session-tests)
;;; long-session-tests.el ends here
