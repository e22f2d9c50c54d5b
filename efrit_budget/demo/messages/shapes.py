"""The fields of a request that the endpoint accepts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, ValidationError

from efrit_budget.demo.conversation import as_blocks
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import Json, JsonObject

LEFT_OUT: Any = None
"""The default of fields that may be left out, but may not be null."""


class Shape(BaseModel):
    """A model that rejects unknown fields and converts nothing."""

    model_config = ConfigDict(strict=True, extra="forbid")


class CacheControl(Shape):
    """A cache mark."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class Marked(Shape):
    """A block that can carry a cache mark."""

    cache_control: CacheControl | None = None


class TextBlock(Marked):
    """A text block."""

    type: Literal["text"]
    text: str
    citations: None = None


class Base64Image(Shape):
    """An image's bytes."""

    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str


class UrlImage(Shape):
    """The URL of an image."""

    type: Literal["url"]
    url: str


class Image(Marked):
    """An image block."""

    type: Literal["image"]
    source: Annotated[Base64Image | UrlImage, Discriminator("type")]


class Thinking(Shape):
    """A thinking block of an earlier reply."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinking(Shape):
    """A thinking block whose text is encrypted."""

    type: Literal["redacted_thinking"]
    data: str


class DirectCaller(Shape):
    """The caller of a tool: the model."""

    type: Literal["direct"]


class ToolUse(Marked):
    """A tool use of an earlier reply."""

    type: Literal["tool_use"]
    id: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$")]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    input: JsonObject
    caller: DirectCaller = LEFT_OUT


class ToolResult(Marked):
    """The result of a tool."""

    type: Literal["tool_result"]
    tool_use_id: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$")]
    content: Annotated[
        list[Annotated[TextBlock | Image, Discriminator("type")]], BeforeValidator(as_blocks)
    ] = []
    is_error: bool = False


class ToolReference(Shape):
    """The name of a tool in `tools`."""

    type: Literal["tool_reference"]
    name: str


class ToolChange(Marked):
    """A block that adds or removes a tool for the rest of the conversation."""

    type: Literal["tool_addition", "tool_removal"]
    tool: ToolReference


UserBlock = Annotated[TextBlock | Image | ToolResult, Discriminator("type")]
AssistantBlock = Annotated[TextBlock | Thinking | RedactedThinking | ToolUse, Discriminator("type")]
SystemBlock = Annotated[TextBlock | ToolChange, Discriminator("type")]


class UserMessage(Shape):
    """A message with the person's text, or with results of tools."""

    role: Literal["user"]
    content: Annotated[list[UserBlock], BeforeValidator(as_blocks)]


class AssistantMessage(Shape):
    """A message of the model."""

    role: Literal["assistant"]
    content: Annotated[list[AssistantBlock], BeforeValidator(as_blocks)]


class SystemMessage(Shape):
    """A system message in mid-conversation."""

    role: Literal["system"]
    content: Annotated[list[SystemBlock], BeforeValidator(as_blocks)]
    clear_at: Literal["next_user_message", "never"] | None = None


class InputSchema(BaseModel):
    """The JSON schema of a tool's input."""

    model_config = ConfigDict(strict=True, extra="allow")
    type: Literal["object"]
    properties: JsonObject | None = None
    required: list[str] | None = None


class ToolDefinition(Marked):
    """A tool that the model may use."""

    type: Literal["custom"] | None = None
    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]{1,128}$")]
    description: str = ""
    input_schema: InputSchema
    strict: bool = False
    eager_input_streaming: bool | None = None
    input_examples: list[JsonObject] = []


class BlockBinding(Shape):
    """The handling of thinking blocks if what stood before them has changed."""

    prefix_mismatch_behavior: Literal["error", "drop_block"] | None = None


class AdaptiveThinking(Shape):
    """Thinking as much as the model decides."""

    type: Literal["adaptive"]
    display: Literal["summarized", "omitted", "updates"] | None = None
    block_binding: BlockBinding | None = None


class EnabledThinking(Shape):
    """Thinking with a budget, on older models."""

    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=1024)]
    display: Literal["summarized", "omitted"] | None = None


class NoThinking(Shape):
    """No thinking, or thinking only between tool calls."""

    type: Literal["disabled", "between_tools"]


class ToolChoice(Shape):
    """The model may use tools, or must use any tool."""

    type: Literal["auto", "any"]
    disable_parallel_tool_use: bool = False


class NoToolChoice(Shape):
    """The model may use no tool."""

    type: Literal["none"]


class OneToolChoice(Shape):
    """The model must use the tool of this name."""

    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool = False


class TaskBudget(Shape):
    """A token budget of the task, of which the model sees what remains."""

    type: Literal["tokens"]
    total: Annotated[int, Field(ge=1)]
    remaining: Annotated[int, Field(ge=0)] | None = None


class OutputFormat(Shape):
    """The JSON schema of the reply."""

    type: Literal["json_schema"]
    schema_: Annotated[JsonObject, Field(alias="schema")]


class OutputConfig(Shape):
    """The effort, the format and the task budget of the reply."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None
    task_budget: TaskBudget | None = None


class Metadata(Shape):
    """The id of the user for whom the request is sent."""

    user_id: Annotated[str, Field(max_length=512)] | None = None


class Diagnostics(Shape):
    """The id of the reply with whose prompt this prompt is compared."""

    previous_message_id: str | None = None


class NewThread(Shape):
    """The endpoint is to hold the conversation."""

    type: Literal["create"]


class HeldThread(Shape):
    """The reply up to which the endpoint holds the conversation; the messages go on from there."""

    type: Literal["continue"]
    previous_message_id: str


class CountRequest(Shape):
    """The body of `POST /v1/messages/count_tokens`."""

    model: Annotated[str, Field(min_length=1)]
    messages: list[Annotated[UserMessage | AssistantMessage | SystemMessage, Discriminator("role")]]
    system: Annotated[list[TextBlock], BeforeValidator(as_blocks)] = []
    tools: list[ToolDefinition] = []
    tool_choice: ToolChoice | NoToolChoice | OneToolChoice = Field(LEFT_OUT, discriminator="type")
    thinking: AdaptiveThinking | EnabledThinking | NoThinking = Field(
        LEFT_OUT, discriminator="type"
    )
    output_config: OutputConfig = LEFT_OUT
    cache_control: CacheControl | None = None


class MessageRequest(CountRequest):
    """The body of `POST /v1/messages`."""

    max_tokens: Annotated[int, Field(ge=1)]
    stream: bool = False
    stop_sequences: list[str] = []
    metadata: Metadata = Metadata()
    diagnostics: Diagnostics | None = None
    thread: NewThread | HeldThread | None = Field(None, discriminator="type")
    service_tier: Literal["auto", "standard_only"] = "auto"
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None


ROLES = ("user", "assistant", "system")


def check_shape(body: Json, shape: type[CountRequest]) -> None:
    """Raise if a body does not have this shape, in the API's words: a path and a problem."""
    try:
        shape.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        # A message's kind is its role, which the API does not name as a part of the place.
        parts = [part for at, part in enumerate(first["loc"]) if at != 2 or part not in ROLES]
        place = ".".join(map(str, parts))
        raise ApiError(f"{place}: {first['msg']}" if place else first["msg"]) from error


BETAS: Mapping[str, str] = {
    "block_binding": "thinking-binding-controls-2026-08-01",
    "task_budget": "task-budgets-2026-03-13",
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "tool change": "mid-conversation-tool-changes-2026-07-01",
    "updates": "thinking-display-updates-2026-08-18",
    "thread": "message-threads-2026-08-12",
}
"""Maps each addition to the API to the beta that a request's header must name to use it."""


def check_betas(body: JsonObject, betas: frozenset[str]) -> None:
    """Raise if a field is used without its beta header."""
    for used, place in _additions(body):
        if BETAS[used] not in betas:
            problem = "Extra inputs are not permitted"
            raise ApiError(f"{place}: {problem} (without the beta header {BETAS[used]})")


def _additions(body: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the additions of `BETAS` that a request uses, each with its place."""
    thinking = body.get("thinking") or {}
    if thinking.get("block_binding") is not None:
        yield "block_binding", "thinking.adaptive.block_binding"
    if thinking.get("display") == "updates":
        yield "updates", "thinking.adaptive.display"
    if body.get("thread") is not None:
        yield "thread", "thread"
    if (body.get("output_config") or {}).get("task_budget") is not None:
        yield "task_budget", "output_config.task_budget"
    for index, message in enumerate(body["messages"]):
        if message.get("clear_at") is not None:
            yield "clear_at", f"messages.{index}.clear_at"
        if any(block["type"] in CHANGES for block in as_blocks(message["content"])):
            yield "tool change", f"messages.{index}.content"


CHANGES = frozenset({"tool_addition", "tool_removal"})
