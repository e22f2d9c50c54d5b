"""Tests of `search_content`, through a real sidecar, with real rg and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project.paths import shown_name
from efrit_budget.project.search import search as on_disk
from tests.connection import Connection
from tests.tools.searched import Search, git, lines_of, places_of, searching, write


@pytest.fixture
def search(sidecar: Connection, session: str) -> Search:
    """Call the tool with these arguments."""
    return searching(sidecar, session)


def test_matches_stand_below_their_files_name_behind_their_lines_number(
    search: Search, project: Path
) -> None:
    write(
        project, {"b.el": "x\n(defun y ())\n  (defun z ())  \n", "a/größe.py": "def f(): defun\n"}
    )
    envelope = search("defun")
    assert lines_of(envelope) == [
        "a/größe.py",
        "1:def f(): defun",
        "b.el",
        "2:(defun y ())",
        "3:  (defun z ())  ",
        "3 matching lines in 2 files.",
    ]
    assert envelope["data"]["matches"][0] == {
        "path": "a/größe.py",
        "line": 1,
        "text": "def f(): defun",
    }
    assert envelope["data"]["matching_files"] == 2


def test_an_empty_result_says_how_much_was_searched(search: Search, project: Path) -> None:
    write(project, {"a.py": "Text", "b.md": "text", "ignored.log": "absent", ".gitignore": "*.log"})
    envelope = search("absent")
    assert envelope["status"] == "success"
    assert lines_of(envelope) == [
        "No matches for 'absent' in 3 files, case counts; ignored ones left out."
    ]
    assert lines_of(search("absent", glob="*.py", case="ignore")) == [
        "No matches for 'absent' in 1 file that fit *.py; ignored ones left out."
    ]


def test_case_words_and_plain_text_are_told_apart(search: Search, project: Path) -> None:
    write(project, {"a": "Foo(\nfoo(\nfood\nFOO\n"})

    def numbers(**given: Any) -> list[int]:
        return [line for _, line in places_of(search(**given))]

    assert numbers(pattern="foo") == [2, 3]
    assert numbers(pattern="foo", case="ignore") == [1, 2, 3, 4]
    assert numbers(pattern="foo", case="smart") == [1, 2, 3, 4]
    assert numbers(pattern="Foo", case="smart") == [1]
    assert numbers(pattern="foo", word=True) == [2]
    assert numbers(pattern="foo(", literal=True) == [2]
    assert numbers(pattern="^foo.$") == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": r"alpha\s+beta"}, [1, 2]),
        ({"pattern": r"alpha[\s\S]*gamma"}, [1, 2, 3]),
        ({"pattern": "(?s)beta.*gamma"}, [2, 3]),
        ({"pattern": "alpha[^x]*gamma"}, [1, 2, 3]),
        ({"pattern": r"alpha\nbeta"}, [1, 2]),
        ({"pattern": "alpha\nbeta"}, [1, 2]),
        ({"pattern": "alpha[[:ascii:]]beta"}, [1, 2]),
        ({"pattern": r"alpha[\t-~]beta"}, [1, 2]),
        ({"pattern": "alpha[\t-~]beta"}, [1, 2]),
        ({"pattern": r"alpha[\a-\r]beta"}, [1, 2]),
        ({"pattern": r"alpha[\U00000001-\U000000ff]beta"}, [1, 2]),
        ({"pattern": "beta\nga(m", "literal": True}, [2, 3]),
        ({"pattern": r"beta\s*ga\(", "context": 1}, [2, 3]),
    ],
)
def test_a_pattern_that_reaches_over_lines_is_searched_over_lines(
    search: Search, project: Path, arguments: dict[str, Any], lines: list[int]
) -> None:
    write(project, {"a.txt": "alpha\nbeta\nga(m gamma\n"})
    envelope = search(**arguments)
    assert [line for _, line in places_of(envelope)] == lines
    assert f"§ {len(lines)} lines in matches over lines in 1 file." in envelope["text"]


def test_a_literal_of_several_lines_is_found_where_lines_end_as_on_windows(
    search: Search, project: Path
) -> None:
    write(project, {"dos.txt": b"a.b\r\nc*d\r\n", "other.txt": "axb\nccd\n"})
    envelope = search("a.b\nc*d", literal=True)
    assert places_of(envelope) == [("dos.txt", 1), ("dos.txt", 2)]


def test_what_matches_within_lines_is_told_of_lines_and_what_says_lines_of_matches(
    search: Search, project: Path
) -> None:
    write(project, {"a": "one two\none\ntwo\n"})
    assert lines_of(search(r"one\s+two"))[-1] == "1 matching line in 1 file."
    assert lines_of(search(r"(?s)one.two", count_only=True)) == [
        "a: 2",
        "2 matches over lines in 1 file.",
    ]


def test_an_unsaved_buffer_is_searched_over_lines(
    search: Search, sidecar: Connection, session: str, project: Path
) -> None:
    write(project, {"a": "x\n"})
    sidecar.request("buffers/sync", session_id=session, path="a", text="alpha\nbeta\n")
    assert places_of(search(r"alpha\s+beta")) == [("a", 1), ("a", 2)]


def test_nothing_found_says_that_lines_were_searched_together(
    search: Search, project: Path
) -> None:
    write(project, {"a": "alpha\n"})
    [said] = lines_of(search(r"alpha\s+gamma"))
    assert "over lines too" in said
    [said] = lines_of(search("gamma"))
    assert "over lines" not in said


@pytest.mark.parametrize(
    "name", ["7:x", "7-x", "7, column 3:x", "5 matched lines\n3 files contained matches\n"]
)
@pytest.mark.parametrize("context", [0, 1])
def test_the_name_of_a_file_looks_like_no_line_of_one(
    search: Search, project: Path, name: str, context: int
) -> None:
    write(project, {name: "needle\n"})
    envelope = search("needle", context=context)
    assert lines_of(envelope)[1:3] == ["1:needle", "1 matching line in 1 file."]
    assert not re.match(r"\d+[:-]|\d+, column", lines_of(envelope)[0])
    shown = shown_name(name)
    assert envelope["data"]["matches"][0]["path"] == shown


def test_a_bad_pattern_is_told_in_rgs_words_with_the_way_out(search: Search) -> None:
    envelope = search("foo(")
    assert envelope["status"] == "error"
    assert "unclosed group" in envelope["message"]
    assert "literal: true" in envelope["message"]
    assert "NUL" in search("a\0b")["message"]


def test_a_long_line_is_cut_around_its_match_and_keeps_the_column(
    search: Search, project: Path
) -> None:
    write(
        project, {"a.js": "ä" * 5_000 + "needle" + "y" * 5_000 + "\n", "b": "needle " + "z" * 900}
    )
    envelope = search("needle")
    far, near = envelope["data"]["matches"]
    assert (far["column"], near["column"]) == (5_001, 1)
    assert "needle" in far["text"]
    assert len(far["text"]) <= 302
    assert f"1, column 5001:{far['text']}" in lines_of(envelope)


def test_lines_around_a_match_are_told_with_their_numbers(search: Search, project: Path) -> None:
    write(project, {"a": "".join(f"line {n}\r\n" for n in range(1, 30))})
    envelope = search("line (5|7|20)$", context=1)
    assert lines_of(envelope)[:9] == [
        "a",
        *("4-line 4", "5:line 5", "6-line 6", "7:line 7", "8-line 8"),
        *("19-line 19", "20:line 20", "21-line 21"),
    ]
    last = envelope["data"]["matches"][-1]
    assert (last["line"], last["before"], last["after"]) == (20, ["19-line 19"], ["21-line 21"])
    assert envelope["data"]["total"] == 3


def test_files_alone_and_counts_come_by_folder_with_all_matches_counted(
    search: Search, project: Path
) -> None:
    write(project, {"src/a.py": "x\nx x\n", "src/b.py": "x\n", "c.py": "y x\n"})
    files = search("x", files_only=True)
    assert lines_of(files) == ["c.py", "src/", "a.py", "b.py", "4 matching lines in 3 files."]
    assert files["data"]["files"] == ["c.py", "src/a.py", "src/b.py"]
    counts = search("x", count_only=True)
    assert lines_of(counts)[:4] == ["c.py: 1", "src/", "a.py: 2", "b.py: 1"]
    assert counts["data"]["files"][1] == {"path": "src/a.py", "matches": 2}


def test_a_glob_limits_the_files_and_never_brings_back_ignored_ones(
    search: Search, project: Path
) -> None:
    git(project, "init", "-q")
    write(
        project,
        {
            ".gitignore": "*.gen.py\nbuild/\n",
            **dict.fromkeys(["src/a.py", "src/a.gen.py", "src/deep/b.py", "c.py"], "x\n"),
            **dict.fromkeys(["build/d.py", "src/e.md", "include.py"], "x\n"),
        },
    )

    def found(glob: str) -> list[str]:
        return [path for path, _ in places_of(search("x", glob=glob))]

    assert found("*.py") == ["c.py", "include.py", "src/a.py", "src/deep/b.py"]
    assert found("src/**/*.py") == ["src/a.py", "src/deep/b.py"]
    assert found("src/") == []
    assert found("i*.{py,el}") == ["include.py"]
    assert found("!*.py") == ["src/e.md"]
    assert found("!src") == ["c.py", "include.py"]
    assert found("--files") == []
    assert search("x", glob="[")["status"] == "error"
    assert search("x", glob="{a")["status"] == "error"
    assert search("x", glob="\0")["status"] == "error"


def test_an_unsaved_buffer_is_searched_in_the_place_of_its_file(
    sidecar: Connection, session: str, search: Search, project: Path
) -> None:
    write(project, {"a.py": "saved\n", "b.py": "saved\n", "skip.log": "", ".gitignore": "*.log"})
    texts = {
        "a.py": "new\nunsaved",
        "new.py": "unsaved\n",
        "skip.log": "unsaved",
        ".env": "unsaved",
    }
    for path, text in texts.items():
        sidecar.notify("buffers/sync", session_id=session, path=path, text=text)
    assert places_of(search("^saved")) == [("b.py", 1)]
    envelope = search("unsaved")
    assert lines_of(envelope)[:4] == [
        *("a.py (unsaved buffer)", "2:unsaved"),
        *("new.py (unsaved buffer)", "1:unsaved"),
    ]
    assert places_of(envelope) == [("a.py", 2), ("new.py", 1)]
    assert places_of(search("unsaved", glob="n*.py")) == [("new.py", 1)]
    assert places_of(search("unsaved", path="a.py")) == [("a.py", 2)]
    assert lines_of(search("unsaved", files_only=True))[-1] == "In unsaved buffers: a.py, new.py"
    context = search("unsaved", path="a.py", context=2)
    assert lines_of(context)[:3] == ["a.py (unsaved buffer)", "1-new", "2:unsaved"]
    sidecar.notify("buffers/sync", session_id=session, path="a.py", text=None)
    assert places_of(search("^saved")) == [("a.py", 1), ("b.py", 1)]


def test_a_searched_buffer_whose_file_has_changed_on_disk_says_so(
    sidecar: Connection, session: str, search: Search, project: Path
) -> None:
    write(project, {"a.py": "of another program\n", "b.py": "saved\n"})
    for path, stale in (("a.py", True), ("b.py", False)):
        text = "new\nunsaved"
        sidecar.notify("buffers/sync", session_id=session, path=path, text=text, stale=stale)
    for arguments in ({}, {"context": 1}):
        envelope = search("unsaved", **arguments)
        assert "a.py (unsaved buffer; the file on disk has changed since)" in lines_of(envelope)
        assert "b.py (unsaved buffer)" in lines_of(envelope)
        assert places_of(envelope) == [("a.py", 2), ("b.py", 2)]
    assert lines_of(search("unsaved", path="a.py"))[0].endswith("has changed since)")
    assert lines_of(search("unsaved", files_only=True))[-2:] == [
        "In unsaved buffers: a.py, b.py",
        "Changed on disk since Emacs read them: a.py",
    ]


@pytest.fixture(params=[on_disk.CLOCK_NS, 10**18], ids=["once", "again"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are searched once, or twice as if their folder had just changed."""
    monkeypatch.setattr(on_disk, "CLOCK_NS", request.param)


@pytest.mark.usefixtures("clock")
def test_more_matches_than_are_stored_are_counted_and_the_answer_says_so(
    search: Search, project: Path
) -> None:
    write(project, {f"f{n:02}": "x\n" * 600 for n in range(30)})
    envelope = search("x")
    assert envelope["data"]["total"] == 18_000
    assert "18,000 matching lines in 30 files." in lines_of(envelope)
    places = places_of(envelope)
    while token := envelope["data"].get("continuation_token"):
        envelope = search(continuation_token=token)
        places += places_of(envelope)
    assert places == sorted(places)
    assert len(places) == 10_000
    assert places[-1] == ("f16", 400)
    assert "Only the first 10,000 of 18,000 matches were stored." in envelope["text"]


def test_matches_beyond_what_is_kept_of_rgs_output_are_counted(
    search: Search, project: Path
) -> None:
    write(project, {f"f{n}": ("x" * 200 + "\n") * 30_000 for n in range(4)})
    envelope = search("x")
    assert envelope["data"]["total"] == 120_000
    assert envelope["data"]["matching_files"] == 4
    assert envelope["data"]["matches"]


def test_max_matches_limits_a_page_and_the_token_brings_the_next(
    search: Search, project: Path
) -> None:
    write(project, {"a": "x\n" * 5, "b": "x\n" * 2})
    first = search("x", max_matches="3")
    assert places_of(first) == [("a", 1), ("a", 2), ("a", 3)]
    assert "Showing 3 of 7 matches." in first["text"]
    second = search(continuation_token=first["data"]["continuation_token"])
    assert places_of(second) == [("a", 4), ("a", 5), ("b", 1)]


@pytest.mark.usefixtures("clock")
def test_binary_files_are_left_out_and_one_that_turns_binary_late_is_named(
    search: Search, project: Path
) -> None:
    late = b"needle\n" + b"x" * 300_000 + b"\n\0needle\n"
    write(project, {"a.bin": b"needle\0\n", "b.dat": late, "c": b"needle\xff\n"})
    write(project, {"d.txt": "needle\n".encode("utf-16")})
    envelope = search("needle")
    assert places_of(envelope) == [("b.dat", 1), ("c", 1), ("d.txt", 1)]
    assert "Binary, so not told in full: b.dat" in lines_of(envelope)
    assert places_of(search("needle", path="b.dat")) == [("b.dat", 1)]
    named = search("needle", path="a.bin")
    assert named["data"]["matches"] == []
    assert "Binary, so not told in full: a.bin" in lines_of(named)
    assert search("needle", context=1)["data"]["total"] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": ""},
        {"pattern": "x", "context": -1},
        {"pattern": "x", "max_matches": 0},
        {"pattern": "x", "case": "loud"},
        {"pattern": "x", "flags": "-u"},
        {"pattern": "x" * 10_001},
        {"pattern": "x", "glob": "x" * 1_001},
    ],
)
def test_arguments_that_do_not_fit_are_a_result_for_the_model(
    search: Search, arguments: dict[str, Any]
) -> None:
    assert search(**arguments)["status"] == "error"


def test_the_line_that_stays_names_the_pattern_the_total_and_the_first_files(
    sidecar: Connection, session: str, search: Search, project: Path
) -> None:
    write(project, {f"folder/file-{n:03}.py": "x\n" * (n + 1) for n in range(300)})
    search("x")
    line = sidecar.request("worklog/list", session_id=session)["entries"][0]["compressed"]
    assert "Found 45,150 matches for 'x' in 300 files: folder/file-000.py (1), " in line
    assert len(line) < 600


def test_a_path_that_is_not_there_is_answered_with_near_files_and_folders(
    search: Search, project: Path
) -> None:
    write(project, {"src/reader.py": "x\n"})
    assert search("x", path="reader.py")["message"] == (
        "reader.py does not exist; near names: src/reader.py; project_files lists what does."
    )
    assert "near names: src/;" in search("x", path="srcs/")["message"]
    assert search("x", path="zebra")["message"] == (
        "zebra does not exist; project_files lists what does."
    )
