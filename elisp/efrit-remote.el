;;; efrit-remote.el --- The sidecar's process on another machine  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; TRAMP runs the sidecar in a shell behind a terminal.  A terminal cuts long
;; lines and interprets some bytes, so the shell first makes the terminal raw,
;; looks for the programs, and prints a text when it begins; Emacs sends nothing
;; before, and does not wait for that.  Only one stream comes back: the shell
;; writes the sidecar's standard error to a nameless file there, and sends its end
;; when the sidecar has ended, behind a null, which no message contains.
;;
;; While TRAMP waits, timers run.  If a timer used TRAMP then, it would break
;; the operation that waits, or run its own on this machine without an error.
;; So no operation begins while TRAMP is busy, and each checks where it runs.
;;
;; TRAMP shares one ssh connection among all programs on a machine.  While TRAMP
;; waits for an answer, Emacs reads no other output; a program that writes much
;; meanwhile blocks the shared connection, and the answer never comes.  So
;; programs get connections of their own.

;;; Code:

;; The other files get cl-lib, seq and subr-x from here.
(require 'cl-lib)
(require 'efrit)
(require 'seq)
(require 'subr-x)

;; Else the person would see errors of files that do not belong together.
(if (fboundp 'efrit-other-folders)
    (when-let* ((folders (efrit-other-folders)))
      (error "%s" (efrit-other-advice folders)))
  (error "Emacs loaded another efrit, %s, in place of this one: remove its folder from \
`load-path', and restart Emacs" (locate-library "efrit")))

(defvar tramp-methods)

(cl-defstruct (efrit-remote-found (:constructor efrit-remote-found-create) (:copier nil))
  "The programs found on another machine.
COMMAND is the sidecar's command, a list; PROGRAM is its program's file, or nil;
VERSION is the program's name and version, or nil if it does not run.  PYTHON is
the version of Python there, or nil.  MISSING lists missing programs of tools."
  command program version python missing)

;;; The scripts

(defconst efrit-remote-venv "${XDG_DATA_HOME:-$HOME/.local/share}/efrit-budget/venv"
  "The folder in which `efrit-remote-install' installs the sidecar, for a shell.")

(defconst efrit-remote--path
  (concat "PATH=$PATH:$HOME/.local/bin:" efrit-remote-venv "/bin; ")
  "Shell code by which the sidecar's program is found.")

(defconst efrit-remote--find
  (concat efrit-remote--path
          "p=$(command -v \"$1\"); echo \"program $p\"; "
          "echo \"python $(python3 -c 'import sys; print(*sys.version_info[:2], sep=\".\")' "
          "2>/dev/null)\"; for t in git diff ctags; do "
          "command -v $t >/dev/null || echo \"missing $t\"; done; "
          ;; The sidecar may have an rg of its own, in its folder.
          "f=$(command -v rg); for d in \"$p\" \"$@\"; do "
          "d=$(readlink -f \"$d\" 2>/dev/null); [ -x \"${d%/*}/rg\" ] && f=$d; done; "
          "[ \"$f\" ] || echo 'missing rg'; ")
  "Shell code that looks for the command in its arguments and other programs.
It prints lines of a word and a text: \"program\" and the command's file,
\"python\" and Python's version, \"missing\" and a missing program.")

(defconst efrit-remote--root
  (concat "[ \"$(pwd)\" = / ] || exit 99; cd \"$1\" || exit 0; d=$PWD; "
          "while :; do for m in .git .hg .svn .bzr _darcs; do "
          "[ -e \"$d/$m\" ] && break 2; done; "
          "[ \"$d\" ] || break; d=${d%/*}; done; "
          "if [ \"$d\" ]; then echo \"$d\"; cd \"$d\" && pwd -P; else echo; echo; fi; "
          "cd && pwd -P; exit 0")
  "A shell script that finds the root of the project of the folder in its argument.
It prints the root, its true name, and that of the person's home; a root that is
not found is an empty line.  It exits with 99 if it does not begin in the folder
/.")

(defconst efrit-remote--look
  (concat "[ \"$(pwd)\" = / ] || exit 99; " efrit-remote--find
          "echo \"version $(\"$@\" --version 2>&1 </dev/null | tail -n 1)\"; exit 0")
  "A shell script of `efrit-remote--find' that also prints the command's version.
It exits with 99 if TRAMP did not run it in the folder /.")

(defconst efrit-remote--find-line "\0efrit find\0"
  "Text that `efrit-remote--run' prints before it looks for programs.")

(defconst efrit-remote--ready-line "\0efrit ready\0"
  "Text that `efrit-remote--run' prints before the sidecar begins.")

(defconst efrit-remote--run
  (concat "stty raw -echo 2>/dev/null; printf '\\000efrit find\\000'; " efrit-remote--find
          "[ \"$p\" ] || exit 97; "
          "l=$(mktemp) && exec 3>\"$l\" 4<\"$l\" && rm -f \"$l\" || exit 98; "
          "printf '\\000efrit ready\\000'; exec 2>&3; "
          "\"$@\" 3>&- 4<&-; c=$?; printf '\\000'; tail -c 4000 <&4; exit $c")
  "A shell script that runs the command in its arguments behind a raw terminal.
Then it prints a null, and the end of the command's standard error.  It exits
with 97 if there is no such program.")

;;; Running programs there

(defmacro efrit-remote--in (remote &rest body)
  "Run BODY in the root of REMOTE, in the environment Emacs was started in.
TRAMP sends REMOTE only changes of that environment: here ANTHROPIC_API_KEY is
unset.  Signal `efrit-remote-busy' if TRAMP is busy, and a `user-error' if
TRAMP signals an error."
  (declare (indent 1) (debug t))
  `(let ((default-directory (concat ,remote "/"))
         (process-environment (cons "ANTHROPIC_API_KEY"
                                    (default-toplevel-value 'process-environment)))
         (non-essential nil))
     (when (efrit-remote-busy-p)
       (signal 'efrit-remote-busy (list default-directory)))
     (condition-case err
         (progn ,@body)
       (file-error (user-error "%s cannot be reached: %s" ,remote
                               (string-trim (error-message-string err)))))))

(defmacro efrit-remote-without-cache (&rest body)
  "Run BODY without TRAMP's cache: the sidecar and its tools change files, too."
  (declare (indent 0) (debug t))
  `(let ((remote-file-name-inhibit-cache (current-time)))
     ,@body))

(declare-function tramp-dissect-file-name "tramp" (name &optional nodefault))
(declare-function tramp-flush-file-properties "tramp-cache" (key file))
(declare-function tramp-flush-file-upper-properties "tramp-cache" (key file))

(defun efrit-remote-forget-file (file)
  "Have TRAMP forget what it knows of FILE, if FILE is remote: it was changed."
  (when (and (file-remote-p file) (featurep 'tramp))
    (let ((vec (tramp-dissect-file-name file))
          (name (file-local-name file)))
      (tramp-flush-file-properties vec name)
      (tramp-flush-file-upper-properties vec name))))

(defun efrit-remote-command (remote)
  "Return the sidecar's command on the host REMOTE, a list of strings."
  (with-temp-buffer
    (setq default-directory (concat remote "/"))
    (with-connection-local-variables
     (ensure-list (or (cdr (seq-find (lambda (entry) (string-match-p (car entry) remote))
                                     efrit-remote-commands))
                      "efrit-budget")))))

(defun efrit-remote-busy-p ()
  "Return non-nil while an operation of TRAMP is running.
Another operation begun meanwhile would break the one that is running."
  (catch 'busy
    (mapbacktrace (lambda (_ function _ _)
                    (when (eq function 'tramp-file-name-handler)
                      (throw 'busy t))))
    nil))

(defun efrit-remote-reach (remote)
  "Have TRAMP connect to the host REMOTE; signal a `user-error' if it cannot.
Return nil if TRAMP did not try.  Signal `efrit-remote-busy' if TRAMP is
busy, as all functions here do that use TRAMP."
  (efrit-remote--in remote
    (file-directory-p default-directory)))

(defun efrit-remote-look (remote)
  "Look for programs on the host REMOTE; return an `efrit-remote-found'.
Signal a `user-error' if the host cannot be reached."
  (let ((command (efrit-remote-command remote)))
    (efrit-remote--found command (apply #'efrit-remote-run-script remote efrit-remote--look
                                        command))))

(defun efrit-remote-find-root (folder)
  "Return a list (ROOT TRUE-ROOT HOME) of whole names for FOLDER, a remote one.
ROOT is the folder of version control that has FOLDER, or nil if there is none,
TRUE-ROOT is its true name, and HOME that of the person's home there."
  (let ((remote (file-remote-p folder)))
    (mapcar (lambda (name) (and (not (string-empty-p name)) (concat remote name)))
            (split-string (efrit-remote-run-script remote efrit-remote--root
                                                   (file-local-name (expand-file-name folder)))
                          "\n"))))

(defun efrit-remote-problem (remote found)
  "Return why the sidecar cannot run on REMOTE and what to do, or nil.
FOUND is an `efrit-remote-found'."
  (cond ((efrit-remote-found-version found) nil)
        ((efrit-remote-found-program found) (efrit-remote-broken-text remote found))
        (t (efrit-remote--absent-text remote found))))

(defun efrit-remote-broken-text (remote found)
  "Return a text about the program in FOUND, which does not run on REMOTE."
  (format "%s on %s does not run.  Install it there anew: %s"
          (efrit-remote-found-program found) remote (efrit-remote--advice found)))

(defun efrit-remote--absent-text (remote found)
  "Return a text about the program in FOUND, which there is not on REMOTE."
  (format "There is no program %s on %s.  Install it there: %s.  Or name it in \
`efrit-remote-commands', or its folder in `tramp-remote-path'"
          (car (efrit-remote-found-command found)) remote (efrit-remote--advice found)))

(defun efrit-remote-missing (remote found)
  "Return a text about programs missing on REMOTE, or nil.
FOUND is an `efrit-remote-found'."
  (when-let* ((missing (efrit-remote-found-missing found)))
    (format "%s has no %s: install what you need there; tools that lack it say so"
            remote (string-join missing ", no "))))

(defun efrit-remote-doctor (remote found)
  "Run the sidecar's doctor on REMOTE; return (EXIT-CODE . OUTPUT).
FOUND is an `efrit-remote-found'."
  (efrit-remote--in remote
    (with-temp-buffer
      (let* ((coding-system-for-read 'utf-8-unix)
             (code (apply #'process-file "sh" nil t nil "-c"
                          (concat efrit-remote--path "exec \"$@\"") "sh"
                          (append (efrit-remote-found-command found) '("doctor")))))
        (cons code (buffer-string))))))

(defun efrit-remote-spawn (remote name command seconds then failed)
  "Start COMMAND on the host REMOTE as the process NAME; return the process.
Once COMMAND has begun, call THEN with the process and an `efrit-remote-found';
if it has not begun within SECONDS, or cannot, call FAILED with the process and
an error.  The process property `efrit-written' is what COMMAND has written
meanwhile."
  (let ((process (efrit-remote--in remote
                   (efrit-remote-unshared
                    #'make-process
                    :name name
                    :command `("sh" "-c" ,efrit-remote--run "sh" ,@command)
                    :connection-type 'pipe
                    :coding 'binary
                    :noquery t
                    :filter #'efrit-remote--keep
                    :sentinel #'ignore
                    :file-handler t))))
    (efrit-remote--check-place process)
    (set-process-coding-system process 'binary 'binary)
    (efrit-remote--await process (efrit-remote--start-create
                                  :remote remote :command command :then then :failed failed
                                  :end (+ (float-time) seconds)))
    process))

(defun efrit-remote-split (process output)
  "Split OUTPUT of PROCESS at its null; return (MESSAGES . STANDARD-ERROR)."
  (let ((end (if (process-get process 'efrit-last-words) 0
               (string-search "\0" output))))
    (if (null end)
        (cons output "")
      (prog1 (cons (substring output 0 end)
                   (string-remove-prefix "\0" (substring output end)))
        (process-put process 'efrit-last-words t)))))

(defun efrit-remote-unshared (function &rest arguments)
  "Call FUNCTION with ARGUMENTS, and return its value.
Programs that FUNCTION starts on another machine get unshared ssh connections."
  (if (not (file-remote-p default-directory))
      (apply function arguments)
    (require 'tramp-sh)
    (let ((tramp-methods (mapcar #'efrit-remote--unshared-method tramp-methods)))
      (apply function arguments))))

(defconst efrit-remote--ssh-options
  '(("-o" "ControlMaster=no") ("-o" "ControlPath=none")
    ("-o" "ServerAliveInterval=15") ("-o" "ServerAliveCountMax=4"))
  "Options of ssh for programs: no shared connection, and an end to a broken one.
Without the latter, ssh would wait for hours when the network is gone.")

(defun efrit-remote--unshared-method (method)
  "Return METHOD, an entry of `tramp-methods', with `efrit-remote--ssh-options'.
Add them in front: of an option given twice, ssh uses the first."
  (pcase-let ((`(,program) (alist-get 'tramp-login-program (cdr method)))
              (`(,arguments) (alist-get 'tramp-login-args (cdr method))))
    (if (not (and (stringp program) (equal "ssh" (file-name-base program))))
        method
      `(,(car method)
        (tramp-login-args (,@efrit-remote--ssh-options ,@arguments))
        ,@(assq-delete-all 'tramp-login-args (copy-sequence (cdr method)))))))

(defun efrit-remote-run-script (remote script &rest arguments)
  "Run the shell's SCRIPT with ARGUMENTS on REMOTE, and return its output.
SCRIPT must exit with 99 if TRAMP did not run it in the folder /.  Signal a
`user-error' if the shell does not answer."
  (efrit-remote--in remote
    (unless (or (file-remote-p default-directory nil t) (efrit-remote-reach remote))
      (signal 'efrit-remote-busy (list remote)))
    (with-temp-buffer
      (let* ((coding-system-for-read 'utf-8-unix)
             (code (apply #'process-file "sh" nil t nil "-c" script "sh" arguments)))
        (pcase code
          (0 (buffer-string))
          (99 (signal 'efrit-remote-busy (list remote)))
          (_ (user-error "The shell of %s does not answer: %s" remote
                         (string-trim (buffer-string)))))))))

(defun efrit-remote--found (command output)
  "Return an `efrit-remote-found' for COMMAND from OUTPUT of `efrit-remote--find'."
  (let ((told (mapcar (lambda (line)
                        (string-match "\\`\\([a-z]*\\) ?\\(.*\\)" line)
                        (cons (match-string 1 line) (match-string 2 line)))
                      (split-string output "[\r\n]+" t))))
    (efrit-remote-found-create
     :command command
     :program (efrit-remote--reported told "program" "/")
     :version (efrit-remote--reported told "version" "efrit-budget ")
     :python (efrit-remote--reported told "python" "[0-9]")
     :missing (cl-loop for (word . value) in told
                       when (equal word "missing") collect value))))

(defun efrit-remote--reported (told word prefix)
  "Return the text of WORD in the alist TOLD if the regexp PREFIX begins the text."
  (let ((value (cdr (assoc word told))))
    (and value (string-match-p (concat "\\`" prefix) value) value)))

(defun efrit-remote--advice (found)
  "Return how to install the sidecar, given FOUND, an `efrit-remote-found'."
  (let ((python (efrit-remote-found-python found)))
    (concat "M-x efrit-remote-install does that (or see M-x efrit-manual)"
            (cond ((null python) "; it needs Python 3.11, and there is no python3")
                  ((version< python "3.11")
                   (format "; it needs Python 3.11, and python3 there is %s" python))
                  (t "")))))

;;; The process

(defun efrit-remote--keep (process output)
  "Append OUTPUT to the property `efrit-written' of PROCESS; this is a filter."
  (process-put process 'efrit-written (concat (process-get process 'efrit-written) output)))

(defun efrit-remote--check-place (process)
  "Signal `efrit-remote-busy' if PROCESS is nil or was started on this machine."
  (when (or (null process) (member efrit-remote--run (process-command process)))
    (when process
      (delete-process process))
    (signal 'efrit-remote-busy nil)))

(cl-defstruct (efrit-remote--start (:constructor efrit-remote--start-create) (:copier nil))
  "The start of COMMAND on REMOTE, which must have begun by the time END.
THEN and FAILED are as in `efrit-remote-spawn'."
  remote command then failed end)

(defun efrit-remote--await (process start)
  "Call a function of START once PROCESS has begun, has ended, or is late."
  (let ((begun (efrit-remote--begun-p process)))
    (if (or begun
            (process-get process 'efrit-ended-early)
            (> (float-time) (efrit-remote--start-end start)))
        (efrit-remote--decide process start begun)
      ;; Its last output is read before it counts as ended.
      (unless (process-live-p process)
        (process-put process 'efrit-ended-early t))
      (efrit-run-at-time 0.02 nil #'efrit-remote--await process start))))

(defun efrit-remote--decide (process start begun)
  "Call a function of START with PROCESS, depending on whether it has BEGUN."
  (let* ((remote (efrit-remote--start-remote start))
         (output (or (process-get process 'efrit-found) (process-get process 'efrit-written) ""))
         (found (efrit-remote--found (efrit-remote--start-command start)
                                     (decode-coding-string output 'utf-8-unix))))
    (if begun
        (funcall (efrit-remote--start-then start) process found)
      (delete-process process)
      (funcall (efrit-remote--start-failed start) process
               (list 'user-error
                     (if (eql 97 (process-exit-status process))
                         (efrit-remote--absent-text remote found)
                       (format "The shell of %s does not run the sidecar: %s"
                               remote (string-trim output))))))))

(defun efrit-remote--begun-p (process)
  "Return non-nil if PROCESS printed the ready line; drop output up to that line.
The process property `efrit-found' is what PROCESS found before."
  (let* ((written (or (process-get process 'efrit-written) ""))
         (find (string-search efrit-remote--find-line written))
         (ready (string-search efrit-remote--ready-line written)))
    (when find
      (process-put process 'efrit-found
                   (substring written (+ find (length efrit-remote--find-line)) ready)))
    (when ready
      (process-put process 'efrit-written
                   (substring written (+ ready (length efrit-remote--ready-line))))
      t)))

(provide 'efrit-remote)
;;; efrit-remote.el ends here
