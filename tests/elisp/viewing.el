;;; viewing.el --- The buffer of a session, as a person would use it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A test works in the buffer of a real loop with a scripted model: it types,
;; presses keys, and looks at what is there.

;;; Code:

(require 'scripted)
(require 'efrit-view)

(defmacro efrit-viewing-with-view (script &rest body)
  "Run BODY in the buffer of a new loop, `view-loop', whose model plays SCRIPT."
  (declare (indent 1) (debug (form body)))
  `(efrit-test-with-project '(("README.md" . "# Sample\n\nA line.\n"))
     (efrit-test-with-model ,script
       (let ((view-loop (efrit-test-loop)))
         (with-current-buffer (efrit-session-view-buffer view-loop)
           (unwind-protect
               (progn ,@body)
             (efrit-loop-stop view-loop)
             (let ((kill-buffer-query-functions nil))
               ;; BODY may have left another buffer current.
               (kill-buffer (efrit-session-view-buffer view-loop)))))))))

(defun efrit-viewing-view-text ()
  "Return the text of this buffer."
  (buffer-substring-no-properties (point-min) (point-max)))

(defun efrit-viewing-shows (text)
  "Wait until TEXT is in this buffer."
  (ert-info ((format "waiting for %S in %s" text (efrit-viewing-view-text)))
    (should (efrit-test-wait-until
             (lambda () (string-search text (efrit-viewing-view-text)))))))

(defun efrit-viewing-type (text)
  "Send TEXT from the reply box."
  (goto-char (point-max))
  (insert text)
  (efrit-viewing-press "RET"))

(defun efrit-viewing-press (key)
  "Call the command that KEY, as `kbd' takes it, is bound to at point."
  (let* ((keys (kbd key))
         (command (key-binding keys t)))
    (ert-info ((format "%s is bound to %S" key command))
      (should (commandp command))
      (let ((last-command-event (aref keys (1- (length keys)))))
        (call-interactively command)))))

(defun efrit-viewing-to (text)
  "Move to the last TEXT above the reply box."
  (goto-char efrit-transcript-box)
  (should (search-backward text nil t)))

(defun efrit-viewing-count (text)
  "Return how often TEXT is in this buffer."
  (save-excursion
    (goto-char (point-min))
    (cl-loop while (search-forward text nil t) count t)))

(defun efrit-viewing-in-order (&rest texts)
  "Check that TEXTS are in this buffer, one after the other."
  (save-excursion
    (goto-char (point-min))
    (dolist (text texts)
      (ert-info ((format "looking for %S in %s" text (efrit-viewing-view-text)))
        (should (search-forward text nil t))))))

(defconst efrit-viewing-short "
[[reply]]
thinking = \"First I look at the file.\"
text = \"I will read it.\"
tool = [{ name = \"read_file\", input = { path = \"README.md\" } }]
[[reply]]
text = \"It is a sample.\"
tool = [{ name = \"session_complete\", input = { summary = \"The file was read.\" } }]
"
  "A session of two turns.")

(provide 'viewing)
;;; viewing.el ends here
