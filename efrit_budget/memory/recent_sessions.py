"""The latest sessions of a project, and the latest user messages in them."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection

from efrit_budget.errors import JsonObject
from efrit_budget.memory.observation import PastMessage, PastSession
from efrit_budget.memory.private import without_private

OF_PROJECT = "(:project IS NULL OR project = :project) AND id <> :but"
SESSIONS = f"FROM remembered_sessions WHERE {OF_PROJECT}"
PROMPTS = f"FROM remembered_prompts WHERE session IN (SELECT id {SESSIONS})"
LATEST_PROMPTS = "ORDER BY asked DESC, session, turn DESC"


@dataclass(frozen=True)
class RecentSessions:
    """The latest sessions and user messages, newest first, and the totals."""

    sessions: list[PastSession]
    prompts: list[PastMessage]
    session_count: int
    prompt_count: int


def load_recent(
    connection: Connection, project: str | None, but: str, limit: int
) -> RecentSessions:
    """Return the latest sessions and messages of a project, or of all, except one session's."""
    values: JsonObject = {"project": project, "but": but, "limit": limit}
    sessions = connection.execute(
        f"SELECT id, title, project, touched {SESSIONS} ORDER BY touched DESC, id LIMIT :limit",
        values,
    )
    # The texts, which are long, are read of the latest messages only.
    prompts = connection.execute(
        "SELECT session, asked, text FROM remembered_prompts WHERE (session, turn) IN"  # noqa: S608
        f" (SELECT session, turn {PROMPTS} {LATEST_PROMPTS} LIMIT :limit) {LATEST_PROMPTS}",
        values,
    )
    return RecentSessions(
        [PastSession(row[0], without_private(row[1]), *row[2:]) for row in sessions],
        [PastMessage(row[0], row[1], without_private(row[2] or "")) for row in prompts],
        connection.execute(f"SELECT count(*) {SESSIONS}", values).fetchone()[0],
        connection.execute(f"SELECT count(*) {PROMPTS}", values).fetchone()[0],
    )
