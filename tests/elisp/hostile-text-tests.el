;;; hostile-text-tests.el --- Tests of texts that are traps  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Texts of models, files and programs that would have Emacs wait for minutes,
;; open a connection to another machine, or lead the person astray.

;;; Code:

(require 'browse-url)
(require 'diff-mode)
(require 'viewing)
(require 'efrit-budget)
(require 'efrit-do)
(require 'efrit-files)
(require 'efrit-markdown)
(require 'efrit-permissions)

(defconst hostile-text-tests--blanks (make-string 300000 ?\s)
  "Blanks that take minutes to search for their end again at each of them.")

(defconst hostile-text-tests--of-names
  '(expand-file-name file-name-directory file-name-nondirectory file-name-as-directory
    directory-file-name abbreviate-file-name substitute-in-file-name
    file-name-case-insensitive-p)
  "Functions that look at the name of a file alone, unless a home is in it.")

(defmacro hostile-text-tests--without-connections (&rest body)
  "Run BODY; fail if a file on the machine evil.invalid is looked for in it."
  (declare (indent 0) (debug t))
  `(let* ((asked nil)
          (file-name-handler-alist
           (cons (cons "\\`/ssh:evil"
                       (lambda (operation &rest arguments)
                         (let ((file-name-handler-alist nil))
                           (cond ((eq operation 'file-remote-p) "/ssh:evil.invalid:")
                                 ((or (not (memq operation hostile-text-tests--of-names))
                                      (string-search "~" (car arguments)))
                                  (push (cons operation arguments) asked)
                                  nil)
                                 (t (apply operation arguments))))))
                 file-name-handler-alist)))
     ,@body
     (should-not asked)))

;;; Time

(ert-deftest efrit-hostile-text-is-trimmed-in-time ()
  (let ((text (concat " \na" hostile-text-tests--blanks "b\t\n")))
    (should (equal (substring text 2 -2) (efrit-trim text)))
    (should (equal (substring text 0 -2) (efrit-trim-right text)))
    (should (equal "a " (efrit-trim-right "a \n\n" "\n")))
    (should (equal "" (efrit-trim " \n ")))
    (should-not (efrit-permissions-split-command (concat text "; b")))
    (should (equal "a" (car (efrit-permissions-split-command
                             (concat "a" hostile-text-tests--blanks "b")))))))

(ert-deftest efrit-hostile-text-of-hidden-characters-is-made-visible ()
  (should (equal "a<U+202E>b<U+0007>c\nd" (efrit-permissions-visible "a\u202eb\ac\nd")))
  (should (equal "<U+000A>a<U+0009>" (efrit-permissions-visible "\na\t" t)))
  (should (equal (apply #'concat (make-list 300000 "<U+202E>"))
                 (efrit-permissions-visible (make-string 300000 #x202e)))))

(ert-deftest efrit-hostile-text-of-a-reply-is-dressed-in-time ()
  (let* ((bars (make-string 1900 ?|))
         (rows (apply #'concat (make-list 7000 "|\n"))))
    (dolist (text (list (concat "```" hostile-text-tests--blanks "`\n")
                        (concat "```a" hostile-text-tests--blanks "b\nx\n```\n")
                        (make-string 300000 ?`)
                        (make-string 300000 ?~)
                        (concat "# a" (make-string 19900 ?\s) "b\n")
                        (concat "# a" (make-string 9900 ?\s) (make-string 9900 ?#) "b\n")
                        (concat "|`" (make-string 19900 ?|) "`|\n|-|\n")
                        (concat (apply #'concat (make-list 900 "|a")) "\n"
                                (apply #'concat (make-list 900 "|-")) "\n" rows)
                        (concat "a|b\n-|-\na" (make-string 19900 ?\s) "b|" bars "\n")
                        (mapconcat (lambda (size) (concat (make-string size ?`) "a"))
                                   (number-sequence 1 190) "")))
      (with-temp-buffer
        (insert text "\n")
        (let ((position (point-min)))
          (while (< position (point-max))
            (setq position (efrit-markdown-dress
                            position (efrit-markdown-block-end position (point-max) t)
                            efrit-test-root)))
          (should (= position (point-max))))))))

(ert-deftest efrit-hostile-text-of-a-message-is-searched-for-files-in-time ()
  (dolist (text (list (concat "@" (make-string 300000 ?.))
                      (concat "@\"" (make-string 300000 ?a) "\"")
                      (mapconcat (lambda (number) (format "@%d)))))" number))
                                 (number-sequence 1 30000) " ")))
    (should-not (efrit-attach-mentions text efrit-test-root)))
  (should (efrit-attach-mentions "See (@README.md)..." efrit-test-root)))

(ert-deftest efrit-hostile-text-of-code-is-fontified-in-small-steps ()
  "Python mode takes 20 seconds for these quotes at once."
  (let* ((text (apply #'concat (make-list 80 (concat (make-string 360 ?\") "\n"))))
         (steps nil)
         (ensure (symbol-function 'font-lock-ensure)))
    (cl-letf (((symbol-function 'font-lock-ensure)
               (lambda (begin end)
                 (push (list (buffer-size) (- end begin)) steps)
                 (funcall ensure begin end))))
      (should (equal text (substring-no-properties (efrit-fontify text 'python-mode 0.04)))))
    (should steps)
    (pcase-dolist (`(,size ,step) steps)
      (should (< step 1000))
      ;; Modes also work when text is inserted: that is done in the same steps.
      (should (= size (apply #'+ (mapcar #'cadr (member (list size step) steps))))))))

(ert-deftest efrit-hostile-text-of-code-with-a-long-line-is-fontified-before-it ()
  (let ((shown (efrit-fontify (concat "(defun a ())\n\"" (make-string 5000 ?b) "\"\n(defun c ())\n")
                              'emacs-lisp-mode 1)))
    (should (get-text-property 1 'face shown))
    (should-not (next-single-property-change 13 'face shown))))

;;; Modes

(ert-deftest efrit-hostile-text-to-be-edited-is-in-a-mode-for-text ()
  (pcase-dolist (`(,name ,text ,mode) '(("a.pdf" "%PDF-1.4\n" text-mode) ("a.png" "x" text-mode)
                                        ("a.tar" "x" text-mode) ("a.gz" "x" text-mode)
                                        ("a.el" "(a)" emacs-lisp-mode)
                                        ("a" "%PDF-1.4\n" fundamental-mode)
                                        ("a" "#!/bin/sh\n" sh-mode)
                                        ("a.el" ";; -*- mode: doc-view -*-\n" emacs-lisp-mode)))
    (with-temp-buffer
      (insert text)
      (efrit-revise--set-mode (concat "/nowhere/" name))
      (ert-info (name)
        (should (eq mode major-mode))))))

;;; A person's habits

(ert-deftest efrit-hostile-text-a-narrowed-buffer-sends-the-whole-message ()
  (dolist (narrow (list (lambda () (narrow-to-region (point-min) (+ 2 (point-min))))
                        (lambda () (narrow-to-region (+ 5 efrit-transcript-box) (point-max)))))
    (efrit-viewing-with-view efrit-viewing-short
      (goto-char (point-max))
      (insert "Read the @README.md now")
      (funcall narrow)
      (efrit-attach-show)
      (efrit-reply-box-send)
      (should (eq (efrit-test-rest view-loop) 'idle))
      (efrit-viewing-in-order "Read the @README.md now" "It is a sample.")
      (should (equal "" (efrit-reply-box-text))))))

;;; Headings and tables

(ert-deftest efrit-hostile-text-of-headings-keeps-its-words ()
  (pcase-dolist (`(,text ,shown) '(("# a ## " "a") ("## a#b #" "a#b") ("# a#" "a#") ("# #" "")
                                   ("# a # b ##\t" "a # b") ("#\ta  " "a") ("### a \\#" "a #")))
    (with-temp-buffer
      (insert text "\n")
      (efrit-markdown-dress (point-min) (point-max) nil)
      (should (equal (concat shown "\n") (buffer-string))))))

(ert-deftest efrit-hostile-text-of-a-row-is-cut-at-the-right-bars ()
  (pcase-dolist (`(,row ,cells) '(("| a | b |" ("a" "b")) ("a|b" ("a" "b"))
                                  ("| `x|y` | z |" ("`x|y`" "z")) ("a \\| b | c" ("a \\| b" "c"))
                                  ("| ` | b |" ("`" "b")) ("|a|b\\|" ("a" "b\\|"))))
    (should (equal cells (efrit-markdown--cells row)))))

;;; Other machines

(ert-deftest efrit-hostile-text-of-a-diff-reads-no-file-and-chooses-no-mode ()
  "Else Diff mode would fontify code as in the files that the headers name."
  (save-window-excursion
    (efrit-diff-show "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n")
    (with-current-buffer "*efrit diff*"
      (should-not diff-font-lock-syntax)
      (should-not diff-refine)
      (kill-buffer))))

(ert-deftest efrit-hostile-text-of-output-opens-no-connection ()
  (hostile-text-tests--without-connections
    (with-temp-buffer
      (insert "make[1]: Entering directory '/ssh:evil.invalid:/x'\nfoo.c:1:2: error: no\n"
              "make[1]: Entering directory '/a/../ssh:evil.invalid:/x'\nfoo.c:1:2: error: no\n"
              "/ssh:evil.invalid:/x.c:3:4: error: no\n"
              "make[1]: Entering directory '/proj/sub'\nbar.c:1:2: error: no\n")
      (efrit-result--dress-errors)
      (let ((noninteractive nil))
        (font-lock-mode))
      (compilation--ensure-parse (point-max))
      (goto-char (point-min))
      (compilation-next-error 1)
      (should (looking-at-p "foo.c"))
      (search-forward "bar.c:")
      (should (equal "/proj/sub/" (file-name-as-directory
                                   (cadar (compilation--loc->file-struct
                                           (compilation--message->loc
                                            (get-text-property (match-beginning 0)
                                                               'compilation-message))))))))))

(ert-deftest efrit-hostile-text-behind-an-at-opens-no-connection ()
  (hostile-text-tests--without-connections
    (dolist (name '("/ssh:evil.invalid:~/x" "/ssh:evil.invalid:/x" "../../../../../../ssh:evil.invalid:/x"))
      (should-not (efrit-attach-mentions (concat "@" name) efrit-test-root)))))

(ert-deftest efrit-hostile-text-of-a-tools-path-is-of-the-projects-machine ()
  (hostile-text-tests--without-connections
    (should (equal "/:/ssh:evil.invalid:/x"
                   (efrit-session-view--file "../../ssh:evil.invalid:/x" "/a/b/")))))

;;; Files

(ert-deftest efrit-hostile-text-leads-to-no-file-outside-without-a-question ()
  (efrit-viewing-with-view efrit-viewing-short
    (let* ((outside (make-temp-file "efrit-outside"))
           (asked nil)
           (use (lambda (path to)
                  (efrit-use-create :id "x" :name "read_file" :state 'done
                                    :arguments (json-encode `((path . ,path) (to . ,to)))))))
      (unwind-protect
          (save-window-excursion
            (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (push text asked) nil)))
              (should-error (efrit-session-view--visit (funcall use "README.md" outside))
                            :type 'user-error)
              (should (equal (list (format "Visit %s, outside of the project? " outside)) asked))
              (should-not (get-file-buffer outside))
              (should (efrit-session-view--visit (funcall use "lib/one.el" "README.md")))
              (should (equal "README.md" (file-name-nondirectory buffer-file-name)))
              (kill-buffer)
              (should-not (cdr asked))))
        (delete-file outside)))))

(ert-deftest efrit-hostile-text-opens-no-pipe-that-was-a-file ()
  (let ((pipe (make-temp-name (expand-file-name "efrit-pipe" temporary-file-directory))))
    (call-process "mkfifo" nil nil nil pipe)
    (unwind-protect
        (should-error (efrit-markdown-visit (list pipe 1 nil)) :type 'user-error)
      (delete-file pipe))))

;;; Addresses

(ert-deftest efrit-hostile-text-hides-no-host-behind-the-beginning-of-another ()
  (dolist (text '("[https://good.org](https://good.org.evil.org/)"
                  "[https://good.org](https://good.org@evil.org/)"
                  "[good.org](https://good.org-evil.org)"
                  "[good.org:80](https://good.org:80@evil.org)"
                  "[**good.org**](https://evil.org)"
                  "[good.org​](https://evil.org)"
                  "[‮gro.doog//:sptth](https://evil.org)"
                  "[x](https://good.org/‮x)"))
    (with-temp-buffer
      (insert text "\n")
      (efrit-markdown-dress (point-min) (point-max) nil)
      (let ((link (get-text-property (1+ (point-min)) 'efrit-link)))
        (ert-info (text)
          (should-not (and (stringp link) (string-search "evil" link)))
          (should (string-search "](" (buffer-string)))))))
  (dolist (text '("[https://good.org](https://good.org/)" "[good.org/a](https://good.org/a/b)"))
    (with-temp-buffer
      (insert text "\n")
      (efrit-markdown-dress (point-min) (point-max) nil)
      (should (stringp (get-text-property (1+ (point-min)) 'efrit-link))))))

(ert-deftest efrit-hostile-text-has-an-address-opened-that-the-person-has-seen ()
  (let* ((opened nil)
         (asked nil)
         (answer nil)
         (browse-url-handlers nil)
         (browse-url-browser-function (lambda (url &rest _) (push url opened))))
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (question) (push question asked) answer)))
      (with-temp-buffer
        (insert "[the docs](https://good.org@evil.org/?q=secret) https://a.org/x\n")
        (efrit-markdown-dress (point-min) (point-max) nil)
        (goto-char (+ 3 (point-min)))
        (dolist (given '(nil t))
          (setq answer given)
          (efrit-markdown-visit (efrit-markdown-link-at (point) efrit-test-root)))
        (should (equal '("https://good.org@evil.org/?q=secret") opened))
        (should (equal (make-list 2 "Open evil.org: https://good.org@evil.org/?q=secret? ") asked))
        (search-forward "a.org")
        (efrit-markdown-visit (efrit-markdown-link-at (point) efrit-test-root))
        (should (equal "https://a.org/x" (car opened)))
        (should (= 2 (length asked)))))))

(provide 'hostile-text-tests)
;;; hostile-text-tests.el ends here
