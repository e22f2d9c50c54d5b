;;; packaging-tests.el --- Installing the sidecar here, and other efrits  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The programs that install are small scripts here; tests/packaging installs
;; with the real ones.

;;; Code:

(require 'support)
(require 'efrit-setup)

(defmacro packaging-tests--without-sidecar (folder &rest body)
  "Run BODY on a machine without the sidecar, as if installed from a package.
FOLDER is bound to the person's home there; the programs are in its folder bin."
  (declare (indent 1) (debug (symbolp body)))
  `(let* ((,folder (file-name-as-directory (make-temp-file "efrit-test-" t)))
          (process-environment (cons (concat "HOME=" ,folder) process-environment))
          (efrit-directory (expand-file-name "elpa/efrit/" ,folder))
          (efrit-sidecar-directory (expand-file-name "efrit-sidecar/" ,folder))
          (efrit-sidecar-command nil)
          (exec-path (list (expand-file-name "bin" ,folder)))
          (outside (default-value 'exec-path))
          (outside-environment (default-value 'process-environment))
          (inhibit-message t))
     (unwind-protect
         (progn
           (setq-default exec-path exec-path
                         process-environment process-environment)
           ,@body)
       (setq-default exec-path outside
                     process-environment outside-environment)
       (delete-directory ,folder t))))

(defun packaging-tests--add-program (folder name script)
  "Add a program NAME to those in FOLDER; SCRIPT is for the shell."
  (let ((file (expand-file-name (concat "bin/" name) folder)))
    (make-directory (file-name-directory file) t)
    (write-region (concat "#!/bin/sh\n" script "\n") nil file nil 'silent)
    (set-file-modes file #o755)))

(defmacro packaging-tests--answering (way consent asked &rest body)
  "Run BODY; WAY is chosen, and CONSENT the answer to the question.
The question is in the variable ASKED then."
  (declare (indent 3) (debug (form form symbolp body)))
  `(cl-letf (((symbol-function 'completing-read) (lambda (&rest _) ,way))
             ((symbol-function 'yes-or-no-p)
              (lambda (prompt)
                (setq ,asked prompt)
                ,consent)))
     ,@body))

(defun packaging-tests--check-all ()
  "Run `efrit-doctor' as a person does; return the number of reports in the end.
Wait for an installation to end."
  (let ((noninteractive nil)
        (reports 0))
    (cl-letf (((symbol-function 'efrit-doctor--check-all) (lambda () (cl-incf reports))))
      (efrit-doctor)
      (when-let* ((buffer (get-buffer "*efrit install*")))
        (efrit-test-wait-until (lambda () (null (get-buffer-process buffer))))
        (kill-buffer buffer)))
    reports))

(ert-deftest efrit-doctor-installs-the-sidecar-as-the-person-chooses ()
  "It says what it will run, asks, and checks everything again at the end."
  (packaging-tests--without-sidecar folder
    (let ((program (expand-file-name ".local/bin/efrit-budget" folder))
          (asked nil))
      (packaging-tests--add-program folder "pipx" "exit 9")
      (packaging-tests--add-program
       folder "uv" "echo \"$@\" >\"$HOME/log\"
PATH=/bin:/usr/bin; mkdir -p \"$HOME/.local/bin\"; cp \"$0\" \"$HOME/.local/bin/efrit-budget\"")
      (should (equal '("uv" "pipx") (mapcar #'car (efrit-executable-locally (efrit-setup--ways)))))
      (packaging-tests--answering "uv" t asked
        (should (= 2 (packaging-tests--check-all))))
      (should (equal (format "Install the sidecar: run %sbin/uv tool install efrit-budget==%s? "
                             folder efrit-version)
                     asked))
      (with-temp-buffer
        (insert-file-contents (expand-file-name "log" folder))
        (should (equal (format "tool install efrit-budget==%s\n" efrit-version)
                       (buffer-string))))
      (should (equal (list program) (efrit-executable-command)))
      (setq asked nil)
      (packaging-tests--answering "uv" t asked
        (should (= 1 (packaging-tests--check-all))))
      (should-not asked))))

(ert-deftest efrit-doctor-installs-nothing-without-consent-or-in-batch ()
  (packaging-tests--without-sidecar folder
    (let ((asked nil))
      (packaging-tests--add-program folder "uv" ": >\"$HOME/log\"")
      (packaging-tests--answering "uv" nil asked
        (should (= 1 (packaging-tests--check-all)))
        (should asked)
        (setq asked nil)
        (cl-letf (((symbol-function 'efrit-doctor--check-all) #'ignore))
          (efrit-doctor))
        (should-not asked))
      (should-not (file-exists-p (expand-file-name "log" folder))))))

(ert-deftest efrit-doctor-says-where-an-installation-failed ()
  (packaging-tests--without-sidecar folder
    (let ((asked nil) (said nil))
      (packaging-tests--add-program folder "uv" "exit 1")
      (packaging-tests--answering "uv" t asked
        (cl-letf (((symbol-function 'message)
                   (lambda (format &rest arguments) (push (apply #'format format arguments) said))))
          (should (= 1 (packaging-tests--check-all)))))
      (should asked)
      (should (member "The sidecar is not installed; *efrit install* says why" said)))))

(ert-deftest efrit-doctor-makes-a-virtualenv-where-there-is-a-fit-python ()
  (packaging-tests--without-sidecar folder
    (let ((err (should-error (efrit-setup--offer-sidecar) :type 'user-error)))
      (should (string-match-p "Python 3\\.11, or uv" (cadr err))))
    (packaging-tests--add-program folder "python3" "exit 1")
    (should-not (efrit-executable-locally (efrit-setup--ways)))
    (packaging-tests--add-program folder "python3.13" "exit 0")
    (let ((efrit-sidecar-requirement "/a wheel.whl"))
      (should (equal `(("venv" . ,(format "%1$sbin/python3.13 -m venv %1$sefrit-sidecar && \
%1$sefrit-sidecar/bin/python -m pip install /a\\ wheel.whl" folder)))
                     (efrit-executable-locally (efrit-setup--ways)))))
    (packaging-tests--add-program folder "../efrit-sidecar/bin/efrit-budget" ":")
    (should (equal (list (expand-file-name "efrit-sidecar/bin/efrit-budget" folder))
                   (efrit-executable-command)))))

(ert-deftest efrit-doctor-sets-a-checkout-up ()
  (packaging-tests--without-sidecar folder
    (write-region "" nil (expand-file-name "pyproject.toml" folder) nil 'silent)
    (let ((efrit-directory (expand-file-name "elisp/" folder)))
      (should (equal `(("make" . ,(format "make -C %s setup" (directory-file-name folder))))
                     (efrit-setup--ways))))))

(ert-deftest efrit-the-program-of-the-virtualenv-with-these-files-comes-first ()
  (packaging-tests--without-sidecar folder
    (write-region "" nil (expand-file-name "pyvenv.cfg" folder) nil 'silent)
    (packaging-tests--add-program folder "efrit-budget" ":")
    (let ((exec-path nil)
          (efrit-directory (expand-file-name "lib/python/efrit_budget/elisp/" folder)))
      (make-directory efrit-directory t)
      (setq-default exec-path nil)
      (should (equal (list (expand-file-name "bin/efrit-budget" folder))
                     (efrit-executable-command))))))

;;; Autoloads

(declare-function package-generate-autoloads "package" (name pkg-dir))

(defun packaging-tests--autoloads (file)
  "Return the autoloads in FILE, lists of a function and its library.
That of a command has t for a third element."
  (let (found)
    (with-temp-buffer
      (insert-file-contents file)
      (while (re-search-forward "^ *\\((autoload '\\)" nil t)
        (goto-char (match-beginning 1))
        (pcase (read (current-buffer))
          (`(autoload ',name ,library ,_ . ,rest)
           (push (list name library (and (car rest) t)) found))
          (`(autoload ',name ,library)
           (push (list name library nil) found)))))
    (sort found (lambda (one two) (string< (car one) (car two))))))

(ert-deftest efrit-the-autoloads-are-those-that-emacs-makes ()
  "If they are not, run make setup."
  (require 'package)
  (let ((folder (file-name-as-directory (make-temp-file "efrit-autoloads-" t)))
        (elisp (expand-file-name "elisp/" efrit-test-root))
        (inhibit-message t))
    (unwind-protect
        (progn
          (dolist (file (delete "efrit-autoloads.el" (directory-files elisp nil "\\.el\\'")))
            (copy-file (expand-file-name file elisp) folder))
          (package-generate-autoloads "efrit" (directory-file-name folder))
          (let ((made (packaging-tests--autoloads (expand-file-name "efrit-autoloads.el" folder))))
            (should (assq 'efrit-doctor made))
            (should (equal made (packaging-tests--autoloads
                                 (expand-file-name "efrit-autoloads.el" elisp)))))
          (when-let* ((buffer (get-buffer " *autoload*")))
            (kill-buffer buffer)))
      (delete-directory folder t))))

(ert-deftest efrit-sessions-are-restored-before-any-file-of-the-package-is-loaded ()
  "The autoloads alone have `desktop-read' know the buffers of sessions."
  (should (equal "(efrit-restore-desktop nil)"
                 (packaging-tests--elsewhere
                  temporary-file-directory "-l" "efrit-autoloads" "--eval"
                  "(princ (list (alist-get 'efrit-session-view-mode desktop-buffer-mode-handlers)
                                (featurep 'efrit)))"))))

;;; Another efrit

(defun packaging-tests--elsewhere (folder &rest arguments)
  "Return what another Emacs with FOLDER first in its `load-path' prints.
ARGUMENTS are more of its command line."
  (with-temp-buffer
    (apply #'call-process (expand-file-name invocation-name invocation-directory) nil t nil
           "-Q" "--batch" "-L" folder "-L" (expand-file-name "elisp" efrit-test-root) arguments)
    (buffer-string)))

(ert-deftest efrit-another-efrit-in-the-load-path-is-named ()
  "So it is when ours is loaded, and when its efrit.el was loaded in place of ours."
  (let ((folder (file-name-as-directory (make-temp-file "efrit-older-" t)))
        (ours (expand-file-name "elisp/" efrit-test-root)))
    (unwind-protect
        (progn
          (write-region "(provide 'efrit-do)" nil (expand-file-name "efrit-do.el" folder) nil 'silent)
          (should (string-match-p
                   (format "Another efrit is in %s, and its files hide those of this one: remove \
that from [^ ]*load-path" (regexp-quote folder))
                   (packaging-tests--elsewhere folder "-l" "efrit")))
          (should (string-match-p
                   (format "Another efrit is in %s" (regexp-quote folder))
                   (packaging-tests--elsewhere folder "-l" "efrit-do" "--eval"
                                               "(setq load-path (cdr load-path))" "-l" "efrit")))
          (should (string-match-p
                   (format "\nproblem: Another efrit is in %s" (regexp-quote folder))
                   (packaging-tests--elsewhere
                    folder "-l" (expand-file-name "efrit" ours) "--eval"
                    "(condition-case err (efrit-doctor) (error (princ (format \"\nproblem: %s\" (cadr err)))))")))
          (write-region "(provide 'efrit)" nil (expand-file-name "efrit.el" folder) nil 'silent)
          (should (string-match-p
                   (format "Emacs loaded another efrit, %sefrit.el, in place" (regexp-quote folder))
                   (packaging-tests--elsewhere
                    folder "--eval" (format "(condition-case err (load %S) (error (princ (cadr err))))"
                                            (expand-file-name "efrit-setup" ours))))))
      (delete-directory folder t))))

(ert-deftest efrit-the-doctor-names-another-efrit ()
  (let ((folder (file-name-as-directory (make-temp-file "efrit-older-" t))))
    (unwind-protect
        (let ((load-path load-path))
          (should (efrit-doctor-check-ok (efrit-doctor--files)))
          (write-region "" nil (expand-file-name "efrit-do.el" folder) nil 'silent)
          (push folder load-path)
          (let ((found (efrit-doctor--files)))
            (should-not (efrit-doctor-check-ok found))
            (should (string-search folder (efrit-doctor-check-fix found))))
          ;; One that comes later hides nothing.
          (setq load-path (append (cdr load-path) (list folder)))
          (should (efrit-doctor-check-ok (efrit-doctor--files))))
      (delete-directory folder t))))

(ert-deftest efrit-links-to-these-files-are-no-other-efrit ()
  (let ((folder (file-name-as-directory (make-temp-file "efrit-links-" t))))
    (unwind-protect
        (let ((load-path (cons folder load-path)))
          (dolist (file (directory-files (expand-file-name "elisp" efrit-test-root) t "\\.el\\'"))
            (make-symbolic-link file folder))
          (should-not (efrit-other-folders)))
      (delete-directory folder t))))

(provide 'packaging-tests)
;;; packaging-tests.el ends here
