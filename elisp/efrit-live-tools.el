;;; efrit-live-tools.el --- What only Emacs knows, for the model  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; All tools that look at this Emacs and work in it.

;;; Code:

(require 'efrit-buffer-tools)
(require 'efrit-code-tools)
(require 'efrit-compile)
(require 'efrit-diagnostics)
(require 'efrit-docs-tool)
(require 'efrit-format-tool)
(require 'efrit-show-tool)
(require 'efrit-web-tools)

(provide 'efrit-live-tools)
;;; efrit-live-tools.el ends here
