"""Build the tool schemas of a request, with budget hints."""

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from efrit_budget.budget.families import Family
from efrit_budget.conversation.blocks import block_estimate, valid_json
from efrit_budget.errors import Json, JsonObject
from efrit_budget.tools.base import Hint

CHECKED = frozenset({"minLength", "minimum", "maximum", "minItems", "maxItems"})
"""Members of a JSON schema that are not sent, to save tokens: the errors of tools name them."""
CONTINUING = "continuation_token"
RECALLING = "recall_result"
"""The tool that continues any result; if it is offered, no other tool needs `CONTINUING`."""
REFUSING_OTHERS = ("additionalProperties", False)
REDUNDANT: tuple[tuple[str, Json], ...] = (
    ("default", False),  # also matches 0, which is equal to False
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


def shortened(offer: Offer) -> Offer:
    """Return the tool with the first sentence of each description alone, and without its hint."""
    properties = {
        name: {**member, "description": _first_sentence(member["description"])}
        if isinstance(member, dict) and "description" in member
        else member
        for name, member in offer.input_schema.get("properties", {}).items()
    }
    schema = {**offer.input_schema, "properties": properties}
    return Offer(offer.name, _first_sentence(offer.description), schema)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".") + "."


def tool_set(offers: Iterable[Offer]) -> str:
    """Return a text that is equal for equal sets of tools; hints do not count."""
    return json.dumps(
        [(offer.name, offer.description, offer.input_schema) for offer in offers], sort_keys=True
    )


def schemas(offers: Sequence[Offer], allowance: Callable[[str], int]) -> list[JsonObject]:
    """Return the `tools` of a request; `allowance` gives a tool's tokens by name, for its hint."""
    needless = CONTINUING if any(offer.name == RECALLING for offer in offers) else None
    tools = [
        _schema(offer, allowance(offer.name), None if offer.name == RECALLING else needless)
        for offer in offers
    ]
    if tools:
        tools[-1]["cache_control"] = {"type": "ephemeral"}
    return tools


def prefix_estimate(
    system: Iterable[JsonObject], tools: Iterable[JsonObject], family: Family
) -> int:
    """Return the estimated tokens of system blocks and tool schemas, without cache marks."""
    sent = ({name: tool[name] for name in tool if name != "cache_control"} for tool in tools)
    tool_texts = (valid_json(tool, separators=(",", ":")) for tool in sent)
    in_system = sum(block_estimate(block, family) for block in system)
    return in_system + sum(map(family.estimate, tool_texts))


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
    """Return the schema without `CHECKED` and `REDUNDANT` members and the parameter `needless`."""
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
    """Return the schema of a parameter without `CHECKED` and `REDUNDANT` members, recursively."""
    if not isinstance(member, dict):
        return member
    return {
        key: _unbound_property(value)
        for key, value in member.items()
        if key not in CHECKED and (key, value) not in REDUNDANT
    }


def _with_suggestion(schema: JsonObject, parameter: str | None, count: int) -> JsonObject:
    """Return the schema with the count, kept within its bounds, as the parameter's default."""
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
    """Return a count rounded down to two leading digits, at least 1."""
    if count < 100:
        return max(1, count)
    scale = int(10 ** (len(str(count)) - 2))
    return count // scale * scale
