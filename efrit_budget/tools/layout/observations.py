"""Lay out observations: one line, a line and the beginning of the content, or all of it."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.packs import NEWLINES, moment, name_of
from efrit_budget.memory.searching import Rank
from efrit_budget.memory.wording import Detail
from efrit_budget.results.marks import own
from efrit_budget.results.packer import Item
from efrit_budget.tools.base import LEAST_MAX_TOKENS, Arguments, MaxTokens

BEGINS = 300
"""The most characters of a content that `beginning` returns."""
NAME = 40
CUT = "…"
MOST_LISTED = 200
LARGEST_ID = 2**53


def _checked_range(least: int, most: int, low: str = "", high: str = "") -> AfterValidator:
    """Return a validator for a range, not shown in the schema; `low` and `high` are its errors."""
    message = f"must be from {least} to {most:,}"

    def checked(number: int) -> int:
        if number < least:
            raise PydanticCustomError("too_small", low or message)
        if number > most:
            raise PydanticCustomError("too_large", high or message)
        return number

    return AfterValidator(checked)


Limit = Annotated[int, _checked_range(1, MOST_LISTED)]
Beside = Annotated[int, _checked_range(0, MOST_LISTED)]
Id = Annotated[int, _checked_range(1, LARGEST_ID)]
Budget = Annotated[
    int,
    _checked_range(
        LEAST_MAX_TOKENS, 1_000_000, f"at least {LEAST_MAX_TOKENS}", "at most 1,000,000"
    ),
]


class ShortArguments(Arguments):
    """Arguments of tools with short answers: the schema leaves out those about pages."""

    max_tokens: SkipJsonSchema[MaxTokens | None] = None
    continuation_token: SkipJsonSchema[str | None] = None


class ReadArguments(Arguments):
    """Arguments of tools that list observations."""

    detail_level: Detail = "standard"
    project: str | None = None
    scope: str | None = None

    def filters(self, kind: str | None = None, tags: tuple[str, ...] = ()) -> Filters:
        """Return the filters of the call; an empty project, scope or kind selects all."""
        return Filters(self.project or None, self.scope or None, kind or None, tags)


def line_of(one: Observation, own_project: str) -> str:
    """Return an observation on one line, with its project unless that is `own_project`."""
    project = f", project {one.project}" if one.project not in ("", own_project) else ""
    tags = f", tags: {', '.join(one.tags)}" if one.tags else ""
    return f"#{one.id} {name_of(one)} ({moment(one.updated)[:10]}{project}{tags})"


def minute(seconds: float) -> str:
    """Return a time, given in seconds, as text to the minute in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%MZ")


def beginning(text: str, most: int = BEGINS) -> str:
    """Return the first `most` characters of a text, cut after a word."""
    text = text.strip(NEWLINES).rstrip()
    if len(text) <= most:
        return text
    blank = text.rfind(" ", most // 2, most)
    return f"{text[: blank if blank > 0 else most].rstrip()}{CUT}"


def item_of(one: Observation, own_project: str, detail: Detail, line: str | None = None) -> Item:
    """Return an observation as an item: its forms from `detail` to one line, and its names."""
    line = line or line_of(one, own_project)
    title = " ".join(one.title.split())
    name = f"#{one.id} {beginning(title, NAME)}"
    content = one.content.strip(NEWLINES)
    forms = (own(line, content), own(line, beginning(content)), own(line))
    longest = ("full", "standard", "summary").index(detail)
    return Item(tuple(dict.fromkeys(forms[longest:])), (own(name), own(f"#{one.id}")))


def explained(rank: Rank) -> str:
    """Return the score of a rank and its parts as text."""
    return (
        f"score {rank.score:.3f} = relevance {rank.relevance:.3f} with recency"
        f" {rank.recency:.2f}, importance {rank.importance:.2f}, access {rank.access:.2f}"
    )
