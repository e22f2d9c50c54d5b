;;; memory-tests.el --- Tests of memory in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'efrit-sessions)
(require 'efrit-sidecar)
(require 'looping)

;;; What a model is told and offered

(defun memory-test--system-text ()
  "Return the system text of the first request that was sent."
  (let ((system (gethash "system" (gethash "body" (car (efrit-test-sent))))))
    (mapconcat (lambda (block) (gethash "text" block)) system "\n")))

(ert-deftest efrit-memory-requests-explain-the-budget ()
  (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
    (efrit-test-finish loop "Go.")
    (let* ((text (memory-test--system-text))
           (sections (split-string text "\n\n"))
           (section (seq-find (lambda (each)
                                (string-prefix-p "Context budget awareness. " each))
                              sections)))
      (dolist (told '("ends in a footer" "max_tokens" "continuation_token" "recall_result"
                      "detail_level summary" "how many of how many are shown"))
        (should (string-search told section))))))

(ert-deftest efrit-memory-requests-name-the-environment-the-same-within-an-epoch ()
  (loop-test-with "[[reply]]\nrepeat = 2\ntext = \"Done.\"\n" loop
    (let ((emacs-version "28.99"))
      (efrit-test-finish loop "Go."))
    (efrit-test-finish loop "Go on.")
    (let ((systems (mapcar (lambda (sent)
                             (efrit-json-text (gethash "system" (gethash "body" sent))))
                           (efrit-test-sent))))
      (should (= 2 (length systems)))
      (should (string-match-p "[0-9]-[0-9][0-9]-.*GNU Emacs 28\\.99" (car systems)))
      (should (equal (car systems) (cadr systems))))))

;; The names are those of the tools there are, so that one that is renamed is noticed.
(defun memory-test--tools ()
  "Return the names of the tools that the first request offered."
  (mapcar (lambda (tool) (gethash "name" tool))
          (gethash "tools" (gethash "body" (car (efrit-test-sent))))))

(ert-deftest efrit-memory-tools-are-offered ()
  (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
    (efrit-test-finish loop "Go.")
    (should-not (seq-difference efrit-limits--memory (memory-test--tools)))))

(ert-deftest efrit-memory-tools-are-not-offered-where-the-option-is-off ()
  (let ((efrit-memory-tools nil))
    (loop-test-with "[[reply]]\ntext = \"Done.\"\n" loop
      (efrit-test-finish loop "Go.")
      (should (member "read_file" (memory-test--tools)))
      (should-not (seq-intersection efrit-limits--memory (memory-test--tools)))
      (should-not (seq-filter (lambda (name) (string-prefix-p "mem_" name))
                              (memory-test--tools))))))

;;; What a person finds

(defmacro memory-test-with (&rest body)
  "Run BODY with three observations in memory, in a project."
  `(efrit-test-with-project '(("a.txt" . "Text of a file.\n"))
     (efrit-test-with-home home
       (let ((default-directory efrit-test-project)
             (inhibit-message t))
         (memory-test--save "Retries back off" "They wait\ntwice as long.")
         (memory-test--save "Größe of a token" "About four characters.")
         (memory-test--save "Retries end" "After five.")
         ,@body))))

(defun memory-test--save (title content)
  "Keep CONTENT as TITLE in memory."
  (efrit-sidecar-request 'memory/save (list :title title :content content :project "p")))

(defun memory-test--shown ()
  "Return the text in the buffer of memory."
  (with-current-buffer "*efrit memory*" (buffer-string)))

(defun memory-test--completions (typed)
  "Return the completions of TYPED in the minibuffer."
  (let ((efrit-memory--last-search nil))
    (efrit-memory--all-completions typed #'efrit-memory--table nil (length typed))))

(ert-deftest efrit-memory-search-offers-results-while-typing ()
  (memory-test-with
   (should (equal '("#3 [note] Retries end" "#1 [note] Retries back off")
                  (memory-test--completions "retr")))
   (should (equal '("#2 [note] Größe of a token") (memory-test--completions "größe tok")))
   (should (equal 3 (length (memory-test--completions ""))))
   (should-not (memory-test--completions "zebra"))))

(ert-deftest efrit-memory-search-opens-the-chosen-result ()
  (memory-test-with
   (efrit-memory-search 1)
   (should (string-match-p (concat "\\`#1 \\[note\\] Retries back off\n"
                                   "[0-9-]+ | importance: 0\\.5 | project: p\n\n"
                                   "They wait\ntwice as long\\.\n\\'")
                           (memory-test--shown)))))

(ert-deftest efrit-memory-search-inserts-the-content-with-a-prefix-argument ()
  (memory-test-with
   (with-temp-buffer
     (efrit-memory-search 2 '(4))
     (should (equal "About four characters." (buffer-string))))))

(ert-deftest efrit-memory-search-without-results-is-an-error ()
  (memory-test-with
   (should (string-match-p "no observation #77"
                           (efrit-error-text (should-error (efrit-memory-search 77)))))))

(ert-deftest efrit-memory-timeline-shows-the-neighbours-around-the-whole-one ()
  (memory-test-with
   (efrit-memory-timeline 2)
   (should (string-match-p (concat "\\`[0-9-]+  #1 .*\n[0-9-]+  #2 .*\n"
                                   "    About four characters\\.\n[0-9-]+  #3 .*\n\\'")
                           (memory-test--shown)))
   (with-current-buffer "*efrit memory*"
     (goto-char (point-max))
     (forward-line -1)
     (should (equal 3 (efrit-memory--id-here))))))

(ert-deftest efrit-memory-timeline-moves-by-line-and-shows-its-keys ()
  (memory-test-with
   (efrit-memory-timeline 2)
   (with-current-buffer "*efrit memory*"
     (goto-char (point-min))
     (call-interactively (key-binding "n"))
     (should (equal 2 (efrit-memory--id-here)))
     (call-interactively (key-binding "p"))
     (should (equal 1 (efrit-memory--id-here)))
     (should (string-match-p "t timeline  s search"
                             (substring-no-properties (eval (cadr header-line-format) t)))))))

(ert-deftest efrit-memory-save-keeps-the-region ()
  (memory-test-with
   (with-temp-buffer
     (insert "Not this. But this.")
     (let ((saved (efrit-memory-save "A part" (buffer-substring 11 20))))
       (efrit-memory-search (plist-get saved :id))
       (should (string-suffix-p "\n\nBut this.\n" (memory-test--shown)))))
   (should-error (efrit-memory-save " " "Text.") :type 'user-error)
   (with-temp-buffer
     (should-error (call-interactively #'efrit-memory-save) :type 'user-error))))

;;; What a person takes along

(ert-deftest efrit-memory-pack-goes-to-a-buffer-the-kill-ring-or-a-file ()
  (memory-test-with
   (let ((file (expand-file-name "context.md" efrit-test-project))
         (kill-ring nil)
         (text (efrit-context-pack "p" 2000 'buffer)))
     (should (string-prefix-p "# Project Context: p (3 memories, ~" text))
     (should (equal text (memory-test--shown)))
     (efrit-context-pack "p" 2000 'kill-ring)
     (should (equal text (current-kill 0)))
     (efrit-context-pack "p" 2000 'file file)
     (should (equal text (with-temp-buffer
                           (insert-file-contents file)
                           (buffer-string))))
     (should (equal '("a.txt" "context.md")
                    (directory-files efrit-test-project nil "\\`[^.]\\|efrit-pack"))))))

(ert-deftest efrit-memory-pack-keeps-to-its-budget ()
  (memory-test-with
   (let ((text (efrit-context-pack nil 75 'buffer)))
     (should (string-prefix-p "# Project Context: all (" text))
     (should (string-match-p "\\*Left out: [12] of 3" text))
     (should (<= (/ (string-bytes text) 4) 75)))))

(provide 'memory-tests)
;;; memory-tests.el ends here
