"""A proxy on loopback that passes bytes on late, as a network to a distant machine does."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MOST_BYTES = 1 << 16


class DelayingProxy:
    """Passes the bytes of each connection on to a port, `delay` seconds late in each direction."""

    def __init__(self, port: int, delay: float) -> None:
        self._target = port
        self._delay = delay
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close the proxy and break its connections."""
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                for source, target in ((near, far), (far, near)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._open.append(source)
                    self._pass_on(source, target)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        waiting: queue.Queue[tuple[float, bytes]] = queue.Queue()
        for work in (self._read, self._write):
            end = source if work == self._read else target
            threading.Thread(target=work, args=(end, waiting), daemon=True).start()

    def _read(self, source: socket.socket, waiting: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"x"
        while data:
            try:
                data = source.recv(MOST_BYTES)
            except OSError:
                data = b""
            waiting.put((time.monotonic() + self._delay, data))

    def _write(self, target: socket.socket, waiting: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"x"
        with suppress(OSError):
            while data:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def delayed(port: int, delay: float) -> Iterator[int]:
    """Yield a port that leads to `port`, `delay` seconds late in each direction."""
    proxy = DelayingProxy(port, delay)
    try:
        yield proxy.port
    finally:
        proxy.close()
