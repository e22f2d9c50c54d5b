;;; markdown-tests.el --- Tests of how replies are shown  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a person sees of a reply in Markdown, what its keys do, what stays as
;; it is while text streams, and what hostile text can do.

;;; Code:

(require 'browse-url)
(require 'diff-mode)
(require 'sh-script)
(require 'viewing)
(require 'efrit-markdown)

(defconst efrit-markdown-tests--reply "# The *plan*

Some **bold**, `code_span` and ~~no~~. See [the docs](https://example.org/a_b).
Look at lib/one.el:2:4 and `README.md`, not at gone.el:3; a_b_c and 2*3*4 stay.

1. First **one**
   - nested
   - [x] done
> Quoted *text*

| Name | Count |
|:-----|------:|
| `a|b` | 12 |
| long **name** | 1,234 |

```elisp
(defun two (x)
  (* 2 x))
```

Then:

- item

  ```sh
  make test
  ```
```diff
--- a/x
+++ b/x
@@ -1 +1 @@
-old
+new
```
***
The end."
  "A reply with one of each.")

(defconst efrit-markdown-tests--shown "The plan

Some bold, code_span and no. See the docs.
Look at lib/one.el:2:4 and README.md, not at gone.el:3; a_b_c and 2*3*4 stay.

1. First one
   • nested
   • ☑ done
Quoted text

Name      │ Count
──────────┼──────
a|b       │    12
long name │ 1,234


(defun two (x)
  (* 2 x))


Then:

• item


make test

\n--- a/x
+++ b/x
@@ -1 +1 @@
-old
+new


The end.\n"
  "The same as it is shown.")

(defmacro efrit-markdown-tests--with (reply &rest body)
  "Run BODY in the buffer of a session that has ended with REPLY, a string.
The project has a file lib/one.el."
  (declare (indent 1) (debug (form body)))
  `(efrit-viewing-with-view (format "[[reply]]\nrepeat = 4\ntext = %s\n" (json-encode ,reply))
     (efrit-test-write "lib/one.el" "one\ntwo three\n")
     (efrit-viewing-type "Go on.")
     (should (eq (efrit-test-rest view-loop) 'idle))
     (efrit-markdown-tests--await)
     ,@body))

(defun efrit-markdown-tests--await ()
  "Wait until everything in this buffer is dressed."
  (should (efrit-test-wait-until
           (lambda () (not (text-property-not-all (point-min) (point-max)
                                                  'efrit-undressed nil))))))

(defun efrit-markdown-tests--dressed (text)
  "Return TEXT, Markdown, dressed outside of a session."
  (with-temp-buffer
    (insert text "\n")
    (let ((position (point-min)))
      (while (< position (point-max))
        (setq position (efrit-markdown-dress
                        position (efrit-markdown-block-end position (point-max) t)
                        temporary-file-directory))))
    (buffer-string)))

(defun efrit-markdown-tests--text (item)
  "Return the text of ITEM below its head."
  (buffer-substring-no-properties (efrit-item-body-start item) (efrit-item-end item)))

(defun efrit-markdown-tests--face-p (text face)
  "Return non-nil if the last TEXT above the box is in FACE, all of it."
  (save-excursion
    (efrit-viewing-to text)
    (cl-loop for place from (point) below (+ (point) (length text))
             always (memq face (ensure-list (get-text-property place 'face))))))

;;; What is shown

(ert-deftest efrit-markdown-shows-a-reply-dressed ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (efrit-viewing-shows efrit-markdown-tests--shown)
    (pcase-dolist (`(,text ,face) '(("The plan" efrit-heading-1) ("plan" italic) ("bold" bold)
                                    ("code_span" efrit-code) ("the docs" efrit-link)
                                    ("lib/one.el:2:4" efrit-link) ("README.md" efrit-link)
                                    ("Quoted" efrit-quote) ("Count" bold)
                                    ("defun" font-lock-keyword-face)
                                    ("(* 2 x))\n" efrit-code-block)
                                    ("make test" efrit-code-block)
                                    ("-old\n" diff-removed) ("+new\n" diff-added)))
      (ert-info (text)
        (should (efrit-markdown-tests--face-p text face))))
    (should-not (efrit-markdown-tests--face-p "gone.el:3" 'efrit-link))
    (should (face-attribute 'efrit-code-block :extend))
    (efrit-viewing-to "(defun")
    (should (equal "  elisp" (substring-no-properties
                              (get-text-property (1- (point)) 'line-prefix))))
    (efrit-viewing-to "Quoted")
    (should (equal "│ " (substring-no-properties (get-text-property (point) 'line-prefix))))))

(ert-deftest efrit-markdown-shows-the-source-by-v-and-the-dressed-text-again ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (efrit-viewing-to "Then:")
    (efrit-viewing-press "v")
    (efrit-viewing-shows (concat efrit-markdown-tests--reply "\n"))
    (efrit-viewing-to "```elisp")
    (efrit-viewing-press "v")
    (efrit-markdown-tests--await)
    (efrit-viewing-shows efrit-markdown-tests--shown)
    (goto-char (point-min))
    (should-error (efrit-viewing-press "v") :type 'user-error)))

(ert-deftest efrit-markdown-shows-the-source-alone-where-the-option-says-so ()
  (let ((efrit-view-markdown nil))
    (efrit-markdown-tests--with efrit-markdown-tests--reply
      (efrit-viewing-shows (concat efrit-markdown-tests--reply "\n")))))

(ert-deftest efrit-markdown-narrows-a-wide-table-to-the-window ()
  (let* ((words (string-trim (apply #'concat (make-list 30 "words "))))
         (shown (efrit-markdown-tests--dressed
                 (format "| A | B |\n|---|---|\n| x | %s |\n| y | z |" words)))
         (lines (split-string (string-trim-right shown) "\n")))
    (should (= 6 (length lines)))
    (dolist (line lines)
      (should (<= (string-width line) 79)))
    (should (equal words (mapconcat (lambda (line) (string-trim (substring line 4)))
                                    (seq-subseq lines 2 5) " ")))
    (should (equal "y │ z" (car (last lines))))))

(ert-deftest efrit-markdown-lays-out-a-table-anew-when-the-window-is-resized ()
  (let* ((words (string-trim (apply #'concat (make-list 12 "words "))))
         (row (lambda () (buffer-substring-no-properties (line-beginning-position)
                                                         (line-end-position)))))
    (efrit-markdown-tests--with (format "| A | B |\n|---|---|\n| x | %s |\n\nDone." words)
      (efrit-viewing-shows (concat "x │ " words "\n\nDone."))
      (save-window-excursion
        (set-window-buffer nil (current-buffer))
        (efrit-viewing-to "words")
        (cl-letf (((symbol-function 'efrit-markdown--columns) (lambda () 40)))
          (run-hook-with-args 'window-size-change-functions (selected-window))
          (efrit-markdown-tests--await)
          (efrit-viewing-in-order "A │ B" "x │ words" "\n  │ words" "words\n\nDone.")
          (should (looking-at-p "words"))
          (should (<= (string-width (funcall row)) 40)))
        (run-hook-with-args 'window-size-change-functions (selected-window))
        (efrit-markdown-tests--await)
        (efrit-viewing-shows (concat "x │ " words "\n\nDone."))
        (should (looking-at-p "words"))
        (should (get-text-property (point) 'read-only))))))

(ert-deftest efrit-markdown-leaves-a-table-of-too-many-columns-as-it-is ()
  (let ((table (concat (apply #'concat (make-list 40 "| a "))
                       "|\n" (apply #'concat (make-list 40 "|---")) "|\n")))
    (should (equal table (substring-no-properties
                          (efrit-markdown-tests--dressed (string-trim-right table)))))))

(ert-deftest efrit-markdown-dresses-what-comes-in-sight-of-a-resumed-session ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (dotimes (_ 3)
      (efrit-viewing-type "Go on.")
      (efrit-test-rest view-loop))
    (let ((kill-buffer-query-functions nil))
      (kill-buffer))
    (set-buffer (efrit-session-view-buffer view-loop))
    (efrit-viewing-shows "The end.")
    (save-window-excursion
      (set-window-buffer nil (current-buffer))
      (goto-char (point-max))
      (set-window-start nil (point-max))
      (efrit-test-wait-until (lambda () (null efrit-markdown--timer)))
      (efrit-viewing-in-order "# The *plan*" "The end.")
      (goto-char (point-min))
      (while (not (efrit-transcript-in-box-p))
        (forward-line 1)
        (run-hooks 'post-command-hook)))
    (efrit-markdown-tests--await)
    (efrit-viewing-in-order "You\nGo on." efrit-markdown-tests--shown "● ready")))

(ert-deftest efrit-markdown-undresses-what-is-far-out-of-sight-and-dresses-it-again ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (dotimes (_ 3)
      (efrit-viewing-type "Go on.")
      (efrit-test-rest view-loop))
    (efrit-markdown-tests--await)
    (let ((efrit-markdown--most-dressed 1)
          (first-p (lambda (text)
                     (save-excursion
                       (goto-char (point-min))
                       (search-forward "\n\n" nil nil 2)
                       (looking-at-p (regexp-quote text))))))
      (save-window-excursion
        (set-window-buffer nil (current-buffer))
        (efrit-viewing-to "Quoted text")
        (set-window-start nil (point))
        (efrit-markdown--step (current-buffer))
        (should (looking-at-p "Quoted text"))
        (should (= (point) (window-start)))
        (should (funcall first-p "# The *plan*"))
        (goto-char (point-min))
        (set-window-start nil (point-min))
        (run-hooks 'post-command-hook)
        (should (funcall first-p "The plan\n"))
        (should (efrit-test-wait-until (lambda () (null efrit-markdown--timer))))
        (efrit-viewing-to "| Name")))))

(ert-deftest efrit-markdown-fontifies-code-alike-whatever-came-before ()
  (let* ((code "(defun two (x)\n  \"Return it.\"\n  x)\n")
         (looks (lambda () (object-intervals (efrit-fontify code 'emacs-lisp-mode 1))))
         (before (funcall looks)))
    (dolist (text '("(defun one () \"no end" "#| no end" ";; a\n;; -*- read-only: t -*-"))
      (efrit-fontify text 'emacs-lisp-mode 1)
      (should (equal before (funcall looks))))))

;;; Keys

(ert-deftest efrit-markdown-copies-the-code-block-or-the-source-by-w ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (dolist (text '("(defun" "(* 2 x))"))
      (efrit-viewing-to text)
      (efrit-viewing-press "w")
      (should (equal "(defun two (x)\n  (* 2 x))\n" (car kill-ring))))
    (efrit-viewing-to "(defun")
    (forward-line -1)
    (efrit-viewing-press "w")
    (should (equal "(defun two (x)\n  (* 2 x))\n" (car kill-ring)))
    (efrit-viewing-to "make test")
    (efrit-viewing-press "w")
    (should (equal "make test\n" (car kill-ring)))
    (efrit-viewing-to "+new")
    (efrit-viewing-press "w")
    (should (equal "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n" (car kill-ring)))
    (efrit-viewing-to "Then:")
    (efrit-viewing-press "w")
    (should (equal efrit-markdown-tests--reply (car kill-ring)))))

(ert-deftest efrit-markdown-copies-a-region-as-it-is-seen-without-its-looks ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (efrit-viewing-to "Some bold")
    (copy-region-as-kill (point) (line-end-position))
    (should (equal-including-properties "Some bold, code_span and no. See the docs."
                                        (car kill-ring)))))

(ert-deftest efrit-markdown-visits-a-file-and-line-by-return ()
  (efrit-markdown-tests--with efrit-markdown-tests--reply
    (let ((view (current-buffer)))
      (pcase-dolist (`(,text ,name ,rest) '(("lib/one.el:2:4" "one.el" " three")
                                            ("README.md" "README.md" "# Sample")))
        (set-buffer view)
        (efrit-viewing-to text)
        (save-window-excursion
          (efrit-viewing-press "RET")
          (with-current-buffer (window-buffer)
            (should (equal name (buffer-name)))
            (should (equal rest (buffer-substring (point) (line-end-position)))))))
      (set-buffer view)
      (efrit-viewing-to "gone.el:3")
      (should-error (efrit-viewing-press "RET") :type 'user-error))))

(ert-deftest efrit-markdown-visits-a-place-in-a-result-by-return ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"notes.txt\" } }]
[[reply]]
text = \"Well.\"
"
    (efrit-test-write "notes.txt" "lib/one.el:2: two three\n")
    (efrit-test-write "lib/one.el" "one\ntwo three\n")
    (efrit-viewing-type "Read it.")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-to "notes.txt")
    (goto-char (efrit-item-start (efrit-item-at (point))))
    (efrit-viewing-press "TAB")
    (efrit-viewing-to "one.el:2:")
    (save-window-excursion
      (efrit-viewing-press "RET")
      (with-current-buffer (window-buffer)
        (should (equal "one.el" (buffer-name)))
        (should (looking-at-p "two three"))))))

(ert-deftest efrit-markdown-visits-the-line-of-a-match-by-return ()
  (efrit-viewing-with-view "
[[reply]]
tool = [{ name = \"search_content\", input = { pattern = \"two\" } }]
[[reply]]
text = \"Well.\"
"
    (efrit-test-write "lib/one.el" "one\ntwo three\nfour\ntwo five\n")
    (efrit-viewing-type "Search.")
    (should (eq (efrit-test-rest view-loop) 'idle))
    (efrit-viewing-to "two")
    (goto-char (efrit-item-start (efrit-item-at (point))))
    (efrit-viewing-press "TAB")
    (efrit-viewing-to "two five")
    (save-window-excursion
      (efrit-viewing-press "RET")
      (with-current-buffer (window-buffer)
        (should (equal "one.el" (buffer-name)))
        (should (looking-at-p "two five"))))))

(ert-deftest efrit-markdown-opens-an-address-by-the-key-alone ()
  (let* ((opened nil)
         (browse-url-handlers nil)
         (browse-url-browser-function (lambda (url &rest _) (push url opened))))
    (efrit-markdown-tests--with "[docs](https://example.org/a_b), <https://a.org/x>, \
(see https://b.org/y_z_w). ![shot](https://c.org/p.png)"
      (efrit-viewing-shows "docs, https://a.org/x, (see https://b.org/y_z_w). shot\n")
      (should-not opened)
      (efrit-viewing-to "docs")
      (should (eq 'display-local-help (key-binding (kbd "C-h ."))))
      (should (string-search "https://example.org/a_b" (help-at-pt-kbd-string)))
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (dolist (text '("docs" "https://a.org/x" "https://b.org/y_z_w" "shot"))
          (efrit-viewing-to text)
          (efrit-viewing-press "RET")))
      (should (equal '("https://example.org/a_b" "https://a.org/x" "https://b.org/y_z_w"
                       "https://c.org/p.png")
                     (nreverse opened))))))

;;; Streaming

(defun efrit-markdown-tests--stream (loop text sizes check)
  "Stream TEXT into this buffer of LOOP in pieces of SIZES, again and again.
Call CHECK after each piece, once what can be dressed is dressed; then end
the text, and return its item."
  (let ((block (efrit-block-create :type "text"))
        (start 0)
        item)
    (efrit-view-observe loop (list 'begin block))
    (while (< start (length text))
      (let* ((size (pop sizes))
             (piece (substring text start (min (length text) (+ start size)))))
        (setq sizes (append sizes (list size))
              start (+ start size))
        (push piece (efrit-block-pieces block))
        (efrit-view-observe loop (list 'piece block piece))
        (setq item (alist-get block efrit-view--streaming-items))
        (while efrit-markdown--items
          (efrit-markdown--step (current-buffer)))
        (funcall check item)))
    (efrit-view-observe loop (list 'end block))
    (while efrit-markdown--items
      (efrit-markdown--step (current-buffer)))
    item))

(ert-deftest efrit-markdown-shows-the-same-however-a-reply-is-cut-into-pieces ()
  (efrit-viewing-with-view efrit-viewing-short
    (efrit-test-write "lib/one.el" "one\ntwo three\n")
    (dolist (sizes '((1) (7) (1 60 2) (100000)))
      (ert-info ((format "pieces of %s" sizes))
        (let ((item (efrit-markdown-tests--stream view-loop efrit-markdown-tests--reply sizes
                                                  #'ignore)))
          (should (equal efrit-markdown-tests--shown (efrit-markdown-tests--text item))))))))

(ert-deftest efrit-markdown-dresses-a-block-when-it-ends-and-not-before ()
  (efrit-viewing-with-view efrit-viewing-short
    (let ((shown nil))
      (efrit-markdown-tests--stream
       view-loop "**a**\n\n```elisp\n(b)\n```\nand **c**\n" '(1)
       (lambda (item) (push (efrit-markdown-tests--text item) shown)))
      (dolist (text '("**a**\n\n" "a\n\n\n" "a\n\n```elisp\n(b)\n``\n" "a\n\n\n(b)\n\n\n"
                      "a\n\n\n(b)\n\nand **c**\n"))
        (should (member text shown)))
      (should-not (seq-some (lambda (text) (string-match-p "\\`a\n\n[^`\n]*(b\n" text)) shown)))))

(ert-deftest efrit-markdown-moves-no-point-while-a-reply-is-dressed ()
  "A point stays at its character, also in a block that is being dressed."
  (efrit-viewing-with-view efrit-viewing-short
    (let ((places nil)
          (block (efrit-block-create :type "text")))
      (efrit-view-observe view-loop (list 'begin block))
      (push efrit-markdown-tests--reply (efrit-block-pieces block))
      (efrit-view-observe view-loop (list 'piece block efrit-markdown-tests--reply))
      (dolist (text '("plan" "bold" "docs]" "done" "Quoted" "long" "1,234" "defun" "make" "+new"
                      "The end."))
        (efrit-viewing-to text)
        (push (cons (point-marker) text) places))
      (efrit-viewing-to "1,234")
      (efrit-view-observe view-loop (list 'end block))
      (efrit-markdown-tests--await)
      (should (looking-at-p "1,234"))
      (pcase-dolist (`(,marker . ,text) places)
        (ert-info (text)
          (goto-char marker)
          (should (looking-at-p (string-trim-right text "\\]"))))))))

(ert-deftest efrit-markdown-keeps-the-numbers-of-lines ()
  "So nothing jumps when a block is dressed, unless a wide table is narrowed."
  (let ((source (concat efrit-markdown-tests--reply "\n")))
    (should (= (cl-count ?\n source)
               (cl-count ?\n (efrit-markdown-tests--dressed efrit-markdown-tests--reply))))))

;;; Hostile text

(ert-deftest efrit-markdown-runs-no-function-that-a-language-names ()
  (let ((called nil))
    (cl-letf (((symbol-function 'hostile-mode) (lambda () (setq called t)))
              ((symbol-function 'kill-emacs) (lambda (&rest _) (setq called t))))
      (dolist (language '("hostile" "kill-emacs" "../../x" "eval" "shell-command" "minibuffer"
                          "fundamental" "global-auto-revert" "image" "doc-view" "so-long"))
        (should-not (efrit-markdown--mode language "x")))
      (efrit-markdown-tests--with "```hostile\n(x)\n```\n```image\n(y)\n```"
        (efrit-viewing-shows "(x)\n")
        (should-not called)))
    (should (eq 'emacs-lisp-mode (efrit-markdown--mode "elisp" "x")))
    (should (eq 'lisp-interaction-mode
                (let ((auto-mode-alist (cons '("x" . lisp-interaction-mode) auto-mode-alist)))
                  (efrit-markdown--mode "lisp-interaction" "x"))))))

(ert-deftest efrit-markdown-runs-no-hook-and-takes-no-variables-of-the-text ()
  (let* ((ran nil)
         (note (lambda () (push major-mode ran)))
         (emacs-lisp-mode-hook (list note))
         (prog-mode-hook (list note))
         (sh-mode-hook (list note))
         (sh-set-shell-hook (list note))
         (diff-mode-hook (list note))
         (change-major-mode-hook (list note))
         (after-change-major-mode-hook (list note))
         (hack-local-variables-hook (list note)))
    (dolist (buffer (buffer-list))
      (when (string-prefix-p " *efrit fontify" (buffer-name buffer))
        (kill-buffer buffer)))
    (dolist (language '("elisp" "sh" "diff"))
      (let ((shown (efrit-markdown-tests--dressed
                    (format "```%s\n# -*- eval: (setq efrit-markdown-tests--evil t) -*-\nif x\n```"
                            language))))
        (with-temp-buffer
          (setq ran nil)
          (insert shown)
          (efrit-markdown--fontify-when-loaded
           (next-single-property-change (point-min) 'efrit-undressed) (point-max))
          (should-not ran)
          (should (equal (substring-no-properties shown) (buffer-substring-no-properties
                                                          (point-min) (point-max)))))))
    (should-not (boundp 'efrit-markdown-tests--evil))))

(ert-deftest efrit-markdown-hides-no-address-behind-another-and-links-no-other-scheme ()
  (dolist (text '("[https://good.org](https://evil.org)" "[good.org](https://evil.org/good.org)"
                  "[x](javascript:alert)" "[x](file:/etc/passwd)" "[x](/etc/passwd)"
                  "[x](../../etc/passwd)" "[x](/ssh:evil.org:/x)" "[x](mailto:a)"))
    (let ((shown (efrit-markdown-tests--dressed text)))
      (should (equal (concat text "\n") (substring-no-properties shown)))
      (should (member (get-text-property 1 'efrit-link shown) '(nil "https://good.org")))))
  (dolist (path '("/etc/passwd" "/etc/passwd:1" "../../etc/passwd" "/ssh:evil.org:/x" "~/.bashrc"))
    (with-temp-buffer
      (insert path)
      (should-not (efrit-markdown-link-at (point-min) efrit-test-root)))))

(ert-deftest efrit-markdown-gives-text-no-property-that-acts ()
  (let ((shown (efrit-markdown-tests--dressed efrit-markdown-tests--reply)))
    (pcase-dolist (`(,_ ,_ ,properties) (object-intervals shown))
      (cl-loop for (name value) on properties by #'cddr
               do (should (memq name '(face efrit-link efrit-span efrit-code efrit-table
                                            efrit-undressed line-prefix wrap-prefix mouse-face
                                            follow-link help-echo display)))
               when (eq name 'display)
               do (should (eq 'space (car value)))))))

(ert-deftest efrit-markdown-loses-no-letter-of-any-text ()
  "Marks alone are removed."
  (random "markdown")
  (let ((parts ["*" "**" "_" "`" "``" "~~" "[a](b)" "![" "](" "|" "\n" "\n\n" "# " "- " "> " "1. "
                "\\" "<" "---" "|---|" "word" "漢" " " "https://x.org" "x/y.el:3" "[ ]" "\t" "***"]))
    (dotimes (_ 300)
      (let* ((text (mapconcat (lambda (_) (aref parts (random (length parts))))
                              (number-sequence 1 (1+ (random 60))) ""))
             (letters (lambda (string)
                        (replace-regexp-in-string "[^a-z0-9漢]" "" string)))
             (shown (substring-no-properties (efrit-markdown-tests--dressed text))))
        ;; The word behind a fence is shown before its line.
        (unless (string-match-p "^[ \t]*\\(?:```\\|~~~\\)" text)
          (ert-info ((format "%S is shown as %S" text shown))
            (should (equal (funcall letters text) (funcall letters shown)))))))))

(ert-deftest efrit-markdown-ends-with-any-long-text ()
  "Each of these is a trap for a regular expression, or for one that looks far."
  (dolist (part '("*" "_a" "`" "`a``" "[" "[a](" "|" "|-" "\\" "> " "- " "# " "~~a" "<https://"
                  "a/" "a." " " "\t|" "![a" "```" "1." "(" "****a"))
    (let ((text (apply #'concat (make-list (/ 18000 (length part)) part))))
      (ert-info (part)
        (should (stringp (efrit-markdown-tests--dressed text)))
        (should (stringp (efrit-markdown-tests--dressed (concat "a | b\n--|--\n" text))))))))

(provide 'markdown-tests)
;;; markdown-tests.el ends here
