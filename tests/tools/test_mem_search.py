"""Searching observations, through a real sidecar."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.tools.conftest import Call, shown
from tests.tools.mem import BUDGET_LINE, listed, most, number, paged, save, shown_of

FACTOR = 1.3
"""The model's tokens for one estimated token."""
LONG = "A needle in a long story that goes on and on. " * 60


def test_observations_with_all_the_words_are_found_best_first(call: Call) -> None:
    weak = save(call, "Else", "Somewhere a needle in the hay, and much more hay around it all.")
    strong = save(call, "Needle in the hay", "Short.")
    save(call, "Needle", "Alone.")
    envelope = call("mem_search", query="needle hay")
    assert listed(envelope) == [strong, weak]
    assert envelope["data"]["total"] == 2


def test_where_none_has_all_the_words_those_with_any_come_and_the_answer_says_so(
    call: Call,
) -> None:
    number = save(call, "Needle", "Alone.")
    envelope = call("mem_search", query="needle nowhere")
    assert shown(envelope).splitlines()[0] == (
        "No observation holds every word; these hold some of them."
    )
    assert listed(envelope) == [number]


@pytest.mark.parametrize("query", ["nothing", "nothing at all", ""])
def test_nothing_found_is_no_error(call: Call, query: str) -> None:
    envelope = call("mem_search", query=query)
    assert (envelope["status"], shown(envelope)) == ("success", "No observation matches.")
    assert envelope["data"]["results"] == []


def test_words_are_found_in_other_forms_and_by_their_beginning(call: Call) -> None:
    number = save(call, "Retries", "The connections were authenticated; café.")
    for query in ("retry", "connection", "authenticating", "auth*", "CAFE", "connect* were"):
        assert listed(call("mem_search", query=query)) == [number], query
    assert listed(call("mem_search", query="authx*")) == []


@pytest.mark.parametrize(
    "query",
    [
        *('"', 'needle"', '""', "AND", "needle AND", "NOT needle", "NEAR(needle 2)", "needle*"),
        *("title:needle", "-needle", "needle-like", "^needle", "(needle", "{needle}", "needle\\"),
        *("'; DROP TABLE observations; --", "*", "**", "&&", "\0", "needle\0", "針", "needle + x"),
        " ".join(f"needle{number}" for number in range(10_000)),
        "x" * 100_000,
    ],
)
def test_a_query_is_data_and_never_an_error(call: Call, query: str) -> None:
    save(call, "Needle", "A needle-like and a needle or not; near.")
    assert call("mem_search", query=query)["status"] == "success"


def test_a_hyphen_between_words_asks_for_them_side_by_side(call: Call) -> None:
    number = save(call, "One", "It is needle-like.")
    save(call, "Two", "It is like a needle.")
    assert listed(call("mem_search", query="needle-like")) == [number]


def test_filters_hold_before_the_limit(call: Call) -> None:
    for index in range(30):
        save(call, f"Needle {index}", f"Big project, {index}.", project="big")
    small = save(call, "Story", LONG, project="small", type="fix", tags=["a", "b"], scope="team")
    for filters in (
        {"project": "small"},
        {"scope": "team"},
        {"type": "fix"},
        {"tags": ["b"]},
        {"tags": ["b", "a"], "project": "small"},
    ):
        envelope = call("mem_search", query="needle", limit=1, **filters)
        assert listed(envelope) == [small], filters
        assert envelope["data"]["total"] == 1
    assert listed(call("mem_search", query="needle", tags=["b", "c"])) == []


def test_the_line_on_more_tells_the_true_total(call: Call) -> None:
    for index in range(7):
        save(call, f"Needle {index}", f"Number {index}.")
    envelope = call("mem_search", query="needle", limit=3)
    assert shown(envelope).splitlines()[-1] == (
        "Showing 3 of 7 results. Use limit or mem_get_observation #ID for more."
    )
    assert "Showing" not in call("mem_search", query="needle", limit=7)["text"]


@pytest.mark.parametrize(
    ("level", "holds", "lacks"),
    [
        ("summary", "Story", "long story"),
        ("standard", "long story", LONG.strip()),
        ("full", LONG.strip(), "…"),
    ],
)
def test_the_detail_level_says_how_much_is_told_of_each(
    call: Call, level: str, holds: str, lacks: str
) -> None:
    save(call, "Story", LONG)
    text = call("mem_search", query="needle", detail_level=level)["text"]
    assert holds in text
    assert lacks not in text


@pytest.mark.parametrize("parameter", ["max_tokens", "token_budget"])
@pytest.mark.parametrize("budget", [50, 60, 80, 120, 200, 500, 2000])
def test_the_whole_answer_keeps_to_the_budget(call: Call, parameter: str, budget: int) -> None:
    for index in range(20):
        save(call, f"Needle {index}", f"{index} {LONG}")
    envelope = call("mem_search", query="needle", limit=15, **{parameter: budget})
    assert most(envelope["text"]) <= budget
    [(given, total)] = shown_of(envelope)
    assert (given, total) == (len(listed(envelope)), 20)


def test_the_budget_line_tells_what_the_footer_tells(call: Call) -> None:
    for index in range(20):
        save(call, f"Needle {index}", f"{index} {LONG}")
    envelope = call("mem_search", query="needle", limit=15, max_tokens=300)
    [(used, budget, _, _)] = BUDGET_LINE.findall(envelope["text"])
    assert budget == "300"
    assert int(used) == envelope["tokens"]


def test_the_smaller_of_both_names_for_the_budget_counts(call: Call) -> None:
    for index in range(20):
        save(call, f"Needle {index}", f"{index} {LONG}")
    for one, other in ((2000, 150), (150, 2000)):
        envelope = call("mem_search", query="needle", max_tokens=one, token_budget=other)
        assert most(envelope["text"]) <= 150


def test_one_too_long_is_named_with_its_size_and_the_next_are_shown(call: Call) -> None:
    save(call, "Needle", "One needle.")
    short = save(call, "Other", "A needle.")
    title = "Needle " * 70
    long = save(call, title, "needle " * 5000)
    envelope = call("mem_search", query="needle", detail_level="full", max_tokens=200)
    size = most(f"#{long} [note] {title}\n{'needle ' * 5000}\n")
    [named] = [line for line in envelope["text"].splitlines() if line.endswith(" tokens)")]
    told = re.fullmatch(rf"§ #{long} Needle( Needle)+… \(([\d,]+) tokens\)", named)
    assert told is not None
    assert number(told[2]) == pytest.approx(FACTOR * size, rel=0.01)
    assert f"#{short} [note] Other" in envelope["text"]
    assert "A needle." in envelope["text"]
    assert long not in listed(envelope), "what is only named is left out"
    assert "2 of 3 results shown" in envelope["text"]


def test_one_whose_content_is_too_long_falls_to_its_line(call: Call) -> None:
    save(call, "Needle needle needle", "needle " * 5000)
    envelope = call("mem_search", query="needle", detail_level="full", max_tokens=200)
    assert "#1 [note] Needle needle needle (20" in envelope["text"]
    assert listed(envelope) == [1]


def test_the_last_page_says_how_many_of_all_it_shows_and_how_to_get_more(
    sidecar: Connection, project: Path, call: Call
) -> None:
    for index in range(20):
        save(call, f"Needle {index}", f"{index} {LONG}")
    seen: list[int] = []
    for envelope in paged(sidecar, project, "mem_search", query="needle", limit=6):
        seen += listed(envelope)
        assert envelope["data"]["total"] == 20
        assert shown_of(envelope) == {(len(listed(envelope)), 20)}
    assert len(set(seen)) == len(seen) == 6
    assert shown(envelope).splitlines()[-1] == (
        f"Showing {len(listed(envelope))} of 20 results."
        " Use limit or mem_get_observation #ID for more."
    )


def test_a_rank_is_explained_by_its_parts(call: Call) -> None:
    save(call, "Needle", "One.", importance=1)
    save(call, "Needle", "Two.", importance=0)
    envelope = call("mem_search", query="needle", explain=True)
    first, second = envelope["data"]["results"]
    assert first["rank"]["importance"] == 1.0
    assert first["rank"]["score"] > second["rank"]["score"]
    assert "with recency 1.00, importance 1.00, access 0.00" in envelope["text"]


def test_pages_of_many_results_are_disjoint_and_complete(call: Call) -> None:
    numbers = {save(call, f"Needle {index}", f"{index} {LONG}") for index in range(40)}
    envelope = call("mem_search", query="needle", limit=40, detail_level="full")
    seen = listed(envelope)
    while "continuation_token" in envelope["data"]:
        token = envelope["data"]["continuation_token"]
        envelope = call("mem_search", continuation_token=token)
        seen += listed(envelope)
    assert len(seen) == len(set(seen)) == 40
    assert set(seen) == numbers


@pytest.mark.parametrize("budget", [60, 100, 300, 1000])
def test_a_further_page_keeps_to_a_budget_of_its_own(call: Call, budget: int) -> None:
    said = "government international development information " * 60
    for index in range(40):
        save(call, f"Needle {index}", f"{index} {said}")
    envelope = call("mem_search", query="needle", limit=40, detail_level="full")
    pages = 0
    while pages < 20 and "continuation_token" in envelope["data"]:
        token = envelope["data"]["continuation_token"]
        envelope = call("mem_search", continuation_token=token, max_tokens=budget)
        assert most(envelope["text"]) <= budget
        pages += 1
    assert pages


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "query"),
        ({"query": "x", "limit": 0}, "must be from 1 to 200"),
        ({"query": "x", "limit": -1}, "must be from 1 to 200"),
        ({"query": "x", "limit": 10**30}, "must be from 1 to 200"),
        ({"query": "x", "max_tokens": 0}, "from 50 to 1,000,000"),
        ({"query": "x", "token_budget": 49}, "mem_search: token_budget: at least 50"),
        ({"query": "x", "detail_level": "all"}, "detail_level"),
    ],
)
def test_bad_arguments_are_named(call: Call, arguments: dict[str, Any], said: str) -> None:
    envelope = call("mem_search", **arguments)
    assert envelope["status"] == "error"
    assert said in envelope["message"]


def test_numbers_as_text_are_taken(call: Call) -> None:
    for index in range(3):
        save(call, f"Needle {index}")
    envelope = call("mem_search", query="needle", limit="2", max_tokens="500")
    assert len(listed(envelope)) == 2


def test_what_has_the_topic_key_comes_first(call: Call) -> None:
    number = save(call, "Tokens", "How people log in.", topic_key="auth/choice")
    other = save(call, "Auth choice", "Another auth choice, auth choice.")
    assert listed(call("mem_search", query="auth/choice")) == [number, other]
    assert listed(call("mem_search", query="auth/choice", limit=1)) == [number]


def test_words_spelled_nearly_alike_are_named_where_nothing_matches(call: Call) -> None:
    save(call, "Tokens", "They have a rotation each day.")
    said = shown(call("mem_search", query="rotaiton"))
    assert said == "No observation matches. Near words: rotaiton: rotation"
    assert shown(call("mem_search", query="zebra")) == "No observation matches."


def test_a_run_of_a_script_without_blanks_is_found_inside_a_longer_one(call: Call) -> None:
    number = save(call, "決定", "これは東京都の認証方式の決定です")
    save(call, "Other", "Nothing of it.")
    assert listed(call("mem_search", query="認証方式")) == [number]
    assert listed(call("mem_search", query="認証方式 東京")) == [number]


def test_a_scope_may_be_in_any_case(call: Call) -> None:
    number = save(call, "Needle", scope="Team")
    assert listed(call("mem_search", query="needle", scope="team")) == [number]


def test_the_person_s_requests_of_all_sessions_are_searched(
    sidecar: Connection, call: Call, project: Path
) -> None:
    for message in ("Rotate the Tokens daily", "Paint it green", "rotate the logs, too"):
        past = sidecar.request("session/open", root=str(project))["session_id"]
        sidecar.request("turn/begin", session_id=past, model="m", user_message=message)
    found = call("mem_search", query="rotate", type="request")
    texts = [one["text"] for one in found["data"]["results"]]
    assert texts == ["rotate the logs, too", "Rotate the Tokens daily"]
    one = call("mem_search", query="ROTATE tokens", type="request")
    assert "Rotate the Tokens daily" in one["text"]
    none = call("mem_search", query="zebra", type="request")
    assert shown(none) == "No request of the person matches."
