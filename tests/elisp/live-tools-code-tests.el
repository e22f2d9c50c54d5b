;;; live-tools-code-tests.el --- Definitions, references, outlines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)
(require 'xref)

(defconst live-code-tests--lisp
  '(("live-code-sample.el" . ";;; -*- lexical-binding: t; -*-

(defvar live-code-sample-depth 3)

(defun live-code-sample-run (x)
  (list x live-code-sample-depth))

(defun live-code-sample-run-twice (x)
  (live-code-sample-run (live-code-sample-run x)))

(provide 'live-code-sample)
"))
  "A project in Lisp.")

(defconst live-code-tests--python
  '(("shop.py" . "import os


class Shop:
    def open(self):
        return os.name

    def close(self):
        return self.open()


def reopen(shop):
    shop.open()
"))
  "A project in Python.")

(defun live-code-tests--make-tags (&rest files)
  "Make a table of tags for FILES, as etags does."
  (with-temp-file "TAGS"
    (dolist (file files)
      (let ((tags (with-temp-buffer
                    (insert-file-contents file)
                    (cl-loop while (re-search-forward
                                    "^ *\\(?:def\\|class\\) \\([a-z_A-Z]+\\)" nil t)
                             concat (format "%s\177%s\001%d,%d\n"
                                            (match-string 0) (match-string 1)
                                            (line-number-at-pos)
                                            (1- (line-beginning-position)))))))
        (insert (format "\f\n%s,%d\n%s" file (string-bytes tags) tags))))))

;;; In a session

(ert-deftest efrit-live-code-a-model-uses-each-tool ()
  (live-test-model-uses "buffer_outline" "{ path = \"README.md\" }" "README.md has no outline")
  (live-test-model-uses "find_references" "{ symbol = \"two\" }" "a.txt:2: two")
  (live-test-model-uses "find_definition" "{ symbol = \"car\", path = \"a.txt\" }"
                        "to look up car"))

;;; Definitions

(ert-deftest efrit-live-code-a-definition-in-loaded-lisp-is-found ()
  (live-test-in live-code-tests--lisp
    (load (expand-file-name "live-code-sample.el") nil t)
    (let ((before (buffer-list)))
      (should (equal "1 definition of live-code-sample-run (elisp):\n\
live-code-sample.el:5: (defun live-code-sample-run (x)"
                     (live-test-text "find_definition" :symbol "live-code-sample-run"
                                     :path "live-code-sample.el" :line 9)))
      (should-not (seq-difference (buffer-list) before)))
    (find-file-noselect "live-code-sample.el")
    (live-test-has (live-test-text "find_definition" :symbol "live-code-sample-depth")
                   "live-code-sample.el:3: (defvar live-code-sample-depth 3)")))

(ert-deftest efrit-live-code-a-definition-outside-the-project-is-named-by-its-file ()
  (live-test-in live-code-tests--lisp
    (live-test-has (live-test-text "find_definition" :symbol "efrit-define-tool"
                                   :path "live-code-sample.el")
                   "elisp/efrit-tools.el:" "(defun efrit-define-tool)")))

(ert-deftest efrit-live-code-tags-of-the-project-are-used-and-no-question-is-asked ()
  (live-test-in live-code-tests--python
    (live-code-tests--make-tags "shop.py")
    (let ((tags-file-name nil)
          (tags-table-list nil))
      (should (equal "1 definition of close (etags):\nshop.py:8: def close(self):"
                     (live-test-text "find_definition" :symbol "close" :path "shop.py")))
      (should-not tags-file-name)
      (should-not tags-table-list)
      (should-not (get-file-buffer "TAGS")))))

(ert-deftest efrit-live-code-without-an-index-other-tools-are-named ()
  (live-test-in live-code-tests--python
    (let ((tags-file-name nil)
          (tags-table-list nil))
      (live-test-has (live-test-text "find_definition" :symbol "close" :path "shop.py")
                     "to look up close" "search_content")
      (live-test-has (live-test-text "find_definition" :symbol "close")
                     "to look up close"))
    (live-code-tests--make-tags "shop.py")
    (live-test-has (live-test-text "find_definition" :symbol "nowhere" :path "shop.py")
                   "etags found no definition of nowhere")))

(ert-deftest efrit-live-code-tags-that-lead-elsewhere-show-nothing-from-there ()
  (live-test-in live-code-tests--python
    (let ((outside (make-temp-file "efrit-outside-" nil ".txt" "top secret line\n")))
      (unwind-protect
          (progn
            (with-temp-file "TAGS"
              (insert (format "\f\n%s,20\ntop\177stolen\0011,0\n" outside)
                      "\f\n/ssh:nobody@nowhere:/x,20\ntop\177stolen\0011,0\n"))
            (let ((said (live-test-text "find_definition" :symbol "stolen" :path "shop.py")))
              (live-test-has said "of stolen (etags)")
              (live-test-lacks said "secret line")))
        (delete-file outside)))))

(ert-deftest efrit-live-code-bad-arguments-are-refused-with-a-reason ()
  (live-test-in live-code-tests--python
    (live-test-has (live-test-refused "find_definition" :symbol "close" :path "shop.py" :line 1)
                   "close is not in line 1 of shop.py")
    (live-test-has (live-test-refused "find_definition" :symbol "close" :line 1)
                   "Give a path with line 1")
    (live-test-has (live-test-refused "find_definition" :symbol " ") "Give a symbol")
    (live-test-has (live-test-refused "find_definition" :symbol "close" :path "gone.py")
                   "gone.py: no such file")
    (live-test-has (live-test-refused "find_definition" :symbol "x" :path "../x.py")
                   "outside the project")
    (live-test-has (live-test-refused "find_definition" :symbol "x" :path "/ssh:nowhere:/x")
                   "outside the project")))

;;; What stays

(ert-deftest efrit-live-code-point-and-narrowing-of-open-files-stay ()
  (live-test-in live-code-tests--lisp
    (load (expand-file-name "live-code-sample.el") nil t)
    (with-current-buffer (find-file-noselect "live-code-sample.el")
      (narrow-to-region 1 20)
      (goto-char 7)
      (live-test-text "find_definition" :symbol "live-code-sample-run"
                      :path "live-code-sample.el" :line 9)
      (live-test-text "find_definition" :symbol "live-code-sample-run")
      (live-test-text "find_references" :symbol "live-code-sample-run"
                      :path "live-code-sample.el" :line 9)
      (live-test-text "buffer_outline" :path "live-code-sample.el")
      (should (equal '(7 1 20) (list (point) (point-min) (point-max)))))))

;;; References

(ert-deftest efrit-live-code-references-are-found-by-text-where-no-index-is ()
  (live-test-in (append live-code-tests--lisp '(("notes.md" . "See `live-code-sample-run`.\n")
                                                (".env" . "live-code-sample-run=1\n")))
    (should (equal "3 references of live-code-sample-run (by text; elisp has no index):\n\
live-code-sample.el:5: (defun live-code-sample-run (x)\n\
live-code-sample.el:9: (live-code-sample-run (live-code-sample-run x)))\n\
notes.md:1: See `live-code-sample-run`."
                   (live-test-text "find_references" :symbol "live-code-sample-run"
                                   :path "live-code-sample.el")))
    (live-test-has (live-test-text "find_references" :symbol "live-code-nothing")
                   "live-code-nothing is nowhere in the project")))

(ert-deftest efrit-live-code-references-of-an-index-are-taken-from-it ()
  (live-test-in live-code-tests--python
    (with-current-buffer (find-file-noselect "shop.py")
      (add-hook 'xref-backend-functions (lambda () 'live-code-index) nil t))
    (should (equal "2 references of open (live-code-index):\n\
shop.py:9: return self.open()\nshop.py:13: shop.open()"
                   (live-test-text "find_references" :symbol "open")))))

(cl-defmethod xref-backend-references ((_ (eql 'live-code-index)) identifier)
  "Return two places for IDENTIFIER."
  (mapcar (lambda (line)
            (xref-make identifier (xref-make-file-location
                                   (expand-file-name "shop.py" live-test-root) line 0)))
          '(13 9)))

(ert-deftest efrit-live-code-a-line-of-a-file-of-secrets-is-not-shown ()
  (live-test-in-session (cons '(".env" . "OPEN=hunter2\n") live-code-tests--python)
    (with-temp-file "TAGS"
      (insert "\f\n.env,20\nOPEN=hunter2\177OPEN\0011,0\n"))
    (let ((said (live-test-text "find_definition" :symbol "OPEN" :path "shop.py")))
      (live-test-has said ".env:1: (a file of secrets)")
      (live-test-lacks said "hunter2"))))

(cl-defmethod xref-backend-identifier-at-point ((_ (eql 'live-code-index)))
  "Return what is at point."
  (thing-at-point 'symbol))

;;; Outlines

(ert-deftest efrit-live-code-an-outline-is-nested-and-has-lines ()
  (live-test-in live-code-tests--python
    (let ((before (buffer-list)))
      (should (equal "shop.py (python-mode): 5 entries
Shop (class)
  4 *class definition*
  5 open (def)
  8 close (def)
12 reopen (def)"
                     (live-test-text "buffer_outline" :path "shop.py")))
      (should-not (seq-difference (buffer-list) before)))))

(ert-deftest efrit-live-code-an-outline-is-of-the-whole-unsaved-buffer ()
  (live-test-in live-code-tests--lisp
    (with-current-buffer (find-file-noselect "live-code-sample.el")
      (goto-char (point-max))
      (insert "(defun live-code-sample-late ())\n")
      (narrow-to-region 1 10)
      (live-test-has (live-test-text "buffer_outline" :path "live-code-sample.el")
                     "12 live-code-sample-late")
      (should (buffer-narrowed-p))
      (should (buffer-modified-p)))))

(ert-deftest efrit-live-code-without-an-outline-there-is-an-error ()
  (live-test-in '(("a.txt" . "one\n"))
    (live-test-has (live-test-refused "buffer_outline" :path "a.txt")
                   "a.txt has no outline in text-mode")))

;;; Strangers' files

(ert-deftest efrit-live-code-a-file-is-opened-without-its-local-code ()
  (live-test-in `((".dir-locals.el" . "((nil . ((eval . (setq live-code-tests-ran t)))))")
                  ("evil.el" . ";; -*- eval: (setq live-code-tests-ran t) -*-
\(defun live-code-evil ())
;; Local Variables:
;; enable-local-eval: t
;; compile-command: \"touch ran\"
;; eval: (setq live-code-tests-ran t)
;; End:
"))
    (defvar live-code-tests-ran)
    (let ((live-code-tests-ran nil)
          (enable-local-eval t)
          (enable-local-variables :all))
      (live-test-has (live-test-text "buffer_outline" :path "evil.el") "2 live-code-evil")
      (should-not live-code-tests-ran))))

(ert-deftest efrit-live-code-secret-large-and-odd-files-are-not-opened ()
  (live-test-in-session '((".netrc" . "machine x password hunter2\n") ("big.py" . "def a(): pass\n"))
    (live-test-has (live-test-refused "buffer_outline" :path ".netrc") "read_file asks")
    (let ((efrit-visit-most-bytes 3))
      (live-test-has (live-test-refused "buffer_outline" :path "big.py") "big.py has 14 bytes"))
    (make-directory "folder")
    (live-test-has (live-test-refused "buffer_outline" :path "folder") "is a folder")
    (live-test-has (live-test-refused "buffer_outline" :path "") "is not a path")
    (make-symbolic-link "/etc/passwd" "link.py")
    (live-test-has (live-test-refused "buffer_outline" :path "link.py") "outside the project")))

(provide 'live-tools-code-tests)
;;; live-tools-code-tests.el ends here
