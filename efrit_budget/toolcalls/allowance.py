"""Allowances of tool calls: the tool's limit, or a fair share of the window."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from efrit_budget.budget.models import Model
from efrit_budget.conversation import calls, windows
from efrit_budget.conversation.bounds import Bounds, bounds_of
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.conversation.windows import Window
from efrit_budget.sessions.rows import Session
from efrit_budget.storage.database import Database
from efrit_budget.tools.base import LEAST_MAX_TOKENS

ONE_LINE = 60
"""The least allowance in tokens: enough for a line with the handle of a result."""


@dataclass(frozen=True)
class Allowance:
    """The allowance of a call, `pressed` if it is only the floor, and what it is computed from."""

    tokens: int
    pressed: bool
    window: Window
    bounds: Bounds


def compute_allowance(
    window: Window, bounds: Bounds, call: ToolCall, unfinished: int, reserved: int
) -> Allowance:
    """Return the allowance of a call: its tool's limit or `max_tokens`, but at most its share.

    The share is what a rewrite would leave free, less what stands around a result, divided among
    the `unfinished` calls. A share below the floor is raised to the floor, as far as that is free
    after the largest possible rewrite.
    """
    limits = bounds.limits
    requested = max(LEAST_MAX_TOKENS, limits.per_tool.get(call.tool, limits.per_tool_default))
    asked: Any = call.arguments.get("max_tokens")
    with suppress(TypeError, ValueError, OverflowError):
        requested = min(requested, max(LEAST_MAX_TOKENS, int(asked)))
    spent = window.turn_tokens + reserved
    around = bounds.around_a_result
    share = (bounds.plan_limit - window.kept - spent) // unfinished - around
    floor = min(requested, limits.floor)
    is_pressed = share < floor
    if is_pressed:
        share = min(floor, (bounds.plan_limit - window.least - spent) // unfinished - around)
    tokens = max(min(requested, ONE_LINE), min(requested, share))
    return Allowance(tokens, is_pressed, window, bounds)


class Reservations:
    """The allowances of running calls."""

    def __init__(self, database: Database, model_named: Callable[[str], Model]) -> None:
        self._database = database
        self._model_named = model_named
        self._lock = threading.Lock()
        self._reserved: dict[tuple[str, str], int] = {}

    @contextmanager
    def reserve(self, session: Session, call: ToolCall) -> Iterator[Allowance]:
        """Reserve the allowance of a call while the block runs.

        The reservation of a call whose result is stored already is not counted beside the result.
        So no lock has to be held while a result is stored.
        """
        key = (call.session_id, call.tool_use_id)
        with self._lock, self._database.reading() as connection:
            others = {
                tool_use_id: tokens
                for (session_id, tool_use_id), tokens in self._reserved.items()
                if session_id == session.id
            }
            window = windows.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window, self._model_named)
            for tool_use_id in calls.find_ended(connection, session.id, others) if others else ():
                del others[tool_use_id]
            announced = calls.count_announced(connection, session.id)
            reserved = sum(others.values()) + len(others) * bounds.around_a_result
            unfinished = max(1, announced - len(others))
            allowance = compute_allowance(window, bounds, call, unfinished, reserved)
            self._reserved[key] = allowance.tokens
        try:
            yield allowance
        finally:
            with self._lock:
                self._reserved.pop(key, None)
