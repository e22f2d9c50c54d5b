;;; options-tests.el --- The options, as Customize and files see them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; In another Emacs that has nothing loaded but efrit.el.

;;; Code:

(require 'cl-lib)
(require 'support)

(defconst options-test--harmless
  '(efrit-budget-bars-width
    efrit-budget-view-delay efrit-budget-view-interval efrit-buffer-most-characters
    efrit-change-keep-buffers efrit-claude-effort efrit-claude-thinking-display
    efrit-code-most-places efrit-compile-most-characters efrit-eval-most-characters
    efrit-export-format efrit-format-meaningful-indentation efrit-format-most-characters
    efrit-memory-most-results efrit-memory-pack-tokens efrit-output-lines
    efrit-presence-in-mode-line efrit-presence-notify efrit-reply-box-files-for
    efrit-result-most-characters efrit-session-view-height efrit-show-most-characters
    efrit-show-seconds efrit-sidecar-log-events efrit-sidecar-start-timeout
    efrit-sidecar-timeout efrit-stop-patience efrit-sync-delay efrit-view-least-group
    efrit-view-markdown efrit-view-most-characters efrit-view-usage)
  "Options about how much is shown, and how.")

(defun options-test--defined ()
  "Return the options that the files define."
  (let (found)
    (dolist (file (directory-files (expand-file-name "elisp" efrit-test-root) t "\\.el\\'"))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "^(defcustom \\([^ \n]+\\)" nil t)
          (push (intern (match-string 1)) found))))
    (sort found #'string<)))

(defun options-test--elsewhere (form)
  "Return the value of FORM in an Emacs that has efrit.el loaded."
  (with-temp-buffer
    (call-process (expand-file-name invocation-name invocation-directory) nil '(t nil) nil
                  "-Q" "--batch" "-L" (expand-file-name "elisp" efrit-test-root) "-l" "efrit"
                  "--eval" (format "(prin1 %S)" form))
    (goto-char (point-min))
    (read (current-buffer))))

(ert-deftest efrit-options-are-all-in-the-customize-group ()
  (should (equal (options-test--defined)
                 (options-test--elsewhere
                  '(progn
                     (require 'cus-edit)
                     (let ((inhibit-message t)
                           (groups '(efrit))
                           (seen nil)
                           (options nil))
                       (while groups
                         (let ((group (pop groups)))
                           (unless (memq group seen)
                             (push group seen)
                             (custom-load-symbol group)
                             (pcase-dolist (`(,name ,kind) (custom-group-members group nil))
                               (pcase kind
                                 ('custom-group (push name groups))
                                 ('custom-variable (push name options)))))))
                       (sort (delete-dups options) #'string<)))))))

(ert-deftest efrit-options-that-files-must-not-set-are-risky ()
  "Each option is one of the two kinds, before its file is loaded, too."
  (let ((risky (cl-set-difference (options-test--defined) options-test--harmless)))
    (should-not (cl-set-difference options-test--harmless (options-test--defined)))
    (should-not (options-test--elsewhere
                 `(seq-remove #'risky-local-variable-p ',risky)))))

(ert-deftest efrit-options-compiled-files-that-are-outdated-are-not-loaded ()
  "If one source has changed, no compiled file is loaded: it may use its macros."
  (let* ((folder (make-temp-file "efrit-outdated-" t))
         (sources (mapcar (lambda (name) (expand-file-name name folder))
                          '("efrit.el" "efrit-do.el" "efrit-run.el")))
         (run (lambda (&rest arguments)
                (apply #'call-process (expand-file-name invocation-name invocation-directory)
                       nil nil nil "-Q" "--batch" "-L" folder arguments))))
    (unwind-protect
        (progn
          (dolist (source sources)
            (copy-file (expand-file-name "elisp/efrit.el" efrit-test-root) source))
          (apply run "-f" "batch-byte-compile" sources)
          (should (eql 0 (funcall run "-l" "efrit")))
          (should (length= (directory-files folder nil "\\.elc\\'") 3))
          (dolist (source sources)
            (set-file-times source 0)
            (set-file-times (concat source "c") 1))
          (write-region "(defvar efrit-outdated-test t)\n" nil (car sources) t 'silent)
          (should (eql 0 (funcall run "-l" "efrit" "--eval"
                                  "(kill-emacs (if (boundp 'efrit-outdated-test) 0 1))")))
          (should-not (directory-files folder nil "\\.elc\\'")))
      (delete-directory folder t))))

(provide 'options-tests)
;;; options-tests.el ends here
