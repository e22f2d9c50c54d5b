;;; sync-tests.el --- Buffers not saved yet  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the sidecar's tools read while buffers are modified.

;;; Code:

(require 'scripted)
(require 'efrit-files)

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

(ert-deftest efrit-sync-a-modified-buffer-is-read-with-its-changes ()
  "The model reads the buffer's text, and that it is not saved."
  (efrit-sync-tests--with-buffer loop
    (should-not (efrit-sync-tests--unsaved-p loop))
    (efrit-sync-tests--insert "not saved yet\n")
    (efrit-sync-flush)
    (let ((text (plist-get (efrit-sync-tests--call loop) :text)))
      (should (string-match-p "(unsaved buffer)" text))
      (should (string-match-p "not saved yet" text))
      (should (string-match-p "as on disk" text)))))

(ert-deftest efrit-sync-a-change-is-sent-after-a-moment ()
  "Nobody has to flush."
  (efrit-sync-tests--with-buffer loop
    (let ((efrit-sync-delay 0.05))
      (efrit-sync-tests--insert "not saved yet\n")
      (should (efrit-test-wait-until
               (lambda () (efrit-sync-tests--unsaved-p loop)))))))

(ert-deftest efrit-sync-many-changes-are-sent-at-once ()
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

(ert-deftest efrit-sync-sends-again-to-a-new-sidecar ()
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
  "Characters that JSON cannot hold are replaced, and the rest is sent."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert (concat "before " (string (unibyte-char-to-multibyte 255))
                                      " after\n"))
    (efrit-sync-flush)
    (should (string-match-p "before \ufffd after" (efrit-sync-tests--read loop)))))

(ert-deftest efrit-sync-sends-all-of-a-narrowed-buffer ()
  "Text outside the narrowing is sent, too."
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
            (should-not efrit-sync--sent)
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
    (mapc #'efrit-do-forget (efrit-loops))
    (should-not (memq 'efrit-sync--changed (default-value 'after-change-functions)))))

;;; Long buffers

(defmacro efrit-sync-tests--with-long (loop &rest body)
  "Run BODY in a buffer that visits a.txt of a project, where LOOP is.
There are two megabytes in the buffer."
  (declare (indent 1))
  `(efrit-sync-tests--with-buffer ,loop
     (dotimes (n 40000)
       (insert (format "%d: a line of fifty characters, which is no file yet\n" n)))
     ,@body))

(defun efrit-sync-tests--begins (loop)
  "Return the first line that the model would read of a.txt in LOOP."
  (car (split-string (efrit-sync-tests--read loop) "\n")))

(ert-deftest efrit-sync-a-long-buffer-is-in-force-and-fills-no-pipe ()
  "The next call reads it, and nothing that Emacs sent is longer than a pipe takes."
  (efrit-sync-tests--with-long loop
    (let ((longest 0))
      (efrit-sync-tests--insert "Größe 🧮\n")
      (cl-letf* ((send (symbol-function 'process-send-string))
                 ((symbol-function 'process-send-string)
                  (lambda (process string)
                    (setq longest (max longest (string-bytes string)))
                    (funcall send process string))))
        (efrit-sync-flush)
        (should (equal "Größe 🧮" (efrit-sync-tests--begins loop))))
      (should (< 0 longest 65536)))))

(ert-deftest efrit-sync-a-file-for-the-sidecar-is-private-and-consumed ()
  "Nobody else can read it, and nothing of it stays."
  (efrit-sync-tests--with-long loop
    (let (modes)
      (cl-letf* ((send (symbol-function 'efrit-sidecar-request-async))
                 ((symbol-function 'efrit-sidecar-request-async)
                  (lambda (method &rest arguments)
                    (when (eq method 'buffers/sync)
                      (push (file-modes (efrit-handover--file
                                         (plist-get (car arguments) :text_file)))
                            modes))
                    (apply send method arguments))))
        (efrit-sync-flush))
      (should (equal modes '(#o600)))
      (should (= #o700 (file-modes efrit-handover--folder)))
      (should (efrit-sync-tests--unsaved-p loop))
      (should-not (directory-files efrit-handover--folder nil "[0-9]")))))

(ert-deftest efrit-sync-a-long-buffer-is-sent-before-a-tool-call-only ()
  "Who types in it does not wait; the model reads it as it stands all the same."
  (efrit-sync-tests--with-long loop
    (efrit-test-with-model "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"a.txt\", max_tokens = 300 } }]

[[reply]]
text = \"Read.\"
"
      (let ((efrit-sync-delay 0.02)
            (told 0))
        (cl-letf* ((leave (symbol-function 'efrit-handover-leave))
                   ((symbol-function 'efrit-handover-leave)
                    (lambda (buffer) (cl-incf told) (funcall leave buffer))))
          (dotimes (n 5)
            (efrit-sync-tests--insert (format "pause %d\n" n))
            (should (efrit-test-wait-until (lambda () (null efrit-sync--timer)))))
          (should (= 0 told))
          (efrit-test-finish loop "Read it.")
          (should (= 1 told))
          (should (string-match-p "pause 4" (efrit-test-sent-text))))))))

(ert-deftest efrit-sync-a-long-buffer-arrives-whole-with-any-text ()
  "Outside of a narrowing, with raw bytes and line ends as they are."
  (efrit-sync-tests--with-long loop
    (efrit-sync-tests--insert (concat "before " (string (unibyte-char-to-multibyte 255))
                                      " after\r\nand on\n"))
    (narrow-to-region (point) (point))
    (efrit-sync-flush)
    (should (string-prefix-p "before \ufffd after" (efrit-sync-tests--begins loop)))
    (should (string-match-p "39: a line" (efrit-sync-tests--read loop)))))

(ert-deftest efrit-sync-a-sidecar-that-takes-no-files-is-sent-the-text ()
  "After a refused file, texts are sent in messages."
  (efrit-sync-tests--with-long loop
    (efrit-sync-tests--insert "first\n")
    (efrit-sidecar-ensure)
    (set-file-modes efrit-handover--folder #o755)
    (unwind-protect
        (progn
          (efrit-sync-flush)
          (should (efrit-test-wait-until
                   (lambda () (equal "first" (efrit-sync-tests--begins loop)))))
          (should efrit-handover--disabled)
          (should-not (directory-files efrit-handover--folder nil "[0-9]"))
          (efrit-sync-tests--insert "second\n")
          (efrit-sync-flush)
          (should (equal "second" (efrit-sync-tests--begins loop))))
      (set-file-modes efrit-handover--folder #o700))))

(ert-deftest efrit-sync-a-folder-that-was-tidied-away-is-made-again ()
  "Long texts reach the sidecar that was told of the folder before."
  (efrit-sync-tests--with-long loop
    (efrit-sidecar-ensure)
    (delete-directory efrit-handover--folder t)
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (should-not efrit-handover--disabled)))

(ert-deftest efrit-sync-a-buffer-that-is-too-long-is-noted-once-and-withdrawn ()
  "The model reads the file then, and the person knows."
  (efrit-sync-tests--with-buffer loop
    (efrit-sync-tests--insert "not saved yet\n")
    (efrit-sync-flush)
    (should (efrit-sync-tests--unsaved-p loop))
    (let ((efrit-sync-most-characters 10)
          (said 0))
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest _)
                   (when (string-match-p "too long" (or format "")) (cl-incf said)))))
        (efrit-sync-flush)
        (efrit-sync-flush))
      (should (= 1 said))
      (should-not (efrit-sync-tests--unsaved-p loop)))))

(provide 'sync-tests)
;;; sync-tests.el ends here
