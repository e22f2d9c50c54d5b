"""Functions that run the command, in this process or another, and return what a person sees."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from efrit_budget.__main__ import main
from tests.sidecar import PROGRAM

TIME_LIMIT = 300


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output parsed as JSON; fails unless it is one line."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The line on stderr; fails if there are several, or a traceback."""
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err
        return self.err


def efrit(
    *arguments: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the command to its end, in this process."""
    folder = cwd or Path.cwd()
    with (
        _standard_streams(_bytes(stdin)) as (out, err),
        patch.dict(os.environ, env or {}),
        contextlib.chdir(folder),
    ):
        code = main(arguments)
        out.flush()
        err.flush()
        return Ended(code, _content(out), _content(err))


def efrit_process(
    *arguments: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the command to its end, as a process of its own."""
    finished = subprocess.run(
        [*PROGRAM, *arguments],
        input=_bytes(stdin),
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=TIME_LIMIT,
        check=False,
    )
    return Ended(finished.returncode, finished.stdout.decode(), finished.stderr.decode())


@contextlib.contextmanager
def _standard_streams(given: bytes) -> Iterator[tuple[TextIOWrapper, TextIOWrapper]]:
    """Replace the standard streams by files; yield those for output and errors."""
    with contextlib.ExitStack() as files:
        source, out, err = (
            files.enter_context(TextIOWrapper(tempfile.TemporaryFile(), encoding="utf-8"))  # noqa: SIM115
            for _ in range(3)
        )
        source.buffer.write(given)
        source.seek(0)
        files.enter_context(patch.multiple(sys, stdin=source, stdout=out, stderr=err))
        yield out, err


def _bytes(given: str | bytes) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _content(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def efrit_at_a_terminal(
    *arguments: str, typed: str, cwd: Path | None = None, prints_there: bool = False
) -> Ended:
    """Run the command at a terminal where somebody types `typed`.

    Output goes to a pipe, or to the terminal as well if `prints_there`; the terminal then shows it
    all.
    """
    ours, theirs = pty.openpty()
    stdout = theirs if prints_there else subprocess.PIPE
    try:
        process = subprocess.Popen(
            [*PROGRAM, *arguments], stdin=theirs, stdout=stdout, stderr=theirs, cwd=cwd
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = _all_of(ours)
        out, _ = process.communicate(timeout=TIME_LIMIT)
        return Ended(process.returncode, (out or b"").decode(), shown)
    finally:
        os.close(ours)


def _all_of(terminal: int) -> str:
    """Return everything written to a terminal until its other end is closed."""
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    return shown.decode()


def open_session(root: Path) -> str:
    """Open a session and return its id."""
    ended = efrit("call", "session/open", json.dumps({"root": str(root)}), "--json")
    session_id: str = ended.json["session_id"]
    return session_id


def write_config(home: Path, text: str) -> Path:
    """Write the person's own config.toml."""
    file = home / "efrit" / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the subcommands of a command, with their parsers."""
    return {
        name: inner
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, inner in action.choices.items()
    }
