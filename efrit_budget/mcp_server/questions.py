"""Ask the person a question about a tool call, by elicitation.

In the protocol of 2026-07-28 the call ends with the question, and the client calls again with the
answer; in older ones the server asks while the call waits.
"""

import re
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

from efrit_budget.errors import JsonObject

NAME = "consent"
"""The name of the question among a call's requests for input."""
FORM: JsonObject = {"type": "object", "properties": {}}
"""A form without fields: to accept it is the answer yes."""
STATE = re.compile(r"(mcp-[0-9a-f]{24}):([0-9a-f]{16})")


@dataclass(frozen=True)
class Answer:
    """The answer with which a client calls again."""

    tool_use_id: str
    confirm_id: str
    """The id of the question; the sidecar checks that it belongs to this very call."""
    action: str


def refusal(action: str) -> str | None:
    """Return why a call does not run after this answer, or None if the person agrees."""
    if action == "accept":
        return None
    return "the person said no" if action == "decline" else "the question was left unanswered"


def answer_in(params: CallToolRequestParams) -> Answer | None:
    """Return the answer in the params of a call, or None if it answers no question."""
    state = STATE.fullmatch(params.request_state or "")
    given = (params.input_responses or {}).get(NAME)
    if state is None or not isinstance(given, ElicitResult):
        return None
    return Answer(state[1], state[2], given.action)


def can_ask(context: ServerRequestContext[Any]) -> bool:
    """Return whether the client can show the person a question."""
    capabilities = context.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask(
    context: ServerRequestContext[Any], tool_use_id: str, confirm: JsonObject
) -> str | InputRequiredResult:
    """Return the person's answer, or the reply that has the client ask and call again."""
    question: str = confirm["question"]
    if context.session.can_send_request:
        result = await context.session.elicit_form(question, FORM, context.request_id)
        return result.action
    request = ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=FORM))
    state = f"{tool_use_id}:{confirm['id']}"
    return InputRequiredResult(input_requests={NAME: request}, request_state=state)
