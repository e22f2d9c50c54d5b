"""The results of `search_content` while files are swapped for links that lead elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project.processes import landlock, programs
from efrit_budget.project.search import search as searching
from tests.connection import Connection
from tests.soak import LENGTH, amount
from tests.tools.searched import Search, write
from tests.tools.searched import searching as search_of

PRIVATE = "xyzzy needle"
SWAP_FILE = """
import os, sys
place, target = sys.argv[1:]
os.link(place, place + ".kept")
while True:
    os.symlink(target, place + ".link")
    os.rename(place + ".link", place)
    os.link(place + ".kept", place + ".file")
    os.rename(place + ".file", place)
"""
SWAP_FOLDER = """
import os, sys
place, target = sys.argv[1:]
os.symlink(target, place + ".link")
while True:
    os.rename(place, place + ".kept")
    os.rename(place + ".link", place)
    os.rename(place, place + ".link")
    os.rename(place + ".kept", place)
"""


@pytest.fixture
def search(sidecar: Connection, session: str) -> Search:
    """Call the tool with these arguments."""
    return search_of(sidecar, session)


@pytest.fixture(params=["landlock", "by hand"])
def guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernel guards rg, or our own checks alone do."""
    programs.own_rules.cache_clear()
    if request.param == "by hand":
        monkeypatch.setattr(landlock, "version", lambda: 0)
    elif not landlock.version():
        pytest.skip("this kernel has no Landlock")
    yield
    programs.own_rules.cache_clear()


@contextmanager
def swapping(place: Path, target: Path) -> Iterator[None]:
    """Keep replacing a file by a link to the target and back while the block runs."""
    script = SWAP_FOLDER if place.is_dir() else SWAP_FILE
    swapper = subprocess.Popen([sys.executable, "-c", script, place, target])
    try:
        yield
        assert swapper.poll() is None
    finally:
        swapper.kill()
        swapper.wait()


Ways = Callable[[Path], tuple[Path, Path]]
WAYS: dict[str, Ways] = {
    "a file": lambda root: (root / "sub" / "a.txt", root.parent / "outside" / "a.txt"),
    "a folder": lambda root: (root / "sub", root.parent / "outside"),
    "a file for a secret one": lambda root: (root / "sub" / "a.txt", root / ".env"),
}


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_told_of_where_a_link_leads(search: Search, project: Path, way: str) -> None:
    write(project.parent, {"outside/a.txt": f"{PRIVATE}\n" * 9})
    write(project, {"sub/a.txt": "my needle\n", ".env": f"{PRIVATE}\n" * 9})
    write(project, {f"many/{number}": "hay\n" for number in range(50)})
    found = 0
    forms: cycle[dict[str, Any]] = cycle([{}, {}, {"count_only": True}, {"path": "sub/a.txt"}])
    with swapping(*WAYS[way](project)):
        for _ in range(amount(12, 2_000 // len(WAYS))):
            envelope = search("needle", **next(forms))
            told = envelope["text"]
            assert "xyzzy" not in told
            if envelope["status"] == "success":
                assert envelope["data"]["matching_lines"] < 9
                found += envelope["data"]["matching_lines"]
    assert found or not LENGTH


@pytest.mark.usefixtures("guarded")
def test_files_whose_folder_changes_meanwhile_are_searched_again(
    search: Search, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "CLOCK_NS", 10**15)
    write(project, {f"sub/{number}": "a needle\nhay\nneedles\n" for number in range(3)})
    plain = search("needle", context=1)
    assert plain["data"]["matching_lines"] == 6
    assert plain["text"].count("hay") == 3
    assert search("needle", count_only=True)["data"]["matching_lines"] == 6
    monkeypatch.setattr(searching, "MOST_AGAIN", 1)
    some = search("needle")
    assert some["data"]["matching_lines"] == 2
    assert "2 files left out" in some["text"]
