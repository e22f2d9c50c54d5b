;;; efrit-sidecar.el --- The sidecar of each machine, and sessions in it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the rest of the package calls the sidecar by.  It starts by itself,
;; and every call ends: with a result, an error of the sidecar's, a
;; time-out, or `efrit-sidecar-died'.  All errors are `efrit-error's, but
;; for the `user-error's that a person can put right.
;;
;; A call goes to the sidecar of the host where its session lies.  One
;; without a session goes to that of this machine, or to that of `:host', the
;; name of a remote one as `file-remote-p' gives it, or of
;; `efrit-host-default'.

;;; Code:

(require 'efrit)
(require 'efrit-remote)
(require 'efrit-rpc)

;;; Hosts

;; There is one sidecar per machine: here, and wherever a project lies that
;; is worked on over TRAMP.  A machine is named by what stands before the
;; file's name there, as in "/ssh:me@host:", and this one by nil.
;;
;; A sidecar knows the names of its own machine alone.  In Emacs a root is
;; the whole name; here is what goes from the one to the other.  None of it
;; asks the other machine, but for `efrit-host-true-name', once for a name.

(cl-defstruct (efrit-host (:constructor efrit-host--create) (:copier nil))
  "A machine and its sidecar.
REMOTE is its name, or nil for this one.  STATE is what the sidecar does:
`off', `pausing' after a death, `starting', `ready', `stopping', or
`given-up' until a person restarts it.  CONNECTION is there while there is
a process, SERVER, its reply to the greeting, while it is ready.  QUEUE
holds the calls that wait for that, latest first.  DEATHS says when it
died, latest first, as far as the last minute goes.  SESSIONS are the ids
to resume in a new process, latest first.  MISSING says, as a text or nil,
which programs its tools lack.  SECRET-FILES is as in `efrit-host--secrets'."
  remote (state 'off) connection server queue deaths sessions missing secret-files)

(defvar efrit-host--hosts (list (efrit-host--create))
  "The hosts, this machine first.")

(defvar efrit-host--session-hosts (make-hash-table :test #'equal)
  "The host names of sessions, by session id.")

(defvar efrit-host--true-names (make-hash-table :test #'equal)
  "Cache of `efrit-host-true-name' for other machines.")

(defvar efrit-host-default nil
  "The host name for calls whose session is not known.
It is bound while hooks of a host's sidecar run.")

(defun efrit-host-at (remote)
  "Return the host named REMOTE, nil for this machine."
  (or (seq-find (lambda (host) (equal (efrit-host-remote host) remote)) efrit-host--hosts)
      (let ((host (efrit-host--create :remote remote)))
        (nconc efrit-host--hosts (list host))
        host)))

(defun efrit-host-of-call (params remote)
  "Return the host of a call with PARAMS, a plist, by its session.
For an unknown session it is REMOTE or else `efrit-host-default'."
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
  "Return the name of FILE on its own machine."
  (file-local-name (expand-file-name file)))

(defun efrit-host-true-name (file)
  "Return FILE, a whole name, with symbolic links resolved.
Another machine is asked once for each name."
  (if (file-remote-p file)
      (or (gethash file efrit-host--true-names)
          (puthash file (file-truename file) efrit-host--true-names))
    (file-truename file)))

(defun efrit-host-true-file (buffer)
  "Return the true name of the file that BUFFER visits.
For a remote file it is the one at the time of the visit."
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

;; Which files usually hold secrets is a setting of the sidecar, which names
;; them whenever a session begins.

(defun efrit-host-secret-p (file)
  "Return non-nil if secrets are usually in FILE, a whole name.
Use the list of its machine, or that of another one if it is not known."
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
The car is a regexp for all of them; the cdr is an alist of regexps, each
with t, or nil for an exception.  The last that matches decides."
  (let ((rules (mapcar (lambda (pattern)
                         (cons (efrit-host--secret-regexp (string-remove-prefix "!" pattern))
                               (not (string-prefix-p "!" pattern))))
                       patterns)))
    (cons (mapconcat #'car rules "\\|") rules)))

(defun efrit-host--secret-regexp (pattern)
  "Return a regexp for whole names that PATTERN, as in a .gitignore, matches.
A pattern with a slash is for the end of a name, others for its last part."
  (let ((regexp (string-remove-prefix "\\`" (wildcard-to-regexp pattern))))
    (concat "/" (if (string-search "/" pattern)
                    regexp
                  (string-replace "[^\0]" "[^/\0]" regexp)))))

;;; Long texts in files

;; Emacs waits while a pipe is full, and writes little at a time: a megabyte
;; costs it 200 ms.  A file takes 5 ms.  So a long text is left in a folder
;; that nobody else can read and that the sidecar was told of when it was
;; greeted; the sidecar takes the file away when it reads it.

(defvar efrit-handover--folder nil
  "The folder for texts from this Emacs, or nil before the first greeting.")

(defvar efrit-handover--disabled nil
  "Non-nil if the sidecar cannot read files, as in a container.")

(defvar efrit-handover--count 0
  "Number of texts written so far.")

(defun efrit-handover-folder ()
  "Return the folder for texts that a new sidecar here is told, or nil."
  (setq efrit-handover--disabled nil)
  (ignore-errors
    (unless efrit-handover--folder
      (setq efrit-handover--folder (make-temp-file "efrit-handover-" t))
      (add-hook 'kill-emacs-hook #'efrit-handover--remove))
    efrit-handover--folder))

(defun efrit-handover-leave (buffer)
  "Write the whole text of BUFFER to a new file, and return its bare name.
Characters that UTF-8 cannot hold are left for the sidecar to replace.
Return nil if no file can be written."
  (when (and efrit-handover--folder (not efrit-handover--disabled))
    (let ((name (number-to-string (cl-incf efrit-handover--count))))
      (condition-case nil
          (progn (efrit-handover--write buffer (efrit-handover--file name))
                 name)
        (file-error (efrit-handover-drop name))))))

(defun efrit-handover-drop (name)
  "Delete the text NAME if it was not taken; return nil."
  (ignore-errors
    (delete-file (efrit-handover--file name)))
  nil)

(defun efrit-handover-refuse ()
  "Write no more texts until a sidecar is greeted again."
  (setq efrit-handover--disabled t))

(defun efrit-handover--file (name)
  "Return the file of the text NAME."
  (expand-file-name name efrit-handover--folder))

(defun efrit-handover--write (buffer file)
  "Write the whole text of BUFFER to the new FILE."
  (let ((folder efrit-handover--folder))
    ;; What tidies up the temporary files of long-lived programs may have been there.
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
`write-region' would encode it as a string, which becomes garbage."
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
  "Delete the folder of this Emacs."
  (when efrit-handover--folder
    (ignore-errors
      (delete-directory efrit-handover--folder t))))

;;; Starting and restarting

;; There is one sidecar per host, this machine or one behind TRAMP.  It
;; starts with the first call for that host, and with the first one after it
;; died; calls made meanwhile wait their turn.  A new process is greeted, its
;; version compared, and the sessions of this Emacs on that host are resumed
;; in it, before anybody's call goes out.  All of that runs from timers, so it
;; goes on whoever waits for what.

(defconst efrit-supervisor-protocol-version 1
  "The version of the wire's protocol that this client speaks.")

(defconst efrit-supervisor--crash-limit 5
  "Number of deaths in a minute after which the sidecar is not started again.")

(defun efrit-supervisor-submit (call)
  "Send CALL to the sidecar of its host, once ready; start it if need be.
Typing does not interrupt this, not even in `while-no-input'."
  (let ((host (efrit-call-host call))
        (throw-on-input nil))
    (pcase (efrit-host-state host)
      ('ready
       (unless (and (efrit-connection-live-p (efrit-host-connection host))
                    (efrit-connection-send (efrit-host-connection host) call))
         ;; It is gone, and Emacs has not been told yet.
         (efrit-connection-kill (efrit-host-connection host))
         (efrit-supervisor-submit call)))
      ('given-up
       (efrit-call-finish call 'failed (efrit-supervisor--gave-up-error)))
      (state
       (push call (efrit-host-queue host))
       (when (eq state 'off)
         (efrit-supervisor--start-when-due host))))))

(defun efrit-supervisor-limit (call seconds)
  "End CALL with `efrit-timeout' after SECONDS, unless it has ended or that is nil."
  (when seconds
    (setf (efrit-call-timer call) (run-at-time seconds nil #'efrit-supervisor--time-out call))))

(defun efrit-supervisor-remember (session-id &optional remote)
  "Resume SESSION-ID in every new process, here or on the host REMOTE."
  (efrit-host-set-session session-id remote)
  (cl-pushnew session-id (efrit-host-sessions (efrit-host-at remote)) :test #'equal))

(defun efrit-supervisor-forget (session-id)
  "Do not resume SESSION-ID in new processes any more."
  (dolist (host efrit-host--hosts)
    (setf (efrit-host-sessions host) (delete session-id (efrit-host-sessions host)))))

(defun efrit-supervisor-sessions (&optional remote)
  "Return the ids of the sessions that are resumed here, or on the host REMOTE."
  (reverse (efrit-host-sessions (efrit-host-at remote))))

;;;; Starting

(defun efrit-supervisor--start-when-due (host)
  "Start the sidecar of HOST, after a pause if it died lately.
A remote one is never started within TRAMP or a process filter."
  (let ((pause (efrit-supervisor--pause host)))
    (if (and (<= pause 0) (null (efrit-host-remote host)))
        (efrit-supervisor--start host)
      (setf (efrit-host-state host) 'pausing)
      (run-at-time (max 0 pause) nil #'efrit-supervisor--start-after-pause host))))

(defun efrit-supervisor--pause (host)
  "Return the seconds to wait before starting the sidecar of HOST again.
That is none after the first death in a minute, then 0.5, and twice as long
each time, from the latest death on."
  (if-let* ((deaths (efrit-supervisor--recent-deaths host)))
      (- (+ (car deaths) (efrit-supervisor--pause-after (length deaths))) (float-time))
    0))

(defun efrit-supervisor--pause-after (count)
  "Return the seconds to wait after the latest of COUNT deaths."
  (if (< count 2)
      0
    (min 5 (* 0.5 (expt 2 (- count 2))))))

(defun efrit-supervisor--recent-deaths (host)
  "Return the deaths on HOST in the last minute, and forget earlier ones."
  (let ((since (- (float-time) 60)))
    (setf (efrit-host-deaths host)
          (cl-remove-if (lambda (time) (< time since)) (efrit-host-deaths host)))))

(defun efrit-supervisor--start-after-pause (host &optional since)
  "Start the sidecar of HOST, if it is still pausing.
The first try was at the time SINCE."
  (when (eq (efrit-host-state host) 'pausing)
    (efrit-supervisor--start host since)))

(defun efrit-supervisor--start (host &optional since)
  "Start the process of HOST and greet it; the first try was at the time SINCE."
  (setf (efrit-host-state host) 'starting)
  (add-hook 'kill-emacs-hook #'efrit-supervisor--stop-with-emacs)
  (condition-case err
      (let* ((inhibit-quit t)
             (connection (efrit-supervisor--open host)))
        ;; It may have been stopped while TRAMP was waiting.
        (if (or (efrit-host-connection host) (not (eq (efrit-host-state host) 'starting)))
            (efrit-connection-kill connection)
          (setf (efrit-host-connection host) connection)
          (efrit-supervisor--greet host connection)))
    (efrit-remote-busy (efrit-supervisor--start-later host (or since (float-time))))
    (error (efrit-supervisor--start-failed host (efrit-host-connection host) err))))

(defun efrit-supervisor--open (host)
  "Start the process of HOST, and return the connection to it."
  (efrit-connection-open
   (if (efrit-host-remote host)
       (efrit-supervisor--spawn-remote host)
     (efrit-process-spawn (append (efrit-executable-command) '("serve"))))
   (apply-partially #'run-hook-with-args 'efrit-sidecar-progress-functions)
   (lambda (connection why) (efrit-supervisor--ended host connection why))))

(defun efrit-supervisor--spawn-remote (host)
  "Start the sidecar on HOST, a remote one, and return its process.
A person can quit.  Show which programs are missing."
  (condition-case nil
      (let* ((inhibit-quit nil)
             (remote (efrit-host-remote host))
             (found (efrit-remote-look remote)))
        (when-let* ((problem (efrit-remote-problem remote found)))
          (user-error "%s" problem))
        (when (setf (efrit-host-missing host) (efrit-remote-missing remote found))
          (message "efrit: %s" (efrit-host-missing host)))
        (let ((process (efrit-remote-spawn
                        remote (efrit-process-name remote)
                        (append (efrit-remote-found-command found) '("serve"))
                        efrit-sidecar-start-timeout)))
          (process-put process 'efrit-stderr (efrit-process-new-stderr remote))
          process))
    (quit (signal 'efrit-cancelled (list "the start was quit")))))

(defun efrit-supervisor--start-later (host since)
  "Start the sidecar of HOST once TRAMP is idle.
Fail when that takes longer than a start may, counted from the time SINCE."
  (cond
   ((not (eq (efrit-host-state host) 'starting)))
   ((< efrit-sidecar-start-timeout (- (float-time) since))
    (efrit-supervisor--start-failed
     host nil (list 'user-error (format "TRAMP runs no program on %s just now, or never"
                                        (efrit-host-remote host)))))
   (t
    (setf (efrit-host-state host) 'pausing)
    (run-at-time 0.2 nil #'efrit-supervisor--start-after-pause host since))))

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
                            (efrit-supervisor--start-failed host connection err))))))
    (efrit-supervisor-limit call efrit-sidecar-start-timeout)
    ;; Where the process has ended already, its end is what fails the start.
    (unless (efrit-connection-send connection call)
      (efrit-call-drop call))))

(defun efrit-supervisor--greet (host connection)
  "Call `initialize' over CONNECTION, to the process of HOST."
  (efrit-supervisor--ask
   host connection 'initialize
   `( :client (:name "efrit.el" :version ,efrit-version)
      :protocol_version ,efrit-supervisor-protocol-version
      ,@(when-let* (((null (efrit-host-remote host)))
                    (folder (efrit-handover-folder)))
          (list :handover_folder folder)))
   (lambda (server)
     (if-let* ((problem (efrit-supervisor--version-problem host server)))
         (efrit-supervisor--start-failed host connection (list 'user-error problem))
       (setf (efrit-host-server host) server)
       (efrit-connection-notify connection 'initialized nil)
       (efrit-supervisor--resume host connection)))))

(defun efrit-supervisor--version-problem (host server)
  "Return what to upgrade if SERVER, of HOST, has another protocol, or nil."
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
  "Return the name of the sidecar of HOST for a sentence."
  (if (efrit-host-remote host)
      (concat "sidecar on " (efrit-host-remote host))
    "sidecar"))

(defun efrit-supervisor--resume (host connection)
  "Resume the sessions of HOST over CONNECTION; then it is ready."
  (let* ((sessions (reverse (efrit-host-sessions host)))
         (left (length sessions))
         (next (lambda (answer)
                 (efrit-supervisor-session-begun answer host)
                 (when (zerop (cl-decf left))
                   (efrit-supervisor--ready host)))))
    (if (null sessions)
        (efrit-supervisor--ready host)
      (dolist (id sessions)
        (efrit-supervisor--ask host connection 'session/resume (list :session_id id)
                               next
                               (lambda (err)
                                 (efrit-supervisor-forget id)
                                 (message "efrit: session %s is not resumed: %s" id (cadr err))
                                 (funcall next nil)))))))

(defun efrit-supervisor-session-begun (answer host)
  "Take ANSWER, the reply with which a session begins on HOST, or nil.
Show its warnings, such as of sessions that will be deleted."
  (when answer
    (when-let* ((patterns (plist-get answer :secret_files)))
      (setf (efrit-host-secret-files host) (efrit-host--secrets patterns)))
    (efrit-defer #'mapc (lambda (warning) (display-warning 'efrit warning))
                 (plist-get answer :warnings))))

(defun efrit-supervisor--ready (host)
  "Mark the sidecar of HOST as ready, and send what waited for it."
  (setf (efrit-host-state host) 'ready)
  (efrit-defer #'efrit-supervisor--run-hook host 'efrit-sidecar-started-functions
               (efrit-host-server host))
  (dolist (call (reverse (cl-shiftf (efrit-host-queue host) nil)))
    (when (efrit-call-open-p call)
      (efrit-supervisor-submit call))))

(defun efrit-supervisor--run-hook (host hook &rest arguments)
  "Run HOOK with ARGUMENTS, about the sidecar of HOST."
  (let ((efrit-host-default (efrit-host-remote host)))
    (apply #'run-hook-with-args hook arguments)))

(defun efrit-supervisor--start-failed (host connection err)
  "Give up starting HOST: end CONNECTION, or nil, and its queue with ERR."
  (when (eq connection (efrit-host-connection host))
    (efrit-supervisor--mark-stopped host)
    (when connection
      (efrit-connection-kill connection))
    (efrit-supervisor--fail-queue host err)))

;;;; Ending

(defun efrit-supervisor--mark-stopped (host)
  "Mark HOST as without a process."
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
  "End CALL with a time-out, and have the sidecar stop working on it."
  (let ((sent (eq (efrit-call-state call) 'sent)))
    (efrit-supervisor--unqueue call)
    (efrit-call-finish call 'failed
                       (list 'efrit-timeout (format "%s" (efrit-call-method call))))
    (when sent
      (efrit-connection-withdraw (efrit-call-connection call) call))))

(defun efrit-supervisor--ended (host connection why)
  "Handle the end of the process of HOST, behind CONNECTION; WHY is a text."
  (when (and (eq connection (efrit-host-connection host))
             (not (eq (efrit-host-state host) 'stopping)))
    (efrit-supervisor--mark-stopped host)
    (push (float-time) (efrit-host-deaths host))
    (efrit-supervisor--fail-queue host (list 'efrit-sidecar-died why))
    (let ((too-often (>= (length (efrit-supervisor--recent-deaths host))
                         efrit-supervisor--crash-limit)))
      (when too-often
        (setf (efrit-host-state host) 'given-up))
      (efrit-defer #'efrit-supervisor--announce-death host why too-often))))

(defun efrit-supervisor--announce-death (host why given-up)
  "Show that the sidecar of HOST died, WHY, and what follows.
GIVEN-UP is non-nil if it is not started again."
  (if given-up
      (message "%s" (efrit-error-text (efrit-supervisor--gave-up-error)))
    (message "efrit: the %s ended (%s); the next call starts it again"
             (efrit-supervisor--display-name host) why))
  (efrit-supervisor--run-hook host 'efrit-sidecar-died-functions why))

(defun efrit-supervisor--gave-up-error ()
  "Return the error of a call to a sidecar that is not started again."
  (list 'efrit-sidecar-died
        (substitute-command-keys
         (format "%d times within a minute.  \
\\[efrit-sidecar-restart] tries again, \\[efrit-sidecar-show-stderr] shows why"
                 efrit-supervisor--crash-limit))))

(defun efrit-supervisor--stop-with-emacs ()
  "Have the sidecar here end with Emacs, by closing its input.
This does not wait: after a signal, waiting in `kill-emacs-hook' never ends.
The input of a remote one is a terminal, which ends with Emacs."
  (when-let* ((connection (efrit-host-connection (efrit-host-at nil))))
    (ignore-errors
      (process-send-eof (efrit-connection-process connection)))))

;;; Calling

(cl-defun efrit-sidecar-request
    (method params &key (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS, wait for the result and return it.
METHOD is a symbol or string, PARAMS a plist or nil, HOST the name of the
host where a session lies that is not known here.  Signal
`efrit-rpc-error' for the sidecar's errors, `efrit-timeout' after TIMEOUT
seconds (nil: no limit), `efrit-sidecar-died' where its process ends
first, `efrit-unencodable' for what JSON cannot hold.  Timers run, and
other calls are answered, meanwhile.  When it is left early, as by
\\[keyboard-quit], the sidecar is told to stop the work."
  (efrit-sidecar--await (efrit-sidecar--call method params host) timeout))

(cl-defun efrit-sidecar-request-async
    (method params &key success error (timeout efrit-sidecar-timeout) host)
  "Call METHOD with PARAMS, and return a token of the call at once.
Later a timer calls SUCCESS with the result, or ERROR with the error as
`condition-case' binds it.  Both may be nil.  TIMEOUT, HOST and the errors
are those of `efrit-sidecar-request'."
  (let ((call (efrit-sidecar--call method params host success error)))
    (efrit-supervisor-limit call timeout)
    (efrit-supervisor-submit call)
    call))

(defun efrit-sidecar-cancel (token)
  "Drop the call TOKEN, and have the sidecar stop working on it.
Neither of its functions is called any more.  Return nil if it had ended."
  (let ((throw-on-input nil))
    (if (eq (efrit-call-state token) 'sent)
        (efrit-connection-cancel (efrit-call-connection token) token)
      (efrit-supervisor--unqueue token)
      (efrit-call-drop token))))

(defun efrit-sidecar-notify (method params)
  "Send the sidecar the notification METHOD with PARAMS; start it if need be."
  (efrit-supervisor-submit
   (efrit-call-create :host (efrit-host-of-call params nil)
                      :method method :params params
                      :kind 'notification))
  nil)

(defun efrit-sidecar-ensure (&optional host)
  "Start the sidecar here, or of HOST, if need be, and wait until it is ready.
Return its reply to `initialize': a plist of `:server' (`:name', `:version'),
`:protocol_version' and `:capabilities'."
  (efrit-sidecar--await (efrit-call-create :host (efrit-host-at host) :kind 'barrier))
  (efrit-host-server (efrit-host-at host)))

(defun efrit-sidecar-process (&optional host)
  "Return the process of the sidecar here, or of HOST, or nil while there is none."
  (when-let* ((connection (efrit-host-connection (efrit-host-at host))))
    (efrit-connection-process connection)))

;;;; Commands

;;;###autoload
(defun efrit-sidecar-stop (&optional remote)
  "Stop the sidecar; what is under way ends with `efrit-sidecar-died'.
The next call starts it again, with the sessions it had; earlier deaths are
forgotten.  With REMOTE, or in a remote folder, it is that host's."
  (interactive (list (file-remote-p default-directory)))
  (let* ((host (efrit-host-at remote))
         (connection (efrit-host-connection host)))
    (setf (efrit-host-state host) 'stopping)
    (unwind-protect
        (when connection
          (efrit-connection-close connection))
      (efrit-supervisor--mark-stopped host)
      (setf (efrit-host-deaths host) nil)
      (efrit-supervisor--fail-queue host (list 'efrit-sidecar-died "it was stopped"))))
  (when (called-interactively-p 'interactive)
    (message "The sidecar is stopped")))

;;;###autoload
(defun efrit-sidecar-restart (&optional host)
  "Stop the sidecar, if there is one, and start it; forget earlier deaths.
In a remote folder, it is that HOST's."
  (interactive (list (file-remote-p default-directory)))
  (efrit-sidecar-stop host)
  (let ((server (plist-get (efrit-sidecar-ensure host) :server)))
    (when (called-interactively-p 'interactive)
      (message "%s %s is started; sessions: %d"
               (plist-get server :name) (plist-get server :version)
               (length (efrit-supervisor-sessions host))))))

;;;###autoload
(defun efrit-sidecar-show-stderr (&optional host)
  "Show what the sidecar wrote to its standard error.
In a remote folder, it is that HOST's, and comes when it has ended."
  (interactive (list (file-remote-p default-directory)))
  (pop-to-buffer (or (efrit-process-stderr host)
                     (user-error "The sidecar wrote nothing to its standard error"))))

(defun efrit-sidecar--call (method params host &optional success failure)
  "Return a new call of METHOD with PARAMS, for SUCCESS and FAILURE.
HOST is where its session is if that is not known here."
  (efrit-call-create :host (efrit-host-of-call params host)
                     :method method :params params
                     :success success :failure failure))

(defun efrit-sidecar--await (call &optional timeout)
  "Submit CALL, wait until it has ended, and return or signal its outcome.
It may take TIMEOUT seconds.  It is cancelled if the wait is left early, for
which a person can quit even where a timer waits."
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

;; What a session opened by this Emacs may put into the model's window.  The
;; sidecar's own settings (see docs/settings.md) hold where an option here
;; has its default.

(defconst efrit-limits--memory
  ["mem_save" "mem_search" "mem_context" "mem_timeline" "mem_get_observation" "mem_delete"
   "mem_stats" "context_pack"]
  "The tools of memory.")

(defconst efrit-limits--wire-names
  '((efrit-budget-total-target . :total)
    (efrit-budget-per-tool-default . :per_tool_default)
    (efrit-budget-history-max . :history)
    (efrit-budget-warning-threshold . :warning_threshold))
  "Wire names of the limit options.")

(defun efrit-limits ()
  "Return the limits of a new session, a plist, or nil for the defaults."
  (cl-loop for (option . name) in efrit-limits--wire-names
           for value = (default-value option)
           unless (equal value (eval (car (get option 'standard-value)) t))
           append (list name value)))

(defun efrit-limits-denied ()
  "Return the names of the tools denied to a new session, a vector, or nil."
  (and (not (default-value 'efrit-memory-tools))
       efrit-limits--memory))

;;; Sessions

;; A session lives in the sidecar's database, on the machine where its root
;; is; it outlives the sidecar's process and Emacs.  What this Emacs opened or resumed is resumed by
;; itself in every new process of the sidecar.

(defconst efrit-session--in-use -32009
  "The code of the error that another process works in a session.")

(defconst efrit-session--release-seconds 3
  "Seconds to wait for a dead Emacs's sidecar to end.")

(defun efrit-session-open (root &optional limits denied)
  "Open a session on the folder ROOT, on its machine; return its id, a string.
LIMITS is a plist of the budget's limits, or nil for the defaults; DENIED is a
vector of the tools that the model is not offered, or nil."
  (let* ((remote (file-remote-p root))
         (opened (efrit-sidecar-request
                  'session/open
                  `(:root ,(directory-file-name (efrit-host-local-name root))
                          ,@(and limits (list :limits limits))
                          ,@(and denied (list :deny denied)))
                  :host remote))
         (id (plist-get opened :session_id)))
    (efrit-supervisor-remember id remote)
    (efrit-supervisor-session-begun opened (efrit-host-at remote))
    id))

(defun efrit-session-resume (id &optional remote)
  "Resume the session ID on the host REMOTE or here; return its state, a plist.
If another Emacs has it, ask whether to take it over, or signal a `user-error'."
  (prog1 (or (efrit-session--resume-unless-in-use
              id remote (+ (float-time) efrit-session--release-seconds))
             (if (and (not noninteractive)
                      (yes-or-no-p (format "Session %s is in use by another Emacs.  \
Take it over, and work in it here alone? " id)))
                 (efrit-session--resume id remote t)
               (user-error "Session %s is in use by another Emacs; end it there first" id)))
    (efrit-supervisor-remember id remote)))

(defun efrit-session--resume (id remote take-over)
  "Resume the session ID on the host REMOTE, with TAKE-OVER from another Emacs."
  (let ((resumed (efrit-sidecar-request 'session/resume
                                        (append (list :session_id id)
                                                (and take-over (list :take_over t)))
                                        :host remote)))
    (efrit-supervisor-session-begun resumed (efrit-host-at remote))
    resumed))

(defun efrit-session--resume-unless-in-use (id remote until)
  "Resume the session ID on the host REMOTE; return nil if it is in use.
Try until the time UNTIL, since a dead Emacs's sidecar may not have ended yet."
  (condition-case err
      (efrit-session--resume id remote nil)
    (efrit-rpc-error
     (unless (eql (efrit-rpc-error-code err) efrit-session--in-use)
       (signal (car err) (cdr err)))
     (when (< (float-time) until)
       (accept-process-output nil 0.2)
       (efrit-session--resume-unless-in-use id remote until)))))

(provide 'efrit-sidecar)
;;; efrit-sidecar.el ends here
