"""Every error this package raises on purpose; each carries its JSON-RPC code."""

from __future__ import annotations

from typing import Any, ClassVar

Json = Any
"""A value as `json` reads and writes it."""


class EfritError(Exception):
    """The root: a message for the person or the model, and data for programs."""

    code: ClassVar[int] = -32000
    title: ClassVar[str | None] = None
    """The message JSON-RPC itself gives this code; ours then goes into `data.detail`."""

    def __init__(self, message: str, *, data: dict[str, Json] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def on_the_wire(self) -> dict[str, Json]:
        """The `error` member of a reply."""
        data = dict(self.data or {})
        if self.title is not None:
            data["detail"] = self.message
        body: dict[str, Json] = {"code": self.code, "message": self.title or self.message}
        return {**body, "data": data} if data else body


class ParseError(EfritError):
    """What arrived is not JSON."""

    code = -32700
    title = "Parse error"


class InvalidRequestError(EfritError):
    """What arrived is JSON, and not a request."""

    code = -32600
    title = "Invalid Request"


class MethodNotFoundError(EfritError):
    """There is no method of that name."""

    code = -32601
    title = "Method not found"


class InvalidParamsError(EfritError):
    """A parameter is missing, unknown or out of range."""

    code = -32602
    title = "Invalid params"


class InternalError(EfritError):
    """A defect of ours; the log file holds the traceback under the reference in `data`."""

    code = -32603
    title = "Internal error"


class CancelledError(EfritError):
    """The request was cancelled by its sender, or by the end of the process."""

    code = -32800

    def __init__(self, message: str = "request cancelled") -> None:
        super().__init__(message)


class SessionNotFoundError(EfritError):
    """No session has that id."""

    code = -32001


class SessionClosedError(EfritError):
    """The session is closed, and the call needs an open one."""

    code = -32002


class SessionInUseError(EfritError):
    """Another process works in the session."""

    code = -32009


class StorageError(EfritError):
    """The database cannot be read or written."""

    code = -32003


class ToolNotFoundError(EfritError):
    """No tool has that name."""

    code = -32004


class ConflictError(EfritError):
    """The id is already taken by something else."""

    code = -32005


def field_error(field: str, problem: str) -> InvalidParamsError:
    """An invalid parameter, named as pydantic's are."""
    return InvalidParamsError(
        f"{field}: {problem}",
        data={"fields": [{"field": field, "problem": problem}]},
    )
