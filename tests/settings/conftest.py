"""The files that settings are read from."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def config(home: Path) -> Path:
    """The path of the person's own config.toml, in a folder that exists."""
    folder = home / "efrit" / "config"
    folder.mkdir(parents=True)
    return folder / "config.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The path of a project's own file."""
    return tmp_path / ".efrit.toml"
