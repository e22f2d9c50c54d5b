"""Write and read sessions of this program as JSON lines."""

from collections.abc import Iterable, Iterator

from efrit_budget.errors import JsonObject
from efrit_budget.replay.recording import RecordedTurn, Recording, RecordingDraft, Result

PROGRAM = "efrit-budget"


def exported(session_id: str, transcript: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the lines of a session: whose it is, and the entries of its transcript."""
    yield {"program": PROGRAM, "session_id": session_id}
    yield from transcript


def fits(event: JsonObject) -> bool:
    """Return whether this program wrote this line."""
    return event.get("program") == PROGRAM


def read(name: str, events: Iterable[JsonObject]) -> Recording:
    """Return the recording; notices of the budget are left out."""
    draft = RecordingDraft()
    turns: dict[int, RecordedTurn] = {}
    for event in events:
        kind, number = event.get("kind"), int(event.get("turn") or 0)
        if kind == "request":
            draft.add_message(event["content"], float(event["begun"]))
        elif kind == "reply":
            turn = draft.begin_reply(str(event["model"]), float(event["ended"] or event["begun"]))
            turn.began = float(event["begun"])
            turns[number] = turn
            for block in event["content"]:
                draft.add_block(turn, block, 0.0)
        elif kind == "result" and number in turns:
            result = Result(str(event["text"] or ""), event["status"] == "error")
            draft.add_result(str(event["tool_use_id"]), result, 0.0)
    return draft.recording(name)
