;;; setup-tests.el --- A first request without a key  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The scripted model plays the vendor's endpoint, which needs a key.

;;; Code:

(require 'viewing)
(require 'auth-source)
(require 'efrit-backend)
(require 'efrit-setup)

(defconst efrit-setup-tests--script "[[reply]]\nrepeat = 2\ntext = \"It holds a line.\"\n"
  "The scenario of a model that answers when it is tried, and once more.")

(defmacro efrit-setup-tests--without-key (&rest body)
  "Run BODY in the view of a loop that has sent a message without a key.
A file of keys, `keys', does not exist yet."
  (declare (indent 0) (debug (body)))
  `(let* ((keys (make-temp-name (expand-file-name "efrit-keys-" temporary-file-directory)))
          (auth-sources (list keys))
          (auth-source-do-cache t)
          (efrit-claude-key-hosts nil)
          (efrit-endpoint--vendor "127.0.0.1"))
     (auth-source-forget-all-cached)
     (unwind-protect
         (efrit-viewing-with-view efrit-setup-tests--script
           (efrit-viewing-type "What does the README hold?")
           (efrit-viewing-shows "[run the demo]")
           ,@body)
       (when-let* ((buffer (get-file-buffer keys)))
         (kill-buffer buffer))
       (ignore-errors (delete-file keys)))))

(defun efrit-setup-tests--push (label)
  "Go to the ways on, and push the button LABEL as a person does."
  (goto-char (point-max))
  (efrit-viewing-press "C-c C-a")
  (should (looking-at-p "\\[add a key\\]"))
  (search-forward label)
  (backward-char 2)
  (efrit-viewing-press "RET"))

(ert-deftest efrit-setup-a-message-without-a-key-shows-three-ways-on ()
  (efrit-setup-tests--without-key
    (efrit-viewing-in-order "What does the README hold?" "There is no key for 127.0.0.1"
                            "● failed" "Your message is kept.  There are three ways on"
                            "[add a key]" "[use a local server]" "[run the demo]")
    (let (called)
      (cl-letf (((symbol-function 'efrit-demo) (lambda () (interactive) (setq called t))))
        (efrit-setup-tests--push "[run the demo]"))
      (should called))))

(ert-deftest efrit-setup-a-key-that-is-saved-sends-the-message ()
  (efrit-setup-tests--without-key
    (save-window-excursion
      (efrit-setup-tests--push "[add a key]")
      (with-current-buffer (get-file-buffer keys)
        (should (equal "machine 127.0.0.1 login apikey password \n" (buffer-string)))
        (should (looking-back "password " nil))
        (save-buffer)
        (should (efrit-loop-no-key view-loop))
        (insert "sk-mine")
        (save-buffer)))
    (should (= #o600 (file-modes keys)))
    (efrit-viewing-shows "It holds a line.")
    (should (eq 'idle (efrit-test-rest view-loop)))
    (efrit-viewing-in-order "What does the README hold?" "It holds a line.")
    (should (= 1 (efrit-viewing-count "What does the README hold?")))
    (should-not (string-search "three ways on" (efrit-viewing-view-text)))))

(ert-deftest efrit-setup-a-key-that-is-there-is-shown-again ()
  (let* ((keys (make-temp-file "efrit-keys-" nil nil
                               "machine a login b password c\nmachine api.anthropic.com \
login apikey password sk-old\n"))
         (auth-sources (list keys)))
    (unwind-protect
        (save-window-excursion
          (let ((efrit-claude-url "https://api.anthropic.com/v1/messages"))
            (efrit-add-key))
          (should (looking-at-p "sk-old"))
          (should-not (buffer-modified-p)))
      (kill-buffer (get-file-buffer keys))
      (delete-file keys))))

(ert-deftest efrit-setup-a-local-server-takes-the-message ()
  (efrit-setup-tests--without-key
    (let ((answers (list (string-remove-suffix "/v1/messages" efrit-claude-url)
                         "claude-haiku-4-5" "cellar" "this session and new ones"))
          (efrit-endpoint--vendor "api.anthropic.com")
          (efrit-providers nil)
          (user-init-file nil)
          (custom-file nil)
          (before (mapcar (lambda (option) (cons option (symbol-value option)))
                          efrit-loop-own-options)))
      (unwind-protect
          (save-window-excursion
            (setq efrit-claude-url "https://api.anthropic.com/v1/messages")
            (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) (pop answers)))
                      ((symbol-function 'read-string) (lambda (&rest _) (pop answers))))
              (efrit-setup-tests--push "[use a local server]"))
            (should-not answers)
            (should (string-match-p "\\`http://127\\..*/v1/chat/completions\\'" efrit-claude-url))
            (should (eq 'chat efrit-endpoint-api))
            (efrit-viewing-shows "It holds a line.")
            (should (eq 'idle (efrit-test-rest view-loop)))
            (efrit-viewing-in-order "The model is cellar/claude-haiku-4-5" "It holds a line.")
            (should (equal "claude-haiku-4-5"
                           (gethash "model" (gethash "body" (car (last (efrit-test-sent))))))))
        (kill-buffer "*efrit provider*")
        (pcase-dolist (`(,option . ,value) before)
          (set option value))))))

(ert-deftest efrit-setup-a-local-server-that-is-off-is-an-error ()
  (should-error (efrit-use-local-server "http://127.0.0.1:1/v1/messages") :type 'user-error))

(provide 'setup-tests)
;;; setup-tests.el ends here
