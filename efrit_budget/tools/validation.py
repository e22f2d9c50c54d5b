"""Validate the input of client tools against their schemas.

The arguments of the sidecar's own tools are checked by pydantic when they are called.
"""

from collections.abc import Iterator
from typing import NoReturn

import jsonschema_rs
from jsonschema_rs import Draft202012Validator, ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from efrit_budget.errors import JsonObject
from efrit_budget.tools.base import Arguments

EVERYWHERE = Arguments.model_fields
"""The arguments that every tool takes, whatever its schema says."""
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
LISTED = 5
SHOWN = 200


def schema_problem(schema: JsonObject) -> str | None:
    """Return why a schema is invalid, or None."""
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": _DRAFT})
    except ValidationError as error:
        return f"{_where(error)}{_cut(error.message)}"
    return None


def input_problem(schema: JsonObject, given: JsonObject) -> str | None:
    """Return what is wrong with the arguments of a tool call, for the model, or None.

    An optional argument may be null, which means that it is not given.
    """
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    own = {
        name: value
        for name, value in given.items()
        if (name not in EVERYWHERE or name in properties)
        and not (value is None and name not in required)
    }
    unknown = sorted(own.keys() - properties.keys())
    if unknown and schema.get("additionalProperties") is None:
        known = ", ".join(sorted(properties)) or "none"
        return f"there is no argument {_cut(unknown[0])}; there are: {known}"
    try:
        problems = list(_problems(schema, own))
    except ValidationError:
        return None  # the schema cannot be used; the tool has to check its input
    return "; ".join(problems[:LISTED]) or None


def _problems(schema: JsonObject, given: JsonObject) -> Iterator[str]:
    checker = Draft202012Validator(schema, retriever=_refuse)
    for error in sorted(checker.iter_errors(given), key=_place):
        deepest = _deepest(error)
        yield f"{_where(deepest)}{_problem_text(deepest)}"


def _refuse(address: str) -> NoReturn:
    """Raise instead of fetching a schema from an address that another schema names."""
    raise LookupError(address)


def _deepest(error: ValidationError) -> ValidationError:
    """Return the deepest error in the alternatives that `error` is about, or `error` itself."""
    kind = error.kind
    if not isinstance(kind, Kind.AnyOf | Kind.OneOfNotValid):
        return error
    within = [_deepest(inner) for alternative in kind.context for inner in alternative]
    best = max(within, key=lambda inner: len(inner.instance_path), default=error)
    return best if len(best.instance_path) > len(error.instance_path) else error


def _place(error: ValidationError) -> str:
    return ".".join(map(str, error.instance_path))


def _where(error: ValidationError) -> str:
    """Return the path of an error, such as `todos.0.status`, with a colon."""
    place = _place(error)
    return f"{_cut(place)}: " if place else ""


def _problem_text(error: ValidationError) -> str:
    """Return the problem in words, without the wrong value in the common cases."""
    match error.kind:
        case Kind.Type(types=types):
            return f"must be of type {' or '.join(types)}"
        case Kind.Enum(options=options):
            return f"must be one of {', '.join(map(str, options))}"
        case Kind.Required(property=name):
            return f"{name} is missing"
    return _cut(error.message)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
