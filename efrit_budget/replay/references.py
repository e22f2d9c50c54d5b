"""Other ways to keep a session within its window, on the same recording."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field

from efrit_budget.replay.blocks import SentBlock

PLACEHOLDER = "[Old tool result cleared to save space]"


@dataclass
class Entry:
    """A block in the window of a session, and what may replace it."""

    block: SentBlock
    cleared: SentBlock | None = None
    """The block that replaces it once it is cleared; None if it cannot be cleared."""
    is_result: bool = False
    is_thinking: bool = False

    def clear(self) -> None:
        """Replace the block."""
        if self.cleared is not None:
            self.block, self.cleared = self.cleared, None

    @property
    def freed(self) -> int:
        """The tokens that clearing frees."""
        return 0 if self.cleared is None else max(0, self.block.tokens - self.cleared.tokens)


@dataclass
class Past:
    """The window before a request: system text and tools, and the exchanges since then."""

    prefix: list[SentBlock]
    exchanges: list[list[Entry]] = field(default_factory=list)
    extra_output: int = 0
    """The tokens that a model wrote to make room, in a request of its own."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, the oldest first."""
        return (entry for exchange in self.exchanges for entry in exchange)

    def blocks(self) -> list[SentBlock]:
        """Return the blocks of the next request."""
        return [*self.prefix, *(entry.block for entry in self.entries())]

    def copy(self) -> Past:
        """Return a copy whose entries can be changed."""
        return Past(self.prefix, [list(map(copy, exchange)) for exchange in self.exchanges])

    @property
    def total(self) -> int:
        """The tokens of the next request."""
        return sum(block.tokens for block in self.blocks())


class Reference:
    """No management: everything stays."""

    name = "unmanaged"

    def make_room(self, past: Past) -> bool:
        """Change the window before a request; return whether anything left it."""
        del past
        return False


@dataclass
class ApiClearing(Reference):
    """The API's own clearing: above the trigger, all but the latest results are cleared."""

    trigger: int
    keep: int = 3
    clear_at_least: int = 0
    inputs: bool = False
    """Whether the inputs of the tool uses are cleared as well."""
    name: str = "API clearing"

    def make_room(self, past: Past) -> bool:
        """Clear the old results if that frees enough tokens."""
        if past.total <= self.trigger:
            return False
        entries = [entry for entry in past.entries() if entry.cleared is not None]
        results = [entry for entry in entries if entry.is_result]
        uses = [entry for entry in entries if not entry.is_result] if self.inputs else []
        old = results[: max(0, len(results) - self.keep)] + uses[: max(0, len(uses) - self.keep)]
        freed = sum(entry.freed for entry in old)
        if not freed or freed < self.clear_at_least:
            return False
        for entry in old:
            entry.clear()
        return True


@dataclass
class Summary(Reference):
    """Compaction: above the trigger, a model summarizes everything before the latest exchange."""

    trigger: int
    summary: SentBlock
    name: str = "summary"

    def make_room(self, past: Past) -> bool:
        """Replace all exchanges but the latest by the summary."""
        if past.total <= self.trigger or len(past.exchanges) < 2:
            return False
        past.exchanges = [[Entry(self.summary)], past.exchanges[-1]]
        past.extra_output += self.summary.tokens
        return True


@dataclass
class DropOldest(Reference):
    """When the prompt is too large, the oldest exchanges are dropped until it fits."""

    limit: int
    name: str = "drop oldest"

    def make_room(self, past: Past) -> bool:
        """Drop the oldest exchanges."""
        dropped = False
        while past.total > self.limit and len(past.exchanges) > 1:
            past.exchanges.pop(0)
            dropped = True
        return dropped
