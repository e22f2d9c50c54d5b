"""The scripted model as a process, whose connections end with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.errors import JsonObject
from tests.emacs.batch import ROOT
from tests.servers.driving import PATHS
from tests.servers.processes import first_line, process


@dataclass(frozen=True)
class Scripted:
    """A running scripted model."""

    url: str
    record: Path

    def asked(self) -> list[JsonObject]:
        """Return the records of the requests for replies."""
        lines = self.record.read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if line["path"] in PATHS.values()]


@contextmanager
def scripted(scenario: str, folder: Path, port: int = 0) -> Iterator[Scripted]:
    """Run a model that plays a scenario, on any port unless one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    file, record = folder / "scenario.toml", folder / "record.jsonl"
    file.write_text(scenario, encoding="utf-8")
    command: list[str | Path] = [
        *(ROOT / ".venv" / "bin" / "efrit-budget", "demo-model", "--quiet"),
        *("--port", str(port), "--scenario", file, "--record", record),
    ]
    with process(command, folder, {}) as (running, log):
        yield Scripted(first_line(running, log), record)
