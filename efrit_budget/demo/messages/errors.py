"""Errors as the Messages API writes them."""

from collections.abc import Mapping

from efrit_budget.demo.refusals import TYPES
from efrit_budget.errors import JsonObject

MESSAGES: Mapping[int, str] = {
    402: "Your credit balance is too low to access the API. Add credits to continue.",
    403: "Your API key does not have permission to use the specified resource.",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "Request timed out",
    529: "Overloaded",
}
"""The usual messages of errors, by status."""


def kind_of(status: int) -> str:
    """Return the type of an error with this status."""
    return TYPES.get(status, "api_error")


def error_body(
    kind: str, message: str, request_id: str, details: JsonObject | None = None
) -> JsonObject:
    """Return an error's JSON, for a reply or an event."""
    error: JsonObject = {"type": kind, "message": message}
    if details is not None:
        error = {**error, "details": details}
    return {"type": "error", "error": error, "request_id": request_id}
