"""Tests of cutting byte streams into messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from efrit_budget.wire.framing import Framer, Framing, Malformed, Message, dress
from tests.connection import framed
from tests.sidecar import Sidecar
from tests.soak import amount
from tests.wire.streams import (
    CUTS,
    GARBAGE,
    LIMIT,
    Part,
    answered_ids,
    drive,
    ping,
    split,
    streams,
)


def _pieces(*data: bytes, limit: int = LIMIT) -> list[Message | Malformed]:
    return list(drive(Framer(limit), data))


def _errors(pieces: list[Message | Malformed]) -> list[str]:
    return [piece.error.message for piece in pieces if isinstance(piece, Malformed)]


@pytest.mark.parametrize("framing", list(Framing))
def test_a_message_comes_out_as_it_was_dressed(framing: Framing) -> None:
    body = '{"jsonrpc":"2.0","method":"é"}'.encode()
    assert _pieces(dress(body, framing)) == [Message(body, framing)]


def test_both_framings_may_follow_one_another() -> None:
    data = framed(ping(1)) + framed(ping(2), "line") + framed(ping(3)) + framed(ping(4), "line")
    pieces = _pieces(data)
    assert answered_ids(pieces) == [1, 2, 3, 4]
    assert [p.framing.value for p in pieces] == ["header", "line", "header", "line"]


def test_blank_lines_between_messages_are_nothing() -> None:
    blank = b"\r\n \t\n"
    data = blank + framed(ping(1), "line") + blank + framed(ping(2)) + blank * 3
    assert answered_ids(_pieces(data)) == [1, 2]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\n\n",
        b"Content-Length : \t%d \r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n",
        b"Content-Length: 0%d\r\nContent-Length: %d\r\n\r\n",
        b"X-Content-Length: 7\r\nContent-Length: %d\r\n\r\n",
    ],
)
def test_a_header_is_read_whatever_its_case_spaces_and_company(header: bytes) -> None:
    body = ping(1)
    head = header.replace(b"%d", str(len(body)).encode())
    assert _pieces(head + body) == [Message(body, Framing.HEADER)]


def test_the_last_line_needs_no_newline() -> None:
    assert answered_ids(_pieces(ping(7))) == [7]


@pytest.mark.parametrize(
    "data", [b"Content-Le", b"Content-Length: 9", b"Content-Length: 9\r\n\r\nab"]
)
def test_a_stream_that_ends_inside_a_message_says_so(data: bytes) -> None:
    pieces = _pieces(data)
    assert answered_ids(pieces) == []
    assert len(pieces) == 1


def test_a_length_that_is_too_large_swallows_the_next_header_and_then_is_in_step() -> None:
    body = ping(1)
    broken = b"Content-Length: %d\r\n\r\n%s" % (len(body) + 9, body)
    pieces = _pieces(broken, *(framed(ping(i)) for i in (2, 3, 4)))
    assert answered_ids(pieces) == [2, 3, 4]


def test_a_length_that_is_too_small_is_in_step_at_the_next_header() -> None:
    body = ping(1)
    broken = b"Content-Length: %d\r\n\r\n%s" % (len(body) - 9, body)
    pieces = _pieces(broken, *(framed(ping(i)) for i in (2, 3, 4)))
    assert answered_ids(pieces) == [2, 3, 4]


def test_a_pretty_printed_body_with_a_wrong_length_is_reported_once() -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "params": list(range(50))}, indent=1).encode()
    broken = b"Content-Length: 20\r\n\r\n" + body
    pieces = _pieces(broken + framed(ping(2)))
    assert len(pieces) == 2
    assert answered_ids(pieces) == [2]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00",
        b"\x00\xff\x00",
        b"oops",
        b"warning: unterminated",
        b"}}}",
        b"Content-Length: 12",
        b"Content-Length: 12\r",
        b"Content-Length: 12\r\nCont",
        b"Content-Length: 12\r\n\r",
        b"Content-Le",
    ],
)
def test_garbage_glued_to_a_header_costs_no_message_after_it(garbage: bytes) -> None:
    pieces = _pieces(garbage + b"".join(framed(ping(i)) for i in range(1, 5)))
    assert answered_ids(pieces) == [1, 2, 3, 4]
    assert len(pieces) > 4, "the garbage is reported"


def test_a_line_that_lacks_its_newline_before_a_header_is_answered() -> None:
    pieces = _pieces(ping(1) + framed(ping(2)))
    assert answered_ids(pieces) == [1, 2]


def test_a_body_that_mentions_a_header_is_no_header() -> None:
    text = "GET /\r\nContent-Length: 12\r\n\r\nbody, Content-Length: 5"
    data = framed(ping(1, text), "line") + framed(ping(2, text))
    assert answered_ids(_pieces(data)) == [1, 2]
    assert len(_pieces(data)) == 2


@pytest.mark.parametrize("framing", ["header", "line"])
def test_a_message_over_the_limit_is_refused_and_the_stream_stays_in_step(framing: str) -> None:
    large = framed(ping(1, "x" * LIMIT), framing)
    pieces = _pieces(large + framed(ping(2), framing) + framed(ping(3)))
    assert answered_ids(pieces) == [2, 3]
    assert len(_errors(pieces)) == 1
    refused = pieces[0]
    assert isinstance(refused, Malformed)
    assert refused.error.code == -32600
    assert refused.error.data == {"limit": LIMIT}
    assert refused.framing.value == framing


@pytest.mark.parametrize("framing", ["header", "line"])
def test_a_message_of_just_the_limit_is_taken(framing: str) -> None:
    body = ping(1, "x" * (LIMIT - len(ping(1))))
    assert len(body) == LIMIT
    assert answered_ids(_pieces(framed(body, framing))) == [1]
    longer = ping(1, "x" * (LIMIT + 1 - len(ping(1))))
    assert answered_ids(_pieces(framed(longer, framing))) == []


def test_a_message_over_the_limit_is_never_held_in_memory() -> None:
    framer = Framer(LIMIT)
    list(framer.feed(b"Content-Length: 1000000\r\n\r\n"))
    for _ in range(100):
        assert list(framer.feed(b"x" * 10_000)) == []
        assert len(framer._buffer) == 0
    assert answered_ids(drive(framer, [framed(ping(1))])) == [1]


@pytest.mark.parametrize(
    "block",
    [
        b"Content-Length: 5\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"Content-Length: 5\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
        b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        b"a" * 100_000 + b"\r\n",
    ],
)
def test_a_header_without_an_end_is_refused_once(block: bytes) -> None:
    pieces = _pieces(block + framed(ping(1)) + framed(ping(2)) + framed(ping(3)), limit=2**20)
    assert len(_errors(pieces)) == 1
    assert answered_ids(pieces)[-2:] == [2, 3]


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (b"Content-Length: x\r\n\r\n", "its length is not a number"),
        (b"Content-Length: -1\r\n\r\n", "its length is not a number"),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "it has two lengths"),
        (b"Content-Type: x\r\n\r\n", "it has no length"),
        (b"Content-Length: 5\r\n{}\n", "it ends without an empty line"),
    ],
)
def test_a_broken_header_is_told_by_what_is_wrong_with_it(block: bytes, problem: str) -> None:
    pieces = _pieces(block + framed(ping(1)))
    assert _errors(pieces) == [f"a header block: {problem}"]
    assert answered_ids(pieces) == [1]


def test_a_line_of_garbage_is_answered_in_the_framing_of_the_last_message() -> None:
    assert [p.framing for p in _pieces(framed(ping(1)) + b"oops\n")][-1] is Framing.HEADER
    assert [p.framing for p in _pieces(framed(ping(1), "line") + b"oops\n")][-1] is Framing.LINE


def _outcome(pieces: Iterator[Message | Malformed]) -> list[Any]:
    return [p if isinstance(p, Message) else (p.error.message, p.framing) for p in pieces]


@given(streams(), CUTS)
def test_any_split_of_a_stream_gives_the_same_messages(parts: list[Part], cuts: list[int]) -> None:
    data = b"".join(part.data for part in parts)
    whole = _outcome(drive(Framer(LIMIT), [data]))
    assert _outcome(drive(Framer(LIMIT), split(data, cuts))) == whole


@given(streams())
def test_a_stream_in_single_bytes_gives_the_same_messages(parts: list[Part]) -> None:
    data = b"".join(part.data for part in parts)
    whole = _outcome(drive(Framer(LIMIT), [data]))
    assert _outcome(drive(Framer(LIMIT), (bytes([byte]) for byte in data))) == whole


@settings(max_examples=amount(300, 10_000))
@given(streams(), CUTS)
def test_any_stream_loses_no_message_that_is_in_step(parts: list[Part], cuts: list[int]) -> None:
    data = b"".join(part.data for part in parts)
    pieces = list(drive(Framer(LIMIT), split(data, cuts)))
    wanted = [part.id for part in parts if part.id is not None]
    assert [found for found in answered_ids(pieces) if found in wanted] == wanted


@given(st.lists(st.one_of(GARBAGE, st.binary(max_size=3000)), max_size=6), CUTS)
def test_pure_garbage_ends_and_gives_less_than_it_was(data: list[bytes], cuts: list[int]) -> None:
    joined = b"".join(data)
    pieces = list(drive(Framer(LIMIT), split(joined, cuts)))
    assert len(pieces) <= len(joined) + 1
    assert sum(len(p.body) for p in pieces if isinstance(p, Message)) <= len(joined)


class _CountingBuffer(bytearray):
    """A buffer that counts the bytes that are searched in it."""

    searched = 0

    def find(self, sub: Any, start: Any = None, end: Any = None) -> int:
        """Search as a bytearray does."""
        found = super().find(sub, start, end)
        self.searched += (len(self) if found < 0 else found + 1) - (start or 0)
        return found


@pytest.mark.parametrize("broken_before", [False, True])
@pytest.mark.parametrize("text", [b'{"a":"' + b"x" * 100_000, b"[" * 100_000, b"1\n\n" * 30_000])
def test_each_byte_is_searched_a_bounded_number_of_times(
    text: bytes, *, broken_before: bool
) -> None:
    framer = Framer(2**20)
    if broken_before:
        framer.lose_step()
    buffer = _CountingBuffer()
    framer._buffer = buffer
    for index in range(len(text)):
        for _ in framer.feed(text[index : index + 1]):
            pass
    assert framer._buffer is buffer
    assert buffer.searched <= 3 * len(text)


def test_a_large_message_in_small_pieces_is_soon_read() -> None:
    body = ping(1, "y" * 8_000_000)
    data = framed(body)
    pieces = (data[i : i + 64] for i in range(0, len(data), 64))
    assert answered_ids(drive(Framer(2**24), pieces)) == [1]


def test_many_small_lines_in_one_piece_are_soon_read() -> None:
    data = b"".join(framed(ping(i), "line") + b"\n" for i in range(1, 100_001))
    assert len(list(Framer(2**24).feed(data))) == 100_000


@settings(max_examples=amount(3, 50))
@given(st.tuples(*(streams(first_id=100 * number) for number in range(1, 9))))
def test_the_real_process_answers_what_is_in_step_and_ends_cleanly(
    home: object, many: tuple[list[Part], ...]
) -> None:
    parts = [part for stream in many for part in stream]
    with Sidecar(env={"EFRIT_BUDGET_WIRE__MAX_MESSAGE_BYTES": str(LIMIT)}) as sidecar:
        sidecar.send_bytes(b"".join(part.data for part in parts))
        assert sidecar.finish() == 0
        replies = sidecar.replies
    ids = [reply["id"] for reply in replies if isinstance(reply, dict)]
    wanted = [part.id for part in parts if part.id is not None]
    assert sorted(i for i in ids if i in wanted) == wanted
    assert not [reply for reply in replies if "-32603" in json.dumps(reply)]
