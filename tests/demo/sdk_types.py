"""A check of requests by the official SDK's own types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import MessageCreateParams
from anthropic.types.beta import MessageCreateParams as BetaMessageCreateParams
from pydantic import TypeAdapter, ValidationError


@cache
def _adapter(*, is_beta: bool) -> TypeAdapter[Any]:
    return TypeAdapter(BetaMessageCreateParams if is_beta else MessageCreateParams)


def sdk_takes(body: Any, *, is_beta: bool = False) -> bool:
    """Return whether a request fits the SDK's types; lists, which are lazy, are read to the end."""
    try:
        _exhaust(_adapter(is_beta=is_beta).validate_python(body))
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
