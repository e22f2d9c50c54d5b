"""Ends the commands that still run when this process is killed and can end nothing any more.

A shell waits at a pipe of which only this process holds the other end. It is told of each command
that begins and ends; when the pipe is closed, by whatever killed this process, it kills the groups
of those that have not ended.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

GUARD = """
groups=
while read -r sign leader; do
  case $sign in
    +) groups="$groups $leader" ;;
    -) left=; for group in $groups; do [ "$group" = "$leader" ] || left="$left $group"; done
       groups=$left ;;
  esac
done
for group in $groups; do kill -KILL "-$group"; done 2>/dev/null
"""


class _Guard:
    """The shell, started with the first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._leaders: set[int] = set()

    def tell(self, sign: str, leader: int) -> None:
        """Say that the group of `leader` has begun ("+") or ended ("-")."""
        with self._lock:
            if sign == "+":
                self._leaders.add(leader)
            else:
                self._leaders.discard(leader)
            if self._shell is None or not self._wrote(self._shell, sign, leader):
                self._start()

    def _start(self) -> None:
        """Start a shell and tell it of all that runs; where none starts, commands go unguarded."""
        self._shell = None
        with contextlib.suppress(OSError):
            shell = subprocess.Popen(  # noqa: S603  nothing of it comes from outside
                ["/bin/sh", "-c", GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            self._shell = shell
            for leader in self._leaders:
                self._wrote(shell, "+", leader)

    def _wrote(self, shell: subprocess.Popen[bytes], sign: str, leader: int) -> bool:
        pipe: IO[bytes] | None = shell.stdin
        try:
            if pipe is not None:
                pipe.write(f"{sign} {leader}\n".encode())
                pipe.flush()
        except OSError:  # somebody killed the shell
            shell.poll()
            return False
        return True


_guard = _Guard()


@contextlib.contextmanager
def ended_with_this_process(leader: int) -> Iterator[None]:
    """Have the process group of `leader` end with this process, while the block runs."""
    _guard.tell("+", leader)
    try:
        yield
    finally:
        _guard.tell("-", leader)
