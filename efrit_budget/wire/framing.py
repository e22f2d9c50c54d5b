"""Split a byte stream into messages, and frame replies.

The first byte of a message tells its framing: a letter begins a header block, any other byte
begins a JSON text on one line. The framer does no input or output of its own, and looks at
each byte a bounded number of times, however few bytes it is fed at a time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from efrit_budget.errors import EfritError, InvalidRequestError, ParseError

HEADER_NAME = b"Content-Length"
MAX_HEADER_BYTES = 8 * 1024
BLANKS = b" \t\r\n"
BLANK_RUN = re.compile(rb"[ \t\r\n]+")
HEADER_LINE = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*:(.*)", re.DOTALL)
LENGTH_VALUE = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")
LENGTH_AT_END = re.compile(
    rb"(?<!-)content-length[ \t]*:[ \t]*[0-9]{1,18}[ \t]*\r?\Z", re.IGNORECASE
)
LENGTH_LINE_BYTES = 128
"""The last bytes of a line in which a length header behind other text is searched for."""


class Framing(Enum):
    """The ways to delimit a message."""

    HEADER = "header"
    LINE = "line"


@dataclass(frozen=True)
class Message:
    """One delimited message, not parsed yet.

    A `stray` message is a line between a broken message and the next header. If it is not JSON,
    it is ignored, as a part of the broken message, whose error was sent already.
    """

    body: bytes
    framing: Framing
    stray: bool = False


@dataclass(frozen=True)
class Malformed:
    """A part of the stream that is not a message, with the error to send for it."""

    error: EfritError
    framing: Framing


Piece = Message | Malformed


def dress(body: bytes, framing: Framing) -> bytes:
    """Return `body` with the header or the newline that delimits it on the wire."""
    if framing is Framing.LINE:
        return body + b"\n"
    return b"%s: %d\r\n\r\n%s" % (HEADER_NAME, len(body), body)


@dataclass
class _Header:
    """A header block that is being read."""

    size: int = 0
    lengths: tuple[bytes, ...] = ()

    def take(self, line: bytes) -> bool:
        """Add a line to the header block; return False if the line is not a header."""
        found = HEADER_LINE.fullmatch(line)
        if found is None:
            return False
        self.size += len(line)
        if found[1].lower() == HEADER_NAME.lower():
            self.lengths += (found[2],)
        return True

    def length(self) -> int:
        """Return the length of the body; raise `ParseError` if it is missing or invalid."""
        if not self.lengths:
            raise _header_error("it has no length")
        found = [LENGTH_VALUE.fullmatch(value) for value in self.lengths]
        stated = {int(match[1]) if match else -1 for match in found}
        if -1 in stated:
            raise _header_error("its length is not a number")
        if len(stated) > 1:
            raise _header_error("it has two lengths")
        return stated.pop()


class Framer:
    """Splits a stream into messages."""

    def __init__(self, max_message_bytes: int) -> None:
        self.max_bytes = max_message_bytes
        self._buffer = bytearray()
        self._scanned = 0
        self._header: _Header | None = None
        self._body_length: int | None = None
        self._skip_bytes = 0
        self._skip_line = False
        self._out_of_step = False
        self._last = Framing.LINE

    def lose_step(self) -> None:
        """Mark the stream as out of step: the last body was not JSON; its length may be wrong."""
        self._out_of_step = True

    def regain_step(self) -> None:
        """Mark the stream as in step again: the last stray message was JSON."""
        self._out_of_step = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield the messages, and the malformed parts, that `data` completes."""
        self._buffer += data
        while self._advance():
            yield from self._next()

    def finish(self) -> Iterator[Piece]:
        """Yield a last line that has no newline, or an error if the stream ends in a message."""
        if self._body_length is None and not self._skip_bytes:
            yield from self.feed(b"\n")
        if self._body_length is not None or self._header is not None:
            yield Malformed(ParseError("the stream ended inside a message"), Framing.HEADER)

    def _advance(self) -> bool:
        """Skip refused bytes and blanks; return whether `_next` has a body or a line to take."""
        if self._skip_bytes:
            self._skip_bytes -= len(self._take(min(self._skip_bytes, len(self._buffer))))
        if self._skip_line and self._line_end() >= 0:
            self._take(self._line_end() + 1)
            self._skip_line = False
        if self._skip_bytes or self._skip_line:
            self._take(len(self._buffer))
            return False
        if self._body_length is not None:
            return len(self._buffer) >= self._body_length
        if self._header is None and (blank := BLANK_RUN.match(self._buffer)):
            self._take(blank.end())
        return self._line_end() >= 0 or len(self._buffer) > self._line_limit()

    def _next(self) -> Iterator[Piece]:
        """Take one body or one line from the buffer; yield its message or error, if it has one."""
        if self._body_length is not None:
            length, self._body_length = self._body_length, None
            yield Message(self._take(length), Framing.HEADER)
        elif not 0 <= self._line_end() <= self._line_limit():
            yield from self._overlong()
        elif self._header is not None:
            yield from self._header_line(self._header)
        else:
            yield from self._first_line()

    # Lines

    def _line_end(self) -> int:
        """Return the buffer's index of the next newline, or -1; search each byte only once."""
        end = self._buffer.find(b"\n", self._scanned)
        self._scanned = len(self._buffer) if end < 0 else end
        return end

    def _line_limit(self) -> int:
        if self._in_header():
            return MAX_HEADER_BYTES - (self._header.size if self._header else 0)
        return self.max_bytes

    def _in_header(self) -> bool:
        return self._header is not None or (self._buffer[:1].isalpha() and not self._out_of_step)

    def _overlong(self) -> Iterator[Piece]:
        """Skip a line that is too long; yield an error for it unless the stream is out of step."""
        self._skip_line = True
        if self._out_of_step:
            return
        if self._in_header():
            self._header = None
            self._out_of_step = True
            yield Malformed(_header_error("it does not end"), self._last)
        else:
            yield self._too_big(f"a line of more than {self.max_bytes:,} bytes", Framing.LINE)

    def _first_line(self) -> Iterator[Piece]:
        """Yield the message on a line outside a header block, or begin a header block."""
        end = self._line_end()
        header_at = self._length_header_at(end)
        if header_at is not None and header_at > 0:
            body = self._take(header_at).strip(BLANKS)
            if not self._out_of_step or _looks_like_json(body):
                yield Message(body, Framing.HEADER, stray=self._out_of_step)
            self._out_of_step = False
        elif header_at == 0 or (self._in_header() and HEADER_LINE.match(self._buffer, 0, end)):
            self._header = _Header()
            self._out_of_step = False
        else:
            yield from self._line(self._take(end + 1).strip(BLANKS))

    def _length_header_at(self, end: int) -> int | None:
        """Return the index at which this line's length header begins, or None if it has none.

        No JSON text ends in such a header, so text before it is a message without its newline, or
        garbage; at the header the stream is in step again.
        """
        start = max(0, end - LENGTH_LINE_BYTES)
        found = LENGTH_AT_END.search(self._buffer, start, end)
        return None if found is None else found.start()

    def _line(self, body: bytes) -> Iterator[Piece]:
        if self._out_of_step:
            if _looks_like_json(body):
                yield Message(body, Framing.LINE, stray=True)
            return
        self._last = Framing.LINE if _looks_like_json(body) else self._last
        yield Message(body, self._last)

    # Headers

    def _header_line(self, header: _Header) -> Iterator[Piece]:
        """Add a line to the header block, which an empty line ends; yield an error if it is bad."""
        end = self._line_end()
        line = bytes(self._buffer[:end]).removesuffix(b"\r")
        if self._length_header_at(end) or (line and not header.take(line)):
            self._header = None
            yield Malformed(_header_error("it ends without an empty line"), Framing.HEADER)
            return
        self._take(end + 1)
        if not line:
            self._header = None
            yield from self._begin_body(header)

    def _begin_body(self, header: _Header) -> Iterator[Piece]:
        self._last = Framing.HEADER
        try:
            length = header.length()
        except ParseError as error:
            self._out_of_step = True
            yield Malformed(error, Framing.HEADER)
            return
        if length > self.max_bytes:
            self._skip_bytes = length
            yield self._too_big(f"a message of {length:,} bytes", Framing.HEADER)
        else:
            self._body_length = length

    # Bytes

    def _take(self, count: int) -> bytes:
        chunk = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self._scanned = 0
        return chunk

    def _too_big(self, what: str, framing: Framing) -> Malformed:
        message = f"{what} is over the limit of {self.max_bytes:,} (setting wire.max_message_bytes)"
        return Malformed(InvalidRequestError(message, data={"limit": self.max_bytes}), framing)


def _looks_like_json(body: bytes) -> bool:
    return body[:1] in (b"{", b"[")


def _header_error(problem: str) -> ParseError:
    return ParseError(f"a header block: {problem}")
