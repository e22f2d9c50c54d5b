"""Find the commit of each line of a file."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from efrit_budget.project.git.commits import REPLACEMENT, UNSHOWABLE
from efrit_budget.project.git.names import unquote
from efrit_budget.project.git.repository import Repository

SHORT_HASH = 8


@dataclass
class LineOrigin:
    """The commit that lines come from, or none if they are not committed."""

    hash: str
    author: str = ""
    date: str = ""
    subject: str = ""
    seconds: int = 0

    @property
    def is_commit(self) -> bool:
        """Return whether the lines are committed: else, git prints zeros as hash."""
        return self.hash.strip("0") != ""

    @property
    def short(self) -> str:
        """The beginning of the hash, for people."""
        return self.hash[:SHORT_HASH]


@dataclass
class Run:
    """Adjacent lines from one commit; `first` is the number of the first line."""

    origin: LineOrigin
    path: str
    """The path of the lines in that commit."""
    first: int
    lines: list[bytes] = field(default_factory=list)


def find_runs(repository: Repository, options: Sequence[str], name: str) -> list[Run]:
    """Return the lines of a file, grouped by the commit they come from."""
    command = ["blame", "--porcelain", "--no-textconv", "--no-ignore-revs-file", *options]
    printed = repository.run(*command, paths=(name,)).stdout
    return _runs(printed.split(b"\n"), repository.prefix)


def _runs(lines: Sequence[bytes], prefix: str) -> list[Run]:
    """Return the runs in the lines that `git blame --porcelain` prints."""
    origins: dict[bytes, LineOrigin] = {}
    paths: dict[bytes, str] = {}
    runs: list[Run] = []
    origin, number = LineOrigin(""), 0
    key = b""
    for line in lines:
        if line.startswith(b"\t"):
            path = paths.get(key, "")
            if not runs or runs[-1].origin is not origin or runs[-1].path != path:
                runs.append(Run(origin, path, number))
            runs[-1].lines.append(line[1:])
            continue
        word, _, rest = line.partition(b" ")
        if len(word) >= 40:
            key = word
            number = int(rest.split(b" ")[1])
            origin = origins.setdefault(key, LineOrigin(key.decode()))
        elif word == b"filename":
            paths[key] = unquote(rest).removeprefix(prefix)
        else:
            _tell(origin, word, rest)
    return runs


def _tell(origin: LineOrigin, word: bytes, rest: bytes) -> None:
    text = UNSHOWABLE.sub(REPLACEMENT, rest.decode("utf-8", "replace"))
    if word == b"author":
        origin.author = text
    elif word == b"author-time":
        origin.seconds = int(rest)
    elif word == b"author-tz":
        origin.date = _day(origin.seconds, text)
    elif word == b"summary":
        origin.subject = text


def _day(seconds: int, zone: str) -> str:
    """Return the author's local day, or the day in UTC if the zone is invalid."""
    with suppress(ValueError, OverflowError, OSError):
        offset = timedelta(hours=int(zone[:-2]), minutes=int(zone[0] + zone[-2:]))
        return datetime.fromtimestamp(seconds, timezone(offset)).date().isoformat()
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    return f"@{seconds}"
