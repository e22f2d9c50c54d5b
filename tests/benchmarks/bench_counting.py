"""The cost of counting a whole text, and the error for texts made to be miscounted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median

from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.estimate import cost, estimate
from efrit_budget.budget.families import parts_of
from tests.benchmarks.corpora_languages import THIRTY, language_texts
from tests.benchmarks.recorded_usage import turns
from tests.benchmarks.table import Row
from tests.benchmarks.tokenizers_real import count
from tests.budget.made_texts import ASCII, made, wrapped
from tests.budget.measured import MEASURED

LONG, LONG_BAR, ADDED_BAR, ROUNDS = 300_000, 0.020, 0.003, 15
MADE, FIRST_SEED, MADE_BAR, LEAST_TOKENS = 5_000, 3_000_000, 1.2, 300
USAGE_BAR, LOW_BAR, FAR_LOW = 0.055, 0.02, -0.15
LANGUAGE_BAR, WORST_LANGUAGE_BAR, STRETCH = 0.08, 0.20, 6_000


def long_texts() -> dict[str, str]:
    """Return texts of `LONG` characters, by their kind."""
    texts = {kind: MEASURED[kind][1] for kind in ("english", "german", "russian", "chinese")}
    texts["python"] = Path(__file__).with_name("fit_estimator.py").read_text(encoding="utf-8")
    rng = random.Random(1)
    for kind in ("base64", "hex", "letters", "printable"):
        texts[kind] = wrapped(rng, ASCII[kind], LONG)
    return {kind: (body * (LONG // len(body) + 1))[:LONG] for kind, body in texts.items()}


def taken(work: Callable[[str], object], text: str) -> list[float]:
    """Return the processor time of each of `ROUNDS` times that a text is counted anew."""
    found = []
    for _ in range(ROUNDS):
        cost.cache_clear()
        start = time.process_time()
        work(text)
        found.append(time.process_time() - start)
    return found


def whole_rows() -> Iterator[Row]:
    """Measure the time to estimate 300,000 characters of many kinds, and what a family adds."""
    texts = long_texts()
    for kind, text in texts.items():
        times = taken(estimate, text)
        yield Row(
            f"whole counting of {LONG:,} characters, {kind}, processor time",
            f"{min(times) * 1e3:.1f} ms",
            f"median {median(times) * 1e3:.1f} ms",
            bar=f"<= {LONG_BAR * 1e3:.0f} ms",
            holds=min(times) <= LONG_BAR,
        )
    added = {kind: min(taken(parts_of, text)) for kind, text in texts.items()}
    kind = max(added, key=added.__getitem__)
    yield Row(
        f"added by the factors of another family, slowest kind ({kind}), processor time",
        f"{added[kind] * 1e3:.1f} ms",
        f"median kind {median(added.values()) * 1e3:.1f} ms",
        bar=f"<= {ADDED_BAR * 1e3:.0f} ms",
        holds=added[kind] <= ADDED_BAR,
    )


def language_rows() -> Iterator[Row]:
    """Measure the error of the estimate for languages that it was not fitted to."""
    texts = [(text.kind, text.body[:STRETCH]) for text in language_texts(held_out=True)]
    real = count("claude", [body for _, body in texts])
    misses = {
        kind: estimate(body) / tokens - 1 for (kind, body), tokens in zip(texts, real, strict=True)
    }
    thirty = {kind: misses[kind] for kind in THIRTY if kind in misses}
    for name, some in (("all", misses), ("of thirty large or odd ones", thirty)):
        if some:
            worst = max(some, key=lambda kind: abs(some[kind]))
            mean = sum(map(abs, some.values())) / len(some)
            yield Row(
                f"languages held out, {name}: {len(some)}, mean error",
                f"{mean:.1%} (worst {worst} {some[worst]:+.0%})",
                bar=f"<= {LANGUAGE_BAR:.0%}, none above {WORST_LANGUAGE_BAR:.0%}",
                holds=mean <= LANGUAGE_BAR and abs(some[worst]) <= WORST_LANGUAGE_BAR,
            )


def made_row() -> Row:
    """Count the generated texts that have far more tokens than estimated."""
    texts = [made(FIRST_SEED + seed) for seed in range(MADE)]
    real = count("claude", [each.text for each in texts])
    found = [
        (tokens / estimate(each.text), each.name)
        for each, tokens in zip(texts, real, strict=True)
        if tokens >= LEAST_TOKENS
    ]
    worst, name = max(found)
    low = sum(ratio > MADE_BAR for ratio, _ in found)
    return Row(
        f"{len(found):,} made texts of {LEAST_TOKENS} tokens and more: above {MADE_BAR} of told",
        f"{low} (worst {worst:.2f}: {name})",
        bar="0",
        holds=low == 0,
    )


def usage_rows() -> Iterator[Row]:
    """Measure the error for each turn's results, calibrated by the turns before it."""
    known, misses = Calibration(1.0), []
    for turn in turns():
        raw, number = sum(map(estimate, turn.results)), len(turn.results)
        if turn.tokens > LEAST_TOKENS:
            misses.append(known.tokens(raw, number) / turn.tokens - 1)
        known = known.after(raw, 0, turn.tokens, number).after_results(raw, turn.tokens, number)
    if misses:
        mean, low = fmean(map(abs, misses)), fmean(miss < FAR_LOW for miss in misses)
        yield Row(
            f"recorded usage, {len(misses)} turns above {LEAST_TOKENS} tokens, mean error",
            f"{mean:.1%}, low by more than 15% in {low:.1%}",
            f"learnt: factor {known.factor:.2f}, {known.frame:.0f} tokens around a result",
            bar=f"<= {USAGE_BAR:.1%}, {LOW_BAR:.0%}",
            holds=mean <= USAGE_BAR and low <= LOW_BAR,
        )


def run() -> list[Row]:
    """Return all rows of the table."""
    return [*whole_rows(), *language_rows(), made_row(), *usage_rows()]
