"""The places of a project's specification and its stages."""

from __future__ import annotations

from dataclasses import dataclass

FOLDERS = ("docs", "specs")
CONVENTIONS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md")
CHANGES = "docs/changes"
STAGES = (
    *("principles", "charter", "requirements", "business-rules"),
    *("clarifications", "design", "tasks", "validate"),
)
SUFFIXES = {".md", ".markdown", ".org", ".rst", ".adoc", ".txt"}


@dataclass(frozen=True)
class Specs:
    """Folders and files, relative to the project's root."""

    folders: tuple[str, ...] = FOLDERS
    conventions: tuple[str, ...] = CONVENTIONS
    changes: str = CHANGES
