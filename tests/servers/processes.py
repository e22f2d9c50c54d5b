"""Servers of others, each a process in an environment of its own."""

from __future__ import annotations

import http.client
import os
import pwd
import random
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.emacs.batch import ROOT
from tests.processes import until

SECONDS = 300
"""The seconds in which a server must have started."""


def environment_of(name: str) -> Path:
    """Return the folder of a server's environment; `.ci/servers` makes it if need be."""
    # What a person's own settings of pip and npm say holds, though tests have another home.
    own = os.environ | {"HOME": pwd.getpwuid(os.getuid()).pw_dir}
    made = subprocess.run(
        [ROOT / ".ci" / "servers", name], stdout=subprocess.PIPE, text=True, check=False, env=own
    )
    assert made.returncode == 0, f".ci/servers {name} failed: what it said is above"
    return Path(made.stdout.strip())


@contextmanager
def process(
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a server with a folder for its home, and end it; yield it and the file of its output."""
    path = {name: os.environ[name] for name in ("PATH", "LC_ALL") if name in os.environ}
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "output"
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env={**path, "HOME": str(folder), "TMPDIR": str(folder), **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield running, log
    finally:
        running.terminate()
        try:
            running.wait(timeout=30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def reserved_port() -> int:
    """Return a free port that the system gives nobody who asks for any."""
    while True:
        with socket.socket() as probe:
            port = random.randrange(20_000, 32_000)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def first_line(running: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the first line of a server's output, its address, and return it."""
    assert until(lambda: running.poll() is not None or b"\n" in log.read_bytes(), SECONDS)
    line = log.read_text(encoding="utf-8").partition("\n")[0]
    assert line.startswith("http://127.0.0.1:"), log.read_text(encoding="utf-8")
    return line


def await_answer(running: subprocess.Popen[bytes], log: Path, url: str) -> None:
    """Wait until a server answers at an address; fail with what it wrote if it ends or does not."""

    def is_up() -> bool:
        return running.poll() is not None or answers(url)

    assert until(is_up, SECONDS, 0.1), f"it did not start: {log.read_text(errors='replace')}"
    assert running.poll() is None, f"it ended: {log.read_text(errors='replace')}"


def answers(url: str) -> bool:
    """Return whether a GET of an address gets the status 200."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=10)
    try:
        connection.request("GET", place.path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
