;;; efrit-export.el --- A whole session as a document  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Writes what `session/transcript' gives, turns that left the window
;; included, as Markdown or Org.  Each text is in it as it was: in Markdown
;; what the person and the model wrote stands as it is, the rest between
;; fences; in Org everything stands in blocks.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-json)
(require 'efrit-sidecar)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-export-format 'markdown
  "The format that is offered first when a session is exported."
  :group 'efrit
  :type '(choice (const markdown) (const org)))

(defconst efrit-export--who
  '(("request" . "Person") ("notice" . "Notice") ("reply" . "Model") ("result" . "Result"))
  "What the kinds of a transcript's entries are called.")

;;; Public

(defun efrit-export-session (session format then)
  "Export SESSION, as `session/list' has it, as FORMAT.
FORMAT is `markdown' or `org'.  THEN is called with a new buffer that
holds the document and visits no file."
  (efrit-sidecar-request-async
   'session/transcript (list :session_id (plist-get session :session_id))
   :timeout nil
   :success (lambda (told)
              (let ((buffer (generate-new-buffer (efrit-export--name session format))))
                (with-current-buffer buffer
                  (insert (efrit-export-text session (plist-get told :turns) format))
                  (goto-char (point-min))
                  (efrit-export--mode format))
                (funcall then buffer)))
   :error (lambda (err) (message "%s" (efrit-error-text err)))))

(defun efrit-export-text (session entries format)
  "Return a document about SESSION with ENTRIES of its transcript, as FORMAT."
  (let ((turn nil))
    (concat
     (efrit-export--head session format)
     (mapconcat (lambda (entry)
                  (concat
                   (unless (equal turn (plist-get entry :turn))
                     (setq turn (plist-get entry :turn))
                     (efrit-export--heading
                      2 (if turn (format "Turn %d" turn) "Outside of turns") format))
                   (efrit-export-entry entry format)))
                entries ""))))

(defun efrit-export-entry (entry format)
  "Return ENTRY of a transcript as FORMAT."
  (concat
   (efrit-export--heading 3 (efrit-export--title entry) format)
   (if (equal (plist-get entry :kind) "result")
       (efrit-export--result entry format)
     (mapconcat (lambda (block) (efrit-export--block block format))
                (plist-get entry :content) ""))))

;;; Parts

(defun efrit-export--head (session format)
  "Return the beginning of a document about SESSION, as FORMAT."
  (let ((title (plist-get session :title)))
    (concat
     (efrit-export--heading 1 (if (string-blank-p title)
                                  (concat "Session " (plist-get session :session_id))
                                title)
                            format)
     (format "Session %s on %s, %s to %s.\n\n"
             (plist-get session :session_id) (plist-get session :root)
             (efrit-export--time (plist-get session :created))
             (efrit-export--time (plist-get session :touched))))))

(defun efrit-export--title (entry)
  "Return the title of ENTRY: who said it, and whether it left the window."
  (concat
   (alist-get (plist-get entry :kind) efrit-export--who "Other" nil #'equal)
   (if (equal (plist-get entry :kind) "result")
       (format " %s of %s%s" (or (plist-get entry :handle) "not there")
               (plist-get entry :tool)
               (if (equal (plist-get entry :status) "error") ", an error" ""))
     "")
   (cond ((not (eq (plist-get entry :in_window) t)) ", evicted")
         ((equal (plist-get entry :state) "compressed") ", compressed")
         (t ""))))

(defun efrit-export--result (entry format)
  "Return the arguments and the text of ENTRY, a result, as FORMAT."
  (concat (efrit-export--verbatim (efrit-export--json (plist-get entry :arguments))
                                  "json" format)
          (if (plist-get entry :text)
              (efrit-export--verbatim (plist-get entry :text) "text" format)
            "No result came.\n\n")))

(defun efrit-export--block (block format)
  "Return BLOCK of what was said, as FORMAT."
  (pcase (plist-get block :type)
    ("text" (efrit-export--prose (plist-get block :text) format))
    ("thinking" (concat "Thinking:\n\n"
                        (efrit-export--verbatim (plist-get block :thinking) "text" format)))
    ("redacted_thinking" "Thinking that only the model can read.\n\n")
    ("tool_use" (concat (format "Uses %s:\n\n" (plist-get block :name))
                        (efrit-export--verbatim (efrit-export--json (plist-get block :input))
                                                "json" format)))
    (_ (efrit-export--verbatim (efrit-export--json block) "json" format))))

(defun efrit-export--heading (level text format)
  "Return a heading of LEVEL with TEXT, as FORMAT."
  (concat (make-string level (if (eq format 'org) ?* ?#)) " "
          (string-replace "\n" " " text) "\n\n"))

(defun efrit-export--prose (text format)
  "Return TEXT, which is Markdown as people and models write it, as FORMAT."
  (if (eq format 'org)
      (efrit-export--verbatim text "markdown" format)
    (concat (string-trim-right text) "\n\n")))

(defun efrit-export--verbatim (text language format)
  "Return TEXT, in LANGUAGE, as it is, as FORMAT."
  (let ((text (or text ""))
        (end (if (string-suffix-p "\n" text) "" "\n")))
    (if (eq format 'org)
        (concat "#+begin_src " language "\n" (efrit-export--commas text) end "#+end_src\n\n")
      (let ((fence (efrit-export--fence text)))
        (concat fence language "\n" text end fence "\n\n")))))

(defun efrit-export--commas (text)
  "Return TEXT with what Org would take for its own behind a comma."
  (replace-regexp-in-string "^,*\\(?:\\*\\|#\\+\\)" ",\\&" text))

(defun efrit-export--fence (text)
  "Return a fence longer than any run of backquotes in TEXT."
  (let ((longest 2)
        (start 0))
    (while (string-match "`+" text start)
      (setq longest (max longest (- (match-end 0) (match-beginning 0)))
            start (match-end 0)))
    (make-string (1+ longest) ?`)))

(defun efrit-export--json (value)
  "Return VALUE, as the sidecar gave it, as JSON text on one line."
  (if value
      (decode-coding-string (efrit-json-write value) 'utf-8)
    "{}"))

(defun efrit-export--time (seconds)
  "Return the time SECONDS for a person."
  (format-time-string "%F %R" seconds))

;;; The buffer

(defun efrit-export--name (session format)
  "Return the name of a buffer with SESSION as FORMAT."
  (format "efrit-%s.%s" (plist-get session :session_id) (if (eq format 'org) "org" "md")))

(defun efrit-export--mode (format)
  "Set the major mode of this buffer for FORMAT."
  (cond ((eq format 'org) (org-mode))
        ((fboundp 'markdown-mode) (funcall 'markdown-mode))
        (t (text-mode))))

(provide 'efrit-export)
;;; efrit-export.el ends here
