;;; efrit-said.el --- What was said, in a buffer of its own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A request or a reply as the sidecar stored it, or the system text and the
;; tools, as they go before every request.

;;; Code:

(require 'efrit)
(require 'efrit-export)
(require 'efrit-loop)
(require 'efrit-result)
(require 'efrit-sidecar)
(require 'seq)

;;; Public

(defun efrit-said-show (loop turn kind)
  "Show what was said in TURN of LOOP: its KIND is \"request\" or \"reply\"."
  (efrit-said--fetch
   loop 'session/transcript (format "*efrit said: %s t%d*" (efrit-loop-id loop) turn)
   (lambda (told)
     (mapconcat (lambda (entry) (efrit-export-entry entry 'markdown))
                (seq-filter (lambda (entry)
                              (and (eql (plist-get entry :turn) turn)
                                   (equal (plist-get entry :kind) kind)))
                            (plist-get told :turns))
                ""))))

(defun efrit-said-show-system (loop)
  "Show the system text and the tools of LOOP, as they were sent last."
  (efrit-said--fetch
   loop 'session/messages (format "*efrit system: %s*" (efrit-loop-id loop))
   (lambda (told)
     (concat (mapconcat (lambda (block) (plist-get block :text))
                        (plist-get told :system) "\n\n")
             "\n"
             (mapconcat #'efrit-said--tool (plist-get told :tools) "")))))

;;; Private

(defun efrit-said--tool (tool)
  "Return TOOL, a plist, as text."
  (format "\n%s\n  %s\n" (plist-get tool :name) (plist-get tool :description)))

(defun efrit-said--fetch (loop method name text)
  "Call METHOD for LOOP; show its result through TEXT in the buffer NAME."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching it from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     method (list :session_id (efrit-loop-id loop))
     :timeout nil
     :success (lambda (told) (efrit-said--fill buffer (funcall text told)))
     :error (lambda (err) (efrit-said--fill buffer (efrit-error-text err))))
    buffer))

(defun efrit-said--fill (buffer text)
  "Fill BUFFER with TEXT, if it is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (efrit-result--write text))))

(provide 'efrit-said)
;;; efrit-said.el ends here
