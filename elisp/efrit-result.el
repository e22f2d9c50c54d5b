;;; efrit-result.el --- Stored results in buffers of their own  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Shows results, messages, replies and the system text as the sidecar has
;; stored them.  Looking at a result does not count as a use, and costs no
;; tokens.

;;; Code:

(require 'compile)
(require 'diff-mode)
(require 'efrit)
(require 'efrit-change)
(require 'efrit-loop)
(require 'efrit-permissions)
(require 'efrit-rpc)
(require 'efrit-sessions)
(require 'efrit-sidecar)
(require 'efrit-status)
(require 'efrit-transcript)
(require 'so-long)

(defun efrit-result-show (session handle)
  "Show the result HANDLE of the session whose id is SESSION in its own buffer."
  (efrit-result--fetch
   (format "*efrit result: %s %s*" session handle) session
   'worklog/show (list :handle handle :most efrit-result-most-characters)
   (lambda (result)
     (let ((text (or (plist-get result :text) "")))
       (efrit-result--write
        text (- (or (plist-get result :characters) 0) (length text)))
       (efrit-result--dress session result)))))

(defun efrit-result-show-turn (loop turn kind)
  "Show the text of TURN of LOOP; its KIND is \"request\" or \"reply\"."
  (efrit-result--fetch
   (format "*efrit %s: %s t%d*" kind (efrit-loop-id loop) turn) (efrit-loop-id loop)
   'session/transcript nil
   (lambda (transcript)
     (efrit-result--write
      (mapconcat (lambda (entry) (efrit-export-entry entry 'markdown))
                 (seq-filter (lambda (entry)
                               (and (eql (plist-get entry :turn) turn)
                                    (equal (plist-get entry :kind) kind)))
                             (plist-get transcript :turns))
                 "")))))

(defun efrit-result-show-prefix (loop)
  "Show the system text and the tools of LOOP, as they were sent last."
  (efrit-result--fetch
   (format "*efrit system: %s*" (efrit-loop-id loop)) (efrit-loop-id loop)
   'session/messages nil
   (lambda (window)
     (efrit-result--write
      (concat (mapconcat (lambda (block) (plist-get block :text))
                         (plist-get window :system) "\n\n")
              "\n"
              (mapconcat (lambda (tool)
                           (format "\n%s\n  %s\n" (plist-get tool :name)
                                   (plist-get tool :description)))
                         (plist-get window :tools) ""))))))

(define-derived-mode efrit-result-mode special-mode "Efrit-Result"
  "Major mode that shows text stored by the sidecar."
  (efrit-keep-keys)
  (setq-local bidi-paragraph-direction 'left-to-right
              bidi-inhibit-bpa t)
  (setq truncate-lines t
        buffer-undo-list t))

;;;; Commands

;;;###autoload
(defun efrit-open-result ()
  "Show the stored result of the tool at point, or of the nearest one above."
  (interactive)
  (let* ((loop (efrit-loop-current))
         (use (or (efrit-result-use-here)
                  (user-error "No single tool call at point or above; TAB opens a group")))
         (handle (plist-get (efrit-use-result use) :handle)))
    (unless handle
      (user-error "%s has no stored result" (efrit-use-name use)))
    (efrit-result-show (efrit-loop-id loop) handle)))

(defun efrit-result-use-here ()
  "Return the tool use at point or the nearest one above, or nil.
Return nil as well on the line of a group of tool uses, or below it."
  (let ((place (point))
        item)
    (while (and (setq item (efrit-item-before place))
                (not (memq (efrit-item-kind item) '(use group))))
      (setq place (1- (efrit-item-start item))))
    (and item
         (eq (efrit-item-kind item) 'use)
         (efrit-item-data item))))

(defun efrit-result--fetch (name session method params show)
  "Call METHOD with PARAMS for the session whose id is SESSION.
Display the buffer NAME, and return it; call SHOW in it with the reply."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (efrit-result-mode)
      (efrit-result--write "Fetching from the sidecar..."))
    (pop-to-buffer buffer)
    (efrit-sidecar-request-async
     method (append (list :session_id session) params)
     :timeout nil
     :success (lambda (reply) (efrit-with-live-buffer buffer (funcall show reply)))
     :error (lambda (err)
              (efrit-with-live-buffer buffer (efrit-result--write (efrit-error-text err)))))
    buffer))

(defun efrit-result--write (text &optional more)
  "Replace the text of this buffer with TEXT.
If MORE is positive, add a line that MORE characters are stored."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (save-excursion
      (insert text)
      (when (> (or more 0) 0)
        (insert (propertize (format "\n[%d characters more are stored; see \
`efrit-result-most-characters']\n" more)
                            'face 'efrit-note))))
    (set-buffer-modified-p nil)))

(defun efrit-result--header (result)
  "Return the header line for RESULT, a plist, or nil if it has no handle."
  (and (plist-get result :handle)
       (replace-regexp-in-string
        "%" "%%"
        (format " %s  %s  %s tokens, %s" (plist-get result :handle)
                (efrit-line-words (efrit-export-use result))
                (efrit-show-tokens (plist-get result :tokens)) (plist-get result :state)))))

;;; Modes of results

;; A file's lines are shown in its major mode, a diff in diff-mode, and the
;; output of commands so that the errors in it can be visited.  The mode is one
;; that opens such files in this Emacs; neither its hooks nor variables of the
;; file or its folder take effect.

(defconst efrit-result--numbered "^\\(-?[0-9]+\\(?:, column [0-9]+\\)?\\)\t"
  "Regexp of the number before each line of a file in a result.")

(defconst efrit-result--editing
  '("edit_file" "multi_edit" "create_file" "rename_file" "delete_file" "format_buffer")
  "Names of the tools whose changes are shown as a diff.")

(defvar efrit-result-errors-map
  (efrit-make-keymap '(("g" undefined) ("C-c C-k" undefined)) compilation-minor-mode-map)
  "Keys on the output of a command, whose errors can be visited.
Unlike those of Compilation mode, none of them runs a command again.")

(defun efrit-result--dress (session result)
  "Give this buffer, with the text of RESULT in SESSION, the mode that fits."
  (let ((header (efrit-result--header result))
        (tool (plist-get result :tool))
        (loop (efrit-loop-of-session session)))
    (when loop
      (setq default-directory (efrit-loop-root loop)))
    (cond ((funcall so-long-predicate) (so-long))
          ((equal (plist-get result :status) "error"))
          ((member tool '("read_file" "read_buffer"))
           (let ((file (or (plist-get (plist-get result :arguments) :path)
                           (plist-get (plist-get result :arguments) :buffer))))
             (setq header (concat header (efrit-result--take-title file)))
             (efrit-result--dress-lines file)))
          ((member tool '("vcs_diff" "vcs_show")) (efrit-result--dress-diff))
          ((member tool '("run_command" "compile")) (efrit-result--dress-errors))
          ((member tool efrit-result--editing)
           (efrit-result--fetch-diffs session (plist-get result :tool_use_id))))
    (setq header-line-format header)))

(defun efrit-result--take-title (file)
  "Remove the line about FILE above its lines; return it for the header line.
Leave out the name of FILE, which is in the header line already."
  (goto-char (point-min))
  (if (looking-at efrit-result--numbered)
      ""
    (let ((title (buffer-substring-no-properties (point) (line-end-position))))
      (with-silent-modifications
        (delete-region (point) (min (point-max) (1+ (line-end-position)))))
      (string-replace "%" "%%" (concat "  " (string-remove-prefix
                                             (concat file " ")
                                             (efrit-permissions-visible title t)))))))

(defun efrit-result--dress-lines (file)
  "Show the numbered lines of FILE in this buffer in the mode for FILE."
  (efrit-result--in-mode
   (efrit-result--mode-for file)
   (lambda ()
     (goto-char (point-min))
     (while (re-search-forward efrit-result--numbered nil t)
       (let ((number (propertize (format "%5s " (match-string 1)) 'face 'line-number)))
         (replace-match "")
         (put-text-property (point) (min (point-max) (1+ (line-end-position)))
                            'line-prefix number)))
     (goto-char (point-min)))))

(defun efrit-result--dress-diff ()
  "Show this buffer in Diff mode."
  (efrit-result--in-mode
   #'diff-mode
   (lambda ()
     ;; Both would read the files that the diff names, of any machine.
     (setq-local diff-font-lock-syntax nil
                 diff-refine nil))))

(defconst efrit-result--directory
  '("\\(?:Entering\\|Leavin\\(g\\)\\) directory [`']\\(/[^:\n]*\\)'$" (2 . 1))
  "As `compilation-directory-matcher', but without folders of other machines.
Compilation mode would open a connection to the machine when it sees the name.")

(defun efrit-result--local-name (name)
  "Return NAME, a file of the machine that printed it, so that it is of no other."
  (if (or (file-remote-p name) (file-remote-p (expand-file-name name "/")))
      (file-name-quote name t)
    name))

(defun efrit-result--dress-errors ()
  "Make the errors in this buffer, the output of a command, ones to visit."
  (setq-local compilation-directory-matcher efrit-result--directory
              compilation-parse-errors-filename-function #'efrit-result--local-name)
  (compilation-minor-mode)
  (setq-local minor-mode-overriding-map-alist
              (list (cons 'compilation-minor-mode efrit-result-errors-map))))

(defun efrit-result--in-mode (mode edit)
  "Turn on MODE, a symbol, in this buffer, without its hooks; then call EDIT.
The buffer is read-only then, and has the keys of Special mode."
  (let ((header header-line-format)
        (inhibit-read-only t))
    (delay-mode-hooks (funcall mode))
    (setq header-line-format header
          buffer-undo-list t)
    (with-silent-modifications
      (funcall edit))
    (font-lock-mode)
    (setq-local bidi-paragraph-direction 'left-to-right)
    (setq buffer-read-only t)
    (use-local-map (make-composed-keymap special-mode-map (current-local-map)))))

(defun efrit-result--mode-for (file)
  "Return the mode for text that files named as FILE are opened in, or another."
  (let* ((case-fold-search nil)
         (mode (and (stringp file) (assoc-default file auto-mode-alist #'string-match-p))))
    (if (and (symbolp mode) (efrit-file-text-mode-p mode))
        mode
      #'text-mode)))

(defun efrit-result--fetch-diffs (session tool-use-id)
  "Fetch the diffs of all that TOOL-USE-ID changed in SESSION; show them here."
  (let ((buffer (current-buffer)))
    (efrit-sidecar-request-async
     'changes/list (list :session_id session)
     :success
     (lambda (listed)
       (efrit-result--fetch-each
        buffer session
        (cl-loop for change across (plist-get listed :changes)
                 when (equal (plist-get change :tool_use_id) tool-use-id)
                 collect (plist-get change :number))
        ""))
     :error #'ignore)))

(defun efrit-result--fetch-each (buffer session numbers text)
  "Add the diff of each of NUMBERS in SESSION to TEXT; then show it in BUFFER.
Without a diff, BUFFER stays as it is."
  (if (null numbers)
      (efrit-with-live-buffer buffer
        (unless (string-empty-p text)
          (efrit-result--write (efrit-permissions-visible text))
          (efrit-result--dress-diff)))
    (efrit-sidecar-request-async
     'changes/show (list :session_id session :number (car numbers)
                         :most efrit-result-most-characters)
     :success (lambda (change)
                (efrit-result--fetch-each buffer session (cdr numbers)
                                          (concat text (plist-get change :diff))))
     :error #'ignore)))

(provide 'efrit-result)
;;; efrit-result.el ends here
