"""Run work in threads, so that the connection is served meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from mcp.shared.dispatcher import ProgressFnT

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError
from efrit_budget.mcp_server.progress import report_progress
from efrit_budget.wire.call import Call

Value = TypeVar("Value")

CALLS_AT_ONCE = 8
"""The most tool calls that run at the same time; further ones wait."""


async def in_thread(work: Callable[[], Value]) -> Value:
    """Return what `work` returns in another thread, or raise what it raises."""
    return await anyio.to_thread.run_sync(work)


class CallThreads:
    """Threads that run tool calls, which can be cancelled and report their progress."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def run(self, work: Callable[[Call], Value], report: ProgressFnT | None = None) -> Value:
        """Return what `work` returns; cancel it if the request is cancelled meanwhile."""
        call = Call()
        in_hand = partial(_value_or_error, work, call)
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_afterwards, call.cancellation)
            if report is not None:
                group.start_soon(report_progress, call.progress, report)
            value = await anyio.to_thread.run_sync(in_hand, limiter=self._limiter)
            group.cancel_scope.cancel()
        if isinstance(value, EfritError):
            raise value
        return value


def _value_or_error(work: Callable[[Call], Value], call: Call) -> Value | EfritError:
    """Return the value, or the error, which a task group would wrap if it was raised."""
    try:
        return work(call)
    except EfritError as error:
        return error


async def _cancel_afterwards(cancellation: Cancellation) -> None:
    """Cancel the work once this task is cancelled; for work that has ended it means nothing."""
    try:
        await anyio.sleep_forever()
    finally:
        cancellation.cancel()
