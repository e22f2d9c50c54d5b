"""The SQL of a table stands in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.test_architecture import kept, room_of, shown, tree

SQL_OF = {
    "calls": "conversation/calls.py",
    "segments": "conversation/segments.py",
    "turns": "conversation/turns.py",
    "windows": "conversation/windows.py",
    "calibration": "conversation/windows.py",
    "sessions": "sessions/rows.py",
    "changes": "changes/rows.py",
    "checkpoints": "changes/rows.py",
    "images": "changes/rows.py",
    "held_images": "changes/rows.py",
    "results": "results/store.py",
    "blobs": "results/store.py",
    "observations": "memory/rows.py",
    "revisions": "memory/rows.py",
    "relations": "memory/rows.py",
}
"""The tables whose SQL is in one module, and that module."""
JOINS = {
    ("results", "efrit_budget/conversation/calls.py"),
    ("observations", "efrit_budget/memory/searching.py"),
}
"""Tables that other SQL joins: calls are found by their results, observations by their words."""
SQL_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+|\?)")


def text_of_node(node: ast.AST) -> str:
    """Return the text of a string, with `?` for what a format puts in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of_node(part) or "?" for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def sql_tables(file: Path) -> set[str]:
    """The tables that the texts of a file name as SQL does, and `?` for one put in by a format."""
    docstrings = {id(node.value) for node in ast.walk(tree(file)) if isinstance(node, ast.Expr)}
    texts = [text_of_node(node) for node in ast.walk(tree(file)) if id(node) not in docstrings]
    return {table for text in texts for table in SQL_TABLE.findall(text)}


def test_the_sql_of_a_table_stands_in_one_module() -> None:
    """Of the tables that `SQL_OF` has."""
    found: dict[str, set[str]] = {table: set() for table in SQL_OF}
    for file in kept("efrit_budget/*.py"):
        for table in sql_tables(file) & SQL_OF.keys() if room_of(file) != "storage" else ():
            if (table, shown(file)) not in JOINS:
                found[table].add(shown(file))
    assert found == {table: {f"efrit_budget/{module}"} for table, module in SQL_OF.items()}


def test_no_sql_has_the_name_of_a_table_put_in() -> None:
    """So that the test above sees every table."""
    assert not [shown(file) for file in kept("efrit_budget/*.py") if "?" in sql_tables(file)]
