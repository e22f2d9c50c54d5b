"""Requests that are changed at one place, to compare two checks of their shape."""

from __future__ import annotations

import copy
from typing import Any

from tests.demo.running import Block

Place = tuple[Any, ...]
WRONG: list[Any] = [None, True, 7, -1.5, "", "wrong", [], ["wrong"], {}, {"type": "wrong"}]
"""Values that are wrong in most places."""


def places(value: Any, path: Place = ()) -> list[Place]:
    """Return the path of every value inside a value."""
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = list(enumerate(value)) if isinstance(value, list) else []
    found = [place for key, one in inner for place in places(one, (*path, key))]
    return [*([path] if path else []), *found]


def fields(body: Block, free: tuple[Place, ...]) -> list[Place]:
    """Return the path of every field, except below the places in `free`, which take anything."""
    return [
        path
        for path in places(body)
        if isinstance(path[-1], str) and not any(path[:-1][: len(one)] == one for one in free)
    ]


def changed(body: Block, path: Place, value: Any, *, removes: bool = False) -> Block:
    """Return a copy of a request with another value at a place, or without that place."""
    body = copy.deepcopy(body)
    holder: Any = body
    for key in path[:-1]:
        holder = holder[key]
    if removes:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return body
