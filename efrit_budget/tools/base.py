"""The interface of tools: arguments, context and outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import Json, JsonObject
from efrit_budget.memory.store import MemoryStore
from efrit_budget.project.project import Project
from efrit_budget.results.body import Body
from efrit_budget.results.marks import own, quote
from efrit_budget.settings.model import ToolSettings

LEAST_MAX_TOKENS = 50
"""What a result's handle and footer need."""


MaxTokens = Annotated[int, Field(ge=LEAST_MAX_TOKENS, le=1_000_000)]


class Policy(StrEnum):
    """The default action of a client before it runs a tool."""

    ALLOW = "allow"
    ASK = "ask"


class Status(StrEnum):
    """The ways a call ends."""

    SUCCESS = "success"
    ERROR = "error"
    NEEDS_CONFIRMATION = "needs_confirmation"


class Arguments(BaseModel):
    """The base of all tool arguments; numeric strings are accepted, unknown names are not.

    What every tool takes stands here; the system prompt explains it once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    max_tokens: MaxTokens | None = None
    continuation_token: str | None = None


class Reporter(Protocol):
    """Receives progress of long work."""

    def __call__(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Say it."""

    def shows(self, output: Callable[[], str]) -> None:
        """Have the end of what the work writes be shown while it runs; `output` gives it."""


class _Nobody(Reporter):
    """A reporter that does nothing."""


class Results(Protocol):
    """The stored results and the work log of the current session."""

    def body(self, handle: str) -> Body:
        """Return the result (r7) or turn (t7) of a handle."""

    def listing(self) -> Body:
        """Return the work log, one line per call, oldest first."""

    def as_stored(self, handle: str) -> Stored | None:
        """Return the place of a stored result, or None for a turn."""


@dataclass(frozen=True)
class Stored:
    """A place in a stored result."""

    number: int
    offset: int = 0


@dataclass(frozen=True)
class Origin:
    """The project and session that an observation comes from."""

    project: str
    """The name of the project, which is that of its folder."""
    session: str


@dataclass(frozen=True)
class ToolContext:
    """Everything a tool may use, without the session."""

    project: Project
    allowance: int
    """The tokens that the result may fill."""
    cost: Callable[[str], int]
    """What a text costs in the model's window, calibrated."""
    results: Results
    memory: MemoryStore
    origin: Origin
    find_rg: Callable[[], Path]
    """Finds the program that searches; raises where there is none."""
    settings: ToolSettings
    """The settings `tools.*`."""
    confirmed: bool = False
    """Whether the person has agreed to the question this call asked before."""
    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Reporter = field(default_factory=_Nobody)

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.project.root


@dataclass(frozen=True)
class Outcome:
    """The result of a tool: `text` for the model, `data` for programs.

    The text is what was found; what the tool itself says is an `answer`, a `failure`, or a body
    with marks (`results/marks.py`). A result with parts that are counted gives a `body` instead of
    both, and one that is stored already says where. A tool that fails says so here, with a
    `message` that tells what to do about it.
    """

    text: str = ""
    data: JsonObject = field(default_factory=dict)
    status: Status = Status.SUCCESS
    message: str | None = None
    """What is wrong and what to do about it; or the question to the person."""
    body: Body | None = None
    stored: Stored | None = None
    notes: tuple[str, ...] = ()
    """Lines the model is shown with the first page, beside what is stored."""
    budget_line: Callable[[int], str] | None = None
    """What an answer that was cut to `max_tokens` says of that, given the tokens of it all."""

    @property
    def whole(self) -> Body:
        """The body to store."""
        return self.body or Body(quote(self.text), data=self.data)


def answer(line: str, data: JsonObject | None = None) -> Outcome:
    """Return the outcome for one line of our own."""
    return Outcome(line, data or {}, body=Body(own(line), data=data or {}))


def failure(message: str, **data: Json) -> Outcome:
    """Return the outcome of a tool that failed.

    What follows the first line of the message is found text.
    """
    line, _, text = message.partition("\n")
    body = Body(own(line, text), data=data)
    return Outcome(message, data, Status.ERROR, message, body)


def question(text: str) -> Outcome:
    """Return the outcome of a call that needs the person's consent to `text`."""
    return Outcome(text=text, status=Status.NEEDS_CONFIRMATION, message=text)


@dataclass(frozen=True)
class Hint:
    """The part of a tool's description that states what the budget allows.

    "List project files." becomes "List project files. Current budget allows ~200 files with
    metadata.", and the parameter that limits the count suggests the same number.
    """

    noun: str
    tokens_each: int
    parameter: str | None = None


class Tool(ABC):
    """A tool of the catalog: one file with one instance named `TOOL`."""

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: ClassVar[type[Arguments]] = Arguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    """Whether running it twice differs from running it once."""
    hint: ClassVar[Hint | None] = None

    @abstractmethod
    def run(self, arguments: Any, context: ToolContext) -> Outcome:
        """Do the work."""

    @abstractmethod
    def compress(self, arguments: Any, outcome: Outcome) -> str:
        """Return the summary of a result, at most 500 characters."""


@runtime_checkable
class Resumable(Protocol):
    """A tool that stores only the served part and can continue.

    Its bodies say in `more` where what follows them begins.
    """

    def resume(self, more: JsonObject, context: ToolContext) -> Outcome:
        """Serve what follows a stored result."""


@runtime_checkable
class Discreet(Protocol):
    """A tool with arguments that must not be stored as given."""

    def kept_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments that may be stored."""
