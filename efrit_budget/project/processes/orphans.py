"""End running commands even if this process is killed.

A shell waits at a pipe of which only this process holds the other end. It is told of each command
before that runs, and when it has ended; when the pipe is closed, by whatever killed this process,
it kills the groups of those that have not ended, and what has left them.
"""

import contextlib
import subprocess
import threading

from efrit_budget.project.processes import strays

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
for process in /proc/[0-9]*; do
  grep -qz "^$1" "$process/environ" && kill -KILL "${process#/proc/}"
done 2>/dev/null
"""
ATTEMPTS = 3
"""How many shells are told one message, where somebody kills them."""


class _Guard:
    """The guard process, started with the first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._leaders: set[int] = set()

    def guard(self, leader: int) -> None:
        """Have the process group of `leader` end with this process, from now on."""
        with self._lock:
            self._leaders.add(leader)
            self._tell(f"+ {leader}\n")

    def release(self, leader: int) -> None:
        """Leave the process group of `leader` alone, from now on."""
        with self._lock:
            self._leaders.discard(leader)
            self._tell(f"- {leader}\n")

    def _tell(self, message: str) -> None:
        """Write to the shell; start another one if it is gone, and tell that of all that runs."""
        with contextlib.suppress(OSError):  # where none starts, commands go unguarded
            for _ in range(ATTEMPTS):
                if self._shell is None:
                    self._start()
                    message = "".join(f"+ {leader}\n" for leader in self._leaders)
                if self._wrote(message):
                    return

    def _start(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  nothing of it comes from outside
            ["/bin/sh", "-c", GUARD, "sh", f"{strays.MARK}={strays.TOKEN}."],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _wrote(self, message: str) -> bool:
        """Tell whether the shell is there to read the message; collect it if it is not."""
        shell = self._shell
        if shell is None or shell.stdin is None:
            return False
        try:
            shell.stdin.write(message.encode())
        except OSError:  # somebody killed it
            shell.stdin.close()
            shell.kill()
            shell.wait()
            self._shell = None
            return False
        return True

    def guards(self) -> list[int]:
        """Return the guard's process ids, if it runs."""
        return [] if self._shell is None else [self._shell.pid]


_guard = _Guard()
guards = _guard.guards
guard = _guard.guard
release = _guard.release
