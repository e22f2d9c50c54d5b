"""Preserved thinking: thinking blocks that are sent back after a change before them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.demo.messages.shapes import BETAS
from tests.demo.running import TOOL, Block, Endpoint, endpoint, request, result, text, user

SCENARIO = """
[[reply]]
repeat = 30
thinking = "Thought {n}."
text = "Round {n}."
tool = [{ name = "read_file", input = { path = "{n}.py", b = 1, a = 2 } }]
"""
DROPS = {
    "type": "adaptive",
    "block_binding": {"prefix_mismatch_behavior": "drop_block"},
}
BOUND = "The block is bound to a different conversation."


def played(running: Endpoint, rounds: int, **others: Any) -> Block:
    """Return a request after this many rounds, ready for the next."""
    body = request(user("Begin."), system="You work.", tools=[TOOL], **others)
    for _ in range(rounds):
        body = continued(running, body)
    return body


def continued(running: Endpoint, body: Block, **options: Any) -> Block:
    """Return the request, extended by its reply and the results of its tools."""
    answer = running.post(body, **options)
    assert answer.status == 200, answer.body
    content = answer.body["content"]
    results = [result(block["id"]) for block in content if block["type"] == "tool_use"]
    said = {"role": "assistant", "content": content}
    return {**body, "messages": [*body["messages"], said, user(*results)]}


def without_thinking(body: Block, *rounds: int) -> Block:
    """Return the request without the thinking of these rounds, counted from 0."""
    body = copy.deepcopy(body)
    replies = [message for message in body["messages"] if message["role"] == "assistant"]
    for number in rounds:
        content = replies[number]["content"]
        content[:] = [block for block in content if block["type"] != "thinking"]
    return body


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An endpoint whose model thinks in every round."""
    with endpoint(SCENARIO, tmp_path_factory.mktemp("thinker")) as running:
        yield running


def test_an_unchanged_past_is_accepted(thinker: Endpoint) -> None:
    assert thinker.post(played(thinker, 5)).status == 200


def test_cache_marks_may_move(thinker: Endpoint) -> None:
    body = played(thinker, 3)
    mark = {"type": "ephemeral"}
    body["tools"] = [{**TOOL, "cache_control": mark}]
    body["system"] = [{**text("You work."), "cache_control": mark}]
    body["messages"][0]["content"][0]["cache_control"] = mark
    body["cache_control"] = mark
    assert thinker.post(body).status == 200


def test_what_means_the_same_is_the_same(thinker: Endpoint) -> None:
    body = played(thinker, 2)
    body["system"] = [text("You work.")]
    body["messages"][0]["content"] = "Begin."
    for block in (block for message in body["messages"][2::2] for block in message["content"]):
        block |= {"content": [text("done")], "is_error": False}
    assert thinker.post(body).status == 200


@pytest.mark.parametrize("rounds", [1, 2, 4, 5])
def test_thinking_may_be_removed_from_the_start(thinker: Endpoint, rounds: int) -> None:
    body = without_thinking(played(thinker, 5), *range(rounds))
    assert thinker.post(continued(thinker, body)).status == 200


@pytest.mark.parametrize("removed", [1, 2, 3])
def test_thinking_removed_from_the_middle_makes_the_next_block_invalid(
    thinker: Endpoint, removed: int
) -> None:
    answer = thinker.post(without_thinking(played(thinker, 5), removed))
    place = f"messages.{2 * removed + 3}.content.0"
    assert answer.status == 400
    assert answer.error.startswith(f"{place}: Invalid signature in thinking block. {BOUND}")


def test_the_last_thinking_may_be_removed_but_what_follows_it_is_signed_anew(
    thinker: Endpoint,
) -> None:
    body = continued(thinker, without_thinking(played(thinker, 3), 2))
    assert thinker.post(body).status == 200


def say_more(body: Block) -> None:
    """Change the system prompt."""
    body["system"] = "You work. It is 12:31."


def add_a_tool(body: Block) -> None:
    """Change the set of tools."""
    body["tools"] = [*body["tools"], {**TOOL, "name": "other"}]


def describe_anew(body: Block) -> None:
    """Change the description of a tool."""
    body["tools"] = [{**TOOL, "description": "Read a file, ~200 left."}]


def trim(body: Block) -> None:
    """Remove the oldest round."""
    del body["messages"][1:3]


def summarize(body: Block) -> None:
    """Shorten an old result."""
    body["messages"][2]["content"][0]["content"] = "d"


def insert(body: Block) -> None:
    """Insert a reminder into an old message."""
    body["messages"][2]["content"].append(text("Mind the budget."))


def reorder(body: Block) -> None:
    """Reorder the keys of an old tool's input."""
    block = body["messages"][1]["content"][-1]
    block["input"] = dict(sorted(block["input"].items()))


CHANGES: list[tuple[Callable[[Block], None], int]] = [
    (say_more, 1),
    (add_a_tool, 1),
    (describe_anew, 1),
    (trim, 1),
    (summarize, 3),
    (insert, 3),
    (reorder, 3),
]


@pytest.mark.parametrize(("change", "place"), CHANGES)
def test_a_changed_past_is_refused_at_the_first_block_behind_the_change(
    thinker: Endpoint, change: Callable[[Block], None], place: int
) -> None:
    body = copy.deepcopy(played(thinker, 4))
    change(body)
    answer = thinker.post(body)
    assert answer.status == 400
    assert answer.error.startswith(
        f"messages.{place}.content.0: Invalid signature in thinking block. {BOUND}"
    )


@pytest.mark.parametrize(("change", "place"), CHANGES)
def test_a_change_together_with_all_thinking_removed_is_accepted(
    thinker: Endpoint, change: Callable[[Block], None], place: int
) -> None:
    body = without_thinking(played(thinker, 4), 0, 1, 2, 3)
    change(body)
    assert thinker.post(continued(thinker, body)).status == 200


@pytest.mark.parametrize(("change", "place"), CHANGES)
def test_with_drop_block_invalid_blocks_are_dropped_and_listed(
    thinker: Endpoint, change: Callable[[Block], None], place: int
) -> None:
    body = copy.deepcopy(played(thinker, 4))
    change(body)
    answer = thinker.post({**body, "thinking": DROPS}, beta=BETAS["block_binding"])
    assert answer.status == 200
    dropped = answer.body["input_transformations"]
    last = len(body["messages"]) - 1
    paths = [f"messages.{number}.content.0" for number in range(place, last, 2)]
    assert [one["path"] for one in dropped] == paths
    assert {one["reason"] for one in dropped} == {"prefix_binding_mismatch"}


def test_after_a_drop_the_session_goes_on(thinker: Endpoint) -> None:
    body = {**played(thinker, 4), "thinking": DROPS}
    say_more(body)
    for _ in range(3):
        body = continued(thinker, body, beta=BETAS["block_binding"])
    answer = thinker.post(body, beta=BETAS["block_binding"])
    assert len(answer.body["input_transformations"]) == 4


def test_nothing_dropped_is_an_empty_list(thinker: Endpoint) -> None:
    body = {**played(thinker, 2), "thinking": DROPS}
    answer = thinker.post(body, beta=BETAS["block_binding"])
    assert answer.body["input_transformations"] == []


def test_a_model_that_binds_nothing_takes_a_changed_past_but_no_forged_block(
    thinker: Endpoint,
) -> None:
    body = copy.deepcopy(played(thinker, 3, model="claude-opus-5"))
    say_more(body)
    assert thinker.post(body).status == 200
    body["messages"][1]["content"][0]["thinking"] += "!"
    assert "Invalid `signature` in `thinking` block" in thinker.post(body).error


def test_changed_thinking_and_foreign_signatures_are_refused(thinker: Endpoint) -> None:
    body = copy.deepcopy(played(thinker, 2))
    body["messages"][3]["content"][0]["signature"] = "c2lnbmVk"
    assert thinker.post(body).error.startswith("messages.3.content.0: Invalid `signature`")


def test_a_restarted_endpoint_with_the_same_key_knows_its_blocks_again(tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    with endpoint(SCENARIO, tmp_path, key_file=key) as running:
        body = played(running, 3)
    with endpoint(SCENARIO, tmp_path, key_file=key) as running:
        assert running.post(body).status == 200
    with endpoint(SCENARIO, tmp_path, key_file=other) as running:
        assert running.post(body).status == 400
    assert key.stat().st_mode & 0o777 == 0o600
