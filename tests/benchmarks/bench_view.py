"""The view: what a long reply and a long session cost the Emacs that shows them."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.benchmarks.played import Play, play
from tests.benchmarks.session_repository import repository
from tests.benchmarks.table import Row
from tests.demo.running import endpoint
from tests.emacs.terminal import settings

SCRIPT = Path(__file__).parent / "elisp" / "bench-view.el"
ROUNDS = 3
CHARACTERS = 200_000
EXCHANGE = """## Step {n}: what changes

The **loop** reads `README.md` first, then *each* file of `src/`; see [the page](https://example.org)
and efrit_budget/app.py:12. It is written so that nothing moves while it is read, and so that what
stands there can be found again.

- one item, with `code` in it
- another, **bold** one, which is long enough to be broken in a narrow window, as many items are

| tool | calls | tokens | remark |
|:-----|------:|-------:|--------|
| `read_file` | {n} | 1,234 | the file as it is on the disk |
| `search_content` | 12 | 98 | lines that match |

```{language}
{code}```

"""
CODE = {
    "elisp": '(defun two (x)\n  "Return twice X."\n  (* 2 x))\n',
    "python": 'def two(x: int) -> int:\n    """Return twice x."""\n    return 2 * x\n',
    "sh": 'for file in *.el; do\n  echo "$file"\ndone\n',
    "diff": "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n",
}


def run() -> Iterator[Row]:
    """Yield every row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        stalls = [_streamed(Path(folder))["stall"] for _ in range(ROUNDS)]
        keys = [_pressed(Path(folder)) for _ in range(ROUNDS)]
    yield _most(
        f"longest stall while {CHARACTERS // 1000} KB of Markdown stream in, median of {ROUNDS}",
        statistics.median(stalls),
        100,
    )
    yield _most(
        "longest stall while a session of 1,000 exchanges is shown again",
        statistics.median(measured["stall"] for measured in keys),
        100,
    )
    for key in keys[0]["keys"]:
        slowest = statistics.median(measured["keys"][key] for measured in keys)
        yield _most(f"slowest of 40 presses of {key} in that session", slowest, 50)


def _most(what: str, found: float, bar: float) -> Row:
    return Row(what, f"{found:.1f} ms", bar=f"≤ {bar} ms", holds=found <= bar)


def reply(characters: int) -> str:
    """Return a text in Markdown with tables and code of at least that length."""
    parts: list[str] = []
    while sum(map(len, parts)) < characters:
        language = list(CODE)[len(parts) % len(CODE)]
        parts.append(EXCHANGE.format(n=len(parts) + 1, language=language, code=CODE[language]))
    return "".join(parts)


def _streamed(folder: Path) -> dict[str, Any]:
    """Have a long reply streamed in an Emacs; return its measurements."""
    text = json.dumps(reply(CHARACTERS), ensure_ascii=False)
    return _measured(folder, f"[[reply]]\ntext = {text}\n", "efrit-bench-view-stream")


def _pressed(folder: Path) -> dict[str, Any]:
    """Have keys pressed in a long session in an Emacs; return its measurements."""
    return _measured(folder, '[[reply]]\ntext = "Well."\n', "efrit-bench-view-keys")


def _measured(folder: Path, scenario: str, function: str) -> dict[str, Any]:
    output = folder / "measured.json"
    output.unlink(missing_ok=True)
    text = folder / "text.md"
    text.write_text(reply(1500), encoding="utf-8")
    with (
        mock.patch.dict(os.environ, EFRIT_BUDGET_HOME=str(folder / "home")),
        endpoint(scenario, folder) as running,
    ):
        play(
            Play(SCRIPT, function, repository(), output),
            settings(running.server.url),
            EFRIT_BENCH_TEXT=str(text),
        )
    measured: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    if problem := measured.get("problem"):
        raise RuntimeError(problem)
    return measured
