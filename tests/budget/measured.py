"""Short texts of many kinds, with what Claude's tokenizer makes of them.

Written for this test, in no corpus. The counts were measured with `tests.benchmarks.tokenizers_real`.
"""

# ruff: noqa: E501, RUF001
from __future__ import annotations

MEASURED: dict[str, tuple[int, str]] = {
    "english": (
        123,
        """\
The sidecar keeps a ledger of everything that enters the window. When a result is
delivered, its size is estimated and charged to the tier it belongs to; when the next turn
could pass the total, older results shrink to a line each, and the model is told how to bring
any of them back. Nothing is thrown away: what left the window is still on disk, under a
handle, and can be read again page by page. The reserve for the reply is never lent out, so
that the answer always has room, however long the session has been going on already.
""",
    ),
    "python": (
        125,
        '''\
def merged(left: list[Span], right: list[Span]) -> Iterator[Span]:
    """Two sorted lists of spans as one, touching spans joined."""
    waiting: Span | None = None
    for span in heapq.merge(left, right, key=lambda each: each.start):
        if waiting is None:
            waiting = span
        elif span.start <= waiting.end:
            waiting = Span(waiting.start, max(waiting.end, span.end))
        else:
            yield waiting
            waiting = span
    if waiting is not None:
        yield waiting
''',
    ),
    "elisp": (
        177,
        """\
;;; -*- lexical-binding: t; -*-
(defun efrit-demo--insert-row (row)
  "Insert ROW into the current buffer, its columns aligned."
  (let ((inhibit-read-only t)
        (start (point)))
    (dolist (cell row)
      (insert (propertize (format "%-12s" cell)
                          'face (if (string-empty-p cell) 'shadow 'default))))
    (insert "\\n")
    (put-text-property start (point) 'efrit-row row)
    (when (> (line-number-at-pos) efrit-demo-max-rows)
      (goto-char (point-min))
      (delete-region (point) (progn (forward-line 1) (point))))))
""",
    ),
    "c": (
        143,
        """\
static int
ring_push (struct ring *r, const char *bytes, size_t length)
{
  size_t room = r->capacity - (r->tail - r->head);

  if (length > room)
    return -ENOSPC;
  for (size_t i = 0; i < length; i++)
    r->slots[(r->tail + i) & r->mask] = bytes[i];
  /* The tail moves last, so that a reader never sees half a message.  */
  atomic_store_explicit (&r->tail, r->tail + length, memory_order_release);
  return 0;
}
""",
    ),
    "json indented": (
        125,
        """\
{
  "session": "b1946ac9",
  "tiers": [
    {"name": "system", "limit": 8000, "used": 5120},
    {"name": "history", "limit": 12000, "used": 11873},
    {"name": "results", "limit": 40000, "used": 17764}
  ],
  "calibration": {
    "model": "example-model-4",
    "factor": 1.043,
    "recent_error": 0.021
  },
  "alerts": [],
  "resumed": false
}
""",
    ),
    "json compact": (
        146,
        '{"files":[{"path":"src/ledger/open.py","size":4213,"modified":"2024-03-07T11:42:09Z"},{"path":"src/ledger/pages.py","size":988,"modified":"2024-03-05T08:01:55Z"},{"path":"docs/wire.md","size":15200,"modified":"2023-12-24T19:30:00Z"},{"path":"tests/test_open.py","size":2750,"modified":"2024-03-07T11:44:31Z"}],"total":2847,"returned":4,"continuation_token":"r7:100"}',
    ),
    "path list": (
        137,
        """\
lisp/progmodes/python-shell.el
lisp/progmodes/ruby-mode-tests.el
lisp/textmodes/table-layout.el
src/alloc.c
src/xdisp_cursor.c
test/src/buffer-tests.el
test/lisp/emacs-lisp/bytecomp-resources/foo-inlinable.el
doc/lispref/symbols.texi
admin/unidata/blocks.awk
java/org/gnu/emacs/EmacsActivity.java
etc/images/icons/hicolor/scalable/apps/emacs.svg
""",
    ),
    "grep": (
        178,
        """\
src/window.c:1204:  if (NILP (w->next) && NILP (w->prev))
src/window.c:2291:      Lisp_Object parent = w->parent;
src/frame.c:873:  f->output_data.nothing = 0;
src/xterm.c:10877:\t  x_wait_for_event (f, MapNotify);
lisp/window.el:4410:      (set-window-parameter window 'quit-restore nil)
lisp/window.el:7719:(defun display-buffer-use-some-window (buffer alist)
test/lisp/window-tests.el:61:  (should (eq (window-buffer window) (current-buffer)))
""",
    ),
    "git log": (
        179,
        """\
commit 5f2b8c1d9e0a7346b1c2d3e4f5a6978812345678
Author: Marta Keller <marta@example.org>
Date:   Tue Mar 5 18:22:41 2024 +0100

    Refuse a page token of another session

    The token named the handle only, so a client that mixed up two
    sessions was given the wrong page. It now carries the session too.

commit 0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b
Author: Tom Okafor <tom@example.org>
Date:   Mon Mar 4 09:07:13 2024 +0100

    Count the footer against the allowance
""",
    ),
    "git diff": (
        188,
        """\
diff --git a/src/pages.py b/src/pages.py
index 3b18e51..a0f9c2d 100644
--- a/src/pages.py
+++ b/src/pages.py
@@ -41,9 +41,12 @@ def page(result: Stored, start: int, room: int) -> Page:
     lines = result.lines[start:]
-    taken = takewhile(lambda line: fits(line, room), lines)
-    return Page(list(taken), None)
+    taken: list[str] = []
+    for line in lines:
+        if not fits(line, room - used(taken)):
+            break
+        taken.append(line)
+    return Page(taken, token(result, start + len(taken)))
""",
    ),
    "git blame": (
        181,
        """\
8c1f02ab (Marta Keller 2023-11-02 14:05:33 +0100  88)     if handle is None:
8c1f02ab (Marta Keller 2023-11-02 14:05:33 +0100  89)         return self.listing(room)
77d0e9b4 (Tom Okafor   2024-01-19 10:41:07 +0000  90)     found = self.results.get(handle)
77d0e9b4 (Tom Okafor   2024-01-19 10:41:07 +0000  91)     if found is None:
e3a95c60 (Ines Duarte  2024-02-27 22:16:58 +0200  92)         raise UnknownHandle(handle)
""",
    ),
    "log": (
        172,
        """\
2024-03-07 11:42:09,317 INFO  [wire.dispatch] tools/call list_files took 41 ms (req 1187)
2024-03-07 11:42:09,562 DEBUG [results.store] r42 stored, 88210 bytes, sha 9f86d081884c
2024-03-07 11:42:11,004 WARN  [budget.ledger] results tier at 38914 of 40000
2024-03-07 11:42:11,730 INFO  [worklog.compact] epoch 6: 14 entries compressed, 21377 tokens freed
2024-03-07 11:42:12,118 ERROR [wire.dispatch] tools/call read_file: no such file: lib/old.py
""",
    ),
    "csv": (
        155,
        """\
id,name,joined,amount,ratio,active
1001,Keller,2021-04-17,2310.50,0.2375,true
1002,Okafor,2019-11-30,87.25,0.0119,false
1003,Duarte,2022-08-05,15999.00,0.8452,true
1004,Lindqvist,2020-02-29,440.10,0.1003,true
1005,Nakamura,2023-06-21,7215.75,0.5560,false
1006,Petrova,2018-09-14,63.00,0.0047,true
""",
    ),
    "base64": (
        143,
        "q83vASNFZ4mrze8BI0VniavN7/7cuph2VDIQDwAx8k3Zp1bKcJtEoWy5vGdHs2LmXiQzTnUa9rB4eCjOfPlV0kM6w7YgIh1DxNA3RqSyZ8W5tKbFuJpL2oEvHcGdPzQi0mXTn7Vu4sYaBr6lCwkOeMfIgD1AhjN9ER3qUyxS8ZtK5WbvFpJGoLdHcz2",
    ),
    "hex": (
        121,
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a083e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6",
    ),
    "minified": (
        158,
        '!function(e,t){"object"==typeof exports?module.exports=t():e.pager=t()}(this,function(){var n=100,r={};function o(e){return r[e]||(r[e]={items:[],next:0})}return{add:function(e,t){var i=o(e);i.items.push(t);if(i.items.length>n)i.items.shift()},page:function(e,t){var i=o(e),a=i.items.slice(t,t+10);return{items:a,next:t+10<i.items.length?t+10:null}}}});',
    ),
    "markdown": (
        133,
        """\
# Paging

A result that does not fit is *stored*, and its first page delivered:

1. `list_files` returns at most **100** entries;
2. the footer names the token, e.g. `r7:100`;
3. pass it as `continuation_token` to go on.

| tool | page | stored |
|---|---|---|
| `list_files` | 100 | yes |
| `read_file` | 2,000 lines | what it served |

See [the wire](wire.md#pages) for the exact shape.
""",
    ),
    "german": (
        129,
        """\
Ein Ergebnis, das nicht mehr in das Fenster passt, wird gespeichert und seitenweise ausgeliefert.
Die Reihenfolge der Seiten ändert sich nicht, auch wenn währenddessen Dateien geändert werden.
Für jede Anfrage gibt es eine Obergrenze; sie richtet sich danach, was im Fenster noch übrig ist.
Wer ältere Ergebnisse wieder braucht, fragt mit dem Kürzel danach und bekommt sie unverändert zurück.
""",
    ),
    "russian": (
        131,
        """\
Результат, который не помещается в окно, сохраняется и выдаётся по страницам. Порядок страниц
не меняется, даже если файлы за это время изменились. Для каждого запроса есть предел: он зависит
от того, сколько места ещё осталось. Старые результаты можно запросить снова по их номеру.
""",
    ),
    "greek": (
        202,
        """\
Ένα αποτέλεσμα που δεν χωράει στο παράθυρο αποθηκεύεται και παραδίδεται σε σελίδες. Η σειρά των
σελίδων δεν αλλάζει, ακόμη και αν τα αρχεία αλλάξουν στο μεταξύ. Κάθε αίτημα έχει ένα όριο.
""",
    ),
    "chinese": (
        109,
        """\
放不进窗口的结果会被保存，并按页返回。即使文件在此期间发生变化，页面的顺序也不会改变。
每个请求都有一个上限，取决于窗口中还剩下多少空间。需要旧的结果时，可以用它的编号再次读取。
系统提示、历史记录、工具结果和用户消息各有自己的预算，回复的空间始终保留。
""",
    ),
    "japanese": (
        115,
        """\
ウィンドウに入らない結果は保存され、ページごとに返されます。その間にファイルが変更されても、
ページの順序は変わりません。各リクエストには上限があり、残りの容量によって決まります。
古い結果が必要な場合は、その番号を使ってもう一度読み込むことができます。
""",
    ),
    "korean": (
        125,
        """\
창에 들어가지 않는 결과는 저장되고 페이지별로 전달됩니다. 그 사이에 파일이 변경되어도
페이지의 순서는 바뀌지 않습니다. 각 요청에는 남은 공간에 따라 결정되는 한도가 있습니다.
오래된 결과가 필요하면 번호를 사용하여 다시 읽을 수 있습니다.
""",
    ),
    "arabic": (
        171,
        """\
النتيجة التي لا تتسع لها النافذة تُحفظ وتُعاد صفحة بعد صفحة. لا يتغير ترتيب الصفحات حتى
إذا تغيرت الملفات في هذه الأثناء. لكل طلب حد أقصى يعتمد على المساحة المتبقية في النافذة.
""",
    ),
    "hebrew": (
        156,
        """\
תוצאה שאינה נכנסת לחלון נשמרת ונמסרת עמוד אחר עמוד. סדר העמודים אינו משתנה גם אם הקבצים
משתנים בינתיים. לכל בקשה יש גבול, והוא תלוי במקום שנותר בחלון. אפשר לקרוא שוב תוצאות ישנות.
""",
    ),
    "thai": (
        285,
        """\
ผลลัพธ์ที่ไม่พอดีกับหน้าต่างจะถูกเก็บไว้และส่งกลับทีละหน้า ลำดับของหน้าจะไม่เปลี่ยนแม้ว่าไฟล์จะเปลี่ยนไป
แต่ละคำขอมีขีดจำกัดขึ้นอยู่กับพื้นที่ที่เหลืออยู่
""",
    ),
    "hindi": (
        176,
        """\
जो परिणाम विंडो में नहीं समाता वह सहेजा जाता है और पृष्ठों में दिया जाता है। इस बीच फ़ाइलें बदल जाने पर भी
पृष्ठों का क्रम नहीं बदलता। हर अनुरोध की एक सीमा होती है।
""",
    ),
}
