"""A tool whose compressor does what a compressor must not."""

from typing import Any, ClassVar, Literal

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class ClumsyArguments(Arguments):
    """The arguments of `clumsy`."""

    compressor: Literal["raises", "gives nothing", "gives no text", "gives too much"]
    lines: int = 400


class Clumsy:
    """Gives so many numbered lines."""

    name: ClassVar[str] = "clumsy"
    description: ClassVar[str] = "Give numbered lines."
    arguments: ClassVar[type[Arguments]] = ClumsyArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: ClumsyArguments, context: ToolContext) -> Outcome:
        """Number them."""
        return Outcome("".join(f"line {number} of many\n" for number in range(arguments.lines)))

    def compress(self, arguments: ClumsyArguments, outcome: Outcome) -> Any:
        """Go wrong as asked."""
        if arguments.compressor == "raises":
            raise RuntimeError("the compressor is broken")
        wrong = {"gives nothing": "", "gives no text": None, "gives too much": outcome.text * 3}
        return wrong[arguments.compressor]


TOOL = Clumsy()
