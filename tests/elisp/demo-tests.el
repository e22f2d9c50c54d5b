;;; demo-tests.el --- The demo in one's own Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The demo is played without its pauses, with the keys that it names.

;;; Code:

(require 'viewing)
(require 'efrit-setup)

(defun efrit-demo-tests--scenario (home)
  "Write the demo's scenario without its pauses into HOME; return the file."
  (let ((file (expand-file-name "greenhouse.toml" home)))
    (with-temp-file file
      (insert-file-contents
       (expand-file-name "efrit_budget/demo/scenarios/greenhouse.toml" efrit-test-root))
      (while (re-search-forward "^delay_ms = .*$" nil t)
        (replace-match "")))
    file))

(defmacro efrit-demo-tests--with (loop &rest body)
  "Run BODY in the buffer of the demo's session, with LOOP bound to its loop.
A search for a key is an error."
  (declare (indent 1) (debug (symbolp body)))
  `(efrit-test-with-home home
     (let* ((start (symbol-function 'efrit-demo--start-model))
            (scenario (efrit-demo-tests--scenario home))
            (efrit-permissions-file (expand-file-name "permissions.eld" home))
            (buffers (buffer-list)))
       (cl-letf (((symbol-function 'efrit-demo--start-model)
                  (lambda (_) (funcall start scenario)))
                 ((symbol-function 'auth-source-search)
                  (lambda (&rest _) (error "The demo looked for a key"))))
         (unwind-protect
             (let ((,loop (efrit-demo)))
               (with-current-buffer (efrit-session-view-buffer ,loop)
                 ,@body))
           (when efrit-demo--folder
             (efrit-demo-end))
           (efrit-test-kill-others buffers))))))

(defun efrit-demo-tests--await (text)
  "Wait until TEXT, a regexp, is in this buffer."
  (ert-info ((format "the buffer has: %s" (buffer-string)) :prefix "without it, ")
    (should (efrit-test-wait-until
             (lambda () (save-excursion
                          (goto-char (point-min))
                          (re-search-forward text nil t)))))))

(ert-deftest efrit-demo-shows-a-whole-session-without-a-key ()
  (efrit-demo-tests--with loop
    (let ((project (efrit-loop-root loop))
          (state (expand-file-name "state" efrit-demo--folder)))
      (efrit-demo-tests--await "Edit watering.el \\+1 .1\\?")
      (should (string-match-p "\\`efrit.*\n\n— The model here is a scripted one on this machine"
                              (buffer-string)))
      (let ((said (buffer-string)))
        (dolist (text '("Read log/march.txt[^\0]*Read log/march.txt" "older results were compressed"
                        "Recall r3"))
          (ert-info (text)
            (should (string-match-p text said)))))
      (should (directory-files-recursively state "sqlite"))
      (should-not (efrit-sidecar-process))
      (should (equal "the demo" (efrit-host-of-folder project)))
      (goto-char (point-max))
      (call-interactively (key-binding (kbd "C-c C-y")))
      (should (eq 'idle (efrit-test-rest loop)))
      (let ((file (expand-file-name "watering.el" project)))
        (should (string-search "(>= days" (efrit-demo-tests--text file)))
        (call-interactively #'efrit-undo)
        (should (efrit-test-wait-until
                 (lambda () (string-search "(> days" (efrit-demo-tests--text file))))))
      (goto-char (point-max))
      (insert "Thank you.")
      (call-interactively (key-binding (kbd "RET")))
      (should (eq 'idle (efrit-test-rest loop)))
      (efrit-demo-tests--await "That was all that I was given to say"))))

(defun efrit-demo-tests--text (file)
  "Return the text of FILE on disk."
  (with-temp-buffer
    (insert-file-contents file)
    (buffer-string)))

(ert-deftest efrit-demo-leaves-nothing-behind ()
  (efrit-demo-tests--with loop
    (let ((folder efrit-demo--folder)
          (buffer (efrit-session-view-buffer loop))
          (sidecar (efrit-sidecar-process "the demo"))
          (model efrit-demo--model))
      (efrit-demo-tests--await "Edit watering.el")
      (should (eq loop (efrit-demo)))
      (efrit-demo-end)
      (should-not (file-exists-p folder))
      (should-not (process-live-p sidecar))
      (should-not (process-live-p model))
      (should-not (buffer-live-p buffer))
      (should-not (memq loop (efrit-loops)))
      (should-not (efrit-host-of-folder folder))
      (should-not (file-exists-p efrit-permissions-file))
      (should-error (efrit-demo-end) :type 'user-error))))

(ert-deftest efrit-demo-keeps-the-project-of-who-wants-it ()
  "Killing the session's buffer ends the demo, and asks about the project."
  (efrit-demo-tests--with loop
    (let ((project (efrit-loop-root loop))
          (state (expand-file-name "state" efrit-demo--folder))
          (noninteractive nil))
      (efrit-demo-tests--await "Edit watering.el")
      (unwind-protect
          (cl-letf (((symbol-function 'yes-or-no-p) #'always)
                    ((symbol-function 'y-or-n-p) #'ignore))
            (with-temp-buffer
              (kill-buffer (efrit-session-view-buffer loop))
              (should (efrit-test-wait-until (lambda () (null efrit-demo--folder)))))
            (should (file-exists-p (expand-file-name "watering.el" project)))
            (should-not (file-exists-p state)))
        (delete-directory (file-name-directory (directory-file-name project)) t)))))

(ert-deftest efrit-demo-without-a-sidecar-says-what-to-do ()
  (let* ((exec-path nil)
         (efrit-directory (file-name-as-directory temporary-file-directory))
         (err (should-error (efrit-demo) :type 'user-error)))
    (should (string-match-p "efrit-budget" (cadr err)))
    (should-not efrit-demo--folder)))

(provide 'demo-tests)
;;; demo-tests.el ends here
