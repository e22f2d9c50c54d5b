"""Compute the sizes of a window, and the snapshot of its budget, from its bounds and pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection

from efrit_budget.budget.bands import Band
from efrit_budget.budget.fill import fill_of
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation import stored_pieces
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.pieces import Phase, Piece, PieceState
from efrit_budget.conversation.plan import Plan, cost_in, costs_by_tier, least_cost, plan
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject


@dataclass(frozen=True)
class WindowState:
    """The window of a session at one moment."""

    window: Window
    bounds: Bounds
    pieces: Sequence[Piece]

    def used_by_tier(self) -> dict[Tier, int]:
        """Return the tokens that each tier has in use."""
        used = dict.fromkeys(Tier, 0)
        used[Tier.SYSTEM] = self.bounds.calibration.tokens(self.window.system_raw)
        used[Tier.HISTORY] = self.bounds.calibration.tokens(self.window.head_raw)
        for piece in self.pieces:
            for tier, tokens in costs_by_tier(piece, piece.state):
                used[tier] += tokens
        return used

    @property
    def used(self) -> int:
        """The tokens of the whole window."""
        return sum(self.used_by_tier().values())

    @property
    def least(self) -> int:
        """The tokens that remain after the largest possible rewrite.

        They are the prefix, the lines of evicted turns, the index of names, the latest user
        message, the current turn, and turns with a pinned result. Only pinned results count in
        full.
        """
        requests = [piece for piece in self.pieces if piece.phase is Phase.REQUEST]
        kept_turns = {piece.turn for piece in self.pieces if piece.pinned}
        kept_turns.add(self.window.turn_ended)
        costs = [
            piece.tokens if piece.pinned and piece.state is PieceState.FULL else least_cost(piece)
            for piece in self.pieces
            if piece.turn in kept_turns and piece.phase >= Phase.REPLY
        ]
        bounds = self.bounds
        head = bounds.lines_limit + bounds.index_limit
        prefix = bounds.calibration.tokens(self.window.system_raw) + head
        return prefix + sum(piece.tokens for piece in requests[-1:]) + sum(costs)

    def plan(self, connection: Connection) -> Plan:
        """Return the plan of a rewrite."""
        frame = self.bounds.frame(connection, self.window)
        return plan(self.pieces, frame, self.window.turn_ended)

    def with_sizes(self, connection: Connection) -> WindowState:
        """Return the state with the sizes of its window computed anew.

        The results of the current turn are not in the prompt yet, and are counted apart.
        """
        unsent = [piece for piece in self.pieces if self._is_unsent_result(piece)]
        sent = [piece for piece in self.pieces if not self._is_unsent_result(piece)]
        prompt = replace(self, pieces=sent)
        window = replace(
            self.window,
            in_prompt=prompt.used,
            kept=prompt.plan(connection).total,
            least=prompt.least,
            turn_tokens=sum(cost_in(piece, piece.state) for piece in unsent),
        )
        return replace(self, window=window)

    def _is_unsent_result(self, piece: Piece) -> bool:
        is_current = piece.turn == self.window.turn_ended and piece.phase is Phase.RESULT
        return is_current and piece.place is None

    def snapshot(self) -> JsonObject:
        """Return the budget as the wire carries it."""
        window, bounds = self.window, self.bounds
        used = self.used_by_tier()
        if not window.turn:
            used[Tier.TOOL_RESULTS] += window.turn_tokens
        total = sum(used.values())
        after_rewrite = min(total, window.kept + window.turn_tokens) if window.turn else total
        return {
            "tiers": {
                str(tier): {"used": used[tier], "limit": bounds.limits.tiers[tier]} for tier in Tier
            },
            "total": bounds.limits.total,
            "used": total,
            "prompt_limit": bounds.prompt_limit,
            "fill": str(fill_of(total, bounds.prompt_limit)),
            "remaining": max(0, bounds.prompt_limit - total),
            "reclaimable": total - after_rewrite,
            "available_for_tools": max(0, bounds.prompt_limit - after_rewrite),
            "band": str(Band(window.band)),
            "calibration": {"model": window.model, **bounds.calibration.as_dict()},
            "epoch": window.epoch,
            "turn": window.turn,
            "summary": _summary(used, total, bounds),
        }


def load_state(connection: Connection, window: Window, bounds: Bounds) -> WindowState:
    """Return a window with its pieces."""
    pieces = stored_pieces.load_pieces(connection, window.session_id, bounds.calibration)
    return WindowState(window, bounds, pieces)


def _summary(used: dict[Tier, int], total: int, bounds: Bounds) -> str:
    """Return the budget in one line for the person."""
    parts = [
        f"{tier.replace('_', ' ')} {used[tier]:,}/{bounds.limits.tiers[tier]:,}"
        for tier in Tier
        if tier is not Tier.RESPONSE
    ]
    left = bounds.prompt_limit - total
    return (
        f"{total:,} of {bounds.prompt_limit:,} tokens in the prompt, "
        f"{f'{left:,} until it compacts' if left > 0 else 'compacts next'}: {', '.join(parts)}"
    )
