"""Load changed code into every Python process of a run; Python imports this file at its start.

`MUTANT_MODULE` names the module whose text is the one in the file `MUTANT_TEXT`. Or else
`MUTANT_RECORD` is a folder where each process notes the lines it reaches in the functions of the
packages `MUTANT_PACKAGES`, under the test that pytest runs. The files that are imported stay as
they are.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


class Changed(SourceFileLoader):
    """Loads a module from the changed text."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text that stands in the place of the file's."""
        with open(os.environ["MUTANT_TEXT"], "rb") as file:
            return compile(file.read(), self.path, "exec", dont_inherit=True)


class Recorded(SourceFileLoader):
    """Loads a module so that each statement of its functions is recorded."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file's text with a recording call before each statement."""
        tree = with_notes(ast.parse(self.get_data(self.path)), fullname)
        return compile(tree, self.path, "exec", dont_inherit=True)


def with_notes(tree: ast.Module, module: str) -> ast.Module:
    """Insert a recording call before each statement of a module's functions."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {id(node): node for function in functions for node in ast.walk(function)}
    for node in inner.values():
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [each for one in block for each in _noted(one, module)])
    return ast.fix_missing_locations(tree)


def _noted(statement: ast.stmt, module: str) -> list[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return [statement]  # a docstring stays the first
    note = ast.parse(f"mutants_recorder.reach({f'{module}:{statement.lineno}'!r})").body[0]
    return [ast.copy_location(note, statement), statement]


class Finder:
    """Finds some modules in their usual places, to be loaded in another way."""

    def __init__(self, is_wanted: Callable[[str], bool], loader: type[SourceFileLoader]) -> None:
        self._is_wanted = is_wanted
        self._loader = loader

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of them; leave all others to Python."""
        if not self._is_wanted(name):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = self._loader(name, spec.origin)
        return spec


class Recorder:
    """Records the places reached in a test, each once, and writes each to disk at once."""

    def __init__(self, folder: str) -> None:
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(os.path.join(folder, name), flags)  # noqa: PTH118  at every start
        self._seen: set[str] = set()
        self.begin(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])

    def begin(self, test: str) -> None:
        """Record the places reached from now on under a test, or under none."""
        self._seen.clear()
        os.write(self._file, f"test {test}\n".encode())

    def reach(self, place: str) -> None:
        """Record a place."""
        if place not in self._seen:
            self._seen.add(place)
            os.write(self._file, f"{place}\n".encode())


def install(environment: dict[str, str]) -> None:
    """Install the import hooks that the environment asks for."""
    if "MUTANT_MODULE" in environment:
        module = environment["MUTANT_MODULE"]
        sys.meta_path.insert(0, Finder(module.__eq__, Changed))
    elif "MUTANT_RECORD" in environment:
        packages = tuple(environment["MUTANT_PACKAGES"].split(","))
        recorder = Recorder(environment["MUTANT_RECORD"])
        builtins.mutants_recorder = recorder  # type: ignore[attr-defined]
        inner = tuple(f"{package}." for package in packages)
        sys.meta_path.insert(0, Finder(lambda name: name.startswith(inner), Recorded))


install(dict(os.environ))
