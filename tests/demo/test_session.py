"""A long session between a real sidecar and the scripted model, by a client that only appends."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.demo.scenario import BUILT_IN, load, steps
from tests import soak
from tests.connection import Connection
from tests.demo.chatting import post
from tests.demo.running import MODEL, Block, Endpoint, endpoint

ROOT = Path(__file__).resolve().parent.parent.parent
FILES, LINES = 600, 60
WORD = "incomprehensible"


@dataclass
class Client:
    """A minimal client that runs a session against the endpoint."""

    sidecar: Connection
    running: Endpoint
    session: str
    model: str
    messages: list[Block] = field(default_factory=list)
    endpoint: Block = field(default_factory=dict)
    """What the sidecar is told of the endpoint: nothing about one of the Messages API."""

    def turn(self, said: str | None = None) -> Block:
        """Run one turn: the request, its reply, its tools."""
        given = {} if said is None else {"user_message": said}
        begun = self.request(
            "turn/begin", model=self.model, system="You work.", **self.endpoint, **given
        )
        if begun["rewrite"] is not None:
            self.messages = list(begun["rewrite"]["messages"])
        elif begun["append"] is not None:
            self.messages = [*self.messages, *begun["append"]["messages"]]
        reply = self._ask(begun)
        self._end(begun, reply)
        return reply

    def _ask(self, begun: Block) -> Block:
        """Send the request of a turn; return the reply."""
        body = {
            "model": self.model,
            "max_tokens": begun["max_tokens"],
            "system": begun["system"],
            "tools": begun["tools"],
            "messages": self.messages,
            "cache_control": {"type": "ephemeral"},
            "thinking": {"type": "adaptive", "display": "summarized"},
        }
        answer = self.running.post(body)
        assert answer.status == 200, answer.body
        reply: Block = answer.body
        return reply

    def _end(self, begun: Block, reply: Block) -> None:
        ended = self.request(
            "turn/end",
            turn_id=begun["turn_id"],
            model=self.model,
            usage=reply["usage"],
            content=reply["content"],
            stop_reason=reply["stop_reason"],
        )
        if ended["append"] is not None:
            self.messages = [*self.messages, *ended["append"]["messages"]]
        for block in reply["content"]:
            if block["type"] == "tool_use":
                self._call(block)

    def _call(self, block: Block) -> None:
        envelope = self.request(
            "tools/call",
            name=block["name"],
            arguments=block["input"],
            tool_use_id=block["id"],
            include_data=False,
        )
        assert envelope["status"] == "success", (block, envelope)

    def request(self, method: str, **params: Any) -> Any:
        """Send a request about the session."""
        return self.sidecar.request(method, session_id=self.session, **params)


@dataclass
class ChatClient(Client):
    """A client of Chat Completions; it puts replies into the form of the Messages API."""

    def _ask(self, begun: Block) -> Block:
        body = {
            "model": self.model,
            "max_completion_tokens": begun["max_tokens"],
            "tools": begun["tools"],
            "messages": [*begun["system"], *self.messages],
        }
        answer = post(self.running, body)
        assert answer.status == 200, answer.body
        (choice,) = answer.body["choices"]
        usage = answer.body["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return {
            "content": list(blocks_of(choice["message"])),
            "stop_reason": "tool_use" if choice["message"].get("tool_calls") else "end_turn",
            "usage": {
                "input_tokens": usage["prompt_tokens"] - cached,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": usage["completion_tokens"],
            },
        }


def blocks_of(message: Block) -> Iterator[Block]:
    """Yield the content of a chat reply as blocks."""
    if thought := message.get("reasoning_content"):
        yield {"type": "thinking", "thinking": thought, "field": "reasoning_content"}
    if message["content"]:
        yield {"type": "text", "text": message["content"]}
    for call in message.get("tool_calls") or []:
        function, extra = call["function"], call.get("extra_content")
        yield {
            "type": "tool_use",
            "id": call["id"],
            "name": function["name"],
            "input": json.loads(function["arguments"]),
            **({"extra_content": extra} if extra else {}),
        }


MODELS = [(MODEL, 1.6), ("claude-sonnet-5", 1.0)][: soak.amount(1, 2)]
"""The models, each with the tokens it counts for each of ours."""


@pytest.fixture
def big_project(project: Path) -> Path:
    """A repository whose listings and searches are far larger than a window."""
    for number in range(FILES):
        folder = project / f"part_{number % 30}"
        folder.mkdir(exist_ok=True)
        lines = (f"{number} {f'{WORD[: 2 + line % 14]} ' * 6}{line}\n" for line in range(LINES))
        (folder / f"chapter_{number}.txt").write_text("".join(lines), encoding="utf-8")
    (project / "README.md").write_text("# A book\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    return project


@pytest.fixture
def long_one(tmp_path: Path, factor: float) -> Iterator[Endpoint]:
    """An endpoint that plays the long scenario."""
    text = (BUILT_IN / "long.toml").read_text(encoding="utf-8")
    with endpoint(text, tmp_path, factor=factor) as running:
        yield running


@pytest.mark.soak
@pytest.mark.parametrize(("model", "factor"), MODELS)
def test_sixty_turns_are_all_accepted_below_the_limit_and_everything_comes_back(
    sidecar: Connection, big_project: Path, long_one: Endpoint, home: Path, model: str
) -> None:
    opened = sidecar.request("session/open", root=str(big_project))
    client = Client(sidecar, long_one, opened["session_id"], model)
    client.turn("Go through everything.")
    for _ in steps(load("long"))[1:]:
        reply = client.turn()
    assert reply["content"][0]["text"] == "Sixty turns: every result came back by its handle."
    lines = long_one.lines()
    prompts = [prompt_of(line) for line in lines]
    assert {line["status"] for line in lines} == {200}
    # The sidecar keeps to the limit by its own count, which is off by a little.
    assert max(prompts) <= 1.05 * prompt_limit(opened["budget"])
    assert read_share(lines) > 0.8
    assert raw_tokens(home) > 1_000_000


SERVERS = [
    ("alternation", "short-ids"),
    ("reasoning-back",),
    ("thought-signatures",),
    ("developer",),
    (),
][: soak.amount(1, 5)]
"""The ways of servers of Chat Completions: features for the sidecar, switches for the endpoint."""


@pytest.mark.soak
@pytest.mark.parametrize("ways", SERVERS)
def test_sixty_turns_are_all_accepted_by_chat_completions_too(
    sidecar: Connection, big_project: Path, tmp_path: Path, ways: tuple[str, ...]
) -> None:
    text = (BUILT_IN / "long.toml").read_text(encoding="utf-8")
    strict = frozenset({*ways, "no-system-later", "few-fields"})
    opened = sidecar.request("session/open", root=str(big_project))
    server = {"provider": "demo", "api": "chat", "features": list(ways)}
    with endpoint(text, tmp_path, factor=1.6, strict=strict) as running:
        session = opened["session_id"]
        client = ChatClient(sidecar, running, session, MODEL, endpoint={"endpoint": server})
        client.turn("Go through everything.")
        for _ in steps(load("long"))[1:]:
            reply = client.turn()
        lines = running.lines()
    assert reply["content"][0]["text"] == "Sixty turns: every result came back by its handle."
    assert {line["status"] for line in lines} == {200}
    prompts = [line["usage"]["prompt_tokens"] for line in lines]
    cached = [line["usage"]["prompt_tokens_details"]["cached_tokens"] for line in lines]
    assert max(prompts) <= 1.05 * prompt_limit(opened["budget"])
    assert sum(cached) / sum(prompts) > 0.8


def test_the_tour_goes_through_this_checkout(sidecar: Connection, tmp_path: Path) -> None:
    tour = (BUILT_IN / "tour.toml").read_text(encoding="utf-8").replace("delay_ms = 20", "")
    opened = sidecar.request("session/open", root=str(ROOT))
    with endpoint(tour, tmp_path) as running:
        client = Client(sidecar, running, opened["session_id"], MODEL)
        replies = [client.turn("Show me around."), *(client.turn() for _ in range(3))]
    assert [reply["stop_reason"] for reply in replies] == [*["tool_use"] * 3, "end_turn"]
    assert [len(reply["content"]) for reply in replies] == [3, 6, 4, 2]


def prompt_limit(budget: Block) -> int:
    """Return the most tokens of a prompt: all but the reserve for the reply."""
    return int(budget["total"] - budget["tiers"]["response"]["limit"])


def read_share(lines: list[Any]) -> float:
    """Return the share of the prompts' tokens that was read from the cache."""
    read = sum(line["usage"]["cache_read_input_tokens"] for line in lines)
    return float(read / sum(prompt_of(line) for line in lines))


def raw_tokens(home: Path) -> int:
    """Return about how many tokens the stored results have in full."""
    database = home / "efrit" / "state" / "efrit-budget.sqlite3"
    query = "SELECT sum(size) FROM results JOIN blobs ON blobs.hash = results.blob"
    with closing(sqlite3.connect(database)) as connection:
        (size,) = connection.execute(query).fetchone()
    sample = (f"{WORD} " * 6 + "\n") * 20
    return int(size) * estimate(sample) // len(sample)


def prompt_of(line: Any) -> int:
    """Return the tokens of a request, as the model counted them."""
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    return sum(line["usage"][name] for name in names)
