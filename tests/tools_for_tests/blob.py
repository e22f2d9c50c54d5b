"""A tool that returns data of a requested size."""

from __future__ import annotations

from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class BlobArguments(Arguments):
    """The arguments of `blob`."""

    size: int


class Blob:
    """Returns a string of this many letters as data."""

    name: ClassVar[str] = "blob"
    description: ClassVar[str] = "Give much data."
    arguments: ClassVar[type[Arguments]] = BlobArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: BlobArguments, context: ToolContext) -> Outcome:
        """Make it."""
        return Outcome(f"{arguments.size} bytes", {"blob": "x" * arguments.size})

    def compress(self, arguments: BlobArguments, outcome: Outcome) -> str:
        """Return the outcome's text."""
        return outcome.text


TOOL = Blob()
