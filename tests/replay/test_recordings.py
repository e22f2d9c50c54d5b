"""Reading what other programs recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from efrit_budget.cli.parser import run
from efrit_budget.replay.files import open_recording
from efrit_budget.replay.recording import RecordingError
from tests.conversation.client import Client, text
from tests.replay.recordings import PI, claude_code

READ = claude_code(
    ("What is it?", "I look.", {"a.py": "def parse_all(): pass"}),
    (None, "It defines parse_all.", {}),
    ("Thanks.", "Glad to help.", {}),
)


def test_claude_codes_lines_become_turns(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(READ, encoding="utf-8")
    first, second, third = open_recording(file).turns
    assert first.message == [text("What is it?")]
    assert [block["type"] for block in first.reply] == ["text", "tool_use"]
    assert first.results["u0a.py"].text == "def parse_all(): pass"
    assert (second.message, third.message) == (None, [text("Thanks.")])
    assert third.began - first.began == 120


def test_pis_lines_become_turns_without_broken_replies(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl.gz"
    file.write_bytes(gzip.compress(PI.encode()))
    first, second = open_recording(file).turns
    assert first.results["t1"].text == "def parse_all(): pass"
    assert first.usage == {
        "input_tokens": 3,
        "output_tokens": 9,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 7,
    }
    assert second.reply == [text("It defines parse_all.")]


def test_an_exported_session_is_read_as_it_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client(tmp_path)
    client.turn("alpha beta", message="Find it.")
    client.begin("And then?")
    client.end(text("Nothing."))
    client.app.close()
    assert run(["--db", str(client.folder / "db.sqlite"), "sessions", "export", "twin"]) == 0
    file = tmp_path / "own.jsonl"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    first, second = open_recording(file).turns
    assert first.message == [text("Find it.")]
    assert "alpha beta" in next(iter(first.results.values())).text
    assert second.reply == [text("Nothing.")]
    assert first.began == client.clock.moment


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"a": 1}\n', "is no recording that replay reads"),
        ('{"type": "user", "message": {"content": "Hello"}}\n', "no model's reply was found"),
        ("not json\n", "line 1, is not JSON"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_the_reason(
    tmp_path: Path, content: str, problem: str
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(RecordingError, match=problem):
        open_recording(file)


def test_a_file_that_cannot_be_read_does_not_keep_others_from_being_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(READ, encoding="utf-8")
    assert run(["replay", str(tmp_path / "nowhere"), str(file), "--json"]) == 1
    printed = capsys.readouterr()
    assert "nowhere cannot be read" in printed.err
    (session,) = json.loads(printed.out)["sessions"]
    assert session["turns"] == 3
