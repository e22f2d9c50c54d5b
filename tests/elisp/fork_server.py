"""Runs command lines of efrit-budget in children of a process that has loaded all of it.

Most of what a sidecar or a scripted model costs a test is the loading of its modules and the making
of its database. Here that is done once: a sidecar without a database in its usual place gets a copy
of an empty one. The server prints the name of a socket in a folder of its own, where `forked.py`,
which Emacs starts in place of the program, asks for a child, and gives it its process id,
arguments, environment, folder and standard streams. The child writes its own process id to a file
beside the socket that is named by the client's, and runs the program's own `main`. It takes the
signals that its client takes, the client ends as it ended, and it is killed when its client is
gone. The server ends with its standard input.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import pkgutil
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import BaseModel

import efrit_budget
from efrit_budget.__main__ import main
from efrit_budget.budget.prices import dollars
from efrit_budget.settings.places import HOME_VARIABLE, database_file
from efrit_budget.tools.registry import discover, schema
from efrit_budget.tools.validation import schema_problem

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from tests.databases import copy_template, template

LENGTH_BYTES = 4
SIGNAL_BYTES = 64


@dataclass(frozen=True)
class Request:
    """The request of a client."""

    client: int
    arguments: list[str]
    environment: dict[bytes, bytes]
    folder: bytes
    streams: list[int]


def receive(client: socket.socket) -> Request:
    """Read a client's request."""
    length, streams, _, _ = socket.recv_fds(client, LENGTH_BYTES, 3)
    left = int.from_bytes(length, "big")
    body = b""
    while left and (data := client.recv(left)):
        body += data
        left -= len(data)
    client_pid, arguments, environment, folder = marshal.loads(body)
    return Request(client_pid, arguments, environment, folder, streams)


def become(request: Request) -> NoReturn:
    """Become the requested program, in a session of its own like the processes of Emacs."""
    os.setsid()
    for number, descriptor in enumerate(request.streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # As with the interpreter's own, the end of the object does not close the descriptor.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(request.folder)
    os.environ.clear()
    os.environb.update(request.environment)
    sys.argv[1:] = request.arguments
    try:
        if "serve" in request.arguments and HOME_VARIABLE in os.environ:
            copy_template(database_file())
        code = main()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  the frames below are the server's
        traceback.print_exc()
        code = 1
    os._exit(code)


class ForkServer:
    """The children that run, and their clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen()
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    def run(self) -> None:
        """Serve until standard input ends, which happens when Emacs exits."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ, self._start)
        self._selector.register(self._woken, selectors.EVENT_READ, self._collect)
        print(self._listener.getsockname(), flush=True)
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                key.data()

    def _start(self) -> None:
        """Start a child for the next client."""
        client, _ = self._listener.accept()
        request = receive(client)
        pid = os.fork()
        if pid == 0:
            client.close()
            self._leave()
            self._note(request.client)
            become(request)
        for stream in request.streams:
            os.close(stream)
        self._clients[pid] = client
        self._selector.register(client, selectors.EVENT_READ, lambda: self._pass_on(pid))

    def _leave(self) -> None:
        """Close, in a child, everything that belongs to the server."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for source in (self._selector, self._listener, self._woken, self._waker):
            source.close()
        for client in self._clients.values():
            client.close()

    def _note(self, client_pid: int) -> None:
        """Write the id of this child to the file of its client, which is never seen unfinished."""
        unfinished = self._folder / f".{client_pid}"
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(self._folder / str(client_pid))

    def _pass_on(self, pid: int) -> None:
        """Send the child the signals that its client took; kill it if the client is gone."""
        if pid not in self._clients:
            return
        numbers = self._clients[pid].recv(SIGNAL_BYTES)
        for number in numbers or (signal.SIGKILL,):
            os.kill(pid, number)
        if not numbers:
            self._selector.unregister(self._clients[pid])

    def _collect(self) -> None:
        """Send the clients of ended children the exit codes."""
        self._woken.recv(SIGNAL_BYTES)
        for pid in list(self._clients):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._tell(self._clients.pop(pid), os.waitstatus_to_exitcode(status))

    def _tell(self, client: socket.socket, code: int) -> None:
        """Send a client the exit code or the negative number of a signal, unless it is gone."""
        with suppress(KeyError):
            self._selector.unregister(client)
        with suppress(BrokenPipeError):
            client.send(str(code).encode())
        client.close()


def models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Return all models there are; theirs are built when they are first used."""
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def load_everything() -> None:
    """Load and make what each child would, and keep it out of the collector's way."""
    for module in pkgutil.walk_packages(efrit_budget.__path__, "efrit_budget."):
        importlib.import_module(module.name)
    for model in models(BaseModel):
        model.model_rebuild()
    for tool in discover():
        schema_problem(schema(tool.arguments))
    dollars("claude-sonnet-5", {})
    template()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load_everything()
    with tempfile.TemporaryDirectory(prefix="efrit-fork-") as made:
        ForkServer(Path(made)).run()
