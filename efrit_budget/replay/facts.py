"""Find what a reply takes up from earlier results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class NeededFacts:
    """Knows which names first occurred in a result, so that a later reply may need them."""

    _elsewhere: set[str] = field(default_factory=set)
    _in_results: set[str] = field(default_factory=set)

    def add_result(self, names: Iterable[str]) -> None:
        """Add the names of a result."""
        self._in_results.update(set(names) - self._elsewhere)

    def add_other(self, names: Iterable[str]) -> None:
        """Add the names of a user message or a reply."""
        self._elsewhere.update(set(names) - self._in_results)

    def needed_by(self, names: Iterable[str]) -> set[str]:
        """Return those of a reply's names that first occurred in a result."""
        return self._in_results.intersection(names)
