"""The conversations of `docs/protocol.md`, run with a real sidecar.

`python -m tests.docs.protocol_page` writes the sidecar's replies into the page: write a request,
and below it a reply that has only its `id`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.docs import pages
from tests.sidecar import Sidecar

PAGE = pages.FOLDER / "protocol.md"
SLOW_TOOL = pages.ROOT / "tests" / "tools_for_tests" / "wait.py"
FROM_THE_SERVER = {"$/progress"}
WHAT_VARIES = re.compile(r"^What varies from run to run: (.+?)\.$", re.MULTILINE | re.DOTALL)
MODIFIED = 1_795_074_105
"""The time when the project's file was last written; it appears in text that is counted."""
WIDTH = 96
HOME = "/home/ann"
"""The page's name for the folder that contains the project."""
SHOWN_ELSEWHERE = "..."
"""The page's sign for a value shown in full elsewhere, or for the rest of a list."""

NUMBERS = re.compile(r"\d[\d,.:TZ+-]*")
Answer = Callable[[Any, Any], None]
"""A function called with the block on the page and the sidecar's message."""


def conversations(page: str) -> list[pages.Part]:
    """Return the parts of the page that show one connection each."""
    return [part for part in pages.parts(page, 2) if part.blocks("json")]


def varying(page: str) -> frozenset[str]:
    """Return the members whose numbers and times may differ from the page."""
    named = WHAT_VARIES.search(page)
    assert named, "the page does not say what varies"
    return frozenset(re.findall(r"`([^`]+)`", named[1]))


# Comparing


def differences(page: Any, real: Any, free: Set[str], place: str = "") -> Iterator[str]:
    """Yield the differences between the page and a reply; below a free member values may differ."""
    if page == SHOWN_ELSEWHERE:
        return
    if isinstance(page, dict) and isinstance(real, dict):
        yield from names_differ(page, real, place)
        for name in page.keys() & real.keys():
            inner = kinds_differ if name in free else differences
            yield from inner(page[name], real[name], free, f"{place}.{name}")
    elif isinstance(page, list) and isinstance(real, list) and same_length(page, real):
        for number, pair in enumerate(zip(page, real, strict=False)):
            yield from differences(*pair, free, f"{place}[{number}]")
    elif page != real or kind(page) != kind(real):
        yield f"{place}: the page has {page!r}, the sidecar gave {real!r}"


def kinds_differ(page: Any, real: Any, free: Set[str], place: str) -> Iterator[str]:
    """Yield the differences in kind or wording; a list's first element stands for all."""
    if page == SHOWN_ELSEWHERE:
        return
    if kind(page) != kind(real) or wording(page) != wording(real):
        yield f"{place}: the page has {page!r}, the sidecar gave {real!r}"
    elif isinstance(page, dict):
        yield from names_differ(page, real, place)
        for name in page.keys() & real.keys():
            yield from kinds_differ(page[name], real[name], free, f"{place}.{name}")
    elif isinstance(page, list) and page:
        pairs = zip(page, real, strict=False) if is_cut(page) else ((page[0], one) for one in real)
        for number, pair in enumerate(pairs):
            yield from kinds_differ(*pair, free, f"{place}[{number}]")


def wording(value: Any) -> str:
    """Return a text with a sign for each number and time; empty if the value is no text."""
    return NUMBERS.sub("#", value) if isinstance(value, str) else ""


def is_cut(page: list[Any]) -> bool:
    """Return whether a list of the page shows only its first elements."""
    return page[-1:] == [SHOWN_ELSEWHERE]


def same_length(page: list[Any], real: list[Any]) -> bool:
    """Return whether two lists can be compared one by one."""
    return len(page) == len(real) or (is_cut(page) and len(page) - 1 <= len(real))


def names_differ(page: dict[str, Any], real: dict[str, Any], place: str) -> Iterator[str]:
    """Yield a difference if two objects have different members."""
    if page.keys() != real.keys():
        lacking, extra = sorted(real.keys() - page.keys()), sorted(page.keys() - real.keys())
        yield f"{place}: the page lacks {lacking}, and has {extra} that the sidecar did not give"


def kind(value: Any) -> str:
    """Return the JSON name of a value's kind."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return {dict: "object", list: "array", str: "string", bool: "boolean"}.get(type(value), "null")


# Replaying


@contextmanager
def connected(folder: Path) -> Iterator[Sidecar]:
    """Yield a sidecar in the page's project with an open session `demo`."""
    tools, root = folder / "tools", folder / "project"
    tools.mkdir()
    root.mkdir()
    shutil.copy(SLOW_TOOL, tools)
    (root / "README.md").write_text("# Example\n", encoding="utf-8")
    os.utime(root / "README.md", (MODIFIED, MODIFIED))
    environment = {"EFRIT_BUDGET_TOOLS__PATH": json.dumps([str(tools)])}
    with Sidecar(cwd=root, env=environment) as first:
        first.request("session/open", root=".", session_id="demo")
    with Sidecar(cwd=root, env=environment) as connection:
        yield connection


def hold(conversation: pages.Part, folder: Path, answer: Answer) -> None:
    """Send the client's messages of a conversation and pass the sidecar's messages to `answer`."""
    with connected(folder) as connection:
        for block in conversation.blocks("json"):
            page = json.loads(block)
            if is_sent(page):
                connection.send(page)
            else:
                answer(page, at_home(awaited(connection, page), folder))


def at_home(reply: Any, folder: Path) -> Any:
    """Return a reply as if the folder of the conversation were a person's home."""
    return json.loads(json.dumps(reply).replace(str(folder), HOME))


def is_sent(message: Any) -> bool:
    """Return whether a block of the page is sent by the client."""
    members = message if isinstance(message, list) else [message]
    return any(member.get("method", "$/progress") not in FROM_THE_SERVER for member in members)


def awaited(connection: Sidecar, page: Any) -> Any:
    """Wait for the sidecar's message that corresponds to a block."""
    if isinstance(page, list):
        replies = connection.wait_for(lambda message: isinstance(message, list)).value
        order = [reply["id"] for reply in page]
        return sorted(replies, key=lambda reply: order.index(reply["id"]))
    if "method" in page:
        name = page["method"]
        return connection.wait_for(lambda message: message.get("method") == name).value
    return connection.reply(page["id"])


# Writing


def pretty(value: Any, indent: int = 0) -> str:
    """Return JSON on one line if it fits, else with a line for each member."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner, pad = indent + 2, " " * (indent + 2)
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(name)}: {pretty(one, inner)}" for name, one in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + pretty(one, inner) for one in value) + "\n" + " " * indent + "]"


def shortened(page: Any, real: Any) -> Any:
    """Return the sidecar's reply without the parts that the page leaves out."""
    if page == SHOWN_ELSEWHERE:
        return page
    if isinstance(page, dict) and isinstance(real, dict):
        return {name: shortened(page.get(name), one) for name, one in real.items()}
    if isinstance(page, list) and isinstance(real, list) and same_length(page, real):
        shown = page[:-1] if is_cut(page) else page
        return [shortened(*pair) for pair in zip(shown, real, strict=False)] + page[len(shown) :]
    return real


def renewed(page: str) -> str:
    """Return the page with each outdated reply replaced by the sidecar's present one."""
    free = varying(page)
    replies: list[tuple[Any, Any]] = []
    for conversation in conversations(page):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["EFRIT_BUDGET_HOME"] = f"{folder}/home"
            hold(conversation, Path(folder), lambda *pair: replies.append(pair))
    fresh = (
        shortened(page, real) if any(differences(page, real, free)) else page
        for page, real in replies
    )

    def block(match: re.Match[str]) -> str:
        if match[1] != "json":
            return match[0]
        message = json.loads(match[2])
        shown = message if is_sent(message) else next(fresh)
        return f"```json\n{pretty(shown)}\n```"

    return pages.BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(renewed(pages.read("protocol.md")), encoding="utf-8")
