"""The time that a turn takes early and late in a long session."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from efrit_budget.app import Application, open_application
from efrit_budget.errors import Json, JsonObject
from efrit_budget.settings.load import load
from efrit_budget.settings.places import HOME_VARIABLE
from tests.benchmarks.table import Row

MODEL = "claude-sonnet-5-5"
RESULT_BYTES = 23_000
EARLY, MIDDLE, LATE = 100, 150, 3_000
MEASURED = 25
"""Turns on each side of the moment that is measured."""
LISTED = 20
MOST_GROWTH, MOST_MS = 1.3, 10.0


class LongSession:
    """A session in which every turn calls a tool of the client."""

    def __init__(self, folder: Path) -> None:
        os.environ[HOME_VARIABLE] = str(folder)
        self._application: Application = open_application(load())
        opened = self._application.call("session/open", {"root": str(folder)})
        self._session = opened["session_id"]
        self._random = random.Random(7)
        self.begun: list[tuple[float, bool]] = []
        """For each turn the milliseconds that its beginning took, and whether it was a rewrite."""
        self.listed: list[float] = []
        """For each turn the milliseconds that listing the newest entries took."""

    def run(self, turns: int) -> None:
        """Run turns until the session has this many."""
        while len(self.begun) < turns:
            self._turn(len(self.begun) + 1)

    def beginnings(self, turn: int) -> list[float]:
        """Return the milliseconds of `turn/begin` near a turn, leaving out rewrites."""
        return [took for took, rewrote in self.begun[_about(turn)] if not rewrote]

    def close(self) -> None:
        """Close the sidecar."""
        self._application.close()

    def _turn(self, number: int) -> None:
        said = {"user_message": "Look at all of it."} if number == 1 else {}
        begun, took = self._timed("turn/begin", model=MODEL, system="Work.", **said)
        self.begun.append((took, begun["rewrite"] is not None))
        use: JsonObject = {
            "type": "tool_use",
            "id": f"u{number}",
            "name": "look",
            "input": {"at": number},
        }
        text = {"type": "text", "text": f"I look at place {number}."}
        self._timed("turn/end", turn_id=begun["turn_id"], usage=None, content=[text, use])
        self._timed(
            "tools/record",
            name="look",
            arguments={"at": number},
            tool_use_id=f"u{number}",
            text=self._text(number),
            include_data=False,
        )
        self.listed.append(self._timed("worklog/list", limit=LISTED)[1])

    def _text(self, number: int) -> str:
        words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")
        drawn = " ".join(self._random.choices(words, k=RESULT_BYTES // 5))
        return f"{number} {drawn}"[:RESULT_BYTES]

    def _timed(self, method: str, **params: Json) -> tuple[JsonObject, float]:
        started = time.perf_counter()
        answer = self._application.call(method, {"session_id": self._session, **params})
        return answer, (time.perf_counter() - started) * 1000


def _about(turn: int) -> slice:
    return slice(turn - MEASURED, turn + MEASURED)


def run() -> Iterator[Row]:
    """Yield the rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        session = LongSession(Path(folder))
        session.run(LATE + MEASURED)
        session.close()
    middle = median(session.beginnings(MIDDLE))
    yield Row(
        "`turn/begin` without a rewrite, in the middle of a session of 300 turns",
        f"{middle:.2f} ms",
        bar=f"≤ {MOST_MS:g} ms",
        holds=middle <= MOST_MS,
    )
    yield _grown("`turn/begin` without a rewrite", session.beginnings)
    yield _grown(f"`worklog/list` of {LISTED}", lambda turn: session.listed[_about(turn)])


def _grown(what: str, at: Callable[[int], list[float]]) -> Row:
    early, late = median(at(EARLY)), median(at(LATE))
    return Row(
        f"{what}, at turn {LATE:,}, results of {RESULT_BYTES // 1000} KB",
        f"{late:.2f} ms",
        f"{early:.2f} ms at turn {EARLY}",
        f"{late / early:.2f}x",
        f"≤ {MOST_GROWTH}x",
        late / early <= MOST_GROWTH,
    )
