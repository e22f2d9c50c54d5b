;;; rename-tests.el --- Renaming a symbol by a language server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'editing)
(require 'live)
(require 'served)

(defconst rename-tests--files
  (cl-loop for number from 0 below 20
           collect (cons (format "f%02d.txt" number)
                         (format "größe 😀 old %d\nolder\nold old\n" number)))
  "Twenty files with a symbol in each.")

(defun rename-tests--replaced ()
  "Return the bytes that `rename-tests--files' have when the symbol is renamed."
  (cl-loop for (name . text) in rename-tests--files
           collect (cons name (encode-coding-string
                               (replace-regexp-in-string "\\_<old\\_>" "new" text) 'utf-8))))

(defun rename-tests--tree ()
  "Return names and bytes of the files of `rename-tests--files'."
  (mapcar (lambda (file) (cons (car file) (editing-bytes (car file)))) rename-tests--files))

(ert-deftest efrit-rename-a-symbol-in-twenty-files-is-one-diff-and-one-undo ()
  (served-with nil rename-tests--files
    (let* ((before (rename-tests--tree))
           (given '(:path "f00.txt" :symbol "old" :new_name "new"))
           (plan (editing-plan "rename_symbol" given)))
      (live-test-has (efrit-plan-text plan) "f00.txt" "-größe 😀 old 7" "+größe 😀 new 7" "f19.txt")
      (should (equal before (rename-tests--tree)))
      (live-test-has (plist-get (editing-carry-out "rename_symbol" given plan) :text)
                     "Renamed old to new" "20 files" "f00.txt (3 places)")
      (should (equal (rename-tests--replaced) (rename-tests--tree)))
      (should (= 20 (length (editing-changes))))
      (let ((default-directory efrit-test-project))
        (efrit-undo)
        (should (efrit-test-wait-until (lambda () (equal before (rename-tests--tree)))))
        (should (efrit-test-wait-until (lambda () (not (seq-some #'efrit-undo-open-p
                                                                 (editing-changes))))))
        (efrit-redo)
        (should (efrit-test-wait-until
                 (lambda () (equal (rename-tests--replaced) (rename-tests--tree))))))
      (should (efrit-test-wait-until
               (lambda () (seq-every-p #'efrit-undo-open-p (editing-changes)))))
      (editing-use "undo_edit")
      (should (equal before (rename-tests--tree))))))

(ert-deftest efrit-rename-finds-the-symbol-in-its-line-and-in-a-file-not-open ()
  (served-with nil '(("a.txt" . "one\nold\n") ("b.txt" . "old\none old\n"))
    (should-not (find-buffer-visiting "b.txt"))
    (live-test-has (plist-get (editing-use "rename_symbol" :path "b.txt" :symbol "old"
                                           :new_name "new" :line 2)
                              :text)
                   "2 files")
    (should (equal "one\nnew\n" (editing-bytes "a.txt")))
    (should-not (find-buffer-visiting "b.txt"))))

(ert-deftest efrit-rename-is-refused-with-a-reason-and-changes-nothing ()
  (served-with '("moves") '(("a.txt" . "old\n") ("b.el" . "old\n"))
    (pcase-dolist (`(,problem . ,given)
                   '(("would also rename a file" :path "a.txt" :symbol "old")
                     ("gone is not in the text of a.txt" :path "a.txt" :symbol "gone")
                     ("old is not in line 2 of a.txt" :path "a.txt" :symbol "old" :line 2)
                     ("no language server that renames runs for b.el" :path "b.el" :symbol "old")
                     ("outside" :path "../x" :symbol "old")
                     ("no such file" :path "gone.txt" :symbol "old")))
      (live-test-has (editing-plan "rename_symbol" (append given '(:new_name "new"))) problem))
    (should-not (editing-changes))))

;;; A real server

(defconst rename-tests--python
  (cons '("shapes.py" . "def area(side):\n    return side * side\n")
        (cl-loop for number from 0 below 20
                 collect (cons (format "use%02d.py" number)
                               "from shapes import area\n\nprint(area(2))\n")))
  "A file of Python that defines a function, and twenty that use it.")

(ert-deftest efrit-rename-by-a-real-language-server-goes-over-twenty-files ()
  :tags '(:soak)
  (let ((place (car (last (process-lines (expand-file-name ".ci/servers" efrit-test-root)
                                         "jedi")))))
    (served-by 'python-mode (list (concat place "/bin/jedi-language-server")) rename-tests--python
      (let ((before (editing-tree)))
        (live-test-has (plist-get (editing-use "rename_symbol" :path "shapes.py" :symbol "area"
                                               :new_name "square")
                                  :text)
                       "Renamed area to square" "21 files")
        (should (equal "from shapes import square\n\nprint(square(2))\n"
                       (editing-bytes "use07.py")))
        (editing-use "undo_edit")
        (should (equal before (editing-tree)))))))

(provide 'rename-tests)
;;; rename-tests.el ends here
