"""Replay a recording through the real budget, and beside it through other ways to make room."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import cache_rates
from efrit_budget.conversation.blocks import THINKING
from efrit_budget.replay.account import Account
from efrit_budget.replay.blocks import Measure, SentBlock
from efrit_budget.replay.clairvoyant import (
    NOT_CACHED,
    Clairvoyant,
    cheapest_rewrites,
)
from efrit_budget.replay.facts import NeededFacts
from efrit_budget.replay.ours import Means, ReplayedSession, Request
from efrit_budget.replay.pricing import Till
from efrit_budget.replay.recording import RecordedTurn, Recording
from efrit_budget.replay.references import (
    PLACEHOLDER,
    ApiClearing,
    DropOldest,
    Entry,
    Past,
    Reference,
    Summary,
)

SUMMARY_SHARE = 0.75
"""The share of the prompt's limit at which a summary replaces the exchanges."""
SUMMARY = "It was done as asked. " * 250
"""A text as long as a summary usually is; it has no identifier."""
AT_LEAST = (0, 5_000, 10_000, 20_000, 30_000)
"""The values of `clear_at_least` of which the cheapest counts."""
Progress = Callable[[int, int], None]


@dataclass
class Played:
    """A turn as it was replayed: its request, and what its reply needed of it."""

    turn: RecordedTurn
    request: Request
    needed: set[str]
    repeated: list[str]
    """The ids of the earlier tool uses that the reply's calls repeat."""
    output: int


@dataclass
class Replay:
    """A replayed recording, with an account for each way to make room; ours is the first."""

    recording: Recording
    played: Sequence[Played]
    accounts: Sequence[Account]
    limit: int
    """The most tokens of a prompt."""


@dataclass(frozen=True)
class Clearing:
    """The settings of the API's clearing; None stands for the default."""

    trigger: int | None = None
    keep: int = 3
    at_least: int | None = None
    inputs: bool = False


def replay(means: Means, recording: Recording, clearing: Clearing, progress: Progress) -> Replay:
    """Replay a recording, and account for it in each way."""
    measure = Measure(means.model)
    session = ReplayedSession(means, measure)
    played = play(session, recording, measure, progress)
    limit = session.prompt_limit
    accounts = [our_account(played, measure, means.model)]
    accounts.append(account_of(Reference(), played, measure, means.model))
    accounts.append(_cheapest_clearing(clearing, limit, played, measure, means.model))
    summary = Summary(int(limit * SUMMARY_SHARE), measure.text(SUMMARY))
    accounts.append(account_of(summary, played, measure, means.model))
    accounts.append(account_of(DropOldest(limit), played, measure, means.model))
    best = in_hindsight(session, played, measure, means.model)
    accounts.append(account_of(best, played, measure, means.model))
    return Replay(recording, played, accounts, limit)


def _cheapest_clearing(
    clearing: Clearing, limit: int, played: Sequence[Played], measure: Measure, model: Model
) -> Account:
    """Return the account of the API's clearing, with the `clear_at_least` that costs least."""
    choices = AT_LEAST if clearing.at_least is None else (clearing.at_least,)
    trigger = limit if clearing.trigger is None else clearing.trigger
    accounts = (
        account_of(
            ApiClearing(trigger, clearing.keep, at_least, clearing.inputs), played, measure, model
        )
        for at_least in choices
    )
    return min(accounts, key=lambda account: account.dollars)


def play(
    session: ReplayedSession, recording: Recording, measure: Measure, progress: Progress
) -> list[Played]:
    """Run a recording through a session; return its turns."""
    facts, calls, played = NeededFacts(), _Calls(), []
    for number, request in enumerate(session.requests(recording)):
        turn = recording.turns[number]
        for block in turn.message or ():
            facts.add_other(measure.block(block).names)
        names = frozenset[str]().union(*(block.names for block in request.reply))
        output = sum(block.tokens for block in request.reply)
        repeated = calls.repeated(turn)
        played.append(Played(turn, request, facts.needed_by(names), repeated, output))
        facts.add_other(names)
        for use, text in request.whole.items():
            facts.add_result(measure.result(use, text).names)
        progress(number + 1, len(recording.turns))
    return played


class _Calls:
    """Knows the calls so far, by tool and input, with the text of their latest result."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[str, str]] = {}

    def repeated(self, turn: RecordedTurn) -> list[str]:
        """Return the earlier tool uses with the same input and the same result as one of these."""
        found = []
        for block in turn.calls():
            result = turn.results.get(block["id"])
            if result is None:
                continue
            key = json.dumps([block["name"], block["input"]], sort_keys=True)
            use, text = self._latest.get(key, ("", None))
            if text == result.text:
                found.append(use)
            self._latest[key] = (block["id"], result.text)
        return found


def our_account(played: Sequence[Played], measure: Measure, model: Model) -> Account:
    """Return the account of the session as it was replayed."""
    account = Account("efrit", Till(model))
    delivered: dict[str, str] = {}
    for one in played:
        blocks = one.request.blocks
        account.till.charge(blocks, one.output, one.turn.began)
        account.rewrites += one.request.is_rewrite
        repeated = [measure.result(use, delivered[use]) for use in one.repeated]
        account.check(blocks, one.needed, repeated)
        delivered |= one.request.delivered
    return account


def account_of(
    reference: Reference, played: Sequence[Played], measure: Measure, model: Model
) -> Account:
    """Return the account of the same session under another way to make room."""
    account = Account(reference.name, Till(model))
    turns = zip(_pasts(played, measure), _repeated(played, measure), strict=True)
    for (one, past), repeated in turns:
        before = past.total
        if reference.make_room(past):
            account.rewrites += 1
            if past.extra_output:
                account.add_summary(before, past.extra_output)
                past.extra_output = 0
        blocks = past.blocks()
        account.till.charge(blocks, one.output, one.turn.began)
        account.check(blocks, one.needed, repeated)
    return account


def in_hindsight(
    session: ReplayedSession, played: Sequence[Played], measure: Measure, model: Model
) -> Clairvoyant:
    """Return the way to make room that knows what is needed later, and when rewrites pay."""
    repeated = [{block.key for block in blocks} for blocks in _repeated(played, measure)]
    needed = [one.needed for one in played]
    way = Clairvoyant(session.history_limit, session.recent_limit, repeated, needed, measure)
    grown, rewritten = [], []
    for number, (_, past) in enumerate(_pasts(played, measure)):
        grown.append(past.total)
        copy = past.copy()
        way.rewrite(copy, number)
        rewritten.append(copy.total)
    rates = cache_rates(model.name) or NOT_CACHED
    began = [one.turn.began for one in played]
    return replace(
        way, rewrites=cheapest_rewrites(began, grown, rewritten, session.prompt_limit, rates)
    )


def _pasts(played: Sequence[Played], measure: Measure) -> Iterator[tuple[Played, Past]]:
    """Yield each turn with the window before its request, which may be changed in between."""
    past = Past(played[0].request.prefix)
    for one in played:
        past.exchanges.append([Entry(measure.block(block)) for block in one.turn.message or ()])
        yield one, past
        past.exchanges[-1] += _entries(one, measure)


def _repeated(played: Sequence[Played], measure: Measure) -> Iterator[list[SentBlock]]:
    """Yield the results that the calls of each turn repeat."""
    whole: dict[str, str] = {}
    for one in played:
        yield [measure.result(use, whole[use]) for use in one.repeated]
        whole |= one.request.whole


def _entries(one: Played, measure: Measure) -> Iterator[Entry]:
    """Yield the blocks of a reply, and the results of its tool calls."""
    for block, measured in zip(one.turn.reply, one.request.reply, strict=True):
        is_use, is_thinking = block["type"] == "tool_use", block["type"] in THINKING
        cleared = measure.block({**block, "input": {}}) if is_use else None
        yield Entry(measured, cleared, is_thinking=is_thinking)
    for use, text in one.request.whole.items():
        yield Entry(measure.result(use, text), measure.result(use, PLACEHOLDER), is_result=True)
