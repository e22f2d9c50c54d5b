"""What gives way in a rewrite. A pure function of the pieces, mechanical: least recently used.

First each tier is brought to its own mark; then, if the whole is still too large, more gives
way in a fixed order. What the person pinned stays, the latest request never leaves, and what
belongs to the turn in hand gives way last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.window.pieces import Key, Phase, Piece, State, Wish

T = TypeVar("T")


@dataclass(frozen=True)
class Frame:
    """What a plan works within."""

    limits: Limits
    prompt_limit: int
    fixed: int
    """System prompt and tools: what no rewrite makes smaller."""
    low_water: float
    gone: int
    """Turns that left before."""
    title: int
    """What stands above the lines of turns that left costs."""
    line: int
    """What the line of a turn that leaves costs, about."""
    head_limit: int
    """What the lines of turns that left may cost, title and all."""
    notice: int
    """What the alert costs that may follow a rewrite; the history pays for it."""

    def head(self, gone: int) -> int:
        """What the lines of so many turns take."""
        return min(self.title + gone * self.line, self.head_limit) if gone else 0


@dataclass(frozen=True)
class Plan:
    """How the pieces stand after the rewrite, and what each tier then holds."""

    states: Mapping[Key, State]
    used: Mapping[Tier, int]
    head: int
    """What the lines of the turns that left may take."""
    fits: bool

    @property
    def total(self) -> int:
        """The size of the prompt."""
        return sum(self.used.values())


class _Draft:
    """The pieces while the plan is made; the sums follow each change."""

    def __init__(self, pieces: Iterable[Piece], frame: Frame, current_turn: int) -> None:
        self.frame = frame
        self.pieces = {piece.key: piece for piece in pieces}
        self.states = {key: _bare(piece) for key, piece in self.pieces.items()}
        requests = [key for key in self.pieces if key[1] == Phase.REQUEST]
        self.latest_request = max(requests, default=None)
        self.current_turn = current_turn
        self.gone = frame.gone
        self.sums = dict.fromkeys(Tier, 0)
        self.sums[Tier.SYSTEM] = frame.fixed
        for key in self.pieces:
            self._count(key, 1)
        self.lines = [key for key, piece in self.pieces.items() if piece.stands_on is not None]
        self._shrink_what_points_nowhere()

    def _count(self, key: Key, sign: int) -> None:
        piece, state = self.pieces[key], self.states[key]
        if state is not State.GONE:
            self.sums[tier_of(piece, state)] += sign * cost_in(piece, state)

    def _put(self, key: Key, state: State) -> None:
        self._count(key, -1)
        self.states[key] = state
        self._count(key, 1)

    def _shrink_what_points_nowhere(self) -> None:
        """A line that says where its text stands in full goes with the last such place."""
        for key in self.lines:
            shown = self.pieces[key].stands_on or ()
            if self.states[key] is State.FULL and not any(
                self.states.get(place) is State.FULL for place in shown
            ):
                self._put(key, State.COMPRESSED)

    @property
    def head(self) -> int:
        """What the lines of the turns that left take."""
        return self.frame.head(self.gone)

    @property
    def history(self) -> int:
        """What the history tier holds."""
        return self.sums[Tier.HISTORY] + self.head

    @property
    def total(self) -> int:
        """The size of the prompt."""
        return sum(self.sums.values()) + self.head

    def is_too_large(self) -> bool:
        """Whether the prompt is above its limit."""
        return self.total > self.frame.prompt_limit

    def holds_too_much(self, tier: Tier) -> bool:
        """Whether a tier is above its cap."""
        held = self.history + self.frame.notice if tier is Tier.HISTORY else self.sums[tier]
        return held > self.frame.limits.of(tier)

    def is_above_the_mark(self) -> bool:
        """Whether full results take more of their tier than a rewrite leaves them."""
        mark = int(self.frame.limits.tool_results * self.frame.low_water)
        return self.sums[Tier.TOOL_RESULTS] > mark

    def oldest(self, keys: Iterable[Key]) -> list[Key]:
        """The keys, the least recently used first."""
        return sorted(keys, key=lambda key: (self.pieces[key].last_use, key))

    def full_results(self, *, current: bool) -> list[Key]:
        """The results that may shrink; those the person just brought back come last."""
        found = self.oldest(
            key
            for key, state in self.states.items()
            if key[1] == Phase.RESULT
            and state is State.FULL
            and not self.pieces[key].pinned
            and (key[0] >= self.current_turn) == current
        )
        return sorted(found, key=self.was_restored)

    def was_restored(self, key: Key) -> bool:
        """Whether the person brought it back since the last rewrite."""
        return self.pieces[key].wish is Wish.RESTORE

    def exchanges(self, *, current: bool) -> list[int]:
        """The turns whose reply and results may leave together, least recently used first."""
        last_use: dict[int, int] = {}
        held: set[int] = set()
        for key, state in self.states.items():
            if key[1] >= Phase.REPLY and state is not State.GONE:
                last_use[key[0]] = max(last_use.get(key[0], 0), self.pieces[key].last_use)
                if self.pieces[key].pinned:
                    held.add(key[0])
        found = [
            turn for turn in last_use if turn not in held and (turn >= self.current_turn) == current
        ]
        return sorted(found, key=lambda turn: (last_use[turn], turn))

    def requests(self) -> list[Key]:
        """The requests that may leave: all but the latest."""
        return self.oldest(
            key
            for key, state in self.states.items()
            if key[1] == Phase.REQUEST and state is not State.GONE and key != self.latest_request
        )

    def shrink(self, key: Key) -> None:
        """A result gives way to its line."""
        self._put(key, State.COMPRESSED)
        self._shrink_what_points_nowhere()

    def leave(self, turn: int) -> None:
        """A reply and its results leave the window."""
        for key in [key for key in self.pieces if key[0] == turn and key[1] >= Phase.REPLY]:
            self._put(key, State.GONE)
        self.gone += 1
        self._shrink_what_points_nowhere()

    def leave_request(self, key: Key) -> None:
        """A request leaves the window."""
        self._put(key, State.GONE)
        self.gone += 1


def _bare(piece: Piece) -> State:
    """How a piece begins a new epoch: notices and past thinking are taken out."""
    if piece.phase is Phase.NOTICE:
        return State.GONE
    return State.COMPRESSED if piece.phase is Phase.REPLY else piece.state


def cost_in(piece: Piece, state: State) -> int:
    """What a piece costs in a state."""
    return piece.least if state is State.COMPRESSED else piece.tokens


def tier_of(piece: Piece, state: State) -> Tier:
    """The tier that pays for a piece in a state."""
    if piece.phase is Phase.REQUEST:
        return Tier.USER_MESSAGE
    if piece.phase is Phase.RESULT and state is State.FULL:
        return Tier.TOOL_RESULTS
    return Tier.HISTORY


def plan(pieces: Sequence[Piece], frame: Frame, current_turn: int) -> Plan:
    """What gives way; `current_turn` is the one whose results are about to be sent."""
    draft = _Draft(pieces, frame, current_turn)
    _bring_to_marks(draft)
    _bring_within_limit(draft)
    used = {**draft.sums, Tier.HISTORY: draft.history}
    return Plan(draft.states, used, draft.head, fits=not draft.is_too_large())


def _bring_to_marks(draft: _Draft) -> None:
    """Each tier to its own mark; what the person just brought back counts to the tier's cap."""
    results = draft.full_results(current=False)
    restored = [key for key in results if draft.was_restored(key)]
    _while(draft.is_above_the_mark, results[: len(results) - len(restored)], draft.shrink)
    _while(lambda: draft.holds_too_much(Tier.TOOL_RESULTS), restored, draft.shrink)
    _while(lambda: draft.holds_too_much(Tier.USER_MESSAGE), draft.requests(), draft.leave_request)
    _bring_history_to_its_cap(draft)


def _bring_history_to_its_cap(draft: _Draft) -> None:
    _while(lambda: draft.holds_too_much(Tier.HISTORY), draft.exchanges(current=False), draft.leave)


def _bring_within_limit(draft: _Draft) -> None:
    """More gives way while the whole is too large; what shrinks comes to the history."""
    _while(draft.is_too_large, draft.full_results(current=False), draft.shrink)
    _bring_history_to_its_cap(draft)
    _while(draft.is_too_large, draft.exchanges(current=False), draft.leave)
    _while(draft.is_too_large, draft.requests(), draft.leave_request)
    _bring_history_to_its_cap(draft)
    _while(draft.is_too_large, draft.full_results(current=True), draft.shrink)
    _while(draft.is_too_large, draft.exchanges(current=True), draft.leave)


def _while(needed: Callable[[], bool], candidates: Iterable[T], act: Callable[[T], None]) -> None:
    """Act on the candidates, one by one, for as long as it is needed."""
    for candidate in candidates:
        if not needed():
            return
        act(candidate)
