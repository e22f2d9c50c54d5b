"""Load settings and create the application from the command line's flags."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from efrit_budget.cli.output import complain

if TYPE_CHECKING:
    from efrit_budget.app import Application
    from efrit_budget.settings.load import LoadedSettings


def loaded_settings(
    arguments: argparse.Namespace, project_root: Path | None = None
) -> "LoadedSettings":
    """Return the settings, in which the flags outrank all else; print the settings' warnings."""
    from efrit_budget.settings.load import load

    flags = {"storage.database": None if arguments.db is None else str(arguments.db)}
    loaded = load(project_root=project_root, overrides=flags, override_origin="command line")
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    return loaded


@contextmanager
def opened_application(arguments: argparse.Namespace) -> Iterator["Application"]:
    """Yield the application with its log started, ready for calls; close it afterwards."""
    from efrit_budget.app import open_application, start_logging

    loaded = loaded_settings(arguments)
    start_logging(loaded, verbose=arguments.verbose)
    application = open_application(loaded)
    try:
        yield application
    finally:
        application.close()
