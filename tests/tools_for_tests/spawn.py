"""A tool that starts child processes: a shell, and a sleep below it."""

from __future__ import annotations

from typing import ClassVar

from efrit_budget.project.processes.run import run
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class SpawnArguments(Arguments):
    """The arguments of `spawn`."""

    seconds: float
    pid_file: str
    timeout: float | None = None
    deaf: bool = False
    """True if both processes ignore SIGTERM."""


class Spawn:
    """Writes the process id of the sleep into a file, and waits for the shell."""

    name: ClassVar[str] = "spawn"
    description: ClassVar[str] = "Start a child of a child."
    arguments: ClassVar[type[Arguments]] = SpawnArguments
    policy: ClassVar[Policy] = Policy.ASK
    has_effects: ClassVar[bool] = True
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: SpawnArguments, context: ToolContext) -> Outcome:
        """Run it."""
        trap = "trap '' TERM; " if arguments.deaf else ""
        script = trap + 'sleep "$1" & echo $! > "$2.new"; mv "$2.new" "$2"; wait; echo done'
        command = ["sh", "-c", script, "spawn", str(arguments.seconds), arguments.pid_file]
        finished = run(
            command,
            cwd=context.root,
            cancellation=context.cancellation,
            timeout=arguments.timeout,
        )
        return Outcome(f"{finished.stdout.decode()}code {finished.code}")

    def compress(self, arguments: SpawnArguments, outcome: Outcome) -> str:
        """Return the outcome's text."""
        return outcome.text


TOOL = Spawn()
