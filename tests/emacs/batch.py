"""A batch Emacs with a home of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NO_TRAMPOLINES = "(setq comp-enable-subr-trampolines nil native-comp-enable-subr-trampolines nil)"
"""Lisp without which advice to a primitive, such as transient's, has Emacs compile natively."""


def batch(
    script: str, home: Path, *arguments: str, also: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Run a script of tests/elisp; variables may be added to its environment."""
    environment = os.environ | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "EFRIT_BUDGET_HOME": str(home / "budget"),
        "LC_ALL": "C.UTF-8",
        **(also or {}),
    }
    emacs = environment.get("EMACS", "emacs")
    command = [emacs, "-Q", "--batch", "--eval", NO_TRAMPOLINES]
    command += ["-l", str(ROOT / "tests" / "elisp" / script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, **options)
