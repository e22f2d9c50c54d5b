;;; efrit-preview.el --- See what is sent before it is  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A dry run: the sidecar says what the next prompt would hold, what would
;; give way for it, and what it would cost, and keeps nothing of it.  The
;; person then sends it or does not.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-budget-bars)
(require 'efrit-claude)
(require 'efrit-do)
(require 'efrit-endpoint)
(require 'efrit-loop)
(require 'efrit-show)
(require 'efrit-sidecar)
(require 'efrit-turn)
(require 'seq)
(require 'subr-x)

(defvar-local efrit-preview--waits nil
  "Called to send what is shown here; nil where that is not known, or was done.")

;;; The mode

(defvar efrit-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'efrit-preview-send)
    (define-key map "y" #'efrit-preview-send)
    (define-key map "n" #'efrit-preview-drop)
    (define-key map "q" #'efrit-preview-drop)
    map)
  "Keys of `efrit-preview-mode'.")

(define-derived-mode efrit-preview-mode special-mode "Efrit-Dry-Run"
  "What a message would send and cost, before it is sent.

\\{efrit-preview-mode-map}"
  (setq-local word-wrap t))

;;; Public

(defun efrit-preview (loop blocks above)
  "Show what BLOCKS, said in LOOP, would send; the person then agrees or not.
Without BLOCKS, LOOP goes on.  With ABOVE, a number, show it only where the
prompt would have more tokens than that, without selecting its window, since
the person may be typing by then; and send it at once where not."
  (let ((buffer (unless above (efrit-preview--begin loop)))
        (send (if blocks (lambda () (efrit-loop-say loop blocks))
                (lambda () (efrit-loop-go loop)))))
    (efrit-preview--ask
     loop blocks
     (lambda (told)
       (if (and above (<= (plist-get told :prompt) above))
           (funcall send)
         (efrit-preview--show (or buffer (efrit-preview--tell loop)) send
                              (efrit-preview--text loop blocks told))))
     (lambda (err)
       (efrit-preview--show (or buffer (efrit-preview--tell loop)) send
                            (concat "It cannot be told what this would send:\n  "
                                    (efrit-error-text err) "\n"))))))

;;; Commands

(defun efrit-preview-send ()
  "Send what is shown here."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (let ((send (or efrit-preview--waits (user-error "Nothing waits here to be sent"))))
    (setq efrit-preview--waits nil)
    (efrit-preview--close)
    (funcall send)))

(defun efrit-preview-drop ()
  "Do not send what is shown here."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (setq efrit-preview--waits nil)
  (efrit-preview--close)
  (message "%s" (substitute-command-keys
                 "Nothing was sent; \\<minibuffer-local-map>\\[previous-history-element] in \
\\[efrit-do] brings the text back")))

;;; Asking

(defun efrit-preview--ask (loop blocks success failure)
  "Ask what saying BLOCKS in LOOP would send; call SUCCESS or FAILURE.
The tools are told first, since they are part of every prompt."
  (efrit-preview--call
   loop 'tools/register
   (list :tools (or (funcall efrit-turn-registered-tools) []))
   (lambda (_)
     (efrit-preview--call
      loop 'turn/preview
      `(:model ,(efrit-loop-option loop 'efrit-claude-model)
               :system ,(or (funcall efrit-turn-system-function loop) "")
               :caching ,(if (efrit-loop-with-options loop (efrit-endpoint-feature-p 'cache))
                             t :json-false)
               ,@(efrit-preview--message loop blocks))
      success failure))
   failure))

(defun efrit-preview--message (loop blocks)
  "Return the next message of LOOP, with BLOCKS last, as a parameter."
  (when-let* ((said (append (efrit-loop-unsent loop) blocks)))
    (list :user_message (vconcat said))))

(defun efrit-preview--call (loop method params success failure)
  "Call METHOD with PARAMS for the session of LOOP; then SUCCESS or FAILURE."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id loop)) params)
   :timeout nil :success success :error failure))

;;; Showing

(defun efrit-preview--buffer (loop)
  "Return the buffer for what LOOP would send, with nothing that waits in it."
  (with-current-buffer (get-buffer-create
                        (format "*efrit dry run: %s*"
                                (file-name-nondirectory
                                 (directory-file-name (efrit-loop-root loop)))))
    (efrit-preview-mode)
    (setq efrit-do-here loop)
    (current-buffer)))

(defun efrit-preview--begin (loop)
  "Show the person, who asks what LOOP would send, a buffer for it."
  (let ((buffer (efrit-preview--buffer loop)))
    (efrit-preview--fill buffer "Asking what this would send...\n")
    (pop-to-buffer buffer)
    buffer))

(defun efrit-preview--tell (loop)
  "Show a buffer for what LOOP would send to a person who did not ask."
  (let ((buffer (efrit-preview--buffer loop)))
    (display-buffer buffer)
    (message "Efrit asks before it sends this: see %s" (buffer-name buffer))
    buffer))

(defun efrit-preview--show (buffer send text)
  "Show TEXT in BUFFER, and SEND it where the person agrees.
Who has killed the buffer meanwhile has dropped it."
  (when (buffer-live-p buffer)
    (efrit-preview--fill
     buffer
     (concat (substitute-command-keys
              "\\<efrit-preview-mode-map>Nothing was sent yet.  \\[efrit-preview-send] \
sends it, \\[efrit-preview-drop] does not.\n\n")
             text))
    (with-current-buffer buffer
      (setq efrit-preview--waits send))))

(defun efrit-preview--close ()
  "Kill this buffer, and let its windows show what they showed before."
  (let ((buffer (current-buffer)))
    (quit-windows-on buffer t)
    (when (buffer-live-p buffer)
      (kill-buffer buffer))))

(defun efrit-preview--fill (buffer text)
  "Make TEXT all that there is in BUFFER."
  (with-current-buffer buffer
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (goto-char (point-min)))
    (dolist (window (get-buffer-window-list buffer nil t))
      (set-window-point window (point-min)))))

(defun efrit-preview--text (loop blocks told)
  "Return what saying BLOCKS in LOOP, or going on, would do, as the sidecar TOLD."
  (let ((budget (plist-get told :budget)))
    (string-join
     (append
      (list (format "The prompt would have %s tokens."
                    (efrit-show-number (plist-get told :prompt))))
      (efrit-budget-bars-tiers budget)
      (list "" (efrit-preview--price loop (plist-get told :dollars))
            (efrit-budget-bars-error budget))
      (efrit-preview--work loop)
      (efrit-preview--compaction told)
      (mapcar (lambda (note) (concat "Note: " note)) (plist-get told :notes))
      (and blocks (list "" "Your message:" ""))
      (mapcar (lambda (block) (plist-get block :text)) blocks)
      (list ""))
     "\n")))

(defun efrit-preview--price (loop dollars)
  "Return what the prompt and a reply of LOOP cost, DOLLARS a plist, as a line."
  (let ((prompt (plist-get dollars :prompt))
        (expired (plist-get dollars :prompt_expired))
        (reply (plist-get dollars :longest_reply)))
    (cond ((not (and (numberp prompt) (numberp expired) (numberp reply)))
           (format "The price of %s is not known." (efrit-loop-option loop 'efrit-claude-model)))
          ((< prompt expired)
           (format "Price: $%.4f for the prompt, $%.4f where the cache has expired; \
at most $%.4f for the reply." prompt expired reply))
          (t (format "Price: $%.4f for the prompt, at most $%.4f for the reply."
                     prompt reply)))))

(defun efrit-preview--work (loop)
  "Return a line about the work of LOOP, where it is at work."
  (unless (efrit-loop-resting-p loop)
    (list "The model is at work: this goes with its next turn, which may hold more.")))

(defun efrit-preview--compaction (told)
  "Return lines about what would give way, as the sidecar TOLD."
  (let ((shrinking (append (plist-get told :shrinking) nil)))
    (cond
     (shrinking
      (cons (format "Before it, %d result%s with %s tokens would shrink to a line each:"
                    (length shrinking) (if (cdr shrinking) "s" "")
                    (efrit-show-number
                     (apply #'+ (mapcar (lambda (entry) (plist-get entry :tokens))
                                        shrinking))))
            (mapcar (lambda (entry)
                      (format "  %-6s %-18s %7s"
                              (plist-get entry :handle) (plist-get entry :tool)
                              (efrit-show-tokens (plist-get entry :tokens))))
                    shrinking)))
     ((eq (plist-get told :rewritten) t)
      (list "The conversation would be sent anew; no result would shrink."))
     (t (list "Nothing would be compacted.")))))

(provide 'efrit-preview)
;;; efrit-preview.el ends here
