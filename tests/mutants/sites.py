"""The sites in a file that can be changed.

Excluded are texts and the values formatted into them, log calls, annotations, `__all__`, imports
for types only, and arguments that only decide how a defect of the code shows (`UNSEEN`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutants.changes import Change, changes_of, is_log

UNSEEN = ("frozen", "slots", "kw_only", "strict")
"""The arguments of `dataclass` and `zip` that change nothing in code without defects."""


@dataclass(frozen=True)
class Site:
    """A place in a file at which something can be changed."""

    path: str
    module: str
    function: str
    """The qualified name of the function or class around it; empty at the module's level."""
    line: int
    reached_at: int | None
    """The line of the statement that a test must reach; None for what runs on loading."""
    kind: str
    start: int
    end: int
    before: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class _Around:
    """The syntax around a node."""

    names: tuple[str, ...] = ()
    in_function: bool = False
    reached_at: int | None = None


def sites_under(root: Path, rooms: Iterable[str]) -> list[Site]:
    """Find the sites of all files in the rooms: folders, named from the root on."""
    files = sorted(file for room in rooms for file in (root / room).rglob("*.py"))
    return [site for file in files for site in sites_of(file, file.relative_to(root))]


def sites_of(file: Path, path: Path) -> Iterator[Site]:
    """Find the sites of one file, which is told of under `path`."""
    data = file.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for change, around in _walk(ast.parse(data), _Around()):
        target = change.target
        start = starts[target.lineno - 1] + target.col_offset
        end = starts[(target.end_lineno or 0) - 1] + (target.end_col_offset or 0)
        yield Site(
            path=path.as_posix(),
            module=module_of(path),
            function=".".join(around.names),
            line=target.lineno,
            reached_at=around.reached_at,
            kind=change.kind,
            start=start,
            end=end,
            before=data[start:end].decode(),
            choices=change.choices,
        )


def module_of(path: Path) -> str:
    """Return the name of the module in a file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _walk(node: ast.AST, around: _Around) -> Iterator[tuple[Change, _Around]]:
    if _is_left_out(node):
        return
    if isinstance(node, ast.stmt) and around.in_function:
        around = replace(around, reached_at=node.lineno)
    for change in changes_of(node):
        yield change, around
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _walk_function(node, around)
        return
    if isinstance(node, ast.ClassDef):
        around = replace(around, names=(*around.names, node.name))
    for child in _parts(node):
        yield from _walk(child, around)


def _walk_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, around: _Around
) -> Iterator[tuple[Change, _Around]]:
    """Yield a function's changes: defaults count as inside the function, decorators as outside."""
    for decorator in node.decorator_list:
        yield from _walk(decorator, around)
    first = node.body[min(ast.get_docstring(node) is not None, len(node.body) - 1)]
    inner = _Around((*around.names, node.name), in_function=True, reached_at=first.lineno)
    for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
        yield from _walk(default, inner)
    for statement in node.body:
        yield from _walk(statement, inner)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    if isinstance(node, ast.keyword):
        return node.arg in UNSEEN
    if isinstance(node, ast.Call):
        return is_log(node)
    return isinstance(node, ast.JoinedStr | ast.pattern)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node except annotations."""
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            values = value if isinstance(value, list) else [value]
            yield from (each for each in values if isinstance(each, ast.AST))
