;;; efrit-memory.el --- What earlier sessions learned  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Commands to search the sidecar's memory while typing, to show the timeline
;; of an observation, to save the region, and to write a context pack.

;;; Code:

(require 'efrit)
(require 'efrit-sidecar)
(require 'icomplete)
(require 'project)

(defvar efrit-memory--history nil
  "History of memory searches.")

(defvar efrit-memory--last-search nil
  "A cons of the last query and its results, or nil.")

(defvar-local efrit-memory--id nil
  "The id, a number, of the observation that this buffer shows, or nil.")

;;; The mode

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

;;; Commands

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

(provide 'efrit-memory)
;;; efrit-memory.el ends here
