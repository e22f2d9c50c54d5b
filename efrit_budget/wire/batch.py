"""Collect the replies of a batch and send them as one."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Batch:
    """Collects replies and sends them when the last has arrived."""

    def __init__(self, members: int, send: Callable[[bytes], None]) -> None:
        self._missing = members
        self._send = send
        self._lock = threading.Lock()
        self._replies: list[bytes] = []

    def take(self, reply: bytes | None) -> None:
        """Take one member's reply as JSON text; None where it was a notification."""
        with self._lock:
            self._missing -= 1
            if reply is not None:
                self._replies.append(reply)
            whole = self._missing == 0 and bool(self._replies)
        if whole:
            self._send(b"[" + b",".join(self._replies) + b"]")
