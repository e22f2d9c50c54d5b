;;; edit-session-tests.el --- Edits in a session: questions, undo, checkpoints  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'editing)
(require 'ert)
(require 'looping)
(require 'viewing)
(require 'efrit-ask)
(require 'efrit-undo)

(defconst edit-session--asking "
[[reply]]
tool = [{ name = \"edit_file\", input = { path = \"README.md\", old_text = \"A line.\", new_text = \"Another.\" } }]
[[reply]]
text = \"I see.\"
"
  "A session that asks to change a line of README.md.")

(defmacro edit-session-with-question (script &rest body)
  "Run BODY in the view of a session that plays SCRIPT, once it asks something."
  (declare (indent 1) (debug (form body)))
  `(efrit-viewing-with-view ,script
     (write-region "B\n" nil (expand-file-name "two.md" efrit-test-project) nil 'silent)
     (efrit-viewing-type "Go on.")
     (should (efrit-test-wait-until (lambda () (efrit-run-pending-use view-loop))))
     ,@body))

(ert-deftest efrit-view-shows-a-change-as-a-coloured-diff-before-it-is-made ()
  (edit-session-with-question edit-session--asking
    (efrit-viewing-in-order "│ @@ -1,3 +1,3 @@" "│ -A line." "│ +Another."
                            "Edit README.md +1 −1?\n  [y] once   [n] no   [r] no, because...   [m] more")
    (goto-char (point-min))
    (search-forward "+Another.")
    ;; The background goes on to the edge of the window.
    (should (memq 'diff-added (ensure-list (get-text-property (1- (point)) 'face))))
    (should (memq 'diff-added (ensure-list (get-text-property (point) 'face))))
    (should (equal "# Sample\n\nA line.\n" (editing-bytes "README.md")))
    (efrit-ask-go)
    (efrit-viewing-press "d")
    (with-current-buffer "*efrit diff*"
      (should (derived-mode-p 'diff-mode))
      (should (string-match-p "^-A line\\.\n\\+Another\\.$" (buffer-string))))
    (efrit-ask-go)
    (efrit-viewing-press "y")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (equal "# Sample\n\nAnother.\n" (editing-bytes "README.md")))
    (should (string-search "Edited README.md: line 3" (efrit-test-sent-text)))))

(ert-deftest efrit-view-passes-the-reason-of-a-refusal-to-the-model ()
  (edit-session-with-question edit-session--asking
    (let ((unread-command-events nil))
      (efrit-deny-with-reason "Leave the sample alone."))
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (equal "# Sample\n\nA line.\n" (editing-bytes "README.md")))
    (should-not (efrit-file-buffer (editing-file "README.md")))
    (should (string-search "was not allowed: Leave the sample alone." (efrit-test-sent-text)))))

(ert-deftest efrit-view-lets-the-person-edit-the-new-text-first ()
  (edit-session-with-question edit-session--asking
    (efrit-ask-go)
    (save-window-excursion
      (efrit-viewing-press "e")
      (should (equal "# Sample\n\nAnother.\n" (buffer-string)))
      ;; Another mode for the text takes nothing away.
      (normal-mode)
      (text-mode)
      (should (eq (key-binding (kbd "C-c C-c")) #'efrit-revise-accept))
      (goto-char (point-max))
      (insert "By hand.\n")
      (call-interactively #'efrit-revise-accept))
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (equal "# Sample\n\nAnother.\nBy hand.\n" (editing-bytes "README.md")))
    (should (string-search "The person changed the new text" (efrit-test-sent-text)))
    (should (string-search "+By hand." (efrit-test-sent-text)))))

(ert-deftest efrit-view-offers-to-edit-new-texts-only ()
  "A deletion and a new name can be looked at, and not edited first."
  (dolist (tool '("delete_file\", input = { path = \"README.md\" }"
                  "rename_file\", input = { path = \"README.md\", to = \"NEW.md\" }"))
    (edit-session-with-question (format "
[[reply]]
tool = [{ name = \"%s }]
[[reply]]
text = \"I see.\"
" tool)
      (efrit-ask-go)
      (efrit-viewing-press "m")
      (efrit-viewing-shows "[d] diff in a window")
      (should-not (string-search "edit it first" (efrit-viewing-view-text)))
      (should-error (efrit-revise) :type 'user-error)
      (efrit-deny-once)
      (should (eq 'idle (efrit-test-rest view-loop))))))

(ert-deftest efrit-view-edits-a-new-text-from-its-change-on ()
  "Point is at the beginning of the first changed line, not at the top of the file."
  (edit-session-with-question edit-session--asking
    (efrit-ask-go)
    (save-window-excursion
      (efrit-viewing-press "e")
      (should (looking-at-p "Another\\.$"))
      (should (bolp))
      (call-interactively #'efrit-revise-drop))
    (efrit-deny-once)))

(ert-deftest efrit-view-finds-where-a-change-starts ()
  (pcase-dolist (`(,before ,after ,start)
                 '(("a\nb\nc\n" "a\nbx\nc\n" 2) ("a\n" "a\nb\n" 2) ("a\nb\n" "a\n" 2)
                   (nil "new\n" 0) ("x" "y" 0) ("same line" "same word" 0)))
    (should (= start (efrit-change-start
                      (efrit-change-create :before before :after after))))))

(ert-deftest efrit-view-shows-fifteen-lines-of-a-long-diff-and-the-rest-on-a-key ()
  "The title with the file stands beside the answers, and the names once."
  (edit-session-with-question (format "
[[reply]]
tool = [{ name = \"create_file\", input = { path = \"long.txt\", content = \"%s%s\\n\" } }]
[[reply]]
text = \"I see.\"
" (mapconcat (lambda (number) (format "line %d\\n" number)) (number-sequence 1 3) "")
  (concat (make-string 300 ?x) (mapconcat (lambda (number) (format "\\nline %d" number))
                                          (number-sequence 5 40) "")))
    (efrit-viewing-in-order "│ @@ -0,0 +1,40 @@\n" "│ +line 1\n" "│ +line 14\n"
                            "  … 26 more lines, 1 line cut  [d] show the whole diff\n"
                            "Create long.txt +40 −0?\n  [y] once   [n] no")
    (should (= 0 (efrit-viewing-count "line 15")))
    (should (= 0 (efrit-viewing-count "+++ b/long.txt")))
    (should (string-match-p "│ \\+x\\{158\\}…\n" (efrit-viewing-view-text)))
    (efrit-ask-go)
    (save-window-excursion
      (efrit-viewing-press "d")
      (with-current-buffer "*efrit diff*"
        (should (string-search "+line 40\n" (buffer-string)))
        (should (string-search (make-string 300 ?x) (buffer-string)))
        (kill-buffer)))
    (efrit-deny-once)))

(ert-deftest efrit-view-leaves-out-of-a-long-diff-first-what-does-not-change ()
  "Each change is in sight, with the lines beside it."
  (let ((context (lambda (from) (mapconcat (lambda (n) (format " same %d\n" n))
                                           (number-sequence from (+ from 8)) ""))))
    (with-temp-buffer
      (should (equal (concat "  │ @@ -1,20 +1,20 @@\n  │  same 9\n  │ -one\n  │ +two\n  │  same 11\n"
                             "  │  same 19\n  │ +three\n"
                             "  … 15 more lines  [d] show the whole diff\n")
                     (substring-no-properties
                      (efrit-ask--diff-part
                       (concat "--- a/x\n+++ b/x\n@@ -1,20 +1,20 @@\n" (funcall context 1)
                               "-one\n+two\n" (funcall context 11) "+three\n")
                       15)))))))

(ert-deftest efrit-view-shows-all-of-a-change-that-is-always-asked-about ()
  "A file that runs by being there is decided about with all of its text in sight."
  (edit-session-with-question (format "
[[reply]]
tool = [{ name = \"create_file\", input = { path = \"Makefile\", content = \"%s\" } }]
[[reply]]
text = \"I see.\"
" (mapconcat (lambda (number) (format "line%d:\\n" number)) (number-sequence 1 40) ""))
    (efrit-viewing-in-order "│ +line1:\n" "│ +line40:\n" "Create Makefile +40 −0?\n"
                            "Other programs run or obey Makefile.")
    (should (= 0 (efrit-viewing-count "show the whole diff")))
    (efrit-deny-once)))

(ert-deftest efrit-view-names-each-of-several-changes-on-its-line ()
  (edit-session-with-question "
[[reply]]
[[reply.tool]]
name = \"multi_edit\"
input.edits = [
 { path = \"README.md\", old_text = \"A line.\", new_text = \"One.\" },
 { path = \"two.md\", old_text = \"B\", new_text = \"Two.\" },
]
[[reply]]
text = \"Done.\"
"
    (efrit-viewing-in-order "--- a/README.md" "--- a/two.md"
                            "Make these 2 changes?\n  Edit README.md +1 −1\n  Edit two.md +1 −1\n"
                            "  [y] once")
    (efrit-deny-once)))

(ert-deftest efrit-view-does-not-ask-about-a-change-that-cannot-be-made ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"edit_file\", input = { path = \"README.md\", old_text = \"B line.\", new_text = \"x\" } }]
[[reply]]
text = \"I see.\"
"
    (efrit-viewing-type "Go on.")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (string-search "3: A line." (efrit-test-sent-text)))))

(ert-deftest efrit-view-shows-each-of-two-edits-of-a-file-as-it-will-be ()
  (edit-session-with-question "
[[reply]]
tool = [
 { name = \"edit_file\", input = { path = \"README.md\", old_text = \"A line.\", new_text = \"One.\" } },
 { name = \"edit_file\", input = { path = \"README.md\", old_text = \"One.\", new_text = \"Two.\" } },
]
[[reply]]
text = \"Done.\"
"
    (efrit-viewing-in-order "│ -A line." "│ +One.")
    (should (= 0 (efrit-viewing-count "│ +Two.")))
    (efrit-allow-once)
    (efrit-viewing-shows "│ +Two.")
    (efrit-viewing-in-order "│ -One." "│ +Two.")
    (efrit-allow-once)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (should (equal "# Sample\n\nTwo.\n" (editing-bytes "README.md")))))

(ert-deftest efrit-edit-asks-about-secrets-in-spite-of-rules ()
  (loop-test-with "
[[reply]]
tool = [{ name = \"create_file\", input = { path = \".env\", content = \"KEY=1\\n\" } }]
[[reply]]
text = \"Done.\"
" loop
    (efrit-do-say loop "Make it.")
    (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
    (should-not (editing-bytes ".env"))
    (efrit-run-answer loop (efrit-run-pending-use loop) 'deny)
    (efrit-test-rest loop)
    (should-not (editing-bytes ".env"))))

(ert-deftest efrit-edit-a-rule-about-one-file-holds-for-an-edit-of-several ()
  (loop-test-with "
[[reply]]
tool = [
 { name = \"multi_edit\", input = { edits = [ { path = \"a.txt\", old_text = \"one\", new_text = \"1\" }, { path = \"README.md\", old_text = \"A\", new_text = \"B\" } ] } },
 { name = \"rename_file\", input = { path = \"a.txt\", to = \"README.txt\" } },
]
[[reply]]
text = \"Done.\"
" loop
    (efrit-test-with-rules loop '((t "README" deny) (t t allow))
      (efrit-test-finish loop "Go."))
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
    (should (equal "# A project\n" (editing-bytes "README.md")))
    (should (equal 2 (cl-count "error" (efrit-loop-run loop) :test #'equal
                               :key (lambda (use)
                                      (plist-get (efrit-use-result use) :status)))))))

(ert-deftest efrit-edit-requires-reading-files-that-changed-between-sessions ()
  (loop-test-with "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"a.txt\" } }]
[[reply]]
text = \"Read.\"
[[reply]]
tool = [
 { name = \"edit_file\", input = { path = \"a.txt\", old_text = \"two\", new_text = \"2\" } },
 { name = \"edit_file\", input = { path = \"README.md\", old_text = \"A\", new_text = \"B\" } },
]
[[reply]]
text = \"I see.\"
" loop
    (set-file-times (editing-file "README.md") (time-subtract nil 60))
    (efrit-test-finish loop "Read it.")
    (efrit-do-forget loop)
    (efrit-test-write "a.txt" "one\ntwo\nthree\n")
    (set-file-times (editing-file "a.txt") (time-add nil 2))
    (let ((again (efrit-do-resume-loop (efrit-loop-id loop) efrit-test-project)))
      (efrit-test-finish again "Edit it.")
      (should (string-search "has changed since this session last worked"
                             (efrit-test-sent-text)))
      (should (equal "one\ntwo\nthree\n" (editing-bytes "a.txt")))
      (should (equal "# B project\n" (editing-bytes "README.md"))))))

;;; Undo

(ert-deftest efrit-edit-the-model-takes-back-its-edits-and-comes-back-to-a-checkpoint ()
  (loop-test-with "
[[reply]]
tool = [
 { name = \"edit_file\", input = { path = \"a.txt\", old_text = \"one\", new_text = \"1\" } },
 { name = \"checkpoint\", input = { label = \"before the move\" } },
 { name = \"edit_file\", input = { path = \"a.txt\", old_text = \"two\", new_text = \"2\" } },
 { name = \"create_file\", input = { path = \"new/b.txt\", content = \"b\" } },
 { name = \"rename_file\", input = { path = \"README.md\", to = \"LIESMICH.md\" } },
 { name = \"delete_file\", input = { path = \"a.txt\" } },
]
[[reply]]
expect_contains = \"Checkpoint k1 (before the move).\"
tool = [{ name = \"restore_checkpoint\", input = { checkpoint = \"k1\" } }]
[[reply]]
tool = [{ name = \"undo_edit\", input = { path = \"a.txt\" } }]
[[reply]]
tool = [{ name = \"undo_edit\", input = {} }]
[[reply]]
expect_contains = \"No edits left to undo\"
text = \"Done.\"
" loop
    (let (after-checkpoint)
      (efrit-loop-observe
       loop (lambda (_ event)
              (pcase event
                (`(use ,use)
                 (when (and (eq (efrit-use-state use) 'done)
                            (equal (efrit-use-name use) "restore_checkpoint"))
                   (setq after-checkpoint (editing-tree)))))))
      (efrit-test-finish loop "Go.")
      (should (equal '(("README.md" . "# A project\n") ("a.txt" . "1\ntwo\n"))
                     after-checkpoint))
      (should (equal '(("README.md" . "# A project\n") ("a.txt" . "one\ntwo\n"))
                     (editing-tree)))
      (should-not (file-exists-p (editing-file "new"))))))

(ert-deftest efrit-undo-works-after-emacs-and-the-sidecar-were-started-anew ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")
    (let ((id (efrit-loop-id editing-loop)))
      (efrit-test-kill-buffers (list (efrit-file-buffer (editing-file "a.txt"))))
      (efrit-do-forget editing-loop)
      (efrit-sidecar-stop)
      (let ((editing-loop (efrit-do-resume-loop id efrit-test-project)))
        (should-not (seq-some #'caddr (editing-undo-all)))
        (should (equal "one\ntwo\n" (editing-bytes "a.txt")))))))

(ert-deftest efrit-undo-refuses-a-file-changed-since-and-shows-the-difference ()
  (editing-with '(("a.txt" . "one\ntwo\n") ("b.txt" . "three\n"))
    (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")
    (editing-use "edit_file" :path "b.txt" :old_text "three" :new_text "3")
    (with-current-buffer (find-file-noselect (editing-file "a.txt"))
      (goto-char (point-max))
      (insert "mine\n")
      (save-buffer))
    (with-current-buffer (find-file-noselect (editing-file "b.txt"))
      (insert "not saved\n"))
    (let ((outcomes (editing-undo-all)))
      (should (seq-every-p #'caddr outcomes))
      (should (string-match-p "^\\+not saved$" (nth 3 (car outcomes))))
      (should (string-match-p "^\\+mine$" (nth 3 (cadr outcomes)))))
    (should (equal "1\ntwo\nmine\n" (editing-bytes "a.txt")))
    (should (equal "3\n" (editing-bytes "b.txt")))
    (editing-undo-all t)
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
    (should (equal "three\n" (editing-bytes "b.txt")))
    (should (equal "three\n" (with-current-buffer (efrit-file-buffer (editing-file "b.txt"))
                               (buffer-string))))))

(ert-deftest efrit-edit-checkpoints-are-listed-without-a-name ()
  (editing-with '(("a.txt" . "one\n"))
    (let ((said (lambda (&rest given)
                  (plist-get (apply #'editing-use "restore_checkpoint" given) :text))))
      (should (equal "There are no checkpoints; checkpoint makes one" (funcall said)))
      (editing-use "checkpoint" :label "before")
      (editing-use "checkpoint")
      (should (equal "Give one of the checkpoints: k1 (before), k2" (funcall said)))
      (should (string-search "there is no k9; there are: k1 (before), k2"
                             (funcall said :checkpoint "k9"))))))

(ert-deftest efrit-undo-takes-back-the-last-edit-by-a-command ()
  (editing-with '(("a.txt" . "one\ntwo\n"))
    (find-file-noselect (editing-file "a.txt"))
    (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")
    (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2")
    (let ((default-directory efrit-test-project))
      (efrit-undo)
      (should (efrit-test-wait-until
               (lambda () (equal "1\ntwo\n" (editing-bytes "a.txt")))))
      (with-current-buffer (efrit-file-buffer (editing-file "a.txt"))
        (should (efrit-test-wait-until (lambda () (equal "1\ntwo\n" (buffer-string)))))
        (should-not (buffer-modified-p))))))

(ert-deftest efrit-undo-by-the-person-is-reported-to-the-model-and-shown ()
  "The model learns it with the next message, once; the transcript says so at once."
  (edit-session-with-question (concat edit-session--asking "
[[reply]]
expect_contains = \"The person undid your edit c1: README.md is as it was before.\"
text = \"As you like.\"
[[reply]]
text = \"Yes.\"
")
    (efrit-allow-once)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (let ((requests (length (efrit-test-sent))))
      (efrit-undo)
      (should (efrit-test-wait-until (lambda () (efrit-loop-notices view-loop))))
      (efrit-viewing-shows "You undid c1 of README.md")
      (should (= requests (length (efrit-test-sent)))))
    (efrit-viewing-type "And now?")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-shows "As you like.")
    (efrit-viewing-type "Really?")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (let ((body (gethash "body" (car (last (efrit-test-sent))))))
      (should (equal "Really?"
                     (gethash "text" (aref (gethash "content"
                                                    (let ((messages (gethash "messages" body)))
                                                      (aref messages (1- (length messages)))))
                                           0)))))))

(ert-deftest efrit-undo-by-the-person-is-reported-after-a-resume-if-it-was-not-before ()
  "The sidecar knows what the model was not told when Emacs ended."
  (edit-session-with-question (concat edit-session--asking "
[[reply]]
repeat = 2
text = \"As you like.\"
")
    (efrit-allow-once)
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-undo)
    (should (efrit-test-wait-until (lambda () (efrit-loop-notices view-loop))))
    (let* ((id (efrit-loop-id view-loop))
           (notes (lambda (loop)
                    (mapcar (lambda (block) (plist-get block :text)) (efrit-loop-notices loop))))
           (resume (lambda ()
                     (efrit-do-forget (efrit-loop-of-session id))
                     (efrit-do-resume-loop id efrit-test-project)))
           (again (funcall resume)))
      (should (efrit-test-wait-until (lambda () (efrit-loop-notices again))))
      (should (equal '("[The person undid your edit c1: README.md is as it was before.]")
                     (funcall notes again)))
      (efrit-do-say again "And now?")
      (should (eq 'idle (efrit-test-rest again)))
      (should (string-search "The person undid your edit c1" (efrit-test-sent-text)))
      (should (efrit-test-wait-until
               (lambda ()
                 (let ((listed (efrit-sidecar-request 'changes/list (list :session_id id))))
                   (eq :json-false (plist-get (aref (plist-get listed :changes) 0) :to_report))))))
      (should-not (funcall notes (funcall resume))))))

(ert-deftest efrit-undo-lists-the-edits-of-a-session-and-undoes-them ()
  (editing-with '(("a.txt" . "one\n"))
    (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")
    (editing-use "create_file" :path "b.txt" :content "b\n")
    (save-window-excursion
      (efrit-undo-session editing-loop)
      (unwind-protect
          (cl-letf (((symbol-function 'yes-or-no-p) #'always))
            (should (efrit-test-wait-until
                     (lambda () (string-search "b.txt" (buffer-string)))))
            ;; Point is on the first edit.
            (should (looking-at " c2 +create +b.txt +\\+1 −0 +unchanged"))
            (forward-line)
            (should (looking-at " c1 +edit +a.txt +\\+1 −1"))
            (efrit-undo-view-diff)
            (should (efrit-test-wait-until
                     (lambda ()
                       (with-current-buffer (get-buffer-create "*efrit diff*")
                         (string-match-p "^-one\n\\+1$" (buffer-string))))))
            (efrit-undo-view-all)
            (should (efrit-test-wait-until
                     (lambda () (= 2 (how-many "undone" (point-min) (point-max))))))
            (should (equal '(("a.txt" . "one\n")) (editing-tree))))
        (kill-buffer)))))

(defmacro edit-session-with-edits (question answer &rest body)
  "Run BODY in the list of a session with three edits, c1 and c2 of the same file.
A question by `y-or-n-p' must contain QUESTION, and gets ANSWER."
  (declare (indent 2))
  `(editing-with '(("a.txt" . "one\ntwo\n"))
     (editing-use "edit_file" :path "a.txt" :old_text "one" :new_text "1")
     (editing-use "edit_file" :path "a.txt" :old_text "two" :new_text "2")
     (editing-use "create_file" :path "b.txt" :content "b\n")
     (save-window-excursion
       (efrit-undo-session editing-loop)
       (unwind-protect
           (cl-letf (((symbol-function 'y-or-n-p)
                      (lambda (asked)
                        (should (string-search ,question asked))
                        ,answer)))
             (edit-session-listed "c3 +create +b.txt")
             ,@body)
         (kill-buffer)))))

(defun edit-session-listed (regexp)
  "Wait until a line of this list matches REGEXP, and go to it."
  (ert-info ((format "waiting for %s in %s" regexp (buffer-string)))
    (should (efrit-test-wait-until (lambda ()
                                     (goto-char (point-min))
                                     (re-search-forward regexp nil t)))))
  (beginning-of-line))

(defun edit-session-press (key)
  "Call the command of KEY in this list."
  (call-interactively (key-binding (kbd key))))

(ert-deftest efrit-undo-offers-to-take-the-later-edits-of-the-model-along ()
  (edit-session-with-edits "after c1: c2.  Take back both?" t
    (edit-session-listed "c1 +edit")
    (edit-session-press "u")
    (edit-session-listed "c1 +edit.*undone")
    (edit-session-listed "c2 +edit.*undone")
    (edit-session-listed "c3 .*unchanged")
    (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
    (should (equal '("[The person undid your edit c1: a.txt is as it was before.]"
                     "[The person undid your edit c2: a.txt is as it was before.]")
                   (mapcar (lambda (block) (plist-get block :text))
                           (efrit-loop-notices editing-loop))))))

(ert-deftest efrit-undo-of-an-older-edit-does-nothing-where-the-person-says-no ()
  (edit-session-with-edits "Take back both?" nil
    (edit-session-listed "c1 +edit")
    (should-error (edit-session-press "u") :type 'user-error)
    (should (equal "1\n2\n" (editing-bytes "a.txt")))
    (should-not (efrit-loop-notices editing-loop))))

(ert-deftest efrit-undo-can-be-undone-in-the-list-and-by-a-command ()
  (edit-session-with-edits "Take back both?" t
    (edit-session-listed "c1 +edit")
    (edit-session-press "u")
    (edit-session-listed "c1 +edit.*undone")
    (find-file-noselect (editing-file "a.txt"))
    (edit-session-press "r")
    (edit-session-listed "c1 +edit.*unchanged")
    (should (equal "1\ntwo\n" (editing-bytes "a.txt")))
    (efrit-redo)
    (edit-session-listed "c2 +edit.*unchanged")
    (should (equal "1\n2\n" (editing-bytes "a.txt")))
    (with-current-buffer (efrit-file-buffer (editing-file "a.txt"))
      (should (equal "1\n2\n" (buffer-string)))
      (should-not (buffer-modified-p)))
    (should (equal "[The person made your edit c2 again: a.txt is as it was after it.]"
                   (plist-get (car (efrit-loop-notices editing-loop)) :text)))))

(ert-deftest efrit-redo-offers-to-make-what-was-undone-after-it-again ()
  (edit-session-with-edits "" t
    (edit-session-listed "c1 +edit")
    (edit-session-press "u")
    (edit-session-listed "c1 +edit.*undone")
    (edit-session-listed "c3 +create")
    (edit-session-press "u")
    (edit-session-listed "c3 .*undone")
    (let ((answer nil)
          (asked nil))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (question) (setq asked question) answer)))
        (edit-session-listed "c2 +edit.*undone")
        (should-error (edit-session-press "r") :type 'user-error)
        (should (equal "In this file c1 was undone after c2.  Make both again? " asked))
        (should (equal "one\ntwo\n" (editing-bytes "a.txt")))
        (setq answer t)
        (edit-session-press "r")
        (edit-session-listed "c2 +edit.*unchanged")
        (edit-session-listed "c1 +edit.*unchanged")
        (should (equal "1\n2\n" (editing-bytes "a.txt")))
        (edit-session-listed "c3 .*undone")
        ;; Nothing of its file was undone after c3.
        (setq asked nil)
        (edit-session-press "r")
        (edit-session-listed "c3 .*unchanged")
        (should-not asked)))))

(ert-deftest efrit-undo-knows-what-was-undone-after-an-edit ()
  (let ((listed (mapcar (lambda (number) (list :number number :path "a" :state "undone"))
                        '(1 2 3 4))))
    (pcase-dolist (`(,number ,order . ,after) '((4 (1 2 3 4) 1 2 3) (2 (4 2 1) 4) (4 (4 3))
                                                (4 () 1 2 3) (3 (4) 4 1 2) (1 ())))
      (should (equal after (efrit-undo-undone-after number order listed))))))

(ert-deftest efrit-undo-list-fits-what-became-of-an-edit-into-80-columns ()
  (edit-session-with-edits "" t
    (edit-session-press "g")
    (edit-session-listed "c1 +edit")
    (should (search-forward "unchanged" (line-end-position) t))
    (should (<= (current-column) 79))))

(ert-deftest efrit-redo-leaves-work-of-the-person-alone ()
  (edit-session-with-edits "" t
    (edit-session-listed "c3 +create")
    (edit-session-press "u")
    (edit-session-listed "c3 .*undone")
    (efrit-test-write "b.txt" "mine\n")
    (edit-session-press "r")
    (should (efrit-test-wait-until
             (lambda ()
               (with-current-buffer (get-buffer-create "*efrit diff*")
                 (string-search "has changed since it was undone" (buffer-string))))))
    (should (equal "mine\n" (editing-bytes "b.txt")))
    (should (= 1 (length (efrit-loop-notices editing-loop))))))

(provide 'edit-session-tests)
;;; edit-session-tests.el ends here
