"""Values as JSON text, for clients whose own JSON is not exact.

Emacs reads `{}` and `null` alike, and integers of more than 64 bits not at all. Such a client
passes on what the model wrote, and what is to be sent, as the texts they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from efrit_budget.errors import Json, ParseError, field_error
from efrit_budget.results.body import sound_text
from efrit_budget.wire import jsontext


def meant(field: str, text: str) -> Json:
    """The value of a JSON text; `field` is named where it is none."""
    try:
        return jsontext.parse(sound_text(text).encode())
    except ParseError as error:
        raise field_error(field, f"is not JSON: {error.message}") from error


def meant_object(field: str, text: str) -> dict[str, Json]:
    """The same, of an object."""
    value = meant(field, text)
    if not isinstance(value, dict):
        raise field_error(field, "must be the JSON text of an object")
    return value


def written(value: Json) -> str:
    """The one text of a value."""
    return jsontext.serialize(value).decode()


def each_written(values: Iterable[Json]) -> list[Json]:
    """The texts of several."""
    return [written(value) for value in values]


def with_texts(answer: dict[str, Json]) -> dict[str, Json]:
    """A turn's answer with texts in the place of what goes to the model.

    `system` and `tools` are a text each, and each message is one.
    """
    whole = ("system", "tools")
    texts: dict[str, Json] = {name: written(answer[name]) for name in whole if name in answer}
    for name in ("rewrite", "append"):
        if answer.get(name) is not None:
            texts[name] = {**answer[name], "messages": each_written(answer[name]["messages"])}
    if "messages" in answer:
        texts["messages"] = each_written(answer["messages"])
    return {**answer, **texts}
