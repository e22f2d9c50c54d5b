"""The schemas of tools as the model gets them."""

from __future__ import annotations

from typing import Any

import pytest

from efrit_budget.budget.families import CLAUDE, family_named
from efrit_budget.conversation.prefix import Offer, prefix_estimate, round_count, schemas, tool_set
from efrit_budget.tools.base import Hint
from tests.conversation.client import OTHER_TOOLS, Client
from tests.conversation.conftest import OpenClient


def offered(client: Client) -> dict[str, Any]:
    """Begin a turn and return the schemas by name."""
    client.begin("List.")
    return {tool["name"]: tool["input_schema"] for tool in client.tools}


def test_only_the_tool_that_goes_on_with_any_result_is_offered_the_token_for_it(
    client: Client,
) -> None:
    with_token = {
        name for name, schema in offered(client).items() if "continuation_token" in dumped(schema)
    }
    assert with_token == {"recall_result"}


def test_without_that_tool_each_is_offered_the_token(open_client: OpenClient) -> None:
    client = open_client(configured={"tools.deny": [*OTHER_TOOLS, "recall_result"]})
    schemas = offered(client)
    assert "recall_result" not in schemas
    assert "continuation_token" in schemas["file_info"]["properties"]


@pytest.mark.parametrize("bound", ["minimum", "maximum", "minLength", "additionalProperties"])
def test_bounds_that_a_tool_checks_itself_are_not_paid_for(client: Client, bound: str) -> None:
    assert not [name for name, schema in offered(client).items() if bound in dumped(schema)]


def dumped(schema: dict[str, Any]) -> str:
    """Return a schema as JSON with every key."""
    return " ".join([*schema, *(f"{name} {[*said]}" for name, said in parameters(schema))])


def parameters(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the parameters of a schema by name."""
    return list(schema.get("properties", {}).items())


@pytest.mark.parametrize(
    ("count", "told"),
    [(-3, 1), (0, 1), (1, 1), (99, 99), (100, 100), (109, 100), (119, 110), (12_999, 12_000)],
)
def test_a_hint_is_told_to_two_digits(count: int, told: int) -> None:
    assert round_count(count) == told


def hinted(limit: dict[str, Any], allowance: int) -> tuple[str, dict[str, Any]]:
    """Return a tool's description at 40 tokens a file, and its parameter `limit`."""
    schema = {"type": "object", "properties": {"limit": limit}, "additionalProperties": False}
    offer = Offer("files", "List files.", schema, Hint("files", 40, "limit"))
    (tool,) = schemas([offer], lambda _: allowance)
    assert tool["input_schema"].keys() == {"type", "properties"}
    return tool["description"], tool["input_schema"]["properties"]["limit"]


@pytest.mark.parametrize(
    ("allowance", "count", "within"),
    [(8_000, 200, 200), (80_000, 2_000, 500), (100, 2, 10)],
)
def test_a_hint_is_also_the_default_as_far_as_the_bounds_allow(
    allowance: int, count: int, within: int
) -> None:
    limit = {"type": "integer", "minimum": 10, "maximum": 500, "description": "At most"}
    described, suggested = hinted(limit, allowance)
    assert described == f"List files. Current budget allows ~{count} files."
    said = f"At most (budget suggests: {within})"
    assert suggested == {"type": "integer", "description": said, "default": within}
    free = hinted({"type": "integer"}, allowance)[1]
    assert free["description"] == f"Limit (budget suggests: {count})"
    assert free["default"] == count


def test_what_a_parameter_need_not_say_is_left_out_and_all_else_is_not() -> None:
    said = {
        "one": {"type": "boolean", "default": False, "description": ""},
        "two": {"type": "integer", "default": 0},
        "three": {"type": "string", "default": ""},
        "four": {"type": "boolean", "default": True},
        "five": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    }
    (tool,) = schemas([Offer("a", "A.", {"properties": said})], lambda _: 1_000)
    assert tool["input_schema"]["properties"] == {
        "one": {"type": "boolean"},
        "two": {"type": "integer"},
        "three": {"type": "string"},
        "four": {"type": "boolean", "default": True},
        "five": {"type": "array", "items": {"type": "string"}},
    }


def test_the_last_tool_carries_the_mark_of_the_cache_which_costs_nothing() -> None:
    offers = [Offer("a", "A.", {}), Offer("b", "B.", {})]
    tools = schemas(offers, lambda _: 1_000)
    assert [tool.get("cache_control") for tool in tools] == [None, {"type": "ephemeral"}]
    unmarked = [{**tool} for tool in tools]
    del unmarked[-1]["cache_control"]
    family = family_named(CLAUDE)
    in_tools = prefix_estimate([], tools, family)
    assert in_tools == prefix_estimate([], unmarked, family) > 0
    system = [{"type": "text", "text": "Be brief and exact."}]
    in_system = prefix_estimate(system, [], family)
    assert in_system > 0
    assert prefix_estimate(system, tools, family) == in_system + in_tools
    assert schemas([], lambda _: 1_000) == []


def test_a_set_of_tools_is_the_same_whatever_its_hints() -> None:
    plain = Offer("a", "A.", {"x": 1, "y": 2})
    assert tool_set([plain]) == tool_set([Offer("a", "A.", {"y": 2, "x": 1}, Hint("files", 9))])
    assert tool_set([plain]) != tool_set([Offer("a", "B.", {"x": 1, "y": 2})])
