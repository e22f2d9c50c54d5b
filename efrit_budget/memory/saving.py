"""Save observations: new, as a revision of a topic, or as a duplicate."""

from collections.abc import Iterable
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

from efrit_budget.characters import sound_text
from efrit_budget.memory import rows
from efrit_budget.memory.observation import (
    DEFAULT_KIND,
    DEFAULT_SCOPE,
    MOST_CHARACTERS,
    MOST_TAGS,
    MOST_TITLE,
    MOST_WORD,
    Draft,
    ObservationError,
    Saved,
)
from efrit_budget.memory.private import without_private

DUPLICATE_SECONDS = 15 * 60
MAY_DIFFER = ("title", "kind", "tags", "importance")
"""The columns that may differ between an observation and its duplicate."""


def clean(text: str) -> str:
    """Return the text without private parts and invalid characters."""
    return without_private(sound_text(text))


def clean_draft(draft: Draft) -> Draft:
    """Return the draft with clean texts; raise if it cannot be saved."""
    title, content = clean(draft.title).strip(), clean(draft.content)
    if not title:
        raise ObservationError("title: an observation needs a title of at least one character")
    if not content.strip():
        raise ObservationError("content: an observation needs a text")
    if len(content) > MOST_CHARACTERS:
        raise ObservationError(
            f"content: {len(content):,} characters; at most {MOST_CHARACTERS:,} are kept whole,"
            " so save it in parts"
        )
    tags = dict.fromkeys(tag for tag in map(str.strip, map(clean, draft.tags)) if tag)
    cleaned = replace(
        draft,
        title=title,
        content=content,
        project=clean(draft.project).strip(),
        kind=clean(draft.kind).strip() or DEFAULT_KIND,
        scope=clean(draft.scope).strip() or DEFAULT_SCOPE,
        tags=tuple(tags),
        topic_key=clean(draft.topic_key or "").strip() or None,
        session=clean(draft.session),
        tool=clean(draft.tool),
    )
    _require_short(cleaned)
    return cleaned


def _require_short(draft: Draft) -> None:
    """Raise if a field besides the content is too long, or the importance is out of range."""
    for name, text, most in (
        ("title", draft.title, MOST_TITLE),
        ("type", draft.kind, MOST_WORD),
        ("project", draft.project, MOST_WORD),
        ("scope", draft.scope, MOST_WORD),
        ("topic_key", draft.topic_key or "", MOST_WORD),
        *(("tags", tag, MOST_WORD) for tag in draft.tags),
    ):
        if len(text) > most:
            raise ObservationError(f"{name}: {len(text):,} characters; at most {most:,}")
    if len(draft.tags) > MOST_TAGS:
        raise ObservationError(f"tags: {len(draft.tags):,} tags; at most {MOST_TAGS}")
    if not 0 <= draft.importance <= 1:
        raise ObservationError(f"importance: {draft.importance} is not from 0 to 1")


def as_duplicate(connection: Connection, draft: Draft, now: float) -> Saved | None:
    """Count the draft as a duplicate of a recent observation with its content; None if none has it.

    An observation with the draft's topic key is no duplicate if anything differs: it is revised.
    """
    row = rows.find_duplicate(connection, draft, now - DUPLICATE_SECONDS)
    if row is None:
        return None
    values = {**vars(draft), "tags": rows.tags_column(draft.tags)}
    left_out = tuple(name for name in MAY_DIFFER if row[name] != values[name])
    if left_out and draft.topic_key is not None:
        return None
    rows.update(connection, row["id"], duplicates=row["duplicates"] + 1)
    return Saved(row["id"], row["revision"], "duplicate", row["duplicates"] + 1, left_out)


def as_revision(connection: Connection, draft: Draft, now: float) -> Saved | None:
    """Save the draft as a revision of the observation with its topic key; None if none has it."""
    row = rows.find_topic(connection, draft)
    return None if row is None else revise(connection, row["id"], row["revision"] + 1, draft, now)


def revise(connection: Connection, number: int, revision: int, draft: Draft, now: float) -> Saved:
    """Save the draft as this revision of an observation; the one before stays readable."""
    rows.keep_as_revision(connection, number)
    rows.update(connection, number, **_revised_columns(draft, now), revision=revision)
    return Saved(number, revision, "updated")


def as_new(connection: Connection, draft: Draft, now: float) -> Saved:
    """Save a draft as a new observation."""
    named = {"project": draft.project, "scope": draft.scope, "topic_key": draft.topic_key}
    number = rows.insert(connection, **_revised_columns(draft, now), **named, created=now)
    return Saved(number, 1, "created")


def _revised_columns(draft: Draft, now: float) -> dict[str, Any]:
    """Return the columns that differ between the revisions of an observation."""
    same = ("kind", "importance", "session", "tool", "title", "content")
    columns = {name: getattr(draft, name) for name in same}
    tags = rows.tags_column(draft.tags)
    return {**columns, "updated": now, "tags": tags, "digest": rows.digest(draft)}


def relate(connection: Connection, number: int, related: Iterable[int]) -> None:
    """Relate an observation to others; raise if one of them never existed."""
    for other in sorted(set(related) - {number}):
        if not rows.exists(connection, other):
            raise ObservationError(f"related: there is no observation #{other}")
        rows.insert_relation(connection, number, other)
