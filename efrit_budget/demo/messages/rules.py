"""Check rules of the API beyond the shape of a request, among them what each model accepts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from efrit_budget.budget.models import Model
from efrit_budget.demo.conversation import THINKING, ParsedRequest, Placed, Turn, as_blocks
from efrit_budget.demo.models import OLDER
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import Json, JsonObject

MOST_MARKS = 4
FORBIDDEN_IN_SCHEMA = ("oneOf", "allOf", "anyOf")

WITH_TASK_BUDGETS = re.compile(r"claude-(opus-(4-[78]|5)|sonnet-5-5|haiku-5-5)\b.*")


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a model."""

    model: Model
    is_older: bool
    """True if the model accepts sampling parameters, a thinking budget, a forced tool choice."""
    task_budgets: bool


def capabilities(model: Model) -> Capabilities:
    """Return the capabilities of a model."""
    return Capabilities(
        model=model,
        is_older=OLDER.fullmatch(model.name) is not None,
        task_budgets=WITH_TASK_BUDGETS.fullmatch(model.name) is not None,
    )


def check_rules(conversation: ParsedRequest, can: Capabilities) -> None:
    """Raise the error of the API if the request breaks a rule of the API."""
    _check_parameters(conversation.body, can)
    _check_tools(conversation.tools)
    _check_marks(conversation)
    _check_roles(conversation.turns, can)
    _check_texts(conversation)
    _check_tool_changes(conversation)
    _check_pairing(conversation.turns)


def _check_parameters(body: JsonObject, can: Capabilities) -> None:
    """Raise if the model does not accept a parameter, or not as many output tokens."""
    limit = can.model.max_output
    if body.get("max_tokens", 0) > limit:
        raise ApiError(
            f"max_tokens: {body['max_tokens']} > {limit}, which is the maximum allowed number of "
            f"output tokens for {can.model.name}"
        )
    for name in ("temperature", "top_p", "top_k"):
        if body.get(name) is not None and not can.is_older:
            raise ApiError(f"`{name}` is not supported on this model.")
    if (body.get("tool_choice") or {}).get("type") in {"any", "tool"} and not can.is_older:
        raise ApiError("tool_choice: forcing tool use is not supported on this model.")
    if (body.get("output_config") or {}).get("task_budget") and not can.task_budgets:
        raise ApiError("output_config.task_budget: not supported on this model.")
    _check_thinking(body, can)


def _check_thinking(body: JsonObject, can: Capabilities) -> None:
    thinking = body.get("thinking") or {}
    kind = thinking.get("type", "")
    always_thinks = can.model.binding  # models that bind thinking do not turn it off
    refused = {
        "enabled": not can.is_older,
        "disabled": always_thinks,
        "between_tools": not always_thinks,
        "adaptive": can.model.name.startswith("claude-haiku-4"),
    }
    if refused.get(kind, False):
        raise ApiError(f'"thinking.type.{kind}" is not supported for this model.')
    if kind == "enabled" and thinking["budget_tokens"] >= body.get("max_tokens", 1 << 62):
        raise ApiError("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_tools(tools: list[JsonObject]) -> None:
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise ApiError("tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        if any(word in tool["input_schema"] for word in FORBIDDEN_IN_SCHEMA):
            raise ApiError(
                f"tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, "
                "or anyOf at the top level"
            )


# Cache marks


def _check_marks(conversation: ParsedRequest) -> None:
    marks = list(_marks(conversation))
    if len(marks) > MOST_MARKS:
        raise ApiError(
            f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. "
            f"Found {len(marks)}."
        )
    times = [mark.get("ttl", "5m") for mark in marks]
    if "5m" in times and "1h" in times[times.index("5m") :]:
        raise ApiError(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )


def _marks(conversation: ParsedRequest) -> Iterator[JsonObject]:
    """Yield the cache marks in prefix order; the request's own mark is the last."""
    messages = [placed.block for placed in conversation.all_blocks()]
    for block in (*conversation.tools, *conversation.system, *messages):
        inner = block.get("content") or []
        for one in (*(inner if isinstance(inner, list) else []), block):
            if one.get("cache_control"):
                yield one["cache_control"]
    if conversation.body.get("cache_control"):
        yield conversation.body["cache_control"]


# Roles


def _check_roles(turns: list[Turn], can: Capabilities) -> None:
    if not turns:
        raise ApiError("messages: at least one message is required")
    for before, turn in zip([None, *turns], turns, strict=False):
        if turn.role == "system":
            _check_system_message(before, turn, can)
    if turns[0].role != "user":
        raise ApiError('messages: first message must use the "user" role')


def _check_system_message(before: Turn | None, turn: Turn, can: Capabilities) -> None:
    if not can.model.system_messages:
        raise ApiError("role 'system' is not supported on this model")
    if before is None or before.role != "user":
        raise ApiError(
            f"messages.{turn.message}: a message with role 'system' must directly follow a "
            "message with role 'user'"
        )


def check_last(conversation: ParsedRequest, *, is_paused: bool) -> None:
    """Raise if the request ends with an assistant message that is not a paused reply."""
    if conversation.turns[-1].role == "assistant" and not is_paused:
        raise ApiError(
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )


# Texts


def _check_texts(conversation: ParsedRequest) -> None:
    for block in conversation.system:
        _check_text("system", block)
    for placed in conversation.all_blocks():
        _check_text("messages", placed.block)
        inner = placed.block.get("content") or []
        if placed.type == "tool_result" and not isinstance(inner, str):
            for block in inner:
                _check_text("messages", block)
    for index, message in enumerate(conversation.body["messages"]):
        _check_content(index, message["content"])


def _check_content(index: int, content: Json) -> None:
    """Raise if a message has no content or its last block is thinking."""
    if not content:
        raise ApiError(f"messages.{index}: all messages must have non-empty content")
    last = as_blocks(content)[-1]["type"]
    if last in THINKING:
        raise ApiError(
            f"messages.{index}: The final block in an assistant message cannot be `{last}`."
        )


def _check_text(where: str, block: JsonObject) -> None:
    if block["type"] != "text":
        return
    if not block["text"]:
        raise ApiError(f"{where}: text content blocks must be non-empty")
    if not block["text"].strip():
        raise ApiError(f"{where}: text content blocks must contain non-whitespace text")


# Tools that come and go


def _check_tool_changes(conversation: ParsedRequest) -> None:
    names = {tool["name"] for tool in conversation.tools}
    for placed in conversation.all_blocks():
        if placed.type in {"tool_addition", "tool_removal"}:
            name = placed.block["tool"]["name"]
            if name not in names:
                raise ApiError(f"{placed.path}: no tool {name!r} in `tools`")


# Tool uses and their results


def _check_pairing(turns: list[Turn]) -> None:
    """Raise unless ids are unique, and tool uses and their results stand in adjacent turns."""
    known: set[str] = set()
    for at, turn in enumerate(turns):
        uses = turn.of_type("tool_use")
        for placed in uses:
            if placed.block["id"] in known:
                raise ApiError(f"{placed.path}: `tool_use` ids must be unique")
            known.add(placed.block["id"])
        if turn.role == "user":
            _check_answers(turns[at - 1] if at else None, turn)
        if uses:
            _check_answered(uses, turns[at + 1] if at + 1 < len(turns) else None)


def _check_answers(before: Turn | None, turn: Turn) -> None:
    """Raise if a result has no tool use in the turn before, or its tool use has two results."""
    uses = before.of_type("tool_use") if before else []
    tool_use_ids = {placed.block["id"] for placed in uses}
    answered: set[str] = set()
    for placed in turn.of_type("tool_result"):
        use_id = placed.block["tool_use_id"]
        if use_id not in tool_use_ids:
            raise ApiError(
                f"{placed.path}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{use_id}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message."
            )
        if use_id in answered:
            raise ApiError(
                f"{placed.path}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {use_id}"
            )
        answered.add(use_id)


def _check_answered(uses: list[Placed], after: Turn | None) -> None:
    """Raise unless the turn after these tool uses begins with all their results."""
    first: set[str] = set()
    for placed in after.blocks if after is not None and after.role == "user" else []:
        if placed.type != "tool_result":
            break
        first.add(placed.block["tool_use_id"])
    missing = [placed.block["id"] for placed in uses if placed.block["id"] not in first]
    if missing:
        raise ApiError(
            f"messages.{uses[0].message}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
