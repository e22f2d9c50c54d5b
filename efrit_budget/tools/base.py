"""The interface of tools: arguments, context and outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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
"""The tokens that a result's handle and footer need."""


MaxTokens = Annotated[int, Field(ge=LEAST_MAX_TOKENS, le=1_000_000)]


class Policy(StrEnum):
    """The default decision of the client before it runs a tool."""

    ALLOW = "allow"
    ASK = "ask"


class Status(StrEnum):
    """The ways in which a tool call ends."""

    SUCCESS = "success"
    ERROR = "error"
    NEEDS_CONFIRMATION = "needs_confirmation"


class Arguments(BaseModel):
    """The base of all tool arguments; numeric strings are accepted, unknown names are not.

    The fields here are arguments of every tool; the system prompt explains them once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    max_tokens: MaxTokens | None = None
    continuation_token: str | None = None


class Reporter(Protocol):
    """Receives the progress of a long tool call."""

    def __call__(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Report a message, and how many steps or bytes of the total are done."""

    def shows(self, output: Callable[[], str]) -> None:
        """Have the newest output, which `output` returns, shown while the tool runs."""


class _Nobody(Reporter):
    """A reporter that does nothing."""


class Results(Protocol):
    """The stored results and the work log of the current session."""

    def body(self, handle: str) -> Body:
        """Return the body of the result (r7) or turn (t7) with this handle; raise if unknown."""

    def listing(self) -> Body:
        """Return the work log, one line per tool call, oldest first."""

    def as_stored(self, handle: str) -> Stored | None:
        """Return the beginning of the stored result with this handle, or None for a turn."""


@dataclass(frozen=True)
class Stored:
    """A place in a stored result: the number of the result, and an offset in its text."""

    number: int
    offset: int = 0


@dataclass(frozen=True)
class Origin:
    """The project and session that an observation comes from."""

    project: str
    """The name of the project's folder."""
    session: str


@dataclass(frozen=True)
class ToolContext:
    """Everything that a tool may use: it does not get the session."""

    project: Project
    allowance: int
    """The tokens that the first page of the result may take."""
    cost: Callable[[str], int]
    """Returns the calibrated estimate of the tokens that a text takes in the window."""
    results: Results
    memory: MemoryStore
    origin: Origin
    find_rg: Callable[[], Path]
    """Returns the path of rg; raises if there is none."""
    settings: ToolSettings
    """The settings `tools.*`."""
    confirmed: bool = False
    """Whether the person has agreed to the question that the tool asked about this call."""
    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Reporter = field(default_factory=_Nobody)

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.project.root


@dataclass(frozen=True)
class Outcome:
    """The result of a tool: `text` for the model, `data` for programs.

    `text` is found text, of files or programs; lines of the tool's own are made with `answer`,
    `failure`, or a body with marks (`results/marks.py`). A result whose items are counted has a
    `body` in place of `text` and `data`; a result that is stored already has `stored`. A tool that
    fails returns an outcome with a `message` that says what to do.
    """

    text: str = ""
    data: JsonObject = field(default_factory=dict)
    status: Status = Status.SUCCESS
    message: str | None = None
    """The problem and what to do about it, or the question to the person."""
    body: Body | None = None
    stored: Stored | None = None
    notes: tuple[str, ...] = ()
    """Lines that the model gets with the first page, but that are not stored in the body."""
    budget_line: Callable[[int], str] | None = None
    """Returns the line on an answer cut to `max_tokens`, from the tokens of the delivered text."""
    images: Sequence[bytes] = ()
    """Images that belong to the result, and share the allowance with its text."""
    gist: str | None = None
    """What came of the call in a few words for the person: "exit 2"; None: the items counted."""

    @property
    def whole(self) -> Body:
        """The body to store."""
        return self.body or Body(quote(self.text), data=self.data)


def answer(line: str, data: JsonObject | None = None) -> Outcome:
    """Return the outcome whose text is one line of the tool's own, not found text."""
    return Outcome(line, data or {}, body=Body(own(line), data=data or {}))


def failure(message: str, **data: Json) -> Outcome:
    """Return the outcome of a tool that failed.

    The first line of the message is the tool's own; the rest is found text.
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

    name: str
    description: str
    arguments: ClassVar[type[Arguments]] = Arguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    """Whether running the tool twice differs from running it once."""
    hint: ClassVar[Hint | None] = None

    @abstractmethod
    def run(self, arguments: Any, context: ToolContext) -> Outcome:
        """Run the tool with parsed arguments and return its outcome."""

    @abstractmethod
    def compress(self, arguments: Any, outcome: Outcome) -> str:
        """Return the text that replaces a compressed result, at most 500 characters."""


@runtime_checkable
class Resumable(Protocol):
    """A tool whose results store only the delivered lines, and that can read on from there.

    `more` of a body says where the next part begins.
    """

    def resume(self, more: JsonObject, context: ToolContext) -> Outcome:
        """Return the part that follows a result with this `more`."""


@runtime_checkable
class Discreet(Protocol):
    """A tool with arguments that must not be stored as given."""

    def kept_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments that may be stored."""
