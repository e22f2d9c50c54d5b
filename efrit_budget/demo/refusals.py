"""Errors that the endpoint answers with, apart from the form in which an API writes them."""

from collections.abc import Mapping

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
"""The types of errors, by status, as scenarios and the Messages API name them."""


class ApiError(EfritError):
    """A request that the endpoint answers with an error."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
        param: str | None = None,
        kind: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.request_id = ""
        """The id of the refused request, set before the error is written."""
        self.param = param
        """The place in the request, where the API has a field for it."""
        self.kind = kind
        """The code of the error, where the API has a field for it."""
        self.details = details
        """What a program can read, where the API has a field for it."""
        self.verbatim: str | None = None
        """The body that is sent instead of the error in the API's form."""


def status_of(kind: str) -> int:
    """Return the first HTTP status of an error type, 500 for an unknown type."""
    return next((status for status, name in TYPES.items() if name == kind), 500)
