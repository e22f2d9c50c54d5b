"""Pipes that close, disks that are full, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import TIME_LIMIT, efrit_process, write_config
from tests.sidecar import PROGRAM


@pytest.mark.parametrize("arguments", [["--help"], ["config"], ["tools", "--json"]])
def test_a_reader_that_has_gone_ends_a_command_quietly(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [*PROGRAM, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=TIME_LIMIT,
            check=False,
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_one_line_and_code_1() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [*PROGRAM, "config"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=TIME_LIMIT,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1
    assert b"No space left" in ended.stderr


def test_ctrl_c_ends_with_130_and_without_a_traceback() -> None:
    process = subprocess.Popen(
        [*PROGRAM, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"help\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(TIME_LIMIT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_mistake_in_ones_own_settings_is_one_line_that_names_file_and_key(home: Path) -> None:
    file = write_config(home, "[budget]\ntotl = 5\n")
    ended = efrit_process("tools")
    assert ended.code == 1
    assert ended.complaint == (
        f"efrit-budget: {file}: there is no setting budget.totl; the nearest is budget.total\n"
    )


def test_a_database_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    ended = efrit_process("--db", str(tmp_path), "sessions")
    assert ended.code == 1
    assert str(tmp_path) in ended.complaint


def test_output_survives_an_encoding_that_lacks_the_characters() -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended = efrit_process("tool", "file_info", '{"paths": ["."]}', env=env)
    assert ended.code == 0
    assert "tokens" in ended.out
