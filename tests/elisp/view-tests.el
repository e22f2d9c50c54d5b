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
    (let ((efrit-view-usage t))
      (efrit-viewing-type "What is README.md?")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-shows "$0."))
    (efrit-viewing-in-order "You\nWhat is README.md?" "▸ Thinking  25 characters"
                            "I will read it." "• Read README.md" " tokens  r1\n"
                            "turn 1:" "% from cache" "It is a sample."
                            "✓ The file was read." "● ready")
    (should (string-match-p
             "[0-9]+k/70k · [0-9]+k until it compacts · [$]0\\.[0-9]+ · claude-sonnet-5-5"
             (efrit-show-header)))
    (should (string-empty-p (efrit-reply-box-text)))))

(ert-deftest efrit-view-stays-in-its-mode-and-works-on ()
  (efrit-viewing-with-view efrit-viewing-short
    (should-error (normal-mode) :type 'user-error)
    (should-error (text-mode) :type 'user-error)
    (should-error (efrit-session-view-mode) :type 'user-error)
    (efrit-viewing-type "What is README.md?")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "You\nWhat is README.md?" "It is a sample." "● ready")))

(ert-deftest efrit-view-opens-and-folds-a-tool-and-a-thought ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (should-not (string-search "A line." (efrit-viewing-view-text)))
    (let ((folded (efrit-viewing-view-text)))
      (efrit-viewing-to "Read README.md")
      (efrit-viewing-press "TAB")
      (efrit-viewing-in-order "• Read README.md" "path: README.md" "A line." "It is a sample.")
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
    (efrit-viewing-to "Read README.md")
    (let ((place (point)))
      (should (get-text-property place 'follow-link))
      (should (eq (key-binding [mouse-2]) 'efrit-session-view-click))
      (goto-char (point-max))
      (efrit-session-view-click `(mouse-2 (,(selected-window) ,place (0 . 0) 0 nil ,place)))
      (efrit-viewing-in-order "• Read README.md" "A line." "It is a sample."))))

(ert-deftest efrit-view-opens-the-stored-result-in-a-buffer-of-its-own ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-viewing-type "What is README.md?")
    (efrit-test-rest view-loop)
    (efrit-viewing-to "Read README.md")
    (let ((efrit-result-most-characters 12))
      (efrit-viewing-press "o"))
    (let ((shown (get-buffer (format "*efrit result: %s r1*" (efrit-loop-id view-loop)))))
      (with-current-buffer shown
        (efrit-viewing-shows "characters more are stored")
        (should buffer-read-only)
        (should (string-search "r1  • Read README.md" header-line-format)))
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
      (should (equal '(message thinking text use text use note)
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
                            "• Read README.md" "It is a sample." "● ready")))

;;; Streaming

(ert-deftest efrit-view-shows-thinking-while-it-streams ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((block (efrit-block-create :type "thinking"))
          (text (efrit-block-create :type "text")))
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
    (efrit-viewing-in-order "What is README.md?" "I will read it." "• Read README.md"
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
    (efrit-viewing-in-order "First." "I look." "• Read README.md" "You\nAnd second." "Both are done.")))

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
    (should-not (efrit-attach-complete))))

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

(defun efrit-view-tests--gauged (used left fill)
  "Return a loop whose prompt has USED tokens and LEFT to go; FILL is its fill."
  (let ((loop (efrit-loop-make "id" temporary-file-directory)))
    (setf (efrit-loop-budget loop)
          `( :total 100000 :used ,used :prompt_limit 70000 :fill ,fill :remaining ,left
             :available_for_tools 30000 :epoch 1 :turn 2 :band "ample"
             :tiers (:tool_results (:used 53000 :limit 40000)
                     :history (:used 3000 :limit 12000)
                     :response (:used 0 :limit 30000)))
          (efrit-loop-usage loop) '(:dollars 0.12)
          (efrit-loop-turn loop) 7)
    loop))

(ert-deftest efrit-view-gauge-leaves-out-what-a-narrow-window-has-no-room-for ()
  "The turn, the words, the bar and the model, in this order; figures and cost stay."
  (let ((loop (efrit-view-tests--gauged 15000 55000 "ample")))
    (should (equal (concat "▕██▏       ▏ 15k/70k · 55k until it compacts · $0.12"
                           " · claude-sonnet-5-5 · turn 7")
                   (substring-no-properties (efrit-show-gauge loop))))
    (pcase-dolist (`(,columns ,shown)
                   '((80 "▕██▏       ▏ 15k/70k · 55k until it compacts · $0.12 · claude-sonnet-5-5")
                     (60 "▕██▏       ▏ 15k/70k · 55k left · $0.12 · claude-sonnet-5-5")
                     (50 "15k/70k · 55k left · $0.12 · claude-sonnet-5-5")
                     (40 "▕██▏       ▏ 15k/70k · 55k left · $0.12")
                     (30 "15k/70k · 55k left · $0.12")
                     (20 "15k/70k · $0.12")
                     (10 "15k/70k")))
      (should (equal shown (substring-no-properties (efrit-show-gauge loop columns))))
      (should (>= columns (string-width shown))))))

(ert-deftest efrit-view-gauge-names-what-is-not-known ()
  "Neither a budget nor a price is made up."
  (let ((loop (efrit-loop-make "id" temporary-file-directory)))
    (should (string-search "?/? · budget not known yet · claude" (efrit-show-gauge loop)))
    (setf (efrit-loop-usage loop) '(:dollars nil :input_tokens 5))
    (should (string-search " · cost unknown · claude" (efrit-show-gauge loop)))))

(ert-deftest efrit-view-bars-fill-smoothly-and-only-when-all-is-used ()
  "A little is seen, and less than the whole is not all of the bar."
  (pcase-dolist (`(,used ,limit ,shown)
                 '((0 100 "▕    ▏") (1 1000 "▕▏   ▏") (50 100 "▕██  ▏") (58 100 "▕██▍ ▏")
                   (999 1000 "▕███▉▏") (100 100 "▕████▏") (150 100 "▕████▏") (5 0 "▕    ▏")))
    (should (equal shown (substring-no-properties (efrit-show-bar used limit 6 'default))))))

(ert-deftest efrit-view-bars-are-images-where-a-frame-shows-them ()
  "The image is as wide as the blocks, has no colour of its own, and is made once."
  (cl-letf (((symbol-function 'display-graphic-p) (lambda (&optional _) t))
            ((symbol-function 'frame-char-width) (lambda (&optional _) 9))
            ((symbol-function 'frame-char-height) (lambda (&optional _) 20)))
    (skip-unless (image-type-available-p 'svg))
    (let* ((bar (efrit-show-bar 50 100 12 'efrit-gauge-low))
           (image (get-text-property 0 'display bar)))
      (should (equal "▕█████     ▏" (substring-no-properties bar)))
      (should (eq 'svg (image-property image :type)))
      (should (string-search "width=\"108\"" (image-property image :data)))
      (should (string-search "<rect width=\"54\"" (image-property image :data)))
      (should-not (string-match-p "#[0-9a-f]\\{3\\}" (image-property image :data)))
      (should (eq image (get-text-property 0 'display (efrit-show-bar 50 100 12 'default)))))))

;;; One rule

(defun efrit-view-tests--figures (text)
  "Return the figures of the prompt in TEXT, their face, and what is left."
  (let ((case-fold-search t))
    (should (string-match "\\([0-9]+k\\)\\(?: / \\|/\\)70k" text))
    (list (match-string 1 text)
          (get-text-property (string-match "▕[█▏▎▍▌▋▊▉ ]*▏ +\\([0-9]+k\\)\\(?: / \\|/\\)70k" text)
                             'face text)
          (and (string-match "[0-9]+k until it compacts\\|compacts next" text)
               (downcase (match-string 0 text))))))

(ert-deftest efrit-view-header-and-budget-view-agree-on-how-full-the-prompt-is ()
  (pcase-dolist (`(,used ,left ,fill ,figures)
                 '((10000 60000 "ample" ("10k" efrit-gauge-ample "60k until it compacts"))
                   (67000 3000 "low" ("67k" efrit-gauge-low "3k until it compacts"))
                   (71000 0 "full" ("71k" efrit-gauge-full "compacts next"))))
    (let ((loop (efrit-view-tests--gauged used left fill)))
      (should (equal figures (efrit-view-tests--figures (efrit-show-gauge loop))))
      (should (equal figures (efrit-view-tests--figures
                              (efrit-budget-bars (efrit-loop-budget loop))))))))

(ert-deftest efrit-view-only-the-whole-prompt-has-the-colour-of-the-gauge ()
  "A tier that uses what others leave shows how much more, and alarms nobody."
  (let ((lines (efrit-budget-bars-tiers
                (efrit-loop-budget (efrit-view-tests--gauged 67000 3000 "low")))))
    (should (string-match-p "tool results .* 53k / 40k +\\+13k\\'" (car lines)))
    (dolist (line (butlast lines))
      (should (eq 'efrit-gauge-part (get-text-property (string-search "▕" line) 'face line))))))

(provide 'view-tests)
;;; view-tests.el ends here
