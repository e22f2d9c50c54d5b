"""Over a real ssh, with the TRAMP of this Emacs, nothing hangs and every file is right."""

from __future__ import annotations

import hashlib
import os
import random

import pytest

from tests.demo.running import endpoint
from tests.emacs.over_ssh import Driver, Machine, driver, machine, script
from tests.emacs.ssh_steps import Session, Tree, session
from tests.soak import LENGTH

SESSIONS = max(1, round(4 * LENGTH))
STEPS = 12
SECONDS = 120
"""The seconds without output after which Emacs counts as hanging."""


def digests(tree: Tree) -> dict[str, str]:
    """Return a digest of each file of a project."""
    return {name: hashlib.md5(text.encode()).hexdigest() for name, text in tree.items()}


def work(emacs: Driver, there: Machine, asked: Session, number: int) -> None:
    """Run the session in Emacs; each step must end and leave the files as expected."""
    folder = there.folder / f"session{number}"
    root = folder / "project"
    root.mkdir(parents=True)
    with endpoint(asked.scenario(), folder) as model:
        emacs.begin(root, model.server.url)
        for place, use in enumerate(asked.uses):
            given = emacs.next("USE", SECONDS)
            assert given["name"] == use.tool
            assert (given["status"] == "success") is use.success, (given, asked.uses[: place + 1])
            assert given["tree"] == digests(use.tree), (given, asked.uses[: place + 1])
        assert emacs.next("END", SECONDS) == {"problem": None, "buffers": []}


def emacsen() -> list[str]:
    """Return the Emacs of the tests, and an Emacs 30 if the former is older."""
    own = os.environ.get("EMACS", "emacs")
    return [own, *filter(None, [script("emacs30")])]


@pytest.mark.soak(alone=True)
@pytest.mark.parametrize("shared", [False, True], ids=["tramp", "own-settings"])
def test_nothing_hangs_and_every_file_is_right_over_ssh(shared: bool) -> None:
    """Edits, commands and undos come in any order, with and without shared connections."""
    for emacs in emacsen():
        chance = random.Random(7)
        with machine(shared) as there, driver(there, emacs) as running:
            for number in range(SESSIONS):
                work(running, there, session(chance, STEPS), number)
