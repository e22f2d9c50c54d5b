"""Split a byte stream into messages, and frame replies.

The first byte of a message tells its framing: a letter begins a header block, anything else
a JSON text on a line of its own. The framer does no input or output of its own, and looks at
each byte a bounded number of times, however small the pieces are in which it comes.
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
"""How far from the end of a line a header glued to something else is looked for."""


class Framing(Enum):
    """The ways to delimit a message."""

    HEADER = "header"
    LINE = "line"


@dataclass(frozen=True)
class Message:
    """One delimited message, not parsed yet.

    A `stray` one is a line that stood between a broken message and the next header: it counts
    if it is a request, and is otherwise part of the breakage that was already reported.
    """

    body: bytes
    framing: Framing
    stray: bool = False


@dataclass(frozen=True)
class Malformed:
    """A part of the stream that is not a message."""

    error: EfritError
    framing: Framing


Piece = Message | Malformed


def dress(body: bytes, framing: Framing) -> bytes:
    """Return `body` framed for the wire."""
    if framing is Framing.LINE:
        return body + b"\n"
    return b"%s: %d\r\n\r\n%s" % (HEADER_NAME, len(body), body)


@dataclass
class _Header:
    """A header block that is being read."""

    size: int = 0
    lengths: tuple[bytes, ...] = ()

    def take(self, line: bytes) -> bool:
        """Read one more line of it; false where the line is none of a header's."""
        found = HEADER_LINE.fullmatch(line)
        if found is None:
            return False
        self.size += len(line)
        if found[1].lower() == HEADER_NAME.lower():
            self.lengths += (found[2],)
        return True

    def length(self) -> int:
        """Return the stated length; raise `ParseError` if it is invalid."""
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
        """Say that the last header-framed body was not JSON, so its length may be wrong."""
        self._out_of_step = True

    def regain_step(self) -> None:
        """Say that the last stray message was one after all."""
        self._out_of_step = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield the messages that `data` completes."""
        self._buffer += data
        while self._advance():
            yield from self._next()

    def finish(self) -> Iterator[Piece]:
        """Yield what the end of the stream completes."""
        if self._body_length is None and not self._skip_bytes:
            yield from self.feed(b"\n")
        if self._body_length is not None or self._header is not None:
            yield Malformed(ParseError("the stream ended inside a message"), Framing.HEADER)

    def _advance(self) -> bool:
        """Return whether a whole body or line is available."""
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
        """Take one body or one line from the buffer."""
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
        """Return the index of the next newline, or -1, searching each byte once."""
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
        """Refuse a line that is longer than its kind may be, and pass over the rest of it."""
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
        """Handle the line that begins a message."""
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
        """Return where a length header begins on this line, or -1.

        No JSON text ends like that, so what is before it is a message without its newline, or
        garbage; the header itself is where the stream is in step again.
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
        """Handle a line of a header block; an empty one ends it."""
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
