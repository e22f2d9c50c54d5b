;;; interpreted.el --- Compile nothing to machine code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Emacs compiles to machine code what it loads, beside its work, and keeps it
;; in the home of its user.  Each test has a home of its own, so that each
;; Emacs would compile the same files anew.

;;; Code:

;; Of Emacs 28, and of later ones.
(dolist (option '(native-comp-deferred-compilation native-comp-jit-compilation))
  (set option nil))

(provide 'interpreted)
;;; interpreted.el ends here
