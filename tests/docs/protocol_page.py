"""The conversations of `docs/protocol.md`, held with a real sidecar.

`python -m tests.docs.protocol_page` writes the replies that the sidecar gives into the page:
write a request, and below it a reply that has its `id` alone.
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
WIDTH = 96
HOME = "/home/ann"
"""Stands on the page for the folder that holds the project."""
SHOWN_ELSEWHERE = "..."
"""Stands in a reply for a value that is shown in full elsewhere, or for a list's further ones."""

NUMBERS = re.compile(r"\d[\d,.:TZ+-]*")
Answer = Callable[[Any, Any], None]
"""Takes what the page shows and what the sidecar said."""


def conversations(page: str) -> list[pages.Part]:
    """The parts of the page that are a connection each."""
    return [part for part in pages.parts(page, 2) if part.blocks("json")]


def varying(page: str) -> frozenset[str]:
    """The members whose numbers and times the page does not promise."""
    named = WHAT_VARIES.search(page)
    assert named, "the page does not say what varies"
    return frozenset(re.findall(r"`([^`]+)`", named[1]))


# Comparing


def differences(page: Any, real: Any, free: Set[str], place: str = "") -> Iterator[str]:
    """Where a reply is not what the page shows; below a free member numbers and times are free."""
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
    """Where two values differ in kind or wording; a list's first element stands for all."""
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
    """A text with a sign for each number and time in it; empty for what is no text."""
    return NUMBERS.sub("#", value) if isinstance(value, str) else ""


def is_cut(page: list[Any]) -> bool:
    """Whether a list of the page shows only its first elements."""
    return page[-1:] == [SHOWN_ELSEWHERE]


def same_length(page: list[Any], real: list[Any]) -> bool:
    """Whether two lists can be compared one by one."""
    return len(page) == len(real) or (is_cut(page) and len(page) - 1 <= len(real))


def names_differ(page: dict[str, Any], real: dict[str, Any], place: str) -> Iterator[str]:
    """Whether two objects have the same members."""
    if page.keys() != real.keys():
        lacking, extra = sorted(real.keys() - page.keys()), sorted(page.keys() - real.keys())
        yield f"{place}: the page lacks {lacking}, and has {extra} that the sidecar did not give"


def kind(value: Any) -> str:
    """What JSON calls a value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return {dict: "object", list: "array", str: "string", bool: "boolean"}.get(type(value), "null")


# Replaying


@contextmanager
def connected(folder: Path) -> Iterator[Sidecar]:
    """A sidecar in the project of the page, where the session `demo` is open."""
    tools, root = folder / "tools", folder / "project"
    tools.mkdir()
    root.mkdir()
    shutil.copy(SLOW_TOOL, tools)
    (root / "README.md").write_text("# Example\n", encoding="utf-8")
    environment = {"EFRIT_BUDGET_TOOLS__PATH": json.dumps([str(tools)])}
    with Sidecar(cwd=root, env=environment) as first:
        first.request("session/open", root=".", session_id="demo")
    with Sidecar(cwd=root, env=environment) as connection:
        yield connection


def hold(conversation: pages.Part, folder: Path, answer: Answer) -> None:
    """Say what the client says in a conversation, and hand on what the sidecar says to it."""
    with connected(folder) as connection:
        for block in conversation.blocks("json"):
            page = json.loads(block)
            if is_sent(page):
                connection.send(page)
            else:
                answer(page, at_home(awaited(connection, page), folder))


def at_home(reply: Any, folder: Path) -> Any:
    """A reply as if the folder of the conversation were a person's home."""
    return json.loads(json.dumps(reply).replace(str(folder), HOME))


def is_sent(message: Any) -> bool:
    """Whether a block is what the client says."""
    members = message if isinstance(message, list) else [message]
    return any(member.get("method", "$/progress") not in FROM_THE_SERVER for member in members)


def awaited(connection: Sidecar, page: Any) -> Any:
    """The message of the sidecar that belongs to a block."""
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
    """JSON on one line where that fits, and else a line for each member."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner, pad = indent + 2, " " * (indent + 2)
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(name)}: {pretty(one, inner)}" for name, one in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + pretty(one, inner) for one in value) + "\n" + " " * indent + "]"


def shortened(page: Any, real: Any) -> Any:
    """What the sidecar said, without what the page leaves out."""
    if page == SHOWN_ELSEWHERE:
        return page
    if isinstance(page, dict) and isinstance(real, dict):
        return {name: shortened(page.get(name), one) for name, one in real.items()}
    if isinstance(page, list) and isinstance(real, list) and same_length(page, real):
        shown = page[:-1] if is_cut(page) else page
        return [shortened(*pair) for pair in zip(shown, real, strict=False)] + page[len(shown) :]
    return real


def renewed(page: str) -> str:
    """The page with a new reply in the place of each that a sidecar does not give any more."""
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
