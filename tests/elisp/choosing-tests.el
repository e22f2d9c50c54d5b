;;; choosing-tests.el --- Choosing model, effort, thinking and limits  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands are given by their keys, and the menu is asked for what it shows.

;;; Code:

(require 'viewing)
(require 'efrit-menu)

(defconst choosing-tests--two "
[[reply]]
text = \"One.\"
[[reply]]
text = \"Two.\"
[[reply]]
text = \"Three.\"
"
  "Three replies.")

(defun choosing-tests--press (keys)
  "Press KEYS, as `kbd' takes them, in this buffer."
  (let ((current-prefix-arg nil))
    (save-window-excursion
      (set-window-buffer nil (current-buffer))
      (execute-kbd-macro (kbd keys)))))

(defun choosing-tests--models ()
  "Return the models of the requests that were sent, in order."
  (mapcar (lambda (request) (gethash "model" (gethash "body" request))) (efrit-test-sent)))

;;; The model

(ert-deftest efrit-model-changes-that-of-the-session-from-the-next-turn-on ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (choosing-tests--press "M-x efrit-model RET claude-haiku-5-5 RET")
    (efrit-viewing-in-order
     "One." "— The model is claude-haiku-5-5, at $0.10 in and $0.50 out for a million tokens.  \
The prompt of ~" "k tokens is sent anew, which costs $0.00")
    (should (string-search "claude-haiku-5-5" (efrit-show-header)))
    (efrit-viewing-type "Again.")
    (efrit-test-rest view-loop)
    (should (equal '("claude-sonnet-5-5" "claude-haiku-5-5") (choosing-tests--models)))
    (should (equal "claude-sonnet-5-5" (default-value 'efrit-claude-model)))))

(ert-deftest efrit-model-chosen-while-it-works-waits-for-the-next-turn ()
  "The turn that runs ends with the model with which it began."
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"1\" } }]
[[reply]]
text = \"Done.\"
"
    (efrit-viewing-type "Go.")
    (should (efrit-test-wait-until (lambda () (efrit-run-pending-use view-loop))))
    (efrit-model "claude-haiku-5-5")
    (should (equal "claude-sonnet-5-5" (efrit-loop-option view-loop 'efrit-claude-model)))
    (should (equal "claude-haiku-5-5" (efrit-loop-next-option view-loop 'efrit-claude-model)))
    (efrit-viewing-shows "It holds from the next turn on.")
    (efrit-allow-once)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (equal '("claude-sonnet-5-5" "claude-haiku-5-5") (choosing-tests--models)))))

(ert-deftest efrit-model-with-a-prefix-argument-changes-new-sessions-alone ()
  (let ((before (default-value 'efrit-claude-model)))
    (unwind-protect
        (efrit-viewing-with-view choosing-tests--two
          (choosing-tests--press "C-u M-x efrit-model RET claude-opus-5-5 RET")
          (should (equal "claude-opus-5-5" (default-value 'efrit-claude-model)))
          (should (equal before (efrit-loop-option view-loop 'efrit-claude-model)))
          (should (equal "claude-opus-5-5"
                         (efrit-loop-option (efrit-test-loop) 'efrit-claude-model))))
      (set-default 'efrit-claude-model before))))

(defun choosing-tests--offered (choice)
  "Call `efrit-model', answer CHOICE, and return what it offered.
It is an alist from candidates to their annotations, in order."
  (let (offered)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (prompt table &rest _)
                 (should (string-match-p "\\`Model of this session (now .*; prices for" prompt))
                 (setq offered
                       (mapcar (pcase-lambda (`(,candidate ,prefix ,suffix))
                                 (should (equal "" prefix))
                                 (cons candidate suffix))
                               (funcall (completion-metadata-get (completion-metadata "" table nil)
                                                                 'affixation-function)
                                        (all-completions "" table))))
                 choice)))
      (call-interactively #'efrit-model))
    offered))

(ert-deftest efrit-model-offers-the-known-models-with-their-prices ()
  (efrit-viewing-with-view choosing-tests--two
    (let ((offered (choosing-tests--offered "claude-opus-5-5")))
      (should (assoc "claude-haiku-5-5" offered))
      (should (string-match-p "\\` +1\\.0M window  \\$4\\.00 in \\$20\\.00 out  \\$0\\.20 cached\\'"
                              (cdr (assoc "claude-opus-5-5" offered))))
      (should (string-match-p "\\` +now  1\\.0M window " (cdr (assoc "claude-sonnet-5-5" offered)))))
    (efrit-viewing-shows "The model is claude-opus-5-5, at $4.00 in and $20.00 out")
    (should-not (string-search "sent anew" (efrit-viewing-view-text)))))

(ert-deftest efrit-resume-goes-on-with-the-model-of-the-last-turn-and-says-so ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-model "claude-opus-5-5")
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (efrit-do-forget view-loop)
    (save-window-excursion
      (with-temp-buffer
        (setq default-directory efrit-test-project)
        (set-window-buffer nil (current-buffer))
        (let ((efrit-do-show-function #'efrit-session-view-buffer))
          (execute-kbd-macro (kbd "M-x efrit-resume RET RET")))
        (with-current-buffer (efrit-session-view-buffer (car (efrit-loops)))
          (unwind-protect
              (progn
                (efrit-viewing-shows "One.")
                (efrit-viewing-in-order
                 "Go." "One." "— The model is claude-opus-5-5, as in the last turn.")
                (efrit-viewing-type "Again.")
                (efrit-viewing-shows "Two.")
                ;; The record of a reply is written with its end.
                (efrit-test-rest efrit-loop-here)
                (should (equal '("claude-opus-5-5" "claude-opus-5-5") (choosing-tests--models)))
                ;; It is in this Emacs already.
                (choosing-tests--press "M-x efrit-resume RET RET")
                (should (= 1 (efrit-viewing-count "as in the last turn"))))
            (kill-buffer)))))))

(ert-deftest efrit-model-takes-a-name-that-is-not-known ()
  (efrit-viewing-with-view choosing-tests--two
    (choosing-tests--press "M-x efrit-model RET of-my-own RET RET")
    (efrit-viewing-shows "The model is of-my-own, whose price is not known.")
    (should (equal "of-my-own" (efrit-loop-option view-loop 'efrit-claude-model)))))

;;; What it costs

(ert-deftest efrit-model-changed-shows-why-the-prompt-was-paid-anew-and-what-that-cost ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (should-not (efrit-loop-paid-anew view-loop))
    (efrit-model "claude-opus-5-5")
    (efrit-viewing-type "Again.")
    (efrit-test-rest view-loop)
    (efrit-viewing-in-order "Again." "— epoch 2: the model changed —" "Two."
                            "k cached tokens were paid anew, for $0.0" " more: the model changed")
    (efrit-viewing-type "And again.")
    (efrit-test-rest view-loop)
    (should (= 1 (efrit-viewing-count "paid anew, for")))
    (should (string-match-p "[0-9]+% of prompts from cache; in turn 2 [0-9]+k cached tokens were \
paid anew, for .* more: the model changed"
                            (efrit-show-summary view-loop)))
    (save-window-excursion
      (with-current-buffer (efrit-budget view-loop)
        (unwind-protect
            (progn
              (efrit-viewing-shows "system text")
              (should (string-match-p "% of prompts from cache;[ \n]in turn 2"
                                      (efrit-budget-view--head 100 60))))
          (kill-buffer))))))

(ert-deftest efrit-budget-says-what-the-session-cost-and-for-what-in-a-small-window ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (efrit-model "claude-opus-5-5")
    (efrit-viewing-type "Again.")
    (efrit-test-rest view-loop)
    (save-window-excursion
      (efrit-viewing-press "C-c C-b")
      (with-current-buffer (window-buffer)
        (unwind-protect
            (progn
              (efrit-viewing-shows "system text")
              (let ((head (efrit-budget-view--head 79 12)))
                (should (string-match "^  Cost: \\$0\\.[0-9]+ for [0-9.]+k in, .* from cache, \
[0-9]+ out; [0-9.]+k paid anew in turn 2$"
                                      head))
                (should (<= (length (match-string 0 head)) 79))))
          (kill-buffer))))))

(ert-deftest efrit-cache-loss-names-its-reason ()
  (efrit-viewing-with-view choosing-tests--two
    (pcase-dolist (`(,loss ,reasons ,shown)
                   '(((:reason "expired" :idle 720) nil "the cache had expired, after 12 minutes")
                     ((:reason "rewrite" :idle 1) ("tools") "the tools changed")
                     ((:reason "rewrite" :idle 1) ("size")
                      "older results were compressed to a line each")
                     ((:reason "rewrite" :idle 1) nil "the conversation was rewritten")
                     ((:reason nil :idle 1) nil "the endpoint had them no more")))
      (setf (efrit-loop-rewrite-reasons view-loop) reasons)
      (efrit-loop-take-loss view-loop
                            (list :paid_anew (append '(:tokens 41000 :dollars 0.0902) loss))
                            (efrit-reply-create))
      (efrit-viewing-shows (concat "— 41k cached tokens were paid anew, for $0.0902 more: "
                                   shown)))
    (efrit-loop-take-loss
     view-loop '(:paid_anew (:tokens 5000 :dollars nil :reason nil :idle 1))
     (efrit-reply-create
      :extras (list (cons "diagnostics"
                          (efrit-json-parse "{\"cache_miss_reason\":{\"type\":\"tools_\\u202echanged\"}}")))))
    (efrit-viewing-shows
     "— 5k cached tokens were paid anew: the API says tools_<U+202E>changed")))

;;; Effort, thinking and limits

(ert-deftest efrit-effort-and-thinking-reach-the-next-request ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (choosing-tests--press "M-x efrit-effort RET low RET")
    (choosing-tests--press "M-x efrit-thinking RET omitted RET")
    (efrit-viewing-in-order "The effort is low." "Thinking comes omitted.")
    (efrit-viewing-type "Again.")
    (efrit-test-rest view-loop)
    (let ((bodies (mapcar (lambda (request) (gethash "body" request)) (efrit-test-sent))))
      (should-not (gethash "output_config" (car bodies)))
      (should (equal "low" (gethash "effort" (gethash "output_config" (cadr bodies)))))
      (should (equal "omitted" (gethash "display" (gethash "thinking" (cadr bodies))))))
    (choosing-tests--press "M-x efrit-thinking RET off RET")
    (efrit-viewing-shows "Thinking is off; some models still report between tool calls.")
    (should (equal "off" (efrit-loop-option view-loop 'efrit-claude-thinking-display)))
    (choosing-tests--press "M-x efrit-effort RET the SPC API's SPC default RET")
    (should-not (efrit-loop-option view-loop 'efrit-claude-effort))))

(ert-deftest efrit-effort-says-where-the-endpoint-is-not-asked-for-it ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-test-with-options view-loop ((efrit-claude-features nil))
      (choosing-tests--press "M-x efrit-effort RET low RET")
      (efrit-viewing-shows "The effort is low.  This endpoint is not asked for it"))))

(ert-deftest efrit-limit-changes-a-guard-at-once ()
  (efrit-viewing-with-view "
[[reply]]
repeat = 3
tool = [{ name = \"vcs_status\", input = {} }]
[[reply]]
text = \"Done.\"
"
    (choosing-tests--press "M-x efrit-limit RET turns RET 2 RET")
    (efrit-viewing-shows "Turns after a message before you are asked to go on: 2.")
    (efrit-viewing-type "Go.")
    (should (eq 'limited (efrit-test-rest view-loop)))
    (efrit-viewing-shows "Go on?")
    (choosing-tests--press "M-x efrit-limit RET turns RET RET")
    (efrit-viewing-shows "before you are asked to go on: no limit.")
    (should-not (efrit-loop-option view-loop 'efrit-max-turns))
    (should-not (string-search "Go on?" (efrit-viewing-view-text)))
    (should-error (choosing-tests--press "M-x efrit-limit RET turns RET 2.5 RET"))
    (should-error (choosing-tests--press "M-x efrit-limit RET dollars RET much RET"))
    (choosing-tests--press "M-x efrit-limit RET dollars RET 0.5 RET")
    (should (equal 0.5 (efrit-loop-option view-loop 'efrit-max-dollars)))
    (efrit-continue view-loop)
    (should (eq 'idle (efrit-test-rest view-loop)))))

(ert-deftest efrit-limit-changes-the-budget-of-a-session-that-is-open ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (should (string-search "k/70k" (efrit-show-gauge view-loop 80)))
    (choosing-tests--press "M-x efrit-limit RET total RET 50000 RET")
    (efrit-viewing-shows "Tokens of the whole budget: 50000.")
    (should (string-search "k/35k" (efrit-show-gauge view-loop 80)))
    (choosing-tests--press "M-x efrit-limit RET tool SPC call RET 700 RET")
    (let ((limits (plist-get (efrit-test-session-status (efrit-loop-id view-loop)) :limits)))
      (should (equal '(50000 20000 700)
                     (mapcar (lambda (key) (plist-get limits key))
                             '(:total :tool_results :per_tool_default)))))
    (efrit-limit "total" 8000)
    (efrit-viewing-shows "Tokens of the whole budget: 8000.  The next turn compacts.")))

(ert-deftest efrit-limit-says-which-limit-of-the-budget-does-not-fit ()
  (efrit-viewing-with-view choosing-tests--two
    (pcase-dolist (`(,name ,value ,reason)
                   '(("tool results" 90000 "more than the total 100,000: .*tool_results 90,000")
                     ("total" 10 "limits.total")
                     ("history" nil "needs a number")
                     ("speed" 1 "There is no limit speed")))
      (ert-info (name)
        (should (string-match-p reason (cadr (should-error (efrit-limit name value)
                                                           :type 'user-error))))))
    (should (string-match-p "budget.tool_results"
                            (cadr (should-error (efrit-limit "tool results" 1 t)
                                                :type 'user-error))))
    (let ((efrit-budget-total-target 100000))
      (efrit-limit "total" 90000 t)
      (should (equal 90000 efrit-budget-total-target)))))

;;; The menu

(defun choosing-tests--menu ()
  "Return the keys of the menu that can be pressed now."
  (let ((transient-show-popup nil)
        keys)
    (unwind-protect
        (progn
          (call-interactively #'efrit)
          (dolist (suffix transient--suffixes)
            (unless (oref suffix inapt)
              (push (oref suffix key) keys))))
      (transient--emergency-exit))
    keys))

(ert-deftest efrit-menu-is-headed-by-project-title-model-and-budget ()
  (efrit-viewing-with-view choosing-tests--two
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (should (efrit-test-wait-until (lambda () (efrit-loop-title view-loop))))
    (choosing-tests--menu)
    (should (string-match-p "\\`[^\n]*efrit-project-[^\n]* · What is README\\.md\\?\n\
.*k/70k · .* · [$]0\\.[0-9]+ · claude-sonnet-5-5.*\\'"
                            (substring-no-properties (efrit-menu--heading))))
    (should (equal "model: claude-sonnet-5-5"
                   (substring-no-properties (efrit-menu--describe-model))))
    (should (equal "limits: $2, 100 turns"
                   (substring-no-properties (efrit-menu--describe-limits))))))

(ert-deftest efrit-menu-offers-what-can-be-done-now ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(+ 1 1)\" } }]
[[reply]]
text = \"Done.\"
"
    (let ((keys (choosing-tests--menu)))
      (should-not (seq-intersection '("k" "x" "r" "y" "n" "N" "s" "a" "p" "A" "e" "m") keys))
      (should-not (seq-difference '("d" "v" "c" "b" "M" "E" "T" "L" "O" "R") keys)))
    (efrit-viewing-type "Evaluate.")
    (should (efrit-test-wait-until (lambda () (efrit-run-pending-use view-loop))))
    (let ((keys (choosing-tests--menu)))
      (should-not (seq-difference '("k" "y" "n" "N" "s") keys))
      (should-not (seq-intersection '("c" "x" "r" "e") keys)))
    (efrit-allow-once)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-to "Evaluate ")
    (should-not (seq-difference '("o" "w" "c") (choosing-tests--menu)))))

(ert-deftest efrit-menu-answers-the-question-whether-to-go-on ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"vcs_status\", input = {} }]
[[reply]]
text = \"Done.\"
"
    (efrit-test-with-options view-loop ((efrit-max-turns 1))
      (efrit-viewing-type "Go.")
      (should (eq 'limited (efrit-test-rest view-loop)))
      (let ((keys (choosing-tests--menu)))
        (should-not (seq-difference '("y" "n" "k" "c") keys))
        (should-not (seq-intersection '("s" "a" "p" "A" "N" "e") keys)))
      (should (equal "go on" (efrit-menu--describe-yes)))
      (should-not (string-search "[continue]" (efrit-viewing-view-text)))
      (efrit-allow-once)
      (should (eq 'idle (efrit-test-rest view-loop))))))

(ert-deftest efrit-menu-without-a-session-offers-to-begin-one ()
  (efrit-test-with-project nil
    (with-temp-buffer
      (setq default-directory efrit-test-project)
      (let ((keys (choosing-tests--menu)))
        (should (equal "No session is open here" (efrit-menu--heading)))
        (should (equal "New sessions" (efrit-menu--settings-heading)))
        (should-not (seq-difference '("d" "+" "M" "E" "T" "L" "R" "l" "D") keys))
        (should-not (seq-intersection '("v" "c" "k" "b" "u" "U" "F" "O" "o" "w") keys))))))

(provide 'choosing-tests)
;;; choosing-tests.el ends here
