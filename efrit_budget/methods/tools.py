"""The `tools/*` methods."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from efrit_budget.errors import CancelledError, Json, ToolNotFoundError
from efrit_budget.memory.private import public
from efrit_budget.memory.store import MemoryStore
from efrit_budget.methods.discretion import keepable_arguments
from efrit_budget.methods.endings import interrupted, store_patiently, unseen
from efrit_budget.methods.projects import Projects
from efrit_budget.methods.stops import Stops
from efrit_budget.methods.unusable import problem_of
from efrit_budget.methods.verbatim import Members, meant_object
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import filled
from efrit_budget.results.marks import own_and_found
from efrit_budget.results.pages import Cost
from efrit_budget.results.tokens import AGAIN, TokenError, place_of
from efrit_budget.sessions.store import Session, SessionStore
from efrit_budget.storage.database import Database
from efrit_budget.tools.base import (
    LEAST_MAX_TOKENS,
    Arguments,
    Origin,
    Outcome,
    Status,
    Stored,
    Tool,
    ToolContext,
    failure,
)
from efrit_budget.tools.registry import Registry, entry, schema
from efrit_budget.window.schema import suggested_count
from efrit_budget.wire.method import Call, Lane, Method, NoParams, Params, invalid_params
from efrit_budget.worklog.allowance import Grant, Reservations, Standing
from efrit_budget.worklog.compress import head_and_tail
from efrit_budget.worklog.draft import Given
from efrit_budget.worklog.log import WorkLog
from efrit_budget.worklog.recall import SessionResults
from efrit_budget.worklog.use import Use

WAIT_SECONDS = 0.05
TOO_SMALL = "greater_than_equal"
"""How pydantic calls a number below its bound."""

SessionId = Annotated[str, Field(min_length=1, max_length=64)]
ToolUseId = Annotated[str, Field(min_length=1, max_length=200)]


class CallParams(Params):
    """The params of `tools/call`."""

    session_id: SessionId
    name: Annotated[str, Field(min_length=1)]
    arguments: Members = Field(default_factory=dict)
    arguments_json: str | None = None
    tool_use_id: ToolUseId
    continuation_token: str | None = None
    confirm_id: str | None = None
    include_data: bool = True


class RecordParams(Params):
    """The params of `tools/record`: what a tool that ran in the client gave."""

    session_id: SessionId
    name: Annotated[str, Field(min_length=1)]
    arguments: Members = Field(default_factory=dict)
    arguments_json: str | None = None
    tool_use_id: ToolUseId
    status: Literal["success", "error"] = "success"
    text: str = ""
    own_lines: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    """Which lines of the text, from 0, the client says itself; the others were found."""
    data: Members = Field(default_factory=dict)
    message: str | None = None
    summary: Annotated[str, Field(max_length=500)] | None = None
    lisp: str | None = None
    todos: Json = None
    said: bool = False
    include_data: bool = True


class ToolMethods:
    """Listing the tools, running them, and recording what ran in the client."""

    def __init__(  # noqa: PLR0913  what tools stand on
        self,
        registry: Registry,
        sessions: SessionStore,
        worklog: WorkLog,
        database: Database,
        projects: Projects,
        *,
        memory: MemoryStore,
        find_rg: Callable[[], Path],
        hide_processes: bool,
    ) -> None:
        self._registry = registry
        self._sessions = sessions
        self._worklog = worklog
        self._database = database
        self._projects = projects
        self._memory = memory
        self._find_rg = find_rg
        self._hide_processes = hide_processes
        self._stops = Stops()
        self._reservations = Reservations()
        self._confirm_key = secrets.token_bytes(16)

    def methods(self) -> list[Method]:
        """The family's methods."""
        return [
            Method("tools/list", NoParams, self._list),
            Method("tools/call", CallParams, self._call, Lane.SLOW),
            Method("tools/record", RecordParams, self._record, Lane.WRITING),
            *self._stops.methods(),
        ]

    def _list(self, _params: NoParams, _: Call) -> Json:
        return {"tools": [entry(tool) for tool in self._registry]}

    def _call(self, params: CallParams, call: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        tool = self._registry.named(params.name)
        if params.name in session.denied:
            raise ToolNotFoundError(
                f"the settings of {session.root} deny {params.name}", data={"name": params.name}
            )
        arguments = keepable_arguments(tool, _given_arguments(params))
        if params.continuation_token is not None:
            arguments["continuation_token"] = params.continuation_token
        use = Use(session.id, params.tool_use_id, params.name, arguments)
        envelope = self._worklog.find(use)
        if envelope is None:
            wanted = _wanted(session, use)
            with self._reservations.taking(
                use, wanted, partial(self._worklog.standing, session)
            ) as (grant, standing):
                runner = _Runner(self, session, tool, use, grant, standing)
                with self._stops.running(use, call):
                    envelope = runner.run(params.confirm_id, call)
        return _without_data(envelope, include=params.include_data)

    def _record(self, params: RecordParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        params = _public(params) if params.said else params
        use = Use(session.id, params.tool_use_id, params.name, _given_arguments(params))
        envelope = self._worklog.find(use)
        if envelope is None:
            body = Body(own_and_found(params.text, params.own_lines), data=params.data)
            outcome = Outcome(status=Status(params.status), message=params.message, body=body)
            given = Given(
                outcome,
                lambda: params.summary or head_and_tail(params.text),
                params.lisp,
                params.todos,
            )
            with self._reservations.taking(
                use, _wanted(session, use), partial(self._worklog.standing, session)
            ) as (grant, standing):
                envelope = self._worklog.finish(session, use, given, grant, standing)
        return _without_data(envelope, include=params.include_data)

    def context(
        self, session: Session, grant: Grant, cost: Cost, call: Call, *, confirmed: bool = False
    ) -> ToolContext:
        """What a tool may know."""
        return ToolContext(
            project=self._projects.of(session),
            allowance=filled(grant.tokens),
            cost=cost,
            results=SessionResults(self._database, session.id),
            memory=self._memory,
            origin=Origin(Path(session.root).name, session.id),
            find_rg=self._find_rg,
            hide_processes=self._hide_processes,
            confirmed=confirmed,
            cancellation=call.cancellation,
            progress=call.progress,
        )

    def confirm_id(self, use: Use) -> str:
        """What proves that this very call was asked about, by this process."""
        asked = "\0".join((use.session_id, use.tool_use_id, use.tool, use.canonical_arguments))
        return hmac.new(self._confirm_key, asked.encode(), "sha256").hexdigest()[:16]

    @property
    def worklog(self) -> WorkLog:
        """Where results are kept."""
        return self._worklog

    @property
    def registry(self) -> Registry:
        """The tools there are."""
        return self._registry


class _Runner:
    """Runs one use that has not ended yet; one with effects is never started twice."""

    def __init__(
        self,
        methods: ToolMethods,
        session: Session,
        tool: Tool,
        use: Use,
        grant: Grant,
        standing: Standing,
    ) -> None:
        self._methods = methods
        self._session = session
        self._tool = tool
        self._use = use
        self._grant = grant
        self._standing = standing

    def run(self, confirm_id: str | None, call: Call) -> dict[str, Json]:
        """The envelope of the use."""
        arguments = _arguments(self._tool, self._use, self._standing.window.tools)
        if isinstance(arguments, Outcome):
            return self._keep(arguments, None)
        if arguments.continuation_token is not None:
            return self._keep(self._page(arguments.continuation_token, call), arguments)
        if not self._tool.has_effects:
            return self._ran(arguments, confirm_id, call)
        with self._methods.worklog.starting(self._use) as starts:
            if starts:
                envelope = self._ran(arguments, confirm_id, call)
                if not call.cancellation.by_person:
                    call.cancellation.check()
                return envelope
            return self._ended_before(call)

    def _ran(self, arguments: Arguments, confirm_id: str | None, call: Call) -> dict[str, Json]:
        outcome = self._outcome(arguments, confirm_id, call)
        if outcome.status is Status.NEEDS_CONFIRMATION:
            return self._ask(outcome)
        if not self._tool.has_effects:
            return self._keep(outcome, arguments)
        return store_patiently(lambda: self._keep(outcome, arguments), self._use, outcome, call)

    def _page(self, token: str, call: Call) -> Outcome:
        """A later page of a stored result, or what its tool serves behind its end."""
        try:
            place = place_of(self._use.session_id, token)
        except TokenError as error:
            return failure(error.message)
        if not self._methods.worklog.holds(self._session, place.number):
            return failure(f"{token.strip()} leads to a result that is kept no more; {AGAIN}")
        further = self._methods.worklog.further(self._session, place)
        if further is None:
            return Outcome(stored=Stored(place.number, place.offset))
        tool = self._methods.registry.resumable(further.tool)
        return tool.resume(further.more, self._context(call))

    def _context(self, call: Call, *, confirmed: bool = False) -> ToolContext:
        cost = self._standing.bounds.cost
        return self._methods.context(self._session, self._grant, cost, call, confirmed=confirmed)

    def _outcome(self, arguments: Arguments, confirm_id: str | None, call: Call) -> Outcome:
        confirmed = confirm_id is not None and hmac.compare_digest(
            confirm_id.encode(), self._methods.confirm_id(self._use).encode()
        )
        context = self._context(call, confirmed=confirmed)
        try:
            return self._tool.run(arguments, context)
        except BaseException as error:
            problem = problem_of(error, self._use.arguments)
            if problem is not None:
                return failure(f"{self._tool.name}: {problem}")
            if isinstance(error, CancelledError) and call.cancellation.by_person:
                return failure("stopped by the person", interrupted=True)
            if self._tool.has_effects:
                self._keep(interrupted(self._use), None)
            raise

    def _ended_before(self, call: Call) -> dict[str, Json]:
        """The end of a use that was started before: waited for, or never seen."""
        worklog = self._methods.worklog
        while worklog.still_runs(self._use) and not call.cancellation.wait(WAIT_SECONDS):
            pass
        call.cancellation.check()
        return worklog.find(self._use) or self._keep(unseen(self._use), None)

    def _ask(self, outcome: Outcome) -> dict[str, Json]:
        """The question of a call that was not run; nothing of it is kept."""
        if self._tool.has_effects:
            self._methods.worklog.take_back(self._use)
        return {
            "status": str(outcome.status),
            "text": outcome.text,
            "data": outcome.data,
            "tokens": 0,
            "handle": None,
            "confirm": {
                "id": self._methods.confirm_id(self._use),
                "question": outcome.message,
            },
        }

    def _keep(self, outcome: Outcome, arguments: Arguments | None) -> dict[str, Json]:
        def compressor() -> str:
            if arguments is None or outcome.status is not Status.SUCCESS:
                return head_and_tail(outcome.text or outcome.whole.text)
            if outcome.stored is not None:
                return f"A page of {self._tool.name} {self._use.canonical_arguments}"[:500]
            return self._tool.compress(arguments, outcome)

        given = Given(outcome, compressor)
        return self._methods.worklog.finish(
            self._session, self._use, given, self._grant, self._standing
        )


def _given_arguments(params: CallParams | RecordParams) -> dict[str, Json]:
    """The model's arguments, as an object or as its text."""
    if params.arguments_json is None:
        return dict(params.arguments)
    return meant_object("arguments_json", params.arguments_json)


def _public(params: RecordParams) -> RecordParams:
    """The record without what is private in the words of the person that stand in it."""
    given = params.model_dump(include={"text", "data", "message", "summary"})
    return params.model_copy(update=public(given))


def _wanted(session: Session, use: Use) -> int:
    """What a call may use while there is enough: its tool's limit, or less if it says so."""
    most = max(LEAST_MAX_TOKENS, session.limits.for_tool(use.tool))
    asked = use.arguments.get("max_tokens")
    try:
        return min(most, max(LEAST_MAX_TOKENS, int(asked))) if asked is not None else most
    except (TypeError, ValueError, OverflowError):
        return most


def _arguments(tool: Tool, use: Use, offered: str | None) -> Arguments | Outcome:
    """The model's arguments, or what it should know about them.

    The count that a tool was offered with holds where none is given. A token alone says which
    page is wanted, so nothing else is asked for beside it.
    """
    suggested = suggested_count(offered, tool.name, tool.hint.parameter) if tool.hint else {}
    given = suggested | use.arguments
    token = given.get("continuation_token")
    if isinstance(token, str):
        return Arguments.model_construct(continuation_token=token)
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        return _refused(tool, error)


def _refused(tool: Tool, error: ValidationError) -> Outcome:
    """What is wrong with the arguments; a budget that is too small has room for a short word."""
    problem = f"{tool.name}: {invalid_params(error).message}"
    found = next((found for found in error.errors() if found["loc"] == ("max_tokens",)), None)
    if found is None:
        return failure(problem)
    message = f"{problem}; max_tokens is {_max_tokens_range()}"
    said = f"at least {LEAST_MAX_TOKENS}" if found["type"] == TOO_SMALL else _max_tokens_range()
    return replace(failure(f"{tool.name}: max_tokens: {said}"), message=message)


def _max_tokens_range() -> str:
    allowed = schema(Arguments)["properties"]["max_tokens"]
    return f"a whole number from {allowed['minimum']:,} to {allowed['maximum']:,}"


def _without_data(envelope: dict[str, Json], *, include: bool) -> dict[str, Json]:
    if include:
        return envelope
    return {name: value for name, value in envelope.items() if name != "data"}
