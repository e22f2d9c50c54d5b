"""Tests of `context_pack`, through a real sidecar."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens, plain_tokens_ceil
from efrit_budget.memory.observation import Draft
from tests.tools.conftest import Call, shown
from tests.tools.remembering import memory_of

TENTH = 1_770_681_600.0
METHODS = Draft(
    "Methods",
    "We count tokens.",
    project="project",
    kind="decision",
    tags=("methodology",),
    importance=0.8,
)


@pytest.fixture(name="filled", autouse=True)
def fill(home: Path) -> None:
    """Fill memory with three observations of the project, one of them long, and one of another."""
    with memory_of(home) as store:
        store.save(Draft("Long", "word " * 3000, project="project", importance=1.0), now=TENTH)
        store.save(METHODS, now=TENTH)
        store.save(Draft("Sources", "We read seeds.", project="project"), now=TENTH)
        store.save(Draft("Elsewhere", "Not of this one.", project="other"), now=TENTH)


def test_the_projects_memories_are_packed_whole_and_one_too_long_is_named(call: Call) -> None:
    text = shown(call("context_pack"))
    assert re.sub(r"~\d+ tokens", "~N tokens", text) == (
        "# Project Context: project (2 memories, ~N tokens)\n"
        "\n"
        "## [decision] Methods\n"
        "*2026-02-10 | importance: 0.8 | tags: methodology*\n"
        "\n"
        "We count tokens.\n"
        "\n"
        "---\n"
        "\n"
        "## [note] Sources\n"
        "*2026-02-10 | importance: 0.5*\n"
        "\n"
        "We read seeds.\n"
        "\n"
        "*Left out: 1 of 3: [note] Long (~N tokens)*"
    )


def test_programs_get_the_memories_and_what_was_left_out(call: Call) -> None:
    data = call("context_pack")["data"]
    assert [one["title"] for one in data["memories"]] == ["Methods", "Sources"]
    assert data["memories"][0]["content"] == "We count tokens."
    assert (data["left_out"], data["project_id"]) == (1, "project")


def test_a_larger_budget_holds_the_long_one_too(call: Call) -> None:
    envelope = call("context_pack", max_tokens=7000)
    assert "(3 memories" in envelope["text"]
    assert "Left out" not in envelope["text"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "seeds"}, ["Sources"]),
        ({"kind": "decision"}, ["Methods"]),
        ({"tags": ["methodology"]}, ["Methods"]),
        ({"project": "other"}, ["Elsewhere"]),
        ({"project": "", "query": "not"}, ["Elsewhere"]),
        ({"query": "zebra"}, []),
    ],
)
def test_words_kinds_tags_and_projects_choose(
    call: Call, arguments: dict[str, Any], found: list[str]
) -> None:
    data = call("context_pack", **arguments)["data"]
    assert [one["title"] for one in data["memories"]] == found


@pytest.mark.parametrize("max_tokens", [50, 60, 80, 100, 150, 500, 2000])
def test_the_whole_answer_with_its_footer_is_within_max_tokens(call: Call, max_tokens: int) -> None:
    envelope = call("context_pack", max_tokens=max_tokens)
    text = envelope["text"]
    counted = (envelope["tokens"], estimate(text), plain_tokens(text), plain_tokens_ceil(text))
    assert max(counted) <= max_tokens
    assert text.splitlines()[-1].startswith("📏 ~")
    assert call("context_pack")["tokens"] <= 2000


def test_the_work_log_keeps_which_memories_were_packed(
    call: Call, shrunk: Callable[[dict[str, Any]], str], home: Path
) -> None:
    with memory_of(home) as store:
        store.save(Draft("More", "Of it. " * 40, project="project"))
    kept = shrunk(call("context_pack", query="of it"))
    assert kept == "Packed 1 observation on 'of it': #5 More"
