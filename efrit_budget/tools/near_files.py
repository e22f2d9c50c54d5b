"""Name the files and folders whose names are like one that does not exist."""

from collections import defaultdict
from difflib import get_close_matches
from itertools import islice

from efrit_budget.project.paths import same_form, shown_name
from efrit_budget.project.search.listing import files_of
from efrit_budget.project.search.ripgrep import UnfinishedError
from efrit_budget.tools.base import Outcome, ToolContext, failure

MOST_NAMED = 3
LIKENESS = 0.75


def no_file_failure(path: str, context: ToolContext) -> Outcome:
    """Return the failure that there is no such file, with the nearest names of the project."""
    near = _near_names(path, context)
    return failure(
        f"{same_form(path)}: no such file; {_listed(near)}project_files finds names", near=near
    )


def no_path_failure(path: str, context: ToolContext) -> Outcome:
    """Return the failure that nothing has this path, with the nearest files and folders."""
    near = _near_names(path, context, folders_too=True)
    return failure(
        f"{path} does not exist; {_listed(near)}project_files lists what does.", near=near
    )


def _listed(near: list[str]) -> str:
    return f"near names: {', '.join(map(shown_name, near))}; " if near else ""


def _near_names(path: str, context: ToolContext, *, folders_too: bool = False) -> list[str]:
    """Return the paths with the same name elsewhere; if there is none, with nearly the same."""
    try:
        listing = files_of(context.root, context.find_rg(), context.cancellation)
    except (UnfinishedError, OSError):
        return []
    known: defaultdict[str, set[str]] = defaultdict(set)
    for tree in (listing.tracked, listing.untracked):
        for folder, names in tree.items():
            for name in names:
                known[name.casefold()].add(folder + name)
            if folders_too and folder:
                known[_base(folder)].add(folder)
    base = _base(path)
    alike = [base] if base in known else get_close_matches(base, known, MOST_NAMED, LIKENESS)
    return list(islice((found for name in alike for found in sorted(known[name])), MOST_NAMED))


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].casefold()
