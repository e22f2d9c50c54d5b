"""Commands end when their sidecar is killed, at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes import groups, orphans
from efrit_budget.project.processes.run import SHELL, follow
from tests.processes import alive, until
from tests.soak import amount

RUNS_COMMANDS = """
import os, signal, subprocess, sys, threading
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes import orphans
from efrit_budget.project.processes.run import follow

start, guard = subprocess.Popen, orphans.guard


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def start_and_die(*arguments, **options):
    process = start(*arguments, **options)
    if options.get("stdout") == subprocess.PIPE:
        die()
    return process


def guard_and_die(leader):
    guard(leader)
    die()


def begin(number):
    while True:
        script = f"touch {number}; sleep 0.01; exec sleep 600"
        follow(script, len, cwd=Path(sys.argv[1]), cancellation=Cancellation(), timeout=0.1)


match sys.argv[2]:
    case "started":
        subprocess.Popen = start_and_die
    case "guarded":
        orphans.guard = guard_and_die
    case "any":
        print("ready", flush=True)
for number in range(4):
    threading.Thread(target=begin, args=(number,)).start()
"""
"""A script that runs commands in a folder, and kills itself or is killed."""


def _at_work_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder and alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder to run commands in, which are ended with the test."""
    yield tmp_path
    for pid in _at_work_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


def _runs_commands(folder: Path, until_when: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RUNS_COMMANDS, str(folder), until_when]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@pytest.mark.parametrize("moment", ["started", "guarded"])
def test_a_command_does_not_run_before_it_is_sure_to_end(folder: Path, moment: str) -> None:
    with _runs_commands(folder, moment) as killed:
        assert killed.wait() == -signal.SIGKILL
    until(lambda: any(folder.iterdir()) or not _at_work_in(folder))
    assert not list(folder.iterdir()), "a command ran that nobody ends"


@pytest.mark.soak
def test_nothing_runs_on_whenever_the_sidecar_is_killed(folder: Path) -> None:
    chance = random.Random(os.environ.get("EFRIT_BUDGET_SEED", "11"))
    for _ in range(amount(2, 300)):
        with _runs_commands(folder, "any") as killed:
            assert killed.stdout is not None
            assert killed.stdout.readline() == b"ready\n"
            time.sleep(chance.random() * 0.3)
            killed.kill()
        assert until(lambda: not _at_work_in(folder))


# The guard


@pytest.fixture
def guard() -> Iterator[orphans._Guard]:
    """Give a guard of its own."""
    guard = orphans._Guard()
    yield guard
    _leave(guard)


def _leave(guard: orphans._Guard) -> None:
    """Close the guard's pipe, as the end of the sidecar does, and wait until it has acted."""
    if guard._shell is not None and guard._shell.stdin is not None:
        guard._shell.stdin.close()
        guard._shell.wait()


@pytest.fixture
def leaders() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Give two processes, each the head of its own group."""
    started = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def _kill_shell(guard: orphans._Guard) -> None:
    assert guard._shell is not None
    guard._shell.kill()
    guard._shell.wait()


def test_a_guard_ends_what_it_guards_and_not_what_it_released(
    guard: orphans._Guard, leaders: list[subprocess.Popen[bytes]]
) -> None:
    for leader in leaders:
        guard.guard(leader.pid)
    guard.release(leaders[0].pid)
    _leave(guard)
    assert leaders[0].poll() is None
    assert leaders[1].wait() == -signal.SIGKILL


def test_a_guard_that_is_killed_is_replaced_and_the_next_one_knows_of_all(
    guard: orphans._Guard, leaders: list[subprocess.Popen[bytes]]
) -> None:
    guard.guard(leaders[0].pid)
    _kill_shell(guard)
    guard.guard(leaders[1].pid)
    _leave(guard)
    assert [leader.wait() for leader in leaders] == [-signal.SIGKILL, -signal.SIGKILL]


def test_a_guard_that_is_killed_while_it_is_replaced_is_replaced_again(
    guard: orphans._Guard,
    leaders: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard.guard(leaders[0].pid)
    _kill_shell(guard)
    start = guard._start

    def start_and_lose() -> None:
        monkeypatch.setattr(guard, "_start", start)
        start()
        _kill_shell(guard)

    monkeypatch.setattr(guard, "_start", start_and_lose)
    guard.guard(leaders[1].pid)
    _leave(guard)
    assert [leader.wait() for leader in leaders] == [-signal.SIGKILL, -signal.SIGKILL]


# Ids that somebody else may get


def _is_uncollected(leader: int) -> bool:
    try:
        os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


@pytest.mark.parametrize(
    ("script", "timeout"),
    [
        ("true", 60.0),
        ("sleep 600 & echo", 60.0),
        ("sleep 600 >&- 2>&- & echo", 60.0),
        ("sleep 600 & trap exit TERM; wait", 0.2),
        ("trap '' TERM; sleep 600", 0.2),
    ],
)
def test_a_group_is_let_go_before_its_id_can_be_given_to_another_one(
    script: str, timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, release, held = os.killpg, orphans.release, groups._groups._lock.locked
    looked: list[tuple[str, bool]] = []

    def kill_and_look(leader: int, number: int) -> None:
        looked.append((f"signal {number}", held() or _is_uncollected(leader)))
        kill(leader, number)

    def release_and_look(leader: int) -> None:
        looked.append(("release", held() or _is_uncollected(leader)))
        release(leader)

    monkeypatch.setattr(os, "killpg", kill_and_look)
    monkeypatch.setattr(orphans, "release", release_and_look)
    follow(script, len, cwd=Path("/"), cancellation=Cancellation(), timeout=timeout)
    assert looked[-1] == ("release", True)
    assert all(ours for _, ours in looked), looked


def test_a_finished_group_takes_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    child = groups.start(lambda: subprocess.Popen(["true"], start_new_session=True), Cancellation())
    child.finish()
    signals: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda _, number: signals.append(number))
    child.signal(signal.SIGTERM)
    assert not child.finish()
    assert not signals


# What a command notices of it


def test_a_command_is_as_the_shell_alone_would_start_it() -> None:
    script = 'ls /proc/self/fd; readlink /proc/self/fd/0; echo "$0 $# $-"; env | sort; nosuch'
    env = {"PATH": os.environ["PATH"], "efrit": "x", "PWD": "/nowhere", "TERM": "dumb"}
    parts: list[bytes] = []
    found = follow(script, parts.append, cwd=Path("/"), cancellation=Cancellation(), env=env)
    alone = subprocess.run(
        [SHELL, "-c", script],
        cwd="/",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    marked = [line for line in b"".join(parts).splitlines() if b"EFRIT_BUDGET_COMMAND" not in line]
    assert marked == alone.stdout.splitlines()
    assert found.code == alone.returncode == 127


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -USR1 $$", -signal.SIGUSR1)])
def test_how_a_command_ended_is_told(script: str, code: int) -> None:
    found = follow(script, len, cwd=Path("/"), cancellation=Cancellation())
    assert found.code == code


def test_a_folder_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        follow("true", len, cwd=tmp_path / "no", cancellation=Cancellation())
