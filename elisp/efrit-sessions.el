;;; efrit-sessions.el --- Stored sessions, and what they learned  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for the sessions that the sidecar stores, and for its memory: they
;; list and resume sessions, make bookmarks of them, restore their buffers with a
;; desktop, and search and save what sessions learned.

;;; Code:

(require 'efrit)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-transcript)
(require 'efrit-view)
(require 'icomplete)
(require 'project)
(require 'tabulated-list)

;;; Listing and resuming

;; Sessions stay in the sidecar's database when Emacs or the sidecar ends.
;; M-x efrit-resume resumes a session of this project, also a closed one;
;; M-x efrit-sessions lists them.  In a remote folder both use the sessions of
;; that folder's machine.

(defvar-local efrit-sessions--root nil
  "The project whose sessions this buffer lists; nil: all projects.")

(defvar-local efrit-sessions--host nil
  "The name of the host whose sessions this buffer lists; nil: this machine.")

(defvar-local efrit-sessions--by-id nil
  "The sessions listed in this buffer: an alist from ids to plists.")

;;;; The mode

(defvar efrit-sessions-mode-map
  (efrit-make-keymap '(("RET" efrit-sessions-resume)
                       ("R" efrit-sessions-rename)
                       ("D" efrit-sessions-delete)
                       ("P" efrit-sessions-purge)
                       ("e" efrit-sessions-export)
                       ("+" efrit-sessions-new)
                       ("g" efrit-sessions-refresh)))
  "Keys of `efrit-sessions-mode'.")

(define-derived-mode efrit-sessions-mode tabulated-list-mode "Efrit-Sessions"
  "Major mode that lists the sessions of a project, or of all projects.

\\{efrit-sessions-mode-map}"
  (efrit-keep-keys)
  (setq tabulated-list-padding 1
        tabulated-list-sort-key '("Last used" . t)
        revert-buffer-function #'efrit-sessions-refresh)
  (efrit-list-set-up '(("RET" "resume") ("+" "new") ("R" "rename") ("e" "export") ("P" "purge")
                       ("D" "delete") ("S" "sort") ("g" "refresh") ("?" "help")))
  (efrit-sessions--set-columns))

;;;; Commands

;;;###autoload
(defun efrit-sessions (&optional all)
  "List the sessions of this project; with prefix argument ALL, of all projects."
  (interactive "P")
  (let* ((root (unless all (efrit-do-root)))
         (host (efrit-host-of-folder (or root default-directory)))
         (buffer (get-buffer-create "*efrit sessions*")))
    (with-current-buffer buffer
      (efrit-sessions-mode)
      (setq efrit-sessions--root root
            efrit-sessions--host host
            mode-line-process (concat ": " (if root (abbreviate-file-name
                                                     (directory-file-name root))
                                             "all projects")))
      (efrit-sessions-refresh))
    (pop-to-buffer buffer)))

;;;###autoload
(defun efrit-resume (id)
  "Resume the session ID of this project, and show the session.
With a prefix argument, offer the sessions of all projects.
A closed session is opened again.  Nothing is sent: `efrit-continue' has the
model continue, `efrit-do' sends a new message."
  (interactive (list (efrit-sessions--read-id current-prefix-arg)))
  (efrit-for-a-person
    (let* ((host (efrit-host-of-session id (efrit-host-of-folder default-directory)))
           (session (efrit-sidecar-request 'session/status (list :session_id id) :host host))
           (loop (efrit-do-resume-loop id (file-name-as-directory
                                           (concat (efrit-host-prefix host)
                                                   (plist-get session :root))))))
      (funcall efrit-do-show-function loop)
      (efrit-sessions--note-model loop)
      (message "%s" (efrit-sessions--resume-message session))
      loop)))

(defun efrit-sessions--note-model (loop)
  "Note in LOOP, once it is resumed, its model, unless new sessions have it, too."
  (when-let* ((note (efrit-do-resumed-note loop)))
    (setf (efrit-loop-last-model loop) nil)
    (efrit-loop-notify loop 'note note)))

(defun efrit-sessions-refresh (&rest _)
  "Fetch the sessions from the sidecar, and list them."
  (interactive nil efrit-sessions-mode)
  (efrit-check-mode 'efrit-sessions-mode)
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'session/list
     (append (list :include_closed t :price t)
             (and efrit-sessions--root
                  (list :root (efrit-host-local-name efrit-sessions--root))))
     :host efrit-sessions--host
     :success (lambda (listed)
                (efrit-with-live-buffer buffer
                  (efrit-sessions--show
                   (efrit-sessions--record-host (plist-get listed :sessions)
                                                efrit-sessions--host))))
     :error #'efrit-show-error)))

(defun efrit-sessions-resume ()
  "Resume the session at point."
  (interactive)
  (efrit-resume (plist-get (efrit-sessions--at-point) :session_id)))

(defun efrit-sessions-new ()
  "Begin another session in the project whose sessions are listed here."
  (interactive)
  (let ((default-directory (or efrit-sessions--root default-directory)))
    (efrit-new)))

(defun efrit-sessions-rename (title)
  "Change the title of the session at point to TITLE."
  (interactive (list (read-string "Title: " (plist-get (efrit-sessions--at-point) :title))))
  (let ((loop (efrit-loop-of-session (plist-get (efrit-sessions--at-point) :session_id)))
        (title (truncate-string-to-width title 200)))
    (efrit-sessions--change 'session/rename (list :title title))
    (when loop
      (efrit-loop-rename loop title))))

(defun efrit-sessions-delete ()
  "Delete the session at point with all its data, if the person confirms."
  (interactive)
  (efrit-sessions--clear 'session/delete "Delete %s with all its data? "))

(defun efrit-sessions-purge ()
  "Delete the texts of the session at point, if the person confirms.
The session stays in the list."
  (interactive)
  (efrit-sessions--clear 'session/purge "Delete all texts of %s? "))

(defun efrit-sessions-export (format)
  "Export the session at point, with all evicted text, as FORMAT to a new buffer."
  (interactive (list (efrit-sessions--read-format)))
  (efrit-export-session (efrit-sessions--at-point) format #'efrit-sessions--show-export))

;;;###autoload
(defun efrit-export (format)
  "Export the current session, with all evicted text, as FORMAT to a new buffer."
  (interactive (list (efrit-sessions--read-format)))
  (let ((loop (efrit-loop-current)))
    (efrit-loop-ask-sidecar
     loop 'session/status nil
     (lambda (session)
       (let ((default-directory (efrit-loop-root loop)))
         (efrit-export-session session format #'efrit-sessions--show-export)))
     #'efrit-show-error)))

(defun efrit-sessions--read-format ()
  "Read the format of an exported session: return `markdown' or `org'."
  (intern (completing-read (format-prompt "Format, markdown or org" efrit-export-format)
                           '("markdown" "org") nil t nil nil
                           (symbol-name efrit-export-format))))

(defun efrit-sessions--show-export (buffer)
  "Show BUFFER, an exported session, and say how to save it."
  (pop-to-buffer buffer)
  (message "%s"
           (substitute-command-keys
            (format "\\[save-buffer] RET saves the session as %s"
                    (abbreviate-file-name (expand-file-name (buffer-name)))))))

(defun efrit-sessions--at-point ()
  "Return the session at point, a plist; signal a `user-error' if there is none."
  (efrit-check-mode 'efrit-sessions-mode)
  (or (cdr (assoc (tabulated-list-get-id) efrit-sessions--by-id))
      (user-error "No session on this line")))

(defun efrit-sessions--clear (method question)
  "Ask QUESTION about the session at point; on yes, call METHOD for it.
First remove its loop from this Emacs.  %s in QUESTION stands for the session.
Signal a `user-error' if the session is working."
  (let* ((session (efrit-sessions--at-point))
         (id (plist-get session :session_id))
         (title (plist-get session :title))
         (loop (efrit-loop-of-session id)))
    (when (and loop (not (efrit-loop-resting-p loop)))
      (user-error "The session is working; stop it first"))
    (when (yes-or-no-p (format question
                               (format "session %s%s" id
                                       (if (string-empty-p title) "" (format " (%s)" title)))))
      (when loop
        (efrit-do-forget loop))
      (efrit-supervisor-forget id)
      (efrit-sessions--change method nil))))

(defun efrit-sessions--change (method params)
  "Call METHOD with PARAMS for the session at point, then refresh the list."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     method (append (list :session_id (plist-get (efrit-sessions--at-point) :session_id)) params)
     :timeout nil
     :success (lambda (_) (efrit-with-live-buffer buffer (efrit-sessions-refresh)))
     :error #'efrit-show-error)))

;;;; The list

(defun efrit-sessions--record-host (sessions host)
  "Record that SESSIONS, a vector, are on HOST; return them as a list."
  (mapcar (lambda (session)
            (efrit-host-set-session (plist-get session :session_id) host 'keep)
            session)
          sessions))

(defun efrit-sessions--sorter (name)
  "Return a predicate to sort entries by their sessions' number at the key NAME."
  (lambda (one other)
    (< (or (plist-get (cdr (assoc (car one) efrit-sessions--by-id)) name) 0)
       (or (plist-get (cdr (assoc (car other) efrit-sessions--by-id)) name) 0))))

(defun efrit-sessions--set-columns ()
  "Set the columns of the list so that its lines fit the window, if they can.
A narrow window leaves out ids and calls; a list of one project leaves out
projects."
  (let* ((columns (car (efrit-smallest-window 80 24)))
         (before `(("Last used" 13 ,(efrit-sessions--sorter :touched))
                   ("State" 8 t)
                   ,@(and (>= columns 80)
                          `(("Calls" 6 ,(efrit-sessions--sorter :calls) :right-align t)))
                   ("Cost" 7 ,(efrit-sessions--sorter :dollars) :right-align t)))
         (after (append (and (>= columns 90) '(("Id" 6 t)))
                        (and (null efrit-sessions--root)
                             `(("Project" ,(if (>= columns 80) 20 12) t)))))
         (taken (cl-loop for (_ width) in (append before after) sum (1+ width))))
    (setq tabulated-list-format
          (vconcat before
                   `(("Title" ,(max 12 (min 60 (- columns 2 taken))) t))
                   after))
    (tabulated-list-init-header)))

(defun efrit-sessions--show (sessions)
  "List SESSIONS, from `session/list', in this buffer."
  (efrit-sessions--set-columns)
  (setq efrit-sessions--by-id (mapcar (lambda (session)
                                        (cons (plist-get session :session_id) session))
                                      sessions)
        tabulated-list-entries (mapcar (lambda (entry)
                                         (list (car entry)
                                               (efrit-sessions--columns (cdr entry))))
                                       efrit-sessions--by-id))
  (efrit-list-print))

(defun efrit-sessions--columns (session)
  "Return the columns of SESSION, a vector of strings."
  (seq-into (mapcar (pcase-lambda (`(,name ,width . ,_))
                      (truncate-string-to-width (efrit-sessions--cell name session)
                                                width nil nil "…"))
                    tabulated-list-format)
            'vector))

(defun efrit-sessions--cell (name session)
  "Return what stands of SESSION in the column NAME."
  (pcase name
    ("Title" (if (string-empty-p (plist-get session :title))
                 (concat "untitled session " (plist-get session :session_id))
               (plist-get session :title)))
    ("State" (efrit-sessions--state session))
    ("Project" (let ((root (concat (efrit-host-prefix efrit-sessions--host)
                                   (plist-get session :root))))
                 (propertize (file-name-nondirectory root)
                             'help-echo (abbreviate-file-name root))))
    (_ (propertize (pcase name
                     ("Last used" (efrit-sessions--age (plist-get session :touched)))
                     ("Calls" (format "%d" (plist-get session :calls)))
                     ("Cost" (efrit-sessions--cost session))
                     ("Id" (plist-get session :session_id)))
                   'face 'efrit-figures))))

(defun efrit-sessions--cost (session)
  "Return the cost of SESSION as text, or \"unknown\" if usage or price is."
  (if-let* ((dollars (plist-get session :dollars)))
      (format "$%.2f" dollars)
    "unknown"))

(defun efrit-sessions--state (session)
  "Return the state of SESSION, a plist, as text, such as \"at work\"."
  (let ((loop (efrit-loop-of-session (plist-get session :session_id))))
    (cond ((eq (plist-get session :purged) t) (propertize "purged" 'face 'efrit-failed))
          ((and loop (not (efrit-loop-resting-p loop))) (propertize "at work" 'face 'efrit-busy))
          (loop (propertize "here" 'face 'efrit-done))
          (t (plist-get session :state)))))

(defun efrit-sessions--age (seconds)
  "Return how long ago SECONDS, a Unix time, was as text, such as \"5 min ago\"."
  (let ((past (max 0 (- (float-time) seconds))))
    (cond ((< past 60) "just now")
          ((< past 3600) (format "%d min ago" (/ past 60)))
          ((< past 86400) (format "%d h ago" (/ past 3600)))
          ((< past 172800) "yesterday")
          (t (format "%d days ago" (/ past 86400))))))

;;;; Resuming

(defun efrit-sessions--read-id (&optional all)
  "Ask for a session of this project, and return the session's id.
If ALL is non-nil, offer the sessions of all projects."
  (let* ((root (unless all (efrit-do-root)))
         (host (efrit-host-of-folder (or root default-directory)))
         (completion-ignore-case t)
         (listed (efrit-sidecar-request 'session/list
                                        (append (list :include_closed t :price t)
                                                (and root
                                                     (list :root (efrit-host-local-name root))))
                                        :host host))
         (offered (efrit-sessions--candidates
                   (efrit-sessions--record-host (plist-get listed :sessions) host))))
    (unless offered
      (user-error "No session of %s is stored; `efrit-do' begins one"
                  (if root (abbreviate-file-name root) "any project")))
    (plist-get (cdr (assoc (completing-read (format-prompt "Resume" (caar offered))
                                            (efrit-sessions--table offered all) nil t nil nil
                                            (caar offered))
                           offered))
               :session_id)))

(defun efrit-sessions--candidates (sessions)
  "Return an alist from candidates for completion to SESSIONS, a list of plists.
A candidate is the title; behind a title that several have stands the id."
  (let ((counts (make-hash-table :test #'equal))
        (titles (mapcar #'efrit-sessions--title sessions)))
    (dolist (title titles)
      (cl-incf (gethash title counts 0)))
    (cl-mapcar (lambda (title session)
                 (cons (if (= 1 (gethash title counts))
                           title
                         (format "%s <%s>" title (plist-get session :session_id)))
                       session))
               titles sessions)))

(defun efrit-sessions--title (session)
  "Return the title of SESSION, a plist, on one line of at most 60 columns."
  (let ((title (string-join (split-string (plist-get session :title)) " ")))
    (if (string-empty-p title)
        "untitled session"
      (truncate-string-to-width (efrit-permissions-visible title t) 60 nil nil "…"))))

(defun efrit-sessions--table (offered all)
  "Return a completion table of OFFERED, an alist, that preserves its order.
With ALL, an annotation names the project, too."
  (lambda (string predicate action)
    (if (eq action 'metadata)
        `(metadata (category . efrit-session)
                   (display-sort-function . identity)
                   (cycle-sort-function . identity)
                   (affixation-function
                    . ,(lambda (candidates) (efrit-sessions--affixed candidates offered all))))
      (complete-with-action action offered string predicate))))

(defun efrit-sessions--affixed (candidates offered all)
  "Return CANDIDATES with their annotations, for an `affixation-function'.
OFFERED and ALL are as in `efrit-sessions--table'."
  (let ((width (apply #'max 0 (mapcar #'string-width candidates))))
    (mapcar (lambda (candidate)
              (list candidate ""
                    (concat (make-string (- (+ 2 width) (string-width candidate)) ?\s)
                            (efrit-sessions--annotation (cdr (assoc candidate offered)) all))))
            candidates)))

(defun efrit-sessions--annotation (session all)
  "Return an annotation of SESSION, its age and cost for example.
With ALL, it names the project."
  (let ((tokens (cl-loop for (_ count) on (plist-get session :usage) by #'cddr sum count)))
    (concat
     (propertize (format "%-11s " (efrit-sessions--age (plist-get session :touched)))
                 'face 'completions-annotations)
     (format "%-8s" (efrit-sessions--state session))
     (propertize
      (format "%5d calls %6s tokens %12s%s"
              (plist-get session :calls)
              (efrit-show-tokens (if (and (plist-get session :unreported) (= tokens 0)) nil tokens))
              (if (plist-get session :dollars) (efrit-sessions--cost session) "cost unknown")
              (if all
                  (concat "  " (abbreviate-file-name (plist-get session :root)))
                ""))
      'face 'completions-annotations))))

(defun efrit-sessions--resume-message (session)
  "Return a message that SESSION, a plist, was resumed."
  (concat (format "Session %s was " (plist-get session :session_id))
          (cond ((eq (plist-get session :purged) t)
                 (concat "resumed, but is empty: " (plist-get session :note)))
                ((equal (plist-get session :state) "closed") "closed, and is open again")
                (t "resumed"))))

;;; Bookmarks and desktops

;; A bookmark of a session's buffer resumes the session.  The buffer that
;; `desktop-save-mode' restores names the session, which one key resumes, so that
;; no sidecar is started and no question asked when Emacs starts.

(defvar-local efrit-restore--session nil
  "The session that this buffer stands for: a plist of `:id', `:root', `:title'.")

(put 'efrit-restore--session 'permanent-local t)

(defconst efrit-restore--patience 10
  "Most seconds to wait for the transcript of a session that a bookmark names.")

;;;; Bookmarks

(declare-function bookmark-prop-get "bookmark" (bookmark-name-or-record prop))

;;;###autoload
(defun efrit-restore-bookmark ()
  "Return a bookmark of the session here, and of the exchange at point."
  (let ((session (efrit-restore--describe efrit-loop-here)))
    `(,(efrit-permissions-visible
        (or (plist-get session :title) (efrit-loop-project efrit-loop-here)) t)
      (handler . efrit-restore-jump)
      (location . ,(format "efrit session %s of %s" (plist-get session :id)
                           (abbreviate-file-name (plist-get session :root))))
      (session . ,(plist-get session :id))
      (root . ,(plist-get session :root))
      (exchange . ,(efrit-exchange-number)))))

;;;###autoload
(defun efrit-restore-jump (bookmark)
  "Resume the session of BOOKMARK, and go to its exchange."
  (efrit-for-a-person
    (set-buffer (efrit-restore--resume (bookmark-prop-get bookmark 'session)
                                       (bookmark-prop-get bookmark 'root)))
    (when-let* ((number (bookmark-prop-get bookmark 'exchange)))
      (let ((end (+ (float-time) efrit-restore--patience)))
        (while (and (not (efrit-exchange-go-to number))
                    (< (float-time) end))
          (accept-process-output nil 0.05))))))

;;;; Desktops

(defvar desktop-save-buffer)

(defvar efrit-restore-mode-map
  (efrit-make-keymap '(("RET" efrit-restore-resume)
                       ("g" efrit-restore-resume)
                       ("<mouse-2>" efrit-restore-resume)))
  "Keys of `efrit-restore-mode'.")

(define-derived-mode efrit-restore-mode special-mode "Efrit-Stored"
  "Major mode of a buffer that stands for a stored session.

\\{efrit-restore-mode-map}"
  (efrit-keep-keys)
  (setq-local desktop-save-buffer #'efrit-restore-desktop-save))

;;;###autoload
(defun efrit-restore-desktop-save (_folder)
  "Return a plist of the session here for a desktop file."
  (or efrit-restore--session
      (efrit-restore--describe efrit-loop-here)))

;;;###autoload
(dolist (mode '(efrit-session-view-mode efrit-restore-mode))
  (add-to-list 'desktop-buffer-mode-handlers (cons mode 'efrit-restore-desktop)))

;;;###autoload
(defun efrit-restore-desktop (_file name session)
  "Return a buffer NAME that stands for SESSION, a plist from a desktop file."
  (with-current-buffer (generate-new-buffer name)
    (efrit-restore-mode)
    (setq efrit-restore--session session)
    (efrit-set-buffer-text
     (concat (propertize (efrit-permissions-visible
                          (or (plist-get session :title) "A session") t)
                         'face 'efrit-title)
             "\n" (efrit-permissions-visible (abbreviate-file-name (plist-get session :root)) t)
             "\n\nThis session is stored.  "
             (propertize "RET" 'face 'efrit-key 'mouse-face 'highlight 'follow-link t)
             " resumes it.\n"))
    (current-buffer)))

(defun efrit-restore-resume ()
  "Resume the session that this buffer stands for, in its windows."
  (interactive nil efrit-restore-mode)
  (efrit-check-mode 'efrit-restore-mode)
  (efrit-for-a-person
    (let* ((stand-in (current-buffer))
           (windows (get-buffer-window-list stand-in nil t))
           (buffer (efrit-restore--resume (plist-get efrit-restore--session :id)
                                          (plist-get efrit-restore--session :root))))
      (dolist (window windows)
        (set-window-buffer window buffer))
      (kill-buffer stand-in)
      (efrit-session-view-name-all)
      (set-buffer buffer)
      (goto-char (point-max)))))

;;;; Both

(defun efrit-restore--describe (loop)
  "Return the plist that identifies the session of LOOP."
  (list :id (efrit-loop-id loop) :root (efrit-loop-root loop) :title (efrit-loop-title loop)))

(defun efrit-restore--resume (id root)
  "Resume the session ID of the project ROOT, and return its buffer."
  (let ((loop (efrit-do-resume-loop id root)))
    (prog1 (efrit-session-view-buffer loop)
      (efrit-sessions--note-model loop))))

;;; Memory

(defvar efrit-memory--history nil
  "History of memory searches.")

(defvar efrit-memory--last-search nil
  "A cons of the last query and its results, or nil.")

(defvar-local efrit-memory--id nil
  "The id, a number, of the observation that this buffer shows, or nil.")

;;;; The mode

(defvar efrit-memory-mode-map
  (efrit-make-keymap '(("n" next-line)
                       ("p" previous-line)
                       ("t" efrit-memory-timeline)
                       ("s" efrit-memory-search)))
  "Keys of `efrit-memory-mode'.")

(defvar efrit-memory-minibuffer-map
  (efrit-make-keymap '(("SPC" self-insert-command)
                       ("?" self-insert-command)))
  "Keys while a query is typed: blanks and question marks insert themselves.")

(defvar efrit-memory-icomplete-map
  (efrit-make-keymap '(("RET" icomplete-force-complete-and-exit)
                       ("<down>" icomplete-forward-completions)
                       ("<up>" icomplete-backward-completions))
                     efrit-memory-minibuffer-map)
  "Keys while a query is typed and icomplete shows the results.
\\`RET' chooses the selected result, since the query itself is not a result.")

(define-derived-mode efrit-memory-mode special-mode "Efrit-Memory"
  "Major mode that shows observations.

\\{efrit-memory-mode-map}"
  (efrit-keep-keys)
  (let ((keys '(("n" "next line") ("p" "previous") ("t" "timeline") ("s" "search") ("?" "help"))))
    (efrit-list-add-menu keys)
    (setq header-line-format
          `(:eval (efrit-list-keys-line ',keys (window-width))))))

;;;; Commands

;;;###autoload
(defun efrit-memory-search (id &optional insert)
  "Search memory while typing, and open the chosen observation ID.
With a prefix argument, as INSERT, insert its content at point instead."
  (interactive (list (efrit-memory--read-id) current-prefix-arg))
  (let ((observation (efrit-memory--ask 'memory/get (list :id id))))
    (if insert
        (progn (barf-if-buffer-read-only)
               (insert (plist-get observation :content)))
      (efrit-memory--show id (concat (efrit-memory--line observation) "\n"
                                     (efrit-memory--facts observation) "\n\n"
                                     (plist-get observation :content) "\n")))))

;;;###autoload
(defun efrit-memory-timeline (id)
  "Show the observations saved before and after the one with ID in its session."
  (interactive (list (or (efrit-memory--id-here) (efrit-memory--read-id))))
  (let ((line (efrit-memory--ask 'memory/timeline (list :id id))))
    (efrit-memory--show id (efrit-memory--timeline line))))

;;;###autoload
(defun efrit-memory-save (title content)
  "Save CONTENT, the region, to memory as TITLE, for the project here."
  (interactive
   (if (use-region-p)
       (list (read-string "Save the region as: ")
             (buffer-substring-no-properties (region-beginning) (region-end)))
     (user-error "Mark the text to save first")))
  (when (string-blank-p title)
    (user-error "An observation needs a title"))
  (let ((saved (efrit-memory--ask 'memory/save
                                  (list :title title :content content
                                        :project (or (efrit-memory--project) "")))))
    (message "Memory #%d: %s%s" (plist-get saved :id) (plist-get saved :outcome)
             (let ((other (append (plist-get saved :left_out) nil)))
               (if other (format "; not saved: another %s" (string-join other ", ")) "")))
    saved))

;;;###autoload
(defun efrit-context-pack (project tokens place &optional file)
  "Write the observations of PROJECT, nil for all, as one text of at most TOKENS.
PLACE is the target, `buffer', `kill-ring' or `file'; FILE is the file's name."
  (interactive (efrit-memory--read-pack))
  (let* ((pack (efrit-memory--ask 'memory/pack
                                  `(:tokens ,tokens
                                    ,@(and project (list :project project)))))
         (text (concat (plist-get pack :text) "\n")))
    (pcase place
      ('kill-ring (kill-new text))
      ('file (efrit-memory--write text file))
      (_ (efrit-memory--show nil text)))
    (message "%d memories, ~%d tokens%s" (plist-get pack :packed) (plist-get pack :tokens)
             (let ((left (plist-get pack :left_out)))
               (if (eql 0 left) "" (format "; %d left out" left))))
    text))

(defun efrit-memory--ask (method params)
  "Call METHOD with PARAMS on this folder's sidecar, and return the reply."
  (efrit-sidecar-request method params :host (efrit-host-of-folder default-directory)))

(defun efrit-memory--project ()
  "Return the name of the project here, or nil."
  (when-let* ((project (project-current)))
    (file-name-nondirectory (directory-file-name (project-root project)))))

(defun efrit-memory--id-here ()
  "Return the id of the observation on this line, or of this buffer, or nil."
  (or (get-text-property (line-beginning-position) 'efrit-memory-id)
      efrit-memory--id))

;; Searching

(defun efrit-memory--read-id ()
  "Ask for an observation, listing results while typing, and return its id.
The person's completion interface lists the results; without one, turn on
icomplete meanwhile, which lists the latest observations for an empty query."
  (let* ((efrit-memory--last-search nil)
         (icomplete (and (not icomplete-mode) (efrit-memory--plain-p)))
         (icomplete-show-matches-on-no-input
          (or icomplete-show-matches-on-no-input (not icomplete-mode)))
         (completion-styles '(efrit-memory))
         (completion-styles-alist
          (cons '(efrit-memory efrit-memory--try-completion efrit-memory--all-completions
                               "The results of a memory search.")
                completion-styles-alist))
         (icomplete-mode (or icomplete-mode icomplete))
         (chosen (minibuffer-with-setup-hook
                     (:append (lambda () (efrit-memory--set-up-minibuffer icomplete)))
                   (completing-read "Search memory: " #'efrit-memory--table nil nil nil
                                    'efrit-memory--history))))
    (or (efrit-memory--number-in chosen)
        (cdar (efrit-memory--results chosen))
        (user-error "No observation matches %s" chosen))))

(defun efrit-memory--set-up-minibuffer (icomplete)
  "Set up the minibuffer for a query; with ICOMPLETE, turn on icomplete in it.
Set the completion style again, since Fido sets its own in the minibuffer;
keep Fido's keys."
  (when icomplete
    (icomplete-minibuffer-setup))
  (setq-local completion-styles '(efrit-memory))
  (use-local-map
   (make-composed-keymap (if (and icomplete-mode (not (bound-and-true-p fido-mode))
                                  (efrit-memory--plain-p))
                             efrit-memory-icomplete-map
                           efrit-memory-minibuffer-map)
                         (current-local-map))))

(defun efrit-memory--plain-p ()
  "Return non-nil if no other package has taken over the minibuffer."
  (and (eq completing-read-function #'completing-read-default)
       (not (bound-and-true-p vertico-mode))
       (not (bound-and-true-p mct-mode))))

(defun efrit-memory--table (typed _predicate action)
  "Return the value for TYPED and ACTION of a completion table of search results."
  (pcase action
    ('metadata '(metadata (category . efrit-memory)
                          (display-sort-function . identity)
                          (cycle-sort-function . identity)))
    ('t (mapcar #'car (efrit-memory--results typed)))
    ('lambda (and (assoc typed (efrit-memory--results typed)) t))
    ('nil typed)))

(defun efrit-memory--try-completion (typed _table _predicate point)
  "Return the only result of TYPED, (TYPED . POINT) if there are more, or nil."
  (pcase (mapcar #'car (efrit-memory--results typed))
    ('nil nil)
    (`(,only) (or (equal only typed) (cons only (length only))))
    (_ (cons typed point))))

(defun efrit-memory--all-completions (typed _table _predicate _point)
  "Return all results of TYPED, whether they begin with it or not."
  (mapcar #'car (efrit-memory--results typed)))

(defun efrit-memory--results (typed)
  "Return the results of TYPED, an alist from lines to ids; cache the last alist."
  (let ((words (string-trim (efrit-memory--words typed))))
    (unless (equal words (car efrit-memory--last-search))
      ;; Show the typed text before waiting for the answer.
      (redisplay)
      (setq efrit-memory--last-search (cons words (efrit-memory--search words))))
    (cdr efrit-memory--last-search)))

(defun efrit-memory--words (typed)
  "Return the query for TYPED, with a * behind a last word, which is a prefix."
  (if (or (string-match-p "\\`#[0-9]+ " typed) (string-match-p "[[:alnum:]]\\'" typed))
      (concat typed "*")
    typed))

(defun efrit-memory--search (words)
  "Return an alist from lines to ids of the observations that match WORDS."
  (let ((number (efrit-memory--number-in words)))
    (if number
        (list (cons (string-remove-suffix "*" words) number))
      (mapcar (lambda (result) (cons (efrit-memory--line result) (plist-get result :id)))
              (plist-get (efrit-memory--ask 'memory/search
                                            (list :query words
                                                  :limit efrit-memory-most-results))
                         :results)))))

(defun efrit-memory--number-in (line)
  "Return the id at the beginning of LINE, or nil if LINE is not a result's line."
  (and (string-match "\\`#\\([0-9]+\\) \\[" line)
       (string-to-number (match-string 1 line))))

;; Showing

(defun efrit-memory--line (observation)
  "Return OBSERVATION, a plist, as a line."
  (format "#%d [%s] %s" (plist-get observation :id) (plist-get observation :kind)
          (string-join (split-string (plist-get observation :title)) " ")))

(defun efrit-memory--facts (observation)
  "Return date, importance, project and tags of OBSERVATION as a line."
  (let ((tags (append (plist-get observation :tags) nil)))
    (concat (substring (plist-get observation :updated_at) 0 10)
            (format " | importance: %s" (plist-get observation :importance))
            (and (not (string-empty-p (plist-get observation :project_id)))
                 (format " | project: %s" (plist-get observation :project_id)))
            (and tags (concat " | tags: " (string-join tags ", "))))))

(defun efrit-memory--timeline (timeline)
  "Return TIMELINE, a reply of the sidecar, as text."
  (let* ((before (append (plist-get timeline :before) nil))
         (after (append (plist-get timeline :after) nil))
         (shown (+ 1 (length before) (length after)))
         (total (plist-get timeline :total)))
    (concat (mapconcat #'efrit-memory--entry before "")
            (efrit-memory--focus-text (plist-get timeline :focus))
            (mapconcat #'efrit-memory--entry after "")
            (and (< shown total)
                 (format "\nShowing %d of %d observations in session.\n" shown total)))))

(defun efrit-memory--entry (observation)
  "Return the line of OBSERVATION in a timeline."
  (propertize (format "%s  %s\n" (substring (plist-get observation :updated_at) 0 10)
                      (efrit-memory--line observation))
              'efrit-memory-id (plist-get observation :id)))

(defun efrit-memory--focus-text (observation)
  "Return the whole text of OBSERVATION, the focus of a timeline."
  (concat (propertize (efrit-memory--entry observation) 'face 'bold)
          (replace-regexp-in-string "^" "    " (efrit-trim (plist-get observation :content)))
          "\n"))

(defun efrit-memory--show (id text)
  "Show TEXT, about the observation ID or nil, in a buffer; return the buffer."
  (let ((buffer (get-buffer-create "*efrit memory*"))
        (folder default-directory))
    (with-current-buffer buffer
      (efrit-memory-mode)
      (setq efrit-memory--id id
            default-directory folder)
      (efrit-set-buffer-text text))
    (pop-to-buffer buffer)))

;; Packing

(defun efrit-memory--read-pack ()
  "Ask for the arguments of `efrit-context-pack', and return them."
  (let* ((here (efrit-memory--project))
         (project (read-string (format-prompt "Project (empty: all)" here) nil nil
                               (or here "")))
         (tokens (read-number "Tokens: " efrit-memory-pack-tokens))
         (place (intern (completing-read (format-prompt "Write it to buffer, kill-ring or file" "buffer")
                                         '("buffer" "kill-ring" "file") nil t nil nil
                                         "buffer"))))
    (unless (natnump tokens)
      (user-error "Give a whole number of tokens"))
    (list (and (not (string-empty-p project)) project)
          tokens place
          (and (eq place 'file) (read-file-name "File: " nil nil nil "context.md")))))

(defun efrit-memory--write (text file)
  "Write TEXT to FILE, whole or not at all; ask before replacing a file."
  (when (and (file-exists-p file)
             (not (yes-or-no-p (format "Replace %s? " file))))
    (user-error "Nothing was written"))
  (let ((write-region-inhibit-fsync nil)
        (temporary (make-nearby-temp-file (expand-file-name ".efrit-pack"
                                                            (file-name-directory
                                                             (expand-file-name file)))))
        (coding-system-for-write 'utf-8-unix))
    (unwind-protect
        (progn
          (write-region text nil temporary nil 'quiet)
          (set-file-modes temporary (or (file-modes file) (logand #o666 (default-file-modes))))
          (rename-file temporary (expand-file-name file) t))
      (when (file-exists-p temporary)
        (delete-file temporary)))))

(provide 'efrit-sessions)
;;; efrit-sessions.el ends here
