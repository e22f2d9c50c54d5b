;;; mcp-tests.el --- Tests of other people's MCP servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The servers are tests/mcp/fake_server.py, as processes that the sidecar starts.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)
(require 'viewing)
(require 'efrit-ask)
(require 'efrit-mcp)
(require 'efrit-run)
(require 'efrit-setup)

(defconst mcp-test--server (expand-file-name "tests/mcp/fake_server.py" efrit-test-root)
  "The server of the tests.")

(defun mcp-test--command (&rest arguments)
  "Return the command of a server with ARGUMENTS, a list."
  (append (list (efrit-test--python) mcp-test--server) arguments))

(defun mcp-test--starts (file)
  "Return the number of times that a server was started, as it notes in FILE."
  (if (file-exists-p file)
      (with-temp-buffer
        (insert-file-contents file)
        (how-many "started" (point-min)))
    0))

(defun mcp-test--notes ()
  "Return the notes of the loop under test, in order, as one text."
  (string-join (cl-loop for event in (reverse loop-test--events)
                        when (eq (car event) 'note) collect (cadr event))
               "\n"))

(defun mcp-test--gists (loop)
  "Return a line in words for each tool call of the latest turn of LOOP."
  (mapcar #'efrit-line-words (efrit-loop-run loop)))

(defun mcp-test--write-file (&rest arguments)
  "Write a .mcp.json with a server \"theirs\" that has ARGUMENTS."
  (efrit-test-write
   ".mcp.json"
   (json-encode `((mcpServers . ((theirs . ((command . ,(efrit-test--python))
                                            (args . ,(vconcat (cons mcp-test--server
                                                                    arguments)))))))))))

(defmacro mcp-test-with-answer (answer questions &rest body)
  "Run BODY while the person answers ANSWER, a character, about a .mcp.json.
QUESTIONS is bound to the list of what was shown, the latest first."
  (declare (indent 2) (debug (form symbolp body)))
  `(let ((noninteractive nil)
         (,questions nil))
     (cl-letf (((symbol-function 'read-multiple-choice)
                (lambda (_ choices)
                  (push (with-current-buffer efrit-mcp--question-buffer (buffer-string)) ,questions)
                  (or (assq ,answer choices) (assq ?v choices)))))
       ,@body)))

;;; Servers of the person

(ert-deftest efrit-mcp-a-session-has-two-servers-of-which-one-dies ()
  (loop-test-in-project
    (let* ((starts (make-temp-file "efrit-starts-"))
           (efrit-mcp-servers `(("one" :command ,(mcp-test--command))
                                ("two" :command ,(mcp-test--command starts)))))
      (loop-test-play "
[[reply]]
tool = [
  { name = \"one__count\", input = { upto = 3 } },
  { name = \"two__die\", input = {} },
]
[[reply]]
expect_contains = \"the server two ended during this call\"
tool = [
  { name = \"two__count\", input = { upto = 4 } },
  { name = \"one__forms\", input = { of = \"lines\", size = 9000 } },
]
[[reply]]
expect_contains = \"continuation_token\"
text = \"Done.\"
" loop
        (efrit-test-finish loop "Count.")
        (should (equal "Done." (loop-test--said)))
        (should (equal '(200 200 200) (loop-test--statuses)))
        (should (string-search "0 1 2" (efrit-test-sent-text)))
        (should (string-search "0 1 2 3" (efrit-test-sent-text)))
        (should (string-search "one runs, 7 tools; two runs, 7 tools" (mcp-test--notes)))
        (should (= 2 (mcp-test--starts starts)))
        (should (string-prefix-p "• two: count" (car (mcp-test--gists loop))))
        (let ((lists (mapcar (lambda (request)
                               (efrit-json-text (gethash "tools" (gethash "body" request))))
                             (efrit-test-sent))))
          (should (equal (car lists) (nth 2 lists))))
        (delete-file starts)))))

(ert-deftest efrit-mcp-each-call-is-asked-about-and-can-be-allowed-by-tool ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command)))))
      (loop-test-play "
[[reply]]
tool = [ { name = \"one__count\", input = { upto = 3 } } ]
[[reply]]
tool = [ { name = \"one__count\", input = { upto = 4 } } ]
[[reply]]
tool = [ { name = \"one__login\", input = { session = 7 } } ]
[[reply]]
text = \"Done.\"
" loop
        (efrit-test-with-rules loop nil
          (let ((asked nil))
            (efrit-loop-observe
             loop (lambda (loop event)
                    (when (eq (car event) 'ask)
                      (let ((use (cadr event)))
                        (push (efrit-show-question-title use) asked)
                        (efrit-defer #'efrit-run-answer loop use 'allow 'session nil 'alike)))))
            (efrit-test-finish loop "Count.")
            (should (equal '("Use the tool count of the MCP server one for this?"
                             "Use the tool login of the MCP server one for this?")
                           (reverse asked)))))))))

(ert-deftest efrit-mcp-a-denied-tool-of-a-server-does-not-run ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command)))))
      (loop-test-play "
[[reply]]
tool = [ { name = \"one__die\", input = {} } ]
[[reply]]
expect_contains = \"did not allow this use of one__die\"
text = \"Done.\"
" loop
        (efrit-test-with-rules loop '(("one__die" t deny))
          (efrit-test-finish loop "Die."))))))

(ert-deftest efrit-mcp-the-servers-start-again-with-a-new-sidecar ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command)))))
      (loop-test-play "
[[reply]]
text = \"Hello.\"
[[reply]]
tool = [ { name = \"one__count\", input = { upto = 3 } } ]
[[reply]]
expect_contains = \"0 1 2\"
text = \"Done.\"
" loop
        (efrit-test-finish loop "Hello.")
        (efrit-test-kill)
        (efrit-test-finish loop "Count.")
        (should (= 1 (efrit-loop-epoch loop)))))))

(ert-deftest efrit-mcp-a-sidecar-that-dies-before-a-call-starts-the-servers-again-for-it ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command))))
          (killed nil))
      (loop-test-play "
[[reply]]
tool = [ { name = \"one__count\", input = { upto = 3 } } ]
[[reply]]
expect_contains = \"0 1 2\"
text = \"Done.\"
" loop
        (efrit-loop-observe loop (lambda (_ event)
                                   (when (and (eq (car event) 'ended) (not killed))
                                     (setq killed (efrit-test-kill)))))
        (efrit-test-finish loop "Count.")
        (should killed)))))

(ert-deftest efrit-mcp-hidden-tools-are-not-offered-and-descriptions-shortened ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command)
                                :env (("LEVEL" . "high")) :cwd ,efrit-test-project)))
          (efrit-mcp-hidden-tools '("one__d*"))
          (efrit-mcp-short t))
      (loop-test-play "
[[reply]]
tool = [ { name = \"one__environment\", input = {} } ]
[[reply]]
expect_contains = 'LEVEL'
text = \"Done.\"
" loop
        (efrit-test-finish loop "Look.")
        (should-not (string-search "one__die" (efrit-test-sent-text)))
        (should-not (string-search "one by one" (efrit-test-sent-text)))))))

(ert-deftest efrit-mcp-a-session-without-servers-asks-the-sidecar-nothing-about-them ()
  (loop-test-with "[[reply]]\ntext = \"Hello.\"\n" loop
    (let ((asked nil))
      (cl-letf* ((call (symbol-function 'efrit-loop-call))
                 ((symbol-function 'efrit-loop-call)
                  (lambda (loop method &rest more)
                    (push method asked)
                    (apply call loop method more))))
        (efrit-test-finish loop "Hello."))
      (should-not (memq 'servers/start asked))
      (should-not (efrit-loop-servers loop)))))

;;; The servers of a project

(ert-deftest efrit-mcp-the-person-is-asked-before-a-projects-servers-run-and-once ()
  (loop-test-in-project
    (let ((starts (expand-file-name "starts" efrit-test-project)))
      (mcp-test--write-file starts)
      (loop-test-play "
[[reply]]
tool = [ { name = \"theirs__count\", input = { upto = 3 } } ]
[[reply]]
expect_contains = \"0 1 2\"
text = \"One.\"
[[reply]]
text = \"Two.\"
[[reply]]
text = \"Three.\"
" loop
        (mcp-test-with-answer ?y questions
          (efrit-do-submit loop "Count.")
          (should (= 0 (mcp-test--starts starts)))
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 1 (length questions)))
          (should (string-search starts (car questions)))
          (efrit-do-submit loop "And now?")
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 1 (length questions)))
          (should (= 1 (mcp-test--starts starts)))
          (mcp-test--write-file starts "/dev/null")
          (efrit-do-submit loop "And then?")
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 2 (length questions)))
          (should (equal "One.Two.Three." (loop-test--said))))
        (should (= 2 (length (efrit-permissions-of efrit-test-project))))))))

(ert-deftest efrit-mcp-a-refused-file-starts-nothing-and-is-not-asked-about-again ()
  (loop-test-in-project
    (let ((starts (expand-file-name "starts" efrit-test-project)))
      (mcp-test--write-file starts)
      (loop-test-play "[[reply]]\ntext = \"One.\"\n[[reply]]\ntext = \"Two.\"\n" loop
        (mcp-test-with-answer ?n questions
          (efrit-do-submit loop "Hello.")
          (should (eq 'idle (efrit-test-rest loop)))
          (efrit-do-submit loop "Hello again.")
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 1 (length questions))))
        (should (= 0 (mcp-test--starts starts)))
        (should-not (string-search "theirs__" (efrit-test-sent-text)))
        (should-not (efrit-permissions-of efrit-test-project))))))

(ert-deftest efrit-mcp-in-batch-a-projects-servers-do-not-run-unless-allowed-before ()
  (loop-test-in-project
    (let ((starts (expand-file-name "starts" efrit-test-project)))
      (mcp-test--write-file starts)
      (loop-test-play "[[reply]]\ntext = \"One.\"\n" loop
        (efrit-do-submit loop "Hello.")
        (should (eq 'idle (efrit-test-rest loop)))
        (should (= 0 (mcp-test--starts starts)))
        (should (string-search "not started in batch" (mcp-test--notes)))))))

(ert-deftest efrit-mcp-the-question-shows-hidden-characters-and-no-key-goes-along ()
  (loop-test-in-project
    (efrit-test-write ".mcp.json" "{\"mcpServers\": {\"theirs\": {\"command\": \"true\\u202e\",
\"env\": {\"A\": \"${ANTHROPIC_API_KEY}\", \"B\": \"${EFRIT_TEST_VARIABLE}\"}}}}")
    (loop-test-play "[[reply]]\ntext = \"One.\"\n" loop
      (let ((process-environment (append '("ANTHROPIC_API_KEY=secret" "EFRIT_TEST_VARIABLE=b")
                                         process-environment)))
        (mcp-test-with-answer ?s questions
          (efrit-do-submit loop "Hello.")
          (should (eq 'idle (efrit-test-rest loop)))
          (should (string-search "true<U+202E>" (car questions)))
          (should (string-search "from your environment: EFRIT_TEST_VARIABLE\n"
                                 (car questions)))
          (should (string-search "the variable ANTHROPIC_API_KEY is not set"
                                 (mcp-test--notes))))))))

(ert-deftest efrit-mcp-nothing-is-allowed-before-the-end-of-the-question-was-in-sight ()
  (let ((offered nil))
    (cl-letf (((symbol-function 'read-multiple-choice)
               (lambda (_ choices)
                 (push (mapcar #'car choices) offered)
                 (or (assq ?y choices) (assq ?v choices)))))
      (should (eq ?y (efrit-mcp--answer (apply #'concat (make-list 200 "a server\n")) 200))))
    (should (< 2 (length offered)))
    (should (equal '(?y ?s ?n ?N) (car offered)))
    (should (equal '((?v ?n ?N)) (seq-uniq (cdr offered))))
    (should-not (get-buffer efrit-mcp--question-buffer))))

;;; What the person sees

(ert-deftest efrit-mcp-calls-stand-in-the-view-in-words ()
  (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command))))
        (efrit-permission-rules '((t t allow))))
    (efrit-viewing-with-view "
[[reply]]
tool = [
  { name = \"one__odd_name_here\", input = { upto = 3 } },
  { name = \"tool_help\", input = {} },
]
[[reply]]
text = \"Done.\"
"
      (efrit-viewing-type "Count.")
      (efrit-viewing-shows "Done.")
      (efrit-viewing-in-order "MCP servers: one runs, 7 tools" "one: odd name here"
                              "Look up the MCP servers"))))

(ert-deftest efrit-mcp-the-servers-of-a-session-are-listed ()
  (loop-test-in-project
    (let ((efrit-mcp-servers `(("one" :command ,(mcp-test--command))
                               ("broken" :command ("/nosuch/program")))))
      (loop-test-play "[[reply]]\ntext = \"Hello.\"\n" loop
        (efrit-test-finish loop "Hello.")
        (save-window-excursion
          (efrit-servers)
          (let ((text (with-current-buffer "*efrit servers*" (buffer-string))))
            (should (string-search "one runs, 7 tools" text))
            (should (string-match-p "broken does not run: .*/nosuch/program" text))
            (should (string-search "one__count" text))))))))

(ert-deftest efrit-mcp-the-doctor-names-a-missing-program ()
  (let* ((efrit-mcp-servers '(("one" :command ("sh")) ("two" :command ("nosuch-program"))))
         (check (car (efrit-doctor--servers))))
    (should-not (efrit-doctor-check-ok check))
    (should (equal "two: nosuch-program not found" (efrit-doctor-check-found check)))))

;;; mcp-tests.el ends here
