"""Text that enters the window is counted whole, through whichever door it comes.

A person sees the tokens of each tool's line and the gauge on top add up to what the model is sent:
a page that a tool may fill with 2,000 tokens does not cost 20,000.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from tests.budget.made_texts import Made, made
from tests.connection import Connection
from tests.conversation.client import tool_use
from tests.soak import ANEW, amount

DENSE, DENSE_TOKENS = "ꔀ", 3
"""A character of three tokens, whatever stands beside it."""
MODEL = "claude-opus-4"
"""A model whose tokens are those of the estimate, without a factor that would hide an error."""
MOST = 1.2
LEAST_TOKENS = 300
ALLOWANCES = (600, 2_000, 8_000)
SLICES, WIDTH = 16, 128
"""The places where the estimate once looked: this many slices of this width, evenly spread."""


@dataclass(frozen=True)
class Delivered:
    """A text as the model is sent it, the tokens told for it, and those it may have."""

    door: str
    text: str
    told: int
    allowance: int

    def excess(self, tokens: int) -> float:
        """Return the tokens as a multiple of those told or allowed, whichever is higher."""
        than_told = tokens / self.told if tokens >= LEAST_TOKENS else 0.0
        return max(than_told, tokens / self.allowance)


def call(sidecar: Connection, session: str, use: dict[str, Any]) -> int:
    """Call a tool of the sidecar, to which the person agrees, and return the tokens told."""
    params = {"session_id": session, "name": use["name"], "tool_use_id": use["id"]}
    params["arguments"] = use["input"]
    envelope = sidecar.request("tools/call", **params)
    if envelope["status"] == "needs_confirmation":
        envelope = sidecar.request("tools/call", **params, confirm_id=envelope["confirm"]["id"])
    return int(envelope["tokens"])


def record(sidecar: Connection, session: str, use: dict[str, Any], text: str) -> int:
    """Record a result of one of the client's tools, and return the tokens told."""
    params = {"session_id": session, "name": use["name"], "tool_use_id": use["id"]}
    envelope = sidecar.request("tools/record", **params, arguments=use["input"], text=text)
    return int(envelope["tokens"])


def deliver(
    sidecar: Connection, project: Path, text: str, allowance: int, **arguments: int
) -> list[Delivered]:
    """Send a text as a message, as a file read and printed, and as the result of Emacs's tool."""
    (project / "file.txt").write_text(text, encoding="utf-8", newline="")
    limits = {"user_message": allowance, "per_tool_default": allowance}
    session = sidecar.request("session/open", root=str(project), limits=limits)["session_id"]
    begin = {"session_id": session, "model": MODEL, "system": "Work."}
    begun = sidecar.request("turn/begin", **begin, user_message=text)
    uses = [
        tool_use("read", "read_file", path="file.txt", **arguments),
        tool_use("run", "run_command", command="cat file.txt", **arguments),
        tool_use("record", "describe_symbol", **arguments),
    ]
    sidecar.request("turn/end", session_id=session, content=uses, stop_reason="tool_use")
    told = {use["id"]: call(sidecar, session, use) for use in uses[:2]}
    told["record"] = record(sidecar, session, uses[2], text)
    gauge = sidecar.request("turn/begin", **begin)["budget"]
    frames = len(uses) * gauge["calibration"]["frame"]
    assert gauge["tiers"]["tool_results"]["used"] == sum(told.values()) + frames
    told["message"] = begun["budget"]["tiers"]["user_message"]["used"]
    message, _, results = sidecar.request("session/messages", session_id=session)["messages"]
    sent = {block["tool_use_id"]: block["content"] for block in results["content"]}
    sent["message"] = message["content"]
    return [
        Delivered(door, "".join(block["text"] for block in sent[door]), tokens, allowance)
        for door, tokens in told.items()
    ]


def some_made(count: int) -> Iterator[tuple[Made, int, dict[str, int]]]:
    """Yield made texts that are not blank, each with an allowance, and arguments to ask for it."""
    rng = random.Random(None if ANEW else 5)
    for one in map(made, rng.sample(range(10**6, 10**9), count)):
        allowance = rng.choice(ALLOWANCES)
        arguments = rng.choice([{}, {"max_tokens": allowance}])
        if one.text.strip():
            yield one, allowance, arguments


def steered(size: int) -> str:
    """Return a text that is blank only in the places once sampled."""
    text = [DENSE] * size
    for at in range(SLICES):
        start = int(at * (size - WIDTH) / (SLICES - 1))
        text[start : start + WIDTH] = "\n" * WIDTH
    return "".join(text)


@pytest.mark.parametrize("size", [4_000, 60_000, 400_000])
def test_a_text_that_is_blank_where_a_sample_looked_is_counted_whole(
    sidecar: Connection, project: Path, size: int
) -> None:
    for found in deliver(sidecar, project, steered(size), 8_000):
        assert found.excess(DENSE_TOKENS * found.text.count(DENSE)) <= MOST, found.door


def test_what_is_told_is_the_estimate_of_all_that_is_delivered_and_within_what_is_allowed(
    sidecar: Connection, project: Path
) -> None:
    for one, allowance, arguments in some_made(amount(6, 60)):
        for found in deliver(sidecar, project, one.text, allowance, **arguments):
            assert found.told == estimate(found.text), (found.door, one.name)
            assert found.told <= allowance, (found.door, one.name)


@pytest.mark.process
@pytest.mark.soak(alone=True)
def test_made_texts_have_at_most_a_fifth_more_tokens_than_told_and_than_allowed(
    sidecar: Connection, project: Path
) -> None:
    real = importlib.import_module("tests.benchmarks.tokenizers_real").claude()
    excesses = []
    for one, allowance, arguments in some_made(amount(0, 60)):
        found = deliver(sidecar, project, one.text, allowance, **arguments)
        for each, tokens in zip(found, real([each.text for each in found]), strict=True):
            excesses.append((each.excess(tokens), each.door, allowance, one.name))
    assert max(excesses)[0] <= MOST, [each for each in excesses if each[0] > MOST]
