;;; context-tests.el --- What goes with a message, and where it works  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the scripted model is sent beside the person's own words.

;;; Code:

(require 'scripted)
(require 'efrit-context)

(defconst efrit-context-tests--script "
[[reply]]
text = \"One.\"

[[reply]]
text = \"Two.\"

[[reply]]
text = \"Three.\"
"
  "A model with three things to say.")

(defmacro efrit-context-tests--with-model (files &rest body)
  "Run BODY in a project with FILES, with a model that has three replies."
  (declare (indent 1))
  `(efrit-test-with-project ,files
     (efrit-test-with-model efrit-context-tests--script
       ,@body)))

(defun efrit-context-tests--said ()
  "Return the texts of the person in the last request, in order."
  (let ((body (gethash "body" (car (last (efrit-test-sent))))))
    (cl-loop for message across (gethash "messages" body)
             when (equal "user" (gethash "role" message))
             append (cl-loop for block across (gethash "content" message)
                             when (equal "text" (gethash "type" block))
                             collect (gethash "text" block)))))

(defun efrit-context-tests--requests-used (loop)
  "Return how many tokens the person's tier has in LOOP."
  (plist-get (plist-get (plist-get (efrit-loop-budget loop) :tiers) :user_message) :used))

;;; Instructions

(ert-deftest efrit-context-instructions-go-once-and-are-counted ()
  "The project's file goes before the first message alone, in the person's tier."
  (efrit-context-tests--with-model
      (list (cons "AGENTS.md" (apply #'concat "Use tabs.\n" (make-list 300 "Be brief. "))))
    (let ((loop (efrit-test-loop)))
      (efrit-test-finish loop "First.")
      (should (> (efrit-context-tests--requests-used loop) 500))
      (efrit-test-finish loop "Second.")
      (let ((said (efrit-context-tests--said)))
        (should (= 1 (cl-count-if (lambda (text) (string-match-p "Use tabs" text)) said)))
        (should (string-prefix-p "[Instructions of the project, from AGENTS.md:]"
                                 (car said)))
        (should (equal '("First." "Second.") (cdr said)))))))

(ert-deftest efrit-context-instructions-go-once-with-two-messages-at-once ()
  "What is said before the first turn began does not bring them again."
  (efrit-context-tests--with-model '(("AGENTS.md" . "Use tabs.\n"))
    (let ((loop (efrit-test-loop)))
      (efrit-do-say loop "First.")
      (efrit-test-finish loop "Second.")
      (should (= 1 (cl-count-if (lambda (text) (string-match-p "Use tabs" text))
                                (efrit-context-tests--said)))))))

(ert-deftest efrit-context-instructions-come-from-the-first-file-there-is ()
  "CLAUDE.md serves where there is no AGENTS.md; the option can say none."
  (efrit-test-with-project '(("CLAUDE.md" . "Use spaces.\n"))
    (let ((loop (efrit-test-loop)))
      (should (string-match-p "Use spaces" (car (efrit-context--instructions loop))))
      (make-directory "AGENTS.md")
      (should (string-match-p "Use spaces" (car (efrit-context--instructions loop))))
      (let ((efrit-instruction-files nil))
        (should-not (efrit-context--instructions loop))))))

(ert-deftest efrit-context-long-instructions-fit-their-tier ()
  "A file of a megabyte, with raw bytes in it, is cut to what the tier has."
  (efrit-context-tests--with-model nil
    (let ((coding-system-for-write 'binary))
      (write-region (apply #'concat "\377 Use tabs.\n" (make-list 100000 "Be brief. "))
                    nil (expand-file-name "AGENTS.md") nil 'quiet))
    (let ((loop (efrit-test-loop)))
      (efrit-test-finish loop "First.")
      (should (<= (efrit-context-tests--requests-used loop) 10000))
      (should (equal "First." (car (last (efrit-context-tests--said)))))
      (should (string-match-p "Use tabs" (car (efrit-context-tests--said)))))))

(ert-deftest efrit-context-a-resumed-session-has-its-instructions-already ()
  "They are not sent again after a resume."
  (efrit-context-tests--with-model '(("AGENTS.md" . "Use tabs.\n"))
    (let ((loop (efrit-test-loop)))
      (efrit-test-finish loop "First.")
      (efrit-do-forget loop)
      (let ((again (efrit-do-resume-loop (efrit-loop-id loop) efrit-test-project)))
        (efrit-test-finish again "Second.")
        (should (= 1 (cl-count-if (lambda (text) (string-match-p "Use tabs" text))
                                  (efrit-context-tests--said))))))))

(ert-deftest efrit-context-a-session-resumed-before-its-first-message-gets-them ()
  "A session in which nothing was said yet has no instructions before its resume."
  (efrit-test-with-project '(("AGENTS.md" . "Use tabs.\n"))
    (let ((id (efrit-session-open efrit-test-project)))
      (should (efrit-context--instructions (efrit-do-resume-loop id efrit-test-project))))))

;;; Region and buffer

(ert-deftest efrit-context-the-region-and-the-place-go-with-one-message ()
  "The selected lines and where the person is are sent once, numbers from the top."
  (efrit-context-tests--with-model '(("a.txt" . "one\ntwo\nthree\nfour\n"))
    (let ((transient-mark-mode t)
          (buffer (find-file-noselect (expand-file-name "a.txt"))))
      (unwind-protect
          (with-current-buffer buffer
            (goto-char (point-min))
            (forward-line 1)
            (narrow-to-region (point) (point-max))
            (push-mark (point) t t)
            (forward-line 2)
            (backward-char)
            (let ((loop (efrit-do "First.")))
              (should (eq 'idle (efrit-test-rest loop)))
              (let ((said (string-join (efrit-context-tests--said) "|")))
                (should (string-match-p "The person is in .*a\\.txt, line 3\\." said))
                (should (string-match-p "Selected in a\\.txt, lines 2 to 3:]\ntwo\nthree|"
                                        said)))
              (deactivate-mark)
              (let ((efrit-context-buffer nil))
                (efrit-do "Second.")
                (should (eq 'idle (efrit-test-rest loop))))
              (should (equal "Second." (car (last (efrit-context-tests--said)))))
              (should (= 4 (length (efrit-context-tests--said))))))
        (kill-buffer buffer)))))

;;; Roots

(ert-deftest efrit-context-the-home-folder-is-never-taken-silently ()
  "It is asked about outside of projects, and where it is itself a project."
  (let ((default-directory (file-name-as-directory (expand-file-name "~")))
        (noninteractive nil)
        (asked 0))
    (cl-letf (((symbol-function 'read-directory-name) (lambda (&rest _) default-directory))
              ((symbol-function 'yes-or-no-p) (lambda (&rest _) (cl-incf asked) nil)))
      (should-error (efrit-do-root) :type 'user-error)
      (should (= 1 asked))
      (let ((project-find-functions (list (lambda (_) (cons 'transient default-directory)))))
        (should-error (efrit-do-root) :type 'user-error)
        (should (= 2 asked))))
    (cl-letf (((symbol-function 'read-directory-name) (lambda (&rest _) default-directory))
              ((symbol-function 'yes-or-no-p) #'always))
      (should (equal default-directory (efrit-do-root))))))

(ert-deftest efrit-context-outside-of-a-project-a-folder-is-asked-for ()
  "The folder that the person names is the root; a batch job is told to move."
  (let ((default-directory temporary-file-directory)
        (project-find-functions nil))
    (should-error (efrit-do-root) :type 'user-error)
    (let ((noninteractive nil))
      (cl-letf (((symbol-function 'read-directory-name) (lambda (&rest _) "/usr")))
        (should (equal "/usr/" (efrit-do-root)))))))

(provide 'context-tests)
;;; context-tests.el ends here
