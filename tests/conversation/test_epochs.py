"""The events that end an epoch, and those that do not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conversation.api_rules import violations
from tests.conversation.client import PLAIN_MODEL, Client, text, thinking, words
from tests.conversation.conftest import OpenClient

SMALL: dict[str, Any] = {"total": 30_000}


def settled(client: Client) -> Client:
    """A session with a result in its window and a turn that the person has begun."""
    client.turn(words(800, 0), message="Find it.")
    client.begin()
    client.end(thinking(), text("There."))
    return client


def test_another_model_ends_the_epoch(client: Client) -> None:
    settled(client).begin("go on", model=PLAIN_MODEL)
    assert client.begun["rewrite"] is not None
    assert client.epoch() == 2


def test_another_system_text_ends_the_epoch(client: Client) -> None:
    settled(client).system_text = "You work in Emacs, briefly."
    client.begin("go on")
    assert client.epoch() == 2
    assert client.system_texts() == ["You work in Emacs, briefly."]


def test_another_set_of_tools_ends_the_epoch_and_the_same_one_does_not(client: Client) -> None:
    tool = {"name": "eval_sexp", "description": "Run Lisp.", "input_schema": {"type": "object"}}
    client.call("tools/register", tools=[tool])
    settled(client)
    client.call("tools/register", tools=[tool])
    client.begin("go on")
    assert client.epoch() == 1
    client.end(text("I see."))
    client.call("tools/register", tools=[])
    client.begin("go on")
    assert client.epoch() == 2
    assert "eval_sexp" not in [tool["name"] for tool in client.tools]


def test_the_environment_is_renewed_at_rewrites_and_causes_none(client: Client) -> None:
    head = client.root / ".git" / "HEAD"
    (client.root / ".git" / "objects").mkdir(parents=True)
    head.write_text("ref: refs/heads/main\n", encoding="utf-8")
    client.environment = "GNU Emacs 28.2"
    settled(client)
    prefix = json.dumps([client.system, client.tools])
    assert re.search(r"\d{4}-\d\d-\d\d.*GNU Emacs 28.2; git branch main", prefix)
    client.environment = "GNU Emacs 30.1"
    head.write_text("ref: refs/heads/topic\n", encoding="utf-8")
    for _ in range(3):
        client.begin("go on")
        client.end(text("I see."))
        assert json.dumps([client.system, client.tools]) == prefix
    client.call("worklog/drop", handle="r1")
    client.begin("go on")
    assert client.epoch() == 2
    assert re.search("GNU Emacs 30.1; git branch topic", client.system_texts()[-1])


@pytest.mark.parametrize("wish", ["pin", "unpin"])
def test_a_pin_does_not_end_the_epoch(client: Client, wish: str) -> None:
    settled(client).call(f"worklog/{wish}", handle="r1")
    client.begin("go on")
    assert client.epoch() == 1


def test_a_drop_and_a_restore_end_the_epoch_at_the_next_turn_and_not_before(
    client: Client,
) -> None:
    shown = settled(client).results()["toolu_1"]
    for wish, handle, is_shown in (("drop", "r1", False), ("restore", "r1", True)):
        before = client.messages
        client.call(f"worklog/{wish}", handle=handle)
        assert client.call("session/messages")["messages"] == before
        epoch = client.epoch()
        client.begin("go on")
        assert client.epoch() == epoch + 1
        assert (client.results()["toolu_1"] == shown) == is_shown
        client.end(text("I see."))


def test_a_drop_that_is_taken_back_leaves_everything_as_it_was_sent(client: Client) -> None:
    before = settled(client).messages
    client.call("worklog/drop", handle="r1")
    client.call("worklog/restore", handle="r1")
    assert client.call("session/messages")["messages"] == before


def test_a_result_is_dropped_before_it_is_sent_without_an_end_of_the_epoch(
    client: Client,
) -> None:
    client.turn(words(800, 0), message="Find it.")
    client.call("worklog/drop", handle="r1")
    client.begin()
    assert client.epoch() == 1
    assert client.results()["toolu_1"].startswith("§ [r1: ")


def test_a_restored_result_is_back_in_full_even_when_its_turn_had_left(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL, history=1_500, tool_results=9_000)
    first = client.turn(words(300, 0), message="Find it.")[0]
    for number in range(80):
        client.turn(words(700, number))
        if client.state("r1") == "gone":
            break
    assert "toolu_1" not in client.results()
    before = client.messages
    client.call("worklog/restore", handle="r1")
    assert client.call("session/messages")["messages"] == before
    client.begin()
    assert client.results()["toolu_1"] == first["text"]
    assert client.state("r1") == "full"
    assert not violations(client.messages, system_messages=True)
