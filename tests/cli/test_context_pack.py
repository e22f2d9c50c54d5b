"""`efrit-budget context-pack`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens_ceil
from tests.cli.command import Ended, efrit, efrit_process
from tests.cli.test_memory import save


def pack(*arguments: str) -> Ended:
    """Write a pack about the thesis."""
    ended = efrit("context-pack", *arguments, "--project", "thesis")
    assert (ended.code, ended.err) == (0, "")
    return ended


@pytest.fixture
def remembered() -> None:
    """Fill memory with two observations of the project and one of another."""
    flags = ("--project", "thesis", "--kind", "decision", "--tag", "methodology")
    save("Methods", "We count tokens.", *flags, "--importance", "0.8")
    save("Sources", "We read seeds. " * 40, "--project", "thesis")
    save("Elsewhere", "Not of the thesis.", "--project", "other")


@pytest.mark.usefixtures("remembered")
def test_the_memories_of_a_project_are_printed_whole_within_two_thousand_tokens() -> None:
    text = pack().out
    heading = re.match(r"# Project Context: thesis \(2 memories, ~(\d+) tokens\)\n\n## \[", text)
    assert heading is not None
    whole = text.removesuffix("\n")
    assert int(heading[1]) == max(estimate(whole), plain_tokens_ceil(whole))
    assert "We read seeds. " * 39 in text
    assert "Not of the thesis" not in text


@pytest.mark.usefixtures("remembered")
def test_a_query_a_kind_and_a_tag_choose() -> None:
    assert "(1 memories" in pack("seeds").out
    assert "[decision] Methods" in pack("--kind", "decision", "--tag", "methodology").out
    assert "(0 memories" in pack("--kind", "decision", "--tag", "none").out


@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("tokens", [30, 60, 100, 150, 300, 5000])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_whole_text_is_within_its_tokens(tokens: int, form: list[str]) -> None:
    text = pack("--tokens", str(tokens), *form).out.removesuffix("\n")
    least = pack("zebra", "--tokens", "0", *form).out.removesuffix("\n")
    price = max(estimate(text), plain_tokens_ceil(text))
    assert price <= max(tokens, estimate(least) + 20)
    if form and tokens >= 150:
        assert json.loads(text)["total_tokens"] - price in (0, 1)


@pytest.mark.usefixtures("remembered")
def test_what_does_not_fit_is_counted_and_named_where_it_fits_no_pack() -> None:
    found = pack("--tokens", "130").out
    assert "We count tokens." in found
    assert re.search(r"\*Left out: 1 of 2: \[note\] Sources \(~\d+ tokens\)\*\n$", found)


@pytest.mark.usefixtures("remembered")
def test_an_empty_project_means_all_of_them() -> None:
    save("Of none", "Without a project.")
    ended = efrit("context-pack", "--project", "")
    assert ended.out.startswith("# Project Context: all (4 memories, ~")
    assert efrit("context-pack", "--project", "", "--json").json["project_id"] is None
    assert len(efrit("search", "we", "--project", "", "--json").json["results"]) == 2


def test_an_empty_pack_is_still_markdown_or_json() -> None:
    assert pack().out == "# Project Context: thesis (0 memories, ~15 tokens)\n"
    assert pack("--json").json["memories"] == []


@pytest.mark.usefixtures("remembered")
def test_a_file_is_replaced_whole_and_a_link_to_it_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "context.md", tmp_path / "link.md"
    target.write_text("old\n", encoding="utf-8")
    link.symlink_to(target)
    before = target.stat().st_ino
    assert pack("-o", str(link)).out == ""
    assert target.read_text(encoding="utf-8") == pack().out
    assert target.stat().st_ino != before
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["context.md", "link.md"]  # noqa: PTH208


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "context.md"
    ended = efrit("context-pack", "--project", "thesis", "-o", str(missing))
    assert ended.code == 1
    assert ended.complaint.rstrip() == (
        f"efrit-budget: {missing} was not written: No such file or directory;"
        f" make the folder {missing.parent} first"
    )
    folder = efrit_process("context-pack", "--project", "thesis", "-o", str(tmp_path))
    assert "Is a directory" in folder.complaint
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--project", "p", "--tokens", "-5"], "'-5' is not a whole number of at least 0"),
        (["--project", "p", "--tokens", "many"], "'many' is not a whole number of at least 0"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(arguments: list[str], told: str) -> None:
    ended = efrit("context-pack", *arguments)
    assert ended.code == 2
    assert told in ended.complaint


def test_the_project_is_that_of_the_repository_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "thesis" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "thesis" / ".git").mkdir()
    monkeypatch.chdir(folder)
    assert "# Project Context: thesis (" in efrit("context-pack").out
    monkeypatch.chdir(tmp_path)
    assert f"# Project Context: {tmp_path.name} (" in efrit("context-pack").out
