"""JSON-RPC methods: name, params, lane and handler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from efrit_budget.errors import InvalidParamsError, Json, JsonObject, invalid_params
from efrit_budget.wire.call import Call, Lane

__all__ = ["Call", "Lane"]  # modules that declare methods import both from here

Number = Annotated[int, Field(ge=1, lt=2**63)]
"""A whole number from 1 that SQLite can store."""
Offset = Annotated[int, Field(ge=0, lt=2**63)]


def as_object(value: Json) -> Json:
    """Return the value, with null and an empty list as an empty object."""
    return {} if value is None or value == [] else value


Members = Annotated[JsonObject, BeforeValidator(as_object)]
"""An object, such as a tool's arguments; null and [] are read as an empty object."""
Name = Annotated[str, Field(max_length=1_000)]
"""A name that is stored. Like every text with a bound, it cannot hold a lone surrogate; in other
texts, these are replaced."""


class Params(BaseModel):
    """The base of all params; unknown fields are rejected by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class NoParams(Params):
    """The params of a method that takes none."""


@dataclass(frozen=True)
class Method:
    """A JSON-RPC method and its handler."""

    name: str
    params: type[BaseModel]
    run: Callable[[Any, Call], Json]
    lane: Lane = Lane.QUICK
    arrive: Callable[[dict[str, Json] | list[Json], Call], None] | None = None
    """Called with the unchecked params before the request is queued in its lane."""

    def __call__(self, given: dict[str, Json] | list[Json], call: Call) -> Json:
        """Validate the params and run the method; positional params take the fields in order."""
        if isinstance(given, list) and not self.params.__pydantic_root_model__:
            given = _named(self.params, given)
        try:
            params = self.params.model_validate(given)
        except ValidationError as error:
            raise invalid_params(error.errors(include_url=False, include_input=False)) from None
        return self.run(params, call)


def _named(model: type[BaseModel], given: list[Json]) -> dict[str, Json]:
    names = list(model.model_fields)
    if len(given) > len(names):
        raise InvalidParamsError(
            f"{len(given)} params given, at most {len(names)} taken",
            data={"fields": [{"field": str(len(names)), "problem": "one too many"}]},
        )
    return dict(zip(names, given, strict=False))
