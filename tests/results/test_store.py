"""The storage of results: each text once, for as long as a result needs it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversation.client import Client
from tests.conversation.recalled import read

SIZE = 400_000


@pytest.fixture
def own_client(tmp_path: Path) -> Iterator[Client]:
    """A client with a database of its own."""
    made = Client(tmp_path)
    yield made
    made.close()


def noise(seed: int) -> str:
    """Return a text that compresses to half its size."""
    return random.Random(seed).randbytes(SIZE // 2).hex()


def bytes_held(client: Client) -> int:
    """Return the size of the database without its free pages."""
    database = sqlite3.connect(client.folder / "db.sqlite")
    pages, free, size = (
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    database.close()
    return int((pages - free) * size)


def test_a_text_that_many_results_hold_is_stored_once(own_client: Client) -> None:
    text = noise(1)
    own_client.record("use", text)
    once = bytes_held(own_client)
    for number in range(5):
        own_client.record(f"use{number}", text)
    own_client.open_session().record("use", text)
    assert bytes_held(own_client) - once < SIZE / 8
    own_client.record("other", noise(2))
    assert bytes_held(own_client) - once > SIZE / 3


@pytest.mark.parametrize("ending", ["purge", "delete"])
def test_the_end_of_the_last_session_that_holds_a_text_frees_it(
    own_client: Client, ending: str
) -> None:
    empty = bytes_held(own_client)
    text = noise(1)
    first = own_client.open_session()
    first.record("use", text)
    one = first.session
    first.open_session().record("use", text)
    other = first.session
    held = bytes_held(own_client)
    first.app.call(f"session/{ending}", {"session_id": one})
    assert bytes_held(own_client) > held - SIZE / 8
    first.app.call(f"session/{ending}", {"session_id": other})
    assert bytes_held(own_client) < empty + SIZE / 8


def test_a_purged_session_keeps_its_line_and_its_tokens_lead_nowhere(own_client: Client) -> None:
    token = own_client.record("use", noise(1))["data"]["continuation_token"]
    purged = own_client.call("session/purge")
    assert purged["purged"]
    assert purged["note"] == "its contents were purged"
    own_client.call("session/resume")
    for given in ({"continuation_token": token}, {"handle": "r1"}):
        envelope = own_client.use("recall_result", **given)
        assert envelope["status"] == "error"
        assert "r1" in envelope["message"]
    told = own_client.use("recall_result", continuation_token=token)["message"]
    assert "call the tool anew without continuation_token to start again" in told
    assert own_client.record("next", "new\n")["handle"] != "r1"


def test_a_token_of_another_session_says_how_to_start_again(client: Client) -> None:
    token = client.open_session().record("use", "word\n" * 40_000)["data"]["continuation_token"]
    client.open_session().record("use", "word\n" * 40_000)
    envelope = client.use("catalogue", continuation_token=token)
    assert envelope["status"] == "error"
    assert "is not of this session; call the tool anew" in envelope["message"]


@pytest.mark.parametrize("token", ["", "r1", "offset:100", "r1:5-xyz", "r1:99999999-0000"])
def test_a_token_that_nobody_gave_says_how_to_start_again(client: Client, token: str) -> None:
    client.open_session().record("use", "word\n" * 40_000)
    envelope = client.use("catalogue", continuation_token=token)
    assert envelope["status"] == "error"
    assert "without continuation_token to start again" in envelope["message"]


def test_a_token_leads_on_through_any_tool(client: Client) -> None:
    whole = "".join(f"row {number}\n" for number in range(9_000))
    token = client.open_session().record("use", whole)["data"]["continuation_token"]
    page = client.use("file_info", continuation_token=token)
    assert page["status"] == "success"
    assert page["handle"] == "r1"
    assert page["text"].partition("\n§ Showing")[0] in whole


def test_what_a_call_gave_besides_its_text_comes_back_with_it(client: Client) -> None:
    client.open_session().record("use", "two buffers\n", data={"buffers": ["a", "b"], "at": 5})
    again = client.use("recall_result", handle="r1")
    assert (again["data"]["buffers"], again["data"]["at"]) == (["a", "b"], 5)


def test_an_empty_result_is_a_result(client: Client) -> None:
    envelope = client.open_session().record("use", "")
    assert envelope["text"].startswith("📏 ~")
    assert (envelope["data"]["total"], envelope["data"]["returned"]) == (0, 0)
    assert read(client, "r1", "").total == 0


@pytest.mark.parametrize("more", [{}, {"pattern": "x"}], ids=["whole", "searched"])
def test_a_handle_without_a_result_is_named(own_client: Client, more: dict[str, str]) -> None:
    envelope = own_client.use("recall_result", handle="r99", **more)
    assert envelope["status"] == "error"
    assert "this session has no result r99" in envelope["text"]
