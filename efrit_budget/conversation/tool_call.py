"""A tool call, and what is stored of it when it has ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from efrit_budget.errors import Json, JsonObject


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model identifies it."""

    session_id: str
    tool_use_id: str
    tool: str
    arguments: JsonObject

    @cached_property
    def canonical_arguments(self) -> str:
        """The arguments as text, equal for equal arguments."""
        return json.dumps(self.arguments, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class CallEntry:
    """What is stored of a call that has ended."""

    status: str
    message: str | None
    number: int
    page_start: int
    page_end: int
    delivered: str
    page: JsonObject
    tokens: int
    exact: int
    """The tokens of images and other blocks, which are known and not estimated."""
    raw: int
    compressed: str
    compressed_raw: int
    same_as: int | None
    lisp: str | None = None
    todos: Json = None
