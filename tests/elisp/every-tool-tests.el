;;; every-tool-tests.el --- Each tool of the sidecar, in a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)
(require 'looping)

(defconst every-tool--uses
  '(("file_info" . "{ paths = [\"a.txt\"] }")
    ("list_symbols" . "{ path = \"a.py\" }")
    ("project_files" . "{ pattern = \"*.txt\" }")
    ("project_map" . "{}")
    ("read_file" . "{ path = \"a.txt\" }")
    ("read_image" . "{ path = \"a.png\" }")
    ("recall_result" . "{}")
    ("run_command" . "{ command = \"echo ran\" }")
    ("search_content" . "{ pattern = \"two\" }")
    ("sdd_get_context" . "{}")
    ("sdd_context_check" . "{ change_description = \"Count lines\" }")
    ("mem_save" . "{ title = \"Lines\", content = \"They are counted.\" }")
    ("mem_search" . "{ query = \"lines\" }")
    ("mem_context" . "{}")
    ("mem_timeline" . "{ id = 1 }")
    ("mem_get_observation" . "{ id = 1 }")
    ("mem_stats" . "{}")
    ("mem_delete" . "{ id = 1 }")
    ("context_pack" . "{ query = \"lines\" }")
    ("vcs_blame" . "{ path = \"a.txt\" }")
    ("vcs_diff" . "{}")
    ("vcs_log" . "{}")
    ("vcs_show" . "{ revision = \"HEAD\" }")
    ("vcs_status" . "{}"))
  "A use of each tool of the sidecar: its name and its input as TOML.")

(defconst every-tool--picture
  (base64-decode-string
   (concat "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
           "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
  "A picture of one point.")

(defun every-tool--git (&rest arguments)
  "Run git with ARGUMENTS in the project."
  (should (zerop (apply #'call-process "git" nil nil nil "-c" "user.name=A"
                        "-c" "user.email=a@example.org" arguments))))

(defun every-tool--turns ()
  "Return what the model does in each turn, a list of lists.
What is remembered is looked at once it is, and forgotten last."
  (let ((first (assoc "mem_save" every-tool--uses))
        (last (assoc "mem_delete" every-tool--uses)))
    (list (list first) (remove first (remove last every-tool--uses)) (list last))))

(defun every-tool--reply (uses)
  "Return a reply as TOML.
In it the model makes USES."
  (format "[[reply]]\ntool = [ %s ]"
          (mapconcat (pcase-lambda (`(,name . ,input))
                       (format "{ name = \"%s\", input = %s }" name input))
                     uses ", ")))

(defun every-tool--done ()
  "Return each use that has ended in the loop under test."
  (cl-loop for event in loop-test--events
           when (and (eq (car event) 'use) (eq (efrit-use-state (cadr event)) 'done))
           collect (cadr event)))

(ert-deftest efrit-every-tool-of-the-sidecar-works-in-a-session ()
  (loop-test-with (format "
%s
[[reply]]
text = \"Done.\"
" (mapconcat #'every-tool--reply (every-tool--turns) "\n")) loop
    (efrit-test-write "a.py" "def f():\n    pass\n")
    (editing-write-bytes "a.png" every-tool--picture)
    (every-tool--git "add" ".")
    (every-tool--git "commit" "--quiet" "-m" "Begin")
    (should-not (cl-set-exclusive-or (mapcar #'car every-tool--uses)
                                     (mapcar (lambda (tool) (plist-get tool :name))
                                             (efrit-test-offered))
                                     :test #'equal))
    (efrit-test-finish loop "Use them all.")
    (let ((done (every-tool--done)))
      (should-not (cl-set-exclusive-or (mapcar #'efrit-use-name done)
                                       (mapcar #'car every-tool--uses) :test #'equal))
      (dolist (use done)
        (ert-info ((format "%s: %s" (efrit-use-name use)
                           (plist-get (efrit-use-result use) :text)))
          (should (equal "success" (plist-get (efrit-use-result use) :status)))
          (should (plist-get (efrit-use-result use) :handle)))))))

(provide 'every-tool-tests)
;;; every-tool-tests.el ends here
