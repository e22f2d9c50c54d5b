"""Call methods in threads, so that the connection is served meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.shared.dispatcher import ProgressFnT

from efrit_budget.app import Application
from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError, JsonObject
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

    def __init__(self, application: Application) -> None:
        self._application = application
        self._limiter = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def run(self, method: str, params: JsonObject, report: ProgressFnT | None) -> JsonObject:
        """Return the reply of a method; cancel its work if the request is cancelled meanwhile."""
        call = Call()
        work = partial(self._reply_or_error, method, params, call)
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_afterwards, call.cancellation)
            if report is not None:
                group.start_soon(report_progress, call.progress, report)
            reply: Any = await anyio.to_thread.run_sync(work, limiter=self._limiter)
            group.cancel_scope.cancel()
        if isinstance(reply, EfritError):
            raise reply
        envelope: JsonObject = reply
        return envelope

    def _reply_or_error(self, method: str, params: JsonObject, call: Call) -> Any:
        """Return the reply, or the error, which a task group would wrap if it was raised."""
        try:
            return self._application.call(method, params, call)
        except EfritError as error:
            return error


async def _cancel_afterwards(cancellation: Cancellation) -> None:
    """Cancel the work once this task is cancelled; for work that has ended it means nothing."""
    try:
        await anyio.sleep_forever()
    finally:
        cancellation.cancel()
