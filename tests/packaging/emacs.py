"""A fresh Emacs, as a person has it who installs a package."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.emacs.batch import NO_TRAMPOLINES


def lisp(function: str, *arguments: str) -> str:
    """Return a call of a Lisp function with strings."""
    quoted = ['"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in arguments]
    return f"({function} {' '.join(quoted)})"


def run(
    home: Path,
    *arguments: str,
    emacs: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a batch Emacs to its end, for a person with this home; a form may stand for --eval."""
    home.mkdir(exist_ok=True)
    words = [one for word in arguments for one in (("--eval", word) if word[0] == "(" else (word,))]
    environment = os.environ | {"HOME": str(home), "LC_ALL": "C.UTF-8", **(variables or {})}
    environment.pop("XDG_CONFIG_HOME", None)
    program = emacs or os.environ.get("EMACS", "emacs")
    return subprocess.run(
        [program, "--batch", "--eval", NO_TRAMPOLINES, *words],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
