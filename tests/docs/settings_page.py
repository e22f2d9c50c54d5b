"""Writes `docs/settings.md` from the settings: `python -m tests.docs.settings_page`.

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
from tests.docs.pages import FOLDER, table
from tests.docs.tools_page import kind

PAGE = FOLDER / "settings.md"
BUDGET_PAGE = FOLDER / "budget.md"
TIERS = re.compile(r"^\| tier \|.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
INTRODUCTION = """\
# Settings

A value comes from the last of these that gives one:

1. the default;
2. the person's `config.toml`; `efrit-budget config --path` prints where it is;
3. the project's `.efrit.toml`, which may only make stricter what is marked so below; anything
   else in it is left out with a warning;
4. environment variables: `budget.total` is `EFRIT_BUDGET_BUDGET__TOTAL`, and so on; a list or a
   table is written as TOML, for example `EFRIT_BUDGET_TOOLS__DENY='["run_command"]'`;
5. the command line (`--db`), or the client.

`efrit-budget config` prints every setting, its value and where that came from. A key that does
not exist is an error that names the nearest one.

The state folder (the database) and the log folder are the platform's own for `efrit-budget`;
with `EFRIT_BUDGET_HOME` set they, and the folder of `config.toml`, are `state`, `log` and
`config` in that folder.

`python -m tests.docs.settings_page` writes this page from the settings.
"""
FOLDERS = {".sqlite3": "state", ".log": "log"}
HEADING = ("key", "kind", "default", "a project may", "meaning")


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *map(group_part, Settings.model_fields)])


def group_part(group: str) -> str:
    """Return the part about one group, such as `budget`."""
    model = Settings.model_fields[group].annotation
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    members = model.model_json_schema()["properties"]
    rows = [
        row(f"{group}.{name}", field, members[name]) for name, field in model.model_fields.items()
    ]
    return f"## {group}\n\n{(model.__doc__ or '').strip()}\n\n{table(HEADING, rows)}\n"


def row(key: str, field: FieldInfo, member: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of one setting."""
    narrowing = "make it stricter" if key in NARROWED else ""
    return f"`{key}`", kind(member), default_of(field), narrowing, field.description or ""


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
