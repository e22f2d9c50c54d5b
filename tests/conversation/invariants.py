"""The design's invariants, as checks of what a client sees."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from efrit_budget.errors import EfritError
from tests.conversation.api_rules import violations
from tests.conversation.client import MODEL, Block, Client
from tests.conversation.ledger import THINKING, Count, Rate, Reply, recount
from tests.conversation.recalled import SAME

VARYING = re.compile(r'"(created|touched|ended|begun|last_turn)": [0-9.e+]+|"(owner)": "[0-9a-f]+"')
LEAST = 50
PER_TOOL_DEFAULT = 8_000
MOST_ROUNDED_UP = 8
"""The most tokens that a change of the family adds to the estimate of a result."""


def timeless(value: Any) -> str:
    """Return an answer as JSON without times, and without the mark of the process."""
    if isinstance(value, EfritError):
        value = [type(value).__name__, value.message, value.data]
    if isinstance(value, Exception):
        value = [type(value).__name__, str(value)]
    return VARYING.sub(r'"\1\2": 0', json.dumps(value, default=vars))


def everything(client: Client) -> str:
    """Return all that a client can read about a session."""
    seen = [client.call(f"session/{name}") for name in ("messages", "transcript", "status")]
    return timeless([*seen, client.call("worklog/list")])


def sendable(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks of a reply that can be sent back: no blank text, no unfinished thinking."""
    kept = [
        block
        for block in blocks
        if not (block["type"] == "text" and not block["text"].strip())
        and not (block["type"] == "thinking" and not block["signature"])
    ]
    while kept and kept[-1]["type"] in THINKING:
        kept.pop()
    return kept


def check_request(client: Client, begun: dict[str, Any]) -> None:
    """Check that a request is valid, within its limit, and the same as the sidecar's list."""
    takes_system = client.model == MODEL
    assert not violations(client.messages, system_messages=takes_system)
    budget = begun["budget"]
    used = sum(tier["used"] for tier in budget["tiers"].values())
    limits = client.limits()
    assert used <= limits["total"] - limits["response"]
    assert 1 <= begun["max_tokens"] <= max(1, limits["response"])
    check_lines_that_point(client)


def check_lines_that_point(client: Client) -> None:
    """Check that each line that points to another result points to one that is shown in full."""
    handles = {
        entry["handle"]
        for entry in client.entries()
        if entry["state"] == "full" and not SAME.match(shown(client, entry))
    }
    for delivered in client.results().values():
        said = SAME.match(delivered)
        assert not said or said[1] in handles, (delivered, handles)


def shown(client: Client, entry: dict[str, Any]) -> str:
    """Return the text of an entry in the conversation."""
    return client.results().get(entry["tool_use_id"], "")


def check_rewrite(client: Client, begun: dict[str, Any], band: str, in_hand: int) -> None:
    """Check that a rewrite leaves no thinking, and each tier at its mark or as small as possible.

    A warning to a model that takes no system messages rewrites nothing else.
    """
    blocks = [block for message in client.messages for block in message["content"]]
    assert not [block for block in blocks if block["type"] in THINKING]
    if client.model == MODEL or begun["budget"]["band"] == band:
        check_tiers(client, begun, in_hand)


def check_tiers(client: Client, begun: dict[str, Any], in_hand: int) -> None:
    """Check that no tier is above its limit, apart from pins and the turn in hand."""
    tiers = begun["budget"]["tiers"]
    entries = [entry for entry in client.entries() if entry["turn"] is not None]
    free = [entry for entry in entries if entry["turn"] < in_hand and not entry["pinned"]]
    if tiers["tool_results"]["used"] > tiers["tool_results"]["limit"]:
        assert not [entry for entry in free if entry["state"] == "full" and entry["handle"]]
    held = {entry["turn"] for entry in entries if entry["pinned"]}
    if tiers["history"]["used"] > tiers["history"]["limit"]:
        left = {entry["turn"] for entry in free if entry["state"] in ("full", "compressed")}
        assert not left - held
    if tiers["user_message"]["used"] > tiers["user_message"]["limit"]:
        asked = [turn for turn in client.call("session/transcript")["turns"] if turn["in_window"]]
        assert len([turn for turn in asked if turn["kind"] == "request"]) == 1


def check_delivery(
    client: Client, envelope: dict[str, Any], name: str, arguments: dict[str, Any]
) -> None:
    """Check that a page keeps within its allowance and costs what its envelope says."""
    most = client.per_tool
    asked = arguments.get("max_tokens")
    allowed = min(most, int(asked)) if asked is not None else most
    assert envelope["tokens"] <= max(LEAST, allowed), (name, envelope["text"][-300:])
    factor = client.factor()
    cost = client.family().estimate(envelope["text"]) * factor
    assert abs(envelope["tokens"] - math.ceil(cost)) <= 1 + cost * 1e-4


def check_standing(client: Client, recorded: int) -> None:
    """Check that the client's list is the sidecar's, and that every recorded entry is there."""
    assert client.call("session/messages")["messages"] == client.messages
    states = ("announced", "full", "compressed", "gone")
    by_state = [client.listed(states=[state]) for state in states]
    assert client.listed() == sum(by_state) == recorded


def last_request(client: Client, replies: list[Reply]) -> Count:
    """Return the cost of the last request."""
    rate, factor = rate_of(client), client.factor()
    tiers = recount(client.system, client.tools, client.messages, replies, (), rate)
    return tiers.system.plus(tiers.user_message, factor).plus(tiers.rest, factor)


def rate_of(client: Client) -> Rate:
    """Return factor, frame and family of the latest request's model."""
    calibration, slack = client.budget()["calibration"], MOST_ROUNDED_UP * client.family_changes
    return Rate(calibration["factor"], calibration["frame"], client.family(), slack)


def check_ledger(client: Client, replies: list[Reply], unsent: list[str]) -> None:
    """Check that the reported tiers agree with the parts of the request."""
    budget = client.budget()
    if not budget["turn"]:
        return
    rate = rate_of(client)
    used = {name: tier["used"] for name, tier in budget["tiers"].items()}
    found = recount(client.system, client.tools, client.messages, replies, unsent, rate)
    assert found.system.agrees_with(used["system"], rate), (found, used)
    assert found.user_message.agrees_with(used["user_message"], rate), (found, used)
    assert found.rest.agrees_with(used["history"] + used["tool_results"], rate), (found, used)
