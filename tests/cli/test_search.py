"""`efrit-budget search`."""

from __future__ import annotations

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens_ceil
from tests.cli.command import efrit
from tests.cli.test_memory import save


@pytest.fixture(autouse=True)
def remembered() -> None:
    """Fill memory with three observations of one project and one of another."""
    flags = ("--project", "thesis", "--kind", "decision", "--tag", "auth")
    save("Tokens rotate", "Each token is used once.", *flags, "--importance", "0.9")
    save("Sessions last a day", "A token would last longer.", *flags)
    save("Retries", "They wait for a token.", "--project", "thesis")
    save("Tokens elsewhere", "They are tokens.", "--project", "other")


def ids(*arguments: str) -> list[int]:
    """Search and return the numbers of the matches."""
    return [one["id"] for one in efrit("search", *arguments, "--json").json["results"]]


def test_each_result_is_a_line_the_best_first() -> None:
    lines = efrit("search", "tokens").out.splitlines()
    assert len(lines) == 4
    assert {line.partition(" ")[0] for line in lines[:2]} == {"#1", "#4"}
    assert any("#1 [decision] Tokens rotate (" in line for line in lines)
    assert any("importance: 0.9, tags: auth)" in line for line in lines)


def test_filters_choose_what_is_found() -> None:
    assert set(ids("token", "--project", "thesis")) == {1, 2, 3}
    assert set(ids("token", "--kind", "decision")) == {1, 2}
    assert set(ids("token", "--tag", "auth", "--tag", "jwt")) == set()


def test_the_limit_counts_and_the_answer_says_how_many_there_are() -> None:
    ended = efrit("search", "token", "--limit", "2")
    assert len(ended.out.splitlines()) == 3
    assert ended.out.splitlines()[2] == (
        "Showing 2 of 4 results. Use --limit, --token-budget or 'efrit-budget memory get ID'"
        " for more."
    )


@pytest.mark.parametrize("budget", [60, 80, 100, 150, 400])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_whole_answer_is_within_the_token_budget(budget: int, form: list[str]) -> None:
    ended = efrit("search", "token", "--token-budget", str(budget), *form)
    text = ended.out.removesuffix("\n")
    assert max(estimate(text), plain_tokens_ceil(text)) <= budget


def test_first_the_limit_counts_and_then_the_budget() -> None:
    both = efrit("search", "token", "--limit", "2", "--token-budget", "5000", "--json").json
    assert (both["returned"], both["total"], both["budget"]) == (2, 4, 5000)
    less = efrit("search", "token", "--limit", "3", "--token-budget", "250", "--json").json
    assert less["returned"] < 3
    assert [one["id"] for one in less["results"]] == ids("token")[: less["returned"]]


def test_without_a_budget_the_limit_alone_counts() -> None:
    assert efrit("search", "token", "--json").json["budget"] is None
    assert "📏" not in efrit("search", "token").out
    assert efrit("search", "token", "--token-budget", "500").out.splitlines()[-1].startswith("📏 ~")


@pytest.mark.parametrize(
    "query", ['"', "a OR", "NOT", "x:y", "-", "(", "token's AND", "*", "é\udcff"]
)
def test_a_query_is_words_whatever_it_holds(query: str) -> None:
    ended = efrit("search", "--", query)
    assert (ended.code, ended.err) == (0, "")


def test_a_word_that_ends_in_a_star_is_a_beginning() -> None:
    assert ids("rota*") == [1]
    assert ids("rotat") == [1]
    assert ids("rot") == []


def test_nothing_found_is_said() -> None:
    assert efrit("search", "zebra").out == "No memory matches.\n"
    assert efrit("search", "zebra", "--json").json["total"] == 0


def test_where_no_memory_holds_every_word_those_with_some_are_shown_and_it_is_said() -> None:
    lines = efrit("search", "rotate zebra").out.splitlines()
    assert lines[0] == "No memory holds every word; these hold some of them."
    assert lines[1].startswith("#1 ")
