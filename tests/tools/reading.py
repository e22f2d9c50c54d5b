"""Calls of `read_file`, and functions that parse its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.connection import Connection

Read = Callable[..., dict[str, Any]]


def reader(sidecar: Connection, session: str) -> Read:
    """Return a function that calls `read_file` with its arguments."""
    uses = iter(range(100_000))

    def call(confirm_id: str | None = None, use: str = "", **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = sidecar.request(
            "tools/call",
            session_id=session,
            name="read_file",
            arguments=arguments,
            tool_use_id=use or f"use-{next(uses)}",
            confirm_id=confirm_id,
        )
        return found

    return call


def pages_of(read: Read, **arguments: Any) -> Iterator[dict[str, Any]]:
    """Yield every page, from the first on."""
    envelope = read(**arguments)
    yield envelope
    limit = {"max_tokens": arguments["max_tokens"]} if "max_tokens" in arguments else {}
    while "continuation_token" in envelope["data"]:
        envelope = read(continuation_token=envelope["data"]["continuation_token"], **limit)
        yield envelope


def lines_in(envelope: dict[str, Any]) -> list[str]:
    """Return the lines of the text that have a number."""
    return [line for line in envelope["text"].splitlines() if "\t" in line]


def numbers_in(envelope: dict[str, Any]) -> list[int]:
    """Return the numbers at the beginning of the lines."""
    return [int(line.partition("\t")[0]) for line in lines_in(envelope)]


def numbered(count: int) -> str:
    """Return a text of this many lines."""
    return "".join(f"line {number}\n" for number in range(1, count + 1))
