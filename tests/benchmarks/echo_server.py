"""The reference of the round-trip benchmark: jsonrpcserver behind Content-Length, no more.

Run as `python tests/benchmarks/echo_server.py`. `echo` gives its params back, `big` a
string of the size asked for.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

from jsonrpcserver import Result, Success, dispatch, method


@method
def echo(**params: object) -> Result:
    """Return the params."""
    return Success(params)


@method
def big(size: int) -> Result:
    """Return a string of SIZE characters."""
    return Success({"data": "x" * size})


def read_message(stream: BinaryIO) -> str | None:
    """Return the next message, or None at the end of the stream."""
    length = 0
    while (line := stream.readline()) not in {b"\r\n", b""}:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return stream.read(length).decode() if length else None


def main() -> None:
    """Answer until standard input ends."""
    while (message := read_message(sys.stdin.buffer)) is not None:
        if reply := dispatch(message):
            body = reply.encode()
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
