"""The outcomes of tool calls with effects that were interrupted."""

import time
from collections.abc import Callable

from efrit_budget.cancellation import Cancellation
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import Json, StorageError
from efrit_budget.toolcalls.summary import head_and_tail
from efrit_budget.tools.base import Outcome, Reporter, failure

STORE_SECONDS, STOPPED_SECONDS, RETRY_SECONDS = 600.0, 30.0, 0.5
"""Seconds for which storing is retried, those for a cancelled call, and those between retries."""


def store_with_retry(
    store: Callable[[], dict[str, Json]],
    call: ToolCall,
    outcome: Outcome,
    cancellation: Cancellation,
    progress: Reporter,
) -> dict[str, Json]:
    """Store the result of a call with effects, trying again until the database can be written.

    If it takes too long, or the call is cancelled meanwhile, raise with head and tail of the text.
    """
    stopped = cancellation.cancelled
    deadline = time.monotonic() + (STOPPED_SECONDS if stopped else STORE_SECONDS)
    while True:
        try:
            return store()
        except StorageError as error:
            progress(f"{call.tool} has ended; to store its result: {error.message}")
            if stopped:
                time.sleep(RETRY_SECONDS)
            elif cancellation.wait(RETRY_SECONDS):
                deadline = 0.0
            if time.monotonic() > deadline:
                raise _not_stored_error(call, outcome, error) from error


def _not_stored_error(call: ToolCall, outcome: Outcome, error: StorageError) -> StorageError:
    edges = head_and_tail(outcome.whole.text)
    return StorageError(f"{call.tool} has ended, and was not stored: {error.message}\n{edges}")


def interrupted_outcome(call: ToolCall) -> Outcome:
    """Return the outcome of a call that was stopped while it ran."""
    return failure(
        f"{call.tool} was stopped before its end. It may have done some of its work. "
        "Check, then call it anew if needed.",
        interrupted=True,
    )


def unknown_outcome(call: ToolCall) -> Outcome:
    """Return the outcome of a call whose process is gone, so that its result is unknown."""
    return failure(
        f"{call.tool} was started under this tool_use_id before, and nobody saw it end: the "
        "process that ran it is gone. It may have done all, some or none of its work. "
        "Check, then call it anew if needed.",
        unseen=True,
    )
