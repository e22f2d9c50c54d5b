;;; efrit-system.el --- The system prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A text file.  It is the same for the whole of a session: another one
;; would end an epoch.

;;; Code:

(require 'efrit)
(require 'efrit-host)
(require 'efrit-loop)
(require 'efrit-turn)
(require 'subr-x)

;;; Options

(defcustom efrit-system-file
  (expand-file-name "efrit-system.txt"
                    (file-name-directory (or load-file-name buffer-file-name)))
  "The file with the system prompt; {root} in it is the project's root."
  :group 'efrit
  :type 'file)

;;; Public

(defun efrit-system-prompt (loop)
  "Return the system prompt for LOOP."
  (with-temp-buffer
    (insert-file-contents efrit-system-file)
    (string-trim (string-replace "{root}"
                                 (directory-file-name
                                  (efrit-host-local-name (efrit-loop-root loop)))
                                 (buffer-string)))))

(setq efrit-turn-system-function #'efrit-system-prompt)

(provide 'efrit-system)
;;; efrit-system.el ends here
