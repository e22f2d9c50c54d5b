"""Check, complete and redact the arguments of a tool call."""

import errno
import json
from dataclasses import replace

from pydantic import ValidationError

from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import Json, JsonObject, invalid_params
from efrit_budget.project.search.ripgrep import NoRipgrepError
from efrit_budget.toolcalls.served import ServerTool
from efrit_budget.tools.base import LEAST_MAX_TOKENS, Arguments, Discreet, Outcome, Tool, failure
from efrit_budget.tools.registry import Registry, schema

TOO_SMALL = "greater_than_equal"
"""The type of pydantic's error for a number below its bound."""
FIRST_HALF, LAST_HALF = "\ud800", "\udfff"


def parse(tool: Tool, call: ToolCall, offered: str | None) -> Arguments | Outcome:
    """Return the validated arguments, or the outcome that explains the problem.

    A count that is not given is the one suggested in `offered`, the latest request's tool schemas.
    With a continuation token, other arguments are neither needed nor validated.
    """
    values = dict(call.arguments)
    if isinstance(tool, ServerTool):
        return tool.parse(values)
    counted = None if tool.hint is None else tool.hint.parameter
    if offered is not None and counted is not None and counted not in values:
        found = next((one for one in json.loads(offered) if one["name"] == tool.name), None)
        members = found["input_schema"]["properties"] if found else {}
        suggested = members.get(counted, {})
        if "default" in suggested:
            values[counted] = suggested["default"]
    token = values.get("continuation_token")
    if isinstance(token, str):
        return Arguments.model_construct(continuation_token=token)
    try:
        return tool.arguments.model_validate(values)
    except ValidationError as error:
        return _invalid_arguments(tool, error)


def _invalid_arguments(tool: Tool, error: ValidationError) -> Outcome:
    """Return the outcome for invalid arguments; its text is short if `max_tokens` is invalid."""
    problem = f"{tool.name}: {invalid_params(error.errors()).message}"
    found = next((found for found in error.errors() if found["loc"] == ("max_tokens",)), None)
    if found is None:
        return failure(problem)
    message = f"{problem}; max_tokens is {_max_tokens_range()}"
    bound = f"at least {LEAST_MAX_TOKENS}" if found["type"] == TOO_SMALL else _max_tokens_range()
    return replace(failure(f"{tool.name}: max_tokens: {bound}"), message=message)


def _max_tokens_range() -> str:
    allowed = schema(Arguments)["properties"]["max_tokens"]
    return f"a whole number from {allowed['minimum']:,} to {allowed['maximum']:,}"


def redact_reply(registry: Registry, blocks: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks of a reply without the inputs that its tools forbid to store."""
    discreet = {tool.name: tool for tool in registry if isinstance(tool, Discreet)}
    return [
        {**block, "input": discreet[block["name"]].kept_arguments(block["input"])}
        if block["type"] == "tool_use" and block["name"] in discreet
        else block
        for block in blocks
    ]


def explain_problem(error: BaseException, arguments: Json) -> str | None:
    """Return the text for the model on an error that it can act on, or None for another error."""
    if isinstance(error, NoRipgrepError):
        return error.message
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return "a path among the arguments is longer than names can be here; give a shorter one"
    if isinstance(error, UnicodeEncodeError) and has_lone_surrogate(arguments):
        return "an argument holds half of a character (a lone surrogate); leave it out"
    return None


def has_lone_surrogate(value: Json) -> bool:
    """Return whether a text in a JSON value has half of a character (a lone surrogate)."""
    if isinstance(value, str):
        return any(FIRST_HALF <= letter <= LAST_HALF for letter in value)
    if isinstance(value, dict):
        return any(has_lone_surrogate(each) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(map(has_lone_surrogate, value))
