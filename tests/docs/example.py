"""The project and the memory that the documents' examples use: somebody's thesis."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from efrit_budget.__main__ import main
from tests.docs import pages

NAME = "thesis"
FILES = pages.ROOT / "tests" / "docs" / NAME
MEMORIES = pages.ROOT / "tests" / "docs" / "thesis.jsonl"
MODIFIED = 1_795_015_148
"""2026-11-18T15:19:08Z, the time when all files of the project were last written."""


def make_thesis(parent: Path) -> Path:
    """Copy the project into a folder, with fixed times and modes, and import its memories."""
    folder = Path(shutil.copytree(FILES, parent / NAME))
    for place in [folder, *folder.rglob("*")]:
        place.chmod(0o755 if place.is_dir() else 0o644)
        os.utime(place, (MODIFIED, MODIFIED))
    assert main(["memory", "import", str(MEMORIES)]) == 0
    return folder
