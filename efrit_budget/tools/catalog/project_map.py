"""The tool `project_map`: the most-referenced definitions of a folder, within a budget."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from efrit_budget.budget.plain import dearest
from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.project import Located
from efrit_budget.project.search.globs import GlobError, Globs
from efrit_budget.project.search.listing import files_of
from efrit_budget.project.search.ripgrep import UnfinishedError
from efrit_budget.project.text import ctags
from efrit_budget.project.text.symbol_index import Definition, Ranking, Wanted, rank
from efrit_budget.results.body import Body, Member, of_items
from efrit_budget.results.footer import LONGEST_FOOTER, LONGEST_NAVIGATION
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext, failure
from efrit_budget.tools.sizes import counted

DEFAULT_BUDGET = 2000
MOST_SYMBOLS = 2000
"""The most definitions that the pages of one map have."""
LEAST_TOKENS = 4
"""The least tokens of a definition's line."""
HINT = "symbols. A map of a folder (path) shows more of it."
Group = tuple[str, list[Member]]


class ProjectMapArguments(Arguments):
    """The arguments of `project_map`."""

    path: str = "."
    pattern: str | None = None


class ProjectMap(Tool):
    """Counts in how many files the name of each definition stands, and shows the first ones."""

    name = "project_map"
    description = (
        "Definitions in a folder, by file, first those that most other files use (+N), in"
        f" max_tokens (default {DEFAULT_BUDGET})."
    )
    arguments = ProjectMapArguments

    def run(self, arguments: ProjectMapArguments, context: ToolContext) -> Outcome:
        """Return the definitions that fit, by file; more of them on further pages."""
        program = ctags.find(context.cancellation)
        if program is None:
            return failure(f"{self.name} {ctags.INSTALL}")
        try:
            located = context.project.locate(arguments.path)
            if not located.path.is_dir():
                return failure(f"{located.shown} is not a folder; list_symbols maps a file.")
            wanted = _wanted(located, arguments.pattern, context)
            ranking, too_large = rank(program, wanted, MOST_SYMBOLS, context.cancellation)
        except (OutsideError, GlobError, UnfinishedError, ctags.CtagsError) as error:
            return failure(error.message)
        except OSError as error:
            return failure(f"{arguments.path} cannot be listed: {error.strerror}.")
        files = counted(len(wanted.names), "file")
        if not ranking.total:
            return failure(f"No definitions in {files} of {located.shown} that ctags knows.")
        budget = min(context.allowance, arguments.max_tokens or DEFAULT_BUDGET)
        body = _body(located, ranking, budget, context)
        notes = [f"{counted(too_large, 'large file')} left out."] if too_large else []
        return Outcome(body=body, notes=tuple(notes))

    def compress(self, _arguments: ProjectMapArguments, outcome: Outcome) -> str:
        """Return the number of definitions, and the most-referenced ones."""
        body = outcome.whole
        best = sorted(body.item_data, key=lambda one: -int(one["references"]))
        names = "; ".join(f"{one['name']} ({one['path']}:{one['line']})" for one in best[:10])
        return f"Mapped {body.whole_count:,} symbols of {body.data['path']}: {names}"[:500]


def _wanted(located: Located, pattern: str | None, context: ToolContext) -> Wanted:
    """Return the files of a folder that match the pattern, but for those that hold secrets."""
    glob = None if pattern is None else Globs(pattern)
    if glob is not None:
        glob.check()
    listing = files_of(located.path, context.find_rg(), context.cancellation)
    trees = (listing.tracked, listing.untracked)
    listed = chain.from_iterable(
        (folder + name for name in names) for tree in trees for folder, names in tree.items()
    )
    top = "" if located.name == "." else f"{located.name}/"
    holds = context.project.secrets.holds
    names = [
        name
        for name in listed
        if not holds(top + name) and (glob is None or glob.takes(top + name))
    ]
    buffers, folder = context.project.buffers, located.path
    here = [name for name in names if folder / name in buffers] if buffers else []
    unsaved = {name: buffers[folder / name] for name in here}
    return Wanted(folder, sorted(names), unsaved)


def _body(located: Located, ranking: Ranking, budget: int, context: ToolContext) -> Body:
    """Return a body whose first page has the best definitions that fit the budget."""
    top = "" if located.name == "." else f"{located.name}/"
    price = dearest(context.cost)
    room = budget - price(f"{LONGEST_NAVIGATION}\n{LONGEST_FOOTER}")

    def fits(count: int) -> bool:
        text = of_items("symbols", _groups(top, ranking.best[:count])).text
        return price(text) <= room

    count = _most(fits, min(len(ranking.best), max(1, room // LEAST_TOKENS)))
    first = _groups(top, ranking.best[:count])
    body = of_items("symbols", [*first, *_groups(top, ranking.best[count:])], path=located.shown)
    opening = len(of_items("symbols", first).text)
    return replace(body, opening=opening, total=ranking.total, hint=HINT)


def _most(fits: Callable[[int], bool], largest: int) -> int:
    """Return the largest number from 1 to `largest` that fits, or 1."""
    least = 1
    while least < largest:
        middle = (least + largest + 1) // 2
        if fits(middle):
            least = middle
        else:
            largest = middle - 1
    return least


def _groups(top: str, definitions: Sequence[Definition]) -> list[Group]:
    """Return definitions by file, the file of the best first, in the order of lines."""
    files: dict[str, list[Definition]] = {}
    for one in definitions:
        files.setdefault(one.file, []).append(one)
    return [
        (
            shown_name(top + file),
            [(_line(one), _fact(top, one)) for one in sorted(those, key=lambda one: one.line)],
        )
        for file, those in files.items()
    ]


def _line(one: Definition) -> str:
    references = f" +{one.references:,}" if one.references else ""
    return f"{one.line} {one.kind} {one.name}{references}"


def _fact(top: str, one: Definition) -> JsonObject:
    return {
        "path": shown_name(top + one.file),
        "line": one.line,
        "kind": one.kind,
        "name": one.name,
        "references": one.references,
    }


TOOL = ProjectMap()
