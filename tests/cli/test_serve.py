"""`efrit-budget serve`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import efrit_process, write_config

REQUEST = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'


def test_a_request_on_stdin_is_answered_on_stdout_and_nothing_else_is_there() -> None:
    ended = efrit_process("serve", stdin=REQUEST)
    assert (ended.code, ended.err) == (0, "")
    messages = [json.loads(line) for line in ended.out.splitlines()]
    assert [message["id"] for message in messages if "id" in message] == [1]
    assert {message["method"] for message in messages if "id" not in message} <= {"$/progress"}


def test_the_log_goes_to_a_file(home: Path) -> None:
    efrit_process("serve", stdin=REQUEST, env={"EFRIT_BUDGET_LOG__LEVEL": "debug"})
    assert (home / "efrit" / "log").is_dir()


def test_wrong_settings_are_one_line_and_nothing_on_stdout(home: Path) -> None:
    write_config(home, "[log]\nlevel = 'loud'\n")
    ended = efrit_process("serve", stdin=REQUEST)
    assert (ended.code, ended.out) == (1, "")
    assert "log.level = 'loud'" in ended.complaint
