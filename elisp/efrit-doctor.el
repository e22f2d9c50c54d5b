;;; efrit-doctor.el --- Check that everything is there  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `efrit-doctor' checks this Emacs and the way to the sidecar, then shows
;; what the sidecar's own doctor says; in a remote folder, also what there is
;; on that machine.  Each line is "ok" or "problem", a
;; name and what was found; a problem says how to fix it.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'efrit)
(require 'efrit-executable)
(require 'efrit-http)
(require 'efrit-remote)
(require 'efrit-sidecar)

;;; Structs

(cl-defstruct (efrit-doctor-check (:constructor efrit-doctor--check (ok name found fix))
                                  (:copier nil))
  "What a check found.
OK is nil for a problem, and FIX says then what to do about it."
  ok name found fix)

(defconst efrit-doctor--buffer "*efrit doctor*"
  "The name of the buffer that shows the checks.")

;;; Public

;;;###autoload
(defun efrit-doctor ()
  "Check that Emacs, the sidecar and what they need are there, and show it.
In a remote folder, look at the sidecar on that machine as well.  In
batch, print it to the standard output and exit with 1 if there is a
problem."
  (interactive)
  (let* ((checks (efrit-doctor-checks))
         (theirs (efrit-doctor--sidecars))
         (there (when-let* ((remote (file-remote-p default-directory)))
                  (efrit-doctor--remote remote)))
         (report (concat "Emacs\n" (efrit-doctor--table checks)
                         (and theirs (concat "\nSidecar\n" (cdr theirs)))
                         (cdr there)))
         (healthy (and (cl-every #'efrit-doctor-check-ok checks)
                       (eql (car theirs) 0)
                       (or (null there) (car there)))))
    (if noninteractive
        (progn (princ report)
               (unless healthy (kill-emacs 1)))
      (efrit-doctor--show report))))

(defun efrit-doctor-checks ()
  "Look at this Emacs and its way to the sidecar; return what was found.
Those that need what an earlier one missed are left out."
  (let ((executable (efrit-doctor--executable)))
    (append (list (efrit-doctor--emacs)
                  (efrit-doctor--jsonrpc)
                  (efrit-doctor--json)
                  (efrit-doctor--curl)
                  executable)
            (when (efrit-doctor-check-ok executable)
              (efrit-doctor--connection)))))

;;; Private

(defun efrit-doctor--emacs ()
  "Check the version of Emacs."
  (efrit-doctor--check (version<= "28.1" emacs-version) "Emacs" emacs-version
                       "install Emacs 28.1 or later"))

(defun efrit-doctor--jsonrpc ()
  "Check the version of jsonrpc.el."
  (let ((version (efrit-doctor--jsonrpc-version)))
    (efrit-doctor--check (or (null version) (version<= "1.0.14" version))
                         "jsonrpc.el" (or version "of unknown version")
                         "install the package jsonrpc from GNU ELPA")))

(defun efrit-doctor--jsonrpc-version ()
  "Return the version of the jsonrpc.el in use, a string, or nil."
  (when-let* ((library (locate-library "jsonrpc.el")))
    (with-temp-buffer
      (let ((inhibit-message t))
        (insert-file-contents library))
      (and (re-search-forward "^;; Version: \\([0-9.]+\\)" 2000 t)
           (match-string 1)))))

(defun efrit-doctor--json ()
  "Check that this Emacs has JSON natively."
  (if (and (fboundp 'json-serialize) (fboundp 'json-parse-buffer))
      (efrit-doctor--check t "JSON" "native" nil)
    (efrit-doctor--check nil "JSON" "not native"
                         "install an Emacs that is built with libjansson")))

(defun efrit-doctor--curl ()
  "Check that there is the curl by which the model is asked."
  (let ((found (executable-find efrit-http-program)))
    (efrit-doctor--check (and found t) "curl" (or found "not found")
                         "install curl, or set `efrit-http-program'")))

(defun efrit-doctor--executable ()
  "Check that the sidecar's program is found."
  (condition-case err
      (efrit-doctor--check
       t "sidecar's program"
       (string-join (efrit-executable-command) " ") nil)
    (user-error
     (efrit-doctor--check nil "sidecar's program" "not found" (cadr err)))))

(defun efrit-doctor--connection (&optional host)
  "Check that the sidecar of HOST is there, of a fitting version, and answers."
  (condition-case err
      (let ((server (plist-get (efrit-sidecar-ensure host) :server))
            ;; The first answer waits until the sidecar has loaded its tools.
            (start (progn (efrit-sidecar-request 'tools/list nil :host host) (float-time))))
        (efrit-sidecar-request 'ping nil :host host)
        (list
         (efrit-doctor--check
          t "versions" (format "efrit.el %s, %s %s" efrit-version
                               (plist-get server :name) (plist-get server :version))
          nil)
         (efrit-doctor--check
          t "round trip" (format "%.1f ms" (* 1000 (- (float-time) start))) nil)))
    (user-error
     (list (efrit-doctor--check nil "versions" "differ" (cadr err))))
    (efrit-error
     (list (efrit-doctor--check
            nil "round trip" (efrit-error-text err)
            "M-x efrit-sidecar-restart; M-x efrit-sidecar-show-stderr says more")))))

(defun efrit-doctor--sidecars ()
  "Run the sidecar's own doctor, if its program is found.
Return a cons of its exit code and what it printed, or nil."
  (when-let* ((command (condition-case nil
                           (efrit-executable-command)
                         (user-error nil)))
              (arguments (append (cdr command) '("doctor")))
              (coding-system-for-read 'utf-8))
    (efrit-executable-locally
      (with-temp-buffer
        (let ((code (apply #'call-process (car command) nil t nil arguments)))
          (cons code (buffer-string)))))))

;;; Another machine

(defun efrit-doctor--remote (remote)
  "Look at the sidecar on the host REMOTE.
Return a cons of whether all is well there, and a report."
  (pcase-let* ((`(,checks . ,theirs) (efrit-doctor--remote-checks remote)))
    (cons (and (cl-every #'efrit-doctor-check-ok checks) (eql (car theirs) 0))
          (concat "\nOn " remote "\n" (efrit-doctor--table checks)
                  (and theirs (concat "\nSidecar on " remote "\n" (cdr theirs)))))))

(defun efrit-doctor--remote-checks (remote)
  "Look at the sidecar on the host REMOTE.
Return a cons of what was found and what its own doctor gave, or nil."
  (condition-case err
      (let* ((found (efrit-remote-look remote))
             (problem (efrit-remote-problem remote found)))
        (if problem
            (list (list (efrit-doctor--remote-program found problem)))
          (cons (append (list (efrit-doctor--remote-program found problem)
                              (efrit-doctor--remote-tools found))
                        (efrit-doctor--connection remote))
                (efrit-remote-doctor remote found))))
    (user-error
     (list (list (efrit-doctor--check nil "connection" "failed" (cadr err)))))
    (efrit-remote-busy
     (list (list (efrit-doctor--check
                  nil "connection" "TRAMP is at work, or runs no program there"
                  "try again; if that is of no use, M-x tramp-cleanup-connection"))))))

(defun efrit-doctor--remote-program (found problem)
  "Check for the sidecar's program where FOUND is what there is; PROBLEM, or nil."
  (efrit-doctor--check (null problem) "sidecar's program"
                       (or (efrit-remote-found-program found) "not found") problem))

(defun efrit-doctor--remote-tools (found)
  "Check for the programs that tools run where FOUND is what there is."
  (let ((missing (efrit-remote-found-missing found)))
    (efrit-doctor--check (null missing) "programs of tools"
                         (if missing (concat "no " (string-join missing ", no ")) "all there")
                         "install them there, or add their folder to `tramp-remote-path'")))

;;; The report

(defun efrit-doctor--table (findings)
  "Return FINDINGS, a list of `efrit-doctor-check', as a table."
  (let ((width (apply #'max (mapcar (lambda (check)
                                      (length (efrit-doctor-check-name check)))
                                    findings))))
    (mapconcat (lambda (check) (efrit-doctor--line check width)) findings "")))

(defun efrit-doctor--line (check width)
  "Return CHECK as a line, its name WIDTH wide."
  (let ((ok (efrit-doctor-check-ok check)))
    (format "%-7s  %s  %s%s\n"
            (if ok "ok" "problem")
            (string-pad (efrit-doctor-check-name check) width)
            (efrit-doctor-check-found check)
            (if ok "" (concat " -> " (efrit-doctor-check-fix check))))))

(defun efrit-doctor--show (report)
  "Show REPORT in a buffer of its own."
  (with-current-buffer (get-buffer-create efrit-doctor--buffer)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert report)
      (goto-char (point-min)))
    (special-mode)
    (display-buffer (current-buffer))))

(provide 'efrit-doctor)
;;; efrit-doctor.el ends here
