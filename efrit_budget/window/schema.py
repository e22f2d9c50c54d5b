"""The tools as the model is given them: their schemas, with hints of what the budget allows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json
from efrit_budget.tools.base import Hint
from efrit_budget.window.blocks import block_estimate, written

CHECKED = frozenset({"minLength", "minimum", "maximum", "minItems", "maxItems"})
"""Bounds that a tool checks itself, with an error that names them: the model pays for each."""
CONTINUING = "continuation_token"
RECALLING = "recall_result"
"""The tool that goes on with any result: where it is offered, no other one needs the token."""
REFUSING_OTHERS = ("additionalProperties", False)
UNSAID: tuple[tuple[str, Json], ...] = (
    ("default", False),  # equal to 0, so that stands for both
    ("default", ""),
    ("description", ""),
)
"""Members of a parameter that say no more than the parameter itself."""


@dataclass(frozen=True)
class Offer:
    """A tool that is offered to the model."""

    name: str
    description: str
    input_schema: dict[str, Json]
    hint: Hint | None = None


def tool_set(offers: Iterable[Offer]) -> str:
    """What tells one set of tools from another, hints apart."""
    return json.dumps(
        [(offer.name, offer.description, offer.input_schema) for offer in offers], sort_keys=True
    )


def schemas(offers: Sequence[Offer], allowance: Callable[[str], int]) -> list[dict[str, Json]]:
    """The `tools` of a request; the last one carries the mark up to which it is cached."""
    needless = CONTINUING if any(offer.name == RECALLING for offer in offers) else None
    tools = [
        _schema(offer, allowance(offer.name), None if offer.name == RECALLING else needless)
        for offer in offers
    ]
    if tools:
        tools[-1]["cache_control"] = {"type": "ephemeral"}
    return tools


def prefix_estimate(system: Iterable[dict[str, Json]], tools: Iterable[dict[str, Json]]) -> int:
    """What stands before the messages costs, before calibration: block by block, tool by tool."""
    return sum(map(block_estimate, system)) + sum(map(_tool_estimate, tools))


def _tool_estimate(tool: dict[str, Json]) -> int:
    """What a tool costs as it is sent: JSON without spaces; a cache mark costs nothing."""
    sent = {name: tool[name] for name in tool if name != "cache_control"}
    return estimate(written(sent, separators=(",", ":")))


def _schema(offer: Offer, allowance: int, needless: str | None) -> dict[str, Json]:
    described = offer.description
    schema = offer.input_schema
    if offer.hint is not None:
        count = rounded(allowance // offer.hint.tokens_each)
        described += f" Current budget allows ~{count} {offer.hint.noun}."
        schema = _suggesting(schema, offer.hint.parameter, count)
    return {"name": offer.name, "description": described, "input_schema": _plain(schema, needless)}


def _plain(schema: dict[str, Json], needless: str | None) -> dict[str, Json]:
    """The schema without what the tool checks itself, and without a needless parameter."""
    kept = {key: value for key, value in schema.items() if (key, value) != REFUSING_OTHERS}
    properties = kept.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {
            name: _unbounded(member) for name, member in properties.items() if name != needless
        }
    return kept


def _unbounded(member: Json) -> Json:
    """A parameter without its bounds, and those of its parts."""
    if not isinstance(member, dict):
        return member
    return {
        key: _unbounded(value)
        for key, value in member.items()
        if key not in CHECKED and (key, value) not in UNSAID
    }


def _suggesting(schema: dict[str, Json], parameter: str | None, count: int) -> dict[str, Json]:
    """The schema with the count as the parameter's default, where its own bounds allow it."""
    member = schema.get("properties", {}).get(parameter)
    if member is None:
        return schema
    count = max(member.get("minimum", count), min(count, member.get("maximum", count)))
    changed = copy.deepcopy(schema)
    said = member.get("description", "Limit")
    changed["properties"][parameter] |= {
        "description": f"{said} (budget suggests: {count})",
        "default": count,
    }
    return changed


def suggested_count(tools: str | None, name: str, parameter: str | None) -> dict[str, Json]:
    """The count that a tool was offered with as its parameter's default, by the parameter's name.

    `tools` are those of the request, as they were sent; nothing where the tool is not among them.
    """
    if tools is None or parameter is None:
        return {}
    offered = next((tool for tool in json.loads(tools) if tool["name"] == name), None)
    members = offered["input_schema"]["properties"] if offered else {}
    return {parameter: members[parameter]["default"]} if parameter in members else {}


def rounded(count: int) -> int:
    """A count to two leading digits: a hint is no promise."""
    if count < 100:
        return max(1, count)
    scale = int(10 ** (len(str(count)) - 2))
    return count // scale * scale
