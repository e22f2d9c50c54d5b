"""Checking the input of a tool of the client's against the schema that it was registered with.

The sidecar's own tools are checked by their models when they are called.
"""

from __future__ import annotations

from collections.abc import Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from efrit_budget.errors import Json
from efrit_budget.tools.base import Arguments

EVERYWHERE = Arguments.model_fields
"""What every tool takes, whatever its schema says."""
LISTED = 5
SHOWN = 200


def schema_problem(schema: dict[str, Json]) -> str | None:
    """What is wrong with a schema itself, or None."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{_where(error)}{_cut(error.message)}"
    return None


def input_problem(schema: dict[str, Json], given: dict[str, Json]) -> str | None:
    """What the model is told of an input that does not fit, or None where it fits.

    An optional argument may be null: that means that it is left out.
    """
    properties, required = _members(schema)
    own = {
        name: value
        for name, value in given.items()
        if name not in EVERYWHERE and not (value is None and name not in required)
    }
    unknown = sorted(own.keys() - properties.keys())
    if unknown and schema.get("additionalProperties") is None:
        known = ", ".join(sorted(properties)) or "none"
        return f"there is no argument {_cut(unknown[0])}; there are: {known}"
    try:
        problems = list(_problems(schema, own))
    except (UnknownType, Unresolvable):
        return None  # no schema that can be checked; the tool has to look itself
    return "; ".join(problems[:LISTED]) or None


def _members(schema: dict[str, Json]) -> tuple[dict[str, Json], list[Json]]:
    """The properties and the required names of a schema; either may be left out, or be null."""
    return dict(schema.get("properties") or {}), list(schema.get("required") or [])


def _problems(schema: dict[str, Json], given: dict[str, Json]) -> Iterator[str]:
    checker = Draft202012Validator(schema, registry=Registry())
    for error in sorted(checker.iter_errors(given), key=lambda error: error.json_path):
        deepest = best_match([error]) or error
        yield f"{_where(deepest)}{_said(deepest)}"


def _where(error: ValidationError | SchemaError) -> str:
    """The place of an error, as `todos.0.status`, with a colon behind it."""
    place = ".".join(map(str, error.absolute_path))
    return f"{_cut(place)}: " if place else ""


def _said(error: ValidationError) -> str:
    """What is wrong, without the value that was given."""
    match error.validator:
        case "type":
            kinds = error.validator_value
            return f"must be of type {kinds if isinstance(kinds, str) else ' or '.join(kinds)}"
        case "enum":
            return f"must be one of {', '.join(map(str, error.validator_value))}"
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return f"{', '.join(missing)} is missing"
    return _cut(error.message)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
