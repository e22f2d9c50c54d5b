"""A check that everything a session recorded can be recalled byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from efrit_budget.app import Application
from efrit_budget.characters import one_line_each
from efrit_budget.conversation.recall import SessionResults
from efrit_budget.errors import JsonObject
from tests.benchmarks.session_conversation import CONTINUED

AT_ONCE = 6
TAIL = re.compile(
    r"\n?(?:[^\n]* continues\.\n|§ Only the first [\d,]+ of [^\n]* stored\.\n)?\n*📏 ~[^\n]*\Z"
)
SAME = re.compile(r"§ Same as (r\d+), which is in the window in full\.")


class Turns(Protocol):
    """The interface that continues a session after its script has ended."""

    session: str

    def extra_turn(self, uses: list[JsonObject]) -> list[JsonObject]:
        """Run these calls in one turn."""

    def shows(self, stretch: str) -> bool:
        """Return whether a result in the window contains this text."""


def lost(turns: Turns, originals: Mapping[str, str], application: Application) -> int:
    """Count the results that differ from the original, in the store or through `recall_result`.

    What is delivered shows control characters as pictures, as every result does.
    """
    stored = SessionResults(application._database, turns.session)
    wrong = {handle for handle, text in originals.items() if stored.body(handle).text != text}
    shown = {handle: one_line_each(text) for handle, text in originals.items()}
    recalled = _recalled(turns, shown)
    return len(wrong | {handle for handle, text in shown.items() if recalled[handle] != text})


def _recalled(turns: Turns, originals: Mapping[str, str]) -> dict[str, str]:
    """Recall every result and join its pages."""
    found = dict.fromkeys(originals, "")
    waiting: list[JsonObject] = [{"handle": handle} for handle in originals]
    count = 0
    while waiting:
        arguments, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        uses = []
        for each in arguments:
            count += 1
            use = {"type": "tool_use", "id": f"recall{count}", "name": "recall_result"}
            uses.append({**use, "input": each})
        envelopes = turns.extra_turn(uses)
        beside = "".join(str(envelope["text"]) for envelope in envelopes)
        following = [
            _taken(turns, found, originals, (each, envelope), beside)
            for each, envelope in zip(arguments, envelopes, strict=True)
        ]
        waiting = [each for each in following if each] + waiting
    return found


def _taken(
    turns: Turns,
    found: dict[str, str],
    originals: Mapping[str, str],
    answered: tuple[JsonObject, JsonObject],
    beside: str,
) -> JsonObject | None:
    """Append a page to those before it and return the arguments for the next.

    A page that is said to be in the window counts only if it is there, or comes in the same turn
    (`beside`).
    """
    arguments, envelope = answered
    token = envelope["data"].get("continuation_token")
    handle = str(arguments.get("handle") or arguments["continuation_token"]).partition(":")[0]
    start = len(found[handle])
    end = int(token.partition(":")[2].partition("-")[0]) if token else len(originals[handle])
    text = envelope["text"]
    if start:
        text = CONTINUED.sub("", text, count=1)
    same = SAME.match(text)
    page = originals[same[1]][start:end] if same else TAIL.sub("", text)
    if same and page not in beside and not turns.shows(page):
        page = ""
    whole = originals[handle][start:end]
    if not same and page.rstrip("\n") == whole.rstrip("\n"):
        page = whole  # the tail stands on a line of its own, behind the last line ends
    found[handle] += page
    is_over = end >= len(originals[handle])  # what a tool would serve behind it was never stored
    return {"continuation_token": token} if token and not is_over else None
