;;; live-tools-docs-tests.el --- Emacs's documentation  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)
(require 'info)

(ert-deftest efrit-live-docs-a-model-looks-something-up ()
  (live-test-model-uses "elisp_docs" "{ name = \"car\" }" "Return the car of LIST."))

(ert-deftest efrit-live-docs-of-a-function-has-its-arguments-and-its-keys ()
  (live-test-in nil
    (live-test-has (live-test-text "elisp_docs" :name "find-file")
                   "find-file is an interactive" "C-x C-f" "(find-file FILENAME &optional WILDCARDS)"
                   "Edit file FILENAME.")
    (live-test-has (live-test-text "elisp_docs" :name "pcase" :kind "symbol") "Lisp macro")))

(ert-deftest efrit-live-docs-looking-up-loads-nothing ()
  (live-test-in nil
    (should-not (featurep 'tetris))
    (live-test-has (live-test-text "elisp_docs" :name "tetris") "tetris" "autoload")
    (should-not (featurep 'tetris))))

(defvar live-docs-tests-password "hunter2" "Where it is.")
(defvar live-docs-tests-choice 'on "Which it is.")

(ert-deftest efrit-live-docs-of-a-variable-shows-no-value-that-could-be-secret ()
  (live-test-in nil
    (let ((said (live-test-text "elisp_docs" :name "live-docs-tests-password")))
      (live-test-has said "is a variable" "a string, not shown" "Where it is.")
      (live-test-lacks said "hunter2"))
    (live-test-has (live-test-text "elisp_docs" :name "live-docs-tests-choice") "Value: on")
    (live-test-has (live-test-text "elisp_docs" :name "fill-column")
                   "fill-column is an option" "Value: 70" "Default: 70"
                   "local to a buffer")
    (live-test-has (live-test-text "elisp_docs" :name "efrit-code-seconds") "Type: number")))

(ert-deftest efrit-live-docs-of-a-face-and-of-a-symbol-with-two-meanings ()
  (live-test-in nil
    (live-test-has (live-test-text "elisp_docs" :name "bold") "bold is a face.")
    (live-test-has (live-test-text "elisp_docs" :name "transient-mark-mode")
                   "transient-mark-mode is an" "transient-mark-mode is an option")))

(ert-deftest efrit-live-docs-of-a-key-name-its-command ()
  (live-test-in nil
    (live-test-has (live-test-text "elisp_docs" :name "C-x C-f" :kind "key")
                   "C-x C-f runs find-file in" "Edit file FILENAME.")
    (live-test-has (live-test-text "elisp_docs" :name "C-x 4" :kind "key")
                   "C-x 4 is a prefix." "C-x 4 b  switch-to-buffer-other-window")
    (live-test-has (live-test-text "elisp_docs" :name "C-c C-z C-z" :kind "key") "runs nothing")
    (live-test-has (live-test-refused "elisp_docs" :name "" :kind "key") "Give a key")))

(ert-deftest efrit-live-docs-names-are-found-by-words-in-any-order ()
  (live-test-in nil
    (let ((said (live-test-text "elisp_docs" :name "file find-name buffer" :kind "apropos")))
      (live-test-has said "0 names with"))
    (live-test-has (live-test-text "elisp_docs" :name "noselect file" :kind "apropos")
                   "find-file-noselect (function): Read file FILENAME into a buffer")
    (live-test-has (live-test-refused "elisp_docs" :name " " :kind "apropos") "Give words")))

(ert-deftest efrit-live-docs-a-node-of-a-manual-is-shown-whole ()
  (live-test-in '(("live.info" . "This is live.info.

\^_
File: live.info,  Node: Top,  Next: Cats,  Up: (dir)

The top.

* Menu:

* Cats::  About cats.

\^_
File: live.info,  Node: Cats,  Prev: Top,  Up: Top

Cats are größer than mice.
"))
    (let ((Info-directory-list (list live-test-root))
          (before (buffer-list)))
      (live-test-has (live-test-text "elisp_docs" :name "(live)Cats" :kind "manual")
                     "Node: Cats" "Cats are größer than mice.")
      (live-test-has (live-test-text "elisp_docs" :name "(live)" :kind "manual") "The top.")
      (live-test-has (live-test-refused "elisp_docs" :name "(live)Dogs" :kind "manual")
                     "(live)Dogs is not installed")
      (live-test-has (live-test-refused "elisp_docs" :name "(nowhere)Top" :kind "manual")
                     "(nowhere)Top is not installed")
      (should-not (seq-filter (lambda (buffer) (not (string-prefix-p " " (buffer-name buffer))))
                              (seq-difference (buffer-list) before))))))

(ert-deftest efrit-live-docs-no-file-is-read-as-a-manual ()
  (live-test-in '(("secret" . "hunter2\n"))
    (dolist (name (list (format "(%ssecret)Top" live-test-root) "(./secret)Top" "(../x)Top"
                        "(*History*)Top"))
      (live-test-lacks (live-test-refused "elisp_docs" :name name :kind "manual") "hunter2"))))

(ert-deftest efrit-live-docs-unknown-names-are-errors ()
  (live-test-in nil
    (live-test-has (live-test-refused "elisp_docs" :name "live-docs-no-such") "apropos finds names")
    (live-test-has (live-test-refused "elisp_docs" :name "car" :kind "book") "not book")))

(ert-deftest efrit-live-docs-several-symbols-are-looked-up-at-once ()
  (live-test-in nil
    (live-test-has (live-test-text "elisp_docs" :name "car, cdr efrit-none")
                   "Return the car of LIST." "Return the cdr of LIST."
                   "No symbol efrit-none in this Emacs")))

(ert-deftest efrit-live-ask-an-empty-question-is-not-asked ()
  (live-test-in nil
    (live-test-has (live-test-refused "ask_user" :question " ")
                   "The question is empty; give its text")))

(provide 'live-tools-docs-tests)
;;; live-tools-docs-tests.el ends here
