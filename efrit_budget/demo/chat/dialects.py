"""Rules of Chat Completions that some servers have, and that need nothing but the request."""

import re
from collections.abc import Callable, Iterator, Mapping

from efrit_budget.demo.chat.request import REASONING, SYSTEM
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import JsonObject

SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
MAY_FOLLOW: Mapping[str, frozenset[str]] = {
    "": frozenset({"system", "user"}),
    "system": frozenset({"user"}),
    "user": frozenset({"assistant"}),
    "assistant": frozenset({"user", "tool"}),
    "tool": frozenset({"assistant", "tool"}),
}
"""The roles that may stand behind each, where roles have to alternate."""

KNOWN_TO_ALL = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"),
        *("tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("temperature", "top_p", "stop"),
    }
)
"""The fields that nearly every server knows."""


def unknown(place: str) -> ApiError:
    """Return the error for a field that is not known."""
    return ApiError(f"Unknown parameter: '{place}'.", param=place, kind="unknown_parameter")


# Roles


def _check_alternation(body: JsonObject) -> None:
    before = ""
    for message in body["messages"]:
        role = "system" if message["role"] in SYSTEM else str(message["role"])
        if role not in MAY_FOLLOW[before]:
            raise ApiError(
                f"Unexpected role '{role}' after role '{before}'",
                kind="invalid_request_message_order",
            )
        before = role
    if before not in {"user", "tool"}:
        raise ApiError(
            f"Expected last role User or Tool for serving but got {before}",
            kind="invalid_request_message_order",
        )


def _check_developer(body: JsonObject) -> None:
    for place in _with_role(body, "system"):
        raise ApiError(
            f"Unsupported value: '{place}' does not support 'system' with this model.",
            param=place,
            kind="unsupported_value",
        )


def _check_no_developer(body: JsonObject) -> None:
    for place in _with_role(body, "developer"):
        raise ApiError(
            f"Failed to deserialize the JSON body into the target type: {place}: unknown variant "
            "`developer`, expected one of `system`, `user`, `assistant`, `tool`"
        )


def _with_role(body: JsonObject, role: str) -> Iterator[str]:
    """Yield the places of a role."""
    for index, message in enumerate(body["messages"]):
        if message["role"] == role:
            yield f"messages[{index}].role"


# Ids, limits and contents


def _check_short_ids(body: JsonObject) -> None:
    for message in body["messages"]:
        calls = [call["id"] for call in message.get("tool_calls") or []]
        results = [message["tool_call_id"]] if message["role"] == "tool" else []
        for call_id in (*calls, *results):
            if not SHORT_ID.fullmatch(call_id):
                raise ApiError(
                    f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."
                )


def _check_max_tokens(body: JsonObject) -> None:
    _refuse_fields(body, {"max_completion_tokens"})


def _check_no_stream_options(body: JsonObject) -> None:
    _refuse_fields(body, {"stream_options"})


def _check_few_fields(body: JsonObject) -> None:
    _refuse_fields(body, set(body) - KNOWN_TO_ALL)


def _refuse_fields(body: JsonObject, unwanted: set[str]) -> None:
    """Raise if a request has one of these fields, as Mistral's API does."""
    for name in body:
        if name in unwanted:
            raise ApiError(f"body.{name}: Extra inputs are not permitted", status=422, param=name)


def _check_max_completion_tokens(body: JsonObject) -> None:
    if body.get("max_tokens") is not None:
        raise ApiError(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            kind="unsupported_parameter",
        )


def _check_no_reasoning(body: JsonObject) -> None:
    for index, message in enumerate(body["messages"]):
        for name in REASONING:
            if name in message:
                raise ApiError(
                    f"'messages.{index}' : for 'role:assistant' the following must be satisfied"
                    f"[('messages.{index}' : property '{name}' is unsupported)]"
                )


def _check_no_empty(body: JsonObject) -> None:
    for index, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if not content and role != "tool" and not message.get("tool_calls"):
            raise ApiError(
                f"Invalid request: the message at position {index} with role '{role}' must not be "
                "empty"
            )
        if isinstance(content, list) and any(part.get("text") == "" for part in content):
            raise ApiError("Invalid request: text content is empty")


def _check_no_null(body: JsonObject) -> None:
    if any(message.get("content", "") is None for message in body["messages"]):
        raise ApiError(
            "Invalid 'content': 'content' field must be a string or an array of objects."
        )


def _check_no_parts(body: JsonObject) -> None:
    for index, message in enumerate(body["messages"]):
        if isinstance(message.get("content"), list):
            place = f"messages[{index}].content"
            raise ApiError(
                f"Invalid type for '{place}': expected a string, but got an array instead.",
                param=place,
            )


CHECKS: Mapping[str, Callable[[JsonObject], None]] = {
    "alternation": _check_alternation,
    "developer": _check_developer,
    "no-developer": _check_no_developer,
    "short-ids": _check_short_ids,
    "max-tokens": _check_max_tokens,
    "max-completion-tokens": _check_max_completion_tokens,
    "no-reasoning-back": _check_no_reasoning,
    "few-fields": _check_few_fields,
    "no-stream-options": _check_no_stream_options,
    "no-empty": _check_no_empty,
    "no-null": _check_no_null,
    "no-parts": _check_no_parts,
}
"""The rules that need nothing but the request, by the name of their switch."""
