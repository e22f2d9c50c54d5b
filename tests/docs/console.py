"""Console blocks of the documents: commands after `$ `, and below each all of its output.

A block is fenced in Markdown, and an `@example` of its language in the manual.

In the output that a block shows

* `...` as a line stands for any lines, or none;
* `…` within a line stands for any part of that line;
* each number, time and bar stands for any other one where the paragraph above the block says
  that they vary ("the numbers vary", "the number of the port varies").

Everything else is compared literally. Commands run in the folder of `tests.docs.example`. Other
fenced blocks have the languages in `LANGUAGES`. `docs/benchmarks.md` is not checked: it has only
tables, which record one run on one machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs import pages, texinfo

LANGUAGES = {
    "console": "commands and what they print",
    "sh": "commands alone",
    "output": "what the program says to no command: each has a test of its own",
    "elisp": "Emacs Lisp",
    "json": "a message of the protocol",
    "diff": "a patch of this project, which a test applies",
    "python": "the example of a tool",
    "toml": "a scenario of the scripted model",
    "text": "a drawing",
}
TIME_LIMIT = 120
"""The limit against hangs, in seconds."""
SERVES = "efrit-budget demo-model"
"""The beginning of a command that keeps running after it has printed its lines."""
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
VARIES = re.compile(r"\bnumbers? (?:[a-z ]+ )?var(?:y|ies)\b")
FREE = re.compile(r"\d[\d,.]* (?:ms|s|min)\b|\d+(?:[.,]\d+)*k?|▕[█▏▎▍▌▋▊▉ ]*▏")


@dataclass(frozen=True)
class Block:
    """A fenced block and its place."""

    page: Path
    line: int
    language: str
    text: str
    paragraph_above: str

    @property
    def place(self) -> str:
        """The file and the line of the fence."""
        return f"{self.page.relative_to(pages.ROOT)}:{self.line}"

    @property
    def numbers_vary(self) -> bool:
        """Return whether the page says that the numbers vary."""
        return VARIES.search(self.paragraph_above.replace("\n", " ")) is not None


def documents() -> list[Path]:
    """Return the pages written for people."""
    return [
        *sorted(pages.ROOT.glob("*.md")),
        *sorted(pages.FOLDER.glob("*.md")),
        *texinfo.sources(),
    ]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    text = texinfo.markdown_of(page)
    for found in FENCE.finditer(text):
        above = text[: found.start()]
        paragraph = above.rstrip().rpartition("\n\n")[2]
        yield Block(page, above.count("\n") + 1, found[1], found[2], paragraph)


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output shown below it."""
    before, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert parts, "a console block without a command"
    assert not before, "a console block begins with a command"
    split = [part.partition("\n") for part in parts]
    return [(command, shown) for command, _, shown in split]


def is_as_shown(shown: str, printed: str, *, numbers_vary: bool = False) -> bool:
    """Return whether a command printed what the page shows."""
    if numbers_vary:
        shown, printed = FREE.sub("#", shown), FREE.sub("#", printed)
    pattern = "".join(map(_pattern, shown.splitlines()))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed.splitlines())) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return r".*?".join(map(re.escape, line.split("…"))) + r"\n"


def run(command: str, folder: Path) -> str:
    """Run a command as a person in that folder would, and return all that it prints."""
    if command.startswith(SERVES):
        return _first_line(command, folder)
    if command.startswith("make "):
        return "".join(_shell(line, pages.ROOT).stdout for line in _recipe(command))
    done = _shell(command, folder)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def _recipe(command: str) -> list[str]:
    """Return the commands that make would run in a checkout that is set up."""
    lines = _shell(f"{command} --dry-run --no-print-directory", pages.ROOT).stdout.splitlines()
    return [line for line in lines if not line.startswith(".ci/setup")]


def _shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=TIME_LIMIT,
        check=False,
    )


def _first_line(command: str, folder: Path) -> str:
    pipe = subprocess.PIPE
    words = ["bash", "-c", f"exec {command}"]
    with subprocess.Popen(
        words, cwd=folder, env=_environment(), stdout=pipe, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        try:
            return process.stdout.readline()
        finally:
            process.terminate()


def _environment() -> dict[str, str]:
    """Return a person's environment, with the program on PATH and no key for a real model."""
    left_out = {"ANTHROPIC_API_KEY", "TASK", "MAKEFLAGS", "MAKELEVEL"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": programs, "LC_ALL": "C.UTF-8"}
