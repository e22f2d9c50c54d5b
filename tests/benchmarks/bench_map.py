"""A map of 10,000 files by their symbols."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from efrit_budget.app import Application, open_application
from efrit_budget.settings.load import load
from efrit_budget.settings.places import HOME_VARIABLE
from tests.benchmarks.session_repository import FILES, repository
from tests.benchmarks.table import Row

TOKENS, ROUNDS, CHANGED = 2_000, 9, 100
MOST_SECONDS = 1.0


class Bench:
    """A sidecar's application with a session in a copy of the repository."""

    def __init__(self, folder: Path) -> None:
        os.environ[HOME_VARIABLE] = str(folder / "home")
        self.root = folder / "repository"
        shutil.copytree(repository(), self.root, symlinks=True)
        self._application: Application = open_application(load())
        self._uses = count()

    def seconds(self) -> tuple[float, dict[str, Any]]:
        """Return the seconds that a map takes in a new session, and its envelope."""
        session = self._application.call("session/open", {"root": str(self.root)})["session_id"]
        call = {"session_id": session, "name": "project_map", "tool_use_id": f"m{next(self._uses)}"}
        begun = time.perf_counter()
        arguments = {"max_tokens": TOKENS}
        envelope = self._application.call("tools/call", {**call, "arguments": arguments})
        return time.perf_counter() - begun, dict(envelope)

    def change(self) -> None:
        """Add a line to some files."""
        files = sorted(path for path in self.root.rglob("*.py") if path.is_file())
        for file in files[:CHANGED]:
            with file.open("a", encoding="utf-8") as opened:
                opened.write("# changed\n")


def run() -> Iterator[Row]:
    """Yield every row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        before = os.times()
        first, envelope = bench.seconds()
        used = os.times()
        symbols = f"{envelope['data']['returned']} of {envelope['data']['total']:,} symbols"
        yield _seconds(f"project_map, {FILES:,} files, the first time", first, symbols)
        own = used.user + used.system - before.user - before.system
        yield Row("its processor time, our own", f"{own:.2f} s")
        others = used.children_user + used.children_system
        others -= before.children_user + before.children_system
        yield Row("its processor time, git and two ctags", f"{others:.2f} s")
        again = median(bench.seconds()[0] for _ in range(ROUNDS))
        yield _seconds("the same again, median", again)
        bench.change()
        yield _seconds(f"after {CHANGED} files were changed", bench.seconds()[0])
        tokens = envelope["tokens"]
        bar = f"≤ {TOKENS:,}"
        yield Row("its tokens", f"{tokens:,}", bar=bar, holds=tokens <= TOKENS)


def _seconds(what: str, seconds: float, reference: str = "") -> Row:
    bar = f"≤ {MOST_SECONDS:.0f} s"
    return Row(what, f"{seconds:.2f} s", reference, bar=bar, holds=seconds <= MOST_SECONDS)
