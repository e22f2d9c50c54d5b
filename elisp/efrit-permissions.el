;;; efrit-permissions.el --- What the model may do without asking  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A rule is (WHAT PATTERN DECISION): WHAT is a tool's name, t for all tools,
;; or one of the deeds below, such as `edit'; DECISION is `allow', `ask' or
;; `deny'.  PATTERN is one of
;;
;;   t                       whatever the call is about
;;   "REGEXP"                what the call is about matches it
;;   (all)                   the same as t, as a person answered
;;   (exactly TEXTS PLACE)   it is about one of TEXTS; of a command, run in PLACE
;;   (begins WORDS PLACE)    a simple command that begins with WORDS, in PLACE
;;   (site ADDRESS)          an address of this site
;;
;; What a call is about are its subjects: a command and its folder, code, an
;; address, files, else its whole input.  The first rule that fits decides:
;; those of the session, then those remembered for the project, then the
;; person's option; where none does, the tool's own policy.  Some calls are
;; asked about whatever was allowed, see `efrit-permission-always-ask-files'.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'efrit-json)
(require 'seq)
(require 'subr-x)

;;; Options

(defcustom efrit-permission-rules nil
  "Rules for all projects: a list of (TOOL PATTERN DECISION).
TOOL is a name or t, PATTERN a regular expression or t.  An expression is
searched for in the whole text: one without \\=\\` and \\=\\' matches commands
that do more than it says.  A session takes them when it begins."
  :group 'efrit
  :type '(repeat (list (choice (const :tag "Every tool" t) (string :tag "Tool"))
                       (choice (const :tag "Everything" t) (regexp :tag "About"))
                       (choice (const allow) (const ask) (const deny)))))

(defcustom efrit-permissions-file (locate-user-emacs-file "efrit-permissions.eld")
  "Where the rules remembered for projects are kept."
  :group 'efrit
  :type 'file)

(defcustom efrit-permission-always-ask-files
  '(;; Emacs, the shell and editors.
    "/\\.dir-locals\\(?:-2\\)?\\.el\\'" "/\\.emacs\\'" "/\\(?:early-\\)?init\\.el\\'" "/\\.envrc\\'"
    "/\\.\\(?:bash\\|zsh\\|ksh\\)[^/]*\\'" "/\\.\\(?:profile\\|login\\|logout\\|cshrc\\|inputrc\\)\\'"
    "/\\.n?exrc\\'" "/\\.vimrc\\'" "/\\.\\(?:vscode\\|idea\\|devcontainer\\|direnv\\)/"
    "/\\.config/" "/\\.ssh/" "/\\.mise[^/]*\\'" "/mise\\.toml\\'" "/\\.tool-versions\\'"
    ;; git, and what runs at a commit or on a server.
    "/\\.git/" "/\\.git\\'" "/\\.git\\(?:modules\\|attributes\\|config\\)\\'" "/\\.\\(?:git\\)?hooks/"
    "/\\.husky/" "/\\.pre-commit-\\(?:config\\|hooks\\)\\.yaml\\'" "/lefthook\\.ya?ml\\'"
    "/\\.\\(?:github\\|gitlab\\|gitea\\|forgejo\\|circleci\\|buildkite\\|woodpecker\\|azure\\)/"
    "/\\.\\(?:gitlab-ci\\|travis\\|appveyor\\|drone\\|woodpecker\\|cirrus\\)\\.ya?ml\\'"
    "/\\(?:azure\\|bitbucket\\)-pipelines\\.ya?ml\\'" "/appveyor\\.yml\\'" "/jenkinsfile[^/]*\\'"
    ;; Builds.
    "/\\(?:gnu\\|bsd\\)?makefile[^/]*\\'" "\\.\\(?:mk\\|mak\\|cmake\\)\\'" "/cmakelists\\.txt\\'"
    "/meson\\.build\\'" "/build\\.ninja\\'" "/\\.?justfile\\'" "/taskfile\\.ya?ml\\'"
    "/\\(?:rake\\|gem\\|proc\\|vagrant\\|guard\\|docker\\|container\\)file[^/]*\\'" "/autogen\\.sh\\'"
    "/configure\\(?:\\.ac\\|\\.in\\)?\\'" "/\\(?:docker-\\)?compose\\.ya?ml\\'" "/eask\\'" "/cask\\'"
    "/build\\.\\(?:rs\\|gradle\\|gradle\\.kts\\|xml\\|sbt\\|zig\\)\\'" "/settings\\.gradle[^/]*\\'" "/pom\\.xml\\'"
    "/gradlew[^/]*\\'" "/\\.mvn/" "/\\(?:build\\|workspace\\)\\(?:\\.bazel\\)?\\'" "/\\.bazelrc\\'"
    "/\\(?:flake\\|shell\\|default\\)\\.nix\\'" "/\\.cargo/"
    ;; Languages that load files by their names.
    "/package\\.json\\'" "/\\.\\(?:npm\\|yarn\\|pnpm\\)rc[^/]*\\'" "/\\.pnpmfile\\.cjs\\'" "/\\.yarn/"
    "/[^/]+\\.config\\.[cm]?[jt]s\\'" "/\\.[^/]+rc\\.[cm]?js\\'"
    "/setup\\.\\(?:py\\|cfg\\)\\'" "/pyproject\\.toml\\'" "/\\(?:conftest\\|noxfile\\|sitecustomize\\|usercustomize\\)\\.py\\'"
    "/\\(?:tox\\|pytest\\)\\.ini\\'" "\\.pth\\'" "/\\.r\\(?:profile\\|environ\\)\\'" "/\\.gdbinit\\'" "/\\.lldbinit\\'"
    ;; What says what a model may do.
    "/\\.efrit\\.toml\\'" "/\\(?:agents\\|claude\\)\\(?:\\.local\\)?\\.md\\'" "/\\.claude/" "/\\.mcp\\.json\\'")
  "Files that run, or are obeyed, by being there: regular expressions.
The person is asked each time the model changes such a file, whatever was
allowed before.  They are matched with the file's name in the project, with
a slash in front, case aside."
  :group 'efrit
  :risky t
  :type '(repeat regexp))

(defcustom efrit-permission-never-begin
  '("sh" "ash" "bash" "dash" "zsh" "ksh" "fish" "csh" "tcsh" "busybox" "env" "exec" "eval" "command"
    "builtin" "source" "." "sudo" "doas" "su" "ssh" "scp" "rsync" "xargs" "parallel" "find" "fd" "awk"
    "gawk" "mawk" "sed" "perl" "ruby" "node" "deno" "bun" "npx" "php" "lua" "tclsh" "emacs"
    "emacsclient" "vi" "vim" "nvim" "ed" "ex" "nohup" "setsid" "nice" "time" "timeout" "watch"
    "strace" "ltrace" "gdb" "docker" "podman" "kubectl" "chroot" "unshare" "nsenter" "tee" "dd"
    "if" "then" "else" "elif" "fi" "for" "while" "until" "do" "done" "case" "esac" "in" "function"
    "select" "coproc" "trap" "set" "export" "alias" "cd")
  "Programs for which no permission by the beginning of a command is offered.
They run what their arguments name, or where their arguments lead."
  :group 'efrit
  :risky t
  :type '(repeat string))

(defconst efrit-permissions--subcommanded
  '("git" "hg" "svn" "npm" "yarn" "pnpm" "pip" "pipx" "uv" "poetry" "cargo" "go" "make" "gmake" "just"
    "rake" "bundle" "mix" "gradle" "mvn" "dotnet" "apt" "apt-get" "brew" "nix" "systemctl" "python"
    "python3" "pypy3")
  "Programs of which the name alone says too little.
Their first argument says what they do.")

(defconst efrit-permissions--runs-others
  '("run" "exec" "x" "config" "alias" "rebase" "bisect" "filter-branch" "submodule" "difftool"
    "mergetool")
  "First arguments of such programs with which they run what others say.")

(defconst efrit-permissions--deeds
  '(("edit_file" edit) ("multi_edit" edit) ("create_file" create) ("rename_file" rename)
    ("delete_file" delete) ("format_buffer" format) ("undo_edit" undo) ("restore_checkpoint" undo)
    ("run_command" command) ("compile" compile) ("eval_sexp" code) ("fetch_url" address)
    ("web_search" search) ("read_buffer" buffer))
  "What tools do that a person may be asked about: the deed of each.")

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
    (buffer "reading the buffer %s"))
  "What is allowed, in words: the deed, for its subjects, and for all of them.")

;;; Public: what a call is about

(defun efrit-permissions-subject (tool arguments)
  "Return what a call of TOOL with ARGUMENTS, a JSON text, is about, a string."
  (mapconcat (lambda (subject) (plist-get subject :text))
             (efrit-permissions-subjects tool arguments) ", "))

(defun efrit-permissions-subjects (tool arguments &optional files)
  "Return what a call of TOOL with ARGUMENTS, a JSON text, is about.
It is a list of plists: `:deed', what would be done; `:text', to what;
`:place', of a command the folder it runs in; `:file', whether the text is a
file's name.  FILES, if not nil, are the real names of the files in the project."
  (let* ((given (ignore-errors (efrit-json-plist arguments)))
         (deed (efrit-permissions--deed tool given)))
    (pcase deed
      ((or 'command 'compile)
       (list (list :deed deed :text (efrit-permissions--string given :command arguments)
                   :place (efrit-permissions--folder (plist-get given :cwd)))))
      ('code (list (list :deed deed :text (efrit-permissions--string given :code arguments))))
      ('address (list (list :deed deed :text (efrit-permissions--string given :url arguments))))
      ('search (list (list :deed deed :text (efrit-permissions--string given :query arguments))))
      ('buffer (list (list :deed deed :text (efrit-permissions--string given :buffer arguments))))
      ((or 'edit 'create 'rename 'delete 'format)
       (efrit-permissions--about-files deed files (efrit-permissions--paths given) arguments))
      (_ (efrit-permissions--about-anything deed given arguments)))))

(defun efrit-permissions-always-asks-p (name)
  "Return non-nil if the person is always asked about the file NAME of a project.
The sidecar quotes a name that takes more than one line."
  (let ((name (concat "/" (string-remove-prefix "/" (string-trim name "\"" "\""))))
        (case-fold-search t))
    (seq-some (lambda (regexp) (string-match-p regexp name))
              (default-value 'efrit-permission-always-ask-files))))

;;; Public: text as it is shown

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
  "Return TEXT with what is not seen in it made visible.
With ONE-LINE, also where it begins a new line, and tabs."
  (let ((visible (replace-regexp-in-string
                  efrit-permissions-hidden-characters
                  (lambda (hidden) (format "<U+%04X>" (aref hidden 0)))
                  text t t)))
    (if one-line
        (replace-regexp-in-string "[\n\t]" (lambda (found)
                                             (format "<U+%04X>" (aref found 0)))
                                  visible t t)
      visible)))

;;; Public: deciding

(defun efrit-permissions-decide (tool subjects policy rules)
  "Decide about a call of TOOL, a name, which is about SUBJECTS.
POLICY, `allow' or `ask', stands where none of RULES fits.  Return `allow',
`ask' or `deny': the strictest where the call is about several things."
  (let ((decisions (mapcar (lambda (subject)
                             (efrit-permissions--decision tool subject policy rules))
                           subjects)))
    (seq-find (lambda (decision) (memq decision decisions)) '(deny ask allow) 'ask)))

(defun efrit-permissions-of (root)
  "Return the rules remembered for the project ROOT."
  (cdr (assoc (efrit-permissions--key root) (efrit-permissions--read))))

(defun efrit-permissions-remember (root rule)
  "Remember RULE for the project ROOT."
  (efrit-permissions--change root (lambda (rules) (cons rule (delete rule rules)))))

(defun efrit-permissions-revoke (root rule)
  "Forget RULE of the project ROOT."
  (efrit-permissions--change root (lambda (rules) (delete rule rules))))

;;; Public: what an answer allows

(defun efrit-permissions-grants (tool subjects)
  "Return what a person may allow for longer who is asked about TOOL.
It is a list of (NAME RULE WORDS): NAME is `exactly' or `alike', WORDS say
what RULE allows, for this call is about SUBJECTS."
  (let ((exactly (efrit-permissions--exactly tool subjects 'allow))
        (alike (efrit-permissions--alike tool subjects)))
    (delq nil
          (list (list 'exactly exactly (efrit-permissions--this tool subjects 'allow))
                (and alike (list 'alike alike (efrit-permissions-in-words alike)))))))

(defun efrit-permissions-refusal (tool subjects)
  "Return (RULE WORDS), by which a call of TOOL about SUBJECTS is denied."
  (list (efrit-permissions--exactly tool subjects 'deny)
        (efrit-permissions--this tool subjects 'deny)))

(defun efrit-permissions-in-words (rule)
  "Return what RULE is about, for a list of rules."
  (pcase-let ((`(,what ,pattern ,_) rule))
    (pcase pattern
      ((or 't '(all)) (or (nth 2 (assq what efrit-permissions--words))
                          (if (eq what t) "everything" (format "every use of %s" what))))
      (`(exactly ,texts ,place)
       (efrit-permissions--where (efrit-permissions--exact-words what texts) place))
      (`(begins ,words ,place)
       (efrit-permissions--where (format "commands that begin with `%s`" (string-join words " "))
                                 place))
      (`(site ,site) (format "any address of %s" site))
      (_ (format "%s about what matches %s" (if (eq what t) "every tool" what) pattern)))))

(defun efrit-permissions-words (command)
  "Return the words of COMMAND, a simple one, or nil where it is none.
What the shell would not take as it stands makes it no simple command: an
operator, a redirection, an expansion, an assignment, a comment, a line
break, or a character that is not seen."
  (let ((position 0)
        (words nil)
        (simple "\\(?:[]A-Za-z0-9%+,./:@_=-]\\|[^\0-\x7f]\\|'[^'\n]*'\\|\"[^\"$`\\!\n]*\"\\)+"))
    (unless (or (string-match-p efrit-permissions-hidden-characters command)
                (string-search "\n" command))
      (setq command (string-trim command "[ \t]+" "[ \t]+"))
      (while (and position (< position (length command)))
        (if (and (eql position (string-match simple command position))
                 (or (= (match-end 0) (length command))
                     (memq (aref command (match-end 0)) '(?\s ?\t))))
            (progn
              (push (efrit-permissions--unquoted (match-string 0 command)) words)
              (string-match "[ \t]*" command (match-end 0))
              (setq position (match-end 0)))
          (setq position nil)))
      (and position
           (not (seq-some #'efrit-permissions--assignment-p words))
           (nreverse words)))))

;;; Commands

;;;###autoload
(defun efrit-permissions-forget (root)
  "Forget what was remembered for the project ROOT."
  (interactive
   (list (completing-read "Forget the permissions of: "
                          (or (mapcar #'car (efrit-permissions--read))
                              (user-error "No project has permissions"))
                          nil t)))
  (efrit-permissions--change root #'ignore))

;;; Private: subjects

(defun efrit-permissions--deed (tool given)
  "Return what a call of TOOL with GIVEN, its arguments, does; or TOOL itself.
A file that is written over is edited."
  (let ((deed (cadr (assoc tool efrit-permissions--deeds))))
    (cond ((null deed) tool)
          ((and (eq deed 'create) (plist-get given :overwrite)) 'edit)
          (t deed))))

(defun efrit-permissions--string (given name arguments)
  "Return the string NAME of GIVEN, or ARGUMENTS where there is none."
  (let ((value (plist-get given name)))
    (if (stringp value) value arguments)))

(defun efrit-permissions--folder (folder)
  "Return FOLDER, that of a command, in its shortest form; \"\" is the root."
  (if (stringp folder)
      (efrit-permissions--plain (string-remove-suffix "/" folder))
    ""))

(defun efrit-permissions--plain (path)
  "Return PATH without what can be left out of it whatever stands on the disk."
  (concat (if (string-prefix-p "/" path) "/" "")
          (string-join (seq-difference (split-string path "/") '("" ".")) "/")))

(defun efrit-permissions--paths (given)
  "Return the paths in GIVEN, the arguments of a tool for changing files."
  (let ((edits (plist-get given :edits)))
    (seq-filter #'stringp
                (append (list (plist-get given :path) (plist-get given :to))
                        (and (vectorp edits)
                             (mapcar (lambda (edit) (and (listp edit) (plist-get edit :path)))
                                     edits))))))

(defun efrit-permissions--about-files (deed files paths arguments)
  "Return the subjects of DEED with FILES, real names, and PATHS, as given.
Where there are none, it is about ARGUMENTS.  An answer to a new name is for
the old one and the new one together."
  (let ((both (and (eq deed 'rename) (string-join (or files paths) " to "))))
    (or (mapcar (lambda (path) (list :deed deed :text path :file t :input both))
                (seq-uniq (mapcar #'efrit-permissions--plain (append files paths))))
        (list (list :deed deed :text arguments)))))

(defun efrit-permissions--about-anything (deed given arguments)
  "Return the subjects of DEED, a tool's name or nil, with GIVEN or ARGUMENTS.
Regular expressions are matched with what such tools are mostly about; a
person's answer is for the whole input, unless it is a file alone."
  (let* ((key (seq-find (lambda (key) (plist-get given key))
                        '(:command :code :url :path :paths :pattern)))
         (value (plist-get given key)))
    (cond ((and (vectorp value) (> (length value) 0) (seq-every-p #'stringp value))
           (list (list :deed deed :text (string-join value " ") :input arguments)))
          ((and (stringp value) (eq key :path))
           (list (list :deed deed :text (efrit-permissions--plain value) :file t
                       :input arguments)))
          ((stringp value) (list (list :deed deed :text value :input arguments)))
          (t (list (list :deed deed :text arguments :input arguments))))))

;;; Private: commands

(defun efrit-permissions--unquoted (word)
  "Return WORD without its quotes."
  (replace-regexp-in-string "'\\([^']*\\)'\\|\"\\([^\"]*\\)\"" "\\1\\2" word t))

(defun efrit-permissions--assignment-p (word)
  "Return non-nil if WORD gives a value to a variable."
  (string-match-p "\\`[A-Za-z_][A-Za-z0-9_]*\\+?=" word))

(defun efrit-permissions--beginning (command)
  "Return the words that commands like COMMAND begin with, or nil.
That is a program, and what it is to do where a word says so."
  (pcase (efrit-permissions-words command)
    (`(,program . ,rest)
     (let* ((name (file-name-nondirectory program))
            (verb (and rest (string-match-p "\\`[a-z][a-z0-9-]*\\'" (car rest)) (car rest))))
       (cond ((not (string-match-p "\\`[A-Za-z0-9._/+-]+\\'" program)) nil)
             ((member name (default-value 'efrit-permission-never-begin)) nil)
             ((member name efrit-permissions--subcommanded)
              (and verb (not (member verb efrit-permissions--runs-others))
                   (list program verb)))
             (t (list program)))))))

(defun efrit-permissions--begins-p (words command)
  "Return non-nil if COMMAND is a simple one that begins with WORDS.
One that names a file which runs by being there is another one."
  (let ((given (efrit-permissions-words command)))
    (and (> (length words) 0)
         (>= (length given) (length words))
         (equal words (seq-take given (length words)))
         (not (seq-some #'efrit-permissions--names-running-p (nthcdr (length words) given))))))

(defun efrit-permissions--names-running-p (word)
  "Return non-nil if WORD, of a command, is a file that is always asked about."
  (seq-some (lambda (part)
              (and (not (string-empty-p part))
                   (or (efrit-permissions-always-asks-p part)
                       (efrit-permissions-always-asks-p (concat part "/")))))
            (cons word (split-string word "[=:,]"))))

;;; Private: rules

(defun efrit-permissions--decision (tool subject policy rules)
  "Return what RULES say of a call of TOOL about SUBJECT, or POLICY."
  (let ((rule (seq-find (lambda (rule) (efrit-permissions--fits-p rule tool subject))
                        rules)))
    (if rule (nth 2 rule) policy)))

(defun efrit-permissions--fits-p (rule tool subject)
  "Return non-nil if RULE is about a call of TOOL about SUBJECT."
  (pcase-let ((`(,what ,pattern ,decision) rule)
              (text (plist-get subject :text)))
    (and (or (eq what t) (equal what tool) (eq what (plist-get subject :deed)))
         (pcase pattern
           ((or 't '(all)) t)
           ((pred stringp) (let ((case-fold-search nil))
                             (string-match-p pattern text)))
           (`(exactly ,texts ,place)
            (and (equal place (plist-get subject :place))
                 (efrit-permissions--among-p subject texts decision)))
           (`(begins ,words ,place)
            (and (eq 'command (plist-get subject :deed))
                 (equal place (plist-get subject :place))
                 (efrit-permissions--begins-p words text)))
           (`(site ,site) (efrit-permissions--of-site-p text site))))))

(defun efrit-permissions--among-p (subject texts decision)
  "Return non-nil if SUBJECT is one of TEXTS, for a rule of DECISION.
A file that is denied is denied however its name is written."
  (let ((text (efrit-permissions--compared subject decision)))
    (or (member text texts)
        (and (eq decision 'deny)
             (plist-get subject :file)
             (member (expand-file-name text "/")
                     (mapcar (lambda (one) (expand-file-name one "/")) texts))))))

(defun efrit-permissions--compared (subject decision)
  "Return the text of SUBJECT that an answer is for, a DECISION.
Of a tool that is not known here, that is its whole input."
  (or (and (plist-get subject :input)
           (not (and (eq decision 'deny) (plist-get subject :file)))
           (plist-get subject :input))
      (plist-get subject :text)))

(defun efrit-permissions--all-compared (subjects decision)
  "Return the texts of SUBJECTS that an answer is for, a DECISION, each once."
  (seq-uniq (mapcar (lambda (subject) (efrit-permissions--compared subject decision))
                    subjects)))

(defun efrit-permissions--exactly (tool subjects decision)
  "Return the rule of DECISION for a call of TOOL about SUBJECTS alone."
  (list (or (plist-get (car subjects) :deed) tool)
        (list 'exactly
              (efrit-permissions--all-compared subjects decision)
              (plist-get (car subjects) :place))
        decision))

(defun efrit-permissions--alike (tool subjects)
  "Return the rule to allow what is like a call of TOOL about SUBJECTS, or nil."
  (let* ((subject (car subjects))
         (text (plist-get subject :text))
         (deed (plist-get subject :deed)))
    (pcase deed
      ('command (when-let* ((words (efrit-permissions--beginning text)))
                  (and (efrit-permissions--begins-p words text)
                       (list deed (list 'begins words (plist-get subject :place)) 'allow))))
      ('address (when-let* ((site (efrit-permissions--site text)))
                  (and (efrit-permissions--of-site-p text site)
                       (list deed (list 'site site) 'allow))))
      ((or 'compile 'code 'search 'buffer) nil)
      (_ (list (or deed tool) '(all) 'allow)))))

(defun efrit-permissions--site (url)
  "Return the site of URL, or nil."
  (and (string-match "\\`https?://[^/?#\\@[:space:]]+" url)
       (match-string 0 url)))

(defun efrit-permissions--of-site-p (url site)
  "Return non-nil if URL is an address of SITE."
  (and (string-prefix-p site url)
       (or (= (length site) (length url))
           (memq (aref url (length site)) '(?/ ?? ?#)))))

;;; Private: words

(defun efrit-permissions--this (tool subjects decision)
  "Return what a call of TOOL about SUBJECTS is, for a button of DECISION."
  (let* ((subject (car subjects))
         (deed (plist-get subject :deed))
         (words (cadr (assq deed efrit-permissions--words)))
         (texts (efrit-permissions--all-compared subjects decision)))
    (efrit-permissions--where
     (cond ((and words (string-search "%s" words)) (efrit-permissions--exact-words deed texts))
           (words words)
           ((and (eq decision 'deny) (plist-get subject :file))
            (efrit-permissions--exact-words tool texts))
           (t (format "exactly this use of %s" tool)))
     (plist-get subject :place))))

(defun efrit-permissions--exact-words (what texts)
  "Return what a rule about WHAT and TEXTS is about."
  (let ((texts (efrit-permissions--short (string-join texts ", ")))
        (words (cadr (assq what efrit-permissions--words))))
    (cond ((null words) (format "%s of %s" what texts))
          ((string-search "%s" words) (format words texts))
          (t (format "%s: %s" words texts)))))

(defun efrit-permissions--short (text)
  "Return TEXT on one line, with its middle left out where it is long."
  (let ((line (efrit-permissions-visible text t)))
    (if (<= (length line) 60)
        line
      (concat (substring line 0 40) "…" (substring line -19)))))

(defun efrit-permissions--where (words place)
  "Return WORDS, of a command to be run in PLACE."
  (if (member place '(nil ""))
      words
    (format "%s in %s" words (efrit-permissions--short place))))

;;; Private: the file

(defun efrit-permissions--key (root)
  "Return the name under which the rules of ROOT are kept."
  (directory-file-name (expand-file-name root)))

(defun efrit-permissions--change (root change)
  "Have CHANGE make the rules of the project ROOT of those there are."
  (let* ((all (efrit-permissions--read))
         (key (efrit-permissions--key root))
         (rules (funcall change (cdr (assoc key all))))
         (others (assoc-delete-all key all)))
    (efrit-permissions--write (if rules (cons (cons key rules) others) others))))

(defun efrit-permissions--read ()
  "Return what `efrit-permissions-file' has: an alist of roots and rules.
What earlier versions allowed by buttons that did not say what is left out."
  (let ((file (default-value 'efrit-permissions-file)))
    (when (file-readable-p file)
      (mapcar
       (lambda (entry)
         (cons (car entry) (seq-remove #'efrit-permissions--unsaid-p (cdr entry))))
       (with-temp-buffer
         (insert-file-contents file)
         (condition-case nil
             (read (current-buffer))
           (error (user-error "%s is damaged: repair or remove it" file))))))))

(defun efrit-permissions--unsaid-p (rule)
  "Return non-nil if the button of RULE did not say what RULE is for."
  (and (eq (nth 2 rule) 'allow)
       (not (consp (nth 1 rule)))))

(defun efrit-permissions--write (all)
  "Write ALL to `efrit-permissions-file', whole or not at all."
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
