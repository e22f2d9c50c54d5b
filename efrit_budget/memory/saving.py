"""Save observations: new, as a revision of a topic, or as a duplicate."""

from collections.abc import Iterable
from dataclasses import replace
from sqlite3 import Connection, Row

from efrit_budget.characters import sound_text
from efrit_budget.errors import Json
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
from efrit_budget.memory.rows import digest, tags_column

DUPLICATE_SECONDS = 15 * 60
DUPLICATE = """
SELECT id, revision, duplicates, title, kind, tags, importance FROM observations
WHERE digest = :digest AND updated >= :since AND deleted IS NULL
  AND (:topic_key IS NULL OR topic_key = :topic_key)
ORDER BY title = :title DESC, id DESC LIMIT 1
"""
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
    values = {"title": draft.title, "kind": draft.kind, "importance": draft.importance}
    values |= {"tags": tags_column(draft.tags), "topic_key": draft.topic_key}
    sought = {"digest": digest(draft), "since": now - DUPLICATE_SECONDS}
    row = connection.execute(DUPLICATE, values | sought).fetchone()
    if row is None:
        return None
    left_out = tuple(name for name in MAY_DIFFER if row[name] != values[name])
    if left_out and draft.topic_key is not None:
        return None
    connection.execute(
        "UPDATE observations SET duplicates = duplicates + 1 WHERE id = ?", (row["id"],)
    )
    return Saved(row["id"], row["revision"], "duplicate", row["duplicates"] + 1, left_out)


def as_revision(connection: Connection, draft: Draft, now: float) -> Saved | None:
    """Save the draft as a revision of the observation with its topic key; None if none has it."""
    row = with_topic(connection, draft)
    if row is None:
        return None
    keep_as_revision(connection, row["id"])
    connection.execute(
        "UPDATE observations SET revision = revision + 1, kind = ?, importance = ?, updated = ?,"
        " session = ?, tool = ?, tags = ?, title = ?, content = ?, digest = ? WHERE id = ?",
        (*_written_columns(draft, now), row["id"]),
    )
    return Saved(row["id"], row["revision"] + 1, "updated")


def keep_as_revision(connection: Connection, number: int) -> None:
    """Copy an observation to its earlier revisions."""
    connection.execute(
        "INSERT OR IGNORE INTO revisions (observation, revision, kind, importance, updated,"
        " session, tool, tags, title, content) SELECT id, revision, kind, importance, updated,"
        " session, tool, tags, title, content FROM observations WHERE id = ?",
        (number,),
    )


def as_new(connection: Connection, draft: Draft, now: float) -> Saved:
    """Save a draft as a new observation."""
    added = connection.execute(
        "INSERT INTO observations (kind, importance, updated, session, tool, tags, title,"
        " content, digest, project, scope, topic_key, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*_written_columns(draft, now), draft.project, draft.scope, draft.topic_key, now),
    )
    return Saved(int(added.lastrowid or 0), 1, "created")


def _written_columns(draft: Draft, now: float) -> tuple[Json, ...]:
    """Return the values of the columns that `as_new` and `as_revision` both write."""
    return (
        *(draft.kind, draft.importance, now, draft.session, draft.tool),
        *(tags_column(draft.tags), draft.title, draft.content, digest(draft)),
    )


def relate(connection: Connection, number: int, related: Iterable[int]) -> None:
    """Relate an observation to others; raise if one of them never existed."""
    targets = set(related) - {number}
    for other in sorted(targets):
        row = connection.execute("SELECT 1 FROM observations WHERE id = ?", (other,)).fetchone()
        if row is None:
            raise ObservationError(f"related: there is no observation #{other}")
        connection.execute(
            "INSERT OR IGNORE INTO relations (observation, related) VALUES (?, ?)",
            (number, other),
        )


def with_topic(connection: Connection, draft: Draft) -> Row | None:
    """Return id and revision of the observation with the draft's topic key, or None."""
    row: Row | None = connection.execute(
        "SELECT id, revision FROM observations"
        " WHERE project = ? AND scope = ? AND topic_key = ? AND deleted IS NULL",
        (draft.project, draft.scope, draft.topic_key),
    ).fetchone()
    return row


def delete(connection: Connection, number: int, now: float) -> bool:
    """Mark an observation as deleted; return false if none has this id or it is deleted already."""
    changed = connection.execute(
        "UPDATE observations SET deleted = ? WHERE id = ? AND deleted IS NULL", (now, number)
    )
    return changed.rowcount > 0


def count_access(connection: Connection, number: int, now: float) -> None:
    """Count a reading of an observation."""
    connection.execute(
        "UPDATE observations SET accesses = accesses + 1, accessed = ? WHERE id = ?", (now, number)
    )
