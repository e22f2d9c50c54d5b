"""Run universal-ctags and read the definitions it finds."""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.project.processes.confinement import MOST_MEMORY, Confinement
from efrit_budget.project.processes.environment import own_without_keys
from efrit_budget.project.processes.programs import find_program
from efrit_budget.project.processes.run import Finished, run
from efrit_budget.project.text.languages import LANGUAGES

NAMES = ("ctags-universal", "universal-ctags", "uctags", "ctags")
QUIET = ("--quiet=yes", "--options=NONE")
OUTPUT = ("-G", "--output-format=json", "--fields=+neKSl-P", "--sort=no", "-f", "-")
INSTALL = (
    "needs universal-ctags with JSON, and there is none: apt install universal-ctags,"
    " dnf install ctags, brew install universal-ctags. Without it search_content finds definitions"
)
"""What to do where `find` returns None, behind the name of the tool that needs it."""
LOOK_SECONDS, MOST_SECONDS = 10, 60
SAFE_NAME = re.compile(r"[\w.][\w.+-]{0,100}", re.ASCII)
SAFE_SUFFIX = re.compile(r"\.[\w+-]{1,20}", re.ASCII)
UNCERTAIN = "unknown"


class CtagsError(EfritError):
    """ctags failed."""


@dataclass(frozen=True)
class Tag:
    """A definition found by ctags; `line` is its first line, `end` its last one if known."""

    name: str
    kind: str
    line: int
    end: int | None
    scope: str
    signature: str
    language: str
    scope_kind: str = ""


def find(cancellation: Cancellation) -> Path | None:
    """Return the path of a universal-ctags that writes JSON, or None if there is none."""
    for name in NAMES:
        found = find_program(name)
        if found is None:
            continue
        path = Path(found).resolve()
        if _speaks_json(path, path.stat().st_mtime_ns, cancellation):
            return path
    return None


_known: dict[tuple[Path, int], bool] = {}


def _speaks_json(path: Path, changed_ns: int, cancellation: Cancellation) -> bool:
    """Return whether a program is a universal-ctags that writes JSON; cache the answer."""
    key = (path, changed_ns)
    if key not in _known:
        command = [str(path), *QUIET, "--list-features"]
        try:
            told = run(command, cwd=Path("/"), cancellation=cancellation, timeout=LOOK_SECONDS)
        except OSError:
            return False
        features = {line.split()[0] for line in told.stdout.splitlines() if line.strip()}
        _known[key] = told.code == 0 and b"json" in features
    return _known[key]


def tags(ctags: Path, name: str, text: str, cancellation: Cancellation) -> list[Tag]:
    """Return the definitions in a text, sorted by line; the file `name` tells the language.

    The text is written to a temporary file, so that no other file is read by mistake.
    """
    with tempfile.TemporaryDirectory(prefix="efrit-") as folder:
        file = Path(folder, _file_name(name))
        file.write_text(text, encoding="utf-8", errors="replace", newline="")
        found = _output(ctags, file, cancellation)
    best: dict[tuple[int, str], Tag] = {}
    for tag in sorted(_parse(found.stdout), key=lambda tag: tag.line):
        known = best.setdefault((tag.line, tag.name), tag)
        if known.kind == UNCERTAIN:
            best[tag.line, tag.name] = tag
    return list(best.values())


def _output(ctags: Path, file: Path, cancellation: Cancellation) -> Finished:
    """Return the output of ctags on one file; only its folder can be read and written."""
    confinement = Confinement(str(ctags), writable=[file.parent])
    found = run_ctags([*OUTPUT, str(file)], file.parent, confinement, cancellation)
    if found.code != 0:
        said = found.stderr.decode("utf-8", "replace").replace(str(file), file.name).strip()
        raise CtagsError(f"ctags failed: {said[:300] or found.code}")
    return found


def run_ctags(
    arguments: Sequence[str],
    folder: Path,
    confinement: Confinement,
    cancellation: Cancellation,
    given: bytes | None = None,
) -> Finished:
    """Run ctags in a folder; if it fails with the options for more languages, without these.

    Its temporary files go to the folder that the confinement lets it write. Raise if it takes too
    much time or memory.
    """
    for words in (LANGUAGES, ()):
        found = run(
            [confinement.program, *QUIET, *words, *arguments],
            cwd=folder,
            cancellation=cancellation,
            timeout=MOST_SECONDS,
            env=own_without_keys() | {"TMPDIR": str(confinement.writable[0])},
            given=given,
            confinement=confinement,
        )
        if found.out_of_memory:
            raise CtagsError(f"ctags needs more than {MOST_MEMORY // 2**20} MiB of memory for this")
        if found.timed_out:
            raise CtagsError(f"ctags took more than {MOST_SECONDS} seconds")
        if found.code == 0:
            break
    return found


def _file_name(name: str) -> str:
    """Return a safe file name from which ctags knows the language."""
    base = PurePath(name).name
    if SAFE_NAME.fullmatch(base) and base.strip("."):
        return base
    suffix = PurePath(base).suffix
    return f"file{suffix}" if SAFE_SUFFIX.fullmatch(suffix) else "file"


def _parse(output: bytes) -> Iterator[Tag]:
    for line in output.splitlines():
        told: JsonObject = json.loads(line.decode("utf-8", "replace"))
        if told.get("_type") == "tag" and told.get("name"):
            yield Tag(
                name=told["name"],
                kind=told.get("kind", UNCERTAIN),
                line=int(told.get("line", 1)),
                end=told.get("end"),
                scope=told.get("scope", ""),
                scope_kind=told.get("scopeKind", ""),
                signature=" ".join(told.get("signature", "").split()),
                language=told.get("language", ""),
            )
