"""Tests of `read_file`, through a real sidecar: lines, pages, changes, refusals."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.tools.reading import Read, lines_in, numbered, numbers_in, pages_of, reader


@pytest.fixture(name="read")
def make_reader(sidecar: Connection, session: str) -> Read:
    """A function that calls the tool."""
    return reader(sidecar, session)


# Which lines


def test_a_file_is_shown_under_its_name_each_line_behind_its_number(
    read: Read, project: Path
) -> None:
    (project / "größe.el").write_text("(defun a ()\n\n\t1)\n", encoding="utf-8")
    envelope = read(path="größe.el")
    assert envelope["status"] == "success"
    shown = "größe.el (3 lines, 17 bytes)\n1\t(defun a ()\n2\t\n3\t\t1)\n📏 ~"
    assert envelope["text"].startswith(shown)
    assert envelope["data"]["lines"] == ["(defun a ()", "", "\t1)"]
    assert envelope["data"]["total_lines"] == 3
    assert "continuation_token" not in envelope["data"]


ASKED: list[tuple[dict[str, Any], range]] = [
    ({"start_line": 3}, range(3, 11)),
    ({"end_line": 2}, range(1, 3)),
    ({"start_line": 4, "end_line": 6}, range(4, 7)),
    ({"start_line": "4", "end_line": "4"}, range(4, 5)),
    ({"start_line": 9, "end_line": 99}, range(9, 11)),
    ({"around_line": 5}, range(1, 11)),
    ({"tail": 3}, range(8, 11)),
    ({"tail": 99}, range(1, 11)),
]


def test_the_lines_that_are_asked_for_are_shown(read: Read, project: Path) -> None:
    for number, (arguments, expected) in enumerate(ASKED):
        (project / f"{number}").write_text(numbered(10), encoding="utf-8")
        envelope = read(path=f"{number}", **arguments)
        assert numbers_in(envelope) == list(expected)
        assert envelope["data"]["lines"] == [f"line {line}" for line in expected]


def test_around_a_line_there_are_fifty_on_either_side_or_as_many_as_fit(
    read: Read, project: Path
) -> None:
    (project / "a").write_text(numbered(1000), encoding="utf-8")
    assert numbers_in(read(path="a", around_line=500)) == list(range(450, 551))
    assert 500 in numbers_in(read(path="a", around_line=500, max_tokens=200))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"start_line": 11}, "it has 10 lines"),
    ({"around_line": 11}, "it has 10 lines"),
    ({"start_line": 10**30}, "it has 10 lines"),
    ({"start_line": 5, "end_line": 4}, "end_line 4 is before start_line 5"),
    ({"start_line": 5, "around_line": 4}, "give one of"),
    ({"tail": 5, "end_line": 4}, "give one of"),
    ({"start_line": 0}, "start_line"),
    ({"tail": -1}, "tail"),
    ({"end_line": 1.5}, "end_line"),
    ({"encoding": "x"}, "encoding"),
]


def test_what_cannot_be_asked_for_is_told_with_what_can(read: Read, project: Path) -> None:
    (project / "a").write_text(numbered(10), encoding="utf-8")
    for arguments, told in WRONG:
        envelope = read(path="a", **arguments)
        assert envelope["status"] == "error"
        assert told in envelope["message"]


# Pages


def test_pages_follow_each_other_to_the_end_within_their_allowance(
    read: Read, project: Path
) -> None:
    (project / "a").write_text(numbered(300), encoding="utf-8")
    pages = list(pages_of(read, path="a", start_line=20, end_line=280, max_tokens=400))
    assert [number for page in pages for number in numbers_in(page)] == list(range(20, 281))
    assert all(page["tokens"] <= 400 for page in pages)
    first = numbers_in(pages[0])[-1]
    assert f"Lines 20-{first} of 300. continuation_token r1:" in pages[0]["text"]
    assert "continuation_token" not in pages[-1]["text"]


def test_pages_of_the_end_go_backwards(read: Read, project: Path) -> None:
    (project / "a").write_text(numbered(300), encoding="utf-8")
    pages = list(pages_of(read, path="a", tail=200, max_tokens=400))
    assert [n for page in reversed(pages) for n in numbers_in(page)] == list(range(101, 301))
    assert "; backwards, continuation_token r1:" in pages[0]["text"]
    assert all(page["tokens"] <= 400 for page in pages)


def test_an_enormous_line_is_paged_by_characters(read: Read, project: Path) -> None:
    line = "".join(f"ключ{number:05}, " for number in range(2000))
    (project / "a").write_text(f"first\n{line}\nlast", encoding="utf-8")
    pages = list(pages_of(read, path="a", start_line=2, max_tokens=2000))
    assert len(pages) > 5
    assert "".join(page["data"]["lines"][0] for page in pages) == line
    assert pages[-1]["data"]["lines"][1] == "last"
    begin, end = pages[0]["data"]["columns"]
    assert f"Line 2 of 3, columns {begin}-{end:,}. continuation_token" in pages[0]["text"]
    assert lines_in(pages[1])[0].startswith(f"2:{end + 1}\t")
    assert all(page["tokens"] <= 2000 for page in pages)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-be", "latin-1"])
def test_however_small_the_pages_no_character_is_lost(
    read: Read, project: Path, codec: str
) -> None:
    sign = "é" if codec == "latin-1" else "é\U0001f600漢"
    lines = [f"{number} {sign * 40} end of a line" for number in range(1, 9)]
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    (project / "a").write_bytes(mark + "\r\n".join(lines).encode(codec))
    pages = list(pages_of(read, path="a", max_tokens=200))
    found = ""
    for page in pages:
        goes_on = page["data"].get("columns", [1])[0] > 1
        found += "" if goes_on or not found else "\n"
        found += "\n".join(page["data"]["lines"])
    assert found.replace("\r", "").split("\n") == lines


def test_a_big_file_is_read_where_it_is_asked_for(read: Read, project: Path) -> None:
    lines = [f"{number:07} {'x' * (number % 90)}\n" for number in range(1, 150_001)]
    (project / "big").write_text("".join(lines), encoding="utf-8")
    os.utime(project / "big", (0, 0))
    first = read(path="big", end_line=2)
    assert first["text"].startswith("big (7.7 MB)\n")
    assert first["data"]["total_lines"] is None
    assert lines_in(read(path="big", tail=1))[0] == f"-1\t{lines[-1].strip()}"
    for start in (140_000, 5, 77_777, 150_000):
        shown = lines_in(read(path="big", start_line=start, end_line=start))
        assert shown == [f"{start}\t{lines[start - 1].rstrip()}"]
    assert "it has 150,000 lines" in read(path="big", start_line=150_001)["message"]
    assert read(path="big", end_line=1)["text"].startswith("big (150,000 lines, 7.7 MB)\n")
    assert numbers_in(read(path="big", tail=2)) == [149_999, 150_000]


def test_the_lines_of_a_big_utf_16_file_are_found_by_its_units(read: Read, project: Path) -> None:
    lines = [f"\u0a00\u000d\u0a0a {number}" for number in range(1, 60_001)]
    (project / "big").write_text("\n".join(lines), encoding="utf-16-be")
    (project / "big").write_bytes(b"\xfe\xff" + (project / "big").read_bytes())
    envelope = read(path="big", start_line=59_000, end_line=59_000)
    assert lines_in(envelope)[0].endswith(" 59000")
    assert envelope["data"]["total_lines"] == 60_000


# What changes


def test_a_page_of_a_file_that_changed_says_so_and_goes_on_from_its_place(
    read: Read, project: Path
) -> None:
    file = project / "log"
    file.write_text(numbered(300), encoding="utf-8")
    first = read(path="log", max_tokens=300)
    assert "Changed" not in first["text"]
    with file.open("a", encoding="utf-8") as more:
        more.write("line 301\n")
    pages = list(
        pages_of(read, continuation_token=first["data"]["continuation_token"], max_tokens=300)
    )
    assert pages[0]["data"]["changed_since"] == ["log"]
    assert "Changed since the page before: log." in pages[0]["text"]
    assert "changed_since" not in pages[1]["data"]
    assert [n for page in (first, *pages) for n in numbers_in(page)] == list(range(1, 302))


def test_a_file_that_is_shorter_by_now_or_gone_is_told(read: Read, project: Path) -> None:
    file = project / "log"
    file.write_text(numbered(300), encoding="utf-8")
    token = read(path="log", max_tokens=300)["data"]["continuation_token"]
    file.write_text("short\n", encoding="utf-8")
    envelope = read(continuation_token=token)
    assert envelope["status"] == "error"
    assert "shorter now" in envelope["message"]
    file.unlink()
    assert "no such file" in read(continuation_token=token)["message"]


def test_a_file_that_was_rewritten_is_numbered_anew(read: Read, project: Path) -> None:
    file = project / "a"
    file.write_text("x" * 50 + "\n" + numbered(10), encoding="utf-8")
    os.utime(file, (0, 0))
    assert lines_in(read(path="a", start_line=3, end_line=3)) == ["3\tline 2"]
    file.write_text("\n" * 50 + "x" + "\n" + numbered(10), encoding="utf-8")
    os.utime(file, (1, 1))
    assert lines_in(read(path="a", start_line=52, end_line=52)) == ["52\tline 1"]


def test_a_stored_page_is_brought_back_as_it_was(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").write_text("before\n", encoding="utf-8")
    first = read(path="a")
    (project / "a").write_text("after\n", encoding="utf-8")
    again = sidecar.request(
        "tools/call",
        session_id=session,
        name="recall_result",
        arguments={"handle": first["handle"]},
        tool_use_id="recall",
    )
    assert "before" in again["text"] or "Same as r1" in again["text"]
    assert again["data"]["changed_since"] == ["a"]


# Buffers


def test_what_emacs_has_not_saved_is_what_is_read(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").write_text("saved\n", encoding="utf-8")
    sidecar.notify("buffers/sync", session_id=session, path="a", text="unsaved é\nsecond")
    envelope = read(path="a")
    assert envelope["text"].startswith("a (unsaved buffer) (2 lines, 17 bytes)\n1\tunsaved é\n")
    assert envelope["data"]["unsaved"] is True
    sidecar.notify("buffers/sync", session_id=session, path="a", text=None)
    assert read(path="a")["data"]["lines"] == ["saved"]


def test_a_buffer_is_paged_and_says_when_it_changed(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    sidecar.notify("buffers/sync", session_id=session, path="new", text=numbered(200))
    pages = list(pages_of(read, path="new", max_tokens=500))
    assert [n for page in pages for n in numbers_in(page)] == list(range(1, 201))
    assert all("(unsaved buffer)" in page["text"] for page in pages)
    changed = numbered(200).replace("line 150", "LINE 150")
    sidecar.notify("buffers/sync", session_id=session, path="new", text=changed)
    further = read(continuation_token=pages[0]["data"]["continuation_token"])
    assert further["data"]["changed_since"] == ["new"]
    assert "LINE 150" in further["data"]["lines"]


def test_an_empty_buffer_and_an_empty_file_are_told(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").touch()
    (project / "bom").write_bytes(b"\xef\xbb\xbf")
    assert read(path="a")["text"].startswith("§ a: empty\n")
    assert read(path="bom")["text"].startswith("§ bom: empty\n")
    sidecar.notify("buffers/sync", session_id=session, path="a", text="")
    assert read(path="a")["text"].startswith("§ a (unsaved buffer): empty\n")
    sidecar.notify("buffers/sync", session_id=session, path="a", text="", stale=True)
    assert read(path="a")["text"].startswith(
        "§ a (unsaved buffer; the file on disk has changed since): empty\n"
    )


def test_a_buffer_whose_file_has_changed_on_disk_says_so_until_it_is_told_otherwise(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").write_text("of another program\n", encoding="utf-8")
    told = {"session_id": session, "path": "a", "text": "unsaved"}
    sidecar.notify("buffers/sync", **told, stale=True)
    envelope = read(path="a")
    assert envelope["text"].startswith(
        "a (unsaved buffer; the file on disk has changed since) (1 line, 7 bytes)\n1\tunsaved\n"
    )
    assert envelope["data"]["stale"] is True
    sidecar.notify("buffers/sync", **told)
    assert read(path="a")["text"].startswith("a (unsaved buffer) (1 line")
    sidecar.notify("buffers/sync", **told, stale=True)
    sidecar.notify("buffers/sync", session_id=session, path="a", text=None)
    assert read(path="a")["data"]["lines"] == ["of another program"]
    sidecar.notify("buffers/sync", **told)
    assert read(path="a")["data"]["stale"] is False


# What is refused


def test_folders_pipes_and_sockets_are_refused_with_what_to_do(
    read: Read, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "folder").mkdir()
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path in ("folder", ".", "pipe", "socket"):
            assert read(path=path)["status"] == "error"
    assert read(path="folder")["message"] == "folder is a folder; project_files lists it"
    assert "pipe is a pipe" in read(path="pipe")["message"]
    assert "no such file" in read(path="nowhere")["message"]
    assert "NUL" in read(path="a\0b")["message"]


def test_nothing_outside_the_project_is_read(read: Read, project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("private", encoding="utf-8")
    (project / "link").symlink_to(tmp_path / "outside")
    (project / "folder").symlink_to(tmp_path)
    for path in ("link", "folder/outside", "../outside", str(tmp_path / "outside")):
        envelope = read(path=path)
        assert envelope["status"] == "error"
        assert "outside the project" in envelope["message"]
        assert "private" not in envelope["text"]


def test_a_file_of_any_name_is_read(read: Read, project: Path) -> None:
    names = {
        b"new\nline": r'"new\nline"',
        b"latin\xe9": r'"latin\351"',
        b"--help": "--help",
        b"*": "*",
        b" x ": " x ",
    }
    for name, shown in names.items():
        (project / os.fsdecode(name)).write_text(numbered(100), encoding="utf-8")
        pages = list(pages_of(read, path=shown, max_tokens=400))
        assert pages[0]["text"].startswith(f"{shown} (100 lines")
        assert [n for page in pages for n in numbers_in(page)] == list(range(1, 101))


# Secrets


def test_a_file_that_usually_holds_secrets_is_read_once_the_person_agrees(
    read: Read, project: Path
) -> None:
    (project / ".env").write_text("".join(f"KEY_{n}=v\n" for n in range(300)), encoding="utf-8")
    (project / "harmless").symlink_to(".env")
    for path in (".env", "harmless"):
        asked = read(path=path, max_tokens=300, use=path)
        assert asked["status"] == "needs_confirmation"
        assert ".env" in asked["confirm"]["question"]
        assert "KEY_" not in str(asked)
    agreed = read(asked["confirm"]["id"], use="harmless", path="harmless", max_tokens=300)
    assert "KEY_1=v" in agreed["data"]["lines"]
    further = read(continuation_token=agreed["data"]["continuation_token"])
    assert further["status"] == "success"
    assert "KEY_299=v" in further["data"]["lines"]
    assert read(path=".env")["status"] == "needs_confirmation"


def test_an_unsaved_buffer_of_a_secret_file_is_asked_about_too(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    sidecar.notify("buffers/sync", session_id=session, path="id_rsa", text="private")
    assert read(path="id_rsa")["status"] == "needs_confirmation"


# What stays


def test_what_stays_in_the_window_names_the_file_its_size_and_the_edges_of_what_was_read(
    read: Read, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").write_text(numbered(1234), encoding="utf-8")
    first = read(path="a", max_tokens=900)
    read(continuation_token=first["data"]["continuation_token"], max_tokens=900)
    last = numbers_in(first)[-1]
    entries = sidecar.request("worklog/list", session_id=session)["entries"]
    said = [entry["compressed"] for entry in reversed(entries)]
    assert f"Read a (1,234 lines, 11 KB), lines 1-{last} of 1,234.\n1\tline 1\n" in said[0]
    assert f"\n{last}\tline {last}\n" in f"{said[0]}\n"
    assert f"lines {last + 1}-" in said[1]
    assert all(len(text) < 600 for text in said)
