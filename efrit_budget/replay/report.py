"""Lay out the accounts of replayed sessions for a person and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from efrit_budget.errors import JsonObject
from efrit_budget.replay.account import Account
from efrit_budget.replay.replaying import Replay

HEADING = ("session", "turns", "largest", "epochs", "cached", "price", "facts", "repeats")


def table(replays: Sequence[Replay]) -> list[tuple[str, ...]]:
    """Return a heading, a line for each session, and the total.

    Behind each other way to make room stand its price, our price beside it, and its needed facts.
    """
    references = [account.name for account in replays[0].accounts[1:]]
    rows = [(*HEADING, *references)]
    rows += [_row(replay.recording.name, [replay]) for replay in replays]
    if len(replays) > 1:
        rows.append(_row("all", replays))
    return rows


def _row(name: str, replays: Sequence[Replay]) -> tuple[str, ...]:
    ours = [replay.accounts[0] for replay in replays]
    groups = list(zip(*(replay.accounts for replay in replays), strict=True))
    return (
        name,
        f"{sum(len(replay.played) for replay in replays):,}",
        f"{max(account.largest for account in ours):,}",
        f"{sum(account.rewrites + 1 for account in ours):,}",
        f"{_share(_read(ours), _sent(ours)):.1%}",
        f"${_dollars(ours):,.2f}",
        _facts(ours),
        f"{sum(one.repeats_in_view for one in ours)} of {sum(one.repeats for one in ours)}",
        *(f"${_dollars(group):,.2f} {_ratio(ours, group)} {_facts(group)}" for group in groups[1:]),
    )


def _dollars(accounts: Sequence[Account]) -> float:
    return sum(account.dollars for account in accounts)


def _ratio(ours: Sequence[Account], theirs: Sequence[Account]) -> str:
    """Return the mean of our price beside theirs."""
    ratios = [one.dollars / other.dollars for one, other in zip(ours, theirs, strict=True)]
    return f"{fmean(ratios):.2f}"


def _read(accounts: Sequence[Account]) -> int:
    return sum(charge.read for account in accounts for charge in account.till.charges)


def _sent(accounts: Sequence[Account]) -> int:
    return sum(charge.prompt for account in accounts for charge in account.till.charges)


def _facts(accounts: Sequence[Account]) -> str:
    return f"{_share(sum(a.facts_in_view for a in accounts), sum(a.facts for a in accounts)):.1%}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def as_json(replays: Sequence[Replay]) -> JsonObject:
    """Return the accounts of all sessions."""
    return {"sessions": [_session(replay) for replay in replays]}


def _session(replay: Replay) -> JsonObject:
    return {
        "name": replay.recording.name,
        "turns": len(replay.played),
        "accounts": [
            {
                "name": account.name,
                "largest_prompt": account.largest,
                "rewrites": account.rewrites,
                "cached_share": round(account.cached_share, 4),
                "dollars": round(account.dollars, 4),
                "needed_facts": account.facts,
                "needed_facts_in_view": account.facts_in_view,
                "repeated_calls": account.repeats,
                "repeated_calls_in_view": account.repeats_in_view,
                "prompts": [charge.prompt for charge in account.till.charges],
            }
            for account in replay.accounts
        ],
    }
