"""Observations as rows: columns, filters and fingerprints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from efrit_budget.errors import JsonObject
from efrit_budget.memory.observation import Draft, Filters, Observation, Revision

COLUMNS = tuple(field.name for field in fields(Observation))
TAGS = COLUMNS.index("tags")
REVISION_COLUMNS = tuple(field.name for field in fields(Revision))
FILTERS = {
    "project": " AND o.project = :project",
    "scope": " AND o.scope = :scope",
    "kind": " AND o.kind = :kind",
    "session": " AND o.session = :session",
    "tags": " AND NOT EXISTS (SELECT 1 FROM json_each(:tags) AS wanted"
    " WHERE wanted.value NOT IN (SELECT value FROM json_each(o.tags)))",
}


def observation_of(row: Sequence[Any]) -> Observation:
    """Return the observation of a row with `COLUMNS`."""
    values = list(row)
    values[TAGS] = tuple(json.loads(values[TAGS]))
    return Observation(*values)


def revision_of(row: sqlite3.Row) -> Revision:
    """Return the revision of a row."""
    values = {name: row[name] for name in REVISION_COLUMNS}
    return Revision(**values | {"tags": tuple(json.loads(row["tags"]))})


def tags_column(tags: Sequence[str]) -> str:
    """Return tags as they are stored: JSON with separators that no word contains."""
    return json.dumps(list(tags), ensure_ascii=False)


def conditions(filters: Filters) -> tuple[str, JsonObject]:
    """Return filters as SQL for a WHERE clause, with parameters."""
    values: JsonObject = {
        "project": filters.project,
        "scope": filters.scope,
        "kind": filters.kind,
        "session": filters.session,
        "tags": tags_column(filters.tags) if filters.tags else None,
    }
    parameters = {name: value for name, value in values.items() if value is not None}
    return "".join(FILTERS[name] for name in parameters), parameters


def digest(draft: Draft) -> bytes:
    """Return a fingerprint of a content in its project and scope, ignoring spaces."""
    parts = (draft.project, draft.scope, " ".join(draft.content.split()))
    import hashlib  # noqa: PLC0415 - what only looks something up must not wait for it

    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def draft_of(observation: Observation) -> Draft:
    """Return the draft that would save this observation."""
    names = [field.name for field in fields(Draft) if field.name in COLUMNS]
    return Draft(**{name: getattr(observation, name) for name in names})
