"""Find the definitions of many files with ctags."""

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes.confinement import Confinement
from efrit_budget.project.text.ctags import CtagsError, run_ctags
from efrit_budget.project.text.uses import FUNCTIONS, METHODS, form_of

FIELDS = ("--excmd=number", "--output-format=u-ctags", "--pseudo-tags=", "--fields=Ksl")
WITHOUT = (
    *("--kinds-C=-emv", "--kinds-C++=-emv", "--kinds-Python=-v", "--kinds-EmacsLisp=-vc"),
    *("--languages=-IPythonCell", "--languages=-RSpec"),
)
"""Options that leave out frequent kinds which are not in DEFINING (fields, variables, constants),
and slow parsers that find nothing in it."""
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
TAG = re.compile(
    (
        r'([^\t\n]++)\t\./([^\t\n]++)\t(\d++);"\t'
        rf"({'|'.join(sorted(DEFINING - {'member'}))}|member(?=\tlanguage:Python\b))"
        r"\tlanguage:(?!Make\b)[^\t\n]++"
        rf"(?=\n|\t(?!(?:{'|'.join((*FUNCTIONS, *METHODS))}):)\w++:([^\t\n]*+))[^\n]*+\n"
        r"|[^\n]*+\n"
    ).encode()
)
"""This matches a line of ctags, with groups for name, file, line, kind and scope if other files can
refer to the definition. A member is a field, but for Python; what is inside of a function is its
own."""
PROCESSES = 2
"""The number of processes of ctags that run at the same time."""
SHARES = 4
"""The number of shares of the files: the tags of one are read while ctags works on the next."""

Packed = bytes
"""A definition as a line: form, name, kind, number of the line, and scope, with tabs between."""


def of_files(
    program: Path, folder: Path, names: Sequence[str], cancellation: Cancellation
) -> dict[str, list[Packed]]:
    """Return the definitions in files, by their paths from the folder; follow no links."""
    listed = [name for name in names if not UNLISTED.search(name)]
    shares = [listed[first::SHARES] for first in range(min(SHARES, len(listed)))]
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = pool.map(lambda share: _of_share(program, folder, share, cancellation), shares)
        return {file: packed for part in found for file, packed in part.items()}


def _of_share(
    program: Path, folder: Path, names: Sequence[str], cancellation: Cancellation
) -> dict[str, list[Packed]]:
    # Before an option there would be no "./".
    listed = "".join(f"./{name}\n" for name in names)
    with tempfile.TemporaryDirectory(prefix="efrit-") as own:
        found = run_ctags(
            ["--links=no", *FIELDS, *WITHOUT, "--sort=no", "-f", "-", "-L", "-"],
            folder,
            Confinement(str(program), readable=[folder], writable=[Path(own)]),
            cancellation,
            os.fsencode(listed),
        )
    if found.code != 0:
        said = found.stderr.decode("utf-8", "replace").strip()
        raise CtagsError(f"ctags failed: {said[:300] or found.code}")
    return _parse(found.stdout)


def of_texts(
    program: Path, texts: Mapping[str, str], cancellation: Cancellation
) -> dict[str, list[Packed]]:
    """Return the definitions in texts, by the paths of their files, which tell the language."""
    if not texts:
        return {}
    paths: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="efrit-") as folder:
        for number, (path, text) in enumerate(texts.items()):
            name = f"{number}/{PurePath(path).name}"
            paths[name] = path
            file = Path(folder, name)
            file.parent.mkdir()
            file.write_text(text, encoding="utf-8", errors="replace", newline="")
        found = of_files(program, Path(folder), list(paths), cancellation)
    return {paths[name]: packed for name, packed in found.items()}


def unpack(definition: Packed) -> tuple[str, str, int, str]:
    """Return name, kind, line and scope of a definition."""
    _, name, kind, line, scope = definition.decode("utf-8", "replace").split("\t")
    return name, kind, int(line), scope


def _parse(output: bytes) -> dict[str, list[Packed]]:
    """Return the definitions in the output of ctags, by file, each once."""
    found: defaultdict[bytes, dict[Packed, None]] = defaultdict(dict)
    for match in TAG.finditer(output):
        if match.lastindex:
            name, file, line, kind, scope = match.groups(b"")
            packed = b"\t".join((form_of(file, kind) % name, name, kind, line, scope))
            found[file][packed] = None
    return {os.fsdecode(file): list(packed) for file, packed in found.items()}
