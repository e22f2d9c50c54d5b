"""Writes the manual's chapter of settings from them: `python -m tests.docs.settings_page`.

The table of tiers in `docs/budget.md` is written from them, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from efrit_budget.budget.tiers import DEFAULT_TOTAL, Tier
from efrit_budget.settings.model import Settings
from efrit_budget.settings.project_file import NARROWED
from tests.docs import texinfo
from tests.docs.pages import FOLDER, table
from tests.docs.tools_page import kind

PAGE = texinfo.FOLDER / "settings.texi"
BUDGET_PAGE = FOLDER / "budget.md"
TIERS = re.compile(r"^\| tier \|.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
INTRODUCTION = """\
@c Written by `python -m tests.docs.settings_page`; changes are lost.
@node Settings
@chapter Settings
@cindex settings

The settings are the sidecar's. A value comes from the last of these that gives one:

@enumerate
@item
the default;
@item
the person's @file{config.toml}; @code{efrit-budget config --path} prints where it is;
@item
the project's @file{.efrit.toml}, which may only make stricter what is marked so below; anything
else in it is left out with a warning;
@item
environment variables: @code{budget.total} is @code{EFRIT_BUDGET_BUDGET__TOTAL}, and so on; a list
or a table is written as TOML, for example
@code{EFRIT_BUDGET_TOOLS__DENY='["run_command"]'};
@item
the command line (@code{--db}), or the client.
@end enumerate

@code{efrit-budget config} prints every setting, its value and where that came from. A key that does
not exist is an error that names the nearest one.

The state folder (the database) and the log folder are the platform's own for @code{efrit-budget};
with @code{EFRIT_BUDGET_HOME} set they, and the folder of @file{config.toml}, are @file{state},
@file{log} and @file{config} in that folder.
"""
FOLDERS = {".sqlite3": "state", ".log": "log"}
LITERAL = re.compile(r"`([^`]+)`")


def page() -> str:
    """Return the whole chapter."""
    return "\n".join([INTRODUCTION, *map(group_part, Settings.model_fields)])


def group_part(group: str) -> str:
    """Return the section about one group, such as `budget`."""
    model = Settings.model_fields[group].annotation
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    members = model.model_json_schema()["properties"]
    parts = [
        definition(f"{group}.{name}", field, members[name])
        for name, field in model.model_fields.items()
    ]
    heading = f"@node Settings for {group}\n@section {group}\n\n{(model.__doc__ or '').strip()}\n"
    return "\n".join([heading, *parts])


def definition(key: str, field: FieldInfo, member: dict[str, Any]) -> str:
    """Return the definition of one setting."""
    narrowing = " A project may make it stricter." if key in NARROWED else ""
    about = f"{field.description or ''}{narrowing}"
    values = f"Its kind: {kind(member)}. The default: {default_of(field)}."
    return f"@defvr Setting {key}\n{marked_up(about)}\n\n{marked_up(values)}\n@end defvr\n"


def marked_up(text: str) -> str:
    """Return a text in which backquotes are the marks of code."""
    return LITERAL.sub(r"@code{\1}", texinfo.escape(text))


def default_of(field: FieldInfo) -> str:
    """Return the default as TOML; of a path only the part that is the same on every machine."""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Path):
        return f"`{value.name}` in the {FOLDERS[value.suffix]} folder"
    if value is None:
        return "scaled"
    if not value and isinstance(value, tuple | dict):
        return "empty"
    if isinstance(value, tuple):
        return " ".join(f"`{member}`" for member in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"`{str(value).lower()}`"


def budget_page() -> str:
    """Return the page about the budget with the table of tiers renewed."""
    tiers = [(str(tier), f"{tier.default:,}", tier.holds) for tier in Tier]
    rows = table(("tier", "default", "holds"), [*tiers, ("total", f"{DEFAULT_TOTAL:,}", "")])
    return TIERS.sub(lambda _: rows, BUDGET_PAGE.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    BUDGET_PAGE.write_text(budget_page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
