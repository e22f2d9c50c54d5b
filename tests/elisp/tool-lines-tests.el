;;; tool-lines-tests.el --- The lines of tool calls, in words  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the line of each call says, which calls fold into a group, and that
;; the buffer, a resumed session, batch and the export say the same.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'viewing)
(require 'efrit-sessions)
(require 'efrit-status)

(defun tool-lines--words (name arguments &rest result)
  "Return the words of the line of a call of NAME with ARGUMENTS, a JSON text.
RESULT is its result, a plist; without one it runs."
  (substring-no-properties
   (efrit-line-words (efrit-use-create :name name :arguments arguments
                                       :state (if result 'done 'running) :result result))))

;;; Words

(ert-deftest efrit-line-has-words-for-every-tool-of-the-page ()
  "Each tool that docs/tools.md describes has a verb of its own."
  (let ((page (with-temp-buffer
                (insert-file-contents (expand-file-name "docs/tools.md" efrit-test-root))
                (buffer-string)))
        (start 0)
        (names nil))
    (while (string-match "^##+ \\([a-z_]+\\)$" page start)
      (setq start (match-end 0))
      (push (match-string 1 page) names))
    (should (<= 45 (length names)))
    (dolist (name names)
      (ert-info (name)
        (should-not (string-prefix-p (concat "… " name) (tool-lines--words name "{}")))))))

(ert-deftest efrit-line-says-what-a-call-does-and-what-came-of-it ()
  (pcase-dolist
      (`(,line . ,call)
       '(("• Read src/a.el 1-80" "read_file" "{\"path\":\"src/a.el\",\"start_line\":1,\"end_line\":80}"
          :status "success" :gist "")
         ("• Search \"foo\" in *.el · 12 matches" "search_content"
          "{\"pattern\":\"foo\",\"glob\":\"*.el\"}" :status "success" :gist "12 matches")
         ("• Edit src/a.el +2 −0" "edit_file" "{\"path\":\"src/a.el\",\"old_text\":\"x\",\"new_text\":\"y\"}"
          :status "success" :gist "+2 −0")
         ("• Edit a.el, b.el +3 −1, as you changed it" "multi_edit"
          "{\"edits\":[{\"path\":\"a.el\"},{\"path\":\"b.el\"},{\"path\":\"a.el\"}]}"
          :status "success" :gist "+3 −1, as you changed it")
         ("• Run make test · exit 2" "run_command" "{\"command\":\"make test\"}"
          :status "success" :gist "exit 2")
         ("• Asked: which colour? → green" "ask_user"
          "{\"question\":\"which colour?\",\"options\":[\"red\",\"green\"]}"
          :status "success" :gist "green")
         ("✗ Denied: rm -rf build (you: keep it)" "run_command" "{\"command\":\"rm -rf build\"}"
          :status "error" :ending "denied" :gist "you: keep it")
         ("✗ Denied: Delete a.el (a rule)" "delete_file" "{\"path\":\"a.el\"}"
          :status "error" :ending "denied" :gist "a rule")
         ("✗ Stopped: Run sleep 9 (you, after 2.1 s)" "run_command" "{\"command\":\"sleep 9\"}"
          :status "error" :ending "stopped" :gist "you, after 2.1 s")
         ("✗ Read nix · no such file" "read_file" "{\"path\":\"nix\"}"
          :status "error" :text "§ no such file\nmore")
         ("• Rename a.el → b.el" "rename_file" "{\"path\":\"a.el\",\"to\":\"b.el\"}"
          :status "success")
         ("• weather Oslo" "weather" "{\"days\":3,\"name\":\"Oslo\"}" :status "success")
         ("… Run make" "run_command" "{\"command\":\"make\"}")))
    (should (equal line (apply #'tool-lines--words call)))))

(ert-deftest efrit-line-tells-how-long-a-slow-call-took ()
  (cl-flet ((line (seconds)
              (substring-no-properties
               (efrit-line-text (efrit-use-create
                                 :name "run_command" :arguments "{\"command\":\"make\"}" :state 'done
                                 :seconds seconds
                                 :result '(:status "success" :gist "exit 0" :tokens 1234
                                                   :handle "r7"))))))
    (should (equal "• Run make · exit 0 · 4.1 s  1k tokens  r7" (line 4.12)))
    (should (equal "• Run make · exit 0  1k tokens  r7" (line 0.012)))))

(ert-deftest efrit-line-shows-hidden-characters-and-lets-nothing-pass-for-our-words ()
  (should (equal "✗ Denied: a<U+202E>b⏎c <U+00B7> exit 0 (you: no<U+200B>w)"
                 (tool-lines--words "run_command"
                                    "{\"command\":\"a\\u202eb\\n  c · exit 0\"}"
                                    :status "error" :ending "denied" :gist "you: no\u200bw")))
  (should (equal "• we<U+202E>ather x"
                 (tool-lines--words "we\u202eather" "{\"path\":\"x\"}" :status "success")))
  (let ((line (efrit-line-text
               (efrit-use-create :name "read_file" :state 'done
                                 :arguments (concat "{\"path\":\"" (make-string 5000 ?x) "\"}")
                                 :result '(:status "success")))))
    (should (< (string-width line) 90))))

;;; Width

(ert-deftest efrit-line-fits-the-columns-that-it-is-given ()
  (let ((use (efrit-use-create
              :name "search_content" :state 'done
              :arguments (format "{\"pattern\":\"%s\"}" (make-string 100 ?x))
              :result '(:status "success" :gist "3 of 12 matches"))))
    (dolist (columns '(50 60 80))
      (let ((line (efrit-line-words use columns)))
        (should (= columns (string-width line)))
        (should (string-suffix-p "… · 3 of 12 matches" line))))
    (should (string-suffix-p "x… · 3 of 12 matches" (efrit-line-words use 10)))))

(ert-deftest efrit-line-says-why-it-failed-without-advice-to-the-model ()
  (should (equal "✗ Read nix.el · no such file"
                 (tool-lines--words "read_file" "{\"path\":\"nix.el\"}" :status "error" :text
                                    "§ nix.el: no such file; project_files finds names\n📏 9"))))

;;; Groups

(defconst tool-lines--reading "
[[reply]]
text = \"I look.\"
tool = [
 { name = \"read_file\", input = { path = \"README.md\" } },
 { name = \"read_file\", input = { path = \"README.md\", start_line = 1, end_line = 1 } },
 { name = \"search_content\", input = { pattern = \"line\" } },
 { name = \"read_file\", input = { path = \"nix\" } },
]
[[reply]]
tool = [
 { name = \"search_content\", input = { pattern = \"absent\" } },
 { name = \"vcs_status\", input = {} },
 { name = \"project_files\", input = {} },
]
[[reply]]
tool = [ { name = \"search_content\", input = { pattern = \"A\" } } ]
[[reply]]
text = \"Seen.\"
"
  "A session that reads and searches, and fails once.")

(ert-deftest efrit-view-folds-reads-and-searches-in-a-row-and-no-failure ()
  (efrit-viewing-with-view tool-lines--reading
    (efrit-viewing-type "Look.")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "I look." "▸ Read 1 file, searched  " " tokens\n"
                            "✗ Read nix · " "▸ Searched 2 times, asked git, listed files"
                            " tokens\n" "Seen.")
    (should-not (string-search "Search \"line\"" (efrit-viewing-view-text)))
    (let ((folded (efrit-viewing-view-text)))
      (efrit-viewing-to "Searched 2 times")
      (should-error (efrit-viewing-press "o") :type 'user-error)
      (efrit-viewing-press "TAB")
      (efrit-viewing-in-order "✗ Read nix" "▾ Searched 2 times" "• Search \"absent\" · no matches"
                              "• Git status" "• List files" "• Search \"A\" · " "Seen.")
      (efrit-viewing-to "Search \"A\"")
      (efrit-viewing-press "TAB")
      (efrit-viewing-in-order "• Search \"A\"" "pattern: A" "A line." "Seen.")
      (efrit-viewing-press "C-c C-p")
      (should (looking-at "• List files"))
      (efrit-viewing-to "Searched 2 times")
      (efrit-viewing-press "RET")
      (should (equal folded (efrit-viewing-view-text))))
    (let ((id (efrit-loop-id view-loop)))
      (efrit-do-forget view-loop)
      (with-current-buffer (efrit-session-view-buffer (efrit-do-resume-loop id efrit-test-project))
        (efrit-viewing-shows "Seen.")
        (efrit-viewing-in-order "I look." "▸ Read 1 file, searched" "✗ Read nix · "
                                "▸ Searched 2 times, asked git, listed files" "Seen.")
        (kill-buffer)))))

(ert-deftest efrit-view-folds-groups-in-an-exchange-that-is-folded ()
  (efrit-viewing-with-view tool-lines--reading
    (let ((efrit-view-least-group nil))
      (efrit-viewing-type "Look.")
      (should (eq 'idle (efrit-test-rest view-loop))))
    (efrit-viewing-to "You\nLook.")
    (efrit-viewing-press "TAB")
    (efrit-view--fold-groups)
    (dolist (text '("I look." "▸ Read 1 file" "✗ Read nix" "▸ Searched 2 times" "Seen."))
      (efrit-viewing-to text)
      (should (invisible-p (point))))
    (efrit-viewing-to "You\nLook.")
    (efrit-viewing-press "TAB")
    (efrit-viewing-to "▸ Searched 2 times")
    (should-not (invisible-p (point)))))

(ert-deftest efrit-view-folds-nothing-where-the-person-is-or-wants-no-groups ()
  (efrit-viewing-with-view tool-lines--reading
    (let ((efrit-view-least-group nil))
      (efrit-viewing-type "Look.")
      (should (eq 'idle (efrit-test-rest view-loop))))
    (efrit-viewing-in-order "• Read README.md" "• Read README.md 1-1" "• Search \"line\" · 1 match"
                            "✗ Read nix" "• Search \"absent\"" "Seen.")
    (efrit-viewing-to "Search \"line\"")
    (efrit-viewing-press "TAB")
    (efrit-view--fold-groups)
    (efrit-viewing-in-order "• Read README.md" "• Search \"line\" · 1 match" "✗ Read nix"
                            "▸ Searched 2 times")))

(ert-deftest efrit-view-leaves-a-result-folded-from-inside-on-its-line ()
  (efrit-viewing-with-view tool-lines--reading
    (let ((efrit-view-least-group nil))
      (efrit-viewing-type "Look.")
      (should (eq 'idle (efrit-test-rest view-loop))))
    (efrit-viewing-to "Search \"line\"")
    (efrit-viewing-press "TAB")
    (efrit-viewing-to "pattern: line")
    (efrit-viewing-press "TAB")
    (should (looking-at "• Search \"line\""))
    (efrit-viewing-press "TAB")
    (efrit-viewing-in-order "• Search \"line\"" "pattern: line" "A line.")))

(defun tool-lines--search (forward text)
  "Search for TEXT from the beginning, FORWARD, or from the end; return the line."
  (goto-char (if forward (point-min) (point-max)))
  (set-window-buffer nil (current-buffer))
  (let ((isearch-lazy-highlight nil)
        (inhibit-message t))
    (isearch-mode forward nil nil nil)
    (isearch-process-search-string text text)
    (isearch-done))
  (buffer-substring-no-properties (line-beginning-position) (line-end-position)))

(ert-deftest efrit-view-search-looks-into-folded-groups-and-folds-them-again ()
  (efrit-viewing-with-view tool-lines--reading
    (efrit-viewing-type "Look.")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (let ((folded (efrit-viewing-view-text)))
      (dolist (forward '(t nil))
        (should (string-prefix-p "• Git status" (tool-lines--search forward "Git status")))
        (efrit-viewing-to "▾ Searched")
        (efrit-viewing-press "TAB")
        (should (equal folded (efrit-viewing-view-text))))
      (should (string-match-p "No matches for" (tool-lines--search t "No matches for")))
      (efrit-viewing-in-order "▾ Searched 2 times" "• Search \"absent\"" "No matches for"
                              "• Git status"))))

;;; Results in buffers of their own

(defmacro tool-lines--with-result (input line &rest body)
  "Run BODY in the buffer of the result of the call whose line has LINE.
INPUT is the TOML of the tool calls of a session, all of which are allowed."
  (declare (indent 2))
  `(efrit-viewing-with-view (format "[[reply]]\ntool = [ %s ]\n[[reply]]\ntext = \"Done.\"\n"
                                    ,input)
     (efrit-test-with-rules view-loop '((t t allow))
       (efrit-test-write "bad.el" ";; -*- eval: (setq tool-lines--ran t); mode: tool-lines -*-\n(a)\n")
       (efrit-test-write ".dir-locals.el" "((nil . ((fill-column . 33))))\n")
       (efrit-viewing-type "Go.")
       (should (eq 'idle (efrit-test-rest view-loop)))
       (efrit-viewing-to ,line)
       (save-window-excursion
         (efrit-viewing-press "o")
         (let ((shown (window-buffer (selected-window))))
           (with-current-buffer shown
             (unwind-protect
                 (progn ,@body)
               (kill-buffer shown))))))))

(defvar tool-lines--ran nil
  "Non-nil if a file's variables or a mode's hook ran code.")

(ert-deftest efrit-result-shows-a-file-in-its-mode-and-runs-nothing-of-it ()
  (let ((emacs-lisp-mode-hook (list (lambda () (setq tool-lines--ran t))))
        (tool-lines--ran nil))
    (tool-lines--with-result "{ name = \"read_file\", input = { path = \"bad.el\" } }" "Read bad.el"
      (efrit-viewing-shows "(a)\n")
      (should (eq major-mode 'emacs-lisp-mode))
      (should (string-prefix-p ";; -*- eval" (buffer-string)))
      (should (equal "    2 " (substring-no-properties
                               (get-text-property (- (point-max) 3) 'line-prefix))))
      (should (string-match-p "r1  • Read bad\\.el  [0-9]+ tokens, full  (2 lines" header-line-format))
      (should buffer-read-only)
      (should-not (buffer-modified-p))
      (should (eq (key-binding "q") 'quit-window))
      (should-not (= fill-column 33))
      (should-not tool-lines--ran))))

(ert-deftest efrit-result-shows-an-edit-as-a-diff ()
  (tool-lines--with-result
      "{ name = \"edit_file\", input = { path = \"README.md\", old_text = \"A line.\", new_text = \"B.\" } }"
      "Edit README.md"
    (efrit-viewing-shows "-A line.\n+B.\n")
    (should (eq major-mode 'diff-mode))
    (should buffer-read-only)))

(ert-deftest efrit-result-shows-errors-of-a-command-to-visit ()
  (tool-lines--with-result
      "{ name = \"run_command\", input = { command = \"echo README.md:3: error: no\" } }"
      "Run echo"
    (efrit-viewing-shows "README.md:3: error: no")
    (should (eq (key-binding "g") 'undefined))
    (should (eq (key-binding "q") 'quit-window))
    (goto-char (point-min))
    (next-error 1 t)
    (with-current-buffer (window-buffer (selected-window))
      (should (equal "README.md" (file-name-nondirectory buffer-file-name)))
      (should (= 3 (line-number-at-pos))))))

;;; Thinking and usage

(ert-deftest efrit-view-shows-no-empty-thinking-and-no-usage-lines ()
  (efrit-viewing-with-view "
[[reply]]
thinking = \"\"
text = \"Nothing thought.\"
"
    (efrit-viewing-type "Think.")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-shows "Nothing thought.")
    (should-not (string-search "Thinking" (efrit-viewing-view-text)))
    (should-not (string-search "from cache" (efrit-viewing-view-text)))
    (should (equal "" (efrit-export-entry
                       '(:kind "reply" :content [(:type "thinking" :thinking "")]
                               :in_window t)
                       'markdown)))))

;;; Who and why

(defconst tool-lines--deciding "
[[reply]]
tool = [ { name = \"run_command\", input = { command = \"rm -rf build\" } } ]
[[reply]]
tool = [ { name = \"edit_file\", input = { path = \"README.md\", old_text = \"A line.\", new_text = \"B.\\nC.\" } } ]
[[reply]]
tool = [ { name = \"ask_user\", input = { question = \"Which colour?\" } } ]
[[reply]]
text = \"So be it.\"
"
  "A session in which the person decides three times.")

(ert-deftest efrit-view-says-who-denied-and-why-and-what-was-answered ()
  "So do a resumed session and the export."
  (efrit-viewing-with-view tool-lines--deciding
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "rm -rf build")
    (efrit-viewing-shows "[n] no")
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "keep it")))
      (efrit-ask-go)
      (efrit-viewing-press "r"))
    (efrit-viewing-shows "? Edit README.md +2 −1 · asks you")
    (efrit-allow-once)
    (efrit-viewing-shows "nswer in the reply box")
    (efrit-viewing-type "green\u202e")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-to "Edit README.md")
    (efrit-viewing-press "TAB")
    (efrit-viewing-in-order "• Edit README.md +2 −1" "-A line.\n+B.\n+C.\n" "Edited README.md")
    (efrit-viewing-to "+C.")
    (should (memq 'diff-added (ensure-list (get-text-property (1+ (point)) 'face))))
    (let ((lines '("✗ Denied: rm -rf build (you: keep it)" "• Edit README.md +2 −1"
                   "• Asked: Which colour? → green<U+202E>"))
          (id (efrit-loop-id view-loop)))
      (apply #'efrit-viewing-in-order lines)
      (efrit-do-forget view-loop)
      (with-current-buffer (efrit-session-view-buffer (efrit-do-resume-loop id efrit-test-project))
        (efrit-viewing-shows "So be it.")
        (apply #'efrit-viewing-in-order lines)
        (efrit-viewing-to "Edit README.md")
        (efrit-viewing-press "TAB")
        (efrit-viewing-in-order "• Edit README.md +2 −1" "-A line." "+B.\n+C." "Edited README.md")
        (kill-buffer))
      (let ((document (efrit-export-text
                       (list :session_id id :title "" :root "/" :created 0 :touched 0)
                       (plist-get (efrit-sidecar-request 'session/transcript
                                                         (list :session_id id))
                                  :turns)
                       'markdown)))
        (dolist (line lines)
          (should (string-search line document)))))))

(ert-deftest efrit-view-takes-a-reason-and-an-answer-of-any-length ()
  (efrit-viewing-with-view tool-lines--deciding
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "[n] no")
    (cl-letf (((symbol-function 'read-string)
               (lambda (&rest _) (apply #'concat (make-list 900 "e\u0301")))))
      (efrit-ask-go)
      (efrit-viewing-press "r"))
    (efrit-viewing-shows "· asks you")
    (efrit-allow-once)
    (efrit-viewing-shows "nswer in the reply box")
    (efrit-viewing-type (make-string 3000 ?x))
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "✗ Denied: rm -rf build (you: e" "…)"
                            "• Asked: Which colour? → xxx" "So be it.")))

(ert-deftest efrit-view-says-that-the-person-stopped-what-had-not-run ()
  (efrit-viewing-with-view tool-lines--deciding
    (efrit-viewing-type "Go.")
    (efrit-viewing-shows "[n] no")
    (efrit-stop view-loop)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-shows "✗ Stopped: Run rm -rf build (you)\n")
    (efrit-viewing-to "Stopped: ")
    (efrit-viewing-press "TAB")
    (efrit-viewing-in-order "command: rm -rf build" "There is no result.")))

(provide 'tool-lines-tests)
;;; tool-lines-tests.el ends here
