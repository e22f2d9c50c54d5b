"""The allowance of a tool call."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

from efrit_budget.budget.calibration import FRAME
from efrit_budget.budget.estimate import estimate
from tests.conversation.client import Client, text, tool_use, words
from tests.conversation.conftest import OpenClient
from tests.conversation.recalled import read

SMALL: dict[str, Any] = {"total": 30_000}


def parallel(client: Client, count: int) -> list[dict[str, Any]]:
    """Make this many calls of one reply at once, which together exceed the allowance."""
    uses = [
        tool_use(client.new_id(), "catalogue", max_files=3_000 - number) for number in range(count)
    ]
    client.end(*uses)
    found: dict[str, dict[str, Any]] = {}

    def run(use: dict[str, Any]) -> None:
        found[use["id"]] = client.call(
            "tools/call", name=use["name"], arguments=use["input"], tool_use_id=use["id"]
        )

    threads = [threading.Thread(target=run, args=(use,)) for use in uses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[use["id"]] for use in uses]


# Sharing


def test_five_calls_at_once_share_what_is_left_and_cannot_overdraw_it(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL, per_tool_default=20_000)
    client.begin("List.")
    available = client.budget()["available_for_tools"]
    tokens = [envelope["tokens"] for envelope in parallel(client, 5)]
    assert sum(tokens) <= available
    assert min(tokens) > 0.7 * max(tokens)
    assert sum(tokens) > 0.8 * available
    begun = client.begin()
    assert {entry["state"] for entry in client.entries()} == {"full"}
    assert begun["budget"]["remaining"] >= 0


def test_calls_one_after_the_other_leave_to_those_behind_what_they_do_not_use(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL, per_tool_default=20_000)
    client.begin("List.")
    client.end(*(tool_use(f"use{number}", "eval_sexp") for number in range(5)))
    first = client.record("use0", words(20_000, 1))
    for number in range(1, 4):
        client.record(f"use{number}", "done\n")
    last = client.record("use4", words(20_000, 2))
    assert first["tokens"] < 4_500
    assert last["tokens"] > 3 * first["tokens"]


def test_a_call_alone_may_use_what_its_tool_may(client: Client) -> None:
    client.begin("List.")
    (envelope,) = parallel(client, 1)
    assert 6_500 < envelope["tokens"] <= 8_000


def test_a_tool_may_have_a_limit_of_its_own(open_client: OpenClient) -> None:
    client = open_client(per_tool={"catalogue": 300})
    assert client.use("catalogue", max_files=900)["tokens"] <= 300
    assert client.record("use", words(5_000))["tokens"] > 3_000


# Pressed


def pressed(open_client: OpenClient, left: int, *, pinned: bool = True) -> Client:
    """Begin a turn whose large user message leaves about `left` tokens; return the client."""
    client = open_client(
        total=30_000,
        system=500,
        history=500,
        user_message=21_500,
        tool_results=1_500,
        response=6_000,
        index_share=0,
    )
    client.system_text = words(1_500)
    client.begin("Hello.")
    client.end(tool_use("first", "eval_sexp"))
    client.record("first", words(400, 1))
    if pinned:
        client.call("worklog/pin", handle="r1")
    spare = client.begin()["budget"]["available_for_tools"]
    client.end(text("I see."))
    client.begin(costing(client, spare - left))
    return client


def costing(client: Client, tokens: int) -> str:
    """Return a text of about this many of the model's tokens."""
    size = tokens
    while estimate(words(size, 2)) * client.factor() > tokens:
        size -= 20
    return words(size, 2)


def test_a_pressed_session_still_grants_the_floor_and_says_so(open_client: OpenClient) -> None:
    client = pressed(open_client, 500, pinned=False)
    assert client.budget()["available_for_tools"] < 800
    for envelope in parallel(client, 2):
        assert 300 < envelope["tokens"] <= 500
        assert " Little budget is left. continuation_token r" in envelope["text"]


def test_a_share_above_the_floor_is_not_called_little(open_client: OpenClient) -> None:
    client = pressed(open_client, 2_500)
    for envelope in parallel(client, 2):
        assert 600 < envelope["tokens"] < 2_000
        assert "Little budget" not in envelope["text"]


def test_the_floor_counts_on_what_can_leave_as_well(open_client: OpenClient) -> None:
    client = pressed(open_client, 500, pinned=False)
    assert client.budget()["available_for_tools"] < 800
    envelopes = parallel(client, 2)
    assert min(envelope["tokens"] for envelope in envelopes) > 250
    client.begin()
    assert {envelope["text"] for envelope in envelopes} <= set(client.results().values())


def test_when_nothing_is_left_a_result_is_a_line_or_two_with_its_handle(
    open_client: OpenClient,
) -> None:
    client = pressed(open_client, 300)
    envelopes = parallel(client, 9)
    assert {envelope["status"] for envelope in envelopes} == {"success"}
    for envelope in envelopes:
        assert envelope["tokens"] <= 80
        assert envelope["handle"] in envelope["text"]
    client.begin()
    assert client.call("session/messages")["messages"] == client.messages


def test_a_result_of_which_nothing_can_be_shown_says_how_it_comes_back(
    open_client: OpenClient,
) -> None:
    client = open_client()
    client.teach(2.4)
    whole = words(20_000)
    envelope = client.record("use", whole, arguments={"max_tokens": 50})
    first, footer = envelope["text"].split("\n", 1)
    assert first == f"§ {envelope['handle']} stored, not shown"
    assert footer.lstrip("\n") == f"📏 ~{envelope['tokens']} tokens · 60k left"
    assert envelope["tokens"] <= 50
    assert envelope["data"]["returned"] == 0
    assert read(client, envelope["handle"], whole).returned == envelope["data"]["total"]


# What a call asks for itself


def test_every_tool_takes_max_tokens(client: Client) -> None:
    tools = client.app.call("tools/list", {})["tools"]
    for tool in tools:
        parameter = tool["input_schema"]["properties"]["max_tokens"]
        assert (parameter["minimum"], parameter["maximum"]) == (50, 1_000_000), tool["name"]


@pytest.mark.parametrize("asked", [0, -5, 49, 1_000_001, "many", "", 12.5, [], 10**400])
def test_an_allowance_that_cannot_be_names_the_range(client: Client, asked: Any) -> None:
    for name in ("catalogue", "file_info", "recall_result"):
        envelope = client.use(name, max_tokens=asked)
        assert envelope["status"] == "error"
        assert "max_tokens is a whole number from 50 to 1,000,000" in envelope["message"]


@pytest.mark.parametrize("asked", [200, "200", "200 "])
def test_a_number_as_a_text_is_a_number(client: Client, asked: Any) -> None:
    envelope = client.use("catalogue", max_files=900, max_tokens=asked)
    assert envelope["status"] == "success"
    assert 120 < envelope["tokens"] <= 200


def test_a_call_may_not_ask_for_more_than_its_tool_may_use(client: Client) -> None:
    assert client.use("catalogue", max_files=3_000, max_tokens=500_000)["tokens"] <= 8_000


@pytest.mark.parametrize("asked", [0, -5, "many", None, 10**400, [1]])
def test_what_ran_in_the_client_is_kept_whatever_it_asked_for(client: Client, asked: Any) -> None:
    envelope = client.record("use", words(20_000), arguments={"max_tokens": asked})
    assert envelope["status"] == "success"
    assert envelope["tokens"] <= 8_000


# Clients without turns


def test_a_client_that_tells_of_no_turns_gets_what_the_window_still_has(client: Client) -> None:
    tokens = [
        client.record(f"use{number}", words(20_000, number))["tokens"] for number in range(14)
    ]
    assert min(tokens[:8]) > 6_500
    assert sum(tokens) <= 70_000 + 3 * 60
    assert tokens[-1] <= 60
    budget = client.budget()
    used = sum(tokens) + len(tokens) * math.ceil(FRAME)
    assert budget["tiers"]["tool_results"]["used"] == used
    assert budget["used"] == used
    assert budget["remaining"] == max(0, 70_000 - used)
    assert budget["fill"] == ("low" if budget["remaining"] else "full")
    shown = f"{70_000 - used:,} until it compacts" if budget["remaining"] else "compacts next"
    assert budget["summary"].startswith(f"{used:,} of 70,000 tokens in the prompt, {shown}: ")


def test_the_first_turn_begins_with_an_empty_window(client: Client) -> None:
    for number in range(6):
        client.record(f"use{number}", words(20_000, number))
    begun = client.begin("Hello.")
    assert begun["budget"]["tiers"]["tool_results"]["used"] == 0
    assert begun["budget"]["available_for_tools"] > 60_000


def test_the_footer_tells_what_is_left(client: Client) -> None:
    client.begin("Do it.")
    client.end(tool_use("use", "eval_sexp"))
    left = client.budget()["remaining"]
    envelope = client.record("use", words(3_000))
    shown = (left - envelope["tokens"]) // 1_000
    assert envelope["text"].endswith(f"📏 ~{envelope['tokens']:,} tokens · {shown}k left")
