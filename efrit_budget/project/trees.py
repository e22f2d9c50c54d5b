"""Paths by the folders they are in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

Tree = dict[str, list[str]]
"""The names of files by their folder; a folder ends in a slash, the root is nothing."""


def grouped(names: Iterable[str]) -> Tree:
    """The names by their folder; a path that ends in a slash is a name that does."""
    tree: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        folder, slash, base = name.rpartition("/")
        if base:
            tree[folder + slash].append(base)
        else:
            folder, slash, base = folder.rpartition("/")
            tree[folder + slash].append(base + "/")
    return dict(tree)
