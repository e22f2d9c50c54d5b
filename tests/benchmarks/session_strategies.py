"""Other ways to keep a session within its window, on the same script: simple, and favoured.

They know the true size of their prompt, and each is charged by the same cache. What they forgot
and the script wants again, they ask for again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from efrit_budget.budget.models import model_named
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation.compressed_line import compressed_line
from tests.benchmarks.session_accounting import Brick, Cache, Meter, Truth
from tests.benchmarks.session_script import Script, Step, script
from tests.benchmarks.session_setting import CLIENT_TOOLS, PROMPT_LIMIT, SYSTEM, Case

MOST_DELIVERED = 8_000
LINE = 60
PLACEHOLDER = "[Old tool result cleared to save space]"
FULL, SHORT, CLEARED = "full", "short", "cleared"


@dataclass
class Shown:
    """A call in the window: the model's use of it, and its result in one of its forms."""

    action: int
    use: float
    sizes: dict[str, float]
    state: str = FULL
    last_use: int = 0

    @property
    def tokens(self) -> float:
        """The cost of the result in its present state."""
        return self.sizes[self.state]


@dataclass
class Exchange:
    """A turn: the person's request, the reply, and the results."""

    number: int
    request: float
    thinking: float
    said: float
    results: list[Shown] = field(default_factory=list)
    thinks: bool = True

    @property
    def bare(self) -> float:
        """The reply without thinking, and the results' uses."""
        return self.said + sum(shown.use for shown in self.results)

    @property
    def tokens(self) -> float:
        """All of it as it stands."""
        results = sum(shown.tokens for shown in self.results)
        return self.request + self.thinking * self.thinks + self.bare + results

    def bricks(self) -> list[Brick]:
        """Return the blocks of the exchange, in order."""
        name = f"t{self.number}"
        found = [Brick(f"{name}?", self.request)] if self.request else []
        found += [Brick(f"{name}thinking", self.thinking)] if self.thinks and self.thinking else []
        found += [Brick(f"{name}said", self.said)] if self.said else []
        found += [Brick(f"{name}use{index}", shown.use) for index, shown in enumerate(self.results)]
        found += [
            Brick(f"{name}{index}{shown.state}", shown.tokens)
            for index, shown in enumerate(self.results)
        ]
        return found


@dataclass
class Past:
    """The window before a request; a strategy makes room in it."""

    fixed: float
    exchanges: list[Exchange] = field(default_factory=list)
    lines: int = 0
    line: float = LINE

    @property
    def head(self) -> float:
        """The lines of exchanges that left, where the strategy keeps them."""
        return min(self.lines * self.line, Tier.HISTORY.default / 4)

    @property
    def total(self) -> float:
        """The size of the prompt."""
        return self.fixed + self.head + sum(one.tokens for one in self.exchanges)

    def bricks(self) -> list[Brick]:
        """Return the blocks of the request, in order."""
        head = [Brick(f"head{self.lines}", self.head)] if self.lines else []
        blocks = [brick for one in self.exchanges for brick in one.bricks()]
        return [Brick("fixed", self.fixed), *head, *blocks]

    def results(self, state: str = FULL) -> list[Shown]:
        """Return the results in a state, the oldest first."""
        return [shown for one in self.exchanges for shown in one.results if shown.state == state]

    def forget_thinking(self) -> None:
        """Remove all thinking, as the API demands of a client that edits earlier messages."""
        for one in self.exchanges:
            one.thinks = False


class Strategy:
    """No management: everything stays."""

    name = "no management"

    def make_room(self, past: Past) -> None:
        """Change the window before a request."""


class CompactEveryTurn(Strategy):
    """Each turn, what is above a mark gives way to its line at once."""

    def __init__(self, name: str, results_mark: float) -> None:
        self.name = name
        self._mark = results_mark

    def make_room(self, past: Past) -> None:
        """Compress the least recently used results; then replace old exchanges by lines."""
        full = sorted(past.results(), key=lambda shown: shown.last_use)
        over = sum(shown.tokens for shown in full) - self._mark
        changed = over > 0
        while over > 0 and full:
            shown = full.pop(0)
            over -= shown.tokens
            shown.state = SHORT
        while _history(past) > Tier.HISTORY.default and len(past.exchanges) > 1:
            _drop_oldest(past)
            past.lines += 1
            changed = True
        if changed:
            past.forget_thinking()


class DropOldest(Strategy):
    """When the prompt is full, the oldest exchanges are dropped until it fits."""

    name = "drop the oldest when full"

    def make_room(self, past: Past) -> None:
        """Drop the oldest exchanges, and the thinking bound to them."""
        while past.total > PROMPT_LIMIT and len(past.exchanges) > 1:
            _drop_oldest(past)
            past.forget_thinking()


class ApiClearing(Strategy):
    """`clear_tool_uses_20250919`: past the trigger, all results but the last few are cleared."""

    def __init__(self, name: str, at_least: int, *, thinking: bool) -> None:
        self.name = name
        self._at_least = at_least
        self._thinking = thinking

    KEEP = 3

    def make_room(self, past: Past) -> None:
        """Clear results if that gains at least the minimum; cleared ones stay cleared."""
        if past.total <= PROMPT_LIMIT:
            return
        old = past.results()[: -self.KEEP]
        gained = sum(shown.tokens - shown.sizes[CLEARED] for shown in old)
        if self._thinking:
            gained += sum(one.thinking for one in past.exchanges if one.thinks)
        if gained < self._at_least:
            return
        for shown in old:
            shown.state = CLEARED
        if self._thinking:
            past.forget_thinking()


def _history(past: Past) -> float:
    """Return the cost of the history tier: replies, and results compressed to lines."""
    return past.head + sum(
        one.bare + sum(shown.tokens for shown in one.results if shown.state != FULL)
        for one in past.exchanges
    )


def _drop_oldest(past: Past) -> None:
    """Drop the oldest exchange, but keep the person's latest message."""
    requests = [one for one in past.exchanges if one.request]
    for index, one in enumerate(past.exchanges):
        if one is not requests[-1]:
            del past.exchanges[index]
            return
        if one.results or one.said:
            one.results, one.said, one.thinking = [], 0.0, 0.0
            return


@dataclass
class Compared:
    """The cost of a strategy, and what it kept and lost."""

    name: str
    meter: Meter = field(default_factory=Meter)
    rewrites: int = 0
    in_view: list[int] = field(default_factory=list)
    returns: int = 0
    forgotten: int = 0

    @property
    def mean_in_view(self) -> float:
        """Results in full in the window, over all requests."""
        return sum(self.in_view) / max(1, len(self.in_view))

    def passes(self, limit: int) -> int | None:
        """Return the first turn in which the prompt exceeds a limit, or None."""
        above = (turn for turn, size in enumerate(self.meter.prompts, 1) if size > limit)
        return next(above, None)


def compare(case: Case, strategy: Strategy) -> Compared:
    """Run the script under a strategy and return its figures."""
    played = script(case.seed)
    sizes = sizes_of(case.seed, case.factor)
    truth = Truth(case.factor)
    prompt_cache = Cache(model_named(case.model).least_cacheable)
    found = Compared(strategy.name)
    past = Past(fixed=_fixed(truth), line=LINE * case.factor)
    for number, step in enumerate(played.steps):
        request = truth.of_text(step.request) if step.request else 0.0
        past.exchanges.append(Exchange(number, request, 0.0, 0.0))
        before = [brick.key for one in past.exchanges for brick in one.bricks()]
        strategy.make_room(past)
        found.rewrites += before != [b.key for one in past.exchanges for b in one.bricks()]
        found.meter.add(prompt_cache.charge(past.bricks()))
        seen = {shown.action: shown for shown in past.results()}
        found.in_view.append(len(seen))
        _reply(past.exchanges[-1], step, seen, sizes, found, truth)
    return found


def _reply(
    exchange: Exchange,
    step: Step,
    seen: dict[int, Shown],
    sizes: Sequence[tuple[float, dict[str, float]]],
    found: Compared,
    truth: Truth,
) -> None:
    """Add the model's reply: the script's calls, and repeats of wanted calls no longer visible."""
    exchange.thinking = step.thinking
    exchange.said = truth.of_text(step.said) if step.said else 0.0
    missed = [action for action in step.returns if action not in seen]
    found.returns += len(step.returns)
    found.forgotten += len(missed)
    for action in step.returns:
        if action in seen:
            seen[action].last_use = exchange.number
    for action in (*step.actions, *missed):
        use, forms = sizes[action]
        exchange.results.append(Shown(action, use, forms, last_use=exchange.number))


def _fixed(truth: Truth) -> float:
    return truth.of_text(SYSTEM) + sum(truth.of_text(json.dumps(tool)) for tool in CLIENT_TOOLS)


@cache
def sizes_of(seed: int, factor: float) -> list[tuple[float, dict[str, float]]]:
    """Return for each action the size of its use and of its result in each form."""
    truth = Truth(factor)
    return [_sizes(index, played, truth) for index, played in _numbered(script(seed))]


def _numbered(played: Script) -> list[tuple[int, Script]]:
    return [(index, played) for index in range(len(played.actions))]


def _sizes(index: int, played: Script, truth: Truth) -> tuple[float, dict[str, float]]:
    action = played.actions[index]
    full = min(MOST_DELIVERED, truth.of_text(action.text))
    line = compressed_line(index + 1, round(full), action.summary)
    forms = {
        FULL: full,
        SHORT: min(full, truth.of_text(line)),
        CLEARED: min(full, truth.of_text(PLACEHOLDER)),
    }
    return truth.of_text(json.dumps([action.tool, action.arguments])), forms
