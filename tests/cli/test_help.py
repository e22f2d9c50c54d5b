"""Help, the version, and the errors for wrong command lines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from efrit_budget.cli.parser import COMMANDS
from tests.cli.command import efrit

NAMES = [command.NAME for command in COMMANDS]
HEAVY = {"pydantic", "jsonrpcserver", "platformdirs", "shtab", "sqlite3", "importlib.metadata"}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_examples(name: str) -> None:
    ended = efrit(name, "--help")
    assert ended.code == 0
    assert ended.err == ""
    assert f"examples:\n  efrit-budget {name}" in ended.out or f"| efrit-budget {name}" in ended.out


@pytest.mark.parametrize("action", ["list", "rename", "delete", "purge"])
def test_every_action_on_sessions_has_an_example(action: str) -> None:
    assert f"example: efrit-budget sessions {action}" in efrit("sessions", action, "--help").out


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in NAMES)]
)
def test_help_waits_for_no_heavy_import(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom efrit_budget.__main__ import main\n"
        f"assert main({arguments!r}) == 0\n"
        f"assert not {HEAVY!r} & set(sys.modules), sorted({HEAVY!r} & set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=300)


def test_the_version_names_the_protocol_too() -> None:
    assert efrit("--version").out == "efrit-budget 0.1.0 (protocol 1)\n"


def test_the_general_help_lists_every_command() -> None:
    shown = efrit("--help").out
    assert all(f"\n    {name} " in shown for name in NAMES)
    assert "exit codes: 0" in shown


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "efrit-budget: the following arguments are required: COMMAND"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["call"], "efrit-budget call: the following arguments are required: METHOD"),
        (["call", "ping", "{"], "this is not JSON: Expecting property name"),
        (["call", "ping", "[1]"], 'a JSON object is needed, such as {"root": "."}'),
        (["call", "ping", '{"x": NaN}'], "NaN is not JSON"),
        (["call", "ping", "[" * 100_000], "nested "),
        (["tool", "file_info", "--root", "/nowhere/at/all"], "there is no folder /nowhere/at/all"),
        (["tool", "file_info", "--root", "/", "--session", "x"], "not allowed with argument"),
        (["sessions", "rename", "x"], "the following arguments are required: TITLE"),
        (["sessions", "delete"], "the following arguments are required: ID"),
        (["config", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_wrong_command_line_gets_one_line_and_code_2(arguments: list[str], hint: str) -> None:
    ended = efrit(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert hint in ended.complaint
    assert "--help')" in ended.complaint
