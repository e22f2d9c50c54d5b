;;; efrit-sessions.el --- Sessions: list, resume and export them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands for the sessions that the sidecar stores.

;;; Code:

(require 'efrit)
(require 'efrit-attach)
(require 'efrit-do)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'tabulated-list)

;;; Exporting a session

;; Writes the transcript of a session, evicted turns included, as Markdown or
;; Org.  Texts are unchanged: in Markdown the texts of person and model are
;; plain, and the rest is in fences; in Org all texts are in blocks.

(defconst efrit-export--speakers
  '(("request" . "Person") ("notice" . "Notice") ("reply" . "Model") ("result" . "Result"))
  "Alist from the kinds of entries in a transcript to their titles.")

(defun efrit-export-session (session format then)
  "Export SESSION, an entry of `session/list', as FORMAT, then call THEN.
FORMAT is `markdown' or `org'.  The argument of THEN is a new buffer with
the document, which visits no file."
  (efrit-sidecar-request-async
   'session/transcript (list :session_id (plist-get session :session_id))
   :timeout nil
   :success (lambda (transcript)
              (with-current-buffer (generate-new-buffer
                                    (format "efrit-%s.%s" (plist-get session :session_id)
                                            (if (eq format 'org) "org" "md")))
                (insert (efrit-export-text session (plist-get transcript :turns) format))
                (goto-char (point-min))
                (cond ((eq format 'org) (org-mode))
                      ((fboundp 'markdown-mode) (funcall 'markdown-mode))
                      (t (text-mode)))
                ;; Emacs would else end without a question about it.
                (setq buffer-offer-save t)
                (funcall then (current-buffer))))
   :error #'efrit-show-error))

(defun efrit-export-text (session entries format)
  "Return ENTRIES, the transcript of SESSION, as FORMAT, `markdown' or `org'."
  (let ((turn nil))
    (concat
     (efrit-export--head session format)
     (mapconcat (lambda (entry)
                  (concat
                   (unless (equal turn (plist-get entry :turn))
                     (setq turn (plist-get entry :turn))
                     (efrit-export--heading
                      2 (if turn (format "Turn %d" turn) "Outside any turn") format))
                   (efrit-export-entry entry format)))
                entries ""))))

(defun efrit-export-entry (entry format)
  "Return ENTRY of a transcript, a plist, as FORMAT, `markdown' or `org'.
Return \"\" for a reply that has nothing but empty thinking."
  (let ((text (if (equal (plist-get entry :kind) "result")
                  (efrit-export--result entry format)
                (mapconcat (lambda (block) (efrit-export--block block format))
                           (plist-get entry :content) ""))))
    (if (string-empty-p text)
        ""
      (concat (efrit-export--heading 3 (efrit-export--title entry) format) text))))

;;;; Parts

(defun efrit-export--head (session format)
  "Return the title and dates of SESSION as the beginning of a document of FORMAT."
  (let ((title (plist-get session :title)))
    (concat
     (efrit-export--heading 1 (if (string-blank-p title)
                                  (concat "Session " (plist-get session :session_id))
                                title)
                            format)
     (format "Session %s on %s, %s to %s.\n\n"
             (plist-get session :session_id) (plist-get session :root)
             (format-time-string "%F %R" (plist-get session :created))
             (format-time-string "%F %R" (plist-get session :touched))))))

(defun efrit-export--title (entry)
  "Return the title of ENTRY: who wrote it, or its tool; its state in the window."
  (concat
   (alist-get (plist-get entry :kind) efrit-export--speakers "Other" nil #'equal)
   (if (equal (plist-get entry :kind) "result")
       (format " %s: %s" (or (plist-get entry :handle) "(missing)")
               (substring-no-properties (efrit-line-words (efrit-export-use entry))))
     "")
   (cond ((not (eq (plist-get entry :in_window) t)) ", evicted")
         ((equal (plist-get entry :state) "compressed") ", compressed")
         (t ""))))

(defun efrit-export-use (entry)
  "Return ENTRY of a transcript, a tool call with its result, as an `efrit-use'."
  (efrit-use-create
   :id (plist-get entry :tool_use_id) :name (plist-get entry :tool)
   :arguments (efrit-export-json (plist-get entry :arguments))
   :state 'done
   :result (list :status (plist-get entry :status) :handle (plist-get entry :handle)
                 :tokens (plist-get entry :tokens) :text (plist-get entry :text)
                 :gist (plist-get entry :gist) :ending (plist-get entry :ending))))

(defun efrit-export--result (entry format)
  "Return the arguments and the text of ENTRY, a result, as FORMAT, a symbol."
  (concat (efrit-export--verbatim (efrit-export-json (plist-get entry :arguments))
                                  "json" format)
          (if (plist-get entry :text)
              (efrit-export--verbatim (plist-get entry :text) "text" format)
            "There is no result.\n\n")))

(defun efrit-export--block (block format)
  "Return BLOCK, a content block of a message, as FORMAT, `markdown' or `org'."
  (pcase (plist-get block :type)
    ;; Persons and models write Markdown.
    ("text" (if (or (eq format 'org) (efrit-attach-heading block))
                (efrit-export--verbatim (plist-get block :text)
                                        (if (efrit-attach-heading block) "text" "markdown")
                                        format)
              (concat (efrit-trim-right (plist-get block :text)) "\n\n")))
    ("thinking" (if (string-blank-p (or (plist-get block :thinking) ""))
                    ""
                  (concat "Thinking:\n\n"
                          (efrit-export--verbatim (plist-get block :thinking) "text" format))))
    ("image" "The image itself is not exported.\n\n")
    ("redacted_thinking" "Thinking that only the model can read.\n\n")
    ("tool_use" (concat (format "Uses %s:\n\n" (plist-get block :name))
                        (efrit-export--verbatim (efrit-export-json (plist-get block :input))
                                                "json" format)))
    (_ (efrit-export--verbatim (efrit-export-json block) "json" format))))

(defun efrit-export--heading (level text format)
  "Return a heading of LEVEL, from 1, with TEXT, as FORMAT, `markdown' or `org'."
  (concat (make-string level (if (eq format 'org) ?* ?#)) " "
          (string-replace "\n" " " text) "\n\n"))

(defun efrit-export--verbatim (text language format)
  "Return TEXT, in LANGUAGE, as a verbatim block of FORMAT, `markdown' or `org'."
  (let ((text (or text ""))
        (end (if (string-suffix-p "\n" text) "" "\n")))
    (if (eq format 'org)
        ;; A comma keeps Org from reading a line of the text as its own syntax.
        (concat "#+begin_src " language "\n"
                (replace-regexp-in-string "^,*\\(?:\\*\\|#\\+\\)" ",\\&" text)
                end "#+end_src\n\n")
      ;; The fence must be longer than any run of backquotes in the text.
      (let ((fence (make-string (1+ (seq-reduce #'max (mapcar #'length
                                                              (split-string text "[^`]+" t))
                                                2))
                                ?`)))
        (concat fence language "\n" text end fence "\n\n")))))

(defun efrit-export-json (value)
  "Return VALUE, from a reply of the sidecar, as JSON text on one line.
A nil VALUE is an empty object."
  (if value
      (decode-coding-string (efrit-json-write value) 'utf-8)
    "{}"))

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
  (setq tabulated-list-format
        `[("Last used" 13 ,(efrit-sessions--sorter :touched))
          ("State" 8 t)
          ("Calls" 6 ,(efrit-sessions--sorter :calls) :right-align t)
          ("Cost" 7 ,(efrit-sessions--sorter :dollars) :right-align t)
          ("Title" 40 t)
          ("Id" 8 t)
          ("Project" 0 t)]
        tabulated-list-padding 1
        tabulated-list-sort-key '("Last used" . t)
        revert-buffer-function #'efrit-sessions-refresh)
  (efrit-list-set-up '(("RET" "resume") ("+" "new") ("R" "rename") ("e" "export") ("P" "purge")
                       ("D" "delete") ("S" "sort") ("g" "refresh") ("?" "help")))
  (tabulated-list-init-header))

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
            efrit-sessions--host host)
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
           (here (efrit-loop-of-session id))
           (loop (efrit-do-resume-loop id (file-name-as-directory
                                           (concat (efrit-host-prefix host)
                                                   (plist-get session :root))))))
      (funcall efrit-do-show-function loop)
      (unless here
        (efrit-sessions--note-other-model loop session))
      (message "%s" (efrit-sessions--resume-message session))
      loop)))

(defun efrit-sessions--note-other-model (loop session)
  "Note in LOOP if its model is not that of the latest turn of SESSION, a plist."
  (let ((before (plist-get (plist-get (plist-get session :budget) :calibration) :model))
        (now (efrit-loop-option loop 'efrit-claude-model)))
    (unless (member before (list nil now))
      (efrit-loop-notify
       loop 'note
       (format "The model is %s; that of the last turn was %s.  M-x efrit-model chooses it again"
               now (efrit-permissions-visible before t))))))

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
  (interactive (list (intern (completing-read
                              (format-prompt "Format, markdown or org" efrit-export-format)
                              '("markdown" "org") nil t nil nil
                              (symbol-name efrit-export-format)))))
  (efrit-export-session (efrit-sessions--at-point) format #'efrit-sessions--show-export))

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

(defun efrit-sessions--show (sessions)
  "List SESSIONS, from `session/list', in this buffer."
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
  (vector (propertize (efrit-sessions--age (plist-get session :touched)) 'face 'efrit-figures)
          (efrit-sessions--state session)
          (propertize (format "%d" (plist-get session :calls)) 'face 'efrit-figures)
          (propertize (efrit-sessions--cost session) 'face 'efrit-figures)
          (if (string-empty-p (plist-get session :title)) "-" (plist-get session :title))
          (propertize (plist-get session :session_id) 'face 'efrit-figures)
          (abbreviate-file-name (concat (efrit-host-prefix efrit-sessions--host)
                                         (plist-get session :root)))))

(defun efrit-sessions--cost (session)
  "Return the cost of SESSION as text, or ? if a price is unknown."
  (if-let* ((dollars (plist-get session :dollars)))
      (format "$%.2f" dollars)
    "?"))

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
  (let ((usage (plist-get session :usage)))
    (concat
     (propertize (format "%-11s " (efrit-sessions--age (plist-get session :touched)))
                 'face 'completions-annotations)
     (format "%-8s" (efrit-sessions--state session))
     (propertize
      (format "%5d calls %6s tokens %7s%s"
              (plist-get session :calls)
              (efrit-show-tokens (cl-loop for (_ count) on usage by #'cddr sum count))
              (efrit-sessions--cost session)
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

(provide 'efrit-sessions)
;;; efrit-sessions.el ends here
