;;; attach-tests.el --- Files that a message attaches  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'viewing)
(require 'efrit-do)
(require 'efrit-sessions)

(defconst attach-tests--two "
[[reply]]
text = \"I see.\"
[[reply]]
text = \"I see more.\"
"
  "Two replies.")

(defun attach-tests--sent ()
  "Return the content of the latest message of the person that was sent."
  (let* ((body (gethash "body" (car (last (efrit-test-sent)))))
         (messages (append (gethash "messages" body) nil)))
    (append (gethash "content" (seq-find (lambda (message)
                                           (equal "user" (gethash "role" message)))
                                         (reverse messages)))
            nil)))

(defun attach-tests--labels ()
  "Return what is shown behind the names in the reply box, in order."
  (mapcar (lambda (overlay)
            (substring-no-properties (overlay-get overlay 'after-string)))
          (sort (seq-filter (lambda (overlay) (overlay-get overlay 'efrit-attached))
                            (overlays-in efrit-transcript-box (point-max)))
                (lambda (one other) (< (overlay-start one) (overlay-start other))))))

(defun attach-tests--show (&rest labels)
  "Wait until LABELS, regular expressions, are what is shown behind the names."
  (efrit-attach-show)
  (ert-info ((format "labels: %S" (attach-tests--labels)))
    (should (efrit-test-wait-until
             (lambda ()
               (let ((shown (attach-tests--labels)))
                 (and (= (length labels) (length shown))
                      (cl-every #'string-match-p labels shown))))))))

;;; Names

(ert-deftest efrit-attach-finds-the-names-that-are-files-of-the-project ()
  (efrit-test-with-project '(("a.txt" . "") ("src/b.el" . "") ("my notes.txt" . "") ("c" . ""))
    (dolist (case '(("@a.txt" "a.txt") ("see (@src/b.el), then @a.txt." "src/b.el" "a.txt")
                    ("read @\"my notes.txt\"!" "my notes.txt") ("@c" "c") ("one\n@c\ntwo" "c")
                    ("me@a.txt" ) ("@gone.txt") ("@src") ("@ a.txt") ("@") ("@\"\"")
                    ("@./a.txt" "a.txt") ("@src/../a.txt" "a.txt")))
      (ert-info ((car case))
        (should (equal (cdr case)
                       (mapcar #'caddr (efrit-attach-mentions (car case) efrit-test-project))))))
    (should (equal '((4 10 "a.txt")) (efrit-attach-mentions "see @a.txt." efrit-test-project)))))

(ert-deftest efrit-attach-a-name-outside-of-the-project-is-its-whole-name ()
  (efrit-test-with-project nil
    (let ((outside (make-temp-file "efrit-outside-")))
      (unwind-protect
          (should (equal (list outside)
                         (mapcar #'caddr (efrit-attach-mentions (concat "@" outside)
                                                                efrit-test-project))))
        (delete-file outside)))))

;;; In the reply box

(ert-deftest efrit-attach-sends-the-file-and-shows-it-in-the-transcript ()
  (efrit-viewing-with-view attach-tests--two
    (efrit-viewing-type "What is in @README.md?")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "You\nWhat is in @README.md?"
                            "▸ Attached file README.md, 3 lines, ~" " tokens\n" "I see.")
    (should-not (string-search "A line." (efrit-viewing-view-text)))
    (let ((texts (mapcar (lambda (block) (gethash "text" block)) (attach-tests--sent))))
      (should (string-match-p "\\`\\[Attached file README\\.md, 3 lines, ~[0-9]+ tokens:]\n\
1\t# Sample\n2\t\n3\tA line\\.\\'"
                              (nth (- (length texts) 2) texts)))
      (should (equal "What is in @README.md?" (car (last texts)))))
    (efrit-viewing-to "▸ Attached")
    (efrit-viewing-press "RET")
    (efrit-viewing-in-order "▾ Attached file README.md" "3\tA line." "I see.")))

(ert-deftest efrit-attach-a-file-counts-as-read-for-an-edit ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"edit_file\", input = { path = \"README.md\", old_text = \"A line.\", new_text = \"Two.\" } }]
[[reply]]
text = \"Done.\"
"
    (efrit-test-with-rules view-loop '((t t allow))
      (efrit-viewing-type "Change @README.md")
      (should (eq 'idle (efrit-test-rest view-loop)))
      (with-temp-buffer
        (insert-file-contents (expand-file-name "README.md" efrit-test-project))
        (should (string-search "Two." (buffer-string)))))))

(ert-deftest efrit-attach-shows-in-the-reply-box-what-will-go-along ()
  (efrit-viewing-with-view attach-tests--two
    (efrit-test-write "long.txt" (mapconcat (lambda (n) (format "line %d of a long file\n" n))
                                            (number-sequence 1 3000) ""))
    (efrit-test-write ".env" "KEY=1\n")
    (efrit-test-write "bin" (string 0 1 2 3 0 0 0 0))
    (goto-char (point-max))
    (insert "Compare @README.md with @long.txt, @gone.txt, @.env and @bin.")
    (attach-tests--show "\\` (3 lines, ~[0-9,]+ tokens)\\'" "\\` (lines 1-[0-9,]+ of 3,000, ~[0-9,]+ tokens)\\'"
                        "may hold secrets: you are asked" "not attached: bin: it holds no text")
    (let ((overlay (car (overlays-in (+ efrit-transcript-box 9) (+ efrit-transcript-box 10)))))
      (should (eq 'efrit-attached (overlay-get overlay 'face)))
      (should (equal "@README.md" (buffer-substring (overlay-start overlay)
                                                    (overlay-end overlay)))))
    (efrit-reply-box-set "Only @README.md")
    (attach-tests--show "3 lines")
    (efrit-reply-box-set "Nothing")
    (attach-tests--show)))

(ert-deftest efrit-attach-follows-the-text-when-emacs-is-idle ()
  (efrit-viewing-with-view attach-tests--two
    (goto-char (point-max))
    (insert "See @README.md")
    (should (timerp efrit-attach--timer))
    (timer-event-handler efrit-attach--timer)
    (should (efrit-test-wait-until
             (lambda () (string-match-p "3 lines" (or (car (attach-tests--labels)) "")))))))

(ert-deftest efrit-attach-a-long-file-goes-as-its-beginning-and-says-how-to-read-on ()
  (efrit-viewing-with-view attach-tests--two
    (efrit-test-write "long.txt" (mapconcat (lambda (n) (format "line %d of a long file\n" n))
                                            (number-sequence 1 3000) ""))
    (efrit-viewing-type "Shorten @long.txt")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "▸ Attached file long.txt, lines 1-" " of 3,000, ~")
    (with-current-buffer "*Messages*"
      (should (string-match-p "long\\.txt is attached as its beginning, lines 1-[0-9,]+ of 3,000; \
the model can read on" (buffer-string))))
    (should (string-match-p "\\[This is the beginning of long\\.txt; read_file with start_line \
[0-9]+ reads on\\.]\\'"
                            (gethash "text" (car (last (attach-tests--sent) 2)))))
    (let ((tier (plist-get (plist-get (efrit-loop-budget view-loop) :tiers) :user_message)))
      (should (<= (plist-get tier :used) (plist-get tier :limit))))))

(ert-deftest efrit-attach-a-file-outside-of-the-project-is-refused-and-the-message-kept ()
  (efrit-viewing-with-view attach-tests--two
    (let ((outside (make-temp-file "efrit-outside-" nil nil "secret")))
      (unwind-protect
          (let ((err (should-error (efrit-viewing-type (concat "Read @" outside))
                                   :type 'user-error)))
            (should (string-match-p "outside the project .*; nothing was sent\\'" (cadr err)))
            (should (equal (concat "Read @" outside) (efrit-reply-box-text)))
            (should-not (efrit-loop-queue view-loop)))
        (delete-file outside)))))

(ert-deftest efrit-attach-asks-before-a-file-that-may-hold-secrets-goes-along ()
  (efrit-viewing-with-view attach-tests--two
    (efrit-test-write ".env" "KEY=1\n")
    (let ((asked nil)
          (answer nil)
          (noninteractive nil))
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (question) (push question asked) answer)))
        (should-error (efrit-viewing-type "Read @.env") :type 'user-error)
        (should (equal '("Attach .env? Files of this name usually hold secrets. ") asked))
        (should (equal "Read @.env" (efrit-reply-box-text)))
        (setq answer t)
        (efrit-viewing-press "RET"))
      (setq noninteractive t)
      (should (eq 'idle (efrit-test-rest view-loop)))
      (should (= 2 (length asked)))
      (efrit-viewing-shows "▸ Attached file .env, 1 line")
      (should (string-search "KEY=1" (gethash "text" (car (last (attach-tests--sent) 2))))))))

(ert-deftest efrit-attach-sends-an-image-and-a-resumed-session-names-it ()
  (efrit-viewing-with-view attach-tests--two
    (let ((coding-system-for-write 'binary))
      (write-region (base64-decode-string "\
iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
                    nil (expand-file-name "dot.png" efrit-test-project) nil 'silent))
    (goto-char (point-max))
    (insert "What is @dot.png?")
    (attach-tests--show "\\` (image, ~[0-9,]+ tokens)\\'")
    (efrit-viewing-press "RET")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "▸ Attached image dot.png, PNG 1x1, ~" "I see.")
    (should (equal '("image" "text")
                   (mapcar (lambda (block) (gethash "type" block))
                           (last (attach-tests--sent) 2))))
    (let ((id (efrit-loop-id view-loop)))
      (efrit-do-forget view-loop)
      (efrit-sidecar-stop)
      (let ((again (efrit-do-resume-loop id efrit-test-project)))
        (with-current-buffer (efrit-session-view-buffer again)
          (efrit-viewing-shows "▸ Attached image dot.png, PNG 1x1, ~")
          (efrit-viewing-in-order "You\nWhat is @dot.png?" "▸ Attached image dot.png" "I see.")
          (kill-buffer))))))

(ert-deftest efrit-attach-a-dry-run-shows-what-goes-along ()
  (efrit-viewing-with-view attach-tests--two
    (let ((buffer (efrit-preview--buffer view-loop)))
      (unwind-protect
          (progn
            (efrit-do-submit view-loop "Read @README.md" nil t)
            (with-current-buffer buffer
              (efrit-viewing-shows "[Attached file README.md, 3 lines")
              (efrit-viewing-in-order "Your message:" "3\tA line." "Read @README.md")))
        (kill-buffer buffer)))))

(ert-deftest efrit-attach-completes-a-name-with-blanks-in-quotes ()
  (efrit-viewing-with-view attach-tests--two
    (efrit-test-write "my notes.txt" "x\n")
    (goto-char (point-max))
    (insert "Look at @my")
    (efrit-viewing-press "TAB")
    (should (equal "Look at @\"my notes.txt\"" (efrit-reply-box-text)))
    (should (equal '("my notes.txt")
                   (mapcar #'caddr (efrit-attach-mentions (efrit-reply-box-text)
                                                          efrit-test-project))))))

;;; In an export

(ert-deftest efrit-attach-an-export-quotes-the-file-and-leaves-the-image-out ()
  (let ((entry '(:kind "request" :turn 1 :content
                       [(:type "text" :text "[Attached file a.md, 1 line, ~9 tokens:]\n1\t# Title")
                        (:type "text" :text "[Attached image a.png, PNG 1x1, ~9 tokens:]")
                        (:type "image" :source (:type "base64" :data "AAAA"))
                        (:type "text" :text "Compare @a.md with @a.png")])))
    (dolist (format '(markdown org))
      (let ((exported (efrit-export-entry entry format)))
        (should (string-search "1\t# Title" exported))
        (should (string-search "The image itself is not exported." exported))
        (should (string-search "Compare @a.md with @a.png" exported))
        (should-not (string-search "AAAA" exported))))
    (should (string-match-p "```text\n\\[Attached file a\\.md"
                            (efrit-export-entry entry 'markdown)))))

;;; In the minibuffer

(ert-deftest efrit-attach-completes-and-shows-files-in-the-minibuffer-of-efrit-do ()
  (efrit-viewing-with-view attach-tests--two
    (let ((shown nil)
          (task nil))
      (with-temp-buffer
        (setq default-directory efrit-test-project)
        (save-window-excursion
          (set-window-buffer nil (current-buffer))
          (cl-letf (((symbol-function 'attach-tests--look)
                     (lambda ()
                       (interactive)
                       (efrit-attach-show)
                       (setq shown (efrit-test-wait-until
                                    (lambda ()
                                      (seq-find
                                       (lambda (label)
                                         (and label (string-match-p "3 lines" label)))
                                       (mapcar (lambda (overlay)
                                                 (overlay-get overlay 'after-string))
                                               (overlays-in (point-min) (point-max))))))))))
            (minibuffer-with-setup-hook
                (lambda ()
                  (efrit-attach-watch-minibuffer)
                  (local-set-key (kbd "<f5>") 'attach-tests--look))
              (let ((executing-kbd-macro nil))
                (global-set-key (kbd "<f6>") (lambda ()
                                               (interactive)
                                               (setq task (read-string "Do: "))))
                (execute-kbd-macro (kbd "<f6> Read SPC @READ TAB <f5> RET"))
                (global-unset-key (kbd "<f6>")))))))
      (should (equal "Read @README.md" task))
      (should shown))))

(provide 'attach-tests)
;;; attach-tests.el ends here
