;;; sessions-tests.el --- Taking sessions up again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against real sidecars, a scripted model, and another Emacs that is killed.

;;; Code:

(require 'ert-x)
(require 'scripted)
(require 'efrit-sessions)

(defconst efrit-sessions-tests--script "
[[reply]]
thinking = \"Read it, then wait.\"
text = \"I will read it.\"
tool = [{ name = \"read_file\", input = { path = \"a.txt\" } }]

[[reply]]
tool = [{ name = \"wait\", input = { seconds = 600 } }]

[[reply]]
text = \"Here we are again.\"

[[reply]]
text = \"And again.\"
"
  "A model that uses a tool that takes long.")

(defmacro efrit-sessions-tests--with-model (&rest body)
  "Run BODY in a project, with a model that waits long in its second turn."
  `(efrit-test-with-project '(("a.txt" . "Text of a file.\n"))
     (efrit-test-with-model efrit-sessions-tests--script
       ,@body)))

(defun efrit-sessions-tests--other-emacs ()
  "Start another Emacs that works on the project, and return its process."
  (make-process
   :name "efrit-other" :buffer nil :connection-type 'pipe :noquery t :sentinel #'ignore
   :command
   (list (expand-file-name invocation-name invocation-directory) "-Q" "--batch"
         "-L" (expand-file-name "elisp" efrit-test-root) "-l" "efrit-do" "--eval"
         (format "%S" `(progn
                         (setq efrit-claude-url ,efrit-claude-url
                               efrit-claude-features ',efrit-claude-features)
                         (efrit-do-say (efrit-do-make-loop ,efrit-test-project) "Work.")
                         (while t (accept-process-output nil 0.1)))))))

(defun efrit-sessions-tests--list ()
  "Return the sessions of the project as the sidecar has them."
  (append (plist-get (efrit-sidecar-request 'session/list
                                            (list :root efrit-test-project
                                                  :include_closed t))
                     :sessions)
          nil))

(defun efrit-sessions-tests--await-wait ()
  "Wait for the tool `wait' in a session of the project; return its id."
  (let ((id nil))
    (should
     (efrit-test-wait-until
      (lambda ()
        (setq id (plist-get (car (efrit-sessions-tests--list)) :session_id))
        (and id
             (seq-some (lambda (entry) (equal "wait" (plist-get entry :tool)))
                       (plist-get (efrit-sidecar-request
                                   'worklog/list (list :session_id id
                                                       :states ["announced"]))
                                  :entries))))))
    id))

(defun efrit-sessions-tests--all-taken-p ()
  "Return non-nil if the model took every request that it was sent."
  (seq-every-p (lambda (request) (eql 200 (gethash "status" request)))
               (efrit-test-sent)))

;;; After deaths

(ert-deftest efrit-sessions-go-on-after-emacs-was-killed-during-a-tool ()
  "A new Emacs resumes the session and goes on; nothing that was said is lost."
  (efrit-sessions-tests--with-model
   (let* ((other (efrit-sessions-tests--other-emacs))
          (id (unwind-protect (efrit-sessions-tests--await-wait)
                (signal-process other 9)))
          (loop (efrit-resume id)))
     (efrit-continue loop)
     (should (equal '(idle nil) (list (efrit-test-rest loop) (efrit-loop-problem loop))))
     (should (efrit-sessions-tests--all-taken-p))
     (let ((last (efrit-json-text (car (last (efrit-test-sent))))))
       (should (string-match-p "Work\\." last))
       (should (string-match-p "Text of a file" last)))
     (should (eq loop (efrit-loop-latest efrit-test-project))))))

(ert-deftest efrit-sessions-can-be-stopped-and-continued-after-the-sidecar-was-killed ()
  "While the tool is called again in a new sidecar, stop stops, continue goes on."
  (efrit-sessions-tests--with-model
   (let ((loop (efrit-test-loop)))
     (efrit-do-say loop "Work.")
     (efrit-sessions-tests--await-wait)
     (let ((pid (efrit-test-kill)))
       (should (efrit-test-wait-until
                (lambda () (and (efrit-sidecar-process) (/= pid (efrit-test-pid)))))))
     (efrit-stop loop)
     (should (eq 'idle (efrit-test-rest loop)))
     (efrit-continue loop)
     (should (eq 'idle (efrit-test-rest loop)))
     (should (efrit-sessions-tests--all-taken-p))
     (should (string-match-p "Here we are again"
                             (string-join (efrit-loop-messages loop)))))))

(ert-deftest efrit-sessions-resume-after-the-sidecar-was-killed ()
  "A session that no loop of this Emacs has comes back from the database."
  (efrit-test-with-project nil
    (efrit-test-with-model "
[[reply]]
text = \"The first answer.\"

[[reply]]
text = \"The second answer.\"
"
      (let* ((loop (efrit-test-loop))
             (id (efrit-loop-id loop)))
        (efrit-test-finish loop "The first question.")
        (efrit-do-forget loop)
        (efrit-test-kill)
        (efrit-test-wait-until (lambda () (not (efrit-sidecar-process))))
        (let ((again (efrit-resume id)))
          (should-not (eq loop again))
          (should (= 1 (efrit-loop-turn again)))
          (should (< 0 (plist-get (efrit-loop-usage again) :dollars)))
          (should (= 0 (plist-get (efrit-loop-counts again) :dollars)))
          (efrit-test-finish again "The second question.")
          (let ((last (efrit-json-text (car (last (efrit-test-sent))))))
            (should (string-match-p "The first answer" last))
            (should (string-match-p "The second question" last)))
          (should (= 2 (efrit-loop-turn again))))))))

;;; Resuming

(ert-deftest efrit-sessions-a-closed-one-resumes-and-says-so ()
  "A closed session is open again after it was resumed."
  (efrit-test-with-project nil
    (let ((id (efrit-session-open efrit-test-project)))
      (efrit-test-session-close id)
      (ert-with-message-capture messages
        (efrit-resume id)
        (should (string-match-p "was closed, and is open again" messages)))
      (should (equal "open" (plist-get (efrit-test-session-status id) :state))))))

(ert-deftest efrit-sessions-one-that-is-here-is-resumed-as-it-is ()
  "Resuming a session of this Emacs gives its loop, and makes it the latest."
  (efrit-test-with-project nil
    (let ((first (efrit-test-loop))
          (second (efrit-test-loop)))
      (should (eq second (efrit-loop-latest efrit-test-project)))
      (should (eq first (efrit-resume (efrit-loop-id first))))
      (should (eq first (efrit-loop-latest efrit-test-project))))))

(ert-deftest efrit-sessions-are-offered-by-title-the-latest-first ()
  "Completion offers sessions by id, title, age and state."
  (efrit-test-with-project nil
    (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\n"
      (let ((old (efrit-session-open efrit-test-project))
            (loop (efrit-test-loop)))
        (efrit-test-finish loop "Name it so.\nMore of it.")
        (efrit-test-session-close old)
        (efrit-test-wait-until
         (lambda () (equal "Name it so."
                           (plist-get (car (efrit-sessions-tests--list)) :title))))
        (let (prompt default table)
          (cl-letf (((symbol-function 'completing-read)
                     (lambda (text collection _predicate _match _initial _history first)
                       (setq prompt text
                             table collection
                             default first)
                       first)))
            (should (equal (efrit-loop-id loop) (efrit-sessions--read-id))))
          (should (equal "Resume (default Name it so.): " prompt))
          (should (equal "Name it so." default))
          (should (equal '("Name it so." "untitled session") (all-completions "" table)))
          (let ((metadata (cdr (completion-metadata "" table nil))))
            (should (eq 'efrit-session (alist-get 'category metadata)))
            (pcase-let ((`((,_ ,_ ,first) (,_ ,_ ,second))
                         (funcall (alist-get 'affixation-function metadata)
                                  (all-completions "" table))))
              (should (string-match-p
                       "\\` +just now +here +0 calls +[0-9]+k? tokens +\\$0\\.[0-9]+\\'" first))
              (should (string-match-p "just now +closed +0 calls +0 tokens +\\$0.00\\'" second)))))))))

(ert-deftest efrit-sessions-typing-a-title-resumes-by-default-completion ()
  (efrit-test-with-project nil
    (let* ((ids (mapcar (lambda (title)
                          (let ((id (efrit-session-open efrit-test-project)))
                            (efrit-sidecar-request 'session/rename
                                                   (list :session_id id :title title))
                            id))
                        '("Fix the tests" "Write the docs" "Fix the tests")))
           (completion-ignore-case t)
           (table (efrit-sessions--table
                   (efrit-sessions--candidates (efrit-sessions-tests--list)) nil)))
      (should (equal "Write the docs" (car (completion-try-completion "wri" table nil 3))))
      (should (equal (sort (list (format "Fix the tests <%s>" (nth 0 ids))
                                 (format "Fix the tests <%s>" (nth 2 ids)))
                           #'string<)
                     (sort (all-completions "Fix" table) #'string<))))))

(ert-deftest efrit-sessions-list-has-the-cost ()
  (efrit-test-with-project nil
    (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\n"
      (efrit-test-finish (efrit-test-loop) "What does it cost?")
      (save-window-excursion
        (with-current-buffer (efrit-sessions)
          (efrit-sessions-tests--await "\\$0\\.0[1-9] .*What does it cost")
          (should (eq 'efrit-sessions-resume
                      (lookup-key (key-binding [menu-bar efrit]) [Resume])))
          (kill-buffer))))))

(defun efrit-sessions-tests--elsewhere (id)
  "Open the session ID on the project in a sidecar of its own; return its process."
  (let ((process (make-process
                  :name "efrit-elsewhere" :buffer (generate-new-buffer " *elsewhere*")
                  :command (append (efrit-executable-command) '("serve"))
                  :connection-type 'pipe :noquery t :sentinel #'ignore)))
    (process-send-string
     process (concat (json-encode `((jsonrpc . "2.0") (id . 1) (method . "session/open")
                                    (params . ((root . ,efrit-test-project)
                                               (session_id . ,id)))))
                     "\n"))
    (should (efrit-test-wait-until
             (lambda ()
               (with-current-buffer (process-buffer process)
                 (string-search "\"result\"" (buffer-string))))))
    process))

(ert-deftest efrit-sessions-one-of-another-emacs-is-taken-over-only-when-that-is-meant ()
  (efrit-test-with-project nil
    (let ((process (efrit-sessions-tests--elsewhere "shared")))
      (unwind-protect
          (progn
            (should (string-match-p
                     "in use by another Emacs"
                     (cadr (should-error (efrit-do-resume-loop "shared" efrit-test-project)
                                         :type 'user-error))))
            (should-not (efrit-loops))
            (let ((noninteractive nil)
                  (asked nil))
              (cl-letf (((symbol-function 'yes-or-no-p)
                         (lambda (question) (setq asked question) t)))
                (should (efrit-do-resume-loop "shared" efrit-test-project)))
              (should (string-match-p "Take it over" asked))))
        (delete-process process)))))

(ert-deftest efrit-sessions-one-of-an-emacs-that-died-is-resumed-without-a-question ()
  (efrit-test-with-project nil
    (let ((process (efrit-sessions-tests--elsewhere "left")))
      (signal-process (process-id process) 9)
      (should (efrit-test-await-end process))
      (should (efrit-do-resume-loop "left" efrit-test-project)))))

(ert-deftest efrit-sessions-a-project-can-have-several ()
  "A message goes into the session that was begun last; the first one stays."
  (efrit-test-with-project nil
    (efrit-test-with-model "[[reply]]\ntext = \"One.\"\n[[reply]]\ntext = \"Two.\"\n"
      (cl-flet ((from-a-file (command &rest arguments)
                  (with-temp-buffer
                    (setq default-directory efrit-test-project)
                    (save-window-excursion
                      (apply command arguments)))))
        (let ((first (from-a-file #'efrit-do "First.")))
          (efrit-test-rest first)
          (let ((second (from-a-file #'efrit-new)))
            (should-not (eq first second))
            (should (eq second (from-a-file #'efrit-do "Second.")))
            (efrit-test-rest second)
            (should (equal '("Second." "First.")
                           (mapcar (lambda (session) (plist-get session :title))
                                   (efrit-sessions-tests--list))))))))))

(ert-deftest efrit-sessions-of-another-project-are-not-acted-on-unseen ()
  "If several are open and none belongs here, a command says so."
  (efrit-test-with-project nil
    (save-window-excursion
      (let* ((one (efrit-test-loop))
             (other (efrit-test-loop))
             (shown nil)
             (efrit-do-show-function (lambda (loop) (push loop shown))))
        (with-temp-buffer
          (setq default-directory temporary-file-directory)
          (should-error (efrit-stop) :type 'user-error)
          (should-error (efrit-allow-once) :type 'user-error)
          (efrit-do-forget other)
          (should (eq one (efrit-loop-current)))
          (setf (efrit-loop-run one)
                (list (efrit-use-create :name "eval_sexp" :state 'asking)))
          (should-not shown)
          (should-error (efrit-allow-once) :type 'user-error)
          (should (equal (list one) shown))
          (setf (efrit-loop-run one) nil))))))

(ert-deftest efrit-sessions-nothing-to-resume-is-an-error ()
  "In a project without sessions, `efrit-resume' says that there are none."
  (efrit-test-with-project nil
    (should (string-match-p
             "No session of .* is stored"
             (cadr (should-error (efrit-sessions--read-id) :type 'user-error))))))

;;; The list

(defmacro efrit-sessions-tests--with-list (ids &rest body)
  "Run BODY in the list of two sessions of the project, whose ids are IDS."
  (declare (indent 1))
  `(efrit-test-with-project nil
     (let ((,ids (list (efrit-session-open efrit-test-project)
                       (efrit-session-open efrit-test-project))))
       (save-window-excursion
         (with-current-buffer (efrit-sessions)
           (unwind-protect
               (progn (efrit-sessions-tests--await (car ,ids))
                      ,@body)
             (kill-buffer (current-buffer))))))))

(defun efrit-sessions-tests--await (regexp)
  "Wait until REGEXP is in this buffer."
  (efrit-test-wait-until (lambda () (string-match-p regexp (buffer-string))))
  (should (string-match-p regexp (buffer-string))))

(defun efrit-sessions-tests--go (id)
  "Move to the line of the session ID."
  (goto-char (point-min))
  (while (not (equal id (tabulated-list-get-id)))
    (should (zerop (forward-line)))))

(defun efrit-sessions-tests--agreeing (function)
  "Call FUNCTION with a person who agrees to everything."
  (cl-letf (((symbol-function 'yes-or-no-p) #'always))
    (funcall function)))

(ert-deftest efrit-sessions-list-renames-purges-and-deletes ()
  "Each key does its work once the person agrees, and the list shows it."
  (efrit-sessions-tests--with-list ids
    (efrit-sessions-tests--go (car ids))
    (efrit-sessions-rename "The flaky test")
    (efrit-sessions-tests--await "The flaky test")
    (efrit-sessions-tests--go (car ids))
    (efrit-sessions-tests--agreeing #'efrit-sessions-purge)
    (efrit-sessions-tests--await "purged")
    (efrit-sessions-tests--go (cadr ids))
    (efrit-sessions-tests--agreeing #'efrit-sessions-delete)
    (should (efrit-test-wait-until
             (lambda () (not (string-match-p (cadr ids) (buffer-string))))))
    (should (= 1 (length (efrit-sessions-tests--list))))))

(ert-deftest efrit-sessions-nothing-is-deleted-without-a-yes ()
  "Whoever says no keeps the session."
  (efrit-sessions-tests--with-list ids
    (efrit-sessions-tests--go (car ids))
    (cl-letf (((symbol-function 'yes-or-no-p) #'ignore))
      (efrit-sessions-delete)
      (efrit-sessions-purge))
    (should (equal '("open" "open") (mapcar (lambda (session) (plist-get session :state))
                                            (efrit-sessions-tests--list))))))

(ert-deftest efrit-sessions-return-resumes-the-one-at-point ()
  "Return takes the session at point up again."
  (efrit-sessions-tests--with-list ids
    (efrit-sessions-tests--go (cadr ids))
    (efrit-sessions-resume)
    (should (equal (cadr ids) (efrit-loop-id (efrit-loop-latest efrit-test-project))))))

(ert-deftest efrit-sessions-at-work-are-not-deleted ()
  "A session at work has to be stopped before."
  (efrit-sessions-tests--with-model
   (let ((loop (efrit-test-loop)))
     (efrit-do-say loop "Work.")
     (efrit-sessions-tests--await-wait)
     (save-window-excursion
       (with-current-buffer (efrit-sessions)
         (efrit-sessions-tests--await "at work")
         (efrit-sessions-tests--go (efrit-loop-id loop))
         (should-error (efrit-sessions-tests--agreeing #'efrit-sessions-delete)
                       :type 'user-error)
         (kill-buffer)))
     (efrit-stop loop)
     (should (eq 'idle (efrit-test-rest loop))))))

(ert-deftest efrit-sessions-show-warnings-of-the-sidecar ()
  "Warnings of the sidecar are shown when a session is opened, and resumed."
  (let (shown)
    (cl-letf (((symbol-function 'display-warning)
               (lambda (_type message &rest _) (push message shown)))
              ((symbol-function 'efrit-supervisor-remember) #'ignore)
              ((symbol-function 'efrit-sidecar-request)
               (lambda (method &rest _)
                 (list :session_id "kept" :warnings (vector (format "%s warns" method))))))
      (efrit-session-open "/")
      (efrit-session-resume "kept")
      (efrit-test-wait-until (lambda () (= 2 (length shown)))))
    (should (equal (sort shown #'string<) '("session/open warns" "session/resume warns")))))

(provide 'sessions-tests)
;;; sessions-tests.el ends here
