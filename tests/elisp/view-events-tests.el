;;; view-events-tests.el --- Tests of what a session's buffer says and asks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Questions, faults and retries, sessions from before, and what other
;; buffers show of a session.

;;; Code:

(require 'viewing)
(require 'efrit-sessions)
(require 'efrit-undo)

;;; Questions

(defconst efrit-viewing-asking "
[[reply]]
text = \"I will evaluate.\"
tool = [{ name = \"eval_sexp\", input = { code = \"(setq efrit-viewing-evaluated\\n      (list 1 2))\" } }]
[[reply]]
text = \"So it is.\"
"
  "A session that asks for a permission.")

(defvar efrit-viewing-evaluated nil
  "Variable set by the model's code.")

(ert-deftest efrit-view-asks-inline-and-y-runs-the-call ()
  (efrit-viewing-with-view efrit-viewing-asking
    (setq efrit-viewing-evaluated nil)
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "Evaluate this code in your Emacs?")
    (efrit-viewing-in-order "? Evaluate (setq"
                            "│ (setq efrit-viewing-evaluated" "│       (list 1 2))"
                            "Evaluate this code in your Emacs?\n  [y] once   [n] no"
                            "[m] more\n" "waiting for your answer")
    (should-not efrit-viewing-evaluated)
    (efrit-viewing-press "C-c C-a")
    (efrit-viewing-press "y")
    (efrit-test-rest view-loop)
    (should (equal '(1 2) efrit-viewing-evaluated))
    (should (efrit-transcript-in-box-p))
    (should-not (string-search "Evaluate this code" (efrit-viewing-view-text)))
    (efrit-viewing-in-order "• Evaluate (setq" " · => (1 2)" "So it is.")))

(ert-deftest efrit-view-n-denies-the-call ()
  (efrit-viewing-with-view efrit-viewing-asking
    (setq efrit-viewing-evaluated nil)
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "[n] no")
    (efrit-viewing-to "[n] no")
    (push-button (point))
    (efrit-test-rest view-loop)
    (should-not efrit-viewing-evaluated)
    (efrit-viewing-in-order "✗ Denied: Evaluate (setq" "So it is.")))

(ert-deftest efrit-view-shows-that-a-rule-denied-and-nothing-of-it-runs ()
  (efrit-viewing-with-view efrit-viewing-asking
    (setq efrit-viewing-evaluated nil)
    (efrit-test-with-rules view-loop '(("eval_sexp" t deny))
      (efrit-viewing-type "Evaluate.")
      (should (eq (efrit-test-rest view-loop) 'idle)))
    (should-not efrit-viewing-evaluated)
    (efrit-viewing-in-order "✗ Denied: Evaluate (setq" "So it is.")))

(ert-deftest efrit-view-remembers-an-answer-for-the-session-by-s ()
  (efrit-viewing-with-view (concat efrit-viewing-asking efrit-viewing-asking)
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "Evaluate this code in your Emacs?")
    (efrit-ask-go)
    (efrit-viewing-press "m")
    (efrit-viewing-in-order "[y] once" "[m] fewer" "[s] exactly this code, this session"
                            "[p]" "[N]" "waiting for your answer")
    (efrit-viewing-press "s")
    (efrit-test-rest view-loop)
    (setq efrit-viewing-evaluated nil)
    (efrit-viewing-type "Again.")
    (efrit-test-rest view-loop)
    (should (equal '(1 2) efrit-viewing-evaluated))))

(ert-deftest efrit-view-asks-no-minibuffer-and-takes-no-keys-in-other-buffers ()
  (efrit-viewing-with-view efrit-viewing-asking
    (let ((view (current-buffer))
          (windows (mapcar #'window-buffer (window-list))))
      (with-temp-buffer
        (let ((here (current-buffer)))
          (efrit-do-say view-loop "Evaluate.")
          (efrit-test-wait-until (lambda () (efrit-run-pending-use view-loop)))
          (should (efrit-test-wait-until
                   (lambda ()
                     (with-current-buffer "*Messages*"
                       (string-search (format "eval_sexp waits for your answer in %s"
                                              (buffer-name view))
                                      (buffer-string))))))
          (should (eq here (current-buffer)))
          (should (eq (key-binding "y") 'self-insert-command))
          (should (zerop (minibuffer-depth)))
          (should (equal windows (mapcar #'window-buffer (window-list)))))))))

(ert-deftest efrit-view-asks-about-one-after-the-other-and-stays-on-the-question ()
  (efrit-viewing-with-view "
[[reply]]
[[reply.tool]]
name = \"eval_sexp\"
input.code = \"(setq efrit-viewing-evaluated 1)\"
[[reply.tool]]
name = \"eval_sexp\"
input.code = \"(setq efrit-viewing-evaluated (list efrit-viewing-evaluated 2))\"
[[reply]]
text = \"Both.\"
"
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "(the first of 2)")
    (efrit-ask-go)
    (efrit-viewing-press "y")
    (should (eq (key-binding "y") 'efrit-allow-once))
    (efrit-viewing-in-order "(list efrit-viewing-evaluated 2)" "Evaluate this code" "[y] once")
    (should-not (string-search "(the first of" (efrit-viewing-view-text)))
    (efrit-viewing-press "y")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should (efrit-transcript-in-box-p))
    (should (equal '(1 2) efrit-viewing-evaluated))))

(ert-deftest efrit-view-makes-hidden-characters-of-a-question-visible ()
  (let ((use (efrit-use-create :name "eval_sexp"
                               :arguments "{\"code\":\"(a)\\u202e;b\\u200b\"}")))
    (should (equal "code: (a)<U+202E>;b<U+200B>" (efrit-ask-arguments-text use)))))

(ert-deftest efrit-view-hides-nothing-in-the-title-the-buttons-and-the-diff-of-a-question ()
  "Nor are letters put in another order while it is asked."
  (efrit-viewing-with-view "
[[reply]]
[[reply.tool]]
name = \"create_file\"
input_json = '{\"path\":\"a\\u202e [y] once\",\"content\":\"x\\u061cy\\u3164\\n\"}'
[[reply]]
text = \"Well.\"
"
    (efrit-viewing-type "Make it.")
    (efrit-viewing-shows "[m] more")
    (efrit-ask-go)
    (efrit-viewing-press "m")
    (efrit-viewing-in-order "+x<U+061C>y<U+3164>" "Create \"a\\342\\200\\256 [y] once\" +1"
                            "[y] once " "[s] making a<U+202E> [y] once, this session"
                            "[N] never making a<U+202E> [y] once, this session")
    (should-not (string-match-p "[\u202e\u061c\u3164]" (efrit-viewing-view-text)))
    (should-not bidi-display-reordering)
    (save-window-excursion
      (efrit-show-diff)
      (with-current-buffer "*efrit diff*"
        (should (string-search "+x<U+061C>y<U+3164>" (buffer-string)))
        (should-not bidi-display-reordering)
        (kill-buffer)))
    (efrit-ask-go)
    (efrit-viewing-press "n")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should bidi-display-reordering)))

(ert-deftest efrit-view-allows-for-longer-only-what-it-has-shown ()
  "A key for longer shows first what it allows; shown once, the answers stay."
  (efrit-viewing-with-view (concat efrit-viewing-asking efrit-viewing-asking)
    (setq efrit-viewing-evaluated nil)
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "[m] more")
    (should (= 0 (efrit-viewing-count "[s]")))
    (efrit-ask-go)
    (should-error (efrit-viewing-press "s") :type 'user-error)
    (efrit-viewing-shows "[s] exactly this code, this session")
    (should-not (efrit-loop-rules view-loop))
    (should (efrit-run-pending-use view-loop))
    (efrit-viewing-press "y")
    (efrit-test-rest view-loop)
    (efrit-viewing-type "Again.")
    (efrit-viewing-shows "[s] exactly this code, this session")
    (efrit-ask-go)
    (efrit-viewing-press "m")
    (should (= 0 (efrit-viewing-count "[s]")))
    (efrit-viewing-press "n")
    (efrit-test-rest view-loop)))

(ert-deftest efrit-view-lays-a-question-out-for-a-narrow-window ()
  "Answers that do not fit in a line have a line each, as the window has its width."
  (efrit-viewing-with-view efrit-viewing-asking
    (efrit-viewing-type "Evaluate.")
    (efrit-viewing-shows "[y] once   [n] no   [r] no, because...   [m] more\n")
    (let ((size '(40 . 12)))
      (cl-letf (((symbol-function 'efrit-ask--size) (lambda () size)))
        (save-window-excursion
          (set-window-buffer nil (current-buffer))
          (efrit-live-fit (selected-window))
          (efrit-viewing-in-order "  [y] once\n  [n] no\n  [r] no, because...\n  [m] more\n"
                                  "  C-c C-y once\n  C-c C-d no\n  C-c C-a goes to the question\n")
          (should-not (seq-some (lambda (line) (> (string-width line) 40))
                                (split-string (buffer-substring (efrit-ask-position)
                                                                efrit-transcript-live-end)
                                              "\n")))
          (setq size '(60 . 8))
          (efrit-live-fit (selected-window))
          (should (= 0 (efrit-viewing-count "C-c C-a")))
          (setq size '(100 . 40))
          (efrit-live-fit (selected-window))
          (efrit-viewing-shows "C-c C-a goes to the question")
          (efrit-viewing-in-order "[y] once   [n] no   [r] no, because...   [m] more\n"))))))

(ert-deftest efrit-view-asks-in-words-about-every-tool ()
  "No tool that asks does so by its name; a tool not known here says which it is."
  (dolist (name '("run_command" "compile" "eval_sexp" "fetch_url" "web_search" "read_buffer"
                  "buffer_outline" "mem_delete" "read_file" "search_content"))
    (let* ((argument (nth 2 (assoc name efrit-show--questions)))
           (title (efrit-show-question-title
                   (efrit-use-create :name name :arguments
                                     (format "{\"%s\":\"x\"}" (substring (symbol-name argument) 1))))))
      (should (string-match-p "\\`[A-Z][a-z]+ [a-zA-Z ]+\\?\\'" title))
      (should-not (string-search name title))))
  (seq-doseq (tool (efrit-tools-schemas))
    (when (equal "ask" (plist-get tool :policy))
      (let ((name (plist-get tool :name)))
        (should (or (assoc name efrit-show--questions)
                    (efrit-tool-plan (efrit-tool-get name)))))))
  (should (equal "Use the tool deploy for this?"
                 (efrit-show-question-title (efrit-use-create :name "deploy" :arguments "{}")))))

(ert-deftest efrit-view-shows-every-argument-of-what-it-asks-about ()
  "The command stands by itself behind bars; nothing in it can pass for another argument."
  (efrit-viewing-with-view "
[[reply]]
[[reply.tool]]
name = \"run_command\"
input_json = '{\"command\":\"ls\\n  cwd: /\",\"cwd\":\"sub\",\"timeout\":60}'
[[reply]]
text = \"Well.\"
"
    (make-directory (expand-file-name "sub" efrit-test-project))
    (efrit-viewing-type "Run.")
    (efrit-viewing-shows "Run this command?")
    (efrit-viewing-in-order "  │ ls\n  │   cwd: /\n  cwd: sub\n  timeout: 60\n"
                            "Run this command?\n")
    (efrit-deny-once)
    (efrit-test-rest view-loop)))

(defconst efrit-viewing-choosing "
[[reply]]
tool = [{ name = \"ask_user\", input = { question = \"Tabs or spaces?\", options = [\"tabs\", \"spaces\"] } }]
[[reply]]
text = \"As you like.\"
expect_contains = \"spaces\"
"
  "A session that asks the person to choose.")

(ert-deftest efrit-view-lets-the-person-choose-an-option-by-its-number ()
  (efrit-viewing-with-view efrit-viewing-choosing
    (efrit-viewing-type "Indent it.")
    (efrit-viewing-shows "The model asks:\nTabs or spaces?")
    (efrit-viewing-in-order "[1] tabs" "[2] spaces")
    (efrit-ask-go)
    (efrit-viewing-press "2")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "As you like.")
    (should-not (string-search "The model asks" (efrit-viewing-view-text)))))

(ert-deftest efrit-view-takes-the-number-of-an-option-in-the-box-as-the-answer ()
  (efrit-viewing-with-view efrit-viewing-choosing
    (efrit-viewing-type "Indent it.")
    (efrit-viewing-shows "by a number or in words")
    (efrit-viewing-type "2")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "• Asked: Tabs or spaces? → spaces" "As you like.")))

(ert-deftest efrit-view-takes-the-next-text-in-the-box-as-the-answer ()
  (efrit-viewing-with-view efrit-viewing-choosing
    (efrit-viewing-type "Indent it.")
    (efrit-viewing-shows "nswer in the reply box")
    (efrit-viewing-type "two spaces, please")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "• Asked: Tabs or spaces? → two spaces, please" "As you like.")
    (efrit-viewing-to "Asked: ")
    (efrit-viewing-press "RET")
    (efrit-viewing-in-order "Asked: " "options: " "two spaces, please" "As you like.")))

;;; What is private

(ert-deftest efrit-view-sends-and-remembers-nothing-private-that-the-person-says ()
  (efrit-viewing-with-view efrit-viewing-choosing
    (let ((efrit-do-history nil))
      (efrit-viewing-type "Indent it as <private>hunter2x</private> does.")
      (efrit-viewing-shows "was not sent")
      (efrit-viewing-shows "nswer in the reply box")
      (efrit-viewing-type "two spaces, <Private a='>'>hunter2x</private>")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "As you like.")
      (let ((sent (efrit-test-sent-text)))
        (should (string-search "Indent it as [private] does." sent))
        (should (string-search "two spaces, [private]" sent))
        (should-not (string-search "hunter2x" sent)))
      (should-not efrit-do-history))))

;;; What goes otherwise

(ert-deftest efrit-view-stops-in-the-middle-and-keeps-the-text-so-far ()
  (efrit-viewing-with-view "
[[reply]]
text = \"One word after the other comes here, very slowly, and so on for long.\"
delay_ms = 300
[[reply]]
text = \"Here I go on.\"
"
    (efrit-viewing-type "Write.")
    (efrit-viewing-shows "One ")
    (efrit-viewing-press "C-c C-k")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "One " "— stopped —" "● ready")
    (should-not (string-search "for long" (efrit-viewing-view-text)))
    (efrit-viewing-to "● ready")
    (efrit-viewing-press "c")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "One " "— stopped —" "You\nContinue." "Here I go on.")))

(ert-deftest efrit-view-counts-down-to-a-retry-that-can-be-hurried ()
  (efrit-viewing-with-view "
[[reply]]
status = 429
retry_after = 600
message = \"Slow down.\"
[[reply]]
text = \"Now it works.\"
"
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "; again in 600 s")
    (efrit-viewing-in-order "429: Slow down." "[retry now]" "[stop]")
    (efrit-viewing-shows "; again in 598 s")
    (efrit-viewing-to "again in")
    (efrit-viewing-press "r")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-shows "Now it works.")
    (should-not (string-search "again in" (efrit-viewing-view-text)))))

(ert-deftest efrit-view-stops-while-it-waits-to-retry ()
  (efrit-viewing-with-view "[[reply]]\nstatus = 529\nretry_after = 600\n[[reply]]\ntext = \"Back.\"\n"
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "again in ")
    (efrit-viewing-to "[stop]")
    (push-button (point))
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "— stopped —" "● ready")))

(ert-deftest efrit-view-removes-the-streamed-text-of-a-retried-reply ()
  (efrit-viewing-with-view "
[[reply]]
text = \"Words that break off in the middle of it all.\"
cut = \"text\"
[[reply]]
thinking = \"Once more.\"
text = \"Whole this time.\"
"
    (efrit-test-with-options view-loop ((efrit-claude-retry-delay 0.5))
      (efrit-viewing-type "Go.")
      (efrit-viewing-shows "Words")
      (should (eq (efrit-test-rest view-loop) 'idle)))
    (efrit-viewing-in-order "Go." "Whole this time.")
    (should-not (string-search "Words" (efrit-viewing-view-text)))))

(ert-deftest efrit-view-says-why-it-failed-and-tries-again-by-its-button ()
  (efrit-viewing-with-view "
[[reply]]
status = 401
message = \"invalid x-api-key\"
[[reply]]
text = \"Now I may.\"
"
    (efrit-viewing-type "Go.")
    (should (eq (efrit-test-rest view-loop) 'failed))
    (efrit-viewing-in-order "✗ 401: invalid x-api-key" "The key was refused" "● failed")
    (efrit-viewing-to "[try again]")
    (push-button (point))
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-shows "Now I may.")))

(ert-deftest efrit-view-says-that-a-reply-was-cut-short-and-goes-on ()
  (efrit-viewing-with-view "
[[reply]]
text = \"There was once\"
stop_reason = \"max_tokens\"
[[reply]]
text = \"a long story.\"
"
    (efrit-viewing-type "Tell me.")
    (should (eq (efrit-test-rest view-loop) 'cut-short))
    (efrit-viewing-in-order "There was once" "✗ the reply reached its limit of tokens")
    (efrit-viewing-to "[continue]")
    (push-button (point))
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "There was once" "Continue." "a long story.")))

(ert-deftest efrit-view-updates-todos-in-their-place ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"todo_write\", input = { todos = [{ content = \"look\", status = \"doing\" }, { content = \"tell\", status = \"pending\" }] } }]
[[reply]]
tool = [{ name = \"todo_write\", input = { todos = [{ content = \"look\", status = \"done\" }, { content = \"tell\", status = \"doing\" }] } }]
[[reply]]
text = \"That is all.\"
"
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (efrit-viewing-in-order "That is all." "☑ look\n▶ tell\n" "● ready")
    (should (= 1 (efrit-viewing-count "▶ tell")))
    (should-not (string-search "▶ look" (efrit-viewing-view-text)))
    (let ((id (efrit-loop-id view-loop)))
      (efrit-do-forget view-loop)
      (efrit-sidecar-stop)
      (let ((again (efrit-do-resume-loop id efrit-test-project)))
        (with-current-buffer (efrit-session-view-buffer again)
          (efrit-viewing-in-order "☑ look\n▶ tell\n" "● ready")
          (kill-buffer))))))

(ert-deftest efrit-view-says-in-one-line-that-older-results-gave-way ()
  (efrit-viewing-with-view efrit-viewing-short
    (setf (efrit-loop-rewrite-reasons view-loop) '("size"))
    (efrit-view-observe view-loop '(begun t ("A note for you.")))
    (efrit-viewing-in-order "older results were compressed to a line each" "— A note for you.")))

(ert-deftest efrit-view-warns-of-changes-by-the-api ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((reply (efrit-reply-create
                  :extras '(("input_transformations" . [#s(hash-table test equal data ("type" "thinking_dropped"))])))))
      (efrit-view-observe view-loop (list 'ended reply))
      (with-current-buffer "*Warnings*"
        (should (string-search "thinking_dropped" (buffer-string)))))))

;;; A session from before

(ert-deftest efrit-view-shows-the-transcript-of-a-resumed-session ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (let ((id (efrit-loop-id view-loop)))
      (efrit-do-forget view-loop)
      (with-current-buffer (efrit-session-view-buffer
                            (efrit-do-resume-loop id efrit-test-project))
        (efrit-viewing-shows "It is a sample.")
        (efrit-viewing-in-order "You\nWhat is README.md?" "▸ Thinking  25 characters"
                                "I will read it." "• Read README.md" " tokens  r1\n"
                                "It is a sample." "• Finish" "● ready")
        (efrit-viewing-to "Read README.md")
        (efrit-viewing-press "TAB")
        (efrit-viewing-in-order "Read README.md" "A line." "It is a sample.")
        (kill-buffer)))))

;;; Presence

(defun efrit-view-events-tests--mode-line (folder)
  "Return the lighter in the mode line of a buffer in FOLDER."
  (with-temp-buffer
    (setq default-directory folder)
    (pcase (assq 'efrit-presence-loops minor-mode-alist)
      (`(,variable (:eval ,form))
       (if (symbol-value variable)
           (substring-no-properties (eval form t))
         "")))))

(ert-deftest efrit-view-says-in-mode-lines-of-the-project-that-it-works ()
  (efrit-viewing-with-view "[[reply]]\nwait_ms = 1000\ntext = \"Yes.\"\n"
    (let ((inside (expand-file-name "deep/" efrit-test-project)))
      (should (equal "" (efrit-view-events-tests--mode-line inside)))
      (efrit-viewing-type "Go.")
      (efrit-viewing-shows "waiting for the model")
      (should (equal " efrit:waiting for the model" (efrit-view-events-tests--mode-line inside)))
      (should (equal "" (efrit-view-events-tests--mode-line "/")))
      (should (equal "" (efrit-presence-lighter)))
      (should (equal ": waiting for the model" (efrit-session-view--activity)))
      (let ((efrit-presence-in-mode-line t))
        (should (equal " efrit:waiting for the model" (efrit-view-events-tests--mode-line "/"))))
      (let ((efrit-presence-in-mode-line nil))
        (should (equal "" (efrit-view-events-tests--mode-line inside))))
      (efrit-test-rest view-loop)
      (should (equal "" (efrit-view-events-tests--mode-line inside))))))

(ert-deftest efrit-view-says-in-mode-lines-that-it-asks-and-a-click-shows-it ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(+ 1 2)\" } }]
[[reply]]
text = \"Yes.\"
"
    (efrit-viewing-type "Go.")
    (should (efrit-test-wait-until (lambda () (efrit-run-pending-use view-loop))))
    (should (equal " efrit:asks you" (efrit-view-events-tests--mode-line efrit-test-project)))
    (should (equal ": asks you" (substring-no-properties (efrit-session-view--activity))))
    (let* ((shown nil)
           (efrit-do-show-function (lambda (loop) (push loop shown)))
           (lighter (with-temp-buffer
                      (setq default-directory efrit-test-project)
                      (efrit-presence-lighter))))
      (call-interactively (lookup-key (get-text-property 1 'local-map lighter)
                                      [mode-line mouse-1]))
      (should (equal (list view-loop) shown)))
    (efrit-stop view-loop)
    (efrit-test-rest view-loop)))

(ert-deftest efrit-view-says-that-a-session-ended-which-nobody-saw ()
  (efrit-viewing-with-view "[[reply]]\ntext = \"Yes.\"\n"
    (efrit-viewing-type "Go.")
    (efrit-test-rest view-loop)
    (should (efrit-test-wait-until
             (lambda ()
               (with-current-buffer "*Messages*"
                 (string-search (format "%s: it has ended"
                                        (abbreviate-file-name efrit-test-project))
                                (buffer-string))))))))

(ert-deftest efrit-view-notifies-the-desktop-of-a-text-and-of-no-markup ()
  (require 'notifications)
  (pcase-dolist (`(,capabilities ,body)
                 '(((:body :body-markup) "~/a&lt;b&gt;&amp;c/: asks &lt;a href=x&gt;")
                   ((:body) "~/a<b>&c/: asks <a href=x>")))
    (let ((efrit-presence-notify 'desktop)
          (process-environment (cons "DBUS_SESSION_BUS_ADDRESS=unix:path=/none"
                                     process-environment))
          (notified nil))
      (cl-letf (((symbol-function 'display-graphic-p) #'always)
                ((symbol-function 'notifications-get-capabilities) (lambda () capabilities))
                ((symbol-function 'notifications-notify)
                 (lambda (&rest params) (setq notified (plist-get params :body)))))
        (efrit-presence--notify "~/a<b>&c/: asks <a href=x>"))
      (should (equal body notified)))))

(ert-deftest efrit-view-asks-before-a-buffer-at-work-is-killed-and-before-exit ()
  (efrit-viewing-with-view "[[reply]]\nwait_ms = 60000\ntext = \"Yes.\"\n"
    (should (efrit-presence-may-exit-p))
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "waiting for the model")
    (let ((asked nil))
      (cl-letf (((symbol-function 'yes-or-no-p) (lambda (text) (push text asked) nil)))
        (should-not (kill-buffer))
        (should-not (efrit-presence-may-exit-p)))
      (should (= 2 (length asked))))))

;;; Lists

(ert-deftest efrit-view-lists-show-their-keys ()
  "Each key in the header line is bound, and help is there in any width."
  (dolist (mode '(efrit-sessions-mode efrit-undo-view-mode efrit-permissions-mode))
    (with-temp-buffer
      (funcall mode)
      (should-not tabulated-list-use-header-line)
      (pcase-let* ((`(:eval (,_ (quote ,keys) ,_)) header-line-format)
                   (line (efrit-list-keys-line keys 200)))
        (pcase-dolist (`(,key ,does) keys)
          (ert-info ((format "%s in %s" key mode))
            (should (commandp (key-binding (kbd key) t)))
            (should (string-search (concat key " " does) line))))
        (dolist (columns '(20 60 80))
          (let ((short (efrit-list-keys-line keys columns)))
            (should (<= (string-width short) columns))
            (should (string-suffix-p "? help" short))))))))

(ert-deftest efrit-view-lists-fit-the-window ()
  (let ((session (list :session_id "abcde" :title (make-string 90 ?t) :calls 12345 :dollars 123.45
                       :touched 0 :state "open" :root (concat "/" (make-string 70 ?r))))
        (change (list :number 1 :label "c1234" :kind "create" :path (make-string 90 ?p)
                      :added 1234 :removed 5678 :state "done" :now "changed" :tool "create_file")))
    (dolist (columns '(60 80 100 180))
      (cl-letf (((symbol-function 'efrit-smallest-window) (lambda (&rest _) (cons columns 24))))
        (pcase-dolist (`(,mode . ,show)
                       `((efrit-sessions-mode
                          . ,(lambda () (efrit-sessions--show (list session))))
                         (efrit-sessions-mode
                          . ,(lambda ()
                               (setq efrit-sessions--root "/r")
                               (efrit-sessions--show (list session))))
                         (efrit-undo-view-mode
                          . ,(lambda ()
                               (setq tabulated-list-entries (list (efrit-undo-view--row change)))
                               (efrit-list-print)))))
          (with-temp-buffer
            (funcall mode)
            (funcall show)
            (ert-info ((format "%d columns: %s" columns (buffer-string)))
              (dolist (line (split-string (buffer-string) "\n"))
                (should (<= (string-width line) columns))))))))))

(ert-deftest efrit-view-leaves-room-for-the-state-in-the-mode-line ()
  (efrit-viewing-with-view efrit-viewing-short
    (rename-buffer (concat "*efrit: 100% of " (make-string 60 ?t) "*"))
    (dolist (columns '(60 80 180))
      (cl-letf (((symbol-function 'window-width) (lambda (&rest _) columns)))
        (let ((name (efrit-session-view--identification)))
          (should (string-prefix-p "*efrit: 100%%" (concat name "%")))
          (should (equal (buffer-name) (get-text-property 0 'help-echo name)))
          (should (<= (string-width name) (max 15 (- columns 47)))))))))

(ert-deftest efrit-view-lists-permissions-with-faces ()
  (efrit-viewing-with-view efrit-viewing-short
    (setf (efrit-loop-rules view-loop) '((edit (all) allow) ("run_command" t deny)))
    (save-window-excursion
      (efrit-permissions view-loop)
      (pcase-dolist (`(,text ,face) '(("allow" efrit-done) ("deny" efrit-failed)))
        (goto-char (point-min))
        (search-forward (concat " " text))
        (should (eq face (get-text-property (1- (point)) 'face))))
      (kill-buffer))))

(provide 'view-events-tests)
;;; view-events-tests.el ends here
