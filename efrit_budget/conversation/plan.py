"""Plan a rewrite: decide which pieces are compressed or evicted, least recently used first.

First each tier is brought to its own mark; then, if the whole is still too large, more pieces are
compressed and evicted in a fixed order. Pinned results stay, the latest user message is never
evicted, and the pieces of the current turn come last.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.conversation.pieces import Phase, Piece, PieceKey, PieceState, UserEdit

T = TypeVar("T")


@dataclass(frozen=True)
class Frame:
    """The limits and costs that a plan works with."""

    limits: Limits
    prompt_limit: int
    fixed: int
    """The tokens of system text and tools, which no rewrite changes."""
    low_water: float
    gone: int
    """The number of turns that were evicted before."""
    title: int
    """The tokens of the title above the lines of evicted turns."""
    line: int
    """The assumed tokens of the line of an evicted turn."""
    head_limit: int
    """The most tokens of the title and the lines of evicted turns."""
    notice: int
    """The tokens of the notice that may follow a rewrite; it counts as history."""

    def head(self, gone: int) -> int:
        """Return the tokens that are assumed for the lines of `gone` evicted turns."""
        return min(self.title + gone * self.line, self.head_limit) if gone else 0


@dataclass(frozen=True)
class Plan:
    """The states of the pieces after a rewrite, and the tokens that each tier then uses."""

    states: Mapping[PieceKey, PieceState]
    used: Mapping[Tier, int]
    head: int
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
        self.gone = frame.gone
        self.sums = dict.fromkeys(Tier, 0)
        self.sums[Tier.SYSTEM] = frame.fixed
        for key in self.pieces:
            self._count(key, 1)
        self.lines = [key for key, piece in self.pieces.items() if piece.full_copies is not None]
        self._shrink_dangling_lines()

    def _count(self, key: PieceKey, sign: int) -> None:
        piece, state = self.pieces[key], self.states[key]
        if state is not PieceState.GONE:
            self.sums[tier_of(piece, state)] += sign * cost_in(piece, state)

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

    @property
    def head(self) -> int:
        """The tokens assumed for the lines of evicted turns."""
        return self.frame.head(self.gone)

    @property
    def history(self) -> int:
        """The tokens of the history tier."""
        return self.sums[Tier.HISTORY] + self.head

    @property
    def total(self) -> int:
        """The tokens of the prompt."""
        return sum(self.sums.values()) + self.head

    def is_too_large(self) -> bool:
        """Return whether the prompt is above its limit."""
        return self.total > self.frame.prompt_limit

    def is_tier_too_large(self, tier: Tier) -> bool:
        """Return whether a tier is above its limit."""
        size = self.history + self.frame.notice if tier is Tier.HISTORY else self.sums[tier]
        return size > self.frame.limits.tiers[tier]

    def is_above_low_water(self) -> bool:
        """Return whether the results in full are above their low-water mark."""
        mark = int(self.frame.limits.tiers[Tier.TOOL_RESULTS] * self.frame.low_water)
        return self.sums[Tier.TOOL_RESULTS] > mark

    def by_last_use(self, keys: Iterable[PieceKey]) -> list[PieceKey]:
        """Return the keys of pieces, least recently used first."""
        return sorted(keys, key=lambda key: (self.pieces[key].last_use, key))

    def compressible_results(self, *, current: bool) -> list[PieceKey]:
        """Return the compressible results of the current turn, or of earlier turns, by last use.

        Results that the person restored stand last.
        """
        found = self.by_last_use(
            key
            for key, state in self.states.items()
            if key[1] == Phase.RESULT
            and state is PieceState.FULL
            and not self.pieces[key].pinned
            and (key[0] >= self.current_turn) == current
        )
        return sorted(found, key=self.was_restored)

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
        """Compress a result."""
        self._set_state(key, PieceState.COMPRESSED)
        self._shrink_dangling_lines()

    def evict_turn(self, turn: int) -> None:
        """Evict the reply and the results of a turn."""
        for key in [key for key in self.pieces if key[0] == turn and key[1] >= Phase.REPLY]:
            self._set_state(key, PieceState.GONE)
        self.gone += 1
        self._shrink_dangling_lines()

    def evict_message(self, key: PieceKey) -> None:
        """Evict a user message."""
        self._set_state(key, PieceState.GONE)
        self.gone += 1


def _initial_state(piece: Piece) -> PieceState:
    """Return the state with which a plan begins: notices evicted, replies without thinking."""
    if piece.phase is Phase.NOTICE:
        return PieceState.GONE
    return PieceState.COMPRESSED if piece.phase is Phase.REPLY else piece.state


def cost_in(piece: Piece, state: PieceState) -> int:
    """Return the tokens that a piece costs in a state."""
    return piece.least if state is PieceState.COMPRESSED else piece.tokens


def tier_of(piece: Piece, state: PieceState) -> Tier:
    """Return the tier that a piece in a state belongs to."""
    if piece.phase is Phase.REQUEST:
        return Tier.USER_MESSAGE
    if piece.phase is Phase.RESULT and state is PieceState.FULL:
        return Tier.TOOL_RESULTS
    return Tier.HISTORY


def plan(pieces: Sequence[Piece], frame: Frame, current_turn: int) -> Plan:
    """Return the plan; `current_turn` is the turn whose results are sent next."""
    draft = _PlanDraft(pieces, frame, current_turn)
    _bring_to_marks(draft)
    _bring_within_limit(draft)
    used = {**draft.sums, Tier.HISTORY: draft.history}
    return Plan(draft.states, used, draft.head, fits=not draft.is_too_large())


def _bring_to_marks(draft: _PlanDraft) -> None:
    """Bring each tier to its mark; restored results are compressed only above the tier's limit."""
    results = draft.compressible_results(current=False)
    restored = [key for key in results if draft.was_restored(key)]
    _act_while(draft.is_above_low_water, results[: len(results) - len(restored)], draft.compress)
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
    _act_while(draft.is_too_large, draft.compressible_results(current=False), draft.compress)
    _bring_history_to_its_cap(draft)
    _act_while(draft.is_too_large, draft.evictable_turns(current=False), draft.evict_turn)
    _act_while(draft.is_too_large, draft.evictable_messages(), draft.evict_message)
    _bring_history_to_its_cap(draft)
    _act_while(draft.is_too_large, draft.compressible_results(current=True), draft.compress)
    _act_while(draft.is_too_large, draft.evictable_turns(current=True), draft.evict_turn)


def _act_while(
    needed: Callable[[], bool], candidates: Iterable[T], act: Callable[[T], None]
) -> None:
    """Act on one candidate after the other while `needed` returns true."""
    for candidate in candidates:
        if not needed():
            return
        act(candidate)
