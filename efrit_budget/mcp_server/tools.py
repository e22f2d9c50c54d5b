"""The sidecar's tools as an MCP client sees them."""

from typing import Any

from mcp_types import Tool, ToolAnnotations

from efrit_budget.app import Application
from efrit_budget.errors import JsonObject
from efrit_budget.gateway.offers import SESSION


def list_tools(application: Application) -> dict[str, Tool]:
    """Return the sidecar's tools by name; the list is the same as long as the process lives."""
    listed: list[JsonObject] = application.call("tools/list", {})["tools"]
    return {entry["name"]: _tool(entry) for entry in listed}


def with_session(schema: JsonObject) -> JsonObject:
    """Return the schema of a tool's arguments with the argument `session`."""
    return {**schema, "properties": {**schema.get("properties", {}), "session": SESSION}}


def _tool(entry: JsonObject) -> Tool:
    has_effects: bool = entry["has_effects"]
    return Tool(
        name=entry["name"],
        description=entry["description"],
        input_schema=with_session(entry["input_schema"]),
        annotations=ToolAnnotations(
            read_only_hint=not has_effects,
            destructive_hint=_is_destructive(entry) if has_effects else None,
            idempotent_hint=False if has_effects else None,
            open_world_hint=has_effects and _is_destructive(entry),
        ),
    )


def _is_destructive(entry: JsonObject) -> bool:
    policy: Any = entry["policy"]
    return bool(policy == "ask")
