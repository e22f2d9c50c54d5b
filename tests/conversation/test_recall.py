"""The work log as the model can read it, and what a turn's handle brings back."""

from __future__ import annotations

import pytest

from tests.conversation.client import Client, text, thinking, tool_use, words
from tests.conversation.conftest import OpenClient
from tests.conversation.recalled import read
from tests.conversation.texts import KINDS, make_text


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_comes_back_byte_for_byte_after_a_crash(client: Client, kind: str) -> None:
    whole = make_text(kind, 15_000)
    client.record("use", whole)
    client.crash()
    found = read(client, "r1", whole)
    assert found.returned == found.total


def test_the_work_log_lists_every_result_with_what_it_was(client: Client) -> None:
    client.record("one", words(300, 1), arguments={"form": "(buffer-list)"})
    client.record("two", "done\n")
    client.call("worklog/pin", handle="r2")
    listing = client.use("recall_result")
    first, second = listing["text"].splitlines()[:2]
    assert first.startswith('r1 eval_sexp {"form":"(buffer-list)"} (4')
    assert " tokens, in full): line 0 of text 1 has six words line 1" in first
    assert second.startswith("r2 eval_sexp {} (")
    assert second.endswith(" tokens, in full, pinned): done")
    assert listing["data"]["total"] == 2
    assert [entry["handle"] for entry in listing["data"]["entries"]] == ["r1", "r2"]


def test_long_arguments_are_cut_in_the_list(client: Client) -> None:
    client.record("use", "done", arguments={"form": "x" * 500})
    assert '{"form":"' + "x" * 91 + "…" in client.use("recall_result")["text"]


def test_the_work_log_is_searched_and_paged(client: Client) -> None:
    for number in range(300):
        client.record(f"use{number}", f"result of {number}\n", arguments={"number": number})
    found = client.use("recall_result", pattern=r"result of 29\d")
    assert found["data"]["total"] == 10
    page = client.use("recall_result", max_tokens=800)
    assert "continuation_token" in page["data"]
    count = page["data"]["returned"]
    later = client.use("recall_result", continuation_token=page["data"]["continuation_token"])
    assert later["text"].startswith(f"r{count + 1} eval_sexp ")


def test_turns_that_left_stand_in_the_list_and_come_back_by_their_handle(
    open_client: OpenClient,
) -> None:
    client = open_client(total=30_000, history=1_500, tool_results=9_000)
    client.begin("Find the place where it begins.")
    client.end(thinking("where could it be"), text("I look."), tool_use("first", "eval_sexp"))
    client.record("first", words(300))
    client.turn(words(300, 1), message="And now the end.")
    for number in range(2, 60):
        client.turn(words(700, number))
    assert client.state("r1") == "gone"
    listed = client.use("recall_result", pattern="^[0-9]+:t1 ")["text"]
    assert "No line" in listed
    listed = client.use("recall_result", pattern="^t1 ")["text"]
    assert "t1 assistant (evicted): " in listed
    turn = client.use("recall_result", handle="t1")["text"]
    assert "§ user:\nFind the place where it begins.\n" in turn
    assert "§ assistant:\n" in turn
    assert "where could it be" in turn
    assert '"name": "eval_sexp"' in turn
