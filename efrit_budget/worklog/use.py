"""One use of a tool by the model."""

from __future__ import annotations

import json
from dataclasses import dataclass

from efrit_budget.errors import Json


@dataclass(frozen=True)
class Use:
    """A tool use as the model names it."""

    session_id: str
    tool_use_id: str
    tool: str
    arguments: dict[str, Json]

    @property
    def canonical_arguments(self) -> str:
        """The arguments as text that is equal for equal arguments."""
        return json.dumps(self.arguments, sort_keys=True, separators=(",", ":"))
