"""What is told of the next model call before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.window.client import Client, text, words
from tests.window.invariants import everything


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a small budget."""
    made = Client(tmp_path, total=30_000, per_tool_default=3_000)
    yield made
    made.close()


def previewed(client: Client, said: str) -> dict[str, Any]:
    """A preview of saying it."""
    seen: dict[str, Any] = client.call(
        "turn/preview", model=client.model, system=client.system_text, user_message=said
    )
    return seen


def test_a_preview_is_what_the_turn_then_is_and_keeps_nothing(client: Client) -> None:
    client.turn(words(800, 1), said="Find it.")
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
    client.turn(words(2_500, 1), said="Find it.")
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
    assert previewed(client, "Go.")["dollars"] == {"prompt": None, "longest_reply": None}
