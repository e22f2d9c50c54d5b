"""`docs/adding.md`: each patch of the page fits this project, and does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs import pages

PARTS = {part.heading: part for part in pages.parts(pages.read("adding.md"), 2)}
NUMBERS = {"two": 2, "three": 3}


def patch_of(heading: str) -> str:
    """Return the patch below a heading."""
    (patch,) = PARTS[heading].blocks("diff")
    return patch


class Copy:
    """A copy of the project with one of the page's patches applied."""

    def __init__(self, folder: Path, heading: str) -> None:
        self.folder = folder
        for name in ("efrit_budget", "docs"):
            shutil.copytree(pages.ROOT / name, folder / name)
        apply = ["git", "apply", "-C1", "-"]
        done = subprocess.run(
            apply, cwd=folder, input=patch_of(heading), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """Return what the copy's command line prints."""
        command = [sys.executable, "-m", "efrit_budget", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **(env or {})}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.parametrize("heading", PARTS)
def test_a_patch_changes_as_many_files_as_its_heading_says(heading: str) -> None:
    """The number stands in the heading as a word."""
    files = re.findall(r"^\+\+\+ b/(.*)$", patch_of(heading), re.MULTILINE)
    word = re.fullmatch(r"A \w+: (\w+) files", heading)
    assert word is not None
    assert len(files) == NUMBERS[word[1]]


def test_the_setting_of_the_page_is_known_checked_and_read(tmp_path: Path) -> None:
    """With its environment variable and its description, from its one declaration."""
    copy = Copy(tmp_path, "A setting: two files")
    variable = {"EFRIT_BUDGET_LOG__KEPT_FILES": "0"}
    told = copy.run("config", "log.kept_files", env=variable)
    assert told.startswith("log.kept_files = 0\nfrom: environment EFRIT_BUDGET_LOG__KEPT_FILES\n")
    assert "How many full log files are kept beside the new one." in told
    assert json.loads(copy.run("call", "session/list", env=variable)) == {"sessions": []}


def test_the_method_of_the_page_answers_and_is_documented(tmp_path: Path) -> None:
    """Its heading stands in the copy's page of the protocol."""
    copy = Copy(tmp_path, "A method: two files")
    answer = json.loads(copy.run("call", "memory/revisions", '{"id": 1}'))
    assert answer == {"revisions": []}
    page = (tmp_path / "docs" / "protocol.md").read_text(encoding="utf-8")
    (part,) = (part for part in pages.parts(page, 3) if part.heading == "`memory/revisions`")
    assert "`id`" in part.text
    assert len(part.blocks("json")) == 2


def test_the_tier_of_the_page_has_a_setting_a_limit_and_a_place_in_the_budget(
    tmp_path: Path,
) -> None:
    """The tiers still make the whole."""
    copy = Copy(tmp_path, "A tier: three files")
    assert "Results that the person pinned; scaled" in copy.run("config", "budget.pinned")
    wanted = {"root": str(tmp_path), "limits": {"total": 50_000, "pinned": 2_400}}
    opened = json.loads(copy.run("call", "session/open", json.dumps(wanted)))
    tiers = opened["budget"]["tiers"]
    assert tiers["pinned"] == {"used": 0, "limit": 2_400}
    assert sum(tier["limit"] for tier in tiers.values()) == 49_900
