;;; install-tests.el --- Installing the sidecar on another machine  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The installer is a small program here; tests/installer has tests of the real
;; one, and tests/emacs/test_over_ssh.py installs that over a real ssh.

;;; Code:

(require 'cl-lib)
(require 'over-there)
(require 'efrit-sidecar)

(defvar install-tests--asked nil
  "The latest question.")

(defmacro install-tests--with (installer &rest body)
  "Run BODY while INSTALLER, a shell script, is the program that writes installers.
Every question is answered with yes."
  (declare (indent 1) (debug (form body)))
  `(efrit-over-there-with-project nil
     (let* ((script (make-temp-file "efrit-test-" nil nil (concat "#!/bin/sh\n" ,installer)))
            (efrit-sidecar-command (list script))
            (inhibit-message t))
       (set-file-modes script #o755)
       (unwind-protect
           (cl-letf (((symbol-function 'yes-or-no-p)
                      (lambda (prompt) (setq install-tests--asked prompt))))
             ,@body)
         (delete-file script)))))

(defun install-tests--text ()
  "Install over there, and return the text of the buffer once that has ended."
  (efrit-remote-install efrit-over-there-host)
  (let ((buffer (format "*efrit install %s*" efrit-over-there-host)))
    (should (efrit-test-wait-until
             (lambda ()
               (with-current-buffer buffer
                 (string-match-p "^\\(?:Installed\\|Not installed\\) on" (buffer-string))))))
    (with-current-buffer buffer
      (buffer-string))))

(ert-deftest efrit-install-an-installer-for-the-python-there-is-sent-and-run ()
  "It arrives as it was made, whatever its bytes and its length are."
  (install-tests--with "
echo \"asked for: $*\"
head -c 100000 /dev/urandom >\"$2\"
python3 -c 'import sys, zipfile
zipfile.ZipFile(sys.argv[1], \"a\").writestr(\"__main__.py\", sys.argv[2])
' \"$2\" 'import hashlib, sys
print(\"arrived:\", hashlib.md5(open(sys.argv[0], \"rb\").read()).hexdigest())'
echo \"made: $(md5sum <\"$2\")\"
"
    (let ((text (install-tests--text)))
      (should (string-match-p "Install efrit-budget .* on /mock:" install-tests--asked))
      (should (string-match-p "asked for: installer .* --python 3\\.[0-9]+ --platform [a-z0-9_-]+"
                              text))
      (should (string-match "made: \\([0-9a-f]+\\)" text))
      (should (string-search (concat "arrived: " (match-string 1 text)) text))
      (should (string-match-p "^Installed on /mock:" text)))))

(ert-deftest efrit-install-says-why-it-failed ()
  "So it does when there is no installer, when it ends badly, and of what its doctor found."
  (dolist (case '(("echo no space left; exit 1" . "no space left\n\\(.*\n\\)*Not .*cannot be made")
                  ("echo 'import sys; sys.exit(\"no room\")' >\"$2\"" . "no room\n\\(.*\n\\)*Not .*problems")
                  ("echo 'import sys; sys.exit(3)' >\"$2\"" . "Not .*packages are missing")))
    (install-tests--with (car case)
      (should (string-match-p (cdr case) (install-tests--text))))))

(ert-deftest efrit-install-needs-a-python-that-is-new-enough-and-consent ()
  (install-tests--with "exit 1"
    (cl-letf (((symbol-function 'yes-or-no-p) #'ignore))
      (should (string-match-p "Nothing was installed"
                              (cadr (should-error (efrit-remote-install efrit-over-there-host)
                                                  :type 'user-error)))))
    (let* ((folder (make-temp-file "efrit-test-bin-" t))
           (python (expand-file-name "python3" folder))
           (tramp-remote-path (list folder)))
      (dolist (case '((nil . "has no Python 3\\.11 or later\\.")
                      ("#!/bin/sh\nprintf '/python3\\t3.9\\tlinux-x86_64\\tglibc-2.31\\n'\n"
                       . "has no Python 3\\.11 or later, only 3\\.9")))
        (tramp-cleanup-all-connections)
        (make-symbolic-link (executable-find "sh") (expand-file-name "sh" folder) t)
        (when (car case)
          (write-region (car case) nil python nil 'silent)
          (set-file-modes python #o755))
        (should (string-match-p (cdr case)
                                (cadr (should-error (efrit-remote-install efrit-over-there-host)
                                                    :type 'user-error)))))
      (delete-directory folder t))))

(provide 'install-tests)
;;; install-tests.el ends here
