;;; permission-attacks-tests.el --- What was not allowed is not done  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A scripted model tries to have something run, read or sent that the person
;; has not allowed, in whole sessions.

;;; Code:

(require 'looping)
(require 'efrit-ask)
(require 'efrit-do)
(require 'efrit-view)

(defvar attack-test--asked nil
  "Questions, latest first: tools with their arguments, as shown.")

(defmacro attack-test-with (script rules answers &rest body)
  "Run BODY once a model has played SCRIPT in a project.
RULES are those of the session, ANSWERS what is answered to the questions, in
order: the arguments of `efrit-run-answer'; the others are denied.  Of what was
asked `attack-test--asked' tells."
  (declare (indent 3) (debug t))
  `(loop-test-with ,script loop
     (setf (efrit-loop-rules loop) ,rules)
     (efrit-test-with-rules loop nil
       (attack-test--play loop ,answers))
     ,@body))

(defun attack-test--play (loop answers)
  "Let LOOP do a task to its end; answer its questions by ANSWERS."
  (setq attack-test--asked nil)
  (efrit-loop-observe
   loop
   (lambda (loop event)
     (pcase event
       (`(ask ,use)
        (push (list (efrit-use-name use) (efrit-ask-arguments-text use)) attack-test--asked)
        (apply #'efrit-defer #'attack-test--answer loop use (or (pop answers) '(deny)))))))
  (efrit-do-say loop "Go.")
  (should (eq 'idle (efrit-test-rest loop))))

(defun attack-test--answer (loop use decision &rest more)
  "Answer the question of USE in LOOP with DECISION and MORE.
DECISION may be a function, which returns it."
  (apply #'efrit-run-answer loop use
         (if (functionp decision) (funcall decision) decision) more))

(defun attack-test--there-p (name)
  "Return non-nil if the project has a file NAME."
  (file-exists-p (expand-file-name name efrit-test-project)))

(defun attack-test--text (name)
  "Return the text of the file NAME of the project."
  (with-temp-buffer
    (insert-file-contents (expand-file-name name efrit-test-project))
    (buffer-string)))

(defun attack-test--use (tool input)
  "Return a reply in which TOOL is used with INPUT, a text as the model writes it."
  (format "[[reply]]\ntool = [{ name = %S, input_json = '''%s''' }]\n" tool input))

(defconst attack-test--end "[[reply]]\ntext = \"Done.\"\n"
  "The last reply of a session.")

(defun attack-test--tries (tool &rest inputs)
  "Return the replies of a model: a use of TOOL with each of INPUTS, and an end."
  (concat (mapconcat (lambda (input) (attack-test--use tool input)) inputs "")
          attack-test--end))

;;; One input

(ert-deftest efrit-attack-equal-keys-run-nothing ()
  "No matter which of them a reader would take, and how they are written."
  (attack-test-with
      (attack-test--tries
       "run_command"
       "{\"command\":\"echo safe\",\"timeout\":99999999999999999999,\"timeout\":120,\"command\":\"touch PWNED\"}"
       "{\"command\":\"touch PWNED\",\"command\":\"echo safe\"}"
       "{\"command\":\"echo safe\",\"\\u0063ommand\":\"touch PWNED\"}"
       "{\"command\":\"echo safe\",\"timeout\":99999999999999999999}"
       "{\"command\":\"echo safe\",\"cwd\":\".\",\"cwd\":\"sub\"}"
       "{\"command\":\"echo safe\",\"timeout\":NaN}"
       "{\"command\":\"echo safe\\ud800; touch PWNED\"}"
       "{\"command\":\"echo safe\"} {\"command\":\"touch PWNED\"}")
      '((command (exactly ("echo safe") "") allow)) nil
    (should-not attack-test--asked)
    (should-not (attack-test--there-p "PWNED"))
    (let ((sent (efrit-test-sent-text)))
      (should-not (string-search "exit 0" sent))
      (should (string-search "run_command was not run" sent))
      (should (string-search "the key \\\"command\\\" stands twice" sent)))))

(ert-deftest efrit-attack-equal-keys-change-no-file-and-evaluate-nothing ()
  "Deep in an input, too, and for the tools that run in Emacs."
  (attack-test-with
      (concat
       (attack-test--use
        "multi_edit"
        "{\"edits\":[{\"path\":\"a.txt\",\"path\":\"README.md\",\"old_text\":\"A\",\"new_text\":\"x\"}]}")
       (attack-test--use
        "create_file" "{\"path\":\"new\",\"content\":\"x\",\"path\":\"README.md\",\"overwrite\":true}")
       (attack-test--use
        "eval_sexp" "{\"code\":\"1\",\"code\":\"(write-region \\\"\\\" nil \\\"PWNED\\\")\"}")
       attack-test--end)
      '((t t allow)) nil
    (should-not (attack-test--there-p "PWNED"))
    (should-not (attack-test--there-p "new"))
    (should (equal "# A project\n" (attack-test--text "README.md")))))

(ert-deftest efrit-attack-one-text-is-shown-remembered-and-run ()
  "It is the sidecar's, whatever blanks and escapes the model wrote."
  (attack-test-with
      (attack-test--tries "eval_sexp" "{ \"code\" :\n \"(\\u0063oncat \\\"o\\\" \\\"k\\\")\" }")
      nil '((allow session))
    (should (equal '(("eval_sexp" "code: (concat \"o\" \"k\")")) attack-test--asked))
    (should (string-search "=> \\\"ok\\\"" (efrit-test-sent-text)))
    (should (equal '((code (exactly ("(concat \"o\" \"k\")") nil) allow)) (efrit-loop-rules loop)))))

(ert-deftest efrit-attack-an-input-that-the-sidecar-does-not-return-is-not-run ()
  "The sidecar's canonical input is run, and nothing that the model wrote."
  (let ((reply (efrit-reply-create)))
    (dolist (id '("b" "a"))
      (push (efrit-block-create :type "tool_use" :id id :name "run_command" :done t
                                 :pieces '("{\"command\":\"touch PWNED\"}"))
            (efrit-reply-blocks reply)))
    (efrit-reply-take-inputs reply [(:tool_use_id "c" :input_json "{}")] [] [])
    (dolist (block (efrit-reply-tool-uses reply))
      (let ((use (efrit-run--use (efrit-loop-make "x" "/") block)))
        (should (efrit-use-problem use))
        (should (equal "{}" (efrit-use-arguments use)))))
    (efrit-reply-take-inputs reply [(:tool_use_id "b" :input_json "{\"command\":\"echo safe\"}")
                                    (:tool_use_id "a" :input_json "{}")]
                             [] [])
    (should (equal '("{\"command\":\"echo safe\"}" "{}")
                   (mapcar (lambda (block)
                             (efrit-use-arguments
                              (efrit-run--use (efrit-loop-make "x" "/") block)))
                           (efrit-reply-tool-uses reply))))))

;;; Compiling

(ert-deftest efrit-attack-an-agreement-to-the-projects-command-is-to-that-command ()
  "A command that the project changes later, also during the question, asks again."
  (loop-test-with
      (concat (attack-test--use "compile" "{}")
              (attack-test--use "compile" "{}")
              (attack-test--use "compile" "{\"command\":\" \"}")
              (attack-test--use "compile" "{\"command\":\"touch first\"}")
              attack-test--end)
      loop
    (efrit-test-write ".dir-locals.el" "((nil . ((compile-command . \"touch first\"))))")
    (efrit-test-with-rules loop nil
      (attack-test--play
       loop `((,(lambda ()
                  (efrit-test-write ".dir-locals.el"
                                    "((nil . ((compile-command . \"touch PWNED\"))))")
                  'allow)
               session))))
    (should (attack-test--there-p "first"))
    (should-not (attack-test--there-p "PWNED"))
    (should (equal '("command: touch PWNED" "command: touch PWNED" "command: touch first")
                   (mapcar #'cadr attack-test--asked)))))

;;; What an answer is about

(ert-deftest efrit-attack-no-to-one-file-is-no-to-that-file-alone ()
  "Its name may be written in any way."
  (loop-test-with
      (attack-test--tries "read_file" "{\"path\":\".env\"}" "{\"path\":\"./.env\"}"
                          "{\"path\":\"sub/../.env\"}" "{\"path\":\"README.md\"}")
      loop
    (efrit-test-write ".env" "KEY=PRIVATE\n")
    (efrit-test-write "sub/a.txt" "")
    (efrit-test-with-rules loop nil
      (attack-test--play loop '((deny session))))
    (should (equal '("read_file") (mapcar #'car attack-test--asked)))
    (should (string-search "A project" (efrit-test-sent-text)))
    (should-not (string-search "PRIVATE" (efrit-test-sent-text)))))

(ert-deftest efrit-attack-a-command-is-allowed-in-its-folder ()
  "A script of the same name elsewhere is another one."
  (loop-test-with
      (attack-test--tries
       "run_command" "{\"command\":\"./build.sh\",\"cwd\":\"evil\"}"
       "{\"command\":\"./build.sh\",\"cwd\":\"./evil/.\"}"
       "{\"command\":\"./build.sh\",\"cwd\":\"evil/../evil\"}"
       "{\"command\":\"cd evil; ./build.sh\"}" "{\"command\":\"./build.sh\\ncd evil; ./build.sh\"}")
      loop
    (efrit-test-write "evil/build.sh" "#!/bin/sh\ntouch ../PWNED\n")
    (efrit-test-write "build.sh" "#!/bin/sh\n")
    (set-file-modes "evil/build.sh" #o755)
    (set-file-modes "build.sh" #o755)
    (setf (efrit-loop-rules loop) '((command (exactly ("./build.sh") "") allow)))
    (efrit-test-with-rules loop nil
      (attack-test--play loop nil))
    (should (= 5 (length attack-test--asked)))
    (should-not (attack-test--there-p "PWNED"))))

(ert-deftest efrit-attack-a-beginning-runs-nothing-else ()
  "No matter what the shell would do with it."
  (attack-test-with
      (apply #'attack-test--tries
             "run_command"
             (mapcar (lambda (command) (format "{\"command\":\"%s\"}" command))
                     '("git status; touch PWNED" "git status\\ntouch PWNED"
                       "git status $(touch PWNED)" "git status `touch PWNED`" "git status > PWNED"
                       "X=1 git status > PWNED" "git status \\\"$(touch PWNED)\\\""
                       "git status & touch PWNED" "git statusx > PWNED"
                       "git -c alias.status='!touch PWNED' status")))
      '((command (begins ("git" "status") "") allow)) nil
    (should (= 10 (length attack-test--asked)))
    (should-not (attack-test--there-p "PWNED"))))

(ert-deftest efrit-attack-a-beginning-runs-no-program-that-an-argument-names ()
  "Programs that read or build run others where an option says so."
  (attack-test-with
      (apply #'attack-test--tries
             "run_command"
             (mapcar (lambda (command) (format "{\"command\":\"%s\"}" command))
                     '("git grep -O'touch PWNED;:' project" "git grep --open-files-in-pager='touch PWNED;:' project"
                       "git grep --open='touch PWNED;:' project"
                       "make -n --eval='$(shell touch PWNED)'" "make -n --ev='$(shell touch PWNED)'"
                       "make -n -E '$(shell touch PWNED)'" "make -n -f a.txt" "make -n -Csub"
                       "git grep --output=PWNED project" "rg --pre=touch PWNED" "rg --pre touch x PWNED"
                       "tar --to-command='touch PWNED' -xf a.tar" "tar -Itouch -cf PWNED a.txt"
                       "sort --compress-program=touch a.txt" "sort -o PWNED a.txt" "sort -oPWNED a.txt")))
      '((command (begins ("git" "grep") "") allow) (command (begins ("make" "-n") "") allow)
        (command (begins ("rg") "") allow) (command (begins ("tar") "") allow)
        (command (begins ("sort") "") allow))
      nil
    (should (= 16 (length attack-test--asked)))
    (should-not (attack-test--there-p "PWNED"))))

(ert-deftest efrit-attack-yes-to-edits-of-one-file-changes-no-other ()
  "Not by a link, a list of edits, or a tool of another kind."
  (loop-test-with
      (concat
       (attack-test--use "read_file" "{\"path\":\"a.txt\"}")
       (attack-test--use "read_file" "{\"path\":\"README.md\"}")
       (attack-test--use
        "edit_file" "{\"path\":\"README.md\",\"old_text\":\"A\",\"new_text\":\"PWNED\"}")
       (attack-test--use
        "edit_file" "{\"path\":\"link\",\"old_text\":\"A\",\"new_text\":\"PWNED\"}")
       (attack-test--use
        "multi_edit" "{\"edits\":[{\"path\":\"a.txt\",\"old_text\":\"one\",\"new_text\":\"x\"},\
{\"path\":\"README.md\",\"old_text\":\"A\",\"new_text\":\"PWNED\"}]}")
       (attack-test--use
        "create_file" "{\"path\":\"README.md\",\"content\":\"PWNED\",\"overwrite\":true}")
       (attack-test--use "rename_file" "{\"path\":\"a.txt\",\"to\":\"b.txt\"}")
       attack-test--end)
      loop
    (make-symbolic-link "README.md" "link")
    (setf (efrit-loop-rules loop) '((edit (exactly ("a.txt" "link") nil) allow)))
    (efrit-test-with-rules loop nil
      (attack-test--play loop nil))
    (should (= 5 (length attack-test--asked)))
    (should (equal "# A project\n" (attack-test--text "README.md")))
    (should (equal "one\ntwo\n" (attack-test--text "a.txt")))))

;;; Addresses

(ert-deftest efrit-attack-an-address-is-asked-about-as-it-is-fetched ()
  "No letter of its host looks like another; that of one site is not that of another."
  (attack-test-with
      (attack-test--tries
       "fetch_url" "{\"url\":\"http://\u0430pple.example/\u00e4#x\"}" "{\"url\":\"http://apple.example@127.0.0.1/\"}"
       "{\"url\":\"http://apple.example:1/\"}" "{\"url\":\"http://apple.example.evil/\"}"
       "{\"url\":\"http://apple.example\\\\.evil/\"}" "{\"url\":\"file:///etc/passwd\"}")
      '((address (site "http://apple.example") allow)) nil
    (should (equal "url: http://xn--pple-43d.example/%C3%A4"
                   (cadr (car (last attack-test--asked)))))
    (should (= 6 (length attack-test--asked)))))

;;; What changes while the person reads

(ert-deftest efrit-attack-a-link-that-comes-while-the-person-reads-leads-nowhere ()
  "Neither in the place of the file, nor of its folder."
  (let ((outside (file-name-as-directory (file-truename (make-temp-file "efrit-outside-" t)))))
    (unwind-protect
        (loop-test-with
            (concat
             (attack-test--use "read_file" "{\"path\":\"a.txt\"}")
             (attack-test--use
              "edit_file" "{\"path\":\"a.txt\",\"old_text\":\"one\",\"new_text\":\"PWNED\"}")
             (attack-test--use "create_file" "{\"path\":\"sub/new.txt\",\"content\":\"PWNED\"}")
             (attack-test--use "delete_file" "{\"path\":\"other/gone.txt\"}")
             (attack-test--use "rename_file" "{\"path\":\"third/it.txt\",\"to\":\"third/that.txt\"}")
             attack-test--end)
            loop
          (dolist (name '("a.txt" "gone.txt" "it.txt"))
            (with-temp-file (expand-file-name name outside)
              (insert "one\ntwo\n")))
          (efrit-test-write "sub/kept.txt" "")
          (efrit-test-write "other/gone.txt" "one\ntwo\n")
          (efrit-test-write "third/it.txt" "one\ntwo\n")
          (cl-flet ((swap (folder)
                      (lambda ()
                        (rename-file folder (concat folder ".kept"))
                        (make-symbolic-link outside folder)
                        'allow)))
            (efrit-test-with-rules loop nil
              (attack-test--play
               loop `((,(lambda ()
                          (delete-file "a.txt")
                          (make-symbolic-link (expand-file-name "a.txt" outside) "a.txt")
                          'allow))
                      (,(swap "sub")) (,(swap "other")) (,(swap "third"))))))
          (should (= 4 (length attack-test--asked)))
          (should (equal '("a.txt" "gone.txt" "it.txt")
                         (directory-files outside nil directory-files-no-dot-files-regexp)))
          (with-temp-buffer
            (insert-file-contents (expand-file-name "a.txt" outside))
            (should (equal "one\ntwo\n" (buffer-string)))))
      (delete-directory outside t))))

;;; What a file says of itself

(defvar attack-test--called nil
  "Non-nil once a file's text had a function called.")

(ert-deftest efrit-attack-no-function-is-called-because-a-file-names-it-as-its-mode ()
  "Neither in its first line nor its last ones, nor beside it."
  (loop-test-with
      (concat
       (mapconcat (lambda (name)
                    (attack-test--use "buffer_outline" (format "{\"path\":\"%s\"}" name)))
                  '("first.el" "last.el" "simple.el" "beside/a.el") "")
       (attack-test--use "compile" "{}")
       (attack-test--use "read_file" "{\"path\":\"first.el\"}")
       (attack-test--use
        "edit_file" "{\"path\":\"first.el\",\"old_text\":\"(ok)\",\"new_text\":\"(done)\"}")
       (attack-test--use "show_in_emacs" "{\"path\":\"last.el\"}")
       (attack-test--use "rename_file" "{\"path\":\"first.el\",\"to\":\"renamed.el\"}")
       (attack-test--use "rename_file" "{\"path\":\"a.txt\",\"to\":\"a.el\"}")
       attack-test--end)
      loop
    (efrit-test-write "first.el" ";; -*- mode: attack-test-evil; mode: emacs-lisp; fill-column: 33 -*-\n(ok)\n")
    (efrit-test-write "last.el" "(ok)\n;; Local Variables:\n;; mode: attack-test-evil\n;; End:\n")
    (efrit-test-write "simple.el" ";; -*- attack-test-evil -*-\n(ok)\n")
    (efrit-test-write "beside/a.el" "(ok)\n")
    (efrit-test-write "beside/.dir-locals.el" "((nil . ((mode . attack-test-evil))))")
    (efrit-test-write ".dir-locals.el" "((nil . ((mode . attack-test-evil) (attack-test-unsafe . t)\
 (compile-command . \"true\"))))")
    (setq attack-test--called nil)
    (efrit-file-visit (expand-file-name "a.txt"))
    (attack-test--play loop nil)
    (should-not attack-test--called)
    (should (string-search "exit 0" (efrit-test-sent-text)))
    (should (string-search "(done)" (attack-test--text "renamed.el")))
    (with-current-buffer (find-buffer-visiting "a.el")
      (should (eq 'emacs-lisp-mode major-mode))
      (should-not (local-variable-p 'attack-test-unsafe)))
    (with-current-buffer (efrit-file-visit (expand-file-name "renamed.el"))
      (should (eq 'emacs-lisp-mode major-mode))
      (should (= 33 fill-column)))))

(defun attack-test-evil-mode (&rest _)
  "Note that a file had this called."
  (setq attack-test--called t))

(ert-deftest efrit-attack-a-mode-for-text-that-a-file-names-is-taken ()
  "Of a file, and for what an edit of it makes of it."
  (loop-test-in-project
    (efrit-test-write "a.h" "// -*- C++ -*-\nclass A {};\n")
    (efrit-test-write "script" "x\n# Local Variables:\n# mode: sh\n# tab-width: 3\n# End:\n")
    (with-current-buffer (efrit-file-visit (expand-file-name "a.h"))
      (should (eq 'c++-mode major-mode)))
    (with-current-buffer (efrit-file-visit (expand-file-name "script"))
      (should (eq 'sh-mode major-mode))
      (should (= 3 tab-width)))))

;;; Files that run by being there

(ert-deftest efrit-attack-files-that-run-by-being-there-are-asked-about ()
  "No rule allows it, and no way of creating them."
  (loop-test-with
      (concat
       (attack-test--use "read_file" "{\"path\":\"a.txt\"}")
       (attack-test--use "read_file" "{\"path\":\"Makefile\"}")
       (attack-test--use "create_file" "{\"path\":\".dir-locals.el\",\"content\":\"PWNED\"}")
       (attack-test--use "create_file" "{\"path\":\"./sub/../.envrc\",\"content\":\"PWNED\"}")
       (attack-test--use "create_file" "{\"path\":\".github/workflows/x.yml\",\"content\":\"PWNED\"}")
       (attack-test--use
        "edit_file" "{\"path\":\"Makefile\",\"old_text\":\"all\",\"new_text\":\"PWNED\"}")
       (attack-test--use
        "edit_file" "{\"path\":\"link\",\"old_text\":\"all\",\"new_text\":\"PWNED\"}")
       (attack-test--use
        "multi_edit" "{\"edits\":[{\"path\":\"a.txt\",\"old_text\":\"one\",\"new_text\":\"x\"},\
{\"path\":\"Makefile\",\"old_text\":\"all\",\"new_text\":\"PWNED\"}]}")
       (attack-test--use "rename_file" "{\"path\":\"a.txt\",\"to\":\"conftest.py\"}")
       (attack-test--use "rename_file" "{\"path\":\"Makefile\",\"to\":\"b.txt\"}")
       (attack-test--use "delete_file" "{\"path\":\"Makefile\"}")
       attack-test--end)
      loop
    (efrit-test-write "Makefile" "all:\n")
    (make-symbolic-link "Makefile" "link")
    (setf (efrit-loop-rules loop) '((edit (all) allow) (create (all) allow) (t t allow)))
    (attack-test--play loop nil)
    (should (= 9 (length attack-test--asked)))
    (should (equal "all:\n" (attack-test--text "Makefile")))
    (dolist (name '(".dir-locals.el" ".envrc" ".github" "conftest.py" "b.txt"))
      (should-not (attack-test--there-p name)))))

(ert-deftest efrit-attack-an-old-state-of-such-a-file-is-asked-about-too ()
  "Undoing a change that was allowed once asks again."
  (attack-test-with
      (concat
       (attack-test--use "checkpoint" "{}")
       (attack-test--use "create_file" "{\"path\":\"Makefile\",\"content\":\"all:\\n\"}")
       (attack-test--use "undo_edit" "{}")
       (attack-test--use "restore_checkpoint" "{\"checkpoint\":\"k1\"}")
       attack-test--end)
      '((undo (all) allow)) '((allow session))
    (should (equal '("restore_checkpoint" "undo_edit" "create_file")
                   (mapcar #'car attack-test--asked)))
    (should (equal '((undo (all) allow)) (efrit-loop-rules loop)))
    (should (attack-test--there-p "Makefile"))))

;;; In batch

(ert-deftest efrit-attack-files-that-always-ask-are-denied-in-batch ()
  "Also where every tool may run."
  (loop-test-with
      (concat (attack-test--use "create_file" "{\"path\":\".envrc\",\"content\":\"PWNED\"}")
              (attack-test--use "create_file" "{\"path\":\"harmless\",\"content\":\"x\"}")
              (attack-test--use "read_file" "{\"path\":\".env\"}")
              (attack-test--use "read_buffer" "{\"buffer\":\"*mail*\"}")
              (attack-test--use "rename_file" "{\"path\":\".env\",\"to\":\"env.txt\"}")
              (attack-test--use "vcs_diff" "{\"path\":\".env\"}")
              attack-test--end)
      loop
    (efrit-test-write ".env" "KEY=PRIVATE\n")
    (attack-test--outside "*mail*" temporary-file-directory)
    (let ((process-environment (cons "EFRIT_ALLOW=all" process-environment)))
      (cl-letf (((symbol-function 'send-string-to-terminal) #'ignore))
        (should (eq 'idle (efrit-loop-state (efrit-batch-play loop "Go."))))))
    (should (attack-test--there-p "harmless"))
    (should (attack-test--there-p ".env"))
    (should-not (attack-test--there-p ".envrc"))
    (should-not (string-search "PRIVATE" (efrit-test-sent-text)))))

;;; Buffers outside the project

(defun attack-test--outside (name folder)
  "Make a buffer NAME in FOLDER with a private text."
  (with-current-buffer (get-buffer-create name)
    (text-mode)
    (insert "Dear PRIVATE,\n")
    (setq default-directory folder)))

(ert-deftest efrit-attack-buffers-outside-the-project-are-asked-about ()
  "No rule allows it; a buffer made in the project may be private."
  (let ((outside (make-temp-file "efrit-outside-" nil ".txt" "PRIVATE file\n")))
    (unwind-protect
        (loop-test-with
            (attack-test--tries
             "read_buffer" "{\"buffer\":\"*mail*\"}" "{\"buffer\":\"*draft*\"}"
             (format "{\"buffer\":%S}" (file-name-nondirectory outside))
             "{\"buffer\":\"*indirect*\"}" "{\"buffer\":\"a.txt\"}")
            loop
          (attack-test--outside "*mail*" temporary-file-directory)
          (attack-test--outside "*draft*" efrit-test-project)
          (find-file-noselect "a.txt")
          (make-indirect-buffer (find-file-noselect outside) "*indirect*")
          (setf (efrit-loop-rules loop) '((buffer (all) allow) (t t allow)))
          (attack-test--play loop nil)
          (should (equal '("*indirect*" "*draft*" "*mail*")
                         (mapcar (lambda (asked)
                                   (string-remove-prefix "buffer: " (cadr asked)))
                                 (remove (caddr (reverse attack-test--asked))
                                         attack-test--asked))))
          (should (= 4 (length attack-test--asked)))
          (should-not (string-search "PRIVATE" (efrit-test-sent-text)))
          (should (string-search "two" (efrit-test-sent-text))))
      (delete-file outside))))

(ert-deftest efrit-attack-a-buffer-that-comes-while-the-person-is-asked-is-asked-about ()
  "A buffer that did not exist when the reply came is asked about."
  (attack-test-with
      (concat "[[reply]]\ntool = ["
              "{ name = \"eval_sexp\", input = { code = \"1\" } },"
              "{ name = \"read_buffer\", input = { buffer = \"*mail*\" } }]\n"
              attack-test--end)
      nil
      `((,(lambda ()
            (attack-test--outside "*mail*" temporary-file-directory)
            'allow)))
    (should (equal '("read_buffer" "eval_sexp") (mapcar #'car attack-test--asked)))
    (should-not (string-search "PRIVATE" (efrit-test-sent-text)))))

;;; What other tools give

(ert-deftest efrit-attack-the-outline-of-a-buffer-outside-the-project-is-asked-about ()
  "It tells what stands in that buffer, as reading it does."
  (loop-test-with
      (attack-test--tries "buffer_outline" "{\"path\":\"*notes*\"}" "{\"path\":\"code.el\"}")
      loop
    (attack-test--outside "*notes*" temporary-file-directory)
    (with-current-buffer "*notes*"
      (emacs-lisp-mode)
      (insert "(defun PRIVATE ())\n"))
    (efrit-test-write "code.el" "(defun public ())\n")
    (setf (efrit-loop-rules loop) '(("buffer_outline" t allow)))
    (attack-test--play loop nil)
    (should (equal '(("buffer_outline" "path: *notes*")) attack-test--asked))
    (should (string-search "public" (efrit-test-sent-text)))
    (should-not (string-search "PRIVATE" (efrit-test-sent-text)))))

(ert-deftest efrit-attack-a-pipe-that-tags-name-is-not-opened ()
  "Emacs would wait for it for ever."
  (skip-unless (executable-find "mkfifo"))
  (loop-test-with
      (attack-test--tries "find_definition" "{\"symbol\":\"needle\"}")
      loop
    (call-process "mkfifo" nil nil nil "pipe.c")
    (efrit-test-write "TAGS" "\f\npipe.c,20\nint needle\x7fneedle\x01\&1,0\n")
    (attack-test--play loop nil)
    (should (string-search "pipe.c" (efrit-test-sent-text)))))

(ert-deftest efrit-attack-a-search-of-emacs-has-a-limit-of-memory ()
  "A pattern in a .gitignore may need memory without end."
  (skip-unless (eq system-type 'gnu/linux))
  (loop-test-with
      (attack-test--tries "find_references" "{\"symbol\":\"needle\"}")
      loop
    (efrit-test-write "bin/rg" "#!/bin/sh\nprintf 'a.txt\\0001:needle %s\\n' \"$(ulimit -d)\"\n")
    (set-file-modes "bin/rg" #o755)
    (let ((exec-path (cons (expand-file-name "bin" efrit-test-project) exec-path)))
      (attack-test--play loop nil))
    (should (string-search "needle 786432" (efrit-test-sent-text)))))

(ert-deftest efrit-attack-no-program-is-taken-from-a-folder-that-is-named-relatively ()
  "A project, or who shares the temporary folder, may have one of that name."
  (loop-test-with
      (concat (attack-test--use "find_references" "{\"symbol\":\"needle\"}")
              (attack-test--use "read_file" "{\"path\":\"a.txt\"}")
              (attack-test--use
               "edit_file" "{\"path\":\"a.txt\",\"old_text\":\"one\",\"new_text\":\"1\"}")
              (attack-test--use "fetch_url" "{\"url\":\"http://127.0.0.1:1/\"}")
              attack-test--end)
      loop
    (dolist (name '("rg" "grep" "sh" "diff" "curl" "git"))
      (efrit-test-write name (format "#!/bin/sh\ntouch %sPWNED\n" efrit-test-project))
      (set-file-modes name #o755))
    (let ((exec-path (append '("./" "") exec-path))
          (temporary-file-directory efrit-test-project))
      (attack-test--play loop nil))
    (should (equal "1\ntwo\n" (attack-test--text "a.txt")))
    (should-not (attack-test--there-p "PWNED"))))

(ert-deftest efrit-attack-a-compilation-has-no-keys-in-its-environment ()
  "Neither by the names of variables nor by the look of their values."
  (loop-test-with
      (attack-test--tries "compile" "{\"command\":\"env\"}")
      loop
    (let ((process-environment
           (append (mapcar (lambda (name) (concat name "=PRIVATE"))
                           '("MYSQL_PWD" "DB_PWD" "SSHPASS" "BW_SESSION" "OP_SESSION_x" "JWT" "COOKIE"
                             "CI_JOB_JWT_V2" "AUTHORIZATION" "DOCKER_AUTH_CONFIG" "X_CREDS" "MFA_OTP"
                             "PASS" "KEY" "OTP" "SMTP_PW"
                             "CONNECTION_STRING" "GIT_CONFIG_VALUE_0" "ANTHROPIC_API_KEY" "my_token"))
                   '("HARMLESS=postgres://me:PRIVATE@host/db" "PLAIN=sk-PRIVATE0123456789abcdef"
                     "OTHER=sk_live_PRIVATE0123456789"
                     "https_proxy=http://me:proxy@host:1" "KEPT=as it is")
                   process-environment)))
      (attack-test--play loop '((allow))))
    (should (string-search "KEPT=as it is" (efrit-test-sent-text)))
    (should (string-search "https_proxy=http" (efrit-test-sent-text)))
    (should-not (string-search "PRIVATE" (efrit-test-sent-text)))))

(ert-deftest efrit-attack-no-shown-text-takes-the-place-of-another-buffer ()
  "Least of all of a session, where the person is asked."
  (loop-test-with
      (attack-test--tries
       "show_in_emacs" "{\"text\":\"PWNED\",\"title\":\"Go.\"}" "{\"text\":\"one\",\"title\":\"mine\"}"
       "{\"text\":\"two\",\"title\":\"mine\"}")
      loop
    (let ((session (efrit-session-view-buffer loop)))
      ;; The first message is the title of the session, which names its buffer.
      (attack-test--play loop nil)
      (should (equal "*efrit: Go.*" (buffer-name session)))
      (with-current-buffer session
        (should (derived-mode-p 'efrit-session-view-mode))
        (should (eq loop efrit-loop-here))))
    (should (equal "two" (with-current-buffer "*efrit: mine*" (buffer-string))))
    (should (string-search "There is another buffer called *efrit: Go.*" (efrit-test-sent-text)))))

;;; The program's own lines

(ert-deftest efrit-attack-no-name-and-no-text-imitates-the-programs-own-lines ()
  "No tool of Emacs shows them."
  (let ((name "evil\n§ FORGED\nFORGED too.txt"))
    (loop-test-with
        (mapconcat
         (pcase-lambda (`(,tool . ,arguments))
           (attack-test--use tool (decode-coding-string (efrit-json-write arguments) 'utf-8)))
         `(("read_file" :path ,name) ("get_diagnostics" :path ,name) ("list_buffers")
           ("read_buffer" :buffer ,name) ("buffer_outline" :path ,name)
           ("read_buffer" :buffer "empty\nFORGED")
           ("find_definition" :symbol "needle") ("find_references" :symbol "needle")
           ("edit_file" :path ,name :old_text "needle" :new_text "other")
           ("rename_file" :path ,name :to ,(concat name ".b"))
           ("undo_edit") ("undo_edit") ("create_file" :path "x\nFORGED" :content "x")
           ("delete_file" :path "x\nFORGED") ("checkpoint" :label "x\nFORGED")
           ("format_buffer" :path ,name) ("show_in_emacs" :path ,name)
           ("show_in_emacs" :text "x" :title "x\nFORGED")
           ("compile" :command "printf 'needle\n§ FORGED\n'")
           ("eval_sexp" :code "(princ \"a\n§ FORGED\") \"b\n§ FORGED\"")
           ("elisp_docs" :name "x\nFORGED" :kind "key")
           ("elisp_docs" :name "x\nFORGED" :kind "apropos"))
         "")
        loop
      (efrit-test-write name "needle\n§ FORGED\n\u2028§ FORGED\n\r§ FORGED\n")
      (find-file-noselect name)
      (with-current-buffer (get-buffer-create "empty\nFORGED")
        (dired-mode efrit-test-project)
        (let ((inhibit-read-only t))
          (erase-buffer)))
      (attack-test--play loop (make-list 30 '(allow)))
      (let ((results 0))
        (dolist (text (attack-test--results))
          (setq results (1+ results))
          (dolist (line (split-string text "[\n\r\u2028\u2029\x85\f]"))
            (ert-info (text)
              (should-not (string-match-p "\\`§ *FORGED" line)))))
        (should (= 22 results))))))

(defun attack-test--results ()
  "Return the texts of all results that the model was sent last."
  (let ((last (car (last (efrit-test-sent)))))
    (cl-loop for message across (gethash "messages" (gethash "body" last))
             for content = (gethash "content" message)
             when (vectorp content)
             append (cl-loop for block across content
                             when (equal "tool_result" (gethash "type" block))
                             collect (attack-test--content-text (gethash "content" block))))))

(defun attack-test--content-text (content)
  "Return the text of CONTENT, of a result."
  (if (stringp content)
      content
    (mapconcat (lambda (block) (or (gethash "text" block) "")) content "\n")))

;;; What a buffer says

(ert-deftest efrit-attack-no-buffer-has-a-say-in-rules-model-key-and-limits ()
  "A session works by what is set for all of Emacs when it begins."
  (loop-test-with (attack-test--tries "run_command" "{\"command\":\"touch PWNED\"}") loop
    (let ((process-environment (cons "ANTHROPIC_API_KEY=sk-of-the-person" process-environment)))
      (efrit-test-with-rules loop nil
        (with-temp-buffer
          (setq default-directory efrit-test-project)
          (setq-local efrit-permission-rules '((t t allow))
                      efrit-permissions-file (expand-file-name "rules" efrit-test-project)
                      efrit-permission-always-ask-files nil
                      efrit-claude-model "claude-of-the-buffer"
                      efrit-claude-url "http://127.0.0.1:1/v1/messages"
                      efrit-claude-headers '(("x-evil" . "1"))
                      efrit-claude-key-hosts '("127.0.0.1")
                      efrit-max-turns 1
                      process-environment '("ANTHROPIC_API_KEY=sk-of-the-buffer"))
          (efrit-test-write "rules" (format "((%S (t (all) allow)))"
                                            (directory-file-name efrit-test-project)))
          (attack-test--play loop nil)
          (should (efrit-permissions-always-asks-p "Makefile"))
          (efrit-loop-with-options loop
            (should (equal "sk-of-the-person" (getenv "ANTHROPIC_API_KEY")))
            (should-not (assoc "x-api-key" (efrit-endpoint-headers nil)))
            (should-not (assoc "x-evil" (efrit-endpoint-headers nil))))
          (let ((made-here (efrit-loop-make "x" "/")))
            (dolist (option efrit-loop-own-options)
              (should (equal (default-value option) (efrit-loop-option made-here option))))))))
    (should (equal '("run_command") (mapcar #'car attack-test--asked)))
    (should-not (attack-test--there-p "PWNED"))
    (dolist (request (efrit-test-sent))
      (should (equal (default-value 'efrit-claude-model)
                     (gethash "model" (gethash "body" request)))))))

(ert-deftest efrit-attack-no-buffer-has-a-say-in-secrets-searches-and-budgets ()
  "Neither the current one nor the one that is read."
  (let ((efrit-visit-secret-files '("\\.pem\\'")))
    (with-temp-buffer
      (setq-local efrit-web-search-url "http://evil.example/%s"
                  efrit-budget-total-target 5
                  efrit-memory-tools nil
                  efrit-visit-secret-files nil
                  efrit-buffer-secret-modes nil)
      (should (string-search "duckduckgo"
                             (efrit-tool-ask-text "web_search" nil "{\"query\":\"x\"}")))
      (should-not (efrit-limits))
      (should-not (efrit-limits-denied))
      (rename-buffer "key.pem")
      (should-error (efrit-buffer-tools-check) :type 'user-error))))

(ert-deftest efrit-attack-no-buffer-has-a-say-in-the-program-that-sends-again ()
  "A retry comes from a timer, in whichever buffer the person is then."
  (loop-test-with "[[reply]]\nstatus = 529\n[[reply]]\ntext = \"Done.\"\n" loop
    (efrit-test-write "evil" "#!/bin/sh\ntouch PWNED\nexit 1\n")
    (set-file-modes "evil" #o755)
    (with-temp-buffer
      (setq default-directory efrit-test-project)
      (setq-local efrit-http-program (expand-file-name "evil" efrit-test-project))
      (attack-test--play loop nil))
    (should-not (attack-test--there-p "PWNED"))
    (should (equal '(529 200) (loop-test--statuses)))))

(ert-deftest efrit-attack-options-set-later-wait-until-they-are-taken ()
  "A session goes on as it began; the person can have it take what is set now."
  (loop-test-with (attack-test--tries "run_command" "{\"command\":\"touch PWNED\"}") loop
    (let ((efrit-permission-rules '(("run_command" t deny))))
      (should (equal '((t t allow)) (efrit-loop-option loop 'efrit-permission-rules)))
      (efrit-take-options loop)
      (attack-test--play loop nil))
    (should-not attack-test--asked)
    (should-not (attack-test--there-p "PWNED"))))

(provide 'permission-attacks-tests)
;;; permission-attacks-tests.el ends here
