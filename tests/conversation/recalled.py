"""Functions that read a stored result page by page and extract each page's text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from efrit_budget.characters import one_line_each
from tests.conversation.client import Client

TAIL = re.compile(
    r"\n?(§ Showing [^\n]* continuation_token (?P<token>\S+) continues\.\n"
    r"|§ Only the first [^\n]* were stored\.\n)?\n*"
    r"📏 ~(?P<figure>[\d,]+) tokens( · [\d.]+k? left)?"
)
SAME = re.compile(r"§ Same as (r\d+), which is in the window in full\.\n")


MOST_PAGES = 60


class NotShownError(Exception):
    """The budget does not suffice for the result, or only for too many small pages."""


@dataclass
class Read:
    """The part of a result that was read."""

    text: str
    returned: int
    total: int
    pages: int


def offset(token: str) -> int:
    """Return the offset that a continuation token contains."""
    return int(token.partition(":")[2].partition("-")[0])


def page_of(envelope: dict[str, Any], original: str, start: int) -> int:
    """Return the end of a delivered page of a text, and check that only tail and footer follow it.

    A page that stands in the window already is replaced by a line that says so.
    """
    token = envelope["data"].get("continuation_token")
    end = len(original) if token is None else offset(token)
    if is_same(envelope):
        return end
    stretch = one_line_each(original[start:end])
    assert envelope["text"].startswith(stretch), (envelope["text"][:200], stretch[:200])
    tail = TAIL.fullmatch(envelope["text"][len(stretch) :])
    assert tail, envelope["text"][len(stretch) :][-300:]
    assert tail["token"] == token
    assert int(tail["figure"].replace(",", "")) == envelope["tokens"]
    return end


def read(
    client: Client, handle: str, original: str, *, most_pages: int = MOST_PAGES, **arguments: Any
) -> Read:
    """Read every page of a result and check that together they are its text."""
    first = envelope = client.use("recall_result", handle=handle, **arguments)
    start = end = returned = pages = 0
    while True:
        assert envelope["status"] == "success", envelope
        data = envelope["data"]
        token = data.get("continuation_token")
        if "stored, not shown" in envelope["text"]:
            assert data["returned"] == 0
            raise NotShownError(envelope["text"])
        if pages == most_pages:
            raise NotShownError(f"more than {most_pages} pages")
        end = page_of(envelope, original, start)
        assert end > start or not original, "a page without progress"
        returned, pages = returned + data["returned"], pages + 1
        if token is None:
            break
        start = end
        envelope = client.use("recall_result", continuation_token=token, **arguments)
    assert end == len(original)
    return Read(original, returned, first["data"]["total"], pages)


def is_same(envelope: dict[str, Any]) -> bool:
    """Return whether an envelope only points to the text elsewhere in the window."""
    return bool(SAME.match(envelope["text"]))
