;;; guard-tests.el --- Questions whether to go on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A message that takes many turns, dollars or tokens, and calls that fail alike.

;;; Code:

(require 'looping)
(require 'viewing)
(require 'efrit-ask)
(require 'efrit-status)

(defconst guard-tests--reads "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"README.md\" } }]
[[reply]]
tool = [{ name = \"file_info\", input = { paths = [\"README.md\"] } }]
[[reply]]
tool = [{ name = \"vcs_status\", input = {} }]
[[reply]]
text = \"That is all.\"
"
  "A session of four turns.")

(defun guard-tests--limited (loop question)
  "Check that LOOP asks QUESTION, and move to it by its key."
  (should (eq (efrit-test-rest loop) 'limited))
  (efrit-viewing-in-order question "Go on?" "[y] go on" "[d] go on, ask again at" "[n] stop")
  (efrit-viewing-press "C-c C-a")
  (should (eq (key-binding "y") 'efrit-allow-once)))

(ert-deftest efrit-guard-by-default-asks-at-two-dollars-and-at-a-hundred-turns ()
  (should (equal 2 (default-value 'efrit-max-dollars)))
  (should (equal 100 (default-value 'efrit-max-turns)))
  (efrit-test-with-project nil
    (let ((loop (efrit-test-loop)))
      (setf (efrit-loop-usage loop) '(:dollars 5.5))
      (should-not (efrit-loop-guard loop))
      (plist-put (efrit-loop-counts loop) :dollars 2.03)
      (should (equal "Your message has cost $2.03 so far; `efrit-max-dollars' is $2.00."
                     (efrit-show-guard (efrit-loop-guard loop))))
      (plist-put (efrit-loop-counts loop) :dollars 1.99)
      (should-not (efrit-loop-guard loop))
      (plist-put (efrit-loop-counts loop) :turns 100)
      (should (equal "Your message has taken 100 turns so far; `efrit-max-turns' is 100 turns."
                     (efrit-show-guard (efrit-loop-guard loop)))))))

(ert-deftest efrit-guard-y-goes-on-without-asking-until-the-next-message ()
  (efrit-viewing-with-view (concat guard-tests--reads guard-tests--reads)
    (efrit-test-with-options view-loop ((efrit-max-turns 1))
      (efrit-viewing-type "Look.")
      (guard-tests--limited view-loop "Your message has taken 1 turn so far")
      (efrit-viewing-press "y")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "• Read " "`efrit-max-turns' is 1 turn.  You: go on\n"
                              "• Git status" "That is all.")
      (should-not (string-search "Go on?" (efrit-viewing-view-text)))
      (efrit-viewing-type "Again.")
      (should (eq (efrit-test-rest view-loop) 'limited)))))

(ert-deftest efrit-guard-d-goes-on-and-asks-again-at-double ()
  (efrit-viewing-with-view guard-tests--reads
    (efrit-test-with-options view-loop ((efrit-max-turns 1))
      (efrit-viewing-type "Look.")
      (guard-tests--limited view-loop "`efrit-max-turns' is 1 turn.")
      (efrit-viewing-press "d")
      (guard-tests--limited view-loop "taken 2 turns so far; `efrit-max-turns' is 2 turns.")
      (efrit-viewing-in-order "You: go on, ask again at 2 turns" "ask again at 4 turns")
      (efrit-viewing-press "C-c C-y")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-shows "That is all."))))

(ert-deftest efrit-guard-n-stops-and-nothing-is-lost ()
  (efrit-viewing-with-view guard-tests--reads
    (efrit-test-with-options view-loop ((efrit-max-turns 1))
      (efrit-viewing-type "Look.")
      (guard-tests--limited view-loop "Your message has taken 1 turn so far")
      (efrit-viewing-press "n")
      (should (eq (efrit-loop-state view-loop) 'idle))
      (efrit-viewing-in-order "• Read " "— stopped —" "● ready")
      (efrit-continue view-loop)
      (should (eq (efrit-test-rest view-loop) 'limited))
      (efrit-viewing-press "C-c C-d")
      (should (eq (efrit-loop-state view-loop) 'idle)))))

(ert-deftest efrit-guard-is-answered-only-when-it-was-read ()
  (efrit-viewing-with-view guard-tests--reads
    (efrit-test-with-options view-loop ((efrit-max-turns 1))
      (efrit-viewing-type "Look.")
      (guard-tests--limited view-loop "Your message has taken 1 turn so far")
      ;; These keys may be meant for the question that was answered before.
      (setq efrit-ask--last-answer-time (float-time))
      (dolist (key '("y" "d" "n"))
        (let ((this-command (key-binding key)))
          (should-error (efrit-viewing-press key) :type 'user-error)))
      (setq efrit-ask--last-answer-time nil)
      (with-temp-buffer
        (setq default-directory (efrit-loop-root view-loop))
        (let ((efrit-do-show-function #'ignore))
          (dolist (command '(efrit-allow-once efrit-deny-once))
            (should-error (call-interactively command) :type 'user-error))))
      (should (eq (efrit-loop-state view-loop) 'limited))
      (efrit-viewing-press "y")
      (should (eq (efrit-test-rest view-loop) 'idle)))))

(ert-deftest efrit-guard-takes-a-message-for-an-answer ()
  (efrit-viewing-with-view guard-tests--reads
    (efrit-test-with-options view-loop ((efrit-max-turns 3))
      (efrit-viewing-type "Look.")
      (should (eq (efrit-test-rest view-loop) 'limited))
      (efrit-viewing-type "Yes, finish it.")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "Yes, finish it." "That is all."))))

(ert-deftest efrit-guard-counts-tokens-where-the-price-is-unknown ()
  (let ((efrit-claude-model "claude-haiku-5-5-latest"))
    (efrit-viewing-with-view guard-tests--reads
      (efrit-test-with-options view-loop ((efrit-max-tokens 1000))
        (efrit-viewing-type "Look.")
        (guard-tests--limited view-loop "tokens so far; `efrit-max-tokens' is 1k tokens.")
        (efrit-viewing-in-order "The price of claude-haiku-5-5-latest is not known: `efrit-max-tokens'")
        (efrit-viewing-press "y")
        (should (eq (efrit-test-rest view-loop) 'idle))))))

(ert-deftest efrit-guard-does-not-count-tokens-where-the-price-is-known ()
  (efrit-viewing-with-view guard-tests--reads
    (efrit-test-with-options view-loop ((efrit-max-tokens 1000))
      (efrit-viewing-type "Look.")
      (should (eq (efrit-test-rest view-loop) 'idle)))))

(ert-deftest efrit-guard-does-not-count-the-time-until-the-answer ()
  (loop-test-with guard-tests--reads loop
    (let ((counts (efrit-loop-counts loop)))
      (setf (efrit-loop-options loop) (cons '(efrit-max-minutes . 5) (efrit-loop-options loop)))
      (plist-put counts :start (- (float-time) 400))
      (should (eq 'efrit-max-minutes (car (efrit-loop-pause-if-guarded loop))))
      (plist-put counts :paused (- (float-time) 100))
      (should (= 5 (round (nth 1 (efrit-loop-guard loop)))))
      (efrit-loop--raise-guard loop nil)
      (should-not (efrit-loop-guard loop))
      (should (= 300 (round (- (float-time) (plist-get counts :start))))))))

(ert-deftest efrit-guard-in-batch-ends-with-a-code-of-its-own ()
  (let ((code nil)
        (printed "")
        (efrit-max-turns 2))
    (efrit-test-with-project '(("README.md" . "# Sample\n"))
      (efrit-test-with-model guard-tests--reads
        (cl-letf (((symbol-function 'send-string-to-terminal)
                   (lambda (text &rest _) (setq printed (concat printed text))))
                  ((symbol-function 'kill-emacs) (lambda (given) (setq code given))))
          (let ((command-line-args-left '("--" "Look.")))
            (efrit-batch-do)))))
    (should (eql 3 code))
    (should (string-search "stopped, as nobody is there to ask.  Your message has taken 2 turns"
                           printed))))

;;; Calls that fail alike

(defun guard-tests--failing (count input)
  "Return a scenario: a tool used COUNT times with INPUT, as TOML, then a text."
  (concat (mapconcat (lambda (_)
                       (format "[[reply]]\ntool = [{ name = \"read_file\", input = { %s } }]\n"
                               input))
                     (number-sequence 1 count) "")
          "[[reply]]\ntext = \"I give up.\"\n"))

(ert-deftest efrit-failing-calls-three-alike-are-shown-and-go-on ()
  (efrit-viewing-with-view (guard-tests--failing 4 "path = \"gone.txt\"")
    (efrit-viewing-type "Read.")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should (= 1 (efrit-viewing-count "in a row")))
    (efrit-viewing-in-order
     "! The same call failed 3 times in a row: Read gone.txt; C-c C-k stops it"
     "I give up.")))

(ert-deftest efrit-failing-calls-that-differ-or-end-well-are-not-shown ()
  (efrit-viewing-with-view
      (concat (guard-tests--failing 2 "path = \"gone.txt\"")
              (guard-tests--failing 2 "path = \"lost.txt\"")
              (guard-tests--failing 1 "path = \"README.md\"")
              (guard-tests--failing 1 "path = \"lost.txt\"")
              (guard-tests--failing 3 "path = \"README.md\""))
    (dotimes (_ 5)
      (efrit-viewing-type "Read.")
      (should (eq (efrit-test-rest view-loop) 'idle)))
    (should (zerop (efrit-viewing-count "in a row")))))

(ert-deftest efrit-failing-calls-are-announced-out-of-sight ()
  (let ((efrit-presence-notify 'message))
    (efrit-viewing-with-view (guard-tests--failing 3 "path = \"gone.txt\"")
      (efrit-do-say view-loop "Read.")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (should (efrit-test-wait-until
               (lambda ()
                 (with-current-buffer "*Messages*"
                   (string-search "The same call failed 3 times in a row: Read gone.txt"
                                  (buffer-string)))))))))

(provide 'guard-tests)
;;; guard-tests.el ends here
