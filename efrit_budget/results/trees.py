"""Make bodies of many paths: each folder stands once, with its names below."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import add

from efrit_budget.errors import Json
from efrit_budget.results.body import Body


def of_tree(
    noun: str,
    tree: Mapping[str, Sequence[str]],
    shown: Callable[[str], str],
    data: dict[str, Json],
) -> Body:
    """Return a body of each folder and the names in it.

    `shown` returns a path as text, in quotes if needed. An item is then the whole path in quotes;
    so it is for a name that begins with a blank or a quote. All other items are names.
    """
    lines: list[str] = []
    heads: list[int] = []
    for folder in sorted(tree):
        header = shown(folder)
        if folder:
            heads.append(len(lines))
            lines.append(header)
        names = sorted(tree[folder])
        if (header == folder or not folder) and _are_plain(names):
            lines += names
        else:
            lines += [_name(folder, name, shown) for name in names]
    if not lines:
        return Body("", noun, data={**data, noun: []})
    return replace(of_lines(noun, lines, heads, data), tree=True)


def of_lines(noun: str, lines: list[str], heads: list[int], data: dict[str, Json]) -> Body:
    """Return a body of lines; those whose indexes are in `heads` are headers, the others items."""
    offsets = list(map(add, accumulate(map(len, lines), initial=0), range(len(lines))))
    items: list[int] = []
    last = 0
    for head in heads:
        items += offsets[last:head]
        last = head + 1
    items += offsets[last:]
    headers = tuple(offsets[head] for head in heads)
    return Body("\n".join(lines) + "\n", noun, tuple(items), headers, data)


def _are_plain(names: list[str]) -> bool:
    """Return whether no name needs quoting, checked all at once."""
    text = "/" + "/".join(names)
    plain = text.isascii() and text.isprintable()
    return plain and not any(sign in text for sign in ('"', "\\", "/ "))


def _name(folder: str, name: str, shown: Callable[[str], str]) -> str:
    path = shown(folder + name)
    if path.startswith('"') or name[0] not in ' "':
        return path if path.startswith('"') else name
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
