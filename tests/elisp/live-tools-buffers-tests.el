;;; live-tools-buffers-tests.el --- What the model sees of buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)

;;; In a session

(ert-deftest efrit-live-buffers-a-model-lists-and-reads-them ()
  (with-current-buffer (get-buffer-create "*live notes*")
    (insert "first\nsecond größe\n")
    (unwind-protect
        (progn
          (live-test-model-uses "list_buffers" "{ pattern = \"live notes\" }"
                                "*live notes*  fundamental-mode  2 lines")
          (live-test-model-uses "read_buffer" "{ buffer = \"*live notes*\", start_line = 2 }"
                                "2\tsecond größe"))
      (kill-buffer))))

;;; Lists

(ert-deftest efrit-live-buffers-those-of-the-project-are-listed-first ()
  (live-test-in '(("src/a.txt" . "one\n") ("b.txt" . "two\n"))
    (find-file-noselect "src/a.txt")
    (with-current-buffer (find-file-noselect "b.txt")
      (goto-char (point-max))
      (insert "three\n"))
    (let ((default-directory "/"))
      (generate-new-buffer "elsewhere"))
    (live-test-has (live-test-text "list_buffers")
                   "In the project:\n"
                   "a.txt  text-mode  1 line  src/a.txt\n"
                   "b.txt *  text-mode  2 lines  b.txt\n"
                   "Others:\n"
                   "elsewhere  ")))

(ert-deftest efrit-live-buffers-internal-and-dead-ones-are-not-listed ()
  (live-test-in-session nil
    (generate-new-buffer " hidden live")
    (kill-buffer (generate-new-buffer "dead live"))
    (generate-new-buffer "living live")
    (live-test-has (live-test-text "list_buffers" :pattern "LIVING") "1 buffer, 0 of the project")
    (live-test-lacks (live-test-text "list_buffers") "hidden live" "dead live")
    (live-test-has (live-test-refused "read_buffer" :buffer "dead live") "There is no buffer dead live")))

(ert-deftest efrit-live-buffers-a-name-with-a-line-break-takes-one-line ()
  (live-test-in nil
    (generate-new-buffer "odd\nname")
    (generate-new-buffer "bid\u202ei\u3164\u2028")
    (live-test-has (live-test-text "list_buffers" :pattern "odd") "odd\\x0aname  fundamental-mode")
    (live-test-has (live-test-text "list_buffers" :pattern "bid")
                   "bid\\x202ei\\x3164\\x2028  fundamental-mode")))

;;; Reading

(ert-deftest efrit-live-buffers-unsaved-text-is-read-with-its-numbers ()
  (live-test-in-session '(("a.txt" . "one\ntwo\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (goto-char (point-max))
      (insert "three"))
    (should (equal "a.txt (3 lines, text-mode, a.txt, not saved)\n1\tone\n2\ttwo\n3\tthree"
                   (live-test-text "read_buffer" :buffer "a.txt")))
    (should (equal "a.txt (3 lines, text-mode, a.txt, not saved)\n2\ttwo"
                   (live-test-text "read_buffer" :buffer "a.txt" :start_line 2 :end_line 2)))
    (live-test-has (live-test-text "read_buffer" :buffer "a.txt" :tail 1) "saved)\n3\tthree")))

(ert-deftest efrit-live-buffers-a-file-is-found-by-its-path ()
  (live-test-in-session '(("src/a.txt" . "one\n") ("b.txt" . "two\n"))
    (find-file-noselect "src/a.txt")
    (live-test-has (live-test-text "read_buffer" :buffer "src/a.txt") "1\tone")
    (live-test-has (live-test-refused "read_buffer" :buffer "b.txt")
                   "b.txt is not open in Emacs; read_file reads it")
    (live-test-has (live-test-refused "read_buffer" :buffer "c.txt") "There is no buffer c.txt")))

(ert-deftest efrit-live-buffers-of-a-narrowed-one-the-visible-lines-are-read ()
  (live-test-in-session '(("a.txt" . "one\ntwo\nthree\nfour\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (narrow-to-region 5 15))
    (should (equal "a.txt (4 lines, text-mode, a.txt, saved, narrowed to lines 2 to 3)\n2\ttwo\n3\tthree"
                   (live-test-text "read_buffer" :buffer "a.txt")))
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :start_line 4)
                   "lines 2 to 3 (narrowed), but no line 4")
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :end_line 1)
                   "narrowed to lines 2 to 3")))

(ert-deftest efrit-live-buffers-an-indirect-one-names-its-base ()
  (live-test-in-session '(("a.txt" . "one\n"))
    (make-indirect-buffer (find-file-noselect "a.txt") "other view")
    (live-test-has (live-test-text "read_buffer" :buffer "other view")
                   "a.txt, saved, indirect, of a.txt)\n1\tone")
    (live-test-has (live-test-text "list_buffers" :pattern "other view")
                   "other view  fundamental-mode  1 line  a.txt  indirect, of a.txt")))

(ert-deftest efrit-live-buffers-a-huge-line-is-cut-with-a-note ()
  (live-test-in-session nil
    (with-current-buffer (generate-new-buffer "huge")
      (insert (make-string 5000 ?x) "\nnext\n"))
    (let ((efrit-buffer-most-characters 1000))
      (live-test-has (live-test-text "read_buffer" :buffer "huge")
                     "huge (5006 characters, fundamental-mode)\n1\txxx"
                     "[Cut after 1000 characters, in line 1 of 2;"))
    (live-test-has (live-test-text "read_buffer" :buffer "huge" :start_line 2) "2\tnext")))

(ert-deftest efrit-live-buffers-bytes-are-not-read-as-text ()
  (live-test-in-session nil
    (with-current-buffer (generate-new-buffer "bytes")
      (set-buffer-multibyte nil)
      (insert "abc\377\376"))
    (with-current-buffer (generate-new-buffer "zeros")
      (insert "a\0b"))
    (generate-new-buffer "empty")
    (live-test-has (live-test-text "read_buffer" :buffer "bytes") "It is binary, and not shown.")
    (live-test-has (live-test-text "read_buffer" :buffer "zeros") "It is binary, and not shown.")
    (live-test-has (live-test-text "read_buffer" :buffer "empty") "It is empty.")))

(ert-deftest efrit-live-buffers-invalid-line-numbers-are-refused ()
  (live-test-in-session '(("a.txt" . "one\n"))
    (find-file-noselect "a.txt")
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :start_line 0) "0 is not a valid line number")
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :start_line 2) "no line 2")
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :start_line 2 :end_line 1)
                   "an end_line of 2 or more, not 1")
    (live-test-has (live-test-refused "read_buffer" :buffer "a.txt" :tail 1 :end_line 1)
                   "Give either tail")))

;;; Secrets

(ert-deftest efrit-live-buffers-with-secrets-are-not-read ()
  (live-test-in-session '((".env" . "KEY=hunter2\n") (".env.example" . "KEY=\n") ("id_rsa" . "hunter2\n"))
    (find-file-noselect ".env")
    (find-file-noselect "id_rsa")
    (find-file-noselect ".env.example")
    (make-indirect-buffer (get-buffer ".env") "innocent")
    (with-current-buffer (generate-new-buffer " *password*")
      (insert "hunter2"))
    (with-current-buffer (generate-new-buffer "entry")
      (insert "hunter2")
      (setq major-mode 'pass-view-mode))
    (with-current-buffer (generate-new-buffer ".authinfo")
      (insert "hunter2"))
    (dolist (name '(".env" "id_rsa" "innocent" " *password*" "entry" ".authinfo" " *Minibuf-0*"))
      (let ((said (live-test-refused "read_buffer" :buffer name)))
        (live-test-has said "the person")
        (live-test-lacks said "hunter2")))
    (live-test-has (live-test-text "read_buffer" :buffer ".env.example") "1\tKEY=")))

(ert-deftest efrit-live-buffers-secret-files-of-the-settings-are-not-read ()
  (let ((process-environment (cons "EFRIT_BUDGET_TOOLS__SECRET_FILES=[\"*.hush\"]"
                                   process-environment)))
    (live-test-in-session '(("a.hush" . "hunter2\n") ("a.txt" . "one\n"))
      (find-file-noselect "a.hush")
      (find-file-noselect "a.txt")
      (live-test-has (live-test-refused "read_buffer" :buffer "a.hush") "usually holds secrets")
      (live-test-has (live-test-text "read_buffer" :buffer "a.txt") "1\tone"))))

(ert-deftest efrit-live-buffers-and-the-sidecar-call-the-same-files-secret ()
  (live-test-in-session nil
    (let* ((names ["a.txt" ".env" ".ENV.local" ".env.example" "x/id_rsa" "id_rsa.pub" "id_rsa.old"
                   ".ssh/deep/key" ".ssh/config" ".ssh/a.pub" "a.pem/b.txt" "A.PEM" "gcloud/x/y"
                   ".gnupg/a/b" "service-account-1.json" ".aws/credentials" ".aws/config" "b.key"])
           (checked (efrit-sidecar-request
                     'changes/check (list :session_id live-test--session :paths names))))
      (should (equal (mapcar (lambda (file) (eq t (plist-get file :secret)))
                             (plist-get checked :files))
                     (mapcar (lambda (name) (efrit-host-secret-p (expand-file-name name)))
                             names))))))

(provide 'live-tools-buffers-tests)
;;; live-tools-buffers-tests.el ends here
