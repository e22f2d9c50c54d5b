;;; efrit-do.el --- Begin sessions, with a preview or in batch  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Does a task: the files and the context of a message, its preview, and sessions
;; in batch.

;;; Code:

(require 'efrit)
(require 'efrit-backend)
(require 'efrit-edit)
(require 'efrit-files)
(require 'efrit-loop)
(require 'efrit-mcp)
(require 'efrit-permissions)
(require 'efrit-providers)
(require 'efrit-remote)
(require 'efrit-rpc)
(require 'efrit-run)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-tools)
(require 'efrit-tools-build)
(require 'efrit-tools-emacs)
(require 'efrit-tools-web)
(require 'efrit-undo)

;;; Files of a message

;; A file of the project that a message names behind an @ is attached to it:
;; completes the names, shows while the person types what will go along, and
;; has the sidecar turn the files into blocks of the message.

(declare-function project-files "project" (project &optional dirs))
(declare-function project-root "project" (project))

;;;; Names behind an @

(defconst efrit-attach--mention
  "\\(?:\\`\\|[ \t\n(]\\)\\(@\\(?:\"\\([^\"\n]+\\)\"\\|\\([^ \t\n\"]+\\)\\)\\)"
  "Regular expression for an @ and a name, which is quoted if it has blanks.")

(defconst efrit-attach--heading
  "\\`\\[Attached \\(\\(?:file\\|image\\) [^\n]*\\):\\]\\(?:\n\\|\\'\\)"
  "Regular expression for the first line of an attached file's block.")

(defconst efrit-attach--most-names 500
  "Most names behind an @ in one message that are looked for on the disk.")

(defconst efrit-attach--longest-name 1000
  "Most characters of a name behind an @ that may be that of a file.")

(defun efrit-attach-mentions (text root)
  "Return the files that TEXT names behind an @, as (START END PATH) lists.
START and END are indexes into TEXT.  PATH is the name from ROOT on, or the
whole name of a file outside of ROOT.  What names no file is left out."
  (let ((start 0)
        (left efrit-attach--most-names)
        found)
    (while (and (>= (setq left (1- left)) 0)
                (string-match efrit-attach--mention text start))
      (let* ((begin (match-beginning 1))
             (end (match-end 1))
             (quoted (match-string 2 text))
             (name (or quoted (efrit-attach--without-punctuation (match-string 3 text) root))))
        (setq start end)
        (when-let* ((path (efrit-attach--path name root)))
          (push (list begin (if quoted end (+ begin 1 (length name))) path) found))))
    (nreverse found)))

(defun efrit-attach--without-punctuation (name root)
  "Return NAME without the punctuation at its end, if that is a file, or NAME.
A sentence may end behind the name of a file below ROOT."
  (let ((trimmed name)
        (left 9))
    (while (and (not (efrit-attach--path trimmed root))
                (>= (setq left (1- left)) 0)
                (string-match-p "[].,;:!?)'>]\\'" trimmed))
      (setq trimmed (substring trimmed 0 -1)))
    (if (efrit-attach--path trimmed root) trimmed name)))

(defun efrit-attach--path (name root)
  "Return the path of the file NAME for the sidecar, or nil if it is no file.
It is relative to ROOT if the file is below ROOT."
  ;; Expanding a remote name may open a connection.
  (when (and (<= 1 (length name) efrit-attach--longest-name)
             (member (file-remote-p name) (list nil (file-remote-p root))))
    (let ((file (expand-file-name name root))
          (root (expand-file-name root)))
      (and (equal (file-remote-p file) (file-remote-p root))
           (file-regular-p file)
           (if (string-prefix-p root file)
               (substring file (length root))
             (file-local-name file))))))

;;;; Attaching

(defun efrit-attach-blocks (loop task texts)
  "Return the blocks of the files that TASK, a message to LOOP, names behind an @.
TEXTS are all texts of the message, which share its tier with the files.  Ask
the person about a file that usually holds secrets.  Signal a `user-error' if a
file cannot be attached."
  (when-let* ((paths (efrit-attach--paths task (efrit-loop-root loop))))
    (efrit-sync-flush)
    (let ((attached (efrit-attach--request loop paths texts nil)))
      (when-let* ((secret (efrit-attach--confirm paths attached)))
        (setq attached (efrit-attach--request loop paths texts secret)))
      (dolist (one attached)
        (when (plist-get one :problem)
          (user-error "%s; nothing was sent" (plist-get one :problem))))
      (cl-mapc (lambda (path one) (efrit-attach--take loop path one)) paths attached)
      (cl-loop for one in attached append (append (plist-get one :blocks) nil)))))

(defun efrit-attach-heading (block)
  "Return what BLOCK, a plist, attaches, such as \"file a.txt, 2 lines\", or nil."
  (let ((text (plist-get block :text)))
    (and (stringp text)
         (string-match efrit-attach--heading text)
         (match-string 1 text))))

(defun efrit-attach--paths (task root)
  "Return the paths of the files of ROOT that TASK names, each once."
  (delete-dups (mapcar #'caddr (efrit-attach-mentions task root))))

(defun efrit-attach--params (loop paths texts)
  "Return the params of `files/attach' for PATHS beside TEXTS in LOOP."
  (append (list :session_id (efrit-loop-id loop) :paths (vconcat paths)
                :beside (vconcat (mapcar #'efrit-json-replace-invalid texts))
                :model (efrit-loop-next-option loop 'efrit-claude-model))
          (efrit-provider-endpoint loop)))

(defun efrit-attach--request (loop paths texts confirmed)
  "Have the sidecar attach PATHS beside TEXTS; return the attachments, plists.
CONFIRMED are the paths about whose secrets the person of LOOP was asked."
  (append (plist-get (efrit-sidecar-request
                      'files/attach (append (efrit-attach--params loop paths texts)
                                            (list :confirmed (vconcat confirmed))))
                     :attachments)
          nil))

(defun efrit-attach--confirm (paths attached)
  "Ask about each of ATTACHED, made of PATHS, that has a question.
Return the paths asked about.  Signal a `user-error' at the first no."
  (cl-loop for path in paths
           for one in attached
           for question = (plist-get one :question)
           when question
           collect (if (and (not noninteractive) (y-or-n-p (concat (efrit-permissions-visible question t) " ")))
                       path
                     (user-error "%s was not attached, and nothing was sent" path))))

(defun efrit-attach--take (loop path one)
  "Record in LOOP that the model knows the file PATH, attached as ONE, a plist.
Tell the person if only its beginning is attached."
  (unless (string-prefix-p "image" (or (efrit-attach-heading (car (append (plist-get one :blocks) nil)))
                                       ""))
    (efrit-read-files-note loop (plist-get one :path) (plist-get one :stamp)))
  (when (eq (plist-get one :cut) t)
    (message "%s is attached as its beginning, %s; the model can read on" path
             (plist-get one :facts))))

;;;; Completion

(defvar-local efrit-attach--where nil
  "Function that returns (BEGIN ROOT LOOP) in this buffer, or nil.
The text from BEGIN on is a message in the project ROOT; LOOP may be nil.")

(defvar-local efrit-attach--files nil
  "Cons of the time when the project's files were listed, and their names; or nil.")

(defun efrit-attach-complete ()
  "Complete the name of a project's file behind an @ in a message.
This is for `completion-at-point-functions'."
  (pcase-let ((`(,begin ,root) (and efrit-attach--where (funcall efrit-attach--where)))
              (end (point)))
    (when (and begin (>= end begin))
      (save-excursion
        (skip-chars-backward "^ \t\n@" begin)
        (when (and (eq (char-before) ?@)
                   (> (point) begin)
                   (or (= (1- (point)) begin)
                       (memq (char-before (1- (point))) '(?\s ?\t ?\n ?\())))
          (list (point) end
                (completion-table-dynamic (lambda (_) (efrit-attach-files root)))
                :exclusive 'no
                :exit-function #'efrit-attach--quote))))))

(defun efrit-attach-files (root)
  "Return the names of the files of the project ROOT, from ROOT on.
They are cached for `efrit-reply-box-files-for'."
  (unless (and efrit-attach--files
               (< (- (float-time) (car efrit-attach--files)) efrit-reply-box-files-for))
    (setq efrit-attach--files (cons (float-time) (efrit-attach--list root))))
  (cdr efrit-attach--files))

(defun efrit-attach--list (root)
  "Return the names of the files of the project ROOT, relative to ROOT."
  (require 'project)
  (let ((root (expand-file-name root)))
    (mapcar (lambda (file)
              ;; Expanding a remote name is much slower than comparing it.
              (string-remove-prefix root (if (string-prefix-p root file) file
                                           (expand-file-name file))))
            (project-files (or (project-current nil root) (cons 'transient root))))))

(defun efrit-attach--quote (name status)
  "Quote NAME, just completed, if it has blanks and is whole by STATUS."
  (when (and (memq status '(finished sole exact))
             (string-match-p "[ \t]" name))
    (let ((start (- (point) (length name))))
      (unless (eq (char-before start) ?\")
        (save-excursion
          (goto-char start)
          (insert "\""))
        (insert "\"")))))

;;;; What will go along

;; Beside each name that attaches a file an overlay says how large it is, or why
;; it cannot go along.  It follows the text when Emacs is idle.

(defconst efrit-attach--delay 0.2
  "Seconds that Emacs is idle before the overlays follow a change.")

(defvar-local efrit-attach--timer nil
  "The timer before the next update of the overlays, or nil.")

(defvar-local efrit-attach--labels nil
  "Alist from the paths that were asked about last to the texts beside them.")

(defun efrit-attach-watch (where)
  "Complete files behind an @ in this buffer, and show what will go along.
WHERE is as `efrit-attach--where'."
  (setq efrit-attach--where where)
  (add-hook 'completion-at-point-functions #'efrit-attach-complete nil t)
  (add-hook 'after-change-functions #'efrit-attach--show-later nil t)
  (add-hook 'kill-buffer-hook #'efrit-attach--end-timer nil t))

(defun efrit-attach-watch-minibuffer ()
  "Complete files behind an @ in this minibuffer, and show what will go along.
The project is that of the buffer from which the minibuffer was entered."
  (let* ((buffer (window-buffer (minibuffer-selected-window)))
         (folder (buffer-local-value 'default-directory buffer))
         (here (buffer-local-value 'efrit-loop-here buffer))
         (root (and (not (file-remote-p folder)) (efrit-attach--root folder))))
    (when root
      (use-local-map (efrit-make-keymap '(("TAB" completion-at-point)) (current-local-map)))
      (efrit-attach-watch
       (lambda ()
         (list (minibuffer-prompt-end) root (or here (efrit-loop-latest root))))))))

(defun efrit-attach--root (folder)
  "Return the root of the project of FOLDER, or FOLDER itself."
  (require 'project)
  (file-name-as-directory
   (expand-file-name (if-let* ((project (project-current nil folder)))
                         (project-root project)
                       folder))))

(defun efrit-attach--end-timer ()
  "Cancel the next update of the overlays."
  (efrit-stop-timer efrit-attach--timer))

(defun efrit-attach--show-later (&rest _)
  "Update the overlays once Emacs is idle."
  (efrit-attach--end-timer)
  (setq efrit-attach--timer
        (run-with-idle-timer efrit-attach--delay nil
                             (let ((buffer (current-buffer)))
                               (lambda () (efrit-with-live-buffer buffer (efrit-attach-show)))))))

(defun efrit-attach-show ()
  "Mark the names in this message that attach files, and show their sizes.
Do nothing in a minibuffer that was left meanwhile.  Files on another machine
are not looked for while the person types."
  (efrit-attach--end-timer)
  (pcase-let ((`(,begin ,root ,loop) (and efrit-attach--where (funcall efrit-attach--where))))
    ;; A narrowed buffer may end before the message.
    (unless (or (null root) (file-remote-p root) (buffer-narrowed-p))
      (let* ((text (buffer-substring-no-properties begin (point-max)))
             (mentions (efrit-attach-mentions text root))
             (paths (delete-dups (mapcar #'caddr mentions))))
        (unless (equal paths (mapcar #'car efrit-attach--labels))
          (setq efrit-attach--labels
                (mapcar (lambda (path) (cons path (efrit-attach--size-label path root))) paths))
          (when (and loop paths)
            (efrit-attach--count loop paths text)))
        (efrit-attach--place-overlays begin mentions)))))

(defun efrit-attach--place-overlays (begin mentions)
  "Replace the overlays from BEGIN on, where the message begins, as MENTIONS are."
  (remove-overlays begin (point-max) 'efrit-attached t)
  (pcase-dolist (`(,start ,end ,path) mentions)
    (let ((overlay (make-overlay (+ begin start) (+ begin end)))
          (label (alist-get path efrit-attach--labels nil nil #'equal)))
      (overlay-put overlay 'efrit-attached t)
      (overlay-put overlay 'evaporate t)
      (overlay-put overlay 'face 'efrit-attached)
      (overlay-put overlay 'after-string label))))

(defun efrit-attach--count (loop paths text)
  "Have the sidecar of LOOP count PATHS beside TEXT, and show its answer."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'files/attach (append (efrit-attach--params loop paths (list text)) '(:blocks :json-false))
     :success (lambda (reply)
                (efrit-with-live-buffer buffer
                  (when (equal paths (mapcar #'car efrit-attach--labels))
                    (setq efrit-attach--labels
                          (cl-mapcar (lambda (path one)
                                       (cons path (efrit-attach--counted-label one)))
                                     paths (plist-get reply :attachments)))
                    (efrit-attach-show))))
     :error #'ignore)))

(defun efrit-attach--label (text face)
  "Return TEXT in FACE as the label behind a name; the cursor stays before it."
  (propertize (format " (%s)" text) 'face face 'cursor t))

(defun efrit-attach--size-label (path root)
  "Return the label of the file PATH below ROOT by its size alone."
  (efrit-attach--label
   (file-size-human-readable
    (or (file-attribute-size (file-attributes (expand-file-name path root))) 0)
    'si " " "B")
   'efrit-note))

(defun efrit-attach--counted-label (one)
  "Return the label of ONE, an attachment that the sidecar counted."
  (cond ((plist-get one :problem)
         (efrit-attach--label (format "not attached: %s" (plist-get one :problem)) 'efrit-failed))
        ((plist-get one :question)
         (efrit-attach--label "may hold secrets: you are asked" 'efrit-busy))
        (t (efrit-attach--label (format "%s, ~%s tokens" (plist-get one :facts)
                                        (efrit-show-number (plist-get one :tokens)))
                                'efrit-note))))

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
    (pcase (if (file-remote-p (efrit-loop-root loop))
               (efrit-context--reported-instructions loop)
             (when-let* ((file (efrit-context--instruction-file loop)))
               (cons (file-name-nondirectory file) (efrit-context--beginning file))))
      (`(,name . ,text)
       (list (format "[Instructions of the project, from %s:]\n%s" name text))))))

(defun efrit-context--reported-instructions (loop)
  "Return (NAME . TEXT) of the first file of instructions of LOOP, or nil.
The sidecar, which is on another machine, reports on the files.  Notify the
observers of LOOP of each earlier file that may not be sent."
  (let ((reports (efrit-sidecar-request
                  'changes/check
                  (list :session_id (efrit-loop-id loop) :paths (vconcat efrit-instruction-files)
                        :contents (list :most_bytes efrit-instruction-most-bytes)))))
    (cl-loop for name in efrit-instruction-files
             for report across (plist-get reports :files)
             for problem = (efrit-context--report-problem report)
             when problem
             do (efrit-loop-note-once loop (format "%s was not sent: %s" name problem))
             else if (eq (plist-get report :is_file) t)
             return (cons name (efrit-context--reported-text name report)))))

(defun efrit-context--report-problem (report)
  "Return why the file of REPORT, a plist of the sidecar, may not be sent, or nil."
  (or (plist-get report :problem)
      (and (eq (plist-get report :exists) t)
           (or (eq (plist-get report :secret) t)
               (efrit-visit-secret-p (plist-get report :file)))
           "it may hold secrets")))

(defun efrit-context--reported-text (name report)
  "Return the text of the file NAME, or a note if REPORT has no content of it."
  (if-let* ((content (plist-get report :content)))
      (car (efrit-file-decode (base64-decode-string content) name))
    (format "[not sent: it has %d bytes; read %s]" (plist-get report :size) name)))

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

(defun efrit-do-root ()
  "Return the root of the project here, or ask for a folder.
Ask before returning the home folder, even if it is a project."
  (let ((root (or (if (file-remote-p default-directory)
                      (efrit-host-find-root default-directory)
                    (when-let* ((project (project-current)))
                      (project-root project)))
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
      (efrit-undo-resume loop)
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
`efrit-do-ask-above'.  CONTEXT is as from `efrit-context-current'.
First the person is asked about the project's MCP servers, if that is due."
  (efrit-mcp-decide loop)
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
                                          (efrit-provider-label
                                           (efrit-provider-of loop)
                                           (efrit-loop-next-option loop 'efrit-claude-model))))))

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
  (when (and (efrit-do-home-p root)
             (not (efrit-loop-latest root))
             (or noninteractive
                 (not (yes-or-no-p "Really work in your whole home folder? "))))
    (user-error "Run this in the folder of the project")))

(defun efrit-do--ask-for-root ()
  "Ask for the folder to work in; do not offer the home folder."
  (when noninteractive
    (user-error "%s is in no project; start in one" default-directory))
  (let* ((folder (read-directory-name "No project is here.  Work in: " nil nil t
                                      (and (efrit-do-home-p default-directory) ""))))
    (if (string-empty-p folder) default-directory folder)))

(defun efrit-do-home-p (folder)
  "Return non-nil if FOLDER is the home folder of its machine."
  (let ((home (concat (file-remote-p folder) "~")))
    (string= (file-name-as-directory (efrit-host-true-name folder))
             (file-name-as-directory (efrit-host-true-name home)))))

(defun efrit-do--register-loop (loop)
  "Add LOOP to the loops of this Emacs, and return it."
  (efrit-loop-add loop)
  (efrit-loop-observe loop #'efrit-do--note-title)
  (efrit-loop-observe loop #'efrit-do--note-window)
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
    (efrit-do--take-model loop (plist-get status :provider) (plist-get status :model))
    (efrit-loop-take-usage loop status)
    (efrit-loop-count-from-here loop)))

(defun efrit-do--take-model (loop provider model)
  "Have LOOP, a resumed one, use the MODEL of PROVIDER, as its latest turn did.
Of a provider only the name is stored: its address and its headers are the
person's.  If there is none of this name, LOOP keeps its options."
  (when model
    (let ((name (if (equal provider "") nil provider)))
      (setf (efrit-loop-last-model loop) (list name model))
      (when (if name (efrit-provider-plist name)
              (null (efrit-loop-option loop 'efrit-endpoint-provider)))
        (efrit-provider-use loop name model)))))

(defun efrit-do-resumed-note (loop)
  "Return a sentence about the model of LOOP, a resumed one, or nil.
It is nil if the model is that of new sessions, too."
  (pcase-let* ((`(,provider ,model) (efrit-loop-last-model loop))
               (last (and model (efrit-provider-label provider model)))
               (label (lambda (loop)
                        (efrit-provider-label (efrit-provider-of loop)
                                              (efrit-provider-value loop 'efrit-claude-model))))
               (now (funcall label loop)))
    (cond ((null model) nil)
          ((not (equal model (efrit-loop-option loop 'efrit-claude-model)))
           (format "The model is %s; that of the last turn was %s.  %s" now
                   (efrit-permissions-visible last t)
                   (if (or (null provider) (efrit-provider-plist provider))
                       "M-x efrit-model chooses it again."
                     (format "`efrit-providers' has no %s: M-x efrit-add-provider adds it again."
                             (efrit-permissions-visible provider t)))))
          ((not (equal now (funcall label nil)))
           (format "The model is %s, as in the last turn." (efrit-permissions-visible now t))))))

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

(defun efrit-do--note-window (loop event)
  "If EVENT began a turn of LOOP and its model's window is only assumed, say so.
Of a model among those of its provider the server was asked already."
  (let* ((model (efrit-loop-model loop))
         (provider (efrit-provider-plist (efrit-loop-option loop 'efrit-endpoint-provider))))
    (when (and (eq (car event) 'begun) (not (eq t (plist-get model :window_known))))
      (efrit-loop-note-once
       loop (format "The window of %s is not known: %s tokens are assumed; %s"
                    (plist-get model :name) (efrit-show-number (plist-get model :window))
                    (if (assoc (plist-get model :name) (plist-get provider :models))
                        "set its `:window' in `efrit-providers'"
                      "M-x efrit-add-provider asks the server"))))))

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
  (efrit-mcp-decide loop)
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
