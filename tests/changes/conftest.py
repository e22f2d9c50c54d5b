"""A session whose files are changed as Emacs changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changes.hands import Hands
from tests.connection import Connection


@pytest.fixture
def hands(sidecar: Connection, project: Path, session: str) -> Hands:
    """A session on `project`."""
    return Hands(sidecar, project, session)
