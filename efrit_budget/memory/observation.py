"""Observations as drafts, as stored, and as exported."""

from dataclasses import dataclass
from typing import ClassVar

from efrit_budget.errors import EfritError

MOST_CHARACTERS = 100_000
MOST_TITLE = 500
MOST_WORD = 200
MOST_TAGS = 50
DEFAULT_KIND = "note"
DEFAULT_SCOPE = "project"
DEFAULT_IMPORTANCE = 0.5


class ObservationError(EfritError):
    """An observation cannot be saved, or does not exist."""


@dataclass(frozen=True)
class Draft:
    """An observation to save."""

    title: str
    content: str
    project: str = ""
    kind: str = DEFAULT_KIND
    scope: str = DEFAULT_SCOPE
    topic_key: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    session: str = ""
    """The session that it was saved in, empty if a person saved it."""
    tool: str = ""
    """The tool that it was saved with."""
    related: tuple[int, ...] = ()
    """The ids of related observations."""


@dataclass(frozen=True)
class Observation:
    """A stored observation; times are seconds since 1970."""

    id: int
    kind: str
    project: str
    scope: str
    updated: float
    importance: float
    accesses: int
    accessed: float | None
    deleted: float | None
    created: float
    revision: int
    duplicates: int
    session: str
    tool: str
    topic_key: str | None
    tags: tuple[str, ...]
    title: str
    content: str


@dataclass(frozen=True)
class Revision:
    """An earlier version of an observation with the same topic key."""

    revision: int
    kind: str
    importance: float
    updated: float
    session: str
    tool: str
    tags: tuple[str, ...]
    title: str
    content: str


@dataclass(frozen=True)
class Record(Observation):
    """An exported observation with its revisions and relations."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    revisions: tuple[Revision, ...] = ()
    related: tuple[int, ...] = ()


@dataclass(frozen=True)
class Filters:
    """A selection of observations; None or empty selects all."""

    project: str | None = None
    scope: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    """The tags that an observation must have, all of them."""
    session: str | None = None


EVERYTHING = Filters()


@dataclass(frozen=True)
class Saved:
    """The outcome of saving a draft."""

    id: int
    revision: int
    outcome: str
    """`created`, `updated` (by its topic key) or `duplicate` (of one saved minutes ago)."""
    duplicates: int = 0
    left_out: tuple[str, ...] = ()
    """The fields, such as the title, in which a duplicate differs from the stored observation."""

    @property
    def is_new(self) -> bool:
        """Return whether it is an observation of its own."""
        return self.outcome == "created"


@dataclass(frozen=True)
class Timeline:
    """An observation and those saved before and after it in the same session."""

    focus: Observation
    before: list[Observation]
    after: list[Observation]
    total: int
    """The number of observations in the session."""


@dataclass(frozen=True)
class PastSession:
    """An earlier session."""

    id: str
    title: str
    touched: float


@dataclass(frozen=True)
class PastMessage:
    """A user message of an earlier session."""

    asked: float
    text: str


@dataclass(frozen=True)
class RecentSessions:
    """The latest sessions and user messages, newest first, and the totals."""

    sessions: list[PastSession]
    prompts: list[PastMessage]
    session_count: int
    prompt_count: int


@dataclass(frozen=True)
class Stats:
    """The totals of memory."""

    observations: int
    deleted: int
    revisions: int
    """The number of earlier revisions, which stay readable."""
    kinds: dict[str, int]
    projects: dict[str, int]
    scopes: dict[str, int]
    oldest: float | None
    newest: float | None
