"""Describe the date, the system and the git branch for the model."""

import platform
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from efrit_budget.project.git.folder import GitError, git_folder

PLAIN_NAME = re.compile(r"[\w./+@#-]{1,100}")
"""A branch whose name does not match is left out: the model could take it for instructions."""


def environment(root: Path | str, program: str) -> str:
    """Return a sentence with the date, the system, the client's program and the git branch."""
    facts = [f"{datetime.now().astimezone():%Y-%m-%d, a %A}", _system(), program]
    if (name := _branch(Path(root))) is not None:
        facts.append(f"git branch {name}")
    return f"Environment when this prompt was written: {'; '.join(facts)}."


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return f"{platform.system()} {platform.release()}"


def _branch(root: Path) -> str | None:
    """Return the checked out branch; None if there is none, or its name is not plain."""
    with suppress(GitError):
        name = git_folder(root).branch
        return name if name is not None and PLAIN_NAME.fullmatch(name) else None
    return None
