"""What hindsight chooses is never dearer than another choice, and keeps what is needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.prices import CACHE_SECONDS, Rates
from efrit_budget.cli.replay import replay_apart
from efrit_budget.replay.clairvoyant import cheapest_rewrites
from efrit_budget.replay.files import open_recording
from efrit_budget.replay.replaying import Clearing
from tests.replay.recordings import claude_code

RATES = Rates(read=0.1, write=1.25)
LIMIT = 100


def price(
    rewrites: Sequence[int], grown: Sequence[int], rewritten: Sequence[int], began: Sequence[float]
) -> float | None:
    """Return the price of all prompts with these rewrites, or None if one is above the limit."""
    total, before, base = 0.0, 0, 0
    for turn, size in enumerate(grown):
        is_rewrite = turn in rewrites
        if is_rewrite:
            base = rewritten[turn] - size
        prompt = size + base
        if prompt > LIMIT and turn > 0 and not is_rewrite:
            return None
        is_cached = turn > 0 and not is_rewrite and began[turn] - began[turn - 1] <= CACHE_SECONDS
        read = before if is_cached else 0
        total += read * RATES.read + (prompt - read) * RATES.write
        before = prompt
    return total


TURNS = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 60), st.sampled_from([10.0, 1_000.0])),
    min_size=1,
    max_size=8,
)


@given(TURNS)
def test_no_other_turns_to_rewrite_at_cost_less(turns: list[tuple[int, int, float]]) -> None:
    grown = [sum(each for each, _, _ in turns[: number + 1]) for number in range(len(turns))]
    rewritten = [min(least, size) for (_, least, _), size in zip(turns, grown, strict=True)]
    began = [sum(gap for _, _, gap in turns[: number + 1]) for number in range(len(turns))]
    chosen = cheapest_rewrites(began, grown, rewritten, LIMIT, RATES)
    numbers = range(1, len(turns))
    choices = [some for count in range(len(turns)) for some in combinations(numbers, count)]
    found = price(sorted(chosen), grown, rewritten, began)
    prices = [price(some, grown, rewritten, began) for some in choices]
    assert found is not None
    assert found <= min(each for each in prices if each is not None) + 1e-9


def test_what_later_turns_need_stands_in_its_prompts(tmp_path: Path) -> None:
    text = "def only_here(): pass\n" + "some words of a file follow here\n" * 400
    turns = [("Look.", "I look.", {f"f{number}.py": f"{number} {text}"}) for number in range(24)]
    file = tmp_path / "session.jsonl"
    file.write_text(claude_code(*turns, ("Where?", "In only_here.", {})), encoding="utf-8")
    recording = open_recording(file)
    found = replay_apart(
        recording, "claude-opus-4-6", {"total": 30_000}, Clearing(), lambda *_: None
    )
    accounts = {account.name: account for account in found.accounts}
    best = accounts["clairvoyant"]
    assert best.rewrites > 0
    assert (best.facts_in_view, best.facts) == (1, 1)
    assert best.largest <= found.limit
    assert best.dollars <= min(accounts["efrit"].dollars, accounts["unmanaged"].dollars)
