"""The preview of the next model call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.prices import dollars
from tests.conversation.client import Client, text, words
from tests.conversation.invariants import everything


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a small budget."""
    made = Client(tmp_path, total=30_000, per_tool_default=3_000)
    made.system_text = words(1_500, 0)
    yield made
    made.close()


def previewed(client: Client, said: str) -> dict[str, Any]:
    """Return the preview of a user message."""
    seen: dict[str, Any] = client.call(
        "turn/preview", model=client.model, system=client.system_text, user_message=said
    )
    return seen


def test_a_preview_is_what_the_turn_then_is_and_keeps_nothing(client: Client) -> None:
    client.turn(words(800, 1), message="Find it.")
    client.begin()
    client.end(text("Found."))
    before = everything(client)
    seen = previewed(client, "Go on.")
    assert everything(client) == before
    begun = client.begin("Go on.")
    used = sum(tier["used"] for tier in begun["budget"]["tiers"].values())
    assert seen["prompt"] == used
    assert seen["budget"] == begun["budget"]
    assert seen["rewritten"] is (begun["rewrite"] is not None) is False
    assert seen["shrinking"] == []
    assert seen["dollars"]["prompt"] > 0
    assert seen["dollars"]["longest_reply"] > seen["dollars"]["prompt"]


def test_a_preview_names_the_results_that_would_give_way(client: Client) -> None:
    client.turn(words(2_500, 1), message="Find it.")
    while previewed(client, "More.")["rewritten"] is False:
        client.turn(words(2_500, client.begun["turn_id"] + 1))
    seen = previewed(client, "More.")
    assert seen["shrinking"][0]["handle"] == "r1"
    full = {entry["handle"] for entry in client.entries() if entry["state"] == "full"}
    client.begin("More.")
    left = {entry["handle"] for entry in client.entries() if entry["state"] == "full"}
    assert {entry["handle"] for entry in seen["shrinking"]} == full - left


def test_the_price_of_an_unknown_model_is_not_made_up(client: Client) -> None:
    client.model = "somebody-s-own"
    assert set(previewed(client, "Go.")["dollars"].values()) == {None}


def priced(client: Client, **usage: int) -> float:
    """Return the price of a usage with the client's model."""
    found = dollars(client.model, usage)
    assert found is not None
    return found


def test_a_first_prompt_is_priced_as_a_write_to_the_cache(client: Client) -> None:
    seen = previewed(client, "Find it.")
    written = priced(client, cache_creation_input_tokens=seen["prompt"])
    assert seen["cached"] == 0
    assert seen["dollars"]["prompt"] == seen["dollars"]["prompt_expired"] == written
    assert written > priced(client, input_tokens=seen["prompt"])


def test_what_was_sent_before_is_priced_as_read_unless_it_has_expired(client: Client) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 900, "input_tokens": 3})
    seen = previewed(client, "Go on. " * 100)
    assert seen["cached"] == min(900, seen["prompt"])
    assert seen["dollars"]["prompt"] == priced(
        client,
        cache_read_input_tokens=seen["cached"],
        cache_creation_input_tokens=seen["prompt"] - seen["cached"],
    )
    assert seen["dollars"]["prompt_expired"] == priced(
        client, cache_creation_input_tokens=seen["prompt"]
    )


def test_a_rewrite_reads_nothing(client: Client) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 900})
    client.system_text = "Another system text."
    seen = previewed(client, "Go on.")
    assert (seen["rewritten"], seen["cached"]) == (True, 0)
    assert seen["dollars"]["prompt"] == seen["dollars"]["prompt_expired"]


def test_without_caching_a_prompt_is_plain_input(client: Client) -> None:
    plain = client.call(
        "turn/preview",
        model=client.model,
        system=client.system_text,
        user_message="Go.",
        caching=False,
    )
    expected = priced(client, input_tokens=plain["prompt"])
    assert plain["dollars"]["prompt"] == plain["dollars"]["prompt_expired"] == expected
    client.begin("Find it.")
    client.end(text("Found."), usage={"input_tokens": 5_000, "output_tokens": 5})
    seen = previewed(client, "Go on.")
    assert seen["dollars"]["prompt"] == priced(client, input_tokens=seen["prompt"])
