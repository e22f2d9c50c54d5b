;;; efrit.el --- AI work within a token budget  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors

;; Author: the efrit-budget authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A model works in this Emacs; a sidecar process counts every token that
;; enters its context window, stores every result, and runs the tools that
;; need only files and git.
;;
;; This file has the version, all options, groups, faces and errors, and the
;; commands that read a task; it loads the autoloads of the others.  Every other file
;; requires it; the order of the files is in docs/architecture.md.  It is loaded
;; when Emacs starts, so it requires nothing; efrit-remote requires cl-lib, seq
;; and subr-x for all files that follow.

;;; Code:

(defconst efrit-version "0.1.0"
  "Version of this client.")

(defgroup efrit nil
  "AI work in Emacs within a token budget."
  :group 'tools
  :prefix "efrit-")

;;; The sidecar

(defcustom efrit-sidecar-command nil
  "The command that runs the sidecar, without its subcommand.
A string is the program's file, or its name on the PATH; a list is the
program and its first arguments, for example
\(\"python3\" \"-m\" \"efrit_budget\").  With nil the program
efrit-budget is looked for in the virtualenv that holds this file, or .venv
of its checkout, then on the PATH, in ~/.local/bin, and in
`efrit-sidecar-directory'."
  :type '(choice (const :tag "Find it" nil)
                 (file :tag "Program")
                 (repeat :tag "Program and arguments" string))
  :risky t)

(defcustom efrit-sidecar-requirement (concat "efrit-budget==" efrit-version)
  "The package that `efrit-doctor' offers to install as the sidecar.
It is a requirement as pip takes it, the file of a wheel, or its address."
  :type 'string :risky t)

(defcustom efrit-sidecar-directory (locate-user-emacs-file "efrit-sidecar/")
  "Folder of the virtualenv in which `efrit-doctor' installs the sidecar.
It does so unless the person chooses uv or pipx, which have their own."
  :type 'directory :risky t)

(defcustom efrit-sidecar-read-output-max 65536
  "Most bytes of the sidecar's output that Emacs reads at once; nil: the default.
Emacs 30 sets this for the sidecar's process alone.  Emacs 28 and 29 have
one limit for all processes, `read-process-output-max', which stays as
the user set it."
  :type '(choice (const :tag "As it is" nil) natnum) :risky t)

(defcustom efrit-remote-commands nil
  "The commands that run the sidecar on other machines, an alist.
A key is a regular expression for the remote prefix of a file name, such
as \"/ssh:me@host:\"; a value is the program there, a string, or a list of
the program and its first arguments.  Where no key matches, the program
efrit-budget is looked for on the PATH there, see `tramp-remote-path', and
in ~/.local/bin.  The value may be connection-local."
  :type '(alist :key-type (regexp :tag "Machine")
                :value-type (choice (string :tag "Program")
                                    (repeat :tag "Program and arguments" string)))
  :risky t)

(defcustom efrit-sidecar-log-events 0
  "Number of latest characters of messages kept in *efrit sidecar events*.
With 0 none are kept.  A change takes effect when the sidecar starts next."
  :type 'natnum)

(defcustom efrit-sidecar-start-timeout 15
  "Seconds the sidecar may take to start and resume sessions."
  :type 'number)

(defcustom efrit-sidecar-started-functions nil
  "Hook run when the sidecar has started and its sessions are resumed.
Each function is called with the sidecar's reply to `initialize', a plist."
  :type 'hook :risky t)

(defcustom efrit-sidecar-died-functions nil
  "Hook run when the sidecar has ended unexpectedly.
Each function is called with a text that says how it ended."
  :type 'hook :risky t)

(defcustom efrit-sidecar-progress-functions nil
  "Hook run when the sidecar reports the progress of a call.
Each function is called with the call, as `efrit-sidecar-request-async'
returned it, or nil for an unknown call, and a plist: `:tool_use_id',
and under `:value' a plist of `:message', `:done', `:total', `:seconds'."
  :type 'hook :risky t)

(defcustom efrit-sidecar-timeout 30
  "Seconds a call to the sidecar may take by default.
With nil there is no limit."
  :type '(choice (const :tag "No limit" nil) number))

(defcustom efrit-sync-delay 0.5
  "Seconds after a change before the text of a short buffer is sent.
See `efrit-sync-short'."
  :type 'number)

(defcustom efrit-sync-short 250000
  "Characters of the longest buffer that is sent soon after each change.
A longer buffer is sent when a tool is called, so that sending it never
interrupts typing."
  :type 'natnum :risky t)

(defcustom efrit-sync-most-characters 10000000
  "Characters of the longest unsaved buffer that is sent to the sidecar.
For a longer buffer the model reads the file on disk."
  :type 'natnum :risky t)

(defcustom efrit-sync-most-characters-remote 500000
  "Like `efrit-sync-most-characters', for files on other machines."
  :type 'natnum :risky t)

(defcustom efrit-revert-buffers t
  "Non-nil means revert buffers whose files a command changed.
Modified buffers are never reverted."
  :type 'boolean :risky t)

;;; Permissions

(defcustom efrit-permission-rules nil
  "Rules for all projects: a list of (TOOL PATTERN DECISION).
TOOL is a name or t, PATTERN a regular expression or t, DECISION `allow',
`ask' or `deny'.  An expression may match any part of a command or a name:
begin and end it with \\=\\\\=` and \\=\\\\=' to match all of that.  A session
copies the rules when it begins."
  :type '(repeat (list (choice (const :tag "Every tool" t) (string :tag "Tool"))
                       (choice (const :tag "Everything" t) (regexp :tag "About"))
                       (choice (const allow) (const ask) (const deny))))
  :risky t)

(defcustom efrit-permissions-file (locate-user-emacs-file "efrit-permissions.eld")
  "File with the permission rules of projects."
  :type 'file :risky t)

(defcustom efrit-permission-always-ask-files
  '(;; Start-up files of Emacs, shells and editors.
    "/\\.dir-locals\\(?:-2\\)?\\.el\\'" "/\\.emacs\\'" "/\\(?:early-\\)?init\\.el\\'" "/\\.envrc\\'"
    "/\\.\\(?:bash\\|zsh\\|ksh\\)[^/]*\\'" "/\\.\\(?:profile\\|login\\|logout\\|cshrc\\|inputrc\\)\\'"
    "/\\.n?exrc\\'" "/\\.vimrc\\'" "/\\.nvim\\.lua\\'" "/efrit-permissions\\.eld\\'" "/custom\\.el\\'"
    "/\\.\\(?:tmux\\.conf\\|xprofile\\|xsession\\)\\'"
    "/\\.devcontainer\\.json\\'" "/\\.\\(?:vscode\\|idea\\|zed\\|fleet\\|devcontainer\\|direnv\\)/"
    "/\\.config/" "/\\.ssh/" "/\\.mise[^/]*\\'" "/mise\\.toml\\'" "/\\.tool-versions\\'"
    ;; Files of git, and files that run at a commit or on a server.
    "/\\.git/" "/\\.git\\'" "/\\.git\\(?:modules\\|attributes\\|config\\)\\'" "/\\.\\(?:git\\)?hooks/"
    "/\\.husky/" "/\\.pre-commit-\\(?:config\\|hooks\\)\\.ya?ml\\'"
    "/\\.\\(?:github\\|gitlab\\|gitea\\|forgejo\\|circleci\\|buildkite\\|woodpecker\\|azure\\)/"
    "/\\.\\(?:gitlab-ci\\|travis\\|appveyor\\|drone\\|woodpecker\\|cirrus\\)\\.ya?ml\\'"
    "/\\.hg/" "/\\.hgrc\\'" "/\\.\\(?:jj\\|svn\\|bzr\\)/" "/\\.overcommit\\.yml\\'" "/\\.?lefthook[^/]*\\'"
    "/\\(?:azure\\|bitbucket\\)-pipelines\\.ya?ml\\'" "/appveyor\\.yml\\'" "/jenkinsfile[^/]*\\'"
    ;; Build files.
    "/\\(?:gnu\\|bsd\\)?makefile[^/]*\\'" "\\.\\(?:mk\\|mak\\|cmake\\)\\'" "/cmakelists\\.txt\\'"
    "/meson\\.build\\'" "/build\\.ninja\\'" "/\\.?justfile\\'" "/taskfile\\.ya?ml\\'"
    "/\\(?:rake\\|gem\\|proc\\|vagrant\\|guard\\|docker\\|container\\)file[^/]*\\'" "/autogen\\.sh\\'"
    "/configure\\(?:\\.ac\\|\\.in\\)?\\'" "/\\(?:docker-\\)?compose\\.ya?ml\\'" "/eask\\'" "/cask\\'"
    "/build\\.\\(?:rs\\|gradle\\|gradle\\.kts\\|xml\\|sbt\\|zig\\)\\'" "/settings\\.gradle[^/]*\\'" "/pom\\.xml\\'"
    "/gradlew[^/]*\\'" "/gradle/" "\\.gradle\\(?:\\.kts\\)?\\'" "/gradle\\.properties\\'" "/mvnw[^/]*\\'" "/\\.mvn/"
    "/sconstruct\\'" "/wscript\\'" "/\\(?:tilt\\|earth\\|pod\\|fast\\|danger\\|brew\\|cap\\|thor\\|pip\\)file\\'" "/eldev\\'"
    "/\\(?:xmake\\|premake[0-9]*\\)\\.lua\\'" "/magefile\\.go\\'" "/dune\\(?:-project\\)?\\'" "/cargo\\.toml\\'"
    "/rust-toolchain\\(?:\\.toml\\)?\\'" "/go\\.work\\'" "/directory\\.build\\.\\(?:props\\|targets\\)\\'"
    "\\.[a-z]+proj\\'" "\\.cabal\\'" "/stack\\.yaml\\'" "/package\\.swift\\'" "/mix\\.exs\\'" "/rebar\\.config[^/]*\\'"
    "/\\(?:project\\.clj\\|deps\\.edn\\|build\\.boot\\|build\\.sc\\)\\'" "/setup\\.hs\\'"
    "/\\(?:build\\|workspace\\)\\(?:\\.bazel\\)?\\'" "/\\.bazelrc\\'"
    "/\\(?:flake\\|shell\\|default\\)\\.nix\\'" "/\\.cargo/"
    ;; Languages that load files by their names.
    "/package\\.json\\'" "/\\.\\(?:npm\\|yarn\\|pnpm\\)rc[^/]*\\'" "/\\.pnpmfile\\.cjs\\'" "/\\.yarn/"
    "/[^/]+\\.config\\.[cm]?[jt]s\\'" "/\\.[^/]+rc\\(?:\\.\\(?:[cm]?js\\|ts\\|json\\|ya?ml\\|toml\\)\\)?\\'"
    "/\\(?:gulp\\|grunt\\)file\\.[cm]?[jt]s\\'" "/\\(?:jest\\|babel\\|nx\\|turbo\\|lerna\\)\\(?:\\.config\\)?\\.json\\'"
    "/\\(?:deno\\.jsonc?\\|bunfig\\.toml\\|composer\\.json\\)\\'" "/\\.rspec\\'" "/\\.rubocop\\.yml\\'" "/config\\.ru\\'"
    "/setup\\.\\(?:py\\|cfg\\)\\'" "/pyproject\\.toml\\'" "/\\(?:conftest\\|noxfile\\|sitecustomize\\|usercustomize\\)\\.py\\'"
    "/\\(?:dodo\\|fabfile\\|hatch_build\\|ipython_config\\)\\.py\\'"
    "/\\.?\\(?:tox\\|pytest\\|mypy\\)\\.ini\\'" "/tox\\.toml\\'" "/pylintrc\\(?:\\.toml\\)?\\'" "/\\.flake8\\'" "\\.pth\\'"
    "/\\.ghci\\'" "/\\.ocamlinit\\'" "/\\.iex\\.exs\\'" "/\\.r\\(?:profile\\|environ\\)\\'" "/\\.gdbinit\\'" "/\\.lldbinit\\'"
    ;; Instructions and permissions for models.
    "/\\.efrit\\.toml\\'" "/\\(?:agents\\|claude\\|gemini\\)\\(?:\\.local\\)?\\.md\\'"
    "/\\.\\(?:claude\\|cursor\\|gemini\\|codex\\|opencode\\|continue\\)/" "/\\.\\(?:cursor\\|windsurf\\)rules\\'"
    "/\\.mcp\\.json\\'")
  "Regular expressions for files that programs run or obey when they find them.
Each change of such a file asks the person, whatever rules there are.
The expressions are matched, ignoring case, with the file's name in the
project and a slash in front."
  :type '(repeat regexp) :risky t)

(defcustom efrit-permission-never-begin
  '("sh" "ash" "bash" "dash" "zsh" "ksh" "fish" "csh" "tcsh" "busybox" "env" "exec" "eval" "command"
    "builtin" "source" "." "sudo" "doas" "su" "ssh" "scp" "rsync" "xargs" "parallel" "find" "fd" "awk"
    "gawk" "mawk" "sed" "perl" "ruby" "node" "deno" "bun" "npx" "php" "lua" "tclsh" "emacs"
    "emacsclient" "vi" "vim" "nvim" "ed" "ex" "nohup" "setsid" "nice" "time" "timeout" "watch"
    "strace" "ltrace" "gdb" "docker" "podman" "kubectl" "chroot" "unshare" "nsenter" "tee" "dd"
    ;; Other shells and languages.
    "mksh" "yash" "rbash" "xonsh" "nu" "elvish" "pwsh" "powershell" "toybox" "ipython" "rscript" "r"
    "julia" "octave" "guile" "racket" "sbcl" "clisp" "ocaml" "ghci" "runghc" "java" "jshell" "groovy"
    "scala" "elixir" "iex" "erl" "escript" "swift" "dart" "tsx" "ts-node" "bunx" "pnpx" "uvx" "m4"
    "expect" "gnuplot" "sqlite" "psql" "mysql" "osascript"
    ;; Programs that run their arguments, or show a text with keys that run something.
    "flock" "ionice" "chrt" "taskset" "stdbuf" "script" "screen" "tmux" "runuser" "setpriv" "setarch"
    "prlimit" "numactl" "fakeroot" "proot" "bwrap" "firejail" "valgrind" "perf" "rr" "unbuffer" "entr"
    "watchexec" "nodemon" "hyperfine" "rlwrap" "xvfb-run" "dbus-run-session" "ssh-agent" "systemd-run"
    "start-stop-daemon" "at" "batch" "crontab" "curl" "wget" "nc" "ncat" "socat" "sftp" "ftp" "rclone" "http" "pkexec" "gosu" "direnv" "nix-shell" "pipenv" "conda"
    "mamba" "hatch" "pdm" "mise" "asdf" "tar" "bsdtar" "cpio" "zip" "man" "less" "more" "view"
    "vimdiff" "gvim" "nano"
    "if" "then" "else" "elif" "fi" "for" "while" "until" "do" "done" "case" "esac" "in" "function"
    "select" "coproc" "trap" "set" "export" "alias" "cd")
  "Programs whose commands a person can allow exactly, but not by their beginning.
The arguments of such a program name other programs to run, or places to reach."
  :risky t
  :type '(repeat string) :risky t)

(defcustom efrit-mcp-servers nil
  "MCP servers whose tools sessions on this machine have.
An alist from names to plists: `:command', a list of the program and its
arguments; `:env', an alist of variables and values; and `:cwd', the folder, by
default the root of the project.  A server gets no other variables of Emacs than
HOME, LOGNAME, PATH, SHELL, TERM and USER.  Each call of a tool is asked about,
unless a rule such as (\"files__read_file\" t allow) in `efrit-permission-rules'
or an answer allows it."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :options ((:command (repeat string))
                                             (:env (alist :key-type string :value-type string))
                                             (:cwd directory))))
  :risky t)

(defcustom efrit-mcp-project t
  "Non-nil means ask about the MCP servers of a project's .mcp.json.
With nil they are never started."
  :type 'boolean :risky t)

(defcustom efrit-mcp-hidden-tools nil
  "Patterns of the tools of MCP servers that the model is not offered.
The tool read of the server files has the name files__read, which the pattern
files__* matches."
  :type '(repeat string) :risky t)

(defcustom efrit-mcp-short nil
  "Non-nil means shorten the descriptions of MCP servers' tools.
That saves tokens in each prompt; the model has a tool to see them whole."
  :type 'boolean :risky t)

(defcustom efrit-mcp-seconds 120
  "Seconds that a call of an MCP server's tool may take."
  :type 'number :risky t)

(defcustom efrit-visit-most-bytes 5000000
  "Size in bytes of the largest file that a tool opens in Emacs."
  :type 'natnum :risky t)

(defcustom efrit-visit-secret-files nil
  "Regular expressions for further files whose content no tool of Emacs shows.
They are matched with the whole file name, ignoring case.  The sidecar's
setting `tools.secret_files' has other such files, about which its tool
`read_file' asks the person."
  :type '(repeat regexp) :risky t)

(defcustom efrit-visit-open-files nil
  "Files that tools of Emacs show although they may hold secrets.
A list of regular expressions, matched with the whole file name."
  :type '(repeat regexp) :risky t)

(defcustom efrit-buffer-most-characters 2000000
  "Most characters of a buffer that one `read_buffer' returns."
  :type 'natnum)

(defcustom efrit-buffer-project-modes '(compilation-mode comint-mode eshell-mode dired-mode)
  "Major modes whose buffers belong to the project of their directory.
Modes derived from them count, too.  A buffer of another mode belongs to
the project if it visits a file in it."
  :risky t
  :type '(repeat symbol) :risky t)

(defcustom efrit-buffer-secret-modes '(authinfo-mode pass-mode pass-view-mode)
  "Major modes, with those derived from them, whose buffers are never read."
  :type '(repeat symbol) :risky t)

(defcustom efrit-batch-allow nil
  "Names of tools that may run in batch without being asked about.
The environment variable EFRIT_ALLOW adds names, separated by commas;
\"all\" in it stands for every tool."
  :type '(repeat string) :risky t)

;;; A session at work

(declare-function efrit-session-view-show "efrit-view" (loop))

(defcustom efrit-do-show-function #'efrit-session-view-show
  "Function called with a loop to show it to the person."
  :type 'function :risky t)

(defcustom efrit-do-ask-above nil
  "Tokens of a prompt above which `efrit-do' asks before sending; nil: never."
  :type '(choice (const :tag "Never" nil) natnum) :risky t)

(defcustom efrit-max-turns 100
  "Turns since the person's message after which to ask to go on; nil: never."
  :type '(choice (const :tag "Never ask" nil) natnum) :risky t)

(defcustom efrit-max-minutes nil
  "Minutes since the person's message after which to ask to go on; nil: never."
  :type '(choice (const :tag "Never ask" nil) number) :risky t)

(defcustom efrit-max-dollars 2
  "Dollars since the person's message after which to ask to go on; nil: never.
Where the price is not known, `efrit-max-tokens' counts in its place."
  :type '(choice (const :tag "Never ask" nil) number) :risky t)

(defcustom efrit-max-tokens 2000000
  "Tokens since the person's message after which to ask to go on; nil: never.
They count only where the price is not known, as with a local server; those
of every prompt count, from a cache or not, and those of every reply."
  :type '(choice (const :tag "Never ask" nil) natnum) :risky t)

(defcustom efrit-stop-patience 5
  "Seconds after which a message says that a stop waits for the sidecar."
  :type 'number)

(defcustom efrit-garbage-threshold 16000000
  "Least `gc-cons-threshold' while a session works; nil: do not change it."
  :type '(choice (const :tag "Leave it" nil) natnum) :risky t)

(defcustom efrit-system-file nil
  "File with another system prompt, or nil for that of efrit.
The text {root} in it stands for the project's root."
  :type '(choice (const :tag "That of efrit" nil) file) :risky t)

(defcustom efrit-instruction-files '("AGENTS.md" "CLAUDE.md")
  "Files of a project with instructions for a model.
The first one that exists is sent with the first message of a session,
unless it is a link to outside the project, or to a file of secrets."
  :type '(repeat string) :risky t)

(defcustom efrit-context-buffer t
  "Non-nil means a message names the current file or buffer and line.
With `text', and no active region, the text of the buffer is sent as well:
as much as fits the tier of the user message, with a handle for the rest."
  :type '(choice (const :tag "Its name" t)
                 (const :tag "Its name and text" text)
                 (const :tag "Nothing" nil))
  :risky t)

(defcustom efrit-instruction-most-bytes 200000
  "Most bytes of a file of instructions that are sent with a session.
Of a longer file the beginning is sent, with a note that names the file."
  :type 'natnum :risky t)

;;; Edits

(defcustom efrit-change-most-bytes 20000000
  "Size in bytes of the largest file that the edit tools change."
  :type 'natnum :risky t)

(defcustom efrit-change-keep-buffers nil
  "Non-nil means visit each file that an edit changed, and keep its buffer.
Files on other machines are not visited, and an edit needs no buffer.  Undo in a
buffer undoes the edits that were made in it, step by step."
  :type 'boolean)

(defcustom efrit-edit-unsaved-buffers 'leave
  "Action for an edit of a buffer with unsaved changes.
The edit is made in the buffer in any case.  `leave': do not save the
buffer, and tell the model; `save': save it; `ask': ask the person."
  :type '(choice (const leave) (const save) (const ask)) :risky t)

;;; Tools that run in Emacs

(defcustom efrit-eval-seconds 30
  "Seconds an evaluation may take; nil means no limit.
Emacs waits for the evaluation.  Code can defeat the limit on purpose.
A batch Emacs that waits in `call-process' notices the limit only when
that process has ended."
  :type '(choice (const :tag "No limit" nil) number) :risky t)

(defcustom efrit-eval-most-characters 200000
  "Most characters of an evaluation's output, and of its value, that are kept."
  :type 'natnum)

(defcustom efrit-code-seconds 10
  "Seconds that an xref backend may take to answer."
  :type 'number :risky t)

(defcustom efrit-code-most-places 2000
  "Most definitions or references that are listed."
  :type 'natnum)

(defcustom efrit-compile-seconds 600
  "Seconds a compilation may take unless the model sets a limit."
  :type 'natnum :risky t)

(defcustom efrit-compile-most-characters 5000000
  "Most characters a compilation may print before it is stopped."
  :type 'natnum)

(defcustom efrit-compile-hidden-variables
  '("\\`\\(?:ANTHROPIC\\|OPENAI\\|CLAUDE\\|GEMINI\\|AWS\\|AZURE\\|ARM\\|OP_SESSION\\|GIT_CONFIG_\\(?:KEY\\|VALUE\\)\\)_"
    "\\`PGPASS\\|API_?KEY\\|PRIVATE_KEY\\|ACCESS_KEY\\|\\(?:_\\|\\`\\)KEYS?\\'\\|_KEY_ID\\'"
    "\\`\\(?:TOKEN\\|JWT\\|SSHPASS\\|COOKIES?\\|BW_SESSION\\|KUBECONFIG\\|NETRC\\)\\'"
    "\\`GIT_CONFIG_\\(?:COUNT\\|PARAMETERS\\)\\'\\|_TOKEN_\\|_JWT\\(?:_\\|\\'\\)\\|_AUTH_\\|_PWD\\'\\|DBPASS\\'"
    "\\(?:_\\|\\`\\)\\(?:TOKENS?\\|PAT\\|DSN\\|AUTH\\|PASS\\|PW\\|CREDS\\|COOKIES?\\|OTP\\)\\'"
    "SECRET\\|PASSWORD\\|PASSWD\\|PASSPHRASE\\|PASSCODE\\|CREDENTIAL\\|AUTHORIZATION\\|BEARER\\|ASKPASS"
    "CONNECTION_STRING\\|CONNSTR\\|WEBHOOK_URL")
  "Environment variables that a compilation does not get.
Regular expressions for their names, in upper case.  Variables whose values
look like keys are left out, too."
  :type '(repeat regexp) :risky t)

(defcustom efrit-diagnostics-backends
  '(elisp-flymake-checkdoc python-flymake sh-shellcheck-flymake lua-ts-flymake-luacheck
                           tex-chktex eglot-flymake-backend)
  "Flymake backends that may be started where no checker is running.
They must only read the file.  Other backends, such as
`elisp-flymake-byte-compile', may run code of the project."
  :type '(repeat function) :risky t)

(defcustom efrit-diagnostics-seconds 10
  "Seconds that checkers may take to report."
  :type 'number :risky t)

(defcustom efrit-edit-diagnostics nil
  "Non-nil: the answer to an edit has the errors and warnings of the files.
The files are checked as by the tool `get_diagnostics'."
  :type 'boolean :risky t)

(defcustom efrit-format-functions
  (append (mapcar (lambda (mode) (cons mode 'json-pretty-print-buffer))
                  '(json-mode js-json-mode json-ts-mode))
          '((go-mode . gofmt) (rust-mode . rust-format-buffer)))
  "Alist from major modes to functions that format the current buffer.
Code in another mode is indented."
  :type '(alist :key-type symbol :value-type function) :risky t)

(defcustom efrit-format-meaningful-indentation
  '(python-mode python-base-mode haskell-mode elm-mode fsharp-mode nim-mode coffee-mode
                yaml-mode yaml-ts-mode makefile-mode haml-mode sass-mode pug-mode slim-mode)
  "Major modes of languages in which indentation has a meaning.
Their files are never indented, as Emacs could only guess."
  :type '(repeat symbol))

(defcustom efrit-format-seconds 20
  "Seconds a language server may take to format a file or rename a symbol."
  :type 'number :risky t)

(defcustom efrit-format-most-characters 300000
  "Characters of the longest text that Emacs formats or indents itself.
Emacs waits until the text is formatted."
  :type 'natnum)

(defcustom efrit-show-seconds 60
  "Seconds that lines shown by the model stay highlighted; nil: until the next."
  :type '(choice (const :tag "Until others are" nil) number))

(defcustom efrit-show-most-characters 2000000
  "Most characters of a stored result that the model can show to the person."
  :type 'natnum)

(defcustom efrit-fetch-seconds 30
  "Seconds that a web site may take to answer."
  :type 'number :risky t)

(defcustom efrit-fetch-most-bytes 5000000
  "Most bytes of a web site's answer that are kept."
  :type 'natnum :risky t)

(defcustom efrit-fetch-most-redirects 5
  "Most redirects within a site that are followed."
  :type 'natnum :risky t)

(defcustom efrit-fetch-user-agent "Mozilla/5.0 (compatible; efrit)"
  "User agent sent to web sites by fetch_url and web_search."
  :type 'string :risky t)

(defcustom efrit-web-search-url "https://html.duckduckgo.com/html/?q=%s"
  "Address of a web search; %s stands for the query."
  :type 'string :risky t)

(defcustom efrit-web-render-seconds 20
  "Seconds that laying out a web page as text may take."
  :type 'number :risky t)

;;; Views

(defcustom efrit-session-view-height 0.67
  "Height of a new session window: a fraction of the frame, or lines."
  :type 'number)

(defcustom efrit-view-most-characters 100000
  "Most characters of a tool's result shown below its line.
`efrit-open-result' shows the whole result in a buffer of its own."
  :type 'natnum)

(defcustom efrit-view-markdown t
  "Non-nil means show the Markdown of replies dressed, not its source.
\\<efrit-session-view-transcript-map>\\[efrit-session-view-source] \
shows the source of one reply."
  :type 'boolean)

(defcustom efrit-view-usage nil
  "Non-nil means show turn, tokens and price of each reply in a line below it.
The header line has those of the whole session."
  :type 'boolean)

(defcustom efrit-view-least-group 3
  "Least number of successful reads and searches in a row that fold into a line."
  :type '(choice (const :tag "Never fold" nil) natnum))

(defcustom efrit-output-lines 6
  "Lines of a running tool's output shown below its line.
With 0 no output is shown."
  :type 'natnum)

(defcustom efrit-result-most-characters 2000000
  "Most characters of a stored result that `efrit-open-result' shows."
  :type 'natnum)

(defcustom efrit-reply-box-files-for 15
  "Seconds that the list of a project's files is cached for completion."
  :type 'number)

(defcustom efrit-presence-notify 'desktop
  "Way to announce that a session in no visible window has ended its work."
  :type '(choice (const :tag "By the desktop, else in the echo area" desktop)
                 (const :tag "In the echo area" message)
                 (const :tag "Not at all" nil)))

(defcustom efrit-presence-in-mode-line 'project
  "Mode lines in which a lighter tells that a session is at work, or asks.
The mode line of the session's own buffer tells it in any case."
  :type '(choice (const :tag "Those of buffers of its project" project)
                 (const :tag "All" t)
                 (const :tag "None" nil)))

(defcustom efrit-export-format 'markdown
  "The format that is offered first when a session is exported."
  :type '(choice (const markdown) (const org)))

(defcustom efrit-memory-pack-tokens 2000
  "Default size of a context pack, in tokens."
  :type 'natnum)

(defcustom efrit-memory-most-results 50
  "Most observations that a memory search lists."
  :type 'natnum)

;;; The model

(defgroup efrit-claude nil
  "The model and its endpoint."
  :group 'efrit)

(defcustom efrit-claude-url "https://api.anthropic.com/v1/messages"
  "URL of the endpoint, any server with the API that `efrit-endpoint-api' names.
Give the whole address, with http:// or https:// in front.  \\[efrit-model]
and \\[efrit-add-provider] set this together with the API and the features."
  :type 'string :risky t)

(defcustom efrit-endpoint-api 'messages
  "The API of the endpoint: Messages, or Chat Completions."
  :type '(choice (const :tag "Messages" messages) (const :tag "Chat Completions" chat))
  :risky t)

(defcustom efrit-endpoint-provider nil
  "Name of the endpoint's provider in `efrit-providers', or nil for none.
Prices and windows are looked up by it, and estimates learnt for it."
  :type '(choice (const :tag "None" nil) string) :risky t)

(defcustom efrit-endpoint-window nil
  "Tokens that the model can hold at this endpoint; nil: as the sidecar knows."
  :type '(choice (const :tag "As known" nil) natnum) :risky t)

(defcustom efrit-endpoint-max-output nil
  "Most tokens of a reply at this endpoint; nil: as the sidecar knows."
  :type '(choice (const :tag "As known" nil) natnum) :risky t)

(defconst efrit-preset-providers
  '(("anthropic" :url "https://api.anthropic.com/v1/messages" :key "ANTHROPIC_API_KEY")
    ("openai" :url "https://api.openai.com/v1/chat/completions" :api chat :key "OPENAI_API_KEY"
     :features (usage effort max-completion-tokens developer system-messages images))
    ("google" :url "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"
     :api chat :key "GEMINI_API_KEY" :features (usage effort images thought-signatures))
    ("mistral" :url "https://api.mistral.ai/v1/chat/completions" :api chat :key "MISTRAL_API_KEY"
     :features (alternation short-ids images))
    ("groq" :url "https://api.groq.com/openai/v1/chat/completions" :api chat :key "GROQ_API_KEY"
     :features (usage max-completion-tokens))
    ("deepseek" :url "https://api.deepseek.com/chat/completions" :api chat
     :key "DEEPSEEK_API_KEY" :features (usage reasoning-back))
    ("openrouter" :url "https://openrouter.ai/api/v1/chat/completions" :api chat
     :key "OPENROUTER_API_KEY" :features (usage images reasoning-back))
    ("x-ai" :url "https://api.x.ai/v1/chat/completions" :api chat :key "XAI_API_KEY"
     :features (usage images system-messages))
    ("ollama" :url "http://localhost:11434/v1/chat/completions" :api chat
     :features (usage images))
    ("lmstudio" :url "http://localhost:1234/v1/chat/completions" :api chat :features (usage))
    ("llama.cpp" :url "http://localhost:8080/v1/chat/completions" :api chat :features (usage))
    ("vllm" :url "http://localhost:8000/v1/chat/completions" :api chat :features (usage)))
  "Known providers, as `efrit-providers' has them.")

(defcustom efrit-providers nil
  "Your providers, before those of `efrit-preset-providers'.
Each is a list of a name and a plist: `:url', the whole address; `:api',
`messages' or `chat'; `:features', as `efrit-claude-features'; `:key', an
environment variable with the key, if `auth-source' has none for the host;
`:headers', as `efrit-claude-headers'; and `:models', lists of a name and a
plist with `:window' and `:max-output' in tokens.  Without `:models', the
sidecar's price list is asked for them.
\\[efrit-add-provider] asks a server, and adds what it finds."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :options ((:url string) (:api symbol) (:features sexp)
                                             (:key string) (:headers sexp) (:models sexp))))
  :risky t)

(defcustom efrit-small-window 16000
  "Tokens of a window below which a model gets few tools and a short prompt.
It gets `efrit-small-window-tools' alone, and a short system prompt."
  :type 'natnum :risky t)

(defcustom efrit-small-window-tools
  '("project_files" "search_content" "read_file" "edit_file" "create_file" "run_command"
    "recall_result")
  "Names of the tools for models whose window is below `efrit-small-window'."
  :type '(repeat string) :risky t)

(defcustom efrit-claude-headers nil
  "Additional headers of every request: an alist of strings."
  :type '(alist :key-type string :value-type string) :risky t)

(defcustom efrit-claude-features 'auto
  "Features of the endpoint besides plain messages.
With `auto' those of the provider with this host in `efrit-providers' or
`efrit-preset-providers'; everything at the vendor's own endpoint; and
elsewhere nothing but the usage of a chat, since servers may refuse unknown
fields.  See Info node `(efrit) Features'."
  :type '(choice (const auto)
                 (set (const cache) (const thinking) (const effort) (const task-budget)
                      (const binding) (const diagnostics)
                      (const usage) (const max-completion-tokens) (const developer)
                      (const system-messages) (const alternation) (const short-ids)
                      (const images) (const reasoning-back) (const thought-signatures)))
  :risky t)

(defcustom efrit-claude-key-hosts '("api.anthropic.com")
  "Hosts that are sent the key in the variable ANTHROPIC_API_KEY.
For other hosts only `auth-source' is searched."
  :type '(repeat string) :risky t)

(defcustom efrit-claude-key-in-clear nil
  "Non-nil means allow sending a key over plain http to another machine.
Anybody between the two machines can then read the key."
  :type 'boolean :risky t)

(defcustom efrit-http-program "curl"
  "The curl program that sends requests."
  :type 'string :risky t)

(defcustom efrit-http-connect-timeout 30
  "Seconds that curl may take to connect to a server."
  :type 'number :risky t)

(defcustom efrit-http-silence-timeout 300
  "Seconds without data after which a request fails."
  :type 'number :risky t)

(defcustom efrit-http-directory
  (let ((runtime (getenv "XDG_RUNTIME_DIR")))
    (if (and runtime (file-directory-p runtime))
        (expand-file-name "efrit" runtime)
      (locate-user-emacs-file "efrit-requests")))
  "Folder for request files, readable by nobody else.
Each request is a file there until it has ended.  Do not use a shared
folder, such as the one for temporary files: others could create it first."
  :type 'directory :risky t)

(defcustom efrit-claude-model "claude-sonnet-5-5"
  "Name of the model."
  :type 'string :risky t)

(defcustom efrit-claude-max-tokens nil
  "The longest reply, in tokens; nil means the session's whole reserve."
  :type '(choice (const :tag "The reserve" nil) natnum) :risky t)

(defcustom efrit-claude-effort nil
  "The API's level of effort for the model; nil: the default of the API."
  :type '(choice (const :tag "The API's default" nil)
                 (const "low") (const "medium") (const "high") (const "xhigh") (const "max")))

(defcustom efrit-claude-thinking-display "summarized"
  "Form in which the API sends thinking: summarized, as updates, or omitted.
With \"off\", the model does not think, or as little as it allows."
  :type '(choice (const "summarized") (const "updates") (const "omitted") (const "off")))

(defcustom efrit-claude-task-budget nil
  "Tokens of the countdown that the API shows the model; nil: no countdown.
The tokens of the whole session count, those of evicted turns included."
  :type '(choice (const :tag "None" nil) natnum) :risky t)

(defcustom efrit-claude-betas nil
  "Names of API betas that every request asks for."
  :type '(repeat string) :risky t)

(defcustom efrit-claude-retries 8
  "Number of retries after a transient failure."
  :type 'natnum :risky t)

(defcustom efrit-claude-retry-delay 1
  "Seconds before the first retry; each later one waits twice as long.
A delay that the server asks for takes precedence."
  :type 'number :risky t)

(defcustom efrit-claude-retry-most 60
  "Most seconds between retries where the server asks for no delay."
  :type 'number :risky t)

(defcustom efrit-claude-most-bytes 50000000
  "Most bytes of a reply, as received; a longer one is dropped as broken."
  :type 'natnum :risky t)

(defcustom efrit-claude-retry-after-most 3600
  "Longest delay before a retry, in seconds, that a server may ask for."
  :type 'number :risky t)

;;; The budget

(defgroup efrit-session nil
  "The budget of a session, in tokens."
  :group 'efrit)

(defcustom efrit-budget-total-target 100000
  "Tokens of the whole budget of a session: the prompt and the reply's reserve.
Tiers whose options are not set scale with this number."
  :type 'natnum :risky t)

(defcustom efrit-budget-per-tool-default 8000
  "Most tokens that one tool call may deliver."
  :type 'natnum :risky t)

(defcustom efrit-budget-history-max 12000
  "Most tokens of the compressed work log and the model's earlier turns."
  :type 'natnum :risky t)

(defcustom efrit-budget-warning-threshold 20000
  "Remaining tokens below which the model gets a warning."
  :type 'natnum :risky t)

(defcustom efrit-memory-tools t
  "Non-nil means offer the memory tools in new sessions."
  :type 'boolean :risky t)

(defcustom efrit-budget-bars-width 30
  "Width of the tiers' bars in characters, if there is room."
  :type 'natnum)

(defcustom efrit-budget-view-delay 0.3
  "Seconds from an event in a session to the refresh of its gauge and budget view."
  :type 'number)

(defcustom efrit-budget-view-interval 2.0
  "Least seconds between two automatic refreshes of a budget view."
  :type 'number)

;;; Faces

(defgroup efrit-faces nil
  "Faces of sessions and lists."
  :group 'efrit
  :group 'faces)

(pcase-dolist (`(,face ,parent ,use . ,more)
               '((efrit-title (bold font-lock-doc-face) "the first line of a session")
                 (efrit-person (bold font-lock-keyword-face) "the line above the person's message")
                 (efrit-said default "the person's messages")
                 (efrit-text default "the model's text")
                 (efrit-heading-3 bold "smaller headings in the model's text")
                 (efrit-quote shadow "quotes in the model's text")
                 (efrit-link link "links and names of files in texts")
                 (efrit-thinking (italic shadow) "the model's thinking and its heading")
                 (efrit-tool (bold font-lock-function-name-face) "the name of a tool in its line")
                 (efrit-arguments font-lock-string-face "the arguments of a tool in its line")
                 (efrit-figures shadow "tokens, times and prices")
                 (efrit-delivered shadow "text that a tool returned to the model")
                 (efrit-done success "the sign of a success")
                 (efrit-failed error "the sign of a failure, and its reason")
                 (efrit-busy warning "the sign of work in progress")
                 (efrit-note shadow "notes of efrit itself")
                 (efrit-attached link "a name in a message that attaches a file")
                 (efrit-question (bold warning) "questions to the person")
                 (efrit-question-body font-lock-constant-face
                                      "the arguments of a tool call that asks for permission")
                 (efrit-key (bold link) "keys and buttons" :underline nil)
                 (efrit-prompt minibuffer-prompt "the prompt of the reply box")
                 (efrit-gauge-ample success "the gauge while the prompt has room")
                 (efrit-gauge-low warning "the gauge when the prompt is nearly full")
                 (efrit-gauge-full error "the gauge when the prompt is full: it compacts next")
                 (efrit-gauge-part shadow "the bars of tiers, files and tools")
                 (efrit-budget-pinned font-lock-keyword-face "pinned results")
                 (efrit-shown highlight "lines that the model shows")))
  (custom-declare-face face `((t :inherit ,parent ,@more)) (format "Face for %s." use)))

(defface efrit-heading-1 '((((supports :height 1.2)) :inherit bold :height 1.2)
                           (t :inherit bold :underline t))
  "Face for the largest headings in the model's text.")

(defface efrit-heading-2 '((((supports :height 1.1)) :inherit bold :height 1.1)
                           (t :inherit bold))
  "Face for large headings in the model's text.")

(defface efrit-struck '((t :strike-through t))
  "Face for text that the model struck out.")

(defface efrit-code-block
  '((((class color) (min-colors 88) (background light))
     :inherit fixed-pitch :background "#ebebeb" :extend t)
    (((class color) (min-colors 88) (background dark))
     :inherit fixed-pitch :background "#3a3a3a" :extend t)
    (t :inherit fixed-pitch))
  "Face for code blocks in the model's text.")

(defface efrit-code '((t :inherit (font-lock-constant-face fixed-pitch)))
  "Face for code within a line of the model's text.")

;;; Errors

(define-error 'efrit-error "Efrit error")
(define-error 'efrit-rpc-error "The sidecar answered with an error" 'efrit-error)
(define-error 'efrit-cancelled "The call was cancelled" 'efrit-rpc-error)
(define-error 'efrit-timeout "The sidecar did not answer in time" 'efrit-error)
(define-error 'efrit-sidecar-died "The sidecar ended" 'efrit-error)
(define-error 'efrit-unencodable "The call cannot be written as JSON" 'efrit-error)
(define-error 'efrit-no-key "" 'user-error)
(define-error 'efrit-change-refused "The change cannot be made")
(define-error 'efrit-plan-refused "The plan cannot be made")
(define-error 'efrit-remote-busy "TRAMP is busy")

;;; Public

(defun efrit-error-text (err)
  "Return the message of the condition ERR, for a person.
ERR is (SYMBOL . DATA), as `condition-case' binds it."
  (if (and (stringp (cadr err))
           (memq 'efrit-error (get (car err) 'error-conditions)))
      (let ((detail (plist-get (efrit-rpc-error-data err) :detail)))
        (format "%s: %s%s" (get (car err) 'error-message) (cadr err)
                (if (stringp detail) (concat ": " detail) "")))
    (error-message-string err)))

(defun efrit-rpc-error-code (err)
  "Return the JSON-RPC code of ERR, an `efrit-rpc-error', or nil if it has none."
  (plist-get (cddr err) :code))

(defun efrit-rpc-error-data (err)
  "Return the JSON-RPC error data of ERR, an `efrit-rpc-error', or nil.
The data of refused parameters have `:fields' with their names and reasons."
  (plist-get (cddr err) :data))

(defmacro efrit-for-a-person (&rest body)
  "Run BODY for a command; turn an error of efrit into a `user-error'."
  (declare (indent 0) (debug t))
  `(condition-case err
       (progn ,@body)
     (efrit-error (user-error "%s" (efrit-error-text err)))))

(defun efrit-smallest-window (columns lines)
  "Return the columns and lines of the smallest window of this buffer, as a cons.
Without a window, and in batch, return COLUMNS and LINES."
  (let ((windows (and (not noninteractive) (get-buffer-window-list nil nil t))))
    (if windows
        (cons (apply #'min (mapcar #'window-max-chars-per-line windows))
              (apply #'min (mapcar #'window-body-height windows)))
      (cons columns lines))))

(defmacro efrit-with-live-buffer (buffer &rest body)
  "Run BODY in BUFFER, unless BUFFER is nil or killed."
  (declare (indent 1) (debug t))
  (let ((name (make-symbol "buffer")))
    `(let ((,name ,buffer))
       (when (buffer-live-p ,name)
         (with-current-buffer ,name
           ,@body)))))

(defmacro efrit-on-failure (cleanup &rest body)
  "Run BODY and return its value; evaluate CLEANUP if BODY signals or throws."
  (declare (indent 1) (debug t))
  (let ((done (make-symbol "done")))
    `(let ((,done nil))
       (unwind-protect (prog1 (progn ,@body)
                         (setq ,done t))
         (unless ,done
           ,cleanup)))))

(defun efrit-make-keymap (bindings &optional parent)
  "Return a keymap of BINDINGS, a list of (KEYS COMMAND), that inherits PARENT.
KEYS are as for `kbd'."
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map parent)
    (pcase-dolist (`(,keys ,command) bindings)
      (define-key map (kbd keys) command))
    map))

(defun efrit-run-at-time (time repeat function &rest arguments)
  "Call FUNCTION with ARGUMENTS at TIME, every REPEAT seconds; return the timer.
Like `run-at-time', but a timer made while TRAMP waits stays: TRAMP of Emacs 30
binds the list of timers then, and drops those that were added."
  (let* ((timer-list (default-toplevel-value 'timer-list))
         (timer (apply #'run-at-time time repeat function arguments)))
    (set-default-toplevel-value 'timer-list timer-list)
    timer))

(defmacro efrit-stop-timer (place)
  "Cancel the timer in PLACE, a generalized variable, if any; set PLACE to nil."
  (declare (debug (gv-place)))
  `(when ,place
     (cancel-timer ,place)
     (setf ,place nil)))

(defun efrit-trim-right (text &optional blanks)
  "Return TEXT without the characters at its end that are in BLANKS, a string.
By default these are blanks, tabs and line breaks.  Long rows of them within
TEXT take little time here, and minutes in `string-trim-right'."
  (let ((blanks (append (or blanks " \t\n\r") nil))
        (end (length text)))
    (while (and (> end 0) (memq (aref text (1- end)) blanks))
      (setq end (1- end)))
    (substring text 0 end)))

(defun efrit-trim (text &optional blanks)
  "Return TEXT without the characters at both ends that are in BLANKS, a string.
BLANKS is as in `efrit-trim-right'."
  (let* ((blanks (or blanks " \t\n\r"))
         (text (efrit-trim-right text blanks))
         (begin 0))
    (while (and (< begin (length text)) (memq (aref text begin) (append blanks nil)))
      (setq begin (1+ begin)))
    (substring text begin)))

(defun efrit-set-buffer-text (text)
  "Replace the text of this buffer with TEXT, and move to its beginning."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert text)
    (goto-char (point-min))))

(declare-function evil-initial-state "ext:evil-core" (mode &optional default &rest ignored))
(declare-function evil-set-initial-state "ext:evil-core" (mode state))

(defun efrit-keep-keys ()
  "Have evil, if it is loaded, leave the keys of this buffer's mode alone.
The mode begins in evil's Emacs state, unless the person chose another one."
  (when (and (fboundp 'evil-set-initial-state)
             (eq 'unset (evil-initial-state major-mode 'unset)))
    (evil-set-initial-state major-mode 'emacs)))

(defun efrit-show-error (err)
  "Show the error condition ERR in the echo area."
  (message "%s" (efrit-error-text err)))

(defun efrit-count-text (count noun)
  "Return COUNT of NOUN as text, such as \"1 line\" or \"2 lines\"."
  (format "%d %s%s" count noun (if (= count 1) "" "s")))

(defvar tabulated-list-use-header-line)

(declare-function tabulated-list-print "tabulated-list" (&optional remember-pos update))

(defun efrit-list-set-up (keys)
  "Show KEYS, lists of a key and what it does, in the header line of this list.
The names of the columns stand in the first line of the buffer.  The menu bar
gets a menu of these KEYS."
  (efrit-list-add-menu keys)
  (setq tabulated-list-use-header-line nil
        header-line-format (list :eval (list 'efrit-list-keys-line (list 'quote keys)
                                             '(window-width)))))

(defun efrit-list-add-menu (keys)
  "Give the mode of this buffer a menu of KEYS, lists of a key and what it does."
  (let ((map (current-local-map)))
    (easy-menu-define nil map nil
      (cons "Efrit"
            (delq nil (mapcar (pcase-lambda (`(,key ,does))
                                (let ((command (lookup-key map (kbd key))))
                                  (and command
                                       (vector (concat (upcase (substring does 0 1))
                                                       (substring does 1))
                                               command t))))
                              keys))))))

(defun efrit-list-print ()
  "Print this list, in every window with point on its entry, else on the first."
  (tabulated-list-print t)
  (let ((first (save-excursion
                 (goto-char (point-min))
                 (line-beginning-position 2))))
    (when (< (point) first)
      (goto-char first))
    (dolist (window (get-buffer-window-list nil nil t))
      (when (< (window-point window) first)
        (set-window-point window first)))))

(defun efrit-list-keys-line (keys columns)
  "Return KEYS, lists of a key and what it does, as a line of at most COLUMNS.
The last one, for help, has a place in any line."
  (let* ((parts (mapcar (pcase-lambda (`(,key ,does))
                          (concat (propertize key 'face 'efrit-key) " " does))
                        keys))
         (shown (butlast parts)))
    (while (and shown
                (> (string-width (mapconcat #'identity (append shown (last parts)) "  ")) (- columns 2)))
      (setq shown (butlast shown)))
    (string-replace "%" "%%" (concat " " (mapconcat #'identity (append shown (last parts)) "  ")))))

(defun efrit-check-mode (mode)
  "Signal a `user-error' unless this buffer is in MODE, or a mode derived from it.
Commands call this, since they can be run in any buffer by name."
  (unless (derived-mode-p mode)
    (user-error "Run %s in a buffer in %s" (or this-command "this") mode)))

;;; Programs

(defun efrit-exec-path ()
  "Return the folders of the variable `exec-path' whose names are absolute.
A relative name depends on the current folder: it may name a project's folder."
  (seq-filter #'file-name-absolute-p (default-value 'exec-path)))

;;; The prompt of a task

;; The commands that read a task need this file only, so that the first prompt
;; is there at once; the other files are loaded, and the sidecar is started, while
;; the person types.

(defconst efrit-start--steps
  '((require efrit-sidecar)
    (efrit-start--sidecar)
    (require efrit-run)
    (efrit-start--find-project)
    (require transient)
    (require efrit-do)
    (efrit-start--complete-files)
    (require efrit-view)
    (require auth-source))
  "Functions to call behind the prompt, with their arguments, in this order.
The sidecar comes first, since it takes longest to start.")

(defconst efrit-start--pause 0.02
  "Seconds from one step behind the prompt to the next.")

(declare-function efrit-do-task "efrit-do" (task &optional dry))

(defvar efrit-do-history nil
  "Messages that the person sent, latest first.")

;;;###autoload
(defun efrit-do (task &optional dry)
  "Have the model do TASK in the project here.
With an active region, the region is context.  With a prefix argument, as
DRY, show first what would be sent, and what it would cost."
  (interactive (list (efrit-start--read-task (efrit-start--prompt efrit-context-buffer))
                     current-prefix-arg))
  (efrit-do-task task dry))

;;;###autoload
(defun efrit-do-with-buffer (task)
  "Have the model do TASK in the project here, with the text of this buffer."
  (interactive (list (efrit-start--read-task (efrit-start--prompt 'text))))
  (let ((efrit-context-buffer 'text))
    (efrit-do-task task)))

(defun efrit-do-remember (task)
  "Add TASK to the history, unless it has a <private> tag.
`savehist-mode' would write the private text to a file."
  (unless (let ((case-fold-search t))
            (string-match-p "<[ \t\n]*/?[ \t\n]*private" task))
    (add-to-history 'efrit-do-history task)))

(declare-function project-root "project" (project))
(declare-function efrit-loop-root "efrit-loop" (loop) t)
(declare-function efrit-loop-title "efrit-loop" (loop) t)
(declare-function efrit-loop-latest "efrit-loop" (&optional root))
(defvar efrit-loop-here)

(defun efrit-start--prompt (context)
  "Return the prompt for a task, which names project, session and context.
CONTEXT is as in `efrit-context-buffer'."
  (let* ((here (bound-and-true-p efrit-loop-here))
         (root (if here (efrit-loop-root here) (efrit-start--root)))
         (loop (or here (and root (featurep 'efrit-loop) (efrit-loop-latest root))))
         (along (cond ((use-region-p)
                       (format "with the region of %s"
                               (efrit-count-text (count-lines (region-beginning) (region-end))
                                                 "line")))
                      ((and (eq context 'text) (not here))
                       (concat "with the buffer " (efrit-start--short (buffer-name))))))
         (session (cond ((null loop) (and root "new session"))
                        ((efrit-loop-title loop)
                         (format "session \"%s\"" (efrit-start--short (efrit-loop-title loop)))))))
    (concat "Do"
            (if root
                (concat " in " (file-name-nondirectory (directory-file-name root)))
              "")
            (if (or session along)
                (concat " (" (mapconcat #'identity (delq nil (list session along)) ", ") ")")
              "")
            ": ")))

(defun efrit-start--root ()
  "Return the root of the project here, or nil if it would take time to find one."
  (unless (file-remote-p default-directory)
    (let ((root (if (featurep 'project)
                    (let ((project (project-current)))
                      (and project (project-root project)))
                  (locate-dominating-file default-directory ".git"))))
      (and root (file-name-as-directory (expand-file-name root))))))

(defun efrit-start--short (text)
  "Return TEXT on one line, of at most 40 columns."
  (truncate-string-to-width (mapconcat #'identity (split-string text) " ") 40 nil nil t))

(defun efrit-start--read-task (prompt)
  "Read a task with PROMPT, and add it to the history.
Meanwhile load the other files and start the sidecar."
  (let ((task (minibuffer-with-setup-hook #'efrit-start--prepare
                (let ((history-add-new-input nil))
                  (read-string prompt nil 'efrit-do-history)))))
    (unless (equal task "")
      (efrit-do-remember task))
    task))

;;;; Behind the prompt

(defvar-local efrit-start--reading-task nil
  "Non-nil in the minibuffer of a task.")

(defun efrit-start--prepare ()
  "Begin to work through `efrit-start--steps', one at a time, by timers."
  (setq efrit-start--reading-task t)
  (efrit-start--continue-later efrit-start--steps))

(defun efrit-start--continue-later (todo)
  "Work through TODO, a tail of `efrit-start--steps', after a pause."
  (efrit-run-at-time efrit-start--pause nil #'efrit-start--continue todo default-directory))

(defun efrit-start--continue (todo folder)
  "Call the first function of TODO in FOLDER, and the others later.
Wait while a key is to be read, and stop once the prompt is closed."
  (let ((default-directory folder))
    (cond ((null (active-minibuffer-window)))
          ((input-pending-p) (efrit-start--continue-later todo))
          (t (efrit-start--call (car todo))
             (when (cdr todo)
               (efrit-start--continue-later (cdr todo)))))))

(defun efrit-start--call (step)
  "Call the function of STEP; ignore errors, which come again when it is needed.
A quit ends STEP and is passed on to the prompt as a key: as a mere flag, Emacs
could lose it while it reads the output of a process."
  (let ((inhibit-message t)
        (inhibit-quit nil))
    (condition-case nil
        (apply (car step) (cdr step))
      (quit (push ?\C-g unread-command-events))
      (error nil))))

(defun efrit-start--sidecar ()
  "Start the sidecar of this machine, unless the folder here is remote."
  (unless (file-remote-p default-directory)
    (efrit-sidecar-start (efrit-host-of-folder default-directory))))

(declare-function efrit-host-of-folder "efrit-sidecar" (folder))
(declare-function efrit-sidecar-start "efrit-sidecar" (&optional host))
(declare-function efrit-attach-watch-minibuffer "efrit-do")

(defun efrit-start--complete-files ()
  "Have the minibuffer of a task complete the project's files behind an @."
  (with-current-buffer (window-buffer (active-minibuffer-window))
    (when efrit-start--reading-task
      (efrit-attach-watch-minibuffer))))

(defun efrit-start--find-project ()
  "Look for the project here, to load the packages that find projects."
  (unless (file-remote-p default-directory)
    (project-current)))

;;; Other commands

;; The cookies of the files give efrit-autoloads.el, which package.el makes when
;; it installs, setup.py for a wheel, and `make setup' in a checkout.

(defconst efrit--folder (and load-file-name (file-name-directory load-file-name))
  "The folder that this file was loaded from.")

(unless (or (featurep 'efrit-autoloads)
            (null efrit--folder)
            (load (expand-file-name "efrit-autoloads" efrit--folder) t t))
  (display-warning 'efrit "Most commands are missing, since efrit-autoloads.el is: \
run make setup in the checkout"))

;;; Another efrit

;; The older efrit has files of the same names; with both, neither works.

(defun efrit-other-folders ()
  "Return the folders of other packages called efrit that hide this one, or nil.
They stand before it in the variable `load-path', or files of theirs are loaded
that are called as files of this one."
  (let ((names (mapcar #'file-name-base (directory-files efrit--folder nil "\\`efrit.*\\.elc?\\'")))
        (folders nil))
    (pcase-dolist (`(,file . ,_) load-history)
      (when (and (stringp file) (member (file-name-base file) names))
        (push (file-name-directory file) folders)))
    (catch 'own
      (dolist (folder load-path)
        (when (efrit--own-folder-p folder)
          (throw 'own nil))
        (when (or (file-exists-p (expand-file-name "efrit-do.el" folder))
                  (file-exists-p (expand-file-name "efrit-do.elc" folder)))
          (push (file-name-as-directory folder) folders))))
    (delete-dups (delq nil (mapcar (lambda (folder)
                                     (unless (efrit--own-folder-p folder)
                                       (abbreviate-file-name folder)))
                                   folders)))))

(defun efrit--own-folder-p (folder)
  "Return non-nil if FOLDER has the files of this package, or links to them."
  (or (equal (file-name-as-directory folder) efrit--folder)
      (file-equal-p (expand-file-name "efrit-rpc.el" folder)
                    (expand-file-name "efrit-rpc.el" efrit--folder))))

(defun efrit-other-advice (folders)
  "Return a sentence about FOLDERS, as from `efrit-other-folders', and what to do."
  (format "Another efrit is in %s, and its files hide those of this one: remove that \
from `load-path', and restart Emacs" (mapconcat #'identity folders ", ")))

(let ((folders (and efrit--folder (efrit-other-folders))))
  (when folders
    (display-warning 'efrit (efrit-other-advice folders))))

;;; Outdated compiled files

(defun efrit--drop-outdated (file)
  "Delete the compiled files beside FILE older than the newest source there.
A macro that they use may have changed.  If a file cannot be deleted,
have Emacs prefer newer sources.  If FILE itself is outdated, load its
source."
  (let* ((folder (file-name-directory file))
         (newest (car (sort (directory-files folder t "\\`efrit.*\\.el\\'")
                            #'file-newer-than-file-p))))
    (dolist (compiled (directory-files folder t "\\`efrit.*\\.elc\\'"))
      (when (and newest (file-newer-than-file-p newest compiled))
        (condition-case nil
            (delete-file compiled)
          (file-error (setq load-prefer-newer t)))
        (when (string= compiled file)
          (load (substring compiled 0 -1) nil t t))))))

(when load-file-name
  (efrit--drop-outdated load-file-name))

(provide 'efrit)
;;; efrit.el ends here
