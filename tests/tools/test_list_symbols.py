"""Tests of `list_symbols`, through a real sidecar and a real universal-ctags."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.sidecar import Sidecar
from tests.tools.conftest import Call

List = Callable[..., dict[str, Any]]


@pytest.fixture(name="listed")
def make_list(call: Call) -> List:
    """Call the tool."""
    return partial(call, "list_symbols")


def _shown(envelope: dict[str, Any]) -> str:
    text: str = envelope["text"]
    return text[: text.rindex("📏")]


PYTHON = """\
import os

LIMIT = 3


class Outer:
    def method(self, a: int = 1) -> None:
        def inner():
            pass

        return inner

    class Nested:
        pass


def function(
    a,
    b,
):
    return a
"""


def test_definitions_stand_with_their_lines_under_what_holds_them(
    listed: List, project: Path
) -> None:
    (project / "größe.py").write_text(PYTHON, encoding="utf-8")
    envelope = listed(path="größe.py")
    assert _shown(envelope) == (
        "größe.py (6 symbols)\n"
        "3 variable LIMIT\n"
        "6-14 class Outer\n"
        "  7-11 member method(self, a: int = 1)\n"
        "    8-9 function inner()\n"
        "  13-14 class Nested\n"
        "17-21 function function( a, b, )\n"
    )
    assert envelope["data"]["symbols"][2] == {
        "name": "method",
        "kind": "member",
        "line": 7,
        "end": 11,
        "depth": 1,
        "scope": "Outer",
        "signature": "(self, a: int = 1)",
    }


EMACS_LISP = """\
;;; a.el --- A  -*- lexical-binding: t -*-

(defvar a-limit 3
  "How many.
They are counted.")

;;; Functions

(defun a-go ()
  "Go.
Then stop."
  (interactive)

  (message "x"))

;; About the next one.
(cl-defun a-call (x &key y)
  (list x y))
(cl-defstruct (a-thing (:constructor a-make)) one)
(ert-deftest a-works ()
  (should t))
;;; a.el ends here
"""


def test_the_forms_of_emacs_lisp_are_known_with_their_ends(listed: List, project: Path) -> None:
    (project / "a.el").write_text(EMACS_LISP, encoding="utf-8")
    assert _shown(listed(path="a.el")).split("\n")[1:-1] == [
        "3-5 variable a-limit",
        "9-14 function a-go",
        "17-18 function a-call",
        "19 struct a-thing",
        "20-21 test a-works",
    ]


def test_other_languages_and_scripts_are_told_by_name_or_first_line(
    listed: List, project: Path
) -> None:
    (project / "a.go").write_text("package m\n\nfunc F(a int) error {\n\treturn nil\n}\n")
    (project / "a.js").write_text("class A {\n  m(\n    a,\n  ) {\n  }\n}\nfunction g() {\n}\n")
    (project / "script").write_text("#!/usr/bin/env python\ndef f():\n    pass\n")
    assert "3-5 func F(a int)\n" in _shown(listed(path="a.go")).replace("m.F", "F")
    assert "1-6 class A\n  2-5 method m( a, )\n7-8 function g()" in _shown(listed(path="a.js"))
    assert "2-3 function f()\n" in _shown(listed(path="script"))


def test_what_emacs_has_not_saved_is_what_is_listed(
    listed: List, sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a.py").write_text("def saved(): pass\n", encoding="utf-8")
    sidecar.notify("buffers/sync", session_id=session, path="a.py", text="def unsaved(): pass\n")
    assert _shown(listed(path="a.py")) == (
        "a.py (unsaved buffer) (1 symbol)\n1 function unsaved()\n"
    )
    text = "def unsaved(): pass\n"
    sidecar.notify("buffers/sync", session_id=session, path="a.py", text=text, stale=True)
    assert _shown(listed(path="a.py")).startswith(
        "a.py (unsaved buffer; the file on disk has changed since) (1 symbol)\n"
    )


def test_many_symbols_are_paged(listed: List, project: Path) -> None:
    text = "".join(f"def f{number}(): pass\n" for number in range(500))
    (project / "a.py").write_text(text, encoding="utf-8")
    envelope = listed(path="a.py", max_tokens=500)
    names = [symbol["name"] for symbol in envelope["data"]["symbols"]]
    assert "of 500 symbols. continuation_token" in envelope["text"]
    while (token := envelope["data"].get("continuation_token")) is not None:
        envelope = listed(continuation_token=token)
        names += [symbol["name"] for symbol in envelope["data"]["symbols"]]
    assert names == [f"f{number}" for number in range(500)]


def test_no_name_of_a_file_is_taken_for_an_option_or_an_order(listed: List, project: Path) -> None:
    names = {b"--help.py": "--help.py", b"-o.py": "-o.py", b"new\nline.py": r'"new\nline.py"'}
    names |= {b"$(touch x).py": "$(touch x).py", b"\xe9.py": r'"\351.py"', b"@a.py": "@a.py"}
    for name, shown in names.items():
        (project / os.fsdecode(name)).write_text("def f(): pass\n", encoding="utf-8")
        assert _shown(listed(path=shown)).rstrip() == f"{shown} (1 symbol)\n1 function f()"


def test_what_has_no_symbols_and_what_cannot_be_read_is_told(
    listed: List, project: Path, tmp_path: Path
) -> None:
    (project / "a.unknown").write_text("x\n", encoding="utf-8")
    (project / "empty.py").touch()
    (project / "binary.py").write_bytes(b"def f(): pass\n\0")
    (project / "folder").mkdir()
    (tmp_path / "out.py").write_text("def hidden(): pass\n", encoding="utf-8")
    (project / "link.py").symlink_to(tmp_path / "out.py")
    assert "a.unknown: no symbols" in listed(path="a.unknown")["text"]
    assert "empty.py: no symbols" in listed(path="empty.py")["text"]
    assert "binary.py is not a text" in listed(path="binary.py")["message"]
    assert "folder is a folder; project_files lists it" in listed(path="folder")["message"]
    assert "no such file" in listed(path="gone.py")["message"]
    assert "outside the project" in listed(path="link.py")["message"]
    assert listed(path="")["status"] == "error"


def test_a_secret_file_is_listed_only_once_the_person_agrees(listed: List, project: Path) -> None:
    (project / ".env").write_text("KEY=value\n", encoding="utf-8")
    assert listed(path=".env")["status"] == "needs_confirmation"


@pytest.mark.parametrize("other", [None, "#!/bin/sh\necho 'ctags (GNU Emacs 29)'\nexit 0\n"])
def test_without_universal_ctags_it_is_told_how_to_get_it(
    tools_for_tests: Path, tmp_path: Path, project: Path, other: str | None
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if other is not None:
        (programs / "ctags").write_text(other, encoding="utf-8")
        (programs / "ctags").chmod(0o755)
    (project / "a.py").write_text("def f(): pass\n", encoding="utf-8")
    with Sidecar(env={"PATH": str(programs)}) as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        envelope = sidecar.call_tool(session, "list_symbols", "use", {"path": "a.py"})
    assert envelope["status"] == "error"
    assert "apt install universal-ctags" in envelope["message"]


def test_what_stays_in_the_window_is_how_many_there_are_and_the_outermost(
    listed: List, sidecar: Connection, session: str, project: Path
) -> None:
    text = PYTHON + "".join(f"def f{number}(): pass\n" for number in range(300))
    (project / "a.py").write_text(text, encoding="utf-8")
    listed(path="a.py")
    entry = sidecar.request("worklog/list", session_id=session)["entries"][0]
    said = entry["compressed"].partition("] ")[2]
    assert said.startswith(
        "Listed 306 symbols of a.py: 3 variable LIMIT; 6-14 class Outer; 17-21 function function("
    )
    assert len(said) <= 500


@pytest.mark.parametrize(
    ("name", "text", "symbols"),
    [
        ("a.tsx", "export function App(p: P) { return <div/> }\n", "1 function App"),
        ("a.zig", "pub fn add(a: i32) i32 {\n}\n", "1-2 function add"),
        ("b.zig", "pub const Place = packed struct {\n};\n", "1-2 struct Place"),
        ("a.swift", "public final class Foo: Bar {\n}\n", "1-2 class Foo"),
        ("a.scala", "case class Shape(x: Int)\n", "1 class Shape"),
        ("a.dart", "void main() {\n}\n", "1-2 function main"),
        ("a.tf", 'resource "aws_instance" "web" {\n}\n', "1-2 block web"),
        ("a.sol", "contract Coin {\n}\n", "1-2 class Coin"),
        ("a.nim", "proc add*(a: int): int =\n  a\n", "1-2 function add"),
        ("a.gradle", "task build {\n}\n", "1-2 block build"),
        ("a.cr", "module Geo\nend\n", "1-2 module Geo"),
        ("a.fs", "let rec add a b = a + b\n", "1 function add"),
        ("a.graphql", "type Query {\n  a: Int\n}\n", "1-3 type Query"),
        ("a.txt", "the function returns\n", "no symbols"),
    ],
)
def test_languages_that_ctags_does_not_know_are_read_by_their_keywords(
    listed: List, project: Path, name: str, text: str, symbols: str
) -> None:
    (project / name).write_text(text, encoding="utf-8")
    assert symbols in _shown(listed(path=name))
