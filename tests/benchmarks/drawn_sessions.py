"""Sessions drawn from the statistics of recorded ones, with texts of a repository's files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from efrit_budget.errors import JsonObject
from efrit_budget.replay.recording import RecordedTurn, Recording, Result
from tests.benchmarks.recorded_statistics import PARTS, TABLE, ranked_names
from tests.benchmarks.session_repository import repository

SIGNATURE = "c2lnbmVk"
SAME = 0.45
"""The share of repeated calls that have the same result again."""
WORDS = ("then", "we", "look", "at", "what", "it", "does", "and", "why", "the", "next", "step")
AGAIN, NEAR = 0.47, 0.8
"""The share of the reads of a file that was read before, and, of the others, of a file beside one.

In recorded sessions, 38% to 56% of reads are of a file that was read before.
"""
BESIDE = 5
"""The most files between a file and one beside it."""
FILES = 1_500
"""The files of the repository whose texts are used."""


def drawn(seed: int) -> Recording:
    """Return the session that is drawn with a seed."""
    return Recording(f"drawn-{seed}", _Session(random.Random(seed)).turns())


@cache
def _table() -> Mapping[str, list[float]]:
    table: Mapping[str, list[float]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


@cache
def _texts() -> list[tuple[str, str]]:
    """Return paths and texts of files of the repository."""
    root = repository()
    files = sorted(file for file in root.rglob("*") if file.is_file() and ".git" not in file.parts)
    start = random.Random(0).randrange(len(files) - FILES)
    chosen = files[start : start + FILES]
    return [(str(file.relative_to(root)), _read(file)) for file in chosen]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


@dataclass
class _Session:
    """A session that is being drawn."""

    rng: random.Random
    said: list[JsonObject] = field(default_factory=list)
    """The calls so far."""
    results: dict[str, str] = field(default_factory=dict)
    """The texts of the results so far, by the ids of the tool uses."""
    found: list[list[str]] = field(default_factory=list)
    """The names in the results of each turn, the most frequent first."""
    read: list[int] = field(default_factory=list)
    """The numbers of the files so far."""
    moment: float = 0.0

    def turns(self) -> list[RecordedTurn]:
        """Return the turns of the session."""
        turns: list[RecordedTurn] = []
        until_message = 0
        for _ in range(round(self._draw("turns"))):
            message = None
            if until_message == 0 or not turns[-1].results:
                message = [_text(self._prose(round(self._draw("messages")) + 3))]
                until_message = max(1, round(self._draw("exchanges")))
            until_message -= 1
            turns.append(self._turn(message))
        return turns

    def _turn(self, message: list[JsonObject] | None) -> RecordedTurn:
        taken = list(self._taken())
        reply = [*self._thinking(), _text(self._prose(round(self._draw("texts")), taken))]
        calls = [self._call() for _ in range(round(self._draw("calls")))]
        results = {call["id"]: Result(text) for call, text in calls}
        self.results |= {use: result.text for use, result in results.items()}
        self.found.append(ranked_names(text for _, text in calls))
        began = self.moment
        self.moment += self._draw("gaps")
        return RecordedTurn(
            message, [*reply, *(call for call, _ in calls)], results, began, began + 1
        )

    def _taken(self) -> Iterator[str]:
        """Yield names of earlier results that the reply takes up."""
        for _ in range(round(self._draw("facts"))):
            turn = len(self.found) - round(self._draw("ages"))
            if turn >= 0 and (found := self.found[turn]):
                yield found[min(len(found) - 1, int(self._draw("ranks") * len(found)))]

    def _thinking(self) -> list[JsonObject]:
        size = round(self._draw("thinking"))
        if not size:
            return []
        return [{"type": "thinking", "thinking": self._prose(size), "signature": SIGNATURE}]

    def _call(self) -> tuple[JsonObject, str]:
        use = f"toolu_{len(self.said)}"
        if self.said and self.rng.random() < _mean("repeated"):
            earlier = self.rng.choice(self.said)
            call = {**earlier, "id": use}
            text = self.results.get(earlier["id"], "")
            if self.rng.random() > SAME:
                text = self._slice(round(self._draw("results")))[1]
        else:
            path, text = self._slice(round(self._draw("results")))
            room = round(self._draw("inputs")) - 60
            given = {"content": self._slice(room)[1]} if room > 100 else {}
            call = {"type": "tool_use", "id": use, "name": "Read", "input": {"path": path, **given}}
        self.said.append(call)
        return call, text

    def _slice(self, size: int) -> tuple[str, str]:
        """Return the path of a file, and a text of this size from there on."""
        at = self._file()
        path, text = _texts()[at]
        parts = [text[self.rng.randrange(max(1, len(text) - size)) :]]
        while sum(map(len, parts)) < size:
            at = (at + 1) % FILES
            parts.append(_texts()[at][1])
        return path, "".join(parts)[:size] or "(nothing)"

    def _file(self) -> int:
        """Return the number of a file: one that was read before, one beside it, or any."""
        at = self.rng.choice(self.read) if self.read else self.rng.randrange(FILES)
        if self.rng.random() > AGAIN:
            near = self.rng.random() < NEAR
            step = self.rng.randint(-BESIDE, BESIDE) if near else self.rng.randrange(FILES)
            at = (at + step) % FILES
        self.read.append(at)
        return at

    def _prose(self, size: int, taken: Sequence[str] = ()) -> str:
        words = [*taken]
        while sum(map(len, words)) + len(words) < size:
            words.append(self.rng.choice(WORDS))
        self.rng.shuffle(words)
        return " ".join(words) or "So."

    def _draw(self, kind: str) -> float:
        """Return a figure of a kind, between two neighbours in the table."""
        values, share = _table()[kind], self.rng.random()
        marks = [*(number / PARTS for number in range(PARTS)), 0.99, 1.0]
        above = next(at for at, mark in enumerate(marks) if mark > share)
        low, high = marks[above - 1], marks[above]
        between = (share - low) / (high - low)
        return values[above - 1] + between * (values[above] - values[above - 1])


def _mean(kind: str) -> float:
    values = _table()[kind]
    return sum(values) / len(values)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
