"""`efrit-budget repl`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import efrit, efrit_at_a_terminal


def test_lines_on_stdin_are_answered_in_order(tmp_path: Path) -> None:
    lines = f'session/open {{"root": "{tmp_path}"}}\nsession/list\n'
    ended = efrit("repl", "--json", stdin=lines)
    assert (ended.code, ended.err) == (0, "")
    opened, listed = (json.loads(line) for line in ended.out.splitlines())
    assert [one["session_id"] for one in listed["sessions"]] == [opened["session_id"]]


def test_replies_are_indented_for_people() -> None:
    assert efrit("repl", stdin="session/list\n").out == '{\n  "sessions": []\n}\n'


def test_a_json_rpc_request_gets_the_reply_it_would_get_on_the_wire() -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": "session/list"}
    reply = efrit("repl", "--json", stdin=json.dumps(request)).json
    assert reply == {"jsonrpc": "2.0", "result": {"sessions": []}, "id": 7}


def test_a_batch_gets_a_reply_for_each_member_but_notifications() -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": {}}
    notification = {"jsonrpc": "2.0", "method": "session/list"}
    replies = efrit("repl", "--json", stdin=json.dumps([request, notification, 5])).json
    assert [reply["id"] for reply in replies] == [7, None]
    assert replies[1]["error"]["code"] == -32600


def test_a_notification_gets_no_reply() -> None:
    ended = efrit("repl", stdin='{"jsonrpc": "2.0", "method": "session/list"}\n')
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize(
    ("bad", "hint"),
    [
        ("no/such", "-32601"),
        ("session/open {", "-32700"),
        ("session/open [1]", "must be a JSON object"),
        ('session/open {"root": 5}', "root: "),
        ('{"jsonrpc"', "-32700"),
        ("[" * 100_000, "nested "),
        ("session/list \udcff", "UTF-8"),
    ],
)
def test_a_bad_line_gets_a_clear_error_and_the_repl_goes_on(bad: str, hint: str) -> None:
    stdin = f"{bad}\nsession/list\n".encode(errors="surrogateescape")
    ended = efrit("repl", "--json", stdin=stdin)
    assert hint in ended.complaint
    assert ended.json == {"sessions": []}
    assert ended.code == 1


def test_quit_leaves_before_the_rest() -> None:
    assert efrit("repl", stdin="quit\nsession/list\n").out == ""


def test_help_and_methods_say_what_can_be_typed() -> None:
    assert "method {json}" in efrit("repl", stdin="help\n").out
    assert "session/open" in efrit("repl", stdin="methods\n").out.splitlines()


def test_at_a_terminal_there_is_a_prompt_and_a_private_history(home: Path) -> None:
    typed = "session/list\nno/such\nquit\n"
    ended = efrit_at_a_terminal("repl", "--json", typed=typed, prints_there=True)
    assert ended.code == 0
    assert "efrit> " in ended.err
    assert '{"sessions":[]}' in ended.err
    assert "-32601" in ended.err
    history = home / "efrit" / "state" / "repl-history"
    assert "session/list" in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o777 == 0o600
