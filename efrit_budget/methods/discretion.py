"""What a model gives to a tool and no file may hold is taken out before anything is kept."""

from __future__ import annotations

from efrit_budget.errors import Json
from efrit_budget.tools.base import Discreet, Tool
from efrit_budget.tools.registry import Registry


def keepable_arguments(tool: Tool, arguments: dict[str, Json]) -> dict[str, Json]:
    """The arguments of a call as they may be kept."""
    checked: object = tool
    return checked.kept_arguments(arguments) if isinstance(checked, Discreet) else arguments


def keepable_reply(registry: Registry, blocks: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """A reply as it may be kept, and as it stands in the conversation from then on."""
    discreet = {tool.name: tool for tool in registry if isinstance(tool, Discreet)}
    return [
        {**block, "input": keepable_arguments(discreet[block["name"]], block["input"])}
        if block["type"] == "tool_use" and block["name"] in discreet
        else block
        for block in blocks
    ]
