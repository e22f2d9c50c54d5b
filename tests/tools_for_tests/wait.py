"""A tool that sleeps for a requested time."""

from __future__ import annotations

from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class WaitArguments(Arguments):
    """The arguments of `wait`."""

    seconds: float


class Wait:
    """Sleeps until its time is over or it is cancelled."""

    name: ClassVar[str] = "wait"
    description: ClassVar[str] = "Wait."
    arguments: ClassVar[type[Arguments]] = WaitArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: WaitArguments, context: ToolContext) -> Outcome:
        """Sleep until the time is over or the call is cancelled."""
        context.progress("waiting", 0, 1)
        context.cancellation.wait(arguments.seconds)
        context.cancellation.check()
        return Outcome(f"waited {arguments.seconds} s")

    def compress(self, arguments: WaitArguments, outcome: Outcome) -> str:
        """Return the outcome's text."""
        return outcome.text


TOOL = Wait()
