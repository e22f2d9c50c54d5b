;;; revert-tests.el --- Tests of buffers whose files a command changes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A real command of a real sidecar changes files that buffers visit.

;;; Code:

(require 'viewing)

(defmacro revert-test-with (files command &rest body)
  "Run BODY in a project with FILES, for a scenario of COMMAND and a look at a.txt.
`revert-test-run' has it do so."
  (declare (indent 2) (debug (form form body)))
  `(efrit-test-with-project ,files
     (efrit-test-with-model (revert-test--script ,command)
       (let ((efrit-permission-rules '((t t allow)))
             (before (buffer-list)))
         (unwind-protect
             (progn ,@body)
           (dolist (buffer (buffer-list))
             (when (and (not (memq buffer before)) (buffer-file-name buffer))
               (with-current-buffer buffer
                 (set-buffer-modified-p nil)
                 (kill-buffer)))))))))

(defun revert-test--script (command)
  "Return a scenario: COMMAND is run, then a.txt read."
  (format "
[[reply]]
tool = [{ name = \"run_command\", input = { command = %S } }]
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"a.txt\" } }]
[[reply]]
text = \"Done.\"
" command))

(defun revert-test-run ()
  "Let the model do its work in a new loop, and return the notes."
  (let* ((loop (efrit-test-loop))
         (notes nil))
    (efrit-loop-observe loop (lambda (_ event)
                               (when (eq (car event) 'note) (push (cadr event) notes))))
    (efrit-test-finish loop "Change it.")
    (efrit-test-wait-until (lambda () (null efrit-revert--queue)))
    (nreverse notes)))

(defun revert-test--visit (name)
  "Return a buffer that visits the file NAME of the project."
  (find-file-noselect (expand-file-name name efrit-test-project)))

(defun revert-test--lines (from to)
  "Return the lines FROM to TO, each with its number."
  (mapconcat (lambda (number) (format "line %d\n" number)) (number-sequence from to) ""))

(ert-deftest efrit-revert-takes-the-new-text-and-keeps-point-window-narrowing-and-mode ()
  (revert-test-with `(("a.txt" . ,(revert-test--lines 1 200)))
      "printf 'new first\\n' > b; cat a.txt >> b; echo last >> b; mv b a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (emacs-lisp-mode)
      (setq-local fill-column 33)
      (save-window-excursion
        (switch-to-buffer (current-buffer))
        (search-forward "line 100\n")
        (narrow-to-region (save-excursion (goto-char (point-min))
                                          (search-forward "line 50\n") (match-beginning 0))
                          (save-excursion (search-forward "line 150\n")))
        (set-window-start nil (save-excursion (search-backward "line 90\n")))
        (set-window-point nil (point))
        (let ((marker (copy-marker (point))))
          (should-not (revert-test-run))
          (should (looking-back "line 100\n" (line-beginning-position 0)))
          (should (= marker (point)))
          (should (= (window-point) (point)))
          (goto-char (window-start))
          (should (looking-at "line 90\n"))
          (should (string-prefix-p "line 50\n" (buffer-string)))
          (should (string-suffix-p "line 150\n" (buffer-string)))
          (widen)
          (should (equal (buffer-string)
                         (concat "new first\n" (revert-test--lines 1 200) "last\n")))
          (should-not (buffer-modified-p))
          (should (verify-visited-file-modtime))
          (should (derived-mode-p 'emacs-lisp-mode))
          (should (= fill-column 33)))))))

(ert-deftest efrit-revert-keeps-the-undo-history ()
  (revert-test-with '(("a.txt" . "one\ntwo\n")) "echo three >> a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (buffer-enable-undo)
      (goto-char (point-min))
      (insert "zero\n")
      (undo-boundary)
      (let ((save-silently t)) (save-buffer))
      (should-not (revert-test-run))
      (should (equal (buffer-string) "zero\none\ntwo\nthree\n"))
      (let ((inhibit-message t)
            (last-command nil))
        (undo)
        (should (equal (buffer-string) "zero\none\ntwo\n"))
        (should (buffer-modified-p))
        (undo-more 1))
      (should (equal (buffer-string) "one\ntwo\n")))))

(ert-deftest efrit-revert-keeps-an-unsaved-buffer-with-notes-to-person-and-model ()
  (revert-test-with '(("a.txt" . "one\n")) "echo two >> a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (insert "mine\n")
      (should (equal '("a.txt changed on disk, but its buffer has unsaved changes; \
it was not reverted")
                     (revert-test-run)))
      (should (equal (buffer-string) "mine\none\n"))
      (should (buffer-modified-p))
      (should-not (verify-visited-file-modtime))
      (let ((sent (efrit-test-sent-text)))
        (should (string-search "a.txt (unsaved buffer; the file on disk has changed since)"
                               sent))
        (should (string-match-p "1\\\\tmine\\\\n2\\\\tone" sent))))))

(ert-deftest efrit-revert-notes-kept-buffers-in-the-session ()
  (efrit-viewing-with-view (revert-test--script "echo two >> README.md")
    (let ((file (revert-test--visit "README.md")))
      (with-current-buffer file (insert "mine\n"))
      (setf (efrit-loop-rules view-loop) '((t t allow)))
      (efrit-viewing-type "Change it.")
      (efrit-viewing-shows "— README.md changed on disk")
      (efrit-test-rest view-loop)
      (should (= 1 (efrit-viewing-count "— README.md changed on disk")))
      (with-current-buffer file
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest efrit-revert-leaves-the-buffer-of-a-deleted-file-and-says-so ()
  (revert-test-with '(("a.txt" . "one\n") ("b.txt" . "kept\n")) "rm b.txt"
    (with-current-buffer (revert-test--visit "b.txt")
      (should (equal '("b.txt was deleted on disk; its buffer was kept") (revert-test-run)))
      (should (equal (buffer-string) "kept\n")))))

(ert-deftest efrit-revert-follows-in-a-buffer-that-is-read-only-and-leaves-it-so ()
  (revert-test-with '(("a.txt" . "one\n")) "echo two >> a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (read-only-mode 1)
      (should-not (revert-test-run))
      (should (equal (buffer-string) "one\ntwo\n"))
      (should buffer-read-only))))

(ert-deftest efrit-revert-takes-over-how-a-file-is-encoded ()
  (revert-test-with '(("a.txt" . "one\n") ("b.txt" . "grün\n"))
      "printf 'one\\r\\nzwei\\r\\n' > a.txt; printf 'gr\\374n und blau\\n' > b.txt"
    (let ((dos (revert-test--visit "a.txt"))
          (latin (revert-test--visit "b.txt")))
      (with-current-buffer latin
        (setq buffer-file-coding-system-explicit '(iso-latin-1-unix . iso-latin-1-unix)))
      (should-not (revert-test-run))
      (with-current-buffer dos
        (should (equal (buffer-string) "one\nzwei\n"))
        (should (eq 1 (coding-system-eol-type buffer-file-coding-system))))
      (with-current-buffer latin
        (should (equal (buffer-string) "grün und blau\n"))
        (should (coding-system-equal buffer-file-coding-system 'iso-latin-1-unix))))))

(ert-deftest efrit-revert-runs-the-hooks-of-reverting-once ()
  (revert-test-with '(("a.txt" . "one\n")) "echo two >> a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (let ((ran nil))
        (add-hook 'before-revert-hook (lambda () (push (buffer-string) ran)) nil t)
        (add-hook 'after-revert-hook (lambda () (push (buffer-string) ran)) nil t)
        (should-not (revert-test-run))
        (should (equal '("one\ntwo\n" "one\n") ran))))))

(ert-deftest efrit-revert-follows-many-files-and-those-of-other-folders-stay-as-they-are ()
  (let ((outside (make-temp-file "efrit-outside-" nil ".txt" "outside\n")))
    (unwind-protect
        (revert-test-with (cons '("a.txt" . "one\n")
                                (mapcar (lambda (number) (cons (format "d/%d.txt" number) "old\n"))
                                        (number-sequence 1 60)))
            (format "for f in d/*; do echo new > $f; done; echo new > %s" outside)
          (let ((buffers (mapcar (lambda (number) (revert-test--visit (format "d/%d.txt" number)))
                                 (number-sequence 1 60)))
                (other (find-file-noselect outside)))
            (should-not (revert-test-run))
            (dolist (buffer buffers)
              (should (equal "new\n" (with-current-buffer buffer (buffer-string)))))
            (should (equal "outside\n" (with-current-buffer other (buffer-string))))))
      (delete-file outside))))

(ert-deftest efrit-revert-does-nothing-if-the-option-is-nil ()
  (revert-test-with '(("a.txt" . "one\n")) "echo two >> a.txt"
    (with-current-buffer (revert-test--visit "a.txt")
      (let ((efrit-revert-buffers nil))
        (should-not (revert-test-run))
        (should (equal (buffer-string) "one\n"))))))

(ert-deftest efrit-revert-follows-the-changes-of-a-stopped-command ()
  (revert-test-with '(("a.txt" . "one\n")) "echo two >> a.txt; touch done; sleep 600"
    (with-current-buffer (revert-test--visit "a.txt")
      (let ((loop (efrit-test-loop)))
        (efrit-do-say loop "Change it.")
        (should (efrit-test-wait-until
                 (lambda () (file-exists-p (expand-file-name "done" efrit-test-project)))))
        (efrit-stop loop)
        (should (efrit-test-wait-until (lambda () (equal (buffer-string) "one\ntwo\n"))))))))

(provide 'revert-tests)
;;; revert-tests.el ends here
