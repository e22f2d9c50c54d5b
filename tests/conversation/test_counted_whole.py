"""Text that enters the window is counted whole, dense and blank parts alike."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.budget.made_texts import made
from tests.connection import Connection
from tests.conversation.client import MODEL
from tests.soak import amount

DENSE, DENSE_TOKENS = "ꔀ", 3
"""A character of three tokens, whatever stands beside it."""
MOST = 1.2
SLICES, WIDTH = 16, 128
"""The places where the estimate once looked: this many slices of this width, evenly spread."""


def steered(size: int) -> str:
    """Return a text that is blank only in the places once sampled."""
    text = [DENSE] * size
    for at in range(SLICES):
        start = int(at * (size - WIDTH) / (SLICES - 1))
        text[start : start + WIDTH] = "\n" * WIDTH
    return "".join(text)


def tokens_in(text: str) -> int:
    """Return the fewest tokens that a text can have."""
    return DENSE_TOKENS * text.count(DENSE)


def call(session: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the params of a call."""
    return {"session_id": session, "name": name, "arguments": arguments, "tool_use_id": name}


def record(sidecar: Connection, session: str, text: str) -> dict[str, Any]:
    """Record a result of one of the client's tools."""
    found: dict[str, Any] = sidecar.request("tools/record", **call(session, "shown"), text=text)
    return found


def read(sidecar: Connection, session: str, project: Path, text: str) -> dict[str, Any]:
    """Write a file and return what `read_file` delivers of it."""
    (project / "file.txt").write_text(text, encoding="utf-8", errors="replace")
    found: dict[str, Any] = sidecar.request(
        "tools/call", **call(session, "read_file", path="file.txt")
    )
    return found


def run(sidecar: Connection, session: str, project: Path, text: str) -> dict[str, Any]:
    """Write a file, print it with `run_command` and return what that delivers."""
    (project / "file.txt").write_text(text, encoding="utf-8", errors="replace")
    params = call(session, "run_command", command="cat file.txt")
    asked = sidecar.request("tools/call", **params)
    found: dict[str, Any] = sidecar.request(
        "tools/call", **params, confirm_id=asked["confirm"]["id"]
    )
    return found


def send_message(sidecar: Connection, session: str, text: str) -> tuple[str, int]:
    """Send a user message and return the text that is sent and its counted tokens."""
    begun = sidecar.request(
        "turn/begin", session_id=session, model=MODEL, system="Work.", user_message=text
    )
    message = (begun["append"] or begun["rewrite"])["messages"][0]
    status = sidecar.request("session/status", session_id=session)
    sent = "".join(block["text"] for block in message["content"])
    return sent, status["budget"]["tiers"]["user_message"]["used"]


@pytest.mark.parametrize("size", [4_000, 60_000, 400_000])
def test_a_text_that_is_blank_where_a_sample_looked_is_counted_whole(
    sidecar: Connection, session: str, project: Path, size: int
) -> None:
    text = steered(size)
    for envelope in (
        record(sidecar, session, text),
        read(sidecar, session, project, text),
        run(sidecar, session, project, text),
    ):
        assert tokens_in(envelope["text"]) <= MOST * envelope["tokens"]
    sent, counted = send_message(sidecar, session, text)
    assert tokens_in(sent) <= MOST * counted


@pytest.mark.soak(alone=True)
def test_made_texts_through_every_door_have_at_most_a_fifth_more_tokens_than_told(
    sidecar: Connection, project: Path
) -> None:
    real = importlib.import_module("tests.benchmarks.tokenizers_real").claude()
    low = []
    for seed in range(2_000_000, 2_000_000 + amount(0, 200)):
        one = made(seed)
        text = one.text.encode("utf-8", "replace").decode()
        opened = sidecar.request("session/open", root=str(project), limits={"total": 10**6})
        session = opened["session_id"]
        delivered = [
            (found["text"], found["tokens"])
            for found in (
                record(sidecar, session, text),
                read(sidecar, session, project, text),
                run(sidecar, session, project, text),
            )
        ]
        delivered.append(send_message(sidecar, session, json.loads(json.dumps(text))))
        tokens = real([shown for shown, _ in delivered])
        for name, true, (_, told) in zip(
            ("record", "read_file", "run_command", "user message"), tokens, delivered, strict=True
        ):
            if true >= 300 and true > MOST * told:
                low.append((round(true / told, 2), name, one.name))
    assert not low, sorted(low, reverse=True)
