"""Check rules of Chat Completions beyond the shape of a request."""

from efrit_budget.budget.models import Model
from efrit_budget.demo.chat.request import output_limit
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import JsonObject

FORBIDDEN_IN_SCHEMA = ("oneOf", "anyOf", "allOf", "enum", "not")
NEEDS_TOOLS = ("tool_choice", "parallel_tool_calls")
BOTH_LIMITS = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."


def check_rules(body: JsonObject, model: Model) -> None:
    """Raise the error of the API if the request breaks a rule of the API."""
    _check_limits(body, model)
    _check_options(body)
    _check_tools(body.get("tools") or [])
    _check_contents(body["messages"])
    _check_pairing(body["messages"])


def _check_limits(body: JsonObject, model: Model) -> None:
    if body.get("max_tokens") and body.get("max_completion_tokens"):
        raise ApiError(BOTH_LIMITS, param="max_tokens", kind="invalid_parameter_combination")
    limit = output_limit(body) or 0
    if limit > model.max_output:
        raise ApiError(
            f"max_tokens is too large: {limit}. This model supports at most {model.max_output} "
            f"completion tokens, whereas you provided {limit}.",
            param="max_tokens" if body.get("max_tokens") else "max_completion_tokens",
            kind="invalid_value",
        )


def _check_options(body: JsonObject) -> None:
    """Raise if an option stands without what it belongs to."""
    for name in NEEDS_TOOLS:
        if body.get(name) is not None and not body.get("tools"):
            problem = f"'{name}' is only allowed when 'tools' are specified."
            raise ApiError(f"Invalid value for '{name}': {problem}", param=name)
    if body.get("stream_options") is not None and not body.get("stream"):
        problem = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise ApiError(problem, param="stream_options")


def _check_tools(tools: list[JsonObject]) -> None:
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise ApiError("Tool names must be unique.", param="tools")
    for index, tool in enumerate(tools):
        schema = tool["function"].get("parameters")
        if schema is None:
            continue
        problem = None
        if schema.get("type") != "object":
            problem = (
                f"schema must be a JSON Schema of 'type: \"object\"', got {schema.get('type')!r}."
            )
        elif any(word in schema for word in FORBIDDEN_IN_SCHEMA):
            problem = "schema must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        if problem:
            raise ApiError(
                f"Invalid schema for function '{names[index]}': {problem}",
                param=f"tools[{index}].function.parameters",
                kind="invalid_function_parameters",
            )


def _check_contents(messages: list[JsonObject]) -> None:
    """Raise if a reply of the model has neither content nor tool calls nor a refusal."""
    for index, message in enumerate(messages):
        says = any(message.get(name) is not None for name in ("content", "tool_calls", "refusal"))
        if not says:
            raise ApiError(
                "Invalid value for 'content': expected a string, got null.",
                param=f"messages.[{index}].content",
            )


# Tool calls and their results


def _check_pairing(messages: list[JsonObject]) -> None:
    """Raise unless each tool call has one result, right behind the message that made it."""
    open_ids: list[str] = []
    answered: dict[str, int] = {}
    caller = 0
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _check_result(index, message["tool_call_id"], open_ids, answered)
            continue
        _check_answered(caller, [one for one in open_ids if one not in answered])
        calls = message.get("tool_calls") or []
        open_ids, answered, caller = [call["id"] for call in calls], {}, index
    _check_answered(caller, [one for one in open_ids if one not in answered])


def _check_result(index: int, call_id: str, open_ids: list[str], answered: dict[str, int]) -> None:
    """Raise if a result has no call, or is the second one; note the place of the first."""
    if not open_ids:
        raise ApiError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    if call_id not in open_ids:
        raise ApiError(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of "
            "previous message.",
            param=f"messages.[{index}].tool_call_id",
        )
    if call_id in answered:
        raise ApiError(
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in "
            f"messages[{answered[call_id]}] and messages[{index}].",
            param=f"messages.[{index}].tool_call_id",
        )
    answered[call_id] = index


def _check_answered(caller: int, missing: list[str]) -> None:
    if missing:
        raise ApiError(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(missing)}",
            param=f"messages.[{caller}].role",
        )
