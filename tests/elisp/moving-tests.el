;;; moving-tests.el --- Moving about a session's buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Exchanges, their folds and their index; searching in what is folded; visiting
;; files; names of buffers, menus, evil.  That windows stay at the bottom is seen in a terminal:
;; tests/emacs/test_moving.py.

;;; Code:

(require 'viewing)
(require 'imenu)
(require 'efrit-view)

(defconst efrit-moving-tests--script "
[[reply]]
text = \"I will read it.\"
tool = [{ name = \"read_file\", input = { path = \"README.md\", start_line = 3 } }]
[[reply]]
text = \"It is a sample.\"
[[reply]]
text = \"The answer to the second.\\n\\nYou\\nare welcome.\"
"
  "A model that answers twice.")

(defmacro efrit-moving-tests--with-two (&rest body)
  "Run BODY in the buffer of a session of two exchanges."
  (declare (indent 0) (debug t))
  `(efrit-viewing-with-view efrit-moving-tests--script
     (dolist (message '("What is README.md?\nSay it briefly." "And the second?"))
       (efrit-viewing-type message)
       (should (eq (efrit-test-rest view-loop) 'idle)))
     ,@body))

(defun efrit-moving-tests--visible ()
  "Return the text of this buffer that is not hidden."
  (let ((place (point-min))
        (text ""))
    (while (< place (point-max))
      (let ((next (next-single-char-property-change place 'invisible)))
        (unless (invisible-p place)
          (setq text (concat text (buffer-substring-no-properties place next))))
        (setq place next)))
    text))

(defun efrit-moving-tests--line ()
  "Return the line at point and the next one."
  (buffer-substring-no-properties (line-beginning-position) (line-end-position 2)))

(ert-deftest efrit-moving-by-exchange-goes-to-what-the-person-said ()
  (efrit-moving-tests--with-two
    (goto-char (1- efrit-transcript-box))
    (efrit-viewing-press "p")
    (should (equal "You\nAnd the second?" (efrit-moving-tests--line)))
    (efrit-viewing-press "p")
    (should (equal "You\nWhat is README.md?" (efrit-moving-tests--line)))
    (should-error (efrit-viewing-press "p") :type 'user-error)
    (efrit-viewing-press "n")
    (should (equal "You\nAnd the second?" (efrit-moving-tests--line)))
    (should-error (efrit-viewing-press "n") :type 'user-error)
    (efrit-viewing-to "Read README.md")
    (efrit-viewing-press "p")
    (should (equal "You\nWhat is README.md?" (efrit-moving-tests--line)))))

(ert-deftest efrit-moving-tab-folds-an-exchange-at-its-head ()
  (efrit-moving-tests--with-two
    (let ((whole (efrit-moving-tests--visible)))
      (goto-char (1- efrit-transcript-box))
      (efrit-viewing-press "p")
      (efrit-viewing-press "p")
      (efrit-viewing-press "TAB")
      (should (string-match-p "You\nWhat is README.md\\?\nYou\nAnd the second\\?\n"
                              (efrit-moving-tests--visible)))
      (efrit-viewing-press "n")
      (should (equal "You\nAnd the second?" (efrit-moving-tests--line)))
      (efrit-viewing-press "p")
      (efrit-viewing-press "TAB")
      (should (equal whole (efrit-moving-tests--visible))))))

(ert-deftest efrit-moving-all-exchanges-fold-at-once-and-reply-box-and-state-stay ()
  (efrit-moving-tests--with-two
    (let ((whole (efrit-moving-tests--visible)))
      (efrit-viewing-to "Read README.md")
      (efrit-viewing-press "<backtab>")
      (should (string-match-p
               "You\nWhat is README.md\\?\nYou\nAnd the second\\?\n● ready\n\n.*\n› \\'"
               (efrit-moving-tests--visible)))
      (should-not (invisible-p (point)))
      (efrit-viewing-press "<backtab>")
      (should (equal whole (efrit-moving-tests--visible))))))

(ert-deftest efrit-moving-what-comes-into-a-folded-exchange-is-folded ()
  (efrit-moving-tests--with-two
    (goto-char (1- efrit-transcript-box))
    (efrit-viewing-press "p")
    (efrit-viewing-press "TAB")
    (efrit-view-note "a late note")
    (should-not (string-search "a late note" (efrit-moving-tests--visible)))
    (efrit-view-message (list (list :type "text" :text "A third.")))
    (efrit-view-note "a note for the third")
    (should (string-match-p "You\nAnd the second\\?\nYou\nA third.\n\na note for the third"
                            (efrit-moving-tests--visible)))))

(ert-deftest efrit-moving-imenu-lists-exchanges-and-their-tools ()
  (efrit-moving-tests--with-two
    (let ((index (funcall imenu-create-index-function)))
      (should (equal '("What is README.md?" "And the second?") (mapcar #'car index)))
      (let ((tools (cdar index)))
        (should (equal "The message" (caar tools)))
        (should (string-match-p "Read README.md" (car (cadr tools))))
        (goto-char (point-min))
        (efrit-exchange-toggle-all)
        (imenu (cadr tools))
        (should (string-match-p "Read README.md" (efrit-moving-tests--line)))
        (should-not (invisible-p (point))))
      (imenu (cadr index))
      (should (equal "You\nAnd the second?" (efrit-moving-tests--line))))))

(ert-deftest efrit-moving-outline-takes-no-text-of-the-model-for-a-heading ()
  (efrit-moving-tests--with-two
    (outline-minor-mode)
    (goto-char (point-min))
    (outline-next-heading)
    (should (equal "You\nWhat is README.md?" (efrit-moving-tests--line)))
    (outline-forward-same-level 1)
    (should (equal "You\nAnd the second?" (efrit-moving-tests--line)))
    (outline-hide-subtree)
    (should-not (string-search "are welcome" (efrit-moving-tests--visible)))
    (should (string-match-p "● ready\n\n.*\n› \\'" (efrit-moving-tests--visible)))
    (outline-show-all)
    (should (string-search "are welcome" (efrit-moving-tests--visible)))
    (outline-minor-mode -1)))

;;; Searching

(defun efrit-moving-tests--search (from forward &rest steps)
  "Search from FROM, FORWARD or back, and return the line at the end.
The STEPS are texts to type and commands to call."
  (goto-char from)
  (set-window-buffer nil (current-buffer))
  (let ((isearch-lazy-highlight nil)
        (inhibit-message t))
    (isearch-mode forward nil nil nil)
    (unwind-protect
        (dolist (step steps)
          (if (stringp step)
              (mapc (lambda (letter)
                      (isearch-process-search-string (string letter) (string letter)))
                    step)
            (funcall step)))
      (when isearch-mode
        (isearch-done))))
  (buffer-substring-no-properties (line-beginning-position) (line-end-position)))

(ert-deftest efrit-moving-search-finds-what-is-in-a-folded-result-and-opens-it ()
  (dolist (forward '(t nil))
    (efrit-moving-tests--with-two
      (should-not (string-search "A line." (efrit-viewing-view-text)))
      (should (string-match-p "A line\\." (efrit-moving-tests--search
                                           (if forward (point-min) (point-max)) forward
                                           "A line.")))
      (should (string-search "A line." (efrit-viewing-view-text))))))

(ert-deftest efrit-moving-search-folds-again-what-it-left-behind ()
  (efrit-moving-tests--with-two
    (let ((folded (efrit-viewing-view-text)))
      (should (equal "And the second?"
                     (efrit-moving-tests--search (point-min) t "a"
                                                 (lambda () (isearch-process-search-string
                                                             "nd the s" "nd the s")))))
      (efrit-moving-tests--search (point-max) nil "A line." #'isearch-delete-char
                                  #'isearch-delete-char #'isearch-delete-char
                                  #'isearch-delete-char #'isearch-delete-char
                                  #'isearch-delete-char #'isearch-delete-char)
      (should (= (point) (point-max)))
      (should (equal folded (efrit-viewing-view-text))))))

(ert-deftest efrit-moving-search-that-is-quit-leaves-point-and-folds-as-they-were ()
  (efrit-moving-tests--with-two
    (let ((folded (efrit-viewing-view-text))
          (from (progn (efrit-viewing-to "And the second?") (point))))
      (condition-case nil
          (efrit-moving-tests--search from nil "A line." #'isearch-cancel)
        (quit nil))
      (should (= from (point)))
      (should (equal folded (efrit-viewing-view-text))))))

(ert-deftest efrit-moving-search-sets-the-mark-where-it-began ()
  (efrit-moving-tests--with-two
    (efrit-viewing-to "And the second?")
    (efrit-moving-tests--search (point) nil "A line.")
    (should (string-match-p "A line" (efrit-moving-tests--line)))
    (goto-char (mark t))
    (should (looking-at-p "And the second\\?"))))

(ert-deftest efrit-moving-search-opens-a-folded-exchange ()
  (efrit-moving-tests--with-two
    (efrit-exchange-toggle-all)
    (efrit-moving-tests--search (point-min) t "are welcome")
    (should (string-search "are welcome" (efrit-moving-tests--visible)))
    (should (string-match-p "are welcome" (efrit-moving-tests--line)))))

;;; Visiting

(ert-deftest efrit-moving-return-on-a-tool-visits-its-file-at-the-line ()
  (efrit-moving-tests--with-two
    (save-window-excursion
      (set-window-buffer nil (current-buffer))
      (efrit-viewing-to "Read README.md")
      (efrit-viewing-press "RET")
      (with-current-buffer (window-buffer)
        (should (equal (expand-file-name "README.md" efrit-test-project) buffer-file-name))
        (should (= 3 (line-number-at-pos (window-point))))))))

(ert-deftest efrit-moving-a-tool-names-no-file-of-another-machine ()
  (should (equal "/:/ssh:nowhere.invalid:/x"
                 (efrit-session-view--file "/ssh:nowhere.invalid:/x" "/home/")))
  (should (equal "/proj/a/b" (efrit-session-view--file "a/b" "/proj/")))
  (should (equal "/ssh:host:/etc/x" (efrit-session-view--file "/etc/x" "/ssh:host:/home/"))))

;;; Names

(ert-deftest efrit-moving-a-buffer-is-named-by-its-title ()
  (efrit-moving-tests--with-two
    (should (efrit-test-wait-until
             (lambda () (equal "*efrit: What is README.md?*" (buffer-name)))))
    (let ((first (current-buffer))
          (other (efrit-session-view-buffer (efrit-test-loop)))
          (third (efrit-session-view-buffer (efrit-test-loop))))
      (with-current-buffer other
        (should (string-match-p (format "efrit-project-.* <%s>\\*\\'" (efrit-loop-id efrit-loop-here))
                                (buffer-name)))
        (efrit-loop-rename efrit-loop-here "What is README.md?"))
      (should-not (string-search "<" (buffer-name third)))
      (dolist (buffer (list first other))
        (with-current-buffer buffer
          (should (equal (format "*efrit: What is README.md? <%s>*"
                                 (efrit-loop-id efrit-loop-here))
                         (buffer-name)))))
      (kill-buffer other)
      (should (equal "*efrit: What is README.md?*" (buffer-name first)))
      (kill-buffer third))))

(ert-deftest efrit-moving-equal-titles-in-two-projects-are-told-apart-by-project ()
  (let* ((one (efrit-loop-make "one" "/tmp/blog/"))
         (two (efrit-loop-make "two" "/tmp/shop/"))
         (buffers (mapcar (lambda (loop)
                            (cl-letf (((symbol-function 'efrit-sidecar-request-async) #'ignore))
                              (efrit-session-view-buffer loop)))
                          (list one two))))
    (unwind-protect
        (progn
          (efrit-loop-rename one "Fix\nthe tests")
          (efrit-loop-rename two "Fix\nthe tests")
          (should (equal '("*efrit: Fix the tests <blog>*" "*efrit: Fix the tests <shop>*")
                         (mapcar #'buffer-name buffers))))
      (mapc #'kill-buffer buffers))))

;;; Menus, and other people's keys

(ert-deftest efrit-moving-the-menu-bar-has-the-commands-of-a-session ()
  (efrit-moving-tests--with-two
    (dolist (place (list (point-max) efrit-transcript-begin))
      (goto-char place)
      (should (eq 'efrit-budget (lookup-key (key-binding [menu-bar efrit]) [Budget]))))))

(ert-deftest efrit-moving-the-context-menu-opens-the-item-that-was-clicked ()
  (efrit-moving-tests--with-two
    (set-window-buffer nil (current-buffer))
    (efrit-viewing-to "Read README.md")
    (let* ((click `(mouse-3 (,(selected-window) ,(point) (0 . 0) 0 nil ,(point))))
           (menu (run-hook-wrapped 'context-menu-functions
                                   (lambda (function)
                                     (and (eq function #'efrit-session-view--context-menu)
                                          (funcall function (make-sparse-keymap) click)))))
           (command (lookup-key menu (vector (intern "Open or Fold")))))
      (goto-char (point-max))
      (call-interactively command)
      (efrit-viewing-in-order "Read README.md" "A line."))))

(declare-function evil-mode "evil" (&optional arg))
(declare-function evil-set-initial-state "evil-core" (mode state))
(defvar evil-state)

(ert-deftest efrit-moving-keys-work-in-evil ()
  (dolist (folder (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa*/*"))
    (add-to-list 'load-path folder t))
  (should (require 'evil nil t))
  (unwind-protect
      (progn
        (evil-mode 1)
        (efrit-moving-tests--with-two
          (should (eq evil-state 'emacs))
          (goto-char (1- efrit-transcript-box))
          (dolist (key '("p" "p" "n"))
            (efrit-viewing-press key))
          (should (equal "You\nAnd the second?" (efrit-moving-tests--line)))
          (efrit-viewing-press "i")
          (should (eq 'self-insert-command (key-binding "k"))))
        (with-temp-buffer
          (efrit-result-mode)
          (should (eq evil-state 'emacs)))
        (evil-set-initial-state 'efrit-memory-mode 'normal)
        (with-temp-buffer
          (require 'efrit-sessions)
          (efrit-memory-mode)
          (should (eq evil-state 'normal))))
    (evil-mode -1)))

;;; Bookmarks and desktops

(require 'bookmark)
(require 'desktop)

(ert-deftest efrit-moving-a-bookmark-resumes-the-session-at-the-exchange ()
  (efrit-moving-tests--with-two
    (let ((bookmark-alist nil)
          (bookmark-save-flag nil)
          (id (efrit-loop-id view-loop)))
      (efrit-viewing-to "Read README.md")
      (bookmark-set "mine")
      (kill-buffer)
      (efrit-do-forget view-loop)
      (save-window-excursion
        (bookmark-jump "mine")
        (should (equal id (efrit-loop-id efrit-loop-here)))
        (should (equal "You\nWhat is README.md?" (efrit-moving-tests--line)))
        (efrit-viewing-shows "The answer to the second.")
        (kill-buffer)))))

(ert-deftest efrit-moving-a-desktop-restores-a-buffer-that-resumes-its-session ()
  (efrit-moving-tests--with-two
    (should (efrit-test-wait-until
             (lambda () (equal "*efrit: What is README.md?*" (buffer-name)))))
    (let* ((folder (file-name-as-directory (make-temp-file "efrit-desktop-" t)))
           (desktop-restore-frames nil)
           (desktop-restore-eager t)
           (desktop-file-modtime nil)
           (id (efrit-loop-id view-loop)))
      (unwind-protect
          (save-window-excursion
            (desktop-save folder t)
            (setq desktop-dirname nil)
            (kill-buffer)
            (efrit-do-forget view-loop)
            (let ((noninteractive nil))
              (desktop-read folder))
            (set-buffer "*efrit: What is README.md?*")
            (should (string-search "This session is stored.  RET resumes it."
                                   (efrit-viewing-view-text)))
            (should-not (efrit-loop-of-session id))
            (efrit-viewing-press "RET")
            (should (equal id (efrit-loop-id efrit-loop-here)))
            (should (equal "*efrit: What is README.md?*" (buffer-name)))
            (efrit-viewing-shows "The answer to the second.")
            (kill-buffer))
        (delete-directory folder t)))))

(provide 'moving-tests)
;;; moving-tests.el ends here
