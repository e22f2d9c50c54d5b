;;; live-tools-web-tests.el --- The web, from a site on loopback  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'live)
(require 'efrit-permissions)
(require 'efrit-status)

(defvar live-web-tests--site nil
  "The address of the site of the test that runs, without a slash at its end.")

(defmacro live-web-tests--with-site (&rest body)
  "Run BODY in a new folder while a site is there, `live-web-tests--site'."
  `(live-test-in nil
     (live-web-tests--serving (lambda () ,@body))))

(defun live-web-tests--serving (body)
  "Call BODY while a site is there."
  (let* ((process-environment (cons "no_proxy=*" process-environment))
         (server (make-process :name "live-web-tests-site" :connection-type 'pipe :noquery t
                               :buffer (generate-new-buffer " *live site*")
                               :sentinel #'ignore
                               :command (list "python3" (expand-file-name
                                                         "tests/elisp/pages.py"
                                                         efrit-test-root)))))
    (unwind-protect
        (let ((live-web-tests--site
               (format "http://127.0.0.1:%s"
                       (efrit-test-wait-until
                        (lambda ()
                          (with-current-buffer (process-buffer server)
                            (goto-char (point-min))
                            (and (re-search-forward "^\\([0-9]+\\)\n" nil t)
                                 (match-string 1))))))))
          (funcall body))
      (kill-buffer (process-buffer server))
      (delete-process server))))

(defun live-web-tests--page (path)
  "Return the address of PATH."
  (concat live-web-tests--site path))

;;; In a session

(ert-deftest efrit-live-web-a-model-fetches-and-searches ()
  (live-web-tests--serving
   (lambda ()
     (live-test-model-uses "fetch_url" (format "{ url = %S }" (live-web-tests--page "/article"))
                           "Größe is size.")
     (let ((efrit-web-search-url (live-web-tests--page "/search?q=%s")))
       (live-test-model-uses "web_search" "{ query = \"cats & dogs\" }"
                             "For q=cats%20%26%20dogs:")))))

(ert-deftest efrit-live-web-the-person-is-asked-with-the-address ()
  (loop-test-with "
[[reply]]
tool = [
  { name = \"fetch_url\", input = { url = \"http://127.0.0.1:9/x\" } },
  { name = \"web_search\", input = { query = \"cats\" } },
]
[[reply]]
text = \"Then not.\"
" loop
    (let ((asked nil))
      (setf (efrit-loop-rules loop) '((t t ask)))
      (efrit-do-say loop "Look.")
      (dotimes (_ 2)
        (let ((use (efrit-test-wait-until (lambda () (efrit-run-pending-use loop)))))
          (push (efrit-show-question use) asked)
          (efrit-run-answer loop use 'deny)))
      (should (equal '("Search the web by html.duckduckgo.com?  cats"
                       "Fetch this address?  http://127.0.0.1:9/x")
                     asked))
      (should (eq 'idle (efrit-test-rest loop))))))

(ert-deftest efrit-live-web-an-agreement-is-for-a-site ()
  (let* ((ask (lambda (url) (efrit-json-text (let ((table (make-hash-table :test #'equal)))
                                               (puthash "url" url table)
                                               table))))
         (subjects (lambda (url)
                     (efrit-permissions-subjects "fetch_url" (funcall ask url))))
         (grants (efrit-permissions-offers
                  "fetch_url" (funcall subjects "https://example.org/a?b")))
         (rules (list (nth 1 (assq 'alike grants)))))
    (should (equal "any address of https://example.org" (nth 2 (assq 'alike grants))))
    (should-not (assq 'alike (efrit-permissions-offers
                              "fetch_url" (funcall subjects "https://example.org@evil.net/"))))
    (pcase-dolist (`(,url . ,decision)
                   '(("https://example.org" . allow)
                     ("https://example.org/other" . allow)
                     ("https://example.org.evil.net/" . ask)
                     ("https://example.org@evil.net/" . ask)
                     ("https://example.org:8443/" . ask)
                     ("http://example.org/" . ask)
                     ("https://evil.net/https://example.org/" . ask)))
      (ert-info (url)
        (should (eq decision (efrit-permissions-decide
                              "fetch_url" (funcall subjects url) 'ask rules)))))))

;;; Pages

(ert-deftest efrit-live-web-a-page-is-laid-out-as-text ()
  (live-web-tests--with-site
   (let ((said (live-test-text "fetch_url" :url (live-web-tests--page "/article#part"))))
     (live-test-has said
                    (concat (live-web-tests--page "/article") " (200, text/html, ")
                    "Title: Über Katzen\n" "Other" "Cats" "Größe is size." "- one" "- two" "a cat")
     (live-test-lacks said "scripted" "color" "drawn" "/other" "<"))
   (live-test-lacks (live-test-text "fetch_url" :url (live-web-tests--page "/headers"))
                    "/image.png")))

(ert-deftest efrit-live-web-links-are-shown-on-request ()
  (live-web-tests--with-site
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/article") :links t)
                  (format "Other <%s>" (live-web-tests--page "/other?a=1&b=2"))
                  "Found <https://example.org/a?b=1>")))

(ert-deftest efrit-live-web-letters-arrive-in-any-encoding ()
  (live-web-tests--with-site
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/latin")) "Grüße")
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/untold"))
                  "Grüße\nalle")
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/zipped"))
                  "(200, application/json, 14 bytes)\n\n{\"größe\": 3}")))

(ert-deftest efrit-live-web-a-binary-body-is-described ()
  (live-web-tests--with-site
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/binary"))
                  "(200, image/png, 10 bytes)" "It is not text")))

(ert-deftest efrit-live-web-a-page-that-cannot-be-laid-out-comes-as-html ()
  (live-web-tests--with-site
   (let ((efrit-web-render-seconds 0))
     (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/article"))
                    "The page could not be laid out (late); here is the HTML." "<h1>Cats</h1>"))
   (should-not (directory-files temporary-file-directory nil "\\`efrit-page-"))))

;;; Sites

(ert-deftest efrit-live-web-redirects-are-followed-within-the-site-alone ()
  (live-web-tests--with-site
   (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/leads?/untold"))
                  (live-web-tests--page "/untold (200"))
   (let ((elsewhere (replace-regexp-in-string "127\\.0\\.0\\.1" "localhost"
                                              (live-web-tests--page "/untold"))))
     (live-test-has (live-test-text "fetch_url"
                                    :url (live-web-tests--page (concat "/leads?" elsewhere)))
                    "redirects to another site: " elsewhere "fetch_url gets it")
     (live-test-lacks (live-test-text "fetch_url" :url (live-web-tests--page "/headers"))
                      "\"/untold\", \"/untold\""))
   (live-test-has (live-test-refused "fetch_url" :url (live-web-tests--page "/loop"))
                  "more than 5 redirects")
   (live-test-has (live-test-refused "fetch_url"
                                     :url (live-web-tests--page "/leads?file:///etc/passwd"))
                  "file:///etc/passwd is not an http or https address")))

(ert-deftest efrit-live-web-an-error-status-comes-with-its-page ()
  (live-web-tests--with-site
   (live-test-has (live-test-refused "fetch_url" :url (live-web-tests--page "/nowhere"))
                  "(404, text/html, " "Nothing is here.")
   (live-test-has (live-test-refused "fetch_url" :url (live-web-tests--page "/private"))
                  "(401, text/plain, " "Who are you?"))
  (live-test-in nil
    (live-test-has (live-test-refused "fetch_url" :url "http://127.0.0.1:1/")
                   "the host refused the connection")))

(ert-deftest efrit-live-web-a-body-without-end-is-cut ()
  (live-web-tests--with-site
   (let ((efrit-fetch-most-bytes 50000))
     (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/endless"))
                    "and so on\n" "[Cut after 50000 bytes.]"))
   (let ((efrit-fetch-seconds 1))
     (live-test-has (live-test-text "fetch_url" :url (live-web-tests--page "/slow"))
                    "begun\n[Cut after 1 seconds.]")
     (live-test-has (live-test-refused "fetch_url" :url (live-web-tests--page "/mute"))
                    "did not answer within 1 seconds"))))

(ert-deftest efrit-live-web-a-fetch-can-be-stopped ()
  (live-web-tests--with-site
   (let* ((result nil)
          (call (live-test-begin "fetch_url" (list :url (live-web-tests--page "/mute"))
                                 (lambda (given) (setq result given)))))
     (efrit-tool-stop call)
     (should (efrit-test-wait-until (lambda () result)))
     (should (equal "The person stopped it." (plist-get result :text))))))

(ert-deftest efrit-live-web-no-cookie-and-no-credential-goes-along ()
  (live-web-tests--with-site
   (with-temp-file (expand-file-name ".netrc" (getenv "HOME"))
     (insert "machine 127.0.0.1 login me password hunter2\n"))
   (with-temp-file (expand-file-name ".curlrc" (getenv "HOME"))
     (insert "header = \"X-Mine: hunter2\"\nnetrc\n"))
   (dotimes (_ 2)
     (let ((said (live-test-text "fetch_url" :url (live-web-tests--page "/headers"))))
       (live-test-has said "efrit")
       (live-test-lacks said "Cookie\":" "Authorization" "hunter2" "X-Mine")))
   (delete-file (expand-file-name ".netrc" (getenv "HOME")))
   (delete-file (expand-file-name ".curlrc" (getenv "HOME")))))

(ert-deftest efrit-live-web-only-plain-addresses-are-taken ()
  (live-test-in nil
    (dolist (url '("file:///etc/passwd" "ftp://example.org/" "example.org" "-o/x" "http://"
                   "http://me:secret@example.org/" "http://example.org/\nurl = x"
                   "http://example.org/ x"))
      (ert-info (url)
        (live-test-refused "fetch_url" :url url)))
    (live-test-has (live-test-refused "web_search" :query " ") "Give words")
    (let ((efrit-web-search-url "http://example.org/"))
      (live-test-has (live-test-refused "web_search" :query "x") "has no %s for the query"))))

(provide 'live-tools-web-tests)
;;; live-tools-web-tests.el ends here
