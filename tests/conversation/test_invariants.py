"""The design's invariants, under random sequences of all operations on a session.

`make test` tries a few sequences, `make soak` many.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from efrit_budget.budget import estimate as estimator
from efrit_budget.budget.estimate import estimate
from efrit_budget.conversation.begin import BudgetError
from efrit_budget.errors import ConflictError, EfritError, InvalidParamsError
from tests.conversation import invariants
from tests.conversation.client import MODEL, Block, Client, text, thinking, tool_use
from tests.conversation.ledger import Reply
from tests.conversation.recalled import NotShownError, read
from tests.conversation.strategies import LIMITS, MESSAGES, MODELS, TOOL_CALLS, USAGE, Call
from tests.soak import amount

FRAME = 30
"""The tokens that each result costs the model beside its text."""
MOST_PAGES = 6
"""The most pages of a result that are read before the session ends."""


@dataclass
class Use:
    """A tool use made by the test."""

    id: str
    name: str
    arguments: dict[str, Any]
    given: str | None
    status: str | None
    turn: int
    envelope: dict[str, Any] | None = None

    def block(self) -> Block:
        """Return the use as a content block."""
        return tool_use(self.id, self.name, **self.arguments)


@dataclass
class Known:
    """The facts that the test knows about the session."""

    replies: list[Reply] = field(default_factory=list)
    pending: list[Use] = field(default_factory=list)
    answered: list[Use] = field(default_factory=list)
    done: list[Use] = field(default_factory=list)
    early: list[Use] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    recorded: int = 0
    is_begun: bool = False
    is_changed: bool = False
    """True if a person changed entries since the last request."""


class Sessions(RuleBasedStateMachine):
    """The same session twice: one of them crashes now and then, but both answer alike."""

    @initialize(
        limits=LIMITS,
        factor=st.sampled_from([0.7, 1.0, 1.3, 2.2]),
        model=st.sampled_from(MODELS),
    )
    def open(self, limits: dict[str, Any], factor: float, model: str) -> None:
        """Open both, on the same project."""
        self.folder = Path(tempfile.mkdtemp())
        root = self.folder / "project"
        self.client = Client(self.folder / "a", root=root, **limits)
        self.twin = Client(self.folder / "b", root=root, **limits)
        self.factor, self.model = factor, model
        self.known = Known()
        self.ids = 0

    def both(self, act: Callable[[Client], Any]) -> Any:
        """Do it in both sessions; they must answer alike, and refusals must change nothing."""
        answer = outcome(act, self.client)
        if isinstance(answer, EfritError):
            assert invariants.everything(self.client) == invariants.everything(self.twin)
        assert invariants.timeless(answer) == invariants.timeless(outcome(act, self.twin))
        if isinstance(answer, Exception):
            raise answer
        return answer

    # Turns

    @rule(
        model=st.sampled_from([None] * 5 + MODELS),
        said=MESSAGES,
        system=st.sampled_from([None] * 8 + ["Be brief.", ""]),
    )
    def begin(self, model: str | None, said: Any, system: str | None) -> None:
        """Begin a turn, with another model or system text now and then."""
        self.model = model or self.model
        held = (self.client.epoch(), self.client.prefix(), self.client.budget()["band"])
        family = self.client.family()
        for client in (self.client, self.twin):
            client.system_text = client.system_text if system is None else system
        try:
            begun = self.both(lambda client: client.begin(said, model=self.model))
        except (BudgetError, InvalidParamsError) as error:
            told = error.message
        else:
            if self.client.family() != family:
                self.client.family_changes += 1
                for reply in self.known.replies:
                    reply.exact = None
            self._has_begun(begun, held)
            return
        assert "Raise the total" in told or "waits for a reply" in told

    def _has_begun(self, begun: dict[str, Any], held: tuple[int, str, str]) -> None:
        known = self.known
        known.answered += known.pending
        known.pending, known.early, known.is_begun = [], [], True
        known.is_changed = False
        if begun["epoch"] == held[0]:
            assert held[1] == self.client.prefix()
        elif held[0]:
            assert begun["epoch"] > held[0]
            assert begun["rewrite"] is not None
            for reply in known.replies:
                reply.is_bare = True
            invariants.check_rewrite(self.client, begun, held[2], self._turn_in_hand())
        invariants.check_request(self.client, begun)

    def _turn_in_hand(self) -> int:
        return max((reply.turn for reply in self.known.replies), default=0)

    @rule(said=MESSAGES, calls=st.lists(TOOL_CALLS, min_size=1, max_size=2))
    def talk(self, said: Any, calls: list[Call]) -> None:
        """Run an ordinary turn."""
        self.begin(None, said, None)
        if not self.known.is_begun:
            self.begin(None, "Go on.", None)
        if self.known.is_begun:
            self.end(calls, True, False, False, "honest", 3)
            while self.known.pending:
                self.run(0)

    @rule(said=MESSAGES, calls=st.lists(TOOL_CALLS, min_size=1, max_size=2))
    def talk_on(self, said: Any, calls: list[Call]) -> None:
        """Run three turns."""
        for number in range(3):
            self.talk(said if number == 0 else None, calls)

    @precondition(lambda self: self.known.is_begun)
    @rule(
        calls=st.lists(TOOL_CALLS, max_size=6),
        thinks=st.booleans(),
        aborted=st.sampled_from([False, False, False, True]),
        repeats=st.sampled_from([False, False, False, True]),
        usage=USAGE,
        says=st.sampled_from([None, " \n", 3, 200]),
    )
    def end(
        self,
        calls: list[Call],
        thinks: bool,
        aborted: bool,
        repeats: bool,
        usage: str,
        says: Any,
    ) -> None:
        """End the turn with a reply."""
        turn = self.client.begun["turn_id"]
        uses = [Use(self._new_id(), *call, turn) for call in calls] + self.known.early
        if repeats and calls:
            self._give_an_earlier_id_to(uses[0])
        blocks = self._blocks(turn, thinks, says, aborted) + [use.block() for use in uses]
        counts = self._usage(usage, blocks)
        self.both(lambda client: client.end(*blocks, usage=counts, aborted=aborted, turn_id=turn))
        self._has_ended(turn, blocks, uses, counts if usage == "honest" else None)

    def _blocks(self, turn: int, thinks: bool, says: Any, aborted: bool) -> list[Block]:
        said = f"turn {turn} " * says if isinstance(says, int) else says
        blocks = [thinking(f"thought of turn {turn}")] if thinks else []
        blocks += [text(said)] if said is not None else []
        broken = {"type": "thinking", "thinking": "and then", "signature": ""}
        return [*blocks, broken] if aborted else blocks

    def _has_ended(
        self, turn: int, blocks: list[Block], uses: list[Use], usage: dict[str, int] | None
    ) -> None:
        known = self.known
        standing = invariants.sendable(blocks)
        exact = usage["output_tokens"] if usage and standing == blocks else None
        if standing:
            known.replies.append(Reply(turn, standing, exact))
        for use in known.early:
            use.turn = turn
        known.recorded += len([use for use in uses if use not in known.early])
        known.pending = [use for use in uses if use not in known.early]
        known.early, known.is_begun = [], False

    def _usage(self, kind: str, blocks: list[Block]) -> Any:
        """Return a usage block: a true one with the hidden factor, or one of several wrong ones."""
        if kind == "honest":
            asked = invariants.last_request(self.client, self.known.replies)
            size = int(asked.raw * self.factor + asked.results * FRAME) + asked.exact
            written = sum(estimate(str(block)) for block in blocks) + 20
            return {"input_tokens": size, "output_tokens": written}
        wrong: dict[str, Any] = {
            "missing": None,
            "absurd": {"input_tokens": 10**12, "output_tokens": 10**7},
            "no numbers": {"input_tokens": "many", "output_tokens": -3},
            "tiny": {"input_tokens": 1, "output_tokens": 0},
        }
        return wrong[kind]

    def _new_id(self) -> str:
        self.ids += 1
        return f"use_{self.ids}"

    def _give_an_earlier_id_to(self, use: Use) -> None:
        """Reuse an earlier id, as servers do that number the uses of each reply from the start."""
        for earlier in [use for use in self.known.done if use not in self.known.early][:1]:
            self.known.done.remove(earlier)
            use.id = earlier.id

    # Tools

    @precondition(lambda self: self.known.pending)
    @rule(which=st.integers(0, 5))
    def run(self, which: int) -> None:
        """Run one of the tools that the reply asked for."""
        use = self.known.pending.pop(which % len(self.known.pending))
        self._give(use)

    @precondition(lambda self: self.known.answered)
    @rule()
    def run_late(self) -> None:
        """Run one when the conversation has gone on without it."""
        self._give(self.known.answered.pop())
        self.known.recorded += 1

    @rule(call=TOOL_CALLS)
    def run_unasked(self, call: Call) -> None:
        """Run one that no reply asked for; one whose reply is still to come may be told of."""
        use = Use(self._new_id(), *call, 0)
        self._give(use)
        self.known.recorded += 1
        if self.known.is_begun:
            self.known.early.append(use)

    def _give(self, use: Use) -> None:
        use.envelope = self.both(lambda client: given(client, use))
        self.known.done.append(use)
        handle = use.envelope["handle"]
        invariants.check_delivery(self.client, use.envelope, use.name, use.arguments)
        if use.given is not None:
            self.known.texts[handle] = use.given

    @precondition(lambda self: self.known.done)
    @rule(which=st.integers(0, 1_000))
    def run_again(self, which: int) -> None:
        """Run a use again; it must return the same envelope."""
        use = self.known.done[which % len(self.known.done)]
        assert self.both(lambda client: given(client, use)) == use.envelope

    @precondition(lambda self: self.known.texts)
    @rule(which=st.integers(0, 1_000))
    def recall(self, which: int) -> None:
        """Recall any result; it must be identical if the budget suffices."""
        handle = sorted(self.known.texts)[which % len(self.known.texts)]
        self._recall(handle)

    def _recall(self, handle: str) -> bool:
        """Recall a result and return whether the budget sufficed for all of it."""
        original = self.known.texts[handle]
        before = self.client.listed()
        try:
            found = self.both(lambda client: read(client, handle, original, most_pages=MOST_PAGES))
        except NotShownError:
            found = None
        self.known.recorded += self.client.listed() - before
        assert found is None or found.returned == found.total
        return found is not None

    # The person

    @precondition(lambda self: self.known.done)
    @rule(wish=st.sampled_from(["pin", "unpin", "drop", "restore"]), which=st.integers(0, 1_000))
    def wish(self, wish: str, which: int) -> None:
        """Change an entry of the work log."""
        use = self.known.done[which % len(self.known.done)]
        assert use.envelope is not None
        handle = use.envelope["handle"]
        try:
            self.both(lambda client: client.call(f"worklog/{wish}", handle=handle))
        except ConflictError:
            assert wish in ("pin", "restore")
        else:
            self.known.is_changed = self.known.is_changed or wish in ("drop", "restore")

    @rule(names=st.sampled_from([[], ["eval_sexp"], ["eval_sexp", "show_buffer"]]))
    def register(self, names: list[str]) -> None:
        """Register other tools of the client."""
        schema = {"type": "object", "properties": {}}
        tools = [
            {"name": name, "description": f"Do {name}.", "input_schema": schema} for name in names
        ]
        self.both(lambda client: client.call("tools/register", tools=tools))

    @rule(closes=st.booleans())
    def crash(self, closes: bool) -> None:
        """Replace the process by a new one, after a crash or an orderly close."""
        if closes:
            self.both(lambda client: client.call("session/close"))
            self.both(lambda client: client.call("session/resume"))
        else:
            self.client.crash()

    # What always holds

    @invariant()
    def holds(self) -> None:
        """Check the invariants, which hold after every step."""
        if hasattr(self, "known"):
            invariants.check_standing(self.client, self.known.recorded)
            if not self.known.is_changed:
                unsent = [use.envelope["text"] for use in self._unsent() if use.envelope]
                invariants.check_ledger(self.client, self.known.replies, unsent)

    def _unsent(self) -> list[Use]:
        """Return the uses whose results go with the next request."""
        if self.known.is_begun:
            return []
        turn = self.client.begun.get("turn_id")
        return [use for use in self.known.done if use.turn == turn]

    def teardown(self) -> None:
        """Check at the end that everything recorded can still be read."""
        if not hasattr(self, "known"):
            return
        plenty = {"total": 10_000_000, "per_tool_default": 1_000_000}
        for client in (self.client, self.twin):
            client.app.call(
                "session/open",
                {"root": str(client.root), "session_id": client.session, "limits": plenty},
            )
        for handle in self.known.texts:
            if not self._recall(handle):
                self.begin(MODEL, "Show it.", None)
                assert self._recall(handle), f"{handle} is lost in a window of a million tokens"
        self.client.close()
        self.twin.close()
        shutil.rmtree(self.folder)


def outcome(act: Callable[[Client], Any], client: Client) -> Any:
    """Return the value or the error of a call; the estimator samples the same places each time."""
    try:
        with patch.object(estimator, "random", random.Random(0)):
            return act(client)
    except (EfritError, NotShownError) as error:
        return error


def given(client: Client, use: Use) -> dict[str, Any]:
    """Return the envelope of a use, run by the sidecar or recorded by the client."""
    if use.given is not None:
        return client.record(
            use.id, use.given, name=use.name, arguments=use.arguments, status=use.status
        )
    envelope: dict[str, Any] = client.call(
        "tools/call", name=use.name, arguments=use.arguments, tool_use_id=use.id
    )
    return envelope


TestSessions = Sessions.TestCase
TestSessions.settings = settings(
    max_examples=amount(6, 120), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
