"""The `tools/*` methods."""

from base64 import b64decode
from typing import Annotated, Literal

from pydantic import Field

from efrit_budget.characters import one_line_each
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import Json, JsonObject, field_error
from efrit_budget.memory.private import public
from efrit_budget.methods.json_text import parse_object
from efrit_budget.methods.params import SessionParams, ToolUseId, ToolUseParams
from efrit_budget.toolcalls.entry_draft import Produced
from efrit_budget.toolcalls.recorded import recorded_body
from efrit_budget.toolcalls.runner import Control, ToolRunner
from efrit_budget.toolcalls.summary import summarize_recorded
from efrit_budget.tools.base import Outcome, Status
from efrit_budget.tools.registry import Registry, entry
from efrit_budget.wire.method import Call, Lane, Members, Method, NoParams, Offset


class ArgumentParams(SessionParams):
    """A tool call with its arguments, given as an object or as JSON text."""

    name: Annotated[str, Field(min_length=1)]
    arguments: Members = Field(default_factory=dict)
    arguments_json: str | None = None
    tool_use_id: ToolUseId


class CallParams(ArgumentParams):
    """The params of `tools/call`."""

    continuation_token: str | None = None
    confirm_id: str | None = None
    include_data: bool = True


class RecordParams(ArgumentParams):
    """The params of `tools/record`: the result of a tool that ran in the client."""

    status: Literal["success", "error"] = "success"
    text: str = ""
    own_lines: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    """The numbers, from 0, of the lines that are the client's own words; the others were found."""
    items: list[Offset] = Field(default_factory=list)
    """The offsets in `text` at which its items begin, in order."""
    noun: Annotated[str, Field(min_length=1, max_length=40)] = "items"
    """What the items are called."""
    images: Annotated[list[str], Field(max_length=100)] = Field(default_factory=list)
    """Images in Base64 that belong to the result."""
    data: Members = Field(default_factory=dict)
    message: str | None = None
    summary: Annotated[str, Field(max_length=500)] | None = None
    lisp: str | None = None
    todos: Json = None
    gist: Annotated[str, Field(max_length=500)] = ""
    ending: Literal["denied", "stopped"] | None = None
    said: bool = False
    include_data: bool = True


class ToolMethods:
    """Lists, runs and stops tools, and records results from the client."""

    def __init__(self, registry: Registry, runner: ToolRunner) -> None:
        self._registry = registry
        self._runner = runner

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("tools/list", NoParams, self._list),
            Method("tools/call", CallParams, self._call, Lane.SLOW, self._arrive),
            Method("tools/record", RecordParams, self._record, Lane.WRITING),
            Method("tools/stop", ToolUseParams, self._stop, Lane.ORDERED),
        ]

    def _list(self, _params: NoParams, _: Call) -> Json:
        return {"tools": [entry(tool) for tool in self._registry]}

    def _arrive(self, params: JsonObject | list[Json], call: Call) -> None:
        """Register a call, so that it can be stopped; its params are not validated yet."""
        if isinstance(params, dict):
            session_id, tool_use_id = params.get("session_id"), params.get("tool_use_id")
            if isinstance(session_id, str) and isinstance(tool_use_id, str):
                self._runner.running.arrive(session_id, tool_use_id, call.cancellation)

    def _call(self, params: CallParams, call: Call) -> Json:
        arguments = dict(params.arguments)
        if params.arguments_json is not None:
            arguments = parse_object("arguments_json", params.arguments_json)
        if params.continuation_token is not None:
            arguments["continuation_token"] = params.continuation_token
        tool_call = ToolCall(params.session_id, params.tool_use_id, params.name, arguments)
        control = Control(call.cancellation, call.progress, params.confirm_id, params.include_data)
        return self._runner.run(tool_call, control)

    def _record(self, params: RecordParams, _: Call) -> Json:
        params = _remove_private(params) if params.said else params
        arguments = dict(params.arguments)
        if params.arguments_json is not None:
            arguments = parse_object("arguments_json", params.arguments_json)
        call = ToolCall(params.session_id, params.tool_use_id, params.name, arguments)
        if params.items and params.own_lines:
            raise field_error("items", "cannot be given beside own_lines")
        body = recorded_body(params.text, params.own_lines, params.items, params.noun, params.data)
        images = [_decoded(index, image) for index, image in enumerate(params.images)]
        outcome = Outcome(
            status=Status(params.status), message=params.message, body=body, images=images
        )
        summary = summarize_recorded(params.summary, outcome)
        produced = Produced(
            outcome, summary, params.lisp, params.todos, one_line_each(params.gist), params.ending
        )
        return self._runner.record(call, produced, with_data=params.include_data)

    def _stop(self, params: ToolUseParams, _: Call) -> Json:
        return {
            "session_id": params.session_id,
            "tool_use_id": params.tool_use_id,
            "stopped": self._runner.running.stop(params.session_id, params.tool_use_id),
        }


def _decoded(index: int, image: str) -> bytes:
    try:
        return b64decode(image, validate=True)
    except ValueError as error:
        raise field_error(f"images.{index}", f"is not Base64: {error}") from None


def _remove_private(params: RecordParams) -> RecordParams:
    """Return the params without the private parts of text, data, message, summary and gist."""
    texts = params.model_dump(include={"text", "data", "message", "summary", "gist"})
    return params.model_copy(update=public(texts))
