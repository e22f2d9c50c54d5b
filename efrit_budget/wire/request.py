"""Recognize requests and notifications."""

import logging
import re
import secrets
from dataclasses import dataclass
from types import NoneType
from typing import Any

from efrit_budget.errors import (
    EfritError,
    InternalError,
    InvalidRequestError,
    Json,
    JsonObject,
    MethodNotFoundError,
    ToolNotFoundError,
)

log = logging.getLogger(__name__)

LOGGED_NAME = re.compile(r"[\w.:/$-]{1,100}", re.ASCII)
"""Names that are logged as they are; any other text could be private and is not logged."""
ID_TYPES = (NoneType, str, int, float)
"""The types of ids that JSON-RPC allows, without bool, which Python takes for an int."""
TOOL_STATUSES = ("success", "error", "needs_confirmation")


@dataclass(frozen=True)
class Request:
    """A valid request or notification."""

    member: JsonObject
    method: str
    is_notification: bool

    @property
    def id(self) -> Json:
        """The request's id, None for a notification."""
        return self.member.get("id")

    @property
    def tool_use_id(self) -> str | None:
        """The `tool_use_id` in the params, by which the request can be cancelled, or None."""
        params = self.member.get("params")
        found = params.get("tool_use_id") if isinstance(params, dict) else None
        return found if isinstance(found, str) else None


def error_reply(error: EfritError, request_id: Json = None) -> JsonObject:
    """Return the reply that carries `error`."""
    return {"jsonrpc": "2.0", "error": error.on_the_wire(), "id": request_id}


def success_reply(result: Json, request_id: Json) -> JsonObject:
    """Return the reply that carries a result."""
    return {"jsonrpc": "2.0", "result": result, "id": request_id}


def request_of(member: Any) -> Request | JsonObject:
    """Return the request in a message or in a batch's member; if invalid, the error reply."""
    if not isinstance(member, dict):
        return error_reply(InvalidRequestError("not an object"))
    request_id, problem = member.get("id"), None
    if member.get("jsonrpc") != "2.0":
        problem = 'jsonrpc must be "2.0"'
    elif not isinstance(member.get("method"), str):
        problem = "method must be a string"
    elif "params" in member and not isinstance(member["params"], dict | list | None):
        problem = "params must be an object or an array"
    if type(request_id) not in ID_TYPES:
        request_id, problem = None, problem or "id must be a string, a number or null"
    if problem is not None:
        return error_reply(InvalidRequestError(problem), request_id)
    if member.get("params", ()) is None:
        member = {name: value for name, value in member.items() if name != "params"}
    return Request(member, member["method"], "id" not in member)


def unexpected(error: BaseException, where: str) -> InternalError:
    """Log a defect with its traceback; return an error with only a reference to the log."""
    reference = secrets.token_hex(4)
    log.error("reference %s, in %s", reference, where, exc_info=error)
    return InternalError(
        f"its traceback is in the log under reference {reference}",
        data={"reference": reference},
    )


def log_request(request: Request, reply: JsonObject | None, seconds: float) -> None:
    """Log a request's names, status and time, but no text that a person or a model wrote."""
    if not log.isEnabledFor(logging.INFO):
        return
    code = None if reply is None or "error" not in reply else reply["error"]["code"]
    params = request.member.get("params")
    given = params if isinstance(params, dict) else {}
    log.info(
        "%s id=%s session=%s tool=%s tool_use=%s: %s in %.1f ms",
        "?" if code == MethodNotFoundError.code else _logged(request.method),
        *map(_logged, (request.id, given.get("session_id"))),
        "?" if code == ToolNotFoundError.code else _logged(given.get("name")),
        _logged(request.tool_use_id),
        _status(reply) if code is None else f"error {code}",
        seconds * 1000,
    )


def _logged(name: Json) -> str:
    """Return a name as it is logged: `-` for None, `?` if it does not match `LOGGED_NAME`."""
    if name is None:
        return "-"
    text = str(name)
    return text if LOGGED_NAME.fullmatch(text) else "?"


def _status(reply: JsonObject | None) -> str:
    """Return the status of a tool call from its reply, or `ok` for any other reply."""
    result = None if reply is None else reply.get("result")
    status = result.get("status") if isinstance(result, dict) else None
    return status if status in TOOL_STATUSES else "ok"
