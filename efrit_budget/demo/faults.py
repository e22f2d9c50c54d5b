"""The errors that a scenario asks for."""

import time
from collections.abc import Mapping
from email.utils import formatdate

from efrit_budget.demo.refusals import ApiError, status_of
from efrit_budget.demo.scenario import Entry


def answer_error(entry: Entry, messages: Mapping[int, str]) -> ApiError | None:
    """Return the error that a request gets instead of a reply; None if it gets a reply.

    `messages` are the API's usual messages, by status.
    """
    if entry.redirect is not None:
        return ApiError("Temporary Redirect", status=307, headers={"location": entry.redirect})
    return None if entry.status is None else _error(entry, entry.status, messages)


def unstreamable(entry: Entry, messages: Mapping[int, str]) -> ApiError | None:
    """Return the error for a streaming fault in a reply that is not streamed; None without one."""
    if entry.error_event is not None:
        return _error(entry, status_of(entry.error_event), messages)
    if entry.cut is not None or entry.malformed:
        return ApiError(messages[500], status=500)
    return None


def _error(entry: Entry, status: int, messages: Mapping[int, str]) -> ApiError:
    """Return an error with the scenario's message, headers and body."""
    headers = {}
    if entry.retry_after is not None:
        headers["retry-after"] = f"{entry.retry_after:g}"
    if entry.retry_at is not None:
        headers["retry-after"] = formatdate(time.time() + entry.retry_at, usegmt=True)
    if entry.error_body is not None:
        headers["content-type"] = entry.content_type
    message = entry.message or messages.get(status, f"Scripted error {status}")
    error = ApiError(message, status=status, headers=headers)
    error.verbatim = entry.error_body
    return error
