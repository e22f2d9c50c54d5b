"""Write the estimates in `made_counts.py` anew, after the estimator was changed on purpose.

`python -m tests.budget.write_made_counts` keeps the tokens that were counted.
"""

from __future__ import annotations

from pathlib import Path

from efrit_budget.budget.estimate import estimate
from tests.budget import made_counts
from tests.budget.made_texts import made

HEAD = '''"""Tokens of generated texts by seed: counted with Claude's tokenizer, and estimated."""

from __future__ import annotations

MADE_COUNTS: dict[int, tuple[int, int]] = {
'''


def main() -> None:
    """Write the file."""
    lines = [
        f"    {seed}: ({tokens}, {estimate(made(seed).text)}),\n"
        for seed, (tokens, _) in sorted(made_counts.MADE_COUNTS.items())
    ]
    Path(made_counts.__file__).write_text(f"{HEAD}{''.join(lines)}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
