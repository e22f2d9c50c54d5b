"""The effects of a rewrite: the pieces that shrink or leave, those that stay, the new epoch."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conversation.api_rules import violations
from tests.conversation.client import Client, serialized, text, thinking, tool_use, words
from tests.conversation.conftest import OpenClient

SMALL: dict[str, Any] = {
    "total": 30_000,
    "history": 6_000,
    "tool_results": 9_600,
    "index_share": 0.05,
}
"""Limits that give prompts 21,000 tokens, full results 9,600, and 4,320 after a rewrite."""
TIGHT = SMALL | {"history": 1_500}
"""Limits under which turns leave the history early."""


def fill(client: Client, *, until_epoch: int, tokens: int = 800) -> list[str]:
    """Run turns with a result each until this epoch; return the handles, oldest first."""
    handles: list[str] = []
    while client.epoch() < until_epoch:
        client.begin(None if client.begun else "Find it.")
        if client.epoch() < until_epoch:
            use = tool_use(client.new_id(), "eval_sexp")
            client.end(thinking(), text(f"turn {len(handles)}"), use)
            handles.append(client.record(use["id"], words(tokens, len(handles)))["handle"])
    return handles


def states(client: Client) -> dict[str, str]:
    """Return the state of each entry."""
    return {entry["handle"]: entry["state"] for entry in client.entries()}


# A compaction


def test_a_compaction_shrinks_the_least_recently_used_results_to_their_mark(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL, recent_turns=0, low_water=0.45)
    handles = fill(client, until_epoch=2)
    found = [states(client)[handle] for handle in handles]
    assert sorted(set(found)) == ["compressed", "full"]
    assert found == sorted(found), "the oldest shrink, the newest stay"
    used = client.budget()["tiers"]["tool_results"]["used"]
    assert used <= 9_600 * 0.45
    assert client.begun["rewrite"] is not None


def test_a_total_below_what_is_in_the_window_has_the_next_turn_compact_it(client: Client) -> None:
    for number in range(4):
        client.turn(words(6_000, number), message=None if number else "Find it.")
    assert client.budget()["used"] > 20_000
    changed = client.call("session/limits", limits={"total": 20_000})["budget"]
    assert (changed["prompt_limit"], changed["fill"], changed["remaining"]) == (14_000, "full", 0)
    begun = client.begin()
    assert begun["rewrite_reasons"] == ["size"]
    assert begun["budget"]["used"] < 14_000
    assert client.begun["max_tokens"] == 6_000


def test_what_left_is_told_and_is_the_same_until_more_leaves(open_client: OpenClient) -> None:
    client = open_client(**TIGHT)
    told: dict[int, set[int]] = {}
    given = 0
    for number in range(60):
        begun = client.begin(None if number else "Find it.")
        told.setdefault(client.epoch(), set()).add(begun["left_window"])
        in_window = sum(
            begun["budget"]["tiers"][tier]["used"] for tier in ("history", "tool_results")
        )
        assert abs(begun["left_window"] + in_window - given) < 0.1 * given + 200
        use = tool_use(client.new_id(), "eval_sexp")
        client.end(text(f"turn {number}"), use, usage={"output_tokens": 50})
        given += 50 + client.record(use["id"], words(800, number))["tokens"]
    assert told[1] == {0}
    assert len(told) > 2
    assert all(len(figures) == 1 for figures in told.values())
    figures = [min(told[epoch]) for epoch in sorted(told)]
    assert figures == sorted(figures)
    client.crash()
    assert client.begin()["left_window"] >= figures[-1]


def test_nothing_shrinks_before_the_whole_window_is_full(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    client.turn(words(800), message="Find it.")
    while client.budget()["remaining"] > 1_500:
        client.turn(words(800, client.begun["turn_id"]))
    tier = client.budget()["tiers"]["tool_results"]
    assert tier["used"] > tier["limit"]
    assert set(states(client).values()) == {"full"}


def test_a_shrunken_result_names_its_handle_and_comes_back_whole(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    fill(client, until_epoch=2)
    line = client.results()["toolu_1"]
    assert re.match(
        r"§ \[r1: [\d,]+ tokens, shrunk; recall_result r1 brings it back\] line 0", line
    )
    assert len(line) < 700
    assert client.use("recall_result", handle="r1")["text"].startswith(words(800, 0))


def one_turn(client: Client) -> int:
    """Run a turn with a result and return its cost; five such fit below the mark."""
    before = client.budget()["remaining"]
    client.turn(words(600, client.begun["turn_id"]))
    return int(before - client.budget()["remaining"])


def nearly_full(client: Client) -> None:
    """Run turns with a result each until only one or two more fit."""
    takes = one_turn(client)
    while client.budget()["remaining"] > 2 * takes:
        one_turn(client)


def rewritten(client: Client) -> None:
    """Run turns with a result each until a rewrite begins the next epoch."""
    while client.epoch() == 1:
        one_turn(client)


def test_a_recall_counts_as_a_use(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    client.turn(words(800, 100), message="Find it.")
    client.turn(words(800, 101))
    nearly_full(client)
    client.begin()
    assert client.call_tool("recall_result", handle="r1")["text"].startswith("§ Same as r1, ")
    rewritten(client)
    assert (client.state("r1"), client.state("r2")) == ("full", "compressed")


def test_a_repeated_call_counts_as_a_use_and_points_to_what_is_there(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    client.begin("List.")
    first = client.call_tool("catalogue", max_files=50)
    client.begin()
    client.call_tool("catalogue", max_files=51)
    nearly_full(client)
    client.begin()
    again = client.call_tool("catalogue", max_files=50)
    assert again["text"].startswith("§ Same as r1, which is in the window in full.\n")
    assert again["tokens"] < first["tokens"] / 10
    rewritten(client)
    assert (client.state("r1"), client.state("r2")) == ("full", "compressed")


def test_a_pinned_result_is_not_touched(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    client.turn(words(800, 100), message="Find it.")
    client.call("worklog/pin", handle="r1")
    shown = client.record("toolu_1", words(800, 100), arguments={"at": 0})["text"]
    for _ in range(60):
        client.turn(words(800, client.begun["turn_id"]))
    assert client.epoch() > 2
    assert client.results()["toolu_1"] == shown
    assert client.state("r2") in ("compressed", "gone")


def test_the_results_of_the_turn_in_hand_give_way_last(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    for number in range(9):
        client.turn(words(800, number), message="Find it." if number == 0 else None)
    envelopes = client.turn(*(words(1_500, 100 + number) for number in range(5)))
    begun = client.begin()
    assert begun["rewrite"] is not None
    shown = list(client.results().values())
    assert shown[-5:] == [envelope["text"] for envelope in envelopes]
    assert set(list(states(client).values())[5:]) <= {"compressed", "gone"}


def test_results_that_share_what_is_left_are_all_in_view_in_the_next_request(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL, per_tool_default=20_000)
    for number in range(8):
        client.turn(words(800, number), message="Find it." if number == 0 else None)
    envelopes = client.turn(*(words(20_000, 100 + number) for number in range(5)))
    client.begin()
    shown = list(client.results().values())
    assert shown[-5:] == [envelope["text"] for envelope in envelopes]
    assert min(envelope["tokens"] for envelope in envelopes) > 1_000


def test_thinking_stays_within_an_epoch_and_goes_with_it(open_client: OpenClient) -> None:
    def thoughts(client: Client) -> int:
        blocks = [block for message in client.messages for block in message["content"]]
        return sum(block["type"] == "thinking" for block in blocks)

    client = open_client(**SMALL)
    handles = fill(client, until_epoch=2)
    assert thoughts(client) == 0
    client.end(thinking(), text("I see."))
    client.begin("and now")
    assert thoughts(client) == 1
    assert len(handles) > 5


# Turns that leave


def test_old_turns_leave_for_a_line_each_at_the_head_of_the_first_message(
    open_client: OpenClient,
) -> None:
    client = open_client(**TIGHT)
    client.turn(words(300, 0), message="The very first request.")
    client.turn(words(300, 1))
    client.turn(words(300, 2), message="The second request.")
    for number in range(3, 80):
        client.turn(words(700, number))
        if client.state("r1") == "gone":
            break
    client.begin()
    head, *_ = client.messages[0]["content"]
    lines = head["text"].partition("\n\n")[0].splitlines()
    assert lines[0].startswith("Earlier turns, a line each; recall_result with a handle")
    assert re.match(r"\(\d+ turns before these: recall_result lists all\)", lines[1])
    whole = [bool(re.match(r"t\d+ r\d+: you: turn \d+; eval_sexp ", line)) for line in lines[2:]]
    short = [bool(re.fullmatch(r"t\d+ r\d+", line)) for line in lines[2:]]
    assert sum(whole) >= 3
    assert short == sorted(short, reverse=True), "the oldest are told in fewer words first"
    assert all(one or other for one, other in zip(whole, short, strict=True))
    assert len(lines) > 4
    assert "The second request." in client.texts("user")
    gone = {entry["tool_use_id"] for entry in client.entries() if entry["state"] == "gone"}
    assert gone
    assert not gone & client.results().keys()
    assert not violations(client.messages, system_messages=True)
    assert client.use("recall_result", handle="t1")["text"].startswith("§ user:\nThe very first")


@pytest.mark.parametrize("history", [500, 600, 650, 700])
def test_the_alert_behind_a_rewrite_finds_room_in_the_history(
    open_client: OpenClient, history: int
) -> None:
    client = open_client(total=8_000, history=history, low_water=1.0)
    client.system_text = words(800)
    used: list[int] = []
    client.begin("Find it.")
    for number in range(40):
        client.turn(words(150, number))
        if client.begun["rewrite"] is not None:
            used.append(client.begun["budget"]["tiers"]["history"]["used"])
    assert used
    assert max(used) <= history


def test_the_latest_request_never_leaves(open_client: OpenClient) -> None:
    client = open_client(**TIGHT)
    client.turn(words(800, 0), message="An older request.")
    client.turn(words(800, 1), message="Do not forget this.")
    for number in range(60):
        client.turn(words(800, number))
    assert client.epoch() > 2
    assert any("Do not forget this." in said for said in client.texts("user"))


def test_requests_leave_when_their_tier_is_full_the_oldest_first(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    for number in range(9):
        client.begin(f"Request {number}. " + words(400, number))
        client.end(text("I see."))
    client.turn(*(words(3_000, number) for number in range(4)), message="And this.")
    client.begin()
    assert client.begun["rewrite"] is not None
    said = "\n".join(client.texts("user")[1:])
    kept = [number for number in range(9) if f"Request {number}. " in said]
    assert kept == list(range(9))[-len(kept) :]
    assert 0 < len(kept) < 9
    assert client.budget()["tiers"]["user_message"]["used"] <= 3_000


# Lines that point elsewhere


def test_a_line_that_points_to_a_result_shrinks_with_that_result(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    client.turn(words(800, 0), message="Find it.")
    client.turn(words(800, 0))
    client.begin()
    assert client.results()["toolu_2"].startswith("§ Same as r1, which is in the window in full.")
    client.end(tool_use("next", "eval_sexp"))
    client.record("next", words(800, 1))
    rewritten(client)
    assert client.results()["toolu_1"].startswith("§ [r1: ")
    assert client.results()["toolu_2"] == "§ [r2: same as r1; recall_result r2 brings it back]"


def test_after_the_original_was_dropped_no_line_says_that_it_is_there(client: Client) -> None:
    client.turn(words(800, 0), message="Find it.")
    client.turn(words(800, 0))
    client.begin()
    assert client.results()["toolu_2"].startswith("§ Same as r1, which is in the window in full.")
    client.end(text("I see."))
    client.call("worklog/drop", handle="r1")
    client.begin("go on")
    assert client.results()["toolu_2"].startswith("§ [r2: same as r1; ")


def test_a_repeated_call_is_delivered_again_once_the_original_has_shrunk(
    client: Client,
) -> None:
    first = client.turn(words(800, 0), message="Find it.")[0]
    client.begin()
    client.end(text("I see."))
    client.call("worklog/drop", handle="r1")
    client.begin("Again.")
    client.end(tool_use("again", "eval_sexp"))
    again = client.record("again", words(800, 0))
    assert again["text"].splitlines()[:-1] == first["text"].splitlines()[:-1]


def test_a_short_text_is_sent_again_rather_than_pointed_to(client: Client) -> None:
    envelopes = client.turn("done\n", "done\n", message="Do it.")
    assert [envelope["text"].splitlines()[0] for envelope in envelopes] == ["done", "done"]


# Hints


def catalogue(client: Client) -> Any:
    """Return the catalogue's schema as the model gets it."""
    return next(tool for tool in client.tools if tool["name"] == "catalogue")


def test_the_tools_say_what_the_budget_allows_and_suggest_the_same(client: Client) -> None:
    client.begin("List.")
    tool = catalogue(client)
    assert tool["description"] == (
        "List project files. Current budget allows ~260 files with metadata."
    )
    parameter = tool["input_schema"]["properties"]["max_files"]
    assert parameter["default"] == 260
    assert parameter["description"] == "Limit files returned (budget suggests: 260)"


def test_a_hint_keeps_within_the_bounds_of_its_parameter(open_client: OpenClient) -> None:
    client = open_client(total=1_000_000, per_tool={"catalogue": 200_000})
    client.begin("List.")
    parameter = catalogue(client)["input_schema"]["properties"]["max_files"]
    assert parameter["default"] == 3_000


def test_hints_change_with_a_rewrite_alone(open_client: OpenClient) -> None:
    client = open_client(**SMALL, per_tool_default=SMALL["total"])
    client.turn(words(800), message="List.")
    first = client.tools
    while client.epoch() == 1:
        assert serialized(client.tools) == serialized(first)
        client.turn(words(800, client.begun["turn_id"]))
    assert files_allowed(client.tools) < files_allowed(first)


def files_allowed(tools: list[Any]) -> int:
    """Return the number of files that the catalogue's description promises."""
    description = next(tool["description"] for tool in tools if tool["name"] == "catalogue")
    hinted = re.search(r"allows ~([\d,]+) files", description)
    assert hinted, description
    return int(hinted[1].replace(",", ""))
