"""Report the progress of a tool call to the client."""

import anyio
from mcp.shared.dispatcher import ProgressFnT

from efrit_budget.wire.call import Progress

LOOK_SECONDS = 0.5
"""The seconds between two looks at the progress."""


async def report_progress(progress: Progress, report: ProgressFnT) -> None:
    """Report what is new in the progress, until this task is cancelled.

    The protocol wants a number that grows with each report; where the work has none, it is that
    of the report.
    """
    reached, message = 0.0, ""
    while True:
        await anyio.sleep(LOOK_SECONDS)
        newest = _last_line(progress) or progress.message
        done = reached + 1 if progress.done is None else float(progress.done)
        if done > reached and (progress.done is not None or newest != message):
            reached, message = done, newest
            await report(reached, progress.total, message or None)


def _last_line(progress: Progress) -> str:
    """Return the last line of the output that the work has written so far."""
    output = "" if progress.output is None else progress.output().rstrip()
    return output.rpartition("\n")[2]
