;;; batch-policy-tests.el --- What asks is refused where nobody is  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)
(require 'looping)
(require 'efrit-batch)

(defconst batch-policy--uses
  '(("compile" . "{ command = \"touch ran\" }")
    ("create_file" . "{ path = \"ran\", content = \"x\" }")
    ("delete_file" . "{ path = \"a.txt\" }")
    ("edit_file" . "{ path = \"a.txt\", old_text = \"one\", new_text = \"ran\" }")
    ("eval_sexp" . "{ code = \"(write-region \\\"\\\" nil \\\"ran\\\")\" }")
    ("mem_delete" . "{ id = 1 }")
    ("fetch_url" . "{ url = \"http://127.0.0.1:9/\" }")
    ("format_buffer" . "{ path = \"a.el\" }")
    ("multi_edit"
     . "{ edits = [ { path = \"a.txt\", old_text = \"one\", new_text = \"ran\" } ] }")
    ("rename_file" . "{ path = \"a.txt\", to = \"ran\" }")
    ("restore_checkpoint" . "{ checkpoint = \"k1\" }")
    ("run_command" . "{ command = \"touch ran\" }")
    ("undo_edit" . "{}")
    ("web_search" . "{ query = \"x\" }"))
  "A use of each tool that asks: its name and its input as TOML.")

(defun batch-policy--asking ()
  "Return the names of all tools that ask."
  (cl-loop for tool in (append (efrit-tools-schemas) (efrit-test-offered) nil)
           when (equal (plist-get tool :policy) "ask") collect (plist-get tool :name)))

(ert-deftest efrit-batch-refuses-each-tool-that-would-ask-and-runs-none ()
  (efrit-test-with-project '(("a.txt" . "one\n") ("a.el" . "(a\nb)\n"))
    (let ((before (editing-tree))
          (done nil))
      (should-not (cl-set-exclusive-or (mapcar #'car batch-policy--uses)
                                       (batch-policy--asking) :test #'equal))
      (efrit-test-with-model (format "
[[reply]]
tool = [{ name = \"edit_file\", input = { path = \"a.txt\", old_text = \"one\", new_text = \"two\" } },
        { name = \"checkpoint\", input = {} }]
[[reply]]
tool = [ %s ]
[[reply]]
text = \"I see.\"
" (mapconcat (pcase-lambda (`(,name . ,input))
               (format "{ name = \"%s\", input = %s }" name input))
             batch-policy--uses ", "))
        (let ((loop (efrit-test-loop)))
          (efrit-loop-observe
           loop (lambda (_ event)
                  (pcase event
                    (`(use ,use) (when (eq (efrit-use-state use) 'done) (push use done))))))
          (cl-letf (((symbol-function 'send-string-to-terminal) #'ignore))
            (should (eq 'idle (efrit-loop-state (efrit-batch-play loop "Go.")))))))
      (should (equal before (editing-tree)))
      (dolist (name (mapcar #'car batch-policy--uses))
        (let ((result (efrit-use-result (seq-find (lambda (use)
                                                    (equal name (efrit-use-name use)))
                                                  done))))
          (ert-info ((format "%s: %s" name (plist-get result :text)))
            (should (equal "error" (plist-get result :status)))
            (should (string-match-p (if (member name '("undo_edit" "restore_checkpoint"))
                                        "no edit to take back\\|Nothing was changed"
                                      "a batch job with nobody to ask")
                                    (plist-get result :text)))))))))

(ert-deftest efrit-batch-takes-the-first-dashes-for-the-separator-and-no-others ()
  (should (equal "git log -- a.txt"
                 (efrit-batch--task '("--" "git" "log" "--" "a.txt"))))
  (should (equal "git log -- a.txt" (efrit-batch--task '("git log -- a.txt"))))
  (should (equal "" (efrit-batch--task '("--")))))

(provide 'batch-policy-tests)
;;; batch-policy-tests.el ends here
