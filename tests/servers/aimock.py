"""npm's aimock, which plays fixtures as a server of either API."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from efrit_budget.demo.placeholders import Filling
from efrit_budget.demo.scenario import Step
from tests.servers.processes import environment_of, first_line, process

PLAYER = Path(__file__).with_name("aimock.mjs")
ANY_TOKEN = "r1:0-0000"
Fixture = dict[str, Any]


def fixture(step: Step) -> Fixture:
    """Return a reply of a scenario as a fixture."""
    entry, filling = step.entry, Filling(step.round, ANY_TOKEN)
    response: Fixture = {}
    if entry.thinking:
        response["reasoning"] = filling.text(entry.thinking)
    if entry.text:
        response["content"] = filling.text(entry.text)
    if entry.tool:
        response["toolCalls"] = [
            {"name": call.name, "arguments": filling.input(call)} for call in entry.tool
        ]
    return {"response": response}


@dataclass(frozen=True)
class Aimock:
    """A running aimock."""

    url: str

    def journal(self) -> list[dict[str, Any]]:
        """Return what it noted of each request."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal") as reply:
            entries: list[dict[str, Any]] = json.load(reply)
        return entries


@contextmanager
def aimock(fixtures: Sequence[Fixture], folder: Path) -> Iterator[Aimock]:
    """Run an aimock that plays fixtures in order."""
    environment = environment_of("aimock")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fixtures.json"
    file.write_text(json.dumps(list(fixtures)), encoding="utf-8")
    command = [environment / "bin" / "node", PLAYER, environment, file]
    with process(command, folder, {}) as (running, log):
        yield Aimock(first_line(running, log))
