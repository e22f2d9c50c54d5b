"""The lines of turns that left the window, at the head of its first message."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json
from efrit_budget.results.delivery import FOOTER
from efrit_budget.results.ladder import Item, pack
from efrit_budget.results.marks import MARK
from efrit_budget.results.tokens import handle
from efrit_budget.window.pieces import Phase

MOST_LINES = 400
SHARE = 4
"""The lines take at most one part in so many of the history tier."""
LINE_TOKENS = 60
"""What a line costs, about; a plan is made before the lines are."""
TITLE = "Earlier turns, a line each; recall_result with a handle brings any of them back whole:"
WORDS = 90


def bare_head(gone: int) -> str:
    """What is said where there is no room for a line."""
    return f"({gone:,} earlier turns left; recall_result lists them)"


def title_and_rest(gone: int) -> str:
    """What stands beside the lines, where not all of them fit."""
    return f"{TITLE}\n({gone:,} turns before these: recall_result lists all)\n"


def head(
    connection: sqlite3.Connection, session_id: str, allowance: int, cost: Callable[[str], int]
) -> str | None:
    """The lines, oldest first; where not all fit, the most recent ones, and how many more."""
    gone = gone_turns(connection, session_id)
    if not gone:
        return None
    rows = connection.execute(
        "SELECT DISTINCT turn FROM segments WHERE session_id = ? AND state = 'gone'"
        " AND phase IN (0, 2) ORDER BY turn DESC LIMIT ?",
        (session_id, MOST_LINES),
    ).fetchall()
    items = [_item(connection, session_id, row["turn"]) for row in rows]
    packed = pack(items, allowance - lines_cost(title_and_rest(gone), cost), cost)
    if not packed.lines:
        return bare_head(gone)
    left_out = gone - packed.shown
    title = title_and_rest(left_out) if left_out else f"{TITLE}\n"
    return title + "\n".join(reversed(packed.texts))


def lines_cost(text: str, cost: Callable[[str], int]) -> int:
    """What a text costs, counted line by line, as lines are packed."""
    return sum(cost(line) for line in text.splitlines(keepends=True))


def head_estimate(lines: str | None) -> int:
    """What the lines cost, before calibration."""
    return lines_cost(lines or "", estimate)


def gone_turns(connection: sqlite3.Connection, session_id: str) -> int:
    """How many turns have left the window, in whole or in part."""
    row = connection.execute(
        "SELECT count(DISTINCT turn) FROM segments WHERE session_id = ? AND state = 'gone'"
        " AND phase IN (0, 2)",
        (session_id,),
    ).fetchone()
    return int(row[0])


def _item(connection: sqlite3.Connection, session_id: str, turn: int) -> Item:
    """A turn in long, in short, and by its handles alone."""
    said = [_said(row) for row in _gone_segments(connection, session_id, turn)]
    calls = connection.execute(
        "SELECT number, tool, arguments, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND state = 'gone' ORDER BY ordinal",
        (session_id, turn),
    ).fetchall()
    handles = " ".join(handle(row["number"]) for row in calls if row["number"])
    name = f"t{turn} {handles}".rstrip()
    long = [*said, *(_called(row, WORDS) for row in calls)]
    short = [*(part[:40] for part in said), *(_called(row, 0) for row in calls)]
    return Item((f"{name}: {'; '.join(long)}", f"{name}: {'; '.join(short)}", name))


def _gone_segments(connection: sqlite3.Connection, session_id: str, turn: int) -> list[sqlite3.Row]:
    return connection.execute(
        "SELECT phase, content FROM segments WHERE session_id = ? AND turn = ?"
        " AND state = 'gone' AND phase IN (0, 2) ORDER BY phase",
        (session_id, turn),
    ).fetchall()


def _said(row: sqlite3.Row) -> str:
    who = "the person" if row["phase"] == Phase.REQUEST else "you"
    words = " ".join(text_of(json.loads(row["content"])).split())
    return f"{who}: {_cut(words, WORDS)}" if words else who


def text_of(blocks: list[Json]) -> str:
    """The text blocks' texts."""
    return "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text")


def _called(row: sqlite3.Row, words: int) -> str:
    arguments = row["arguments"] if row["arguments"] != "{}" else ""
    called = f"{row['tool']} {_cut(arguments, 60)}".rstrip()
    outcome = outcome_of(row["compressed"], row["number"])
    return f"{called}: {_cut(outcome, words)}" if words and outcome else called


def outcome_of(compressed: str | None, number: int | None) -> str:
    """What a call's line says of its result, without the note before it and the footer."""
    text = (compressed or "").removeprefix(f"{MARK} ")
    if number is not None and text.startswith(f"[{handle(number)}: "):
        text = text.partition("] ")[2]
    return " ".join(text.rpartition(FOOTER)[0].split() or text.split())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
