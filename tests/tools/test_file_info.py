"""Tests of `file_info`, through a real sidecar."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(sidecar: Connection, session: str) -> Look:
    """Call the tool on these paths."""
    uses = iter(range(1000))

    def call(*paths: str) -> dict[str, Any]:
        found: dict[str, Any] = sidecar.request(
            "tools/call",
            session_id=session,
            name="file_info",
            arguments={"paths": list(paths)},
            tool_use_id=f"use-{next(uses)}",
        )
        return found

    return call


def _facts(envelope: dict[str, Any]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = envelope["data"]["files"]
    return files


def test_a_file_is_told_by_kind_size_time_and_mode(look: Look, project: Path) -> None:
    file = project / "größe.txt"
    file.write_text("text\n", encoding="utf-8")
    file.chmod(0o640)
    os.utime(file, (0, 86_400))
    envelope = look("größe.txt")
    assert envelope["status"] == "success"
    assert _facts(envelope) == [
        {
            "path": "größe.txt",
            "kind": "file",
            "size": 5,
            "modified": "1970-01-02T00:00:00+00:00",
            "mode": "-rw-r-----",
            "binary": False,
        }
    ]
    line = "größe.txt: file text, 5 bytes, 1970-01-02T00:00:00Z, -rw-r-----"
    assert envelope["text"].splitlines()[0] == line
    assert envelope["text"].splitlines()[-1].startswith("📏 ~")


def test_files_of_every_kind_are_told_without_waiting_for_any(
    look: Look, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind("socket")
        (project / "folder").mkdir()
        (project / "empty").touch()
        (project / "binary").write_bytes(b"text\0")
        (project / "link").symlink_to("folder")
        envelope = look("pipe", "socket", "folder", ".", "empty", "binary", "link")
    finally:
        listener.close()
    found = [(facts["path"], facts["kind"], facts.get("binary")) for facts in _facts(envelope)]
    assert found == [
        ("pipe", "pipe", None),
        ("socket", "socket", None),
        ("folder", "folder", None),
        (".", "folder", None),
        ("empty", "file", False),
        ("binary", "file", True),
        ("folder", "folder", None),
    ]
    assert _facts(envelope)[-1]["given"] == "link"


def test_what_cannot_be_looked_up_says_why_and_the_others_go_on(
    look: Look, project: Path, tmp_path: Path
) -> None:
    (project / "here").touch()
    (project / "loop").symlink_to("loop")
    (project / "dangling").symlink_to("gone")
    (project / "out").symlink_to(tmp_path / "out")
    paths = ["here", "gone", "../x", "/etc/passwd", "loop", "dangling", "out", "here/below"]
    envelope = look(*paths, "a\0b", "x" * 5000)
    assert envelope["status"] == "success"
    assert envelope["data"]["failed"] == 9
    problems = {facts["path"]: facts.get("error", "") for facts in _facts(envelope)}
    assert problems["here"] == ""
    assert problems["gone"] == "No such file or directory"
    assert problems["../x"].startswith("outside the project")
    assert problems["/etc/passwd"].startswith("outside the project")
    assert problems["loop"] != ""
    assert problems["dangling"] == "a link to gone, which does not exist"
    assert problems["out"].startswith("outside the project")
    assert problems["here/below"] == "Not a directory"
    assert "NUL" in problems['"a\\000b"']
    assert problems["x" * 5000] == "File name too long"


def test_a_call_without_one_usable_path_is_an_error_that_says_each_reason(look: Look) -> None:
    envelope = look("gone", "../out")
    assert envelope["status"] == "error"
    assert "No such file" in envelope["text"]
    assert "outside the project" in envelope["text"]
    assert envelope["message"]


def test_every_name_that_is_told_can_be_given_back(look: Look, project: Path) -> None:
    names = [b"new\nline", b"latin\xe9", b'"quoted"', b"tab\t", b"\\back", b"\x1b[31mred", b" x "]
    for name in names:
        (project / os.fsdecode(name)).write_bytes(name)
    shown = [r'"new\nline"', r'"latin\351"', r'"\"quoted\""', r'"tab\t"', r'"\\back"']
    shown += [r'"\033[31mred"', " x "]
    envelope = look(*shown)
    assert [facts["path"] for facts in _facts(envelope)] == shown
    assert [facts["size"] for facts in _facts(envelope)] == [len(name) for name in names]
    assert len(envelope["text"].replace("\n\n", "\n").splitlines()) == len(names) + 1


def test_no_path_writes_a_line_of_its_own_into_the_text(look: Look, project: Path) -> None:
    (project / "a").touch()
    envelope = look("a", "x\n📏 ~1 tokens", "./a\u2028", "\x1b[2J")
    assert len(envelope["text"].replace("\n\n", "\n").splitlines()) == 5
    assert "\x1b" not in envelope["text"]


def test_times_that_no_calendar_reaches_are_told_in_seconds(look: Look, project: Path) -> None:
    far = shutil.which("true") and project / "far"
    assert far
    far.touch()
    os.utime(far, (-(2**40), -(2**40)))
    envelope = look("far")
    assert envelope["status"] == "success"
    assert _facts(envelope)[0]["modified"]


def test_a_file_that_may_not_be_read_is_told_without_its_content(look: Look, project: Path) -> None:
    (project / "closed").write_text("text", encoding="utf-8")
    (project / "closed").chmod(0)
    envelope = look("closed")
    assert _facts(envelope)[0]["mode"] == "----------"
    assert _facts(envelope)[0]["size"] == 4


@pytest.mark.parametrize(
    "arguments",
    [{}, {"paths": []}, {"paths": "a"}, {"paths": [""]}, {"paths": ["a"] * 1001}, {"path": "a"}],
)
def test_arguments_that_do_not_fit_are_a_result_for_the_model(
    sidecar: Connection, session: str, arguments: dict[str, Any]
) -> None:
    envelope = sidecar.request(
        "tools/call",
        session_id=session,
        name="file_info",
        arguments=arguments,
        tool_use_id="use-wrong",
    )
    assert envelope["status"] == "error"
    assert "paths" in envelope["message"]
    assert "📏" in envelope["text"]


def test_a_thousand_paths_are_told_in_their_order(look: Look, project: Path) -> None:
    names = [f"file-{number}" for number in range(1000)]
    for name in names:
        (project / name).touch()
    envelope = look(*names)
    shown = [facts["path"] for facts in _facts(envelope)]
    assert shown == names[: len(shown)]
    assert shown


def test_a_project_that_is_gone_is_an_error_of_each_path(look: Look, project: Path) -> None:
    shutil.rmtree(project)
    assert look("a")["status"] == "error"
