;;; edit-tests.el --- Tests of the tools that change files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)

(defmacro edit-test-refused (regexp form)
  "Check that FORM, a use of a tool, is an error that REGEXP matches."
  (declare (indent 1) (debug (form form)))
  `(let ((result ,form))
     (should (equal "error" (plist-get result :status)))
     (should (string-match-p ,regexp (plist-get result :text)))))

(defun edit-test-done (result)
  "Check that RESULT, of a use of a tool, is a success, and return its text."
  (ert-info ((plist-get result :text))
    (should (equal "success" (plist-get result :status))))
  (plist-get result :text))

;;; Finding the text

(ert-deftest efrit-edit-replaces-a-text-that-stands-once ()
  (editing-with '(("a.txt" . "one\ntwo\nthree\n"))
    (should (equal "Edited a.txt: line 2"
                   (edit-test-done (editing-use "edit_file" :path "a.txt"
                                                :old_text "two" :new_text "2"))))
    (should (equal "one\n2\nthree\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-refuses-a-text-that-occurs-twice-and-lists-the-lines ()
  (editing-with '(("a.txt" . "x\ny\nx\n"))
    (edit-test-refused "occurs in a.txt 2 times, at lines 1, 3"
      (editing-use "edit_file" :path "a.txt" :old_text "x" :new_text "z"))
    (should (equal "x\ny\nx\n" (editing-bytes "a.txt")))
    (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "x" :new_text "z"
                                 :replace_all t))
    (should (equal "z\ny\nz\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-says-where-only-the-last-newline-or-the-indentation-differs ()
  (editing-with '(("a.txt" . "one\n  two\n\tthree\nfour"))
    (let ((text (lambda (old)
                  (plist-get (editing-use "edit_file" :path "a.txt" :old_text old :new_text "x")
                             :text))))
      (should (equal "old_text is not in a.txt. The file has no newline at its end, where it \
would be; give old_text without it."
                     (funcall text "four\n")))
      (should (equal "old_text is not in a.txt. It differs in its indentation only; as it stands \
there, it is:\n  two\n\tthree"
                     (funcall text "two\nthree\n")))
      (should (string-search "The most similar lines are:\n" (funcall text "  two\n  thre"))))))

(ert-deftest efrit-edit-shows-similar-lines-if-a-text-is-not-found ()
  (editing-with '(("a.el" . "(defun a ()\n    (message \"hello\"))\n\n(defun b ())\n"))
    (edit-test-refused "is not in a.el.*\n1: (defun a ()\n2:     (message \"hello\"))"
      (editing-use "edit_file" :path "a.el" :new_text "x"
                   :old_text "(defun a ()\n  (message \"hallo\"))"))
    (edit-test-refused "\n4: (defun b ())"
      (editing-use "edit_file" :path "a.el" :old_text "(defun b (x))" :new_text "x"))
    (edit-test-refused "is not in a.el\\.\\'"
      (editing-use "edit_file" :path "a.el" :old_text "zzzzzzzzzzzzzzzz" :new_text "x"))))

(ert-deftest efrit-edit-refuses-an-edit-without-effect ()
  (editing-with '(("a.txt" . "one\n"))
    (edit-test-refused "old_text is empty"
      (editing-use "edit_file" :path "a.txt" :old_text "" :new_text "x"))
    (edit-test-refused "are the same"
      (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "one"))
    (edit-test-refused "there is no file b.txt; create_file makes one"
      (editing-use "edit_file" :path "b.txt" :old_text "one" :new_text "two"))))

(ert-deftest efrit-edit-stays-in-the-project ()
  (editing-with '(("a.txt" . "one\n"))
    (make-symbolic-link temporary-file-directory (editing-file "out"))
    (edit-test-refused "outside" (editing-use "create_file" :path "../x" :content "x"))
    (edit-test-refused "outside" (editing-use "create_file" :path "out/x" :content "x"))
    (edit-test-refused "outside" (editing-use "create_file" :path "/etc/x" :content "x"))
    (edit-test-refused "outside" (editing-use "rename_file" :path "a.txt" :to "../x"))
    (edit-test-refused "git" (editing-use "create_file" :path ".git/hooks/pre-commit"
                                          :content "x"))
    (edit-test-refused "folder" (editing-use "delete_file" :path ".git/.."))))

;;; Several edits

(ert-deftest efrit-edit-makes-all-of-several-edits ()
  (editing-with '(("a.txt" . "one\ntwo\n") ("b.txt" . "three\n"))
    (edit-test-done
     (editing-use "multi_edit"
                  :edits [(:path "a.txt" :old_text "one" :new_text "1")
                          (:path "b.txt" :old_text "three" :new_text "3")
                          (:path "a.txt" :old_text "1\ntwo" :new_text "1\n2")]))
    (should (equal "1\n2\n" (editing-bytes "a.txt")))
    (should (equal "3\n" (editing-bytes "b.txt")))))

(ert-deftest efrit-edit-makes-no-edit-if-one-of-several-is-wrong ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (edit-test-refused "edit 2: old_text is not in b.txt"
      (editing-use "multi_edit"
                   :edits [(:path "a.txt" :old_text "one" :new_text "1")
                           (:path "b.txt" :old_text "zwei" :new_text "2")]))
    (should (equal "one\n" (editing-bytes "a.txt")))
    (should-not (efrit-file-buffer (editing-file "a.txt")))))

(ert-deftest efrit-edit-puts-everything-back-where-a-file-cannot-be-saved ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (find-file-noselect (editing-file "a.txt"))
    (with-current-buffer (find-file-noselect (editing-file "b.txt"))
      (add-hook 'write-contents-functions (lambda () (error "No room")) nil t))
    (edit-test-refused "Nothing was changed: No room"
      (editing-use "multi_edit"
                   :edits [(:path "a.txt" :old_text "one" :new_text "1")
                           (:path "b.txt" :old_text "two" :new_text "2")]))
    (should (equal "one\n" (editing-bytes "a.txt")))
    (should (equal "two\n" (editing-bytes "b.txt")))
    (should (equal '("one\n" nil)
                   (with-current-buffer (efrit-file-buffer (editing-file "a.txt"))
                     (list (buffer-string) (buffer-modified-p)))))
    (should-not (seq-some #'efrit-undo-open-p (editing-changes)))))

;;; How a file is written

(ert-deftest efrit-edit-keeps-line-ends-and-encoding-and-the-end-of-the-file ()
  (editing-with nil
    (cl-loop
     for (bytes after) in
     '(("one\r\ntwo\r\n" "one\r\nzwei\r\n")
       ("one\ntwo" "one\nzwei")
       ("\357\273\277one\ntwo\n" "\357\273\277one\nzwei\n")
       ("one \344\366\374\ntwo\n" "one \344\366\374\nzwei\n")
       ("one\r\ntwo\nthree\r\n" "one\r\nzwei\nthree\r\n")
       ("gr\303\266\303\237e \377\ntwo\n" "gr\303\266\303\237e \377\nzwei\n")
       ("\377\376o\0n\0e\0\n\0t\0w\0o\0" "\377\376o\0n\0e\0\n\0z\0w\0e\0i\0"))
     do (dolist (visited '(nil t))
          (let ((name (format "%s%s.txt" (md5 bytes) visited)))
            (editing-write-bytes name bytes)
            (when visited
              (find-file-noselect (editing-file name)))
            (ert-info ((format "%S %s" bytes visited))
              (edit-test-done (editing-use "edit_file" :path name :old_text "two"
                                           :new_text "zwei"))
              (should (equal after (editing-bytes name)))
              (editing-undo-all)
              (should (equal bytes (editing-bytes name)))))))))

(ert-deftest efrit-edit-opens-no-buffer-and-runs-no-hook-for-a-file-that-none-visits ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (let* ((ran nil)
           (note (lambda () (push this-command ran)))
           (buffers (buffer-list)))
      (dolist (hook '(find-file-hook before-save-hook after-save-hook text-mode-hook))
        (add-hook hook note))
      (unwind-protect
          (progn
            (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1"))
            (edit-test-done (editing-use "create_file" :path "c.txt" :content "three\n"))
            (edit-test-done (editing-use "rename_file" :path "c.txt" :to "d.txt"))
            (edit-test-done (editing-use "delete_file" :path "b.txt"))
            (editing-undo-all))
        (dolist (hook '(find-file-hook before-save-hook after-save-hook text-mode-hook))
          (remove-hook hook note)))
      (should-not ran)
      (should-not (seq-some #'buffer-file-name (seq-difference (buffer-list) buffers))))))

(ert-deftest efrit-edit-visits-edited-files-if-an-option-says-so ()
  (editing-with '(("a.txt" . "one\n"))
    (let ((efrit-change-keep-buffers t))
      (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")))
    (should (equal "1\n" (efrit-file-text (efrit-file-buffer (editing-file "a.txt")))))))

(ert-deftest efrit-edit-a-saved-buffer-is-not-asked-about-and-runs-its-hooks-once ()
  "Emacs takes the file for the one that its buffer has, and typing asks nothing."
  (editing-with '(("a.txt" . "one\n"))
    (let ((saved 0))
      (with-current-buffer (find-file-noselect (editing-file "a.txt"))
        (add-hook 'after-save-hook (lambda () (setq saved (1+ saved))) nil t)
        (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1"))
        (should (= 1 saved))
        (should-not (buffer-modified-p))
        (should (verify-visited-file-modtime))
        (insert "mine\n")
        (should (buffer-modified-p))
        (set-buffer-modified-p nil)))))

(ert-deftest efrit-edit-keeps-what-the-person-types-while-a-file-is-written ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (let ((inhibit-message t))
      (dolist (case '(("a.txt" "one" nil) ("b.txt" "two" t)))
        (pcase-let ((`(,name ,old ,fails) case))
          (with-current-buffer (find-file-noselect (editing-file name))
            (cl-letf* ((ask (symbol-function 'efrit-loop-ask-sidecar))
                       ((symbol-function 'efrit-loop-ask-sidecar)
                        (lambda (loop method &rest arguments)
                          (when (eq method 'changes/write)
                            (with-current-buffer (efrit-file-buffer (editing-file name))
                              (goto-char (point-max))
                              (insert "typed\n"))
                            (when fails
                              (editing-write-bytes name "somebody else's\n")))
                          (apply ask loop method arguments))))
              (let ((result (editing-use "edit_file" :path name :old_text old :new_text "new")))
                (should (equal (if fails "error" "success") (plist-get result :status)))))
            (should (equal "new\ntyped\n" (buffer-string)))
            (should (buffer-modified-p))
            (set-buffer-modified-p nil)))))
    (should (equal "new\n" (editing-bytes "a.txt")))
    (should (equal "somebody else's\n" (editing-bytes "b.txt")))))

(ert-deftest efrit-edit-of-a-buffer-that-saves-itself-is-made-and-cannot-be-undone ()
  (editing-with '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (add-hook 'write-contents-functions
                (lambda ()
                  (editing-write-bytes "a.txt" (concat "saved: " (buffer-string)))
                  (set-visited-file-modtime)
                  (set-buffer-modified-p nil)
                  t)
                nil t)
      (should (string-match-p "cannot be undone"
                              (edit-test-done (editing-use "edit_file" :path "a.txt"
                                                           :old_text "one" :new_text "1"))))
      (should (equal "saved: 1\n" (editing-bytes "a.txt")))
      (should-not (editing-changes)))))

(ert-deftest efrit-edit-refuses-letters-that-the-file-cannot-hold ()
  (editing-with nil
    (editing-write-bytes "a.txt" "one \344\366\374\n")
    (edit-test-refused "has no € (U\\+20AC)"
      (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "€"))
    (should (equal "one \344\366\374\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-reports-changes-by-hooks-of-saving ()
  (editing-with '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (add-hook 'before-save-hook #'delete-trailing-whitespace nil t))
    (let ((said (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "one"
                                             :new_text "1   \n2"))))
      (should (equal "1\n2\n" (editing-bytes "a.txt")))
      (should (string-match-p "Hooks .* also changed:\n.*\n.*\n.*\n-1   \n\\+1\n" said)))))

(ert-deftest efrit-edit-writes-a-file-whole-with-its-mode-and-through-a-link ()
  (editing-with '(("real.sh" . "echo one\n"))
    (set-file-modes (editing-file "real.sh") #o750)
    (make-symbolic-link "real.sh" (editing-file "link.sh"))
    (edit-test-done (editing-use "edit_file" :path "link.sh" :old_text "one" :new_text "two"))
    (should (equal "real.sh" (file-symlink-p (editing-file "link.sh"))))
    (should (= #o750 (file-modes (editing-file "real.sh"))))
    (should (equal '("link.sh" "real.sh") (mapcar #'car (editing-tree))))
    (should (equal "echo two\n" (editing-bytes "real.sh")))))

(ert-deftest efrit-edit-refuses-files-that-must-not-be-edited ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "one\n") ("c.bin" . "one\0two"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (read-only-mode 1))
    (edit-test-refused "the person made read-only"
      (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1"))
    (edit-test-refused "binary"
      (editing-use "edit_file" :path "c.bin" :old_text "one" :new_text "1"))
    (let ((efrit-change-most-bytes 2))
      (edit-test-refused "has 4 bytes"
        (editing-use "edit_file" :path "b.txt" :old_text "one" :new_text "1")))))

;;; The person's own work

(ert-deftest efrit-edit-does-not-save-unsaved-changes-of-the-person ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (insert "mine\n"))
    (let ((said (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "two"
                                             :new_text "2"))))
      (should (string-match-p "not on disk" said)))
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
    (with-current-buffer (efrit-file-buffer (editing-file "a.txt"))
      (should (equal "mine\none\n2\n" (buffer-string)))
      (editing-undo-all)
      (should (equal "mine\none\ntwo\n" (buffer-string)))
      (should (buffer-modified-p)))
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-saves-unsaved-changes-if-an-option-says-so ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (insert "mine\n"))
    (let ((efrit-edit-unsaved-buffers 'save))
      (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2")))
    (should (equal "mine\none\n2\n" (editing-bytes "a.txt")))
    (editing-undo-all)
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
    (with-current-buffer (efrit-file-buffer (editing-file "a.txt"))
      (should (equal "mine\none\ntwo\n" (buffer-string)))
      (should (buffer-modified-p)))))

(ert-deftest efrit-edit-asks-whether-to-save-where-that-is-wanted ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (insert "mine\n"))
    (let ((efrit-edit-unsaved-buffers 'ask)
          asked)
      (efrit-loop-observe
       editing-loop
       (lambda (_ event)
         (pcase event
           (`(question ,call ,question ,options)
            (setq asked (list question options))
            (efrit-tool-finish call (efrit-tool-result "Save"))))))
      (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2"))
      (should (equal '("a.txt had unsaved changes of yours.  Save with the edit?"
                       ("Save" "Leave it unsaved"))
                     asked)))
    (should (equal "mine\none\n2\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-leaves-points-and-windows-where-they-are ()
  (editing-with `(("a.txt" . ,(mapconcat #'number-to-string (number-sequence 1 500) "\n")))
    (save-window-excursion
      (let ((buffer (find-file-noselect (editing-file "a.txt"))))
        (switch-to-buffer buffer)
        (goto-char (point-min))
        (search-forward "\n300")
        (let ((mark (copy-marker (point))))
          (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "\n100\n"
                                       :new_text "\nhundred\nand more\n"))
          (should (= (point) mark (window-point)))
          (should (looking-back "\n300" 1)))))))

(ert-deftest efrit-edit-reaches-text-outside-the-narrowing-and-keeps-it ()
  (editing-with '(("a.txt" . "one\ntwo\nthree\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (narrow-to-region 5 8)
      (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "three"
                                   :new_text "3"))
      (should (equal "two" (buffer-string)))
      (should (equal "one\ntwo\n3\n" (editing-bytes "a.txt"))))))

(ert-deftest efrit-edit-is-one-step-of-the-buffers-own-undo ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (goto-char (point-max))
      (insert "mine\n")
      (save-buffer)
      (edit-test-done (editing-use "multi_edit"
                                   :edits [(:path "a.txt" :old_text "one" :new_text "1")
                                           (:path "a.txt" :old_text "two" :new_text "2")]))
      (should (equal "1\n2\nmine\n" (buffer-string)))
      (let ((last-command nil))
        (undo))
      (should (equal "one\ntwo\nmine\n" (buffer-string)))
      (let ((last-command 'undo))
        (undo))
      (should (equal "one\ntwo\n" (buffer-string))))))

(ert-deftest efrit-edit-wants-a-file-read-again-that-changed-since ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (editing-read "a.txt")
    (efrit-test-write "a.txt" "one\ntwo\nthree\n")
    (edit-test-refused "changed since you read it; read it again"
      (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2"))
    (editing-read "a.txt")
    (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2"))
    ;; What it changed itself it knows.
    (edit-test-done (editing-use "edit_file" :path "a.txt" :old_text "2" :new_text "zwei"))
    (should (equal "one\nzwei\nthree\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-refuses-a-modified-buffer-whose-file-changed ()
  (editing-with '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (insert "mine\n"))
    (efrit-test-write "a.txt" "one\ntwo\n")
    (set-file-times (editing-file "a.txt") (time-add nil 10))
    (edit-test-refused "ask the person to resolve that"
      (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1"))))

(ert-deftest efrit-edit-refuses-a-plan-whose-file-changed-meanwhile ()
  (editing-with '(("a.txt" . "one\n"))
    (let* ((arguments '(:path "a.txt" :old_text "one" :new_text "1"))
           (plan (editing-plan "edit_file" arguments)))
      (with-current-buffer (find-file-noselect (editing-file "a.txt"))
        (insert "typed meanwhile\n"))
      (edit-test-refused "was just changed"
        (editing-carry-out "edit_file" arguments plan))
      (should (equal "one\n" (editing-bytes "a.txt"))))))

;;; Files

(ert-deftest efrit-edit-creates-renames-and-deletes-files ()
  (editing-with '(("a.txt" . "one\n"))
    (edit-test-done (editing-use "create_file" :path "new/dir/ü b.txt" :content "größe\n"))
    (should (equal (encode-coding-string "größe\n" 'utf-8) (editing-bytes "new/dir/ü b.txt")))
    (edit-test-refused "already exists" (editing-use "create_file" :path "a.txt" :content "x"))
    (edit-test-done (editing-use "create_file" :path "a.txt" :content "x" :overwrite t))
    (should (equal "x" (editing-bytes "a.txt")))
    (edit-test-refused "already exists" (editing-use "rename_file" :path "a.txt"
                                                    :to "new/dir/ü b.txt"))
    (edit-test-done (editing-use "rename_file" :path "a.txt" :to "sub/c.txt"))
    (should (equal '("new/dir/ü b.txt" "sub/c.txt") (mapcar #'car (editing-tree))))
    (edit-test-done (editing-use "delete_file" :path "new/dir/ü b.txt"))
    (should (equal '("sub/c.txt") (mapcar #'car (editing-tree))))
    (should-not (seq-some #'caddr (editing-undo-all)))
    (should (equal '(("a.txt" . "one\n")) (editing-tree)))
    (should-not (file-exists-p (editing-file "new")))
    (should-not (file-exists-p (editing-file "sub")))))

(ert-deftest efrit-edit-moves-to-the-trash-where-the-person-does ()
  (editing-with '(("a.txt" . "one\n"))
    (let* ((delete-by-moving-to-trash t)
           (trash-directory (make-temp-file "efrit-trash-" t)))
      (unwind-protect
          (progn
            (should (string-match-p "trash" (edit-test-done
                                             (editing-use "delete_file" :path "a.txt"))))
            (should-not (editing-bytes "a.txt"))
            (should (directory-files trash-directory nil "a\\.txt"))
            (editing-undo-all)
            (should (equal "one\n" (editing-bytes "a.txt"))))
        (delete-directory trash-directory t)))))

(ert-deftest efrit-edit-a-buffer-of-a-deleted-file-shows-the-one-that-takes-its-name ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (let ((buffer (find-file-noselect (editing-file "b.txt"))))
      (edit-test-done (editing-use "delete_file" :path "b.txt"))
      (edit-test-done (editing-use "rename_file" :path "a.txt" :to "b.txt"))
      (should (equal "one\n" (efrit-file-text buffer)))
      (edit-test-done (editing-use "edit_file" :path "b.txt" :old_text "one" :new_text "six"))
      (should (equal "six\n" (editing-bytes "b.txt"))))))

(ert-deftest efrit-edit-one-buffer-visits-a-file-renamed-to-that-of-another-buffer ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (let ((moved (find-file-noselect (editing-file "a.txt"))))
      (set-window-buffer nil (find-file-noselect (editing-file "b.txt")))
      (delete-file (editing-file "b.txt"))
      (edit-test-done (editing-use "rename_file" :path "a.txt" :to "b.txt"))
      (should (eq moved (window-buffer)))
      (should (equal (list moved)
                     (seq-filter (lambda (buffer)
                                   (equal (editing-file "b.txt") (buffer-file-name buffer)))
                                 (buffer-list))))
      (should (equal "b.txt" (buffer-name moved)))
      (should (equal "one\n" (efrit-file-text moved))))))

(ert-deftest efrit-edit-renames-nothing-to-a-name-for-which-a-buffer-holds-unsaved-text ()
  (editing-with '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect (editing-file "b.txt"))
      (insert "mine\n")
      (edit-test-refused "unsaved text of the person" (editing-use "rename_file" :path "a.txt" :to "b.txt"))
      (should (equal "mine\n" (buffer-string))))
    (should (equal "one\n" (editing-bytes "a.txt")))))

(ert-deftest efrit-edit-has-a-buffer-follow-a-file-that-is-renamed ()
  (editing-with '(("a.txt" . "one\n"))
    (let ((buffer (find-file-noselect (editing-file "a.txt"))))
      (edit-test-done (editing-use "rename_file" :path "a.txt" :to "b.txt"))
      (should (equal (editing-file "b.txt") (buffer-file-name buffer)))
      (should-not (buffer-modified-p buffer))
      (editing-undo-all)
      (should (equal (editing-file "a.txt") (buffer-file-name buffer))))))

(ert-deftest efrit-edit-deletes-a-binary-file-and-restores-it ()
  (editing-with nil
    (editing-write-bytes "x.bin" "\0\377\1\r\n\0")
    (edit-test-done (editing-use "delete_file" :path "x.bin"))
    (should-not (editing-bytes "x.bin"))
    (editing-undo-all)
    (should (equal "\0\377\1\r\n\0" (editing-bytes "x.bin")))))

(provide 'edit-tests)
;;; edit-tests.el ends here
