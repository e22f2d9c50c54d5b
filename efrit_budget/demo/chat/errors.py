"""Errors as Chat Completions writes them."""

from collections.abc import Mapping

from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import JsonObject

MESSAGES: Mapping[int, str] = {
    402: "Insufficient Balance",
    403: "You are not allowed to use this resource",
    413: "Request too large",
    429: "Rate limit reached. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later",
    504: "Gateway Timeout",
    529: "The server is overloaded",
}
"""The usual messages of errors, by status."""
QUOTA = "insufficient_quota"
CODES: Mapping[int, str] = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
"""The usual codes of errors, by status."""


def error_body(error: ApiError) -> JsonObject:
    """Return an error's JSON, for a reply or an event."""
    return {
        "error": {
            "message": error.message,
            "type": _kind(error),
            "param": error.param,
            "code": error.kind or CODES.get(error.status),
        }
    }


def _kind(error: ApiError) -> str:
    if error.kind == QUOTA:
        return QUOTA
    if error.status == 429:
        return "requests"
    return "server_error" if error.status >= 500 else "invalid_request_error"
