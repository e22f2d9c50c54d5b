;;; endpoint-tests.el --- Tests of the way to the model's endpoint  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'looping)

;;; Proxies

(defmacro endpoint-test-with-proxy (proxy said &rest body)
  "Run BODY with PROXY bound to the URL of a proxy that answers SAID to CONNECT."
  (declare (indent 2) (debug (symbolp form body)))
  `(endpoint-test--with-proxy ,said (lambda (,proxy) ,@body)))

(defun endpoint-test--with-proxy (said body)
  "Call BODY with the URL of a proxy that answers SAID to CONNECT."
  (let ((server (make-network-process
                 :name "endpoint-test-proxy" :server t :host "127.0.0.1" :service t
                 :coding 'binary :noquery t
                 :filter (lambda (client data) (endpoint-test--proxied client data said))
                 :sentinel #'ignore)))
    (unwind-protect
        (funcall body (format "http://127.0.0.1:%s" (process-contact server :service)))
      (delete-process server))))

(defun endpoint-test--proxied (client data said)
  "Pass DATA of CLIENT on; to a CONNECT answer SAID, once there is a connection."
  (if-let* ((there (process-get client 'there)))
      (process-send-string there data)
    (when (string-match "\\`CONNECT \\([^: ]+\\):\\([0-9]+\\) " data)
      (process-put client 'there
                   (make-network-process
                    :name "endpoint-test-there" :host (match-string 1 data)
                    :service (string-to-number (match-string 2 data))
                    :coding 'binary :noquery t
                    :filter (lambda (_ answer) (process-send-string client answer))
                    :sentinel #'ignore))
      (process-send-string client said))))

(ert-deftest efrit-endpoint-is-reached-through-whatever-a-proxy-answers ()
  (dolist (said '("HTTP/1.1 200 OK\r\n\r\n"
                  "HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n"))
    (endpoint-test-with-proxy proxy said
      (loop-test-with "[[reply]]\ntext = \"Through it.\"\n" loop
        (let ((through (lambda (config)
                         (concat config (format "proxytunnel\nproxy = \"%s\"\nnoproxy = \"\"\n"
                                                proxy)))))
          (unwind-protect
              (progn
                (advice-add 'efrit-http--config :filter-return through)
                (efrit-test-finish loop "Go."))
            (advice-remove 'efrit-http--config through)))
        (should (equal "Through it." (loop-test--said)))))))

(provide 'endpoint-tests)
;;; endpoint-tests.el ends here
