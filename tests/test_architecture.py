"""Rules for the code: its imports, its lengths, and what may stand in one place only.

`docs/architecture.md` shows `MAY_IMPORT` as a table; the two are compared here.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from efrit_budget.tools.registry import discover

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "efrit_budget"
DOCUMENT = ROOT / "docs" / "architecture.md"

# A room, or a module that stands alone, and what of the package it may import; `room.module`
# allows that module only. The package's own name holds its version, which all may read.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "__main__": ("cli",),
    "cli": (
        *("installer", "mcp_server", "gateway"),
        *("serve", "app", "settings", "memory", "budget", "storage.database"),
        *("storage.migrate", "storage.space", "wire.request", "wire.jsontext", "demo", "errors"),
        *("project.processes", "characters", "replay"),
    ),
    "replay": ("conversation.blocks", "results.names", "budget", "errors"),
    "demo": ("project.images", "budget", "errors"),
    "installer": (),
    "serve": ("app", "wire", "settings", "project.processes"),
    "app": (
        *("wire.method", "wire.request", "methods", "toolcalls", "conversation", "tools"),
        "gateway",
        "changes.rows",
        *("sessions", "memory.store", "results", "settings", "project", "budget"),
        *("storage.database", "storage.owner", "errors"),
    ),
    "mcp_server": ("app", "gateway", "wire.call", "cancellation", "errors"),
    "gateway": ("project.processes", "cancellation", "errors"),
    "apis": ("conversation.blocks", "conversation.prefix", "budget", "errors"),
    "methods": (
        *("apis", "gateway"),
        *("wire.method", "wire.jsontext", "toolcalls", "conversation", "tools", "sessions"),
        *("results", "memory", "settings", "project", "budget", "changes", "storage.database"),
        *("characters", "errors"),
    ),
    "wire": ("cancellation", "errors"),
    "toolcalls": (
        *("conversation", "tools", "memory.store", "sessions", "results", "settings.model"),
        *("gateway", "project", "budget", "storage", "cancellation", "characters", "errors"),
    ),
    "conversation": (
        *("tools.base", "sessions", "results", "budget", "storage", "characters", "errors"),
    ),
    "changes": ("sessions.rows", "project", "storage", "errors"),
    "tools": (
        *("memory", "results", "settings.model", "project", "budget", "characters"),
        *("cancellation", "errors"),
    ),
    "memory": ("results", "budget", "storage", "characters", "errors"),
    "sessions": ("results", "budget", "storage", "errors"),
    "results": ("budget", "storage", "characters", "errors"),
    "settings": ("budget", "project.secrets", "project.specs", "errors"),
    "project": ("characters", "cancellation", "errors"),
    "budget": ("errors",),
    "storage": ("errors",),
    "cancellation": ("errors",),
    "characters": (),
    "errors": (),
}
FILE_LINES = {".py": 400, ".el": 1300}
FUNCTION_LINES = 40
# What may be longer, and why: a path, or path::function.
LONGER: dict[str, str] = {}

FORBIDDEN_ROOMS = {"utils", "util", "common", "helpers", "core", "misc"}

# Where every exception is caught and not raised again as it is: path::function, and why.
CATCHES_ALL: dict[str, str] = {
    "efrit_budget/wire/dispatch.py::_handler.handle": "the dispatcher: a defect becomes a reply",
    "efrit_budget/app.py::Application.call": "the dispatcher of calls from the command line",
    "efrit_budget/toolcalls/summary.py::summarize": "a compressor never costs a result",
    "efrit_budget/gateway/child.py::ChildServer.keep_running": "another server's failure",
    "efrit_budget/tools/registry.py::_load": "a person's own tool file may raise anything",
}

OWN_PATH = re.compile(
    r"(?<![\w.~-])/(?:(?:work|root|(?:home|Users)(?!/ann\b))/\w"
    r"|(?:tmp|dev/shm)/(?:pytest-|tmp\.?\w{8}))"
)
"""A home folder other than the example's (Ann's), or a temporary folder."""


@cache
def kept_files() -> tuple[Path, ...]:
    """Return the files that are in the repository or would be added to it, by the ignore rules."""
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run(["git", "init", "-q", "--bare", empty], check=True)
        listing = ["git", f"--git-dir={empty}", f"--work-tree={ROOT}", "ls-files", "-z"]
        rules = ["--others", "--exclude-standard"]
        names = subprocess.check_output([*listing, *rules], cwd=ROOT, text=True).split("\0")
    return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())


def kept(*patterns: str) -> list[Path]:
    """Return the kept files whose path matches one of the patterns."""
    return [
        file
        for file in kept_files()
        if any(fnmatch.fnmatch(shown(file), pattern) for pattern in patterns)
    ]


def shown(file: Path) -> str:
    """Return a file's path from the root on."""
    return file.relative_to(ROOT).as_posix()


@cache
def tree(file: Path) -> ast.Module:
    """Return the syntax of a Python file."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


# Imports


def room_of(file: Path) -> str:
    """Return the room a file of the package is in, or the module it is."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_modules(file: Path) -> Iterator[str]:
    """Yield the package's own modules that a file imports, without the package's name."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            assert not name.startswith("."), f"{shown(file)} imports {name}, which is relative"
            if name.startswith("efrit_budget."):
                yield name.removeprefix("efrit_budget.")


def is_allowed(room: str, module: str) -> bool:
    """Return whether the table lets `room` import `module`."""
    inner = module.partition(".")[0]
    is_version = inner not in MAY_IMPORT  # a name of the package itself
    listed = (module == name or module.startswith(f"{name}.") for name in MAY_IMPORT[room])
    return inner == room or is_version or any(listed)


def forbidden_imports(file: Path) -> list[str]:
    """Return a file's forbidden imports; the package's own file may import nothing."""
    room = room_of(file)
    if room == "__init__":
        return list(imported_modules(file))
    return [module for module in imported_modules(file) if not is_allowed(room, module)]


def test_every_room_and_lone_module_stands_in_the_table_and_the_other_way_round() -> None:
    """The table lists exactly the rooms and modules that exist."""
    rooms = {room_of(file) for file in kept("efrit_budget/*.py")} - {"__init__"}
    assert rooms <= set(MAY_IMPORT), "rooms that MAY_IMPORT does not know"
    allowed = {name.partition(".")[0] for names in MAY_IMPORT.values() for name in names}
    assert allowed <= set(MAY_IMPORT), "rooms that MAY_IMPORT allows and does not list"


def test_every_file_imports_only_what_its_room_may() -> None:
    """The table says what each room may import."""
    found = {shown(file): forbidden_imports(file) for file in kept("efrit_budget/*.py")}
    assert not {name: modules for name, modules in found.items() if modules}


def test_no_room_can_import_itself_by_way_of_others() -> None:
    """The table has no cycles: rooms without imports can be removed until none is left."""
    needs = {room: {name.partition(".")[0] for name in names} for room, names in MAY_IMPORT.items()}
    while needs:
        free = {room for room, names in needs.items() if not names & set(needs)}
        assert free, f"these import each other: {sorted(needs)}"
        needs = {room: names for room, names in needs.items() if room not in free}


def test_the_document_shows_the_same_table() -> None:
    """A row of the document names the room, its purpose, and what it may import."""
    row = re.compile(r"^\| `([\w.]+)/?` \| .+ \| (.*) \|$", re.MULTILINE)
    rows = row.findall(DOCUMENT.read_text(encoding="utf-8"))
    documented = {room: set(re.findall(r"`([\w.]+)`", names)) for room, names in rows}
    assert documented == {room: set(names) for room, names in MAY_IMPORT.items()}


# Sizes


def too_long(file: Path) -> Iterator[str]:
    """Yield what in a file exceeds its limit."""
    text = file.read_text(encoding="utf-8")
    if len(text.splitlines()) > FILE_LINES[file.suffix]:
        yield shown(file)
    if file.suffix == ".py":
        for name, node in functions(tree(file)):
            if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES:
                yield f"{shown(file)}::{name}"


def functions(
    node: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function in a piece of syntax, with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # no expression holds a function that has a name
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
        yield from functions(child, inner)


def test_no_file_and_no_function_is_longer_than_its_ceiling() -> None:
    """`LONGER` lists the exceptions with a reason each, and nothing else."""
    assert {long for file in kept("*.py", "*.el") for long in too_long(file)} == set(LONGER)


# Names


def test_no_room_and_no_file_is_named_for_holding_this_and_that() -> None:
    """The name of a room is a noun that says what is in it."""
    names = {part for file in kept("*.py", "*.el") for part in Path(shown(file)).parts}
    assert not {name for name in names if set(re.split(r"[-_.]", name)) & FORBIDDEN_ROOMS}


def catalog_tools() -> list[str]:
    """Return the names of the tools that come with the package."""
    return [tool.name for tool in discover()]


@pytest.mark.parametrize("name", catalog_tools())
def test_a_tool_has_a_file_and_a_test_of_its_name_and_a_place_in_the_documents(name: str) -> None:
    """The tool has its file, its test, and its heading in `docs/tools.md`."""
    assert (PACKAGE / "tools" / "catalog" / f"{name}.py").is_file()
    assert (ROOT / "tests" / "tools" / f"test_{name}.py").is_file()
    headings = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8").splitlines()
    assert f"## {name}" in headings


# What stands only where


def test_the_header_of_the_framing_is_spelt_out_in_the_wire_room_alone() -> None:
    """Other rooms leave framing to `wire`; `demo` speaks HTTP, which has a header of that name."""
    header = re.compile("content-length", re.IGNORECASE)
    holders = {room_of(file) for file in kept("efrit_budget/*.py") if header.search(text_of(file))}
    assert holders <= {"wire", "demo"}


def text_of(file: Path) -> str:
    """Return a file's text, ignoring bytes that are not UTF-8."""
    return file.read_bytes().decode("utf-8", errors="replace")


def catching_functions(file: Path) -> Iterator[str]:
    """Yield the functions that catch every exception, and do not raise the same one again."""
    for name, function in functions(tree(file)):
        own = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
        inner = {id(node) for _, child in functions(function) for node in ast.walk(child)}
        if any(catches_all(node) for node in own if id(node) not in inner):
            yield f"{shown(file)}::{name}"


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches every exception and does not raise it again."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    caught = [] if handler.type is None else list(ast.walk(handler.type))
    names = {node.id for node in caught if isinstance(node, ast.Name)}
    return handler.type is None or bool(names & {"Exception", "BaseException"})


def test_every_exception_is_caught_only_where_the_list_says_why() -> None:
    """The list has the dispatcher, and calls of code written by others."""
    found = {name for file in kept("efrit_budget/*.py") for name in catching_functions(file)}
    assert found == set(CATCHES_ALL)


def test_nothing_in_the_package_suppresses_every_exception() -> None:
    """`suppress(Exception)` would be a broad `except` in disguise."""
    broad = re.compile(r"suppress\([^)]*\b(Base)?Exception\b")
    assert not [file for file in kept("efrit_budget/*.py") if broad.search(text_of(file))]


# What may stand nowhere


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    """Paths are relative, or found at run time."""
    checkout = re.compile(rf"(?<![\w.~/-]){re.escape(str(ROOT))}\b")
    found = {
        shown(file): OWN_PATH.search(text_of(file)) or checkout.search(text_of(file))
        for file in kept_files()
    }
    assert not {name: match[0] for name, match in found.items() if match}


@pytest.mark.parametrize(
    "place", ["home/bob/a", "Users/bob", "tmp/tmpo676gxiw/a", "tmp/tmp.9fZ2kQ01xY", "tmp/pytest-1"]
)
def test_homes_and_temporary_folders_are_seen(place: str) -> None:
    """The pattern finds them anywhere in a text."""
    assert OWN_PATH.search(f"outside the project /{place}")


@pytest.mark.parametrize("place", ["home/ann/project", "tmp/other.sqlite3", "srv/app/"])
def test_a_place_made_for_an_example_may_stand_anywhere(place: str) -> None:
    """It reveals nothing about a machine."""
    assert not OWN_PATH.search(f"outside the project /{place}")


def hosts_of(command: list[str], url: str = r"https?://[^\s'\"]+") -> Iterator[str]:
    """Yield the hosts that a program's configuration names; none if it is not installed."""
    if shutil.which(command[0]) is None:
        return
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield from filter(None, (urlsplit(found).hostname for found in re.findall(url, printed)))


def registry_hosts() -> set[str]:
    """Return the hosts that this machine's package managers are set to."""
    pip = [sys.executable, "-m", "pip"]
    return {
        *hosts_of([*pip, "config", "list"]),
        *hosts_of([*pip, "install", "--help"], r"\(default\s+(https?://[^)]+)\)"),
        *hosts_of(["npm", "config", "get", "registry"]),
        *hosts_of(["apt-get", "indextargets", "--format", "$(SITE)"]),
    }


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Packages are named, and come from the registry that the machine is configured for."""
    hosts = registry_hosts()
    assert hosts, "no registry found to look for"
    found = {
        shown(file): [host for host in hosts if host in text_of(file)] for file in kept_files()
    }
    assert not {name: named for name, named in found.items() if named}


def test_every_data_file_of_the_package_is_installed_with_it() -> None:
    """Each file matches a pattern of `package-data` in `pyproject.toml`."""
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    patterns = project["tool"]["setuptools"]["package-data"]["efrit_budget"]
    packed = {file for pattern in patterns for file in PACKAGE.glob(pattern)}
    data = {file for file in kept("efrit_budget/*") if file.suffix != ".py"}
    assert not {shown(file) for file in data - packed}
