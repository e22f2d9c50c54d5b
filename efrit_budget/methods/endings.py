"""How uses of tools with effects end when something comes between."""

from __future__ import annotations

import time
from collections.abc import Callable

from efrit_budget.errors import Json, StorageError
from efrit_budget.tools.base import Outcome, failure
from efrit_budget.wire.method import Call
from efrit_budget.worklog.compress import head_and_tail
from efrit_budget.worklog.use import Use

STORE_SECONDS, STOPPED_SECONDS, RETRY_SECONDS = 600.0, 30.0, 0.5
"""How long the result of a tool with effects waits to be stored, and between two attempts."""


def store_patiently(
    store: Callable[[], dict[str, Json]], use: Use, outcome: Outcome, call: Call
) -> dict[str, Json]:
    """Store what cannot be had again, once the database can be written; say so meanwhile.

    Who gives up waiting gets the edges of it with the error.
    """
    stopped = call.cancellation.cancelled
    deadline = time.monotonic() + (STOPPED_SECONDS if stopped else STORE_SECONDS)
    while True:
        try:
            return store()
        except StorageError as error:
            call.progress(f"{use.tool} has ended; to store its result: {error.message}")
            if stopped:
                time.sleep(RETRY_SECONDS)
            elif call.cancellation.wait(RETRY_SECONDS):
                deadline = 0.0
            if time.monotonic() > deadline:
                raise _not_stored(use, outcome, error) from error


def _not_stored(use: Use, outcome: Outcome, error: StorageError) -> StorageError:
    edges = head_and_tail(outcome.whole.text)
    return StorageError(f"{use.tool} has ended, and was not stored: {error.message}\n{edges}")


def interrupted(use: Use) -> Outcome:
    """The outcome of a use that was stopped while it ran."""
    return failure(
        f"{use.tool} was stopped before its end. It may have done some of its work. "
        "Check, then call it anew if needed.",
        interrupted=True,
    )


def unseen(use: Use) -> Outcome:
    """The outcome of a use whose process is gone."""
    return failure(
        f"{use.tool} was started under this tool_use_id before, and nobody saw it end: the "
        "process that ran it is gone. It may have done all, some or none of its work. "
        "Check, then call it anew if needed.",
        unseen=True,
    )
