;;; efrit-attach.el --- Files that a message attaches  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A file of the project that a message names behind an @ is attached to it:
;; completes the names, shows while the person types what will go along, and
;; has the sidecar turn the files into blocks of the message.

;;; Code:

(require 'efrit)
(require 'efrit-edit)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-sync)

(declare-function project-files "project" (project &optional dirs))
(declare-function project-root "project" (project))

;;; Names behind an @

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

;;; Attaching

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
  (list :session_id (efrit-loop-id loop) :paths (vconcat paths)
        :beside (vconcat (mapcar #'efrit-json-replace-invalid texts))
        :model (efrit-loop-next-option loop 'efrit-claude-model)))

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
    (efrit-read-files-note loop (expand-file-name path (efrit-loop-root loop))))
  (when (eq (plist-get one :cut) t)
    (message "%s is attached as its beginning, %s; the model can read on" path
             (plist-get one :facts))))

;;; Completion

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

;;; What will go along

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

(provide 'efrit-attach)
;;; efrit-attach.el ends here
