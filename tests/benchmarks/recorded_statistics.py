"""Statistics of recorded sessions: `python -m tests.benchmarks.recorded_statistics`.

The sessions lie in the folder that `EFRIT_TRAJECTORIES` names. A small table of figures is kept of
them, from which `drawn_sessions` draws sessions of the same kind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import quantiles

from efrit_budget.budget.models import model_named
from efrit_budget.conversation.blocks import THINKING, valid_json
from efrit_budget.errors import JsonObject
from efrit_budget.replay.blocks import Measure
from efrit_budget.replay.facts import NeededFacts
from efrit_budget.replay.files import open_recording
from efrit_budget.replay.recording import Recording
from efrit_budget.results.names import count_names
from tests.benchmarks.recorded_usage import FOLDER

TABLE = Path(__file__).with_name("recorded_statistics.json")
PARTS = 40
"""The number of parts that the quantiles divide figures into."""


@dataclass
class Figures:
    """Figures of sessions; in the table, quantiles stand for lists."""

    turns: list[float] = field(default_factory=list)
    """The turns of each session."""
    exchanges: list[float] = field(default_factory=list)
    """The turns from each message of a person to the next."""
    messages: list[float] = field(default_factory=list)
    """The characters of each message of a person."""
    texts: list[float] = field(default_factory=list)
    """The characters of text in each reply."""
    thinking: list[float] = field(default_factory=list)
    """The characters of thinking in each reply."""
    calls: list[float] = field(default_factory=list)
    """The tool calls of each reply."""
    inputs: list[float] = field(default_factory=list)
    """The characters of each tool call's input."""
    results: list[float] = field(default_factory=list)
    """The characters of each result."""
    gaps: list[float] = field(default_factory=list)
    """The seconds from one request to the next."""
    facts: list[float] = field(default_factory=list)
    """The names that each reply takes up from earlier results."""
    ages: list[float] = field(default_factory=list)
    """The turns since a result last had each of those names."""
    ranks: list[float] = field(default_factory=list)
    """The share of the names in the results of that turn that are more frequent than the name."""
    repeated: list[float] = field(default_factory=list)
    """1 for each call that repeats an earlier one, with the same result or another, else 0."""

    def add(self, recording: Recording) -> None:
        """Add the figures of a session."""
        turns = recording.turns
        self.turns.append(len(turns))
        begun = [number for number, turn in enumerate(turns) if turn.message]
        self.exchanges += [after - before for before, after in pairwise([*begun, len(turns)])]
        self.gaps += [max(0.0, after.began - before.began) for before, after in pairwise(turns)]
        keys: set[str] = set()
        for turn in turns:
            if turn.message:
                self.messages.append(_characters(turn.message, {"text"}))
            self.texts.append(_characters(turn.reply, {"text"}))
            self.thinking.append(_characters(turn.reply, THINKING))
            self.calls.append(len(list(turn.calls())))
            self.results += [len(result.text) for result in turn.results.values()]
            for call in turn.calls():
                key = valid_json([call["name"], call["input"]])
                self.inputs.append(len(key))
                self.repeated.append(key in keys)
                keys.add(key)
        self._add_facts(recording)

    def _add_facts(self, recording: Recording) -> None:
        measure, needed = Measure(model_named("claude-opus-4-6")), NeededFacts()
        latest: dict[str, int] = {}
        ranked: list[list[str]] = []
        for number, turn in enumerate(recording.turns):
            for block in turn.message or ():
                needed.add_other(measure.block(block).names)
            names = frozenset[str]().union(*(measure.block(block).names for block in turn.reply))
            taken = needed.needed_by(names)
            self.facts.append(len(taken))
            self.ages += [number - latest[name] for name in taken]
            self.ranks += [_rank(name, ranked[latest[name]]) for name in taken]
            needed.add_other(names)
            for use, result in turn.results.items():
                found = measure.result(use, result.text).names
                needed.add_result(found)
                latest |= dict.fromkeys(found, number)
            ranked.append(ranked_names(result.text for result in turn.results.values()))

    def table(self) -> dict[str, list[float]]:
        """Return the quantiles of each kind of figure."""
        return {name: _quantiles(values) for name, values in asdict(self).items()}


def ranked_names(texts: Iterable[str]) -> list[str]:
    """Return the names in texts, the most frequent first."""
    counted = count_names("\n".join(texts))
    return sorted(counted, key=lambda name: (-counted[name], name))


def _rank(name: str, ranked: Sequence[str]) -> float:
    """Return the share of the names before one of them; 1 for another name."""
    return ranked.index(name) / len(ranked) if name in ranked else 1.0


def _characters(blocks: Sequence[JsonObject], kinds: set[str] | frozenset[str]) -> int:
    """Return the characters of the texts in blocks of these kinds."""
    chosen = (block for block in blocks if block["type"] in kinds)
    return sum(len(str(block.get(block["type"], ""))) for block in chosen)


def _quantiles(values: Sequence[float]) -> list[float]:
    """Return the least, the quantiles, the 99% quantile, and the largest value."""
    inner = quantiles(values, n=PARTS, method="inclusive")
    highest = quantiles(values, n=100, method="inclusive")[-1]
    return [round(value, 3) for value in (min(values), *inner, highest, max(values))]


def main() -> None:
    """Write the table of figures."""
    figures = Figures()
    for path in sorted(Path(os.environ[FOLDER]).glob("*.jsonl.gz")):
        figures.add(open_recording(path))
    lines = (f'  "{name}": {json.dumps(values)}' for name, values in figures.table().items())
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
