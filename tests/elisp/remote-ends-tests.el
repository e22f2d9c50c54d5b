;;; remote-ends-tests.el --- Beginning and ending on another machine  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; How the sidecar of a remote project is found, starts, dies and ends, and
;; what is said where something is missing.

;;; Code:

(require 'cl-lib)
(require 'over-there)
(require 'seq)
(require 'efrit-files)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-sessions)
(require 'efrit-setup)

;; From Emacs 30 on, without it no timer runs while TRAMP waits.
(defvar tramp-dont-suspend-timers)

;;; What is missing

(ert-deftest efrit-remote-a-missing-sidecar-is-an-error-that-says-what-to-do ()
  "If there is no program, the error names the machine and how to install it."
  (efrit-over-there-with-program-project nil
    (let* ((efrit-remote-commands '(("\\`/mock:" . "no-such-sidecar")))
           (text (cadr (should-error (efrit-session-open efrit-test-project)
                                     :type 'user-error))))
      (should (string-match-p "no-such-sidecar" text))
      (should (string-search efrit-over-there-host text))
      (should (string-match-p "M-x efrit-remote-install" text))
      (should (string-match-p "efrit-remote-commands" text)))
    (should (efrit-over-there-gone-p))
    (should (efrit-session-open efrit-test-project))))

(ert-deftest efrit-remote-without-a-setting-the-path-there-is-searched ()
  "The program efrit-budget is found in a folder of `tramp-remote-path'."
  (efrit-over-there-with-program-project nil
    (let* ((efrit-remote-commands nil)
           (folder (make-temp-file "efrit-test-bin-" t))
           (tramp-remote-path (cons folder tramp-remote-path)))
      (unwind-protect
          (progn
            (make-symbolic-link (car (efrit-executable-command))
                                (expand-file-name "efrit-budget" folder))
            (let ((found (efrit-remote-look efrit-over-there-host)))
              (should (equal (expand-file-name "efrit-budget" folder)
                             (efrit-remote-found-program found)))
              (should-not (efrit-remote-problem efrit-over-there-host found))))
        (delete-directory folder t)))))

(ert-deftest efrit-remote-the-program-may-be-set-for-a-connection ()
  "A connection-local value of the option holds on its machine."
  (efrit-over-there-with-program-project nil
    ;; The functions that set these set them for good from Emacs 29 on.
    (let ((connection-local-profile-alist
           '((remote-tests . ((efrit-remote-commands . (("" . "/opt/efrit-budget")))))))
          (connection-local-criteria-alist
           '(((:application tramp :protocol "mock") remote-tests)))
          (enable-connection-local-variables t))
      (should (equal '("/opt/efrit-budget") (efrit-remote-command efrit-over-there-host))))))

(ert-deftest efrit-remote-a-sidecar-that-does-not-run-is-an-error ()
  "A program whose Python is gone is named, not waited for."
  (efrit-over-there-with-program-project nil
    (let* ((broken (make-temp-file "efrit-test-" nil nil "#!/no/such/python\n"))
           (efrit-remote-commands (list (list "\\`/mock:" broken))))
      (unwind-protect
          (progn
            (set-file-modes broken #o755)
            (let ((text (cadr (should-error (efrit-session-open efrit-test-project)
                                            :type 'user-error))))
              (should (string-search (concat broken " on " efrit-over-there-host) text))
              (should (string-match-p "does not run.*anew" text))))
        (delete-file broken)))))

(defmacro remote-ends-tests--with-bare-shell (programs &rest body)
  "Run BODY where the other machine has a PATH with PROGRAMS alone."
  (declare (indent 1) (debug (form body)))
  `(let* ((folder (make-temp-file "efrit-test-bin-" t))
          (tramp-remote-path (list folder)))
     (unwind-protect
         (progn
           (dolist (program ,programs)
             (make-symbolic-link (executable-find program) (expand-file-name program folder)))
           ,@body)
       (delete-directory folder t))))

(ert-deftest efrit-remote-missing-programs-are-listed-and-the-rest-works ()
  "Without git and ctags a session works there; what is missing is said once."
  (efrit-over-there-with-program-project '(("a.txt" . "one\n"))
    (remote-ends-tests--with-bare-shell '("sh" "env" "stty" "mktemp" "rm" "tail" "readlink" "diff"
                                     "test" "ls" "cat" "id" "uname" "stat" "getconf")
      (let* ((found (efrit-remote-look efrit-over-there-host))
             (missing (efrit-remote-missing efrit-over-there-host found)))
        (should (member "git" (efrit-remote-found-missing found)))
        (should (member "ctags" (efrit-remote-found-missing found)))
        (should-not (member "diff" (efrit-remote-found-missing found)))
        (should-not (efrit-remote-found-python found))
        (should (string-match-p "no git.*install" missing))
        (let ((efrit-remote-commands '(("" . "no-such-sidecar"))))
          (should (string-match-p "there is no python3"
                                  (efrit-remote-problem
                                   efrit-over-there-host
                                   (efrit-remote-look efrit-over-there-host)))))
        (let ((id (efrit-session-open efrit-test-project)))
          (should (string-match-p "git is not installed"
                                  (plist-get (efrit-test-tool id "vcs_status"
                                                              efrit-json-empty-object) :text)))
          (should (string-match-p "one" (plist-get (efrit-test-tool id "read_file"
                                                                    '(:path "a.txt"))
                                                   :text))))))))

(ert-deftest efrit-remote-missing-programs-are-noted-in-the-session ()
  "A new session says what its machine lacks, and one that goes on does not."
  (efrit-over-there-with-project nil
    (remote-ends-tests--with-bare-shell '("sh" "env" "stty" "mktemp" "rm" "tail" "readlink"
                                          "test" "ls" "cat" "id" "uname" "stat" "getconf")
      (efrit-test-with-model "
[[reply]]
text = \"One.\"
[[reply]]
text = \"Two.\"
"
        (let* ((inhibit-message t)
               (notes nil)
               (efrit-do-show-function
                (lambda (loop)
                  (efrit-loop-observe loop (lambda (_ event)
                                             (pcase event
                                               (`(note ,text) (push text notes)))))))
               (loop (efrit-do "Begin.")))
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 1 (length notes)))
          (should (string-match-p "has no git, no diff" (car notes)))
          (setq efrit-do-show-function #'ignore)
          (should (eq loop (efrit-do "And now?")))
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 1 (length notes))))))))

(ert-deftest efrit-remote-a-machine-that-cannot-be-reached-is-named ()
  "If nobody answers, `efrit-do' says so, and starts nothing on this machine."
  (let ((default-directory "/ssh:nowhere.invalid:/tmp/")
        (inhibit-message t))
    (should (string-match-p "/ssh:nowhere\\.invalid: cannot be reached"
                            (cadr (should-error (efrit-do "Anything.") :type 'user-error))))
    (should-error (efrit-sessions) :type 'user-error)
    (should-error (efrit-stop) :type 'user-error)
    (should-not (efrit-sidecar-process))
    (should-not (efrit-sidecar-process "/ssh:nowhere.invalid:"))))

(ert-deftest efrit-remote-the-doctor-looks-there-too ()
  "In a remote folder the report has what is there, and how to fix it."
  (efrit-over-there-with-program-project nil
    (let ((printed (efrit-test-with-model "[[reply]]\ntext = \"Yes.\"\n"
                     (with-output-to-string (efrit-doctor)))))
      (should (string-search (concat "On " efrit-over-there-host) printed))
      (should (string-search (concat "Sidecar on " efrit-over-there-host) printed))
      (should (string-search "/there/" printed)))
    (let ((efrit-remote-commands '(("" . "no-such-sidecar"))))
      (pcase-let ((`(,healthy . ,report) (efrit-doctor--remote efrit-over-there-host)))
        (should-not healthy)
        (should (string-match-p "problem .*sidecar's program.*not found -> .*efrit-remote-install"
                                report))))))

;;; Ends and beginnings

(ert-deftest efrit-remote-a-killed-sidecar-is-started-again-with-its-sessions ()
  "After a kill over there the next call is answered, in the same session."
  (efrit-over-there-with-program-project nil
    (let* ((inhibit-message t)
           (id (efrit-session-open efrit-test-project))
           (pid (efrit-over-there-pid id))
           told)
      (let ((efrit-sidecar-died-functions
             (list (lambda (why) (setq told (cons efrit-host-default why))))))
        (efrit-over-there-kill pid)
        (should (efrit-test-wait-until (lambda () told))))
      (should (equal efrit-over-there-host (car told)))
      (should (string-match-p "Killed" (cdr told)))
      (should (equal "open" (plist-get (efrit-test-session-status id) :state)))
      (should-not (= pid (efrit-over-there-pid id)))
      (should-not (efrit-sidecar-process)))))

(ert-deftest efrit-remote-a-buffer-is-sent-again-to-a-new-sidecar ()
  "After a kill over there the model still reads what is not saved."
  (efrit-over-there-with-project '(("a.txt" . "on disk\n"))
    (let* ((inhibit-message t)
           (loop (efrit-test-loop))
           (id (efrit-loop-id loop)))
      (with-current-buffer (find-file-noselect (expand-file-name "a.txt"))
        (insert "not saved yet\n")
        (efrit-sync-flush)
        (efrit-over-there-kill (efrit-over-there-pid id))
        (efrit-test-session-status id)
        (should (efrit-test-wait-until
                 (lambda ()
                   (string-match-p "not saved yet"
                                   (plist-get (efrit-test-tool id "read_file" '(:path "a.txt"))
                                              :text)))))
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest efrit-remote-a-session-goes-on-when-its-sidecar-dies-in-a-tool ()
  "The sidecar is killed while a tool runs there, and the model still ends its task."
  (efrit-over-there-with-project nil
    (efrit-test-with-model "
[[reply]]
tool = [ { name = \"wait\", input = { seconds = 600 } } ]
[[reply]]
text = \"Here we are again.\"
"
      (let* ((inhibit-message t)
             (efrit-permission-rules '((t t allow)))
             (loop (efrit-test-loop))
             (pid (efrit-over-there-pid (efrit-loop-id loop))))
        (efrit-do-say loop "Work.")
        (should (efrit-test-wait-until
                 (lambda () (seq-find (lambda (use) (eq 'running (efrit-use-state use)))
                                      (efrit-loop-run loop)))))
        (let ((dead (efrit-sidecar-process efrit-over-there-host)))
          (signal-process pid 9)
          (should (efrit-test-wait-until
                   (lambda () (not (memq (efrit-sidecar-process efrit-over-there-host)
                                         (list nil dead)))))))
        (efrit-stop loop)
        (should (eq 'idle (efrit-test-rest loop)))
        (efrit-continue loop)
        (should (eq 'idle (efrit-test-rest loop)))
        (should (string-match-p "Here we are again" (string-join (efrit-loop-messages loop))))))))

(ert-deftest efrit-remote-sessions-are-listed-and-resumed-where-they-lie ()
  "In a remote folder the sessions of its machine are listed and taken up again."
  (efrit-over-there-with-project nil
    (efrit-test-with-model "
[[reply]]
text = \"The first answer.\"
[[reply]]
text = \"The second answer.\"
"
      (let* ((inhibit-message t)
             (loop (efrit-test-loop))
             (id (efrit-loop-id loop)))
        (efrit-test-finish loop "The first question.")
        (efrit-do-forget loop)
        (efrit-over-there-kill (efrit-over-there-pid id))
        (efrit-supervisor-forget id)
        ;; As in an Emacs that has only just begun.
        (clrhash efrit-host--session-hosts)
        (with-current-buffer (efrit-sessions)
          (should (efrit-test-wait-until #'tabulated-list-get-id))
          (should (equal mode-line-process
                         (concat ": " (abbreviate-file-name
                                       (directory-file-name efrit-test-project)))))
          (kill-buffer))
        (clrhash efrit-host--session-hosts)
        (let ((again (efrit-resume id)))
          (should (equal efrit-test-project (efrit-loop-root again)))
          (efrit-test-finish again "The second question.")
          (should (string-match-p "The first answer"
                                  (efrit-json-text (car (last (efrit-test-sent)))))))
        (should-not (efrit-sidecar-process))))))

(ert-deftest efrit-remote-quitting-stops-the-work-there ()
  "Quitting a slow call stops its process over there, and the next call is answered."
  (efrit-over-there-with-project nil
    (let* ((debug-on-quit nil)
           (id (efrit-session-open efrit-test-project))
           (file (make-temp-file "efrit-test-pid-" nil nil))
           (quitted nil))
      (efrit-test-quit-when (lambda () (< 0 (file-attribute-size (file-attributes file)))))
      (condition-case nil
          (efrit-sidecar-request 'tools/call (efrit-test-use id "spawn"
                                                             (list :seconds 600 :pid_file file)))
        (quit (setq quitted t)))
      (should quitted)
      (should (efrit-test-session-status id))
      (efrit-test-should-end (efrit-test-take-pid file)))))

(ert-deftest efrit-remote-stopping-leaves-no-process-there ()
  "A stopped sidecar is gone over there as well, with what it ran."
  (efrit-over-there-with-program-project nil
    (let* ((id (efrit-session-open efrit-test-project))
           (pid (efrit-over-there-pid id)))
      (efrit-sidecar-stop efrit-over-there-host)
      (should (efrit-over-there-gone-p))
      (efrit-test-should-end pid))))

(ert-deftest efrit-remote-its-standard-error-is-shown ()
  "The last lines of a sidecar over there are in the error, and in a buffer."
  (efrit-over-there-with-program-project nil
    (let* ((inhibit-message t)
           (program (make-temp-file "efrit-test-" nil nil "#!/bin/sh
[ \"$1\" = --version ] && { echo efrit-budget 9; exit; }
echo 'the disk is full' >&2; exit 3
"))
           (efrit-remote-commands (list (list "" program))))
      (unwind-protect
          (progn
            (set-file-modes program #o755)
            (let ((err (should-error (efrit-session-open efrit-test-project)
                                     :type 'efrit-sidecar-died)))
              (should (string-match-p "code 3.*the disk is full" (efrit-error-text err))))
            (with-current-buffer (efrit-process-stderr efrit-over-there-host)
              (should (string-match-p "the disk is full" (buffer-string)))))
        (delete-file program)))))

(ert-deftest efrit-remote-a-sidecar-that-ends-at-once-has-begun ()
  "The output of a process that has ended is read before its start is judged."
  (let ((process (make-process :name "efrit-test" :noquery t :connection-type 'pipe
                               :command '("printf" "\\0efrit ready\\0") :sentinel #'ignore
                               :filter #'efrit-remote--keep))
        (begun nil))
    (while (process-live-p process)     ; nothing is read of it meanwhile
      (call-process "true"))
    (efrit-remote--await process (efrit-remote--start-create
                                  :remote "/mock:vm:" :command '("printf")
                                  :then (lambda (&rest _) (setq begun t))
                                  :failed (lambda (_ err) (setq begun err))
                                  :end (+ (float-time) 60)))
    (should (efrit-test-wait-until (lambda () begun)))
    (should (eq t begun))
    (should (equal "" (process-get process 'efrit-written)))))

(ert-deftest efrit-remote-a-start-waits-while-tramp-is-busy ()
  "A sidecar that is to start while TRAMP works there starts afterwards."
  (efrit-over-there-with-project nil
    (let* ((inhibit-message t)
           (tramp-dont-suspend-timers t)
           (id (efrit-session-open efrit-test-project))
           token inside)
      (efrit-over-there-kill (efrit-over-there-pid id))
      ;; The timers run while TRAMP waits for the shell.
      (run-at-time 0.2 nil (lambda ()
                             (setq inside t
                                   token (efrit-sidecar-request-async
                                          'session/status (list :session_id id)))))
      (should (= 0 (process-file "sleep" nil nil nil "1.5")))
      (should inside)
      (should (efrit-test-wait-until (lambda () (not (efrit-call-open-p token)))))
      (should (equal "open" (plist-get (efrit-call-result token) :state)))
      (should-not (efrit-sidecar-process)))))

(ert-deftest efrit-remote-the-sidecar-ends-with-emacs ()
  "The sidecar over there ends by itself, after any end of Emacs."
  :tags '(:long)
  (dolist (how '(exit 9 15))
    (efrit-over-there-with-program-project nil
      (with-temp-buffer
        (setq default-directory efrit-over-there-local)
        (let ((emacs (remote-ends-tests--other-emacs how)))
          (should (efrit-test-wait-until #'remote-ends-tests--printed-pid))
          (unless (eq how 'exit)
            (signal-process emacs how))
          (should (efrit-test-await-end emacs))
          (let ((pid (remote-ends-tests--printed-pid)))
            (ert-info ((format "ended by %s" how))
              (efrit-test-should-end pid))))))))

(defun remote-ends-tests--other-emacs (how)
  "Return the process of a batch Emacs that works in the project of the test.
It prints the id of the sidecar's process into this buffer, and waits
unless HOW is `exit'."
  (make-process
   :name "efrit-test-emacs" :buffer (current-buffer) :noquery t
   :connection-type 'pipe
   :command
   (list (expand-file-name invocation-name invocation-directory)
         "-Q" "--batch" "-L" (expand-file-name "elisp" efrit-test-root)
         "-L" (expand-file-name "tests/elisp" efrit-test-root)
         "-l" "over-there" "--eval"
         (prin1-to-string
          `(progn
             (setq tramp-methods ',tramp-methods
                   tramp-persistency-file-name nil
                   efrit-remote-commands ',efrit-remote-commands)
             (message "parent %d"
                      (efrit-over-there-pid (efrit-session-open ,efrit-test-project)))
             ,@(unless (eq how 'exit) '((sleep-for 600))))))))

(defun remote-ends-tests--printed-pid ()
  "Return the process id printed in this buffer, or nil."
  (goto-char (point-min))
  (and (re-search-forward "parent \\([0-9]+\\)\n" nil t)
       (string-to-number (match-string 1))))

(provide 'remote-ends-tests)
;;; remote-ends-tests.el ends here
