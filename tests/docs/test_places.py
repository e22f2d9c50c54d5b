"""No file of the project holds a path of the machine that it was made on."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import pages

OF_SOME_MACHINE = re.compile(
    r"/(?:home|Users)/(?!ann\b)\w+"
    r"|/(?:tmp|dev/shm|var/folders)/(?:pytest-|tmp[._]?[a-z0-9_]{8}|tmp\.\w{6,})"
)


def of_this_machine() -> re.Pattern[str]:
    """The folder of the checkout, and the person's home."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    folders = {pages.ROOT, home} - {Path("/"), Path("/home/ann")}
    return re.compile("|".join(rf"(?<![\w/.~-]){re.escape(str(one))}\b" for one in folders))


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that is part of the project, by its name."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=pages.ROOT, check=True, capture_output=True).stdout
    for name in os.fsdecode(listed).split("\0")[:-1]:
        file = pages.ROOT / name
        raw = file.read_bytes() if file.is_file() else b""
        if b"\0" not in raw:
            yield name, raw.decode("utf-8", "replace")


def test_no_file_holds_a_path_of_a_machine() -> None:
    own = of_this_machine()
    found = {
        f"{name}: {match[0]}"
        for name, text in texts()
        for pattern in (own, OF_SOME_MACHINE)
        for match in pattern.finditer(text)
    }
    assert not found


@pytest.mark.parametrize(
    "place",
    [
        "home/bob/src",
        "Users/bob",
        "tmp/tmpo676gxiw/project",
        "tmp/tmp.9fZ2kQ01xY",
        "tmp/pytest-of-bob/pytest-1",
    ],
)
def test_homes_and_temporary_folders_are_of_some_machine(place: str) -> None:
    assert OF_SOME_MACHINE.search(f"at /{place}")


@pytest.mark.parametrize("place", ["home/ann/project", "tmp/other.sqlite3", "srv/app/"])
def test_places_made_for_an_example_are_of_none(place: str) -> None:
    assert not OF_SOME_MACHINE.search(f"at /{place}")
    assert not of_this_machine().search(f"at /{place}")


def test_the_checkout_itself_is_of_this_machine() -> None:
    own = of_this_machine()
    assert own.search(f"in {pages.ROOT}/docs")
    assert not own.search(f"in ~{pages.ROOT}/docs")
