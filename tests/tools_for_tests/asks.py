"""A tool that asks the person for confirmation."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext, question


class AsksArguments(Arguments):
    """The arguments of `asks`."""

    file: str


class Asks:
    """Adds a line to a file if the person agrees."""

    name: ClassVar[str] = "asks"
    description: ClassVar[str] = "Ask, then do."
    arguments: ClassVar[type[Arguments]] = AsksArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = True
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: AsksArguments, context: ToolContext) -> Outcome:
        """Ask, or do it."""
        if not context.confirmed:
            return question(f"Write into {arguments.file}?")
        with Path(arguments.file).open("a", encoding="utf-8") as lines:
            lines.write("ran\n")
        return Outcome("written")

    def compress(self, arguments: AsksArguments, outcome: Outcome) -> str:
        """Return the compressed line."""
        return outcome.text


TOOL = Asks()
