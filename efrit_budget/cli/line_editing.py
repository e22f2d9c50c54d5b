"""Editing, completion and history of typed lines, where Python has readline."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_HISTORY_LINES: Final = 1000


@contextlib.contextmanager
def line_editing(words: Sequence[str], history: Path) -> Iterator[None]:
    """Complete `words`, and keep a history that only its owner reads, while the block runs."""
    try:
        import readline
    except ImportError:
        yield
        return

    def matching(prefix: str, number: int) -> str | None:
        found = [word for word in words if word.startswith(prefix)]
        return found[number] if number < len(found) else None

    readline.set_completer(matching)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(_HISTORY_LINES)
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            history.touch(mode=0o600)
            readline.write_history_file(history)
