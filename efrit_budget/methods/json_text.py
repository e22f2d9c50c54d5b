"""Read and write JSON values as texts, for clients that do not read JSON exactly.

Emacs reads `{}` and `null` alike, and integers of more than 64 bits not at all. Such a client
passes on the JSON of the model, and that of requests, as texts that it does not parse.
"""

from collections.abc import Iterable
from typing import Final

from efrit_budget.characters import sound_text
from efrit_budget.errors import Json, JsonObject, ParseError, field_error
from efrit_budget.wire import jsontext
from efrit_budget.wire.method import as_object

SHOWN: Final = 200
"""The most characters of an unreadable input that are shown, so that the model recognizes it."""


def parse_json(field: str, text: str) -> Json:
    """Parse a JSON text; name `field` in the error."""
    try:
        return jsontext.parse(sound_text(text).encode())
    except ParseError as error:
        raise field_error(field, f"is not JSON: {error.message}") from error


def parse_object(field: str, text: str) -> JsonObject:
    """Parse a JSON text that must be an object."""
    value = as_object(parse_json(field, text))
    if not isinstance(value, dict):
        raise field_error(field, "must be the JSON text of an object")
    return value


def parse_inputs(blocks: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the blocks of a reply with each tool's `input_json` parsed, and unreadable inputs.

    A reply that ends at its limit of tokens may end within an input, and some models write what
    is no JSON, or what two readers would read differently. Such an input becomes an empty object,
    as the API accepts nothing else; the second value has the id of its tool use, and the problem
    in words for the model.
    """
    read, unreadable = [], list[JsonObject]()
    for block in blocks:
        if block.get("type") == "tool_use" and isinstance(block.get("input_json"), str):
            others = {name: value for name, value in block.items() if name != "input_json"}
            tool_input, problem = _input(block["input_json"])
            if problem is not None:
                unreadable.append({"tool_use_id": block.get("id"), "problem": problem})
            read.append({**others, "input": tool_input})
        else:
            read.append(block)
    return read, unreadable


def _input(text: str) -> tuple[JsonObject, str | None]:
    """Return a tool's parsed input and None, or an empty object and the problem of the text."""
    try:
        value = jsontext.parse(sound_text(text).encode(), for_all=True)
        if isinstance(value, dict):
            return value, None
        reason = "it is no object"
    except ParseError as error:
        reason = error.message
    excerpt = text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
    return {}, f"its input was cut off or cannot be read ({reason}): {excerpt}"


def canonical_inputs(blocks: list[JsonObject]) -> list[Json]:
    """Return the canonical text of each tool's input, in order.

    A client shows, permits, runs and records this text, never that of the model.
    """
    return [
        {"tool_use_id": block["id"], "input_json": json_text(block["input"])}
        for block in blocks
        if block["type"] == "tool_use"
    ]


def json_text(value: Json) -> str:
    """Return a value as canonical JSON text."""
    return jsontext.serialize(value).decode()


def json_texts(values: Iterable[Json]) -> list[Json]:
    """Return several values as JSON texts."""
    return [json_text(value) for value in values]


def as_json_texts(answer: JsonObject) -> JsonObject:
    """Return the reply of a method with JSON texts in place of what is sent to the model.

    `system` and `tools` become one text each, and so does each message.
    """
    whole = ("system", "tools")
    texts: JsonObject = {name: json_text(answer[name]) for name in whole if name in answer}
    for name in ("rewrite", "append"):
        if answer.get(name) is not None:
            texts[name] = {**answer[name], "messages": json_texts(answer[name]["messages"])}
    if "messages" in answer:
        texts["messages"] = json_texts(answer["messages"])
    return {**answer, **texts}
