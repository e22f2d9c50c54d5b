"""Plan a rewrite: decide which pieces are compressed or evicted, least recently used first.

First each tier is brought to its own mark; then, if the whole is still too large, more pieces are
compressed and evicted in a fixed order. Pinned results stay, the latest user message is never
evicted, and the pieces of the current turn come last.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.conversation.pieces import Phase, Piece, PieceKey, PieceState, UserEdit

T = TypeVar("T")
WITH_INPUTS = (PieceState.FULL, PieceState.COMPRESSED)
"""The states in which a reply has its long inputs."""


@dataclass(frozen=True)
class Frame:
    """The limits and costs that a plan works with."""

    limits: Limits
    prompt_limit: int
    fixed: int
    """The tokens of system text and tools, which no rewrite changes."""
    low_water: float
    recent_turns: int
    recent_share: float
    gone: int
    """The number of turns that were evicted before."""
    title: int
    """The tokens of the title above the lines of evicted turns."""
    line: int
    """The assumed tokens of the line of an evicted turn."""
    lines_limit: int
    """The most tokens of the title and the lines of evicted turns."""
    index_limit: int
    """The most tokens of the index of names in results that are not shown in full."""
    notice: int
    """The tokens of the notice that may follow a rewrite; it counts as history."""

    def lines(self, gone: int) -> int:
        """Return the tokens that are assumed for the lines of `gone` evicted turns."""
        return min(self.title + gone * self.line, self.lines_limit) if gone else 0


@dataclass(frozen=True)
class Plan:
    """The states of the pieces after a rewrite, and the tokens that each tier then uses."""

    states: Mapping[PieceKey, PieceState]
    used: Mapping[Tier, int]
    lines: int
    """The tokens that the lines of evicted turns may have."""
    fits: bool

    @property
    def total(self) -> int:
        """The tokens of the prompt."""
        return sum(self.used.values())


class _PlanDraft:
    """A plan that is being made; the tiers' sums follow each change of a piece."""

    def __init__(self, pieces: Iterable[Piece], frame: Frame, current_turn: int) -> None:
        self.frame = frame
        self.pieces = {piece.key: piece for piece in pieces}
        self.states = {key: _initial_state(piece) for key, piece in self.pieces.items()}
        requests = [key for key in self.pieces if key[1] == Phase.REQUEST]
        self.latest_request = max(requests, default=None)
        self.current_turn = current_turn
        self.clock = 1 + max((piece.last_use for piece in self.pieces.values()), default=0)
        latest = (
            piece.last_use
            for piece in self.pieces.values()
            if piece.turn > current_turn - frame.recent_turns
        )
        self.recent_since = min(latest, default=self.clock)
        self.gone = frame.gone
        self.has_index = frame.gone > 0 or any(map(self._is_compressed, self.pieces))
        self.sums = dict.fromkeys(Tier, 0)
        self.sums[Tier.SYSTEM] = frame.fixed
        for key in self.pieces:
            self._count(key, 1)
        self.lines = [key for key, piece in self.pieces.items() if piece.full_copies is not None]
        self._shrink_dangling_lines()

    def _count(self, key: PieceKey, sign: int) -> None:
        for tier, tokens in costs_by_tier(self.pieces[key], self.states[key]):
            self.sums[tier] += sign * tokens

    def _set_state(self, key: PieceKey, state: PieceState) -> None:
        self._count(key, -1)
        self.states[key] = state
        self._count(key, 1)

    def _shrink_dangling_lines(self) -> None:
        """Compress "Same as rN" lines whose text the window no longer has in full elsewhere."""
        for key in self.lines:
            full_places = self.pieces[key].full_copies or ()
            if self.states[key] is PieceState.FULL and not any(
                self.states.get(place) is PieceState.FULL for place in full_places
            ):
                self._set_state(key, PieceState.COMPRESSED)

    def _is_compressed(self, key: PieceKey) -> bool:
        return key[1] == Phase.RESULT and self.states[key] is PieceState.COMPRESSED

    @property
    def lines_cost(self) -> int:
        """The tokens assumed for the lines of evicted turns."""
        return self.frame.lines(self.gone)

    @property
    def history(self) -> int:
        """The tokens of the history tier."""
        index = self.frame.index_limit if self.has_index else 0
        return self.sums[Tier.HISTORY] + self.lines_cost + index

    @property
    def total(self) -> int:
        """The tokens of the prompt."""
        return sum(self.sums.values()) - self.sums[Tier.HISTORY] + self.history

    def is_too_large(self) -> bool:
        """Return whether the prompt is above its limit."""
        return self.total > self.frame.prompt_limit

    def is_tier_too_large(self, tier: Tier) -> bool:
        """Return whether a tier is above its limit."""
        size = self.history + self.frame.notice if tier is Tier.HISTORY else self.sums[tier]
        return size > self.frame.limits.tiers[tier]

    def is_above(self, share: float) -> bool:
        """Return whether the results in full are above a share of their tier."""
        return self.sums[Tier.TOOL_RESULTS] > int(
            self.frame.limits.tiers[Tier.TOOL_RESULTS] * share
        )

    def by_last_use(self, keys: Iterable[PieceKey]) -> list[PieceKey]:
        """Return the keys of pieces, least recently used first."""
        return sorted(keys, key=lambda key: (self.pieces[key].last_use, key))

    def compressible(self, *, current: bool) -> list[PieceKey]:
        """Return the results that can be compressed, and the replies whose inputs can be shortened.

        They are those of the current turn, or of earlier turns: the longest unused and the largest
        first, those that the person restored last.
        """
        found = [
            key
            for key, state in self.states.items()
            if self._can_shrink(key, state) and (key[0] >= self.current_turn) == current
        ]
        return sorted(found, key=lambda key: (self.was_restored(key), -self._weight(key), key))

    def _weight(self, key: PieceKey) -> float:
        """Return the time since the last use of a piece, times the root of the tokens it frees."""
        piece = self.pieces[key]
        return (self.clock - piece.last_use) * sqrt(max(1, piece.tokens - least_cost(piece)))

    def is_recent(self, key: PieceKey) -> bool:
        """Return whether a piece was used in one of the latest turns."""
        return self.pieces[key].last_use >= self.recent_since

    def _can_shrink(self, key: PieceKey, state: PieceState) -> bool:
        """Return whether a piece is a result in full that is not pinned, or has long inputs."""
        piece = self.pieces[key]
        if key[1] == Phase.REPLY:
            return piece.shortest is not None and state in WITH_INPUTS
        return key[1] == Phase.RESULT and state is PieceState.FULL and not piece.pinned

    def was_restored(self, key: PieceKey) -> bool:
        """Return whether the person restored this result since the last rewrite."""
        return self.pieces[key].wish is UserEdit.RESTORE

    def evictable_turns(self, *, current: bool) -> list[int]:
        """Return the turns, the current or earlier ones, that may be evicted, by their last use."""
        last_use: dict[int, int] = {}
        pinned_turns: set[int] = set()
        for key, state in self.states.items():
            if key[1] >= Phase.REPLY and state is not PieceState.GONE:
                last_use[key[0]] = max(last_use.get(key[0], 0), self.pieces[key].last_use)
                if self.pieces[key].pinned:
                    pinned_turns.add(key[0])
        found = [
            turn
            for turn in last_use
            if turn not in pinned_turns and (turn >= self.current_turn) == current
        ]
        return sorted(found, key=lambda turn: (last_use[turn], turn))

    def evictable_messages(self) -> list[PieceKey]:
        """Return the user messages that may be evicted: all but the latest."""
        return self.by_last_use(
            key
            for key, state in self.states.items()
            if key[1] == Phase.REQUEST
            and state is not PieceState.GONE
            and key != self.latest_request
        )

    def compress(self, key: PieceKey) -> None:
        """Compress a result, or shorten the long inputs of a reply."""
        is_reply = key[1] == Phase.REPLY
        self._set_state(key, PieceState.SHORT if is_reply else PieceState.COMPRESSED)
        self.has_index = self.has_index or not is_reply
        self._shrink_dangling_lines()

    def evict_turn(self, turn: int) -> None:
        """Evict the reply and the results of a turn."""
        for key in [key for key in self.pieces if key[0] == turn and key[1] >= Phase.REPLY]:
            self._set_state(key, PieceState.GONE)
        self.gone += 1
        self.has_index = True
        self._shrink_dangling_lines()

    def evict_message(self, key: PieceKey) -> None:
        """Evict a user message."""
        self._set_state(key, PieceState.GONE)
        self.gone += 1


def _initial_state(piece: Piece) -> PieceState:
    """Return the state with which a plan begins: notices evicted, replies without thinking."""
    if piece.phase is Phase.NOTICE:
        return PieceState.GONE
    if piece.phase is Phase.REPLY and piece.state is PieceState.FULL:
        return PieceState.COMPRESSED
    return piece.state


def cost_in(piece: Piece, state: PieceState) -> int:
    """Return the tokens that a piece costs in a state."""
    if state is PieceState.GONE:
        return 0
    if state is PieceState.SHORT:
        return least_cost(piece)
    return piece.least if state is PieceState.COMPRESSED else piece.tokens


def least_cost(piece: Piece) -> int:
    """Return the tokens that a piece costs in its shortest state."""
    return piece.least if piece.shortest is None else min(piece.shortest, piece.least)


def costs_by_tier(piece: Piece, state: PieceState) -> Iterator[tuple[Tier, int]]:
    """Yield the tokens of a piece in a state, with the tier that they belong to.

    The long inputs of a reply belong to the tier of results, its thinking to that of history.
    """
    cost = cost_in(piece, state)
    if piece.phase is Phase.REQUEST:
        yield Tier.USER_MESSAGE, cost
    elif piece.phase is Phase.RESULT and state is PieceState.FULL:
        yield Tier.TOOL_RESULTS, cost
    else:
        long = piece.least - least_cost(piece) if state in WITH_INPUTS else 0
        yield Tier.HISTORY, cost - long
        yield Tier.TOOL_RESULTS, long


def plan(pieces: Sequence[Piece], frame: Frame, current_turn: int) -> Plan:
    """Return the plan; `current_turn` is the turn whose results are sent next."""
    draft = _PlanDraft(pieces, frame, current_turn)
    _bring_to_marks(draft)
    _bring_within_limit(draft)
    used = {**draft.sums, Tier.HISTORY: draft.history}
    return Plan(draft.states, used, draft.lines_cost, fits=not draft.is_too_large())


def _bring_to_marks(draft: _PlanDraft) -> None:
    """Bring each tier to its mark.

    Results that were used lately have a higher mark; restored ones are compressed only above the
    tier's limit.
    """
    found = draft.compressible(current=False)
    restored = [key for key in found if draft.was_restored(key)]
    recent = [key for key in found if draft.is_recent(key) and not draft.was_restored(key)]
    others = [key for key in found if not draft.is_recent(key) and not draft.was_restored(key)]
    _act_while(lambda: draft.is_above(draft.frame.low_water), others, draft.compress)
    _act_while(lambda: draft.is_above(draft.frame.recent_share), recent, draft.compress)
    _act_while(lambda: draft.is_tier_too_large(Tier.TOOL_RESULTS), restored, draft.compress)
    _act_while(
        lambda: draft.is_tier_too_large(Tier.USER_MESSAGE),
        draft.evictable_messages(),
        draft.evict_message,
    )
    _bring_history_to_its_cap(draft)


def _bring_history_to_its_cap(draft: _PlanDraft) -> None:
    _act_while(
        lambda: draft.is_tier_too_large(Tier.HISTORY),
        draft.evictable_turns(current=False),
        draft.evict_turn,
    )


def _bring_within_limit(draft: _PlanDraft) -> None:
    """Shrink and evict more until the whole prompt fits."""
    _act_while(draft.is_too_large, draft.compressible(current=False), draft.compress)
    _bring_history_to_its_cap(draft)
    _act_while(draft.is_too_large, draft.evictable_turns(current=False), draft.evict_turn)
    _act_while(draft.is_too_large, draft.evictable_messages(), draft.evict_message)
    _bring_history_to_its_cap(draft)
    _act_while(draft.is_too_large, draft.compressible(current=True), draft.compress)
    _act_while(draft.is_too_large, draft.evictable_turns(current=True), draft.evict_turn)


def _act_while(
    needed: Callable[[], bool], candidates: Iterable[T], act: Callable[[T], None]
) -> None:
    """Act on one candidate after the other while `needed` returns true."""
    for candidate in candidates:
        if not needed():
            return
        act(candidate)
