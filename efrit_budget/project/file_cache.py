"""Cache values that were computed from files, until one of the files changes."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

SETTLED_NS = 2_000_000_000
"""Nanoseconds after a change during which a file may change again with the same timestamp."""
MOST_KEPT = 50

Stamp = tuple[int, int, int, int] | None
"""Device, inode, size and time of the last change; None if there is no such file."""
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass
class Sources:
    """The files that a value depends on, each with its stamp from before it was read."""

    stamps: dict[Path, Stamp] = field(default_factory=dict)
    complete: bool = True
    """False if the value depends on more than these files; the value is not cached then."""

    def add(self, file: Path) -> Path:
        """Store the stamp of a file or folder that is about to be read, and return its path."""
        if file not in self.stamps:
            self.stamps[file] = _stamp(file)
        return file


class FileCache(Generic[Key, Value]):
    """Values by key; a value is computed again after one of its files changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[dict[Path, Stamp], Value]] = OrderedDict()

    def get(self, key: Key, find: Callable[[Sources], Value]) -> Value:
        """Return the cached value of a key, or find it; `find` stamps each file before it reads."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            stamps, value = kept
            if all(_stamp(file) == stamp for file, stamp in stamps.items()):
                return value
        sources, moment_ns = Sources(), time.time_ns()
        value = find(sources)
        latest = max((stamp[3] for stamp in sources.stamps.values() if stamp), default=0)
        if sources.complete and latest < moment_ns - SETTLED_NS:
            with self._lock:
                self._kept[key] = (sources.stamps, value)
                self._kept.move_to_end(key)
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return value


def _stamp(file: Path) -> Stamp:
    try:
        found = os.stat(file)  # noqa: PTH116  it is faster than Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns
