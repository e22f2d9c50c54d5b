"""Run tool calls, and record those that ran in the client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from efrit_budget.budget.models import Model
from efrit_budget.cancellation import Cancellation
from efrit_budget.conversation.recall import SessionResults
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import CancelledError, Json, ToolNotFoundError
from efrit_budget.memory.store import MemoryStore
from efrit_budget.results.delivery import filled
from efrit_budget.results.tokens import AGAIN, TokenError, place_of
from efrit_budget.sessions.store import Session, SessionStore
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.allowance import Grant, Reservations
from efrit_budget.toolcalls.arguments import (
    explain_problem,
    parse,
    redact_arguments,
    requested_tokens,
)
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.toolcalls.confirmation import Confirmations
from efrit_budget.toolcalls.entry_draft import Produced
from efrit_budget.toolcalls.interrupted import (
    interrupted_outcome,
    store_with_retry,
    unknown_outcome,
)
from efrit_budget.toolcalls.keep import ResultKeeper
from efrit_budget.toolcalls.running import RunningCalls
from efrit_budget.toolcalls.summary import summarize
from efrit_budget.tools.base import (
    Arguments,
    Origin,
    Outcome,
    Reporter,
    Status,
    Stored,
    Tool,
    ToolContext,
    failure,
)
from efrit_budget.tools.registry import Registry

WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Facilities:
    """What all tools may use beside the project and the results of the session."""

    memory: MemoryStore
    find_rg: Callable[[], Path]
    hide_processes: bool


@dataclass(frozen=True)
class Control:
    """What a client sends with a call beside it: its consent, and its wish to stop."""

    cancellation: Cancellation
    progress: Reporter
    confirm_id: str | None = None


@dataclass(frozen=True)
class _Run:
    """One call that has not ended."""

    session: Session
    tool: Tool
    call: ToolCall
    grant: Grant
    control: Control


class ToolRunner:
    """Runs tool calls; starts one with effects only once."""

    def __init__(
        self,
        database: Database,
        model_named: Callable[[str], Model],
        registry: Registry,
        sessions: SessionStore,
        projects: SessionProjects,
        facilities: Facilities,
    ) -> None:
        self._database = database
        self._registry = registry
        self._sessions = sessions
        self._projects = projects
        self._facilities = facilities
        self._keeper = ResultKeeper(database)
        self._reservations = Reservations(database, model_named)
        self._confirmations = Confirmations()
        self.running = RunningCalls(database)

    def run(self, call: ToolCall, control: Control) -> dict[str, Json]:
        """Return the envelope of a call; one that has ended before is not run again."""
        with self._database.reading():
            session = self._sessions.get_open(call.session_id)
            tool = self._tool(session, call.tool)
            call = call.with_arguments(redact_arguments(tool, call.arguments))
            envelope = self._keeper.find(call)
        if envelope is not None:
            return envelope
        grant = self._reservations.reserve(session, call, requested_tokens(session, call))
        try:
            return self._run(_Run(session, tool, call, grant, control))
        finally:
            self._reservations.release(call)

    def record(self, call: ToolCall, produced: Produced) -> dict[str, Json]:
        """Return the envelope of a call that ran in the client."""
        with self._database.reading():
            session = self._sessions.get_open(call.session_id)
            envelope = self._keeper.find(call)
        if envelope is not None:
            return envelope
        grant = self._reservations.reserve(session, call, requested_tokens(session, call))
        try:
            return self._keeper.keep(session, call, produced, grant)
        finally:
            self._reservations.release(call)

    def close(self) -> None:
        """Give up the mark of this process as alive."""
        self.running.close()

    def _tool(self, session: Session, name: str) -> Tool:
        tool = self._registry.named(name)
        if name in session.denied:
            raise ToolNotFoundError(
                f"the settings of {session.root} deny {name}", data={"name": name}
            )
        return tool

    def _run(self, run: _Run) -> dict[str, Json]:
        arguments = parse(run.tool, run.call, run.grant.window.tools)
        if isinstance(arguments, Outcome):
            return self._keep(run, arguments, None)
        if arguments.continuation_token is not None:
            return self._keep(run, self._page(run, arguments.continuation_token), arguments)
        if not run.tool.has_effects:
            return self._run_tool(run, arguments)
        with self.running.start(run.call) as starts:
            if not starts:
                return self._wait_for_end(run)
            envelope = self._run_tool(run, arguments)
            if not run.control.cancellation.by_person:
                run.control.cancellation.check()
            return envelope

    def _run_tool(self, run: _Run, arguments: Arguments) -> dict[str, Json]:
        outcome = self._outcome(run, arguments)
        if outcome.status is Status.NEEDS_CONFIRMATION:
            if run.tool.has_effects:
                self.running.undo_start(run.call)
            return self._confirmations.envelope(run.call, outcome)
        if not run.tool.has_effects:
            return self._keep(run, outcome, arguments)
        keep = partial(self._keep, run, outcome, arguments)
        control = run.control
        return store_with_retry(keep, run.call, outcome, control.cancellation, control.progress)

    def _outcome(self, run: _Run, arguments: Arguments) -> Outcome:
        confirmed = self._confirmations.confirms(run.call, run.control.confirm_id)
        context = self._context(run, confirmed=confirmed)
        cancellation = run.control.cancellation
        try:
            cancellation.check()
            return run.tool.run(arguments, context)
        except BaseException as error:
            problem = explain_problem(error, run.call.arguments)
            if problem is not None:
                return failure(f"{run.tool.name}: {problem}")
            if isinstance(error, CancelledError) and cancellation.by_person:
                return failure("stopped by the person", interrupted=True)
            if run.tool.has_effects:
                self._keep(run, interrupted_outcome(run.call), None)
            raise

    def _page(self, run: _Run, token: str) -> Outcome:
        """Return a later page of a stored result, or let the tool continue it."""
        session_id = run.session.id
        try:
            place = place_of(session_id, token)
        except TokenError as error:
            return failure(error.message)
        if not self._keeper.has_result(session_id, place.number):
            return failure(f"{token.strip()} leads to a result that is kept no more; {AGAIN}")
        continuation = self._keeper.continuation(session_id, place)
        if continuation is None:
            return Outcome(stored=Stored(place.number, place.offset))
        tool = self._registry.resumable(continuation.tool)
        return tool.resume(continuation.more, self._context(run))

    def _wait_for_end(self, run: _Run) -> dict[str, Json]:
        """Wait for a call that was started before; report it if its process is gone."""
        cancellation = run.control.cancellation
        while self.running.is_running(run.call) and not cancellation.wait(WAIT_SECONDS):
            pass
        cancellation.check()
        envelope = self._keeper.find(run.call)
        return envelope or self._keep(run, unknown_outcome(run.call), None)

    def _keep(self, run: _Run, outcome: Outcome, arguments: Arguments | None) -> dict[str, Json]:
        produced = Produced(outcome, summarize(run.tool, run.call, arguments, outcome))
        return self._keeper.keep(run.session, run.call, produced, run.grant)

    def _context(self, run: _Run, *, confirmed: bool = False) -> ToolContext:
        """Return what a tool may use."""
        return ToolContext(
            project=self._projects.of(run.session),
            allowance=filled(run.grant.tokens),
            cost=run.grant.bounds.cost_to_cut,
            results=SessionResults(self._database, run.session.id),
            memory=self._facilities.memory,
            origin=Origin(Path(run.session.root).name, run.session.id),
            find_rg=self._facilities.find_rg,
            hide_processes=self._facilities.hide_processes,
            confirmed=confirmed,
            cancellation=run.control.cancellation,
            progress=run.control.progress,
        )
