"""The list of required programs that the doctor, .ci/setup and README.md share."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from efrit_budget.cli.checks.check import Program, listed_programs
from efrit_budget.project.git import repository as git
from efrit_budget.project.search import ripgrep
from efrit_budget.project.text import ctags

ROOT = Path(__file__).resolve().parents[2]
USERS = {"sidecar", "client", "checkout", "test", "manual", "model", "picture"}
NEVER_MISSING = {"bash", "cat", "cp", "mkfifo", "sleep", "true", "umount", "efrit-budget"}
"""The programs present wherever the programs of the list are, and our own."""
OFFERED = {"pipx", "uv"}
"""Programs that install the sidecar where they are there."""
RUN = re.compile(r'(?:which\(|find_program\(|executable-find |subprocess\.\w+\(\[)"([\w-]+)"')


def text(name: str) -> str:
    """Return the text of a file of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


def two_numbers(program: Program) -> tuple[int, ...]:
    """Return the numbers of the oldest version that a program may have."""
    return tuple(int(part) for part in program.oldest.split("."))


def test_every_line_says_by_whom_and_from_which_package() -> None:
    """The users are those that .ci/setup knows."""
    for program in listed_programs().values():
        assert {user.rstrip("?") for user in program.needed_by} <= USERS, program
        assert program.packages, program
        assert program.purpose, program


def test_the_oldest_versions_are_those_that_the_code_takes() -> None:
    """Checks in other places name the same versions."""
    programs = listed_programs()
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert two_numbers(programs["git"]) == git.OLDEST
    assert two_numbers(programs["ripgrep"])[0] == ripgrep.OLDEST
    assert programs["universal-ctags"].names == ctags.NAMES
    assert project["requires-python"] == f">={programs['Python'].oldest}"
    assert f'(emacs "{programs["Emacs"].oldest}")' in text("elisp/efrit.el")


def test_what_comes_by_pip_is_required_by_the_package() -> None:
    """The requirement has the name in the list."""
    required = tomllib.loads(text("pyproject.toml"))["project"]["dependencies"]
    packages = [one for program in listed_programs().values() for one in program.packages]
    for name in (one.removeprefix("pip:") for one in packages if one.startswith("pip:")):
        assert any(line.startswith(name) for line in required)


@pytest.mark.parametrize("folder", ["efrit_budget", "elisp", "tests"])
def test_every_program_that_is_looked_for_or_run_by_its_name_is_listed(folder: str) -> None:
    """Both the sources and the tests are searched."""
    names = {Path(name).name for program in listed_programs().values() for name in program.names}
    files = [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.el")]
    run = {name for file in files for name in RUN.findall(file.read_text(encoding="utf-8"))}
    assert run
    assert not run - names - NEVER_MISSING - OFFERED


def test_the_readme_names_each_with_its_oldest_version() -> None:
    """The table of required programs names nothing else."""
    readme = text("README.md")
    table = readme[readme.index("| for | programs |") : readme.index("`make demo` runs")]
    lines = [line.split("|")[2] for line in table.splitlines()[2:] if line]
    named = {re.sub(r"\(.*\)", "", name).strip() for line in lines for name in line.split(",")}
    assert named == {f"{one.name} {one.oldest}".strip() for one in listed_programs().values()}
