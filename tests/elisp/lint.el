;;; lint.el --- Check the Lisp files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run it in a batch Emacs: -Q --batch -l tests/elisp/lint.el
;;
;; Byte-compiles the files, runs checkdoc on them, and package-lint on those of
;; the package, and prints each finding as FILE:LINE: MESSAGE, the compiler's
;; warnings among them.  Exits with 1 if there is any.  With EFRIT_SOAK=1 it
;; only compiles each file of the package in an Emacs of its own, where it has
;; to require all that it uses.  EFRIT_QUEUE names a folder over which several
;; Emacsen share the files.

;;; Code:

(require 'checkdoc)
(require 'seq)
(require 'subr-x)

(load (expand-file-name "share" (file-name-directory (or load-file-name buffer-file-name)))
      nil t)
(declare-function efrit-share-take "share" (name))

;; Else Emacs compiles natively when transient, once loaded, advises primitives.
(dolist (name '(comp-enable-subr-trampolines native-comp-enable-subr-trampolines))
  (set name nil))

(defconst efrit-lint--root
  (expand-file-name "../../" (file-name-directory (or load-file-name buffer-file-name)))
  "The folder of the checkout.")

(defconst efrit-lint--package-folder (expand-file-name "elisp" efrit-lint--root)
  "The folder of the package's files.")

(defconst efrit-lint--other-folders
  (mapcar (lambda (folder) (expand-file-name folder efrit-lint--root))
          '("tests/elisp" "tests/emacs" "tests/packaging" "tests/benchmarks/elisp"))
  "Folders with Lisp files that are no part of the package.")

(defconst efrit-lint--not-held
  '(;; No archive can be asked where this runs.
    "\\`Package .* is not installable\\.\\'"
    ;; Said by package-lint 0.16 of Emacs 28, which it does not know yet.
    "\\`This makes the package uninstallable in all released Emacs versions\\.\\'"
    ;; The checkout names no hosts.
    "\\`Package should have a Homepage or URL header\\.\\'")
  "Findings of package-lint, as regular expressions, that are left out.")

(defvar efrit-lint--findings 0
  "Number of findings printed.")

(defun efrit-lint--find (file line message)
  "Print the finding MESSAGE about LINE of FILE, and count it."
  (setq efrit-lint--findings (1+ efrit-lint--findings))
  (princ (format "%s:%s: %s\n" (file-relative-name file efrit-lint--root) line message)))

(defun efrit-lint--files (folder)
  "Return the Lisp files of FOLDER that somebody wrote."
  (and (file-directory-p folder)
       (delete (expand-file-name "efrit-autoloads.el" folder)
               (directory-files folder t "\\`[^.].*\\.el\\'"))))

;;; Byte-compiling

(defun efrit-lint--compile (files folder &rest options)
  "Byte-compile FILES, of one folder, into FOLDER; print every warning.
It is done in a fresh Emacs that is started with OPTIONS."
  (with-temp-buffer
    (let ((code (apply #'efrit-lint--run-compiler folder files
                       (append options (list "-L" (file-name-directory (car files)))))))
      (efrit-lint--compiler-findings files (eql code 0)))))

(defun efrit-lint--run-compiler (folder files &rest options)
  "Byte-compile FILES into FOLDER in an Emacs that is started with OPTIONS.
Return its exit code; what it says goes to the current buffer."
  (apply #'call-process (expand-file-name invocation-name invocation-directory) nil t nil
         `("-Q" "--batch" ,@options
           "--eval" ,(format "(setq byte-compile-dest-file-function
                                    (lambda (file)
                                      (expand-file-name
                                       (concat (file-name-base file) \".elc\") %S)))"
                             folder)
           "-f" "batch-byte-compile" ,@files)))

(defun efrit-lint--compiler-findings (files compiled)
  "Print the findings about FILES in the output of their compiler, in this buffer.
COMPILED is nil where it says that one of FILES does not compile."
  (goto-char (point-min))
  (let ((before efrit-lint--findings)
        (folder (file-name-directory (car files))))
    (while (re-search-forward
            "^\\([^\n:]+\\.el\\):\\([0-9]+\\):\\(?:[0-9]+:\\)? \\(.*\\(?:\n    .*\\)*\\)" nil t)
      (efrit-lint--find (expand-file-name (file-name-nondirectory (match-string 1)) folder)
                        (match-string 2)
                        (replace-regexp-in-string "\n *" " " (match-string 3))))
    (unless (or compiled (< before efrit-lint--findings))
      (efrit-lint--find (car files) 1 (concat "does not compile: "
                                              (string-trim (buffer-string)))))))

;;; Documentation

(defun efrit-lint--checkdoc (file)
  "Print the findings of checkdoc about FILE."
  (let ((checkdoc-create-error-function
         (lambda (text start _end &optional _unfixable)
           (efrit-lint--find file (if start (line-number-at-pos start t) 1) text)
           nil))
        (checkdoc-autofix-flag 'never)
        (sentence-end-double-space t))
    (with-temp-buffer
      (setq buffer-file-name file)
      (insert-file-contents file)
      (delay-mode-hooks (emacs-lisp-mode))
      (checkdoc-current-buffer t)
      (set-buffer-modified-p nil)
      (setq buffer-file-name nil))))

;;; Packaging

(defun efrit-lint--package-lint (file)
  "Print the findings of package-lint about FILE, but those not held."
  (defvar package-lint-main-file)
  (declare-function package-lint-buffer "package-lint" (&optional buffer))
  (let ((package-lint-main-file (expand-file-name "efrit.el" efrit-lint--package-folder))
        (buffer (find-file-noselect file)))
    (pcase-dolist (`(,line ,_column ,_type ,message) (package-lint-buffer buffer))
      (unless (seq-some (lambda (known) (string-match-p known message))
                        efrit-lint--not-held)
        (efrit-lint--find file line message)))
    (kill-buffer buffer)))

(defun efrit-lint--load-package-lint ()
  "Load package-lint, with -Q in a distribution's Emacs, too."
  (dolist (folder (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa*/*"))
    (add-to-list 'load-path folder t))
  (unless (require 'package-lint nil t)
    (princ "package-lint is missing; Debian has it as elpa-package-lint\n")
    (kill-emacs 2)))

;;; Everything

(defun efrit-lint ()
  "Check every file, print a summary, and exit."
  (let ((folder (make-temp-file "efrit-lint-" t))
        (own (efrit-lint--files efrit-lint--package-folder))
        (others (mapcar #'efrit-lint--files efrit-lint--other-folders)))
    (unwind-protect
        (if (equal (getenv "EFRIT_SOAK") "1")
            (efrit-lint--each-alone own folder)
          (when (efrit-share-take "compile")
            (efrit-lint--compile-all own others folder))
          (efrit-lint--texts own (apply #'append others)))
      (delete-directory folder t))
    (princ (format "%d findings\n" efrit-lint--findings))
    (kill-emacs (if (zerop efrit-lint--findings) 0 1))))

(defun efrit-lint--each-alone (files folder)
  "Compile each of FILES, the package, in an Emacs of its own.
FOLDER is an empty one."
  (let ((alone (expand-file-name "alone" folder)))
    (make-directory alone)
    (copy-file (expand-file-name "efrit-autoloads.el" efrit-lint--package-folder)
               (file-name-as-directory folder))
    (with-temp-buffer
      (efrit-lint--run-compiler folder files
                                "-L" efrit-lint--package-folder))
    (dolist (file files)
      (when (efrit-share-take (file-name-nondirectory file))
        ;; What is compiled is read faster than the sources.
        (efrit-lint--compile (list file) alone "-L" folder)))))

(defun efrit-lint--compile-all (own others folder)
  "Compile OWN, the files of the package, and OTHERS, lists of files, into FOLDER."
  (efrit-lint--compile own folder)
  (dolist (files others)
    (efrit-lint--compile files (make-temp-file (concat folder "/") t) "-L" folder)))

(defun efrit-lint--texts (own others)
  "Check the texts of the files OWN, which are the package, and OTHERS."
  (efrit-lint--load-package-lint)
  (dolist (file (append own others))
    (when (efrit-share-take (file-relative-name file efrit-lint--root))
      (efrit-lint--checkdoc file)
      (unless (member file others)
        (efrit-lint--package-lint file)))))

(when noninteractive
  (efrit-lint))

(provide 'lint)
;;; lint.el ends here
