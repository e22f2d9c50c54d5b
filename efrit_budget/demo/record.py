"""The record of requests and their answers."""

import json
import os
import threading
from pathlib import Path

from efrit_budget.errors import JsonObject

NOWHERE = Path(os.devnull)


class Recorder:
    """Logs each request and its answer as JSON lines, without keys."""

    def __init__(self, file: Path | None) -> None:
        self._file = (file or NOWHERE).open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, line: JsonObject) -> None:
        """Write a record as a line, and flush it."""
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
