"""Tests of `project_map`, through a real sidecar and a real universal-ctags."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.tools.conftest import Call, shown

Map = Callable[..., dict[str, Any]]


@pytest.fixture(name="mapped")
def make_map(call: Call) -> Map:
    """Call the tool."""
    return partial(call, "project_map")


def _write(project: Path, **files: str) -> None:
    for name, text in files.items():
        (project / f"{name}.py").write_text(text, encoding="utf-8")


def test_what_most_files_refer_to_comes_first_with_the_number_of_files(
    mapped: Map, project: Path
) -> None:
    _write(
        project,
        rare="def once():\n    pass\n\n\ndef never():\n    pass\n",
        shared="class Shape:\n    def area(self):\n        return 0\n",
        one="from shared import Shape\n\nShape().area()\nonce()\n",
        two="from shared import Shape\n\nShape()\n",
    )
    assert shown(mapped()).splitlines() == [
        *("shared.py", "1 class Shape +2", "2 member Shape.area +1"),
        *("rare.py", "1 function once +1", "5 function never"),
    ]


def test_names_in_comments_and_strings_and_in_the_file_itself_are_no_references(
    mapped: Map, project: Path
) -> None:
    _write(
        project,
        one="def go():\n    return go()\n",
        two='# go() here\nprint("go()", \'go()\')\n"""\ngo()\n"""\n',
    )
    assert shown(mapped()) == "one.py\n1 function go"


def test_a_file_that_defines_and_uses_a_name_twice_takes_one_reference_from_it(
    mapped: Map, project: Path
) -> None:
    twice = "def go():\n    pass\n\n\ndef go():\n    pass\n\n\ngo()\n"
    _write(project, one=twice, **{f"use{number}": "go()\n" for number in range(4)})
    assert shown(mapped()) == "one.py\n1 function go +2\n5 function go +2"


def test_references_are_shared_among_definitions_of_one_name(mapped: Map, project: Path) -> None:
    _write(project, one="def go():\n    pass\n", two="def go():\n    pass\n")
    _write(project, **{f"use{number}": "go()\n" for number in range(5)})
    assert shown(mapped()) == "one.py\n1 function go +2\ntwo.py\n1 function go +2"


def test_functions_inside_functions_and_fields_are_not_in_the_map(
    mapped: Map, project: Path
) -> None:
    _write(project, one="def go():\n    def inner():\n        pass\n")
    (project / "a.c").write_text("struct point { int x; };\n")
    assert {one["name"] for one in mapped()["data"]["symbols"]} == {"go", "point"}


def test_a_name_in_lisp_is_whole_with_its_hyphens(mapped: Map, project: Path) -> None:
    (project / "a.el").write_text("(defun my-go (x) x)\n(defun my (x) x)\n")
    (project / "b.el").write_text("(my-go 1)\n; (my 1)\n(mapcar #'my-go nil)\n")
    assert shown(mapped()) == "a.el\n1 function my-go +1\n2 function my"


def test_what_lisp_calls_is_no_reference_to_a_definition_in_another_language(
    mapped: Map, project: Path
) -> None:
    (project / "a.h").write_text("#define push 1\n")
    (project / "b.el").write_text("(defmacro push (x) x)\n")
    (project / "c.el").write_text("(push 1)\n")
    assert shown(mapped()) == "b.el\n1 macro push +1\na.h\n1 macro push"


def test_a_function_of_go_is_called_behind_the_name_of_its_module(
    mapped: Map, project: Path
) -> None:
    (project / "a.go").write_text("package a\n\nfunc Run() {}\n")
    (project / "b.go").write_text("package b\n\nfunc b() { a.Run() }\n")
    assert "3 func a.Run +1" in shown(mapped())


def test_fields_variables_and_examples_of_ruby_are_not_in_the_map(
    mapped: Map, project: Path
) -> None:
    _write(project, one="total = 1\n\n\nclass Shape:\n    size = 2\n")
    (project / "a.el").write_text("(defvar my-size 1)\n(defconst my-most 2)\n(defun my-go () 1)\n")
    (project / "a.rb").write_text('describe "a shape" do\nend\n\ndef turn\nend\n')
    assert {one["name"] for one in mapped()["data"]["symbols"]} == {"Shape", "my-go", "turn"}


def test_the_first_page_keeps_the_budget_and_further_pages_bring_the_rest(
    mapped: Map, project: Path
) -> None:
    for number in range(300):
        _write(project, **{f"m{number:03}": f"def function_{number:03}():\n    pass\n"})
    _write(project, use="function_077()\n")
    first = mapped(max_tokens=300)
    assert first["tokens"] <= 300
    assert first["data"]["symbols"][0]["name"] == "function_077"
    found = [one["name"] for one in first["data"]["symbols"]]
    token = first["data"]["continuation_token"]
    while token:
        following = mapped(continuation_token=token)
        found += [one["name"] for one in following["data"]["symbols"]]
        token = following["data"].get("continuation_token")
    assert len(found) == len(set(found)) == 300


def test_a_changed_file_is_looked_at_again(mapped: Map, project: Path) -> None:
    _write(project, one="def before():\n    pass\n")
    assert "before" in shown(mapped())
    _write(project, one="def another():\n    pass\n")
    assert shown(mapped()) == "one.py\n1 function another"


def test_a_folder_and_a_pattern_limit_the_map(mapped: Map, project: Path) -> None:
    (project / "src").mkdir()
    _write(project, top="def top():\n    pass\n")
    _write(project / "src", inner="def inner():\n    pass\n", other="def other():\n    pass\n")
    assert shown(mapped(path="src", pattern="inner*")) == "src/inner.py\n1 function inner"
    assert "top" in shown(mapped(pattern="!src/**"))


def test_the_unsaved_buffer_counts_instead_of_its_file(
    sidecar: Connection, session: str, mapped: Map, project: Path
) -> None:
    _write(project, one="def saved():\n    pass\n")
    sidecar.request(
        "buffers/sync",
        session_id=session,
        path="one.py",
        text="def typed():\n    pass\n",
    )
    assert shown(mapped()) == "one.py\n1 function typed"


def test_unsaved_buffers_of_one_name_in_two_folders_are_both_in_the_map(
    sidecar: Connection, session: str, mapped: Map, project: Path
) -> None:
    for folder in ("here", "there"):
        (project / folder).mkdir()
        _write(project / folder, one="def saved():\n    pass\n")
        path, text = f"{folder}/one.py", f"def {folder}():\n    pass\n"
        sidecar.request("buffers/sync", session_id=session, path=path, text=text)
    assert shown(mapped()) == "here/one.py\n1 function here\nthere/one.py\n1 function there"


def test_files_with_secrets_are_not_in_the_map(mapped: Map, project: Path) -> None:
    _write(project, one="def go():\n    pass\n")
    (project / ".env.py").write_text("def hidden():\n    pass\n")
    assert shown(mapped()) == "one.py\n1 function go"


def test_a_file_whose_name_looks_like_an_option_is_a_file(mapped: Map, project: Path) -> None:
    (project / "--totals.py").write_text("def go():\n    pass\n")
    (project / "-x y.py").write_text("def also():\n    pass\n")
    assert {one["name"] for one in mapped()["data"]["symbols"]} == {"go", "also"}


def test_texts_and_data_neither_define_nor_refer(mapped: Map, project: Path) -> None:
    _write(project, one="def go():\n    pass\n")
    (project / "notes.md").write_text("# go\n\n    go()\n")
    (project / "style.css").write_text(".go { color: red }\n")
    assert shown(mapped()) == "one.py\n1 function go"


def test_large_files_are_left_out_and_counted(mapped: Map, project: Path) -> None:
    _write(project, one="def go():\n    pass\n", large="def huge():\n    pass\n" + "#" * 600_000)
    assert shown(mapped()) == "one.py\n1 function go\n1 large file left out."


def test_a_file_or_a_folder_without_definitions_is_refused_with_the_reason(
    mapped: Map, project: Path
) -> None:
    (project / "a.txt").write_text("words\n")
    assert mapped(path="a.txt")["message"] == "a.txt is not a folder; list_symbols maps a file."
    assert mapped()["message"] == "No definitions in 1 file of . that ctags knows."
    assert mapped(path="gone")["status"] == "error"


def test_the_line_that_stays_names_the_most_referenced(
    mapped: Map, project: Path, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    text = "".join(f"def go{number}():\n    pass\n" for number in range(40))
    _write(project, one=text, two="go7()\n")
    line = shrunk(mapped())
    assert line.startswith("Mapped 40 symbols of .: go7 (one.py:15); go0 (one.py:1); ")
