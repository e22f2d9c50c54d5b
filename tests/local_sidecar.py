"""A sidecar in the test's own process: the wire's own code between two pipes, on two threads."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Final, Self
from unittest.mock import patch

from efrit_budget import app
from efrit_budget.settings.load import load
from efrit_budget.tools import registry
from efrit_budget.wire.dispatch import Dispatcher
from efrit_budget.wire.server import Application, Server
from efrit_budget.wire.stdio import ProtocolStreams
from tests.connection import TIMEOUT, Connection
from tests.databases import copy_template

TOOLS_FOR_TESTS: Final = Path(__file__).parent / "tools_for_tests"
_load_anew = registry._load
_load_once = functools.cache(registry._load)


def _load_tool(file: Path) -> ModuleType:
    """Load the file of a tool; those for tests do not change."""
    return _load_once(file) if file.parent == TOOLS_FOR_TESTS else _load_anew(file)


class LocalSidecar(Connection):
    """A sidecar without a process, with the same settings, database and requests as a process.

    It has no signals, no watchdog, no standard error and no log of its own; tests of these start a
    `Sidecar`.
    """

    def __init__(self) -> None:
        theirs, to_sidecar = os.pipe()
        from_sidecar, ours = os.pipe()
        super().__init__(os.fdopen(to_sidecar, "wb"), os.fdopen(from_sidecar, "rb"))
        self._opened: list[app.Application] = []
        self._descriptors = theirs, ours
        self._server = Server(self._load, ProtocolStreams(theirs, ours))
        self._thread = threading.Thread(target=self._serve, name="local sidecar", daemon=True)
        self._thread.start()
        self.start_reading()

    def _load(self) -> Application:
        loaded = load()
        copy_template(loaded.settings.storage.database)
        with patch.object(registry, "_load", _load_tool):
            self._opened.append(app.open_application(loaded))
        wire = vars(loaded.settings.wire)
        return Application(Dispatcher(self._opened[0].methods), **wire)

    def _serve(self) -> None:
        self._server.serve()
        for application in self._opened:
            application.close()
        for descriptor in self._descriptors:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return the sidecar."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End it as a client does, and leave no stray byte unnoticed."""
        self.close_stdin()
        self._thread.join(TIMEOUT)
        self.wait_until_read()
        self.stdout.close()
        if kind is None:
            assert not self._thread.is_alive(), "the sidecar did not end"
            self.check()
