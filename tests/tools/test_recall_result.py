"""The tool that brings back results that left the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversation.client import Client, text, words


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A session with one result."""
    made = Client(tmp_path)
    made.record("use", "alpha\nbeta\ngamma beta\n")
    yield made
    made.close()


def test_a_handle_brings_its_result(client: Client) -> None:
    client.begin("Hello.")
    envelope = client.use("recall_result", handle="r1")
    assert envelope["status"] == "success"
    assert envelope["handle"] == "r1"
    assert envelope["text"].startswith("alpha\nbeta\ngamma beta\n📏 ~")


@pytest.mark.parametrize("handle", ["r1", "R1", " r1 ", "1"])
def test_a_handle_may_be_written_in_several_ways(client: Client, handle: str) -> None:
    assert client.use("recall_result", handle=handle)["status"] == "success"


def test_a_pattern_brings_the_lines_that_match_with_their_numbers(client: Client) -> None:
    envelope = client.use("recall_result", handle="r1", pattern="^g|beta$")
    assert envelope["text"].splitlines()[:2] == ["2:beta", "3:gamma beta"]
    assert envelope["data"]["total"] == 2


def test_a_pattern_that_matches_nothing_says_so(client: Client) -> None:
    envelope = client.use("recall_result", handle="r1", pattern="delta")
    assert envelope["text"].startswith("§ No line of r1 matches 'delta'.")
    assert envelope["status"] == "success"


def test_a_pattern_that_is_none_says_what_is_wrong_with_it(client: Client) -> None:
    envelope = client.use("recall_result", handle="r1", pattern="(unclosed")
    assert envelope["status"] == "error"
    assert "the pattern cannot be used: " in envelope["message"]


@pytest.mark.parametrize("handle", ["r99", "r0", "seven", "", "t99", "r1:5"])
def test_a_handle_that_names_nothing_says_what_there_is(client: Client, handle: str) -> None:
    envelope = client.use("recall_result", handle=handle)
    assert envelope["status"] == "error"
    assert "recall_result without a handle lists what there is" in envelope["message"]


def test_without_a_handle_the_work_log_is_listed(client: Client) -> None:
    envelope = client.use("recall_result")
    assert envelope["text"].startswith("r1 eval_sexp {} (")
    assert envelope["data"]["entries"][0]["handle"] == "r1"


def test_an_empty_session_has_an_empty_work_log(client: Client) -> None:
    envelope = client.open_session().use("recall_result")
    assert envelope["status"] == "success"
    assert (envelope["data"]["total"], envelope["data"]["returned"]) == (0, 0)


def test_a_turn_s_handle_brings_what_was_said_in_it(client: Client) -> None:
    client.begin("Where is it?")
    client.end(text("Behind the door."))
    envelope = client.use("recall_result", handle="t1")
    assert envelope["text"].startswith(
        "§ user:\nWhere is it?\n§ assistant:\nBehind the door.\n📏 ~"
    )


def test_a_page_follows_a_page_without_a_handle(client: Client) -> None:
    client.record("long", words(20_000), arguments={"max_tokens": 100})
    first = client.use("recall_result", handle="r2", max_tokens=300)
    token = first["data"]["continuation_token"]
    later = client.use("recall_result", continuation_token=token, max_tokens=300)
    assert later["handle"] == "r2"
    assert later["text"].startswith(f"line {first['data']['returned']} of text 0 has six words\n")


def test_a_token_may_stand_beside_the_arguments_or_among_them(client: Client) -> None:
    token = client.record("long", words(20_000))["data"]["continuation_token"]
    among = client.use("recall_result", continuation_token=token)
    beside = client.call(
        "tools/call", name="recall_result", tool_use_id="beside", continuation_token=token
    )
    assert beside["status"] == among["status"] == "success"
    assert beside["data"]["returned"] == pytest.approx(among["data"]["returned"], rel=0.05)
