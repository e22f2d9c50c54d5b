"""Tests of child processes: their output, and that no process is left."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import CancelledError
from efrit_budget.project.processes.groups import stop_all_groups
from efrit_budget.project.processes.run import Finished, follow, run
from tests.connection import TIMEOUT
from tests.processes import alive, pid_in, until

LIMITS = (0.3, 3, 30, 300)
"""Time limits to try; on a busy machine a program does not begin within the shortest."""


def _shell(script: str, *arguments: str, **options: Any) -> Finished:
    options = {"cwd": Path("/"), "cancellation": Cancellation(), **options}
    return run(["sh", "-c", script, "sh", *arguments], **options)


def _open_files() -> set[str]:
    return {file.name for file in Path("/proc/self/fd").iterdir()}


def test_output_errors_and_code_come_back() -> None:
    assert _shell("echo out; echo err >&2; exit 3") == Finished(3, b"out\n", b"err\n", False)


def test_what_is_given_is_read_by_the_program() -> None:
    given = os.urandom(3_000_000)
    assert _shell("cat", given=given).stdout == given


def test_a_program_that_does_not_read_what_it_is_given_ends_all_the_same() -> None:
    assert _shell("echo done", given=b"x" * 3_000_000).stdout == b"done\n"
    assert _shell("exec <&-; echo closed", given=b"x" * 3_000_000).stdout == b"closed\n"


def test_nothing_is_given_where_nothing_is_given() -> None:
    assert _shell("cat").stdout == b""
    assert _shell("cat", given=b"").stdout == b""


def test_both_streams_are_read_at_once() -> None:
    script = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"
    found = _shell(script)
    assert (len(found.stdout), len(found.stderr)) == (1_000_000, 1_000_000)


def test_a_program_that_is_not_there_raises() -> None:
    with pytest.raises(FileNotFoundError):
        run(["no-such-program"], cwd=Path("/"), cancellation=Cancellation())


def test_no_descriptor_and_no_process_is_left() -> None:
    before = _open_files()
    for _ in range(5):
        _shell("echo a; sleep 600 & exit 0")
    assert _open_files() == before


def test_what_a_program_leaves_running_in_its_group_is_ended_with_it(tmp_path: Path) -> None:
    found = _shell('sleep 600 & echo $! > "$1"; echo started', str(tmp_path / "pid"))
    assert found.stdout == b"started\n"
    assert until(lambda: not alive(pid_in(tmp_path / "pid")))


def test_a_process_that_left_the_group_does_not_hold_the_caller_by_its_pipe(
    tmp_path: Path,
) -> None:
    script = (
        'setsid sh -c \'echo $$ > "$1"; exec sleep 600\' sh "$1" & '
        'while ! [ -s "$1" ]; do sleep 0.05; done; echo started'
    )
    found = _shell(script, str(tmp_path / "pid"))
    try:
        assert found.stdout == b"started\n"
        assert alive(pid_in(tmp_path / "pid"))
    finally:
        os.kill(pid_in(tmp_path / "pid"), 9)


def test_a_time_limit_ends_the_group_and_keeps_what_was_written(tmp_path: Path) -> None:
    script = 'echo early; sleep 600 & echo $! > "$1"; wait'
    limited = (_shell(script, str(tmp_path / "pid"), timeout=limit) for limit in LIMITS)
    found = next(found for found in limited if found.stdout)
    assert found.timed_out
    assert found.stdout == b"early\n"
    assert found.code != 0
    assert until(lambda: not alive(pid_in(tmp_path / "pid")))


def test_a_time_limit_ends_a_group_that_ignores_it(tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > \"$1\"; while :; do sleep 0.1; done"
    limited = (_shell(script, str(tmp_path / "pid"), timeout=limit).timed_out for limit in LIMITS)
    assert next(timed_out for timed_out in limited if (tmp_path / "pid").exists())
    assert until(lambda: not alive(pid_in(tmp_path / "pid")))


def test_a_program_within_its_time_limit_has_not_timed_out() -> None:
    assert not _shell("echo quick", timeout=60).timed_out


def test_more_output_than_wanted_ends_the_program_and_says_so() -> None:
    found = _shell("yes", most_bytes=100_000)
    assert found.cut
    assert len(found.stdout) == 100_000
    both = _shell("yes >&2 & yes", most_bytes=100_000)
    assert max(len(both.stdout), len(both.stderr)) == 100_000


def test_output_of_just_the_limit_is_not_cut() -> None:
    found = _shell("head -c 100000 /dev/zero", most_bytes=100_000)
    assert (found.cut, found.code, len(found.stdout)) == (False, 0, 100_000)


def test_of_output_that_need_not_be_kept_whole_there_are_the_beginning_and_the_end() -> None:
    found = _shell("head -c 3000000 /dev/zero; echo end", kept_bytes=100_000)
    assert (found.cut, found.code, len(found.stdout)) == (False, 0, 100_000)
    assert found.passed == 3_000_000 + len("end\n") - 100_000
    assert found.tail.endswith(b"\0end\n")
    whole = _shell("echo all; head -c 200000 /dev/zero >&2", kept_bytes=100_000)
    assert (whole.stdout, whole.tail, whole.passed) == (b"all\n", b"", 0)
    both = _shell("head -c 200000 /dev/zero; sleep 0.1; echo why >&2", kept_bytes=100_000)
    assert (len(both.stdout), both.stderr) == (100_000, b"why\n")


def test_both_streams_are_followed_in_the_order_they_are_written_in() -> None:
    parts: list[bytes] = []
    script = "for n in 1 2 3; do echo out $n; echo err $n >&2; done; exit 4"
    found = follow(script, parts.append, cwd=Path("/"), cancellation=Cancellation())
    assert b"".join(parts) == b"".join(b"out %d\nerr %d\n" % (n, n) for n in (1, 2, 3))
    assert (found.code, found.stdout, found.left) == (4, b"", False)


def test_it_is_told_whether_something_was_left_running() -> None:
    assert not _shell("sleep 0.01 & echo a; wait").left
    assert _shell("sleep 600 & echo a").left
    assert _shell("sleep 600 >&- 2>&- & echo a").left
    assert not _shell("sleep 600", timeout=0.1).left


def test_large_output_is_whole() -> None:
    assert len(_shell("head -c 50000000 /dev/zero").stdout) == 50_000_000


def _cancelled_run(script: str, *arguments: str) -> tuple[threading.Thread, Cancellation]:
    cancellation = Cancellation()

    def work() -> None:
        with pytest.raises(CancelledError):
            _shell(script, *arguments, cancellation=cancellation)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, cancellation


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancelled_run_raises_once_its_group_is_ended(tmp_path: Path, *, deaf: bool) -> None:
    trap = "trap '' TERM; " if deaf else ""
    pid_file = tmp_path / "pid"
    script = trap + 'sleep 600 & echo $! > "$1.new"; mv "$1.new" "$1"; wait; sleep 600'
    thread, cancellation = _cancelled_run(script, str(pid_file))
    pid = pid_in(pid_file)
    cancellation.cancel()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert until(lambda: not alive(pid))


def test_a_run_that_was_cancelled_before_starts_nothing(tmp_path: Path) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        _shell('touch "$1"', str(tmp_path / "ran"), cancellation=cancellation)
    assert not (tmp_path / "ran").exists()


def test_stopping_all_groups_ends_each_of_them(tmp_path: Path) -> None:
    script = 'echo $$ > "$1.new"; mv "$1.new" "$1"; sleep 600'
    threads = [
        threading.Thread(target=_shell, args=(script, str(tmp_path / str(number))))
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    pids = [pid_in(tmp_path / str(number)) for number in range(5)]
    stop_all_groups()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(alive(pid) for pid in pids)


def test_the_environment_is_the_one_that_is_named() -> None:
    assert _shell("echo $HERE", env={"HERE": "yes", "PATH": os.environ["PATH"]}).stdout == b"yes\n"
