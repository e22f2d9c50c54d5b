"""Tests of the nesting of definitions, and of ends that ctags does not report."""

from __future__ import annotations

from efrit_budget.project.text.ctags import Tag
from efrit_budget.project.text.symbols import nest


def _tag(
    name: str, line: int, kind: str = "method", end: int | None = None, scope: str = ""
) -> Tag:
    return Tag(name, kind, line, end, scope, "", "TypeScript")


def test_a_block_without_a_told_end_reaches_to_what_closes_it() -> None:
    text = "class A {\n  m(\n  ) {\n    x\n\n  }\n  n() { }\n}\nconst f = [\n  1,\n]\nlast\n"
    tags = [
        _tag("A", 1, "class"),
        _tag("m", 2, scope="A"),
        _tag("n", 7, scope="A"),
        _tag("f", 9, "constant"),
        _tag("last", 12, "variable"),
    ]
    found = [(symbol.name, symbol.end, symbol.depth) for symbol in nest(tags, text)]
    assert found == [("A", 8, 0), ("m", 6, 1), ("n", 7, 1), ("f", 11, 0), ("last", 12, 0)]


def test_what_stands_apart_from_what_it_belongs_to_is_named_with_it() -> None:
    tags = [_tag("S", 1, "struct", 2), _tag("F", 4, "func", 5, "S"), _tag("b", 5, "x", 5, "T.a")]
    found = [(symbol.name, symbol.depth) for symbol in nest(tags, "\n" * 6)]
    assert found == [("S", 0), ("S.F", 0), ("T.a.b", 0)]


def test_lines_that_are_not_there_end_with_the_text() -> None:
    tags = [_tag("a", 1, end=99), _tag("b", 50)]
    assert [symbol.end for symbol in nest(tags, "x\ny\n")] == [2, 50]
    assert nest([], "") == []
