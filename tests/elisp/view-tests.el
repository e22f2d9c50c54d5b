;;; view-tests.el --- Tests of the session's buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What stands in the buffer, how it opens and folds, who is moved by what
;; comes, and the reply box.

;;; Code:

(require 'viewing)
(require 'efrit-status)
(require 'efrit-view)

;;; A session

(ert-deftest efrit-view-shows-request-thinking-text-tools-and-costs-in-order ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-shows "$0.")
    (efrit-viewing-in-order "You\nWhat is README.md?" "▸ Thinking  25 characters"
                            "I will read it." "• read_file README.md" "  r1"
                            "turn 1:" "% from cache" "It is a sample."
                            "✓ The file was read." "● ready")
    (should (string-match-p
             "▓*░* [0-9]+k/70k · [0-9]+k until it compacts  tools .*/40k.*  turn 2"
                            (efrit-session-view--header)))
    (should (string-empty-p (efrit-reply-box-text)))))

(ert-deftest efrit-view-stays-in-its-mode-and-works-on ()
  (efrit-viewing-with-view efrit-viewing-short
    (should-error (normal-mode) :type 'user-error)
    (should-error (text-mode) :type 'user-error)
    (should-error (efrit-session-view-mode) :type 'user-error)
    (efrit-viewing-type "What is README.md?")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "You\nWhat is README.md?" "It is a sample." "● ready")))

(ert-deftest efrit-view-opens-and-folds-a-tool-and-a-thought-by-return ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (should-not (string-search "A line." (efrit-viewing-view-text)))
    (let ((folded (efrit-viewing-view-text)))
      (efrit-viewing-to "read_file")
      (efrit-viewing-press "RET")
      (efrit-viewing-in-order "• read_file" "path: README.md" "A line." "It is a sample.")
      (efrit-viewing-press "TAB")
      (efrit-viewing-to "Thinking")
      (efrit-viewing-press "RET")
      (efrit-viewing-in-order "▾ Thinking" "First I look at the file." "I will read it.")
      (efrit-viewing-press "RET")
      (should (equal folded (efrit-viewing-view-text))))))

(ert-deftest efrit-view-opens-an-item-by-a-click ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (set-window-buffer nil (current-buffer))
    (efrit-viewing-to "read_file")
    (let ((place (point)))
      (should (get-text-property place 'follow-link))
      (should (eq (key-binding [mouse-2]) 'efrit-session-view-click))
      (goto-char (point-max))
      (efrit-session-view-click `(mouse-2 (,(selected-window) ,place (0 . 0) 0 nil ,place)))
      (efrit-viewing-in-order "• read_file" "A line." "It is a sample."))))

(ert-deftest efrit-view-opens-the-stored-result-in-a-buffer-of-its-own ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (efrit-viewing-to "read_file")
    (let ((efrit-result-most-characters 12))
      (efrit-viewing-press "o"))
    (let ((shown (get-buffer (format "*efrit result: %s r1*" (efrit-loop-id view-loop)))))
      (with-current-buffer shown
        (efrit-viewing-shows "characters more are stored")
        (should buffer-read-only)
        (should (string-search "read_file" header-line-format)))
      (kill-buffer shown))))

(ert-deftest efrit-view-copies-the-item-at-point ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (efrit-viewing-to "It is a sample.")
    (efrit-viewing-press "w")
    (should (equal "It is a sample." (car kill-ring)))
    (efrit-viewing-to "What is README.md?")
    (efrit-viewing-press "w")
    (should (equal "What is README.md?" (car kill-ring)))))

(ert-deftest efrit-view-lets-only-the-reply-box-be-edited ()
  (efrit-viewing-with-view efrit-viewing-short
    (dolist (place (list (point-min) efrit-transcript-end (1- efrit-transcript-box)))
      (goto-char place)
      (should-error (insert "x") :type 'text-read-only)
      (should (eq (key-binding "k") 'efrit-stop))
      (should-error (efrit-viewing-press "x") :type 'user-error))
    (goto-char efrit-transcript-box)
    (should (eq (key-binding "k") 'self-insert-command))
    (should (eq (key-binding (kbd "C-c C-k")) 'efrit-stop))
    (insert "one")
    (efrit-viewing-press "C-j")
    (insert "two")
    (should (equal "one\ntwo" (efrit-reply-box-text)))))

(ert-deftest efrit-view-moves-to-the-beginning-of-the-box-and-not-before-its-prompt ()
  (efrit-viewing-with-view efrit-viewing-short
    (goto-char (point-max))
    (insert "some words")
    (efrit-viewing-press "C-a")
    (should (= (point) efrit-transcript-box))
    (efrit-viewing-press "C-k")
    (should (string-empty-p (efrit-reply-box-text)))))

(ert-deftest efrit-view-moves-from-item-to-item-in-both-directions ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (goto-char (point-min))
    (let ((kinds nil))
      (ignore-errors
        (while t
          (efrit-viewing-press "C-c C-n")
          (push (efrit-item-kind (efrit-item-at (point))) kinds)))
      (should (equal '(message thinking text use cost text use cost note)
                     (remq 'context (reverse kinds))))
      (goto-char (point-max))
      (dolist (kind kinds)
        (efrit-viewing-press "C-c C-p")
        (should (eq kind (efrit-item-kind (efrit-item-at (point))))))
      (should-error (efrit-viewing-press "C-c C-p") :type 'user-error))))

(ert-deftest efrit-view-shows-all-again-when-its-buffer-was-killed ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (kill-buffer)
    (set-buffer (efrit-session-view-buffer view-loop))
    (efrit-viewing-shows "It is a sample.")
    (efrit-viewing-in-order "You\nWhat is README.md?" "I will read it."
                            "• read_file README.md" "It is a sample." "● ready")))

;;; Its page

(ert-deftest efrit-view-has-the-keys-and-options-that-its-page-names ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((page (with-temp-buffer
                  (insert-file-contents
                   (expand-file-name "docs/session-view.md" efrit-test-root))
                  (buffer-string)))
          (keys 0)
          (options 0)
          (start 0))
      (while (string-match "^| `\\([^`]+\\)` |.*?|\\(?: `\\([^`]+\\)` |\\)?$" page start)
        (setq start (match-end 0))
        (let ((first (match-string 1 page))
              (command (match-string 2 page)))
          (ert-info (first)
            (if command
                (progn (cl-incf keys)
                       (should (eq (intern command) (key-binding (kbd first)))))
              (cl-incf options)
              (should (custom-variable-p (intern first)))))))
      (should (<= 20 keys))
      (should (<= 8 options)))))

;;; Streaming

(ert-deftest efrit-view-shows-thinking-while-it-streams ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((block (efrit-block--create :type "thinking"))
          (text (efrit-block--create :type "text")))
      (cl-flet ((think (string)
                  (push string (efrit-block-pieces block))
                  (efrit-view-observe view-loop (list 'piece block string))))
        (efrit-view-observe view-loop (list 'begin block))
        (think "One")
        (efrit-viewing-to "Thinking")
        (efrit-viewing-press "TAB")
        (think " and two")
        (efrit-viewing-in-order "▾ Thinking" "One and two\n")
        (think "\nand three")
        (efrit-view-observe view-loop (list 'end block))
        (efrit-view-observe view-loop (list 'piece text "So it is"))
        (efrit-view-observe view-loop (list 'piece text ", indeed.")))
      (efrit-viewing-in-order "▾ Thinking  21 characters\nOne and two\nand three\n"
                              "\nSo it is, indeed.\n")
      (efrit-viewing-to "Thinking")
      (efrit-viewing-press "TAB")
      (efrit-viewing-in-order "▸ Thinking  21 characters\n\nSo it is, indeed.\n"))))

;;; Following

(ert-deftest efrit-view-moves-no-reader-and-keeps-who-types-in-the-box ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((reader (selected-window))
          (typist (split-window)))
      (unwind-protect
          (progn
            (set-window-buffer reader (current-buffer))
            (set-window-buffer typist (current-buffer))
            (set-window-point reader 5)
            (set-window-point typist (point-max))
            (efrit-loop-say view-loop (list (efrit-context-text "Read it.")))
            (efrit-test-rest view-loop)
            (should (= 5 (window-point reader)))
            (should (= (point-max) (window-point typist))))
        (delete-window typist)))))

(ert-deftest efrit-view-undoes-typing-in-the-box-while-text-streams ()
  (efrit-viewing-with-view efrit-viewing-short
    (goto-char (point-max))
    (run-hooks 'pre-command-hook)
    (insert "kept ")
    (undo-boundary)
    (insert "gone")
    (efrit-loop-say view-loop (list (efrit-context-text "Read it.")))
    (efrit-test-rest view-loop)
    (let ((shown (buffer-substring (point-min) efrit-transcript-box)))
      (run-hooks 'pre-command-hook)
      (undo-boundary)
      (let ((last-command 'ignore))
        (undo))
      (should (equal "kept " (efrit-reply-box-text)))
      (should (equal shown (buffer-substring (point-min) efrit-transcript-box))))))

(ert-deftest efrit-view-shows-events-while-it-is-narrowed ()
  (efrit-viewing-with-view efrit-viewing-short
    (narrow-to-region (point-min) (1+ (point-min)))
    (efrit-do-say view-loop "What is README.md?")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should (= (point-max) (1+ (point-min))))
    (widen)
    (efrit-viewing-in-order "What is README.md?" "I will read it." "• read_file"
                            "It is a sample." "✓ The file was read." "● ready")))

;;; The reply box

(ert-deftest efrit-view-queues-a-message-while-the-model-works ()
  (efrit-viewing-with-view "
[[reply]]
wait_ms = 1500
text = \"I look.\"
tool = [{ name = \"read_file\", input = { path = \"README.md\" } }]
[[reply]]
text = \"Both are done.\"
"
    (efrit-viewing-type "First.")
    (efrit-viewing-shows "waiting for the model")
    (efrit-viewing-type "And second.")
    (efrit-viewing-in-order "First." "⧗ queued: And second." "waiting for the model")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should-not (string-search "queued" (efrit-viewing-view-text)))
    (efrit-viewing-in-order "First." "I look." "read_file" "You\nAnd second." "Both are done.")))

(ert-deftest efrit-view-puts-a-queued-message-back-into-the-box ()
  (efrit-viewing-with-view "[[reply]]\ntext = \"Slowly.\"\ndelay_ms = 400\n[[reply]]\ntext = \"Never.\"\n"
    (efrit-viewing-type "Begin.")
    (efrit-viewing-shows "● writing")
    (efrit-viewing-type "And something else.")
    (efrit-viewing-shows "⧗ queued: And something else.  [take back]")
    (insert "More.")
    (efrit-viewing-to "[take back]")
    (push-button (point))
    (should (equal "And something else.\nMore." (efrit-reply-box-text)))
    (should (eq (efrit-test-rest view-loop) 'idle))
    (should-not (string-search "⧗" (efrit-viewing-view-text)))
    (should (= 1 (length (efrit-test-sent))))))

(ert-deftest efrit-view-browses-the-history-and-keeps-the-draft ()
  (efrit-viewing-with-view "[[reply]]\ntext = \"Yes.\"\n[[reply]]\ntext = \"Yes.\"\n"
    (let ((efrit-do-history nil))
      (efrit-viewing-type "one")
      (efrit-test-rest view-loop)
      (efrit-viewing-type "two")
      (efrit-test-rest view-loop)
      (insert "draft")
      (efrit-viewing-press "M-p")
      (should (equal "two" (efrit-reply-box-text)))
      (efrit-viewing-press "M-p")
      (should (equal "one" (efrit-reply-box-text)))
      (should-error (efrit-viewing-press "M-p") :type 'user-error)
      (efrit-viewing-press "M-n")
      (efrit-viewing-press "M-n")
      (should (equal "draft" (efrit-reply-box-text)))
      (should-error (efrit-viewing-press "M-n") :type 'user-error))))

(ert-deftest efrit-view-completes-names-of-files-behind-an-at-sign ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-test-write "src/deep/thing.el" "")
    (goto-char (point-max))
    (insert "Look at @src/deep/th")
    (efrit-viewing-press "TAB")
    (should (equal "Look at @src/deep/thing.el" (efrit-reply-box-text)))
    (efrit-reply-box-set "mail me@src/deep/th")
    (should-not (efrit-reply-box-complete))))

(ert-deftest efrit-view-keeps-a-message-that-could-not-be-sent ()
  (efrit-viewing-with-view efrit-viewing-short
    (setq efrit-reply-box-send-function (lambda (_) (user-error "Not now")))
    (insert "important")
    (should-error (efrit-viewing-press "RET") :type 'user-error)
    (should (equal "important" (efrit-reply-box-text)))))

;;; Long sessions

(ert-deftest efrit-view-opens-no-more-of-a-result-than-is-quick ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((item (efrit-view-use
                 (efrit-use-create :id "u" :name "big" :arguments "{}" :state 'done
                                   :result (list :status "success"
                                                 :text (make-string 500000 ?x))))))
      (efrit-item-toggle item)
      (efrit-viewing-shows "[400000 characters more; o shows them all]")
      (should (< (buffer-size) 110000)))))

(ert-deftest efrit-view-gauge-keeps-the-turn-in-narrow-windows ()
  "In a narrow window the tiers are left out, then the bar."
  (let ((loop (efrit-loop-make "id" temporary-file-directory)))
    (setf (efrit-loop-budget loop)
          '( :prompt_limit 70000 :remaining 55000
             :tiers (:tool_results (:used 12000 :limit 40000)
                     :history (:used 3000 :limit 12000)))
          (efrit-loop-usage loop) '(:dollars 0.12)
          (efrit-loop-turn loop) 7)
    (should (string-match-p "tools 12k/40k  history 3k/12k  \\$0.12  turn 7\\'"
                            (efrit-show-gauge loop)))
    (pcase-dolist (`(,columns ,shown) '((78 "tools") (60 "· 55k until it compacts")
                                        (40 "▓") (24 "15k/70k")))
      (let ((line (efrit-show-gauge loop columns)))
        (should (>= columns (string-width line)))
        (should (string-search shown line))
        (should (string-suffix-p "$0.12  turn 7" line))))))

;;; One rule

(defun efrit-view-tests--fill (used left)
  "Return how a budget with USED tokens and LEFT of them is shown.
That is the figures and the face of the header, and those of the budget view."
  (let* ((loop (efrit-loop-make "id" temporary-file-directory))
         (budget `( :total 100000 :prompt_limit 70000 :remaining ,left
                    :available_for_tools 30000 :epoch 1 :turn 2 :band "ample"
                    :tiers (:tool_results (:used ,used :limit 40000)
                            :response (:used 0 :limit 30000)))))
    (setf (efrit-loop-budget loop) budget)
    (let ((header (efrit-show-gauge loop))
          (view (efrit-budget-bars budget)))
      (cl-flet ((shown (text regexp)
                  (should (string-match regexp text))
                  (cons (replace-regexp-in-string " */ *" "/" (match-string 1 text))
                        (get-text-property (match-beginning 0) 'face text))))
        (list (shown header "[▓░]+ \\([0-9k]+/[0-9k]+\\)")
              (shown view "[▓░]+ +\\([0-9k]+ / 70k\\)")
              (and (string-match "[^·]*· \\([^ ]+ until it compacts\\|compacts next\\)" header)
                   (match-string 1 header))
              (let ((case-fold-search t))
                (and (string-match "^\\([^ ]+ until it compacts\\|compacts next\\)" view)
                     (downcase (match-string 1 view)))))))))

(ert-deftest efrit-view-header-and-budget-view-agree-on-how-full-the-prompt-is ()
  (pcase-dolist (`(,used ,left ,figures ,face ,words)
                 '((10000 60000 "10k/70k" efrit-band-ample "60k until it compacts")
                   (67000 3000 "67k/70k" efrit-band-low "3k until it compacts")
                   (71000 0 "71k/70k" efrit-band-critical "compacts next")))
    (should (equal (list (cons figures face) (cons figures face) words words)
                   (efrit-view-tests--fill used left)))))

(ert-deftest efrit-view-menu-is-headed-by-the-project-and-its-budget ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (should (string-match-p "efrit-project-.*k/70k · [0-9]+k until it compacts"
                            (efrit-menu--heading)))))

(provide 'view-tests)
;;; view-tests.el ends here
