"""What replies teach the estimate, and how replies themselves are charged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.window.client import MODEL, Client, text, thinking, words
from tests.window.conftest import OpenClient


def used(client: Client) -> int:
    """The size of the next prompt by our count."""
    return sum(tier["used"] for tier in client.budget()["tiers"].values())


@pytest.mark.parametrize("truth", [0.7, 1.0, 1.9])
def test_the_factor_finds_what_the_model_really_needs(client: Client, truth: float) -> None:
    client.teach(truth)
    calibration = client.budget()["calibration"]
    assert calibration["factor"] == pytest.approx(truth, rel=0.04)
    assert calibration["samples"] == 8
    assert calibration["recent_error"] < 0.2
    assert calibration["model"] == MODEL


def test_the_first_factor_is_that_of_the_table(open_client: OpenClient) -> None:
    client = open_client()
    for model, factor in ((MODEL, 1.3), ("claude-sonnet-4-6", 1.0), ("llama", 1.3)):
        client.begin("Hello.", model=model)
        assert client.factor() == factor


def test_what_was_learnt_of_a_model_outlives_the_process_and_serves_its_other_sessions(
    client: Client,
) -> None:
    client.teach(2.0)
    learnt = client.factor()
    client.crash()
    assert client.factor() == learnt
    client.anew().begin("Hello.")
    assert client.factor() == learnt
    client.begin("Hello.", model="claude-opus-5-5")
    assert client.factor() == 1.3


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "much",
        {},
        {"input_tokens": 0},
        {"input_tokens": -9},
        {"input_tokens": 10**15},
        {"input_tokens": True},
        {"input_tokens": 3, "cache_read_input_tokens": "many"},
    ],
)
def test_a_missing_or_absurd_usage_block_teaches_nothing(client: Client, usage: Any) -> None:
    client.begin(words(800))
    client.end(text("I see."), usage=usage)
    assert client.budget()["calibration"]["samples"] == 0
    assert client.factor() == 1.3
    client.begin("Go on.")


def test_cached_tokens_are_part_of_the_prompt(client: Client) -> None:
    client.begin(words(800))
    whole = round(used(client) / 1.3 * 2)
    parts = {
        "input_tokens": 100,
        "cache_read_input_tokens": whole - 300,
        "cache_creation_input_tokens": 200,
    }
    client.end(text("I see."), usage=parts)
    assert client.factor() > 1.6


def test_a_reply_is_charged_what_the_api_counted_hidden_thinking_included(
    client: Client,
) -> None:
    client.begin("Think.")
    before = used(client)
    client.end(thinking(""), text("Done."), usage={"output_tokens": 4_321})
    assert used(client) - before == 4_321
    assert client.budget()["tiers"]["history"]["used"] == 4_321


def test_without_its_thinking_a_reply_is_charged_by_what_is_left(client: Client) -> None:
    client.begin("Think.")
    client.end(thinking(""), text("Done."), usage={"output_tokens": 4_321})
    client.system_text = "You work in Emacs, briefly."
    client.begin("Go on.")
    assert client.budget()["tiers"]["history"]["used"] < 20


@pytest.mark.parametrize("counted", [0, -5, 10**7, "many", None])
def test_a_reply_is_estimated_where_its_count_cannot_be_true(client: Client, counted: Any) -> None:
    client.begin("Speak.")
    client.end(text(words(1_000)), usage={"output_tokens": counted})
    assert 700 < client.budget()["tiers"]["history"]["used"] < 2_500


def test_the_session_tells_what_was_used_and_what_it_cost(client: Client) -> None:
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 500, "output_tokens": 100}
    for _ in range(2):
        client.begin("Hello.", model="claude-sonnet-4-6")
        client.end(text("Hello."), usage=usage)
    status = client.call("session/status", price=True)
    assert status["usage"] == {name: 2 * count for name, count in usage.items()}
    assert status["dollars"] == pytest.approx(2 * (0.003 + 0.00015 + 0.0015), rel=0.01)
    client.begin("Hello.", model="llama")
    client.end(text("Hello."), usage=usage)
    assert client.call("session/status", price=True)["dollars"] is None


def test_attempts_that_broke_off_are_paid_for_and_teach_nothing(client: Client) -> None:
    begun = client.begin("Go.")
    lost = {"input_tokens": 5_000, "cache_read_input_tokens": 1_000, "output_tokens": 1}
    own = {"input_tokens": 4_000, "output_tokens": 20}
    given = {"turn_id": begun["turn_id"], "content": [text("Done.")], "usage": own}
    before = client.call("turn/end", **given, lost=[lost, lost, "nonsense"])
    status = client.call("session/status", price=True)
    assert status["usage"] == {
        "input_tokens": 14_000,
        "cache_read_input_tokens": 2_000,
        "output_tokens": 22,
    }
    assert status["dollars"] > 0
    assert client.call("turn/end", **given, lost=[lost])["budget"] == before["budget"]
    assert client.call("session/status")["usage"] == status["usage"]


def test_a_turn_without_a_reply_is_paid_for_and_another_may_begin(client: Client) -> None:
    begun = client.begin("Go.")
    lost = {"input_tokens": 5_000, "output_tokens": 1}
    client.call("turn/end", turn_id=begun["turn_id"], aborted=True, lost=[lost])
    again = client.begin()
    assert again["append"] is None
    client.end(text("Done."))
    assert client.call("session/status")["usage"]["input_tokens"] >= 5_000
