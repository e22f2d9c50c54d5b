"""The class of a corpus text, and functions that find and read files of the machine."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CODE, DATA, ENGLISH, SCRIPTS = "code", "data", "english", "other scripts"
LONGEST_TEXT = 400_000
# Copies of other packages would put one text on both sides; an index of a documentation tool is
# no text at all.
COPIES = {"_vendor", "vendor", "third_party", "bundledpythonunix"}
PASSED_OVER = {"__pycache__", ".git", "search.index", *COPIES}


@dataclass(frozen=True)
class Text:
    """One text, its kind, its kind's group, and the origin that decides its side."""

    kind: str
    group: str
    origin: str
    body: str


def first_word(name: str) -> str:
    """Return the beginning of a name that sibling files or packages share."""
    return re.split(r"[-_.\d]", name.lstrip("_."), maxsplit=1)[0] or name


@dataclass(frozen=True)
class Root:
    """A folder of files. An origin is `depth` path parts below it, or a file name's first word."""

    path: Path
    depth: int = 1

    def origin(self, path: Path) -> str:
        """Return the origin of a file in this folder."""
        parts = path.relative_to(self.path).parts
        if len(parts) > self.depth:
            return "/".join(parts[: self.depth])
        return first_word(parts[-1])


def stable(name: object) -> bytes:
    """Return a sort key that shuffles names, the same way each time."""
    return hashlib.sha256(str(name).encode(errors="surrogatepass")).digest()


def is_held_out(origin: str) -> bool:
    """Return whether an origin is held out; the same on every machine."""
    return hashlib.sha256(origin.encode()).digest()[0] % 2 == 1


def walk(root: Path) -> Iterator[Path]:
    """Yield the files below a folder."""
    for folder, below, files in os.walk(root):
        below[:] = sorted(set(below) - PASSED_OVER)
        for name in files:
            yield Path(folder, name)


def read(path: Path) -> str:
    """Return the text of a file, unpacked, or an empty text if it cannot be read."""
    try:
        raw = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
        return raw[: LONGEST_TEXT * 2].decode().removeprefix("\ufeff")[:LONGEST_TEXT]
    except (OSError, EOFError, UnicodeDecodeError):
        return ""
