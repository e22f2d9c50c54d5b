;;; live-tools-format-tests.el --- Formatting for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'editing)
(require 'live)
(require 'served)

(defconst live-format-tests--crooked "(defun a ()\n(list\n1\n2))\n"
  "Lisp that is not indented.")

(defconst live-format-tests--straight "(defun a ()\n  (list\n   1\n   2))\n"
  "The same, indented.")

(defun live-format-tests--on-disk (name)
  "Return the text of the file NAME of the project."
  (with-temp-buffer
    (insert-file-contents (expand-file-name name efrit-test-project))
    (buffer-string)))

;;; In a session

(ert-deftest efrit-live-format-a-model-formats-and-undoes-it ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"format_buffer\", input = { path = \"b.el\" } } ]
[[reply]]
expect_contains = \"Formatted b.el by indent-region.\"
tool = [ { name = \"undo_edit\", input = { path = \"b.el\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-write "b.el" live-format-tests--crooked)
    (let ((formatted nil))
      (efrit-loop-observe loop (lambda (&rest _)
                                 (when (equal live-format-tests--straight
                                              (live-format-tests--on-disk "b.el"))
                                   (setq formatted t))))
      (efrit-test-finish loop "Format it.")
      (should formatted)
      (should (equal live-format-tests--crooked (live-format-tests--on-disk "b.el"))))
    (efrit-test-kill-buffers (list (find-buffer-visiting "b.el")))))

;;; Modes

(ert-deftest efrit-live-format-the-person-sees-a-diff-and-nothing-changed-before ()
  (editing-with `(("b.el" . ,live-format-tests--crooked))
    (let ((plan (editing-plan "format_buffer" '(:path "b.el"))))
      (live-test-has (efrit-plan-text plan) "-(list" "+  (list")
      (should (equal live-format-tests--crooked (live-format-tests--on-disk "b.el")))
      (should-not (find-buffer-visiting "b.el")))))

(ert-deftest efrit-live-format-the-person-s-unsaved-text-is-formatted-and-left-unsaved ()
  (editing-with `(("b.el" . ,live-format-tests--crooked))
    (with-current-buffer (find-file-noselect "b.el")
      (goto-char (point-max))
      (insert "(list\n3)\n")
      (goto-char (point-min))
      (forward-line 2)
      (let ((result (editing-use "format_buffer" :path "b.el")))
        (live-test-has (plist-get result :text) "Formatted b.el" "not on disk")
        (should (equal (concat live-format-tests--straight "(list\n 3)\n") (buffer-string)))
        (should (= 3 (line-number-at-pos)))
        (should (buffer-modified-p))
        (should (equal live-format-tests--crooked (live-format-tests--on-disk "b.el")))
        (undo-boundary)
        (primitive-undo 1 (cdr buffer-undo-list))
        (should (equal (concat live-format-tests--crooked "(list\n3)\n") (buffer-string)))))))

(ert-deftest efrit-live-format-indents-by-the-variables-of-the-file ()
  (editing-with '(("c.c" . "int f (void)\n{\nreturn 1;\n}\n/* Local Variables: */\n\
/* c-basic-offset: 6 */\n/* indent-tabs-mode: nil */\n/* End: */\n"))
    (editing-use "format_buffer" :path "c.c")
    (live-test-has (live-format-tests--on-disk "c.c") "{\n      return 1;\n}")))

(ert-deftest efrit-live-format-by-a-function-of-the-persons ()
  (editing-with '(("a.txt" . "b\na\n"))
    (let ((efrit-format-functions '((text-mode . live-format-tests--sort))))
      (live-test-has (plist-get (editing-use "format_buffer" :path "a.txt") :text)
                     "Formatted a.txt by live-format-tests--sort.")
      (should (equal "a\nb\n" (live-format-tests--on-disk "a.txt"))))))

(defun live-format-tests--sort ()
  "Sort the lines of this buffer."
  (sort-lines nil (point-min) (point-max)))

(ert-deftest efrit-live-format-a-refusal-has-a-reason-and-changes-nothing ()
  (editing-with `(("a.txt" . "one\n") ("b.py" . "if x:\n  y\n") ("big.el" . "(a\nb)\n")
                  ("c.el" . ,live-format-tests--straight))
    (live-test-has (plist-get (editing-use "format_buffer" :path "a.txt") :text)
                   "Emacs has no formatter for a.txt in text-mode")
    (live-test-has (plist-get (editing-use "format_buffer" :path "b.py") :text)
                   "Emacs has no formatter for b.py in python-mode")
    (live-test-has (plist-get (editing-use "format_buffer" :path "c.el") :text)
                   "c.el is already formatted as indent-region does it")
    (live-test-has (plist-get (editing-use "format_buffer" :path "gone.el") :text)
                   "no file gone.el")
    (live-test-has (plist-get (editing-use "format_buffer" :path "../c.el") :text) "outside")
    (let ((efrit-format-most-characters 3))
      (live-test-has (plist-get (editing-use "format_buffer" :path "big.el") :text)
                     "big.el is too long for Emacs to format it"))
    (should-not (find-buffer-visiting "c.el"))))

;;; Language servers

(defconst live-format-tests--blanks '(("ä: b.txt" . "größe 😀x  \n\tb \n"))
  "A file with blanks at the ends of lines.")

(ert-deftest efrit-live-format-a-language-server-formats-its-files ()
  (served-with nil live-format-tests--blanks
    (goto-char (point-max))
    (insert "c  \n")
    (live-test-has (plist-get (editing-use "format_buffer" :path "ä: b.txt") :text)
                   "Formatted ä: b.txt by its language server.")
    (should (equal "größe 😀x\n\tb\nc\none\ntwo\n" (buffer-string)))))

(ert-deftest efrit-live-format-a-language-server-that-fails-changes-nothing ()
  (served-with '("cannot") live-format-tests--blanks
    (live-test-has (plist-get (editing-use "format_buffer" :path "ä: b.txt") :text)
                   "the language server refused: not today")
    (should (equal "größe 😀x  \n\tb \n" (buffer-string)))
    (should-not (buffer-modified-p))))

(provide 'live-tools-format-tests)
;;; live-tools-format-tests.el ends here
