"""The API's errors: status, type and message."""

import time
from collections.abc import Mapping
from email.utils import formatdate

from efrit_budget.errors import EfritError, JsonObject

TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
MESSAGES: Mapping[int, str] = {
    402: "Your credit balance is too low to access the API. Add credits to continue.",
    403: "Your API key does not have permission to use the specified resource.",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "Request timed out",
    529: "Overloaded",
}


class ApiError(EfritError):
    """A request that the endpoint answers with an error."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})

    def body(self, request_id: str) -> JsonObject:
        """Return the error as the API writes it."""
        return error_body(TYPES.get(self.status, "api_error"), self.message, request_id)


def scripted_error(
    status: int,
    message: str | None,
    retry_after: float | None = None,
    retry_at: float | None = None,
) -> ApiError:
    """Return an error that a scenario asks for; `retry_at` is in seconds from now."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    if retry_at is not None:
        headers["retry-after"] = formatdate(time.time() + retry_at, usegmt=True)
    text = message or MESSAGES.get(status, f"Scripted error {status}")
    return ApiError(text, status=status, headers=headers)


def error_body(kind: str, message: str, request_id: str) -> JsonObject:
    """Return an error's JSON, for a reply or an event."""
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": request_id}


def status_of(kind: str) -> int:
    """Return the first HTTP status of an error type, 500 for an unknown type."""
    return next((status for status, name in TYPES.items() if name == kind), 500)
