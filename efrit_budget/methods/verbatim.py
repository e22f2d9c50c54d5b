"""Values as JSON text, for clients whose own JSON is not exact.

Emacs reads `{}` and `null` alike, and integers of more than 64 bits not at all. Such a client
passes on what the model wrote, and what is to be sent, as the texts they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import BeforeValidator

from efrit_budget.errors import Json, ParseError, field_error
from efrit_budget.results.sound import sound_text
from efrit_budget.wire import jsontext

SHOWN: Final = 200
"""Characters of an input that is none: enough for a model to know it again."""


def as_object(value: Json) -> Json:
    """The value; null and an empty list, as which Lisp and Lua write no members, as an object."""
    return {} if value is None or value == [] else value


Members = Annotated[dict[str, Json], BeforeValidator(as_object)]
"""An object, such as a tool's arguments."""


def meant(field: str, text: str) -> Json:
    """The value of a JSON text; `field` is named where it is none."""
    try:
        return jsontext.parse(sound_text(text).encode())
    except ParseError as error:
        raise field_error(field, f"is not JSON: {error.message}") from error


def meant_object(field: str, text: str) -> dict[str, Json]:
    """The same, of an object."""
    value = as_object(meant(field, text))
    if not isinstance(value, dict):
        raise field_error(field, "must be the JSON text of an object")
    return value


def with_inputs(blocks: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], list[Json]]:
    """Blocks of a reply with each tool's input read from its text, `input_json`.

    A reply that ends at its limit of tokens may end within an input, and some models write what
    is no JSON, or what two readers would read differently. Such an input stands as an empty
    object, for the API takes nothing else; which they are is the second value, with what a model
    can be told of it.
    """
    read, unreadable = [], list[Json]()
    for block in blocks:
        if block.get("type") == "tool_use" and isinstance(block.get("input_json"), str):
            others = {name: value for name, value in block.items() if name != "input_json"}
            given, problem = _input(block["input_json"])
            if problem is not None:
                unreadable.append({"tool_use_id": block.get("id"), "problem": problem})
            read.append({**others, "input": given})
        else:
            read.append(block)
    return read, unreadable


def _input(text: str) -> tuple[dict[str, Json], str | None]:
    """The object of a tool's input, and what is wrong with the text if it is none."""
    try:
        given = jsontext.parse_for_all(sound_text(text).encode())
        if isinstance(given, dict):
            return given, None
        reason = "it is no object"
    except ParseError as error:
        reason = error.message
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
    return {}, f"its input was cut off or cannot be read ({reason}): {shown}"


def canonical_inputs(blocks: list[dict[str, Json]]) -> list[Json]:
    """The one text of each tool's input, in the order of the tool uses.

    A client decides about, shows, records and runs this text, never what the model wrote.
    """
    return [
        {"tool_use_id": block["id"], "input_json": written(block["input"])}
        for block in blocks
        if block["type"] == "tool_use"
    ]


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
