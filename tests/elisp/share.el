;;; share.el --- Share what there is to do with other Emacsen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Checks that take long are shared by several Emacsen: EFRIT_QUEUE in the
;; environment names a folder in which each of them notes what it takes.

;;; Code:

(defun efrit-share-take (name)
  "Return non-nil if this Emacs is the first to take NAME.
Without EFRIT_QUEUE in the environment it always is."
  (let ((queue (getenv "EFRIT_QUEUE")))
    (or (null queue)
        (condition-case nil
            (progn
              (make-directory queue t)
              (make-directory (expand-file-name (string-replace "/" "!" name) queue))
              t)
          (file-already-exists nil)))))

(provide 'share)
;;; share.el ends here
