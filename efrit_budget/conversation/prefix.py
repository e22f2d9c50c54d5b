"""Build the tool schemas of a request, with budget hints."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from efrit_budget.budget.estimate import estimate
from efrit_budget.conversation.blocks import block_estimate, valid_json
from efrit_budget.errors import Json, JsonObject
from efrit_budget.tools.base import Hint

CHECKED = frozenset({"minLength", "minimum", "maximum", "minItems", "maxItems"})
"""Bounds that a tool checks itself, with an error that names them: the model pays for each."""
CONTINUING = "continuation_token"
RECALLING = "recall_result"
"""The tool that goes on with any result: where it is offered, no other one needs the token."""
REFUSING_OTHERS = ("additionalProperties", False)
REDUNDANT: tuple[tuple[str, Json], ...] = (
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
    input_schema: JsonObject
    hint: Hint | None = None


def tool_set(offers: Iterable[Offer]) -> str:
    """Return a text that identifies a set of tools, without hints."""
    return json.dumps(
        [(offer.name, offer.description, offer.input_schema) for offer in offers], sort_keys=True
    )


def schemas(offers: Sequence[Offer], allowance: Callable[[str], int]) -> list[JsonObject]:
    """Return the `tools` of a request, with a cache mark on the last."""
    needless = CONTINUING if any(offer.name == RECALLING for offer in offers) else None
    tools = [
        _schema(offer, allowance(offer.name), None if offer.name == RECALLING else needless)
        for offer in offers
    ]
    if tools:
        tools[-1]["cache_control"] = {"type": "ephemeral"}
    return tools


def prefix_estimate(system: Iterable[JsonObject], tools: Iterable[JsonObject]) -> int:
    """Return the estimate of system blocks, and of tools as compact JSON."""
    sent = ({name: tool[name] for name in tool if name != "cache_control"} for tool in tools)
    tool_texts = (valid_json(tool, separators=(",", ":")) for tool in sent)
    return sum(map(block_estimate, system)) + sum(map(estimate, tool_texts))


def _schema(offer: Offer, allowance: int, needless: str | None) -> JsonObject:
    described = offer.description
    schema = offer.input_schema
    if offer.hint is not None:
        count = round_count(allowance // offer.hint.tokens_each)
        described += f" Current budget allows ~{count} {offer.hint.noun}."
        schema = _with_suggestion(schema, offer.hint.parameter, count)
    return {
        "name": offer.name,
        "description": described,
        "input_schema": _without_bounds(schema, needless),
    }


def _without_bounds(schema: JsonObject, needless: str | None) -> JsonObject:
    """Return the schema without bounds that the tool checks itself."""
    members = {key: value for key, value in schema.items() if (key, value) != REFUSING_OTHERS}
    properties = members.get("properties")
    if isinstance(properties, dict):
        members["properties"] = {
            name: _unbound_property(member)
            for name, member in properties.items()
            if name != needless
        }
    return members


def _unbound_property(member: Json) -> Json:
    """Return a parameter without its bounds, recursively."""
    if not isinstance(member, dict):
        return member
    return {
        key: _unbound_property(value)
        for key, value in member.items()
        if key not in CHECKED and (key, value) not in REDUNDANT
    }


def _with_suggestion(schema: JsonObject, parameter: str | None, count: int) -> JsonObject:
    """Return the schema with the suggested count as default."""
    member = schema.get("properties", {}).get(parameter)
    if member is None:
        return schema
    count = max(member.get("minimum", count), min(count, member.get("maximum", count)))
    changed = copy.deepcopy(schema)
    description = member.get("description", "Limit")
    changed["properties"][parameter] |= {
        "description": f"{description} (budget suggests: {count})",
        "default": count,
    }
    return changed


def round_count(count: int) -> int:
    """Return a count rounded to two leading digits."""
    if count < 100:
        return max(1, count)
    scale = int(10 ** (len(str(count)) - 2))
    return count // scale * scale
