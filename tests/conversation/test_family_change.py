"""A session whose models have tokenizers of different families."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from efrit_budget.budget.families import CLAUDE
from tests.budget.measured import MEASURED
from tests.conversation.client import MODEL, Client, text, thinking
from tests.conversation.conftest import OpenClient

THAI, NUMBERS = MEASURED["thai"][1], "4711 0815 1234 5678 9012\n"
OTHER, DIGITS_ALONE = "gpt-5", "gemini-2.5-pro"


def used(client: Client) -> int:
    """Return the estimated size of the next prompt."""
    return sum(tier["used"] for tier in client.budget()["tiers"].values())


def talk(client: Client, model: str, message: str, result: str) -> None:
    """Run a turn in which the model thinks and a tool returns a text."""
    client.turn(result, message=message, model=model)


@pytest.mark.parametrize("model", [OTHER, DIGITS_ALONE, "llama-local"])
def test_after_a_change_of_family_texts_cost_as_if_the_new_model_had_been_there_from_the_start(
    open_client: OpenClient, model: str
) -> None:
    sizes = []
    for first in (MODEL, model):
        client = open_client()
        talk(client, first, f"What is this? {THAI}", f"{THAI} {NUMBERS}")
        client.system_text = "Be brief."
        client.begin("And now?", model=model)
        sizes.append(used(client))
    assert sizes[0] == sizes[1]


def test_an_image_costs_the_same_after_a_change_of_family(open_client: OpenClient) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    message = [text(NUMBERS), {"type": "image", "source": source}]
    sizes = []
    for first in (MODEL, OTHER):
        client = open_client()
        client.turn("Done.", message=message, model=first)
        client.begin(None, model=OTHER)
        sizes.append(client.budget()["tiers"]["user_message"]["used"])
    assert sizes[0] == sizes[1]


def test_a_change_of_family_is_a_rewrite_for_another_model(client: Client) -> None:
    talk(client, OTHER, "What is this?", THAI)
    begun = client.begin("And now?", model=MODEL)
    assert begun["rewrite_reasons"] == ["model"]
    assert client.family().name == CLAUDE


def test_texts_that_cost_little_for_one_family_shrink_where_they_are_too_much_for_another(
    open_client: OpenClient,
) -> None:
    client = open_client(total=20_000, recent_turns=0)
    for _ in range(4):
        talk(client, OTHER, "Read on.", THAI * 20)
    before = len([entry for entry in client.entries() if entry["state"] == "full"])
    begun = client.begin("And now?", model="claude-opus-4")
    after = len([entry for entry in client.entries() if entry["state"] == "full"])
    limits = client.limits()
    assert before == 4 > after
    assert "model" in begun["rewrite_reasons"]
    assert used(client) <= limits["total"] - limits["response"]


def test_a_reply_is_not_charged_with_what_a_model_of_another_family_reported(
    client: Client,
) -> None:
    client.begin("What is this?", model=OTHER)
    client.end(thinking(), text(THAI * 10), usage={"input_tokens": 900, "output_tokens": 500})
    client.begin("And now?", model="claude-opus-4")
    history = client.budget()["tiers"]["history"]["used"]
    assert history >= client.family().estimate(THAI * 10)


def test_an_estimate_that_was_raised_stays_so_when_the_family_changes(client: Client) -> None:
    odd = "A text that costs more than it seems to. " * 40
    client.begin("Begin.", model=OTHER)
    client.end(text("Yes."), usage={"input_tokens": used(client), "output_tokens": 2})
    client.begin(odd)
    size = used(client)
    client.end(text("Yes."), usage={"input_tokens": size * 8, "output_tokens": 2})
    raised = used(client)
    client.begin("And now?", model=DIGITS_ALONE)
    assert raised > 5 * size
    assert used(client) > 5 * size


def test_texts_that_an_older_version_estimated_for_claude_are_estimated_anew(
    client: Client,
) -> None:
    talk(client, OTHER, "What is this?", THAI * 10)
    right = used(client)
    with closing(sqlite3.connect(client.folder / "db.sqlite")) as connection, connection:
        connection.execute("UPDATE windows SET family = 'claude'")
        connection.execute("UPDATE calls SET raw = raw * 3, compressed_raw = compressed_raw * 3")
    begun = client.begin("And now?")
    assert begun["rewrite_reasons"] == ["model"]
    assert used(client) < 1.5 * right


def test_what_is_learnt_of_a_model_holds_for_its_provider_alone(open_client: OpenClient) -> None:
    client = open_client()
    client.teach(2.0)
    learnt = client.factor()

    def factor_at(endpoint: dict[str, Any]) -> float:
        client.open_session().request = {"endpoint": endpoint}
        client.begin("Hello.")
        return client.factor()

    assert factor_at({"provider": "openrouter"}) == 1.3
    client.teach(1.6)
    assert factor_at({"provider": "openrouter"}) == pytest.approx(1.6, rel=0.05)
    assert factor_at({"provider": "litellm"}) == 1.3
    assert factor_at({}) == learnt
