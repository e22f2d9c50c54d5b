"""`efrit-budget config`."""

from __future__ import annotations

import re
from pathlib import Path

from efrit_budget.settings.model import known_settings
from tests.cli.command import efrit, write_config


def test_every_setting_is_shown_with_its_value_and_where_it_came_from(home: Path) -> None:
    file = write_config(home, "[budget]\ntotal = 50000\n")
    heading, *rows = efrit("config", env={"EFRIT_BUDGET_LOG__LEVEL": "debug"}).out.splitlines()
    assert heading.split() == ["SETTING", "VALUE", "FROM"]
    cells = {row.split()[0]: row.split(maxsplit=1)[1] for row in rows}
    assert cells["budget.total"].split() == ["50000", str(file)]
    assert cells["log.level"].split(maxsplit=1) == [
        "debug",
        " environment EFRIT_BUDGET_LOG__LEVEL".strip(),
    ]
    assert cells["retention.days"].split() == ["30", "default"]
    assert set(cells) == set(known_settings())
    assert re.fullmatch(r'\["\.env", .{1,40}…\s+default', cells["tools.secret_files"])


def test_one_setting_is_explained() -> None:
    shown = efrit("config", "budget.floor").out
    assert shown.startswith("budget.floor = 500\nfrom: default\n")
    assert "EFRIT_BUDGET_BUDGET__FLOOR" in shown


def test_machines_get_values_as_json(home: Path) -> None:
    write_config(home, '[tools]\ndeny = ["shell_exec"]\n')
    listed = efrit("config", "--json").json
    values = {setting["key"]: setting["value"] for setting in listed["settings"]}
    assert values["tools.deny"] == ["shell_exec"]
    assert values["budget.history"] is None
    assert listed["warnings"] == []
    assert efrit("config", "budget.total", "--json").json["value"] == 100_000


def test_an_unknown_setting_is_answered_with_the_nearest() -> None:
    ended = efrit("config", "budget.totl")
    assert (ended.code, ended.out) == (1, "")
    assert "the nearest is budget.total" in ended.complaint


def test_the_path_of_the_file_is_shown_even_when_the_file_is_wrong(home: Path) -> None:
    file = write_config(home, "not toml")
    assert efrit("config", "--path").out == f"{file}\n"
    assert efrit("config", "--path", "--json").json == {"path": str(file)}


def test_a_flag_is_a_source_too(tmp_path: Path) -> None:
    shown = efrit("config", "storage.database", "--db", str(tmp_path / "x.sqlite3")).out
    assert shown.startswith(f"storage.database = {tmp_path / 'x.sqlite3'}\nfrom: command line\n")


def test_what_a_project_narrows_is_shown_and_what_it_may_not_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / ".efrit.toml"
    file.write_text("[budget]\ntotal = 60000\nfloor = 1\n", encoding="utf-8")
    ended = efrit("config", "budget.total", "--root", str(tmp_path))
    assert ended.code == 0
    assert ended.out.startswith(f"budget.total = 60000\nfrom: {file}\n")
    assert "a project may not set budget.floor" in ended.complaint
    assert efrit("config", "budget.total", cwd=tmp_path).out == ended.out
