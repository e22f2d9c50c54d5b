"""A whole run on a small checkout: strong tests notice mutants that weak ones let live."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import judge
from tests.mutants.__main__ import main

pytestmark = pytest.mark.soak(alone=True)

TOY = """
    def is_more(one, other):
        return one > other

    def is_same(one, other):
        return one == other

    def never_called():
        return 5
"""
STRONG = """
    import subprocess, sys
    from room.toy import is_more

    def test_here():
        assert is_more(2, 1) is True

    def test_in_a_process_of_its_own():
        program = "from room.toy import is_same; print(is_same(1, 1))"
        assert subprocess.check_output([sys.executable, "-c", program]) == b"True\\n"
"""
WEAK = """
    from room.toy import is_more

    def test_too_little():
        is_more(1, 1)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one file, without tests; pytest loads no plugins, to start faster."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "room").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write(tmp_path / "room" / "__init__.py", "")
    write(tmp_path / "room" / "toy.py", TOY)
    return tmp_path


def write(file: Path, text: str) -> None:
    """Write a file, without the blanks its text stands behind here."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")


def run(checkout: Path, *options: str) -> int:
    """Try every mutant of the checkout and return the exit code."""
    kept = [f"--map={checkout / 'kept' / 'map'}", f"--results={checkout / 'kept' / 'results'}"]
    return main([f"--root={checkout}", "--rooms=room", "--jobs=1", *kept, *options])


def results(checkout: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the results by the code before and after."""
    lines = (checkout / "kept" / "results").read_text(encoding="utf-8").splitlines()
    return {(line["before"], line["after"]): line for line in map(json.loads, lines)}


def test_strong_tests_notice_what_they_reach_in_all_processes(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code that no test reaches counts as not noticed; nothing is written into the checkout."""
    write(checkout / "tests" / "test_toy.py", STRONG)
    files = set(checkout.rglob("*"))
    assert run(checkout) == 1, "the function that is never called counts"
    found = results(checkout)
    assert {line["verdict"] for line in found.values()} == {"killed", "not reached"}
    assert found["return 5", "return None"]["verdict"] == "not reached"
    assert found["return one > other", "return None"]["test"] == "tests/test_toy.py::test_here"
    by_process = "tests/test_toy.py::test_in_a_process_of_its_own"
    assert found["one == other", "(one != other)"]["test"] == by_process
    assert "| all | 6 | 4 | 0 | 0 | 2 | 66.7% |" in capsys.readouterr().out
    left = {file for file in checkout.rglob("*") if "__pycache__" not in file.parts}
    assert left - files == {checkout / "kept", *(checkout / "kept").iterdir()}


def test_a_change_that_hangs_is_noticed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs much longer than recorded is ended."""
    monkeypatch.setattr(judge, "PATIENCE", 1.0)
    loop = """
        def last(number):
            while number > 0:
                number -= 1
            return number
    """
    test = """
        from room.toy import last

        def test_last():
            last(2)
    """
    write(checkout / "room" / "toy.py", loop)
    write(checkout / "tests" / "test_toy.py", test)
    run(checkout)
    assert results(checkout)["number -= 1", "number += 1"]["verdict"] == "timed out"


def test_weak_tests_let_a_mutant_live_until_they_are_made_strong(checkout: Path) -> None:
    """Changed tests are recorded anew, and mutants that lived are judged anew."""
    write(checkout / "tests" / "test_toy.py", WEAK)
    run(checkout)
    before = results(checkout)
    assert before["return one > other", "return None"]["verdict"] == "survived"
    write(checkout / "tests" / "test_more.py", STRONG)
    run(checkout, "--record", "tests/test_more.py", "--resume", "--again")
    after = results(checkout)
    assert after["return one > other", "return None"]["verdict"] == "killed"
    lines = (checkout / "kept" / "results").read_text(encoding="utf-8").splitlines()
    run(checkout, "--resume")
    assert (checkout / "kept" / "results").read_text(encoding="utf-8").splitlines() == lines


def test_a_test_that_fails_by_itself_notices_nothing(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test that passed only while it was recorded notices nothing either."""
    fickle = """
        import os
        from room.toy import is_more

        def test_wrong():
            assert not is_more(2, 1)

        def test_fickle():
            is_more(2, 1)
            assert "MUTANT_RECORD" in os.environ
    """
    write(checkout / "tests" / "test_toy.py", fickle)
    run(checkout)
    assert {line["verdict"] for line in results(checkout).values()} == {"not reached"}
    said = capsys.readouterr().out
    assert "does not pass, and judges nothing: tests/test_toy.py::test_wrong" in said
    assert "fails without a mutant too, and judges nothing: tests/test_toy.py::test_fickle" in said


def test_code_that_changed_since_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recorded lines are no longer those of the file."""
    write(checkout / "tests" / "test_toy.py", WEAK)
    assert run(checkout, "--only-record") == 0
    write(checkout / "room" / "toy.py", TOY.replace(">", "<"))
    assert run(checkout) == 2
    assert "room/toy.py" in capsys.readouterr().err
