"""A rewrite that saves: by price, after a pause, by the size and the use of what leaves."""

from __future__ import annotations

from typing import Any

import pytest

from efrit_budget.budget.prices import CACHE_SECONDS
from tests.conversation.client import Client, text, tool_use, words
from tests.conversation.conftest import OpenClient

LONG_FILE = "def written_here():\n    pass\n" * 100


def large(number: int) -> str:
    """Return a result of about 4,000 tokens with a name of its own."""
    return f"only_in_{number}\n" + words(4_000, number)


def states(client: Client) -> dict[str, str]:
    """Return the state of each result by its handle."""
    return {entry["handle"]: entry["state"] for entry in client.entries()}


def work(client: Client, turns: int, model: str | None = None) -> list[str]:
    """Run turns with a small result each; return the reasons for rewrites, in order."""
    reasons = []
    for number in range(turns):
        reasons += client.begin(model=model)["rewrite_reasons"]
        client.end(text("Go on."), tool_use(client.new_id(), "eval_sexp", at=number))
        (use,) = [block for block in client.messages[-1]["content"] if block["type"] == "tool_use"]
        client.record(use["id"], f"done {number}", arguments=use["input"])
    return reasons


@pytest.fixture
def full(open_client: OpenClient) -> Client:
    """A client with large results that were used long ago."""
    client = open_client(recent_turns=1)
    for number in range(6):
        client.turn(large(number), message=None if number else "Find it.")
    return client


def test_a_rewrite_comes_once_reading_has_cost_what_patience_allows(full: Client) -> None:
    reasons = work(full, 60)
    assert "cost" in reasons
    assert "size" not in reasons


def test_without_patience_only_a_full_prompt_is_rewritten(open_client: OpenClient) -> None:
    client = open_client(recent_turns=1, patience=0)
    for number in range(6):
        client.turn(large(number), message=None if number else "Find it.")
    assert work(client, 60) == []


def test_a_model_without_a_price_is_not_rewritten_to_save(open_client: OpenClient) -> None:
    client = open_client(recent_turns=1)
    for number in range(6):
        client.turn(large(number), message=None if number else "Find it.", model="of-my-own")
    client.clock.moment += CACHE_SECONDS + 1
    assert work(client, 40, "of-my-own") == []


@pytest.mark.parametrize(("pause", "reasons"), [(1, ["cold"]), (-1, [])])
def test_after_a_pause_the_expired_cache_is_a_reason(
    full: Client, pause: int, reasons: list[str]
) -> None:
    full.clock.moment += CACHE_SECONDS + pause
    assert full.begin("And now?")["rewrite_reasons"] == reasons


def test_a_pause_with_little_to_free_is_no_reason(open_client: OpenClient) -> None:
    client = open_client()
    client.turn("short", message="Find it.")
    client.clock.moment += CACHE_SECONDS + 1
    assert client.begin("And now?")["rewrite_reasons"] == []


def test_the_largest_of_those_unused_for_about_as_long_leaves_first(
    open_client: OpenClient,
) -> None:
    client = open_client(recent_turns=1, low_water=0.25)
    sizes = [2_000, 7_000, 2_000, 2_000]
    for number, size in enumerate(sizes):
        client.turn(words(size, number), message=None if number else "Find it.")
    client.clock.moment += CACHE_SECONDS + 1
    client.begin("And now?")
    assert [states(client)[f"r{number}"] for number in range(1, 5)] == [
        "full",
        "compressed",
        "full",
        "full",
    ]


def test_a_result_whose_names_a_reply_takes_up_was_used(full: Client) -> None:
    full.begin()
    full.end(text("It is only_in_1."))
    ages = {entry["handle"]: entry["age"] for entry in full.entries()}
    assert [handle for handle, age in ages.items() if age == 0] == ["r2"]


def inputs(client: Client) -> list[Any]:
    """Return the inputs of the tool uses in the messages."""
    return [
        block["input"]
        for message in client.messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "tool_use"
    ]


def test_a_long_input_gives_way_like_a_result_and_is_recalled(open_client: OpenClient) -> None:
    client = open_client(recent_turns=1, low_water=0.01)
    client.begin("Write it.")
    client.end(tool_use("w", "eval_sexp", path="a.py", content=LONG_FILE))
    client.record("w", "written", arguments={"path": "a.py", "content": LONG_FILE})
    for number in range(4):
        client.turn(large(number))
    assert inputs(client)[0]["content"] == LONG_FILE
    client.clock.moment += CACHE_SECONDS + 1
    client.begin("And now?")
    short = inputs(client)[0]
    assert short["path"] == "a.py"
    assert short["content"].startswith("§ [201 lines, 2,900 characters, left out; recall_result t1")
    assert "written_here" in short["content"]
    recalled = client.call_tool("recall_result", handle="t1")
    assert "def written_here" in recalled["text"]
