"""The first `efrit-do` of a fresh Emacs: its prompt, and its first word."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tests.benchmarks.played import ROOT, Play, play
from tests.benchmarks.table import Row
from tests.demo.running import endpoint
from tests.emacs.terminal import settings

SCRIPT = ROOT / "tests" / "benchmarks" / "elisp" / "bench-start.el"
ROUNDS = 5
SCENARIO = """
[[reply]]
text = "There is not much to see."
"""


def run() -> Iterator[Row]:
    """Yield the rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        times = [_measured(Path(folder)) for _ in range(ROUNDS)]
    prompt = statistics.median(time["prompt"] for time in times)
    word = statistics.median(time["word"] for time in times)
    yield Row(
        f"first efrit-do to its prompt, median of {ROUNDS}",
        f"{prompt:.1f} ms",
        bar="≤ 150 ms",
        holds=prompt <= 150,
    )
    yield Row(
        "from RET, after 2 s of typing, to the first word of the first reply, median",
        f"{word:.1f} ms",
    )


def _measured(folder: Path) -> dict[str, float]:
    """Call `efrit-do` in a fresh Emacs, and return its times in milliseconds."""
    output = folder / "measured.json"
    output.unlink(missing_ok=True)
    with (
        tempfile.TemporaryDirectory() as project,
        mock.patch.dict(os.environ, EFRIT_BUDGET_HOME=str(Path(project, "home"))),
        endpoint(SCENARIO, Path(project)) as running,
    ):
        subprocess.run(["git", "init", "--quiet", project], check=True)
        begin = Play(SCRIPT, "efrit-bench-start-run", Path(project), output)
        play(begin, settings(running.server.url))
        measured: dict[str, float] = json.loads(output.read_text(encoding="utf-8"))
    return measured
