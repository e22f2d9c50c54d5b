"""Writes `docs/tools.md` from the catalog: `python -m tests.docs.tools_page`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from efrit_budget.tools.base import Arguments, Tool
from efrit_budget.tools.registry import discover, schema
from tests.docs import peer_tools
from tests.docs.pages import FOLDER, ROOT, table

PAGE = FOLDER / "tools.md"
INTRODUCTION = """\
# Tools

What a model is offered. Each is one file of `efrit_budget/tools/catalog/`;
[adding-a-tool.md](adding-a-tool.md) tells how to write one. *Asks first* means that a client
asks the person before it runs the tool, unless the person decided otherwise.
[Some](#tools-that-run-in-emacs) run in Emacs.

`python -m tests.docs.tools_page` writes this page from the catalog, and asks Emacs for its own.
"""
OWN_LINES = """\
## The map of a folder

`project_map` runs universal-ctags over the files of a folder that git does not ignore, and
counts in how many other files each definition is used: a function or method is called, a type or
macro is named; comments, texts in quotes, and the file of the definition do not count. What Lisp
calls or quotes counts for definitions in Lisp alone. Where several definitions have one name, they
share the number, so a frequent name such as `get` does not come first. The definitions with the
highest numbers are shown, as many as the budget holds, by file and in the order of lines; further
pages have up to 2,000. Fields, variables, and functions inside functions are left out, and so are
texts and data such as Markdown and JSON, files above 512 KB and files of secrets. The first map
reads every file; what was found in one is kept in memory until its size or time is another.

## The program's own lines

In every result, a line that begins with `§`, `📏` or `⚡` is the program's own: a count, a heading,
a note, the footer. Every other line is what was found: names, lines behind their numbers, text.
Where a line of found text begins with one of these signs, or with backslashes and one of them,
another backslash stands before it; the name of a file that begins so is quoted. So whatever a
file, a command, a commit or a memory holds, none of it can be taken for the program's words.

Lines end at newlines alone: carriage returns, escapes and other control characters are shown as
pictures such as `␍` and `␛`, line separators as `␤`. What is stored keeps the characters
themselves. In names of files, characters that cannot be seen and marks that change the order of
writing are quoted as git quotes bytes.
"""
IN_EMACS = """\
## Tools that run in Emacs

Each is an `efrit-define-tool` form in `elisp/`. They are offered by `efrit-do`; the sidecar counts
and keeps what they give like any other result. What a tool says itself it gives through
`efrit-tool-mark-own`; all else counts as found.
"""
SCHEMAS = """
(progn (setq locale-coding-system 'utf-8-unix)
       (princ (decode-coding-string (efrit-json-write (efrit-tools-schemas)) 'utf-8)))
"""
POLICIES = {"allow": "Runs without asking.", "ask": "Asks first."}
HEADING = ("argument", "kind", "default", "meaning")
EVERY_TOOL_TAKES = {
    "max_tokens": "The most that the result may cost; never more than the call's allowance.",
    "continuation_token": "From the end of a page: go on there, in the same stored result.",
}
EFFECTS = {True: "It has effects: it is never run twice for one call.", False: "It only reads."}


def page() -> str:
    """Return the whole page."""
    in_sidecar = (described(tool) for tool in discover())
    in_emacs = (described_in_emacs(tool) for tool in emacs_tools())
    parts = [
        INTRODUCTION,
        shared_part(),
        OWN_LINES,
        *in_sidecar,
        IN_EMACS,
        *in_emacs,
        peer_tools.part(),
    ]
    return "\n".join(parts)


def shared_part() -> str:
    """Return the part about the arguments that every tool takes."""
    rows = [(*row[:3], EVERY_TOOL_TAKES[name]) for name, row in arguments(Arguments).items()]
    return f"## Every tool\n\n{table(HEADING, rows)}\n"


def described(tool: Tool) -> str:
    """Return the part about one tool."""
    own = [row for name, row in arguments(tool.arguments).items() if name not in EVERY_TOOL_TAKES]
    parts = [
        f"## {tool.name}",
        tool.description,
        f"{POLICIES[tool.policy]} {EFFECTS[tool.has_effects]}",
        table(HEADING, own) if own else "No arguments of its own.",
    ]
    return "\n\n".join(parts) + "\n"


def emacs_tools() -> list[dict[str, Any]]:
    """Return the schemas of Emacs's tools, sorted by name."""
    command = [os.environ.get("EMACS", "emacs"), "-Q", "--batch", "-L", str(ROOT / "elisp")]
    asked = [*command, "-l", "efrit-do", "--eval", SCHEMAS]
    found: list[dict[str, Any]] = json.loads(subprocess.check_output(asked))
    return found


def described_in_emacs(tool: dict[str, Any]) -> str:
    """Return the part about one tool that runs in Emacs."""
    rows = list(rows_of(tool["input_schema"]).values())
    parts = [
        f"### {tool['name']}",
        tool["description"],
        POLICIES[tool["policy"]],
        table(HEADING, rows) if rows else "No arguments of its own.",
    ]
    return "\n\n".join(parts) + "\n"


def arguments(model: type[Arguments]) -> dict[str, tuple[str, ...]]:
    """Return a row for each argument of a tool of the sidecar, by its name."""
    return rows_of(schema(model))


def rows_of(found: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return a row for each argument in a schema, by its name."""
    required = found.get("required", [])
    return {
        name: (f"`{name}`", kind(member), needed(member, required=name in required), about(member))
        for name, member in found.get("properties", {}).items()
    }


def kind(member: dict[str, Any]) -> str:
    """Return the kind of value that a member takes, in words."""
    choices = member.get("enum", [member["const"]] if "const" in member else [])
    if choices:
        return "one of " + ", ".join(f"`{value}`" for value in choices)
    if "anyOf" in member:
        return " or ".join(kind(one) for one in member["anyOf"] if one.get("type") != "null")
    if member.get("type") == "array":
        items = bounds(member, "minItems", "maxItems", " of them")
        return f"list{items}, each: {kind(member.get('items', {}))}"
    if "properties" in member:
        return "object of " + ", ".join(f"`{name}`" for name in member["properties"])
    if isinstance(member.get("additionalProperties"), dict):
        return f"table of names, each with: {kind(member['additionalProperties'])}"
    word = str(member.get("format") or member.get("type", "anything"))
    numbers = bounds(member, "minimum", "maximum")
    return word + numbers + bounds(member, "minLength", "maxLength", " characters")


def bounds(member: dict[str, Any], least: str, most: str, unit: str = "") -> str:
    """Return the minimum and the maximum of a value, of its length or of its items."""
    over = member.get("exclusiveMinimum") if least == "minimum" else None
    limits = [
        f"at least {member[least]:,}" if least in member else "",
        f"above {over:,}" if over is not None else "",
        f"at most {member[most]:,}" if most in member else "",
    ]
    words = " and ".join(filter(None, limits))
    return f", {words}{unit}" if words else ""


def needed(member: dict[str, Any], *, required: bool) -> str:
    """Return the default of an argument, or say that it is required or has none."""
    if required:
        return "required"
    default = member.get("default")
    return "none" if default is None else f"`{default}`"


def about(member: dict[str, Any]) -> str:
    """Return the description of an argument that the model reads."""
    return str(member.get("description", ""))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
