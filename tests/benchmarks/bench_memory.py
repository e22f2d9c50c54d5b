"""Memory with 100,000 observations: searched, read at the start, saved to."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, count
from pathlib import Path
from statistics import median
from typing import Any

from efrit_budget.app import Application, open_application
from efrit_budget.memory import restoring
from efrit_budget.memory.observation import Record
from efrit_budget.memory.store import MemoryStore
from efrit_budget.settings.load import load
from efrit_budget.settings.places import HOME_VARIABLE
from efrit_budget.storage.database import Database
from tests.benchmarks.table import Row

OBSERVATIONS, PROJECTS, IN_SESSION = 100_000, 20, 50
RARE = {"needle": 0.008, "thimble": 0.001, "bobbin": 0.00005}
"""Words, and the share of the observations that hold them."""
WORDS, SYLLABLES = 20_000, 4
MEDIAN_WORDS, SPREAD = 4.2, 0.9
"""Of the logarithm of a content's length in words: half have fewer than 67, a few thousands."""
ROUNDS = 41
LONGEST_MS = {"mem_search": 30.0, "mem_context": 15.0, "mem_save": 5.0}
MOST_TIMES = 2.0
BESIDE_STARTS_MS = 100.0
BARE = """
SELECT rowid, title, tags, content FROM observations_words
WHERE observations_words MATCH ? ORDER BY rank LIMIT 10"""
COUNTED = "SELECT count(*) FROM observations_words WHERE observations_words MATCH ?"


class Writer:
    """Makes texts whose words are as unequally frequent as in a language."""

    def __init__(self) -> None:
        self._random = random.Random(8)
        self._words = sorted({self._word() for _ in range(WORDS)})
        self._random.shuffle(self._words)
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))

    def observation(self, number: int, now: float) -> Record:
        """Return an observation, older the lower its number."""
        chosen = self._random
        rare = "".join(f" {word}" for word, share in RARE.items() if chosen.random() < share)
        length = 5 + min(8_000, int(chosen.lognormvariate(MEDIAN_WORDS, SPREAD)))
        saved = now - (OBSERVATIONS - number) * 60
        return Record(
            id=number,
            kind=chosen.choice(["decision", "fix", "note", "explore"]),
            project=f"project-{int(chosen.random() ** 2 * PROJECTS)}",
            scope="project",
            updated=saved,
            importance=chosen.choice([0.3, 0.5, 0.5, 0.8]),
            accesses=0,
            accessed=None,
            deleted=None,
            created=saved,
            revision=1,
            duplicates=0,
            session=f"session-{number // IN_SESSION}",
            tool="mem_save",
            topic_key=None,
            tags=tuple(chosen.sample(self._words[:200], 2)),
            title=self._text(7),
            content=self._text(length) + rare,
        )

    def _word(self) -> str:
        syllables = range(self._random.randint(1, SYLLABLES))
        return "".join(
            self._random.choice("bcdfglmnprst") + self._random.choice("aeiou") for _ in syllables
        )

    def _text(self, length: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=length))


class Bench:
    """A sidecar's application on a memory that is full already."""

    def __init__(self, folder: Path) -> None:
        os.environ[HOME_VARIABLE] = str(folder)
        loaded = load()
        self.application: Application = open_application(loaded)
        self.database = Database(loaded.settings.storage.database, 5_000)
        self.store = MemoryStore(self.database)
        writer, now = Writer(), time.time()
        with self.database.writing() as connection:
            for number in range(1, OBSERVATIONS + 1):
                restoring.restore(connection, writer.observation(number, now))
        self._uses = count()
        self._folder = folder
        self._session = self._opened()

    def _opened(self) -> str:
        limits = {"total": 9_000_000, "response": 1_000}
        opened = self.application.call(
            "session/open", {"root": str(self._folder), "limits": limits}
        )
        return str(opened["session_id"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Run a whole call: the tool, storing its result, accounting."""
        use = next(self._uses)
        if use % 200 == 0:
            self._session = self._opened()
        params = {"session_id": self._session, "name": tool, "arguments": arguments}
        found: dict[str, Any] = self.application.call(
            "tools/call", {**params, "tool_use_id": f"use-{use}"}
        )
        return found

    def bare(self, word: str) -> int:
        """Run the bare query and its count, and return the count."""
        with self.database.reading() as connection:
            connection.execute(BARE, (word,)).fetchall()
            return int(connection.execute(COUNTED, (word,)).fetchone()[0])


def milliseconds(*works: Callable[[], object]) -> list[float]:
    """Return the median milliseconds of each function, run in turns."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, times in zip(works, taken, strict=True):
            begun = time.perf_counter()
            work()
            times.append((time.perf_counter() - begun) * 1000)
    return list(map(median, taken))


def row(tool: str, what: str, work: Callable[[], object]) -> Row:
    """Return a row that compares a whole call with its bar."""
    [ours], most = milliseconds(work), LONGEST_MS[tool]
    return Row(what, f"{ours:.2f} ms", bar=f"≤ {most:g} ms", holds=ours <= most)


def run() -> Iterator[Row]:
    """Search for words of three frequencies, then the other tools."""
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(Path(made))
        for word in RARE:
            found = bench.bare(word)
            what = f"mem_search, a word that {found:,} hold"
            yield row("mem_search", what, lambda word=word: bench.call("mem_search", query=word))  # type: ignore[misc]
            yield against_the_bare_query(bench, word, found)
        yield row(
            "mem_context",
            "mem_context of all projects",
            lambda: bench.call("mem_context", project=""),
        )
        one = {"project": "project-3"}
        yield row(
            "mem_context", "mem_context of a project", lambda: bench.call("mem_context", **one)
        )
        for query in ("", *RARE):
            yield a_pack_from_the_command_line(query)
        titles = count()
        yield row(
            "mem_save",
            "mem_save",
            lambda: bench.call(
                "mem_save",
                title=f"Title {next(titles)}",
                content=f"{next(titles)} " + "Words. " * 60,
            ),
        )


def a_pack_from_the_command_line(query: str) -> Row:
    """Measure the command that writes a pack, beside processes that only start."""
    script = Path(sys.executable).with_name("efrit-budget")
    asked = [str(script), "context-pack", *query.split(), "--project", "project-3"]
    ours, start = milliseconds(
        lambda: subprocess.run(asked, check=True, capture_output=True),
        lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    )
    most = 2 * start + BESIDE_STARTS_MS
    return Row(
        f"context-pack {query or 'without a query'}, end to end",
        f"{ours:.0f} ms",
        f"interpreter start {start:.0f} ms",
        f"{ours / start:.1f}",
        f"≤ 2 starts + {BESIDE_STARTS_MS:g} ms = {most:.0f} ms",
        ours <= most,
    )


def against_the_bare_query(bench: Bench, word: str, found: int) -> Row:
    """Measure ranking, counting and reading the page, beside the bare query and its count."""
    bare, ours = milliseconds(lambda: bench.bare(word), lambda: bench.store.search(word, limit=10))
    times = ours / bare
    return Row(
        f"the search alone, {found:,}",
        f"{ours:.2f} ms",
        f"bare FTS5 and COUNT(*) {bare:.2f} ms",
        f"{times:.1f}",
        f"≤ {MOST_TIMES:g}",
        times <= MOST_TIMES,
    )
