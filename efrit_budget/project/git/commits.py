"""Parse the commits that git prints."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from efrit_budget.characters import CONTROLS
from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import BYTES

FIELDS = ("%H", "%h", "%an", "%ae", "%aI", "%cn", "%ce", "%cI", "%P", "%D", "%B")
FORMAT = "--format=" + "%x00".join(FIELDS) + "%x00"
UNSHOWABLE = re.compile(f"[{CONTROLS}{BYTES}]")
BUT_LINE_ENDS = re.compile(rf"(?!\n|\t)[{CONTROLS}{BYTES}]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Commit:
    """A commit, with texts that cannot break a line or a terminal."""

    hash: str
    short: str
    author: str
    author_email: str
    authored: str
    """The time when the commit was written, in ISO form with the author's time zone."""
    committer: str
    committer_email: str
    committed: str
    parents: tuple[str, ...]
    refs: str
    message: str

    @property
    def subject(self) -> str:
        """The first paragraph of the message on one line."""
        return " ".join(self.message.split("\n\n", 1)[0].split("\n"))

    @property
    def facts(self) -> JsonObject:
        """The commit as data for programs."""
        return {
            "hash": self.hash,
            "short": self.short,
            "author": self.author,
            "email": self.author_email,
            "date": self.authored,
            "subject": self.subject,
        }

    @property
    def date(self) -> str:
        """The day when the commit was written, in the author's time zone."""
        return self.authored[:10]


def commit_of(fields: Sequence[bytes]) -> Commit:
    """Return the commit whose fields git printed in the order of `FORMAT`."""
    *lines, message = (field.decode("utf-8", "replace") for field in fields)
    names = [UNSHOWABLE.sub(REPLACEMENT, line.strip("\n")) for line in lines]
    text = BUT_LINE_ENDS.sub(REPLACEMENT, message.replace("\r\n", "\n")).strip("\n")
    commit, short, author, email, authored, committer, committer_email, committed, *rest = names
    parents, refs = rest
    return Commit(
        *(commit, short, author, email, authored, committer, committer_email, committed),
        parents=tuple(parents.split()),
        refs=refs,
        message=text,
    )
