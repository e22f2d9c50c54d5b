"""`efrit-budget call`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import efrit


def test_the_result_is_indented_for_people_and_compact_for_machines() -> None:
    assert efrit("call", "session/list").out == '{\n  "sessions": []\n}\n'
    assert efrit("call", "session/list", "--json").out == '{"sessions":[]}\n'


def test_parameters_come_from_the_argument_or_from_stdin(tmp_path: Path) -> None:
    params = json.dumps({"root": str(tmp_path)})
    opened = efrit("call", "session/open", params, "--json").json
    assert opened["root"] == str(tmp_path)
    assert efrit("call", "session/open", "-", "--json", stdin=params).json["root"] == str(tmp_path)


def test_stdin_that_is_not_utf_8_is_wrong_usage() -> None:
    ended = efrit("call", "session/open", "-", stdin=b'{"root": "\xff"}')
    assert ended.code == 2
    assert "UTF-8" in ended.complaint


def test_an_error_names_its_code_its_message_and_the_fields() -> None:
    ended = efrit("call", "session/open", '{"roott": 5}')
    assert ended.code == 1
    assert ended.out == ""
    assert "error -32602 (Invalid params): " in ended.complaint
    assert "root: " in ended.complaint
    assert "roott: " in ended.complaint


def test_an_error_is_its_json_rpc_object_for_machines() -> None:
    ended = efrit("call", "session/open", '{"roott": 5}', "--json")
    error = json.loads(ended.complaint)
    assert error["code"] == -32602
    assert {field["field"] for field in error["data"]["fields"]} == {"root", "roott"}


def test_an_unknown_method_is_an_error_with_the_protocols_code() -> None:
    ended = efrit("call", "no/such")
    assert ended.code == 1
    assert "error -32601" in ended.complaint
    assert "no/such" in ended.complaint


def test_another_database_is_another_world(tmp_path: Path) -> None:
    other = str(tmp_path / "other.sqlite3")
    params = json.dumps({"root": str(tmp_path)})
    opened = efrit("--db", other, "call", "session/open", params, "--json").json
    assert efrit("call", "session/list", "--json").json == {"sessions": []}
    there = efrit("call", "session/list", "--db", other, "--json").json["sessions"]
    assert [session["session_id"] for session in there] == [opened["session_id"]]
