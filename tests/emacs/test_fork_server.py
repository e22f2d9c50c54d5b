"""Emacs sees a child of the fork server like the program itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emacs.batch import ROOT
from tests.processes import alive, until

SCRIPTS = ROOT / "tests" / "elisp"


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The socket of a running server."""
    command = [sys.executable, str(SCRIPTS / "fork_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        socket = Path(process.stdout.readline().decode().strip())
        yield socket
        process.stdin.close()
    assert process.returncode == 0
    assert not socket.parent.exists()


def start(server: Path, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    """Start a child, through its client."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(SCRIPTS / "forked.py"), str(server), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables},
    )


def child_of(server: Path, client: subprocess.Popen[bytes]) -> int:
    """Return the process id of a client's child, once it runs."""
    file = server.parent / str(client.pid)
    assert until(file.exists)
    return int(file.read_text())


def test_it_has_the_arguments_the_environment_and_the_streams(server: Path, tmp_path: Path) -> None:
    with start(server, "config", "budget.total", EFRIT_BUDGET_HOME=str(tmp_path)) as own:
        told, _ = own.communicate()
    assert own.returncode == 0
    assert b"budget.total = 100000" in told
    with start(server, "no-such-command") as wrong:
        _, complaint = wrong.communicate()
    assert wrong.returncode == 2
    assert b"no-such-command" in complaint


def test_it_ends_with_its_input_as_the_sidecar_does(server: Path, tmp_path: Path) -> None:
    with start(server, "serve", EFRIT_BUDGET_HOME=str(tmp_path)) as client:
        told, _ = client.communicate(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    assert b'"id":1' in told.replace(b" ", b"")
    assert client.returncode == 0


def test_it_dies_with_its_client(server: Path, tmp_path: Path) -> None:
    with start(server, "serve", EFRIT_BUDGET_HOME=str(tmp_path)) as client:
        child = child_of(server, client)
        client.kill()
    assert until(lambda: not alive(child))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGUSR1])
def test_its_client_ends_by_the_signal_that_ended_it(
    server: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with start(server, "serve", EFRIT_BUDGET_HOME=str(tmp_path)) as client:
        os.kill(child_of(server, client), number)
        client.wait()
    assert client.returncode == -number


def test_a_signal_to_its_client_is_passed_on(server: Path) -> None:
    with start(server, "demo-model", "--no-key") as client:
        assert client.stdout is not None
        assert client.stdout.readline().startswith(b"http://")
        client.send_signal(signal.SIGTERM)
        assert client.wait() == 0
