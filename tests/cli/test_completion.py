"""`efrit-budget completion`: what a shell completes is what the parser takes."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from efrit_budget.cli.completion import SHELLS
from efrit_budget.cli.parser import build_parser
from tests.cli.command import efrit, subcommands

COMPLETE = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
complete -p efrit-budget >/dev/null
_shtab_efrit_budget
printf '%s\\n' "${COMPREPLY[@]}"
"""


def words_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the long options and the commands of a parser, and those of its subcommands."""
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
    for name, inner in subcommands(parser).items():
        yield name
        yield from words_of(inner)


@pytest.fixture(params=SHELLS)
def script(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A shell, and the file of its completion."""
    ended = efrit("completion", request.param)
    assert (ended.code, ended.err) == (0, "")
    file = tmp_path / "completion"
    file.write_text(ended.out, encoding="utf-8")
    return request.param, file


def test_every_command_and_option_is_completed(script: tuple[str, Path]) -> None:
    shell, file = script
    text = file.read_text(encoding="utf-8")
    known = set(re.findall(r"[\w-]+", re.sub(r"-l ([\w-]+)", r"--\1", text)))
    assert set(words_of(build_parser())) <= known, shell


def test_the_shell_reads_it(script: tuple[str, Path]) -> None:
    shell, file = script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([program, "-n", file], check=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("comp", ["completion"]),
        ("completion f", ["fish"]),
        ("sessions --ro", ["--root"]),
        ("estimate no", ["notes.md"]),
        ("config --root th", ["thesis"]),
        ("demo-model --reasoning reasoning_", ["reasoning_content"]),
    ],
)
def test_bash_completes_commands_choices_options_files_and_folders(
    line: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "notes.md").touch()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thanks.md").touch()
    file = tmp_path / "completion"
    file.write_text(efrit("completion", "bash").out, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", file, "efrit-budget", *line.split(" ")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == expected, done.stderr
