"""Run the tool calls of an MCP client."""

import os
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.mcp_server.gateway import Gateway
from efrit_budget.mcp_server.questions import Answer, answer_in, ask, can_ask
from efrit_budget.mcp_server.replies import problem, reply_of
from efrit_budget.mcp_server.sessions import ClientSessions
from efrit_budget.mcp_server.threads import CallThreads, in_thread

Context = ServerRequestContext[Any]
Reply = CallToolResult | InputRequiredResult

COMPACTED = (
    "§ The budget was used up, so earlier results no longer count as part of your context;"
    " recall_result brings any of them back by its handle."
)
NOBODY = "it needs the person's consent, and this client cannot ask (it has no elicitation)"
DECLINED = "the person said no"


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


class ToolCalls:
    """Runs tool calls in the sessions that they name."""

    def __init__(
        self,
        sessions: ClientSessions,
        threads: CallThreads,
        gateway: Gateway | None,
        *,
        structured: bool,
    ) -> None:
        self._sessions = sessions
        self._threads = threads
        self._gateway = gateway
        self._structured = structured

    async def call(self, context: Context, params: CallToolRequestParams) -> Reply:
        """Run a call and return its reply; return what is wrong with it as an error."""
        arguments = dict(params.arguments or {})
        name = arguments.pop("session", None)
        if not isinstance(name, str | None):
            return problem("session: the name of a session is a text, such as k7m2")
        try:
            session_id = await in_thread(partial(self._sessions.id_of, name))
            answer = answer_in(params)
            run = ToolRun(session_id, params.name, arguments)
            if answer is not None:
                run = ToolRun(session_id, params.name, arguments, answer.tool_use_id)
            return await self._run(context, run, answer)
        except EfritError as error:
            return problem(error.message)

    async def _run(self, context: Context, run: ToolRun, answer: Answer | None) -> Reply:
        """Run a call, with the person's answer if there is one; ask the question if it has one."""
        if answer is not None and not answer.agrees:
            return await self._refuse(run, DECLINED)
        compacted = await in_thread(partial(self._sessions.compact_if_full, run.session_id))
        confirmed = {} if answer is None else {"confirm_id": answer.confirm_id}
        envelope = await self._envelope(context, run, **confirmed)
        if envelope["status"] == "needs_confirmation":
            confirm = envelope["confirm"]
            if not can_ask(context):
                return await self._refuse(run, f"{NOBODY}: {confirm['question']}")
            agrees = await ask(context, run.tool_use_id, confirm)
            if isinstance(agrees, InputRequiredResult):
                return agrees
            if not agrees:
                return await self._refuse(run, DECLINED)
            envelope = await self._envelope(context, run, confirm_id=confirm["id"])
        return self._reply(run, envelope, compacted=compacted)

    async def _envelope(self, context: Context, run: ToolRun, **confirmed: str) -> JsonObject:
        """Run the tool; report its progress if the client wants to know it."""
        wants_progress = "progress_token" in (context.meta or {})
        report = context.session.report_progress if wants_progress else None
        if self._gateway is not None and run.name in await self._gateway.tools():
            recorded = await self._gateway.call(run.name, run.arguments, report)
            params = run.params(**recorded.params())
            return await self._threads.run("tools/record", params, None)
        return await self._threads.run("tools/call", run.params(**confirmed), report)

    async def _refuse(self, run: ToolRun, reason: str) -> CallToolResult:
        """Record a call that was not run, and return the reason."""
        text = f"{run.name} was not run: {reason}"
        params = run.params(status="error", text=text, message=text, own_lines=[0], ending="denied")
        envelope = await self._threads.run("tools/record", params, None)
        return self._reply(run, envelope, compacted=False)

    def _reply(self, run: ToolRun, envelope: JsonObject, *, compacted: bool) -> CallToolResult:
        notes = [COMPACTED] if compacted else []
        return reply_of(envelope, run.session_id, notes=notes, structured=self._structured)
