"""A tool call."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from efrit_budget.errors import Json


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model identifies it."""

    session_id: str
    tool_use_id: str
    tool: str
    arguments: dict[str, Json]

    @property
    def canonical_arguments(self) -> str:
        """The arguments as text, equal for equal arguments."""
        return json.dumps(self.arguments, sort_keys=True, separators=(",", ":"))

    def with_arguments(self, arguments: dict[str, Json]) -> ToolCall:
        """Return the same call with other arguments."""
        return replace(self, arguments=arguments)
