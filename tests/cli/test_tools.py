"""`efrit-budget tools`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import efrit, write_config


def test_the_list_is_a_table_with_the_first_sentence_of_each_tool() -> None:
    heading, *rows = efrit("tools").out.splitlines()
    assert heading.split("  ")[0] == "NAME"
    row = next(row for row in rows if row.startswith("file_info "))
    assert "sidecar" in row
    assert row.endswith(".")


def test_the_list_for_machines_has_every_schema() -> None:
    tools = efrit("tools", "--json").json["tools"]
    assert all(
        {"name", "description", "input_schema", "runs_in", "policy"} <= set(tool) for tool in tools
    )


def test_one_tool_shows_the_schema_of_its_arguments() -> None:
    shown = efrit("tools", "file_info").out
    assert shown.startswith("file_info (runs in: sidecar, policy: ")
    assert '"paths": {' in shown
    assert efrit("tools", "file_info", "--json").json["name"] == "file_info"


def test_an_unknown_tool_is_answered_with_the_nearest() -> None:
    ended = efrit("tools", "file_inf")
    assert (ended.code, ended.out) == (1, "")
    assert ended.complaint == "efrit-budget: there is no tool file_inf; the nearest is file_info\n"


def test_a_denied_tool_is_not_offered(home: Path) -> None:
    write_config(home, '[tools]\ndeny = ["file_info"]\n')
    assert "file_info" not in efrit("tools").out
