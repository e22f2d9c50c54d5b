"""Turns of recorded sessions: the cost of new results by the API's own count.

The sessions lie in the folder that `EFRIT_TRAJECTORIES` names, in pi's format.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = "EFRIT_TRAJECTORIES"
PARTS = ("input", "cacheRead", "cacheWrite")


@dataclass
class Turn:
    """The results between two replies of one model, and their cost."""

    model: str
    before: int
    """The tokens of the first reply's prompt and of that reply."""
    results: list[str] = field(default_factory=list)
    tokens: int = 0
    """The tokens that the results added to the prompt of the second reply."""
    plain: bool = True
    """True if only results in text stand between the two replies."""


def turns() -> Iterator[Turn]:
    """Yield the turns of all sessions that have only results in text."""
    folder = os.environ.get(FOLDER)
    for path in sorted(Path(folder).glob("pi-*.jsonl.gz")) if folder else []:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (turn for turn in in_session(map(json.loads, lines)) if turn.tokens > 0)


def in_session(events: Iterator[dict[str, Any]]) -> Iterator[Turn]:
    """Yield the turns of one session."""
    turn: Turn | None = None
    for event in events:
        message = event.get("message", {})
        if message.get("role") == "assistant":
            usage = message.get("usage") or {}
            size = sum(usage.get(part, 0) for part in PARTS)
            if turn and turn.plain and turn.results and turn.model == message["model"] and size:
                turn.tokens = size - turn.before
                yield turn
            is_claude = message.get("provider") == "anthropic" and size
            turn = Turn(message["model"], size + usage["output"]) if is_claude else None
        elif turn is not None:
            add(turn, event)


def add(turn: Turn, event: dict[str, Any]) -> None:
    """Add the content of an event to the turn."""
    message = event.get("message", {})
    blocks = message.get("content", [])
    is_text = all(block["type"] == "text" for block in blocks if isinstance(block, dict))
    if message.get("role") == "toolResult" and is_text:
        turn.results.append("".join(block["text"] for block in blocks))
    else:
        turn.plain = False
