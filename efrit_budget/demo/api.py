"""The parts of an API: it reads requests, and writes replies and errors, in its own form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from efrit_budget.budget.models import Model
from efrit_budget.demo.conversation import ParsedRequest
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Ids, Reply
from efrit_budget.demo.stream import Event
from efrit_budget.errors import JsonObject


@dataclass(frozen=True)
class Asked:
    """A request that an API has read and checked."""

    request: ParsedRequest
    model: Model
    sign: Callable[[str, int], str] | None = None
    """Returns the signature of the reply's thinking, given its visible text and its tokens."""
    betas: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()
    """The places of the thinking blocks that were dropped from the request."""


class Api(ABC):
    """One form of requests, replies and errors; safe to use from several threads."""

    id_header: ClassVar[str]
    """The header that carries the request's id."""
    ids: Ids
    """The form of the ids that this API makes."""
    error_messages: ClassVar[Mapping[int, str]]
    """The usual message of a scripted error, by status."""
    has_marks: ClassVar[bool]
    """True if only what a request marks is cached; else every prefix is."""

    @abstractmethod
    def check_headers(self, headers: Mapping[str, str]) -> frozenset[str]:
        """Return the betas of a request; raise if its key or another header is refused."""

    @abstractmethod
    def read(self, raw: bytes, betas: frozenset[str]) -> Asked:
        """Return the request of a body; raise if the API refuses it."""

    @abstractmethod
    def check_end(self, asked: Asked, *, is_paused: bool) -> None:
        """Raise unless a reply can follow; `is_paused` says that the last message is paused."""

    @abstractmethod
    def too_long(self, tokens: int, asked: Asked) -> ApiError:
        """Return the error for a prompt of so many tokens, more than the window has room for."""

    @abstractmethod
    def complete(self, reply: Reply, asked: Asked) -> None:
        """Add to a reply what only this API has."""

    @abstractmethod
    def body(self, reply: Reply) -> JsonObject:
        """Return the whole reply."""

    @abstractmethod
    def events(self, reply: Reply) -> Iterator[Event]:
        """Yield the events of the reply as a stream; one that `is_last` ends it early."""

    @abstractmethod
    def usage(self, reply: Reply) -> JsonObject:
        """Return the tokens of the prompt and of the reply."""

    @abstractmethod
    def error_body(self, error: ApiError) -> JsonObject:
        """Return an error as the API writes it."""
