;;; efrit-do.el --- Begin sessions, with a preview or in batch  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Does a task: the context and the preview of a message, and sessions in batch.

;;; Code:

(require 'efrit)
(require 'efrit-anthropic)
(require 'efrit-attach)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-start)
(require 'efrit-status)
(require 'efrit-sync)
(require 'efrit-tools)
(require 'efrit-tools-buffers)
(require 'efrit-tools-build)
(require 'efrit-tools-code)
(require 'efrit-tools-web)
(require 'efrit-undo)

;;; Context of a message

;; The region, the name of the current buffer, and the project's instructions
;; are blocks of the user message: the sidecar counts them in the tier of the
;; user message, and stores a text that is too long for the tier.

(defun efrit-context-current ()
  "Return the context of a message: the person's place, and the region or buffer.
The context is a list of functions from a loop to a string or nil."
  (delq nil (list (efrit-context--place)
                  (or (efrit-context--region)
                      (and (eq efrit-context-buffer 'text)
                           (efrit-context--readable-buffer-p)
                           (efrit-context--quote (point-min) (point-max) "[All of %s:]"))))))

(defun efrit-context-blocks (loop task &optional context)
  "Return the blocks of a message to LOOP: instructions, CONTEXT, files and TASK.
The files are those that TASK, a string, names behind an @.  CONTEXT is nil or
as from `efrit-context-current'."
  (let ((texts (append (efrit-context--instructions loop)
                       (delq nil (mapcar (lambda (part) (funcall part loop)) context)))))
    (append (mapcar #'efrit-context-text texts)
            (efrit-attach-blocks loop task (append texts (list task)))
            (list (efrit-context-text task)))))

(defun efrit-context-text (text)
  "Return a block of a message with TEXT, a plist."
  (list :type "text" :text (efrit-json-replace-invalid text)))

(defun efrit-context--place ()
  "Return a function from a loop to a text with the person's place, or nil.
The function returns nil if the place is on another machine than the project."
  (when (and efrit-context-buffer (efrit-context--readable-buffer-p))
    (let ((where (efrit-context--buffer-description))
          (line (line-number-at-pos nil t))
          (unsaved (if (and buffer-file-name (buffer-modified-p)) ", not saved yet" "")))
      (lambda (loop)
        (when-let* ((where (funcall where loop)))
          (format "[The person is in %s, line %d%s.]" where line unsaved))))))

(defun efrit-context--region ()
  "Return a function from a loop to the region's text, or nil if it is inactive."
  (when (use-region-p)
    (efrit-context--quote (region-beginning) (region-end)
                          (format "[Selected in %%s, lines %d to %d:]"
                                  (line-number-at-pos (region-beginning) t)
                                  (line-number-at-pos (region-end) t)))))

(defun efrit-context--quote (begin end heading)
  "Return a function from a loop to the text from BEGIN to END, below HEADING.
%s in HEADING stands for the name of this buffer."
  (let ((where (efrit-context--buffer-description))
        (name (efrit-context--buffer-name))
        (text (buffer-substring-no-properties begin end)))
    (lambda (loop)
      (concat (format heading (or (funcall where loop) name)) "\n" text))))

(defun efrit-context--readable-buffer-p ()
  "Return non-nil unless this buffer is internal or one of efrit's own."
  (not (or (minibufferp)
           (string-prefix-p " " (buffer-name))
           (string-prefix-p "efrit-" (symbol-name major-mode)))))

(defun efrit-context--buffer-description ()
  "Return a function from a loop to the name of this buffer for the model.
For a buffer with a file, it returns a file name that tools can open, or nil if
the file is on another machine than the project."
  (let ((file (and buffer-file-name (expand-file-name buffer-file-name)))
        (buffer (format "%s (%s)" (efrit-context--buffer-name) major-mode)))
    (lambda (loop)
      (let ((root (efrit-loop-root loop)))
        (cond ((null file) buffer)
              ((not (equal (file-remote-p file) (file-remote-p root))) nil)
              (t (efrit-permissions-visible (if (string-prefix-p root file)
                                                (file-relative-name file root)
                                              (file-local-name file))
                                            t)))))))

(defun efrit-context--buffer-name ()
  "Return the name of this buffer for a message, on one line.
A name with a line break could pass for words of the person."
  (format "the buffer %s" (efrit-permissions-visible (buffer-name) t)))

(defun efrit-context--instructions (loop)
  "Return a list of one string, the project's instructions, or nil for none.
Return nil as well if LOOP already has a message."
  (unless (or (efrit-loop-messages loop) (efrit-loop-queue loop)
              (> (efrit-loop-turn loop) 0))
    (when-let* ((file (efrit-context--instruction-file loop)))
      (list (format "[Instructions of the project, from %s:]\n%s"
                    (file-name-nondirectory file) (efrit-context--beginning file))))))

(defun efrit-context--instruction-file (loop)
  "Return the first file of instructions that LOOP may send, or nil.
Notify the observers of LOOP of each earlier file that may not be sent."
  (let ((root (file-truename (efrit-loop-root loop))))
    (seq-find (lambda (file)
                (when (file-regular-p (file-truename file))
                  (let ((problem (efrit-context--link-problem root file)))
                    (efrit-loop-note-once loop problem)
                    (and (null problem) (file-readable-p file)))))
              (mapcar (lambda (name) (expand-file-name name root)) efrit-instruction-files))))

(defun efrit-context--link-problem (root file)
  "Return why FILE may not be sent from the project ROOT, a sentence, or nil.
FILE could be a link to any file of the person."
  (let ((true (file-truename file))
        (name (file-name-nondirectory file)))
    (when (and (string-prefix-p root file) (not (equal true file)))
      (cond ((not (string-prefix-p root true))
             (format "%s was not sent: it is a link to a file outside of the project" name))
            ((or (efrit-visit-secret-p true)
                 (string-prefix-p (expand-file-name ".git/" root) true))
             (format "%s was not sent: it is a link to %s, which may hold secrets"
                     name (file-relative-name true root)))))))

(defun efrit-context--beginning (file)
  "Return the text of FILE, cut with a note at `efrit-instruction-most-bytes'."
  (let* ((true (file-truename file))
         (size (file-attribute-size (file-attributes true)))
         (most efrit-instruction-most-bytes))
    (with-temp-buffer
      (insert-file-contents true nil 0 most)
      (concat (buffer-string)
              (and (> size most)
                   (format "\n[cut: the first %d of %d bytes; read %s for the rest]"
                           most size (file-name-nondirectory file)))))))

;;; Commands

;; The commands a person works with.  They use the latest loop of a project; the
;; sidecar stores the loop's session, so that the session outlives this Emacs.

(declare-function project-root "project" (project))

(defun efrit-do-root ()
  "Return the root of the project here, or ask for a folder.
Ask before returning the home folder, even if it is a project."
  (when-let* ((remote (file-remote-p default-directory)))
    (efrit-remote-reach remote))
  (let ((root (or (when-let* ((project (project-current)))
                    (project-root project))
                  (efrit-do--ask-for-root))))
    (efrit-do--check-home root)
    (file-name-as-directory (expand-file-name root))))

(defun efrit-do-make-loop (root &optional limits)
  "Open a session on ROOT, and return a new loop for it.
LIMITS is a plist of the budget's limits; nil: those of the options."
  (efrit-do--register-loop
   (efrit-loop-make (efrit-session-open root (or limits (efrit-limits)) (efrit-limits-denied))
                    root)))

(defun efrit-do-resume-loop (id root)
  "Resume the session ID on ROOT, and return a loop for it."
  (if-let* ((loop (efrit-loop-of-session id)))
      (efrit-loop-add loop)
    (efrit-session-resume id (efrit-host-of-folder root))
    (let ((loop (efrit-do--register-loop (efrit-loop-make id root))))
      (setf (efrit-loop-stale loop) t)
      (efrit-do--load-status loop)
      (efrit-undo-delete-leftovers loop)
      loop)))

(defun efrit-do-forget (loop)
  "Stop LOOP and remove it from this Emacs; its session stays in the sidecar."
  (efrit-loop-stop loop)
  (efrit-loop-remove loop)
  (efrit-sync-update))

(defun efrit-do-say (loop task &optional context)
  "Queue the message TASK, a string, in LOOP.
CONTEXT is as from `efrit-context-current'."
  (efrit-loop-say loop (efrit-context-blocks loop task context)))

(defun efrit-do-submit (loop task &optional context dry)
  "Queue the message TASK in LOOP, after a preview if one is due.
A preview is due if DRY is non-nil, or if the prompt is above the option
`efrit-do-ask-above'.  CONTEXT is as from `efrit-context-current'."
  (if (or dry efrit-do-ask-above)
      (efrit-preview loop (efrit-context-blocks loop task context)
                     (and (not dry) efrit-do-ask-above))
    (efrit-do-say loop task context)))

;;;###autoload
(defun efrit-do-task (task &optional dry)
  "Have the model do TASK in the project here, and return the loop.
With an active region, the region is context.  If DRY is non-nil, show first
what would be sent, and what it would cost."
  (when (string-blank-p task)
    (user-error "The task is empty"))
  (efrit-for-a-person
    (let* ((context (efrit-context-current))
           (root (efrit-do-root))
           (loop (or efrit-loop-here (efrit-loop-latest root))))
      (if loop
          (funcall efrit-do-show-function loop)
        (setq loop (efrit-do--begin root)))
      (efrit-do-submit loop task context dry)
      loop)))

;;;###autoload
(defun efrit-new ()
  "Begin another session in the project here, and show it.
The former session is kept; see `efrit-sessions'."
  (interactive)
  (efrit-for-a-person
    (efrit-do--begin (efrit-do-root))))

;;;###autoload
(defun efrit-continue (&optional loop)
  "Have LOOP, by default the loop of the project here, go on.
If a guard such as `efrit-max-dollars' asks, it asks again at double its limit."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (unless (efrit-loop-resting-p loop)
      (user-error "The session is at work: %s" (efrit-loop-state loop)))
    (when (eq (efrit-loop-state loop) 'limited)
      (efrit-do--note-answer loop nil))
    (let ((said (and (not (efrit-do--pending-p loop))
                     (list (list :type "text" :text "Continue.")))))
      (cond (efrit-do-ask-above (efrit-preview loop said efrit-do-ask-above))
            (said (efrit-loop-say loop said))
            (t (efrit-loop-go loop))))
    loop))

;;;###autoload
(defun efrit-continue-unasked (&optional loop)
  "Have LOOP, which asks whether to go on, go on without asking that again.
The next message is guarded anew."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (unless (eq (efrit-loop-state loop) 'limited)
      (user-error "The session does not ask whether to go on"))
    (efrit-do--note-answer loop t)
    (efrit-loop-go loop t)))

(defun efrit-do--note-answer (loop unasked)
  "Note that the person has LOOP go on; UNASKED is as in `efrit-loop-go'.
Do nothing if the limit was raised meanwhile."
  (when-let* ((guard (efrit-loop-guard loop)))
    (efrit-loop-notify
     loop 'note
     (concat (efrit-show-guard guard) "  You: go on"
             (if unasked ""
               (format ", ask again at %s"
                       (efrit-show-amount (car guard) (efrit-loop-next-limit guard))))))))

;;;###autoload
(defun efrit-take-options (&optional loop)
  "Have LOOP, by default the loop of the project here, use the present options.
A session copies the model, its address and key, limits and permissions when
it begins."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (efrit-loop-take-options loop)
    (efrit-loop-notify loop 'note (format "The session uses the present options, with the model %s"
                                          (efrit-loop-next-option loop 'efrit-claude-model)))))

;;;###autoload
(defun efrit-stop (&optional loop)
  "Stop LOOP, by default the loop of the project here; its session is kept."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (unless (efrit-loop-stop loop)
      (user-error "The session is not at work"))))

;;;###autoload
(defun efrit-retry (&optional loop)
  "Send the failed or waiting request of LOOP again now."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (if (efrit-loop-resting-p loop)
        (efrit-continue loop)
      (unless (efrit-loop-retry-now loop)
        (user-error "The session is at work, and no request waits to be retried")))))

(defun efrit-do--check-home (root)
  "If ROOT is the home folder and has no loop, ask whether to work in ROOT.
Signal a `user-error' if the answer is no, or in batch."
  (when (and (efrit-do--home-p root)
             (not (efrit-loop-latest root))
             (or noninteractive
                 (not (yes-or-no-p "Really work in your whole home folder? "))))
    (user-error "Run this in the folder of the project")))

(defun efrit-do--ask-for-root ()
  "Ask for the folder to work in; do not offer the home folder."
  (when noninteractive
    (user-error "%s is in no project; start in one" default-directory))
  (let* ((folder (read-directory-name "No project is here.  Work in: " nil nil t
                                      (and (efrit-do--home-p default-directory) ""))))
    (if (string-empty-p folder) default-directory folder)))

(defun efrit-do--home-p (folder)
  "Return non-nil if FOLDER is the home folder of its machine."
  (efrit-host-same-file-p folder (concat (file-remote-p folder) "~")))

(defun efrit-do--register-loop (loop)
  "Add LOOP to the loops of this Emacs, and return it."
  (efrit-loop-add loop)
  (efrit-loop-observe loop #'efrit-do--note-title)
  (efrit-sync-update)
  loop)

(defun efrit-do--load-status (loop)
  "Load the status of LOOP, a resumed one: budget, turn, todos and usage."
  (let* ((status (efrit-sidecar-request 'session/status
                                        (list :session_id (efrit-loop-id loop) :price t)))
         (budget (plist-get status :budget)))
    (setf (efrit-loop-budget loop) budget
          (efrit-loop-last-worked loop) (plist-get status :last_turn)
          (efrit-loop-turn loop) (plist-get budget :turn)
          (efrit-loop-epoch loop) (plist-get budget :epoch)
          (efrit-loop-todos loop) (plist-get status :todos))
    (efrit-loop-rename loop (plist-get status :title))
    (efrit-loop-take-usage loop status)
    (efrit-loop-count-from-here loop)))

(defun efrit-do--begin (root)
  "Open a session on ROOT, show it, and return its loop."
  (let ((loop (efrit-do-make-loop root)))
    (funcall efrit-do-show-function loop)
    (when-let* ((missing (efrit-host-missing
                          (efrit-host-at (efrit-host-of-session (efrit-loop-id loop))))))
      (efrit-loop-notify loop 'note missing))
    loop))

(defun efrit-do--pending-p (loop)
  "Return non-nil if the model of LOOP can go on without another message.
It can while a message, a result or a failed request is not answered."
  (or (efrit-loop-queue loop)
      (efrit-loop-sending loop)
      (memq (efrit-loop-state loop) '(failed limited))
      (let ((last (car (efrit-loop-messages loop))))
        (and last (or (string-prefix-p "{\"role\":\"user\"" last)
                      (string-match-p "\"type\":\"tool_use\"" last))))))

(defun efrit-do--note-title (loop event)
  "If EVENT queued the first message of LOOP, name the session after it."
  (when (and (eq (car event) 'queued) (efrit-do--first-message-p loop))
    (efrit-sidecar-request-async
     'session/rename
     (list :session_id (efrit-loop-id loop) :title (efrit-do--title (cadr event))
           :automatic t)
     :success (lambda (renamed) (efrit-loop-rename loop (plist-get renamed :title)))
     :error #'ignore)))

(defun efrit-do--first-message-p (loop)
  "Return non-nil if LOOP has only one message, the queued one."
  (not (or (efrit-loop-messages loop) (efrit-loop-sending loop)
           (> (efrit-loop-turn loop) 0) (cdr (efrit-loop-queue loop)))))

(defun efrit-do--title (blocks)
  "Return the first line of the last of BLOCKS, the person's own words."
  (let ((said (plist-get (car (last blocks)) :text)))
    (truncate-string-to-width (efrit-trim (car (split-string (efrit-trim (or said "")) "\n")))
                              80 nil nil t)))

;;; Preview

;; A preview, or dry run: the sidecar computes the tokens and the price of the
;; next prompt, and the results that would shrink for it, and stores nothing.
;; The person then sends the message or drops it.

(defvar-local efrit-preview--send-function nil
  "Function that sends the message that this buffer previews, or nil.")

;;;; The mode

(defvar efrit-preview-mode-map
  (efrit-make-keymap '(("RET" efrit-preview-send)
                       ("y" efrit-preview-send)
                       ("n" efrit-preview-drop)
                       ("q" efrit-preview-drop)))
  "Keys of `efrit-preview-mode'.")

(define-derived-mode efrit-preview-mode special-mode "Efrit-Dry-Run"
  "Major mode that shows what a message would send and cost.

\\{efrit-preview-mode-map}"
  (efrit-keep-keys)
  (setq-local word-wrap t))

(defun efrit-preview (loop blocks above)
  "Show what sending the message BLOCKS to LOOP would cost; ask whether to send.
If BLOCKS is nil, LOOP goes on without a message.  If ABOVE is a number, send
at once unless the prompt has more tokens, and do not select the window."
  (let* ((buffer (unless above (efrit-preview--begin loop)))
         (send (if blocks (lambda () (efrit-loop-say loop blocks))
                 (lambda () (efrit-loop-go loop))))
         (show (lambda (text)
                 (efrit-preview--show (or buffer (efrit-preview--notify loop)) send text))))
    (efrit-preview--ask
     loop blocks
     (lambda (told)
       (if (and above (<= (plist-get told :prompt) above))
           (funcall send)
         (funcall show (efrit-preview--text loop blocks told))))
     (lambda (err)
       (funcall show (concat "There is no preview:\n  " (efrit-error-text err) "\n"))))))

;;;; Commands

(defun efrit-preview-send ()
  "Send the message that this buffer previews, and close the preview."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (let ((send (or efrit-preview--send-function (user-error "There is nothing to send in this buffer"))))
    (setq efrit-preview--send-function nil)
    (efrit-preview--close)
    (funcall send)))

(defun efrit-preview-drop ()
  "Close this preview without sending its message."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (setq efrit-preview--send-function nil)
  (efrit-preview--close)
  (message "%s" (substitute-command-keys
                 "Nothing was sent; \\<minibuffer-local-map>\\[previous-history-element] in \
\\[efrit-do] brings the text back")))

;;;; Asking

(defun efrit-preview--ask (loop blocks success failure)
  "Call `turn/preview' for BLOCKS in LOOP, then SUCCESS or FAILURE.
Register the tools first, since they are part of the prompt."
  (efrit-loop-ask-sidecar
   loop 'tools/register
   (list :tools (efrit-tools-schemas))
   (lambda (_)
     (efrit-loop-ask-sidecar
      loop 'turn/preview (efrit-turn-params loop (append (efrit-loop-unsent loop) blocks))
      success failure))
   failure))

;;;; Showing

(defun efrit-preview--buffer (loop)
  "Return an empty preview buffer for LOOP."
  (with-current-buffer (get-buffer-create
                        (format "*efrit dry run: %s*"
                                (file-name-nondirectory
                                 (directory-file-name (efrit-loop-root loop)))))
    (efrit-preview-mode)
    (setq efrit-loop-here loop)
    (current-buffer)))

(defun efrit-preview--begin (loop)
  "Select a preview buffer for LOOP, and return it."
  (let ((buffer (efrit-preview--buffer loop)))
    (efrit-preview--fill buffer "Asking what this would send...\n")
    (pop-to-buffer buffer)))

(defun efrit-preview--notify (loop)
  "Display a preview buffer for LOOP without selecting it, and return it."
  (let ((buffer (efrit-preview--buffer loop)))
    (display-buffer buffer)
    (message "Efrit asks before it sends this: see %s" (buffer-name buffer))
    buffer))

(defun efrit-preview--show (buffer send text)
  "Show the preview TEXT in BUFFER; SEND is called if the person agrees.
If BUFFER was killed, do nothing."
  (when (buffer-live-p buffer)
    (efrit-preview--fill
     buffer
     (concat (substitute-command-keys
              "\\<efrit-preview-mode-map>Nothing was sent yet.  \\[efrit-preview-send] \
sends it, \\[efrit-preview-drop] does not.\n\n")
             text))
    (with-current-buffer buffer
      (setq efrit-preview--send-function send))))

(defun efrit-preview--close ()
  "Kill this buffer and quit its windows."
  (let ((buffer (current-buffer)))
    (quit-windows-on buffer t)
    (when (buffer-live-p buffer)
      (kill-buffer buffer))))

(defun efrit-preview--fill (buffer text)
  "Replace the text of BUFFER by TEXT, and show its beginning."
  (with-current-buffer buffer
    (efrit-set-buffer-text text)
    (dolist (window (get-buffer-window-list buffer nil t))
      (set-window-point window (point-min)))))

(defun efrit-preview--text (loop blocks told)
  "Return the preview of BLOCKS in LOOP from TOLD, the sidecar's reply."
  (let ((budget (plist-get told :budget)))
    (string-join
     (append
      (list (format "The prompt would have %s tokens."
                    (efrit-show-number (plist-get told :prompt))))
      (efrit-budget-bars-tiers budget)
      (list "" (efrit-preview--price loop (plist-get told :dollars))
            (efrit-budget-bars-error budget))
      (unless (efrit-loop-resting-p loop)
        (list "The model is at work: this goes with its next turn, which may hold more."))
      (efrit-preview--compaction told)
      (mapcar (lambda (note) (concat "Note: " note)) (plist-get told :notes))
      (and blocks (list "" "Your message:" ""))
      (mapcar (lambda (block) (or (plist-get block :text) "(the image)")) blocks)
      (list ""))
     "\n")))

(defun efrit-preview--price (loop dollars)
  "Return a line with the prices of a prompt and a reply of LOOP.
DOLLARS is a plist of the prices, from the sidecar."
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

(defun efrit-preview--compaction (told)
  "Return lines about the results that shrink, by TOLD, the sidecar's reply."
  (let ((shrinking (append (plist-get told :shrinking) nil)))
    (cond
     (shrinking
      (cons (format "Before it, %s with %s tokens would shrink to a line each:"
                    (efrit-count-text (length shrinking) "result")
                    (efrit-show-number (cl-loop for entry in shrinking
                                                sum (plist-get entry :tokens))))
            (mapcar (lambda (entry)
                      (format "  %-6s %-18s %7s"
                              (plist-get entry :handle) (plist-get entry :tool)
                              (efrit-show-tokens (plist-get entry :tokens))))
                    shrinking)))
     ((eq (plist-get told :rewritten) t)
      (list "The conversation would be sent anew; no result would shrink."))
     (t (list "Nothing would be compacted.")))))

;;; Batch

;;     "$EMACS" --batch -l efrit -f efrit-batch-do -- "task"
;;
;; Prints the reply as it streams, a line for each call of a tool, and the
;; budget at the end.  Nobody can be asked: a tool call that would need an
;; answer is denied, and a line says so.

;;;###autoload
(defun efrit-batch-do ()
  "Have the model do the task on the command line, and exit.
The exit code is 0 if the loop ends idle, 1 if it fails, 2 without a task, and
3 if a guard such as `efrit-max-dollars' stopped it: nobody is there to ask."
  (let ((task (efrit-batch--task command-line-args-left)))
    (setq command-line-args-left nil)
    (when (string-blank-p task)
      (efrit-batch--print "usage: emacs --batch -l efrit -f efrit-batch-do -- TASK\n")
      (kill-emacs 2))
    (kill-emacs
     (condition-case err
         (pcase (efrit-loop-state (efrit-batch-run task))
           ('idle 0)
           ('limited 3)
           (_ 1))
       (error (efrit-batch--print "\nefrit: %s\n" (efrit-error-text err)) 1)))))

(defun efrit-batch-run (task)
  "Have the model do TASK in the project here; print the events, return the loop."
  (efrit-batch-play (efrit-do-make-loop (efrit-do-root)) task))

(defun efrit-batch-play (loop task)
  "Have the model do TASK in LOOP; print the events, return LOOP once it rests."
  (setf (efrit-loop-rules loop) (efrit-batch--rules))
  (efrit-loop-observe loop #'efrit-batch--show)
  (efrit-do-say loop task)
  (while (not (efrit-loop-resting-p loop))
    (accept-process-output nil 0.1))
  (efrit-batch--end loop)
  loop)

(defun efrit-batch--task (arguments)
  "Return the task, a string, in ARGUMENTS, the rest of the command line.
Skip a \"--\" at the beginning of ARGUMENTS."
  (string-join (if (equal (car arguments) "--") (cdr arguments) arguments) " "))

(defun efrit-batch--rules ()
  "Return the permission rules of a session in batch.
A call that would need an answer is denied by `efrit-batch--show'."
  (let ((named (split-string (or (getenv "EFRIT_ALLOW") "") "," t "[ \t]+")))
    (mapcar (lambda (name) (list (if (equal name "all") t name) t 'allow))
            (append efrit-batch-allow named))))

(defun efrit-batch--escape-controls (text)
  "Return TEXT with its control characters escaped for a terminal.
Line breaks and tabs stay."
  (replace-regexp-in-string
   "[\0-\x08\x0b-\x1f\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
   (lambda (character)
     (let ((code (aref character 0)))
       (cond ((< code ?\s) (format "^%c" (+ code ?@)))
             ((= code ?\d) "^?")
             (t (format "\\u%04x" code)))))
   text t t))

(defun efrit-batch--print (format &rest arguments)
  "Print FORMAT with ARGUMENTS to standard output, at once."
  ;; Into a pipe, `princ' would write only when its buffer is full.
  (send-string-to-terminal
   (encode-coding-string (efrit-batch--escape-controls (apply #'format format arguments))
                         (or locale-coding-system 'utf-8-unix))))

(defun efrit-batch--show (loop event)
  "Print EVENT of LOOP; if EVENT asks the person, deny or answer at once."
  (pcase event
    (`(piece ,block ,text)
     (when (equal (efrit-block-type block) "text")
       (efrit-batch--print "%s" text)))
    (`(end ,block)
     (when (equal (efrit-block-type block) "text")
       (efrit-batch--print "\n")))
    (`(note ,text) (efrit-batch--print "— %s\n" text))
    (`(use ,use)
     (when (eq (efrit-use-state use) 'done)
       (efrit-batch--print "%s\n" (efrit-line-text use))))
    (`(ask ,use)
     (efrit-batch--print "! %s\n" (efrit-show-question use))
     (efrit-defer #'efrit-run-deny-unasked loop use))
    (`(question ,call ,question ,_)
     (efrit-batch--print "? %s\n" question)
     (efrit-tool-finish call (efrit-tool-result "Nobody is there to answer." :status 'error)))
    (`(retry ,seconds ,problem)
     (efrit-batch--print "… %s; again in %s s\n" (plist-get problem :message) seconds))
    (`(begun ,rewritten ,notes)
     (when rewritten
       (efrit-batch--print "— %s —\n" (efrit-show-rewrite (efrit-loop-rewrite-reasons loop))))
     (dolist (note notes)
       (efrit-batch--print "— %s\n" note)))
    (`(paid-anew ,loss) (efrit-batch--print "— %s\n" (efrit-show-paid-anew loss)))
    (`(failing ,use ,count) (efrit-batch--print "! %s\n" (efrit-show-failing use count)))
    (`(complete ,summary) (efrit-batch--print "✓ %s\n" summary))))

(defun efrit-batch--end (loop)
  "Print the final state of LOOP and its summary."
  (pcase (efrit-loop-state loop)
    ('failed (efrit-batch--print "\nefrit: %s\n" (efrit-loop-problem loop)))
    ('idle nil)
    ('limited (efrit-batch--print "\nefrit: stopped, as nobody is there to ask.  %s\n"
                                  (efrit-show-guard (efrit-loop-guard loop))))
    (state (efrit-batch--print "\nefrit: %s\n" (efrit-show-state state))))
  (efrit-batch--print "\n%s\n" (efrit-show-summary loop)))

(provide 'efrit-do)
;;; efrit-do.el ends here
