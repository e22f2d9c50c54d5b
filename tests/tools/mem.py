"""Helpers shared by the tests of the memory tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens, plain_tokens_ceil
from tests.connection import Connection
from tests.tools.conftest import Call

NUMBERS = count(1)
MOST_PAGES = 300
BUDGET_LINE = re.compile(
    r"^⚡ Budget: ~([\d,]+)/([\d,]+) tokens used\. ([\d,]+) of ([\d,]+) \w+ shown\."
    r" Increase max_tokens or use detail_level=summary for more\.$",
    re.MULTILINE,
)
SHOWING = re.compile(r"^§ Showing ([\d,]+) of ([\d,]+) ", re.MULTILINE)
FOOTER = re.compile(r"^📏 ~([\d,]+) tokens · \S+ left$", re.MULTILINE)


def save(call: Call, title: str, content: str | None = None, **more: Any) -> int:
    """Save an observation, by default with a content of its own, and give its id."""
    said = f"Some content, number {next(NUMBERS)}." if content is None else content
    envelope = call("mem_save", title=title, content=said, **more)
    assert envelope["status"] == "success", envelope["text"]
    return int(envelope["data"]["id"])


def most(text: str) -> int:
    """Return the largest estimate of a text: ours, and those that the seeds name."""
    return max(estimate(text), plain_tokens(text), plain_tokens_ceil(text))


def listed(envelope: dict[str, Any]) -> list[int]:
    """Return the ids of the observations in an answer, in its order."""
    data = envelope["data"]
    return [one["id"] for one in data.get("results", data.get("observations", []))]


def number(figure: str) -> int:
    """Return a number with thousands separators."""
    return int(figure.replace(",", ""))


def shown_of(envelope: dict[str, Any]) -> set[tuple[int, int]]:
    """Return the numbers of the "X of Y" in an answer."""
    text = envelope["text"]
    found = [match[2:] for match in BUDGET_LINE.findall(text)] + SHOWING.findall(text)
    return {(number(shown), number(total)) for shown, total in found}


def paged(
    sidecar: Connection, root: Path, tool: str, allowance: int = 400, **arguments: Any
) -> Iterator[dict[str, Any]]:
    """Yield all pages of a call, made in a new session with a small allowance."""
    limits = {"per_tool_default": allowance}
    session = sidecar.request("session/open", root=str(root), limits=limits)["session_id"]
    for page in range(MOST_PAGES):
        envelope = sidecar.call_tool(session, tool, f"use-{page}", arguments)
        yield envelope
        token = envelope["data"].get("continuation_token")
        if token is None:
            return
        arguments = {"continuation_token": token}
    raise AssertionError(f"more than {MOST_PAGES} pages")
