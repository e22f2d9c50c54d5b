"""Play twenty sessions with a small model, and print what became of them; see docs/soak.md."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.servers.model.sessions import HEADS, plans, play


def main() -> int:
    """Print a row for each session; return 1 if one hung, or spent more than its guards allow."""
    found: list[str] = []
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        for outcome in play(plans(), Path(folder)):
            print(f"| {' | '.join(outcome.cells())} |", flush=True)
            found += [f"session {outcome.plan.number}: {text}" for text in outcome.problems()]
    print("\n".join(["", *found] if found else ["", "Each ended usable, within its guards."]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
