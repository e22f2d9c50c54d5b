"""Shorten the long texts in the inputs of a reply's tool uses, such as files that were written."""

from efrit_budget.conversation.blocks import without_thinking
from efrit_budget.errors import Json, JsonObject
from efrit_budget.results.marks import own
from efrit_budget.results.names import most_frequent

LONG = 400
"""The characters above which a text in an input is shortened."""
NAMES = 150
"""The most characters of the names that remain of it."""


def shortened(blocks: list[JsonObject], turn: int) -> list[JsonObject]:
    """Return a turn's reply without thinking, with the long texts of its inputs shortened."""
    return [
        {**block, "input": _short(block["input"], turn)} if block["type"] == "tool_use" else block
        for block in without_thinking(blocks)
    ]


def _short(value: Json, turn: int) -> Json:
    if isinstance(value, dict):
        return {name: _short(member, turn) for name, member in value.items()}
    if isinstance(value, list):
        return [_short(member, turn) for member in value]
    if isinstance(value, str) and len(value) > LONG:
        return own(_line(value, turn))
    return value


def _line(text: str, turn: int) -> str:
    """Return the line that replaces a long text."""
    size = f"{text.count(chr(10)) + 1:,} lines, {len(text):,} characters"
    return (
        f"[{size}, left out; recall_result t{turn} brings them back] "
        f"Names: {most_frequent(text, NAMES)}"
    )
