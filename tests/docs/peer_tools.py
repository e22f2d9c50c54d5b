"""The table of `docs/tools.md` that compares another agent's tools with these."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from tests.docs.pages import ROOT, table

ROWS = ROOT / "tests" / "docs" / "peer_tools.toml"
INTRODUCTION = """\
## Beside another agent's tools

The 41 tools of the best-known agent for Emacs, and what there is here in their place. A batch
Emacs runs each test, with a real sidecar and a scripted model.
"""
HEADING = ("there", "here", "how", "test")


@dataclass(frozen=True)
class Row:
    """Some of the peer's tools, and the tools that replace them."""

    peer: tuple[str, ...]
    ours: tuple[str, ...]
    beside: str
    test: str


def rows() -> list[Row]:
    """Return the rows of the table."""
    found = tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"]
    return [
        Row(tuple(row["peer"]), tuple(row["ours"]), row["beside"], row["test"]) for row in found
    ]


def part() -> str:
    """Return the part of the page that contains the table."""
    cells = [(_names(row.peer), _names(row.ours), row.beside, f"`{row.test}`") for row in rows()]
    return f"{INTRODUCTION}\n{table(HEADING, cells)}\n"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
