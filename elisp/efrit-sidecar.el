;;; efrit-sidecar.el --- The sidecar of each machine, and sessions in it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Functions by which the rest of the package calls the sidecar.  A call
;; starts the sidecar if need be, and ends with a result, an error of the
;; sidecar's, a time-out, or `efrit-sidecar-died'.  All errors are
;; `efrit-error's, but for the `user-error's that a person can put right.
;;
;; A call goes to the sidecar of the host where its session lies.  A call
;; without a session goes to `:host', the name of a remote host as
;; `file-remote-p' returns it, else to `efrit-host-default', by default this machine.

;;; Code:

(require 'efrit)
(require 'efrit-remote)
(require 'efrit-rpc)

;;; Hosts

;; There is one sidecar per machine: this one, and each one with a project
;; that is opened over TRAMP.  A machine's name is the remote prefix of its
;; files, such as "/ssh:me@host:"; the name of this machine is nil.  A folder
;; can have a sidecar of its own on this machine, with a state of its own; that is
;; a host with another name and a HOME (see `efrit-host-add').
;;
;; A sidecar knows only file names without that prefix, while a root in Emacs
;; has it.  These functions convert the two.  The sidecar reports the true name of
;; a root; only for other names `efrit-host-true-name' asks the other machine, once
;; for each.

(cl-defstruct (efrit-host (:constructor efrit-host--create) (:copier nil))
  "A machine and its sidecar.
REMOTE is its name, or nil for this one.  HOME is nil, or the folder with the
state of a further sidecar on this machine, for projects in FOLDER.  STATE is what the sidecar does:
`off', `pausing' after a death, `starting', `ready', `stopping', or
`given-up' until a person restarts it.  CONNECTION is nil if there is no
process.  SPAWNED is a process there of which it is not known whether it has
begun.  SERVER is the sidecar's reply to `initialize', or nil.  QUEUE has the
calls that wait until it is ready, latest first.  DEATHS are the times of its
deaths in about the last minute, latest first.  SESSIONS are the ids of sessions
to resume in a new process, latest first.  OWNER is the mark by which the
latest process owns them.  MISSING is a text about programs
that its tools lack, or nil.  SECRET-FILES is as from `efrit-host--secrets'."
  remote home folder (state 'off) connection spawned server queue deaths sessions owner missing
  secret-files)

(defvar efrit-host--hosts (list (efrit-host--create))
  "The hosts, this machine first.")

(defvar efrit-host--session-hosts (make-hash-table :test #'equal)
  "Hash table from session ids to the names of their hosts.")

(defvar efrit-host--true-names (make-hash-table :test #'equal)
  "Cache of `efrit-host-true-name': hash table from remote names to true names.")

(defvar project-find-functions)
(declare-function project-root "project" (project))

(defvar efrit-host-default nil
  "Name of the host for calls without a known session; nil: this machine.
It is bound while hooks of a host's sidecar run.")

(defun efrit-host-at (remote)
  "Return the `efrit-host' named REMOTE, nil for this machine; make it if new."
  (or (seq-find (lambda (host) (equal (efrit-host-remote host) remote)) efrit-host--hosts)
      (let ((host (efrit-host--create :remote remote)))
        (nconc efrit-host--hosts (list host))
        host)))

(defun efrit-host-add (name home folder)
  "Give the projects in FOLDER a sidecar of their own on this machine.
NAME is the name of its host, and HOME the folder for its state."
  (let ((host (efrit-host-at name)))
    (setf (efrit-host-home host) home
          (efrit-host-folder host) (file-name-as-directory (expand-file-name folder)))))

(defun efrit-host-remove (name)
  "Stop the sidecar of the host that `efrit-host-add' named NAME; remove the host."
  (efrit-sidecar-stop name)
  (maphash (lambda (id host)
             (when (equal host name)
               (remhash id efrit-host--session-hosts)))
           efrit-host--session-hosts)
  (setq efrit-host--hosts (delq (efrit-host-at name) efrit-host--hosts)))

(defun efrit-host-of-folder (folder)
  "Return the name of the host whose sidecar serves FOLDER; nil: this machine."
  (or (file-remote-p folder)
      (let ((whole (expand-file-name folder)))
        (seq-some (lambda (host)
                    (and (efrit-host-folder host)
                         (string-prefix-p (efrit-host-folder host)
                                          (file-name-as-directory whole))
                         (efrit-host-remote host)))
                  efrit-host--hosts))))

(defun efrit-host-here-p (host)
  "Return non-nil if HOST, an `efrit-host', is this machine."
  (or (null (efrit-host-remote host)) (efrit-host-home host)))

(defun efrit-host-prefix (name)
  "Return the remote prefix of files on the host NAME, or nil on this machine."
  (unless (efrit-host-here-p (efrit-host-at name))
    name))

(defun efrit-host-of-call (params remote)
  "Return the `efrit-host' of the session in PARAMS, a plist.
Without a known session, return that named REMOTE, else `efrit-host-default'."
  (efrit-host-at (efrit-host-of-session (plist-get params :session_id)
                                        (or remote efrit-host-default))))

(defun efrit-host-set-session (id remote &optional keep)
  "Store that the session ID is on the host named REMOTE.
With KEEP, do not change the host of a known session."
  (unless (and keep (not (eq 'unknown (efrit-host-of-session id 'unknown))))
    (puthash id remote efrit-host--session-hosts)))

(defun efrit-host-of-session (id &optional remote)
  "Return the host name of the session ID, nil for this machine.
Return REMOTE if the session is not known."
  (gethash id efrit-host--session-hosts remote))

;;;; Names of files

(defun efrit-host-local-name (file)
  "Return the absolute name of FILE on its own machine, without remote prefix."
  (file-local-name (expand-file-name file)))

(defun efrit-host-true-name (file)
  "Return FILE, a whole name, with symbolic links resolved.
Another machine is asked once for each name."
  (let ((name (directory-file-name file)))
    (cond ((gethash name efrit-host--true-names))
          ((file-remote-p file) (puthash name (file-truename name) efrit-host--true-names))
          (t (file-truename file)))))

(defun efrit-host-find-root (folder)
  "Return the root of the project of FOLDER, a remote one, or nil if there is none.
If the person finds projects as Emacs does by default, this takes one script on
that machine, and TRAMP learns the true names of the root and of the home there.
Else it is as slow as `project-current'."
  (require 'project)
  (if (not (and (equal '(project-try-vc) project-find-functions)
                (null (bound-and-true-p project-vc-extra-root-markers))))
      (when-let* ((project (project-current nil folder)))
        (project-root project))
    (pcase-let ((`(,root ,true ,home) (efrit-remote-find-root folder)))
      (puthash (concat (file-remote-p folder) "~") home efrit-host--true-names)
      (when root
        (puthash root true efrit-host--true-names))
      root)))

(defun efrit-host--note-true-name (root opened remote)
  "Record that the true name of ROOT on REMOTE is that of the session OPENED.
OPENED is the sidecar's reply, a plist."
  (when-let* ((remote (efrit-host-prefix remote))
              (true (concat remote (plist-get opened :root))))
    (dolist (name (list true (directory-file-name root)))
      (puthash name true efrit-host--true-names))))

(defun efrit-host-true-file (buffer)
  "Return the true name of the file that BUFFER visits.
For a remote file, return the true name that it had when it was visited."
  (let ((file (buffer-file-name buffer)))
    (if (file-remote-p file)
        (expand-file-name (or (buffer-local-value 'buffer-file-truename buffer) file))
      (file-truename file))))

(defun efrit-host-same-file-p (one other)
  "Return non-nil if ONE and OTHER name the same folder of the same machine."
  (and (equal (file-remote-p one) (file-remote-p other))
       (string= (file-name-as-directory (efrit-host-true-name one))
                (file-name-as-directory (efrit-host-true-name other)))))

;;;; Secret files

;; A setting of the sidecar says which files usually hold secrets; the reply
;; that begins a session has its patterns.

(defun efrit-host-secret-p (file)
  "Return non-nil if secrets are usually in FILE, a whole name.
Use the patterns of FILE's machine, else those of any machine; nil if none."
  (let ((case-fold-search t)
        (name (file-local-name file))
        (known (seq-some #'efrit-host-secret-files
                         (cons (efrit-host-at (file-remote-p file)) efrit-host--hosts))))
    (and known
         (string-match-p (car known) name)
         (cdr (seq-find (lambda (rule) (string-match-p (car rule) name))
                        (reverse (cdr known)))))))

(defun efrit-host--secrets (patterns)
  "Return PATTERNS, from the sidecar, as rules for `efrit-host-secret-p'.
The car is a regexp for all patterns; the cdr is an alist of regexps, each
with t, or nil for an exception.  The last regexp that matches decides."
  (let ((rules (mapcar (lambda (pattern)
                         (cons (efrit-host--secret-regexp (string-remove-prefix "!" pattern))
                               (not (string-prefix-p "!" pattern))))
                       patterns)))
    (cons (mapconcat #'car rules "\\|") rules)))

(defun efrit-host--secret-regexp (pattern)
  "Return a regexp for whole names that PATTERN, as in a .gitignore, matches.
A pattern with a slash matches the end of a name, others only its last part."
  (let ((regexp (string-remove-prefix "\\`" (wildcard-to-regexp pattern))))
    (concat "/" (if (string-search "/" pattern)
                    regexp
                  (string-replace "[^\0]" "[^/\0]" regexp)))))

;;; Long texts in files

;; Emacs waits while a pipe is full, and writes little at a time: a megabyte
;; takes 200 ms.  A file takes 5 ms.  So a long text is written to a file in a
;; folder that nobody else can read and that `initialize' named to the
;; sidecar; the sidecar deletes the file when it reads it.

(defvar efrit-handover--folder nil
  "The folder for long texts of this Emacs, or nil before the first `initialize'.")

(defvar efrit-handover--disabled nil
  "Non-nil if the sidecar cannot read the files of texts, as in a container.")

(defvar efrit-handover--count 0
  "Number of texts written to files so far.")

(defun efrit-handover-folder ()
  "Return the folder for long texts; enable and make it, or return nil on failure."
  (setq efrit-handover--disabled nil)
  (ignore-errors
    (unless efrit-handover--folder
      (setq efrit-handover--folder (make-temp-file "efrit-handover-" t))
      (add-hook 'kill-emacs-hook #'efrit-handover--remove))
    efrit-handover--folder))

(defun efrit-handover-leave (buffer)
  "Write the whole text of BUFFER to a new file, and return the file's bare name.
The sidecar replaces characters that UTF-8 cannot hold.
Return nil if no file can be written."
  (when (and efrit-handover--folder (not efrit-handover--disabled))
    (let ((name (number-to-string (cl-incf efrit-handover--count))))
      (condition-case nil
          (progn (efrit-handover--write buffer (efrit-handover--file name))
                 name)
        (file-error (efrit-handover-drop name))))))

(defun efrit-handover-drop (name)
  "Delete the file NAME of a text unless the sidecar has deleted it; return nil."
  (ignore-errors
    (delete-file (efrit-handover--file name)))
  nil)

(defun efrit-handover-refuse ()
  "Write no texts to files until the next start of a sidecar."
  (setq efrit-handover--disabled t))

(defun efrit-handover--file (name)
  "Return the whole name of the file NAME of a text."
  (expand-file-name name efrit-handover--folder))

(defun efrit-handover--write (buffer file)
  "Write the whole text of BUFFER to the new FILE."
  (let ((folder efrit-handover--folder))
    ;; A program that cleans up temporary files may have deleted the folder.
    (unless (file-directory-p folder)
      (with-file-modes #o700
        (make-directory folder))))
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (if (= (position-bytes (point-max)) (point-max))
          (efrit-handover--write-bytes file)
        (efrit-handover--write-encoded file)))))

(defun efrit-handover--write-encoded (file)
  "Write this buffer, which is not all ASCII, to the new FILE.
`write-region' would make a string of the text, which becomes garbage."
  (let ((text (current-buffer)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (let ((bytes (current-buffer)))
        (with-current-buffer text
          (encode-coding-region (point-min) (point-max) 'utf-8-unix bytes)))
      (efrit-handover--write-bytes file))))

(defun efrit-handover--write-bytes (file)
  "Write the bytes of this buffer to the new FILE."
  (let ((coding-system-for-write 'no-conversion)
        (write-region-annotate-functions nil)
        (write-region-post-annotation-function nil)
        (write-region-inhibit-fsync t)
        (buffer-file-format nil)
        (file-name-handler-alist nil))
    (with-file-modes #o600
      (write-region (point-min) (point-max) file nil 'silent nil 'excl))))

(defun efrit-handover--remove ()
  "Delete the folder for long texts of this Emacs."
  (when efrit-handover--folder
    (ignore-errors
      (delete-directory efrit-handover--folder t))))

;;; Starting and restarting

;; There is one sidecar per host.  It starts at the first call for that host,
;; and at the first call after it died; calls wait in a queue until it is
;; ready.  In a new process, `initialize' compares the versions of the
;; protocol, and the sessions of this Emacs on that host are resumed, before
;; the queued calls are sent.  All of this runs from timers, so it continues
;; whatever Emacs waits for.

(defconst efrit-supervisor-protocol-version 1
  "The version of the wire's protocol that this client speaks.")

(defconst efrit-supervisor--crash-limit 5
  "Number of deaths in a minute after which the sidecar is not started again.")

(defun efrit-supervisor-submit (call)
  "Send CALL to its host's sidecar once that is ready; start that if need be.
Typing does not interrupt this, not even in `while-no-input'."
  (let ((host (efrit-call-host call))
        (throw-on-input nil))
    (pcase (efrit-host-state host)
      ('ready
       (let ((connection (efrit-host-connection host)))
         (unless (and (efrit-connection-live-p connection)
                      (efrit-connection-send connection call))
           ;; The process has ended; its sentinel has run while sending, or has not run yet.
           (efrit-connection-kill connection)
           (efrit-supervisor-submit call))))
      ('given-up
       (efrit-call-finish call 'failed (efrit-supervisor--gave-up-error)))
      (state
       (push call (efrit-host-queue host))
       (when (eq state 'off)
         (efrit-supervisor--start-when-due host))))))

(defun efrit-supervisor-limit (call seconds)
  "End CALL with `efrit-timeout' if it is open after SECONDS; nil: no limit."
  (when seconds
    (setf (efrit-call-timer call) (efrit-run-at-time seconds nil #'efrit-supervisor--time-out call))))

(defun efrit-supervisor-remember (session-id &optional remote)
  "Have each new sidecar on this machine, or the host REMOTE, resume SESSION-ID."
  (efrit-host-set-session session-id remote)
  (cl-pushnew session-id (efrit-host-sessions (efrit-host-at remote)) :test #'equal))

(defun efrit-supervisor-forget (session-id)
  "Have new sidecars not resume SESSION-ID any more."
  (dolist (host efrit-host--hosts)
    (setf (efrit-host-sessions host) (delete session-id (efrit-host-sessions host)))))

(defun efrit-supervisor-sessions (&optional remote)
  "Return the ids of sessions that a new sidecar here, or on REMOTE, will resume."
  (reverse (efrit-host-sessions (efrit-host-at remote))))

;;;; Starting

(defun efrit-supervisor--start-when-due (host)
  "Start the sidecar of HOST, after a pause if it died lately.
A remote sidecar is never started within TRAMP or a process filter."
  (let ((pause (efrit-supervisor--pause host)))
    (if (and (<= pause 0) (efrit-host-here-p host))
        (efrit-supervisor--start host)
      (setf (efrit-host-state host) 'pausing)
      (efrit-run-at-time (max 0 pause) nil #'efrit-supervisor--start-after-pause host))))

(defun efrit-supervisor--pause (host)
  "Return the seconds to wait before starting the sidecar of HOST again.
Wait none after the first death in a minute, 0.5 after the second, then twice
as long each time, up to 5, counted from the latest death; 0 or less: no wait."
  (if-let* ((deaths (efrit-supervisor--recent-deaths host)))
      (- (+ (car deaths) (efrit-supervisor--pause-after (length deaths))) (float-time))
    0))

(defun efrit-supervisor--pause-after (count)
  "Return the seconds to wait after the latest of COUNT deaths."
  (if (< count 2)
      0
    (min 5 (* 0.5 (expt 2 (- count 2))))))

(defun efrit-supervisor--recent-deaths (host)
  "Return the times when HOST's sidecar died in the last minute; forget others."
  (let ((since (- (float-time) 60)))
    (setf (efrit-host-deaths host)
          (cl-remove-if (lambda (time) (< time since)) (efrit-host-deaths host)))))

(defun efrit-supervisor--start-after-pause (host &optional since)
  "Start the sidecar of HOST, if it is still pausing.
SINCE is the time of the first try, or nil for now."
  (when (eq (efrit-host-state host) 'pausing)
    (efrit-supervisor--start host since)))

(defun efrit-supervisor--start (host &optional since)
  "Start the sidecar of HOST; SINCE is the time of the first try, nil for now."
  (setf (efrit-host-state host) 'starting)
  (add-hook 'kill-emacs-hook #'efrit-supervisor--stop-with-emacs)
  (condition-case err
      (let ((inhibit-quit t))
        (if (efrit-host-here-p host)
            (efrit-supervisor--connect
             host (efrit-process-spawn (append (efrit-executable-command) '("serve"))
                                       (efrit-host-remote host) (efrit-host-home host)))
          (efrit-supervisor--spawn host)))
    (efrit-remote-busy (efrit-supervisor--start-later host (or since (float-time))))
    (error (efrit-supervisor--start-failed host (efrit-host-connection host) err))))

(defun efrit-supervisor--connect (host process)
  "Open a connection to PROCESS, the sidecar of HOST, and call `initialize'."
  (let ((connection (efrit-connection-open
                     process
                     (apply-partially #'run-hook-with-args 'efrit-sidecar-progress-functions)
                     (lambda (connection why) (efrit-supervisor--ended host connection why)))))
    (setf (efrit-host-connection host) connection)
    (efrit-supervisor--greet host connection)))

(defun efrit-supervisor--spawn (host)
  "Start the sidecar on HOST, a remote one; connect to it once it has begun.
A quit signals `efrit-cancelled'."
  (let* ((inhibit-quit nil)
         (remote (efrit-host-remote host))
         (process (condition-case nil
                      (efrit-remote-spawn
                       remote (efrit-process-name remote)
                       (append (efrit-remote-command remote) '("serve"))
                       efrit-sidecar-start-timeout
                       (apply-partially #'efrit-supervisor--take-process host)
                       (apply-partially #'efrit-supervisor--spawn-failed host))
                    (quit (signal 'efrit-cancelled
                                  (list "the person quit the start of the sidecar"))))))
    ;; The person may have stopped the sidecar while TRAMP was waiting.
    (if (or (efrit-host-spawned host) (not (eq (efrit-host-state host) 'starting)))
        (delete-process process)
      (setf (efrit-host-spawned host) process))))

(defun efrit-supervisor--take-process (host process found)
  "Connect to PROCESS on HOST, which has begun.
Show which of the programs in FOUND its tools lack.  If the start was given up
meanwhile, kill PROCESS."
  (if (not (eq process (efrit-host-spawned host)))
      (delete-process process)
    (setf (efrit-host-spawned host) nil)
    (when (setf (efrit-host-missing host)
                (efrit-remote-missing (efrit-host-remote host) found))
      (message "efrit: %s" (efrit-host-missing host)))
    (process-put process 'efrit-stderr (efrit-process-new-stderr (efrit-host-remote host)))
    (process-put process 'efrit-found found)
    (efrit-supervisor--connect host process)))

(defun efrit-supervisor--spawn-failed (host process err)
  "End each queued call of HOST with ERR: PROCESS has not begun there.
Do nothing if the start was given up meanwhile."
  (when (eq process (efrit-host-spawned host))
    (setf (efrit-host-spawned host) nil)
    (efrit-supervisor--start-failed host nil err)))

(defun efrit-supervisor--start-later (host since)
  "Start the sidecar of HOST once TRAMP is idle.
Fail if `efrit-sidecar-start-timeout' has passed since the time SINCE."
  (cond
   ((not (eq (efrit-host-state host) 'starting)))
   ((< efrit-sidecar-start-timeout (- (float-time) since))
    (efrit-supervisor--start-failed
     host nil (list 'user-error (format "TRAMP is busy, or cannot run programs on %s; try again"
                                        (efrit-host-remote host)))))
   (t
    (setf (efrit-host-state host) 'pausing)
    (efrit-run-at-time 0.2 nil #'efrit-supervisor--start-after-pause host since))))

(defun efrit-supervisor--ask (host connection method params then &optional otherwise)
  "Call METHOD with PARAMS over CONNECTION, as a part of starting HOST.
THEN is called with the result, OTHERWISE with an error of the sidecar's.
Without OTHERWISE, and for other errors, the start fails."
  (let ((call (efrit-call-create
               :host host :method method :params params
               :success (lambda (result)
                          (when (eq connection (efrit-host-connection host))
                            (funcall then result)))
               :failure (lambda (err)
                          (if (and otherwise (eq (car err) 'efrit-rpc-error))
                              (funcall otherwise err)
                            (efrit-supervisor--start-failed
                             host connection
                             (efrit-supervisor--start-error host connection err)))))))
    (efrit-supervisor-limit call efrit-sidecar-start-timeout)
    ;; If the process has ended already, the callback for its end fails the start.
    (unless (efrit-connection-send connection call)
      (efrit-call-drop call))))

(defun efrit-supervisor--start-error (host connection err)
  "Return ERR, or a better error if the program of HOST's CONNECTION does not run.
The shell of another machine exits with 126 or 127 then."
  (let ((process (efrit-connection-process connection)))
    (if (and (not (efrit-host-here-p host))
             (memq (process-exit-status process) '(126 127)))
        (list 'user-error (efrit-remote-broken-text (efrit-host-remote host)
                                                    (process-get process 'efrit-found)))
      err)))

(defun efrit-supervisor--greet (host connection)
  "Call `initialize' over CONNECTION; on success, resume the sessions of HOST."
  (efrit-supervisor--ask
   host connection 'initialize
   `( :client (:name "efrit.el" :version ,efrit-version)
      :protocol_version ,efrit-supervisor-protocol-version
      ,@(when-let* (((efrit-host-here-p host))
                    (folder (efrit-handover-folder)))
          (list :handover_folder folder)))
   (lambda (server)
     (if-let* ((problem (efrit-supervisor--version-problem host server)))
         (efrit-supervisor--start-failed host connection (list 'user-error problem))
       (setf (efrit-host-server host) server)
       (efrit-connection-notify connection 'initialized nil)
       (efrit-supervisor--resume host connection)))))

(defun efrit-supervisor--version-problem (host server)
  "Return a text about what to upgrade, or nil if this client can use SERVER.
SERVER is the reply of HOST's sidecar to `initialize'."
  (let ((theirs (plist-get server :protocol_version))
        (sidecar (efrit-supervisor--display-name host))
        (name (plist-get (plist-get server :server) :version)))
    (cond
     ((eql theirs efrit-supervisor-protocol-version) nil)
     ((and (integerp theirs) (> theirs efrit-supervisor-protocol-version))
      (format "The %s (%s) speaks protocol %s, efrit.el (%s) only %s: upgrade efrit.el"
              sidecar name theirs efrit-version efrit-supervisor-protocol-version))
     (t
      (format "The %s (%s) speaks protocol %s, efrit.el (%s) needs %s: upgrade the %s"
              sidecar name theirs efrit-version efrit-supervisor-protocol-version sidecar)))))

(defun efrit-supervisor--display-name (host)
  "Return the name of the sidecar of HOST, for use in a sentence."
  (if (efrit-host-here-p host)
      "sidecar"
    (concat "sidecar on " (efrit-host-remote host))))

(defun efrit-supervisor--resume (host connection)
  "Resume the sessions of HOST over CONNECTION; then mark its sidecar as ready."
  (let* ((sessions (reverse (efrit-host-sessions host)))
         (left (length sessions))
         ;; If the connection broke, it may not know yet that it has to end.
         (former (efrit-host-owner host))
         (next (lambda (answer)
                 (efrit-supervisor-session-begun answer host)
                 (when (zerop (cl-decf left))
                   (efrit-supervisor--ready host)))))
    (if (null sessions)
        (efrit-supervisor--ready host)
      (dolist (id sessions)
        (efrit-supervisor--ask host connection 'session/resume
                               (append (list :session_id id)
                                       (and former (list :former_owner former)))
                               next
                               (lambda (err)
                                 (efrit-supervisor-forget id)
                                 (message "efrit: session %s is not resumed: %s" id (cadr err))
                                 (funcall next nil)))))))

(defun efrit-supervisor-session-begun (answer host)
  "Store the secret files and the owner of HOST in ANSWER, and show its warnings.
ANSWER is the reply to opening or resuming a session, or nil."
  (when answer
    (setf (efrit-host-owner host) (plist-get answer :owner))
    (when-let* ((patterns (plist-get answer :secret_files)))
      (setf (efrit-host-secret-files host) (efrit-host--secrets patterns)))
    (efrit-defer #'mapc (lambda (warning) (display-warning 'efrit warning))
                 (plist-get answer :warnings))))

(defun efrit-supervisor--ready (host)
  "Mark the sidecar of HOST as ready, run its hook, and send each queued call."
  (setf (efrit-host-state host) 'ready)
  (efrit-defer #'efrit-supervisor--run-hook host 'efrit-sidecar-started-functions
               (efrit-host-server host))
  (dolist (call (reverse (cl-shiftf (efrit-host-queue host) nil)))
    (when (efrit-call-open-p call)
      (efrit-supervisor-submit call))))

(defun efrit-supervisor--run-hook (host hook &rest arguments)
  "Run HOOK with ARGUMENTS; bind `efrit-host-default' to the name of HOST."
  (let ((efrit-host-default (efrit-host-remote host)))
    (apply #'run-hook-with-args hook arguments)))

(defun efrit-supervisor--start-failed (host connection err)
  "Kill CONNECTION, nil for none, and end each queued call of HOST with ERR.
Do nothing if HOST has another connection by now."
  (when (eq connection (efrit-host-connection host))
    (efrit-supervisor--mark-stopped host)
    (when connection
      (efrit-connection-kill connection))
    (efrit-supervisor--fail-queue host err)))

;;;; Ending

(defun efrit-supervisor--mark-stopped (host)
  "Mark HOST as having no process of a sidecar."
  (setf (efrit-host-state host) 'off
        (efrit-host-connection host) nil
        (efrit-host-server host) nil))

(defun efrit-supervisor--unqueue (call)
  "Remove CALL from the queue of its host."
  (let ((host (efrit-call-host call)))
    (setf (efrit-host-queue host) (delq call (efrit-host-queue host)))))

(defun efrit-supervisor--fail-queue (host err)
  "End each queued call of HOST with the error ERR."
  (dolist (call (reverse (cl-shiftf (efrit-host-queue host) nil)))
    (efrit-call-finish call 'failed err)))

(defun efrit-supervisor--time-out (call)
  "End CALL with `efrit-timeout', and have the sidecar stop working on it."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (efrit-supervisor--unqueue call)
    (efrit-call-finish call 'failed
                       (list 'efrit-timeout (format "%s" (efrit-call-method call))))
    (when sent
      (efrit-connection-withdraw (efrit-call-connection call) call))))

(defun efrit-supervisor--ended (host connection why)
  "Record that CONNECTION to HOST ended for the reason WHY; fail each queued call.
Give up on HOST after too many deaths.  Do nothing if the sidecar was stopped."
  (when (and (eq connection (efrit-host-connection host))
             (not (eq (efrit-host-state host) 'stopping)))
    (efrit-supervisor--mark-stopped host)
    (push (float-time) (efrit-host-deaths host))
    (efrit-supervisor--fail-queue host (efrit-supervisor--start-error
                                        host connection (list 'efrit-sidecar-died why)))
    (let ((too-often (>= (length (efrit-supervisor--recent-deaths host))
                         efrit-supervisor--crash-limit)))
      (when too-often
        (setf (efrit-host-state host) 'given-up))
      (efrit-defer #'efrit-supervisor--announce-death host why too-often))))

(defun efrit-supervisor--announce-death (host why given-up)
  "Show that the sidecar of HOST died, and the reason WHY; run the hook for that.
GIVEN-UP is non-nil if the sidecar will not be started again."
  (if given-up
      (message "%s" (efrit-error-text (efrit-supervisor--gave-up-error)))
    (message "efrit: the %s ended (%s); the next call starts it again"
             (efrit-supervisor--display-name host) why))
  (efrit-supervisor--run-hook host 'efrit-sidecar-died-functions why))

(defun efrit-supervisor--gave-up-error ()
  "Return the error condition of a call to a sidecar that died too often."
  (list 'efrit-sidecar-died
        (substitute-command-keys
         (format "%d times within a minute.  \
\\[efrit-sidecar-restart] tries again, \\[efrit-sidecar-show-stderr] shows why"
                 efrit-supervisor--crash-limit))))

(defun efrit-supervisor--stop-with-emacs ()
  "Have the sidecars of this machine end with Emacs, by closing their inputs.
This does not wait: after a signal, waiting in `kill-emacs-hook' never ends.
The input of a remote one is a terminal, which ends with Emacs."
  (dolist (host (seq-filter #'efrit-host-here-p efrit-host--hosts))
    (when-let* ((connection (efrit-host-connection host)))
      (ignore-errors
        (process-send-eof (efrit-connection-process connection))))))

;;; Calling

(cl-defun efrit-sidecar-request
    (method params &key (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS, wait for the result and return it.
METHOD is a symbol or string, PARAMS a plist or nil, HOST the name of the
host to ask if PARAMS have no session that this Emacs knows.  Signal
`efrit-rpc-error' for the sidecar's errors, `efrit-timeout' after TIMEOUT
seconds (nil: no limit), `efrit-sidecar-died' if its process ends first,
`efrit-unencodable' if PARAMS cannot be written as JSON.  Timers run, and
other calls are answered, meanwhile.  When the wait is left early, as by
\\[keyboard-quit], the sidecar is told to stop the work."
  (efrit-sidecar--await (efrit-sidecar--call method params host) timeout))

(cl-defun efrit-sidecar-request-async
    (method params &key success error (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS, and return the call, as a token, at once.
Later a timer calls SUCCESS with the result, or ERROR with the error as
`condition-case' binds it.  Both may be nil.  TIMEOUT, HOST and the errors
are those of `efrit-sidecar-request'."
  (let ((call (efrit-sidecar--call method params host success error)))
    (efrit-supervisor-limit call timeout)
    (efrit-supervisor-submit call)
    call))

(defun efrit-sidecar-cancel (token)
  "Drop the call TOKEN, and have the sidecar stop working on it.
No function of the call is called any more.  Return nil if it had ended."
  (let ((throw-on-input nil))
    (if (eq (efrit-call-state token) 'sent)
        (efrit-connection-cancel (efrit-call-connection token) token)
      (efrit-supervisor--unqueue token)
      (efrit-call-drop token))))

(defun efrit-sidecar-notify (method params)
  "Send the notification METHOD with PARAMS to the sidecar; start that if need be."
  (efrit-supervisor-submit
   (efrit-call-create :host (efrit-host-of-call params nil)
                      :method method :params params
                      :kind 'notification))
  nil)

(defun efrit-sidecar-ensure (&optional host)
  "Start the sidecar here, or of HOST, if need be, and wait until it is ready.
Return the reply to `initialize': a plist of `:server' (`:name', `:version'),
`:protocol_version' and `:capabilities'."
  (efrit-sidecar--await (efrit-call-create :host (efrit-host-at host) :kind 'barrier))
  (efrit-host-server (efrit-host-at host)))

;;;###autoload
(defun efrit-sidecar-start (&optional host)
  "Start the sidecar here, or of HOST, if need be, without waiting for it.
Ignore errors: the next call signals them."
  (efrit-sidecar-request-async 'ping nil :host host :error #'ignore))

(defun efrit-sidecar-given-up-p (session-id)
  "Return non-nil if the sidecar of SESSION-ID died so often that it stays off."
  (eq 'given-up (efrit-host-state (efrit-host-at (efrit-host-of-session session-id)))))

(defun efrit-sidecar-process (&optional host)
  "Return the process of the sidecar here, or of HOST, or nil while there is none."
  (when-let* ((connection (efrit-host-connection (efrit-host-at host))))
    (efrit-connection-process connection)))

;;;; Commands

;;;###autoload
(defun efrit-sidecar-stop (&optional remote)
  "Stop the sidecar; what is under way ends with `efrit-sidecar-died'.
The next call starts it again and resumes its sessions; earlier deaths are
forgotten.  With REMOTE, or in a remote folder, stop that host's sidecar."
  (interactive (list (efrit-host-of-folder default-directory)))
  (let* ((host (efrit-host-at remote))
         (connection (efrit-host-connection host)))
    (setf (efrit-host-state host) 'stopping)
    (unwind-protect
        (when connection
          (efrit-connection-close connection))
      (when-let* ((process (efrit-host-spawned host)))
        (setf (efrit-host-spawned host) nil)
        (delete-process process))
      (efrit-supervisor--mark-stopped host)
      (setf (efrit-host-deaths host) nil)
      (efrit-supervisor--fail-queue host (list 'efrit-sidecar-died "it was stopped"))))
  (when (called-interactively-p 'interactive)
    (message "The sidecar is stopped")))

;;;###autoload
(defun efrit-sidecar-restart (&optional host)
  "Stop the sidecar, if there is one, and start it; forget earlier deaths.
In a remote folder, restart the sidecar of that HOST."
  (interactive (list (efrit-host-of-folder default-directory)))
  (efrit-sidecar-stop host)
  (let ((server (plist-get (efrit-sidecar-ensure host) :server)))
    (when (called-interactively-p 'interactive)
      (message "%s %s is started; sessions: %d"
               (plist-get server :name) (plist-get server :version)
               (length (efrit-supervisor-sessions host))))))

;;;###autoload
(defun efrit-sidecar-show-stderr (&optional host)
  "Show what the sidecar wrote to its standard error.
In a remote folder the sidecar is that HOST's; its text arrives when it ends."
  (interactive (list (efrit-host-of-folder default-directory)))
  (pop-to-buffer (or (efrit-process-stderr host)
                     (user-error "The sidecar wrote nothing to its standard error"))))

(defun efrit-sidecar--call (method params host &optional success failure)
  "Return a new call of METHOD with PARAMS and the functions SUCCESS and FAILURE.
HOST is the name of its host if PARAMS have no session known here."
  (efrit-call-create :host (efrit-host-of-call params host)
                     :method method :params params
                     :success success :failure failure))

(defun efrit-sidecar--await (call &optional timeout)
  "Submit CALL, wait until it has ended, and return its value or signal its error.
CALL may take TIMEOUT seconds; nil: no limit.  Cancel CALL if the wait is left
early; the person can quit it even if it is in a timer."
  (unwind-protect
      (progn
        (efrit-supervisor-limit call timeout)
        (efrit-supervisor-submit call)
        (let ((inhibit-quit nil))
          (while (efrit-call-open-p call)
            (let ((connection (or (efrit-call-connection call)
                                  (efrit-host-connection (efrit-call-host call)))))
              (accept-process-output (and connection (efrit-connection-live-p connection)
                                          (efrit-connection-process connection))
                                     0.05)))))
    (when (efrit-call-open-p call)
      (efrit-sidecar-cancel call)))
  (efrit-call-result call))

;;; Limits of a new session

;; Limits that this Emacs sends for a session when it opens the session.  The
;; sidecar's own settings (see Info node `(efrit) Settings') apply where an option here
;; has its default.

(defconst efrit-limits--memory
  ["mem_save" "mem_search" "mem_context" "mem_timeline" "mem_get_observation" "mem_delete"
   "mem_stats" "context_pack"]
  "Names of the sidecar's tools that use memory across sessions.")

(defconst efrit-limits--wire-names
  '((efrit-budget-total-target . :total)
    (efrit-budget-per-tool-default . :per_tool_default)
    (efrit-budget-history-max . :history)
    (efrit-budget-warning-threshold . :warning_threshold))
  "Alist from the options for limits to the names of the limits on the wire.")

(defun efrit-limits ()
  "Return a plist of the limits whose options are changed, for a new session."
  (cl-loop for (option . name) in efrit-limits--wire-names
           for value = (default-value option)
           unless (equal value (eval (car (get option 'standard-value)) t))
           append (list name value)))

(defun efrit-limits-denied ()
  "Return a vector of the names of tools not to offer in a new session, or nil."
  (and (not (default-value 'efrit-memory-tools))
       efrit-limits--memory))

;;; Sessions

;; A session is stored in the sidecar's database, on the machine of its root,
;; and outlives the sidecar's process and Emacs.  Each new process of the
;; sidecar resumes the sessions that this Emacs opened or resumed.

(defconst efrit-session--in-use -32009
  "JSON-RPC code of the error that another Emacs is using a session.")

(defconst efrit-session--release-seconds 3
  "Seconds to wait until the sidecar of an Emacs that died releases a session.")

(defun efrit-session-open (root &optional limits denied)
  "Open a session on the folder ROOT, on its machine; return its id, a string.
LIMITS is a plist of the budget's limits, or nil for the defaults; DENIED is a
vector of the names of tools not to offer to the model, or nil."
  (let* ((remote (efrit-host-of-folder root))
         (opened (efrit-sidecar-request
                  'session/open
                  `(:root ,(directory-file-name (efrit-host-local-name root))
                          ,@(and limits (list :limits limits))
                          ,@(and denied (list :deny denied)))
                  :host remote))
         (id (plist-get opened :session_id)))
    (efrit-host--note-true-name root opened remote)
    (efrit-supervisor-remember id remote)
    (efrit-supervisor-session-begun opened (efrit-host-at remote))
    id))

(defun efrit-session-resume (id &optional remote)
  "Resume the session ID on REMOTE, or here; return the sidecar's reply, a plist.
If another Emacs uses it, ask whether to take it over, or signal a `user-error'."
  (prog1 (or (efrit-session--resume-unless-in-use
              id remote (+ (float-time) efrit-session--release-seconds))
             (if (and (not noninteractive)
                      (yes-or-no-p (format "Session %s is in use by another Emacs.  \
Take it over, and work in it here alone? " id)))
                 (efrit-session--resume id remote t)
               (user-error "Session %s is in use by another Emacs; end it there first" id)))
    (efrit-supervisor-remember id remote)))

(defun efrit-session--resume (id remote take-over)
  "Resume the session ID on REMOTE, or here; return the sidecar's reply, a plist.
If TAKE-OVER is non-nil, take it over from another Emacs that uses it."
  (let ((resumed (efrit-sidecar-request 'session/resume
                                        (append (list :session_id id)
                                                (and take-over (list :take_over t)))
                                        :host remote)))
    (efrit-host--note-true-name (concat remote (plist-get resumed :root)) resumed remote)
    (efrit-supervisor-session-begun resumed (efrit-host-at remote))
    resumed))

(defun efrit-session--resume-unless-in-use (id remote until)
  "Resume the session ID on REMOTE, or here; return nil if it is in use elsewhere.
Try until the time UNTIL, since a dead Emacs's sidecar may not have ended yet."
  (condition-case err
      (efrit-session--resume id remote nil)
    (efrit-rpc-error
     (unless (eql (efrit-rpc-error-code err) efrit-session--in-use)
       (signal (car err) (cdr err)))
     (when (< (float-time) until)
       (accept-process-output nil 0.2)
       (efrit-session--resume-unless-in-use id remote until)))))

;;; Installing on another machine

;; The sidecar of this machine makes one file that installs it for the Python of
;; another machine (see `efrit-budget installer').  The file is sent through a
;; connection of TRAMP's to that Python, which runs it; it makes a virtual
;; environment in the person's data folder there, and ends with the sidecar's
;; doctor.  Emacs waits for nothing but TRAMP.

(cl-defstruct (efrit-install (:constructor efrit-install--create) (:copier nil))
  "An installation on the host REMOTE, by the program PYTHON there.
FACTS are the arguments that describe Python's version and platform.  FILE is the
installer on this machine.  BUFFER shows the progress."
  remote python facts file buffer)

(defconst efrit-install--look
  (concat "[ \"$(pwd)\" = / ] || exit 99; "
          "for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do "
          "p=$(command -v $p) && \"$p\" -c 'import platform, sys, sysconfig\n"
          "print(sys.argv[1], \"%d.%d\" % sys.version_info[:2], sysconfig.get_platform(), "
          "\"-\".join(platform.libc_ver()), sep=\"\\t\")' \"$p\" 2>/dev/null; done; exit 0")
  "A shell script that prints a line about each Python 3 that it finds.
The line has program, version, platform and C library, with tabs between them.")

(defconst efrit-install--receive
  "import base64, os, subprocess, sys, tempfile
file = tempfile.NamedTemporaryFile(suffix='.pyz', delete=False)
for line in sys.stdin.buffer:
    if line.strip() == b'.':
        break
    file.write(base64.b64decode(line))
else:
    sys.exit(4)
file.close()
code = subprocess.call([sys.executable, file.name])
os.remove(file.name)
sys.exit(code)
"
  "Python code that reads a program in Base64, up to a dot, and runs it.")

(defconst efrit-install-oldest "3.11"
  "The oldest version of Python that the sidecar runs on.")

(defconst efrit-install--slice 24576
  "Bytes of the installer that are sent at once; a multiple of 3.")

;;;###autoload
(defun efrit-remote-install (remote)
  "Install the sidecar on REMOTE, the machine of the folder here; ask first.
A buffer shows what is done, and what the sidecar's doctor says there."
  (interactive (list (or (file-remote-p default-directory)
                         (user-error "Visit a folder of the other machine first, \
such as /ssh:me@host:/"))))
  (efrit-for-a-person
    (let ((install (efrit-install--plan remote)))
      (unless (yes-or-no-p (format "Install efrit-budget %s on %s, in %s? " efrit-version remote
                                   "~/.local/share/efrit-budget/venv"))
        (user-error "Nothing was installed"))
      (efrit-sidecar-stop remote)
      (efrit-install--make install)
      (display-buffer (efrit-install-buffer install)))))

;;;; The other machine

(defun efrit-install--plan (remote)
  "Return an installation on REMOTE; signal a `user-error' without a fit Python."
  (let* ((lines (efrit-remote-run-script remote efrit-install--look))
         (found (mapcar (lambda (line) (split-string line "\t")) (split-string lines "\n" t)))
         (fit (seq-find (lambda (facts)
                          (and (cadr facts) (version<= efrit-install-oldest (cadr facts))))
                        found)))
    (pcase fit
      (`(,program ,version ,platform ,libc)
       (efrit-install--create :remote remote :python program
                              :facts (list "--python" version "--platform" platform
                                           "--libc" libc)))
      (_ (user-error "%s has no Python %s or later%s.  Install one there; without root, \
uv (https://docs.astral.sh/uv) does: uv python install 3.13"
                     remote efrit-install-oldest
                     (if found (format ", only %s" (cadar found)) ""))))))

;;;; The installer

(defun efrit-install--make (install)
  "Have the sidecar of this machine make the file of INSTALL, and send it."
  (let ((buffer (get-buffer-create (format "*efrit install %s*" (efrit-install-remote install))))
        (file (make-temp-file "efrit-install-" nil ".pyz")))
    (with-current-buffer buffer
      (efrit-set-buffer-text "")
      (special-mode))
    (setf (efrit-install-buffer install) buffer
          (efrit-install-file install) file)
    (efrit-install--say install (format "Making an installer for %s\n"
                                        (efrit-install-remote install)))
    (efrit-executable-locally
      (make-process :name "efrit install" :noquery t :connection-type 'pipe
                    :command `(,@(efrit-executable-command) "installer" ,file
                               ,@(efrit-install-facts install))
                    :filter (lambda (_ output) (efrit-install--say install output))
                    :sentinel (lambda (process _)
                                (unless (process-live-p process)
                                  (if (eql 0 (process-exit-status process))
                                      (efrit-defer #'efrit-install--start install)
                                    (efrit-install--finish
                                     install "the installer cannot be made"))))))))

(defun efrit-install--start (install)
  "Start the Python of INSTALL on the other machine, and send it the installer."
  (condition-case err
      (efrit-remote-spawn
       (efrit-install-remote install) "efrit install there"
       (list (efrit-install-python install) "-c" efrit-install--receive)
       efrit-sidecar-start-timeout
       (lambda (process _) (efrit-install--follow install process))
       (lambda (_ err) (efrit-install--finish install (cadr err))))
    (error (efrit-install--finish install (error-message-string err)))))

(defun efrit-install--follow (install process)
  "Send the installer of INSTALL to PROCESS, and show what PROCESS writes."
  (let ((show (lambda (_ output)
                (pcase-let ((`(,text . ,words) (efrit-remote-split process output)))
                  (efrit-install--say install (decode-coding-string (concat text words)
                                                                    'utf-8-unix))))))
    (set-process-filter process show)
    (funcall show process (or (process-get process 'efrit-written) ""))
    (efrit-process-watch process
                         (lambda ()
                           (efrit-install--finish install
                                                  (efrit-install--exit-reason
                                                   (process-exit-status process)))))
    (efrit-install--say install (format "Sending %s\n"
                                        (file-size-human-readable
                                         (file-attribute-size
                                          (file-attributes (efrit-install-file install))))))
    (efrit-install--send install process 0)))

(defun efrit-install--send (install process from)
  "Send the installer of INSTALL to PROCESS from the offset FROM on."
  (when (process-live-p process)
    (let ((slice (with-temp-buffer
                   (set-buffer-multibyte nil)
                   (insert-file-contents-literally (efrit-install-file install) nil from
                                                   (+ from efrit-install--slice))
                   (base64-encode-string (buffer-string) t))))
      (process-send-string process (if (string-empty-p slice) ".\n" (concat slice "\n")))
      (unless (string-empty-p slice)
        (efrit-run-at-time 0 nil #'efrit-install--send install process
                           (+ from efrit-install--slice))))))

;;;; The end

(defun efrit-install--exit-reason (code)
  "Return why an installation that ended with CODE failed, a text, or nil."
  (pcase code
    (0 nil)
    (1 "its doctor there found problems, which stand above")
    (3 "packages are missing, as it says above")
    (_ (format "it ended with code %s, as it says above" code))))

(defun efrit-install--finish (install problem)
  "Show the end of INSTALL, which failed because of PROBLEM, a text, or did not."
  (ignore-errors
    (delete-file (efrit-install-file install)))
  (let ((text (if problem
                  (format "Not installed on %s: %s." (efrit-install-remote install) problem)
                (format "Installed on %s: M-x efrit works in its folders."
                        (efrit-install-remote install)))))
    (efrit-install--say install (concat "\n" text "\n"))
    (message "efrit: %s" text)))

(defun efrit-install--say (install text)
  "Append TEXT to the buffer of INSTALL."
  (efrit-with-live-buffer (efrit-install-buffer install)
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (insert text)))))

(provide 'efrit-sidecar)
;;; efrit-sidecar.el ends here
