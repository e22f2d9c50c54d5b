"""Limits of the programs that read untrusted files: the files they open, memory and time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.git import repository as git
from efrit_budget.project.git.folder import GitError
from efrit_budget.project.processes import landlock
from efrit_budget.project.processes import run as processes
from efrit_budget.project.processes.confinement import Confinement
from efrit_budget.project.processes.programs import begin_restricted, find_program, own_rules
from efrit_budget.project.search import ripgrep
from efrit_budget.project.text import ctags
from tests.connection import Connection
from tests.repository import Repository
from tests.soak import amount

MEMORY = 1024 * 1024 * 1024
PRIVATE = "xyzzy"
Call = Callable[..., dict[str, Any]]

needs_landlock = pytest.mark.skipif(
    not landlock.version(),
    reason="this kernel has no Landlock, so only memory and time are limited",
)


@pytest.fixture
def call(sidecar: Connection, session: str) -> Call:
    """Call a tool in the project."""
    uses = count()

    return lambda tool, **arguments: sidecar.call_tool(
        session, tool, f"use-{next(uses)}", arguments
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give programs a short time limit."""
    monkeypatch.setattr(processes, "WAITING_SECONDS", 0.5)
    monkeypatch.setattr(processes, "LOOK_SECONDS", 0.1)


def run_confined(program: str, *arguments: str, readable: Path | None = None) -> processes.Finished:
    """Run a program that may read one folder."""
    return processes.run(
        [program, *arguments],
        cwd=Path("/"),
        cancellation=Cancellation(),
        confinement=Confinement(program, [readable] if readable else []),
    )


# Files


@needs_landlock
def test_a_program_opens_its_own_files_and_those_it_is_given(tmp_path: Path) -> None:
    cat = find_program("cat")
    assert cat is not None
    for folder in ("given", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text(f"in {folder}")
    (tmp_path / "given" / "link").symlink_to(tmp_path / "other" / "file")
    given = tmp_path / "given"
    assert run_confined(cat, str(given / "file"), readable=given).stdout == b"in given"
    for closed in (given / "link", tmp_path / "other" / "file", given / ".." / "other" / "file"):
        finished = run_confined(cat, str(closed), readable=given)
        assert (finished.code, finished.stdout) == (1, b"")
    assert (given / "link").read_text() == "in other"


@needs_landlock
def test_a_program_writes_nothing_and_starts_no_other(tmp_path: Path) -> None:
    def tried() -> list[str]:
        found = []
        for attempt in (
            lambda: (tmp_path / "new").write_text("x"),
            (tmp_path / "old").unlink,
            lambda: (tmp_path / "old").rename(tmp_path / "moved"),
            lambda: subprocess.run(["/bin/true"], check=True),
        ):
            try:
                attempt()
            except OSError as error:
                found.append(type(error).__name__)
        return found

    (tmp_path / "old").touch()
    rules: list[landlock.Rule] = [(tmp_path, landlock.READ), (os.devnull, landlock.USE)]
    restrict = partial(landlock.restrict_to, rules)
    assert begin_restricted(restrict, tried) == ["PermissionError"] * 4
    assert (tmp_path / "old").exists()


def test_a_program_that_cannot_run_with_its_own_files_alone_is_not_confined(
    tmp_path: Path,
) -> None:
    odd = tmp_path / "bin" / "odd"
    odd.parent.mkdir()
    odd.write_text(f"#!/bin/sh\ncat {tmp_path / 'needed'}\n")
    odd.chmod(0o755)
    (tmp_path / "needed").write_text("1.0")
    assert own_rules(str(odd)) is None
    assert run_confined(str(odd)).stdout == b"1.0"


@pytest.mark.parametrize("folder", ["", ".", "bin"])
def test_no_program_is_taken_from_a_folder_that_is_named_relatively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("git", "rg", *ctags.NAMES):
        (tmp_path / folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\n")
        (tmp_path / folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", folder)
    for found in (git.find, ripgrep.find):
        found.cache_clear()
    try:
        assert ctags.find(Cancellation()) is None
        assert ripgrep.find(prefer_system=True).parent != tmp_path / folder
        with pytest.raises(GitError, match="not installed"):
            git.find()
    finally:
        for found in (git.find, ripgrep.find):
            found.cache_clear()
    assert not (tmp_path / "mark").exists()


# Memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_program_that_takes_too_much_memory_is_told_of(tmp_path: Path) -> None:
    hungry = f"kept = bytearray({MEMORY}); print(len(kept))"
    free = processes.run([sys.executable, "-c", hungry], cwd=tmp_path, cancellation=Cancellation())
    assert free.stdout.decode().strip() == str(MEMORY)
    finished = run_confined(sys.executable, "-c", hungry, readable=Path(sys.prefix))
    assert (finished.code, finished.stdout) == (1, b"")
    assert b"MemoryError" in finished.stderr


def test_a_file_that_is_larger_than_the_limit_is_searched(call: Call, project: Path) -> None:
    lines = b"hay\n" * 2**18
    with (project / "large.txt").open("wb") as file:
        for _ in range(amount(1, MEMORY // len(lines) + 10)):
            file.write(lines)
        file.write(b"needle\n")
    found = call("search_content", pattern="needle", path="large.txt")
    assert found["data"]["matching_lines"] == 1


ENORMOUS: dict[str, Callable[[Path], object]] = {
    "a link to an endless device": lambda file: file.symlink_to("/dev/zero"),
    "a line of many megabytes": lambda file: file.write_text("a*b?" * 5_000_000),
    "many lines": lambda file: file.write_text(
        "".join(f"**/a{n}*b?\n" for n in range(amount(20_000, 200_000)))
    ),
}


@pytest.mark.parametrize("way", ENORMOUS)
def test_an_enormous_gitignore_ends_rg_and_git_before_the_memory_is_full(
    call: Call, project: Path, way: str
) -> None:
    Repository(project).commit("one", **{"a.txt": "one\n", "sub/b.txt": "one\n"})
    ENORMOUS[way](project / ".gitignore")
    with watched_memory() as peak:
        found = call("search_content", pattern="one", path="sub")
        listed = call("project_files")
    assert peak[0] < MEMORY
    for envelope in (found, listed):
        assert envelope["status"] == "success" or "of memory" in envelope["message"]


def test_a_pattern_that_grows_beyond_the_memory_is_told_of(call: Call, project: Path) -> None:
    Repository(project).commit("one", **{"a.txt": "one\n"})
    with watched_memory() as peak:
        found = call("vcs_log", grep="((x{1,255}){1,255}){1,255}")
    assert peak[0] < MEMORY
    assert found["status"] == "error"
    assert "emory" in found["message"]


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """A list that gets the most resident memory of any child of this process."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            peak[0] = max([peak[0], *(resident(child) for child in children())])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def children() -> Iterator[int]:
    """Yield the children of this process."""
    for tasks in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has ended
            yield from map(int, (tasks / "children").read_text().split())


def resident(process: int) -> int:
    """Return the bytes of memory that belong to a process alone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(lines.get("RssAnon", "0 kB").split()[0]) * 1024


# Time


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("tool", ["search_content", "project_files", "vcs_status"])
def test_a_pipe_for_a_gitignore_is_told_of_and_not_waited_for(
    call: Call, project: Path, tool: str
) -> None:
    Repository(project).commit("one", **{"a.txt": "one\n", "sub/b.txt": "one\n"})
    os.mkfifo(project / "sub" / ".gitignore")
    found = call(tool, **({"pattern": "one"} if tool == "search_content" else {}))
    assert found["status"] == "error"
    assert "pipe" in found["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a thread waits for")
@pytest.mark.usefixtures("impatient")
def test_a_pipe_is_noticed_beside_threads_that_poll(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"""
import threading
threading.Thread(target=open, args=({str(tmp_path / "pipe")!r},), daemon=True).start()
while True: pass
"""
    finished = processes.run(
        [sys.executable, "-c", script],
        cwd=Path("/"),
        cancellation=Cancellation(),
        timeout=60,
        confinement=Confinement(sys.executable, [Path(sys.prefix), tmp_path]),
    )
    assert finished.waited


@pytest.mark.usefixtures("impatient")
def test_pipes_hold_no_call_up_that_comes_after_them(
    sidecar: Connection, session: str, project: Path
) -> None:
    Repository(project).commit("one", **{"a.txt": "one\n", "sub/b.txt": "one\n"})
    os.mkfifo(project / "sub" / ".gitignore")
    call = {"session_id": session, "name": "search_content", "arguments": {"pattern": "one"}}
    begun = [
        sidecar.begin("tools/call", **call, tool_use_id=f"held-{number}") for number in range(20)
    ]
    ended = [sidecar.result(number) for number in begun]
    assert {envelope["status"] for envelope in ended} == {"error"}
    (project / "sub" / ".gitignore").unlink()
    assert sidecar.request("tools/call", **call, tool_use_id="after")["status"] == "success"


def test_a_program_that_works_or_waits_for_a_disk_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "WAITING_SECONDS", 0.5)
    monkeypatch.setattr(processes, "LOOK_SECONDS", 0.1)
    busy = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(1)"
    finished = run_confined(sys.executable, "-c", busy, readable=Path(sys.prefix))
    assert (finished.stdout, finished.waited) == (b"1\n", False)


def test_a_search_has_a_deadline(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "MOST_SECONDS", 0.0)
    (project / "a.txt").write_text("one\n")
    found = call("search_content", pattern="one")
    assert found["status"] == "error"
    assert "Narrow the path" in found["message"]
