;;; efrit-permissions.el --- What the model may do without asking  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The subjects of a tool call are what the tool acts on: a command and its
;; folder, code, an address, files, else the whole input.  A permission rule is
;; (WHAT PATTERN DECISION): WHAT is a tool's name, an action such as `edit', or
;; t for all tools; DECISION is `allow', `ask' or `deny'.  PATTERN is one of:
;;
;;   t                       any subject
;;   "REGEXP"                a subject that matches the regular expression
;;   (all)                   any subject; stored for a person's answer
;;   (exactly TEXTS PLACE)   one of TEXTS; PLACE is the folder of a command
;;   (begins WORDS PLACE)    a simple command that begins with WORDS, in PLACE
;;   (site ADDRESS)          an address at the site ADDRESS
;;
;; The first rule that applies decides: rules of the session come first, then
;; rules of the project, then `efrit-permission-rules'.  If no rule applies, the
;; tool's policy decides.  The person is asked about some calls even if a rule
;; allows them, see `efrit-permission-always-ask-files'.

;;; Code:

(require 'efrit)
(require 'efrit-rpc)

(defconst efrit-permissions--subcommand-programs
  '("git" "hg" "svn" "npm" "yarn" "pnpm" "pip" "pipx" "uv" "poetry" "cargo" "go" "make" "gmake" "just"
    "rake" "bundle" "mix" "gradle" "mvn" "dotnet" "apt" "apt-get" "brew" "nix" "systemctl" "python"
    "python3" "pypy3")
  "Programs whose first argument, such as a subcommand, decides what they do.
A rule for the beginning of a command has that argument, too.")

(defconst efrit-permissions--running-arguments
  '("run" "exec" "x" "config" "alias" "rebase" "bisect" "filter-branch" "submodule" "difftool"
    "mergetool" "clone" "archive" "generate" "tool")
  "Subcommands with which a program can run other programs.")

(defconst efrit-permissions--running-options
  (concat "\\`\\(?:--?\\(?:exec\\|toolexec\\|vettool\\|wrapper\\|fplugin\\|specs\\)"
          "\\|--\\(?:exe\\|conf\\|compr\\|upl\\|rece\\|hostname-bin\\|pre\\(?:=\\|\\'\\)\\|rsh\\|pager"
          "\\|shell\\|script\\|node-o\\|command\\|plugin\\|require\\|loader\\|import\\|output\\(?:=\\|\\'\\|-d\\)\\)\\)")
  "A regular expression for options that name what a program runs or writes.
It matches abbreviations of long options, too.")

(defconst efrit-permissions--running-options-by-program
  '(("git" . "\\`-\\(?:[[:alnum:]]*O\\|-o[pu]\\)")
    ("sort" . "\\`-[[:alnum:]]*o")
    ("make" . "\\`-\\(?:[[:alnum:]]*[fCIE]\\|-\\(?:di\\|ev\\|f\\|m\\|inc\\)\\)")
    ("gmake" . "\\`-\\(?:[[:alnum:]]*[fCIE]\\|-\\(?:di\\|ev\\|f\\|m\\|inc\\)\\)")
    ("ninja" . "\\`-[fC]")
    ("cmake" . "\\`-[PE]")
    ("ctest" . "\\`-\\(?:S\\|-build-\\|-test-command\\)")
    ("rake" . "\\`-[[:alnum:]]*[eEfpIrR]")
    ("just" . "\\`-\\(?:f\\|-justfile\\|-chooser\\)")
    ("mvn" . "\\`-f")
    ("gradle" . "\\`-\\(?:[bcI]\\|-init\\|-build-file\\)")
    ("pytest" . "\\`-[cp]")
    ("tox" . "\\`-c")
    ("eslint" . "\\`-\\(?:c\\|-rulesdir\\|-resolve\\)")
    ("nix" . "\\`-c")
    ("svn" . "\\`-.*-cmd")
    ("apt" . "\\`-\\(?:[oc]\\|-option\\)")
    ("apt-get" . "\\`-\\(?:[oc]\\|-option\\)"))
  "Alist from a program to a regexp for options to run programs or write files.")

(defconst efrit-permissions--actions
  '(("edit_file" edit) ("multi_edit" edit) ("create_file" create) ("rename_file" rename)
    ("rename_symbol" edit)
    ("delete_file" delete) ("format_buffer" format) ("undo_edit" undo) ("restore_checkpoint" undo)
    ("run_command" command) ("compile" compile) ("eval_sexp" code) ("fetch_url" address)
    ("web_search" search) ("read_buffer" buffer))
  "The actions of tools, which rules can name: lists (TOOL ACTION).")

(defconst efrit-permissions--subject-arguments
  '((code . :code) (address . :url) (search . :query) (buffer . :buffer))
  "Alist from actions to the argument with their subject; else it is `:command'.")

(defconst efrit-permissions--words
  '((edit "edits of %s" "all edits in this project")
    (create "making %s" "all new files in this project")
    (rename "renaming %s" "all renames in this project")
    (delete "deleting %s" "all deletions in this project")
    (format "formatting %s" "formatting any file of this project")
    (undo "this taking back of edits" "taking back any of the model's edits")
    (command "exactly this command")
    (compile "compiling by exactly this command")
    (code "exactly this code")
    (address "exactly this address")
    (search "exactly this search")
    (buffer "reading the buffer %s")
    (servers "starting the servers of .mcp.json with the digest %s"))
  "Descriptions of rules: (ACTION EXACTLY ALL); %s stands for the subjects.")

;;; What a call is about

(defun efrit-permissions-subject (tool arguments)
  "Return the subjects of a call of TOOL with ARGUMENTS, a JSON text, as text."
  (mapconcat (lambda (subject) (plist-get subject :text))
             (efrit-permissions-subjects tool arguments) ", "))

(defun efrit-permissions-subjects (tool arguments &optional files)
  "Return the subjects of a call of TOOL with ARGUMENTS, a JSON text, as plists.
`:deed' is the action, `:text' what it acts on, `:place' a command's folder,
`:input' the text of an exact rule; `:file' is non-nil if the text is a file's
name.  FILES, if not nil, are the real names of the files in the project."
  (let* ((given (ignore-errors (efrit-json-plist arguments)))
         (deed (efrit-permissions--action tool given)))
    (pcase deed
      ((or 'command 'compile 'code 'address 'search 'buffer)
       (let* ((name (alist-get deed efrit-permissions--subject-arguments :command))
              (text (plist-get given name)))
         `((:deed ,deed :text ,(if (stringp text) text arguments)
            ,@(and (eq name :command)
                   (list :place (efrit-permissions--folder (plist-get given :cwd))))))))
      ((or 'edit 'create 'rename 'delete 'format)
       (efrit-permissions--file-subjects deed files (efrit-permissions-paths given) arguments))
      (_ (efrit-permissions--other-subjects deed given arguments)))))

(defun efrit-permissions-always-asks-p (name)
  "Return non-nil if the person is asked about each change of the file NAME.
NAME may be in double quotes: the sidecar quotes a name of several lines."
  (let ((name (concat "/" (string-remove-prefix "/" (string-trim name "\"" "\""))))
        (case-fold-search t))
    (seq-some (lambda (regexp) (string-match-p regexp name))
              (default-value 'efrit-permission-always-ask-files))))

;;; Text as it is shown

(defconst efrit-permissions-hidden-characters
  (concat "[\0-\x08\x0b-\x1f\x7f-\u00a0\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
          "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
          "\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
          "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
          "\U000e0000-\U000e0fff]")
  "Characters that are not seen, or change the order of others.
A regular expression; the sidecar has the same list.  A new line and a tab
are not among them.")

(defun efrit-permissions-visible (text &optional one-line)
  "Return TEXT with its hidden characters made visible.
With ONE-LINE, make line breaks and tabs visible, too."
  ;; This is 30 times as fast as `replace-regexp-in-string' with a function.
  (let ((regexp (concat efrit-permissions-hidden-characters (and one-line "\\|[\n\t]")))
        (start 0)
        (parts nil))
    (save-match-data
      (while (string-match regexp text start)
        (push (substring text start (match-beginning 0)) parts)
        (push (format "<U+%04X>" (aref text (match-beginning 0))) parts)
        (setq start (match-end 0))))
    (apply #'concat (nreverse (cons (substring text start) parts)))))

;;; Deciding

(defun efrit-permissions-decide (tool subjects policy rules)
  "Return `allow', `ask' or `deny' for a call of TOOL about SUBJECTS.
POLICY, `allow' or `ask', decides about a subject if none of RULES applies.
The strictest decision about any of SUBJECTS counts."
  (let ((decisions (mapcar (lambda (subject)
                             (efrit-permissions--decision tool subject policy rules))
                           subjects)))
    (seq-find (lambda (decision) (memq decision decisions)) '(deny ask allow) 'ask)))

(defun efrit-permissions-of (root)
  "Return the rules stored for the project ROOT."
  (cdr (assoc (directory-file-name (expand-file-name root)) (efrit-permissions--read))))

(defun efrit-permissions-remember (root rule)
  "Store RULE for the project ROOT."
  (efrit-permissions--change root (lambda (rules) (cons rule (delete rule rules)))))

(defun efrit-permissions-revoke (root rule)
  "Remove RULE from the rules stored for the project ROOT."
  (efrit-permissions--change root (lambda (rules) (delete rule rules))))

;;; What an answer allows

(defun efrit-permissions-offers (tool subjects)
  "Return the permissions that an answer about TOOL and SUBJECTS can give.
They are lists (NAME RULE WORDS): NAME is `exactly' or `alike', WORDS describe
what RULE allows."
  (let ((exactly (efrit-permissions--exact-rule tool subjects 'allow))
        (alike (efrit-permissions--similar-rule tool subjects)))
    (delq nil
          (list (list 'exactly exactly (efrit-permissions--button-text tool subjects 'allow))
                (and alike (list 'alike alike (efrit-permissions-rule-text alike)))))))

(defun efrit-permissions-refusal (tool subjects)
  "Return (RULE WORDS): the rule that denies TOOL for SUBJECTS, and its words."
  (list (efrit-permissions--exact-rule tool subjects 'deny)
        (efrit-permissions--button-text tool subjects 'deny)))

(defun efrit-permissions-rule-text (rule)
  "Return a description of RULE for a list of rules."
  (pcase-let ((`(,what ,pattern ,_) rule))
    (pcase pattern
      ((or 't '(all)) (or (nth 2 (assq what efrit-permissions--words))
                          (if (eq what t) "everything" (format "every use of %s" what))))
      (`(exactly ,texts ,place)
       (efrit-permissions--with-folder (efrit-permissions--exact-words what texts) place))
      (`(begins ,words ,place)
       (efrit-permissions--with-folder
        (format "commands that begin with `%s`" (string-join words " ")) place))
      (`(site ,site) (format "any address of %s" site))
      (_ (format "%s about what matches %s" (if (eq what t) "every tool" what) pattern)))))

(defun efrit-permissions-split-command (command)
  "Return the words of COMMAND, or nil if COMMAND is not simple.
A command with an operator, a redirection, an expansion, an assignment, a
comment, a line break or a hidden character is not simple."
  (let ((position 0)
        (words nil)
        (simple "\\(?:[]A-Za-z0-9%+,./:@_=-]\\|[^\0-\x7f]\\|'[^'\n]*'\\|\"[^\"$`\\!\n]*\"\\)+"))
    (unless (or (string-match-p efrit-permissions-hidden-characters command)
                (string-search "\n" command))
      (setq command (efrit-trim command " \t"))
      (while (and position (< position (length command)))
        (if (and (eql position (string-match simple command position))
                 (or (= (match-end 0) (length command))
                     (memq (aref command (match-end 0)) '(?\s ?\t))))
            (progn
              (push (efrit-permissions--unquote (match-string 0 command)) words)
              (string-match "[ \t]*" command (match-end 0))
              (setq position (match-end 0)))
          (setq position nil)))
      (and position
           ;; No word may be an assignment, or have an expansion.
           (not (seq-some (lambda (word)
                            (string-match-p "\\`[A-Za-z_][A-Za-z0-9_]*\\+?=\\|\\$[({]\\|`" word))
                          words))
           (nreverse words)))))

;;; Commands

;;;###autoload
(defun efrit-permissions-forget (root)
  "Remove all permission rules that are stored for the project ROOT."
  (interactive
   (list (completing-read "Forget the permissions of: "
                          (or (mapcar #'car (efrit-permissions--read))
                              (user-error "No project has permissions"))
                          nil t)))
  (efrit-permissions--change root #'ignore))

;;; Subjects

(defun efrit-permissions--action (tool given)
  "Return the action of TOOL with the arguments GIVEN, or TOOL if it has none.
Overwriting a file is an edit."
  (let ((deed (cadr (assoc tool efrit-permissions--actions))))
    (cond ((null deed) tool)
          ((and (eq deed 'create) (plist-get given :overwrite)) 'edit)
          (t deed))))

(defun efrit-permissions--folder (folder)
  "Return FOLDER, the folder of a command, normalized; the root is \"\"."
  (if (stringp folder)
      (efrit-permissions--normalize-path (string-remove-suffix "/" folder))
    ""))

(defun efrit-permissions--normalize-path (path)
  "Return PATH without empty and \".\" parts."
  (concat (if (string-prefix-p "/" path) "/" "")
          (string-join (seq-difference (split-string path "/") '("" ".")) "/")))

(defun efrit-permissions-paths (given)
  "Return the paths in GIVEN, the arguments of a tool to change files."
  (let ((edits (plist-get given :edits)))
    (seq-filter #'stringp
                (append (list (plist-get given :path) (plist-get given :to))
                        (and (vectorp edits)
                             (mapcar (lambda (edit) (and (listp edit) (plist-get edit :path)))
                                     edits))))))

(defun efrit-permissions--file-subjects (deed files paths arguments)
  "Return the subjects of the action DEED: FILES, real names, and PATHS, as given.
If there are no files, ARGUMENTS are the subject.  An exact rule for a rename
has the old and the new name together."
  (let ((both (and (eq deed 'rename) (string-join (or files paths) " to "))))
    (or (mapcar (lambda (path) (list :deed deed :text path :file t :input both))
                (seq-uniq (mapcar #'efrit-permissions--normalize-path (append files paths))))
        (list (list :deed deed :text arguments)))))

(defun efrit-permissions--other-subjects (deed given arguments)
  "Return the subjects of the tool DEED with GIVEN, the parsed ARGUMENTS.
A rule's regular expression is matched with the main argument; an exact rule is
for all arguments, except that one to deny a file is for the file."
  (let* ((key (seq-find (lambda (key) (plist-get given key))
                        '(:command :code :url :path :paths :pattern)))
         (value (plist-get given key)))
    (cond ((and (vectorp value) (> (length value) 0) (seq-every-p #'stringp value))
           (list (list :deed deed :text (string-join value " ") :input arguments)))
          ((and (stringp value) (eq key :path))
           (list (list :deed deed :text (efrit-permissions--normalize-path value) :file t
                       :input arguments)))
          ((stringp value) (list (list :deed deed :text value :input arguments)))
          (t (list (list :deed deed :text arguments :input arguments))))))

;;; Commands

(defun efrit-permissions--unquote (word)
  "Return WORD without its quotes."
  (replace-regexp-in-string "'\\([^']*\\)'\\|\"\\([^\"]*\\)\"" "\\1\\2" word t))

(defun efrit-permissions--command-prefix (command)
  "Return the first words of COMMAND that a rule can allow, or nil.
The words are the program and, if that decides what it does, its subcommand."
  (pcase (efrit-permissions-split-command command)
    (`(,program . ,rest)
     (let ((verb (and rest (string-match-p "\\`[a-z][a-z0-9-]*\\'" (car rest)) (car rest))))
       (cond ((not (string-match-p "\\`[A-Za-z0-9._/+-]+\\'" program)) nil)
             ((efrit-permissions--among-p program (default-value 'efrit-permission-never-begin))
              nil)
             ((efrit-permissions--among-p program efrit-permissions--subcommand-programs)
              (and verb (not (member verb efrit-permissions--running-arguments))
                   (list program verb)))
             (t (list program)))))))

(defun efrit-permissions--program-names (program)
  "Return a list of PROGRAM's name in lower case, with and without its version."
  (let ((name (downcase (file-name-nondirectory program))))
    (list name (replace-regexp-in-string "\\(.\\)[-.0-9]+\\'" "\\1" name))))

(defun efrit-permissions--among-p (program programs)
  "Return non-nil if PROGRAM, of any version, is one of PROGRAMS."
  (seq-intersection (efrit-permissions--program-names program) programs))

(defun efrit-permissions--prefix-p (words command)
  "Return non-nil if COMMAND is simple, and the rule for WORDS may allow it.
COMMAND must begin with WORDS, name no file that is always asked about, and
have no option with which the program runs something else, or writes a file."
  (let* ((given (efrit-permissions-split-command command))
         (others (nthcdr (length words) given)))
    (and (> (length words) 0)
         (>= (length given) (length words))
         (equal words (seq-take given (length words)))
         (not (efrit-permissions--among-p (car words)
                                          (default-value 'efrit-permission-never-begin)))
         (not (seq-some #'efrit-permissions--names-running-p others))
         (not (seq-some (apply-partially #'efrit-permissions--runs-another-p (car words))
                        others)))))

(defun efrit-permissions--runs-another-p (program word)
  "Return non-nil if WORD, an argument, has PROGRAM run or write something else."
  (let ((case-fold-search nil)
        (own (cdr (assoc (cadr (efrit-permissions--program-names program))
                         efrit-permissions--running-options-by-program))))
    (or (string-match-p efrit-permissions--running-options word)
        (and own (string-match-p own word)))))

(defun efrit-permissions--names-running-p (word)
  "Return non-nil if WORD, of a command, names a file that is always asked about.
The file name may follow an option's letter, or a comma, colon or =."
  (seq-some (lambda (part)
              (and (not (string-empty-p part))
                   (or (efrit-permissions-always-asks-p part)
                       (efrit-permissions-always-asks-p (concat part "/")))))
            (append (list word) (split-string word "[=:,]")
                    (and (string-match-p "\\`-[^-]" word)
                         (cl-loop for begin from 2 below (length word)
                                  collect (substring word begin))))))

;;; Rules

(defun efrit-permissions--decision (tool subject policy rules)
  "Return the decision of RULES about TOOL and SUBJECT, or POLICY."
  (let ((rule (seq-find (lambda (rule) (efrit-permissions--rule-applies-p rule tool subject))
                        rules)))
    (if rule (nth 2 rule) policy)))

(defun efrit-permissions--rule-applies-p (rule tool subject)
  "Return non-nil if RULE covers a call of TOOL about SUBJECT."
  (pcase-let ((`(,what ,pattern ,decision) rule)
              (text (plist-get subject :text)))
    (and (or (eq what t) (equal what tool) (eq what (plist-get subject :deed)))
         (pcase pattern
           ((or 't '(all)) t)
           ((pred stringp) (let ((case-fold-search nil))
                             (string-match-p pattern text)))
           (`(exactly ,texts ,place)
            (and (equal place (plist-get subject :place))
                 (efrit-permissions--subject-listed-p subject texts decision)))
           (`(begins ,words ,place)
            (and (eq 'command (plist-get subject :deed))
                 (equal place (plist-get subject :place))
                 (efrit-permissions--prefix-p words text)))
           (`(site ,site) (efrit-permissions--of-site-p text site))))))

(defun efrit-permissions--subject-listed-p (subject texts decision)
  "Return non-nil if SUBJECT is in TEXTS, from an exact rule with DECISION.
A rule that denies a file covers each way to write the file's name."
  (let ((text (efrit-permissions--subject-text subject decision)))
    (or (member text texts)
        (and (eq decision 'deny)
             (plist-get subject :file)
             (member (expand-file-name text "/")
                     (mapcar (lambda (one) (expand-file-name one "/")) texts))))))

(defun efrit-permissions--subject-text (subject decision)
  "Return the text of SUBJECT for an exact rule with DECISION.
It is the `:input' of SUBJECT, if any, except in a rule to deny a file."
  (or (and (plist-get subject :input)
           (not (and (eq decision 'deny) (plist-get subject :file)))
           (plist-get subject :input))
      (plist-get subject :text)))

(defun efrit-permissions--subject-texts (subjects decision)
  "Return the texts of SUBJECTS for an exact rule with DECISION."
  (seq-uniq (mapcar (lambda (subject) (efrit-permissions--subject-text subject decision))
                    subjects)))

(defun efrit-permissions--exact-rule (tool subjects decision)
  "Return the rule with DECISION for TOOL and SUBJECTS alone."
  (list (or (plist-get (car subjects) :deed) tool)
        (list 'exactly
              (efrit-permissions--subject-texts subjects decision)
              (plist-get (car subjects) :place))
        decision))

(defun efrit-permissions--similar-rule (tool subjects)
  "Return a rule to allow TOOL for subjects like SUBJECTS, or nil for none."
  (let* ((subject (car subjects))
         (text (plist-get subject :text))
         (deed (plist-get subject :deed)))
    (pcase deed
      ('command (when-let* ((words (efrit-permissions--command-prefix text)))
                  (and (efrit-permissions--prefix-p words text)
                       (list deed (list 'begins words (plist-get subject :place)) 'allow))))
      ('address (when-let* ((site (efrit-permissions--site text)))
                  (and (efrit-permissions--of-site-p text site)
                       (list deed (list 'site site) 'allow))))
      ((or 'compile 'code 'search 'buffer) nil)
      (_ (list (or deed tool) '(all) 'allow)))))

(defun efrit-permissions--site (url)
  "Return the site of URL, its scheme, host and port, or nil if URL has none."
  (and (string-match "\\`https?://[^/?#\\@[:space:]]+" url)
       (match-string 0 url)))

(defun efrit-permissions--of-site-p (url site)
  "Return non-nil if URL is at SITE."
  (and (string-prefix-p site url)
       (or (= (length site) (length url))
           (memq (aref url (length site)) '(?/ ?? ?#)))))

;;; Words

(defun efrit-permissions--button-text (tool subjects decision)
  "Return the words of an exact rule with DECISION about TOOL and SUBJECTS."
  (let* ((subject (car subjects))
         (deed (plist-get subject :deed))
         (words (cadr (assq deed efrit-permissions--words)))
         (texts (efrit-permissions--subject-texts subjects decision)))
    (efrit-permissions--with-folder
     (cond ((and words (string-search "%s" words)) (efrit-permissions--exact-words deed texts))
           (words words)
           ((and (eq decision 'deny) (plist-get subject :file))
            (efrit-permissions--exact-words tool texts))
           (t (format "exactly this use of %s" tool)))
     (plist-get subject :place))))

(defun efrit-permissions--exact-words (what texts)
  "Return a description of TEXTS for the tool or action WHAT."
  (let ((texts (efrit-permissions--shorten (string-join texts ", ")))
        (words (cadr (assq what efrit-permissions--words))))
    (cond ((null words) (format "%s of %s" what texts))
          ((string-search "%s" words) (format words texts))
          (t (format "%s: %s" words texts)))))

(defun efrit-permissions--shorten (text)
  "Return TEXT on one line, its middle cut if it is long."
  (let ((line (efrit-permissions-visible text t)))
    (if (<= (length line) 60)
        line
      (concat (substring line 0 40) "…" (substring line -19)))))

(defun efrit-permissions--with-folder (words place)
  "Return WORDS, with the folder PLACE if there is one."
  (if (member place '(nil ""))
      words
    (format "%s in %s" words (efrit-permissions--shorten place))))

;;; The file

(defun efrit-permissions--change (root change)
  "Pass the rules of the project ROOT to CHANGE, and store its value as the rules.
Write no file if there are none before and after."
  (let* ((all (efrit-permissions--read))
         (key (directory-file-name (expand-file-name root)))
         (before (cdr (assoc key all)))
         (rules (funcall change before))
         (others (assoc-delete-all key all)))
    (when (or before rules)
      (efrit-permissions--write (if rules (cons (cons key rules) others) others)))))

(defun efrit-permissions--read ()
  "Return the content of `efrit-permissions-file', an alist from roots to rules.
Leave out allowing rules of versions whose buttons did not describe the rules."
  (let ((file (default-value 'efrit-permissions-file)))
    (when (file-readable-p file)
      (mapcar
       (lambda (entry)
         (cons (car entry) (seq-remove #'efrit-permissions--legacy-rule-p (cdr entry))))
       (with-temp-buffer
         (insert-file-contents file)
         (condition-case nil
             (read (current-buffer))
           (error (user-error "%s is damaged: repair or remove it" file))))))))

(defun efrit-permissions--legacy-rule-p (rule)
  "Return non-nil if RULE is to allow, but has a pattern that no button describes."
  (and (eq (nth 2 rule) 'allow)
       (not (consp (nth 1 rule)))))

(defun efrit-permissions--write (all)
  "Write ALL, an alist from roots to rules, to the permissions file atomically."
  (let* ((file (default-value 'efrit-permissions-file))
         (new (make-temp-file (concat (expand-file-name file) "-")))
         (print-length nil)
         (print-level nil))
    (with-temp-file new
      (insert ";; What the model may do, by project.  -*- mode: lisp-data -*-\n")
      (pp all (current-buffer)))
    (rename-file new file t)))

(provide 'efrit-permissions)
;;; efrit-permissions.el ends here
