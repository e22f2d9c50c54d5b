;;; efrit-tools-code.el --- Tools for definitions, references and outlines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tools that ask xref, imenu and the tags of a project about code.

;;; Code:

(require 'efrit)
(require 'efrit-tools)
(require 'efrit-tools-buffers)

;; These libraries are loaded when they are used.
(eval-when-compile
  (require 'etags)
  (require 'project))
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-backend-references "xref" (backend identifier))
(declare-function xref-item-location "xref" (item))
(declare-function xref-item-summary "xref" (item))
(declare-function xref-location-group "xref" (location))
(declare-function xref-location-line "xref" (location))
(declare-function xref-location-marker "xref" (location))
(declare-function xref-make "xref" (summary location))
(declare-function xref-match-item-p "xref" (object))

;;; Tags of a project

;; Uses the TAGS file of a project temporarily, without a question, and without
;; trusting it: it may name any file.

(declare-function tag-exact-match-p "etags" (tag))
(declare-function tag-implicit-name-match-p "etags" (tag))
(declare-function etags-snarf-tag "etags" (&optional use-explicit))
(declare-function file-of-tag "etags" (&optional relative))
(declare-function visit-tags-table-buffer "etags" (&optional cont cbuf))
(declare-function xref-make-etags-location "etags" (tag-info file))

(defun efrit-tags-call (call body)
  "Call the function BODY with the tags of CALL's project, else the person's.
Its argument is non-nil if there is a tags table.  Afterwards, restore the
person's selection of tags tables."
  (require 'etags)
  (let* ((own (expand-file-name "TAGS" (efrit-visit-root call)))
         (tags-file-name (if (file-regular-p own) own tags-file-name))
         (tags-table-list (if (file-regular-p own) (list own) tags-table-list))
         (tags-table-computed-list nil)
         (tags-table-computed-list-for nil)
         (tags-table-list-pointer nil)
         (tags-table-list-started-at nil)
         (tags-table-set-list nil)
         (default-tags-table-function nil))
    (funcall body (or tags-file-name tags-table-list))))

(defun efrit-tags-definitions (name)
  "Return the definitions of NAME in the tags, as xref items.
The etags backend of Emacs 30 is not used: it connects to any machine named
in the tags, and signals an error if a file is gone."
  (let ((buffer (current-buffer))
        (next nil)
        (found nil))
    (save-excursion
      (while (visit-tags-table-buffer next buffer)
        (setq next t)
        (goto-char (point-min))
        (while (search-forward name nil t)
          (when (or (tag-exact-match-p name) (tag-implicit-name-match-p name))
            (forward-line 0)
            (let ((tag (etags-snarf-tag)))
              (push (xref-make (if (eq (car tag) t) "(filename match)" (car tag))
                               (xref-make-etags-location tag (expand-file-name (file-of-tag))))
                    found))))))
    (nreverse found)))

;;; Definitions, references and outlines

;; Asks the person's backends of xref and imenu, without prompts.  If a backend
;; would search files in folders, a child process does the search instead.

(defconst efrit-code--most-columns 300
  "Most columns of a line in a result.")

(defconst efrit-code--limit "ulimit -d 786432 2>/dev/null; exec \"$@\""
  "Script that runs the command in its arguments with 768 MiB of memory.
A pattern in a .gitignore of the project may need memory without end.")

(cl-defstruct (efrit-code-place (:constructor efrit-code-place-create) (:copier nil))
  "A place in a file: FILE, LINE or nil, and TEXT, the text of the line."
  file line text)

(efrit-define-tool find_definition
    ((symbol "string" "")
     (path "string" "" :optional t)
     (line "integer" "" :optional t :minimum 1))
  "Definitions of a symbol, by xref (language server, tags, Lisp)."
  :policy allow
  (efrit-code--found-result call symbol
                            (efrit-code--ask call symbol path line #'xref-backend-definitions)
                            "definition"))

(efrit-define-tool find_references
    ((symbol "string" "")
     (path "string" "" :optional t)
     (line "integer" "" :optional t :minimum 1))
  "References to a symbol, by xref, or by text search without an index."
  :policy allow
  :async t
  (let ((answer (efrit-code--ask call symbol path line #'efrit-code--references)))
    (if (eq (cdr answer) 'search)
        (efrit-code--search call symbol path (car answer))
      (efrit-tool-finish
       call (efrit-code--found-result call symbol answer "reference")))))

(efrit-define-tool buffer_outline
    ((path "string" "File or buffer"))
  "Definitions or headings in a file, nested, with their lines, by imenu."
  :policy allow
  :guard (lambda (loop arguments)
           (efrit-buffer-tools-guard loop (plist-get arguments :path)))
  (let ((buffer (get-buffer path)))
    (if buffer
        (with-current-buffer buffer
          (efrit-buffer-tools-check)
          (efrit-visit-quietly #'efrit-code--outline path))
      (efrit-visit-with (efrit-visit-existing-file call path) #'efrit-code--outline path))))

;;;; Asking xref

(defun efrit-code--ask (call symbol path line query)
  "Ask xref about SYMBOL for CALL by QUERY, a function of backend and name.
Ask in the file PATH at LINE; without PATH, ask in open files of the project
until one has places.  Return (BACKEND . PLACES); BACKEND is nil if there is
none, PLACES is `search' if the backend would search folders."
  (when (string-blank-p symbol)
    (user-error "Give a symbol"))
  (require 'xref)
  (if path
      (efrit-visit-with (efrit-visit-existing-file call path)
                        (lambda ()
                          (efrit-code--go-to symbol path line)
                          (efrit-code--ask-here call symbol query)))
    (when line
      (user-error "Give a path with line %d" line))
    (efrit-code--ask-each call symbol query)))

(defun efrit-code--go-to (symbol path line)
  "Move to SYMBOL in LINE of this buffer; without LINE, to its first occurrence.
PATH is the name of the file for an error."
  (widen)
  (goto-char (point-min))
  (when line
    (forward-line (1- line)))
  (let ((case-fold-search nil))
    (if (search-forward symbol (and line (line-end-position)) t)
        (goto-char (match-beginning 0))
      (when line
        (user-error "%s is not in line %d of %s" symbol line path)))))

(defun efrit-code--ask-each (call symbol query)
  "Ask by QUERY about SYMBOL in one open file of each mode in CALL's project.
Return as `efrit-code--ask' does."
  (let ((asked nil)
        (answer nil))
    (dolist (buffer (efrit-visit-buffers call))
      (with-current-buffer buffer
        (unless (or (consp (cdr answer)) (member major-mode asked))
          (push major-mode asked)
          (let ((found (save-excursion
                         (save-restriction
                           (efrit-visit-and-release
                            #'efrit-code--ask-here call symbol query)))))
            (when (or (null answer) (cdr found))
              (setq answer found))))))
    (or answer
        (let ((default-directory (efrit-visit-root call)))
          (with-temp-buffer
            (efrit-visit-and-release #'efrit-code--ask-here call symbol query))))))

(defun efrit-code--ask-here (call symbol query)
  "Ask the backend of this buffer by QUERY about SYMBOL for CALL.
Return as `efrit-code--ask' does."
  (efrit-tags-call call
    (lambda (has-tags)
      (let* ((root (efrit-visit-root call))
             ;; A backend that needs the project must not prompt for it.
             (project-find-functions (list (lambda (_) (cons 'transient root))))
             (backend (xref-find-backend)))
        (if (and (eq backend 'etags) (not has-tags))
            (cons nil (and (eq query #'efrit-code--references) 'search))
          (let* ((here (ignore-errors (xref-backend-identifier-at-point backend)))
                 ;; The text at point may have properties that the backend needs.
                 (identifier (if (and here (string= here symbol)) here symbol))
                 (found (efrit-code--query backend query identifier)))
            (cons backend (if (eq found 'search) 'search
                            (efrit-code--sorted
                             call (mapcar (lambda (item) (efrit-code--place call item))
                                          (seq-take found efrit-code-most-places)))))))))))

(defun efrit-code--query (backend query identifier)
  "Call QUERY with BACKEND and IDENTIFIER within `efrit-code-seconds'.
Prevent project.el from remembering the project."
  (cl-letf (((symbol-function 'project-remember-project) #'ignore))
    (with-timeout (efrit-code-seconds
                   (user-error "%s did not answer within %s seconds"
                               backend efrit-code-seconds))
      (if (and (eq backend 'etags) (eq query #'xref-backend-definitions))
          (efrit-tags-definitions identifier)
        (funcall query backend identifier)))))

(defun efrit-code--references (backend identifier)
  "Return the references to IDENTIFIER known to BACKEND.
Return `search' if BACKEND would search folders."
  (catch 'efrit-code--search
    (cl-letf (((symbol-function 'xref-references-in-directory)
               (lambda (&rest _) (throw 'efrit-code--search 'search))))
      (xref-backend-references backend identifier))))

;;;; Places

(defun efrit-code--sorted (call places)
  "Return PLACES without duplicates, sorted by file, as named for CALL, and line."
  (efrit-visit-sort call places #'efrit-code-place-file #'efrit-code-place-line))

(defun efrit-code--place (call item)
  "Return the `efrit-code-place' of ITEM, an xref item, for CALL."
  (let* ((location (xref-item-location item))
         (group (expand-file-name (xref-location-group location) (efrit-visit-root call)))
         (line (xref-location-line location)))
    (or (and (not (and line (xref-match-item-p item)))
             (equal (file-remote-p group) (file-remote-p (efrit-visit-root call)))
             ;; If the file were a named pipe, Emacs would wait for ever.
             (or (get-file-buffer group) (file-regular-p group))
             (efrit-code--place-of-marker
              call item (ignore-errors (xref-location-marker location))))
        (efrit-code-place-create :file group :line line :text (xref-item-summary item)))))

(defun efrit-code--place-of-marker (call item marker)
  "Return the place at MARKER, or nil; ITEM is the xref item of MARKER.
Do not read the line if its file is outside the project of CALL."
  (when-let* ((buffer (and marker (marker-buffer marker)))
              (file (buffer-file-name buffer)))
    (with-current-buffer buffer
      (save-excursion
        (goto-char marker)
        (efrit-code-place-create
         :file file :line (line-number-at-pos nil t)
         :text (if (efrit-visit-inside-p call file)
                   (buffer-substring-no-properties (line-beginning-position)
                                                   (line-end-position))
                 (xref-item-summary item)))))))

(defun efrit-code--place-line (call place)
  "Return a line with the file, line number and text of PLACE, for CALL."
  (concat (efrit-visit-name call (efrit-code-place-file place))
          (if (efrit-code-place-line place) (format ":%d" (efrit-code-place-line place)) "")
          ": "
          (truncate-string-to-width
           (if (efrit-visit-secret-p (efrit-code-place-file place))
               "(a file of secrets)"
             (efrit-visit-one-line (efrit-trim (or (efrit-code-place-text place) ""))))
           efrit-code--most-columns nil nil "…")))

(defun efrit-code--found-result (call symbol answer thing)
  "Return the result for CALL about SYMBOL, from ANSWER of `efrit-code--ask'.
THING is the noun for a place: \"definition\" or \"reference\"."
  (pcase-let ((`(,backend . ,places) answer))
    (if (null places)
        (efrit-tool-result (efrit-tool-mark-own (efrit-code--not-found-text backend symbol thing))
                           :summary (format "No %s of %s was found." thing symbol)
                           :gist (format "no %s" thing))
      (let ((heading (format "%s of %s (%s)%s" (efrit-count-text (length places) thing)
                             symbol backend
                             (if (< (length places) efrit-code-most-places) ":"
                               ", the first; there may be more:")))
            (lines (mapcar (lambda (place) (efrit-code--place-line call place)) places)))
        (efrit-tool-result (string-join (cons (efrit-tool-mark-own heading) lines) "\n")
                           :summary (concat heading " " (car lines))
                           :gist (efrit-count-text (length places) thing))))))

(defun efrit-code--not-found-text (backend symbol thing)
  "Return the text for the model if BACKEND found no THING of SYMBOL."
  (concat (if backend
              (format "%s found no %s of %s" backend thing symbol)
            (format "No language server and no TAGS here to look up %s" symbol))
          "; list_symbols and search_content search the text."))

;;;; Searching text

(defun efrit-code--search (call symbol path backend)
  "Search the project of CALL for SYMBOL as text, and finish CALL.
The syntax table of the file PATH, or the standard one, delimits symbols;
BACKEND is the xref backend without an index, or nil."
  (let ((syntax (if path
                    (efrit-visit-with (efrit-visit-existing-file call path) #'syntax-table)
                  (standard-syntax-table))))
    (efrit-child-run
     call (let ((default-directory (efrit-visit-root call)))
            (efrit-code--search-command symbol))
     (lambda (output end)
       (efrit-tool-finish
        call (efrit-code--search-result call symbol backend syntax output end)))
     :directory (efrit-visit-root call)
     :seconds 60 :most 10000000)))

(defun efrit-code--search-command (symbol)
  "Return the command, a list of strings, to search this directory for SYMBOL."
  (append
   (list "sh" "-c" efrit-code--limit "sh")
   (if-let* ((rg (let ((exec-path (efrit-exec-path))) (executable-find "rg" t))))
       (list rg "--no-config" "--line-number" "--no-heading" "--with-filename" "--null"
             "--color=never" "--word-regexp" "--fixed-strings" "--sort=path" "-e" symbol "./")
     (list "grep" "-rnIHwFZ" "--exclude-dir=.git" "-e" symbol "."))))

(defun efrit-code--search-result (call symbol backend syntax output end)
  "Return the result for CALL of a search for SYMBOL with the output OUTPUT.
BACKEND and SYNTAX are as in `efrit-code--search', END as in
`efrit-child-run'."
  (when (and (numberp end) (> end 1) (string-empty-p output))
    (error "The search for %s failed (%s)" symbol end))
  (let* ((method (format "by text%s" (if backend (format "; %s has no index" backend) "")))
         (places (efrit-code--matches call symbol syntax
                                      (decode-coding-string output 'utf-8-unix)))
         (result (efrit-code--found-result call symbol (cons method places) "reference")))
    (if (null places)
        (efrit-tool-result
         (efrit-tool-mark-own (format "%s is nowhere in the project (searched %s)." symbol method)))
      (when (symbolp end)
        (plist-put result :text (concat (plist-get result :text)
                                        "\n"
                                        (efrit-tool-mark-own
                                         "[The search was cut; search_content shows all.]"))))
      result)))

(defun efrit-code--matches (call symbol syntax output)
  "Return the places in OUTPUT, of a search for CALL, that have SYMBOL as a whole.
SYNTAX is the syntax table that delimits symbols."
  (with-syntax-table syntax
    (let ((regexp (if (string-match-p "\\`\\(?:\\sw\\|\\s_\\)+\\'" symbol)
                      (format "\\_<%s\\_>" (regexp-quote symbol))
                    (regexp-quote symbol)))
          (case-fold-search nil))
      (efrit-code--sorted
       call
       (seq-take
        (cl-loop for line in (split-string output "\n" t)
                 for place = (efrit-code--match call line)
                 when (and place
                           (string-match-p regexp (efrit-code-place-text place))
                           (not (efrit-visit-secret-p (efrit-code-place-file place))))
                 collect place)
        efrit-code-most-places)))))

(defun efrit-code--match (call line)
  "Return the place that LINE of a search's output names, for CALL, or nil."
  (when (string-match "\\`\\(?:\\./\\)?\\([^\0]+\\)\0\\([0-9]+\\):\\(.*\\)\\'" line)
    (efrit-code-place-create
     :file (expand-file-name (match-string 1 line) (efrit-visit-root call))
     :line (string-to-number (match-string 2 line))
     :text (match-string 3 line))))

;;;; Outlines

(defun efrit-code--outline (path)
  "Return the outline of this buffer as a tool's result; PATH is its name there."
  (save-excursion
    (save-restriction
      (widen)
      (require 'imenu)
      (let* ((index (condition-case err
                        (funcall imenu-create-index-function)
                      (error (user-error "%s has no outline in %s: %s; use read_file or \
list_symbols" path major-mode (error-message-string err)))))
             (lines (efrit-code--outline-lines index 0))
             (heading (format "%s (%s): %d entries" path major-mode (length lines))))
        (efrit-tool-result (string-join (cons (efrit-tool-mark-own heading) lines) "\n")
                           :summary (concat heading ": "
                                            (mapconcat #'efrit-trim lines ", "))
                           :gist (if (= (length lines) 1) "1 entry"
                                   (format "%d entries" (length lines))))))))

(defun efrit-code--outline-lines (index depth)
  "Return a list of lines for INDEX, of imenu, at nesting level DEPTH, from 0."
  (cl-loop for item in index
           when item append
           (if (and (consp (cdr item)) (listp (cadr item)) (not (functionp (cadr item))))
               (cons (efrit-code--outline-line (car item) nil depth)
                     (efrit-code--outline-lines (cdr item) (1+ depth)))
             (list (efrit-code--outline-line
                    (car item)
                    (if (consp (cdr item)) (cadr item) (cdr item))
                    depth)))))

(defun efrit-code--outline-line (name position depth)
  "Return a line about NAME at POSITION, nil for a group, at nesting level DEPTH."
  (let ((position (if (overlayp position) (overlay-start position) position)))
    (concat (make-string (* 2 depth) ?\s)
            (if (integer-or-marker-p position)
                (format "%d " (line-number-at-pos position t))
              "")
            (truncate-string-to-width (efrit-visit-one-line (substring-no-properties name))
                                      efrit-code--most-columns nil nil "…"))))

(provide 'efrit-tools-code)
;;; efrit-tools-code.el ends here
