"""The sessions that were held in a project, and what was asked in them."""

from __future__ import annotations

import sqlite3

from efrit_budget.memory.observation import PastSession, Prompt
from efrit_budget.memory.private import without_private


def sessions(
    connection: sqlite3.Connection, project: str | None, but: str, limit: int
) -> list[PastSession]:
    """Those worked in last, the latest first, but one."""
    rows = connection.execute(
        "SELECT id, title, project, touched FROM remembered_sessions"
        " WHERE (:project IS NULL OR project = :project) AND id <> :but"
        " ORDER BY touched DESC, id LIMIT :limit",
        {"project": project, "but": but, "limit": limit},
    )
    return [PastSession(row[0], without_private(row[1]), *row[2:]) for row in rows]


def prompts(
    connection: sqlite3.Connection, project: str | None, but: str, limit: int
) -> list[Prompt]:
    """What was asked last in these sessions, the latest first."""
    rows = connection.execute(
        "SELECT session, asked, text FROM remembered_prompts WHERE session IN"
        " (SELECT id FROM remembered_sessions"
        "  WHERE (:project IS NULL OR project = :project) AND id <> :but"
        "  ORDER BY touched DESC, id LIMIT :limit)"
        " ORDER BY asked DESC, session, turn DESC LIMIT :limit",
        {"project": project, "but": but, "limit": limit},
    )
    return [Prompt(row[0], row[1], without_private(row[2] or "")) for row in rows]
