;;; output-tests.el --- Tests of what a running tool shows, and of stopping one  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A real sidecar runs real commands, which wait for a file that the test
;; writes.

;;; Code:

(require 'viewing)

(defmacro output-test-running (command &rest body)
  "Run BODY in the buffer of a loop whose model has COMMAND run and ends."
  (declare (indent 1) (debug (form body)))
  `(efrit-viewing-with-view (output-test--script ,command)
     (efrit-test-with-rules view-loop '((t t allow))
       (efrit-viewing-type "Run it.")
       ,@body)))

(defun output-test--script (command)
  "Return a scenario whose model has COMMAND run once."
  (format "
[[reply]]
tool = [{ name = \"run_command\", input = { command = %S } }]
[[reply]]
text = \"Done.\"
" command))

(defun output-test--result ()
  "Return the latest result that the model got for its tool, as text."
  (let ((sent (efrit-test-sent-text)))
    (should (string-match "\"tool_result\"" sent))
    sent))

(ert-deftest efrit-output-shows-the-last-lines-while-a-command-runs-and-then-its-result ()
  (let ((efrit-output-lines 3))
    (output-test-running "seq 1 500; until test -e go; do sleep 0.05; done; echo finished"
      (efrit-viewing-shows "│ 500")
      (efrit-viewing-in-order "… Run seq 1 500; until" " · running\n" "│ 498\n" "│ 499\n" "│ 500\n")
      (should-not (string-search "│ 497\n" (efrit-viewing-view-text)))
      (should (efrit-transcript-in-box-p))
      (efrit-test-write "go" "")
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "• Run " "Done.")
      (should-not (string-search "│ 500" (efrit-viewing-view-text))))))

(ert-deftest efrit-output-grows-while-a-command-writes ()
  (output-test-running "printf 'first\\r'; until test -e go; do sleep 0.05; done; \
echo second; until test -e end; do sleep 0.05; done"
    (efrit-viewing-shows "│ first\n")
    (efrit-test-write "go" "")
    (efrit-viewing-shows "│ second\n")
    (should-not (string-search "│ first" (efrit-viewing-view-text)))
    (efrit-test-write "end" "")
    (should (eq (efrit-test-rest view-loop) 'idle))))

(ert-deftest efrit-output-shows-nothing-where-no-line-is-wanted ()
  (let ((efrit-output-lines 0)
        (told nil))
    (output-test-running "seq 1 500; until test -e go; do sleep 0.05; done"
      (efrit-loop-observe view-loop (lambda (_ event)
                                      (when (eq (car event) 'output) (setq told t))))
      (should (efrit-test-wait-until (lambda () told)))
      (should-not (string-search "│" (efrit-viewing-view-text)))
      (efrit-test-write "go" "")
      (should (eq (efrit-test-rest view-loop) 'idle)))))

(ert-deftest efrit-stop-tool-ends-a-command-and-keeps-its-output ()
  (output-test-running "echo early; sleep 600; echo never"
    (efrit-viewing-shows "│ early\n")
    (efrit-viewing-to "Run echo early")
    (efrit-viewing-press "x")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "✗ Stopped: Run echo early; sleep" "(you, after " "Done.")
    (efrit-viewing-to "Stopped: ")
    (efrit-viewing-press "RET")
    (efrit-viewing-in-order "Stopped: " "stopped by the person after " "early" "Took" "Done.")
    (let ((sent (output-test--result)))
      (should (string-match-p "stopped by the person after [0-9.]+ s\\\\nearly" sent)))))

(ert-deftest efrit-stop-tool-has-a-button-where-one-tool-runs ()
  (output-test-running "echo early; sleep 600"
    (efrit-viewing-shows "● running tools  [stop]  [stop only the tool]")
    (efrit-viewing-shows "│ early\n")
    (goto-char efrit-transcript-box)
    (search-backward "stop only")
    (efrit-viewing-press "RET")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "✗ Stopped: Run echo early; sleep" "(you, after " "Done.")
    (should-not (string-search "stop only" (efrit-viewing-view-text)))))

(ert-deftest efrit-stop-tool-ends-the-one-at-point-and-leaves-the-other ()
  (efrit-viewing-with-view "
[[reply]]
[[reply.tool]]
name = \"wait\"
input.seconds = 600
[[reply.tool]]
name = \"wait\"
input.seconds = 601
[[reply]]
text = \"Done.\"
"
    (efrit-test-with-rules view-loop '((t t allow))
      (efrit-viewing-type "Run both.")
      (should (efrit-test-wait-until
               (lambda () (equal '(running running) (mapcar #'efrit-use-state (efrit-loop-run view-loop))))))
      (goto-char (point-max))
      (should (string-match-p "2 tools are running"
                              (cadr (should-error (efrit-stop-tool) :type 'user-error))))
      (efrit-viewing-to "… wait 600")
      (efrit-stop-tool)
      (efrit-viewing-shows "✗ Stopped: wait 600 (you)")
      (efrit-viewing-in-order "✗ Stopped: wait 600 (you)" "… wait 601")
      (efrit-viewing-to "… wait 601")
      (efrit-stop-tool)
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "✗ Stopped: wait 600 (you)" "✗ Stopped: wait 601 (you)" "Done.")
      (should-error (efrit-stop-tool) :type 'user-error))))

(defvar output-test--calls nil
  "The calls of the tool that only these tests offer, the latest first.")

(defun output-test--offer-waiting ()
  "Offer a tool that waits until it is stopped."
  (efrit-define-tool wait_here () "Wait."
    :policy allow
    :async t
    (push call output-test--calls)
    (setf (efrit-tool-call-stop call)
          (lambda ()
            (push 'stopped output-test--calls)
            (efrit-tool-finish call (efrit-tool-result "stopped by the person"
                                                       :status 'error))))))

(defmacro output-test-waiting (&rest body)
  "Run BODY in the buffer of a loop at work on an Emacs tool that waits."
  (declare (indent 0) (debug (body)))
  `(let ((efrit-tools--by-name efrit-tools--by-name)
         (output-test--calls nil))
     (output-test--offer-waiting)
     (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"wait_here\", input = {} }]
[[reply]]
text = \"Done.\"
"
       (efrit-viewing-type "Wait.")
       (should (efrit-test-wait-until (lambda () output-test--calls)))
       ,@body)))

(ert-deftest efrit-stop-tool-ends-a-tool-of-this-emacs-that-can-be-stopped ()
  (output-test-waiting
    (efrit-stop-tool)
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "✗ Stopped: wait_here" "Done.")
    (should (string-search "stopped by the person" (output-test--result)))))

(ert-deftest efrit-stop-ends-what-runs-in-this-emacs-too ()
  (output-test-waiting
    (efrit-stop view-loop)
    (should (eq (efrit-loop-state view-loop) 'idle))
    (should (eq (car output-test--calls) 'stopped))
    (efrit-viewing-type "Go on.")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-in-order "wait_here" "Go on." "Done.")))

(ert-deftest efrit-output-of-a-command-that-efrit-stop-ended-is-kept ()
  (output-test-running "seq 1 300; sleep 600"
    (efrit-viewing-shows "│ 300")
    (efrit-stop view-loop)
    (efrit-viewing-shows "— stopped —")
    (should-not (string-search "│ 300" (efrit-viewing-view-text)))
    (let ((entries nil))
      (should (efrit-test-wait-until
               (lambda ()
                 (setq entries (plist-get (efrit-sidecar-request
                                           'worklog/list
                                           (list :session_id (efrit-loop-id view-loop)))
                                          :entries))
                 (and (> (length entries) 0) (plist-get (aref entries 0) :handle)))))
      (let ((shown (efrit-sidecar-request
                    'worklog/show (list :session_id (efrit-loop-id view-loop)
                                        :handle (plist-get (aref entries 0) :handle)))))
        (should (string-match-p "\\`§ stopped before its end, after [0-9.]+ s\n1\n2\n"
                                (plist-get shown :text)))
        (should (string-suffix-p "\n299\n300\n" (plist-get shown :text)))))))

(provide 'output-tests)
;;; output-tests.el ends here
