"""User edits: pin, drop and restore in the budget view."""

from __future__ import annotations

from typing import Any

import pytest

from efrit_budget.errors import ConflictError, EfritError
from efrit_budget.results.tokens import TokenError
from tests.conversation.client import Client, text, tool_use, words
from tests.conversation.conftest import OpenClient


def wish(client: Client, name: str, handle: str) -> dict[str, Any]:
    """Make a user edit and return the entry that it changed."""
    answer = client.call(f"worklog/{name}", handle=handle)
    assert answer["budget"] == client.budget()
    entry: dict[str, Any] = answer["entry"]
    return entry


# Listing


def test_the_log_lists_the_newest_first_in_pages(client: Client) -> None:
    for number in range(5):
        client.record(f"use{number}", f"result {number}")
    first = client.call("worklog/list", limit=2)
    second = client.call("worklog/list", limit=2, offset=2)
    last = client.call("worklog/list", limit=2, offset=4)
    assert [entry["handle"] for entry in first["entries"]] == ["r5", "r4"]
    assert [entry["handle"] for entry in second["entries"]] == ["r3", "r2"]
    assert [entry["handle"] for entry in last["entries"]] == ["r1"]
    assert {page["total"] for page in (first, second, last)} == {5}
    assert [page["returned"] for page in (first, second, last)] == [2, 2, 1]


def test_what_is_announced_stands_above_what_is_done(client: Client) -> None:
    client.begin("Do it.")
    client.end(tool_use("one", "eval_sexp"), tool_use("two", "eval_sexp", form="(+ 1 2)"))
    client.record("one", "done")
    newest, older = client.entries()
    assert (newest["tool_use_id"], newest["state"], newest["handle"]) == ("two", "announced", None)
    assert (older["state"], older["handle"]) == ("full", "r1")
    only = client.call("worklog/list", states=["announced"])
    assert [entry["arguments"] for entry in only["entries"]] == [{"form": "(+ 1 2)"}]


def test_an_entry_carries_what_was_told_with_it(client: Client) -> None:
    client.record(
        "use",
        words(500),
        arguments={"form": "(buffer-list)"},
        lisp="(buffer-list)",
        todos=[{"task": "look", "done": False}],
        summary="Forty buffers.",
    )
    (entry,) = client.entries()
    assert entry["tool"] == "eval_sexp"
    assert entry["arguments"] == {"form": "(buffer-list)"}
    assert entry["lisp"] == "(buffer-list)"
    assert entry["todos"] == [{"task": "look", "done": False}]
    assert entry["compressed"].endswith("recall_result r1 brings it back] Forty buffers.")
    assert entry["tokens"] > 500


def test_the_status_of_a_session_has_the_todos_that_were_told_last(client: Client) -> None:
    def todos() -> Any:
        return client.call("session/status")["todos"]

    assert todos() is None
    client.record("one", "1 item", todos=[{"task": "look"}])
    client.record("two", "2 items", todos=[{"task": "look"}, {"task": "tell"}])
    client.record("three", "no list")
    assert todos() == [{"task": "look"}, {"task": "tell"}]
    client.record("four", "0 items", todos=[])
    assert todos() == []
    client.call("session/purge")
    assert todos() is None


def test_the_age_of_an_entry_is_counted_in_uses_since_its_last(client: Client) -> None:
    for number in range(4):
        client.record(f"use{number}", words(200, number))
    assert [entry["age"] for entry in client.entries()] == [0, 1, 2, 3]
    client.use("recall_result", handle="r1")
    assert client.entries()[-1]["age"] == 0


# Showing


def test_showing_an_entry_gives_its_whole_text_and_counts_no_use(client: Client) -> None:
    whole = words(30_000)
    client.record("use", whole, arguments={"form": "(words)"})
    before = client.entries(), client.budget()
    shown = client.call("worklog/show", handle="r1")
    assert shown["text"] == whole
    assert shown["characters"] == len(whole)
    assert len(shown["delivered"]) < len(whole)
    assert (shown["handle"], shown["tool"], shown["state"]) == ("r1", "eval_sexp", "full")
    assert shown["arguments"] == {"form": "(words)"}
    assert (client.entries(), client.budget()) == before


def test_what_gave_way_is_shown_as_it_was_and_cut_where_asked(client: Client) -> None:
    client.record("use", words(400))
    wish(client, "drop", "r1")
    shown = client.call("worklog/show", handle="r1", most=10)
    assert (shown["state"], shown["text"]) == ("compressed", words(400)[:10])
    assert shown["characters"] == len(words(400))


def test_showing_an_entry_that_is_not_there_says_so(client: Client) -> None:
    with pytest.raises(TokenError, match="this session has no entry r7"):
        client.call("worklog/show", handle="r7")


# Pins


def test_pins_take_at_most_half_of_the_tier_of_results(open_client: OpenClient) -> None:
    client = open_client(total=20_000)
    client.turn(*(words(1_000, number) for number in range(4)), message="Find it.")
    assert wish(client, "pin", "r1")["pinned"]
    assert wish(client, "pin", "r2")["pinned"]
    with pytest.raises(ConflictError, match=r"at most 4,000, half of the results' tier"):
        client.call("worklog/pin", handle="r3")
    assert wish(client, "pin", "r1")["pinned"], "a second pin of the same entry is no more"
    assert not wish(client, "unpin", "r1")["pinned"]
    assert wish(client, "pin", "r3")["pinned"]


def test_a_pin_of_a_line_that_points_elsewhere_pins_what_it_points_to(client: Client) -> None:
    client.turn(words(800), message="Find it.")
    client.turn(words(800))
    assert wish(client, "pin", "r2")["handle"] == "r1"
    assert [entry["handle"] for entry in client.entries() if entry["pinned"]] == ["r1"]


def test_a_drop_takes_the_pin_off(client: Client) -> None:
    client.turn(words(800), message="Find it.")
    client.call("worklog/pin", handle="r1")
    dropped = wish(client, "drop", "r1")
    assert (dropped["pinned"], dropped["state"]) == (False, "compressed")


# Dropping and restoring


def test_a_drop_shows_in_the_budget_at_once(client: Client) -> None:
    client.turn(words(3_000), message="Find it.")
    client.begin()
    client.end(text("I see."))
    before = client.budget()
    wish(client, "drop", "r1")
    after = client.budget()
    assert after["tiers"]["tool_results"]["used"] == 0
    assert after["remaining"] > before["remaining"] + 3_000
    client.begin("Go on.")
    assert client.budget()["tiers"]["tool_results"]["used"] == 0


def test_a_restore_brings_the_text_back_even_through_a_line_that_pointed_to_it(
    client: Client,
) -> None:
    first = client.turn(words(800), message="Find it.")[0]
    client.turn(words(800))
    client.begin()
    client.end(text("I see."))
    client.call("worklog/drop", handle="r1")
    client.begin("Go on.")
    client.end(text("Yes."))
    assert wish(client, "restore", "r2")["handle"] == "r1"
    client.begin("Go on.")
    assert client.results()["toolu_1"] == first["text"]


def test_restored_results_outlive_the_rewrite_that_brings_them_back(
    open_client: OpenClient,
) -> None:
    client = open_client(total=30_000)
    client.turn(*(words(1_000, number) for number in range(6)), message="Find it.")
    client.begin()
    client.end(text("I see."))
    for number in range(1, 7):
        client.call("worklog/drop", handle=f"r{number}")
    client.begin("Go on.")
    client.end(text("I see."))
    for number in range(1, 7):
        client.call("worklog/restore", handle=f"r{number}")
    client.begin("Go on.")
    assert [client.state(f"r{number}") for number in range(1, 7)] == ["full"] * 6
    assert client.budget()["tiers"]["tool_results"]["used"] > 12_000 * 0.45


def test_a_wish_that_was_taken_back_costs_no_rewrite(client: Client) -> None:
    client.turn(words(3_000), words(2_000, 1), message="Find it.")
    client.begin()
    client.end(text("I see."))
    wish(client, "drop", "r1")
    wish(client, "restore", "r1")
    assert client.begin("Go on.")["rewrite"] is None
    client.end(text("Yes."))
    wish(client, "drop", "r1")
    wish(client, "drop", "r2")
    wish(client, "restore", "r1")
    assert client.begin("Go on.")["rewrite"] is not None, "the other wish stands"
    assert (client.state("r1"), client.state("r2")) == ("full", "compressed")


def test_what_never_stood_in_the_conversation_cannot_be_restored(client: Client) -> None:
    client.record("before", words(100))
    client.begin("Hello.")
    assert client.state("r1") == "gone"
    with pytest.raises(ConflictError, match="r1 was never part of the conversation; recall_result"):
        client.call("worklog/restore", handle="r1")


def test_of_several_entries_of_a_handle_the_one_in_view_is_dropped(client: Client) -> None:
    whole = words(30_000)
    client.turn(whole, message="Find it.")
    client.begin()
    token = client.entries()[0]
    page = client.call_tool("recall_result", handle="r1", max_tokens=900)
    assert page["handle"] == token["handle"] == "r1"
    client.begin()
    client.end(text("I see."))
    client.call("worklog/drop", handle="r1")
    client.call("worklog/drop", handle="r1")
    assert {entry["state"] for entry in client.entries()} == {"compressed"}


# Mistakes


@pytest.mark.parametrize("name", ["pin", "unpin", "drop", "restore"])
def test_a_handle_that_names_nothing_is_an_error(client: Client, name: str) -> None:
    with pytest.raises(TokenError, match="this session has no entry r9"):
        client.call(f"worklog/{name}", handle="r9")
    with pytest.raises(TokenError, match="a handle looks like r7"):
        client.call(f"worklog/{name}", handle="seven")


def test_a_closed_session_is_not_changed(client: Client) -> None:
    client.record("use", "done")
    client.call("session/close")
    with pytest.raises(EfritError, match="session/resume opens it again"):
        client.call("worklog/pin", handle="r1")
    assert client.call("worklog/list")["total"] == 1


# Sessions without turns


def test_all_results_of_a_session_without_turns_can_be_evicted(client: Client) -> None:
    client.record("use1", words(500))
    used = client.budget()["used"]
    budget = client.call("worklog/evict")["budget"]
    assert used > 500
    assert (budget["used"], budget["epoch"]) == (0, 1)
    assert [entry["state"] for entry in client.entries()] == ["gone"]
    assert client.record("use2", words(500))["text"].startswith(words(5))


def test_a_session_with_turns_is_compacted_by_its_turns_alone(client: Client) -> None:
    client.begin("Do it.")
    with pytest.raises(ConflictError, match="turn/begin compacts its window"):
        client.call("worklog/evict")


def test_without_turns_a_recalled_result_comes_in_full_each_time(client: Client) -> None:
    """The client may have removed it from its window."""
    first = client.record("use1", words(500))
    again = client.record("use2", words(500))
    recall = {"name": "recall_result", "arguments": {"handle": "r1"}}
    recalled = [client.call("tools/call", tool_use_id=f"recall{n}", **recall) for n in (1, 2)]
    assert again["text"].startswith("§ Same as r1, which is in the window in full.")
    assert all(one["text"].splitlines()[:-1] == first["text"].splitlines()[:-1] for one in recalled)


def test_a_repeated_long_result_is_a_line_whatever_the_lengths_of_footers(
    open_client: OpenClient,
) -> None:
    """Pages of one text end at different places when other results came before."""
    client = open_client(total=1_000_000)
    for number in range(12):
        client.record(f"before{number}", words(50 + 37 * number, seed=number))
        text = words(40_000, seed=100 + number)
        first = client.record(f"first{number}", text)
        again = client.record(f"again{number}", text)
        assert again["text"].startswith(f"§ Same as {first['handle']}, which is in the window")
        assert place(again) <= place(first)


def place(envelope: dict[str, Any]) -> int:
    """Return the offset at which an envelope's continuation token goes on."""
    token: str = envelope["data"]["continuation_token"]
    return int(token.partition(":")[2].partition("-")[0])


def test_a_page_that_shows_much_more_than_the_one_before_is_shown(client: Client) -> None:
    text = words(40_000)
    small = client.record("use1", text, arguments={"max_tokens": 1_000})
    large = client.record("use2", text)
    assert large["tokens"] > 3 * small["tokens"]
