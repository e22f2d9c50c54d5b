"""The `turn/*` methods, and those that return a conversation."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from efrit_budget.apis.form import put_into_form, take_reply
from efrit_budget.budget.endpoint import Api
from efrit_budget.conversation.begin import TurnRequest
from efrit_budget.conversation.blocks import is_blank
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.conversation.end import ModelReply
from efrit_budget.conversation.prefix import shortened
from efrit_budget.errors import Json, JsonObject, field_error
from efrit_budget.memory.private import public
from efrit_budget.methods.json_text import (
    as_json_texts,
    canonical_inputs,
    parse_inputs,
    parse_json,
)
from efrit_budget.methods.params import EndpointParams, SessionParams
from efrit_budget.methods.tool_offers import Offers
from efrit_budget.project.environment import environment
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.toolcalls.arguments import redact_reply
from efrit_budget.tools.registry import Registry
from efrit_budget.wire.method import Call, Lane, Method, Number, Params, as_object

Blocks = list[JsonObject]
NOT_SAID_BY_A_PERSON = ("tool_use", "tool_result", "thinking", "redacted_thinking")
"""The types of blocks that a user message must not have; results go through `tools/record`."""
WITHHELD_NOTE = "What stands between <private> and </private> was not sent, and is kept nowhere."


class SmallWindowParams(Params):
    """The system text and the tools for a model whose window is smaller than `below` tokens."""

    below: Annotated[int, Field(ge=0, le=1_000_000_000)]
    system: str | Blocks
    tools: Annotated[list[str], Field(max_length=1_000)]


class PreviewParams(SessionParams):
    """The params of `turn/preview`."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    endpoint: EndpointParams = EndpointParams()
    small_window: SmallWindowParams | None = None
    system: str | Blocks = ""
    user_message: str | Blocks | None = None
    environment: Annotated[str, Field(max_length=200)] = ""
    caching: bool = True


class TurnBeginParams(PreviewParams):
    """The params of `turn/begin`."""

    as_text: bool = False


class TurnEndParams(SessionParams):
    """The params of `turn/end`."""

    turn_id: Number | None = None
    model: str | None = None
    usage: Json = None
    lost: Annotated[list[Json], Field(max_length=1_000)] = Field(default_factory=list)
    content: str | Blocks = Field(default_factory=list)
    content_json: str | None = None
    as_text: bool = False
    stop_reason: Annotated[str, Field(max_length=100)] | None = None
    aborted: bool = False


class MessagesParams(SessionParams):
    """The params of `session/messages`."""

    as_text: bool = False


class TurnMethods:
    """Begins and ends turns; returns messages and transcript."""

    def __init__(
        self, sessions: SessionStore, conversation: Conversation, offers: Offers, registry: Registry
    ) -> None:
        self._sessions = sessions
        self._conversation = conversation
        self._offers = offers
        self._registry = registry

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("turn/begin", TurnBeginParams, self._begin, Lane.WRITING),
            Method("turn/preview", PreviewParams, self._preview, Lane.WRITING),
            Method("turn/end", TurnEndParams, self._end, Lane.WRITING),
            Method("session/messages", MessagesParams, self._messages),
            Method("session/transcript", SessionParams, self._transcript),
            Method("session/turns", SessionParams, self._said),
        ]

    def _begin(self, params: TurnBeginParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        self._sessions.check_owned(session.id)
        request = self._wanted(session, params)
        answer = self._conversation.begin(session, request)
        answer["notes"] += _private_text_notes(params)
        if not params.caching:
            answer |= {name: _without_cache_marks(answer[name]) for name in ("system", "tools")}
        answer = put_into_form(answer, request.endpoint)
        return as_json_texts(answer) if params.as_text else answer

    def _preview(self, params: PreviewParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        request = self._wanted(session, params)
        answer = self._conversation.preview(session, request, caching=params.caching)
        answer["notes"] += _private_text_notes(params)
        return answer

    def _wanted(self, session: Session, params: PreviewParams) -> TurnRequest:
        """Return the request for a turn, without private text, so that none of it is stored."""
        endpoint = params.endpoint.endpoint()
        model = self._conversation.model(params.model, endpoint)
        system, offers = params.system, self._offers.of(session)
        offered = offers
        small = params.small_window
        if small is not None and min(model.window, session.limits.total) < small.below:
            system = small.system
            offered = [shortened(offer) for offer in offers if offer.name in small.tools]
        return TurnRequest(
            model=params.model,
            system=public(_without_blank_texts(_blocks("system", system, only=("text",)))),
            offers=offered,
            user_message=public(_user_message_blocks(params.user_message)),
            environment=params.environment and environment(session.root, params.environment),
            endpoint=endpoint,
            withheld=len(offers) - len(offered),
        )

    def _end(self, params: TurnEndParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        content, unreadable = parse_inputs(_reply_blocks(params))
        _check_tool_uses(content)
        endpoint = self._conversation.endpoint(session)
        if endpoint.api is Api.CHAT:
            content = take_reply(content, endpoint, self._offers.of(session))
        content = redact_reply(self._registry, content)
        reply = ModelReply(
            params.turn_id,
            params.usage,
            content,
            params.stop_reason,
            params.aborted,
            tuple(params.lost),
        )
        answer = self._conversation.end(session, reply) | {
            "inputs": canonical_inputs(content),
            "unreadable": unreadable,
            "misfits": [
                misfit
                for misfit in self._offers.misfits(session, content)
                if misfit["tool_use_id"] not in {use["tool_use_id"] for use in unreadable}
            ],
        }
        if endpoint.api is Api.CHAT:
            answer["names"] = [block["name"] for block in content if block["type"] == "tool_use"]
        answer = put_into_form(answer, endpoint)
        return as_json_texts(answer) if params.as_text else answer

    def _messages(self, params: MessagesParams, _: Call) -> Json:
        session = self._sessions.get(params.session_id)
        answer = put_into_form(
            self._conversation.messages(session), self._conversation.endpoint(session)
        )
        return as_json_texts(answer) if params.as_text else answer

    def _transcript(self, params: SessionParams, _: Call) -> Json:
        return self._conversation.transcript(self._sessions.get(params.session_id))

    def _said(self, params: SessionParams, _: Call) -> Json:
        return self._conversation.list_turns(self._sessions.get(params.session_id))


def _without_cache_marks(blocks: Blocks) -> Blocks:
    """Return the blocks without cache marks."""
    return [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in blocks
    ]


def _private_text_notes(params: PreviewParams) -> list[Json]:
    """Return a note if private text was removed from the message."""
    return [WITHHELD_NOTE] if public(params.user_message) != params.user_message else []


def _user_message_blocks(given: str | Blocks | None) -> Blocks | None:
    """Return the blocks of the person's message, or None; raise if one is not allowed."""
    blocks = _blocks("user_message", given or "")
    for index, block in enumerate(blocks):
        if block["type"] in NOT_SAID_BY_A_PERSON:
            raise field_error(
                f"user_message.{index}", f"a {block['type']} is no part of a person's message"
            )
    return _without_blank_texts(blocks) or None


def _reply_blocks(params: TurnEndParams) -> Blocks:
    """Return the model's reply as blocks."""
    if params.content_json is None:
        return _blocks("content", params.content)
    value = parse_json("content_json", params.content_json)
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise field_error("content_json", "must be the JSON text of a list of blocks")
    return _blocks("content_json", value)


def _without_blank_texts(blocks: Blocks) -> Blocks:
    """Return the blocks without blank texts, which the API rejects."""
    return [block for block in blocks if not is_blank(block)]


def _blocks(field: str, given: str | Blocks, *, only: Sequence[str] = ()) -> Blocks:
    """Return content as blocks; raise if one has a wrong type, or no text where it needs one."""
    if isinstance(given, str):
        return [{"type": "text", "text": given}] if given.strip() else []
    for index, block in enumerate(given):
        kind = block.get("type")
        if not isinstance(kind, str) or (only and kind not in only):
            raise field_error(f"{field}.{index}.type", f"must be {' or '.join(only) or 'a text'}")
        if kind == "text" and not isinstance(block.get("text"), str):
            raise field_error(f"{field}.{index}.text", "must be a text")
    return [_with_input(block) for block in given]


def _with_input(block: JsonObject) -> JsonObject:
    """Return a copy of the block, in which a null or an empty list as tool input is an object."""
    if block.get("type") != "tool_use" or "input" not in block:
        return dict(block)
    return {**block, "input": as_object(block["input"])}


def _check_tool_uses(content: Blocks) -> None:
    for index, block in enumerate(content):
        if block["type"] == "tool_use" and not (
            _is_name(block.get("id"))
            and _is_name(block.get("name"))
            and isinstance(block.get("input"), dict)
        ):
            raise field_error(f"content.{index}", "a tool_use needs an id, a name and an input")


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()
