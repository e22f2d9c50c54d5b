"""Calibration by replies, and the charge for the replies themselves."""

from __future__ import annotations

from typing import Any

import pytest

from efrit_budget.errors import EfritError
from tests.conversation.client import MODEL, Client, text, thinking, tool_use, words
from tests.conversation.conftest import OpenClient


def used(client: Client) -> int:
    """Return the estimated size of the next prompt."""
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
    client.open_session().begin("Hello.")
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
        ended = client.end(text("Hello."), usage=usage)
    status = client.call("session/status", price=True)
    assert [ended[name] for name in ("usage", "dollars")] == [status["usage"], status["dollars"]]
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


def prompt(client: Client) -> int:
    """Return the estimated size of the next prompt, before its reply is known."""
    return used(client)


def told(client: Client, handle: str) -> int:
    """Return the estimated cost of an entry in the window."""
    return next(int(one["tokens_now"]) for one in client.entries() if one["handle"] == handle)


def test_a_usage_block_ten_times_our_count_is_believed_at_once(client: Client) -> None:
    """Only the text that it belongs to is charged more; the model's factor stays."""
    client.begin("Look.")
    client.end(tool_use("u1", "eval_sexp"), usage={"input_tokens": prompt(client)})
    envelope = client.record("u1", words(2_000))
    client.begin()
    factor, before = client.factor(), prompt(client)
    client.end(text("I see."), usage={"input_tokens": before + 9 * envelope["tokens"]})
    assert client.factor() == factor
    assert prompt(client) == pytest.approx(before + 9 * envelope["tokens"], rel=0.02)
    assert told(client, envelope["handle"]) == pytest.approx(10 * envelope["tokens"], rel=0.02)


def test_what_was_believed_leaves_with_the_text_it_belongs_to(client: Client) -> None:
    client.begin("Look.")
    client.end(tool_use("u1", "eval_sexp"), usage={"input_tokens": prompt(client)})
    client.record("u1", words(6_000))
    client.begin()
    client.end(text("I see."), usage={"input_tokens": prompt(client) + 90_000})
    begun = client.begin("Go on.")
    assert begun["rewrite"] is not None
    assert client.state("r1") == "compressed"
    assert used(client) < 20_000


def test_a_first_prompt_ten_times_our_count_is_believed_too(client: Client) -> None:
    client.begin(words(3_000))
    before = prompt(client)
    client.end(text("I see."), usage={"input_tokens": 10 * before})
    assert prompt(client) == pytest.approx(10 * before, rel=0.02)
    assert client.factor() == 1.3


def test_an_honest_count_after_one_that_cannot_be_true_is_no_growth(client: Client) -> None:
    client.begin(words(3_000))
    before = prompt(client)
    client.end(tool_use("u1", "eval_sexp"), usage={"input_tokens": 1})
    client.record("u1", "(1)")
    client.begin()
    client.end(text("I see."), usage={"input_tokens": before + 50})
    assert prompt(client) < before + 200
    assert client.budget()["calibration"]["frame"] == 16


def test_no_prompt_is_believed_to_be_larger_than_the_model_can_take(client: Client) -> None:
    client.begin(words(3_000))
    client.end(text("I see."), usage={"input_tokens": 90_000_000})
    assert prompt(client) <= 1_010_000
    with pytest.raises(EfritError, match="shorten the request"):
        client.begin("Go on.")


@pytest.mark.parametrize("truth", [0.0, 25.0, 40.0])
def test_what_stands_around_a_result_is_learnt_apart_from_its_text(
    client: Client, truth: float
) -> None:
    client.begin("Look.")
    size = prompt(client)
    first = client.budget()["calibration"]["frame"]
    for turn in range(120):
        client.end(
            tool_use(f"u{turn}", "eval_sexp"), usage={"input_tokens": size, "output_tokens": 9}
        )
        calibration = client.budget()["calibration"]
        envelope = client.record(f"u{turn}", f"({turn})")
        size += 9 + round(envelope["tokens"] / 1.3 * calibration["factor"] + truth)
        client.begin()
    learnt = client.budget()["calibration"]["frame"]
    assert abs(learnt - truth) < abs(first - truth) / 2
