"""A tool that returns its argument."""

from typing import ClassVar

from efrit_budget.errors import Json
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class EchoArguments(Arguments):
    """The arguments of `echo`."""

    value: Json


class Echo:
    """Returns its argument as data."""

    name: ClassVar[str] = "echo"
    description: ClassVar[str] = "Give the value back."
    arguments: ClassVar[type[Arguments]] = EchoArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: EchoArguments, context: ToolContext) -> Outcome:
        """Return the argument."""
        return Outcome("the value is in the data", {"value": arguments.value})

    def compress(self, arguments: EchoArguments, outcome: Outcome) -> str:
        """Return the compressed line."""
        return outcome.text


TOOL = Echo()
