"""Show a file or folder as it is in a commit."""

from efrit_budget.errors import Json
from efrit_budget.project.git.commit_files import (
    COMMIT,
    FOLDER,
    LINK_MODE,
    PastFile,
    past_content,
    past_entry,
    past_folder,
)
from efrit_budget.project.git.names import name_from_root
from efrit_budget.project.git.repository import MOST_BYTES, Repository
from efrit_budget.project.git.revisions import commit
from efrit_budget.project.paths import same_form, shown_name
from efrit_budget.results.body import Body, of_items
from efrit_budget.results.marks import own, quote
from efrit_budget.tools.base import Outcome, ToolContext, answer, failure, question
from efrit_budget.tools.git_tool import asks_for_secret
from efrit_budget.tools.layout.diffs import LARGE_FILE_POINTER

SHORT_HASH = 10


def past_outcome(context: ToolContext, repository: Repository, revision: str, path: str) -> Outcome:
    """Return the outcome with the file or folder at a path in a commit, or why there is none."""
    found = commit(repository, revision)
    name = name_from_root(context.project, repository, path or ".")
    if name == ".":
        return _folder(past_folder(repository, found, ""), same_form(revision), "")
    if asks_for_secret(context, name):
        return question(f"{shown_name(name)} usually holds secrets. Show it as it was?")
    entry = past_entry(repository, found, name)
    if entry is None:
        return failure(
            f"there is no {shown_name(name)} in {same_form(revision)}. vcs_log with this path "
            "names the commits that changed it."
        )
    if entry.kind == FOLDER:
        return _folder(past_folder(repository, found, name), same_form(revision), f"{name}/")
    return _file(repository, entry, found)


def _folder(entries: list[PastFile], revision: str, prefix: str) -> Outcome:
    items: list[tuple[str, Json]] = [
        (
            _entry_line(entry, prefix),
            {"path": shown_name(entry.name), "kind": entry.kind, "size": entry.size},
        )
        for entry in entries
    ]
    header = own(f"{shown_name(prefix or './')} at {revision}:")
    return Outcome(body=of_items("entries", [(header, items)]))


def _entry_line(entry: PastFile, prefix: str) -> str:
    name = shown_name(entry.name.removeprefix(prefix) + ("/" if entry.kind == FOLDER else ""))
    if entry.kind == COMMIT:
        return f"{name} (submodule at {entry.hash[:SHORT_HASH]})"
    if entry.mode == LINK_MODE:
        return f"{name} (link)"
    return name if entry.kind == FOLDER else f"{name} {entry.size:,} bytes"


def _file(repository: Repository, entry: PastFile, found: str) -> Outcome:
    """Return a file's text with a note on its size, or one line if it is no text."""
    name = shown_name(entry.name)
    at = f"at {found[:SHORT_HASH]}"
    data: dict[str, Json] = {"path": name, "commit": found, "size": entry.size}
    if entry.kind == COMMIT:
        return answer(f"{name} {at}: a submodule, at its commit {entry.hash}.", data)
    content = past_content(repository, entry)
    if entry.mode == LINK_MODE:
        return answer(f"{name} {at}: a link to {content.decode('utf-8', 'replace')!r}.", data)
    if b"\0" in content:
        return answer(f"{name} {at}: binary, {entry.size:,} bytes.", data | {"binary": True})
    if not content:
        return answer(f"{name} {at}: empty.", data)
    note = f"{name} {at}, {entry.size:,} bytes{_details(content, entry.size)}."
    text = content.replace(b"\r\n", b"\n").decode("utf-8", "replace")
    return Outcome(body=Body(quote(text), data=data), notes=(note,))


def _details(content: bytes, size: int) -> str:
    details = ""
    if content.startswith(LARGE_FILE_POINTER):
        details += ", a pointer to a large file (LFS), not its content"
    if b"\r\n" in content:
        details += ", CRLF" if content.count(b"\r\n") == content.count(b"\n") else ", partly CRLF"
    if size > MOST_BYTES:
        details += f", of which the first {MOST_BYTES:,} were taken"
    return details
