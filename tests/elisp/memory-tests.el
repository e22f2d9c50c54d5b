;;; memory-tests.el --- Tests of memory in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)

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

(provide 'memory-tests)
;;; memory-tests.el ends here
