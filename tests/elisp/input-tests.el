;;; input-tests.el --- What the model gives a tool, checked before it runs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools of this Emacs, in a real loop: what does not fit their schema is
;; refused before anybody is asked, and the model is told what it was.

;;; Code:

(require 'cl-lib)
(require 'looping)
(require 'efrit-run)

(defconst input-test--misfits
  '(("todo_write" "{\"todos\":[{\"content\":\"a\",\"status\":\"completed\"}]}"
     "todos.0.status: must be one of pending, doing, done")
    ("todo_write" "{\"todos\":[\"just a text\"]}" "todos.0: must be of type object")
    ("todo_write" "{\"todos\":[{\"content\":\"a\"}]}" "todos.0: status is missing")
    ("ask_user" "{\"question\":\"Which?\",\"options\":[1]}" "options.0: must be of type string")
    ("eval_sexp" "{}" "code is missing")
    ("eval_sexp" "{\"code\":\"1\",\"cmd\":\"2\"}" "there is no argument cmd; there are: code")
    ("edit_file" "{\"path\":\"a.txt\",\"old_text\":1,\"new_text\":\"b\"}"
     "old_text: must be of type string")
    ("compile" "{\"timeout\":0}" "timeout: 0 is less than the minimum of 1"))
  "Tools of Emacs with an input, JSON, and what the model is told of it.")

(ert-deftest efrit-input-that-does-not-fit-a-tool-of-emacs-is-refused-by-name ()
  "Members of members, enumerations, kinds, bounds, and names that are none."
  (loop-test-with (format "
[[reply]]
tool = [ %s ]
[[reply]]
text = \"I see.\"
" (mapconcat (pcase-lambda (`(,tool ,input ,_))
               (format "{ name = \"%s\", input_json = '''%s''' }" tool input))
             input-test--misfits ", ")) loop
    (setf (efrit-loop-rules loop) '((t t ask)))
    (efrit-test-finish loop "Go.")
    (should-not (efrit-loop-todos loop))
    (should-not (assq 'ask loop-test--events))
    (cl-loop for use in (efrit-loop-run loop)
             for (tool input problem) in input-test--misfits
             do (ert-info ((format "%s %s" tool input))
                  (should-not (efrit-use-begun use))
                  (should (equal "error" (plist-get (efrit-use-result use) :status)))
                  (should (string-prefix-p (format "§ %s was not run: %s" tool problem)
                                           (plist-get (efrit-use-result use) :text)))))))

(ert-deftest efrit-input-that-fits-runs ()
  "An optional argument may be null, and what every tool takes is no unknown name."
  (loop-test-with "
[[reply]]
tool = [ { name = \"todo_write\", input = { todos = [{ content = \"a\", status = \"done\" }] } },
         { name = \"checkpoint\", input_json = '{\"label\":null,\"max_tokens\":500}' } ]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-finish loop "Go.")
    (dolist (use (efrit-loop-run loop))
      (ert-info ((efrit-use-name use))
        (should (equal "success" (plist-get (efrit-use-result use) :status)))))
    (should (= 1 (length (efrit-loop-todos loop))))))

(ert-deftest efrit-input-a-tool-that-prompts-gets-an-error-and-nobody-is-asked ()
  "A hook of the person's that asks in the minibuffer does not open a prompt."
  (loop-test-with "
[[reply]]
tool = [ { name = \"list_diagnostics\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \"Done.\"
" loop
    (let ((tool (copy-sequence (efrit-tool-get "checkpoint"))))
      (setf (efrit-tool-name tool) "list_diagnostics"
            (efrit-tool-parameters tool) '(:type "object" :properties (:path (:type "string")))
            (efrit-tool-async tool) nil
            (efrit-tool-function tool) (lambda (_arguments _call) (y-or-n-p "Really? ")))
      (let ((efrit-tools--by-name (list (cons "list_diagnostics" tool))))
        (efrit-test-finish loop "Go.")))
    (should (string-match-p "reads from the minibuffer, which no tool may do"
                            (plist-get (efrit-use-result (car (efrit-loop-run loop))) :text)))))

(provide 'input-tests)
;;; input-tests.el ends here
