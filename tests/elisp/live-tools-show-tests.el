;;; live-tools-show-tests.el --- What the model shows  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)
(require 'diff-mode)

(defun live-show-tests--highlighted ()
  "Return the text that is highlighted in this buffer."
  (mapconcat (lambda (overlay)
               (buffer-substring-no-properties (overlay-start overlay) (overlay-end overlay)))
             (seq-filter (lambda (overlay) (eq (overlay-get overlay 'face) 'efrit-shown))
                         (save-restriction (widen) (overlays-in (point-min) (point-max))))
             "|"))

(defmacro live-show-tests--watching (&rest body)
  "Run BODY; check that the selected window and its content do not change."
  `(let ((window (selected-window))
         (shown (window-buffer)))
     (unwind-protect
         (progn ,@body
                (should (eq window (selected-window)))
                (should (eq shown (window-buffer))))
       (delete-other-windows window))))

;;; In a session

(ert-deftest efrit-live-show-a-model-shows-a-file-and-a-stored-result ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
tool = [
  { name = \"show_in_emacs\", input = { path = \"a.txt\", start_line = 2 } },
  { name = \"show_in_emacs\", input = { handle = \"r1\", title = \"a result\" } },
  { name = \"show_in_emacs\", input = { handle = \"r99\" } },
]
[[reply]]
expect_contains = \"a.txt is shown at line 2.\"
text = \"Done.\"
" loop
    (live-show-tests--watching
     (efrit-test-finish loop "Show it.")
     (with-current-buffer (find-buffer-visiting "a.txt")
       (should (equal "two\n" (live-show-tests--highlighted)))
       (kill-buffer))
     (with-current-buffer "*efrit: a result*"
       (live-test-has (buffer-string) "1\tone\n2\ttwo")
       (kill-buffer))
     (live-test-has (efrit-test-sent-text)
                    "The text is shown in *efrit: a result* (text-mode)." "r99"))))

;;; Files

(ert-deftest efrit-live-show-lines-are-highlighted-until-others-are ()
  (live-test-in '(("a.txt" . "one\ntwo\nthree\nfour\n"))
    (live-show-tests--watching
     (should (equal "a.txt is shown, lines 2 to 3."
                    (live-test-text "show_in_emacs" :path "a.txt" :start_line 2 :end_line 3)))
     (with-current-buffer (get-file-buffer "a.txt")
       (should (equal "two\nthree\n" (live-show-tests--highlighted)))
       (should (= 5 (window-point (get-buffer-window))))
       (should-not (buffer-modified-p))
       (should (equal "a.txt is shown at line 4."
                      (live-test-text "show_in_emacs" :path "a.txt" :start_line 4)))
       (should (equal "four\n" (live-show-tests--highlighted)))
       (should (equal "a.txt is shown." (live-test-text "show_in_emacs" :path "a.txt")))
       (should (equal "" (live-show-tests--highlighted)))))))

(ert-deftest efrit-live-show-point-stays-where-the-person-is-typing ()
  (live-test-in '(("a.txt" . "one\ntwo\nthree\n"))
    (save-window-excursion
      (switch-to-buffer (find-file-noselect "a.txt"))
      (goto-char (point-max))
      (live-show-tests--watching
       (live-test-text "show_in_emacs" :path "a.txt" :start_line 1)
       (should (= (point-max) (window-point)))
       (should (equal "one\n" (live-show-tests--highlighted)))))))

(ert-deftest efrit-live-show-a-narrowed-buffer-is-widened-only-if-necessary ()
  (live-test-in '(("a.txt" . "one\ntwo\nthree\nfour\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (narrow-to-region 5 15)
      (live-test-text "show_in_emacs" :path "a.txt" :start_line 2)
      (should (buffer-narrowed-p))
      (live-test-text "show_in_emacs" :path "a.txt" :start_line 4)
      (should-not (buffer-narrowed-p)))))

(ert-deftest efrit-live-show-missing-files-and-lines-are-errors ()
  (live-test-in '(("a.txt" . "one\n") (".env" . "KEY=hunter2\n"))
    (live-test-has (live-test-refused "show_in_emacs" :path "a.txt" :start_line 2)
                   "a.txt has 1 lines, but no line 2")
    (live-test-has (live-test-refused "show_in_emacs" :path "a.txt" :start_line 0) "Invalid line range 0-")
    (live-test-has (live-test-refused "show_in_emacs" :path "../a.txt") "outside")
    (live-test-has (live-test-refused "show_in_emacs" :path ".env") "secrets")
    (live-test-has (live-test-refused "show_in_emacs") "Give one of")
    (live-test-has (live-test-refused "show_in_emacs" :path "a.txt" :text "x") "Give one of")))

;;; Texts

(ert-deftest efrit-live-show-a-diff-comes-up-as-a-diff ()
  (live-test-in '(("a.txt" . "one\n"))
    (live-show-tests--watching
     (live-test-has (live-test-text "show_in_emacs" :title "the change"
                                    :text "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n")
                    "shown in *efrit: the change* (diff-mode)")
     (with-current-buffer "*efrit: the change*"
       (should (derived-mode-p 'diff-mode))
       (should buffer-read-only)
       (should (get-buffer-window))
       (goto-char (point-max))
       (forward-line -1)
       (should (equal (list (expand-file-name "a.txt") 1)
                      (pcase-let ((`(,buffer ,_ ,position . ,_)
                                   (diff-find-source-location)))
                        (with-current-buffer buffer
                          (list buffer-file-name
                                (line-number-at-pos (car position)))))))))))

(ert-deftest efrit-live-show-a-list-of-places-can-be-stepped-through ()
  (live-test-in '(("a.txt" . "one\ntwo\n"))
    (live-show-tests--watching
     (live-test-text "show_in_emacs" :text "a.txt:2: look here\n" :mode "grep-mode")
     (save-window-excursion
       (with-current-buffer "*efrit: shown*"
         (next-error 1 t))
       (with-current-buffer (window-buffer)
         (should (equal (expand-file-name "a.txt" live-test-root) buffer-file-name))
         (should (= 2 (line-number-at-pos (window-point)))))))))

(ert-deftest efrit-live-show-a-text-runs-nothing ()
  (live-test-in nil
    (defvar live-show-tests-ran)
    (let* ((live-show-tests-ran nil)
           (ran (lambda () (setq live-show-tests-ran t)))
           (enable-local-variables :all)
           (enable-local-eval t)
           (emacs-lisp-mode-hook (list ran))
           (after-change-major-mode-hook (list ran)))
      (live-test-text "show_in_emacs" :mode "emacs-lisp-mode"
                      :text ";; -*- eval: (setq live-show-tests-ran t) -*-\n(car)\n")
      (with-current-buffer "*efrit: shown*"
        (should (derived-mode-p 'emacs-lisp-mode)))
      (should-not live-show-tests-ran))))

(ert-deftest efrit-live-show-only-major-modes-for-files-are-taken ()
  (live-test-in nil
    (dolist (mode '("server-mode" "kill-emacs" "normal-mode" "image-mode" "doc-view-mode-maybe"
                    "tar-mode" "archive-mode" "ses-mode"))
      (live-test-has (live-test-refused "show_in_emacs" :text "x" :mode mode)
                     "is not a major mode for text"))
    (dolist (mode '("no-such-mode" ""))
      (live-test-has (live-test-refused "show_in_emacs" :text "x" :mode mode)
                     "Unknown mode"))))

(provide 'live-tools-show-tests)
;;; live-tools-show-tests.el ends here
