"""The files from which settings are read."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def config(home: Path) -> Path:
    """The path of the person's config.toml, in an existing folder."""
    folder = home / "efrit" / "config"
    folder.mkdir(parents=True)
    return folder / "config.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The path of a project's settings file."""
    return tmp_path / ".efrit.toml"
