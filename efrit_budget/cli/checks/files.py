"""Check the database, the folders and the free disk space."""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from efrit_budget.cli.checks.check import Check
from efrit_budget.storage.migrate import (
    APPLICATION_ID,
    application_id,
    missing_parts,
    newest,
    version,
)
from efrit_budget.storage.space import space_of

_LEAST_FREE_BYTES: Final = 256 * 2**20


def check_database(path: Path) -> Iterator[Check]:
    """Check whether the database opens, is ours, complete and private, and how much is in use."""
    if not path.exists():
        yield Check("database", f"{path} will be made at the first use")
        return
    try:
        yield from _check_contents(path)
    except sqlite3.Error as error:
        yield Check("database", f"{path}: {error}", _recreate_advice(path))
    yield _check_mode(path)


def _check_contents(path: Path) -> Iterator[Check]:
    if path.is_file() and not path.stat().st_size:
        yield Check("database", f"{path} is empty: what it held is gone", _recreate_advice(path))
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        schema = version(connection)
        if application_id(connection) != APPLICATION_ID:
            yield Check("database", f"{path}: another program made it", "name another with --db")
            return
        verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        missing = missing_parts(connection)
        found = space_of(connection)
    if missing:
        verdict = f"it has lost {', '.join(missing)}"
    whole = verdict == "ok"
    yield Check("database", f"{path}: {verdict}", None if whole else _recreate_advice(path))
    known = schema <= newest()
    yield Check(
        "database schema",
        f"{schema} (this efrit-budget knows up to {newest()})",
        None if known else "upgrade efrit-budget, or name another database with --db",
    )
    sizes = f"{found.size / 2**20:,.1f} MiB, {found.used / 2**20:,.1f} MiB of it in use"
    how = "its file shrinks when a session begins, or 'efrit-budget sessions purge' ends"
    yield Check("database size", sizes, how if found.is_worth_shrinking else None, required=False)


def _recreate_advice(path: Path) -> str:
    return f"restore it from a backup, or begin anew: mv '{path}' '{path}.broken'"


def _check_mode(path: Path) -> Check:
    mode = stat.S_IMODE(path.stat().st_mode)
    private = mode & 0o077 == 0
    return Check(
        "database mode",
        f"{mode:04o}" + ("" if private else ", others may read or write it"),
        None if private else f"run: chmod 600 '{path}'",
        required=False,
    )


def check_folder(name: str, folder: Path, *, required: bool = True) -> Check:
    """Check whether files can be made in a folder, or the folder itself can be made."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    problem = _cannot_write(existing)
    suffix = "" if existing == folder else " will be made"
    if problem is None:
        return Check(name, f"{folder}{suffix}")
    fix = f"make {existing} a folder that you may write in, or set EFRIT_BUDGET_HOME"
    return Check(name, f"{folder}: {problem}", fix, required=required)


def _cannot_write(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} may not be written in"
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return None


def check_disk(folder: Path) -> Check:
    """Check the free disk space for the database."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    enough = free >= _LEAST_FREE_BYTES
    return Check(
        "free disk",
        f"{free / 2**30:,.1f} GiB on {existing}",
        None
        if enough
        else "free at least 256 MiB; 'efrit-budget sessions purge ID' makes the database smaller",
    )
