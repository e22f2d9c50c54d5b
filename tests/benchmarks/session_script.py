"""The script of a simulated session: requests, thinking, calls and recalls, from a seed.

Results come from git and rg on the generated repository. A script is made once for each seed and
kept beside the repository.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from tests.benchmarks.packages import CACHE
from tests.benchmarks.session_repository import FOLDER, repository
from tests.benchmarks.session_results import Made, Maker
from tests.benchmarks.tokenizers_real import claude

TURNS = 300
THINKING = 800
REQUESTS = 6
RETURN_SHARE = 0.14
LONG_AGO = 12
"""Turns that must lie between a result and the wish to see it again."""
CALLS_IN_A_TURN = (1, 1, 1, 1, 1, 1, 1, 2, 2, 3)
VERSION = 4
WORDS = tuple(
    word
    for line in (
        "look at where this is used before changing it; the tests beside it show what callers",
        "expect. check the history for the reason of this default, then compare both",
        "implementations and read the part of the manual that describes the option. next the",
        "remaining callers one by one",
    )
    for word in line.split()
)


@dataclass(frozen=True)
class Action:
    """A tool call of the script and what it gives."""

    tool: str
    arguments: Mapping[str, object]
    text: str
    summary: str
    tokens: int
    """The tokens of the text, by Claude's tokenizer."""


@dataclass(frozen=True)
class Step:
    """One reply of the model, and what the person said before it."""

    request: str | None
    thinking: int
    said: str
    actions: tuple[int, ...]
    returns: tuple[int, ...]
    """Actions whose results are wanted again."""


@dataclass(frozen=True)
class Script:
    """A whole session."""

    seed: int
    actions: tuple[Action, ...]
    steps: tuple[Step, ...]

    def mean_tokens(self) -> float:
        """Return the mean size of a result, by Claude's tokenizer."""
        return sum(action.tokens for action in self.actions) / len(self.actions)


KEPT = TypeAdapter(Script)


@cache
def script(seed: int) -> Script:
    """Return the script of a seed; make and store it the first time."""
    source = Path(__file__).with_name("session_results.py").read_bytes()
    mark = hashlib.sha256(f"{VERSION}{FOLDER.name}".encode() + source).hexdigest()[:8]
    file = CACHE / f"session-script-{seed}-{mark}.json"
    if not file.exists():
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(KEPT.dump_json(_make(seed)))
        unfinished.rename(file)
    return KEPT.validate_json(file.read_bytes())


def _make(seed: int) -> Script:
    rng = random.Random(seed)
    maker = Maker(repository(), rng)
    asked = {0, *rng.sample(range(20, TURNS - 10), REQUESTS - 1)}
    actions: list[Action] = []
    steps: list[Step] = []
    for turn in range(TURNS):
        calls = 0 if turn + 1 in asked else rng.choice(CALLS_IN_A_TURN)
        first = len(actions)
        actions.extend(_action(made) for made in _distinct(maker, calls, actions))
        steps.append(
            Step(
                request=_prose(rng, rng.randint(30, 250)) if turn in asked else None,
                thinking=min(3_000, int(THINKING * rng.lognormvariate(-0.18, 0.6))),
                said=_prose(rng, rng.randint(4, 45)) if not calls or rng.random() < 0.7 else "",
                actions=tuple(range(first, len(actions))),
                returns=tuple(_returns(steps, rng)) if calls else (),
            )
        )
    return Script(seed, tuple(actions), tuple(steps))


def _action(made: Made) -> Action:
    return Action(made.tool, made.arguments, made.text, made.summary, claude()([made.text])[0])


def _distinct(maker: Maker, calls: int, before: list[Action]) -> Iterator[Made]:
    seen = {action.text for action in before}
    for _ in range(calls):
        made = maker.make()
        while made.text in seen:
            made = maker.make()
        seen.add(made.text)
        yield made


def _returns(steps: list[Step], rng: random.Random) -> Iterator[int]:
    """Yield, now and then, an action seen long ago whose result is wanted again."""
    if len(steps) <= LONG_AGO or rng.random() >= RETURN_SHARE:
        return
    again = [action for step in steps for action in step.returns]
    once = [action for step in steps[:-LONG_AGO] for action in step.actions]
    yield rng.choice(again) if again and rng.random() < 0.25 else rng.choice(once)


def _prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize()
