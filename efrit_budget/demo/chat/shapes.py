"""The fields of a request that Chat Completions accepts."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints

from efrit_budget.demo.conversation import as_blocks
from efrit_budget.errors import JsonObject

LEFT_OUT: Any = None
"""The default of fields that may be left out, but may not be null."""


class Shape(BaseModel):
    """A model that rejects unknown fields and converts nothing."""

    model_config = ConfigDict(strict=True, extra="forbid")


class TextPart(Shape):
    """A part of a content: a text."""

    type: Literal["text"]
    text: str


class RefusalPart(Shape):
    """A part of an earlier reply: why the model refused."""

    type: Literal["refusal"]
    refusal: str


class ImageUrl(Shape):
    """The URL of an image, or its bytes as a `data:` URL."""

    url: str
    detail: Literal["auto", "low", "high", "original"] = "auto"


class ImagePart(Shape):
    """A part of a user message: an image."""

    type: Literal["image_url"]
    image_url: ImageUrl


Text = Annotated[list[TextPart], Field(min_length=1), BeforeValidator(as_blocks)]
"""A string, or parts that are texts."""
UserContent = Annotated[
    list[Annotated[TextPart | ImagePart, Discriminator("type")]],
    Field(min_length=1),
    BeforeValidator(as_blocks),
]
ReplyContent = Annotated[
    list[Annotated[TextPart | RefusalPart, Discriminator("type")]],
    Field(min_length=1),
    BeforeValidator(as_blocks),
]
Name = Annotated[str, StringConstraints(pattern="^[a-zA-Z0-9_-]{1,64}$")]
CallId = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class SystemMessage(Shape):
    """A message of the person who wrote the program."""

    role: Literal["system", "developer"]
    content: Text
    name: str = LEFT_OUT


class UserMessage(Shape):
    """A message of the user."""

    role: Literal["user"]
    content: UserContent
    name: str = LEFT_OUT


class Called(Shape):
    """The tool that was called, with its arguments as JSON."""

    name: Name
    arguments: str


class GoogleExtra(Shape):
    """The addition of Gemini to a tool call."""

    thought_signature: str


class ExtraContent(Shape):
    """Additions of vendors to a tool call."""

    google: GoogleExtra


class ToolCall(Shape):
    """A tool call of an earlier reply."""

    id: CallId
    type: Literal["function"]
    function: Called
    extra_content: ExtraContent = LEFT_OUT


class AssistantMessage(Shape):
    """An earlier reply of the model; its reasoning is an addition of other vendors."""

    role: Literal["assistant"]
    content: ReplyContent | None = None
    refusal: str | None = None
    name: str = LEFT_OUT
    tool_calls: Annotated[list[ToolCall], Field(min_length=1)] = LEFT_OUT
    reasoning_content: str | None = None
    reasoning: str | None = None


class ToolMessage(Shape):
    """The result of a tool call."""

    role: Literal["tool"]
    content: Text
    tool_call_id: CallId


class FunctionDefinition(Shape):
    """A tool's name, description and the JSON schema of its arguments."""

    name: Name
    description: str = ""
    parameters: JsonObject = LEFT_OUT
    strict: bool | None = None


class ToolDefinition(Shape):
    """A tool that the model may call."""

    type: Literal["function"]
    function: FunctionDefinition


class ChosenName(Shape):
    """The name of a tool in `tools`."""

    name: str


class ChosenTool(Shape):
    """The model must call this tool."""

    type: Literal["function"]
    function: ChosenName


class StreamOptions(Shape):
    """Options of a stream."""

    include_usage: bool = False
    include_obfuscation: bool = True


class JsonSchema(Shape):
    """The schema of a reply in JSON."""

    name: Name
    description: str = ""
    schema_: Annotated[JsonObject, Field(alias="schema")] = LEFT_OUT
    strict: bool | None = None


class SchemaFormat(Shape):
    """A reply that follows a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class PlainFormat(Shape):
    """A reply in text, or in JSON of any kind."""

    type: Literal["text", "json_object"]


Message = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Discriminator("role")
]


class ChatRequest(Shape):
    """The body of `POST /v1/chat/completions`."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolDefinition], Field(min_length=1, max_length=128)] = LEFT_OUT
    tool_choice: Literal["none", "auto", "required"] | ChosenTool = LEFT_OUT
    parallel_tool_calls: bool = LEFT_OUT
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    verbosity: Literal["low", "medium", "high"] | None = None
    response_format: SchemaFormat | PlainFormat = Field(LEFT_OUT, discriminator="type")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    seed: int | None = None
    n: Literal[1] | None = None
    user: str = LEFT_OUT
    safety_identifier: Annotated[str, Field(max_length=128)] | None = None
    prompt_cache_key: str | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None
