"""End running commands even if this process is killed.

A shell reads from a pipe whose other end only this process has. This process writes to the pipe
before each command runs, and when a command has ended. When the pipe closes because this process
ended, the shell kills the groups of running commands, and all processes with a mark (`strays`).
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
"""The most shells to which one message is written, in case they are killed."""


class _Guard:
    """The guard process, started with the first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._leaders: set[int] = set()

    def guard(self, leader: int) -> None:
        """Have the process group of `leader` killed if this process ends, from now on."""
        with self._lock:
            self._leaders.add(leader)
            self._tell(f"+ {leader}\n")

    def watch(self) -> None:
        """Have processes with a mark killed if this process ends, also if no group is guarded."""
        with self._lock:
            self._tell("")

    def release(self, leader: int) -> None:
        """Stop guarding the process group of `leader`."""
        with self._lock:
            self._leaders.discard(leader)
            self._tell(f"- {leader}\n")

    def _tell(self, message: str) -> None:
        """Write a message to the shell; if it is gone, start another one and send all leaders."""
        with contextlib.suppress(OSError):  # without a shell, commands run unguarded
            for _ in range(ATTEMPTS):
                if self._shell is None:
                    self._start()
                    message = "".join(f"+ {leader}\n" for leader in self._leaders)
                if self._wrote(message):
                    return

    def _start(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  the command is a constant
            ["/bin/sh", "-c", GUARD, "sh", f"{strays.MARK}={strays.TOKEN}."],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _wrote(self, message: str) -> bool:
        """Write a message; return whether the shell could read it, and collect the shell if not."""
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
        """Return a list with the process id of the guard's shell, empty if it does not run."""
        return [] if self._shell is None else [self._shell.pid]


_guard = _Guard()
guards = _guard.guards
guard = _guard.guard
watch = _guard.watch
release = _guard.release
