"""What a warm request passes in the sidecar."""

from __future__ import annotations

from tests.benchmarks.passed import measure
from tests.benchmarks.table import Row

FUNCTIONS, ROOMS = 137, 64
"""The bars for a search."""


def run() -> list[Row]:
    """Every row of the table."""
    rows = []
    for name, found in measure().items():
        functions, rooms = len(found.functions), found.room_changes
        has_bar = name == "search_content"
        rows += [
            Row(
                f"functions passed by {name}",
                str(functions),
                f"in {found.files} files",
                bar=f"<= {FUNCTIONS}" if has_bar else "",
                holds=functions <= FUNCTIONS if has_bar else None,
            ),
            Row(
                f"changes of room in {name}",
                str(rooms),
                bar=f"<= {ROOMS}" if has_bar else "",
                holds=rooms <= ROOMS if has_bar else None,
            ),
        ]
    return rows
