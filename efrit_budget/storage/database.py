"""The SQLite database: a connection per thread and one writer at a time."""

import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TypeVar

from efrit_budget.errors import StorageError
from efrit_budget.storage.migrate import migrate

T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000
"""The milliseconds that a write waits by default for another sidecar's write."""
CACHE_KIB = 8192
"""The most KiB of the file that a connection caches; a search of observations reads a few MiB."""
SHRINKING = "PRAGMA auto_vacuum = INCREMENTAL"
"""Lets the file shrink later, if it is set before the first page is written, or before VACUUM."""
JOURNAL_BYTES = 4 * 2**20
"""The bytes to which SQLite cuts the journal when it reuses the journal."""
LOCKED = "database is locked"
MARGIN_SECONDS = 1.0
"""The seconds beyond SQLite's timeout that a writer waits for writers of its own process."""


class Database:
    """Opens the file (mode 0600), migrates it, and runs transactions.

    The journal is a write-ahead log with `synchronous=NORMAL`: what was committed survives the
    death of any process; after a power cut the last commits may be missing, the file is whole.
    """

    def __init__(self, database: Path, busy_timeout_ms: int) -> None:
        path = self.path = database
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        self._writer = threading.Lock()
        self._lock = threading.Lock()
        self._connections: set[sqlite3.Connection] = set()
        self._closed = False
        self._in_use: set[sqlite3.Connection] = set()
        try:
            if not path.exists():
                self._make()
            _require_content(path)
            with self._used() as connection:
                migrate(connection)
            _make_private(path)
        except (sqlite3.DatabaseError, OSError) as error:
            self.close()
            raise StorageError(_explanation(error, path)) from error
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Run the block in a read transaction, which sees one state of the database.

        Inside a transaction of the same thread, it uses that transaction instead.
        """
        outer: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if outer is not None and outer.in_transaction:
            yield outer
            return
        with self._used() as connection:
            connection.execute("BEGIN DEFERRED")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, within_ms: int | None = None) -> Iterator[sqlite3.Connection]:
        """Run the block in a transaction; commit at its end, roll back if it raises.

        The block may itself roll back. Wait for other writers for `within_ms`, or as long as the
        settings say; then raise.
        """
        with self.alone(within_ms) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if connection.in_transaction:
                    connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def alone(self, within_ms: int | None = None) -> Iterator[sqlite3.Connection]:
        """Yield a connection without a transaction while no other thread of this process writes.

        Wait at most `within_ms` for those threads, and at most `within_ms` for other processes.
        """
        usual_seconds = self._busy_timeout_ms / 1000 + MARGIN_SECONDS
        seconds = usual_seconds if within_ms is None else within_ms / 1000
        with self._used() as connection:
            if not self._writer.acquire(timeout=seconds):
                raise sqlite3.OperationalError(LOCKED)
            try:
                if within_ms is not None:
                    connection.execute(f"PRAGMA busy_timeout = {within_ms:d}")
                yield connection
            finally:
                self._writer.release()
                if within_ms is not None:
                    connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms:d}")

    def snapshot(self, read: Callable[..., T]) -> Callable[..., T]:
        """Return `read` wrapped so that each call reads one state of the database."""

        @wraps(read)
        def reading(*arguments: object, **named: object) -> T:
            with self.reading():
                return read(*arguments, **named)

        return reading

    def close(self) -> None:
        """Close every connection; with the last, SQLite writes the journal into the file.

        A thread that still uses its connection closes it when it is done.
        """
        with self._writer, self._lock:
            self._closed = True
            for connection in self._connections - self._in_use:
                connection.close()
            self._connections.clear()
            self._local = threading.local()

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection, marked as in use; turn most SQLite errors into ours."""
        try:
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._open(self.path)
                with self._lock:
                    self._connections.add(connection)
            with self._lock:
                outermost = connection not in self._in_use
                self._in_use.add(connection)
            try:
                yield connection
            finally:
                if outermost:
                    with self._lock:
                        self._in_use.discard(connection)
                        if self._closed:
                            self._connections.discard(connection)
                            connection.close()
                            self._local.__dict__.clear()
        except (sqlite3.DatabaseError, OSError) as error:
            if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
                raise
            raise StorageError(_explanation(error, self.path)) from error

    def _make(self) -> None:
        """Create the database under a temporary name, readable by its owner alone; rename it.

        So no process sees an empty file, which `_require_content` takes for a lost database.
        SQLite gives the journal's files the same mode.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.path.with_name(f".{secrets.token_hex(8)}.unfinished")
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with closing(sqlite3.connect(unfinished)) as connection:
                connection.execute(SHRINKING)
                connection.execute("PRAGMA journal_mode = WAL")
            with closing(self._open(unfinished)) as connection:
                migrate(connection)
            _link_in_place(unfinished, self.path)
        finally:
            unfinished.unlink(missing_ok=True)

    def _open(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms:d}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES:d}")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB:d}")


def _link_in_place(unfinished: Path, path: Path) -> None:
    """Rename the new file to `path`, unless another sidecar has created `path` meanwhile."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not path.exists():
            unfinished.rename(path)


def _require_content(path: Path) -> None:
    """Raise if the file is empty: SQLite would silently begin a new database in it.

    The file is not opened: closing it would release SQLite's locks on it in this whole process,
    and the next process to end would remove the journal while this process writes to it.
    """
    found = path.stat()
    if stat.S_ISREG(found.st_mode) and not found.st_size:
        raise StorageError(
            f"the database {path} is empty: what it held is gone from it; restore it from a "
            "backup, or remove the file to begin anew"
        )


def _make_private(path: Path) -> None:
    """Remove other users' permissions, which older versions gave, from a file of our own.

    The file is not opened, for the reason given at `_require_content`.
    """
    found = path.stat()
    own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if own and found.st_mode & 0o077:
        path.chmod(0o600)


REMEDIES = {
    LOCKED: "another process holds it; try again, or raise storage.busy_timeout_ms",
    "database or disk is full": "free some space; what was answered before is safe",
    "disk I/O error": "free some space and see whether the disk is well",
    "unable to open database file": "see that its folder exists and is yours, or use --db",
    "file is not a database": "move that file away, or name another with --db",
    "database disk image is malformed": "restore it from a backup, or move it away to begin anew",
    "attempt to write a readonly database": "make it writable, or name another with --db",
}


def _explanation(error: Exception, path: Path) -> str:
    problem = str(error)
    remedy = REMEDIES.get(problem, "run 'efrit-budget doctor' to see what is wrong")
    return f"the database {path} cannot be used: {problem}; {remedy}"
