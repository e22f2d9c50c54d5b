"""The tool `vcs_status`: the state of the working tree."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from efrit_budget.errors import JsonObject
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.git.status import State, StatusEntry, TreeState, read_status
from efrit_budget.project.paths import shown_name
from efrit_budget.results.body import Body, of_items, preceded
from efrit_budget.results.marks import own
from efrit_budget.tools.base import Arguments, Hint, Outcome, ToolContext
from efrit_budget.tools.git_tool import GitTool

HEADERS = {
    State.CONFLICT: "Conflicts:",
    State.STAGED: "Staged:",
    State.NOT_STAGED: "Not staged:",
    State.UNTRACKED: "Untracked:",
}
CONFLICTS = {
    "UU": "both modified",
    "AA": "both added",
    "DD": "both deleted",
    "AU": "added by us",
    "UA": "added by them",
    "DU": "deleted by us",
    "UD": "deleted by them",
}
SHORT_HASH = 10
CUT = "There are more files than are listed."


class VcsStatus(GitTool):
    """Lists branch, conflicts, and staged, changed and untracked files."""

    name = "vcs_status"
    description = (
        "Git status: branch, what is under way, conflicts, staged, changed and untracked files."
    )
    hint = Hint("files", tokens_each=12)

    def look(self, _arguments: Arguments, _: ToolContext, repository: Repository) -> Outcome:
        """Return the state of the branch, and the files by state."""
        tree = read_status(repository)
        notes = (CUT,) if tree.cut else ()
        return Outcome(body=_body(repository, tree), notes=notes)

    def compress(self, _arguments: Arguments, outcome: Outcome) -> str:
        """Return the branch, the counts by state and the first files."""
        body = outcome.whole
        counts = ", ".join(f"{body.data['counts'][state]} {state}" for state in body.data["counts"])
        names = ", ".join(dict.fromkeys(entry["path"] for entry in body.item_data))
        text = f"Status: {body.data['head']}. {counts or 'Clean'}{': ' if names else ''}{names}"
        return text if len(text) <= 500 else f"{text[:496]} ..."


def _body(repository: Repository, tree: TreeState) -> Body:
    head = "; ".join(_head(repository, tree))
    by_state = {state: [e for e in tree.entries if e.state is state] for state in State}
    groups = [
        (own(HEADERS[state]), [(_line(entry), _facts(entry)) for entry in entries])
        for state, entries in by_state.items()
    ]
    ahead, behind = tree.ahead_behind
    counts = Counter(str(entry.state) for entry in tree.entries)
    body = of_items(
        "files",
        groups,
        head=head,
        branch=tree.branch,
        commit=tree.commit,
        upstream=tree.facts.get("branch.upstream"),
        ahead=ahead,
        behind=behind,
        under_way=repository.folder.under_way,
        counts=dict(counts),
    )
    body = preceded(f"{own(head)}\n", body)
    return (
        body
        if tree.entries
        else replace(body, text=f"{own(head)}\n{own('Nothing has changed.')}\n")
    )


def _head(repository: Repository, tree: TreeState) -> Iterator[str]:
    """Yield facts on the branch and the repository, each a few words."""
    branch = shown_name(tree.branch) if tree.branch else None
    if tree.commit is None:
        yield f"On {branch}, no commits yet"
    else:
        yield f"On {branch}" if branch else f"Detached at {tree.commit[:SHORT_HASH]}"
    yield from _upstream(tree)
    if repository.folder.under_way:
        yield f"{repository.folder.under_way} is under way"
    if "stash" in tree.facts:
        yield f"{tree.facts['stash']} stashed"
    if repository.folder.is_shallow:
        yield "shallow clone"
    if repository.folder.shared != repository.folder.own:
        yield "linked working tree"


def _upstream(tree: TreeState) -> Iterator[str]:
    upstream = tree.facts.get("branch.upstream")
    if upstream is None:
        return
    ahead, behind = tree.ahead_behind
    if "branch.ab" not in tree.facts:
        yield f"its upstream {upstream} is gone"
    elif ahead or behind:
        yield f"{ahead} ahead of {upstream}, {behind} behind"
    else:
        yield f"level with {upstream}"


def _line(entry: StatusEntry) -> str:
    name = shown_name(entry.path)
    old = f"{shown_name(entry.old_path)} → " if entry.old_path is not None else ""
    status = f"{CONFLICTS.get(entry.status, entry.status)}: " if entry.state == "conflict" else ""
    letter = f"{entry.status} " if entry.status and not status else ""
    note = " (submodule)" if entry.is_submodule else ""
    note += " (its filter was not run)" if entry.is_unfiltered else ""
    return f"{status}{letter}{old}{name}{note}"


def _facts(entry: StatusEntry) -> JsonObject:
    facts: JsonObject = {"path": shown_name(entry.path), "state": str(entry.state)}
    if entry.status:
        facts["status"] = entry.status
    if entry.old_path is not None:
        facts["old_path"] = shown_name(entry.old_path)
    return facts


TOOL = VcsStatus()
