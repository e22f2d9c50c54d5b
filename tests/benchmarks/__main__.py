"""Run the benchmarks: `python -m tests.benchmarks [NAME ...]`.

Every module `bench_NAME.py` beside this file has a function `run()` that gives rows; its
docstring's first line heads its table.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.table import Row, markdown

PREFIX = "bench_"


def names() -> list[str]:
    """Return the names of all benchmarks."""
    here = str(Path(__file__).parent)
    found = [module.name for module in pkgutil.iter_modules([here])]
    return sorted(name.removeprefix(PREFIX) for name in found if name.startswith(PREFIX))


def version_of(*command: str) -> str:
    """Return the first line that a program prints, or say that it is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"{command[0]}: missing"
    return (done.stdout or done.stderr).splitlines()[0]


def machine() -> str:
    """Return the machine and the versions of its programs, as one line."""
    programs = [("git", "--version"), ("emacs", "--version"), ("node", "--version")]
    parts = [f"{os.cpu_count()} cores", platform.machine(), f"Python {platform.python_version()}"]
    return ", ".join(parts + [version_of(*program) for program in programs])


def run(name: str) -> list[Row]:
    """Run one benchmark and print its table."""
    module = importlib.import_module(f"tests.benchmarks.{PREFIX}{name}")
    print(f"\n## {(module.__doc__ or name).splitlines()[0]}\n", flush=True)
    rows = list(module.run())
    print(markdown(rows), flush=True)
    return rows


def main(wanted: list[str]) -> int:
    """Run the benchmarks named, or all; exit 1 when a bar does not hold."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}")
        return 2
    print(f"Measured on: {machine()}")
    rows = [row for name in wanted or names() for row in run(name)]
    return 1 if any(row.holds is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
