;;; batch-policy-tests.el --- What asks is refused where nobody is  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)
(require 'looping)
(require 'efrit-do)

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
    ("rename_symbol" . "{ path = \"a.txt\", symbol = \"one\", new_name = \"ran\" }")
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
            (should (string-match-p (pcase name
                                      ((or "undo_edit" "restore_checkpoint")
                                       "No edits left to undo\\|No edits since")
                                      ("rename_symbol" "no language server that renames")
                                      (_ "a batch job with nobody to ask"))
                                    (plist-get result :text)))))))))

(ert-deftest efrit-batch-prints-no-control-characters-of-the-models ()
  "Neither what it says nor the name of a file can move a terminal's cursor."
  (let ((printed ""))
    (efrit-test-with-project nil
      (efrit-test-with-model "
[[reply]]
text = \"Red: \\u001b[31m\\u0007\\u009b2J\\u202e\\tdone.\"
tool = [{ name = \"file_info\", input = { paths = [\"a\\u001b]0;x\\u0007b\"] } },
        { name = \"ask_user\", input = { question = \"Which\\u001b[2J?\" } }]
[[reply]]
status = 400
message = \"no\\u001b[2J\"
"
        (cl-letf (((symbol-function 'send-string-to-terminal)
                   (lambda (text &rest _) (setq printed (concat printed text)))))
          (efrit-batch-play (efrit-test-loop) "Go."))))
    (setq printed (decode-coding-string printed 'utf-8))
    (should (string-search "Red: ^[[31m^G\\u009b2J\\u202e\tdone." printed))
    (should (string-search "Which^[[2J?" printed))
    (should-not (string-match-p "[\0-\x08\x0b-\x1f\u007f-\u009f\u202e]" printed))))

(ert-deftest efrit-batch-takes-the-first-dashes-for-the-separator-and-no-others ()
  (should (equal "git log -- a.txt"
                 (efrit-batch--task '("--" "git" "log" "--" "a.txt"))))
  (should (equal "git log -- a.txt" (efrit-batch--task '("git log -- a.txt"))))
  (should (equal "" (efrit-batch--task '("--")))))

(provide 'batch-policy-tests)
;;; batch-policy-tests.el ends here
