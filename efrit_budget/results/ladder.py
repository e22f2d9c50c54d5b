"""Packing items into a budget: each falls to a shorter rendering before it is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One thing to show, from its fullest rendering down to its name."""

    forms: tuple[str, ...]


@dataclass(frozen=True)
class Packed:
    """What fitted, in order, and how many did not: shown and omitted make the whole."""

    lines: tuple[str, ...]
    tokens: int
    omitted: int
    places: tuple[int, ...]
    """Which of the items each line is."""

    @property
    def shown(self) -> int:
        """How many items stand in the lines."""
        return len(self.lines)


def pack(items: Iterable[Item], allowance: int, cost: Callable[[str], int]) -> Packed:
    """Each item in the fullest form that still fits, in the order given.

    One whose every form is too long is named with its size where that fits; packing goes on
    with the next in any case.
    """
    lines: list[str] = []
    places: list[int] = []
    spent = omitted = 0
    for place, item in enumerate(items):
        line, tokens = _fitting(_forms(item, cost), allowance - spent, cost)
        if line is None:
            omitted += 1
            continue
        lines.append(line)
        places.append(place)
        spent += tokens
    return Packed(tuple(lines), spent, omitted, tuple(places))


def _forms(item: Item, cost: Callable[[str], int]) -> Sequence[str]:
    sized = f"{item.forms[-1]} ({cost(item.forms[0]):,} tokens)"
    return (*item.forms[:-1], sized) if len(item.forms) > 1 else item.forms


def _fitting(forms: Sequence[str], left: int, cost: Callable[[str], int]) -> tuple[str | None, int]:
    for form in forms:
        tokens = cost(form + "\n")
        if tokens <= left:
            return form, tokens
    return None, 0
