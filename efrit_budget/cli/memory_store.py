"""Open memory for the command line without loading the application."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from efrit_budget.cli.application import loaded_settings
from efrit_budget.cli.arguments import number_in

if TYPE_CHECKING:
    from efrit_budget.budget.plain import Cost
    from efrit_budget.memory.observation import Filters
    from efrit_budget.memory.store import MemoryStore

_PREFIX: Final = "EFRIT_BUDGET_"
natural = number_in(int, 0, 2**63 - 1, "{!r} is not a whole number of at least 0")
positive = number_in(int, 1, 2**63 - 1, "{!r} is not a whole number of at least 1")


@contextmanager
def opened_memory(arguments: argparse.Namespace) -> Iterator["MemoryStore"]:
    """Yield the memory in the database that flags or settings name; close it afterwards."""
    from efrit_budget.memory.store import MemoryStore
    from efrit_budget.storage.database import Database

    path, busy_timeout_ms, half_life_days = _effective_settings(arguments)
    database = Database(path, busy_timeout_ms)
    try:
        yield MemoryStore(database, half_life_days)
    finally:
        database.close()


def _effective_settings(arguments: argparse.Namespace) -> tuple[Path, int, float]:
    """Return database, timeout (ms) and half-life (days); load settings only if any are set."""
    from efrit_budget.memory.searching import HALF_LIFE_DAYS
    from efrit_budget.settings import places
    from efrit_budget.storage.database import BUSY_TIMEOUT_MS

    if places.config_file().exists() or any(
        name.startswith(_PREFIX) and name != places.HOME_VARIABLE for name in os.environ
    ):
        settings = loaded_settings(arguments).settings
        storage, half_life = settings.storage, settings.memory.half_life_days
        return storage.database, storage.busy_timeout_ms, half_life
    return arguments.db or places.database_file(), BUSY_TIMEOUT_MS, HALF_LIFE_DAYS


def add_filters(parser: argparse.ArgumentParser, project: str | None = None) -> None:
    """Add the flags that select memories; `project` is the default project."""
    default = "" if project is None else f" (default: that of this folder, {project})"
    parser.add_argument(
        "--project",
        metavar="P",
        default=project,
        help=f"only memories of this project; empty: all{default}".replace("%", "%%"),
    )
    parser.add_argument("--kind", metavar="K", help="only memories of this kind, such as decision")
    parser.add_argument(
        "--tag",
        metavar="T",
        action="append",
        default=[],
        help="only with this tag (repeatable)",
    )


def project_here() -> str:
    """Return the name of the repository that the current folder is in, else of that folder."""
    here = Path.cwd()
    roots = (folder for folder in (here, *here.parents) if (folder / ".git").exists())
    return next(roots, here).name


def filters_of(arguments: argparse.Namespace) -> "Filters":
    """Return the filters in the flags; an empty flag filters nothing."""
    from efrit_budget.memory.observation import Filters

    return Filters(
        project=arguments.project or None, kind=arguments.kind or None, tags=tuple(arguments.tag)
    )


def price() -> "Cost":
    """Return a function that counts a text's tokens: the higher of two estimates."""
    from efrit_budget.budget.estimate import estimate
    from efrit_budget.budget.plain import dearest

    return dearest(estimate)
