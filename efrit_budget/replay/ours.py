"""Drive a recording through the real budget, in a database of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from efrit_budget.budget.models import Model
from efrit_budget.errors import JsonObject
from efrit_budget.replay.blocks import Measure, SentBlock
from efrit_budget.replay.recording import RecordedTurn, Recording

SYSTEM = (
    "You work inside a person's editor, on the project at the root you were given. Use the tools "
    "to look before you change anything. Prefer a narrow search to a wide one, and read only the "
    "part of a file you need. Results end in a line that says what they cost and what is left; a "
    "result that was cut says how to go on. Older results shrink to a line that names their "
    "handle, and recall_result brings any of them back whole. Paths are relative to the root. "
    "Every tool takes max_tokens, the most its result may cost."
)
Call = Callable[[str, JsonObject], Any]


@dataclass
class Clock:
    """The time of the session that is replayed."""

    moment: float = 0.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return self.moment


@dataclass(frozen=True)
class Means:
    """Everything that a replay uses: the sidecar's methods, their clock, a folder, a model."""

    call: Call
    clock: Clock
    root: str
    model: Model
    limits: JsonObject


@dataclass
class Request:
    """A request of the replayed session, and the results that its reply then had."""

    prefix: list[SentBlock]
    """The system text and the tools."""
    blocks: list[SentBlock]
    """All blocks, those of the prefix first."""
    is_rewrite: bool
    delivered: dict[str, str] = field(default_factory=dict)
    """The delivered text of each result, by the id of its tool use."""
    whole: dict[str, str] = field(default_factory=dict)
    """The same, with the text itself where a line says that the window has it already."""
    reply: list[SentBlock] = field(default_factory=list)


class ReplayedSession:
    """A session of the sidecar that gets the recorded messages, replies and results."""

    def __init__(self, means: Means, measure: Measure) -> None:
        self._call = means.call
        self._clock = means.clock
        self._measure = measure
        self._model = means.model.name
        opened = self._call("session/open", {"root": means.root, "limits": means.limits})
        self._session = str(opened["session_id"])
        self.prompt_limit = 0
        self._prefix: list[SentBlock] = []
        self._messages: list[SentBlock] = []
        self._first: dict[str, str] = {}

    def requests(self, recording: Recording) -> Iterator[Request]:
        """Yield each request, with the results of its reply, in order."""
        self._register(recording)
        for turn in recording.turns:
            yield self._play(turn)

    def _register(self, recording: Recording) -> None:
        names = {block["name"] for turn in recording.turns for block in turn.calls()}
        own = {tool["name"] for tool in self._call("tools/list", {})["tools"]}
        tools = [
            {"name": name, "description": f"{name}.", "input_schema": {"type": "object"}}
            for name in sorted(names - own)
        ]
        self._call("tools/register", {"session_id": self._session, "tools": tools})

    def _play(self, turn: RecordedTurn) -> Request:
        self._clock.moment = turn.began
        begun = self._call(
            "turn/begin",
            {
                "session_id": self._session,
                "model": self._model,
                "system": SYSTEM,
                "user_message": turn.message,
            },
        )
        request = self._take(begun)
        self._clock.moment = turn.ended
        ended = self._call(
            "turn/end",
            {
                "session_id": self._session,
                "turn_id": begun["turn_id"],
                "content": turn.reply,
                "stop_reason": "tool_use" if turn.results else "end_turn",
            },
        )
        request.reply = self._measured(turn.reply)
        self._append(ended["append"])
        for block in turn.calls():
            self._record(turn, block, request)
        return request

    def _take(self, begun: JsonObject) -> Request:
        rewrite, append = begun["rewrite"], begun["append"]
        if rewrite is not None or not self._prefix:
            self._prefix = self._measured([*begun["tools"], *begun["system"]])
        if rewrite is not None:
            self._messages = []
        self._append(rewrite or append)
        blocks = [*self._prefix, *self._messages]
        self.prompt_limit = begun["budget"]["prompt_limit"]
        return Request(self._prefix, blocks, rewrite is not None)

    def _append(self, added: JsonObject | None) -> None:
        for message in added["messages"] if added else ():
            self._messages += self._measured(message["content"])

    def _measured(self, blocks: Sequence[JsonObject]) -> list[SentBlock]:
        return [self._measure.block(block) for block in blocks]

    def _record(self, turn: RecordedTurn, block: JsonObject, request: Request) -> None:
        result = turn.results.get(block["id"])
        if result is None:
            return
        envelope = self._call(
            "tools/record",
            {
                "session_id": self._session,
                "name": block["name"],
                "arguments": block["input"],
                "tool_use_id": block["id"],
                "text": result.text,
                "status": "error" if result.is_error else "success",
                "include_data": False,
            },
        )
        text = envelope["text"]
        request.delivered[block["id"]] = text
        request.whole[block["id"]] = self._first.setdefault(result.text, text)
