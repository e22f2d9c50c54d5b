;;; limits-tests.el --- The budget's options  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each option is set as a person would, and looked for in the ledger.

;;; Code:

(require 'scripted)
(require 'efrit-sidecar)
(require 'efrit-do)
(require 'efrit-view)

(defun efrit-limits-tests--status (loop)
  "Return how the session of LOOP stands."
  (efrit-test-session-status (efrit-loop-id loop)))

(defun efrit-limits-tests--limit (loop name)
  "Return the limit NAME of the session of LOOP."
  (plist-get (plist-get (efrit-limits-tests--status loop) :limits) name))

(defun efrit-limits-tests--previewed ()
  "Return the preview of a short first message of a session."
  (let ((told nil))
    (efrit-preview--ask (efrit-test-loop) (list (efrit-context-text "Go."))
                        (lambda (it) (setq told it)) #'ignore)
    (should (efrit-test-wait-until (lambda () told)))
    told))

(defun efrit-limits-tests--narrow-total ()
  "Return a total with 13% left beside a short message."
  (round (/ (plist-get (efrit-limits-tests--previewed) :prompt) 0.57)))

(ert-deftest efrit-limits-with-defaults-the-sidecars-settings-hold ()
  "An option that nobody set does not stand in the way of .efrit.toml."
  (efrit-test-with-project '((".efrit.toml" . "[budget]\ntotal = 60000\n"))
    (should-not (efrit-limits))
    (should (= 60000 (efrit-limits-tests--limit (efrit-test-loop) :total)))
    (let ((efrit-budget-total-target 80000))
      (should (= 80000 (efrit-limits-tests--limit (efrit-test-loop) :total))))))

(ert-deftest efrit-limits-the-options-have-the-names-and-defaults-of-the-budget ()
  "The defaults that Emacs shows are those of the sidecar."
  (efrit-test-with-project nil
    (let ((loop (efrit-test-loop)))
      (pcase-dolist (`(,option . ,name) efrit-limits--wire-names)
        (should (custom-variable-p option))
        (should (assq option (get 'efrit-session 'custom-group)))
        (should (= (symbol-value option) (efrit-limits-tests--limit loop name)))))))

(ert-deftest efrit-limits-total-target-is-the-sessions-total ()
  "The tiers scale with it."
  (efrit-test-with-project nil
    (let* ((efrit-budget-total-target 50000)
           (budget (plist-get (efrit-limits-tests--status (efrit-test-loop)) :budget)))
      (should (= 50000 (plist-get budget :total)))
      (should (= 20000 (plist-get (plist-get (plist-get budget :tiers) :tool_results)
                                  :limit))))))

(ert-deftest efrit-limits-history-max-is-the-size-of-its-tier ()
  "The other tiers stay."
  (efrit-test-with-project nil
    (let* ((efrit-budget-history-max 9000)
           (budget (plist-get (efrit-limits-tests--status (efrit-test-loop)) :budget)))
      (should (= 9000 (plist-get (plist-get (plist-get budget :tiers) :history) :limit)))
      (should (= 100000 (plist-get budget :total))))))

(ert-deftest efrit-limits-per-tool-default-bounds-a-result ()
  "A long file comes in pages of at most so many tokens."
  (efrit-test-with-project
      (list (cons "long.txt" (mapconcat (lambda (n) (format "line %d of a long file\n" n))
                                        (number-sequence 1 2000) "")))
    (let* ((efrit-budget-per-tool-default 700)
           (loop (efrit-test-loop))
           (envelope (efrit-test-tool (efrit-loop-id loop) "read_file"
                                      '(:path "long.txt"))))
      (should (= 700 (efrit-limits-tests--limit loop :per_tool_default)))
      (should (<= 300 (plist-get envelope :tokens) 700))
      (should (string-match-p "continuation_token" (plist-get envelope :text))))))

(ert-deftest efrit-limits-warning-threshold-says-when-the-model-is-warned ()
  "Below it, and not above, the band is another and the model is told."
  (dolist (case '((200 "ample") (nil "low")))
    (efrit-test-with-project nil
      (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\n"
        (let* ((efrit-small-window 0)
               (efrit-budget-total-target (efrit-limits-tests--narrow-total))
               (efrit-budget-warning-threshold (or (car case)
                                                   efrit-budget-warning-threshold))
               (loop (efrit-test-loop)))
          (should (= efrit-budget-warning-threshold
                     (efrit-limits-tests--limit loop :warning_threshold)))
          (with-current-buffer (efrit-session-view-buffer loop)
            (efrit-test-finish loop "Go.")
            (should (eq (equal (cadr case) "low")
                        (and (string-match-p "^— \\[Budget Alert: ~" (buffer-string)) t)))
            (kill-buffer))
          (ert-info ((plist-get (efrit-loop-budget loop) :summary))
            (should (equal (cadr case) (plist-get (efrit-loop-budget loop) :band)))
            (should (eq (equal (cadr case) "low")
                        (and (string-match-p "Budget Alert" (efrit-test-sent-text)) t)))))))))

(ert-deftest efrit-limits-the-prompt-and-every-schema-stay-inside-their-tier ()
  "Counted as for a model that makes 30% more tokens of a text than others do."
  (efrit-test-with-project nil
    (let* ((tiers (plist-get (plist-get (efrit-limits-tests--previewed) :budget) :tiers))
           (system (plist-get tiers :system)))
      (should (= 8000 (plist-get system :limit)))
      (should (<= 1000 (plist-get system :used) 7600)))))

(ert-deftest efrit-limits-that-cannot-be-are-refused-by-name ()
  "Tiers that do not fit the total are said before anything is sent."
  (efrit-test-with-project nil
    (let* ((efrit-budget-history-max 99000)
           (err (should-error (efrit-test-loop) :type 'efrit-rpc-error)))
      (should (string-match-p "total" (efrit-error-text err))))))

(provide 'limits-tests)
;;; limits-tests.el ends here
