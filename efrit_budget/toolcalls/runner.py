"""Run tool calls, and record those that ran in the client."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from efrit_budget.budget.models import Model
from efrit_budget.cancellation import Cancellation
from efrit_budget.conversation.recall import SessionResults
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import CancelledError, JsonObject, ToolNotFoundError
from efrit_budget.memory.store import MemoryStore
from efrit_budget.results.delivery import filled
from efrit_budget.results.tokens import AGAIN, TokenError, place_of
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.settings.model import ToolSettings
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.allowance import Allowance, Reservations
from efrit_budget.toolcalls.arguments import (
    explain_problem,
    parse,
)
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.toolcalls.confirmation import Confirmations
from efrit_budget.toolcalls.entry_draft import Produced
from efrit_budget.toolcalls.images import with_images
from efrit_budget.toolcalls.interrupted import (
    interrupted_outcome,
    store_with_retry,
    unknown_outcome,
)
from efrit_budget.toolcalls.keep import ResultKeeper
from efrit_budget.toolcalls.running import RunningCalls
from efrit_budget.toolcalls.served import SessionTools
from efrit_budget.toolcalls.summary import summarize
from efrit_budget.tools.base import (
    Arguments,
    Discreet,
    Origin,
    Outcome,
    Reporter,
    Status,
    Stored,
    Tool,
    ToolContext,
    failure,
)

WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Facilities:
    """The facilities of tools that are the same in all sessions."""

    memory: MemoryStore
    find_rg: Callable[[], Path]
    settings: ToolSettings


@dataclass(frozen=True)
class Control:
    """The means to stop a call and to report its progress, and the client's wishes for it."""

    cancellation: Cancellation
    progress: Reporter
    confirm_id: str | None = None
    with_data: bool = True
    """Whether the envelope has the data for programs, too."""


@dataclass(frozen=True)
class _Run:
    """One call that has not ended."""

    session: Session
    tool: Tool
    call: ToolCall
    allowance: Allowance
    control: Control


class ToolRunner:
    """Runs tool calls; starts one with effects only once."""

    def __init__(
        self,
        database: Database,
        model_named: Callable[[str], Model],
        tools: SessionTools,
        sessions: SessionStore,
        projects: SessionProjects,
        facilities: Facilities,
        *,
        running: RunningCalls,
    ) -> None:
        self._database = database
        self._tools = tools
        self._sessions = sessions
        self._projects = projects
        self._facilities = facilities
        self._keeper = ResultKeeper(database)
        self._reservations = Reservations(database, model_named)
        self._confirmations = Confirmations()
        self.running = running

    def run(self, call: ToolCall, control: Control) -> JsonObject:
        """Return the envelope of a call; one that has ended before is not run again."""
        try:
            with self._database.reading():
                session = self._sessions.get_open(call.session_id)
                tool = self._tools.named(session.id, call.tool)
                if call.tool in session.denied:
                    denied = f"the settings of {session.root} deny {call.tool}"
                    raise ToolNotFoundError(denied, data={"name": call.tool})
                if isinstance(tool, Discreet):
                    call = replace(call, arguments=tool.kept_arguments(call.arguments))
                envelope = self._keeper.find(call, with_data=control.with_data)
            if envelope is not None:
                return envelope
            with self._reservations.reserve(session, call) as allowance:
                return self._run(_Run(session, tool, call, allowance, control))
        finally:
            self.running.depart(call, control.cancellation)

    def record(self, call: ToolCall, produced: Produced, *, with_data: bool) -> JsonObject:
        """Return the envelope of a call that ran in the client."""
        with self._database.reading():
            session = self._sessions.get_open(call.session_id)
            envelope = self._keeper.find(call, with_data=with_data)
        if envelope is not None:
            return envelope
        with self._reservations.reserve(session, call) as allowance:
            produced = with_images(produced, filled(allowance.tokens))
            return self._keeper.keep(session, call, produced, allowance, with_data=with_data)

    def _run(self, run: _Run) -> JsonObject:
        arguments = parse(run.tool, run.call, run.allowance.window.tools)
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

    def _run_tool(self, run: _Run, arguments: Arguments) -> JsonObject:
        """Run the tool; store its outcome unless it only asks a question; return the envelope."""
        cancellation = run.control.cancellation
        try:
            cancellation.check()
            outcome = run.tool.run(arguments, self._context(run))
        except BaseException as error:
            problem = explain_problem(error, run.call.arguments)
            if problem is not None:
                failed = failure(f"{run.tool.name}: {problem}")
                return self._keep(run, failed, arguments, retries=run.tool.has_effects)
            if isinstance(error, CancelledError) and cancellation.by_person:
                stopped = failure("stopped by the person", interrupted=True)
                stopped = replace(stopped, gist="you")
                return self._keep(run, stopped, arguments, retries=run.tool.has_effects)
            if run.tool.has_effects:
                self._keep(run, interrupted_outcome(run.call), None)
            raise
        if outcome.status is not Status.NEEDS_CONFIRMATION:
            return self._keep(run, outcome, arguments, retries=run.tool.has_effects)
        if run.tool.has_effects:
            self.running.undo_start(run.call)
        with_data = run.control.with_data
        return self._confirmations.envelope(run.call, outcome, with_data=with_data)

    def _page(self, run: _Run, token: str) -> Outcome:
        """Return the outcome for a continuation token: stored text, or what `resume` serves."""
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
        tool = self._tools.resumable(continuation.tool)
        return tool.resume(continuation.more, self._context(run))

    def _wait_for_end(self, run: _Run) -> JsonObject:
        """Wait for a call started before; return its envelope, an error if its process died."""
        cancellation = run.control.cancellation
        while self.running.is_running(run.call) and not cancellation.wait(WAIT_SECONDS):
            pass
        cancellation.check()
        envelope = self._keeper.find(run.call, with_data=run.control.with_data)
        return envelope or self._keep(run, unknown_outcome(run.call), None)

    def _keep(
        self, run: _Run, outcome: Outcome, arguments: Arguments | None, *, retries: bool = False
    ) -> JsonObject:
        """Store an outcome, with `retries` while the database is busy; return the envelope."""
        summary = summarize(run.tool, run.call, arguments, outcome)
        is_stopped = outcome.status is Status.ERROR and run.control.cancellation.cancelled
        ending = "stopped" if is_stopped else None
        produced = Produced(outcome, summary, gist=outcome.gist, ending=ending)
        produced = with_images(produced, filled(run.allowance.tokens))
        keep, control = self._keeper.keep, run.control
        kept = (run.session, run.call, produced, run.allowance)
        if not retries:
            return keep(*kept, with_data=control.with_data)
        store = partial(keep, *kept, with_data=control.with_data)
        return store_with_retry(store, run.call, outcome, control.cancellation, control.progress)

    def _context(self, run: _Run) -> ToolContext:
        """Return the project, the allowance and everything else that the tool may use."""
        confirm_id = run.control.confirm_id
        return ToolContext(
            project=self._projects.of(run.session),
            allowance=filled(run.allowance.tokens),
            cost=run.allowance.bounds.cost_to_cut,
            results=SessionResults(self._database, run.session.id),
            memory=self._facilities.memory,
            origin=Origin(Path(run.session.root).name, run.session.id),
            find_rg=self._facilities.find_rg,
            settings=self._facilities.settings,
            confirmed=(
                confirm_id is not None and self._confirmations.confirms(run.call, confirm_id)
            ),
            cancellation=run.control.cancellation,
            progress=run.control.progress,
        )
