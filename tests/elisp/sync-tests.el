;;; sync-tests.el --- Buffers not saved yet  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the sidecar's tools read while buffers are modified.

;;; Code:

(require 'scripted)
(require 'efrit-sync)

(defmacro efrit-sync-tests--with-buffer (loop &rest body)
  "Run BODY in a buffer that visits a.txt of a project, where LOOP is."
  (declare (indent 1))
  `(efrit-test-with-project '(("a.txt" . "as on disk\nsecond line\n"))
     (let* ((,loop (efrit-test-loop))
            (make-backup-files nil)
            (create-lockfiles nil)
            (visiting (find-file-noselect (expand-file-name "a.txt"))))
       (with-current-buffer visiting
         (unwind-protect
             (progn (ignore ,loop) ,@body)
           (when (buffer-live-p visiting)
             (with-current-buffer visiting
               (set-buffer-modified-p nil))
             (kill-buffer visiting)))))))

(defun efrit-sync-tests--call (loop &optional file)
  "Read FILE, by default a.txt, as the model would in LOOP; return the envelope."
  (efrit-test-tool (efrit-loop-id loop) "read_file" (list :path (or file "a.txt"))))

(defun efrit-sync-tests--read (loop &optional file)
  "Return the lines that the model would read in LOOP of FILE, by default a.txt.
What was read before is only named in the text, so these are the data's."
  (string-join (plist-get (plist-get (efrit-sync-tests--call loop file) :data) :lines) "\n"))

(defun efrit-sync-tests--unsaved-p (loop)
  "Return non-nil if the model would read a.txt in LOOP from its buffer."
  (eq t (plist-get (plist-get (efrit-sync-tests--call loop) :data) :unsaved)))

(defun efrit-sync-tests--insert (text)
  "Insert TEXT at the beginning of this buffer."
  (goto-char (point-min))
  (insert text))

(ert-deftest efrit-sync-a-modified-buffer-is-read-as-it-stands ()
  "The model reads the buffer's text, and that it is not saved."
  (efrit-sync-tests--with-buffer loop
    (should-not (efrit-sync-tests--unsaved-p loop))
    (efrit-sync-tests--insert "not saved yet\n")
    (efrit-sync-flush)
    (let ((text (plist-get (efrit-sync-tests--call loop) :text)))
      (should (string-match-p "(unsaved buffer)" text))
      (should (string-match-p "not saved yet" text))
      (should (string-match-p "as on disk" text)))))

(ert-deftest efrit-sync-a-change-is-told-by-itself-after-a-moment ()
  "Nobody has to flush."
  (efrit-sync-tests--with-buffer loop
    (let ((efrit-sync-delay 0.05))
      (efrit-sync-tests--insert "not saved yet\n")
      (should (efrit-test-wait-until
               (lambda () (efrit-sync-tests--unsaved-p loop)))))))

(ert-deftest efrit-sync-many-changes-are-told-at-once ()
  "Typing costs one message, not one for each character."
  (efrit-sync-tests--with-buffer loop
    (let ((sent 0))
      (cl-letf* ((send (symbol-function 'efrit-sidecar-notify))
                 ((symbol-function 'efrit-sidecar-notify)
                  (lambda (&rest arguments)
                    (cl-incf sent)
                    (apply send arguments))))
        (dotimes (_ 100)
          (insert "x"))
        (efrit-sync-flush)
        (efrit-sync-flush)
        (should (= 1 sent)))
      (should (efrit-sync-tests--unsaved-p loop)))))

(ert-deftest efrit-sync-is-withdrawn-on-save ()
  "After a save the model reads the file."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "saved now\n")
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (let ((inhibit-message t))
      (save-buffer))
    (let ((text (plist-get (efrit-sync-tests--call loop) :text)))
      (should-not (string-match-p "unsaved buffer" text))
      (should (string-match-p "saved now" text)))))

(ert-deftest efrit-sync-is-withdrawn-on-revert ()
  "After a revert the model reads the file."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "never saved\n")
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (revert-buffer t t)
    (let ((text (plist-get (efrit-sync-tests--call loop) :text)))
      (should-not (string-match-p "unsaved buffer" text))
      (should-not (string-match-p "never saved" text)))))

(ert-deftest efrit-sync-is-withdrawn-on-kill ()
  "After its buffer was killed the model reads the file."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "never saved\n")
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (let ((kill-buffer-query-functions nil)
          (buffer (current-buffer)))
      (cl-letf (((symbol-function 'kill-buffer--possibly-save) #'always)
                ((symbol-function 'yes-or-no-p) #'always))
        (with-temp-buffer
          (kill-buffer buffer)))
      (should-not (buffer-live-p buffer)))
    (should-not (efrit-sync-tests--unsaved-p loop))))

(ert-deftest efrit-sync-is-told-again-to-a-new-sidecar ()
  "A sidecar that came back knows of the buffer."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "not saved yet\n")
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (efrit-test-kill)
    (efrit-test-wait-until (lambda () (not (efrit-sidecar-process))))
    (should (efrit-test-wait-until
             (lambda () (efrit-sync-tests--unsaved-p loop))))))

(ert-deftest efrit-sync-a-tool-called-again-reads-the-buffer-still ()
  "A tool that the sidecar died under reads the buffer when it is called again."
  (efrit-sync-tests--with-buffer loop
    (efrit-test-with-model "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"a.txt\" } }]

[[reply]]
text = \"Read.\"
"
      (let ((killed nil))
        (efrit-sync-tests--insert "not saved yet\n")
        (efrit-loop-observe loop (lambda (_ event)
                                   (when (and (eq (car event) 'use) (not killed)
                                              (eq 'running (efrit-use-state (cadr event))))
                                     (setq killed (efrit-test-kill)))))
        (efrit-test-finish loop "Read it.")
        (should killed)
        (should (string-match-p "unsaved buffer" (efrit-test-sent-text)))))))

(ert-deftest efrit-sync-keeps-every-script ()
  "Text that is not ASCII comes as it is."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "Größe “naïve” 漢字 🧮👩🏽‍🚀\n")
    (efrit-sync-flush)
    (should (string-match-p "Größe “naïve” 漢字 🧮👩🏽‍🚀" (efrit-sync-tests--read loop)))))

(ert-deftest efrit-sync-raw-bytes-cost-nobody-the-rest ()
  "What no JSON can hold is replaced, and all else is told."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert (concat "before " (string (unibyte-char-to-multibyte 255))
                                      " after\n"))
    (efrit-sync-flush)
    (should (string-match-p "before \ufffd after" (efrit-sync-tests--read loop)))))

(ert-deftest efrit-sync-tells-all-of-a-narrowed-buffer ()
  "What is outside of the narrowing is in the file all the same."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "not saved yet\n")
    (narrow-to-region (point-min) (line-end-position))
    (efrit-sync-flush)
    (should (string-match-p "second line" (efrit-sync-tests--read loop)))))

(ert-deftest efrit-sync-leaves-other-projects-alone ()
  "A file of another folder is not told, though its name begins the same."
  (efrit-sync-tests--with-buffer loop
    (let ((other (concat (directory-file-name efrit-test-project) "-other/")))
      (make-directory other)
      (unwind-protect
          (with-current-buffer (find-file-noselect (expand-file-name "b.txt" other))
            (insert "of another project\n")
            (efrit-sync-flush)
            (should-not efrit-sync--told)
            (set-buffer-modified-p nil)
            (kill-buffer))
        (delete-directory other t)))))

(ert-deftest efrit-sync-a-file-that-is-not-there-yet-can-be-read ()
  "A new file is read from its buffer before it was ever saved."
  (efrit-sync-tests--with-buffer loop
    (with-current-buffer (find-file-noselect (expand-file-name "new.txt"))
      (insert "brand new\n")
      (efrit-sync-flush)
      (should (string-match-p "brand new" (efrit-sync-tests--read loop "new.txt")))
      (set-buffer-modified-p nil)
      (kill-buffer))))

(ert-deftest efrit-sync-watches-nothing-without-sessions ()
  "With the last session gone, no hook stays behind."
  (efrit-sync-tests--with-buffer loop
    (should (memq 'efrit-sync--changed (default-value 'after-change-functions)))
    (mapc #'efrit-do-forget (efrit-do-loops))
    (should-not (memq 'efrit-sync--changed (default-value 'after-change-functions)))))

(provide 'sync-tests)
;;; sync-tests.el ends here
