"""Recognize requests and notifications."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from typing import Any

from efrit_budget.errors import EfritError, InternalError, InvalidRequestError, Json, JsonObject

log = logging.getLogger(__name__)


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
        """The tool call of this request, by which it can be cancelled."""
        params = self.member.get("params")
        found = params.get("tool_use_id") if isinstance(params, dict) else None
        return found if isinstance(found, str) else None


def error_reply(error: EfritError, request_id: Json = None) -> JsonObject:
    """Return the reply that carries `error`."""
    return {"jsonrpc": "2.0", "error": error.on_the_wire(), "id": request_id}


def success_reply(result: Json, request_id: Json) -> JsonObject:
    """Return the reply that carries a result."""
    return {"jsonrpc": "2.0", "result": result, "id": request_id}


def valid_id(value: Json) -> bool:
    """Return whether JSON-RPC allows this id."""
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


def _problem(member: JsonObject) -> str | None:
    if member.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(member.get("method"), str):
        return "method must be a string"
    if "params" in member and not isinstance(member["params"], dict | list | None):
        return "params must be an object or an array"
    if not valid_id(member.get("id")):
        return "id must be a string, a number or null"
    return None


def request_of(member: Any) -> Request | JsonObject:
    """Return the request of a member, or the error reply if it is invalid."""
    if not isinstance(member, dict):
        return error_reply(InvalidRequestError("not an object"))
    problem = _problem(member)
    if problem is not None:
        known_id = member.get("id") if valid_id(member.get("id")) else None
        return error_reply(InvalidRequestError(problem), known_id)
    if member.get("params", ()) is None:
        member = {name: value for name, value in member.items() if name != "params"}
    return Request(member, member["method"], "id" not in member)


def unexpected(error: BaseException, where: str) -> InternalError:
    """Log a defect whole, and give the reply only a reference to it."""
    reference = secrets.token_hex(4)
    log.error("reference %s, in %s", reference, where, exc_info=error)
    return InternalError(
        f"its traceback is in the log under reference {reference}",
        data={"reference": reference},
    )
