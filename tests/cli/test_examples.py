"""The examples in the help: each works where the files and projects it names exist."""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from efrit_budget.__main__ import main
from efrit_budget.cli import config
from efrit_budget.cli.parser import build_parser
from efrit_budget.tools.registry import discover
from tests.cli.command import subcommands
from tests.docs.example import make_thesis

PROGRAM = "efrit-budget"
GO_ON = {"serve", "mcp", "demo-model"}
"""The commands that run until a signal; they have tests as processes of their own."""
ASKING, AGREED = "sessions purge", ["--yes"]
"""The command that asks for confirmation at the terminal, and the option that gives it."""
SESSIONS = ("k7m2", "p3qd")
RECORDING = """\
{"type": "user", "timestamp": "2026-02-10T04:25:04Z", "message": {"content": "What is it?"}}
{"type": "assistant", "message": {"id": "1", "content": [{"type": "text", "text": "A thesis."}]}}
"""
FILES = {
    "README.md": "# A thesis\n",
    "prompt.md": "Read chapter 2.\n",
    "note.md": "Wait twice as long each time.\n",
    "src/one.py": "print(1)\n",
    "src/two.py": "print(2)\n",
    "session.jsonl": RECORDING,
    "my-scenario.toml": '[[reply]]\ntext = "Hello."\n',
}


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its subcommands."""
    yield parser
    for inner in subcommands(parser).values():
        yield from parsers(inner)


def examples() -> list[str]:
    """Return every command line that the help shows, without the remark beside it."""
    epilogs = "\n".join(parser.epilog or "" for parser in parsers(build_parser()))
    lines = re.findall(rf"^(?: +|example: )(.*\b{PROGRAM} .*)$", epilogs, re.MULTILINE)
    return list(dict.fromkeys(re.split(r" {2,}", line)[0] for line in lines))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with everything that the examples name: a thesis, projects, sessions, memories."""
    home = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EFRIT_BUDGET_HOME", str(home / "efrit"))
        folder = make_thesis(home)
        for name in (*FILES, "../src/project/a.py", "../src/other/setup.py"):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(FILES.get(name, ""), encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        for session in SESSIONS:
            work("call", "session/open", json.dumps({"root": str(folder), "session_id": session}))
        work("memory", "export", "-o", str(folder / "memory.jsonl"))
    return home


@pytest.fixture
def place(prepared: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `prepared` that a test may change; the current folder is the thesis's."""
    shutil.copytree(prepared, home, dirs_exist_ok=True)
    monkeypatch.chdir(home / "thesis")
    return home


def work(*words: str) -> None:
    """Run the command, which has to succeed."""
    assert main(list(words)) == 0, words


def given_on_stdin(line: str) -> tuple[str, bytes]:
    """Split a line into the command and the bytes that its pipe or redirection supplies."""
    before, _, rest = line.rpartition(" | ")
    if before:
        return rest, subprocess.run(["bash", "-c", before], check=True, capture_output=True).stdout
    rest, _, file = line.partition(" < ")
    return rest, Path(file).read_bytes() if file else b""


def arguments_of(line: str, scratch: Path) -> list[str]:
    """Return the program's arguments as a shell would pass them, with /tmp replaced."""
    words = shlex.split(line.replace("/tmp/", f"{scratch}/"))
    assert words[0] == PROGRAM
    found = [str(Path(word).expanduser()) if word[0] == "~" else word for word in words[1:]]
    return [one for word in found for one in expanded(word)]


def expanded(word: str) -> list[str]:
    """Return the files that match a pattern, or the word itself if none match."""
    is_pattern = "*" in word and not word.startswith("/")
    return (sorted(map(str, Path().glob(word))) if is_pattern else []) or [word]


@pytest.mark.parametrize("line", examples())
def test_an_example_works(
    line: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    inner = re.search(rf"\$\(({PROGRAM} [^)]+)\)", line)
    command, stdin = given_on_stdin(inner[1] if inner else line)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    words = [*arguments_of(command, place), *(AGREED if ASKING in command else [])]
    if words[0] in GO_ON:
        build_parser().parse_args(words)
    else:
        assert main(words) == 0, capsys.readouterr().err


def test_every_command_is_among_the_examples() -> None:
    """A command without an example would escape the pattern that finds examples."""
    assert len(examples()) > 40
    assert len(examples()) == len(set(examples()))


def test_the_file_in_the_help_of_config_is_one_that_it_reads(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config.EXAMPLES.partition("looks like this:\n")[2]
    file = place / "efrit" / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["config", "--json"]) == 0
    shown = {one["key"]: one["value"] for one in json.loads(capsys.readouterr().out)["settings"]}
    said = tomllib.loads(text.replace("\n  ", "\n"))
    assert shown["budget.total"] == said["budget"]["total"]
    assert {*shown["tools.deny"], *shown["budget.per_tool"]} <= {tool.name for tool in discover()}
