"""Fits the families of tokenizers: `python -m tests.benchmarks.fit_families`.

It finds what Claude's tokenizer charges for the characters of each class of script, and then the
factors of each family by bounded least squares on the relative error, over the training side of
the corpora and of the languages; every kind of text weighs the same. Texts that are estimated far
too low gain weight until few are left. Rewrites `family_factors.py` in `efrit_budget/budget/`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efrit_budget.budget import families
from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.families import CLASSES, CLAUDE, UNKNOWN, count_classes
from efrit_budget.budget.models import model_named
from tests.benchmarks.corpora import build
from tests.benchmarks.corpora_languages import language_texts
from tests.benchmarks.fit_estimator import solved
from tests.benchmarks.tokenizers_real import COUNTERS, count

Numbers = NDArray[np.float64]
FACTORS = Path(families.__file__).with_name("family_factors.py")
STRETCH = 6_000
LANGUAGES_WEIGHT = 6.5
"""The weight of all languages together, where a kind of text has the weight 1."""
LEAST_COST, MOST_COST = 0.05, 9.0
LEAST_FACTOR, MOST_FACTOR = 0.25, 3.0
FAR_LOW, MOST_FAR_LOW = -0.15, 0.016
"""The error below which an estimate is far too low, and the share of texts that may be so."""
EMPHASES = 1, 2, 3, 4, 6, 8, 12, 18, 25, 40
"""The weights that are tried for texts that are estimated far too low."""
PASSES = 20
HEAD = '''"""The figures of the families. Written by `tests.benchmarks.fit_families`."""

# ruff: noqa: E501
# fmt: off
'''


@dataclass(frozen=True)
class Samples:
    """Texts to fit to, with the weight of each, the characters of each class and the estimate."""

    texts: Sequence[str]
    weights: Numbers
    classes: Numbers
    tokens: Numbers


def samples() -> Samples:
    """Return all texts to fit to."""
    chunks = build().train
    languages = [text.body[:STRETCH] for text in language_texts(held_out=False)]
    sizes = Counter(chunk.kind for chunk in chunks)
    texts = [*(chunk.text for chunk in chunks), *languages]
    weights = [1 / sizes[chunk.kind] for chunk in chunks]
    weights += [LANGUAGES_WEIGHT / len(languages)] * len(languages)
    return Samples(
        texts,
        np.array(weights),
        np.array([count_classes(text) for text in texts], dtype=np.float64),
        np.array([estimate(text) for text in texts], dtype=np.float64),
    )


def between(rows: Numbers, weights: Numbers, least: float, most: float) -> Numbers:
    """Return the figures between two bounds for which all `rows` sum up most nearly to 1."""
    size, scale = rows.shape[1], np.sqrt(weights)
    limits = np.ones(size), np.full(size, least), np.full(size, most)
    return solved(rows * scale[:, None], scale, limits)


def fitted_costs(found: Samples) -> Numbers:
    """Return the tokens that Claude's tokenizer charges for a character of each class."""
    letters = np.array([len(text) for text in found.texts]) - found.classes.sum(axis=1)
    numbers = np.column_stack([letters, found.classes])
    costs = between(numbers / found.tokens[:, None], found.weights, LEAST_COST, MOST_COST)
    return np.round(costs[1:], 3)


def shares(classes: Numbers, tokens: Numbers, costs: Numbers) -> Numbers:
    """Return the shares that the classes have in each estimate, `letters` first."""
    parts = classes * costs
    others = parts / np.maximum(tokens, parts.sum(axis=1))[:, None]
    return np.column_stack([1 - others.sum(axis=1), others])


def fitted_factors(found: Samples, parts: Numbers, real: Sequence[int]) -> Numbers:
    """Return the factors of a family for the real tokens of the texts."""
    rows = parts * (found.tokens / real)[:, None]
    factors = np.ones(len(CLASSES))
    for emphasis in EMPHASES:
        weights = found.weights
        for _ in range(PASSES):
            factors = between(rows, weights, LEAST_FACTOR, MOST_FACTOR)
            far_low = rows @ factors - 1 < FAR_LOW
            weights = (weights + found.weights * np.where(far_low, emphasis, 1)) / 2
        if np.mean(rows @ factors - 1 < FAR_LOW) <= MOST_FAR_LOW:
            break
    return factors


def write(costs: Numbers, factors: dict[str, Numbers]) -> None:
    """Write the module of factors."""
    lines = [f"{HEAD}COSTS = ({_listed(costs)})", "FACTORS: dict[str, tuple[float, ...]] = {"]
    lines += [f'    "{name}": ({_listed(each)}),' for name, each in factors.items()]
    FACTORS.write_text("\n".join([*lines, "}"]) + "\n", encoding="utf-8")


def _listed(figures: Numbers) -> str:
    return ", ".join(f"{figure:.2f}" for figure in figures)


def main() -> None:
    """Fit the families and rewrite their figures."""
    found = samples()
    costs = fitted_costs(found)
    parts = shares(found.classes, found.tokens, costs)
    factors = {
        name: fitted_factors(found, parts, count(name, found.texts))
        for name in COUNTERS
        if name != CLAUDE
    }
    first = model_named("").factor
    factors[UNKNOWN] = np.maximum(1, np.max(list(factors.values()), axis=0) / first)
    write(costs, factors)
    print(f"fitted {len(factors)} families to {len(found.texts)} texts")


if __name__ == "__main__":
    main()
