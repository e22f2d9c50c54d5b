"""Describe files before they are changed: state, rights and contents."""

import os
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass

from efrit_budget.changes.change import ChangeError
from efrit_budget.changes.disk import read
from efrit_budget.changes.path_checks import check_path
from efrit_budget.changes.rows import digest
from efrit_budget.errors import JsonObject
from efrit_budget.project.project import Located, Project
from efrit_budget.project.stamps import stamp_from
from efrit_budget.project.text.coding import BINARY_BYTES, guess_coding

LOCK = ".#"
"""Stands before a file's name in the name of the link by which an Emacs locks the file."""
BILLION = 1_000_000_000


@dataclass(frozen=True)
class WantedContents:
    """The contents that a client wants."""

    most_bytes: int
    """The size of the largest file whose content is wanted."""
    known: frozenset[str]
    """The hashes of contents that the client has."""


def report(project: Project, given: str, wanted: WantedContents | None) -> JsonObject:
    """Return the check of a path with what is known of its file, and the contents if `wanted`."""
    checked = check_path(project, given)
    facts = checked.to_dict()
    if checked.located is None or checked.facts is None or not checked.is_file:
        return facts
    facts |= _file_facts(checked.located, checked.facts)
    if wanted is None or checked.problem is not None or facts["size"] > wanted.most_bytes:
        return facts
    try:
        return facts | _contents(checked.located, wanted)
    except ChangeError as error:
        return facts | {"problem": error.message.removeprefix(f"{checked.path} ")}


def state_on_disk(project: Project, located: Located) -> JsonObject:
    """Return the stamp and the time of a file; None for both if there is no file."""
    try:
        return time_of(project.stat(located))
    except FileNotFoundError:
        return {"stamp": None, "modified": None}


def time_of(facts: os.stat_result) -> JsonObject:
    """Return the stamp of a file, and when it was modified: whole seconds, and nanoseconds."""
    return {"stamp": stamp_from(facts), "modified": list(divmod(facts.st_mtime_ns, BILLION))}


def _file_facts(located: Located, facts: os.stat_result) -> JsonObject:
    return {
        "size": facts.st_size,
        **time_of(facts),
        "writable": os.access(located.path, os.W_OK),
        "lock": _lock(located),
    }


def _lock(located: Located) -> str | None:
    """Return the name of the person and the process whose Emacs locks a file, or None."""
    with suppress(OSError):
        return str(located.path.with_name(LOCK + located.path.name).readlink())
    return None


def _contents(located: Located, wanted: WantedContents) -> JsonObject:
    """Return the hash of a file, and its bytes if they are wanted and can be text."""
    file = read(located)
    if file is None:
        return {}
    sha256 = digest(file.data)
    is_sent = sha256 not in wanted.known and not _is_binary(file.data)
    return {
        "size": len(file.data),
        **time_of(file.facts),
        "sha256": sha256,
        "content": b64encode(file.data).decode() if is_sent else None,
    }


def _is_binary(data: bytes) -> bool:
    if b"\0" not in data[:BINARY_BYTES]:
        return False
    return guess_coding(lambda at, size: data[at : at + size], len(data)) is None
