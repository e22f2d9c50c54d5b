"""Earlier sessions of a project, and the messages in them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from efrit_budget.errors import Json
from efrit_budget.memory.observation import PastSession, Prompt
from efrit_budget.memory.private import without_private

MEANT = "(:project IS NULL OR project = :project) AND id <> :but"
ASKED = f"remembered_prompts WHERE session IN (SELECT id FROM remembered_sessions WHERE {MEANT})"  # noqa: S608  own words


@dataclass(frozen=True)
class Past:
    """The latest sessions and messages, newest first, and the totals."""

    sessions: list[PastSession]
    prompts: list[Prompt]
    sessions_in_all: int
    prompts_in_all: int


def latest_of(connection: sqlite3.Connection, project: str | None, but: str, limit: int) -> Past:
    """Return the latest sessions and messages of a project, except one session's."""
    parameters: dict[str, Json] = {"project": project, "but": but, "limit": limit}
    return Past(
        _sessions(connection, parameters),
        _prompts(connection, parameters),
        _count(connection, f"remembered_sessions WHERE {MEANT}", parameters),
        _count(connection, ASKED, parameters),
    )


def _sessions(connection: sqlite3.Connection, meant: dict[str, Json]) -> list[PastSession]:
    rows = connection.execute(
        "SELECT id, title, project, touched FROM remembered_sessions"  # noqa: S608  own words
        f" WHERE {MEANT} ORDER BY touched DESC, id LIMIT :limit",
        meant,
    )
    return [PastSession(row[0], without_private(row[1]), *row[2:]) for row in rows]


def _prompts(connection: sqlite3.Connection, meant: dict[str, Json]) -> list[Prompt]:
    """Return the latest messages; only their texts are read."""
    latest = "ORDER BY asked DESC, session, turn DESC"
    rows = connection.execute(
        "SELECT session, asked, text FROM remembered_prompts WHERE (session, turn) IN"  # noqa: S608  own words
        f" (SELECT session, turn FROM {ASKED} {latest} LIMIT :limit) {latest}",
        meant,
    )
    return [Prompt(row[0], row[1], without_private(row[2] or "")) for row in rows]


def _count(connection: sqlite3.Connection, what: str, meant: dict[str, Json]) -> int:
    row = connection.execute(f"SELECT count(*) FROM {what}", meant).fetchone()  # noqa: S608  own words
    return int(row[0])
