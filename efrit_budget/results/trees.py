"""Bodies of many paths: each folder once, the names in it below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from efrit_budget.errors import Json
from efrit_budget.results.body import Body


def of_tree(
    noun: str,
    tree: Mapping[str, Sequence[str]],
    shown: Callable[[str], str],
    data: dict[str, Json],
) -> Body:
    """A body of the names in each folder; a folder ends in a slash, the root is nothing.

    `shown` gives a path's form as text; one in quotes is told whole, and so is a name that
    begins with a blank, so that each item says which path it is.
    """
    lines: list[str] = []
    heads: list[int] = []
    for folder in sorted(tree):
        if folder:
            heads.append(len(lines))
            lines.append(shown(folder))
        lines += _names(folder, sorted(tree[folder]), shown)
    offsets = list(accumulate([len(line) + 1 for line in lines], initial=0))[:-1]
    text = "\n".join(lines) + "\n" if lines else ""
    headers = tuple(offsets[head] for head in heads)
    if not lines:
        return Body("", noun, data={**data, noun: []})
    return Body(text, noun, _without(offsets, heads), headers, data, tree=True)


def _without(offsets: list[int], heads: list[int]) -> tuple[int, ...]:
    """The offsets of the lines that are no headers."""
    items: list[int] = []
    last = 0
    for head in heads:
        items += offsets[last:head]
        last = head + 1
    return tuple(items + offsets[last:])


def _names(folder: str, names: list[str], shown: Callable[[str], str]) -> list[str]:
    if _is_plain(folder + "".join(names)) and not any(name[0] == " " for name in names):
        return names
    return [_name(folder, name, shown) for name in names]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def _name(folder: str, name: str, shown: Callable[[str], str]) -> str:
    path = shown(folder + name)
    if path.startswith('"'):
        return path
    return f'"{folder}\\040{name[1:]}"' if name.startswith(" ") else name
