"""A tool whose runs can be counted, and which can be killed in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class TallyArguments(Arguments):
    """The arguments of `tally`."""

    file: str
    seconds: float = 0
    die: bool = False
    fail: bool = False


class Tally:
    """Adds a line to a file each time it runs."""

    name: ClassVar[str] = "tally"
    description: ClassVar[str] = "Count its own runs."
    arguments: ClassVar[type[Arguments]] = TallyArguments
    policy: ClassVar[Policy] = Policy.ASK
    has_effects: ClassVar[bool] = True
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: TallyArguments, context: ToolContext) -> Outcome:
        """Count, then end as asked."""
        with Path(arguments.file).open("a", encoding="utf-8") as lines:
            lines.write("ran\n")
        if arguments.die:
            os.kill(os.getpid(), signal.SIGKILL)
        if arguments.fail:
            raise RuntimeError("the secret word is xyzzy")
        context.cancellation.wait(arguments.seconds)
        context.cancellation.check()
        return Outcome("counted")

    def compress(self, arguments: TallyArguments, outcome: Outcome) -> str:
        """Return the compressed line."""
        return outcome.text


TOOL = Tally()
