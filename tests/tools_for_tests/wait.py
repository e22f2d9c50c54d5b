"""A tool that takes its time."""

from __future__ import annotations

from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class WaitArguments(Arguments):
    """The arguments of `wait`."""

    seconds: float


class Wait:
    """Sleeps until its time is over or nobody wants it."""

    name: ClassVar[str] = "wait"
    description: ClassVar[str] = "Wait."
    arguments: ClassVar[type[Arguments]] = WaitArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: WaitArguments, context: ToolContext) -> Outcome:
        """Sleep."""
        context.progress("waiting", 0, 1)
        context.cancellation.wait(arguments.seconds)
        context.cancellation.check()
        return Outcome(f"waited {arguments.seconds} s")

    def compress(self, arguments: WaitArguments, outcome: Outcome) -> str:
        """How long."""
        return outcome.text


TOOL = Wait()
