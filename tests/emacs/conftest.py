"""A scripted model, and an Emacs in a terminal that talks to it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.demo.running import endpoint
from tests.emacs.terminal import SIZE, Size, Terminal, emacs

Open = Callable[..., Terminal]


@pytest.fixture
def open_emacs(tmp_path: Path, project: Path) -> Iterator[Open]:
    """A function that opens an Emacs in a terminal on a small project, with a scripted model.

    Its arguments are the scenario and the size of the terminal in columns and lines.
    """
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / "README.md").write_text("# Sample\n\nA line.\n", encoding="utf-8")
    with ExitStack() as stack:

        def opened(scenario: str, size: Size = SIZE) -> Terminal:
            model = stack.enter_context(endpoint(scenario, tmp_path))
            return stack.enter_context(emacs(project, model.server.url, size))

        yield opened
