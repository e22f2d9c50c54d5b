"""pytest in a process of its own, with the files of `inside` on its path."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

INSIDE = Path(__file__).parent / "inside"


def run_pytest(
    root: Path,
    arguments: Sequence[str],
    environment: dict[str, str],
    output: Path,
    limit: float | None = None,
) -> int | None:
    """Run pytest in a checkout and return its exit code, or None if it exceeds the limit.

    Processes that it started and left behind are ended. Nothing is written into the checkout.
    """
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=_environment(root, output.parent) | environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _environment(root: Path, folder: Path) -> dict[str, str]:
    """Return an environment that puts temporary files into a folder and loads `inside`.

    With `CI` set, Hypothesis tries the same examples each time and doesn't look at the clock.
    """
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **os.environ,
        "CI": "true",
        "PYTHONPATH": os.pathsep.join((str(INSIDE), str(root))),
        "TMPDIR": str(temporary),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and what is left of the group that it leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
