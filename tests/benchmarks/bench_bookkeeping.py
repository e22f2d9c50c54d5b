"""The time that the sidecar adds to a tool's own: estimating, storing, accounting, committing."""

from __future__ import annotations

import argparse
import inspect
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from efrit_budget.app import Application, open_application
from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json, JsonObject
from efrit_budget.settings.load import load
from efrit_budget.settings.places import HOME_VARIABLE
from tests.benchmarks.table import Row

MODEL, FACTOR = "claude-sonnet-5-5", 1.3
TOKENS, LEAST_DELIVERED, ALLOWANCE = 8_000, 6_500, 9_200
SMALL, LARGE = 10, 10_000
FILLED_AT_ONCE = 200
ROUNDS, MEASURED = 5, 30
"""The least disturbed round counts: its median is the lowest."""
MOST_MS, MOST_GROWTH = 4.0, 1.5
ENDLESS = {"total": 9_000_000, "response": 1_000}
"""Without turns nothing ever leaves the window, so it must hold all results of the run."""
MODELS = "[default]\nwindow = 10_000_000\n"
TOOL_FILE = '''
from efrit_budget.tools.base import Arguments, Outcome, Policy


class FixedArguments(Arguments):
    place: int = 0


class Fixed:
    """Gives a text that was made before."""

    name = "fixed"
    description = "Give a text."
    arguments = FixedArguments
    policy = Policy.ALLOW
    has_effects = False
    hint = None
    texts = {}

    def run(self, arguments, context):
        return Outcome(self.texts.pop(arguments.place))

    def compress(self, arguments, outcome):
        return outcome.text[:300]


TOOL = Fixed()
'''


class Bench:
    """A sidecar of its own, with a session whose work log has a given size."""

    def __init__(self, folder: Path, *, turns: bool) -> None:
        tools = folder / "tools"
        tools.mkdir(parents=True)
        (tools / "fixed.py").write_text(TOOL_FILE)
        (folder / "config").mkdir()
        (folder / "config" / "models.toml").write_text(MODELS)
        os.environ[HOME_VARIABLE] = str(folder)
        loaded = load(overrides={"tools.path": [str(tools)]})
        self._application: Application = open_application(loaded)
        self._turns = turns
        self._count = 0
        self.least_tokens = 0
        self._texts: dict[int, str] = _texts_of(self._application)
        limits = {**({} if turns else ENDLESS), "per_tool_default": ALLOWANCE}
        opened = self.call("session/open", root=str(folder), limits=limits)
        self._session = opened["session_id"]

    def call(self, method: str, **params: Json) -> JsonObject:
        """Call a method."""
        answer: JsonObject = self._application.call(method, params)
        return answer

    def fill(self, entries: int) -> None:
        """Add small results until the log has this many entries."""
        while entries > 0:
            batch = min(FILLED_AT_ONCE, entries)
            self._run([f"entry {self._count + index}\n" for index in range(batch)])
            entries -= batch

    def measure(self, text: str) -> float:
        """Return the milliseconds of one call whose tool itself takes no time."""
        return self._run([text])[0]

    def close(self) -> None:
        """Close the sidecar."""
        self._application.close()

    def _run(self, texts: list[str]) -> list[float]:
        places = range(self._count, self._count + len(texts))
        self._count += len(texts)
        self._texts.update(zip(places, texts, strict=True))
        if self._turns:
            self._announce(places)
        return [self._timed(place) for place in places]

    def _announce(self, places: range) -> None:
        session = {"session_id": self._session, "model": MODEL}
        first = "Begin." if places.start == 0 else None
        turn = self.call("turn/begin", **session, system="Work.", user_message=first)
        content: list[JsonObject] = [
            {"type": "tool_use", "id": f"u{place}", "name": "fixed", "input": {"place": place}}
            for place in places
        ]
        self.call("turn/end", **session, turn_id=turn["turn_id"], usage=None, content=content)

    def _timed(self, place: int) -> float:
        started = time.perf_counter()
        envelope = self.call(
            "tools/call",
            session_id=self._session,
            name="fixed",
            arguments={"place": place},
            tool_use_id=f"u{place}",
            include_data=False,
        )
        elapsed = (time.perf_counter() - started) * 1000
        self.least_tokens = min(self.least_tokens, envelope["tokens"])
        return elapsed


def _texts_of(application: Application) -> dict[int, str]:
    """Return the texts that this sidecar's tool delivers, by number."""
    methods = application.methods["tools/call"].run.__self__  # type: ignore[attr-defined]
    texts: dict[int, str] = methods._registry.named("fixed").texts
    return texts


def large_text(number: int) -> str:
    """Return a text of nearly 8,000 tokens, different for each number."""
    source = inspect.getsource(argparse)
    text = f"{number}\n" + source[number * 97 % 20_000 :][:60_000]
    size = len(text)
    while estimate(text[:size]) * FACTOR > TOKENS:
        size = int(size * 0.98)
    return text[:size]


def measured(*, turns: bool) -> tuple[list[float], list[float]]:
    """Return the milliseconds of calls on a small and on a large log, made alternately."""
    with tempfile.TemporaryDirectory() as folder:
        small = Bench(Path(folder, "small"), turns=turns)
        large = Bench(Path(folder, "large"), turns=turns)
        small.fill(SMALL)
        large.fill(LARGE)
        small.least_tokens = large.least_tokens = TOKENS
        rounds = [_round(small, large, number) for number in range(ROUNDS)]
        small.close()
        large.close()
        if min(small.least_tokens, large.least_tokens) < LEAST_DELIVERED:
            raise AssertionError("a result was not delivered, so that nothing was measured")
    return min((one for one, _ in rounds), key=median), min((two for _, two in rounds), key=median)


def _round(small: Bench, large: Bench, number: int) -> tuple[list[float], list[float]]:
    """Measure calls on both logs, alternating."""
    texts = [large_text(number * MEASURED + index) for index in range(MEASURED)]
    found = [(small.measure(text), large.measure(text)) for text in texts]
    return [one for one, _ in found], [two for _, two in found]


def run() -> Iterator[Row]:
    """Yield the rows of the table."""
    for turns in (False, True):
        small, large = measured(turns=turns)
        how = "turns in use" if turns else "no turns"
        yield Row(
            f"bookkeeping of a call with an 8,000-token result, {how}",
            f"{median(small):.2f} ms",
            f"90% within {sorted(small)[len(small) * 9 // 10]:.2f} ms",
            bar=f"≤ {MOST_MS:g} ms",
            holds=median(small) <= MOST_MS,
        )
        growth = median(large) / median(small)
        yield Row(
            f"… with {LARGE:,} entries in the log",
            f"{median(large):.2f} ms",
            f"{median(small):.2f} ms with {SMALL}",
            f"{growth:.2f}",
            f"≤ {MOST_GROWTH:g}",
            growth <= MOST_GROWTH,
        )
