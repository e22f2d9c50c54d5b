"""If Emacs is killed during an edit, the file is whole and can be restored."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.emacs.batch import batch
from tests.soak import amount

KILLS = amount(1, 8)
BEFORE = (("." * 99 + "\n") * 99 + "A\n") * 200
AFTER = BEFORE.replace("A", "B")


def kill_while_it_edits(project: Path, home: Path, seconds: float) -> str:
    """Kill an Emacs this long after it began to edit, and return its session."""
    with batch("edit-forever.el", home, str(project)) as emacs:
        assert emacs.stdout is not None
        session = emacs.stdout.readline().strip()
        time.sleep(seconds)
        emacs.kill()
    return session


@pytest.mark.soak
def test_a_file_is_whole_whenever_emacs_is_killed_and_can_be_put_back(tmp_path: Path) -> None:
    """It has its old or its new contents; another Emacs can undo an unfinished change."""
    project, home = tmp_path / "project", tmp_path / "home"
    home.mkdir()
    project.mkdir()
    file = project / "a.txt"
    file.write_text(BEFORE)
    file.chmod(0o640)
    moments = random.Random(7)
    for _ in range(KILLS):
        session = kill_while_it_edits(project, home, moments.uniform(0.0, 0.6))
        assert file.read_text() in (BEFORE, AFTER)
        assert file.stat().st_mode & 0o777 == 0o640
        with batch("edit-forever.el", home, str(project), session) as emacs:
            said, _ = emacs.communicate(timeout=300)
        assert said == "nil"
        assert file.read_text() == BEFORE
        assert [path.name for path in project.iterdir()] == ["a.txt"]
