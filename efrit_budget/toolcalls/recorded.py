"""The bodies of results that ran elsewhere: in the client, or in another MCP server."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from efrit_budget.errors import JsonObject, field_error
from efrit_budget.results.body import Body
from efrit_budget.results.marks import own_and_found, quote_with_items


def recorded_body(
    text: str,
    own_lines: Collection[int] = (),
    items: Sequence[int] = (),
    noun: str = "items",
    data: JsonObject | None = None,
) -> Body:
    """Return the body of a text with lines of ours, or with items called `noun`.

    Raise if the offsets of the items are not in the text, each above the one before.
    """
    if not items:
        return Body(own_and_found(text, own_lines), data=data or {})
    if any(first >= second for first, second in pairwise([*items, len(text)])):
        raise field_error("items", "must be offsets in the text, each above the one before")
    quoted, offsets = quote_with_items(text, items)
    return Body(quoted, noun, offsets, data=data or {})
