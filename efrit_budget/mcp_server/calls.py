"""Run the tool calls of an MCP client."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

from efrit_budget.app import Application
from efrit_budget.errors import EfritError, JsonObject, SessionClosedError, SessionNotFoundError
from efrit_budget.gateway.bodies import Recorded, own_failure, recorded
from efrit_budget.gateway.gateway import Gateway
from efrit_budget.mcp_server.questions import Answer, answer_in, ask, can_ask, refusal
from efrit_budget.mcp_server.replies import problem, reply_of
from efrit_budget.mcp_server.sessions import ClientSessions
from efrit_budget.mcp_server.threads import CallThreads, in_thread
from efrit_budget.wire.call import Call

Context = ServerRequestContext[Any]
Reply = CallToolResult | InputRequiredResult

COMPACTED = (
    "§ The budget was used up, so earlier results no longer count as part of your context;"
    " recall_result brings any of them back by its handle."
)
NOBODY = "it needs the person's consent, and this client cannot ask (it has no elicitation)"


@dataclass(frozen=True)
class ToolRun:
    """One tool call: its session, its id, and the params of the method that runs it."""

    session_id: str
    name: str
    arguments: JsonObject
    tool_use_id: str = field(default_factory=lambda: f"mcp-{os.urandom(12).hex()}")

    def params(self, **more: Any) -> JsonObject:
        """Return the params of `tools/call` or `tools/record` for this call."""
        return {
            "session_id": self.session_id,
            "name": self.name,
            "arguments": self.arguments,
            "tool_use_id": self.tool_use_id,
            **more,
        }


@dataclass(frozen=True)
class Delivery:
    """The envelope of a call, and whether the session was compacted before it."""

    envelope: JsonObject
    compacted: bool


class ToolCalls:
    """Runs tool calls in the sessions that they name."""

    def __init__(
        self,
        application: Application,
        sessions: ClientSessions,
        gateway: Gateway | None,
        *,
        structured: bool,
    ) -> None:
        self._application = application
        self._sessions = sessions
        self._gateway = gateway
        self._structured = structured
        self._threads = CallThreads()

    async def call(self, context: Context, params: CallToolRequestParams) -> Reply:
        """Run a call and return its reply; return what is wrong with it as an error."""
        arguments = dict(params.arguments or {})
        is_theirs = self._gateway is not None and self._gateway.has_own_session(params.name)
        name = None if is_theirs else arguments.pop("session", None)
        if not isinstance(name, str | None):
            return problem("session: the name of a session is a text, such as k7m2")
        try:
            session_id = await self._session_id(name)
            answer = answer_in(params)
            run = ToolRun(session_id, params.name, arguments)
            if answer is not None:
                run = ToolRun(session_id, params.name, arguments, answer.tool_use_id)
            return await self._run(context, run, answer)
        except (SessionNotFoundError, SessionClosedError):
            self._sessions.forget(name)
            return problem("the session was deleted or closed; call again, and it is opened anew")
        except EfritError as error:
            return problem(error.message)

    async def _session_id(self, name: str | None) -> str:
        opened = self._sessions.opened(name)
        if opened is not None:
            return opened
        return await in_thread(partial(self._sessions.id_of, name))

    async def _run(self, context: Context, run: ToolRun, answer: Answer | None) -> Reply:
        """Run a call, with the person's answer if there is one; ask the question if it has one."""
        if answer is not None and (reason := refusal(answer.action)):
            return await self._refuse(run, reason)
        confirmed = {} if answer is None else {"confirm_id": answer.confirm_id}
        delivery = await self._deliver(context, run, confirmed)
        if delivery.envelope["status"] == "needs_confirmation":
            confirm = delivery.envelope["confirm"]
            if not can_ask(context):
                return await self._refuse(run, f"{NOBODY}: {confirm['question']}")
            action = await ask(context, run.tool_use_id, confirm)
            if isinstance(action, InputRequiredResult):
                return action
            if reason := refusal(action):
                return await self._refuse(run, reason)
            again = await self._deliver(context, run, {"confirm_id": confirm["id"]})
            delivery = replace(again, compacted=delivery.compacted or again.compacted)
        return self._reply(run, delivery)

    async def _deliver(
        self, context: Context, run: ToolRun, confirmed: Mapping[str, str]
    ) -> Delivery:
        """Run the tool, here or in its server; report progress if the client wants to know it."""
        wants_progress = "progress_token" in (context.meta or {})
        report = context.session.report_progress if wants_progress else None
        if self._gateway is not None and run.name in await self._gateway.tools():
            result = await self._gateway.call(run.name, run.arguments, report)
            return await self._threads.run(partial(self._record, run, result))
        return await self._threads.run(partial(self._call_tool, run, confirmed), report)

    def _call_tool(self, run: ToolRun, confirmed: Mapping[str, str], call: Call) -> Delivery:
        compacted = self._sessions.compact_if_full(run.session_id)
        params = run.params(**confirmed)
        return Delivery(self._application.call("tools/call", params, call), compacted)

    def _record(self, run: ToolRun, result: CallToolResult | Recorded, call: Call) -> Delivery:
        compacted = self._sessions.compact_if_full(run.session_id)
        ready = recorded(result) if isinstance(result, CallToolResult) else result
        params = run.params(**ready.params())
        return Delivery(self._application.call("tools/record", params, call), compacted)

    async def _refuse(self, run: ToolRun, reason: str) -> CallToolResult:
        """Record a call that was not run, and return the reason."""
        line, _, found = f"{run.name} was not run: {reason}".partition("\n")
        denied = replace(own_failure(line, found), ending="denied")
        return self._reply(run, await self._threads.run(partial(self._record, run, denied)))

    def _reply(self, run: ToolRun, delivery: Delivery) -> CallToolResult:
        notes = [COMPACTED] if delivery.compacted else []
        envelope, structured = delivery.envelope, self._structured
        return reply_of(envelope, run.session_id, notes=notes, structured=structured)
