"""Every error this package raises on purpose; each carries its JSON-RPC code."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
    """Any JSON value."""
else:
    Json = Any  # pydantic would check again, slowly, what the parser of JSON has read

JsonObject: TypeAlias = dict[str, Any]
"""An object whose members are known to the code that reads them, such as a block of the API."""
MOST_LISTED, MOST_FIELDS = 5, 50
"""The most invalid fields that an error names in its message, and in its data."""


class EfritError(Exception):
    """The root error: a message for people or the model, and data for programs."""

    code: ClassVar[int] = -32000
    title: ClassVar[str | None] = None
    """The message that JSON-RPC prescribes for this code; our own then goes into `data.detail`."""

    def __init__(self, message: str, *, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def on_the_wire(self) -> dict[str, Json]:
        """Return the `error` member of a reply."""
        data = dict(self.data or {})
        if self.title is not None:
            data["detail"] = self.message
        body: dict[str, Json] = {"code": self.code, "message": self.title or self.message}
        return {**body, "data": data} if data else body


class ParseError(EfritError):
    """The message is not JSON."""

    code = -32700
    title = "Parse error"


class InvalidRequestError(EfritError):
    """The message is JSON but not a request."""

    code = -32600
    title = "Invalid Request"


class MethodNotFoundError(EfritError):
    """No method has this name."""

    code = -32601
    title = "Method not found"


class InvalidParamsError(EfritError):
    """A parameter is missing, unknown or out of range."""

    code = -32602
    title = "Invalid params"


class InternalError(EfritError):
    """A defect; the log has the traceback under the reference in `data`."""

    code = -32603
    title = "Internal error"


class CancelledError(EfritError):
    """The request was cancelled by the client or by the end of the process."""

    code = -32800

    def __init__(self, message: str = "request cancelled") -> None:
        super().__init__(message)


class SessionNotFoundError(EfritError):
    """No session has the given id."""

    code = -32001


class SessionClosedError(EfritError):
    """The call needs an open session, and this one is closed."""

    code = -32002


class SessionInUseError(EfritError):
    """Another process uses the session."""

    code = -32009


class StorageError(EfritError):
    """The database cannot be read or written."""

    code = -32003


class ToolNotFoundError(EfritError):
    """No tool has the given name, or the session may not use it."""

    code = -32004


class ConflictError(EfritError):
    """The request conflicts with what is stored, such as an id that is used already."""

    code = -32005


def field_error(field: str, problem: str) -> InvalidParamsError:
    """Return the error for one invalid parameter, in pydantic's form."""
    return InvalidParamsError(
        f"{field}: {problem}",
        data={"fields": [{"field": field, "problem": problem}]},
    )


def invalid_params(found: Iterable[Mapping[str, Any]]) -> InvalidParamsError:
    """Return the error for pydantic's findings, the first ones named, without the given values."""
    fields = [
        {"field": ".".join(map(str, each["loc"])) or "params", "problem": each["msg"]}
        for each in found
    ]
    listed = "; ".join(f"{each['field']}: {each['problem']}" for each in fields[:MOST_LISTED])
    more = len(fields) - MOST_LISTED
    message = f"{listed}; and {more:,} more" if more > 0 else listed
    return InvalidParamsError(message, data={"fields": fields[:MOST_FIELDS]})
