"""Name the files whose names are like one that does not exist."""

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
    near = _near_files(path, context)
    names = f"near names: {', '.join(map(shown_name, near))}; " if near else ""
    return failure(f"{same_form(path)}: no such file; {names}project_files finds names", near=near)


def _near_files(path: str, context: ToolContext) -> list[str]:
    """Return the files with the same name elsewhere; if there is none, with nearly the same."""
    try:
        listing = files_of(context.root, context.find_rg(), context.cancellation)
    except (UnfinishedError, OSError):
        return []
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for tree in (listing.tracked, listing.untracked):
        for folder, names in tree.items():
            for name in names:
                folders[name.casefold()].append(folder + name)
    base = path.rpartition("/")[2].casefold()
    alike = [base] if base in folders else get_close_matches(base, folders, MOST_NAMED, LIKENESS)
    return list(islice((file for name in alike for file in sorted(folders[name])), MOST_NAMED))
