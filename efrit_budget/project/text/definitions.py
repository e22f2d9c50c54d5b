"""Find the definitions of many files with one run of ctags."""

import os
import re
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes.confinement import Confinement
from efrit_budget.project.text.ctags import CtagsError, Tag, run_ctags

FIELDS = ("--excmd=number", "--output-format=u-ctags", "--pseudo-tags=", "--fields=Ksl")
FUNCTIONS = ("function", "func", "subroutine", "procedure", "inline", "subst")
METHODS = ("method", "member", "singletonMethod")
DEFINING = frozenset(
    (
        *FUNCTIONS,
        *METHODS,
        *("class", "struct", "union", "enum", "interface", "trait", "protocol", "object"),
        *("type", "typedef", "module", "macro", "block"),
    )
)
"""The kinds of definitions that other files can refer to."""
UNLISTED = re.compile(r"[\n\r\t\\]")
"""Signs by which a name cannot stand in the list of files for ctags, or in its output."""

Packed = bytes
"""A definition as a line: name, kind, number of the line, and scope, with tabs between."""


def of_files(
    program: Path, folder: Path, names: Sequence[str], cancellation: Cancellation
) -> dict[str, list[Packed]]:
    """Return the definitions in files, by their paths from the folder; follow no links."""
    # Before an option there would be no "./".
    listed = "".join(f"./{name}\n" for name in names if not UNLISTED.search(name))
    with tempfile.TemporaryDirectory(prefix="efrit-") as own:
        found = run_ctags(
            ["--links=no", *FIELDS, "--sort=no", "-f", "-", "-L", "-"],
            folder,
            Confinement(str(program), readable=[folder], writable=[Path(own)]),
            cancellation,
            os.fsencode(listed),
        )
    if found.code != 0:
        said = found.stderr.decode("utf-8", "replace").strip()
        raise CtagsError(f"ctags failed: {said[:300] or found.code}")
    return _parse(found.stdout)


def of_tags(tags: Sequence[Tag]) -> list[Packed]:
    """Return the definitions among the tags of one file."""
    return [
        _pack(tag.name, tag.kind, tag.line, tag.scope)
        for tag in tags
        if _is_reachable(tag.kind, tag.scope_kind, tag.language)
    ]


def unpack(definition: Packed) -> tuple[str, str, int, str]:
    """Return name, kind, line and scope of a definition."""
    name, kind, line, scope = definition.decode("utf-8", "replace").split("\t")
    return name, kind, int(line), scope


def _pack(name: str, kind: str, line: int, scope: str) -> Packed:
    return "\t".join((name, kind, str(line), scope)).encode("utf-8", "replace")


def _parse(output: bytes) -> dict[str, list[Packed]]:
    """Return the definitions in the output of ctags, by file, each once."""
    found: dict[str, dict[Packed, None]] = {}
    for line in BytesIO(output):
        name, file, number, kind, *fields = os.fsdecode(line.rstrip(b"\n")).split("\t")
        facts = dict(field.partition(":")[::2] for field in fields)
        language = facts.pop("language", "")
        scope_kind, scope = next(iter(facts.items()), ("", ""))
        if _is_reachable(kind, scope_kind, language):
            packed = _pack(name, kind, int(number.rstrip(';"')), scope)
            found.setdefault(file.removeprefix("./"), {})[packed] = None
    return {file: list(packed) for file, packed in found.items()}


def _is_reachable(kind: str, scope_kind: str, language: str) -> bool:
    """Return whether other files can refer to a definition of this kind, in one of `scope_kind`."""
    if kind == "member" and language != "Python":  # a field
        return False
    return kind in DEFINING and scope_kind not in (*FUNCTIONS, *METHODS) and language != "Make"
