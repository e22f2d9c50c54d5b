"""The turns of a session: each begins with a request to send and ends with its reply."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

from efrit_budget.budget.bands import Band
from efrit_budget.budget.calibration import Calibration, counts_of
from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import dollars
from efrit_budget.budget.tiers import Tier
from efrit_budget.errors import Json
from efrit_budget.sessions.store import Session, touch
from efrit_budget.storage.database import Database
from efrit_budget.window import record
from efrit_budget.window.begin import Begun, Wanted, begin
from efrit_budget.window.end import Reply, end, measured, usages
from efrit_budget.window.frame import Bounds, bounds_of, used_now
from efrit_budget.window.messages import assemble
from efrit_budget.window.pieces import Content, Phase, Piece, State
from efrit_budget.window.preview import cached, full_results, previewed
from efrit_budget.window.record import Window
from efrit_budget.window.said import said
from efrit_budget.window.uses import plain_id

ModelNamed = Callable[[str], Model]


class Turns:
    """Begins and ends turns, each in one transaction, and tells how a window stands."""

    def __init__(self, database: Database, model_named: ModelNamed) -> None:
        self._database = database
        self._model_named = model_named

    def begin(self, session: Session, wanted: Wanted) -> dict[str, Json]:
        """What the next model call should look like."""
        with self._database.writing() as connection:
            touch(connection, session.id)
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, wanted.model, self._model_named)
            begun = begin(connection, window, wanted, bounds)
            return (
                _reply(begun, bounds)
                | _whole_again(connection, begun, bounds)
                | {
                    "left_window": begun.window.left_window,
                    "budget": snapshot(begun.pieces, begun.window, bounds),
                }
            )

    def preview(self, session: Session, wanted: Wanted, *, caching: bool) -> dict[str, Json]:
        """What that would hold and cost; nothing is kept of it."""
        with self._database.trying() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, wanted.model, self._model_named)
            before = full_results(connection, session.id)
            held = cached(connection, window, bounds.model) if caching else None
            begun = begin(connection, window, wanted, bounds)
            left = full_results(connection, session.id)
            budget = snapshot(begun.pieces, begun.window, bounds)
        shrinking = [entry for number, entry in before.items() if number not in left]
        return previewed(begun, bounds, shrinking, budget, held)

    def end(self, session: Session, reply: Reply) -> dict[str, Json]:
        """Keep what the model replied; gives how the budget stands for its tools."""
        with self._database.writing() as connection:
            touch(connection, session.id)
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            ended = end(connection, window, reply, bounds)
            return {
                "turn_id": ended.turn,
                "append": {"messages": ended.messages} if ended.messages else None,
                "budget": _snapshot_of(connection, ended.window, ended.bounds),
            }

    def budget(self, session: Session) -> dict[str, Json]:
        """How the budget stands."""
        with self._database.reading() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            return _snapshot_of(connection, window, bounds)

    def messages(self, session: Session) -> dict[str, Json]:
        """The conversation as it stands in the window: what was sent, and what came back."""
        with self._database.reading() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            pieces = record.pieces(connection, session.id, bounds.calibration)
            return {
                "epoch": window.epoch,
                "model": window.model,
                "system": json.loads(window.system or "[]"),
                "tools": json.loads(window.tools or "[]"),
                "messages": list(_as_sent(connection, window, pieces)),
            }

    def transcript(self, session: Session) -> dict[str, Json]:
        """All that was ever said, in order, thinking and evicted turns included."""
        with self._database.reading() as connection:
            return {"turns": list(_whole_turns(connection, session.id))}

    def said(self, session: Session) -> dict[str, Json]:
        """The requests and replies with what each costs, and only how it begins."""
        with self._database.reading() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            return {"turns": said(connection, window, bounds.calibration)}

    def usage(self, session_id: str) -> dict[str, int]:
        """What the API counted in all turns of a session."""
        whole: Counter[str] = Counter()
        for _, usage in self._usages(session_id):
            whole.update(usage)
        return dict(whole)

    def last_time(self, session_id: str) -> float | None:
        """When the latest turn ended, or began if it did not end; None where there was none."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT max(coalesce(ended, begun)) AS latest FROM turns WHERE session_id = ?",
                (session_id,),
            ).fetchone()
        latest: float | None = row["latest"]
        return latest

    def todos(self, session_id: str) -> Json:
        """What is to be done, as the model wrote it last; None where it never did."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT todos FROM calls WHERE session_id = ? AND todos IS NOT NULL"
                " ORDER BY ended DESC LIMIT 1",
                (session_id,),
            ).fetchone()
        return None if row is None else json.loads(row["todos"])

    def dollars(self, session_id: str) -> float | None:
        """What the turns of a session cost; None where a model's price is not known."""
        prices = [dollars(model, usage) for model, usage in self._usages(session_id)]
        known = [price for price in prices if price is not None]
        return round(sum(known), 6) if len(known) == len(prices) else None

    def _usages(self, session_id: str) -> list[tuple[str, dict[str, int]]]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT model, usage FROM turns WHERE session_id = ? AND usage IS NOT NULL",
                (session_id,),
            ).fetchall()
        return [
            (row["model"], counts_of(usage))
            for row in rows
            for usage in usages(json.loads(row["usage"]))
        ]

    def calibration(self, connection: sqlite3.Connection, session: Session) -> Calibration:
        """What a session's tokens are counted by now."""
        window = record.load(connection, session.id)
        return bounds_of(connection, session.limits, window.model, self._model_named).calibration

    def remeasure(
        self, connection: sqlite3.Connection, session: Session, *, comes_back: bool
    ) -> None:
        """Count the window anew, after a person changed how its pieces stand.

        A wish that was taken back costs no rewrite; what had left the window and came back does.
        """
        window = record.load(connection, session.id)
        bounds = bounds_of(connection, session.limits, window.model, self._model_named)
        if comes_back or window.must_rewrite == record.CAME_BACK:
            must_rewrite = record.CAME_BACK
        else:
            must_rewrite = int(record.has_wishes(connection, session.id))
        window = replace(window, must_rewrite=must_rewrite)
        record.save(connection, measured(connection, window, bounds))


def _reply(begun: Begun, bounds: Bounds) -> dict[str, Json]:
    window, messages = begun.window, begun.assembly.messages
    appended = {"messages": messages} if messages and not begun.rewritten else None
    return {
        "turn_id": begun.turn,
        "epoch": window.epoch,
        "system": json.loads(window.system or "[]"),
        "tools": json.loads(window.tools or "[]"),
        "rewrite": {"messages": messages} if begun.rewritten else None,
        "append": appended,
        "max_tokens": bounds.reply_limit,
        "model": asdict(bounds.model),
        "notes": list(begun.notes),
    }


def _snapshot_of(connection: sqlite3.Connection, window: Window, bounds: Bounds) -> dict[str, Json]:
    """The same of the pieces that are kept."""
    pieces = record.pieces(connection, window.session_id, bounds.calibration)
    return snapshot(pieces, window, bounds)


def snapshot(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> dict[str, Json]:
    """The budget as it goes over the wire."""
    used = used_now(pieces, window, bounds)
    if not window.turn:
        used[Tier.TOOL_RESULTS] += window.turn_tokens
    total = sum(used.values())
    remaining = max(0, bounds.prompt_limit - total)
    kept = min(total, window.kept + window.turn_tokens) if window.turn else total
    return {
        "tiers": {
            str(tier): {"used": used[tier], "limit": bounds.limits.of(tier)} for tier in Tier
        },
        "total": bounds.limits.total,
        "prompt_limit": bounds.prompt_limit,
        "remaining": remaining,
        "reclaimable": total - kept,
        "available_for_tools": max(0, bounds.prompt_limit - kept),
        "band": str(Band(window.band)),
        "calibration": {"model": window.model, **bounds.calibration.as_dict()},
        "epoch": window.epoch,
        "turn": window.turn,
        "summary": _summary(used, total, bounds),
    }


def _whole_again(connection: sqlite3.Connection, begun: Begun, bounds: Bounds) -> dict[str, Json]:
    """Return the whole conversation for a client that asks again: it may lack any of it."""
    if not begun.sent_again or begun.rewritten:
        return {}
    pieces = record.pieces(connection, begun.window.session_id, bounds.calibration)
    messages = list(_as_sent(connection, begun.window, pieces))
    return {"rewrite": {"messages": messages}, "append": None}


def _summary(used: dict[Tier, int], total: int, bounds: Bounds) -> str:
    """One line for people."""
    parts = [
        f"{tier.replace('_', ' ')} {used[tier]:,}/{bounds.limits.of(tier):,}"
        for tier in Tier
        if tier is not Tier.RESPONSE
    ]
    return f"{total:,} of {bounds.prompt_limit:,} tokens in the prompt: {', '.join(parts)}"


def _as_sent(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece]
) -> Iterator[dict[str, Json]]:
    """The messages with the bounds they were sent in: each place is one message."""
    by_place: dict[int, list[tuple[Piece, Content]]] = {}
    for piece in pieces:
        if piece.place is not None:
            sent = replace(piece, state=piece.sent_state)
            content = record.content(connection, window.session_id, sent)
            by_place.setdefault(piece.place, []).append((sent, content))
    for place in range(window.next_place):
        head = window.head if place == 0 else None
        yield from assemble(by_place.get(place, ()), head=head).messages


def _whole_turns(connection: sqlite3.Connection, session_id: str) -> Iterator[dict[str, Json]]:
    segments = connection.execute(
        "SELECT turn, phase, role, content, state FROM segments WHERE session_id = ?"
        " ORDER BY turn, phase",
        (session_id,),
    ).fetchall()
    for row in segments:
        entry = {
            "turn": row["turn"],
            "kind": Phase(row["phase"]).name.lower(),
            "role": row["role"],
            "content": json.loads(row["content"]),
            "in_window": row["state"] != State.GONE,
        }
        yield entry
        if row["phase"] == Phase.REPLY:
            yield from _results_of(connection, session_id, row["turn"])
    yield from _results_of(connection, session_id, None)


def _results_of(
    connection: sqlite3.Connection, session_id: str, turn: int | None
) -> Iterator[dict[str, Json]]:
    """The results of a turn's calls; those that belong to none come last."""
    rows = connection.execute(
        "SELECT tool, arguments, tool_use_id, number, status, delivered, tokens, state"
        " FROM calls WHERE session_id = ? AND turn IS ? ORDER BY ordinal, ended",
        (session_id, turn),
    ).fetchall()
    for row in rows:
        yield {
            "turn": turn,
            "kind": "result",
            "role": "user",
            "tool": row["tool"],
            "arguments": json.loads(row["arguments"]),
            "tool_use_id": plain_id(row["tool_use_id"]),
            "handle": f"r{row['number']}" if row["number"] else None,
            "status": row["status"],
            "text": row["delivered"],
            "tokens": row["tokens"],
            "in_window": turn is not None and row["state"] in (State.FULL, State.COMPRESSED),
            "state": row["state"],
        }
