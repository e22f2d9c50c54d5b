"""The session of sixty turns: its project, its scenario, and what must hold of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from efrit_budget.demo.scenario import BUILT_IN, Step, parse, steps
from efrit_budget.errors import JsonObject
from tests.connection import Connection
from tests.servers.aimock import fixture
from tests.servers.driving import Exchange

FILES, LINES, FOLDERS = 600, 60, 30
WRITTEN = 1_700_000_000
"""The time at which every file of the project was written."""
TASK = "Go through everything."
END = "Sixty turns: every result came back by its handle."
TURNS = 61
ALERT = "[Budget Alert: ~"
READ = re.compile(r'input = \{ path = "\{file\}" \}.*')
"""The tool's input that depends on where a page was cut, and thus on the server's usage."""


def write_project(root: Path) -> None:
    """Write a project of which a listing is far more than a window can hold."""
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / "README.md").write_text("# A book\n", encoding="utf-8")
    for number in range(FILES):
        file = root / f"part_{number % FOLDERS}" / f"chapter_{number}.txt"
        file.parent.mkdir(exist_ok=True)
        words = ("incomprehensible"[: 1 + line % 15] for line in range(1, LINES + 1))
        text = (f"{number} {' '.join([word] * 6)} {line}\n" for line, word in enumerate(words, 1))
        file.write_text("".join(text), encoding="utf-8")
    for file in root.rglob("*.*"):
        os.utime(file, (WRITTEN, WRITTEN))


def scenario() -> str:
    """Return the scenario `long`, which here reads the same files whatever the server counts."""
    text = (BUILT_IN / "long.toml").read_text(encoding="utf-8")
    changed, count = READ.subn('input = { path = "part_{n}/chapter_{n}.txt" } },', text)
    assert count == 1
    return changed


def played() -> list[Step]:
    """Return the steps of the scenario."""
    return steps(parse(scenario()))


def uses() -> list[JsonObject]:
    """Return the tool uses of the scenario, with any token for the place of a page."""
    calls = (fixture(step)["response"].get("toolCalls", []) for step in played())
    return [{"name": call["name"], "input": call["arguments"]} for some in calls for call in some]


def results_without_model(sidecar: Connection, root: Path) -> dict[str, str]:
    """Run each tool of the scenario in a session of its own; return digests of the results."""
    first = [use for use in uses() if "continuation_token" not in use["input"]]
    stored = [result_of(sidecar, root, use) for use in first if use["name"] != "recall_result"]
    return {f"r{number}": digest for number, digest in enumerate(stored, 1)}


def result_of(sidecar: Connection, root: Path, use: JsonObject) -> str:
    """Return a digest of the result of a tool that is run in a new session."""
    session = sidecar.request("session/open", root=str(root))["session_id"]
    call = {"name": use["name"], "arguments": use["input"], "tool_use_id": "use-1"}
    sidecar.request("tools/call", session_id=session, **call)
    shown = sidecar.request("worklog/show", session_id=session, handle="r1")
    return hashlib.md5(shown["text"].encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """A session that has been played: what happened, was stored, and was sent."""

    exchange: Exchange
    stored: list[JsonObject]
    sent: list[JsonObject]

    def check(self, results: dict[str, str]) -> None:
        """Fail unless the session is as the scenario has it, with these results."""
        rest = self.exchange.rest
        assert (rest["state"], rest["problem"], rest["retries"]) == ("idle", None, []), f"{rest}"
        assert rest["said"].endswith(END)
        assert rest["epoch"] > 1
        assert len(self.sent) == len(self.exchange.begun) == TURNS
        assert all(turn["used"] <= turn["limit"] for turn in self.exchange.begun)
        self._check_uses()
        stored = {result["handle"]: result["digest"] for result in self.stored}
        assert stored == results
        assert sum({one["handle"]: one["bytes"] for one in self.stored}.values()) > 4_000_000
        check_prefixes(self.sent, [turn["rewritten"] for turn in self.exchange.begun])
        check_notices(self.sent)

    def _check_uses(self) -> None:
        """Fail unless the tools were those of the scenario, and each succeeded."""
        made = [
            {"name": use["name"], "input": with_any_token(json.loads(use["input"]))}
            for use in self.exchange.uses
        ]
        assert made == [{**use, "input": with_any_token(use["input"])} for use in uses()]
        failed = [use for use in self.exchange.uses if use["status"] != "success"]
        assert not failed, failed


def with_any_token(tool_input: JsonObject) -> JsonObject:
    """Return the input of a tool without the place at which a page begins."""
    return {name: name == "continuation_token" or value for name, value in tool_input.items()}


def check_prefixes(requests: list[JsonObject], rewritten: list[bool]) -> None:
    """Fail unless each request extends the one before, or begins an epoch."""
    for before, after, is_rewritten in zip(requests, requests[1:], rewritten[1:], strict=False):
        if not is_rewritten:
            old, new = parts(before), parts(after)
            assert new[: len(old)] == old


def parts(request: JsonObject) -> list[str]:
    """Return what a model reads of a request of either API, in its order, as JSON texts."""
    first = [request.get("system"), request["tools"]]
    return [json.dumps(without_marks(part)) for part in [*first, *request["messages"]]]


def without_marks(value: Any) -> Any:
    """Return a value of a request without its cache marks."""
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if name != "cache_control"}
        return {name: without_marks(inner) for name, inner in kept.items()}
    return [without_marks(inner) for inner in value] if isinstance(value, list) else value


def check_notices(requests: list[JsonObject]) -> None:
    """Fail if a request has more than one notice, or a later system message that is no alert."""
    for request in requests:
        later = [(message["role"], text_of(message)) for message in request["messages"][1:]]
        assert sum("older results shrink" in text for _, text in later) <= 1
        assert all(text.startswith(ALERT) for role, text in later if role == "system")


def text_of(message: JsonObject) -> str:
    """Return the text of a message of either API, without tools and their results."""
    content = message["content"] or ""
    blocks = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(block.get("text", "") for block in blocks)
