"""Texts made to be miscounted: none has far more tokens than its estimate."""

from __future__ import annotations

import importlib
import random

import pytest

from efrit_budget.budget.estimate import estimate
from tests.budget.made_counts import MADE_COUNTS
from tests.budget.made_texts import made
from tests.soak import amount

MOST = 1.2
LEAST_TOKENS = 300
PATHS = "lisp/progmodes/python-shell.el\nlisp/textmodes/table-layout.el\n" * 16


def digits(size: int, below: int) -> list[int]:
    """Return numbers that look random, the same on every machine."""
    return [(at * at * 7919 + at * 104729) % 1_000_003 * 1009 % below for at in range(size)]


@pytest.mark.parametrize("seed", MADE_COUNTS)
def test_a_made_text_has_at_most_a_fifth_more_tokens_than_its_estimate(seed: int) -> None:
    one = made(seed)
    tokens, _ = MADE_COUNTS[seed]
    assert tokens <= MOST * estimate(one.text), one.name


@pytest.mark.parametrize("seed", MADE_COUNTS)
def test_a_made_text_has_the_same_estimate_on_every_machine(seed: int) -> None:
    """After a change on purpose, `python -m tests.budget.write_made_counts` writes them anew."""
    _, estimated = MADE_COUNTS[seed]
    assert estimate(made(seed).text) == estimated


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (" ".join(f"0{number:02}" for number in digits(300, 100)), 598),
        ("; ".join(f"&#{number}" for number in digits(300, 256)), 1198),
        ("|".join(str(number) for number in digits(300, 10**9)), 1414),
        (
            "".join("afkdz"[n % 5] + "QXVJK"[n % 7 % 5] + "αβγδε"[n % 3] for n in digits(300, 99)),
            875,
        ),
        ("? exit 0\n" + "8645970 " * 75 + "\n? Took 0.0 s.\n", 314),
        ("A".join(PATHS[at : at + 3] for at in range(0, len(PATHS), 3)), 821),
        ("".join(["MRLVOZDE", "K5SGIV3E", "GEZDGNBV"][n % 3] for n in digits(200, 99)), 955),
    ],
)
def test_an_odd_notation_is_not_far_below_its_tokens(text: str, tokens: int) -> None:
    """Numbers behind a zero, references, numbers without blanks, two scripts, base32 by turns.

    Also a number repeated between other lines, and paths divided by a capital.
    """
    assert tokens <= 1.15 * estimate(text)


@pytest.mark.soak(alone=True)
def test_thousands_of_made_texts_have_at_most_a_fifth_more_tokens() -> None:
    real = importlib.import_module("tests.benchmarks.tokenizers_real").claude()
    some = map(made, random.Random(4).sample(range(10**6, 10**9), amount(0, 1_000)))
    counted = [(one, real([one.text])[0]) for one in some]
    low = [
        (tokens / estimate(one.text), one.name)
        for one, tokens in counted
        if tokens >= LEAST_TOKENS and tokens > MOST * estimate(one.text)
    ]
    assert not low, sorted(low, reverse=True)
