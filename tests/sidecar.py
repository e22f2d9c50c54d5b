"""A real sidecar for tests: a process and its pipes.

The process is forked from one that has loaded the program already (`tests/elisp/fork_server.py`),
unless a test is about the program's own start or end.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

from tests.connection import TIMEOUT, Connection

PROGRAM = (sys.executable, "-m", "efrit_budget")
"""The command that runs the real program."""
SERVE = (*PROGRAM, "serve")
FORKS = Path(__file__).parent / "elisp"


@cache
def fork_server() -> str:
    """Start the fork server of this test process, and return the name of its socket."""
    server = subprocess.Popen(
        [sys.executable, FORKS / "fork_server.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(_end, server)
    return server.stdout.readline().decode().rstrip("\n")


def _end(server: subprocess.Popen[bytes]) -> None:
    with server:
        pass


def forked() -> list[str]:
    """Return the command that stands for the program, and is run by the fork server."""
    return [sys.executable, "-I", "-S", str(FORKS / "forked.py"), fork_server()]


class Sidecar(Connection):
    """One sidecar process, started by the fork server or by `command`."""

    def __init__(
        self,
        *arguments: str,
        framing: str = "header",
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        cwd: Path | None = None,
        reading: bool = True,
    ) -> None:
        self._is_forked = command is None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.process = subprocess.Popen(
            command or [*forked(), *arguments, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **(env or {})},
            cwd=cwd or tempfile.gettempdir(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(self.process.stdin, self.process.stdout, framing)
        if reading:
            self.start_reading()

    def wait_exit(self, timeout: float = TIMEOUT) -> int:
        """Return the exit code, once everything it wrote has been read."""
        code = self.process.wait(timeout)
        self.wait_until_read(timeout)
        return code

    def finish(self) -> int:
        """Close the input and wait for the end."""
        self.close_stdin()
        return self.wait_exit()

    def kill(self) -> None:
        """End it as a crash would, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self._process_id(), signal.SIGKILL)
        self.process.wait(TIMEOUT)

    def _process_id(self) -> int:
        """Return the id of the sidecar itself, which may be the fork server's child."""
        if not self._is_forked:
            return self.process.pid
        noted = Path(fork_server()).with_name(str(self.process.pid))
        while self.process.poll() is None and not noted.exists():
            time.sleep(0.01)
        return int(noted.read_text()) if noted.exists() else self.process.pid

    def errors(self) -> str:
        """Return what it wrote to stderr so far."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def __enter__(self) -> Self:
        """Return the sidecar."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End the process, and fail on any stray byte in its output."""
        self.close_stdin()
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()
        self.wait_until_read()
        if not self._reader.is_alive():
            self.stdout.close()
        self._errors.close()
        if kind is None:
            self.check()
