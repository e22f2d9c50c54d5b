"""A tool call, and the entry that is stored when the call has ended."""

import json
from dataclasses import dataclass
from functools import cached_property

from efrit_budget.errors import JsonObject


@dataclass(frozen=True)
class ToolCall:
    """A tool call: its session, its id, the tool and the arguments."""

    session_id: str
    tool_use_id: str
    tool: str
    arguments: JsonObject

    @cached_property
    def canonical_arguments(self) -> str:
        """The arguments as JSON text, which is the same for equal arguments."""
        return json.dumps(self.arguments, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class CallEntry:
    """The stored texts, sizes and facts of a call that has ended.

    `page_start` and `page_end` are offsets in the result's text; `raw` sizes are estimates.
    """

    status: str
    message: str | None
    number: int
    page_start: int
    page_end: int
    delivered: str
    page: str
    """The facts on the page for programs, as JSON text."""
    tokens: int
    exact: int
    """The known tokens of images and other blocks, which are not estimated."""
    raw: int
    compressed: str
    compressed_raw: int
    same_as: int | None
    lisp: str | None = None
    todos: str | None = None
    """The model's todo list as JSON text, if the call set it."""
    gist: str = ""
    """What came of the call in a few words for the person, such as "12 matches"."""
    ending: str | None = None
    """`denied` or `stopped` if the call did not run to its end."""
