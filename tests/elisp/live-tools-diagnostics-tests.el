;;; live-tools-diagnostics-tests.el --- Errors and warnings of a project  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'editing)
(require 'live)
(require 'flymake)

(defconst live-diagnostics-tests--sloppy
  '(("sloppy.el" . ";;; sloppy.el --- Sloppy  -*- lexical-binding: t; -*-

;;; Code:

\(defmacro sloppy-run ()
  (write-region \"\" nil (expand-file-name \"ran\"))
  nil)
\(sloppy-run)

\(defun sloppy-do (x)
  \"does it\"
  x)

\(provide 'sloppy)
;;; sloppy.el ends here
"))
  "A Lisp file whose macro leaves a trace where it is expanded.")

(defun live-diagnostics-tests--compile (command)
  "Run COMMAND as a compilation of the person's, and wait for its end."
  (with-current-buffer (save-window-excursion (compilation-start command))
    (should (efrit-test-wait-until
             (lambda () (string-match-p "^Compilation \\(?:finished\\|exited\\)"
                                        (buffer-string)))))))

;;; In a session

(ert-deftest efrit-live-diagnostics-a-model-asks-for-them ()
  (live-test-model-uses "get_diagnostics" "{ path = \"a.txt\" }"
                        "a.txt: Emacs has no checker for text-mode"))

;;; Flymake

(ert-deftest efrit-live-diagnostics-a-file-nobody-has-open-is-checked-and-closed ()
  (live-test-in live-diagnostics-tests--sloppy
    (let* ((before (buffer-list))
           (said (live-test-text "get_diagnostics" :path "sloppy.el")))
      (live-test-has said
                     "0 errors, 0 warnings, 5 notes from 1 checked file\n"
                     "sloppy.el: not started, as they may run the project's code: "
                     "elisp-flymake-byte-compile\n"
                     "sloppy.el\n"
                     "  11:4 note: First line should be capitalized [elisp-flymake-checkdoc]")
      (should-not (file-exists-p "ran"))
      (should-not (seq-filter #'buffer-file-name (seq-difference (buffer-list) before))))))

(ert-deftest efrit-live-diagnostics-an-unchecked-buffer-is-as-before-afterwards ()
  (live-test-in live-diagnostics-tests--sloppy
    (with-current-buffer (find-file-noselect "sloppy.el")
      (goto-char (point-max))
      (insert "(defun sloppy-late () \"also does it\")\n")
      (let ((functions flymake-diagnostic-functions))
        (live-test-has (live-test-text "get_diagnostics" :path "sloppy.el") "  16:24 note:" "checkdoc]")
        (should-not flymake-mode)
        (should (equal functions flymake-diagnostic-functions))
        (should (buffer-modified-p))))))

(ert-deftest efrit-live-diagnostics-findings-of-open-files-are-listed-for-the-project ()
  (live-test-in (append live-diagnostics-tests--sloppy '(("other.el" . "(car)\n")))
    (find-file-noselect "other.el")
    (with-current-buffer (find-file-noselect "sloppy.el")
      (setq-local flymake-diagnostic-functions (list #'elisp-flymake-checkdoc))
      (flymake-mode 1)
      (flymake-start))
    (let ((said (live-test-text "get_diagnostics")))
      (live-test-has said "from 1 checked file\nsloppy.el\n" "  11:4 note:")
      (live-test-lacks said "other.el"))
    (should (buffer-local-value 'flymake-mode (get-buffer "sloppy.el")))
    (live-test-has (live-test-text "get_diagnostics" :severity "error")
                   "0 errors, 0 warnings, 0 notes from 1 checked file")))

(ert-deftest efrit-live-diagnostics-a-silent-backend-is-named ()
  (live-test-in '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (setq-local flymake-diagnostic-functions (list #'live-diagnostics-tests--mute
                                                     #'live-diagnostics-tests--broken))
      (flymake-mode 1)
      (flymake-start))
    (let ((efrit-diagnostics-seconds 0.3))
      (live-test-has (live-test-text "get_diagnostics")
                     "a.txt: no report within 0.3 seconds from live-diagnostics-tests--mute\n"
                     "a.txt: failed: live-diagnostics-tests--broken"))))

(defun live-diagnostics-tests--mute (&rest _)
  "Never report.")

(defun live-diagnostics-tests--broken (&rest _)
  "Fail."
  (error "Broken"))

(ert-deftest efrit-live-diagnostics-waiting-can-be-stopped ()
  (live-test-in '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (setq-local flymake-diagnostic-functions (list #'live-diagnostics-tests--mute))
      (flymake-mode 1)
      (flymake-start))
    (let* ((result nil)
           (efrit-diagnostics-seconds 600)
           (call (live-test-begin "get_diagnostics" nil (lambda (given) (setq result given)))))
      (should-not result)
      (funcall (efrit-tool-call-stop call))
      (should (equal "The person stopped it." (plist-get result :text))))))

;;; Flycheck

(declare-function flycheck-mode "flycheck")

(ert-deftest efrit-live-diagnostics-flycheck-is-used-where-it-is-on ()
  (dolist (folder (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/*"))
    (add-to-list 'load-path folder t))
  (should (require 'flycheck nil t))
  (live-test-in live-diagnostics-tests--sloppy
    (with-current-buffer (find-file-noselect "sloppy.el")
      (set (make-local-variable 'flycheck-checker) 'emacs-lisp-checkdoc)
      (set (make-local-variable 'flycheck-check-syntax-automatically) nil)
      (flycheck-mode 1)
      (live-test-has (live-test-text "get_diagnostics" :path "sloppy.el")
                     "from 1 checked file\nsloppy.el\n" "[emacs-lisp-checkdoc]")
      (flycheck-mode -1))))

;;; Compilations

(ert-deftest efrit-live-diagnostics-errors-of-a-compilation-are-listed-by-file ()
  (live-test-in '(("src/a.c" . "int a;\n") ("b.c" . "int b;\n"))
    (live-diagnostics-tests--compile
     "echo 'src/a.c:3:7: error: no such thing'; echo 'b.c:2: warning: odd'; \
echo '/elsewhere/c.c:1: error: not ours'")
    (should (equal "1 error, 1 warning, 0 notes from *compilation*
b.c
  2 warning: odd [*compilation*]
src/a.c
  3:7 error: no such thing [*compilation*]"
                   (live-test-text "get_diagnostics")))
    (should (equal "1 error, 0 warnings, 0 notes from 1 checked file, *compilation*
a.c: not started, as they may run the project's code: flymake-cc
src/a.c
  3:7 error: no such thing [*compilation*]"
                   (live-test-text "get_diagnostics" :path "src/a.c")))))

(ert-deftest efrit-live-diagnostics-without-a-source-there-is-a-note ()
  (live-test-in '(("a.txt" . "one\n"))
    (live-test-has (live-test-text "get_diagnostics") "no source: no open file of the project has a checker")
    (live-test-has (live-test-refused "get_diagnostics" :severity "fatal") "not fatal")
    (live-test-has (live-test-refused "get_diagnostics" :path "b.txt") "no such file")))

;;; After an edit

(defun live-diagnostics-tests--find-bad (report &rest _)
  "Tell REPORT, a function of Flymake, of each \"bad\" in this buffer."
  (save-excursion
    (goto-char (point-min))
    (funcall report
             (cl-loop while (search-forward "bad" nil t)
                      collect (flymake-make-diagnostic (current-buffer) (- (point) 3) (point)
                                                       :error "bad is not good")))))

(ert-deftest efrit-live-diagnostics-follow-an-edit-where-the-person-wants-them ()
  (editing-with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (add-hook 'flymake-diagnostic-functions #'live-diagnostics-tests--find-bad nil t)
      (flymake-mode 1)
      (let* ((edit (lambda (old new)
                     (plist-get (editing-use "multi_edit" :edits
                                             (vector (list :path "a.txt" :old_text old :new_text new)
                                                     (list :path "b.txt" :old_text "two" :new_text "two two" :replace_all t)))
                                :text)))
             (plain (funcall edit "one" "bad")))
        (should-not (string-search "error" plain))
        (let ((efrit-edit-diagnostics t))
          (live-test-has (funcall edit "bad" "a bad")
                         "Edited a.txt" "After it: 1 error, 0 warnings from 1 checked file\n"
                         "a.txt\n" "1:3 error: bad is not good")
          (live-test-has (funcall edit "a bad" "good") "After it: 0 errors, 0 warnings"))))))

(ert-deftest efrit-live-diagnostics-of-an-edit-need-a-checker ()
  (editing-with '(("a.txt" . "one\n"))
    (let ((efrit-edit-diagnostics t))
      (should-not (string-search
                   "After it" (plist-get (editing-use "edit_file" :path "a.txt" :old_text "one"
                                                      :new_text "two")
                                         :text)))
      (should-not (find-buffer-visiting "a.txt")))))

(provide 'live-tools-diagnostics-tests)
;;; live-tools-diagnostics-tests.el ends here
