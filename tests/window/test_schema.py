"""The tools as the model is given them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.window.client import OTHER_TOOLS, Client
from tests.window.conftest import OpenClient


def offered(client: Client) -> dict[str, Any]:
    """The schemas of the first turn, by name."""
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
    """Every key of the schema and its parameters."""
    return " ".join([*schema, *(f"{name} {[*said]}" for name, said in parameters(schema))])


def parameters(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The parameters by name."""
    return list(schema.get("properties", {}).items())
