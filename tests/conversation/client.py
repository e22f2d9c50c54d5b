"""A client for tests, which builds the list of messages from the sidecar's replies."""

from __future__ import annotations

import itertools
import json
import pkgutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from efrit_budget.app import Application, open_application
from efrit_budget.budget.families import CLAUDE, Family, family_named
from efrit_budget.budget.models import model_named
from efrit_budget.replay.ours import Clock
from efrit_budget.settings.load import load
from efrit_budget.tools import catalog
from tests.databases import copy_template

Block = dict[str, Any]

TOOLS = Path(__file__).parent / "tools"
MODEL = "claude-sonnet-5-5"
"""A model that takes system messages in mid-conversation."""
PLAIN_MODEL = "claude-sonnet-5"
"""A model that takes no system messages in mid-conversation."""
SYSTEM = "You work in Emacs."
OTHER_TOOLS = [
    module.name
    for module in pkgutil.iter_modules(catalog.__path__)
    if module.name not in ("file_info", "recall_result")
]
"""The tools left out of these sessions, so that new tools do not change their sizes."""


def text(said: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": said}


def thinking(thought: str = "hm") -> Block:
    """Return a signed thinking block."""
    return {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}


def tool_use(use_id: str, name: str, **arguments: Any) -> Block:
    """Return a tool use."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": arguments}


def words(tokens: int, seed: int = 0) -> str:
    """Return a text of about this many tokens, different for each seed."""
    lines = (f"line {number} of text {seed} has six words\n" for number in range(tokens * 2 // 17))
    return "".join(lines)


class Client:
    """A session in a database of its own, and the conversation as its client keeps it."""

    def __init__(
        self,
        folder: Path,
        *,
        root: Path | None = None,
        configured: Mapping[str, Any] | None = None,
        **limits: Any,
    ) -> None:
        self.folder = folder
        self.configured = dict(configured or {})
        self.root = root or folder / "project"
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "README.md").write_text("# Example\n", encoding="utf-8")
        self.left_behind: list[Application] = []
        self.per_tool: int = limits.get("per_tool_default", 8_000)
        self.clock = Clock(time.time())
        self.app = self.opened()
        self.model = MODEL
        self.system_text: Any = SYSTEM
        self.environment = ""
        self.request: dict[str, Any] = {}
        """More params of `turn/begin`, such as `endpoint`."""
        self.messages: list[Block] = []
        self.system: list[Block] = []
        self.tools: list[Block] = []
        self.begun: dict[str, Any] = {}
        self.family_changes = 0
        self._ids = itertools.count(1)
        opened = self.app.call(
            "session/open", {"root": str(self.root), "session_id": "twin", "limits": limits}
        )
        self.session: str = opened["session_id"]

    def opened(self) -> Application:
        """Open the sidecar's application on the database, as a new process would."""
        overrides = {
            "storage.database": self.folder / "db.sqlite",
            "tools.path": [str(TOOLS)],
            "tools.deny": OTHER_TOOLS,
        }
        loaded = load(overrides=overrides | self.configured)
        copy_template(loaded.settings.storage.database)
        return open_application(loaded, self.clock)

    def crash(self) -> None:
        """Continue in a new process; the old one closed nothing.

        The old process is still alive, so its session has to be taken over.
        """
        self.left_behind.append(self.app)
        self.app = self.opened()
        self.call("session/resume", take_over=True)

    def open_session(self, **limits: Any) -> Client:
        """Continue with another session in the same process."""
        self.per_tool = limits.get("per_tool_default", 8_000)
        opened = self.app.call("session/open", {"root": str(self.root), "limits": limits})
        self.session = opened["session_id"]
        self.messages, self.system, self.tools, self.begun = [], [], [], {}
        return self

    def close(self) -> None:
        """Close every process there was."""
        for app in (*self.left_behind, self.app):
            app.close()

    def call(self, method: str, **params: Any) -> Any:
        """Call a method on the session."""
        return self.app.call(method, {"session_id": self.session, **params})

    # Turns

    def begin(self, user_message: Any = None, *, model: str | None = None) -> dict[str, Any]:
        """Begin a turn, and take what the request is to be."""
        self.model = model or self.model
        given = {} if user_message is None else {"user_message": user_message}
        if self.environment:
            given["environment"] = self.environment
        begun: dict[str, Any] = self.call(
            "turn/begin", model=self.model, system=self.system_text, **self.request, **given
        )
        if begun["rewrite"] is not None:
            self.messages = begun["rewrite"]["messages"]
        elif begun["append"] is not None:
            self.messages = [*self.messages, *begun["append"]["messages"]]
        self.begun, self.system, self.tools = begun, begun["system"], begun["tools"]
        return begun

    def end(self, *content: Block, **params: Any) -> dict[str, Any]:
        """End the turn with a reply."""
        params.setdefault("turn_id", self.begun["turn_id"])
        uses = any(block["type"] == "tool_use" for block in content)
        params.setdefault("stop_reason", "tool_use" if uses else "end_turn")
        ended: dict[str, Any] = self.call("turn/end", content=list(content), **params)
        if ended["append"] is not None:
            self.messages = [*self.messages, *ended["append"]["messages"]]
        return ended

    def turn(
        self, *results: str, message: Any = None, model: str | None = None, usage: Any = None
    ) -> list[dict[str, Any]]:
        """Run a turn in which the client's tool returns these texts; return the envelopes."""
        self.begin(message, model=model)
        uses = [tool_use(self.new_id(), "eval_sexp", at=at) for at in range(len(results))]
        self.end(thinking(), text(f"turn {self.begun['turn_id']}"), *uses, usage=usage)
        return [
            self.record(use["id"], given, arguments=use["input"])
            for use, given in zip(uses, results, strict=True)
        ]

    def teach(self, truth: float, turns: int = 8) -> None:
        """Run turns with a model that needs `truth` tokens for each estimated one."""
        for number in range(turns):
            self.begin(words(400, number))
            used = sum(tier["used"] for tier in self.budget()["tiers"].values())
            prompt = round(used / self.factor() * truth)
            self.end(text("I see."), usage={"input_tokens": prompt})

    # Tools

    def new_id(self) -> str:
        """Return a new tool_use_id."""
        return f"toolu_{next(self._ids)}"

    def use(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool outside of a turn."""
        envelope: dict[str, Any] = self.call(
            "tools/call", name=name, arguments=arguments, tool_use_id=self.new_id()
        )
        return envelope

    def call_tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the sidecar, end the turn and return the envelope."""
        use = tool_use(self.new_id(), name, **arguments)
        self.end(use)
        envelope: dict[str, Any] = self.call(
            "tools/call", name=name, arguments=arguments, tool_use_id=use["id"]
        )
        return envelope

    def record(self, use_id: str, given: str, /, **params: Any) -> dict[str, Any]:
        """Record what a tool of the client gave."""
        envelope: dict[str, Any] = self.call(
            "tools/record", **{"name": "eval_sexp", "tool_use_id": use_id, "text": given, **params}
        )
        return envelope

    # Looking

    def epoch(self) -> int:
        """Return the epoch of the last request."""
        return int(self.begun.get("epoch", 0))

    def prefix(self) -> str:
        """Return the prefix, as text."""
        return serialized([self.system, self.tools])

    def factor(self) -> float:
        """Return the factor by which estimates become the model's tokens."""
        return float(self.budget()["calibration"]["factor"])

    def family(self) -> Family:
        """Return the family in which the texts of the window are estimated."""
        model = self.budget()["calibration"]["model"]
        return family_named(CLAUDE if model is None else model_named(model).family)

    def limits(self) -> dict[str, int]:
        """Return the session's limits by name."""
        budget = self.budget()
        tiers = {name: tier["limit"] for name, tier in budget["tiers"].items()}
        return {**tiers, "total": budget["total"], "per_tool_default": self.per_tool}

    def budget(self) -> dict[str, Any]:
        """Return the present snapshot of the budget."""
        found: dict[str, Any] = self.call("session/status")["budget"]
        return found

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the work log."""
        found: list[dict[str, Any]] = self.call("worklog/list", limit=10_000)["entries"]
        return found

    def listed(self, **of: Any) -> int:
        """Count the entries of the work log."""
        return int(self.call("worklog/list", limit=1, **of)["total"])

    def state(self, handle: str) -> str:
        """Return the state of an entry."""
        return next(str(entry["state"]) for entry in self.entries() if entry["handle"] == handle)

    def results(self) -> dict[str, str]:
        """Return the text of every tool result in the conversation, by the id of its use."""
        return {
            block["tool_use_id"]: block["content"][0]["text"]
            for message in self.messages
            if message["role"] == "user"
            for block in message["content"]
            if block["type"] == "tool_result"
        }

    def texts(self, role: str) -> list[str]:
        """Return the texts of the messages of a role."""
        return [
            block["text"]
            for message in self.messages
            if message["role"] == role
            for block in message["content"]
            if block["type"] == "text"
        ]

    def system_texts(self) -> list[str]:
        """Return the texts of the system prompt."""
        return [block["text"] for block in self.system]


def without_marks(value: Any) -> Any:
    """Return the value without cache marks."""
    if isinstance(value, dict):
        return {key: without_marks(value[key]) for key in value if key != "cache_control"}
    return [without_marks(member) for member in value] if isinstance(value, list) else value


def serialized(value: Any) -> str:
    """Return the value as JSON in the form that is sent, without cache marks."""
    return json.dumps(without_marks(value), ensure_ascii=False)
