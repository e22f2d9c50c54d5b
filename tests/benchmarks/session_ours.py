"""A scripted session driven through the sidecar, with every request checked and charged."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from efrit_budget.app import Application, open_application
from efrit_budget.budget.models import model_named
from efrit_budget.conversation.recall import SessionResults
from efrit_budget.errors import Json, JsonObject
from efrit_budget.settings.load import load
from efrit_budget.settings.places import HOME_VARIABLE
from tests.benchmarks.session_accounting import Cache, Meter, Truth, learn
from tests.benchmarks.session_conversation import Conversation
from tests.benchmarks.session_lossless import lost
from tests.benchmarks.session_repository import repository
from tests.benchmarks.session_script import Action, Script, Step, script
from tests.benchmarks.session_setting import CLIENT_TOOLS, PROMPT_LIMIT, REAL_LIMIT, SYSTEM, Case

FOOTER_TOKENS = 80


@dataclass
class Found:
    """The figures measured in one session."""

    case: Case
    meter: Meter = field(default_factory=Meter)
    epochs: int = 0
    in_view: list[int] = field(default_factory=list)
    returns: int = 0
    recalled: int = 0
    most_by_our_count: int = 0
    factor: float = 0.0
    results: int = 0
    not_recalled: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def mean_in_view(self) -> float:
        """Results in full in the window, over all requests."""
        return sum(self.in_view) / max(1, len(self.in_view))


def simulate(case: Case) -> Found:
    """Drive a session from its first request to its last, in a database of its own."""
    played = script(case.seed)
    for action in played.actions:
        learn(action.text, action.tokens)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[HOME_VARIABLE] = folder
        application = open_application(load())
        try:
            return Driver(application, case, played).run()
        finally:
            application.close()


class Driver:
    """Plays the client and the model."""

    def __init__(self, application: Application, case: Case, played: Script) -> None:
        self._application = application
        self._case = case
        self._script = played
        self._truth = Truth(case.factor)
        self._cache = Cache(model_named(case.model).least_cacheable)
        self._conversation = Conversation(self._truth)
        self._found = Found(case)
        self._handles: dict[int, str] = {}
        self._originals: dict[str, str] = {}
        self._shows: dict[str, int] = {}
        limits = {} if case.low_water is None else {"low_water": case.low_water}
        opened = application.call("session/open", {"root": str(repository()), "limits": limits})
        self.session = str(opened["session_id"])
        self._register()

    def _register(self) -> None:
        own = {tool["name"] for tool in self.call("tools/list")["tools"]}
        tools = [tool for tool in CLIENT_TOOLS if tool["name"] not in own]
        self.call("tools/register", session_id=self.session, tools=tools)

    def call(self, method: str, **params: Json) -> JsonObject:
        """Call a method of the sidecar."""
        answer: JsonObject = self._application.call(method, params)
        return answer

    def run(self) -> Found:
        """Run the whole session and return its figures."""
        started = time.perf_counter()
        for number, step in enumerate(self._script.steps):
            turn = self._begin(step.request)
            self._look(turn)
            self._play(number, step, turn)
        self._found.seconds = time.perf_counter() - started
        self._found.results = len(self._handles)
        self._found.factor = self.call("session/status", session_id=self.session)["budget"][
            "calibration"
        ]["factor"]
        if self._case.recall_all:
            self._found.not_recalled = lost(self, self._originals, self._application)
        self._found.problems += self._conversation.problems
        return self._found

    def _begin(self, request: str | None) -> JsonObject:
        turn = self.call(
            "turn/begin",
            session_id=self.session,
            model=self._case.model,
            system=SYSTEM,
            user_message=request,
        )
        self._conversation.take(turn)
        return turn

    def _look(self, turn: Mapping[str, Any]) -> None:
        """Charge the request and check it against the limits."""
        found = self._found
        charged = self._cache.charge(self._conversation.bricks())
        found.meter.add(charged)
        found.epochs = turn["epoch"]
        tiers = turn["budget"]["tiers"]
        ours = sum(tier["used"] for name, tier in tiers.items() if name != "response")
        found.most_by_our_count = max(found.most_by_our_count, ours)
        if ours > PROMPT_LIMIT:
            found.problems.append(f"turn {turn['turn_id']}: {ours:,} by our count")
        if charged.prompt > REAL_LIMIT:
            found.problems.append(f"turn {turn['turn_id']}: {charged.prompt:,} real, {ours:,} ours")
        seen = {self._shows[use] for use in self._conversation.in_full if use in self._shows}
        found.in_view.append(len(seen))
        self._seen = seen
        self._charged = charged

    def _play(self, number: int, step: Step, turn: Mapping[str, Any]) -> None:
        uses = list(self._uses(number, step))
        content: list[JsonObject] = [self._conversation.thinking(step.thinking)]
        content += [{"type": "text", "text": step.said}] if step.said else []
        content += [use for use, _ in uses]
        self._end(turn, content, step.thinking)
        for use, action in uses:
            envelope = self._deliver(use, action)
            self._conversation.delivered[use["id"]] = envelope["text"]
            self._shows[use["id"]] = action
            if use["name"] != "recall_result":
                handle = self._handles[action] = str(envelope["handle"])
                self._originals[handle] = self._original(handle, action)

    def _original(self, handle: str, action: int) -> str:
        """Return the whole text of a result: the script's, or the one that the tool stored."""
        if not self._case.live:
            return self._script.actions[action].text
        return SessionResults(self._application._database, self.session).body(handle).text

    def _uses(self, number: int, step: Step) -> Iterator[tuple[JsonObject, int]]:
        """Yield the calls of a reply: the script's, and recalls of wanted results not in view."""
        for action in step.actions:
            made = self._script.actions[action]
            yield _use(f"u{number}.{action}", made.tool, self._arguments(made)), action
        for action in step.returns:
            self._found.returns += 1
            if action not in self._seen:
                self._found.recalled += 1
                handle = {"handle": self._handles[action]}
                yield _use(f"again{number}.{action}", "recall_result", handle), action

    def _arguments(self, made: Action) -> JsonObject:
        """Return a tool's arguments, with `max_tokens` as large as the result in the script."""
        if not self._case.live:
            return dict(made.arguments)
        tokens = math.ceil(made.tokens * self._case.factor) + FOOTER_TOKENS
        wanted = {name: value for name, value in made.arguments.items() if name != "skip"}
        return {**wanted, "max_tokens": tokens}

    def _end(self, turn: Mapping[str, Any], content: list[JsonObject], hidden: int) -> None:
        visible = sum(self._truth.of_block(block) for block in content[1:])
        charged = self._charged
        self.call(
            "turn/end",
            session_id=self.session,
            turn_id=turn["turn_id"],
            model=self._case.model,
            usage={
                "input_tokens": charged.fresh,
                "cache_creation_input_tokens": charged.written,
                "cache_read_input_tokens": charged.read,
                "output_tokens": hidden + round(visible),
            },
            content=content,
            stop_reason="tool_use" if len(content) > 2 else "end_turn",
        )
        self._conversation.reply(content)

    def _deliver(self, use: JsonObject, action: int) -> JsonObject:
        """Run a tool of the sidecar, or record what the client's tool gave."""
        common = {
            "session_id": self.session,
            "name": use["name"],
            "arguments": use["input"],
            "tool_use_id": use["id"],
        }
        if use["name"] == "recall_result" or self._case.live:
            return self.call("tools/call", **common)
        made = self._script.actions[action]
        return self.call("tools/record", **common, text=made.text, summary=made.summary[:500])

    def shows(self, stretch: str) -> bool:
        """Return whether a result in the window contains this text."""
        return self._conversation.shows(stretch)

    def extra_turn(self, uses: list[JsonObject]) -> list[JsonObject]:
        """Run these calls in a turn after the script's end and return the envelopes."""
        turn = self._begin(None)
        self._charged = self._cache.charge(self._conversation.bricks())
        self._end(turn, [self._conversation.thinking(100), *uses], 100)
        envelopes = [self._deliver(use, -1) for use in uses]
        for use, envelope in zip(uses, envelopes, strict=True):
            self._conversation.delivered[use["id"]] = envelope["text"]
        return envelopes


def _use(identifier: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}
