"""Print tables, texts, JSON and errors; ask the person; replace files."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from efrit_budget.characters import HIDDEN
from efrit_budget.errors import EfritError


def print_json(value: Any, *, compact: bool, file: IO[str] | None = None) -> None:
    """Print JSON that stdout's encoding can carry, on one line or indented."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    indent, separators = (None, (",", ":")) if compact else (2, None)
    print(json.dumps(value, ensure_ascii=plain, indent=indent, separators=separators), file=file)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns; the last column is not padded."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(padded).rstrip())


def print_text(text: str) -> None:
    """Print a text; on a terminal, control characters are printed as escapes."""
    if sys.stdout.isatty():
        text = "\n".join(printable(line) for line in text.split("\n"))
    print(text)


def printable(text: str) -> str:
    """Return `text` on one line, with control characters written as escapes."""
    return "".join(
        sign
        if sign == "\t" or (sign.isprintable() and not HIDDEN.match(sign))
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def complain(message: str) -> None:
    """Print a message on stderr, as one line."""
    print(f"efrit-budget: {printable(message)}", file=sys.stderr)


def complain_about(error: EfritError) -> None:
    """Print an error on stderr as one line, with the fields that its message does not name."""
    complain(error.message + _fields_not_yet_named(error))


def complain_about_call(error: EfritError) -> None:
    """Print a JSON-RPC error as one line on stderr, its code first."""
    title = f" ({error.title})" if error.title else ""
    complain(f"error {error.code}{title}: {error.message}{_fields_not_yet_named(error)}")


def _fields_not_yet_named(error: EfritError) -> str:
    fields: Any = (error.data or {}).get("fields") or []
    named = [str(one["field"]) for one in fields if "field" in one]
    missing = [name for name in named if name not in error.message]
    return f" (in {', '.join(missing)})" if missing else ""


def can_ask() -> bool:
    """Return whether stdin and stderr are a terminal, so that a person can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Ask a question; return whether the answer is yes."""
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask_consent(question: str, otherwise: str) -> bool:
    """Return whether a person at the terminal answers yes; complain with `otherwise` if not."""
    if not can_ask():
        complain(f"{otherwise}: nobody can be asked here; --yes skips the question")
        return False
    if not ask(question):
        complain(otherwise)
        return False
    return True


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Yield a new file that replaces `path` at the end of the block; after an error `path` stays.

    A link stays a link: its target is replaced. A device or a pipe is written to directly.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            yield stream
        return
    descriptor, name = _open_beside(target)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fchmod(descriptor, _mode(target))
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _open_beside(target: Path) -> tuple[int, str]:
    """Create a temporary file beside the target; return its descriptor and its name."""
    import tempfile

    try:
        return tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        folder = f"the folder {target.parent}"
        advice = f"{folder} must be one that can be written to"
        if isinstance(error, FileNotFoundError):
            advice = f"make {folder} first"
        raise EfritError(f"{target} was not written: {error.strerror}; {advice}") from error


def _mode(target: Path) -> int:
    """Return the permissions of the file to replace, or those of a new file."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
