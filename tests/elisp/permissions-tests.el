;;; permissions-tests.el --- What the model may do without asking  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The rules by themselves, across two Emacsen, and in a loop.

;;; Code:

(require 'scripted)
(require 'efrit-tools)
(require 'efrit-permissions)
(require 'efrit-run)

(defmacro efrit-permissions-tests--with-file (&rest body)
  "Run BODY with an `efrit-permissions-file' of its own, not there yet."
  `(let* ((folder (make-temp-file "efrit-permissions-" t))
          (efrit-permissions-file (expand-file-name "permissions.eld" folder))
          (efrit-permission-rules nil))
     (unwind-protect
         (progn ,@body)
       (delete-directory folder t))))

(defun efrit-permissions-tests--decide (tool arguments &optional rules policy)
  "Decide about TOOL with ARGUMENTS by RULES.
POLICY is the tool's own, by default `ask'."
  (efrit-permissions-decide tool (efrit-permissions-subjects tool arguments)
                            (or policy 'ask) rules))

(defun efrit-permissions-tests--grant (name tool arguments)
  "Return (RULE WORDS) of the grant NAME for a use of TOOL with ARGUMENTS, or nil."
  (cdr (assq name (efrit-permissions-offers
                   tool (efrit-permissions-subjects tool arguments)))))

(defun efrit-permissions-tests--command (command &optional cwd)
  "Return the input of a use of run_command with COMMAND in CWD."
  (decode-coding-string
   (efrit-json-write (append (list :command command) (and cwd (list :cwd cwd)))) 'utf-8))

(ert-deftest efrit-permissions-without-rules-the-tools-policy-stands ()
  "Reads are allowed, evaluation is asked about."
  (should (eq 'allow (efrit-permissions-tests--decide "read_file" "{}" nil 'allow)))
  (should (eq 'ask (efrit-permissions-tests--decide "eval_sexp" "{\"code\":\"1\"}")))
  (should (eq 'ask (efrit-tool-policy (efrit-tool-get "eval_sexp")))))

(ert-deftest efrit-permissions-the-session-comes-before-the-project-before-the-option ()
  "The first rule that fits decides, in this order."
  (efrit-permissions-tests--with-file
   (let* ((efrit-permission-rules '(("run" t deny)))
          (loop (efrit-loop-make "one" "/src/one/"))
          (decide (lambda ()
                    (efrit-permissions-tests--decide "run" "{}" (efrit-run-rules loop)))))
     (should (eq 'deny (funcall decide)))
     (efrit-permissions-remember "/src/one" '("run" (all) allow))
     (should (eq 'allow (funcall decide)))
     (setf (efrit-loop-rules loop) '(("other" t deny)))
     (should (eq 'allow (funcall decide)))
     (setf (efrit-loop-rules loop) '(("run" t ask)))
     (should (eq 'ask (funcall decide))))))

(ert-deftest efrit-permissions-a-pattern-is-matched-with-what-the-call-is-about ()
  "A command, code, a path or paths; case counts."
  (let ((rules '(("run" "\\`git " allow) (t "secret" deny) ("look" "a b\\'" allow))))
    (cl-flet ((decide (tool arguments)
                (efrit-permissions-tests--decide tool arguments rules)))
      (should (eq 'allow (decide "run" "{\"command\":\"git log\"}")))
      (should (eq 'ask (decide "run" "{\"command\":\"GIT log\"}")))
      (should (eq 'ask (decide "run" "{\"command\":\"rm -r git \"}")))
      (should (eq 'deny (decide "read" "{\"path\":\"secret.txt\"}")))
      (should (eq 'allow (decide "look" "{\"paths\":[\"a\",\"b\"]}")))
      (should (eq 'deny (decide "odd" "{\"other\":\"a secret\"}")))
      (should (eq 'deny (decide "multi_edit" "{\"edits\":[{\"path\":\"a\"},{\"path\":\"secret\"}]}")))
      (should (eq 'deny (decide "rename_file" "{\"path\":\"a\",\"to\":\"secret\"}"))))))

(ert-deftest efrit-permissions-a-command-is-remembered-for-its-very-text-and-folder ()
  "Agreement to one command in one folder is none to another, nor in another folder."
  (pcase-let* ((given (efrit-permissions-tests--command "make (all)"))
               (`(,rule ,words) (efrit-permissions-tests--grant 'exactly "run_command" given)))
    (should (equal "exactly this command" words))
    (pcase-dolist (`(,decision ,command ,cwd)
                   '((allow "make (all)" nil) (allow "make (all)" ".") (allow "make (all)" "./")
                     (ask "make (all); rm -r ." nil) (ask "echo\nmake (all)" nil)
                     (ask "make (all)" "sub") (ask "make (all)" "sub/..") (ask "make (all) " nil)))
      (ert-info ((format "%S in %S" command cwd))
        (should (eq decision (efrit-permissions-tests--decide
                              "run_command" (efrit-permissions-tests--command command cwd)
                              (list rule))))))))

(ert-deftest efrit-permissions-begin-with-means-whole-words-of-one-simple-command ()
  "Everything by which the shell would do more, or something else, is asked about."
  (pcase-let* ((given (efrit-permissions-tests--command "git status -s"))
               (`(,rule ,words) (efrit-permissions-tests--grant 'alike "run_command" given)))
    (should (equal "commands that begin with `git status`" words))
    (dolist (command '("git status" "git status -s" "git  status\t-s" "git status 'a b'"
                       "git status \"$\"x" "git status größe" "'git' status" "git status --a=b"))
      (let ((decision (if (string-search "$" command) 'ask 'allow)))
        (ert-info (command)
          (should (eq decision (efrit-permissions-tests--decide
                                "run_command" (efrit-permissions-tests--command command)
                                (list rule)))))))
    (dolist (command '("git statusx" "git stat" "git" "git log" "git  'status x'" "xgit status"
                       "git status;id" "git status && id" "git status || id" "git status | id"
                       "git status & id" "git status &" "git status > f" "git status < f"
                       "git status >> f" "git status 2>&1" "git status $(id)" "git status `id`"
                       "git status $HOME" "git status ${x}" "git status \"$(id)\"" "git status \"`id`\""
                       "git status \\\nid" "git status\nid" "git status\rid" "\ngit status"
                       "GIT_DIR=x git status" "git status A=b" "git status *" "git status a?"
                       "git status [a]" "git status {a,b}" "git status ~" "git status # x"
                       "git status 'a" "git status \"a" "git status !x" "git status (id)"
                       "git status \\;id" "git\u00a0status" "git status\u2028id" "git status \u202e"
                       "git status --output=.envrc" "git status -- .git/hooks/pre-commit"
                       "git status sub/Makefile"))
      (ert-info ((format "%S" command))
        (should (eq 'ask (efrit-permissions-tests--decide
                          "run_command" (efrit-permissions-tests--command command)
                          (list rule))))))
    (should (eq 'ask (efrit-permissions-tests--decide
                      "run_command" (efrit-permissions-tests--command "git status" "sub")
                      (list rule))))))

(ert-deftest efrit-permissions-to-begin-so-run-nothing-that-an-option-names ()
  "Options that say how a program works are none of these."
  (pcase-dolist (`(,decision ,words . ,rests)
                 '((ask ("git" "grep") "-Oless" "-nO" "--open=less" "--output=x" "--op x")
                   (ask ("git" "push") "--receive-pack=x" "--rece=x" "--exec=x")
                   (ask ("make" "check") "-f x" "-kf x" "-Cx" "--ev=x" "--file=x" "-E x" "SHELL=x")
                   (ask ("cmake") "-E env x" "-P x") (ask ("ninja") "-f x") (ask ("ctest") "-S x")
                   (ask ("rake" "test") "-e x" "-rx") (ask ("pytest") "-p x" "-cx")
                   (ask ("cargo" "test") "--config x") (ask ("npm" "test") "--script-shell=x")
                   (ask ("go" "test") "-exec x" "-toolexec=x") (ask ("gcc") "-wrapper x" "-fplugin=x")
                   (ask ("rg") "--pre x" "--pre=x" "--hostname-bin=x") (ask ("sort") "-ox" "-uo x")
                   (ask ("apt-get" "install") "-o x" "-oDpkg::x=y") (ask ("svn" "diff") "--diff-cmd=x")
                   (allow ("git" "log") "--oneline" "--exclude=x" "-p" "--pretty=x" "-n1")
                   (allow ("make" "check") "-j4" "-k" "-s" "--silent") (allow ("rg") "--pretty x" "-n x")
                   (allow ("pytest") "-q tests" "-x" "-k x") (allow ("gcc") "-O2 -c a.c -fPIC")
                   (allow ("sort") "-u x") (allow ("cargo" "test") "--release --exclude x")))
    (dolist (rest rests)
      (let ((command (concat (string-join words " ") " " rest)))
        (ert-info (command)
          (should (eq decision (efrit-permissions-tests--decide
                                "run_command" (efrit-permissions-tests--command command)
                                `((command (begins ,words "") allow))))))))))

(ert-deftest efrit-permissions-no-beginning-is-offered-that-says-too-little ()
  "Programs that run others, and those whose name says little, get no such button."
  (pcase-dolist (`(,command . ,words)
                 '(("ls -l" "ls") ("git status" "git" "status") ("make check" "make" "check")
                   ("./build.sh -x" "./build.sh") ("pytest -q" "pytest")
                   ("git" . nil) ("git -C x status" . nil) ("git config a b" . nil)
                   ("sh -c id" . nil) ("/bin/sh x" . nil) ("env ls" . nil) ("xargs rm" . nil)
                   ("find . -name x" . nil) ("python3 x.py" . nil) ("python3.11 x.py" . nil)
                   ("lua5.4 x" . nil) ("/usr/bin/perl5.36.0 x" . nil) ("pypy3 x.py" . nil)
                   ("BASH x" . nil) ("tar -tf x" . nil) ("flock x ls" . nil) ("stdbuf -o0 ls" . nil)
                   ("sqlite3 x" . nil) ("git clone x" . nil) ("go generate" . nil)
                   ("git grep -Oless x" . nil) ("gcc-12 a.c" "gcc-12") ("npm run x" . nil)
                   ("ls | id" . nil) ("A=b ls" . nil) ("sudo ls" . nil) ("cd x" . nil)))
    (ert-info (command)
      (should (equal (and words (list 'begins words ""))
                     (nth 1 (car (efrit-permissions-tests--grant
                                  'alike "run_command"
                                  (efrit-permissions-tests--command command)))))))))

(ert-deftest efrit-permissions-say-in-words-what-they-allow ()
  "The button of each grant names what it allows."
  (pcase-dolist (`(,tool ,arguments ,exactly ,alike)
                 '(("edit_file" "{\"path\":\"./a.txt\"}" "edits of a.txt" "all edits in this project")
                   ("multi_edit" "{\"edits\":[{\"path\":\"a\"},{\"path\":\"b\"}]}"
                    "edits of a, b" "all edits in this project")
                   ("create_file" "{\"path\":\"a\"}" "making a" "all new files in this project")
                   ("create_file" "{\"path\":\"a\",\"overwrite\":true}"
                    "edits of a" "all edits in this project")
                   ("rename_file" "{\"path\":\"a\",\"to\":\"b\"}"
                    "renaming a to b" "all renames in this project")
                   ("delete_file" "{\"path\":\"a\"}" "deleting a" "all deletions in this project")
                   ("run_command" "{\"command\":\"ls | id\",\"cwd\":\"sub/\"}"
                    "exactly this command in sub" nil)
                   ("compile" "{\"command\":\"make\"}" "compiling by exactly this command" nil)
                   ("eval_sexp" "{\"code\":\"1\"}" "exactly this code" nil)
                   ("fetch_url" "{\"url\":\"https://a.org/b\"}"
                    "exactly this address" "any address of https://a.org")
                   ("mem_delete" "{\"id\":1}" "exactly this use of mem_delete"
                    "every use of mem_delete")))
    (ert-info (tool)
      (should (equal exactly (nth 1 (efrit-permissions-tests--grant 'exactly tool arguments))))
      (should (equal alike (nth 1 (efrit-permissions-tests--grant 'alike tool arguments)))))))

(ert-deftest efrit-permissions-of-one-kind-do-not-apply-to-another ()
  "Edits are no new files; a file that is written over is edited; one file is one."
  (cl-flet ((grant (name) (car (efrit-permissions-tests--grant
                                name "edit_file" "{\"path\":\"a.txt\"}")))
            (decide (rule tool arguments)
              (efrit-permissions-tests--decide tool arguments (list rule))))
    (should (eq 'allow (decide (grant 'alike) "multi_edit" "{\"edits\":[{\"path\":\"b\"}]}")))
    (should (eq 'allow (decide (grant 'alike) "create_file" "{\"path\":\"b\",\"overwrite\":true}")))
    (dolist (tool '("create_file" "delete_file" "rename_file" "format_buffer" "run_command"))
      (should (eq 'ask (decide (grant 'alike) tool "{\"path\":\"b\",\"command\":\"a.txt\"}"))))
    (should (eq 'allow (decide (grant 'exactly) "edit_file" "{\"path\":\"./a.txt\"}")))
    (dolist (path '("b.txt" "sub/../a.txt" "a.txt/" "A.txt" ""))
      (should (eq (if (equal path "a.txt/") 'allow 'ask)
                  (decide (grant 'exactly) "edit_file" (format "{\"path\":%S}" path)))))
    (let ((rename (car (efrit-permissions-tests--grant
                        'exactly "rename_file" "{\"path\":\"a\",\"to\":\"b\"}"))))
      (should (eq 'allow (decide rename "rename_file" "{\"path\":\"a\",\"to\":\"b\"}")))
      (should (eq 'ask (decide rename "rename_file" "{\"path\":\"b\",\"to\":\"a\"}")))
      (should (eq 'ask (decide rename "rename_file" "{\"path\":\"a\",\"to\":\"a\"}"))))
    (should (eq 'ask (decide (grant 'exactly) "multi_edit"
                             "{\"edits\":[{\"path\":\"a.txt\"},{\"path\":\"b\"}]}")))))

(ert-deftest efrit-permissions-a-file-is-denied-however-its-name-is-written ()
  "No to one file is no to that file alone."
  (let ((rule (car (efrit-permissions-refusal
                    "read_file" (efrit-permissions-subjects
                                 "read_file" "{\"path\":\".env\",\"start_line\":2}")))))
    (dolist (path '(".env" "./.env" "sub/../.env" ".//.env"))
      (should (eq 'deny (efrit-permissions-tests--decide
                         "read_file" (format "{\"path\":%S}" path) (list rule) 'allow))))
    (should (eq 'allow (efrit-permissions-tests--decide
                        "read_file" "{\"path\":\"README.md\"}" (list rule) 'allow)))))

(ert-deftest efrit-permissions-of-a-tool-not-known-here-are-for-its-whole-input ()
  "Another argument may change all."
  (let ((rule (car (efrit-permissions-tests--grant
                    'exactly "deploy" "{\"path\":\"a\",\"to\":\"test\"}"))))
    (should (eq 'allow (efrit-permissions-tests--decide
                        "deploy" "{\"path\":\"a\",\"to\":\"test\"}" (list rule))))
    (should (eq 'ask (efrit-permissions-tests--decide
                      "deploy" "{\"path\":\"a\",\"to\":\"live\"}" (list rule))))))

(ert-deftest efrit-permissions-know-the-files-that-run-by-being-there ()
  "At any place in the project, and with any way to write their names."
  (dolist (name '(".dir-locals.el" "sub/.dir-locals-2.el" ".envrc" "Makefile" "makefile" "GNUmakefile"
                  "sub/rules.mk" ".git/hooks/pre-commit" ".githooks/pre-push" ".husky/pre-commit"
                  ".github/workflows/ci.yml" ".gitlab-ci.yml" "Jenkinsfile" "package.json"
                  "pyproject.toml" "conftest.py" "CMakeLists.txt" "build.rs" ".vscode/tasks.json"
                  ".efrit.toml" "AGENTS.md" ".bashrc" ".gitattributes" "setup.py"
                  "justfile" ".pre-commit-config.yaml" "sitecustomize.py" ".gitconfig" ".hg/hgrc"
                  ".eslintrc" ".eslintrc.json" ".pylintrc" "gulpfile.js" "composer.json" "mix.exs"
                  "Cargo.toml" "gradle/wrapper/gradle-wrapper.properties" "app.gradle" "a/b.csproj"
                  "SConstruct" "Tiltfile" ".devcontainer.json" ".cursor/rules/a.md" "GEMINI.md"
                  "lefthook-local.yml" "Pipfile" ".rspec" "efrit-permissions.eld"
                  "/src/one/.envrc" "\"/src/one/a\\n/.envrc\""))
    (ert-info (name)
      (should (efrit-permissions-always-asks-p name))))
  (dolist (name '("README.md" "src/main.c" "a.el" "make.txt" "docs/Makefiles/a.txt" "lib/setup.rb"
                  "src/arc.c" "search" "lib/gradle.md" "project.el" "dunes.txt" "app/tasks.py"))
    (ert-info (name)
      (should-not (efrit-permissions-always-asks-p name)))))

(ert-deftest efrit-permissions-hide-no-character-that-is-not-seen ()
  "Each character without a sign of its own is shown by its number."
  (let ((hidden nil))
    (dolist (char (append (number-sequence 0 #x1ffff) (number-sequence #xe0000 #xe0fff)))
      (when (and (memq (get-char-code-property char 'general-category) '(Cc Cf Zl Zp Zs))
                 (not (memq char '(?\n ?\t ?\s)))
                 (equal (string char) (efrit-permissions-visible (string char))))
        (push char hidden)))
    (should-not hidden))
  (dolist (char '(#x61c #xad #x3164 #x115f #x2800 #xe0041 #x2028 #x85 #xfe0f #x34f))
    (should (equal (format "a<U+%04X>b" char) (efrit-permissions-visible (format "a%cb" char)))))
  (should (equal "größe 漢字 עברית\n\t" (efrit-permissions-visible "größe 漢字 עברית\n\t")))
  (should (equal "a<U+000A>b" (efrit-permissions-visible "a\nb" t))))

(ert-deftest efrit-permissions-of-a-project-outlive-emacs ()
  "Another Emacs decides by what this one remembered, for this project alone."
  (efrit-permissions-tests--with-file
   (efrit-permissions-remember "/src/one" '(command (exactly ("größe") "") deny))
   (with-temp-buffer
     (call-process
      (expand-file-name invocation-name invocation-directory) nil t nil "-Q" "--batch"
      "-L" (expand-file-name "elisp" efrit-test-root) "-l" "efrit-permissions" "--eval"
      (format "%S" `(let ((efrit-permissions-file ,efrit-permissions-file))
                      (princ (mapcar (lambda (root)
                                       (efrit-permissions-decide
                                        "run_command"
                                        (efrit-permissions-subjects
                                         "run_command" "{\"command\":\"größe\"}")
                                        'ask (efrit-permissions-of root)))
                                     '("/src/one" "/src/one/" "/src/two"))))))
     (should (equal "(deny deny ask)" (buffer-string))))))

(ert-deftest efrit-permissions-of-a-project-can-be-revoked-and-forgotten ()
  "A rule stored twice exists once; a forgotten one is gone."
  (efrit-permissions-tests--with-file
   (efrit-permissions-remember "/src/one" '("run" (all) allow))
   (efrit-permissions-remember "/src/one" '("run" (all) deny))
   (efrit-permissions-remember "/src/one" '("run" (all) deny))
   (efrit-permissions-remember "/src/two" '("run" (all) allow))
   (should (equal '(("run" (all) deny) ("run" (all) allow)) (efrit-permissions-of "/src/one")))
   (efrit-permissions-revoke "/src/one/" '("run" (all) deny))
   (should (equal '(("run" (all) allow)) (efrit-permissions-of "/src/one")))
   (efrit-permissions-forget "/src/one")
   (should-not (efrit-permissions-of "/src/one"))
   (should (equal '(("run" (all) allow)) (efrit-permissions-of "/src/two")))))

(ert-deftest efrit-permissions-of-earlier-versions-allow-nothing ()
  "Their buttons did not say that they allowed every file, or any folder."
  (efrit-permissions-tests--with-file
   (with-temp-file efrit-permissions-file
     (insert "((\"/src/one\" (\"edit_file\" t allow) (\"compile\" \"\\\\`{}\\\\'\" allow)"
             " (\"eval_sexp\" t deny)))"))
   (should (equal '(("eval_sexp" t deny)) (efrit-permissions-of "/src/one")))))

(ert-deftest efrit-permissions-that-cannot-be-read-ask-and-are-kept ()
  "A damaged file or pattern never allows anything, and is not written over."
  (efrit-permissions-tests--with-file
   (let* ((inhibit-message t)
          (loop (efrit-loop-make "one" "/src/one/"))
          (use (efrit-use-create :name "read_file" :arguments "{\"path\":\"a\"}")))
     (should (eq 'allow (efrit-run-decide loop use)))
     (with-temp-file efrit-permissions-file
       (insert "((\"/src/one\" (\"run\" t"))
     (should (eq 'ask (efrit-run-decide loop use)))
     (should-error (efrit-permissions-remember "/src/one" '("run" (all) allow))
                   :type 'user-error)
     (delete-file efrit-permissions-file)
     (setf (efrit-loop-rules loop) '(("read_file" "\\(" deny)))
     (should (eq 'ask (efrit-run-decide loop use))))))

;;; In a loop

(defconst efrit-permissions-tests--script "
[[reply]]
tool = [
  { name = \"eval_sexp\", input = { code = \"(list 'one (+ 40 2))\" } },
  { name = \"eval_sexp\", input = { code = \"(list 'two (+ 40 2))\" } },
]

[[reply]]
tool = [{ name = \"eval_sexp\", input = { code = \"(list 'one (+ 40 2))\" } }]

[[reply]]
text = \"Done.\"
"
  "A model that evaluates the same twice, and something else.")

(defun efrit-permissions-tests--answering (loop answers)
  "Answer the questions of LOOP by ANSWERS, in order: a decision and a scope each.
Return a function that gives how many questions there were."
  (let ((asked 0))
    (efrit-loop-observe
     loop
     (lambda (loop event)
       (when (eq (car event) 'ask)
         (cl-incf asked)
         (apply #'efrit-defer #'efrit-run-answer loop (cadr event)
                (or (pop answers) '(deny))))))
    (lambda () asked)))

(ert-deftest efrit-permissions-once-is-once-and-a-denial-is-reported ()
  "Allowed once runs once; denied, the model is told that the person said no."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((allow) (deny) (allow)))))
        (efrit-test-finish loop "Count.")
        (should (= 3 (funcall asked)))
        (let ((sent (efrit-test-sent-text)))
          (should (string-match-p "=> (one 42)" sent))
          (should-not (string-match-p "=> (two 42)" sent))
          (should (string-match-p "The person did not allow this use of eval_sexp" sent)))))))

(ert-deftest efrit-permissions-for-the-project-hold-in-the-next-session ()
  "A call allowed for the project is not asked about, now or later."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((allow project) (deny)))))
        (efrit-test-finish loop "Count.")
        (should (= 2 (funcall asked)))))
    (efrit-test-with-model efrit-permissions-tests--script
      (let* ((loop (efrit-test-loop))
             (asked (efrit-permissions-tests--answering loop '((deny session)))))
        (efrit-test-finish loop "Count.")
        (should (= 1 (funcall asked)))))))

(provide 'permissions-tests)
;;; permissions-tests.el ends here
