;;; export-tests.el --- Writing a session down  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar and a scripted model.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'scripted)
(require 'efrit-sessions)
(require 'org)

(defconst efrit-export-tests--odd
  "* no heading\n#+no_keyword\n```\nno fence\n```\n漢字 🧮\n"
  "A text that Markdown and Org would take for their own.")

(defmacro efrit-export-tests--with (document format &rest body)
  "Run BODY with the DOCUMENT of a small session as FORMAT."
  (declare (indent 2))
  `(efrit-test-with-project (list (cons "odd.txt" efrit-export-tests--odd))
     (efrit-test-with-model "
[[reply]]
thinking = \"A thought.\"
tool = [{ name = \"read_file\", input = { path = \"odd.txt\" } }]

[[reply]]
text = \"* The answer.\"

[[reply]]
text = \"Later.\"
"
       (let ((loop (efrit-test-loop))
             (,document nil))
         (efrit-test-finish loop "The question.")
         (efrit-sidecar-request 'worklog/drop (list :session_id (efrit-loop-id loop)
                                                    :handle "r1"))
         (efrit-test-finish loop "And later?")
         (efrit-export-session
          (seq-elt (plist-get (efrit-sidecar-request 'session/list nil) :sessions) 0) ,format
          (lambda (buffer)
            (with-current-buffer buffer
              (setq ,document (buffer-substring-no-properties (point-min) (point-max))))
            (kill-buffer buffer)))
         (should (efrit-test-wait-until (lambda () ,document)))
         ,@body))))

(ert-deftest efrit-sessions-export-as-markdown-with-evicted-turns ()
  "The document has every turn in order, and each text as it was."
  (efrit-export-tests--with document 'markdown
    (ert-info (document)
      (let ((case-fold-search nil)
            (at 0))
        (dolist (part '("# The question." "## Turn 1" "### Person" "The question."
                        "### Model" "A thought." "Uses read_file" "### Result r1: • Read odd.txt"
                        "````text\n" "```\n" "no fence\n" "漢字 🧮\n" "## Turn 2"
                        "* The answer." "## Turn 3" "And later?" "Later."))
          (let ((found (string-search part document at)))
            (ert-info ((format "missing: %s" part))
              (should found))
            (setq at found)))))))

(ert-deftest efrit-sessions-export-says-how-to-save-and-is-not-lost-at-the-end ()
  (efrit-test-with-project nil
    (efrit-test-with-model "[[reply]]\ntext = \"The answer.\"\n"
      (efrit-test-finish (efrit-test-loop) "The question.")
      (save-window-excursion
        (let ((default-directory efrit-test-project)
              (said nil)
              (exported nil))
          (efrit-sessions)
          (should (efrit-test-wait-until (lambda () (tabulated-list-get-id))))
          (cl-letf (((symbol-function 'message)
                     (lambda (format &rest arguments)
                       (when format
                         (setq said (apply #'format-message format arguments))))))
            (execute-kbd-macro (kbd "e RET"))
            (should (efrit-test-wait-until
                     (lambda () (setq exported (seq-find (lambda (buffer)
                                                           (string-match-p "\\`efrit-.*\\.md\\'"
                                                                           (buffer-name buffer)))
                                                         (buffer-list)))))))
          (should (string-match-p "\\`C-x C-s RET saves the session as .*/efrit-.*\\.md\\'" said))
          (with-current-buffer exported
            (should buffer-offer-save)
            (set-buffer-modified-p nil)
            (kill-buffer))
          (kill-buffer "*efrit sessions*"))))))

(ert-deftest efrit-export-writes-the-session-here ()
  (efrit-test-with-project nil
    (efrit-test-with-model "[[reply]]\ntext = \"The answer.\"\n"
      (let* ((loop (efrit-test-loop))
             (name (format "efrit-%s.md" (efrit-loop-id loop))))
        (efrit-test-finish loop "The question.")
        (save-window-excursion
          (let ((default-directory efrit-test-project))
            (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "markdown")))
              (call-interactively #'efrit-export)))
          (should (efrit-test-wait-until (lambda () (get-buffer name))))
          (with-current-buffer name
            (should (equal efrit-test-project default-directory))
            (should (string-match-p "The question\\.\\(?:.\\|\n\\)*The answer\\." (buffer-string)))
            (set-buffer-modified-p nil)
            (kill-buffer)))))))

(ert-deftest efrit-sessions-export-as-org-keeps-every-text-in-its-block ()
  "No text becomes a heading or a keyword of the document."
  (efrit-export-tests--with document 'org
    (with-temp-buffer
      (insert document)
      (delay-mode-hooks (org-mode))
      (let ((headings (org-map-entries (lambda () (org-get-heading t t t t)))))
        (should (member "Turn 1" headings))
        (should-not (member "The answer." headings))
        (should-not (member "no heading" headings)))
      (goto-char (point-min))
      (should (search-forward "\n,* The answer.\n" nil t)))))

(provide 'export-tests)
;;; export-tests.el ends here
