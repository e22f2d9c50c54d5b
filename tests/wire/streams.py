"""Byte streams as a confused or hostile client makes them, for hypothesis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from efrit_budget.errors import ParseError
from efrit_budget.wire import jsontext
from efrit_budget.wire.framing import Framer, Framing, Malformed, Message, Piece
from tests.connection import framed

LIMIT = 4096


@dataclass(frozen=True)
class Part:
    """A piece of a stream: garbage, or (where there is an id) a message to be answered."""

    data: bytes
    id: int | None = None


def ping(request_id: int, padding: str = "") -> bytes:
    """Return a valid request with some padding."""
    member = {"jsonrpc": "2.0", "id": request_id, "method": "ping", "x": padding}
    return json.dumps(member).encode()


def drive(framer: Framer, data: Iterable[bytes]) -> Iterator[Piece]:
    """Drive a framer as the server does: parse each message, and report one that is broken."""
    for piece in data:
        yield from _told(framer, framer.feed(piece))
    yield from _told(framer, framer.finish())


def _told(framer: Framer, pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if isinstance(piece, Malformed):
            yield piece
            continue
        try:
            jsontext.parse(piece.body)
        except ParseError:
            if piece.framing is Framing.HEADER and not piece.stray:
                framer.lose_step()
        else:
            if piece.stray:
                framer.regain_step()
        yield piece


def answered_ids(pieces: Iterable[Piece]) -> list[Any]:
    """Return the ids of the requests among the pieces, in order."""
    return [found for piece in pieces if (found := _id_in(piece)) is not None]


def _id_in(piece: Piece) -> Any:
    if not isinstance(piece, Message):
        return None
    try:
        value = jsontext.parse(piece.body)
    except ParseError:
        return None
    return value.get("id") if isinstance(value, dict) else None


def split(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Split the data at these places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[i:j] for i, j in zip([0, *places], [*places, len(data)], strict=True)]


CUTS = st.lists(st.integers(0, 10_000), max_size=8)

_deep = st.integers(1, 3000).map(lambda depth: b"[" * depth + b"]" * depth)
_text = st.text(max_size=30).map(lambda text: text.encode(errors="replace"))
_broken_json = st.sampled_from(
    [
        b"{",
        b"}",
        b"[NaN]",
        b'{"id":Infinity}',
        b"[1e999]",
        b'["\\ud800"]',
        b'["\xff\xfe"]',
        b"[1,2,3]",
        b"[]",
        b"null",
        b"1",
        b"{}",
        b'{"jsonrpc":"2.0","method":1}',
        b'{"jsonrpc":"2.0","method":"foobar, "params":"bar","baz]',
        b'{\n "jsonrpc": "2.0",\n "method": 5\n}',
        b"",
    ]
)
_bodies = st.one_of(_broken_json, _deep, st.binary(max_size=40), _text)
_headers = st.sampled_from(
    [
        b"Content-Length: \r\n\r\n",
        b"Content-Length: abc\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: 7\r\nContent-Length: 8\r\n\r\n",
        b"Content-Type: text/plain\r\n\r\n",
        b"Content-Length: 5",
        b"Content-Length: 5\r\n",
        b"Content-Length: 5\r\nX",
        b"Content-Le",
        b"content-length : 3 \n\nabc",
        b"POST / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"warning: something\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"X: " + b"a" * 9000,
        b"Content-Length: 5\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"z" * 9000,
        b"\r\n\r\n",
    ]
)


@st.composite
def _wrong_lengths(draw: st.DrawFn) -> bytes:
    """A message whose header is wrong by too few bytes to hide the next message."""
    body = draw(st.one_of(_bodies, st.just(ping(0))))
    length = max(0, len(body) + draw(st.integers(-20, 20)))
    return b"Content-Length: %d\r\n\r\n%s" % (length, body)


GARBAGE = st.one_of(
    _bodies,
    _headers,
    _wrong_lengths(),
    _bodies.map(framed),
    _bodies.map(lambda body: framed(body, "line")),
    st.binary(max_size=200),
    st.just(b"[" + b"1," * LIMIT + b"1]\n"),
    st.just(framed(b"[" + b"1," * LIMIT + b"1]")),
)


_PADDINGS = st.sampled_from(
    ["", "é", '"\\', "line\r\nContent-Length: 5\r\n\r\n", "{[", "\0\x7f", "x" * 1000, "🙂"]
)
_VALID = st.tuples(_PADDINGS, st.sampled_from(["header", "line"]))


def streams(first_id: int = 1) -> st.SearchStrategy[list[Part]]:
    """Valid messages with ids from `first_id` on, and garbage between them.

    After each garbage come two sacrifices: messages that may be lost in the breakage, and bring the
    stream in step again at the latest.
    """
    made = st.lists(st.one_of(_VALID, _VALID, GARBAGE), min_size=1, max_size=8)
    return made.map(lambda choices: list(_parts(choices, first_id)))


def _parts(choices: list[tuple[str, str] | bytes], first_id: int) -> Iterator[Part]:
    for request_id, choice in enumerate(choices, first_id):
        if isinstance(choice, bytes):
            yield Part(choice)
            yield from [Part(framed(ping(-1)))] * 2
        else:
            padding, framing = choice
            yield Part(framed(ping(request_id, padding), framing), request_id)
