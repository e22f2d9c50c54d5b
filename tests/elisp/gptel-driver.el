;;; gptel-driver.el --- A conversation of the real gptel with efrit's tools  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in a batch Emacs of its own, since gptel brings newer packages than the Emacs of the
;; tests has: EFRIT_GPTEL names the folder with gptel and what it needs.  A scripted model
;; is asked by Chat Completions; gptel calls the tools, and its buffer is checked.

;;; Code:

(let ((folder (getenv "EFRIT_GPTEL")))
  (dolist (package (directory-files folder t "\\`[a-z]"))
    (push package load-path)))

(defvar gptel-driver--folder (file-name-directory (or load-file-name buffer-file-name))
  "The folder of the tests.")

(push gptel-driver--folder load-path)
(push (expand-file-name "../../elisp" gptel-driver--folder) load-path)

(require 'gptel nil t)
(require 'gptel-openai nil t)
(require 'scripted)
(require 'efrit-gptel)

(setq backtrace-on-error-noninteractive nil)

(defvar gptel-log-level)
(defvar gptel-use-curl)
(defvar gptel-backend)
(defvar gptel-model)
(defvar gptel-stream)
(declare-function gptel-make-openai "ext:gptel-openai" (name &rest keys))
(declare-function gptel-mode "ext:gptel" (&optional arg))
(declare-function gptel-send "ext:gptel" (&optional arg))
(declare-function gptel--accept-tool-calls "ext:gptel" (&optional response overlay))

(defvar gptel-driver--asked 0
  "Number of the tool calls that gptel asked about.")

(defun gptel-driver--backend ()
  "Return a backend of gptel for the scripted model."
  (string-match "http://\\([^/]+\\)" efrit-claude-url)
  (gptel-make-openai "scripted" :host (match-string 1 efrit-claude-url) :protocol "http"
    :endpoint "/v1/chat/completions" :stream nil :key "none" :models '(claude-sonnet-5-5)))

(defun gptel-driver--accept (buffer)
  "Accept what gptel asks about in BUFFER."
  (with-current-buffer buffer
    (when-let* ((overlay (seq-find (lambda (overlay) (overlay-get overlay 'gptel-tool))
                                   (overlays-in (point-min) (point-max)))))
      (setq gptel-driver--asked (1+ gptel-driver--asked))
      (gptel--accept-tool-calls (overlay-get overlay 'gptel-tool) overlay))))

(let ((efrit-test-api 'chat))
  (efrit-test-with-project '(("notes.md" . "The fern is thirsty.\n"))
    (efrit-test-write "long.txt" (mapconcat (lambda (n) (format "line %d of many\n" n))
                                            (number-sequence 1 9000) ""))
    (efrit-test-with-model "
[[reply]]
tool = [
  { name = \"read_file\", input = { path = \"notes.md\" } },
  { name = \"read_file\", input = { path = \"long.txt\" } },
]
[[reply]]
expect_contains = \"continuation_token\"
tool = [ { name = \"run_command\", input = { command = \"echo watered\" } } ]
[[reply]]
expect_contains = \"watered\"
tool = [ { name = \"recall_result\", input = { handle = \"r1\" } } ]
[[reply]]
expect_contains = \"thirsty\"
text = \"The fern was watered.\"
"
      (let ((gptel-log-level nil)
            (gptel-use-curl t)
            (buffer (generate-new-buffer "chat")))
        (with-current-buffer buffer
          (setq default-directory efrit-test-project)
          (text-mode)
          (setq-local gptel-backend (gptel-driver--backend)
                      gptel-model 'claude-sonnet-5-5
                      gptel-stream nil)
          (gptel-mode 1)
          (efrit-gptel-setup)
          (insert "Water the fern.")
          (gptel-send))
        (unless (efrit-test-wait-until
                 (lambda ()
                   (gptel-driver--accept buffer)
                   (with-current-buffer buffer
                     (string-search "The fern was watered." (buffer-string))))
                 60)
          (princ (with-current-buffer buffer
                   (format "%s\n%s\n" (buffer-string) (format-mode-line header-line-format))))
          (error "The conversation did not end"))
        (with-current-buffer buffer
          (efrit-test-wait-until (lambda () (efrit-loop-budget efrit-gptel--loop)))
          (princ (json-encode
                  `((asked . ,gptel-driver--asked)
                    (gauge . ,(and (member '(:eval (efrit-gptel--gauge)) header-line-format)
                                   (efrit-gptel--gauge)))
                    (status . ,(substring-no-properties (nth 1 header-line-format)))))))
        (let ((kill-buffer-query-functions nil))
          (kill-buffer buffer))))))

;;; gptel-driver.el ends here
