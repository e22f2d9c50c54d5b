"""Display file names, and keep paths inside the project."""

import errno
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from efrit_budget.characters import CONTROLS, OWN_SIGNS, UNSEEN
from efrit_budget.errors import EfritError

BYTES = r"\udc80-\udcff"
"""The characters by which Python represents bytes of a name that are not UTF-8."""
UNSHOWN = f"{CONTROLS}{BYTES}{UNSEEN}"
PLAIN_NAME = re.compile(rf'[^"\\{OWN_SIGNS}{UNSHOWN}][^{UNSHOWN}]*')
QUOTED = re.compile(rf'["\\{UNSHOWN}]')
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
UNESCAPES = {escape[1].encode(): sign.encode() for sign, escape in ESCAPES.items()}
ESCAPE = re.compile(rb"(?s)\\([0-7]{3}|.)")
LOOP = "a loop of links"


class OutsideError(EfritError):
    """A path leads out of the project, or is no path."""

    def __init__(self, shown: str, reason: str) -> None:
        super().__init__(f"{same_form(shown)}: {reason}")
        self.reason = reason


def shown_name(name: str) -> str:
    r"""Return a file name as displayed: plain, or quoted as git does (`"a\nb\351"`).

    Names with control characters, line separators or characters that cannot be seen, bytes that
    are not UTF-8, or a leading quote, backslash or sign of the program's own lines are quoted, so
    that each name has one form and each form means one name.
    """
    return name if PLAIN_NAME.fullmatch(name) else f'"{QUOTED.sub(_escape, name)}"'


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    return ESCAPES.get(sign) or "".join(f"\\{byte:03o}" for byte in os.fsencode(sign))


def meant_name(shown: str) -> str:
    """Return the file name that `shown_name` displays like this."""
    if len(shown) < 2 or not (shown.startswith('"') and shown.endswith('"')):
        return shown
    return unescaped(os.fsencode(shown[1:-1]), UNESCAPES)


def same_form(given: str) -> str:
    """Return a name, given plain or quoted, as `shown_name` displays it."""
    return shown_name(meant_name(given))


def unescaped(quoted: bytes, signs: Mapping[bytes, bytes]) -> str:
    """Return a name with each backslash before an octal number or a key of `signs` resolved."""

    def sign(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else signs.get(code, code)

    return os.fsdecode(ESCAPE.sub(sign, quoted))


def inside(root: Path, shown: str, base: Path | None = None) -> Path:
    """Return the real path of `shown`, from `base` or the root; raise if it is outside the root."""
    name = meant_name(shown)
    if "\0" in name:
        raise OutsideError(shown, "a path cannot hold a NUL byte")
    folder = root.resolve()
    try:
        found = ((base or root).resolve() / name).resolve()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            found.stat()  # raises for a loop of links, which `resolve` of Python 3.13 does not
    except RuntimeError as error:
        raise OutsideError(shown, LOOP) from error
    except OSError as error:
        reason = LOOP if error.errno == errno.ELOOP else error.strerror or str(error)
        raise OutsideError(shown, reason) from error
    if found != folder and folder not in found.parents:
        raise OutsideError(shown, f"outside the project {folder}")
    return found
