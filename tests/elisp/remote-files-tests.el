;;; remote-files-tests.el --- Files on another machine that change there  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the tools in Emacs make of files of another machine that the sidecar
;; and its commands change there, beside TRAMP, and how programs are started
;; over ssh.  tests/emacs/test_over_ssh.py has the same with a real ssh.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'editing)
(require 'over-there)
(require 'efrit-files)
(require 'efrit-tools)
(require 'efrit-tools-build)

;; From Emacs 30 on, without it no timer runs while TRAMP waits.
(defvar tramp-dont-suspend-timers)

(defmacro efrit-remote-files-tests--with (files &rest body)
  "Run BODY in a project with FILES over there, and `editing-loop' a loop on it.
Nothing may be asked."
  (declare (indent 1) (debug (form body)))
  `(efrit-over-there-with-project ,files
     (let ((editing-loop (efrit-test-loop))
           (buffers (buffer-list))
           (inhibit-message t))
       (cl-letf (((symbol-function 'yes-or-no-p)
                  (lambda (prompt) (error "A question: %s" prompt))))
         (unwind-protect
             (progn ,@body)
           (efrit-test-kill-buffers (seq-difference (buffer-list) buffers)))))))

(defun efrit-remote-files-tests--use (tool &rest arguments)
  "Use TOOL with ARGUMENTS, a plist; it must succeed."
  (let ((result (apply #'editing-use tool arguments)))
    (ert-info ((format "%s: %s" tool (plist-get result :text)))
      (should (equal "success" (plist-get result :status))))))

(defun efrit-remote-files-tests--edit (path old new)
  "Replace OLD with NEW in the file PATH; that must succeed."
  (efrit-remote-files-tests--use "edit_file" :path path :old_text old :new_text new))

(defun efrit-remote-files-tests--text (name)
  "Return the text of the file NAME, which is read on this machine, or nil."
  (let ((file (expand-file-name name efrit-over-there-local)))
    (and (file-exists-p file)
         (with-temp-buffer
           (insert-file-contents file)
           (buffer-string)))))

;;; What the sidecar and its commands change

(ert-deftest efrit-remote-files-an-undone-edit-shows-at-once ()
  "No tool waits for ever, no empty buffer stands for a file, and none is called changed."
  (efrit-remote-files-tests--with '(("b.txt" . "one\ntwo\n") ("c.txt" . "one\n"))
    (efrit-remote-files-tests--use "create_file" :path "a.txt" :content "made\n")
    (dolist (name '("a.txt" "b.txt" "c.txt"))
      (find-file-noselect (editing-file name)))
    (efrit-remote-files-tests--use "rename_file" :path "a.txt" :to "z.txt")
    (should (efrit-file-buffer (editing-file "z.txt")))
    (efrit-remote-files-tests--use "undo_edit")
    (should (equal "made\n" (efrit-remote-files-tests--text "a.txt")))
    (should (equal "made\n" (efrit-file-text (efrit-file-buffer (editing-file "a.txt")))))

    (efrit-remote-files-tests--use "delete_file" :path "b.txt")
    (should-not (efrit-remote-files-tests--text "b.txt"))
    (efrit-remote-files-tests--use "undo_edit")
    (efrit-remote-files-tests--edit "b.txt" "two" "three")
    (should (equal "one\nthree\n" (efrit-remote-files-tests--text "b.txt")))

    (efrit-remote-files-tests--edit "c.txt" "one" "twenty-one")
    (efrit-remote-files-tests--use "undo_edit")
    (efrit-remote-files-tests--edit "c.txt" "one" "two")
    (should (equal "two\n" (efrit-remote-files-tests--text "c.txt")))))

(ert-deftest efrit-remote-files-a-commands-recent-change-is-not-lost ()
  "TRAMP takes a file for the same that was changed less than two seconds later."
  (efrit-remote-files-tests--with '(("a.txt" . "one\ntwo\n"))
    (find-file-noselect (editing-file "a.txt"))
    (efrit-remote-files-tests--edit "a.txt" "one" "six")
    (efrit-over-there-shell (efrit-loop-id editing-loop) "cp -p a.txt b.txt && sed -i s/two/ten/ a.txt && touch -r b.txt a.txt")
    (editing-read "a.txt")
    (efrit-remote-files-tests--edit "a.txt" "six" "one")
    (should (equal "one\nten\n" (efrit-remote-files-tests--text "a.txt")))))

(ert-deftest efrit-remote-files-a-removed-folder-is-created-again ()
  "Neither the file nor what the model knew of it is in the way of a new one."
  (efrit-remote-files-tests--with '(("a.txt" . "one\n") ("b.txt" . "two\n"))
    (efrit-remote-files-tests--edit "b.txt" "two" "three")
    (efrit-over-there-shell (efrit-loop-id editing-loop) "rm b.txt")
    (efrit-remote-files-tests--use "rename_file" :path "a.txt" :to "b.txt")
    (efrit-remote-files-tests--edit "b.txt" "one" "four")
    (efrit-over-there-shell (efrit-loop-id editing-loop) "rm b.txt")
    (efrit-remote-files-tests--use "create_file" :path "b.txt" :content "made\n")
    (should (equal "made\n" (efrit-remote-files-tests--text "b.txt")))))

(ert-deftest efrit-remote-files-an-undo-ends-where-its-buffer-cannot-follow ()
  "The tool says that the file is as before, and that its buffer is not."
  (efrit-remote-files-tests--with '(("a.txt" . "one\n"))
    (find-file-noselect (editing-file "a.txt"))
    (efrit-remote-files-tests--edit "a.txt" "one" "two")
    (cl-letf (((symbol-function 'efrit-file-reload)
               (lambda (&rest _) (signal 'file-error '("The connection is lost")))))
      (let ((said (plist-get (editing-use "undo_edit") :text)))
        (should (string-match-p "Undid c1 of a\\.txt on disk" said))
        (should (string-match-p "The connection is lost" said))))
    (should (equal "one\n" (efrit-remote-files-tests--text "a.txt")))))

;;; What is told of buffers

(ert-deftest efrit-remote-files-a-buffer-is-not-sent-while-it-is-saved ()
  "The text of the model's own edit is not sent as if it were not saved."
  (efrit-remote-files-tests--with '(("a.txt" . "one\n"))
    (find-file-noselect (editing-file "a.txt"))
    (let ((tramp-dont-suspend-timers t)
          (efrit-sync-delay 0)
          (sent nil))
      (efrit-sync-update)
      (cl-letf* ((send (symbol-function 'efrit-sidecar-notify))
                 ((symbol-function 'efrit-sidecar-notify)
                  (lambda (method params)
                    (push (cons method params) sent)
                    (funcall send method params))))
        (efrit-remote-files-tests--edit "a.txt" "one" "two")
        (efrit-sync-flush))
      (should-not (assq 'buffers/sync sent))
      (should (equal "two\n" (efrit-remote-files-tests--text "a.txt"))))))

;;; Connections

(defmacro efrit-remote-files-tests--with-ssh (asked &rest body)
  "Run BODY in the root of a machine behind ssh, /ssh:there:.
That ssh is a shell on this machine.  ASKED is bound to a function that
returns what each ssh was asked for, in order."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-remote-files-tests--in-ssh (lambda (,asked) ,@body)))

(defun efrit-remote-files-tests--in-ssh (body)
  "Call BODY; see `efrit-remote-files-tests--with-ssh'."
  (let* ((folder (make-temp-file "efrit-ssh-" t))
         (log (expand-file-name "log" folder))
         (exec-path (cons folder exec-path))
         (before (default-toplevel-value 'process-environment))
         (process-environment (cons (format "PATH=%s:%s" folder (getenv "PATH")) before))
         (tramp-verbose 0)
         ;; Where TRAMP was there before, it would not connect again.
         (tramp-current-connection nil)
         (tramp-persistency-file-name nil)
         (ssh (expand-file-name "ssh" folder)))
    (write-region (format "#!/bin/sh\necho \"$*\" >>%s\ncase $1 in -G) exit;; esac\nexec /bin/sh -i\n"
                          log)
                  nil ssh nil 'silent)
    (set-file-modes ssh #o755)
    ;; The sidecar is started in the environment that Emacs was.
    (set-default-toplevel-value 'process-environment process-environment)
    (unwind-protect
        (let ((default-directory "/ssh:there:/"))
          (should (file-directory-p default-directory))
          (funcall body (lambda () (with-temp-buffer
                                     (insert-file-contents log)
                                     (seq-remove (lambda (line) (string-prefix-p "-G" line))
                                                 (split-string (buffer-string) "\n" t))))))
      (set-default-toplevel-value 'process-environment before)
      (tramp-cleanup-all-connections)
      (delete-directory folder t))))

(defun efrit-remote-files-tests--own-p (arguments)
  "Return non-nil if an ssh with ARGUMENTS, a text, has a connection of its own.
Of an option that is given twice, ssh takes the first."
  (and (string-match "ControlMaster=\\([a-z]+\\)" arguments)
       (equal "no" (match-string 1 arguments))
       (string-match "ControlPath=\\([^ ]+\\)" arguments)
       (equal "none" (match-string 1 arguments))))

(ert-deftest efrit-remote-files-the-sidecar-has-a-connection-of-its-own ()
  "Its output while TRAMP waits for an answer disturbs nobody."
  (efrit-remote-files-tests--with-ssh asked
    (let ((process (efrit-over-there-spawn "/ssh:there:" '("cat"))))
      (should (process-live-p process))
      (delete-process process))
    (should (equal '(nil t) (mapcar (lambda (arguments)
                                      (and (efrit-remote-files-tests--own-p arguments) t))
                                    (funcall asked))))))

(ert-deftest efrit-remote-files-a-hop-has-a-connection-of-its-own ()
  "The ssh that goes on from the first machine to the next shares none, either."
  (efrit-remote-files-tests--with-ssh asked
    (let ((process (efrit-over-there-spawn "/ssh:there|ssh:behind:" '("cat"))))
      (delete-process process))
    (should (cl-every #'efrit-remote-files-tests--own-p (last (funcall asked) 2)))))

(ert-deftest efrit-remote-files-programs-of-tools-have-connections-of-their-own ()
  "So have a compilation, and a program whose output a tool waits for."
  (efrit-remote-files-tests--with-ssh asked
    (let* ((result nil)
           (call (efrit-tool-call-create :name "test" :finish (lambda (given) (setq result given)))))
      (efrit-child-run call '("echo" "hello")
                       (lambda (output _) (efrit-tool-finish call output))
                       :directory default-directory)
      (should (efrit-test-wait-until (lambda () result)))
      (should (string-match-p "hello" (plist-get result :text))))
    (let ((buffer (efrit-compile--begin default-directory "echo compiled")))
      (should (efrit-test-wait-until (lambda () (null (get-buffer-process buffer)))))
      (kill-buffer buffer))
    (should (equal '(nil t t) (mapcar (lambda (arguments)
                                        (and (efrit-remote-files-tests--own-p arguments) t))
                                      (funcall asked))))))

(provide 'remote-files-tests)
;;; remote-files-tests.el ends here
