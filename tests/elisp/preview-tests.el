;;; preview-tests.el --- The dry run  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar and a scripted model that keeps what it is sent.

;;; Code:

(require 'scripted)
(require 'efrit-do)
(require 'efrit-view)

(defconst efrit-preview-tests--script "
[[reply]]
text = \"Done.\"

[[reply]]
text = \"Done again.\"
"
  "A model that says two things.")

(defmacro efrit-preview-tests--with-dry-run (buffer &rest body)
  "Run BODY after a dry run of a task, with its BUFFER."
  (declare (indent 1))
  `(efrit-test-with-project '(("AGENTS.md" . "Use tabs.\n"))
     (efrit-test-with-model efrit-preview-tests--script
       (save-window-excursion
         (efrit-do "Tidy the shed." t)
         (let ((,buffer (efrit-preview-tests--buffer)))
           (unwind-protect
               (progn ,@body)
             (when (buffer-live-p ,buffer)
               (kill-buffer ,buffer))))))))

(defun efrit-preview-tests--buffer ()
  "Wait for the reply to a dry run, and return its buffer."
  (let ((found (efrit-test-wait-until #'efrit-preview-tests--told)))
    (should found)
    found))

(defun efrit-preview-tests--told ()
  "Return the buffer of a dry run that waits for the person, or nil."
  (seq-find (lambda (buffer)
              (buffer-local-value 'efrit-preview--send-function buffer))
            (buffer-list)))

(defun efrit-preview-tests--requests ()
  "Return how many requests the model was sent."
  (if (file-exists-p efrit-test-requests) (length (efrit-test-sent)) 0))

(ert-deftest efrit-preview-shows-tokens-price-and-text-and-sends-nothing ()
  "The dry run tells tiers, compaction and price, and the model hears nothing."
  (efrit-preview-tests--with-dry-run buffer
    (let ((text (with-current-buffer buffer (buffer-string))))
      (dolist (regexp '("The prompt would have [0-9,]+ tokens" "system +▕█+"
                        "requests +▕" "Price: \\$0\\.[0-9]+ for the prompt"
                        "Nothing would be compacted" "Tidy the shed\\." "Use tabs\\."))
        (ert-info ((format "missing: %s in:\n%s" regexp text))
          (should (string-match-p regexp text)))))
    (should (= 0 (efrit-preview-tests--requests)))
    (should (eq 'idle (efrit-loop-state (efrit-loop-latest))))))

(ert-deftest efrit-preview-sends-what-it-showed ()
  "After a yes the message goes out once, as it was shown."
  (efrit-preview-tests--with-dry-run buffer
    (with-current-buffer buffer
      (call-interactively #'efrit-preview-send))
    (should (eq 'idle (efrit-test-rest (efrit-loop-latest))))
    (should (= 1 (efrit-preview-tests--requests)))
    (should (string-match-p "Tidy the shed" (efrit-test-sent-text)))
    (should-not (buffer-live-p buffer))))

(ert-deftest efrit-preview-drops-the-message-on-request ()
  "After a no nothing was sent, and the next message has the instructions still."
  (efrit-preview-tests--with-dry-run buffer
    (with-current-buffer buffer
      (call-interactively #'efrit-preview-drop))
    (should (= 0 (efrit-preview-tests--requests)))
    (efrit-test-finish (efrit-loop-latest) "Paint it.")
    (should (string-match-p "Use tabs" (efrit-test-sent-text)))
    (should-not (string-match-p "Tidy the shed" (efrit-test-sent-text)))))

(ert-deftest efrit-preview-commands-of-a-list-know-their-buffers ()
  "By name, in any other buffer, they say so and change nothing, here and in the lists."
  (require 'efrit-sessions)
  (require 'efrit-undo)
  (with-temp-buffer
    (insert "mine")
    (dolist (command '(efrit-preview-send efrit-preview-drop
                       efrit-sessions-refresh efrit-sessions-resume efrit-sessions-rename
                       efrit-sessions-delete efrit-sessions-purge
                       efrit-undo-view-diff efrit-undo-view-one efrit-undo-view-all))
      (ert-info ((symbol-name command))
        (should-error (call-interactively command) :type 'user-error)))
    (should (buffer-live-p (current-buffer)))
    (should (equal "mine" (buffer-string)))))

(ert-deftest efrit-preview-counts-the-tokens-of-the-turn ()
  "The tokens shown are those of the turn that follows, the client's tools too."
  (efrit-preview-tests--with-dry-run buffer
    (let ((shown (with-current-buffer buffer
                   (goto-char (point-min))
                   (re-search-forward "prompt would have \\([0-9,]+\\) tokens")
                   (string-to-number (string-replace "," "" (match-string 1)))))
          begun)
      (efrit-loop-observe (efrit-loop-latest)
                          (lambda (loop event)
                            (when (eq (car event) 'begun)
                              (setq begun (plist-get (efrit-loop-budget loop) :used)))))
      (with-current-buffer buffer
        (efrit-preview-send))
      (efrit-test-rest (efrit-loop-latest))
      (should (= shown begun)))))

(defun efrit-preview-tests--priced (loop)
  "Return the price of saying something in LOOP by a dry run; then say it."
  (efrit-preview loop (list (efrit-context-text "Tidy the shed.")) nil)
  (with-current-buffer (efrit-preview-tests--buffer)
    (goto-char (point-min))
    (re-search-forward "Price: \\$\\([0-9.]+\\) for the prompt")
    (prog1 (string-to-number (match-string 1))
      (efrit-preview-send))))

(ert-deftest efrit-preview-price-is-that-of-the-turn ()
  "The first prompt is written to the cache, the next one is mostly read from it."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-preview-tests--script
      (save-window-excursion
        (let ((loop (efrit-test-loop))
              (before 0))
          (dotimes (_ 2)
            (let ((priced (efrit-preview-tests--priced loop)))
              (should (eq 'idle (efrit-test-rest loop)))
              (let* ((all (plist-get (efrit-sidecar-request
                                      'session/status
                                      (list :session_id (efrit-loop-id loop) :price t))
                                     :dollars))
                     (cost (- all before)))
                (setq before all)
                (ert-info ((format "priced $%.4f, cost $%.4f" priced cost))
                  (should (< (* 0.8 cost) priced (* 1.1 cost))))))))))))

(ert-deftest efrit-preview-asks-by-itself-only-above-the-threshold ()
  "A small prompt goes at once, a larger one is shown first."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-preview-tests--script
      (save-window-excursion
        (let ((efrit-do-ask-above 50000))
          (efrit-do "Tidy the shed.")
          (should (efrit-test-wait-until
                   (lambda () (= 1 (efrit-preview-tests--requests)))))
          (should (eq 'idle (efrit-test-rest (efrit-loop-latest)))))
        (let ((efrit-do-ask-above 100))
          (efrit-do "Paint it.")
          (with-current-buffer (efrit-preview-tests--buffer)
            (should (= 1 (efrit-preview-tests--requests)))
            (efrit-preview-send))
          (efrit-test-wait-until (lambda () (= 2 (efrit-preview-tests--requests))))
          (should (eq 'idle (efrit-test-rest (efrit-loop-latest)))))))))

(ert-deftest efrit-preview-holds-what-is-typed-before-it-is-known ()
  "It is shown at once where the person asks for it, and sends nothing yet."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-preview-tests--script
      (save-window-excursion
        (efrit-do "Tidy the shed." t)
        (should (derived-mode-p 'efrit-preview-mode))
        (should (string-match-p "Asking" (buffer-string)))
        (should-error (efrit-preview-send) :type 'user-error)
        (kill-buffer (efrit-preview-tests--buffer))
        (should (= 0 (efrit-preview-tests--requests)))))))

(ert-deftest efrit-preview-asks-above-the-threshold-for-what-the-reply-box-says-too ()
  "And for going on.  The window that the person is in stays selected."
  (efrit-test-with-project nil
    (efrit-test-with-model efrit-preview-tests--script
      (save-window-excursion
        (let* ((loop (efrit-test-loop))
               (efrit-do-ask-above 100))
          (efrit-session-view-show loop)
          (insert "Tidy the shed.")
          (let ((here (selected-window)))
            (efrit-reply-box-send)
            (with-current-buffer (efrit-preview-tests--buffer)
              (should (eq here (selected-window)))
              (should (= 0 (efrit-preview-tests--requests)))
              (efrit-preview-send)))
          (should (eq 'idle (efrit-test-rest loop)))
          (efrit-continue loop)
          (with-current-buffer (efrit-preview-tests--buffer)
            (should (= 1 (efrit-preview-tests--requests)))
            (should (string-match-p "Continue\\." (buffer-string)))
            (efrit-preview-send))
          (should (eq 'idle (efrit-test-rest loop)))
          (should (= 2 (efrit-preview-tests--requests))))))))

(defun efrit-preview-tests--long-file (name)
  "Return a file NAME that is longer than a tool call may deliver, for a project."
  (cons name (mapconcat (lambda (n) (format "line %d of %s has some words in it\n" n name))
                        (number-sequence 1 1600) "")))

(ert-deftest efrit-preview-lists-results-to-be-compressed ()
  "Each older result that the message would compress is listed."
  (efrit-test-with-project (mapcar #'efrit-preview-tests--long-file '("one.txt" "two.txt"))
    (efrit-test-with-model "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"one.txt\" } }]

[[reply]]
tool = [{ name = \"read_file\", input = { path = \"two.txt\" } }]

[[reply]]
text = \"Read.\"
"
      (save-window-excursion
        (let* ((efrit-budget-total-target 25000)
               (efrit-budget-per-tool-default 10500)
               (loop (efrit-test-loop)))
          (efrit-test-finish loop "Read them.")
          (efrit-sidecar-request 'session/limits
                                 (list :session_id (efrit-loop-id loop)
                                       :limits '(:total 20000)))
          (efrit-preview loop (efrit-context-blocks loop "And now?") nil)
          (with-current-buffer (efrit-preview-tests--buffer)
            (ert-info ((buffer-string))
              (should (string-match-p "results? with [0-9,]+ tokens would shrink"
                                      (buffer-string)))
              (should (string-match-p "r[12] +read_file" (buffer-string))))
            (kill-buffer)))))))

(ert-deftest efrit-preview-shows-the-reason-of-a-refusal ()
  "An error of the sidecar is shown in the place of the figures."
  (efrit-test-with-project nil
    (save-window-excursion
      (let ((loop (efrit-test-loop)))
        (efrit-test-session-close (efrit-loop-id loop))
        (efrit-preview loop (list (efrit-context-text "Hello.")) 100)
        (with-current-buffer (efrit-preview-tests--buffer)
          (should (string-match-p "is closed" (buffer-string)))
          (kill-buffer))))))

(provide 'preview-tests)
;;; preview-tests.el ends here
