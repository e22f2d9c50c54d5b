"""The `turn/*` methods, and those that give a conversation back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import Json, field_error
from efrit_budget.memory.private import public
from efrit_budget.methods.discretion import keepable_reply
from efrit_budget.methods.offers import Offers
from efrit_budget.methods.verbatim import (
    as_object,
    canonical_inputs,
    meant,
    with_inputs,
    with_texts,
)
from efrit_budget.sessions.store import Session, SessionStore
from efrit_budget.tools.registry import Registry
from efrit_budget.window.begin import Wanted
from efrit_budget.window.blocks import is_blank
from efrit_budget.window.end import Reply
from efrit_budget.window.turns import Turns
from efrit_budget.wire.method import Call, Lane, Method, Number, Params

SessionId = Annotated[str, Field(min_length=1, max_length=64)]
Blocks = list[dict[str, Json]]
NOT_SAID_BY_A_PERSON = ("tool_use", "tool_result", "thinking", "redacted_thinking")
"""Results go through `tools/record`, so that each is counted and stands in its place."""
WITHHELD_NOTE = "What stands between <private> and </private> was not sent, and is kept nowhere."


class BeginParams(Params):
    """The params of `turn/begin`."""

    session_id: SessionId
    model: Annotated[str, Field(min_length=1, max_length=200)]
    system: str | Blocks = ""
    user_message: str | Blocks | None = None
    caching: bool = True
    as_text: bool = False


class PreviewParams(Params):
    """The params of `turn/preview`."""

    session_id: SessionId
    model: Annotated[str, Field(min_length=1, max_length=200)]
    system: str | Blocks = ""
    user_message: str | Blocks | None = None
    caching: bool = True


class EndParams(Params):
    """The params of `turn/end`."""

    session_id: SessionId
    turn_id: Number | None = None
    model: str | None = None
    usage: Json = None
    lost: Annotated[list[Json], Field(max_length=1_000)] = Field(default_factory=list)
    content: str | Blocks = Field(default_factory=list)
    content_json: str | None = None
    as_text: bool = False
    stop_reason: Annotated[str, Field(max_length=100)] | None = None
    aborted: bool = False


class MessagesParams(Params):
    """The params of `session/messages`."""

    session_id: SessionId
    as_text: bool = False


class SessionParams(Params):
    """The params of the methods that take a session alone."""

    session_id: SessionId


class TurnMethods:
    """Beginning and ending turns; messages and transcript."""

    def __init__(
        self, sessions: SessionStore, turns: Turns, offers: Offers, registry: Registry
    ) -> None:
        self._sessions = sessions
        self._turns = turns
        self._offers = offers
        self._registry = registry

    def methods(self) -> list[Method]:
        """The family's methods."""
        return [
            Method("turn/begin", BeginParams, self._begin, Lane.WRITING),
            Method("turn/preview", PreviewParams, self._preview, Lane.WRITING),
            Method("turn/end", EndParams, self._end, Lane.WRITING),
            Method("session/messages", MessagesParams, self._messages),
            Method("session/transcript", SessionParams, self._transcript),
            Method("session/turns", SessionParams, self._said),
        ]

    def _begin(self, params: BeginParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        self._sessions.check_held(session.id)
        answer = self._turns.begin(session, self._wanted(session, params))
        answer["notes"] += _withheld(params)
        if not params.caching:
            answer |= {name: _unmarked(answer[name]) for name in ("system", "tools")}
        return with_texts(answer) if params.as_text else answer

    def _preview(self, params: PreviewParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        wanted = self._wanted(session, params)
        answer = self._turns.preview(session, wanted, caching=params.caching)
        answer["notes"] += _withheld(params)
        return answer

    def _wanted(self, session: Session, params: BeginParams | PreviewParams) -> Wanted:
        """What is private in it is taken out here, before anything is counted, kept or sent."""
        return Wanted(
            model=params.model,
            system=public(_said(_blocks("system", params.system, only=("text",)))),
            offers=self._offers.of(session),
            user_message=public(_message(params.user_message)),
        )

    def _end(self, params: EndParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        content, unreadable = with_inputs(_reply(params))
        _check_tool_uses(content)
        content = keepable_reply(self._registry, content)
        reply = Reply(
            params.turn_id,
            params.usage,
            content,
            params.stop_reason,
            params.aborted,
            tuple(params.lost),
        )
        answer = self._turns.end(session, reply) | {
            "inputs": canonical_inputs(content),
            "unreadable": unreadable,
            "misfits": [
                misfit
                for misfit in self._offers.misfits(session, content)
                if misfit["tool_use_id"] not in {use["tool_use_id"] for use in unreadable}
            ],
        }
        return with_texts(answer) if params.as_text else answer

    def _messages(self, params: MessagesParams, _: Call) -> Json:
        answer = self._turns.messages(self._sessions.get(params.session_id))
        return with_texts(answer) if params.as_text else answer

    def _transcript(self, params: SessionParams, _: Call) -> Json:
        return self._turns.transcript(self._sessions.get(params.session_id))

    def _said(self, params: SessionParams, _: Call) -> Json:
        return self._turns.said(self._sessions.get(params.session_id))


def _unmarked(blocks: Blocks) -> Blocks:
    """The blocks without what says up to where they are cached."""
    return [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in blocks
    ]


def _withheld(params: BeginParams | PreviewParams) -> list[Json]:
    """What the person is told where something of the request was withheld."""
    return [WITHHELD_NOTE] if public(params.user_message) != params.user_message else []


def _message(given: str | Blocks | None) -> Blocks | None:
    """What the person said."""
    blocks = _blocks("user_message", given or "")
    for index, block in enumerate(blocks):
        if block["type"] in NOT_SAID_BY_A_PERSON:
            raise field_error(
                f"user_message.{index}", f"a {block['type']} is no part of a person's message"
            )
    return _said(blocks) or None


def _reply(params: EndParams) -> Blocks:
    """What the model said, as blocks or as their text."""
    if params.content_json is None:
        return _blocks("content", params.content)
    given = meant("content_json", params.content_json)
    if not isinstance(given, list) or not all(isinstance(block, dict) for block in given):
        raise field_error("content_json", "must be the JSON text of a list of blocks")
    return _blocks("content_json", given)


def _said(blocks: Blocks) -> Blocks:
    """The blocks without blank texts, which the API refuses."""
    return [block for block in blocks if not is_blank(block)]


def _blocks(field: str, given: str | Blocks, *, only: Sequence[str] = ()) -> Blocks:
    """Content as blocks, each of a type; a blank text is none."""
    if isinstance(given, str):
        return [{"type": "text", "text": given}] if given.strip() else []
    for index, block in enumerate(given):
        kind = block.get("type")
        if not isinstance(kind, str) or (only and kind not in only):
            raise field_error(f"{field}.{index}.type", f"must be {' or '.join(only) or 'a text'}")
        if kind == "text" and not isinstance(block.get("text"), str):
            raise field_error(f"{field}.{index}.text", "must be a text")
    return [_with_input(block) for block in given]


def _with_input(block: dict[str, Json]) -> dict[str, Json]:
    """The block; where a tool's input is empty in a client's own way, it is an object."""
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
