"""The texts of requests and replies as a view of the budget gets them."""

from __future__ import annotations

from tests.conversation.client import text, thinking, tool_use, words
from tests.conversation.conftest import OpenClient


def test_requests_and_replies_are_told_with_tokens_and_beginnings(open_client: OpenClient) -> None:
    client = open_client()
    client.begin("What is here?")
    client.end(thinking("Look."), text("I will look."), tool_use("use1", "file_info", paths=[]))
    turns = client.call("session/turns")["turns"]
    assert [(turn["turn"], turn["kind"], turn["begins"]) for turn in turns] == [
        (1, "request", "What is here?"),
        (1, "reply", "I will look."),
    ]
    assert all(turn["state"] == "full" and turn["tokens"] > 0 for turn in turns)


def test_a_request_begins_with_the_persons_own_words(open_client: OpenClient) -> None:
    client = open_client()
    client.begin([text("[Instructions of the project]"), text("Tidy up.")])
    assert client.call("session/turns")["turns"][0]["begins"] == "Tidy up."


def test_a_long_text_is_told_by_its_beginning_alone(open_client: OpenClient) -> None:
    client = open_client()
    client.begin("é" * 5_000)
    assert client.call("session/turns")["turns"][0]["begins"] == "é" * 200


def test_status_tells_all_limits(open_client: OpenClient) -> None:
    client = open_client(per_tool_default=4_000, warning_threshold=5_000)
    limits = client.call("session/status")["limits"]
    assert (limits["per_tool_default"], limits["warning_threshold"]) == (4_000, 5_000)
    assert limits["total"] == 100_000


def test_what_shrank_or_left_is_told_with_both_costs(open_client: OpenClient) -> None:
    client = open_client(total=20_000, history=1_000, index_share=0.1, per_tool_default=2_500)
    client.turn(words(2_000, 1), message="Find it.")
    while not any(entry["state"] == "gone" for entry in client.entries()):
        client.turn(words(2_000, client.begun["turn_id"] + 1))
    by_state = {entry["state"]: entry for entry in client.entries()}
    assert by_state["full"]["tokens_now"] == by_state["full"]["tokens"]
    assert 0 < by_state["compressed"]["tokens_now"] < by_state["compressed"]["tokens"]
    assert by_state["gone"]["tokens_now"] == 0 < by_state["gone"]["tokens"]
    left = [turn for turn in client.call("session/turns")["turns"] if turn["state"] == "gone"]
    assert left
    assert all(turn["tokens_now"] == 0 < turn["tokens"] for turn in left)
