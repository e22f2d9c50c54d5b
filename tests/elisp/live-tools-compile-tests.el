;;; live-tools-compile-tests.el --- Compiling for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)
(require 'efrit-ask)

(defconst live-compile-tests--broken
  '(("Makefile" . "all:\n\tcc -c main.c\n")
    ("main.c" . "int main(void) {\n  return missing;\n}\n"))
  "A project in C that does not compile.")

;;; In a session

(ert-deftest efrit-live-compile-a-model-compiles-and-reads-the-errors ()
  (should (executable-find "cc"))
  (loop-test-with "
[[reply]]
tool = [ { name = \"compile\", input = { command = \"make\" } } ]
[[reply]]
expect_contains = \"main.c\\n  2:10 error:\"
text = \"Done.\"
" loop
    (pcase-dolist (`(,name . ,text) live-compile-tests--broken)
      (efrit-test-write name text))
    (efrit-test-finish loop "Compile.")
    (should (equal "Done." (loop-test--said)))
    (let ((name (format "*%s-compilation*" (file-name-nondirectory
                                            (directory-file-name efrit-test-project)))))
      (save-window-excursion
        (with-current-buffer name
          (next-error 1 t))
        (should (equal "main.c" (buffer-name (window-buffer))))
        (kill-buffer (window-buffer)))
      (kill-buffer name))))

(ert-deftest efrit-live-compile-the-question-shows-the-resolved-command ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"compile\", input = {} } ]
[[reply]]
expect_contains = \"did not allow this use of compile\"
text = \"Then not.\"
" loop
    (efrit-test-write ".dir-locals.el" "((nil . ((compile-command . \"touch compiled\"))))")
    (efrit-test-with-rules loop nil
      (efrit-do-say loop "Compile.")
      (let ((use (efrit-test-wait-until (lambda () (efrit-run-pending-use loop)))))
        (should (equal "command: touch compiled" (efrit-ask-arguments-text use)))
        (efrit-run-answer loop use 'deny))
      (should (eq 'idle (efrit-test-rest loop)))
      (should-not (file-exists-p "compiled")))))

(ert-deftest efrit-live-compile-that-never-ends-is-stopped-with-the-session ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"compile\", input = { command = \"trap '' INT; echo begun; echo $$ > pid; while :; do sleep 1; done\" } } ]
" loop
    (efrit-do-say loop "Compile.")
    (should (efrit-test-wait-until (lambda () (file-exists-p "pid"))))
    (should (equal (list (efrit-use-id (car (efrit-loop-run loop))) "begun\n")
                   (efrit-test-wait-until
                    (lambda () (cdr (assq 'output loop-test--events))))))
    (efrit-loop-stop loop)
    (should (eq 'idle (efrit-test-rest loop)))
    (efrit-test-should-end (efrit-test-take-pid "pid"))))

(ert-deftest efrit-live-compile-bytes-that-are-no-letters-reach-the-model ()
  (loop-test-with "
[[reply]]
tool = [ { name = \"compile\", input = { command = \"\"\"
printf 'x.c:1: error: od\\\\377d\\\\n'; for i in $(seq 600); do printf 'e\\\\314\\\\201'; done\"\"\" } } ]
[[reply]]
expect_contains = \"od\ufffdd\"
text = \"Done.\"
" loop
    (efrit-test-finish loop "Compile.")
    (should (equal "Done." (loop-test--said)))))

;;; Ends

(ert-deftest efrit-live-compile-the-output-follows-the-errors ()
  (live-test-in '(("a.txt" . "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (insert "unsaved"))
    (let ((result (live-test-use
                   "compile" :command "echo 'x.c:1:2: error: odd'; printf '\\033[1mbold\\033[0m\\n'; \
false")))
      (should (string-match-p
               (concat "\\`echo [^\n]+: exit 1 after [0-9.]+ s; 1 error, 0 warnings, 0 notes\n"
                       "Not saved, so compiled as on disk: a\\.txt\n"
                       "x\\.c\n  1:2 error: odd \\[\\*.+-compilation\\*\\]\n"
                       "Output, in \\*.+-compilation\\*:\n"
                       "x\\.c:1:2: error: odd\nbold\\'")
               (plist-get result :text)))
      (should (equal "success" (plist-get result :status)))
      (live-test-has (plist-get result :summary) "exit 1" "x.c\n  1:2 error: odd"))))

(ert-deftest efrit-live-compile-the-projects-command-runs-without-a-question ()
  (live-test-in '((".dir-locals.el" . "((nil . ((compile-command . \"echo from the project\")
                                                  (eval . (write-region \"\" nil \"ran\")))))"))
    (live-test-has (live-test-text "compile") "echo from the project: exit 0" "\nfrom the project")
    (should-not (file-exists-p "ran")))
  (live-test-in nil
    (let ((compile-command '(concat "echo " "my own")))
      (live-test-has (live-test-text "compile" :command " ") "echo my own: exit 0"))))

(ert-deftest efrit-live-compile-a-time-is-kept ()
  (live-test-in nil
    (live-test-has (live-test-refused "compile" :command "echo begun; sleep 600" :timeout 1)
                   "ended after" "give a longer timeout" "begun")))

(ert-deftest efrit-live-compile-output-without-end-is-ended ()
  (live-test-in nil
    (let ((efrit-compile-most-characters 20000))
      (live-test-has (live-test-refused "compile" :command "yes")
                     "ended after 20000 characters" "y\ny\n"))))

(ert-deftest efrit-live-compile-stopping-returns-the-output-and-leaves-no-process ()
  (live-test-in nil
    (let* ((result nil)
           (call (live-test-begin
                  "compile" (list :command "sleep 600 & echo $! > pid; trap '' INT; echo begun; \
while :; do sleep 1; done")
                  (lambda (given) (setq result given)))))
      (should (efrit-test-wait-until (lambda () (file-exists-p "pid"))))
      (efrit-tool-stop call)
      (should (efrit-test-wait-until (lambda () result)))
      (should (equal "error" (plist-get result :status)))
      (live-test-has (plist-get result :text) "stopped by the person" "begun")
      (efrit-test-should-end (efrit-test-take-pid "pid")))))

;;; What it leaves alone

(ert-deftest efrit-live-compile-the-persons-running-compilation-goes-on ()
  (live-test-in nil
    (let* ((name (efrit-compile--buffer-name live-test-root))
           (own (save-window-excursion
                  (compilation-start "sleep 600" nil (lambda (_) name)))))
      (live-test-has (live-test-text "compile" :command "echo another")
                     "Output, in " "<2>:" "another")
      (should (process-live-p (get-buffer-process own)))
      (set-process-query-on-exit-flag (get-buffer-process own) nil)
      (delete-process (get-buffer-process own)))))

(ert-deftest efrit-live-compile-no-window-changes-and-keys-are-not-passed-on ()
  (live-test-in nil
    (let ((windows (window-list))
          (process-environment (append '("LIVE_API_KEY=hunter2" "MY_TOKEN=hunter2"
                                         "LIVE_PLAIN=shown")
                                       process-environment)))
      (let ((said (live-test-text "compile" :command "env")))
        (live-test-has said "LIVE_PLAIN=shown")
        (live-test-lacks said "hunter2"))
      (should (equal windows (window-list))))))

(ert-deftest efrit-live-compile-bad-arguments-are-refused-with-a-reason ()
  (live-test-in nil
    (live-test-has (live-test-refused "compile" :command "true" :timeout 0) "1 to 86400")
    (let ((compile-command " "))
      (live-test-has (live-test-refused "compile") "no compile command; give one"))))

(provide 'live-tools-compile-tests)
;;; live-tools-compile-tests.el ends here
