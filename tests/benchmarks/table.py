"""The rows a benchmark prints: what was measured, beside what, against which bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured line. `holds` is None where the figure has no bar."""

    what: str
    ours: str
    reference: str = ""
    ratio: str = ""
    bar: str = ""
    holds: bool | None = None


Benchmark = Callable[[], Iterable[Row]]

VERDICTS = {True: "yes", False: "NO", None: ""}


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | ours | reference | ratio | bar | holds |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (row.what, row.ours, row.reference, row.ratio, row.bar, VERDICTS[row.holds])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
