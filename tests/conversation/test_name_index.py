"""After a rewrite, the names of results that left stand before the first message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.families import CLAUDE, family_named
from efrit_budget.conversation.evicted import lines_cost
from efrit_budget.conversation.name_index import TITLE, Candidates, written
from efrit_budget.results.names import ranked
from tests.conversation.client import Client, words

OpenClient = Callable[..., Client]
SMALL: dict[str, Any] = {"total": 30_000, "history": 6_000, "tool_results": 9_600}


def compacted(client: Client, *texts: str) -> dict[str, str]:
    """Run turns with these results, then others until they have left; return the index."""
    for text in texts:
        client.turn(text, message=None if client.begun else "Find it.")
    number = 100
    while client.state("r1") == "full":
        client.turn(words(800, number))
        number += 1
    client.begin()
    head = str(client.messages[0]["content"][0]["text"])
    _, _, index = head.partition(f"{TITLE}\n")
    return dict(line.split(": ", 1) for line in index.splitlines())


def listing(*names: str) -> str:
    """Return a text that has these names in its midst, which its compressed line leaves out."""
    return "\n".join(["word " * 80, *(f"{name} {'word ' * 20}" for name in names), "word " * 40])


def test_names_stand_with_the_handle_of_the_latest_result_that_has_them(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    index = compacted(
        client, listing("src/parse.py", "read_all", "only_first"), listing("read_all", "parseTree")
    )
    assert {"parse.py", "src/parse.py", "only_first"} <= set(index["r1"].split())
    assert "read_all" not in index["r1"].split()
    assert {"read_all", "parseTree"} <= set(index["r2"].split())


def test_names_that_the_window_has_elsewhere_are_left_out(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    client.begin("Where is src/parse.py?")
    client.end()
    index = compacted(client, listing("src/parse.py", "read_all"))
    assert "read_all" in index["r1"].split()
    assert "src/parse.py" not in index["r1"].split()


def test_without_a_share_no_names_are_listed(open_client: OpenClient) -> None:
    client = open_client(**SMALL, index_share=0)
    assert compacted(client, listing("src/parse.py")) == {}


def test_the_handle_brings_back_the_text_that_has_the_name(open_client: OpenClient) -> None:
    client = open_client(**SMALL)
    assert "read_all" in compacted(client, listing("read_all"))["r1"]
    client.end()
    assert "read_all" in client.use("recall_result", handle="r1")["text"]


NAMES = st.lists(st.from_regex(r"[a-z]{1,20}_[a-z]{1,20}", fullmatch=True), max_size=60)


@given(st.lists(NAMES, max_size=8), NAMES, st.integers(0, 3_000))
def test_an_index_has_each_name_once_and_is_never_too_large(
    results: list[list[str]], visible: list[str], room: int
) -> None:
    candidates = Candidates(frozenset(visible))
    for number, names in enumerate(results, 1):
        candidates.add(number, " ".join(names))
    text = written(ranked(candidates.counted), candidates.latest, room)
    title, *lines = text.split("\n")
    listed = [name for line in lines for name in line.split()[1:]]
    assert title == TITLE
    assert len("\n".join(lines)) <= room
    assert len(listed) == len(set(listed))
    assert not set(listed) & set(visible)


@pytest.mark.parametrize("share", [0.05, 0.25])
def test_the_index_stays_within_its_share_of_the_history(
    open_client: OpenClient, share: float
) -> None:
    client = open_client(**SMALL, index_share=share)
    many = [listing(*(f"name_{seed}_{number}" for number in range(40))) for seed in range(12)]
    index = compacted(client, *many)
    listed = " ".join(index.values()).split()
    assert listed
    text = "\n".join([TITLE, *(f"{handle}: {names}" for handle, names in index.items())])
    assert lines_cost(text, family_named(CLAUDE).estimate) * client.factor() <= 6_000 * share * 1.01
