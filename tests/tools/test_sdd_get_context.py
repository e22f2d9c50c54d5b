"""Tests of `sdd_get_context`, through a real sidecar and a project with real documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens, plain_tokens_ceil
from efrit_budget.tools.registry import discover, entry
from tests.connection import Connection
from tests.local_sidecar import LocalSidecar
from tests.tools.conftest import Call, shown

PROSE = "The program counts what enters the window and says so in every answer it gives. "


def write(project: Path, name: str, text: str) -> None:
    """Write a file and the folders above it."""
    file = project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def documents(project: Path) -> Path:
    """A project with two stages, two changes, a convention file and two other documents."""
    write(project, "docs/requirements.md", f"# What it must do\n\n{PROSE * 20}\n")
    write(project, "specs/design.md", "# How it does it\n\nOne process.\n")
    write(project, "docs/guide.md", f"Guide\n=====\n\n{PROSE}\n")
    write(project, "docs/deep/größe.org", "#+title: Sizes\n\nBig.\n")
    write(project, "docs/changes/add-parser/proposal.md", "# Add a parser\n\nIt reads.\n")
    write(project, "docs/changes/add-parser/tasks.md", "# Tasks\n\n1. Read.\n")
    write(project, "docs/changes/drop-cache/proposal.md", "# Drop the cache\n\nIt lies.\n")
    write(project, "README.md", "# A project\n\nIt is small.\n")
    write(project, "docs/picture.svg", "<svg/>")
    return project


def sizes_hidden(text: str) -> str:
    """Return the text without token counts, which depend on the estimator."""
    return re.sub(r"~[\d,]+ tokens?", "~N tokens", text)


SUMMARY = """\
# Specification
Stages without a file: principles, charter, business-rules, clarifications, tasks, validate
## Stages
requirements: docs/requirements.md (~N tokens) What it must do
design: specs/design.md (~N tokens) How it does it
## Changes
docs/changes/add-parser (2 documents, ~N tokens) Add a parser
docs/changes/drop-cache (1 document, ~N tokens) Drop the cache
## Conventions
README.md (~N tokens) A project
## Documents
docs/deep/größe.org (~N tokens) Sizes
docs/guide.md (~N tokens) Guide"""


def test_unless_asked_for_more_each_artifact_is_a_line_with_its_size_and_title(
    call: Call, documents: Path
) -> None:
    envelope = call("sdd_get_context")
    assert sizes_hidden(shown(envelope)) == SUMMARY
    assert call("sdd_get_context", detail_level="summary")["data"] == envelope["data"]
    assert envelope["data"]["artifacts"][0] == {
        "path": "docs/requirements.md",
        "bytes": (documents / "docs/requirements.md").stat().st_size,
        "stage": "requirements",
    }


def test_the_size_that_is_told_of_a_document_is_about_what_it_costs(
    call: Call, documents: Path
) -> None:
    told = re.search(r"~([\d,]+) tokens\) What it must", call("sdd_get_context")["text"])
    assert told is not None
    costs = call("sdd_get_context", stage="requirements")["tokens"]
    assert int(told[1].replace(",", "")) == pytest.approx(costs, rel=0.1)


def test_with_standard_detail_each_line_is_followed_by_the_beginning_of_the_text(
    call: Call, documents: Path
) -> None:
    text = shown(call("sdd_get_context", detail_level="standard"))
    assert "How it does it\nOne process.\n## Changes" in text
    assert f"What it must do\n{PROSE * 5}"[:400] in text
    assert text.count(PROSE.strip()) < 20
    assert " […]\n" in text


def test_with_full_detail_whole_texts_are_told_those_of_all_documents_of_a_change(
    call: Call, documents: Path
) -> None:
    text = shown(call("sdd_get_context", detail_level="full"))
    assert (documents / "docs/requirements.md").read_text().strip() in text
    assert "docs/changes/add-parser/tasks.md\n# Tasks\n\n1. Read." in text


def test_a_stage_gives_its_file_whatever_the_detail(call: Call, documents: Path) -> None:
    envelope = call("sdd_get_context", stage="design")
    assert shown(envelope) == "specs/design.md\n# How it does it\n\nOne process."
    assert envelope["data"]["paths"] == ["specs/design.md"]
    for detail in ("summary", "standard", "full"):
        again = call("sdd_get_context", stage="design", detail_level=detail)
        assert shown(again) == "Same as r1, which is in the window in full."


def test_a_stage_with_two_files_gives_both(call: Call, documents: Path) -> None:
    write(documents, "docs/Design.MD", "# Another\n")
    assert shown(call("sdd_get_context", stage="design")).splitlines() == [
        *("docs/Design.MD", "# Another", "specs/design.md", "# How it does it", "", "One process."),
    ]


def test_a_stage_without_a_file_says_which_there_are(call: Call, documents: Path) -> None:
    assert shown(call("sdd_get_context", stage="tasks")) == (
        "No file of the stage tasks in docs/, specs/; there are:"
        " requirements (docs/requirements.md), design (specs/design.md)."
    )


def pages(call: Call, envelope: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an envelope and those of the following pages."""
    yield envelope
    while (token := envelope["data"].get("continuation_token")) is not None:
        envelope = call("sdd_get_context", continuation_token=token)
        yield envelope


@pytest.mark.parametrize("line", [PROSE + "\n", "日本語の文です。", "x" * 90])
def test_the_pages_of_a_stage_are_within_the_budget_disjoint_and_complete(
    call: Call, project: Path, line: str
) -> None:
    write(project, "docs/design.md", line * 100)
    found = list(pages(call, call("sdd_get_context", stage="design", max_tokens=300)))
    texts = [shown(one).partition("\nShowing")[0] for one in found]
    whole = f"docs/design.md\n{line * 100}"
    assert re.sub(r"\s", "", "".join(texts)) == re.sub(r"\s", "", whole)
    assert len(found) > 3
    for one in found:
        assert max(one["tokens"], plain_tokens(one["text"])) <= 300


def counts(text: str) -> list[tuple[int, int]]:
    """Return the numbers of artifacts shown and found, from each line that names them."""
    said = re.findall(r"([\d,]+) of ([\d,]+) artifacts", text)
    return [(int(shown.replace(",", "")), int(total.replace(",", ""))) for shown, total in said]


@pytest.mark.parametrize("detail", ["summary", "standard", "full"])
def test_the_whole_answer_is_within_max_tokens_and_says_truly_what_it_shows(
    call: Call, documents: Path, detail: str
) -> None:
    for number in range(40):
        write(documents, f"docs/notes/{number:02}.md", f"# Note {number}\n\n{PROSE * number}\n")
    for max_tokens in (50, 51, 80, 120, 200, 400, 1000, 3000):
        envelope = call("sdd_get_context", detail_level=detail, max_tokens=max_tokens, limit=1000)
        text = envelope["text"]
        assert max(estimate(text), plain_tokens(text), plain_tokens_ceil(text)) <= max_tokens
        assert text.splitlines()[-1].startswith("📏 ~")
        listed = len(envelope["data"].get("artifacts", []))
        assert set(counts(text)) <= {(listed, 47)}
        assert counts(text) or listed == 47


def test_what_the_budget_cuts_is_told_in_one_line_with_the_figure_of_the_footer(
    call: Call, documents: Path
) -> None:
    envelope = call("sdd_get_context", detail_level="full", max_tokens=150)
    *_, budget, footer = envelope["text"].splitlines()
    listed = len(envelope["data"]["artifacts"])
    assert budget == (
        f"⚡ Budget: ~{envelope['tokens']}/150 tokens used. {listed} of 7 artifacts shown."
        " Increase max_tokens or use detail_level=summary for more."
    )
    assert footer.startswith(f"📏 ~{envelope['tokens']} tokens · ")


def test_an_artifact_that_is_too_long_is_named_and_those_behind_it_are_shown(
    call: Call, documents: Path
) -> None:
    text = shown(call("sdd_get_context", detail_level="full", max_tokens=240))
    assert "requirements: docs/requirements.md (~" in text
    assert text.count(PROSE.strip()) < 20
    assert "README.md" in text


def test_a_limit_shows_that_many_and_says_how_many_there_are(call: Call, documents: Path) -> None:
    envelope = call("sdd_get_context", limit=3)
    assert shown(envelope).splitlines()[-1] == "Showing 3 of 7 artifacts. Increase limit for more."
    assert len(envelope["data"]["artifacts"]) == 3
    assert "Showing" not in call("sdd_get_context", limit=7)["text"]


def test_more_than_the_allowance_holds_is_paged_without_loss(call: Call, project: Path) -> None:
    for number in range(900):
        write(project, f"docs/{number:03}.md", f"# The title of the note number {number}\n")
    first = call("sdd_get_context", limit=1000)
    paths = [one["path"] for page in pages(call, first) for one in page["data"]["artifacts"]]
    assert paths == [f"docs/{number:03}.md" for number in range(900)]
    assert counts(first["text"]) == [(len(first["data"]["artifacts"]), 900)]


def test_files_with_secrets_and_links_that_lead_out_are_named_and_not_read(
    call: Call, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "out.md").write_text("# Outside\n", encoding="utf-8")
    write(project, "docs/.env.md", "# TOKEN=hidden\n")
    (project / "README.md").symlink_to(tmp_path / "out.md")
    (project / "specs").symlink_to(tmp_path)
    text = shown(call("sdd_get_context", detail_level="full"))
    assert "TOKEN" not in text
    assert "Outside" not in text
    left_out = "Left out (secrets, outside or unreadable): specs, docs/.env.md, README.md"
    assert left_out in text


def test_what_emacs_has_not_saved_is_what_is_told(
    call: Call, sidecar: Connection, session: str, documents: Path
) -> None:
    text = "# Not saved\n\nNew.\n"
    sidecar.notify("buffers/sync", session_id=session, path="specs/design.md", text=text)
    assert shown(call("sdd_get_context", stage="design")).endswith("# Not saved\n\nNew.")
    assert "design: specs/design.md (~N tokens) Not saved" in sizes_hidden(
        call("sdd_get_context")["text"]
    )


def test_a_project_without_any_says_where_it_was_looked_for(call: Call, project: Path) -> None:
    assert shown(call("sdd_get_context", max_tokens=100)) == (
        "No specification: no document in docs/, specs/, and none of AGENTS.md, CLAUDE.md,"
        " CONTRIBUTING.md, README.md. The settings specs.* name other places."
    )


def test_the_settings_say_where_a_specification_is(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EFRIT_BUDGET_SPECS__FOLDERS", '["plans"]')
    monkeypatch.setenv("EFRIT_BUDGET_SPECS__CONVENTIONS", '["RULES.txt"]')
    monkeypatch.setenv("EFRIT_BUDGET_SPECS__CHANGES", "history")
    for name in ("plans/charter.md", "docs/tasks.md", "RULES.txt", "history/one/a.md", "README.md"):
        write(project, name, f"# In {name}\n")
    with LocalSidecar() as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        asked = {"session_id": session, "name": "sdd_get_context", "tool_use_id": "t1"}
        envelope = sidecar.request("tools/call", **asked)
    paths = [one["path"] for one in envelope["data"]["artifacts"]]
    assert paths == ["plans/charter.md", "history/one", "RULES.txt"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"stage": "building"}, "'business-rules'"),
        ({"detail_level": "all"}, "'summary', 'standard' or 'full'"),
        ({"limit": 0}, "greater than or equal to 1"),
        ({"max_tokens": 49}, "a whole number from 50 to 1,000,000"),
        ({"path": "docs"}, "path"),
    ],
)
def test_what_is_wrong_with_an_argument_is_told(
    call: Call, arguments: dict[str, Any], told: str
) -> None:
    envelope = call("sdd_get_context", **arguments)
    assert envelope["status"] == "error"
    assert told in envelope["message"]


def test_the_work_log_keeps_which_files_were_listed_or_read(
    call: Call, documents: Path, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    listed = shrunk(call("sdd_get_context"))
    assert listed.startswith(
        "Listed 7 artifacts of the specification: docs/requirements.md, specs/design.md,"
    )
    write(documents, "docs/requirements.md", PROSE * 20)
    read = shrunk(call("sdd_get_context", stage="requirements"))
    assert read == "Read the stage requirements: docs/requirements.md"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"project": "other"}, "project: only project has its files here; leave project out"),
        ({"scope": "team"}, "scope: files have the scope project; leave scope out"),
    ],
)
def test_files_are_those_of_this_project_alone(
    call: Call, arguments: dict[str, str], told: str
) -> None:
    envelope = call("sdd_get_context", **arguments)
    assert envelope["status"] == "error"
    assert told in envelope["text"]
    for own in ({"project": "project", "scope": "project"}, {"project": "", "scope": ""}):
        assert call("sdd_get_context", **own)["status"] == "success"


def test_the_description_names_the_level_that_is_the_default() -> None:
    offered = entry(discover().named("sdd_get_context"))
    default = offered["input_schema"]["properties"]["detail_level"]["default"]
    assert default == "summary"
    assert f"by default in {default}" in offered["description"]
