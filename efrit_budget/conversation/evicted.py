"""Write the lines of evicted turns, which stand at the beginning of the first message."""

import json
from collections.abc import Callable
from sqlite3 import Connection, Row

from efrit_budget.budget.families import Family
from efrit_budget.conversation import calls, segments
from efrit_budget.conversation.compressed_line import summary_of
from efrit_budget.conversation.pieces import Phase, PieceState
from efrit_budget.errors import JsonObject
from efrit_budget.results.packer import Item, pack
from efrit_budget.results.tokens import handle

MOST_LINES = 400
SHARE = 4
"""The lines of evicted turns take at most the history tier divided by this number."""
LINE_TOKENS = 60
"""The tokens that a plan assumes for each line, as plans are made before lines are written."""
TITLE = "Earlier turns, a line each; recall_result with a handle brings any of them back whole:"
WORDS = 90


def short_head(gone: int) -> str:
    """Return the line that only says how many turns were evicted, used if no turn's line fits."""
    return f"({gone:,} earlier turns left; recall_result lists them)"


def title_and_rest(gone: int) -> str:
    """Return the title of the lines of evicted turns; `gone` turns before them have no line."""
    return f"{TITLE}\n({gone:,} turns before these: recall_result lists all)\n"


def evicted_lines(
    connection: Connection, session_id: str, allowance: int, cost: Callable[[str], int]
) -> str | None:
    """Return lines for the latest evicted turns that fit, oldest first; None if there are none."""
    gone = segments.count_evicted(connection, session_id)
    if not gone:
        return None
    turns = segments.list_evicted_turns(connection, session_id, MOST_LINES)
    items = [_item(connection, session_id, turn) for turn in turns]
    packed = pack(items, allowance - lines_cost(title_and_rest(gone), cost), cost)
    if not packed.lines:
        return short_head(gone)
    left_out = gone - packed.shown
    title = title_and_rest(left_out) if left_out else f"{TITLE}\n"
    return title + "\n".join(reversed(packed.texts))


def lines_cost(text: str, cost: Callable[[str], int]) -> int:
    """Return the cost of a text counted line by line."""
    return sum(cost(line) for line in text.splitlines(keepends=True))


def head_estimate(lines: str | None, family: Family) -> int:
    """Return the estimate of the lines of evicted turns, 0 where there are none."""
    return lines_cost(lines or "", family.estimate)


def _item(connection: Connection, session_id: str, turn: int) -> Item:
    """Return an evicted turn in three forms: a long line, a short line, and its handles alone."""
    messages = [
        _message_text(row)
        for row in segments.list_turn(connection, session_id, turn)
        if row["state"] == PieceState.GONE
    ]
    evicted = calls.list_evicted(connection, session_id, turn)
    handles = " ".join(handle(row["number"]) for row in evicted if row["number"])
    name = f"t{turn} {handles}".rstrip()
    long = [*messages, *(_call_text(row, WORDS) for row in evicted)]
    short = [*(part[:40] for part in messages), *(_call_text(row, 0) for row in evicted)]
    return Item((f"{name}: {'; '.join(long)}", f"{name}: {'; '.join(short)}", name))


def _message_text(row: Row) -> str:
    who = "the person" if row["phase"] == Phase.REQUEST else "you"
    words = " ".join(text_of(json.loads(row["content"])).split())
    return f"{who}: {_cut(words, WORDS)}" if words else who


def text_of(blocks: list[JsonObject]) -> str:
    """Return the texts of the text blocks, joined by newlines."""
    return "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text")


def _call_text(row: Row, words: int) -> str:
    arguments = row["arguments"] if row["arguments"] != "{}" else ""
    called = f"{row['tool']} {_cut(arguments, 60)}".rstrip()
    outcome = summary_of(row)
    return f"{called}: {_cut(outcome, words)}" if words and outcome else called


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
