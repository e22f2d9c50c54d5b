;;; budget-view-tests.el --- The view of the budget  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 the efrit-budget authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Against a real sidecar, a scripted model and real sessions.

;;; Code:

(require 'scripted)
(require 'efrit-budget)
(require 'text-property-search)

(defconst efrit-budget-tests--script "
[[reply]]
thinking = \"Look first.\"
text = \"I will look.\"
tool = [{ name = \"read_file\", input = { path = \"one.txt\" } }]

[[reply]]
tool = [{ name = \"read_file\", input = { path = \"two.txt\" } }]

[[reply]]
text = \"Seen.\"

[[reply]]
text = \"Seen again.\"
"
  "A model that reads two files, and then says something twice.")

(defmacro efrit-budget-tests--with-view (loop &rest body)
  "Run BODY in the budget view of LOOP, which has two results."
  (declare (indent 1))
  `(efrit-test-with-project
       (list (cons "one.txt" (apply #'concat (make-list 100 "the first result\n")))
             (cons "two.txt" "the second result\n"))
     (efrit-test-with-model efrit-budget-tests--script
       (let ((,loop (efrit-test-loop)))
         (efrit-test-finish ,loop "Look at it.")
         (save-window-excursion
           (with-current-buffer (efrit-budget ,loop)
             (unwind-protect
                 (progn (efrit-budget-tests--await "r2")
                        ,@body)
               (kill-buffer (current-buffer)))))))))

(defun efrit-budget-tests--await (regexp)
  "Wait until REGEXP is in this buffer."
  (should (efrit-test-wait-until
           (lambda () (string-match-p regexp (buffer-string))))))

(defun efrit-budget-tests--go (item)
  "Move to the line of ITEM, as its column has it."
  (goto-char (point-min))
  (should (re-search-forward (format "^ +[0-9,→]+ +%s\\_>" item) nil t))
  (beginning-of-line))

(defun efrit-budget-tests--tokens (text)
  "Return the numbers in TEXT, of the first column: in full, and in the window."
  (let ((numbers (mapcar (lambda (number)
                           (string-to-number (string-replace "," "" number)))
                         (split-string text "→"))))
    (list (car numbers) (car (last numbers)))))

(defun efrit-budget-tests--head ()
  "Return the text above the list, without properties."
  (substring-no-properties (overlay-get efrit-budget-print--overlay 'before-string)))

(defmacro efrit-budget-tests--in-window (columns lines &rest body)
  "Run BODY with the view laid out for a window of COLUMNS and LINES."
  (declare (indent 2))
  `(cl-letf (((symbol-function 'efrit-budget-print-size) (lambda () (cons ,columns ,lines))))
     (efrit-budget-print-fit (get-buffer-window))
     ,@body))

(defun efrit-budget-tests--state (item)
  "Return the state in the line of ITEM."
  (save-excursion
    (efrit-budget-tests--go item)
    (aref (tabulated-list-get-entry) 4)))

(defun efrit-budget-tests--await-state (item state)
  "Wait until the line of ITEM has STATE."
  (efrit-test-wait-until (lambda () (equal state (efrit-budget-tests--state item))))
  (should (equal state (efrit-budget-tests--state item))))

(ert-deftest efrit-budget-lists-what-is-in-the-window ()
  "The system text, what was said and every result have a line with tokens."
  (efrit-budget-tests--with-view loop
    (dolist (item '("sys" "t1" "t3" "r1" "r2"))
      (efrit-budget-tests--go item)
      (should (< 0 (string-to-number (aref (tabulated-list-get-entry) 0)))))
    (efrit-budget-tests--go "r1")
    (should (equal "read_file" (substring-no-properties (aref (tabulated-list-get-entry) 2))))
    (should (string-match-p "Look at it" (buffer-string)))
    (should (string-match-p "one\\.txt" (buffer-string)))))

(ert-deftest efrit-budget-tokens-of-the-list-are-those-of-the-bars ()
  "The lines sum up to what the prompt has by the ledger.
That counts every result anew with each reply, and a line keeps its first count."
  (efrit-budget-tests--with-view loop
    (let ((sum (apply #'+ (mapcar (lambda (entry)
                                    (cadr (efrit-budget-tests--tokens (aref (cadr entry) 0))))
                                  tabulated-list-entries)))
          (used (plist-get (plist-get (efrit-test-session-status (efrit-loop-id loop)) :budget) :used)))
      (should (< (abs (- used sum)) (/ used 50))))))

(ert-deftest efrit-budget-shows-tiers-as-bars-and-the-error-of-the-estimate ()
  "Above the list stand a bar for each tier, and how far off the estimate was."
  (efrit-budget-tests--with-view loop
    (let ((shown (efrit-budget-tests--head)))
      (dolist (tier '("system" "history" "tool results" "requests" "whole prompt"))
        (should (string-match-p (concat tier " +▕[█▏▎▍▌▋▊▉ ]*▏ +[0-9.kM]+ / [0-9]+k") shown)))
      (should (string-match-p "The estimate was [0-9.]+% off real usage lately" shown)))))

(ert-deftest efrit-budget-pins-and-unpins-by-one-key ()
  "A pinned result says so, until it is let go again."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-pin)
    (efrit-budget-tests--await-state "r1" "pinned")
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-pin)
    (efrit-budget-tests--await-state "r1" "full")))

(ert-deftest efrit-budget-drops-restores-and-undoes ()
  "Each change can be undone, the latest first, a pin that went with it, too."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-pin)
    (efrit-budget-tests--await-state "r1" "pinned")
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-drop)
    (efrit-budget-tests--await-state "r1" "compressed")
    (efrit-budget-view-undo)
    (efrit-budget-tests--await-state "r1" "pinned")
    (efrit-budget-view-undo)
    (efrit-budget-tests--await-state "r1" "full")
    (should-error (efrit-budget-view-undo) :type 'user-error)))

(ert-deftest efrit-budget-a-dropped-result-is-sent-as-its-line ()
  "A dropped result is a line in the next request; a restored one is whole."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-drop)
    (efrit-budget-tests--await-state "r1" "compressed")
    (efrit-test-finish loop "And now?")
    (let ((sent (efrit-json-text (car (last (efrit-test-sent))))))
      (should (string-match-p "r1: [0-9]+ tokens, shrunk" sent))
      (should-not (string-match-p "r2: [0-9]+ tokens, shrunk" sent)))
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-restore)
    (efrit-budget-tests--await-state "r1" "full")))

(ert-deftest efrit-budget-an-evicted-result-comes-back ()
  "A result that was evicted with its turn is restored in full, as its row says."
  (efrit-test-with-project
      (mapcar (lambda (n) (cons (format "f%d.txt" n)
                                (mapconcat (lambda (i) (format "line %d of file %d\n" i n))
                                           (number-sequence 1 60) "")))
              (number-sequence 1 30))
    (efrit-test-with-model "
[[reply]]
repeat = 30
text = \"File {n} comes next, and I say so in some words that take room in the history.\"
tool = [{ name = \"read_file\", input = { path = \"f{n}.txt\" } }]

[[reply]]
text = \"Read.\"

[[reply]]
text = \"Back.\"
"
      (let* ((efrit-budget-total-target 20000)
             (efrit-budget-history-max 900)
             (loop (efrit-test-loop)))
        (efrit-test-finish loop "Read them all.")
        (save-window-excursion
          (with-current-buffer (efrit-budget loop)
            (efrit-budget-tests--await "r30")
            (should (equal "evicted" (efrit-budget-tests--state "r1")))
            (efrit-budget-tests--go "r1")
            (efrit-budget-view-restore)
            (efrit-budget-tests--await-state "r1" "full")
            (efrit-test-finish loop "And the first again.")
            (should (string-match-p "line 60 of file 1\\\\n"
                                    (efrit-json-text (car (last (efrit-test-sent))))))
            (kill-buffer)))))))

(ert-deftest efrit-budget-only-results-can-be-changed ()
  "On what was said, and on what is full already, the keys say so."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "t1")
    (should-error (efrit-budget-view-drop) :type 'user-error)
    (efrit-budget-tests--go "r1")
    (should-error (efrit-budget-view-restore) :type 'user-error)
    (goto-char (point-max))
    (should-error (efrit-budget-view-pin) :type 'user-error)))

(ert-deftest efrit-budget-commands-know-their-buffers ()
  "Called by name in another buffer, each says so and changes nothing."
  (with-temp-buffer
    (insert "mine")
    (dolist (command '(efrit-budget-view-refresh efrit-budget-view-show
                       efrit-budget-view-pin efrit-budget-view-drop
                       efrit-budget-view-restore efrit-budget-view-undo))
      (should-error (call-interactively command) :type 'user-error))
    (should (equal "mine" (buffer-string)))))

(ert-deftest efrit-budget-a-shrunken-result-shows-both-its-costs ()
  "A compressed result has its tokens in full and in the window, and sorts by these."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "r1")
    (efrit-budget-view-drop)
    (efrit-budget-tests--await-state "r1" "compressed")
    (efrit-budget-tests--go "r1")
    (pcase-let ((`(,full ,now)
                 (efrit-budget-tests--tokens (aref (tabulated-list-get-entry) 0))))
      (should (< 0 now full))
      (should (= now (plist-get (efrit-budget-view--row) :now))))))

(ert-deftest efrit-budget-opens-on-an-item ()
  "The first key acts on the first item, which is in sight."
  (efrit-budget-tests--with-view loop
    (let ((first (caar tabulated-list-entries)))
      (should (equal first (plist-get (efrit-budget-view--row) :id)))
      (with-selected-window (get-buffer-window)
        (should (equal first (plist-get (efrit-budget-view--row) :id)))))))

(ert-deftest efrit-budget-a-low-window-shows-an-item ()
  "If the bars would fill a window, it begins below them."
  (efrit-budget-tests--with-view loop
    (split-window nil 5)
    (should (= 5 (window-height)))
    (efrit-budget-print-fit (selected-window))
    (should (< (point-min) (window-start)))
    (should (= (window-start) (save-excursion (goto-char (window-point))
                                              (line-beginning-position))))))

(ert-deftest efrit-budget-bars-fit-narrow-windows ()
  "No line above the list is longer than the window, whatever its width."
  (efrit-budget-tests--with-view loop
    (dolist (columns '(59 79 120 200))
      (efrit-budget-tests--in-window columns 40
        (dolist (key '("f" "t" "i"))
          (efrit-budget-tests--press key)
          (dolist (line (split-string (concat (efrit-budget-tests--head) (buffer-string)) "\n"))
            (ert-info ((format "%d columns: %s" columns line))
              (should (>= columns (string-width line))))))))))

(defun efrit-budget-tests--press (key)
  "Run the command of KEY at point."
  (call-interactively (key-binding (kbd key) t)))

(ert-deftest efrit-budget-sums-up-by-file-and-by-tool ()
  "The largest comes first, the shares make up the whole, and Return lists the items."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--press "f")
    (let ((names (mapcar (lambda (entry) (aref (cadr entry) 4)) tabulated-list-entries))
          (shares (mapcar (lambda (entry) (string-to-number (aref (cadr entry) 1)))
                          tabulated-list-entries)))
      (should (equal "system text and tools" (car names)))
      (should (equal (sort (copy-sequence names) #'string<)
                     '("one.txt" "system text and tools" "the model's replies" "two.txt"
                       "your messages")))
      (should (< 97 (apply #'+ shares) 103))
      (should (equal shares (sort (copy-sequence shares) #'>))))
    (goto-char (point-min))
    (should (re-search-forward "^ +[0-9,]+ +[0-9]+% ▕[^▏]*.*▏ +1 one\\.txt$" nil t))
    (efrit-budget-tests--press "RET")
    (should (equal '("r1") (mapcar (lambda (entry) (aref (cadr entry) 1)) tabulated-list-entries)))
    (should (string-search "Only one.txt; i lists everything" (efrit-budget-tests--head)))
    (should (equal "r1" (plist-get (efrit-budget-view--row) :item)))
    (efrit-budget-tests--press "i")
    (should (< 4 (length tabulated-list-entries)))
    (efrit-budget-tests--press "t")
    (let ((names (mapcar (lambda (entry) (aref (cadr entry) 4)) tabulated-list-entries)))
      (should (equal (sort (copy-sequence names) #'string<)
                     '("read_file" "reply" "request" "system"))))
    (goto-char (point-min))
    (should (re-search-forward "▏ +2 read_file$" nil t))
    (efrit-budget-tests--press "RET")
    (should (equal '("r1" "r2") (mapcar (lambda (entry) (aref (cadr entry) 1))
                                        tabulated-list-entries)))))

(ert-deftest efrit-budget-groups-count-what-is-in-the-window-alone ()
  "Results of several files are a group of their own; what was evicted has no share."
  (let ((groups (efrit-budget-rows-groups
                 `((:kind result :tool "read_file" :now 600 :arguments (:path "./a.el"))
                   (:kind result :tool "edit_file" :now 100 :arguments (:path "a.el"))
                   (:kind result :tool "multi_edit" :now 100
                    :arguments (:edits [(:path "a.el") (:path "b.el") (:path "a.el")]))
                   (:kind result :tool "run_command" :now 200 :arguments (:command "make"))
                   (:kind result :tool "read_file" :now 0 :arguments (:path "gone.el")))
                 'file)))
    (should (equal '(("a.el" 700 2 0.7) ("results about no file" 200 1 0.2) ("a.el, b.el" 100 1 0.1))
                   (mapcar (lambda (group)
                             (mapcar (lambda (name) (plist-get group name))
                                     '(:name :now :count :share)))
                           groups)))))

(ert-deftest efrit-budget-shows-its-keys-and-what-fills-the-window ()
  "Each key that stands above the list does what it says, also in a small window."
  (efrit-budget-tests--with-view loop
    (dolist (size '((80 . 40) (59 . 12)))
      (efrit-budget-tests--in-window (car size) (cdr size)
        (let ((head (efrit-budget-tests--head)))
          (should (string-match-p "^  By file: system text and tools [0-9]k [0-9]+%" head))
          (should (string-match-p "^  By tool: system [0-9]k [0-9]+%" head))
          (should (eq (> (cdr size) 22) (and (string-search "whole prompt" head) t)))
          (pcase-dolist (`(,key ,does) efrit-budget-view--keys)
            (should (string-search (concat key " " does) head))
            (should (commandp (key-binding (kbd key) t)))))))
    (should (eq 'previous-line (key-binding (kbd "p") t)))))

(ert-deftest efrit-budget-header-is-that-of-the-session ()
  "The same line stands above the session and above its budget."
  (efrit-budget-tests--with-view loop
    (should (equal (efrit-show-header)
                   (with-current-buffer (efrit-session-view-buffer loop)
                     (efrit-show-header))))))

(ert-deftest efrit-budget-is-refreshed-now-and-then-and-only-in-sight ()
  "Many events are one refresh, and none while nobody sees it."
  (efrit-budget-tests--with-view loop
    (let ((efrit-budget-view-delay 3600)
          (efrit-budget-view-interval 3600)
          (asked 0))
      (efrit-budget-view--stop-timer)
      (setq efrit-budget-view--refresh-time (float-time))
      (cl-letf (((symbol-function 'efrit-budget-view-refresh)
                 (lambda () (cl-incf asked) (setq efrit-budget-view--refresh-time (float-time)))))
        (dotimes (_ 30)
          (efrit-budget-view--event loop '(price 1)))
        (should (= 0 asked))
        (timer-event-handler efrit-budget-view--timer)
        (should (= 1 asked))
        (should-not efrit-budget-view--timer)
        (efrit-budget-view--event loop '(price 1))
        (should efrit-budget-view--timer)
        (set-window-buffer (get-buffer-window) "*scratch*")
        (timer-event-handler efrit-budget-view--timer)
        (should (= 1 asked))))))

(ert-deftest efrit-budget-lines-cost-less-than-those-of-any-table ()
  "A list of hundreds of items is shown anew at each event, and leaves less garbage."
  (mapc #'byte-compile '(efrit-budget-print-line efrit-budget-print--format
                         efrit-budget-rows-face))
  (with-temp-buffer
    (efrit-budget-view-mode)
    (let* ((inhibit-read-only t)
           (columns ["1,234→41" "r1" "read_file" "12" "compressed" "naïve.txt"])
           (allocated (lambda (printer)
                        (erase-buffer)
                        (let ((before (memory-use-counts)))
                          (dotimes (n 500)
                            (funcall printer n columns))
                          (apply #'+ (cl-mapcar #'- (memory-use-counts) before)))))
           (ours (funcall allocated #'efrit-budget-print-line))
           (theirs (funcall allocated #'tabulated-list-print-entry)))
      (should (< ours theirs)))))

(ert-deftest efrit-budget-lines-stand-in-their-columns ()
  "Each cell begins where the header says, is cut where it must be, and is named."
  (with-temp-buffer
    (efrit-budget-view-mode)
    (let ((inhibit-read-only t))
      (efrit-budget-print-line "id" ["1,234→41" "r1" "a_tool_with_a_long_name" "12" "full"
                                     "what it is about"]))
    (should (equal (buffer-string)
                   "      1,234→41 r1       a_tool_with_a_lo    12 full        what it is about\n"))
    (goto-char (point-min))
    (should (equal "id" (tabulated-list-get-id)))
    (dolist (name '("Tokens" "Item" "Tool" "Age" "State" "About"))
      (should (text-property-search-forward 'tabulated-list-column-name name t)))
    (goto-char (point-min))
    (search-forward "a_tool")
    (should (eq 'efrit-tool (get-text-property (1- (point)) 'face)))))

(ert-deftest efrit-budget-a-text-of-several-lines-is-shown-in-one ()
  (should (equal "The cause: <U+202E>three"
                 (aref (efrit-budget-rows-columns
                        '(:item "t1" :tool "reply" :state "full" :tokens 5 :now 5
                                :about "The cause:\n\n\u202ethree")
                        nil)
                       5))))

(ert-deftest efrit-budget-opens-the-stored-original ()
  "Return on a result shows its stored text, on what was said all of that."
  (efrit-budget-tests--with-view loop
    (pcase-dolist (`(,item ,text) '(("r2" "the second result") ("t1" "Uses read_file")
                                    ("sys" "read_file") ("t3" "Seen")))
      (let ((view (current-buffer)))
        (efrit-budget-tests--go item)
        (with-current-buffer (efrit-budget-view-show)
          (efrit-budget-tests--await text)
          (kill-buffer))
        (set-buffer view)))))

(ert-deftest efrit-budget-follows-its-session-and-leaves-point-alone ()
  "An event of the session refreshes the view; point stays on its item."
  (efrit-budget-tests--with-view loop
    (efrit-budget-tests--go "r1")
    (move-to-column 9)
    (let ((window (selected-window)))
      (set-window-point window (point))
      (efrit-test-finish loop "And now?")
      (efrit-budget-tests--await "And now")
      (with-selected-window window
        (should (equal "r1" (substring-no-properties (aref (tabulated-list-get-entry) 1))))
        (should (= 9 (current-column)))))))

(ert-deftest efrit-budget-sorts-by-a-column ()
  "By tokens, the numbers stand in order, not their digits."
  (efrit-budget-tests--with-view loop
    (tabulated-list-sort 0)
    (let (tokens)
      (goto-char (point-min))
      (while (not (eobp))
        (when (tabulated-list-get-entry)
          (push (cadr (efrit-budget-tests--tokens (aref (tabulated-list-get-entry) 0)))
                tokens))
        (forward-line))
      (setq tokens (nreverse tokens))
      (should (or (equal tokens (sort (copy-sequence tokens) #'<))
                  (equal tokens (sort (copy-sequence tokens) #'>)))))))

(ert-deftest efrit-budget-header-counts-results-that-the-model-has-not-seen ()
  "While a question waits, header, budget view and the sidecar tell the same tokens."
  (efrit-test-with-project
      (list (cons "one.txt" (apply #'concat (make-list 900 "the first result\n"))))
    (efrit-test-with-model "
[[reply]]
tool = [{ name = \"read_file\", input = { path = \"one.txt\" } },
        { name = \"run_command\", input = { command = \"true\" } }]
[[reply]]
text = \"Seen.\"
"
      (let ((loop (efrit-test-loop)))
        (with-current-buffer (efrit-session-view-buffer loop)
          (efrit-do-say loop "Look.")
          (should (efrit-test-wait-until (lambda () (efrit-run-pending-use loop))))
          (should (efrit-test-wait-until
                   (lambda () (memq 'done (mapcar #'efrit-use-state (efrit-loop-run loop))))))
          (let ((used (plist-get (plist-get (efrit-test-session-status (efrit-loop-id loop)) :budget)
                                 :used)))
            (should (efrit-test-wait-until
                     (lambda () (string-search (format "%s/70k" (efrit-show-tokens used))
                                               (efrit-show-header)))))
            (save-window-excursion
              (with-current-buffer (efrit-budget loop)
                (efrit-budget-tests--await "r1")
                (should (string-search (format "%s/70k" (efrit-show-tokens used))
                                       (efrit-show-header)))
                (kill-buffer))))
          (efrit-run-answer loop (efrit-run-pending-use loop) 'deny)
          (efrit-test-rest loop)
          (let ((kill-buffer-query-functions nil))
            (kill-buffer)))))))

(provide 'budget-view-tests)
;;; budget-view-tests.el ends here
