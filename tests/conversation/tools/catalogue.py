"""A tool that lists things in groups: each with a header, as many as it is asked for."""

from typing import Annotated, ClassVar

from pydantic import Field

from efrit_budget.results.body import of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext


class CatalogueArguments(Arguments):
    """The arguments of `catalogue`."""

    max_files: Annotated[int, Field(ge=1, le=3_000, description="Limit files returned")] = 100
    per_folder: int = 10
    longest: int = 0
    """Characters of padding behind every seventh file."""


class Catalogue:
    """Lists files that are made up, by folder."""

    name: ClassVar[str] = "catalogue"
    description: ClassVar[str] = "List project files."
    arguments: ClassVar[type[Arguments]] = CatalogueArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = Hint("files with metadata", tokens_each=30, parameter="max_files")

    def run(self, arguments: CatalogueArguments, context: ToolContext) -> Outcome:
        """Make them up."""
        files = range(arguments.max_files)
        folders = [files[at : at + arguments.per_folder] for at in files[:: arguments.per_folder]]
        groups = [
            (f"folder-{at}/", [_entry(file, arguments.longest) for file in held])
            for at, held in enumerate(folders)
        ]
        return Outcome(body=of_items("files", groups))

    def compress(self, arguments: CatalogueArguments, outcome: Outcome) -> str:
        """Return a line with the number of files."""
        return f"Listed {outcome.whole.whole_count} files."


def _entry(file: int, longest: int) -> tuple[str, str]:
    padding = " x" * (longest // 2) if file % 7 == 3 else ""
    return f"  file-{file}.el  {file * 37:,} bytes{padding}", f"file-{file}.el"


TOOL = Catalogue()
