"""The names in a text: what counts as one, and what stays in memory of it."""

from __future__ import annotations

import tracemalloc

import pytest

from efrit_budget.results.names import count_names, most_frequent, names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/parse.py and read_all", {"src/parse.py", "parse.py", "read_all"}),
        ("a word, another one", set()),
        ("parseTree at line 1234, not 12", {"parseTree", "1234"}),
        ("std::vector<int> or obj.member", {"std::vector", "obj.member"}),
    ],
)
def test_paths_symbols_and_numbers_are_names(text: str, found: set[str]) -> None:
    assert names(text) == found


def test_the_most_frequent_names_come_first_as_far_as_there_is_room() -> None:
    text = "one_name two_name two_name three_name three_name three_name"
    assert most_frequent(text, 20) == "three_name two_name"


def test_names_in_data_without_blanks_are_found_but_the_data_is_not_kept() -> None:
    tracemalloc.start()
    for number in range(20):
        assert count_names(f"{'=' * 500_000}only_{number}")[f"only_{number}"] == 1
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000
