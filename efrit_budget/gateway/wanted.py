"""The servers that a session wants, and their tools; importing this loads nothing of the SDK."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from efrit_budget.errors import JsonObject

if TYPE_CHECKING:
    from efrit_budget.gateway.configuration import ServerEntry

Report = Callable[[str, int | None, int | None], None]
"""Takes the progress of a call: a message, and how much of how much is done."""

OWN = ""
"""The name that stands for the gateway itself where tools are listed by server."""


@dataclass(frozen=True)
class Wanted:
    """The servers of a session, and which of their tools are offered in what form."""

    entries: "Sequence[ServerEntry]"
    allow: Sequence[str]
    deny: Sequence[str]
    short: bool
    call_seconds: float


@dataclass(frozen=True)
class ServedTool:
    """A tool of another server, as the model is offered it."""

    name: str
    description: str
    input_schema: JsonObject
