"""A tool that reads a file of the project, and says of its result which file it was."""

from typing import ClassVar

from efrit_budget.results.body import Body, Source
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class ReaderArguments(Arguments):
    """The arguments of `reader`."""

    path: str


class Reader:
    """Reads a file."""

    name: ClassVar[str] = "reader"
    description: ClassVar[str] = "Read a file."
    arguments: ClassVar[type[Arguments]] = ReaderArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: ReaderArguments, context: ToolContext) -> Outcome:
        """Read it."""
        file = context.root / arguments.path
        found = file.stat()
        source = Source(arguments.path, found.st_mtime_ns, found.st_size)
        text = file.read_text(encoding="utf-8")
        return Outcome(body=Body(text, sources=(source,)), notes=("Read just now.",))

    def compress(self, arguments: ReaderArguments, outcome: Outcome) -> str:
        """Return a line with the path that was read."""
        return f"Read {arguments.path}."


TOOL = Reader()
