"""Definitions with their line ranges and nesting."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from efrit_budget.project.text.ctags import Tag

LISPS = frozenset({"EmacsLisp", "Lisp", "Scheme", "Clojure"})
CLOSERS = ("}", ")", "]", "end")
OPENERS = ("{", "(", "[", ":", "=>", "=")
SINGLE_LINES = frozenset({"enumerator", "field", "member", "package"})
"""The kinds of definitions that take one line if ctags gives no end."""
BETWEEN = re.compile(r"[^\w$?!-]+")


@dataclass(frozen=True)
class Symbol:
    """One definition with its last line and its place among the others."""

    tag: Tag
    end: int
    depth: int
    """The number of listed definitions that contain this one."""
    scope: str
    """The path of the containing definition if that is not listed itself, else empty."""

    @property
    def name(self) -> str:
        """The name of the definition, behind its scope if it has one."""
        return f"{self.scope}.{self.tag.name}" if self.scope else self.tag.name


def nest(tags: Sequence[Tag], text: str) -> list[Symbol]:
    """Return the definitions of a text as symbols, in the order of `tags`."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    above: list[tuple[Tag, int]] = []
    symbols = []
    for tag in tags:
        end = max(tag.line, min(tag.end or _end(tag, lines), len(lines)))
        while above and not _holds(above[-1], tag):
            above.pop()
        path = BETWEEN.split(tag.scope)
        is_told = not tag.scope or any(path[-1] == one.name for one, _ in above)
        symbols.append(Symbol(tag, end, len(above), "" if is_told else tag.scope))
        above.append((tag, end))
    return symbols


def _holds(outer: tuple[Tag, int], tag: Tag) -> bool:
    """Return whether the definition `outer`, a tag with its last line, contains `tag`."""
    one, end = outer
    return bool(tag.scope) and one.name in BETWEEN.split(tag.scope) and tag.line <= end


def _end(tag: Tag, lines: Sequence[str]) -> int:
    """Guess the last line of a definition for which ctags gives none."""
    if tag.language in LISPS:
        return _end_of_form(tag.line, lines)
    if tag.kind in SINGLE_LINES:
        return tag.line
    return _end_of_block(tag.line, lines)


def _end_of_form(line: int, lines: Sequence[str]) -> int:
    """Return the last line of a Lisp form: before the next parenthesis at a line's start."""
    end = line
    for number in range(line, len(lines)):
        text = lines[number]
        if text.startswith("("):
            break
        if text.strip() and not text.startswith(";"):
            end = number + 1
    return end


def _end_of_block(line: int, lines: Sequence[str]) -> int:
    """Return the last line of the indented block that begins at `line`, with its closing line."""
    if line > len(lines):
        return line
    margin = _indentation(lines[line - 1])
    end = line
    for number in range(line, len(lines)):
        text = lines[number].strip()
        if not text:
            continue
        if _indentation(lines[number]) <= margin:
            closes = _indentation(lines[number]) == margin and text.startswith(CLOSERS)
            if not closes:
                break
            end = number + 1
            if not text.endswith(OPENERS):
                break
        end = number + 1
    return end


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())
