"""Check the shape of a request, and complain in OpenAI's words."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from efrit_budget.demo.chat.shapes import ChatRequest
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import Json

TAGGED = ("messages", "content")
"""The lists whose items are told apart by a tag, which pydantic names as a part of the place."""
COMPLAINTS: Mapping[str, tuple[str, str]] = {
    "extra_forbidden": ("Unknown parameter: '{place}'.", "unknown_parameter"),
    "missing": ("Missing required parameter: '{place}'.", "missing_required_parameter"),
    "union_tag_not_found": ("Missing required parameter: '{place}.{tag}'.", "missing_parameter"),
    "union_tag_invalid": ("Invalid value: '{value}'. Supported are: {expected}.", "invalid_value"),
    "too_short": ("Invalid '{place}': empty array. Expected at least {min_length}.", "empty_array"),
    "too_long": (
        "Invalid '{place}': array too long. Expected at most {max_length}, but got {length}.",
        "array_above_max_length",
    ),
    "string_too_short": ("Invalid '{place}': empty string.", "empty_string"),
    "string_too_long": (
        "Invalid '{place}': string too long. Expected at most {max_length}, but got {length}.",
        "string_above_max_length",
    ),
    "string_pattern_mismatch": (
        "Invalid '{place}': string does not match pattern. Expected the pattern '{pattern}'.",
        "invalid_value",
    ),
    "literal_error": ("Invalid value: '{value}'. Expected {expected}.", "invalid_value"),
}
"""The message and the code for each type of error of pydantic; others are wrong types or values."""


def check_shape(body: Json) -> None:
    """Raise if a body does not have the shape of a request."""
    try:
        ChatRequest.model_validate(body)
    except ValidationError as error:
        raise _complaint(error.errors(include_url=False)[0]) from error


def _complaint(first: Any) -> ApiError:
    """Return the error for the first problem that pydantic found."""
    place, kind = _place(first["loc"]), first["type"]
    if kind in COMPLAINTS:
        text, code = COMPLAINTS[kind]
    elif kind.endswith("_type"):
        text, code = "Invalid type for '{place}': {message}.", "invalid_type"
    else:
        text, code = "Invalid value for '{place}': {message}.", "invalid_value"
    context = dict(first.get("ctx") or {})
    message = text.format_map(
        {
            "place": place,
            "message": first["msg"],
            "value": context.pop("tag", first["input"]),
            "expected": context.pop("expected_tags", context.pop("expected", "")),
            "tag": str(context.pop("discriminator", "")).strip("'"),
            "length": len(first["input"]) if isinstance(first["input"], str | list) else 0,
            **context,
        }
    )
    return ApiError(message, param=place, kind=code)


def _place(parts: tuple[int | str, ...]) -> str:
    """Return a place as OpenAI names it, such as `messages[0].content`."""
    place = ""
    for at, part in enumerate(parts):
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier() and not _is_tag(parts, at):
            place += f".{part}"
    return place.removeprefix(".")


def _is_tag(parts: tuple[int | str, ...], at: int) -> bool:
    if not 2 <= at < len(parts) - 1:
        return False
    return isinstance(parts[at - 1], int) and parts[at - 2] in TAGGED
