"""Group paths by folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

Tree = dict[str, list[str]]
"""The names of files by their folder; a folder ends in a slash, the root is nothing."""


def grouped(names: Iterable[str]) -> Tree:
    """Return the names by folder; a trailing slash belongs to the name."""
    tree: defaultdict[str, list[str]] = defaultdict(list)
    last: str | None = None
    for name in names:
        cut = name.rfind("/") + 1
        folder = name[:cut]
        if folder != last:  # names come in runs of one folder
            add = tree[folder].append
            last = folder
        add(name[cut:])
    for folder in [folder for folder, bases in tree.items() if "" in bases]:
        _give_up(tree, folder)
    return dict(tree)


def _give_up(tree: defaultdict[str, list[str]], folder: str) -> None:
    """Make a folder that is named itself a name in the one that holds it."""
    tree[folder].remove("")
    if not tree[folder]:
        del tree[folder]
    cut = folder.rfind("/", 0, -1) + 1
    tree[folder[:cut]].append(folder[cut:])
