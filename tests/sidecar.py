"""A real sidecar for tests: a process and its pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.connection import TIMEOUT, Connection


class Sidecar(Connection):
    """One sidecar process."""

    def __init__(
        self,
        *arguments: str,
        framing: str = "header",
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        cwd: Path | None = None,
        reading: bool = True,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "efrit_budget", *arguments, "serve"],
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
        """End it as a crash would."""
        self.process.kill()
        self.process.wait(TIMEOUT)

    def errors(self) -> str:
        """Return what it wrote to stderr so far."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Leave no process, and no stray byte unnoticed."""
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
