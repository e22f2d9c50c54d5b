;;; remote-tests.el --- Working on another machine  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the model, its tools and the person see of a remote project.

;;; Code:

(require 'cl-lib)
(require 'over-there)
(require 'efrit-do)
(require 'efrit-files)
(require 'efrit-run)
(require 'efrit-sessions)
(require 'efrit-transcript)
(require 'seq)

;; From Emacs 30 on, without it no timer runs while TRAMP waits.
(defvar tramp-dont-suspend-timers)

;;; Working there

(ert-deftest efrit-remote-tools-run-beside-the-files ()
  "A session in a remote folder has its sidecar there, and none is started here."
  (efrit-over-there-with-project '(("AGENTS.md" . "Be kind to files.\n")
                                ("a.txt" . "one\nneedle\n") ("sub/b.txt" . "two\n"))
    (efrit-test-with-model "
[[reply]]
tool = [
  { name = \"project_files\", input = {} },
  { name = \"read_file\", input = { path = \"a.txt\" } },
  { name = \"search_content\", input = { pattern = \"needle\" } },
  { name = \"run_command\", input = { command = \"echo \\\"<$INSIDE_EMACS> $PWD\\\"\" } },
]
[[reply]]
text = \"Done.\"
"
      (let* ((efrit-permission-rules '((t t allow)))
             (loop (efrit-do "Look around.")))
        (should (eq 'idle (efrit-test-rest loop)))
        (should (equal efrit-test-project (efrit-loop-root loop)))
        (let ((texts (mapcar (lambda (use) (plist-get (efrit-use-result use) :text))
                             (efrit-loop-run loop)))
              (sent (efrit-test-sent-text)))
          (should (string-match-p "b\\.txt" (nth 0 texts)))
          (should (string-match-p "needle" (nth 1 texts)))
          (should (string-match-p "a\\.txt" (nth 2 texts)))
          (should (string-match-p "<.*tramp" (nth 3 texts)))
          (should (string-match-p (directory-file-name efrit-over-there-local) (nth 3 texts)))
          (should (string-match-p "Be kind to files" sent))
          (should-not (string-match-p "/mock:" sent)))
        (should-not (efrit-sidecar-process))
        (should (efrit-sidecar-process efrit-over-there-host))))))

(ert-deftest efrit-remote-buffers-not-saved-are-read-as-they-stand ()
  "The model reads a remote file's buffer, and after a save its file."
  (efrit-over-there-with-project '(("a.txt" . "on disk\n"))
    (let ((loop (efrit-test-loop))
          (visiting (find-file-noselect (expand-file-name "a.txt")))
          (inhibit-message t))
      (cl-flet ((read () (plist-get (efrit-test-tool (efrit-loop-id loop) "read_file"
                                                     '(:path "a.txt"))
                                    :text)))
        (with-current-buffer visiting
          (insert "not saved ü yet\n")
          (efrit-sync-flush)
          (should (string-match-p "not saved ü yet" (read)))
          (save-buffer)
          (should-not (string-match-p "unsaved" (read)))
          (kill-buffer))))))

(ert-deftest efrit-remote-the-root-of-a-folder-is-found-by-one-script ()
  "It is that of version control; Emacs then knows the true names of root and home."
  (efrit-over-there-with-project '(("sub/deep/a.txt" . "one\n"))
    (let ((efrit-host--true-names (make-hash-table :test #'equal))
          (default-directory (expand-file-name "sub/deep/"))
          (home (concat efrit-over-there-host (directory-file-name (file-truename "~"))))
          (asked 0))
      (cl-letf* ((run (symbol-function 'process-file))
                 ((symbol-function 'process-file)
                  (lambda (&rest arguments) (cl-incf asked) (apply run arguments)))
                 ((symbol-function 'file-truename) (lambda (file &rest _) (error "TRAMP: %s" file))))
        (should (equal efrit-test-project (efrit-do-root)))
        (should (= 1 asked))
        (should (equal home (efrit-host-true-name (concat efrit-over-there-host "~"))))
        (should (equal (directory-file-name efrit-test-project)
                       (efrit-host-true-name efrit-test-project))))
      (should-not (efrit-host-find-root (concat efrit-over-there-host "/")))
      ;; What the person has set counts.
      (let ((project-find-functions (list (lambda (folder) (cons 'transient folder)))))
        (should (equal default-directory (efrit-host-find-root default-directory)))))))

(ert-deftest efrit-remote-instructions-that-may-not-be-sent-are-named ()
  "Neither a link to the outside nor a secret, but a file that is there; of a long one a note."
  (efrit-over-there-with-project '(("CLAUDE.md" . "Use tabs.\n") (".env" . "hidden\n"))
    (let* ((loop (efrit-test-loop))
           (notes nil)
           (efrit-instruction-files '("AGENTS.md" ".env" "CLAUDE.md")))
      (efrit-loop-observe loop (lambda (_ event)
                                 (when (eq (car event) 'note)
                                   (push (cadr event) notes))))
      (make-symbolic-link "/etc/passwd" (expand-file-name "AGENTS.md" efrit-over-there-local))
      (should (equal '("[Instructions of the project, from CLAUDE.md:]\nUse tabs.\n")
                     (efrit-context--instructions loop)))
      (should (string-match-p "AGENTS.md was not sent: .*outside" (cadr notes)))
      (should (string-match-p ".env was not sent: .*secrets" (car notes)))
      (let ((efrit-instruction-most-bytes 5))
        (should (string-match-p "not sent: it has 10 bytes"
                                (car (efrit-context--instructions loop))))))))

(ert-deftest efrit-remote-syncing-asks-nothing-of-the-other-machine ()
  "Sending buffers needs no round trip: it works while TRAMP cannot."
  (efrit-over-there-with-project '(("a.txt" . "on disk\n"))
    (let ((loop (efrit-test-loop))
          (visiting (find-file-noselect (expand-file-name "a.txt"))))
      (with-current-buffer visiting
        (insert "typed\n")
        (cl-letf (((symbol-function 'tramp-send-command)
                   (lambda (&rest _) (error "TRAMP was asked"))))
          (efrit-sync-flush)
          (should (string-match-p "typed"
                                  (plist-get (efrit-test-tool (efrit-loop-id loop) "read_file"
                                                              '(:path "a.txt"))
                                             :text)))
          (should (eq loop (efrit-loop-current))))
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest efrit-remote-files-are-edited-and-undone-from-here ()
  "The model's edit of a remote file is made, recorded there, and taken back."
  (efrit-over-there-with-project '(("a.txt" . "one\ntwo ü\n"))
    (efrit-test-with-model "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
tool = [
  { name = \"edit_file\", input = { path = \"a.txt\", old_text = \"two ü\", new_text = \"zwei\" } },
  { name = \"create_file\", input = { path = \"new/b.txt\", content = \"made\\n\" } },
]
[[reply]]
tool = [ { name = \"undo_edit\", input = {} } ]
[[reply]]
text = \"Done.\"
"
      (let* ((inhibit-message t)
             (efrit-permission-rules '((t t allow)))
             (before (buffer-list))
             (edited nil)
             (loop (efrit-test-loop))
             (here (expand-file-name "a.txt" efrit-over-there-local))
             (made (expand-file-name "new/b.txt" efrit-over-there-local)))
        (cl-flet ((text (file) (with-temp-buffer
                                 (insert-file-contents file)
                                 (buffer-string))))
          (efrit-loop-observe
           loop (lambda (_ event)
                  (pcase event
                    ((and `(use ,use) (guard (and (equal "create_file" (efrit-use-name use))
                                                  (eq 'done (efrit-use-state use)))))
                     (setq edited (cons (text here) (text made)))))))
          (unwind-protect
              (progn
                (efrit-test-finish loop "Translate.")
                (should (equal '("one\nzwei\n" . "made\n") edited))
                (should (equal "one\nzwei\n" (text here)))
                (should-not (file-exists-p made))
                (should-not (efrit-sidecar-process)))
            (dolist (buffer (seq-difference (buffer-list) before))
              (when (buffer-file-name buffer)
                (kill-buffer buffer)))))))))

(ert-deftest efrit-remote-deferred-work-waits-while-tramp-is-busy ()
  "Work that is due while TRAMP waits is done afterwards, and breaks nothing."
  (efrit-over-there-with-project '(("a.txt" . "one\n"))
    (let ((tramp-dont-suspend-timers t)
          (file (expand-file-name "a.txt"))
          found within)
      (run-at-time 0.2 nil (lambda ()
                             (setq within (efrit-remote-busy-p))
                             (efrit-defer (lambda () (setq found (file-attributes file))))))
      (should (= 0 (process-file "sleep" nil nil nil "1")))
      (should within)
      (should-not found)
      (should (efrit-test-wait-until (lambda () found)))
      (should-not (efrit-remote-busy-p)))))

(ert-deftest efrit-remote-work-deferred-while-tramp-holds-timers-back-is-done ()
  "A sentinel that runs while TRAMP waits defers work; TRAMP suspends timers then."
  (efrit-over-there-with-project '(("a.txt" . "one\n"))
    (let (found)
      (make-process :name "short" :command '("true") :noquery t
                    :sentinel (lambda (&rest _)
                                (let (timer-list timer-idle-list)
                                  (efrit-defer (lambda () (setq found t))))))
      (should (efrit-test-wait-until (lambda () found) 10)))))

(ert-deftest efrit-remote-much-text-of-every-script-makes-the-round-trip ()
  "A megabyte comes back as it went, whatever a terminal would make of it."
  (efrit-over-there-with-project nil
    (let* ((text (apply #'concat
                        (make-list 21000 "Größe 漢字 🧮👩🏽‍🚀 \0\3\4\10\21\25\32\177\r\n\t\"\\ ")))
           (id (efrit-session-open efrit-test-project))
           (envelope (efrit-test-tool id "echo" (list :value text))))
      (should (< 1000000 (string-bytes text)))
      (should (equal text (plist-get (plist-get envelope :data) :value)))
      (setq text (make-string 1000000 ?x))
      (setq envelope (efrit-test-tool id "echo" (list :value text)))
      (should (equal text (plist-get (plist-get envelope :data) :value))))))

(ert-deftest efrit-remote-and-local-sessions-work-at-once ()
  "Each session has its own sidecar, and each sidecar its own sessions."
  (efrit-test-with-project '(("a.txt" . "the same file\n"))
    (let* ((here efrit-test-project)
           (local (efrit-test-loop)))
      (efrit-over-there-run
       (lambda ()
         (let* ((remote (efrit-test-loop))
                (there-p (lambda (loop number)
                           (string-search "tramp"
                                          (efrit-over-there-shell
                                           (efrit-loop-id loop)
                                           (format "echo %d $INSIDE_EMACS" number))))))
           (should-not (funcall there-p local 1))
           (should (funcall there-p remote 2))
           (should-not (funcall there-p local 3))
           (should (funcall there-p remote 4))
           (should (eq local (efrit-loop-latest here)))
           (should (eq remote (efrit-loop-latest efrit-test-project)))
           (should (equal (list (efrit-loop-id local)) (efrit-supervisor-sessions)))
           (should (equal (list (efrit-loop-id remote))
                          (efrit-supervisor-sessions efrit-over-there-host)))
           (efrit-sidecar-stop efrit-over-there-host)
           (should (efrit-sidecar-process))
           (should (equal "open" (plist-get (efrit-test-session-status (efrit-loop-id local))
                                            :state)))))))))

(ert-deftest efrit-remote-place-and-region-go-with-a-message-by-their-names-there ()
  "The model is told the file's name from the root on; of files elsewhere nothing."
  (efrit-over-there-with-project '(("a.txt" . "one\ntwo\n"))
    (let ((loop (efrit-test-loop))
          (elsewhere (expand-file-name "a.txt" efrit-over-there-local)))
      (cl-flet ((said (file)
                  (with-current-buffer (find-file-noselect file)
                    (unwind-protect
                        (mapconcat (lambda (block) (plist-get block :text))
                                   (efrit-context-blocks loop "Go." (efrit-context-current)) "\n")
                      (kill-buffer)))))
        (should (string-match-p "in a\\.txt, line 1" (said (expand-file-name "a.txt"))))
        (should-not (string-match-p "The person is in" (said elsewhere)))))))

(ert-deftest efrit-remote-files-are-completed-in-the-reply-box ()
  "Names behind an @ are those of the project there, below its root."
  (efrit-over-there-with-project '(("a.txt" . "") ("sub/b.txt" . ""))
    (call-process "git" nil nil nil "-C" efrit-over-there-local "add" ".")
    (with-temp-buffer
      (setq default-directory efrit-test-project)
      (should (equal '("a.txt" "sub/b.txt") (sort (efrit-attach-files efrit-test-project) #'string<))))))

(ert-deftest efrit-remote-permissions-are-remembered-under-the-remote-name ()
  "A rule for a folder there does not apply to the folder of that name here."
  (efrit-over-there-with-project nil
    (efrit-permissions-remember efrit-test-project '(command (all) allow))
    (should (efrit-permissions-of efrit-test-project))
    (should-not (efrit-permissions-of efrit-over-there-local))))

(ert-deftest efrit-remote-batch-works-there ()
  "In batch the project of a remote folder is worked on, on its machine."
  (efrit-over-there-with-project '(("a.txt" . "one\n"))
    (efrit-test-with-model "
[[reply]]
tool = [ { name = \"read_file\", input = { path = \"a.txt\" } } ]
[[reply]]
text = \"All read.\"
"
      (let* (loop
             (printed (with-output-to-string
                        (cl-letf (((symbol-function 'send-string-to-terminal)
                                   (lambda (text &rest _) (princ text))))
                          (setq loop (efrit-batch-run "Read."))))))
        (should (string-match-p "All read" printed))
        (should (equal efrit-test-project (efrit-loop-root loop)))
        (should (efrit-sidecar-process efrit-over-there-host))))))

;;; Secrets

(ert-deftest efrit-remote-the-key-stays-here ()
  "Nothing that TRAMP starts over there has the key of the model."
  (efrit-over-there-with-program-project nil
    (let ((had (getenv "ANTHROPIC_API_KEY")))
      (unwind-protect
          (progn
            (setenv "ANTHROPIC_API_KEY" "key-of-the-person")
            (let ((pid (efrit-over-there-pid (efrit-session-open efrit-test-project))))
              (with-temp-buffer
                (insert-file-contents-literally (format "/proc/%d/environ" pid))
                (should (search-forward "EFRIT_BUDGET_HOME" nil t))
                (goto-char (point-min))
                (should-not (search-forward "key-of-the-person" nil t)))))
        (setenv "ANTHROPIC_API_KEY" had)))))

(provide 'remote-tests)
;;; remote-tests.el ends here
