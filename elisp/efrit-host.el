;;; efrit-host.el --- The machines that sidecars run on  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; There is one sidecar per machine: here, and wherever a project lies that
;; is worked on over TRAMP.  A machine is named by what stands before the
;; file's name there, as in "/ssh:me@host:", and this one by nil.
;;
;; A sidecar knows the names of its own machine alone.  In Emacs a root is
;; the whole name; here is what goes from the one to the other.  None of it
;; asks the other machine, but for `efrit-host-true-name', once for a name.

;;; Code:

(require 'cl-lib)
(require 'efrit)
(require 'seq)
(require 'subr-x)

;;; Structs

(cl-defstruct (efrit-host (:constructor efrit-host--create) (:copier nil))
  "A machine and its sidecar.
REMOTE is its name, or nil for this one.  STATE is what the sidecar does:
`off', `pausing' after a death, `starting', `ready', `stopping', or
`given-up' until a person restarts it.  CONNECTION is there while there is
a process, SERVER, its reply to the greeting, while it is ready.  QUEUE
holds the calls that wait for that, latest first.  DEATHS says when it
died, latest first, as far as the last minute goes.  SESSIONS are the ids
to resume in a new process, latest first.  MISSING says, as a text or nil,
which programs its tools lack."
  remote (state 'off) connection server queue deaths sessions missing)

(defvar efrit-host--all (list (efrit-host--create))
  "The hosts, this machine first.")

(defvar efrit-host--of-sessions (make-hash-table :test #'equal)
  "The names of the hosts where sessions lie, by the sessions' ids.")

(defvar efrit-host--true-names (make-hash-table :test #'equal)
  "What `efrit-host-true-name' found on other machines.")

(defvar efrit-host-default nil
  "The name of the host for calls whose session is not known here.
Hooks of a sidecar run with this bound to the name of its host.")

;;; Public

(defun efrit-host-at (remote)
  "Return the host named REMOTE, nil for this machine."
  (or (seq-find (lambda (host) (equal (efrit-host-remote host) remote)) efrit-host--all)
      (let ((host (efrit-host--create :remote remote)))
        (nconc efrit-host--all (list host))
        host)))

(defun efrit-hosts ()
  "Return all hosts that were asked for in this Emacs, this machine first."
  (copy-sequence efrit-host--all))

(defun efrit-host-of-call (params remote)
  "Return the host of a call with PARAMS, a plist.
That is where its session lies; the one named REMOTE where the session is
not known here; or that of `efrit-host-default'."
  (efrit-host-at (efrit-host-of-session (plist-get params :session_id)
                                        (or remote efrit-host-default))))

(defun efrit-host-settle (id remote &optional keep)
  "Take it that the session ID lies on the host named REMOTE.
With KEEP, leave it where it is if that is known: ids are told apart by
their own host alone."
  (unless (and keep (not (eq 'unknown (efrit-host-of-session id 'unknown))))
    (puthash id remote efrit-host--of-sessions)))

(defun efrit-host-of-session (id &optional remote)
  "Return the name of the host where the session ID lies, nil for this machine.
It is REMOTE where the session is not known here."
  (gethash id efrit-host--of-sessions remote))

;;; Names of files

(defun efrit-host-local-name (file)
  "Return FILE as it is called on its own machine."
  (file-local-name (expand-file-name file)))

(defun efrit-host-true-name (file)
  "Return FILE, a whole name, with symbolic links resolved.
Another machine is asked once for each name."
  (if (file-remote-p file)
      (or (gethash file efrit-host--true-names)
          (puthash file (file-truename file) efrit-host--true-names))
    (file-truename file)))

(defun efrit-host-true-file (buffer)
  "Return the real name of the file that BUFFER visits.
On another machine it is what it was when the file was visited."
  (let ((file (buffer-file-name buffer)))
    (if (file-remote-p file)
        (expand-file-name (or (buffer-local-value 'buffer-file-truename buffer) file))
      (file-truename file))))

(defun efrit-host-same-file-p (one other)
  "Return non-nil if ONE and OTHER name the same folder of the same machine."
  (and (equal (file-remote-p one) (file-remote-p other))
       (string= (file-name-as-directory (efrit-host-true-name one))
                (file-name-as-directory (efrit-host-true-name other)))))

(provide 'efrit-host)
;;; efrit-host.el ends here
