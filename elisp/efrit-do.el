;;; efrit-do.el --- Begin sessions, with a preview or in batch  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands a person starts with, what goes with a request, the preview of
;; one, and sessions in batch.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-anthropic)
(require 'efrit-backend)
(require 'efrit-edit)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-sync)
(require 'efrit-tools)
(require 'efrit-tools-buffers)
(require 'efrit-tools-build)
(require 'efrit-tools-code)
(require 'efrit-tools-web)
(require 'efrit-undo)
(require 'seq)
(require 'subr-x)

;;; Context of a message

;; The region, the buffer one is in, and the project's own instructions are
;; blocks of the person's message: the sidecar counts them in its tier and
;; stores what is too long for it.

(defun efrit-context-current ()
  "Return where the person is, and the region, for `efrit-context-blocks'.
That is a list of functions of a loop, each of which gives a string or nil."
  (delq nil (list (efrit-context--place)
                  (or (efrit-context--region)
                      (and (eq efrit-context-buffer 'text)
                           (efrit-context--readable-buffer-p)
                           (efrit-context--buffer-text))))))

(defun efrit-context-blocks (loop task &optional context)
  "Return the blocks of a message with TASK in LOOP, and CONTEXT.
CONTEXT is what `efrit-context-current' gave."
  (mapcar #'efrit-context-text
          (append (efrit-context--instructions loop)
                  (delq nil (mapcar (lambda (part) (funcall part loop)) context))
                  (list task))))

(defun efrit-context-text (text)
  "Return the block with TEXT."
  (list :type "text" :text (efrit-json-replace-invalid text)))

(defun efrit-context--place ()
  "Return a function of a loop that gives where the person is, or nil.
What is on another machine than the loop's project is not said."
  (when (and efrit-context-buffer (efrit-context--readable-buffer-p))
    (let ((where (efrit-context--buffer-description))
          (line (line-number-at-pos nil t))
          (unsaved (if (and buffer-file-name (buffer-modified-p)) ", not saved yet" "")))
      (lambda (loop)
        (when-let* ((where (funcall where loop)))
          (format "[The person is in %s, line %d%s.]" where line unsaved))))))

(defun efrit-context--region ()
  "Return a function of a loop that gives the active region, a string, or nil.
A region of a file on another machine goes with the name of its buffer."
  (when (use-region-p)
    (let ((where (efrit-context--buffer-description))
          (name (efrit-context--buffer-name))
          (lines (format "lines %d to %d"
                         (line-number-at-pos (region-beginning) t)
                         (line-number-at-pos (region-end) t)))
          (text (buffer-substring-no-properties (region-beginning) (region-end))))
      (lambda (loop)
        (format "[Selected in %s, %s:]\n%s" (or (funcall where loop) name) lines text)))))

(defun efrit-context--buffer-text ()
  "Return a function of a loop that gives the text of this buffer."
  (let ((where (efrit-context--buffer-description))
        (name (efrit-context--buffer-name))
        (text (buffer-substring-no-properties (point-min) (point-max))))
    (lambda (loop)
      (format "[All of %s:]\n%s" (or (funcall where loop) name) text))))

(defun efrit-context--readable-buffer-p ()
  "Return non-nil if this buffer is one for a person to read or write.
That is none of efrit's own, which show what the model knows."
  (not (or (minibufferp)
           (string-prefix-p " " (buffer-name))
           (string-prefix-p "efrit-" (symbol-name major-mode)))))

(defun efrit-context--buffer-description ()
  "Return a function of a loop that gives what this buffer is called, or nil.
A file's name is one by which the tools can open it: from the root on, or
whole where it is outside."
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
  "Return the project's instructions for LOOP, a list of at most one string.
They go with the first message."
  (unless (or (efrit-loop-messages loop) (efrit-loop-queue loop)
              (> (efrit-loop-turn loop) 0))
    (when-let* ((file (efrit-context--instruction-file loop)))
      (list (format "[Instructions of the project, from %s:]\n%s"
                    (file-name-nondirectory file) (efrit-context--beginning file))))))

(defun efrit-context--instruction-file (loop)
  "Return the first file of instructions that LOOP may send, or nil.
The person is told of one that may not be sent."
  (let ((root (file-truename (efrit-loop-root loop))))
    (seq-find (lambda (file)
                (when (file-regular-p (file-truename file))
                  (let ((problem (efrit-context--link-problem root file)))
                    (efrit-loop-note-once loop problem)
                    (and (null problem) (file-readable-p file)))))
              (mapcar (lambda (name) (expand-file-name name root)) efrit-instruction-files))))

(defun efrit-context--link-problem (root file)
  "Return why FILE, as a link, may not be sent from ROOT, a string, or nil.
A repository could lead to any file of the person's with it."
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
  "Return the text of FILE, or its beginning where it is too long."
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

;; The commands a person works with.  A project has one loop at a time; its
;; session lives in the sidecar and outlives this Emacs.

(defvar efrit-do-history nil
  "Messages that the person sent, latest first.")

(declare-function project-root "project" (project))

(defun efrit-do-root ()
  "Return the root of the project here; outside of one, ask for a folder.
On another machine it is a remote name.  The home folder is never taken
without asking, not even where it is a project."
  (when-let* ((remote (file-remote-p default-directory)))
    (efrit-remote-reach remote))
  (let ((root (or (when-let* ((project (project-current)))
                    (project-root project))
                  (efrit-do--ask-for-root))))
    (efrit-do--check-home root)
    (file-name-as-directory (expand-file-name root))))

(defun efrit-do-make-loop (root)
  "Open a session on ROOT, and return a new loop for it."
  (efrit-do--register-loop
   (efrit-loop-make (efrit-session-open root (efrit-limits) (efrit-limits-denied)) root)))

(defun efrit-do-resume-loop (id root)
  "Resume the session ID on ROOT, and return a loop for it."
  (if-let* ((loop (seq-find (lambda (loop) (equal (efrit-loop-id loop) id))
                            (efrit-loops))))
      (efrit-loop-add loop)
    (efrit-session-resume id (file-remote-p root))
    (let ((loop (efrit-do--register-loop (efrit-loop-make id root))))
      (efrit-loop-restore loop)
      (efrit-do--load-status loop)
      (efrit-undo-delete-leftovers loop)
      loop)))

(defun efrit-do-forget (loop)
  "Stop LOOP and let go of it; its session stays in the sidecar."
  (efrit-loop-stop loop)
  (efrit-loop-remove loop)
  (efrit-sync-update))

(defun efrit-do-remember (task)
  "Put TASK into the history of what was said, unless part of it is private.
`savehist-mode' would write it to the disk."
  (unless (let ((case-fold-search t))
            (string-match-p "<[ \t\n]*/?[ \t\n]*private" task))
    (add-to-history 'efrit-do-history task)))

(defun efrit-do-say (loop task &optional context)
  "Have the person say TASK, a string, in LOOP.
CONTEXT, which goes with it, is what `efrit-context-current' gave."
  (efrit-loop-say loop (efrit-context-blocks loop task context)))

(defun efrit-do-submit (loop task &optional context dry)
  "Have the person say TASK in LOOP, once its price was seen where that is due.
That is with DRY, and with a prompt above `efrit-do-ask-above'.  CONTEXT,
which goes with it, is what `efrit-context-current' gave."
  (if (or dry efrit-do-ask-above)
      (efrit-do--with-preview loop (efrit-context-blocks loop task context) dry)
    (efrit-do-say loop task context)))

;;;###autoload
(defun efrit-do (task &optional dry)
  "Have the model do TASK in the project here.
With an active region, the region is context.  With a prefix argument, as
DRY, show first what would be sent, and what it would cost."
  (interactive (list (efrit-do--read-task "Do: ") current-prefix-arg))
  (when (string-blank-p task)
    (user-error "There is nothing to do"))
  (efrit-for-a-person
    (let* ((context (efrit-context-current))
           (root (efrit-do-root))
           (loop (efrit-do--loop-for root)))
      (if loop
          (funcall efrit-do-show-function loop)
        (setq loop (efrit-do--begin root)))
      (efrit-do-submit loop task context dry)
      loop)))

;;;###autoload
(defun efrit-do-with-buffer (task)
  "Have the model do TASK in the project here, with the text of this buffer."
  (interactive (list (efrit-do--read-task "Do, with this buffer: ")))
  (let ((efrit-context-buffer 'text))
    (efrit-do task)))

;;;###autoload
(defun efrit-new ()
  "Begin another session in the project here, and show it.
What is said in its reply box is the first the model hears there; the
session before stays, see `efrit-sessions'."
  (interactive)
  (efrit-for-a-person
    (efrit-do--begin (efrit-do-root))))

;;;###autoload
(defun efrit-continue (&optional loop)
  "Have LOOP, by default the one of the project here, go on."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (unless (efrit-loop-resting-p loop)
      (user-error "It is at work: %s" (efrit-loop-state loop)))
    (let ((said (and (not (efrit-do--pending-p loop))
                     (list (list :type "text" :text "Continue.")))))
      (cond (efrit-do-ask-above (efrit-do--with-preview loop said nil))
            (said (efrit-loop-say loop said))
            (t (efrit-loop-go loop))))
    loop))

;;;###autoload
(defun efrit-take-options (&optional loop)
  "Have LOOP, by default the one of the project here, work by the options set now.
A session takes the model, its address and key, limits and permissions when
it begins, and keeps them."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (efrit-loop-take-options loop)
    (efrit-loop-notify loop 'note (format "It works by the options as they are set now, with %s"
                                          (efrit-loop-option loop 'efrit-claude-model)))))

;;;###autoload
(defun efrit-stop (&optional loop)
  "Stop LOOP, by default the one of the project here; nothing is lost."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (unless (efrit-loop-stop loop)
      (user-error "There is nothing to stop"))))

;;;###autoload
(defun efrit-retry (&optional loop)
  "Have LOOP try again now: what failed, or what waits before a retry."
  (interactive)
  (let ((loop (or loop (efrit-loop-current))))
    (if (efrit-loop-resting-p loop)
        (efrit-continue loop)
      (unless (efrit-loop-retry-now loop)
        (user-error "It is at work, and nothing waits to be tried again")))))

(defun efrit-do--check-home (root)
  "Ask where ROOT is the home folder; signal a `user-error' unless it is meant.
Whoever works there already is not asked again."
  (when (and (efrit-do--home-p root)
             (not (efrit-loop-latest root))
             (or noninteractive
                 (not (yes-or-no-p "Really work in your whole home folder? "))))
    (user-error "Choose a folder with the project in it")))

(defun efrit-do--ask-for-root ()
  "Ask for the folder to work in; the home folder is not taken for granted."
  (when noninteractive
    (user-error "%s is in no project; start in one" default-directory))
  (let* ((folder (read-directory-name "No project is here.  Work in: " nil nil t
                                      (and (efrit-do--home-p default-directory) ""))))
    (if (string-empty-p folder) default-directory folder)))

(defun efrit-do--home-p (folder)
  "Return non-nil if FOLDER is the home folder of its machine."
  (efrit-host-same-file-p folder (concat (file-remote-p folder) "~")))

(defun efrit-do--read-task (prompt)
  "Ask with PROMPT for what is to be done."
  (let ((task (let ((history-add-new-input nil))
                (read-string prompt nil 'efrit-do-history))))
    (unless (string-empty-p task)
      (efrit-do-remember task))
    task))

(defun efrit-do--register-loop (loop)
  "Count LOOP among those of this Emacs, and return it."
  (efrit-loop-add loop)
  (efrit-loop-observe loop #'efrit-do--note-title)
  (efrit-sync-update)
  loop)

(defun efrit-do--load-status (loop)
  "Ask how far LOOP, which was resumed, has come, and what it has cost."
  (let* ((status (efrit-sidecar-request 'session/status
                                        (list :session_id (efrit-loop-id loop) :price t)))
         (budget (plist-get status :budget)))
    (setf (efrit-loop-budget loop) budget
          (efrit-loop-since loop) (plist-get status :last_turn)
          (efrit-loop-turn loop) (plist-get budget :turn)
          (efrit-loop-epoch loop) (plist-get budget :epoch)
          (efrit-loop-todos loop) (plist-get status :todos))
    (efrit-loop-take-usage loop status)
    (plist-put (efrit-loop-counts loop) :dollars 0)))

(defun efrit-do--loop-for (root)
  "Return the loop of this buffer, or the latest on ROOT, or nil."
  (or efrit-loop-here (efrit-loop-latest root)))

(defun efrit-do--begin (root)
  "Open a session on ROOT, show it, and return its loop."
  (let ((loop (efrit-do-make-loop root)))
    (funcall efrit-do-show-function loop)
    (efrit-do--note-missing loop)
    loop))

(defun efrit-do--pending-p (loop)
  "Return non-nil if something in LOOP waits for the model without more words.
That is a request without its reply, a result not sent, or a queue."
  (or (efrit-loop-queue loop)
      (efrit-loop-sending loop)
      (memq (efrit-loop-state loop) '(failed limited))
      (let ((last (car (efrit-loop-messages loop))))
        (and last (or (string-prefix-p "{\"role\":\"user\"" last)
                      (string-match-p "\"type\":\"tool_use\"" last))))))

(defun efrit-do--with-preview (loop blocks always)
  "Say BLOCKS in LOOP once the person has seen what it would send, and agrees.
Without BLOCKS, have LOOP go on.  Unless ALWAYS, that is asked only where
the prompt would have more tokens than `efrit-do-ask-above'."
  (efrit-preview loop blocks (and (not always) efrit-do-ask-above)))

(defun efrit-do--note-missing (loop)
  "Say in LOOP which programs are missing on its machine, if any."
  (when-let* ((host (efrit-host-at (efrit-host-of-session (efrit-loop-id loop))))
              (missing (efrit-host-missing host)))
    (efrit-loop-notify loop 'note missing)))

(defun efrit-do--note-title (loop event)
  "Name the session of LOOP, when EVENT is the first message in it."
  (when (and (eq (car event) 'queued) (efrit-do--first-message-p loop))
    (efrit-sidecar-request-async
     'session/rename
     (list :session_id (efrit-loop-id loop) :title (efrit-do--title (cadr event))
           :automatic t)
     :error #'ignore)))

(defun efrit-do--first-message-p (loop)
  "Return non-nil if what the person said last in LOOP is all that was said."
  (not (or (efrit-loop-messages loop) (efrit-loop-sending loop)
           (> (efrit-loop-turn loop) 0) (cdr (efrit-loop-queue loop)))))

(defun efrit-do--title (blocks)
  "Return the first line of the person's own words in BLOCKS."
  (let ((said (plist-get (car (last blocks)) :text)))
    (truncate-string-to-width (or (car (split-string (or said "") "\n" t "[ \t]*")) "")
                              80 nil nil t)))

;;; Preview

;; A dry run: the sidecar says what the next prompt would hold, what would
;; give way for it, and what it would cost, and keeps nothing of it.  The
;; person then sends it or does not.

(defvar-local efrit-preview--send-function nil
  "Called to send what is shown here; nil where that is not known, or was done.")

;;;; The mode

(defvar efrit-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'efrit-preview-send)
    (define-key map "y" #'efrit-preview-send)
    (define-key map "n" #'efrit-preview-drop)
    (define-key map "q" #'efrit-preview-drop)
    map)
  "Keys of `efrit-preview-mode'.")

(define-derived-mode efrit-preview-mode special-mode "Efrit-Dry-Run"
  "Major mode that shows what a message would send and cost.

\\{efrit-preview-mode-map}"
  (setq-local word-wrap t))

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
         (efrit-preview--show (or buffer (efrit-preview--notify loop)) send
                              (efrit-preview--text loop blocks told))))
     (lambda (err)
       (efrit-preview--show (or buffer (efrit-preview--notify loop)) send
                            (concat "It cannot be told what this would send:\n  "
                                    (efrit-error-text err) "\n"))))))

;;;; Commands

(defun efrit-preview-send ()
  "Send what is shown here."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (let ((send (or efrit-preview--send-function (user-error "Nothing waits here to be sent"))))
    (setq efrit-preview--send-function nil)
    (efrit-preview--close)
    (funcall send)))

(defun efrit-preview-drop ()
  "Do not send what is shown here."
  (interactive nil efrit-preview-mode)
  (efrit-check-mode 'efrit-preview-mode)
  (setq efrit-preview--send-function nil)
  (efrit-preview--close)
  (message "%s" (substitute-command-keys
                 "Nothing was sent; \\<minibuffer-local-map>\\[previous-history-element] in \
\\[efrit-do] brings the text back")))

;;;; Asking

(defun efrit-preview--ask (loop blocks success failure)
  "Ask what saying BLOCKS in LOOP would send; call SUCCESS or FAILURE.
The tools are told first, since they are part of every prompt."
  (efrit-preview--call
   loop 'tools/register
   (list :tools (efrit-tools-schemas))
   (lambda (_)
     (efrit-preview--call
      loop 'turn/preview (efrit-turn-params loop (append (efrit-loop-unsent loop) blocks))
      success failure))
   failure))

(defun efrit-preview--call (loop method params success failure)
  "Call METHOD with PARAMS for the session of LOOP; then SUCCESS or FAILURE."
  (efrit-sidecar-request-async
   method (append (list :session_id (efrit-loop-id loop)) params)
   :timeout nil :success success :error failure))

;;;; Showing

(defun efrit-preview--buffer (loop)
  "Return the buffer for what LOOP would send, with nothing that waits in it."
  (with-current-buffer (get-buffer-create
                        (format "*efrit dry run: %s*"
                                (file-name-nondirectory
                                 (directory-file-name (efrit-loop-root loop)))))
    (efrit-preview-mode)
    (setq efrit-loop-here loop)
    (current-buffer)))

(defun efrit-preview--begin (loop)
  "Show the person, who asks what LOOP would send, a buffer for it."
  (let ((buffer (efrit-preview--buffer loop)))
    (efrit-preview--fill buffer "Asking what this would send...\n")
    (pop-to-buffer buffer)
    buffer))

(defun efrit-preview--notify (loop)
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
      (setq efrit-preview--send-function send))))

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

;;; Batch

;;     "$EMACS" --batch -l efrit -f efrit-batch-do -- "task"
;;
;; Prints the reply as it streams, a line for each call of a tool, and the
;; budget at the end.  Nobody can be asked: what permissions do not allow is
;; denied, and said so.

(defconst efrit-batch--no-person-reason
  "it has to be asked about, and this is a batch job with nobody to ask"
  "Why what has to be asked about is denied.")

;;;###autoload
(defun efrit-batch-do ()
  "Have the model do what stands on the command line, and exit.
The exit code is 0 when the model ended its turn or said that it is done,
1 when something failed, 2 when nothing was asked for."
  (let ((task (efrit-batch--task command-line-args-left)))
    (setq command-line-args-left nil)
    (when (string-blank-p task)
      (efrit-batch--print "usage: emacs --batch -l efrit -f efrit-batch-do -- TASK\n")
      (kill-emacs 2))
    (kill-emacs
     (condition-case err
         (if (eq (efrit-loop-state (efrit-batch-run task)) 'idle) 0 1)
       (error (efrit-batch--print "\nefrit: %s\n" (efrit-error-text err)) 1)))))

(defun efrit-batch-run (task)
  "Have the model do TASK in the project here, print it, and return the loop."
  (efrit-batch-play (efrit-do-make-loop (efrit-do-root)) task))

(defun efrit-batch-play (loop task)
  "Have the model do TASK in LOOP, print it, and return LOOP once it rests."
  (setf (efrit-loop-rules loop) (efrit-batch--rules))
  (efrit-loop-observe loop #'efrit-batch--show)
  (efrit-do-say loop task)
  (while (not (efrit-loop-resting-p loop))
    (accept-process-output nil 0.1))
  (efrit-batch--end loop)
  loop)

(defun efrit-batch--task (arguments)
  "Return the task in ARGUMENTS, those of the command line, a string.
The first may be a \"--\" that sets it apart; any other belongs to the task."
  (string-join (if (equal (car arguments) "--") (cdr arguments) arguments) " "))

(defun efrit-batch--rules ()
  "Return the permissions of a session in batch: what is allowed there.
What these and other permissions leave to be asked about is denied when it
comes to that, see `efrit-batch--show'."
  (let ((named (split-string (or (getenv "EFRIT_ALLOW") "") "," t "[ \t]+")))
    (append (mapcar (lambda (name) (list (if (equal name "all") t name) t 'allow))
                    (append efrit-batch-allow named)))))

(defun efrit-batch--escape-controls (text)
  "Return TEXT with control characters as text that a terminal does not obey.
Lines and tabs stay; what turns the direction of text around is shown, too."
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
  ;; What `princ' prints waits in a buffer where it goes into a pipe.
  (send-string-to-terminal
   (encode-coding-string (efrit-batch--escape-controls (apply #'format format arguments))
                         (or locale-coding-system 'utf-8-unix))))

(defun efrit-batch--show (loop event)
  "Print EVENT of LOOP."
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
       (efrit-batch--print "%s\n" (efrit-show-use use))))
    (`(ask ,use)
     (efrit-batch--print "! %s\n" (efrit-show-question use))
     (efrit-defer #'efrit-run-answer loop use 'deny nil efrit-batch--no-person-reason))
    (`(question ,call ,question ,_)
     (efrit-batch--print "? %s\n" question)
     (efrit-tool-finish call (efrit-tool-result "Nobody is there to answer." :status 'error)))
    (`(retry ,seconds ,problem)
     (efrit-batch--print "… %s; again in %s s\n" (plist-get problem :message) seconds))
    (`(begun ,rewritten ,notes)
     (when rewritten
       (efrit-batch--print "— older results gave way —\n"))
     (dolist (note notes)
       (efrit-batch--print "— %s\n" note)))
    (`(complete ,summary) (efrit-batch--print "✓ %s\n" summary))))

(defun efrit-batch--end (loop)
  "Print how LOOP ended, and what it cost."
  (pcase (efrit-loop-state loop)
    ('failed (efrit-batch--print "\nefrit: %s\n" (efrit-loop-problem loop)))
    ('idle nil)
    (state (efrit-batch--print "\nefrit: %s\n" (efrit-show-state state))))
  (efrit-batch--print "\n%s\n" (efrit-show-summary loop)))

(provide 'efrit-do)
;;; efrit-do.el ends here
