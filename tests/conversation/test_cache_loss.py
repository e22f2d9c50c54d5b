"""What a turn pays for anew, why the window is rewritten, and what another model would cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.prices import CACHE_SECONDS, dollars
from tests.conversation.client import Client, text, words

OTHER = "claude-haiku-5-5"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a small budget."""
    made = Client(tmp_path, total=30_000, per_tool_default=3_000)
    made.system_text = words(1_500, 0)
    yield made
    made.close()


def second_turn(client: Client, read: int, message: str = "Go on.") -> dict[str, Any]:
    """End a first turn that caches 9,000 tokens; return the end of one that reads `read`."""
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 9_000, "input_tokens": 3})
    client.begin(message)
    usage = {"cache_read_input_tokens": read, "cache_creation_input_tokens": 9_050 - read}
    return client.end(text("And?"), usage=usage)


def test_what_is_read_from_the_cache_is_not_paid_anew(client: Client) -> None:
    assert second_turn(client, 9_000)["paid_anew"] is None


def test_a_small_loss_is_not_told(client: Client) -> None:
    assert second_turn(client, 8_500)["paid_anew"] is None


def test_a_loss_that_nothing_explains_has_no_reason(client: Client) -> None:
    lost = second_turn(client, 2_000)["paid_anew"]
    assert (lost["tokens"], lost["reason"], lost["idle"]) == (7_000, None, 0)
    written = dollars(client.model, {"cache_creation_input_tokens": 7_000})
    read = dollars(client.model, {"cache_read_input_tokens": 7_000})
    assert written is not None
    assert read is not None
    assert lost["dollars"] == pytest.approx(written - read)


def test_a_prompt_that_was_not_sent_for_long_has_expired(
    client: Client,
) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 9_000})
    client.clock.moment += CACHE_SECONDS + 420
    client.begin("Go on.")
    lost = client.end(text("And?"), usage={"cache_creation_input_tokens": 9_050})["paid_anew"]
    assert (lost["tokens"], lost["reason"]) == (9_000, "expired")
    assert lost["idle"] == CACHE_SECONDS + 420


def test_another_model_has_nothing_cached(client: Client) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 9_000})
    assert client.begin("Go on.", model=OTHER)["rewrite_reasons"] == ["model"]
    lost = client.end(text("And?"), usage={"cache_creation_input_tokens": 9_050})["paid_anew"]
    assert lost["reason"] == "model"


def test_a_rewrite_names_each_of_its_reasons(client: Client) -> None:
    assert client.begin("Find it.")["rewrite_reasons"] == []
    client.end(text("Found."), usage={"cache_creation_input_tokens": 9_000})
    client.system_text = "Another system text."
    assert client.begin("Go on.", model=OTHER)["rewrite_reasons"] == ["model", "system"]
    client.end(text("And?"))
    assert client.begin("And now?")["rewrite_reasons"] == []


def test_a_prompt_that_grows_too_large_is_rewritten_for_its_size(client: Client) -> None:
    client.turn(words(2_500, 1), message="Find it.")
    while not (begun := client.begin())["rewrite_reasons"]:
        client.end(text("Next."))
        client.turn(words(2_500, begun["turn_id"] + 1), message="More.")
    assert begun["rewrite_reasons"] == ["size"]


def test_an_endpoint_without_a_cache_loses_nothing(client: Client) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"input_tokens": 9_000})
    client.begin("Go on.")
    assert client.end(text("And?"), usage={"input_tokens": 9_050})["paid_anew"] is None


def listed(client: Client, *names: str) -> dict[str, Any]:
    """Return the models of these names for the session of the client, by name."""
    found = client.call("models/list", names=list(names))["models"]
    return {model["name"]: model for model in found}


def test_a_list_has_the_price_of_the_next_prompt_for_each_model(client: Client) -> None:
    client.begin("Find it.")
    client.end(text("Found."), usage={"cache_creation_input_tokens": 900, "input_tokens": 3})
    models = listed(client, client.model, OTHER, "somebody-s-own")
    used = sum(tier["used"] for tier in client.budget()["tiers"].values())
    own, other = models[client.model]["prompt"], models[OTHER]["prompt"]
    assert own["tokens"] == used
    assert own["cached"] == 900
    assert other["cached"] == 0
    assert other["dollars"] == dollars(OTHER, {"cache_creation_input_tokens": other["tokens"]})
    assert models["somebody-s-own"]["dollars"] is None
    assert models["somebody-s-own"]["prompt"]["dollars"] is None
    assert client.begin("And?", model=OTHER)["rewrite_reasons"] == ["model"]


def test_a_list_has_all_models_that_are_known(client: Client) -> None:
    models = {model["name"]: model for model in client.app.call("models/list", {})["models"]}
    assert {client.model, OTHER} <= set(models)
    assert "default" not in models
    price = models[client.model]["dollars"]
    assert price["cache_read"] < price["input"] < price["cache_write"] < price["output"]
    assert all("prompt" not in model for model in models.values())
