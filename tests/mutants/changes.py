"""The changes that can be made to a piece of syntax."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
REMOVED = (ast.Raise, ast.Delete)
LOGS = ("log", "logger", "logging")

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Change:
    """A piece of syntax, and the texts that may stand in its place."""

    kind: str
    target: ast.expr | ast.stmt
    choices: tuple[str, ...]


def changes_of(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of a node itself, leaving out its parts."""
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from _negated(node.test)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield from _negated(test)


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_false(node.value):
        yield Change("returned value", node, ("return None",))
    elif isinstance(node, ast.Break):
        yield Change("break", node, ("continue",))
    elif isinstance(node, ast.Continue):
        yield Change("continue", node, ("break",))
    elif isinstance(node, ast.AugAssign) and type(node.op) in CALCULATED:
        changed = _with(node, op=CALCULATED[type(node.op)]())
        yield Change("arithmetic", node, (ast.unparse(changed),))
    if _is_removable(node):
        yield Change("removed statement", node, ("pass",))


def _is_false(value: ast.expr) -> bool:
    """Return whether a value is None or False, which a reader of None cannot tell apart."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def _is_removable(node: ast.stmt) -> bool:
    """Return whether the code still defines all its names without a statement."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and not is_log(node.value)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, ast.Assign | ast.AugAssign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
    return isinstance(node, REMOVED)


def is_log(call: ast.Call) -> bool:
    """Return whether a call writes to the log."""
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in LOGS


def _of_expression(node: ast.expr) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BinOp):
        yield from _calculated(node)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Change("and, or", node, (_text(_with(node, op=other)),))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Change("not", node, (_text(node.operand),))
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Slice):
        yield from (Change("bound", each, ("",)) for each in (node.lower, node.upper) if each)
    elif isinstance(node, ast.Name) and node.id in SWAPPED:
        yield Change("min, max, any, all", node, (SWAPPED[node.id],))


def _compared(node: ast.Compare) -> Iterator[Change]:
    for index, operator in enumerate(node.ops):
        others = (
            _with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])
            for other in COMPARED[type(operator)]
        )
        yield Change("comparison", node, tuple(map(_text, others)))


def _calculated(node: ast.BinOp) -> Iterator[Change]:
    """Yield changes of an operator; joined texts and lists are left, as they can only be added."""
    if type(node.op) in CALCULATED and not (_is_joined(node.left) or _is_joined(node.right)):
        other = _with(node, op=CALCULATED[type(node.op)]())
        yield Change("arithmetic", node, (_text(other),))


def _is_joined(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_joined(node.left) or _is_joined(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple)


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield Change("constant", node, (str(not value),))
    elif isinstance(value, int | float):
        yield Change("constant", node, (f"{value + 1}", f"({value - 1})"))


def _negated(test: ast.expr) -> Iterator[Change]:
    """Yield negations of a test, except single comparisons and `not`, which have their own."""
    is_negation = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if not is_negation and not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        yield Change("condition", test, (f"(not {_text(test)})",))


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _with(node: Node, **parts: object) -> Node:
    changed = copy.copy(node)
    for name, part in parts.items():
        setattr(changed, name, part)
    return changed
