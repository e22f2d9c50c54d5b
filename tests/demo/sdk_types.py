"""Checks of requests by the official SDKs' own types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import MessageCreateParams
from anthropic.types.beta import MessageCreateParams as BetaMessageCreateParams
from openai.types.chat import CompletionCreateParams
from pydantic import TypeAdapter, ValidationError


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def sdk_takes(body: Any, *, is_beta: bool = False) -> bool:
    """Return whether a request fits the types of Anthropic's SDK."""
    return _takes(BetaMessageCreateParams if is_beta else MessageCreateParams, body)


def openai_takes(body: Any) -> bool:
    """Return whether a request fits the types of OpenAI's SDK."""
    return _takes(CompletionCreateParams, body)


def _takes(kind: Any, body: Any) -> bool:
    """Return whether a request fits a type; lists, which are lazy, are read to the end."""
    try:
        _exhaust(_adapter(kind).validate_python(body))
    except ValidationError:
        return False
    return True


def _exhaust(value: Any) -> None:
    if isinstance(value, Mapping):
        for inner in value.values():
            _exhaust(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            _exhaust(inner)
