"""Play a scenario: find the conversation of a request and its next step."""

import hashlib
import threading
from dataclasses import dataclass, field

from efrit_budget.demo.conversation import ParsedRequest, canonical, plain
from efrit_budget.demo.replies import Reply
from efrit_budget.demo.scenario import Entry, Scenario, Step, steps
from efrit_budget.errors import JsonObject


@dataclass
class Played:
    """The progress of one conversation in the scenario."""

    next: int = 0
    is_answered: bool = False
    """True once the conversation had a reply; after faults alone, the client repeats a request."""
    paused: set[str] = field(default_factory=set)
    """The digests of the last blocks of paused replies."""


class Player:
    """All conversations of this run; used under one lock."""

    def __init__(self, scenario: Scenario) -> None:
        self._steps = steps(scenario)
        self._closing = Step(Entry(text=scenario.closing), 1)
        self._by_key: dict[str, Played] = {}
        self._by_use: dict[str, Played] = {}
        self._lock = threading.Lock()

    def find(self, conversation: ParsedRequest) -> Played:
        """Return the conversation that a request continues, or a new one.

        A conversation is recognized by its user's id; else by the id of a tool use of our
        replies, as a client may rewrite everything else; else by a block of its first message.
        A first message that was answered before begins another conversation.
        """
        keys = _keys(conversation)
        with self._lock:
            played = self._known(conversation, keys) or Played()
            for key in keys:
                self._by_key[key] = played
            return played

    def _known(self, conversation: ParsedRequest, keys: list[str]) -> Played | None:
        if keys[0].startswith("user_id"):
            return self._by_key.get(keys[0])
        for turn in reversed(conversation.turns):
            for placed in turn.of_type("tool_use"):
                if played := self._by_use.get(placed.block["id"]):
                    return played
        played = next((self._by_key[key] for key in keys if key in self._by_key), None)
        begins = all(turn.role != "assistant" for turn in conversation.turns)
        if played is not None and begins and played.is_answered:
            return None
        return played

    def is_paused(self, played: Played, conversation: ParsedRequest) -> bool:
        """Return whether the request ends with a paused reply, to have it continued."""
        last = [block for turn in conversation.turns[-1:] for block in turn.blocks[-1:]]
        return any(_digest(plain(placed.block)) in played.paused for placed in last)

    def next(self, played: Played) -> Step:
        """Return the next step and advance the conversation."""
        with self._lock:
            step = self.peek(played)
            played.next += 1
            played.is_answered = played.is_answered or not step.entry.is_fault
            return step

    def peek(self, played: Played) -> Step:
        """Return the next step without advancing; after the last, the closing reply."""
        return self._steps[played.next] if played.next < len(self._steps) else self._closing

    def remember(self, played: Played, reply: Reply) -> None:
        """Store the ids of a reply's tool uses and, if it paused, the digest of its last block.

        Ids that the scenario gives are no mark of a conversation.
        """
        with self._lock:
            for block in reply.blocks:
                if "id" in block and not reply.entry.ids:
                    self._by_use[str(block["id"])] = played
            if reply.stop_reason == "pause_turn" and reply.blocks:
                played.paused.add(_digest(plain(dict(reply.blocks[-1]))))


def _keys(conversation: ParsedRequest) -> list[str]:
    """Return the user's id, or else digests of the first message, to identify a conversation."""
    if conversation.user_id is not None:
        return [f"user_id {conversation.user_id}"]
    first = [turn.of_type("text", "image") for turn in conversation.turns[:1]]
    return [_digest(plain(placed.block)) for blocks in first for placed in blocks] or ["nothing"]


def _digest(block: JsonObject) -> str:
    return hashlib.sha256(canonical(block)).hexdigest()
