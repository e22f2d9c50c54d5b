"""Tests of `sdd_context_check`, through a real sidecar, real documents and a real memory."""

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
from tests.tools.test_sdd_get_context import sizes_hidden, write

CHANGE = "Let the parser read tables"


@pytest.fixture
def scene(project: Path, home: Path) -> Path:
    """Documents, changes, conventions and memories, some of which share words with the change."""
    write(project, "docs/requirements.md", "# Requirements\n\nThe parser reads lists.\nNot this.\n")
    write(project, "docs/guide.md", "# Guide\n\nHow to begin.\n")
    write(project, "docs/changes/add-parser/proposal.md", "# Add a parser\n\nIt will read.\n")
    write(project, "docs/changes/drop-cache/proposal.md", "# Drop the cache\n\nIt lies.\n")
    write(project, "docs/changes/big-tables/proposal.md", "# Tables\n\nBig ones.\n")
    write(project, "CONTRIBUTING.md", "# How to contribute\n\nWith care.\n")
    with memory_of(home) as store:
        store.save(Draft("Parsers compared", "Tables are hard.", "project", "explore"))
        store.save(Draft("Parser chosen", "We took one.", "project", "decision"))
        store.save(Draft("Tables elsewhere", "Of the other.", "other", "explore", "personal"))
    return project


REPORT = """\
# Context check
## Existing documents
requirements: docs/requirements.md (~N tokens) Requirements
docs/guide.md (~N tokens) Guide
## Earlier changes with its words
docs/changes/add-parser (1 document, ~N tokens) Add a parser [parser, read]
It will read.
docs/changes/big-tables (1 document, ~N tokens) Tables [tables]
Big ones.
## Memory of type explore
#3 [explore] Tables elsewhere (project other)
Of the other.
#1 [explore] Parsers compared
Tables are hard.
## Conventions
CONTRIBUTING.md (~N tokens) How to contribute
With care.
## Excerpts
docs/requirements.md [parser, read]
3: The parser reads lists."""


def test_a_report_names_documents_changes_memory_conventions_and_excerpts(
    call: Call, scene: Path
) -> None:
    envelope = call("sdd_context_check", change_description=CHANGE)
    text = sizes_hidden(shown(envelope))
    assert text == REPORT
    facts = envelope["data"]["findings"]
    assert [one["path"] for one in facts if "words" in one] == [
        *("docs/changes/add-parser", "docs/changes/big-tables", "docs/requirements.md"),
    ]


def test_a_summary_has_a_line_for_each_and_no_excerpts(call: Call, scene: Path) -> None:
    text = shown(call("sdd_context_check", change_description=CHANGE, detail_level="summary"))
    assert "## Excerpts" not in text
    assert "#3 [explore] Tables elsewhere (project other)\n#1 " in text
    assert "With care." not in text


def test_with_full_detail_texts_and_memories_are_whole(call: Call, scene: Path, home: Path) -> None:
    with memory_of(home) as store:
        store.save(Draft("Long", "tables " * 300 + "end", "project", "explore"))
    standard = shown(call("sdd_context_check", change_description=CHANGE))
    full = shown(call("sdd_context_check", change_description=CHANGE, detail_level="full"))
    assert "tables end" not in standard
    assert "tables end" in full
    assert "3: The parser" not in full
    assert "# Requirements\n\nThe parser reads lists.\nNot this." in full


def test_memory_is_that_of_the_project_and_scope_asked_for(call: Call, scene: Path) -> None:
    def ids(**more: str) -> list[int]:
        asked = call("sdd_context_check", change_description="tables", **more)
        return [one["id"] for one in asked["data"]["findings"] if "id" in one]

    assert sorted(ids()) == [1, 3]
    assert ids(project="project") == [1]
    assert ids(scope="personal") == [3]


def test_what_is_not_found_is_said_in_one_line(call: Call, project: Path) -> None:
    text = shown(call("sdd_context_check", change_description="Something new"))
    assert text == (
        "# Context check\nNone: existing documents, earlier changes with its words,"
        " memory of type explore, conventions, excerpts"
    )


def test_a_description_of_short_words_still_brings_what_needs_none(call: Call, scene: Path) -> None:
    text = sizes_hidden(shown(call("sdd_context_check", change_description="do it by it")))
    assert text.splitlines()[:3] == [
        "# Context check",
        "No word to look for in documents and changes.",
        "None: earlier changes with its words, excerpts",
    ]
    for line in (
        "requirements: docs/requirements.md (~N tokens) Requirements",
        "#1 [explore] Parsers compared",
        "CONTRIBUTING.md (~N tokens) How to contribute",
    ):
        assert line in text.splitlines()


def counts(text: str) -> set[tuple[int, int]]:
    """Return the numbers of findings shown and found, from each line that names them."""
    said = re.findall(r"([\d,]+) of ([\d,]+) findings", text)
    return {(int(shown.replace(",", "")), int(total.replace(",", ""))) for shown, total in said}


@pytest.mark.parametrize("detail", ["summary", "standard", "full"])
def test_the_whole_report_is_within_max_tokens_and_says_truly_what_it_shows(
    call: Call, scene: Path, detail: str
) -> None:
    for number in range(30):
        write(scene, f"docs/{number}.md", f"# Note\n\n{'The parser reads tables. ' * number}\n")
    whole = 32 + 2 + 2 + 1 + (30 if detail != "summary" else 0)
    for max_tokens in (50, 60, 90, 150, 300, 800, 2500):
        envelope = call(
            "sdd_context_check",
            change_description=CHANGE,
            detail_level=detail,
            max_tokens=max_tokens,
            limit=100,
        )
        text = envelope["text"]
        assert max(estimate(text), plain_tokens(text), plain_tokens_ceil(text)) <= max_tokens
        assert text.splitlines()[-1].startswith("📏 ~")
        listed = len(envelope["data"].get("findings", []))
        assert counts(text) <= {(listed, whole)}
        assert counts(text) or listed == whole


def test_a_limit_holds_in_each_section_and_the_rest_is_counted(call: Call, scene: Path) -> None:
    envelope = call("sdd_context_check", change_description=CHANGE, limit=1)
    assert len(envelope["data"]["findings"]) == 5
    assert "\n§ Showing 5 of 8 findings. Increase limit for more.\n" in envelope["text"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "change_description"),
        ({"change_description": ""}, "change_description"),
        ({"change_description": "x", "detail_level": "more"}, "'summary', 'standard' or 'full'"),
        ({"change_description": "x", "limit": 101}, "100"),
    ],
)
def test_what_is_wrong_with_an_argument_is_told(
    call: Call, arguments: dict[str, Any], told: str
) -> None:
    envelope = call("sdd_context_check", **arguments)
    assert envelope["status"] == "error"
    assert told in envelope["message"]


def test_a_description_is_words_whatever_it_holds(call: Call, scene: Path) -> None:
    for description in (
        '"parser" OR (tables',
        "parser:* NOT",
        "parser " * 5000 + "Q1",
        "ﬁ parser\x00é",
    ):
        envelope = call("sdd_context_check", change_description=description)
        assert envelope["status"] == "success"
        paths = [one.get("path") for one in envelope["data"]["findings"]]
        assert "docs/changes/add-parser" in paths


def test_files_with_secrets_are_not_read(call: Call, scene: Path) -> None:
    write(scene, "docs/changes/add-parser/.env.txt", "secret")
    write(scene, "docs/id_parser", "parser secret")
    write(scene, "docs/.env.md", "parser secret")
    text = call("sdd_context_check", change_description=CHANGE, detail_level="full")["text"]
    assert "secret\n" not in text
    left_out = "Left out (secrets, outside or unreadable): docs/.env.md, docs/changes/add-parser/"
    assert left_out in text


def test_the_work_log_keeps_what_was_found(
    call: Call, scene: Path, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    kept = shrunk(call("sdd_context_check", change_description=CHANGE))
    assert kept.startswith(f"Checked {CHANGE!r}: 8 findings: docs/requirements.md, docs/guide.md,")


def test_words_of_three_letters_are_looked_for_but_for_the_commonest(
    call: Call, project: Path
) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "tokens.md").write_text("# Tokens\nA jwt has the day in it.\n")
    text = shown(call("sdd_context_check", change_description="fix the jwt"))
    assert "docs/tokens.md [jwt]" in text
