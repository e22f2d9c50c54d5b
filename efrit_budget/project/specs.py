"""The places of a project's specification and its stages."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

STAGES = (
    *("principles", "charter", "requirements", "business-rules"),
    *("clarifications", "design", "tasks", "validate"),
)
SUFFIXES = {".md", ".markdown", ".org", ".rst", ".adoc", ".txt"}


@dataclass(frozen=True)
class Specs:
    """The places of a specification, from the project's root; each is a setting `specs.*`."""

    folders: Annotated[
        tuple[str, ...],
        Field(
            strict=False,
            description="Folders with documents: `sdd_get_context` and `sdd_context_check` "
            "read them.",
        ),
    ] = ("docs", "specs")
    conventions: Annotated[
        tuple[str, ...],
        Field(strict=False, description="Files with the project's conventions."),
    ] = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md")
    changes: Annotated[
        str, Field(description="The folder that holds a folder for each change.")
    ] = "docs/changes"
