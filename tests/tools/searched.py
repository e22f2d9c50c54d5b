"""Helpers shared by the tests of `search_content`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.connection import Connection
from tests.marks import unmarked

Search = Callable[..., dict[str, Any]]


def searching(sidecar: Connection, session: str) -> Search:
    """Return a function that calls the tool with its arguments."""
    uses = count()

    def call(pattern: str = "", **arguments: Any) -> dict[str, Any]:
        given = {"pattern": pattern, **arguments} if pattern else arguments
        return sidecar.call_tool(session, "search_content", f"use-{next(uses)}", given)

    return call


def write(project: Path, files: dict[str, str | bytes]) -> None:
    """Write these files into a folder."""
    for name, text in files.items():
        file = project / os.fsdecode(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())


def lines_of(envelope: dict[str, Any]) -> list[str]:
    """Return the text without its footer and the marks of its own lines."""
    lines = unmarked(envelope["text"]).splitlines()
    assert lines[-1].startswith("📏 ~")
    return lines[:-1]


def places_of(envelope: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the file and the line of each match."""
    return [(match["path"], match["line"]) for match in envelope["data"]["matches"]]


def git(project: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)
