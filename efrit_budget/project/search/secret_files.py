"""Have rg read no file that usually holds secrets, and name each one that it leaves out so."""

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from efrit_budget.project.paths import UNESCAPES
from efrit_budget.project.search.globs import exactly
from efrit_budget.project.search.walk import Walk
from efrit_budget.project.secrets import Secrets

MOST_BY_NAME = 10_000
"""The most secret files that a command names; more would not fit into it."""
NOT_PLAIN = re.compile(r"[^!-~]|[?\[\]{}\\]")
"""The signs that do not mean the same in the patterns of secret files and in the globs of rg."""
NO_PROGRAM = f"/dev/null/{secrets.token_hex(8)}"
"""A program that cannot exist. rg is to have it read the secret files, cannot start it, and reports
each of them unread; because the path is random, no file's name can look like such a report."""
REPORT = re.compile(
    rb"(?s)preprocessor command could not start: '\"%b\" \"((?:[^\"\\]|\\.)*)\"'"
    % NO_PROGRAM.encode()
)
"""The report of rg on a file that it leaves unread because it is secret."""
ESCAPE = re.compile(rb"(?s)\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\}|(.))")
"""An escape in a reported name: of a byte, of a character by its number, or of a sign."""


@dataclass(frozen=True)
class SecretNames:
    """Recognizes secret files by path; `top` completes paths below a root outside the project."""

    secrets: Secrets
    top: str

    def holds(self, name: str) -> bool:
        """Return whether the file at a path from the root is likely to hold secrets."""
        return self.secrets.holds(self.top + name)


@lru_cache
def flags_by_pattern(names: SecretNames) -> Sequence[str] | None:
    """Return the flags by which rg reports secret files unread; None if no glob means the same."""
    patterns, top = names.secrets.patterns, names.top.casefold()
    if NOT_PLAIN.search("".join(patterns)):
        return None
    return _flags([glob for pattern in patterns for glob in _translated(pattern, top)])


def flags_by_name(walk: Walk, limits: Sequence[str], names: SecretNames) -> Sequence[str]:
    """Return these flags for the secret files that rg visits now, limited by other flags."""
    secret = [name for name in walk.names(limits) if names.holds(name)]
    return _flags(list(map(exactly, secret)) if len(secret) <= MOST_BY_NAME else ["**"])


def _flags(globs: Sequence[str]) -> Sequence[str]:
    if all(glob.startswith("!") for glob in globs):  # rg would read no file at all
        return []
    return [f"--pre={NO_PROGRAM}", *(f"--pre-glob={glob}" for glob in globs)]


def _translated(pattern: str, top: str) -> Iterator[str]:
    """Yield rg's globs for the files that a pattern matches below `top`."""
    bare = pattern.removeprefix("!")
    sign = pattern[: len(pattern) - len(bare)]
    if "/" not in bare:
        yield f"{sign}**/{_glob(bare, '*')}"
        return
    crossing = "{*,*/**/*}"  # in a path, a star matches slashes too
    yield f"{sign}**/{_glob(bare, crossing)}"
    for cut in re.finditer(r"\*|/(?!$)", bare):
        if fnmatchcase(f"/{top}", f"*/{bare[: cut.end()].lower()}"):
            yield f"{sign}/{_glob(bare[cut.start() :].removeprefix('/'), crossing)}"


def _glob(pattern: str, star: str) -> str:
    """Return a pattern for any case, and with `star` for its stars."""
    any_case = (f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in pattern)
    return re.sub(r"\*+", star, "".join(any_case))


def reported_name(quoted: bytes) -> str:
    """Return the name of a file in a `REPORT`."""
    return os.fsdecode(ESCAPE.sub(_meant_sign, quoted))


def _meant_sign(escape: re.Match[bytes]) -> bytes:
    byte, character, sign = escape.groups()
    if byte or character:
        return bytes.fromhex(byte.decode()) if byte else chr(int(character, 16)).encode()
    return UNESCAPES.get(sign, sign)
