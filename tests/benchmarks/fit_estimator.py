"""Fits the estimator's costs to Claude's tokenizer: `python -m tests.benchmarks.fit_estimator`.

Non-negative least squares on the relative error, each kind of text weighing the same, over the
training side of the corpora alone. Rewrites `efrit_budget/budget/weights.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efrit_budget.budget.estimate import counts, sample, shape
from tests.benchmarks.corpora import Chunk, build
from tests.benchmarks.tokenizers_real import claude, count

Numbers = NDArray[np.float64]
WEIGHTS = Path(__file__).parents[2] / "efrit_budget/budget/weights.py"
# Underestimates are the dangerous errors, so all costs are raised by this much.
MARGIN = 1.015
RIDGE = 1e-5
ROUNDS = 600
# What the corpora have too little of to fit, yet a whole text may consist of.
LEAST = {"rulers": 0.25, "sixteen spaces": 0.1, "beyond the basic plane": 2.0, "symbols": 1.0}

HEAD = '''"""What the estimator charges, in tokens. Written by `tests.benchmarks.fit_estimator`."""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations
'''


def features(text: str) -> list[float]:
    """What the estimator counts in a text, a long one by sample."""
    read = sample(text)
    return [number * len(text) / len(read) for number in counts(shape(read)).values()]


def chunk_weights(chunks: Sequence[Chunk], real: Numbers) -> Numbers:
    """A weight for each chunk, for relative errors, each kind the same in sum."""
    sizes = Counter(chunk.kind for chunk in chunks)
    return np.array([sizes[chunk.kind] ** -0.5 for chunk in chunks]) / real


def bounded(given: Numbers, wanted: Numbers, weight: Numbers, least: Numbers) -> Numbers:
    """Ridge least squares with no cost below its least, by coordinate descent."""
    rows = given * weight[:, None]
    scale = np.sqrt((rows**2).mean(axis=0)) + 1e-12
    rows = rows / scale
    gram = rows.T @ rows / len(rows) + RIDGE * np.eye(rows.shape[1])
    target = rows.T @ (wanted * weight) / len(rows)
    floor = least * scale
    found: Numbers = floor.copy()
    for _ in range(ROUNDS):
        for at, lowest in enumerate(floor):
            found[at] = max(lowest, found[at] + (target[at] - gram[at] @ found) / gram[at, at])
    costs: Numbers = found / scale
    return costs


def fitted(chunks: Sequence[Chunk]) -> dict[str, float]:
    """The cost of everything the estimator counts."""
    names = list(counts(b""))
    real = np.array(count("claude", [chunk.text for chunk in chunks]), dtype=np.float64)
    given = np.array([features(chunk.text) for chunk in chunks])
    least = np.array([LEAST.get(name, 0.0) for name in names])
    costs = bounded(given, real, chunk_weights(chunks, real), least)
    return {name: round(float(cost) * MARGIN, 3) for name, cost in zip(names, costs, strict=True)}


def common(first: int, last: int) -> str:
    """The characters of a range that Claude's tokenizer holds as one token."""
    characters = [chr(code) for code in range(first, last)]
    tokens = claude()(characters)
    return "".join(each for each, number in zip(characters, tokens, strict=True) if number == 1)


def source(costs: dict[str, float]) -> str:
    """The text of the weights module."""
    rows = "".join(f'    "{name}": {cost},\n' for name, cost in costs.items())
    return f"""{HEAD}
COSTS: dict[str, float] = {{
{rows}}}

# The characters of the two large scripts that are one token each.
COMMON_HAN = "{common(0x4E00, 0xA000)}"
COMMON_HANGUL = "{common(0xAC00, 0xD7A4)}"
"""


def main() -> None:
    """Fit, and rewrite the weights."""
    train = build().train
    costs = fitted(train)
    WEIGHTS.write_text(source(costs))
    print(
        f"fitted {len(costs)} costs to {len(train)} chunks of {len({c.kind for c in train})} kinds"
    )


if __name__ == "__main__":
    main()
