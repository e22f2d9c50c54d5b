"""A recorded session, turn by turn, whatever program wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from efrit_budget.errors import EfritError, JsonObject

KINDS = frozenset({"text", "image"})
"""The types of blocks that a user message or a result may have here."""


class RecordingError(EfritError):
    """A file is no recording that can be replayed."""


@dataclass(frozen=True)
class Result:
    """The result of a tool call."""

    text: str
    is_error: bool = False


@dataclass
class RecordedTurn:
    """A reply, with the user message before it and the results of its tool calls."""

    message: list[JsonObject] | None
    """The blocks of the user message; None if only results stand before the reply."""
    reply: list[JsonObject] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    """The results by the ids of their tool uses."""
    began: float = 0.0
    """The time at which the request was sent, in seconds."""
    ended: float = 0.0
    model: str = ""
    usage: Mapping[str, int] | None = None
    """The tokens that the API counted, by its names."""

    def calls(self) -> Iterator[JsonObject]:
        """Yield the tool uses of the reply."""
        return (block for block in self.reply if block["type"] == "tool_use")


@dataclass(frozen=True)
class Recording:
    """A recorded session."""

    name: str
    turns: Sequence[RecordedTurn]


class RecordingDraft:
    """Collects the messages of a recording into turns."""

    def __init__(self) -> None:
        self.turns: list[RecordedTurn] = []
        self._message: list[JsonObject] = []
        self._latest = 0.0
        self._by_use: dict[str, RecordedTurn] = {}

    def add_message(self, blocks: Sequence[JsonObject], moment: float) -> None:
        """Add the blocks of a user message, which goes with the next reply."""
        self._latest = moment or self._latest
        self._message += [block for block in blocks if not _is_blank(block)]

    def begin_reply(self, model: str, moment: float) -> RecordedTurn:
        """Return the turn that a reply's blocks are added to.

        It is a new one, unless nothing stands between the reply and the reply before.
        """
        if not self._message and self.turns and not any(self.turns[-1].calls()):
            return self.turns[-1]
        message = self._message or None
        began = self._latest or moment
        turn = RecordedTurn(message, began=began, ended=moment or began, model=model)
        self.turns.append(turn)
        self._message = []
        return turn

    def add_block(self, turn: RecordedTurn, block: JsonObject, moment: float) -> None:
        """Add a block to the reply of a turn."""
        if _is_blank(block):
            return
        turn.reply.append(block)
        turn.ended = max(turn.ended, moment)
        if block["type"] == "tool_use":
            self._by_use[block["id"]] = turn

    def add_result(self, tool_use_id: str, result: Result, moment: float) -> None:
        """Add the result of a tool use; ignore one whose tool use is not in the recording."""
        self._latest = moment or self._latest
        if tool_use_id in self._by_use:
            self._by_use[tool_use_id].results[tool_use_id] = result

    def recording(self, name: str) -> Recording:
        """Return the recording, without replies of which nothing remained."""
        turns = [turn for turn in self.turns if turn.reply]
        if not turns:
            raise RecordingError(
                f"{name}: no model's reply was found. Replay reads the JSON lines of Claude Code "
                "and pi, and what efrit-budget sessions export writes."
            )
        return Recording(name, turns)


def _is_blank(block: JsonObject) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def as_blocks(content: Any) -> list[JsonObject]:
    """Return a message's content, a text or a list, as blocks of text and images."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") in KINDS]


def as_text(content: Any) -> str:
    """Return the text of a result's content; an image is only named."""
    return "\n".join(
        block["text"] if block["type"] == "text" else "[image]" for block in as_blocks(content)
    )


def seconds(moment: Any) -> float:
    """Return a moment, given in ISO 8601 or in milliseconds, in seconds; 0 if there is none."""
    if isinstance(moment, str):
        try:
            return datetime.fromisoformat(moment).timestamp()
        except ValueError:
            return 0.0
    return float(moment) / 1000 if isinstance(moment, int | float) else 0.0
