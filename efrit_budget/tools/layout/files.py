"""Lay out files by folder, by time or size, or as folders."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from efrit_budget.errors import Json
from efrit_budget.project.paths import shown_name
from efrit_budget.results.body import Body, of_items
from efrit_budget.results.trees import of_tree
from efrit_budget.tools.sizes import counted

Tree = Mapping[str, Sequence[str]]
"""Maps each folder, which ends in a slash (the root: empty), to the names of its files."""
Item = tuple[str, Json]
Order = Literal["path", "recent", "size"]


@dataclass(frozen=True)
class Facts:
    """The metadata of a file."""

    path: str
    size: int
    modified: float

    @property
    def line(self) -> str:
        """Size and time as the text that stands behind the file's name."""
        return f"{self.size:,} {moment(self.modified)[:16].replace('T', ' ')}"

    @property
    def data(self) -> dict[str, Json]:
        """The metadata as data for programs."""
        modified = moment(self.modified).replace("+00:00", "Z")
        return {"path": shown_name(self.path), "size": self.size, "modified": modified}


def moment(seconds: float) -> str:
    """Return a time, given in seconds, in ISO form in UTC, or as seconds if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return f"@{seconds:.0f}"


def paths(tree: Tree) -> Iterator[str]:
    """Yield every path of a tree in order."""
    for folder in sorted(tree):
        for name in sorted(tree[folder]):
            yield folder + name


def kept(tree: Tree, wanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return the tree of the paths for which `wanted` returns true."""
    smaller = {
        folder: [name for name in names if wanted(folder + name)] for folder, names in tree.items()
    }
    return {folder: names for folder, names in smaller.items() if names}


def types(tree: Tree) -> Counter[str]:
    """Return the number of files for each extension; the empty one is for names without."""
    endings = Counter([name[name.rfind(".") :] for names in tree.values() for name in names])
    bare = [ending for ending in endings if not ending.startswith(".")]
    without = sum(endings.pop(ending) for ending in bare)
    return endings + Counter({"": without})


def by_folder(tree: Tree, data: dict[str, Json]) -> Body:
    """Return the names of files below their folders as a body."""
    return of_tree("files", tree, shown_name, data)


def by_folder_with_facts(tree: Tree, root: Path, data: dict[str, Json]) -> Body:
    """Return the names of files with metadata, below their folders, as a body."""
    groups = [
        (_header(folder), [_with_facts(folder, name, root) for name in sorted(tree[folder])])
        for folder in sorted(tree)
    ]
    return of_items("files", groups, **data)


def _with_facts(folder: str, name: str, root: Path) -> Item:
    facts = _facts(root, folder + name)
    displayed = shown_name(name)
    return (f"{displayed} {facts.line}", facts.data) if facts else (displayed, _path(folder + name))


def in_order(tree: Tree, root: Path, order: Order, data: dict[str, Json]) -> Body:
    """Return the files' whole paths with metadata as a body, newest or largest first."""
    found = [facts for path in paths(tree) if (facts := _facts(root, path))]
    found.sort(key=lambda facts: -(facts.size if order == "size" else facts.modified))
    items = [(f"{shown_name(facts.path)} {facts.line}", facts.data) for facts in found]
    return of_items("files", [(None, items)], **data)


def folders_alone(tree: Tree, data: dict[str, Json]) -> Body:
    """Return the folders with their numbers of files as a body."""
    items: list[Item] = [
        (f"{_header(folder) or './'} {len(tree[folder]):,}", _folder(folder, len(tree[folder])))
        for folder in sorted(tree)
    ]
    return of_items("folders", [(None, items)], **data)


def near(tree: Tree, top: str, depth: int) -> dict[str, Sequence[str]]:
    """Return the part of a tree within `depth` levels below the folder `top`."""
    return {folder: names for folder, names in tree.items() if folder.count("/", len(top)) < depth}


def as_deep_as(tree: Tree, top: str, depth: int, data: dict[str, Json]) -> Body:
    """Return names within `depth` levels below `top`, and counts for deeper folders, as a body."""
    below: defaultdict[str, Counter[str]] = defaultdict(Counter)
    shallow = near(tree, top, depth)
    for folder in tree.keys() - shallow.keys():
        parts = folder[len(top) :].split("/")
        parent = top + "".join(f"{part}/" for part in parts[: depth - 1])
        below[parent][f"{parts[depth - 1]}/"] += len(tree[folder])
    groups = [
        (_header(at), [*_names(at, shallow.get(at, ())), *_count_lines(at, below[at])])
        for at in sorted(shallow.keys() | below.keys())
    ]
    return of_items("entries", groups, **data)


def _names(folder: str, names: Iterable[str]) -> list[Item]:
    return [(shown_name(name), _path(folder + name)) for name in sorted(names)]


def _count_lines(folder: str, counts: Counter[str]) -> list[Item]:
    return [
        (f"{shown_name(name)} ({counted(count, 'file')})", _folder(folder + name, count))
        for name, count in sorted(counts.items())
    ]


def _header(folder: str) -> str | None:
    return shown_name(folder) if folder else None


def _path(path: str) -> Json:
    return {"path": shown_name(path)}


def _folder(path: str, count: int) -> Json:
    return {"path": shown_name(path or "."), "files": count}


def _facts(root: Path, path: str) -> Facts | None:
    """Return the metadata of a file, or None if it is gone."""
    try:
        found = (root / path).lstat()
    except OSError:
        return None
    return Facts(path, found.st_size, found.st_mtime)
