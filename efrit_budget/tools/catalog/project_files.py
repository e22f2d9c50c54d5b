"""The tool `project_files`: lists the files of the project."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.project import Located
from efrit_budget.project.search.globs import GlobError, Globs
from efrit_budget.project.search.listing import Listing, files_of
from efrit_budget.project.search.ripgrep import UnfinishedError
from efrit_budget.results.body import Body
from efrit_budget.tools.base import Arguments, Hint, Outcome, Tool, ToolContext, failure
from efrit_budget.tools.layout import files
from efrit_budget.tools.layout.files import Tree
from efrit_budget.tools.sizes import counted

MOST_TYPES = 8
MOST_DELETED_SHOWN = 3
NO_ENDING = "no ending"


class ProjectFilesArguments(Arguments):
    """The arguments of `project_files`."""

    path: str = "."
    pattern: Annotated[str | None, Field(description="*.py, src/**, !*.md")] = None
    kind: Literal["all", "tracked", "untracked", "folders"] = "all"
    max_files: Annotated[int | None, Field(ge=1, description="Limit files returned")] = None
    depth: Annotated[int | None, Field(ge=1)] = None
    include_hidden: bool = True
    sort: Literal["path", "recent", "size"] = "path"
    metadata: bool = False


class ProjectFiles(Tool):
    """Lists files with git, or with rg outside a repository."""

    name = "project_files"
    description = (
        "List project files: each folder once, the names in it below. What git ignores is left out."
    )
    arguments = ProjectFilesArguments
    hint = Hint("files with metadata", 40, "max_files")

    def run(self, arguments: ProjectFilesArguments, context: ToolContext) -> Outcome:
        """List the files that match the arguments."""
        glob = None if arguments.pattern is None else Globs(arguments.pattern)
        try:
            located = context.project.locate(arguments.path)
            if glob is not None:
                glob.check()
        except (OutsideError, GlobError) as error:
            return failure(f"{error.message}. Give a folder of the project, and a glob like *.py.")
        if ".git" in located.path.relative_to(located.root).parts:
            return failure(".git holds git's own files, which are not listed.")
        if not located.path.is_dir():
            return _no_folder_failure(located)
        try:
            listing = files_of(located.path, context.find_rg(), context.cancellation)
        except (UnfinishedError, OSError) as error:
            return _listing_failure(located, error)
        if not listing.by_git and arguments.kind in ("tracked", "untracked"):
            return failure("kind tracked or untracked needs a git repository; use all.")
        return _Listed(arguments, located, listing, glob, context).outcome()

    def compress(self, _arguments: ProjectFilesArguments, outcome: Outcome) -> str:
        """Return the number of listed files, and the most frequent extensions."""
        body = outcome.whole
        types = ", ".join(f"{name} ({count:,})" for name, count in body.data["types"].items())
        where = body.data["path"]
        ending = f" Types: {types}" if types else ""
        return f"Listed {body.whole_count:,} {body.noun} in {where}.{ending}"[:500]


def _listing_failure(located: Located, error: UnfinishedError | OSError) -> Outcome:
    if isinstance(error, UnfinishedError):
        return failure(error.message)
    return failure(f"{located.shown} cannot be listed: {error.strerror}. Try a folder in it.")


def _no_folder_failure(located: Located) -> Outcome:
    if not os.path.lexists(located.path):
        return failure(f"{located.shown} does not exist; project_files without path lists all.")
    return failure(f"{located.shown} is not a folder; file_info and read_file tell of files.")


@dataclass(frozen=True)
class _Listed:
    """The listing of a folder, and the arguments that say how to lay it out."""

    arguments: ProjectFilesArguments
    located: Located
    listing: Listing
    glob: Globs | None
    context: ToolContext

    def outcome(self) -> Outcome:
        """Return the outcome with the listed files and the notes on them."""
        tree = self._select()
        types = files.types(tree)
        body = self._body(tree, {"path": self.located.shown, "types": _most_frequent(types)})
        notes = tuple(self._notes(types))
        return Outcome(body=replace(body, most=self.arguments.max_files), notes=notes)

    @property
    def _top(self) -> str:
        return "" if self.located.name == "." else f"{self.located.name}/"

    def _select(self) -> Tree:
        """Return the files that the arguments select, by folder."""
        listing = self.listing
        halves = {"tracked": (listing.tracked, {}), "untracked": ({}, listing.untracked)}
        both = (listing.tracked, listing.untracked)
        tree = _join(*halves.get(self.arguments.kind, both), self._top)
        if not self.arguments.include_hidden:
            tree = files.kept(tree, lambda path: "/." not in f"/{path}")
        if self.glob is not None:
            tree = files.kept(tree, self.glob.takes)
        return tree

    def _body(self, tree: Tree, data: JsonObject) -> Body:
        arguments, root = self.arguments, self.context.root
        if arguments.kind == "folders":
            return files.folders_alone(tree, data)
        if arguments.depth is not None and (arguments.metadata or arguments.sort != "path"):
            tree = files.near(tree, self._top, arguments.depth)
        if arguments.sort != "path":
            return files.in_order(tree, root, arguments.sort, data)
        if arguments.depth is not None and not arguments.metadata:
            return files.as_deep_as(tree, self._top, arguments.depth, data)
        if arguments.metadata:
            return files.by_folder_with_facts(tree, root, data)
        return files.by_folder(tree, data)

    def _notes(self, types: Counter[str]) -> Iterator[str]:
        if types:
            yield f"{counted(types.total(), 'file')}: {_count_text(types)}"
        else:
            yield self._nothing()
        if self.listing.deleted and self.arguments.kind != "untracked":
            names = [shown_name(self._top + name) for name in self.listing.deleted]
            more = len(names) - MOST_DELETED_SHOWN
            others = f", {more:,} more" if more > 0 else ""
            yield f"Tracked, but not there: {', '.join(names[:MOST_DELETED_SHOWN])}{others}"
        if self.listing.problem:
            yield f"Listed without git: {self.listing.problem}"

    def _nothing(self) -> str:
        """Return the note on an empty listing."""
        listing = self.listing
        trees = (listing.tracked, listing.untracked)
        there = counted(sum(len(names) for tree in trees for names in tree.values()), "file")
        filters = {"pattern": self.arguments.pattern, "kind": self.arguments.kind}
        description = ", ".join(
            f"{name} {value}" for name, value in filters.items() if value != "all" and value
        )
        limits = f" for {description}" if description else ""
        by = "git ignores" if listing.by_git else ".gitignore and .ignore files name"
        return f"No files in {self.located.shown}{limits}; {there} there, apart from what {by}."


def _join(tracked: Tree, untracked: Tree, top: str) -> Tree:
    joined: dict[str, Sequence[str]] = {
        f"{top}{folder}": names for folder, names in tracked.items()
    }
    for folder, names in untracked.items():
        joined[top + folder] = [*joined.get(top + folder, ()), *names]
    return joined


def _most_frequent(types: Counter[str]) -> dict[str, int]:
    """Return the most frequent extensions with their numbers of files."""
    ordered = sorted(types.items(), key=lambda entry: (-entry[1], not entry[0], entry[0]))
    return {shown_name(name) if name else NO_ENDING: n for name, n in ordered[:MOST_TYPES]}


def _count_text(types: Counter[str]) -> str:
    first = _most_frequent(types)
    rest = types.total() - sum(first.values())
    text = ", ".join(f"{name} {count:,}" for name, count in first.items())
    return text + (f", others {rest:,}" if rest else "")


TOOL = ProjectFiles()
