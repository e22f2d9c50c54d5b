"""A tool whose compressor does what a compressor must not."""

import time
from pathlib import Path
from typing import Any, ClassVar, Literal

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class ClumsyArguments(Arguments):
    """The arguments of `clumsy`."""

    compressor: Literal["raises", "gives nothing", "gives no text", "gives too much", "waits"]
    lines: int = 400
    gate: str = ""
    """The folder in which a compressor that waits says so, and is told to go on."""


class Clumsy:
    """Gives so many numbered lines."""

    name: ClassVar[str] = "clumsy"
    description: ClassVar[str] = "Give numbered lines."
    arguments: ClassVar[type[Arguments]] = ClumsyArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: ClumsyArguments, context: ToolContext) -> Outcome:
        """Return numbered lines."""
        return Outcome("".join(f"line {number} of many\n" for number in range(arguments.lines)))

    def compress(self, arguments: ClumsyArguments, outcome: Outcome) -> Any:
        """Fail in the requested way."""
        if arguments.compressor == "raises":
            raise RuntimeError("the compressor is broken")
        if arguments.compressor == "waits":
            (Path(arguments.gate) / "waiting").touch()
            while not (Path(arguments.gate) / "go").exists():
                time.sleep(0.01)
        wrong = {
            "gives nothing": "",
            "gives no text": None,
            "gives too much": outcome.text * 3,
            "waits": "waited",
        }
        return wrong[arguments.compressor]


TOOL = Clumsy()
