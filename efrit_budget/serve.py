"""Serve one connection; load the application after answering `initialize`."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from efrit_budget.project.processes.groups import stop_all_groups
from efrit_budget.wire import server
from efrit_budget.wire.stdio import take_standard_streams

if TYPE_CHECKING:
    from efrit_budget.app import Application
    from efrit_budget.settings.load import LoadedSettings


def serve(load_settings: Callable[[], LoadedSettings], *, verbose: bool) -> int:
    """Serve over standard input and output until they end; raise if loading fails."""
    streams = take_standard_streams()
    opened: list[Application] = []

    def load() -> server.Application:
        from efrit_budget.app import open_application, start_logging  # noqa: PLC0415  see above
        from efrit_budget.project.processes import own_process  # noqa: PLC0415
        from efrit_budget.wire.dispatch import Dispatcher  # noqa: PLC0415

        own_process.return_freed_memory()
        own_process.forget_keys()
        loaded = load_settings()
        start_logging(loaded, verbose=verbose)
        opened.append(open_application(loaded))
        gc.freeze()  # what is loaded stays, so no collection in a call has to look at it
        wire = vars(loaded.settings.wire)
        return server.Application(Dispatcher(opened[0].methods), **wire)

    code = server.Server(load, streams).run(on_exit=stop_all_groups)
    for application in opened:
        application.close()
    logging.shutdown()
    # Threads that would not stop are left behind here; the database was closed under its lock.
    os._exit(code)
