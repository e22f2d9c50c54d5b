"""The token estimator against real tokenizers, on held-out files.

Each kind of text weighs the same. The corpora are built anew from the machine's files; what the
costs were fitted to shares no origin with what is measured here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from efrit_budget.budget.estimate import estimate, sampled
from efrit_budget.budget.families import CLAUDE, UNKNOWN, family_named
from efrit_budget.budget.models import model_named
from tests.benchmarks.corpora import Chunk, Corpora, build
from tests.benchmarks.corpora_texts import CODE, DATA, ENGLISH, SCRIPTS
from tests.benchmarks.table import Row
from tests.benchmarks.tokenizers_real import COUNTERS, count

Estimator = Callable[[str], float]
Errors = dict[str, list[float]]

MEAN_BAR, WORST_BAR, UNDER_BAR = 0.06, 0.12, 0.02
PLAIN_BAR, SCRIPTS_BAR = 0.10, 0.20
FAR_UNDER = -0.15
COST_BAR, GROWTH_BAR = 0.3e-3, 1.5
HUGE, SMALL = 100_000_000, 8_192
ROUNDS = 201


@dataclass(frozen=True)
class Quality:
    """The three figures by which an estimator is judged."""

    mean: float
    worst: float
    worst_kind: str
    far_under: float


def errors(chunks: Sequence[Chunk], real: Sequence[int], estimator: Estimator) -> Errors:
    """Return the signed relative errors of an estimator, by kind."""
    found: Errors = defaultdict(list)
    for chunk, tokens in zip(chunks, real, strict=True):
        found[chunk.kind].append(estimator(chunk.text) / tokens - 1)
    return found


def mean_abs(values: Iterable[float]) -> float:
    """Return the mean of absolute values."""
    return fmean(map(abs, values))


def quality(found: Errors) -> Quality:
    """Return an estimator's figures over all kinds."""
    by_kind = {kind: mean_abs(values) for kind, values in found.items()}
    worst_kind = max(by_kind, key=by_kind.__getitem__)
    every = [value for values in found.values() for value in values]
    far_under = fmean(value < FAR_UNDER for value in every)
    return Quality(fmean(by_kind.values()), by_kind[worst_kind], worst_kind, far_under)


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{value * 100:.1f}%"


def plain(divisor: float) -> Estimator:
    """Return the customary estimator: characters divided by a number."""
    return lambda text: len(text) / divisor


def summary(ours: Quality, four: Quality, less: Quality) -> Iterator[Row]:
    """Yield rows with our three figures beside those of the customary estimates."""
    yield Row(
        "mean abs error over kinds",
        percent(ours.mean),
        f"len/4 {percent(four.mean)}, len/3.5 {percent(less.mean)}",
        bar=f"<= {percent(MEAN_BAR)}",
        holds=ours.mean <= MEAN_BAR,
    )
    yield Row(
        f"worst kind ({ours.worst_kind})",
        percent(ours.worst),
        f"len/4 {percent(four.worst)}, len/3.5 {percent(less.worst)}",
        bar=f"<= {percent(WORST_BAR)}",
        holds=ours.worst <= WORST_BAR,
    )
    yield Row(
        "chunks underestimated by more than 15%",
        percent(ours.far_under),
        f"len/4 {percent(four.far_under)}, len/3.5 {percent(less.far_under)}",
        bar=f"<= {percent(UNDER_BAR)}",
        holds=ours.far_under <= UNDER_BAR,
    )


def kind_row(kind: str, ours: Errors, four: Errors, less: Errors) -> Row:
    """Return the row of one kind: mean absolute error and bias, ours and the customary ones'."""
    shown = [f"{percent(mean_abs(of[kind]))} ({fmean(of[kind]):+.1%})" for of in (ours, four, less)]
    under = fmean(value < FAR_UNDER for value in ours[kind])
    return Row(
        f"{kind}, {len(ours[kind])} chunks",
        f"{shown[0]}, far under {percent(under)}",
        f"len/4 {shown[1]}, len/3.5 {shown[2]}",
    )


def claude_rows(chunks: Sequence[Chunk]) -> Iterator[Row]:
    """Yield the rows for Claude's tokenizer: the figures with bars, then each kind, worst first."""
    real = count("claude", [chunk.text for chunk in chunks])
    ours, four, less = (
        errors(chunks, real, estimator) for estimator in (estimate, plain(4), plain(3.5))
    )
    yield from summary(quality(ours), quality(four), quality(less))
    for kind in sorted(ours, key=lambda kind: -mean_abs(ours[kind])):
        yield kind_row(kind, ours, four, less)


def family_rows(name: str, chunks: Sequence[Chunk]) -> Iterator[Row]:
    """Yield rows for a family's tokenizer: the family's estimate beside a quarter of the length."""
    family = family_named(name)
    sides = (
        ("code, data, English", {CODE, DATA, ENGLISH}, PLAIN_BAR),
        (SCRIPTS, {SCRIPTS}, SCRIPTS_BAR),
    )
    every: list[float] = []
    for label, groups, bar in sides:
        some = [chunk for chunk in chunks if chunk.group in groups]
        real = count(name, [chunk.text for chunk in some])
        found = errors(some, real, family.estimate)
        ours, four = quality(found), quality(errors(some, real, plain(4)))
        every += [miss for misses in found.values() for miss in misses]
        yield Row(
            f"{name}, {label}: mean abs error over kinds",
            f"{percent(ours.mean)} (worst {percent(ours.worst)} {ours.worst_kind})",
            f"len/4 {percent(four.mean)} (worst {percent(four.worst)})",
            bar=f"<= {percent(bar)}",
            holds=ours.mean <= bar,
        )
    far_under = fmean(miss < FAR_UNDER for miss in every)
    yield Row(
        f"{name}: chunks underestimated by more than 15%",
        percent(far_under),
        f"bias {fmean(every):+.1%}",
        bar=f"<= {percent(UNDER_BAR)}",
        holds=far_under <= UNDER_BAR,
    )


def unknown_row(names: Sequence[str], chunks: Sequence[Chunk]) -> Row:
    """Return the row of the family of unknown models, measured with each tokenizer in turn."""
    texts = [chunk.text for chunk in chunks]
    factor, family = model_named("").factor, family_named(UNKNOWN)
    estimates = [family.estimate(text) * factor for text in texts]
    shares = {
        name: fmean(
            estimate / real - 1 < FAR_UNDER
            for estimate, real in zip(estimates, count(name, texts), strict=True)
        )
        for name in names
    }
    worst = max(shares, key=shares.__getitem__)
    return Row(
        f"an unknown model, first factor {factor}: chunks underestimated by more than 15%",
        f"{percent(shares[worst])} with the worst tokenizer ({worst})",
        bar=f"<= {percent(UNDER_BAR)}",
        holds=shares[worst] <= UNDER_BAR,
    )


def medians(texts: dict[str, str]) -> dict[str, float]:
    """Return the median seconds of a sampled estimate for each text, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in texts}
    for _ in range(ROUNDS):
        for name, text in texts.items():
            start = time.perf_counter()
            sampled(text)
            taken[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in taken.items()}


def long_texts(chunks: Sequence[Chunk]) -> dict[str, str]:
    """Join all chunks of each kind to one text."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        bodies[chunk.kind].append(chunk.text)
    return {kind: "".join(texts) for kind, texts in bodies.items()}


def cost_rows(chunks: Sequence[Chunk]) -> Iterator[Row]:
    """Measure the time of a sampled estimate, by kind and for a huge text beside a small one."""
    by_kind = medians(long_texts(chunks))
    slowest = max(by_kind, key=by_kind.__getitem__)
    yield Row(
        f"cost of one sampled estimate, median, slowest kind ({slowest})",
        f"{by_kind[slowest] * 1e3:.3f} ms",
        f"median kind {median(by_kind.values()) * 1e3:.3f} ms",
        bar=f"<= {COST_BAR * 1e3} ms",
        holds=by_kind[slowest] <= COST_BAR,
    )
    base = "".join(chunk.text for chunk in chunks if chunk.kind == "python")
    huge = base * (HUGE // len(base) + 1)
    pair = medians({"small": huge[:SMALL], "huge": huge[:HUGE]})
    growth = pair["huge"] / pair["small"]
    yield Row(
        "cost of a sampled estimate of 100 MB beside one of 8 KB",
        f"{pair['huge'] * 1e3:.3f} ms",
        f"{pair['small'] * 1e3:.3f} ms",
        ratio=f"{growth:.2f}",
        bar=f"<= {GROWTH_BAR}",
        holds=growth <= GROWTH_BAR,
    )


def corpora_row(corpora: Corpora) -> Row:
    """Return a row with the size of the held-out corpora."""
    kinds = {chunk.kind for chunk in corpora.held_out}
    origins = {chunk.origin for chunk in corpora.held_out}
    missing = ", ".join(corpora.too_small) or "none"
    return Row(
        "held-out corpora",
        f"{len(corpora.held_out)} chunks of {len(kinds)} kinds from {len(origins)} origins",
        f"fitted to {len(corpora.train)} chunks; too few of {missing}",
    )


def run() -> list[Row]:
    """Return all rows of the table."""
    corpora = build()
    families = [name for name in COUNTERS if name != CLAUDE]
    return [
        corpora_row(corpora),
        *claude_rows(corpora.held_out),
        *(row for name in families for row in family_rows(name, corpora.held_out)),
        unknown_row(families, corpora.held_out),
        *cost_rows(corpora.held_out),
    ]
