;;; efrit-do.el --- Say what you want, and watch it happen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands a person works with.  A project has one loop at a time; its
;; session lives in the sidecar and outlives this Emacs.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-basic-tools)
(require 'efrit-claude)
(require 'efrit-context)
(require 'efrit-edit-tools)
(require 'efrit-eval)
(require 'efrit-garbage)
(require 'efrit-host)
(require 'efrit-limits)
(require 'efrit-live-tools)
(require 'efrit-loop)
(require 'efrit-price)
(require 'efrit-remote)
(require 'efrit-revert)
(require 'efrit-run)
(require 'efrit-session)
(require 'efrit-sync)
(require 'efrit-undo)
(require 'project)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-do-show-function #'efrit-session-view-show
  "Called with a loop to show it to the person."
  :group 'efrit
  :type 'function)

(defcustom efrit-do-ask-above nil
  "Tokens of a prompt above which `efrit-do' asks before sending; nil: never."
  :group 'efrit
  :type '(choice (const :tag "Never" nil) natnum))

(defvar efrit-do--loops nil
  "The loops of this Emacs, the latest first.")

(defvar efrit-do-history nil
  "What was said to the model, the latest first.")

(defvar-local efrit-do-here nil
  "The loop that this buffer shows, or nil.")
(put 'efrit-do-here 'permanent-local t)

;;; Public

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

(defun efrit-do-loop (&optional root)
  "Return the latest loop of this Emacs on ROOT, or on any root, or nil."
  (if root
      (seq-find (lambda (loop) (efrit-host-same-file-p (efrit-loop-root loop) root))
                efrit-do--loops)
    (car efrit-do--loops)))

(defun efrit-do-loop-here ()
  "Return the loop of this buffer, or of the project here.
Where neither has one, that is the one that a window shows, or the only one
there is; signal a `user-error' where that leaves none, or several."
  (or efrit-do-here
      (if (file-remote-p default-directory)
          (efrit-do--loop-above default-directory)
        (when-let* ((project (project-current)))
          (efrit-do-loop (project-root project))))
      (seq-find #'efrit-do-in-sight-p efrit-do--loops)
      (cond ((null efrit-do--loops)
             (user-error "No session is open in this Emacs: M-x efrit-do begins one"))
            ((cdr efrit-do--loops)
             (user-error "Several sessions are open, none of them here: go to one"))
            (t (car efrit-do--loops)))))

(defun efrit-do-in-sight-p (loop)
  "Return non-nil if LOOP is that of this buffer, or of a window in sight."
  (or (eq loop efrit-do-here)
      (seq-some (lambda (window)
                  (eq loop (buffer-local-value 'efrit-do-here (window-buffer window))))
                (efrit-do-windows-in-sight))))

(defun efrit-do-windows-in-sight ()
  "Return the windows that are on a screen.
Of the frames of a terminal, only the top one is; a daemon's own is nowhere."
  (cl-loop for frame in (frame-list)
           when (and (eq t (frame-visible-p frame))
                     (or noninteractive
                         (display-graphic-p frame)
                         (eq frame (tty-top-frame frame))))
           append (window-list frame 'no-minibuffer)))

(defun efrit-do-loops ()
  "Return the loops of this Emacs, the latest first."
  (copy-sequence efrit-do--loops))

(defun efrit-do-make-loop (root)
  "Open a session on ROOT, and return a new loop for it."
  (efrit-do--adopt
   (efrit-loop-make (efrit-session-open root (efrit-limits) (efrit-limits-denied)) root)))

(defun efrit-do-resume-loop (id root)
  "Resume the session ID on ROOT, and return a loop for it."
  (if-let* ((loop (seq-find (lambda (loop) (equal (efrit-loop-id loop) id))
                            efrit-do--loops)))
      (progn
        (setq efrit-do--loops (cons loop (delq loop efrit-do--loops)))
        loop)
    (efrit-session-resume id (file-remote-p root))
    (let ((loop (efrit-do--adopt (efrit-loop-make id root))))
      (efrit-loop-restore loop)
      (efrit-do--know loop)
      (efrit-undo-sweep loop)
      loop)))

(defun efrit-do-forget (loop)
  "Stop LOOP and let go of it; its session stays in the sidecar."
  (efrit-loop-stop loop)
  (setq efrit-do--loops (delq loop efrit-do--loops))
  (efrit-sync-update))

(defun efrit-do-remember (task)
  "Put TASK into the history of what was said, unless part of it is private.
`savehist-mode' would write it to the disk."
  (unless (let ((case-fold-search t))
            (string-match-p "<[ \t\n]*/?[ \t\n]*private" task))
    (add-to-history 'efrit-do-history task)))

(defun efrit-do-say (loop task &optional context)
  "Have the person say TASK, a string, in LOOP.
CONTEXT, which goes with it, is what `efrit-context-here' gave."
  (efrit-loop-say loop (efrit-context-blocks loop task context)))

(defun efrit-do-submit (loop task &optional context dry)
  "Have the person say TASK in LOOP, once its price was seen where that is due.
That is with DRY, and with a prompt above `efrit-do-ask-above'.  CONTEXT,
which goes with it, is what `efrit-context-here' gave."
  (if (or dry efrit-do-ask-above)
      (efrit-do--with-preview loop (efrit-context-blocks loop task context) dry)
    (efrit-do-say loop task context)))

;;; Commands

;;;###autoload
(defun efrit-do (task &optional dry)
  "Have the model do TASK in the project here.
With an active region, the region is context.  With a prefix argument, as
DRY, show first what would be sent, and what it would cost."
  (interactive (list (efrit-do--read-task "Do: ") current-prefix-arg))
  (when (string-blank-p task)
    (user-error "There is nothing to do"))
  (efrit-for-a-person
    (let* ((context (efrit-context-here))
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
  (let ((loop (or loop (efrit-do-loop-here))))
    (unless (efrit-loop-resting-p loop)
      (user-error "It is at work: %s" (efrit-loop-state loop)))
    (let ((said (and (not (efrit-do--waits-p loop))
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
  (let ((loop (or loop (efrit-do-loop-here))))
    (efrit-loop-take-options loop)
    (efrit-loop-tell loop 'note (format "It works by the options as they are set now, with %s"
                                        (efrit-loop-option loop 'efrit-claude-model)))))

;;;###autoload
(defun efrit-stop (&optional loop)
  "Stop LOOP, by default the one of the project here; nothing is lost."
  (interactive)
  (let ((loop (or loop (efrit-do-loop-here))))
    (unless (efrit-loop-stop loop)
      (user-error "There is nothing to stop"))))

;;;###autoload
(defun efrit-retry (&optional loop)
  "Have LOOP try again now: what failed, or what waits before a retry."
  (interactive)
  (let ((loop (or loop (efrit-do-loop-here))))
    (if (efrit-loop-resting-p loop)
        (efrit-continue loop)
      (unless (efrit-loop-retry-now loop)
        (user-error "It is at work, and nothing waits to be tried again")))))

;;; Private

(setq efrit-sync-loops-function #'efrit-do-loops)

(defun efrit-do--loop-above (folder)
  "Return the latest loop on FOLDER or on one above it, or nil.
Nothing is asked of the machine where FOLDER is."
  (seq-find (lambda (loop)
              (string-prefix-p (efrit-loop-root loop) (expand-file-name folder)))
            efrit-do--loops))

(defun efrit-do--check-home (root)
  "Ask where ROOT is the home folder; signal a `user-error' unless it is meant.
Whoever works there already is not asked again."
  (when (and (efrit-do--home-p root)
             (not (efrit-do-loop root))
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

(defun efrit-do--adopt (loop)
  "Count LOOP among those of this Emacs, and return it."
  (push loop efrit-do--loops)
  (efrit-loop-observe loop #'efrit-price-note)
  (efrit-loop-observe loop #'efrit-do--note-title)
  (efrit-sync-update)
  loop)

(defun efrit-do--know (loop)
  "Ask how far LOOP, which was resumed, has come, and what it has cost."
  (let* ((status (efrit-sidecar-request 'session/status
                                        (list :session_id (efrit-loop-id loop) :price t)))
         (budget (plist-get status :budget)))
    (setf (efrit-loop-budget loop) budget
          (efrit-loop-since loop) (plist-get status :last_turn)
          (efrit-loop-turn loop) (plist-get budget :turn)
          (efrit-loop-epoch loop) (plist-get budget :epoch)
          (efrit-loop-todos loop) (plist-get status :todos)
          (efrit-loop-usage loop) (list :dollars (plist-get status :dollars)))))

(defun efrit-do--loop-for (root)
  "Return the loop of this buffer, or the latest on ROOT, or nil."
  (or efrit-do-here (efrit-do-loop root)))

(defun efrit-do--begin (root)
  "Open a session on ROOT, show it, and return its loop."
  (let ((loop (efrit-do-make-loop root)))
    (funcall efrit-do-show-function loop)
    (efrit-do--note-missing loop)
    loop))

(defun efrit-do--waits-p (loop)
  "Return non-nil if something in LOOP waits for the model without more words.
That is a request without its reply, a result not sent, or a queue."
  (or (efrit-loop-queue loop)
      (efrit-loop-sent loop)
      (memq (efrit-loop-state loop) '(failed limited))
      (let ((last (car (efrit-loop-messages loop))))
        (and last (or (string-prefix-p "{\"role\":\"user\"" last)
                      (string-match-p "\"type\":\"tool_use\"" last))))))

(defun efrit-do--with-preview (loop blocks always)
  "Say BLOCKS in LOOP once the person has seen what it would send, and agrees.
Without BLOCKS, have LOOP go on.  Unless ALWAYS, that is asked only where
the prompt would have more tokens than `efrit-do-ask-above'."
  (require 'efrit-preview)
  (declare-function efrit-preview "efrit-preview")
  (efrit-preview loop blocks (and (not always) efrit-do-ask-above)))

(defun efrit-do--note-missing (loop)
  "Say in LOOP which programs are missing on its machine, if any."
  (when-let* ((host (efrit-host-at (efrit-host-of-session (efrit-loop-id loop))))
              (missing (efrit-host-missing host)))
    (efrit-loop-tell loop 'note missing)))

(defun efrit-do--note-title (loop event)
  "Name the session of LOOP, when EVENT is the first message in it."
  (when (and (eq (car event) 'queued) (efrit-do--first-said-p loop))
    (efrit-sidecar-request-async
     'session/rename
     (list :session_id (efrit-loop-id loop) :title (efrit-do--title (cadr event))
           :automatic t)
     :error #'ignore)))

(defun efrit-do--first-said-p (loop)
  "Return non-nil if what the person said last in LOOP is all that was said."
  (not (or (efrit-loop-messages loop) (efrit-loop-sent loop)
           (> (efrit-loop-turn loop) 0) (cdr (efrit-loop-queue loop)))))

(defun efrit-do--title (blocks)
  "Return the first line of the person's own words in BLOCKS."
  (let ((said (plist-get (car (last blocks)) :text)))
    (truncate-string-to-width (or (car (split-string (or said "") "\n" t "[ \t]*")) "")
                              80 nil nil t)))

(provide 'efrit-do)
;;; efrit-do.el ends here
