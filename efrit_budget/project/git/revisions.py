"""Resolve revisions to commits.

Git is given full hashes only: no name can be taken for an option, for a file in a commit, or
for something that is not a commit.
"""

from collections.abc import Sequence

from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.repository import Repository

EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The hash of the empty tree, by the length of hashes."""
HELP = "Give a branch, tag, hash, HEAD~2 and the like; vcs_log lists commits."
MOST_SHOWN = 80


def commit(repository: Repository, revision: str) -> str:
    """Return the commit hash of a revision; raise if it is unknown."""
    found = find_commits(repository, [revision])[0]
    if found is None:
        raise _unknown(repository, revision)
    return found


def find_commits(repository: Repository, revisions: Sequence[str]) -> list[str | None]:
    """Return the commit hash of each revision, None in the place of an unknown one."""
    for revision in revisions:
        _check(revision)
    lines = "".join(f"{revision}^{{commit}}\n" for revision in revisions)
    finished = repository.run(
        "cat-file", "--batch-check", given=lines.encode("utf-8", "surrogateescape")
    )
    answers = finished.stdout.decode("utf-8", "replace").splitlines()
    if len(answers) != len(revisions):
        raise GitError(f"the revision cannot be used. {HELP}")
    parts = (answer.partition(" ") for answer in answers)
    return [name if kind.startswith("commit ") else None for name, _, kind in parts]


def _check(revision: str) -> None:
    if revision.startswith("-"):
        raise GitError(f"{_quote(revision)} begins with '-', as no revision does. {HELP}")
    if not revision.strip() or any(sign in revision for sign in "\0\n\r"):
        raise GitError(f"{_quote(revision)} is not a revision. {HELP}")


def difference(repository: Repository, revision: str) -> list[str]:
    """Return the arguments that name the commits to be compared by git diff for a revision.

    A..B, A...B (changes of B since it parted from A) and A^! (changes of A itself) are revisions.
    """
    if revision.endswith("^!"):
        name = revision.removesuffix("^!")
        new = commit(repository, name)
        old = find_commits(repository, [f"{new}^1"])[0]
        return [old or EMPTY_TREES[len(new)], new]
    dots = "..." if "..." in revision else ".."
    if dots not in revision:
        return [commit(repository, revision)]
    names = [name.strip() or "HEAD" for name in revision.split(dots, 1)]
    found = find_commits(repository, names)
    for name, each in zip(names, found, strict=True):
        if each is None:
            raise _unknown(repository, name)
    both = [each for each in found if each is not None]
    return ["...".join(both)] if dots == "..." else both


def log_range(repository: Repository, revision: str) -> list[str]:
    """Return the arguments that name the commits of a revision, or of a range, to git log."""
    if ".." not in revision:
        return [commit(repository, revision)]
    names = difference(repository, revision)
    return ["..".join(names)]


def _unknown(repository: Repository, revision: str) -> GitError:
    if revision.startswith("HEAD") and not find_commits(repository, ["HEAD"])[0]:
        return GitError("the repository has no commits yet, so there is no revision to look at")
    if repository.folder.is_shallow:
        return GitError(
            f"there is no commit {_quote(revision)} here; the clone is shallow, so older ones are "
            f"missing. {HELP}"
        )
    advice = " Two revisions are given as A..B." if " " in revision.strip() else ""
    return GitError(f"there is no commit {_quote(revision)}.{advice} {HELP}")


def _quote(revision: str) -> str:
    plain = revision.encode("utf-8", "replace").decode()
    return repr(plain if len(plain) <= MOST_SHOWN else f"{plain[:MOST_SHOWN]}…")
